//! The virtual users of one HTTP/2 connection: as many exchanges at a time as it carries, in one task.
//!
//! Whatever woke the task, all that can be done is: answers are taken, their places begin anew, and
//! what they send leaves in one write. Nothing is allocated for an exchange, and the clock is looked
//! at once for each read and each write, however many exchanges are in it.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use plimsoll_client::check::{Facts, Observer};
use plimsoll_client::grpc::GrpcReading;
use plimsoll_client::{
    Completed, ConnectFailure, Connection, Driven, Http2, Incomplete, Opening, Request, Responses,
    Session, Stream, require_http2,
};
use plimsoll_model::{Clock, Exchange, Failure, FailureKind, Phase, Phases, Protocol, Retry};
use plimsoll_wire::SystemClock;
use plimsoll_wire::h1::ResponseSink as _;
use plimsoll_wire::h2::hpack::Fields;
use plimsoll_wire::h2::{ResponseHead, Settings};
use tokio::time::Sleep;

use crate::back_off::BackOff;
use crate::events::{EventStream, NEVER, Response};
use crate::pace::{Finished, Start, StreamPacer};
use crate::plain::{Shared, add_phases};
use crate::plan::RunPlan;
use crate::source::RequestSource;
use crate::user::Recorder;

/// Turns before the worker's other connections get theirs.
const TURNS_PER_POLL: u32 = 32;

/// How often a request is sent on yet another connection because the one before was left by its
/// server without having looked at it. A server that does so every time is not worth more.
const MOST_ATTEMPTS: u8 = 5;

/// Makes the exchanges of one connection, and of those that replace it.
#[derive(Debug)]
pub(crate) struct StreamsUser {
    shared: Rc<Shared>,
    recorder: Rc<Recorder>,
    pacer: StreamPacer,
    places: Vec<Place>,
    /// Places in play: one until a server has told how many it allows.
    in_play: u32,
    under_way: usize,
    /// One per endpoint.
    links: Vec<Link>,
    settings: Settings,
    /// What the turn under way brought.
    news: News,
    turn: u64,
}

/// Room for one exchange at a time; its number is the exchange's token.
#[derive(Debug)]
struct Place {
    start: Start,
    source: RequestSource,
    /// What the user remembers, and the request with that.
    session: Option<Box<Session>>,
    dressed: Option<Request>,
    /// Bytes of answers after which the same request was sent again.
    bytes_sent: u64,
    bytes_received: u64,
    /// The phases before the request was begun.
    phases: Phases,
    attempts: u8,
    /// The turn in which it was taken up.
    taken_in: u64,
    observer: Option<Observer>,
    /// Only where gRPC is spoken.
    grpc: Option<Box<GrpcReading>>,
    /// Only where streams of events are opened.
    events: Option<Box<EventStream>>,
}

/// The way to one endpoint.
#[derive(Debug)]
struct Link {
    connecting: Option<Connecting>,
    current: Option<Open>,
    /// Retired ones whose last exchanges are still under way.
    retired: Vec<Open>,
    /// Places that wait for a connection, or for room on it.
    queue: VecDeque<u32>,
    /// For the one that waits longest; made when one first waits.
    patience: Option<Pin<Box<Sleep>>>,
    back_off: BackOff,
    /// While no connection may be opened; made when that is first so.
    rest: Option<Pin<Box<Sleep>>>,
}

struct Connecting {
    /// The place whose exchange it is opened for.
    place: u32,
    begun: Instant,
    attempt: Pin<Box<dyn Future<Output = Result<Connection, ConnectFailure>>>>,
}

impl std::fmt::Debug for Connecting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connecting")
            .field("place", &self.place)
            .finish_non_exhaustive()
    }
}

#[derive(Debug)]
struct Open {
    http: Box<Http2<Stream>>,
    peer: Option<SocketAddr>,
    /// Days until the peer's certificate expires, if a condition looks at it.
    certificate_days: Option<i64>,
    /// When it was begun to be opened.
    begun: Instant,
    /// A complete exchange.
    has_carried: bool,
}

/// Places whose exchanges ended, and those whose requests have to be sent again.
#[derive(Debug, Default)]
struct News {
    answered: Vec<(u32, Finished)>,
    /// With when their exchanges ended.
    failed: Vec<(u32, Instant)>,
    again: Vec<u32>,
    /// Those whose responses are to be given up.
    given_up: Vec<u32>,
}

