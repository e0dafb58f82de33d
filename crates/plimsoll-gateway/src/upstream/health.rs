//! Active health: each server is asked for a page at an interval.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use http_body_util::Empty;
use plimsoll_client::forward::Head;
use plimsoll_model::Clock as _;
use plimsoll_wire::SystemClock;

use super::{Server, UpstreamStatus};

/// How servers are checked.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct HealthCheck {
    pub(crate) path: String,
    pub(crate) interval: Duration,
    pub(crate) timeout: Duration,
    /// Checks in a row after which an unhealthy server is healthy.
    pub(crate) healthy: u32,
    /// Failures in a row after which a healthy server is unhealthy.
    pub(crate) unhealthy: u32,
    /// The status that is expected; 200 to 399 unless given.
    pub(crate) status: Option<StatusCode>,
}

impl Default for HealthCheck {
    /// As haproxy has it: every 2 s, 2 to rise, 3 to fall.
    fn default() -> Self {
        Self {
            path: "/".to_owned(),
            interval: Duration::from_secs(2),
            timeout: Duration::from_secs(1),
            healthy: 2,
            unhealthy: 3,
            status: None,
        }
    }
}

/// The verdict on a server from its checks in a row; pure.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Verdict {
    is_healthy: bool,
    against: u32,
}

impl Verdict {
    /// A server is taken for healthy until it fails.
    const fn new() -> Self {
        Self {
            is_healthy: true,
            against: 0,
        }
    }

    /// Notes a check; whether the server is healthy then.
    fn note(&mut self, is_fine: bool, check: &HealthCheck) -> bool {
        if is_fine == self.is_healthy {
            self.against = 0;
            return self.is_healthy;
        }
        self.against += 1;
        let needed = if is_fine {
            check.healthy
        } else {
            check.unhealthy
        };
        if self.against >= needed {
            self.is_healthy = is_fine;
            self.against = 0;
        }
        self.is_healthy
    }
}

/// Checks a server without end.
pub(super) async fn watch(
    check: &HealthCheck,
    server: &Rc<Server>,
    status: &Arc<UpstreamStatus>,
    number: usize,
) {
    let mut verdict = Verdict::new();
    // Checks of several servers should not come at the same moment.
    let offset = check.interval.mul_f64(fastrand::f64());
    tokio::time::sleep(offset.min(Duration::from_secs(1))).await;
    let mut interval = tokio::time::interval(check.interval);
    interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        interval.tick().await;
        let is_fine = tokio::time::timeout(check.timeout, is_fine(check, server))
            .await
            .unwrap_or(false);
        let is_healthy = verdict.note(is_fine, check);
        status.set_healthy(number, is_healthy, SystemClock.now());
    }
}

async fn is_fine(check: &HealthCheck, server: &Rc<Server>) -> bool {
    let Ok(lease) = server.destination().acquire().await else {
        return false;
    };
    let fields = [("user-agent", "plimsoll-health")];
    let head = Head::new("GET", &check.path, &fields);
    let Ok(mut exchange) = lease.begin(&head, Empty::<Bytes>::new()) else {
        return false;
    };
    let Ok(head) = exchange.final_head().await else {
        return false;
    };
    // Read to the end, so that the connection can be used again.
    while let Some(frame) = exchange.frame().await {
        if frame.is_err() {
            return false;
        }
    }
    match check.status {
        Some(wanted) => head.status == wanted,
        None => head.status.is_success() || head.status.is_redirection(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_changes_after_checks_in_a_row() {
        let check = HealthCheck::default();
        let mut verdict = Verdict::new();
        let mut note = |is_fine| verdict.note(is_fine, &check);
        assert_eq!([note(false), note(false), note(true)], [true; 3]);
        assert_eq!([note(false), note(false), note(false)], [true, true, false]);
        assert_eq!([note(true), note(false), note(true)], [false; 3]);
        assert!(note(true));
    }
}
