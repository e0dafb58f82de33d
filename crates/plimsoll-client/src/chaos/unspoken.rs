//! Why a server does not speak as an attack needs it.

use std::io;

use plimsoll_model::Failure;
use plimsoll_wire::h1::HeadError;

use crate::QuicError;

/// The outcome of a first request or handshake.
#[derive(Debug, thiserror::Error)]
pub enum Unspoken {
    /// The exchange of the first request failed.
    #[error(transparent)]
    Failure(Failure),
    /// The first request had a status of an error of the server.
    #[error("it answers with status {0}")]
    Status(u16),
    /// The target cannot be written into a request.
    #[error(transparent)]
    Head(#[from] HeadError),
    /// There is no connection, or it broke.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The settings of QUIC cannot be compiled.
    #[error(transparent)]
    Quic(#[from] QuicError),
    /// HTTP/3 is spoken over TLS alone.
    #[error("it needs an https:// URL")]
    NoTls,
    /// Nothing came in time.
    #[error("nothing came")]
    Silent,
    /// HTTP/2 begins with SETTINGS (RFC 9113, section 3.4).
    #[error("its first frame is not SETTINGS")]
    NoSettings,
}
