//! The virtual users of one HTTP/3 connection: each makes one exchange at a time, on a stream of it.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use http::HeaderMap;
use plimsoll_client::check::{Facts, Observer};
use plimsoll_client::{Http3, Http3Parts, Incomplete, Learning, Request, Session};
use plimsoll_model::{Clock, Exchange, Failure, FailureKind, Phase, Phases, Protocol, Retry};
use plimsoll_wire::SystemClock;
use plimsoll_wire::h1::ResponseSink as _;
use tokio::sync::OnceCell;

use crate::back_off::BackOff;
use crate::events::{EventStream, NEVER, Reading, Response, Turn};
use crate::pace::{Finished, Start};
use crate::plain::Shared;
use crate::source::RequestSource;
use crate::user::{Recorder, VirtualUser};

/// How often a request is sent on yet another connection because the one before was left by its
/// server without having looked at it.
const MOST_ATTEMPTS: u8 = 5;

/// Sends the planned requests in turn on a stream of the connection that it shares.
#[derive(Debug)]
pub(crate) struct QuicUser {
    shared: Rc<Shared>,
    connection: Rc<QuicConnection>,
    source: RequestSource,
    /// What the user remembers, and the request with that.
    session: Option<Box<Session>>,
    dressed: Option<Request>,
    observer: Option<Observer>,
    /// Only where streams of events are opened.
    events: Option<Box<EventStream>>,
}

/// A connection to each endpoint, shared by the users of its streams.
#[derive(Debug)]
pub(crate) struct QuicConnection {
    /// One per endpoint.
    links: Vec<Link>,
}

/// The way to one endpoint.
#[derive(Debug)]
struct Link {
    /// The connection, once somebody has opened it.
    current: RefCell<Rc<Opening>>,
    back_off: RefCell<BackOff>,
}

/// One connection, opened by the first that needs it while the others wait.
type Opening = OnceCell<Result<Open, Failure>>;

#[derive(Debug, Clone)]
struct Open {
    http: Http3,
    /// Days until the peer's certificate expires, if a condition looks at it.
    certificate_days: Option<i64>,
    /// When it was begun to be opened.
    begun: Instant,
}

impl QuicConnection {
    /// - `endpoints`: how many there are.
    /// - `seed`: other connections have another one.
    pub(crate) fn new(endpoints: usize, seed: u64) -> Self {
        let link = |seed| Link {
            current: RefCell::default(),
            back_off: RefCell::new(BackOff::new(seed)),
        };
        Self {
            links: (seed..).take(endpoints).map(link).collect(),
        }
    }
}

impl Link {
    /// The connection as it is to be used now: one whose server has left is replaced.
    fn current(&self) -> Rc<Opening> {
        let current = Rc::clone(&self.current.borrow());
        if let Some(Ok(open)) = current.get()
            && open.http.is_retired()
        {
            self.replace(&current);
            return Rc::clone(&self.current.borrow());
        }
        current
    }

    /// The next user opens another connection in place of `opening`, as soon as that may be.
    fn replace(&self, opening: &Rc<Opening>) {
        let mut current = self.current.borrow_mut();
        if !Rc::ptr_eq(&current, opening) {
            return;
        }
        if let Some(Ok(open)) = current.get()
            && !open.http.has_carried()
        {
            self.back_off.borrow_mut().lost(open.begun);
        }
        *current = Rc::default();
    }

    /// Waits until a connection may be opened; false if `deadline` comes first.
    ///
    /// - `now`: the present.
    async fn rest(&self, mut now: Instant, deadline: Instant) -> bool {
        loop {
            let remaining = self.back_off.borrow().remaining(now);
            if remaining.is_zero() {
                return true;
            }
            if now >= deadline {
                return false;
            }
            tokio::time::sleep_until((now + remaining).min(deadline).into()).await;
            now = SystemClock.now();
        }
    }
}

