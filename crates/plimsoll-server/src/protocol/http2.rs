//! One HTTP/2 connection, on the `h2` crate with every limit set.
//!
//! Answers that are there at once are sent from the connection's own task; those that take longer have
//! a task each, which ends with the stream.

mod content;

mod stream;

pub(crate) mod tap;

pub(crate) mod tunnel;

use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;
use std::time::{Duration, Instant};

use bytes::Bytes;
use h2::ext::Protocol;
use h2::server::{Builder, Connection, SendResponse};
use h2::{Reason, RecvStream};
use http::{Method, StatusCode};
use plimsoll_model::Clock;
use tokio::sync::oneshot;

use crate::action::{Answer, Outcome, Refusal};
use crate::counters::Cut;
use crate::limits::Limits;
use crate::message::connection::ConnectionInfo;
use crate::message::fields::Fields;
use crate::message::request::{Content, ContentSource, Held, Request, Scheme, Start};
use crate::message::response::Response;
use crate::protocol::activity::{Activity, Busy};
use crate::protocol::head;
use crate::protocol::http2::content::{Unread, hand_over};
use crate::protocol::http2::stream::Responder;
use crate::protocol::http2::tap::{Tap, TapState};
use crate::protocol::http3::alternative::AltSvc;
use crate::protocol::service::Service;
use crate::stream::Stream;
use crate::version::Version;
use crate::worker::ConnectionGuard;
use crate::worker::timer::Timer;

/// Serves `stream` until either side closes it.
pub(crate) async fn serve(
    stream: Stream,
    service: Rc<Service>,
    place: ConnectionGuard,
    info: Rc<ConnectionInfo>,
) {
    let limits = place.worker.limits();
    let scheme = if stream.is_tls() {
        Scheme::Https
    } else {
        Scheme::Http
    };
    let clock = place.worker.clock;
    let now = clock.now();
    let deadline = now + limits.header_timeout;
    let mut timer = Timer::new(deadline);
    let place = Rc::new(place);
    let (tap, state) = Tap::new(stream, Rc::clone(&place), now);
    let mut handshake = std::pin::pin!(builder(&limits).handshake(tap));
    let handshaken = poll_fn(|cx| {
        if let Poll::Ready(result) = handshake.as_mut().poll(cx) {
            return Poll::Ready(result.map_err(|error| cut_of(&error)));
        }
        timer
            .poll_passed(cx, deadline, &clock)
            .map(|()| Err(Some(Cut::HeaderTimeout)))
    })
    .await;
    let served = match handshaken {
        Ok(connection) => {
            let http2 = Http2 {
                connection,
                alternative: service.alternative(scheme),
                service,
                info,
                scheme,
                timer,
                activity: Rc::new(Activity::new(clock.now())),
                leaving: None,
                accepted: Vec::new(),
                is_given_up: false,
                tap: Rc::clone(&state),
                limits,
                place: Rc::clone(&place),
            };
            http2.run().await
        }
        Err(cut) => cut.map_or(Ok(()), Err),
    };
    // The tap knows best what was wrong.
    let tripped = state.tripped();
    let given_up = || served.err().map(|cut| state.given_up().unwrap_or(cut));
    if let Some(cut) = tripped.or_else(given_up) {
        place.worker.counters.cut(cut);
    }
}

fn builder(limits: &Limits) -> Builder {
    let mut builder = Builder::new();
    builder
        .enable_connect_protocol()
        .max_concurrent_streams(limits.http2.streams)
        .max_header_list_size(limits.http2.header_list_bytes)
        .max_pending_accept_reset_streams(limits.http2.pending_resets)
        .max_local_error_reset_streams(Some(limits.http2.provoked_resets))
        .max_concurrent_reset_streams(limits.http2.pending_resets)
        .max_send_buffer_size(limits.http2.send_buffer_bytes)
        .initial_window_size(limits.http2.stream_window)
        .initial_connection_window_size(limits.http2.connection_window);
    builder
}

/// The offence of a client that ended its connection, if there was one.
fn cut_of(error: &h2::Error) -> Option<Cut> {
    (error.is_library() || (error.is_go_away() && !error.is_remote())).then_some(Cut::Http2)
}

struct Http2 {
    connection: Connection<Tap, Bytes>,
    tap: Rc<TapState>,
    service: Rc<Service>,
    place: Rc<ConnectionGuard>,
    info: Rc<ConnectionInfo>,
    scheme: Scheme,
    limits: Rc<Limits>,
    timer: Timer,
    activity: Rc<Activity>,
    /// Since when no new streams are taken.
    leaving: Option<Instant>,
    /// Requests that came with the same read, whose answers leave with the same write.
    accepted: Vec<Accepted>,
    /// The client got the refusal of too much content.
    is_given_up: bool,
    /// Value of `alt-svc` that announces HTTP/3.
    alternative: Option<Rc<AltSvc>>,
}

