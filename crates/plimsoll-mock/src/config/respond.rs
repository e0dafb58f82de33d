//! `respond`: the replies of a rule.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::StatusCode;
use http::header::{HeaderName, HeaderValue, LOCATION};
use plimsoll_formats::grpc::Method;
use plimsoll_formats::json5_to_json;
use plimsoll_model::document::{Table, Value, as_text};

use super::events;
use super::grpc;
use super::javascript;
use super::proxy;
use super::set::Context;
use super::source;
use super::websocket;
use crate::fault::Fault;
use crate::fault::delay::Delay;
use crate::fault::pace::Pace;
use crate::folder::contents;
use crate::reply::{Announced, RECORDS, Reply, ReplyFile, ReplyKind};
use crate::template::content::Content;
use crate::template::data::DataBuckets;
use crate::template::{Chance, Dialect, Form, TextTemplate};

/// The names of segments of the path, with their numbers.
type Names = [(String, usize)];

/// Settings of everything in one `respond`.
pub(super) struct Making<'c> {
    pub(super) context: &'c Context,
    names: &'c Names,
    /// Whose places texts have.
    places: Places,
    pub(super) chance: Chance,
    /// The data of templates.
    data: Arc<DataBuckets>,
    /// The gRPC method of the rule.
    pub(super) called: Option<Arc<Method>>,
}

/// Whose places texts have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Places {
    None,
    Ours,
    Foreign(Dialect),
}

/// `template = true`, or the name of another mock server.
fn template(value: &Value<'_>) -> Places {
    if let toml::Value::Boolean(flag) = value.to_toml() {
        return if flag { Places::Ours } else { Places::None };
    }
    let named = as_text(value).map(|name| (name, Dialect::named(name)));
    match named {
        Some((_, Some(dialect))) => Places::Foreign(dialect),
        Some((name, None)) => {
            let message = format!("`{name}` is none of true, false, \"wiremock\" and \"mockoon\"");
            value.wrong::<()>(message);
            Places::None
        }
        None => Places::None,
    }
}

/// The values of `parameters` in WireMock's templates: JSON, as text or as a table.
fn parameters(value: &Value<'_>) -> Option<serde_json::Value> {
    if value.is_table() {
        return Some(source::json_of(value));
    }
    let json = serde_json::from_str(as_text(value)?);
    value.check(json.map_err(|error| format!("is not JSON: {error}")))
}

impl<'c> Making<'c> {
    /// Takes the settings out of a table.
    pub(super) fn new(
        table: &mut Table<'_>,
        context: &'c Context,
        names: &'c Names,
        called: Option<Arc<Method>>,
    ) -> Self {
        let places = table.take_value("template");
        let places = places.as_ref().map_or(Places::None, template);
        let seed = table.integer("seed", 0..=i64::MAX).map(i64::cast_unsigned);
        let parameters = table
            .take_value("parameters")
            .and_then(|value| parameters(&value));
        Self {
            data: match parameters {
                Some(parameters) => Arc::new(context.data.with_parameters(parameters)),
                None => Arc::clone(&context.data),
            },
            context,
            names,
            places,
            chance: Chance::new(seed),
            called,
        }
    }

    /// Whether a text has places.
    pub(super) fn has_places(&self, text: &str) -> bool {
        self.places != Places::None && text.contains("{{")
    }
}

/// `respond`: one answer or a sequence of them, and whether that begins anew.
///
/// - `called`: what the rule asks for, of gRPC.
pub(super) fn compile(
    mut table: Table<'_>,
    context: &Context,
    names: &Names,
    called: Option<Arc<Method>>,
) -> Option<(Vec<Reply>, bool)> {
    let Some(sequence) = table.take_value("sequence") else {
        return one(table, context, names, called).map(|reply| (vec![reply], false));
    };
    let replies = sequence
        .elements()
        .into_iter()
        .map(|value| one(value.table()?, context, names, called.clone()));
    let replies: Option<Vec<Reply>> = replies.collect::<Vec<_>>().into_iter().collect();
    let repeats = match table.take_value("then") {
        None => Some(false),
        Some(value) => match as_text(&value) {
            Some("last") => Some(false),
            Some("first") => Some(true),
            Some(other) => value.wrong(format!("`{other}` is neither last nor first")),
            None => None,
        },
    };
    if replies.as_ref().is_some_and(Vec::is_empty) {
        table.wrong("the sequence is empty", None);
        return None;
    }
    table.finish();
    Some((replies?, repeats?))
}

