//! HTTP/3 by the `h3` crate.

use std::rc::Rc;
use std::sync::Arc;

use bytes::{Buf as _, Bytes};
use h3::error::Code;
use h3::server::RequestStream;
use h3_quinn::BidiStream;
use http::{HeaderMap, Response};
use quinn::crypto::rustls::QuicServerConfig;

use super::server::{Call, Server, act};

struct Http3Call {
    head: http::request::Parts,
    method: String,
    path: String,
    stream: RequestStream<BidiStream<Bytes>, Bytes>,
}

/// An endpoint on a free port of the loopback.
pub(crate) fn endpoint(mut tls: rustls::ServerConfig) -> quinn::Endpoint {
    tls.alpn_protocols = vec![b"h3".to_vec()];
    let crypto = QuicServerConfig::try_from(tls).unwrap();
    let config = quinn::ServerConfig::with_crypto(Arc::new(crypto));
    quinn::Endpoint::server(config, "127.0.0.1:0".parse().unwrap()).unwrap()
}

pub(crate) async fn serve(server: Rc<Server>, incoming: quinn::Incoming) {
    let Ok(quic) = incoming.await else {
        return;
    };
    let transport = h3_quinn::Connection::new(quic);
    let Ok(mut connection) = h3::server::Connection::<_, Bytes>::new(transport).await else {
        return;
    };
    while let Ok(Some(resolver)) = connection.accept().await {
        let server = Rc::clone(&server);
        tokio::task::spawn_local(async move {
            let Ok((request, stream)) = resolver.resolve_request().await else {
                return;
            };
            let (head, ()) = request.into_parts();
            let mut call = Http3Call {
                method: head.method.to_string(),
                path: head.uri.path().to_owned(),
                head,
                stream,
            };
            act(server, &mut call).await;
        });
    }
}

impl Call for Http3Call {
    fn method(&self) -> &str {
        &self.method
    }

    fn path(&self) -> &str {
        &self.path
    }

    fn fields(&self) -> Vec<String> {
        let text = |value: &http::HeaderValue| value.to_str().unwrap().to_owned();
        let fields = self.head.headers.iter();
        fields
            .map(|(name, value)| format!("{name}: {}", text(value)))
            .collect()
    }

    async fn body(&mut self) -> Result<Option<Bytes>, ()> {
        match self.stream.recv_data().await {
            Ok(Some(mut data)) => Ok(Some(data.copy_to_bytes(data.remaining()))),
            Ok(None) => Ok(None),
            Err(_) => Err(()),
        }
    }

    async fn trailers(&mut self) -> HeaderMap {
        let trailers = self.stream.recv_trailers().await;
        trailers.ok().flatten().unwrap_or_default()
    }

    async fn interim(&mut self, status: u16) {
        self.respond(status, &[("x-interim", "1")], None).await;
    }

    async fn respond(&mut self, status: u16, fields: &[(&str, &str)], length: Option<usize>) {
        let mut response = Response::builder().status(status);
        for (name, value) in fields {
            response = response.header(*name, *value);
        }
        if let Some(length) = length {
            response = response.header("content-length", length);
        }
        let response = response.body(()).unwrap();
        self.stream.send_response(response).await.ok();
    }

    async fn send(&mut self, bytes: Bytes) -> Result<(), ()> {
        self.stream.send_data(bytes).await.map_err(drop)
    }

    async fn finish(&mut self, trailers: &HeaderMap) {
        if !trailers.is_empty() {
            self.stream.send_trailers(trailers.clone()).await.ok();
        }
        self.stream.finish().await.ok();
    }

    async fn reset(&mut self) {
        // Earlier frames have to arrive before the reset.
        for _ in 0..200 {
            tokio::task::yield_now().await;
        }
        self.stream.stop_stream(Code::H3_REQUEST_REJECTED);
    }

    async fn tunnel(&mut self) {
        self.stream.stop_stream(Code::H3_REQUEST_REJECTED);
    }
}
