//! The programs that benchmarks compare with.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::cannot;
use crate::packages::{self, Package};
use crate::step;
use crate::{Failure, Outcome};

const PACKAGES: [Package; 6] = [
    packages::OPENSSL,
    packages::NGINX,
    packages::CADDY,
    packages::WRK,
    packages::H2LOAD,
    packages::HAPROXY,
];

/// A program that cargo installs.
struct Crate {
    /// What plans call it.
    program: &'static str,
    name: &'static str,
    version: &'static str,
    features: &'static str,
}

const CRATES: [Crate; 4] = [
    Crate {
        program: "oha",
        name: "oha",
        version: "1.16.0",
        features: "",
    },
    // HTTP/3 is off by default.
    Crate {
        program: "oha-h3",
        name: "oha",
        version: "1.16.0",
        features: "http3",
    },
    Crate {
        program: "static-web-server",
        name: "static-web-server",
        version: "2.44.1",
        features: "",
    },
    Crate {
        program: "apimock",
        name: "apimock",
        version: "6.4.0",
        features: "",
    },
];

/// The version of k6 that is measured and compared with.
const K6: &str = "v2.2.0";
const WIREMOCK: &str = "3.13.1";
const MOCKOON: &str = "9.9.0";

/// Installs those of `programs` that are missing and known: packages by apt, the rest into `peers`/bin.
pub(crate) fn install(root: &Path, peers: &Path, programs: &[&str]) -> Outcome {
    let packages = PACKAGES.iter().copied();
    let wanted: Vec<_> = packages
        .filter(|package| programs.contains(&package.program))
        .collect();
    packages::install(root, &wanted)?;
    let here = [peers.join("bin")];
    let is_missing =
        |program: &str| programs.contains(&program) && packages::find(program, &here).is_none();
    for wanted in CRATES.iter().filter(|it| is_missing(it.program)) {
        wanted.install(root, peers)?;
    }
    if is_missing("k6") {
        k6(root, peers)?;
    }
    if is_missing("wiremock") {
        wiremock(root, peers)?;
    }
    if is_missing("mockoon-cli") {
        mockoon(root, peers)?;
    }
    Ok(())
}

impl Crate {
    fn install(&self, root: &Path, peers: &Path) -> Outcome {
        let own = peers.join(self.program);
        let mut command = step::cargo(&["install", "--locked", self.name]);
        command.args(["--version", self.version, "--features", self.features]);
        step::run(root, command.arg("--root").arg(&own))?;
        let (from, to) = (
            own.join("bin").join(self.name),
            peers.join("bin").join(self.program),
        );
        fs::create_dir_all(peers.join("bin"))
            .and_then(|()| fs::rename(&from, &to))
            .map_err(|error| cannot("write", &to, &error))
    }
}

/// Builds a program of a Go module as the dependency of a throw-away one: `go install` refuses paths of version 2.
pub(crate) fn go(
    root: &Path,
    peers: &Path,
    (module, version): (&str, &str),
    name: &str,
) -> Outcome {
    if packages::find("go", &[]).is_none() {
        println!("no Go: {name} is left out");
        return Ok(());
    }
    let folder = peers.join(format!("{name}-module"));
    let manifest = format!("module throwaway\n\ngo 1.26\n\nrequire {module} {version}\n");
    fs::create_dir_all(&folder)
        .and_then(|()| fs::create_dir_all(peers.join("bin")))
        .and_then(|()| fs::write(folder.join("go.mod"), manifest))
        .map_err(|error| cannot("write", &folder, &error))?;
    let mut go = Command::new("go");
    go.arg("-C").arg(&folder).args(["build", "-o"]);
    go.arg(peers.join("bin").join(name))
        .arg(module)
        .env("GOFLAGS", "-mod=mod");
    step::run(root, &mut go)
}

pub(crate) fn k6(root: &Path, peers: &Path) -> Outcome {
    go(root, peers, ("go.k6.io/k6/v2", K6), "k6")
}

/// The jar of WireMock in `peers`, from Maven Central if it is missing.
pub(super) fn wiremock_jar(root: &Path, peers: &Path) -> Result<PathBuf, Failure> {
    let jar = peers.join(format!("wiremock-standalone-{WIREMOCK}.jar"));
    if jar.is_file() {
        return Ok(jar);
    }
    let artifact = format!("org.wiremock:wiremock-standalone:{WIREMOCK}");
    let mut maven = Command::new("mvn");
    maven
        .args(["-q", "-B", "dependency:copy", "-Dmdep.useBaseVersion=true"])
        .arg(format!("-Dartifact={artifact}"))
        .arg(format!("-DoutputDirectory={}", peers.display()));
    step::run(root, &mut maven)?;
    Ok(jar)
}

/// The jar, with a script that runs it.
fn wiremock(root: &Path, peers: &Path) -> Outcome {
    let jar = wiremock_jar(root, peers)?;
    let script = format!("#!/bin/sh\nexec java -jar {} \"$@\"\n", jar.display());
    let program = peers.join("bin/wiremock");
    fs::create_dir_all(peers.join("bin"))
        .and_then(|()| fs::write(&program, script))
        .and_then(|()| fs::set_permissions(&program, fs::Permissions::from_mode(0o755)))
        .map_err(|error| cannot("write", &program, &error))
}

fn mockoon(root: &Path, peers: &Path) -> Outcome {
    let module = peers.join("mockoon");
    let mut npm = Command::new("npm");
    npm.args(["install", "--no-fund", "--no-audit", "--prefix"])
        .arg(&module)
        .arg(format!("@mockoon/cli@{MOCKOON}"));
    step::run(root, &mut npm)?;
    let program = peers.join("bin/mockoon-cli");
    fs::create_dir_all(peers.join("bin"))
        .and_then(|()| symlink(module.join("node_modules/.bin/mockoon-cli"), &program))
        .map_err(|error| cannot("write", &program, &error))
}
