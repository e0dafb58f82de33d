//! The search on a real target: each window is a run of plimsoll's own load.

use std::sync::Arc;

use plimsoll_load::conditions::Before;
use plimsoll_load::{Interrupt, Observation, RunError, Watch, run};
use plimsoll_model::Clock;
use plimsoll_observe::{NamedTarget, ProcessTree, Target, WaitSampler};
use plimsoll_wire::SystemClock;

use super::outcome::{Line, Window};
use super::plan::LinePlan;
use super::search::{SearchOutcome, WindowPlan, search};

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
pub enum LineError {
    /// A window could not be made.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The user stopped it before a window was over.
    #[error("interrupted before the first window was over")]
    Interrupted,
}

/// Progress of the search.
#[derive(Debug)]
pub enum Event<'a> {
    /// A window begins.
    Begins {
        /// From 1.
        number: usize,
        /// Its plan.
        planned: WindowPlan,
    },
    /// It is over.
    Ended(&'a Window),
}

/// Searches the load line; blocks until it is found or cannot be.
///
/// An interruption ends it with what the windows before it came to.
///
/// - `target`: the processes behind the URL, if they are on this machine.
/// - `observed`: servers that are observed by name; without `target` the first one is what the URL costs.
pub fn line(
    plan: &LinePlan,
    target: Option<&dyn Target>,
    observed: &[NamedTarget],
    interrupt: &Arc<Interrupt>,
    on_event: &mut dyn FnMut(&Event<'_>),
) -> Result<Line, LineError> {
    let clock = SystemClock;
    let before = Before::observe(clock.wall());
    let start = clock.now();
    let mut windows: Vec<Window> = Vec::new();
    let found = search(&plan.search, &mut |planned| {
        let number = windows.len() + 1;
        on_event(&Event::Begins { number, planned });
        let began = clock.now().saturating_duration_since(start);
        let observation = Observation {
            target,
            observed,
            facts: plan.facts.clone(),
            thresholds: &[],
        };
        let mut watch = Watch {
            interrupt: Arc::clone(interrupt),
            on_tick: &mut |_| {},
        };
        let waits = target.and_then(watch_waits);
        let summary = run(&plan.run_of(planned, number), observation, &mut watch)?;
        let waits = waits.map(WaitSampler::stop).unwrap_or_default();
        if interrupt.is_set() {
            return Err(LineError::Interrupted);
        }
        let window = Window {
            waits,
            ..Window::from_run(planned, began, &summary, &plan.objectives)
        };
        on_event(&Event::Ended(&window));
        let seen = window.seen;
        windows.push(window);
        Ok(seen)
    });
    let found = match found {
        Err(LineError::Interrupted) if !windows.is_empty() => {
            let made: Vec<_> = windows
                .iter()
                .map(|window| (window.planned, window.seen.held))
                .collect();
            SearchOutcome::so_far(&made)
        }
        found => found?,
    };
    let first = observed.first().map(|named| &*named.target);
    let name = target.or(first).map(|target| target.name().to_owned());
    let conditions = before.after(plan.facts.clone());
    Ok(Line::new(plan, found, windows, name, conditions))
}

/// Looks at what the target's threads wait for, if that is possible: a search without it is a search all the same.
fn watch_waits(target: &dyn Target) -> Option<WaitSampler> {
    let pid = target.pid()?;
    WaitSampler::start(pid, ProcessTree::attach(pid).ok()?).ok()
}
