//! ntfy, by its JSON interface.
//!
//! Source: docs.ntfy.sh/publish/#publish-as-json.

use std::sync::Arc;

use plimsoll_model::Secret;
use serde_json::json;
use url::Url;

use crate::notify::channel::{HttpRequest, Notifier, Outgoing};
use crate::notify::message::Message;
use crate::notify::settings::Settings;
use crate::time::Timestamp;

#[derive(Debug)]
struct Ntfy {
    url: Url,
    topic: String,
    token: Option<Secret>,
}

pub(super) fn compile(settings: &mut Settings<'_>) -> Option<Arc<dyn Notifier>> {
    let url = settings.url_or("url", "https://ntfy.sh");
    let token = settings.optional_secret("token");
    let topic = settings.text("topic");
    Some(Arc::new(Ntfy {
        url: url?,
        topic: topic?,
        token,
    }))
}

impl Notifier for Ntfy {
    fn outgoing(&self, message: &Message, _: Timestamp) -> Outgoing {
        let is_trouble = message.kind.is_trouble();
        let mut body = json!({
            "topic": self.topic,
            "title": message.title,
            "message": if message.text.is_empty() { &message.title } else { &message.text },
            "priority": if is_trouble { 4 } else { 3 },
            "tags": [if is_trouble { "rotating_light" } else { "white_check_mark" }],
        });
        if let Some(link) = &message.link {
            body["click"] = link.as_str().into();
        }
        let request = HttpRequest::json(self.url.clone(), &body);
        match &self.token {
            Some(token) => request.with("authorization", format!("Bearer {}", token.expose())),
            None => request,
        }
    }
}
