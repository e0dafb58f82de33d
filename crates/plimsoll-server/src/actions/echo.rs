//! Gives back what came: the content of requests, streams, datagrams.

use std::net::SocketAddr;

use http::StatusCode;
use http::header::{CONTENT_TYPE, HeaderValue};
use http_body::{Body, Frame, SizeHint};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::action::{Accepted, Action, Answer, DatagramHandler, LocalFuture, StreamHandler};
use crate::body::RequestBody;
use crate::request::Request;
use crate::response::{Response, ResponseBody, StreamError};

/// Answers with the content of the request, as it comes, and with its content type.
#[derive(Debug, Clone, Copy, Default)]
pub struct Echo;

impl Action for Echo {
    fn handle(&self, request: &Request<'_>) -> Answer {
        let kind = request
            .header("content-type")
            .and_then(|value| HeaderValue::from_bytes(value).ok())
            .unwrap_or(HeaderValue::from_static("application/octet-stream"));
        let response = Response::new(StatusCode::OK).with_field(CONTENT_TYPE, kind);
        let body = request.take_body();
        Answer::now(if body.is_end_stream() {
            response
        } else {
            response.with_body(ResponseBody::Stream(Box::pin(Echoed(body))))
        })
    }
}

/// The request's content as the response's.
struct Echoed(RequestBody);

impl Body for Echoed {
    type Data = bytes::Bytes;
    type Error = StreamError;

    fn poll_frame(
        self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        std::pin::Pin::new(&mut self.get_mut().0)
            .poll_frame(cx)
            .map(|frame| frame.map(|frame| frame.map_err(Into::into)))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.0.size_hint()
    }
}

/// Gives every byte of a stream back, and every datagram.
#[derive(Debug, Clone, Copy, Default)]
pub struct EchoHandler;

impl StreamHandler for EchoHandler {
    fn handle(&self, accepted: Accepted) -> LocalFuture<()> {
        Box::pin(async move {
            let mut stream = accepted.stream;
            let mut buffer = vec![0; 16 * 1024];
            loop {
                let Ok(read @ 1..) = stream.read(&mut buffer).await else {
                    // The client may have gone; it gets the end either way.
                    stream.shutdown().await.ok();
                    return;
                };
                if stream.write_all(&buffer[..read]).await.is_err() {
                    return;
                }
            }
        })
    }
}

impl DatagramHandler for EchoHandler {
    fn handle(&self, datagram: &[u8], peer: SocketAddr, reply: &mut dyn FnMut(SocketAddr, &[u8])) {
        reply(peer, datagram);
    }
}
