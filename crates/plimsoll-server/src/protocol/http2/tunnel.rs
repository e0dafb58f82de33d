//! A stream of HTTP/2 as one of bytes, once an extended CONNECT was granted (RFC 8441).

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use h2::{RecvStream, SendStream};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Bytes that are written at a time.
const PIECE: usize = 16 * 1024;

/// Both halves of the stream. Dropped before it is shut down, it is reset.
#[derive(Debug)]
pub(crate) struct Tunnel {
    receive: RecvStream,
    send: SendStream<Bytes>,
    /// Received bytes that were not read yet.
    left: Bytes,
    is_tls: bool,
    is_shut: bool,
}

impl Tunnel {
    /// - `is_tls`: whether the connection is encrypted.
    pub(crate) fn new(receive: RecvStream, send: SendStream<Bytes>, is_tls: bool) -> Self {
        Self {
            receive,
            send,
            left: Bytes::new(),
            is_tls,
            is_shut: false,
        }
    }
}

impl crate::stream::Tunnel for Tunnel {
    fn is_tls(&self) -> bool {
        self.is_tls
    }
}

fn broken(error: h2::Error) -> io::Error {
    if error.is_io() {
        let error = error.into_io();
        return error.unwrap_or_else(|| io::ErrorKind::ConnectionReset.into());
    }
    io::Error::new(io::ErrorKind::ConnectionReset, error)
}

impl AsyncRead for Tunnel {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        while this.left.is_empty() {
            match ready!(this.receive.poll_data(cx)) {
                None => return Poll::Ready(Ok(())),
                Some(piece) => this.left = piece.map_err(broken)?,
            }
        }
        let taken = buf.remaining().min(this.left.len());
        buf.put_slice(&this.left[..taken]);
        this.left.advance(taken);
        // The window opens again as the bytes are read: that bounds what lies here.
        let released = this.receive.flow_control().release_capacity(taken);
        Poll::Ready(released.map_err(broken))
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
        this.send.reserve_capacity(buf.len().min(PIECE));
        let mut room = this.send.capacity();
        while room == 0 {
            room = match ready!(this.send.poll_capacity(cx)) {
                Some(room) => room.map_err(broken)?,
                None => return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
            };
        }
        let sent = room.min(buf.len());
        let piece = Bytes::copy_from_slice(&buf[..sent]);
        this.send.send_data(piece, false).map_err(broken)?;
        Poll::Ready(Ok(sent))
    }

    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        // The connection sends what it has.
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if !this.is_shut {
            this.is_shut = true;
            this.send.send_data(Bytes::new(), true).map_err(broken)?;
        }
        Poll::Ready(Ok(()))
    }
}
