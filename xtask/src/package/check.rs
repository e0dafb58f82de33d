//! Packages, used as their users do: each is unpacked or installed in a folder of its own, and what it brought is run.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::files::{below, copy, make};
use super::program::Programs;
use super::{Release, cannot, sums};
use crate::bench::free_ports;
use crate::packages::{self, Package};
use crate::server::{Server, wait_for};
use crate::step;
use crate::{Failure, Outcome};

const PODMAN: Package = Package {
    program: "podman",
    name: "podman",
};

/// Runs containers also where there are control groups of version 1.
const RUNC: Package = Package {
    program: "runc",
    name: "runc",
};

/// Limits that a user without rights may set.
const LIMITS: [&str; 2] = ["--ulimit=nofile=1024:1024", "--ulimit=nproc=1024:1024"];

/// Runs every check, also after one has failed.
pub(super) fn run(
    target: &Path,
    out: &Path,
    release: &Release,
    programs: &Programs,
    files: &[PathBuf],
) -> Outcome {
    let folder = target.join(format!("package-check-{}", std::process::id()));
    make(&folder)?;
    let checks: [(&str, Outcome); 6] = [
        ("size", programs.check_size()),
        ("sums", recorded(out, files)),
        ("empty root", empty_root(&folder.join("root"), programs)),
        ("archive", archive(&folder.join("archive"), out, release)),
        ("debian", debian(&folder.join("debian"), out, release)),
        ("image", image(&folder.join("image"), out, release)),
    ];
    // A leftover lies in the target directory.
    fs::remove_dir_all(&folder).ok();
    let mut failed = Vec::new();
    println!();
    for (name, outcome) in checks {
        match outcome {
            Ok(()) => println!("{name:<12}ok"),
            Err(Failure(message)) => {
                println!("{name:<12}FAILED  {message}");
                failed.push(name);
            }
        }
    }
    if failed.is_empty() {
        Ok(())
    } else {
        Err(format!("failed: {}", failed.join(", ")).into())
    }
}

/// The sums are those of the files.
fn recorded(out: &Path, files: &[PathBuf]) -> Outcome {
    for file in files {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let content = fs::read(file).map_err(|error| cannot("read", file, &error))?;
        if sums::recorded(out, &name)? != sums::hex(&content) {
            return Err(format!("the sum of {name} is another one").into());
        }
    }
    Ok(())
}

/// The programs need no other file: in a root with themselves and one page alone, one serves the page, the other one has it
/// packed, and both are requested.
fn empty_root(root: &Path, programs: &Programs) -> Outcome {
    make(&root.join("site"))?;
    let page = root.join("site/index.html");
    fs::write(&page, "hello\n").map_err(|error| cannot("write", &page, &error))?;
    copy(&programs.plimsoll, &root.join("plimsoll"))?;
    let mut pack = Command::new(&programs.plimsoll);
    pack.arg("pack").arg(root.join("site"));
    pack.arg("--program").arg(&programs.packed);
    step::run(root, pack.arg("-o").arg(root.join("packed")))?;
    let within = |words: &[&str]| {
        let mut command = Command::new("chroot");
        command.arg(root).args(words);
        command
    };
    for server in [&["/plimsoll", "serve", "/site"][..], &["/packed"]] {
        let [port] = free_ports()?;
        let address = format!("127.0.0.1:{port}");
        let mut command = within(server);
        let _server = Server::start(command.args(["--listen", &address]))?;
        wait_for(port)?;
        let mut client = within(&["/plimsoll"]);
        step::run(root, client.args(request(&address)))?;
    }
    Ok(())
}

/// The arguments of a request for the page that is served.
fn request(address: &str) -> [&str; 4] {
    ["check", address, "--expect", "body contains \"hello\""]
}

/// It holds what the docs list, and its program prints the version.
fn archive(folder: &Path, out: &Path, release: &Release) -> Outcome {
    make(folder)?;
    let name = release.name();
    let mut tar = Command::new("tar");
    tar.arg("-xzf").arg(out.join(format!("{name}.tar.gz")));
    step::run(folder, tar.arg("-C").arg(folder))?;
    let unpacked = folder.join(&name);
    for file in ["man/plimsoll.1", "completions/bash/plimsoll", "LICENSE-MIT"] {
        exists(&unpacked.join(file))?;
    }
    prints_version(&mut Command::new(unpacked.join("plimsoll")), release)
}

