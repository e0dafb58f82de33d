//! Exchanges over HTTP/3: each stream has a virtual user, and those of one connection share it.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Instant;

use plimsoll_client::{Http3, Incomplete, is_idempotent};
use plimsoll_model::{Clock, Exchange, Failure, FailureKind, Phase, Phases, Protocol, Retry};
use plimsoll_wire::SystemClock;
use tokio::sync::OnceCell;

use super::outlasting::{OutlastingParts, PartSink, Turn};
use super::{Driver, MOST_ATTEMPTS, NEVER, Tasks, WorkerState, begin};
use crate::plan::Http3Plan;
use crate::worker::ConnectionSlot;
use crate::worker::back_off::BackOff;
use crate::worker::pace::{Finished, Start};
use crate::worker::user::{Recorder, UnderWay, VirtualUser, live};
use crate::workload::{HttpWorkload, Response, ResponseReader};

/// Carries exchanges over HTTP/3.
#[derive(Debug)]
pub(crate) struct Http3Driver(pub(crate) Http3Plan);

impl Driver for Http3Driver {
    fn start<W: HttpWorkload>(
        &self,
        slot: &ConnectionSlot<'_>,
        make: &dyn Fn(usize) -> W,
        tasks: &mut Tasks,
    ) {
        let shared = slot.shared();
        let streams = self.0.streams as usize;
        let connection = Rc::new(QuicConnection::new(
            shared.plan.endpoints.len(),
            shared.plan.seed.wrapping_add(slot.index() as u64),
        ));
        for place in 0..streams {
            let user = QuicUser {
                shared: Rc::clone(shared),
                connection: Rc::clone(&connection),
                workload: make(slot.index() * streams + place),
            };
            let (pacer, recorder) = (slot.pacer(place), Rc::clone(&shared.recorder));
            tasks.spawn_local(async move {
                live(user, pacer, recorder).await;
                Ok(())
            });
        }
    }
}

/// The virtual user of one stream.
struct QuicUser<W> {
    shared: Rc<WorkerState>,
    connection: Rc<QuicConnection>,
    workload: W,
}

/// A connection to each endpoint, shared by the users of its streams.
#[derive(Debug)]
struct QuicConnection {
    /// One per endpoint.
    links: RefCell<Vec<Rc<Link>>>,
    seed: u64,
}

/// The way to one endpoint.
#[derive(Debug)]
struct Link {
    /// The connection, once it is opened.
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
    fn new(endpoints: usize, seed: u64) -> Self {
        Self {
            links: RefCell::new((seed..).take(endpoints).map(Link::new).collect()),
            seed,
        }
    }

    /// The link to the endpoint at `position`, which a redirect may have found.
    fn link(&self, position: usize) -> Rc<Link> {
        let mut links = self.links.borrow_mut();
        while links.len() <= position {
            let seed = self.seed.wrapping_add(links.len() as u64);
            links.push(Link::new(seed));
        }
        Rc::clone(&links[position])
    }
}

impl Link {
    fn new(seed: u64) -> Rc<Self> {
        Rc::new(Self {
            current: RefCell::default(),
            back_off: RefCell::new(BackOff::new(seed)),
        })
    }

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

impl<W: HttpWorkload> QuicUser<W> {
    /// The connection to `endpoint`, opened or waited for if there is none.
    async fn connect(
        &self,
        link: &Link,
        endpoint: usize,
        deadline: Instant,
        recorder: &Recorder,
        exchange: &mut Exchange,
    ) -> Result<(Rc<Opening>, Open), Failure> {
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
                    .because("the last connections failed, and the next may not be opened yet"));
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
        let endpoint = self.shared.endpoint(endpoint);
        let connector = &self.shared.connector;
        let connecting = connector.connect_http3(&endpoint, plan.limits, &SystemClock);
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

