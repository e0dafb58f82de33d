//! Listening sockets: one for each worker on the same port, so that the kernel spreads connections.

use std::io;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::path::Path;

use plimsoll_wire::keep_from_pacing;
use socket2::{Domain, Protocol, SockRef, Socket, Type};

use crate::engine::unix_socket::{UnixFile, bind_unix_socket};

/// The kinds of listening sockets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Transport {
    /// Connections.
    Tcp,
    /// Datagrams.
    Udp,
    /// Datagrams of QUIC, at the port of a listener for connections.
    Quic,
}

/// Connections that may wait to be accepted; the kernel caps this at its own limit.
const BACKLOG: i32 = 8192;

/// Bytes of datagrams that may wait to be received: a burst while the worker does something else.
const RECEIVE_BUFFER: usize = 4 << 20;

/// Sockets of one listener, one for each worker.
#[derive(Debug)]
pub(crate) enum Sockets {
    Tcp(Vec<TcpListener>),
    Unix(Vec<UnixListener>),
    Udp(Vec<UdpSocket>),
}

impl Sockets {
    /// Binds `count` sockets at `address`, whose port 0 takes a free one.
    ///
    /// - `shares_port`: another process may listen there already, which then shares the connections.
    pub(crate) fn bind(
        transport: Transport,
        address: SocketAddr,
        count: usize,
        shares_port: bool,
    ) -> io::Result<(Self, SocketAddr)> {
        if !shares_port && address.port() != 0 {
            // With SO_REUSEPORT, two servers on one port would each get half of the connections and
            // without a message; without it, the second bind fails.
            drop(socket(transport, address, false)?);
        }
        let mut address = address;
        let mut sockets = Vec::with_capacity(count);
        for _ in 0..count {
            let socket = socket(transport, address, true)?;
            if let Some(bound) = socket.local_addr()?.as_socket() {
                address = bound;
            }
            sockets.push(socket);
        }
        let sockets = match transport {
            Transport::Tcp => {
                for socket in &sockets {
                    socket.listen(BACKLOG)?;
                }
                Self::Tcp(sockets.into_iter().map(Into::into).collect())
            }
            Transport::Udp | Transport::Quic => {
                Self::Udp(sockets.into_iter().map(Into::into).collect())
            }
        };
        Ok((sockets, address))
    }
}

impl Sockets {
    /// One socket at `path`, which all workers share.
    pub(crate) fn bind_unix(
        path: &Path,
        mode: Option<u32>,
        count: usize,
        replaces: bool,
    ) -> io::Result<(Self, UnixFile)> {
        let (listener, file) = bind_unix_socket(path, mode, replaces)?;
        let shared = (0..count).map(|_| listener.try_clone());
        Ok((Self::Unix(shared.collect::<io::Result<_>>()?), file))
    }

    /// Their address, if it has a port.
    pub(crate) fn port(&self) -> Option<SocketAddr> {
        match self {
            Self::Tcp(sockets) => sockets.first()?.local_addr().ok(),
            Self::Udp(sockets) => sockets.first()?.local_addr().ok(),
            Self::Unix(_) => None,
        }
    }

    /// Their descriptors, in their order.
    pub(crate) fn into_descriptors(self) -> Vec<OwnedFd> {
        match self {
            Self::Tcp(sockets) => sockets.into_iter().map(Into::into).collect(),
            Self::Unix(sockets) => sockets.into_iter().map(Into::into).collect(),
            Self::Udp(sockets) => sockets.into_iter().map(Into::into).collect(),
        }
    }
}

fn socket(transport: Transport, address: SocketAddr, reuses_port: bool) -> io::Result<Socket> {
    let (kind, protocol) = match transport {
        Transport::Tcp => (Type::STREAM, Protocol::TCP),
        Transport::Udp | Transport::Quic => (Type::DGRAM, Protocol::UDP),
    };
    let socket = Socket::new(
        Domain::for_address(address),
        kind.nonblocking(),
        Some(protocol),
    )?;
    if transport == Transport::Tcp {
        socket.set_reuse_address(true)?;
        if address.ip().is_loopback() {
            keep_from_pacing(&SockRef::from(&socket));
        }
    }
    if transport != Transport::Tcp {
        // The system allows what it is configured for (`net.core.rmem_max`).
        socket.set_recv_buffer_size(RECEIVE_BUFFER).ok();
    }
    if reuses_port {
        socket.set_reuse_port(true)?;
    }
    if address.is_ipv6() {
        // `[::]` means every address, of both families, whatever the system's default.
        let is_any = address.ip().is_unspecified();
        socket.set_only_v6(!is_any)?;
    }
    socket.bind(&address.into())?;
    Ok(socket)
}
