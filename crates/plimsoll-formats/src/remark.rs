//! Something about a place in a file: a mistake, or what was left out.

use std::fmt;

/// A position in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// The file as a whole.
    Whole,
    /// A line, counted from 1.
    Line(usize),
    /// An entry of a list, counted from 1.
    Entry(usize),
    /// A key path, such as `paths./pets.get`.
    Key(String),
}

/// Something about a place in a file, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remark {
    /// Position.
    pub place: Place,
    /// Message.
    pub message: String,
    /// A hint.
    pub hint: Option<String>,
}

impl Remark {
    /// A remark without a hint.
    pub fn new(place: Place, message: impl Into<String>) -> Self {
        Self {
            place,
            message: message.into(),
            hint: None,
        }
    }

    /// A remark on the file as a whole.
    pub fn whole(message: impl Into<String>) -> Self {
        Self::new(Place::Whole, message)
    }

    /// A remark on a line, counted from 1.
    pub fn line(line: usize, message: impl Into<String>) -> Self {
        Self::new(Place::Line(line), message)
    }

    /// The same remark with what to do.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// As it stands behind the name of the file: `:12`, `, entry 3`, `, paths./pets.get`, or nothing.
impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole => Ok(()),
            Self::Line(line) => write!(f, ":{line}"),
            Self::Entry(entry) => write!(f, ", entry {entry}"),
            Self::Key(key) => write!(f, ", {key}"),
        }
    }
}