impl QuicUser {
    /// - `index`: the user's number in the run; users begin at different requests.
    /// - `events`: where streams of events are opened.
    pub(crate) fn new(
        shared: Rc<Shared>,
        connection: Rc<QuicConnection>,
        index: usize,
        events: Option<Box<EventStream>>,
    ) -> Self {
        let plan = &shared.plan;
        let expectations = &plan.expectations;
        Self {
            source: RequestSource::new(Rc::clone(&shared.source), plan, index),
            session: Session::new(&plan.session).map(Box::new),
            dressed: None,
            observer: (!expectations.is_empty()).then(|| expectations.observer()),
            events,
            connection,
            shared,
        }
    }

    /// The connection to `endpoint`, opened or waited for if there is none.
    async fn connect(
        &mut self,
        endpoint: usize,
        deadline: Instant,
        recorder: &Recorder,
        exchange: &mut Exchange,
    ) -> Result<(Rc<Opening>, Open), Failure> {
        let link = &self.connection.links[endpoint];
        let mut opening = link.current();
        if let Some(Ok(open)) = opening.get() {
            return Ok((Rc::clone(&opening), open.clone()));
        }
        let blocked = |exchange: &mut Exchange, from: Instant, until: Instant| {
            let earlier = exchange.phases.get(Phase::Blocked).unwrap_or_default();
            let blocked = earlier + (until - from);
            exchange.phases.set(Phase::Blocked, blocked);
        };
        let mut begun = SystemClock.now();
        if !link.back_off.borrow().remaining(begun).is_zero() {
            let may_open = link.rest(begun, deadline).await;
            let now = SystemClock.now();
            blocked(exchange, begun, now);
            if !may_open {
                return Err(Failure::new(Phase::Blocked, FailureKind::Timeout)
                    .because("the last connections were in vain, and none may be opened yet"));
            }
            begun = now;
            opening = link.current();
        }
        let mut own = None;
        let opened = opening.get_or_init(|| async {
            let (phases, result) = self.open(endpoint, begun, recorder).await;
            own = Some(phases);
            if result.is_err() {
                link.back_off.borrow_mut().refused(begun);
            }
            result
        });
        let opened = opened.await.clone();
        match own {
            Some(phases) => exchange.phases.add(&phases),
            None => blocked(exchange, begun, SystemClock.now()),
        }
        match opened {
            Ok(open) => Ok((opening, open)),
            Err(failure) => {
                link.replace(&opening);
                Err(failure)
            }
        }
    }

    async fn open(
        &self,
        endpoint: usize,
        begun: Instant,
        recorder: &Recorder,
    ) -> (Phases, Result<Open, Failure>) {
        let plan = &self.shared.plan;
        let connecting = self.shared.connector.connect_http3(
            &plan.endpoints[endpoint],
            plan.limits,
            &SystemClock,
        );
        match Box::pin(connecting).await {
            Ok(connection) => {
                recorder.connection_opened();
                let certificate_days = if plan.expectations.needs_certificate() {
                    let certificate = connection.http.tls_session().certificate;
                    certificate.map(|certificate| certificate.days_left(SystemClock.wall()))
                } else {
                    None
                };
                let open = Open {
                    http: connection.http,
                    certificate_days,
                    begun,
                };
                (connection.phases, Ok(open))
            }
            Err(error) => (error.phases, Err(error.failure)),
        }
    }

