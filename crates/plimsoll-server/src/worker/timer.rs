//! One timer for a connection rather than one for each thing it waits for.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;

use plimsoll_model::Clock;
use tokio::time::Sleep;

/// A timer that is set again only when it fires, or when a deadline comes before it.
///
/// A request moves the deadline of its connection forward, which costs nothing: the timer is left at
/// the earlier one.
#[derive(Debug)]
pub(crate) struct Timer {
    sleep: Pin<Box<Sleep>>,
    /// The task is woken when it fires.
    is_watched: bool,
}

impl Timer {
    /// Set to `deadline`.
    pub(crate) fn new(deadline: Instant) -> Self {
        Self {
            sleep: Box::pin(tokio::time::sleep_until(deadline.into())),
            is_watched: false,
        }
    }

    /// Ready once `deadline` has passed; until then the task is woken no later than at it.
    ///
    /// Must always be called from the same task: a timer that is not set again keeps its waker.
    pub(crate) fn poll_passed<C: Clock>(
        &mut self,
        cx: &mut Context<'_>,
        deadline: Instant,
        clock: &C,
    ) -> Poll<()> {
        loop {
            let is_elapsed = self.sleep.is_elapsed();
            if is_elapsed && deadline <= clock.now() {
                return Poll::Ready(());
            }
            if is_elapsed || deadline < self.sleep.deadline().into_std() {
                self.sleep.as_mut().reset(deadline.into());
            } else if self.is_watched {
                return Poll::Pending;
            }
            self.is_watched = true;
            if self.sleep.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
        }
    }
}
