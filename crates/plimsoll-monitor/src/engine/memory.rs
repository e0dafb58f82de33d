//! What one process leaves to the next about a monitor, as text in the store.
//!
//! It is written in the transaction of each change that it belongs to. Moments in it are of the clocks of the process
//! that wrote it, so that a step of the date moves no duration.

use serde::Serialize;
use serde_json::{Value, json};

use crate::detect::Detector;
use crate::engine::heartbeat::HeartbeatState;
use crate::time::{Moment, Timestamp};

/// The name under which the store keeps it.
pub(super) const STATE: &str = "state";

/// An announced silence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Silence {
    /// The name by which receivers know it.
    pub(super) key: String,
    /// When it began.
    pub(super) since: Timestamp,
    /// What its monitor was called for people: after a removal nothing else knows.
    pub(super) name: String,
}

/// What another process left.
#[derive(Debug)]
pub(super) struct Recalled {
    pub(super) detector: Detector,
    pub(super) heartbeat: Option<HeartbeatState>,
    pub(super) silence: Option<Silence>,
}

/// All of it but the moment at which it is written.
#[derive(Serialize)]
struct Content<'a> {
    detector: &'a Detector,
    heartbeat: Option<&'a HeartbeatState>,
    silence: Option<(&'a str, i64, &'a str)>,
}

/// All of it but the moment at which it is written, as JSON: one text each time, as long as nothing changes. It is made and
/// compared for every check.
pub(super) fn content(
    detector: &Detector,
    heartbeat: Option<&HeartbeatState>,
    silence: Option<&Silence>,
) -> String {
    let content = Content {
        detector,
        heartbeat,
        silence: silence.map(|it| (it.key.as_str(), it.since.0, it.name.as_str())),
    };
    // Maps with names as keys, numbers and texts: nothing of it can be refused.
    serde_json::to_string(&content).unwrap_or_default()
}

/// The text for the store.
pub(super) fn text(content: &str, as_of: Moment) -> String {
    format!("{{\"as_of\":{},\"content\":{content}}}", json!(as_of))
}

/// Reads what another process wrote; `None` if it cannot be read.
pub(super) fn recall(text: &str, now: Moment) -> Option<Recalled> {
    let mut whole: Value = serde_json::from_str(text).ok()?;
    let as_of: Moment = serde_json::from_value(whole["as_of"].take()).ok()?;
    let content = &mut whole["content"];
    let detector = Detector::recalled(content["detector"].take(), as_of, now)?;
    let heartbeat = content["heartbeat"].take();
    let silence = content["silence"].as_array().and_then(|parts| {
        let key = parts.first()?.as_str()?.to_owned();
        // An older version wrote no name.
        let name = parts.get(2).and_then(Value::as_str).unwrap_or(&key);
        Some(Silence {
            since: Timestamp(parts.get(1)?.as_i64()?),
            name: name.to_owned(),
            key,
        })
    });
    Some(Recalled {
        detector,
        heartbeat: HeartbeatState::recalled(heartbeat, as_of, now),
        silence,
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::detect::status::Health;

    #[test]
    fn what_is_written_can_be_recalled() {
        let now = Moment {
            elapsed: Duration::from_secs(7),
            wall: Timestamp(1_000),
        };
        let silence = Silence {
            key: "shop/silence".to_owned(),
            since: Timestamp(900),
            name: "the \"shop\"".to_owned(),
        };
        let (detector, heartbeat) = (Detector::new(now), HeartbeatState::new(now));
        let content = content(&detector, Some(&heartbeat), Some(&silence));
        let recalled = recall(&text(&content, now), now).unwrap();
        assert_eq!(recalled.detector.health(), Health::Pending);
        assert_eq!(recalled.heartbeat, Some(heartbeat));
        assert_eq!(recalled.silence, Some(silence));
        assert!(recall("{}", now).is_none());
    }
}
