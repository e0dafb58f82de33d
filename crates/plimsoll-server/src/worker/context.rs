//! The worker's services for actions, stream handlers and datagram handlers.

use std::any::Any;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use plimsoll_wire::SystemClock;
use tokio::task::JoinSet;

use crate::counters::{Counters, WorkerCounters};
use crate::worker::Worker;
use crate::worker::alarms::Alarms;
use crate::worker::drain::DrainSignal;

/// The worker that something is made on, and the generation of the configuration that it is made for.
///
/// Every reload begins a new generation, whose actions are made before those of the one before are dropped. Clones are
/// the same context.
#[derive(Debug, Clone)]
pub struct WorkerContext {
    worker: Rc<Worker>,
    tasks: Rc<Tasks>,
}

impl WorkerContext {
    pub(crate) fn new(worker: Rc<Worker>, tasks: Rc<Tasks>) -> Self {
        Self { worker, tasks }
    }

    /// Which worker of the engine it is, from 0 on.
    pub fn worker(&self) -> usize {
        self.worker.number
    }

    /// The time.
    pub fn clock(&self) -> SystemClock {
        self.worker.clock
    }

    /// Waits that end at the microsecond; for others the timers of tokio will do.
    pub fn alarms(&self) -> &Alarms {
        &self.worker.alarms
    }

    /// The counters of the engine, where other crates register metrics of their own.
    pub fn metrics(&self) -> &Arc<Counters> {
        &self.worker.shared
    }

    /// What this worker counts.
    pub(crate) fn counters(&self) -> &Arc<WorkerCounters> {
        &self.worker.counters
    }

    /// Signals when the engine drains.
    pub fn drain(&self) -> &DrainSignal {
        &self.worker.drain
    }

    /// State of this worker that survives a reload and is shared by its listeners: of this type, and of this identity
    /// in the configuration. `make` makes it if nothing uses one.
    ///
    /// - `identity`: everything in the configuration that the state depends on; one that is configured differently
    ///   begins anew.
    ///
    /// It is dropped with its last user: what is made here should hold it.
    pub fn state<T: Any>(&self, identity: &str, make: impl FnOnce() -> T) -> Rc<T> {
        self.worker.states.state(identity, make)
    }

    /// Runs `task` on the worker until it ends or a reload replaces the configuration, whichever is first.
    ///
    /// A task of a configuration that was replaced already does not begin.
    pub fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        self.tasks.spawn(&self.worker, task);
    }
}

/// The tasks of one generation of the configuration on one worker.
#[derive(Debug, Default)]
pub(crate) struct Tasks(RefCell<State>);

#[derive(Debug, Default)]
struct State {
    running: JoinSet<()>,
    is_over: bool,
}

impl Tasks {
    fn spawn(&self, worker: &Worker, task: impl Future<Output = ()> + 'static) {
        let mut state = self.0.borrow_mut();
        if state.is_over {
            return;
        }
        // Tasks that have ended take room until they are looked at.
        while let Some(ended) = state.running.try_join_next() {
            if ended.is_err_and(|error| error.is_panic()) {
                worker.counters.panicked();
            }
        }
        state.running.spawn_local(task);
    }

    /// Ends every task.
    pub(crate) fn end(&self) {
        let mut state = self.0.borrow_mut();
        state.is_over = true;
        let running = std::mem::take(&mut state.running);
        // Not borrowed while they are dropped: they may hold this context.
        drop(state);
        drop(running);
    }
}
