//! A schema of a document as JSON Schema 2020-12 that stands alone.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::Object;
use crate::openapi::bundle::shown;
use crate::openapi::schema::is_schema;

/// Schemas are not nested deeper.
const DEEPEST: usize = 64;

/// A schema may refer to this many others.
const MOST: usize = 2000;

/// Why a schema cannot stand alone.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StandaloneError {
    /// More schemas than any document needs.
    #[error("it refers to more than {MOST} others")]
    TooMany,
    /// A reference that is no pointer.
    #[error("`{0}` refers to another document")]
    OtherDocument(String),
    /// A pointer without a target.
    #[error("`{0}` refers to nothing")]
    Nothing(String),
    /// A pointer into a value that has no members.
    #[error("`#{0}` leads through no object")]
    NoObject(String),
    /// More levels than any document needs.
    #[error("it is nested too deeply")]
    TooDeep,
}

/// The schema with all that it refers to, at the places where the document has them.
///
/// - `without`: the mark of properties that values need not have, `readOnly` or `writeOnly`.
pub(super) fn standalone(
    root: &Value,
    schema: &Value,
    without: &str,
) -> Result<Value, StandaloneError> {
    let mut converter = Converter {
        wanted: BTreeSet::new(),
        without,
    };
    let mut whole = converter.converted(schema, DEEPEST)?;
    if !whole.is_object() {
        return Ok(whole);
    }
    let mut made = BTreeSet::new();
    while let Some(reference) = converter.wanted.pop_first() {
        if !made.insert(reference.clone()) {
            continue;
        }
        if made.len() > MOST {
            return Err(StandaloneError::TooMany);
        }
        let pointer = reference
            .strip_prefix('#')
            .ok_or_else(|| StandaloneError::OtherDocument(reference.clone()))?;
        let target = root
            .pointer(pointer)
            .ok_or_else(|| StandaloneError::Nothing(shown(&reference)))?;
        let target = converter.converted(target, DEEPEST)?;
        place(&mut whole, pointer, target)?;
    }
    Ok(whole)
}

/// Puts a value where a pointer (RFC 6901) leads.
fn place(whole: &mut Value, pointer: &str, value: Value) -> Result<(), StandaloneError> {
    let mut at = whole;
    for segment in pointer.split('/').skip(1) {
        let key = segment.replace("~1", "/").replace("~0", "~");
        let Value::Object(object) = at else {
            return Err(StandaloneError::NoObject(pointer.to_owned()));
        };
        at = object.entry(key).or_insert_with(|| json!({}));
    }
    // What was put below it before stays.
    match (at, value) {
        (Value::Object(known), Value::Object(new)) => {
            for (key, value) in new {
                known.entry(key).or_insert(value);
            }
        }
        (at, value) => *at = value,
    }
    Ok(())
}

/// Makes schemas that any validator of 2020-12 takes.
struct Converter<'w> {
    /// The targets of the references.
    wanted: BTreeSet<String>,
    without: &'w str,
}

impl Converter<'_> {
    /// A schema in the words of 2020-12.
    fn converted(&mut self, schema: &Value, levels: usize) -> Result<Value, StandaloneError> {
        let Some(levels) = levels.checked_sub(1) else {
            return Err(StandaloneError::TooDeep);
        };
        let Value::Object(schema) = schema else {
            return Ok(schema.clone());
        };
        let mut made = Object::new();
        for (key, value) in schema {
            let value = match (key.as_str(), value) {
                // Values, which are no schemas even where they look like some.
                ("enum" | "const" | "required" | "type", value) => value.clone(),
                // What says nothing about values.
                (
                    "example" | "examples" | "default" | "xml" | "externalDocs" | "discriminator",
                    _,
                ) => {
                    continue;
                }
                // Notes; and names of schemas and drafts, since references are pointers here, and the draft is one.
                (
                    "nullable" | "readOnly" | "writeOnly" | "deprecated" | "$comment" | "$id"
                    | "$schema" | "$anchor" | "$dynamicAnchor" | "$recursiveAnchor" | "$vocabulary",
                    _,
                ) => continue,
                // Extensions are data of other tools.
                (key, _) if key.starts_with("x-") => continue,
                (
                    "properties" | "patternProperties" | "$defs" | "definitions"
                    | "dependentSchemas",
                    Value::Object(all),
                ) => {
                    let mut converted_all = Object::new();
                    // What is no schema, such as a reference among the names, describes nothing.
                    for (name, schema) in all.iter().filter(|(_, schema)| is_schema(schema)) {
                        converted_all.insert(name.clone(), self.converted(schema, levels)?);
                    }
                    Value::Object(converted_all)
                }
                ("$ref", Value::String(reference)) => {
                    self.wanted.insert(reference.clone());
                    value.clone()
                }
                (_, Value::Object(_)) => self.converted(value, levels)?,
                (_, Value::Array(all)) => {
                    let all = all.iter().map(|it| self.converted(it, levels));
                    Value::Array(all.collect::<Result<_, _>>()?)
                }
                (_, value) => value.clone(),
            };
            made.insert(key.clone(), value);
        }
        of_version_3_0(schema, &mut made);
        without_required(schema, self.without, &mut made);
        Ok(Value::Object(made))
    }
}

/// Says as 3.1 does what 3.0 says otherwise.
fn of_version_3_0(schema: &Object, made: &mut Object) {
    for (bound, exclusive) in [
        ("minimum", "exclusiveMinimum"),
        ("maximum", "exclusiveMaximum"),
    ] {
        match made.get(exclusive) {
            Some(Value::Bool(true)) => {
                made.remove(exclusive);
                if let Some(value) = made.remove(bound) {
                    made.insert(exclusive.to_owned(), value);
                }
            }
            Some(Value::Bool(false)) => {
                made.remove(exclusive);
            }
            _ => {}
        }
    }
    if schema.get("nullable") != Some(&Value::Bool(true)) {
        return;
    }
    if let Some(Value::String(kind)) = made.get("type") {
        made.insert("type".to_owned(), json!([kind, "null"]));
    }
    if let Some(Value::Array(values)) = made.get_mut("enum")
        && !values.contains(&Value::Null)
    {
        values.push(Value::Null);
    }
    // What is one of others may be null besides.
    if made.contains_key("$ref") || made.contains_key("allOf") {
        let inner = Value::Object(std::mem::take(made));
        made.insert("anyOf".to_owned(), json!([inner, { "type": "null" }]));
    }
}

/// Requires nothing that values need not have.
fn without_required(schema: &Object, without: &str, made: &mut Object) {
    let Some(Value::Object(properties)) = schema.get("properties") else {
        return;
    };
    let is_without = |name: &Value| {
        let property = name.as_str().and_then(|name| properties.get(name));
        property.and_then(|it| it.get(without)) == Some(&Value::Bool(true))
    };
    if let Some(Value::Array(required)) = made.get_mut("required") {
        required.retain(|name| !is_without(name));
    }
}
