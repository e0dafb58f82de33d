//! A request as a script describes it.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use plimsoll_client::Endpoint;
use plimsoll_script::js::{self, Array, Coerced, Ctx, FromJs as _, Object, Value};
use url::Url;

use super::address::Address;
use super::error_code;
use crate::go_error::throw_error;
use crate::options::duration;
use crate::user::UserState;

/// A request, checked.
#[derive(Debug, Clone)]
pub(crate) struct HttpRequest {
    pub(crate) method: String,
    /// As the script wrote it.
    pub(crate) written: String,
    /// As k6 shows it.
    pub(crate) address: Rc<Address>,
    pub(crate) fields: Vec<(String, String)>,
    /// With whether each takes the place of one of the jar.
    pub(crate) cookies: Vec<(String, String, bool)>,
    pub(crate) content: Bytes,
    /// The body before it was compressed.
    pub(crate) plain: Bytes,
    pub(crate) jar: u32,
    pub(crate) timeout: Duration,
    pub(crate) redirects: u32,
    /// Those of the virtual user at the time, then those of the request; with `name` only where the script has set it.
    pub(crate) tags: Vec<(String, String)>,
    pub(crate) body_form: BodyForm,
    /// Ranges of expected statuses; `None` measures no failures.
    pub(crate) expected: Option<Cow<'static, [(u16, u16)]>>,
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

/// Where a request is sent.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) address: Rc<Address>,
    /// The same in the form of the URL Standard, by which connections and cookies are found.
    pub(crate) url: Url,
    /// Without what the options say of its host.
    endpoint: OnceCell<Endpoint>,
}

impl Target {
    /// Fails, with a code and its text, if nothing can be sent there: k6 finds that when it sends, so it is a request.
    pub(crate) fn new(address: Rc<Address>) -> Result<Self, (u16, String)> {
        if !matches!(address.scheme(), "http" | "https") {
            let scheme = address.scheme();
            return Err((1000, format!("unsupported protocol scheme {scheme:?}")));
        }
        if address.host().is_empty() {
            return Err((1000, "http: no Host in request URL".to_owned()));
        }
        match Url::parse(&address.to_string()) {
            Ok(url) => Ok(Self {
                address,
                url,
                endpoint: OnceCell::new(),
            }),
            Err(url::ParseError::InvalidPort) => Err((
                1210,
                format!("dial tcp: address {}: invalid port", address.host()),
            )),
            Err(_) => Err((1101, "lookup: no such host".to_owned())),
        }
    }

    /// Fails, with a code and its text, if the URL has no host to connect to.
    pub(crate) fn endpoint(&self) -> Result<&Endpoint, (u16, String)> {
        if let Some(endpoint) = self.endpoint.get() {
            return Ok(endpoint);
        }
        let endpoint = Endpoint::try_from(&self.url)
            .map_err(|error| error_code::invalid_url(self.url.as_str(), &error))?;
        Ok(self.endpoint.get_or_init(|| endpoint))
    }

    /// Host and port for the field `Host`, where they are not those of the URL Standard.
    pub(crate) fn authority(&self) -> Option<String> {
        let host = self.address.host();
        (host.is_ascii() && !host.contains('%')).then(|| host.to_owned())
    }
}

/// Why the arguments of a request describe none. Unless the script wants exceptions, it gets a response with the error.
#[derive(Debug)]
pub(crate) enum RefusedRequest {
    /// An exception that the arguments themselves throw.
    Exception(js::Error),
    /// The code and the text of the error.
    Invalid(u16, String),
}

impl From<js::Error> for RefusedRequest {
    fn from(error: js::Error) -> Self {
        Self::Exception(error)
    }
}

impl RefusedRequest {
    /// The exception, for callers whose errors are exceptions.
    pub(crate) fn throw(self, ctx: &Ctx<'_>) -> js::Error {
        match self {
            Self::Exception(error) => error,
            Self::Invalid(_, text) => throw_error(ctx, &text),
        }
    }
}

/// The form of a response's content in the script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BodyForm {
    Text,
    Binary,
    None,
}

/// Statuses that are expected where the script says nothing of them.
const EXPECTED: &[(u16, u16)] = &[(200, 399)];

