//! Connections of one worker, kept by where they lead.

mod options;

mod places;

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Instant;

use plimsoll_model::{Clock, Failure, Secret};
use plimsoll_wire::{SystemClock, h2};

use super::http1::Http1Connection;
use super::http2::Http2Connection;
use super::http3::{QuicConnection, QuicPlace};
use super::lease::Lease;
use crate::{
    ConnectFailure, Connection, Connector, Endpoint, Http3Connection, ReadBuffer, RequestForm,
};

pub use self::options::{PoolOptions, Speaks};

pub(super) use self::places::ConnectionGuard;

use self::places::{Attempt, Waiter, WaiterGuard};

/// The connections of one worker; clones share them.
#[derive(Clone)]
pub struct Pool {
    core: Rc<Core>,
    destinations: Rc<RefCell<HashMap<String, Rc<Destination>>>>,
}

/// State that all destinations of a pool share.
struct Core {
    connector: Connector,
    options: PoolOptions,
    buffer: ReadBuffer,
    clock: Rc<dyn Clock>,
}

/// An endpoint and the open connections to it.
pub struct Destination {
    core: Rc<Core>,
    endpoint: Endpoint,
    /// For an HTTP proxy without a tunnel: what stands before the path, and the credentials of the proxy.
    absolute: Option<(String, Option<Secret>)>,
    /// The last one that became idle is used first.
    #[expect(
        clippy::vec_box,
        reason = "connections move between here and their exchanges"
    )]
    idle: RefCell<Vec<Box<Http1Connection>>>,
    multiplexed: RefCell<Vec<Rc<Http2Connection>>>,
    quic: RefCell<Vec<Rc<QuicConnection>>>,
    /// Connections that are open or being opened.
    open: Cell<usize>,
    connecting: Cell<usize>,
    /// Whether the server speaks a multiplexed protocol, once known.
    is_multiplexed: Cell<Option<bool>>,
    /// Callers that wait, in the order in which they came; each stays until it is served, fails or gives up.
    waiters: RefCell<VecDeque<Rc<Waiter>>>,
    /// How many of them may look for a connection that has become free.
    calls: Cell<usize>,
}

/// The state of a destination, for metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolStatus {
    /// Connections that are open or being opened.
    pub open: usize,
    /// HTTP/1 connections without an exchange.
    pub idle: usize,
    /// Callers that wait for a connection.
    pub waiting: usize,
}

impl Pool {
    /// A pool without connections.
    pub fn new(connector: Connector, options: PoolOptions) -> Self {
        Self::with(connector, options, ReadBuffer::new(), Rc::new(SystemClock))
    }

    /// The same with a buffer that it shares with others of its worker, and a clock.
    pub fn with(
        connector: Connector,
        options: PoolOptions,
        buffer: ReadBuffer,
        clock: Rc<dyn Clock>,
    ) -> Self {
        Self {
            core: Rc::new(Core {
                connector,
                options,
                buffer,
                clock,
            }),
            destinations: Rc::default(),
        }
    }

    /// A pool of its own connections that opens them as this one does: with the same connector, options, buffer and
    /// clock, and the TLS sessions and addresses that it has learned.
    #[must_use]
    pub fn sibling(&self) -> Self {
        Self {
            core: Rc::clone(&self.core),
            destinations: Rc::default(),
        }
    }

    /// The destination for requests to `endpoint`; its path and credentials do not matter.
    pub fn destination(&self, endpoint: &Endpoint) -> Rc<Destination> {
        let mut key = format!("{}://{}", endpoint.scheme(), endpoint.authority());
        if let Some(pin) = endpoint.pinned() {
            // A blank is in no authority.
            key = format!("{key} {pin}");
        }
        if let Some(destination) = self.destinations.borrow().get(&key) {
            return Rc::clone(destination);
        }
        self.make_room();
        let destination = Rc::new(Destination::new(Rc::clone(&self.core), endpoint));
        let mut destinations = self.destinations.borrow_mut();
        destinations.insert(key, Rc::clone(&destination));
        destination
    }

