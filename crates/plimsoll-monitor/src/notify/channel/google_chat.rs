//! Google Chat, by an incoming webhook.
//!
//! Source: developers.google.com/workspace/chat/quickstart/webhooks.

use serde_json::json;
use url::Url;

use crate::notify::channel::request::shortened;
use crate::notify::channel::{Channel, Foreign, HttpRequest, Notifier, Outgoing, made};
use crate::notify::field::Field;
use crate::notify::message::Message;
use crate::time::Timestamp;

pub(super) const CHANNEL: Channel = Channel {
    key: "google_chat",
    name: "Google Chat",
    about: "A text to an incoming webhook of a space.",
    fields: &[Field::secret_url("address of the webhook")],
    gatus: &[Foreign::new("googlechat", &[("webhook-url", "url")])],
    kuma: &[Foreign::new(
        "GoogleChat",
        &[("googleChatWebhookURL", "url")],
    )],
    compile: |values| made(GoogleChat { url: values.url() }),
};

#[derive(Debug)]
struct GoogleChat {
    url: Url,
}

impl Notifier for GoogleChat {
    fn outgoing(&self, message: &Message, _: Timestamp) -> Outgoing {
        let text = format!("{} {}", message.kind.emoji(), message.plain());
        let body = json!({ "text": shortened(&text, 4_000) });
        HttpRequest::json(self.url.clone(), &body).into()
    }
}