impl StreamsUser {
    /// - `index`: the connection's number in the run; its places are virtual users, which begin at
    ///   different requests.
    /// - `events`: of each place, where streams of events are opened.
    pub(crate) fn new(
        shared: Rc<Shared>,
        recorder: Rc<Recorder>,
        pacer: StreamPacer,
        index: usize,
        settings: Settings,
        events: Vec<Option<Box<EventStream>>>,
    ) -> Self {
        let plan = &shared.plan;
        let expectations = &plan.expectations;
        let now = SystemClock.now();
        let first = index * settings.streams as usize;
        let places = (0..settings.streams as usize)
            .zip(events)
            .map(|(place, events)| Place {
                events,
                start: Start {
                    intended: now,
                    started: now,
                    in_window: false,
                    lag: None,
                },
                source: RequestSource::new(Rc::clone(&shared.source), plan, first + place),
                phases: Phases::default(),
                attempts: 0,
                taken_in: 0,
                session: Session::new(&plan.session).map(Box::new),
                dressed: None,
                bytes_sent: 0,
                bytes_received: 0,
                observer: (!expectations.is_empty()).then(|| expectations.observer()),
                grpc: plan.grpc.map(|_| Box::default()),
            });
        Self {
            places: places.collect(),
            in_play: 0,
            under_way: 0,
            links: (plan.seed.wrapping_add(index as u64)..)
                .zip(&plan.endpoints)
                .map(|(seed, _)| Link::new(seed))
                .collect(),
            settings,
            news: News::default(),
            turn: 0,
            shared,
            recorder,
            pacer,
        }
    }

    /// Makes exchanges until the pacer says that there are no more.
    pub(crate) async fn live(mut self) {
        self.bring_into_play(1, SystemClock.now());
        let mut is_known = self.shared.plan.events.is_none();
        poll_fn(|context| {
            if !std::mem::replace(&mut is_known, true) {
                // Streams are left when the run is over.
                self.pacer.gate().wake_on_stop(context.waker().clone());
            }
            self.poll_live(context)
        })
        .await;
    }

