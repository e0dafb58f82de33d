//! The terminal view of a script: progress, requests, and a bar for each scenario.

use std::cmp::Reverse;
use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use plimsoll_k6::{RunProgress, ScenarioStatus};
use plimsoll_model::AgentStanding;

use super::super::agents::AgentCells;
use crate::terminal;

/// Characters of a bar.
const BAR: usize = 24;

/// Writing to a `String` cannot fail.
const IN_MEMORY: &str = "a string grows";

/// Lines at the end of the terminal, which log lines are printed above of.
#[derive(Debug, Default)]
pub(super) struct Live {
    shown: Mutex<Shown>,
}

#[derive(Debug, Default)]
struct Shown {
    lines: Vec<String>,
    /// Requests at the last picture, and its time.
    before: (u64, Duration),
}

impl Live {
    /// Shows how far the run is.
    pub(super) fn show(&self, progress: &RunProgress) {
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        let lines = lines(progress, shown.before);
        terminal::replace_lines(shown.lines.len(), &lines);
        shown.lines = lines;
        shown.before = (progress.requests, progress.at);
    }

    /// Prints above the lines.
    pub(super) fn above(&self, print: impl FnOnce()) {
        let shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        if shown.lines.is_empty() {
            print();
            return;
        }
        terminal::replace_lines(shown.lines.len(), &[]);
        print();
        terminal::replace_lines(0, &shown.lines);
    }

    /// Removes the lines.
    pub(super) fn end(&self) {
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        if !shown.lines.is_empty() {
            terminal::replace_lines(shown.lines.len(), &[]);
            shown.lines.clear();
        }
    }
}

/// - `before`: requests and time of the last picture.
fn lines(progress: &RunProgress, before: (u64, Duration)) -> Vec<String> {
    let mut lines = vec![format!(
        "running ({}), {}/{} VUs, {} complete and {} interrupted iterations",
        clock(progress.at),
        progress.active,
        progress.initialised,
        progress.completed,
        progress.interrupted
    )];
    if progress.requests > 0 {
        let seconds = progress.at.saturating_sub(before.1).as_secs_f64();
        let new = progress.requests.saturating_sub(before.0) as f64;
        let rate = if seconds > 0.0 { new / seconds } else { 0.0 };
        let mut line = format!(
            "{} requests, {rate:.0}/s, {:.2}% failed",
            progress.requests,
            progress.failed * 100.0
        );
        if let Some((median, p95)) = progress.duration {
            write!(line, ", med={median:.2}ms p(95)={p95:.2}ms").expect(IN_MEMORY);
        }
        lines.push(line);
    }
    if progress.checks.1 > 0 {
        let (passed, all) = progress.checks;
        lines.push(format!("{passed} of {all} checks passed"));
    }
    let names = progress.scenarios.iter().map(|it| it.name.chars().count());
    let width = names.max().unwrap_or_default();
    lines.extend(
        progress
            .scenarios
            .iter()
            .map(|it| scenario(it, progress.at, width)),
    );
    lines.extend(agents(&progress.agents));
    lines
}

/// The agents of a fleet below each other; those with a state or failures first where there are many.
fn agents(agents: &[AgentStanding]) -> Vec<String> {
    const MOST: usize = 12;

    let mut rows: Vec<_> = agents
        .iter()
        .map(|agent| (agent, AgentCells::new(agent)))
        .collect();
    if rows.len() > MOST {
        rows.sort_by_key(|(agent, cells)| (cells.state.is_empty(), Reverse(agent.errors)));
    }
    let shown = rows.len().min(MOST);
    let names = rows[..shown].iter().map(|(it, _)| it.name.chars().count());
    let width = names.max().unwrap_or_default();
    let lines = rows[..shown].iter().map(|(agent, cells)| {
        let line = format!(
            "agent {:width$} {:>9}/s {:>7} failed  p(99)={:<9} {}",
            agent.name, cells.rate, cells.errors, cells.p99, cells.state
        );
        line.trim_end().to_owned()
    });
    let mut lines: Vec<_> = lines.collect();
    if rows.len() > shown {
        lines.push(format!("and {} more agents", rows.len() - shown));
    }
    lines
}

