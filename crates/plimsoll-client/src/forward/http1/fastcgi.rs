//! One exchange by FastCGI, on a connection of the pool that carries one exchange at a time.

use std::error::Error;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use bytes::Bytes;
use http::Version;
use http_body::{Body, Frame};
use plimsoll_model::{Failure, FailureKind, Phase};
use plimsoll_wire::fastcgi::{CgiHead, RecordDecoder, RecordSink, Records};
use plimsoll_wire::tls;
use tokio::io::{AsyncRead, ReadBuf};

use super::cgi::{content_length, each_parameter};
use super::{GATHERED_BYTES, Http1Connection, Progress, give_back};
use crate::connect::stream::may_have_answered;
use crate::forward::head::Head;
use crate::forward::pool::ConnectionGuard;
use crate::forward::response_head::{Fields, ResponseHead};
use crate::forward::upload::{BodyPart, Upload};
use crate::timing::Timing;
use crate::{Completed, Incomplete};

/// Bytes of messages for the log that are kept of a response.
const MOST_MESSAGES: usize = 2 * 1024;

/// One request and its response.
pub(in crate::forward) struct FastCgiExchange<B> {
    /// Gone once the connection went back to the pool.
    place: Option<ConnectionGuard>,
    upload: Upload<B>,
    /// The record that ends the content was staged.
    is_ended: bool,
    decoder: RecordDecoder,
    inbox: Inbox,
    progress: Progress,
    status: u16,
    outcome: Option<Result<Completed, Incomplete>>,
}

/// What was read.
#[derive(Debug, Default)]
struct Inbox {
    /// Output until the head is whole, then content.
    output: Vec<u8>,
    has_head: bool,
    /// The response has no content: one to HEAD, a 204 or a 304. What comes is left out.
    is_bare: bool,
    /// Content that is still to come, if the head says it. What comes beyond is left out.
    left: Option<u64>,
    messages: Vec<u8>,
}

impl RecordSink for Inbox {
    fn output(&mut self, piece: &[u8]) {
        if self.has_head {
            self.content(piece);
        } else {
            self.output.extend_from_slice(piece);
        }
    }

    fn error(&mut self, piece: &[u8]) {
        let room = MOST_MESSAGES - self.messages.len();
        self.messages
            .extend_from_slice(&piece[..piece.len().min(room)]);
    }
}

impl Inbox {
    fn content(&mut self, piece: &[u8]) {
        if self.is_bare {
            return;
        }
        let length = match &mut self.left {
            None => piece.len(),
            Some(left) => {
                let length =
                    usize::try_from(*left).map_or(piece.len(), |left| left.min(piece.len()));
                *left -= length as u64;
                length
            }
        };
        self.output.extend_from_slice(&piece[..length]);
    }
}

