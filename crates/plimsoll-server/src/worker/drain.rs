//! The drain of a worker, as a signal: connections that were taken over and background tasks wait for it.

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

    /// The drain begins.
    pub(crate) fn begin(&self, now: Instant) {
        self.0.since.set(Some(now));
        self.0.begun.notify_waiters();
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
}
