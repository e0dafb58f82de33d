//! Signal, by the REST API of `signal-cli`.
//!
//! Source: github.com/bbernhard/signal-cli-rest-api, `doc/EXAMPLES.md` and its OpenAPI document, `POST /v2/send`.

use serde_json::json;
use url::Url;

use crate::notify::channel::request::{below, shortened};
use crate::notify::channel::{Channel, Foreign, HttpRequest, Notifier, Outgoing, made};
use crate::notify::field::Field;
use crate::notify::message::Message;
use crate::time::Timestamp;

pub(super) const CHANNEL: Channel = Channel {
    key: "signal",
    name: "Signal",
    about: "A message by a server of signal-cli-rest-api, at most 2,000 characters.",
    fields: &[
        Field::url("address of the server").required(),
        Field::text("number", "number that sends, such as `+4915112345678`").required(),
        Field::texts("recipients", "numbers or groups that receive").required(),
    ],
    gatus: &[Foreign::new(
        "signal",
        &[
            ("api-url", "url"),
            ("number", "number"),
            ("recipients", "recipients"),
        ],
    )],
    kuma: &[Foreign::new(
        "signal",
        &[
            ("signalURL", "url"),
            ("signalNumber", "number"),
            ("signalRecipients", "recipients"),
        ],
    )],
    compile: |values| {
        made(Signal {
            url: values.url(),
            number: values.text("number"),
            recipients: values.texts("recipients"),
        })
    },
};

#[derive(Debug)]
struct Signal {
    url: Url,
    number: String,
    recipients: Vec<String>,
}

impl Notifier for Signal {
    fn outgoing(&self, message: &Message, _: Timestamp) -> Outgoing {
        let text = format!("{} {}", message.kind.emoji(), message.plain());
        let body = json!({
            "message": shortened(&text, 2_000),
            "number": self.number,
            "recipients": self.recipients,
        });
        // Other monitors are given the whole address.
        let url = if self.url.path().ends_with("/v2/send") {
            self.url.clone()
        } else {
            below(&self.url, "v2/send")
        };
        HttpRequest::json(url, &body).into()
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
            for url in [
                "http://signal.example:8080",
                "http://signal.example:8080/v2/send",
            ] {
                check(
                    "signal",
                    &format!(
                        "url = \"{url}\"\nnumber = \"+1555\"\nrecipients = [\"+49\", \"group.abc=\"]"
                    ),
                    kind,
                    "POST http://signal.example:8080/v2/send",
                    &[],
                    &json!({
                        "message": format!("{emoji} core/web is down\nstatus 500 <b> & \"more\"\nhttps://status.example.org"),
                        "number": "+1555",
                        "recipients": ["+49", "group.abc="],
                    }),
                );
            }
        }
    }
}
