//! The byte stream of an accepted connection, whatever it runs over.

use std::fmt;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use plimsoll_model::Clock;
use plimsoll_wire::{SystemClock, poll_recv, poll_send, poll_send_more};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::server::TlsStream;

use crate::worker::timer::Timer;

/// An accepted byte stream; first come the bytes that were read from it already.
///
/// Reads and writes of TCP in the clear go straight to the kernel.
#[derive(Debug)]
pub struct Stream {
    transport: Transport,
    read_ahead: Vec<u8>,
    /// Boxed: only streams that were handed over have one.
    writes: Option<Box<WriteLimit>>,
}

/// A stream of HTTP/2 or HTTP/3 as one of bytes.
pub(crate) trait Tunnel: AsyncRead + AsyncWrite + Unpin + fmt::Debug {
    /// Whether the connection is encrypted.
    fn is_tls(&self) -> bool;
}

/// Write timeout: time a peer may take nothing while output is pending.
#[derive(Debug)]
struct WriteLimit {
    timeout: Duration,
    /// When the write that waits began to wait.
    since: Option<Instant>,
    timer: Timer,
}

impl WriteLimit {
    /// `written`, or an error once it has been waited for too long.
    fn bound<T>(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.since = None;
            return written;
        }
        let since = *self.since.get_or_insert_with(|| SystemClock.now());
        match self
            .timer
            .poll_passed(cx, since + self.timeout, &SystemClock)
        {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

#[derive(Debug)]
enum Transport {
    Tcp(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
    Unix(UnixStream),
    Tunnel(Box<dyn Tunnel>),
}

impl Stream {
    /// TCP in the clear.
    pub fn tcp(stream: TcpStream) -> Self {
        Self {
            transport: Transport::Tcp(stream),
            read_ahead: Vec::new(),
            writes: None,
        }
    }

    /// TLS, its handshake done.
    pub fn tls(stream: TlsStream<TcpStream>) -> Self {
        Self {
            transport: Transport::Tls(Box::new(stream)),
            read_ahead: Vec::new(),
            writes: None,
        }
    }

    /// A socket in the file system.
    pub fn unix(stream: UnixStream) -> Self {
        Self {
            transport: Transport::Unix(stream),
            read_ahead: Vec::new(),
            writes: None,
        }
    }

    /// A stream of HTTP/2 or HTTP/3.
    pub(crate) fn tunnel(tunnel: impl Tunnel + 'static) -> Self {
        Self {
            transport: Transport::Tunnel(Box::new(tunnel)),
            read_ahead: Vec::new(),
            writes: None,
        }
    }

    /// The same stream, on which a write fails once its peer has taken nothing for `timeout`.
    #[must_use]
    pub(crate) fn with_write_timeout(mut self, timeout: Duration) -> Self {
        self.writes = Some(Box::new(WriteLimit {
            timeout,
            since: None,
            timer: Timer::new(SystemClock.now() + timeout),
        }));
        self
    }

    fn bound<T>(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        match &mut self.writes {
            None => written,
            Some(writes) => writes.bound(cx, written),
        }
    }

    /// Whether it is encrypted.
    pub fn is_tls(&self) -> bool {
        match &self.transport {
            Transport::Tcp(_) | Transport::Unix(_) => false,
            Transport::Tls(_) => true,
            Transport::Tunnel(tunnel) => tunnel.is_tls(),
        }
    }

    /// The TCP connection beneath, if there is one.
    pub fn socket(&self) -> Option<&TcpStream> {
        match &self.transport {
            Transport::Tcp(stream) => Some(stream),
            Transport::Tls(stream) => Some(stream.get_ref().0),
            Transport::Unix(_) | Transport::Tunnel(_) => None,
        }
    }

    /// The TCP connection in the clear, and what was read from it already; the same stream if it is anything else.
    pub fn into_tcp(self) -> Result<(TcpStream, Vec<u8>), Self> {
        match self.transport {
            Transport::Tcp(stream) => Ok((stream, self.read_ahead)),
            transport => Err(Self { transport, ..self }),
        }
    }

    /// TCP in the clear, to which the kernel can send files by itself.
    pub(crate) fn in_the_clear(&self) -> Option<&TcpStream> {
        self.socket().filter(|_| !self.is_tls())
    }

    /// Writes what the rest of it follows at once.
    pub(crate) fn poll_write_more(
        &mut self,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        match &mut self.transport {
            Transport::Tcp(stream) => poll_send_more(stream, cx, buf),
            Transport::Tls(stream) => Pin::new(stream).poll_write(cx, buf),
            Transport::Unix(stream) => Pin::new(stream).poll_write(cx, buf),
            Transport::Tunnel(tunnel) => Pin::new(tunnel).poll_write(cx, buf),
        }
    }

    /// The same stream, from which `bytes` come first.
    #[must_use]
    pub fn with_read_ahead(mut self, mut bytes: Vec<u8>) -> Self {
        bytes.append(&mut self.read_ahead);
        self.read_ahead = bytes;
        self
    }
}

impl AsyncRead for Stream {
    #[inline]
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if !this.read_ahead.is_empty() {
            let taken = buf.remaining().min(this.read_ahead.len());
            buf.put_slice(&this.read_ahead[..taken]);
            this.read_ahead.drain(..taken);
            return Poll::Ready(Ok(()));
        }
        match &mut this.transport {
            Transport::Tcp(stream) => poll_recv(stream, cx, buf),
            Transport::Tls(stream) => Pin::new(stream).poll_read(cx, buf),
            Transport::Unix(stream) => Pin::new(stream).poll_read(cx, buf),
            Transport::Tunnel(tunnel) => Pin::new(tunnel).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for Stream {
    #[inline]
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = match &mut this.transport {
            Transport::Tcp(stream) => poll_send(stream, cx, buf),
            Transport::Tls(stream) => Pin::new(stream).poll_write(cx, buf),
            Transport::Unix(stream) => Pin::new(stream).poll_write(cx, buf),
            Transport::Tunnel(tunnel) => Pin::new(tunnel).poll_write(cx, buf),
        };
        this.bound(cx, written)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = match &mut this.transport {
            Transport::Tcp(stream) => Pin::new(stream).poll_write_vectored(cx, bufs),
            Transport::Tls(stream) => Pin::new(stream).poll_write_vectored(cx, bufs),
            Transport::Unix(stream) => Pin::new(stream).poll_write_vectored(cx, bufs),
            Transport::Tunnel(tunnel) => Pin::new(tunnel).poll_write_vectored(cx, bufs),
        };
        this.bound(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        match &self.transport {
            Transport::Tcp(stream) => stream.is_write_vectored(),
            Transport::Tls(stream) => stream.is_write_vectored(),
            Transport::Unix(stream) => stream.is_write_vectored(),
            Transport::Tunnel(tunnel) => tunnel.is_write_vectored(),
        }
    }

    #[inline]
    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let flushed = match &mut this.transport {
            // A socket keeps nothing back.
            Transport::Tcp(_) | Transport::Unix(_) => Poll::Ready(Ok(())),
            Transport::Tls(stream) => Pin::new(stream).poll_flush(cx),
            Transport::Tunnel(tunnel) => Pin::new(tunnel).poll_flush(cx),
        };
        this.bound(cx, flushed)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().transport {
            Transport::Tcp(stream) => Pin::new(stream).poll_shutdown(cx),
            Transport::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
            Transport::Unix(stream) => Pin::new(stream).poll_shutdown(cx),
            Transport::Tunnel(tunnel) => Pin::new(tunnel).poll_shutdown(cx),
        }
    }
}
