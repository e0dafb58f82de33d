//! One checked exchange as programs read it: `schemas/check.v1.json`.
//!
//! Units are in the names; durations are microseconds with up to three decimals. Within a version
//! fields are added and never change their meaning. What was not there is `null`.

use plimsoll_model::{
    Certificate, Checked, CheckedCall, CheckedRedirect, Exchange, Failure, Judgement, TlsSession,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::date::date;
use crate::document::{microseconds, to_json};

/// One exchange of `plimsoll check`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CheckDocument {
    /// Always [`CheckDocument::SCHEMA`].
    pub schema: String,
    /// The URL, credentials left out.
    pub url: String,
    /// The request method.
    pub method: String,
    /// When it started, RFC 3339 in UTC.
    pub started: String,
    /// `met`, `unmet` or `failed`.
    pub verdict: String,
    /// The conditions in the order they were given.
    pub conditions: Vec<JudgementDocument>,
    /// The exchange; after redirects the last one, with the times and bytes of all.
    pub exchange: ExchangeDocument,
    /// The redirects that led to it, in order.
    #[serde(default)]
    pub redirects: Vec<RedirectDocument>,
    /// The answer to the call; `null` unless the exchange was one of gRPC and was completed.
    #[serde(default)]
    pub grpc: Option<CallDocument>,
    /// The TLS session.
    pub tls: Option<TlsDocument>,
}

impl CheckDocument {
    /// Names this document and its version.
    pub const SCHEMA: &str = "plimsoll.check/1";

    /// The document of `checked`.
    pub fn from_checked(checked: &Checked) -> Self {
        Self {
            schema: Self::SCHEMA.to_owned(),
            url: checked.url.clone(),
            method: checked.method.clone(),
            started: humantime::format_rfc3339_millis(checked.at).to_string(),
            verdict: checked.verdict().name().to_owned(),
            conditions: checked
                .judgements
                .iter()
                .map(JudgementDocument::from_judgement)
                .collect(),
            exchange: ExchangeDocument::from_checked(checked),
            redirects: checked
                .redirects
                .iter()
                .map(RedirectDocument::from_redirect)
                .collect(),
            grpc: checked.call.as_ref().map(CallDocument::from_call),
            tls: checked
                .tls
                .as_ref()
                .map(|session| TlsDocument::from_session(session, checked)),
        }
    }

    /// The document as indented JSON with a line feed at its end.
    pub fn to_json(&self) -> String {
        to_json(self)
    }
}

/// One response that led elsewhere.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RedirectDocument {
    /// The URL of its request, credentials left out.
    pub url: String,
    /// Its status.
    pub status: u16,
    /// From the start of its request to the end of its response.
    pub time_us: f64,
}

impl RedirectDocument {
    fn from_redirect(redirect: &CheckedRedirect) -> Self {
        Self {
            url: redirect.url.clone(),
            status: redirect.status,
            time_us: microseconds(redirect.took),
        }
    }
}

/// The answer to a call of gRPC.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallDocument {
    /// The status of the call: `OK`.
    pub status: String,
    /// The same as a number.
    pub code: u8,
    /// The message beside the status.
    pub message: Option<String>,
    /// Number of response messages.
    pub messages: u64,
    /// The message, or the list of them where the method answers with a stream; `null` if there is
    /// none.
    pub answer: Option<Value>,
}

impl CallDocument {
    fn from_call(call: &CheckedCall) -> Self {
        Self {
            status: call.status.name().to_owned(),
            code: call.status.code(),
            message: call.message.clone(),
            messages: call.messages,
            answer: serde_json::from_str(&call.json).ok(),
        }
    }
}

/// Verdict of one condition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JudgementDocument {
    /// The condition as it was written.
    pub condition: String,
    /// Whether it was met; `null` if there was nothing to judge.
    pub met: Option<bool>,
    /// The value that the condition was about.
    pub observed: Option<String>,
}

