//! `PagerDuty`, Events API v2: an alert that is resolved by its key.
//!
//! Source: developer.pagerduty.com, events API v2, "send an event".

use std::sync::Arc;

use plimsoll_model::Secret;
use serde_json::json;
use url::Url;

use crate::notify::channel::{HttpRequest, Notifier, Outgoing, below, shortened};
use crate::notify::message::Message;
use crate::notify::settings::Settings;
use crate::time::Timestamp;

#[derive(Debug)]
struct PagerDuty {
    url: Url,
    key: Secret,
    severity: String,
}

pub(super) fn compile(settings: &mut Settings<'_>) -> Option<Arc<dyn Notifier>> {
    let url = settings.url_or("url", "https://events.pagerduty.com");
    let severity = settings.one_of("severity", &["critical", "error", "warning", "info"]);
    let key = settings.secret("routing_key");
    Some(Arc::new(PagerDuty {
        url: url?,
        key: key?,
        severity: severity.unwrap_or_else(|| "critical".to_owned()),
    }))
}

impl Notifier for PagerDuty {
    fn outgoing(&self, message: &Message, _: Timestamp) -> Outgoing {
        let action = if message.kind.is_trouble() {
            "trigger"
        } else {
            "resolve"
        };
        let source = if message.monitor.is_empty() {
            "plimsoll"
        } else {
            &message.monitor
        };
        let mut body = json!({
            "routing_key": self.key.expose(),
            "event_action": action,
            "dedup_key": shortened(&message.incident, 255),
            "client": "plimsoll",
            "payload": {
                "summary": shortened(&message.title, 1_024),
                "source": source,
                "severity": self.severity,
                "timestamp": message.at.to_string(),
                "custom_details": { "text": message.text, "since": message.since.to_string() },
            },
        });
        if let Some(link) = &message.link {
            body["links"] = json!([{ "href": link, "text": "status" }]);
        }
        HttpRequest::json(below(&self.url, "v2/enqueue"), &body)
    }

    fn groups(&self) -> bool {
        false
    }
}
