//! The plain exchange: the planned requests, one after the other, each with a whole response.
//!
//! With redirects followed, an exchange includes all requests of its chain: its phases and bytes are
//! their sums, its status is the last one.

use std::rc::Rc;
use std::time::Duration;

use plimsoll_client::check::{Facts, Observer};
use plimsoll_client::{Http3, Request, Session};
use plimsoll_model::{Exchange, Failure, FailureKind, Phase};
use plimsoll_wire::SystemClock;
use plimsoll_wire::h1::ResponseSink as _;

use super::decoding::Decoding;
use super::redirects::RedirectChain;
use super::{Concluded, Head, HttpWorkload, Response, ResponseReader};
use crate::driver::WorkerState;
use crate::plan::{KeptValue, ResponsePlan};
use crate::source::RequestSource;
use crate::worker::pace::Start;

/// Sends the planned requests.
#[derive(Debug)]
pub(crate) struct PlainExchange {
    requests: Requests,
    reader: PlainReader,
}

impl PlainExchange {
    /// - `index`: the user's number in the run; users begin at different requests.
    pub(crate) fn new(shared: &Rc<WorkerState>, responses: &ResponsePlan, index: usize) -> Self {
        Self {
            requests: Requests::new(shared, index),
            reader: PlainReader::new(shared, responses),
        }
    }
}

impl HttpWorkload for PlainExchange {
    type Reader = PlainReader;

    #[inline]
    fn take_up(&mut self, start: &mut Start) -> usize {
        self.requests.take_up(&mut self.reader, start)
    }

    #[inline]
    fn request(&mut self) -> (&Request, &mut PlainReader) {
        (self.requests.current(&mut self.reader), &mut self.reader)
    }

    fn method(&self) -> &str {
        self.requests.method(&self.reader)
    }

    #[inline]
    fn reader(&self) -> &PlainReader {
        &self.reader
    }

    #[inline]
    fn reader_mut(&mut self) -> &mut PlainReader {
        &mut self.reader
    }

    #[inline]
    fn conclude(
        &mut self,
        start: &Start,
        response: Response,
        exchange: &mut Exchange,
        certificate_days: Option<i64>,
    ) -> Concluded {
        let Self { requests, reader } = self;
        let concluded = requests.settle(reader, start, response, exchange);
        if concluded.again.is_some() {
            return concluded;
        }
        requests.keep_values(reader, exchange);
        let recorder = &requests.shared.recorder;
        match reader.judged(exchange, certificate_days) {
            Some((observer, facts)) => {
                let unmet = requests.shared.plan.expectations.unmet(observer, facts);
                recorder.finish_judged(start, exchange, unmet);
            }
            None => recorder.finish(start, exchange),
        }
        concluded
    }
}

/// The requests of one virtual user, with what their session adds to them.
#[derive(Debug)]
pub(super) struct Requests {
    pub(super) shared: Rc<WorkerState>,
    source: RequestSource,
    /// The request under way, if it differs from the planned one.
    dressed: Option<Request>,
    /// The position of its endpoint.
    endpoint: usize,
}

impl Requests {
    /// - `index`: the user's number in the run; users begin at different requests.
    pub(super) fn new(shared: &Rc<WorkerState>, index: usize) -> Self {
        Self {
            source: RequestSource::new(Rc::clone(&shared.source), &shared.plan, index),
            dressed: None,
            endpoint: 0,
            shared: Rc::clone(shared),
        }
    }

    /// Goes on to the next exchange; returns the position of its endpoint.
    #[inline]
    pub(super) fn take_up(&mut self, reader: &mut PlainReader, start: &mut Start) -> usize {
        self.endpoint = self.source.advance(&self.shared.plan, start.arrival);
        if self.source.has_run_out() {
            self.shared.gate.exhaust();
        }
        start.request = self.source.position();
        if let Some(chain) = &mut reader.chain {
            chain.restart();
        }
        self.endpoint
    }

    /// The request to send now.
    #[inline]
    pub(super) fn current(&mut self, reader: &mut PlainReader) -> &Request {
        let Self {
            shared,
            source,
            dressed,
            endpoint,
        } = self;
        reader.endpoint = *endpoint;
        let planned = source.current(&shared.plan);
        let redirected = reader.chain.as_ref().and_then(|chain| chain.request());
        let Some(session) = &mut reader.session else {
            return match redirected {
                None => planned,
                Some(redirected) => dressed.insert(redirected.clone()),
            };
        };
        match redirected {
            None => shared.with_endpoint(*endpoint, |site| {
                session.dress(planned, dressed, site, *endpoint, &SystemClock)
            }),
            Some(redirected) => {
                let mut into = None;
                let request = shared.with_endpoint(*endpoint, |site| {
                    session.dress(redirected, &mut into, site, *endpoint, &SystemClock)
                });
                dressed.insert(request.clone())
            }
        }
    }

