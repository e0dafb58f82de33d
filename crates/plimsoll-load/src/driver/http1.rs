//! Exchanges over HTTP/1: each virtual user has connections of its own, one per endpoint.

use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Instant;

use plimsoll_client::{ConnectFailure, Http1, Stream};
use plimsoll_model::{Clock, Exchange, Phases, Protocol, Retry};
use plimsoll_wire::SystemClock;

use super::outlasting::{OutlastingParts, PartSink, Turn};
use super::{Driver, Tasks, WorkerState, begin};
use crate::worker::ConnectionSlot;
use crate::worker::back_off::BackOff;
use crate::worker::pace::{Finished, Start};
use crate::worker::user::{Recorder, UnderWay, VirtualUser, live};
use crate::workload::{HttpWorkload, Response, ResponseReader};

/// Carries exchanges over HTTP/1.
#[derive(Debug)]
pub(crate) struct Http1Driver;

impl Driver for Http1Driver {
    fn start<W: HttpWorkload>(
        &self,
        slot: &ConnectionSlot<'_>,
        make: &dyn Fn(usize) -> W,
        tasks: &mut Tasks,
    ) {
        let shared = slot.shared();
        let user = Http1User {
            connections: shared.plan.endpoints.iter().map(|_| None).collect(),
            workload: make(slot.index()),
            back_off: BackOff::new(shared.plan.seed.wrapping_add(slot.index() as u64)),
            shared: Rc::clone(shared),
        };
        let (pacer, recorder) = (slot.pacer(0), Rc::clone(&shared.recorder));
        tasks.spawn_local(async move {
            live(user, pacer, recorder).await;
            Ok(())
        });
    }
}

struct Http1User<W> {
    shared: Rc<WorkerState>,
    /// One per endpoint, as far as they are open.
    connections: Vec<Option<Open>>,
    workload: W,
    back_off: BackOff,
}

#[derive(Debug)]
struct Open {
    http: Http1<Stream>,
    peer: Option<SocketAddr>,
    /// Days until the peer's certificate expires, if a condition looks at it.
    certificate_days: Option<i64>,
    idle_since: Instant,
    /// A complete exchange.
    has_carried: bool,
}

impl<W: HttpWorkload> VirtualUser for Http1User<W> {
    async fn exchange(&mut self, mut start: Start, recorder: &Recorder) -> Finished {
        let mut exchange = begin(&start, Protocol::Http1);
        let mut endpoint = self.workload.take_up(&mut start);
        let under_way = UnderWay::new(recorder, start);
        let deadline = start.started + self.shared.plan.timeout;
        let mut was_sent_again = false;
        loop {
            let connecting = self.connect(endpoint, &start, recorder, &mut exchange);
            if connecting.await.is_err() {
                recorder.finish(&start, &exchange);
                under_way.finished();
                return Finished {
                    done: exchange.done,
                    back_off: self.back_off.remaining(exchange.done),
                };
            }
            let response = if W::Reader::OUTLASTS {
                Box::pin(self.follow(endpoint, deadline, &exchange)).await
            } else {
                let (buffer, clock) = (&self.shared.buffer, &SystemClock);
                let open = self.connections[endpoint]
                    .as_mut()
                    .expect("it was just connected");
                let begun = open.idle_since.max(exchange.done);
                let (request, reader) = self.workload.request();
                let mut parts = PartSink(reader);
                let result = open
                    .http
                    .exchange(request, begun, deadline, buffer, &mut parts, clock);
                result.await.into()
            };
            let open = self.connections[endpoint]
                .as_mut()
                .expect("it was just connected");
            match &response {
                Response::Completed(completed) if completed.surplus => recorder.surplus(),
                // The server closed an idle connection without announcing it, and the request
                // crossed that on its way (RFC 9112, section 9.5).
                Response::Failed(incomplete)
                    if !was_sent_again
                        && open.has_carried
                        && incomplete.failure.retry == Retry::IfReused
                        && !self.workload.reader().was_opened()
                        && is_safe(self.workload.method()) =>
                {
                    was_sent_again = true;
                    exchange.phases.add(&incomplete.phases);
                    exchange.bytes_sent += incomplete.bytes_sent;
                    exchange.bytes_received += incomplete.bytes_received;
                    exchange.done = incomplete.done;
                    self.connections[endpoint] = None;
                    recorder.reconnected(&start);
                    continue;
                }
                _ => {}
            }
            let days = open.certificate_days;
            let concluded = self
                .workload
                .conclude(&start, response, &mut exchange, days);
            if concluded.has_carried {
                open.has_carried = true;
                self.back_off.carried();
            } else if !open.has_carried {
                self.back_off.lost(start.started);
            }
            open.idle_since = exchange.done;
            if !(concluded.is_reusable && self.shared.plan.keep_alive) {
                self.connections[endpoint] = None;
            }
            if let Some(next) = concluded.again {
                endpoint = next;
                continue;
            }
            under_way.finished();
            return Finished {
                done: exchange.done,
                back_off: concluded.pause.max(self.back_off.remaining(exchange.done)),
            };
        }
    }
}

