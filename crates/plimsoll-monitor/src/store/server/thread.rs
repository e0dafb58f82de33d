//! The thread that owns the connections to both databases.
//!
//! Calls are jobs for it over a bounded channel. Each runs as a task of the thread's own runtime, so they wait for the
//! databases side by side, and none depends on the runtime of its caller.

use std::fmt;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use plimsoll_wire::block_on_local;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot};

use crate::store::server::own_results::OwnResults;
use crate::store::server::postgres::Postgres;
use crate::store::server::results::{Counts, ResultBase, Results};
use crate::store::server::rollups::UpkeepState;
use crate::store::server::{ServerOptions, ServerUrls, clickhouse, schema};
use crate::store::types::{OrgId, ResultRow};
use crate::store::{StoreError, server};

/// Jobs that wait for the thread.
const MOST_JOBS: usize = 1_024;

/// Between two attempts to write what waits on the disk.
const RETRY: Duration = Duration::from_secs(1);

type Job = Box<dyn FnOnce(&Rc<Core>) + Send>;

/// State that the thread owns.
pub(super) struct Core {
    pub(super) postgres: Postgres,
    pub(super) results: Results,
    pub(super) upkeep: UpkeepState,
    options: ServerOptions,
}

/// The thread and its queue. Dropping it writes the results that wait, to ClickHouse or to the disk.
pub(super) struct StoreThread {
    jobs: Option<mpsc::Sender<Job>>,
    thread: Option<JoinHandle<()>>,
    counts: Arc<Counts>,
    most_waiting: u64,
}

impl StoreThread {
    /// Returns once the tables are there.
    pub(super) fn start(urls: ServerUrls, options: ServerOptions) -> Result<Self, StoreError> {
        let (jobs, queue) = mpsc::channel(MOST_JOBS);
        let (ready, started) = std::sync::mpsc::sync_channel(1);
        let counts = Arc::<Counts>::default();
        let shared = Arc::clone(&counts);
        let spawned = thread::Builder::new()
            .name("monitor-store".to_owned())
            .spawn(move || {
                let failed = ready.clone();
                let ran = block_on_local(async move {
                    match Core::open(&urls, options, shared).await {
                        Ok(core) => {
                            ready.send(Ok(())).ok();
                            Rc::new(core).run(queue).await;
                        }
                        Err(error) => {
                            ready.send(Err(error)).ok();
                        }
                    }
                });
                if let Err(error) = ran {
                    failed
                        .send(Err(StoreError::Database(error.to_string())))
                        .ok();
                }
            });
        let thread = spawned
            .map_err(|error| StoreError::Database(format!("cannot start a thread: {error}")))?;
        let started = started.recv().map_err(|_| StoreError::Closed).flatten();
        if let Err(error) = started {
            // A store that could not be opened leaves no thread.
            thread.join().ok();
            return Err(error);
        }
        Ok(Self {
            jobs: Some(jobs),
            thread: Some(thread),
            counts,
            most_waiting: options.most_waiting as u64,
        })
    }

    pub(super) fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Takes results; refuses all of them if too many wait.
    pub(super) fn append(&self, org: OrgId, rows: Vec<ResultRow>) -> Result<(), StoreError> {
        let count = rows.len() as u64;
        let waiting = self.counts.waiting.fetch_add(count, Ordering::Relaxed);
        let sent = if waiting + count > self.most_waiting {
            Err(StoreError::Busy)
        } else {
            let job: Job = Box::new(move |core| core.accept_results(org, rows));
            let jobs = self.jobs.as_ref().ok_or(StoreError::Closed)?;
            jobs.try_send(job).map_err(|error| match error {
                TrySendError::Full(_) => StoreError::Busy,
                TrySendError::Closed(_) => StoreError::Closed,
            })
        };
        if sent.is_err() {
            self.counts.waiting.fetch_sub(count, Ordering::Relaxed);
            self.counts.refused.fetch_add(count, Ordering::Relaxed);
        }
        sent
    }

    /// Runs a job as a task of the thread.
    pub(super) async fn call<T: Send + 'static>(
        &self,
        job: impl AsyncFnOnce(&Core) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (done, result) = oneshot::channel();
        let job: Job = Box::new(move |core| {
            let core = Rc::clone(core);
            tokio::task::spawn_local(async move {
                // A caller that has gone away needs no result.
                done.send(job(&core).await).ok();
            });
        });
        let jobs = self.jobs.as_ref().ok_or(StoreError::Closed)?;
        jobs.send(job).await.map_err(|_| StoreError::Closed)?;
        result.await.map_err(|_| StoreError::Closed)?
    }
}

impl Drop for StoreThread {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}

impl fmt::Debug for StoreThread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreThread")
            .field("counts", &self.counts)
            .finish_non_exhaustive()
    }
}

impl Core {
    async fn open(
        urls: &ServerUrls,
        options: ServerOptions,
        counts: Arc<Counts>,
    ) -> Result<Self, StoreError> {
        let postgres = Postgres::new(urls.postgres.expose(), urls.ca.clone())?;
        let base = match &urls.clickhouse {
            Some(url) => ResultBase::ClickHouse(clickhouse::ClickHouse::new(url.expose())?),
            None => ResultBase::Postgres(OwnResults::new(postgres.clone())),
        };
        let results = Results::new(base, urls.spill.as_deref(), options.most_spilled, counts)?;
        schema::migrate(&postgres, urls.postgres.expose())
            .await
            .map_err(|error| match error {
                StoreError::Database(reason) => {
                    server::postgres::unusable(urls.postgres.expose(), reason)
                }
                StoreError::Away(reason) => {
                    let shown = server::postgres::shown(urls.postgres.expose());
                    StoreError::Away(format!("{}: {reason}", shown.display()))
                }
                error => error,
            })?;
        // Without ClickHouse results wait on the disk; one of a newer version is another matter.
        if let Err(error @ StoreError::Newer { .. }) = results.prepared().await {
            return Err(error);
        }
        Ok(Self {
            postgres,
            results,
            upkeep: UpkeepState::default(),
            options,
        })
    }

    async fn run(self: Rc<Self>, mut queue: mpsc::Receiver<Job>) {
        let mut flushes = tokio::time::interval(self.options.flush_every);
        flushes.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let draining = tokio::task::spawn_local(Rc::clone(&self).drain());
        loop {
            tokio::select! {
                job = queue.recv() => match job {
                    Some(job) => job(&self),
                    None => break,
                },
                _ = flushes.tick() => self.start_flush(),
            }
        }
        draining.abort();
        // A result that cannot be written any more is lost, as those of a killed process are.
        self.results.flush(&self.postgres).await.ok();
    }

    /// Writes what waits on the disk as soon as ClickHouse takes it.
    async fn drain(self: Rc<Self>) {
        loop {
            if self.results.has_spilled() {
                // An error is that of a statement that a reader sees too; the next attempt follows.
                self.results.drain().await.ok();
            }
            tokio::time::sleep(RETRY).await;
        }
    }

    fn accept_results(self: &Rc<Self>, org: OrgId, rows: Vec<ResultRow>) {
        if self.results.accept_results(org, rows) >= self.options.batch {
            self.start_flush();
        }
    }

    fn start_flush(self: &Rc<Self>) {
        let core = Rc::clone(self);
        tokio::task::spawn_local(async move {
            // Results that cannot be written wait for the next flush.
            core.results.flush(&core.postgres).await.ok();
        });
    }
}
