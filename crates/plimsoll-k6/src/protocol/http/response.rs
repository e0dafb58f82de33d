//! The outcome of a request, and its form in scripts.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use plimsoll_script::js::{self, Array, ArrayBuffer, Ctx, IntoJs as _, Object, Value};

use super::request::{BodyForm, HttpRequest};
use crate::options::duration::millis;

/// The last response of a request, or why there is none.
#[derive(Debug)]
pub(crate) struct HttpResponse {
    pub(crate) request: HttpRequest,
    /// That of the last request; as the script wrote it if the first one failed.
    pub(crate) url: String,
    /// The same for messages: without user and password.
    pub(crate) masked_url: String,
    /// 0 if there is no response.
    pub(crate) status: u16,
    pub(crate) reason: String,
    pub(crate) protocol: &'static str,
    pub(crate) fields: Vec<(String, String)>,
    /// Decoded.
    pub(crate) content: Bytes,
    pub(crate) timings: Timings,
    pub(crate) peer: Option<SocketAddr>,
    pub(crate) tls_version: String,
    pub(crate) tls_cipher: String,
    pub(crate) error: String,
    pub(crate) error_code: u16,
    /// The fields that were sent first.
    pub(crate) sent_fields: Vec<(String, String)>,
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

/// What the constructor of `Response` takes, in its order.
pub(crate) fn to_parts<'js>(ctx: &Ctx<'js>, response: &HttpResponse) -> js::Result<Value<'js>> {
    let parts = Array::new(ctx.clone())?;
    let mut count = 0;
    let mut push = |value: Value<'js>| {
        count += 1;
        parts.set(count - 1, value)
    };
    let text = |text: &str| js::String::from_str(ctx.clone(), text).map(js::String::into_value);
    let number = |time: Duration| millis(time).into_js(ctx);
    let peer = response.peer;
    let ip = peer.map(|peer| peer.ip().to_string()).unwrap_or_default();
    push(text(&ip)?)?;
    push(i32::from(peer.map_or(0, |peer| peer.port())).into_js(ctx)?)?;
    push(text(&response.url)?)?;
    push(i32::from(response.status).into_js(ctx)?)?;
    push(text(&response.reason)?)?;
    push(text(response.protocol)?)?;
    push(headers(ctx, &response.fields)?.into_value())?;
    push(cookies(ctx, response)?.into_value())?;
    push(body(ctx, response)?)?;
    let timings = &response.timings;
    push(number(timings.duration())?)?;
    push(number(timings.blocked)?)?;
    push(number(timings.connecting)?)?;
    push(number(timings.tls_handshaking)?)?;
    push(number(timings.sending)?)?;
    push(number(timings.waiting)?)?;
    push(number(timings.receiving)?)?;
    push(text(&response.tls_version)?)?;
    push(text(&response.tls_cipher)?)?;
    push(text(&response.error)?)?;
    push(i32::from(response.error_code).into_js(ctx)?)?;
    // Also behind a redirect that changed it, as by k6.
    push(text(response.request.method.as_str())?)?;
    push(sent_headers(ctx, response)?.into_value())?;
    push(text(&String::from_utf8_lossy(&response.request.plain))?)?;
    push(sent_cookies(ctx, response)?.into_value())?;
    push(text(&response.request.address.to_string())?)?;
    Ok(parts.into_value())
}

/// The same of a request that was none: it has no `Response.request`.
pub(crate) fn refused_parts<'js>(ctx: &Ctx<'js>, code: u16, error: &str) -> js::Result<Value<'js>> {
    let parts = Array::new(ctx.clone())?;
    for index in [0, 2, 4, 5, 16, 17] {
        parts.set(index, "")?;
    }
    for index in [1, 3, 9, 10, 11, 12, 13, 14, 15] {
        parts.set(index, 0)?;
    }
    for index in [6, 7] {
        parts.set(index, Object::new(ctx.clone())?)?;
    }
    // k6 has an empty list of bytes there, which counts as true.
    parts.set(8, Array::new(ctx.clone())?)?;
    parts.set(18, error)?;
    parts.set(19, code)?;
    Ok(parts.into_value())
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
    for (_, field) in fields.filter(|(name, _)| name == "Set-Cookie") {
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
    for (name, value) in &response.sent_fields {
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
