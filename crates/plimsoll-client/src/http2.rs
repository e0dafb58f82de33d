//! Exchanges on one HTTP/2 connection, many at a time, with their phases.
//!
//! One task drives a connection: the requests begun since it last woke leave in one write, and one
//! read takes whatever responses came. So a full connection costs one write, one read and two clock
//! calls for many exchanges, and no allocation for any. Nothing here resolves, connects or retries.

mod due;

mod dispatch;

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};
use std::time::Instant;

use plimsoll_model::{Clock, Failure, FailureKind, Phase};
use plimsoll_wire::h2::hpack::Fields;
use plimsoll_wire::h2::{
    Connection as Codec, EncodedRequest, ErrorCode, FieldWriter, OpenError, ResponseHead, Settings,
    StreamId, StreamedRequest,
};
use plimsoll_wire::tls;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use self::dispatch::Dispatch;
use self::due::Due;
use crate::connect::stream::may_have_answered;
use crate::timing::Timing;
use crate::{Completed, Connection, Endpoint, Incomplete, Opening, ReadBuffer};

/// Reads in a row before the deadlines and the worker's other connections get their turn.
const READS_PER_POLL: u32 = 32;

/// A connection that speaks HTTP/2 over `S`.
#[derive(Debug)]
pub struct Http2<S> {
    stream: S,
    codec: Codec,
    /// By token.
    exchanges: Vec<UnderWay>,
    /// Requests that are not all handed over.
    unsent: Vec<(u32, StreamId)>,
    due: Due,
    /// Something was written that the stream may still hold.
    is_unflushed: bool,
    /// The write side broke; the peer may still have answered before it did.
    write_error: Option<io::Error>,
    is_over: bool,
}

/// Takes what becomes of the exchanges of a connection, which are interleaved.
pub trait Responses {
    /// Whether header fields are to be decoded for `head` and `trailers`.
    fn wants_fields(&self) -> bool {
        false
    }

    /// An interim head (1xx), its `:status` among the fields.
    fn interim(&mut self, _token: u32, _status: u16, _fields: &Fields) {}

    /// The final head of a response.
    fn head(&mut self, _token: u32, _head: &ResponseHead<'_>) {}

    /// Whether `opened` is to be called.
    fn wants_opening(&self) -> bool {
        false
    }

    /// How the exchange stands, called behind its `head`. A moment that this gives takes the place of
    /// the exchange's deadline; it must not be earlier.
    fn opened(&mut self, _token: u32, _opening: &Opening) -> Option<Instant> {
        None
    }

    /// A piece of its content.
    fn content(&mut self, _token: u32, _piece: &[u8]) {}

    /// The fields behind it; empty unless `wants_fields`.
    fn trailers(&mut self, _token: u32, _fields: &Fields) {}

    /// A streamed request may be able to send more; without a token, all of them.
    fn window_opened(&mut self, _token: Option<u32>) {}

    /// The response is complete; the token is free, unless the request is streamed.
    fn completed(&mut self, token: u32, completed: Completed);

    /// There will be no complete response; the token is free.
    ///
    /// A failure of the kind `closed` whose retry is safe means that the peer left the connection
    /// without having looked at the request (GOAWAY); `reset` and safe that it refused the stream.
    fn failed(&mut self, token: u32, incomplete: Incomplete);
}

/// Takes the parts of the only response under way.
pub trait ResponseParts {
    /// Whether header fields are to be decoded.
    fn wants_fields(&self) -> bool {
        false
    }