    fn poll_live(&mut self, context: &mut Context<'_>) -> Poll<()> {
        for _ in 0..TURNS_PER_POLL {
            self.turn += 1;
            let is_over = self.take_up(context);
            let mut progress = false;
            for endpoint in 0..self.links.len() {
                progress |= self.poll_link(endpoint, context);
            }
            if !progress {
                return if is_over && self.under_way == 0 {
                    Poll::Ready(())
                } else {
                    Poll::Pending
                };
            }
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }

    /// Has every place that may begin an exchange wait for a connection; tells if none ever will.
    fn take_up(&mut self, context: &mut Context<'_>) -> bool {
        loop {
            match self.pacer.poll_start(context) {
                Poll::Pending => return false,
                Poll::Ready(None) => return true,
                Poll::Ready(Some((place, start))) => {
                    self.recorder.begin(&start);
                    self.under_way += 1;
                    let taken = &mut self.places[place as usize];
                    taken.start = start;
                    taken.phases = Phases::default();
                    taken.attempts = 0;
                    taken.bytes_sent = 0;
                    taken.bytes_received = 0;
                    taken.taken_in = self.turn;
                    let endpoint = taken.source.advance(&self.shared.plan);
                    if let Some(events) = &mut taken.events {
                        events.begin(&start, taken.source.position());
                    }
                    self.links[endpoint].queue.push_back(place);
                }
            }
        }
    }

    /// Does all that can be done for one endpoint; tells if that may have made room for more.
    fn poll_link(&mut self, endpoint: usize, context: &mut Context<'_>) -> bool {
        let mut progress = self.poll_connecting(endpoint, context);
        let link = &mut self.links[endpoint];
        if let Some(retired) = link.current.take_if(|open| open.http.is_retired()) {
            if retired.http.in_flight() > 0 {
                link.retired.push(retired);
            } else {
                link.take_leave(&retired);
            }
        }
        if link.current.is_none() && link.connecting.is_none() && !link.poll_rest(context) {
            progress |= self.begin_connecting(endpoint);
        }
        self.begin_requests(endpoint);
        progress |= self.drive(endpoint, context);
        progress |= self.lose_patience(endpoint, context);
        progress |= self.spread_news(endpoint);
        progress
    }

    fn begin_connecting(&mut self, endpoint: usize) -> bool {
        let Some(place) = self.links[endpoint].queue.pop_front() else {
            return false;
        };
        self.note_waiting(place);
        let shared = Rc::clone(&self.shared);
        self.links[endpoint].connecting = Some(Connecting {
            place,
            begun: SystemClock.now(),
            attempt: Box::pin(async move {
                let endpoint = &shared.plan.endpoints[endpoint];
                let connecting = shared.connector.connect(endpoint, &SystemClock);
                let connection = Box::pin(connecting).await?;
                match require_http2(&connection, endpoint) {
                    Ok(()) => Ok(connection),
                    Err(failure) => Err(ConnectFailure {
                        failure,
                        phases: connection.phases,
                    }),
                }
            }),
        });
        true
    }

    fn poll_connecting(&mut self, endpoint: usize, context: &mut Context<'_>) -> bool {
        let link = &mut self.links[endpoint];
        let Some(connecting) = &mut link.connecting else {
            return false;
        };
        let Poll::Ready(result) = connecting.attempt.as_mut().poll(context) else {
            return false;
        };
        let (place, begun) = (connecting.place, connecting.begun);
        link.connecting = None;
        let phases = match &result {
            Ok(connection) => &connection.phases,
            Err(error) => &error.phases,
        };
        add_phases(&mut self.places[place as usize].phases, phases);
        match result {
            Ok(connection) => {
                self.recorder.connection_opened();
                let link = &mut self.links[endpoint];
                let plan = &self.shared.plan;
                link.current = Some(Open::new(connection, plan, self.settings, begun));
                link.queue.push_front(place);
            }
            Err(error) => {
                self.links[endpoint].back_off.refused(begun);
                // Whoever waited for the same connection has waited in vain.
                self.fail(place, &error.failure);
                while let Some(place) = self.links[endpoint].queue.pop_front() {
                    self.note_waiting(place);
                    self.fail(place, &error.failure);
                }
            }
        }
        true
    }

    /// Puts as many of the requests that wait on the connection as it takes.
    fn begin_requests(&mut self, endpoint: usize) {
        let mut now = None;
        while let link = &mut self.links[endpoint]
            && let Some(open) = &mut link.current
            && open.http.capacity() > 0
            && let Some(place) = link.queue.pop_front()
        {
            let taken = &mut self.places[place as usize];
            let start = &taken.start;
            let begun = if taken.taken_in == self.turn {
                start.started
            } else {
                *now.get_or_insert_with(|| SystemClock.now())
            };
            // Whoever opened the connection, or was answered already, has this behind it.
            let is_begun = taken.phases.get(Phase::Connect).is_some() || taken.bytes_sent > 0;
            if begun > start.intended && !is_begun {
                taken.phases.set(Phase::Blocked, begun - start.intended);
            }
            let plan = &self.shared.plan;
            let deadline = start.started + plan.timeout;
            let mut request = taken.source.current(plan);
            let into = &mut taken.dressed;
            if let Some(session) = &mut taken.session {
                let site = &plan.endpoints[endpoint];
                request = session.dress(request, into, site, endpoint, &SystemClock);
            } else if let Some(events) = &mut taken.events {
                events.begin_again();
                request = events.dress(request, into);
            }
            let Some(request) = request.http2() else {
                let failure = Failure::new(Phase::Send, FailureKind::Protocol)
                    .because("the request was not encoded for HTTP/2");
                self.fail(place, &failure);
                continue;
            };
            if open.http.begin(request, place, begun, deadline).is_err() {
                // It has just retired; the next turn opens another.
                self.links[endpoint].queue.push_front(place);
                return;
            }
        }
    }

    /// Writes and reads on all connections to `endpoint`.
    fn drive(&mut self, endpoint: usize, context: &mut Context<'_>) -> bool {
        let Self {
            shared,
            recorder,
            places,
            links,
            news,
            ..
        } = self;
        let Link {
            current,
            retired,
            back_off,
            ..
        } = &mut links[endpoint];
        let mut take = |open: &mut Open, back_off: &mut BackOff| {
            let mut taking = Taking {
                plan: &shared.plan,
                endpoint,
                recorder,
                places,
                news,
                peer: open.peer,
                certificate_days: open.certificate_days,
                has_carried: false,
            };
            let http = &mut open.http;
            let driven = http.poll_drive(context, &shared.buffer, &mut taking, &SystemClock);
            if taking.has_carried {
                open.has_carried = true;
                back_off.carried();
            }
            driven
        };
        let mut progress = false;
        let mut established = None;
        let mut over = Vec::new();
        if let Some(open) = current {
            let driven = take(open, back_off);
            progress |= driven.is_ready();
            if driven == Poll::Ready(Driven::Over) {
                over.extend(current.take());
            } else if driven.is_ready() && open.http.is_established() {
                established = Some(open.http.capacity() + open.http.in_flight());
            }
        }
        let drained = retired.extract_if(.., |open| {
            let driven = take(open, back_off);
            progress |= driven.is_ready();
            driven == Poll::Ready(Driven::Over) || open.http.in_flight() == 0
        });
        over.extend(drained);
        for open in &over {
            self.links[endpoint].take_leave(open);
        }
        if let Some(allowed) = established {
            let allowed = u32::try_from(allowed).unwrap_or(u32::MAX);
            if allowed.min(self.settings.streams) > self.in_play {
                self.bring_into_play(allowed, SystemClock.now());
            }
        }
        progress
    }

    /// Gives up exchanges whose time is over before there was a connection for them.
    fn lose_patience(&mut self, endpoint: usize, context: &mut Context<'_>) -> bool {
        let timeout = self.shared.plan.timeout;
        let link = &mut self.links[endpoint];
        let Some(place) = link.queue.front().copied() else {
            return false;
        };
        let deadline = self.places[place as usize].start.started + timeout;
        let patience = link
            .patience
            .get_or_insert_with(|| Box::pin(tokio::time::sleep_until(deadline.into())));
        if patience.deadline().into_std() != deadline {
            patience.as_mut().reset(deadline.into());
        }
        if patience.as_mut().poll(context).is_pending() {
            return false;
        }
        link.queue.pop_front();
        self.note_waiting(place);
        let failure = Failure::new(Phase::Blocked, FailureKind::Timeout)
            .because("no stream was free on the connection");
        self.fail(place, &failure);
        true
    }

    /// Lets freed places begin anew, and requests that were not looked at be sent again.
    fn spread_news(&mut self, endpoint: usize) -> bool {
        self.give_up(endpoint);
        let News {
            answered,
            failed,
            again,
            ..
        } = &mut self.news;
        let is_any = !answered.is_empty() || !failed.is_empty() || !again.is_empty();
        self.under_way -= answered.len() + failed.len();
        for (place, finished) in answered.drain(..) {
            self.pacer.free(place, finished);
        }
        for (place, done) in failed.drain(..) {
            let back_off = self.links[endpoint].back_off.remaining(done);
            self.pacer.free(place, Finished { done, back_off });
        }
        for place in again.drain(..) {
            self.links[endpoint].queue.push_back(place);
        }
        is_any
    }

    /// Ends the responses that are to be given up, and the streams that are left with the run.
    fn give_up(&mut self, endpoint: usize) {
        let mut given_up = std::mem::take(&mut self.news.given_up);
        let is_over = self.pacer.gate().is_stopping();
        if self.shared.plan.events.is_some() && is_over {
            let places = (0_u32..).zip(&self.places);
            given_up.extend(
                places
                    .filter(|(_, place)| place.is_open())
                    .map(|(token, _)| token),
            );
        }
        let link = &mut self.links[endpoint];
        for token in given_up.drain(..) {
            let mut opens = link.current.iter_mut().chain(&mut link.retired);
            let Some((open, traffic)) = opens.find_map(|open| {
                let traffic = open.http.traffic(token)?;
                Some((open, traffic))
            }) else {
                continue;
            };
            open.http.cancel(token);
            let peer = open.peer;
            let place = &mut self.places[token as usize];
            let exchange = place.exchange(place.start.started, peer, Ok(0));
            if let Some(finished) = place.conclude(Response::Dropped(traffic), exchange) {
                self.news.answered.push((token, finished));
            }
        }
        self.news.given_up = given_up;
    }

    /// The exchange of `place` waited until now, from when it was meant to start.
    fn note_waiting(&mut self, place: u32) {
        let taken = &mut self.places[place as usize];
        let now = if taken.taken_in == self.turn {
            taken.start.started
        } else {
            SystemClock.now()
        };
        let waited = now.saturating_duration_since(taken.start.intended);
        if !waited.is_zero() {
            taken.phases.set(Phase::Blocked, waited);
        }
    }

    /// Counts an exchange that came to nothing before its request was begun.
    fn fail(&mut self, place: u32, failure: &Failure) {
        let done = SystemClock.now();
        let taken = &self.places[place as usize];
        let exchange = taken.exchange(done, None, Err(failure.clone()));
        self.recorder.finish(&taken.start, &exchange);
        self.news.failed.push((place, done));
    }

    fn bring_into_play(&mut self, places: u32, now: Instant) {
        let places = places.min(self.settings.streams);
        while self.in_play < places {
            self.pacer.add(self.in_play, now);
            self.in_play += 1;
        }
    }
}

impl Link {
    fn new(seed: u64) -> Self {
        Self {
            connecting: None,
            current: None,
            retired: Vec::new(),
            queue: VecDeque::new(),
            patience: None,
            back_off: BackOff::new(seed),
            rest: None,
        }
    }

