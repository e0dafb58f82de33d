//! Values of ExpressGateway's configuration in plimsoll's words, and what is reported about keys.

use std::net::SocketAddr;

use plimsoll_model::document::{Table, Value, as_text};

pub(super) const NO_COUNTERPART: &str = "left out: there is no counterpart";

/// Notes what became of a key, if it is there.
pub(super) fn report(value: Option<&Value<'_>>, message: &str) {
    if let Some(value) = value {
        value.note(message);
    }
}

pub(super) fn report_keys(table: &mut Table<'_>, keys: &[(&'static str, &str)]) {
    for (key, message) in keys {
        report(table.take_value(key).as_ref(), message);
    }
}

/// Our syntax of a key's value.
pub(super) type Convert = fn(&Value<'_>) -> Option<String>;

/// A number of milliseconds as a duration.
pub(super) fn millis(value: &Value<'_>) -> Option<String> {
    let millis = value.whole(0..=86_400_000)?;
    Some(if millis.is_multiple_of(1000) {
        format!("\"{}s\"", millis / 1000)
    } else {
        format!("\"{millis}ms\"")
    })
}

pub(super) fn seconds(value: &Value<'_>) -> Option<String> {
    Some(format!("\"{}s\"", value.whole(1..=31_536_000)?))
}

pub(super) fn number(value: &Value<'_>) -> Option<String> {
    Some(value.whole(1..=10_000_000)?.to_string())
}

pub(super) fn size(value: &Value<'_>) -> Option<String> {
    Some(format!("\"{}B\"", value.whole(1..=1 << 40)?))
}

pub(super) fn socket(value: &Value<'_>) -> Option<String> {
    let text = as_text(value)?;
    let parsed = text.parse::<SocketAddr>();
    let checked = parsed.map_err(|_| format!("`{text}` is not an address such as 127.0.0.1:8080"));
    value.check(checked)?;
    Some(text.to_owned())
}

pub(super) fn text(value: &Value<'_>) -> Option<String> {
    as_text(value).map(str::to_owned)
}

/// A key that must be there.
pub(super) fn required(
    table: &mut Table<'_>,
    key: &'static str,
    hint: &str,
    convert: impl FnOnce(&Value<'_>) -> Option<String>,
) -> Option<String> {
    if let Some(value) = table.take_value(key) {
        return convert(&value);
    }
    table.missing(key, hint);
    None
}
