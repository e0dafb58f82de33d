//! Whether a failure is a reason to send a request to another server. The loop of `forward.rs` asks besides whether attempts
//! are left and nothing of the content was read, and takes one from the [`RetryBudget`].

use std::str::FromStr;
use std::time::Instant;

use http::StatusCode;
use plimsoll_model::{Failure, FailureKind, Phase, Retry};

/// When and how often requests are sent again.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RetryPolicy {
    /// Attempts after the first.
    pub(crate) retries: u32,
    /// Why.
    pub(crate) on: Vec<RetryCondition>,
    /// Retries relative to requests, so that a failing upstream is not loaded a second time.
    pub(crate) budget: f64,
}

impl Default for RetryPolicy {
    /// One retry, and only where the server cannot have processed the request or may process it twice.
    fn default() -> Self {
        Self {
            retries: 1,
            on: vec![RetryCondition::Connect, RetryCondition::Reset],
            budget: 0.2,
        }
    }
}

/// A reason for a retry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RetryCondition {
    /// No connection could be opened.
    Connect,
    /// The connection ended before a response. A request that the server may have seen is sent again only if its method
    /// is idempotent (RFC 9110, section 9.2.2).
    Reset,
    /// No response came in time. Only for idempotent methods.
    Timeout,
    /// A response of 500 to 599. Only for idempotent methods.
    ServerError,
    /// A response of this status. Only for idempotent methods.
    Status(StatusCode),
}

/// A condition that does not exist.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not \"connect\", \"reset\", \"timeout\", \"5xx\" or a status such as \"503\"")]
pub(crate) struct UnknownCondition(String);

impl FromStr for RetryCondition {
    type Err = UnknownCondition;

    fn from_str(text: &str) -> Result<Self, UnknownCondition> {
        match text {
            "connect" => Ok(Self::Connect),
            "reset" => Ok(Self::Reset),
            "timeout" => Ok(Self::Timeout),
            "5xx" => Ok(Self::ServerError),
            _ => {
                let status = StatusCode::from_bytes(text.as_bytes()).ok();
                let status = status.filter(|status| status.as_u16() >= 400);
                let unknown = || UnknownCondition(text.to_owned());
                status.map(Self::Status).ok_or_else(unknown)
            }
        }
    }
}

/// Outcome of an attempt.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Outcome<'a> {
    /// With a response of this status.
    Status(StatusCode),
    /// Without a response.
    Failed(&'a Failure),
}

impl RetryPolicy {
    /// Whether the outcome is a reason for another attempt.
    pub(crate) fn applies(&self, outcome: Outcome<'_>, is_idempotent: bool) -> bool {
        self.on.iter().any(|condition| match (condition, outcome) {
            (RetryCondition::Status(wanted), Outcome::Status(status)) => {
                *wanted == status && is_idempotent
            }
            (RetryCondition::ServerError, Outcome::Status(status)) => {
                status.is_server_error() && is_idempotent
            }
            (RetryCondition::Connect, Outcome::Failed(failure)) => is_before_request(failure),
            (RetryCondition::Timeout, Outcome::Failed(failure)) => {
                failure.kind == FailureKind::Timeout
                    && (is_idempotent || is_before_request(failure))
            }
            (RetryCondition::Reset, Outcome::Failed(failure)) => {
                failure.kind != FailureKind::Timeout
                    && !is_before_request(failure)
                    && (failure.retry == Retry::Safe || is_idempotent)
            }
            _ => false,
        })
    }
}

/// Whether the failure came before anything of the request was sent.
fn is_before_request(failure: &Failure) -> bool {
    matches!(
        failure.phase,
        Phase::Blocked | Phase::Dns | Phase::Connect | Phase::Tls
    )
}

/// A token bucket filled by requests: retries are a share of them, and a few a second are always possible (Twitter's
/// Finagle has both).
#[derive(Debug, Clone)]
pub(crate) struct RetryBudget {
    share: f64,
    tokens: f64,
    filled: Option<Instant>,
}

/// Retries a second that do not depend on requests, so that an upstream with little traffic has some.
const RESERVE: f64 = 3.0;

/// Seconds for which retries are kept.
const WINDOW: f64 = 10.0;

/// What there is without requests. A server that stops as the first requests come fails several before it is left out, each of
/// which is to be sent again.
const AT_REST: f64 = RESERVE * WINDOW;

impl RetryBudget {
    pub(crate) const fn new(share: f64) -> Self {
        Self {
            share,
            tokens: AT_REST,
            filled: None,
        }
    }