impl HttpRequest {
    /// A request without content and parameters.
    fn new(user: &UserState, method: String, written: String, address: Rc<Address>) -> Self {
        let options = &user.shared.options;
        Self {
            method,
            written,
            address,
            fields: Vec::new(),
            cookies: Vec::new(),
            content: Bytes::new(),
            plain: Bytes::new(),
            jar: 0,
            timeout: Duration::from_mins(1),
            redirects: options.max_redirects,
            tags: user.tags(),
            body_form: if options.discards_bodies {
                BodyForm::None
            } else {
                BodyForm::Text
            },
            expected: Some(Cow::Borrowed(EXPECTED)),
            throws: options.throws,
            login: Login::Basic,
        }
    }

    /// The tag `name` that the script has set.
    pub(crate) fn name(&self) -> Option<&str> {
        name_of(&self.tags)
    }

    pub(crate) fn is_expected(&self, status: u16) -> Option<bool> {
        let mut ranges = self.expected.as_ref()?.iter();
        Some(ranges.any(|(least, most)| (*least..=*most).contains(&status)))
    }
}

/// The tag `name` among tags, of which later ones count.
pub(crate) fn name_of(tags: &[(String, String)]) -> Option<&str> {
    let mut tags = tags.iter().rev();
    tags.find_map(|(name, value)| (name == "name").then_some(value.as_str()))
}

/// The URL of a request: a text, and nothing else.
fn address<'js>(
    ctx: &Ctx<'js>,
    user: &UserState,
    value: Value<'js>,
) -> Result<(String, Rc<Address>), RefusedRequest> {
    let invalid = |text: String| RefusedRequest::Invalid(1020, format!("invalid URL: {text}"));
    if !value.is_string() {
        let shown = if value.is_undefined() || value.is_null() {
            "<nil>".to_owned()
        } else {
            Coerced::<String>::from_js(ctx, value)?.0
        };
        return Err(invalid(format!("'#{shown}'")));
    }
    let written = Coerced::<String>::from_js(ctx, value)?.0;
    match user.targets.address(&written) {
        Ok(address) => Ok((written, address)),
        Err(error) => Err(invalid(error.to_string())),
    }
}

/// A request of which the script has given method and URL alone.
pub(crate) fn parse_plain<'js>(
    ctx: &Ctx<'js>,
    user: &UserState,
    method: Value<'js>,
    url: Value<'js>,
) -> Result<HttpRequest, RefusedRequest> {
    let method = String::from_js(ctx, method)?;
    let (written, address) = address(ctx, user, url)?;
    Ok(HttpRequest::new(user, method, written, address))
}

