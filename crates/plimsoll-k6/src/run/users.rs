//! Makes virtual users on workers.

use std::rc::Rc;
use std::sync::{Arc, PoisonError};

use plimsoll_load::scenario::{
    LocalFuture, UserError, UserId, VirtualUsers, WorkerState, Workload, Workloads,
};
use plimsoll_script::{Program, Stacks};

use super::connections::Plans;
use crate::script::{User, log_error};
use crate::source::LIMITS;
use crate::user::{RunState, Stage, WorkerShare};

/// Makes the virtual users of a run.
pub(super) struct Users {
    pub(super) program: Program,
    pub(super) shared: Arc<RunState>,
    pub(super) plans: Plans,
}

impl Workloads for Users {
    fn on_worker(&self, worker: WorkerState) -> Result<Rc<dyn VirtualUsers>, UserError> {
        Ok(Rc::new(UsersOfWorker {
            program: self.program.clone(),
            shared: Arc::clone(&self.shared),
            shares: self
                .plans
                .shares(&self.shared, &worker.sinks, worker.exchanges.as_ref()),
            stacks: Stacks::new(LIMITS),
        }))
    }
}

struct UsersOfWorker {
    program: Program,
    shared: Arc<RunState>,
    /// For each local address.
    shares: Vec<WorkerShare>,
    stacks: Stacks,
}

impl VirtualUsers for UsersOfWorker {
    fn create(&self, id: UserId) -> LocalFuture<'_, Result<Box<dyn Workload>, UserError>> {
        Box::pin(async move {
            let turn = usize::try_from(id.in_test.saturating_sub(1)).unwrap_or_default();
            let share = &self.shares[turn % self.shares.len()];
            let user = User::new(
                &self.program,
                &self.stacks,
                &self.shared,
                share,
                (Some(id), Stage::Iteration),
            );
            let user = Box::pin(user).await.map_err(|error| -> UserError {
                // The script may have ended the run, which is its reason.
                if let Some(reason) = self.shared.abort.reason() {
                    return reason.into();
                }
                log_error(&self.shared, &error);
                let verdict = self.shared.verdict.lock();
                let mut verdict = verdict.unwrap_or_else(PoisonError::into_inner);
                verdict.is_rejected |= error.is_rejection;
                error.into()
            })?;
            let user: Box<dyn Workload> = Box::new(user);
            Ok(user)
        })
    }
}
