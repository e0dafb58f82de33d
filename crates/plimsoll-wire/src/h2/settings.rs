//! The settings of both sides, and what we accept from the peer.

use crate::h2::ConnectionError;
use crate::h2::flow;
use crate::h2::hpack::{DEFAULT_TABLE_SIZE, FieldLimits};

pub(crate) const HEADER_TABLE_SIZE: u16 = 0x1;
pub(crate) const ENABLE_PUSH: u16 = 0x2;
pub(crate) const MAX_CONCURRENT_STREAMS: u16 = 0x3;
pub(crate) const INITIAL_WINDOW_SIZE: u16 = 0x4;
pub(crate) const MAX_FRAME_SIZE: u16 = 0x5;
pub(crate) const MAX_HEADER_LIST_SIZE: u16 = 0x6;
pub(crate) const ENABLE_CONNECT_PROTOCOL: u16 = 0x8;

const LEAST_FRAME_SIZE: u32 = 1 << 14;
const MOST_FRAME_SIZE: u32 = (1 << 24) - 1;
/// The most streams at a time that a peer can be configured for.
const MOST_STREAMS: u32 = 1 << 20;
/// Streams to open before the peer's SETTINGS are known: the first exchange need not wait for them, and
/// more might be refused.
const STREAMS_BEFORE_SETTINGS: u32 = 1;

/// Settings of a connection; values out of range are clamped to those of RFC 9113.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Streams at a time, whatever more the peer allows.
    pub streams: u32,
    /// Window of each stream in bytes, at most 2^31-1.
    pub stream_window: u32,
    /// Window of the connection in bytes, 65535 to 2^31-1.
    pub connection_window: u32,
    /// The longest frame that the peer may send, 2^14 to 2^24-1 bytes.
    pub frame_bytes: u32,
    /// The table that the peer may use to compress header fields, in bytes.
    pub header_table_bytes: u32,
    /// Bounds on what the peer sends.
    pub limits: Limits,
}

impl Default for Settings {
    /// Windows as large as h2load's: nothing is held back, because content is not kept.
    fn default() -> Self {
        Self {
            streams: 100,
            stream_window: (1 << 30) - 1,
            connection_window: (1 << 30) - 1,
            frame_bytes: LEAST_FRAME_SIZE,
            header_table_bytes: DEFAULT_TABLE_SIZE,
            limits: Limits::default(),
        }
    }
}

impl Settings {
    /// The same, with every value in its range.
    pub(crate) fn in_range(self) -> Self {
        Self {
            streams: self.streams.clamp(1, MOST_STREAMS),
            stream_window: self.stream_window.min(flow::MOST),
            connection_window: self.connection_window.clamp(flow::INITIAL, flow::MOST),
            frame_bytes: self.frame_bytes.clamp(LEAST_FRAME_SIZE, MOST_FRAME_SIZE),
            limits: Limits {
                output_bytes: self.limits.output_bytes.max(1),
                ..self.limits
            },
            ..self
        }
    }

    /// The entries of the first SETTINGS frame.
    pub(crate) fn entries(&self) -> [(u16, u32); 5] {
        let list = u32::try_from(self.limits.header_list_bytes).unwrap_or(u32::MAX);
        [
            (HEADER_TABLE_SIZE, self.header_table_bytes),
            (ENABLE_PUSH, 0),
            (INITIAL_WINDOW_SIZE, self.stream_window),
            (MAX_FRAME_SIZE, self.frame_bytes),
            (MAX_HEADER_LIST_SIZE, list),
        ]
    }
}

/// Bounds on what the peer sends; all are on by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a header block on the wire.
    pub header_block_bytes: usize,
    /// CONTINUATION frames of a header block.
    pub continuations: usize,
    /// Header fields of a block.
    pub headers: usize,
    /// Bytes of the header fields of a block, decompressed, with 32 for each.
    pub header_list_bytes: usize,
    /// Bytes of content of one response.
    pub body_bytes: u64,
    /// Interim (1xx) responses before the final one.
    pub interim: usize,
    /// PING and SETTINGS frames whose answers are not written yet.
    pub unwritten_answers: usize,
    /// Bytes in the output buffer above which no more content of requests is added, and the longest
    /// piece of it; at least 1.
    pub output_bytes: usize,
}

impl Limits {
    pub(crate) fn fields(&self) -> FieldLimits {
        FieldLimits {
            count: self.headers,
            bytes: self.header_list_bytes,
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            header_block_bytes: 64 * 1024,
            continuations: 32,
            headers: 128,
            header_list_bytes: 64 * 1024,
            body_bytes: 1 << 40,
            interim: 16,
            unwritten_answers: 1024,
            output_bytes: 256 * 1024,
        }
    }
}

/// The peer's settings (RFC 9113, section 6.5.2).
#[derive(Debug, Clone, Copy)]
pub(crate) struct PeerSettings {
    pub(crate) streams: u32,
    pub(crate) stream_window: u32,
    pub(crate) frame_bytes: u32,
    pub(crate) header_table_bytes: u32,
    /// CONNECT may name a protocol (RFC 8441).
    pub(crate) connect_protocol: bool,
    pub(crate) is_known: bool,
}

impl Default for PeerSettings {
    fn default() -> Self {
        Self {
            streams: STREAMS_BEFORE_SETTINGS,
            stream_window: flow::INITIAL,
            frame_bytes: LEAST_FRAME_SIZE,
            header_table_bytes: DEFAULT_TABLE_SIZE,
            connect_protocol: false,
            is_known: false,
        }
    }
}

impl PeerSettings {
    /// Takes one setting.
    pub(crate) fn set(&mut self, id: u16, value: u32) -> Result<(), ConnectionError> {
        let is_valid = match id {
            // A server does not take pushes, so it may only say so.
            ENABLE_PUSH => value == 0,
            INITIAL_WINDOW_SIZE => value <= flow::MOST,
            MAX_FRAME_SIZE => (LEAST_FRAME_SIZE..=MOST_FRAME_SIZE).contains(&value),
            ENABLE_CONNECT_PROTOCOL => value <= 1,
            _ => true,
        };
        if !is_valid {
            return Err(ConnectionError::Setting { id, value });
        }
        match id {
            HEADER_TABLE_SIZE => self.header_table_bytes = value,
            MAX_CONCURRENT_STREAMS => self.streams = value,
            INITIAL_WINDOW_SIZE => self.stream_window = value,
            MAX_FRAME_SIZE => self.frame_bytes = value,
            ENABLE_CONNECT_PROTOCOL => self.connect_protocol = value == 1,
            _ => {}
        }
        Ok(())
    }

    /// The first SETTINGS came: no limit on streams but one that they name.
    pub(crate) fn begin(&mut self) {
        if !self.is_known {
            self.is_known = true;
            self.streams = u32::MAX;
        }
    }
}
