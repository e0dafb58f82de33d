//! Environments: values for the variables of `.http` files, which editors keep beside them.
//!
//! `JetBrains`' HTTP client and Visual Studio have them in `http-client.env.json` and `http-client.private.env.json`
//! (`{"dev": {"host": "…"}}`), REST Client of VS Code in its settings.

use serde_json::{Map, Value};

use crate::Template;
use crate::table::json5::json5_to_json;

/// Names of values that each environment has.
const SHARED: &str = "$shared";

/// The key of the settings of VS Code.
const SETTING: &str = "rest-client.environmentVariables";

/// An environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Environment {
    /// Its name, such as `dev`.
    pub name: String,
    /// Its values; those that every environment has come first.
    pub values: Vec<(String, Template)>,
}

/// Why a file has no environments.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EnvironmentError {
    /// It is not JSON.
    #[error("is not JSON: {0}")]
    Json(String),
    /// It is something else than objects of values.
    #[error("has no object of environments, such as `{{\"dev\": {{\"host\": \"…\"}}}}`")]
    Form,
}

/// Reads a file of environments, or the settings of VS Code, which may have comments.
///
/// Objects among the values are left out: they are settings of editors.
pub fn environments(text: &str) -> Result<Vec<Environment>, EnvironmentError> {
    let json = json5_to_json(text).map_err(|error| EnvironmentError::Json(error.to_string()))?;
    let whole: Value =
        serde_json::from_str(&json).map_err(|error| EnvironmentError::Json(error.to_string()))?;
    let object = match whole.get(SETTING) {
        Some(setting) => setting,
        None => &whole,
    };
    let object = object.as_object().ok_or(EnvironmentError::Form)?;
    let shared = object.get(SHARED).and_then(Value::as_object);
    let mut environments = Vec::new();
    for (name, values) in object {
        let Some(values) = values.as_object() else {
            continue;
        };
        if name == SHARED {
            continue;
        }
        let mut environment = Environment {
            name: name.clone(),
            values: Vec::new(),
        };
        for values in shared.into_iter().chain([values]) {
            environment.add(values);
        }
        environments.push(environment);
    }
    if let (true, Some(shared)) = (environments.is_empty(), shared) {
        let mut environment = Environment {
            name: SHARED.to_owned(),
            values: Vec::new(),
        };
        environment.add(shared);
        environments.push(environment);
    }
    Ok(environments)
}

impl Environment {
    fn add(&mut self, values: &Map<String, Value>) {
        for (name, value) in values {
            let text = match value {
                Value::String(text) => text.clone(),
                Value::Number(number) => number.to_string(),
                Value::Bool(value) => value.to_string(),
                _ => continue,
            };
            // A value with braces that are no place is what it is: it may not even be used.
            let value = Template::parse(&text).unwrap_or_else(|_| Template::literal(text));
            self.values.push((name.clone(), value));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Vec<String> {
        let environments = environments(text).unwrap();
        let shown = environments.iter().map(|environment| {
            let values = environment.values.iter();
            let values: Vec<_> = values
                .map(|(name, value)| format!("{name}={value}"))
                .collect();
            format!("{}: {}", environment.name, values.join(" "))
        });
        shown.collect()
    }

    #[test]
    fn files_and_settings() {
        assert_eq!(
            shown(
                r#"{"dev": {"host": "http://a", "port": 8080, "Security": {"Auth": {}}}, "prod": {"host": "http://{{name}}"}}"#
            ),
            ["dev: host=http://a port=8080", "prod: host=http://{{name}}"]
        );
        assert_eq!(
            shown(
                "{\n// settings\n\"editor.tabSize\": 2, \"rest-client.environmentVariables\": {\"$shared\": {\"v\": \"1\"}, \"local\": {\"v\": \"2\"}},\n}"
            ),
            ["local: v=1 v=2"]
        );
        assert_eq!(shown(r#"{"$shared": {"v": "1"}}"#), ["$shared: v=1"]);
        assert_eq!(shown(r#"{"editor.tabSize": 2}"#), [""; 0]);
        assert_eq!(
            shown(r#"{"dev": {"a": "{{your token}}"}}"#),
            ["dev: a={{your token}}"]
        );
        for wrong in ["", "[]", "{"] {
            assert!(environments(wrong).is_err(), "{wrong}");
        }
    }
}
