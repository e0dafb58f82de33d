//! The rule of thirds: how the analyser of the source's burn-in judges, so that verdicts can be compared.
//!
//! It compares medians of the first and the last third. Its known false alarms are ramps to a cap and sawtooths on a low
//! level.

use super::series::{Kind, Series};
use super::verdict::Verdict;
use crate::statistics::median;

/// One of so many samples, at the start, is not looked at.
const WARM_UP: usize = 10;

/// Samples behind it without which nothing is judged.
const LEAST: usize = 8;

/// Growth of the last third over the first that is allowed.
const GROWTH: f64 = 0.1;

/// Part of the differences between neighbours that must not be negative for a trend.
const MONOTONE: f64 = 0.6;

/// How much faster the second half of a counter may grow.
const FASTER: f64 = 1.8;

/// Judges a series by the rule.
pub fn judge_by_thirds(series: &Series) -> Verdict {
    let values: Vec<f64> = series.known().iter().map(|(_, value)| *value).collect();
    if series.kind == Kind::Zero {
        return drift_if(values.iter().any(|value| *value > 0.0));
    }
    let values = &values[values.len() / WARM_UP..];
    if values.len() < LEAST {
        return Verdict::Inconclusive;
    }
    if series.kind == Kind::Counter {
        let (first, second) = values.split_at(values.len() / 2);
        let slope = |half: &[f64]| match half {
            [first, .., last] => (last - first) / (half.len() - 1) as f64,
            _ => 0.0,
        };
        return drift_if(slope(second) > FASTER * slope(first) + 1.0);
    }
    let third = values.len() / 3;
    let middle = |values: &[f64]| median(values).unwrap_or_default();
    let (first, last) = (
        middle(&values[..third]),
        middle(&values[values.len() - third..]),
    );
    // Gauges are whole numbers, so no level is below 1.
    let grew = (last - first) / first.max(1.0) > GROWTH;
    let not_falling = values.windows(2).filter(|pair| pair[1] >= pair[0]).count();
    let is_monotone = not_falling as f64 >= MONOTONE * (values.len() - 1) as f64;
    drift_if(grew && is_monotone)
}

fn drift_if(drifts: bool) -> Verdict {
    if drifts {
        Verdict::Drift
    } else {
        Verdict::Bounded
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(kind: Kind, values: impl IntoIterator<Item = f64>) -> Series {
        let points = values.into_iter().enumerate();
        Series {
            name: "x".to_owned(),
            kind,
            points: points.map(|(at, value)| (at as f64, Some(value))).collect(),
        }
    }

    #[test]
    fn verdicts_are_those_of_the_rule_with_its_false_alarms() {
        let judged = |kind, values: Vec<f64>| judge_by_thirds(&series(kind, values));
        let climb = (0..60).map(|at| 50.0 + f64::from(at)).collect();
        assert_eq!(judged(Kind::Gauge, climb), Verdict::Drift);
        // A ramp to a cap is called a drift.
        let cap = (0..60).map(|at| f64::from(at.min(30)) + 50.0).collect();
        assert_eq!(judged(Kind::Gauge, cap), Verdict::Drift);
        let flat = vec![80.0; 60];
        assert_eq!(judged(Kind::Memory, flat.clone()), Verdict::Bounded);
        assert_eq!(judged(Kind::Memory, flat[..8].to_vec()), Verdict::Bounded);
        assert_eq!(
            judged(Kind::Memory, flat[..7].to_vec()),
            Verdict::Inconclusive
        );
        let steady = (0..60).map(|at| f64::from(at) * 100.0).collect();
        assert_eq!(judged(Kind::Counter, steady), Verdict::Bounded);
        let faster = (0..60).map(|at| f64::from(at * at) * 10.0).collect();
        assert_eq!(judged(Kind::Counter, faster), Verdict::Drift);
        assert_eq!(judged(Kind::Zero, vec![0.0, 0.0, 1.0]), Verdict::Drift);
        assert_eq!(judged(Kind::Zero, vec![0.0]), Verdict::Bounded);
    }
}
