//! Zapier, by a catch hook: the message as JSON, whose members later steps use.
//!
//! Source: help.zapier.com, "Trigger Zaps from webhooks", "Catch Hook".

use url::Url;

use crate::notify::channel::{Channel, Foreign, HttpRequest, Notifier, Outgoing, made};
use crate::notify::field::Field;
use crate::notify::message::Message;
use crate::time::Timestamp;

pub(super) const CHANNEL: Channel = Channel {
    key: "zapier",
    name: "Zapier",
    about: "The message as JSON to a catch hook; `kind` says what happened.",
    fields: &[Field::secret_url("address of the catch hook")],
    gatus: &[Foreign::new("zapier", &[("webhook-url", "url")])],
    kuma: &[],
    compile: |values| made(Zapier { url: values.url() }),
};

#[derive(Debug)]
struct Zapier {
    url: Url,
}

impl Notifier for Zapier {
    fn outgoing(&self, message: &Message, _: Timestamp) -> Outgoing {
        HttpRequest::json(self.url.clone(), &message.to_json()).into()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::notify::channel::snapshot::check;
    use crate::notify::message::NoticeKind;

    #[test]
    fn the_documented_requests() {
        for kind in [NoticeKind::Opened, NoticeKind::Resolved] {
            check(
                "zapier",
                "url = \"https://hooks.zapier.com/hooks/catch/1/abc/\"",
                kind,
                "POST https://hooks.zapier.com/hooks/catch/1/abc/",
                &[],
                &json!({
                    "kind": kind.name(),
                    "title": "core/web is down",
                    "text": "status 500 <b> & \"more\"",
                    "monitor": "core_web",
                    "name": "web",
                    "group": "core",
                    "incident": "core_web/1",
                    "at": "2026-03-01T12:01:00Z",
                    "since": "2026-03-01T12:00:00Z",
                    "link": "https://status.example.org",
                }),
            );
        }
    }
}
