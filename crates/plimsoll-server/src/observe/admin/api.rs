//! APIs of actions on the admin port, for any method.
//!
//! Such an API may change what is served, so the admin port rejects requests of web pages ([`super::Admin`]).

use std::cell::RefCell;
use std::fmt;
use std::sync::Arc;

use crate::action::Answer;
use crate::message::request::Request;
use crate::observe::audit::AuditLog;

/// An API of one action.
#[derive(Clone)]
pub struct AdminApi {
    /// It answers this path and all below it; begins with a slash, and ends without one.
    root: String,
    /// Paths below the root that need no token, since they reveal nothing.
    open: &'static [&'static str],
    answer: Arc<AnswerApi>,
}

/// Answers requests of an API, by what their path has behind its root.
pub type AnswerApi = dyn Fn(&Request<'_>, &str) -> Answer + Send + Sync;

/// The APIs of one configuration, as its actions bring them.
#[derive(Debug, Default)]
pub struct AdminApis {
    all: RefCell<Vec<AdminApi>>,
    audit: AuditLog,
}

impl fmt::Debug for AdminApi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("AdminApi").field(&self.root).finish()
    }
}

impl AdminApis {
    pub(crate) fn new(audit: AuditLog) -> Self {
        Self {
            all: RefCell::default(),
            audit,
        }
    }

    /// Takes a line for each change that an API makes.
    pub fn audit(&self) -> AuditLog {
        self.audit.clone()
    }

    /// Adds one.
    ///
    /// - `root`: such as `/mock`; with a number behind it, from 2, if another action took it before.
    /// - `open`: paths behind the root that GET is answered for without the token.
    pub fn add(&self, root: &str, open: &'static [&'static str], answer: Arc<AnswerApi>) {
        let mut apis = self.all.borrow_mut();
        let is_taken = |wanted: &str| apis.iter().any(|api| api.root == wanted);
        let numbered = |number| match number {
            1 => root.to_owned(),
            _ => format!("{root}{number}"),
        };
        // One more than there are, so one is free.
        let root = (1..=apis.len() + 1)
            .map(numbered)
            .find(|root| !is_taken(root))
            .unwrap_or_default();
        apis.push(AdminApi { root, open, answer });
    }

    pub(crate) fn into_all(self) -> Vec<AdminApi> {
        self.all.into_inner()
    }
}

impl AdminApi {
    /// One that needs the token for all of its paths.
    pub(crate) fn new(root: &str, answer: Arc<AnswerApi>) -> Self {
        Self {
            root: root.to_owned(),
            open: &[],
            answer,
        }
    }

    pub(crate) fn root(&self) -> &str {
        &self.root
    }

    /// The rest of a path below the root; `None` if it lies elsewhere.
    pub(crate) fn rest<'p>(&self, path: &'p str) -> Option<&'p str> {
        let rest = path.strip_prefix(&self.root)?;
        (rest.is_empty() || rest.starts_with('/')).then_some(rest)
    }

    /// Whether everybody may have what lies there.
    pub(crate) fn is_open(&self, method: &str, rest: &str) -> bool {
        ["GET", "HEAD"].contains(&method) && self.open.contains(&rest)
    }

    pub(crate) fn answer(&self, request: &Request<'_>, rest: &str) -> Answer {
        (self.answer)(request, rest)
    }
}
