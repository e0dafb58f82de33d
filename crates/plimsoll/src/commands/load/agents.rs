//! An agent of a fleet while a run goes on, as the terminal view and the dashboard show it.

use std::time::Duration;

use plimsoll_model::{AgentStanding, DurationText, grouped, rate_figures};

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
            state: match agent {
                AgentStanding { is_lost: true, .. } => "lost",
                AgentStanding { is_over: true, .. } => "ended",
                AgentStanding {
                    lag_p99: Some(lag), ..
                } if *lag >= LAG => "starts late",
                _ => "",
            },
        }
    }
}
