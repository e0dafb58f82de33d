//! The WebSocket session: a message, the next one back, and so on.
//!
//! An exchange is one round trip; that of a new connection includes opening it, the handshake being
//! a part of the phase `connect`. Over HTTP/2 and HTTP/3 a WebSocket is a stream; those of one slot share a connection to
//! each endpoint.

mod carrier;

use std::future::poll_fn;
use std::net::SocketAddr;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use plimsoll_client::{ReadBuffer, Stream, Upgrade, WebSocket};
use plimsoll_model::{Clock, Exchange, Failure, FailureKind, Phase};
use plimsoll_wire::SystemClock;

use crate::driver::{Tasks, WorkerState, begin};
use crate::plan::{RunPlan, WebSocketPlan};
use crate::worker::ConnectionSlot;
use crate::worker::back_off::BackOff;
use crate::worker::pace::{Finished, Pacer, Start};
use crate::worker::user::{Recorder, UnderWay};

use self::carrier::{Carrier, Opener, Opening};

/// Timeout for the server's close frame.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// Starts the virtual users of one connection.
pub(crate) fn start(slot: &ConnectionSlot<'_>, plan: &WebSocketPlan, tasks: &mut Tasks) {
    let shared = slot.shared();
    let opener = Rc::new(Opener::new(&shared.plan, plan.http));
    for place in 0..plan.http.streams() {
        // Users of one connection begin at different requests and draw different masks, too.
        let index = slot.index() + place * shared.plan.connections;
        let session = WebSocketSession::new(shared, plan, &opener, index);
        let (pacer, recorder) = (slot.pacer(place), Rc::clone(&shared.recorder));
        tasks.spawn_local(async move {
            session.live(pacer, recorder).await;
            Ok(())
        });
    }
}

/// Makes round trips on a connection for each planned URL, in turn.
#[derive(Debug)]
struct WebSocketSession {
    shared: Rc<WorkerState>,
    plan: WebSocketPlan,
    /// One per planned request, as far as they are open.
    connections: Vec<Option<Open>>,
    opener: Rc<Opener>,
    next_request: usize,
    random: fastrand::Rng,
    back_off: BackOff,
}

#[derive(Debug)]
struct Open {
    socket: WebSocket<Carrier>,
    peer: Option<SocketAddr>,
    /// A round trip.
    has_carried: bool,
}

impl WebSocketSession {
    /// - `index`: the user's number in the run; users begin at different requests.
    fn new(
        shared: &Rc<WorkerState>,
        plan: &WebSocketPlan,
        opener: &Rc<Opener>,
        index: usize,
    ) -> Self {
        let requests = &shared.plan.requests;
        Self {
            connections: requests.iter().map(|_| None).collect(),
            next_request: index % requests.len(),
            random: fastrand::Rng::with_seed(shared.plan.seed.wrapping_add(index as u64)),
            back_off: BackOff::new(shared.plan.seed.wrapping_add(index as u64)),
            opener: Rc::clone(opener),
            plan: plan.clone(),
            shared: Rc::clone(shared),
        }
    }

    /// Makes round trips until the pacer has no more starts; answers pings in between.
    async fn live(mut self, mut pacer: Pacer, recorder: Rc<Recorder>) {
        let mut last = None;
        loop {
            let start = tokio::select! {
                biased;
                start = pacer.next(last) => start,
                never = self.idle() => match never {},
            };
            let Some(start) = start else { break };
            recorder.begin(&start);
            let under_way = UnderWay::new(&recorder, start);
            last = Some(self.exchange(start, &recorder).await);
            under_way.finished();
        }
        let mut random = self.random;
        let buffer = &self.shared.buffer;
        for open in self.connections.into_iter().flatten() {
            open.socket
                .close(mask(&mut random), CLOSE_TIMEOUT, buffer)
                .await;
        }
    }

    /// Never ready; connections that end meanwhile are forgotten.
    async fn idle(&mut self) -> std::convert::Infallible {
        poll_fn(|context| {
            for slot in &mut self.connections {
                if let Some(open) = slot {
                    let mask = mask(&mut self.random);
                    let idle = open.socket.poll_idle(context, mask, &self.shared.buffer);
                    if idle.is_ready() {
                        *slot = None;
                    }
                }
            }
            Poll::Pending
        })
        .await
    }

