//! Counters of a running worker that others may look at any time.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};

use crate::worker::recorder::Interval;

/// Written by one worker, read by the sampler; on a cache line of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Progress {
    begun: AtomicU64,
    completed: AtomicU64,
    responses: AtomicU64,
    ok: AtomicU64,
    errors: AtomicU64,
    latencies: AtomicU64,
    latency_nanos: AtomicU64,
}

/// Interim report of a worker: figures of the measured window until then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ProgressReport {
    /// Complete responses.
    pub(crate) ok: u64,
    /// Everything that an objective on errors counts.
    pub(crate) errors: u64,
    /// Exchanges that have a latency, and the sum of it from their actual starts.
    pub(crate) latencies: u64,
    pub(crate) latency_nanos: u64,
}

impl ProgressReport {
    /// Adds what `interval` counted.
    pub(crate) fn add(&mut self, interval: &Interval) {
        self.ok += interval.counts.ok;
        self.errors += interval.counts.errors();
        self.latencies += interval.from_started.observed().len();
        self.latency_nanos += interval.latency_nanos;
    }

    /// Adds another worker's report.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.ok += other.ok;
        self.errors += other.errors;
        self.latencies += other.latencies;
        self.latency_nanos += other.latency_nanos;
    }
}

impl Progress {
    /// One more exchange was begun. Only its worker may call this.
    #[inline]
    pub(crate) fn begin(&self) {
        // There is one writer, so a plain load and store will do.
        let begun = self.begun.load(Ordering::Relaxed);
        self.begun.store(begun + 1, Ordering::Relaxed);
    }

    /// One more exchange ended. Only its worker may call this.
    ///
    /// - `has_response`: whether it ended with a complete response.
    #[inline]
    pub(crate) fn complete(&self, has_response: bool) {
        let completed = self.completed.load(Ordering::Relaxed);
        self.completed.store(completed + 1, Ordering::Relaxed);
        if has_response {
            let responses = self.responses.load(Ordering::Relaxed);
            self.responses.store(responses + 1, Ordering::Relaxed);
        }
    }

    /// Adds responses that another process got. Only one thread may call this.
    pub(crate) fn add_responses(&self, more: u64) {
        let responses = self.responses.load(Ordering::Relaxed);
        self.responses.store(responses + more, Ordering::Relaxed);
    }

    /// Complete responses, those of the warm-up and of the grace period included.
    pub(crate) fn responses(&self) -> u64 {
        self.responses.load(Ordering::Relaxed)
    }

    /// Exchanges that came to an end.
    pub(crate) fn completed(&self) -> u64 {
        self.completed.load(Ordering::Relaxed)
    }

    /// Publishes the counts so far. Only its worker may call this.
    pub(crate) fn report(&self, report: ProgressReport) {
        self.ok.store(report.ok, Ordering::Relaxed);
        self.errors.store(report.errors, Ordering::Relaxed);
        self.latencies.store(report.latencies, Ordering::Relaxed);
        self.latency_nanos
            .store(report.latency_nanos, Ordering::Relaxed);
    }

    /// The last report.
    pub(crate) fn last(&self) -> ProgressReport {
        ProgressReport {
            ok: self.ok.load(Ordering::Relaxed),
            errors: self.errors.load(Ordering::Relaxed),
            latencies: self.latencies.load(Ordering::Relaxed),
            latency_nanos: self.latency_nanos.load(Ordering::Relaxed),
        }
    }

    /// Exchanges under way.
    pub(crate) fn in_flight(&self) -> u64 {
        self.begun
            .load(Ordering::Relaxed)
            .saturating_sub(self.completed())
    }
}

/// How a run is ended early: set once it lets exchanges under way finish, twice it does not wait.
#[derive(Debug, Default)]
pub struct Interrupt {
    signals: AtomicU8,
    called_off: AtomicBool,
}

impl Interrupt {
    /// Asks the run to end; the second time at once.
    pub fn ask(&self) {
        let signals = self.signals.load(Ordering::Relaxed);
        self.signals
            .store(signals.saturating_add(1), Ordering::Relaxed);
    }

    /// Ends the run because of what it found, without a user's signal.
    pub(crate) fn call_off(&self) {
        self.called_off.store(true, Ordering::Relaxed);
    }

    /// Whether the user wants the run to end.
    pub fn is_set(&self) -> bool {
        self.signals.load(Ordering::Relaxed) > 0
    }

    /// Whether the run is to end, for whatever reason.
    pub(crate) fn is_over(&self) -> bool {
        self.is_set() || self.called_off.load(Ordering::Relaxed)
    }

    /// Whether it has to end without waiting.
    pub fn is_urgent(&self) -> bool {
        self.signals.load(Ordering::Relaxed) > 1
    }
}
