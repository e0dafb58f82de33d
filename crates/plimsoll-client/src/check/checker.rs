//! One exchange at a time, judged.

use std::sync::Arc;
use std::time::SystemTime;

use plimsoll_model::{
    Checked, CheckedCall, Clock, Exchange, Failure, FailureKind, GrpcStatus, Phase, Phases,
    Protocol, Retry, TlsSession, Verdict, masked_text,
};

use crate::check::observing::{Observing, read_answer};
use crate::check::open::{Http, Open, not_encoded};
use crate::check::{CheckPlan, Facts, Observer, SharedConnections};
use crate::grpc::GrpcReading;
use crate::{
    Connector, DecodeError, DecodeLimits, Decoder, Http3Connection, Learning, ReadBuffer, Request,
    Session, SessionPlan,
};

/// Maximum number of attempts of a check on connections that their server closes.
const MOST_ATTEMPTS: u32 = 4;

/// Makes the exchange of one plan, again and again.
///
/// It owns at most one connection, or shares some with others ([`sharing`](Self::sharing)). Connector
/// and read buffer are the caller's, so that the checkers of one worker can share them. With
/// [`Reuse::Keep`] and without details, a check allocates only where a condition asks for JSON.
#[derive(Debug)]
pub struct Checker {
    plan: Arc<CheckPlan>,
    reuse: Reuse,
    open: Option<Box<Open>>,
    shared: Option<SharedConnections>,
    observer: Observer,
    /// Only where gRPC is spoken.
    reading: Option<Box<GrpcReading>>,
    /// Cookies and challenges of the server, and the request with their answers.
    session: Option<Box<Session>>,
    dressed: Option<Request>,
    has_details: bool,
    /// Decoder of the content for conditions, if it is decoded.
    decode: Option<DecodeLimits>,
    /// Of the connection that was used last, as far as somebody wants to know.
    tls: Option<TlsSession>,
}

/// Use of the connection after an exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reuse {
    /// It is kept for the next one, if the peer lets it.
    Keep,
    /// It is closed: each check includes resolving, connecting and the handshake.
    Fresh,
}

/// One exchange and its verdict.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// When it started, as a date.
    pub at: SystemTime,
    /// The exchange.
    pub exchange: Exchange,
    /// The verdict.
    pub verdict: Verdict,
    /// Whether it ran over a connection that had carried one before.
    pub reused: bool,
    certificate_days: Option<i64>,
    call: Option<Box<CheckedCall>>,
}

impl Checker {
    /// Opens nothing yet.
    pub fn new(plan: Arc<CheckPlan>, reuse: Reuse) -> Self {
        Self {
            observer: match plan.grpc {
                Some(_) => plan.expectations.observer().with_body(),
                None => plan.expectations.observer(),
            },
            reading: plan.grpc.as_ref().map(|_| Box::default()),
            session: Session::new(&SessionPlan {
                cookies: false,
                digest: plan.digest.clone(),
            })
            .map(Box::new),
            dressed: None,
            plan,
            reuse,
            open: None,
            shared: None,
            has_details: false,
            decode: None,
            tls: None,
        }
    }

    /// A checker whose exchanges run over `connections`, which must be to the plan's endpoint; its
    /// request must be encoded for HTTP/2.
    pub fn sharing(plan: Arc<CheckPlan>, connections: SharedConnections) -> Self {
        Self {
            shared: Some(connections),
            ..Self::new(plan, Reuse::Keep)
        }
    }

    /// The same, keeping for [`explain`](Self::explain) the whole head and the TLS session.
    #[must_use]
    pub fn with_details(mut self) -> Self {
        self.has_details = true;
        self.observer = self.observer.with_all_fields();
        self
    }

    /// The same, decoding the content by its `content-encoding` before conditions see it.
    #[must_use]
    pub fn with_decoding(mut self, limits: DecodeLimits) -> Self {
        self.decode = Some(limits);
        self.observer = self.observer.with_body();
        self
    }

    /// The value of a field of the last response that was kept; `name` in lower case.
    pub fn field(&self, name: &str) -> Option<&[u8]> {
        let mut fields = self.observer.fields().iter();
        fields
            .find(|(known, _)| known == name)
            .map(|(_, value)| &value[..])
    }

    /// The plan.
    pub fn plan(&self) -> &Arc<CheckPlan> {
        &self.plan
    }

    /// Closes the connection that is kept, if there is one.
    pub fn close(&mut self) {
        self.open = None;
    }

