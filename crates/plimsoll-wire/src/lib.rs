//! Sockets, clocks, TLS material and the sans-I/O codecs of plimsoll's hot paths.

mod clock;

pub mod cores;
pub mod descriptors;
pub mod process;

pub use crate::clock::SystemClock;
