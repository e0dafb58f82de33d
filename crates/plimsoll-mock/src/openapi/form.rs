//! Content of forms as the objects that schemas judge.

use plimsoll_formats::openapi::FormField;
use serde_json::{Map, Value};

use super::nest;
use super::request::{fits, typed, value};
use crate::request::{RequestPart, RequestView};

/// Something wrong with a field before any schema judges it.
pub(super) struct WrongField {
    /// Into the object of the form (RFC 6901).
    pub(super) pointer: String,
    pub(super) message: String,
}

/// The object of `application/x-www-form-urlencoded` content.
///
/// - `fields`: those that the schema names; others are texts.
pub(super) fn of_pairs(fields: &[FormField], request: &RequestView<'_>) -> Value {
    let mut object = Map::new();
    for (name, text) in request.form() {
        let is_known = fields.iter().any(|field| {
            let parameter = &field.parameter;
            let is_deep = nest::split(name).is_some_and(|(base, _)| base == nest::base(parameter));
            let mut keys = parameter.object.iter().filter(|it| it.is_exploded);
            let is_key = keys.any(|it| it.properties.iter().any(|(key, _)| key == name));
            parameter.name == *name || is_deep || is_key
        });
        if !is_known {
            add(&mut object, name, Value::from(text.as_str()), false);
        }
    }
    for field in fields {
        if let Some(value) = value(&field.parameter, request, &[]) {
            object.insert(field.parameter.name.clone(), value);
        }
    }
    Value::Object(object)
}

/// The object of `multipart/form-data` content, or what is wrong with its fields.
///
/// - `fields`: those that the schema names; others are texts.
pub(super) fn of_parts(
    fields: &[FormField],
    request: &RequestView<'_>,
) -> Result<Value, Vec<WrongField>> {
    let parts = request.parts().map_err(|error| {
        vec![WrongField {
            pointer: String::new(),
            message: format!("is {error}"),
        }]
    })?;
    let mut object = Map::new();
    let mut wrong = Vec::new();
    let mut nested: Vec<(&FormField, Value)> = Vec::new();
    for part in parts {
        let name = part.name.as_deref().unwrap_or_default();
        let field = fields.iter().find(|field| field.parameter.name == name);
        let by_base = |base: &str| fields.iter().find(|it| nest::base(&it.parameter) == base);
        let inner = nest::split(name).filter(|_| field.is_none());
        let inner = inner.and_then(|(base, keys)| Some((by_base(base)?, keys)));
        match of_part(field, part) {
            Ok(value) if let Some((field, keys)) = &inner => {
                let same = |(known, _): &(&FormField, Value)| std::ptr::eq(*known, *field);
                let at = nested.iter().position(same).unwrap_or_else(|| {
                    nested.push((field, Value::Null));
                    nested.len() - 1
                });
                nest::put(&mut nested[at].1, keys, value);
            }
            Ok(value) => {
                let is_list = field.is_some_and(|field| field.parameter.list.is_some());
                add(&mut object, name, value, is_list);
            }
            Err(error) => wrong.push(WrongField {
                pointer: format!("/{}", name.replace('~', "~0").replace('/', "~1")),
                message: error.to_string(),
            }),
        }
    }
    for (field, value) in nested {
        let parameter = &field.parameter;
        let value = nest::shaped(value, parameter.schema.as_ref());
        object.insert(parameter.name.clone(), value);
    }
    if wrong.is_empty() {
        Ok(Value::Object(object))
    } else {
        Err(wrong)
    }
}

/// What is wrong in a part.
#[derive(Debug, thiserror::Error)]
enum PartError {
    #[error("must be {}, not {kind}", .kinds.join(" or "))]
    Kind { kinds: Vec<String>, kind: String },
    #[error("is no JSON")]
    NotJson,
}

fn of_part(field: Option<&FormField>, part: &RequestPart<'_>) -> Result<Value, PartError> {
    // The default of a part (RFC 7578, section 4.4).
    let kind = part
        .request
        .header_text("content-type")
        .unwrap_or("text/plain");
    let kind = kind.split(';').next().unwrap_or_default().trim();
    let kind = kind.to_ascii_lowercase();
    let kinds = field.map_or(&[][..], |field| field.kinds.as_slice());
    if !kinds.is_empty() && !kinds.iter().any(|range| fits(range, &kind)) {
        let kinds = kinds.to_vec();
        return Err(PartError::Kind { kinds, kind });
    }
    if kind == "application/json" || kind.ends_with("+json") {
        let value = part.request.json().cloned();
        return value.ok_or(PartError::NotJson);
    }
    let text = String::from_utf8_lossy(part.request.body);
    let kind = field.and_then(|field| field.parameter.kind.as_deref());
    Ok(typed(kind, &text))
}

/// Adds a value of a field, which becomes a list if it is one or comes again.
fn add(object: &mut Map<String, Value>, name: &str, value: Value, is_list: bool) {
    match object.get_mut(name) {
        Some(Value::Array(all)) => all.push(value),
        Some(first) => *first = Value::Array(vec![first.take(), value]),
        None => {
            let value = match value {
                // A list may be one part of JSON.
                value if is_list && !value.is_array() => Value::Array(vec![value]),
                value => value,
            };
            object.insert(name.to_owned(), value);
        }
    }
}
