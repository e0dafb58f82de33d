//! `cargo xtask gatus`: configurations of Gatus, on plimsoll and on Gatus.
//!
//! The examples of Gatus's own repository are loaded by `plimsoll monitor --check`. A configuration whose conditions pass,
//! fail, and pass by accident is run by both, against a server of this task; each endpoint must come to the same verdict,
//! and each condition and each suite too.

mod suites;

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::bench::{GATUS, free_ports, go, target_directory};
use crate::packages;
use crate::server::Server;
use crate::step;
use crate::{Failure, Outcome};

/// Examples that plimsoll refuses, with what it says: they need what it does not have.
const REFUSED: [(&str, &str); 1] = [
    // Gatus too needs the files that this example mounts.
    ("docker-compose-mtls", "/certs/client.crt"),
];

/// Verdicts of both come within so many looks.
const LOOKS: u32 = 600;
const PAUSE: Duration = Duration::from_millis(100);

/// Where both have the verdicts of endpoints.
const STATUSES: &str = "/api/v1/endpoints/statuses?pageSize=100";

/// Conditions against an answer of `{"status":"UP","name":"john","data":[{"id":1}],"n":12}`.
const CONDITIONS: &[&str] = &[
    "[STATUS] == 200",
    "[STATUS] == 201",
    "[STATUS] < 300",
    "[STATUS] == any(200, 429)",
    "[STATUS] == any(201, 429)",
    "[STATUS] != 500",
    "[BODY].status == UP",
    "[BODY].status == DOWN",
    "[BODY].name == pat(*oh*)",
    "[BODY].name == pat(*ah*)",
    "[BODY].name != pat(*ah*)",
    "len([BODY].data) == 1",
    "len([BODY].data) > 1",
    "len([BODY].name) == 4",
    "has([BODY].data) == true",
    "has([BODY].none) == false",
    "has([BODY].none) == true",
    "[BODY].data[0].id == 1",
    "[BODY].data[1].id == 1",
    "[BODY].n > 11",
    "[BODY].n > 12",
    "[BODY].none != 1",
    "[BODY].none == 1",
    "[BODY] == pat(*john*)",
    "[CONNECTED] == true",
    "[RESPONSE_TIME] < 30000",
    // Both sides, and what each placeholder becomes.
    "200 == [STATUS]",
    "[STATUS] >= 200",
    "[STATUS] <= 199",
    "[STATUS] == pat(2*)",
    "[IP] == 127.0.0.1",
    "[IP] == pat(127.*)",
    "[CONNECTED] != false",
    "[RESPONSE_TIME] < 30s",
    "[RESPONSE_TIME] > -1",
    "[DNS_RCODE] == NOERROR",
    "[CERTIFICATE_EXPIRATION] > 1h",
    "[BODY].name == any(john, jane)",
    "[BODY].name == any(pat(j*), x)",
    "[BODY].name != any(jane, joan)",
    "[BODY].status == up",
    "[BODY].data[0].id > 0",
    "[BODY].data[5].id == 1",
    "[BODY].data[0].id[0] == 1",
    "[BODY].name[0] == j",
    "[BODY].n == 12.0",
    "[BODY].n < 13.5",
    "[BODY].n >= 12",
    "len([BODY].none) == 0",
    "len([BODY].n) == 2",
    "len([BODY]) > 10",
    "has([BODY]) == true",
    "has([BODY].data[0]) == true",
    "has([BODY].data[9]) == false",
    // Those that pass or fail by accident.
    "[BODY].none > -1",
    "[BODY].none < 1",
    "[BODY].status > 0",
    "[BODY].status >= 0",
    "[UNKNOWN] == x",
    "[status] == 200",
    "[body].status == UP",
    "[STATUS] == 200 == 201",
    "one == one",
    "one != two",
];

const ANSWER: &str = r#"{"status":"UP","name":"john","data":[{"id":1}],"n":12}"#;

/// Runs the task.
pub(crate) fn run(root: &Path) -> Outcome {
    if packages::find("go", &[]).is_none() {
        return Err("Go is not installed".into());
    }
    step::run(
        root,
        &mut step::cargo(&["build", "--locked", "-p", "plimsoll"]),
    )?;
    let target = target_directory(root)?;
    let plimsoll = target.join("debug/plimsoll");
    let peers = target.join("peers");
    go(root, &peers, GATUS, "gatus")?;
    examples(root, &plimsoll)?;
    let directory = target.join(format!("gatus-{}", std::process::id()));
    fs::create_dir_all(&directory).map_err(|error| error.to_string())?;
    let outcome = verdicts(&plimsoll, &peers.join("bin/gatus"), &directory);
    // A leftover lies in the target directory.
    fs::remove_dir_all(&directory).ok();
    outcome
}

