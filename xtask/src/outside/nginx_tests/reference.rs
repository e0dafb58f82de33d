//! nginx as its tests of today expect it: Debian's is older than half of their directives.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::packages::{self, Package};
use crate::step;
use crate::{Failure, Outcome};

/// The crate that carries nginx's sources, and its version: in front that of nginx with the patches of the crate.
const SOURCES: &str = "nginx-src";
const VERSION: &str = "1.28.5+1.28.3";

/// What nginx is compiled against.
const NEEDED: [Package; 3] = [
    Package {
        program: "/usr/include/pcre2.h",
        name: "libpcre2-dev",
    },
    Package {
        program: "/usr/include/zlib.h",
        name: "zlib1g-dev",
    },
    Package {
        program: "/usr/include/openssl/ssl.h",
        name: "libssl-dev",
    },
];

/// The modules that the gateway replaces, and modules that the tests need beside.
const MODULES: [&str; 22] = [
    "--with-http_ssl_module",
    "--with-http_v2_module",
    "--with-http_v3_module",
    "--with-http_realip_module",
    "--with-http_addition_module",
    "--with-http_sub_module",
    "--with-http_dav_module",
    "--with-http_gunzip_module",
    "--with-http_gzip_static_module",
    "--with-http_random_index_module",
    "--with-http_secure_link_module",
    "--with-http_slice_module",
    "--with-http_stub_status_module",
    "--with-http_auth_request_module",
    "--with-http_flv_module",
    "--with-http_mp4_module",
    "--with-stream",
    "--with-stream_ssl_module",
    "--with-stream_realip_module",
    "--with-stream_ssl_preread_module",
    "--with-threads",
    "--with-debug",
];

/// Builds it once below `target`; the program.
pub(super) fn build(root: &Path, target: &Path) -> Result<PathBuf, Failure> {
    let folder = target.join("peers").join(format!("nginx-{VERSION}"));
    let program = folder.join("objs/nginx");
    if program.exists() {
        return Ok(program);
    }
    packages::install(root, &NEEDED)?;
    let sources = sources(&folder.with_extension("crate"))?;
    fs::remove_dir_all(&folder).ok();
    let mut copy = Command::new("cp");
    step::run(root, copy.args(["-r", "--"]).arg(sources).arg(&folder))?;
    let mut configure = Command::new("sh");
    step::run(&folder, configure.arg("auto/configure").args(MODULES))?;
    step::run(&folder, Command::new("make").arg("-j2"))?;
    Ok(program)
}

/// The folder of the sources, which cargo fetches for a package of their own.
fn sources(package: &Path) -> Result<PathBuf, Failure> {
    let written = write_package(package);
    written.map_err(|Failure(error)| format!("{}: {error}", package.display()))?;
    let mut metadata = step::cargo(&["metadata", "--format-version", "1"]);
    let metadata = step::output(package, &mut metadata)?;
    let metadata: Value = serde_json::from_str(&metadata).map_err(|error| error.to_string())?;
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let mut manifests = packages
        .filter(|it| it["name"] == SOURCES)
        .filter_map(|it| it["manifest_path"].as_str());
    let manifest = manifests.next().map(PathBuf::from);
    let manifest = manifest.ok_or_else(|| format!("cargo did not fetch {SOURCES}"))?;
    Ok(manifest.with_file_name("nginx"))
}

fn write_package(package: &Path) -> Outcome {
    fs::create_dir_all(package)
        .and_then(|()| fs::write(package.join("lib.rs"), ""))
        .and_then(|()| {
            let manifest = format!(
                "[package]\nname = \"sources\"\nversion = \"0.0.0\"\nedition = \"2024\"\n[lib]\npath = \"lib.rs\"\n\
                 [dependencies]\n{SOURCES} = \"={VERSION}\"\n[workspace]\n"
            );
            fs::write(package.join("Cargo.toml"), manifest)
        })
        .map_err(|error| error.to_string().into())
}
