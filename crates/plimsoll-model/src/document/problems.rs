//! Problems of a configuration file, as messages for people.

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
    /// The problem.
    pub message: String,
    /// A fix, if one is known.
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
    /// With the byte each is at; line and column are filled in at the end.
    found: Vec<(usize, ConfigProblem)>,
    /// Remarks, in the same form.
    notes: Vec<(usize, ConfigProblem)>,
}

impl<'i> Problems<'i> {
    pub(super) fn new(text: &'i str) -> Self {
        Self {
            text,
            found: Vec::new(),
            notes: Vec::new(),
        }
    }

    pub(super) fn note(&mut self, span: &Range<usize>, key: &str, message: impl ToString) {
        let problems = self.found.len();
        self.add(span, key, message, None);
        self.notes.extend(self.found.drain(problems..));
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
        let problem = ConfigProblem {
            line: 1,
            column: 1,
            key: key.to_owned(),
            message: message.to_string(),
            hint,
        };
        self.found.push((span.start, problem));
    }

    /// Takes back what was noted, where it was.
    pub(super) fn remove(&mut self, span: &Range<usize>, key: &str, message: &str) {
        self.found.retain(|(at, problem)| {
            *at != span.start || problem.key != key || problem.message != message
        });
    }

    /// Problems and notes, each in the order of the file.
    pub(super) fn into_findings(self) -> (Vec<ConfigProblem>, Vec<ConfigProblem>) {
        let notes = Self {
            text: self.text,
            found: self.notes,
            notes: Vec::new(),
        };
        let problems = Self {
            notes: Vec::new(),
            ..self
        };
        (problems.into_found(), notes.into_found())
    }

    /// In the order of the file.
    pub(super) fn into_found(mut self) -> Vec<ConfigProblem> {
        self.found.sort_by_key(|(at, _)| *at);
        // One pass over the text: counting lines for each problem would cost problems × text.
        let mut characters = self.text.char_indices().peekable();
        let (mut line, mut column) = (1, 1);
        let mut found = Vec::with_capacity(self.found.len());
        for (at, problem) in std::mem::take(&mut self.found) {
            while let Some((_, passed)) = characters.next_if(|(index, _)| *index < at) {
                if passed == '\n' {
                    (line, column) = (line + 1, 1);
                } else {
                    column += 1;
                }
            }
            found.push(ConfigProblem {
                line,
                column,
                ..problem
            });
        }
        found.dedup();
        found
    }
}