    /// Makes one exchange and judges it; call it within the runtime of `connector`.
    ///
    /// A kept connection that the peer closed while it was idle says nothing about the peer: the
    /// request is then sent once more on a fresh one, if its method is idempotent (RFC 9110,
    /// section 9.2.2).
    pub async fn check(
        &mut self,
        connector: &Connector,
        buffer: &ReadBuffer,
        clock: &impl Clock,
    ) -> Outcome {
        let started = clock.now();
        let at = clock.wall();
        let mut exchange = Exchange {
            intended: started,
            started,
            done: started,
            phases: Phases::default(),
            bytes_sent: 0,
            bytes_received: 0,
            peer: None,
            protocol: self.plan.request.protocol(),
            outcome: Ok(0),
        };
        self.observer.clear();
        let reused = match self.shared.clone() {
            None => {
                self.check_alone(connector, buffer, clock, &mut exchange)
                    .await
            }
            Some(shared) => {
                self.check_shared(&shared, connector, clock, &mut exchange)
                    .await
            }
        };
        let certificate_days = self
            .tls
            .as_ref()
            .and_then(|tls| tls.certificate.as_ref())
            .map(|certificate| certificate.days_left(at));
        let call = self.finish_call(&mut exchange);
        self.decode(&mut exchange);
        let status = call.as_ref().map(|call| call.status);
        Outcome {
            at,
            verdict: self.verdict(&exchange, certificate_days, status),
            exchange,
            reused,
            certificate_days,
            call,
        }
    }

    /// All about `outcome`, which must be the last one.
    ///
    /// Without [`with_details`](Self::with_details) there are only the fields that conditions look
    /// at.
    pub fn explain(&self, outcome: &Outcome) -> Checked {
        let facts =
            Facts::from_exchange(&outcome.exchange, outcome.certificate_days).map(|facts| Facts {
                grpc_status: outcome.call.as_ref().map(|call| call.status),
                ..facts
            });
        Checked {
            call: outcome.call.as_deref().cloned(),
            redirects: Vec::new(),
            url: masked_text(&self.plan.endpoint.to_string()).into_owned(),
            method: self.plan.request.method().to_owned(),
            at: outcome.at,
            exchange: outcome.exchange.clone(),
            fields: self
                .observer
                .fields()
                .iter()
                .map(|(name, value)| (name.clone(), String::from_utf8_lossy(value).into_owned()))
                .collect(),
            content_bytes: self.observer.size(),
            tls: self.tls.clone(),
            judgements: self.plan.expectations.judge(&self.observer, facts),
        }
    }

    /// Reports whether the connection had carried an exchange before.
    async fn check_alone(
        &mut self,
        connector: &Connector,
        buffer: &ReadBuffer,
        clock: &impl Clock,
        exchange: &mut Exchange,
    ) -> bool {
        let mut kept = self.open.take().and_then(|mut open| {
            let is_fresh = open.is_fresh(buffer, clock);
            is_fresh.then_some(open)
        });
        let mut reused = kept.is_some();
        loop {
            let is_kept = kept.is_some();
            let (phases, sent, received) = (
                exchange.phases,
                exchange.bytes_sent,
                exchange.bytes_received,
            );
            let open = match kept.take() {
                Some(open) => Ok(open),
                None => self.connect(connector, clock, exchange).await,
            };
            let result = match open {
                Ok(open) => self.send(open, buffer, clock, exchange).await,
                Err(failure) => Err(failure),
            };
            match result {
                Ok(status) => {
                    exchange.outcome = Ok(status);
                    let session = self.session.as_mut();
                    if session.is_some_and(|session| session.wants_again()) {
                        self.observer.clear();
                        kept = self.open.take();
                        continue;
                    }
                }
                Err(failure)
                    if is_kept
                        && failure.retry == Retry::IfReused
                        && self.plan.request.is_idempotent() =>
                {
                    exchange.phases = phases;
                    exchange.bytes_sent = sent;
                    exchange.bytes_received = received;
                    reused = false;
                    continue;
                }
                Err(failure) => exchange.outcome = Err(failure),
            }
            break;
        }
        if self.reuse == Reuse::Fresh
            && let Some(open) = self.open.take()
        {
            open.close().await;
        }
        reused
    }