type Accepted = (http::Request<RecvStream>, SendResponse<Bytes>);

/// Requests that may wait for each other.
const MOST_GATHERED: usize = 64;

/// Time a client has to notice GOAWAY.
const LINGER: Duration = Duration::from_secs(2);

enum Event {
    /// There are requests to answer.
    Accepted,
    Ended(Result<(), Cut>),
    /// Nothing is under way, and that for long; or the engine drains.
    Leave,
    /// The client brings too much of what the tap counts.
    TooMuch,
    /// Leaving takes too long, or the client takes nothing.
    Late,
}

impl Http2 {
    async fn run(mut self) -> Result<(), Cut> {
        loop {
            match self.next().await {
                Event::Accepted => {
                    for (request, respond) in std::mem::take(&mut self.accepted) {
                        self.handle(request, respond);
                    }
                }
                Event::Ended(result) => return result,
                Event::Leave => {
                    self.leaving = Some(self.place.worker.clock.now());
                    self.tap.expect_end();
                    self.connection.graceful_shutdown();
                }
                Event::TooMuch => {
                    self.is_given_up = true;
                    self.connection.abrupt_shutdown(Reason::ENHANCE_YOUR_CALM);
                }
                Event::Late => return Err(Cut::WriteTimeout),
            }
        }
    }

    async fn next(&mut self) -> Event {
        poll_fn(|cx| {
            let worker = &self.place.worker;
            self.place.watch(cx.waker());
            // Each call of it sends what is there to be sent, so answers wait until all requests are taken.
            while self.accepted.len() < MOST_GATHERED {
                match self.connection.poll_accept(cx) {
                    Poll::Ready(Some(Ok(accepted))) => self.accepted.push(accepted),
                    Poll::Ready(Some(Err(error))) => {
                        let result = cut_of(&error).map_or(Ok(()), Err);
                        return Poll::Ready(Event::Ended(result));
                    }
                    Poll::Ready(None) if self.accepted.is_empty() => {
                        return Poll::Ready(Event::Ended(Ok(())));
                    }
                    Poll::Ready(None) | Poll::Pending => break,
                }
            }
            if !self.accepted.is_empty() {
                return Poll::Ready(Event::Accepted);
            }
            if self.tap.tripped().is_some() && !self.is_given_up {
                return Poll::Ready(Event::TooMuch);
            }
            if self.leaving.is_none() && worker.draining().is_some() {
                return Poll::Ready(Event::Leave);
            }
            let Some((deadline, event)) = self.deadline() else {
                return Poll::Pending;
            };
            self.timer
                .poll_passed(cx, deadline, &worker.clock)
                .map(|()| event)
        })
        .await
    }

    /// When something has to happen unless the client does something before.
    fn deadline(&self) -> Option<(Instant, Event)> {
        if let Some(since) = self.tap.lingering() {
            return Some((since + LINGER, Event::Ended(Err(Cut::Http2))));
        }
        if let Some(since) = self.tap.blocked() {
            return Some((since + self.limits.write_timeout, Event::Late));
        }
        if self.activity.tasks() > 0 {
            return None;
        }
        let last = self.activity.last();
        Some(match self.leaving {
            None => (last + self.limits.idle_timeout, Event::Leave),
            Some(since) => (since.max(last) + self.limits.write_timeout, Event::Late),
        })
    }

