//! DEFLATE (RFC 1951) decoded piece by piece, and the limits on how far content may grow by it.
//!
//! Shared by content codings of HTTP and messages of WebSocket.

use std::io;

use flate2::{Decompress, FlushDecompress, Status};

/// Decoded bytes for each encoded byte at most, once there are more than [`FREE_BYTES`] of them.
pub const MOST_RATIO: u64 = 200;

/// Decoded bytes of any ratio.
pub const FREE_BYTES: u64 = 1 << 20;

/// Decoded bytes in one piece at most.
const STEP: usize = 4 * 1024;

/// Bytes that are not DEFLATE.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("invalid DEFLATE data")]
pub struct InvalidDeflate;

impl From<InvalidDeflate> for io::Error {
    fn from(error: InvalidDeflate) -> Self {
        Self::new(io::ErrorKind::InvalidData, error)
    }
}

/// A decoder of one stream after the other.
///
/// The writers of `flate2` do not report whether a stream is complete.
#[derive(Debug)]
pub struct Inflate {
    decompress: Decompress,
    has_zlib_header: bool,
    is_complete: bool,
}

impl Inflate {
    /// A decoder at the start of a stream.
    ///
    /// - `has_zlib_header`: whether streams have the format of RFC 1950.
    pub fn new(has_zlib_header: bool) -> Self {
        Self {
            decompress: Decompress::new(has_zlib_header),
            has_zlib_header,
            is_complete: false,
        }
    }

    /// Whether the stream has ended.
    pub fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Passes to `sink` what `bytes` decode to, in pieces of at most 4 KiB.
    ///
    /// Returns how many bytes belong to the stream: less than all of them only where it ends.
    /// The first error of `sink` ends decoding, so it can limit the decoded bytes.
    pub fn write<E: From<InvalidDeflate>>(
        &mut self,
        bytes: &[u8],
        mut sink: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<usize, E> {
        let mut memory = [0; STEP];
        let mut taken = 0;
        let mut may_yield_more = false;
        while (taken < bytes.len() || may_yield_more) && !self.is_complete {
            let before = (self.decompress.total_in(), self.decompress.total_out());
            let status = self
                .decompress
                .decompress(&bytes[taken..], &mut memory, FlushDecompress::None)
                .map_err(|_| InvalidDeflate)?;
            let consumed = in_memory(self.decompress.total_in() - before.0);
            let yielded = in_memory(self.decompress.total_out() - before.1);
            taken += consumed;
            self.is_complete = status == Status::StreamEnd;
            may_yield_more = yielded == STEP;
            if yielded > 0 {
                sink(&memory[..yielded])?;
            }
            if consumed == 0 && yielded == 0 && !self.is_complete {
                break;
            }
        }
        Ok(taken)
    }

    /// Goes back to the start of a stream, in the same memory.
    pub fn reset(&mut self) {
        self.decompress.reset(self.has_zlib_header);
        self.is_complete = false;
    }
}

/// A count of bytes that are in memory.
fn in_memory(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}
