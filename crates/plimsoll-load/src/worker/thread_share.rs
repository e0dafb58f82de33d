//! What a worker's thread got of the machine: processor time, and the time for which it was kept waiting.

use std::time::{Duration, Instant};

use plimsoll_model::Stalls;
use plimsoll_wire::cpu_time;

/// Counters of the calling thread at one moment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ThreadMark {
    pub(crate) at: Instant,
    cpu: Duration,
    run_delay: Option<Duration>,
}

impl ThreadMark {
    /// Reads the counters.
    pub(crate) fn read(now: Instant) -> Self {
        Self {
            at: now,
            cpu: cpu_time::of_this_thread(),
            run_delay: cpu_time::run_delay_of_this_thread(),
        }
    }

    /// The share since `earlier`, without stalls.
    pub(crate) fn since(self, earlier: Self) -> ThreadShare {
        let used = self.cpu.saturating_sub(earlier.cpu);
        let delays = self.run_delay.zip(earlier.run_delay);
        ThreadShare {
            cpu_percent: percent(used, self.at.saturating_duration_since(earlier.at)),
            run_delay: delays.map(|(now, before)| now.saturating_sub(before)),
            stalls: Stalls::default(),
        }
    }
}

/// The share of a core that the calling thread uses from one look to the next.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BusyMeter {
    at: Instant,
    cpu: Duration,
}

impl BusyMeter {
    /// Begins now.
    pub(crate) fn start(now: Instant) -> Self {
        Self {
            at: now,
            cpu: cpu_time::of_this_thread(),
        }
    }

    /// The share since the last look, in percent.
    pub(crate) fn look(&mut self, now: Instant) -> f64 {
        let before = std::mem::replace(self, Self::start(now));
        let used = self.cpu.saturating_sub(before.cpu);
        percent(used, now.saturating_duration_since(before.at))
    }
}

/// Processor time as a share of the time in which it was used.
fn percent(used: Duration, within: Duration) -> f64 {
    if within.is_zero() {
        0.0
    } else {
        used.as_secs_f64() / within.as_secs_f64() * 100.0
    }
}

/// The share of a thread, or of the worst of several.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ThreadShare {
    /// Share of one core in percent.
    pub(crate) cpu_percent: f64,
    /// Time for which it was ready and not run.
    pub(crate) run_delay: Option<Duration>,
    /// Times at which it stood still: of several threads those of the one that stood still for longest in all, but the
    /// longest of any.
    pub(crate) stalls: Stalls,
}

impl ThreadShare {
    /// The worse of each figure.
    #[must_use]
    pub(crate) fn worse(self, other: Self) -> Self {
        let worst = if other.stalls.total > self.stalls.total {
            other.stalls
        } else {
            self.stalls
        };
        Self {
            cpu_percent: self.cpu_percent.max(other.cpu_percent),
            run_delay: self.run_delay.max(other.run_delay),
            stalls: Stalls {
                longest: self.stalls.longest.max(other.stalls.longest),
                ..worst
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_model::Clock as _;
    use plimsoll_wire::SystemClock;

    use super::*;

    #[test]
    fn a_meter_has_the_share_since_its_last_look() {
        let begun = SystemClock.now();
        let mut meter = BusyMeter::start(begun);
        let before = cpu_time::of_this_thread();
        while cpu_time::of_this_thread() < before + Duration::from_millis(20) {
            std::hint::spin_loop();
        }
        // What was used is 20 ms or a little more, and the times are those that it is given.
        let busy = meter.look(begun + Duration::from_millis(200));
        assert!((10.0..50.0).contains(&busy), "{busy}");
        let idle = meter.look(begun + Duration::from_millis(200) + Duration::from_hours(1));
        assert!(idle < 1.0, "{idle}");
        assert!(meter.look(begun).abs() < f64::EPSILON);
    }

    fn stalls(late: &[u64]) -> ThreadShare {
        let mut share = ThreadShare::default();
        for late in late {
            share.stalls.record(Duration::from_millis(*late));
        }
        share
    }

    #[test]
    fn the_longest_stall_of_any_thread_is_kept() {
        let (often, once) = (stalls(&[20, 20, 20]), stalls(&[50]));
        for worst in [often.worse(once), once.worse(often)] {
            let stalls = worst.stalls;
            assert_eq!(stalls.count, 3);
            assert_eq!(stalls.total, Duration::from_millis(60));
            assert_eq!(stalls.longest, Duration::from_millis(50));
        }
    }
}
