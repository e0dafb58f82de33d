//! The table of agents of a fleet, for every format that has tables.

use plimsoll_model::{grouped, rate_figures};

use super::table::{NOTHING, optional, optional_us};
use crate::RunRecord;
use crate::document::FleetAgentDocument;

/// Titles of the columns: those first that a narrow screen shows.
pub(super) const COLUMNS: [&str; 9] = [
    "Agent", "State", "Rate/s", "Errors", "p99", "Busiest", "Late", "Started", "Workers",
];

/// The rows of one run, by the names of agents; none where no fleet made it.
pub(super) fn rows(run: &RunRecord) -> Vec<[String; 9]> {
    run.summary.agents.iter().map(row).collect()
}

fn row(agent: &FleetAgentDocument) -> [String; 9] {
    let errors = match agent.errors {
        0 => NOTHING.to_owned(),
        errors => grouped(errors),
    };
    let busiest = agent.busiest_worker_percent;
    // Why a part is incomplete is the first caution of the run.
    let state = match agent.state() {
        "" => NOTHING,
        state => state,
    };
    [
        agent.name.clone(),
        state.to_owned(),
        rate_figures(agent.requests_per_second),
        errors,
        optional(agent.latency.p99_us),
        busiest.map_or(NOTHING.to_owned(), |percent| format!("{percent:.0} %")),
        optional_us(agent.late_us),
        grouped(agent.started),
        grouped(agent.workers as f64),
    ]
}
