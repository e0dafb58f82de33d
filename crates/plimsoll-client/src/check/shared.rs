//! HTTP/2 connections to one endpoint that the checks of one worker share.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::future::poll_fn;
use std::mem;
use std::net::SocketAddr;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use plimsoll_model::{Clock, Failure, FailureKind, Phase, Phases, TlsSession};
use plimsoll_wire::h1::ResponseSink as _;
use plimsoll_wire::h2;
use tokio::sync::Notify;

use crate::check::Observer;
use crate::{
    Completed, Connection, Connector, Driven, Endpoint, Http2, Incomplete, ReadBuffer, Responses,
    Stream, require_http2,
};

/// A few connections to one endpoint, each of which carries many checks at a time.
///
/// A check takes the connection with the fewest streams under way; only if there is none with room
/// and fewer than the most does it open one, which is then part of what it measures. Others wait
/// until there is room: that is their phase `blocked`. A connection that its server leaves (GOAWAY)
/// is replaced.
///
/// Nothing is sent or received unless [`drive`](Self::drive) is polled beside the checks, on the same
/// thread. Clones share the connections.
#[derive(Clone)]
pub struct SharedConnections(Rc<ConnectionSet>);

struct ConnectionSet {
    endpoint: Endpoint,
    settings: h2::Settings,
    most: usize,
    lanes: RefCell<Vec<Rc<RefCell<Lane>>>>,
    opening: Cell<usize>,
    waiting: Cell<usize>,
    room: Notify,
    driver: RefCell<Option<Waker>>,
}

/// One connection and the checks under way on it.
struct Lane {
    http: Http2<Stream>,
    checks: Checks,
    peer: Option<SocketAddr>,
    tls: Option<TlsSession>,
    has_carried: bool,
}

/// The checks under way on a connection, by the tokens of their exchanges.
#[derive(Default)]
struct Checks {
    all: Vec<CheckState>,
    free: Vec<u32>,
    /// Number of observers that look at header fields.
    want_fields: usize,
}

#[derive(Default)]
struct CheckState {
    observer: Option<Observer>,
    waker: Option<Waker>,
    outcome: Option<Result<Completed, Incomplete>>,
}

/// A connection with room for one more exchange.
pub(super) struct Slot {
    lane: Rc<RefCell<Lane>>,
    /// Of opening it, if that was done for this place.
    pub(super) phases: Phases,
    /// Whether it had carried an exchange before.
    pub(super) reused: bool,
    /// Whether there was no room at first.
    pub(super) has_waited: bool,
}

impl SharedConnections {
    /// Opens nothing yet.
    ///
    /// - `most`: connections open at a time, at least one.
    /// - `settings`: of each; `streams` is how many checks it may carry at a time, as far as the peer
    ///   allows it.
    pub fn new(endpoint: Endpoint, most: usize, settings: h2::Settings) -> Self {
        Self(Rc::new(ConnectionSet {
            endpoint,
            settings,
            most: most.max(1),
            lanes: RefCell::default(),
            opening: Cell::new(0),
            waiting: Cell::new(0),
            room: Notify::new(),
            driver: RefCell::default(),
        }))
    }

    /// Connections that are open now.
    pub fn open(&self) -> usize {
        self.0.lanes.borrow().len()
    }

    /// Reads and writes for all checks; never done, so spawn it beside them or select on it.
    pub async fn drive(&self, buffer: &ReadBuffer, clock: &impl Clock) {
        let mut first = 0;
        poll_fn(|context| {
            self.0.drive_all(first, context, buffer, clock);
            // A busy connection uses up the task's turn, so each is first at times.
            first = first.wrapping_add(1);
            Poll::<()>::Pending
        })
        .await;
    }

    /// Waits for room, or opens a connection; fails when `deadline` is over.
    pub(super) async fn place(
        &self,
        connector: &Connector,
        deadline: Instant,
        clock: &impl Clock,
    ) -> Result<Slot, (Failure, Phases)> {
        let mut has_waited = false;
        loop {
            if let Some(lane) = self.0.lane_with_room() {
                let reused = lane.borrow().has_carried;
                return Ok(Slot {
                    lane,
                    phases: Phases::default(),
                    reused,
                    has_waited,
                });
            }
            if self.0.may_open() {
                return self.open_one(connector, clock, has_waited).await;
            }
            has_waited = true;
            let _waiting = WaiterCount::new(&self.0.waiting);
            let wait = tokio::time::timeout_at(deadline.into(), self.0.room.notified());
            if wait.await.is_err() {
                let failure = Failure::new(Phase::Blocked, FailureKind::Timeout)
                    .because("no connection had room for one more stream");
                return Err((failure, Phases::default()));
            }
        }
    }

