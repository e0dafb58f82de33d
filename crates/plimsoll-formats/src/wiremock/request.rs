//! The request matcher of a mapping.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use super::pattern::{Pattern, pattern};
use super::{Notes, table, text};

/// The matcher of a request's URL.
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

/// The location of a field.
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
    /// It is the address of the client.
    Client,
    /// It is the scheme of the URL.
    Scheme,
    /// It is the host of the URL.
    Host,
    /// It is the port of the URL.
    Port,
}

/// The matcher of a field.
#[derive(Debug, Clone, PartialEq)]
pub struct MappingField {
    /// Its location.
    pub place: FieldPlace,
    /// Its name.
    pub name: String,
    /// The matcher of its value.
    pub pattern: Pattern,
}

/// The matcher of a part of multipart content.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct MappingPart {
    /// Its name in the form.
    pub name: Option<String>,
    /// The name of its file.
    pub file_name: Option<String>,
    /// True if every part has to match; else one is enough.
    pub is_every: bool,
    /// Fields of its header.
    pub headers: Vec<MappingField>,
    /// Its content.
    pub bodies: Vec<Pattern>,
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
    for (key, place) in [
        ("clientIp", FieldPlace::Client),
        ("scheme", FieldPlace::Scheme),
        ("host", FieldPlace::Host),
        ("port", FieldPlace::Port),
    ] {
        let found = match request.remove(key) {
            None | Some(Value::Null) => continue,
            // Scheme and port are given as they are.
            Some(Value::String(text)) => Some(Pattern::Equal(text, key == "host")),
            Some(Value::Number(number)) => Some(Pattern::Equal(number.to_string(), false)),
            Some(value) => pattern(value, &format!("request.{key}"), notes),
        };
        fields.extend(found.map(|pattern| MappingField {
            place,
            name: String::new(),
            pattern,
        }));
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
            // The name of a scheme has no case (RFC 9110, section 11.1).
            pattern: Pattern::Matches(format!("(?i:Basic) {}", credentials.replace('+', "\\+"))),
        });
    }
    fields
}

/// - `at`: the place of the list, whose last key is the list's.
pub(super) fn bodies(
    request: &mut Map<String, Value>,
    at: &str,
    notes: &mut Notes,
) -> Vec<Pattern> {
    match request.remove("bodyPatterns") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(all)) => (1..)
            .zip(all)
            .filter_map(|(number, value)| pattern(value, &format!("{at}[{number}]"), notes))
            .collect(),
        Some(_) => notes.wrong(at, "must be an array").unwrap_or_default(),
    }
}

pub(super) fn parts(request: &mut Map<String, Value>, notes: &mut Notes) -> Vec<MappingPart> {
    let all = match request.remove("multipartPatterns") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(all)) => all,
        Some(_) => notes
            .wrong("request.multipartPatterns", "must be an array")
            .unwrap_or_default(),
    };
    let all = (1..).zip(all).filter_map(|(number, value)| {
        let at = format!("request.multipartPatterns[{number}]");
        match value {
            Value::Object(part) => part_of(part, &at, notes),
            _ => notes.wrong(&at, "must be an object"),
        }
    });
    // One that says nothing is met by everything.
    let says = |part: &MappingPart| {
        *part
            != MappingPart {
                is_every: part.is_every,
                ..MappingPart::default()
            }
    };
    all.filter(says).collect()
}

fn part_of(mut part: Map<String, Value>, at: &str, notes: &mut Notes) -> Option<MappingPart> {
    let before = format!("{at}.");
    let name = text(&mut part, "name", &before, notes);
    let file_name = text(&mut part, "fileName", &before, notes);
    let kind = text(&mut part, "matchingType", &before, notes);
    let is_every = match kind.as_deref().map(str::to_ascii_uppercase).as_deref() {
        None | Some("ANY") => false,
        Some("ALL") => true,
        _ => notes.wrong(&format!("{at}.matchingType"), "must be ANY or ALL")?,
    };
    let mut headers = Vec::new();
    for (name, value) in table(&mut part, "headers", &before, notes) {
        let found = pattern(value, &format!("{at}.headers.{name}"), notes);
        headers.extend(found.map(|pattern| MappingField {
            place: FieldPlace::Header,
            name,
            pattern,
        }));
    }
    let bodies = bodies(&mut part, &format!("{at}.bodyPatterns"), notes);
    for key in part.keys() {
        let message = "this condition is not known here, so the mapping is left out";
        notes.wrong::<()>(&format!("{at}.{key}"), message);
    }
    Some(MappingPart {
        name,
        file_name,
        is_every,
        headers,
        bodies,
    })
}
