//! One exchange on an HTTP/1 connection, driven by the polls of its caller alone.

mod cgi;

mod connection;

mod fastcgi;

mod uwsgi;

use std::borrow::Cow;
use std::collections::VecDeque;
use std::error::Error;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use bytes::Bytes;
use http::{HeaderMap, StatusCode, Version};
use http_body::{Body, Frame};
use plimsoll_model::{Failure, FailureKind, Phase, Protocol, Side};
use plimsoll_wire::h1::{
    self, BodyLength, Decoded, KnownHead, RequestFacts, RequestHead, ResponseSink, fields_of,
    last_chunk, put_field,
};
use plimsoll_wire::http::Nominated;
use plimsoll_wire::{poll_recv_spare, tls};
use tokio::io::{AsyncRead, ReadBuf};

pub(super) use self::connection::Http1Connection;
pub(super) use self::fastcgi::FastCgiExchange;
use self::uwsgi::ResponseStart;
use super::head::{Head, ReceivedFields};
use super::pool::{ConnectionGuard, Destination, Speaks};
use super::response_head::{Fields, ResponseHead};
use super::upgraded::Upgraded;
use super::upload::{BodyPart, Upload};
use crate::connect::stream::may_have_answered;
use crate::timing::Timing;
use crate::{Completed, Incomplete, ReadBuffer, Stream};

/// Bytes that gather before they are written.
const GATHERED_BYTES: usize = 16 * 1024;

/// Content of which so much is left is read into memory of its own, which is handed on without a copy.
const DIRECT_BYTES: u64 = 32 * 1024;

/// Memory for heads that a connection keeps between exchanges.
const KEPT_BYTES: usize = 4 * 1024;

/// One request and its response.
pub(super) struct Http1Exchange<B> {
    /// Gone once the connection went back to the pool, or was upgraded.
    place: Option<ConnectionGuard>,
    upload: Upload<B>,
    /// The line end behind a long chunk is due.
    owes_line_end: bool,
    /// The last chunk was staged.
    is_ended: bool,
    /// The response came while the body waited for `100 Continue`: it is not sent.
    is_withheld: bool,
    inbox: Inbox,
    progress: Progress,
    outcome: Option<Result<Completed, Incomplete>>,
}

#[derive(Debug)]
struct Progress {
    is_reused: bool,
    timing: Timing,
    written: u64,
    received: u64,
    write_error: Option<io::Error>,
}

/// The result of a read.
#[derive(Debug, Default)]
struct Inbox {
    /// The response is one of uwsgi, and the connection ends behind it.
    uwsgi: Option<ResponseStart>,
    interim: VecDeque<ResponseHead>,
    head: Option<ResponseHead>,
    content: Vec<u8>,
    trailers: Option<HeaderMap>,
    /// The names in the `Connection` fields of the head.
    nominated: Nominated,
    /// Behind the head of a tunnel.
    surplus: Vec<u8>,
}

impl ResponseSink for Inbox {
    fn interim(&mut self, head: &h1::ResponseHead<'_>) {
        self.interim.extend(owned(head));
    }

    fn head(&mut self, head: &h1::ResponseHead<'_>) {
        for field in head.headers {
            self.nominated.note(field.name.as_bytes(), field.value);
        }
        self.head = owned(head);
    }

    fn content(&mut self, piece: &[u8]) {
        self.content.extend_from_slice(piece);
    }

    fn trailers(&mut self, lines: &[u8]) {
        self.trailers = Some(Fields::copied(fields_of(lines)).into_trailers(&self.nominated));
    }
}

fn owned(head: &h1::ResponseHead<'_>) -> Option<ResponseHead> {
    Some(ResponseHead {
        // The decoder has checked the range.
        status: StatusCode::from_u16(head.status).ok()?,
        reason: h1::own_reason(head.status, head.reason).map(Box::from),
        version: match head.minor_version {
            0 => Version::HTTP_10,
            _ => Version::HTTP_11,
        },
        fields: Fields::decoded(head.headers),
    })
}

