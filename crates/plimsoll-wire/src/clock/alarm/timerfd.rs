//! Alarms by `timerfd_create(2)`.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Instant;

use rustix::io::Errno;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use tokio::io::unix::AsyncFd;

/// Wakes one task at a given moment.
#[derive(Debug)]
pub struct Alarm {
    timer: AsyncFd<OwnedFd>,
}

impl Alarm {
    /// An alarm on the current runtime; fails if this process has no descriptor left.
    pub fn new() -> io::Result<Self> {
        let timer = timerfd_create(
            TimerfdClockId::Monotonic,
            TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC,
        )?;
        #[expect(
            unsafe_code,
            reason = "the runtime offers no safe way to register a descriptor"
        )]
        // SAFETY: `AsyncFd` owns the `OwnedFd`, which stays open and the same until it is dropped.
        let timer = unsafe { AsyncFd::register(timer) }.map_err(io::Error::from)?;
        Ok(Self { timer })
    }

    /// Waits until `deadline`; returns at once if that is not after `now`.
    ///
    /// Dropping the future leaves nothing behind: the next call sets the timer anew.
    pub async fn until(&mut self, deadline: Instant, now: Instant) -> io::Result<()> {
        let wait = deadline.saturating_duration_since(now);
        if wait.is_zero() {
            return Ok(());
        }
        let value = Timespec::try_from(wait).map_err(|_| Errno::INVAL)?;
        let once = Itimerspec {
            it_interval: Timespec::default(),
            it_value: value,
        };
        timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &once)?;
        loop {
            let mut ready = self.timer.readable().await?;
            let mut expirations = [0; 8];
            let read = ready
                .try_io(|timer| rustix::io::read(timer, &mut expirations).map_err(io::Error::from));
            match read {
                Ok(result) => return result.map(|_| ()),
                // An expiry of an earlier setting was taken back by this one.
                Err(_would_block) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use plimsoll_model::Clock;

    use super::*;
    use crate::SystemClock;

    #[tokio::test]
    async fn never_early_and_set_anew_after_being_dropped() {
        let clock = SystemClock;
        let mut alarm = Alarm::new().unwrap();
        let start = clock.now();
        let far = start + Duration::from_hours(1);
        tokio::select! {
            biased;
            fired = alarm.until(far, start) => panic!("fired an hour early: {fired:?}"),
            () = std::future::ready(()) => {}
        }
        let soon = start + Duration::from_micros(300);
        alarm.until(soon, start).await.unwrap();
        assert!(clock.now() >= soon);
        alarm.until(soon, clock.now()).await.unwrap();
    }
}
