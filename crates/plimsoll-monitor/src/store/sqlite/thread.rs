//! The threads that own the connections.

use std::collections::HashSet;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender, TrySendError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use plimsoll_model::Clock;
use plimsoll_wire::SystemClock;
use rusqlite::Connection;
use tokio::sync::oneshot;

use crate::store::StoreError;
use crate::store::sqlite::{SqliteOptions, database, results};
use crate::store::types::{MonitorId, OrgId, ResultRow};

/// Jobs that wait for a thread.
const MOST_JOBS: usize = 1_024;

/// How long a caller waits for room in the queue, and how often it looks.
const PATIENCE: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(5);

/// After a failed write.
const RETRY: Duration = Duration::from_secs(1);

type Work = Box<dyn FnOnce(&mut Connection) + Send>;

enum Job {
    Results(OrgId, Vec<ResultRow>),
    Flush(oneshot::Sender<Result<(), StoreError>>),
    Work(Work),
}

/// A thread that owns a connection, and its queue. Dropping it waits until every job that was sent is done.
struct ConnectionThread {
    jobs: Option<SyncSender<Job>>,
    thread: Option<JoinHandle<()>>,
}

impl ConnectionThread {
    fn start(
        name: &str,
        work: impl FnOnce(Receiver<Job>) + Send + 'static,
    ) -> Result<Self, StoreError> {
        let (jobs, queue) = mpsc::sync_channel(MOST_JOBS);
        let spawned = thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || work(queue));
        let thread = spawned
            .map_err(|error| StoreError::Database(format!("cannot start a thread: {error}")))?;
        Ok(Self {
            jobs: Some(jobs),
            thread: Some(thread),
        })
    }

    async fn call<T: Send + 'static>(
        &self,
        job: impl FnOnce(&mut Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (done, result) = oneshot::channel();
        let work: Work = Box::new(move |connection| {
            // A caller that has gone away needs no result.
            done.send(job(connection)).ok();
        });
        send(self.jobs.as_ref(), Job::Work(work)).await?;
        result
            .await
            .map_err(|_| StoreError::Closed)?
            .map_err(database)
    }
}

impl Drop for ConnectionThread {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}

/// Owns the connection that writes.
pub(super) struct Writer {
    thread: ConnectionThread,
    shared: Arc<Shared>,
    most_waiting: u64,
}

#[derive(Debug, Default)]
struct Shared {
    waiting: AtomicU64,
    refused: AtomicU64,
    trouble: Mutex<Option<String>>,
}

impl Writer {
    pub(super) fn start(
        connection: Connection,
        options: SqliteOptions,
    ) -> Result<Self, StoreError> {
        let shared = Arc::<Shared>::default();
        let writing = Writing {
            connection,
            options,
            buffer: Vec::new(),
            owners: HashSet::new(),
            shared: Arc::clone(&shared),
        };
        Ok(Self {
            thread: ConnectionThread::start("monitor-store", move |queue| writing.run(&queue))?,
            shared,
            most_waiting: options.most_waiting as u64,
        })
    }

    /// Results that wait, and those that were refused.
    pub(super) fn waiting(&self) -> (u64, u64) {
        let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
        (load(&self.shared.waiting), load(&self.shared.refused))
    }

    pub(super) fn trouble(&self) -> Option<String> {
        let trouble = self.shared.trouble.lock();
        trouble.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Refuses all of them if too many wait.
    pub(super) fn append(&self, org: OrgId, rows: Vec<ResultRow>) -> Result<(), StoreError> {
        let count = rows.len() as u64;
        let shared = &self.shared;
        let waiting = shared.waiting.fetch_add(count, Ordering::Relaxed);
        let sent = if waiting + count > self.most_waiting {
            Err(StoreError::Busy)
        } else {
            let jobs = self.thread.jobs.as_ref().ok_or(StoreError::Closed)?;
            jobs.try_send(Job::Results(org, rows))
                .map_err(|error| match error {
                    TrySendError::Full(_) => StoreError::Busy,
                    TrySendError::Disconnected(_) => StoreError::Closed,
                })
        };
        if sent.is_err() {
            shared.waiting.fetch_sub(count, Ordering::Relaxed);
            shared.refused.fetch_add(count, Ordering::Relaxed);
        }
        sent
    }

    pub(super) async fn flush(&self) -> Result<(), StoreError> {
        let (done, result) = oneshot::channel();
        send(self.thread.jobs.as_ref(), Job::Flush(done)).await?;
        result.await.map_err(|_| StoreError::Closed)?
    }

    pub(super) async fn call<T: Send + 'static>(
        &self,
        job: impl FnOnce(&mut Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.thread.call(job).await
    }
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer")
            .field("shared", &self.shared)
            .finish_non_exhaustive()
    }
}

