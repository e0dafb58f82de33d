//! One HTTP/1 connection.
//!
//! A steady request costs one read, one write and one look at the clock, and no allocation: heads are
//! decoded where the worker reads them, answers of pipelined requests are gathered in the worker's
//! output and go out together. Only what cannot go on at once (half a head, an answer that has to be
//! waited for, a client that does not read) takes its own memory.

mod exchange;

mod linger;

mod output;

mod respond;

mod wait;

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use http::StatusCode;
use plimsoll_model::Clock;
use plimsoll_wire::h1::{
    BodyLength, BodyStep, HeadStorage, ReceivedHead, RequestDecoder, RequestError, ResponseWriter,
    TargetForm, read_as_http_1_1,
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::action::{Answer, LocalFuture, Outcome, TakeOver};
use crate::counters::Cut;
use crate::limits::Limits;
use crate::message::connection::ConnectionInfo;
use crate::message::fields::Fields;
use crate::message::interim::Interims;
use crate::message::request::{Content, Request, Scheme, Start};
use crate::message::response::{Response, write_fields};
use crate::protocol::http1::linger::linger;
use crate::protocol::http1::output::Output;
use crate::protocol::http1::wait::WaitsFor;
use crate::protocol::http2;
use crate::protocol::http3::alternative::AltSvc;
use crate::protocol::pace::Pace;
use crate::protocol::service::Service;
use crate::stream::Stream;
use crate::version::Version;
use crate::worker::timer::Timer;
use crate::worker::{ConnectionGuard, Memory};

/// Answers that are gathered before they are sent.
const MOST_GATHERED: usize = 64 * 1024;

/// Bytes behind a request that are kept until it is answered.
const MOST_CARRIED: usize = 64 * 1024;

/// Content from this length on is sent from where it lies.
const LARGE: usize = 8 * 1024;

/// The connection preface of HTTP/2 (RFC 9113, section 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Serves `stream` until either side closes it; hands it on if the client speaks HTTP/2.
pub(crate) async fn serve(
    stream: Stream,
    service: Rc<Service>,
    place: ConnectionGuard,
    info: Rc<ConnectionInfo>,
) {
    let mut connection = Http1::new(stream, service, place, info);
    let end = connection.run().await;
    let Http1 {
        stream,
        service,
        place,
        info,
        carry,
        ..
    } = connection;
    match end {
        Ok(End::Linger) => linger(stream, &place).await,
        Ok(End::TakeOver(take_over)) => {
            let timeout = place.worker.limits().write_timeout;
            let stream = stream.with_read_ahead(carry).with_write_timeout(timeout);
            take_over(stream, place.worker.drain.clone()).await;
        }
        Ok(End::Http2) => {
            let stream = stream.with_read_ahead(carry);
            Box::pin(http2::serve(stream, service, place, info)).await;
        }
        Err(Broken::Cut(cut)) => place.worker.counters.cut(cut),
        // A client that breaks off concerns only itself.
        Ok(End::Closed) | Err(Broken::Io) => {}
    }
}

#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a fact of its own about the connection"
)]
struct Http1 {
    stream: Stream,
    service: Rc<Service>,
    place: ConnectionGuard,
    info: Rc<ConnectionInfo>,
    limits: Rc<Limits>,
    decoder: RequestDecoder,
    /// Bytes that were read and not yet parsed.
    carry: Vec<u8>,
    output: Output,
    timer: Timer,
    waits_for: WaitsFor,
    /// The last time that anything happened.
    since: Instant,
    /// When the head that is not whole yet began.
    head_since: Instant,
    /// Rate at which the content of the current request arrives.
    content_pace: Pace,
    /// Rate at which the client takes output that it did not take at once.
    write_pace: Pace,
    /// Unread content that was thrown away for the current request.
    discarded: u64,
    /// The client does not take what is to be sent.
    is_stuck: bool,
    /// Nothing more is read as a request.
    is_closing: bool,
    /// The client may still be sending.
    lingers: bool,
    /// The client has sent its last byte.
    is_at_end: bool,
    /// Requests behind the one that is answered were thrown away, since there were too many.
    is_overfull: bool,
    /// Nothing was read yet, so it may be HTTP/2.
    is_fresh: bool,
    /// Value of `alt-svc` that announces HTTP/3.
    alternative: Option<Rc<AltSvc>>,
}