/// Loads the examples of Gatus's repository.
fn examples(root: &Path, plimsoll: &Path) -> Outcome {
    let mut download = Command::new("go");
    let (module, version) = GATUS;
    download.args(["mod", "download", "-json", &format!("{module}@{version}")]);
    let answer: Value = serde_json::from_str(&step::output(root, &mut download)?)
        .map_err(|error| error.to_string())?;
    let folder = answer["Dir"].as_str().ok_or("Go says no folder")?;
    let mut files = vec![Path::new(folder).join("config.yaml")];
    collect(&Path::new(folder).join(".examples"), &mut files);
    files.sort();
    let mut wrong = 0;
    for file in &files {
        let shown = file
            .strip_prefix(folder)
            .unwrap_or(file)
            .display()
            .to_string();
        let mut check = Command::new(plimsoll);
        check.arg("monitor").arg(file).arg("--check");
        let output = check.output().map_err(|error| error.to_string())?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let refused = REFUSED.iter().find(|(name, _)| shown.contains(name));
        let is_right = match refused {
            None => output.status.success(),
            Some((_, why)) => !output.status.success() && said.contains(why),
        };
        println!(
            "{} {shown}",
            if is_right {
                "as expected"
            } else {
                "WRONG      "
            }
        );
        if !is_right {
            println!("{said}");
            wrong += 1;
        }
    }
    match wrong {
        0 => Ok(()),
        _ => Err(format!("{wrong} of {} examples are not loaded", files.len()).into()),
    }
}

/// Configurations of Gatus below a folder; those of Kubernetes are inside other documents.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    for entry in entries {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.file_name().is_some_and(|name| name == "config.yaml") {
            files.push(path);
        }
    }
}

/// Runs the same configuration by both.
fn verdicts(plimsoll: &Path, gatus: &Path, directory: &Path) -> Outcome {
    let origin = origin()?;
    let [ours, theirs] = free_ports()?;
    let write = |name: &str, port: u16| {
        let file = directory.join(name);
        let written = fs::write(&file, configuration(origin, port));
        written.map(|()| file).map_err(|error| error.to_string())
    };
    let mut command = Command::new(plimsoll);
    command.arg("monitor").arg(write("ours.yaml", ours)?);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let _ours = Server::start(&mut command)?;
    let mut command = Command::new(gatus);
    command.env("GATUS_CONFIG_PATH", write("theirs.yaml", theirs)?);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let _theirs = Server::start(&mut command)?;
    let of_suites = (
        suites::read(ours, STATUSES)?,
        suites::read(theirs, "/api/v1/suites/statuses")?,
    );
    let (ours, theirs) = (read(ours)?, read(theirs)?);
    let mut differ = suites::differences(&of_suites.0, &of_suites.1);
    for (key, theirs) in &theirs {
        let ours = ours.get(key);
        if ours != Some(theirs) {
            differ += 1;
            println!("{key}: Gatus {theirs:?}, plimsoll {ours:?}");
        }
    }
    println!("{} conditions", theirs.len());
    match differ {
        0 => Ok(()),
        _ => Err(format!("{differ} verdicts differ").into()),
    }
}

fn configuration(origin: u16, port: u16) -> String {
    use std::fmt::Write as _;

    let mut text = format!(
        "web:\n  address: 127.0.0.1\n  port: {port}\nstorage:\n  type: memory\nendpoints:\n"
    );
    for (number, condition) in CONDITIONS.iter().enumerate() {
        let written = write!(
            text,
            "- name: c{number:02}\n  url: http://127.0.0.1:{origin}/\n  interval: 1s\n  conditions: ['{condition}']\n"
        );
        written.expect("writing to memory does not fail");
    }
    text + &suites::configuration(origin)
}

/// The verdict of each endpoint, and of its condition, once there are all.
fn read(port: u16) -> Result<BTreeMap<String, (bool, bool)>, Failure> {
    for _ in 0..LOOKS {
        let found = get(port, STATUSES).unwrap_or_default();
        let verdicts = found
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|endpoint| {
                let last = endpoint["results"].as_array()?.last()?;
                let condition = last["conditionResults"][0]["success"].as_bool()?;
                let key = endpoint["key"]
                    .as_str()
                    .filter(|key| key.starts_with("_c"))?;
                Some((key.to_owned(), (last["success"].as_bool()?, condition)))
            });
        let verdicts: BTreeMap<_, _> = verdicts.collect();
        if verdicts.len() == CONDITIONS.len() {
            return Ok(verdicts);
        }
        wait();
    }
    Err(format!("not every endpoint of port {port} has a result").into())
}

#[expect(clippy::disallowed_methods, reason = "a task waits for other programs")]
fn wait() {
    thread::sleep(PAUSE);
}

fn get(port: u16, path: &str) -> Option<Value> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    let request = format!("GET {path} HTTP/1.0\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = String::new();
    Read::by_ref(&mut stream)
        .take(16 << 20)
        .read_to_string(&mut answer)
        .ok()?;
    let (_, body) = answer.split_once("\r\n\r\n")?;
    serde_json::from_str(body).ok()
}

/// A server whose answers all conditions are about; ends with the task.
fn origin() -> Result<u16, Failure> {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(|error| error.to_string())?;
    let port = listener
        .local_addr()
        .map_err(|error| error.to_string())?
        .port();
    thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            thread::spawn(move || {
                let mut head = Vec::new();
                let mut buffer = [0; 1024];
                while !head.ends_with(b"\r\n\r\n") {
                    match stream.read(&mut buffer) {
                        Ok(0) | Err(_) => return,
                        Ok(read) => head.extend_from_slice(&buffer[..read]),
                    }
                }
                let length = ANSWER.len();
                let answer = format!(
                    "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{ANSWER}"
                );
                stream.write_all(answer.as_bytes()).ok();
            });
        }
    });
    Ok(port)
}
