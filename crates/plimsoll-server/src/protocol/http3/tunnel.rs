//! A stream of HTTP/3 as one of bytes, once an extended CONNECT was granted (RFC 9220).

use std::fmt;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use h3::error::StreamError;
use h3::server::RequestStream;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::transport::{Receiver, Sender};
use crate::action::LocalFuture;

/// Bytes that are written at a time.
const PIECE: usize = 16 * 1024;

type Sending = Box<RequestStream<Sender, Bytes>>;
type Receiving = RequestStream<Receiver, Bytes>;

/// Both halves of the stream. Dropped before it is shut down, it is reset.
pub(crate) struct Tunnel {
    receive: Receiving,
    send: Send,
    /// Received bytes that were not read yet.
    left: Bytes,
    is_shut: bool,
}

/// The half that sends; the `h3` crate offers that only as functions that wait.
enum Send {
    Idle(Sending),
    Busy(LocalFuture<(Sending, Result<(), StreamError>)>),
    /// It failed.
    Gone,
}

impl Tunnel {
    /// - `left`: content that was taken off the stream already.
    pub(super) fn new(receive: Receiving, send: RequestStream<Sender, Bytes>, left: Bytes) -> Self {
        Self {
            receive,
            send: Send::Idle(Box::new(send)),
            left,
            is_shut: false,
        }
    }

    /// Ready with the half that sends once the last write is done.
    fn poll_idle(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Sending>> {
        let (sending, result) = match std::mem::replace(&mut self.send, Send::Gone) {
            Send::Idle(sending) => (sending, Ok(())),
            Send::Busy(mut job) => match job.as_mut().poll(cx) {
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
    fn begin(
        &mut self,
        mut job: LocalFuture<(Sending, Result<(), StreamError>)>,
        cx: &mut Context<'_>,
    ) -> io::Result<()> {
        self.send = match job.as_mut().poll(cx) {
            Poll::Ready((sending, result)) => {
                result.map_err(broken)?;
                Send::Idle(sending)
            }
            Poll::Pending => Send::Busy(job),
        };
        Ok(())
    }
}

fn broken(error: StreamError) -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionReset, error)
}

impl fmt::Debug for Tunnel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tunnel")
    }
}

impl crate::stream::Tunnel for Tunnel {
    fn is_tls(&self) -> bool {
        true
    }
}

impl AsyncRead for Tunnel {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        while this.left.is_empty() {
            match ready!(this.receive.poll_recv_data(cx)).map_err(broken)? {
                None => return Poll::Ready(Ok(())),
                Some(mut piece) => this.left = piece.copy_to_bytes(piece.remaining()),
            }
        }
        let taken = buf.remaining().min(this.left.len());
        buf.put_slice(&this.left[..taken]);
        this.left.advance(taken);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Tunnel {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        if buf.is_empty() {
            return Poll::Ready(Ok(0));
        }
        let mut sending = ready!(this.poll_idle(cx))?;
        let piece = Bytes::copy_from_slice(&buf[..buf.len().min(PIECE)]);
        let length = piece.len();
        let job = Box::pin(async move {
            let result = sending.send_data(piece).await;
            (sending, result)
        });
        this.begin(job, cx)?;
        Poll::Ready(Ok(length))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let sending = ready!(this.poll_idle(cx))?;
        this.send = Send::Idle(sending);
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let mut sending = ready!(this.poll_idle(cx))?;
        if this.is_shut {
            this.send = Send::Idle(sending);
            return Poll::Ready(Ok(()));
        }
        this.is_shut = true;
        let job = Box::pin(async move {
            let result = sending.finish().await;
            (sending, result)
        });
        this.begin(job, cx)?;
        // Nothing may poll it again behind this.
        Pin::new(this).poll_flush(cx)
    }
}
