//! Pushover.
//!
//! Source: pushover.net/api.

use plimsoll_model::Secret;
use url::Url;

use crate::notify::channel::request::{below, shortened};
use crate::notify::channel::{Channel, Foreign, HttpRequest, Notifier, Outgoing, made};
use crate::notify::field::Field;
use crate::notify::message::Message;
use crate::time::Timestamp;

pub(super) const CHANNEL: Channel = Channel {
    key: "pushover",
    name: "Pushover",
    about: "A message, of high priority for trouble.",
    fields: &[
        Field::secret("token", "token of an application").required(),
        Field::secret("user", "key of a user or a group").required(),
        Field::vendor("https://api.pushover.net"),
    ],
    gatus: &[Foreign::new(
        "pushover",
        &[("application-token", "token"), ("user-key", "user")],
    )],
    kuma: &[Foreign::new(
        "pushover",
        &[("pushoverapptoken", "token"), ("pushoveruserkey", "user")],
    )],
    compile: |values| {
        made(Pushover {
            url: values.url(),
            token: values.secret("token"),
            user: values.secret("user"),
        })
    },
};

#[derive(Debug)]
struct Pushover {
    url: Url,
    token: Secret,
    user: Secret,
}

impl Notifier for Pushover {
    fn outgoing(&self, message: &Message, _: Timestamp) -> Outgoing {
        let priority = if message.kind.is_trouble() { "1" } else { "0" };
        let (title, text) = (
            shortened(&message.title, 250),
            shortened(&message.plain(), 1_024),
        );
        let timestamp = message.at.0.div_euclid(1_000).to_string();
        let mut pairs = vec![
            ("token", self.token.expose()),
            ("user", self.user.expose()),
            ("title", &title),
            ("message", &text),
            ("priority", priority),
            ("timestamp", &timestamp),
        ];
        if let Some(link) = &message.link {
            pairs.push(("url", link));
        }
        HttpRequest::form(below(&self.url, "1/messages.json"), &pairs).into()
    }
}
