//! The exit codes of k6.

/// The exit code of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitCode {
    /// The run is complete and no threshold failed.
    Fine,
    /// A threshold failed.
    ThresholdsFailed,
    /// `setup()` took too long.
    SetupTimeout,
    /// `teardown()` took too long.
    TeardownTimeout,
    /// `handleSummary()` took too long.
    GenericTimeout,
    /// A client of the REST API stopped the run.
    StoppedByApi,
    /// Options that make no sense.
    InvalidConfig,
    /// A signal ended the run.
    ExternalAbort,
    /// The REST API cannot listen.
    ApiFailed,
    /// The script threw an exception outside of iterations.
    ScriptException,
    /// The script called `test.abort()`.
    ScriptAborted,
    /// The script called `test.fail()`.
    MarkedAsFailed,
    /// Anything else.
    Other,
}

impl ExitCode {
    /// The code of an exception outside of iterations: k6 has one of its own for what `async` functions throw.
    ///
    /// - `is_rejection`: whether it is the reason of a rejected promise.
    pub(crate) fn of_exception(is_rejection: bool) -> Self {
        if is_rejection {
            Self::Other
        } else {
            Self::ScriptException
        }
    }

    /// Its number.
    pub const fn number(self) -> u8 {
        match self {
            Self::Fine => 0,
            Self::ThresholdsFailed => 99,
            Self::SetupTimeout => 100,
            Self::TeardownTimeout => 101,
            Self::GenericTimeout => 102,
            Self::StoppedByApi => 103,
            Self::InvalidConfig => 104,
            Self::ExternalAbort => 105,
            Self::ApiFailed => 106,
            Self::ScriptException => 107,
            Self::ScriptAborted => 108,
            Self::MarkedAsFailed => 110,
            Self::Other => 255,
        }
    }
}
