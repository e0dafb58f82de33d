//! Sockets, clocks, TLS material and the sans-I/O codecs of plimsoll's hot paths.

mod clock;

mod socket;

pub mod tls;

pub use crate::clock::SystemClock;
pub use crate::socket::{Keepalive, SocketOptions, connect_tcp};
