//! One connection of HTTP/3: QUIC by quinn, HTTP/3 by the `h3` crate, every limit set (RFC 9000, RFC 9114).
//!
//! `transport` adds what the `h3` crate leaves to its callers: it hands over the streams of quinn and inspects what
//! they bring. Each request has a task of its own, so an error in one ends no other.

mod exchange;

pub(crate) mod alternative;

mod reading;

mod tap;

mod transport;

pub(crate) mod tunnel;

use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;
use std::time::{Duration, Instant};

use bytes::Bytes;
use h3::error::{Code, ConnectionError};
use h3::server::{Connection, RequestResolver};
use plimsoll_model::Clock;
use quinn::TransportErrorCode;
use tokio::time::timeout;

use self::exchange::Exchange;
use self::tap::Tap;
use self::transport::{Transport, code};
use crate::counters::Cut;
use crate::limits::Limits;
use crate::message::connection::ConnectionInfo;
use crate::protocol::activity::{Activity, Busy};
use crate::protocol::service::Service;
use crate::quic::Serve;
use crate::worker::timer::Timer;
use crate::worker::{ConnectionGuard, LAST_CALL};

/// Requests that a client may still begin when it gets the first GOAWAY: more than can be under way.
const SOME_MORE: usize = 100_000;

/// Streams that may end before they brought a head. The `h3` crate remembers each as long as the connection lasts, so
/// one with more of them is let go.
const MOST_HEADLESS: usize = 10_000;

/// Time the client has to receive the notice that the connection ends.
const NOTICE: Duration = Duration::from_secs(1);

/// HTTP/3 by `service`.
pub(crate) fn serve_http3(service: Rc<Service>) -> Serve {
    Rc::new(move |quic, place, local| Box::pin(serve(quic, Rc::clone(&service), place, local)))
}

/// Serves `quic` until either side closes it.
///
/// - `local`: the address of the socket.
pub(crate) async fn serve(
    quic: quinn::Connection,
    service: Rc<Service>,
    place: ConnectionGuard,
    local: SocketAddr,
) {
    let info = Rc::new(ConnectionInfo::of_quic(&quic, place.id(), local));
    let limits = place.worker.limits();
    let place = Rc::new(place);
    let tap = Rc::new(Tap::new(Rc::clone(&place)));
    let transport = Transport::new(quic.clone(), Rc::clone(&tap));
    let mut builder = h3::server::builder();
    builder
        .max_field_section_size(u64::from(limits.http3.header_list_bytes))
        .enable_extended_connect(true)
        .send_grease(false);
    let cut = match timeout(limits.header_timeout, builder.build(transport)).await {
        // A client that allows no streams for what every connection needs.
        Err(_) => Some(Cut::HeaderTimeout),
        Ok(Err(_)) => cut_of(&quic),
        Ok(Ok(http)) => {
            let now = place.worker.clock.now();
            let mut http3 = Http3 {
                http,
                quic: quic.clone(),
                info,
                activity: Rc::new(Activity::new(now)),
                timer: Timer::new(now + limits.idle_timeout),
                leaving: None,
                has_said_last: false,
                has_left: false,
                tap: Rc::clone(&tap),
                service,
                limits,
                place: Rc::clone(&place),
            };
            let is_done = http3.run().await;
            let tripped = tap.tripped().map(|(cut, _)| cut);
            tripped.or_else(|| if is_done { None } else { cut_of(&quic) })
        }
    };
    if let Some(cut) = cut {
        place.worker.counters.cut(cut);
    }
}

/// The offence of a client that ended its connection, if there was one.
fn cut_of(quic: &quinn::Connection) -> Option<Cut> {
    let is_mistake = match quic.close_reason()? {
        // The crates close a connection whose client breaks their rules.
        quinn::ConnectionError::LocallyClosed => true,
        quinn::ConnectionError::TransportError(error) => error.code != TransportErrorCode::NO_ERROR,
        _ => false,
    };
    is_mistake.then_some(Cut::Http3)
}

