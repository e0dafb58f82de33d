//! Emphasis, which never carries meaning of its own.

/// Whether text may contain escape sequences; the caller knows where it goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Style {
    /// Characters only.
    #[default]
    Plain,
    /// ANSI escape sequences for emphasis (ECMA-48, section 8.3.117).
    Ansi,
}

/// The kinds of emphasis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Emphasis {
    /// Nothing stands out.
    Plain,
    /// A title or a principal figure.
    Strong,
    /// Explanations.
    Faint,
    /// Verdicts that are good.
    Good,
    /// Warnings, and verdicts that are open.
    Warning,
    /// Errors, and verdicts that are bad.
    Error,
}

impl Style {
    /// `text` with this emphasis.
    pub fn apply(self, emphasis: Emphasis, text: &str) -> String {
        let code = match (self, emphasis) {
            (Self::Plain, _) | (_, Emphasis::Plain) => return text.to_owned(),
            (Self::Ansi, Emphasis::Strong) => "1",
            (Self::Ansi, Emphasis::Faint) => "2",
            (Self::Ansi, Emphasis::Good) => "32",
            (Self::Ansi, Emphasis::Warning) => "33",
            (Self::Ansi, Emphasis::Error) => "31",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }
}
