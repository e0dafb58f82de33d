//! Figures per request: what came of each of the requests that a run sends.

use std::cmp::Ordering;
use std::collections::HashMap;

use crate::Times;

/// Figures of one of several requests, or of all that have its name.
#[derive(Debug, Clone, Default)]
pub struct RequestFigures {
    /// Its name, or its method and URL with the places of its template; secrets masked.
    pub name: String,
    /// Exchanges with a complete response, whatever its status.
    pub ok: u64,
    /// Exchanges without one.
    pub failed: u64,
    /// Exchanges still under way when the grace period ended.
    pub aborted: u64,
    /// Of `ok`: a status of 400 or above, one that `--fail-status` names, or one of gRPC that is not `OK`.
    pub error_statuses: u64,
    /// Of `ok`: a response that did not meet `--expect` and is not in `error_statuses`.
    pub unmet: u64,
    /// Durations of exchanges: from the intended start in an open loop, else from the actual one.
    pub latency: Times,
}

impl RequestFigures {
    /// Exchanges that were begun.
    pub fn count(&self) -> u64 {
        self.ok + self.failed + self.aborted
    }

    /// Everything that went wrong.
    pub fn errors(&self) -> u64 {
        self.failed + self.aborted + self.error_statuses + self.unmet
    }

    /// `errors` in relation to `count`, as a fraction; 0 where nothing ended.
    pub fn error_share(&self) -> f64 {
        if self.count() == 0 {
            0.0
        } else {
            self.errors() as f64 / self.count() as f64
        }
    }

    /// Adds what another worker counted for the same request.
    pub fn merge(&mut self, other: &Self) {
        self.ok += other.ok;
        self.failed += other.failed;
        self.aborted += other.aborted;
        self.error_statuses += other.error_statuses;
        self.unmet += other.unmet;
        self.latency.merge(&other.latency);
    }

    /// Puts the request with the largest share of errors first, then the slowest by p99.
    pub fn worst_first(&self, other: &Self) -> Ordering {
        // What is known only from below may be longer still.
        let p99 = |figures: &Self| {
            let p99 = figures.latency.quantile(0.99);
            p99.map(|p99| (p99.is_censored(), p99.low()))
        };
        other
            .error_share()
            .total_cmp(&self.error_share())
            .then_with(|| p99(other).cmp(&p99(self)))
            .then_with(|| self.name.cmp(&other.name))
    }
}

/// The names under which requests are counted, at most [`RequestNames::MOST`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RequestNames {
    names: Vec<String>,
    /// For each request of the plan the position of its name.
    positions: Vec<u16>,
}

impl RequestNames {
    /// Names that are counted apart. A list of many thousand URLs would otherwise take a histogram for each.
    pub const MOST: usize = 100;

    /// The last name where there are more than [`Self::MOST`].
    pub const OTHERS: &str = "all others";

    /// Gives requests of one name the same position.
    pub fn new(requests: impl IntoIterator<Item = String>) -> Self {
        let mut known: HashMap<String, u16> = HashMap::new();
        let mut names: Vec<String> = Vec::new();
        let mut positions = Vec::new();
        for name in requests {
            let position = known.get(&name).copied().unwrap_or_else(|| {
                if names.len() == Self::MOST {
                    names.push(Self::OTHERS.to_owned());
                }
                if names.len() < Self::MOST {
                    names.push(name.clone());
                }
                let position = u16::try_from(names.len() - 1).unwrap_or(u16::MAX);
                known.insert(name, position);
                position
            });
            positions.push(position);
        }
        Self { names, positions }
    }

    /// Whether there is more than one name: a single one has the figures of the whole run.
    pub fn are_several(&self) -> bool {
        self.names.len() > 1
    }

    /// The names by position.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The position of the name of the request at `request` in the plan.
    #[inline]
    pub fn position(&self, request: usize) -> usize {
        usize::from(self.positions[request])
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn requests_of_one_name_are_counted_together() {
        let names = RequestNames::new(["a", "b", "a"].map(str::to_owned));
        assert_eq!(names.names(), ["a", "b"]);
        assert_eq!([0, 1, 2].map(|it| names.position(it)), [0, 1, 0]);
        assert!(names.are_several());
        assert!(!RequestNames::new(["a", "a"].map(str::to_owned)).are_several());
    }

    #[test]
    fn names_are_bounded() {
        let names = RequestNames::new((0..10_000).map(|number| number.to_string()));
        assert_eq!(names.names().len(), RequestNames::MOST + 1);
        assert_eq!(names.names().last().unwrap(), RequestNames::OTHERS);
        assert_eq!(names.position(99), 99);
        assert_eq!(names.position(100), 100);
        assert_eq!(names.position(9_999), 100);
    }

    #[test]
    fn the_most_failing_come_first_then_the_slowest() {
        let figures = |name: &str, failed, milliseconds| {
            let mut latency = Times::new();
            latency.record(Duration::from_millis(milliseconds));
            RequestFigures {
                name: name.to_owned(),
                ok: 100,
                failed,
                latency,
                ..RequestFigures::default()
            }
        };
        let mut all = [
            figures("fast", 0, 1),
            figures("slow", 0, 90),
            figures("failing", 5, 2),
        ];
        all.sort_by(RequestFigures::worst_first);
        let names = all.each_ref().map(|it| it.name.as_str());
        assert_eq!(names, ["failing", "slow", "fast"]);
    }
}
