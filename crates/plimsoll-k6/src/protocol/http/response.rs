//! The outcome of a request, and its form in scripts.

use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use plimsoll_client::forward::Fields;
use plimsoll_script::LazyProperties;
use plimsoll_script::js::{self, Array, ArrayBuffer, Ctx, IntoJs as _, Object, Value};

use super::address::Address;
use super::header::{as_shown, shown_fields};
use super::request::{BodyForm, HttpRequest};
use crate::options::duration::millis;

/// The last response of a request, or why there is none.
#[derive(Debug)]
pub(crate) struct HttpResponse {
    pub(crate) request: HttpRequest,
    /// That of the last request.
    pub(crate) address: Rc<Address>,
    /// The first request failed: scripts see its URL as they wrote it.
    pub(crate) has_url_as_written: bool,
    /// 0 if there is no response.
    pub(crate) status: u16,
    pub(crate) protocol: &'static str,
    pub(crate) fields: Fields,
    /// Decoded.
    pub(crate) content: Bytes,
    pub(crate) timings: Timings,
    pub(crate) peer: Option<SocketAddr>,
    pub(crate) tls_version: String,
    pub(crate) tls_cipher: String,
    pub(crate) error: String,
    pub(crate) error_code: u16,
    /// The fields that were sent first.
    pub(crate) sent_fields: Rc<Vec<(String, String)>>,
    /// The host of that request, where the script sets it.
    pub(crate) sent_host: Option<String>,
    pub(crate) sent_cookies: Vec<(String, String)>,
}

/// The phases of one exchange.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Timings {
    /// From wanting a connection to having one.
    pub(crate) blocked: Duration,
    pub(crate) connecting: Duration,
    pub(crate) tls_handshaking: Duration,
    pub(crate) sending: Duration,
    pub(crate) waiting: Duration,
    pub(crate) receiving: Duration,
}

impl Timings {
    pub(crate) fn duration(&self) -> Duration {
        self.sending + self.waiting + self.receiving
    }
}

/// The properties of a response in scripts, in k6's order.
pub(crate) const PROPERTIES: [&str; 16] = [
    "remote_ip",
    "remote_port",
    "url",
    "status",
    "status_text",
    "proto",
    "headers",
    "cookies",
    "body",
    "timings",
    "tls_version",
    "tls_cipher_suite",
    "error",
    "error_code",
    "request",
    "ocsp",
];

impl LazyProperties for HttpResponse {
    fn make<'js>(&self, ctx: &Ctx<'js>, index: usize) -> js::Result<Value<'js>> {
        let text = |text: &str| js::String::from_str(ctx.clone(), text).map(js::String::into_value);
        match PROPERTIES[index] {
            "remote_ip" => text(
                &self
                    .peer
                    .map(|peer| peer.ip().to_string())
                    .unwrap_or_default(),
            ),
            "remote_port" => i32::from(self.peer.map_or(0, |peer| peer.port())).into_js(ctx),
            "url" if self.has_url_as_written => text(&self.request.written),
            "url" => text(&self.address.to_string()),
            "status" => i32::from(self.status).into_js(ctx),
            "status_text" => text(&status_text(self.status)),
            "proto" => text(self.protocol),
            "headers" => headers(ctx, &as_shown(&self.fields)).map(Object::into_value),
            "cookies" => cookies(ctx, self).map(Object::into_value),
            "body" => body(ctx, self),
            "timings" => timings(ctx, &self.timings).map(Object::into_value),
            "tls_version" => text(&self.tls_version),
            "tls_cipher_suite" => text(&self.tls_cipher),
            "error" => text(&self.error),
            "error_code" => i32::from(self.error_code).into_js(ctx),
            "request" => request(ctx, self).map(Object::into_value),
            _ => ocsp(ctx).map(Object::into_value),
        }
    }
}

/// The response to a request whose arguments are wrong, so that none was sent.
#[derive(Debug)]
pub(crate) struct NoResponse {
    pub(crate) error_code: u16,
    pub(crate) error: String,
}

