//! What scripts may ask of the program that runs them.

/// The program that runs a script.
pub trait Host {
    /// Answers what the prelude of the runtime asks by `ask(name, …)`; a failure is thrown there as an `Error`.
    ///
    /// - `arguments`: an array in JSON.
    ///
    /// The answer is JSON.
    fn ask(&self, name: &str, arguments: &str) -> Result<String, String>;

    /// Is told what a script says by `console`.
    fn say(&self, level: Level, text: &str);
}

/// How a script says something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// `console.log`, `.info` and `.debug`
    Note,
    /// `console.warn`
    Warning,
    /// `console.error`
    Error,
}

impl Level {
    pub(crate) fn named(name: &str) -> Self {
        match name {
            "warn" => Self::Warning,
            "error" => Self::Error,
            _ => Self::Note,
        }
    }
}
