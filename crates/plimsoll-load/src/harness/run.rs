//! The harness as a whole: threads, what they tell each second, what they found.

use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;

use plimsoll_model::{Clock, LoadtestFound, LoadtestTick};
use plimsoll_wire::SystemClock;

use super::HarnessPlan;
use super::worker::{Setup, work};
use crate::Interrupt;
use crate::run::RunError;
use crate::run::progress::{Progress, ProgressReport};

/// Results of the workers of one process.
#[derive(Debug, Clone)]
pub struct HarnessOutcome {
    /// Outcomes of their checks.
    pub found: LoadtestFound,
    /// From the start to the end of the last check.
    pub elapsed: Duration,
}

/// Runs the workers of `plan` to their end, or until `interrupt` is set.
///
/// - `on_tick`: gets the state at every tick; its memory is left to the caller.
pub fn run(
    plan: &HarnessPlan,
    interrupt: &Arc<Interrupt>,
    on_tick: &mut dyn FnMut(LoadtestTick),
) -> Result<HarnessOutcome, RunError> {
    let threads = plan.threads.clamp(1, plan.workers.max(1));
    // Nothing is ever sent: the channel closes when the last thread is done.
    let (done, finished) = sync_channel::<()>(0);
    let start = SystemClock.now();
    let mut progress = Vec::new();
    let mut handles = Vec::new();
    for index in 0..threads {
        let mine = Arc::new(Progress::default());
        let setup = Setup {
            plan: plan.clone(),
            index,
            of: threads,
            start,
            progress: Arc::clone(&mine),
            interrupt: Arc::clone(interrupt),
        };
        let done = done.clone();
        let handle = thread::Builder::new()
            .name(format!("worker {index}"))
            .spawn(move || {
                let result = work(setup);
                drop(done);
                result
            })
            .map_err(RunError::Runtime)?;
        progress.push(mine);
        handles.push(handle);
    }
    drop(done);
    let mut tick = start + plan.tick;
    loop {
        let now = SystemClock.now();
        match finished.recv_timeout(tick.saturating_duration_since(now)) {
            Ok(()) => {}
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {
                on_tick(state(&progress, tick.saturating_duration_since(start)));
                tick += plan.tick;
            }
        }
    }
    let mut outcome = HarnessOutcome {
        found: LoadtestFound::default(),
        elapsed: Duration::ZERO,
    };
    for handle in handles {
        let (found, last) = handle
            .join()
            .map_err(|_| RunError::Panicked("a thread of the harness".to_owned()))??;
        outcome.found.merge(&found);
        outcome.elapsed = outcome.elapsed.max(last.saturating_duration_since(start));
    }
    let failures = &mut outcome.found.failures;
    failures.sort_by_key(|failure| std::cmp::Reverse(failure.count));
    Ok(outcome)
}

fn state(progress: &[Arc<Progress>], at: Duration) -> LoadtestTick {
    let mut sum = ProgressReport::default();
    for progress in progress {
        sum.merge(&progress.last());
    }
    LoadtestTick {
        at,
        ok: sum.ok,
        errors: sum.errors,
        in_flight: progress.iter().map(|progress| progress.in_flight()).sum(),
        memory_bytes: None,
    }
}
