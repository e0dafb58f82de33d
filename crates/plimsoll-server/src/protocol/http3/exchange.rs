//! One request of HTTP/3 and its response: a task each.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Bytes;
use h3::error::{Code, StreamError};
use h3::ext::Protocol;
use h3::server::{RequestResolver, RequestStream};
use http::header::{CONTENT_LENGTH, DATE, SEC_WEBSOCKET_ACCEPT, TE, UPGRADE};
use http::request::Parts;
use http::{HeaderMap, Method, StatusCode};
use http_body::Body;
use plimsoll_model::Clock;
use plimsoll_wire::h1::RequestError;
use plimsoll_wire::http::FieldClass;
use tokio::time::{timeout, timeout_at};

use super::reading::Reading;
use super::tap::Tap;
use super::transport::{Sender, StreamState, Transport};
use super::tunnel::Tunnel;
use crate::action::{Answer, LocalFuture, Outcome, Refusal, TakeOver};
use crate::counters::Cut;
use crate::limits::Limits;
use crate::message::body::withhold_heads_fields;
use crate::message::connection::ConnectionInfo;
use crate::message::fields::Fields;
use crate::message::interim::Interims;
use crate::message::request::{Content, ContentSource, Request, Scheme, Start};
use crate::message::response::{
    Framed, Response, ResponseBody, StreamError as Broken, has_content, tunnel_status,
};
use crate::protocol::activity::Busy;
use crate::protocol::head;
use crate::protocol::pace::{Pace, sooner};
use crate::protocol::service::Service;
use crate::stream::Stream;
use crate::version::Version;
use crate::worker::ConnectionGuard;

/// Bytes that are handed to QUIC at a time.
const PIECE: usize = 64 * 1024;

/// Serves one request.
pub(super) struct Exchange {
    pub(super) place: Rc<ConnectionGuard>,
    pub(super) service: Rc<Service>,
    pub(super) limits: Rc<Limits>,
    pub(super) tap: Rc<Tap>,
    pub(super) stream: Rc<StreamState>,
    pub(super) info: Rc<ConnectionInfo>,
    pub(super) busy: Busy,
}

type Sending = RequestStream<Sender, Bytes>;

/// Nothing more can be sent on the stream.
struct StreamClosed;

impl Exchange {
    pub(super) async fn run(self, resolver: RequestResolver<Transport, Bytes>) {
        let resolving = timeout(self.limits.header_timeout, resolver.resolve_request());
        let (request, stream) = match resolving.await {
            Ok(Ok(request)) => request,
            Ok(Err(error)) => return self.not_resolved(&error),
            Err(_) => {
                self.tap.was_headless();
                return self.place.worker.counters.cut(Cut::HeaderTimeout);
            }
        };
        self.stream.begin();
        let (mut parts, ()) = request.into_parts();
        head::join_cookies(&mut parts.headers);
        let (mut sending, receiving) = stream.split();
        let announced = match head::announced(&parts.headers) {
            Ok(announced)
                if !has_connection_fields(&parts.headers) && !is_malformed_connect(&parts) =>
            {
                announced
            }
            // RFC 9114, sections 4.1.2, 4.2 and 4.4.
            _ => return sending.stop_stream(Code::H3_MESSAGE_ERROR),
        };
        let clock = self.place.worker.clock;
        let mut reading = Reading::new(receiving, announced, &self.limits, clock);
        // Bytes behind a CONNECT are the tunnel's, not content.
        let is_tunnel = self.is_tunnel(&parts);
        let content = if !is_tunnel && poll_fn(|cx| Poll::Ready(reading.has_content(cx))).await {
            Content::unread(announced)
        } else {
            Content::none()
        };
        let sent = self
            .answer(&parts, &content, &mut sending, &mut reading)
            .await;
        match sent {
            Ok(None) => {
                // The client may take its time to end the stream.
                drop(content);
                if is_tunnel {
                    reading.stop(Code::H3_NO_ERROR);
                }
                self.end(&mut reading).await;
            }
            Ok(Some(take_over)) => {
                let (receive, first) = reading.into_stream();
                let tunnel = Tunnel::new(receive, sending, first);
                let stream = Stream::tunnel(tunnel).with_write_timeout(self.limits.write_timeout);
                let drain = self.place.worker.drain.clone();
                self.unless_reset(take_over(stream, drain)).await;
            }
            Err(StreamClosed) => {}
        }
        drop(self.busy);
    }

