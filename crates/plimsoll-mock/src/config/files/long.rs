//! A file that is sent in pieces.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use plimsoll_server::StreamError;
use tokio::task::JoinHandle;

use crate::folder::contents::long_type;

/// The bytes of one read.
const PIECE: usize = 256 * 1024;

/// A file from its beginning, as long as it was when it was opened.
#[derive(Debug)]
pub(crate) struct LongFile {
    state: State,
    left: u64,
    media_type: &'static str,
}

#[derive(Debug)]
enum State {
    Open(File),
    /// The first piece, from which its type was found.
    Begun(File, Bytes),
    Reading(JoinHandle<io::Result<(File, Bytes)>>),
    Over,
}

impl LongFile {
    /// Blocks while it reads the beginning.
    pub(super) fn open(path: &Path, length: u64) -> io::Result<Self> {
        let (file, piece) = piece(File::open(path)?, length)?;
        Ok(Self {
            media_type: long_type(path, &piece),
            state: State::Begun(file, piece),
            left: length,
        })
    }

    pub(super) fn media_type(&self) -> &'static str {
        self.media_type
    }

    fn taken(&mut self, file: File, piece: Bytes) -> Result<Frame<Bytes>, StreamError> {
        let length = piece.len() as u64;
        if length == 0 || length > self.left {
            self.state = State::Over;
            return Err("the file has changed while it was sent".into());
        }
        self.left -= length;
        self.state = if self.left == 0 {
            State::Over
        } else {
            State::Open(file)
        };
        Ok(Frame::data(piece))
    }
}

fn piece(mut file: File, left: u64) -> io::Result<(File, Bytes)> {
    let mut piece = Vec::with_capacity(PIECE);
    Read::by_ref(&mut file)
        .take(left.min(PIECE as u64))
        .read_to_end(&mut piece)?;
    Ok((file, Bytes::from(piece)))
}

impl Body for LongFile {
    type Data = Bytes;
    type Error = StreamError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, StreamError>>> {
        let this = self.get_mut();
        loop {
            match std::mem::replace(&mut this.state, State::Over) {
                State::Over => return Poll::Ready(None),
                State::Begun(file, piece) => return Poll::Ready(Some(this.taken(file, piece))),
                State::Open(file) => {
                    let left = this.left;
                    let reading = tokio::task::spawn_blocking(move || piece(file, left));
                    this.state = State::Reading(reading);
                }
                State::Reading(mut reading) => {
                    let Poll::Ready(read) = Pin::new(&mut reading).poll(cx) else {
                        this.state = State::Reading(reading);
                        return Poll::Pending;
                    };
                    let taken = match read {
                        Ok(Ok((file, piece))) => this.taken(file, piece),
                        Ok(Err(error)) => Err(error.into()),
                        Err(error) => Err(error.into()),
                    };
                    return Poll::Ready(Some(taken));
                }
            }
        }
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}