impl<B: Body<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>> + Unpin> Http1Exchange<B> {
    /// Stages the head; it is written with the first poll.
    pub(super) fn begin(
        mut place: ConnectionGuard,
        head: &Head<'_>,
        body: B,
        begun: Instant,
    ) -> Result<Self, Failure> {
        let is_connect = head.is_connect();
        let is_uwsgi = place.destination().options().speaks == Speaks::Uwsgi;
        let waits = (head.expects_continue && !is_uwsgi).then(|| begun.into());
        let upload = Upload::new(body, head, false, is_connect, waits);
        let (destination, connection) = place.parts();
        if is_uwsgi {
            uwsgi::encode(&mut connection.out, destination, head, upload.length())?;
        } else {
            let out = std::mem::take(&mut connection.out);
            let encoded = encode(out, destination, head, upload.length());
            connection.out = encoded.map_err(|error| {
                Failure::new(Phase::Send, FailureKind::Protocol)
                    .on(Side::Ours)
                    .because(error.to_string())
            })?;
        }
        connection.decoder.begin_for(RequestFacts {
            is_head: head.method == "HEAD",
            is_connect,
            may_switch: head.upgrade.is_some() && !is_uwsgi,
            keeps_trailers: true,
        });
        let is_reused = connection.is_used;
        place.begin();
        Ok(Self {
            progress: Progress {
                is_reused,
                timing: Timing::begin(begun),
                written: 0,
                received: 0,
                write_error: None,
            },
            is_ended: false,
            is_withheld: false,
            owes_line_end: false,
            upload,
            place: Some(place),
            inbox: Inbox {
                uwsgi: is_uwsgi.then(ResponseStart::default),
                ..Inbox::default()
            },
            outcome: None,
        })
    }

