//! Scripts of others, such as the examples in k6's repository, run once by k6 and by plimsoll.
//!
//! Their servers are not ours, so neither responses nor counts are compared: only exit codes and how many exceptions are logged.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::{Failure, Outcome};

/// Seconds that a script gets; some are endless.
const SECONDS: &str = "30";

/// Parts of paths of scripts that are not run: browsers, and what needs programs beside it.
const LEFT_OUT: [&str; 2] = ["/browser/", "/docker-compose/"];

/// What became of a script.
#[derive(Debug, PartialEq, Eq)]
struct Ended {
    code: Option<i32>,
    exceptions: usize,
}

/// Runs every script below a folder, and prints what differs.
pub(super) fn run(folder: &Path, program: &Path, k6: &Path) -> Outcome {
    let mut scripts = Vec::new();
    gather(folder, &mut scripts)?;
    scripts.sort();
    let mut same = 0;
    for script in &scripts {
        let once = ["-i", "1", "-u", "1", "-q"];
        let mut theirs = limited(k6);
        theirs.arg("run").args(once).arg("--no-usage-report");
        let mut ours = limited(program);
        ours.arg("load").args(once);
        let theirs = end(&mut theirs, script, |line| line.contains("level=error"))?;
        let ours = end(&mut ours, script, |line| line.starts_with("ERRO"))?;
        // A failure at the start is printed otherwise.
        let is_same = theirs == ours || (theirs.code == ours.code && theirs.code != Some(0));
        if is_same {
            same += 1;
            continue;
        }
        let shown = script.strip_prefix(folder).unwrap_or(script).display();
        let of = |ended: &Ended| {
            let code = ended.code.map_or("none".to_owned(), |it| it.to_string());
            format!("exit {code}, {} exceptions", ended.exceptions)
        };
        println!(
            "differs {shown}: k6 {}; plimsoll {}",
            of(&theirs),
            of(&ours)
        );
    }
    println!("{} scripts, {same} with the same end", scripts.len());
    Ok(())
}

fn limited(program: &Path) -> Command {
    let mut command = Command::new("timeout");
    command.args(["--signal=KILL", SECONDS]).arg(program);
    command
}

fn end(
    command: &mut Command,
    script: &Path,
    is_exception: impl Fn(&str) -> bool,
) -> Result<Ended, Failure> {
    let folder = script.parent().unwrap_or(Path::new("."));
    let output = command
        .arg(script)
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("{}: {error}", script.display()))?;
    let text = String::from_utf8_lossy(&output.stderr);
    Ok(Ended {
        code: output.status.code(),
        exceptions: text.lines().filter(|line| is_exception(line)).count(),
    })
}

fn gather(folder: &Path, scripts: &mut Vec<PathBuf>) -> Result<(), Failure> {
    let unreadable = |error: std::io::Error| format!("cannot read {}: {error}", folder.display());
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let text = path.to_string_lossy();
        if path.is_dir() {
            gather(&path, scripts)?;
        } else if LEFT_OUT.iter().all(|part| !text.contains(part))
            && path.extension().is_some_and(|it| it == "js" || it == "ts")
        {
            scripts.push(path);
        }
    }
    Ok(())
}