    /// Number of destinations that it keeps.
    pub fn destinations(&self) -> usize {
        self.destinations.borrow().len()
    }

    /// Forgets destinations that nobody uses once there are as many as may be, with their idle connections if need be:
    /// callers that follow links or templates to ever new hosts need not sweep.
    fn make_room(&self) {
        let most = self.core.options.destinations;
        if self.destinations.borrow().len() < most {
            return;
        }
        self.sweep();
        let mut destinations = self.destinations.borrow_mut();
        if destinations.len() >= most {
            destinations.retain(|_, destination| Rc::strong_count(destination) > 1);
        }
    }

    /// Waits for a connection to `endpoint`.
    pub async fn acquire(&self, endpoint: &Endpoint) -> Result<Lease, ConnectFailure> {
        self.destination(endpoint).acquire().await
    }

    /// The addresses of an endpoint that may be connected to ([`Connector::addresses`]).
    pub async fn addresses(&self, endpoint: &Endpoint) -> Result<Vec<SocketAddr>, Failure> {
        self.core.connector.addresses(endpoint).await
    }

    /// Closes every HTTP/3 connection, with the exchanges on it ([`Connector::close_http3`]).
    pub async fn close_http3(&self) {
        self.core.connector.close_http3().await;
    }

    /// Closes connections that were idle for too long or that the server has closed, and forgets destinations without
    /// connections that no caller keeps. Worth a call every few seconds: without one, idle connections are looked at
    /// only when the next request needs them, and destinations when [`PoolOptions::destinations`] is reached.
    pub fn sweep(&self) {
        self.destinations.borrow_mut().retain(|_, destination| {
            destination.sweep();
            Rc::strong_count(destination) > 1 || destination.open.get() > 0
        });
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool")
            .field("options", &self.core.options)
            .finish_non_exhaustive()
    }
}

impl Destination {
    fn new(core: Rc<Core>, endpoint: &Endpoint) -> Self {
        let absolute = match core.connector.plan().request_form(endpoint) {
            RequestForm::Origin => None,
            RequestForm::Absolute {
                proxy_authorization,
            } => Some((
                format!("{}://{}", endpoint.scheme(), endpoint.authority()),
                proxy_authorization,
            )),
        };
        Self {
            is_multiplexed: Cell::new(match core.options.speaks {
                Speaks::Http1 | Speaks::FastCgi | Speaks::Uwsgi => Some(false),
                Speaks::Http2 | Speaks::Http3 => Some(true),
                Speaks::Negotiated => (!endpoint.is_tls()).then_some(false),
            }),
            core,
            endpoint: endpoint.clone(),
            absolute,
            idle: RefCell::default(),
            multiplexed: RefCell::default(),
            quic: RefCell::default(),
            open: Cell::new(0),
            connecting: Cell::new(0),
            waiters: RefCell::default(),
            calls: Cell::new(0),
        }
    }

    /// The endpoint.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// The connections now.
    pub fn status(&self) -> PoolStatus {
        PoolStatus {
            open: self.open.get(),
            idle: self.idle.borrow().len(),
            waiting: self.waiters.borrow().len(),
        }
    }

    /// Waits for a connection: an idle one, a free stream, a new one, or one that another caller gives back.
    ///
    /// Fails in the phase blocked, with `resource-limit`, if too many callers wait.
    pub async fn acquire(self: &Rc<Self>) -> Result<Lease, ConnectFailure> {
        let begun = self.now();
        if let Some(lease) = self.acquire_now(begun) {
            return Ok(lease);
        }
        Box::pin(self.acquire_later(begun)).await
    }

    /// An idle connection or a free stream, if there is one and no caller waits for it.
    pub fn acquire_now(self: &Rc<Self>, now: Instant) -> Option<Lease> {
        if self.waiters.borrow().is_empty() {
            return self.lease_open(now);
        }
        None
    }

