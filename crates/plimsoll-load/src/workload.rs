//! Workloads: what a virtual user does again and again.
//!
//! One file per workload. Those that are a request and its response implement [`HttpWorkload`] and run
//! over every [driver](crate::driver): they wait for nothing and read no socket. A WebSocket session has
//! messages in both directions instead, and drives its connection itself once the handshake is done.

mod decoding;

mod events;

mod exchange;

mod grpc;

mod redirects;

pub(crate) mod websocket;

use http::HeaderMap;
use plimsoll_client::{Completed, Http3, Incomplete, Opening, Request};
use plimsoll_model::Exchange;
use plimsoll_wire::h2::hpack::Fields;
use plimsoll_wire::{h1, h2};

pub(crate) use self::events::EventStreams;
pub(crate) use self::exchange::PlainExchange;
pub(crate) use self::grpc::GrpcCalls;
use crate::worker::pace::Start;

/// A workload of requests and their responses, one exchange at a time.
///
/// Drivers are generic over it, so that a plain exchange costs no dynamic call.
pub(crate) trait HttpWorkload: 'static {
    /// Reads its responses.
    type Reader: ResponseReader;

    /// Goes on to the next exchange and notes its request in `start`; returns the position of its
    /// endpoint.
    fn take_up(&mut self, start: &mut Start) -> usize;

    /// The request to send now and the reader of its response; called for each attempt.
    fn request(&mut self) -> (&Request, &mut Self::Reader);

    /// The method of that request.
    fn method(&self) -> &str;

    /// The reader of the response under way.
    fn reader(&self) -> &Self::Reader;

    /// The same, to hand it parts of the response.
    fn reader_mut(&mut self) -> &mut Self::Reader;

    /// Takes the end of a response. Counts the exchange, unless another request belongs to it.
    ///
    /// - `exchange`: as it stood before the request was begun; the response is added to it.
    /// - `certificate_days`: until the server's certificate expires, if a condition looks at it.
    fn conclude(
        &mut self,
        start: &Start,
        response: Response,
        exchange: &mut Exchange,
        certificate_days: Option<i64>,
    ) -> Concluded;
}

/// Reads one response after the other.
pub(crate) trait ResponseReader {
    /// Whether a response may be a stream that outlasts its exchange.
    const OUTLASTS: bool = false;

    /// Whether trailers of HTTP/3 are read, which takes another look at the stream.
    const READS_TRAILERS: bool = false;

    /// Whether [`head`](Self::head) looks at anything.
    fn wants_head(&self) -> bool;

    /// Whether it looks at fields, which HTTP/2 then decodes.
    fn wants_fields(&self) -> bool;

    /// The final head.
    fn head(&mut self, head: Head<'_>);

    /// A piece of the content; returns whether the response is to be given up.
    ///
    /// - `http3`: the connection, over HTTP/3, if the response outlasts its exchange.
    fn content(&mut self, piece: &[u8], http3: Option<&Http3>) -> bool;

    /// The fields behind the content.
    fn trailers(&mut self, _fields: &Fields) {}

    /// The same over HTTP/3.
    fn trailers_of_http3(&mut self, _fields: &HeaderMap) {}

    /// Counts the exchange, as its response outlasts it.
    ///
    /// - `exchange`: as it stood before the request was begun.
    fn opened(&mut self, _exchange: Exchange, _opening: &Opening) {}

    /// Whether the response outlasts its exchange.
    fn was_opened(&self) -> bool {
        false
    }

    /// Whether the head shows that the response is to be given up.
    fn is_refused(&self) -> bool {
        false
    }
}

/// The head of a response, as its version of HTTP has it.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Head<'a> {
    Http1(&'a h1::ResponseHead<'a>),
    Http2(&'a h2::ResponseHead<'a>),
    Http3(u16, &'a HeaderMap),
}

impl<'a> Head<'a> {
    pub(crate) fn status(&self) -> u16 {
        match self {
            Self::Http1(head) => head.status,
            Self::Http2(head) => head.status,
            Self::Http3(status, _) => *status,
        }
    }

    /// The value of the first field of that lowercase name.
    pub(crate) fn field(&self, name: &str) -> Option<&'a [u8]> {
        match *self {
            Self::Http1(head) => head.header(name),
            Self::Http2(head) => head.fields.field(name),
            Self::Http3(_, fields) => fields.get(name).map(http::HeaderValue::as_bytes),
        }
    }
}

/// How a response ended.
#[derive(Debug)]
pub(crate) enum Response {
    Completed(Completed),
    Failed(Incomplete),
    /// It was given up, or left at the end of the run; with bytes sent and received until then.
    Dropped((u64, u64)),
}

impl From<Result<Completed, Incomplete>> for Response {
    #[inline]
    fn from(result: Result<Completed, Incomplete>) -> Self {
        match result {
            Ok(completed) => Self::Completed(completed),
            Err(incomplete) => Self::Failed(incomplete),
        }
    }
}

/// The consequence of the end of a response for its driver.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Concluded {
    /// The same exchange goes on with another request, to the endpoint at this position.
    pub(crate) again: Option<usize>,
    /// How long to leave the server alone.
    pub(crate) pause: std::time::Duration,
    /// Whether the connection can carry another exchange.
    pub(crate) is_reusable: bool,
    /// Whether a complete response arrived, or a stream was opened.
    pub(crate) has_carried: bool,
}
