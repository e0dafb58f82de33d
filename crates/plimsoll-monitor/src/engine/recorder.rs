//! Hands changes to the store in their order, each once, and repeats those that it did not take.
//!
//! What one step leads to is a group: the store gets all of it in one transaction or nothing, so that a process that ends
//! in between leaves no half of it. A batch of groups has a number, by which the store knows one whose answer was lost.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::Notify;

use crate::engine::board::Board;
use crate::store::{BatchNumber, Change, OrgId, Store, StoreError};

/// Changes in one transaction, unless one group has more.
const BATCH: usize = 5_000;

/// Changes that wait; with more of them the engine takes no results, so that none is given up.
const MOST_WAITING: usize = 200_000;

/// Between two attempts.
const RETRY: Duration = Duration::from_secs(1);

/// Takes changes without waiting.
#[derive(Clone)]
pub(super) struct Recorder(Rc<Queue>);

struct Queue {
    waiting: RefCell<VecDeque<Vec<Change>>>,
    /// Changes of all groups.
    count: Cell<usize>,
    /// The batch that is being written: its number, and its groups at the front of the queue.
    in_flight: Cell<Option<(i64, usize)>>,
    /// The number of the last batch.
    last: Cell<i64>,
    writer: i64,
    more: Notify,
    is_closed: Cell<bool>,
    board: Arc<Board>,
}

impl Recorder {
    pub(super) fn new(board: Arc<Board>) -> Self {
        Self(Rc::new(Queue {
            waiting: RefCell::default(),
            count: Cell::new(0),
            in_flight: Cell::new(None),
            last: Cell::new(0),
            writer: fastrand::i64(..),
            more: Notify::new(),
            is_closed: Cell::new(false),
            board,
        }))
    }

    /// Records a group.
    pub(super) fn record(&self, group: Vec<Change>) {
        if group.is_empty() {
            return;
        }
        self.0.count.set(self.0.count.get() + group.len());
        self.0.waiting.borrow_mut().push_back(group);
        self.show();
        self.0.more.notify_one();
    }

    /// Whether so much waits that nothing more should happen.
    pub(super) fn is_full(&self) -> bool {
        self.0.count.get() >= MOST_WAITING
    }

    /// Ends [`run`](Self::run) once everything is written.
    pub(super) fn close(&self) {
        self.0.is_closed.set(true);
        self.0.more.notify_one();
    }

    /// Records until it is closed.
    pub(super) async fn run(
        &self,
        org: OrgId,
        store: Arc<dyn Store>,
        notice: Arc<dyn Fn(&str) + Send + Sync>,
    ) {
        let mut is_troubled = false;
        loop {
            match self.drain(org, &*store).await {
                Ok(()) if self.0.is_closed.get() => return,
                Ok(()) => {
                    is_troubled = false;
                    self.0.more.notified().await;
                }
                Err(error) => {
                    if !is_troubled {
                        is_troubled = true;
                        notice(&format!(
                            "cannot record incidents: {error}; trying again every second"
                        ));
                    }
                    tokio::time::sleep(RETRY).await;
                }
            }
        }
    }

    /// Records what waits. Only one call at a time.
    pub(super) async fn drain(&self, org: OrgId, store: &dyn Store) -> Result<(), StoreError> {
        while self.write_batch(org, store, BATCH).await? {}
        Ok(())
    }

    /// Records the first groups with at most `most` changes, or one group with more; false if nothing waits.
    pub(super) async fn write_batch(
        &self,
        org: OrgId,
        store: &dyn Store,
        most: usize,
    ) -> Result<bool, StoreError> {
        let (number, groups) = match self.0.in_flight.get() {
            // It may have been taken though its answer was lost.
            Some(batch) => batch,
            None => (self.next_number(), self.groups(most)),
        };
        if groups == 0 {
            return Ok(false);
        }
        self.0.in_flight.set(Some((number, groups)));
        match self.attempt(org, store, number, groups).await {
            // A monitor may be gone with its organisation: its group will never be taken, and must hold up no other.
            Err(StoreError::NotFound(_)) if groups > 1 => {
                self.0.in_flight.set(Some((self.next_number(), 1)));
                return Ok(true);
            }
            Ok(()) | Err(StoreError::NotFound(_)) => {}
            Err(error) => return Err(error),
        }
        self.0.in_flight.set(None);
        let written: usize = {
            let mut waiting = self.0.waiting.borrow_mut();
            waiting.drain(..groups).map(|group| group.len()).sum()
        };
        self.0.count.set(self.0.count.get() - written);
        self.show();
        // Incidents are on pages from now on.
        self.0.board.touch();
        Ok(true)
    }

