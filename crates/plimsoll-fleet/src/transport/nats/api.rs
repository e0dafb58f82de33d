//! Requests of `JetStream`, of those that NATS 2.9 has.
//!
//! Source: "`JetStream` wire API Reference", docs.nats.io, and ADR-31 (reading single messages).

use std::time::Duration;

use async_nats::{Client, HeaderMap, RequestErrorKind};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::transport::LOG_IS_FULL;

/// Age at which the broker drops messages that a coordinator that died has left.
const MOST_AGE: Duration = Duration::from_hours(24);

/// The code of an answer about something that does not exist.
const NOT_FOUND: u64 = 404;

/// The code of an answer that another attempt may change.
const UNAVAILABLE: u64 = 503;

/// `JSStreamStoreFailedF`: the stream does not store the message. Source: nats-server, `server/errors.json`.
const NOT_STORED: u64 = 10_077;

/// Why a request has failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum ApiError {
    /// The broker has no `JetStream`, no stream for the subject, or is starting.
    #[error("the broker has no stream for it")]
    NoResponders,
    /// The broker did not answer.
    #[error("{0}")]
    NoAnswer(String),
    /// The broker is busy with itself.
    #[error("{0}")]
    Unavailable(String),
    /// The broker refuses.
    #[error("{0}")]
    Refused(String),
    /// A stream has as many bytes as it may.
    #[error("{LOG_IS_FULL}")]
    Full,
    /// There is no such stream or message.
    #[error("it does not exist")]
    NotFound,
}

impl ApiError {
    /// Whether another attempt may succeed.
    pub(super) fn is_temporary(&self) -> bool {
        matches!(
            self,
            Self::NoResponders | Self::NoAnswer(_) | Self::Unavailable(_)
        )
    }
}

/// A message of a stream.
#[derive(Debug, PartialEq)]
pub(super) struct Stored {
    /// Its number in the stream, from 1.
    pub(super) number: u64,
    /// Its content.
    pub(super) payload: Vec<u8>,
}

/// Sends requests.
#[derive(Debug, Clone)]
pub(super) struct Api(Client);

impl Api {
    pub(super) fn new(client: Client) -> Self {
        Self(client)
    }

    /// Fails if the broker has no `JetStream`.
    pub(super) async fn check(&self) -> Result<(), ApiError> {
        let answer = self.request("INFO".to_owned(), &Value::Null).await;
        answer.map(drop)
    }

