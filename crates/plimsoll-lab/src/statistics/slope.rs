//! A robust line through a series.

use super::{Interval, median_in_place};

/// Slope of a series, in its units per unit of time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Slope {
    /// The median of the slopes between all pairs of points.
    pub slope: f64,
    /// 99 % confidence interval of the slope, if the points vary independently about a line.
    pub interval: Interval,
}

/// Two-sided 99 % quantile of the normal distribution.
const Z: f64 = 2.575_829;

/// The line through `points` by Theil and Sen: up to 29 % of the points may be anywhere without moving it.
///
/// - `points`: time and value, all finite, in order of time.
///
/// `None` with fewer than three points of different times. Takes time and memory by the square of their number.
///
/// Source: Sen, "Estimates of the Regression Coefficient Based on Kendall's Tau" (1968), with the variance of tau for ties.
pub fn theil_sen(points: &[(f64, f64)]) -> Option<Slope> {
    let mut slopes = Vec::with_capacity(points.len() * points.len().saturating_sub(1) / 2);
    for (index, (t, v)) in points.iter().enumerate() {
        let later = points[index + 1..].iter().filter(|(later, _)| later > t);
        slopes.extend(later.map(|(later, value)| (value - v) / (later - t)));
    }
    if points.len() < 3 || slopes.is_empty() {
        return None;
    }
    slopes.sort_unstable_by(f64::total_cmp);
    let pairs = slopes.len() as f64;
    let half_width = Z * kendall_variance(points).sqrt();
    let at = |rank: f64| {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a rank; below zero it saturates"
        )]
        let rank = rank as usize;
        slopes[rank.min(slopes.len() - 1)]
    };
    let low = at(((pairs - half_width) / 2.0).floor() - 1.0);
    let high = at(f64::midpoint(pairs, half_width).ceil());
    Some(Slope {
        slope: median_in_place(&mut slopes),
        interval: Interval { low, high },
    })
}

/// Variance of the number of pairs in order, less that of pairs out of order, if there is no trend.
fn kendall_variance(points: &[(f64, f64)]) -> f64 {
    let term = |n: f64| n * (n - 1.0) * (2.0 * n + 5.0);
    let mut values: Vec<f64> = points.iter().map(|(_, value)| *value).collect();
    values.sort_unstable_by(f64::total_cmp);
    let ties: f64 = values
        .chunk_by(|a, b| a.total_cmp(b).is_eq())
        .map(|equal| term(equal.len() as f64))
        .sum();
    ((term(points.len() as f64) - ties) / 18.0).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(count: u32, value: impl Fn(f64) -> f64) -> Vec<(f64, f64)> {
        (0..count)
            .map(|t| (f64::from(t), value(f64::from(t))))
            .collect()
    }

    #[test]
    fn a_line_has_its_slope_and_outliers_do_not_move_it() {
        let mut points = line(50, |t| 3.0 + 2.0 * t);
        for at in [4, 5, 6, 20, 21, 40, 41, 42] {
            points[at].1 += 1e6;
        }
        let found = theil_sen(&points).unwrap();
        assert!((found.slope - 2.0).abs() < 1e-9, "{found:?}");
        assert!(found.interval.contains(2.0));
    }

    #[test]
    fn noise_without_a_trend_has_an_interval_with_zero_in_it() {
        let mut outside = 0;
        for seed in 0..200 {
            let mut random = fastrand::Rng::with_seed(seed);
            let points: Vec<_> = (0..60).map(|t| (f64::from(t), random.f64())).collect();
            let found = theil_sen(&points).unwrap();
            outside += u32::from(!found.interval.contains(0.0));
        }
        // Two of 200 are expected at 99 %.
        assert!(outside <= 8, "{outside}");
    }

    #[test]
    fn a_constant_is_flat_and_two_points_are_no_series() {
        let found = theil_sen(&line(20, |_| 7.0)).unwrap();
        assert_eq!(
            (found.slope, found.interval.low, found.interval.high),
            (0.0, 0.0, 0.0)
        );
        assert_eq!(theil_sen(&line(2, |t| t)), None);
        assert_eq!(theil_sen(&[(1.0, 1.0), (1.0, 2.0), (1.0, 3.0)]), None);
    }
}
