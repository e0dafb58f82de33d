//! Answers with places that a request, chance and the clock fill.

pub mod content;

#[cfg(feature = "mock-import")]
pub(crate) mod handlebars;

#[cfg(not(feature = "mock-import"))]
#[path = "template/handlebars/none.rs"]
pub(crate) mod handlebars;

#[cfg(feature = "mock-import")]
pub(crate) mod dates;

#[cfg(not(feature = "mock-import"))]
#[path = "template/dates/none.rs"]
pub(crate) mod dates;

#[cfg_attr(
    not(feature = "mock-import"),
    expect(dead_code, reason = "only templates of other mock servers look it up")
)]
pub mod data;

pub mod fake;

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::UNIX_EPOCH;

use fastrand::Rng;
use plimsoll_formats::{Generator, Millionths, Part, Template};
use plimsoll_model::Clock;
use plimsoll_wire::SystemClock;
use serde_json::Value;

use crate::request::{RequestView, values};
use crate::rules::condition::json::DottedPath;
use crate::template::data::DataBuckets;
use crate::template::fake::Fake;
use crate::template::handlebars::Program;

/// Text with places, ready to be filled.
#[derive(Debug, Clone)]
pub struct TextTemplate(Filler);

#[derive(Debug, Clone)]
enum Filler {
    Places(Places),
    /// A template of another mock server, and whether it is for a field.
    Foreign(Box<Program>, Form),
}

/// Whose templates texts are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// Handlebars with WireMock's model of requests and its helpers.
    WireMock,
    /// Handlebars with Mockoon's helpers.
    Mockoon,
}

impl Dialect {
    /// The dialect of that name.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "wiremock" => Some(Self::WireMock),
            "mockoon" => Some(Self::Mockoon),
            _ => None,
        }
    }
}

/// A text with places of ours.
#[derive(Debug, Clone)]
struct Places {
    pieces: Vec<TemplatePart>,
    form: Form,
    chance: Chance,
}

/// The format of the text, which decides how values are escaped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// As they are.
    Text,
    /// Escaped within strings; elsewhere as JSON.
    Json,
    /// Without line feeds and the like.
    Field,
}

#[derive(Debug, Clone)]
enum TemplatePart {
    Text(String),
    /// And whether it stands in a string of JSON.
    Value(Source, bool),
    Generated(Generator, Arc<AtomicU64>),
}

/// Source of a value.
#[derive(Debug, Clone, PartialEq)]
enum Source {
    Method,
    Path,
    Url,
    Host,
    Peer,
    Body,
    Query(String),
    Header(String),
    Cookie(String),
    Form(String),
    Segment(usize),
    Json(DottedPath),
    Fake(Fake),
}

/// Random numbers, the same ones from the start with a seed.
#[derive(Debug, Clone, Default)]
pub enum Chance {
    /// Others each time.
    #[default]
    Free,
    /// Those of a seed, one after the other.
    Seeded(Arc<Mutex<Rng>>),
}

impl Chance {
    /// - `seed`: absent for other numbers each time.
    pub fn new(seed: Option<u64>) -> Self {
        match seed {
            None => Self::Free,
            Some(seed) => Self::Seeded(Arc::new(Mutex::new(Rng::with_seed(seed)))),
        }
    }

    /// Lets `take` have numbers.
    pub fn with<T>(&self, take: impl FnOnce(&mut Rng) -> T) -> T {
        match self {
            Self::Free => take(&mut Rng::new()),
            Self::Seeded(rng) => take(&mut rng.lock().unwrap_or_else(PoisonError::into_inner)),
        }
    }
}

/// Why a text cannot be filled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PlaceError(String);

impl TextTemplate {
    /// Finds the places of a text.
    ///
    /// - `names`: of segments of the path, with their numbers, for `request.path.NAME`.
    pub fn new(
        text: &str,
        form: Form,
        chance: Chance,
        names: &[(String, usize)],
    ) -> Result<Self, PlaceError> {
        let template = Template::parse(text).map_err(|error| PlaceError(error.to_string()))?;
        let mut is_in_string = false;
        let mut pieces = Vec::new();
        for part in template.parts() {
            pieces.push(match part {
                Part::Text(bytes) => {
                    let text = String::from_utf8_lossy(bytes).into_owned();
                    is_in_string = ends_in_string(&text, is_in_string);
                    TemplatePart::Text(text)
                }
                Part::Variable(name) => TemplatePart::Value(source(name, names)?, is_in_string),
                Part::Response(value) => {
                    let message = format!("`{value}` has no value: a mock sends no requests");
                    return Err(PlaceError(message));
                }
                Part::Generator(generator) => {
                    let first = match generator {
                        Generator::Counter { first, .. } => *first,
                        _ => 0,
                    };
                    TemplatePart::Generated(generator.clone(), Arc::new(AtomicU64::new(first)))
                }
            });
        }
        Ok(Self(Filler::Places(Places {
            pieces,
            form,
            chance,
        })))
    }

