//! The properties of a connection, for its requests and stream handlers.

use std::cell::OnceCell;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::rc::Rc;

use plimsoll_wire::ProxiedEnds;
use plimsoll_wire::tls::{CertificateNames, certificate_names};
use rustls::ProtocolVersion;
use rustls::pki_types::CertificateDer;

/// A connection from a client; the same for all its requests.
#[derive(Debug, Clone)]
pub struct ConnectionInfo {
    /// A number that no other connection of the engine has.
    pub id: u64,
    /// The client; where a trusted proxy passes the connection on, the one that the proxy names.
    pub peer: SocketAddr,
    /// The address that the client connected to.
    pub local: SocketAddr,
    /// The TLS session, if the connection is encrypted. Boxed: connections in the clear need no room for it.
    pub tls: Option<Box<TlsInfo>>,
}

impl ConnectionInfo {
    /// - `id`: a number that no other connection of the engine has.
    /// - `local`: the address of the socket.
    pub(crate) fn of_quic(quic: &quinn::Connection, id: u64, local: SocketAddr) -> Self {
        Self {
            id,
            peer: quic.remote_address(),
            local: match quic.local_ip() {
                Some(address) => SocketAddr::new(address, local.port()),
                None => local,
            },
            tls: Some(Box::new(TlsInfo::of_quic(quic))),
        }
    }
}

/// The parameters of a TLS session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TlsInfo {
    /// The name that the client requested (SNI), in lower case.
    pub server_name: Option<Box<str>>,
    /// The protocol that was chosen by ALPN.
    pub alpn: Option<Box<[u8]>>,
    /// The version of TLS.
    pub version: Option<ProtocolVersion>,
    /// The certificate of the client and those that vouch for it; empty if it showed none.
    pub client_certificates: Vec<CertificateDer<'static>>,
    /// The names of the client's certificate, read on first use.
    client_names: OnceCell<Option<CertificateNames>>,
}

impl TlsInfo {
    /// The names of the certificate that the client showed, if it did.
    pub(crate) fn client_names(&self) -> Option<&CertificateNames> {
        let names = self.client_names.get_or_init(|| {
            let certificate = self.client_certificates.first();
            certificate.and_then(|it| certificate_names(it))
        });
        names.as_ref()
    }

    pub(crate) fn from_connection(tls: &rustls::ServerConnection) -> Self {
        let certificates = tls.peer_certificates().unwrap_or_default();
        Self {
            server_name: tls.server_name().map(Box::from),
            alpn: tls.alpn_protocol().map(Box::from),
            version: tls.protocol_version(),
            client_certificates: certificates
                .iter()
                .map(|it| it.clone().into_owned())
                .collect(),
            client_names: OnceCell::new(),
        }
    }

    /// That of QUIC, which has TLS 1.3 within.
    pub(crate) fn of_quic(quic: &quinn::Connection) -> Self {
        let agreed = quic
            .handshake_data()
            .and_then(|data| data.downcast::<quinn::crypto::rustls::HandshakeData>().ok());
        let certificates = quic
            .peer_identity()
            .and_then(|shown| shown.downcast::<Vec<CertificateDer<'static>>>().ok());
        let (server_name, alpn) =
            agreed.map_or((None, None), |agreed| (agreed.server_name, agreed.protocol));
        Self {
            server_name: server_name.map(String::into_boxed_str),
            alpn: alpn.map(Vec::into_boxed_slice),
            version: Some(ProtocolVersion::TLSv1_3),
            client_certificates: certificates.map(|shown| *shown).unwrap_or_default(),
            client_names: OnceCell::new(),
        }
    }
}

/// The address of what has none, such as a client at a socket in the file system.
pub(crate) const NOWHERE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);

/// Both ends of a connection as it was accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ends {
    pub(crate) peer: SocketAddr,
    pub(crate) local: SocketAddr,
}

impl Ends {
    /// The properties of the connection of that number, for its requests.
    pub(crate) fn info(self, id: u64, tls: Option<TlsInfo>) -> Rc<ConnectionInfo> {
        Rc::new(ConnectionInfo {
            id,
            peer: self.peer,
            local: self.local,
            tls: tls.map(Box::new),
        })
    }
}

impl From<ProxiedEnds> for Ends {
    fn from(ends: ProxiedEnds) -> Self {
        Self {
            peer: ends.source,
            local: ends.destination,
        }
    }
}
