//! Services with a known limit: so many requests a second, and 429 for those beyond, or a queue.

use std::sync::Mutex;
use std::time::Duration;

use plimsoll_model::Clock;
use plimsoll_wire::SystemClock;

use crate::logic::{Logic, Reply};

/// Lets requests pass as long as there are tokens (RFC 2697 has the name).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TokenBucket {
    /// Tokens that come in each second.
    pub per_second: f64,
    /// Tokens at most, and at the start.
    pub capacity: f64,
}

impl TokenBucket {
    /// Answers with 200 for a token, and with 429 where there is none, by the system's clock.
    pub fn logic(self) -> Logic {
        let clock = SystemClock;
        let start = clock.now();
        let state = Mutex::new(Level {
            tokens: self.capacity,
            at: Duration::ZERO,
        });
        Logic::new(move |_| {
            let now = clock.now().saturating_duration_since(start);
            let mut level = state.lock().expect("no holder panics");
            if level.takes(self, now) {
                Reply::new(200, &[])
            } else {
                Reply::new(429, &[])
            }
        })
    }
}

#[derive(Debug, Clone, Copy)]
struct Level {
    tokens: f64,
    at: Duration,
}

impl Level {
    /// Takes a token; true if there was one at `now`.
    fn takes(&mut self, bucket: TokenBucket, now: Duration) -> bool {
        let since = now.saturating_sub(self.at).as_secs_f64();
        self.at = self.at.max(now);
        self.tokens = (self.tokens + since * bucket.per_second).min(bucket.capacity);
        let is_there = self.tokens >= 1.0;
        if is_there {
            self.tokens -= 1.0;
        }
        is_there
    }
}

/// Lets so many requests pass per second, one by one; the others wait in a queue without a bound.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LeakyBucket {
    /// Requests that pass in each second.
    pub per_second: f64,
}

impl LeakyBucket {
    /// Answers with 200 when it is a request's turn, by the system's clock.
    pub fn logic(self) -> Logic {
        let clock = SystemClock;
        let free_at = Mutex::new(clock.now());
        let each = Duration::from_secs_f64(1.0 / self.per_second);
        Logic::new(move |_| {
            let now = clock.now();
            let mut free_at = free_at.lock().expect("no holder panics");
            *free_at = (*free_at).max(now) + each;
            Reply::new(200, &[]).after(free_at.saturating_duration_since(now))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_pass_than_tokens_come() {
        let bucket = TokenBucket {
            per_second: 100.0,
            capacity: 5.0,
        };
        let mut level = Level {
            tokens: 5.0,
            at: Duration::ZERO,
        };
        let passed = |level: &mut Level, from: u64, to: u64| {
            (from..to)
                .filter(|millis| level.takes(bucket, Duration::from_millis(*millis)))
                .count()
        };
        // A request a millisecond: the capacity, then a tenth of them.
        let first = passed(&mut level, 0, 1_000);
        assert!((104..=105).contains(&first), "{first}");
        let second = passed(&mut level, 1_000, 2_000);
        assert!((99..=101).contains(&second), "{second}");
        // An hour of rest fills it no further than its capacity.
        assert!((5..=6).contains(&passed(&mut level, 3_600_000, 3_600_006)));
    }
}
