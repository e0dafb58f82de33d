//! Microsoft Teams, by a webhook of Workflows, as an adaptive card.
//!
//! Source: learn.microsoft.com/microsoftteams/platform/webhooks-and-connectors/how-to/connectors-using.

use serde_json::json;
use url::Url;

use crate::notify::channel::request::shortened;
use crate::notify::channel::{Channel, Foreign, HttpRequest, Notifier, Outgoing, made};
use crate::notify::field::Field;
use crate::notify::message::Message;
use crate::time::Timestamp;

pub(super) const CHANNEL: Channel = Channel {
    key: "teams",
    name: "Microsoft Teams",
    about: "An adaptive card to a webhook of Workflows.",
    fields: &[Field::secret_url("address of the webhook")],
    gatus: &[
        Foreign::new("teams", &[("webhook-url", "url")]),
        Foreign::new("teams-workflows", &[("webhook-url", "url")]),
    ],
    kuma: &[Foreign::new("teams", &[("webhookUrl", "url")])],
    compile: |values| made(Teams { url: values.url() }),
};

#[derive(Debug)]
struct Teams {
    url: Url,
}

impl Notifier for Teams {
    fn outgoing(&self, message: &Message, _: Timestamp) -> Outgoing {
        let color = if message.kind.is_trouble() {
            "attention"
        } else {
            "good"
        };
        let mut card = json!({
            "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
            "type": "AdaptiveCard",
            "version": "1.4",
            "body": [
                { "type": "TextBlock", "text": shortened(&message.title, 500), "weight": "bolder", "size": "medium", "color": color, "wrap": true },
                { "type": "TextBlock", "text": shortened(&message.text, 4_000), "wrap": true },
            ],
        });
        if let Some(link) = &message.link {
            card["actions"] = json!([{ "type": "Action.OpenUrl", "title": "Status", "url": link }]);
        }
        let body = json!({
            "type": "message",
            "attachments": [{
                "contentType": "application/vnd.microsoft.card.adaptive",
                "contentUrl": null,
                "content": card,
            }],
        });
        HttpRequest::json(self.url.clone(), &body).into()
    }
}
