//! Active health checks of an upstream.

use std::time::Duration;

use bytes::Bytes;
use http::uri::Authority;
use http::{HeaderName, HeaderValue, Method, StatusCode};
use plimsoll_server::config::{Table, Value, as_text};

use crate::upstream::{HealthCheck, HealthKind, Transport};

pub(super) fn health(mut table: Table<'_>, transport: Transport) -> Option<HealthCheck> {
    let mut check = HealthCheck::default();
    let kinds_hint = || Some("health = { kind = \"tcp\" }".to_owned());
    match transport {
        Transport::Http => {}
        Transport::Tcp => check.kind = HealthKind::Tcp,
        Transport::Udp if table.has("kind") => {}
        Transport::Udp => table.wrong(
            "no datagram is sent to check a server; `kind = \"tcp\"` opens a connection to the same port, or to `port`",
            kinds_hint(),
        ),
    }
    let mut is_whole = true;
    let service = table.text("service");
    if let Some(value) = table.take_value("kind") {
        let kind = match as_text(&value) {
            Some("grpc") if transport != Transport::Http => value.wrong_with(
                "is \"tcp\" or \"http\" for servers of tcp:// and udp://",
                kinds_hint(),
            ),
            Some("http") => Some(HealthKind::Http),
            Some("tcp") => Some(HealthKind::Tcp),
            Some("grpc") => Some(HealthKind::Grpc(service.clone().unwrap_or_default())),
            Some(_) => value.wrong("is \"http\", \"tcp\" or \"grpc\""),
            None => None,
        };
        is_whole &= kind.is_some();
        check.kind = kind.unwrap_or(check.kind);
    }
    let is_too_long = service.as_ref().is_some_and(|name| name.len() > 127);
    if is_too_long || (service.is_some() && !matches!(check.kind, HealthKind::Grpc(_)) && is_whole)
    {
        let hint = Some("health = { kind = \"grpc\", service = \"shop.Cart\" }".to_owned());
        table.wrong(
            "`service` names a service of gRPC, in up to 127 bytes",
            hint,
        );
        is_whole = false;
    }
    if check.kind != HealthKind::Http {
        for key in ["path", "status", "method", "host", "headers", "content"] {
            if table.has(key) {
                table.wrong(format!("only checks over HTTP have `{key}`"), None);
                is_whole = false;
            }
        }
    }
    if let Some(value) = table.take_value("path") {
        let path = as_text(&value).and_then(|path| {
            let is_path = path.starts_with('/') && path.bytes().all(|it| it.is_ascii_graphic());
            if is_path {
                Some(path.to_owned())
            } else {
                value.wrong("begins with a slash and has no blanks")
            }
        });
        is_whole &= path.is_some();
        check.path = path.unwrap_or_default();
    }
    if let Some(value) = table.take_value("method") {
        let method = as_text(&value).and_then(|text| match Method::from_bytes(text.as_bytes()) {
            Ok(method)
                if text.bytes().all(|it| it.is_ascii_uppercase()) && method != Method::CONNECT =>
            {
                Some(method)
            }
            _ => value.wrong("is a method, such as HEAD"),
        });
        is_whole &= method.is_some();
        check.method = method.unwrap_or_default();
    }
    if let Some(value) = table.take_value("host") {
        let host = as_text(&value).and_then(|text| match text.parse::<Authority>() {
            Ok(host) if !text.contains('@') => Some(host.to_string()),
            _ => value.wrong("is a host name, with a port or without"),
        });
        is_whole &= host.is_some();
        check.host = host;
    }
    if let Some(headers) = table.take_value("headers").and_then(Value::table) {
        let fields = fields(headers);
        is_whole &= fields.is_some();
        check.fields = fields.unwrap_or_default();
    }
    if let Some(value) = table.take_value("content") {
        let text = as_text(&value).and_then(|text| match text {
            "" => value.wrong("is a text that the content of the response has"),
            _ if check.method == Method::HEAD => value.wrong("is not there in responses to HEAD"),
            text => Some(Bytes::copy_from_slice(text.as_bytes())),
        });
        is_whole &= text.is_some();
        check.content = text;
    }
    if let Some(port) = table.count("port", 1..=65_535) {
        check.port = u16::try_from(port).ok();
    }
    check.tls = table.boolean("tls");
    for (key, time) in [
        ("interval", &mut check.interval),
        ("timeout", &mut check.timeout),
    ] {
        if let Some(given) = table.duration(key) {
            *time = given.max(Duration::from_millis(10));
        }
    }
    for (key, number) in [
        ("healthy", &mut check.healthy),
        ("unhealthy", &mut check.unhealthy),
    ] {
        if let Some(given) = table.count(key, 1..=100) {
            *number = u32::try_from(given).unwrap_or(1);
        }
    }
    if let Some(status) = table.count("status", 100..=599) {
        let status = u16::try_from(status).ok();
        check.status = status.and_then(|status| StatusCode::from_u16(status).ok());
    }
    table.finish();
    is_whole.then_some(check)
}

/// Fields of requests, with fixed values.
fn fields(mut table: Table<'_>) -> Option<Vec<(String, String)>> {
    const OF_CONNECTION: [&str; 5] = [
        "connection",
        "content-length",
        "host",
        "transfer-encoding",
        "upgrade",
    ];
    let mut all = Vec::new();
    let mut is_whole = true;
    for (name, value) in table.rest() {
        let field = as_text(&value).and_then(|text| {
            let lower = name.to_ascii_lowercase();
            if OF_CONNECTION.contains(&lower.as_str()) {
                return value.wrong("is set by itself; `host` is a key of its own");
            }
            if HeaderName::from_bytes(name.as_bytes()).is_err()
                || HeaderValue::from_str(text).is_err()
            {
                return value.wrong("is no header field with its value");
            }
            Some((lower, text.to_owned()))
        });
        match field {
            Some(field) => all.push(field),
            None => is_whole = false,
        }
    }
    is_whole.then_some(all)
}
