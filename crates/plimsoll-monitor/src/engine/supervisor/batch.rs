//! Results that wait for others, so that the store gets many at once.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::engine::board::{Board, Figures};
use crate::store::{OrgId, ResultRow, Store};

/// Results wait at most this long for others before the store gets them, and at most so many.
const HAND_OVER: Duration = Duration::from_millis(100);
const MOST_ROWS: usize = 512;

/// Results that the store has not got.
#[derive(Default)]
pub(super) struct Batch {
    rows: Vec<ResultRow>,
    /// When the first of them came.
    since: Option<Instant>,
    /// Whether the store refused the last ones.
    was_refused: bool,
}

impl Batch {
    pub(super) fn add(&mut self, row: ResultRow, now: Instant) {
        self.rows.push(row);
        self.since.get_or_insert(now);
    }

    /// When the results should be handed over, if there are any.
    pub(super) fn due(&self) -> Option<Instant> {
        self.since.map(|since| since + HAND_OVER)
    }

    /// Hands everything over, for the last time.
    pub(super) async fn finish(
        &mut self,
        (org, store): (OrgId, &dyn Store),
        board: &Board,
        notice: &Arc<dyn Fn(&str) + Send + Sync>,
    ) {
        if !self.rows.is_empty() {
            self.append((org, store), board, notice).await;
        }
    }

    /// Gives results to the store, once they have waited or are many.
    pub(super) async fn hand_over(
        &mut self,
        now: Instant,
        to: (OrgId, &dyn Store),
        board: &Board,
        notice: &Arc<dyn Fn(&str) + Send + Sync>,
    ) {
        let has_waited = self.due().is_some_and(|due| now >= due);
        if !self.rows.is_empty() && (has_waited || self.rows.len() >= MOST_ROWS) {
            self.append(to, board, notice).await;
        }
    }

    async fn append(
        &mut self,
        (org, store): (OrgId, &dyn Store),
        board: &Board,
        notice: &Arc<dyn Fn(&str) + Send + Sync>,
    ) {
        self.since = None;
        let rows = std::mem::take(&mut self.rows);
        let count = rows.len() as u64;
        let writing = board.histories.writing_results(&rows);
        let outcome = store.append(org, rows).await;
        board.histories.written(writing, outcome.is_ok());
        match outcome {
            Ok(()) => self.was_refused = false,
            Err(error) => {
                Figures::add(&board.figures.lost, count);
                if !std::mem::replace(&mut self.was_refused, true) {
                    notice(&format!(
                        "the store takes no results: {error}; those that come until it does are lost"
                    ));
                }
            }
        }
    }
}
