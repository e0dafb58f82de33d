//! Content as it stands in a rule.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::entry::{Entry, Table};

/// In base64.
pub(crate) fn encoded(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// From base64, if it is that.
pub(crate) fn decoded(text: &str) -> Option<Vec<u8>> {
    STANDARD.decode(text).ok()
}

/// The extension of a file that holds content of a media type.
pub(crate) fn extension(kind: &str, bytes: &[u8]) -> &'static str {
    let is_json = || serde_json::from_slice::<serde::de::IgnoredAny>(bytes).is_ok();
    // JSON5 and CSV would be sent as JSON.
    match kind.split(';').next().unwrap_or_default() {
        "text/html" => "html",
        "text/css" => "css",
        "image/png" => "png",
        "image/jpeg" => "jpg",
        "image/svg+xml" => "svg",
        kind if self::is_json(kind) && is_json() => "json",
        _ if std::str::from_utf8(bytes).is_ok() => "txt",
        _ => "bin",
    }
}

/// Puts content and its media type into `respond`; the headers of that are `headers`.
///
/// JSON and text stand as they are, everything else in base64.
pub(crate) fn push(respond: &mut Table, headers: &mut Table, kind: Option<&str>, bytes: &[u8]) {
    let (key, value, default) = match std::str::from_utf8(bytes) {
        Ok(text) if is_plain(text) => {
            let is_json = kind.is_some_and(is_json)
                && serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
            if is_json {
                ("json", text.to_owned(), "application/json")
            } else {
                ("text", text.to_owned(), "text/plain; charset=utf-8")
            }
        }
        _ => ("base64", encoded(bytes), "application/octet-stream"),
    };
    // Content without a type stays without one.
    match kind {
        Some(kind) if kind == default => {}
        kind => headers.push("content-type", kind.unwrap_or_default()),
    }
    respond.push(key, Entry::Text(value));
}

/// Whether a text can stand in a file of rules without becoming unreadable.
fn is_plain(text: &str) -> bool {
    text.chars()
        .all(|it| !it.is_control() || matches!(it, '\n' | '\t' | '\r'))
}

/// Whether a media type is one of JSON.
pub(crate) fn is_json(kind: &str) -> bool {
    let kind = kind.split(';').next().unwrap_or(kind).trim();
    kind.eq_ignore_ascii_case("application/json") || kind.to_ascii_lowercase().ends_with("+json")
}
