//! Whether two operands did the same: a server that rejects what the other one serves is no faster.

use plimsoll_model::percentage;

use super::outcome::OperandResult;
use crate::error_share::ErrorShare;

/// Why `ours` and `peer` cannot be compared, if they cannot: the shares of their requests that failed or got
/// an error status differ by more than chance explains at `level`.
pub(super) fn incomparable(
    ours: &OperandResult,
    peer: &OperandResult,
    level: f64,
) -> Option<String> {
    let share = |operand: &OperandResult| {
        let trials = operand.trials.iter();
        ErrorShare::from_trials(trials.map(|trial| (trial.errors(), trial.ended())))
    };
    let (our_errors, peer_errors) = (share(ours), share(peer));
    our_errors.differs_from(peer_errors, level).then(|| {
        let text = |share: ErrorShare| percentage(share.value * 100.0);
        format!(
            "{} and {} are not comparable: {} of the requests of the one failed or got an error status, \
             and {} of those of the other",
            ours.label,
            peer.label,
            text(our_errors),
            text(peer_errors),
        )
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use plimsoll_model::CpuTime;

    use super::super::metric::Metric;
    use super::super::order::Turn;
    use super::super::trial::Trial;
    use super::*;

    fn trial(ok: u64, failed: u64, error_statuses: u64) -> Trial {
        Trial {
            turn: Turn {
                operand: 0,
                round: Some(0),
            },
            began: Duration::ZERO,
            length: Duration::from_secs(1),
            source: "wrk",
            ok,
            failed,
            error_statuses,
            requests_per_second: ok as f64,
            mean_us: None,
            p50_us: None,
            p99_us: None,
            cpu: CpuTime::default(),
            peak_rss_bytes: None,
            other_end_cpu: None,
        }
    }

    fn operand(label: &str, trials: Vec<Trial>) -> OperandResult {
        OperandResult {
            label: label.to_owned(),
            command: Vec::new(),
            trials,
        }
    }

    fn verdict(ours: Vec<Trial>, peer: Vec<Trial>) -> Option<String> {
        incomparable(&operand("A", ours), &operand("B", peer), 0.99)
    }

    #[test]
    fn a_server_that_rejects_almost_everything_is_not_faster() {
        let reason = verdict(vec![trial(26_000, 0, 25_900)], vec![trial(1_000, 0, 0)]).unwrap();
        assert!(
            reason.contains("99.6 %") && reason.contains("0.00 %"),
            "{reason}"
        );
        assert!(verdict(vec![trial(900, 100, 0)], vec![trial(1_000, 0, 0)]).is_some());
    }

    #[test]
    fn sides_that_fail_alike_are_comparable() {
        let alike = |errors| vec![trial(1_000, 0, errors), trial(1_000, 0, errors + 9)];
        assert_eq!(verdict(alike(100), alike(103)), None);
        assert_eq!(verdict(alike(0), alike(0)), None);
        // Two of ten trials broke down: chance may have chosen them.
        let mut bursts = vec![trial(1_000, 0, 0); 8];
        bursts.extend(vec![trial(1_000, 0, 300); 2]);
        assert_eq!(verdict(bursts, vec![trial(1_000, 0, 0); 10]), None);
        // One in a thousand changes no cost.
        assert_eq!(
            verdict(
                vec![trial(1_000_000, 0, 1_000)],
                vec![trial(1_000_000, 0, 0)]
            ),
            None
        );
    }

    #[test]
    fn processor_time_that_the_clock_did_not_see_is_not_nothing() {
        let unseen = trial(300, 0, 0);
        let cost = unseen.value(Metric::CpuUsPerRequest).unwrap();
        assert!((cost - 16.7).abs() < 0.1, "{cost}");
        let mut seen = unseen.clone();
        seen.cpu.user = Duration::from_millis(10);
        let warning = operand("A", vec![unseen, seen.clone()]).unseen_cpu();
        let warning = warning.unwrap();
        assert!(
            warning.contains("in 1 of 2 trials") && warning.contains("a guess"),
            "{warning}"
        );
        assert_eq!(operand("A", vec![seen]).unseen_cpu(), None);
    }
}
