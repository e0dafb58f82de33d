//! Packages, used as their users do: each is unpacked or installed in a folder of its own, and what it brought is run.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::files::{below, copy, make};
use super::program::Programs;
use super::target::Target;
use super::{Made, Release, cannot, image, sums};
use crate::bench::free_ports;
use crate::clock::now;
use crate::compose::{self, Service};
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

/// What passed: the time from the package to the first result, where a user would wait for one.
type Checked = Result<Option<Duration>, Failure>;

/// Runs every check, also after one has failed.
///
/// - `files`, `again`: the packages, and the same made once more in another folder.
pub(super) fn run(
    root: &Path,
    target: &Path,
    made: &[Made],
    files: &[PathBuf],
    again: &[PathBuf],
) -> Outcome {
    let folder = target.join(format!("package-check-{}", std::process::id()));
    let out = files[0].parent().unwrap_or(target);
    make(&folder)?;
    let passed = |()| None;
    let mut checks: Vec<(String, Checked)> = vec![
        ("sums".to_owned(), recorded(out, files).map(passed)),
        ("twice".to_owned(), same(files, again).map(passed)),
    ];
    for Made { release, programs } in made {
        let architecture = release.target.architecture();
        let at = |name: &str| folder.join(architecture).join(name);
        let mut add = |name: &str, checked: Checked| {
            checks.push((format!("{name}, {architecture}"), checked));
        };
        add("size", programs.check_size().map(passed));
        let empty_root = empty_root(&at("root"), release.target, programs);
        add("empty root", empty_root.map(passed));
        add("archive", archive(&at("archive"), out, release).map(Some));
        add("debian", debian(&at("debian"), out, release).map(Some));
    }
    let image = image(root, &folder.join("image"), out, made);
    // A leftover lies among the temporary files.
    fs::remove_dir_all(run_root()).ok();
    checks.push(("image".to_owned(), image));
    // A leftover lies in the target directory.
    fs::remove_dir_all(&folder).ok();
    let mut failed = Vec::new();
    println!();
    for (name, outcome) in checks {
        match outcome {
            Ok(None) => println!("{name:<20}ok"),
            Ok(Some(took)) => {
                let seconds = took.as_secs_f64();
                println!("{name:<20}ok      first answer after {seconds:.1} s");
            }
            Err(Failure(message)) => {
                println!("{name:<20}FAILED  {message}");
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

/// The same commit gives the same bytes.
fn same(files: &[PathBuf], again: &[PathBuf]) -> Outcome {
    for (file, other) in files.iter().zip(again) {
        let read = |path: &Path| fs::read(path).map_err(|error| cannot("read", path, &error));
        if read(file)? != read(other)? {
            let name = file.file_name().unwrap_or_default().display();
            return Err(format!("{name} has other bytes when it is made again").into());
        }
    }
    Ok(())
}

/// The programs need no other file: in a root with themselves and one page alone, one serves the page, the other one has it
/// packed, and both are requested. Beside programs for another processor there is the emulator, which is static too.
fn empty_root(root: &Path, target: Target, programs: &Programs) -> Outcome {
    let site = site(root)?;
    copy(&programs.plimsoll, &root.join("plimsoll"))?;
    pack(&root.join("packed"), target, programs, &site)?;
    let emulator = target.emulator();
    if let Some(emulator) = &emulator {
        copy(emulator, &root.join("emulator"))?;
    }
    let within = |words: &[&str]| {
        let mut command = Command::new("chroot");
        command.arg(root);
        command.args(emulator.as_ref().map(|_| "/emulator"));
        command.args(words);
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

/// Packs the site into the program that `programs` have for it.
fn pack(packed: &Path, target: Target, programs: &Programs, site: &Path) -> Outcome {
    let mut pack = target.command(&programs.plimsoll);
    pack.arg("pack").arg(site);
    pack.arg("--program").arg(&programs.packed);
    step::run(site, pack.arg("-o").arg(packed))
}

/// A folder with a page that [`request`] expects.
fn site(folder: &Path) -> Result<PathBuf, Failure> {
    let site = folder.join("site");
    make(&site)?;
    let page = site.join("index.html");
    fs::write(&page, "hello\n").map_err(|error| cannot("write", &page, &error))?;
    Ok(site)
}

/// Serves a page with `program` and requests it, as README has it.
fn serve_and_request(site: &Path, target: Target, program: &Path) -> Outcome {
    let [port] = free_ports()?;
    let address = format!("127.0.0.1:{port}");
    let mut serve = target.command(program);
    serve.arg("serve").arg(site).args(["--listen", &address]);
    let _server = Server::start(&mut serve)?;
    wait_for(port)?;
    step::run(site, target.command(program).args(request(&address)))
}

/// It holds what the docs list, and its program prints the version.
fn archive(folder: &Path, out: &Path, release: &Release) -> Result<Duration, Failure> {
    make(folder)?;
    let site = site(folder)?;
    let name = release.name();
    let mut tar = Command::new("tar");
    tar.arg("-xzf").arg(out.join(format!("{name}.tar.gz")));
    let began = now();
    step::run(folder, tar.arg("-C").arg(folder))?;
    let unpacked = folder.join(&name);
    let program = unpacked.join("plimsoll");
    serve_and_request(&site, release.target, &program)?;
    let took = began.elapsed();
    for file in ["man/plimsoll.1", "completions/bash/plimsoll", "LICENSE-MIT"] {
        exists(&unpacked.join(file))?;
    }
    prints_version(&mut release.target.command(&program), release)?;
    Ok(took)
}

/// dpkg installs and removes it, in a root of its own.
fn debian(root: &Path, out: &Path, release: &Release) -> Result<Duration, Failure> {
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
        release.target.architecture()
    ));
    let dpkg = |words: &[&str]| {
        let mut command = Command::new("dpkg");
        command
            .arg("--root")
            .arg(root)
            .args([
                "--force-not-root",
                "--force-script-chrootless",
                "--force-architecture",
                "--log=/dev/null",
            ])
            .args(words);
        command
    };
    let began = now();
    step::run(root, dpkg(&["--install"]).arg(&file))?;
    let site = site(root)?;
    let program = root.join("usr/bin/plimsoll");
    serve_and_request(&site, release.target, &program)?;
    let took = began.elapsed();
    fs::remove_dir_all(&site).map_err(|error| cannot("remove", &site, &error))?;
    for file in [
        "usr/share/man/man1/plimsoll.1.gz",
        "usr/share/bash-completion/completions/plimsoll",
        "usr/lib/systemd/system/plimsoll-gateway.service",
        "etc/plimsoll/gateway.toml",
    ] {
        exists(&root.join(file))?;
    }
    prints_version(&mut release.target.command(&program), release)?;
    step::run(root, &mut dpkg(&["--purge", "plimsoll"]))?;
    let left = below(root)?;
    let left: Vec<_> = left
        .iter()
        .filter(|file| !file.starts_with("var/lib/dpkg"))
        .collect();
    if left.is_empty() {
        Ok(took)
    } else {
        Err(format!("after `dpkg --purge` there are still {left:?}").into())
    }
}

/// podman with an image, in a storage of the check's own.
struct Podman<'a> {
    folder: &'a Path,
    /// The image.
    id: String,
}

impl<'a> Podman<'a> {
    /// Without an image.
    fn new(folder: &'a Path) -> Self {
        Self {
            folder,
            id: String::new(),
        }
    }

    fn load(folder: &'a Path, archive: &Path) -> Result<Self, Failure> {
        let mut podman = Self::new(folder);
        podman.id = podman.pull(archive, &[])?;
        Ok(podman)
    }

    fn pull(&self, archive: &Path, options: &[&str]) -> Result<String, Failure> {
        let source = format!("oci-archive:{}", archive.display());
        let mut pull = self.command(&["pull", "--quiet"]);
        let id = step::output(self.folder, pull.args(options).arg(source))?;
        Ok(id.trim().to_owned())
    }

    /// The archive has an image for the processor of `target`.
    fn has(&self, target: Target, archive: &Path) -> Outcome {
        let id = self.pull(archive, &["--arch", target.architecture()])?;
        let words = ["image", "inspect", "--format", "{{.Architecture}}", &id];
        let found = step::output(self.folder, &mut self.command(&words))?;
        if found.trim() == target.architecture() {
            Ok(())
        } else {
            let wanted = target.architecture();
            Err(format!("the image for {wanted} is one for {}", found.trim()).into())
        }
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new("podman");
        command
            .arg("--root")
            .arg(self.folder.join("storage"))
            .arg("--runroot")
            .arg(run_root())
            .args(["--storage-driver", "vfs", "--cgroup-manager", "cgroupfs"])
            .args(["--runtime", "runc"])
            .args(words);
        command
    }

    /// Runs the image with a root that is read-only and without capabilities, as its own user.
    fn run(&self, options: &[&str]) -> Command {
        let mut command = self.command(&["run", "--rm", "--read-only", "--cap-drop=all"]);
        command
            .args(["--network=host", "--security-opt=no-new-privileges"])
            .args(LIMITS)
            .args(options)
            .arg(&self.id);
        command
    }

    /// Starts a server, which is removed with the value.
    fn start(
        &self,
        name: &str,
        mounts: &[String],
        words: &[String],
    ) -> Result<Running<'_>, Failure> {
        let name = format!("plimsoll-check-{name}-{}", std::process::id());
        let mut options = vec!["--detach", "--name", &name];
        for mount in mounts {
            options.extend(["--volume", mount]);
        }
        step::run(self.folder, self.run(&options).args(words))?;
        Ok(Running { podman: self, name })
    }
}

/// A container that is removed with the value.
struct Running<'a> {
    podman: &'a Podman<'a>,
    name: String,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let mut remove = self
            .podman
            .command(&["rm", "--force", "--time=5", &self.name]);
        // What could not be removed ends with its storage.
        step::run(self.podman.folder, &mut remove).ok();
    }
}

