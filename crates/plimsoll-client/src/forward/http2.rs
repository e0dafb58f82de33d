//! Exchanges on shared HTTP/2 connections.
//!
//! A task drives each connection: one read takes the frames of all its exchanges, and one write sends what they have
//! gathered. An exchange takes what came for it, and returns credit for that.

mod exchange;

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::rc::{Rc, Weak};
use std::task::{Context, Poll, Waker, ready};
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, StatusCode, Version};
use plimsoll_model::{Clock as _, Failure};
use plimsoll_wire::h2::hpack;
use plimsoll_wire::h2::{self, ErrorCode};
use plimsoll_wire::http::Nominated;

use super::pool::{Destination, SharedClock};
use super::response_head::{Fields, ResponseHead};
use crate::{Completed, Connection, Driven, Http2, Incomplete, ReadBuffer, Responses, Stream};

pub(super) use self::exchange::Http2Exchange;

/// A connection that carries many exchanges.
pub(super) struct Http2Connection {
    state: RefCell<State>,
    driver: RefCell<Option<Waker>>,
    destination: Weak<Destination>,
    peer: Option<SocketAddr>,
    /// Leases whose exchange has not begun.
    reserved: Cell<usize>,
    /// When it is old: names should be looked up again.
    use_until: Instant,
    /// When the last exchange ended.
    idle_since: Cell<Instant>,
    /// Exchanges that it may still begin before it is replaced.
    left: Cell<u64>,
    is_used: Cell<bool>,
    is_closing: Cell<bool>,
    /// Leases that wait for the server's SETTINGS.
    settling: RefCell<Vec<Waker>>,
}

struct State {
    http: Http2<Stream>,
    slots: Slots,
}

/// Events for exchanges, by their tokens.
#[derive(Default)]
struct Slots {
    taken: Vec<Slot>,
    free: Vec<u32>,
    /// Those that wait for room to send; each once.
    blocked: Vec<u32>,
}

#[derive(Default)]
struct Slot {
    interim: VecDeque<ResponseHead>,
    head: Option<ResponseHead>,
    content_length: Option<u64>,
    /// Content that was not taken yet: no more than the window of the stream.
    content: BytesMut,
    trailers: Option<HeaderMap>,
    outcome: Option<Result<Completed, Incomplete>>,
    reader: Option<Waker>,
    sender: Option<Waker>,
}

impl Http2Connection {
    /// Begins HTTP/2 on a stream and spawns the task that drives it.
    pub(super) fn open(
        connection: Connection,
        destination: &Rc<Destination>,
        now: Instant,
        use_until: Instant,
    ) -> Rc<Self> {
        let peer = connection.peer;
        let http = Http2::new(connection.stream, destination.http2_settings(), now);
        let connection = Rc::new(Self {
            state: RefCell::new(State {
                http,
                slots: Slots::default(),
            }),
            driver: RefCell::default(),
            destination: Rc::downgrade(destination),
            peer,
            reserved: Cell::new(0),
            use_until,
            idle_since: Cell::new(now),
            left: Cell::new(destination.options().exchanges),
            is_used: Cell::new(false),
            is_closing: Cell::new(false),
            settling: RefCell::default(),
        });
        let driven = Rc::clone(&connection);
        let (buffer, clock) = (destination.buffer().clone(), destination.clock());
        tokio::task::spawn_local(async move {
            poll_fn(|context| driven.poll_drive(context, &buffer, &clock)).await;
        });
        connection
    }

    /// Whether another exchange can begin.
    pub(super) fn is_free(&self) -> bool {
        let (reserved, http) = (self.reserved.get(), &self.state.borrow().http);
        !self.is_closing.get()
            && self.left.get() > reserved as u64
            && !http.is_probing()
            && http.capacity() > reserved
    }

    /// Whether the server has not answered the [probe](Self::probe) yet.
    pub(super) fn is_probing(&self) -> bool {
        self.state.borrow().http.is_probing()
    }

    /// Sends a PING, and begins no exchange until it is answered. Without an answer within `timeout` the connection is
    /// given up: a router on the way may have forgotten it, and a request would wait for its timeout.
    pub(super) fn probe(self: &Rc<Self>, timeout: Duration) {
        self.state.borrow_mut().http.probe();
        self.wake_driver();
        let connection = Rc::downgrade(self);
        tokio::task::spawn_local(async move {
            tokio::time::sleep(timeout).await;
            let Some(connection) = connection.upgrade() else {
                return;
            };
            if !connection.is_probing() {
                return;
            }
            connection.close();
            if let Some(destination) = connection.destination.upgrade() {
                destination.retire(&connection);
            }
        });
    }

    /// Whether the server's SETTINGS came.
    pub(super) fn is_established(&self) -> bool {
        self.state.borrow().http.is_established()
    }

