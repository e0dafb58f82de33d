//! Changes of the configuration on their way from the admin port to the code that runs the plan, and what becomes of them.
//!
//! That code handles one after the other, and reloads between them: no two changes can lose each other.

use std::hash::{BuildHasher as _, RandomState};

use http::StatusCode;
use plimsoll_model::document::ConfigProblem;
use tokio::sync::{mpsc, oneshot};

use crate::content::changes::{ChangesPlan, Edit, EditError};
use crate::content::{ConfigContent, Difference};
use crate::observe::audit::AuditClient;

/// Where the admin port hands changes in; clones lead to the same place.
#[derive(Debug, Clone)]
pub struct ChangeQueue {
    sender: mpsc::Sender<ChangeRequest>,
    /// Versions are hashes that no client can compute, since secrets are hashed too.
    keys: RandomState,
}

/// The changes that were handed in.
#[derive(Debug)]
pub struct ChangeRequests(mpsc::Receiver<ChangeRequest>);

/// A change that a client wants.
#[derive(Debug)]
pub struct ChangeRequest {
    /// What is wanted.
    pub wanted: WantedChange,
    /// Whether only what would be different is wanted.
    pub is_dry_run: bool,
    /// The client.
    pub client: AuditClient,
    /// One of these versions has to be served; absent for any.
    if_match: Option<String>,
    reply: oneshot::Sender<ChangeReply>,
}

/// What a client wants to be done.
#[derive(Debug)]
pub enum WantedChange {
    /// A change of the configuration.
    Edit(Edit),
    /// The file is loaded again.
    Reload,
    /// Only what a file of this content would change.
    Compare {
        /// The content of the file.
        content: ConfigContent,
        /// Whether values of secrets are compared.
        with_secrets: bool,
    },
    /// Only the changes that were made.
    List,
}

/// What became of a change.
#[derive(Debug, Clone, PartialEq)]
pub enum ChangeReply {
    /// It was made, or would be.
    Changed {
        /// What is different.
        changes: Vec<Difference>,
        /// The configuration that is served now.
        version: String,
    },
    /// The changes so far.
    Listed {
        /// What each is about, with its value.
        changes: Vec<(String, Option<String>)>,
        /// What becomes of them.
        kept: ChangesPlan,
    },
    /// There is nothing to change.
    Rejected(EditError),
    /// The configuration would have errors.
    Invalid(Vec<ConfigProblem>),
    /// Another version is served than the client knows: this one.
    Outdated(String),
    /// It could not be done, and what is served stays as it was.
    Failed(Vec<String>),
}

/// Changes that may wait.
const MOST_WAITING: usize = 16;

impl ChangeQueue {
    /// A queue, and its other end.
    pub fn new() -> (Self, ChangeRequests) {
        let (sender, receiver) = mpsc::channel(MOST_WAITING);
        let keys = RandomState::new();
        (Self { sender, keys }, ChangeRequests(receiver))
    }

    /// The version of a configuration: the same as long as it says the same.
    pub fn version(&self, content: &ConfigContent) -> String {
        format!("\"{:016x}\"", self.keys.hash_one(content.to_toml()))
    }

    /// Hands a change in; nothing if too many wait, or the server ends.
    pub(super) async fn request(
        &self,
        wanted: WantedChange,
        is_dry_run: bool,
        if_match: Option<String>,
        client: AuditClient,
    ) -> Option<ChangeReply> {
        let (reply, replied) = oneshot::channel();
        let request = ChangeRequest {
            wanted,
            is_dry_run,
            client,
            if_match,
            reply,
        };
        self.sender.try_send(request).ok()?;
        replied.await.ok()
    }
}

impl ChangeRequests {
    /// Waits for the next one; there is none once no configuration has the queue any more.
    pub async fn next(&mut self) -> Option<ChangeRequest> {
        self.0.recv().await
    }

    /// Takes no more, and drops those that wait.
    pub fn close(&mut self) {
        self.0.close();
        while self.0.try_recv().is_ok() {}
    }
}

impl ChangeRequest {
    /// Whether the client may change this version: it is one that it knows, or it wants none in particular
    /// (RFC 9110, section 13.1.1).
    pub fn permits(&self, version: &str) -> bool {
        self.if_match.as_deref().is_none_or(|versions| {
            let mut versions = versions.split(',').map(str::trim);
            versions.any(|it| it == "*" || it == version)
        })
    }

    /// Whether what is served may be different afterwards.
    pub fn is_change(&self) -> bool {
        let wanted = matches!(self.wanted, WantedChange::Edit(_) | WantedChange::Reload);
        wanted && !self.is_dry_run
    }

    /// Replies. A client that has left gets nothing.
    pub fn reply(self, reply: ChangeReply) {
        self.reply.send(reply).ok();
    }
}

impl ChangeReply {
    /// The status of the response.
    pub fn status(&self) -> StatusCode {
        match self {
            Self::Changed { .. } | Self::Listed { .. } => StatusCode::OK,
            Self::Rejected(EditError::Missing(_)) => StatusCode::NOT_FOUND,
            Self::Rejected(EditError::Conflict(_)) => StatusCode::CONFLICT,
            Self::Rejected(EditError::Invalid { .. }) | Self::Invalid(_) => {
                StatusCode::UNPROCESSABLE_ENTITY
            }
            Self::Outdated(_) => StatusCode::PRECONDITION_FAILED,
            Self::Failed(_) => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// What was changed.
    pub fn changes(&self) -> &[Difference] {
        match self {
            Self::Changed { changes, .. } => changes,
            _ => &[],
        }
    }
}