    /// Sends the request and reads its response until it or the run is over.
    ///
    /// - `exchange`: as it stands before the request is begun.
    async fn follow(
        &mut self,
        open: &mut Open,
        deadline: Instant,
        exchange: &Exchange,
    ) -> Response {
        let begun = SystemClock.now();
        let (request, reader) = self.workload.request();
        let Some(request) = request.http3() else {
            return not_encoded();
        };
        let turn = Turn::default();
        let traffic = open.http.clone();
        let mut parts = OutlastingParts {
            reader,
            exchange: exchange.clone(),
            turn: &turn,
            http3: Some(&traffic),
        };
        let http = &mut open.http;
        let exchanging = http.exchange(&request, begun, begun + NEVER, &mut parts, &SystemClock);
        let response = tokio::select! {
            biased;
            response = exchanging => Some(Response::from(response)),
            () = turn.given_up() => None,
            () = turn.left(&self.shared.gate) => None,
            () = turn.overdue(deadline) => {
                Some(failed(Failure::new(Phase::Wait, FailureKind::Timeout)))
            }
        };
        response.unwrap_or_else(|| Response::Dropped(traffic.take_traffic()))
    }

    /// Sends the request and reads its response to the end.
    async fn carry(&mut self, open: &mut Open, deadline: Instant) -> Response {
        let begun = SystemClock.now();
        let (request, reader) = self.workload.request();
        let Some(request) = request.http3() else {
            return not_encoded();
        };
        let mut parts = PartSink(reader);
        let http = &mut open.http;
        let exchanging = http.exchange(&request, begun, deadline, &mut parts, &SystemClock);
        exchanging.await.into()
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

fn not_encoded() -> Response {
    failed(
        Failure::new(Phase::Send, FailureKind::Protocol)
            .because("the request cannot be encoded for HTTP/3"),
    )
}

impl<W: HttpWorkload> VirtualUser for QuicUser<W> {
    async fn exchange(&mut self, mut start: Start, recorder: &Recorder) -> Finished {
        let mut exchange = begin(&start, Protocol::Http3);
        let mut endpoint = self.workload.take_up(&mut start);
        let under_way = UnderWay::new(recorder, start);
        let deadline = start.started + self.shared.plan.timeout;
        let mut attempts = 0;
        loop {
            let link = self.connection.link(endpoint);
            let connecting = self.connect(&link, endpoint, deadline, recorder, &mut exchange);
            let (opening, mut open) = match connecting.await {
                Ok(found) => found,
                Err(failure) => {
                    exchange.done = SystemClock.now();
                    exchange.outcome = Err(failure);
                    recorder.finish(&start, &exchange);
                    let back_off = link.back_off.borrow().remaining(exchange.done);
                    under_way.finished();
                    return Finished {
                        done: exchange.done,
                        back_off,
                    };
                }
            };
            exchange.peer = Some(open.http.peer());
            let response = if W::Reader::OUTLASTS {
                Box::pin(self.follow(&mut open, deadline, &exchange)).await
            } else {
                self.carry(&mut open, deadline).await
            };
            if open.http.is_retired() {
                link.replace(&opening);
            }
            if let Some(most) = open.http.stream_limit()
                && most < self.shared.plan.streams()
            {
                recorder.streams_limited(most);
            }
            if let Response::Failed(incomplete) = &response {
                // The last request that a leaving server processes is not announced, so its
                // leaving and its rejections are the only indications.
                let may_repeat = match incomplete.failure.retry {
                    Retry::Safe => true,
                    Retry::IfReused => {
                        open.http.has_carried() && is_idempotent(self.workload.method())
                    }
                    Retry::Never => false,
                };
                attempts += 1;
                if may_repeat && !self.workload.reader().was_opened() && attempts < MOST_ATTEMPTS {
                    exchange.bytes_sent += incomplete.bytes_sent;
                    exchange.bytes_received += incomplete.bytes_received;
                    continue;
                }
            }
            let days = open.certificate_days;
            let concluded = self
                .workload
                .conclude(&start, response, &mut exchange, days);
            if concluded.has_carried {
                link.back_off.borrow_mut().carried();
            }
            if let Some(next) = concluded.again {
                endpoint = next;
                continue;
            }
            let rest = link.back_off.borrow().remaining(exchange.done);
            under_way.finished();
            return Finished {
                done: exchange.done,
                back_off: concluded.pause.max(rest),
            };
        }
    }
}
