//! Telegram, by a bot.
//!
//! Source: core.telegram.org/bots/api#sendmessage.

use plimsoll_model::Secret;
use serde_json::json;
use url::Url;

use crate::notify::channel::request::{below, shortened};
use crate::notify::channel::{Channel, Foreign, HttpRequest, Notifier, Outgoing, made};
use crate::notify::field::Field;
use crate::notify::message::Message;
use crate::time::Timestamp;

pub(super) const CHANNEL: Channel = Channel {
    key: "telegram",
    name: "Telegram",
    about: "A message of a bot, without markup.",
    fields: &[
        Field::secret("token", "token of the bot").required(),
        Field::text("chat", "number of the chat").required(),
        Field::vendor("https://api.telegram.org"),
    ],
    gatus: &[Foreign::new(
        "telegram",
        &[("token", "token"), ("id", "chat"), ("api-url", "url")],
    )],
    kuma: &[Foreign::new(
        "telegram",
        &[("telegramBotToken", "token"), ("telegramChatID", "chat")],
    )],
    compile: |values| {
        made(Telegram {
            url: values.url(),
            token: values.secret("token"),
            chat: values.text("chat"),
        })
    },
};

#[derive(Debug)]
struct Telegram {
    url: Url,
    token: Secret,
    chat: String,
}

impl Notifier for Telegram {
    fn outgoing(&self, message: &Message, _: Timestamp) -> Outgoing {
        let path = format!("bot{}/sendMessage", self.token.expose());
        let mut text = format!("{} {}", message.kind.emoji(), message.plain());
        // Telegram refuses buttons with other URLs, and with them the whole message.
        let (button, line) = match &message.acknowledge {
            Some(url) if url.starts_with("https://") => (Some(url), None),
            other => (None, other.as_ref()),
        };
        if let Some(url) = line {
            text = format!("{text}\nAcknowledge: {url}");
        }
        // Without a parse mode nothing in names is markup.
        let mut body = json!({
            "chat_id": self.chat,
            "text": shortened(&text, 4_096),
            "link_preview_options": { "is_disabled": true },
        });
        if let Some(url) = button {
            let button = json!({ "text": "Acknowledge", "url": url });
            body["reply_markup"] = json!({ "inline_keyboard": [[button]] });
        }
        HttpRequest::json(below(&self.url, &path), &body).into()
    }
}
