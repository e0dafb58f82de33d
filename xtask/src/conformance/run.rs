//! One script, run by one of the programs.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::Case;
use crate::Failure;

/// What a run came to.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) exit: Option<i32>,
    /// Level and text of each line of the console, in order.
    pub(super) console: Vec<String>,
    /// The data of `handleSummary()`, or null.
    pub(super) summary: Value,
    /// All of standard error, for people.
    pub(super) stderr: String,
}

impl Run {
    pub(super) fn of_k6(
        k6: &Path,
        case: &Case,
        base: &str,
        directory: &Path,
    ) -> Result<Self, Failure> {
        let mut command = Command::new(k6);
        command
            .args([
                "run",
                "--log-format",
                "json",
                "--no-usage-report",
                "--quiet",
            ])
            .args(["--address", ""]);
        let (exit, stderr, summary) = perform(command, case, base, &directory.join("k6"))?;
        let mut console = Vec::new();
        for line in stderr.lines() {
            let line: Value = serde_json::from_str(line).unwrap_or_default();
            if line["source"] == "console" {
                let level = line["level"].as_str().unwrap_or_default();
                let text = line["msg"].as_str().unwrap_or_default();
                console.push(format!("{level} {text}"));
            }
        }
        Ok(Self {
            exit,
            console,
            summary,
            stderr,
        })
    }

    pub(super) fn of_plimsoll(
        program: &Path,
        case: &Case,
        base: &str,
        directory: &Path,
    ) -> Result<Self, Failure> {
        let mut command = Command::new(program);
        command.args(["load"]);
        let (exit, stderr, summary) = perform(command, case, base, &directory.join("plimsoll"))?;
        let mut console = Vec::new();
        for line in stderr.lines() {
            let Some(line) = line.strip_suffix("  source=console") else {
                continue;
            };
            let (head, text) = line.split_once("] ").unwrap_or((line, ""));
            let level = match head.split('[').next() {
                Some("WARN") => "warning",
                Some("ERRO") => "error",
                _ => "info",
            };
            console.push(format!("{level} {text}"));
        }
        Ok(Self {
            exit,
            console,
            summary,
            stderr,
        })
    }
}

/// Runs the script in a separate folder, with a `handleSummary()` that writes its data to a file there.
fn perform(
    mut command: Command,
    case: &Case,
    base: &str,
    directory: &Path,
) -> Result<(Option<i32>, String, Value), Failure> {
    fs::create_dir_all(directory).map_err(|error| error.to_string())?;
    let script = directory.join(format!("{}.{}", case.name, case.extension));
    let summary = directory.join("summary.json");
    let mut text = case.text.clone();
    if !text.contains("handleSummary") {
        let path = Value::from(summary.to_string_lossy());
        let function = "export function handleSummary(data)";
        let body = format!("{{ return {{ {path}: JSON.stringify(data) }}; }}");
        text.extend(["\n", function, " ", &body, "\n"]);
    }
    let failed = |error: std::io::Error| format!("{}: {error}", case.name);
    fs::write(&script, text).map_err(failed)?;
    command
        .args(["-e", &format!("BASE={base}")])
        .args(&case.flags)
        .arg(&script)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .current_dir(directory);
    let child = command.spawn().map_err(failed)?;
    if let Some(millis) = case.signal {
        thread::park_timeout(Duration::from_millis(millis));
        if let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
            kill_process(pid, Signal::INT).map_err(|error| error.to_string())?;
        }
    }
    let output = child.wait_with_output().map_err(failed)?;
    let written = fs::read_to_string(&summary).unwrap_or_default();
    // The next script writes to the same file.
    fs::remove_file(&summary).ok();
    Ok((
        output.status.code(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
        serde_json::from_str(&written).unwrap_or_default(),
    ))
}
