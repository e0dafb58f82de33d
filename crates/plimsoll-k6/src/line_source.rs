//! Where lines of a run's log come from.

/// Where a line of the log comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineSource {
    /// The run itself.
    Run,
    /// The script's `console`, while its module code runs.
    ConsoleAtInit,
    /// The script's `console` in its functions.
    Console,
    /// An exception.
    StackTrace,
}

impl LineSource {
    /// The name in k6's log; empty for the run itself.
    pub fn name(self) -> &'static str {
        match self {
            Self::Run => "",
            Self::ConsoleAtInit | Self::Console => "console",
            Self::StackTrace => "stacktrace",
        }
    }

    /// Whether the script has printed it.
    pub fn is_console(self) -> bool {
        matches!(self, Self::ConsoleAtInit | Self::Console)
    }
}