fn scenario(scenario: &ScenarioStatus, at: Duration, width: usize) -> String {
    let passed = at.saturating_sub(scenario.start);
    let share = scenario.share.clamp(0.0, 1.0);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is between 0 and the length of a bar"
    )]
    let filled = (share * BAR as f64) as usize;
    let bar = format!("{}{}", "=".repeat(filled), " ".repeat(BAR - filled));
    let mut line = format!(
        "{:width$} [{bar}] {:3.0}% {}/{} VUs  ",
        scenario.name,
        share * 100.0,
        scenario.vus.0,
        scenario.vus.1
    );
    if at < scenario.start {
        write!(line, "starts at {}", clock(scenario.start)).expect(IN_MEMORY);
    } else {
        let passed = clock(passed.min(scenario.length));
        write!(line, "{passed}/{}", clock(scenario.length)).expect(IN_MEMORY);
    }
    if scenario.dropped > 0 {
        write!(line, "  {} dropped", scenario.dropped).expect(IN_MEMORY);
    }
    line
}

/// `01m05.0s`, as k6 writes it.
fn clock(time: Duration) -> String {
    let tenths = time.as_millis() / 100;
    let (minutes, rest) = (tenths / 600, tenths % 600);
    format!("{minutes:02}m{:02}.{}s", rest / 10, rest % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_say_how_far_each_scenario_is() {
        let scenario = |name: &str, share, start| ScenarioStatus {
            name: name.to_owned(),
            executor: "constant-vus",
            start: Duration::from_secs(start),
            length: Duration::from_secs(20),
            share,
            vus: (2, 10),
            completed: 4,
            dropped: start,
        };
        let progress = RunProgress {
            at: Duration::from_millis(65_040),
            active: 2,
            initialised: 10,
            completed: 40,
            interrupted: 1,
            requests: 300,
            failed: 0.25,
            duration: Some((1.5, 2.25)),
            checks: (3, 4),
            scenarios: vec![scenario("a", 0.5, 0), scenario("longer", 0.0, 90)],
            ..RunProgress::default()
        };
        let expected = [
            "running (01m05.0s), 2/10 VUs, 40 complete and 1 interrupted iterations",
            "300 requests, 100/s, 25.00% failed, med=1.50ms p(95)=2.25ms",
            "3 of 4 checks passed",
            "a      [============            ]  50% 2/10 VUs  00m20.0s/00m20.0s",
            "longer [                        ]   0% 2/10 VUs  starts at 01m30.0s  90 dropped",
        ];
        let before = (200, Duration::from_millis(64_040));
        assert_eq!(lines(&progress, before), expected);
    }

    #[test]
    fn agents_stand_below_each_other() {
        use plimsoll_model::Bounded;

        let agent = |name: &str, per_second| AgentStanding {
            name: name.to_owned(),
            per_second,
            p99: Some(Bounded::exact(Duration::from_millis(12))),
            ..AgentStanding::default()
        };
        let lost = AgentStanding {
            is_lost: true,
            busiest_worker_percent: Some(99.0),
            errors: 3,
            p99: None,
            ..agent("web-two", None)
        };
        let limit = AgentStanding {
            busiest_worker_percent: Some(99.0),
            ..agent("web3", Some(5.0))
        };
        let lines = agents(&[agent("web1", Some(1234.0)), limit, lost.clone()]);
        assert_eq!(
            lines,
            [
                "agent web1        1,234/s       0 failed  p(99)=12.0 ms",
                "agent web3         5.00/s       0 failed  p(99)=12.0 ms   limit",
                "agent web-two         -/s       3 failed  p(99)=-         lost",
            ]
        );
        let mut many = vec![agent("web1", Some(1.0)); 20];
        many.push(lost);
        let lines = agents(&many);
        assert_eq!(lines.len(), 13);
        assert!(lines[0].contains("web-two"), "{}", lines[0]);
        assert_eq!(lines[12], "and 9 more agents");
    }
}
