//! Webex, by an incoming webhook.
//!
//! Source: apphub.webex.com, "Incoming Webhooks"; developer.webex.com, "Create a Message": at most 7,439 bytes.

use serde_json::json;
use url::Url;

use crate::notify::channel::request::shortened_bytes;
use crate::notify::channel::{Channel, Foreign, HttpRequest, Notifier, Outgoing, made};
use crate::notify::field::Field;
use crate::notify::message::Message;
use crate::time::Timestamp;

pub(super) const CHANNEL: Channel = Channel {
    key: "webex",
    name: "Webex",
    about: "A text to an incoming webhook, at most 7,439 bytes.",
    fields: &[Field::secret_url("address of the webhook")],
    gatus: &[Foreign::new("webex", &[("webhook-url", "url")])],
    kuma: &[],
    compile: |values| made(Webex { url: values.url() }),
};

#[derive(Debug)]
struct Webex {
    url: Url,
}

impl Notifier for Webex {
    fn outgoing(&self, message: &Message, _: Timestamp) -> Outgoing {
        let text = format!("{} {}", message.kind.emoji(), message.plain());
        let body = json!({ "text": shortened_bytes(&text, 7_439) });
        HttpRequest::json(self.url.clone(), &body).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notify::channel::snapshot::{check, message, outgoing};
    use crate::notify::message::NoticeKind;

    const SETTINGS: &str = "url = \"https://webexapis.com/v1/webhooks/incoming/abc\"";

    #[test]
    fn the_documented_requests() {
        for (kind, emoji) in [(NoticeKind::Opened, "🔴"), (NoticeKind::Resolved, "🟢")] {
            check(
                "webex",
                SETTINGS,
                kind,
                "POST https://webexapis.com/v1/webhooks/incoming/abc",
                &[],
                &json!({
                    "text": format!("{emoji} core/web is down\nstatus 500 <b> & \"more\"\nhttps://status.example.org"),
                }),
            );
        }
    }

    #[test]
    fn long_texts_end_between_characters() {
        let mut message = message(NoticeKind::Opened);
        message.text = "ü".repeat(8_000);
        let (Outgoing::Http(request), _) = outgoing("webex", SETTINGS, &message) else {
            panic!("it is a request");
        };
        let body: serde_json::Value = serde_json::from_str(&request.content).unwrap();
        let text = body["text"].as_str().unwrap();
        assert!(text.len() <= 7_439 && text.len() > 7_430 && text.ends_with("ü…"));
    }
}