struct Http3 {
    http: Connection<Transport, Bytes>,
    quic: quinn::Connection,
    info: Rc<ConnectionInfo>,
    tap: Rc<Tap>,
    service: Rc<Service>,
    place: Rc<ConnectionGuard>,
    limits: Rc<Limits>,
    activity: Rc<Activity>,
    timer: Timer,
    /// Since when the client knows that the connection is to end.
    leaving: Option<Instant>,
    /// No further requests are taken.
    has_said_last: bool,
    /// The client begins none.
    has_left: bool,
}

type Accepted = Result<Option<RequestResolver<Transport, Bytes>>, ConnectionError>;

#[expect(clippy::large_enum_variant, reason = "there is one at a time")]
enum Event {
    Accepted(Accepted),
    /// Nothing is under way, and that for long; or the engine drains.
    Leave,
    /// The client has had time to notice.
    Last,
    /// All is done.
    Done,
    /// The client brings too much, or what it must not.
    TooMuch(Code),
}

impl Http3 {
    /// Whether it ended because all was done.
    async fn run(&mut self) -> bool {
        loop {
            match self.next().await {
                Event::Accepted(Ok(Some(resolver))) => self.exchange(resolver),
                // The client leaves; what is under way is still answered.
                Event::Accepted(Ok(None)) => {
                    self.leaving.get_or_insert(self.place.worker.clock.now());
                    (self.has_said_last, self.has_left) = (true, true);
                }
                Event::Accepted(Err(_)) => return false,
                Event::Leave => {
                    self.leaving = Some(self.place.worker.clock.now());
                    // Before the first request the crate would call it the last.
                    if self.tap.next_stream() > 0 {
                        self.report(SOME_MORE).await;
                    }
                }
                Event::Last => {
                    self.has_said_last = true;
                    self.tap.reject_new();
                    // It names the first stream that is not served; the crate counts from the last one that is.
                    self.report(1).await;
                }
                Event::Done => {
                    self.quic.close(code(Code::H3_NO_ERROR), b"");
                    return true;
                }
                Event::TooMuch(reason) => {
                    self.quic.close(code(reason), b"");
                    return false;
                }
            }
        }
    }

    async fn report(&mut self, more: usize) {
        // An error shows again when the next request is waited for.
        timeout(NOTICE, self.http.shutdown(more)).await.ok();
    }

    fn exchange(&mut self, resolver: RequestResolver<Transport, Bytes>) {
        let Some(stream) = self.tap.take_accepted() else {
            return;
        };
        // The client may have moved to another address (RFC 9000, section 9).
        let peer = self.quic.remote_address();
        if peer != self.info.peer {
            Rc::make_mut(&mut self.info).peer = peer;
        }
        let exchange = Exchange {
            place: Rc::clone(&self.place),
            service: Rc::clone(&self.service),
            limits: Rc::clone(&self.limits),
            tap: Rc::clone(&self.tap),
            stream,
            info: Rc::clone(&self.info),
            busy: Busy::new(&self.activity, &self.place),
        };
        tokio::task::spawn_local(exchange.run(resolver));
    }

    async fn next(&mut self) -> Event {
        let Self {
            http,
            tap,
            place,
            activity,
            limits,
            timer,
            leaving,
            has_said_last,
            has_left,
            ..
        } = self;
        let worker = &place.worker;
        let mut accepting = pin!(http.accept());
        poll_fn(|cx| {
            place.watch(cx.waker());
            if let Some((_, reason)) = tap.tripped() {
                return Poll::Ready(Event::TooMuch(reason));
            }
            if *has_said_last && activity.tasks() == 0 {
                return Poll::Ready(Event::Done);
            }
            if !*has_left && let Poll::Ready(accepted) = accepting.as_mut().poll(cx) {
                return Poll::Ready(Event::Accepted(accepted));
            }
            let is_to_leave = worker.draining().is_some() || tap.headless() > MOST_HEADLESS;
            let (deadline, event) = match *leaving {
                None if is_to_leave => return Poll::Ready(Event::Leave),
                None if activity.tasks() > 0 => return Poll::Pending,
                None => (activity.last() + limits.idle_timeout, Event::Leave),
                Some(since) if !*has_said_last => (since + LAST_CALL, Event::Last),
                Some(_) => return Poll::Pending,
            };
            timer
                .poll_passed(cx, deadline, &worker.clock)
                .map(|()| event)
        })
        .await
    }
}
