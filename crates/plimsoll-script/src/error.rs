//! What goes wrong in scripts.

use std::fmt;
use std::time::Duration;

/// Why a script could not be loaded, or ended without an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptError {
    /// What kind of mistake it is.
    pub kind: ErrorKind,
    /// Where; absent if the engine does not say.
    pub place: Option<Place>,
}

/// The kinds of mistakes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ErrorKind {
    /// Something was thrown, or the text is no JavaScript; as the engine says it.
    #[error("{0}")]
    Thrown(String),
    /// It was ended after this time.
    #[error("took longer than {0:?}")]
    Time(Duration),
    /// It wanted more memory than the runtime may have, in bytes.
    #[error("wanted more than {} MiB of memory", .0 >> 20)]
    Memory(usize),
    /// It awaits what never comes.
    #[error("awaits what never comes: there are neither timers nor other events here")]
    Pending,
    /// A module exports no function as its default.
    #[error(
        "has no function as its default export, such as `export default (request) => \"hello\"`"
    )]
    NoFunction,
    /// The engine itself failed.
    #[error("the engine failed: {0}")]
    Engine(String),
}

/// A place in a module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The name of the module.
    pub file: String,
    /// From 1.
    pub line: u32,
    /// From 1.
    pub column: u32,
}

impl ScriptError {
    pub(crate) fn of(kind: ErrorKind) -> Self {
        Self { kind, place: None }
    }

    /// Whether the runtime may hold what is half done, and is better made anew.
    pub fn spoils(&self) -> bool {
        matches!(
            self.kind,
            ErrorKind::Time(_) | ErrorKind::Memory(_) | ErrorKind::Engine(_)
        )
    }
}

impl fmt::Display for ScriptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = &self.place {
            write!(f, "{place}: ")?;
        }
        self.kind.fmt(f)
    }
}

impl std::error::Error for ScriptError {}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// The innermost place of a stack as QuickJS writes it that is not the program's own: lines such as
/// `    at name (file:line:column)`.
pub(crate) fn place_of(stack: &str) -> Option<Place> {
    stack.lines().find_map(|line| {
        let line = line.trim().strip_prefix("at ")?;
        let inner = match line.strip_suffix(')') {
            Some(line) => line.split_once(" (")?.1,
            None => line,
        };
        let mut parts = inner.rsplitn(3, ':');
        let column = parts.next()?.parse().ok()?;
        let line = parts.next()?.parse().ok()?;
        let file = parts.next().filter(|file| !file.starts_with(OWN))?;
        Some(Place {
            file: file.to_owned(),
            line,
            column,
        })
    })
}

/// What the names of texts begin with that are not the user's.
pub(crate) const OWN: &str = "plimsoll:";

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn places_are_those_of_the_innermost_own_call() {
        let stack = "    at push (native)\n    at ask (plimsoll:console:3:4)\n    at f (/a b/(1)/x.js:12:7)\n    at /y.js:1:1\n";
        let place = place_of(stack).unwrap();
        assert_eq!(place.to_string(), "/a b/(1)/x.js:12:7");
        assert_eq!(
            place_of("    at /y.js:3:1\n").unwrap().to_string(),
            "/y.js:3:1"
        );
        assert_eq!(place_of("no stack"), None);
    }

    proptest! {
        #[test]
        fn no_stack_is_too_odd(stack in "[ at():0-9\\nx]{0,60}") {
            place_of(&stack);
        }
    }
}
