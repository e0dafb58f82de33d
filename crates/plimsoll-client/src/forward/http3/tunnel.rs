//! A stream of HTTP/3 as one of bytes, behind an extended CONNECT that the server granted (RFC 9220).

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, Bytes};
use h3::error::StreamError;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::{BodyPart, Job, QuicPlace, Receiving, Sending, transfer};

/// Bytes that are written at a time.
const PIECE_BYTES: usize = 16 * 1024;

/// Both halves of the stream. Dropped before it is shut down, it is reset.
pub(crate) struct Http3Tunnel {
    receiving: Receiving,
    send: Send,
    /// Received bytes that were not read yet.
    left: Bytes,
    /// Keeps the connection open.
    _place: QuicPlace,
}

enum Send {
    Idle(Box<Sending>),
    Busy(Job<(Box<Sending>, Result<(), StreamError>)>),
    /// It failed.
    Gone,
}

impl Http3Tunnel {
    pub(super) fn new(receiving: Receiving, sending: Box<Sending>, place: QuicPlace) -> Self {
        Self {
            receiving,
            send: Send::Idle(sending),
            left: Bytes::new(),
            _place: place,
        }
    }

    /// Ready with the half that sends once the last write is done.
    fn poll_idle(&mut self, context: &mut Context<'_>) -> Poll<io::Result<Box<Sending>>> {
        let (sending, result) = match std::mem::replace(&mut self.send, Send::Gone) {
            Send::Idle(sending) => (sending, Ok(())),
            Send::Busy(mut job) => match job.as_mut().poll(context) {
                Poll::Ready(done) => done,
                Poll::Pending => {
                    self.send = Send::Busy(job);
                    return Poll::Pending;
                }
            },
            Send::Gone => return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
        };
        Poll::Ready(result.map(|()| sending).map_err(broken))
    }

    /// Begins a write, whose end the next one waits for.
    fn poll_begin(&mut self, piece: BodyPart, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let sending = ready!(self.poll_idle(context))?;
        if sending.is_finished {
            self.send = Send::Idle(sending);
            return Poll::Ready(match piece {
                BodyPart::End => Ok(()),
                _ => Err(io::ErrorKind::BrokenPipe.into()),
            });
        }
        let mut job = transfer(sending, piece);
        self.send = match job.as_mut().poll(context) {
            Poll::Ready((sending, result)) => {
                result.map_err(broken)?;
                Send::Idle(sending)
            }
            Poll::Pending => Send::Busy(job),
        };
        Poll::Ready(Ok(()))
    }
}

fn broken(error: StreamError) -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionReset, error)
}

impl AsyncRead for Http3Tunnel {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let tunnel = self.get_mut();
        while tunnel.left.is_empty() {
            let piece = ready!(tunnel.receiving.poll_recv_data(context));
            match piece.map_err(broken)? {
                None => return Poll::Ready(Ok(())),
                Some(mut piece) => tunnel.left = piece.copy_to_bytes(piece.remaining()),
            }
        }
        let length = buffer.remaining().min(tunnel.left.len());
        buffer.put_slice(&tunnel.left[..length]);
        tunnel.left.advance(length);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Http3Tunnel {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if bytes.is_empty() {
            return Poll::Ready(Ok(0));
        }
        let piece = Bytes::copy_from_slice(&bytes[..bytes.len().min(PIECE_BYTES)]);
        let length = piece.len();
        let begun = self.get_mut().poll_begin(BodyPart::Data(piece), context);
        begun.map_ok(|()| length)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let tunnel = self.get_mut();
        let sending = ready!(tunnel.poll_idle(context))?;
        tunnel.send = Send::Idle(sending);
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let tunnel = self.get_mut();
        ready!(tunnel.poll_begin(BodyPart::End, context))?;
        // Nothing may poll it again behind this.
        Pin::new(tunnel).poll_flush(context)
    }
}
