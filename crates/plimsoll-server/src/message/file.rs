//! Content that lies in a file.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use crate::message::response::StreamError;

/// Bytes that are read of a file at a time, where the kernel does not send it by itself.
pub(crate) const PIECE: usize = 64 * 1024;

/// A part of an open file, which stays as it was when it was opened.
///
/// If the file is shorter than that by the time it is sent, the connection or the stream ends within the
/// content. Parts that are not in memory are read while the worker waits, in bounded pieces.
#[derive(Debug, Clone)]
pub struct FilePart {
    file: Arc<File>,
    offset: u64,
    length: u64,
}

impl FilePart {
    /// `length` bytes from `offset` on.
    pub fn new(file: Arc<File>, offset: u64, length: u64) -> Self {
        Self {
            file,
            offset,
            length,
        }
    }

    /// Bytes of it.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// A part of it, counted from its beginning; what lies beyond its end is left out.
    #[must_use]
    pub fn slice(&self, range: Range<u64>) -> Self {
        let start = range.start.min(self.length);
        let end = range.end.clamp(start, self.length);
        Self {
            file: Arc::clone(&self.file),
            offset: self.offset + start,
            length: end - start,
        }
    }

    /// All of it, which the caller knows to be little enough.
    ///
    /// Fails with `UnexpectedEof` where the file has become shorter.
    pub fn read(&self) -> io::Result<Bytes> {
        let length = usize::try_from(self.length).map_err(|_| io::ErrorKind::FileTooLarge)?;
        let mut bytes = vec![0; length];
        self.file.read_exact_at(&mut bytes, self.offset)?;
        Ok(Bytes::from(bytes))
    }

    /// Writes the rest of it elsewhere, piece by piece.
    ///
    /// Fails with `UnexpectedEof` where the file has become shorter.
    pub fn copy_to(&mut self, out: &mut impl io::Write) -> io::Result<()> {
        let mut piece = Vec::new();
        while !self.is_empty() {
            self.read_piece(&mut piece)?;
            out.write_all(&piece)?;
        }
        Ok(())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.length == 0
    }

    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// So many of its bytes are gone.
    pub(crate) fn advance(&mut self, count: usize) {
        let count = (count as u64).min(self.length);
        self.offset += count;
        self.length -= count;
    }

    /// Takes the next piece off, replacing what is in `piece`.
    ///
    /// Fails with `UnexpectedEof` where the file has become shorter.
    pub(crate) fn read_piece(&mut self, piece: &mut Vec<u8>) -> io::Result<()> {
        let count = usize::try_from(self.length).map_or(PIECE, |length| length.min(PIECE));
        piece.resize(count, 0);
        let read = self.file.read_at(piece, self.offset)?;
        if read == 0 && count > 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        piece.truncate(read);
        self.advance(read);
        Ok(())
    }
}

/// Piece by piece.
impl Body for FilePart {
    type Data = Bytes;
    type Error = StreamError;

    fn poll_frame(
        self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, StreamError>>> {
        let this = self.get_mut();
        if this.is_empty() {
            return Poll::Ready(None);
        }
        let mut piece = Vec::new();
        let read = this.read_piece(&mut piece);
        Poll::Ready(Some(match read {
            Ok(()) => Ok(Frame::data(Bytes::from(piece))),
            Err(error) => Err(error.into()),
        }))
    }

    fn is_end_stream(&self) -> bool {
        self.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.length)
    }
}
