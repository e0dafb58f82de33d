//! The result of a script as a response.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::StatusCode;
use http::header::{HeaderName, HeaderValue};
use plimsoll_script::js::{self, Ctx, FromJs, Object, Value};

use super::ScriptAnswer;

/// Fields that no script may set.
const OURS: [&str; 4] = ["content-length", "transfer-encoding", "connection", "date"];

/// Why what a script answers cannot be sent.
#[derive(Debug, thiserror::Error)]
pub(super) enum AnswerError {
    #[error("answers the status {0}, which is not from 200 to 599")]
    Status(f64),
    #[error("answers a field `{0}` whose name has a character that names may not have")]
    FieldName(String),
    #[error("answers a field `{0}` which is set by the server")]
    OwnField(String),
    #[error("answers a field `{0}` whose value has a control character")]
    FieldValue(String),
    #[error("answers no base64: {0}")]
    Base64(#[from] base64::DecodeError),
    #[error("answers content with a status that has none")]
    Content,
}

/// The value of a handler, as the prelude passes it on.
#[derive(Debug)]
pub(super) struct Answered {
    status: Option<f64>,
    headers: Vec<(String, String)>,
    kind: String,
    text: String,
    state: Option<String>,
}

impl<'js> FromJs<'js> for Answered {
    fn from_js(ctx: &Ctx<'js>, value: Value<'js>) -> js::Result<Self> {
        let object = Object::from_js(ctx, value)?;
        let headers: Vec<Vec<String>> = object.get("headers")?;
        let headers = headers.into_iter().filter_map(|pair| {
            let [name, value] = <[String; 2]>::try_from(pair).ok()?;
            Some((name, value))
        });
        Ok(Self {
            status: object.get("status")?,
            headers: headers.collect(),
            kind: object.get("kind")?,
            text: object.get("text")?,
            state: object.get("state")?,
        })
    }
}

/// The response that a script describes.
pub(super) fn read(answered: Answered) -> Result<ScriptAnswer, AnswerError> {
    let status = answered.status.map(status).transpose()?;
    let mut fields = Vec::new();
    for (name, value) in answered.headers {
        let Ok(parsed) = HeaderName::from_bytes(name.as_bytes()) else {
            return Err(AnswerError::FieldName(name));
        };
        if OURS.contains(&parsed.as_str()) {
            return Err(AnswerError::OwnField(name));
        }
        let Ok(value) = HeaderValue::from_str(&value) else {
            return Err(AnswerError::FieldValue(name));
        };
        fields.push((parsed, value));
    }
    let kind = match answered.kind.as_str() {
        "json" => "application/json",
        "base64" => "application/octet-stream",
        _ => "text/plain; charset=utf-8",
    };
    let content = if answered.kind == "base64" {
        Bytes::from(STANDARD.decode(answered.text.trim())?)
    } else {
        Bytes::from(answered.text)
    };
    let has_none = matches!(status.map(|it| it.as_u16()), Some(204 | 205 | 304));
    if has_none && !content.is_empty() {
        return Err(AnswerError::Content);
    }
    Ok(ScriptAnswer {
        status,
        fields,
        kind: HeaderValue::from_static(kind),
        content,
        state: answered.state,
    })
}

fn status(number: f64) -> Result<StatusCode, AnswerError> {
    let is_known = (200.0..600.0).contains(&number) && number.fract() == 0.0;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is a whole number from 200 to 599"
    )]
    let status = is_known.then(|| StatusCode::from_u16(number as u16).ok());
    status.flatten().ok_or(AnswerError::Status(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_sent_is_reported() {
        let check = |status: Option<f64>,
                     headers: &[(&str, &str)],
                     kind: &str,
                     text: &str,
                     expected: &str| {
            let headers = headers.iter();
            let answered = Answered {
                status,
                headers: headers
                    .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                    .collect(),
                kind: kind.to_owned(),
                text: text.to_owned(),
                state: None,
            };
            let message = read(answered).unwrap_err().to_string();
            assert!(message.contains(expected), "{message}");
        };
        check(Some(99.0), &[], "none", "", "the status 99");
        check(Some(200.5), &[], "none", "", "the status 200.5");
        check(None, &[("a b", "c")], "none", "", "whose name");
        check(None, &[("a", "c\r\nd: e")], "none", "", "control");
        check(
            None,
            &[("Content-Length", "1")],
            "none",
            "",
            "by the server",
        );
        check(None, &[], "base64", "!", "no base64");
        check(Some(204.0), &[], "text", "x", "has none");
    }
}