    /// The method of that request.
    pub(super) fn method<'a>(&'a self, reader: &'a PlainReader) -> &'a str {
        let chain = reader.chain.as_ref();
        let redirected = chain.and_then(|chain| chain.request());
        let planned = self.source.current(&self.shared.plan);
        redirected.unwrap_or(planned).method()
    }

    /// Adds a response to its exchange; returns what that means, and which request follows.
    #[inline]
    pub(super) fn settle(
        &mut self,
        reader: &mut PlainReader,
        start: &Start,
        response: Response,
        exchange: &mut Exchange,
    ) -> Concluded {
        let mut concluded = Concluded {
            again: None,
            pause: Duration::ZERO,
            is_reusable: false,
            has_carried: false,
        };
        match response {
            Response::Completed(completed) => {
                exchange.phases.add(&completed.phases);
                exchange.bytes_sent += completed.bytes_sent;
                exchange.bytes_received += completed.bytes_received;
                exchange.done = completed.done;
                exchange.outcome = Ok(completed.status);
                concluded.is_reusable = completed.reusable;
                concluded.has_carried = true;
                let session = reader.session.as_mut();
                if session.is_some_and(|session| session.wants_again()) {
                    // A server that demands credentials gets them in the same exchange.
                    concluded.again = Some(self.endpoint);
                } else if reader.chain.is_some() || reader.decoding.is_some() {
                    concluded.again = self.finish(reader, start, exchange);
                }
            }
            Response::Failed(incomplete) => {
                exchange.phases.add(&incomplete.phases);
                exchange.bytes_sent += incomplete.bytes_sent;
                exchange.bytes_received += incomplete.bytes_received;
                exchange.done = incomplete.done;
                exchange.outcome = Err(incomplete.failure);
            }
            // Only streams are left before they end.
            Response::Dropped((sent, received)) => {
                exchange.bytes_sent += sent;
                exchange.bytes_received += received;
                exchange.outcome = Err(Failure::new(Phase::Receive, FailureKind::Aborted));
            }
        }
        concluded
    }

    /// Follows the redirect of a complete response, or ends the decoding of its content; returns the
    /// position of the endpoint of the next request.
    fn finish(
        &mut self,
        reader: &mut PlainReader,
        start: &Start,
        exchange: &mut Exchange,
    ) -> Option<usize> {
        let PlainReader {
            chain,
            decoding,
            observer,
            ..
        } = reader;
        let recorder = &self.shared.recorder;
        if let (Some(chain), Ok(status)) = (chain, &exchange.outcome) {
            let planned = self.source.current(&self.shared.plan);
            match chain.follow(&self.shared, planned, self.endpoint, *status) {
                Ok(None) => {}
                Ok(Some(next)) => {
                    recorder.redirected(start);
                    self.endpoint = next;
                    return Some(next);
                }
                Err(failure) => {
                    exchange.outcome = Err(failure);
                    return None;
                }
            }
        }
        if let Some(decoding) = decoding {
            match decoding.finish(observer.as_mut()) {
                Ok(lengths) => recorder.decoded(start, lengths),
                Err(failure) => exchange.outcome = Err(failure),
            }
        }
        None
    }

    /// Keeps the values of a complete response that later requests need. The exchange fails if one is missing, and
    /// after any failure the sequence begins again: those requests could not be made.
    fn keep_values(&mut self, reader: &PlainReader, exchange: &mut Exchange) {
        let plan = &self.shared.plan;
        let kept = self.source.kept(plan);
        if kept.is_empty() {
            return;
        }
        if let (&Ok(status), Some(observer)) = (&exchange.outcome, &reader.observer) {
            let response = observer.observed(Facts::default());
            for KeptValue {
                position,
                extraction,
            } in kept
            {
                if let Some(value) = extraction.value(&response) {
                    self.source.keep(*position, value);
                } else {
                    // A login that was refused is a status, and no other count has it.
                    let name = &plan.kept[*position];
                    let cause = format!("`{name}` has no value in a response with status {status}");
                    let failure = Failure::new(Phase::Receive, FailureKind::MissingValue);
                    exchange.outcome = Err(failure.because(cause));
                    break;
                }
            }
        }
        if exchange.outcome.is_err() {
            self.source.begin_again();
        }
    }
}

