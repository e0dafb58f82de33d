//! Microsoft Teams, by a webhook of Workflows, as an adaptive card.
//!
//! Source: learn.microsoft.com/microsoftteams/platform/webhooks-and-connectors/how-to/connectors-using.

use std::sync::Arc;

use serde_json::json;
use url::Url;

use crate::notify::channel::{HttpRequest, Notifier, Outgoing, shortened};
use crate::notify::message::Message;
use crate::notify::settings::Settings;
use crate::time::Timestamp;

#[derive(Debug)]
struct Teams {
    url: Url,
}

pub(super) fn compile(settings: &mut Settings<'_>) -> Option<Arc<dyn Notifier>> {
    let url = settings.secret_url("url")?;
    Some(Arc::new(Teams { url }))
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
        HttpRequest::json(self.url.clone(), &body)
    }
}
