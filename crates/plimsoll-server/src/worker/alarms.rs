//! Waits of a worker that end at the microsecond, not at the runtime's next tick.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use plimsoll_model::Clock as _;
use plimsoll_wire::{Alarm, SystemClock};

/// From here on a millisecond does not matter, and the runtime's timers are cheaper.
const LONG: Duration = Duration::from_millis(100);

/// Waits that may have an alarm each at a time; an alarm takes an open file.
const MOST_ALARMS: usize = 256;

/// The alarms of one worker.
#[derive(Debug, Clone, Default)]
pub struct Alarms(Rc<RefCell<IdleTimers>>);

/// Timers that wake no connection now, and how many there are in all.
#[derive(Debug, Default)]
struct IdleTimers {
    idle: Vec<Alarm>,
    made: usize,
}

/// Makes room for another alarm, unless this one is kept.
struct AlarmGuard(Rc<RefCell<IdleTimers>>);

impl Drop for AlarmGuard {
    fn drop(&mut self) {
        self.0.borrow_mut().made -= 1;
    }
}

impl Alarms {
    /// Waits for `time`: a short one to some ten microseconds, as long as not too many wait at once, others to the
    /// millisecond.
    ///
    /// Waits on the runtime that it is polled on; an alarm that is not waited for to its end is gone.
    pub fn wait(&self, time: Duration) -> impl Future<Output = ()> + use<> {
        let kept = Rc::clone(&self.0);
        async move {
            let now = SystemClock.now();
            let alarm = if time < LONG {
                kept.borrow_mut().take_timer()
            } else {
                None
            };
            let Some(mut alarm) = alarm else {
                return tokio::time::sleep(time).await;
            };
            let taken = AlarmGuard(kept);
            if alarm.until(now + time, now).await.is_ok() {
                let mut kept = taken.0.borrow_mut();
                kept.idle.push(alarm);
                kept.made += 1;
            }
        }
    }
}

impl IdleTimers {
    fn take_timer(&mut self) -> Option<Alarm> {
        if let Some(alarm) = self.idle.pop() {
            return Some(alarm);
        }
        if self.made == MOST_ALARMS {
            return None;
        }
        let alarm = Alarm::new().ok()?;
        self.made += 1;
        Some(alarm)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_kept_and_there_are_not_too_many() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let alarms = Alarms::default();
            let counts = || (alarms.0.borrow().idle.len(), alarms.0.borrow().made);
            let time = Duration::from_millis(1);
            let begun = SystemClock.now();
            alarms.wait(time).await;
            assert!(SystemClock.now() - begun >= time);
            assert_eq!(counts(), (1, 1));

            let set = tokio::task::LocalSet::new();
            let waiting = (0..MOST_ALARMS + 3).map(|_| alarms.wait(time));
            let tasks: Vec<_> = waiting.map(|wait| set.spawn_local(wait)).collect();
            set.await;
            for task in tasks {
                task.await.unwrap();
            }
            let (idle, made) = counts();
            assert!(made <= MOST_ALARMS);
            assert_eq!(idle, made);

            // A client that goes away takes the alarm with it.
            let mut gone = Box::pin(alarms.wait(time));
            let is_over = std::future::poll_fn(|cx| {
                std::task::Poll::Ready(gone.as_mut().poll(cx).is_ready())
            });
            assert!(!is_over.await);
            drop(gone);
            assert_eq!(counts().1, made - 1);
        });
    }
}
