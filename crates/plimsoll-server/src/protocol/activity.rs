//! The streams in flight of a multiplexed connection.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Instant;

use plimsoll_model::Clock;

use crate::worker::ConnectionGuard;

/// Number of running stream tasks, and the time of the last request.
#[derive(Debug)]
pub(crate) struct Activity {
    tasks: Cell<usize>,
    last: Cell<Instant>,
}

impl Activity {
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            tasks: Cell::new(0),
            last: Cell::new(now),
        }
    }

    /// Streams that have a task.
    pub(crate) fn tasks(&self) -> usize {
        self.tasks.get()
    }

    /// When a request was last under way.
    pub(crate) fn last(&self) -> Instant {
        self.last.get()
    }

    /// A request is under way.
    pub(crate) fn is_seen(&self, now: Instant) {
        self.last.set(now);
    }
}

/// Counts a task as long as it lives.
#[derive(Debug)]
pub(crate) struct Busy {
    activity: Rc<Activity>,
    pub(crate) place: Rc<ConnectionGuard>,
}

impl Busy {
    pub(crate) fn new(activity: &Rc<Activity>, place: &Rc<ConnectionGuard>) -> Self {
        activity.tasks.set(activity.tasks.get() + 1);
        Self {
            activity: Rc::clone(activity),
            place: Rc::clone(place),
        }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.place.worker.counters.panicked();
        }
        let activity = &self.activity;
        activity.tasks.set(activity.tasks.get() - 1);
        activity.last.set(self.place.worker.clock.now());
        self.place.wake();
    }
}
