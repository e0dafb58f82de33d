//! Virtual users, which make the exchanges of a run: one per connection, each a task of its worker.

use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use plimsoll_client::grpc::GrpcAnswer;
use plimsoll_model::{
    Clock, DecodedBytes, EventFigures, Exchange, Failure, FailureCount, FailureKind, Messages,
    RequestFigures, RequestNames, WindowBytes,
};

use plimsoll_wire::SystemClock;

use crate::plan::StatusSet;
use crate::run::progress::Progress;
use crate::worker::pace::{Finished, Pacer, Start};
use crate::worker::recorder::Interval;

use std::cell::{Cell, RefCell, RefMut};

/// Makes exchanges, one at a time, whenever it is given leave.
#[expect(async_fn_in_trait, reason = "a worker's tasks stay on its thread")]
pub trait VirtualUser {
    /// Makes one exchange and counts it with `recorder`.
    async fn exchange(&mut self, start: Start, recorder: &Recorder) -> Finished;
}

/// Lets `user` make exchanges until its pacer says that there are no more.
pub(crate) async fn live<V: VirtualUser>(mut user: V, mut pacer: Pacer, recorder: Rc<Recorder>) {
    let mut last = None;
    while let Some(start) = pacer.next(last).await {
        recorder.begin(&start);
        last = Some(user.exchange(start, &recorder).await);
    }
}

/// An exchange under way; one that is dropped with its user is counted as aborted.
#[derive(Debug)]
pub(crate) struct UnderWay<'a> {
    recorder: &'a Recorder,
    start: Start,
}

impl<'a> UnderWay<'a> {
    #[inline]
    pub(crate) fn new(recorder: &'a Recorder, start: Start) -> Self {
        Self { recorder, start }
    }

    /// The exchange was counted.
    #[inline]
    pub(crate) fn finished(self) {
        std::mem::forget(self);
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.recorder.abort(&self.start);
    }
}

/// Where the virtual users of one worker count their exchanges.
#[derive(Debug)]
pub struct Recorder {
    interval: RefCell<Box<Interval>>,
    progress: Arc<Progress>,
    fail_statuses: StatusSet,
    window_start: Instant,
    /// When the window ends; open until that is known.
    window_end: Cell<Option<Instant>>,
    /// The fewest streams that a server allows at a time, where that is fewer than configured.
    stream_limit: Cell<Option<usize>>,
    /// Responses behind which more bytes came than they announce.
    surplus: Cell<u64>,
    /// Exchanges given up at the end, warm-up included.
    aborted: Cell<u64>,
    /// Only where there are several requests.
    requests: Option<RequestTable>,
}

/// Figures per request.
#[derive(Debug)]
struct RequestTable {
    names: Arc<RequestNames>,
    /// By the positions of the names.
    figures: RefCell<Box<[RequestFigures]>>,
}

impl Recorder {
    /// - `window_end`: when the measured window ends, if the run is bounded by time.
    /// - `names`: those of the requests, which are counted apart if there are several.
    pub(crate) fn new(
        interval: Box<Interval>,
        progress: Arc<Progress>,
        fail_statuses: StatusSet,
        window_start: Instant,
        window_end: Option<Instant>,
        names: &Arc<RequestNames>,
    ) -> Self {
        let requests = names.are_several().then(|| RequestTable {
            names: Arc::clone(names),
            figures: RefCell::new(vec![RequestFigures::default(); names.names().len()].into()),
        });
        Self {
            interval: RefCell::new(interval),
            progress,
            fail_statuses,
            window_start,
            window_end: Cell::new(window_end),
            stream_limit: Cell::new(None),
            surplus: Cell::new(0),
            aborted: Cell::new(0),
            requests,
        }
    }

    /// Ends the measured window at `now` unless it has ended before.
    pub(crate) fn end_window(&self, now: Instant) {
        let end = self.window_end.get();
        self.window_end
            .set(Some(end.map_or(now, |end| end.min(now))));
    }

    /// Whether `now` lies within the measured window.
    #[inline]
    pub(crate) fn is_in_window(&self, now: Instant) -> bool {
        now >= self.window_start && self.window_end.get().is_none_or(|end| now <= end)
    }

