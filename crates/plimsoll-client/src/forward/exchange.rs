//! One request and its response, whatever version of HTTP carries them.

use std::error::Error;
use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use super::http1::{FastCgiExchange, Http1Exchange};
use super::http2::Http2Exchange;
use super::http3::Http3Exchange;
use super::response_head::ResponseHead;
use super::upgraded::Upgraded;
use crate::{Completed, Incomplete};

/// An exchange under way; dropping it cancels it.
///
/// Each poll also sends what can be sent of the request.
pub struct Exchange<B>(Kind<B>);

enum Kind<B> {
    Http1(Box<Http1Exchange<B>>),
    Http2(Box<Http2Exchange<B>>),
    Http3(Box<Http3Exchange<B>>),
    FastCgi(Box<FastCgiExchange<B>>),
}

macro_rules! each {
    ($exchange:expr, $kind:ident => $call:expr) => {
        match $exchange {
            Kind::Http1($kind) => $call,
            Kind::Http2($kind) => $call,
            Kind::Http3($kind) => $call,
            Kind::FastCgi($kind) => $call,
        }
    };
}

impl<B> Exchange<B>
where
    B: Body<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>> + Unpin,
{
    pub(super) fn http1(exchange: Http1Exchange<B>) -> Self {
        Self(Kind::Http1(Box::new(exchange)))
    }

    pub(super) fn http2(exchange: Http2Exchange<B>) -> Self {
        Self(Kind::Http2(Box::new(exchange)))
    }

    pub(super) fn http3(exchange: Http3Exchange<B>) -> Self {
        Self(Kind::Http3(Box::new(exchange)))
    }

    pub(super) fn fastcgi(exchange: FastCgiExchange<B>) -> Self {
        Self(Kind::FastCgi(Box::new(exchange)))
    }

    /// The next head: interim ones, and then the final one. Not to be called after that.
    pub fn poll_head(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<ResponseHead, Incomplete>> {
        each!(&mut self.0, exchange => exchange.poll_head(context))
    }

    /// The next piece of content behind the final head, the trailers, `None` at the end.
    pub fn poll_frame(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Incomplete>>> {
        each!(&mut self.0, exchange => exchange.poll_frame(context))
    }

    /// Sends what can be sent of the request without reading the response; ready when all of it is sent, or when the
    /// server takes no more. For callers that cannot take more of the response at the moment.
    pub fn poll_upload(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Incomplete>> {
        each!(&mut self.0, exchange => exchange.poll_upload(context))
    }

    /// The next head, as [`poll_head`](Self::poll_head).
    pub async fn head(&mut self) -> Result<ResponseHead, Incomplete> {
        poll_fn(|context| self.poll_head(context)).await
    }

    /// The final head; interim ones are passed over.
    pub async fn final_head(&mut self) -> Result<ResponseHead, Incomplete> {
        loop {
            let head = self.head().await?;
            if !head.is_interim() {
                return Ok(head);
            }
        }
    }

    /// The next frame, as [`poll_frame`](Self::poll_frame).
    pub async fn frame(&mut self) -> Option<Result<Frame<Bytes>, Incomplete>> {
        poll_fn(|context| self.poll_frame(context)).await
    }

    /// Phases and bytes, once the response is complete.
    pub fn completed(&self) -> Option<Completed> {
        each!(&self.0, exchange => exchange.completed())
    }

    /// When the first byte of the response came; unknown over HTTP/2, where one read carries many responses.
    pub fn first_byte_at(&self) -> Option<Instant> {
        each!(&self.0, exchange => exchange.first_byte_at())
    }

    /// Bytes of content that are still to come, if they are known.
    pub fn content_left(&self) -> Option<u64> {
        each!(&self.0, exchange => exchange.content_left())
    }

    /// Whether everything was received and returned.
    pub fn is_received(&self) -> bool {
        each!(&self.0, exchange => exchange.is_received())
    }

    /// Cancels the exchange: HTTP/1 closes the connection, HTTP/2 and HTTP/3 reset the stream with this code of theirs
    /// (RFC 9113, section 7; RFC 9114, section 8.1).
    pub fn reset(self, code: u32) {
        match self.0 {
            Kind::Http1(exchange) => drop(exchange),
            Kind::FastCgi(exchange) => drop(exchange),
            Kind::Http2(exchange) => exchange.reset(code),
            Kind::Http3(exchange) => exchange.reset(code.into()),
        }
    }

    /// The byte stream behind a final head that switched protocols (101, or 2xx to CONNECT and extended CONNECT);
    /// `None` behind any other.
    pub fn upgrade(self) -> Option<Upgraded> {
        match self.0 {
            Kind::Http1(exchange) => exchange.upgrade(),
            Kind::Http2(exchange) => exchange.upgrade(),
            Kind::Http3(exchange) => exchange.upgrade().map(Upgraded::http3),
            Kind::FastCgi(_) => None,
        }
    }

    /// The request body of an exchange that failed, if nothing of it was read: it can be sent with another exchange.
    pub fn into_untouched_body(self) -> Option<B> {
        each!(self.0, exchange => exchange.into_untouched_body())
    }

    /// Content and trailers behind the final head, as a body.
    pub fn into_response_body(self) -> ResponseBody<B> {
        ResponseBody(self)
    }
}

impl<B> fmt::Debug for Exchange<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &self.0 {
            Kind::Http1(_) => "Exchange(Http1)",
            Kind::Http2(_) => "Exchange(Http2)",
            Kind::Http3(_) => "Exchange(Http3)",
            Kind::FastCgi(_) => "Exchange(FastCgi)",
        })
    }
}

/// The content of a response, read as it is polled. Dropping it cancels the exchange.
#[derive(Debug)]
pub struct ResponseBody<B>(Exchange<B>);

impl<B> ResponseBody<B> {
    /// The exchange.
    pub fn exchange(&self) -> &Exchange<B> {
        &self.0
    }

    /// The exchange again.
    pub fn into_exchange(self) -> Exchange<B> {
        self.0
    }
}

impl<B> Body for ResponseBody<B>
where
    B: Body<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>> + Unpin,
{
    type Data = Bytes;
    type Error = plimsoll_model::Failure;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let polled = self.get_mut().0.poll_frame(context);
        polled.map(|frame| frame.map(|frame| frame.map_err(|incomplete| incomplete.failure)))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_received()
    }

    fn size_hint(&self) -> SizeHint {
        self.0
            .content_left()
            .map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}