    /// What a connection that is over means for the next one.
    fn take_leave(&mut self, open: &Open) {
        if !open.has_carried {
            self.back_off.lost(open.begun);
        }
    }

    /// Whether no connection may be opened yet; the task is woken when one may.
    fn poll_rest(&mut self, context: &mut Context<'_>) -> bool {
        let Some(until) = self.back_off.until().filter(|_| !self.queue.is_empty()) else {
            return false;
        };
        let rest = self
            .rest
            .get_or_insert_with(|| Box::pin(tokio::time::sleep_until(until.into())));
        if rest.deadline().into_std() != until {
            rest.as_mut().reset(until.into());
        }
        rest.as_mut().poll(context).is_pending()
    }
}

impl Open {
    /// - `begun`: when it was begun to be opened.
    fn new(connection: Connection, plan: &RunPlan, settings: Settings, begun: Instant) -> Self {
        let certificate_days = if plan.expectations.needs_certificate() {
            let session = connection.stream.tls_session();
            let certificate = session.and_then(|session| session.certificate);
            certificate.map(|certificate| certificate.days_left(SystemClock.wall()))
        } else {
            None
        };
        let now = SystemClock.now();
        Self {
            http: Box::new(Http2::new(connection.stream, settings, now)),
            peer: connection.peer,
            certificate_days,
            begun,
            has_carried: false,
        }
    }
}

impl Place {
    /// Whether a stream of events is open.
    fn is_open(&self) -> bool {
        self.events
            .as_ref()
            .is_some_and(|events| events.was_opened())
    }

