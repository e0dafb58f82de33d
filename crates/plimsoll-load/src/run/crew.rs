//! The worker threads of a run, or of a part of one.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use plimsoll_wire::descriptors;

use super::collector::Published;
use super::progress::{Interrupt, Progress};
use super::{RunError, empty_interval, endpoints};
use crate::part::RunPart;
use crate::plan::RunPlan;
use crate::worker::recorder::Interval;
use crate::worker::{Report, Setup, work};

/// Descriptors that a run needs beside its connections: runtimes, timers, files, the target's pipes.
const SPARE_DESCRIPTORS: u64 = 64;

/// Intervals in circulation for each worker.
const INTERVALS_PER_WORKER: usize = 2;

/// The worker threads and the channels to them.
pub(crate) struct Crew {
    threads: Vec<JoinHandle<Result<Report, RunError>>>,
    pub(crate) progress: Vec<Arc<Progress>>,
    starters: Vec<SyncSender<Instant>>,
    spares: Vec<SyncSender<Box<Interval>>>,
    pub(crate) published: Receiver<Published>,
}

impl Crew {
    /// Starts the threads and waits until all can begin.
    pub(crate) fn hire(
        plan: &RunPlan,
        part: RunPart,
        interrupt: &Arc<Interrupt>,
    ) -> Result<Self, RunError> {
        let connections = part.connections(plan) as u64;
        descriptors::ensure(connections * endpoints(plan) + SPARE_DESCRIPTORS)?;
        let (publish, published) = sync_channel(part.workers * INTERVALS_PER_WORKER);
        let (ready, all_ready) = sync_channel(part.workers);
        let mut crew = Self {
            threads: Vec::new(),
            progress: Vec::new(),
            starters: Vec::new(),
            spares: Vec::new(),
            published,
        };
        for number in 0..part.workers {
            let progress = Arc::new(Progress::default());
            let (starter, go) = sync_channel(1);
            let (spare, spares) = sync_channel(INTERVALS_PER_WORKER);
            for _ in 1..INTERVALS_PER_WORKER {
                let interval = Box::new(empty_interval(plan));
                spare.send(interval).expect("the receiver is still here");
            }
            let setup = Setup {
                plan: plan.clone(),
                number: u32::try_from(number).expect("there are few workers"),
                share: part.share(number),
                progress: Arc::clone(&progress),
                interrupt: Arc::clone(interrupt),
                ready: ready.clone(),
                go,
                publish: publish.clone(),
                spares,
            };
            let thread = thread::Builder::new()
                .name(format!("worker {number}"))
                .spawn(move || work(setup))
                .map_err(RunError::Runtime)?;
            crew.threads.push(thread);
            crew.progress.push(progress);
            crew.starters.push(starter);
            crew.spares.push(spare);
        }
        drop((publish, ready));
        for _ in 0..part.workers {
            if all_ready.recv().is_err() {
                // One of them could not start: dismiss the others and report why.
                crew.starters.clear();
                crew.dismiss()?;
                return Err(RunError::Stopped);
            }
        }
        Ok(crew)
    }

    pub(crate) fn go(&self, start: Instant) {
        for starter in &self.starters {
            let sent = starter.send(start);
            debug_assert!(sent.is_ok(), "a worker that is ready waits for the start");
        }
    }

    pub(crate) fn give_back(&self, worker: u32, spare: Box<Interval>) {
        // A worker that has ended needs none.
        drop(self.spares[worker as usize].try_send(spare));
    }

    /// Waits for all workers; the first error that is one of its own wins.
    pub(crate) fn dismiss(self) -> Result<Vec<Report>, RunError> {
        drop(self.starters);
        let mut reports = Vec::new();
        let mut failure = None;
        for thread in self.threads {
            match thread.join() {
                Ok(Ok(report)) => reports.push(report),
                Ok(Err(RunError::Stopped)) => {
                    failure.get_or_insert(RunError::Stopped);
                }
                Ok(Err(error)) => failure = Some(error),
                Err(panic) => {
                    let text = panic
                        .downcast_ref::<&str>()
                        .map(ToString::to_string)
                        .or_else(|| panic.downcast_ref::<String>().cloned());
                    failure = Some(RunError::Panicked(text.unwrap_or_default()));
                }
            }
        }
        match failure {
            Some(error) => Err(error),
            None => Ok(reports),
        }
    }
}
