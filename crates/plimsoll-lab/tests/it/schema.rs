//! The JSON document against its published schema.

use plimsoll_lab::TextFormat;
use plimsoll_lab::compare::{
    CompareOptions, ComparePlan, Gate, SCHEMA, SWEEP_SCHEMA, compare, sweep, sweep_to_html,
    sweep_to_json, sweep_to_text, to_html, to_json,
};
use plimsoll_load::Interrupt;
use serde_json::Value;

use crate::compare::{a_server, two_clients};

fn validator(name: &str) -> jsonschema::Validator {
    let path = format!("{}/../../schemas/{name}", env!("CARGO_MANIFEST_DIR"));
    let schema: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    jsonschema::draft202012::new(&schema).unwrap()
}

#[test]
fn the_document_follows_its_schema() {
    let validator = validator("compare.v1.json");

    let plan = ComparePlan::new(CompareOptions {
        trials: 2,
        gate: Some(Gate {
            allowed: 0.1,
            until_sure: None,
        }),
        self_test: true,
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
    assert_eq!(document["gate"], document["pairs"][0]["gate"]);
    assert_eq!(document["gate"]["allowed"], 0.1);
    assert_eq!(document["self_test"]["metric"], document["metric"]);
    assert_eq!(document["order"].as_array().unwrap().len(), 6);
    assert_eq!(document["operands"][0]["trials"][0]["ok"], 300);

    let mut broken = document;
    broken["verdict"] = Value::from("quicker");
    assert!(!validator.is_valid(&broken), "the schema accepts anything");
}

#[test]
fn rates_are_compared_one_after_the_other() {
    let comparison = {
        let plan = ComparePlan::new(two_clients(None)).unwrap();
        compare(&plan, &Interrupt::default(), &mut |_| {}).unwrap()
    };
    let page = to_html(&comparison);
    for part in [
        "A ours / B peer",
        "CPU µs per request, each trial",
        "<circle",
        "</html>",
    ] {
        assert!(page.contains(part), "no {part}");
    }

    // The stand-in for a driver makes as many requests as the rate says.
    let mut seen = Vec::new();
    let sweep = sweep(
        &a_server("{rate}"),
        &[40, 20],
        &Interrupt::default(),
        &mut |rate, _| {
            seen.push(rate);
        },
    )
    .unwrap();
    assert_eq!((seen.first(), seen.last()), (Some(&40), Some(&20)));
    let rates: Vec<u32> = sweep.rows().iter().map(|row| row.rate).collect();
    assert_eq!(rates, [20, 40]);
    let made: Vec<u64> = sweep
        .comparisons
        .iter()
        .map(|(_, comparison)| comparison.operands[0].trials[0].ok)
        .collect();
    assert_eq!(made, [20, 40]);
    let document: Value = serde_json::from_str(&sweep_to_json(&sweep)).unwrap();
    assert!(
        validator("compare-rates.v1.json").is_valid(&document),
        "{document}"
    );
    assert_eq!(document["schema"], SWEEP_SCHEMA);
    let mut broken = document;
    broken["rows"][0]["rate"] = Value::from("fast");
    assert!(!validator("compare-rates.v1.json").is_valid(&broken));
    assert!(sweep_to_text(&sweep, TextFormat::default()).contains("target/s"));
    assert!(sweep_to_html(&sweep).contains("Peak memory by achieved rate"));
}
