//! What a virtual user has of its stream of server-sent events: the exchange is the opening of the
//! stream, and what comes on it afterwards is counted by itself.

use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue};
use plimsoll_client::{Completed, Http3, Http3Parts, Incomplete, Opening, Request};
use plimsoll_model::{Clock, Exchange, Failure, FailureKind, Phase, Phases};
use plimsoll_wire::SystemClock;
use plimsoll_wire::h1::{ResponseHead, ResponseSink};
use plimsoll_wire::sse::{Decoder, Event, EventSink, Limits, MEDIA_TYPE, is_event_stream};
use tokio::sync::Notify;

use crate::back_off::BackOff;
use crate::pace::{Gate, Start};
use crate::user::Recorder;

/// Bytes of a foreign content type that are reported.
const MOST_OF_TYPE: usize = 100;

/// When a stream that is open is given up: not while a run lasts.
pub(crate) const NEVER: Duration = Duration::from_hours(24 * 365);

/// One stream after the other.
#[derive(Debug)]
pub(crate) struct EventStream {
    gate: Rc<Gate>,
    recorder: Rc<Recorder>,
    decoder: Decoder,
    stage: Stage,
    /// The exchange that opens it.
    start: Option<Start>,
    /// The position of its request.
    request: Option<usize>,
    asked_at: Instant,
    /// When the head came, and then the last event.
    last: Instant,
    /// Bytes of content, which were counted as they came.
    counted: u64,
    has_events: bool,
    /// The opening was counted.
    is_told: bool,
    back_off: BackOff,
}

/// How far a stream has come.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Stage {
    /// The response has not begun.
    Requested,
    /// The response is another one.
    Other,
    /// The response should be a stream and is none.
    Refused(Failure),
    /// It is a stream.
    Open,
    /// It was one.
    Broken(Failure),
}

impl EventStream {
    /// - `seed`: of the jitter of its rests.
    pub(crate) fn new(limits: Limits, gate: Rc<Gate>, recorder: Rc<Recorder>, seed: u64) -> Self {
        let now = gate.run_start();
        Self {
            gate,
            recorder,
            decoder: Decoder::new(limits),
            stage: Stage::Requested,
            start: None,
            request: None,
            asked_at: now,
            last: now,
            counted: 0,
            has_events: false,
            is_told: false,
            back_off: BackOff::new(seed),
        }
    }

    /// A stream is about to be requested.
    ///
    /// - `request`: the position of the request; an ID says nothing to another one.
    pub(crate) fn begin(&mut self, start: &Start, request: usize) {
        if self.request != Some(request) {
            self.request = Some(request);
            self.decoder.forget();
        }
        self.start = Some(*start);
        self.asked_at = start.started;
        self.begin_again();
    }

    /// The same stream is requested once more, the response before having been none.
    pub(crate) fn begin_again(&mut self) {
        self.decoder.restart();
        self.stage = Stage::Requested;
        self.counted = 0;
        self.has_events = false;
        self.is_told = false;
    }

