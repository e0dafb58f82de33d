//! Lists and objects that are written with brackets: `items[0][price]=5`, `expand[]=x`, `metadata[order]=6735`.
//!
//! No document describes more than one level of it (OpenAPI's `deepObject`); what deeper levels and lists look like is a
//! convention of the clients: Stripe's, Rails, PHP, and `qs` in JavaScript. All their forms are read. Texts become
//! values of the types that the schema has for them, so that schemas judge what the client meant.

use plimsoll_formats::openapi::Parameter;
use serde_json::{Map, Value};

use super::request::typed;
use crate::request::Pairs;

/// Brackets in one name. Rails, PHP and `qs` have limits from 5 to 100.
const MOST_LEVELS: usize = 32;

/// Schemas that one schema is made of, at most.
const MOST_PARTS: usize = 256;

/// References that lead to references, at most.
const MOST_REFERENCES: usize = 16;

/// A name and the keys in the brackets behind it; an empty key is a place at the end of a list. `None` for names
/// without brackets, or with others behind or between them.
pub(super) fn split(name: &str) -> Option<(&str, Vec<&str>)> {
    let at = name.find('[').filter(|at| *at > 0)?;
    let (base, mut rest) = name.split_at(at);
    let mut keys = Vec::new();
    while !rest.is_empty() {
        let (key, after) = rest.strip_prefix('[')?.split_once(']')?;
        keys.push(key);
        rest = after;
    }
    (keys.len() <= MOST_LEVELS).then_some((base, keys))
}

/// The name of a parameter without the brackets of a list that some documents write behind it.
pub(super) fn base(parameter: &Parameter) -> &str {
    let name = parameter.name.as_str();
    name.strip_suffix("[]").unwrap_or(name)
}

/// The value of a parameter that is written with brackets.
///
/// - `is_whole`: names without brackets count too.
pub(super) fn value(parameter: &Parameter, pairs: &Pairs, is_whole: bool) -> Option<Value> {
    let base = base(parameter);
    let mut value = Value::Null;
    let mut has_brackets = false;
    for (name, text) in pairs {
        match split(name) {
            Some((known, keys)) if known == base => {
                put(&mut value, &keys, Value::from(text.as_str()));
                has_brackets = true;
            }
            None if name == base => put(&mut value, &[], Value::from(text.as_str())),
            _ => {}
        }
    }
    if value.is_null() || !(has_brackets || is_whole) {
        return None;
    }
    Some(shaped(value, parameter.schema.as_ref()))
}

/// Puts a value at its keys.
pub(super) fn put(node: &mut Value, keys: &[&str], value: Value) {
    match keys.split_first() {
        None => put_here(node, value),
        Some((&"", inner)) => put_at_end(node, inner, value),
        Some((key, inner)) => {
            let object = as_object(node);
            put(object.entry(*key).or_insert(Value::Null), inner, value);
        }
    }
}

/// Without further keys: values of one name are a list.
fn put_here(node: &mut Value, value: Value) {
    if let Value::Array(list) = node {
        list.push(value);
    } else if node.is_null() || node.is_object() {
        *node = value;
    } else {
        *node = Value::Array(vec![node.take(), value]);
    }
}

/// Into the last element of a list, or a new one behind it.
fn put_at_end(node: &mut Value, inner: &[&str], value: Value) {
    if let Value::Object(object) = node {
        // A list whose other elements have numbers.
        let next = object.len().to_string();
        put(object.entry(next).or_insert(Value::Null), inner, value);
        return;
    }
    if !node.is_array() {
        let first = Some(node.take()).filter(|first| !first.is_null());
        *node = Value::Array(first.into_iter().collect());
    }
    let Value::Array(elements) = node else { return };
    // Fields of one element follow one another: one that is there already begins the next element.
    match elements.last_mut() {
        Some(last) if last.is_object() && !inner.is_empty() && !has(last, inner) => {
            put(last, inner, value);
        }
        _ => {
            let mut new = Value::Null;
            put(&mut new, inner, value);
            elements.push(new);
        }
    }
}

