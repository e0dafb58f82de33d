//! SIGNL4, by its inbound webhook: an alert that is resolved by its number.
//!
//! Source: docs.signl4.com/integrations/webhook/webhook.

use plimsoll_model::Secret;
use serde_json::json;
use url::Url;

use crate::notify::channel::request::{below, segment, shortened};
use crate::notify::channel::{Channel, Foreign, HttpRequest, Notifier, Outgoing, made};
use crate::notify::field::Field;
use crate::notify::message::Message;
use crate::time::Timestamp;

pub(super) const CHANNEL: Channel = Channel {
    key: "signl4",
    name: "SIGNL4",
    about: "An alert, which is resolved when it is over.",
    fields: &[
        Field::secret("team_secret", "secret of the team").required(),
        Field::vendor("https://connect.signl4.com"),
    ],
    gatus: &[Foreign::new("signl4", &[("team-secret", "team_secret")])],
    kuma: &[Foreign::new("SIGNL4", &[]).and(|theirs, table| {
        // `https://connect.signl4.com/webhook/SECRET`
        let url = theirs("webhookURL").unwrap_or_default();
        if let Some(secret) = url.trim_end_matches('/').rsplit('/').next() {
            table.insert("team_secret".to_owned(), secret.into());
        }
    })],
    compile: |values| {
        made(Signl4 {
            url: values.url(),
            secret: values.secret("team_secret"),
        })
    },
};

#[derive(Debug)]
struct Signl4 {
    url: Url,
    secret: Secret,
}

impl Notifier for Signl4 {
    fn outgoing(&self, message: &Message, _: Timestamp) -> Outgoing {
        let is_trouble = message.kind.is_trouble();
        let mut body = json!({
            "Title": shortened(&message.title, 500),
            "Message": shortened(message.detail(), 10_000),
            "X-S4-ExternalID": message.incident,
            "X-S4-Status": if is_trouble { "new" } else { "resolved" },
            "X-S4-Service": message.full_name(),
            "X-S4-SourceSystem": "plimsoll",
        });
        if let Some(link) = &message.link {
            body["Link"] = link.as_str().into();
        }
        let path = format!("webhook/{}", segment(self.secret.expose()));
        HttpRequest::json(below(&self.url, &path), &body).into()
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
            (NoticeKind::Opened, "new"),
            (NoticeKind::Resolved, "resolved"),
        ] {
            check(
                "signl4",
                "team_secret = \"abc123\"",
                kind,
                "POST https://connect.signl4.com/webhook/abc123",
                &[],
                &json!({
                    "Title": "core/web is down",
                    "Message": "status 500 <b> & \"more\"",
                    "X-S4-ExternalID": "core_web/1",
                    "X-S4-Status": status,
                    "X-S4-Service": "core/web",
                    "X-S4-SourceSystem": "plimsoll",
                    "Link": "https://status.example.org",
                }),
            );
        }
    }
}
