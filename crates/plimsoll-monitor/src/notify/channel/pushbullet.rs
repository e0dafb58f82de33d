//! Pushbullet.
//!
//! Source: docs.pushbullet.com/#create-push.

use plimsoll_model::Secret;
use serde_json::json;
use url::Url;

use crate::notify::channel::request::{below, shortened};
use crate::notify::channel::{Channel, Foreign, HttpRequest, Notifier, Outgoing, made};
use crate::notify::field::Field;
use crate::notify::message::Message;
use crate::time::Timestamp;

pub(super) const CHANNEL: Channel = Channel {
    key: "pushbullet",
    name: "Pushbullet",
    about: "A push to all devices of an account, or to the followers of a channel.",
    fields: &[
        Field::secret("token", "access token of the account").required(),
        Field::text(
            "channel",
            "tag of a channel whose followers receive it instead",
        ),
        Field::vendor("https://api.pushbullet.com"),
    ],
    gatus: &[],
    kuma: &[Foreign::new(
        "pushbullet",
        &[("pushbulletAccessToken", "token")],
    )],
    compile: |values| {
        made(Pushbullet {
            url: values.url(),
            token: values.secret("token"),
            channel: values.maybe_text("channel"),
        })
    },
};

#[derive(Debug)]
struct Pushbullet {
    url: Url,
    token: Secret,
    channel: Option<String>,
}

impl Notifier for Pushbullet {
    fn outgoing(&self, message: &Message, _: Timestamp) -> Outgoing {
        let mut body = json!({
            "type": "note",
            "title": format!("{} {}", message.kind.emoji(), shortened(&message.title, 250)),
            "body": shortened(message.detail(), 4_000),
        });
        if let Some(link) = &message.link {
            body["type"] = "link".into();
            body["url"] = link.as_str().into();
        }
        if let Some(channel) = &self.channel {
            body["channel_tag"] = channel.as_str().into();
        }
        HttpRequest::json(below(&self.url, "v2/pushes"), &body)
            .with("access-token", self.token.expose())
            .into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notify::channel::snapshot::check;
    use crate::notify::message::NoticeKind;

    #[test]
    fn the_documented_requests() {
        for (kind, emoji) in [(NoticeKind::Opened, "🔴"), (NoticeKind::Resolved, "🟢")] {
            check(
                "pushbullet",
                "token = \"o.1\"\nchannel = \"ops\"",
                kind,
                "POST https://api.pushbullet.com/v2/pushes",
                &["access-token: o.1"],
                &json!({
                    "type": "link",
                    "title": format!("{emoji} core/web is down"),
                    "body": "status 500 <b> & \"more\"",
                    "url": "https://status.example.org",
                    "channel_tag": "ops",
                }),
            );
        }
    }
}
