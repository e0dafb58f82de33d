//! What a user sees of a fleet beside the summary.

use std::fmt::Write as _;
use std::time::Duration;

use plimsoll_fleet::{FleetOutcome, Note};
use plimsoll_model::{ByteSize, grouped};

use super::flags::FleetArgs;
use crate::problem::Problem;

/// A line on the way.
pub(crate) fn note(note: &Note) -> String {
    match note {
        Note::Joined {
            agent,
            cores,
            have,
            wanted,
        } => {
            let plural = if *cores == 1 { "core" } else { "cores" };
            format!("agent {agent} ({cores} {plural}), {have} of {wanted}")
        }
        Note::Parts(parts) => format!("{} agents are there", parts.len()),
        Note::Attached { agents } => {
            let plural = if *agents == 1 { "agent" } else { "agents" };
            format!("goes on with {agents} {plural}")
        }
        Note::Starting { agents, spread, .. } => {
            let start = if *agents == 1 {
                "agent starts"
            } else {
                "agents start"
            };
            let within = if spread.is_zero() {
                String::new()
            } else {
                format!(", together within {}", millis(*spread))
            };
            format!("{agents} {start} in half a second{within}")
        }
        Note::BrokerAway { waits } => {
            format!("the broker is away; the run waits for it for up to {waits:?}")
        }
        Note::BrokerBack { after } => {
            format!("the broker is back after {:.1} s", after.as_secs_f64())
        }
        Note::Abandoned(reason) => format!("the run ends with what was counted: {reason}"),
        Note::Lost {
            agent,
            reason,
            goes_on,
        } => {
            let then = if *goes_on {
                "the others go on"
            } else {
                "the run ends"
            };
            format!("agent {agent} is lost: {reason}; {then}")
        }
    }
}

/// What stays on the broker of a run that is over.
pub(crate) fn kept(args: &FleetArgs, run: &str, outcome: &FleetOutcome) -> Vec<Problem> {
    let stays = format!("the log and the files of run {run} stay on the broker for a day");
    let note = match &outcome.left {
        _ if args.keep => Problem::with("--keep", stays),
        Some(why) => Problem::new(format!("{stays}: {why}")),
        None => return Vec::new(),
    };
    vec![note.hint(format!(
        "--attach {run} reports them again, with what agents have sent since"
    ))]
}

/// A line before the start if the log may be too small.
///
/// - `ticks`: of each agent, a second each.
/// - `of_tick`: bytes of a tick, about.
pub(super) fn log_forecast(
    agents: usize,
    ticks: Duration,
    of_tick: u64,
    most: ByteSize,
) -> Option<String> {
    let ticks = (agents as u64).saturating_mul(ticks.as_secs());
    let bytes = ByteSize(ticks.saturating_mul(of_tick));
    (bytes > most).then(|| {
        format!(
            "the log may be too small: {} ticks of up to {} are {bytes}, and it takes {most}; the run ends when it is full \
             (--fleet-log SIZE)",
            grouped(ticks as f64),
            ByteSize(of_tick),
        )
    })
}

/// The agents side by side.
///
/// - `started`, `ok`: what they have begun and completed.
pub(super) fn agents(outcome: &FleetOutcome, started: &str, ok: &str) -> String {
    let width = outcome.members.iter().map(|it| it.agent.len());
    let width = width.max().unwrap_or_default().max("agent".len());
    let mut text = format!(
        "\n{:<width$}  {:>7}  {:>12}  {:>12}  {:>11}  {:>9}",
        "agent", "workers", started, ok, "busiest", "late"
    );
    for agent in &outcome.members {
        let report = agent.report.as_ref();
        let busiest = report
            .map(|report| report.busiest_worker_percent())
            .filter(|percent| *percent > 0.0)
            .map_or_else(|| "-".to_owned(), |percent| format!("{percent:.0} %"));
        let late = report
            .map(|report| report.late())
            .map_or_else(|| "-".to_owned(), millis);
        let line = write!(
            text,
            "\n{:<width$}  {:>7}  {:>12}  {:>12}  {busiest:>11}  {late:>9}",
            agent.agent,
            agent.share.workers,
            grouped(agent.merged.started as f64),
            grouped(agent.merged.ok as f64),
        );
        line.expect("a text takes more");
        if let Some(problem) = &agent.problem {
            write!(text, "  {problem}").expect("a text takes more");
        }
    }
    if !outcome.incomplete().is_empty() {
        text.push_str("\n\nincomplete: the figures are not those of the whole run");
    }
    text
}

fn millis(duration: Duration) -> String {
    format!("{:.1} ms", duration.as_secs_f64() * 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_that_may_be_too_small_is_forecast_with_its_figures() {
        let line =
            |seconds| log_forecast(4, Duration::from_secs(seconds), 1000, ByteSize(1_000_000));
        assert_eq!(line(250), None);
        assert_eq!(
            line(500).unwrap(),
            "the log may be too small: 2,000 ticks of up to 1.00 kB are 2.00 MB, and it takes 1.00 MB; the run ends when it is \
             full (--fleet-log SIZE)"
        );
    }
}
