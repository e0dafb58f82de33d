//! Telegram, by a bot.
//!
//! Source: core.telegram.org/bots/api#sendmessage.

use std::sync::Arc;

use plimsoll_model::Secret;
use serde_json::json;
use url::Url;

use crate::notify::channel::{HttpRequest, Notifier, Outgoing, below, shortened};
use crate::notify::message::Message;
use crate::notify::settings::Settings;
use crate::time::Timestamp;

#[derive(Debug)]
struct Telegram {
    url: Url,
    token: Secret,
    chat: String,
}

pub(super) fn compile(settings: &mut Settings<'_>) -> Option<Arc<dyn Notifier>> {
    let url = settings.url_or("url", "https://api.telegram.org");
    let (token, chat) = (settings.secret("token"), settings.text("chat"));
    Some(Arc::new(Telegram {
        url: url?,
        token: token?,
        chat: chat?,
    }))
}

impl Notifier for Telegram {
    fn outgoing(&self, message: &Message, _: Timestamp) -> Outgoing {
        let path = format!("bot{}/sendMessage", self.token.expose());
        let text = format!("{} {}", message.kind.emoji(), message.plain());
        // Without a parse mode nothing in names is markup.
        let body = json!({
            "chat_id": self.chat,
            "text": shortened(&text, 4_096),
            "link_preview_options": { "is_disabled": true },
        });
        HttpRequest::json(below(&self.url, &path), &body)
    }
}
