//! Why a call of gRPC cannot be made; scripts see it as the message of an exception.

use std::time::Duration;

use plimsoll_client::grpc::FramingError;
use plimsoll_formats::grpc::{
    DescriptorsError, MessageError, MethodName, ProtoError, ReflectionError,
};

use plimsoll_model::with_causes;

use crate::protocol::pools::CallTlsError;
use crate::user::files::OpenError;

/// Why there is no connection, no call or no stream.
#[derive(Debug, thiserror::Error)]
pub(crate) enum GrpcError {
    #[error("no gRPC connection, you must call connect() first")]
    NotConnected,
    #[error("no connection to {address} within {timeout:?}")]
    ConnectTimeout { address: String, timeout: Duration },
    #[error("{address:?} is not an address such as \"localhost:50051\": {reason}")]
    Address { address: String, reason: String },
    /// The options of the script do not let it connect there, in k6's words.
    #[error("{0}")]
    Blocked(String),
    #[error("connect params: {0}")]
    Tls(CallTlsError),
    /// The connection failed, in k6's words.
    #[error("{0}")]
    Connection(String),
    #[error("/{0} is a method with a stream: call it by grpc.Stream")]
    HasStream(MethodName),
    #[error("method \"/{name}\" not found in file descriptors: {hint}")]
    UnknownMethod { name: MethodName, hint: String },
    #[error("the request {}", with_causes(.0))]
    Request(MessageError),
    #[error("the message {}", with_causes(.0))]
    Message(MessageError),
    #[error(transparent)]
    Framing(#[from] FramingError),
    #[error("the stream was ended: nothing can be written")]
    StreamEnded,
    #[error("the server does not read: more than 64 MiB wait to be sent")]
    Unread,
    #[error("the server's reflection failed for {service}: {cause}")]
    Reflection {
        service: String,
        cause: ReflectError,
    },
}

/// Why the server's reflection does not describe a service.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReflectError {
    /// There is no service that reflects.
    #[error("no answer")]
    NoService,
    #[error(transparent)]
    Call(Box<GrpcError>),
    #[error("{status}: {message}")]
    Status {
        status: &'static str,
        message: String,
    },
    #[error(transparent)]
    Answer(#[from] ReflectionError),
}

/// Why descriptors cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DescribeError {
    #[error(transparent)]
    Proto(#[from] ProtoError),
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error("{path} {cause}")]
    Set {
        path: String,
        cause: DescriptorsError,
    },
}
