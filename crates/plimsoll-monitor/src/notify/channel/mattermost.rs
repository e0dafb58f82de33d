//! Mattermost, by an incoming webhook.
//!
//! Source: developers.mattermost.com/integrate/webhooks/incoming.

use std::sync::Arc;

use serde_json::json;
use url::Url;

use crate::notify::channel::{HttpRequest, Notifier, Outgoing};
use crate::notify::message::Message;
use crate::notify::settings::Settings;
use crate::time::Timestamp;

#[derive(Debug)]
struct Mattermost {
    url: Url,
    channel: Option<String>,
}

pub(super) fn compile(settings: &mut Settings<'_>) -> Option<Arc<dyn Notifier>> {
    let channel = settings.optional("channel");
    let url = settings.secret_url("url")?;
    Some(Arc::new(Mattermost { url, channel }))
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
        HttpRequest::json(self.url.clone(), &body)
    }
}