    /// Reports whether the connection had carried an exchange before.
    async fn check_shared(
        &mut self,
        shared: &SharedConnections,
        connector: &Connector,
        clock: &impl Clock,
        exchange: &mut Exchange,
    ) -> bool {
        let deadline = exchange.started + self.plan.timeout;
        let mut attempt = 0;
        loop {
            attempt += 1;
            self.tls = None;
            exchange.phases = Phases::default();
            let place = match shared.place(connector, deadline, clock).await {
                Ok(place) => place,
                Err((failure, phases)) => {
                    exchange.phases.add(&phases);
                    exchange.done = clock.now();
                    exchange.outcome = Err(failure);
                    return false;
                }
            };
            if self.has_details || self.plan.expectations.needs_certificate() {
                self.tls = place.tls();
            }
            exchange.peer = place.peer();
            let begun = if place.is_immediate() && attempt == 1 {
                exchange.started
            } else {
                clock.now()
            };
            if place.has_waited {
                let blocked = begun.saturating_duration_since(exchange.started);
                let blocked = blocked.saturating_sub(place.phases.total());
                exchange.phases.set(Phase::Blocked, blocked);
            }
            exchange.phases.add(&place.phases);
            let Some(request) = self.plan.request.http2() else {
                exchange.done = begun;
                exchange.outcome = Err(not_encoded());
                return place.reused;
            };
            let made = shared.exchange(&place, request, begun, deadline, &mut self.observer);
            match made.await {
                Ok(completed) => {
                    exchange.phases.add(&completed.phases);
                    exchange.bytes_sent = completed.bytes_sent;
                    exchange.bytes_received = completed.bytes_received;
                    exchange.done = completed.done;
                    exchange.outcome = Ok(completed.status);
                }
                Err(incomplete) => {
                    let failure = incomplete.failure;
                    if attempt < MOST_ATTEMPTS
                        && place.reused
                        && was_left(&failure, &self.plan.request)
                    {
                        self.observer.clear();
                        continue;
                    }
                    exchange.phases.add(&incomplete.phases);
                    exchange.bytes_sent = incomplete.bytes_sent;
                    exchange.bytes_received = incomplete.bytes_received;
                    exchange.done = incomplete.done;
                    exchange.outcome = Err(failure);
                }
            }
            return place.reused;
        }
    }

    async fn connect(
        &mut self,
        connector: &Connector,
        clock: &impl Clock,
        exchange: &mut Exchange,
    ) -> Result<Box<Open>, Failure> {
        self.tls = None;
        exchange.peer = None;
        if self.plan.request.protocol() == Protocol::Http3 {
            return self.connect_http3(connector, clock, exchange).await;
        }
        let connecting = Box::pin(connector.connect(&self.plan.endpoint, clock));
        match connecting.await {
            Ok(connection) => {
                exchange.phases.add(&connection.phases);
                if self.has_details || self.plan.expectations.needs_certificate() {
                    self.tls = connection.stream.tls_session();
                }
                let opened = Open::new(&self.plan, connection, clock.now()).map(Box::new);
                opened.inspect_err(|_| exchange.done = clock.now())
            }
            Err(error) => {
                exchange.phases.add(&error.phases);
                exchange.done = clock.now();
                Err(error.failure)
            }
        }
    }

    async fn connect_http3(
        &mut self,
        connector: &Connector,
        clock: &impl Clock,
        exchange: &mut Exchange,
    ) -> Result<Box<Open>, Failure> {
        let (endpoint, limits) = (&self.plan.endpoint, self.plan.limits);
        let connecting = connector.connect_http3(endpoint, limits, clock);
        match Box::pin(connecting).await {
            Ok(Http3Connection { http, phases, .. }) => {
                exchange.phases.add(&phases);
                if self.has_details || self.plan.expectations.needs_certificate() {
                    self.tls = Some(http.tls_session());
                }
                Ok(Box::new(Open {
                    peer: Some(http.peer()),
                    http: Http::Three(http),
                }))
            }
            Err(error) => {
                exchange.phases.add(&error.phases);
                exchange.done = clock.now();
                Err(error.failure)
            }
        }
    }