    #[inline]
    pub(crate) fn begin(&self, start: &Start) {
        self.progress.begin();
        let mut interval = self.interval.borrow_mut();
        if start.in_window {
            interval.counts.started += 1;
        }
        if let Some(lag) = start.lag {
            interval.record_lag(lag);
        }
    }

    /// Counts an exchange that met all expectations, or failed.
    #[inline]
    pub fn finish(&self, start: &Start, exchange: &Exchange) {
        self.finish_judged(start, exchange, std::iter::empty());
    }

    /// Counts an exchange.
    ///
    /// - `unmet`: the positions of the conditions that its response did not meet.
    #[inline]
    pub fn finish_judged(
        &self,
        start: &Start,
        exchange: &Exchange,
        unmet: impl Iterator<Item = usize>,
    ) {
        self.count(start, exchange, None, unmet);
    }

    /// Counts a call of gRPC that was answered.
    ///
    /// - `unmet`: as for [`finish_judged`](Self::finish_judged).
    pub(crate) fn finish_call(
        &self,
        start: &Start,
        exchange: &Exchange,
        answer: &GrpcAnswer<'_>,
        unmet: impl Iterator<Item = usize>,
    ) {
        self.count(start, exchange, Some(answer), unmet);
    }

    #[inline]
    fn count(
        &self,
        start: &Start,
        exchange: &Exchange,
        answer: Option<&GrpcAnswer<'_>>,
        unmet: impl Iterator<Item = usize>,
    ) {
        self.progress.complete(exchange.outcome.is_ok());
        let mut interval = self.interval.borrow_mut();
        if self.is_in_window(exchange.done) {
            interval.record_in_window(exchange);
            if let Some(answer) = answer.filter(|_| exchange.outcome.is_ok()) {
                interval.record_grpc_in_window(answer);
            }
        }
        if !start.in_window {
            interval.counts.warm_up += 1;
            return;
        }
        interval.record(exchange);
        let mut is_unmet = false;
        let mut is_error_status = false;
        if let Ok(status) = exchange.outcome {
            for position in unmet {
                interval.unmet[position] += 1;
                is_unmet = true;
            }
            let mut is_error = self.fail_statuses.contains(status);
            if let Some(answer) = answer {
                interval.record_grpc(answer);
                is_error |= !answer.status.is_ok();
            }
            is_error_status = is_error || status >= 400;
            if is_error {
                interval.counts.failed_status += 1;
            } else if is_unmet {
                interval.counts.unmet += 1;
            }
        }
        if let Some(requests) = &self.requests {
            requests.count(start, exchange, is_error_status, is_unmet);
        }
    }

    /// Counts an exchange that is given up now, because the run is over.
    #[cold]
    pub(crate) fn abort(&self, start: &Start) {
        // Of a stream that is open the exchange, its opening, was counted before.
        let aborted = self.aborted.get();
        if aborted == self.progress.in_flight() {
            return;
        }
        self.aborted.set(aborted + 1);
        if !start.in_window {
            return;
        }
        let now = SystemClock.now();
        let mut interval = self.interval.borrow_mut();
        interval.record_aborted(start.intended, start.started, now);
        drop(interval);
        if let Some(requests) = &self.requests {
            requests.abort(start, now);
        }
    }

    /// Moves the figures per request to `interval`; the run is over for this worker.
    pub(crate) fn hand_over_requests(&self, interval: &mut Interval) {
        interval.requests = self
            .requests
            .as_ref()
            .map(|requests| requests.figures.take());
    }

    /// Notes that a server allows only `most` streams at a time, fewer than configured.
    #[cold]
    pub(crate) fn streams_limited(&self, most: usize) {
        let known = self.stream_limit.get();
        self.stream_limit
            .set(Some(known.map_or(most, |known| known.min(most))));
    }

    /// Counts a response behind which more bytes came than it announces.
    #[cold]
    pub(crate) fn surplus(&self) {
        self.surplus.set(self.surplus.get() + 1);
    }

    /// Responses behind which more bytes came than they announce, warm-up included.
    pub(crate) fn surplus_count(&self) -> u64 {
        self.surplus.get()
    }

