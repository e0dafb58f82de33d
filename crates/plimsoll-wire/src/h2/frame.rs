//! Frames: their headers as read, and the few kinds that a client writes (RFC 9113, sections 4 and 6).

use crate::h2::ErrorCode;

/// Octets of a frame header.
pub(crate) const HEADER_BYTES: usize = 9;
/// The connection preface of a client (section 3.4).
pub(crate) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

pub(crate) const DATA: u8 = 0x0;
pub(crate) const HEADERS: u8 = 0x1;
pub(crate) const PRIORITY: u8 = 0x2;
pub(crate) const RST_STREAM: u8 = 0x3;
pub(crate) const SETTINGS: u8 = 0x4;
pub(crate) const PUSH_PROMISE: u8 = 0x5;
pub(crate) const PING: u8 = 0x6;
pub(crate) const GOAWAY: u8 = 0x7;
pub(crate) const WINDOW_UPDATE: u8 = 0x8;
pub(crate) const CONTINUATION: u8 = 0x9;

const FLAG_ACK: u8 = 0x1;
const FLAG_END_STREAM: u8 = 0x1;
const FLAG_END_HEADERS: u8 = 0x4;
const FLAG_PADDED: u8 = 0x8;
const FLAG_PRIORITY: u8 = 0x20;

/// The header of a frame (section 4.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FrameHeader {
    /// Octets of the payload.
    pub(crate) length: u32,
    pub(crate) kind: u8,
    flags: u8,
    /// The stream, 0 for the connection.
    pub(crate) stream: u32,
}

impl FrameHeader {
    #[inline]
    pub(crate) fn parse(bytes: [u8; HEADER_BYTES]) -> Self {
        let [a, b, c, kind, flags, stream @ ..] = bytes;
        Self {
            length: u32::from_be_bytes([0, a, b, c]),
            kind,
            flags,
            stream: u32::from_be_bytes(stream) & 0x7fff_ffff,
        }
    }

    /// Octets of the whole frame.
    #[inline]
    pub(crate) fn bytes(self) -> u64 {
        HEADER_BYTES as u64 + u64::from(self.length)
    }

    pub(crate) fn name(self) -> &'static str {
        match self.kind {
            DATA => "DATA",
            HEADERS => "HEADERS",
            PRIORITY => "PRIORITY",
            RST_STREAM => "RST_STREAM",
            SETTINGS => "SETTINGS",
            PUSH_PROMISE => "PUSH_PROMISE",
            PING => "PING",
            GOAWAY => "GOAWAY",
            WINDOW_UPDATE => "WINDOW_UPDATE",
            CONTINUATION => "CONTINUATION",
            _ => "unknown",
        }
    }

    /// Of SETTINGS and PING.
    pub(crate) fn is_ack(self) -> bool {
        self.flags & FLAG_ACK != 0
    }

    /// Of DATA and HEADERS.
    pub(crate) fn ends_stream(self) -> bool {
        self.flags & FLAG_END_STREAM != 0
    }

    /// Of HEADERS and CONTINUATION.
    pub(crate) fn ends_headers(self) -> bool {
        self.flags & FLAG_END_HEADERS != 0
    }

    /// Of DATA and HEADERS.
    pub(crate) fn is_padded(self) -> bool {
        self.flags & FLAG_PADDED != 0
    }

    /// Of HEADERS: five octets of priority come before the block.
    pub(crate) fn has_priority(self) -> bool {
        self.flags & FLAG_PRIORITY != 0
    }
}

fn put_header(output: &mut Vec<u8>, length: usize, kind: u8, flags: u8, stream: u32) {
    let length = u32::try_from(length).expect("a frame is shorter than 16 MiB");
    let mut header = [0; HEADER_BYTES];
    header[..4].copy_from_slice(&(length << 8 | u32::from(kind)).to_be_bytes());
    header[4] = flags;
    header[5..].copy_from_slice(&stream.to_be_bytes());
    output.extend_from_slice(&header);
}