    /// Whether the request is an extended CONNECT for a WebSocket; with another method `:protocol` means nothing.
    fn is_websocket(&self, parts: &Parts) -> bool {
        self.stream.is_websocket() && parts.method == Method::CONNECT
    }

    /// Whether the request is to make the stream one of bytes: a CONNECT, extended or not.
    fn is_tunnel(&self, parts: &Parts) -> bool {
        self.is_websocket(parts) || is_connect(parts)
    }

    /// Runs until the client takes the stream back.
    async fn unless_reset(&self, mut running: LocalFuture<()>) {
        let mut is_over = false;
        poll_fn(|cx| {
            if running.as_mut().poll(cx).is_ready() {
                return Poll::Ready(());
            }
            // A client that has all that was finished may still send.
            if !is_over && self.stream.poll_over(cx, &self.tap).is_ready() {
                is_over = true;
                if self.stream.is_reset() {
                    return Poll::Ready(());
                }
            }
            Poll::Pending
        })
        .await;
    }

    fn not_resolved(&self, error: &StreamError) {
        // The answer is sent already.
        if let StreamError::HeaderTooBig { .. } = error {
            let error = RequestError::HeadTooLarge;
            let counters = &self.place.worker.counters;
            counters.answered(Version::Http3, StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE);
            self.refused(error);
        } else {
            self.tap.was_headless();
        }
    }

    fn refused(&self, error: RequestError) {
        self.place.worker.counters.refused(error);
        self.service.action().refused(&Refusal {
            peer: self.info.peer,
            version: Version::Http3,
            error,
        });
    }

    /// Sends the response; what takes the stream over, if the response granted that.
    async fn answer(
        &self,
        parts: &Parts,
        content: &Content,
        sending: &mut Sending,
        reading: &mut Reading,
    ) -> Result<Option<TakeOver>, StreamClosed> {
        let is_head = parts.method == Method::HEAD;
        let authority = match head::checked(parts, &self.limits.request) {
            Ok(checked) => checked.authority,
            Err(error) => {
                self.refused(error);
                let status =
                    StatusCode::from_u16(error.status()).unwrap_or(StatusCode::BAD_REQUEST);
                let response = Response::text(status, format!("{error}\n"));
                let sent = self.respond(response, is_head, content, sending, reading);
                return sent.await.map(|()| None);
            }
        };
        let is_tunnel = self.is_tunnel(parts);
        let is_websocket = self.is_websocket(parts);
        if parts.extensions.get::<Protocol>().is_some() && !is_websocket {
            let response = head::unknown_protocol();
            let sent = self.respond(response, is_head, content, sending, reading);
            return sent.await.map(|()| None);
        }
        let start = Start {
            method: parts.method.as_str(),
            scheme: Scheme::Https,
            authority,
            path: parts.uri.path(),
            query: parts.uri.query(),
            version: Version::Http3,
            upgrade: is_websocket.then_some(b"websocket"),
            fields: Fields::Map(&parts.headers),
        };
        let answer = self
            .service
            .action()
            .handle(&Request::new(start, &self.info, content));
        let is_taken = matches!(&*content.source.borrow(), ContentSource::Taken(_));
        if is_taken && head::is_expected(parts) {
            let interims = content.make_interims();
            // The response's content may depend on the request's, so 100 (Continue) is sent before it.
            match &answer {
                Answer::Now(Outcome::Respond(response)) if response.is_streamed() => {
                    interims.ask_to_continue();
                }
                Answer::Now(_) => {}
                Answer::Later(_) => reading.ask_by(Rc::clone(interims)),
            }
        }
        let outcome = match answer {
            Answer::Now(outcome) => outcome,
            Answer::Later(later) => self.wait(later, content, sending, reading).await?,
        };
        if let Some(interims) = content.interims() {
            self.send_interims(interims, sending).await?;
            interims.end();
        }
        match outcome {
            Outcome::Respond(mut response) => {
                if is_tunnel {
                    response = response.without_tunnel();
                }
                let sent = self.respond(response, is_head, content, sending, reading);
                sent.await.map(|()| None)
            }
            Outcome::Upgrade(response, take_over) if is_tunnel => {
                self.grant(response, content, sending).await?;
                Ok(Some(take_over))
            }
            Outcome::Upgrade(..) | Outcome::Raw(_) => {
                sending.stop_stream(Code::H3_VERSION_FALLBACK);
                Err(StreamClosed)
            }
        }
    }

