//! Google Chat, by an incoming webhook.
//!
//! Source: developers.google.com/workspace/chat/quickstart/webhooks.

use std::sync::Arc;

use serde_json::json;
use url::Url;

use crate::notify::channel::{HttpRequest, Notifier, Outgoing, shortened};
use crate::notify::message::Message;
use crate::notify::settings::Settings;
use crate::time::Timestamp;

#[derive(Debug)]
struct GoogleChat {
    url: Url,
}

pub(super) fn compile(settings: &mut Settings<'_>) -> Option<Arc<dyn Notifier>> {
    let url = settings.secret_url("url")?;
    Some(Arc::new(GoogleChat { url }))
}

impl Notifier for GoogleChat {
    fn outgoing(&self, message: &Message, _: Timestamp) -> Outgoing {
        let text = format!("{} {}", message.kind.emoji(), message.plain());
        let body = json!({ "text": shortened(&text, 4_000) });
        HttpRequest::json(self.url.clone(), &body)
    }
}