/// Owns the connection that reads.
pub(super) struct Reader(ConnectionThread);

impl Reader {
    pub(super) fn start(mut connection: Connection) -> Result<Self, StoreError> {
        let run = move |queue: Receiver<Job>| {
            for job in queue {
                if let Job::Work(work) = job {
                    work(&mut connection);
                }
            }
        };
        Ok(Self(ConnectionThread::start("monitor-reader", run)?))
    }

    pub(super) async fn call<T: Send + 'static>(
        &self,
        job: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.0
            .call(move |connection| {
                // All statements of a job see the same state, and the file is locked once instead of by each of them.
                let transaction = connection.transaction()?;
                job(&transaction)
            })
            .await
    }
}

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Reader")
    }
}

async fn send(jobs: Option<&SyncSender<Job>>, mut job: Job) -> Result<(), StoreError> {
    let jobs = jobs.ok_or(StoreError::Closed)?;
    let mut waited = Duration::ZERO;
    loop {
        match jobs.try_send(job) {
            Ok(()) => return Ok(()),
            Err(TrySendError::Disconnected(_)) => return Err(StoreError::Closed),
            Err(TrySendError::Full(back)) => {
                if waited >= PATIENCE {
                    return Err(StoreError::Busy);
                }
                job = back;
                tokio::time::sleep(LOOK).await;
                waited += LOOK;
            }
        }
    }
}

/// State of the thread that writes.
struct Writing {
    connection: Connection,
    options: SqliteOptions,
    buffer: Vec<(OrgId, ResultRow)>,
    owners: HashSet<(OrgId, MonitorId)>,
    shared: Arc<Shared>,
}

impl Writing {
    fn run(mut self, queue: &Receiver<Job>) {
        let clock = SystemClock;
        let mut due = clock.now();
        loop {
            let job = if self.buffer.is_empty() {
                queue.recv().map_err(|_| RecvTimeoutError::Disconnected)
            } else {
                queue.recv_timeout(due.saturating_duration_since(clock.now()))
            };
            match job {
                Ok(Job::Results(org, rows)) => {
                    if self.buffer.is_empty() {
                        due = clock.now() + self.options.flush_every;
                    }
                    self.buffer.extend(rows.into_iter().map(|row| (org, row)));
                    let is_full = self.buffer.len() >= self.options.batch;
                    if is_full && self.trouble_is_none() && self.flush().is_err() {
                        due = clock.now() + RETRY;
                    }
                }
                Ok(Job::Flush(done)) => {
                    let flushed = self.flush();
                    if flushed.is_err() {
                        due = clock.now() + RETRY;
                    }
                    done.send(flushed).ok();
                }
                Ok(Job::Work(work)) => {
                    // Reads and rollups include all results that came before.
                    if self.flush().is_err() {
                        due = clock.now() + RETRY;
                    }
                    work(&mut self.connection);
                }
                Err(RecvTimeoutError::Timeout) => {
                    if self.flush().is_err() {
                        due = clock.now() + RETRY;
                    }
                }
                Err(RecvTimeoutError::Disconnected) => {
                    self.flush().ok();
                    return;
                }
            }
        }
    }

    fn trouble_is_none(&self) -> bool {
        let trouble = self.shared.trouble.lock();
        trouble.unwrap_or_else(PoisonError::into_inner).is_none()
    }

    /// Writes the buffer in one transaction; on an error it stays as it is.
    fn flush(&mut self) -> Result<(), StoreError> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let written =
            results::insert(&mut self.connection, &mut self.owners, &self.buffer).map_err(database);
        let trouble = written.as_ref().err().map(ToString::to_string);
        *self
            .shared
            .trouble
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = trouble;
        if written.is_ok() {
            let count = self.buffer.len() as u64;
            self.shared.waiting.fetch_sub(count, Ordering::Relaxed);
            self.buffer.clear();
        }
        written
    }
}