    /// Sends the head behind which the stream is one of bytes.
    async fn grant(
        &self,
        response: Response,
        content: &Content,
        sending: &mut Sending,
    ) -> Result<(), StreamClosed> {
        let status = tunnel_status(response.status());
        let mut fields = response.framed(false).fields;
        // 200 alone means that the server has understood (RFC 8441, section 5; RFC 9220, section 3).
        for name in [CONTENT_LENGTH, SEC_WEBSOCKET_ACCEPT, UPGRADE] {
            fields.remove(name);
        }
        let head = self.head(status, fields, content);
        self.within(&mut Pace::default(), sending.send_response(head))
            .await
    }

    /// The head of a response, which is counted.
    fn head(
        &self,
        status: StatusCode,
        mut fields: HeaderMap,
        content: &Content,
    ) -> http::Response<()> {
        let worker = &self.place.worker;
        let now = worker.clock.now();
        let date = worker.memory.borrow_mut().date_value(now, worker.clock);
        fields.entry(DATE).or_insert(date);
        worker.counters.answered(Version::Http3, status);
        if let Some(route) = content.take_route() {
            route.answered(status);
        }
        let mut response = http::Response::new(());
        *response.status_mut() = status;
        *response.headers_mut() = fields;
        response
    }

    /// Waits for an answer, handing over the request's content and sending interim responses meanwhile.
    async fn wait(
        &self,
        mut later: LocalFuture<Outcome>,
        content: &Content,
        sending: &mut Sending,
        reading: &mut Reading,
    ) -> Result<Outcome, StreamClosed> {
        let counters = &self.place.worker.counters;
        loop {
            let waited = poll_fn(|cx| {
                if let Poll::Ready(outcome) = later.as_mut().poll(cx) {
                    return Poll::Ready(Ok(Some(outcome)));
                }
                reading.hand_over(cx, content, &self.limits, counters);
                if let Some(interims) = content.interims() {
                    interims.watch(cx.waker());
                    if interims.is_waiting() {
                        return Poll::Ready(Ok(None));
                    }
                }
                // The client has gone, and what would have been the answer with it.
                self.stream
                    .poll_over(cx, &self.tap)
                    .map(|()| Err(StreamClosed))
            });
            if let Some(outcome) = waited.await? {
                return Ok(outcome);
            }
            if let Some(interims) = content.interims() {
                self.send_interims(interims, sending).await?;
            }
        }
    }

    async fn send_interims(
        &self,
        interims: &Interims,
        sending: &mut Sending,
    ) -> Result<(), StreamClosed> {
        while let Some(interim) = interims.pop() {
            let interim = interim.into_response();
            self.within(&mut Pace::default(), sending.send_response(interim))
                .await?;
        }
        Ok(())
    }

    async fn respond(
        &self,
        response: Response,
        is_head: bool,
        content_read: &Content,
        sending: &mut Sending,
        reading: &mut Reading,
    ) -> Result<(), StreamClosed> {
        let Framed {
            status,
            mut fields,
            content,
            length,
        } = response.framed(is_head);
        // HTTP/3 has no such thing (RFC 9114, section 4.2).
        fields.remove(UPGRADE);
        let response = self.head(status, fields, content_read);
        let mut pace = Pace::default();
        self.within(&mut pace, sending.send_response(response))
            .await?;
        if !is_head && has_content(status) {
            match content {
                ResponseBody::Empty | ResponseBody::Announced(_) => {}
                ResponseBody::Bytes(bytes) => self.send(bytes, &mut pace, sending).await?,
                ResponseBody::File(part) => {
                    self.send_stream(
                        Box::pin(part),
                        length,
                        content_read,
                        &mut pace,
                        sending,
                        reading,
                    )
                    .await?;
                }
                ResponseBody::Stream(body) => {
                    self.send_stream(body, length, content_read, &mut pace, sending, reading)
                        .await?;
                }
            }
        }
        sending.finish().await.map_err(|_| StreamClosed)
    }

