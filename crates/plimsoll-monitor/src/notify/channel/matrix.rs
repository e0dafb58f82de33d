//! Matrix, as a message in a room.
//!
//! Source: spec.matrix.org, client-server API, `PUT /_matrix/client/v3/rooms/{roomId}/send/{eventType}/{txnId}`. The
//! transaction is the notice's, so that one that is sent twice appears once.

use plimsoll_model::Secret;
use serde_json::json;
use url::Url;

use crate::notify::channel::request::{below, segment};
use crate::notify::channel::{Channel, Foreign, HttpRequest, Notifier, Outgoing, made};
use crate::notify::field::Field;
use crate::notify::message::Message;
use crate::time::Timestamp;
use crate::token::ApiToken;

pub(super) const CHANNEL: Channel = Channel {
    key: "matrix",
    name: "Matrix",
    about: "A message in a room.",
    fields: &[
        Field::url("address of the home server").required(),
        Field::secret("token", "access token of a user").required(),
        Field::text("room", "number of the room, such as `!abc:example.org`").required(),
    ],
    gatus: &[Foreign::new(
        "matrix",
        &[
            ("server-url", "url"),
            ("access-token", "token"),
            ("internal-room-id", "room"),
        ],
    )
    .and(|_, table| {
        let default = "https://matrix-client.matrix.org";
        table.entry("url").or_insert(default.into());
    })],
    kuma: &[Foreign::new(
        "matrix",
        &[
            ("homeserverUrl", "url"),
            ("internalRoomId", "room"),
            ("accessToken", "token"),
        ],
    )],
    compile: |values| {
        made(Matrix {
            url: values.url(),
            token: values.secret("token"),
            room: values.text("room"),
        })
    },
};

#[derive(Debug)]
struct Matrix {
    url: Url,
    token: Secret,
    room: String,
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
        HttpRequest::new("PUT", below(&self.url, &path))
            .with_json(&body)
            .bearer(self.token.expose())
            .into()
    }
}
