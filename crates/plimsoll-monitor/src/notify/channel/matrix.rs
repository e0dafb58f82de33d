//! Matrix, as a message in a room.
//!
//! Source: spec.matrix.org, client-server API, `PUT /_matrix/client/v3/rooms/{roomId}/send/{eventType}/{txnId}`. The
//! transaction is the notice's, so that one that is sent twice appears once.

use std::sync::Arc;

use plimsoll_model::Secret;
use serde_json::json;
use url::Url;

use crate::notify::channel::{HttpRequest, Notifier, Outgoing, below, segment};
use crate::notify::message::Message;
use crate::notify::settings::Settings;
use crate::time::Timestamp;
use crate::token::ApiToken;

#[derive(Debug)]
struct Matrix {
    url: Url,
    token: Secret,
    room: String,
}

pub(super) fn compile(settings: &mut Settings<'_>) -> Option<Arc<dyn Notifier>> {
    let url = settings.url("url");
    let (token, room) = (settings.secret("token"), settings.text("room"));
    Some(Arc::new(Matrix {
        url: url?,
        token: token?,
        room: room?,
    }))
}

impl Notifier for Matrix {
    fn outgoing(&self, message: &Message, _: Timestamp) -> Outgoing {
        let transaction = ApiToken::hash_of(&message.to_json().to_string());
        let transaction: String = ApiToken::written(&transaction).chars().take(32).collect();
        let path = format!(
            "_matrix/client/v3/rooms/{}/send/m.room.message/{transaction}",
            segment(&self.room)
        );
        let body = json!({ "msgtype": "m.text", "body": message.plain() });
        HttpRequest {
            method: "PUT",
            url: below(&self.url, &path),
            fields: vec![("content-type".to_owned(), "application/json".to_owned())],
            content: body.to_string(),
        }
        .with("authorization", format!("Bearer {}", self.token.expose()))
        .into()
    }
}
