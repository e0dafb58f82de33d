//! Connections and datagrams that are not HTTP: the seams for what takes them, and the listeners that feed these.
//!
//! The first bytes of a connection decide what serves it ([`StreamHandler`]); datagrams go to a core without sockets and
//! clock, whose effects the listener carries out ([`DatagramHandler`]). Connections of QUIC are accepted first ([`QuicHandler`]).

mod datagram;

mod effects;

pub(crate) mod listener;

mod quic;

mod relay;

mod stream;

pub use crate::layer4::datagram::{Datagram, DatagramHandler, MakeDatagramHandler, SessionMatch};
pub use crate::layer4::effects::{Effect, Effects, SessionId};
pub use crate::layer4::quic::{AcceptedQuic, MakeQuicHandler, QuicHandler, QuicPlan};
pub(crate) use crate::layer4::quic::{raw_config, serve_quic};
pub(crate) use crate::layer4::stream::serve_stream;
pub use crate::layer4::stream::{
    Accepted, FirstBytes, Inspection, MakeStreamHandler, ServeStream, StreamHandler,
};
