//! Whether a request is one that an operation allows.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::StatusCode;
use plimsoll_formats::openapi::{
    Credential, ListStyle, ObjectStyle, Operation, Parameter, ParameterPlace, RequestBody,
};
use plimsoll_formats::{Place, Remark};
use plimsoll_schema::JsonSchema;
use serde_json::{Map, Value, json};

use super::{Refusal, form, nest};
use crate::request::{Pairs, RequestView, values};

/// Further mistakes of one request are left out.
const MOST_ERRORS: usize = 50;

/// Media types whose values are written as texts.
const FORM: &str = "application/x-www-form-urlencoded";
const MULTIPART: &str = "multipart/form-data";

/// Characters of one mistake's message.
const LONGEST_MESSAGE: usize = 300;

/// The validators of an operation.
#[derive(Debug)]
pub(super) struct RequestCheck {
    /// By the numbers of parameters.
    parameters: Vec<Option<JsonSchema>>,
    /// By the numbers of media types.
    content: Vec<Option<JsonSchema>>,
}

impl RequestCheck {
    /// Compiles the schemas of an operation; those that are none are noted.
    pub(super) fn new(operation: &Operation, left_out: &mut Vec<Remark>) -> Self {
        let mut compile = |what: &str, schema: &Option<Value>, is_written: bool| {
            let schema = schema.as_ref()?;
            let compiled = if is_written {
                JsonSchema::of_openapi_texts(schema)
            } else {
                JsonSchema::of_openapi(schema)
            };
            compiled
                .inspect_err(|error| {
                    let method = operation.method.to_ascii_lowercase();
                    let key = format!("paths.{}.{method}.{what}", operation.path);
                    let message = cut(&format!(
                        "is no schema ({error}), so nothing is validated by it"
                    ));
                    left_out.push(Remark::new(Place::Key(key), message));
                })
                .ok()
        };
        let parameters = operation.parameters.iter();
        let parameters =
            parameters.map(|it| compile(&format!("parameters.{}", it.name), &it.schema, true));
        let parameters = parameters.collect();
        let content = operation.body.iter().flat_map(|body| &body.content);
        Self {
            parameters,
            content: content
                .map(|it| {
                    let is_form = it.kind == FORM || it.kind == MULTIPART;
                    compile(&format!("requestBody.{}", it.kind), &it.schema, is_form)
                })
                .collect(),
        }
    }

    /// Refuses what the operation does not allow: who does not say who they are first, then a media type, then values.
    ///
    /// - `places`: what stands in the path.
    pub(super) fn check(
        &self,
        operation: &Operation,
        request: &RequestView<'_>,
        places: &[(&str, String)],
    ) -> Result<(), Refusal> {
        authorize(operation, request)?;
        let mut errors = Vec::new();
        for (parameter, validator) in operation.parameters.iter().zip(&self.parameters) {
            let at = json!({ "in": parameter.place.name(), "name": parameter.name });
            match value(parameter, request, places) {
                None if parameter.is_required => errors.push(error(&at, "", "is missing")),
                None => {}
                Some(value) => {
                    judge(validator.as_ref(), &at, &value, &mut errors);
                }
            }
        }
        match &operation.body {
            Some(body) => self.check_body(body, request, &mut errors)?,
            None if request.body.is_empty() => {}
            None => {
                let detail = format!("{} {} takes no content", operation.method, operation.path);
                return Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail));
            }
        }
        if errors.is_empty() {
            return Ok(());
        }
        let has = |code: &str| operation.responses.iter().any(|it| it.code == code);
        let status = if has("400") && !has("422") {
            StatusCode::BAD_REQUEST
        } else {
            StatusCode::UNPROCESSABLE_ENTITY
        };
        let mut refusal = Refusal::new(status, "the request is not as the document describes it");
        errors.truncate(MOST_ERRORS);
        refusal.errors = errors;
        Err(refusal)
    }

    fn check_body(
        &self,
        body: &RequestBody,
        request: &RequestView<'_>,
        errors: &mut Vec<Value>,
    ) -> Result<(), Refusal> {
        let at = json!({ "in": "body" });
        if request.body.is_empty() {
            if body.is_required {
                errors.push(error(&at, "", "is missing"));
            }
            return Ok(());
        }
        if body.content.is_empty() {
            return Ok(());
        }
        let kind = request.header_text("content-type").unwrap_or_default();
        let kind = kind.split(';').next().unwrap_or_default().trim();
        let kind = kind.to_ascii_lowercase();
        let number = body.content.iter().position(|it| fits(&it.kind, &kind));
        let Some(number) = number else {
            let kinds: Vec<&str> = body.content.iter().map(|it| it.kind.as_str()).collect();
            let detail = format!("the content must be {}", kinds.join(" or "));
            return Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail));
        };
        let validator = self.content.get(number).and_then(Option::as_ref);
        let fields = body.content.get(number).map(|it| it.fields.as_slice());
        let fields = fields.unwrap_or_default();
        if kind == "application/json" || kind.ends_with("+json") {
            match request.json() {
                None => errors.push(error(&at, "", "is no JSON")),
                Some(value) => judge(validator, &at, value, errors),
            }
        } else if kind == FORM {
            judge(validator, &at, &form::of_pairs(fields, request), errors);
        } else if kind == MULTIPART {
            match form::of_parts(fields, request) {
                Ok(value) => judge(validator, &at, &value, errors),
                Err(wrong) => {
                    errors.extend(wrong.iter().map(|it| error(&at, &it.pointer, &it.message)));
                }
            }
        }
        Ok(())
    }
}

