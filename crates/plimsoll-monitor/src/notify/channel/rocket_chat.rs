//! Rocket.Chat, by an incoming webhook.
//!
//! Source: docs.rocket.chat, "Create a new incoming webhook".

use serde_json::json;
use url::Url;

use crate::notify::channel::request::shortened;
use crate::notify::channel::{Channel, Foreign, HttpRequest, Notifier, Outgoing, made};
use crate::notify::field::Field;
use crate::notify::message::Message;
use crate::time::Timestamp;

pub(super) const CHANNEL: Channel = Channel {
    key: "rocket_chat",
    name: "Rocket.Chat",
    about: "An attachment to an incoming webhook.",
    fields: &[
        Field::secret_url("address of the webhook"),
        Field::text(
            "channel",
            "another channel than that of the webhook, such as `#ops`",
        ),
    ],
    gatus: &[Foreign::new(
        "rocketchat",
        &[("webhook-url", "url"), ("channel", "channel")],
    )],
    kuma: &[Foreign::new(
        "rocket.chat",
        &[("rocketwebhookURL", "url"), ("rocketchannel", "channel")],
    )],
    compile: |values| {
        made(RocketChat {
            url: values.url(),
            channel: values.maybe_text("channel"),
        })
    },
};

#[derive(Debug)]
struct RocketChat {
    url: Url,
    channel: Option<String>,
}

impl Notifier for RocketChat {
    fn outgoing(&self, message: &Message, _: Timestamp) -> Outgoing {
        let mut attachment = json!({
            "title": shortened(&message.title, 500),
            "text": shortened(&message.text, 4_000),
            "color": format!("#{:06x}", message.kind.color()),
            "ts": message.at.to_string(),
        });
        if let Some(link) = &message.link {
            attachment["title_link"] = link.as_str().into();
        }
        let mut body = json!({ "attachments": [attachment] });
        if let Some(channel) = &self.channel {
            body["channel"] = channel.as_str().into();
        }
        HttpRequest::json(self.url.clone(), &body).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notify::channel::snapshot::check;
    use crate::notify::message::NoticeKind;

    #[test]
    fn the_documented_requests() {
        for (kind, color) in [
            (NoticeKind::Opened, "#d9413d"),
            (NoticeKind::Resolved, "#2da44e"),
        ] {
            check(
                "rocket_chat",
                "url = \"https://chat.example.org/hooks/1/abc\"\nchannel = \"#ops\"",
                kind,
                "POST https://chat.example.org/hooks/1/abc",
                &[],
                &json!({
                    "attachments": [{
                        "title": "core/web is down",
                        "text": "status 500 <b> & \"more\"",
                        "color": color,
                        "ts": "2026-03-01T12:01:00Z",
                        "title_link": "https://status.example.org",
                    }],
                    "channel": "#ops",
                }),
            );
        }
    }
}
