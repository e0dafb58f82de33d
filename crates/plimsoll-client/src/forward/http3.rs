//! Exchanges on shared HTTP/3 connections.
//!
//! QUIC gives credit for content as it is read, so nothing is read ahead. What the `h3` crate offers only as functions
//! that wait is kept as a future beside the half of the stream that it works on.

mod tunnel;

use std::cell::Cell;
use std::error::Error;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use bytes::{Buf as _, Bytes};
use h3::client::RequestStream;
use h3::error::{Code, StreamError};
use h3::ext::Protocol;
use h3_quinn::SendStream;
use http::header::{HeaderName, HeaderValue};
use http::{Method, Request, Response, StatusCode, Uri};
use http_body::{Body, Frame};
use plimsoll_model::{Failure, FailureKind, Phase, Side};
use plimsoll_wire::h1::BodyLength;
use plimsoll_wire::http::Nominated;

pub(super) use self::tunnel::Http3Tunnel;

use super::head::Head;
use super::pool::Destination;
use super::response_head::{Fields, ResponseHead};
use super::upload::{BodyPart, Upload};
use crate::http3::{Http3, Length, Receiver};
use crate::timing::Timing;
use crate::{Completed, Incomplete};

/// A QUIC connection that carries many exchanges.
pub(super) struct QuicConnection {
    pub(super) http: Http3,
    /// Leases and exchanges.
    in_use: Cell<usize>,
    /// When it is old: names should be looked up again.
    use_until: Instant,
    /// Leases that were granted.
    granted: Cell<u64>,
    idle_since: Cell<Instant>,
    streams: usize,
}

impl QuicConnection {
    pub(super) fn new(http: Http3, streams: u32, now: Instant, use_until: Instant) -> Self {
        Self {
            http,
            in_use: Cell::new(0),
            use_until,
            granted: Cell::new(0),
            idle_since: Cell::new(now),
            streams: streams as usize,
        }
    }

    pub(super) fn is_retired(&self) -> bool {
        self.http.is_retired()
    }

    pub(super) fn is_free(&self) -> bool {
        !self.is_retired() && self.in_use.get() < self.streams
    }

    pub(super) fn is_old(&self, now: Instant) -> bool {
        now >= self.use_until
    }

    /// Whether it takes no more exchanges, since it has carried so many.
    pub(super) fn has_carried_all(&self, exchanges: u64) -> bool {
        self.granted.get() >= exchanges
    }

    pub(super) fn is_unused_since(&self, timeout: Duration, now: Instant) -> bool {
        self.in_use.get() == 0 && now.saturating_duration_since(self.idle_since.get()) >= timeout
    }
}

/// A place on a connection, for a lease and then for its exchange.
pub(super) struct QuicPlace {
    pub(super) connection: Rc<QuicConnection>,
    destination: Rc<Destination>,
}

impl QuicPlace {
    pub(super) fn new(connection: Rc<QuicConnection>, destination: Rc<Destination>) -> Self {
        connection.in_use.set(connection.in_use.get() + 1);
        connection.granted.set(connection.granted.get() + 1);
        Self {
            connection,
            destination,
        }
    }
}

impl Drop for QuicPlace {
    fn drop(&mut self) {
        let in_use = &self.connection.in_use;
        in_use.set(in_use.get() - 1);
        if in_use.get() == 0 {
            self.connection.idle_since.set(self.destination.now());
        }
        self.destination.call();
    }
}

type Receiving = RequestStream<Receiver, Bytes>;
type Job<T> = Pin<Box<dyn Future<Output = T>>>;

/// The half that sends. Dropped before its end it resets the stream, which would otherwise end as if it were complete.
struct Sending {
    stream: RequestStream<SendStream<Bytes>, Bytes>,
    is_finished: bool,
    code: Rc<Cell<u64>>,
}

impl Drop for Sending {
    fn drop(&mut self) {
        if !self.is_finished {
            self.stream.stop_stream(Code::from(self.code.get()));
        }
    }
}

/// State of the request.
enum Send {
    /// Waits for a stream.
    Opening(Job<Result<(Box<Sending>, Receiving), StreamError>>),
    Idle(Box<Sending>),
    Busy(Job<(Box<Sending>, Result<(), StreamError>)>),
    /// It is sent, or the server takes no more of it.
    Done,
}

/// State of the response.
enum Receive {
    Opening,
    Idle(Receiving),
    Heading(Job<(Receiving, Result<Response<()>, StreamError>)>),
    Content(Receiving, Length),
    Done,
}

