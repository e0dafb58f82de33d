//! Bark, which pushes to devices of Apple.
//!
//! Source: github.com/Finb/bark-server, `docs/API_V2.md`, `POST /push`. What the content of a push is may have 4 KB.

use plimsoll_model::Secret;
use serde_json::json;
use url::Url;

use crate::notify::channel::request::{below, shortened, shortened_bytes};
use crate::notify::channel::{Answers, Channel, Foreign, HttpRequest, Notifier, Outgoing, made};
use crate::notify::field::Field;
use crate::notify::message::Message;
use crate::time::Timestamp;

const ANSWERS: Answers = Answers {
    expected: Some(("code", "200")),
    ..Answers::PLAIN
};

pub(super) const CHANNEL: Channel = Channel {
    key: "bark",
    name: "Bark",
    about: "A push, time-sensitive for trouble.",
    fields: &[
        Field::secret("device_key", "key of the device").required(),
        Field::text("group", "group of its pushes").or("plimsoll"),
        Field::text("sound", "sound of its pushes"),
        Field::url("address of the server").or("https://api.day.app"),
    ],
    gatus: &[],
    kuma: &[
        Foreign::new("Bark", &[("barkGroup", "group"), ("barkSound", "sound")]).and(
            |theirs, table| {
                // `https://api.day.app/KEY`
                let endpoint = theirs("barkEndpoint").unwrap_or_default();
                if let Some((url, key)) = endpoint.trim_end_matches('/').rsplit_once('/') {
                    table.insert("url".to_owned(), url.into());
                    table.insert("device_key".to_owned(), key.into());
                }
            },
        ),
    ],
    compile: |values| {
        made(Bark {
            url: values.url(),
            key: values.secret("device_key"),
            group: values.text("group"),
            sound: values.maybe_text("sound"),
        })
    },
};

#[derive(Debug)]
struct Bark {
    url: Url,
    key: Secret,
    group: String,
    sound: Option<String>,
}

impl Notifier for Bark {
    fn outgoing(&self, message: &Message, _: Timestamp) -> Outgoing {
        let is_trouble = message.kind.is_trouble();
        let mut body = json!({
            "device_key": self.key.expose(),
            "title": shortened(&message.title, 250),
            "body": shortened_bytes(message.detail(), 2_500),
            "group": self.group,
            "level": if is_trouble { "timeSensitive" } else { "active" },
        });
        if let Some(link) = &message.link {
            body["url"] = link.as_str().into();
        }
        if let Some(sound) = &self.sound {
            body["sound"] = sound.as_str().into();
        }
        HttpRequest::json(below(&self.url, "push"), &body)
            .answered(&ANSWERS)
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
        for (kind, level) in [
            (NoticeKind::Opened, "timeSensitive"),
            (NoticeKind::Resolved, "active"),
        ] {
            check(
                "bark",
                "device_key = \"abc\"\nsound = \"alarm\"\nurl = \"https://bark.example.org/\"",
                kind,
                "POST https://bark.example.org/push",
                &[],
                &json!({
                    "device_key": "abc",
                    "title": "core/web is down",
                    "body": "status 500 <b> & \"more\"",
                    "group": "plimsoll",
                    "level": level,
                    "url": "https://status.example.org",
                    "sound": "alarm",
                }),
            );
        }
    }
}