    /// Ready once the server's SETTINGS came, or never will.
    pub(super) fn poll_established(&self, context: &mut Context<'_>) -> Poll<()> {
        let http = &self.state.borrow().http;
        if http.is_established() || http.is_retired() {
            return Poll::Ready(());
        }
        let mut settling = self.settling.borrow_mut();
        if !settling
            .iter()
            .any(|waker| waker.will_wake(context.waker()))
        {
            settling.push(context.waker().clone());
        }
        Poll::Pending
    }

    /// The other end; a unix socket has none.
    pub(super) fn peer(&self) -> Option<SocketAddr> {
        self.peer
    }

    pub(super) fn is_used(&self) -> bool {
        self.is_used.get()
    }

    /// Whether it was opened so long ago that names should be looked up again.
    pub(super) fn is_old(&self, now: Instant) -> bool {
        now >= self.use_until
    }

    /// Whether the last exchange ended so long ago.
    pub(super) fn is_unused_since(&self, timeout: Duration, now: Instant) -> bool {
        self.reserved.get() == 0
            && self.state.borrow().http.in_flight() == 0
            && now.saturating_duration_since(self.idle_since.get()) >= timeout
    }

    /// Begins no more exchanges; the connection is closed when those under way have ended.
    pub(super) fn close(&self) {
        self.is_closing.set(true);
        self.state.borrow_mut().http.close();
        self.wake_driver();
    }

    pub(super) fn with_stream<T>(&self, read: impl FnOnce(&Stream) -> Option<T>) -> Option<T> {
        read(self.state.borrow().http.stream_ref())
    }

    fn wake_driver(&self) {
        if let Some(driver) = &*self.driver.borrow() {
            driver.wake_by_ref();
        }
    }

    fn poll_drive(
        self: &Rc<Self>,
        context: &mut Context<'_>,
        buffer: &ReadBuffer,
        clock: &SharedClock,
    ) -> Poll<()> {
        {
            let mut driver = self.driver.borrow_mut();
            if !driver
                .as_ref()
                .is_some_and(|driver| driver.will_wake(context.waker()))
            {
                *driver = Some(context.waker().clone());
            }
        }
        loop {
            let state = &mut *self.state.borrow_mut();
            let was_probing = state.http.is_probing();
            let driven = state
                .http
                .poll_drive(context, buffer, &mut state.slots, clock);
            state.wake_senders();
            let is_over = driven == Poll::Ready(Driven::Over)
                || (state.http.is_retired()
                    && state.http.in_flight() == 0
                    && !state.http.wants_write());
            let capacity = state.http.capacity();
            let is_retired = is_over || state.http.is_retired();
            if was_probing && !state.http.is_probing() {
                self.idle_since.set(clock.now());
            }
            if is_retired || state.http.is_established() {
                for waker in self.settling.borrow_mut().drain(..) {
                    waker.wake();
                }
            }
            self.report(is_retired, capacity);
            if is_over {
                return Poll::Ready(());
            }
            ready!(driven);
        }
    }

    /// Reports the state of the connection to its pool.
    fn report(self: &Rc<Self>, is_retired: bool, capacity: usize) {
        let Some(destination) = self.destination.upgrade() else {
            return;
        };
        if is_retired {
            // Exchanges under way go on, and a new connection may take its place.
            destination.retire(self);
        } else {
            destination.call_for(capacity.saturating_sub(self.reserved.get()));
        }
    }

    /// Ends an exchange in whatever state it is.
    fn release(&self, token: u32, code: ErrorCode) {
        let state = &mut *self.state.borrow_mut();
        if let Some(Ok(completed)) = &state.slots.slot(token).outcome {
            self.idle_since.set(completed.done);
        }
        state.http.reset(token, code);
        *state.slots.slot(token) = Slot::default();
        state.slots.blocked.retain(|blocked| *blocked != token);
        state.slots.free.push(token);
        let capacity = state.http.capacity();
        let is_retired = state.http.is_retired();
        if state.http.wants_write() || is_retired {
            self.wake_driver();
        }
        if let Some(destination) = self.destination.upgrade()
            && !is_retired
        {
            destination.call_for(capacity.saturating_sub(self.reserved.get()));
        }
    }

    /// Takes content of `token`, and returns credit for it.
    fn take_content(&self, token: u32) -> Option<Bytes> {
        let state = &mut *self.state.borrow_mut();
        let content = &mut state.slots.slot(token).content;
        if content.is_empty() {
            return None;
        }
        let bytes = content.split().freeze();
        state.http.consume(token, bytes.len());
        if state.http.wants_write() {
            self.wake_driver();
        }
        Some(bytes)
    }

