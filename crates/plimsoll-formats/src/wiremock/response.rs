//! The response of a mapping.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use super::{Notes, is_empty, table, text};
use crate::Remark;

/// A response.
#[derive(Debug, Clone, PartialEq)]
pub struct MappingResponse {
    /// From 200 to 599.
    pub status: u16,
    /// Fields, repeated ones too.
    pub fields: Vec<(String, String)>,
    /// Its content.
    pub body: MappingBody,
    /// Its delays, which are added up.
    pub delays: Vec<MappingDelay>,
    /// In so many pieces, over so many milliseconds.
    pub dribble: Option<(u32, u64)>,
    /// The fault, by WireMock's name.
    pub fault: Option<String>,
    /// The server that answers instead.
    pub proxy: Option<MappingProxy>,
    /// The values of `parameters` in templates.
    pub parameters: Option<Value>,
    /// True if texts have places (Handlebars).
    pub has_places: bool,
}

/// A server that answers instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MappingProxy {
    /// Its URL, which comes before the path of the request.
    pub url: String,
    /// The prefix that is removed from the path first.
    pub strip: Option<String>,
    /// Fields in place of those of the request.
    pub fields: Vec<(String, String)>,
    /// Fields of the request that are not passed on.
    pub without: Vec<String>,
}

/// The content of a response.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum MappingBody {
    /// None.
    #[default]
    Empty,
    /// A text.
    Text(String),
    /// A value.
    Json(Value),
    /// Bytes, in base64.
    Base64(String),
    /// A file below `__files`.
    File(String),
}

/// The delay of a response in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum MappingDelay {
    /// Always the same.
    Fixed(u64),
    /// Anything between the two, both included.
    Uniform(u64, u64),
    /// Log-normal: median, deviation, most.
    LogNormal(f64, f64, Option<f64>),
}

pub(super) fn response(
    mut response: Map<String, Value>,
    notes: &mut Notes,
) -> Option<MappingResponse> {
    let status = match response.remove("status") {
        None | Some(Value::Null) => Some(200),
        Some(value) => {
            let status = value.as_u64().and_then(|status| u16::try_from(status).ok());
            let status = status.filter(|status| (200..=599).contains(status));
            status.or_else(|| notes.wrong("response.status", "must be from 200 to 599"))
        }
    };
    // A number says as much as its name.
    response.remove("statusMessage");
    response.remove("fromConfiguredStub");
    let fields = fields(&mut response, "headers", notes);
    if let Some((name, _)) = fields.iter().find(|(name, _)| is_of_grpc(name)) {
        notes.wrong::<()>(
            &format!("response.headers.{name}"),
            "the mapping is one of the gRPC extension, and is left out: write a rule with `when.grpc` and `respond.grpc`, and the \
             descriptors of the services in `grpc.descriptors`",
        );
    }
    let body = body(&mut response, notes);
    let delays = delays(&mut response, notes);
    let dribble = table(&mut response, "chunkedDribbleDelay", "response.", notes);
    let dribble = (!dribble.is_empty()).then(|| {
        let number = |key: &str| dribble.get(key).and_then(Value::as_u64);
        let chunks = number("numberOfChunks").and_then(|it| u32::try_from(it).ok());
        match (chunks, number("totalDuration")) {
            (Some(chunks), Some(time)) if chunks > 0 => Some((chunks, time)),
            _ => notes.wrong(
                "response.chunkedDribbleDelay",
                "needs `numberOfChunks` and `totalDuration`",
            ),
        }
    });
    let fault = text(&mut response, "fault", "response.", notes);
    let proxy = proxy(&mut response, notes);
    let transformers = match response.remove("transformers") {
        Some(Value::Array(names)) => names,
        _ => Vec::new(),
    };
    let parameters = table(&mut response, "transformerParameters", "response.", notes);
    let parameters = (!parameters.is_empty()).then_some(Value::Object(parameters));
    let mut has_places = false;
    for name in transformers {
        match name.as_str() {
            Some("response-template") => has_places = true,
            other => {
                let name = other.unwrap_or("?");
                notes.left_out(
                    "response.transformers",
                    format!("`{name}` is not known here"),
                );
            }
        }
    }
    for (key, value) in &response {
        if !is_empty(value) {
            notes.left_out(&format!("response.{key}"), "is not carried over");
        }
    }
    Some(MappingResponse {
        parameters,
        status: status?,
        fields,
        body: body?,
        delays,
        dribble: dribble.flatten(),
        fault,
        proxy,
        has_places,
    })
}

fn proxy(response: &mut Map<String, Value>, notes: &mut Notes) -> Option<MappingProxy> {
    let url = text(response, "proxyBaseUrl", "response.", notes);
    let strip = text(response, "proxyUrlPrefixToRemove", "response.", notes);
    let fields = fields(response, "additionalProxyRequestHeaders", notes);
    let without = match response.remove("removeProxyRequestHeaders") {
        Some(Value::Array(names)) => names,
        _ => Vec::new(),
    };
    let names = without.iter().filter_map(Value::as_str).map(str::to_owned);
    Some(MappingProxy {
        url: url?,
        strip: strip.filter(|prefix| !prefix.is_empty()),
        fields,
        without: names.collect(),
    })
}

/// Whether a field stands for the status of a call.
fn is_of_grpc(name: &str) -> bool {
    ["grpc-status-name", "grpc-status-reason"].contains(&name.to_ascii_lowercase().as_str())
}

