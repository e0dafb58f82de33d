//! Discord, by an incoming webhook.
//!
//! Source: discord.com/developers/docs/resources/webhook#execute-webhook.

use std::sync::Arc;

use serde_json::json;
use url::Url;

use crate::notify::channel::{HttpRequest, Notifier, Outgoing, shortened};
use crate::notify::message::Message;
use crate::notify::settings::Settings;
use crate::time::Timestamp;

#[derive(Debug)]
struct Discord {
    url: Url,
}

pub(super) fn compile(settings: &mut Settings<'_>) -> Option<Arc<dyn Notifier>> {
    let url = settings.secret_url("url")?;
    Some(Arc::new(Discord { url }))
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
        HttpRequest::json(self.url.clone(), &body)
    }
}
