//! Answers late.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use plimsoll_model::Clock as _;
use plimsoll_wire::{Alarm, SystemClock};

use crate::action::{Action, Answer};
use crate::request::Request;

/// From here on a millisecond does not matter, and the runtime's timers are cheaper.
const LONG: Duration = Duration::from_millis(100);

/// Answers that may be held back by an alarm each at a time; an alarm takes an open file.
const MOST_ALARMS: usize = 256;

/// Lets another action answer, and holds its answer back.
pub struct Delay {
    time: Duration,
    inner: Rc<dyn Action>,
    alarms: Rc<RefCell<Alarms>>,
}

/// Those of a worker that ring for nobody now, and how many there are in all.
#[derive(Debug, Default)]
struct Alarms {
    idle: Vec<Alarm>,
    made: usize,
}

impl Delay {
    /// Holds the answers of `inner` back for `time`.
    ///
    /// Short ones to some ten microseconds, as long as not too many are held back at once, others to the
    /// millisecond.
    pub fn new(time: Duration, inner: Rc<dyn Action>) -> Self {
        Self {
            time,
            inner,
            alarms: Rc::default(),
        }
    }
}

impl Alarms {
    fn take(&mut self) -> Option<Alarm> {
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

/// Waits for `time`; an alarm that is not waited for to its end is gone.
async fn wait(time: Duration, alarms: Rc<RefCell<Alarms>>) {
    /// Makes room for another one, unless the alarm is kept.
    struct Taken(Rc<RefCell<Alarms>>);

    impl Drop for Taken {
        fn drop(&mut self) {
            self.0.borrow_mut().made -= 1;
        }
    }

    let now = SystemClock.now();
    let alarm = if time < LONG {
        alarms.borrow_mut().take()
    } else {
        None
    };
    let Some(mut alarm) = alarm else {
        return tokio::time::sleep(time).await;
    };
    let taken = Taken(alarms);
    if alarm.until(now + time, now).await.is_ok() {
        let mut alarms = taken.0.borrow_mut();
        alarms.idle.push(alarm);
        alarms.made += 1;
    }
}

impl Action for Delay {
    fn handle(&self, request: &Request<'_>) -> Answer {
        let answer = self.inner.handle(request);
        let (time, alarms) = (self.time, Rc::clone(&self.alarms));
        Answer::Later(Box::pin(async move {
            wait(time, alarms).await;
            match answer {
                Answer::Now(outcome) => outcome,
                Answer::Later(later) => later.await,
            }
        }))
    }
}

impl std::fmt::Debug for Delay {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Delay")
            .field("time", &self.time)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alarms_are_kept_and_there_are_not_too_many() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let alarms = Rc::<RefCell<Alarms>>::default();
            let time = Duration::from_millis(1);
            let begun = SystemClock.now();
            wait(time, Rc::clone(&alarms)).await;
            assert!(SystemClock.now() - begun >= time);
            assert_eq!((alarms.borrow().idle.len(), alarms.borrow().made), (1, 1));

            let waiting = (0..MOST_ALARMS + 3).map(|_| wait(time, Rc::clone(&alarms)));
            let set = tokio::task::LocalSet::new();
            let tasks: Vec<_> = waiting.map(|wait| set.spawn_local(wait)).collect();
            set.await;
            for task in tasks {
                task.await.unwrap();
            }
            assert!(alarms.borrow().made <= MOST_ALARMS);
            assert_eq!(alarms.borrow().idle.len(), alarms.borrow().made);

            // A client that goes away takes the alarm with it.
            let mut gone = Box::pin(wait(time, Rc::clone(&alarms)));
            let before = alarms.borrow().made;
            let is_over = std::future::poll_fn(|cx| {
                std::task::Poll::Ready(gone.as_mut().poll(cx).is_ready())
            });
            assert!(!is_over.await);
            drop(gone);
            assert_eq!(alarms.borrow().made, before - 1);
        });
    }
}
