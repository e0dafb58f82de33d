//! The signal by which a task beside the checks ends, between two pieces of its work.

use std::time::Duration;

use tokio::sync::watch;

/// The signal for a task to end.
#[derive(Debug, Clone)]
pub struct Stop(watch::Receiver<()>);

impl Stop {
    /// - `sender_gone`: closed by its sender when the task should end.
    pub(crate) fn new(sender_gone: watch::Receiver<()>) -> Self {
        Self(sender_gone)
    }

    /// Whether the task should begin nothing more.
    pub(crate) fn is_set(&self) -> bool {
        self.0.has_changed().is_err()
    }

    /// Returns once the task should end.
    pub async fn wait(&mut self) {
        while self.0.changed().await.is_ok() {}
    }

    /// Sleeps; returns early, and with true, once the task should end.
    pub async fn comes_within(&mut self, pause: Duration) -> bool {
        tokio::time::timeout(pause, self.wait()).await.is_ok()
    }

    /// Waits for a change; returns at the latest after the pause, and with true once the task should end.
    pub async fn comes_before_a_change<T>(
        &mut self,
        changes: &mut watch::Receiver<T>,
        pause: Duration,
    ) -> bool {
        tokio::select! {
            biased;
            () = self.wait() => true,
            waited = tokio::time::timeout(pause, changes.changed()) => matches!(waited, Ok(Err(_))),
        }
    }
}
