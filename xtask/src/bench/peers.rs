//! The programs that benchmarks compare with.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::Outcome;
use crate::packages::{self, Package};
use crate::step;

const PACKAGES: [Package; 6] = [
    packages::OPENSSL,
    packages::NGINX,
    packages::CADDY,
    packages::WRK,
    packages::H2LOAD,
    packages::HAPROXY,
];

const OHA: &str = "1.16.0";
const STATIC_WEB_SERVER: &str = "2.44.1";
const K6: &str = "v2.2.0";

/// Installs what is missing: packages by apt, the rest into `peers`/bin.
pub(super) fn install(root: &Path, peers: &Path) -> Outcome {
    packages::install(root, &PACKAGES)?;
    let here = [peers.join("bin")];
    for (name, version) in [("oha", OHA), ("static-web-server", STATIC_WEB_SERVER)] {
        if packages::find(name, &here).is_none() {
            let mut install =
                step::cargo(&["install", "--locked", name, "--version", version, "--root"]);
            step::run(root, install.arg(peers))?;
        }
    }
    if packages::find("k6", &here).is_none() {
        k6(root, peers)?;
    }
    Ok(())
}

/// Built as a dependency of a throw-away module: `go install` refuses the path of version 2.
fn k6(root: &Path, peers: &Path) -> Outcome {
    if packages::find("go", &[]).is_none() {
        println!("no Go: k6 is left out");
        return Ok(());
    }
    let module = peers.join("k6-module");
    let manifest = format!("module throwaway\n\ngo 1.25\n\nrequire go.k6.io/k6/v2 {K6}\n");
    fs::create_dir_all(&module)
        .and_then(|()| fs::create_dir_all(peers.join("bin")))
        .and_then(|()| fs::write(module.join("go.mod"), manifest))
        .map_err(|error| format!("cannot write {}: {error}", module.display()))?;
    let mut go = Command::new("go");
    go.arg("-C")
        .arg(&module)
        .args(["build", "-o"])
        .arg(peers.join("bin/k6"))
        .arg("go.k6.io/k6/v2")
        .env("GOFLAGS", "-mod=mod");
    step::run(root, &mut go)
}
