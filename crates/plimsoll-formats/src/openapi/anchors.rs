//! References by names: `$anchor`, and those whose target depends on the schema that is read (`$recursiveRef` of draft 2019-09,
//! `$dynamicRef` of 2020-12).
//!
//! They become references by pointers, as all others are. A document is one schema resource here: a name means the first
//! schema that has it, and the recursive reference the schema that it stands in.

use std::collections::BTreeMap;

use serde_json::Value;

/// Keys that hold values, which are no schemas even where they look like some.
const VALUES: [&str; 5] = ["enum", "const", "example", "examples", "default"];

/// Rewrites references by names within one file.
pub(super) fn resolve(root: &mut Value) {
    let mut anchors = BTreeMap::new();
    let mut has_recursive = false;
    find(root, "", &mut anchors, &mut has_recursive);
    if !anchors.is_empty() || has_recursive {
        rewrite(root, "", "", &anchors);
    }
}

/// Finds the schemas that have names.
fn find(value: &Value, at: &str, anchors: &mut BTreeMap<String, String>, has_recursive: &mut bool) {
    match value {
        Value::Object(object) => {
            *has_recursive |= object.contains_key("$recursiveRef");
            for key in ["$anchor", "$dynamicAnchor"] {
                if let Some(name) = object.get(key).and_then(Value::as_str) {
                    anchors
                        .entry(name.to_owned())
                        .or_insert_with(|| at.to_owned());
                }
            }
            for (key, value) in object.iter().filter(|(key, _)| is_followed(key)) {
                find(value, &below(at, key), anchors, has_recursive);
            }
        }
        Value::Array(list) => {
            for (number, value) in list.iter().enumerate() {
                find(
                    value,
                    &below(at, &number.to_string()),
                    anchors,
                    has_recursive,
                );
            }
        }
        _ => {}
    }
}

/// - `schema`: the pointer of the schema that `$recursiveRef` means here.
fn rewrite(value: &mut Value, at: &str, schema: &str, anchors: &BTreeMap<String, String>) {
    match value {
        Value::Object(object) => {
            let is_anchor = object.get("$recursiveAnchor") == Some(&Value::Bool(true));
            let schema = if is_anchor { at } else { schema };
            if object.get("$recursiveRef").and_then(Value::as_str) == Some("#") {
                object.remove("$recursiveRef");
                object.insert("$ref".to_owned(), Value::from(format!("#{schema}")));
            }
            for key in ["$dynamicRef", "$ref"] {
                let name = object.get(key).and_then(Value::as_str);
                let target = name.and_then(|name| anchors.get(name.strip_prefix('#')?));
                if let Some(target) = target {
                    let target = Value::from(format!("#{target}"));
                    object.remove(key);
                    object.insert("$ref".to_owned(), target);
                }
            }
            for (key, value) in object.iter_mut().filter(|(key, _)| is_followed(key)) {
                let inner = below(at, key);
                // Each of these is a schema of its own.
                let is_schema = key == "schema" || at.ends_with("/components/schemas");
                rewrite(
                    value,
                    &inner,
                    if is_schema { &inner } else { schema },
                    anchors,
                );
            }
        }
        Value::Array(list) => {
            for (number, value) in list.iter_mut().enumerate() {
                rewrite(value, &below(at, &number.to_string()), schema, anchors);
            }
        }
        _ => {}
    }
}

fn is_followed(key: &str) -> bool {
    !VALUES.contains(&key) && !key.starts_with("x-")
}

/// A pointer (RFC 6901) one level further down.
fn below(at: &str, key: &str) -> String {
    format!("{at}/{}", key.replace('~', "~0").replace('/', "~1"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_become_pointers() {
        let mut document = json!({
            "paths": { "/a": { "get": { "schema": { "items": { "$recursiveRef": "#" } } } } },
            "components": { "schemas": {
                "tree": { "$recursiveAnchor": true, "properties": { "kids": { "items": { "$recursiveRef": "#" } } } },
                "plain": { "properties": { "next": { "$recursiveRef": "#" } } },
                "named": { "$anchor": "it", "$defs": { "n": { "$dynamicAnchor": "node" } } },
                "uses": { "allOf": [{ "$ref": "#it" }, { "$dynamicRef": "#node" }, { "$ref": "#/components" }] },
                "example": { "example": { "$ref": "#it" } },
            } },
        });
        resolve(&mut document);
        for (pointer, expected) in [
            ("/paths/~1a/get/schema/items/$ref", "#/paths/~1a/get/schema"),
            (
                "/components/schemas/tree/properties/kids/items/$ref",
                "#/components/schemas/tree",
            ),
            (
                "/components/schemas/plain/properties/next/$ref",
                "#/components/schemas/plain",
            ),
            (
                "/components/schemas/uses/allOf/0/$ref",
                "#/components/schemas/named",
            ),
            (
                "/components/schemas/uses/allOf/1/$ref",
                "#/components/schemas/named/$defs/n",
            ),
            ("/components/schemas/uses/allOf/2/$ref", "#/components"),
            ("/components/schemas/example/example/$ref", "#it"),
        ] {
            assert_eq!(
                document.pointer(pointer),
                Some(&json!(expected)),
                "{pointer}"
            );
        }
    }
}
