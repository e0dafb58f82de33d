//! The virtual user of `plimsoll load URL`: the planned requests on connections of its own.

use std::rc::Rc;
use std::time::Instant;

use plimsoll_client::check::{Facts, Observer};
use plimsoll_client::{
    Completed, Connector, Http1, Incomplete, Learning, ReadBuffer, Request, Session, Stream,
};
use plimsoll_model::{Clock, Exchange, Phase, Phases, Protocol, Retry};
use plimsoll_wire::SystemClock;

use crate::back_off::BackOff;
use crate::events::{EventStream, Reading, Response, Turn};
use crate::pace::{Finished, Start};
use crate::plan::RunPlan;
use crate::source::{RequestSource, SharedSource};
use crate::user::{Recorder, VirtualUser};

/// Sends the planned requests.
#[derive(Debug)]
pub(crate) struct PlainUser {
    shared: Rc<Shared>,
    /// One per endpoint, as far as they are open.
    connections: Vec<Option<Open>>,
    source: RequestSource,
    /// What the user remembers, and the request with that.
    session: Option<Box<Session>>,
    dressed: Option<Request>,
    observer: Option<Observer>,
    /// Only where streams of events are opened.
    events: Option<Box<EventStream>>,
    back_off: BackOff,
}

/// What the users of one worker share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) plan: Rc<RunPlan>,
    pub(crate) connector: Connector,
    pub(crate) buffer: ReadBuffer,
    pub(crate) source: Rc<SharedSource>,
}

#[derive(Debug)]
struct Open {
    http: Http1<Stream>,
    peer: Option<std::net::SocketAddr>,
    /// Days until the peer's certificate expires, if a condition looks at it.
    certificate_days: Option<i64>,
    idle_since: Instant,
    /// A complete exchange.
    has_carried: bool,
}

impl PlainUser {
    /// - `index`: the user's number in the run; users begin at different requests.
    /// - `events`: where streams of events are opened.
    pub(crate) fn new(shared: Rc<Shared>, index: usize, events: Option<Box<EventStream>>) -> Self {
        let plan = &shared.plan;
        let expectations = &plan.expectations;
        Self {
            connections: plan.endpoints.iter().map(|_| None).collect(),
            source: RequestSource::new(Rc::clone(&shared.source), plan, index),
            session: Session::new(&plan.session).map(Box::new),
            dressed: None,
            observer: (!expectations.is_empty()).then(|| expectations.observer()),
            events,
            back_off: BackOff::new(plan.seed.wrapping_add(index as u64)),
            shared,
        }
    }

    /// Opens a connection for `endpoint` unless there is one that can be used again.
    async fn connect(
        &mut self,
        endpoint: usize,
        start: &Start,
        recorder: &Recorder,
        exchange: &mut Exchange,
    ) -> Result<(), ()> {
        if let Some(open) = &mut self.connections[endpoint] {
            // Back to back there was no time in which the peer could have closed it.
            if open.idle_since == start.started || open.http.is_fresh() {
                exchange.peer = open.peer;
                return Ok(());
            }
            self.connections[endpoint] = None;
        }
        let plan = &self.shared.plan;
        let connecting = self
            .shared
            .connector
            .connect(&plan.endpoints[endpoint], &SystemClock);
        match Box::pin(connecting).await {
            Ok(connection) => {
                recorder.connection_opened();
                exchange.phases.add(&connection.phases);
                exchange.peer = connection.peer;
                let now = SystemClock.now();
                let certificate_days = if plan.expectations.needs_certificate() {
                    let session = connection.stream.tls_session();
                    let certificate = session.and_then(|session| session.certificate);
                    certificate.map(|certificate| certificate.days_left(SystemClock.wall()))
                } else {
                    None
                };
                self.connections[endpoint] = Some(Open {
                    http: Http1::new(connection.stream, plan.limits, now),
                    peer: connection.peer,
                    certificate_days,
                    idle_since: now,
                    has_carried: false,
                });
                Ok(())
            }
            Err(error) => {
                exchange.phases.add(&error.phases);
                exchange.outcome = Err(error.failure);
                exchange.done = SystemClock.now();
                self.back_off.refused(start.started);
                Err(())
            }
        }
    }

    /// Opens a stream of events and reads it until it or the run is over.
    async fn stream(
        &mut self,
        events: &mut EventStream,
        endpoint: usize,
        start: Start,
        mut exchange: Exchange,
        recorder: &Recorder,
    ) -> Finished {
        let connecting = self.connect(endpoint, &start, recorder, &mut exchange);
        if connecting.await.is_err() {
            recorder.finish(&start, &exchange);
            return Finished {
                done: exchange.done,
                back_off: self.back_off.remaining(exchange.done),
            };
        }
        let open = self.connections[endpoint]
            .as_mut()
            .expect("it was just connected");
        let plan = &*self.shared.plan;
        events.begin(&start, self.source.position());
        let request = events.dress(self.source.current(plan), &mut self.dressed);
        let gate = Rc::clone(events.gate());
        let turn = Turn::default();
        let mut reading = Reading {
            stream: events,
            exchange: exchange.clone(),
            turn: &turn,
            http3: None,
        };
        let begun = open.idle_since.max(start.started);
        let deadline = start.started + plan.timeout;
        let (buffer, clock) = (&self.shared.buffer, &SystemClock);
        let opening = open
            .http
            .open(request, begun, deadline, buffer, &mut reading, clock);
        let response = match opening.await {
            Err(incomplete) => Response::Failed(incomplete),
            Ok(mut opened) => {
                reading.report_opening(&opened.opening);
                let is_stream = reading.stream.was_opened();
                let patience = (!is_stream).then_some(deadline);
                let http = &mut open.http;
                let following =
                    http.follow(&mut opened, request, patience, buffer, &mut reading, clock);
                let followed = tokio::select! {
                    biased;
                    followed = following => Some(followed.into()),
                    () = turn.given_up() => None,
                    () = gate.wait_for_stop(), if is_stream => None,
                };
                followed.unwrap_or_else(|| Response::Dropped(opened.traffic()))
            }
        };
        let concluded = events.conclude(response, exchange);
        if concluded.has_carried {
            open.has_carried = true;
            self.back_off.carried();
        } else if !open.has_carried {
            self.back_off.lost(start.started);
        }
        open.idle_since = concluded.done;
        if !(concluded.is_reusable && plan.keep_alive) {
            self.connections[endpoint] = None;
        }
        Finished {
            done: concluded.done,
            back_off: concluded.pause.max(self.back_off.remaining(concluded.done)),
        }
    }
}

