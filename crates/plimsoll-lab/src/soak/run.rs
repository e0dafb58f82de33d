//! Running a soak: its scenarios one after another, or several at a time.

use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use plimsoll_load::Interrupt;
use plimsoll_load::conditions::{Before, RunFacts};
use plimsoll_model::{Clock as _, Pinning};
use plimsoll_wire::SystemClock;

use super::outcome::{ScenarioResult, Soak};
use super::plan::{ScenarioPlan, SoakPlan};
use super::scenario::{self, Progress, ScenarioError};
use super::store::{Folder, FolderError};

/// Options of a run besides its plan.
#[derive(Debug, Clone)]
pub struct RunOptions {
    /// plimsoll's version, for the record.
    pub version: String,
    /// plimsoll's command line, for the record.
    pub command: Vec<String>,
}

/// Something a waiting user may want to see.
#[derive(Debug)]
pub enum Event<'a> {
    /// A sample was taken.
    Sampled {
        /// The scenario's name.
        scenario: &'a str,
        /// How long it runs.
        elapsed: Duration,
        /// Resident memory, if it is known.
        memory_bytes: Option<u64>,
        /// Open descriptors, if they are known.
        descriptors: Option<u64>,
    },
    /// A scenario has ended.
    Ended(&'a ScenarioResult),
}

/// Why a soak has no result.
#[derive(Debug, thiserror::Error)]
pub enum SoakError {
    /// The folder failed.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// A scenario could not begin.
    #[error("scenario {scenario}: {reason}")]
    Scenario {
        /// Its name.
        scenario: String,
        /// Why.
        reason: String,
    },
    /// The user stopped it; scenarios that have ended are kept.
    #[error("interrupted; run the same command again to resume")]
    Interrupted,
}

/// Reports of a thread.
enum Report {
    Sampled(usize, Progress),
    Ended(usize, Result<ScenarioResult, SoakError>),
}

/// Runs the scenarios of `plan` that have not ended in an earlier run.
///
/// Blocks until the end; whatever it started has ended when it returns, also after an error or once `interrupt` was set.
pub fn run(
    plan: &SoakPlan,
    options: &RunOptions,
    folder: &Folder,
    interrupt: &Interrupt,
    observe: &mut dyn FnMut(&Event<'_>),
) -> Result<Soak, SoakError> {
    let before = Before::observe(SystemClock.wall());
    let mut results: Vec<Option<ScenarioResult>> = plan
        .scenarios
        .iter()
        .map(|scenario| folder.finished(&scenario.name))
        .collect();
    let kept = results.iter().flatten().count();
    let waiting: Vec<(usize, &ScenarioPlan)> = plan
        .scenarios
        .iter()
        .enumerate()
        .filter(|(number, _)| results[*number].is_none())
        .collect();
    let waiting = Mutex::new(waiting.into_iter());
    let mut failed = None;
    thread::scope(|scope| {
        let (sender, reports) = channel();
        for _ in 0..plan.at_once {
            let (sender, waiting) = (sender.clone(), &waiting);
            scope.spawn(move || work(plan, folder, interrupt, waiting, &sender));
        }
        drop(sender);
        for report in reports {
            match report {
                Report::Sampled(number, progress) => observe(&Event::Sampled {
                    scenario: &plan.scenarios[number].name,
                    elapsed: progress.elapsed,
                    memory_bytes: progress.memory_bytes,
                    descriptors: progress.descriptors,
                }),
                Report::Ended(number, Ok(result)) => {
                    observe(&Event::Ended(&result));
                    results[number] = Some(result);
                }
                Report::Ended(_, Err(error)) => failed = failed.take().or(Some(error)),
            }
        }
    });
    if let Some(error) = failed {
        return Err(error);
    }
    let conditions = before.after(RunFacts {
        plimsoll: options.version.clone(),
        command: options.command.clone(),
        pinning: Pinning::default(),
        co_located: Some(true),
    });
    Ok(Soak {
        name: plan.name.clone(),
        duration_secs: plan.duration.as_secs_f64(),
        sample_secs: plan.sample.as_secs_f64(),
        scale: plan.scale,
        scenarios: results.into_iter().flatten().collect(),
        kept,
        conditions,
    })
}

/// Runs one scenario after another until none waits or one has failed.
fn work(
    plan: &SoakPlan,
    folder: &Folder,
    interrupt: &Interrupt,
    waiting: &Mutex<std::vec::IntoIter<(usize, &ScenarioPlan)>>,
    reports: &Sender<Report>,
) {
    loop {
        let next = waiting
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .next();
        let Some((number, scenario)) = next else {
            return;
        };
        let mut observe = |progress: &Progress| {
            reports.send(Report::Sampled(number, progress.clone())).ok();
        };
        let ended = folder.samples(&scenario.name).map_err(SoakError::from);
        let ended = ended.and_then(|samples| {
            let ran = scenario::run(plan, scenario, &samples, interrupt, &mut observe);
            let result = ran.map_err(|error| match error {
                ScenarioError::Interrupted => SoakError::Interrupted,
                ScenarioError::Failed(reason) => SoakError::Scenario {
                    scenario: scenario.name.clone(),
                    reason,
                },
            })?;
            folder.keep(&result)?;
            Ok(result)
        });
        let has_failed = ended.is_err();
        reports.send(Report::Ended(number, ended)).ok();
        if has_failed {
            return;
        }
    }
}
