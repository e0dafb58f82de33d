//! What a rule answers.

use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use http::header::{HeaderName, HeaderValue};
use plimsoll_formats::json5_to_json;
use plimsoll_model::document::{Table, Value, as_text};

use super::set::Context;
use crate::folder::contents;
use crate::reply::{Content, RECORDS, Reply, ReplyFile};

/// `respond`
pub(super) fn compile(mut table: Table<'_>, place: &Context) -> Option<Reply> {
    let status = status(&mut table);
    let mut fields = Some(Vec::new());
    if let Some(mut headers) = table.table("headers") {
        let all = headers
            .rest()
            .into_iter()
            .map(|(name, value)| field(&name, &value));
        // Every mistake is noted before it is known that there was one.
        fields = all.collect::<Vec<_>>().into_iter().collect();
    }
    let delay = milliseconds(&mut table);
    let records = table.text("csv_records_key");
    let content = content(&mut table, place, records);
    let has_content = ["file_path", "text", "json"]
        .iter()
        .any(|key| table.was_given(key));
    if table.was_given("file_path") && table.was_given("status") {
        table.wrong("`status` cannot be given beside `file_path`", None);
    }
    let may_have_content = status.is_none_or(|status| {
        ![
            StatusCode::NO_CONTENT,
            StatusCode::RESET_CONTENT,
            StatusCode::NOT_MODIFIED,
        ]
        .contains(&status)
    });
    if has_content && !may_have_content {
        table.wrong("a response of that status has no content", None);
    }
    if !has_content && !table.was_given("status") {
        let hint = "one of file_path, text and json, or a status";
        table.wrong("nothing to answer", Some(hint.to_owned()));
    }
    table.finish();
    Some(Reply {
        status,
        fields: fields?,
        content: content?,
        delay: delay.unwrap_or(place.delay),
    })
}

fn status(table: &mut Table<'_>) -> Option<StatusCode> {
    let status = table.count("status", 200..=599)?;
    StatusCode::from_u16(u16::try_from(status).ok()?).ok()
}

/// `delay_response_milliseconds`
pub(super) fn milliseconds(table: &mut Table<'_>) -> Option<Duration> {
    let milliseconds = table.integer("delay_response_milliseconds", 0..=i64::from(u32::MAX))?;
    Some(Duration::from_millis(u64::try_from(milliseconds).ok()?))
}

fn field(name: &str, value: &Value<'_>) -> Option<(HeaderName, HeaderValue)> {
    let name = value
        .check(HeaderName::from_bytes(name.as_bytes()).map_err(|_| {
            format!("`{name}` contains a character that header names may not have")
        }))?;
    if matches!(
        name.as_str(),
        "content-length" | "transfer-encoding" | "connection" | "date"
    ) {
        return value.wrong("is set by the server and cannot be given");
    }
    let text = as_text(value)?;
    let text = HeaderValue::from_str(text).map_err(|_| "contains a control character");
    Some((name, value.check(text)?))
}

fn content(table: &mut Table<'_>, context: &Context, records: Option<String>) -> Option<Content> {
    let mut given = Vec::new();
    if let Some(value) = table.take("file_path") {
        given.push(file(&value, context, records));
    }
    if let Some(value) = table.take("text") {
        let kind = HeaderValue::from_static("text/plain; charset=utf-8");
        given.push(
            value
                .text()
                .map(|text| Content::Bytes(kind, Bytes::from(text))),
        );
    }
    if let Some(value) = table.take("json") {
        given.push(json(&value));
    }
    if given.len() > 1 {
        table.wrong("more than one of file_path, text and json", None);
        return None;
    }
    given.pop().unwrap_or(Some(Content::Empty))
}

fn json(value: &Value<'_>) -> Option<Content> {
    let text = as_text(value)?;
    let kind = HeaderValue::from_static("application/json");
    // What is JSON already is sent as it was written.
    let json = if serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok() {
        text.to_owned()
    } else {
        value.check(json5_to_json(text).map_err(|error| format!("is no JSON: {error}")))?
    };
    Some(Content::Bytes(kind, Bytes::from(json)))
}

fn file(value: &Value<'_>, context: &Context, records: Option<String>) -> Option<Content> {
    let text = as_text(value)?;
    let root = context.root.clone()?;
    let path = root.join(text.trim_start_matches('/'));
    let Ok(found) = path.canonicalize() else {
        return value.wrong(format!("there is no file {}", path.display()));
    };
    if !found.starts_with(&root) {
        return value.wrong(format!(
            "{} lies outside of {}",
            path.display(),
            root.display()
        ));
    }
    if !found.is_file() {
        return value.wrong(format!("{} is not a file", path.display()));
    }
    let records = records.unwrap_or_else(|| RECORDS.to_owned());
    let extension = found.extension().unwrap_or_default().to_ascii_lowercase();
    if extension == "json" {
        let text = std::fs::read(&found).unwrap_or_default();
        let checked = serde_json::from_slice::<serde::de::IgnoredAny>(&text);
        value.check(checked.map_err(|error| format!("{} is no JSON: {error}", path.display())))?;
    } else if extension == "json5" || extension == "csv" {
        value.check(contents::read(&found, &records))?;
    }
    Some(Content::File(ReplyFile {
        path,
        root,
        records,
    }))
}
