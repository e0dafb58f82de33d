use serde_json::Value;

use super::*;
use crate::fixture;

const SCHEMA: &str = include_str!("../../../../schemas/load-summary.v1.json");

/// The published schema allows fields of later minor additions; here none may be undescribed.
fn strict(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            if object.contains_key("properties") {
                object.insert("unevaluatedProperties".into(), Value::Bool(false));
            }
            object.values_mut().for_each(strict);
        }
        Value::Array(items) => items.iter_mut().for_each(strict),
        _ => {}
    }
}

#[test]
fn every_document_is_valid_by_the_published_schema() {
    let published: Value = serde_json::from_str(SCHEMA).unwrap();
    let validator = jsonschema::validator_for(&published).unwrap();
    for (name, run) in fixture::all() {
        let json = SummaryDocument::from_summary(&run).to_json();
        let document: Value = serde_json::from_str(&json).unwrap();
        let errors: Vec<String> = validator
            .iter_errors(&document)
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect();
        assert_eq!(errors, [""; 0], "{name}");
    }
}

#[test]
fn every_field_is_described_and_a_missing_one_is_noticed() {
    let mut schema: Value = serde_json::from_str(SCHEMA).unwrap();
    // The shared parts are used inside others, which say for themselves what is left over.
    let shared = schema["$defs"].take();
    strict(&mut schema);
    schema["$defs"] = shared;
    let validator = jsonschema::validator_for(&schema).unwrap();
    for (name, run) in fixture::all() {
        let document = serde_json::to_value(SummaryDocument::from_summary(&run)).unwrap();
        let errors: Vec<String> = validator
            .iter_errors(&document)
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect();
        assert_eq!(errors, [""; 0], "{name}");
    }
    let mut document =
        serde_json::to_value(SummaryDocument::from_summary(&fixture::closed())).unwrap();
    document["unheard_of"] = Value::Null;
    assert!(!validator.is_valid(&document));
    document.as_object_mut().unwrap().remove("unheard_of");
    document["generator"]
        .as_object_mut()
        .unwrap()
        .remove("saturated");
    assert!(!validator.is_valid(&document));
}

#[test]
fn a_document_survives_the_way_through_json() {
    for (name, run) in fixture::all() {
        let document = SummaryDocument::from_summary(&run);
        let value: Value = serde_json::from_str(&document.to_json()).unwrap();
        let read: SummaryDocument = serde_json::from_value(value).unwrap();
        assert_eq!(read, document, "{name}");
    }
}

#[test]
fn the_order_of_fields_is_stable() {
    insta::assert_snapshot!(SummaryDocument::from_summary(&fixture::saturated()).to_json());
}

#[test]
fn conditions_alone() {
    insta::assert_snapshot!(
        ConditionsDocument::from_conditions(&fixture::closed().conditions).to_json()
    );
}