    /// Counts a request.
    pub(crate) fn deposit(&mut self, now: Instant) {
        self.refill(now);
        // A burst of requests does not pay for retries without end.
        self.tokens = (self.tokens + self.share).min(1_000.0);
    }

    /// Takes a retry, if there is one.
    pub(crate) fn withdraw(&mut self, now: Instant) -> bool {
        self.refill(now);
        let is_granted = self.tokens >= 1.0;
        if is_granted {
            self.tokens -= 1.0;
        }
        is_granted
    }

    fn refill(&mut self, now: Instant) {
        if self.share <= 0.0 {
            self.tokens = 0.0;
            return;
        }
        let before = self.filled.replace(now).unwrap_or(now);
        let passed = now.saturating_duration_since(before).as_secs_f64();
        // Unused retries of a busy time fade, and those of the reserve come by the clock, however often that is looked at.
        self.tokens = AT_REST + (self.tokens - AT_REST) * (-passed / WINDOW).exp();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use plimsoll_model::{Clock as _, Side};

    use super::*;

    fn failure(phase: Phase, kind: FailureKind, retry: Retry) -> Failure {
        Failure::new(phase, kind).on(Side::Theirs).retry(retry)
    }

    #[test]
    fn only_what_is_safe_is_sent_again_by_default() {
        let policy = RetryPolicy::default();
        let refused = failure(Phase::Connect, FailureKind::Refused, Retry::Safe);
        assert!(policy.applies(Outcome::Failed(&refused), false));
        let reset = failure(Phase::Wait, FailureKind::Reset, Retry::Never);
        assert!(policy.applies(Outcome::Failed(&reset), true));
        assert!(!policy.applies(Outcome::Failed(&reset), false));
        let unseen = failure(Phase::Send, FailureKind::Closed, Retry::Safe);
        assert!(policy.applies(Outcome::Failed(&unseen), false));
        let late = failure(Phase::Wait, FailureKind::Timeout, Retry::Never);
        assert!(!policy.applies(Outcome::Failed(&late), true));
        let down = Outcome::Status(StatusCode::SERVICE_UNAVAILABLE);
        assert!(!policy.applies(down, true));
    }

    #[test]
    fn statuses_are_retried_for_idempotent_methods() {
        let policy = RetryPolicy {
            on: vec!["503".parse().unwrap(), "timeout".parse().unwrap()],
            ..RetryPolicy::default()
        };
        let status = |status| Outcome::Status(StatusCode::from_u16(status).unwrap());
        assert!(policy.applies(status(503), true));
        assert!(!policy.applies(status(503), false));
        assert!(!policy.applies(status(500), true));
        let late = failure(Phase::Wait, FailureKind::Timeout, Retry::Never);
        assert!(policy.applies(Outcome::Failed(&late), true));
        assert!(!policy.applies(Outcome::Failed(&late), false));
        for wrong in ["", "200", "5x", "never"] {
            assert!(wrong.parse::<RetryCondition>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn retries_are_a_share_of_requests_with_a_small_reserve() {
        let start = plimsoll_testkit::VirtualClock::new().now();
        let mut budget = RetryBudget::new(0.2);
        let granted = |budget: &mut RetryBudget, at: u64| {
            let now = start + Duration::from_millis(at);
            let mut granted = 0;
            for _ in 0..1_000 {
                budget.deposit(now);
                granted += u32::from(budget.withdraw(now));
            }
            granted
        };
        // Every request fails: a fifth of them is sent again, and what there was at rest.
        assert!((225..=235).contains(&granted(&mut budget, 0)));
        assert!((195..=210).contains(&granted(&mut budget, 1_000)));
        let mut none = RetryBudget::new(0.0);
        assert!(!none.withdraw(start));
    }

    #[test]
    fn the_first_failures_of_a_server_that_stops_are_all_sent_again() {
        let start = plimsoll_testkit::VirtualClock::new().now();
        let mut young = RetryBudget::new(0.2);
        for _ in 0..5 {
            young.deposit(start);
            assert!(young.withdraw(start));
        }
    }

    #[test]
    fn the_reserve_comes_by_the_clock_however_often_it_is_looked_at() {
        let start = plimsoll_testkit::VirtualClock::new().now();
        let after = |steps: u32| {
            let mut budget = RetryBudget::new(0.2);
            budget.refill(start);
            budget.tokens = 0.0;
            for step in 1..=steps {
                budget.refill(start + Duration::from_secs(4) * step / steps);
            }
            budget.tokens
        };
        assert!((after(1) - after(100)).abs() < 1e-6);
        // Three a second at first.
        assert!((9.0..12.0).contains(&after(1)), "{}", after(1));
    }
}
