//! Errors of an operand over its trials, and whether two operands did the same.

use crate::statistics::normal_interval_half;

/// Shares of errors that differ by less do not change what requests cost.
const SMALLEST: f64 = 0.005;

/// The share of requests that were not served.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ErrorShare {
    /// As a fraction.
    pub(crate) value: f64,
    /// Of that estimate.
    variance: f64,
}

impl ErrorShare {
    /// The share over all trials. Errors come in bursts, so the trials may show more noise than single
    /// requests would; the larger counts.
    ///
    /// - `trials`: of each the requests that were not served, and those that ended.
    pub(crate) fn from_trials(trials: impl Iterator<Item = (u64, u64)> + Clone) -> Self {
        let (errors, ended) = trials
            .clone()
            .fold((0, 0), |sum, trial| (sum.0 + trial.0, sum.1 + trial.1));
        if ended == 0 {
            return Self {
                value: 0.0,
                variance: 0.0,
            };
        }
        // Arrivals that were given up are errors that never began.
        let value = (errors as f64 / ended as f64).min(1.0);
        let of_requests = value * (1.0 - value) / ended as f64;
        let number = trials.clone().count() as f64;
        let of_trials = if number < 2.0 {
            0.0
        } else {
            let squares = trials.map(|(errors, ended)| {
                let share = errors as f64 / ended.max(1) as f64;
                (share - value).powi(2)
            });
            squares.sum::<f64>() / (number - 1.0) / number
        };
        Self {
            value,
            variance: of_requests.max(of_trials),
        }
    }

    /// Whether the two differ by more than chance explains at `level`: then they did not do the same.
    pub(crate) fn differs_from(self, other: Self, level: f64) -> bool {
        let difference = (self.value - other.value).abs();
        let noise = normal_interval_half(level, self.variance + other.variance);
        difference > SMALLEST && difference > noise
    }
}
