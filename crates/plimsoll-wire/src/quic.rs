//! QUIC as those see it who forward it: what is in the clear, and what every observer can decrypt.

pub(crate) mod header;
pub(crate) mod retry;
pub(crate) mod token;
