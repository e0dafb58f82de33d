//! Slack, by an incoming webhook.
//!
//! Source: docs.slack.dev/messaging/sending-messages-using-incoming-webhooks; text is escaped as
//! docs.slack.dev/messaging/formatting-message-text demands.

use serde_json::json;
use url::Url;

use crate::notify::channel::request::shortened;
use crate::notify::channel::{Channel, Foreign, HttpRequest, Notifier, Outgoing, made};
use crate::notify::field::Field;
use crate::notify::message::Message;
use crate::time::Timestamp;

pub(super) const CHANNEL: Channel = Channel {
    key: "slack",
    name: "Slack",
    about: "An attachment to an incoming webhook.",
    fields: &[Field::secret_url("address of the webhook")],
    gatus: &[Foreign::new("slack", &[("webhook-url", "url")])],
    kuma: &[Foreign::new("slack", &[("slackwebhookURL", "url")])],
    compile: |values| made(Slack { url: values.url() }),
};

#[derive(Debug)]
struct Slack {
    url: Url,
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
        let section = json!({ "type": "section", "text": { "type": "mrkdwn", "text": shown } });
        let mut blocks = vec![section];
        if let Some(url) = &message.acknowledge {
            // A button with a URL opens it, and asks nothing of this program.
            let text = json!({ "type": "plain_text", "text": "Acknowledge" });
            let button = json!({ "type": "button", "text": text, "url": url });
            blocks.push(json!({ "type": "actions", "elements": [button] }));
        }
        let body = json!({
            "text": format!("{} {title}", message.kind.emoji()),
            "attachments": [{
                "color": format!("#{:06x}", message.kind.color()),
                "blocks": blocks,
            }],
        });
        HttpRequest::json(self.url.clone(), &body).into()
    }
}
