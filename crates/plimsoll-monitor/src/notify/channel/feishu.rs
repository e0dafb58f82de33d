//! Feishu (Lark), by the bot of a group, as a card.
//!
//! Source: open.feishu.cn/document/client-docs/bot-v3/add-custom-bot, whose signature is the HMAC-SHA-256 of nothing, by the
//! key `SECONDS\nSECRET`.

use base64::Engine as _;
use plimsoll_model::Secret;
use ring::hmac;
use serde_json::json;
use url::Url;

use crate::notify::channel::request::{shortened, shortened_bytes};
use crate::notify::channel::{Answers, Channel, Foreign, HttpRequest, Notifier, Outgoing, made};
use crate::notify::field::Field;
use crate::notify::message::{Message, NoticeKind};
use crate::time::Timestamp;

const ANSWERS: Answers = Answers {
    expected: Some(("code", "0")),
    // Too many messages.
    busy: &["11232"],
    ..Answers::PLAIN
};

pub(super) const CHANNEL: Channel = Channel {
    key: "feishu",
    name: "Feishu",
    about: "A card of the bot of a group, also of Lark.",
    fields: &[
        Field::secret_url("address of the webhook"),
        Field::secret("secret", "key of the bot's signature"),
    ],
    gatus: &[],
    kuma: &[Foreign::new("Feishu", &[("feishuWebHookUrl", "url")])],
    compile: |values| {
        made(Feishu {
            url: values.url(),
            secret: values.maybe_secret("secret"),
        })
    },
};

#[derive(Debug)]
struct Feishu {
    url: Url,
    secret: Option<Secret>,
}

const fn color(kind: NoticeKind) -> &'static str {
    match kind {
        NoticeKind::Opened | NoticeKind::Reminder => "red",
        NoticeKind::NoData | NoticeKind::BudgetBurning => "orange",
        NoticeKind::Resolved | NoticeKind::DataAgain | NoticeKind::BudgetSteady => "green",
        NoticeKind::Test => "blue",
    }
}

impl Notifier for Feishu {
    fn outgoing(&self, message: &Message, now: Timestamp) -> Outgoing {
        let text = |content: &str| json!({ "tag": "plain_text", "content": content });
        // The content of a request may have 20 KB.
        let mut elements = vec![json!({
            "tag": "div", "text": text(&shortened_bytes(message.detail(), 10_000)),
        })];
        if let Some(link) = &message.link {
            let button =
                json!({ "tag": "button", "text": text("Status"), "url": link, "type": "default" });
            elements.push(json!({ "tag": "action", "actions": [button] }));
        }
        let mut body = json!({
            "msg_type": "interactive",
            "card": {
                "config": { "wide_screen_mode": true },
                "header": {
                    "title": text(&shortened(&message.title, 500)),
                    "template": color(message.kind),
                },
                "elements": elements,
            },
        });
        if let Some(secret) = &self.secret {
            let seconds = now.0.div_euclid(1_000).to_string();
            let key = format!("{seconds}\n{}", secret.expose());
            let key = hmac::Key::new(hmac::HMAC_SHA256, key.as_bytes());
            let tag = hmac::sign(&key, &[]);
            body["sign"] = base64::prelude::BASE64_STANDARD.encode(tag.as_ref()).into();
            body["timestamp"] = seconds.into();
        }
        HttpRequest::json(self.url.clone(), &body)
            .answered(&ANSWERS)
            .into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notify::channel::snapshot::{check, request};

    const URL: &str = "url = \"https://open.feishu.cn/open-apis/bot/v2/hook/abc\"\n";

    #[test]
    fn the_documented_requests() {
        for (kind, color) in [(NoticeKind::Opened, "red"), (NoticeKind::Resolved, "green")] {
            check(
                "feishu",
                URL,
                kind,
                "POST https://open.feishu.cn/open-apis/bot/v2/hook/abc",
                &[],
                &json!({
                    "msg_type": "interactive",
                    "card": {
                        "config": { "wide_screen_mode": true },
                        "header": {
                            "title": { "tag": "plain_text", "content": "core/web is down" },
                            "template": color,
                        },
                        "elements": [
                            { "tag": "div", "text": { "tag": "plain_text", "content": "status 500 <b> & \"more\"" } },
                            { "tag": "action", "actions": [{
                                "tag": "button",
                                "text": { "tag": "plain_text", "content": "Status" },
                                "url": "https://status.example.org",
                                "type": "default",
                            }] },
                        ],
                    },
                }),
            );
        }
    }

    /// The value was made by OpenSSL: `printf '' | openssl dgst -sha256 -hmac "$(printf '1772366470\ns3cret')" -binary | base64`.
    #[test]
    fn a_secret_signs() {
        let request = request(
            "feishu",
            &format!("{URL}secret = \"s3cret\""),
            NoticeKind::Opened,
        );
        let body: serde_json::Value = serde_json::from_str(&request.content).unwrap();
        assert_eq!(body["timestamp"], "1772366470");
        assert_eq!(body["sign"], "VatzZm7g9a7NKyQ7jVxO1uvSHMWJ1a2ojUqZeDz7FXc=");
    }
}