/// End of a connection, or its next protocol.
enum End {
    Closed,
    Linger,
    TakeOver(TakeOver),
    Http2,
}

/// Reason for a broken connection.
enum Broken {
    Cut(Cut),
    Io,
}

impl From<io::Error> for Broken {
    fn from(_: io::Error) -> Self {
        Self::Io
    }
}

/// The next step after the requests at hand.
enum Next {
    /// All that was read is answered.
    More,
    /// An answer that takes longer, or content that comes in pieces.
    Exchange(Box<Exchange>),
    /// The end, once all is sent.
    End(End),
}

/// A request whose answer is not yet sent.
struct Exchange {
    request: RequestTraits,
    content: Content,
    answer: Pending,
}

enum Pending {
    Later(LocalFuture<Outcome>),
    Response(Response),
}

/// The properties of a request that its response depends on.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is one fact of the head"
)]
#[derive(Clone, Copy)]
struct RequestTraits {
    version: Version,
    is_head: bool,
    is_connect: bool,
    is_persistent: bool,
    expects_continue: bool,
    wants_upgrade: bool,
    length: BodyLength,
    /// The chunks of the body had all come with the head.
    has_whole_body: bool,
}

impl RequestTraits {
    fn from_head(head: &ReceivedHead<'_>) -> Self {
        Self {
            version: if head.minor_version == 0 {
                Version::Http10
            } else {
                Version::Http11
            },
            is_head: head.is_head(),
            is_connect: head.target.form == TargetForm::Authority,
            is_persistent: head.is_persistent,
            expects_continue: head.expects_continue && head.body != BodyLength::None,
            wants_upgrade: head.upgrade.is_some(),
            length: head.body,
            has_whole_body: false,
        }
    }
}

impl Http1 {
    fn new(
        stream: Stream,
        service: Rc<Service>,
        place: ConnectionGuard,
        info: Rc<ConnectionInfo>,
    ) -> Self {
        let worker = &place.worker;
        let now = worker.clock.now();
        let limits = worker.limits();
        Self {
            alternative: service.alternative(scheme_of(&stream)),
            stream,
            service,
            info,
            decoder: RequestDecoder::new(limits.request),
            carry: Vec::new(),
            output: Output::default(),
            timer: Timer::new(now + limits.header_timeout),
            waits_for: WaitsFor::Head,
            since: now,
            head_since: now,
            content_pace: Pace::default(),
            write_pace: Pace::default(),
            discarded: 0,
            is_stuck: false,
            is_closing: false,
            lingers: false,
            is_at_end: false,
            is_overfull: false,
            is_fresh: true,
            limits,
            place,
        }
    }

    async fn run(&mut self) -> Result<End, Broken> {
        poll_fn(|cx| {
            self.place.watch(cx.waker());
            Poll::Ready(())
        })
        .await;
        loop {
            match poll_fn(|cx| self.poll_requests(cx)).await? {
                Next::More => {}
                Next::Exchange(exchange) => {
                    if let Some(end) = self.exchange(*exchange).await? {
                        self.flush().await?;
                        return Ok(end);
                    }
                }
                Next::End(end) => {
                    self.flush().await?;
                    return Ok(end);
                }
            }
        }
    }

    async fn flush(&mut self) -> Result<(), Broken> {
        poll_fn(|cx| {
            if self.output.is_empty() {
                return Poll::Ready(Ok(()));
            }
            self.poll_output(cx)
        })
        .await
    }

