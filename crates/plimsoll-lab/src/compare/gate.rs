//! Whether ours is worse than is allowed: yes, no, or unknown after so few trials.

use plimsoll_report::page::Judgement;

use super::metric::Verdict;
use super::outcome::MetricResult;
use crate::statistics::Interval;

/// The most that ours may be worse.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gate {
    /// As a fraction: 0.1 is ten per cent.
    pub allowed: f64,
    /// Go on with more trials while that is unknown, up to so many of each operand.
    pub until_sure: Option<u32>,
}

/// The verdict of a [`Gate`] on a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GateVerdict {
    /// Ours is not worse by more than is allowed: the whole interval is within it.
    Held,
    /// Ours is worse beyond doubt, and by more than is allowed.
    Slower,
    /// The interval reaches to both sides.
    CannotTell {
        /// Trials of each operand after which an interval is narrow enough, where noise is as it was: it then lies within
        /// the allowance if there is no difference. `None` if no number of trials makes it so.
        trials: Option<u32>,
    },
}

impl GateVerdict {
    /// What it means.
    pub const fn judgement(self) -> Judgement {
        match self {
            Self::Held => Judgement::Good,
            Self::Slower => Judgement::Bad,
            Self::CannotTell { .. } => Judgement::Open,
        }
    }

    /// The name used in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Held => "held",
            Self::Slower => "slower",
            Self::CannotTell { .. } => "cannot-tell",
        }
    }
}

/// Below so many trials an interval proves nothing, whatever its width: it misses the true ratio more often than once in twenty
/// times ([`coverage_limit`](crate::statistics::coverage_limit): 96.9 % for six, 93.8 % for five).
pub(super) const LEAST_TRIALS: u32 = 6;

impl Gate {
    /// The verdict on `result`, which `trials` of each side gave.
    pub fn judge(self, result: &MetricResult, trials: u32) -> GateVerdict {
        let metric = result.metric;
        let most = 1.0 + self.allowed;
        if result.verdict == Verdict::Slower && metric.worse_by(result.estimate.ratio) > most {
            return GateVerdict::Slower;
        }
        if trials >= LEAST_TRIALS && worst(result) <= most {
            return GateVerdict::Held;
        }
        let trials = self.trials_needed(result.estimate.could_have_seen(), trials);
        GateVerdict::CannotTell { trials }
    }

    /// An interval becomes narrower with the root of the number of trials.
    ///
    /// - `seen`: the smallest difference that `trials` could have shown, as a fraction.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it was compared with the largest number before, and a square is not negative"
    )]
    fn trials_needed(self, seen: f64, trials: u32) -> Option<u32> {
        let least = LEAST_TRIALS.max(trials.saturating_add(1));
        let factor = (seen.ln_1p() / self.allowed.ln_1p()).powi(2);
        let needed = (f64::from(trials) * factor).ceil();
        (needed < f64::from(u32::MAX)).then(|| (needed as u32).max(least))
    }
}

/// The end of the interval at which ours is worst, as a factor.
fn worst(result: &MetricResult) -> f64 {
    let Interval { low, high } = result.estimate.interval;
    let [low, high] = [low, high].map(|bound| result.metric.worse_by(bound));
    low.max(high)
}

#[cfg(test)]
mod tests {
    use super::super::metric::Metric;
    use super::*;
    use crate::statistics::{Pairing, RatioEstimate};

    fn judged(
        metric: Metric,
        [low, ratio, high]: [f64; 3],
        allowed: f64,
        trials: u32,
    ) -> GateVerdict {
        let interval = Interval { low, high };
        let result = MetricResult {
            metric,
            ours: ratio,
            peer: 1.0,
            estimate: RatioEstimate {
                ratio,
                interval,
                pairing: Pairing::Blocks,
            },
            verdict: metric.verdict(interval, trials as usize),
        };
        let gate = Gate {
            allowed,
            until_sure: None,
        };
        gate.judge(&result, trials)
    }

    #[test]
    fn an_interval_beyond_the_allowance_is_not_held() {
        let cpu = Metric::CpuUsPerRequest;
        let cannot_tell = |trials| GateVerdict::CannotTell { trials };
        for (interval, allowed, trials, expected) in [
            ([0.98, 1.01, 1.04], 0.1, 8, GateVerdict::Held),
            ([1.02, 1.04, 1.08], 0.1, 8, GateVerdict::Held),
            ([1.02, 1.16, 1.31], 0.1, 8, GateVerdict::Slower),
            // Slower beyond doubt, and perhaps by too much.
            ([1.02, 1.08, 1.15], 0.1, 8, cannot_tell(Some(9))),
            // The ratio of a noisy machine.
            ([0.86, 1.16, 1.63], 0.1, 8, cannot_tell(Some(102))),
            ([0.86, 1.0, 1.16], 0.1, 8, cannot_tell(Some(21))),
            // Three trials are no proof, however alike they are.
            ([0.999, 1.0, 1.001], 0.1, 3, cannot_tell(Some(6))),
            ([1.0, 1.0, 1.0], 0.1, 1, cannot_tell(Some(6))),
            // That there is no difference at all takes no number of trials.
            ([0.99, 1.0, 1.01], 0.0, 8, cannot_tell(None)),
        ] {
            let verdict = judged(cpu, interval, allowed, trials);
            assert_eq!(verdict, expected, "{interval:?} {allowed} {trials}");
        }
    }

    #[test]
    fn less_of_a_rate_is_worse() {
        let rate = Metric::RequestsPerSecond;
        assert_eq!(judged(rate, [1.0, 1.5, 2.0], 0.1, 8), GateVerdict::Held);
        assert_eq!(judged(rate, [0.7, 0.8, 0.9], 0.1, 8), GateVerdict::Slower);
        let verdict = judged(rate, [0.8, 0.95, 1.0], 0.1, 8);
        assert_eq!(verdict.name(), "cannot-tell");
    }
}