/// Appends HEADERS with `block`, and CONTINUATION frames where it is longer than `most`.
#[inline]
pub(crate) fn put_headers(
    output: &mut Vec<u8>,
    stream: u32,
    block: &[u8],
    ends_stream: bool,
    most: usize,
) {
    let end_flag = if ends_stream { FLAG_END_STREAM } else { 0 };
    if block.len() <= most {
        let flags = end_flag | FLAG_END_HEADERS;
        put_header(output, block.len(), HEADERS, flags, stream);
        output.extend_from_slice(block);
        return;
    }
    let (first, mut rest) = block.split_at(most);
    put_header(output, first.len(), HEADERS, end_flag, stream);
    output.extend_from_slice(first);
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(rest.len().min(most));
        let flags = if after.is_empty() {
            FLAG_END_HEADERS
        } else {
            0
        };
        put_header(output, piece.len(), CONTINUATION, flags, stream);
        output.extend_from_slice(piece);
        rest = after;
    }
}

/// Appends DATA without padding.
pub(crate) fn put_data(output: &mut Vec<u8>, stream: u32, content: &[u8], ends_stream: bool) {
    let flags = if ends_stream { FLAG_END_STREAM } else { 0 };
    put_header(output, content.len(), DATA, flags, stream);
    output.extend_from_slice(content);
}

pub(crate) fn put_rst_stream(output: &mut Vec<u8>, stream: u32, code: ErrorCode) {
    put_header(output, 4, RST_STREAM, 0, stream);
    output.extend_from_slice(&code.0.to_be_bytes());
}

pub(crate) fn put_window_update(output: &mut Vec<u8>, stream: u32, increment: u32) {
    put_header(output, 4, WINDOW_UPDATE, 0, stream);
    output.extend_from_slice(&increment.to_be_bytes());
}

/// - `settings`: identifiers and values.
pub(crate) fn put_settings(output: &mut Vec<u8>, settings: &[(u16, u32)]) {
    put_header(output, settings.len() * 6, SETTINGS, 0, 0);
    for (id, value) in settings {
        output.extend_from_slice(&id.to_be_bytes());
        output.extend_from_slice(&value.to_be_bytes());
    }
}

pub(crate) fn put_settings_ack(output: &mut Vec<u8>) {
    put_header(output, 0, SETTINGS, FLAG_ACK, 0);
}

pub(crate) fn put_ping_ack(output: &mut Vec<u8>, payload: [u8; 8]) {
    put_header(output, 8, PING, FLAG_ACK, 0);
    output.extend_from_slice(&payload);
}

pub(crate) fn put_ping(output: &mut Vec<u8>, payload: [u8; 8]) {
    put_header(output, 8, PING, 0, 0);
    output.extend_from_slice(&payload);
}

/// A client has processed no stream of the peer's, so the last one is 0.
pub(crate) fn put_goaway(output: &mut Vec<u8>, code: ErrorCode) {
    put_header(output, 8, GOAWAY, 0, 0);
    output.extend_from_slice(&0_u32.to_be_bytes());
    output.extend_from_slice(&code.0.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_block_is_continued() {
        let mut output = Vec::new();
        put_headers(&mut output, 5, b"abcdefg", true, 3);
        let expected = [
            &[0, 0, 3, HEADERS, FLAG_END_STREAM, 0, 0, 0, 5][..],
            b"abc",
            &[0, 0, 3, CONTINUATION, 0, 0, 0, 0, 5],
            b"def",
            &[0, 0, 1, CONTINUATION, FLAG_END_HEADERS, 0, 0, 0, 5],
            b"g",
        ]
        .concat();
        assert_eq!(output, expected);
    }

    #[test]
    fn a_header_is_read_as_section_4_1_says() {
        let header = FrameHeader::parse([0x01, 0x02, 0x03, HEADERS, 0x2d, 0x80, 0, 0, 7]);
        assert_eq!((header.length, header.stream), (0x01_02_03, 7));
        assert!(header.ends_stream() && header.ends_headers());
        assert!(header.is_padded() && header.has_priority());
    }
}