/// The object that a value is, or becomes: the elements of a list get their numbers as keys.
fn as_object(node: &mut Value) -> &mut Map<String, Value> {
    if !node.is_object() {
        let list = match node.take() {
            Value::Array(list) => list,
            _ => Vec::new(),
        };
        let numbered = list.into_iter().enumerate();
        let object = numbered.map(|(number, value)| (number.to_string(), value));
        *node = Value::Object(object.collect());
    }
    node.as_object_mut().expect("it was made one")
}

/// Whether there is a value at these keys; lists always have room for another.
fn has(node: &Value, keys: &[&str]) -> bool {
    let mut node = Some(node);
    for key in keys {
        node = node.and_then(|node| node.get(*key));
    }
    node.is_some() && !keys.contains(&"")
}

/// A value with the types that its schema has for it.
pub(super) fn shaped(value: Value, schema: Option<&Value>) -> Value {
    let Some(schema) = schema else {
        return plain(value);
    };
    shape(value, &[schema], schema, true)
}

/// Without a schema: lists are those whose keys are a row of numbers.
fn plain(value: Value) -> Value {
    shape(value, &[], &Value::Null, true)
}

/// - `schemas`: each may be the one of this value.
/// - `whole`: references are looked up in it.
/// - `may_wrap`: one text may stand for a list of it.
fn shape(value: Value, schemas: &[&Value], whole: &Value, may_wrap: bool) -> Value {
    let mut parts = Vec::new();
    for schema in schemas {
        add_parts(schema, whole, &mut parts);
    }
    match value {
        Value::String(text) => scalar(text, &parts, whole, may_wrap),
        Value::Array(list) => elements(list, &parts, whole, true),
        Value::Object(object) => {
            let (is_list, is_object) = (may_be(&parts, "array"), may_be(&parts, "object"));
            let listed = if is_object && !is_list {
                Err(object)
            } else {
                numbered(object, is_list && !is_object)
            };
            match listed {
                Ok(list) => elements(list, &parts, whole, true),
                Err(object) => properties(object, &parts, whole),
            }
        }
        value => value,
    }
}

/// The schemas that a schema is made of, itself among them.
fn add_parts<'s>(schema: &'s Value, whole: &'s Value, parts: &mut Vec<&'s Value>) {
    let mut schema = schema;
    for _ in 0..MOST_REFERENCES {
        let Some(reference) = schema.get("$ref").and_then(Value::as_str) else {
            break;
        };
        let Some(target) = reference.strip_prefix('#').and_then(|at| whole.pointer(at)) else {
            return;
        };
        schema = target;
    }
    // One that is there already leads back to itself.
    if parts.len() >= MOST_PARTS || parts.iter().any(|known| std::ptr::eq(*known, schema)) {
        return;
    }
    parts.push(schema);
    for key in ["allOf", "anyOf", "oneOf"] {
        let inner = schema.get(key).and_then(Value::as_array);
        for inner in inner.into_iter().flatten() {
            add_parts(inner, whole, parts);
        }
    }
}

/// The types that a schema names.
fn kinds(schema: &Value) -> impl Iterator<Item = &str> {
    let (one, several) = match schema.get("type") {
        Some(Value::String(kind)) => (Some(kind.as_str()), None),
        Some(Value::Array(kinds)) => (None, Some(kinds.iter().filter_map(Value::as_str))),
        _ => (None, None),
    };
    one.into_iter().chain(several.into_iter().flatten())
}

/// Whether a schema is for values of a type, by its type or by what it has for such values.
fn may_be(parts: &[&Value], kind: &str) -> bool {
    let keys: &[&str] = match kind {
        "array" => &["items", "prefixItems"],
        _ => &["properties", "additionalProperties"],
    };
    parts.iter().any(|part| {
        let has_key = keys.iter().any(|key| part.get(*key).is_some());
        kinds(part).any(|known| known == kind) || (has_key && part.get("type").is_none())
    })
}

