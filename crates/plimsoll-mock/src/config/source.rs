//! Rules as they are written, in JSON and in TOML: what the admin API shows and takes.

use plimsoll_model::document::Value;
use serde_json::{Map, Number, Value as Json};

/// Why JSON is no rule.
#[derive(Debug, thiserror::Error)]
pub(super) enum RuleJsonError {
    #[error("a rule must be an object")]
    NotAnObject,
    #[error("the rule has a null, which no rule means")]
    Null,
    #[error("{0} is too large for a rule")]
    TooLarge(Number),
    #[error(transparent)]
    Toml(#[from] toml::ser::Error),
}

/// A rule as its file has it.
pub(super) fn json_of(value: &Value<'_>) -> Json {
    json(value.to_toml())
}

fn json(value: toml::Value) -> Json {
    match value {
        toml::Value::String(text) => Json::from(text),
        toml::Value::Integer(integer) => Json::from(integer),
        toml::Value::Float(float) => Json::from(float),
        toml::Value::Boolean(boolean) => Json::from(boolean),
        toml::Value::Datetime(datetime) => Json::from(datetime.to_string()),
        toml::Value::Array(items) => items.into_iter().map(json).collect(),
        toml::Value::Table(entries) => {
            let entries = entries.into_iter().map(|(key, value)| (key, json(value)));
            Json::Object(entries.collect::<Map<_, _>>())
        }
    }
}

/// A rule in JSON as a file would have it, to be compiled as one.
///
/// Fails where JSON has what TOML has not: nulls.
pub(super) fn text(rule: &Json) -> Result<String, RuleJsonError> {
    let Json::Object(_) = rule else {
        return Err(RuleJsonError::NotAnObject);
    };
    let mut document = toml::Table::new();
    let rules = vec![toml(rule)?];
    document.insert("rules".to_owned(), toml::Value::Array(rules));
    Ok(toml::to_string(&document)?)
}

/// Numbers keep their texts in JSON, so a serializer of another format cannot take them as they are.
fn toml(value: &Json) -> Result<toml::Value, RuleJsonError> {
    Ok(match value {
        Json::Null => return Err(RuleJsonError::Null),
        Json::Bool(boolean) => toml::Value::Boolean(*boolean),
        Json::String(text) => toml::Value::String(text.clone()),
        Json::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(integer), _) => toml::Value::Integer(integer),
            (None, Some(float)) => toml::Value::Float(float),
            (None, None) => return Err(RuleJsonError::TooLarge(number.clone())),
        },
        Json::Array(items) => toml::Value::Array(items.iter().map(toml).collect::<Result<_, _>>()?),
        Json::Object(entries) => {
            let entries = entries.iter();
            let entries = entries.map(|(key, value)| Ok((key.clone(), toml(value)?)));
            toml::Value::Table(entries.collect::<Result<_, RuleJsonError>>()?)
        }
    })
}

#[cfg(test)]
mod tests {
    use plimsoll_model::document::Document;
    use serde_json::json;

    use super::*;

    #[test]
    fn rules_are_the_same_in_both() {
        let rule = json!({
            "id": "a \"b\"",
            "priority": -3,
            "when": {
                "any": [{ "request": { "url_path": "/a" } }, { "request": { "method": ["GET", "PUT"] } }],
                "request": { "body": { "json": { "a.b": { "op": "equal_number", "value": "1" } } } }
            },
            "respond": { "text": "x\ny", "delay": { "lognormal": { "median": "1ms", "sigma": 0.5 } } }
        });
        let text = text(&rule).unwrap();
        let mut document = Document::parse(&text);
        let rules = document.root().take_value("rules").unwrap();
        assert_eq!(json_of(&rules.elements()[0]), rule);
        for wrong in [json!([]), json!({ "a": null })] {
            assert!(super::text(&wrong).is_err(), "{wrong}");
        }
    }
}
