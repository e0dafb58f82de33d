//! What a mapping asks of a request.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use super::pattern::{Pattern, pattern};
use super::{Notes, table, text};

/// What the URL of a request must be.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum MappingUrl {
    /// Anything.
    #[default]
    Any,
    /// Path and query, equal.
    Equal(String),
    /// Path and query, wholly by a regular expression.
    Matches(String),
    /// The path, equal.
    Path(String),
    /// The path, wholly by a regular expression.
    PathMatches(String),
    /// The path, with places such as `{id}`.
    PathTemplate(String),
}

/// Where a field stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldPlace {
    /// In the header.
    Header,
    /// In the query.
    Query,
    /// Among the cookies.
    Cookie,
    /// In a form.
    Form,
    /// In the place of that name in the path.
    Path,
}

/// What a field must be.
#[derive(Debug, Clone, PartialEq)]
pub struct MappingField {
    /// Where it stands.
    pub place: FieldPlace,
    /// What it is called.
    pub name: String,
    /// What its value must be.
    pub pattern: Pattern,
}

/// The methods that it is for, and those that it is not for.
pub(super) fn methods(
    request: &mut Map<String, Value>,
    notes: &mut Notes,
) -> (Vec<String>, Vec<String>) {
    let texts = |value: Value| -> Option<Vec<String>> {
        let all = value.as_array()?.iter();
        all.map(|text| text.as_str().map(str::to_owned)).collect()
    };
    match request.remove("method") {
        None | Some(Value::Null) => (Vec::new(), Vec::new()),
        Some(Value::String(method)) => match method.as_str() {
            "GET_OR_HEAD" => (vec!["GET".to_owned(), "HEAD".to_owned()], Vec::new()),
            _ => (vec![method], Vec::new()),
        },
        Some(Value::Object(mut table)) => {
            let one_of = table.remove("oneOf").map(texts);
            let none_of = table.remove("noneOf").map(texts);
            match (one_of, none_of) {
                (Some(Some(methods)), None) if table.is_empty() => (methods, Vec::new()),
                (None, Some(Some(methods))) if table.is_empty() => (Vec::new(), methods),
                _ => notes
                    .wrong("request.method", "must have a list `oneOf` or `noneOf`")
                    .unwrap_or_default(),
            }
        }
        Some(_) => notes
            .wrong("request.method", "must be a text")
            .unwrap_or_default(),
    }
}

pub(super) fn url(request: &mut Map<String, Value>, notes: &mut Notes) -> MappingUrl {
    type Make = fn(String) -> MappingUrl;
    // The first one that is there counts.
    let forms: [(&str, Make); 5] = [
        ("url", MappingUrl::Equal),
        ("urlPattern", MappingUrl::Matches),
        ("urlPath", MappingUrl::Path),
        ("urlPathPattern", MappingUrl::PathMatches),
        ("urlPathTemplate", MappingUrl::PathTemplate),
    ];
    let mut url = None;
    for (key, make) in forms {
        let given = text(request, key, "request.", notes);
        if let (Some(given), None) = (given, &url) {
            url = Some(make(given));
        }
    }
    url.unwrap_or_default()
}

pub(super) fn fields(request: &mut Map<String, Value>, notes: &mut Notes) -> Vec<MappingField> {
    let places: [(&str, FieldPlace); 5] = [
        ("headers", FieldPlace::Header),
        ("queryParameters", FieldPlace::Query),
        ("cookies", FieldPlace::Cookie),
        ("formParameters", FieldPlace::Form),
        ("pathParameters", FieldPlace::Path),
    ];
    let mut fields = Vec::new();
    for (key, place) in places {
        for (name, value) in table(request, key, "request.", notes) {
            let found = pattern(value, &format!("request.{key}.{name}"), notes);
            fields.extend(found.map(|pattern| MappingField {
                place,
                name,
                pattern,
            }));
        }
    }
    for key in ["basicAuth", "basicAuthCredentials"] {
        if !request.contains_key(key) {
            continue;
        }
        let mut given = table(request, key, "request.", notes);
        let at = format!("request.{key}.");
        let user = text(&mut given, "username", &at, notes).unwrap_or_default();
        let password = text(&mut given, "password", &at, notes).unwrap_or_default();
        let credentials = STANDARD.encode(format!("{user}:{password}"));
        fields.push(MappingField {
            place: FieldPlace::Header,
            name: "authorization".to_owned(),
            pattern: Pattern::Equal(format!("Basic {credentials}"), false),
        });
    }
    fields
}

pub(super) fn bodies(request: &mut Map<String, Value>, notes: &mut Notes) -> Vec<Pattern> {
    match request.remove("bodyPatterns") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(all)) => (1..)
            .zip(all)
            .filter_map(|(number, value)| {
                pattern(value, &format!("request.bodyPatterns[{number}]"), notes)
            })
            .collect(),
        Some(_) => notes
            .wrong("request.bodyPatterns", "must be an array")
            .unwrap_or_default(),
    }
}
