//! The call of a method with one message and one answer, both as JSON.

use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use plimsoll_formats::grpc::{
    Descriptors, MessageError, Method, MethodName, MethodNameError, ProtoError, Reflection,
};
use plimsoll_model::with_causes;

/// A method, and what is sent to it.
pub struct GrpcCall {
    pub(super) name: MethodName,
    json: String,
    /// Whether another status than OK is left to conditions.
    pub(super) leaves_status: bool,
    /// From a `.proto` file; otherwise from the server, by its first check.
    known: Mutex<Option<Arc<Method>>>,
    is_given: bool,
}

/// Why a call cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum GrpcCallError {
    /// The name is not one of a method.
    #[error(transparent)]
    Name(#[from] MethodNameError),
    /// The text is not JSON.
    #[error("`body` is not JSON: {0}")]
    Json(serde_json::Error),
    /// The description does not have it.
    #[error("{0}")]
    Unknown(String),
    /// It takes or gives streams.
    #[error(
        "`{0}` takes or returns a stream; only methods with one request and one response are called"
    )]
    Streams(MethodName),
    /// The JSON is no message of it.
    #[error("`body` {}", with_causes(.0))]
    Message(MessageError),
    /// The description cannot be read.
    #[error(transparent)]
    Proto(#[from] ProtoError),
}

impl GrpcCall {
    /// - `name`: `package.Service/Method`.
    /// - `json`: the request message.
    /// - `described`: absent if the server describes it by reflection.
    pub fn new(
        name: &str,
        json: &str,
        described: Option<&Descriptors>,
        leaves_status: bool,
    ) -> Result<Self, GrpcCallError> {
        let name: MethodName = name.parse()?;
        serde_json::from_str::<serde::de::IgnoredAny>(json).map_err(GrpcCallError::Json)?;
        let call = Self {
            name,
            json: json.to_owned(),
            leaves_status,
            known: Mutex::default(),
            is_given: described.is_some(),
        };
        if let Some(described) = described {
            let method = call.find(described)?;
            call.message(&method)?;
            call.learn(method);
        }
        Ok(call)
    }

    /// The descriptions of the text of a `.proto` file.
    pub fn described_by(text: &str) -> Result<Descriptors, GrpcCallError> {
        Ok(Descriptors::parse("call.proto", text)?)
    }

    /// The descriptions of a `.proto` file or a descriptor set.
    pub fn described_in(path: &Path) -> Result<Descriptors, GrpcCallError> {
        Ok(Descriptors::open(path)?)
    }

    /// The method of a description.
    pub(super) fn find(&self, described: &Descriptors) -> Result<Method, GrpcCallError> {
        let found = described.method(&self.name);
        let method = found
            .map_err(|unknown| GrpcCallError::Unknown(format!("{unknown}; {}", unknown.hint())))?;
        if method.is_client_streaming() || method.is_server_streaming() {
            return Err(GrpcCallError::Streams(self.name.clone()));
        }
        Ok(method)
    }

    /// The message that is sent.
    pub(super) fn message(&self, method: &Method) -> Result<Vec<u8>, GrpcCallError> {
        let messages = method.messages(self.json.as_bytes());
        let messages = messages.map_err(GrpcCallError::Message)?;
        Ok(messages.into_iter().next().unwrap_or_default())
    }

    /// The method, once it is known.
    pub(super) fn known(&self) -> Option<Arc<Method>> {
        self.known
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    pub(super) fn learn(&self, method: Method) -> Arc<Method> {
        let method = Arc::new(method);
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&method));
        method
    }

    /// For after a call that failed: the server may have another description since.
    pub(super) fn forget(&self) {
        if !self.is_given {
            *self.known.lock().unwrap_or_else(PoisonError::into_inner) = None;
        }
    }

    /// Learns about the service from its server.
    pub(super) fn reflection(&self) -> Reflection {
        Reflection::new(self.name.service())
    }
}

impl fmt::Debug for GrpcCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GrpcCall")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}
