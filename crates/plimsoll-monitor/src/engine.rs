//! The monitor as it runs: one thread that owns the schedule and the state of every monitor.
//!
//! The thread runs its own runtime. Checks are local tasks of it; their results, the commands of the API and all
//! timers come to one loop, which is the only one that changes anything. What others may see is on the [`Board`]. Data
//! that must not be lost goes through the `recorder`, which repeats a change until the store took it.

mod board;

pub mod budget;

mod clock;

mod command;

mod composition;

mod deliveries;

mod heartbeat;

mod histories;

mod leadership;

pub(crate) mod mates;

mod memory;

mod recorder;

pub mod report;

pub(crate) mod running;

pub mod standby;

mod supervisor;

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use plimsoll_wire::block_on_local;
use tokio::sync::{mpsc, oneshot};

use crate::config::Plan;
use crate::engine::command::Command;
use crate::stop::Stop;
use crate::store::shards::Division;
use crate::store::{OrgId, Store, StoreError};

pub use crate::engine::board::{Access, Beat, Board, Counters, Figures, Heard, View};
pub use crate::engine::command::{CommandError, HeartbeatSignal, PushedResult, RemoteResult};
pub use crate::engine::heartbeat::is_late;
pub use crate::engine::histories::{Histories, Since, Timelines};
pub use crate::engine::leadership::{LASTS, Leadership};

/// Commands that wait for the loop.
const MOST_COMMANDS: usize = 1_024;

/// A monitor that runs; it stops when this is dropped.
pub struct Monitor {
    handle: Handle,
    thread: Option<JoinHandle<()>>,
    /// Ends the loop.
    stop: Option<oneshot::Sender<()>>,
}

/// The interface of a running monitor for the API; clones are the same.
#[derive(Clone)]
pub struct Handle {
    /// The organisation that it is of.
    pub org: OrgId,
    /// The state of every monitor.
    pub board: Arc<Board>,
    /// Store.
    pub store: Arc<dyn Store>,
    commands: mpsc::Sender<Command>,
    /// Held from the validation of a change of definitions until it is in force.
    pub changing: Arc<tokio::sync::Mutex<()>>,
}

/// A task of an upper part that runs beside the checks, for as long as the monitor does or until channels change.
pub type Beside = fn(Parts) -> Pin<Box<dyn Future<Output = ()>>>;

/// What such a task works with.
#[derive(Clone)]
pub struct Parts {
    /// When to end.
    pub stop: Stop,
    /// The organisation that it is of.
    pub org: OrgId,
    /// Store.
    pub store: Arc<dyn Store>,
    /// The state of every monitor.
    pub board: Arc<Board>,
    /// Receives what an operator should see.
    pub report: Arc<dyn Fn(&str) + Send + Sync>,
}

/// Why a monitor cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The system has no thread for it.
    #[error("cannot start a thread")]
    Thread(#[source] std::io::Error),
}

impl Monitor {
    /// Starts to monitor what the plan says; returns once the state of the last run is restored.
    ///
    /// - `notice`: receives what an operator should see, such as a store that does not take data.
    /// - `beside`: what upper parts have run beside the checks.
    pub fn start(
        plan: Plan,
        store: Arc<dyn Store>,
        notice: Arc<dyn Fn(&str) + Send + Sync>,
        beside: &'static [Beside],
    ) -> Result<Self, StartError> {
        Self::start_sharing(plan, store, notice, beside, None)
    }

    /// The same on a store that other processes share.
    ///
    /// - `division`: the name of this process, and how the checks are divided.
    pub fn start_sharing(
        plan: Plan,
        store: Arc<dyn Store>,
        notice: Arc<dyn Fn(&str) + Send + Sync>,
        beside: &'static [Beside],
        division: Option<(String, Division)>,
    ) -> Result<Self, StartError> {
        let (commands, queue) = mpsc::channel(MOST_COMMANDS);
        let (stop, stopped) = oneshot::channel();
        let (ready, started) = std::sync::mpsc::sync_channel(1);
        let board = Arc::<Board>::default();
        let seen = (Arc::clone(&board), Arc::clone(&store));
        let spawned = thread::Builder::new()
            .name("monitor".to_owned())
            .spawn(move || {
                let failed = ready.clone();
                let ran = block_on_local(async move {
                    match supervisor::Supervisor::start(
                        plan, store, board, notice, beside, division,
                    )
                    .await
                    {
                        Ok(supervisor) => {
                            ready.send(Ok(supervisor.org())).ok();
                            supervisor.run(queue, stopped).await;
                        }
                        Err(error) => {
                            ready.send(Err(error.into())).ok();
                        }
                    }
                });
                if let Err(error) = ran {
                    failed.send(Err(StartError::Thread(error))).ok();
                }
            });
        let thread = spawned.map_err(StartError::Thread)?;
        let org = started.recv().map_err(|_| StoreError::Closed)??;
        let (board, store) = seen;
        Ok(Self {
            handle: Handle {
                org,
                board,
                store,
                commands,
                changing: Arc::default(),
            },
            thread: Some(thread),
            stop: Some(stop),
        })
    }

    /// The interface for the API.
    pub fn handle(&self) -> &Handle {
        &self.handle
    }
}

impl Drop for Monitor {
    /// Waits until results and changes are with the store, and until what is being sent is noted there.
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}

impl fmt::Debug for Monitor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Monitor")
            .field("handle", &self.handle)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Parts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parts")
            .field("org", &self.org)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle")
            .field("org", &self.org)
            .finish_non_exhaustive()
    }
}
