//! The audit log: a line for each change through the admin port, and for each reload.
//!
//! Lines go to the access log if there is one, in its format. Without one, and where its queue has no room, they are notices.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http::StatusCode;
use plimsoll_model::Clock as _;
use plimsoll_wire::SystemClock;

use crate::content::Difference;
use crate::message::request::Request;
use crate::observe::access_log::AccessLog;
use crate::observe::notice::{Notice, Notices, Severity};

/// Takes a line for each change; clones write to the same log.
#[derive(Debug, Clone, Default)]
pub struct AuditLog {
    /// Set once the log of the configuration is compiled.
    log: Arc<OnceLock<AccessLog>>,
    notices: Notices,
}

/// A change of what is served, or an attempt at one.
#[derive(Debug, Clone)]
pub struct AuditLine<'a> {
    /// The cause.
    pub source: AuditSource<'a>,
    /// What was different afterwards; secrets are masked.
    pub changes: &'a [Difference],
    /// The result.
    pub outcome: AuditOutcome,
}

/// What a change was caused by.
#[derive(Debug, Clone, Copy)]
pub enum AuditSource<'a> {
    /// A request to the admin port.
    Client(&'a AuditClient),
    /// SIGHUP.
    Signal,
    /// A file of the configuration that is watched.
    File,
}

/// The sender of a request to the admin port, and what was requested.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditClient {
    /// Its address.
    pub peer: SocketAddr,
    /// The user of Basic authentication. Any name goes with the token, so it is as the client says.
    pub user: Option<String>,
    /// A page in a browser sent it, not a program.
    pub is_page: bool,
    /// Method and path, such as `PUT /upstreams/api`.
    pub request: String,
}

/// The result of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuditOutcome {
    /// The status of the response to a request.
    Responded(StatusCode),
    /// A reload was done.
    Done,
    /// A reload failed: what is served stayed as it was.
    Failed,
}

/// Differences that one line has; more are counted.
pub(crate) const MOST_CHANGES: usize = 100;

impl AuditLog {
    pub(crate) fn new(notices: Notices) -> Self {
        Self {
            log: Arc::default(),
            notices,
        }
    }

    /// Lines go to this log from now on.
    pub(crate) fn write_to(&self, log: &AccessLog) {
        // A configuration has one log.
        self.log.set(log.clone()).ok();
    }

    /// Writes a line for a request that an API of the admin port has handled.
    ///
    /// - `changes`: what it has changed.
    /// - `status`: that of the response.
    pub fn handled(&self, request: &Request<'_>, changes: &[Difference], status: StatusCode) {
        self.record(&AuditLine {
            source: AuditSource::Client(&AuditClient::from_request(request)),
            changes,
            outcome: AuditOutcome::Responded(status),
        });
    }

    /// Writes a line for a request that was not permitted to change anything. Only the access log gets it: clients without the
    /// token cannot fill the standard error.
    pub(crate) fn rejected(&self, request: &Request<'_>, status: StatusCode) {
        if let Some(log) = self.log.get() {
            let entry = AuditLine {
                source: AuditSource::Client(&AuditClient::from_request(request)),
                changes: &[],
                outcome: AuditOutcome::Responded(status),
            };
            log.note_change(&entry, SystemClock.wall());
        }
    }

    /// Writes a line.
    pub fn record(&self, entry: &AuditLine<'_>) {
        self.record_at(entry, SystemClock.wall());
    }

    fn record_at(&self, entry: &AuditLine<'_>, time: SystemTime) {
        let log = self.log.get();
        if !log.is_some_and(|log| log.note_change(entry, time)) {
            let notice = Notice::new(Severity::Note, entry.text());
            self.notices.report(&notice.about("audit"));
        }
    }
}

impl AuditClient {
    /// That of a request.
    pub fn from_request(request: &Request<'_>) -> Self {
        let by_page = ["origin", "sec-fetch-site"];
        Self {
            peer: request.peer,
            user: user(request),
            is_page: by_page.iter().any(|field| request.header(field).is_some()),
            request: format!("{} {}", request.method, request.path),
        }
    }
}

/// The user of Basic authentication (RFC 7617).
fn user(request: &Request<'_>) -> Option<String> {
    let given = request.header("authorization")?.strip_prefix(b"Basic ")?;
    let decoded = BASE64_STANDARD.decode(given).ok()?;
    let colon = decoded.iter().position(|byte| *byte == b':')?;
    let user = String::from_utf8_lossy(decoded.get(..colon)?).into_owned();
    (!user.is_empty()).then_some(user)
}

impl AuditSource<'_> {
    /// One word.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Client(client) if client.is_page => "page",
            Self::Client(_) => "api",
            Self::Signal => "signal",
            Self::File => "file",
        }
    }
}

impl AuditLine<'_> {
    /// What was done: the method and the path, or `reload`.
    pub(crate) fn action(&self) -> &str {
        match self.source {
            AuditSource::Client(client) => &client.request,
            AuditSource::Signal | AuditSource::File => "reload",
        }
    }

    /// On one line, for people.
    pub(crate) fn text(&self) -> String {
        let mut text = self.action().to_owned();
        match self.source {
            AuditSource::Client(client) => {
                write!(text, " by {} ({}", client.peer, self.source.name()).ok();
                if let Some(user) = &client.user {
                    write!(text, ", user {user}").ok();
                }
                text.push(')');
            }
            AuditSource::Signal | AuditSource::File => {
                write!(text, " by {}", self.source.name()).ok();
            }
        }
        match self.outcome {
            AuditOutcome::Responded(status) => write!(text, ": {}", status.as_u16()).ok(),
            AuditOutcome::Done => write!(text, ": done").ok(),
            AuditOutcome::Failed => write!(text, ": failed").ok(),
        };
        for change in self.changes.iter().take(MOST_CHANGES) {
            write!(text, "; {change}").ok();
        }
        if let Some(more) = self.more() {
            write!(text, "; {more} more").ok();
        }
        // It is one line, whatever the client calls itself.
        text.retain(|it| !it.is_control());
        text
    }

    /// How many changes are not written.
    pub(crate) fn more(&self) -> Option<usize> {
        let more = self.changes.len().checked_sub(MOST_CHANGES)?;
        (more > 0).then_some(more)
    }
}
