//! Compressed messages: permessage-deflate (RFC 7692), client side.
//!
//! Without context takeover in both directions: each message is compressed on its own, so a connection
//! holds no window between messages. Servers that cannot do that leave the extension out.

use flate2::{Compress, Compression, FlushCompress};

use super::error::{FrameError, HandshakeError};
use crate::inflate::{FREE_BYTES, Inflate, InvalidDeflate, MOST_RATIO};

/// The value of `Sec-WebSocket-Extensions` in a request that offers compression.
pub const DEFLATE_OFFER: &str =
    "permessage-deflate; server_no_context_takeover; client_no_context_takeover";

/// The end of every flushed block, which is not sent (section 7.2.1).
const TAIL: [u8; 4] = [0, 0, 0xff, 0xff];

/// An empty block that is the last one.
const LAST_BLOCK: [u8; 5] = [1, 0, 0, 0xff, 0xff];

/// An empty block without its tail: the payload of an empty message (section 7.2.3.6).
const EMPTY: u8 = 0;

/// Whether the server accepted [`DEFLATE_OFFER`].
///
/// - `extensions`: the values of `Sec-WebSocket-Extensions` in its response.
///
/// Fails on anything that does not answer the offer, as sections 5.1 and 7.1 demand.
pub fn accepts_deflate<'a>(
    extensions: impl IntoIterator<Item = &'a str>,
) -> Result<bool, HandshakeError> {
    let mut is_accepted = false;
    // No valid parameter holds a comma or a semicolon, not even a quoted one.
    let extensions = extensions.into_iter().flat_map(|value| value.split(','));
    for extension in extensions.map(str::trim).filter(|it| !it.is_empty()) {
        let mut parts = extension.split(';').map(str::trim);
        let name = parts.next().unwrap_or_default();
        if is_accepted || !name.eq_ignore_ascii_case("permessage-deflate") {
            return Err(HandshakeError::Extension(extension.to_owned()));
        }
        if !are_acceptable(parts) {
            return Err(HandshakeError::Deflate(extension.to_owned()));
        }
        is_accepted = true;
    }
    Ok(is_accepted)
}

/// Whether these parameters answer [`DEFLATE_OFFER`] (section 7.1).
fn are_acceptable<'a>(parameters: impl Iterator<Item = &'a str>) -> bool {
    let mut seen = Vec::new();
    for parameter in parameters {
        let (name, value) = match parameter.split_once('=') {
            Some((name, value)) => (name.trim_end(), Some(value.trim_start())),
            None => (parameter, None),
        };
        let name = name.to_ascii_lowercase();
        let is_valid = match (name.as_str(), value) {
            ("server_no_context_takeover" | "client_no_context_takeover", None) => true,
            ("server_max_window_bits", Some(bits)) => {
                let bits = bits
                    .strip_prefix('"')
                    .and_then(|bits| bits.strip_suffix('"'))
                    .unwrap_or(bits);
                // Any of these windows fits into the largest one, which is always there.
                matches!(bits, "8" | "9" | "10" | "11" | "12" | "13" | "14" | "15")
            }
            // `client_max_window_bits` is not offered, so no server may demand it.
            _ => false,
        };
        if !is_valid || seen.contains(&name) {
            return false;
        }
        seen.push(name);
    }
    // What was offered has to be in the response; the client's own parameter is a hint.
    seen.iter().any(|name| name == "server_no_context_takeover")
}

/// Compresses one message after the other, in memory that is used again: some 300 kB.
#[derive(Debug)]
pub struct Deflater {
    compress: Compress,
}

/// Room for what compressing adds to very short messages.
const LEAST_ROOM: usize = 64;

impl Default for Deflater {
    fn default() -> Self {
        Self {
            compress: Compress::new(Compression::fast(), false),
        }
    }
}

impl Deflater {
    /// Replaces the content of `out` by the compressed payload of `message` (section 7.2.1).
    pub fn deflate(&mut self, message: &[u8], out: &mut Vec<u8>) {
        self.compress.reset();
        out.clear();
        let mut rest = message;
        loop {
            out.reserve(rest.len() / 2 + LEAST_ROOM);
            let before = self.compress.total_in();
            self.compress
                .compress_vec(rest, out, FlushCompress::Sync)
                .expect("a compressor that was just reset takes any content");
            let taken = self.compress.total_in() - before;
            rest = usize::try_from(taken).map_or(&[], |taken| &rest[taken..]);
            // A flush is complete once it leaves room.
            if rest.is_empty() && out.len() < out.capacity() {
                break;
            }
        }
        if out.ends_with(&TAIL) {
            out.truncate(out.len() - TAIL.len());
        }
        if out.is_empty() {
            out.push(EMPTY);
        }
    }
}

/// Decompresses messages as their frames arrive.
#[derive(Debug)]
pub(super) struct Inflater {
    inflate: Inflate,
    encoded: u64,
    decoded: u64,
}

impl From<InvalidDeflate> for FrameError {
    fn from(_: InvalidDeflate) -> Self {
        Self::Deflate
    }
}

impl Inflater {
    pub(super) fn new() -> Self {
        Self {
            inflate: Inflate::new(false),
            encoded: 0,
            decoded: 0,
        }
    }

    /// Passes to `sink` what a piece of a payload decompresses to.
    pub(super) fn push(
        &mut self,
        mut payload: &[u8],
        mut sink: impl FnMut(&[u8]) -> Result<(), FrameError>,
    ) -> Result<(), FrameError> {
        self.encoded += payload.len() as u64;
        let most = self.encoded.saturating_mul(MOST_RATIO).max(FREE_BYTES);
        while !payload.is_empty() {
            if self.inflate.is_complete() {
                // A block may be marked as the last one, and another one follow (section 7.2.3.4).
                self.inflate.reset();
            }
            let decoded = &mut self.decoded;
            let taken = self.inflate.write(payload, |piece| {
                *decoded += piece.len() as u64;
                if *decoded > most {
                    return Err(FrameError::Ratio { limit: MOST_RATIO });
                }
                sink(piece)
            })?;
            if taken == 0 && !self.inflate.is_complete() {
                return Err(FrameError::Deflate);
            }
            payload = &payload[taken..];
        }
        Ok(())
    }

    /// Ends a message: the bytes that were still held back come now, and the next message begins afresh.
    ///
    /// Fails if the message stops within a block.
    pub(super) fn finish(
        &mut self,
        mut sink: impl FnMut(&[u8]) -> Result<(), FrameError>,
    ) -> Result<(), FrameError> {
        // A last block without the byte behind it is no valid message, but other clients accept it.
        if !self.inflate.is_complete() {
            self.push(&TAIL, &mut sink)?;
            let taken = self.inflate.write(&LAST_BLOCK, &mut sink)?;
            if taken < LAST_BLOCK.len() || !self.inflate.is_complete() {
                return Err(FrameError::Deflate);
            }
        }
        self.inflate.reset();
        self.encoded = 0;
        self.decoded = 0;
        Ok(())
    }
}
