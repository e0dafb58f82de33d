//! Change points: where the level of a series changes.

use crate::statistics::median;

/// Settings of the search for steps.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ChangeOptions {
    /// Highest rate of false steps in series without one.
    pub level: f64,
    /// Number of shuffles that a step is compared with.
    pub shuffles: u32,
    /// The shortest stretch between two steps, in values; at least 1.
    pub least: usize,
    /// Start of the random sequence.
    pub seed: u64,
}

impl Default for ChangeOptions {
    fn default() -> Self {
        Self {
            level: 0.01,
            shuffles: 1999,
            least: 3,
            seed: 1979,
        }
    }
}

/// A step of a series.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Change {
    /// The first value at the new level.
    pub at: usize,
    /// Median from the step before to here.
    pub before: f64,
    /// Median from here to the next step.
    pub after: f64,
    /// Share of shuffled series with a step as clear as this one.
    pub p: f64,
}

impl Change {
    /// The change as a fraction of the level before; `None` if that is zero.
    pub fn relative(&self) -> Option<f64> {
        (self.before.abs() > 0.0).then(|| self.after / self.before - 1.0)
    }
}

/// The steps of `values`, in order.
///
/// A step is where the ranks before differ most from those behind, by the standardised rank sum; it
/// is one if so few shuffles of the same values have one as clear. Each side is then looked at by
/// itself. Ranks make a single outlier count no more than any other value.
///
/// With the default level there must be at least ten values: fewer can be ordered by chance.
///
/// Source: Pettitt, "A Non-parametric Approach to the Change-point Problem" (1979), with the
/// significance by permutation and the recursion of Matteson and James, "A Nonparametric Approach for
/// Multiple Change Point Analysis" (2014).
pub fn changes(values: &[f64], options: &ChangeOptions) -> Vec<Change> {
    let mut random = fastrand::Rng::with_seed(options.seed);
    let mut steps = Vec::new();
    if values.iter().all(|value| value.is_finite()) {
        split(values, 0, options, &mut random, &mut steps);
    }
    steps.sort_unstable_by_key(|(at, _)| *at);
    let ends: Vec<usize> = std::iter::once(0)
        .chain(steps.iter().map(|(at, _)| *at))
        .chain([values.len()])
        .collect();
    let level = |from: usize, to: usize| median(&values[from..to]).unwrap_or_default();
    steps
        .iter()
        .enumerate()
        .map(|(number, (at, p))| Change {
            at: *at,
            before: level(ends[number], *at),
            after: level(*at, ends[number + 2]),
            p: *p,
        })
        .collect()
}

fn split(
    values: &[f64],
    offset: usize,
    options: &ChangeOptions,
    random: &mut fastrand::Rng,
    steps: &mut Vec<(usize, f64)>,
) {
    let least = options.least.max(1);
    let mut ranks = ranks(values);
    let Some((at, clearness)) = clearest(&ranks, least) else {
        return;
    };
    let as_clear = (0..options.shuffles)
        .filter(|_| {
            random.shuffle(&mut ranks);
            clearest(&ranks, least).is_some_and(|(_, other)| other >= clearness - 1e-12)
        })
        .count();
    // The series itself is one of its orders.
    let p = (as_clear as f64 + 1.0) / (f64::from(options.shuffles) + 1.0);
    if p > options.level {
        return;
    }
    steps.push((offset + at, p));
    split(&values[..at], offset, options, random, steps);
    split(&values[at..], offset + at, options, random, steps);
}

/// Position of the largest rank difference between before and after, and the difference.
fn clearest(ranks: &[f64], least: usize) -> Option<(usize, f64)> {
    let n = ranks.len() as f64;
    let mut sum = 0.0;
    let mut clearest: Option<(usize, f64)> = None;
    for (position, rank) in ranks.iter().enumerate() {
        let before = position;
        if before >= least && ranks.len() - before >= least {
            let k = before as f64;
            let expected = k * (n + 1.0) / 2.0;
            let deviation = (k * (n - k) * (n + 1.0) / 12.0).sqrt();
            let difference = (sum - expected).abs() / deviation;
            if clearest.is_none_or(|(_, most)| difference > most) {
                clearest = Some((before, difference));
            }
        }
        sum += rank;
    }
    clearest.filter(|(_, difference)| *difference > 0.0)
}

/// From 1; equal values share the mean of their ranks.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&one, &other| values[one].total_cmp(&values[other]));
    let mut ranks = vec![0.0; values.len()];
    let mut begun = 0;
    for same in order.chunk_by(|&one, &other| values[one].total_cmp(&values[other]).is_eq()) {
        let rank = begun as f64 + f64::midpoint(1.0, same.len() as f64);
        for &position in same {
            ranks[position] = rank;
        }
        begun += same.len();
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Levels, each for so many values, with noise.
    fn series(levels: &[(f64, usize)], noise: f64, seed: u64) -> Vec<f64> {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut normal = || (0..12).map(|_| random.f64()).sum::<f64>() - 6.0;
        levels
            .iter()
            .flat_map(|&(level, values)| std::iter::repeat_n(level, values))
            .map(|level| level * (noise * normal()).exp())
            .collect()
    }

    fn found(values: &[f64]) -> Vec<usize> {
        let options = ChangeOptions {
            shuffles: 399,
            ..ChangeOptions::default()
        };
        changes(values, &options)
            .iter()
            .map(|change| change.at)
            .collect()
    }

    #[test]
    fn a_step_is_found_where_it_is() {
        let mut exact = 0;
        for seed in 0..20 {
            let found = found(&series(&[(5.0, 20), (5.25, 15)], 0.01, seed));
            assert!(!found.is_empty(), "{seed}");
            exact += usize::from(found.len() == 1 && (19..=21).contains(&found[0]));
        }
        assert!(exact >= 18, "{exact} of 20");
    }

    #[test]
    fn a_series_without_a_step_has_none() {
        let called = (0..40)
            .filter(|seed| !found(&series(&[(5.0, 30)], 0.03, *seed)).is_empty())
            .count();
        assert!(called <= 2, "{called} of 40");
        assert_eq!(found(&[5.0; 30]), [0; 0]);
        assert_eq!(found(&[]), [0; 0]);
        assert_eq!(found(&[1.0, 2.0, 3.0, 9.0, 9.0]), [0; 0]);
        assert_eq!(found(&[f64::NAN; 30]), [0; 0]);
    }

    #[test]
    fn several_steps_are_reported_with_their_levels() {
        let values = series(&[(100.0, 12), (130.0, 12), (90.0, 12)], 0.01, 3);
        let changes = changes(&values, &ChangeOptions::default());
        let at: Vec<usize> = changes.iter().map(|change| change.at).collect();
        assert_eq!(at, [12, 24]);
        assert!((changes[0].relative().unwrap() - 0.3).abs() < 0.02);
        assert!((changes[1].after - 90.0).abs() < 1.0);
        assert!((changes[0].after - changes[1].before).abs() < 1e-9);
    }

    #[test]
    fn an_outlier_is_no_step() {
        let mut values = series(&[(5.0, 24)], 0.01, 8);
        values[11] = 500.0;
        assert_eq!(found(&values), [0; 0]);
    }

    #[test]
    fn equal_values_share_their_rank() {
        assert_eq!(ranks(&[3.0, 1.0, 3.0, 2.0]), [3.5, 1.0, 3.5, 2.0]);
    }
}