    /// Counts what came of asking for a stream of events, if that was done.
    fn conclude(&mut self, response: Response, exchange: Exchange) -> Option<Finished> {
        let concluded = self.events.as_mut()?.conclude(response, exchange);
        Some(Finished {
            done: concluded.done,
            back_off: concluded.pause,
        })
    }

    fn exchange(
        &self,
        done: Instant,
        peer: Option<SocketAddr>,
        outcome: Result<u16, Failure>,
    ) -> Exchange {
        Exchange {
            intended: self.start.intended,
            started: self.start.started,
            done,
            phases: self.phases,
            bytes_sent: self.bytes_sent,
            bytes_received: self.bytes_received,
            peer,
            protocol: Protocol::Http2,
            outcome,
        }
    }
}

/// Takes what came on one connection.
struct Taking<'a> {
    plan: &'a RunPlan,
    endpoint: usize,
    recorder: &'a Recorder,
    places: &'a mut [Place],
    news: &'a mut News,
    peer: Option<SocketAddr>,
    certificate_days: Option<i64>,
    /// An exchange was completed.
    has_carried: bool,
}

impl Taking<'_> {
    /// Counts what came of asking for a stream of events.
    fn conclude(&mut self, token: u32, response: Response) {
        let place = &mut self.places[token as usize];
        let exchange = place.exchange(place.start.started, self.peer, Ok(0));
        if let Some(finished) = place.conclude(response, exchange) {
            self.news.answered.push((token, finished));
        }
    }
}

