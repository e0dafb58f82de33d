//! Slack, by an incoming webhook.
//!
//! Source: docs.slack.dev/messaging/sending-messages-using-incoming-webhooks; text is escaped as
//! docs.slack.dev/messaging/formatting-message-text demands.

use std::sync::Arc;

use serde_json::json;
use url::Url;

use crate::notify::channel::{HttpRequest, Notifier, Outgoing, shortened};
use crate::notify::message::Message;
use crate::notify::settings::Settings;
use crate::time::Timestamp;

#[derive(Debug)]
struct Slack {
    url: Url,
}

pub(super) fn compile(settings: &mut Settings<'_>) -> Option<Arc<dyn Notifier>> {
    let url = settings.secret_url("url")?;
    Some(Arc::new(Slack { url }))
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

impl Notifier for Slack {
    fn outgoing(&self, message: &Message, _: Timestamp) -> Outgoing {
        let title = escaped(&shortened(&message.title, 500));
        let head = match &message.link {
            Some(link) => format!("*<{}|{title}>*", escaped(link)),
            None => format!("*{title}*"),
        };
        let text = escaped(&shortened(&message.text, 2_000));
        let shown = if text.is_empty() {
            head
        } else {
            format!("{head}\n{text}")
        };
        let body = json!({
            "text": format!("{} {title}", message.kind.emoji()),
            "attachments": [{
                "color": format!("#{:06x}", message.kind.color()),
                "blocks": [{ "type": "section", "text": { "type": "mrkdwn", "text": shown } }],
            }],
        });
        HttpRequest::json(self.url.clone(), &body)
    }
}
