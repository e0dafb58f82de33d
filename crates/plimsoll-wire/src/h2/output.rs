//! Bytes on their way to the peer.

/// One buffer for the frames of all streams, written from its front.
#[derive(Debug, Default)]
pub(crate) struct Output {
    pub(crate) bytes: Vec<u8>,
    written: usize,
}

/// Written bytes that are kept at the front before the rest is moved there.
const KEPT_BYTES: usize = 64 * 1024;

impl Output {
    /// Bytes that are not written yet.
    #[inline]
    pub(crate) fn unwritten(&self) -> &[u8] {
        &self.bytes[self.written..]
    }

    /// Takes `count` bytes off the front, at most what is there.
    #[inline]
    pub(crate) fn advance(&mut self, count: usize) {
        self.written = (self.written + count).min(self.bytes.len());
        if self.written == self.bytes.len() {
            self.bytes.clear();
            self.written = 0;
        } else if self.written > KEPT_BYTES {
            self.bytes.drain(..self.written);
            self.written = 0;
        }
    }
}
