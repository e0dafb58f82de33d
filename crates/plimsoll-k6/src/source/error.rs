//! Why a script has no such module.

use std::io;
use std::path::PathBuf;

use plimsoll_script::{ModuleError, ScriptError, TypeScriptError};

use super::commonjs::NamesUnknown;
use super::remote::RemoteError;
use super::root::OutsideOfArchive;

/// The reasons of k6's sources; scripts see them as messages of exceptions.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SourceError {
    #[error("`{0}`: browser automation is not supported by plimsoll; run this script with k6")]
    Browser(String),
    #[error("`{specifier}` was removed from k6; use {instead}")]
    Removed {
        specifier: String,
        instead: &'static str,
    },
    #[error("`{specifier}` is not supported by plimsoll, which has {known}")]
    Unsupported { specifier: String, known: String },
    #[error("there is no module {0}")]
    NoOwnModule(String),
    #[error("`{0}`: modules are imported over https only")]
    Insecure(String),
    #[error(
        "`{0}` is neither a module of k6 nor a path: modules of npm have to be bundled, and paths begin with `./`"
    )]
    NoPath(String),
    #[error("`{specifier}`: {cause}")]
    Url {
        specifier: String,
        cause: url::ParseError,
    },
    #[error(
        "`{specifier}`: remote modules are not fetched here; save the file beside the script and import it by its path ({built_in} of jslib.k6.io, and k6-reporter, are built in)"
    )]
    NotFetched { specifier: String, built_in: String },
    #[error(transparent)]
    Remote(RemoteError),
    #[error(transparent)]
    OutsideOfArchive(OutsideOfArchive),
    #[error("cannot read {}: {cause}", path.display())]
    Path { path: PathBuf, cause: io::Error },
    #[error("{name}:{cause}")]
    TypeScript {
        name: String,
        cause: TypeScriptError,
    },
    #[error("{name}: {cause}")]
    CommonJs { name: String, cause: NamesUnknown },
}

impl From<SourceError> for ModuleError {
    fn from(error: SourceError) -> Self {
        Self::other(error)
    }
}

/// Why a module that a script requires while it runs cannot be had.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RequireError {
    #[error("{0} cannot be compiled")]
    CompilerEnded(String),
    #[error(transparent)]
    Compile(#[from] ScriptError),
}
