//! What one process leaves to the next about a monitor, as text in the store.
//!
//! It is written in the transaction of each change that it belongs to. Moments in it are of the clocks of the process
//! that wrote it, so that a step of the date moves no duration.

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
pub(super) fn content(
    detector: &Detector,
    heartbeat: Option<&HeartbeatState>,
    silence: Option<&Silence>,
) -> Value {
    let silence = silence.map(|it| json!([it.key, it.since.0, it.name]));
    json!({
        "detector": detector.remembered(),
        "heartbeat": heartbeat.map(HeartbeatState::remembered),
        "silence": silence,
    })
}

/// The text for the store.
pub(super) fn text(content: &Value, as_of: Moment) -> String {
    json!({ "as_of": as_of, "content": content }).to_string()
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