    /// The request with the ID of the last event, if there was one.
    pub(crate) fn dress<'a>(
        &self,
        request: &'a Request,
        into: &'a mut Option<Request>,
    ) -> &'a Request {
        let id = self.decoder.last_event_id();
        let is_value = id.iter().all(|byte| *byte >= b' ' && *byte != 0x7f);
        if id.is_empty() || !is_value || id.trim_ascii() != id {
            return request;
        }
        let dressed = into.get_or_insert_with(|| request.clone());
        dressed.copy_with(request, std::iter::once(("last-event-id", id)));
        dressed
    }

    /// Takes the head of the response.
    pub(crate) fn head(&mut self, status: u16, content_type: Option<&[u8]>) {
        let content_type = content_type.unwrap_or_default();
        self.last = SystemClock.now();
        self.stage = match status {
            200 if is_event_stream(content_type) => Stage::Open,
            200 => Stage::Refused(another_type(content_type)),
            _ => Stage::Other,
        };
        if status == 204 {
            // It must not reconnect: the next request is another client's (section 9.2.3).
            self.decoder.forget();
        }
    }

    /// Counts the opening of the stream.
    ///
    /// - `exchange`: as it stood before the request was begun.
    pub(crate) fn opened(&mut self, mut exchange: Exchange, opening: &Opening) {
        let Some(start) = self.start else { return };
        self.is_told = true;
        exchange.phases.add(&opening.phases);
        exchange.done = opening.done;
        exchange.outcome = Ok(opening.status);
        self.recorder.finish(&start, &exchange);
        if start.in_window {
            self.recorder.streams(|streams| streams.opened += 1);
        }
    }

    /// Takes a piece of the content; returns whether the response has to be given up.
    ///
    /// - `http3`: the connection, over HTTP/3: its datagrams are counted, not what is in them.
    pub(crate) fn content(&mut self, piece: &[u8], http3: Option<&Http3>) -> bool {
        match self.stage {
            Stage::Open => {}
            Stage::Refused(_) | Stage::Broken(_) => return true,
            Stage::Requested | Stage::Other => return false,
        }
        let now = SystemClock.now();
        let is_counted = self.recorder.is_in_window(now) && !self.gate.is_stopping();
        let length = piece.len() as u64;
        let (sent, received) = http3.map_or((0, length), Http3::take_traffic);
        if http3.is_none() {
            self.counted += length;
        }
        if is_counted {
            self.recorder.traffic(now, sent, received);
        }
        let mut counted = Counted::default();
        let result = self.decoder.decode(piece, &mut counted);
        if counted.0 > 0 {
            self.has_events = true;
            self.back_off.carried();
            if is_counted {
                let gap = now.saturating_duration_since(self.last);
                self.recorder.events(counted.0, gap);
            }
            self.last = now;
        }
        let Err(error) = result else {
            return false;
        };
        let failure = Failure::new(Phase::Receive, FailureKind::TooLarge);
        self.stage = Stage::Broken(failure.because(error.to_string()));
        true
    }

    /// Whether the stream was opened, whatever became of it.
    pub(crate) fn was_opened(&self) -> bool {
        matches!(self.stage, Stage::Open | Stage::Broken(_))
    }

    /// Why the response is no stream although it should be.
    pub(crate) fn refusal(&self) -> Option<&Failure> {
        match &self.stage {
            Stage::Refused(failure) => Some(failure),
            _ => None,
        }
    }

    /// Counts what came of asking for a stream: that it ended, or else the exchange.
    ///
    /// - `exchange`: as it stood before the request was begun.
    pub(crate) fn conclude(&mut self, response: Response, mut exchange: Exchange) -> Concluded {
        let (done, phases, traffic, mut outcome, is_reusable) = match response {
            Response::Completed(completed) => (
                completed.done,
                completed.phases,
                (completed.bytes_sent, completed.bytes_received),
                Some(Ok(completed.status)),
                completed.reusable,
            ),
            Response::Failed(incomplete) => (
                incomplete.done,
                incomplete.phases,
                (incomplete.bytes_sent, incomplete.bytes_received),
                Some(Err(incomplete.failure)),
                false,
            ),
            Response::Dropped(traffic) => {
                (SystemClock.now(), Phases::default(), traffic, None, false)
            }
        };
        if self.was_opened() {
            if !self.is_told {
                // It broke before its reader could say that it was opened.
                let mut phases = phases;
                for phase in [Phase::Send, Phase::Wait, Phase::Receive] {
                    phases.set(phase, phases.get(phase).unwrap_or_default());
                }
                let opening = Opening {
                    status: 200,
                    phases,
                    done,
                };
                self.opened(exchange, &opening);
            }
            return Concluded {
                done,
                pause: self.over(outcome.as_ref(), traffic, done),
                is_reusable,
                has_carried: true,
            };
        }
        if let Stage::Refused(failure) = &self.stage {
            outcome = Some(Err(failure.clone()));
        }
        exchange.phases.add(&phases);
        exchange.done = done;
        exchange.bytes_sent += traffic.0;
        exchange.bytes_received += traffic.1;
        // Only a stream is left, and only a refusal given up.
        let outcome =
            outcome.unwrap_or_else(|| Err(Failure::new(Phase::Wait, FailureKind::Aborted)));
        let has_carried = outcome.is_ok();
        exchange.outcome = outcome;
        if let Some(start) = &self.start {
            self.recorder.finish(start, &exchange);
        }
        Concluded {
            done,
            pause: Duration::ZERO,
            is_reusable: is_reusable && has_carried,
            has_carried,
        }
    }

    /// Counts that the stream is over; returns how long to leave its server alone.
    ///
    /// - `outcome`: that its server ended it, or why it broke; `None` if it was given up or left.
    fn over(
        &mut self,
        outcome: Option<&Result<u16, Failure>>,
        (sent, received): (u64, u64),
        done: Instant,
    ) -> Duration {
        let stage = std::mem::replace(&mut self.stage, Stage::Requested);
        let now = SystemClock.now();
        if self.gate.in_window(now) {
            // Heads, frames and the request, which were not counted as they came.
            let uncounted = received.saturating_sub(self.counted);
            self.recorder.traffic(now, sent, uncounted);
            match (&stage, outcome) {
                (Stage::Broken(failure), _) | (_, Some(Err(failure))) => {
                    self.recorder.stream_broke(failure);
                }
                (_, Some(Ok(_))) => self.recorder.streams(|streams| streams.ended += 1),
                (_, None) => self.recorder.streams(|streams| streams.left += 1),
            }
        }
        if !self.has_events && outcome.is_some() {
            self.back_off.lost(self.asked_at);
        }
        let retry = self.decoder.retry().unwrap_or_default();
        retry.max(self.back_off.remaining(done))
    }

    /// When streams are to be left.
    pub(crate) fn gate(&self) -> &Rc<Gate> {
        &self.gate
    }
}

