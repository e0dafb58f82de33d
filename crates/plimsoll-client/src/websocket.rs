//! A WebSocket (RFC 6455) on a connection, and round trips on it: one message there, the next one back.
//!
//! Pings are answered whenever the connection is read; [`WebSocket::poll_idle`] reads it while no caller
//! waits for a message. Nothing here resolves, connects or retries.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use plimsoll_model::{Clock, Failure, FailureKind, Phase, Phases, Side};
use plimsoll_wire::ws::{
    self, Decoder, Event, FrameSink, Handshake, HandshakeError, Key, MessageKind, Opcode, Role,
    encode_close, encode_frame,
};
use plimsoll_wire::{h1, tls};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::forward::Head;
use crate::http1::Deadline;
use crate::{Incomplete, ReadBuffer, Request};

/// Reads in a row before the worker's other connections get their turn.
const READS_PER_POLL: u32 = 32;

/// Answers to pings that the peer does not read are not piled up beyond this.
const MOST_UNSENT: usize = 64 * 1024;

/// All is well (section 7.4.1).
const NORMAL: u16 = 1000;

/// The request of a handshake; each connection puts a key of its own into it.
#[derive(Debug, Clone)]
pub struct Upgrade {
    head: Arc<[u8]>,
    key_at: usize,
}

impl Upgrade {
    /// The fields that a request needs to be one, beside those that every request has.
    pub fn fields() -> [(&'static str, String); 4] {
        [
            ("upgrade", "websocket".to_owned()),
            ("connection", "Upgrade".to_owned()),
            ("sec-websocket-version", "13".to_owned()),
            ("sec-websocket-key", Self::placeholder().text().to_owned()),
        ]
    }

    /// `None` unless `request` is a GET for HTTP/1 with all of [`fields`](Self::fields).
    pub fn new(request: &Request) -> Option<Self> {
        let placeholder = Self::placeholder();
        let head = request.bytes();
        let key = placeholder.text().as_bytes();
        let key_at = head.windows(key.len()).position(|window| window == key)?;
        (request.method() == "GET").then(|| Self {
            head: head.into(),
            key_at,
        })
    }

    fn placeholder() -> Key {
        Key::new(*b"a key stays here")
    }

    /// The request with this key.
    fn with(&self, key: &Key) -> Vec<u8> {
        let mut head = self.head.to_vec();
        head[self.key_at..self.key_at + Key::LENGTH].copy_from_slice(key.text().as_bytes());
        head
    }
}

/// The same request for a stream of HTTP/2 or HTTP/3: an extended CONNECT (RFC 8441, RFC 9220).
#[derive(Debug, Clone)]
pub struct StreamUpgrade {
    target: String,
    authority: String,
    fields: Vec<(String, Vec<u8>)>,
}

impl StreamUpgrade {
    /// `None` unless `request` is one that [`Upgrade::new`] takes. Its key is left out: only HTTP/1 has one.
    pub fn new(request: &Request) -> Option<Self> {
        Upgrade::new(request)?;
        let head = std::str::from_utf8(request.bytes()).ok()?;
        let head = head.split_once("\r\n\r\n").map_or(head, |(head, _)| head);
        let fields = head.split("\r\n").skip(1).filter_map(|line| {
            let (name, value) = line.split_once(':')?;
            let is_key = name.eq_ignore_ascii_case("sec-websocket-key");
            (!is_key).then(|| (name.to_owned(), value.trim().as_bytes().to_vec()))
        });
        Some(Self {
            target: String::from_utf8(request.target().to_vec()).ok()?,
            authority: String::from_utf8(request.host().to_vec()).ok()?,
            fields: fields.collect(),
        })
    }

    /// The head of a forwarded exchange, whose [`upgrade`](crate::forward::Exchange::upgrade) is the stream.
    pub fn head(&self) -> Head<'_> {
        Head {
            authority: Some(&self.authority),
            upgrade: Some("websocket"),
            ..Head::new("GET", &self.target, &self.fields)
        }
    }
}

