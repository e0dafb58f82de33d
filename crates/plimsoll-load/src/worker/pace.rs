//! When a worker's connections take up their next exchange.
//!
//! One [`Gate`] per worker knows when to end; a [`Pacer`] decides when to start. In a closed loop
//! each connection follows its own last exchange; in an open one they share a schedule.

mod closed;

mod open;

mod streams;

use std::cell::{Cell, RefCell};
use std::task::Waker;
use std::time::{Duration, Instant};

use tokio::sync::Notify;

pub(crate) use self::closed::{ClosedPacer, Step};
pub(crate) use self::open::{OpenPacer, OpenRow, OpenUser};
pub(crate) use self::streams::StreamPacer;

/// Leave to begin one exchange.
#[derive(Debug, Clone, Copy)]
pub struct Start {
    /// When it was meant to start.
    pub intended: Instant,
    /// When it is taken up: the present.
    pub started: Instant,
    /// Whether it counts, or belongs to the warm-up.
    pub in_window: bool,
    /// How late it is although its connection was idle: the generator's own doing.
    pub lag: Option<Duration>,
    /// Position in the plan of the request that is sent; the virtual user sets it.
    pub request: usize,
    /// Its number among the arrivals of its worker, on a schedule.
    pub arrival: Option<u64>,
}

/// The consequence of the last exchange for the next one.
#[derive(Debug, Clone, Copy)]
pub struct Finished {
    /// When it ended.
    pub done: Instant,
    /// How long its connection should rest, because the last ones were in vain.
    pub back_off: Duration,
}

/// How one connection waits for its next start.
#[derive(Debug)]
pub(crate) enum Pacer {
    Closed(ClosedPacer),
    Open(OpenUser),
}

impl Pacer {
    /// Leave for the next exchange; `None` when there will be no more.
    ///
    /// - `last`: the connection's last exchange, `None` before its first.
    #[inline]
    pub(crate) async fn next(&mut self, last: Option<Finished>) -> Option<Start> {
        match self {
            Self::Closed(pacer) => pacer.next(last).await,
            Self::Open(pacer) => pacer.next(last).await,
        }
    }
}

/// When a worker begins no more exchanges, and from when on they count.
#[derive(Debug)]
pub(crate) struct Gate {
    run_start: Instant,
    window_start: Instant,
    /// No exchange that is meant to start at or after this is begun.
    end: Option<Instant>,
    /// Exchanges of the window that may still be begun.
    budget: Cell<u64>,
    stopping: Cell<bool>,
    stopped: Notify,
    /// Tasks to be woken when it stops, besides those that wait for `stopped`.
    sleepers: RefCell<Vec<Waker>>,
}

impl Gate {
    pub(crate) fn new(
        run_start: Instant,
        window_start: Instant,
        end: Option<Instant>,
        budget: Option<u64>,
    ) -> Self {
        Self {
            run_start,
            window_start,
            end,
            budget: Cell::new(budget.unwrap_or(u64::MAX)),
            stopping: Cell::new(false),
            stopped: Notify::new(),
            sleepers: RefCell::default(),
        }
    }

    pub(crate) fn run_start(&self) -> Instant {
        self.run_start
    }

    /// Whether an exchange meant to start at `intended` counts.
    pub(crate) fn in_window(&self, intended: Instant) -> bool {
        intended >= self.window_start
    }

    /// Takes one exchange meant to start at `intended` off the budget; `None` if there is none left.
    #[inline]
    pub(crate) fn admit(&self, intended: Instant) -> Option<bool> {
        if self.stopping.get() || self.end.is_some_and(|end| intended >= end) {
            return None;
        }
        let in_window = self.in_window(intended);
        if in_window {
            let budget = self.budget.get().checked_sub(1)?;
            self.budget.set(budget);
        }
        Some(in_window)
    }

    /// Exchanges of the window that may still be begun.
    pub(crate) fn budget(&self) -> u64 {
        self.budget.get()
    }

    /// Admits nothing more of the window: there is nothing left to be sent.
    pub(crate) fn exhaust(&self) {
        self.budget.set(0);
    }

    /// Begins nothing more, and wakes the users that wait.
    pub(crate) fn stop(&self) {
        self.stopping.set(true);
        self.stopped.notify_waiters();
        for sleeper in self.sleepers.borrow_mut().drain(..) {
            sleeper.wake();
        }
    }

    /// Has a task woken when it stops; once for each task is enough.
    pub(crate) fn wake_on_stop(&self, waker: Waker) {
        self.sleepers.borrow_mut().push(waker);
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.get()
    }

    /// Waits until [`Gate::stop`] is called.
    pub(crate) async fn wait_for_stop(&self) {
        let stopped = self.stopped.notified();
        if !self.stopping.get() {
            stopped.await;
        }
    }

    /// The end of the run, if it is bounded by time.
    pub(crate) fn end(&self) -> Option<Instant> {
        self.end
    }
}
