//! Who makes the exchanges of a run: one per connection, each a task of its worker.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_client::grpc::GrpcAnswer;
use plimsoll_model::{EventFigures, Exchange, Failure, FailureCount, Messages};

use crate::pace::{Finished, Pacer, Start};
use crate::plan::StatusSet;
use crate::progress::Progress;
use crate::recorder::Interval;

use std::cell::{RefCell, RefMut};

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

/// Where the virtual users of one worker count their exchanges.
#[derive(Debug)]
pub struct Recorder {
    interval: RefCell<Box<Interval>>,
    progress: Arc<Progress>,
    fail_statuses: StatusSet,
}

impl Recorder {
    pub(crate) fn new(
        interval: Box<Interval>,
        progress: Arc<Progress>,
        fail_statuses: StatusSet,
    ) -> Self {
        Self {
            interval: RefCell::new(interval),
            progress,
            fail_statuses,
        }
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
        self.progress.complete();
        let mut interval = self.interval.borrow_mut();
        if !start.in_window {
            interval.counts.warm_up += 1;
            return;
        }
        interval.record(exchange);
        if let Ok(status) = exchange.outcome {
            let mut is_unmet = false;
            for position in unmet {
                interval.unmet[position] += 1;
                is_unmet = true;
            }
            let mut is_error = self.fail_statuses.contains(status);
            if let Some(answer) = answer {
                interval.record_grpc(answer);
                is_error |= !answer.status.is_ok();
            }
            if is_error {
                interval.counts.failed_status += 1;
            } else if is_unmet {
                interval.counts.unmet += 1;
            }
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

    /// Counts bytes that are those of no exchange that is yet to be counted.
    pub(crate) fn traffic(&self, sent: u64, received: u64) {
        let mut interval = self.interval.borrow_mut();
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
