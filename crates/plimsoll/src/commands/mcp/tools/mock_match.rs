//! `mock_match`: which rule of a mock answers a request.

use serde_json::Value;

use super::super::arguments::{Argument, Call, Kind, Passed};
use super::super::bounds::Bounds;
use super::request::{BODY, HEADERS, METHOD};
use super::{Act, Command, Form, Tool};
use crate::problem::Problem;

pub(super) const TOOL: Tool = Tool {
    name: "mock_match",
    title: "Explain a mock's answer",
    doc: "Explain rule by rule which rule of a mock matches a request, and what differs in the others. Nothing is sent.",
    arguments: &[
        Argument {
            name: "path",
            kind: Kind::Text,
            passed: Passed::Positional,
            doc: "Path and query of the request, such as /orders?state=open",
        },
        Argument {
            name: "mock",
            kind: Kind::Path,
            passed: Passed::Positional,
            doc: "Folder or rule file of the mock, below the root",
        },
        METHOD,
        HEADERS,
        BODY,
    ],
    required: &["path", "mock"],
    output_schema: Some(include_str!("../../../../../../schemas/mock-match.v1.json")),
    sends: false,
    act: Act::Run(act),
};

fn act(call: &Call, _: &Bounds, _: &mut Vec<Problem>) -> Command {
    Command::new(&["mock", "match-test", "--json"], call, Form::Json(summary)).reading_files()
}

fn summary(explanation: &Value) -> String {
    let mut lines = vec![
        explanation["request"]
            .as_str()
            .unwrap_or_default()
            .to_owned(),
    ];
    let sets = explanation["sets"].as_array().into_iter().flatten();
    for rule in sets.flat_map(|set| set["rules"].as_array().into_iter().flatten()) {
        let name = rule["name"].as_str().unwrap_or_default();
        if rule["matches"] == true {
            let reply = rule["reply"].as_str().unwrap_or_default();
            lines.push(format!("{name}: matches, {reply}"));
            continue;
        }
        let unmet = rule["unmet"].as_array().into_iter().flatten();
        let unmet = unmet.filter_map(|condition| condition["condition"].as_str());
        lines.push(format!(
            "{name}: unmet {}",
            unmet.collect::<Vec<_>>().join(", ")
        ));
    }
    if explanation["answer"].is_null() {
        lines.push("no rule answers".to_owned());
    }
    lines.join("\n")
}