    /// Waits for an HTTP/1 connection that has not carried an exchange, so that the server cannot be closing it: for
    /// requests that may not be sent twice, and for the second attempt of those that may. HTTP/2 and HTTP/3 servers
    /// announce that they close connections, so theirs are shared all the same.
    pub async fn acquire_unused(self: &Rc<Self>) -> Result<Lease, ConnectFailure> {
        if self.is_multiplexed.get() != Some(false) || !self.waiters.borrow().is_empty() {
            return self.acquire().await;
        }
        let begun = self.now();
        // An idle connection makes room for the new one, so that idle ones do not gather where all are new.
        let oldest = {
            let mut idle = self.idle.borrow_mut();
            (!idle.is_empty()).then(|| idle.remove(0))
        };
        if oldest.is_some() {
            self.open.set(self.open.get() - 1);
        } else if self.open.get() >= self.core.options.connections {
            return Box::pin(self.acquire_later(begun)).await;
        }
        match Box::pin(self.connect()).await? {
            Some(lease) => Ok(lease),
            None => Box::pin(self.acquire_later(begun)).await,
        }
    }

    async fn acquire_later(self: &Rc<Self>, begun: Instant) -> Result<Lease, ConnectFailure> {
        // Callers that came earlier go first.
        let mut place = if !self.waiters.borrow().is_empty() {
            WaiterGuard::last(self)?
        } else if let Some(lease) = self.lease_open(self.now()) {
            return Ok(lease);
        } else if self.may_connect() {
            match self.connect().await? {
                Some(lease) => return Ok(lease),
                None => WaiterGuard::first(self),
            }
        } else {
            WaiterGuard::last(self)?
        };
        loop {
            place.called().await;
            let now = self.now();
            let mut lease = self.lease_open(now);
            if lease.is_none() && self.may_connect() {
                // The next one goes on while the connection is opened.
                drop(place);
                lease = self.connect().await?;
                place = WaiterGuard::first(self);
            }
            if let Some(mut lease) = lease {
                lease.blocked(Some(now.saturating_duration_since(begun)));
                return Ok(lease);
            }
        }
    }

    /// A connection that is open and free.
    fn lease_open(self: &Rc<Self>, now: Instant) -> Option<Lease> {
        let options = &self.core.options;
        loop {
            let Some(mut connection) = self.idle.borrow_mut().pop() else {
                break;
            };
            let is_young = now < connection.use_until;
            let is_recent =
                now.saturating_duration_since(connection.idle_since) < options.idle_timeout;
            if is_young && is_recent && connection.is_quiet() {
                return Some(Lease::http1(self.place(connection), now));
            }
            self.leave();
        }
        if options.speaks == Speaks::Http3 {
            self.retire_quic(|connection| {
                connection.is_retired()
                    || connection.is_old(now)
                    || connection.has_carried_all(options.exchanges)
            });
            let quic = self.quic.borrow();
            let free = quic.iter().find(|connection| connection.is_free())?;
            let place = QuicPlace::new(Rc::clone(free), Rc::clone(self));
            return Some(Lease::http3(place, now));
        }
        let multiplexed = self.multiplexed.borrow();
        let is_old = |it: &&Rc<Http2Connection>| it.is_old(now);
        if let Some(old) = multiplexed.iter().find(is_old).cloned() {
            drop(multiplexed);
            old.close();
            self.retire(&old);
            return self.lease_open(now);
        }
        let is_fresh = |it: &&Rc<Http2Connection>| !it.is_unused_since(options.probe_after, now);
        let mut free = multiplexed.iter().filter(|connection| connection.is_free());
        let Some(free) = free.clone().find(is_fresh) else {
            // The answer calls a caller that waits.
            free.next()?.probe(options.probe_timeout);
            return None;
        };
        Some(Lease::http2(Rc::clone(free), Rc::clone(self), now))
    }

