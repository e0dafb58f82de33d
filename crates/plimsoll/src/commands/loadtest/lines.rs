//! A line on standard error each second.

use plimsoll_model::{AgentStanding, LoadtestTick};
use plimsoll_observe::ProcessTree;
use plimsoll_report::text;

use crate::terminal;

/// Reports the progress of the run and keeps what was reported.
#[derive(Debug)]
pub(super) struct Lines {
    is_quiet: bool,
    before: LoadtestTick,
    course: Course,
}

impl Lines {
    pub(super) fn new(is_quiet: bool) -> Self {
        Self {
            is_quiet,
            before: LoadtestTick::default(),
            course: Course::new(MOST_TICKS),
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
        if !self.is_quiet {
            let line = text::loadtest_line(&tick, &self.before, terminal::style_of_stderr());
            terminal::log_line(&line);
        }
        self.before = tick;
        self.course.push(tick);
    }

    pub(super) fn into_ticks(self) -> Vec<LoadtestTick> {
        self.course.ticks
    }
}

/// A day of seconds. In longer runs the ticks that are kept are further apart.
const MOST_TICKS: usize = 86_400;

/// Ticks of a run in bounded memory: since each counts from the start, leaving one out loses no count.
#[derive(Debug)]
struct Course {
    ticks: Vec<LoadtestTick>,
    most: usize,
    /// One of so many ticks is kept.
    every: usize,
    /// Ticks that the last one stands for.
    last: usize,
}

impl Course {
    fn new(most: usize) -> Self {
        Self {
            ticks: Vec::new(),
            most,
            every: 1,
            last: 0,
        }
    }

    fn push(&mut self, tick: LoadtestTick) {
        match self.ticks.last_mut() {
            Some(last) if self.last < self.every => {
                *last = tick;
                self.last += 1;
            }
            _ => {
                if self.ticks.len() >= self.most {
                    let mut is_second = true;
                    self.ticks.retain(|_| {
                        is_second = !is_second;
                        is_second
                    });
                    self.every *= 2;
                }
                self.ticks.push(tick);
                self.last = 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn ticks_of_a_long_run_are_further_apart_and_the_last_one_is_there() {
        for seconds in [1_u64, 8, 9, 50, 1000] {
            let mut course = Course::new(8);
            for second in 1..=seconds {
                course.push(LoadtestTick {
                    at: Duration::from_secs(second),
                    ok: 10 * second,
                    ..LoadtestTick::default()
                });
                assert!(course.ticks.len() <= 8, "{seconds}");
            }
            let ticks = course.ticks;
            assert_eq!(ticks.last().map(|tick| tick.ok), Some(10 * seconds));
            let steps: Vec<u64> = ticks
                .windows(2)
                .map(|it| (it[1].ok - it[0].ok) / 10)
                .collect();
            let between = steps.split_last().map_or(&[][..], |(_, steps)| steps);
            assert!(between.windows(2).all(|it| it[0] == it[1]), "{steps:?}");
            assert!(ticks.len() as u64 >= seconds.min(4), "{seconds}");
        }
    }
}
