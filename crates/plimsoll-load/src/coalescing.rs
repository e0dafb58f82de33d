//! Wake-ups by answers are coalesced: a worker that has nothing to do sleeps a moment before it looks
//! for more.
//!
//! A server that answers each request of a connection by a write of its own would otherwise wake the
//! generator by each of them, to send a single request. Both sides then spend more on that than on
//! the requests. After the sleep one read takes several answers, and one write has what follows them.
//!
//! Answers that come meanwhile are noted when the sleep is over. It is at most a small part of what
//! nine of ten answers took, so there is none where answers are fast, and none but in closed loops
//! over connections with several streams. There a latency is for the most part waiting for the other
//! streams, and its mean is the number of streams by the rate, whenever answers are looked at.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use crate::plan::{Pacing, RunPlan};

/// The part of a latency that a sleep may be.
const PART: u64 = 64;

/// A shorter one is not worth it.
const LEAST: Duration = Duration::from_micros(20);

/// Enough for several answers of a server that is fast.
const MOST: Duration = Duration::from_micros(50);

/// How long the worker may sleep, by what it heard. All calls come from its own thread.
#[derive(Debug, Default)]
pub(crate) struct Coalescing {
    /// What one of ten latencies is below, in nanoseconds.
    low: AtomicU64,
    /// An answer came since it last slept.
    has_heard: AtomicBool,
}

impl Coalescing {
    /// Whether the workers of a run may do that.
    pub(crate) fn is_for(plan: &RunPlan) -> bool {
        let is_closed = matches!(&plan.pacing, Pacing::Closed { think: None, .. });
        is_closed && plan.http2.is_some() && plan.streams() > 1 && plan.events.is_none()
    }

    /// An answer came after `latency`.
    #[inline]
    pub(crate) fn heard(&self, latency: Duration) {
        let low = self.low.load(Ordering::Relaxed);
        let latency = u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX);
        // Stands still where nine steps up meet one step down (Ma, Muthukrishnan and Sandler,
        // "Frugal Streaming for Estimating Quantiles").
        let low = if latency < low {
            low - low / 16
        } else {
            low.saturating_add(low / 144 + 1).min(latency)
        };
        self.low.store(low, Ordering::Relaxed);
        self.has_heard.store(true, Ordering::Relaxed);
    }

    /// Sleeps if there is reason to, with the thread: no task of the worker may be ready.
    #[expect(
        clippy::disallowed_methods,
        reason = "the runtime would wake for every answer, which is what this is to avoid"
    )]
    pub(crate) fn sleep(&self) {
        if let Some(length) = self.due() {
            thread::sleep(length);
        }
    }

    /// How long to sleep now; only an answer gives reason to do it again.
    fn due(&self) -> Option<Duration> {
        if !self.has_heard.swap(false, Ordering::Relaxed) {
            return None;
        }
        let length = Duration::from_nanos(self.low.load(Ordering::Relaxed) / PART);
        (length >= LEAST).then(|| length.min(MOST))
    }
}

#[cfg(test)]
mod tests {
    use std::iter::repeat_n;

    use super::*;

    fn after(latencies: impl IntoIterator<Item = u64>) -> Coalescing {
        let coalescing = Coalescing::default();
        for micros in latencies {
            coalescing.heard(Duration::from_micros(micros));
        }
        coalescing
    }

    #[test]
    fn a_sleep_is_a_small_part_of_the_latency_and_short() {
        let steady = |micros| after(repeat_n(micros, 3000)).due();
        assert_eq!(steady(1279), None);
        assert_eq!(steady(1920), Some(Duration::from_micros(30)));
        assert_eq!(steady(1_000_000), Some(MOST));
    }

    #[test]
    fn nobody_sleeps_before_the_server_is_known_or_without_an_answer_since() {
        assert_eq!(Coalescing::default().due(), None);
        assert_eq!(after(repeat_n(10_000, 20)).due(), None);
        let coalescing = after(repeat_n(10_000, 3000));
        assert!(coalescing.due().is_some());
        assert_eq!(coalescing.due(), None);
        coalescing.heard(Duration::from_millis(10));
        assert!(coalescing.due().is_some());
    }

    /// Of the fast answers among slow ones, more than one of ten keep everybody awake.
    #[test]
    fn fast_answers_forbid_it_unless_they_are_rare() {
        let mix = |fast_of_40: usize| {
            let mut random = fastrand::Rng::with_seed(7);
            after((0..20_000).map(|_| {
                let is_fast = random.usize(..40) < fast_of_40;
                if is_fast { 300 } else { 3200 }
            }))
        };
        assert_eq!(mix(8).due(), None);
        let rare = mix(1).due().unwrap();
        assert!((30..=50).contains(&rare.as_micros()), "{rare:?}");
    }
}