pub(super) fn fields(
    response: &mut Map<String, Value>,
    key: &str,
    notes: &mut Notes,
) -> Vec<(String, String)> {
    let mut fields = Vec::new();
    for (name, value) in table(response, key, "response.", notes) {
        let values = match value {
            Value::Array(values) => values,
            value => vec![value],
        };
        for value in values {
            let text = match value {
                Value::String(text) => text,
                Value::Number(number) => number.to_string(),
                Value::Bool(flag) => flag.to_string(),
                _ => {
                    notes.left_out(&format!("response.{key}.{name}"), "is no text");
                    continue;
                }
            };
            fields.push((name.clone(), text));
        }
    }
    fields
}

/// Of the forms of content the first one that is there counts.
fn body(response: &mut Map<String, Value>, notes: &mut Notes) -> Option<MappingBody> {
    let at = "response.";
    let json = response.remove("jsonBody");
    let mut base64 = text(response, "base64Body", at, notes);
    let mut file = text(response, "bodyFileName", at, notes);
    let mut plain = None;
    match response.remove("body") {
        None | Some(Value::Null) => {}
        Some(Value::String(text)) => plain = Some(text),
        Some(Value::Object(mut body)) => {
            let at = "response.body.";
            plain = text(&mut body, "data", at, notes);
            base64 = base64.or(text(&mut body, "base64Data", at, notes));
            file = file.or(text(&mut body, "filePath", at, notes));
            // What only says how the text is to be shown.
            body.remove("format");
            for key in body.keys() {
                notes.left_out(&format!("{at}{key}"), "is not carried over");
            }
        }
        Some(_) => return notes.wrong("response.body", "must be a text"),
    }
    Some(match (json, base64, file, plain) {
        (Some(value), ..) => MappingBody::Json(value),
        (None, Some(text), ..) => match STANDARD.decode(text.trim()) {
            Ok(_) => MappingBody::Base64(text.trim().to_owned()),
            Err(error) => {
                return notes.wrong("response.base64Body", format!("is no base64: {error}"));
            }
        },
        (None, None, Some(file), _) => MappingBody::File(file),
        (None, None, None, Some(text)) => MappingBody::Text(text),
        (None, None, None, None) => MappingBody::Empty,
    })
}

fn delays(response: &mut Map<String, Value>, notes: &mut Notes) -> Vec<MappingDelay> {
    let mut delays = Vec::new();
    match response.remove("fixedDelayMilliseconds") {
        None | Some(Value::Null) => {}
        Some(value) => {
            let key = "response.fixedDelayMilliseconds";
            match value.as_u64().filter(|delay| *delay <= MOST_DELAY) {
                Some(delay) => delays.push(MappingDelay::Fixed(delay)),
                None => notes.left_out(key, "is no number of milliseconds"),
            }
        }
    }
    let distribution = table(response, "delayDistribution", "response.", notes);
    if !distribution.is_empty() {
        match delay(&distribution) {
            Some(delay) => delays.push(delay),
            None => notes.left_out(
                "response.delayDistribution",
                "is none of fixed, uniform and lognormal with what they need",
            ),
        }
    }
    delays
}

/// Why settings of the admin API cannot be taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// They are no object.
    #[error("settings must be an object")]
    NoObject,
    /// The first wrong setting.
    #[error("{}{}", .0.place, .0.message)]
    Setting(Remark),
}

/// The delays of all responses, as the settings of the admin API have them.
pub fn parse_settings(settings: &Value) -> Result<Vec<MappingDelay>, SettingsError> {
    let Value::Object(settings) = settings else {
        return Err(SettingsError::NoObject);
    };
    let mut notes = Notes::default();
    let mut response = Map::new();
    for (theirs, ours) in [
        ("fixedDelay", "fixedDelayMilliseconds"),
        ("delayDistribution", "delayDistribution"),
    ] {
        response.extend(settings.get(theirs).map(|it| (ours.to_owned(), it.clone())));
    }
    let delays = delays(&mut response, &mut notes);
    let mut remarks = notes.wrong.into_iter().chain(notes.left_out);
    match remarks.next() {
        None => Ok(delays),
        Some(remark) => Err(SettingsError::Setting(remark)),
    }
}

/// A day, in milliseconds.
const MOST_DELAY: u64 = 86_400_000;

pub(super) fn delay(table: &Map<String, Value>) -> Option<MappingDelay> {
    let number = |key: &str| {
        let number = table.get(key).and_then(Value::as_f64);
        number.filter(|it| (0.0..=MOST_DELAY as f64).contains(it))
    };
    let whole = |key: &str| {
        let number = table.get(key).and_then(Value::as_u64);
        number.filter(|it| *it <= MOST_DELAY)
    };
    match table.get("type").and_then(Value::as_str)? {
        "fixed" => whole("milliseconds").map(MappingDelay::Fixed),
        "uniform" => whole("lower")
            .zip(whole("upper"))
            .filter(|(lower, upper)| lower <= upper)
            .map(|(lower, upper)| MappingDelay::Uniform(lower, upper)),
        "lognormal" => {
            let most = number("maxValue");
            number("median")
                .zip(number("sigma"))
                .filter(|(median, sigma)| *sigma > 0.0 && most.is_none_or(|most| most >= *median))
                .map(|(median, sigma)| MappingDelay::LogNormal(median, sigma, most))
        }
        _ => None,
    }
}
