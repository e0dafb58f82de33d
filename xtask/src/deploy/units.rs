//! Unit files of systemd, the confinement of their services, and the messages of these to it.

use std::fs;
use std::io;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::{cannot, read, write};
use crate::server::Server;
use crate::step;
use crate::{Failure, Outcome};

/// `systemd-analyze security` rates exposure from 0 to 10.
const EXPOSURE_LIMIT: f64 = 2.0;

/// How long a service may take for a message, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// Checks each unit, and starts its command.
pub(super) fn check(root: &Path, program: &Path, directory: &Path) -> Outcome {
    let folder = root.join("packaging/systemd");
    let entries = fs::read_dir(&folder).map_err(|error| cannot("list", &folder, &error))?;
    let mut units: Vec<_> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|file| file.extension().is_some_and(|it| it == "service"))
        .collect();
    units.sort();
    if units.is_empty() {
        return Err(format!("{} has no units", folder.display()).into());
    }
    for unit in units {
        let text = read(&unit)?;
        let name = unit.file_name().unwrap_or_default();
        analyze(root, &text, program, &directory.join(name))?;
        let command = text
            .lines()
            .find_map(|line| line.strip_prefix("ExecStart="))
            .ok_or_else(|| format!("{} has no ExecStart", unit.display()))?;
        notifies(root, program, &words(root, command, directory)?)
            .map_err(|Failure(message)| format!("{}: {message}", unit.display()))?;
    }
    Ok(())
}

/// Both checks of `systemd-analyze`, of a copy that names a program which is there.
fn analyze(root: &Path, text: &str, program: &Path, copy: &Path) -> Outcome {
    let program = program.display().to_string();
    write(copy, &text.replace("/usr/bin/plimsoll", &program))?;
    let mut verify = Command::new("systemd-analyze");
    step::run(root, verify.args(["verify", "--man=no"]).arg(copy))?;
    let mut security = Command::new("systemd-analyze");
    security
        .args(["security", "--offline=true", "--no-pager"])
        .arg(copy);
    let report = step::output(root, &mut security)?;
    let exposure = exposure(&report).ok_or("systemd-analyze security printed no exposure level")?;
    println!("{}: exposure {exposure}", copy.display());
    if exposure < EXPOSURE_LIMIT {
        Ok(())
    } else {
        let name = copy.file_name().unwrap_or_default().display();
        Err(format!("{name}: exposure {exposure} is not below {EXPOSURE_LIMIT}").into())
    }
}

/// The figure of the last line: `→ Overall exposure level for x.service: 1.7 OK`.
fn exposure(report: &str) -> Option<f64> {
    let line = report
        .lines()
        .find(|line| line.contains("exposure level"))?;
    line.rsplit_once(": ")?.1.split(' ').next()?.parse().ok()
}

/// The arguments of a unit's command, with copies of its files whose addresses and folders are there.
fn words(root: &Path, command: &str, directory: &Path) -> Result<Vec<String>, Failure> {
    let mut words = command.split(' ').map(str::to_owned);
    if words.next().as_deref() != Some("/usr/bin/plimsoll") {
        return Err(format!("`{command}` does not start /usr/bin/plimsoll").into());
    }
    let local = |text: &str| {
        let folder = directory.display().to_string();
        text.replace("/srv/", &format!("{folder}/"))
            .replace("/var/lib/plimsoll-monitor/", &format!("{folder}/"))
    };
    for folder in ["www", "mock"] {
        let folder = directory.join(folder);
        fs::create_dir_all(&folder).map_err(|error| cannot("make", &folder, &error))?;
    }
    words
        .map(|word| {
            if let Some(name) = word.strip_prefix("/etc/plimsoll/") {
                let text = read(&root.join("packaging/etc").join(name))?;
                let copy = directory.join(name);
                write(&copy, &on_free_ports(&local(&text)))?;
                Ok(copy.display().to_string())
            } else if word.starts_with("127.0.0.1:") {
                Ok("127.0.0.1:0".to_owned())
            } else {
                Ok(word)
            }
        })
        .collect()
}