    async fn send(
        &mut self,
        mut open: Box<Open>,
        buffer: &ReadBuffer,
        clock: &impl Clock,
        exchange: &mut Exchange,
    ) -> Result<u16, Failure> {
        exchange.peer = open.peer;
        let begun = clock.now();
        let deadline = exchange.started + self.plan.timeout;
        let plan = &*self.plan;
        let mut request = &plan.request;
        let result = match (&mut open.http, &mut self.session) {
            (http, Some(session)) => {
                let into = &mut self.dressed;
                request = session.dress(request, into, &plan.endpoint, 0, clock);
                let mut sink = Learning {
                    session,
                    endpoint: &plan.endpoint,
                    position: 0,
                    observer: Some(&mut self.observer),
                    clock,
                };
                http.exchange(request, begun, deadline, buffer, &mut sink, clock)
                    .await
            }
            (http, None) => {
                let mut sink = Observing {
                    observer: &mut self.observer,
                    grpc: self.reading.as_deref_mut(),
                };
                http.exchange(request, begun, deadline, buffer, &mut sink, clock)
                    .await
            }
        };
        match result {
            Ok(completed) => {
                exchange.phases.add(&completed.phases);
                exchange.bytes_sent += completed.bytes_sent;
                exchange.bytes_received += completed.bytes_received;
                exchange.done = completed.done;
                if completed.reusable {
                    self.open = Some(open);
                } else {
                    open.close().await;
                }
                Ok(completed.status)
            }
            Err(incomplete) => {
                exchange.phases.add(&incomplete.phases);
                exchange.bytes_sent += incomplete.bytes_sent;
                exchange.bytes_received += incomplete.bytes_received;
                exchange.done = incomplete.done;
                Err(incomplete.failure)
            }
        }
    }

    /// Reads the complete response as the answer to a call, if it should be one; conditions on the
    /// content then see its messages as JSON.
    fn finish_call(&mut self, exchange: &mut Exchange) -> Option<Box<CheckedCall>> {
        let grpc = self.plan.grpc.as_ref()?;
        let reading = self.reading.as_ref()?;
        exchange.outcome.as_ref().ok()?;
        match read_answer(grpc, reading, &self.observer) {
            Ok(call) => {
                self.observer.replace_body(call.json.clone().into_bytes());
                Some(Box::new(call))
            }
            Err(failure) => {
                exchange.outcome = Err(failure);
                None
            }
        }
    }

    /// Decodes the content of a complete response, if that is wanted.
    fn decode(&mut self, exchange: &mut Exchange) {
        let Some(limits) = self.decode.filter(|_| exchange.outcome.is_ok()) else {
            return;
        };
        let coding = self.field("content-encoding").unwrap_or_default();
        let coding = String::from_utf8_lossy(coding).into_owned();
        let is_cut = self.observer.size() > self.observer.body().len() as u64;
        let decoded = match Decoder::new(&coding, limits) {
            Ok(Some(_)) if is_cut => Err(DecodeError::TooLarge(Observer::BODY_BYTES as u64)),
            Ok(Some(mut decoder)) => {
                let mut content = Vec::new();
                decoder
                    .decode(self.observer.body(), &mut content)
                    .and_then(|()| decoder.finish(&mut content))
                    .map(|()| Some(content))
            }
            Ok(None) => Ok(None),
            Err(error) => Err(error),
        };
        match decoded {
            Ok(None) => {}
            Ok(Some(content)) => self.observer.replace_body(content),
            Err(error) => {
                let failure = Failure::new(Phase::Receive, FailureKind::Decode);
                exchange.outcome = Err(failure.because(error.to_string()));
            }
        }
    }

    fn verdict(
        &self,
        exchange: &Exchange,
        certificate_days: Option<i64>,
        grpc_status: Option<GrpcStatus>,
    ) -> Verdict {
        let Some(facts) = Facts::from_exchange(exchange, certificate_days) else {
            return Verdict::Failed;
        };
        let facts = Facts {
            grpc_status,
            ..facts
        };
        let mut unmet = self.plan.expectations.unmet(&self.observer, facts);
        match unmet.next() {
            None => Verdict::Met,
            Some(_) => Verdict::Unmet,
        }
    }
}

/// Whether the failure says that the connection was left, and the request can be sent on another.
fn was_left(failure: &Failure, request: &Request) -> bool {
    match failure.retry {
        Retry::Safe => failure.kind == FailureKind::Closed,
        Retry::IfReused => request.is_idempotent(),
        Retry::Never => false,
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_wire::SystemClock;

    use super::*;

    /// There may be 50,000 at a time, and collecting them moves them.
    #[test]
    fn a_check_under_way_is_small() {
        fn size_of_future<F: Future>(_: impl FnOnce(&'static mut Checker) -> F) -> usize {
            size_of::<F>()
        }
        fn unused<T>() -> T {
            unreachable!("only its type is looked at")
        }
        let size = size_of_future(|checker| {
            checker.check(unused(), unused(), unused::<&'static SystemClock>())
        });
        assert!(size <= 1152, "{size} bytes");
    }
}
