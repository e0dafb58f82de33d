//! Placeholders, durations and sizes of Caddy as those of `plimsoll up`.

use super::untranslated::Untranslated;
use plimsoll_model::document::toml_string;
use plimsoll_model::{parse_byte_size, parse_duration};

/// Placeholders that have a place of one and the same value.
const PLACES: [(&str, &str); 26] = [
    ("host", "{host}"),
    ("http.request.host", "{host}"),
    ("hostport", "{authority}"),
    ("http.request.hostport", "{authority}"),
    ("uri", "{target}"),
    ("http.request.uri", "{target}"),
    ("path", "{path}"),
    ("http.request.uri.path", "{path}"),
    ("query", "{query.string}"),
    ("http.request.uri.query", "{query.string}"),
    ("?query", "{query}"),
    ("method", "{method}"),
    ("http.request.method", "{method}"),
    ("scheme", "{scheme}"),
    ("http.request.scheme", "{scheme}"),
    ("remote_host", "{client}"),
    ("http.request.remote.host", "{client}"),
    ("client_ip", "{client}"),
    ("http.vars.client_ip", "{client}"),
    ("remote_port", "{client.port}"),
    ("remote", "{peer}"),
    ("port", "{port}"),
    ("http.request.uuid", "{request.id}"),
    ("uuid", "{request.id}"),
    ("tls_version", "{tls.version}"),
    ("tls_client_subject", "{tls.client.subject}"),
];

/// A text with placeholders as one with places; fails with the first that has no counterpart.
///
/// - `has_groups`: `{re.1}` and `{re.name.1}` stand for groups of the route's expression.
pub(super) fn with_places(text: &str, has_groups: bool) -> Result<String, Untranslated> {
    let mut made = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        made.push_str(before);
        let Some((name, behind)) = after.split_once('}') else {
            made.push('{');
            rest = after;
            continue;
        };
        made.push_str(
            &place(name, has_groups)
                .ok_or_else(|| Untranslated::Placeholder(format!("{{{name}}}")))?,
        );
        rest = behind;
    }
    made.push_str(rest);
    Ok(made)
}

fn place(name: &str, has_groups: bool) -> Option<String> {
    if let Some((_, place)) = PLACES.iter().find(|(known, _)| *known == name) {
        return Some((*place).to_owned());
    }
    for (prefix, ours) in [
        ("header.", "header"),
        ("http.request.header.", "header"),
        ("query.", "query"),
        ("http.request.uri.query.", "query"),
        ("cookie.", "cookie"),
        ("http.request.cookie.", "cookie"),
    ] {
        if let Some(rest) = name.strip_prefix(prefix) {
            return Some(format!("{{{ours}:{rest}}}"));
        }
    }
    let group = name
        .strip_prefix("re.")
        .or_else(|| name.strip_prefix("http.regexp."))?;
    let number = group.rsplit('.').next()?;
    (has_groups && number.parse::<u8>().is_ok()).then(|| format!("{{{number}}}"))
}

/// A duration of Go, with days, as a TOML text.
pub(super) fn duration(text: &str) -> Option<String> {
    let days = text
        .strip_suffix('d')
        .and_then(|days| days.parse::<u32>().ok());
    let text = days.map_or_else(
        || text.to_owned(),
        |days| format!("{}h", days.saturating_mul(24)),
    );
    parse_duration(&text).ok()?;
    Some(toml_string(&text))
}

/// A size such as `10MB` or `1GiB` as a TOML text.
pub(super) fn size(text: &str) -> Option<String> {
    parse_byte_size(text).ok()?;
    Some(toml_string(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_have_places_or_are_named() {
        for (text, expected) in [
            ("https://{host}{uri}", Ok("https://{host}{target}")),
            ("{header.X-A}/{query.b}", Ok("{header:X-A}/{query:b}")),
            ("{re.2}", Ok("{2}")),
            ("{re.name.1}", Ok("{1}")),
            ("a { b", Ok("a { b")),
            ("{http.vars.x}", Err("`{http.vars.x}` has no counterpart")),
        ] {
            let found = with_places(text, true).map_err(|error| error.to_string());
            assert_eq!(
                found.as_deref(),
                expected.map_err(str::to_owned).as_ref().map(|it| *it)
            );
        }
        assert_eq!(duration("2d").as_deref(), Some("\"48h\""));
    }
}
