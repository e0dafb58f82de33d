//! The virtual users of one HTTP/3 connection: each makes one exchange at a time, on a stream of it.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use http::HeaderMap;
use plimsoll_client::check::{Facts, Observer};
use plimsoll_client::{Http3, Http3Parts};
use plimsoll_model::{Clock, Exchange, Failure, FailureKind, Phase, Phases, Protocol, Retry};
use plimsoll_wire::SystemClock;
use plimsoll_wire::h1::ResponseSink as _;
use tokio::sync::OnceCell;

use crate::pace::{Finished, Start};
use crate::plain::{FIRST_BACK_OFF, LONGEST_BACK_OFF, Shared, add_phases};
use crate::user::{Recorder, VirtualUser};

/// How often a request is sent on yet another connection because the one before was left by its
/// server without having looked at it.
const MOST_ATTEMPTS: u8 = 5;

/// Sends the planned requests in turn on a stream of the connection that it shares.
#[derive(Debug)]
pub(crate) struct QuicUser {
    shared: Rc<Shared>,
    connection: Rc<QuicConnection>,
    next_request: usize,
    observer: Option<Observer>,
    back_off: Duration,
}

/// A connection to each endpoint, shared by the users of its streams.
#[derive(Debug)]
pub(crate) struct QuicConnection {
    /// One per endpoint: the connection, once somebody has opened it.
    links: Vec<RefCell<Rc<Link>>>,
}

/// One connection, opened by whoever needs it first while the others wait.
type Link = OnceCell<Result<Open, Failure>>;

#[derive(Debug, Clone)]
struct Open {
    http: Http3,
    /// Days until the peer's certificate expires, if a condition looks at it.
    certificate_days: Option<i64>,
}

impl QuicConnection {
    /// - `endpoints`: how many there are.
    pub(crate) fn new(endpoints: usize) -> Self {
        Self {
            links: (0..endpoints).map(|_| RefCell::default()).collect(),
        }
    }

    /// The link to `endpoint` as it is to be used now: one whose server has left is replaced.
    fn link(&self, endpoint: usize) -> Rc<Link> {
        let mut current = self.links[endpoint].borrow_mut();
        if let Some(Ok(open)) = current.get()
            && open.http.is_retired()
        {
            *current = Rc::default();
        }
        Rc::clone(&current)
    }

    /// The next user opens another connection in place of `link`.
    fn replace(&self, endpoint: usize, link: &Rc<Link>) {
        let mut current = self.links[endpoint].borrow_mut();
        if Rc::ptr_eq(&current, link) {
            *current = Rc::default();
        }
    }
}

impl QuicUser {
    /// - `index`: the user's number in the run; users begin at different requests.
    pub(crate) fn new(shared: Rc<Shared>, connection: Rc<QuicConnection>, index: usize) -> Self {
        let plan = &shared.plan;
        let expectations = &plan.expectations;
        Self {
            next_request: index % plan.requests.len(),
            observer: (!expectations.is_empty()).then(|| expectations.observer()),
            back_off: Duration::ZERO,
            connection,
            shared,
        }
    }

    /// The connection to `endpoint`, opened or waited for if there is none.
    async fn connect(
        &mut self,
        endpoint: usize,
        recorder: &Recorder,
        exchange: &mut Exchange,
    ) -> Result<(Rc<Link>, Open), Failure> {
        let link = self.connection.link(endpoint);
        if let Some(Ok(open)) = link.get() {
            return Ok((Rc::clone(&link), open.clone()));
        }
        let waiting_from = SystemClock.now();
        let mut own = None;
        let opened = link.get_or_init(|| async {
            let (phases, result) = self.open(endpoint, recorder).await;
            own = Some(phases);
            result
        });
        let opened = opened.await.clone();
        if let Some(phases) = own {
            add_phases(&mut exchange.phases, &phases);
        } else {
            let waited = SystemClock.now() - waiting_from;
            let earlier = exchange.phases.get(Phase::Blocked).unwrap_or_default();
            exchange.phases.set(Phase::Blocked, earlier + waited);
        }
        match opened {
            Ok(open) => {
                self.back_off = Duration::ZERO;
                Ok((link, open))
            }
            Err(failure) => {
                self.connection.replace(endpoint, &link);
                self.back_off = (self.back_off * 2).clamp(FIRST_BACK_OFF, LONGEST_BACK_OFF);
                Err(failure)
            }
        }
    }