impl LazyProperties for NoResponse {
    fn make<'js>(&self, ctx: &Ctx<'js>, index: usize) -> js::Result<Value<'js>> {
        match PROPERTIES[index] {
            "remote_port" | "status" => 0.into_js(ctx),
            "headers" | "cookies" => Object::new(ctx.clone()).map(Object::into_value),
            // k6 has an empty list of bytes there, which counts as true.
            "body" => Array::new(ctx.clone()).map(Array::into_value),
            "timings" => timings(ctx, &Timings::default()).map(Object::into_value),
            "error" => self.error.as_str().into_js(ctx),
            "error_code" => i32::from(self.error_code).into_js(ctx),
            "request" => Ok(Value::new_null(ctx.clone())),
            "ocsp" => ocsp(ctx).map(Object::into_value),
            _ => "".into_js(ctx),
        }
    }
}

fn timings<'js>(ctx: &Ctx<'js>, timings: &Timings) -> js::Result<Object<'js>> {
    let object = Object::new(ctx.clone())?;
    for (name, time) in [
        ("duration", timings.duration()),
        ("blocked", timings.blocked),
        ("looking_up", Duration::ZERO),
        ("connecting", timings.connecting),
        ("tls_handshaking", timings.tls_handshaking),
        ("sending", timings.sending),
        ("waiting", timings.waiting),
        ("receiving", timings.receiving),
    ] {
        object.set(name, millis(time))?;
    }
    Ok(object)
}

fn request<'js>(ctx: &Ctx<'js>, response: &HttpResponse) -> js::Result<Object<'js>> {
    let request = &response.request;
    let object = Object::new(ctx.clone())?;
    // Also behind a redirect that changed it, as by k6.
    object.set("method", request.method.as_str())?;
    object.set("url", request.address.to_string())?;
    object.set("headers", sent_headers(ctx, response)?)?;
    object.set("body", &*String::from_utf8_lossy(&request.plain))?;
    object.set("cookies", sent_cookies(ctx, response)?)?;
    Ok(object)
}

/// k6 fills it if the server staples a response of OCSP, which is not read here.
fn ocsp<'js>(ctx: &Ctx<'js>) -> js::Result<Object<'js>> {
    let object = Object::new(ctx.clone())?;
    for name in ["produced_at", "this_update", "next_update", "revoked_at"] {
        object.set(name, 0)?;
    }
    for name in ["revocation_reason", "status"] {
        object.set(name, "")?;
    }
    Ok(object)
}

fn body<'js>(ctx: &Ctx<'js>, response: &HttpResponse) -> js::Result<Value<'js>> {
    if response.status == 0 {
        return Ok(Value::new_null(ctx.clone()));
    }
    match response.request.body_form {
        BodyForm::None => Ok(Value::new_null(ctx.clone())),
        BodyForm::Text => (&*String::from_utf8_lossy(&response.content)).into_js(ctx),
        BodyForm::Binary => {
            ArrayBuffer::new(ctx.clone(), response.content.to_vec()).map(ArrayBuffer::into_value)
        }
    }
}

/// Repeated fields are joined.
fn headers<'js>(ctx: &Ctx<'js>, fields: &[(String, String)]) -> js::Result<Object<'js>> {
    let object = Object::new(ctx.clone())?;
    for (index, (name, value)) in fields.iter().enumerate() {
        if fields[..index].iter().any(|(other, _)| other == name) {
            continue;
        }
        let mut rest = fields[index + 1..]
            .iter()
            .filter(|(other, _)| other == name);
        let Some((_, second)) = rest.next() else {
            object.set(name.as_str(), value.as_str())?;
            continue;
        };
        let mut joined = format!("{value}, {second}");
        for (_, value) in rest {
            joined.push_str(", ");
            joined.push_str(value);
        }
        object.set(name.as_str(), joined)?;
    }
    Ok(object)
}

