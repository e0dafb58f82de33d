//! One timer per connection rather than one per exchange.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use tokio::time::Sleep;

/// A timer for deadlines that only move forward.
///
/// It is left running at an earlier exchange's deadline and set to the current one only when it
/// fires, so that an exchange costs no entry in the runtime's timer wheel.
#[derive(Debug)]
pub(crate) struct Deadline {
    sleep: Pin<Box<Sleep>>,
}

impl Deadline {
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            sleep: Box::pin(tokio::time::sleep_until(now.into())),
        }
    }

    /// Ready once `deadline` has passed.
    pub(crate) fn poll_passed(&mut self, context: &mut Context<'_>, deadline: Instant) -> Poll<()> {
        loop {
            ready!(self.sleep.as_mut().poll(context));
            if self.sleep.deadline().into_std() >= deadline {
                return Poll::Ready(());
            }
            self.sleep.as_mut().reset(deadline.into());
        }
    }
}