impl<W: HttpWorkload> Http1User<W> {
    /// Opens a connection for `endpoint` unless there is one that can be used again.
    async fn connect(
        &mut self,
        endpoint: usize,
        start: &Start,
        recorder: &Recorder,
        exchange: &mut Exchange,
    ) -> Result<(), ()> {
        if endpoint >= self.connections.len() {
            self.connections.resize_with(endpoint + 1, || None);
        }
        if let Some(open) = &mut self.connections[endpoint] {
            // Back to back there was no time in which the peer could have closed it.
            if open.idle_since == exchange.done || open.http.is_fresh() {
                exchange.peer = open.peer;
                return Ok(());
            }
            self.connections[endpoint] = None;
        }
        match Box::pin(open(&self.shared, endpoint)).await {
            Ok((open, phases)) => {
                recorder.connection_opened();
                exchange.phases.add(&phases);
                exchange.peer = open.peer;
                self.connections[endpoint] = Some(open);
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

    /// Sends the request and reads its response until it or the run is over.
    ///
    /// - `exchange`: as it stands before the request is begun.
    async fn follow(
        &mut self,
        endpoint: usize,
        deadline: Instant,
        exchange: &Exchange,
    ) -> Response {
        let open = self.connections[endpoint]
            .as_mut()
            .expect("it was just connected");
        let begun = open.idle_since.max(exchange.done);
        let (buffer, clock) = (&self.shared.buffer, &SystemClock);
        let (request, reader) = self.workload.request();
        let turn = Turn::default();
        let mut parts = OutlastingParts {
            reader,
            exchange: exchange.clone(),
            turn: &turn,
            http3: None,
        };
        let opening = open
            .http
            .open(request, begun, deadline, buffer, &mut parts, clock);
        let mut opened = match opening.await {
            Err(incomplete) => return Response::Failed(incomplete),
            Ok(opened) => opened,
        };
        parts.report_opening(&opened.opening);
        let is_stream = parts.reader.was_opened();
        let patience = (!is_stream).then_some(deadline);
        let http = &mut open.http;
        let following = http.follow(&mut opened, request, patience, buffer, &mut parts, clock);
        let followed = tokio::select! {
            biased;
            followed = following => Some(followed.into()),
            () = turn.given_up() => None,
            () = self.shared.gate.wait_for_stop(), if is_stream => None,
        };
        followed.unwrap_or_else(|| Response::Dropped(opened.traffic()))
    }
}

/// Opens a connection.
async fn open(shared: &WorkerState, endpoint: usize) -> Result<(Open, Phases), ConnectFailure> {
    let plan = &shared.plan;
    let endpoint = shared.endpoint(endpoint);
    let connection = shared.connector.connect(&endpoint, &SystemClock).await?;
    let now = SystemClock.now();
    let certificate_days = if plan.expectations.needs_certificate() {
        let session = connection.stream.tls_session();
        let certificate = session.and_then(|session| session.certificate);
        certificate.map(|certificate| certificate.days_left(SystemClock.wall()))
    } else {
        None
    };
    let open = Open {
        http: Http1::new(connection.stream, plan.limits, now),
        peer: connection.peer,
        certificate_days,
        idle_since: now,
        has_carried: false,
    };
    Ok((open, connection.phases))
}

/// Whether a request of this method may be sent twice (RFC 9110, section 9.2.1).
fn is_safe(method: &str) -> bool {
    matches!(method, "GET" | "HEAD" | "OPTIONS" | "TRACE")
}
