//! What a connection begins with: TLS, if the listener has it, and the version of HTTP.

use std::io;
use std::rc::Rc;
use std::sync::Arc;

use plimsoll_wire::tls::{ACME_TLS, OnDemandCertificates};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::task::spawn_local;
use tokio_rustls::server::TlsStream;
use tokio_rustls::{LazyConfigAcceptor, TlsAcceptor};

use crate::counters::Cut;
use crate::engine::accept::Connected;
use crate::message::connection::{Ends, TlsInfo};
use crate::protocol::http1;
use crate::protocol::http2;
use crate::protocol::service::Service;
use crate::stream::Stream;
use crate::worker::ConnectionGuard;

/// Serves a connection by HTTP, over TLS if the service has it.
pub(super) fn take_http(
    service: &Rc<Service>,
    stream: Connected,
    place: ConnectionGuard,
    ends: Ends,
) {
    let service = Rc::clone(service);
    let acceptor = service.tls.borrow().clone();
    match (acceptor, stream) {
        (Some(acceptor), Connected::Tcp(stream)) => {
            spawn_local(take_https(acceptor, service, stream, place, ends))
        }
        // Connections within the machine are not encrypted.
        (_, stream) => {
            let info = ends.info(place.id(), None);
            spawn_local(http1::serve(stream.into(), service, place, info))
        }
    };
}

/// Whether a client at a port for TLS begins with text, as HTTP in the clear does, rather than with a handshake.
async fn speaks_in_the_clear(stream: &TcpStream) -> bool {
    let mut first = [0];
    let peeked = stream.peek(&mut first).await;
    peeked.is_ok_and(|length| length == 1) && first[0].is_ascii_alphabetic()
}

/// Answers a client that speaks HTTP in the clear to a port for TLS.
async fn reject_clear(mut stream: TcpStream) {
    // The client's bytes are read, or a reset could overtake the response.
    let mut buffer = [0; 4096];
    stream.try_read(&mut buffer).ok();
    let text = "this port speaks HTTPS, not HTTP\n";
    let response = format!(
        "HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{text}",
        text.len()
    );
    stream.write_all(response.as_bytes()).await.ok();
    stream.shutdown().await.ok();
}

async fn take_https(
    acceptor: TlsAcceptor,
    service: Rc<Service>,
    stream: TcpStream,
    place: ConnectionGuard,
    ends: Ends,
) {
    let timeout = place.worker.limits().handshake_timeout;
    match tokio::time::timeout(timeout, speaks_in_the_clear(&stream)).await {
        Err(_) => return place.worker.counters.cut(Cut::HandshakeTimeout),
        Ok(true) => {
            place.worker.counters.cut(Cut::Handshake);
            return reject_clear(stream).await;
        }
        Ok(false) => {}
    }
    // Boxed: its room is wanted only until the handshake is done.
    let on_demand = service.on_demand.borrow().clone();
    let handshake = async {
        match on_demand {
            None => handshake(&acceptor, stream, &place).await,
            Some(on_demand) => {
                let prepared = accept_prepared(&acceptor, stream, &on_demand);
                within_limit(prepared, &place).await
            }
        }
    };
    let Some(stream) = Box::pin(handshake).await else {
        return;
    };
    let tls = TlsInfo::from_connection(stream.get_ref().1);
    let protocol = tls.alpn.as_deref();
    // An authority has seen what it wanted to see (RFC 8737, section 3).
    if protocol == Some(ACME_TLS) {
        return;
    }
    let is_http2 = protocol == Some(b"h2");
    let info = ends.info(place.id(), Some(tls));
    let stream = Stream::tls(stream);
    if is_http2 {
        Box::pin(http2::serve(stream, service, place, info)).await;
    } else {
        http1::serve(stream, service, place, info).await;
    }
}

/// The stream behind a handshake of TLS; what went wrong is counted.
pub(super) async fn handshake(
    acceptor: &TlsAcceptor,
    stream: TcpStream,
    place: &ConnectionGuard,
) -> Option<TlsStream<TcpStream>> {
    within_limit(acceptor.accept(stream), place).await
}

/// Has the certificate that the client requests ordered before the handshake goes on.
async fn accept_prepared(
    acceptor: &TlsAcceptor,
    stream: TcpStream,
    on_demand: &OnDemandCertificates,
) -> io::Result<TlsStream<TcpStream>> {
    let hello = LazyConfigAcceptor::new(rustls::server::Acceptor::default(), stream).await?;
    let name = {
        let hello = hello.client_hello();
        let mut protocols = hello.alpn().into_iter().flatten();
        // An authority proves the name now, so the certificate cannot be there yet.
        let is_challenge = protocols.any(|protocol| protocol == ACME_TLS);
        let name = hello.server_name().filter(|_| !is_challenge);
        name.map(str::to_owned)
    };
    if let Some(name) = name {
        on_demand.prepared(&name).await;
    }
    hello.into_stream(Arc::clone(acceptor.config())).await
}

async fn within_limit(
    accepted: impl Future<Output = io::Result<TlsStream<TcpStream>>>,
    place: &ConnectionGuard,
) -> Option<TlsStream<TcpStream>> {
    let timeout = place.worker.limits().handshake_timeout;
    let cut = match tokio::time::timeout(timeout, accepted).await {
        Ok(Ok(stream)) => return Some(stream),
        Ok(Err(_)) => Cut::Handshake,
        Err(_) => Cut::HandshakeTimeout,
    };
    place.worker.counters.cut(cut);
    None
}
