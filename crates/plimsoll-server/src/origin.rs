//! An origin that gives every request the same small answer, at the least cost.

pub(crate) mod embedded;

pub(crate) mod embedded_http2;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::rc::Rc;

use bytes::Bytes;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, LocalOptions};
use tokio::task::JoinSet;

use crate::origin::embedded::serve;

/// A listening socket, ready to serve.
#[derive(Debug)]
pub struct Origin {
    listener: std::net::TcpListener,
    address: SocketAddr,
    answer: Answer,
    speaks: Speaks,
}

/// The protocol of an origin.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Speaks {
    /// HTTP/1.1.
    #[default]
    Http1,
    /// HTTP/2, known beforehand by its clients (RFC 9113, section 3.3).
    Http2,
}

/// Why an origin cannot serve.
#[derive(Debug, thiserror::Error)]
pub enum OriginError {
    /// The port cannot be had.
    #[error("cannot listen on {address}")]
    Listen {
        /// The address to listen on.
        address: SocketAddr,
        /// The error of the system.
        source: io::Error,
    },
    /// The runtime cannot be had, or accepting connections failed for good.
    #[error("cannot serve")]
    Serve(#[source] io::Error),
}

/// The bytes of the answer, written once.
#[derive(Debug)]
pub(crate) struct Answer {
    bytes: Vec<u8>,
    head_bytes: usize,
    body: Bytes,
}

impl Answer {
    pub(crate) fn new(body: &[u8]) -> Self {
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        let head_bytes = head.len();
        let mut bytes = head.into_bytes();
        bytes.extend_from_slice(body);
        Self {
            bytes,
            head_bytes,
            body: Bytes::copy_from_slice(body),
        }
    }

    /// The content alone.
    pub(crate) fn body(&self) -> Bytes {
        self.body.clone()
    }

    /// The bytes on the wire of HTTP/1: all of them, or only the head in response to HEAD.
    pub(crate) fn to(&self, is_head: bool) -> &[u8] {
        if is_head {
            &self.bytes[..self.head_bytes]
        } else {
            &self.bytes
        }
    }
}

/// Pause after the process ran out of descriptors or memory, so that accepting does not spin.
const ACCEPT_PAUSE: std::time::Duration = std::time::Duration::from_millis(10);

impl Origin {
    /// Listens on a loopback port; 0 takes a free one.
    ///
    /// - `body`: the content of every answer.
    pub fn bind(port: u16, body: &[u8]) -> Result<Self, OriginError> {
        Self::bind_to(SocketAddr::from((Ipv4Addr::LOCALHOST, port)), body)
    }

    /// Listens at `address`; its port 0 takes a free one.
    ///
    /// - `body`: the content of every answer.
    pub fn bind_to(address: SocketAddr, body: &[u8]) -> Result<Self, OriginError> {
        let listen = |source| OriginError::Listen { address, source };
        let socket = socket2::Socket::new(
            socket2::Domain::for_address(address),
            socket2::Type::STREAM.nonblocking(),
            None,
        )
        .map_err(listen)?;
        socket.set_reuse_address(true).map_err(listen)?;
        if address.ip().is_loopback() {
            plimsoll_wire::keep_from_pacing(&socket2::SockRef::from(&socket));
        }
        socket.bind(&address.into()).map_err(listen)?;
        // The kernel caps this at its own limit.
        socket.listen(8192).map_err(listen)?;
        let listener = std::net::TcpListener::from(socket);
        let address = listener.local_addr().map_err(listen)?;
        Ok(Self {
            listener,
            address,
            answer: Answer::new(body),
            speaks: Speaks::default(),
        })
    }

    /// The same origin, speaking `speaks`.
    #[must_use]
    pub fn speaking(mut self, speaks: Speaks) -> Self {
        self.speaks = speaks;
        self
    }

    /// Bound address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves on the calling thread until accepting fails for good.
    pub fn serve(self) -> Result<(), OriginError> {
        Self::serve_all(vec![self])
    }

    /// Serves all of `origins` on the calling thread until accepting fails for good on one of them.
    pub fn serve_all(origins: Vec<Self>) -> Result<(), OriginError> {
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build_local(LocalOptions::default())
            .map_err(OriginError::Serve)?;
        runtime
            .block_on(async move {
                let mut accepting = JoinSet::new();
                for origin in origins {
                    let listener = TcpListener::from_std(origin.listener)?;
                    accepting.spawn_local(accept(listener, Rc::new(origin.answer), origin.speaks));
                }
                match accepting.join_next().await {
                    None => Ok(()),
                    Some(ended) => ended.map_err(io::Error::other)?,
                }
            })
            .map_err(OriginError::Serve)
    }
}

async fn accept(listener: TcpListener, answer: Rc<Answer>, speaks: Speaks) -> io::Result<()> {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                stream.set_nodelay(true)?;
                let answer = Rc::clone(&answer);
                tokio::task::spawn_local(async move {
                    // A client that breaks off or breaks the protocol concerns only itself.
                    match speaks {
                        Speaks::Http1 => drop(serve(stream, &answer).await),
                        Speaks::Http2 => drop(embedded_http2::serve(stream, answer).await),
                    }
                });
            }
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
            Err(error) if is_shortage(&error) => tokio::time::sleep(ACCEPT_PAUSE).await,
            Err(error) => return Err(error),
        }
    }
}

/// Whether the system will have what it lacks now at another time.
fn is_shortage(error: &io::Error) -> bool {
    plimsoll_model::FailureKind::from_io(error) == plimsoll_model::FailureKind::ResourceLimit
}
