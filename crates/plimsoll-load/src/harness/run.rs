//! The harness as a whole: threads, what they tell each second, what they found.

use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
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
    /// Outcomes of all their checks.
    pub found: LoadtestFound,
    /// Those since the last tick.
    pub last_found: LoadtestFound,
    /// From the start to the end of the last check.
    pub elapsed: Duration,
}

/// The state of a run at one moment, and what was found since the last tick.
#[derive(Debug)]
pub struct HarnessTick {
    /// The state; its memory is left to the caller.
    pub state: LoadtestTick,
    /// Outcomes of checks since the last tick, up to a moment ago. Those of all ticks and of the last part of the
    /// [`HarnessOutcome`] are all that there are.
    pub found: LoadtestFound,
}

/// What one thread has found and nobody has taken yet.
#[derive(Debug, Default)]
pub(super) struct Found(Mutex<LoadtestFound>);

impl Found {
    pub(super) fn add(&self, more: &LoadtestFound) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .merge(more);
    }

    fn take(&self) -> LoadtestFound {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Runs the workers of `plan` to their end, or until `interrupt` is set.
///
/// - `on_tick`: called at every tick.
pub fn run(
    plan: &HarnessPlan,
    interrupt: &Arc<Interrupt>,
    on_tick: &mut dyn FnMut(HarnessTick),
) -> Result<HarnessOutcome, RunError> {
    let threads = plan.threads.clamp(1, plan.workers.max(1));
    // Nothing is ever sent: the channel closes when the last thread is done.
    let (done, finished) = sync_channel::<()>(0);
    let start = SystemClock.now();
    let mut progress = Vec::new();
    let mut handles = Vec::new();
    let mut founds = Vec::new();
    for index in 0..threads {
        let mine = Arc::new(Progress::default());
        let found = Arc::new(Found::default());
        let setup = Setup {
            plan: plan.clone(),
            index,
            of: threads,
            start,
            progress: Arc::clone(&mine),
            handed: Arc::clone(&found),
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
        founds.push(found);
        handles.push(handle);
    }
    drop(done);
    let mut all = LoadtestFound::default();
    let take = |all: &mut LoadtestFound| {
        let mut since = LoadtestFound::default();
        for found in &founds {
            since.merge(&found.take());
        }
        all.merge(&since);
        since
    };
    let mut tick = start + plan.tick;
    loop {
        let now = SystemClock.now();
        match finished.recv_timeout(tick.saturating_duration_since(now)) {
            Ok(()) => {}
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {
                on_tick(HarnessTick {
                    state: state(&progress, tick.saturating_duration_since(start)),
                    found: take(&mut all),
                });
                tick += plan.tick;
            }
        }
    }
    let mut elapsed = Duration::ZERO;
    for handle in handles {
        let last = handle
            .join()
            .map_err(|_| RunError::Panicked("a thread of the harness".to_owned()))??;
        elapsed = elapsed.max(last.saturating_duration_since(start));
    }
    let last_found = take(&mut all);
    all.failures
        .sort_by_key(|failure| std::cmp::Reverse(failure.count));
    Ok(HarnessOutcome {
        found: all,
        last_found,
        elapsed,
    })
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