    fn may_connect(&self) -> bool {
        // The streams of a new HTTP/2 connection may be enough for all; how many it has is known with its SETTINGS.
        let is_one_enough = self.is_multiplexed.get() != Some(false);
        let is_settling = || {
            let multiplexed = self.multiplexed.borrow();
            let is_unknown = |it: &Rc<Http2Connection>| !it.is_established() || it.is_probing();
            self.connecting.get() > 0 || multiplexed.iter().any(is_unknown)
        };
        self.open.get() < self.core.options.connections && !(is_one_enough && is_settling())
    }

    /// Opens a connection; `None` if others took all its streams meanwhile.
    async fn connect(self: &Rc<Self>) -> Result<Option<Lease>, ConnectFailure> {
        let attempt = Attempt::begin(self);
        let clock = SharedClock(Rc::clone(&self.core.clock));
        if self.core.options.speaks == Speaks::Http3 {
            return self.connect_quic(attempt, &clock).await.map(Some);
        }
        let connection = self.core.connector.connect(&self.endpoint, &clock).await?;
        let is_multiplexed = self.judge(&connection)?;
        let now = self.now();
        let phases = connection.phases;
        let use_until = self.core.options.use_until(now, connection.valid_until);
        attempt.succeed();
        let previous = self.is_multiplexed.replace(Some(is_multiplexed));
        let lease = if is_multiplexed {
            let opened = Http2Connection::open(connection, self, now, use_until);
            self.multiplexed.borrow_mut().push(Rc::clone(&opened));
            opened
                .is_free()
                .then(|| Lease::http2(opened, Rc::clone(self), now))
        } else {
            let limits = self.core.options.limits;
            let connection = Http1Connection::new(connection, limits, now, use_until);
            Some(Lease::http1(self.place(Box::new(connection)), now))
        };
        if previous.is_none() {
            self.call_all();
        }
        Ok(lease.map(|lease| lease.connected(phases)))
    }

    async fn connect_quic(
        self: &Rc<Self>,
        attempt: Attempt<'_>,
        clock: &SharedClock,
    ) -> Result<Lease, ConnectFailure> {
        let options = &self.core.options;
        let connector = &self.core.connector;
        let connecting = connector.connect_http3(&self.endpoint, options.limits, clock);
        let Http3Connection {
            http,
            valid_until,
            phases,
        } = connecting.await?;
        let now = self.now();
        let use_until = options.use_until(now, valid_until);
        let connection = Rc::new(QuicConnection::new(http, options.streams, now, use_until));
        attempt.succeed();
        self.quic.borrow_mut().push(Rc::clone(&connection));
        let place = QuicPlace::new(connection, Rc::clone(self));
        // The streams of the connection may be enough for those that waited for it.
        self.call_for(options.streams as usize);
        Ok(Lease::http3(place, now).connected(phases))
    }

    /// Takes out HTTP/3 connections, which close when their last exchange has ended.
    fn retire_quic(&self, is_over: impl Fn(&QuicConnection) -> bool) {
        let before = self.quic.borrow().len();
        self.quic
            .borrow_mut()
            .retain(|connection| !is_over(connection));
        let after = self.quic.borrow().len();
        for _ in after..before {
            self.leave();
        }
    }

    /// Whether `connection` speaks HTTP/2. Fails if it should and does not.
    fn judge(&self, connection: &Connection) -> Result<bool, ConnectFailure> {
        match self.core.options.speaks {
            Speaks::Http1 | Speaks::FastCgi | Speaks::Uwsgi => Ok(false),
            Speaks::Http2 => match crate::require_http2(connection, &self.endpoint) {
                Ok(()) => Ok(true),
                Err(failure) => Err(ConnectFailure {
                    failure,
                    phases: connection.phases,
                }),
            },
            Speaks::Negotiated | Speaks::Http3 => Ok(connection.alpn.as_deref() == Some(b"h2")),
        }
    }

    /// A connection may be free: the caller that waits longest is called.
    pub(super) fn call(&self) {
        self.call_for(1);
    }

    fn call_all(&self) {
        self.call_for(usize::MAX);
    }