    /// Sends content as it comes, and its trailer fields.
    async fn send_stream(
        &self,
        mut body: Pin<Box<dyn Body<Data = Bytes, Error = Broken>>>,
        length: Option<u64>,
        content_read: &Content,
        pace: &mut Pace,
        sending: &mut Sending,
        reading: &mut Reading,
    ) -> Result<(), StreamClosed> {
        let mut left = length;
        let counters = &self.place.worker.counters;
        loop {
            let frame = poll_fn(|cx| {
                if let Poll::Ready(frame) = body.as_mut().poll_frame(cx) {
                    return Poll::Ready(Ok(frame));
                }
                reading.hand_over(cx, content_read, &self.limits, counters);
                self.stream
                    .poll_over(cx, &self.tap)
                    .map(|()| Err(StreamClosed))
            });
            let Some(frame) = frame.await? else {
                break;
            };
            match frame.map(http_body::Frame::into_data) {
                Ok(Ok(data)) => {
                    let rest = left.map(|left| left.checked_sub(data.len() as u64));
                    match rest {
                        None => {}
                        Some(Some(rest)) => left = Some(rest),
                        // More than was announced.
                        Some(None) => return self.break_off(sending),
                    }
                    pace.rest();
                    self.send(data, pace, sending).await?;
                }
                Ok(Err(frame)) => {
                    let mut trailers = frame.into_trailers().unwrap_or_default();
                    withhold_heads_fields(&mut trailers, counters);
                    if !trailers.is_empty() {
                        self.within(pace, sending.send_trailers(trailers)).await?;
                    }
                    break;
                }
                Err(_) => return self.break_off(sending),
            }
        }
        if left.is_some_and(|left| left > 0) {
            return self.break_off(sending);
        }
        Ok(())
    }

    /// Content that broke off must not look whole.
    #[expect(
        clippy::unused_self,
        reason = "it is what an exchange does, as the others are"
    )]
    fn break_off(&self, sending: &mut Sending) -> Result<(), StreamClosed> {
        sending.stop_stream(Code::H3_INTERNAL_ERROR);
        Err(StreamClosed)
    }

    async fn send(
        &self,
        mut bytes: Bytes,
        pace: &mut Pace,
        sending: &mut Sending,
    ) -> Result<(), StreamClosed> {
        while !bytes.is_empty() {
            let piece = bytes.split_to(bytes.len().min(PIECE));
            let length = piece.len();
            if let Err(gone) = self.within(pace, sending.send_data(piece)).await {
                // Dropping it would do the same, by another code.
                sending.stop_stream(Code::H3_REQUEST_CANCELLED);
                return Err(gone);
            }
            pace.took(length);
        }
        Ok(())
    }

    /// Waits for the client to take what is sent, but not for ever.
    async fn within(
        &self,
        pace: &mut Pace,
        sending: impl Future<Output = Result<(), StreamError>>,
    ) -> Result<(), StreamClosed> {
        let now = self.place.worker.clock.now();
        let limits = &self.limits;
        let (deadline, cut) = sooner(
            (now + limits.write_timeout, Cut::WriteTimeout),
            pace.deadline(now, limits.write_timeout, limits.read_rate),
            Cut::ReadRate,
        );
        let Ok(sent) = timeout_at(deadline.into(), sending).await else {
            self.place.worker.counters.cut(cut);
            return Err(StreamClosed);
        };
        sent.map_err(|_| StreamClosed)
    }

    /// Lets the client finish its request, within bounds, and waits until it has all of the response.
    async fn end(&self, reading: &mut Reading) {
        let counters = &self.place.worker.counters;
        let mut left = self.limits.discard_bytes;
        let mut has_all = false;
        let mut has_sent_all = false;
        let both = poll_fn(|cx: &mut Context<'_>| {
            if !has_all {
                has_all = self.stream.poll_over(cx, &self.tap).is_ready();
            }
            if !has_sent_all {
                has_sent_all = reading
                    .poll_discarded(cx, &self.limits, counters, &mut left)
                    .is_ready();
            }
            if has_all && has_sent_all {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        });
        let longest = self.limits.write_timeout.max(self.limits.body_timeout) * 2;
        timeout(longest, both).await.ok();
    }
}

/// Whether the request is a CONNECT to a host and port (RFC 9114, section 4.4).
fn is_connect(parts: &Parts) -> bool {
    parts.method == Method::CONNECT && parts.extensions.get::<Protocol>().is_none()
}

/// Whether a CONNECT has `:scheme` or `:path`, which only an extended one has (RFC 9114, section 4.4).
fn is_malformed_connect(parts: &Parts) -> bool {
    is_connect(parts) && (parts.uri.scheme().is_some() || parts.uri.path_and_query().is_some())
}

/// Whether there are fields that only a connection of HTTP/1 has (RFC 9114, section 4.2).
fn has_connection_fields(fields: &HeaderMap) -> bool {
    let is_there = fields
        .keys()
        .any(|name| FieldClass::from_name(name.as_str().as_bytes()).is_connection_specific());
    is_there || fields.get_all(TE).iter().any(|value| value != "trailers")
}
