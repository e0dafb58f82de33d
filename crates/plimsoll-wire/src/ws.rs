//! WebSocket (RFC 6455) without I/O: the client's side of the handshake, and frames of both sides.
//!
//! The only extension is permessage-deflate (RFC 7692), on the client's side and without context takeover. Where it
//! is not agreed on, the reserved bits of a frame are always zero.

mod error;

mod frame;

mod utf8;

mod deflate;

mod decoder;

mod handshake;

pub use self::decoder::{Close, Decoder, Event, FrameSink, Limits, Role};
pub use self::deflate::{DEFLATE_OFFER, Deflater, accepts_deflate};
pub use self::error::{FrameError, HandshakeError};
pub use self::frame::{
    MOST_CONTROL_BYTES, MessageKind, Opcode, apply_mask, encode_close, encode_compressed,
    encode_frame,
};
pub use self::handshake::{Handshake, Key};

#[cfg(test)]
mod tests;