/// Reads the arguments of the native functions: method, URL, name of a template, body, content type, params, expected statuses
/// (an array of their limits, null for none, a text for an error, otherwise the usual ones), jar.
pub(crate) fn parse<'js>(
    ctx: &Ctx<'js>,
    user: &UserState,
    arguments: &[Value<'js>],
) -> Result<HttpRequest, RefusedRequest> {
    let argument = |index: usize| {
        let value = arguments.get(index).cloned();
        value.unwrap_or_else(|| Value::new_undefined(ctx.clone()))
    };
    let method = String::from_js(ctx, argument(0))?;
    let (written, address) = address(ctx, user, argument(1))?;
    let content = bytes_of(&argument(3)).unwrap_or_default();
    let mut request = HttpRequest {
        plain: content.clone(),
        content,
        jar: u32::from_js(ctx, argument(7))?,
        ..HttpRequest::new(user, method, written, address)
    };
    if let Some(text) = argument(6).as_string() {
        return Err(RefusedRequest::Invalid(0, text.to_string()?));
    }
    let expected = argument(6);
    if let Some(ranges) = expected.as_array() {
        let ranges: Vec<u16> = ranges.iter().collect::<js::Result<_>>()?;
        let pairs = ranges.chunks_exact(2).map(|pair| (pair[0], pair[1]));
        request.expected = Some(pairs.collect());
    } else if expected.is_null() {
        request.expected = None;
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
    // The name of a template counts only where the script sets none.
    if let Some(name) = Option::<String>::from_js(ctx, argument(2))?
        && request.name().is_none()
        && user.shared.system_tags.name
    {
        request.tags.push(("name".to_owned(), name));
    }
    Ok(request)
}

fn read_params<'js>(
    ctx: &Ctx<'js>,
    user: &UserState,
    params: &Object<'js>,
    request: &mut HttpRequest,
) -> Result<(), RefusedRequest> {
    for entry in params.props::<String, Value<'js>>() {
        let (key, value) = entry?;
        if value.is_undefined() || value.is_null() {
            continue;
        }
        let wrong = |what: &str| RefusedRequest::Invalid(0, format!("params.{key} {what}"));
        match key.as_str() {
            "headers" => {
                let object = value.as_object();
                let object = object.ok_or_else(|| wrong("must be an object"))?;
                for field in object.props::<String, Coerced<String>>() {
                    let (name, Coerced(value)) = field?;
                    let is_length = name.eq_ignore_ascii_case("content-length");
                    if is_length && value.trim() != request.content.len().to_string() {
                        user.warn("the header Content-Length is set by plimsoll; that of the script is ignored");
                    }
                    if !is_length {
                        request.fields.push((name, value));
                    }
                }
            }
            "cookies" => {
                let object = value
                    .as_object()
                    .ok_or_else(|| wrong("must be an object"))?;
                for cookie in object.props::<String, Value<'js>>() {
                    let (name, value) = cookie?;
                    if value.is_undefined() || value.is_null() {
                        continue;
                    }
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
                    (None, Some(text)) => duration::parse(&text.to_string()?).ok(),
                    (None, None) => None,
                };
                request.timeout = given.ok_or_else(|| wrong("is not a duration"))?;
            }
            "redirects" => {
                // Anything but a positive number follows none.
                let number = value.as_number().unwrap_or_default();
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "a larger limit has no effect, and a negative one becomes 0"
                )]
                let number = number as u32;
                request.redirects = number;
            }
            "tags" => {
                let tags = custom_tags(ctx, &value).map_err(|error| wrong(&error.to_string()))?;
                request.tags.extend(tags);
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
            "auth" => {
                request.login = match Coerced::<String>::from_js(ctx, value)?.0.as_str() {
                    "digest" => Login::Digest,
                    "ntlm" => Login::Ntlm,
                    _ => Login::Basic,
                };
            }
            "compression" => {
                let list = Coerced::<String>::from_js(ctx, value)?.0;
                compress(request, &list).map_err(|error| wrong(&error.to_string()))?;
            }
            // `jar` and `responseCallback` are read by the JavaScript side; others mean nothing.
            _ => {}
        }
    }
    Ok(())
}

/// A content coding that requests cannot have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("has `{0}`, which is not one of gzip, deflate, br and zstd")]
struct UnknownCoding(String);

/// Compresses the body by each coding of a list.
fn compress(request: &mut HttpRequest, list: &str) -> Result<(), UnknownCoding> {
    let mut names = Vec::new();
    for name in list
        .split(',')
        .map(str::trim)
        .filter(|name| !name.is_empty())
    {
        let compressed = plimsoll_client::encoded(name, &request.content);
        let compressed = compressed.ok_or_else(|| UnknownCoding(name.to_owned()))?;
        request.content = Bytes::from(compressed);
        names.push(name);
    }
    if !names.is_empty() {
        let field = ("Content-Encoding".to_owned(), names.join(", "));
        request.fields.push(field);
    }
    Ok(())
}

/// Why a script's tags cannot be used.
#[derive(Debug, thiserror::Error)]
enum TagsError {
    #[error("must be an object")]
    NoObject,
    #[error("has the tag '{0}', which must be a string, a number or a boolean")]
    Kind(String),
    #[error(transparent)]
    Engine(#[from] js::Error),
}

/// Tags that a script gives: an object of texts, numbers and booleans.
fn custom_tags<'js>(
    ctx: &Ctx<'js>,
    value: &Value<'js>,
) -> Result<Vec<(String, String)>, TagsError> {
    let object = value.as_object().ok_or(TagsError::NoObject)?;
    let mut tags = Vec::new();
    for tag in object.props::<String, Value<'_>>() {
        let (name, value) = tag?;
        if !(value.is_string() || value.is_bool() || value.is_number()) {
            return Err(TagsError::Kind(name));
        }
        let Coerced(value) = Coerced::<String>::from_js(ctx, value.clone())?;
        tags.push((name, value));
    }
    Ok(tags)
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