    /// Makes the exchange, on other connections too as long as servers leave before they looked at it.
    async fn attempt(
        &mut self,
        endpoint: usize,
        start: &Start,
        recorder: &Recorder,
        exchange: &mut Exchange,
    ) -> Option<i64> {
        let shared = Rc::clone(&self.shared);
        let deadline = start.started + shared.plan.timeout;
        let mut attempts = 0;
        loop {
            let connecting = self.connect(endpoint, deadline, recorder, exchange);
            let (opening, mut open) = match connecting.await {
                Ok(found) => found,
                Err(failure) => {
                    exchange.outcome = Err(failure);
                    exchange.done = SystemClock.now();
                    return None;
                }
            };
            exchange.peer = Some(open.http.peer());
            let Self {
                source,
                session,
                dressed,
                observer,
                ..
            } = &mut *self;
            let site = &shared.plan.endpoints[endpoint];
            let mut request = source.current(&shared.plan);
            if let Some(session) = session {
                request = session.dress(request, dressed, site, endpoint, &SystemClock);
            }
            let is_idempotent = request.is_idempotent();
            let Some(request) = request.http3() else {
                let failure = Failure::new(Phase::Send, FailureKind::Protocol)
                    .because("the request cannot be encoded for HTTP/3");
                exchange.outcome = Err(failure);
                return None;
            };
            let begun = SystemClock.now();
            let http = &mut open.http;
            let result = match (session, observer) {
                (None, None) => {
                    http.exchange(&request, begun, deadline, &mut (), &SystemClock)
                        .await
                }
                (None, Some(observer)) => {
                    let mut sink = Observing(observer);
                    http.exchange(&request, begun, deadline, &mut sink, &SystemClock)
                        .await
                }
                (Some(session), observer) => {
                    let mut sink = Learning {
                        session,
                        endpoint: site,
                        position: endpoint,
                        observer: observer.as_mut(),
                        clock: &SystemClock,
                    };
                    http.exchange(&request, begun, deadline, &mut sink, &SystemClock)
                        .await
                }
            };
            if open.http.is_retired() {
                self.connection.links[endpoint].replace(&opening);
            }
            match result {
                Ok(completed) => {
                    exchange.phases.add(&completed.phases);
                    exchange.bytes_sent += completed.bytes_sent;
                    exchange.bytes_received += completed.bytes_received;
                    exchange.done = completed.done;
                    exchange.outcome = Ok(completed.status);
                    let link = &self.connection.links[endpoint];
                    link.back_off.borrow_mut().carried();
                    // A server that demands credentials gets them in the same exchange.
                    let session = self.session.as_mut();
                    if session.is_some_and(|session| session.wants_again()) {
                        continue;
                    }
                    return open.certificate_days;
                }
                Err(incomplete) => {
                    exchange.bytes_sent += incomplete.bytes_sent;
                    exchange.bytes_received += incomplete.bytes_received;
                    // The last request that a leaving server will look at is not announced, so its
                    // leaving and its rejections are all there is to go by.
                    let may_repeat = match incomplete.failure.retry {
                        Retry::Safe => true,
                        Retry::IfReused => open.http.has_carried() && is_idempotent,
                        Retry::Never => false,
                    };
                    attempts += 1;
                    if may_repeat && attempts < MOST_ATTEMPTS {
                        continue;
                    }
                    exchange.phases.add(&incomplete.phases);
                    exchange.done = incomplete.done;
                    exchange.outcome = Err(incomplete.failure);
                    return None;
                }
            }
        }
    }
}

