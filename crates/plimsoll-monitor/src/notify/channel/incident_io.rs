//! incident.io: an alert event that is resolved by its key.
//!
//! Source: api-docs.incident.io, Alert Events V2, `CreateHTTP`.

use plimsoll_model::Secret;
use serde_json::json;
use url::Url;

use crate::notify::channel::request::{below, segment, shortened};
use crate::notify::channel::{Channel, Foreign, HttpRequest, Notifier, Outgoing, made};
use crate::notify::field::Field;
use crate::notify::message::Message;
use crate::time::Timestamp;

pub(super) const CHANNEL: Channel = Channel {
    key: "incident_io",
    name: "incident.io",
    about: "An alert event to an HTTP source, which is resolved when it is over.",
    fields: &[
        Field::text(
            "source",
            "number of the alert source, the last part of its address",
        )
        .required(),
        Field::secret("token", "token of the alert source").required(),
        Field::vendor("https://api.incident.io"),
    ],
    gatus: &[
        Foreign::new("incident-io", &[("auth-token", "token")]).and(|theirs, table| {
            let source = theirs("url");
            let source = source.as_deref().and_then(|url| url.rsplit('/').next());
            if let Some(source) = source {
                table.insert("source".to_owned(), source.into());
            }
        }),
    ],
    kuma: &[],
    compile: |values| {
        made(IncidentIo {
            url: values.url(),
            source: values.text("source"),
            token: values.secret("token"),
        })
    },
};

#[derive(Debug)]
struct IncidentIo {
    url: Url,
    source: String,
    token: Secret,
}

impl Notifier for IncidentIo {
    fn outgoing(&self, message: &Message, _: Timestamp) -> Outgoing {
        let is_trouble = message.kind.is_trouble();
        let mut body = json!({
            "title": shortened(&message.title, 255),
            "description": message.text,
            "deduplication_key": message.incident,
            "status": if is_trouble { "firing" } else { "resolved" },
            "metadata": {
                "monitor": message.monitor,
                "kind": message.kind.name(),
                "since": message.since.to_string(),
            },
        });
        if let Some(link) = &message.link {
            body["source_url"] = link.as_str().into();
        }
        let path = format!("v2/alert_events/http/{}", segment(&self.source));
        HttpRequest::json(below(&self.url, &path), &body)
            .bearer(self.token.expose())
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
        for (kind, status) in [
            (NoticeKind::Opened, "firing"),
            (NoticeKind::Resolved, "resolved"),
        ] {
            check(
                "incident_io",
                "source = \"01ABC\"\ntoken = \"t\"",
                kind,
                "POST https://api.incident.io/v2/alert_events/http/01ABC",
                &["authorization: Bearer t"],
                &json!({
                    "title": "core/web is down",
                    "description": "status 500 <b> & \"more\"",
                    "deduplication_key": "core_web/1",
                    "status": status,
                    "metadata": { "monitor": "core_web", "kind": kind.name(), "since": "2026-03-01T12:00:00Z" },
                    "source_url": "https://status.example.org",
                }),
            );
        }
    }
}