    /// The same of a template of another mock server.
    ///
    /// - `data`: what its helpers look up.
    pub fn foreign(
        text: &str,
        dialect: Dialect,
        form: Form,
        chance: &Chance,
        names: &[(String, usize)],
        data: &Arc<DataBuckets>,
    ) -> Result<Self, PlaceError> {
        let program = Program::new(text, dialect, chance, names, data)
            .map_err(|error| PlaceError(error.to_string()))?;
        Ok(Self(Filler::Foreign(Box::new(program), form)))
    }

    /// The text for one request; of a template that cannot be filled what is wrong with it.
    pub fn fill(&self, request: &RequestView<'_>) -> String {
        match &self.0 {
            Filler::Places(places) => places.fill(request),
            Filler::Foreign(program, form) => {
                let text = program
                    .fill(request)
                    .unwrap_or_else(|error| format!("[ERROR: {error}]"));
                if *form == Form::Field {
                    let plain = text
                        .chars()
                        .map(|it| if it.is_control() { ' ' } else { it });
                    return plain.collect();
                }
                text
            }
        }
    }

    /// The text with a number in every place, to check it before any request arrives.
    pub fn with_numbers(&self) -> String {
        match &self.0 {
            Filler::Places(places) => places.with_numbers(),
            Filler::Foreign(program, _) => program.to_string(),
        }
    }
}

impl Places {
    fn fill(&self, request: &RequestView<'_>) -> String {
        let mut text = String::new();
        for piece in &self.pieces {
            match piece {
                TemplatePart::Text(written) => text.push_str(written),
                TemplatePart::Generated(generator, counter) => {
                    text.push_str(&self.chance.with(|rng| generated(generator, counter, rng)));
                }
                TemplatePart::Value(source, is_in_string) => {
                    let value = self.chance.with(|rng| source.value(request, rng));
                    push(&mut text, self.form, value, *is_in_string);
                }
            }
        }
        text
    }

    fn with_numbers(&self) -> String {
        let pieces = self.pieces.iter().map(|piece| match piece {
            TemplatePart::Text(text) => text,
            _ => "0",
        });
        pieces.collect()
    }
}

/// The value of a place.
enum Filling {
    Nothing,
    Text(String),
    Json(Value),
}

fn push(text: &mut String, form: Form, value: Filling, is_in_string: bool) {
    match (form, value) {
        (Form::Json, Filling::Nothing) if !is_in_string => text.push_str("null"),
        (_, Filling::Nothing) => {}
        (Form::Json, value) => {
            let value = match value {
                Filling::Json(value) => value,
                Filling::Text(text) => Value::from(text),
                Filling::Nothing => Value::Null,
            };
            if is_in_string {
                let shown = plain(&value);
                let quoted = Value::from(shown).to_string();
                let inner = quoted.strip_prefix('"').and_then(|it| it.strip_suffix('"'));
                text.push_str(inner.unwrap_or_default());
            } else {
                text.push_str(&value.to_string());
            }
        }
        (form, value) => {
            let value = match value {
                Filling::Json(value) => plain(&value),
                Filling::Text(text) => text,
                Filling::Nothing => String::new(),
            };
            if form == Form::Field {
                text.extend(
                    value
                        .chars()
                        .map(|it| if it.is_control() { ' ' } else { it }),
                );
            } else {
                text.push_str(&value);
            }
        }
    }
}

/// A string as it is, everything else as JSON.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        value => value.to_string(),
    }
}

