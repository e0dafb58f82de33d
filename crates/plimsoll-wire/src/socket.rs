//! Outgoing TCP connections and their socket options.

pub(crate) mod pacing;

pub(crate) mod raw_io;

pub(crate) mod splice;

pub(crate) mod steer;

pub(crate) mod datagram;

pub(crate) mod upstream_sockets;

pub(crate) mod handover;

pub(crate) mod relay;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::net::{TcpSocket, TcpStream};

use crate::socket::pacing::keep_from_pacing;

/// Options of a TCP connection; `TCP_NODELAY` is always on, and nothing is paced on a loopback.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SocketOptions {
    /// The local address to connect from; the kernel picks the port.
    pub source: Option<IpAddr>,
    /// Probes on an idle connection; absent leaves `SO_KEEPALIVE` off.
    pub keepalive: Option<Keepalive>,
}

/// TCP keep-alive probes (RFC 9293, section 3.8.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keepalive {
    /// Idle time before the first probe; whole seconds, at least one.
    pub idle: Duration,
    /// Time between probes; whole seconds, at least one.
    pub interval: Duration,
}

/// Opens a TCP connection to `peer`.
///
/// The error is the kernel's own, with its errno, whichever call it came from. A `source` of the
/// other address family is refused as the kernel refuses it.
pub async fn connect_tcp(peer: SocketAddr, options: &SocketOptions) -> io::Result<TcpStream> {
    let socket = match peer {
        SocketAddr::V4(_) => TcpSocket::new_v4(),
        SocketAddr::V6(_) => TcpSocket::new_v6(),
    }?;
    socket.set_nodelay(true)?;
    if let Some(keepalive) = options.keepalive {
        SockRef::from(&socket).set_tcp_keepalive(
            &TcpKeepalive::new()
                .with_time(keepalive.idle)
                .with_interval(keepalive.interval),
        )?;
    }
    if peer.ip().is_loopback() {
        keep_from_pacing(&SockRef::from(&socket));
    }
    if let Some(source) = options.source {
        socket.bind(SocketAddr::new(source, 0))?;
    }
    socket.connect(peer).await
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use tokio::net::TcpListener;

    use super::*;

    fn run<T>(future: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap()
            .block_on(future)
    }

    #[test]
    fn options_reach_the_socket() {
        run(async {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
            let options = SocketOptions {
                source: Some(Ipv4Addr::new(127, 0, 0, 9).into()),
                keepalive: Some(Keepalive {
                    idle: Duration::from_secs(7),
                    interval: Duration::from_secs(3),
                }),
            };
            let stream = connect_tcp(listener.local_addr().unwrap(), &options)
                .await
                .unwrap();
            let socket = SockRef::from(&stream);
            assert!(stream.nodelay().unwrap());
            assert!(socket.keepalive().unwrap());
            assert_eq!(socket.tcp_keepalive_time().unwrap(), Duration::from_secs(7));
            let (_, peer) = listener.accept().await.unwrap();
            assert_eq!(peer.ip(), Ipv4Addr::new(127, 0, 0, 9));
        });
    }

    #[test]
    fn keepalive_is_off_unless_requested() {
        run(async {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
            let stream = connect_tcp(listener.local_addr().unwrap(), &SocketOptions::default())
                .await
                .unwrap();
            assert!(!SockRef::from(&stream).keepalive().unwrap());
        });
    }

    #[test]
    fn errors_keep_their_errno() {
        run(async {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
            let address = listener.local_addr().unwrap();
            drop(listener);
            let error = connect_tcp(address, &SocketOptions::default())
                .await
                .unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
            assert!(error.raw_os_error().is_some());
        });
    }
}