    /// The same for several connections, or streams of one.
    ///
    /// Callers are called one after the other, each by the one before it when that has been served or gives up: so none
    /// overtakes another.
    pub(super) fn call_for(&self, free: usize) {
        let waiters = self.waiters.borrow();
        let calls = self.calls.get().saturating_add(free).min(waiters.len());
        self.calls.set(calls);
        if calls > 0
            && let Some(first) = waiters.front()
        {
            first.wake();
        }
    }

    /// Takes an HTTP/2 connection out that accepts no more exchanges; it counts no more.
    pub(super) fn retire(&self, connection: &Rc<Http2Connection>) {
        let mut multiplexed = self.multiplexed.borrow_mut();
        let position = multiplexed
            .iter()
            .position(|other| Rc::ptr_eq(other, connection));
        let Some(position) = position else { return };
        multiplexed.remove(position);
        drop(multiplexed);
        self.leave();
    }

    /// A connection is closed.
    pub(super) fn leave(&self) {
        self.open.set(self.open.get() - 1);
        self.call();
    }

    fn place(self: &Rc<Self>, connection: Box<Http1Connection>) -> ConnectionGuard {
        ConnectionGuard::new(Rc::clone(self), connection)
    }

    /// Closes connections that were idle for too long or that the server has closed.
    pub fn sweep(&self) {
        let now = self.now();
        let options = &self.core.options;
        let mut closed = 0;
        self.idle.borrow_mut().retain_mut(|connection| {
            let is_kept = now.saturating_duration_since(connection.idle_since)
                < options.idle_timeout
                && connection.is_quiet();
            closed += usize::from(!is_kept);
            is_kept
        });
        for _ in 0..closed {
            self.leave();
        }
        self.retire_quic(|connection| {
            connection.is_retired() || connection.is_unused_since(options.idle_timeout, now)
        });
        let multiplexed: Vec<_> = self.multiplexed.borrow().clone();
        for connection in multiplexed {
            if connection.is_unused_since(options.idle_timeout, now) {
                connection.close();
                self.retire(&connection);
            }
        }
    }

    /// The prefix of the path for an HTTP proxy.
    pub(super) fn absolute_prefix(&self) -> Option<&str> {
        self.absolute.as_ref().map(|(prefix, _)| prefix.as_str())
    }

    pub(super) fn proxy_authorization(&self) -> Option<&str> {
        let (_, authorization) = self.absolute.as_ref()?;
        authorization.as_ref().map(Secret::expose)
    }

    pub(super) fn now(&self) -> Instant {
        self.core.clock.now()
    }

    pub(super) fn clock(&self) -> SharedClock {
        SharedClock(Rc::clone(&self.core.clock))
    }

    pub(super) fn buffer(&self) -> &ReadBuffer {
        &self.core.buffer
    }

    pub(super) fn options(&self) -> &PoolOptions {
        &self.core.options
    }

    /// Settings of HTTP/2 connections.
    pub(super) fn http2_settings(&self) -> h2::Settings {
        let options = &self.core.options;
        let limits = options.limits;
        let defaults = h2::Settings::default();
        h2::Settings {
            streams: options.streams,
            stream_window: options.stream_window,
            limits: h2::Limits {
                headers: limits.headers,
                header_block_bytes: limits.head_bytes,
                header_list_bytes: limits.head_bytes,
                body_bytes: limits.body_bytes,
                interim: limits.interim,
                ..defaults.limits
            },
            ..defaults
        }
    }
}

impl fmt::Debug for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Destination")
            .field("endpoint", &self.endpoint)
            .field("status", &self.status())
            .finish_non_exhaustive()
    }
}

/// Connections without a pool are of no use to new exchanges; those under way go on.
impl Drop for Destination {
    fn drop(&mut self) {
        for connection in self.multiplexed.get_mut() {
            connection.close();
        }
    }
}

/// A clock that is shared, for functions that are generic over clocks.
#[derive(Clone)]
pub(super) struct SharedClock(Rc<dyn Clock>);

impl Clock for SharedClock {
    fn now(&self) -> Instant {
        self.0.now()
    }

    fn wall(&self) -> std::time::SystemTime {
        self.0.wall()
    }
}
