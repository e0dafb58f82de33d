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
pub(super) struct Content<'a> {
    detector: &'a Detector,
    heartbeat: Option<&'a HeartbeatState>,
    silence: Option<(&'a str, i64, &'a str)>,
}

/// Bytes of memory in which the compact form of most fits.
const COMPACT_BYTES: usize = 128;

impl<'a> Content<'a> {
    pub(super) fn new(
        detector: &'a Detector,
        heartbeat: Option<&'a HeartbeatState>,
        silence: Option<&'a Silence>,
    ) -> Self {
        Self {
            detector,
            heartbeat,
            silence: silence.map(|it| (it.key.as_str(), it.since.0, it.name.as_str())),
        }
    }

    /// The same bytes as long as nothing changes, and others otherwise: made and compared for every check, they take a sixth of
    /// the instructions of the text.
    pub(super) fn compact(&self) -> Option<Vec<u8>> {
        postcard::to_extend(self, Vec::with_capacity(COMPACT_BYTES)).ok()
    }

    /// The text for the store.
    pub(super) fn text(&self, as_of: Moment) -> String {
        // Maps with names as keys, numbers and texts: nothing of it can be refused.
        let content = serde_json::to_string(self).unwrap_or_default();
        format!("{{\"as_of\":{},\"content\":{content}}}", json!(as_of))
    }
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
        let content = Content::new(&detector, Some(&heartbeat), Some(&silence));
        let recalled = recall(&content.text(now), now).unwrap();
        assert_eq!(recalled.detector.health(), Health::Pending);
        assert_eq!(recalled.heartbeat, Some(heartbeat));
        assert_eq!(recalled.silence, Some(silence));
        assert!(recall("{}", now).is_none());
    }

    #[test]
    fn the_compact_form_changes_with_the_text() {
        let at = |seconds| Moment {
            elapsed: Duration::from_secs(seconds),
            wall: Timestamp(1_000),
        };
        let silence = |since| Silence {
            key: "shop/silence".to_owned(),
            since: Timestamp(since),
            name: String::new(),
        };
        let (detectors, heartbeats) = (
            [Detector::new(at(1)), Detector::new(at(2))],
            [None, Some(HeartbeatState::new(at(1)))],
        );
        let silences = [None, Some(silence(1)), Some(silence(2))];
        let mut forms = Vec::new();
        for detector in &detectors {
            for heartbeat in &heartbeats {
                for silence in &silences {
                    let content = Content::new(detector, heartbeat.as_ref(), silence.as_ref());
                    forms.push((content.text(at(0)), content.compact().unwrap()));
                }
            }
        }
        for (text, compact) in &forms {
            for (other, of_other) in &forms {
                assert_eq!(text == other, compact == of_other, "{text}");
            }
        }
    }
}