impl QuicUser {
    /// Opens a stream of events and reads it until it or the run is over.
    async fn stream(
        &mut self,
        events: &mut EventStream,
        endpoint: usize,
        start: Start,
        mut exchange: Exchange,
        recorder: &Recorder,
    ) -> Finished {
        let shared = Rc::clone(&self.shared);
        let deadline = start.started + shared.plan.timeout;
        events.begin(&start, self.source.position());
        let gate = Rc::clone(events.gate());
        let mut attempts = 0;
        let (opening, open, response) = loop {
            let connecting = self.connect(endpoint, deadline, recorder, &mut exchange);
            let (opening, mut open) = match connecting.await {
                Ok(found) => found,
                Err(failure) => {
                    exchange.done = SystemClock.now();
                    exchange.outcome = Err(failure);
                    recorder.finish(&start, &exchange);
                    let link = &self.connection.links[endpoint];
                    return Finished {
                        done: exchange.done,
                        back_off: link.back_off.borrow().remaining(exchange.done),
                    };
                }
            };
            exchange.peer = Some(open.http.peer());
            events.begin_again();
            let request = events.dress(self.source.current(&shared.plan), &mut self.dressed);
            let begun = SystemClock.now();
            let Some(request) = request.http3() else {
                let failure = Failure::new(Phase::Send, FailureKind::Protocol)
                    .because("the request cannot be encoded for HTTP/3");
                break (opening, open, failed(failure));
            };
            let turn = Turn::default();
            let traffic = open.http.clone();
            let mut reading = Reading {
                stream: &mut *events,
                exchange: exchange.clone(),
                turn: &turn,
                http3: Some(&traffic),
            };
            let http = &mut open.http;
            let reached = begun + NEVER;
            let asking = http.exchange(&request, begun, reached, &mut reading, &SystemClock);
            let response = tokio::select! {
                biased;
                response = asking => Some(Response::from(response)),
                () = turn.given_up() => None,
                () = turn.left(&gate) => None,
                () = turn.overdue(deadline) => {
                    Some(failed(Failure::new(Phase::Wait, FailureKind::Timeout)))
                }
            };
            let response = response.unwrap_or_else(|| Response::Dropped(traffic.take_traffic()));
            attempts += 1;
            if let Response::Failed(incomplete) = &response
                && incomplete.failure.retry == Retry::Safe
                && !events.was_opened()
                && attempts < MOST_ATTEMPTS
            {
                if open.http.is_retired() {
                    self.connection.links[endpoint].replace(&opening);
                }
                continue;
            }
            break (opening, open, response);
        };
        let concluded = events.conclude(response, exchange);
        let link = &self.connection.links[endpoint];
        if open.http.is_retired() {
            link.replace(&opening);
        }
        if concluded.has_carried {
            link.back_off.borrow_mut().carried();
        }
        let rest = link.back_off.borrow().remaining(concluded.done);
        Finished {
            done: concluded.done,
            back_off: concluded.pause.max(rest),
        }
    }
}

/// A request that came to nothing.
fn failed(failure: Failure) -> Response {
    Response::Failed(Incomplete {
        failure,
        phases: Phases::default(),
        bytes_sent: 0,
        bytes_received: 0,
        done: SystemClock.now(),
    })
}

impl VirtualUser for QuicUser {
    async fn exchange(&mut self, mut start: Start, recorder: &Recorder) -> Finished {
        let mut exchange = Exchange {
            intended: start.intended,
            started: start.started,
            done: start.started,
            phases: Phases::default(),
            bytes_sent: 0,
            bytes_received: 0,
            peer: None,
            protocol: Protocol::Http3,
            outcome: Ok(0),
        };
        if start.started > start.intended {
            let blocked = start.started - start.intended;
            exchange.phases.set(Phase::Blocked, blocked);
        }
        let endpoint = self.source.advance(&self.shared.plan);
        start.request = self.source.position();
        if let Some(mut events) = self.events.take() {
            let streaming = self.stream(&mut events, endpoint, start, exchange, recorder);
            let finished = Box::pin(streaming).await;
            self.events = Some(events);
            return finished;
        }
        let certificate_days = self
            .attempt(endpoint, &start, recorder, &mut exchange)
            .await;
        let judged = self.observer.as_ref().and_then(|observer| {
            let facts = Facts::of(&exchange, certificate_days)?;
            Some((observer, facts))
        });
        match judged {
            Some((observer, facts)) => {
                let unmet = self.shared.plan.expectations.unmet(observer, facts);
                recorder.finish_judged(&start, &exchange, unmet);
            }
            None => recorder.finish(&start, &exchange),
        }
        let back_off = if exchange.outcome.is_ok() {
            Duration::ZERO
        } else {
            let link = &self.connection.links[endpoint];
            link.back_off.borrow().remaining(exchange.done)
        };
        Finished {
            done: exchange.done,
            back_off,
        }
    }
}

/// Shows a response to the observer.
struct Observing<'a>(&'a mut Observer);

impl Http3Parts for Observing<'_> {
    fn head(&mut self, _status: u16, fields: &HeaderMap) {
        self.0.http3_head(fields);
    }

    fn content(&mut self, piece: &[u8]) {
        self.0.content(piece);
    }
}
