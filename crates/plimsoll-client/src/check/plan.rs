//! The plan of a check.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_wire::h1::Limits;

use crate::check::Expectations;
use crate::{DigestLogin, Endpoint, Request};

/// One request and what its response must be: checked for sense, unchangeable, shared.
#[derive(Debug)]
pub struct CheckPlan {
    /// Target of the request.
    pub endpoint: Endpoint,
    /// The request.
    pub request: Request,
    /// Credentials for digest authentication, if the server asks for it; the request is then made again within
    /// the same exchange.
    pub digest: Option<Arc<DigestLogin>>,
    /// Reader of the response if the request is a gRPC call, which needs HTTP/2.
    pub grpc: Option<GrpcCheck>,
    /// Conditions on the response.
    pub expectations: Expectations,
    /// Timeout of the whole check, opening a connection included.
    ///
    /// The connector has a limit of its own, for its part; give it one that is no longer.
    pub timeout: Duration,
    /// Limits on the response.
    pub limits: Limits,
}

/// Reader of the response to a gRPC call.
#[derive(Clone)]
pub struct GrpcCheck {
    /// Whether the method answers with a stream of messages, not with exactly one.
    pub is_server_streaming: bool,
    /// Makes JSON of a message, or says why it is none.
    pub to_json: ToJson,
}

/// From the bytes of a message to JSON.
pub type ToJson = Arc<dyn Fn(&[u8]) -> Result<String, Box<dyn Error + Send + Sync>> + Send + Sync>;

impl fmt::Debug for GrpcCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GrpcCheck")
            .field("is_server_streaming", &self.is_server_streaming)
            .finish_non_exhaustive()
    }
}
