//! The drain and the end of a worker, as signals: connections that were taken over and background tasks wait for them.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Instant;

use tokio::sync::Notify;

/// Signals that the engine drains: what goes on beyond one response should come to its end.
///
/// Clones of it are the same signal. It stays on its worker.
#[derive(Debug, Clone, Default)]
pub struct DrainSignal(Rc<State>);

#[derive(Debug, Default)]
struct State {
    since: Cell<Option<Instant>>,
    begun: Notify,
    is_over: Cell<bool>,
    over: Notify,
    /// Those that wait for the end, and those that close something because of it.
    closing: Cell<usize>,
    closed: Notify,
}

/// Something that is closed before the worker ends, which waits until this is dropped.
#[derive(Debug)]
pub struct Closing(Rc<State>);

impl Closing {
    fn begin(state: &Rc<State>) -> Self {
        state.closing.set(state.closing.get() + 1);
        Self(Rc::clone(state))
    }
}

impl Drop for Closing {
    fn drop(&mut self) {
        self.0.closing.set(self.0.closing.get() - 1);
        self.0.closed.notify_one();
    }
}

impl DrainSignal {
    /// Since when the engine drains; `None` while it does not.
    #[inline]
    pub fn since(&self) -> Option<Instant> {
        self.0.since.get()
    }

    /// Waits until the engine drains; returns at once if it does already.
    pub fn begun(&self) -> impl Future<Output = ()> + use<> {
        let state = Rc::clone(&self.0);
        async move {
            let mut begun = std::pin::pin!(state.begun.notified());
            // Before the look at the state, so that a drain in between is not missed.
            begun.as_mut().enable();
            if state.since.get().is_none() {
                begun.await;
            }
        }
    }

    /// Waits until the worker ends, which drops all its tasks. The kernel closes connections of TCP then; tasks that
    /// have connections of QUIC close them now, or their peers wait for them until their idle timeouts. The worker waits
    /// for what this yields to be dropped, within a bound.
    pub fn over(&self) -> impl Future<Output = Closing> + use<> {
        let state = Rc::clone(&self.0);
        let closing = Closing::begin(&self.0);
        async move {
            let mut over = std::pin::pin!(state.over.notified());
            over.as_mut().enable();
            if !state.is_over.get() {
                over.await;
            }
            closing
        }
    }

    /// The drain begins.
    pub(crate) fn begin(&self, now: Instant) {
        self.0.since.set(Some(now));
        self.0.begun.notify_waiters();
    }

    /// The worker ends.
    pub(crate) fn end(&self) {
        self.0.is_over.set(true);
        self.0.over.notify_waiters();
    }

    /// Waits until everything that has to be closed at the end is.
    pub(crate) async fn closed(&self) {
        while self.0.closing.get() > 0 {
            self.0.closed.notified().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use plimsoll_testkit::VirtualClock;

    use plimsoll_model::Clock as _;

    use super::*;

    #[test]
    fn waiters_before_and_after_the_begin_are_woken() {
        let (signal, clock) = (DrainSignal::default(), VirtualClock::new());
        let mut cx = Context::from_waker(Waker::noop());
        let mut early = pin!(signal.begun());
        assert!(early.as_mut().poll(&mut cx).is_pending());
        assert_eq!(signal.since(), None);
        signal.clone().begin(clock.now());
        assert_eq!(early.as_mut().poll(&mut cx), Poll::Ready(()));
        assert_eq!(pin!(signal.begun()).poll(&mut cx), Poll::Ready(()));
        assert_eq!(signal.since(), Some(clock.now()));
    }

    #[test]
    fn the_end_is_another_signal_than_the_drain() {
        let (signal, clock) = (DrainSignal::default(), VirtualClock::new());
        let mut cx = Context::from_waker(Waker::noop());
        let mut early = pin!(signal.over());
        signal.begin(clock.now());
        assert!(early.as_mut().poll(&mut cx).is_pending());
        signal.end();
        let Poll::Ready(closing) = early.as_mut().poll(&mut cx) else {
            panic!("the end has come");
        };
        // Who asks later is waited for as well.
        let Poll::Ready(later) = pin!(signal.over()).poll(&mut cx) else {
            panic!("the end has come");
        };
        let mut closed = pin!(signal.closed());
        assert!(closed.as_mut().poll(&mut cx).is_pending());
        drop(later);
        assert!(closed.as_mut().poll(&mut cx).is_pending());
        drop(closing);
        assert_eq!(closed.as_mut().poll(&mut cx), Poll::Ready(()));
    }

    #[test]
    fn who_no_longer_waits_for_the_end_is_not_waited_for() {
        let (signal, mut cx) = (DrainSignal::default(), Context::from_waker(Waker::noop()));
        let over = signal.over();
        let mut closed = pin!(signal.closed());
        assert!(closed.as_mut().poll(&mut cx).is_pending());
        drop(over);
        assert_eq!(closed.as_mut().poll(&mut cx), Poll::Ready(()));
    }
}