    /// Reads requests and answers them until one needs more than that.
    fn poll_requests(&mut self, cx: &mut Context<'_>) -> Poll<Result<Next, Broken>> {
        loop {
            if !self.output.is_empty() {
                ready!(self.poll_output(cx))?;
            }
            if self.is_closing {
                let end = if self.lingers {
                    End::Linger
                } else {
                    End::Closed
                };
                ready!(Pin::new(&mut self.stream).poll_shutdown(cx))?;
                return Poll::Ready(Ok(Next::End(end)));
            }
            let worker = Rc::clone(&self.place.worker);
            let memory = &mut *worker.memory.borrow_mut();
            // Bytes left because enough responses were gathered come before new ones are read.
            let was_left = self.output.take_was_full() && !self.carry.is_empty();
            let next = if was_left {
                self.answer_carried(memory)
            } else {
                let mut buffer = ReadBuf::new(&mut memory.input);
                match Pin::new(&mut self.stream).poll_read(cx, &mut buffer) {
                    Poll::Pending => return self.poll_wait(cx, self.waits_for).map(Err),
                    Poll::Ready(result) => result?,
                }
                let filled = buffer.filled().len();
                if filled == 0 {
                    return Poll::Ready(Ok(Next::End(End::Closed)));
                }
                self.since = worker.clock.now();
                if self.waits_for == WaitsFor::Content {
                    self.content_pace.took(filled);
                }
                if self.carry.is_empty() {
                    let Memory {
                        input,
                        output,
                        date,
                        ..
                    } = memory;
                    let date = date.at(self.since, &worker.clock);
                    self.head_since = self.since;
                    let (taken, next) = self.answer(&mut input[..filled], output, date);
                    self.carry.extend_from_slice(&input[taken..filled]);
                    next
                } else {
                    self.carry.extend_from_slice(&memory.input[..filled]);
                    self.answer_carried(memory)
                }
            };
            self.send_gathered(cx, &mut memory.output)?;
            match next {
                Next::More => {}
                next => return Poll::Ready(Ok(next)),
            }
        }
    }

    fn answer_carried(&mut self, memory: &mut Memory) -> Next {
        let mut carry = std::mem::take(&mut self.carry);
        let date = memory.date.at(self.since, &self.place.worker.clock);
        let (taken, next) = self.answer(&mut carry, &mut memory.output, date);
        if taken > 0 || self.waits_for != WaitsFor::Head {
            self.head_since = self.since;
        }
        carry.drain(..taken);
        if !carry.is_empty() {
            self.carry = carry;
        }
        next
    }

    /// Sends what was gathered by one write; what the socket does not take becomes the connection's.
    fn send_gathered(&mut self, cx: &mut Context<'_>, gathered: &mut Vec<u8>) -> io::Result<()> {
        if gathered.is_empty() {
            return Ok(());
        }
        let written = if self.output.has_tail() {
            // A head that waits for its content shares a packet with it.
            self.stream.poll_write_more(cx, gathered)
        } else {
            Pin::new(&mut self.stream).poll_write(cx, gathered)
        };
        let sent = match written {
            Poll::Ready(result) => result?,
            Poll::Pending => 0,
        };
        self.output.sent_before_tail(&gathered[sent..]);
        gathered.clear();
        if self.stream.is_tls() {
            self.output.must_flush();
        }
        Ok(())
    }

    /// Takes requests off `input` and appends their answers to `out`.
    ///
    /// Returns how much was taken; the rest is an unfinished head, or waits for its turn.
    fn answer(&mut self, input: &mut [u8], out: &mut Vec<u8>, date: &[u8]) -> (usize, Next) {
        let mut at = 0;
        let is_first = self.is_fresh;
        if is_first {
            let length = input.len().min(PREFACE.len());
            if self.service.http2.get() && input[..length] == PREFACE[..length] {
                if length == PREFACE.len() {
                    return (0, Next::End(End::Http2));
                }
                return (0, Next::More);
            }
            self.is_fresh = false;
        }
        loop {
            if self.decoder.is_in_body() {
                match self.discard(&input[at..]) {
                    Ok((taken, is_over)) => {
                        at += taken;
                        if !is_over {
                            self.waits_for = WaitsFor::Content;
                            return (at, Next::More);
                        }
                    }
                    Err(error) => {
                        // The response to this request went out already: there is no second one.
                        self.end_refused(error);
                        return (input.len(), Next::More);
                    }
                }
            }
            if self.is_closing {
                return (input.len(), Next::More);
            }
            if at == input.len() {
                self.waits_for = WaitsFor::Request;
                return (at, Next::More);
            }
            if out.len() >= MOST_GATHERED || self.output.has_tail() {
                self.output.was_full();
                return (at, Next::More);
            }
            let mut storage = HeadStorage::new();
            match self.decoder.decode_head(&input[at..], &mut storage) {
                Ok(Some((head, length))) => {
                    at += length;
                    self.discarded = 0;
                    let mut request = RequestTraits::from_head(&head);
                    if head.body == BodyLength::Chunked {
                        // Before anything answers: afterwards, a mistake could not be reported.
                        match self.decoder.has_whole_body(&input[at..]) {
                            Ok(has_whole_body) => request.has_whole_body = has_whole_body,
                            Err(error) => {
                                self.refuse(error, out, date);
                                return (input.len(), Next::More);
                            }
                        }
                    }
                    if let Some(next) = self.handle(&head, request, out, date) {
                        return (at, next);
                    }
                }
                Ok(None) => {
                    self.waits_for = WaitsFor::Head;
                    return (at, Next::More);
                }
                Err(error) => {
                    if error == RequestError::Version && read_as_http_1_1(&mut input[at..]) {
                        continue;
                    }
                    if is_first && at == 0 && self.service.http2.get() && is_other_preface(input) {
                        self.end_refused(error);
                    } else {
                        self.refuse(error, out, date);
                    }
                    return (input.len(), Next::More);
                }
            }
        }
    }

