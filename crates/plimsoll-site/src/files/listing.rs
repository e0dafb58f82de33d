//! Directory listings, as a page or as JSON.

use std::fmt::Write;
use std::sync::LazyLock;
use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD as BASE64;
use bytes::Bytes;
use http::StatusCode;
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderMap, HeaderValue, VARY,
};
use plimsoll_model::{ByteSize, escaped_html, grouped};
use plimsoll_server::{Request, Response, ResponseBody};
use ring::digest::{SHA256, digest};
use serde_json::json;

use crate::files::live::Live;
use crate::files::path::escaped;
use crate::files::tree::Listed;

/// The order of entries, from the query: `?sort=size&order=desc`. Directories come first in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Sorting {
    column: Column,
    is_descending: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Column {
    Name,
    Size,
    Modified,
}

impl Column {
    const ALL: [(Self, &'static str, &'static str); 3] = [
        (Self::Name, "name", "Name"),
        (Self::Size, "size", "Size"),
        (Self::Modified, "modified", "Modified"),
    ];
}

impl Sorting {
    fn from_query(query: Option<&str>) -> Self {
        let value = |key| {
            let mut pairs = query.unwrap_or_default().split('&');
            pairs.find_map(|pair| pair.strip_prefix(key)?.strip_prefix('='))
        };
        let wanted = value("sort").unwrap_or_default();
        let column = Column::ALL.into_iter().find(|(_, name, _)| *name == wanted);
        Self {
            column: column.map_or(Column::Name, |(column, ..)| column),
            is_descending: value("order") == Some("desc"),
        }
    }

    fn sort(self, entries: &mut [Listed]) {
        entries.sort_by(|one, other| {
            let by_name = one.name.cmp(&other.name);
            let order = match self.column {
                Column::Name => by_name,
                Column::Size => one.length.cmp(&other.length),
                Column::Modified => one.modified.cmp(&other.modified),
            };
            let order = if self.is_descending {
                order.reverse()
            } else {
                order
            };
            let by_kind = other.is_directory.cmp(&one.is_directory);
            by_kind.then(order).then(by_name)
        });
    }

    /// The row of headings, each a link that sorts by its column, and the other way if that is done already.
    fn headings(self) -> String {
        let cells = Column::ALL.map(|(column, name, shown)| {
            let is_sorted = column == self.column;
            let order = if is_sorted && !self.is_descending {
                "desc"
            } else {
                "asc"
            };
            let sorted = match (is_sorted, self.is_descending) {
                (false, _) => "",
                (true, false) => " aria-sort=\"ascending\"",
                (true, true) => " aria-sort=\"descending\"",
            };
            format!("<th{sorted}><a href=\"?sort={name}&amp;order={order}\">{shown}</a></th>")
        });
        format!("<tr>{}</tr>\n", cells.concat())
    }
}

