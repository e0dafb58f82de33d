//! The package for Debian, made by cargo-deb from the list in `crates/plimsoll/Cargo.toml`.

use std::path::{Path, PathBuf};

use super::Release;
use crate::Failure;
use crate::packages;
use crate::step::{self, cargo};

/// Version of cargo-deb that is installed where there is none.
const CARGO_DEB: &str = "3.8.0";

/// Where the package's list of files has what was staged, below the root of the repository.
pub(super) const STAGED: &str = "target/package";

/// Writes `plimsoll_VERSION_ARCHITECTURE.deb`.
pub(super) fn write(root: &Path, out: &Path, release: &Release) -> Result<PathBuf, Failure> {
    if packages::find("cargo-deb", &[]).is_none() {
        let install = [
            "install",
            "--locked",
            "--debug",
            "--no-default-features",
            "cargo-deb",
            "--version",
            CARGO_DEB,
        ];
        let mut install = cargo(&install);
        step::run(root, install.env("CARGO_PROFILE_DEV_DEBUG", "false"))?;
    }
    let name = format!(
        "plimsoll_{}_{}.deb",
        release.version,
        release.target.architecture()
    );
    let path = out.join(name);
    let mut command = cargo(&["deb", "--locked", "--package", "plimsoll"]);
    command
        .args([
            "--no-build",
            "--no-strip",
            "--target",
            release.target.triple,
        ])
        .arg("--output")
        .arg(&path)
        .env("SOURCE_DATE_EPOCH", release.epoch.to_string());
    step::run(root, &mut command)?;
    if !path.is_file() {
        return Err(format!("cargo-deb wrote no {}", path.display()).into());
    }
    Ok(path)
}
