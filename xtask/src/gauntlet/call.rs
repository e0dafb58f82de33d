//! One call of plimsoll, with what disturbs it.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::setup::{Disturbance, Load};
use crate::Failure;
use crate::clock::{now, wait};
use crate::control_group::ControlGroup;
use crate::server::Server;

/// No call takes longer than that.
const PATIENCE: Duration = Duration::from_secs(40);

/// What a call left.
pub(super) struct Called {
    pub(super) exit: Option<i32>,
    pub(super) terminal: String,
    pub(super) errors: String,
}

/// Why a set-up cannot be made on this machine.
pub(super) enum Unavailable {
    Here(&'static str),
    Failed(Failure),
}

impl<T: Into<Failure>> From<T> for Unavailable {
    fn from(failure: T) -> Self {
        Self::Failed(failure.into())
    }
}

/// Calls `plimsoll load` and waits until it ends.
///
/// - `folder`: an empty one; results go into its `out`.
pub(super) fn call(
    program: &Path,
    load: Load,
    disturbance: Disturbance,
    url: &str,
    port: u16,
    folder: &Path,
) -> Result<Called, Unavailable> {
    let mut command = match disturbance {
        Disturbance::Neighbour => pinned(program),
        _ => Command::new("chrt"),
    };
    if disturbance != Disturbance::Neighbour {
        // Servers may have priority; the generator has none.
        command.args(["--other", "0"]).arg(program);
    }
    write_files(url, folder)?;
    let step = ClockFile::new(disturbance, folder)?;
    if let Some(step) = &step {
        step.apply(&mut command);
    }
    command.arg("load").args(words(load, url, port, folder)?);
    command.arg("--out").arg(folder.join("out"));
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let group = match disturbance {
        Disturbance::Throttled(percent) => Some(
            ControlGroup::limited_to(percent)
                .ok_or(Unavailable::Here("no control group can be limited"))?,
        ),
        _ => None,
    };
    let neighbour = match disturbance {
        Disturbance::Neighbour => Some(busy()?),
        _ => None,
    };
    let child = command.spawn();
    let mut child = child.map_err(|error| format!("cannot start plimsoll: {error}"))?;
    if let Some(group) = &group {
        group.add(&child)?;
    }
    disturb(&child, disturbance, step.as_ref())?;
    let exit = finish(&mut child)?;
    drop((neighbour, group));
    Ok(Called {
        exit,
        terminal: read(child.stdout.take()),
        errors: read(child.stderr.take()),
    })
}

fn read(stream: Option<impl Read>) -> String {
    let mut text = String::new();
    // Text that is no UTF-8 would show as missing figures.
    stream.and_then(|mut stream| stream.read_to_string(&mut text).ok());
    text
}

/// Writes the files that flags name.
fn write_files(url: &str, folder: &Path) -> Result<(), Failure> {
    let rows: Vec<String> = (0..30).map(|row| format!("row-{row}")).collect();
    for (name, text) in [
        ("upload", "x".repeat(100_000)),
        ("urls", format!("{url}a\n{url}b\n{url}c\n")),
        (
            "places",
            format!("{url}a\n{url}b?row={{{{row}}}}\n{url}c\n"),
        ),
        ("rows.csv", format!("row\n{}\n", rows.join("\n"))),
    ] {
        fs::write(folder.join(name), text).map_err(|error| error.to_string())?;
    }
    Ok(())
}

fn words(load: Load, url: &str, port: u16, folder: &Path) -> Result<Vec<String>, Failure> {
    let fill = |text: &str| {
        text.replace("{url}", url)
            .replace("{port}", &port.to_string())
            .replace("{folder}", &folder.to_string_lossy())
    };
    match load {
        Load::Flags(flags) => {
            let mut words: Vec<String> = flags.split(' ').map(fill).collect();
            // By default there is one worker for each core.
            if !words.iter().any(|word| word == "-t") {
                words.extend(["-t".to_owned(), "1".to_owned()]);
            }
            if !flags.contains("http://") && !flags.contains("--urls") {
                words.push(url.to_owned());
            }
            Ok(words)
        }
        Load::Script(script) => {
            let path = folder.join("script.js");
            fs::write(&path, fill(script)).map_err(|error| error.to_string())?;
            Ok(vec![path.to_string_lossy().into_owned()])
        }
    }
}

fn disturb(
    child: &Child,
    disturbance: Disturbance,
    step: Option<&ClockFile>,
) -> Result<(), Failure> {
    let signal = |signal| {
        let pid = Pid::from_child(child);
        kill_process(pid, signal).map_err(|error| Failure::from(error.to_string()))
    };
    match disturbance {
        Disturbance::Stopped(after, time) => {
            wait(after);
            signal(Signal::STOP)?;
            wait(time);
            signal(Signal::CONT)
        }
        Disturbance::Interrupted(after) => {
            wait(after);
            signal(Signal::INT)
        }
        Disturbance::ClockStep(after) => {
            wait(after);
            step.map_or(Ok(()), |step| step.write("+3600"))
        }
        Disturbance::None | Disturbance::Neighbour | Disturbance::Throttled(_) => Ok(()),
    }
}

fn finish(child: &mut Child) -> Result<Option<i32>, Failure> {
    let end: Instant = now() + PATIENCE;
    loop {
        let status = child.try_wait().map_err(|error| error.to_string())?;
        if let Some(status) = status {
            return Ok(status.code());
        }
        if now() >= end {
            // It is the one that was started here.
            child.kill().ok();
            child.wait().ok();
            return Err("plimsoll did not end".into());
        }
        wait(Duration::from_millis(10));
    }
}

/// The program on the first core.
fn pinned(program: &Path) -> Command {
    let mut command = Command::new("taskset");
    command
        .args(["--cpu-list", "0", "chrt", "--other", "0"])
        .arg(program);
    command
}

/// A process that keeps the first core busy, until the value is dropped.
fn busy() -> Result<Server, Failure> {
    let mut command = Command::new("taskset");
    command.args(["--cpu-list", "0", "chrt", "--other", "0"]);
    command.args(["sh", "-c", "while :; do :; done"]);
    let child = command.spawn();
    Ok(Server(child.map_err(|error| {
        format!("cannot start a neighbour: {error}")
    })?))
}

/// The file from which libfaketime reads the time that the generator sees.
struct ClockFile {
    library: PathBuf,
    file: PathBuf,
}

impl ClockFile {
    fn new(disturbance: Disturbance, folder: &Path) -> Result<Option<Self>, Unavailable> {
        let Disturbance::ClockStep(_) = disturbance else {
            return Ok(None);
        };
        let places = [
            "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1",
            "/usr/lib/aarch64-linux-gnu/faketime/libfaketimeMT.so.1",
        ];
        let library = places
            .into_iter()
            .map(PathBuf::from)
            .find(|path| path.exists());
        let step = Self {
            library: library.ok_or(Unavailable::Here("libfaketime is not installed"))?,
            file: folder.join("clock"),
        };
        step.write("+0")?;
        Ok(Some(step))
    }

    fn apply(&self, command: &mut Command) {
        command
            .env("LD_PRELOAD", &self.library)
            .env("FAKETIME_TIMESTAMP_FILE", &self.file)
            .env("FAKETIME_NO_CACHE", "1")
            .env("DONT_FAKE_MONOTONIC", "1");
    }

    fn write(&self, offset: &str) -> Result<(), Failure> {
        fs::write(&self.file, offset).map_err(|error| error.to_string().into())
    }
}
