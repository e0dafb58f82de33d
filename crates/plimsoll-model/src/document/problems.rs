//! What is wrong with a file, for people.

use std::fmt;
use std::ops::Range;

/// One mistake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigProblem {
    /// Counted from 1.
    pub line: usize,
    /// In characters, counted from 1.
    pub column: usize,
    /// The path of the key, such as `route[2].redirect.to`; empty for mistakes of syntax.
    pub key: String,
    /// What is wrong.
    pub message: String,
    /// What to write instead, if that can be told.
    pub hint: Option<String>,
}

impl fmt::Display for ConfigProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        f.write_str(&self.message)
    }
}

/// The problems found so far, with the text that they are in.
#[derive(Debug)]
pub(super) struct Problems<'i> {
    text: &'i str,
    found: Vec<ConfigProblem>,
}

impl<'i> Problems<'i> {
    pub(super) fn new(text: &'i str) -> Self {
        Self {
            text,
            found: Vec::new(),
        }
    }

    #[expect(
        clippy::needless_pass_by_value,
        reason = "callers hand over an error or a text that they have no further use for"
    )]
    pub(super) fn add(
        &mut self,
        span: &Range<usize>,
        key: &str,
        message: impl ToString,
        hint: Option<String>,
    ) {
        let before = self.text.get(..span.start).unwrap_or(self.text);
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        let in_line = before.get(line_start..).unwrap_or_default();
        self.found.push(ConfigProblem {
            line: before.matches('\n').count() + 1,
            column: in_line.chars().count() + 1,
            key: key.to_owned(),
            message: message.to_string(),
            hint,
        });
    }

    /// In the order of the file.
    pub(super) fn into_found(mut self) -> Vec<ConfigProblem> {
        self.found
            .sort_by_key(|problem| (problem.line, problem.column));
        self.found.dedup();
        self.found
    }
}

/// An error with all its causes.
pub fn with_causes(error: &dyn std::error::Error) -> String {
    let mut message = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        message = format!("{message}: {error}");
        cause = error.source();
    }
    message
}