    async fn open(&self, endpoint: usize, recorder: &Recorder) -> (Phases, Result<Open, Failure>) {
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
                };
                (connection.phases, Ok(open))
            }
            Err(error) => (error.phases, Err(error.failure)),
        }
    }

    /// Makes the exchange, on other connections too as long as servers leave before they looked at it.
    async fn attempt(
        &mut self,
        position: usize,
        start: &Start,
        recorder: &Recorder,
        exchange: &mut Exchange,
    ) -> Option<i64> {
        let shared = Rc::clone(&self.shared);
        let planned = &shared.plan.requests[position];
        let deadline = start.started + shared.plan.timeout;
        for attempt in 1.. {
            let (link, mut open) = match self.connect(planned.endpoint, recorder, exchange).await {
                Ok(found) => found,
                Err(failure) => {
                    exchange.outcome = Err(failure);
                    exchange.done = SystemClock.now();
                    return None;
                }
            };
            exchange.peer = Some(open.http.peer());
            let Some(request) = planned.request.http3() else {
                let failure = Failure::new(Phase::Send, FailureKind::Protocol)
                    .because("the request was not encoded for HTTP/3");
                exchange.outcome = Err(failure);
                return None;
            };
            let begun = SystemClock.now();
            let http = &mut open.http;
            let result = match &mut self.observer {
                None => {
                    http.exchange(request, begun, deadline, &mut (), &SystemClock)
                        .await
                }
                Some(observer) => {
                    let mut sink = Observing(observer);
                    http.exchange(request, begun, deadline, &mut sink, &SystemClock)
                        .await
                }
            };
            if open.http.is_retired() {
                self.connection.replace(planned.endpoint, &link);
            }
            match result {
                Ok(completed) => {
                    add_phases(&mut exchange.phases, &completed.phases);
                    exchange.bytes_sent += completed.bytes_sent;
                    exchange.bytes_received += completed.bytes_received;
                    exchange.done = completed.done;
                    exchange.outcome = Ok(completed.status);
                    return open.certificate_days;
                }
                Err(incomplete) => {
                    exchange.bytes_sent += incomplete.bytes_sent;
                    exchange.bytes_received += incomplete.bytes_received;
                    // The last request that a leaving server will look at is not told to us, so that
                    // its leaving is all there is to go by.
                    let failure = &incomplete.failure;
                    let may_repeat = match failure.retry {
                        // A rejected request is what a server under load does: that is not hidden.
                        Retry::Safe => failure.kind == FailureKind::Closed,
                        Retry::IfReused => {
                            open.http.has_carried() && planned.request.is_idempotent()
                        }
                        Retry::Never => false,
                    };
                    if may_repeat && attempt < MOST_ATTEMPTS {
                        continue;
                    }
                    add_phases(&mut exchange.phases, &incomplete.phases);
                    exchange.done = incomplete.done;
                    exchange.outcome = Err(incomplete.failure);
                    return None;
                }
            }
        }
        None
    }
}

impl VirtualUser for QuicUser {
    async fn exchange(&mut self, start: Start, recorder: &Recorder) -> Finished {
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
        let position = self.next_request;
        self.next_request = (position + 1) % self.shared.plan.requests.len();
        let certificate_days = self
            .attempt(position, &start, recorder, &mut exchange)
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
        Finished {
            done: exchange.done,
            back_off: self.back_off,
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
