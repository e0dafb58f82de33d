//! The content of a response as it comes, read only as fast as the client takes it.

use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use plimsoll_server::StreamError;
use plimsoll_wire::h1::KnownHead;
use tokio::io::{AsyncRead, ReadBuf};
use tokio::time::Sleep;

use super::exchange::Sink;
use super::pool::{Line, Pool};

/// What is still to come.
pub(crate) struct PassedContent {
    pool: Rc<Pool>,
    /// Gone once all has come.
    line: Option<Line>,
    /// Whether the connection may be used again.
    is_kept: bool,
    first: Option<Bytes>,
    /// So much is left of what was announced.
    left: Option<u64>,
    buffer: Vec<u8>,
    timer: Option<Pin<Box<Sleep>>>,
}

impl std::fmt::Debug for PassedContent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PassedContent")
            .field("left", &self.left)
            .finish_non_exhaustive()
    }
}

impl PassedContent {
    pub(super) fn new(
        pool: Rc<Pool>,
        line: Line,
        length: Option<u64>,
        is_kept: bool,
        buffer: Vec<u8>,
    ) -> Self {
        Self {
            pool,
            line: Some(line),
            is_kept,
            first: None,
            left: length,
            buffer,
            timer: None,
        }
    }

    /// The same, of which the first piece has come with the head.
    pub(super) fn begun(mut self, first: Bytes, is_whole: bool) -> Self {
        if is_whole {
            self.end();
            // What HEAD is answered with has a length, though no content.
            if !first.is_empty() {
                self.left = Some(first.len() as u64);
            }
        }
        self.first = Some(first).filter(|first| !first.is_empty());
        self
    }

    /// All has come.
    fn end(&mut self) {
        self.timer = None;
        if let Some(line) = self.line.take().filter(|_| self.is_kept) {
            self.pool.keep(line);
        }
    }

    /// The next piece; nothing at the end.
    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, StreamError>>> {
        loop {
            let Some(line) = &mut self.line else {
                return Poll::Ready(None);
            };
            let mut buffer = ReadBuf::new(&mut self.buffer);
            match Pin::new(&mut line.stream).poll_read(cx, &mut buffer) {
                Poll::Pending => return self.poll_late(cx),
                Poll::Ready(Err(error)) => return Poll::Ready(Some(self.broken(error))),
                Poll::Ready(Ok(())) => {}
            }
            self.timer = None;
            let count = buffer.filled().len();
            let mut sink = Sink::default();
            let is_whole = if count == 0 {
                if let Err(error) = line.decoder.end_of_stream() {
                    return Poll::Ready(Some(self.broken(error)));
                }
                self.is_kept = false;
                true
            } else {
                let input = &self.buffer[..count];
                match line.decoder.decode(input, &mut sink, &mut KnownHead::new()) {
                    Err(error) => return Poll::Ready(Some(self.broken(error))),
                    Ok(decoded) => {
                        self.is_kept &= decoded.consumed == count;
                        decoded.complete
                    }
                }
            };
            if is_whole {
                self.end();
            }
            if !sink.content.is_empty() {
                return Poll::Ready(Some(Ok(Bytes::from(sink.content))));
            }
        }
    }

    /// Nothing has come: that must not last.
    fn poll_late(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, StreamError>>> {
        let timeout = self.pool.upstream.timeout;
        let timer = self
            .timer
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(timeout)));
        match timer.as_mut().poll(cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(()) => {
                let late = io::Error::from(io::ErrorKind::TimedOut);
                Poll::Ready(Some(self.broken(late)))
            }
        }
    }

    fn broken(&mut self, error: impl Into<StreamError>) -> Result<Bytes, StreamError> {
        self.line = None;
        Err(error.into())
    }
}

impl Body for PassedContent {
    type Data = Bytes;
    type Error = StreamError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, StreamError>>> {
        let content = self.get_mut();
        let piece = match content.first.take() {
            Some(first) => Poll::Ready(Some(Ok(first))),
            None => content.poll_piece(cx),
        };
        if let Poll::Ready(Some(Ok(piece))) = &piece {
            let length = piece.len() as u64;
            content.left = content.left.map(|left| left.saturating_sub(length));
        }
        piece.map(|piece| piece.map(|piece| piece.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        self.line.is_none() && self.first.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        self.left.map_or_else(SizeHint::new, SizeHint::with_exact)
    }
}
