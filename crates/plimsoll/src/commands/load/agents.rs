//! An agent of a fleet while a run goes on, as the terminal view and the dashboard show it.

use std::time::Duration;

use plimsoll_model::{AgentStanding, DurationText, grouped, rate_figures};
use plimsoll_report::files::ExtraTable;

/// An agent that starts requests later than this although connections are free is shown as one that is the limit perhaps.
const LAG: Duration = Duration::from_millis(10);

/// The cells of its row.
pub(super) struct AgentCells {
    /// Responses a second.
    pub(super) rate: String,
    pub(super) errors: String,
    pub(super) p99: String,
    /// How late it starts requests.
    pub(super) lag: String,
    /// Its busiest worker.
    pub(super) busiest: String,
    /// Empty as long as it makes its part.
    pub(super) state: &'static str,
}

impl AgentCells {
    pub(super) fn new(agent: &AgentStanding) -> Self {
        let nothing = || "-".to_owned();
        let time = |time: Duration| DurationText(time).to_string();
        Self {
            rate: agent.per_second.map_or_else(nothing, rate_figures),
            errors: grouped(agent.errors),
            p99: agent.p99.map_or_else(nothing, |p99| p99.text(time)),
            lag: agent
                .lag_p99
                .filter(|lag| !lag.is_zero())
                .map_or_else(nothing, time),
            busiest: agent
                .busiest_worker_percent
                .map_or_else(nothing, |percent| format!("{percent:.0} %")),
            state: match agent {
                AgentStanding { is_lost: true, .. } => "lost",
                AgentStanding { is_over: true, .. } => "ended",
                agent if agent.is_limit() => "limit",
                AgentStanding {
                    lag_p99: Some(lag), ..
                } if *lag >= LAG => "starts late",
                _ => "",
            },
        }
    }
}

/// The agents side by side, for a page.
pub(super) fn table(agents: &[AgentStanding]) -> ExtraTable {
    let head = [
        "agent",
        "per second",
        "errors",
        "p99",
        "busiest",
        "starts late",
        "state",
    ];
    let row = |agent: &AgentStanding| {
        let cells = AgentCells::new(agent);
        vec![
            agent.name.clone(),
            cells.rate,
            cells.errors,
            cells.p99,
            cells.busiest,
            cells.lag,
            cells.state.to_owned(),
        ]
    };
    ExtraTable {
        title: "Agents".to_owned(),
        head: head.map(str::to_owned).to_vec(),
        rows: agents.iter().map(row).collect(),
    }
}