impl Responses for Taking<'_> {
    #[inline]
    fn wants_fields(&self) -> bool {
        let Place {
            observer, session, ..
        } = &self.places[0];
        self.plan.grpc.is_some()
            || self.plan.events.is_some()
            || session.is_some()
            || observer.as_ref().is_some_and(Observer::needs_fields)
    }

    #[inline]
    fn head(&mut self, token: u32, head: &ResponseHead<'_>) {
        let Place {
            observer,
            session,
            grpc,
            events,
            ..
        } = &mut self.places[token as usize];
        if let Some(session) = session {
            let site = &self.plan.endpoints[self.endpoint];
            let fields = head.fields.iter();
            session.learn(site, self.endpoint, head.status, fields, &SystemClock);
        }
        if let Some(observer) = observer {
            observer.http2_head(head);
        }
        if let Some(grpc) = grpc {
            grpc.head(head);
        }
        if let Some(events) = events {
            events.head(head.status, head.fields.field("content-type"));
            if events.refusal().is_some() {
                self.news.given_up.push(token);
            }
        }
    }

    #[inline]
    fn wants_opening(&self) -> bool {
        self.plan.events.is_some()
    }

    fn opened(&mut self, token: u32, opening: &Opening) -> Option<Instant> {
        let place = &mut self.places[token as usize];
        let exchange = place.exchange(opening.done, self.peer, Ok(opening.status));
        let events = place.events.as_mut().filter(|events| events.was_opened())?;
        events.opened(exchange, opening);
        self.has_carried = true;
        Some(opening.done + NEVER)
    }

    #[inline]
    fn content(&mut self, token: u32, piece: &[u8]) {
        let place = &mut self.places[token as usize];
        if let Some(observer) = &mut place.observer {
            observer.content(piece);
        }
        if let Some(grpc) = &mut place.grpc {
            grpc.content(piece);
        }
        if let Some(events) = &mut place.events
            && events.content(piece, None)
        {
            self.news.given_up.push(token);
        }
    }

    #[inline]
    fn trailers(&mut self, token: u32, fields: &Fields) {
        if let Some(grpc) = &mut self.places[token as usize].grpc {
            grpc.trailers(fields);
        }
    }

    #[inline]
    fn completed(&mut self, token: u32, completed: Completed) {
        self.has_carried = true;
        if self.places[token as usize].events.is_some() {
            self.conclude(token, Response::Completed(completed));
            return;
        }
        let place = &mut self.places[token as usize];
        add_phases(&mut place.phases, &completed.phases);
        place.bytes_sent += completed.bytes_sent;
        place.bytes_received += completed.bytes_received;
        // A server that asks who is there is told so in the same exchange.
        let session = place.session.as_mut();
        if session.is_some_and(|session| session.wants_again()) {
            self.news.again.push(token);
            return;
        }
        let mut exchange = place.exchange(completed.done, self.peer, Ok(completed.status));
        let mut answer = None;
        if let (Some(grpc), Some(plan)) = (&place.grpc, self.plan.grpc) {
            match grpc.finish(!plan.is_server_streaming) {
                Ok(answered) => answer = Some(answered),
                Err(fault) => exchange.outcome = Err(fault.failure()),
            }
        }
        let judged = place.observer.as_ref().and_then(|observer| {
            let facts = Facts::of(&exchange, self.certificate_days)?;
            let grpc_status = answer.as_ref().map(|answer| answer.status);
            Some((
                observer,
                Facts {
                    grpc_status,
                    ..facts
                },
            ))
        });
        let start = &place.start;
        let unmet = judged
            .into_iter()
            .flat_map(|(observer, facts)| self.plan.expectations.unmet(observer, facts));
        match &answer {
            Some(answer) => self.recorder.finish_call(start, &exchange, answer, unmet),
            None => self.recorder.finish_judged(start, &exchange, unmet),
        }
        let finished = Finished {
            done: completed.done,
            back_off: Duration::ZERO,
        };
        self.news.answered.push((token, finished));
    }

    fn failed(&mut self, token: u32, incomplete: Incomplete) {
        let place = &mut self.places[token as usize];
        let failure = &incomplete.failure;
        let is_opened = place
            .events
            .as_ref()
            .is_some_and(|events| events.was_opened());
        let is_left =
            failure.kind == FailureKind::Closed && failure.retry == Retry::Safe && !is_opened;
        place.attempts += 1;
        if is_left && place.attempts < MOST_ATTEMPTS {
            place.phases = Phases::default();
            self.news.again.push(token);
            return;
        }
        if place.events.is_some() {
            self.conclude(token, Response::Failed(incomplete));
            return;
        }
        add_phases(&mut place.phases, &incomplete.phases);
        place.bytes_sent += incomplete.bytes_sent;
        place.bytes_received += incomplete.bytes_received;
        let exchange = place.exchange(incomplete.done, self.peer, Err(incomplete.failure));
        self.recorder.finish(&place.start, &exchange);
        self.news.failed.push((token, incomplete.done));
    }
}
