//! Values from the examples of a document, or as its schemas describe them.

use serde_json::{Map, Value, json};

use super::flat::Flattening;
use super::pattern;

/// The depth to which references and nested schemas are followed.
const DEEPEST: u32 = 24;

/// Beyond this depth only what is required is made, so that a schema that contains itself ends.
const DEEPEST_OPTIONAL: u32 = 4;

/// Strings and lists of more are not made.
const LONGEST: u64 = 4096;

/// The placeholder of a text without constraints, as in other tools.
const TEXT: &str = "string";

/// Why a value cannot be made, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Unsupported(pub(super) String);

/// A document whose references can be followed.
#[derive(Debug)]
pub(super) struct Document<'a> {
    root: &'a Value,
    /// The mark of what values do not have: what only responses have, or only requests.
    without: &'static str,
}

impl<'a> Document<'a> {
    /// Values are those of requests.
    pub(super) fn new(root: &'a Value) -> Self {
        Self {
            root,
            without: "readOnly",
        }
    }

    /// Values are those of responses.
    pub(super) fn of_responses(root: &'a Value) -> Self {
        Self {
            root,
            without: "writeOnly",
        }
    }

    /// True if a property is one that values do not have.
    pub(super) fn leaves_out(&self, property: &Value) -> bool {
        property.get(self.without) == Some(&Value::Bool(true))
    }

    /// The target of `value`, or itself.
    pub(super) fn resolve<'v>(&self, value: &'v Value) -> Result<&'v Value, Unsupported>
    where
        'a: 'v,
    {
        let mut value = value;
        for _ in 0..DEEPEST {
            let Some(reference) = value.get("$ref").and_then(Value::as_str) else {
                return Ok(value);
            };
            let pointer = reference.strip_prefix('#').ok_or_else(|| {
                let why = if reference.contains("://") {
                    "plimsoll does not fetch; save it beside this one"
                } else {
                    "could not be read"
                };
                Unsupported(format!(
                    "`{reference}` refers to another document, which {why}"
                ))
            })?;
            value = self.root.pointer(pointer).ok_or_else(|| {
                Unsupported(format!(
                    "`{}` refers to nothing",
                    super::bundle::shown(reference)
                ))
            })?;
        }
        Err(Unsupported(
            "references that refer to one another".to_owned(),
        ))
    }

    /// The example of a parameter or a media type, or that of its schema.
    pub(super) fn example(&self, of: &Value) -> Result<Option<Value>, Unsupported> {
        if let Some(example) = of.get("example") {
            return Ok(Some(example.clone()));
        }
        let examples = of.get("examples").and_then(Value::as_object);
        if let Some(example) = examples.and_then(|examples| examples.values().next()) {
            let example = self.resolve(example)?;
            if let Some(value) = example.get("value") {
                return Ok(Some(value.clone()));
            }
        }
        match of.get("schema") {
            None => Ok(None),
            Some(schema) => Ok(given(self.resolve(schema)?)),
        }
    }

    /// The example of a parameter or a media type, else a value that fits its schema.
    pub(super) fn value_of(&self, of: &Value) -> Result<Value, Unsupported> {
        match self.example(of)? {
            Some(example) => Ok(example),
            None => self.make(schema_of(of)?),
        }
    }

    /// A value that fits `schema`.
    pub(super) fn make(&self, schema: &Value) -> Result<Value, Unsupported> {
        self.make_within(schema, DEEPEST)
    }

    fn make_within(&self, schema: &Value, depth: u32) -> Result<Value, Unsupported> {
        if depth == 0 {
            return Err(Unsupported("the schema requires itself".to_owned()));
        }
        let schema = self.resolve(schema)?;
        if let Some(value) = given(schema) {
            return Ok(value);
        }
        let list = |key: &str| schema.get(key).and_then(Value::as_array);
        if let Some(value) = schema.get("const").or_else(|| list("enum")?.first()) {
            return Ok(value.clone());
        }
        // The first alternative that can be made, else why the first cannot.
        let mut first = None;
        let mut alternatives = 1;
        let mut number = 0;
        while number < alternatives {
            let made = self.alternative(schema, depth, number, &mut alternatives);
            match (made, &first) {
                (Ok(value), _) => return Ok(value),
                (Err(reason), None) => first = Some(reason),
                (Err(_), Some(_)) => {}
            }
            number += 1;
        }
        Err(first.unwrap_or_else(|| Unsupported("there is no alternative".to_owned())))
    }

    /// A value of a schema by its alternative of a number, or the last one.
    ///
    /// - `alternatives`: becomes how many there are.
    fn alternative(
        &self,
        schema: &Value,
        depth: u32,
        number: usize,
        alternatives: &mut usize,
    ) -> Result<Value, Unsupported> {
        let mut flattening = Flattening {
            document: self,
            takes_examples: true,
            pick: &mut |all| {
                *alternatives = all.len().max(*alternatives);
                number.min(all.len() - 1)
            },
        };
        let flat = flattening.flat(schema)?;
        let schema = flat.as_ref();
        if let Some(value) = given(schema) {
            return Ok(value);
        }
        let list = |key: &str| schema.get(key).and_then(Value::as_array);
        if let Some(value) = schema.get("const").or_else(|| list("enum")?.first()) {
            return Ok(value.clone());
        }
        match kind(schema) {
            _ if is_object(schema) => self.object(schema, depth),
            Some("array") => self.array(schema, depth),
            Some("string") => string(schema),
            Some("integer") => number_of(schema, true),
            Some("number") => number_of(schema, false),
            Some("boolean") => Ok(Value::Bool(true)),
            Some("null") => Ok(Value::Null),
            Some(other) => Err(Unsupported(format!("there is no type `{other}`"))),
            None => Ok(json!(TEXT)),
        }
    }

    fn object(&self, schema: &Value, depth: u32) -> Result<Value, Unsupported> {
        let mut whole = Map::new();
        let required = schema.get("required").and_then(Value::as_array);
        let is_required = |name: &str| {
            required.is_some_and(|names| names.iter().any(|required| required == name))
        };
        let properties = schema.get("properties").and_then(Value::as_object);
        let properties = properties.into_iter().flatten();
        for (name, property) in properties.filter(|(_, property)| is_schema(property)) {
            let resolved = self.resolve(property)?;
            if self.leaves_out(resolved) {
                continue;
            }
            if is_required(name) {
                let value = self
                    .make_within(property, depth - 1)
                    .map_err(|Unsupported(reason)| Unsupported(format!("`{name}`: {reason}")))?;
                whole.insert(name.clone(), value);
            } else if depth > DEEPEST - DEEPEST_OPTIONAL
                && let Ok(value) = self.make_within(property, depth - 1)
            {
                whole.insert(name.clone(), value);
            }
        }
        for name in undescribed(schema) {
            let value = match schema.get("additionalProperties") {
                Some(more @ Value::Object(_)) => self.make_within(more, depth - 1)?,
                _ => json!(TEXT),
            };
            whole.insert(name.to_owned(), value);
        }
        Ok(Value::Object(whole))
    }

    fn array(&self, schema: &Value, depth: u32) -> Result<Value, Unsupported> {
        let least = schema.get("minItems").and_then(Value::as_u64).unwrap_or(0);
        if least > LONGEST {
            return Err(Unsupported(format!("a list of {least} items is too long")));
        }
        let Some(items) = schema.get("contains").or(schema.get("items")) else {
            return Ok(Value::Array(Vec::new()));
        };
        match self.make_within(items, depth - 1) {
            // One shows more than none.
            Ok(item) => {
                let count = usize::try_from(least.max(1)).unwrap_or(1);
                Ok(Value::Array(vec![item; count]))
            }
            Err(_) if least == 0 => Ok(Value::Array(Vec::new())),
            Err(reason) => Err(reason),
        }
    }
}

