//! Calls by Twilio: the message is read out twice.
//!
//! Source: twilio.com/docs/voice/api/call-resource#create-a-call-resource, whose `Twiml` has at most 4,000 characters, and
//! twilio.com/docs/voice/twiml/say.

use plimsoll_model::{Secret, escaped_html};
use url::Url;

use crate::notify::channel::request::{below, segment, shortened};
use crate::notify::channel::{Channel, HttpRequest, Notifier, Outgoing, made};
use crate::notify::field::Field;
use crate::notify::message::Message;
use crate::time::Timestamp;

pub(super) const CHANNEL: Channel = Channel {
    key: "twilio_voice",
    name: "Twilio voice",
    about: "A call in which the message is read out twice. With `on = [\"opened\"]` the end of an incident calls nobody.",
    fields: &[
        Field::text("account", "SID of the account").required(),
        Field::secret("token", "auth token of the account").required(),
        Field::text("from", "number that calls").required(),
        Field::text("to", "number that is called").required(),
        Field::text("language", "language of the voice").or("en-US"),
        Field::vendor("https://api.twilio.com"),
    ],
    gatus: &[],
    kuma: &[],
    compile: |values| {
        made(TwilioVoice {
            url: values.url(),
            account: values.text("account"),
            token: values.secret("token"),
            from: values.text("from"),
            to: values.text("to"),
            language: values.text("language"),
        })
    },
};

#[derive(Debug)]
struct TwilioVoice {
    url: Url,
    account: String,
    token: Secret,
    from: String,
    to: String,
    language: String,
}

/// A text as the content of XML; control characters are none.
fn escaped(text: &str) -> String {
    let plain: String = text
        .chars()
        .map(|it| if it.is_control() { ' ' } else { it })
        .collect();
    escaped_html(&plain)
}

impl Notifier for TwilioVoice {
    fn outgoing(&self, message: &Message, _: Timestamp) -> Outgoing {
        let title = shortened(&message.title, 200);
        let spoken = if message.text.is_empty() {
            title
        } else {
            format!("{title}. {}", shortened(&message.text, 400))
        };
        let language = escaped(&self.language);
        let twiml = format!(
            "<Response><Say language=\"{language}\" loop=\"2\">{}</Say></Response>",
            escaped(&spoken)
        );
        let path = format!("2010-04-01/Accounts/{}/Calls.json", segment(&self.account));
        let pairs = [
            ("From", self.from.as_str()),
            ("To", &self.to),
            ("Twiml", &twiml),
        ];
        HttpRequest::form(below(&self.url, &path), &pairs)
            .basic(&self.account, self.token.expose())
            .into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notify::channel::snapshot::{check_form, message, outgoing};
    use crate::notify::message::NoticeKind;

    const SETTINGS: &str = "account = \"AC1\"\ntoken = \"t\"\nfrom = \"+1555\"\nto = \"+49\"";

    #[test]
    fn the_documented_requests() {
        for kind in [NoticeKind::Opened, NoticeKind::Resolved] {
            check_form(
                "twilio_voice",
                SETTINGS,
                kind,
                "POST https://api.twilio.com/2010-04-01/Accounts/AC1/Calls.json",
                &["authorization: Basic QUMxOnQ="],
                &[
                    ("From", "+1555"),
                    ("To", "+49"),
                    (
                        "Twiml",
                        "<Response><Say language=\"en-US\" loop=\"2\">core/web is down. status 500 &lt;b&gt; &amp; &quot;more&quot;</Say></Response>",
                    ),
                ],
            );
        }
    }

    #[test]
    fn long_texts_fit() {
        let mut message = message(NoticeKind::Opened);
        message.text = "\"".repeat(5_000);
        message.title = "<".repeat(5_000);
        let (Outgoing::Http(request), _) = outgoing("twilio_voice", SETTINGS, &message) else {
            panic!("it is a request");
        };
        let pairs: Vec<_> = url::form_urlencoded::parse(request.content.as_bytes()).collect();
        assert!(pairs[2].1.chars().count() <= 4_000);
    }
}
