//! What a connection has still to send.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use tokio::io::AsyncWrite;

use crate::stream::Stream;

/// Capacity that an idle connection may keep.
const KEPT: usize = 4 * 1024;

/// Bytes of its own, then one piece of content from where it lies.
#[derive(Debug, Default)]
pub(super) struct Output {
    bytes: Vec<u8>,
    sent: usize,
    tail: Bytes,
    must_flush: bool,
    was_full: bool,
    /// Bytes sent since somebody asked.
    progress: usize,
}

impl Output {
    pub(super) fn is_empty(&self) -> bool {
        self.sent == self.bytes.len() && self.tail.is_empty() && !self.must_flush
    }

    /// Bytes that wait.
    pub(super) fn len(&self) -> usize {
        self.bytes.len() - self.sent + self.tail.len()
    }

    /// Where to append, as long as there is no tail.
    pub(super) fn bytes(&mut self) -> &mut Vec<u8> {
        debug_assert!(self.tail.is_empty(), "the tail comes last");
        &mut self.bytes
    }

    pub(super) fn has_tail(&self) -> bool {
        !self.tail.is_empty()
    }

    /// Sends `content` after everything else.
    pub(super) fn tail(&mut self, content: Bytes) {
        debug_assert!(self.tail.is_empty(), "there is one tail at a time");
        self.tail = content;
    }

    /// Adds what of the gathered answers the socket did not take.
    pub(super) fn sent_before_tail(&mut self, rest: &[u8]) {
        self.bytes.extend_from_slice(rest);
    }

    /// The stream keeps something back.
    pub(super) fn must_flush(&mut self) {
        self.must_flush = true;
    }

    /// Requests were left unanswered because there was enough to send.
    pub(super) fn was_full(&mut self) {
        self.was_full = true;
    }

    pub(super) fn take_was_full(&mut self) -> bool {
        std::mem::take(&mut self.was_full)
    }

    /// Bytes sent since this was last asked.
    pub(super) fn take_progress(&mut self) -> usize {
        std::mem::take(&mut self.progress)
    }

    /// Sends all of it.
    pub(super) fn poll_send(
        &mut self,
        stream: &mut Stream,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        while self.sent < self.bytes.len() {
            let rest = &self.bytes[self.sent..];
            let sent = ready!(Pin::new(&mut *stream).poll_write(cx, rest))?;
            self.took(sent)?;
            self.sent += sent;
        }
        self.bytes.clear();
        self.sent = 0;
        while !self.tail.is_empty() {
            let sent = ready!(Pin::new(&mut *stream).poll_write(cx, &self.tail))?;
            self.took(sent)?;
            self.tail = self.tail.slice(sent..);
        }
        ready!(Pin::new(stream).poll_flush(cx))?;
        self.must_flush = false;
        if self.bytes.capacity() > KEPT {
            self.bytes = Vec::new();
        }
        Poll::Ready(Ok(()))
    }

    fn took(&mut self, sent: usize) -> io::Result<()> {
        if sent == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        self.progress += sent;
        Ok(())
    }
}
