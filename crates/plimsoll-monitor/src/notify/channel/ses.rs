//! Amazon SES, API v2.
//!
//! Source: `SendEmail` in docs.aws.amazon.com/ses/latest/APIReference-V2.

use serde_json::json;
use url::Url;

use crate::notify::channel::aws::Signer;
use crate::notify::channel::request::below;
use crate::notify::channel::settings_error::SettingsError;
use crate::notify::channel::{
    Answers, Channel, Compiled, Foreign, HttpRequest, Notifier, Outgoing, made,
};
use crate::notify::field::{Field, Values};
use crate::notify::message::Message;
use crate::time::Timestamp;

/// Receivers of one request.
const MOST_RECEIVERS: usize = 50;

const ANSWERS: Answers = Answers {
    busy_texts: &["Throttl", "SendingPaused"],
    ..Answers::PLAIN
};

const FIELDS: [Field; 7] = {
    let [key, secret, session] = Signer::FIELDS;
    [
        Field::text("region", "region, such as `eu-central-1`").required(),
        key,
        secret,
        Field::address("from", "sender, which SES has verified").required(),
        Field::addresses("to", "who receives it, at most 50").required(),
        session,
        Field::url("another address than that of the region"),
    ]
};

pub(super) const CHANNEL: Channel = Channel {
    key: "ses",
    name: "Amazon SES",
    about: "A mail by `SendEmail` of SES, API v2.",
    fields: &FIELDS,
    gatus: &[Foreign::new(
        "aws-ses",
        &[
            ("access-key-id", "access_key"),
            ("secret-access-key", "secret_key"),
            ("region", "region"),
            ("from", "from"),
            ("to", "to"),
        ],
    )],
    kuma: &[],
    compile,
};

#[derive(Debug)]
struct Ses {
    url: Url,
    signer: Signer,
    from: String,
    to: Vec<String>,
}

fn compile(values: &Values) -> Compiled {
    let region = values.text("region");
    let of_region = format!("https://email.{region}.amazonaws.com");
    let url = match values.maybe_url() {
        Some(url) => url,
        None => Url::parse(&of_region).map_err(|_| SettingsError::Region {
            key: "region",
            region: region.clone(),
        })?,
    };
    let to = values.texts("to");
    if to.len() > MOST_RECEIVERS {
        return Err(SettingsError::Receivers(MOST_RECEIVERS));
    }
    made(Ses {
        url,
        signer: Signer::of_values(values, region),
        from: values.text("from"),
        to,
    })
}

impl Notifier for Ses {
    fn outgoing(&self, message: &Message, now: Timestamp) -> Outgoing {
        let text = |data: &str| json!({ "Data": data, "Charset": "UTF-8" });
        let body = json!({
            "FromEmailAddress": self.from,
            "Destination": { "ToAddresses": self.to },
            "Content": { "Simple": {
                "Subject": text(&message.subject()),
                "Body": { "Text": text(&message.mail_text()) },
            } },
        });
        let request = HttpRequest::json(below(&self.url, "v2/email/outbound-emails"), &body);
        let request = request.answered(&ANSWERS);
        self.signer.signed(request, "ses", now).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notify::channel::snapshot::{refused, request};
    use crate::notify::message::NoticeKind;

    const SETTINGS: &str = "region = \"eu-central-1\"\naccess_key = \"AKID\"\nsecret_key = \"s\"\nfrom = \"m@example.org\"\n";

    #[test]
    fn the_documented_requests() {
        for kind in [NoticeKind::Opened, NoticeKind::Resolved] {
            let settings = format!("{SETTINGS}to = [\"a@example.org\", \"b@example.org\"]");
            let request = request("ses", &settings, kind);
            assert_eq!(request.method, "POST");
            assert_eq!(
                request.url.as_str(),
                "https://email.eu-central-1.amazonaws.com/v2/email/outbound-emails"
            );
            let content: serde_json::Value = serde_json::from_str(&request.content).unwrap();
            assert_eq!(
                content,
                json!({
                    "FromEmailAddress": "m@example.org",
                    "Destination": { "ToAddresses": ["a@example.org", "b@example.org"] },
                    "Content": { "Simple": {
                        "Subject": { "Data": "core/web is down", "Charset": "UTF-8" },
                        "Body": { "Text": {
                            "Data": "core/web is down\nstatus 500 <b> & \"more\"\nhttps://status.example.org\n\nsince 2026-03-01T12:00:00Z\nreported 2026-03-01T12:01:00Z\n",
                            "Charset": "UTF-8",
                        } },
                    } },
                })
            );
            let (_, authorization) = request.fields.last().unwrap();
            assert!(
                authorization.starts_with("AWS4-HMAC-SHA256 Credential=AKID/20260301/eu-central-1/ses/aws4_request, SignedHeaders=content-type;host;x-amz-date, Signature="),
                "{authorization}"
            );
        }
    }

    #[test]
    fn more_than_fifty_are_refused() {
        let all: Vec<_> = (0..51).map(|it| format!("\"a{it}@example.org\"")).collect();
        let settings = format!("{SETTINGS}to = [{}]", all.join(", "));
        assert!(refused("ses", &settings).contains("at most 50"));
    }
}
