//! Exchanges on one HTTP/1 connection, with their phases.
//!
//! One exchange costs one write, one read and two clock calls when request and response fit the
//! socket buffers, and no allocation. Nothing here resolves, connects or retries.

mod deadline;

mod reading;

use std::cell::{RefCell, RefMut};
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker, ready};
use std::time::Instant;

use plimsoll_model::{Clock, Failure, FailureKind, Phase, Phases, Retry};
use plimsoll_wire::h1::{Decoded, KnownHead, Limits, ResponseDecoder, ResponseSink};
use plimsoll_wire::tls;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

pub(crate) use self::deadline::Deadline;
pub use self::reading::BegunExchange;
use crate::Request;
use crate::connect::stream::may_have_answered;
use crate::timing::Timing;

/// Reads in a row before the deadline and the worker's other connections get their turn.
///
/// Well within the runtime's own budget, which would also keep the deadline from being looked at.
const READS_PER_POLL: u32 = 32;

/// A connection that speaks HTTP/1 over `S`.
#[derive(Debug)]
pub struct Http1<S> {
    stream: S,
    decoder: ResponseDecoder,
    deadline: Deadline,
}

/// Memory that all connections of one worker read into, one after the other.
///
/// A response is decoded before the next read, so 512 connections need one buffer, and it stays in
/// the processor's cache.
#[derive(Debug, Clone)]
pub struct ReadBuffer(Rc<RefCell<ReadState>>);

/// Buffers that the connections of one worker share, used by the one that reads.
#[derive(Debug)]
struct ReadState {
    memory: Box<[u8]>,
    known_head: KnownHead,
}

impl ReadBuffer {
    /// Bytes read from the kernel at a time.
    pub const BYTES: usize = 64 * 1024;

    /// One buffer; clones share it.
    pub fn new() -> Self {
        Self(Rc::new(RefCell::new(ReadState {
            memory: vec![0; Self::BYTES].into_boxed_slice(),
            known_head: KnownHead::new(),
        })))
    }

    /// The memory, for one read.
    pub(crate) fn memory(&self) -> RefMut<'_, [u8]> {
        RefMut::map(self.0.borrow_mut(), |shared| &mut *shared.memory)
    }
}

impl Default for ReadBuffer {
    fn default() -> Self {
        Self::new()
    }
}

/// A complete response.
#[derive(Debug, Clone, Copy)]
pub struct Completed {
    /// The status.
    pub status: u16,
    /// The phases send, wait and receive.
    pub phases: Phases,
    /// Bytes of the request.
    pub bytes_sent: u64,
    /// Bytes of the response, head and framing included.
    pub bytes_received: u64,
    /// When its last byte was read.
    pub done: Instant,
    /// Whether the connection may carry another exchange.
    pub reusable: bool,
    /// Whether more bytes came than the response announces, such as a body longer than its
    /// `content-length`. Only over HTTP/1; the connection is not reusable then.
    pub surplus: bool,
}

/// An exchange whose response has begun: how it stands.
#[derive(Debug, Clone, Copy)]
pub struct Opening {
    /// The status.
    pub status: u16,
    /// The phases send, wait and receive, the last one as far as the head.
    pub phases: Phases,
    /// When the head was read.
    pub done: Instant,
}

/// An exchange without a complete response; the connection is of no further use.
#[derive(Debug, Clone)]
pub struct Incomplete {
    /// Why.
    pub failure: Failure,
    /// The phases it completed.
    pub phases: Phases,
    /// Bytes of the request that were handed over.
    pub bytes_sent: u64,
    /// Bytes of the response that came.
    pub bytes_received: u64,
    /// When it ended.
    pub done: Instant,
}

impl Incomplete {
    /// Of a request that could not be begun on its connection, so that it is safe to send it on another.
    pub(crate) fn unsent(cause: &dyn std::error::Error, begun: Instant) -> Self {
        Self {
            failure: Failure::new(Phase::Send, FailureKind::Closed)
                .because(cause.to_string())
                .retry(Retry::Safe),
            phases: Phases::default(),
            bytes_sent: 0,
            bytes_received: 0,
            done: begun,
        }
    }
}