/// Whether a media type is one of a range.
pub(super) fn fits(range: &str, kind: &str) -> bool {
    match range.split_once('/') {
        Some(("*", "*")) => true,
        Some((class, "*")) => kind.split('/').next() == Some(class),
        _ => range == kind,
    }
}

fn authorize(operation: &Operation, request: &RequestView<'_>) -> Result<(), Refusal> {
    let has = |credential: &Credential| match credential {
        Credential::Authorization(scheme) => {
            let given = request.header_text("authorization").unwrap_or_default();
            let (given, rest) = given.split_once(' ').unwrap_or((given, ""));
            let is_scheme = scheme.is_empty() || given.eq_ignore_ascii_case(scheme);
            !given.is_empty() && is_scheme && are_formed(given, rest)
        }
        Credential::Key(ParameterPlace::Header, name) => request.header(name).is_some(),
        Credential::Key(ParameterPlace::Cookie, name) => {
            values(request.cookies(), name).next().is_some()
        }
        Credential::Key(_, name) => values(request.parameters(), name).next().is_some(),
    };
    let ways = &operation.security;
    if ways.is_empty() || ways.iter().any(|all| all.iter().all(has)) {
        return Ok(());
    }
    let shown = |credential: &Credential| match credential {
        Credential::Authorization(scheme) => format!("`authorization` with {scheme}"),
        Credential::Key(place, name) => format!("`{name}` in the {}", place.name()),
    };
    let ways = ways.iter();
    let ways = ways.map(|all| all.iter().map(shown).collect::<Vec<_>>().join(" and "));
    let detail = format!("needs {}", ways.collect::<Vec<_>>().join(", or "));
    let schemes = operation.security.iter().flatten();
    let schemes = schemes.filter_map(|it| match it {
        Credential::Authorization(scheme) => Some(scheme.as_str()),
        Credential::Key(..) => None,
    });
    let mut schemes: Vec<&str> = schemes.collect();
    if schemes.is_empty() {
        schemes.push("key");
    }
    Err(Refusal::unauthorized(detail, &schemes))
}

/// Whether credentials have the form of their scheme; those of Basic are a name and a password (RFC 7617, section 2).
fn are_formed(scheme: &str, credentials: &str) -> bool {
    let decoded = || STANDARD.decode(credentials.trim()).ok();
    !scheme.eq_ignore_ascii_case("basic") || decoded().is_some_and(|it| it.contains(&b':'))
}

/// The value of a parameter, if it is there.
pub(super) fn value(
    parameter: &Parameter,
    request: &RequestView<'_>,
    places: &[(&str, String)],
) -> Option<Value> {
    let name = &parameter.name;
    let is_compound = parameter.list.is_some() || parameter.kind.as_deref() == Some("object");
    if (parameter.is_deep || is_compound || parameter.object.is_some())
        && let Some(pairs) = pairs_of(parameter.place, request)
        && let Some(value) = nest::value(parameter, pairs, parameter.is_deep)
    {
        return Some(value);
    }
    if let Some(style) = &parameter.object
        && let Some(object) = by_keys(parameter, style, request, places)
    {
        return Some(object);
    }
    let texts: Vec<&str> = match pairs_of(parameter.place, request) {
        Some(pairs) => values(pairs, name).collect(),
        None => single(parameter, request, places).into_iter().collect(),
    };
    let first = texts.first()?;
    let kind = parameter.kind.as_deref();
    Some(match parameter.list {
        None => typed(kind, first),
        Some(ListStyle::Repeated) => texts.iter().map(|text| typed(kind, text)).collect(),
        Some(ListStyle::Joined(separator)) => first
            .split(separator)
            .map(|text| typed(kind, text.trim()))
            .collect(),
    })
}

