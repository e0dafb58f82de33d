//! One timer for the deadlines of all exchanges of a connection.

use std::pin::Pin;
use std::task::Context;
use std::time::Instant;

use tokio::time::Sleep;

/// A timer that never fires later than the earliest deadline included.
///
/// It is left running when an exchange ends before its deadline, and set anew only when it fires; so
/// an exchange costs no entry in the runtime's timer wheel.
#[derive(Debug)]
pub(super) struct Due {
    sleep: Pin<Box<Sleep>>,
    /// No deadline is earlier than this.
    earliest: Option<Instant>,
}

impl Due {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            sleep: Box::pin(tokio::time::sleep_until(now.into())),
            earliest: None,
        }
    }

    /// Includes `deadline`, which is usually later than all before.
    #[inline]
    pub(super) fn include(&mut self, deadline: Instant) {
        match self.earliest {
            Some(earliest) if earliest <= deadline => {}
            Some(_) => self.restart(Some(deadline)),
            None => self.earliest = Some(deadline),
        }
    }

    /// Begins again with the earliest of the deadlines that are left.
    pub(super) fn restart(&mut self, earliest: Option<Instant>) {
        self.earliest = earliest;
        if let Some(earliest) = earliest
            && self.sleep.deadline().into_std() > earliest
        {
            self.sleep.as_mut().reset(earliest.into());
        }
    }

    /// Whether a deadline may have passed at `now`.
    #[inline]
    pub(super) fn is_passed(&self, now: Instant) -> bool {
        self.earliest.is_some_and(|earliest| earliest <= now)
    }

    /// The moment up to which deadlines have passed, once it is time to look at them.
    #[inline]
    pub(super) fn poll_passed(&mut self, context: &mut Context<'_>) -> Option<Instant> {
        let earliest = self.earliest?;
        loop {
            if self.sleep.as_mut().poll(context).is_pending() {
                return None;
            }
            let passed = self.sleep.deadline().into_std();
            if passed >= earliest {
                return Some(passed);
            }
            self.sleep.as_mut().reset(earliest.into());
        }
    }
}