fn another_type(content_type: &[u8]) -> Failure {
    let shown = match &content_type[..content_type.len().min(MOST_OF_TYPE)] {
        b"" => "missing".into(),
        shown => String::from_utf8_lossy(shown),
    };
    Failure::new(Phase::Receive, FailureKind::Protocol)
        .because(format!("the content type is {shown}, not {MEDIA_TYPE}"))
}

/// How many events a piece brought.
#[derive(Debug, Default)]
struct Counted(u64);

impl EventSink for Counted {
    fn event(&mut self, _event: Event<'_>) {
        self.0 += 1;
    }
}

/// What came of asking for a stream.
#[derive(Debug)]
pub(crate) enum Response {
    Completed(Completed),
    Failed(Incomplete),
    /// It was given up, or left with the run; with bytes sent and received until then.
    Dropped((u64, u64)),
}

impl From<Result<Completed, Incomplete>> for Response {
    fn from(result: Result<Completed, Incomplete>) -> Self {
        match result {
            Ok(completed) => Self::Completed(completed),
            Err(incomplete) => Self::Failed(incomplete),
        }
    }
}

/// What that means for the caller.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Concluded {
    pub(crate) done: Instant,
    /// How long the server is to be left alone.
    pub(crate) pause: Duration,
    /// Whether the connection can carry another exchange.
    pub(crate) is_reusable: bool,
    /// Whether the exchange was completed.
    pub(crate) has_carried: bool,
}

/// Lets a stream take what comes over HTTP/1 or HTTP/3.
pub(crate) struct Reading<'a> {
    pub(crate) stream: &'a mut EventStream,
    /// As it stood before the request was begun.
    pub(crate) exchange: Exchange,
    pub(crate) turn: &'a Turn,
    /// The connection, over HTTP/3: its datagrams are counted, not what is in them.
    pub(crate) http3: Option<&'a Http3>,
}

impl Reading<'_> {
    fn take_head(&mut self, status: u16, content_type: Option<&[u8]>) {
        self.stream.head(status, content_type);
        if self.stream.refusal().is_some() {
            self.turn.take(&self.turn.is_given_up);
        }
    }

    pub(crate) fn report_opening(&mut self, opening: &Opening) {
        if self.stream.was_opened() {
            self.stream.opened(self.exchange.clone(), opening);
            self.turn.take(&self.turn.is_open);
        }
    }

    fn take_content(&mut self, piece: &[u8]) {
        if self.stream.content(piece, self.http3) {
            self.turn.take(&self.turn.is_given_up);
        }
    }
}

impl ResponseSink for Reading<'_> {
    fn head(&mut self, head: &ResponseHead<'_>) {
        self.take_head(head.status, head.header("content-type"));
    }

    fn content(&mut self, piece: &[u8]) {
        self.take_content(piece);
    }
}

impl Http3Parts for Reading<'_> {
    fn head(&mut self, status: u16, fields: &HeaderMap) {
        let content_type = fields.get(CONTENT_TYPE);
        self.take_head(status, content_type.map(HeaderValue::as_bytes));
    }

    fn opened(&mut self, opening: &Opening) {
        self.report_opening(opening);
    }

    fn content(&mut self, piece: &[u8]) {
        self.take_content(piece);
    }
}

/// What the reader of a response has to know of it meanwhile.
#[derive(Debug, Default)]
pub(crate) struct Turn {
    is_open: Cell<bool>,
    is_given_up: Cell<bool>,
    taken: Notify,
}

impl Turn {
    fn take(&self, flag: &Cell<bool>) {
        flag.set(true);
        self.taken.notify_waiters();
    }

    /// Waits until the response turned out to be a stream.
    async fn open(&self) {
        while !self.is_open.get() {
            self.taken.notified().await;
        }
    }

    /// Waits until the response has to be given up.
    pub(crate) async fn given_up(&self) {
        while !self.is_given_up.get() {
            self.taken.notified().await;
        }
    }

    /// Waits until `deadline`; for ever, once there is a stream.
    pub(crate) async fn overdue(&self, deadline: Instant) {
        tokio::select! {
            biased;
            () = self.open() => std::future::pending().await,
            () = tokio::time::sleep_until(deadline.into()) => {}
        }
    }

    /// Waits until there is a stream and the run is over.
    pub(crate) async fn left(&self, gate: &Gate) {
        gate.wait_for_stop().await;
        self.open().await;
    }
}
