//! Visits the objects of a document that describe something, and skips the data in it (examples, defaults).

use serde_json::Value;

use super::api::Object;

/// Keys whose value maps names that the document's author chose, so such a name is never a keyword.
const MAPS: [&str; 17] = [
    "$defs",
    "callbacks",
    "definitions",
    "dependentSchemas",
    "encoding",
    "examples",
    "headers",
    "links",
    "mediaTypes",
    "parameters",
    "pathItems",
    "paths",
    "patternProperties",
    "properties",
    "requestBodies",
    "responses",
    "schemas",
];

/// Keys whose value is data.
const DATA: [&str; 5] = ["const", "default", "enum", "example", "value"];

/// Calls `visit` with each object that is neither data nor a map of names, outer objects first.
pub(super) fn objects(value: &mut Value, visit: &mut dyn FnMut(&mut Object)) {
    within(value, false, visit);
}

fn within(value: &mut Value, is_map: bool, visit: &mut dyn FnMut(&mut Object)) {
    match value {
        Value::Array(elements) => {
            for element in elements {
                within(element, false, visit);
            }
        }
        Value::Object(object) => {
            // A map can also be a reference as a whole (`paths: {$ref: …}`).
            if !is_map || object.get("$ref").is_some_and(Value::is_string) {
                visit(object);
            }
            for (key, value) in object {
                if is_map {
                    within(value, false, visit);
                    continue;
                }
                let is_list_of_data = key == "examples" && value.is_array();
                // Extensions are data of other tools, which may look like references.
                let is_extension = key.starts_with("x-") && key != super::bundle::FILES;
                if is_extension {
                    continue;
                }
                if !DATA.contains(&key.as_str()) && !is_list_of_data {
                    let is_map = MAPS.contains(&key.as_str()) && value.is_object();
                    within(value, is_map, visit);
                }
            }
        }
        _ => {}
    }
}