/// A connection whose handshake is done.
#[derive(Debug)]
pub struct WebSocket<S> {
    stream: S,
    decoder: Decoder,
    deadline: Deadline,
    /// Frames that are to be written; the first bytes of them are.
    out: Vec<u8>,
    written: usize,
    inbox: Inbox,
}

/// Events of the peer since the last round trip began.
#[derive(Debug, Default)]
struct Inbox {
    messages: u64,
    /// Payloads of pings that are to be answered: only the last one has to be (section 5.5.3).
    ping: Option<Vec<u8>>,
    close: Option<Closed>,
}

/// A close frame.
#[derive(Debug)]
struct Closed {
    code: Option<u16>,
    reason: String,
}

impl FrameSink for Inbox {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Message { .. } => self.messages += 1,
            Event::Ping(payload) => self.ping = Some(payload.to_vec()),
            Event::Pong(_) => {}
            Event::Close(close) => {
                self.close = Some(Closed {
                    code: close.map(|close| close.code),
                    reason: close.map_or(String::new(), |close| close.reason.to_owned()),
                });
            }
        }
    }
}

/// One message there, one back.
#[derive(Debug, Clone, Copy)]
pub struct RoundTrip {
    /// The phases send, wait and receive.
    pub phases: Phases,
    /// Bytes of frames written, masks and heads included.
    pub bytes_sent: u64,
    /// Bytes of frames read.
    pub bytes_received: u64,
    /// When the message that came back was complete.
    pub done: Instant,
    /// Messages that came beyond the one that was waited for.
    pub surplus: u64,
}

/// Progress of a round trip.
#[derive(Debug)]
struct Progress {
    begun: Instant,
    sent_at: Option<Instant>,
    first_byte_at: Option<Instant>,
    sent: u64,
    received: u64,
}

impl Progress {
    fn phase(&self) -> Phase {
        match (self.sent_at, self.first_byte_at) {
            (_, Some(_)) => Phase::Receive,
            (Some(_), None) => Phase::Wait,
            (None, None) => Phase::Send,
        }
    }

