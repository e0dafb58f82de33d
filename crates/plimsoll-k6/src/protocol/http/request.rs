//! A request as a script describes it.

use std::time::Duration;

use bytes::Bytes;
use plimsoll_script::js::{self, Array, Coerced, Ctx, Exception, FromJs as _, Object, Value};
use url::Url;

use crate::options::duration;
use crate::user::UserState;

/// A request, checked.
#[derive(Debug, Clone)]
pub(crate) struct HttpRequest {
    pub(crate) method: String,
    /// As the script wrote it.
    pub(crate) address: String,
    /// Why the address is invalid.
    pub(crate) url: Result<Url, UrlError>,
    /// Of the tag `name`, where it is not the URL.
    pub(crate) name: Option<String>,
    pub(crate) fields: Vec<(String, String)>,
    /// With whether each takes the place of one of the jar.
    pub(crate) cookies: Vec<(String, String, bool)>,
    pub(crate) content: Bytes,
    pub(crate) jar: u32,
    pub(crate) timeout: Duration,
    pub(crate) redirects: u32,
    /// Those of the virtual user at the time, then those of the request.
    pub(crate) tags: Vec<(String, String)>,
    pub(crate) body_form: BodyForm,
    /// Ranges of expected statuses; `None` measures no failures.
    pub(crate) expected: Option<Vec<(u16, u16)>>,
    pub(crate) throws: bool,
    pub(crate) login: Login,
}

/// How user and password of the URL are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Login {
    /// As they are (RFC 7617).
    Basic,
    /// They answer a digest challenge (RFC 7616).
    Digest,
    /// They answer a challenge of NTLM.
    Ntlm,
}

/// Why an address cannot be requested.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum UrlError {
    /// It is not a URL.
    Invalid(String),
    /// It has none of the schemes of HTTP, or none at all.
    Scheme(String),
}

/// The form of a response's content in the script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BodyForm {
    Text,
    Binary,
    None,
}

impl HttpRequest {
    pub(crate) fn is_expected(&self, status: u16) -> Option<bool> {
        let ranges = self.expected.as_ref()?;
        let mut ranges = ranges.iter();
        Some(ranges.any(|(least, most)| (*least..=*most).contains(&status)))
    }
}

/// Reads the arguments of the native functions: method, URL, name, body, content type, params, callback, jar.
pub(crate) fn parse<'js>(
    ctx: &Ctx<'js>,
    user: &UserState,
    arguments: &[Value<'js>],
) -> js::Result<HttpRequest> {
    let argument = |index: usize| {
        let value = arguments.get(index).cloned();
        value.unwrap_or_else(|| Value::new_undefined(ctx.clone()))
    };
    let method = String::from_js(ctx, argument(0))?;
    let address = Coerced::<String>::from_js(ctx, argument(1))?.0;
    let url = match Url::parse(&address) {
        Ok(url) if matches!(url.scheme(), "http" | "https") && url.has_host() => Ok(url),
        Ok(url) => Err(UrlError::Scheme(url.scheme().to_owned())),
        Err(url::ParseError::RelativeUrlWithoutBase) => Err(UrlError::Scheme(String::new())),
        Err(error) => Err(UrlError::Invalid(error.to_string())),
    };
    let content = bytes_of(&argument(3)).unwrap_or_default();
    let options = &user.shared.options;
    let mut request = HttpRequest {
        method,
        address,
        url,
        name: Option::from_js(ctx, argument(2))?,
        fields: Vec::new(),
        cookies: Vec::new(),
        content,
        jar: u32::from_js(ctx, argument(7))?,
        timeout: Duration::from_mins(1),
        redirects: options.max_redirects,
        tags: user.tags(),
        body_form: if options.discards_bodies {
            BodyForm::None
        } else {
            BodyForm::Text
        },
        expected: None,
        throws: options.throws,
        login: Login::Basic,
    };
    if let Some(ranges) = argument(6).as_array() {
        let ranges: Vec<u16> = ranges.iter().collect::<js::Result<_>>()?;
        let pairs = ranges.chunks_exact(2).map(|pair| (pair[0], pair[1]));
        request.expected = Some(pairs.collect());
    }
    if let Some(params) = argument(5).as_object() {
        read_params(ctx, user, params, &mut request)?;
    }
    if let Some(kind) = Option::<String>::from_js(ctx, argument(4))? {
        let is_given = request
            .fields
            .iter()
            .any(|(name, _)| name.eq_ignore_ascii_case("content-type"));
        if !is_given {
            request.fields.push(("Content-Type".to_owned(), kind));
        }
    }
    Ok(request)
}

