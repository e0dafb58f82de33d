//! Pushover.
//!
//! Source: pushover.net/api.

use std::sync::Arc;

use plimsoll_model::Secret;
use url::Url;

use crate::notify::channel::{HttpRequest, Notifier, Outgoing, below, shortened};
use crate::notify::message::Message;
use crate::notify::settings::Settings;
use crate::time::Timestamp;

#[derive(Debug)]
struct Pushover {
    url: Url,
    token: Secret,
    user: Secret,
}

pub(super) fn compile(settings: &mut Settings<'_>) -> Option<Arc<dyn Notifier>> {
    let url = settings.url_or("url", "https://api.pushover.net");
    let (token, user) = (settings.secret("token"), settings.secret("user"));
    Some(Arc::new(Pushover {
        url: url?,
        token: token?,
        user: user?,
    }))
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
