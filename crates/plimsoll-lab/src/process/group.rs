//! One command in a process group of its own.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use plimsoll_model::{Clock, CpuTime};
use plimsoll_wire::SystemClock;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};
use wait4::Wait4;

use super::pinning::pinned;
use super::tail::Tail;

/// Most of its standard output that is looked at, in bytes; a tool's summary comes last.
const STDOUT_LIMIT: usize = 1024 * 1024;

/// Most of what it complains that is shown, in bytes.
const COMPLAINT_LIMIT: usize = 2 * 1024;

/// How long a group may take to end after being asked to.
const GRACE: Duration = Duration::from_secs(3);

/// A started command and whatever it starts; dropping it ends them all.
#[derive(Debug)]
pub(crate) struct ProcessGroup {
    /// Gone once the process has been waited for.
    child: Option<Child>,
    pid: Pid,
    descriptor: OwnedFd,
    stdout: Tail,
    stderr: Tail,
}

/// A command that has ended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Finished {
    /// How it ended.
    pub(crate) status: ExitStatus,
    /// Time of the process and of all descendants that were waited for: exact, to the microsecond.
    pub(crate) cpu: CpuTime,
    /// Largest resident memory of any one of those processes, in bytes. A process starts out with
    /// the peak of the one that started it, so values up to our own peak say nothing.
    pub(crate) max_rss_bytes: u64,
}

/// Why a command could not be started.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// No such program.
    #[error("command not found: `{program}`")]
    NotFound {
        /// The first word of the command.
        program: String,
    },
    /// The system refused.
    #[error("cannot start `{program}`")]
    Refused {
        /// The first word of the command.
        program: String,
        /// What the system said.
        #[source]
        cause: io::Error,
    },
}

impl ProcessGroup {
    /// Starts `words` (program, arguments) bound to `cores`, with no standard input.
    pub(crate) fn spawn(words: &[String], cores: &[usize]) -> Result<Self, SpawnError> {
        let (program, arguments) = words.split_first().expect("a command has a first word");
        let refused = |cause: io::Error| {
            let program = program.clone();
            if cause.kind() == io::ErrorKind::NotFound {
                SpawnError::NotFound { program }
            } else {
                SpawnError::Refused { program, cause }
            }
        };
        let mut command = Command::new(program);
        command
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        let mut child = pinned(cores, || command.spawn()).map_err(refused)?;
        let pid = Pid::from_child(&child);
        let stdout = Tail::new(child.stdout.take().expect("is piped"), STDOUT_LIMIT);
        let stderr = Tail::new(child.stderr.take().expect("is piped"), COMPLAINT_LIMIT);
        match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(descriptor) => Ok(Self {
                child: Some(child),
                pid,
                descriptor,
                stdout,
                stderr,
            }),
            Err(error) => {
                // Not waited for yet, so the number cannot belong to anyone else.
                kill_process_group(pid, Signal::KILL).ok();
                child.wait().ok();
                Err(refused(error.into()))
            }
        }
    }

    /// The process at the root.
    pub(crate) fn pid(&self) -> i32 {
        self.pid.as_raw_nonzero().get()
    }

    /// The last of what it wrote to its standard output.
    pub(crate) fn stdout(&self) -> String {
        self.stdout.text(STDOUT_LIMIT).0
    }

    /// The last of what it wrote to its standard error, or to its standard output if that is empty:
    /// some tools complain there.
    pub(crate) fn complaint(&self) -> String {
        let (text, cut) = self.stderr.text(COMPLAINT_LIMIT);
        let (text, cut) = if text.trim().is_empty() {
            self.stdout.text(COMPLAINT_LIMIT)
        } else {
            (text, cut)
        };
        if cut { format!("…{text}") } else { text }
    }

    /// Waits at most `timeout` for it to end; `None` if it still runs.
    pub(crate) fn wait(&mut self, timeout: Duration) -> io::Result<Option<Finished>> {
        if !self.has_ended(timeout)? {
            return Ok(None);
        }
        self.reap().map(Some)
    }

    /// Ends the group: asks, waits a moment, then forces.
    pub(crate) fn stop(&mut self) -> io::Result<()> {
        if self.child.is_none() {
            return Ok(());
        }
        self.signal(Signal::TERM);
        let clock = SystemClock;
        let deadline = clock.now() + GRACE;
        loop {
            let left = deadline.saturating_duration_since(clock.now());
            if self.has_ended(left)? || left.is_zero() {
                break;
            }
        }
        self.reap().map(|_| ())
    }

    /// Whether it ends within `timeout`; a signal to us may cut the waiting short.
    fn has_ended(&self, timeout: Duration) -> io::Result<bool> {
        let timeout = Timespec::try_from(timeout).map_err(io::Error::other)?;
        let mut wanted = [PollFd::new(&self.descriptor, PollFlags::IN)];
        match poll(&mut wanted, Some(&timeout)) {
            Ok(ready) => Ok(ready > 0),
            Err(rustix::io::Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Forces whatever is left of the group to end, then collects the process.
    ///
    /// In this order, because the group's number is ours only until the process is collected.
    fn reap(&mut self) -> io::Result<Finished> {
        self.signal(Signal::KILL);
        let child = self
            .child
            .take()
            .ok_or_else(|| io::Error::other("the process was collected before"))?;
        let used = child.wait4()?;
        Ok(Finished {
            status: used.status,
            cpu: CpuTime {
                user: used.rusage.utime,
                system: used.rusage.stime,
            },
            max_rss_bytes: used.rusage.maxrss,
        })
    }

    fn signal(&self, signal: Signal) {
        // A group whose processes have all ended cannot be signalled, which is what is wanted.
        kill_process_group(self.pid, signal).ok();
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        // Nothing can be reported from here; `stop` is called where it matters.
        self.stop().ok();
    }
}

#[cfg(test)]
mod tests;