impl Source {
    fn value(&self, request: &RequestView<'_>, rng: &mut Rng) -> Filling {
        let some = |value: Option<&str>| {
            value.map_or(Filling::Nothing, |text| Filling::Text(text.to_owned()))
        };
        match self {
            Self::Method => some(Some(request.method)),
            Self::Path => some(Some(&request.path)),
            Self::Url => Filling::Text(match request.query {
                None => request.target_path.to_owned(),
                Some(query) => format!("{}?{query}", request.target_path),
            }),
            Self::Host => some(Some(request.authority)),
            Self::Peer => Filling::Text(request.peer.ip().to_string()),
            Self::Body => Filling::Text(String::from_utf8_lossy(request.body).into_owned()),
            Self::Query(name) => some(values(request.parameters(), name).next()),
            Self::Header(name) => some(request.header_text(name)),
            Self::Cookie(name) => some(values(request.cookies(), name).next()),
            Self::Form(name) => some(values(request.form(), name).next()),
            Self::Segment(number) => some(request.path.split('/').nth(number + 1)),
            Self::Json(path) => match request.json().and_then(|json| path.find(json)) {
                None => Filling::Nothing,
                Some(value) => Filling::Json(value.clone()),
            },
            Self::Fake(fake) => {
                let text = fake.make(rng);
                match fake {
                    Fake::Boolean | Fake::Price => {
                        serde_json::from_str(&text).map_or(Filling::Text(text), Filling::Json)
                    }
                    _ => Filling::Text(text),
                }
            }
        }
    }
}

fn source(name: &str, names: &[(String, usize)]) -> Result<Source, PlaceError> {
    let unknown = || {
        let fakes: Vec<_> = Fake::names().collect();
        PlaceError(format!(
            "there is no `{{{{{name}}}}}`; known are request.method, .path, .url, .host, .peer, .body, .query.NAME, \
             .header.NAME, .cookie.NAME, .form.NAME, .segment.N, .json.PATH, and fake.{}",
            fakes.join(", fake.")
        ))
    };
    if let Some(fake) = name.strip_prefix("fake.") {
        return Fake::named(fake).map(Source::Fake).ok_or_else(unknown);
    }
    let of_request = name.strip_prefix("request.").ok_or_else(unknown)?;
    let (kind, rest) = match of_request.split_once('.') {
        None => (of_request, None),
        Some((kind, rest)) => (kind, Some(rest)),
    };
    let owned = |rest: &str| rest.to_owned();
    Ok(match (kind, rest) {
        ("method", None) => Source::Method,
        ("path", None) => Source::Path,
        ("url", None) => Source::Url,
        ("host", None) => Source::Host,
        ("peer", None) => Source::Peer,
        ("body", None) => Source::Body,
        ("query", Some(name)) => Source::Query(owned(name)),
        ("header", Some(name)) => Source::Header(owned(name)),
        ("cookie", Some(name)) => Source::Cookie(owned(name)),
        ("form", Some(name)) => Source::Form(owned(name)),
        ("json", Some(path)) => Source::Json(DottedPath::new(path)),
        ("segment", Some(number)) => Source::Segment(number.parse().map_err(|_| unknown())?),
        ("path", Some(place)) => {
            let known = names.iter().find(|(name, _)| name == place);
            Source::Segment(known.ok_or_else(unknown)?.1)
        }
        _ => return Err(unknown()),
    })
}

/// Whether a string of JSON is open behind the text.
fn ends_in_string(text: &str, mut is_in_string: bool) -> bool {
    let mut is_escaped = false;
    for byte in text.bytes() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_in_string => is_escaped = true,
            b'"' => is_in_string = !is_in_string,
            _ => {}
        }
    }
    is_in_string
}

fn generated(generator: &Generator, counter: &AtomicU64, rng: &mut Rng) -> String {
    let millis = || {
        let since = SystemClock.wall().duration_since(UNIX_EPOCH);
        since.map_or(0, |since| since.as_millis())
    };
    match generator {
        Generator::Counter { step, .. } => counter.fetch_add(*step, Ordering::Relaxed).to_string(),
        Generator::Uuid => uuid(rng),
        Generator::Integer { least, below } => rng.i64(*least..*below).to_string(),
        Generator::Float { least, below } => Millionths(rng.i64(*least..*below)).to_string(),
        Generator::Characters { alphabet, count } => (0..*count)
            .map(|_| char::from(alphabet[rng.usize(..alphabet.len())]))
            .collect(),
        Generator::Choice(texts) => texts[rng.usize(..texts.len())].clone(),
        Generator::Timestamp => (millis() / 1000).to_string(),
        Generator::TimestampMillis => millis().to_string(),
        Generator::IsoTimestamp => humantime::format_rfc3339_millis(SystemClock.wall()).to_string(),
        Generator::Date(date) => date.text(SystemClock.wall()),
    }
}

