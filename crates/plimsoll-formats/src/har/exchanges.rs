//! The exchanges of an archive: requests with their responses.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::{entries, pairs};
use crate::request::{is_about_connection, is_token};
use crate::{Place, Remark};

/// The exchanges of an archive.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Recording {
    /// In its order.
    pub exchanges: Vec<RecordedExchange>,
    /// Parts of the archive that are left out.
    pub left_out: Vec<Remark>,
}

/// A request and what was answered.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordedExchange {
    /// Its position in the archive.
    pub place: Place,
    /// As it was sent.
    pub method: String,
    /// Scheme, host and port: `https://host:port`.
    pub origin: String,
    /// Path and query, as they were sent; without a fragment.
    pub target: String,
    /// The media type of the content of the request.
    pub request_kind: Option<String>,
    /// The content of the request; empty if it had none.
    pub request_body: Vec<u8>,
    /// From 200 to 599.
    pub status: u16,
    /// Fields of the response, without those about the connection and the coding of its content.
    pub headers: Vec<(String, String)>,
    /// The media type of its content.
    pub kind: Option<String>,
    /// Its content, decoded.
    pub body: Vec<u8>,
}

/// Reads the exchanges of an archive (HAR 1.1 or 1.2).
///
/// Left out, and reported: those without an answer, of other schemes than http and https, and WebSockets.
pub fn parse_recording(text: &str) -> Result<Recording, Vec<Remark>> {
    let document = super::document(text)?;
    let mut recording = Recording::default();
    for (number, entry) in (1..).zip(entries(&document)?) {
        let place = Place::Entry(number);
        match exchange(&place, entry) {
            Ok(exchange) => recording.exchanges.push(exchange),
            Err(error) => recording
                .left_out
                .push(Remark::new(place, error.to_string())),
        }
    }
    Ok(recording)
}

/// Why an entry is no exchange that can be answered again.
#[derive(Debug, thiserror::Error)]
enum EntryError {
    #[error("has no {0}")]
    Lacks(&'static str),
    #[error("is of {0}, which is not recorded")]
    Scheme(String),
    #[error("has no answer (blocked or aborted)")]
    Unanswered,
    #[error("is a WebSocket")]
    WebSocket,
    #[error("has the status {0}")]
    Status(u16),
    #[error("`content.text` is not base64: {0}")]
    Base64(#[from] base64::DecodeError),
}

fn exchange(place: &Place, entry: &Value) -> Result<RecordedExchange, EntryError> {
    let request = entry.get("request").ok_or(EntryError::Lacks("`request`"))?;
    let response = entry
        .get("response")
        .ok_or(EntryError::Lacks("`response`"))?;
    let text = |key: &str| request.get(key).and_then(Value::as_str);
    let method = text("method").filter(|method| is_token(method));
    let method = method.ok_or(EntryError::Lacks("method"))?.to_owned();
    let url = text("url").ok_or(EntryError::Lacks("URL"))?;
    let (scheme, rest) = url
        .split_once("://")
        .ok_or(EntryError::Lacks("absolute URL"))?;
    if !matches!(scheme, "http" | "https") {
        return Err(EntryError::Scheme(scheme.to_owned()));
    }
    let rest = rest.split('#').next().unwrap_or(rest);
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (host, target) = rest.split_at(end);
    let target = if target.starts_with('/') {
        target.to_owned()
    } else {
        format!("/{target}")
    };
    let status = response.get("status").and_then(Value::as_u64);
    let status = status.and_then(|it| u16::try_from(it).ok()).unwrap_or(0);
    match status {
        0 => return Err(EntryError::Unanswered),
        101 => return Err(EntryError::WebSocket),
        200..=599 => {}
        other => return Err(EntryError::Status(other)),
    }
    let content = response.get("content");
    let of_content = |key: &str| content?.get(key)?.as_str();
    let body = match (of_content("text"), of_content("encoding")) {
        (None, _) => Vec::new(),
        (Some(text), Some("base64")) => STANDARD.decode(text.trim())?,
        (Some(text), _) => text.as_bytes().to_vec(),
    };
    let is_kept = |name: &str| {
        // The text is decoded already.
        is_token(name)
            && !is_about_connection(name)
            && !["content-encoding", "content-type", "date"]
                .iter()
                .any(|known| name.eq_ignore_ascii_case(known))
    };
    let headers: Vec<(String, String)> = pairs(response.get("headers"))
        .filter(|(name, _)| is_kept(name))
        // Browsers join what came in several fields by line feeds.
        .flat_map(|(name, value)| value.split('\n').map(move |it| (name, it.trim())))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    let named = pairs(response.get("headers"))
        .find(|(name, _)| name.eq_ignore_ascii_case("content-type"))
        .map(|(_, value)| value);
    let kind = named.or_else(|| of_content("mimeType"));
    let kind = kind.filter(|kind| kind.contains('/') && *kind != "x-unknown");
    let posted = |key: &str| request.get("postData")?.get(key)?.as_str();
    Ok(RecordedExchange {
        request_kind: posted("mimeType").map(str::to_owned),
        request_body: posted("text").unwrap_or_default().as_bytes().to_vec(),
        place: place.clone(),
        method,
        origin: format!("{scheme}://{host}"),
        target,
        status,
        headers,
        kind: kind.map(str::to_owned),
        body,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn exchanges_are_read() {
        let text = r#"{"log": {"entries": [
            {"request": {"method": "GET", "url": "https://a.example/x?y=1#z"},
             "response": {"status": 200, "headers": [
                {"name": "Content-Type", "value": "application/json"}, {"name": "Content-Encoding", "value": "gzip"},
                {"name": "set-cookie", "value": "a=b\nc=d"}, {"name": ":status", "value": "200"}, {"name": "Date", "value": "x"}],
              "content": {"mimeType": "text/x", "text": "e30=", "encoding": "base64"}}},
            {"request": {"method": "GET", "url": "https://a.example"}, "response": {"status": 0}},
            {"request": {"method": "GET", "url": "wss://a.example/"}, "response": {"status": 101}},
            {"request": {"method": "POST", "url": "http://b.example?q"}, "response": {"status": 204}},
            {"response": {}}
        ]}}"#;
        let recording = parse_recording(text).unwrap();
        let [first, second] = recording.exchanges.as_slice() else {
            panic!("{recording:?}");
        };
        assert_eq!(
            (first.origin.as_str(), first.target.as_str()),
            ("https://a.example", "/x?y=1")
        );
        assert_eq!(
            (first.kind.as_deref(), first.body.as_slice()),
            (Some("application/json"), &b"{}"[..])
        );
        assert_eq!(first.headers.len(), 2, "{first:?}");
        assert_eq!((second.target.as_str(), second.status), ("/?q", 204));
        assert_eq!(recording.left_out.len(), 3);
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(url in "[a-z:/?#é]{0,12}", status in 0u64..1200, text in ".{0,8}") {
            let entry = serde_json::json!({"request": {"method": "GET", "url": url}, "response": {"status": status, "content": {"text": text, "encoding": "base64"}}});
            let document = serde_json::json!({"log": {"entries": [entry]}});
            let recording = parse_recording(&document.to_string()).unwrap();
            prop_assert_eq!(recording.exchanges.len() + recording.left_out.len(), 1);
            for exchange in recording.exchanges {
                prop_assert!(exchange.target.starts_with('/'));
            }
        }
    }
}
