//! A server that an experiment needs: started, waited for until it answers.

pub(crate) mod probe;

use std::io;
use std::time::Duration;

use plimsoll_load::Interrupt;
use plimsoll_model::{Clock, masked_arguments, masked_text};
use plimsoll_observe::{AttachError, ProcessTree};
use plimsoll_wire::SystemClock;
use plimsoll_wire::process::SpawnError;
use url::Url;

use crate::cgroup::Group;
use crate::command::Command;
use crate::server::probe::ProbeError;

/// How long a server may take until it responds: a JVM with a large application takes 5 to 10 s.
const READY_WITHIN: Duration = Duration::from_secs(15);

/// Pause between two questions whether it answers.
const PAUSE: Duration = Duration::from_millis(20);

/// Why a server is not there.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// It did not start.
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    /// It ended before it answered.
    #[error(
        "the server `{command}` ended ({status}) before {url} answered; it must stay in the \
         foreground (nginx: `daemon off;`){stderr}"
    )]
    Ended {
        /// Its command line.
        command: String,
        /// Exit status.
        status: std::process::ExitStatus,
        /// The request.
        url: String,
        /// The end of what it wrote, on lines of its own, or nothing.
        stderr: String,
    },
    /// It runs but does not answer.
    #[error("the server `{command}` runs, but {url} did not answer within {} s{stderr}",
        READY_WITHIN.as_secs())]
    NeverReady {
        /// Its command line.
        command: String,
        /// The request.
        url: String,
        /// The error of the last attempt.
        #[source]
        last: ProbeError,
        /// The end of what it wrote, on lines of its own, or nothing.
        stderr: String,
    },
    /// Something answers already, before the server was started.
    #[error(
        "{url} answers although the server `{command}` has not been started; is another one running?"
    )]
    AlreadyThere {
        /// Its command line.
        command: String,
        /// The request.
        url: String,
    },
    /// The system failed us.
    #[error("cannot wait for the server `{command}`")]
    Wait {
        /// Its command line.
        command: String,
        /// The error of the system.
        #[source]
        cause: io::Error,
    },
    /// It serves, but its cost cannot be measured.
    #[error("cannot measure the server `{command}`")]
    Unobservable {
        /// Its command line.
        command: String,
        /// Why.
        #[source]
        cause: AttachError,
    },
    /// It ended while it was measured.
    #[error("the server `{command}` ended during the trial{stderr}")]
    EndedUnderLoad {
        /// Its command line.
        command: String,
        /// The end of what it wrote, on lines of its own, or nothing.
        stderr: String,
    },
    /// The user stopped it.
    #[error("interrupted")]
    Interrupted,
}

/// A server that answers; dropping it ends it.
#[derive(Debug)]
pub(crate) struct Running {
    command: Command,
    command_line: String,
    tree: Result<ProcessTree, AttachError>,
}

impl Running {
    /// Its processes, to be sampled, where the platform has /proc.
    pub(crate) fn tree(&mut self) -> Option<&mut ProcessTree> {
        self.tree.as_mut().ok()
    }

    /// The same, for those who follow it on their own.
    pub(crate) fn take_tree(&mut self) -> Option<ProcessTree> {
        self.command.tree().ok()
    }

    /// Whether its first process has ended.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.ends_within(Duration::ZERO)
    }

    /// Whether it ends within that time.
    pub(crate) fn ends_within(&mut self, timeout: Duration) -> bool {
        !matches!(self.command.wait(timeout), Ok(None))
    }

    /// The end of what it wrote, on lines of its own, or nothing.
    pub(crate) fn complaint(&self) -> String {
        on_own_lines(&self.command.complaint())
    }

    /// Why a trial has no cost.
    pub(crate) fn unmeasured(self) -> ServerError {
        match self.tree {
            Err(cause) => ServerError::Unobservable {
                command: self.command_line,
                cause,
            },
            Ok(_) => ServerError::EndedUnderLoad {
                stderr: on_own_lines(&self.command.complaint()),
                command: self.command_line,
            },
        }
    }
}

/// Starts `words` on `cores`, within the bounds of `group` if there is one, and waits until `url`
/// answers.
pub(crate) fn start(
    words: &[String],
    cores: &[usize],
    group: Option<&Group>,
    url: &Url,
    interrupt: &Interrupt,
) -> Result<Running, ServerError> {
    // Of one attempt; a server that is starting is asked again until its own limit.
    const ONE_ANSWER: Duration = Duration::from_secs(1);

    let command_line = masked_arguments(words.to_vec()).join(" ");
    let shown = masked_text(url.as_str()).into_owned();
    if probe::answers(url, ONE_ANSWER).is_ok() {
        return Err(ServerError::AlreadyThere {
            command: command_line,
            url: shown,
        });
    }
    let mut command = Command::start_in(group, words, cores)?;
    let clock = SystemClock;
    let deadline = clock.now() + READY_WITHIN;
    loop {
        if interrupt.is_set() {
            return Err(ServerError::Interrupted);
        }
        match command.wait(PAUSE) {
            Ok(None) => {}
            Ok(Some(finished)) => {
                return Err(ServerError::Ended {
                    command: command_line,
                    status: finished.status,
                    url: shown,
                    stderr: on_own_lines(&command.complaint()),
                });
            }
            Err(cause) => {
                return Err(ServerError::Wait {
                    command: command_line,
                    cause,
                });
            }
        }
        match probe::answers(url, ONE_ANSWER) {
            Ok(()) => break,
            Err(last) if clock.now() >= deadline => {
                return Err(ServerError::NeverReady {
                    command: command_line,
                    url: shown,
                    last,
                    stderr: on_own_lines(&command.complaint()),
                });
            }
            Err(_) => {}
        }
    }
    Ok(Running {
        tree: command.tree(),
        command,
        command_line,
    })
}

/// `text` below a message, or nothing if there is none.
pub(crate) fn on_own_lines(text: &str) -> String {
    let text = text.trim_end();
    if text.is_empty() {
        String::new()
    } else {
        format!("\n{text}")
    }
}