impl VirtualUser for PlainUser {
    async fn exchange(&mut self, mut start: Start, recorder: &Recorder) -> Finished {
        let mut exchange = Exchange {
            intended: start.intended,
            started: start.started,
            done: start.started,
            phases: Phases::default(),
            bytes_sent: 0,
            bytes_received: 0,
            peer: None,
            protocol: Protocol::Http1,
            outcome: Ok(0),
        };
        if start.started > start.intended {
            exchange
                .phases
                .set(Phase::Blocked, start.started - start.intended);
        }
        let endpoint = self.source.advance(&self.shared.plan);
        start.request = self.source.position();
        if let Some(mut events) = self.events.take() {
            let streaming = self.stream(&mut events, endpoint, start, exchange, recorder);
            let finished = Box::pin(streaming).await;
            self.events = Some(events);
            return finished;
        }
        let mut was_sent_again = false;
        loop {
            if self
                .connect(endpoint, &start, recorder, &mut exchange)
                .await
                .is_err()
            {
                recorder.finish(&start, &exchange);
                return Finished {
                    done: exchange.done,
                    back_off: self.back_off.remaining(exchange.done),
                };
            }
            let Self {
                shared,
                connections,
                observer,
                source,
                session,
                dressed,
                back_off,
                events: _,
            } = self;
            let plan = &*shared.plan;
            let open = connections[endpoint]
                .as_mut()
                .expect("it was just connected");
            let request = source.current(plan);
            let certificate_days = open.certificate_days;
            let begun = open.idle_since.max(start.started);
            let deadline = start.started + plan.timeout;
            let buffer = &shared.buffer;
            let clock = &SystemClock;
            let result = match (&mut *session, &mut *observer) {
                (None, None) => {
                    open.http
                        .exchange(request, begun, deadline, buffer, &mut (), clock)
                        .await
                }
                (None, Some(observer)) => {
                    open.http
                        .exchange(request, begun, deadline, buffer, observer, clock)
                        .await
                }
                (Some(session), observer) => {
                    let site = &plan.endpoints[endpoint];
                    let request = session.dress(request, dressed, site, endpoint, clock);
                    let mut sink = Learning {
                        session,
                        endpoint: site,
                        position: endpoint,
                        observer: observer.as_mut(),
                        clock,
                    };
                    open.http
                        .exchange(request, begun, deadline, buffer, &mut sink, clock)
                        .await
                }
            };
            let reusable = match result {
                Ok(completed) => {
                    let Completed { done, reusable, .. } = completed;
                    if completed.surplus {
                        recorder.surplus();
                    }
                    open.idle_since = done;
                    open.has_carried = true;
                    back_off.carried();
                    exchange.phases.add(&completed.phases);
                    exchange.bytes_sent += completed.bytes_sent;
                    exchange.bytes_received += completed.bytes_received;
                    exchange.done = done;
                    exchange.outcome = Ok(completed.status);
                    reusable && plan.keep_alive
                }
                Err(incomplete) => {
                    // The server closed an idle connection without saying so, and the request
                    // crossed that on its way (RFC 9112, section 9.5).
                    let is_sent_again = !was_sent_again
                        && open.has_carried
                        && incomplete.failure.retry == Retry::IfReused
                        && is_safe(request);
                    let Incomplete { done, failure, .. } = incomplete;
                    exchange.phases.add(&incomplete.phases);
                    exchange.bytes_sent += incomplete.bytes_sent;
                    exchange.bytes_received += incomplete.bytes_received;
                    exchange.done = done;
                    if is_sent_again {
                        was_sent_again = true;
                        connections[endpoint] = None;
                        recorder.reconnected(&start);
                        continue;
                    }
                    exchange.outcome = Err(failure);
                    if !open.has_carried {
                        back_off.lost(start.started);
                    }
                    false
                }
            };
            if !reusable {
                connections[endpoint] = None;
            }
            // A server that demands credentials gets them in the same exchange.
            if exchange.outcome.is_ok()
                && session
                    .as_mut()
                    .is_some_and(|session| session.wants_again())
            {
                continue;
            }
            let judged = observer.as_ref().and_then(|observer| {
                let facts = Facts::of(&exchange, certificate_days)?;
                Some((observer, facts))
            });
            match judged {
                Some((observer, facts)) => {
                    let unmet = plan.expectations.unmet(observer, facts);
                    recorder.finish_judged(&start, &exchange, unmet);
                }
                None => recorder.finish(&start, &exchange),
            }
            return Finished {
                done: exchange.done,
                back_off: back_off.remaining(exchange.done),
            };
        }
    }
}

/// Whether the request may be sent twice: its method is safe (RFC 9110, section 9.2.1).
fn is_safe(request: &Request) -> bool {
    matches!(request.method(), "GET" | "HEAD" | "OPTIONS" | "TRACE")
}
