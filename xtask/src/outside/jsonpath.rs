//! The compliance suite of JSON paths: each selector becomes rules that ask for what it has to find.

use std::fs;

use serde::Deserialize;
use serde_json::Value;

use super::exchange::{request, serve};
use super::{Bench, Results};
use crate::Failure;

#[derive(Deserialize)]
struct Document {
    tests: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    selector: String,
    #[serde(default)]
    document: Value,
    result: Option<Vec<Value>>,
    /// Any of these orders.
    results: Option<Vec<Vec<Value>>>,
    #[serde(default)]
    invalid_selector: bool,
}

/// Runs the suite.
pub(super) fn run(bench: &Bench<'_>) -> Result<Results, Failure> {
    let text = fs::read_to_string(bench.checkout.join("cts.json")).map_err(|it| it.to_string())?;
    let document: Document = serde_json::from_str(&text).map_err(|it| it.to_string())?;
    let mut results = Results::default();
    let (invalid, valid): (Vec<Case>, Vec<Case>) = document
        .tests
        .into_iter()
        .partition(|case| case.invalid_selector);
    for case in invalid {
        let rule = rule("/", &case.selector, "{ op = \"exists\" }");
        let file = bench.scratch.join("invalid.toml");
        fs::write(&file, rule).map_err(|it| it.to_string())?;
        let file = file.to_string_lossy();
        let started = serve(&bench.plimsoll, &["mock", &file, "--listen", "127.0.0.1:0"]);
        let refused = match started {
            Ok(_) => Err("accepted".to_owned()),
            Err(_) => Ok(()),
        };
        results.add_result(case.name, refused);
    }
    valid_ones(bench, valid, &mut results)?;
    Ok(results)
}

/// All in one file: the case `N` at `/N`, the values that it has to find at `/N/V`.
fn valid_ones(bench: &Bench<'_>, cases: Vec<Case>, results: &mut Results) -> Result<(), Failure> {
    let mut rules = String::new();
    for (number, case) in cases.iter().enumerate() {
        rules.push_str(&rule(
            &format!("/{number}"),
            &case.selector,
            "{ op = \"exists\" }",
        ));
        for (index, value) in case.found().iter().enumerate() {
            let test = format!(
                "{{ op = \"equal\", value = {} }}",
                toml_text(&as_text(value))
            );
            rules.push_str(&rule(&format!("/{number}/{index}"), &case.selector, &test));
        }
    }
    let file = bench.scratch.join("valid.toml");
    fs::write(&file, rules).map_err(|it| it.to_string())?;
    let file = file.to_string_lossy();
    let serving = serve(&bench.plimsoll, &["mock", &file, "--listen", "127.0.0.1:0"])?;
    let json = [("content-type".to_owned(), "application/json".to_owned())];
    for (number, case) in cases.into_iter().enumerate() {
        let body = case.document.to_string();
        let is_found = |target: String| {
            request(serving.port, "POST", &target, &json, Some(&body)).status == 200
        };
        let expected = !case.found().is_empty();
        let mut result = Ok(());
        if is_found(format!("/{number}")) != expected {
            result = Err(format!("`{}` found: {}", case.selector, !expected));
        }
        for (index, value) in case.found().iter().enumerate() {
            if !is_found(format!("/{number}/{index}")) {
                result = Err(format!("`{}` does not find {value}", case.selector));
            }
        }
        results.add_result(case.name, result);
    }
    Ok(())
}

impl Case {
    fn found(&self) -> &[Value] {
        let several = self.results.as_ref().and_then(|all| all.first());
        self.result.as_ref().or(several).map_or(&[], Vec::as_slice)
    }
}

fn rule(path: &str, selector: &str, test: &str) -> String {
    format!(
        "[[rules]]\nwhen.request.url_path = \"{path}\"\nwhen.request.body.jsonpath.{} = {test}\nrespond.text = \"found\"\n",
        toml_text(selector)
    )
}

/// As conditions compare values: texts as they are, everything else as compact JSON.
fn as_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// A text on one line, as keys need it: what JSON escapes, TOML reads the same, but it wants DEL escaped too.
fn toml_text(text: &str) -> String {
    Value::from(text).to_string().replace('\u{7f}', "\\u007f")
}
