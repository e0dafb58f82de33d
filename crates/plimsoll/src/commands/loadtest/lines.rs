//! A line on standard error each second.

use plimsoll_model::{AgentStanding, LoadtestTick};
use plimsoll_observe::ProcessTree;
use plimsoll_report::text;

use crate::terminal;

/// Reports the progress of the run and keeps what was reported.
#[derive(Debug)]
pub(super) struct Lines {
    is_quiet: bool,
    ticks: Vec<LoadtestTick>,
}

/// A day of seconds; what comes later is shown and not kept.
const MOST_TICKS: usize = 86_400;

impl Lines {
    pub(super) fn new(is_quiet: bool) -> Self {
        Self {
            is_quiet,
            ticks: Vec::new(),
        }
    }

    /// - `tree`: the processes whose memory is shown.
    pub(super) fn show(&mut self, mut tick: LoadtestTick, tree: Option<&mut ProcessTree>) {
        tick.memory_bytes = tree
            .and_then(|tree| tree.sample(tick.at, tick.ok).ok())
            .map(|sample| sample.memory.total_bytes());
        self.add(tick);
    }

    #[cfg(feature = "fleet")]
    /// The same for agents of a fleet, with a second line that has them side by side.
    pub(super) fn show_agents(&mut self, tick: LoadtestTick, agents: &[AgentStanding]) {
        self.add(tick);
        if !self.is_quiet {
            let line = text::loadtest_agents(agents, terminal::style_of_stderr());
            terminal::log_line(&line);
        }
    }

    fn add(&mut self, tick: LoadtestTick) {
        let before = self.ticks.last().copied().unwrap_or_default();
        if !self.is_quiet {
            let line = text::loadtest_line(&tick, &before, terminal::style_of_stderr());
            terminal::log_line(&line);
        }
        if self.ticks.len() < MOST_TICKS {
            self.ticks.push(tick);
        }
    }

    pub(super) fn into_ticks(self) -> Vec<LoadtestTick> {
        self.ticks
    }
}
