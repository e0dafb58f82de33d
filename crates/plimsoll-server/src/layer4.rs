//! Connections and datagrams that are not HTTP: the seams for what takes them, and the listeners that feed these.
//!
//! What serves a connection is decided by its first bytes ([`StreamHandler`]); datagrams go to a core without sockets and
//! clock, whose effects the listener carries out ([`DatagramHandler`]).

mod datagram;

mod effects;

pub(crate) mod listener;

mod stream;

pub use crate::layer4::datagram::{Datagram, DatagramHandler, MakeDatagramHandler};
pub use crate::layer4::effects::{Effect, Effects, SessionId};
pub(crate) use crate::layer4::stream::take;
pub use crate::layer4::stream::{
    Accepted, FirstBytes, Inspection, MakeStreamHandler, ServeStream, StreamHandler,
};
