//! One request on its way into the log: begun when it was read, written when its response is over.

use std::cell::RefCell;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;
use http::StatusCode;
use http_body::{Body, Frame, SizeHint};
use plimsoll_model::Clock;
use plimsoll_wire::SystemClock;

use crate::action::{Action, Answer, Outcome, Refusal};
use crate::message::request::{Content, Notes, Request};
use crate::message::response::{Kind, Response, ResponseBody, StreamError, has_content};
use crate::observe::access_log::AccessLog;
use crate::observe::access_log::line;
use crate::place::{Captured, CapturedValues, EndValues, Place, ResponseValues, Values};

/// Lets another action answer, and notes it.
pub(super) struct Logged {
    inner: Rc<dyn Action>,
    log: Rc<Log>,
}

/// The log of one worker.
struct Log {
    sink: AccessLog,
    clock: SystemClock,
    memory: RefCell<Memory>,
}

/// Memory that is kept from one line to the next.
#[derive(Default)]
struct Memory {
    line: Vec<u8>,
    value: Vec<u8>,
}

/// nginx's status for a client that left before there was a response.
const CLIENT_GONE: u16 = 499;

impl Logged {
    pub(super) fn new(log: AccessLog, inner: Rc<dyn Action>) -> Self {
        Self {
            inner,
            log: Rc::new(Log {
                sink: log,
                clock: SystemClock,
                memory: RefCell::default(),
            }),
        }
    }
}

impl Action for Logged {
    fn handle(&self, request: &Request<'_>) -> Answer {
        let clock = &self.log.clock;
        let (since, time) = (clock.now(), clock.wall());
        let answer = self.inner.handle(request);
        let noted = request.content().notes();
        // A route may still hand over to one with another log, but not once there is a response.
        if matches!(answer, Answer::Now(_)) && !self.log.sink.takes(&noted) {
            return answer;
        }
        let mut entry = Entry::begin(Rc::clone(&self.log), request, (since, time));
        entry.noted = noted;
        entry.kept = request.content().kept();
        match answer {
            Answer::Now(outcome) => Answer::Now(entry.note(outcome)),
            Answer::Later(later) => Answer::Later(Box::pin(async move {
                let outcome = later.await;
                entry.note(outcome)
            })),
        }
    }

    fn refused(&self, refusal: &Refusal) {
        let places = &self.log.sink.format.0.of_request;
        let captured = Captured::read(places, refusal);
        self.log.write(&EndValues {
            captured: captured.with(places),
            head: CapturedValues::default(),
            notes: &Notes::default(),
            time: self.log.clock.wall(),
            status: refusal.error.status(),
            bytes: 0,
            duration: Duration::ZERO,
            is_whole: true,
            refused: Some(refusal.error.name()),
        });
    }
}

/// Of a request that could not be read, the connection alone is known.
impl Values for Refusal {
    fn write(&self, place: &Place, out: &mut Vec<u8>) -> bool {
        let text = match place {
            Place::Client => self.peer.ip().to_canonical().to_string(),
            Place::Peer => self.peer.to_string(),
            Place::Protocol => self.version.name().to_owned(),
            _ => return false,
        };
        out.extend_from_slice(text.as_bytes());
        true
    }
}

impl Log {
    fn write(&self, values: &EndValues<'_>) {
        if !self.sink.takes(values.notes) {
            return;
        }
        let Memory { line, value } = &mut *self.memory.borrow_mut();
        if !self.sink.format.0.has_line(values, value) {
            return;
        }
        line.clear();
        line::write(&self.sink.format.0, values, value, line);
        self.sink.handle.0.push(line);
    }
}

/// Written when it is dropped, whatever became of the request until then.
struct Entry {
    log: Rc<Log>,
    since: Instant,
    time: SystemTime,
    is_head: bool,
    /// Values of the request.
    captured: Captured,
    /// Values of the head of its response.
    head: Captured,
    noted: Notes,
    /// The request, if it was kept: more may be noted about it.
    kept: Option<Rc<Content>>,
    status: u16,
    bytes: u64,
    is_whole: bool,
}

