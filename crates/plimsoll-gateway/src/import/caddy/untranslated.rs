//! Why a part of a Caddyfile has no counterpart.

/// The reasons; they end notes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Untranslated {
    #[error("there is no counterpart")]
    Directive,
    /// A condition of a matcher.
    #[error("`{0}` is no condition of routes")]
    Condition(String),
    #[error("{0} is not defined")]
    Matcher(String),
    /// A placeholder, with its braces.
    #[error("`{0}` has no counterpart")]
    Placeholder(String),
    #[error("`{0}` is no server")]
    Server(String),
    /// A field of `header_up`, with its `*`.
    #[error("`{0}`: fields are not removed by a part of their names")]
    Field(String),
    #[error("it names no server")]
    NoServer,
    #[error("there is no `root` that scripts are in")]
    NoRoot,
    #[error("`{0}` is no folder")]
    Folder(String),
    #[error("it has no target")]
    NoTarget,
    #[error("`{0}` is no redirect")]
    Redirect(String),
}
