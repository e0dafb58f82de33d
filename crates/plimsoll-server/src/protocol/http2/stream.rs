//! One stream of HTTP/2: sending its response.

use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, RecvStream, SendStream};
use http::header::{ALT_SVC, CONTENT_LENGTH, DATE, HeaderValue, SEC_WEBSOCKET_ACCEPT, UPGRADE};
use http::{HeaderMap, StatusCode};
use http_body::{Body, Frame};
use plimsoll_model::Clock;
use tokio::sync::oneshot;

use super::tap::TapState;
use super::tunnel::Tunnel;
use crate::action::{LocalFuture, Outcome, TakeOver};
use crate::counters::{Cut, RouteTag};
use crate::limits::Limits;
use crate::message::body::withhold_heads_fields;
use crate::message::interim::Interims;
use crate::message::request::{Content, Held};
use crate::message::response::{
    Framed, Response, ResponseBody, StreamError, has_content, tunnel_status,
};
use crate::protocol::activity::Busy;
use crate::protocol::http3::alternative::AltSvc;
use crate::protocol::pace::{Pace, sooner};
use crate::stream::Stream;
use crate::version::Version;
use crate::worker::ConnectionGuard;
use crate::worker::timer::Timer;

/// Content of a response that comes in pieces.
type StreamBody = Pin<Box<dyn Body<Data = Bytes, Error = StreamError>>>;

/// Content that is there as a whole.
struct WholeBody(Option<Bytes>);

impl Body for WholeBody {
    type Data = Bytes;
    type Error = StreamError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, StreamError>>> {
        Poll::Ready(self.0.take().map(|bytes| Ok(Frame::data(bytes))))
    }
}

/// Sends the response of one stream.
pub(super) struct Responder {
    pub(super) respond: SendResponse<Bytes>,
    /// Dropped with the rest: the response is through then.
    pub(super) _responding: Option<oneshot::Sender<Infallible>>,
    pub(super) place: Rc<ConnectionGuard>,
    pub(super) is_head: bool,
    pub(super) date: HeaderValue,
    /// Value of `alt-svc` that announces HTTP/3.
    pub(super) alternative: Option<Rc<AltSvc>>,
    pub(super) route: Option<Rc<RouteTag>>,
    /// The request, if it was kept: its route is known only once it is answered.
    pub(super) kept: Option<Rc<Content>>,
    /// What is kept until the response is sent.
    pub(super) held: Held,
    /// Interim responses that the action sends.
    pub(super) interims: Option<Rc<Interims>>,
    pub(super) is_tls: bool,
    /// The client's bytes behind a CONNECT.
    pub(super) tunnel: Option<RecvStream>,
    /// Knows whether the request turned out to be malformed.
    pub(super) tap: Rc<TapState>,
}

impl Responder {
    /// Sends a response whose content is there; one that comes in pieces is cut off before the first.
    pub(super) fn send(self, response: Response) {
        drop(self.send_or_stream(response));
    }

    /// Sends what is there of a response; returns what must be waited for.
    pub(super) fn send_or_stream(
        mut self,
        mut response: Response,
    ) -> Option<(Self, StreamBody, SendStream<Bytes>)> {
        if self.tunnel.is_some() {
            response = response.without_tunnel();
        }
        let Framed {
            status,
            fields,
            content,
            length,
        } = response.framed(self.is_head);
        let is_over = self.is_head || !has_content(status) || length == Some(0);
        // A stream that the client has reset concerns only itself.
        let mut stream = self.head(status, fields, is_over)?;
        if is_over {
            return None;
        }
        match content {
            ResponseBody::Empty | ResponseBody::Announced(_) => None,
            ResponseBody::Bytes(bytes) => {
                stream.reserve_capacity(bytes.len());
                if stream.capacity() >= bytes.len() {
                    stream.send_data(bytes, true).ok();
                    return None;
                }
                // A client whose window has no room is waited for, but not for ever.
                Some((self, Box::pin(WholeBody(Some(bytes))), stream))
            }
            ResponseBody::File(part) => Some((self, Box::pin(part), stream)),
            ResponseBody::Stream(body) => Some((self, body, stream)),
        }
    }

    fn head(
        &mut self,
        status: StatusCode,
        mut fields: HeaderMap,
        is_over: bool,
    ) -> Option<SendStream<Bytes>> {
        if self.tap.is_malformed(self.respond.stream_id().as_u32()) {
            self.respond.send_reset(Reason::PROTOCOL_ERROR);
            return None;
        }
        self.send_interims();
        if let Some(interims) = self.interims.take() {
            interims.end();
        }
        self.place.worker.counters.answered(Version::Http2, status);
        let kept = self.kept.clone();
        let route = self.route.take();
        if let Some(route) = route.or_else(|| kept.and_then(|kept| kept.take_route())) {
            route.answered(status);
        }
        // HTTP/2 has no such thing (RFC 9113, section 8.6).
        fields.remove(UPGRADE);
        fields.entry(DATE).or_insert_with(|| self.date.clone());
        if let Some(alternative) = &self.alternative {
            fields.insert(ALT_SVC, alternative.value.clone());
        }
        let mut response = http::Response::new(());
        *response.status_mut() = status;
        *response.headers_mut() = fields;
        self.respond.send_response(response, is_over).ok()
    }

    /// Sends the interim responses that wait.
    fn send_interims(&mut self) {
        if let Some(interims) = &self.interims {
            while let Some(interim) = interims.pop() {
                // A stream that the client has reset shows so elsewhere.
                let sent = self.respond.send_informational(interim.into_response());
                sent.ok();
            }
        }
    }

