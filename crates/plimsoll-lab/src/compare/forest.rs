//! Ratios drawn beside one another with their intervals, on one logarithmic scale.

use std::fmt::Write as _;

use super::metric::Verdict;
use super::outcome::PairResult;

/// Width and height of a row, in units of the drawing.
const WIDTH: f64 = 180.0;
const HEIGHT: f64 = 16.0;

/// Room at either end, for the ends of the lines.
const EDGE: f64 = 4.0;

const IN_MEMORY: &str = "writing to memory does not fail";

/// The scale that all metrics of a pair share.
#[derive(Debug, Clone, Copy)]
pub(super) struct Forest {
    low: f64,
    high: f64,
}

impl Forest {
    /// Holds every interval of the pair, and 1.
    pub(super) fn new(pair: &PairResult) -> Self {
        let intervals = pair.metrics.iter().map(|result| result.estimate.interval);
        let whole = Self {
            low: 1.0,
            high: 1.0,
        };
        intervals.fold(whole, |scale, interval| Self {
            low: scale.low.min(interval.low),
            high: scale.high.max(interval.high),
        })
    }

    /// The drawing of the metric at `index`; a screen reader has the figures beside it.
    pub(super) fn row(self, pair: &PairResult, index: usize) -> String {
        let mut svg = format!(
            "<svg class=\"forest\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" width=\"{WIDTH}\" height=\"{HEIGHT}\" aria-hidden=\"true\">"
        );
        let one = self.place(1.0);
        write!(svg, "<path class=\"one\" d=\"M{one:.1} 0V{HEIGHT}\"/>").expect(IN_MEMORY);
        if let Some(result) = pair.metrics.get(index) {
            let class = match result.verdict {
                Verdict::Faster => "good",
                Verdict::Slower => "bad",
                Verdict::NoDifferenceSeen | Verdict::Undecided | Verdict::NotComparable => "faint",
            };
            let interval = result.estimate.interval;
            let (low, high) = (self.place(interval.low), self.place(interval.high));
            let (ratio, middle) = (self.place(result.estimate.ratio), HEIGHT / 2.0);
            write!(
                svg,
                "<g class=\"{class}\"><path d=\"M{low:.1} {middle}H{high:.1}\"/>\
                 <circle cx=\"{ratio:.1}\" cy=\"{middle}\" r=\"3.5\"/></g>"
            )
            .expect(IN_MEMORY);
        }
        svg.push_str("</svg>");
        svg
    }

    fn place(self, ratio: f64) -> f64 {
        let length = (self.high / self.low).ln();
        let share = if length > 0.0 {
            (ratio / self.low).ln() / length
        } else {
            0.5
        };
        EDGE + share * (WIDTH - 2.0 * EDGE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_and_its_inverse_are_as_far_from_one() {
        let forest = Forest {
            low: 0.5,
            high: 2.0,
        };
        assert!((forest.place(0.5) - EDGE).abs() < 1e-9);
        assert!((forest.place(1.0) - WIDTH / 2.0).abs() < 1e-9);
        assert!((forest.place(2.0) - (WIDTH - EDGE)).abs() < 1e-9);
        let nothing = Forest {
            low: 1.0,
            high: 1.0,
        };
        assert!((nothing.place(1.0) - WIDTH / 2.0).abs() < 1e-9);
    }
}