/// A text as the first of the types that it can be.
fn scalar(text: String, parts: &[&Value], whole: &Value, may_wrap: bool) -> Value {
    let named = parts.iter().flat_map(|part| {
        let several = part.get("enum").and_then(Value::as_array);
        several.into_iter().flatten().chain(part.get("const"))
    });
    for value in named {
        match value {
            Value::String(known) if *known == text => return value.clone(),
            Value::Number(number) if number.as_str() == text => return value.clone(),
            Value::Bool(flag) if text == if *flag { "true" } else { "false" } => {
                return value.clone();
            }
            _ => {}
        }
    }
    // A digit is a boolean where it can be nothing else.
    let is_digit = matches!(text.as_str(), "0" | "1");
    let mut all = parts.iter().flat_map(|part| kinds(part));
    let may_be_written = all.any(|kind| matches!(kind, "integer" | "number" | "string"));
    for part in parts {
        let is_named = part.get("enum").is_some() || part.get("const").is_some();
        for kind in kinds(part) {
            let value = match kind {
                "string" if !is_named => return Value::String(text),
                "null" if text.is_empty() => return Value::Null,
                "boolean" if is_digit && may_be_written => continue,
                "integer" | "number" | "boolean" => typed(Some(kind), &text),
                _ => continue,
            };
            if !value.is_string() {
                return value;
            }
        }
    }
    if may_be(parts, "object") && text.starts_with('{')
        || may_be(parts, "array") && text.starts_with('[')
    {
        // Fields of forms may be JSON.
        let value = serde_json::from_str::<Value>(&text);
        if let Ok(value @ (Value::Object(_) | Value::Array(_))) = value {
            return value;
        }
    }
    if may_wrap && may_be(parts, "array") {
        let list = if text.is_empty() {
            Vec::new()
        } else {
            vec![Value::String(text)]
        };
        // A list of lists does not go on for ever.
        return elements(list, parts, whole, false);
    }
    Value::String(text)
}

fn elements(list: Vec<Value>, parts: &[&Value], whole: &Value, may_wrap: bool) -> Value {
    let shaped = list.into_iter().enumerate().map(|(at, value)| {
        let schemas = parts.iter().filter_map(|part| {
            let own = part.get("prefixItems").and_then(|items| items.get(at));
            own.or_else(|| part.get("items"))
        });
        shape(value, &schemas.collect::<Vec<_>>(), whole, may_wrap)
    });
    Value::Array(shaped.collect())
}

fn properties(object: Map<String, Value>, parts: &[&Value], whole: &Value) -> Value {
    let shaped = object.into_iter().map(|(key, value)| {
        let schemas = parts.iter().filter_map(|part| {
            let own = part.get("properties").and_then(|it| it.get(&key));
            own.or_else(|| part.get("additionalProperties"))
        });
        let value = shape(value, &schemas.collect::<Vec<_>>(), whole, true);
        (key, value)
    });
    Value::Object(shaped.collect())
}

/// The elements of an object whose keys are numbers, in their order.
///
/// - `has_gaps`: numbers may be left out.
fn numbered(object: Map<String, Value>, has_gaps: bool) -> Result<Vec<Value>, Map<String, Value>> {
    let number = |key: &String| {
        let number = key.parse::<u32>().ok();
        number.filter(|number| number.to_string() == *key)
    };
    let Some(numbers) = object.keys().map(number).collect::<Option<Vec<_>>>() else {
        return Err(object);
    };
    let mut sorted = numbers.clone();
    sorted.sort_unstable();
    let is_row = (0..)
        .zip(&sorted)
        .all(|(expected, number)| expected == *number);
    if sorted.is_empty() || !(is_row || has_gaps) {
        return Err(object);
    }
    let values = object.into_iter().map(|(_, value)| value);
    let mut values: Vec<(u32, Value)> = numbers.into_iter().zip(values).collect();
    values.sort_by_key(|(number, _)| *number);
    Ok(values.into_iter().map(|(_, value)| value).collect())
}

#[cfg(test)]
mod tests;
