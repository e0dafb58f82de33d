//! The most that the generator itself can have added to latencies.

use std::time::Duration;

use crate::{Bucket, LoadModel, RunSummary, TimesView};

/// The times for which the generator of a run could not look at responses that were there, and what they may have done to its
/// latencies.
///
/// How long it waited in all is known, and not when. So this is a bound: the waits as they would have moved a figure furthest.
/// Each delays what was under way, and in an open loop what fell due meanwhile. A percentile is lower than it is shown by `d`
/// only if that is no more than all waits, and if they delayed every response between the two as far.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GeneratorShare {
    /// All waits together.
    waited: Duration,
    /// Exchanges that can be under way when a wait begins.
    places: u64,
    /// Arrivals that fell due in all waits together.
    due: u64,
}

impl GeneratorShare {
    /// The share of the generator of `run`; `None` where the kernel does not count how long a thread that is ready waits for a core.
    pub fn from_run(run: &RunSummary) -> Option<Self> {
        let generator = &run.generator;
        let conditions = &run.conditions;
        let percent = conditions.steal_percent.unwrap_or(0.0);
        let stolen = run
            .window
            .mul_f64(percent / 100.0 * conditions.cores as f64);
        let without_core = generator.run_delay? + generator.throttled.unwrap_or_default() + stolen;
        // A worker without a core stands still, so that these are the same times.
        let waited = without_core.max(generator.stalls.total);
        let rate = match &run.load.model {
            LoadModel::Closed => 0.0,
            LoadModel::Open { rate } => rate.per_second(),
        };
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a number of arrivals is not negative and far below 2^64"
        )]
        let due = (rate * waited.as_secs_f64()).ceil() as u64;
        Some(Self {
            waited,
            places: (run.load.connections * run.load.streams).max(1) as u64,
            due,
        })
    }

    /// The most that the waits can have added to the quantile at `fraction` of `times`; `None` if there are no durations.
    ///
    /// Durations that are known only from below are left out: the quantile is then shown as a bound.
    pub fn in_quantile(&self, times: TimesView<'_>, fraction: f64) -> Option<Duration> {
        let histogram = times.observed();
        let shown = histogram.quantile(fraction)?;
        // Responses at the level that is shown may stay there if their ranks are higher.
        let mut staying = {
            let rank = (fraction.clamp(0.0, 1.0) * histogram.len() as f64).ceil();
            (histogram.count_up_to(shown) as f64 - rank.max(1.0)).max(0.0)
        };
        let mut delay = self.delay();
        let mut level = shown;
        let mut lowered = 0.0;
        let buckets: Vec<Bucket> = histogram.buckets().collect();
        let below = buckets.iter().rev().filter(|it| it.up_to <= shown);
        for bucket in below {
            let step = level.saturating_sub(bucket.up_to).as_secs_f64();
            if step * lowered > delay {
                break;
            }
            delay -= step * lowered;
            level = bucket.up_to;
            lowered += bucket.count as f64 - staying;
            staying = 0.0;
        }
        let least = level.as_secs_f64() - delay / lowered;
        let moved = shown.as_secs_f64() - least.max(0.0);
        Some(Duration::from_secs_f64(moved.max(0.0)).min(self.waited))
    }

    /// The most that the waits can have added to the mean of `times`; `None` if there are no durations.
    pub fn in_mean(&self, times: TimesView<'_>) -> Option<Duration> {
        let mean = times.observed().mean()?;
        let each = Duration::from_secs_f64(self.delay() / times.observed().len() as f64);
        Some(each.min(mean).min(self.waited))
    }

    /// What all responses together waited at most, in seconds.
    fn delay(&self) -> f64 {
        self.waited.as_secs_f64() * (self.places + self.due) as f64
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Histogram;

    fn micros(micros: u64) -> Duration {
        Duration::from_micros(micros)
    }

    fn histogram(values: impl IntoIterator<Item = u64>) -> Histogram {
        let mut histogram = Histogram::new();
        for value in values {
            histogram.record(micros(value));
        }
        histogram
    }

    fn share(waited: u64, places: u64) -> GeneratorShare {
        GeneratorShare {
            waited: micros(waited),
            places,
            due: 0,
        }
    }

    fn part(share: GeneratorShare, histogram: &Histogram, fraction: f64) -> u64 {
        let part = share.in_quantile(histogram.into(), fraction).unwrap();
        u64::try_from(part.as_micros()).unwrap()
    }

    #[test]
    fn one_wait_moves_what_was_under_way_and_no_more() {
        // Ten at a time, and a tenth of them late by 4 ms: one wait.
        let late = histogram((0..100).map(|number| if number < 10 { 54_000 } else { 50_000 }));
        assert_eq!(part(share(4_000, 10), &late, 0.95), 4_000);
        // With two at a time, five would have to share 8 ms.
        assert_eq!(part(share(4_000, 2), &late, 0.95), 1_600);
        // Fifty share 40 ms.
        assert_eq!(part(share(4_000, 10), &late, 0.5), 800);
        assert_eq!(part(share(0, 10), &late, 0.95), 0);
    }

    #[test]
    fn what_falls_due_in_waits_is_delayed_too() {
        let late = histogram((0..100).map(|number| if number < 50 { 54_000 } else { 50_000 }));
        let open = GeneratorShare {
            due: 40,
            ..share(4_000, 10)
        };
        assert_eq!(part(open, &late, 0.95), 4_000);
        assert_eq!(part(share(4_000, 10), &late, 0.95), 888);
    }

    #[test]
    fn nothing_is_moved_below_zero_and_nothing_has_no_part() {
        let short = histogram([100, 200]);
        let part = part(share(1_000_000, 1), &short, 1.0);
        assert!((199..=200).contains(&part), "{part}");
        assert_eq!(
            share(1, 1).in_quantile((&Histogram::new()).into(), 0.5),
            None
        );
        assert_eq!(share(1, 1).in_mean((&Histogram::new()).into()), None);
        let mean = short.mean();
        assert_eq!(share(1_000, 1).in_mean((&short).into()), mean);
    }

    proptest! {
        /// For every history of waits, the shown value less the share is at most the true one.
        #[test]
        fn the_part_is_a_bound(
            truth in prop::collection::vec(1_000u64..60_000, 1..80),
            waits in prop::collection::vec((0usize..80, 1u64..8_000), 0..6),
            places in 1usize..12,
            fraction in 0.0..1.0f64,
        ) {
            let mut shown = truth.clone();
            for (first, wait) in &waits {
                for value in shown.iter_mut().skip(*first).take(places) {
                    *value += wait;
                }
            }
            let waited = waits.iter().map(|(_, wait)| wait).sum();
            let (truth, shown) = (histogram(truth), histogram(shown));
            let part = share(waited, places as u64).in_quantile((&shown).into(), fraction).unwrap();
            let least = shown.quantile(fraction).unwrap().saturating_sub(part);
            // Buckets have three digits.
            let real = truth.quantile(fraction).unwrap().mul_f64(1.003);
            prop_assert!(least <= real, "{least:?} {real:?}");
            let part = share(waited, places as u64).in_mean((&shown).into()).unwrap();
            let least = shown.mean().unwrap().saturating_sub(part);
            prop_assert!(least <= truth.mean().unwrap().mul_f64(1.003));
        }
    }
}