/// A listing of `directory`, as JSON for clients that accept JSON but not HTML.
///
/// - `live`: the page loads itself again when something has changed.
pub(crate) fn respond(
    request: &Request<'_>,
    directory: &str,
    mut entries: Vec<Listed>,
    live: Option<&Live>,
) -> Response {
    let sorting = Sorting::from_query(request.query);
    sorting.sort(&mut entries);
    let accept = request.header("accept").unwrap_or_default();
    let accept = String::from_utf8_lossy(accept).to_ascii_lowercase();
    let wants_json = accept.contains("application/json") && !accept.contains("text/html");
    let response = Response::new(StatusCode::OK);
    let (kind, text, response) = if wants_json {
        ("application/json", as_json(&entries), response)
    } else {
        let mut fields = HeaderMap::from_iter([(CONTENT_SECURITY_POLICY, POLICY.clone())]);
        if live.is_some() {
            Live::allow(&mut fields);
        }
        let policy = fields.remove(CONTENT_SECURITY_POLICY);
        let policy = policy.unwrap_or_else(|| POLICY.clone());
        let response = response.with_field(CONTENT_SECURITY_POLICY, policy);
        let tag = live.map(Live::tag).unwrap_or_default();
        let html = as_html(directory, &entries, sorting, &tag);
        ("text/html; charset=utf-8", html, response)
    };
    let cache_control = if live.is_some() {
        "no-store, no-transform"
    } else {
        "no-cache"
    };
    response
        .with_field(CONTENT_TYPE, HeaderValue::from_static(kind))
        .with_field(CACHE_CONTROL, HeaderValue::from_static(cache_control))
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
td,th{padding:.25em 0 .25em 1.5em;border-top:1px solid color-mix(in srgb,currentColor 15%,transparent);\
text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}\
td:first-child,th:first-child{padding-left:0;text-align:left;white-space:normal;overflow-wrap:anywhere;width:100%}\
a{text-decoration:none}a:hover{text-decoration:underline}\
th{border:0;font-weight:600}th[aria-sort=ascending] a::after{content:\" \\2191\"}\
th[aria-sort=descending] a::after{content:\" \\2193\"}\
@media(max-width:32em){td:last-child,th:last-child{display:none}}";

/// Nothing but the style above, whatever names of files may look like.
static POLICY: LazyLock<HeaderValue> = LazyLock::new(|| {
    let hash = BASE64.encode(digest(&SHA256, STYLE.as_bytes()));
    let policy = format!(
        "default-src 'none'; style-src 'sha256-{hash}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    );
    HeaderValue::from_str(&policy).expect("base64 is made of letters")
});

fn as_html(directory: &str, entries: &[Listed], sorting: Sorting, script: &str) -> String {
    let title = escaped_html(&format!("/{directory}"));
    let mut rows = sorting.headings();
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
            let (shown, exact) = (ByteSize(entry.length), grouped(entry.length));
            format!("<span title=\"{exact} bytes\">{shown}</span>")
        };
        let modified = entry.modified.and_then(date).unwrap_or_default();
        // To the minute, for people: 2026-11-22 03:47.
        let minute = modified.replace('T', " ");
        let minute = minute.get(..16).unwrap_or_default();
        writeln!(
            rows,
            "<tr><td><a href=\"{}\">{}{slash}</a></td><td>{size}</td>\
             <td><time datetime=\"{modified}\">{minute}</time></td></tr>",
            escaped_html(&link),
            escaped_html(&entry.name),
        )
        .expect("a String takes whatever is written");
    }
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>{title}</title>\n\
         <style>{STYLE}</style>\n<h1>{title}</h1>\n<table>\n{rows}</table>\n{script}</html>\n"
    )
}

fn date(seconds: u64) -> Option<String> {
    let time = SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds))?;
    // The year 9999 is the last that has a form.
    (seconds < 253_402_300_800).then(|| humantime::format_rfc3339_seconds(time).to_string())
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
        let html = as_html("x", &entries, Sorting::from_query(None), "");
        let link = "<a href=\"./%3Ca%22&amp;javascript:x\">&lt;a&quot;&amp;javascript:x</a>";
        assert!(html.contains(link), "{html}");
        assert!(
            html.contains(
                "<td><span title=\"5 bytes\">5 B</span></td><td><time datetime=\"1970-01-01T00:00:00Z\">1970-01-01 00:00</time></td>"
            ),
            "{html}"
        );
        let json = as_json(&entries);
        assert!(json.contains("\"size_bytes\":5"), "{json}");
    }

    #[test]
    fn entries_are_sorted_by_what_the_query_says() {
        let entry = |name: &str, is_directory, length, modified| Listed {
            name: name.to_owned(),
            is_directory,
            length,
            modified: Some(modified),
        };
        for (query, expected) in [
            (None, "d a b c"),
            (Some("sort=name&order=desc"), "d c b a"),
            (Some("sort=size"), "d c a b"),
            (Some("order=desc&sort=modified"), "d a c b"),
            (Some("sort=nothing"), "d a b c"),
        ] {
            let mut entries = [
                entry("a", false, 2, 30),
                entry("b", false, 3, 10),
                entry("c", false, 1, 20),
                entry("d", true, 0, 0),
            ];
            Sorting::from_query(query).sort(&mut entries);
            let names: Vec<_> = entries.iter().map(|entry| entry.name.as_str()).collect();
            assert_eq!(names.join(" "), expected, "{query:?}");
        }
        let headings = Sorting::from_query(Some("sort=size")).headings();
        assert!(
            headings.contains("<th aria-sort=\"ascending\"><a href=\"?sort=size&amp;order=desc\">"),
            "{headings}"
        );
    }
}
