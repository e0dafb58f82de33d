//! Exchanges on shared HTTP/2 connections.
//!
//! A task drives each connection: one read takes the frames of all its exchanges, and one write sends what they have
//! gathered. An exchange takes what came for it, and returns credit for that.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::error::Error;
use std::future::poll_fn;
use std::rc::{Rc, Weak};
use std::task::{Context, Poll, Waker, ready};
use std::time::{Duration, Instant};

use bytes::{Buf as _, Bytes, BytesMut};
use http::{HeaderMap, StatusCode, Version};
use http_body::{Body, Frame};
use plimsoll_model::{Clock as _, Failure, FailureKind, Phase, Phases, Protocol, Retry, Side};
use plimsoll_wire::h1::{BodyLength, put_field};
use plimsoll_wire::h2::hpack;
use plimsoll_wire::h2::{self, ErrorCode, FieldWriter, StreamedRequest};
use plimsoll_wire::http::Nominated;

use super::head::Head;
use super::pool::{Destination, SharedClock};
use super::response_head::{Fields, ResponseHead};
use super::upgraded::Upgraded;
use super::upload::{BodyPart, Upload};
use crate::{Completed, Driven, Http2, Incomplete, ReadBuffer, Responses, Stream};

/// A connection that carries many exchanges.
pub(super) struct Http2Connection {
    state: RefCell<State>,
    driver: RefCell<Option<Waker>>,
    destination: Weak<Destination>,
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
        stream: Stream,
        destination: &Rc<Destination>,
        now: Instant,
        use_until: Instant,
    ) -> Rc<Self> {
        let http = Http2::new(stream, destination.http2_settings(), now);
        let connection = Rc::new(Self {
            state: RefCell::new(State {
                http,
                slots: Slots::default(),
            }),
            driver: RefCell::default(),
            destination: Rc::downgrade(destination),
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

/// One request and its response.
pub(super) struct Http2Exchange<B> {
    stream: StreamHandle,
    upload: Upload<B>,
    /// Content that no window allowed yet.
    chunk: Bytes,
    sending: Sending,
    request: StreamedRequest,
    is_reused: bool,
    /// Bytes of content that were returned.
    taken: u64,
    /// The final status.
    status: Option<StatusCode>,
    failed: Option<Incomplete>,
    begun: Instant,
}

/// Whether there is more of a request to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sending {
    UnderWay,
    Done,
    /// The response came while the body waited for `100 Continue`: it is not sent.
    Withheld,
}

/// Releases the stream of an exchange when it is dropped.
struct StreamHandle {
    connection: Rc<Http2Connection>,
    destination: Rc<Destination>,
    token: u32,
    code: Cell<ErrorCode>,
    is_released: bool,
}

impl Drop for StreamHandle {
    fn drop(&mut self) {
        if !self.is_released {
            self.connection.release(self.token, self.code.get());
        }
    }
}

impl<B: Body<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>> + Unpin> Http2Exchange<B> {
    pub(super) fn begin(
        reservation: Reservation,
        head: &Head<'_>,
        body: B,
        begun: Instant,
    ) -> Result<Self, Failure> {
        check(head)?;
        let is_tunnel = head.is_connect() || head.upgrade.is_some();
        let waits = head.expects_continue.then(|| begun.into());
        let upload = Upload::new(body, head, true, is_tunnel, waits);
        let connection = Rc::clone(&reservation.connection);
        let destination = Rc::clone(&reservation.destination);
        drop(reservation);
        let state = &mut *connection.state.borrow_mut();
        if head.upgrade.is_some() && !state.http.allows_connect_protocol() {
            return Err(Failure::new(Phase::Send, FailureKind::UpgradeRefused)
                .because("the server does not allow extended CONNECT (RFC 8441)"));
        }
        let is_whole = !is_tunnel && upload.is_done();
        let request = StreamedRequest {
            is_head: head.method == "HEAD",
            is_tunnel,
            is_whole,
        };
        let length = upload.length();
        let token = state.slots.enter();
        let opened = state.http.begin_streamed(request, token, begun, |writer| {
            write_head(writer, head, &destination, length);
        });
        if let Err(error) = opened {
            state.slots.free.push(token);
            return Err(Failure::new(Phase::Send, FailureKind::Closed)
                .because(error.to_string())
                .retry(Retry::Safe));
        }
        let is_reused = connection.is_used.replace(true);
        connection.left.set(connection.left.get().saturating_sub(1));
        if connection.left.get() == 0 {
            connection.is_closing.set(true);
            state.http.close();
        }
        connection.wake_driver();
        Ok(Self {
            stream: StreamHandle {
                connection: Rc::clone(&connection),
                destination,
                token,
                code: Cell::new(ErrorCode::CANCEL),
                is_released: false,
            },
            upload,
            chunk: Bytes::new(),
            sending: if is_whole || is_tunnel {
                Sending::Done
            } else {
                Sending::UnderWay
            },
            request,
            is_reused,
            taken: 0,
            status: None,
            failed: None,
            begun,
        })
    }

    pub(super) fn poll_head(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<ResponseHead, Incomplete>> {
        loop {
            self.poll_send(context)?;
            let mut state = self.stream.connection.state.borrow_mut();
            let slot = state.slots.slot(self.stream.token);
            if let Some(head) = slot.interim.pop_front() {
                if head.status == StatusCode::CONTINUE && self.upload.is_waiting() {
                    self.upload.proceed();
                    slot.interim.push_front(head);
                    continue;
                }
                return Poll::Ready(Ok(head));
            }
            if let Some(head) = slot.head.take() {
                self.status = Some(head.status);
                if self.upload.is_waiting() {
                    self.sending = Sending::Withheld;
                }
                return Poll::Ready(Ok(head));
            }
            if let Some(Err(incomplete)) = &slot.outcome {
                let incomplete = incomplete.clone();
                drop(state);
                return Poll::Ready(Err(self.failed_with(incomplete)));
            }
            register(&mut slot.reader, context);
            return Poll::Pending;
        }
    }

    pub(super) fn poll_frame(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Incomplete>>> {
        if let Err(incomplete) = self.poll_send(context) {
            return Poll::Ready(Some(Err(incomplete)));
        }
        if let Some(content) = self.stream.connection.take_content(self.stream.token) {
            self.taken += content.len() as u64;
            return Poll::Ready(Some(Ok(Frame::data(content))));
        }
        let mut state = self.stream.connection.state.borrow_mut();
        let slot = state.slots.slot(self.stream.token);
        match &slot.outcome {
            Some(Ok(_)) => {
                let trailers = slot.trailers.take();
                Poll::Ready(trailers.map(|trailers| Ok(Frame::trailers(trailers))))
            }
            Some(Err(incomplete)) => {
                let incomplete = incomplete.clone();
                drop(state);
                Poll::Ready(Some(Err(self.failed_with(incomplete))))
            }
            None => {
                register(&mut slot.reader, context);
                Poll::Pending
            }
        }
    }

    pub(super) fn poll_upload(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), Incomplete>> {
        self.poll_send(context)?;
        let mut state = self.stream.connection.state.borrow_mut();
        let slot = &state.slots.slot(self.stream.token);
        if self.sending != Sending::UnderWay || slot.outcome.is_some() {
            Poll::Ready(Ok(()))
        } else {
            Poll::Pending
        }
    }

    /// Unknown: one read of the connection's task carries many responses.
    #[expect(
        clippy::unused_self,
        reason = "the same method as of the other versions"
    )]
    pub(super) fn first_byte_at(&self) -> Option<Instant> {
        None
    }

    pub(super) fn completed(&self) -> Option<Completed> {
        let mut state = self.stream.connection.state.borrow_mut();
        let slot = &state.slots.slot(self.stream.token);
        slot.outcome.as_ref()?.as_ref().ok().copied()
    }

    pub(super) fn is_received(&self) -> bool {
        let mut state = self.stream.connection.state.borrow_mut();
        let slot = &state.slots.slot(self.stream.token);
        matches!(slot.outcome, Some(Ok(_))) && slot.content.is_empty() && slot.trailers.is_none()
    }

    pub(super) fn content_left(&self) -> Option<u64> {
        let mut state = self.stream.connection.state.borrow_mut();
        let slot = &state.slots.slot(self.stream.token);
        match slot.outcome {
            Some(Ok(_)) => Some(slot.content.len() as u64),
            _ if self.request.is_head => Some(0),
            _ => slot.content_length?.checked_sub(self.taken),
        }
    }

    pub(super) fn into_untouched_body(self) -> Option<B> {
        self.upload.into_untouched()
    }

    pub(super) fn reset(self, code: u32) {
        self.stream.code.set(ErrorCode(code));
    }

    pub(super) fn upgrade(mut self) -> Option<Upgraded> {
        if !self.request.is_tunnel || !self.status?.is_success() {
            return None;
        }
        self.stream.is_released = true;
        Some(Upgraded::http2(
            Rc::clone(&self.stream.connection),
            Rc::clone(&self.stream.destination),
            self.stream.token,
        ))
    }

    /// Sends what is ready of the body and what the windows allow. Fails if the body does.
    fn poll_send(&mut self, context: &mut Context<'_>) -> Result<(), Incomplete> {
        if let Some(incomplete) = &self.failed {
            return Err(incomplete.clone());
        }
        let (connection, token) = (&self.stream.connection, self.stream.token);
        while self.sending == Sending::UnderWay {
            if self.chunk.is_empty() {
                match self.upload.poll_piece(context) {
                    Poll::Pending => return Ok(()),
                    Poll::Ready(Ok(BodyPart::Data(data))) => self.chunk = data,
                    Poll::Ready(Ok(BodyPart::End)) => {}
                    Poll::Ready(Ok(BodyPart::Trailers(trailers))) => {
                        let state = &mut *connection.state.borrow_mut();
                        state.http.send_trailers(token, |writer| {
                            for (name, value) in &trailers {
                                let name = name.as_str().as_bytes();
                                writer.field(name, value.as_bytes().trim_ascii());
                            }
                        });
                        connection.wake_driver();
                        self.sending = Sending::Done;
                        return Ok(());
                    }
                    Poll::Ready(Err(failure)) => {
                        connection
                            .state
                            .borrow_mut()
                            .http
                            .reset(token, ErrorCode::CANCEL);
                        connection.wake_driver();
                        let incomplete = Incomplete {
                            failure,
                            phases: Phases::default(),
                            bytes_sent: 0,
                            bytes_received: 0,
                            done: self.begun,
                        };
                        return Err(self.failed_with(incomplete));
                    }
                }
            }
            let is_last = self.upload.is_done();
            match connection.poll_send(token, &self.chunk, is_last, context) {
                Poll::Ready(Ok(count)) => {
                    self.chunk.advance(count);
                    if is_last && self.chunk.is_empty() {
                        self.sending = Sending::Done;
                    }
                }
                // The response says why.
                Poll::Ready(Err(_)) | Poll::Pending => return Ok(()),
            }
        }
        Ok(())
    }

    fn failed_with(&mut self, incomplete: Incomplete) -> Incomplete {
        let incomplete = Incomplete {
            failure: super::resolved(incomplete.failure, self.is_reused),
            ..incomplete
        };
        self.failed = Some(incomplete.clone());
        incomplete
    }
}

/// Fields that HTTP/2 carries but that could not be written down elsewhere are refused.
fn check(head: &Head<'_>) -> Result<(), Failure> {
    let mut line = Vec::new();
    let mut result = Ok(());
    let has_control = |text: &str| text.bytes().any(|byte| byte <= b' ' || byte == 0x7f);
    let target = head.authority.unwrap_or_default();
    if has_control(head.target) || has_control(target) || has_control(head.method) {
        result = Err("the request line contains a blank or a control character".to_owned());
    }
    head.each_field(Protocol::Http2, true, &mut |name, value| {
        line.clear();
        if result.is_ok()
            && let Err(error) = put_field(&mut line, name, value)
        {
            result = Err(error.to_string());
        }
    });
    result.map_err(|cause| {
        Failure::new(Phase::Send, FailureKind::Protocol)
            .on(Side::Ours)
            .because(cause)
    })
}

fn write_head(
    writer: &mut FieldWriter<'_>,
    head: &Head<'_>,
    destination: &Destination,
    length: BodyLength,
) {
    let endpoint = destination.endpoint();
    let authority = head.authority.unwrap_or(endpoint.authority());
    match head.upgrade {
        _ if head.is_connect() => {
            writer.field(b":method", b"CONNECT");
            writer.field(b":authority", head.target.as_bytes());
        }
        upgrade => {
            let method = if upgrade.is_some() {
                "CONNECT"
            } else {
                head.method
            };
            writer.field(b":method", method.as_bytes());
            writer.field(b":scheme", endpoint.scheme().name().as_bytes());
            writer.field(b":path", head.target.as_bytes());
            writer.field(b":authority", authority.as_bytes());
            if let Some(protocol) = upgrade {
                writer.field(b":protocol", protocol.as_bytes());
            }
        }
    }
    let has_trailers = length != BodyLength::None;
    head.each_field(Protocol::Http2, has_trailers, &mut |name, value| {
        writer.field(name, value.trim_ascii());
    });
    if let BodyLength::Known(length) = length {
        writer.field(b"content-length", length.to_string().as_bytes());
    }
    if head.expects_continue && length != BodyLength::None {
        writer.field(b"expect", b"100-continue");
    }
}
