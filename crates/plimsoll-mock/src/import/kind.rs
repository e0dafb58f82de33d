//! Recognises foreign files by their content.

use std::fs;
use std::io::Read as _;
use std::path::Path;

use plimsoll_formats::Remark;
use plimsoll_formats::mockoon::is_export;
use plimsoll_formats::postman::is_collection;
use serde_json::Value;

/// A kind of foreign file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForeignKind {
    /// Mappings of WireMock.
    WireMock,
    /// An archive of HTTP exchanges (HAR).
    Har,
    /// An environment of Mockoon.
    Mockoon,
    /// An OpenAPI document.
    OpenApi,
    /// The `db.json` of json-server.
    JsonServer,
    /// A collection of Postman.
    Postman,
}

impl ForeignKind {
    /// Name of the format.
    pub const fn name(self) -> &'static str {
        match self {
            Self::WireMock => "WireMock",
            Self::Har => "HAR",
            Self::Mockoon => "Mockoon",
            Self::OpenApi => "OpenAPI",
            Self::JsonServer => "json-server",
            Self::Postman => "Postman",
        }
    }
}

/// Whether a file is certainly none of ours, by how it begins: a folder, JSON, or YAML.
pub fn is_foreign(path: &Path) -> bool {
    if path.is_dir() {
        return true;
    }
    let mut beginning = Vec::new();
    let read =
        fs::File::open(path).and_then(|file| file.take(BEGINNING).read_to_end(&mut beginning));
    if read.is_err() {
        return false;
    }
    let text = String::from_utf8_lossy(&beginning);
    let text = text.trim_start_matches('\u{feff}');
    let mut lines = text.lines().map(str::trim_end);
    let first = lines.find(|line| !line.is_empty() && !line.starts_with(['#', '-', '%']));
    first.is_some_and(|line| {
        let name = line.split(':').next().unwrap_or_default();
        let is_name = !name.is_empty() && name.bytes().all(|it| it.is_ascii_alphanumeric());
        line.trim_start().starts_with('{') || is_name && name.len() < line.len()
    })
}

/// The bytes of a file that decide its kind.
const BEGINNING: u64 = 4096;

/// The kind of a file or a folder; fails with the reason if it has no known kind.
pub(super) fn kind_of(path: &Path) -> Result<ForeignKind, Remark> {
    if path.is_dir() {
        if path.join("mappings").is_dir() || path.file_name().is_some_and(|it| it == "mappings") {
            return Ok(ForeignKind::WireMock);
        }
        return Err(Remark::whole("is a folder without a folder `mappings`")
            .hint("of folders, those of WireMock are read"));
    }
    let bytes =
        fs::read(path).map_err(|error| Remark::whole(format!("cannot be read: {error}")))?;
    let text = String::from_utf8(bytes).map_err(|_| Remark::whole("is not UTF-8"))?;
    let text = text.trim_start_matches('\u{feff}').trim_start();
    of_text(text)
}

fn of_text(text: &str) -> Result<ForeignKind, Remark> {
    let unknown = || {
        Remark::whole("is nothing that is known here")
            .hint("known are mappings of WireMock, OpenAPI documents, HAR files, environments of Mockoon, collections of Postman and the db.json of json-server")
    };
    if !text.starts_with('{') {
        let keys = ["openapi", "swagger"];
        let is_openapi = text.lines().any(|line| {
            let key = line.split_once(':').map(|(key, _)| key.trim_end());
            key.is_some_and(|key| keys.contains(&key.trim_matches(['"', '\''])))
        });
        return is_openapi
            .then_some(ForeignKind::OpenApi)
            .ok_or_else(unknown);
    }
    let value: Value = serde_json::from_str(text)
        .map_err(|error| Remark::line(error.line(), format!("is not JSON: {error}")))?;
    let is = |key: &str, is_kind: fn(&Value) -> bool| value.get(key).is_some_and(is_kind);
    // A database of json-server may have tables of any name, so a name alone decides nothing.
    if is("mappings", is_mappings)
        || is("request", Value::is_object) && is("response", Value::is_object)
    {
        return Ok(ForeignKind::WireMock);
    }
    let log = value.get("log").and_then(|log| log.get("entries"));
    if log.is_some_and(Value::is_array) {
        return Ok(ForeignKind::Har);
    }
    if is("openapi", is_version) || is("swagger", is_version) {
        return Ok(ForeignKind::OpenApi);
    }
    if is("routes", is_routes) || is_export(&value) {
        return Ok(ForeignKind::Mockoon);
    }
    if is_collection(&value) {
        return Ok(ForeignKind::Postman);
    }
    if is_database(&value) {
        return Ok(ForeignKind::JsonServer);
    }
    Err(unknown())
}

