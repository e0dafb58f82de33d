//! Signatures of requests to AWS, version 4.
//!
//! Source: docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html.

use std::fmt::Write as _;

use plimsoll_model::Secret;
use ring::digest::{SHA256, digest};
use ring::hmac;
use url::{Position, Url};

use crate::notify::channel::HttpRequest;
use crate::notify::field::{Field, Values};
use crate::time::Timestamp;

/// Who signs, and for which region.
#[derive(Debug)]
pub(super) struct Signer {
    pub(super) region: String,
    key_id: String,
    secret: Secret,
    session: Option<Secret>,
}

impl Signer {
    /// The settings of credentials.
    pub(super) const FIELDS: [Field; 3] = [
        Field::text("access_key", "number of an access key").required(),
        Field::secret("secret_key", "the secret access key").required(),
        Field::secret("session_token", "token of temporary credentials"),
    ];

    pub(super) fn of_values(values: &Values, region: String) -> Self {
        Self {
            region,
            key_id: values.text("access_key"),
            secret: values.secret("secret_key"),
            session: values.maybe_secret("session_token"),
        }
    }

    /// The request with its signature. It has no query.
    ///
    /// - `service`: as credentials name it, such as `sns`.
    pub(super) fn signed(
        &self,
        request: HttpRequest,
        service: &str,
        now: Timestamp,
    ) -> HttpRequest {
        // `2026-03-01T12:00:00Z` without its signs; a fraction of a second is no part of it.
        let seconds = Timestamp(now.0.div_euclid(1_000) * 1_000).to_string();
        let date = seconds.replace(['-', ':'], "");
        let mut request = request.with("x-amz-date", date.as_str());
        if let Some(session) = &self.session {
            request = request.with("x-amz-security-token", session.expose());
        }
        let mut fields: Vec<_> = request
            .fields
            .iter()
            .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
            .collect();
        fields.push(("host".to_owned(), host(&request.url)));
        fields.sort();
        let names: Vec<_> = fields.iter().map(|(name, _)| name.as_str()).collect();
        let names = names.join(";");
        let mut canonical = format!("{}\n{}\n\n", request.method, request.url.path());
        for (name, value) in &fields {
            writeln!(canonical, "{name}:{value}").expect("text can be written to memory");
        }
        let content = hex(digest(&SHA256, request.content.as_bytes()).as_ref());
        write!(canonical, "\n{names}\n{content}").expect("text can be written to memory");
        let day = date.get(..8).unwrap_or_default();
        let scope = format!("{day}/{}/{service}/aws4_request", self.region);
        let canonical = hex(digest(&SHA256, canonical.as_bytes()).as_ref());
        let text = format!("AWS4-HMAC-SHA256\n{date}\n{scope}\n{canonical}");
        let mut key = format!("AWS4{}", self.secret.expose()).into_bytes();
        for part in [day, &self.region, service, "aws4_request"] {
            key = tag(&key, part);
        }
        let signature = hex(&tag(&key, &text));
        let credential = format!("{}/{scope}", self.key_id);
        request.with(
            "authorization",
            format!("AWS4-HMAC-SHA256 Credential={credential}, SignedHeaders={names}, Signature={signature}"),
        )
    }
}

/// The field `host` that the client sends.
fn host(url: &Url) -> String {
    url[Position::BeforeHost..Position::AfterPort].to_owned()
}

fn tag(key: &[u8], text: &str) -> Vec<u8> {
    let key = hmac::Key::new(hmac::HMAC_SHA256, key);
    hmac::sign(&key, text.as_bytes()).as_ref().to_vec()
}

fn hex(bytes: &[u8]) -> String {
    let mut written = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        write!(written, "{byte:02x}").expect("text can be written to memory");
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Source: `aws-sig-v4-test-suite`, `get-vanilla`, `post-vanilla` and `post-x-www-form-urlencoded`.
    #[test]
    fn the_published_vectors() {
        let signer = Signer {
            region: "us-east-1".to_owned(),
            key_id: "AKIDEXAMPLE".to_owned(),
            secret: Secret::new("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"),
            session: None,
        };
        let now = Timestamp::parse("2015-08-30T12:36:00Z").unwrap();
        let form = "application/x-www-form-urlencoded";
        for (method, content, names, signature) in [
            (
                "GET",
                "",
                "host;x-amz-date",
                "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
            ),
            (
                "POST",
                "",
                "host;x-amz-date",
                "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b",
            ),
            (
                "POST",
                "Param1=value1",
                "content-type;host;x-amz-date",
                "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a",
            ),
        ] {
            let url = Url::parse("https://example.amazonaws.com/").unwrap();
            let mut request = HttpRequest::new(method, url);
            if !content.is_empty() {
                request = request.with("content-type", form);
            }
            request.content = content.to_owned();
            let request = signer.signed(request, "service", now);
            let (name, value) = request.fields.last().unwrap();
            assert_eq!(name, "authorization");
            assert_eq!(
                *value,
                format!(
                    "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, SignedHeaders={names}, Signature={signature}"
                )
            );
            assert!(
                request
                    .fields
                    .contains(&("x-amz-date".to_owned(), "20150830T123600Z".to_owned()))
            );
        }
    }

    #[test]
    fn a_port_and_a_session_are_signed() {
        let signer = Signer {
            region: "eu-central-1".to_owned(),
            key_id: "A".to_owned(),
            secret: Secret::new("s"),
            session: Some(Secret::new("of-the-session")),
        };
        let url = Url::parse("http://127.0.0.1:4566/").unwrap();
        assert_eq!(host(&url), "127.0.0.1:4566");
        let request = signer.signed(
            HttpRequest::new("POST", url),
            "sns",
            Timestamp(1_772_366_470_123),
        );
        let fields = request.fields;
        assert_eq!(
            fields[0],
            ("x-amz-date".to_owned(), "20260301T120110Z".to_owned())
        );
        assert_eq!(
            fields[1],
            (
                "x-amz-security-token".to_owned(),
                "of-the-session".to_owned()
            )
        );
        assert!(
            fields[2]
                .1
                .contains("SignedHeaders=host;x-amz-date;x-amz-security-token, ")
        );
    }
}
