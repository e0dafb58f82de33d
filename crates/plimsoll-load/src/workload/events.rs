//! Streams of server-sent events: the exchange is the opening of the stream, and what follows on it is
//! counted by itself.

use std::rc::Rc;
use std::time::{Duration, Instant};

use plimsoll_client::{Http3, Opening, Request};
use plimsoll_model::{Clock, Exchange, Failure, FailureKind, Phase, Phases};
use plimsoll_wire::SystemClock;
use plimsoll_wire::sse::{Decoder, Event, EventSink, Limits, MEDIA_TYPE, is_event_stream};

use super::{Concluded, Head, HttpWorkload, Response, ResponseReader};
use crate::driver::WorkerState;
use crate::source::RequestSource;
use crate::worker::back_off::BackOff;
use crate::worker::pace::{Gate, Start};
use crate::worker::user::Recorder;

/// Bytes of a foreign content type that are reported.
const MOST_OF_TYPE: usize = 100;

/// Opens streams of events, one after the other.
#[derive(Debug)]
pub(crate) struct EventStreams {
    shared: Rc<WorkerState>,
    source: RequestSource,
    /// The request with the ID of the last event.
    dressed: Option<Request>,
    stream: EventStream,
}

impl EventStreams {
    /// - `index`: the user's number in the run; users begin at different requests.
    pub(crate) fn new(shared: &Rc<WorkerState>, limits: Limits, index: usize) -> Self {
        let plan = &shared.plan;
        let seed = plan.seed.wrapping_add(index as u64);
        let (gate, recorder) = (Rc::clone(&shared.gate), Rc::clone(&shared.recorder));
        Self {
            source: RequestSource::new(Rc::clone(&shared.source), plan, index),
            dressed: None,
            stream: EventStream::new(limits, gate, recorder, seed),
            shared: Rc::clone(shared),
        }
    }
}

impl HttpWorkload for EventStreams {
    type Reader = EventStream;

    fn take_up(&mut self, start: &mut Start) -> usize {
        let endpoint = self.source.advance(&self.shared.plan, start.arrival);
        if self.source.has_run_out() {
            self.shared.gate.exhaust();
        }
        start.request = self.source.position();
        self.stream.begin(start, start.request);
        endpoint
    }

    fn request(&mut self) -> (&Request, &mut EventStream) {
        self.stream.begin_again();
        let request = self.source.current(&self.shared.plan);
        let request = self.stream.dress(request, &mut self.dressed);
        (request, &mut self.stream)
    }

    fn method(&self) -> &str {
        self.source.current(&self.shared.plan).method()
    }

    fn reader(&self) -> &EventStream {
        &self.stream
    }

    fn reader_mut(&mut self) -> &mut EventStream {
        &mut self.stream
    }

    fn conclude(
        &mut self,
        _start: &Start,
        response: Response,
        exchange: &mut Exchange,
        _certificate_days: Option<i64>,
    ) -> Concluded {
        self.stream.conclude(response, exchange)
    }
}

/// Reads one stream after the other.
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
    requested_at: Instant,
    /// When the head came, and then the last event.
    last: Instant,
    /// Bytes of content, which were counted as they came.
    counted: u64,
    has_events: bool,
    /// The opening was counted.
    is_opening_counted: bool,
    back_off: BackOff,
}

/// Progress of a stream.
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
    fn new(limits: Limits, gate: Rc<Gate>, recorder: Rc<Recorder>, seed: u64) -> Self {
        let now = gate.run_start();
        Self {
            gate,
            recorder,
            decoder: Decoder::new(limits),
            stage: Stage::Requested,
            start: None,
            request: None,
            requested_at: now,
            last: now,
            counted: 0,
            has_events: false,
            is_opening_counted: false,
            back_off: BackOff::new(seed),
        }
    }

    /// A stream is about to be requested.
    ///
    /// - `request`: the position of the request; the ID of an event belongs to its request.
    fn begin(&mut self, start: &Start, request: usize) {
        if self.request != Some(request) {
            self.request = Some(request);
            self.decoder.forget();
        }
        self.start = Some(*start);
        self.requested_at = start.started;
        self.begin_again();
    }

    /// The same stream is requested once more, the response before having been none.
    fn begin_again(&mut self) {
        self.decoder.restart();
        self.stage = Stage::Requested;
        self.counted = 0;
        self.has_events = false;
        self.is_opening_counted = false;
    }

    /// The request with the ID of the last event, if there was one.
    fn dress<'a>(&self, request: &'a Request, into: &'a mut Option<Request>) -> &'a Request {
        let id = self.decoder.last_event_id();
        let is_value = id.iter().all(|byte| *byte >= b' ' && *byte != 0x7f);
        if id.is_empty() || !is_value || id.trim_ascii() != id {
            return request;
        }
        let dressed = into.get_or_insert_with(|| request.clone());
        dressed.copy_with(request, std::iter::once(("last-event-id", id)));
        dressed
    }

    /// Counts what came of asking for a stream: that it ended, or else the exchange.
    ///
    /// - `exchange`: as it stood before the request was begun.
    fn conclude(&mut self, response: Response, exchange: &mut Exchange) -> Concluded {
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
            if !self.is_opening_counted {
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
                self.opened(exchange.clone(), &opening);
            }
            exchange.done = done;
            return Concluded {
                again: None,
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
            self.recorder.finish(start, exchange);
        }
        Concluded {
            again: None,
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
            self.back_off.lost(self.requested_at);
        }
        let retry = self.decoder.retry().unwrap_or_default();
        retry.max(self.back_off.remaining(done))
    }
}

impl ResponseReader for EventStream {
    const OUTLASTS: bool = true;

    fn wants_head(&self) -> bool {
        true
    }

    fn wants_fields(&self) -> bool {
        true
    }

    fn head(&mut self, head: Head<'_>) {
        let (status, content_type) = (head.status(), head.field("content-type"));
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

    fn content(&mut self, piece: &[u8], http3: Option<&Http3>) -> bool {
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
        let mut counted = EventCount::default();
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

    fn opened(&mut self, mut exchange: Exchange, opening: &Opening) {
        let Some(start) = self.start else { return };
        self.is_opening_counted = true;
        exchange.phases.add(&opening.phases);
        exchange.done = opening.done;
        exchange.outcome = Ok(opening.status);
        self.recorder.finish(&start, &exchange);
        if start.in_window {
            self.recorder.streams(|streams| streams.opened += 1);
        }
    }

    fn was_opened(&self) -> bool {
        matches!(self.stage, Stage::Open | Stage::Broken(_))
    }

    fn is_refused(&self) -> bool {
        matches!(self.stage, Stage::Refused(_))
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

/// Number of events in a piece.
#[derive(Debug, Default)]
struct EventCount(u64);

impl EventSink for EventCount {
    fn event(&mut self, _event: Event<'_>) {
        self.0 += 1;
    }
}
