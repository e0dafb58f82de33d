//! Gives back what came: the content of requests, streams, datagrams.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;

use bytes::Bytes;
use http::StatusCode;
use http::header::{CONTENT_TYPE, HeaderValue};
use http_body::{Body, Frame, SizeHint};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::action::{Action, Answer};
use crate::layer4::{Datagram, DatagramHandler, Effects, FirstBytes, Inspection, StreamHandler};
use crate::message::body::RequestBody;
use crate::message::request::Request;
use crate::message::response::{Response, ResponseBody, StreamError};
use crate::stream::Stream;

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
        let mut body = request.take_body();
        if body.is_end_stream() {
            return Answer::now(response);
        }
        Answer::later(async move {
            // Content that is malformed from the start gets an error instead of a 200.
            match poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
                None => response,
                Some(Err(error)) => Response::text(StatusCode::BAD_REQUEST, format!("{error}\n")),
                Some(Ok(first)) => {
                    let echoed = Echoed {
                        first: Some(first),
                        rest: body,
                    };
                    response.with_body(ResponseBody::Stream(Box::pin(echoed)))
                }
            }
        })
    }
}

/// The request's content as the response's.
struct Echoed {
    first: Option<Frame<Bytes>>,
    rest: RequestBody,
}

impl Body for Echoed {
    type Data = Bytes;
    type Error = StreamError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        let this = self.get_mut();
        if let Some(first) = this.first.take() {
            return Poll::Ready(Some(Ok(first)));
        }
        Pin::new(&mut this.rest)
            .poll_frame(cx)
            .map(|frame| frame.map(|frame| frame.map_err(Into::into)))
    }

    fn is_end_stream(&self) -> bool {
        self.first.is_none() && self.rest.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let first = self.first.as_ref().and_then(Frame::data_ref);
        let first = first.map_or(0, |first| first.len() as u64);
        let rest = self.rest.size_hint().exact();
        rest.map_or_else(SizeHint::new, |rest| SizeHint::with_exact(first + rest))
    }
}

/// Gives every byte of a stream back, and every datagram.
#[derive(Debug, Clone, Copy, Default)]
pub struct EchoHandler;

impl StreamHandler for EchoHandler {
    fn inspect(&self, _: FirstBytes<'_>) -> Inspection {
        Inspection::Decided(Box::new(|accepted| Box::pin(echo(accepted.stream))))
    }
}

async fn echo(mut stream: Stream) {
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
}

impl DatagramHandler for EchoHandler {
    fn on_datagram(&mut self, _: Instant, datagram: &Datagram<'_>, effects: &mut Effects) {
        let Datagram {
            local,
            peer,
            ecn,
            bytes,
        } = *datagram;
        effects.reply(local, peer, ecn, bytes);
    }
}
