//! Schemas that are made of others, as one.
//!
//! The parts of `allOf` and one alternative of `oneOf` and `anyOf` are merged into the schema that has them, so that a
//! property that one part requires and another describes is both.

use std::borrow::Cow;

use serde_json::{Value, json};

use super::api::Object;
use super::schema::{Document, Unsupported, given};

/// The depth to which nested schemas are followed.
const DEEPEST: u32 = 24;

/// Chooses among alternatives.
pub(super) type Pick<'p> = &'p mut dyn FnMut(&[Value]) -> usize;

/// The purpose of flattening a schema.
pub(super) struct Flattening<'f, 'a> {
    pub(super) document: &'f Document<'a>,
    /// True if values take the examples of parts.
    pub(super) takes_examples: bool,
    pub(super) pick: Pick<'f>,
}

impl<'a> Flattening<'_, 'a> {
    /// A schema without `$ref`, `allOf`, `oneOf` and `anyOf` at its top; fails if it contains itself.
    pub(super) fn flat<'v>(&mut self, schema: &'v Value) -> Result<Cow<'v, Value>, Unsupported>
    where
        'a: 'v,
    {
        self.flat_within(schema, DEEPEST)
    }

    fn flat_within<'v>(
        &mut self,
        schema: &'v Value,
        levels: u32,
    ) -> Result<Cow<'v, Value>, Unsupported>
    where
        'a: 'v,
    {
        let levels = levels
            .checked_sub(1)
            .ok_or_else(|| Unsupported("the schema requires itself".to_owned()))?;
        let schema = self.document.resolve(schema)?;
        let parts = |key: &str| schema.get(key).and_then(Value::as_array);
        let keys = ["allOf", "oneOf", "anyOf"];
        let (Some(own), true) = (
            schema.as_object(),
            keys.iter().any(|key| schema.get(*key).is_some()),
        ) else {
            return Ok(Cow::Borrowed(schema));
        };
        let own = own.iter().filter(|(key, _)| !keys.contains(&key.as_str()));
        let mut whole: Object = own
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        for part in parts("allOf").into_iter().flatten() {
            self.add(&mut whole, part, levels)?;
        }
        for key in ["oneOf", "anyOf"] {
            let alternatives = parts(key).map_or(&[][..], Vec::as_slice);
            if !alternatives.is_empty() {
                let picked = (self.pick)(alternatives);
                if let Some(alternative) = alternatives.get(picked) {
                    self.add(&mut whole, alternative, levels)?;
                }
            }
        }
        Ok(Cow::Owned(Value::Object(whole)))
    }

    fn add(&mut self, whole: &mut Object, part: &Value, levels: u32) -> Result<(), Unsupported> {
        let part = self.flat_within(part, levels)?;
        let example = given(&part).filter(|_| self.takes_examples);
        if let Value::Object(part) = part.as_ref() {
            for (key, value) in part {
                if !["example", "examples", "default"].contains(&key.as_str()) {
                    merge(whole, key, value);
                }
            }
        }
        match example {
            // The example of a part has its properties only.
            Some(Value::Object(fields)) => {
                let properties = whole.entry("properties").or_insert_with(|| json!({}));
                for (name, value) in fields {
                    if let Some(properties) = properties.as_object_mut() {
                        properties.insert(name, json!({ "example": value }));
                    }
                }
            }
            Some(value) => {
                whole.entry("example").or_insert(value);
            }
            None => {}
        }
        Ok(())
    }
}

/// Adds a keyword of a part.
fn merge(whole: &mut Object, key: &str, value: &Value) {
    let Some(known) = whole.get_mut(key) else {
        whole.insert(key.to_owned(), value.clone());
        return;
    };
    match (key, known, value) {
        ("properties", Value::Object(known), Value::Object(more)) => {
            for (name, property) in more {
                match known.get_mut(name) {
                    None => {
                        known.insert(name.clone(), property.clone());
                    }
                    Some(same) if same == property => {}
                    Some(other) => *other = json!({ "allOf": [other.take(), property] }),
                }
            }
        }
        ("required", Value::Array(known), Value::Array(more)) => {
            for name in more {
                if !known.contains(name) {
                    known.push(name.clone());
                }
            }
        }
        ("enum", Value::Array(known), Value::Array(more))
            if known.iter().any(|value| more.contains(value)) =>
        {
            known.retain(|value| more.contains(value));
        }
        ("minimum" | "minLength" | "minItems", known, more) if is_below(known, more) => {
            *known = more.clone();
        }
        ("maximum" | "maxLength" | "maxItems", known, more) if is_below(more, known) => {
            *known = more.clone();
        }
        ("type", known, more) if *known == "number" && *more == "integer" => {
            *known = more.clone();
        }
        ("items", known, more) if known != more => {
            *known = json!({ "allOf": [known.take(), more] });
        }
        _ => {}
    }
}

fn is_below(one: &Value, other: &Value) -> bool {
    one.as_f64()
        .zip(other.as_f64())
        .is_some_and(|(one, other)| one < other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_become_one_schema() {
        let root = json!({"Part": {"type": "object", "required": ["a", "b"], "properties": {"a": {"minimum": 1}}},
                          "Self": {"allOf": [{"$ref": "#/Self"}]}});
        let document = Document::of_responses(&root);
        let mut flattening = Flattening {
            document: &document,
            takes_examples: true,
            pick: &mut |alternatives| alternatives.len() - 1,
        };
        let schema = json!({
            "description": "own", "properties": {"a": {"type": "integer"}},
            "allOf": [{"$ref": "#/Part"}, {"properties": {"b": {"enum": [1, 2]}}, "required": ["b", "c"], "maxProperties": 3}],
            "oneOf": [{"required": ["x"]}, {"required": ["d"], "example": {"d": 7}}]
        });
        let flat = flattening.flat(&schema).unwrap().into_owned();
        assert_eq!(
            flat,
            json!({
                "description": "own", "type": "object", "required": ["a", "b", "c", "d"], "maxProperties": 3,
                "properties": {"a": {"allOf": [{"type": "integer"}, {"minimum": 1}]}, "b": {"enum": [1, 2]}, "d": {"example": 7}}
            })
        );
        let plain = json!({"type": "string"});
        assert!(matches!(flattening.flat(&plain), Ok(Cow::Borrowed(_))));
        assert!(flattening.flat(&json!({"$ref": "#/Self"})).is_err());
        let bounds = json!({"allOf": [{"minimum": 1, "maximum": 9, "type": "number"}, {"minimum": 2, "maximum": 8, "type": "integer"}, {"enum": [3]}, {"enum": [3, 4]}]});
        assert_eq!(
            *flattening.flat(&bounds).unwrap(),
            json!({"minimum": 2, "maximum": 8, "type": "integer", "enum": [3]})
        );
    }
}
