//! Counters of a running worker that others may look at any time.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};

/// Written by one worker, read by the sampler; on a cache line of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Progress {
    begun: AtomicU64,
    completed: AtomicU64,
}

impl Progress {
    /// One more exchange was begun. Only its worker may call this.
    #[inline]
    pub(crate) fn begin(&self) {
        // There is one writer, so a plain load and store will do.
        let begun = self.begun.load(Ordering::Relaxed);
        self.begun.store(begun + 1, Ordering::Relaxed);
    }

    /// One more exchange came to an end. Only its worker may call this.
    #[inline]
    pub(crate) fn complete(&self) {
        let completed = self.completed.load(Ordering::Relaxed);
        self.completed.store(completed + 1, Ordering::Relaxed);
    }

    /// Exchanges that came to an end.
    pub(crate) fn completed(&self) -> u64 {
        self.completed.load(Ordering::Relaxed)
    }

    /// Exchanges under way.
    pub(crate) fn in_flight(&self) -> u64 {
        self.begun
            .load(Ordering::Relaxed)
            .saturating_sub(self.completed())
    }
}

/// How a run is ended early: asked once it lets exchanges under way finish, twice it does not wait.
#[derive(Debug, Default)]
pub struct Interrupt {
    asked: AtomicU8,
    called_off: AtomicBool,
}

impl Interrupt {
    /// Asks the run to end; the second time at once.
    pub fn ask(&self) {
        let asked = self.asked.load(Ordering::Relaxed);
        self.asked.store(asked.saturating_add(1), Ordering::Relaxed);
    }

    /// Ends the run because of what it found, not because somebody asked.
    pub(crate) fn call_off(&self) {
        self.called_off.store(true, Ordering::Relaxed);
    }

    /// Whether the user asked the run to end.
    pub fn is_asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed) > 0
    }

    /// Whether the run is to end, for whatever reason.
    pub(crate) fn is_over(&self) -> bool {
        self.is_asked() || self.called_off.load(Ordering::Relaxed)
    }

    /// Whether it was asked to end without waiting.
    pub fn is_urgent(&self) -> bool {
        self.asked.load(Ordering::Relaxed) > 1
    }
}