impl Entry {
    fn begin(log: Rc<Log>, request: &Request<'_>, (since, time): (Instant, SystemTime)) -> Self {
        Self {
            since,
            time,
            is_head: request.method == "HEAD",
            captured: Captured::read(&log.sink.format.0.of_request, request),
            head: Captured::default(),
            log,
            noted: Notes::default(),
            kept: None,
            status: CLIENT_GONE,
            bytes: 0,
            is_whole: false,
        }
    }

    /// Keeps the values of the response's head that the format has.
    fn capture_head(&mut self, response: &mut Response) {
        let layout = &*self.log.sink.format.0;
        if layout.of_head.is_empty() {
            return;
        }
        let values = ResponseValues {
            captured: self.captured.with(&layout.of_request),
            notes: &self.noted,
            status: response.status(),
            fields: response.fields(),
        };
        self.head = Captured::read(&layout.of_head, &values);
    }

    /// Notes what becomes of the request; content that comes in pieces is noted at its end.
    fn note(mut self, outcome: Outcome) -> Outcome {
        if let Some(kept) = self.kept.take() {
            self.noted = kept.notes();
        }
        let response = match outcome {
            Outcome::Respond(mut response) => {
                self.capture_head(&mut response);
                response
            }
            Outcome::Upgrade(mut response, take_over) => {
                self.capture_head(&mut response);
                self.status = StatusCode::SWITCHING_PROTOCOLS.as_u16();
                self.is_whole = true;
                return Outcome::Upgrade(response, take_over);
            }
            Outcome::Raw(take_over) => {
                self.status = 0;
                self.is_whole = true;
                return Outcome::Raw(take_over);
            }
        };
        let status = response.status();
        self.status = status.as_u16();
        let has_content = !self.is_head && has_content(status);
        Outcome::Respond(match response.0 {
            Kind::Built(mut built) => {
                match std::mem::take(&mut built.content) {
                    ResponseBody::Stream(inner) if has_content => {
                        let counted = CountedBody { inner, entry: self };
                        built.content = ResponseBody::Stream(Box::pin(counted));
                    }
                    content => {
                        if has_content {
                            self.bytes = match &content {
                                ResponseBody::Bytes(bytes) => bytes.len() as u64,
                                ResponseBody::File(part) => part.length(),
                                ResponseBody::Empty
                                | ResponseBody::Announced(_)
                                | ResponseBody::Stream(_) => 0,
                            };
                        }
                        self.is_whole = true;
                        built.content = content;
                    }
                }
                Response(Kind::Built(built))
            }
            Kind::Prepared(prepared) => {
                if has_content {
                    self.bytes = prepared.content.length();
                }
                self.is_whole = true;
                Response(Kind::Prepared(prepared))
            }
        })
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let duration = self.log.clock.now().saturating_duration_since(self.since);
        let layout = &*self.log.sink.format.0;
        self.log.write(&EndValues {
            captured: self.captured.with(&layout.of_request),
            head: self.head.with(&layout.of_head),
            notes: &self.noted,
            time: self.time,
            status: self.status,
            bytes: self.bytes,
            duration,
            is_whole: self.is_whole,
            refused: None,
        });
    }
}

/// Content whose bytes are counted.
struct CountedBody {
    inner: Pin<Box<dyn Body<Data = Bytes, Error = StreamError>>>,
    entry: Entry,
}

impl Body for CountedBody {
    type Data = Bytes;
    type Error = StreamError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, StreamError>>> {
        let this = self.get_mut();
        let polled = this.inner.as_mut().poll_frame(cx);
        match &polled {
            Poll::Ready(None) => this.entry.is_whole = true,
            Poll::Ready(Some(Ok(frame))) => match frame.data_ref() {
                Some(data) => this.entry.bytes += data.len() as u64,
                // Nothing comes after trailers.
                None => this.entry.is_whole = true,
            },
            Poll::Ready(Some(Err(_))) | Poll::Pending => {}
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