fn one(
    mut table: Table<'_>,
    context: &Context,
    names: &Names,
    called: Option<Arc<Method>>,
) -> Option<Reply> {
    let making = Making::new(&mut table, context, names, called);
    let mut status = status(&mut table);
    let (mut fields, mut written_fields) = (Vec::new(), Vec::new());
    let mut is_whole = true;
    if let Some(mut headers) = table.table("headers") {
        for (name, value) in headers.rest_of_fields() {
            for value in value.elements() {
                match field(&name, value, &making) {
                    Some((name, Field::Always(value))) => fields.push((name, value)),
                    Some((name, Field::TextTemplate(written))) => {
                        written_fields.push((name, written));
                    }
                    None => is_whole = false,
                }
            }
        }
    }
    let records = table.text("csv_records_key");
    let kind = kind(&mut table, &making, records);
    if let Some(value) = table.take_value("redirect") {
        match location(&value, &making) {
            Some(Field::Always(value)) => fields.push((LOCATION, value)),
            Some(Field::TextTemplate(written)) => written_fields.push((LOCATION, written)),
            None => is_whole = false,
        }
        status = status.or(Some(StatusCode::FOUND));
    }
    let delay = delay(&mut table, Some(context));
    let pace = pace(&mut table);
    let fault = table.take_value("fault").and_then(|value| {
        let name = as_text(&value)?;
        let fault = Fault::named(name);
        if fault.is_none() {
            let known = Fault::ALL.map(Fault::name).join(", ");
            let hint = format!("known are {known}");
            value.wrong_with::<()>(format!("`{name}` is no fault"), Some(hint));
        }
        fault
    });
    if table.was_given("events") {
        for key in ["redirect", "fault", "dribble", "bandwidth"] {
            if table.was_given(key) {
                table.wrong(format!("`{key}` cannot be given beside `events`"), None);
            }
        }
    }
    let has_content = CONTENTS.iter().any(|key| table.was_given(key));
    if table.was_given("file_path") {
        for key in ["redirect", "fault", "dribble", "bandwidth"] {
            if table.was_given(key) {
                table.wrong(format!("`{key}` cannot be given beside `file_path`"), None);
            }
        }
    }
    for kind in ["websocket", "grpc"] {
        if table.was_given(kind) {
            for key in ["status", "redirect", "fault", "dribble", "bandwidth"] {
                if table.was_given(key) {
                    table.wrong(format!("`{key}` cannot be given beside `{kind}`"), None);
                }
            }
        }
    }
    if table.was_given("javascript") {
        for key in ["redirect", "fault"] {
            if table.was_given(key) {
                table.wrong(format!("`{key}` cannot be given beside `javascript`"), None);
            }
        }
    }
    if table.was_given("proxy") {
        for key in ["status", "redirect", "fault", "dribble", "bandwidth"] {
            if table.was_given(key) {
                table.wrong(format!("`{key}` cannot be given beside `proxy`"), None);
            }
        }
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
    let has_more = ["status", "redirect", "fault"]
        .iter()
        .any(|key| table.was_given(key));
    if let Some(value) = table.take_value("body") {
        let hint = "the content is `text`, `json`, `base64` or `file_path`";
        value.wrong_with::<()>("unknown key", Some(hint.to_owned()));
    } else if !has_content && !has_more && table.is_empty() {
        let hint = format!(
            "one of {}, or a status, a redirect or a fault",
            listed(&CONTENTS)
        );
        table.wrong("nothing to answer", Some(hint));
    }
    table.finish();
    is_whole.then_some(())?;
    Some(Reply {
        status,
        fields,
        kind: kind?,
        written_fields,
        delay: delay?,
        chance: making.chance,
        pace,
        fault,
    })
}

/// Source of the content, by its keys.
const CONTENTS: [&str; 10] = [
    "file_path",
    "text",
    "json",
    "base64",
    "events",
    "proxy",
    "javascript",
    "websocket",
    "grpc",
    "content_length",
];

/// Names as a sentence has them.
fn listed(names: &[&str]) -> String {
    let (last, before) = names.split_last().expect("there are some");
    format!("{} and {last}", before.join(", "))
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

/// `delay`, or milliseconds, or that of the set.
///
/// - `context`: of the set; none for what has no milliseconds and is no response.
pub(super) fn delay(table: &mut Table<'_>, context: Option<&Context>) -> Option<Delay> {
    let fixed = context.and_then(|_| milliseconds(table));
    let Some(value) = table.take_value("delay") else {
        let usual = context.map_or(Duration::ZERO, |context| context.delay);
        return Some(Delay::Fixed(fixed.unwrap_or(usual)));
    };
    if table.was_given("delay_response_milliseconds") {
        return value.wrong("and `delay_response_milliseconds` are given");
    }
    if !value.is_table() {
        return duration(&value).map(Delay::Fixed);
    }
    let mut table = value.table()?;
    let uniform = table.take_value("uniform");
    let log_normal = table.table("lognormal");
    let delay = match (uniform, log_normal) {
        (Some(value), None) => {
            let times: Option<Vec<_>> = value.elements().iter().map(duration).collect();
            match times.as_deref() {
                Some([least, most]) if least <= most => Some(Delay::Uniform(*least, *most)),
                None => None,
                Some(_) => {
                    let hint = "such as uniform = [\"10ms\", \"50ms\"]";
                    table.wrong(
                        "`uniform` takes the least and the most",
                        Some(hint.to_owned()),
                    );
                    None
                }
            }
        }
        (None, Some(mut table)) => {
            let median = table.duration("median");
            let sigma = table.positive("sigma");
            let most = table.duration("max");
            for key in ["median", "sigma"] {
                if !table.was_given(key) {
                    table.missing(key, "such as { median = \"80ms\", sigma = 0.4 }");
                }
            }
            if median.zip(most).is_some_and(|(median, most)| most < median) {
                table.wrong("`max` is below the median", None);
            }
            table.finish();
            median.zip(sigma).map(|(median, sigma)| Delay::LogNormal {
                median,
                sigma,
                most,
            })
        }
        _ => {
            table.wrong("must have one of `uniform` and `lognormal`", None);
            None
        }
    };
    table.finish();
    delay
}

fn duration(value: &Value<'_>) -> Option<Duration> {
    let text = as_text(value)?;
    value.check(plimsoll_model::parse_duration(text))
}

fn pace(table: &mut Table<'_>) -> Option<Pace> {
    let bandwidth = table.bytes("bandwidth");
    let dribble = table.table("dribble");
    if table.was_given("bandwidth") && table.was_given("dribble") {
        table.wrong("both `bandwidth` and `dribble` are given", None);
    }
    if bandwidth == Some(0) {
        table.wrong("a `bandwidth` of nothing would never end", None);
    }
    let dribble = dribble.and_then(|mut table| {
        let chunks = table.count("chunks", 1..=100_000);
        let over = table.duration("over");
        for key in ["chunks", "over"] {
            if !table.was_given(key) {
                table.missing(key, "such as { chunks = 5, over = \"1s\" }");
            }
        }
        table.finish();
        Some(Pace::Dribble(u32::try_from(chunks?).ok()?, over?))
    });
    dribble.or(bandwidth.map(Pace::Bandwidth))
}

/// The value of a field.
enum Field {
    Always(HeaderValue),
    TextTemplate(TextTemplate),
}

fn field(name: &str, value: Value<'_>, making: &Making<'_>) -> Option<(HeaderName, Field)> {
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
    if value.is_table() {
        return Some((name, latin1(value)?));
    }
    Some((name, location(&value, making)?))
}

/// `{ latin1 = "…" }`: each character is one byte.
fn latin1(value: Value<'_>) -> Option<Field> {
    let mut table = value.table()?;
    let text = table.take_value("latin1");
    if text.is_none() {
        table.missing("latin1", "a text whose characters are each one byte");
    }
    table.finish();
    let value = text?;
    let bytes: Option<Vec<u8>> = as_text(&value)?
        .chars()
        .map(|it| u8::try_from(u32::from(it)).ok())
        .collect();
    let bytes = value.check(bytes.ok_or("has a character that is not in Latin-1"))?;
    let field = HeaderValue::from_bytes(&bytes).map_err(|_| "contains a control character");
    value.check(field).map(Field::Always)
}

fn location(value: &Value<'_>, making: &Making<'_>) -> Option<Field> {
    let text = as_text(value)?;
    if making.has_places(text) {
        return written(value, text, Form::Field, making).map(Field::TextTemplate);
    }
    let text = HeaderValue::from_bytes(text.as_bytes());
    let text = text.map_err(|_| "contains a control character");
    value.check(text).map(Field::Always)
}

pub(super) fn written(
    value: &Value<'_>,
    text: &str,
    form: Form,
    making: &Making<'_>,
) -> Option<TextTemplate> {
    value.check(match making.places {
        Places::Foreign(dialect) => TextTemplate::foreign(
            text,
            dialect,
            form,
            &making.chance,
            making.names,
            &making.data,
        ),
        _ => TextTemplate::new(text, form, making.chance.clone(), making.names),
    })
}

fn kind(table: &mut Table<'_>, making: &Making<'_>, records: Option<String>) -> Option<ReplyKind> {
    let mut given = Vec::new();
    if let Some(value) = table.take_value("file_path") {
        given.push(file(&value, making, records));
    }
    if let Some(value) = table.take_value("text") {
        given.push(text(&value, making).map(ReplyKind::Content));
    }
    if let Some(value) = table.take_value("json") {
        given.push(json(&value, making).map(ReplyKind::Content));
    }
    if let Some(length) = table.integer("content_length", 0..=i64::MAX) {
        let length = u64::try_from(length).ok();
        given.push(length.map(|length| ReplyKind::Announced(Announced(length))));
    }
    if let Some(value) = table.take_value("proxy") {
        given.push(proxy::compile(value, making.context).map(ReplyKind::Proxy));
    }
    if let Some(value) = table.take_value("events") {
        let written = |value: &Value<'_>, text: &str| {
            if making.has_places(text) {
                return written(value, text, Form::Text, making).map(Some);
            }
            Some(None)
        };
        let script = events::compile(value, table, &written);
        given.push(script.map(ReplyKind::Events));
    }
    if let Some(value) = table.take_value("grpc") {
        let reply = grpc::reply(value, making);
        given.push(reply.map(|it| ReplyKind::Grpc(Arc::new(it))));
    }
    if let Some(value) = table.take_value("websocket") {
        let conversation = websocket::compile(value, making);
        given.push(conversation.map(|it| ReplyKind::WebSocket(Arc::new(it))));
    }
    if let Some(value) = table.take_value("javascript") {
        let script = javascript::compile(value, making.context, making.names);
        given.push(script.map(|script| ReplyKind::Script(Arc::new(script))));
    }
    if let Some(value) = table.take_value("base64") {
        given.push(base64(&value).map(ReplyKind::Content));
    }
    if given.len() > 1 {
        table.wrong(format!("more than one of {}", listed(&CONTENTS)), None);
        return None;
    }
    given.pop().unwrap_or(Some(ReplyKind::default()))
}

pub(super) fn text(value: &Value<'_>, making: &Making<'_>) -> Option<Content> {
    let text = as_text(value)?;
    let kind = HeaderValue::from_static("text/plain; charset=utf-8");
    if making.has_places(text) {
        let written = written(value, text, Form::Text, making)?;
        return Some(Content::TextTemplate(kind, written));
    }
    Some(Content::Bytes(
        kind,
        Bytes::copy_from_slice(text.as_bytes()),
    ))
}

pub(super) fn base64(value: &Value<'_>) -> Option<Content> {
    let bytes = STANDARD.decode(as_text(value)?.trim());
    let bytes = value.check(bytes.map_err(|error| format!("is no base64: {error}")))?;
    let kind = HeaderValue::from_static("application/octet-stream");
    Some(Content::Bytes(kind, Bytes::from(bytes)))
}

pub(super) fn json(value: &Value<'_>, making: &Making<'_>) -> Option<Content> {
    let inline;
    let text = match value.to_toml() {
        toml::Value::Table(_) | toml::Value::Array(_) => {
            inline = source::json_of(value).to_string();
            &inline
        }
        _ => as_text(value)?,
    };
    let kind = HeaderValue::from_static("application/json");
    if making.has_places(text) {
        let written = written(value, text, Form::Json, making)?;
        if matches!(making.places, Places::Foreign(_)) {
            return Some(Content::TextTemplate(kind, written));
        }
        let sample = written.with_numbers();
        let checked = serde_json::from_str::<serde::de::IgnoredAny>(&sample);
        value
            .check(checked.map_err(|error| {
                format!("is no JSON, even with numbers in its places: {error}")
            }))?;
        return Some(Content::TextTemplate(kind, written));
    }
    // Valid JSON is sent as it was written.
    let json = if serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok() {
        text.to_owned()
    } else {
        value.check(json5_to_json(text).map_err(|error| format!("is no JSON: {error}")))?
    };
    Some(Content::Bytes(kind, Bytes::from(json)))
}

fn file(value: &Value<'_>, making: &Making<'_>, records: Option<String>) -> Option<ReplyKind> {
    let text = as_text(value)?;
    let root = making.context.root.clone()?;
    if making.has_places(text) {
        let written = written(value, text, Form::Text, making)?;
        return Some(ReplyKind::File(ReplyFile {
            path: root.clone(),
            root,
            records: records.unwrap_or_else(|| RECORDS.to_owned()),
            written: Some(written),
        }));
    }
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
    Some(ReplyKind::File(ReplyFile {
        path,
        root,
        records,
        written: None,
    }))
}