    pub(super) fn poll_head(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<ResponseHead, Incomplete>> {
        loop {
            if let Some(head) = self.inbox.interim.pop_front() {
                if head.status == StatusCode::CONTINUE {
                    self.upload.proceed();
                }
                return Poll::Ready(Ok(head));
            }
            if let Some(head) = self.inbox.head.take() {
                self.is_withheld = self.upload.is_waiting();
                return Poll::Ready(Ok(head));
            }
            ready!(self.poll_progress(context))?;
        }
    }

    pub(super) fn poll_frame(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Incomplete>>> {
        loop {
            if !self.inbox.content.is_empty() {
                let data = std::mem::take(&mut self.inbox.content);
                return Poll::Ready(Some(Ok(Frame::data(data.into()))));
            }
            if let Some(Ok(_)) = &self.outcome {
                let trailers = self.inbox.trailers.take();
                return Poll::Ready(trailers.map(|trailers| Ok(Frame::trailers(trailers))));
            }
            if let Err(incomplete) = ready!(self.poll_progress(context)) {
                return Poll::Ready(Some(Err(incomplete)));
            }
        }
    }

    /// Sends what can be sent of the request without reading.
    pub(super) fn poll_upload(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), Incomplete>> {
        match self.poll_send(context) {
            Poll::Ready(Err(failure)) => Poll::Ready(Err(self.fail(failure))),
            Poll::Ready(Ok(())) => Poll::Ready(Ok(())),
            Poll::Pending => Poll::Pending,
        }
    }

    pub(super) fn first_byte_at(&self) -> Option<Instant> {
        self.progress.timing.first_byte_at
    }

    pub(super) fn completed(&self) -> Option<Completed> {
        self.outcome.as_ref()?.as_ref().ok().copied()
    }

    /// Whether all of the response came.
    pub(super) fn is_received(&self) -> bool {
        matches!(self.outcome, Some(Ok(_)))
            && self.inbox.content.is_empty()
            && self.inbox.trailers.is_none()
    }

    /// Bytes of content that are still to come, if they are known.
    pub(super) fn content_left(&self) -> Option<u64> {
        let here = self.inbox.content.len() as u64;
        match (&self.place, &self.outcome) {
            (_, Some(Ok(_))) => Some(here),
            (Some(place), _) => Some(place.connection()?.decoder.content_left()? + here),
            (None, _) => None,
        }
    }

    pub(super) fn into_untouched_body(self) -> Option<B> {
        self.upload.into_untouched()
    }

    /// Takes the connection over behind a response that made a tunnel of it.
    pub(super) fn upgrade(mut self) -> Option<Upgraded> {
        let is_tunnel = |place: &ConnectionGuard| {
            place
                .connection()
                .is_some_and(|connection| connection.decoder.is_tunnel())
        };
        let place = self.place.take_if(|place| is_tunnel(place))?;
        Some(Upgraded::http1(place, self.inbox.surplus.into()))
    }

    /// Sends and reads until something came; an error ends the exchange.
    fn poll_progress(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Incomplete>> {
        if let Some(Err(incomplete)) = &self.outcome {
            return Poll::Ready(Err(incomplete.clone()));
        }
        if let Poll::Ready(Err(failure)) = self.poll_send(context) {
            return Poll::Ready(Err(self.fail(failure)));
        }
        match ready!(self.poll_receive(context)) {
            Ok(()) => Poll::Ready(Ok(())),
            Err(failure) => Poll::Ready(Err(self.fail(failure))),
        }
    }

    /// Ready once the request is sent, or cannot be: the response may still say why.
    fn poll_send(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Failure>> {
        let is_over = self.progress.timing.sent_at.is_some() || self.is_withheld;
        if is_over || self.progress.write_error.is_some() {
            return Poll::Ready(Ok(()));
        }
        let Some(place) = &mut self.place else {
            return Poll::Ready(Ok(()));
        };
        let (destination, connection) = place.parts();
        loop {
            let is_body_pending = stage(
                connection,
                &mut self.upload,
                &mut self.owes_line_end,
                &mut self.is_ended,
                context,
            )?;
            let written = connection.poll_write(context, &mut self.progress.written);
            match ready!(written) {
                Ok(()) if self.is_ended => {
                    self.progress.timing.sent_at = Some(destination.now());
                    return Poll::Ready(Ok(()));
                }
                Ok(()) if is_body_pending => return Poll::Pending,
                Ok(()) => {}
                Err(error) if may_have_answered(&error) => {
                    self.progress.write_error = Some(error);
                    return Poll::Ready(Ok(()));
                }
                Err(error) => {
                    return Poll::Ready(Err(tls::failure(self.progress.timing.phase(), &error)));
                }
            }
        }
    }

    /// Reads once.
    fn poll_receive(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Failure>> {
        let Some(place) = &mut self.place else {
            return Poll::Ready(Ok(()));
        };
        if let Some(end) = ready!(poll_read(
            place,
            &mut self.progress,
            &mut self.inbox,
            context
        ))? {
            self.complete(end);
        }
        Poll::Ready(Ok(()))
    }

    /// The response is complete; a connection that can be used again goes back to the pool.
    fn complete(&mut self, End { done, is_clean }: End) {
        let is_clean = is_clean && self.inbox.uwsgi.is_none();
        let phases = self.progress.timing.completed(done);
        let status = self
            .place
            .as_ref()
            .and_then(ConnectionGuard::connection)
            .map_or(0, |connection| connection.decoder.status());
        self.outcome = Some(Ok(Completed {
            status,
            phases,
            bytes_sent: self.progress.written,
            bytes_received: self.progress.received,
            done,
            reusable: is_clean,
            surplus: false,
        }));
        let is_tunnel = |place: &mut ConnectionGuard| {
            let connection = place.connection();
            !connection.is_some_and(|connection| connection.decoder.is_tunnel())
        };
        if let Some(place) = self.place.take_if(is_tunnel)
            && is_clean
        {
            give_back(place, done);
        }
    }

    /// Ends the exchange; the connection is closed.
    fn fail(&mut self, failure: Failure) -> Incomplete {
        let now = self
            .place
            .take()
            .map_or(self.progress.timing.begun, |place| {
                place.destination().now()
            });
        let incomplete = Incomplete {
            failure: super::resolved(failure, self.progress.is_reused),
            phases: self.progress.timing.partial(),
            bytes_sent: self.progress.written,
            bytes_received: self.progress.received,
            done: now,
        };
        self.outcome = Some(Err(incomplete.clone()));
        incomplete
    }
}

/// Gives a connection that can carry another exchange back to its pool, unless it has carried as many as it may.
fn give_back(mut place: ConnectionGuard, done: Instant) {
    let (destination, connection) = place.parts();
    connection.is_used = true;
    connection.carried += 1;
    connection.out.shrink_to(KEPT_BYTES);
    // Dropped before it is given back, it is closed.
    if connection.carried < destination.options().exchanges {
        place.give_back(done);
    }
}

/// The end of a response.
struct End {
    done: Instant,
    /// The connection can carry another exchange.
    is_clean: bool,
}

/// Reads once and decodes.
fn poll_read(
    place: &mut ConnectionGuard,
    progress: &mut Progress,
    inbox: &mut Inbox,
    context: &mut Context<'_>,
) -> Poll<Result<Option<End>, Failure>> {
    let (destination, connection) = place.parts();
    if let Some(left) = connection
        .decoder
        .content_left()
        .filter(|left| *left >= DIRECT_BYTES)
        && let Stream::Tcp(stream) = &connection.stream
    {
        let most =
            usize::try_from(left).map_or(ReadBuffer::BYTES, |left| left.min(ReadBuffer::BYTES));
        let mut piece = Vec::with_capacity(most);
        let count = match ready!(poll_recv_spare(stream, context, &mut piece)) {
            Ok(count) if count > 0 => count,
            Ok(_) => return Poll::Ready(Err(cut_off(connection, progress))),
            Err(error) => return Poll::Ready(Err(tls::failure(Phase::Receive, &error))),
        };
        progress.received += count as u64;
        let is_complete = connection.decoder.skip_content(count);
        inbox.content = piece;
        return Poll::Ready(Ok(is_complete.then(|| End {
            done: destination.now(),
            is_clean: progress.timing.sent_at.is_some() && connection.decoder.is_persistent(),
        })));
    }
    let memory = &mut *destination.buffer().memory();
    let mut read = ReadBuf::new(memory);
    if let Err(error) = ready!(Pin::new(&mut connection.stream).poll_read(context, &mut read)) {
        let error = progress.write_error.take().unwrap_or(error);
        return Poll::Ready(Err(tls::failure(progress.timing.phase(), &error)));
    }
    let bytes = read.filled();
    progress.received += bytes.len() as u64;
    if bytes.is_empty() {
        let phase = progress.timing.phase();
        return Poll::Ready(match connection.decoder.end_of_stream() {
            Ok(()) => Ok(Some(End {
                done: destination.now(),
                is_clean: false,
            })),
            // The reset was reported to the write, and reading then finds a mere end.
            Err(error) => Err(match progress.write_error.take() {
                Some(error) => tls::failure(phase, &error),
                None => error.failure(phase),
            }),
        });
    }
    let is_first = progress.timing.first_byte_at.is_none();
    let first_byte_at = *progress
        .timing
        .first_byte_at
        .get_or_insert_with(|| destination.now());
    let bytes = match &mut inbox.uwsgi {
        None => Cow::Borrowed(bytes),
        Some(start) => match start.read(bytes)? {
            Some(bytes) => bytes,
            None => return Poll::Ready(Ok(None)),
        },
    };
    let decoded = connection
        .decoder
        .decode(&bytes, inbox, &mut KnownHead::new());
    let Decoded { consumed, complete } = decoded.map_err(|error| error.failure(Phase::Receive))?;
    if !complete {
        return Poll::Ready(Ok(None));
    }
    if connection.decoder.is_tunnel() {
        inbox.surplus.extend_from_slice(&bytes[consumed..]);
    }
    Poll::Ready(Ok(Some(End {
        // A response that came in one read was complete when its first byte came.
        done: if is_first {
            first_byte_at
        } else {
            destination.now()
        },
        is_clean: consumed == bytes.len()
            && progress.timing.sent_at.is_some()
            && connection.decoder.is_persistent(),
    })))
}

/// The connection ended within content.
fn cut_off(connection: &mut Http1Connection, progress: &mut Progress) -> Failure {
    let phase = progress.timing.phase();
    match (
        progress.write_error.take(),
        connection.decoder.end_of_stream(),
    ) {
        (Some(error), _) => tls::failure(phase, &error),
        (None, Err(error)) => error.failure(phase),
        (None, Ok(())) => Failure::new(phase, FailureKind::Closed),
    }
}

/// Stages what is ready of a body; true if more of it is waited for. Fails if the body does.
fn stage<B: Body<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>> + Unpin>(
    connection: &mut Http1Connection,
    upload: &mut Upload<B>,
    owes_line_end: &mut bool,
    is_ended: &mut bool,
    context: &mut Context<'_>,
) -> Result<bool, Failure> {
    let is_chunked = upload.length() == BodyLength::Chunked;
    while connection.chunk.is_empty() && connection.out.len() < GATHERED_BYTES && !*is_ended {
        if std::mem::take(owes_line_end) {
            connection.out.extend_from_slice(b"\r\n");
        }
        let piece = match upload.poll_piece(context) {
            Poll::Ready(piece) => piece?,
            Poll::Pending => return Ok(true),
        };
        match piece {
            BodyPart::Data(data) => {
                connection.stage(data, is_chunked);
                *owes_line_end = is_chunked && !connection.chunk.is_empty();
            }
            BodyPart::Trailers(trailers) => {
                last_chunk(&mut connection.out, &lines(&trailers));
                *is_ended = true;
            }
            BodyPart::End => {
                if is_chunked {
                    last_chunk(&mut connection.out, b"");
                }
                *is_ended = true;
            }
        }
    }
    Ok(false)
}

/// Trailers as lines.
fn lines(trailers: &HeaderMap) -> Vec<u8> {
    let mut lines = Vec::new();
    for (name, value) in trailers {
        // A field of a map is one that can be written.
        put_field(&mut lines, name.as_str().as_bytes(), value.as_bytes()).ok();
    }
    lines
}

/// Appends the head of a request.
fn encode(
    out: Vec<u8>,
    destination: &Destination,
    head: &Head<'_>,
    length: BodyLength,
) -> Result<Vec<u8>, h1::HeadError> {
    let absolute;
    let target = match destination.absolute_prefix() {
        Some(prefix) if !head.is_connect() => {
            absolute = format!("{prefix}{}", head.target);
            &absolute
        }
        _ => head.target,
    };
    let mut request = RequestHead::after(out, head.method, target)?;
    let authority = head.authority.unwrap_or(destination.endpoint().authority());
    request.end_to_end_field(b"host", authority.as_bytes())?;
    let mut result = Ok(());
    let mut takes_trailers = false;
    let is_chunked = length == BodyLength::Chunked;
    let is_checked = head.received.is_some_and(ReceivedFields::is_valid);
    let mut put = |is_checked: bool, name: &[u8], value: &[u8]| {
        takes_trailers |= name.len() == 2 && name.eq_ignore_ascii_case(b"te");
        if is_checked {
            request.valid_field(name, value);
        } else if result.is_ok() {
            result = request.end_to_end_field(name, value);
        }
    };
    head.each_received_field(Protocol::Http1, is_chunked, &mut |name, value| {
        put(is_checked, name, value);
    });
    match head.own.lines() {
        Some(lines) => request.lines(lines),
        None => head.each_own_field(&mut |name, value| put(false, name, value)),
    }
    result?;
    if let Some(authorization) = destination.proxy_authorization() {
        request.end_to_end_field(b"proxy-authorization", authorization.as_bytes())?;
    }
    if let Some(protocol) = head.upgrade {
        request.end_to_end_field(b"upgrade", protocol.as_bytes())?;
    }
    let options = match (head.upgrade.is_some(), takes_trailers) {
        (true, true) => Some("upgrade, te"),
        (true, false) => Some("upgrade"),
        (false, true) => Some("te"),
        (false, false) => None,
    };
    if let Some(options) = options {
        request.end_to_end_field(b"connection", options.as_bytes())?;
    }
    if head.expects_continue && length != BodyLength::None {
        request.end_to_end_field(b"expect", b"100-continue")?;
    }
    Ok(request.finish_before(length))
}
