//! The circuit breaker: an upstream that fails too often gets no requests for a while. Pure.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// When a breaker opens, and for how long.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct BreakerPlan {
    /// The share of requests that fail.
    pub(crate) failures: f64,
    /// Requests within the window below which the share says nothing.
    pub(crate) requests: u32,
    pub(crate) window: Duration,
    /// How long no request is sent.
    pub(crate) open: Duration,
    /// Requests that are sent then, and have to succeed.
    pub(crate) probes: u32,
}

impl Default for BreakerPlan {
    /// As resilience4j has it in spirit: half of at least 20 requests.
    fn default() -> Self {
        Self {
            failures: 0.5,
            requests: 20,
            window: Duration::from_secs(10),
            open: Duration::from_secs(5),
            probes: 3,
        }
    }
}

/// Pieces of the window; the oldest is forgotten as a whole.
const PIECES: u32 = 10;

/// Decides whether requests are sent.
#[derive(Debug)]
pub(crate) struct Breaker {
    plan: BreakerPlan,
    state: State,
}

#[derive(Debug)]
enum State {
    Closed(VecDeque<Piece>),
    Open {
        until: Instant,
    },
    HalfOpen {
        sent: u32,
        succeeded: u32,
        /// Probes that have not ended by then are given up.
        until: Instant,
    },
}

/// Requests that ended within a piece of the window.
#[derive(Debug, Clone, Copy)]
struct Piece {
    begun: Instant,
    requests: u32,
    failures: u32,
}

impl Breaker {
    pub(crate) fn new(plan: BreakerPlan) -> Self {
        Self {
            plan,
            state: State::Closed(VecDeque::new()),
        }
    }

    /// `closed`, `open` or `half-open`.
    pub(crate) fn name(&self, now: Instant) -> &'static str {
        match &self.state {
            State::Closed(_) => "closed",
            State::Open { until } if *until > now => "open",
            State::Open { .. } | State::HalfOpen { .. } => "half-open",
        }
    }

    /// Whether a request may be sent.
    pub(crate) fn permit(&mut self, now: Instant) -> bool {
        let next = now + self.plan.open;
        match &mut self.state {
            State::Closed(_) => true,
            State::Open { until } if *until > now => false,
            State::HalfOpen { sent, until, .. } if *until > now => {
                let has_room = *sent < self.plan.probes;
                *sent += u32::from(has_room);
                has_room
            }
            State::Open { .. } | State::HalfOpen { .. } => {
                self.state = State::HalfOpen {
                    sent: 1,
                    succeeded: 0,
                    until: next,
                };
                true
            }
        }
    }

    /// Notes how a request ended; whether the breaker opened by it.
    pub(crate) fn note(&mut self, is_failure: bool, now: Instant) -> bool {
        let plan = &self.plan;
        match &mut self.state {
            State::Closed(pieces) => {
                note_in(pieces, is_failure, plan.window, now);
                let (requests, failures) =
                    pieces.iter().fold((0, 0), |(requests, failures), it| {
                        (requests + it.requests, failures + it.failures)
                    });
                let share = f64::from(failures) / f64::from(requests.max(1));
                let opens = is_failure && requests >= plan.requests && share >= plan.failures;
                if opens {
                    self.state = State::Open {
                        until: now + plan.open,
                    };
                }
                opens
            }
            // A request that was sent before it opened.
            State::Open { .. } => false,
            State::HalfOpen { .. } if is_failure => {
                self.state = State::Open {
                    until: now + plan.open,
                };
                true
            }
            State::HalfOpen { succeeded, .. } => {
                *succeeded += 1;
                if *succeeded >= plan.probes {
                    self.state = State::Closed(VecDeque::new());
                }
                false
            }
        }
    }
}

fn note_in(pieces: &mut VecDeque<Piece>, is_failure: bool, window: Duration, now: Instant) {
    while pieces
        .front()
        .is_some_and(|it| now.saturating_duration_since(it.begun) >= window)
    {
        pieces.pop_front();
    }
    let length = window / PIECES;
    let is_current = |it: &Piece| now.saturating_duration_since(it.begun) < length;
    if !pieces.back().is_some_and(is_current) {
        pieces.push_back(Piece {
            begun: now,
            requests: 0,
            failures: 0,
        });
    }
    if let Some(piece) = pieces.back_mut() {
        piece.requests += 1;
        piece.failures += u32::from(is_failure);
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_model::Clock as _;

    use super::*;

    fn breaker() -> (Breaker, impl Fn(u64) -> Instant) {
        let start = plimsoll_testkit::VirtualClock::new().now();
        let plan = BreakerPlan {
            requests: 4,
            ..BreakerPlan::default()
        };
        (Breaker::new(plan), move |millis| {
            start + Duration::from_millis(millis)
        })
    }

    #[test]
    fn it_opens_at_the_share_and_not_before_there_are_enough_requests() {
        let (mut breaker, at) = breaker();
        for time in 0..3 {
            assert!(!breaker.note(true, at(time)));
        }
        assert!(breaker.permit(at(3)));
        assert!(breaker.note(true, at(3)));
        assert!(!breaker.permit(at(4)));
        assert_eq!(breaker.name(at(4)), "open");
        // Requests that were in flight do not matter any more.
        assert!(!breaker.note(true, at(5)));
        assert!(!breaker.permit(at(5_002)));
    }

    #[test]
    fn successes_keep_it_closed_and_old_failures_are_forgotten() {
        let (mut breaker, at) = breaker();
        for time in 0..100 {
            assert!(!breaker.note(time % 3 == 2, at(time)), "{time}");
        }
        let (mut breaker, at) = self::breaker();
        for time in 0..10 {
            assert!(!breaker.note(true, at(time * 4_000)), "{time}");
        }
    }

    #[test]
    fn probes_close_it_or_open_it_again() {
        let (mut breaker, at) = breaker();
        for _ in 0..4 {
            breaker.note(true, at(0));
        }
        assert_eq!(breaker.name(at(5_000)), "half-open");
        let sent = (0..9).filter(|_| breaker.permit(at(5_000))).count();
        assert_eq!(sent, 3);
        assert!(!breaker.note(false, at(5_100)));
        assert!(breaker.note(true, at(5_200)));
        assert!(!breaker.permit(at(10_000)));
        let sent = (0..9).filter(|_| breaker.permit(at(10_200))).count();
        assert_eq!(sent, 3);
        for _ in 0..3 {
            breaker.note(false, at(10_300));
        }
        assert_eq!(breaker.name(at(10_300)), "closed");
    }

    #[test]
    fn probes_that_never_end_are_given_up() {
        let (mut breaker, at) = breaker();
        for _ in 0..4 {
            breaker.note(true, at(0));
        }
        let sent = (0..9).filter(|_| breaker.permit(at(5_000))).count();
        let again = (0..9).filter(|_| breaker.permit(at(10_000))).count();
        assert_eq!((sent, again), (3, 3));
    }
}