    async fn open_one(
        &self,
        connector: &Connector,
        clock: &impl Clock,
        has_waited: bool,
    ) -> Result<Slot, (Failure, Phases)> {
        let opening = Opening::new(&self.0);
        let connecting = Box::pin(connector.connect(&self.0.endpoint, clock));
        let connection = connecting
            .await
            .map_err(|error| (error.failure, error.phases))?;
        let phases = connection.phases;
        require_http2(&connection, &self.0.endpoint).map_err(|failure| (failure, phases))?;
        let lane = Lane::new(connection, self.0.settings, clock.now());
        let lane = Rc::new(RefCell::new(lane));
        self.0.lanes.borrow_mut().push(Rc::clone(&lane));
        drop(opening);
        Ok(Slot {
            lane,
            phases,
            reused: false,
            has_waited,
        })
    }

    /// Makes one exchange at `place`.
    ///
    /// - `observer`: is away while the exchange is under way, and back when this is done or dropped.
    pub(super) async fn exchange(
        &self,
        place: &Slot,
        request: &h2::EncodedRequest,
        begun: Instant,
        deadline: Instant,
        observer: &mut Observer,
    ) -> Result<Completed, Incomplete> {
        let token = {
            let mut lane = place.lane.borrow_mut();
            let token = lane.checks.next();
            if let Err(error) = lane.http.begin(request, token, begun, deadline) {
                lane.checks.free.push(token);
                return Err(Incomplete::unsent(&error, begun));
            }
            lane.has_carried = true;
            lane.checks.begin(token, mem::take(observer));
            token
        };
        self.0.wake_driver();
        let in_flight = InFlight {
            shared: &self.0,
            lane: &place.lane,
            token,
            observer,
        };
        poll_fn(|context| {
            let mut lane = in_flight.lane.borrow_mut();
            lane.checks.poll(token, context)
        })
        .await
    }
}

impl fmt::Debug for SharedConnections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedConnections")
            .field("endpoint", &self.0.endpoint)
            .field("most", &self.0.most)
            .field("open", &self.open())
            .finish_non_exhaustive()
    }
}

impl Slot {
    /// Whether no time went by on the way to it.
    pub(super) fn is_immediate(&self) -> bool {
        self.reused && !self.has_waited
    }

    /// The other end, where it has an IP address.
    pub(super) fn peer(&self) -> Option<SocketAddr> {
        self.lane.borrow().peer
    }

    /// The TLS session.
    pub(super) fn tls(&self) -> Option<TlsSession> {
        self.lane.borrow().tls.clone()
    }
}

impl ConnectionSet {
    /// The connection with the fewest exchanges under way, of those that can carry one more.
    fn lane_with_room(&self) -> Option<Rc<RefCell<Lane>>> {
        let lanes = self.lanes.borrow();
        let room = lanes
            .iter()
            .filter(|lane| lane.borrow().http.capacity() > 0);
        room.min_by_key(|lane| lane.borrow().http.in_flight())
            .cloned()
    }

    fn may_open(&self) -> bool {
        let lanes = self.lanes.borrow();
        let live = lanes.iter().filter(|lane| !lane.borrow().http.is_retired());
        live.count() + self.opening.get() < self.most
    }

    fn wake_driver(&self) {
        if let Some(driver) = &*self.driver.borrow() {
            driver.wake_by_ref();
        }
    }

    fn drive_all(
        &self,
        first: usize,
        context: &mut Context<'_>,
        buffer: &ReadBuffer,
        clock: &impl Clock,
    ) {
        {
            let mut driver = self.driver.borrow_mut();
            if !driver
                .as_ref()
                .is_some_and(|waker| waker.will_wake(context.waker()))
            {
                *driver = Some(context.waker().clone());
            }
        }
        let mut lanes = self.lanes.borrow_mut();
        let count = lanes.len();
        let mut room = 0;
        for offset in 0..count {
            let lane = &mut *lanes[(first % count + offset) % count].borrow_mut();
            while let Poll::Ready(Driven::Progress) =
                lane.http
                    .poll_drive(context, buffer, &mut lane.checks, clock)
            {}
            room += lane.http.capacity();
        }
        // A connection that is over has reported to all its exchanges; those that have yet to see it hold it.
        lanes.retain(|lane| {
            let lane = lane.borrow();
            !lane.http.is_retired() || lane.http.in_flight() > 0
        });
        let live = lanes.iter().filter(|lane| !lane.borrow().http.is_retired());
        room += self.most.saturating_sub(live.count() + self.opening.get());
        for _ in 0..room.min(self.waiting.get()) {
            self.room.notify_one();
        }
    }
}

