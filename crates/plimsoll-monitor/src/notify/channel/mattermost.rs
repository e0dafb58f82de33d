//! Mattermost, by an incoming webhook.
//!
//! Source: developers.mattermost.com/integrate/webhooks/incoming.

use serde_json::json;
use url::Url;

use crate::notify::channel::{Channel, Foreign, HttpRequest, Notifier, Outgoing, made};
use crate::notify::field::Field;
use crate::notify::message::Message;
use crate::time::Timestamp;

pub(super) const CHANNEL: Channel = Channel {
    key: "mattermost",
    name: "Mattermost",
    about: "An attachment to an incoming webhook.",
    fields: &[
        Field::secret_url("address of the webhook"),
        Field::text("channel", "another channel than that of the webhook"),
    ],
    gatus: &[Foreign::new(
        "mattermost",
        &[("webhook-url", "url"), ("channel", "channel")],
    )],
    kuma: &[Foreign::new(
        "mattermost",
        &[
            ("mattermostWebhookUrl", "url"),
            ("mattermostchannel", "channel"),
        ],
    )],
    compile: |values| {
        made(Mattermost {
            url: values.url(),
            channel: values.maybe_text("channel"),
        })
    },
};

#[derive(Debug)]
struct Mattermost {
    url: Url,
    channel: Option<String>,
}

impl Notifier for Mattermost {
    fn outgoing(&self, message: &Message, _: Timestamp) -> Outgoing {
        let mut body = json!({
            "attachments": [{
                "fallback": message.title,
                "color": format!("#{:06x}", message.kind.color()),
                "title": message.title,
                "title_link": message.link,
                "text": message.text,
            }],
        });
        if let Some(channel) = &self.channel {
            body["channel"] = channel.as_str().into();
        }
        HttpRequest::json(self.url.clone(), &body).into()
    }
}
