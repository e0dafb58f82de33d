//! Hands changes to the store in their order, and repeats those that it did not take.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::Notify;

use crate::engine::board::Board;
use crate::store::{Change, OrgId, Store, StoreError};

/// Changes in one transaction.
const BATCH: usize = 1_000;

/// Changes that wait; the oldest beyond it are given up, and counted.
const MOST_WAITING: usize = 200_000;

/// Between two attempts.
const RETRY: Duration = Duration::from_secs(1);

/// Takes changes without waiting.
#[derive(Clone)]
pub(super) struct Recorder(Rc<Queue>);

struct Queue {
    waiting: RefCell<VecDeque<Change>>,
    more: Notify,
    board: Arc<Board>,
}

impl Recorder {
    pub(super) fn new(board: Arc<Board>) -> Self {
        Self(Rc::new(Queue {
            waiting: RefCell::default(),
            more: Notify::new(),
            board,
        }))
    }

    pub(super) fn record(&self, changes: impl IntoIterator<Item = Change>) {
        let mut waiting = self.0.waiting.borrow_mut();
        waiting.extend(changes);
        while waiting.len() > MOST_WAITING {
            waiting.pop_front();
            self.0.board.figures.lost.fetch_add(1, Ordering::Relaxed);
        }
        self.show(waiting.len());
        self.0.more.notify_one();
    }

    /// Records for ever.
    pub(super) async fn run(
        &self,
        org: OrgId,
        store: Arc<dyn Store>,
        notice: Arc<dyn Fn(&str) + Send + Sync>,
    ) {
        let mut is_troubled = false;
        loop {
            let trouble = self.drain(org, &*store).await;
            match trouble {
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

    /// Records what waits.
    pub(super) async fn drain(&self, org: OrgId, store: &dyn Store) -> Result<(), StoreError> {
        loop {
            let batch: Vec<Change> = self
                .0
                .waiting
                .borrow()
                .iter()
                .take(BATCH)
                .cloned()
                .collect();
            if batch.is_empty() {
                return Ok(());
            }
            let count = batch.len();
            match store.record(org, batch).await {
                // Changes of a monitor that no longer exists will never be taken.
                Ok(()) | Err(StoreError::NotFound(_)) => {}
                Err(error) => return Err(error),
            }
            let mut waiting = self.0.waiting.borrow_mut();
            let taken = count.min(waiting.len());
            waiting.drain(..taken);
            self.show(waiting.len());
            // Incidents are on pages from now on.
            self.0.board.touch();
        }
    }

    fn show(&self, waiting: usize) {
        let figure = &self.0.board.figures.unrecorded;
        figure.store(waiting as u64, Ordering::Relaxed);
    }
}
