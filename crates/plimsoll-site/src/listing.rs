//! What lies in a directory, as a page or as JSON.

use std::fmt::Write;
use std::sync::LazyLock;
use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD as BASE64;
use bytes::Bytes;
use http::StatusCode;
use http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderValue, VARY};
use plimsoll_model::grouped;
use plimsoll_server::{Request, Response, ResponseBody};
use ring::digest::{SHA256, digest};
use serde_json::json;

use crate::path::escaped;
use crate::tree::Listed;

/// A listing of `directory`, as JSON for whoever accepts that but not HTML.
pub(crate) fn respond(
    request: &Request<'_>,
    directory: &str,
    mut entries: Vec<Listed>,
) -> Response {
    entries.sort_by(|one, other| {
        (!one.is_directory, &one.name).cmp(&(!other.is_directory, &other.name))
    });
    let accept = request.header("accept").unwrap_or_default();
    let accept = String::from_utf8_lossy(accept).to_ascii_lowercase();
    let wants_json = accept.contains("application/json") && !accept.contains("text/html");
    let response = Response::new(StatusCode::OK);
    let (kind, text, response) = if wants_json {
        ("application/json", as_json(&entries), response)
    } else {
        let response = response.with_field(CONTENT_SECURITY_POLICY, POLICY.clone());
        let html = as_html(directory, &entries);
        ("text/html; charset=utf-8", html, response)
    };
    response
        .with_field(CONTENT_TYPE, HeaderValue::from_static(kind))
        .with_field(CACHE_CONTROL, HeaderValue::from_static("no-cache"))
        .with_field(VARY, HeaderValue::from_static("accept"))
        .with_body(ResponseBody::Bytes(Bytes::from(text)))
}

fn as_json(entries: &[Listed]) -> String {
    let entries: Vec<_> = entries
        .iter()
        .map(|entry| {
            json!({
                "name": entry.name,
                "type": if entry.is_directory { "directory" } else { "file" },
                "size_bytes": (!entry.is_directory).then_some(entry.length),
                "modified": entry.modified.and_then(date),
            })
        })
        .collect();
    format!("{}\n", json!(entries))
}

const STYLE: &str = "\
:root{color-scheme:light dark}\
body{font:16px/1.5 system-ui,sans-serif;margin:2em auto;max-width:52em;padding:0 1em}\
h1{font-size:1.3em;overflow-wrap:anywhere}\
table{border-collapse:collapse;width:100%}\
td{padding:.25em 0 .25em 1.5em;border-top:1px solid color-mix(in srgb,currentColor 15%,transparent);\
text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}\
td:first-child{padding-left:0;text-align:left;white-space:normal;overflow-wrap:anywhere;width:100%}\
a{text-decoration:none}a:hover{text-decoration:underline}\
@media(max-width:32em){td:last-child{display:none}}";

/// Nothing but the style above, whatever names of files may look like.
static POLICY: LazyLock<HeaderValue> = LazyLock::new(|| {
    let hash = BASE64.encode(digest(&SHA256, STYLE.as_bytes()));
    let policy = format!(
        "default-src 'none'; style-src 'sha256-{hash}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    );
    HeaderValue::from_str(&policy).expect("base64 is made of letters")
});

fn as_html(directory: &str, entries: &[Listed]) -> String {
    let title = escape(&format!("/{directory}"));
    let mut rows = String::new();
    if !directory.is_empty() {
        rows.push_str("<tr><td><a href=\"../\">../</a></td><td></td><td></td></tr>\n");
    }
    for entry in entries {
        let slash = if entry.is_directory { "/" } else { "" };
        // Relative to the directory, and never taken for a scheme.
        let link = format!("./{}{slash}", escaped(&entry.name));
        let size = if entry.is_directory {
            String::new()
        } else {
            grouped(entry.length)
        };
        let modified = entry.modified.and_then(date).unwrap_or_default();
        // To the minute, for people: 2026-11-22 03:47.
        let minute = modified.replace('T', " ");
        let minute = minute.get(..16).unwrap_or_default();
        writeln!(
            rows,
            "<tr><td><a href=\"{}\">{}{slash}</a></td><td>{size}</td>\
             <td><time datetime=\"{modified}\">{minute}</time></td></tr>",
            escape(&link),
            escape(&entry.name),
        )
        .expect("a String takes whatever is written");
    }
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>{title}</title>\n\
         <style>{STYLE}</style>\n<h1>{title}</h1>\n<table>\n{rows}</table>\n</html>\n"
    )
}

fn date(seconds: u64) -> Option<String> {
    let time = SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds))?;
    // The year 9999 is the last that has a form.
    (seconds < 253_402_300_800).then(|| humantime::format_rfc3339_seconds(time).to_string())
}

/// Text within a page or an attribute.
fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_break_out() {
        let entries = [Listed {
            name: "<a\"&javascript:x".to_owned(),
            is_directory: false,
            length: 5,
            modified: Some(0),
        }];
        let html = as_html("x", &entries);
        let link = "<a href=\"./%3Ca%22&amp;javascript:x\">&lt;a&quot;&amp;javascript:x</a>";
        assert!(html.contains(link), "{html}");
        assert!(
            html.contains(
                "<td>5</td><td><time datetime=\"1970-01-01T00:00:00Z\">1970-01-01 00:00</time></td>"
            ),
            "{html}"
        );
        let json = as_json(&entries);
        assert!(json.contains("\"size_bytes\":5"), "{json}");
    }
}