/// Whether a value is a list of mappings.
fn is_mappings(value: &Value) -> bool {
    let mappings = value.as_array();
    mappings.is_some_and(|it| it.iter().all(|it| it.get("request").is_some()))
}

/// Whether a value is the list of an environment's routes.
fn is_routes(value: &Value) -> bool {
    let routes = value.as_array();
    routes.is_some_and(|it| it.iter().all(|it| it.get("responses").is_some()))
}

/// Whether a value is a version: `"3.1.0"`, or `2.0` by mistake.
fn is_version(value: &Value) -> bool {
    value.is_string() || value.is_number()
}

/// Whether a value is an object of lists, or of objects. The rows of lists may be anything.
fn is_database(value: &Value) -> bool {
    let Some(tables) = value.as_object().filter(|tables| !tables.is_empty()) else {
        return false;
    };
    tables.values().any(Value::is_array) || tables.values().all(Value::is_object)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_known_by_what_it_holds() {
        for (text, expected) in [
            (
                r#"{"posts": [{"id": 1}], "profile": {"name": "x"}}"#,
                Some(ForeignKind::JsonServer),
            ),
            (r#"{"posts": []}"#, Some(ForeignKind::JsonServer)),
            (
                r#"{"profile": {"name": "x"}}"#,
                Some(ForeignKind::JsonServer),
            ),
            (r#"{"posts": [1]}"#, Some(ForeignKind::JsonServer)),
            (
                r#"{"posts": [{"a": 1}], "version": 3}"#,
                Some(ForeignKind::JsonServer),
            ),
            (r#"{"name": "x", "scripts": {}}"#, None),
            ("{}", None),
            (r#"{"mappings": []}"#, Some(ForeignKind::WireMock)),
            (
                r#"{"mappings": [{"request": {}}]}"#,
                Some(ForeignKind::WireMock),
            ),
            (
                r#"{"request": {}, "response": {}}"#,
                Some(ForeignKind::WireMock),
            ),
            (r#"{"routes": []}"#, Some(ForeignKind::Mockoon)),
            (
                r#"{"routes": [{"endpoint": "a", "responses": []}]}"#,
                Some(ForeignKind::Mockoon),
            ),
            (
                r#"{"openapi": "3.1.0", "paths": {}}"#,
                Some(ForeignKind::OpenApi),
            ),
            // Tables with the names of others' keys.
            (
                r#"{"routes": [{"path": "/a", "id": 1}]}"#,
                Some(ForeignKind::JsonServer),
            ),
            (
                r#"{"mappings": [{"from": 1}]}"#,
                Some(ForeignKind::JsonServer),
            ),
            (
                r#"{"request": [{"id": 1}], "response": []}"#,
                Some(ForeignKind::JsonServer),
            ),
            (r#"{"swagger": [{"id": 1}]}"#, Some(ForeignKind::JsonServer)),
            (
                r#"{"info": {"name": "c"}, "item": []}"#,
                Some(ForeignKind::Postman),
            ),
            ("swagger: 2.0", Some(ForeignKind::OpenApi)),
        ] {
            assert_eq!(of_text(text).ok(), expected, "{text}");
        }
    }
}
