//! The boundary of rates that hold: an estimate from windows that held or broke at each of some rates.

use crate::statistics::at_least;

/// The windows at one rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tried {
    /// Arrivals per second.
    pub rate: f64,
    /// Windows that kept every objective.
    pub held: u32,
    /// All windows.
    pub windows: u32,
}

/// Rate at which half of the windows hold.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Boundary {
    /// The estimate, in arrivals per second.
    pub rate: f64,
    /// The boundary is not below this rate, at [`Boundary::LEVEL`]; absent if the windows cannot
    /// show so much.
    pub low: Option<f64>,
    /// It is not above this rate, at the same level.
    pub high: Option<f64>,
}

impl Boundary {
    /// Coverage of the interval from `low` to `high`.
    pub const LEVEL: f64 = 0.95;

    /// The boundary between the rates of `tried`; `None` if there are none.
    ///
    /// - `tried`: rates in ascending order, each with at least one window.
    ///
    /// The estimate is where the share of windows that hold, made to fall by pooling adjacent
    /// violators, crosses one half, linear between two rates. The bounds are exact and assume
    /// nothing but that a higher rate holds no more often: were the boundary at or below a rate, at
    /// most half of its windows would hold, so a sign test decides. Rates are tested from the outermost
    /// inwards until one does not reject, which keeps the level whatever their number.
    ///
    /// Source: Ayer, Brunk, Ewing, Reid and Silverman, "An Empirical Distribution Function for
    /// Sampling with Incomplete Information" (1955), for the pooling.
    pub fn between(tried: &[Tried]) -> Option<Self> {
        let first = tried.first()?;
        let last = tried.last()?;
        let shares = falling_shares(tried);
        let crossing = shares.windows(2).find_map(|pair| {
            let ((low, above), (high, below)) = (pair[0], pair[1]);
            (above >= 0.5 && below < 0.5)
                .then(|| low + (high - low) * (above - 0.5) / (above - below))
        });
        let rate = crossing.unwrap_or(if shares[0].1 < 0.5 {
            first.rate
        } else {
            last.rate
        });
        let rejects = |for_it: u32, of: u32| at_least(for_it, of) <= (1.0 - Self::LEVEL) / 2.0;
        let low = tried
            .iter()
            .take_while(|tried| rejects(tried.held, tried.windows))
            .last();
        let high = tried
            .iter()
            .rev()
            .take_while(|tried| rejects(tried.windows - tried.held, tried.windows))
            .last();
        Some(Self {
            rate,
            low: low.map(|tried| tried.rate.min(rate)),
            high: high.map(|tried| tried.rate.max(rate)),
        })
    }
}

/// Each rate with the share of its windows that hold, neighbours pooled until no share rises.
fn falling_shares(tried: &[Tried]) -> Vec<(f64, f64)> {
    struct Block {
        held: u32,
        windows: u32,
        rates: usize,
    }
    let share = |block: &Block| f64::from(block.held) / f64::from(block.windows);
    let mut blocks: Vec<Block> = Vec::new();
    for tried in tried {
        let mut block = Block {
            held: tried.held,
            windows: tried.windows,
            rates: 1,
        };
        while let Some(before) = blocks.pop_if(|before| share(before) < share(&block)) {
            block.held += before.held;
            block.windows += before.windows;
            block.rates += before.rates;
        }
        blocks.push(block);
    }
    let shares = blocks
        .iter()
        .flat_map(|block| std::iter::repeat_n(share(block), block.rates));
    tried.iter().map(|tried| tried.rate).zip(shares).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tried(rows: &[(f64, u32, u32)]) -> Vec<Tried> {
        rows.iter()
            .map(|&(rate, held, windows)| Tried {
                rate,
                held,
                windows,
            })
            .collect()
    }

    #[test]
    fn a_sharp_boundary_lies_between_its_neighbours() {
        let rows = tried(&[(96.0, 6, 6), (98.0, 6, 6), (100.0, 0, 6), (102.0, 0, 6)]);
        let boundary = Boundary::between(&rows).unwrap();
        assert!((boundary.rate - 99.0).abs() < 1e-9, "{boundary:?}");
        assert_eq!(boundary.low, Some(98.0));
        assert_eq!(boundary.high, Some(100.0));
    }

    #[test]
    fn what_windows_cannot_show_has_no_bound() {
        let few = tried(&[(98.0, 3, 3), (100.0, 0, 3)]);
        let boundary = Boundary::between(&few).unwrap();
        assert_eq!((boundary.low, boundary.high), (None, None));
        let all_held = tried(&[(98.0, 6, 6), (100.0, 6, 6)]);
        let boundary = Boundary::between(&all_held).unwrap();
        assert!((boundary.rate - 100.0).abs() < 1e-9);
        assert_eq!((boundary.low, boundary.high), (Some(100.0), None));
        assert_eq!(Boundary::between(&[]), None);
    }

    #[test]
    fn noise_is_pooled() {
        let rows = tried(&[
            (90.0, 6, 6),
            (95.0, 4, 6),
            (100.0, 5, 6),
            (105.0, 1, 6),
            (110.0, 0, 6),
        ]);
        let boundary = Boundary::between(&rows).unwrap();
        // 95 and 100 share 9 of 12.
        assert!((boundary.rate - (100.0 + 5.0 * 0.25 / (0.75 - 1.0 / 6.0))).abs() < 1e-9);
        assert_eq!(boundary.low, Some(90.0));
        assert_eq!(boundary.high, Some(110.0));
    }

    /// The interval of a soft boundary covers the truth at least as often as it says.
    #[test]
    fn the_interval_covers_the_boundary() {
        let mut random = fastrand::Rng::with_seed(11);
        let covered = (0..1_000)
            .filter(|_| {
                let rows: Vec<Tried> = (-4..=4)
                    .map(|step| {
                        let rate = 100.0 + 2.0 * f64::from(step) + 0.7;
                        let holds = 1.0 / (1.0 + ((rate - 100.0) / 1.5).exp());
                        let held = (0..6).filter(|_| random.f64() < holds).count();
                        Tried {
                            rate,
                            held: u32::try_from(held).unwrap(),
                            windows: 6,
                        }
                    })
                    .collect();
                let boundary = Boundary::between(&rows).unwrap();
                boundary.low.is_none_or(|low| low <= 100.0)
                    && boundary.high.is_none_or(|high| high >= 100.0)
            })
            .count();
        assert!(covered >= 950, "{covered} of 1000");
    }
}