    /// The fewest streams that a server allows at a time, where that is fewer than configured.
    pub(crate) fn stream_limit(&self) -> Option<usize> {
        self.stream_limit.get()
    }

    /// Counts an exchange whose request is sent again on a fresh connection.
    pub(crate) fn reconnected(&self, start: &Start) {
        if start.in_window {
            self.interval.borrow_mut().counts.reconnects += 1;
        }
    }

    /// Counts a redirect that is followed.
    #[cold]
    pub(crate) fn redirected(&self, start: &Start) {
        if start.in_window {
            self.interval.borrow_mut().counts.redirects += 1;
        }
    }

    /// Counts the content of a response that was decoded.
    pub(crate) fn decoded(&self, start: &Start, lengths: DecodedBytes) {
        if start.in_window {
            self.interval.borrow_mut().decoded.merge(&lengths);
        }
    }

    /// Counts a connection that was opened.
    pub fn connection_opened(&self) {
        self.interval.borrow_mut().connections_opened += 1;
    }

    /// Counts what became of streams of events.
    pub(crate) fn streams(&self, count: impl FnOnce(&mut EventFigures)) {
        let mut interval = self.interval.borrow_mut();
        count(interval.events.get_or_insert_default());
    }

    /// Counts a stream of events that broke after it had been opened.
    pub(crate) fn stream_broke(&self, failure: &Failure) {
        self.interval.borrow_mut().counts.broken += 1;
        self.streams(|streams| {
            streams.broken += 1;
            FailureCount::add(&mut streams.failures, failure);
        });
    }

    /// Counts events that came at once.
    ///
    /// - `gap`: from the one before on the same stream to the first of them.
    pub(crate) fn events(&self, count: u64, gap: Duration) {
        self.streams(|streams| {
            streams.received += count;
            streams.gaps.record(gap);
            for _ in 1..count {
                streams.gaps.record(Duration::ZERO);
            }
        });
    }

    /// Counts bytes that belong to no exchange, at `now`.
    pub(crate) fn traffic(&self, now: Instant, sent: u64, received: u64) {
        let mut interval = self.interval.borrow_mut();
        if self.is_in_window(now) {
            interval
                .bytes_in_window
                .merge(&WindowBytes { sent, received });
        }
        interval.bytes_sent += sent;
        interval.bytes_received += received;
    }

    /// Counts messages of WebSockets.
    pub(crate) fn messages(&self, start: &Start, sent: u64, received: u64) {
        if start.in_window {
            let mut interval = self.interval.borrow_mut();
            interval.messages.merge(&Messages { sent, received });
        }
    }

    /// The interval under way.
    pub(crate) fn interval(&self) -> RefMut<'_, Box<Interval>> {
        self.interval.borrow_mut()
    }

    /// The counters that others look at.
    pub(crate) fn progress(&self) -> &Progress {
        &self.progress
    }

    /// Exchanges under way.
    pub(crate) fn in_flight(&self) -> u64 {
        self.progress.in_flight()
    }
}

impl RequestTable {
    fn abort(&self, start: &Start, now: Instant) {
        let mut figures = self.figures.borrow_mut();
        if let Some(figures) = figures.get_mut(self.names.position(start.request)) {
            figures.aborted += 1;
            let waited = now.saturating_duration_since(start.intended);
            figures.latency.record_at_least(waited);
        }
    }

    fn count(&self, start: &Start, exchange: &Exchange, is_error_status: bool, is_unmet: bool) {
        let mut figures = self.figures.borrow_mut();
        // The table is handed over when the worker ends, and an exchange may end after it.
        let Some(figures) = figures.get_mut(self.names.position(start.request)) else {
            return;
        };
        match &exchange.outcome {
            Ok(_) => {
                figures.ok += 1;
                figures.error_statuses += u64::from(is_error_status);
                figures.unmet += u64::from(is_unmet && !is_error_status);
            }
            Err(failure) => {
                figures.failed += 1;
                // As in the figures of the run: of failures only a timeout has a latency.
                if failure.kind != FailureKind::Timeout {
                    return;
                }
            }
        }
        // In a closed loop both starts are the same.
        figures.latency.record(exchange.latency_from_intended());
    }
}
