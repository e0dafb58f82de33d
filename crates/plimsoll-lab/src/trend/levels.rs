//! Levels: the stretches between two steps, each with its median and the interval of that.

use super::changes::Change;
use crate::statistics::{Interval, median, median_interval};

/// Coverage of the interval of a level.
pub const LEVEL_COVERAGE: f64 = 0.95;

/// Results between two steps.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TrendLevel {
    /// Position of its first result.
    pub from: usize,
    /// Position of its last result.
    pub to: usize,
    /// The median.
    pub median: f64,
    /// Its interval, by a sign test at [`LEVEL_COVERAGE`]; absent where the results are too few.
    pub interval: Option<Interval>,
}

/// The levels of `values` between `changes`; stretches without any value are left out.
pub(super) fn levels(values: &[Option<f64>], changes: &[Change]) -> Vec<TrendLevel> {
    let steps = changes.iter().map(|change| change.at);
    let ends: Vec<usize> = std::iter::once(0)
        .chain(steps)
        .chain([values.len()])
        .collect();
    ends.windows(2)
        .filter_map(|stretch| {
            let known: Vec<f64> = values[stretch[0]..stretch[1]]
                .iter()
                .flatten()
                .copied()
                .collect();
            let median = median(&known)?;
            Some(TrendLevel {
                from: stretch[0],
                to: stretch[1] - 1,
                median,
                interval: median_interval(&known, LEVEL_COVERAGE),
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_ends_where_the_next_step_begins() {
        let values: Vec<Option<f64>> = (0..12)
            .map(|number| (number != 3).then_some(if number < 8 { 5.0 } else { 9.0 }))
            .collect();
        let change = Change {
            at: 8,
            before: 5.0,
            after: 9.0,
            p: 0.001,
        };
        let found = levels(&values, &[change]);
        let spans: Vec<_> = found.iter().map(|level| (level.from, level.to)).collect();
        assert_eq!(spans, [(0, 7), (8, 11)]);
        assert!((found[0].median - 5.0).abs() < 1e-9);
        assert!(found[0].interval.is_some());
        assert_eq!(found[1].interval, None, "four results have no interval");
        assert_eq!(levels(&[None, None], &[]), []);
        assert_eq!(levels(&[], &[]), []);
    }
}
