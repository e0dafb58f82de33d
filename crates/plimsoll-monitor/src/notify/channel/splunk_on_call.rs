//! Splunk On-Call (`VictorOps`), by its REST endpoint: an alert that recovers by its number.
//!
//! Source: help.victorops.com/knowledge-base/rest-endpoint-integration-guide.

use plimsoll_model::Secret;
use serde_json::json;
use url::Url;

use crate::notify::channel::request::{below, segment, shortened};
use crate::notify::channel::{Answers, Channel, Foreign, HttpRequest, Notifier, Outgoing, made};
use crate::notify::field::Field;
use crate::notify::message::Message;
use crate::time::Timestamp;

const ANSWERS: Answers = Answers {
    expected: Some(("result", "success")),
    ..Answers::PLAIN
};

pub(super) const CHANNEL: Channel = Channel {
    key: "splunk_on_call",
    name: "Splunk On-Call",
    about: "An alert, which recovers when it is over.",
    fields: &[
        Field::secret("key", "API key of the REST endpoint").required(),
        Field::text("routing_key", "routing key, which says whose turn it is").required(),
        Field::choice(
            "severity",
            &["CRITICAL", "WARNING", "INFO"],
            "type of alerts",
        ),
        Field::vendor("https://alert.victorops.com"),
    ],
    gatus: &[],
    kuma: &[
        Foreign::new("Splunk", &[("splunkSeverity", "severity")]).and(|theirs, table| {
            // `…/integrations/generic/20131114/alert/KEY/ROUTING_KEY`
            let url = theirs("splunkRestURL").unwrap_or_default();
            let mut parts = url.trim_end_matches('/').rsplit('/');
            let (routing_key, key) = (parts.next(), parts.next());
            if let Some((key, routing_key)) = key.zip(routing_key) {
                table.insert("key".to_owned(), key.into());
                let routing_key = match routing_key {
                    "$routing_key" => theirs("pagerdutyIntegrationKey").unwrap_or_default(),
                    given => given.to_owned(),
                };
                table.insert("routing_key".to_owned(), routing_key.into());
            }
        }),
    ],
    compile: |values| {
        made(SplunkOnCall {
            url: values.url(),
            key: values.secret("key"),
            routing_key: values.text("routing_key"),
            severity: values.text("severity"),
        })
    },
};

#[derive(Debug)]
struct SplunkOnCall {
    url: Url,
    key: Secret,
    routing_key: String,
    severity: String,
}

impl Notifier for SplunkOnCall {
    fn outgoing(&self, message: &Message, _: Timestamp) -> Outgoing {
        let kind = if message.kind.is_trouble() {
            &self.severity
        } else {
            "RECOVERY"
        };
        let body = json!({
            "message_type": kind,
            "entity_id": message.incident,
            "entity_display_name": shortened(&message.title, 500),
            "state_message": shortened(&message.plain(), 20_000),
            "state_start_time": message.since.0.div_euclid(1_000),
            "monitoring_tool": "plimsoll",
        });
        let path = format!(
            "integrations/generic/20131114/alert/{}/{}",
            segment(self.key.expose()),
            segment(&self.routing_key)
        );
        HttpRequest::json(below(&self.url, &path), &body)
            .answered(&ANSWERS)
            .into()
    }

    fn groups(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notify::channel::snapshot::check;
    use crate::notify::message::NoticeKind;

    #[test]
    fn the_documented_requests() {
        for (kind, name) in [
            (NoticeKind::Opened, "CRITICAL"),
            (NoticeKind::Resolved, "RECOVERY"),
        ] {
            check(
                "splunk_on_call",
                "key = \"k1\"\nrouting_key = \"ops\"",
                kind,
                "POST https://alert.victorops.com/integrations/generic/20131114/alert/k1/ops",
                &[],
                &json!({
                    "message_type": name,
                    "entity_id": "core_web/1",
                    "entity_display_name": "core/web is down",
                    "state_message": "core/web is down\nstatus 500 <b> & \"more\"\nhttps://status.example.org",
                    "state_start_time": 1_772_366_400,
                    "monitoring_tool": "plimsoll",
                }),
            );
        }
    }
}
