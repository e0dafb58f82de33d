//! `accessLog` as `[log]`.

use std::fmt::Write as _;

use plimsoll_model::document::toml_string;

use super::super::Notes;
use super::super::toml::Keys;
use super::model::Model;

/// Members of a line in JSON, with the names that Traefik has for them.
///
/// Source: Traefik's documentation, "Access Logs", "Available Fields". Times of Traefik are in nanoseconds, which there are none of here.
const MEMBERS: [(&str, &str); 15] = [
    ("StartUTC", "{time}"),
    ("ClientAddr", "{peer}"),
    ("ClientHost", "{client}"),
    ("ClientPort", "{client.port}"),
    ("RequestAddr", "{authority}"),
    ("RequestHost", "{host}"),
    ("RequestMethod", "{method}"),
    ("RequestPath", "{target}"),
    ("RequestProtocol", "{protocol}"),
    ("RequestScheme", "{scheme}"),
    ("DownstreamStatus", "{status}"),
    ("DownstreamContentSize", "{bytes}"),
    ("RouterName", "{route}"),
    ("ServiceName", "{upstream}"),
    ("ServiceURL", "{upstream.server}"),
];

/// Writes the log of all entry points.
pub(super) fn write(model: &Model, out: &mut String, notes: &mut Notes) {
    let node = model.fixed.get("accessLog");
    // `accessLog: {}` is one, and so is `accessLog: true` of an argument.
    if !node.is_there() || node.text() == Some("false") {
        return;
    }
    let place = model.place(node, "accessLog");
    let file = node.text_at("filePath").unwrap_or("-");
    let format = if node.text_at("format") == Some("json") {
        notes.add(
            &place,
            "lines have the members of Traefik that there are, and no `Duration`; without `format` they have plimsoll's own",
        );
        let mut members = Keys::default();
        for (name, place) in MEMBERS {
            members.text(name, place);
        }
        members.inline()
    } else {
        toml_string("combined")
    };
    for (key, _) in node.entries() {
        // Lines are written as soon as there is time.
        let known = ["filepath", "format", "bufferingsize", "addinternals"];
        if !known.contains(&key.to_ascii_lowercase().as_str()) {
            notes.add(&place, format!("`{key}` is left out"));
        }
    }
    let file = toml_string(file);
    write!(out, "\n[log]\nfile = {file}\nformat = {format}\n").ok();
}
