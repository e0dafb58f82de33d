//! Opsgenie: an alert that is closed by its alias.
//!
//! Source: docs.opsgenie.com/docs/alert-api, create and close alert.

use std::sync::Arc;

use plimsoll_model::Secret;
use serde_json::json;
use url::Url;

use crate::notify::channel::{HttpRequest, Notifier, Outgoing, below, segment, shortened};
use crate::notify::message::Message;
use crate::notify::settings::Settings;
use crate::time::Timestamp;

#[derive(Debug)]
struct Opsgenie {
    url: Url,
    key: Secret,
    priority: String,
}

pub(super) fn compile(settings: &mut Settings<'_>) -> Option<Arc<dyn Notifier>> {
    let url = settings.url_or("url", "https://api.opsgenie.com");
    let priority = settings.one_of("priority", &["P1", "P2", "P3", "P4", "P5"]);
    let key = settings.secret("key");
    Some(Arc::new(Opsgenie {
        url: url?,
        key: key?,
        priority: priority.unwrap_or_else(|| "P1".to_owned()),
    }))
}

impl Notifier for Opsgenie {
    fn outgoing(&self, message: &Message, _: Timestamp) -> Outgoing {
        let request = if message.kind.is_trouble() {
            let body = json!({
                "message": shortened(&message.title, 130),
                "alias": shortened(&message.incident, 512),
                "description": message.plain(),
                "priority": self.priority,
                "source": "plimsoll",
                "entity": message.monitor,
            });
            HttpRequest::json(below(&self.url, "v2/alerts"), &body)
        } else {
            let alias = segment(&shortened(&message.incident, 512));
            let mut url = below(&self.url, &format!("v2/alerts/{alias}/close"));
            url.set_query(Some("identifierType=alias"));
            let body = json!({ "source": "plimsoll", "note": message.title });
            HttpRequest::json(url, &body)
        };
        request.with("authorization", format!("GenieKey {}", self.key.expose()))
    }

    fn groups(&self) -> bool {
        false
    }
}
