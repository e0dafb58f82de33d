//! Outcomes of checks as an interval of a load, for what merges intervals of several machines.

use plimsoll_model::{LoadtestFound, Times};

use crate::Interval;

/// `found` as an interval of a closed loop.
///
/// - `in_flight`: checks under way at its end.
pub fn interval_of(found: &LoadtestFound, in_flight: u64) -> Interval {
    let mut interval = Interval::new(0, false);
    interval.counts = found.counts;
    interval.counts.completed_in_window = found.counts.ok;
    interval.failures.clone_from(&found.failures);
    interval.from_started =
        Times::from_parts(found.latency.clone(), plimsoll_model::Histogram::new());
    interval.connections_opened = found.connections_opened;
    interval.in_flight = in_flight;
    interval
}

/// The outcomes of checks that `interval` has.
pub fn found_in(interval: &Interval) -> LoadtestFound {
    LoadtestFound {
        counts: interval.counts,
        failures: interval.failures.clone(),
        latency: interval.from_started.observed().clone(),
        connections_opened: interval.connections_opened,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use plimsoll_model::{Failure, FailureCount, FailureKind, Phase};

    use super::*;

    #[test]
    fn nothing_is_lost_on_the_way() {
        let mut found = LoadtestFound::default();
        found.counts.started = 5;
        found.counts.ok = 3;
        found.counts.unmet = 1;
        found.counts.failed = 1;
        found.counts.aborted = 1;
        found.connections_opened = 4;
        for millis in [1, 20, 300] {
            found.latency.record(Duration::from_millis(millis));
        }
        let example = Failure::new(Phase::Connect, FailureKind::Refused);
        found.failures.push(FailureCount {
            phase: Phase::Connect,
            kind: FailureKind::Refused,
            count: 1,
            example,
        });
        let interval = interval_of(&found, 7);
        assert_eq!(interval.in_flight, 7);
        let mut twice = found_in(&interval);
        twice.merge(&found_in(&interval));
        found.merge(&found.clone());
        assert_eq!(twice.counts.started, found.counts.started);
        assert_eq!(twice.counts.errors(), found.counts.errors());
        assert_eq!(twice.failures, found.failures);
        assert_eq!(twice.connections_opened, found.connections_opened);
        assert_eq!(twice.latency.len(), 6);
        assert_eq!(twice.latency.max(), found.latency.max());
    }
}
