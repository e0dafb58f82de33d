//! Sign tests: what a fair coin would do, and intervals that follow from it.

use super::{Interval, sorted};

/// The probability of at least `successes` heads in `tosses` of a fair coin.
pub(crate) fn at_least(successes: u32, tosses: u32) -> f64 {
    let mut probability = 0.5_f64.powi(i32::try_from(tosses).unwrap_or(i32::MAX));
    let mut sum = 0.0;
    // From all heads downwards: C(n, n), C(n, n − 1), …
    for heads in (successes..=tosses).rev() {
        sum += probability;
        probability *= f64::from(heads) / f64::from(tosses - heads + 1);
    }
    sum
}

/// The interval of the median of the distribution that `values` come from, by a sign test at `level`: it needs no
/// assumption about the distribution.
///
/// `None` if there are too few values (below six for 95 %), or too many for the binomial coefficients (above a thousand).
///
/// Source: Conover, "Practical Nonparametric Statistics" (1999), section 3.2.
pub fn median_interval(values: &[f64], level: f64) -> Option<Interval> {
    const MOST: u32 = 1000;
    let sorted = sorted(values);
    let count = u32::try_from(sorted.len()).ok().filter(|it| *it <= MOST)?;
    // The interval from the k-th value to the k-th from the end misses the median if fewer than k values lie on one side.
    let misses = |k: u32| 2.0 * at_least(count - k + 1, count);
    let k = (1..=count / 2)
        .take_while(|k| misses(*k) <= 1.0 - level)
        .last()?;
    Some(Interval {
        low: sorted[k as usize - 1],
        high: sorted[sorted.len() - k as usize],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fair_coin() {
        assert!((at_least(6, 6) - 1.0 / 64.0).abs() < 1e-15);
        assert!((at_least(5, 6) - 7.0 / 64.0).abs() < 1e-15);
        assert!((at_least(0, 9) - 1.0).abs() < 1e-12);
        assert!((at_least(9, 10) - 11.0 / 1024.0).abs() < 1e-15);
    }

    #[test]
    fn the_interval_of_a_median_is_that_of_tables() {
        let values = |count: u32| (1..=count).map(f64::from).collect::<Vec<_>>();
        let ends = |count| median_interval(&values(count), 0.95).map(|it| (it.low, it.high));
        assert_eq!(ends(5), None);
        assert_eq!(ends(6), Some((1.0, 6.0)));
        assert_eq!(ends(9), Some((2.0, 8.0)));
        assert_eq!(ends(20), Some((6.0, 15.0)));
        assert_eq!(ends(0), None);
        assert_eq!(ends(1001), None);
    }

    #[test]
    fn the_interval_covers_the_median_as_often_as_it_says() {
        let mut random = fastrand::Rng::with_seed(5);
        let covered = (0..1_000)
            .filter(|_| {
                let values: Vec<f64> = (0..15).map(|_| -random.f64().max(1e-9).ln()).collect();
                let interval = median_interval(&values, 0.95).unwrap();
                interval.contains(std::f64::consts::LN_2)
            })
            .count();
        assert!(covered >= 940, "{covered}");
    }
}
