//! `PagerDuty`, Events API v2: an alert that is resolved by its key.
//!
//! Source: developer.pagerduty.com, events API v2, "send an event".

use plimsoll_model::Secret;
use serde_json::json;
use url::Url;

use crate::notify::channel::request::{below, shortened};
use crate::notify::channel::{Channel, Foreign, HttpRequest, Notifier, Outgoing, made};
use crate::notify::field::Field;
use crate::notify::message::Message;
use crate::time::Timestamp;

pub(super) const CHANNEL: Channel = Channel {
    key: "pagerduty",
    name: "PagerDuty",
    about: "An event, which is resolved when it is over.",
    fields: &[
        Field::secret("routing_key", "integration key of Events API v2").required(),
        Field::choice(
            "severity",
            &["critical", "error", "warning", "info"],
            "severity of events",
        ),
        Field::vendor("https://events.pagerduty.com"),
    ],
    gatus: &[Foreign::new(
        "pagerduty",
        &[("integration-key", "routing_key")],
    )],
    kuma: &[Foreign::new(
        "PagerDuty",
        &[("pagerdutyIntegrationKey", "routing_key")],
    )],
    compile: |values| {
        made(PagerDuty {
            url: values.url(),
            key: values.secret("routing_key"),
            severity: values.text("severity"),
        })
    },
};

#[derive(Debug)]
struct PagerDuty {
    url: Url,
    key: Secret,
    severity: String,
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
        HttpRequest::json(below(&self.url, "v2/enqueue"), &body).into()
    }

    fn groups(&self) -> bool {
        false
    }
}
