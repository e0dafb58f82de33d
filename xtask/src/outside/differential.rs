//! One request to plimsoll and to another server, and whether they answer the same.

use regex::Regex;
use serde_json::Value;

use super::exchange::{Answer, request};

/// A request that is sent to both.
#[derive(Debug, Clone)]
pub(super) struct SentRequest {
    pub(super) method: String,
    /// Path and query.
    pub(super) target: String,
    pub(super) fields: Vec<(String, String)>,
    pub(super) body: Option<String>,
}

impl SentRequest {
    /// Without fields and content.
    pub(super) fn new(method: &str, target: impl Into<String>) -> Self {
        Self {
            method: method.to_owned(),
            target: target.into(),
            fields: Vec::new(),
            body: None,
        }
    }

    /// The same with JSON as its content.
    pub(super) fn with_json(mut self, json: &Value) -> Self {
        let kind = ("content-type".to_owned(), "application/json".to_owned());
        self.fields.push(kind);
        self.body = Some(json.to_string());
        self
    }

    /// Adds a parameter to the query.
    pub(super) fn push_parameter(&mut self, name: &str, value: &str) {
        let mark = if self.target.contains('?') { "&" } else { "?" };
        let (name, value) = (escaped(name), escaped(value));
        self.target.extend([mark, &name, "=", &value]);
    }

    /// The same with another path, which few files describe.
    pub(super) fn mutated(&self) -> Self {
        let (path, query) = match self.target.split_once('?') {
            Some((path, query)) => (path, format!("?{query}")),
            None => (self.target.as_str(), String::new()),
        };
        let path = match path.trim_end_matches('/') {
            "" => "/",
            path => path,
        };
        Self {
            target: format!("{path}-mutated{query}"),
            ..self.clone()
        }
    }

    pub(super) fn send(&self, port: u16) -> Answer {
        request(
            port,
            &self.method,
            &self.target,
            &self.fields,
            self.body.as_deref(),
        )
    }
}

/// A text as a part of a query.
pub(super) fn escaped(text: &str) -> String {
    let byte = |byte: u8| match byte {
        b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
        byte if byte.is_ascii_alphanumeric() => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    };
    text.bytes().map(byte).collect()
}

/// The media type of a response, without its parameters.
pub(super) fn kind(answer: &Answer) -> String {
    let kind = answer
        .field("content-type")
        .unwrap_or_default()
        .to_ascii_lowercase();
    kind.split(';').next().unwrap_or_default().trim().to_owned()
}

/// Whether status, media type and content are the same, JSON by its value; fails with what differs.
///
/// - `is_template`: identifiers and numbers may be by chance.
pub(super) fn compare(wanted: &Answer, seen: &Answer, is_template: bool) -> Result<(), String> {
    if wanted.status != seen.status {
        return Err(format!("{} instead of {}", seen.status, wanted.status));
    }
    // Content without a type of its own gets one here.
    if !kind(wanted).is_empty() && kind(wanted) != kind(seen) {
        return Err(format!(
            "type `{}` instead of `{}`",
            kind(seen),
            kind(wanted)
        ));
    }
    let normal = |answer: &Answer| {
        let text = answer.text();
        let text = match serde_json::from_str::<Value>(&text) {
            Ok(value) => sorted(value).to_string(),
            Err(_) => text.replace("\r\n", "\n"),
        };
        if !is_template {
            return text;
        }
        let chance =
            Regex::new(r"[0-9a-fA-F]{8}-[0-9a-fA-F-]{27}|[0-9]+").expect("it is a pattern");
        chance.replace_all(&text, "#").into_owned()
    };
    let (wanted, seen) = (normal(wanted), normal(seen));
    if wanted == seen {
        return Ok(());
    }
    let at = wanted
        .bytes()
        .zip(seen.bytes())
        .take_while(|(one, other)| one == other)
        .count();
    let cut = |text: &str| -> String {
        let from = at.saturating_sub(20);
        String::from_utf8_lossy(text.as_bytes().get(from..).unwrap_or_default())
            .chars()
            .take(60)
            .collect()
    };
    Err(format!(
        "content `{}` instead of `{}`",
        cut(&seen),
        cut(&wanted)
    ))
}

/// JSON with its keys in order, since their order has no meaning.
fn sorted(value: Value) -> Value {
    match value {
        Value::Array(all) => all.into_iter().map(sorted).collect(),
        Value::Object(all) => {
            let mut all: Vec<_> = all.into_iter().collect();
            all.sort_by(|(one, _), (other, _)| one.cmp(other));
            let all = all.into_iter();
            all.map(|(name, value)| (name, sorted(value))).collect()
        }
        value => value,
    }
}