    fn handle(&mut self, request: http::Request<RecvStream>, mut respond: SendResponse<Bytes>) {
        if self.tap.is_malformed(respond.stream_id().as_u32()) {
            respond.send_reset(Reason::PROTOCOL_ERROR);
            return;
        }
        let worker = &self.place.worker;
        let now = worker.clock.now();
        self.activity.is_seen(now);
        let date = worker.memory.borrow_mut().date_value(now, worker.clock);
        let (mut parts, stream) = request.into_parts();
        head::join_cookies(&mut parts.headers);
        // Content that is not read is discarded until the response is through.
        let (responding, unread) = if stream.is_end_stream() {
            (None, None)
        } else {
            let (responding, response_ends) = oneshot::channel();
            let unread = Unread {
                limits: Rc::clone(&self.limits),
                busy: Busy::new(&self.activity, &self.place),
                responding: response_ends,
            };
            (Some(responding), Some(unread))
        };
        let discard_later = |unread: Option<Unread>, stream| {
            if let Some(unread) = unread {
                tokio::task::spawn_local(unread.discard(stream));
            }
        };
        let mut responder = Responder {
            respond,
            _responding: responding,
            place: Rc::clone(&self.place),
            is_head: parts.method == Method::HEAD,
            date,
            alternative: self.alternative.clone(),
            route: None,
            kept: None,
            held: Held::default(),
            interims: None,
            is_tls: self.scheme == Scheme::Https,
            tunnel: None,
            tap: Rc::clone(&self.tap),
        };
        let checked = match head::checked(&parts, &self.limits.request) {
            Ok(checked) => checked,
            Err(error) => {
                worker.counters.refused(error);
                self.service.action().refused(&Refusal {
                    peer: self.info.peer,
                    version: Version::Http2,
                    error,
                });
                let status =
                    StatusCode::from_u16(error.status()).unwrap_or(StatusCode::BAD_REQUEST);
                responder.send(Response::text(status, format!("{error}\n")));
                return discard_later(unread, stream);
            }
        };
        let upgrade = parts.extensions.get::<Protocol>();
        let upgrade = upgrade.map(|protocol| protocol.as_str().as_bytes());
        if upgrade.is_some_and(|it| !it.eq_ignore_ascii_case(b"websocket")) {
            responder.send(head::unknown_protocol());
            return discard_later(unread, stream);
        }
        let is_tunnel = parts.method == Method::CONNECT;
        let content = if stream.is_end_stream() {
            Content::none()
        } else {
            Content::unread(checked.length)
        };
        let start = Start {
            method: parts.method.as_str(),
            scheme: self.scheme,
            authority: checked.authority,
            path: parts.uri.path(),
            query: parts.uri.query(),
            version: Version::Http2,
            upgrade,
            fields: Fields::Map(&parts.headers),
        };
        let request = Request::new(start, &self.info, &content);
        let answer = self.service.action().handle(&request);
        responder.route = content.take_route();
        responder.kept = content.kept();
        responder.held = content.held.take();
        let is_expected = head::is_expected(&parts);
        let is_awaited =
            is_expected && matches!(&*content.source.borrow(), ContentSource::Taken(_));
        // An action that answers later may send some at any time until then.
        if is_awaited || matches!(answer, Answer::Later(_)) {
            content.make_interims();
        }
        responder.interims = content.interims().cloned();
        match content.source.take() {
            // Bytes behind the head are the tunnel's, not content.
            ContentSource::Unread(_) | ContentSource::None if is_tunnel => {
                responder.tunnel = Some(stream);
            }
            // A request that is kept to be answered later has taken what it has.
            ContentSource::Taken(sender) if is_tunnel => {
                sender.end(Ok(None));
                responder.tunnel = Some(stream);
            }
            // It was not read: the client may finish, within bounds, rather than be interrupted.
            ContentSource::Unread(_) => {
                discard_later(unread, stream);
            }
            ContentSource::Taken(sender) => {
                let asks = responder.interims.clone().filter(|_| is_expected);
                // The response's content may depend on the request's, so 100 (Continue) is sent before it.
                if let Answer::Now(Outcome::Respond(response)) = &answer
                    && let Some(interims) = &asks
                    && response.is_streamed()
                {
                    interims.ask_to_continue();
                }
                if let Some(unread) = unread {
                    let tap = Rc::clone(&self.tap);
                    tokio::task::spawn_local(hand_over(stream, sender, asks, tap, unread));
                }
            }
            ContentSource::None | ContentSource::Kept(_) => {}
        }
        match answer {
            Answer::Now(Outcome::Respond(response)) => {
                if let Some((responder, body, stream)) = responder.send_or_stream(response) {
                    let busy = Busy::new(&self.activity, &self.place);
                    let limits = Rc::clone(&self.limits);
                    tokio::task::spawn_local(responder.stream(body, stream, limits, busy));
                }
            }
            Answer::Now(outcome) => {
                if let Some((stream, take_over)) = responder.upgrade(outcome) {
                    let busy = Busy::new(&self.activity, &self.place);
                    let drain = self.place.worker.drain.clone();
                    tokio::task::spawn_local(async move {
                        take_over(stream, drain).await;
                        drop(busy);
                    });
                }
            }
            Answer::Later(future) => {
                let busy = Busy::new(&self.activity, &self.place);
                let limits = Rc::clone(&self.limits);
                tokio::task::spawn_local(responder.later(future, limits, busy));
            }
        }
    }
}
