//! Gotify.
//!
//! Source: gotify.net/api-docs, `POST /message`.

use plimsoll_model::Secret;
use serde_json::json;
use url::Url;

use crate::notify::channel::request::below;
use crate::notify::channel::{Channel, Foreign, HttpRequest, Notifier, Outgoing, made};
use crate::notify::field::Field;
use crate::notify::message::Message;
use crate::time::Timestamp;

pub(super) const CHANNEL: Channel = Channel {
    key: "gotify",
    name: "Gotify",
    about: "A message, of priority 8 for trouble and 4 otherwise.",
    fields: &[
        Field::url("address of the server").required(),
        Field::secret("token", "token of an application").required(),
    ],
    gatus: &[Foreign::new(
        "gotify",
        &[("server-url", "url"), ("token", "token")],
    )],
    kuma: &[Foreign::new(
        "gotify",
        &[
            ("gotifyserverurl", "url"),
            ("gotifyapplicationToken", "token"),
        ],
    )],
    compile: |values| {
        made(Gotify {
            url: values.url(),
            token: values.secret("token"),
        })
    },
};

#[derive(Debug)]
struct Gotify {
    url: Url,
    token: Secret,
}

impl Notifier for Gotify {
    fn outgoing(&self, message: &Message, _: Timestamp) -> Outgoing {
        let priority = if message.kind.is_trouble() { 8 } else { 4 };
        let body =
            json!({ "title": message.title, "message": message.plain(), "priority": priority });
        HttpRequest::json(below(&self.url, "message"), &body)
            .with("x-gotify-key", self.token.expose())
            .into()
    }
}
