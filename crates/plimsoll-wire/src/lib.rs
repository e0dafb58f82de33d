//! Sockets, clocks, TLS material and the sans-I/O codecs of plimsoll's hot paths.

mod clock;

pub use crate::clock::SystemClock;
