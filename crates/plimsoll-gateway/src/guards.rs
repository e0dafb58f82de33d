//! What guards of requests have in common: how often they did what, and the end of an answer.

use std::sync::atomic::{AtomicU64, Ordering};

use plimsoll_server::{Answer, Outcome};

/// What a guard did with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GuardOutcome {
    /// Passed, with a token that was verified before.
    Remembered,
    /// Passed, with a token that was verified now, or authorized by the service.
    Verified,
    /// Rejected: it had no token, or the user has to sign in.
    Missing,
    /// Rejected: its token is invalid, or the service responded with a client error.
    Invalid,
    /// Rejected: its token lacks a claim, or the service responded with 403.
    Forbidden,
    /// Rejected: there are no keys, or the service is unavailable.
    Unavailable,
}

impl GuardOutcome {
    pub(crate) const ALL: [Self; 6] = [
        Self::Remembered,
        Self::Verified,
        Self::Missing,
        Self::Invalid,
        Self::Forbidden,
        Self::Unavailable,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Remembered => "remembered",
            Self::Verified => "verified",
            Self::Missing => "missing",
            Self::Invalid => "invalid",
            Self::Forbidden => "forbidden",
            Self::Unavailable => "unavailable",
        }
    }
}

/// Workers that count apart from each other; of more, several share their counters.
const SLOTS: usize = 32;

/// What the guard of a route did.
#[derive(Debug)]
pub(crate) struct GuardCounts([Slot; SLOTS]);

/// The counters of a worker, on lines of memory of their own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Slot([AtomicU64; GuardOutcome::ALL.len()]);

impl Default for GuardCounts {
    fn default() -> Self {
        Self(std::array::from_fn(|_| Slot::default()))
    }
}

impl GuardCounts {
    /// - `worker`: its number.
    pub(crate) fn count(&self, worker: usize, outcome: GuardOutcome) {
        if let Some(slot) = self.0.get(worker % SLOTS) {
            slot.0[outcome as usize].fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn total(&self, outcome: GuardOutcome) -> u64 {
        let slots = self.0.iter();
        slots
            .map(|slot| slot.0[outcome as usize].load(Ordering::Relaxed))
            .sum()
    }
}

/// The outcome of an answer.
pub(crate) async fn answered(answer: Answer) -> Outcome {
    match answer {
        Answer::Now(outcome) => outcome,
        Answer::Later(later) => later.await,
    }
}
