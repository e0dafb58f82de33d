//! Commands of the API to the loop.

use std::time::Duration;

use tokio::sync::oneshot;

use crate::config::{MonitorPlan, Plan};
use crate::engine::Handle;
use crate::probe::reading::CheckResult;
use crate::store::{MonitorId, StoreError};
use crate::time::Timestamp;

/// One command, and where its outcome goes.
#[derive(Debug)]
pub(super) enum Command {
    Reload(Box<Plan>, oneshot::Sender<Result<(), StoreError>>),
    /// Definitions in the store have changed as a whole.
    Rebuild(oneshot::Sender<Result<(), StoreError>>),
    /// Monitors of the store: those that are new or changed, with their numbers, and those that are gone.
    Put(
        Vec<(MonitorId, MonitorPlan)>,
        Vec<String>,
        oneshot::Sender<Result<(), CommandError>>,
    ),
    /// A check of a monitor that may not be there; its result is kept nowhere.
    Try(
        Box<MonitorPlan>,
        oneshot::Sender<Result<CheckResult, CommandError>>,
    ),
    CheckNow(String, oneshot::Sender<Result<CheckResult, CommandError>>),
    Pause(String, bool, oneshot::Sender<Result<(), CommandError>>),
    /// The open incident of a monitor, or only the one that opened then.
    Acknowledge(
        String,
        Option<Timestamp>,
        Option<String>,
        oneshot::Sender<Result<(), CommandError>>,
    ),
    Resolve(
        String,
        Option<String>,
        oneshot::Sender<Result<(), CommandError>>,
    ),
    Push(
        String,
        PushedResult,
        oneshot::Sender<Result<(), CommandError>>,
    ),
    /// Results of the agent of a region, with the number of its run.
    Report(
        String,
        u64,
        Vec<RemoteResult>,
        oneshot::Sender<Result<(usize, Vec<String>), CommandError>>,
    ),
    Heartbeat(
        String,
        HeartbeatSignal,
        oneshot::Sender<Result<(), CommandError>>,
    ),
}

/// A result of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteResult {
    /// One more with every result of a run of the agent.
    pub number: u64,
    /// The key of the monitor.
    pub key: String,
    /// The result, by the clock of this process.
    pub result: CheckResult,
}

/// A result from outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PushedResult {
    /// Whether the target is up.
    pub is_up: bool,
    /// Why it is not.
    pub reason: Option<String>,
    /// How long the check took.
    pub took: Duration,
}

/// The signals of a heartbeat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HeartbeatSignal {
    /// The run begins.
    Start,
    /// The run ended well.
    Success,
    /// The run failed, with the message of the job.
    Fail(Option<String>),
    /// Something to note, without a change of state.
    Log,
}

/// Why a command had no effect.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CommandError {
    /// There is no such monitor.
    #[error("there is no such monitor")]
    NotFound,
    /// The monitor is of another kind.
    #[error("this is not possible for a monitor of the kind {0}")]
    Kind(String),
    /// Only other regions check the monitor, and none of them reports.
    #[error("only agents check this monitor, and none of them reports: {0}")]
    Elsewhere(String),
    /// The check could not start.
    #[error("the check cannot start now: {0}")]
    Busy(&'static str),
    /// No incident is open.
    #[error("the monitor has no open incident")]
    NoIncident,
    /// The monitor stops.
    #[error("the monitor is stopping")]
    Stopping,
    /// The store failed.
    #[error("{0}")]
    Store(String),
}

impl Handle {
    /// Replaces the configuration; state of monitors that stay is kept.
    pub async fn reload(&self, plan: Plan) -> Result<(), StoreError> {
        let (done, outcome) = oneshot::channel();
        let sent = self
            .commands
            .send(Command::Reload(Box::new(plan), done))
            .await;
        sent.map_err(|_| StoreError::Closed)?;
        outcome.await.map_err(|_| StoreError::Closed)?
    }

    /// The same without waiting for the outcome.
    pub fn reload_soon(&self, plan: Plan) -> Result<(), StoreError> {
        let (done, _) = oneshot::channel();
        let sent = self
            .commands
            .try_send(Command::Reload(Box::new(plan), done));
        sent.map_err(|_| StoreError::Busy)
    }

