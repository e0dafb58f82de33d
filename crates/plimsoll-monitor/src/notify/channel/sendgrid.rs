//! `SendGrid`.
//!
//! Source: twilio.com/docs/sendgrid/api-reference/mail-send/mail-send, `POST /v3/mail/send`.

use plimsoll_model::Secret;
use serde_json::{Value, json};
use url::Url;

use crate::notify::channel::request::below;
use crate::notify::channel::{Channel, Foreign, HttpRequest, Notifier, Outgoing, made};
use crate::notify::field::Field;
use crate::notify::message::Message;
use crate::time::Timestamp;

pub(super) const CHANNEL: Channel = Channel {
    key: "sendgrid",
    name: "SendGrid",
    about: "A mail by SendGrid. Accounts of the EU need `url = \"https://api.eu.sendgrid.com\"`.",
    fields: &[
        Field::secret("key", "API key that may send mail").required(),
        Field::text("from", "address of the sender, which SendGrid has verified").required(),
        Field::texts("to", "addresses of the receivers").required(),
        Field::vendor("https://api.sendgrid.com"),
    ],
    gatus: &[Foreign::new(
        "sendgrid",
        &[("api-key", "key"), ("from", "from"), ("to", "to")],
    )],
    kuma: &[Foreign::new(
        "SendGrid",
        &[
            ("sendgridApiKey", "key"),
            ("sendgridFromEmail", "from"),
            ("sendgridToEmail", "to"),
        ],
    )],
    compile: |values| {
        made(SendGrid {
            url: values.url(),
            key: values.secret("key"),
            from: values.text("from"),
            to: values.texts("to"),
        })
    },
};

#[derive(Debug)]
struct SendGrid {
    url: Url,
    key: Secret,
    from: String,
    to: Vec<String>,
}

impl Notifier for SendGrid {
    fn outgoing(&self, message: &Message, _: Timestamp) -> Outgoing {
        let to: Vec<Value> = self.to.iter().map(|to| json!({ "email": to })).collect();
        let body = json!({
            "personalizations": [{ "to": to }],
            "from": { "email": self.from },
            "subject": message.subject(),
            "content": [{ "type": "text/plain", "value": message.mail_text() }],
        });
        HttpRequest::json(below(&self.url, "v3/mail/send"), &body)
            .bearer(self.key.expose())
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
        for kind in [NoticeKind::Opened, NoticeKind::Resolved] {
            check(
                "sendgrid",
                "key = \"SG.k\"\nfrom = \"m@example.org\"\nto = [\"a@example.org\", \"b@example.org\"]",
                kind,
                "POST https://api.sendgrid.com/v3/mail/send",
                &["authorization: Bearer SG.k"],
                &json!({
                    "personalizations": [{ "to": [{ "email": "a@example.org" }, { "email": "b@example.org" }] }],
                    "from": { "email": "m@example.org" },
                    "subject": "core/web is down",
                    "content": [{
                        "type": "text/plain",
                        "value": "core/web is down\nstatus 500 <b> & \"more\"\nhttps://status.example.org\n\nsince 2026-03-01T12:00:00Z\nreported 2026-03-01T12:01:00Z\n",
                    }],
                }),
            );
        }
    }
}
