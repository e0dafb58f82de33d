//! A connection with what waits to be written on it.

use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};
use std::time::Instant;

use bytes::{Buf as _, Bytes};
use plimsoll_wire::h1::{Limits, ResponseDecoder, chunk_head};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::{Connection, Stream};

/// Content up to this length is copied behind what waits to be written; longer content is written from where it is.
const COPIED_BYTES: usize = 4 * 1024;

/// A connection that carries one exchange at a time.
#[derive(Debug)]
pub(in crate::forward) struct Http1Connection {
    pub(in crate::forward) stream: Stream,
    /// The other end; a unix socket has none.
    pub(in crate::forward) peer: Option<SocketAddr>,
    pub(super) decoder: ResponseDecoder,
    /// Heads, framing and short content, from `written` on.
    pub(super) out: Vec<u8>,
    written: usize,
    /// Content that follows `out`.
    pub(super) chunk: Bytes,
    is_unflushed: bool,
    /// When it is old: names should be looked up again.
    pub(in crate::forward) use_until: Instant,
    pub(in crate::forward) idle_since: Instant,
    /// It carried an exchange before.
    pub(in crate::forward) is_used: bool,
    /// Exchanges that it has carried.
    pub(super) carried: u64,
}

impl Http1Connection {
    pub(in crate::forward) fn new(
        connection: Connection,
        limits: Limits,
        now: Instant,
        use_until: Instant,
    ) -> Self {
        Self {
            stream: connection.stream,
            peer: connection.peer,
            decoder: ResponseDecoder::new(limits),
            out: Vec::new(),
            written: 0,
            chunk: Bytes::new(),
            is_unflushed: false,
            use_until,
            idle_since: now,
            is_used: false,
            carried: 0,
        }
    }

    /// Whether the server has sent nothing while the connection was idle, not even its end.
    pub(in crate::forward) fn is_quiet(&mut self) -> bool {
        let mut context = Context::from_waker(Waker::noop());
        let mut byte = [0];
        let mut buffer = ReadBuf::new(&mut byte);
        Pin::new(&mut self.stream)
            .poll_read(&mut context, &mut buffer)
            .is_pending()
    }

    pub(super) fn has_output(&self) -> bool {
        self.written < self.out.len() || !self.chunk.is_empty()
    }

    /// Writes what is staged; returns the bytes written through `count`.
    pub(super) fn poll_write(
        &mut self,
        context: &mut Context<'_>,
        count: &mut u64,
    ) -> Poll<io::Result<()>> {
        while self.has_output() {
            let out = &self.out[self.written..];
            let stream = Pin::new(&mut self.stream);
            let written = if self.chunk.is_empty() {
                ready!(stream.poll_write(context, out))?
            } else if out.is_empty() {
                ready!(stream.poll_write(context, &self.chunk))?
            } else {
                let slices = [IoSlice::new(out), IoSlice::new(&self.chunk)];
                ready!(stream.poll_write_vectored(context, &slices))?
            };
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            *count += written as u64;
            self.is_unflushed = true;
            let from_out = written.min(self.out.len() - self.written);
            self.written += from_out;
            self.chunk.advance(written - from_out);
            if self.written == self.out.len() {
                self.out.clear();
                self.written = 0;
            }
        }
        if self.is_unflushed {
            ready!(Pin::new(&mut self.stream).poll_flush(context))?;
            self.is_unflushed = false;
        }
        Poll::Ready(Ok(()))
    }

    /// Stages content of the request; nothing may be staged behind a long chunk.
    pub(super) fn stage(&mut self, data: Bytes, is_chunked: bool) {
        debug_assert!(self.chunk.is_empty());
        if is_chunked {
            chunk_head(&mut self.out, data.len());
        }
        if data.len() <= COPIED_BYTES {
            self.out.extend_from_slice(&data);
            if is_chunked {
                self.out.extend_from_slice(b"\r\n");
            }
        } else {
            self.chunk = data;
        }
    }
}
