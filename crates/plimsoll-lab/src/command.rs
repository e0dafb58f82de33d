//! One command of an experiment: its output kept within bounds, and ended politely when dropped.

use std::io;
use std::time::Duration;

use plimsoll_observe::{AttachError, ProcessTree};
use plimsoll_wire::process::{Finished, Output, Process, ProcessSpec, SpawnError};

use crate::cgroup::Group;

/// Bytes of standard output that are read, the last ones; a tool's summary comes last and has a few KiB.
const STDOUT_LIMIT: usize = 1024 * 1024;

/// Most of what it complains that is shown, in bytes.
const COMPLAINT_LIMIT: usize = 2 * 1024;

/// How long it may take to end after the signal: wrk and k6 finish their summaries within a second.
const GRACE: Duration = Duration::from_secs(3);

/// A started command and whatever it starts; dropping it ends them all.
#[derive(Debug)]
pub(crate) struct Command {
    process: Process,
}

impl Command {
    /// Starts `words` (program, arguments) bound to `cores`, with no standard input.
    pub(crate) fn start(words: &[String], cores: &[usize]) -> Result<Self, SpawnError> {
        Self::start_in(None, words, cores)
    }

    /// The same, within the bounds of a group from its first instruction.
    pub(crate) fn start_in(
        group: Option<&Group>,
        words: &[String],
        cores: &[usize],
    ) -> Result<Self, SpawnError> {
        let process = Process::spawn(&ProcessSpec {
            argv: group.map_or_else(|| words.to_vec(), |group| group.entering(words)),
            cores: cores.to_vec(),
            stdout: Output::CapturedUpTo(STDOUT_LIMIT),
            stderr: Output::Captured,
            ..ProcessSpec::default()
        })?;
        Ok(Self { process })
    }

    /// The processes it consists of, to be sampled.
    pub(crate) fn tree(&self) -> Result<ProcessTree, AttachError> {
        ProcessTree::attach(self.process.id())
    }

    /// The last of what it wrote to its standard output.
    pub(crate) fn stdout(&self) -> String {
        self.process.stdout_tail()
    }

    /// The last of what it wrote to its standard error, or to its standard output if that is empty:
    /// some tools complain there.
    pub(crate) fn complaint(&self) -> String {
        let stderr = self.process.stderr_tail();
        if stderr.trim().is_empty() {
            end_of(&self.stdout(), COMPLAINT_LIMIT)
        } else {
            end_of(&stderr, COMPLAINT_LIMIT)
        }
    }

    /// Waits at most `timeout` for it to end; `None` if it still runs.
    pub(crate) fn wait(&mut self, timeout: Duration) -> io::Result<Option<Finished>> {
        self.process.finish(timeout)
    }
}

impl Drop for Command {
    fn drop(&mut self) {
        self.process.end(GRACE);
    }
}

/// The last `limit` bytes of `text`, marked if that is not all of it.
fn end_of(text: &str, limit: usize) -> String {
    let start = text.ceil_char_boundary(text.len().saturating_sub(limit));
    match text.get(start..) {
        Some(end) if start > 0 => format!("…{end}"),
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaint(script: &str) -> String {
        let words = ["sh", "-c", script].map(str::to_owned);
        let mut command = Command::start(&words, &[]).unwrap();
        let finished = command.wait(Duration::from_secs(20)).unwrap();
        assert!(finished.is_some(), "ends by itself");
        command.complaint()
    }

    #[test]
    fn a_complaint_on_standard_output_is_heard() {
        assert_eq!(complaint("echo Usage: tool"), "Usage: tool\n");
        assert_eq!(complaint("echo out; echo err >&2"), "err\n");
    }

    #[test]
    fn a_long_complaint_is_marked_as_cut() {
        let end = complaint("i=0; while [ $i -lt 999 ]; do i=$((i+1)); echo line $i; done >&2");
        assert!(end.starts_with('…') && end.ends_with("line 999\n"), "{end}");
        assert!(end.len() <= COMPLAINT_LIMIT + '…'.len_utf8());
        assert_eq!(end_of("aöö", 3), "…ö");
    }
}
