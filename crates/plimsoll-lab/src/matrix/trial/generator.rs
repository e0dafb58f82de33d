//! The generator of a trial.

use std::time::Duration;

use plimsoll_model::Clock;
use plimsoll_observe::ProcessTree;
use plimsoll_wire::SystemClock;
use plimsoll_wire::process::Finished;

use super::sides::Sides;
use plimsoll_model::with_causes;

use super::{Bench, TrialError};
use crate::cgroup::Group;
use crate::command::Command;
use crate::matrix::plan::{LoadPlan, Loader};
use crate::matrix::usage::{ObservedSide, ObservedUpstream, Usage};
use crate::plans::fill;
use crate::server::on_own_lines;

/// Sampling interval.
const LOOK: Duration = Duration::from_millis(50);

/// Part of the window over which use is measured: the generator must not be gone at its end.
const OBSERVED: f64 = 0.95;

/// A load of a trial.
pub(super) struct Generator<'a> {
    pub(super) bench: &'a Bench<'a>,
    pub(super) load: &'a LoadPlan,
    pub(super) connections: u32,
    pub(super) url: &'a str,
    pub(super) group: Option<&'a Group>,
}

/// A load that has run to its end.
pub(super) struct Ran {
    pub(super) finished: Finished,
    pub(super) length: Duration,
    pub(super) output: String,
    pub(super) complaint: String,
    pub(super) generator: Option<Usage>,
}

impl Generator<'_> {
    pub(super) fn run(
        &mut self,
        sides: &mut Sides<'_>,
        all: Option<&Group>,
    ) -> Result<Ran, TrialError> {
        let plan = self.bench.plan;
        match &self.load.loader {
            Loader::Plimsoll(flags) => {
                let words = self.own_words(flags);
                self.once(&words, plan.warm_up, plan.window, sides, all)
            }
            Loader::Command(words) => {
                if !plan.warm_up.is_zero() {
                    let warm_up = self.words(words, plan.warm_up);
                    self.once(&warm_up, Duration::ZERO, plan.warm_up, sides, all)?;
                }
                let words = self.words(words, plan.window);
                self.once(&words, Duration::ZERO, plan.window, sides, all)
            }
        }
    }

    fn own_words(&self, flags: &[String]) -> Vec<String> {
        let plan = self.bench.plan;
        let millis = |time: Duration| format!("{}ms", time.as_millis());
        let mut words: Vec<String> = [self.bench.plimsoll, "load", "--no-tui", "--json", "-c"]
            .map(str::to_owned)
            .into();
        words.push(self.connections.to_string());
        words.extend(["-z".to_owned(), millis(plan.window)]);
        if !plan.warm_up.is_zero() {
            words.extend(["--warm-up".to_owned(), millis(plan.warm_up)]);
        }
        if let Some(rate) = self.load.rate {
            words.extend(["-q".to_owned(), rate.per_second().to_string()]);
        }
        words.extend_from_slice(flags);
        words.push(self.url.to_owned());
        words
    }

    /// Whole seconds, since that is what tools take.
    fn words(&self, words: &[String], length: Duration) -> Vec<String> {
        let rate = self.load.rate.map_or(0.0, plimsoll_model::Rate::per_second);
        let values = [
            ("seconds", length.as_secs().max(1).to_string()),
            ("connections", self.connections.to_string()),
            ("rate", rate.to_string()),
            ("url", self.url.to_owned()),
        ]
        .map(|(name, value)| (name.to_owned(), value));
        words.iter().map(|word| fill(word, &values)).collect()
    }

    /// Runs a command to its end; the window begins `before` after it and lasts `window`.
    ///
    /// It ends early if the target does, or if something of `all` is killed for memory.
    fn once(
        &self,
        words: &[String],
        before: Duration,
        window: Duration,
        sides: &mut Sides<'_>,
        all: Option<&Group>,
    ) -> Result<Ran, TrialError> {
        let clock = SystemClock;
        let cores = &self.bench.plan.generator_cores;
        let mut command = Command::start_in(self.group, words, cores)
            .map_err(|error| TrialError::Failed(with_causes(&error)))?;
        let begun = clock.now();
        let allowed = sides.allowed(cores, self.group.is_some());
        let mut generator = command
            .tree()
            .ok()
            .map(|tree: ProcessTree| ObservedSide::new("generator".to_owned(), allowed, tree));
        let limit = before + window * 2 + Duration::from_secs(30);
        let mut next = [before, before + window.mul_f64(OBSERVED)].into_iter();
        let mut due = next.next();
        loop {
            let elapsed = clock.now().saturating_duration_since(begun);
            let wait = due.map_or(LOOK, |due| due.saturating_sub(elapsed).min(LOOK));
            let finished = command.wait(wait);
            if let Ok(Some(finished)) = finished {
                return Ok(Ran {
                    finished,
                    length: clock.now().saturating_duration_since(begun),
                    output: command.stdout(),
                    complaint: on_own_lines(&command.complaint()),
                    generator: generator.as_ref().and_then(ObservedSide::usage),
                });
            }
            finished.map_err(|error| {
                TrialError::Failed(format!("cannot wait for the generator: {error}"))
            })?;
            if self.bench.interrupt.is_set() {
                return Err(TrialError::Interrupted);
            }
            let elapsed = clock.now().saturating_duration_since(begun);
            let mut look: fn(&mut ObservedSide) = |watched| {
                watched.look();
            };
            if due.is_some_and(|due| elapsed >= due) {
                due = next.next();
                look = if due.is_some() {
                    ObservedSide::begin
                } else {
                    ObservedSide::end
                };
                let mark = if due.is_some() {
                    ObservedUpstream::begin
                } else {
                    ObservedUpstream::end
                };
                sides.observed.iter_mut().for_each(mark);
            }
            sides.each(look);
            generator.iter_mut().for_each(look);
            let killed = all.is_some_and(|group| group.killed_for_memory() > 0);
            if killed || sides.has_dead() {
                return Err(TrialError::Failed(
                    sides
                        .dead()
                        .unwrap_or_else(|| "something was killed for memory".to_owned()),
                ));
            }
            if elapsed > limit {
                let complaint = on_own_lines(&command.complaint());
                return Err(TrialError::Failed(format!(
                    "the generator still ran after {} s{complaint}",
                    limit.as_secs()
                )));
            }
        }
    }
}
