//! Latencies of responses below 400 and of error statuses, apart.

use crate::{DurationText, Histogram, percentage};

/// Latencies of both kinds of responses of a run that has both.
#[derive(Debug, Clone)]
pub struct LatencyByStatus<'a> {
    /// Of responses with a status below 400.
    pub ok: Histogram,
    /// Of responses with a status of 400 or above.
    pub errors: &'a Histogram,
}

impl<'a> LatencyByStatus<'a> {
    /// Both kinds; `None` unless there are both.
    ///
    /// - `all`: with the errors, and with `timeouts`, which are no responses.
    pub fn from_errors(
        all: &Histogram,
        errors: &'a Histogram,
        timeouts: Option<&Histogram>,
    ) -> Option<Self> {
        if errors.is_empty() {
            return None;
        }
        let mut ok = all.without(errors);
        if let Some(timeouts) = timeouts {
            ok = ok.without(timeouts);
        }
        (!ok.is_empty()).then_some(Self { ok, errors })
    }

    /// The caution for percentiles of both kinds together, where those hide what either kind takes.
    pub fn caution(&self) -> Option<String> {
        let Self { ok, errors } = self;
        let share = errors.len() as f64 / (ok.len() + errors.len()) as f64;
        let (of_ok, of_errors) = (ok.quantile(0.5)?, errors.quantile(0.5)?);
        let are_alike = of_ok <= of_errors * MIXED_FACTOR && of_errors <= of_ok * MIXED_FACTOR;
        if are_alike || !(MIXED_SHARE..=1.0 - MIXED_SHARE).contains(&share) {
            return None;
        }
        Some(format!(
            "latency mixes responses with an error status ({} of all, p50 {}) and others (p50 {}): judge them apart",
            percentage(share * 100.0),
            DurationText(of_errors),
            DurationText(of_ok),
        ))
    }
}

/// Responses of either kind from which on they move percentiles.
const MIXED_SHARE: f64 = 0.01;

/// How far apart the medians of both kinds may be.
const MIXED_FACTOR: u32 = 2;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn latency(values: &[(u64, u64)]) -> Histogram {
        let mut histogram = Histogram::new();
        for &(micros, count) in values {
            (0..count).for_each(|_| histogram.record(Duration::from_micros(micros)));
        }
        histogram
    }

    #[test]
    fn fast_rejections_in_the_latency_are_reported() {
        let caution = |all: &[(u64, u64)], errors: &[(u64, u64)]| {
            LatencyByStatus::from_errors(&latency(all), &latency(errors), None)?.caution()
        };
        let found = caution(&[(1_000, 500), (100_000, 500)], &[(1_000, 500)]).unwrap();
        assert!(
            found.contains("(50.0 % of all, p50 1.00 ms) and others (p50 100 ms)"),
            "{found}"
        );
        // Those that take as long, and a few, hide nothing.
        assert_eq!(caution(&[(100_000, 1_000)], &[(100_000, 500)]), None);
        let few = [(1_000, 3)];
        assert_eq!(caution(&[(1_000, 3), (100_000, 500)], &few), None);
    }

    #[test]
    fn one_kind_alone_is_not_apart() {
        let all = latency(&[(1_000, 5)]);
        assert!(LatencyByStatus::from_errors(&all, &Histogram::new(), None).is_none());
        assert!(LatencyByStatus::from_errors(&all, &all, None).is_none());
        let some = latency(&[(1_000, 2)]);
        let both = LatencyByStatus::from_errors(&all, &some, None).unwrap();
        assert_eq!((both.ok.len(), both.errors.len()), (3, 2));
    }

    #[test]
    fn timeouts_are_of_neither_kind() {
        let all = latency(&[(1_000, 9), (200, 4), (5_000_000, 3)]);
        let (errors, timeouts) = (latency(&[(200, 4)]), latency(&[(5_000_000, 3)]));
        let both = LatencyByStatus::from_errors(&all, &errors, Some(&timeouts)).unwrap();
        assert_eq!(both.ok, latency(&[(1_000, 9)]));
        let rest = latency(&[(200, 4), (5_000_000, 3)]);
        assert!(LatencyByStatus::from_errors(&rest, &errors, Some(&timeouts)).is_none());
    }
}
