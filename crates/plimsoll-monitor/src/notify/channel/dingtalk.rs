//! `DingTalk`, by the robot of a group.
//!
//! Source: open.dingtalk.com/document/robots/custom-robot-access, whose signature is the HMAC-SHA-256 of `MILLISECONDS\nSECRET`, by
//! the secret.

use base64::Engine as _;
use plimsoll_model::Secret;
use ring::hmac;
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
    busy: &["-1", "130101", "410100"],
    ..Answers::PLAIN
};

pub(super) const CHANNEL: Channel = Channel {
    key: "dingtalk",
    name: "DingTalk",
    about: "A text of the robot of a group.",
    fields: &[
        Field::secret("token", "access token, the end of the robot's address").required(),
        Field::secret("secret", "key of the robot's signature"),
        Field::texts("mobiles", "numbers of mobiles whose owners are mentioned"),
        Field::vendor("https://oapi.dingtalk.com"),
    ],
    gatus: &[],
    kuma: &[Foreign::new(
        "DingDing",
        &[("secretKey", "secret"), ("mobileList", "mobiles")],
    )
    .and(|theirs, table| {
        // `https://oapi.dingtalk.com/robot/send?access_token=TOKEN`
        let url = theirs("webHookUrl").and_then(|url| Url::parse(&url).ok());
        let token = url.as_ref().and_then(|url| {
            let mut pairs = url.query_pairs();
            pairs.find_map(|(name, value)| (name == "access_token").then_some(value))
        });
        if let Some(token) = token {
            table.insert("token".to_owned(), token.into_owned().into());
        }
    })],
    compile: |values| {
        made(DingTalk {
            url: values.url(),
            token: values.secret("token"),
            secret: values.maybe_secret("secret"),
            mobiles: values.texts("mobiles"),
        })
    },
};

#[derive(Debug)]
struct DingTalk {
    url: Url,
    token: Secret,
    secret: Option<Secret>,
    mobiles: Vec<String>,
}

impl Notifier for DingTalk {
    fn outgoing(&self, message: &Message, now: Timestamp) -> Outgoing {
        let mut text = format!("{} {}", message.kind.emoji(), message.plain());
        // Who is mentioned stands in the text too.
        for mobile in &self.mobiles {
            text = format!("{text} @{mobile}");
        }
        let body = json!({
            "msgtype": "text",
            "text": { "content": shortened_bytes(&text, 15_000) },
            "at": { "atMobiles": self.mobiles, "isAtAll": false },
        });
        let mut url = below(&self.url, "robot/send");
        url.query_pairs_mut()
            .append_pair("access_token", self.token.expose());
        if let Some(secret) = &self.secret {
            let key = hmac::Key::new(hmac::HMAC_SHA256, secret.expose().as_bytes());
            let tag = hmac::sign(&key, format!("{}\n{}", now.0, secret.expose()).as_bytes());
            let sign = base64::prelude::BASE64_STANDARD.encode(tag.as_ref());
            url.query_pairs_mut()
                .append_pair("timestamp", &now.0.to_string())
                .append_pair("sign", &sign);
        }
        HttpRequest::json(url, &body).answered(&ANSWERS).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notify::channel::snapshot::{check, request};
    use crate::notify::message::NoticeKind;

    #[test]
    fn the_documented_requests() {
        for (kind, emoji) in [(NoticeKind::Opened, "🔴"), (NoticeKind::Resolved, "🟢")] {
            check(
                "dingtalk",
                "token = \"t1\"\nmobiles = [\"1390000\"]",
                kind,
                "POST https://oapi.dingtalk.com/robot/send?access_token=t1",
                &[],
                &json!({
                    "msgtype": "text",
                    "text": {
                        "content": format!("{emoji} core/web is down\nstatus 500 <b> & \"more\"\nhttps://status.example.org @1390000"),
                    },
                    "at": { "atMobiles": ["1390000"], "isAtAll": false },
                }),
            );
        }
    }

    /// The value was made by OpenSSL: `printf '1772366470000\ns3cret' | openssl dgst -sha256 -hmac s3cret -binary | base64`.
    #[test]
    fn a_secret_signs() {
        let request = request(
            "dingtalk",
            "token = \"t1\"\nsecret = \"s3cret\"",
            NoticeKind::Opened,
        );
        let pairs: Vec<_> = request.url.query_pairs().into_owned().collect();
        assert_eq!(
            pairs[1],
            ("timestamp".to_owned(), "1772366470000".to_owned())
        );
        assert_eq!(
            pairs[2],
            (
                "sign".to_owned(),
                "8A3HENPl+ffbxhTjmUuk15tm+e639F9ZBJBaK14sICE=".to_owned()
            )
        );
    }
}
