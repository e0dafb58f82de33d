//! The response of a rule.
//!
//! [`Reply`] has what all kinds of responses share: status, fields, delay, pace and fault. [`ReplyKind`] is the rest, and
//! each kind has a file below `reply/` that implements `Respond`.

mod announced;

mod call;

mod content;

mod context;

mod events;

mod file;

mod grpc;

mod proxy;

mod script;

mod websocket;

use std::path::Path;
use std::sync::Arc;

use http::StatusCode;
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use plimsoll_server::Answer;

use crate::config::ready::PreparedResponse;
use crate::fault::Fault;
use crate::fault::delay::Delay;
use crate::fault::pace::Pace;
use crate::proxy::Upstream;
use crate::request::RequestView;
use crate::script::Script;
use crate::streaming::events::EventScript;
use crate::streaming::grpc::GrpcReply;
use crate::streaming::websocket::Conversation;
use crate::template::content::Content;
use crate::template::{Chance, TextTemplate};
use crate::worker::sharing::Sharing;

pub use self::announced::Announced;
pub use self::file::{RECORDS, ReplyFile};

pub(crate) use self::call::ReplyCall;
pub(crate) use self::context::ReplyContext;

/// A response, as a file describes it.
#[derive(Debug, Clone, Default)]
pub struct Reply {
    /// 200 unless given.
    pub status: Option<StatusCode>,
    /// Fields that the rule gives.
    pub fields: Vec<(HeaderName, HeaderValue)>,
    /// Source of its content.
    pub kind: ReplyKind,
    /// Fields whose values are made for each request.
    pub written_fields: Vec<(HeaderName, TextTemplate)>,
    /// Delay of the response.
    pub delay: Delay,
    /// Source of random values.
    pub chance: Chance,
    /// Rate at which content is sent; absent for at once.
    pub pace: Option<Pace>,
    /// The injected fault.
    pub fault: Option<Fault>,
}

/// The kinds of responses.
#[derive(Debug, Clone)]
pub enum ReplyKind {
    /// Bytes, the same for each request or made for it.
    Content(Content),
    /// No content, but the length of one is announced in responses to HEAD.
    Announced(Announced),
    /// A file.
    File(ReplyFile),
    /// The response of a real server.
    Proxy(Arc<Upstream>),
    /// Server-sent events.
    Events(EventScript),
    /// The response to a gRPC call.
    Grpc(Arc<GrpcReply>),
    /// A WebSocket.
    WebSocket(Arc<Conversation>),
    /// The result of a JavaScript function.
    Script(Arc<Script>),
}

impl Default for ReplyKind {
    fn default() -> Self {
        Self::Content(Content::Empty)
    }
}

/// The behaviour of a kind of response.
pub(crate) trait Respond {
    /// Responds to a request, after the delay of the call.
    fn respond(&self, call: ReplyCall<'_, '_>) -> Answer;

    /// The response, if it is the same for every request.
    fn constant(&self, _reply: &Reply, _sharing: &Sharing) -> Option<PreparedResponse> {
        None
    }

    /// The response in a few words.
    ///
    /// - `status`: of the reply.
    fn summary(&self, status: StatusCode) -> String;

    /// The folder whose files it sends.
    fn root(&self) -> Option<&Path> {
        None
    }
}

impl ReplyKind {
    fn get(&self) -> &dyn Respond {
        match self {
            Self::Content(content) => content,
            Self::Announced(announced) => announced,
            Self::File(file) => file,
            Self::Proxy(upstream) => upstream,
            Self::Events(script) => script,
            Self::Grpc(reply) => reply,
            Self::WebSocket(conversation) => conversation,
            Self::Script(script) => script,
        }
    }
}

impl Reply {
    /// Responds to a request with this reply.
    #[inline]
    pub(crate) fn respond(&self, call: ReplyCall<'_, '_>) -> Answer {
        self.kind.get().respond(call)
    }

    /// The response, if it is the same for every request.
    pub(crate) fn constant(&self, sharing: &Sharing) -> Option<PreparedResponse> {
        if self.fault.is_some() || self.pace.is_some() || !self.written_fields.is_empty() {
            return None;
        }
        self.kind.get().constant(self, sharing)
    }

    /// The response in a few words.
    pub(crate) fn summary(&self) -> String {
        match self.fault {
            Some(fault) => format!("fault {}", fault.name()),
            None => self.kind.get().summary(self.status()),
        }
    }

    /// The folder whose files it sends.
    pub(crate) fn root(&self) -> Option<&Path> {
        self.kind.get().root()
    }

    /// The status of the response.
    pub(crate) fn status(&self) -> StatusCode {
        self.status.unwrap_or(StatusCode::OK)
    }

    /// The fields of the response, with those that are made for the request.
    fn fields(&self, request: &RequestView<'_>) -> Vec<(HeaderName, HeaderValue)> {
        let written = self.written_fields.iter().filter_map(|(name, written)| {
            let value = HeaderValue::from_str(&written.fill(request)).ok()?;
            Some((name.clone(), value))
        });
        let mut fields = self.fields.clone();
        fields.extend(written);
        fields
    }
}

/// Adds a media type unless the fields have one; an empty one in a rule stands for none at all.
fn with_media_type(
    mut fields: Vec<(HeaderName, HeaderValue)>,
    media_type: Option<&HeaderValue>,
) -> Vec<(HeaderName, HeaderValue)> {
    if let Some(media_type) = media_type
        && !fields.iter().any(|(name, _)| name == CONTENT_TYPE)
    {
        fields.push((CONTENT_TYPE, media_type.clone()));
    }
    without_empty_type(&mut fields);
    fields
}

/// An empty media type in a rule stands for none at all.
pub(crate) fn without_empty_type(fields: &mut Vec<(HeaderName, HeaderValue)>) {
    fields.retain(|(name, value)| name != CONTENT_TYPE || !value.is_empty());
}
