//! Bytes that a connection has still to send.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use plimsoll_wire::poll_send_file;
use tokio::io::AsyncWrite;

use crate::message::file::FilePart;
use crate::message::response::WholeContent;
use crate::stream::Stream;

/// Capacity that an idle connection may keep.
const KEPT: usize = 4 * 1024;

/// Shorter files wait for each other with their heads, to be sent in one segment. Before a longer one the
/// head goes by itself: kept back, it made 10 MB cost a third more over loopback, for nginx as for us.
const SEGMENT: u64 = 64 * 1024;

/// Bytes of a file that one connection sends before others have their turn; what is not in memory is read
/// meanwhile.
const TURN: usize = 2 * 1024 * 1024;

/// Its own bytes, then one piece of content from where it lies.
#[derive(Debug, Default)]
pub(super) struct Output {
    bytes: Vec<u8>,
    sent: usize,
    tail: Bytes,
    /// The file behind the tail.
    file: Option<Box<FileTail>>,
    must_flush: bool,
    was_full: bool,
    /// Bytes sent since the last look.
    progress: usize,
}

/// Content of a file on its way.
#[derive(Debug)]
struct FileTail {
    part: FilePart,
    /// The kernel cannot send it by itself, so it is read first.
    by_pieces: bool,
    /// A piece of the file, of which so many bytes are sent.
    piece: Vec<u8>,
    sent: usize,
}

impl Output {
    pub(super) fn is_empty(&self) -> bool {
        self.sent == self.bytes.len() && !self.has_tail() && !self.must_flush
    }

    /// Bytes that wait in memory.
    pub(super) fn len(&self) -> usize {
        self.bytes.len() - self.sent + self.tail.len()
    }

    /// Buffer to append to, as long as there is no tail.
    pub(super) fn bytes(&mut self) -> &mut Vec<u8> {
        debug_assert!(!self.has_tail(), "the tail comes last");
        &mut self.bytes
    }

    pub(super) fn has_tail(&self) -> bool {
        !self.tail.is_empty() || self.file.is_some()
    }

    /// Sends `content` after everything else.
    pub(super) fn tail(&mut self, content: WholeContent) {
        debug_assert!(!self.has_tail(), "there is one tail at a time");
        match content {
            WholeContent::Bytes(bytes) => self.tail = bytes,
            WholeContent::File(part) if part.is_empty() => {}
            WholeContent::File(part) => {
                self.file = Some(Box::new(FileTail {
                    part,
                    by_pieces: false,
                    piece: Vec::new(),
                    sent: 0,
                }));
            }
        }
    }

    /// Puts back what was taken of [`bytes`](Self::bytes), with more behind; a tail that was set meanwhile follows it.
    pub(super) fn put_back(&mut self, bytes: Vec<u8>) {
        debug_assert!(
            self.bytes.is_empty(),
            "nothing is appended while they are taken"
        );
        self.bytes = bytes;
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

    /// Bytes sent since the last call.
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
            let file = self.file.as_ref();
            let sent = ready!(if file.is_some_and(|file| file.part.length() < SEGMENT) {
                stream.poll_write_more(cx, rest)
            } else {
                Pin::new(&mut *stream).poll_write(cx, rest)
            })?;
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
        if let Some(file) = &mut self.file {
            let sent = ready!(file.poll_send(stream, cx, &mut self.progress));
            self.file = None;
            sent?;
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

impl FileTail {
    /// Sends all of it, a turn at a time; `progress` grows with what is sent.
    fn poll_send(
        &mut self,
        stream: &mut Stream,
        cx: &mut Context<'_>,
        progress: &mut usize,
    ) -> Poll<io::Result<()>> {
        let mut turn = TURN;
        while self.sent < self.piece.len() || !self.part.is_empty() {
            if turn == 0 {
                return poll_yield(cx);
            }
            let by_kernel = stream.in_the_clear().filter(|_| !self.by_pieces);
            let sent = if let Some(socket) = by_kernel {
                let left = usize::try_from(self.part.length()).unwrap_or(usize::MAX);
                let (file, offset) = (self.part.file(), self.part.offset());
                let count = left.min(turn);
                match ready!(poll_send_file(socket, cx, file, offset, count)) {
                    Ok(sent) => {
                        self.part.advance(sent);
                        sent
                    }
                    Err(error) if error.kind() == io::ErrorKind::Unsupported => {
                        self.by_pieces = true;
                        continue;
                    }
                    Err(error) => return Poll::Ready(Err(error)),
                }
            } else {
                if self.sent == self.piece.len() {
                    self.part.read_piece(&mut self.piece)?;
                    self.sent = 0;
                }
                let rest = &self.piece[self.sent..];
                let sent = ready!(Pin::new(&mut *stream).poll_write(cx, rest))?;
                self.sent += sent;
                sent
            };
            if sent == 0 {
                // The file is shorter than its announced length.
                return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()));
            }
            *progress += sent;
            turn = turn.saturating_sub(sent);
        }
        Poll::Ready(Ok(()))
    }
}

/// Has the task go on once others had their turn and sockets were looked at.
fn poll_yield(cx: &mut Context<'_>) -> Poll<io::Result<()>> {
    std::pin::pin!(tokio::task::yield_now()).poll(cx).map(Ok)
}
