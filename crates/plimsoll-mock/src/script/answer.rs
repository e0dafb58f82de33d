//! What the prelude makes of a script's answer, as a response.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::StatusCode;
use http::header::{HeaderName, HeaderValue};
use serde::Deserialize;

use super::ScriptAnswer;

/// Fields that no script may set.
const OURS: [&str; 4] = ["content-length", "transfer-encoding", "connection", "date"];

#[derive(Debug, Deserialize)]
struct Answered {
    status: Option<f64>,
    headers: Vec<(String, String)>,
    kind: String,
    text: String,
    state: Option<String>,
}

/// - `json`: what the prelude has answered; absent for nothing at all.
pub(super) fn read(json: Option<&str>) -> Result<ScriptAnswer, String> {
    let json = json.ok_or("answers nothing that can be sent")?;
    let answered: Answered = serde_json::from_str(json)
        .map_err(|error| format!("answers what cannot be sent: {error}"))?;
    let status = answered.status.map(status).transpose()?;
    let mut fields = Vec::new();
    for (name, value) in answered.headers {
        let wrong = |what: &str| format!("answers a field `{name}` {what}");
        let parsed = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| wrong("whose name has a character that names may not have"))?;
        if OURS.contains(&parsed.as_str()) {
            return Err(wrong("which is set by the server"));
        }
        let value = HeaderValue::from_str(&value)
            .map_err(|_| wrong("whose value has a control character"))?;
        fields.push((parsed, value));
    }
    let kind = match answered.kind.as_str() {
        "json" => "application/json",
        "base64" => "application/octet-stream",
        _ => "text/plain; charset=utf-8",
    };
    let content = if answered.kind == "base64" {
        let decoded = STANDARD.decode(answered.text.trim());
        Bytes::from(decoded.map_err(|error| format!("answers no base64: {error}"))?)
    } else {
        Bytes::from(answered.text)
    };
    let has_none = matches!(status.map(|it| it.as_u16()), Some(204 | 205 | 304));
    if has_none && !content.is_empty() {
        return Err("answers content with a status that has none".to_owned());
    }
    Ok(ScriptAnswer {
        status,
        fields,
        kind: HeaderValue::from_static(kind),
        content,
        state: answered.state,
    })
}

fn status(number: f64) -> Result<StatusCode, String> {
    let is_known = (200.0..600.0).contains(&number) && number.fract() == 0.0;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it is a whole number from 200 to 599"
    )]
    let status = is_known.then(|| StatusCode::from_u16(number as u16).ok());
    status
        .flatten()
        .ok_or_else(|| format!("answers the status {number}, which is not from 200 to 599"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_sent_is_told() {
        for (json, expected) in [
            (
                "{\"status\":99,\"headers\":[],\"kind\":\"none\",\"text\":\"\"}",
                "the status 99",
            ),
            (
                "{\"status\":200.5,\"headers\":[],\"kind\":\"none\",\"text\":\"\"}",
                "the status 200.5",
            ),
            (
                "{\"headers\":[[\"a b\",\"c\"]],\"kind\":\"none\",\"text\":\"\"}",
                "whose name",
            ),
            (
                "{\"headers\":[[\"a\",\"c\\r\\nd: e\"]],\"kind\":\"none\",\"text\":\"\"}",
                "control",
            ),
            (
                "{\"headers\":[[\"Content-Length\",\"1\"]],\"kind\":\"none\",\"text\":\"\"}",
                "by the server",
            ),
            (
                "{\"headers\":[],\"kind\":\"base64\",\"text\":\"!\"}",
                "no base64",
            ),
            (
                "{\"status\":204,\"headers\":[],\"kind\":\"text\",\"text\":\"x\"}",
                "has none",
            ),
            (
                "{\"headers\":[],\"kind\":\"text\",\"text\":\"\\ud800\"}",
                "cannot be sent",
            ),
        ] {
            let told = read(Some(json)).unwrap_err();
            assert!(told.contains(expected), "{told}");
        }
        assert!(read(None).is_err());
    }
}
