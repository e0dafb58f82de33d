//! The iterations of virtual users.

use std::cell::RefCell;
use std::error::Error;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use super::exchanges::ExchangeRecorder;
use super::metric::Sinks;
use super::progress::TestProgress;
use super::run::Abort;

/// A future of one worker.
pub type LocalFuture<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// Which virtual user it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UserId {
    /// The position of its scenario among those of the run.
    pub scenario: usize,
    /// Within its scenario, from 0.
    pub in_scenario: u32,
    /// Within the run, from 1.
    pub in_test: u64,
}

/// One iteration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Iteration {
    /// Its number within the scenario, from 0.
    pub in_scenario: u64,
    /// Iterations that this virtual user has made before.
    pub of_user: u64,
    /// When it was meant to start.
    pub intended: Instant,
    /// When it is interrupted, for workloads that compute without waiting and have to look at the clock themselves.
    pub deadline: Instant,
}

/// How an iteration that was not interrupted ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IterationEnd {
    /// It is complete, whatever its requests came to.
    Complete,
    /// The virtual user cannot go on with its present state and is made anew.
    Broken,
}

/// Why a virtual user cannot be made, which its workload knows.
pub type UserError = Box<dyn Error + Send + Sync>;

/// A virtual user.
pub trait Workload {
    /// Makes one iteration. Dropping the future interrupts it; the virtual user is then made anew.
    fn iterate(&mut self, iteration: Iteration) -> LocalFuture<'_, IterationEnd>;
}

/// Makes virtual users on the workers of a run.
pub trait Workloads: Send + Sync + 'static {
    /// Makes the virtual users of one worker; called on its thread.
    fn on_worker(&self, worker: WorkerState) -> Result<Rc<dyn VirtualUsers>, UserError>;
}

/// Makes the virtual users of one worker.
pub trait VirtualUsers {
    /// Makes one, which runs its initialisation.
    fn create(&self, user: UserId) -> LocalFuture<'_, Result<Box<dyn Workload>, UserError>>;
}

/// State that the virtual users of a worker share.
#[derive(Debug, Clone)]
pub struct WorkerState {
    /// Where samples go.
    pub sinks: Rc<RefCell<Sinks>>,
    /// How far the run is.
    pub progress: Arc<TestProgress>,
    /// Ends the run early.
    pub abort: Arc<Abort>,
    /// Where exchanges are recorded, if they are.
    pub exchanges: Option<Rc<ExchangeRecorder>>,
}
