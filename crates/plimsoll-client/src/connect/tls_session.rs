//! The TLS session of a stream, for people and for conditions.

use plimsoll_model::TlsSession;
use plimsoll_wire::tls;
use rustls::{HandshakeKind, ProtocolVersion};

use crate::connect::stream::Stream;

impl Stream {
    /// The TLS session with the target; `None` in the clear.
    ///
    /// Reads the peer's certificate, so it is not for every exchange.
    pub fn tls_session(&self) -> Option<TlsSession> {
        let Self::Tls(stream) = self else {
            return None;
        };
        let connection = stream.get_ref().1;
        let leaf = connection.peer_certificates().and_then(<[_]>::first);
        Some(TlsSession {
            version: match connection.protocol_version()? {
                ProtocolVersion::TLSv1_3 => "TLS 1.3".to_owned(),
                ProtocolVersion::TLSv1_2 => "TLS 1.2".to_owned(),
                other => format!("{other:?}"),
            },
            cipher: connection
                .negotiated_cipher_suite()
                .and_then(|suite| suite.suite().as_str())
                .map(str::to_owned),
            alpn: connection
                .alpn_protocol()
                .map(|name| String::from_utf8_lossy(name).into_owned()),
            resumed: connection.handshake_kind() == Some(HandshakeKind::Resumed),
            certificate: leaf.and_then(|leaf| tls::certificate(leaf)),
        })
    }
}