fn read_params<'js>(
    ctx: &Ctx<'js>,
    user: &UserState,
    params: &Object<'js>,
    request: &mut HttpRequest,
) -> js::Result<()> {
    for entry in params.props::<String, Value<'js>>() {
        let (key, value) = entry?;
        if value.is_undefined() || value.is_null() {
            continue;
        }
        let wrong = |what: &str| Exception::throw_type(ctx, &format!("params.{key} {what}"));
        match key.as_str() {
            "headers" => {
                for (name, value) in texts(&value).ok_or_else(|| wrong("must be an object"))? {
                    if name.eq_ignore_ascii_case("content-length") {
                        user.warn("the header Content-Length is set by plimsoll; that of the script is ignored");
                        continue;
                    }
                    request.fields.push((name, value));
                }
            }
            "cookies" => {
                let object = value
                    .as_object()
                    .ok_or_else(|| wrong("must be an object"))?;
                for cookie in object.props::<String, Value<'js>>() {
                    let (name, value) = cookie?;
                    let (value, replaces) = match value.as_object() {
                        Some(object) => (
                            object.get::<_, Coerced<String>>("value")?.0,
                            object.get::<_, Option<bool>>("replace")?.unwrap_or(false),
                        ),
                        None => (Coerced::<String>::from_js(ctx, value)?.0, false),
                    };
                    request.cookies.push((name, value, replaces));
                }
            }
            "timeout" => {
                let given = match (value.as_number(), value.as_string()) {
                    (Some(millis), _) => duration::from_millis(millis),
                    (None, Some(text)) => plimsoll_model::parse_duration(&text.to_string()?).ok(),
                    (None, None) => None,
                };
                request.timeout = given.ok_or_else(|| wrong("is not a duration"))?;
            }
            "redirects" => {
                let number = value.as_number().filter(|it| *it >= 0.0);
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "a larger limit has no effect"
                )]
                let number = number.map(|number| number as u32);
                request.redirects = number.ok_or_else(|| wrong("must be a number"))?;
            }
            "tags" => {
                let tags = texts(&value).ok_or_else(|| wrong("must be an object"))?;
                for (name, value) in tags {
                    if name == "name" {
                        request.name = Some(value);
                    } else {
                        request.tags.push((name, value));
                    }
                }
            }
            "responseType" => {
                let form = value.as_string().and_then(|text| text.to_string().ok());
                request.body_form = match form.as_deref() {
                    Some("text") => BodyForm::Text,
                    Some("binary") => BodyForm::Binary,
                    Some("none") => BodyForm::None,
                    _ => return Err(wrong("must be one of \"text\", \"binary\" and \"none\"")),
                };
            }
            "throw" => request.throws = value.as_bool().unwrap_or(false),
            "auth" => match value
                .as_string()
                .and_then(|text| text.to_string().ok())
                .as_deref()
            {
                Some("basic") => {}
                Some("digest") => request.login = Login::Digest,
                Some("ntlm") => request.login = Login::Ntlm,
                _ => {
                    return Err(wrong("must be one of \"basic\", \"digest\" and \"ntlm\""));
                }
            },
            "compression" => {
                let list = Coerced::<String>::from_js(ctx, value)?.0;
                compress(request, &list).map_err(|message| wrong(&message))?;
            }
            // `jar` and `responseCallback` are read by the JavaScript side; others mean nothing.
            _ => {}
        }
    }
    Ok(())
}

/// Compresses the body by each coding of a list.
fn compress(request: &mut HttpRequest, list: &str) -> Result<(), String> {
    let mut names = Vec::new();
    for name in list
        .split(',')
        .map(str::trim)
        .filter(|name| !name.is_empty())
    {
        let compressed = plimsoll_client::encoded(name, &request.content);
        let compressed = compressed.ok_or_else(|| {
            format!("has `{name}`, which is not one of gzip, deflate, br and zstd")
        })?;
        request.content = Bytes::from(compressed);
        names.push(name);
    }
    if !names.is_empty() {
        let field = ("Content-Encoding".to_owned(), names.join(", "));
        request.fields.push(field);
    }
    Ok(())
}

/// The properties of an object as texts; `None` if it is not an object.
pub(crate) fn texts(value: &Value<'_>) -> Option<Vec<(String, String)>> {
    let object = value.as_object()?;
    let mut all = Vec::new();
    for entry in object.props::<String, Value<'_>>() {
        let (name, value) = entry.ok()?;
        if value.is_undefined() || value.is_null() {
            continue;
        }
        let ctx = value.ctx().clone();
        all.push((name, Coerced::<String>::from_js(&ctx, value).ok()?.0));
    }
    Some(all)
}

/// The bytes of a text, an array buffer or a view of one; `None` for anything else.
pub(crate) fn bytes_of(value: &Value<'_>) -> Option<Bytes> {
    if let Some(text) = value.as_string() {
        return Some(Bytes::from(text.to_string().ok()?));
    }
    let object = value.as_object()?;
    if let Some(buffer) = js::ArrayBuffer::from_object(object.clone()) {
        return copied(&buffer, 0, buffer.len());
    }
    if let Some(numbers) = object.as_array() {
        let numbers: Vec<u8> = Array::iter(numbers).collect::<js::Result<_>>().ok()?;
        return Some(Bytes::from(numbers));
    }
    let buffer: js::ArrayBuffer<'_> = object.get("buffer").ok()?;
    let start: usize = object.get("byteOffset").ok()?;
    let length: usize = object.get("byteLength").ok()?;
    copied(&buffer, start, length)
}

/// A copy, since the script may change its buffer while the request waits.
fn copied(buffer: &js::ArrayBuffer<'_>, start: usize, length: usize) -> Option<Bytes> {
    plimsoll_script::read_buffer(buffer, |bytes| {
        let end = start.checked_add(length)?;
        Some(Bytes::copy_from_slice(bytes.get(start..end)?))
    })?
}
