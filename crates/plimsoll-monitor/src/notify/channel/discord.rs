//! Discord, by an incoming webhook.
//!
//! Source: discord.com/developers/docs/resources/webhook#execute-webhook.

use serde_json::json;
use url::Url;

use crate::notify::channel::request::shortened;
use crate::notify::channel::{Channel, Foreign, HttpRequest, Notifier, Outgoing, made};
use crate::notify::field::Field;
use crate::notify::message::Message;
use crate::time::Timestamp;

pub(super) const CHANNEL: Channel = Channel {
    key: "discord",
    name: "Discord",
    about: "An embed to an incoming webhook.",
    fields: &[Field::secret_url("address of the webhook")],
    gatus: &[Foreign::new("discord", &[("webhook-url", "url")])],
    kuma: &[Foreign::new("discord", &[("discordWebhookUrl", "url")])],
    compile: |values| made(Discord { url: values.url() }),
};

#[derive(Debug)]
struct Discord {
    url: Url,
}

impl Notifier for Discord {
    fn outgoing(&self, message: &Message, _: Timestamp) -> Outgoing {
        let embed = json!({
            "title": shortened(&message.title, 256),
            "description": shortened(&message.text, 4_000),
            "url": message.link,
            "color": message.kind.color(),
            "timestamp": message.at.to_string(),
        });
        // A monitor named `@everyone` must not notify everyone.
        let body = json!({ "embeds": [embed], "allowed_mentions": { "parse": [] } });
        HttpRequest::json(self.url.clone(), &body).into()
    }
}
