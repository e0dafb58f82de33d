//! The JSON document against its published schema.

use plimsoll_lab::compare::{CompareOptions, ComparePlan, SCHEMA, compare, to_json};
use plimsoll_load::Interrupt;
use serde_json::Value;

use crate::compare::two_clients;

#[test]
fn the_document_follows_its_schema() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../schemas/compare.v1.json");
    let schema: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let validator = jsonschema::draft202012::new(&schema).unwrap();

    let plan = ComparePlan::new(CompareOptions {
        trials: 2,
        ..two_clients(None)
    })
    .unwrap();
    let comparison = compare(&plan, &Interrupt::default(), &mut |_| {}).unwrap();
    let document: Value = serde_json::from_str(&to_json(&comparison)).unwrap();
    let problems: Vec<String> = validator
        .iter_errors(&document)
        .map(|problem| format!("{}: {problem}", problem.instance_path()))
        .collect();
    assert_eq!(problems, Vec::<String>::new());

    assert_eq!(document["schema"], SCHEMA);
    for field in ["verdict", "ratio", "interval"] {
        assert_eq!(document[field], document["pairs"][0][field], "{field}");
    }
    assert_eq!(document["order"].as_array().unwrap().len(), 6);
    assert_eq!(document["operands"][0]["trials"][0]["ok"], 300);

    let mut broken = document;
    broken["verdict"] = Value::from("quicker");
    assert!(!validator.is_valid(&broken), "the schema accepts anything");
}