    /// Waits for an answer and sends it; gives up when the client does.
    pub(super) async fn later(
        mut self,
        mut future: LocalFuture<Outcome>,
        limits: Rc<Limits>,
        busy: Busy,
    ) {
        let outcome = poll_fn(|cx| {
            let outcome = future.as_mut().poll(cx);
            if let Some(interims) = &self.interims {
                interims.watch(cx.waker());
            }
            self.send_interims();
            if let Poll::Ready(outcome) = outcome {
                return Poll::Ready(Some(outcome));
            }
            self.respond.poll_reset(cx).map(|_| None)
        })
        .await;
        match outcome {
            None => {}
            Some(Outcome::Respond(response)) => {
                if let Some((responder, body, stream)) = self.send_or_stream(response) {
                    responder.stream(body, stream, limits, busy).await;
                }
            }
            Some(outcome) => {
                let drain = self.place.worker.drain.clone();
                if let Some((stream, take_over)) = self.upgrade(outcome) {
                    take_over(stream, drain).await;
                }
                drop(busy);
            }
        }
    }

    /// The stream as one of bytes, and what takes it over, if the client sent CONNECT, extended or not;
    /// other clients are sent back to HTTP/1.1.
    pub(super) fn upgrade(mut self, outcome: Outcome) -> Option<(Stream, TakeOver)> {
        let (Outcome::Upgrade(response, take_over), Some(receive)) = (outcome, self.tunnel.take())
        else {
            self.respond.send_reset(Reason::HTTP_1_1_REQUIRED);
            return None;
        };
        let status = tunnel_status(response.status());
        let mut fields = response.framed(false).fields;
        // That the server has understood is what 200 says (RFC 8441, section 5).
        for name in [CONTENT_LENGTH, SEC_WEBSOCKET_ACCEPT] {
            fields.remove(name);
        }
        let is_tls = self.is_tls;
        let send = self.head(status, fields, false)?;
        let tunnel = Tunnel::new(receive, send, is_tls);
        let timeout = self.place.worker.limits().write_timeout;
        let stream = Stream::tunnel(tunnel).with_write_timeout(timeout);
        Some((stream, take_over))
    }

    /// Sends content as it comes and as the client's window has room.
    pub(super) async fn stream(
        self,
        mut body: StreamBody,
        mut stream: SendStream<Bytes>,
        limits: Rc<Limits>,
        busy: Busy,
    ) {
        let clock = self.place.worker.clock;
        let mut timer = Timer::new(clock.now() + limits.write_timeout);
        loop {
            let frame = poll_fn(|cx| {
                if let Poll::Ready(frame) = body.as_mut().poll_frame(cx) {
                    return Poll::Ready(Some(frame));
                }
                stream.poll_reset(cx).map(|_| None)
            })
            .await;
            if self.tap.is_malformed(self.respond.stream_id().as_u32()) {
                stream.send_reset(Reason::PROTOCOL_ERROR);
                break;
            }
            let data = match frame {
                None => break,
                Some(None) => {
                    stream.send_data(Bytes::new(), true).ok();
                    break;
                }
                Some(Some(Err(_))) => {
                    stream.send_reset(Reason::INTERNAL_ERROR);
                    break;
                }
                Some(Some(Ok(frame))) => match frame.into_data() {
                    Ok(data) => data,
                    Err(frame) => {
                        let mut trailers = frame.into_trailers().unwrap_or_default();
                        withhold_heads_fields(&mut trailers, &self.place.worker.counters);
                        if trailers.is_empty() {
                            stream.send_data(Bytes::new(), true).ok();
                        } else {
                            stream.send_trailers(trailers).ok();
                        }
                        break;
                    }
                },
            };
            if !self
                .send_piece(data, &mut stream, &mut timer, &limits)
                .await
            {
                break;
            }
        }
        drop(busy);
    }

    /// Whether all of `data` could be sent.
    async fn send_piece(
        &self,
        mut data: Bytes,
        stream: &mut SendStream<Bytes>,
        timer: &mut Timer,
        limits: &Limits,
    ) -> bool {
        let worker = &self.place.worker;
        let mut pace = Pace::default();
        while !data.is_empty() {
            stream.reserve_capacity(data.len());
            let now = worker.clock.now();
            let (deadline, cut) = sooner(
                (now + limits.write_timeout, Cut::WriteTimeout),
                pace.deadline(now, limits.write_timeout, limits.read_rate),
                Cut::ReadRate,
            );
            let capacity = poll_fn(|cx| {
                if let Poll::Ready(capacity) = stream.poll_capacity(cx) {
                    return Poll::Ready(capacity.and_then(Result::ok).ok_or(None));
                }
                timer
                    .poll_passed(cx, deadline, &worker.clock)
                    .map(|()| Err(Some(cut)))
            })
            .await;
            match capacity {
                Ok(0) => {}
                Ok(room) => {
                    let piece = data.split_to(room.min(data.len()));
                    pace.took(piece.len());
                    if stream.send_data(piece, false).is_err() {
                        return false;
                    }
                }
                Err(cut) => {
                    if let Some(cut) = cut {
                        // The window has been shut for so long: what is laid up for it is let go.
                        worker.counters.cut(cut);
                        stream.send_reset(Reason::CANCEL);
                    }
                    return false;
                }
            }
        }
        true
    }
}
