//! Places among the connections of a destination: waited for, being opened, in use.

use std::cell::RefCell;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};
use std::time::Instant;

use plimsoll_model::{Failure, FailureKind, Phase, Phases, Side};

use super::Destination;
use crate::ConnectFailure;
use crate::forward::http1::Http1Connection;

/// A caller that waits for a place.
#[derive(Default)]
pub(super) struct Waiter(RefCell<Option<Waker>>);

impl Waiter {
    pub(super) fn wake(&self) {
        if let Some(waker) = self.0.borrow_mut().take() {
            waker.wake();
        }
    }
}

/// A caller's place in the queue, which it keeps until it is dropped.
pub(super) struct WaiterGuard<'a> {
    destination: &'a Destination,
    waiter: Rc<Waiter>,
}

impl<'a> WaiterGuard<'a> {
    /// Behind all others; fails if too many wait.
    pub(super) fn last(destination: &'a Destination) -> Result<Self, ConnectFailure> {
        let limit = destination.core.options.waiting;
        if destination.waiters.borrow().len() >= limit {
            return Err(ConnectFailure {
                failure: Failure::new(Phase::Blocked, FailureKind::ResourceLimit)
                    .on(Side::Ours)
                    .because(format!(
                        "{limit} requests wait for a connection to {}",
                        destination.endpoint.authority()
                    )),
                phases: Phases::default(),
            });
        }
        let waiter = Rc::<Waiter>::default();
        let mut waiters = destination.waiters.borrow_mut();
        waiters.push_back(Rc::clone(&waiter));
        Ok(Self {
            destination,
            waiter,
        })
    }

    /// Before all others: for a caller whose turn it was already.
    pub(super) fn first(destination: &'a Destination) -> Self {
        let waiter = Rc::<Waiter>::default();
        let mut waiters = destination.waiters.borrow_mut();
        waiters.push_front(Rc::clone(&waiter));
        Self {
            destination,
            waiter,
        }
    }

    /// Waits until it is the first and a connection may be free.
    pub(super) async fn called(&mut self) {
        poll_fn(|context| {
            let calls = &self.destination.calls;
            if self.is_first() && calls.get() > 0 {
                calls.set(calls.get() - 1);
                return Poll::Ready(());
            }
            *self.waiter.0.borrow_mut() = Some(context.waker().clone());
            Poll::Pending
        })
        .await;
    }

    fn is_first(&self) -> bool {
        let waiters = self.destination.waiters.borrow();
        let first = waiters.front();
        first.is_some_and(|first| Rc::ptr_eq(first, &self.waiter))
    }
}

impl Drop for WaiterGuard<'_> {
    fn drop(&mut self) {
        let mut waiters = self.destination.waiters.borrow_mut();
        waiters.retain(|other| !Rc::ptr_eq(other, &self.waiter));
        drop(waiters);
        // Calls that are left are for the next one.
        self.destination.call_for(0);
    }
}

/// A connection that is being opened; counted as open unless it fails.
pub(super) struct Attempt<'a> {
    destination: &'a Destination,
    is_open: bool,
}

impl<'a> Attempt<'a> {
    pub(super) fn begin(destination: &'a Destination) -> Self {
        destination.open.set(destination.open.get() + 1);
        destination.connecting.set(destination.connecting.get() + 1);
        Self {
            destination,
            is_open: false,
        }
    }

    pub(super) fn succeed(mut self) {
        self.is_open = true;
    }
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        let connecting = &self.destination.connecting;
        connecting.set(connecting.get() - 1);
        if !self.is_open {
            self.destination.leave();
        }
    }
}

/// An HTTP/1 connection in use, and its place among the connections of its destination.
pub(in crate::forward) struct ConnectionGuard {
    destination: Rc<Destination>,
    connection: Option<Box<Http1Connection>>,
    /// An exchange has begun; before that the connection is as good as it was.
    is_begun: bool,
}

impl ConnectionGuard {
    pub(super) fn new(destination: Rc<Destination>, connection: Box<Http1Connection>) -> Self {
        Self {
            destination,
            connection: Some(connection),
            is_begun: false,
        }
    }

    pub(in crate::forward) fn destination(&self) -> &Rc<Destination> {
        &self.destination
    }

    pub(in crate::forward) fn connection(&self) -> Option<&Http1Connection> {
        self.connection.as_deref()
    }

    pub(in crate::forward) fn parts(&mut self) -> (&Destination, &mut Http1Connection) {
        let connection = self.connection.as_mut();
        let connection = connection.expect("a place has its connection until it is given back");
        (&self.destination, connection)
    }

    /// An exchange begins.
    pub(in crate::forward) fn begin(&mut self) {
        self.is_begun = true;
    }

    /// The connection can carry another exchange.
    pub(in crate::forward) fn give_back(mut self, now: Instant) {
        if let Some(connection) = &mut self.connection {
            connection.idle_since = now;
            self.is_begun = false;
        }
    }
}

/// A connection without an exchange goes back to the pool, any other is closed.
impl Drop for ConnectionGuard {
    fn drop(&mut self) {
        let Some(connection) = self.connection.take() else {
            return;
        };
        let mut idle = self.destination.idle.borrow_mut();
        if !self.is_begun && idle.len() < self.destination.core.options.idle {
            idle.push(connection);
            drop(idle);
            self.destination.call();
        } else {
            drop(idle);
            drop(connection);
            self.destination.leave();
        }
    }
}
