//! Zulip, as a message of a bot in a channel.
//!
//! Source: zulip.com/api/send-message, `POST /api/v1/messages`. Topics have at most 60 characters, messages 10,000.

use plimsoll_model::Secret;
use url::Url;

use crate::notify::channel::request::{below, shortened};
use crate::notify::channel::{Channel, Foreign, HttpRequest, Notifier, Outgoing, made};
use crate::notify::field::Field;
use crate::notify::message::Message;
use crate::time::Timestamp;

pub(super) const CHANNEL: Channel = Channel {
    key: "zulip",
    name: "Zulip",
    about: "A message of a bot in a channel, in a topic for each monitor unless `topic` names one.",
    fields: &[
        Field::url("address of the organisation, such as `https://acme.zulipchat.com`").required(),
        Field::text("user", "address of the bot").required(),
        Field::secret("key", "API key of the bot").required(),
        Field::text("channel", "name or number of the channel").required(),
        Field::text("topic", "topic of all messages"),
    ],
    gatus: &[Foreign::new(
        "zulip",
        &[
            ("bot-email", "user"),
            ("bot-api-key", "key"),
            ("channel-id", "channel"),
        ],
    )
    .and(|theirs, table| {
        if let Some(domain) = theirs("domain") {
            table.insert("url".to_owned(), format!("https://{domain}").into());
        }
    })],
    kuma: &[],
    compile: |values| {
        made(Zulip {
            url: values.url(),
            user: values.text("user"),
            key: values.secret("key"),
            channel: values.text("channel"),
            topic: values.maybe_text("topic"),
        })
    },
};

#[derive(Debug)]
struct Zulip {
    url: Url,
    user: String,
    key: Secret,
    channel: String,
    topic: Option<String>,
}

/// A text without mentions: `@**all**` in a name must not call everyone.
fn calm(text: &str) -> String {
    text.replace("@*", "@\u{200b}*")
        .replace("@_*", "@\u{200b}_*")
}

impl Notifier for Zulip {
    fn outgoing(&self, message: &Message, _: Timestamp) -> Outgoing {
        let name = message.full_name();
        let topic = self.topic.as_deref().unwrap_or(&name);
        let mut content = format!("{} **{}**", message.kind.emoji(), calm(&message.title));
        if !message.text.is_empty() {
            // Nothing in a block of text is markup.
            let text = message.text.replace("~~~", "~ ~ ~");
            content = format!("{content}\n~~~text\n{}\n~~~", shortened(&text, 9_000));
        }
        if let Some(link) = &message.link {
            content = format!("{content}\n{link}");
        }
        let (topic, content) = (shortened(topic, 60), shortened(&content, 10_000));
        let pairs = [
            ("type", "stream"),
            ("to", self.channel.as_str()),
            ("topic", &topic),
            ("content", &content),
        ];
        HttpRequest::form(below(&self.url, "api/v1/messages"), &pairs)
            .basic(&self.user, self.key.expose())
            .into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notify::channel::snapshot::{check_form, message, outgoing};
    use crate::notify::message::NoticeKind;

    const SETTINGS: &str = "url = \"https://acme.zulipchat.com\"\nuser = \"bot@acme.example\"\nkey = \"k\"\nchannel = \"ops\"\n";

    #[test]
    fn the_documented_requests() {
        for (kind, emoji) in [(NoticeKind::Opened, "🔴"), (NoticeKind::Resolved, "🟢")] {
            let content = format!(
                "{emoji} **core/web is down**\n~~~text\nstatus 500 <b> & \"more\"\n~~~\nhttps://status.example.org"
            );
            check_form(
                "zulip",
                SETTINGS,
                kind,
                "POST https://acme.zulipchat.com/api/v1/messages",
                &["authorization: Basic Ym90QGFjbWUuZXhhbXBsZTpr"],
                &[
                    ("type", "stream"),
                    ("to", "ops"),
                    ("topic", "core/web"),
                    ("content", &content),
                ],
            );
        }
    }

    #[test]
    fn nobody_is_called_by_a_name() {
        let mut message = message(NoticeKind::Opened);
        message.title = "@**all** is down".to_owned();
        message.name = "x".repeat(80);
        let (Outgoing::Http(request), _) = outgoing("zulip", SETTINGS, &message) else {
            panic!("it is a request");
        };
        assert!(
            !request.content.contains("%40%2A%2Aall"),
            "{}",
            request.content
        );
        let pairs: Vec<_> = url::form_urlencoded::parse(request.content.as_bytes()).collect();
        assert_eq!(pairs[2].1.chars().count(), 60);
    }
}
