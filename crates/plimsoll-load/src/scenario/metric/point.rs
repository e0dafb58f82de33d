//! Samples as they were measured, for files and other places that want each of them.

use std::sync::Arc;
use std::time::Duration;

use super::registry::{MetricId, Tag};

/// Points that wait to be handed over, at most; more are dropped and counted.
const MOST: usize = 1_000_000;

/// One sample.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// Of which metric.
    pub metric: MetricId,
    /// In the unit of the metric.
    pub value: f64,
    /// Since the start of the run.
    pub at: Duration,
    /// In the order in which they were given; a later one overrides an earlier one of its name.
    pub tags: Arc<[(String, String)]>,
    /// As tags, but of no series; by name.
    pub metadata: Option<Metadata>,
}

/// What a sample says beside its tags, such as the virtual user: too many values for series.
pub type Metadata = Arc<[(String, String)]>;

/// Samples in the order in which they were added, within a bound.
#[derive(Debug, Clone, Default)]
pub struct Points {
    /// The samples.
    pub all: Vec<Point>,
    /// How many were left out.
    pub dropped: u64,
}

impl Points {
    pub(super) fn add(
        &mut self,
        metric: MetricId,
        value: f64,
        tags: &[Tag<'_>],
        metadata: Option<&Metadata>,
        at: Duration,
    ) {
        if self.all.len() >= MOST {
            self.dropped += 1;
            return;
        }
        // The samples of one exchange follow each other and have the same tags.
        let is_same = |point: &&Point| {
            let pairs = point.tags.iter().zip(tags);
            let mut pairs = pairs.map(|(mine, (name, value))| mine.0 == *name && mine.1 == *value);
            point.tags.len() == tags.len() && pairs.all(|is_same| is_same)
        };
        let owned = || {
            let pairs = tags.iter();
            let pairs = pairs.map(|(name, value)| (name.to_string(), value.to_string()));
            pairs.collect()
        };
        let last = self.all.last().filter(is_same);
        let tags = last.map_or_else(owned, |last| Arc::clone(&last.tags));
        self.all.push(Point {
            metric,
            value,
            at,
            tags,
            metadata: metadata.cloned(),
        });
    }

    pub(in crate::scenario) fn append(&mut self, other: &Self) {
        let room = MOST.saturating_sub(self.all.len()).min(other.all.len());
        self.all.extend_from_slice(&other.all[..room]);
        self.dropped += other.dropped + (other.all.len() - room) as u64;
    }
}
