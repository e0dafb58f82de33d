#![expect(clippy::float_cmp, reason = "the expected values are exact")]

use proptest::prelude::*;

use super::*;

#[test]
fn median_is_the_middle_or_the_mean_of_two() {
    for (values, expected) in [
        (&[][..], None),
        (&[4.0][..], Some(4.0)),
        (&[9.0, 1.0][..], Some(5.0)),
        (&[3.0, 1.0, 2.0][..], Some(2.0)),
        (&[4.0, 1.0, 3.0, 2.0][..], Some(2.5)),
    ] {
        assert_eq!(median(values), expected, "{values:?}");
    }
}

#[test]
fn range_is_smallest_to_largest() {
    assert_eq!(range(&[]), None);
    assert_eq!(
        range(&[2.0, 5.0, 1.0]),
        Some(Interval {
            low: 1.0,
            high: 5.0
        })
    );
}

/// Probability that the median of a resample of n values is the k-th smallest of them, n odd.
///
/// The median is at most the k-th value if more than half of the draws fall on the first k; the test
/// below holds this against a full enumeration.
fn probability_of_rank(n: usize, k: usize) -> f64 {
    let below = |k: usize| {
        // At least (n + 1) / 2 of the n draws are among the k smallest.
        let p = k as f64 / n as f64;
        (n.div_ceil(2)..=n)
            .map(|j| binomial(n, j) * p.powf(j as f64) * (1.0 - p).powf((n - j) as f64))
            .sum::<f64>()
    };
    below(k) - below(k - 1)
}

fn binomial(n: usize, k: usize) -> f64 {
    (0..k).fold(1.0, |product, i| product * (n - i) as f64 / (i + 1) as f64)
}

#[test]
fn distribution_of_the_resampled_median_is_the_exact_one() {
    // Counted over all 5^5 and 7^7 resamples.
    for (n, counted) in [
        (5, &[0.057_92, 0.259_52, 0.365_12, 0.259_52, 0.057_92][..]),
        (
            7,
            &[
                0.010_150, 0.098_124, 0.238_626, 0.306_200, 0.238_626, 0.098_124, 0.010_150,
            ][..],
        ),
    ] {
        for (index, expected) in counted.iter().enumerate() {
            let exact = probability_of_rank(n, index + 1);
            assert!(
                (exact - expected).abs() < 1e-6,
                "n = {n}, rank {}: {exact}",
                index + 1
            );
        }
    }

    let values: Vec<f64> = (1..=13).map(f64::from).collect();
    let ratios = resampled_ratios(
        &values,
        &[1.0],
        &Bootstrap {
            resamples: 100_000,
            ..Bootstrap::default()
        },
    );
    for rank in 1..=13 {
        let seen = ratios.iter().filter(|&&ratio| ratio == rank as f64).count();
        let seen = seen as f64 / ratios.len() as f64;
        let exact = probability_of_rank(13, rank);
        // Five standard deviations of a share of 100 000 draws.
        let tolerance = 5.0 * (exact * (1.0 - exact) / 100_000.0).sqrt() + 1e-5;
        assert!(
            (seen - exact).abs() < tolerance,
            "rank {rank}: {seen} for {exact}"
        );
    }
}

#[test]
fn interval_bounds_are_the_exact_percentiles() {
    // Sizes for which no cumulated probability is so near to the tail that chance decides.
    for n in [5, 7, 13, 25] {
        let values: Vec<f64> = (1..=n).map(|value| value as f64).collect();
        // Half a per cent, further out for so few trials.
        let trials = n as f64;
        let student = student_quantile(0.005, trials - 1.0);
        let tail = normal_tail((trials / (trials - 1.0)).sqrt() * student);
        // The rank at which the cumulated probability first exceeds that.
        let mut cumulated = 0.0;
        let low = (1..=n)
            .find(|&rank| {
                cumulated += probability_of_rank(n, rank);
                cumulated > tail
            })
            .unwrap();
        // A side that is one value alone adds nothing.
        let estimate = ratio_of_medians(&values, &vec![1.0; n], &Bootstrap::default()).unwrap();
        assert_eq!(estimate.ratio, n.div_ceil(2) as f64);
        assert_eq!(
            estimate.interval,
            Interval {
                low: low as f64,
                high: (n + 1 - low) as f64
            },
            "n = {n}"
        );
    }
}