impl JudgementDocument {
    fn from_judgement(judgement: &Judgement) -> Self {
        Self {
            condition: judgement.condition.clone(),
            met: judgement.met,
            observed: judgement.observed.clone(),
        }
    }
}

/// The exchange.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExchangeDocument {
    /// The status of the complete response.
    pub status: Option<u16>,
    /// Why there is none.
    pub failure: Option<CheckFailureDocument>,
    /// From the start to the end of the response, or to the failure.
    pub time_us: f64,
    /// The phases that were completed, in order.
    pub phases: Vec<PhaseTimeDocument>,
    /// The peer's address and port.
    pub peer: Option<String>,
    /// The protocol, if a response came.
    pub protocol: Option<String>,
    /// Bytes handed to the transport.
    pub sent_bytes: u64,
    /// Bytes taken from the transport.
    pub received_bytes: u64,
    /// Bytes of content.
    pub content_bytes: u64,
    /// The fields of the response head in the order they came.
    pub headers: Vec<FieldDocument>,
}

impl ExchangeDocument {
    fn from_checked(checked: &Checked) -> Self {
        let exchange: &Exchange = &checked.exchange;
        let status = exchange.outcome.as_ref().ok().copied();
        Self {
            status,
            failure: exchange
                .outcome
                .as_ref()
                .err()
                .map(CheckFailureDocument::from_failure),
            time_us: microseconds(exchange.latency_from_started()),
            phases: exchange
                .phases
                .iter()
                .map(|(phase, duration)| PhaseTimeDocument {
                    phase: phase.name().to_owned(),
                    time_us: microseconds(duration),
                })
                .collect(),
            peer: exchange.peer.map(|peer| peer.to_string()),
            protocol: status.map(|_| exchange.protocol.name().to_owned()),
            sent_bytes: exchange.bytes_sent,
            received_bytes: exchange.bytes_received,
            content_bytes: checked.content_bytes,
            headers: checked
                .fields
                .iter()
                .map(|(name, value)| FieldDocument {
                    name: name.clone(),
                    value: value.clone(),
                })
                .collect(),
        }
    }
}

/// Why no complete response came.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckFailureDocument {
    /// The phase that was under way.
    pub phase: String,
    /// The kind of failure.
    pub kind: String,
    /// The side at fault.
    pub side: String,
    /// Whether the same request may be sent again.
    pub retry: String,
    /// The underlying message.
    pub cause: Option<String>,
}

impl CheckFailureDocument {
    fn from_failure(failure: &Failure) -> Self {
        Self {
            phase: failure.phase.name().to_owned(),
            kind: failure.kind.name().to_owned(),
            side: failure.side.name().to_owned(),
            retry: failure.retry.name().to_owned(),
            cause: failure.cause.clone(),
        }
    }
}

/// Duration of one phase.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PhaseTimeDocument {
    /// The phase.
    pub phase: String,
    /// Its length.
    pub time_us: f64,
}

/// One field of the response head.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FieldDocument {
    /// The name in lower case.
    pub name: String,
    /// The value.
    pub value: String,
}

/// The TLS session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TlsDocument {
    /// The version.
    pub version: String,
    /// The cipher suite by its IANA name; null over HTTP/3, which does not show it.
    pub cipher: Option<String>,
    /// The protocol that the peer chose by ALPN.
    pub alpn: Option<String>,
    /// Whether an earlier session was resumed.
    pub resumed: bool,
    /// The peer's own certificate.
    pub certificate: Option<CertificateDocument>,
}

impl TlsDocument {
    fn from_session(session: &TlsSession, checked: &Checked) -> Self {
        let document = |certificate| CertificateDocument::from_certificate(certificate, checked);
        Self {
            version: session.version.clone(),
            cipher: session.cipher.clone(),
            alpn: session.alpn.clone(),
            resumed: session.resumed,
            certificate: session.certificate.as_ref().map(document),
        }
    }
}

