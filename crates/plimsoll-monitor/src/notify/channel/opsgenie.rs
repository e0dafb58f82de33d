//! Opsgenie: an alert that is closed by its alias.
//!
//! Source: docs.opsgenie.com/docs/alert-api, create and close alert.

use plimsoll_model::Secret;
use serde_json::json;
use url::Url;

use crate::notify::channel::request::{below, segment, shortened};
use crate::notify::channel::{Channel, Foreign, HttpRequest, Notifier, Outgoing, made};
use crate::notify::field::Field;
use crate::notify::message::Message;
use crate::time::Timestamp;

pub(super) const CHANNEL: Channel = Channel {
    key: "opsgenie",
    name: "Opsgenie",
    about: "An alert, which is closed when it is over.",
    fields: &[
        Field::secret("key", "key of an API integration").required(),
        Field::choice(
            "priority",
            &["P1", "P2", "P3", "P4", "P5"],
            "priority of alerts",
        ),
        Field::vendor("https://api.opsgenie.com"),
    ],
    gatus: &[Foreign::new(
        "opsgenie",
        &[("api-key", "key"), ("priority", "priority")],
    )],
    kuma: &[Foreign::new("Opsgenie", &[("opsgenieApiKey", "key")])],
    compile: |values| {
        made(Opsgenie {
            url: values.url(),
            key: values.secret("key"),
            priority: values.text("priority"),
        })
    },
};

#[derive(Debug)]
struct Opsgenie {
    url: Url,
    key: Secret,
    priority: String,
}

impl Notifier for Opsgenie {
    fn outgoing(&self, message: &Message, _: Timestamp) -> Outgoing {
        let request = if message.kind.is_trouble() {
            let body = json!({
                "message": shortened(&message.title, 130),
                "alias": shortened(&message.incident, 512),
                "description": message.plain(),
                "priority": self.priority,
                "source": "plimsoll",
                "entity": message.monitor,
            });
            HttpRequest::json(below(&self.url, "v2/alerts"), &body)
        } else {
            let alias = segment(&shortened(&message.incident, 512));
            let mut url = below(&self.url, &format!("v2/alerts/{alias}/close"));
            url.set_query(Some("identifierType=alias"));
            let body = json!({ "source": "plimsoll", "note": message.title });
            HttpRequest::json(url, &body)
        };
        let key = format!("GenieKey {}", self.key.expose());
        request.with("authorization", key).into()
    }

    fn groups(&self) -> bool {
        false
    }
}
