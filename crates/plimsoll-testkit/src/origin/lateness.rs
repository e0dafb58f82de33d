//! Late origins, to find tests that look at a count once.
//!
//! On a machine with nothing else to do, an origin accepts a connection or reads a request before the test looks at its counts. On a busy one it may not
//! have by then. With `PLIMSOLL_LATE_ORIGINS=20ms` all origins are that late, so that a test which does not wait for a count fails each time.

use std::sync::OnceLock;
use std::time::Duration;

/// Waits as long as origins are late; not at all unless the variable says so.
pub(super) async fn be_late() {
    let lateness = lateness();
    if !lateness.is_zero() {
        tokio::time::sleep(lateness).await;
    }
}

fn lateness() -> Duration {
    static LATENESS: OnceLock<Duration> = OnceLock::new();
    *LATENESS.get_or_init(|| {
        let Some(text) = std::env::var_os(VARIABLE) else {
            return Duration::ZERO;
        };
        let text = text.to_string_lossy();
        let millis = text.strip_suffix("ms").and_then(|it| it.parse().ok());
        let millis = millis.unwrap_or_else(|| panic!("{VARIABLE}={text}: write 20ms"));
        Duration::from_millis(millis)
    })
}

const VARIABLE: &str = "PLIMSOLL_LATE_ORIGINS";
