//! Problems as people read them: the flag, the reason, the fix.

use std::error::Error;

use plimsoll_model::with_causes;
use plimsoll_server::Notice;

use crate::exit::Exit;

/// A command that failed.
#[derive(Debug)]
pub(crate) struct Failed {
    pub(crate) exit: Exit,
    /// At least one.
    pub(crate) problems: Vec<Problem>,
}

impl Failed {
    /// The first problem, for callers with exit codes of their own.
    #[cfg(feature = "k6")]
    pub(crate) fn into_first(self) -> Problem {
        let mut problems = self.problems.into_iter();
        problems.next().expect("there is at least one")
    }
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    /// The flag or file it is about.
    pub(crate) about: Option<String>,
    pub(crate) message: String,
    /// The fix.
    pub(crate) hint: Option<String>,
}

impl Problem {
    #[expect(
        clippy::needless_pass_by_value,
        reason = "callers hand over an error or a text that they have no further use for"
    )]
    pub(crate) fn new(message: impl ToString) -> Self {
        Self {
            about: None,
            message: message.to_string(),
            hint: None,
        }
    }

    /// A problem with what was given for `flag`.
    pub(crate) fn with(flag: &str, message: impl ToString) -> Self {
        Self {
            about: Some(flag.to_owned()),
            ..Self::new(message)
        }
    }

    /// An error with all its causes.
    pub(crate) fn caused_by(error: &dyn Error) -> Self {
        Self::new(with_causes(error))
    }

    /// The same problem, with what was given for `flag`.
    pub(crate) fn about(mut self, flag: &str) -> Self {
        self.about = Some(flag.to_owned());
        self
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The failure of a command that could not be run because of this.
    pub(crate) fn could_not_run(self) -> Failed {
        Failed {
            exit: Exit::CouldNotRun,
            problems: vec![self],
        }
    }

    /// The failure of a command with wrong arguments.
    pub(crate) fn usage(self) -> Failed {
        Failed {
            exit: Exit::Usage,
            problems: vec![self],
        }
    }
}

impl From<Notice> for Problem {
    fn from(notice: Notice) -> Self {
        Self {
            about: notice.about,
            message: notice.message,
            hint: notice.hint,
        }
    }
}
