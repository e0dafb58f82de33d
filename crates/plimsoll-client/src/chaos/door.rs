//! The one place from which connections are opened: always to the same address.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::net::TcpSocket;
use tokio_rustls::TlsConnector;
use url::Host;

use super::{ChaosPlan, may_be_attacked};
use crate::{Endpoint, Stream};

/// The protocol in ALPN.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Speaks {
    Http1,
    Http2,
}

/// Opens connections to the target.
#[derive(Debug)]
pub(super) struct Door {
    endpoint: Endpoint,
    address: SocketAddr,
    tls: Option<Arc<ClientConfig>>,
    is_own_host: bool,
}

/// Timeout for opening a connection.
const PATIENCE: Duration = Duration::from_secs(5);

impl Door {
    pub(super) fn new(
        plan: &ChaosPlan,
        address: SocketAddr,
        tls: Option<Arc<ClientConfig>>,
    ) -> Self {
        Self {
            endpoint: plan.endpoint.clone(),
            address,
            tls,
            is_own_host: plan.is_own_host,
        }
    }

    pub(super) fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// For TLS of a protocol, offered as the only one.
    pub(super) fn tls(&self, alpn: &[u8]) -> Option<Arc<ClientConfig>> {
        let mut config = (**self.tls.as_ref()?).clone();
        config.alpn_protocols = vec![alpn.to_vec()];
        Some(Arc::new(config))
    }

    /// The name that the server's certificate is to have.
    pub(super) fn name(&self) -> String {
        match self.endpoint.host() {
            Host::Domain(name) => name.to_owned(),
            Host::Ipv4(address) => address.to_string(),
            Host::Ipv6(address) => address.to_string(),
        }
    }

    /// Whether packets may be sent to `address`.
    pub(super) fn permit(&self, address: IpAddr) -> io::Result<()> {
        if self.is_own_host || may_be_attacked(address) {
            return Ok(());
        }
        Err(io::Error::other(format!(
            "{address} is neither a loopback nor a private address"
        )))
    }

    /// - `receive_buffer`: bytes that the kernel keeps for us, if it matters.
    pub(super) async fn open(
        &self,
        speaks: Speaks,
        receive_buffer: Option<u32>,
    ) -> io::Result<Stream> {
        let opening = self.connect(speaks, receive_buffer);
        match tokio::time::timeout(PATIENCE, opening).await {
            Ok(result) => result,
            Err(_) => Err(io::ErrorKind::TimedOut.into()),
        }
    }

    async fn connect(&self, speaks: Speaks, receive_buffer: Option<u32>) -> io::Result<Stream> {
        self.permit(self.address.ip())?;
        let socket = if self.address.is_ipv4() {
            TcpSocket::new_v4()?
        } else {
            TcpSocket::new_v6()?
        };
        socket.set_nodelay(true)?;
        if let Some(bytes) = receive_buffer {
            socket.set_recv_buffer_size(bytes)?;
        }
        let stream = socket.connect(self.address).await?;
        // The address that counts is that of the peer, not that of the name.
        self.permit(stream.peer_addr()?.ip())?;
        let stream = Stream::Tcp(stream);
        let alpn: &[u8] = match speaks {
            Speaks::Http1 => b"http/1.1",
            Speaks::Http2 => b"h2",
        };
        let Some(config) = self.tls(alpn) else {
            return Ok(stream);
        };
        let name = ServerName::try_from(self.name()).map_err(io::Error::other)?;
        let stream = TlsConnector::from(config).connect(name, stream).await?;
        if speaks == Speaks::Http2 && stream.get_ref().1.alpn_protocol() != Some(alpn) {
            return Err(io::Error::other("h2 was not chosen by ALPN"));
        }
        Ok(Stream::Tls(Box::new(stream)))
    }
}
