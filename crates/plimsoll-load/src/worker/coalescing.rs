//! Wake-ups by answers are coalesced: a worker that has nothing to do sleeps a moment before it looks
//! for more.
//!
//! A server that answers each request of a connection by a write of its own would otherwise wake the
//! generator by each of them, to send a single request. Both sides then spend more on that than on
//! the requests. After the sleep one read takes several answers, and one write has what follows them.
//!
//! That holds where answers come one by one, which is tried again and again: for a while there is no
//! sleeps, and what a wake-up brings is counted. Where a server sends many at once anyway, a sleep
//! would only tear them apart.
//!
//! Answers that come meanwhile are noted when the sleep is over. It is at most a small part of what
//! nine of ten answers took, so there is none where answers are fast, and none but in closed loops
//! over connections with several streams. There a latency is for the most part waiting for the other
//! streams, and its mean is the number of streams by the rate, whenever answers are looked at.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use crate::plan::{HttpPlan, Pacing, RunPlan, WorkloadPlan};

/// The part of a latency that a sleep may be.
const PART: u64 = 64;

/// A shorter one is not worth it.
const LEAST: Duration = Duration::from_micros(20);

/// Enough for several answers of a server that is fast.
const MOST: Duration = Duration::from_micros(50);

/// Answers of a trial.
const TRIAL: u64 = 256;

/// Answers from one trial to the next.
const STRETCH: u64 = 8192;

/// Where a wake-up brings as many answers without a sleep, there is none.
const ENOUGH: u64 = 4;

/// How long the worker may sleep, by what it heard. All calls come from its own thread.
#[derive(Debug, Default)]
pub(crate) struct Coalescing {
    /// The lowest decile of latencies, in nanoseconds.
    low: AtomicU64,
    /// Answers since there was last nothing to do.
    news: AtomicU64,
    trials: Mutex<Trials>,
}

/// Whether answers come one by one.
#[derive(Debug, Default)]
struct Trials {
    state: State,
    /// In this state so far.
    answers: u64,
    wake_ups: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum State {
    #[default]
    Trying,
    /// They do.
    Sleeping,
    /// They come together.
    Awake,
}

impl Coalescing {
    /// Whether the workers of a run may do that.
    pub(crate) fn is_for(plan: &RunPlan) -> bool {
        let is_closed = matches!(&plan.pacing, Pacing::Closed { think: None, .. });
        let is_multiplexed = match &plan.workload {
            WorkloadPlan::Requests(HttpPlan::Http2(http2), _)
            | WorkloadPlan::Grpc(HttpPlan::Http2(http2), _) => http2.streams > 1,
            _ => false,
        };
        is_closed && is_multiplexed
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
        let news = self.news.load(Ordering::Relaxed);
        self.news.store(news + 1, Ordering::Relaxed);
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
        let news = self.news.swap(0, Ordering::Relaxed);
        if news == 0 {
            return None;
        }
        let mut trials = self.trials.lock().unwrap_or_else(PoisonError::into_inner);
        if trials.note(news) != State::Sleeping {
            return None;
        }
        let length = Duration::from_nanos(self.low.load(Ordering::Relaxed) / PART);
        (length >= LEAST).then(|| length.min(MOST))
    }
}

impl Trials {
    /// A wake-up brought `answers`.
    fn note(&mut self, answers: u64) -> State {
        self.answers += answers;
        self.wake_ups += 1;
        let next = match self.state {
            State::Trying if self.answers < TRIAL => return self.state,
            State::Trying if self.answers < self.wake_ups * ENOUGH => State::Sleeping,
            State::Trying => State::Awake,
            State::Sleeping | State::Awake if self.answers < STRETCH => return self.state,
            State::Sleeping | State::Awake => State::Trying,
        };
        *self = Self {
            state: next,
            ..Self::default()
        };
        next
    }
}

#[cfg(test)]
mod tests {
    use std::iter::repeat_n;

    use super::*;

    /// The sleep of a worker after these latencies, in µs, of which each wake-up brings one.
    fn after(latencies: impl IntoIterator<Item = u64>) -> Option<Duration> {
        let coalescing = Coalescing::default();
        let mut last = None;
        for micros in latencies {
            coalescing.heard(Duration::from_micros(micros));
            last = coalescing.due();
            assert_eq!(coalescing.due(), None, "nothing was heard since");
        }
        last
    }

    #[test]
    fn a_sleep_is_a_small_part_of_the_latency_and_short() {
        let steady = |micros| after(repeat_n(micros, 3000));
        assert_eq!(steady(1279), None);
        assert_eq!(steady(1920), Some(Duration::from_micros(30)));
        assert_eq!(steady(1_000_000), Some(MOST));
    }

    #[test]
    fn no_reader_sleeps_before_the_server_is_known() {
        assert_eq!(after([]), None);
        assert_eq!(after(repeat_n(10_000, 20)), None);
    }

    /// Of the fast answers among slow ones, more than one of ten keep everybody awake.
    #[test]
    fn fast_answers_forbid_it_unless_they_are_rare() {
        let mix = |fast_of_40: usize| {
            let mut random = fastrand::Rng::with_seed(7);
            after((0..8000).map(|_| {
                let is_fast = random.usize(..40) < fast_of_40;
                if is_fast { 300 } else { 3200 }
            }))
        };
        assert_eq!(mix(8), None);
        let rare = mix(1).expect("few are fast");
        assert!((30..=50).contains(&rare.as_micros()), "{rare:?}");
    }

    #[test]
    fn answers_that_come_together_are_not_torn_apart() {
        let coalescing = Coalescing::default();
        // How many of 1,000 wake-ups with so many answers each are followed by a sleep.
        let sleeps = |answers: u64| {
            let wake_ups = (0..1000).filter(|_| {
                let latency = Duration::from_millis(10);
                (0..answers).for_each(|_| coalescing.heard(latency));
                coalescing.due().is_some()
            });
            wake_ups.count()
        };
        assert_eq!(sleeps(32), 0);
        // The result holds for a while, and is tried again then.
        for _ in 0..10 {
            sleeps(3);
        }
        assert!(sleeps(3) > 900);
        for _ in 0..10 {
            sleeps(32);
        }
        assert_eq!(sleeps(4), 0);
    }
}