/// Of version 4 (RFC 9562, section 5.4).
pub(crate) fn uuid(rng: &mut Rng) -> String {
    let bits = rng.u128(..) & !(0xf << 76) & !(0x3 << 62) | 4 << 76 | 2 << 62;
    let hex = format!("{bits:032x}");
    let part = |from: usize, to: usize| hex.get(from..to).unwrap_or_default();
    let parts = [
        part(0, 8),
        part(8, 12),
        part(12, 16),
        part(16, 20),
        part(20, 32),
    ];
    parts.join("-")
}

/// Syntax of its placeholders.
impl fmt::Display for TextTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.with_numbers())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::KeptRequest;

    fn filled(text: &str, form: Form, seed: u64) -> String {
        let mut request = KeptRequest::made("POST", "/users/7/x%20y?a=1&b=%22q%22");
        request.fields = vec![
            ("X-Name".to_owned(), b"n".to_vec()),
            ("cookie".to_owned(), b"sid=s".to_vec()),
        ];
        request.body =
            bytes::Bytes::from_static(b"{\"user\":{\"name\":\"A\\nB\",\"age\":3},\"tags\":[1]}");
        let names = [("id".to_owned(), 1)];
        let written = TextTemplate::new(text, form, Chance::new(Some(seed)), &names);
        written
            .unwrap_or_else(|error| panic!("{error}"))
            .fill(&request.view())
    }

    #[test]
    fn requests_fill_places() {
        for (text, expected) in [
            ("{{request.method}} {{request.path}}", "POST /users/7/x y"),
            ("{{request.url}}", "/users/7/x%20y?a=1&b=%22q%22"),
            (
                "{{request.path.id}}{{request.segment.2}}{{request.segment.9}}",
                "7x y",
            ),
            (
                "{{request.query.a}}{{request.query.b}}{{request.query.c}}",
                "1\"q\"",
            ),
            ("{{request.header.x-name}}{{request.cookie.sid}}", "ns"),
            ("{{request.json.user.age}} {{request.json.tags}}", "3 [1]"),
        ] {
            assert_eq!(filled(text, Form::Text, 1), expected, "{text}");
        }
        assert_eq!(filled("{{request.json.user.name}}", Form::Field, 1), "A B");
    }

    #[test]
    fn what_stands_in_json_is_json() {
        let text = "{\"n\":\"{{request.json.user.name}}\",\"a\":{{request.json.user.age}},\"q\":\"\\\"{{request.query.b}}\",\
                    \"none\":{{request.json.x}},\"empty\":\"{{request.json.x}}\",\"tags\":{{request.json.tags}},\"text\":{{request.query.a}}}";
        let json: Value = serde_json::from_str(&filled(text, Form::Json, 1)).unwrap();
        assert_eq!(
            json,
            serde_json::json!({"n": "A\nB", "a": 3, "q": "\"\"q\"", "none": null, "empty": "", "tags": [1], "text": "1"})
        );
    }

    #[test]
    fn chance_is_the_same_with_a_seed_and_counters_count() {
        let text = "{{$uuid}} {{fake.name}} {{$random.integer(1, 9)}}";
        assert_eq!(filled(text, Form::Text, 7), filled(text, Form::Text, 7));
        assert_ne!(filled(text, Form::Text, 7), filled(text, Form::Text, 8));
        let id = filled("{{$uuid}}", Form::Text, 1);
        assert_eq!((id.len(), id.as_bytes()[14]), (36, b'4'));
        let written =
            TextTemplate::new("{{$counter(5, 2)}}", Form::Text, Chance::Free, &[]).unwrap();
        let request = KeptRequest::made("GET", "/");
        let counted: Vec<_> = (0..3).map(|_| written.fill(&request.view())).collect();
        assert_eq!(counted, ["5", "7", "9"]);
    }

    #[test]
    fn unknown_places_are_reported() {
        for text in [
            "{{request.quer.a}}",
            "{{name}}",
            "{{fake.nam}}",
            "{{request.path.no}}",
            "{{$uid}}",
        ] {
            assert!(
                TextTemplate::new(text, Form::Text, Chance::Free, &[]).is_err(),
                "{text}"
            );
        }
    }
}