    /// The final head.
    fn head(&mut self, head: &ResponseHead<'_>);

    /// A piece of the content.
    fn content(&mut self, piece: &[u8]);

    /// The fields behind it; empty unless `wants_fields`.
    fn trailers(&mut self, _fields: &Fields) {}
}

/// The result of driving a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Driven {
    /// Exchanges ended, or more of them can be begun than before. Drive on after having begun some.
    Progress,
    /// The connection is over, and every exchange got an end.
    Over,
}

/// One exchange, by its token.
#[derive(Debug)]
struct UnderWay {
    /// `None` while the token is free.
    stream: Option<StreamId>,
    timing: Timing,
    /// When to give up; streamed exchanges have none.
    deadline: Option<Instant>,
    status: u16,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Http2<S> {
    /// Wraps a connected stream; must be called within a runtime.
    ///
    /// - `now`: any moment that is not in the future; a timer starts from it.
    pub fn new(stream: S, settings: Settings, now: Instant) -> Self {
        Self {
            stream,
            codec: Codec::new(settings),
            exchanges: Vec::new(),
            unsent: Vec::new(),
            due: Due::new(now),
            is_unflushed: false,
            write_error: None,
            is_over: false,
        }
    }

    /// Exchanges that can be begun now: one until the peer's SETTINGS came, then as many as both
    /// sides allow.
    #[inline]
    pub fn capacity(&self) -> usize {
        if self.is_over {
            return 0;
        }
        self.codec.capacity()
    }

    /// Exchanges under way.
    pub fn in_flight(&self) -> usize {
        self.codec.in_flight()
    }

    /// Whether no exchange can be begun any more, now or later; those under way go on.
    pub fn is_retired(&self) -> bool {
        self.is_over || self.codec.is_retired()
    }

    /// Whether the peer's SETTINGS came.
    pub fn is_established(&self) -> bool {
        self.codec.is_established()
    }

    /// Begins an exchange; its request leaves when the connection is driven.
    ///
    /// - `token`: a small number that no other exchange under way here has.
    /// - `begun`: the present, read by the caller.
    /// - `deadline`: when to give up.
    #[inline]
    pub fn begin(
        &mut self,
        request: &EncodedRequest,
        token: u32,
        begun: Instant,
        deadline: Instant,
    ) -> Result<(), OpenError> {
        if self.is_over {
            return Err(OpenError::Retired);
        }
        let stream = self.codec.open(request, token)?;
        self.enter(token, stream, begun, Some(deadline));
        self.due.include(deadline);
        Ok(())
    }

    #[inline]
    fn enter(&mut self, token: u32, stream: StreamId, begun: Instant, deadline: Option<Instant>) {
        let slot = token as usize;
        let exchange = |stream| UnderWay {
            stream,
            timing: Timing::begin(begun),
            deadline,
            status: 0,
        };
        if slot >= self.exchanges.len() {
            self.exchanges.resize_with(slot + 1, || exchange(None));
        }
        debug_assert!(self.exchanges[slot].stream.is_none());
        self.exchanges[slot] = exchange(Some(stream));
        self.unsent.push((token, stream));
    }

    /// Begins an exchange whose bodies the caller writes and reads piece by piece; deadlines are the caller's.
    ///
    /// The token is in use until it is [reset](Self::reset), which the caller does in any case.
    ///
    /// - `write`: writes the fields of the request.
    pub(crate) fn begin_streamed(
        &mut self,
        request: StreamedRequest,
        token: u32,
        begun: Instant,
        write: impl FnOnce(&mut FieldWriter<'_>),
    ) -> Result<(), OpenError> {
        if self.is_over {
            return Err(OpenError::Retired);
        }
        let stream = self.codec.open_streamed(request, token, write)?;
        self.enter(token, stream, begun, None);
        Ok(())
    }

    fn stream(&self, token: u32) -> Option<StreamId> {
        self.exchanges.get(token as usize)?.stream
    }

    /// Bytes of content that the streamed request of `token` can send now.
    pub(crate) fn send_room(&mut self, token: u32) -> usize {
        self.stream(token)
            .map_or(0, |stream| self.codec.send_room(stream))
    }

    /// Sends content of a streamed request; returns how many bytes of it were taken.
    pub(crate) fn send_data(&mut self, token: u32, content: &[u8], ends_stream: bool) -> usize {
        self.stream(token).map_or(0, |stream| {
            self.codec.send_data(stream, content, ends_stream)
        })
    }

    /// Ends a streamed request with trailers.
    pub(crate) fn send_trailers(&mut self, token: u32, write: impl FnOnce(&mut FieldWriter<'_>)) {
        if let Some(stream) = self.stream(token) {
            self.codec.send_trailers(stream, write);
        }
    }

    /// Returns credit for content of a streamed response that the caller has consumed.
    pub(crate) fn consume(&mut self, token: u32, bytes: usize) {
        if let Some(stream) = self.stream(token) {
            self.codec.consume(stream, bytes);
        }
    }

    /// Ends the exchange of `token` in whatever state it is, and frees the token.
    pub(crate) fn reset(&mut self, token: u32, code: ErrorCode) {
        let exchange = self.exchanges.get_mut(token as usize);
        if let Some(stream) = exchange.and_then(|exchange| exchange.stream.take()) {
            self.codec.reset(stream, code);
        }
    }

    /// Whether the peer lets CONNECT name a protocol (RFC 8441).
    pub(crate) fn allows_connect_protocol(&self) -> bool {
        self.codec.allows_connect_protocol()
    }

    /// Whether driving the connection would write something.
    pub(crate) fn wants_write(&mut self) -> bool {
        self.codec.wants_write()
    }

    /// Sends a PING when the connection is driven, unless one is unanswered.
    pub(crate) fn probe(&mut self) {
        self.codec.probe();
    }

    /// Whether the peer has not answered the [probe](Self::probe) yet.
    pub(crate) fn is_probing(&self) -> bool {
        self.codec.is_probing()
    }

    /// Begins no more exchanges, and announces that to the peer when the connection is driven.
    pub(crate) fn close(&mut self) {
        self.codec.close();
    }

    /// The stream underneath.
    pub(crate) fn stream_ref(&self) -> &S {
        &self.stream
    }

    /// Gives the exchange of `token` up: the stream is reset, and the token is free.
    ///
    /// False if there is none.
    pub fn cancel(&mut self, token: u32) -> bool {
        let exchange = self.exchanges.get_mut(token as usize);
        let stream = exchange.and_then(|exchange| exchange.stream.take());
        stream.is_some_and(|stream| self.codec.cancel(stream))
    }

    /// Bytes that the exchange of `token` has sent and received, frames included; `None` if there is
    /// none.
    pub fn traffic(&mut self, token: u32) -> Option<(u64, u64)> {
        let stream = self.exchanges.get(token as usize)?.stream?;
        let traffic = self.codec.traffic(stream)?;
        Some((traffic.sent, traffic.received))
    }

    /// Writes what is to be sent, reads what came, and gives up what is overdue.
    ///
    /// Pending once there is nothing to be done until the transport or a deadline says so; the
    /// connection is watched even while it carries nothing, so that its end is noticed.
    pub fn poll_drive<K: Responses, C: Clock>(
        &mut self,
        context: &mut Context<'_>,
        buffer: &ReadBuffer,
        sink: &mut K,
        clock: &C,
    ) -> Poll<Driven> {
        if self.is_over {
            return Poll::Ready(Driven::Over);
        }
        for round in 1.. {
            self.write(context, clock);
            let memory = &mut *buffer.memory();
            let mut read = ReadBuf::new(memory);
            match Pin::new(&mut self.stream).poll_read(context, &mut read) {
                Poll::Pending => {
                    let hopeless = |error: &mut io::Error| !may_have_answered(error);
                    if let Some(error) = self.write_error.take_if(hopeless) {
                        self.lose(&error, sink, clock.now());
                        return Poll::Ready(Driven::Over);
                    }
                    break;
                }
                Poll::Ready(Err(error)) => {
                    let error = self.write_error.take().unwrap_or(error);
                    self.lose(&error, sink, clock.now());
                    return Poll::Ready(Driven::Over);
                }
                Poll::Ready(Ok(())) => {
                    let now = clock.now();
                    let mut driven = self.receive(read.filled(), sink, now);
                    // A connection that is never idle does not get to ask its timer.
                    if driven != Some(Driven::Over) && self.due.is_passed(now) {
                        self.give_up(now, sink, now);
                        driven = Some(Driven::Progress);
                    }
                    if driven == Some(Driven::Over) {
                        // GOAWAY says why, if the peer still listens.
                        self.write(context, clock);
                    }
                    if let Some(driven) = driven {
                        return Poll::Ready(driven);
                    }
                }
            }
            if round == READS_PER_POLL {
                context.waker().wake_by_ref();
                break;
            }
        }
        let Some(passed) = self.due.poll_passed(context) else {
            return Poll::Pending;
        };
        let now = clock.now();
        if let Some(error) = self.write_error.take() {
            self.lose(&error, sink, now);
            return Poll::Ready(Driven::Over);
        }
        self.give_up(passed.max(now), sink, now);
        Poll::Ready(Driven::Progress)
    }

    /// Waits until the peer's SETTINGS came, without beginning anything: it does speak HTTP/2.
    pub async fn greeted<C: Clock>(
        &mut self,
        buffer: &ReadBuffer,
        clock: &C,
    ) -> Result<(), Failure> {
        poll_fn(|context| {
            while !self.is_established() {
                match ready!(self.poll_drive(context, buffer, &mut NoResponses, clock)) {
                    Driven::Progress => {}
                    Driven::Over => {
                        let error = self.codec.error();
                        return Poll::Ready(Err(error.map_or_else(
                            || Failure::new(Phase::Wait, FailureKind::Closed),
                            |error| error.failure(Phase::Wait),
                        )));
                    }
                }
            }
            Poll::Ready(Ok(()))
        })
        .await
    }

    /// Sends `request` and reads its response to the end, with no other exchange under way.
    ///
    /// - `begun`: the present, read by the caller.
    /// - `deadline`: when to give up.
    pub async fn exchange<K: ResponseParts, C: Clock>(
        &mut self,
        request: &EncodedRequest,
        begun: Instant,
        deadline: Instant,
        buffer: &ReadBuffer,
        sink: &mut K,
        clock: &C,
    ) -> Result<Completed, Incomplete> {
        debug_assert_eq!(self.in_flight(), 0);
        if let Err(error) = self.begin(request, 0, begun, deadline) {
            return Err(Incomplete::unsent(&error, begun));
        }
        let mut only = Only {
            sink,
            outcome: None,
        };
        poll_fn(|context| {
            loop {
                let driven = self.poll_drive(context, buffer, &mut only, clock);
                if let Some(outcome) = only.outcome.take() {
                    return Poll::Ready(outcome);
                }
                ready!(driven);
            }
        })
        .await
        .map(|completed| Completed {
            surplus: false,
            reusable: !self.is_retired(),
            ..completed
        })
    }

    /// Whether the connection can carry an exchange after having been idle.
    pub fn is_fresh<C: Clock>(&mut self, buffer: &ReadBuffer, clock: &C) -> bool {
        let mut context = Context::from_waker(Waker::noop());
        while !self.is_retired() {
            if self
                .poll_drive(&mut context, buffer, &mut NoResponses, clock)
                .is_pending()
            {
                return self.capacity() > 0;
            }
        }
        false
    }

    /// Writes all that the socket takes; an error is kept until reading is done too.
    fn write<C: Clock>(&mut self, context: &mut Context<'_>, clock: &C) {
        while self.write_error.is_none() {
            let output = self.codec.output();
            if output.is_empty() {
                break;
            }
            match Pin::new(&mut self.stream).poll_write(context, output) {
                Poll::Pending => return,
                Poll::Ready(Ok(0)) => self.write_error = Some(io::ErrorKind::WriteZero.into()),
                Poll::Ready(Ok(written)) => {
                    self.codec.written(written);
                    self.is_unflushed = true;
                }
                Poll::Ready(Err(error)) => self.write_error = Some(error),
            }
        }
        if !self.is_unflushed || self.write_error.is_some() {
            return;
        }
        match Pin::new(&mut self.stream).poll_flush(context) {
            Poll::Pending => {}
            Poll::Ready(Err(error)) => self.write_error = Some(error),
            Poll::Ready(Ok(())) => {
                self.is_unflushed = false;
                if !self.unsent.is_empty() {
                    self.mark_sent(clock.now());
                }
            }
        }
    }

    /// Everything in the output was handed over: so were the requests that lay there whole.
    fn mark_sent(&mut self, now: Instant) {
        let Self {
            codec,
            exchanges,
            unsent,
            ..
        } = self;
        unsent.retain(|&(token, stream)| {
            if !codec.is_sent(stream) {
                return true;
            }
            let exchange = &mut exchanges[token as usize];
            if exchange.stream == Some(stream) {
                exchange.timing.sent_at = Some(now);
            }
            false
        });
    }

    /// Takes what a read delivered; returns whether there is anything for the caller to do.
    fn receive<K: Responses>(
        &mut self,
        bytes: &[u8],
        sink: &mut K,
        now: Instant,
    ) -> Option<Driven> {
        let was_established = self.codec.is_established();
        let was_retired = self.codec.is_retired();
        let was_probing = self.codec.is_probing();
        let write_error = self.write_error.take();
        let mut dispatch = Dispatch {
            exchanges: &mut self.exchanges,
            sink,
            now,
            error: write_error.as_ref(),
            ended: 0,
            traffic: plimsoll_wire::h2::Traffic::default(),
        };
        let result = if bytes.is_empty() {
            self.codec.end_of_stream(&mut dispatch).ok();
            Err(())
        } else {
            self.codec.receive(bytes, &mut dispatch).map_err(drop)
        };
        let has_ended = dispatch.ended > 0;
        self.write_error = write_error;
        if result.is_err() {
            self.is_over = true;
            return Some(Driven::Over);
        }
        let is_changed = has_ended
            || was_established != self.codec.is_established()
            || was_retired != self.codec.is_retired()
            || was_probing != self.codec.is_probing();
        is_changed.then_some(Driven::Progress)
    }

    /// Ends the connection and all its exchanges because of the transport.
    fn lose<K: Responses>(&mut self, error: &io::Error, sink: &mut K, now: Instant) {
        self.is_over = true;
        let mut dispatch = Dispatch {
            exchanges: &mut self.exchanges,
            sink,
            now,
            error: Some(error),
            ended: 0,
            traffic: plimsoll_wire::h2::Traffic::default(),
        };
        self.codec.lost(&mut dispatch);
    }

    /// Gives up every exchange whose deadline is at `limit` or before.
    fn give_up<K: Responses>(&mut self, limit: Instant, sink: &mut K, now: Instant) {
        let mut next: Option<Instant> = None;
        for (token, exchange) in (0_u32..).zip(&mut self.exchanges) {
            let Some(stream) = exchange.stream else {
                continue;
            };
            let Some(deadline) = exchange.deadline else {
                continue;
            };
            if deadline > limit {
                next = Some(next.map_or(deadline, |next| next.min(deadline)));
                continue;
            }
            let traffic = self.codec.traffic(stream).unwrap_or_default();
            self.codec.cancel(stream);
            exchange.stream = None;
            let failure = Failure::new(exchange.timing.phase(), FailureKind::Timeout);
            sink.failed(token, exchange.incomplete(failure, traffic, now));
        }
        self.due.restart(next);
    }
}

/// Takes what becomes of the only exchange.
struct Only<'a, K> {
    sink: &'a mut K,
    outcome: Option<Result<Completed, Incomplete>>,
}

impl<K: ResponseParts> Responses for Only<'_, K> {
    fn wants_fields(&self) -> bool {
        self.sink.wants_fields()
    }

    fn head(&mut self, _token: u32, head: &ResponseHead<'_>) {
        self.sink.head(head);
    }

    fn content(&mut self, _token: u32, piece: &[u8]) {
        self.sink.content(piece);
    }

    fn trailers(&mut self, _token: u32, fields: &Fields) {
        self.sink.trailers(fields);
    }

    fn completed(&mut self, _token: u32, completed: Completed) {
        self.outcome = Some(Ok(completed));
    }

    fn failed(&mut self, _token: u32, incomplete: Incomplete) {
        self.outcome = Some(Err(incomplete));
    }
}

/// Nothing was begun, so there is nothing to report.
struct NoResponses;

impl Responses for NoResponses {
    fn completed(&mut self, _token: u32, _completed: Completed) {}

