//! From values to places, and the round numbers on an axis.

use plimsoll_model::{percent_rounded_down, without_trailing_zeros};

/// How values are laid out along an axis, and how they are written.
#[derive(Debug, Clone)]
pub enum Axis {
    /// From zero.
    Linear(fn(f64) -> String),
    /// From below the smallest to above the largest value, at least 4 % of them apart: for small changes of large values.
    Near(fn(f64) -> String),
    /// From zero to the largest value, close to it.
    Time(fn(f64) -> String),
    /// By powers of ten.
    Logarithmic(fn(f64) -> String),
    /// Names at 0, 1, 2 and so on; where there is room for some only, the last is among them.
    Names(Vec<String>),
    /// Quantiles, each nine as wide as the one before; values are fractions below 1.
    Quantiles,
}

/// An axis with its range and its place in the drawing.
#[derive(Debug)]
pub(crate) struct Mapped {
    axis: Axis,
    /// In the axis's own measure.
    from: f64,
    to: f64,
    place: (f64, f64),
    ticks: Vec<(f64, String)>,
}

impl Axis {
    /// Lays the range of `values` out between two places.
    pub(super) fn map(&self, values: impl Iterator<Item = f64>, place: (f64, f64)) -> Mapped {
        let (low, high) = values
            .filter(|value| value.is_finite())
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
                (low.min(value), high.max(value))
            });
        let (low, high) = if low > high { (0.0, 1.0) } else { (low, high) };
        let (from, to, ticks) = match self {
            Self::Linear(write) => {
                let step = round_step(high / 4.0);
                let to = if high > 0.0 {
                    (high / step).ceil() * step
                } else {
                    1.0
                };
                (0.0, to, steps(0.0, to, step, *write))
            }
            Self::Near(write) => {
                let span = (high - low).max(high.abs() * 0.04);
                let span = if span > 0.0 { span } else { 1.0 };
                let middle = f64::midpoint(low, high);
                let step = round_step(span / 4.0);
                let from = ((middle - span / 2.0) / step).floor() * step;
                let from = if low >= 0.0 { from.max(0.0) } else { from };
                let to = ((middle + span / 2.0) / step).ceil() * step;
                (from, to, steps(from, to, step, *write))
            }
            Self::Time(write) => {
                let to = if high > 0.0 { high } else { 1.0 };
                let step = round_step(to / 6.0);
                (0.0, to, steps(0.0, to, step, *write))
            }
            Self::Logarithmic(write) => {
                let from = self.measure(low.max(1e-3)).floor();
                let to = self.measure(high.max(2e-3)).ceil().max(from + 1.0);
                (from, to, decades(from, to, *write))
            }
            Self::Names(names) => {
                let to = names.len().saturating_sub(1).max(1) as f64;
                (0.0, to, some_of(names))
            }
            Self::Quantiles => {
                let to = self.measure(high).max(1.0);
                let ticks = [
                    0.0,
                    0.9,
                    0.99,
                    0.999,
                    0.9999,
                    0.99999,
                    0.999_999,
                    0.999_999_9,
                ];
                let ticks = ticks
                    .into_iter()
                    .filter(|tick| self.measure(*tick) <= to + 1e-9);
                (0.0, to, ticks.map(|tick| (tick, percent(tick))).collect())
            }
        };
        Mapped {
            axis: self.clone(),
            from,
            to,
            place,
            ticks,
        }
    }

    /// The position of a value on an even scale.
    fn measure(&self, value: f64) -> f64 {
        match self {
            Self::Linear(_) | Self::Near(_) | Self::Time(_) | Self::Names(_) => value,
            Self::Logarithmic(_) => value.max(1e-9).log10(),
            Self::Quantiles => -(1.0 - value).max(1e-9).log10(),
        }
    }
}

impl Mapped {
    /// Position of `value` in the drawing.
    pub(super) fn place(&self, value: f64) -> f64 {
        let share = (self.axis.measure(value) - self.from) / (self.to - self.from);
        self.place.0 + share.clamp(-1.0, 2.0) * (self.place.1 - self.place.0)
    }

    pub(super) fn ticks(&self) -> &[(f64, String)] {
        &self.ticks
    }
}

/// Names on an axis, in all.
const MOST_NAMES: usize = 5;

/// Characters of each; of a longer one the end is left out.
const MOST_OF_NAME: usize = 12;

/// As many names as there is room for, at even distances, the last among them.
fn some_of(names: &[String]) -> Vec<(f64, String)> {
    let every = names.len().div_ceil(MOST_NAMES).max(1);
    let last = names.len().saturating_sub(1);
    let shown = names.iter().enumerate();
    shown
        .filter(|(position, _)| (last - position).is_multiple_of(every))
        .map(|(position, name)| {
            let short: String = name.chars().take(MOST_OF_NAME).collect();
            let short = if short.len() < name.len() {
                format!("{short}…")
            } else {
                short
            };
            (position as f64, short)
        })
        .collect()
}

/// The next of 1, 2, 5, 10, … that is no smaller than `least`.
fn round_step(least: f64) -> f64 {
    if !(least.is_finite() && least > 0.0) {
        return 1.0;
    }
    let power = 10_f64.powf(least.log10().floor());
    let factor = [1.0, 2.0, 5.0]
        .into_iter()
        .find(|factor| factor * power >= least * (1.0 - 1e-9));
    factor.unwrap_or(10.0) * power
}

/// At most eleven: a step is at least a tenth of the range.
fn steps(from: f64, to: f64, step: f64, write: fn(f64) -> String) -> Vec<(f64, String)> {
    (0..=10)
        .map(|number| from + f64::from(number) * step)
        .take_while(|value| *value <= to * (1.0 + 1e-9))
        .map(|value| (value, write(value)))
        .collect()
}

fn decades(from: f64, to: f64, write: fn(f64) -> String) -> Vec<(f64, String)> {
    // With few decades there is room for 2 and 5 between them.
    let factors: &[f64] = if to - from <= 2.0 {
        &[1.0, 2.0, 5.0]
    } else {
        &[1.0]
    };
    let mut ticks = Vec::new();
    let mut power = from;
    while power <= to + 1e-9 && ticks.len() < 40 {
        for factor in factors {
            let value = factor * 10_f64.powf(power);
            if value.log10() <= to + 1e-9 {
                ticks.push((value, write(value)));
            }
        }
        power += 1.0;
    }
    ticks
}

/// `99.9%`: without a nine rounded away, and short, for there are up to eight on an axis.
fn percent(fraction: f64) -> String {
    let text = percent_rounded_down(fraction, 5);
    format!("{}%", without_trailing_zeros(&text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_keep_their_nines() {
        let axis = Axis::Quantiles.map([0.0, 0.999_999_95].into_iter(), (0.0, 100.0));
        let texts: Vec<_> = axis.ticks().iter().map(|(_, text)| &**text).collect();
        assert_eq!(
            texts,
            [
                "0%",
                "90%",
                "99%",
                "99.9%",
                "99.99%",
                "99.999%",
                "99.9999%",
                "99.99999%"
            ]
        );
    }
}
