//! What a rule answers.

use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;
use http::header::{HeaderName, HeaderValue};

use crate::delay::Delay;
use crate::events::EventScript;
use crate::fault::Fault;
use crate::grpc::GrpcReply;
use crate::pace::Pace;
use crate::proxy::Upstream;
use crate::request::RequestView;
use crate::script::Script;
use crate::template::{Chance, Written};
use crate::websocket::Conversation;

/// A response, as a file describes it.
#[derive(Debug, Clone, Default)]
pub struct Reply {
    /// 200 unless given.
    pub status: Option<StatusCode>,
    /// Fields that the rule gives.
    pub fields: Vec<(HeaderName, HeaderValue)>,
    /// Its content.
    pub content: Content,
    /// Fields whose values are made for each request.
    pub written_fields: Vec<(HeaderName, Written)>,
    /// How long it is held back.
    pub delay: Delay,
    /// Where its chance comes from.
    pub chance: Chance,
    /// How fast its content comes; absent for at once.
    pub pace: Option<Pace>,
    /// What goes wrong.
    pub fault: Option<Fault>,
}

/// The content of a reply.
#[derive(Debug, Clone, Default)]
pub enum Content {
    /// None.
    #[default]
    Empty,
    /// None, though its length is announced in the response to HEAD.
    Announced(u64),
    /// This.
    Bytes(HeaderValue, Bytes),
    /// This, made for each request.
    Written(HeaderValue, Written),
    /// That of a file.
    File(ReplyFile),
    /// What a real server answers.
    Proxy(Arc<Upstream>),
    /// Server-sent events.
    Events(EventScript),
    /// What a call of gRPC is answered with.
    Grpc(Arc<GrpcReply>),
    /// A WebSocket.
    WebSocket(Arc<Conversation>),
    /// What a function of JavaScript answers.
    Script(Arc<Script>),
}

impl Content {
    /// What it is for a request; nothing of those that are no bytes.
    pub(crate) fn for_request(&self, request: &RequestView<'_>) -> Bytes {
        match self {
            Self::Bytes(_, bytes) => bytes.clone(),
            Self::Written(_, written) => Bytes::from(written.fill(request)),
            _ => Bytes::new(),
        }
    }
}

/// A file that a rule answers with.
#[derive(Debug, Clone)]
pub struct ReplyFile {
    /// Where it is.
    pub path: PathBuf,
    /// What it must be in, links resolved.
    pub root: PathBuf,
    /// What the array of a CSV file is called.
    pub records: String,
}

/// What the array of a CSV file is called unless a rule says otherwise.
pub const RECORDS: &str = "records";