    fn failed(&mut self, _token: u32, _incomplete: Incomplete) {}
}

impl UnderWay {
    fn incomplete(
        &self,
        failure: Failure,
        traffic: plimsoll_wire::h2::Traffic,
        now: Instant,
    ) -> Incomplete {
        Incomplete {
            failure,
            phases: self.timing.partial(),
            bytes_sent: traffic.sent,
            bytes_received: traffic.received,
            done: now,
        }
    }
}

/// Whether HTTP/2 may be spoken on `connection` to `endpoint`: over TLS its server must have chosen
/// `h2` by ALPN (RFC 9113, section 3.2); in the clear one knows beforehand.
pub fn require_http2(connection: &Connection, endpoint: &Endpoint) -> Result<(), Failure> {
    if !endpoint.is_tls() || connection.alpn.as_deref() == Some(b"h2") {
        return Ok(());
    }
    let cause = match &connection.alpn {
        None => "the server did not choose a protocol by ALPN, so it may speak HTTP/1 only".into(),
        Some(other) => format!(
            "the server chose {} by ALPN, not h2",
            String::from_utf8_lossy(other)
        ),
    };
    Err(Failure::new(Phase::Tls, FailureKind::Protocol).because(cause))
}

/// A transport error, as the failure of an exchange.
fn transport_failure(phase: Phase, error: &io::Error) -> Failure {
    tls::failure(phase, error)
}
