//! The table of agents: the parts of a run that several machines made.

use std::time::Duration;

use plimsoll_model::{AgentFigures, grouped, rate_figures};

use crate::text::numbers::{NOTHING, duration};
use crate::text::page::{Page, shortened};

/// Columns of a name.
const NAME: usize = 18;

/// Adds the table; nothing where this process made the run.
///
/// - `window`: of the run.
pub(in crate::text) fn agents(page: &mut Page, agents: &[AgentFigures], window: Duration) {
    if agents.is_empty() {
        return;
    }
    page.heading("agents", "");
    let head = ["", "rate/s", "errors", "p99", "busiest", "late", ""];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    let seconds = window.as_secs_f64();
    rows.extend(agents.iter().map(|agent| row(agent, seconds)));
    page.table(&rows);
}

fn row(agent: &AgentFigures, seconds: f64) -> Vec<String> {
    let rate = if seconds > 0.0 {
        agent.counts.completed_in_window as f64 / seconds
    } else {
        0.0
    };
    let errors = match agent.counts.errors() {
        0 => NOTHING.to_owned(),
        errors => grouped(errors),
    };
    let p99 = agent.latency.quantile(0.99);
    let busiest = agent.busiest_worker_percent;
    vec![
        shortened(&agent.name, NAME),
        rate_figures(rate),
        errors,
        p99.map_or(NOTHING.to_owned(), |p99| p99.text(duration)),
        busiest.map_or(NOTHING.to_owned(), |percent| format!("{percent:.0} %")),
        agent.late.map_or(NOTHING.to_owned(), duration),
        agent.state().to_owned(),
    ]
}