/// dpkg installs and removes it, in a root of its own.
fn debian(root: &Path, out: &Path, release: &Release) -> Outcome {
    let admin = root.join("var/lib/dpkg");
    for folder in ["info", "updates", "triggers"] {
        make(&admin.join(folder))?;
    }
    for file in ["status", "available"] {
        let file = admin.join(file);
        fs::write(&file, "").map_err(|error| cannot("write", &file, &error))?;
    }
    let file = out.join(format!(
        "plimsoll_{}_{}.deb",
        release.version,
        release.architecture()?
    ));
    let dpkg = |words: &[&str]| {
        let mut command = Command::new("dpkg");
        command
            .arg("--root")
            .arg(root)
            .args([
                "--force-not-root",
                "--force-script-chrootless",
                "--log=/dev/null",
            ])
            .args(words);
        command
    };
    step::run(root, dpkg(&["--install"]).arg(&file))?;
    for file in [
        "usr/share/man/man1/plimsoll.1.gz",
        "usr/share/bash-completion/completions/plimsoll",
        "usr/lib/systemd/system/plimsoll-gateway.service",
        "etc/plimsoll/gateway.toml",
    ] {
        exists(&root.join(file))?;
    }
    prints_version(&mut Command::new(root.join("usr/bin/plimsoll")), release)?;
    step::run(root, &mut dpkg(&["--purge", "plimsoll"]))?;
    let left = below(root)?;
    let left: Vec<_> = left
        .iter()
        .filter(|file| !file.starts_with("var/lib/dpkg"))
        .collect();
    if left.is_empty() {
        Ok(())
    } else {
        Err(format!("after `dpkg --purge` there are still {left:?}").into())
    }
}

/// podman runs it, with a root that is read-only and without capabilities, as its own user.
fn image(folder: &Path, out: &Path, release: &Release) -> Outcome {
    packages::install(folder.parent().unwrap_or(folder), &[PODMAN, RUNC])?;
    make(&folder.join("site"))?;
    let page = folder.join("site/index.html");
    fs::write(&page, "hello\n").map_err(|error| cannot("write", &page, &error))?;
    let podman = |words: &[&str]| {
        let mut command = Command::new("podman");
        command
            .arg("--root")
            .arg(folder.join("storage"))
            .arg("--runroot")
            .arg(folder.join("run"))
            .args(["--storage-driver", "vfs", "--cgroup-manager", "cgroupfs"])
            .args(["--runtime", "runc"])
            .args(words);
        command
    };
    let source = format!(
        "oci-archive:{}",
        out.join(format!("{}.oci.tar", release.name())).display()
    );
    let id = step::output(folder, &mut podman(&["pull", "--quiet", &source]))?;
    let id = id.trim().to_owned();
    let volume = format!("{}:/srv:ro", folder.join("site").display());
    let name = format!("plimsoll-check-{}", std::process::id());
    let run = |options: &[&str], words: &[&str]| {
        let mut command = podman(&["run", "--rm", "--read-only", "--cap-drop=all"]);
        command
            .args(["--network=host", "--security-opt=no-new-privileges"])
            .args(LIMITS)
            .args(options)
            .args(["--volume", &volume, &id])
            .args(words);
        command
    };
    prints_version(&mut run(&[], &[]), release)?;
    let [port] = free_ports()?;
    let address = format!("127.0.0.1:{port}");
    let detached = ["--detach", "--name", &name];
    let served = ["serve", "/srv", "--listen", &address];
    step::run(folder, &mut run(&detached, &served))?;
    let answered =
        wait_for(port).and_then(|()| step::run(folder, &mut run(&[], &request(&address))));
    let removed = step::run(folder, &mut podman(&["rm", "--force", "--time=5", &name]));
    answered.and(removed)
}

fn prints_version(command: &mut Command, release: &Release) -> Outcome {
    let printed = step::output(Path::new("/"), command.arg("--version"))?;
    let expected = format!("plimsoll {}", release.version);
    if printed.trim().starts_with(&expected) {
        Ok(())
    } else {
        Err(format!("`--version` printed `{}`, not `{expected}`", printed.trim()).into())
    }
}

fn exists(file: &Path) -> Outcome {
    if file.is_file() {
        Ok(())
    } else {
        Err(format!("{} is missing", file.display()).into())
    }
}
