//! `cargo xtask h2spec`: the conformance suite of HTTP/2 against `plimsoll up`, strict, in the clear and
//! over TLS, as a server and as a gateway with that server behind it.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::bench::target_directory;
use crate::packages::{self, OPENSSL};
use crate::server::Server;
use crate::step::{self, cargo};
use crate::{Failure, Outcome};

/// The suite as a module of Go, which has to be installed.
const H2SPEC: &str = "github.com/summerwind/h2spec/cmd/h2spec@v2.2.1+incompatible";

/// Two listeners.
const CONFIGURATION: &str = r#"threads = 1
[[listen]]
address = "127.0.0.1:0"
[[listen]]
address = "127.0.0.1:0"
tls = [{ cert = "cert.pem", key = "key.pem" }]
[[route]]
respond = { file = "content.txt" }
"#;

/// The same with another server behind it.
const GATEWAY: &str = r#"threads = 1
[[listen]]
address = "127.0.0.1:0"
[[listen]]
address = "127.0.0.1:0"
tls = [{ cert = "cert.pem", key = "key.pem" }]
[[route]]
proxy = "http://127.0.0.1:{port}"
"#;

/// More than the first window of a stream, so that a stream is still open when the next frame comes.
const CONTENT_BYTES: usize = 200_000;

/// Runs the task.
pub(crate) fn run(root: &Path) -> Outcome {
    packages::install(root, &[OPENSSL])?;
    step::run(root, &mut cargo(&["build", "--locked"]))?;
    let target = target_directory(root)?;
    let h2spec = installed(root, &target)?;
    let directory = target.join(format!("h2spec-{}", std::process::id()));
    fs::create_dir_all(&directory).map_err(|error| error.to_string())?;
    let outcome = try_both(root, &target, &directory, &h2spec);
    // A leftover lies in the target directory.
    fs::remove_dir_all(&directory).ok();
    outcome
}

/// Where the suite lies, which is fetched if it is missing.
fn installed(root: &Path, target: &Path) -> Result<PathBuf, Failure> {
    let folder = target.join("peers/bin");
    if let Some(program) = packages::find("h2spec", std::slice::from_ref(&folder)) {
        return Ok(program);
    }
    let go = packages::find("go", &[PathBuf::from("/usr/local/go/bin")]);
    let go = go.ok_or("h2spec is a program in Go, which is not installed")?;
    let mut install = Command::new(go);
    install
        .args(["install", H2SPEC])
        .env("GOBIN", &folder)
        .env("GOFLAGS", "-modcacherw");
    step::run(root, &mut install)?;
    Ok(folder.join("h2spec"))
}

fn try_both(root: &Path, target: &Path, directory: &Path, h2spec: &Path) -> Outcome {
    let certificate = [
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
        "-days",
        "2",
        "-subj",
        "/CN=localhost",
        "-keyout",
        "key.pem",
        "-out",
        "cert.pem",
    ];
    step::output(directory, Command::new("openssl").args(certificate))?;
    let content = "x".repeat(CONTENT_BYTES);
    fs::write(directory.join("content.txt"), content).map_err(|error| error.to_string())?;
    let program = target.join("debug/plimsoll");
    let (_server, [clear, tls]) = serve(&program, directory, "plimsoll.toml", CONFIGURATION)?;
    let text = GATEWAY.replace("{port}", &clear);
    let (_gateway, gateway) = serve(&program, directory, "gateway.toml", &text)?;
    let suite = |port: &str, more: &[&str]| {
        let mut command = Command::new(h2spec);
        command
            .args(["-S", "-h", "127.0.0.1", "-p", port])
            .args(more);
        step::run(root, &mut command)
    };
    let is_tls = ["-t", "-k"];
    let outcomes = [
        suite(&clear, &[]),
        suite(&tls, &is_tls),
        suite(&gateway[0], &[]),
        suite(&gateway[1], &is_tls),
    ];
    outcomes.into_iter().collect()
}

/// Serves a configuration with two listeners; returns their ports.
fn serve(
    program: &Path,
    directory: &Path,
    name: &str,
    text: &str,
) -> Result<(Server, [String; 2]), Failure> {
    let file = directory.join(name);
    fs::write(&file, text).map_err(|error| error.to_string())?;
    let mut command = Command::new(program);
    command.arg("up").arg(&file).stdout(Stdio::piped());
    let mut server = Server::start(&mut command)?;
    let stdout = server.0.stdout.take().ok_or("the server has no output")?;
    let ports: Vec<String> = BufReader::new(stdout)
        .lines()
        .map_while(Result::ok)
        .take(2)
        .filter_map(|line| Some(line.trim_end_matches('/').rsplit_once(':')?.1.to_owned()))
        .collect();
    let ports = ports
        .try_into()
        .map_err(|_| "the server does not listen".to_owned())?;
    Ok((server, ports))
}