impl Lane {
    fn new(connection: Connection, settings: h2::Settings, now: Instant) -> Self {
        Self {
            peer: connection.peer,
            tls: connection.stream.tls_session(),
            http: Http2::new(connection.stream, settings, now),
            checks: Checks::default(),
            has_carried: false,
        }
    }
}

impl Checks {
    /// A token that no exchange under way has.
    fn next(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.all.push(CheckState::default());
            u32::try_from(self.all.len() - 1).expect("a connection has less than 2^31 streams")
        })
    }

    fn begin(&mut self, token: u32, observer: Observer) {
        self.want_fields += usize::from(observer.needs_fields());
        self.all[token as usize].observer = Some(observer);
    }

    fn poll(
        &mut self,
        token: u32,
        context: &mut Context<'_>,
    ) -> Poll<Result<Completed, Incomplete>> {
        let state = &mut self.all[token as usize];
        if let Some(outcome) = state.outcome.take() {
            return Poll::Ready(outcome);
        }
        match &mut state.waker {
            Some(waker) => waker.clone_from(context.waker()),
            none => *none = Some(context.waker().clone()),
        }
        Poll::Pending
    }

    /// Gives the check up; returns its observer.
    fn leave(&mut self, token: u32) -> Option<Observer> {
        let observer = mem::take(&mut self.all[token as usize]).observer;
        let wants = observer.as_ref().is_some_and(Observer::needs_fields);
        self.want_fields -= usize::from(wants);
        self.free.push(token);
        observer
    }

    fn finish(&mut self, token: u32, outcome: Result<Completed, Incomplete>) {
        let state = &mut self.all[token as usize];
        state.outcome = Some(outcome);
        if let Some(waker) = state.waker.take() {
            waker.wake();
        }
    }
}

impl Responses for Checks {
    fn wants_fields(&self) -> bool {
        self.want_fields > 0
    }

    fn head(&mut self, token: u32, head: &h2::ResponseHead<'_>) {
        if let Some(observer) = &mut self.all[token as usize].observer {
            observer.http2_head(head);
        }
    }

    fn content(&mut self, token: u32, piece: &[u8]) {
        if let Some(observer) = &mut self.all[token as usize].observer {
            observer.content(piece);
        }
    }

    fn completed(&mut self, token: u32, completed: Completed) {
        self.finish(token, Ok(completed));
    }

    fn failed(&mut self, token: u32, incomplete: Incomplete) {
        self.finish(token, Err(incomplete));
    }
}

/// A check that waits for its exchange; dropped before the end, it gives the exchange up.
struct InFlight<'a> {
    shared: &'a ConnectionSet,
    lane: &'a RefCell<Lane>,
    token: u32,
    observer: &'a mut Observer,
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        let mut lane = self.lane.borrow_mut();
        if lane.http.cancel(self.token) {
            self.shared.wake_driver();
        }
        if let Some(observer) = lane.checks.leave(self.token) {
            *self.observer = observer;
        }
    }
}

/// Counts somebody for as long as it lives.
struct WaiterCount<'a>(&'a Cell<usize>);

impl<'a> WaiterCount<'a> {
    fn new(count: &'a Cell<usize>) -> Self {
        count.set(count.get() + 1);
        Self(count)
    }
}

impl Drop for WaiterCount<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

/// A connection that is being opened; whatever becomes of it, the driver looks who can go on.
struct Opening<'a> {
    shared: &'a ConnectionSet,
    _counted: WaiterCount<'a>,
}

impl<'a> Opening<'a> {
    fn new(shared: &'a ConnectionSet) -> Self {
        Self {
            shared,
            _counted: WaiterCount::new(&shared.opening),
        }
    }
}

impl Drop for Opening<'_> {
    fn drop(&mut self) {
        self.shared.wake_driver();
    }
}
