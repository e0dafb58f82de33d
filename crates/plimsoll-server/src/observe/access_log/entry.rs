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
use crate::observe::access_log::line::{self, LoggedRequest, Record};

/// Lets another action answer, and notes it.
pub(super) struct Logged {
    inner: Rc<dyn Action>,
    log: Rc<Log>,
}

/// The log of one worker.
struct Log {
    sink: AccessLog,
    clock: SystemClock,
    line: RefCell<Vec<u8>>,
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
                line: RefCell::default(),
            }),
        }
    }
}

impl Action for Logged {
    fn handle(&self, request: &Request<'_>) -> Answer {
        let mut entry = Entry::begin(Rc::clone(&self.log), request);
        let answer = self.inner.handle(request);
        entry.noted = request.content().notes();
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
        self.log.write(&Record {
            time: self.log.clock.wall(),
            peer: refusal.peer,
            request: None,
            version: refusal.version.name(),
            user: None,
            status: refusal.error.status(),
            bytes: 0,
            duration: Duration::ZERO,
            route: None,
            request_id: None,
            trace: None,
            upstream: None,
            is_whole: true,
            refused: Some(refusal.error),
        });
    }
}

impl Log {
    fn write(&self, record: &Record<'_>) {
        let line = &mut *self.line.borrow_mut();
        line.clear();
        line::write(self.sink.format, record, line);
        self.sink.handle.0.push(line);
    }
}

/// Written when it is dropped, whatever became of the request until then.
struct Entry {
    log: Rc<Log>,
    since: Instant,
    time: SystemTime,
    peer: std::net::SocketAddr,
    version: &'static str,
    is_head: bool,
    texts: Texts,
    noted: Notes,
    /// The request, if it was kept: more may be noted about it.
    kept: Option<Rc<Content>>,
    status: u16,
    bytes: u64,
    is_whole: bool,
}

/// The client's texts, in one piece of memory.
#[derive(Default)]
struct Texts {
    bytes: Vec<u8>,
    /// End of each part, if it is present.
    ends: [(usize, bool); 6],
}

impl Texts {
    fn of(request: &Request<'_>) -> Self {
        let texts = [
            Some(request.method.as_bytes()),
            Some(request.authority.as_bytes()),
            Some(request.path.as_bytes()),
            request.query.map(str::as_bytes),
            request.header("referer"),
            request.header("user-agent"),
        ];
        let length = texts.iter().flatten().map(|text| text.len()).sum();
        let mut bytes = Vec::with_capacity(length);
        let ends = texts.map(|text| {
            bytes.extend_from_slice(text.unwrap_or_default());
            (bytes.len(), text.is_some())
        });
        Self { bytes, ends }
    }

    fn request(&self) -> LoggedRequest<'_> {
        let text = |at: usize| {
            let from = at.checked_sub(1).map_or(0, |before| self.ends[before].0);
            let (end, is_there) = self.ends[at];
            is_there.then(|| &self.bytes[from..end])
        };
        LoggedRequest {
            method: text(0).unwrap_or_default(),
            host: text(1).unwrap_or_default(),
            path: text(2).unwrap_or_default(),
            query: text(3),
            referer: text(4),
            user_agent: text(5),
        }
    }
}

impl Entry {
    fn begin(log: Rc<Log>, request: &Request<'_>) -> Self {
        Self {
            since: log.clock.now(),
            time: log.clock.wall(),
            log,
            peer: request.peer,
            version: request.version.name(),
            is_head: request.method == "HEAD",
            texts: Texts::of(request),
            noted: Notes::default(),
            kept: None,
            status: CLIENT_GONE,
            bytes: 0,
            is_whole: false,
        }
    }

    /// Notes what becomes of the request; content that comes in pieces is noted at its end.
    fn note(mut self, outcome: Outcome) -> Outcome {
        if let Some(kept) = self.kept.take() {
            self.noted = kept.notes();
        }
        let response = match outcome {
            Outcome::Respond(response) => response,
            Outcome::Upgrade(response, take_over) => {
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
        self.log.write(&Record {
            time: self.time,
            peer: self.peer,
            request: Some(self.texts.request()),
            version: self.version,
            user: self.noted.user.as_deref(),
            status: self.status,
            bytes: self.bytes,
            duration,
            route: self.noted.route.as_ref().map(|route| &**route.name()),
            request_id: self.noted.request_id.as_deref(),
            trace: self.noted.trace.map(|note| note.trace),
            upstream: self.noted.upstream.as_ref(),
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
