//! Errors of scripts.

use std::fmt;
use std::time::Duration;

use rquickjs::{CaughtError, Coerced, Ctx};

/// Why a script could not be loaded, or ended without a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptError {
    /// The kind of error.
    pub kind: ErrorKind,
    /// Where; absent if the engine does not say.
    pub location: Option<SourceLocation>,
    /// The calls that led there, one per line, innermost first, as QuickJS writes them; empty if there are none.
    pub stack: String,
    /// True if it is the reason of a rejected promise that nothing handles.
    pub is_rejection: bool,
}

/// The kinds of errors.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ErrorKind {
    /// Something was thrown, or the text is not valid JavaScript; as the engine words it.
    #[error("{0}")]
    Thrown(String),
    /// It computed for longer than this.
    #[error("took longer than {0:?}")]
    Time(Duration),
    /// It needs more memory than the VM may have, in bytes.
    #[error("wanted more than {} MiB of memory", .0 >> 20)]
    Memory(usize),
    /// The result is a promise that nothing can settle any more.
    #[error("awaits what never comes: there are neither timers nor other events here")]
    Pending,
    /// A module exports no function as its default.
    #[error(
        "has no function as its default export, such as `export default (request) => \"hello\"`"
    )]
    NoFunction,
    /// The fiber was cancelled.
    #[error("was interrupted")]
    Cancelled,
    /// There is no stack for another fiber.
    #[error("no stack for another virtual user: {0}; raise vm.max_map_count (sysctl)")]
    Stack(String),
    /// The engine itself failed.
    #[error("the engine failed: {0}")]
    Engine(String),
}

/// A position in a module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceLocation {
    /// The name of the module.
    pub file: String,
    /// From 1.
    pub line: u32,
    /// From 1.
    pub column: u32,
}

/// Why the work of a fiber ends early.
#[derive(Debug)]
pub enum Stop {
    /// By an exception, or by the engine.
    Failed(rquickjs::Error),
    /// By a rejected promise that nothing handles: its reason is thrown.
    Rejected(rquickjs::Error),
    /// By an error that is not an exception.
    Kind(ErrorKind),
}

impl From<rquickjs::Error> for Stop {
    fn from(error: rquickjs::Error) -> Self {
        Self::Failed(error)
    }
}

impl From<ErrorKind> for Stop {
    fn from(kind: ErrorKind) -> Self {
        Self::Kind(kind)
    }
}

impl ScriptError {
    pub(crate) fn new(kind: ErrorKind) -> Self {
        Self {
            kind,
            location: None,
            stack: String::new(),
            is_rejection: false,
        }
    }

    /// True if the VM may hold half-finished state and has to be replaced.
    pub fn spoils(&self) -> bool {
        matches!(
            self.kind,
            ErrorKind::Time(_) | ErrorKind::Memory(_) | ErrorKind::Cancelled | ErrorKind::Engine(_)
        )
    }

    /// The exception that is pending in `ctx`, or the engine's own error. Reading an exception may run script.
    ///
    /// - `memory`: the limit of the VM, in bytes.
    pub(crate) fn caught(ctx: &Ctx<'_>, error: rquickjs::Error, memory: usize) -> Self {
        let exception = match CaughtError::from_error(ctx, error) {
            CaughtError::Error(error) => {
                return Self::new(ErrorKind::Engine(error.to_string()));
            }
            CaughtError::Value(value) if value.is_null() => {
                let mebibytes = memory >> 20;
                return Self::new(ErrorKind::Thrown(format!(
                    "null was thrown, which the engine also does when its {mebibytes} MiB of memory are used up"
                )));
            }
            CaughtError::Value(value) => {
                let text = value.as_string().and_then(|text| text.to_string().ok());
                let shown = text.or_else(|| {
                    let json = ctx.json_stringify(value).ok().flatten();
                    json.and_then(|json| json.to_string().ok())
                });
                let shown = shown.unwrap_or_else(|| "something".to_owned());
                return Self::new(ErrorKind::Thrown(format!("{shown} was thrown")));
            }
            CaughtError::Exception(exception) => exception,
        };
        let name: Option<Coerced<String>> = exception.as_object().get("name").ok();
        let message = exception.message().unwrap_or_default();
        let stack = exception.stack().unwrap_or_default();
        let kind = match name.map(|name| name.0) {
            Some(name) if name == "InternalError" && message == "out of memory" => {
                ErrorKind::Memory(memory)
            }
            Some(name) => ErrorKind::Thrown(format!("{name}: {message}")),
            None => ErrorKind::Thrown(message),
        };
        Self {
            kind,
            location: location_of(&stack),
            stack: own_lines(&stack),
            is_rejection: false,
        }
    }
}

impl fmt::Display for ScriptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(location) = &self.location {
            write!(f, "{location}: ")?;
        }
        self.kind.fmt(f)
    }
}

impl std::error::Error for ScriptError {}

impl fmt::Display for SourceLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// The innermost location of a stack as QuickJS writes it that is not the program's own: lines such as
/// `    at name (file:line:column)`.
fn location_of(stack: &str) -> Option<SourceLocation> {
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
        Some(SourceLocation {
            file: file.to_owned(),
            line,
            column,
        })
    })
}

/// The lines of a stack that are the user's.
fn own_lines(stack: &str) -> String {
    let lines = stack.lines().map(str::trim);
    let lines = lines.filter(|line| !line.contains(OWN) && !line.contains("(native)"));
    lines.collect::<Vec<_>>().join("\n")
}

/// The prefix of the names of plimsoll's own modules.
pub(crate) const OWN: &str = "plimsoll:";

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn locations_are_those_of_the_innermost_own_call() {
        let stack = "    at push (native)\n    at ask (plimsoll:console:3:4)\n    at f (/a b/(1)/x.js:12:7)\n    at /y.js:1:1\n";
        let location = location_of(stack).unwrap();
        assert_eq!(location.to_string(), "/a b/(1)/x.js:12:7");
        assert_eq!(
            location_of("    at /y.js:3:1\n").unwrap().to_string(),
            "/y.js:3:1"
        );
        assert_eq!(location_of("no stack"), None);
        assert_eq!(own_lines(stack), "at f (/a b/(1)/x.js:12:7)\nat /y.js:1:1");
    }

    proptest! {
        #[test]
        fn no_stack_is_too_odd(stack in "[ at():0-9\\nx]{0,60}") {
            location_of(&stack);
        }
    }
}