impl<B: Body<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>> + Unpin> FastCgiExchange<B> {
    /// Stages the parameters; they are written with the first poll.
    pub(in crate::forward) fn begin(
        mut place: ConnectionGuard,
        head: &Head<'_>,
        body: B,
        begun: Instant,
    ) -> Result<Self, Failure> {
        let upload = Upload::new(body, head, false, false, None);
        let length = content_length(upload.length(), "FastCGI")?;
        let (destination, connection) = place.parts();
        let mut records = Records::begin(&mut connection.out);
        each_parameter(destination, head, &length, &mut |name, value| {
            records.parameter(name, value);
        });
        records.finish();
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
            upload,
            place: Some(place),
            decoder: RecordDecoder::default(),
            inbox: Inbox {
                is_bare: head.method == "HEAD",
                ..Inbox::default()
            },
            status: 0,
            outcome: None,
        })
    }

    pub(in crate::forward) fn poll_head(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<ResponseHead, Incomplete>> {
        loop {
            match CgiHead::parse(&self.inbox.output) {
                Ok(Some(head)) => return Poll::Ready(Ok(self.head(head))),
                Ok(None) => {}
                Err(error) => {
                    let failure = Failure::new(Phase::Receive, FailureKind::Protocol);
                    return Poll::Ready(Err(self.fail(failure.because(error.to_string()))));
                }
            }
            if matches!(self.outcome, Some(Ok(_))) {
                let cause = match self.inbox.messages.as_slice() {
                    [] => "the application ended the request without a response".to_owned(),
                    said => format!(
                        "the application ended the request without a response: {}",
                        String::from_utf8_lossy(said).trim()
                    ),
                };
                let failure = Failure::new(Phase::Receive, FailureKind::Protocol).because(cause);
                return Poll::Ready(Err(self.fail(failure)));
            }
            ready!(self.poll_progress(context))?;
        }
    }

    /// The head, behind which the output is content.
    fn head(&mut self, head: CgiHead) -> ResponseHead {
        let CgiHead {
            status,
            fields,
            bytes,
        } = head;
        self.status = status.as_u16();
        let inbox = &mut self.inbox;
        inbox.has_head = true;
        inbox.is_bare |= matches!(self.status, 204 | 304);
        inbox.left = fields
            .get("content-length")
            .and_then(|value| std::str::from_utf8(value).ok()?.parse().ok());
        let output = std::mem::take(&mut inbox.output);
        inbox.content(&output[bytes..]);
        ResponseHead {
            status,
            reason: None,
            version: Version::HTTP_11,
            fields: Fields::copied(fields.iter()),
        }
    }

    pub(in crate::forward) fn poll_frame(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Incomplete>>> {
        loop {
            if !self.inbox.output.is_empty() {
                let data = std::mem::take(&mut self.inbox.output);
                return Poll::Ready(Some(Ok(Frame::data(data.into()))));
            }
            if let Some(Ok(_)) = &self.outcome {
                let is_short = !self.inbox.is_bare && self.inbox.left.is_some_and(|left| left > 0);
                if !is_short {
                    return Poll::Ready(None);
                }
                let cause = "the content is shorter than its Content-Length";
                let failure = Failure::new(Phase::Receive, FailureKind::Closed);
                return Poll::Ready(Some(Err(self.fail(failure.because(cause.to_owned())))));
            }
            if let Err(incomplete) = ready!(self.poll_progress(context)) {
                return Poll::Ready(Some(Err(incomplete)));
            }
        }
    }

    pub(in crate::forward) fn poll_upload(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), Incomplete>> {
        match ready!(self.poll_send(context)) {
            Err(failure) => Poll::Ready(Err(self.fail(failure))),
            Ok(()) => Poll::Ready(Ok(())),
        }
    }

    pub(in crate::forward) fn first_byte_at(&self) -> Option<Instant> {
        self.progress.timing.first_byte_at
    }

    pub(in crate::forward) fn completed(&self) -> Option<Completed> {
        self.outcome.as_ref()?.as_ref().ok().copied()
    }

    pub(in crate::forward) fn is_received(&self) -> bool {
        matches!(self.outcome, Some(Ok(_))) && self.inbox.output.is_empty()
    }

    pub(in crate::forward) fn content_left(&self) -> Option<u64> {
        let here = self.inbox.output.len() as u64;
        match &self.outcome {
            Some(Ok(_)) => Some(here + self.inbox.left.unwrap_or_default()),
            _ if self.inbox.is_bare => Some(0),
            _ => Some(self.inbox.left? + here),
        }
    }

    pub(in crate::forward) fn into_untouched_body(self) -> Option<B> {
        self.upload.into_untouched()
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
        if self.progress.timing.sent_at.is_some() || self.progress.write_error.is_some() {
            return Poll::Ready(Ok(()));
        }
        let Some(place) = &mut self.place else {
            return Poll::Ready(Ok(()));
        };
        let (destination, connection) = place.parts();
        loop {
            let is_waiting = stage(connection, &mut self.upload, &mut self.is_ended, context)?;
            match ready!(connection.poll_write(context, &mut self.progress.written)) {
                Ok(()) if self.is_ended => {
                    self.progress.timing.sent_at = Some(destination.now());
                    return Poll::Ready(Ok(()));
                }
                Ok(()) if is_waiting => return Poll::Pending,
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
        let (destination, connection) = place.parts();
        let mut memory = destination.buffer().memory();
        let mut read = ReadBuf::new(&mut memory);
        let polled = Pin::new(&mut connection.stream).poll_read(context, &mut read);
        let phase = self.progress.timing.phase();
        if let Err(error) = ready!(polled) {
            let error = self.progress.write_error.take().unwrap_or(error);
            return Poll::Ready(Err(tls::failure(phase, &error)));
        }
        let bytes = read.filled();
        self.progress.received += bytes.len() as u64;
        if bytes.is_empty() {
            return Poll::Ready(Err(match self.progress.write_error.take() {
                Some(error) => tls::failure(phase, &error),
                None => Failure::new(phase, FailureKind::Closed),
            }));
        }
        let first_byte_at = &mut self.progress.timing.first_byte_at;
        first_byte_at.get_or_insert_with(|| destination.now());
        let decoded = self.decoder.decode(bytes, &mut self.inbox);
        let has_rest = match decoded {
            Ok(rest) => rest.map(|rest| !rest.is_empty()),
            Err(error) => {
                let failure = Failure::new(Phase::Receive, FailureKind::Protocol);
                return Poll::Ready(Err(failure.because(error.to_string())));
            }
        };
        drop(memory);
        if let Some(has_rest) = has_rest {
            self.complete(!has_rest && self.progress.timing.sent_at.is_some());
        }
        Poll::Ready(Ok(()))
    }

    /// The response is complete; a connection that can be used again goes back to the pool.
    fn complete(&mut self, is_clean: bool) {
        let Some(place) = self.place.take() else {
            return;
        };
        let done = place.destination().now();
        self.outcome = Some(Ok(Completed {
            status: self.status,
            phases: self.progress.timing.completed(done),
            bytes_sent: self.progress.written,
            bytes_received: self.progress.received,
            done,
            reusable: is_clean,
            surplus: false,
        }));
        if is_clean {
            give_back(place, done);
        }
    }

    /// Ends the exchange; the connection is closed.
    fn fail(&mut self, failure: Failure) -> Incomplete {
        let place = self.place.take();
        let now = place.map_or(self.progress.timing.begun, |place| {
            place.destination().now()
        });
        let incomplete = Incomplete {
            failure: crate::forward::resolved(failure, self.progress.is_reused),
            phases: self.progress.timing.partial(),
            bytes_sent: self.progress.written,
            bytes_received: self.progress.received,
            done: now,
        };
        self.outcome = Some(Err(incomplete.clone()));
        incomplete
    }
}

/// Stages what is ready of the content; true if more of it is waited for. Fails if the body does.
fn stage<B: Body<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>> + Unpin>(
    connection: &mut Http1Connection,
    upload: &mut Upload<B>,
    is_ended: &mut bool,
    context: &mut Context<'_>,
) -> Result<bool, Failure> {
    while connection.out.len() < GATHERED_BYTES && !*is_ended {
        let piece = match upload.poll_piece(context) {
            Poll::Ready(piece) => piece?,
            Poll::Pending => return Ok(true),
        };
        match piece {
            BodyPart::Data(mut data) => {
                while !data.is_empty() {
                    let length = Records::content_head(&mut connection.out, data.len());
                    connection.out.extend_from_slice(&data.split_to(length));
                }
            }
            // Parameters have been sent; CGI knows no trailers.
            BodyPart::Trailers(_) | BodyPart::End => {
                Records::content_head(&mut connection.out, 0);
                *is_ended = true;
            }
        }
    }
    Ok(false)
}
