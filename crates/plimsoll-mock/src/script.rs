//! Functions of JavaScript that answer requests.
//!
//! They run on a thread of their own beside each worker, so that a script that does not end holds up other scripts of
//! that worker, and nothing else. It costs two changes of threads a request, which is little beside what a script takes.

pub(crate) mod notice_limiter;

#[cfg(feature = "script")]
mod answer;

#[cfg(feature = "script")]
mod engine;

#[cfg(feature = "script")]
mod host;

#[cfg(feature = "script")]
mod input;

#[cfg(feature = "script")]
mod lane;

#[cfg(feature = "script")]
mod load;

#[cfg(feature = "script")]
mod scripts;

#[cfg(not(feature = "script"))]
mod none;

use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use http::header::{HeaderName, HeaderValue};

#[cfg(feature = "script")]
pub use self::load::{Script, ScriptLoadError};
#[cfg(feature = "script")]
pub(crate) use self::scripts::Scripts;

#[cfg(not(feature = "script"))]
pub use self::none::Script;
#[cfg(not(feature = "script"))]
pub(crate) use self::none::Scripts;

/// Time limit of a script for one request, unless a rule sets another.
pub const TIME: Duration = Duration::from_millis(100);

/// The longest time that a rule may give a script: a request that waits longer has run into the timeout of most
/// clients.
pub const MOST_TIME: Duration = Duration::from_secs(30);

/// Source of a script's text.
#[derive(Debug, Clone, Copy)]
pub enum Text<'t> {
    /// In a file below the folder of the rules.
    File(&'t str),
    /// In the rule.
    Inline(&'t str),
}

/// The result of a script.
#[derive(Debug)]
pub(crate) struct ScriptAnswer {
    /// That of the rule unless given.
    pub(crate) status: Option<StatusCode>,
    pub(crate) fields: Vec<(HeaderName, HeaderValue)>,
    /// The media type of its content, unless a field says it.
    pub(crate) kind: HeaderValue,
    pub(crate) content: Bytes,
    /// The state that the scenario of its rule goes to.
    pub(crate) state: Option<String>,
}

/// Why there is no answer: a status, and what to say.
pub(crate) type Refusal = (StatusCode, String);