#[test]
fn coverage_limit_is_that_of_the_whole_range() {
    for (trials, expected) in [
        (0, 0.0),
        (1, 0.0),
        (2, 0.5),
        (3, 0.75),
        (5, 0.9375),
        (8, 0.992_187_5),
    ] {
        assert_eq!(coverage_limit(trials), expected);
    }
}

#[test]
fn what_cannot_be_estimated_is_reported() {
    let by_medians = |ours: &[f64], peer: &[f64], bootstrap: &Bootstrap| {
        ratio_of_medians(ours, peer, bootstrap).unwrap_err()
    };
    let by_pairs =
        |ours: &[f64], peer: &[f64], level| ratio_of_pairs(ours, peer, level).unwrap_err();
    let default = Bootstrap::default();
    let not_positive = RatioError::NotPositive { value: 0.0 };
    assert_eq!(by_medians(&[], &[], &default), RatioError::Empty);
    assert_eq!(by_pairs(&[], &[], 0.99), RatioError::Empty);
    assert_eq!(by_medians(&[1.0], &[0.0], &default), not_positive);
    assert_eq!(by_pairs(&[1.0], &[0.0], 0.99), not_positive);
    assert_eq!(
        by_pairs(&[1.0], &[1.0, 2.0], 0.99),
        RatioError::Unpaired { ours: 1, peer: 2 }
    );
    for level in [0.0, 1.0, 2.0, f64::NAN] {
        let error = by_pairs(&[1.0], &[1.0], level);
        assert!(matches!(error, RatioError::Level { .. }), "{error:?}");
    }
    for (level, resamples) in [
        (1.0, 10_000),
        (0.0, 10_000),
        (f64::NAN, 10_000),
        (0.99, 100),
    ] {
        let bootstrap = Bootstrap {
            level,
            resamples,
            seed: 1,
        };
        assert!(matches!(
            by_medians(&[1.0], &[1.0], &bootstrap),
            RatioError::Settings(_)
        ));
    }
}

fn samples(length: usize) -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec(0.001_f64..1e9, length)
}

fn quick() -> Bootstrap {
    Bootstrap {
        level: 0.95,
        resamples: 399,
        seed: 7,
    }
}

proptest! {
    #[test]
    fn identical_samples_have_ratio_one(values in (1_usize..12).prop_flat_map(samples)) {
        for estimate in [
            ratio_of_pairs(&values, &values, 0.95).unwrap(),
            ratio_of_medians(&values, &values, &quick()).unwrap(),
        ] {
            prop_assert_eq!(estimate.ratio, 1.0);
            prop_assert!(estimate.interval.contains(1.0));
        }
    }

    #[test]
    fn scaling_ours_scales_ratio_and_interval(
        (ours, peer) in (1_usize..12).prop_flat_map(|n| (samples(n), samples(n))),
        exponent in -8_i32..8,
    ) {
        // A power of two scales without rounding.
        let factor = 2_f64.powi(exponent);
        let scaled: Vec<f64> = ours.iter().map(|value| value * factor).collect();
        let estimates = |ours: &[f64]| {
            [
                ratio_of_pairs(ours, &peer, 0.95).unwrap(),
                ratio_of_medians(ours, &peer, &quick()).unwrap(),
            ]
        };
        for (before, after) in estimates(&ours).iter().zip(estimates(&scaled)) {
            prop_assert_eq!(after.ratio, before.ratio * factor);
            prop_assert_eq!(after.interval.low, before.interval.low * factor);
            prop_assert_eq!(after.interval.high, before.interval.high * factor);
        }
    }

    #[test]
    fn interval_stays_within_what_was_seen(
        (ours, peer) in (1_usize..12).prop_flat_map(|n| (samples(n), samples(n))),
    ) {
        let by_medians = ratio_of_medians(&ours, &peer, &quick()).unwrap();
        let by_pairs = ratio_of_pairs(&ours, &peer, 0.95).unwrap();
        let (ours, peer) = (range(&ours).unwrap(), range(&peer).unwrap());
        for estimate in [by_medians, by_pairs] {
            prop_assert!(estimate.interval.low <= estimate.interval.high);
            prop_assert!(estimate.interval.low >= ours.low / peer.high);
            prop_assert!(estimate.interval.high <= ours.high / peer.low);
        }
    }
}