    /// Has one request answered; returns what could not be done at once.
    fn handle(
        &mut self,
        head: &ReceivedHead<'_>,
        mut request: RequestTraits,
        out: &mut Vec<u8>,
        date: &[u8],
    ) -> Option<Next> {
        if head.body != BodyLength::None {
            self.content_pace.rest();
        }
        let content = match head.body {
            BodyLength::None => Content::none(),
            BodyLength::Known(length) => Content::unread(Some(length)),
            BodyLength::Chunked => Content::unread(None),
        };
        let start = Start {
            method: head.method,
            scheme: scheme_of(&self.stream),
            authority: head.authority,
            path: head.target.path,
            query: head.target.query,
            version: request.version,
            upgrade: head.upgrade,
            fields: Fields::Http1(head.headers),
        };
        let answer = self
            .service
            .action()
            .handle(&Request::new(start, &self.info, &content));
        if let Answer::Now(_) = answer
            && let Some(interims) = content.interims()
        {
            request.expects_continue &= !write_interims(interims, request.version, out);
            interims.end();
        }
        match answer {
            Answer::Now(Outcome::Respond(response)) => {
                if response.is_streamed() {
                    return Some(Next::Exchange(Box::new(Exchange {
                        request,
                        content,
                        answer: Pending::Response(response),
                    })));
                }
                self.respond(response, request, &content, out, date);
                None
            }
            Answer::Now(outcome) => self.outcome(outcome, request, &content, out, date),
            Answer::Later(future) => Some(Next::Exchange(Box::new(Exchange {
                request,
                content,
                answer: Pending::Later(future),
            }))),
        }
    }

    /// Discards unread content; returns how much, and whether that was all.
    fn discard(&mut self, input: &[u8]) -> Result<(usize, bool), RequestError> {
        let mut at = 0;
        loop {
            match self.decoder.decode_body(&input[at..])? {
                BodyStep::NeedMore => return Ok((input.len(), false)),
                BodyStep::Content(range) => {
                    self.discarded += range.len() as u64;
                    at += range.end;
                    if self.discarded > self.limits.discard_bytes {
                        // The response went out with the promise to go on, which cannot be kept.
                        self.place.worker.counters.cut(Cut::Discard);
                        self.is_closing = true;
                        self.lingers = true;
                        self.decoder = RequestDecoder::new(self.limits.request);
                        return Ok((input.len(), true));
                    }
                }
                BodyStep::End(consumed) => {
                    self.decoder.finish_body()?;
                    return Ok((at + consumed, true));
                }
            }
        }
    }
}

/// Whether the first line is shaped like the preface of HTTP/2, but is neither that nor of HTTP/1: such a
/// connection has to end (RFC 9113, section 3.4).
fn is_other_preface(input: &[u8]) -> bool {
    let line = input
        .split(|byte| *byte == b'\r')
        .next()
        .unwrap_or_default();
    let mut words = line.split(|byte| *byte == b' ');
    let version = words.nth(2);
    version.is_some_and(|version| !version.starts_with(b"HTTP/")) && words.next().is_none()
}

/// Appends the interim responses that wait; a client of HTTP/1.0 would take them for the answer.
///
/// Returns whether one of them asks for the content.
fn write_interims(interims: &Interims, version: Version, out: &mut Vec<u8>) -> bool {
    let mut asks = false;
    while let Some(interim) = interims.pop() {
        if version == Version::Http10 {
            continue;
        }
        asks |= interim.status == StatusCode::CONTINUE;
        let mut head = ResponseWriter::interim(out, interim.status.as_u16());
        write_fields(&mut head, &interim.fields);
        head.finish();
    }
    asks
}

fn scheme_of(stream: &Stream) -> Scheme {
    if stream.is_tls() {
        Scheme::Https
    } else {
        Scheme::Http
    }
}
