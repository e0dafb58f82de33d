//! Whether a run describes the target or the generator.
//!
//! Pure: judged from the figures of the workers.

use std::time::Duration;

use plimsoll_model::{Histogram, Saturation};

/// Timers later than this show in percentiles in milliseconds.
const LATE: Duration = Duration::from_millis(1);

/// A worker of a closed loop that used less of its core had the time to be on time: its timers were late because others used
/// the core, which has a warning of its own, and no start depended on them.
const AT_WORK_PERCENT: f64 = 50.0;

/// Fewer starts have no 99th percentile: one standstill would be it.
const ENOUGH_STARTS: u64 = 100;

/// Lateness below this share of the latency does not change what it says.
const LATE_SHARE: f64 = 0.1;

/// Why the generator was the limit, if it was.
///
/// - `lag`: how late timers fired.
/// - `latency`: what was measured meanwhile.
/// - `is_open`: whether there is a schedule, each of whose starts is a sample of the lag. In a closed
///   loop there are few samples, and one hiccup in a hundred says little.
pub(crate) fn judge(
    busiest_worker_percent: f64,
    lag: &Histogram,
    latency: &Histogram,
    is_open: bool,
) -> Option<Saturation> {
    if busiest_worker_percent >= Saturation::BUSY_PERCENT {
        return Some(Saturation::Cpu {
            percent: busiest_worker_percent,
        });
    }
    if !is_open && busiest_worker_percent < AT_WORK_PERCENT {
        return None;
    }
    let has_percentile = is_open && lag.len() >= ENOUGH_STARTS;
    let fraction = if has_percentile { 0.99 } else { 0.9 };
    let late = lag.quantile(fraction).filter(|late| *late > LATE)?;
    let matters = latency
        .quantile(0.99)
        .is_none_or(|p99| late > p99.mul_f64(LATE_SHARE));
    matters.then_some(Saturation::Lag {
        p99: lag.quantile(0.99).unwrap_or(late),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(millis: u64) -> Histogram {
        let mut histogram = Histogram::new();
        histogram.record(Duration::from_millis(millis));
        histogram
    }

    #[test]
    fn a_busy_worker_is_the_limit() {
        assert!(matches!(
            judge(97.0, &all(0), &all(50), false),
            Some(Saturation::Cpu { .. })
        ));
        assert_eq!(judge(60.0, &all(0), &all(50), false), None);
    }

    #[test]
    fn lateness_counts_where_it_matters() {
        assert!(matches!(
            judge(60.0, &all(20), &all(50), true),
            Some(Saturation::Lag { .. })
        ));
        assert_eq!(judge(60.0, &all(2), &all(50), true), None);
        let mut one_hiccup = all(0);
        (0..50).for_each(|_| one_hiccup.record(Duration::ZERO));
        one_hiccup.merge(&all(20));
        assert_eq!(judge(60.0, &one_hiccup, &all(50), false), None);
        // Users who think between their requests, on a machine that others use.
        assert_eq!(judge(1.0, &all(20), &all(50), false), None);
        assert!(judge(60.0, &all(20), &all(50), false).is_some());
        // A few requests a second, one of which was late: what stood still has a caution of its own.
        assert_eq!(judge(1.0, &one_hiccup, &all(50), true), None);
        assert!(judge(1.0, &all(20), &all(50), true).is_some());
        (0..50).for_each(|_| one_hiccup.record(Duration::ZERO));
        one_hiccup.merge(&all(20));
        assert!(judge(60.0, &one_hiccup, &all(50), true).is_some());
    }
}
