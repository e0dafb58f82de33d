//! Exchanges that were given up at the end of a run, in the stretches in which they began.
//!
//! While a run goes on they are under way and judge nothing. In the end it is known how long each was waited for, and
//! with that when it began: a burst that no server answered breaches the threshold over its stretch, however
//! small a part of the whole run it is.

use std::time::Duration;

use plimsoll_model::{Bucket, Histogram, Measured, Metric, Trend, Unit};

use super::{Judge, Stretch};

impl Judge {
    /// Judges each stretch again in which an exchange began that was given up.
    ///
    /// - `run`: the whole of it.
    pub(super) fn count_given_up(&mut self, run: &dyn Measured) {
        for position in 0..self.watched.len() {
            let threshold = &self.watched[position].threshold;
            let Some((length, trend)) = threshold
                .over
                .zip(trend(threshold.metric(), threshold.unit()))
            else {
                continue;
            };
            let given_up = self.given_up(run, trend);
            for end in 1..=self.seconds.len() {
                let Some(mut stretch) = self.stretch(end, length) else {
                    continue;
                };
                let at = self.seconds[end - 1].at;
                if !stretch.count(trend, at, &given_up) {
                    continue;
                }
                let watched = &mut self.watched[position];
                let Some(value) = watched.threshold.value(&stretch) else {
                    continue;
                };
                let is_worse = |(worst, _)| watched.threshold.is_worse(value, worst);
                if watched.worst.is_none_or(is_worse) {
                    watched.worst = Some((value, at));
                }
            }
        }
    }

    /// When exchanges began that were given up, how many, and how long each was waited for.
    fn given_up(&self, run: &dyn Measured, trend: Trend) -> Vec<(Duration, Bucket)> {
        let times = run.times(trend);
        let waited = times.and_then(|times| times.censored());
        let buckets = waited.into_iter().flat_map(Histogram::buckets);
        buckets
            .map(|bucket| (self.last.saturating_sub(bucket.up_to), bucket))
            .collect()
    }
}

impl Stretch {
    /// Counts exchanges that were given up and began in this stretch, which ends at `at`; true if there are any.
    fn count(&mut self, trend: Trend, at: Duration, given_up: &[(Duration, Bucket)]) -> bool {
        let from = at.saturating_sub(self.length);
        let began_here = given_up
            .iter()
            .filter(|(began, _)| (from..at).contains(began));
        let mut has_any = false;
        for (_, bucket) in began_here {
            has_any = true;
            self.sum.counts.aborted += bucket.count;
            let mut all = self.times.iter_mut();
            if let Some((_, times)) = all.find(|(known, _)| *known == trend) {
                (0..bucket.count).for_each(|_| times.record_at_least(bucket.up_to));
            }
        }
        has_any
    }
}

/// The trend that has the waiting times of exchanges that count in a metric, if they count.
fn trend(metric: Metric, unit: Unit) -> Option<Trend> {
    match metric {
        Metric::Time(trend @ (Trend::FromStarted | Trend::Honest))
            if unit == Unit::Microseconds =>
        {
            Some(trend)
        }
        Metric::Errors | Metric::Failed if unit == Unit::Ratio => Some(Trend::FromStarted),
        _ => None,
    }
}