fn cookies<'js>(ctx: &Ctx<'js>, response: &HttpResponse) -> js::Result<Object<'js>> {
    let object = Object::new(ctx.clone())?;
    let fields = response.fields.iter();
    for (_, field) in fields.filter(|(name, _)| name.eq_ignore_ascii_case(b"set-cookie")) {
        let field = String::from_utf8_lossy(field);
        let mut parts = field.split(';');
        let Some((name, value)) = parts.next().and_then(|pair| pair.split_once('=')) else {
            continue;
        };
        let cookie = Object::new(ctx.clone())?;
        let name = name.trim();
        cookie.set("name", name)?;
        cookie.set("value", value.trim())?;
        cookie.set("domain", "")?;
        cookie.set("path", "")?;
        cookie.set("http_only", false)?;
        cookie.set("secure", false)?;
        cookie.set("max_age", 0)?;
        cookie.set("expires", 0)?;
        for part in parts {
            let (key, value) = part.split_once('=').unwrap_or((part, ""));
            match key.trim().to_ascii_lowercase().as_str() {
                "domain" => cookie.set("domain", value.trim())?,
                "path" => cookie.set("path", value.trim())?,
                "httponly" => cookie.set("http_only", true)?,
                "secure" => cookie.set("secure", true)?,
                "max-age" => cookie.set("max_age", value.trim().parse().unwrap_or(0_i32))?,
                "expires" => {
                    let date: Object<'_> = ctx.globals().get("Date")?;
                    let parse: js::Function<'_> = date.get("parse")?;
                    let at: f64 = parse.call((value.trim(),))?;
                    if at.is_finite() {
                        cookie.set("expires", at)?;
                    }
                }
                _ => {}
            }
        }
        let list = list_of(ctx, &object, name)?;
        list.set(list.len(), cookie)?;
    }
    Ok(object)
}

/// The array of that name; it is added if there is none.
fn list_of<'js>(ctx: &Ctx<'js>, object: &Object<'js>, name: &str) -> js::Result<Array<'js>> {
    if let Some(list) = object.get::<_, Option<Array<'js>>>(name)? {
        return Ok(list);
    }
    let list = Array::new(ctx.clone())?;
    object.set(name, list.clone())?;
    Ok(list)
}

fn sent_headers<'js>(ctx: &Ctx<'js>, response: &HttpResponse) -> js::Result<Object<'js>> {
    let headers = Object::new(ctx.clone())?;
    let host = response.sent_host.as_deref();
    for (name, value) in &shown_fields(&response.sent_fields, &response.request, host) {
        let list = list_of(ctx, &headers, name)?;
        list.set(list.len(), value.as_str())?;
    }
    Ok(headers)
}

fn sent_cookies<'js>(ctx: &Ctx<'js>, response: &HttpResponse) -> js::Result<Object<'js>> {
    let cookies = Object::new(ctx.clone())?;
    for (name, value) in &response.sent_cookies {
        let cookie = Object::new(ctx.clone())?;
        cookie.set("name", name.as_str())?;
        cookie.set("value", value.as_str())?;
        cookie.set("replace", false)?;
        let list = list_of(ctx, &cookies, name)?;
        list.set(list.len(), cookie)?;
    }
    Ok(cookies)
}

/// The status with its standard phrase; empty if there is no response.
pub(super) fn status_text(status: u16) -> String {
    let Ok(code) = http::StatusCode::from_u16(status) else {
        return String::new();
    };
    let reason = code.canonical_reason().unwrap_or_default();
    format!("{status} {reason}").trim_end().to_owned()
}

/// `content-type` as `Content-Type`.
pub(crate) fn canonical(name: &str) -> String {
    let mut is_first = true;
    name.chars()
        .map(|letter| {
            let letter = if is_first {
                letter.to_ascii_uppercase()
            } else {
                letter.to_ascii_lowercase()
            };
            is_first = letter == '-';
            letter
        })
        .collect()
}
