//! Exit codes, all of them.

use std::process::ExitCode;

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// All is well.
    Fine,
    /// The measurement did not meet its objective.
    Objective,
    /// The command line or a file is wrong.
    Usage,
    /// It could not be run: port taken, target unreachable, permission missing.
    CouldNotRun,
    /// What was measured does not decide whether the objective is met.
    CannotTell,
    /// Figures are missing: an agent of a fleet was lost.
    #[cfg(feature = "fleet")]
    Incomplete,
    /// The user ended it early; what was measured was printed.
    Interrupted,
    /// A command of k6 ended, which has exit codes of its own.
    #[cfg(feature = "k6")]
    Script(u8),
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Fine => 0,
            Exit::Objective => 1,
            Exit::Usage => 2,
            Exit::CouldNotRun => 3,
            Exit::CannotTell => 4,
            #[cfg(feature = "fleet")]
            Exit::Incomplete => 4,
            Exit::Interrupted => 130,
            #[cfg(feature = "k6")]
            Exit::Script(code) => code,
        })
    }
}

/// Prints what the parser of the command line has to say: help, the version, or a mistake.
pub(crate) fn after_parsing(error: &clap::Error) -> ExitCode {
    after_parsing_with(error, Exit::Usage.into())
}

/// The same with an exit code for mistakes.
pub(crate) fn after_parsing_with(error: &clap::Error, mistake: ExitCode) -> ExitCode {
    // A closed standard output is no error here.
    drop(error.print());
    if error.use_stderr() {
        mistake
    } else {
        Exit::Fine.into()
    }
}
