//! The byte stream of a connection, or of a stream of one, that switched protocols.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, Bytes};
use plimsoll_model::Failure;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::http2::Http2Connection;
use super::http3::Http3Tunnel;
use super::pool::{ConnectionGuard, Destination};

/// A byte stream in both directions. Dropping it closes the connection or resets the stream.
pub struct Upgraded {
    /// Bytes that arrived before they were requested.
    surplus: Bytes,
    kind: Kind,
}

enum Kind {
    Http1(ConnectionGuard),
    Http2(Tunnel),
    Http3(Box<Http3Tunnel>),
}

/// A stream of an HTTP/2 connection.
struct Tunnel {
    connection: Rc<Http2Connection>,
    /// Keeps the pool's connections open.
    _destination: Rc<Destination>,
    token: u32,
    is_shut_down: bool,
}

impl Drop for Tunnel {
    fn drop(&mut self) {
        self.connection.end_tunnel(self.token);
    }
}

impl Upgraded {
    pub(super) fn http1(place: ConnectionGuard, surplus: Bytes) -> Self {
        Self {
            surplus,
            kind: Kind::Http1(place),
        }
    }

    pub(super) fn http2(
        connection: Rc<Http2Connection>,
        destination: Rc<Destination>,
        token: u32,
    ) -> Self {
        Self {
            surplus: Bytes::new(),
            kind: Kind::Http2(Tunnel {
                connection,
                _destination: destination,
                token,
                is_shut_down: false,
            }),
        }
    }

    pub(super) fn http3(tunnel: Http3Tunnel) -> Self {
        Self {
            surplus: Bytes::new(),
            kind: Kind::Http3(Box::new(tunnel)),
        }
    }
}

impl fmt::Debug for Upgraded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind {
            Kind::Http1(_) => "Upgraded(Http1)",
            Kind::Http2(_) => "Upgraded(Http2)",
            Kind::Http3(_) => "Upgraded(Http3)",
        })
    }
}

impl AsyncRead for Upgraded {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let upgraded = self.get_mut();
        if upgraded.surplus.is_empty() {
            match &mut upgraded.kind {
                Kind::Http1(place) => {
                    return Pin::new(&mut place.parts().1.stream).poll_read(context, buffer);
                }
                Kind::Http3(tunnel) => return Pin::new(tunnel).poll_read(context, buffer),
                Kind::Http2(tunnel) => {
                    let bytes = tunnel.connection.poll_bytes(tunnel.token, context);
                    match ready!(bytes).map_err(broken)? {
                        Some(bytes) => upgraded.surplus = bytes,
                        None => return Poll::Ready(Ok(())),
                    }
                }
            }
        }
        let length = buffer.remaining().min(upgraded.surplus.len());
        buffer.put_slice(&upgraded.surplus[..length]);
        upgraded.surplus.advance(length);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Upgraded {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match &mut self.get_mut().kind {
            Kind::Http1(place) => Pin::new(&mut place.parts().1.stream).poll_write(context, bytes),
            Kind::Http3(tunnel) => Pin::new(tunnel).poll_write(context, bytes),
            Kind::Http2(_) if bytes.is_empty() => Poll::Ready(Ok(0)),
            Kind::Http2(tunnel) => {
                let sent = tunnel
                    .connection
                    .poll_send(tunnel.token, bytes, false, context);
                sent.map_err(broken)
            }
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().kind {
            Kind::Http1(place) => Pin::new(&mut place.parts().1.stream).poll_flush(context),
            Kind::Http3(tunnel) => Pin::new(tunnel).poll_flush(context),
            // The task of the connection writes.
            Kind::Http2(_) => Poll::Ready(Ok(())),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().kind {
            Kind::Http1(place) => Pin::new(&mut place.parts().1.stream).poll_shutdown(context),
            Kind::Http3(tunnel) => Pin::new(tunnel).poll_shutdown(context),
            Kind::Http2(tunnel) if tunnel.is_shut_down => Poll::Ready(Ok(())),
            Kind::Http2(tunnel) => {
                let ended = tunnel
                    .connection
                    .poll_send(tunnel.token, &[], true, context);
                tunnel.is_shut_down = true;
                ended.map_ok(|_| ()).map_err(broken)
            }
        }
    }
}

fn broken(failure: Failure) -> io::Error {
    io::Error::other(failure)
}