    async fn attempt(
        &self,
        org: OrgId,
        store: &dyn Store,
        number: i64,
        groups: usize,
    ) -> Result<(), StoreError> {
        let changes: Vec<Change> = {
            let waiting = self.0.waiting.borrow();
            waiting.iter().take(groups).flatten().cloned().collect()
        };
        let writer = self.0.writer;
        let batch = Some(BatchNumber { writer, number });
        let histories = &self.0.board.histories;
        let writing = histories.writing_changes(&changes);
        let outcome = store.record_once(org, batch, changes).await;
        histories.written(writing, outcome.is_ok());
        outcome
    }

    fn next_number(&self) -> i64 {
        self.0.last.set(self.0.last.get() + 1);
        self.0.last.get()
    }

    fn groups(&self, most: usize) -> usize {
        let waiting = self.0.waiting.borrow();
        let mut total = 0;
        let fit = waiting.iter().take_while(|group| {
            total += group.len();
            total <= most
        });
        fit.count().max(usize::from(!waiting.is_empty()))
    }

    fn show(&self) {
        let figure = &self.0.board.figures.unrecorded;
        figure.store(self.0.count.get() as u64, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Health;
    use crate::store::{MonitorId, NewMonitor, SqliteOptions, SqlitePath, SqliteStore};
    use crate::time::Timestamp;

    fn change(monitor: MonitorId, at: i64) -> Vec<Change> {
        vec![Change::Health {
            monitor,
            at: Timestamp(at),
            health: Health::Up,
            reason: None,
        }]
    }

    async fn store() -> (SqliteStore, OrgId, MonitorId) {
        let store = SqliteStore::open(&SqlitePath::Memory, SqliteOptions::default()).unwrap();
        let org = store.org("default").await.unwrap();
        let monitor = NewMonitor {
            key: "a".to_owned(),
            name: "a".to_owned(),
            group: String::new(),
            kind: "http".to_owned(),
        };
        let now = Timestamp(0);
        let ids = store.sync_monitors(org, "file", vec![monitor], now).await;
        let id = ids.unwrap()[0];
        (store, org, id)
    }

    async fn recorded(store: &SqliteStore, org: OrgId, monitor: MonitorId) -> usize {
        let end = Timestamp(i64::MAX);
        let all = store.health(org, monitor, Timestamp(0), end).await.unwrap();
        all.len()
    }

    #[tokio::test]
    async fn a_group_that_is_never_taken_holds_up_no_other() {
        let (store, org, monitor) = store().await;
        let recorder = Recorder::new(Arc::default());
        recorder.record(change(monitor, 1));
        recorder.record(change(MonitorId(99), 2));
        recorder.record(change(monitor, 3));
        recorder.drain(org, &store).await.unwrap();
        assert_eq!(recorded(&store, org, monitor).await, 2);
        assert_eq!(recorder.0.count.get(), 0);
    }

    #[tokio::test]
    async fn a_batch_whose_answer_was_lost_is_written_once() {
        let (store, org, monitor) = store().await;
        let recorder = Recorder::new(Arc::default());
        recorder.record(change(monitor, 1));
        recorder.record(change(monitor, 2));
        // The caller is gone before the answer comes, as at the end of a program; the batch is written all the same.
        recorder.0.in_flight.set(Some((recorder.next_number(), 2)));
        recorder.attempt(org, &store, 1, 2).await.unwrap();
        recorder.record(change(monitor, 3));
        recorder.drain(org, &store).await.unwrap();
        assert_eq!(recorded(&store, org, monitor).await, 3);
    }

    #[tokio::test]
    async fn groups_are_not_torn_and_none_is_given_up() {
        let (store, org, monitor) = store().await;
        let recorder = Recorder::new(Arc::default());
        for at in 0..4 {
            let mut group = change(monitor, at * 10);
            group.extend(change(monitor, at * 10 + 5));
            recorder.record(group);
        }
        // A group is written whole, even if it is larger than a batch.
        assert!(recorder.write_batch(org, &store, 1).await.unwrap());
        assert_eq!(recorded(&store, org, monitor).await, 2);
        assert!(recorder.write_batch(org, &store, 5).await.unwrap());
        assert_eq!(recorded(&store, org, monitor).await, 6);
        let most = i64::try_from(MOST_WAITING).unwrap();
        recorder.record((0..most).flat_map(|at| change(monitor, 100 + at)).collect());
        assert!(recorder.is_full());
        let count = recorder.0.count.get();
        assert_eq!(count, 2 + MOST_WAITING);
    }
}