    /// Loads the definitions in the store again; state of monitors that stay is kept.
    pub async fn rebuild(&self) -> Result<(), StoreError> {
        let (done, outcome) = oneshot::channel();
        let sent = self.commands.send(Command::Rebuild(done)).await;
        sent.map_err(|_| StoreError::Closed)?;
        outcome.await.map_err(|_| StoreError::Closed)?
    }

    /// Adds and changes monitors of the store, with their numbers, and removes others; all else goes on.
    pub(crate) async fn put(
        &self,
        monitors: Vec<(MonitorId, MonitorPlan)>,
        gone: Vec<String>,
    ) -> Result<(), CommandError> {
        self.command(|done| Command::Put(monitors, gone, done))
            .await
    }

    /// Makes one check of a monitor that need not exist. The result is kept nowhere.
    pub async fn try_out(&self, plan: MonitorPlan) -> Result<CheckResult, CommandError> {
        self.command(|done| Command::Try(Box::new(plan), done))
            .await
    }

    /// Checks at once, and waits for the result, which counts like any other. Agents of the monitor check too; where only
    /// they do, it is the first of their results.
    pub async fn check_now(&self, key: &str) -> Result<CheckResult, CommandError> {
        /// For an agent: its next report, the check, and another report.
        const PATIENCE: Duration = Duration::from_mins(1);

        let key = key.to_owned();
        let checking = self.command(|done| Command::CheckNow(key, done));
        let checked = tokio::time::timeout(PATIENCE, checking).await;
        checked.unwrap_or(Err(CommandError::Busy("no result came within a minute")))
    }

    /// Pauses or resumes a monitor.
    pub async fn pause(&self, key: &str, paused: bool) -> Result<(), CommandError> {
        let key = key.to_owned();
        self.command(|done| Command::Pause(key, paused, done)).await
    }

    /// Notes that an operator has seen the open incident of a monitor.
    pub async fn acknowledge(&self, key: &str, actor: Option<String>) -> Result<(), CommandError> {
        let key = key.to_owned();
        self.command(|done| Command::Acknowledge(key, None, actor, done))
            .await
    }

    /// The same of one incident only.
    ///
    /// - `opened`: when its outage began.
    pub async fn acknowledge_one(
        &self,
        key: &str,
        opened: Timestamp,
        actor: Option<String>,
    ) -> Result<(), CommandError> {
        let key = key.to_owned();
        self.command(|done| Command::Acknowledge(key, Some(opened), actor, done))
            .await
    }

    /// Closes the open incident of a monitor.
    pub async fn resolve(&self, key: &str, actor: Option<String>) -> Result<(), CommandError> {
        let key = key.to_owned();
        self.command(|done| Command::Resolve(key, actor, done))
            .await
    }

    /// Takes a result from outside.
    pub async fn push(&self, key: &str, result: PushedResult) -> Result<(), CommandError> {
        let key = key.to_owned();
        self.command(|done| Command::Push(key, result, done)).await
    }

    /// Takes results of an agent; how many of them were new and of monitors that it checks, and the keys of monitors that
    /// it is to check at once.
    ///
    /// - `run`: differs with every start of the agent. Results that a run repeats are left out.
    pub async fn report(
        &self,
        agent: &str,
        run: u64,
        results: Vec<RemoteResult>,
    ) -> Result<(usize, Vec<String>), CommandError> {
        let agent = agent.to_owned();
        self.command(|done| Command::Report(agent, run, results, done))
            .await
    }

    /// Takes a heartbeat.
    pub async fn heartbeat(&self, key: &str, signal: HeartbeatSignal) -> Result<(), CommandError> {
        let key = key.to_owned();
        self.command(|done| Command::Heartbeat(key, signal, done))
            .await
    }

    async fn command<T>(
        &self,
        make: impl FnOnce(oneshot::Sender<Result<T, CommandError>>) -> Command,
    ) -> Result<T, CommandError> {
        let (done, outcome) = oneshot::channel();
        let sent = self.commands.send(make(done)).await;
        sent.map_err(|_| CommandError::Stopping)?;
        outcome.await.map_err(|_| CommandError::Stopping)?
    }
}
