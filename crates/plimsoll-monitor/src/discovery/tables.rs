//! Definitions of monitors in a document.

use serde_json::Value;
use toml::Table;

use crate::config::import;
use crate::discovery::Listed;

/// Why a document is no list of monitors.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ListError {
    /// It is no JSON.
    #[error("is not JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// It is JSON of something else.
    #[error(
        "is no list of monitors: it has to be a list of objects, or an object with such a list as `monitors`"
    )]
    NoList,
    /// It has the targets of Prometheus, and they cannot be taken over.
    #[error("{0}")]
    Targets(#[from] import::ImportError),
    /// It is no TOML.
    #[error("{0}")]
    Toml(#[from] toml::de::Error),
}

/// Why an item of a list is no definition.
#[derive(Debug, thiserror::Error)]
enum ItemError {
    /// It is something else.
    #[error("is no object")]
    NotAnObject,
    /// It has values that a configuration cannot have.
    #[error("{0}")]
    Values(#[from] serde_json::Error),
}

/// A list in JSON: objects with the keys of a `[[monitor]]`, alone or as `monitors` of an object; or the groups of targets that
/// HTTP service discovery of Prometheus has.
pub(crate) fn of_json(content: &[u8]) -> Result<Listed, ListError> {
    let document: Value = serde_json::from_slice(content)?;
    let items = match &document {
        Value::Array(items) => items,
        Value::Object(object) => match object.get("monitors") {
            Some(Value::Array(items)) => items,
            _ => return Err(ListError::NoList),
        },
        _ => return Err(ListError::NoList),
    };
    let has_targets = |item: &Value| item.get("targets").is_some() && item.get("name").is_none();
    if !items.is_empty() && items.iter().all(has_targets) {
        let text = Value::Array(items.clone()).to_string();
        let (_, imported) = import::import(&text)?;
        let mut listed = of_toml(&imported.text)?;
        listed.problems = imported.remarks;
        return Ok(listed);
    }
    let mut listed = Listed::default();
    for (index, item) in items.iter().enumerate() {
        match of_object(item) {
            Ok(table) => listed.definitions.push(table),
            Err(reason) => {
                let number = index + 1;
                listed
                    .problems
                    .push(format!("monitor {number} of the list: {reason}"));
            }
        }
    }
    Ok(listed)
}

/// The tables `[[monitor]]` of a file.
pub(crate) fn of_toml(text: &str) -> Result<Listed, ListError> {
    let mut table: Table = text.parse()?;
    let mut listed = Listed::default();
    for (index, item) in match table.remove("monitor") {
        Some(toml::Value::Array(items)) => items,
        Some(other) => vec![other],
        None => Vec::new(),
    }
    .into_iter()
    .enumerate()
    {
        match item {
            toml::Value::Table(table) => listed.definitions.push(table),
            _ => listed
                .problems
                .push(format!("`monitor` {} is no table", index + 1)),
        }
    }
    for key in table.keys() {
        listed
            .problems
            .push(format!("`{key}` has no place here: only [[monitor]] has"));
    }
    Ok(listed)
}

fn of_object(item: &Value) -> Result<Table, ItemError> {
    if !item.is_object() {
        return Err(ItemError::NotAnObject);
    }
    let mut item = item.clone();
    without_nulls(&mut item);
    Ok(serde_json::from_value(item)?)
}

/// Programs write null for what is not there, which TOML cannot.
fn without_nulls(value: &mut Value) {
    match value {
        Value::Object(object) => {
            object.retain(|_, value| !value.is_null());
            object.values_mut().for_each(without_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(without_nulls),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_json_are_definitions() {
        let listed = of_json(
            br#"{"monitors": [{"name": "a", "http": {"url": "http://a/", "ca": null}, "group": null}, 3]}"#,
        )
        .unwrap();
        let text = listed.definitions[0].to_string();
        assert_eq!(text, "name = \"a\"\n\n[http]\nurl = \"http://a/\"\n");
        assert_eq!(listed.problems, ["monitor 2 of the list: is no object"]);
        let targets =
            br#"[{"targets": ["http://a.example/", "b.example:80"], "labels": {"job": "web"}}]"#;
        assert_eq!(of_json(targets).unwrap().definitions.len(), 2);
        assert_eq!(of_json(b"[]").unwrap(), Listed::default());
        for wrong in ["{}", "3", "{\"monitors\": 3}", "<html>", ""] {
            assert!(of_json(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn files_have_monitors_alone() {
        let listed = of_toml("metrics = true\n[[monitor]]\nname = 'a'\nmanual = true\n").unwrap();
        assert_eq!(listed.definitions.len(), 1);
        assert!(listed.problems[0].contains("`metrics`"), "{listed:?}");
        assert!(of_toml("name = ").is_err());
    }
}