/// The schema of a parameter or a media type; a parameter may describe it as content.
fn schema_of(of: &Value) -> Result<&Value, Unsupported> {
    let content = || {
        let content = of.get("content")?.as_object()?;
        content.values().next()?.get("schema")
    };
    of.get("schema")
        .or_else(content)
        .ok_or_else(|| Unsupported("has neither an example nor a schema".to_owned()))
}

/// True if values of a schema are objects, which it says by a type or by properties.
pub(super) fn is_object(schema: &Value) -> bool {
    let has = |key: &str| schema.get(key).is_some();
    let is_other = kind(schema).is_some_and(|kind| kind != "object");
    !is_other
        && (has("properties") || kind(schema) == Some("object") || has("additionalProperties"))
}

/// True if a value can be a schema.
pub(super) fn is_schema(value: &Value) -> bool {
    value.is_object() || value.is_boolean()
}

/// The properties that a schema requires and does not describe.
pub(super) fn undescribed(schema: &Value) -> impl Iterator<Item = &str> {
    let names = schema.get("required").and_then(Value::as_array);
    let names = names.into_iter().flatten().filter_map(Value::as_str);
    let properties = schema.get("properties").and_then(Value::as_object);
    names.filter(move |name| properties.is_none_or(|it| !it.contains_key(*name)))
}

