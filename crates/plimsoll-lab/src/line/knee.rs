//! The knee: where more load begins to cost more waiting than it brings throughput.

use crate::statistics::median;

/// The behaviour of a server at one rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Operating {
    /// Arrivals per second.
    pub rate: f64,
    /// Complete responses per second.
    pub throughput: f64,
    /// Mean latency from the intended start, in microseconds.
    pub mean_us: f64,
}

/// Power (rate by latency) below this share of the highest is lower beyond noise: windows at one rate differ too.
const CLEARLY: f64 = 0.8;

/// The rate at which power, throughput over mean latency, is highest.
///
/// - `points`: windows in any order; those of one rate count as their medians.
///
/// `None` unless power is clearly lower on either side of it: at an end the knee lies beyond what was
/// tried, and where power hardly changes there is none.
///
/// Source: Kleinrock, "Power and Deterministic Rules of Thumb for Probabilistic Problems in Computer
/// Communications" (1979).
pub fn knee(points: &[Operating]) -> Option<f64> {
    let mut points: Vec<Operating> = points
        .iter()
        .filter(|point| point.mean_us > 0.0 && point.throughput > 0.0)
        .copied()
        .collect();
    points.sort_unstable_by(|a, b| a.rate.total_cmp(&b.rate));
    let powers: Vec<(f64, f64)> = points
        .chunk_by(|a, b| a.rate.total_cmp(&b.rate).is_eq())
        .filter_map(|same| {
            let powers: Vec<f64> = same
                .iter()
                .map(|point| point.throughput / point.mean_us)
                .collect();
            Some((same[0].rate, median(&powers)?))
        })
        .collect();
    let most = (0..powers.len()).max_by(|&a, &b| powers[a].1.total_cmp(&powers[b].1))?;
    let clearly_lower = |powers: &[(f64, f64)], most: f64| {
        let lowest = powers.iter().map(|(_, power)| *power);
        lowest.fold(f64::INFINITY, f64::min) < CLEARLY * most
    };
    let (rate, highest) = powers[most];
    (clearly_lower(&powers[..most], highest) && clearly_lower(&powers[most + 1..], highest))
        .then_some(rate)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(latency: impl Fn(f64) -> f64) -> Vec<Operating> {
        (1..20)
            .map(|step| {
                let rate = f64::from(step) * 50.0;
                Operating {
                    rate,
                    throughput: rate,
                    mean_us: latency(rate),
                }
            })
            .collect()
    }

    #[test]
    fn of_a_single_server_it_is_half_of_its_capacity() {
        // M/M/1: mean latency 1 / (μ − λ).
        let found = knee(&points(|rate| 1e6 / (1000.0 - rate)));
        assert_eq!(found, Some(500.0));
    }

    #[test]
    fn without_waiting_there_is_none() {
        assert_eq!(knee(&points(|_| 300.0)), None);
        // Nor where it only wobbles.
        assert_eq!(knee(&points(|rate| rate + rate % 3.0)), None);
        assert_eq!(knee(&[]), None);
    }
}