    fn phases(&self, done: Instant) -> Phases {
        let first_byte_at = self.first_byte_at.unwrap_or(done);
        let sent_at = self
            .sent_at
            .map_or(first_byte_at, |at| at.min(first_byte_at));
        let mut phases = Phases::default();
        phases.set(Phase::Send, sent_at - self.begun);
        phases.set(Phase::Wait, first_byte_at - sent_at);
        phases.set(Phase::Receive, done - first_byte_at);
        phases
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> WebSocket<S> {
    /// Makes the handshake on a connected stream.
    ///
    /// - `nonce`: unpredictable.
    /// - `limits`: on the head of the answer and on messages.
    pub async fn open<C: Clock>(
        mut stream: S,
        upgrade: &Upgrade,
        nonce: [u8; 16],
        limits: (h1::Limits, ws::Limits),
        deadline: Instant,
        buffer: &ReadBuffer,
        clock: &C,
    ) -> Result<Self, Failure> {
        let key = Key::new(nonce);
        let request = upgrade.with(&key);
        let mut handshake = Handshake::new(&key, limits.0);
        let mut opening = Opening {
            timer: Deadline::new(clock.now()),
            written: 0,
        };
        let mut decoder = Decoder::new(Role::Client, limits.1);
        let mut inbox = Inbox::default();
        poll_fn(|context| {
            let step = opening.poll_handshake(
                context,
                &mut stream,
                &request,
                &mut handshake,
                &mut decoder,
                &mut inbox,
                buffer,
            );
            if let Poll::Ready(result) = step {
                return Poll::Ready(result);
            }
            ready!(opening.timer.poll_passed(context, deadline));
            Poll::Ready(Err(Failure::new(Phase::Connect, FailureKind::Timeout)
                .because("the handshake of WebSocket took too long")))
        })
        .await?;
        Ok(Self {
            stream,
            decoder,
            deadline: opening.timer,
            out: Vec::new(),
            written: 0,
            inbox,
        })
    }

    /// A WebSocket on a stream that was agreed on elsewhere, as with [`StreamUpgrade`].
    pub fn over<C: Clock>(stream: S, limits: ws::Limits, clock: &C) -> Self {
        Self {
            stream,
            decoder: Decoder::new(Role::Client, limits),
            deadline: Deadline::new(clock.now()),
            out: Vec::new(),
            written: 0,
            inbox: Inbox::default(),
        }
    }

    /// Sends `message` and waits for the next one that comes.
    ///
    /// - `mask`: for its frame.
    /// - `begun`: the present, read by the caller.
    /// - `deadline`: when to give up; must not be earlier than that of the round trip before.
    ///
    /// After an error the connection is of no further use.
    #[expect(clippy::too_many_arguments, reason = "the parts of one future")]
    pub async fn round_trip<C: Clock>(
        &mut self,
        kind: MessageKind,
        message: &[u8],
        mask: [u8; 4],
        begun: Instant,
        deadline: Instant,
        buffer: &ReadBuffer,
        clock: &C,
    ) -> Result<RoundTrip, Incomplete> {
        self.answer(mask);
        let before = self.out.len() - self.written;
        encode_frame(&mut self.out, kind.opcode(), true, message, Some(mask));
        let mut progress = Progress {
            begun,
            sent_at: None,
            first_byte_at: None,
            sent: (self.out.len() - self.written - before) as u64,
            received: 0,
        };
        // Messages that arrived before the request are no response to it.
        let mut surplus = std::mem::take(&mut self.inbox.messages);
        let result = poll_fn(|context| {
            let step =
                self.poll_round_trip(context, &mut progress, &mut surplus, mask, buffer, clock);
            if let Poll::Ready(result) = step {
                return Poll::Ready(result);
            }
            ready!(self.deadline.poll_passed(context, deadline));
            Poll::Ready(Err(Failure::new(progress.phase(), FailureKind::Timeout)))
        })
        .await;
        match result {
            Ok(done) => Ok(RoundTrip {
                phases: progress.phases(done),
                bytes_sent: progress.sent,
                bytes_received: progress.received,
                done,
                surplus: surplus + std::mem::take(&mut self.inbox.messages),
            }),
            Err(failure) => {
                let done = clock.now();
                let mut phases = Phases::default();
                if let Some(sent_at) = progress.sent_at {
                    phases.set(Phase::Send, sent_at - begun);
                }
                Err(Incomplete {
                    failure,
                    phases,
                    bytes_sent: progress.sent,
                    bytes_received: progress.received,
                    done,
                })
            }
        }
    }

    fn poll_round_trip<C: Clock>(
        &mut self,
        context: &mut Context<'_>,
        progress: &mut Progress,
        surplus: &mut u64,
        mask: [u8; 4],
        buffer: &ReadBuffer,
        clock: &C,
    ) -> Poll<Result<Instant, Failure>> {
        let fail = |progress: &Progress, error: &io::Error| tls::failure(progress.phase(), error);
        if progress.sent_at.is_none() {
            match self.poll_write(context) {
                Poll::Ready(Ok(())) => progress.sent_at = Some(clock.now()),
                Poll::Ready(Err(error)) => return Poll::Ready(Err(fail(progress, &error))),
                Poll::Pending => {}
            }
        }
        for _ in 0..READS_PER_POLL {
            let count = match self.poll_read(context, buffer) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(read) => {
                    self.is_over(context, &read, mask);
                    match read {
                        Ok(count) => count,
                        Err(error) => return Poll::Ready(Err(error.failure(progress.phase()))),
                    }
                }
            };
            progress.received += count as u64;
            if progress.sent_at.is_some() {
                let first = *progress.first_byte_at.get_or_insert_with(|| clock.now());
                if self.inbox.messages > 0 {
                    self.inbox.messages -= 1;
                    // All bytes of one read were there when its first byte was.
                    let is_one_read = progress.received == count as u64;
                    return Poll::Ready(Ok(if is_one_read { first } else { clock.now() }));
                }
            } else {
                *surplus += std::mem::take(&mut self.inbox.messages);
            }
            if let Some(close) = self.inbox.close.take() {
                return Poll::Ready(Err(close.failure(progress.phase())));
            }
            if let Poll::Ready(Err(error)) = self.poll_answer(context, mask) {
                return Poll::Ready(Err(fail(progress, &error)));
            }
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }

    /// Reads and answers pings while no caller waits for a message; ready once the connection is of no
    /// further use.
    pub fn poll_idle(
        &mut self,
        context: &mut Context<'_>,
        mask: [u8; 4],
        buffer: &ReadBuffer,
    ) -> Poll<()> {
        loop {
            // One may have come with the last message.
            if matches!(self.poll_answer(context, mask), Poll::Ready(Err(_))) {
                return Poll::Ready(());
            }
            let read = ready!(self.poll_read(context, buffer));
            if self.is_over(context, &read, mask) {
                return Poll::Ready(());
            }
        }
    }

    /// Says that all is well and waits for the peer to say so, too, for at most `patience`.
    pub async fn close(mut self, mask: [u8; 4], patience: Duration, buffer: &ReadBuffer) {
        encode_close(&mut self.out, Some(NORMAL), Some(mask));
        let closing = poll_fn(|context| {
            if let Poll::Ready(Err(_)) = self.poll_write(context) {
                return Poll::Ready(());
            }
            loop {
                let read = ready!(self.poll_read(context, buffer));
                if read.is_err() || self.inbox.close.is_some() {
                    return Poll::Ready(());
                }
            }
        });
        // A peer that does not answer is left all the same.
        drop(tokio::time::timeout(patience, closing).await);
    }

    /// Whether the connection is over after `read`; the peer gets the close frame, as far as the socket takes
    /// it at once.
    fn is_over(
        &mut self,
        context: &mut Context<'_>,
        read: &Result<usize, ReadError>,
        mask: [u8; 4],
    ) -> bool {
        let code = match (read, &self.inbox.close) {
            (Ok(_), None) => return false,
            // The same back (section 5.5.1).
            (Ok(_), Some(close)) => close.code,
            (Err(ReadError::Frame(error)), _) => Some(error.close_code()),
            (Err(ReadError::Io(_) | ReadError::End), _) => return true,
        };
        encode_close(&mut self.out, code, Some(mask));
        // No caller waits for it, and the peer may be gone.
        let _gone = self.poll_write(context);
        true
    }

    /// Writes what is to be written.
    fn poll_write(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.written < self.out.len() {
            let rest = &self.out[self.written..];
            match ready!(Pin::new(&mut self.stream).poll_write(context, rest))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                written => self.written += written,
            }
        }
        self.out.clear();
        self.written = 0;
        Pin::new(&mut self.stream).poll_flush(context)
    }

    /// Puts the answer to a ping that came among what is to be written.
    fn answer(&mut self, mask: [u8; 4]) {
        if let Some(payload) = self.inbox.ping.take()
            && self.out.len() < MOST_UNSENT
        {
            encode_frame(&mut self.out, Opcode::Pong, true, &payload, Some(mask));
        }
    }

    fn poll_answer(&mut self, context: &mut Context<'_>, mask: [u8; 4]) -> Poll<io::Result<()>> {
        self.answer(mask);
        if self.out.is_empty() {
            return Poll::Ready(Ok(()));
        }
        self.poll_write(context)
    }

    /// Reads once and decodes it; gives the bytes that came.
    fn poll_read(
        &mut self,
        context: &mut Context<'_>,
        buffer: &ReadBuffer,
    ) -> Poll<Result<usize, ReadError>> {
        let mut memory = buffer.memory();
        let mut read = ReadBuf::new(&mut memory);
        ready!(Pin::new(&mut self.stream).poll_read(context, &mut read)).map_err(ReadError::Io)?;
        let bytes = read.filled();
        if bytes.is_empty() {
            return Poll::Ready(Err(ReadError::End));
        }
        let decoded = self.decoder.decode(bytes, &mut self.inbox);
        decoded.map_err(ReadError::Frame)?;
        Poll::Ready(Ok(bytes.len()))
    }
}

#[derive(Debug)]
enum ReadError {
    Io(io::Error),
    End,
    Frame(ws::FrameError),
}

impl ReadError {
    fn failure(&self, phase: Phase) -> Failure {
        match self {
            Self::Io(error) => tls::failure(phase, error),
            Self::End => Failure::new(phase, FailureKind::Closed)
                .because("the connection ended without a close frame"),
            Self::Frame(error) => {
                let kind = match error {
                    ws::FrameError::TooLarge { .. } | ws::FrameError::Ratio { .. } => {
                        FailureKind::TooLarge
                    }
                    ws::FrameError::Utf8 | ws::FrameError::Deflate => FailureKind::Decode,
                    _ => FailureKind::Protocol,
                };
                Failure::new(phase, kind).because(error.to_string())
            }
        }
    }
}

impl Closed {
    /// The failure that it means in place of a message.
    fn failure(self, phase: Phase) -> Failure {
        let cause = match (self.code, &*self.reason) {
            (None, _) => "close without a code".to_owned(),
            (Some(code), "") => format!("close code {code}"),
            (Some(code), reason) => format!("close code {code}: {reason}"),
        };
        Failure::new(phase, FailureKind::Closed).because(cause)
    }
}

/// The failure that an answer to the handshake means.
fn refused(error: &HandshakeError) -> Failure {
    let kind = match error {
        HandshakeError::Status(_) => FailureKind::UpgradeRefused,
        _ => FailureKind::Protocol,
    };
    Failure::new(Phase::Connect, kind)
        .because(error.to_string())
        .on(Side::Theirs)
}

/// Parameters of a handshake.
#[derive(Debug)]
struct Opening {
    timer: Deadline,
    written: usize,
}

impl Opening {
    #[expect(clippy::too_many_arguments, reason = "the parts of one future")]
    fn poll_handshake<S: AsyncRead + AsyncWrite + Unpin>(
        &mut self,
        context: &mut Context<'_>,
        stream: &mut S,
        request: &[u8],
        handshake: &mut Handshake,
        decoder: &mut Decoder,
        inbox: &mut Inbox,
        buffer: &ReadBuffer,
    ) -> Poll<Result<(), Failure>> {
        let io = |error: &io::Error| tls::failure(Phase::Connect, error);
        while self.written < request.len() {
            let rest = &request[self.written..];
            match Pin::new(&mut *stream).poll_write(context, rest) {
                Poll::Ready(Ok(written)) if written > 0 => self.written += written,
                Poll::Ready(Ok(_)) => {
                    return Poll::Ready(Err(io(&io::ErrorKind::WriteZero.into())));
                }
                Poll::Ready(Err(error)) => return Poll::Ready(Err(io(&error))),
                Poll::Pending => break,
            }
        }
        if let Poll::Ready(Err(error)) = Pin::new(&mut *stream).poll_flush(context) {
            return Poll::Ready(Err(io(&error)));
        }
        loop {
            let mut memory = buffer.memory();
            let mut read = ReadBuf::new(&mut memory);
            match ready!(Pin::new(&mut *stream).poll_read(context, &mut read)) {
                Ok(()) => {}
                Err(error) => return Poll::Ready(Err(io(&error))),
            }
            let bytes = read.filled();
            if bytes.is_empty() {
                let failure = Failure::new(Phase::Connect, FailureKind::Closed);
                return Poll::Ready(Err(
                    failure.because("closed before the handshake was answered")
                ));
            }
            match handshake.decode(bytes) {
                Ok(None) => {}
                Ok(Some(taken)) => {
                    let frames = decoder.decode(&bytes[taken..], inbox);
                    let read = frames.map_err(ReadError::Frame);
                    return Poll::Ready(read.map_err(|error| error.failure(Phase::Connect)));
                }
                Err(error) => return Poll::Ready(Err(refused(&error))),
            }
        }
    }
}