/// Trials of two builds on a machine that drifts: the drift hits both sides of a round alike, the
/// noise does not.
fn planted(effect: f64, noise: f64, trials: usize, seed: u64) -> (Vec<f64>, Vec<f64>) {
    let mut random = fastrand::Rng::with_seed(seed);
    // Irwin and Hall: the sum of twelve uniform values has variance 1.
    let mut normal = || (0..12).map(|_| random.f64()).sum::<f64>() - 6.0;
    (0..trials)
        .map(|_| {
            let drift = 5.0 * (0.05 * normal()).exp();
            let mut trial = |effect: f64| drift * effect * (noise * normal()).exp();
            (trial(effect), trial(1.0))
        })
        .unzip()
}

/// - `trials`: of each side; `compare` makes 8 by default.
fn estimates(effect: f64, noise: f64, trials: usize, tries: u64) -> Vec<RatioEstimate> {
    (0..tries)
        .map(|seed| {
            let (ours, peer) = planted(effect, noise, trials, seed);
            ratio_of_pairs(&ours, &peer, 0.99).unwrap()
        })
        .collect()
}

#[test]
fn a_planted_difference_is_found_and_one_that_is_not_there_is_not() {
    let called = |estimates: &[RatioEstimate]| {
        let differs = |estimate: &&RatioEstimate| !estimate.interval.contains(1.0);
        estimates.iter().filter(differs).count()
    };
    assert_eq!(called(&estimates(1.05, 0.01, 8, 20)), 20);
    assert!(called(&estimates(1.0, 0.01, 8, 20)) <= 1);
    // More noise makes differences harder to see, not easier to imagine.
    assert!(called(&estimates(1.05, 0.05, 8, 20)) < 15);
    assert!(called(&estimates(1.0, 0.05, 8, 20)) <= 1);
    // What one trial differs from the next is overcome by their number.
    assert!(called(&estimates(1.05, 0.035, 60, 20)) >= 18);
}

#[test]
fn what_is_not_there_is_called_as_seldom_as_the_level_says() {
    for (trials, tries, most) in [(8, 2_000, 35), (20, 1_000, 26), (60, 200, 9)] {
        let called = estimates(1.0, 0.03, trials, tries)
            .iter()
            .filter(|estimate| !estimate.interval.contains(1.0))
            .count();
        // 1 in 128 by 8 trials, and nearly 1 in 100 by more: five standard deviations above that.
        assert!(called <= most, "{called} of {tries} by {trials}");
    }
}

#[test]
fn what_could_have_been_seen_follows_the_noise() {
    let could_see = |noise| {
        let all: Vec<f64> = estimates(1.0, noise, 8, 20)
            .iter()
            .map(RatioEstimate::could_have_seen)
            .collect();
        median(&all).unwrap()
    };
    let (little, much) = (could_see(0.01), could_see(0.05));
    assert!(little < 0.05 && much > 2.0 * little, "{little} {much}");
    let estimate = RatioEstimate {
        ratio: 1.0,
        interval: Interval {
            low: 0.8,
            high: 1.1,
        },
        pairing: Pairing::Blocks,
    };
    assert!((estimate.could_have_seen() - 0.25).abs() < 1e-12);
}