/// Reads responses for the session, for redirects and for conditions.
#[derive(Debug)]
pub(crate) struct PlainReader {
    shared: Rc<WorkerState>,
    /// The state that the user keeps.
    session: Option<Box<Session>>,
    observer: Option<Observer>,
    /// Only where redirects are followed.
    chain: Option<Box<RedirectChain>>,
    /// Only where content is decoded.
    decoding: Option<Box<Decoding>>,
    /// The position of the endpoint that responds.
    endpoint: usize,
}

impl PlainReader {
    pub(super) fn new(shared: &Rc<WorkerState>, responses: &ResponsePlan) -> Self {
        let plan = &shared.plan;
        let expectations = &plan.expectations;
        let kept = plan.requests.iter().flat_map(|request| &request.kept);
        let extractions: Vec<_> = kept.map(|kept| kept.extraction.clone()).collect();
        let chain = |limit| Box::new(RedirectChain::new(limit));
        let decoding = |limits| Box::new(Decoding::new(limits));
        Self {
            session: Session::new(&plan.session).map(Box::new),
            observer: (!expectations.is_empty() || !extractions.is_empty())
                .then(|| expectations.observer_with(&extractions)),
            chain: responses.redirects.map(chain),
            decoding: responses.decode.map(decoding),
            endpoint: 0,
            shared: Rc::clone(shared),
        }
    }

    /// The values that conditions are about; `None` if there are no conditions, or no response.
    #[inline]
    pub(super) fn judged(
        &self,
        exchange: &Exchange,
        certificate_days: Option<i64>,
    ) -> Option<(&Observer, Facts)> {
        let observer = self.observer.as_ref()?;
        Some((observer, Facts::from_exchange(exchange, certificate_days)?))
    }
}

impl ResponseReader for PlainReader {
    #[inline]
    fn wants_head(&self) -> bool {
        self.observer.is_some()
            || self.session.is_some()
            || self.chain.is_some()
            || self.decoding.is_some()
    }

    #[inline]
    fn wants_fields(&self) -> bool {
        self.session.is_some()
            || self.chain.is_some()
            || self.decoding.is_some()
            || self.observer.as_ref().is_some_and(Observer::needs_fields)
    }

    #[inline]
    fn head(&mut self, head: Head<'_>) {
        if let Some(session) = &mut self.session {
            // A login is for the servers of the plan, not for those that redirects lead to.
            let is_foreign = self.chain.as_ref().is_some_and(|chain| chain.is_foreign());
            learn(session, &self.shared, self.endpoint, head, is_foreign);
        }
        if let Some(chain) = &mut self.chain {
            chain.head(&head);
        }
        if let Some(decoding) = &mut self.decoding {
            decoding.head(&head);
        }
        if let Some(observer) = &mut self.observer {
            match head {
                Head::Http1(head) => observer.head(head),
                Head::Http2(head) => observer.http2_head(head),
                Head::Http3(_, fields) => observer.http3_head(fields),
            }
        }
    }

    #[inline]
    fn content(&mut self, piece: &[u8], _http3: Option<&Http3>) -> bool {
        match (&mut self.decoding, &mut self.observer) {
            (Some(decoding), observer) => decoding.content(piece, observer.as_mut()),
            (None, Some(observer)) => observer.content(piece),
            (None, None) => {}
        }
        false
    }
}

/// Has the session take the fields of a response.
///
/// - `is_foreign`: whether to ignore what the server demands to be logged in.
fn learn(
    session: &mut Session,
    shared: &WorkerState,
    endpoint: usize,
    head: Head<'_>,
    is_foreign: bool,
) {
    let status = match head.status() {
        // Only the challenges of a 401 are answered.
        401 if is_foreign => 403,
        status => status,
    };
    let clock = &SystemClock;
    shared.with_endpoint(endpoint, |site| match head {
        Head::Http1(head) => {
            let fields = head.headers.iter();
            let fields = fields.map(|field| (field.name.as_bytes(), field.value));
            session.learn(site, endpoint, status, fields, clock);
        }
        Head::Http2(head) => session.learn(site, endpoint, status, head.fields.iter(), clock),
        Head::Http3(_, fields) => {
            let fields = fields.iter();
            let fields = fields.map(|(name, value)| (name.as_str().as_bytes(), value.as_bytes()));
            session.learn(site, endpoint, status, fields, clock);
        }
    });
}
