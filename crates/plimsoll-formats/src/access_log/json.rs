//! JSON lines: an object per request, with keys by which servers name its parts.

use serde_json::Value;

use super::time::Time;
use super::{Entry, Unusable, request_line};

/// Keys of the method; a dot stands between a key and one of its object.
const METHOD: &[&str] = &[
    "request_method",
    "request.method",
    "method",
    "RequestMethod",
    "http_method",
    "requestMethod",
    "httpRequest.requestMethod",
    "http.request.method",
    "ClientRequestMethod",
    "verb",
    ":method",
];

/// Keys of path and query together.
const TARGET: &[&str] = &[
    "request_uri",
    "request.uri",
    "RequestPath",
    "x-envoy-original-path",
    "x-envoy-origin-path",
    "path",
    "uri",
    "url",
    "requestUrl",
    "httpRequest.requestUrl",
    "url.original",
    "ClientRequestURI",
    "request_path",
    ":path",
];

/// Keys of a query that the path lacks.
const QUERY: &[&str] = &["args", "query_string", "query"];

/// Keys of the whole request line.
const LINE: &[&str] = &["request", "request_line", "req"];

const HOST: &[&str] = &[
    "http_host",
    "request.host",
    "host",
    "authority",
    ":authority",
    "RequestHost",
    "ClientRequestHost",
    "server_name",
    "vhost",
];

const STATUS: &[&str] = &[
    "status",
    "response_code",
    "DownstreamStatus",
    "httpRequest.status",
    "http.response.status_code",
    "EdgeResponseStatus",
];

/// Keys of the time at which a request began.
const BEGAN: &[&str] = &[
    "start_time",
    "StartUTC",
    "StartLocal",
    "EdgeStartTimestamp",
    "request_time_start",
];

/// Keys of the time at which its line was written.
const ENDED: &[&str] = &[
    "msec",
    "ts",
    "time_iso8601",
    "time_local",
    "@timestamp",
    "timestamp",
    "time",
    "datetime",
    "date",
];

/// Keys of the seconds that a request took, for those whose line was written at its end.
const TOOK: &[&str] = &["request_time", "duration"];

/// - `before`: what stands before the object: the name of a container or a time.
/// - `written`: when its line was written, if that is known.
pub(super) fn read(before: &str, line: &str, written: Option<Time>) -> Result<Entry, Unusable> {
    let object: Value = serde_json::from_str(line).map_err(|_| Unusable::NotALine)?;
    let mut words = before.split_whitespace();
    let written = words.next().and_then(Time::parse).or(written);
    of_object(&object, written)
}

/// The entry of an object with such keys.
///
/// - `written`: when its line was written, for an object that has no time.
pub(super) fn of_object(object: &Value, written: Option<Time>) -> Result<Entry, Unusable> {
    let time = began(object).or(written).ok_or(Unusable::NotALine)?;
    let whole = text(object, LINE).map(request_line);
    let (method, target) = match (text(object, METHOD), text(object, TARGET)) {
        (Some(method), Some(target)) => (method.to_owned(), with_query(object, target)),
        _ => whole.unwrap_or(Err(Unusable::NotALine))?,
    };
    if method.is_empty() || method == "-" {
        return Err(Unusable::NoRequest);
    }
    let host = text(object, HOST).filter(|host| !matches!(*host, "" | "-" | "_"));
    Ok(Entry {
        time,
        method,
        target,
        host: host.map(str::to_owned),
        status: first(object, STATUS)
            .and_then(number)
            .filter(|status| (100.0..1000.0).contains(status))
            .map(|status| {
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "three digits"
                )]
                let status = status as u16;
                status
            }),
    })
}

fn began(object: &Value) -> Option<Time> {
    if let Some(time) = first(object, BEGAN).and_then(parse_time) {
        return Some(time);
    }
    let ended = ENDED.iter().find_map(|key| parse_time(at(object, key)?))?;
    let took = first(object, TOOK).and_then(number).unwrap_or_default();
    Some(ended.minus(took))
}

fn with_query(object: &Value, target: &str) -> String {
    match text(object, QUERY) {
        Some(query) if !matches!(query, "" | "-") && !target.contains('?') => {
            format!("{target}?{}", query.trim_start_matches('?'))
        }
        _ => target.to_owned(),
    }
}

fn parse_time(value: &Value) -> Option<Time> {
    match value {
        Value::Number(number) => Time::from_number(number.as_f64()?),
        Value::String(text) => Time::parse(text).or_else(|| Time::from_number(text.parse().ok()?)),
        _ => None,
    }
}

/// A number, also one that is written as text.
fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.parse().ok(),
        _ => None,
    }
}

fn text<'a>(object: &'a Value, keys: &[&str]) -> Option<&'a str> {
    let mut values = keys.iter().filter_map(|key| at(object, key)?.as_str());
    values.next()
}

fn first<'a>(object: &'a Value, keys: &[&str]) -> Option<&'a Value> {
    keys.iter().find_map(|key| at(object, key))
}

/// The value of a key, whole or as a path of keys.
fn at<'a>(object: &'a Value, key: &str) -> Option<&'a Value> {
    object.get(key).or_else(|| {
        let mut parts = key.split('.');
        let first = object.get(parts.next()?)?;
        let mut value = first;
        let mut is_nested = false;
        for part in parts {
            value = value.get(part)?;
            is_nested = true;
        }
        is_nested.then_some(value)
    })
}