/// The named parameters of a place, if it has such.
fn pairs_of<'a>(place: ParameterPlace, request: &'a RequestView<'_>) -> Option<&'a Pairs> {
    match place {
        ParameterPlace::Query => Some(request.parameters()),
        ParameterPlace::Cookie => Some(request.cookies()),
        ParameterPlace::Form => Some(request.form()),
        ParameterPlace::Path | ParameterPlace::Header => None,
    }
}

/// The text of a parameter that there is one of.
fn single<'a>(
    parameter: &Parameter,
    request: &'a RequestView<'_>,
    places: &'a [(&str, String)],
) -> Option<&'a str> {
    if parameter.place == ParameterPlace::Header {
        return request.header_text(&parameter.name);
    }
    let place = places.iter().find(|(known, _)| *known == parameter.name);
    place.map(|(_, text)| text.as_str())
}

/// An object that is written by its keys: `a=1&b=2`, `a=1,b=2`, or `name=a,1,b,2`.
fn by_keys(
    parameter: &Parameter,
    style: &ObjectStyle,
    request: &RequestView<'_>,
    places: &[(&str, String)],
) -> Option<Value> {
    let kind = |key: &str| {
        let known = style.properties.iter().find(|(known, _)| known == key);
        known.and_then(|(_, kind)| kind.as_deref())
    };
    let mut object = Map::new();
    let mut put = |key: &str, text: &str| {
        object.insert(key.to_owned(), typed(kind(key), text));
    };
    let pairs = pairs_of(parameter.place, request);
    if let (true, Some(pairs)) = (style.is_exploded, pairs) {
        for (key, text) in pairs {
            if style.properties.iter().any(|(known, _)| known == key) {
                put(key, text);
            }
        }
        return (!object.is_empty()).then_some(Value::Object(object));
    }
    let text = match pairs {
        Some(pairs) => values(pairs, &parameter.name).next()?,
        None => single(parameter, request, places)?,
    };
    // One that is JSON is taken as such.
    if text.starts_with('{') {
        return None;
    }
    if style.is_exploded {
        for pair in text.split(',') {
            let (key, text) = pair.split_once('=')?;
            put(key, text);
        }
    } else {
        let mut words = text.split(',');
        while let Some(key) = words.next() {
            put(key, words.next()?);
        }
    }
    Some(Value::Object(object))
}

/// A text as a value of a type; unchanged if it is not of that type.
pub(super) fn typed(kind: Option<&str>, text: &str) -> Value {
    let parsed = || serde_json::from_str::<Value>(text).ok();
    let value = match kind {
        Some("integer" | "number") => parsed().filter(Value::is_number),
        Some("boolean") => boolean(text).map(Value::Bool),
        Some("object") => parsed().filter(Value::is_object),
        _ => None,
    };
    value.unwrap_or_else(|| Value::from(text))
}

/// A boolean as clients write it: most with words, those of Python with a capital, those of Go and PHP with numbers.
fn boolean(text: &str) -> Option<bool> {
    match text {
        "true" | "True" | "TRUE" | "1" => Some(true),
        "false" | "False" | "FALSE" | "0" => Some(false),
        _ => None,
    }
}

fn judge(schema: Option<&JsonSchema>, at: &Value, value: &Value, errors: &mut Vec<Value>) {
    let Some(schema) = schema else { return };
    let mistakes = schema.mistakes(value, MOST_ERRORS);
    errors.extend(
        mistakes
            .iter()
            .map(|it| error(at, &it.pointer, &it.message)),
    );
}

/// A mistake as JSON: the part of the request, the pointer (RFC 6901) into it, and the message.
fn error(at: &Value, pointer: &str, message: &str) -> Value {
    let mut error = at.clone();
    error["pointer"] = Value::from(pointer);
    error["message"] = Value::from(cut(message));
    error
}

fn cut(text: &str) -> String {
    text.chars().take(LONGEST_MESSAGE).collect()
}