/// Where podman keeps what runs. It refuses paths of more than 50 characters, which those of a target directory may have.
fn run_root() -> PathBuf {
    std::env::temp_dir().join(format!("plimsoll-{}", std::process::id()))
}

/// podman runs it: a page is served and requested; then the servers of the compose file answer as it promises, and a packed site
/// is an image of its own.
fn image(root: &Path, folder: &Path, out: &Path, made: &[Made]) -> Checked {
    packages::install(root, &[PODMAN, RUNC])?;
    make(folder)?;
    let archive = out.join(image::name(&made[0].release));
    for Made { release, .. } in made {
        Podman::new(folder).has(release.target, &archive)?;
    }
    // Programs for other processors are run by the checks of their archives.
    let here = made.iter().find(|it| it.release.target.is_here());
    here.map(|here| image_of_here(root, folder, &archive, here))
        .transpose()
}

/// The image for this machine's processor.
fn image_of_here(
    root: &Path,
    folder: &Path,
    archive: &Path,
    Made { release, programs }: &Made,
) -> Result<Duration, Failure> {
    let site = site(folder)?;
    let began = now();
    let podman = Podman::load(folder, archive)?;
    let [port] = free_ports()?;
    let address = format!("127.0.0.1:{port}");
    let words = ["serve", "/srv", "--listen", &address].map(str::to_owned);
    let served = podman.start("serve", &[format!("{}:/srv:ro", site.display())], &words)?;
    wait_for(port)?;
    step::run(folder, podman.run(&[]).args(request(&address)))?;
    let took = began.elapsed();
    drop(served);
    prints_version(&mut podman.run(&[]), release)?;

    let composition = compose::read(root, folder)?;
    let started = composition
        .servers
        .iter()
        .map(|service| composed(&podman, service));
    let started = started.collect::<Result<Vec<_>, _>>()?;
    compose::expect_answers(root, &composition)?;
    drop(started);
    packed_image(&podman, &site, release.target, programs)?;
    Ok(took)
}