    /// For tunnels: the next bytes, `None` at the end.
    pub(super) fn poll_bytes(
        &self,
        token: u32,
        context: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, Failure>> {
        if let Some(bytes) = self.take_content(token) {
            return Poll::Ready(Ok(Some(bytes)));
        }
        let mut state = self.state.borrow_mut();
        let slot = state.slots.slot(token);
        match &slot.outcome {
            Some(Ok(_)) => Poll::Ready(Ok(None)),
            Some(Err(incomplete)) => Poll::Ready(Err(incomplete.failure.clone())),
            None => {
                register(&mut slot.reader, context);
                Poll::Pending
            }
        }
    }

    /// Sends content as the windows allow; returns how many bytes of it were taken. Fails if the stream is over.
    pub(super) fn poll_send(
        &self,
        token: u32,
        bytes: &[u8],
        is_last: bool,
        context: &mut Context<'_>,
    ) -> Poll<Result<usize, Failure>> {
        let state = &mut *self.state.borrow_mut();
        let slot = state.slots.slot(token);
        if let Some(Err(incomplete)) = &slot.outcome {
            return Poll::Ready(Err(incomplete.failure.clone()));
        }
        let count = state.http.send_data(token, bytes, is_last);
        if count < bytes.len() {
            if slot.sender.is_none() {
                state.slots.blocked.push(token);
            }
            register(&mut state.slots.slot(token).sender, context);
        }
        if count > 0 || bytes.is_empty() {
            self.wake_driver();
            return Poll::Ready(Ok(count));
        }
        Poll::Pending
    }

    pub(super) fn end_tunnel(&self, token: u32) {
        self.release(token, ErrorCode::CANCEL);
    }
}

impl State {
    /// Wakes the exchanges that wait for room and have some.
    fn wake_senders(&mut self) {
        let Self { http, slots } = self;
        let Slots { taken, blocked, .. } = slots;
        blocked.retain(|token| {
            let slot = &mut taken[*token as usize];
            let is_over = slot.outcome.as_ref().is_some_and(Result::is_err);
            if slot.sender.is_some() && !is_over && http.send_room(*token) == 0 {
                return true;
            }
            if let Some(sender) = slot.sender.take() {
                sender.wake();
            }
            false
        });
    }
}

impl Slots {
    fn enter(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.taken.push(Slot::default());
            u32::try_from(self.taken.len() - 1).expect("connections have fewer streams")
        })
    }

    fn slot(&mut self, token: u32) -> &mut Slot {
        &mut self.taken[token as usize]
    }
}

impl Slot {
    fn wake_reader(&mut self) {
        if let Some(reader) = self.reader.take() {
            reader.wake();
        }
    }
}

impl Responses for Slots {
    fn wants_fields(&self) -> bool {
        true
    }

    fn interim(&mut self, token: u32, status: u16, fields: &hpack::Fields) {
        let slot = self.slot(token);
        slot.interim.extend(owned(status, fields));
        slot.wake_reader();
    }

    fn head(&mut self, token: u32, head: &h2::ResponseHead<'_>) {
        let slot = self.slot(token);
        slot.head = owned(head.status, head.fields);
        slot.content_length = head.content_length;
        slot.wake_reader();
    }

    fn content(&mut self, token: u32, piece: &[u8]) {
        let slot = self.slot(token);
        slot.content.extend_from_slice(piece);
        slot.wake_reader();
    }

    fn trailers(&mut self, token: u32, fields: &hpack::Fields) {
        let trailers = Fields::copied(fields.iter()).into_trailers(&Nominated::default());
        self.slot(token).trailers = Some(trailers);
    }

    fn completed(&mut self, token: u32, completed: Completed) {
        let slot = self.slot(token);
        slot.outcome = Some(Ok(completed));
        slot.wake_reader();
    }

    fn failed(&mut self, token: u32, incomplete: Incomplete) {
        let slot = self.slot(token);
        // A server may reset what is left of a request behind its whole response (RFC 9113, section 8.1).
        if slot.outcome.is_none() {
            slot.outcome = Some(Err(incomplete));
        }
        slot.wake_reader();
        if let Some(sender) = slot.sender.take() {
            sender.wake();
        }
    }
}

fn owned(status: u16, fields: &hpack::Fields) -> Option<ResponseHead> {
    Some(ResponseHead {
        // The codec has checked the range.
        status: StatusCode::from_u16(status).ok()?,
        reason: None,
        version: Version::HTTP_2,
        fields: Fields::copied(fields.iter()),
    })
}

fn register(place: &mut Option<Waker>, context: &Context<'_>) {
    match place {
        Some(waker) => waker.clone_from(context.waker()),
        None => *place = Some(context.waker().clone()),
    }
}

/// A stream that an exchange may begin on.
pub(super) struct Reservation {
    connection: Rc<Http2Connection>,
    destination: Rc<Destination>,
}

impl Reservation {
    pub(super) fn new(connection: Rc<Http2Connection>, destination: Rc<Destination>) -> Self {
        connection.reserved.set(connection.reserved.get() + 1);
        Self {
            connection,
            destination,
        }
    }

    pub(super) fn connection(&self) -> &Http2Connection {
        &self.connection
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let reserved = &self.connection.reserved;
        reserved.set(reserved.get() - 1);
        if self.connection.is_free() {
            self.destination.call();
        }
    }
}
