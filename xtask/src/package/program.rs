//! The programs: static, without symbols, and without paths of the machine that built them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::target::Target;
use super::{Release, cannot, length, megabytes, speed};
use crate::step::{self, cargo};
use crate::{Failure, Outcome};

/// The oldest glibc that the program may have inside: its start reads the addresses that [`Flags`] packs.
const OLDEST_GLIBC: (u32, u32) = (2, 36);

/// The most that the program may take, in bytes: what it takes and a little, so that growth shows (docs/decisions.md, "A
/// package takes 70 MB").
const MOST_BYTES: u64 = 75_000_000;

/// The programs of a release. They run in an empty root.
#[derive(Debug)]
pub(super) struct Programs {
    pub(super) plimsoll: PathBuf,
    /// What `pack` packs sites into.
    pub(super) packed: PathBuf,
}

impl Programs {
    /// - `folder`: has both, static already.
    pub(super) fn existing(folder: &Path) -> Result<Self, Failure> {
        let find = |name: &str| {
            let file = folder.join(name);
            let found = file.canonicalize();
            found.map_err(|error| cannot("find", &file, &error))
        };
        Ok(Self {
            plimsoll: find("plimsoll")?,
            packed: find("plimsoll-packed")?,
        })
    }

    /// Builds them with the C library inside.
    pub(super) fn build(root: &Path, target: &Path, release: &Release) -> Result<Self, Failure> {
        release.target.prepare(root)?;
        if !release.target.is_musl() {
            check_glibc(root)?;
        }
        let compiler = release.target.c_compiler(root, target)?;
        let flags = Flags::new(root, release.target)?;
        let triple = release.target.triple;
        let built = |profile: &str, package: &str, more: Vec<String>| {
            let mut command = cargo(&["build", "--locked", "--profile", profile]);
            command.args(["--package", package, "--bin", package, "--target", triple]);
            let plain = [
                format!("target.{triple}.rustflags={:?}", flags.rust),
                format!("profile.{profile}.debug=false"),
            ];
            let linker = release.target.linker();
            let linker = linker.map(|linker| format!("target.{triple}.linker={linker:?}"));
            for config in plain.into_iter().chain(linker).chain(more) {
                command.args(["--config", &config]);
            }
            command.env("SOURCE_DATE_EPOCH", release.epoch.to_string());
            command.env("CFLAGS", flags.c.join(" "));
            if let Some(compiler) = &compiler {
                let variable = |name: &str| format!("{name}_{}", triple.replace('-', "_"));
                let c = [&flags.c[..], &compiler.flags].concat();
                command.env(variable("CC"), compiler.compiler);
                command.env(variable("AR"), &compiler.archiver);
                command.env(variable("CFLAGS"), c.join(" "));
            }
            step::run(root, &mut command)?;
            let file = target.join(triple).join(profile).join(package);
            stripped(root, release.target, &file)
        };
        Ok(Self {
            plimsoll: built("dist", "plimsoll", speed::of_plimsoll(root)?)?,
            packed: built("packed", "plimsoll-packed", speed::of_packed(root)?)?,
        })
    }

    /// Fails if it is larger than packages may be.
    pub(super) fn check_size(&self) -> Outcome {
        let bytes = length(&self.plimsoll)?;
        if bytes <= MOST_BYTES {
            return Ok(());
        }
        let (bytes, most) = (megabytes(bytes), megabytes(MOST_BYTES));
        Err(
            format!("the program takes {bytes:.1} MB, and at most {most:.0} MB are packaged")
                .into(),
        )
    }
}

/// The program without its symbols, which the linker leaves in static ones.
fn stripped(root: &Path, target: Target, file: &Path) -> Result<PathBuf, Failure> {
    let stripped = file.with_extension("stripped");
    let mut strip = Command::new(target.strip());
    strip.arg("--strip-all").arg("-o").arg(&stripped).arg(file);
    step::run(root, &mut strip)?;
    Ok(stripped)
}

/// Fails if the C library of this system is too old to be put into the program.
fn check_glibc(root: &Path) -> Outcome {
    let text = step::output(root, Command::new("getconf").arg("GNU_LIBC_VERSION"))?;
    let version = glibc_version(&text);
    let version =
        version.ok_or_else(|| format!("getconf has `{}` as the version of glibc", text.trim()))?;
    if version < OLDEST_GLIBC {
        let (major, minor) = OLDEST_GLIBC;
        return Err(format!(
            "the program would not start with {} inside: make packages where glibc is {major}.{minor} or newer, such as Debian 12 or Ubuntu 24.04",
            text.trim()
        )
        .into());
    }
    Ok(())
}

/// `glibc 2.36` as numbers.
fn glibc_version(text: &str) -> Option<(u32, u32)> {
    let (major, minor) = text.trim().strip_prefix("glibc ")?.split_once('.')?;
    let minor = minor.split('.').next()?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// How compilers are called.
struct Flags {
    rust: Vec<String>,
    c: Vec<String>,
}

impl Flags {
    /// Those of `.cargo/config.toml`, which they replace, with the C library linked in, and names in place of this machine's
    /// folders.
    fn new(root: &Path, target: Target) -> Result<Self, Failure> {
        let file = root.join(".cargo/config.toml");
        let text = fs::read_to_string(&file).map_err(|error| cannot("read", &file, &error))?;
        let config: toml::Table = toml::from_str(&text).map_err(|error| error.to_string())?;
        let usual = config.get("build").and_then(|build| build.get("rustflags"));
        let usual = usual.and_then(toml::Value::as_array).into_iter().flatten();
        let usual = usual.filter_map(toml::Value::as_str).map(str::to_owned);
        let fixed = [
            "-C",
            "target-feature=+crt-static",
            // Functions of the same instructions are there once: generic code has many.
            "-C",
            "link-arg=-Wl,--icf=all",
            // Addresses that the start of a program moves take a bit each in place of 24 bytes; glibc knows them since 2.36, musl since 1.2.4.
            "-C",
            "link-arg=-Wl,-z,pack-relative-relocs",
        ];
        let fixed = fixed.map(str::to_owned);
        let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
        let home = home
            .or_else(|| Some(std::env::home_dir()?.join(".cargo")))
            .ok_or("neither CARGO_HOME nor HOME is set")?;
        let replaced = [
            format!("{}=/cargo", home.display()),
            format!("{}=/plimsoll", root.display()),
        ];
        let in_rust = replaced
            .iter()
            .map(|it| format!("--remap-path-prefix={it}"));
        let in_c = replaced.iter().map(|it| format!("-ffile-prefix-map={it}"));
        Ok(Self {
            rust: usual
                .chain(fixed)
                .chain(target.linker_flags(root)?)
                .chain(in_rust)
                .collect(),
            c: in_c.collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_glibc_are_compared_as_numbers() {
        assert_eq!(glibc_version("glibc 2.36\n"), Some((2, 36)));
        assert_eq!(glibc_version("glibc 2.9.1"), Some((2, 9)));
        assert_eq!(glibc_version("musl 1.2"), None);
        assert!(glibc_version("glibc 2.9") < Some(OLDEST_GLIBC));
    }
}