    async fn exchange(&mut self, start: Start, recorder: &Recorder) -> Finished {
        let mut exchange = begin(&start, self.shared.plan.protocol());
        exchange.outcome = Ok(self.opener.agreed());
        let position = self.next_request;
        self.next_request += 1;
        if self.next_request == self.connections.len() {
            self.next_request = 0;
        }
        let mut begun = start.started;
        if self.connections[position].is_none() {
            match self
                .connect(position, &start, recorder, &mut exchange)
                .await
            {
                Ok(open) => self.connections[position] = Some(open),
                Err(failure) => {
                    exchange.outcome = Err(failure);
                    exchange.done = SystemClock.now();
                    self.back_off.refused(start.started);
                    recorder.finish(&start, &exchange);
                    return Finished {
                        done: exchange.done,
                        back_off: self.back_off.remaining(exchange.done),
                    };
                }
            }
            begun = SystemClock.now();
        }
        let open = self.connections[position].as_mut();
        let open = open.expect("it was just connected");
        exchange.peer = open.peer;
        let round_trip = open.socket.round_trip(
            self.plan.kind,
            &self.plan.message,
            mask(&mut self.random),
            begun,
            start.started + self.shared.plan.timeout,
            &self.shared.buffer,
            &SystemClock,
        );
        match round_trip.await {
            Ok(round_trip) => {
                exchange.phases.add(&round_trip.phases);
                exchange.bytes_sent = round_trip.bytes_sent;
                exchange.bytes_received = round_trip.bytes_received;
                exchange.done = round_trip.done;
                open.has_carried = true;
                self.back_off.carried();
                recorder.messages(&start, 1, 1 + round_trip.surplus);
            }
            Err(incomplete) => {
                exchange.phases.add(&incomplete.phases);
                exchange.bytes_sent = incomplete.bytes_sent;
                exchange.bytes_received = incomplete.bytes_received;
                exchange.done = incomplete.done;
                let is_sent = incomplete.phases.get(Phase::Send).is_some();
                recorder.messages(&start, u64::from(is_sent), 0);
                exchange.outcome = Err(incomplete.failure);
                if !open.has_carried {
                    self.back_off.lost(start.started);
                }
                self.connections[position] = None;
            }
        }
        recorder.finish(&start, &exchange);
        Finished {
            done: exchange.done,
            back_off: self.back_off.remaining(exchange.done),
        }
    }

    /// Opens a connection and makes the handshake.
    async fn connect(
        &mut self,
        position: usize,
        start: &Start,
        recorder: &Recorder,
        exchange: &mut Exchange,
    ) -> Result<Open, Failure> {
        let plan = &self.shared.plan;
        let opening = Opening {
            position,
            nonce: self.random.u128(..).to_ne_bytes(),
            limits: self.plan.limits,
            deadline: start.started + plan.timeout,
        };
        let socket = Box::pin(self.opener.open(&self.shared, opening, recorder, exchange)).await?;
        Ok(Open {
            socket,
            peer: exchange.peer,
            has_carried: false,
        })
    }
}

/// Makes the handshake of the first request to an endpoint, and closes the connection.
pub(crate) async fn reach(
    plan: &RunPlan,
    websocket: &WebSocketPlan,
    stream: Stream,
    endpoint: usize,
) -> Result<(), Failure> {
    let mut requests = plan.requests.iter();
    let planned = requests.find(|planned| planned.endpoint == endpoint);
    let upgrade = planned.and_then(|planned| Upgrade::new(&planned.request));
    let upgrade = upgrade.ok_or_else(no_upgrade)?;
    let mut random = fastrand::Rng::with_seed(plan.seed);
    let buffer = ReadBuffer::new();
    let limits = (plan.limits, websocket.limits);
    let deadline = SystemClock.now() + plan.timeout;
    let nonce = random.u128(..).to_ne_bytes();
    let clock = &SystemClock;
    let socket = WebSocket::open(stream, &upgrade, nonce, limits, deadline, &buffer, clock).await?;
    socket
        .close(mask(&mut random), CLOSE_TIMEOUT, &buffer)
        .await;
    Ok(())
}

fn no_upgrade() -> Failure {
    Failure::new(Phase::Connect, FailureKind::Protocol)
        .because("the request is not the handshake of a WebSocket")
}

fn mask(random: &mut fastrand::Rng) -> [u8; 4] {
    random.u32(..).to_ne_bytes()
}
