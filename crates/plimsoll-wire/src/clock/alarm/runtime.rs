//! Alarms by the runtime's timers, where there are no finer ones.

use std::io;
use std::time::Instant;

/// Wakes one task at a given moment, to the millisecond.
#[derive(Debug)]
pub struct Alarm(());

impl Alarm {
    /// An alarm on the current runtime.
    pub fn new() -> io::Result<Self> {
        Ok(Self(()))
    }

    /// Waits until `deadline`; returns at once if that is not after `now`.
    pub async fn until(&mut self, deadline: Instant, now: Instant) -> io::Result<()> {
        if deadline > now {
            tokio::time::sleep_until(deadline.into()).await;
        }
        Ok(())
    }
}