/// Fields of a certificate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CertificateDocument {
    /// The subject's distinguished name; may be empty.
    pub subject: String,
    /// The issuer's distinguished name.
    pub issuer: String,
    /// The host names and addresses that it is for.
    pub names: Vec<String>,
    /// When it becomes valid, RFC 3339 in UTC.
    pub not_before: Option<String>,
    /// When it ceases to be valid, RFC 3339 in UTC.
    pub not_after: Option<String>,
    /// Whole days from the start of the check until then; negative once it is over.
    pub days_left: i64,
}

impl CertificateDocument {
    fn from_certificate(certificate: &Certificate, checked: &Checked) -> Self {
        Self {
            subject: certificate.subject.clone(),
            issuer: certificate.issuer.clone(),
            names: certificate.names.clone(),
            not_before: date(certificate.not_before),
            not_after: date(certificate.not_after),
            days_left: certificate.days_left(checked.at),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::fixture::checks;

    const SCHEMA: &str = include_str!("../../../../schemas/check.v1.json");

    #[test]
    fn every_document_is_valid_by_the_published_schema() {
        let validator = jsonschema::validator_for(&serde_json::from_str(SCHEMA).unwrap()).unwrap();
        for (name, checked) in checks::all() {
            let document = serde_json::to_value(CheckDocument::from_checked(&checked)).unwrap();
            let errors: Vec<String> = validator
                .iter_errors(&document)
                .map(|error| format!("{}: {error}", error.instance_path()))
                .collect();
            assert_eq!(errors, [""; 0], "{name}");
        }
    }

    /// The published schema allows fields of later minor additions; here none may be undescribed.
    #[test]
    fn every_field_is_described_and_required() {
        let schema: Value = serde_json::from_str(SCHEMA).unwrap();
        let mut objects = Vec::new();
        collect(&schema, &mut objects);
        let strict = {
            let mut schema = schema.clone();
            close(&mut schema);
            jsonschema::validator_for(&schema).unwrap()
        };
        assert_eq!(objects.len(), 10, "as many as there are kinds of objects");
        for object in objects {
            let properties = object["properties"].as_object().unwrap();
            assert_eq!(
                properties.len(),
                object["required"].as_array().unwrap().len(),
                "{object}"
            );
            for (name, property) in properties {
                assert!(property["description"].is_string(), "{name}");
            }
        }
        for (name, checked) in checks::all() {
            let document = serde_json::to_value(CheckDocument::from_checked(&checked)).unwrap();
            assert!(strict.is_valid(&document), "{name}");
        }
    }

    fn collect<'a>(schema: &'a Value, objects: &mut Vec<&'a Value>) {
        match schema {
            Value::Object(object) => {
                if object.get("properties").is_some_and(Value::is_object) {
                    objects.push(schema);
                }
                for value in object.values() {
                    collect(value, objects);
                }
            }
            Value::Array(items) => items.iter().for_each(|item| collect(item, objects)),
            _ => {}
        }
    }

    fn close(schema: &mut Value) {
        match schema {
            Value::Object(object) => {
                if object.get("properties").is_some_and(Value::is_object) {
                    object.insert("additionalProperties".into(), Value::Bool(false));
                }
                object.values_mut().for_each(close);
            }
            Value::Array(items) => items.iter_mut().for_each(close),
            _ => {}
        }
    }

    #[test]
    fn a_document_survives_the_way_through_json() {
        for (name, checked) in checks::all() {
            let document = CheckDocument::from_checked(&checked);
            let read: CheckDocument = serde_json::from_str(&document.to_json()).unwrap();
            assert_eq!(read, document, "{name}");
        }
    }

    #[test]
    fn the_order_of_fields_is_stable() {
        insta::assert_snapshot!(CheckDocument::from_checked(&checks::unmet()).to_json());
    }
}
