//! The command of a tool: this program again, as a process of its own.
//!
//! Its flags, messages and JSON are those that users have; it can be confined and ended from outside; and none of its threads,
//! signals and streams touch those of the protocol.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use plimsoll_model::Clock as _;
use plimsoll_wire::SystemClock;
use plimsoll_wire::process::{Output, Process, ProcessSpec};
use tokio::sync::watch;

use super::bounds::Bounds;
use crate::confined;
use crate::own_file::own_file;
use crate::temporary_folder::{Purpose, TemporaryFolder};

/// Standard output that is kept. Results are some hundred kilobytes: those of long runs with many requests.
const MOST_OUTPUT: usize = 8 << 20;

/// Standard error that is kept: some hundred problems of a configuration.
const MOST_ERRORS: usize = 128 << 10;

/// Between two looks at what ends a run.
const LOOK: Duration = Duration::from_millis(50);

/// Between two messages of progress.
const PROGRESS: Duration = Duration::from_secs(1);

/// From an interrupt to the end: a run completes the requests in flight and prints its summary.
const INTERRUPTED: Duration = Duration::from_secs(8);

/// The same for a run whose result is not read.
const CANCELLED: Duration = Duration::from_secs(1);

/// The command of a tool, ready to start.
#[derive(Debug)]
pub(super) struct Program {
    /// The command, and its flags.
    pub(super) words: Vec<String>,
    /// What is no flag, whatever it begins with.
    pub(super) positional: Vec<String>,
    pub(super) stdin: Vec<u8>,
    /// Whether it reads files that the client names, or that these name.
    pub(super) reads_files: bool,
    /// Whether it starts this program again.
    pub(super) starts_itself: bool,
    /// This flag takes the file for its result.
    pub(super) result_flag: Option<&'static str>,
    /// The time after which it is interrupted.
    pub(super) limit: Duration,
    /// The time that it takes, if that is known.
    pub(super) expected: Option<Duration>,
}

/// The file with the result, in the scratch folder.
const RESULT: &str = "result.json";

/// The end of a command.
#[derive(Debug)]
pub(super) struct Finished {
    /// Absent if a signal ended it.
    pub(super) code: Option<i32>,
    pub(super) stdout: String,
    pub(super) stderr: String,
    /// The content of its result file.
    pub(super) result: Option<String>,
    /// Whether it was interrupted because it took too long.
    pub(super) was_late: bool,
}

/// How far a command is.
#[derive(Debug, Clone, Default)]
pub(super) struct Progress {
    pub(super) passed: Duration,
    /// The last line of its standard error.
    pub(super) line: String,
}

/// Runs a command to its end, on the calling thread.
///
/// - `cancelled`: ends it if set.
/// - `progress`: gets how far it is, once a second.
pub(super) fn run(
    program: &Program,
    bounds: &Bounds,
    cancelled: &AtomicBool,
    progress: &watch::Sender<Progress>,
) -> Result<Finished, String> {
    let cannot_start = |error: &dyn std::fmt::Display| format!("cannot start the command: {error}");
    let own = own_file().map_err(|error| cannot_start(&error))?;
    let scratch = program
        .result_flag
        .map(|_| TemporaryFolder::new(Purpose::Tool))
        .transpose();
    let scratch = scratch.map_err(|error| format!("cannot make a scratch folder: {error}"))?;
    let scratch = scratch.as_ref().map(TemporaryFolder::path);
    let mut process = Process::spawn(&spec(program, bounds, &own, scratch))
        .map_err(|error| cannot_start(&error))?;
    let begin = SystemClock.now();
    let (mut was_late, mut shown) = (false, Duration::ZERO);
    loop {
        let ended = process.finish(LOOK);
        if ended
            .map_err(|error| format!("cannot wait for the command: {error}"))?
            .is_some()
        {
            break;
        }
        let passed = SystemClock.now().saturating_duration_since(begin);
        if cancelled.load(Ordering::Acquire) {
            process.interrupt();
            process.wait(CANCELLED);
            process.end(CANCELLED);
            break;
        }
        if passed > program.limit {
            was_late = true;
            process.interrupt();
            process.wait(INTERRUPTED);
            process.end(CANCELLED);
            break;
        }
        if passed.saturating_sub(shown) >= PROGRESS {
            shown = passed;
            let stderr = process.stderr_tail();
            let line = stderr.lines().next_back().unwrap_or_default().to_owned();
            progress.send_replace(Progress { passed, line });
        }
    }
    let code = process
        .wait(Duration::ZERO)
        .and_then(|status| status.code());
    let result = scratch.and_then(|folder| {
        let file = folder.join(RESULT);
        let is_small = fs::metadata(&file).ok()?.len() <= MOST_OUTPUT as u64;
        is_small.then(|| fs::read_to_string(file).ok())?
    });
    Ok(Finished {
        code,
        stdout: process.stdout_tail(),
        stderr: process.stderr_tail(),
        result,
        was_late,
    })
}

fn spec(program: &Program, bounds: &Bounds, own: &Path, scratch: Option<&Path>) -> ProcessSpec {
    let mut argv = vec![own.to_string_lossy().into_owned()];
    argv.extend(program.words.iter().cloned());
    if let (Some(flag), Some(scratch)) = (program.result_flag, scratch) {
        argv.push(format!("{flag}={}", scratch.join(RESULT).display()));
    }
    if !program.positional.is_empty() {
        argv.push("--".to_owned());
        argv.extend(program.positional.iter().cloned());
    }
    let mut environment = bounds.environment.clone();
    if let Some(scratch) = scratch {
        // Archives are unpacked there.
        environment.push(("TMPDIR".to_owned(), scratch.to_string_lossy().into_owned()));
    }
    let confinement = bounds.confinement(
        scratch.map(PathBuf::from),
        program.starts_itself,
        program.reads_files,
    );
    environment.push((confined::VARIABLE.to_owned(), confinement.to_json()));
    ProcessSpec {
        argv,
        stdin: program.stdin.clone(),
        stdout: Output::CapturedUpTo(MOST_OUTPUT),
        stderr: Output::CapturedUpTo(MOST_ERRORS),
        environment: Some(environment),
        folder: Some(bounds.root.clone()),
        ..ProcessSpec::default()
    }
}

/// Ends a command when it is dropped, as the caller's future is when a client cancels a call.
#[derive(Debug, Default)]
pub(super) struct Canceller(pub(super) Arc<AtomicBool>);

impl Drop for Canceller {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}