/// One request and its response.
pub(super) struct Http3Exchange<B> {
    place: QuicPlace,
    upload: Upload<B>,
    send: Send,
    receive: Receive,
    code: Rc<Cell<u64>>,
    timing: Timing,
    is_head: bool,
    /// Behind a 2xx, the stream is one of bytes.
    is_tunnel: bool,
    is_reused: bool,
    interim: usize,
    status: u16,
    content_left: Option<u64>,
    outcome: Option<Result<Completed, Incomplete>>,
}

impl<B: Body<Data = Bytes, Error: Into<Box<dyn Error + std::marker::Send + Sync>>> + Unpin>
    Http3Exchange<B>
{
    pub(super) fn begin(
        place: QuicPlace,
        head: &Head<'_>,
        body: B,
        begun: Instant,
    ) -> Result<Self, Failure> {
        let http = &place.connection.http;
        let refused = |cause: &str| {
            let failure = Failure::new(Phase::Send, FailureKind::UpgradeRefused);
            Err(failure.because(cause))
        };
        match head.upgrade {
            None if head.is_connect() => {
                return refused("CONNECT is not supported over HTTP/3")
                    .map_err(|failure| failure.on(Side::Ours));
            }
            Some(protocol) if !protocol.eq_ignore_ascii_case("websocket") => {
                return refused("of upgrades over HTTP/3 only websocket is supported")
                    .map_err(|failure| failure.on(Side::Ours));
            }
            Some(_) if !http.allows_extended_connect() => {
                return refused("the server does not allow extended CONNECT (RFC 9220)");
            }
            Some(_) | None => {}
        }
        let is_tunnel = head.upgrade.is_some();
        let waits = head.expects_continue.then(|| begun.into());
        let upload = Upload::new(body, head, true, is_tunnel, waits);
        let request = request(head, &place.destination, upload.length()).map_err(|cause| {
            Failure::new(Phase::Send, FailureKind::Protocol)
                .on(Side::Ours)
                .because(cause.to_string())
        })?;
        let code = Rc::new(Cell::new(Code::H3_REQUEST_CANCELLED.value()));
        let mut sender = http.sender();
        let websocket = is_tunnel.then(|| http.opening_websocket());
        let sending_code = Rc::clone(&code);
        let opening = Box::pin(async move {
            let _websocket = websocket;
            let (stream, receiving) = sender.send_request(request).await?.split();
            let sending = Box::new(Sending {
                stream,
                is_finished: false,
                code: sending_code,
            });
            Ok((sending, receiving))
        });
        Ok(Self {
            is_reused: place.connection.http.has_carried(),
            place,
            upload,
            send: Send::Opening(opening),
            receive: Receive::Opening,
            code,
            timing: Timing::begin(begun),
            is_head: head.method == "HEAD",
            is_tunnel,
            interim: 0,
            status: 0,
            content_left: None,
            outcome: None,
        })
    }

    pub(super) fn poll_head(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<ResponseHead, Incomplete>> {
        self.poll_send(context)?;
        loop {
            match std::mem::replace(&mut self.receive, Receive::Done) {
                Receive::Idle(mut receiving) => {
                    self.receive = Receive::Heading(Box::pin(async move {
                        let head = receiving.recv_response().await;
                        (receiving, head)
                    }));
                }
                Receive::Heading(mut job) => {
                    let Poll::Ready((receiving, head)) = job.as_mut().poll(context) else {
                        self.receive = Receive::Heading(job);
                        return Poll::Pending;
                    };
                    let head = match head {
                        Ok(head) => head,
                        Err(error) => return Poll::Ready(Err(self.broken(error))),
                    };
                    return Poll::Ready(self.take_head(receiving, &head));
                }
                other => {
                    self.receive = other;
                    return Poll::Pending;
                }
            }
        }
    }

    fn take_head(
        &mut self,
        receiving: Receiving,
        head: &Response<()>,
    ) -> Result<ResponseHead, Incomplete> {
        let now = self.place.destination.now();
        self.timing.first_byte_at.get_or_insert(now);
        let status = head.status();
        if status.is_informational() {
            self.interim += 1;
            let limit = self.place.destination.options().limits.interim;
            if self.interim > limit || status == StatusCode::SWITCHING_PROTOCOLS {
                let failure = Failure::new(Phase::Wait, FailureKind::Protocol)
                    .because(format!("more than {limit} interim responses"));
                return Err(self.fail(failure));
            }
            if status == StatusCode::CONTINUE {
                self.upload.proceed();
            }
            self.receive = Receive::Idle(receiving);
        } else {
            self.status = status.as_u16();
            let announced = if self.is_tunnel && status.is_success() {
                // Bytes behind the head are not content.
                Ok(Length::unknown())
            } else {
                Length::announced(head, self.is_head)
            };
            let length = match announced {
                Ok(length) => length,
                Err(failure) => return Err(self.fail(failure)),
            };
            self.content_left = length.left();
            self.receive = Receive::Content(receiving, length);
            if self.upload.is_waiting() {
                // The body is not wanted: the stream is reset instead.
                self.send = Send::Done;
            }
        }
        Ok(ResponseHead {
            status,
            reason: None,
            version: head.version(),
            fields: Fields::of_map(head.headers()),
        })
    }

    pub(super) fn poll_frame(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Incomplete>>> {
        if let Err(incomplete) = self.poll_send(context) {
            return Poll::Ready(Some(Err(incomplete)));
        }
        let Receive::Content(receiving, length) = &mut self.receive else {
            return match &self.outcome {
                Some(Ok(_)) => Poll::Ready(None),
                Some(Err(incomplete)) => Poll::Ready(Some(Err(incomplete.clone()))),
                None => Poll::Pending,
            };
        };
        let data = match ready!(receiving.poll_recv_data(context)) {
            Ok(Some(mut data)) => {
                let bytes = data.copy_to_bytes(data.remaining());
                let limit = self.place.destination.options().limits.body_bytes;
                if let Err(failure) = length.count_received(bytes.len(), limit) {
                    return Poll::Ready(Some(Err(self.fail(failure))));
                }
                self.content_left = length.left();
                return Poll::Ready(Some(Ok(Frame::data(bytes))));
            }
            Ok(None) => receiving.poll_recv_trailers(context),
            Err(error) => return Poll::Ready(Some(Err(self.broken(error)))),
        };
        let trailers = match ready!(data) {
            Ok(trailers) => trailers,
            Err(error) => return Poll::Ready(Some(Err(self.broken(error)))),
        };
        if let Err(failure) = length.end() {
            return Poll::Ready(Some(Err(self.fail(failure))));
        }
        self.complete();
        let trailers =
            trailers.map(|trailers| Fields::of_map(&trailers).into_trailers(&Nominated::default()));
        let trailers = trailers.filter(|trailers| !trailers.is_empty());
        Poll::Ready(trailers.map(|trailers| Ok(Frame::trailers(trailers))))
    }

    pub(super) fn poll_upload(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), Incomplete>> {
        self.poll_send(context)?;
        match self.send {
            Send::Done => Poll::Ready(Ok(())),
            _ => Poll::Pending,
        }
    }

    pub(super) fn first_byte_at(&self) -> Option<Instant> {
        self.timing.first_byte_at
    }

    pub(super) fn completed(&self) -> Option<Completed> {
        self.outcome.as_ref()?.as_ref().ok().copied()
    }

    pub(super) fn is_received(&self) -> bool {
        matches!(self.outcome, Some(Ok(_)))
    }

    pub(super) fn content_left(&self) -> Option<u64> {
        match self.outcome {
            Some(Ok(_)) => Some(0),
            _ => self.content_left,
        }
    }

    pub(super) fn into_untouched_body(self) -> Option<B> {
        self.upload.into_untouched()
    }

    /// Takes the stream over behind a response that granted the upgrade.
    pub(super) fn upgrade(self) -> Option<Http3Tunnel> {
        let is_granted = self.is_tunnel && (200..300).contains(&self.status);
        match (self.send, self.receive) {
            (Send::Idle(sending), Receive::Content(receiving, _)) if is_granted => {
                Some(Http3Tunnel::new(receiving, sending, self.place))
            }
            _ => None,
        }
    }

    pub(super) fn reset(self, code: u64) {
        self.code.set(code);
    }

    /// Sends what is ready of the request.
    fn poll_send(&mut self, context: &mut Context<'_>) -> Result<(), Incomplete> {
        if let Some(Err(incomplete)) = &self.outcome {
            return Err(incomplete.clone());
        }
        loop {
            match std::mem::replace(&mut self.send, Send::Done) {
                Send::Done => return Ok(()),
                Send::Opening(mut job) => match job.as_mut().poll(context) {
                    Poll::Pending => {
                        self.send = Send::Opening(job);
                        return Ok(());
                    }
                    Poll::Ready(Ok((sending, receiving))) => {
                        self.send = Send::Idle(sending);
                        self.receive = Receive::Idle(receiving);
                    }
                    Poll::Ready(Err(error)) => return Err(self.broken(error)),
                },
                Send::Busy(mut job) => match job.as_mut().poll(context) {
                    Poll::Pending => {
                        self.send = Send::Busy(job);
                        return Ok(());
                    }
                    Poll::Ready((sending, Ok(()))) if sending.is_finished => {
                        self.timing.sent_at = Some(self.place.destination.now());
                    }
                    Poll::Ready((sending, Ok(()))) => self.send = Send::Idle(sending),
                    // A server may respond, and then take no more of the request (RFC 9114, section 4.1).
                    Poll::Ready((_, Err(StreamError::RemoteTerminate { .. }))) => {}
                    Poll::Ready((_, Err(error))) => return Err(self.broken(error)),
                },
                // Bytes sent on a tunnel are not the body.
                Send::Idle(sending) if self.is_tunnel => {
                    self.send = Send::Idle(sending);
                    return Ok(());
                }
                Send::Idle(sending) => match self.upload.poll_piece(context) {
                    Poll::Pending => {
                        self.send = Send::Idle(sending);
                        return Ok(());
                    }
                    Poll::Ready(Ok(piece)) => self.send = Send::Busy(transfer(sending, piece)),
                    // Dropping the half resets the stream.
                    Poll::Ready(Err(failure)) => return Err(self.fail(failure)),
                },
            }
        }
    }

    fn complete(&mut self) {
        let done = self.place.destination.now();
        let http = &self.place.connection.http;
        http.carried();
        let (bytes_sent, bytes_received) = http.take_traffic();
        self.receive = Receive::Done;
        self.outcome = Some(Ok(Completed {
            status: self.status,
            phases: self.timing.completed(done),
            bytes_sent,
            bytes_received,
            done,
            reusable: !http.is_retired(),
            surplus: false,
        }));
    }

    fn broken(&mut self, error: StreamError) -> Incomplete {
        let failure = self
            .place
            .connection
            .http
            .failed(self.timing.phase(), error);
        self.fail(failure)
    }

    fn fail(&mut self, failure: Failure) -> Incomplete {
        self.send = Send::Done;
        self.receive = Receive::Done;
        let (bytes_sent, bytes_received) = self.place.connection.http.take_traffic();
        let incomplete = Incomplete {
            failure: super::resolved(failure, self.is_reused),
            phases: self.timing.partial(),
            bytes_sent,
            bytes_received,
            done: self.place.destination.now(),
        };
        self.outcome = Some(Err(incomplete.clone()));
        incomplete
    }
}

/// Sends one part of a body, and the end behind the last one.
fn transfer(
    mut sending: Box<Sending>,
    piece: BodyPart,
) -> Job<(Box<Sending>, Result<(), StreamError>)> {
    Box::pin(async move {
        let result = match piece {
            BodyPart::Data(data) => sending.stream.send_data(data).await,
            BodyPart::End => finish(&mut sending).await,
            BodyPart::Trailers(trailers) => match sending.stream.send_trailers(trailers).await {
                Ok(()) => finish(&mut sending).await,
                Err(error) => Err(error),
            },
        };
        (sending, result)
    })
}

async fn finish(sending: &mut Sending) -> Result<(), StreamError> {
    sending.stream.finish().await?;
    sending.is_finished = true;
    Ok(())
}

/// The head in the form that the `h3` crate takes.
fn request(
    head: &Head<'_>,
    destination: &Destination,
    length: BodyLength,
) -> Result<Request<()>, http::Error> {
    let endpoint = destination.endpoint();
    let uri = Uri::builder()
        .scheme(endpoint.scheme().name())
        .authority(head.authority.unwrap_or(endpoint.authority()))
        .path_and_query(head.target)
        .build()?;
    let mut request = Request::new(());
    *request.method_mut() = if head.upgrade.is_some() {
        // RFC 9220, section 3, by RFC 8441, section 4.
        Method::CONNECT
    } else {
        Method::from_bytes(head.method.as_bytes())?
    };
    *request.uri_mut() = uri;
    if head.upgrade.is_some() {
        // The `h3` crate has no constant for `websocket`: the transport writes it in place of this one.
        request.extensions_mut().insert(Protocol::CONNECT_UDP);
    }
    let fields = request.headers_mut();
    let mut result: Result<(), http::Error> = Ok(());
    let mut append = |name: &[u8], value: &[u8]| {
        let name = HeaderName::from_bytes(name)?;
        fields.append(name, HeaderValue::from_bytes(value)?);
        Ok(())
    };
    let has_trailers = length != BodyLength::None;
    let protocol = plimsoll_model::Protocol::Http3;
    head.each_field(protocol, has_trailers, &mut |name, value| {
        if result.is_ok() {
            result = append(name, value);
        }
    });
    result?;
    if let BodyLength::Known(length) = length {
        append(b"content-length", length.to_string().as_bytes())?;
    }
    if head.expects_continue && length != BodyLength::None {
        append(b"expect", b"100-continue")?;
    }
    Ok(request)
}
