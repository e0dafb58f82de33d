//! Amazon SNS: a message to a topic.
//!
//! Source: `Publish` in docs.aws.amazon.com/sns/latest/api: a subject has less than 100 characters of ASCII and begins with
//! a letter, a digit or a sign; a message has at most 256 KB.

use url::Url;

use crate::notify::channel::aws::Signer;
use crate::notify::channel::request::shortened_bytes;
use crate::notify::channel::settings_error::SettingsError;
use crate::notify::channel::{Answers, Channel, Compiled, HttpRequest, Notifier, Outgoing, made};
use crate::notify::field::{Field, Values};
use crate::notify::message::Message;
use crate::time::Timestamp;
use crate::token::ApiToken;

const ANSWERS: Answers = Answers {
    busy_texts: &["Throttl"],
    ..Answers::PLAIN
};

const FIELDS: [Field; 6] = {
    let [key, secret, session] = Signer::FIELDS;
    [
        Field::text("topic", "ARN of the topic").required(),
        key,
        secret,
        session,
        Field::choice(
            "format",
            &["text", "json"],
            "whether the message is text or the JSON of `webhook`",
        ),
        Field::url("another address than that of the topic's region"),
    ]
};

pub(super) const CHANNEL: Channel = Channel {
    key: "aws_sns",
    name: "Amazon SNS",
    about: "A message to a topic. One of a FIFO topic is in the group of its monitor, and is published once.",
    fields: &FIELDS,
    gatus: &[],
    kuma: &[],
    compile,
};

#[derive(Debug)]
struct Sns {
    url: Url,
    signer: Signer,
    topic: String,
    is_json: bool,
    is_fifo: bool,
}

fn compile(values: &Values) -> Compiled {
    let topic = values.text("topic");
    // `arn:aws:sns:REGION:ACCOUNT:NAME`
    let parts: Vec<_> = topic.split(':').collect();
    let ["arn", partition, "sns", region, _, name] = parts.as_slice() else {
        return Err(SettingsError::Topic);
    };
    let domain = if *partition == "aws-cn" {
        "amazonaws.com.cn"
    } else {
        "amazonaws.com"
    };
    let of_region = format!("https://sns.{region}.{domain}/");
    let url = match values.maybe_url() {
        Some(url) => url,
        None => Url::parse(&of_region).map_err(|_| SettingsError::Region {
            key: "topic",
            region: (*region).to_owned(),
        })?,
    };
    let signer = Signer::of_values(values, (*region).to_owned());
    made(Sns {
        url,
        signer,
        is_json: values.text("format") == "json",
        is_fifo: name.rsplit('.').next() == Some("fifo"),
        topic,
    })
}

/// A title as a subject.
fn subject(title: &str) -> String {
    let plain = title.chars().map(|it| match it {
        ' '..='~' => it,
        _ => '?',
    });
    let subject: String = plain.take(99).collect();
    let subject = subject.trim();
    if subject.is_empty() {
        "plimsoll".to_owned()
    } else {
        subject.to_owned()
    }
}

impl Notifier for Sns {
    fn outgoing(&self, message: &Message, now: Timestamp) -> Outgoing {
        let json = message.to_json().to_string();
        let text = if self.is_json {
            json.clone()
        } else {
            shortened_bytes(&message.plain(), 200_000)
        };
        let subject = subject(&message.title);
        let mut pairs = vec![
            ("Action", "Publish"),
            ("Version", "2010-03-31"),
            ("TopicArn", self.topic.as_str()),
            ("Subject", &subject),
            ("Message", &text),
        ];
        let hash = ApiToken::written(&ApiToken::hash_of(&json));
        let group = ApiToken::written(&ApiToken::hash_of(&message.monitor));
        if self.is_fifo {
            pairs.extend([
                ("MessageGroupId", group.as_str()),
                ("MessageDeduplicationId", &hash),
            ]);
        }
        let request = HttpRequest::form(self.url.clone(), &pairs).answered(&ANSWERS);
        self.signer.signed(request, "sns", now).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notify::channel::snapshot::{refused, request};
    use crate::notify::message::NoticeKind;

    const KEYS: &str = "access_key = \"AKID\"\nsecret_key = \"s\"\n";

    #[test]
    fn the_documented_requests() {
        for kind in [NoticeKind::Opened, NoticeKind::Resolved] {
            let settings = format!("{KEYS}topic = \"arn:aws:sns:eu-central-1:123456789012:ops\"");
            let request = request("aws_sns", &settings, kind);
            assert_eq!(request.method, "POST");
            assert_eq!(
                request.url.as_str(),
                "https://sns.eu-central-1.amazonaws.com/"
            );
            assert_eq!(
                request.content,
                "Action=Publish&Version=2010-03-31&TopicArn=arn%3Aaws%3Asns%3Aeu-central-1%3A123456789012%3Aops&Subject=core%2Fweb+is+down&Message=core%2Fweb+is+down%0Astatus+500+%3Cb%3E+%26+%22more%22%0Ahttps%3A%2F%2Fstatus.example.org"
            );
            let (_, authorization) = request.fields.last().unwrap();
            assert!(
                authorization.starts_with("AWS4-HMAC-SHA256 Credential=AKID/20260301/eu-central-1/sns/aws4_request, SignedHeaders=content-type;host;x-amz-date, Signature="),
                "{authorization}"
            );
        }
    }

    #[test]
    fn a_fifo_topic_gets_a_group_and_a_number() {
        let settings = format!(
            "{KEYS}topic = \"arn:aws-cn:sns:cn-north-1:1:ops.fifo\"\nformat = \"json\"\nsession_token = \"x\""
        );
        let request = request("aws_sns", &settings, NoticeKind::Opened);
        assert_eq!(
            request.url.as_str(),
            "https://sns.cn-north-1.amazonaws.com.cn/"
        );
        let pairs: Vec<_> = url::form_urlencoded::parse(request.content.as_bytes()).collect();
        let names: Vec<_> = pairs.iter().map(|(name, _)| &**name).collect();
        let expected = [
            "Action",
            "Version",
            "TopicArn",
            "Subject",
            "Message",
            "MessageGroupId",
            "MessageDeduplicationId",
        ];
        assert_eq!(names, expected);
        assert!(pairs[4].1.starts_with("{\"kind\":\"opened\""));
        assert!(
            request
                .fields
                .contains(&("x-amz-security-token".to_owned(), "x".to_owned()))
        );
        for wrong in ["ops", "arn:aws:sqs:a:1:b"] {
            assert!(
                refused("aws_sns", &format!("{KEYS}topic = \"{wrong}\""))
                    .contains("must be an ARN")
            );
        }
        assert_eq!(subject("Grüße\nan alle"), "Gr??e?an alle");
        assert_eq!(subject(&"x".repeat(200)).len(), 99);
    }
}