/// Progress of an exchange.
#[derive(Debug)]
struct Progress {
    timing: Timing,
    written: usize,
    received: u64,
    /// The write side broke; the peer may still have answered before it did.
    write_error: Option<io::Error>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Http1<S> {
    /// Wraps a connected stream; must be called within a runtime.
    ///
    /// - `now`: any moment that is not in the future; a timer starts from it.
    pub fn new(stream: S, limits: Limits, now: Instant) -> Self {
        Self {
            stream,
            decoder: ResponseDecoder::new(limits),
            deadline: Deadline::new(now),
        }
    }

    /// Whether the connection can carry an exchange after having been idle: the peer has neither
    /// closed it nor sent anything unrequested.
    pub fn is_fresh(&mut self) -> bool {
        let mut byte = [0];
        let mut buffer = ReadBuf::new(&mut byte);
        let mut context = Context::from_waker(Waker::noop());
        Pin::new(&mut self.stream)
            .poll_read(&mut context, &mut buffer)
            .is_pending()
    }

    /// Sends `request` and reads its response to the end.
    ///
    /// - `begun`: the present, read by the caller.
    /// - `deadline`: when to give up; must not be earlier than that of the exchange before.
    pub async fn exchange<K: ResponseSink, C: Clock>(
        &mut self,
        request: &Request,
        begun: Instant,
        deadline: Instant,
        buffer: &ReadBuffer,
        sink: &mut K,
        clock: &C,
    ) -> Result<Completed, Incomplete> {
        self.decoder.begin(request.is_head());
        let mut progress = Progress::new(begun);
        let completed = poll_fn(|context| {
            let reading =
                self.poll_reading(context, &mut progress, request, false, buffer, sink, clock);
            if let Poll::Ready(result) = reading {
                return Poll::Ready(result);
            }
            self.poll_overdue(context, &mut progress, deadline, clock)
        })
        .await?;
        Ok(completed.expect("a head alone is not enough, so it was read to its end"))
    }

    /// Ready with the complete response, or with `None` as soon as there is a head if that is enough.
    #[expect(clippy::too_many_arguments, reason = "the parts of one future")]
    fn poll_reading<K: ResponseSink, C: Clock>(
        &mut self,
        context: &mut Context<'_>,
        progress: &mut Progress,
        request: &Request,
        is_head_enough: bool,
        buffer: &ReadBuffer,
        sink: &mut K,
        clock: &C,
    ) -> Poll<Result<Option<Completed>, Incomplete>> {
        if let Err(incomplete) = self.send(context, progress, request, clock) {
            return Poll::Ready(Err(incomplete));
        }
        for _ in 0..READS_PER_POLL {
            let shared = &mut *buffer.0.borrow_mut();
            let mut read = ReadBuf::new(&mut shared.memory);
            if let Err(error) = ready!(Pin::new(&mut self.stream).poll_read(context, &mut read)) {
                let error = progress.write_error.take().unwrap_or(error);
                let failure = tls::failure(progress.timing.phase(), &error);
                return Poll::Ready(Err(progress.fail(failure, clock.now())));
            }
            let known_head = &mut shared.known_head;
            if let Some(result) = self.receive(progress, read.filled(), known_head, sink, clock) {
                return Poll::Ready(result.map(Some));
            }
            if is_head_enough && self.decoder.has_head() {
                return Poll::Ready(Ok(None));
            }
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }

    fn poll_overdue<C: Clock>(
        &mut self,
        context: &mut Context<'_>,
        progress: &mut Progress,
        deadline: Instant,
        clock: &C,
    ) -> Poll<Result<Option<Completed>, Incomplete>> {
        // Where writing broke, reading is waited for nevertheless: the kernel reports both at once,
        // but the runtime may not have noticed it yet, and a response may be there.
        ready!(self.deadline.poll_passed(context, deadline));
        let failure = match progress.write_error.take() {
            Some(error) => tls::failure(progress.timing.phase(), &error),
            None => Failure::new(progress.timing.phase(), FailureKind::Timeout),
        };
        Poll::Ready(Err(progress.fail(failure, clock.now())))
    }

    /// Goes on sending the request, if it is not sent yet. After an error behind which a response may lie, reading goes on.
    fn send<C: Clock>(
        &mut self,
        context: &mut Context<'_>,
        progress: &mut Progress,
        request: &Request,
        clock: &C,
    ) -> Result<(), Incomplete> {
        if progress.timing.sent_at.is_some() || progress.write_error.is_some() {
            return Ok(());
        }
        match self.poll_send(context, progress, request.bytes()) {
            Poll::Pending => {}
            Poll::Ready(Ok(())) => progress.timing.sent_at = Some(clock.now()),
            Poll::Ready(Err(error)) if may_have_answered(&error) => {
                progress.write_error = Some(error);
            }
            Poll::Ready(Err(error)) => {
                let failure = tls::failure(progress.timing.phase(), &error);
                return Err(progress.fail(failure, clock.now()));
            }
        }
        Ok(())
    }

    fn poll_send(
        &mut self,
        context: &mut Context<'_>,
        progress: &mut Progress,
        bytes: &[u8],
    ) -> Poll<io::Result<()>> {
        while progress.written < bytes.len() {
            let rest = &bytes[progress.written..];
            match ready!(Pin::new(&mut self.stream).poll_write(context, rest))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                written => progress.written += written,
            }
        }
        Pin::new(&mut self.stream).poll_flush(context)
    }

    /// Takes what a read delivered; returns the outcome if that ended the exchange.
    fn receive<K: ResponseSink, C: Clock>(
        &mut self,
        progress: &mut Progress,
        bytes: &[u8],
        known_head: &mut KnownHead,
        sink: &mut K,
        clock: &C,
    ) -> Option<Result<Completed, Incomplete>> {
        if bytes.is_empty() {
            let now = clock.now();
            return Some(match self.decoder.end_of_stream() {
                Ok(()) => Ok(self.complete(progress, now, false)),
                Err(error) => {
                    // The write saw the reset, and reading then finds a mere end.
                    let failure = match progress.write_error.take() {
                        Some(error) => tls::failure(progress.timing.phase(), &error),
                        None => error.failure(progress.timing.phase()),
                    };
                    Err(progress.fail(failure, now))
                }
            });
        }
        let is_first = progress.timing.first_byte_at.is_none();
        let first_byte_at = *progress
            .timing
            .first_byte_at
            .get_or_insert_with(|| clock.now());
        match self.decoder.decode(bytes, sink, known_head) {
            Ok(Decoded { consumed, complete }) => {
                progress.received += consumed as u64;
                complete.then(|| {
                    // A response that came in one read was complete when its first byte came.
                    let done = if is_first { first_byte_at } else { clock.now() };
                    // Bytes beyond it, or a request that it overtook, spoil the connection.
                    let surplus = consumed < bytes.len();
                    let clean = !surplus && progress.timing.sent_at.is_some();
                    let completed = self.complete(progress, done, clean);
                    Ok(Completed {
                        surplus,
                        ..completed
                    })
                })
            }
            Err(error) => {
                progress.received += bytes.len() as u64;
                let phase = if self.decoder.has_head() {
                    Phase::Receive
                } else {
                    progress.timing.phase()
                };
                Some(Err(progress.fail(error.failure(phase), clock.now())))
            }
        }
    }

    fn complete(&self, progress: &Progress, done: Instant, clean: bool) -> Completed {
        Completed {
            status: self.decoder.status(),
            phases: progress.timing.completed(done),
            bytes_sent: progress.written as u64,
            bytes_received: progress.received,
            done,
            reusable: clean && self.decoder.is_persistent(),
            surplus: false,
        }
    }
}

impl Progress {
    fn new(begun: Instant) -> Self {
        Self {
            timing: Timing::begin(begun),
            written: 0,
            received: 0,
            write_error: None,
        }
    }

    fn fail(&self, failure: Failure, now: Instant) -> Incomplete {
        Incomplete {
            failure,
            phases: self.timing.partial(),
            bytes_sent: self.written as u64,
            bytes_received: self.received,
            done: now,
        }
    }
}
