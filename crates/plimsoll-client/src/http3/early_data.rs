//! The fate of requests that leave before the handshake of their connection is over (0-RTT).
//!
//! A server may reject them without a word, and with them everything else that was sent early: also
//! what HTTP/3 says first. So such a connection is of no use, and another one has to be opened without
//! early data, or else it could be rejected again.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use quinn::ZeroRttAccepted;
use tokio::sync::watch;

/// Whether the server took what left early.
#[derive(Debug)]
pub(crate) struct EarlyData {
    is_accepted: watch::Receiver<Option<bool>>,
}

/// Number of further connections to open without early data, because a server rejected some.
#[derive(Debug, Clone, Default)]
pub(crate) struct WithoutEarlyData(Arc<AtomicUsize>);

impl WithoutEarlyData {
    /// Takes one of them; false if there is none.
    pub(crate) fn spend_one(&self) -> bool {
        let one_less = |count: usize| count.checked_sub(1);
        self.0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less)
            .is_ok()
    }

    fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl EarlyData {
    /// Waits for the answer in a task of its own.
    ///
    /// - `without`: gets one more if the server rejects it.
    pub(crate) fn follow(accepted: ZeroRttAccepted, without: WithoutEarlyData) -> Self {
        let (verdict, is_accepted) = watch::channel(None);
        tokio::spawn(async move {
            let is_accepted = accepted.await;
            if !is_accepted {
                without.add();
            }
            verdict.send_replace(Some(is_accepted));
        });
        Self { is_accepted }
    }

    /// Waits until it is known. A connection that was lost before counts as rejected, too.
    pub(super) async fn is_accepted(&self) -> bool {
        let mut verdict = self.is_accepted.clone();
        let answer = verdict.wait_for(Option::is_some).await;
        answer.is_ok_and(|answer| *answer == Some(true))
    }
}
