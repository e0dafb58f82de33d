//! LINE, as a message of an official account.
//!
//! Source: developers.line.biz/en/reference/messaging-api, "Send push message", "Send multicast message" and "Retry key": a
//! request that is sent again has the key of the first, and is answered by 409 if that was received.

use plimsoll_model::Secret;
use serde_json::json;
use url::Url;

use crate::notify::channel::request::{below, shortened};
use crate::notify::channel::{Answers, Channel, Foreign, HttpRequest, Notifier, Outgoing, made};
use crate::notify::field::Field;
use crate::notify::message::Message;
use crate::time::Timestamp;
use crate::token::ApiToken;

const ANSWERS: Answers = Answers {
    received: &[409],
    ..Answers::PLAIN
};

pub(super) const CHANNEL: Channel = Channel {
    key: "line",
    name: "LINE",
    about: "A message of an official account, at most 5,000 characters.",
    fields: &[
        Field::secret("token", "channel access token").required(),
        Field::texts(
            "to",
            "numbers of a user, a group or a room, or of several users",
        )
        .required(),
        Field::vendor("https://api.line.me"),
    ],
    gatus: &[Foreign::new(
        "line",
        &[("channel-access-token", "token"), ("user-ids", "to")],
    )],
    kuma: &[Foreign::new(
        "line",
        &[("lineChannelAccessToken", "token"), ("lineUserID", "to")],
    )],
    compile: |values| {
        made(Line {
            url: values.url(),
            token: values.secret("token"),
            to: values.texts("to"),
        })
    },
};

#[derive(Debug)]
struct Line {
    url: Url,
    token: Secret,
    to: Vec<String>,
}

/// A UUID that is the same for the same message.
fn retry_key(message: &Message) -> String {
    let hash = ApiToken::written(&ApiToken::hash_of(&message.to_json().to_string()));
    let part = |range| hash.get(range).unwrap_or_default();
    // Version 4 and the variant of RFC 9562.
    format!(
        "{}-{}-4{}-a{}-{}",
        part(0..8),
        part(8..12),
        part(12..15),
        part(15..18),
        part(18..30)
    )
}

impl Notifier for Line {
    fn outgoing(&self, message: &Message, _: Timestamp) -> Outgoing {
        let text = format!("{} {}", message.kind.emoji(), message.plain());
        let messages = json!([{ "type": "text", "text": shortened(&text, 5_000) }]);
        let (path, to) = match self.to.as_slice() {
            [one] => ("v2/bot/message/push", json!(one)),
            several => ("v2/bot/message/multicast", json!(several)),
        };
        let body = json!({ "to": to, "messages": messages });
        HttpRequest::json(below(&self.url, path), &body)
            .bearer(self.token.expose())
            .with("x-line-retry-key", retry_key(message))
            .answered(&ANSWERS)
            .into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notify::channel::snapshot::{check, message};
    use crate::notify::message::NoticeKind;

    #[test]
    fn the_documented_requests() {
        for (kind, emoji) in [(NoticeKind::Opened, "🔴"), (NoticeKind::Resolved, "🟢")] {
            for (to, path, written) in [
                ("\"U1\"", "push", json!("U1")),
                ("[\"U1\", \"U2\"]", "multicast", json!(["U1", "U2"])),
            ] {
                let key = retry_key(&message(kind));
                check(
                    "line",
                    &format!("token = \"t\"\nto = {to}"),
                    kind,
                    &format!("POST https://api.line.me/v2/bot/message/{path}"),
                    &[
                        "authorization: Bearer t",
                        &format!("x-line-retry-key: {key}"),
                    ],
                    &json!({
                        "to": written,
                        "messages": [{
                            "type": "text",
                            "text": format!("{emoji} core/web is down\nstatus 500 <b> & \"more\"\nhttps://status.example.org"),
                        }],
                    }),
                );
            }
        }
        let [one, other] =
            [NoticeKind::Opened, NoticeKind::Resolved].map(|kind| retry_key(&message(kind)));
        assert!(
            one != other && one.len() == 36 && one.chars().nth(14) == Some('4'),
            "{one}"
        );
    }
}