/// The value that the schema itself names.
pub(super) fn given(schema: &Value) -> Option<Value> {
    let examples = || schema.get("examples")?.as_array()?.first();
    let value = schema.get("example").or_else(examples);
    value.or_else(|| schema.get("default")).cloned()
}

/// The type; of several the first that is not null (OpenAPI 3.1).
pub(super) fn kind(schema: &Value) -> Option<&str> {
    match schema.get("type") {
        Some(Value::String(kind)) => Some(kind),
        Some(Value::Array(kinds)) => {
            let mut kinds = kinds.iter().filter_map(Value::as_str);
            kinds.clone().find(|kind| *kind != "null").or(kinds.next())
        }
        _ if schema.get("items").is_some() => Some("array"),
        _ => None,
    }
}

fn string(schema: &Value) -> Result<Value, Unsupported> {
    let format = schema.get("format").and_then(Value::as_str);
    let made = match format {
        Some("date-time") => "2024-01-31T12:00:00Z",
        Some("date") => "2024-01-31",
        Some("time") => "12:00:00Z",
        Some("duration") => "PT1H",
        Some("uuid") => "6f2b1a5e-3c44-4d0f-9b7a-2f8f5f0d9c11",
        Some("email" | "idn-email") => "someone@example.org",
        Some("hostname" | "idn-hostname") => "example.org",
        Some("uri" | "url" | "iri") => "https://example.org/",
        Some("uri-reference") => "/",
        Some("ipv4") => "192.0.2.1",
        Some("ipv6") => "2001:db8::1",
        Some("byte") => "dGV4dA==",
        Some("decimal") => "1.5",
        _ => "",
    };
    if !made.is_empty() {
        return Ok(json!(made));
    }
    if let Some(pattern) = schema.get("pattern").and_then(Value::as_str) {
        let bound = |key: &str| {
            let bound = schema.get(key).and_then(Value::as_u64);
            bound.map(|it| usize::try_from(it).unwrap_or(usize::MAX))
        };
        let (least, most) = (bound("minLength"), bound("maxLength"));
        let made = pattern::text_of(pattern, least.unwrap_or(0), most.unwrap_or(usize::MAX));
        if let Some(text) = made {
            return Ok(json!(text));
        }
        return Err(Unsupported(format!(
            "no text is made for the pattern `{pattern}`; give an example in the document"
        )));
    }
    let bound = |key: &str| schema.get(key).and_then(Value::as_u64);
    let least = bound("minLength").unwrap_or(0);
    let most = bound("maxLength").unwrap_or(u64::MAX);
    if least > LONGEST {
        return Err(Unsupported(format!(
            "a text of {least} characters is too long"
        )));
    }
    let usual = TEXT.len() as u64;
    let length = usize::try_from(usual.min(most).max(least)).unwrap_or_default();
    let text: String = TEXT.chars().cycle().take(length).collect();
    Ok(json!(text))
}

fn number_of(schema: &Value, is_whole: bool) -> Result<Value, Unsupported> {
    let bound = |key: &str| schema.get(key).and_then(Value::as_f64);
    // In 3.0 `exclusiveMinimum` says of `minimum` that it is not reached, in 3.1 it is a bound.
    let excludes = |key: &str| schema.get(key) == Some(&Value::Bool(true));
    let step = bound("multipleOf")
        .filter(|step| *step > 0.0)
        .unwrap_or(1.0);
    let (mut least, mut most) = (bound("minimum"), bound("maximum"));
    if let Some(exclusive) = bound("exclusiveMinimum") {
        least = Some(exclusive + step);
    } else if excludes("exclusiveMinimum") {
        least = least.map(|least| least + step);
    }
    if let Some(exclusive) = bound("exclusiveMaximum") {
        most = Some(exclusive - step);
    } else if excludes("exclusiveMaximum") {
        most = most.map(|most| most - step);
    }
    let mut value = match (least, most) {
        (Some(least), _) => least.max(if least <= 1.0 { 1.0 } else { least }),
        (None, Some(most)) => most.min(1.0),
        (None, None) => 1.0,
    };
    if most.is_some_and(|most| value > most) {
        value = least.unwrap_or(value);
    }
    if is_whole || schema.get("multipleOf").is_some() {
        value = (value / step).ceil() * step;
    }
    if least.is_some_and(|least| value < least) || most.is_some_and(|most| value > most) {
        return Err(Unsupported(
            "no number fits its bounds; give an example in the document".to_owned(),
        ));
    }
    if (is_whole || value.fract() == 0.0) && value.abs() < 9e15 {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "it is small and may be cut"
        )]
        let whole = value.ceil() as i64;
        return Ok(json!(whole));
    }
    Ok(json!(value))
}
