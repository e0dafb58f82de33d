//! [JSON Schema](https://json-schema.org): schemas, compiled once, that values are judged by.
//!
//! The library beneath is generic over what holds a value, so each caller compiles all of its keywords. This crate
//! calls it for everybody, is optimised for size, and has not one generic function: what is compiled as many times is a minute of
//! a release build.

#![forbid(unsafe_code)]

use std::sync::LazyLock;

use jsonschema::{Draft, ValidationError, Validator};
use serde_json::{Value, json};

/// A schema that values are judged by.
#[derive(Debug)]
pub struct JsonSchema(Box<Validator>);

/// Why a document is no schema.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct JsonSchemaError(String);

/// A violation of the schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// Where, as a JSON pointer (RFC 6901) into the value.
    pub pointer: String,
    /// The violation in words.
    pub message: String,
}

impl JsonSchema {
    /// A schema by the draft that its `$schema` names, or by draft 2020-12.
    ///
    /// References to other documents are not followed.
    pub fn new(schema: &Value) -> Result<Self, JsonSchemaError> {
        Self::from_validator(jsonschema::validator_for(schema))
    }

    /// A schema of an OpenAPI document, by draft 2020-12 and with the formats of texts.
    pub fn of_openapi(schema: &Value) -> Result<Self, JsonSchemaError> {
        let options = jsonschema::options()
            .with_draft(Draft::Draft202012)
            .with_format("byte", is_base64)
            .should_validate_formats(true);
        Self::from_validator(options.build(schema))
    }

    /// The same for values that were written as texts, in a query or a form: a date stands for a time of the format `date-time`,
    /// as clients write it.
    pub fn of_openapi_texts(schema: &Value) -> Result<Self, JsonSchemaError> {
        let options = jsonschema::options()
            .with_draft(Draft::Draft202012)
            .with_format("byte", is_base64)
            .with_format("date-time", is_time_or_date)
            .should_validate_formats(true);
        Self::from_validator(options.build(schema))
    }

    fn from_validator(
        compiled: Result<Validator, ValidationError<'_>>,
    ) -> Result<Self, JsonSchemaError> {
        let compiled = compiled.map_err(|error| JsonSchemaError(error.to_string()))?;
        Ok(Self(Box::new(compiled)))
    }

    /// Whether there is nothing wrong with `value`.
    pub fn is_valid(&self, value: &Value) -> bool {
        self.0.is_valid(value)
    }

    /// The violations of `value`: the first `most`.
    pub fn mistakes(&self, value: &Value, most: usize) -> Vec<Mistake> {
        let mistakes = self.0.iter_errors(value).take(most);
        let mistakes = mistakes.map(|error| Mistake {
            pointer: error.instance_path().to_string(),
            message: error.to_string(),
        });
        mistakes.collect()
    }
}

/// Whether a text has the form of base64 (RFC 4648, section 4), which OpenAPI calls the format `byte`.
fn is_base64(text: &str) -> bool {
    let bare = text.trim_end_matches('=');
    let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || b"+/".contains(&byte);
    text.len().is_multiple_of(4) && text.len() - bare.len() <= 2 && bare.bytes().all(is_digit)
}

/// Whether a text is a time or a date (RFC 3339, section 5.6).
fn is_time_or_date(text: &str) -> bool {
    static EITHER: LazyLock<JsonSchema> = LazyLock::new(|| {
        let either = json!({ "anyOf": [{ "format": "date-time" }, { "format": "date" }] });
        JsonSchema::of_openapi(&either).expect("it is a schema")
    });
    EITHER.is_valid(&Value::from(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_judged_with_the_place_of_each_mistake() {
        let schema = json!({ "required": ["id"], "properties": { "id": { "type": "integer" }, "name": { "maxLength": 2 } } });
        let schema = JsonSchema::new(&schema).unwrap();
        assert!(schema.is_valid(&json!({ "id": 1 })));
        let wrong = json!({ "id": "1", "name": "long" });
        assert!(!schema.is_valid(&wrong));
        let mistakes = schema.mistakes(&wrong, 9);
        let pointers: Vec<_> = mistakes.iter().map(|it| it.pointer.as_str()).collect();
        assert_eq!(pointers, ["/id", "/name"]);
        assert_eq!(schema.mistakes(&wrong, 1), mistakes[..1]);
    }

    #[test]
    fn formats_count_in_openapi_documents_alone() {
        let schema = json!({ "type": "string", "format": "date" });
        let value = json!("tomorrow");
        assert!(JsonSchema::new(&schema).unwrap().is_valid(&value));
        assert!(!JsonSchema::of_openapi(&schema).unwrap().is_valid(&value));
    }

    #[test]
    fn bytes_of_openapi_documents_are_base64() {
        let schema = json!({ "type": "string", "format": "byte" });
        let schema = JsonSchema::of_openapi(&schema).unwrap();
        for (text, expected) in [
            ("", true),
            ("aGk=", true),
            ("aGkh", true),
            ("aGk", false),
            ("%", false),
            ("a===", false),
        ] {
            assert_eq!(schema.is_valid(&json!(text)), expected, "{text}");
        }
    }

    #[test]
    fn a_date_stands_for_a_time_in_texts_alone() {
        let schema = json!({ "type": "string", "format": "date-time" });
        let content = JsonSchema::of_openapi(&schema).unwrap();
        let texts = JsonSchema::of_openapi_texts(&schema).unwrap();
        for (text, in_content, in_texts) in [
            ("2026-01-02T03:04:05Z", true, true),
            ("2026-01-02T03:04:05+01:00", true, true),
            ("2026-01-02", false, true),
            ("2026-13-02", false, false),
            ("03:04:05", false, false),
            ("tomorrow", false, false),
            ("", false, false),
        ] {
            let found = [&content, &texts].map(|it| it.is_valid(&json!(text)));
            assert_eq!(found, [in_content, in_texts], "{text}");
        }
    }

    #[test]
    fn a_draft_is_the_one_that_is_named() {
        // Draft 4 has a flag where later ones have a number.
        let minimum = json!({ "$schema": "http://json-schema.org/draft-04/schema#", "minimum": 1, "exclusiveMinimum": true });
        let schema = JsonSchema::new(&minimum).unwrap();
        assert!(!schema.is_valid(&json!(1)));
        assert!(schema.is_valid(&json!(2)));
    }

    #[test]
    fn what_is_no_schema_is_reported() {
        let error = JsonSchema::new(&json!({ "type": "strange" })).unwrap_err();
        assert!(error.to_string().contains("strange"), "{error}");
    }
}
