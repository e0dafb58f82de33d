//! HTTP/2 by the `h2` crate.

use std::future::poll_fn;
use std::rc::Rc;

use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, RecvStream, SendStream};
use http::{HeaderMap, Response};
use tokio::io::{AsyncRead, AsyncWrite};

use super::server::{Call, Server, act};

struct Http2Call {
    head: http::request::Parts,
    method: String,
    path: String,
    body: RecvStream,
    respond: SendResponse<Bytes>,
    stream: Option<SendStream<Bytes>>,
    is_finished: bool,
}

pub(crate) async fn serve<S: AsyncRead + AsyncWrite + Unpin>(server: Rc<Server>, stream: S) {
    let mut builder = h2::server::Builder::new();
    builder.enable_connect_protocol();
    let Ok(mut connection) = builder.handshake::<_, Bytes>(stream).await else {
        return;
    };
    while let Some(Ok((request, respond))) = connection.accept().await {
        if request.uri().path() == "/leave" {
            connection.graceful_shutdown();
        }
        let server = Rc::clone(&server);
        let (head, body) = request.into_parts();
        let mut call = Http2Call {
            method: head.method.to_string(),
            path: match head.method {
                http::Method::CONNECT => "/tunnel".to_owned(),
                _ => head.uri.path().to_owned(),
            },
            head,
            body,
            respond,
            stream: None,
            is_finished: false,
        };
        tokio::task::spawn_local(async move {
            if call.path == "/leave" {
                "/echo".clone_into(&mut call.path);
            }
            act(server, &mut call).await;
        });
    }
}

impl Call for Http2Call {
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
        match self.body.data().await {
            None => Ok(None),
            Some(Ok(bytes)) => {
                let credit = self.body.flow_control().release_capacity(bytes.len());
                credit.map_err(drop)?;
                Ok(Some(bytes))
            }
            Some(Err(_)) => Err(()),
        }
    }

    async fn trailers(&mut self) -> HeaderMap {
        let trailers = self.body.trailers().await;
        trailers.ok().flatten().unwrap_or_default()
    }

    async fn interim(&mut self, status: u16) {
        let response = Response::builder()
            .status(status)
            .header("x-interim", "1")
            .body(())
            .unwrap();
        self.respond.send_informational(response).ok();
    }

    async fn respond(&mut self, status: u16, fields: &[(&str, &str)], length: Option<usize>) {
        let mut response = Response::builder().status(status);
        for (name, value) in fields {
            response = response.header(*name, *value);
        }
        if let Some(length) = length {
            response = response.header("content-length", length);
        }
        self.is_finished = self.method == "HEAD" || matches!(status, 204 | 304);
        let response = response.body(()).unwrap();
        self.stream = self.respond.send_response(response, self.is_finished).ok();
    }

    async fn send(&mut self, mut bytes: Bytes) -> Result<(), ()> {
        let stream = self.stream.as_mut().ok_or(())?;
        while !bytes.is_empty() {
            stream.reserve_capacity(bytes.len());
            let room = poll_fn(|context| stream.poll_capacity(context)).await;
            let room = room.ok_or(())?.map_err(drop)?;
            stream
                .send_data(bytes.split_to(room.min(bytes.len())), false)
                .map_err(drop)?;
        }
        Ok(())
    }

    async fn finish(&mut self, trailers: &HeaderMap) {
        let Some(stream) = self.stream.as_mut().filter(|_| !self.is_finished) else {
            return;
        };
        if trailers.is_empty() {
            stream.send_data(Bytes::new(), true).ok();
        } else {
            stream.send_trailers(trailers.clone()).ok();
        }
    }

    async fn reset(&mut self) {
        // Written frames leave when the connection has its turn; a reset would discard them.
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
        match &mut self.stream {
            Some(stream) => stream.send_reset(Reason::INTERNAL_ERROR),
            None => self.respond.send_reset(Reason::REFUSED_STREAM),
        }
    }

    async fn tunnel(&mut self) {
        self.respond(200, &[], None).await;
        self.send(Bytes::from_static(b"first ")).await.ok();
        while let Ok(Some(bytes)) = self.body().await {
            if self.send(bytes).await.is_err() {
                break;
            }
        }
        self.finish(&HeaderMap::new()).await;
    }
}
