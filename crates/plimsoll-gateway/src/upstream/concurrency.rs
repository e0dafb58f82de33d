//! A limit on the requests of a worker that are in flight at an upstream; those beyond it wait in a queue.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

use plimsoll_model::Clock as _;
use plimsoll_wire::SystemClock;

use super::gradient::{Bounds, Gradient};
use crate::deadline::Deadlines;

/// How many requests may be in flight.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ConcurrencyPlan {
    pub(crate) limit: Limit,
    /// Requests that may wait.
    pub(crate) queue: usize,
    /// For how long.
    pub(crate) wait: Duration,
}

/// Source of the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Limit {
    Fixed(u32),
    /// From latency.
    Adaptive(Bounds),
}

/// The requests of one worker.
#[derive(Debug)]
pub(crate) struct Concurrency {
    state: RefCell<State>,
    queue: usize,
    deadlines: Rc<Deadlines>,
}

#[derive(Debug)]
struct State {
    limit: u32,
    gradient: Option<Gradient>,
    in_flight: u32,
    waiting: VecDeque<Rc<Waiter>>,
}

#[derive(Debug, Default)]
struct Waiter {
    waker: RefCell<Option<Waker>>,
    is_granted: Cell<bool>,
}

/// The right to have a request in flight, until it is dropped.
#[derive(Debug)]
pub(crate) struct Permit {
    concurrency: Rc<Concurrency>,
    begun: Instant,
}

/// Too many requests wait, or one has waited for too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Full;

impl Concurrency {
    pub(crate) fn new(plan: &ConcurrencyPlan) -> Rc<Self> {
        let gradient = match plan.limit {
            Limit::Fixed(_) => None,
            Limit::Adaptive(bounds) => Some(Gradient::new(bounds)),
        };
        let limit = match (plan.limit, &gradient) {
            (_, Some(gradient)) => gradient.limit(),
            (Limit::Fixed(limit), None) => limit,
            (Limit::Adaptive(bounds), None) => bounds.most,
        };
        Rc::new(Self {
            state: RefCell::new(State {
                limit,
                gradient,
                in_flight: 0,
                waiting: VecDeque::new(),
            }),
            queue: plan.queue,
            deadlines: Deadlines::start(plan.wait),
        })
    }

    /// A permit, if there is one and no request waits for it.
    pub(crate) fn try_acquire(self: &Rc<Self>, now: Instant) -> Option<Permit> {
        let mut state = self.state.borrow_mut();
        let has_room = state.in_flight < state.limit && state.waiting.is_empty();
        has_room.then(|| {
            state.in_flight += 1;
            self.permit(now)
        })
    }

    /// Waits for a permit.
    pub(crate) async fn acquire(self: &Rc<Self>, now: Instant) -> Result<Permit, Full> {
        if let Some(permit) = self.try_acquire(now) {
            return Ok(permit);
        }
        let waiting = {
            let mut state = self.state.borrow_mut();
            if state.waiting.len() >= self.queue {
                return Err(Full);
            }
            let waiter = Rc::new(Waiter::default());
            state.waiting.push_back(Rc::clone(&waiter));
            Waiting {
                concurrency: Rc::clone(self),
                waiter,
            }
        };
        let deadline = self.deadlines.begin(now);
        let is_granted = poll_fn(|context| {
            if waiting.waiter.is_granted.get() {
                return Poll::Ready(true);
            }
            *waiting.waiter.waker.borrow_mut() = Some(context.waker().clone());
            deadline.poll_over(context).map(|()| false)
        })
        .await;
        if !is_granted {
            return Err(Full);
        }
        waiting.waiter.is_granted.set(false);
        Ok(self.permit(SystemClock.now()))
    }

    fn permit(self: &Rc<Self>, begun: Instant) -> Permit {
        Permit {
            concurrency: Rc::clone(self),
            begun,
        }
    }

    /// A request has ended: the longest waiting ones go on.
    fn release(&self) {
        let mut granted = Vec::new();
        {
            let mut state = self.state.borrow_mut();
            state.in_flight = state.in_flight.saturating_sub(1);
            while state.in_flight < state.limit
                && let Some(waiter) = state.waiting.pop_front()
            {
                state.in_flight += 1;
                granted.push(waiter);
            }
        }
        for waiter in granted {
            waiter.is_granted.set(true);
            if let Some(waker) = waiter.waker.take() {
                waker.wake();
            }
        }
    }
}

/// A request that waits; if it gives up, the next one has its place.
struct Waiting {
    concurrency: Rc<Concurrency>,
    waiter: Rc<Waiter>,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if self.waiter.is_granted.get() {
            self.concurrency.release();
        } else {
            let mut state = self.concurrency.state.borrow_mut();
            state
                .waiting
                .retain(|other| !Rc::ptr_eq(other, &self.waiter));
        }
    }
}

impl Permit {
    /// When the request could go on.
    pub(crate) const fn begun(&self) -> Instant {
        self.begun
    }

    /// The head of the response came.
    pub(crate) fn responded(&self, now: Instant) {
        let took = now.saturating_duration_since(self.begun);
        self.adapt(|gradient, in_flight| gradient.responded(took, in_flight, now));
    }

    /// There was no response, or one that says that the servers are overloaded.
    pub(crate) fn failed(&self) {
        self.adapt(|gradient, _| gradient.failed());
    }

    fn adapt(&self, adapt: impl FnOnce(&mut Gradient, u32)) {
        let state = &mut *self.concurrency.state.borrow_mut();
        if let Some(gradient) = &mut state.gradient {
            adapt(gradient, state.in_flight);
            state.limit = gradient.limit();
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.concurrency.release();
    }
}
