//! Timeouts that all have the same length, for very many waits on one worker.
//!
//! A wait that is entered later is over later, so they stand in a list in their order: to enter and to leave takes no
//! search, no allocation once the list has room, and no timer. One task sleeps until the first is over.

use std::cell::RefCell;
use std::rc::{Rc, Weak};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use plimsoll_model::Clock as _;
use plimsoll_wire::SystemClock;

/// The waits of one worker for one kind of event.
#[derive(Debug)]
pub(crate) struct Deadlines {
    limit: Duration,
    list: RefCell<List>,
}

/// Waits in the order in which they were entered; nodes refer to each other by their index.
#[derive(Debug, Default)]
struct List {
    nodes: Vec<Node>,
    free: Vec<usize>,
    first: Option<usize>,
    last: Option<usize>,
}

#[derive(Debug)]
struct Node {
    deadline: Instant,
    waker: Option<Waker>,
    is_over: bool,
    before: Option<usize>,
    after: Option<usize>,
}

/// One wait; dropping it leaves the list.
#[derive(Debug)]
pub(crate) struct Deadline {
    deadlines: Rc<Deadlines>,
    node: usize,
}

/// The shortest timeout.
const SHORTEST: Duration = Duration::from_millis(1);

impl Deadlines {
    /// No waits; a local task of the runtime watches them as long as they exist.
    pub(crate) fn start(limit: Duration) -> Rc<Self> {
        let deadlines = Rc::new(Self::new(limit));
        tokio::task::spawn_local(watch(Rc::downgrade(&deadlines)));
        deadlines
    }

    fn new(limit: Duration) -> Self {
        Self {
            limit: limit.max(SHORTEST),
            list: RefCell::default(),
        }
    }

    /// Begins a wait.
    pub(crate) fn begin(self: &Rc<Self>, now: Instant) -> Deadline {
        let mut list = self.list.borrow_mut();
        Deadline {
            node: list.push(now + self.limit),
            deadlines: Rc::clone(self),
        }
    }

    /// Ends waits that are over; returns when the next one is.
    fn expire(&self, now: Instant) -> Option<Instant> {
        loop {
            let waker = {
                let mut list = self.list.borrow_mut();
                let first = list.first?;
                if list.nodes[first].deadline > now {
                    return Some(list.nodes[first].deadline);
                }
                list.unlink(first);
                list.nodes[first].is_over = true;
                list.nodes[first].waker.take()
            };
            // Not borrowed meanwhile: a waker may drop a wait.
            if let Some(waker) = waker {
                waker.wake();
            }
        }
    }
}

/// Wakes waits that are over. With an empty list nothing can be over before a whole `limit` has passed.
async fn watch(deadlines: Weak<Deadlines>) {
    while let Some(known) = deadlines.upgrade() {
        let now = SystemClock.now();
        let next = known.expire(now).unwrap_or(now + known.limit);
        drop(known);
        // Not for longer than a minute at a time: the task has to see that nothing waits any more.
        let next = next.min(now + Duration::from_mins(1));
        tokio::time::sleep_until(next.into()).await;
    }
}

impl List {
    fn push(&mut self, deadline: Instant) -> usize {
        let node = Node {
            deadline,
            waker: None,
            is_over: false,
            before: self.last,
            after: None,
        };
        let index = if let Some(index) = self.free.pop() {
            self.nodes[index] = node;
            index
        } else {
            self.nodes.push(node);
            self.nodes.len() - 1
        };
        match self.last.replace(index) {
            Some(last) => self.nodes[last].after = Some(index),
            None => self.first = Some(index),
        }
        index
    }

    fn unlink(&mut self, index: usize) {
        let Node { before, after, .. } = self.nodes[index];
        match before {
            Some(before) => self.nodes[before].after = after,
            None => self.first = after,
        }
        match after {
            Some(after) => self.nodes[after].before = before,
            None => self.last = before,
        }
    }
}

impl Deadline {
    /// How long the wait may take.
    pub(crate) fn limit(&self) -> Duration {
        self.deadlines.limit
    }

    /// Ready once the wait has taken too long.
    pub(crate) fn poll_over(&self, context: &mut Context<'_>) -> Poll<()> {
        let node = &mut self.deadlines.list.borrow_mut().nodes[self.node];
        if node.is_over {
            return Poll::Ready(());
        }
        match &mut node.waker {
            Some(waker) => waker.clone_from(context.waker()),
            None => node.waker = Some(context.waker().clone()),
        }
        Poll::Pending
    }
}

impl Drop for Deadline {
    fn drop(&mut self) {
        let mut list = self.deadlines.list.borrow_mut();
        if !list.nodes[self.node].is_over {
            list.unlink(self.node);
        }
        list.nodes[self.node].waker = None;
        list.free.push(self.node);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    fn is_over(deadline: &Deadline) -> bool {
        let mut context = Context::from_waker(Waker::noop());
        deadline.poll_over(&mut context).is_ready()
    }

    #[test]
    fn waits_are_over_in_their_order_and_leave_from_anywhere() {
        let start = plimsoll_testkit::VirtualClock::new().now();
        let at = |millis| start + Duration::from_millis(millis);
        let deadlines = Rc::new(Deadlines::new(Duration::from_millis(100)));
        assert_eq!(deadlines.expire(at(0)), None);
        let first = deadlines.begin(at(0));
        let second = deadlines.begin(at(10));
        let third = deadlines.begin(at(20));
        drop(second);
        assert_eq!(deadlines.expire(at(99)), Some(at(100)));
        assert!(!is_over(&first));
        assert_eq!(deadlines.expire(at(100)), Some(at(120)));
        assert!(is_over(&first) && !is_over(&third));
        drop(first);
        drop(third);
        assert_eq!(deadlines.expire(at(500)), None);
    }

    #[test]
    fn the_list_keeps_its_room_and_its_order() {
        let start = plimsoll_testkit::VirtualClock::new().now();
        let deadlines = Rc::new(Deadlines::new(Duration::from_secs(1)));
        let mut random = fastrand::Rng::with_seed(7);
        let mut waits = VecDeque::new();
        for step in 0..10_000 {
            let now = start + Duration::from_millis(step);
            waits.push_back((now, deadlines.begin(now)));
            while waits.len() > 8 {
                waits.remove(random.usize(..waits.len()));
            }
            let next = deadlines.expire(start).unwrap();
            assert_eq!(next, waits[0].0 + Duration::from_secs(1));
        }
        assert!(deadlines.list.borrow().nodes.len() <= 9);
    }
}
