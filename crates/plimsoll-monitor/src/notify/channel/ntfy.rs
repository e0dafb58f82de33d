//! ntfy, by its JSON interface.
//!
//! Source: docs.ntfy.sh/publish/#publish-as-json.

use plimsoll_model::Secret;
use serde_json::json;
use url::Url;

use crate::notify::channel::{Channel, Foreign, HttpRequest, Notifier, Outgoing, made};
use crate::notify::field::Field;
use crate::notify::message::Message;
use crate::time::Timestamp;

pub(super) const CHANNEL: Channel = Channel {
    key: "ntfy",
    name: "ntfy",
    about: "A message, of priority 4 for trouble and 3 otherwise.",
    fields: &[
        Field::text("topic", "the topic").required(),
        Field::secret("token", "access token"),
        Field::url("address of the server").or("https://ntfy.sh"),
    ],
    gatus: &[Foreign::new(
        "ntfy",
        &[("url", "url"), ("topic", "topic"), ("token", "token")],
    )],
    kuma: &[Foreign::new(
        "ntfy",
        &[
            ("ntfyserverurl", "url"),
            ("ntfytopic", "topic"),
            ("ntfyaccesstoken", "token"),
        ],
    )],
    compile: |values| {
        made(Ntfy {
            url: values.url(),
            topic: values.text("topic"),
            token: values.maybe_secret("token"),
        })
    },
};

#[derive(Debug)]
struct Ntfy {
    url: Url,
    topic: String,
    token: Option<Secret>,
}

impl Notifier for Ntfy {
    fn outgoing(&self, message: &Message, _: Timestamp) -> Outgoing {
        let is_trouble = message.kind.is_trouble();
        let mut body = json!({
            "topic": self.topic,
            "title": message.title,
            "message": if message.text.is_empty() { &message.title } else { &message.text },
            "priority": if is_trouble { 4 } else { 3 },
            "tags": [if is_trouble { "rotating_light" } else { "white_check_mark" }],
        });
        if let Some(link) = &message.link {
            body["click"] = link.as_str().into();
        }
        let request = HttpRequest::json(self.url.clone(), &body);
        match &self.token {
            Some(token) => request.bearer(token.expose()).into(),
            None => request.into(),
        }
    }
}