/// A configuration that listens on the loopback, wherever there is room.
fn on_free_ports(text: &str) -> String {
    let lines = text.lines().map(|line| match line.split_once(" = ") {
        Some(("address", _)) => "address = \"127.0.0.1:0\"",
        _ => line,
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Starts the service as systemd does, and waits for its messages.
fn notifies(root: &Path, program: &Path, words: &[String]) -> Outcome {
    let path = std::env::temp_dir().join(format!("plimsoll-notify-{}", std::process::id()));
    fs::remove_file(&path).ok();
    let socket = UnixDatagram::bind(&path).map_err(|error| cannot("make", &path, &error))?;
    let outcome = converse(root, program, words, &socket, &path);
    fs::remove_file(&path).ok();
    outcome
}

fn converse(
    root: &Path,
    program: &Path,
    words: &[String],
    socket: &UnixDatagram,
    path: &Path,
) -> Outcome {
    let text = |error: io::Error| Failure(error.to_string());
    socket.set_read_timeout(Some(PATIENCE)).map_err(text)?;
    let mut command = Command::new(program);
    command
        .args(words)
        .current_dir(root)
        .env("NOTIFY_SOCKET", path)
        .env("WATCHDOG_USEC", "1000000")
        .stdout(Stdio::null());
    let mut server = Server::start(&mut command)?;
    hear(socket, "READY=1")?;
    confined(&server)?;
    hear(socket, "WATCHDOG=1")?;
    signal(&server, "-HUP")?;
    hear(socket, "RELOADING=1")?;
    hear(socket, "READY=1")?;
    signal(&server, "-TERM")?;
    hear(socket, "STOPPING=1")?;
    let status = server.0.wait().map_err(text)?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("it ended with {status} after SIGTERM").into())
    }
}

/// The service filters its system calls, and so does nothing that it could start.
fn confined(server: &Server) -> Outcome {
    let file = format!("/proc/{}/status", server.0.id());
    let status = read(Path::new(&file))?;
    let has = |line: &str| status.lines().any(|it| it == line);
    if has("Seccomp:\t2") && has("NoNewPrivs:\t1") {
        Ok(())
    } else {
        Err("it runs without its sandbox".into())
    }
}

fn signal(server: &Server, name: &str) -> Outcome {
    let mut kill = Command::new("kill");
    kill.arg(name).arg(server.0.id().to_string());
    let status = kill.status().map_err(|error| error.to_string())?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("`{}` failed: the service has ended", step::shown(&kill)).into())
    }
}

/// Waits for a message with the line `expected`; fails after 120 others, or if none comes in time.
fn hear(socket: &UnixDatagram, expected: &str) -> Outcome {
    let mut buffer = [0; 4096];
    for _ in 0..120 {
        let length = socket
            .recv(&mut buffer)
            .map_err(|error| format!("no message {expected} in time: {error}"))?;
        let message = String::from_utf8_lossy(buffer.get(..length).unwrap_or_default());
        if message.lines().any(|line| line == expected) {
            return Ok(());
        }
    }
    Err(format!("messages, but no {expected}").into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exposure_is_read() {
        let report = "✓ x\n\n→ Overall exposure level for plimsoll-site.service: 1.7 OK 🙂\n";
        assert_eq!(exposure(report), Some(1.7));
        assert_eq!(exposure("no units"), None);
    }

    #[test]
    fn addresses_become_free_ports() {
        let text = "[[listen]]\naddress = \":80\"\n[[route]]\nproxy = \"app\"";
        assert_eq!(
            on_free_ports(text),
            "[[listen]]\naddress = \"127.0.0.1:0\"\n[[route]]\nproxy = \"app\""
        );
    }
}
