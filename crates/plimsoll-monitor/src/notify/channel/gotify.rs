//! Gotify.
//!
//! Source: gotify.net/api-docs, `POST /message`.

use std::sync::Arc;

use plimsoll_model::Secret;
use serde_json::json;
use url::Url;

use crate::notify::channel::{HttpRequest, Notifier, Outgoing, below};
use crate::notify::message::Message;
use crate::notify::settings::Settings;
use crate::time::Timestamp;

#[derive(Debug)]
struct Gotify {
    url: Url,
    token: Secret,
}

pub(super) fn compile(settings: &mut Settings<'_>) -> Option<Arc<dyn Notifier>> {
    let (url, token) = (settings.url("url"), settings.secret("token"));
    Some(Arc::new(Gotify {
        url: url?,
        token: token?,
    }))
}

impl Notifier for Gotify {
    fn outgoing(&self, message: &Message, _: Timestamp) -> Outgoing {
        let priority = if message.kind.is_trouble() { 8 } else { 4 };
        let body =
            json!({ "title": message.title, "message": message.plain(), "priority": priority });
        HttpRequest::json(below(&self.url, "message"), &body)
            .with("x-gotify-key", self.token.expose().to_owned())
    }
}
