//! Mailgun.
//!
//! Source: documentation.mailgun.com, "Send an email", `POST /v3/{domain_name}/messages`.

use plimsoll_model::Secret;
use url::Url;

use crate::notify::channel::request::{below, segment};
use crate::notify::channel::{Channel, HttpRequest, Notifier, Outgoing, made};
use crate::notify::field::Field;
use crate::notify::message::Message;
use crate::time::Timestamp;

pub(super) const CHANNEL: Channel = Channel {
    key: "mailgun",
    name: "Mailgun",
    about: "A mail by Mailgun. Domains of the EU need `url = \"https://api.eu.mailgun.net\"`.",
    fields: &[
        Field::text("domain", "domain that sends").required(),
        Field::secret("key", "sending key of the domain").required(),
        Field::address("from", "sender").required(),
        Field::addresses("to", "who receives it").required(),
        Field::vendor("https://api.mailgun.net"),
    ],
    gatus: &[],
    kuma: &[],
    compile: |values| {
        made(Mailgun {
            url: values.url(),
            domain: values.text("domain"),
            key: values.secret("key"),
            from: values.text("from"),
            to: values.texts("to"),
        })
    },
};

#[derive(Debug)]
struct Mailgun {
    url: Url,
    domain: String,
    key: Secret,
    from: String,
    to: Vec<String>,
}

impl Notifier for Mailgun {
    fn outgoing(&self, message: &Message, _: Timestamp) -> Outgoing {
        let (subject, text) = (message.subject(), message.mail_text());
        let to = self.to.iter().map(|to| ("to", to.as_str()));
        let mut pairs = vec![("from", self.from.as_str())];
        pairs.extend(to);
        pairs.extend([("subject", subject.as_str()), ("text", &text)]);
        // A domain is a segment as it is: its dots are not encoded.
        let path = format!("v3/{}/messages", segment(&self.domain).replace("%2E", "."));
        HttpRequest::form(below(&self.url, &path), &pairs)
            .basic("api", self.key.expose())
            .into()
    }
}

#[cfg(test)]
mod tests {
    use crate::notify::channel::snapshot::check_form;
    use crate::notify::message::NoticeKind;

    #[test]
    fn the_documented_requests() {
        for kind in [NoticeKind::Opened, NoticeKind::Resolved] {
            check_form(
                "mailgun",
                "domain = \"mg.example.org\"\nkey = \"k\"\nfrom = \"Monitor <m@example.org>\"\nto = [\"a@example.org\", \"b@example.org\"]",
                kind,
                "POST https://api.mailgun.net/v3/mg.example.org/messages",
                &["authorization: Basic YXBpOms="],
                &[
                    ("from", "Monitor <m@example.org>"),
                    ("to", "a@example.org"),
                    ("to", "b@example.org"),
                    ("subject", "core/web is down"),
                    (
                        "text",
                        "core/web is down\nstatus 500 <b> & \"more\"\nhttps://status.example.org\n\nsince 2026-03-01T12:00:00Z\nreported 2026-03-01T12:01:00Z\n",
                    ),
                ],
            );
        }
    }
}