    pub(super) async fn has_stream(&self, name: &str) -> Result<bool, ApiError> {
        let answer = self.request(format!("STREAM.INFO.{name}"), &Value::Null);
        match answer.await {
            Ok(_) => Ok(true),
            Err(ApiError::NotFound) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// - `most_bytes`: of its messages; -1 for no limit.
    pub(super) async fn create_stream(
        &self,
        name: &str,
        subjects: &[String],
        most_bytes: i64,
    ) -> Result<(), ApiError> {
        let config = json!({
            "name": name,
            "description": "a run of plimsoll load --fleet",
            "subjects": subjects,
            "retention": "limits",
            "storage": "file",
            "discard": "new",
            "max_age": nanos(MOST_AGE),
            "max_bytes": most_bytes,
            "max_msgs": -1,
            "max_consumers": -1,
            "num_replicas": 1,
        });
        let answer = self.request(format!("STREAM.CREATE.{name}"), &config);
        answer.await.map(drop)
    }

    /// Deletes a stream, if there is one.
    pub(super) async fn delete_stream(&self, name: &str) -> Result<(), ApiError> {
        let answer = self.request(format!("STREAM.DELETE.{name}"), &Value::Null);
        match answer.await {
            Ok(_) | Err(ApiError::NotFound) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Deletes the streams that earlier runs have left: without messages, and as old as `age`.
    pub(super) async fn delete_left_streams(&self, age: Duration) -> Result<(), ApiError> {
        let before = Timestamp::now() - SignedDuration::try_from(age).unwrap_or_default();
        let mut offset = 0;
        loop {
            let wanted = json!({ "subject": "plimsoll.>", "offset": offset });
            let answer = self.request("STREAM.LIST".to_owned(), &wanted).await?;
            let streams = answer["streams"].as_array().cloned().unwrap_or_default();
            let left: Vec<_> = streams.iter().filter_map(|it| left(it, before)).collect();
            for name in &left {
                self.delete_stream(name).await?;
            }
            offset += (streams.len() - left.len()) as u64;
            let is_last = answer["total"].as_u64().is_none_or(|all| offset >= all);
            if streams.is_empty() || is_last {
                return Ok(());
            }
        }
    }

    /// Adds a message to the stream of `subject`; the broker keeps the first one of an `id`.
    pub(super) async fn append(
        &self,
        subject: &str,
        id: &str,
        payload: Vec<u8>,
    ) -> Result<(), ApiError> {
        let mut headers = HeaderMap::new();
        headers.insert("Nats-Msg-Id", id);
        let answer = self
            .0
            .request_with_headers(subject.to_owned(), headers, payload.into())
            .await
            .map_err(|error| of_request(&error))?;
        read(&answer.payload).map(drop)
    }

    /// The first message of `subject` from a number on; `None` if there is none yet.
    pub(super) async fn message_from(
        &self,
        stream: &str,
        subject: &str,
        number: u64,
    ) -> Result<Option<Stored>, ApiError> {
        let wanted = json!({ "seq": number, "next_by_subj": subject });
        let answer = self.request(format!("STREAM.MSG.GET.{stream}"), &wanted);
        let answer = match answer.await {
            Ok(answer) => answer,
            Err(ApiError::NotFound) => return Ok(None),
            Err(error) => return Err(error),
        };
        let message = &answer["message"];
        let wrong = || ApiError::Refused("the broker's message cannot be read".to_owned());
        let payload = message["data"].as_str().unwrap_or_default();
        Ok(Some(Stored {
            number: message["seq"].as_u64().ok_or_else(wrong)?,
            payload: STANDARD.decode(payload).map_err(|_| wrong())?,
        }))
    }

    async fn request(&self, name: String, body: &Value) -> Result<Value, ApiError> {
        let body = match body {
            Value::Null => Vec::new(),
            body => body.to_string().into_bytes(),
        };
        let answer = self.0.request(format!("$JS.API.{name}"), body.into());
        let answer = answer.await.map_err(|error| of_request(&error))?;
        read(&answer.payload)
    }
}

/// The name of a stream that a run has left: empty since `before`. The messages of a run that goes on are younger than a day.
fn left(stream: &Value, before: Timestamp) -> Option<&str> {
    let name = stream.pointer("/config/name")?.as_str()?;
    let time = |pointer: &str| stream.pointer(pointer)?.as_str()?.parse::<Timestamp>().ok();
    let is_empty = stream.pointer("/state/messages")?.as_u64()? == 0;
    let is_old =
        time("/created")? <= before && time("/state/last_ts").is_none_or(|it| it <= before);
    (name.starts_with("plimsoll-") && is_empty && is_old).then_some(name)
}

fn of_request(error: &async_nats::RequestError) -> ApiError {
    match error.kind() {
        RequestErrorKind::NoResponders => ApiError::NoResponders,
        _ => ApiError::NoAnswer(error.to_string()),
    }
}

/// The answer, unless it is an error.
fn read(payload: &[u8]) -> Result<Value, ApiError> {
    let answer: Value = serde_json::from_slice(payload)
        .map_err(|_| ApiError::Refused("the broker's answer is no JSON".to_owned()))?;
    let Some(error) = answer.get("error") else {
        return Ok(answer);
    };
    let text = error["description"]
        .as_str()
        .unwrap_or("it refuses")
        .to_owned();
    Err(match error["code"].as_u64() {
        Some(NOT_FOUND) => ApiError::NotFound,
        // The other reason, a broken disk, has another text.
        _ if error["err_code"].as_u64() == Some(NOT_STORED) && text.contains("maximum bytes") => {
            ApiError::Full
        }
        Some(UNAVAILABLE) => ApiError::Unavailable(text),
        _ => ApiError::Refused(text),
    })
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_that_were_left_are_old_and_empty_and_ours() {
        let before: Timestamp = "2026-11-27T00:00:00Z".parse().unwrap();
        let stream = |name: &str, created: &str, messages: u64, last: &str| {
            json!({
                "config": { "name": name },
                "created": created,
                "state": { "messages": messages, "last_ts": last },
            })
        };
        let (old, new) = ("2026-11-25T00:00:00.123456789Z", "2026-11-27T00:00:01Z");
        let never = "0001-01-01T00:00:00Z";
        for (stream, expected) in [
            (stream("plimsoll-a", old, 0, old), Some("plimsoll-a")),
            (stream("plimsoll-a", old, 0, never), Some("plimsoll-a")),
            (stream("plimsoll-a", old, 1, old), None),
            (stream("plimsoll-a", new, 0, never), None),
            (stream("plimsoll-a", old, 0, new), None),
            (stream("orders", old, 0, old), None),
            (json!({}), None),
        ] {
            assert_eq!(left(&stream, before), expected, "{stream}");
        }
    }

    #[test]
    fn answers_are_values_or_errors_of_their_kind() {
        let of_text = |text: &str| read(text.as_bytes());
        assert_eq!(of_text(r#"{"seq":3}"#).unwrap()["seq"], 3);
        let error = |code: u64| {
            let answer = format!(r#"{{"error":{{"code":{code},"description":"why"}}}}"#);
            of_text(&answer).unwrap_err()
        };
        assert!(matches!(error(404), ApiError::NotFound));
        assert!(error(503).is_temporary());
        assert!(ApiError::NoResponders.is_temporary() && !error(400).is_temporary());
        assert_eq!(error(400).to_string(), "why");
        let full =
            r#"{"error":{"code":503,"err_code":10077,"description":"maximum bytes exceeded"}}"#;
        let full = of_text(full).unwrap_err();
        assert!(matches!(full, ApiError::Full) && !full.is_temporary());
        assert!(of_text("x").is_err());
    }
}