/// A server of the compose file.
fn composed<'a>(podman: &'a Podman<'a>, service: &Service) -> Result<Running<'a>, Failure> {
    let mounts = service.mounts.iter();
    let mounts: Vec<String> = mounts
        .map(|mount| format!("{}:{}:ro", mount.source.display(), mount.target))
        .collect();
    podman.start(&service.name, &mounts, &service.command)
}

/// A packed site alone in an image, as docs/pack.md has it.
fn packed_image(podman: &Podman<'_>, site: &Path, target: Target, programs: &Programs) -> Outcome {
    let context = podman.folder.join("context");
    make(&context)?;
    pack(&context.join("mysite"), target, programs, site)?;
    let containerfile = context.join("Containerfile");
    fs::write(&containerfile, CONTAINERFILE)
        .map_err(|error| cannot("write", &containerfile, &error))?;
    let mut build = podman.command(&["build", "--isolation=chroot", "--quiet", "."]);
    let id = step::output(&context, &mut build)?;
    let packed = Podman {
        folder: podman.folder,
        id: id.trim().to_owned(),
    };
    let [port] = free_ports()?;
    let address = format!("127.0.0.1:{port}");
    let words = ["--listen", &address].map(str::to_owned);
    let _served = packed.start("packed", &[], &words)?;
    wait_for(port)?;
    step::run(podman.folder, podman.run(&[]).args(request(&address)))
}

/// The image of a packed site; docs/pack.md shows it.
const CONTAINERFILE: &str = "\
FROM scratch
COPY mysite /mysite
USER 65532:65532
ENTRYPOINT [\"/mysite\"]
";

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_image_of_a_packed_site_is_that_of_its_document() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let document = fs::read_to_string(root.join("docs/pack.md")).unwrap();
        assert!(document.contains(&format!("```dockerfile\n{CONTAINERFILE}```")));
    }
}
