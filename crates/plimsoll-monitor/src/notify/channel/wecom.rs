//! `WeCom`, by the robot of a group.
//!
//! Source: developer.work.weixin.qq.com/document/path/91770: texts have at most 2,048 bytes.

use plimsoll_model::Secret;
use serde_json::json;
use url::Url;

use crate::notify::channel::request::{below, shortened_bytes};
use crate::notify::channel::{Answers, Channel, Foreign, HttpRequest, Notifier, Outgoing, made};
use crate::notify::field::Field;
use crate::notify::message::Message;
use crate::time::Timestamp;

const ANSWERS: Answers = Answers {
    expected: Some(("errcode", "0")),
    // The system is busy, and too many messages.
    busy: &["-1", "45009"],
    ..Answers::PLAIN
};

pub(super) const CHANNEL: Channel = Channel {
    key: "wecom",
    name: "WeCom",
    about: "A text of the robot of a group, at most 2,048 bytes.",
    fields: &[
        Field::secret("key", "key of the robot, the end of its address").required(),
        Field::texts(
            "mobiles",
            "numbers of mobiles whose owners are mentioned; `@all` for all",
        ),
        Field::vendor("https://qyapi.weixin.qq.com"),
    ],
    gatus: &[],
    kuma: &[Foreign::new(
        "WeCom",
        &[
            ("weComBotKey", "key"),
            ("weComMentionedMobileList", "mobiles"),
        ],
    )],
    compile: |values| {
        made(WeCom {
            url: values.url(),
            key: values.secret("key"),
            mobiles: values.texts("mobiles"),
        })
    },
};

#[derive(Debug)]
struct WeCom {
    url: Url,
    key: Secret,
    mobiles: Vec<String>,
}

impl Notifier for WeCom {
    fn outgoing(&self, message: &Message, _: Timestamp) -> Outgoing {
        let text = format!("{} {}", message.kind.emoji(), message.plain());
        let mut body = json!({
            "msgtype": "text",
            "text": { "content": shortened_bytes(&text, 2_048) },
        });
        if !self.mobiles.is_empty() {
            body["text"]["mentioned_mobile_list"] = self.mobiles.clone().into();
        }
        let mut url = below(&self.url, "cgi-bin/webhook/send");
        url.query_pairs_mut().append_pair("key", self.key.expose());
        HttpRequest::json(url, &body).answered(&ANSWERS).into()
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
                "wecom",
                "key = \"k-1\"\nmobiles = \"@all\"",
                kind,
                "POST https://qyapi.weixin.qq.com/cgi-bin/webhook/send?key=k-1",
                &[],
                &json!({
                    "msgtype": "text",
                    "text": {
                        "content": format!("{emoji} core/web is down\nstatus 500 <b> & \"more\"\nhttps://status.example.org"),
                        "mentioned_mobile_list": ["@all"],
                    },
                }),
            );
        }
    }
}
