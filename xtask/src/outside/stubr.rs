//! stubr: stubs in WireMock's format, with the requests and expectations of its tests in Rust.
//!
//! Statements of the form `get(stubr.path("…")).await.expect_…()` are run; others are counted as skipped.

use std::fs;
use std::path::{Path, PathBuf};

use regex::{Captures, Regex};
use serde_json::Value;

use super::exchange::{Answer, Serving, request, serve};
use super::{Bench, Results};
use crate::Failure;

/// Runs the suite.
pub(super) fn run(bench: &Bench<'_>) -> Result<Results, Failure> {
    let tests = bench.checkout.join("lib/tests");
    let mut files = Vec::new();
    for folder in ["req", "resp"] {
        sources(&tests.join(folder), &mut files).map_err(|it| it.to_string())?;
    }
    files.sort();
    let function = pattern(
        r#"(?s)#\[stubr::mock\("([^"]+\.json)"\)\]\s*async fn (\w+)\(\) \{\n(.*?)\n    ?\}\n"#,
    );
    let mut results = Results::default();
    for file in files {
        let source = fs::read_to_string(&file).map_err(|it| it.to_string())?;
        // Functions at the top of a file end without indentation.
        let source = source.replace("\n}\n", "\n    }\n");
        for found in function.captures_iter(&source) {
            let stub = tests.join("stubs").join(&found[1]);
            let name = format!("{} {}", &found[1], &found[2]);
            let stub = stub.to_string_lossy();
            let arguments = ["mock", "--import", &stub, "--listen", "127.0.0.1:0"];
            match serve(&bench.plimsoll, &arguments) {
                Ok(serving) => statements(&name, &found[3], &serving, &mut results),
                Err(complaint) => results.add_result(name, Err(complaint)),
            }
        }
    }
    Ok(results)
}

fn sources(folder: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            sources(&path, files)?;
        } else if path.extension().is_some_and(|it| it == "rs") {
            files.push(path);
        }
    }
    Ok(())
}

fn statements(name: &str, body: &str, serving: &Serving, results: &mut Results) {
    for (number, statement) in body.split(";\n").map(str::trim).enumerate() {
        if !statement.contains("stubr.") {
            continue;
        }
        let Some(sent) = SentRequest::parse(statement) else {
            results.skip("a statement of another form");
            continue;
        };
        let answer = request(
            serving.port,
            &sent.method,
            &sent.target,
            &sent.fields,
            sent.body.as_deref(),
        );
        let Some(result) = judge(statement, &answer) else {
            results.skip("an expectation of another form");
            continue;
        };
        let result = result.map_err(|seen| format!("{} {}: {seen}", sent.method, sent.target));
        results.add_result(format!("{name} {}", number + 1), result);
    }
}

/// A request as a statement makes it.
struct SentRequest {
    method: String,
    target: String,
    fields: Vec<(String, String)>,
    body: Option<String>,
}

impl SentRequest {
    fn parse(statement: &str) -> Option<Self> {
        let call = pattern(
            r"(?s)^(?:surf::)?(get|post|put|delete|head|options|patch|connect|trace)\((?:&)?stubr\.(\w+)\(([^;]*?)\)\)(.*)$",
        );
        let found = call.captures(statement)?;
        let literal = pattern(r#""((?:[^"\\]|\\.)*)""#);
        let arguments: Vec<String> = literal
            .captures_iter(&found[3])
            .map(|it| it[1].replace("\\\"", "\""))
            .collect();
        // Everything between the quotes has to be a literal.
        if found[3].contains("format!") || found[3].contains('&') && arguments.is_empty() {
            return None;
        }
        let target = match (&found[2], arguments.as_slice()) {
            ("path", [path]) => path.clone(),
            ("uri", []) => "/".to_owned(),
            ("path_query", [path, key, value]) => format!("{path}?{key}={value}"),
            ("query", [key, value]) => format!("/?{key}={value}"),
            ("path_queries", [path, a, b, c, d]) => format!("{path}?{a}={b}&{c}={d}"),
            ("queries", [a, b, c, d]) => format!("/?{a}={b}&{c}={d}"),
            _ => return None,
        };
        let target = if target.starts_with('/') {
            target
        } else {
            format!("/{target}")
        };
        let rest = found[4].split(".await").next()?.to_owned();
        let header = pattern(r#"\.header\(\s*"([^"]*)",\s*"([^"]*)"\s*\)"#);
        let mut fields: Vec<(String, String)> = header
            .captures_iter(&rest)
            .map(|it| (it[1].to_owned(), it[2].to_owned()))
            .collect();
        let mut body = None;
        let text = pattern(r#"\.body\(\s*"((?:[^"\\]|\\.)*)"(?:\.to_string\(\))?\s*\)"#);
        let json = pattern(r"(?s)\.body\(\s*json!\((.*)\)\s*\)\s*$");
        if let Some(found) = text.captures(&rest) {
            body = Some(found[1].replace("\\\"", "\""));
        } else if let Some(found) = json.captures(&rest) {
            let value: Value = serde_json::from_str(&found[1]).ok()?;
            fields.push(("content-type".to_owned(), "application/json".to_owned()));
            body = Some(value.to_string());
        } else if rest.contains(".body") {
            return None;
        }
        // Builders that this runner does not know would change the request.
        let calls = pattern(r"\.(\w+)\(");
        if calls
            .captures_iter(&rest)
            .any(|it| !["header", "body", "to_string"].contains(&&it[1]))
        {
            return None;
        }
        let method = found[1].to_ascii_uppercase();
        Some(Self {
            method,
            target: target.replace(' ', "%20"),
            fields,
            body,
        })
    }
}

/// Judges all expectations of a statement; nothing if one of them is not known here.
fn judge(statement: &str, answer: &Answer) -> Option<Result<(), String>> {
    let expectation =
        pattern(r#"\.(expect_\w+)(?:::<\w+>)?\(\s*((?:"(?:[^"\\]|\\.)*"(?:,\s*)?)*)\)"#);
    let count = statement.matches(".expect_").count();
    let found: Vec<Captures<'_>> = expectation.captures_iter(statement).collect();
    if found.len() != count || count == 0 {
        return None;
    }
    let literal = pattern(r#""((?:[^"\\]|\\.)*)""#);
    for found in found {
        let arguments: Vec<String> = literal
            .captures_iter(&found[2])
            .map(|it| it[1].replace("\\\"", "\"").replace("\\n", "\n"))
            .collect();
        let media_type = answer.field("content-type").unwrap_or_default().to_owned();
        let is_met = match (&found[1], arguments.as_slice()) {
            ("expect_status_ok", []) => answer.status == 200,
            ("expect_status_not_found", []) => answer.status == 404,
            ("expect_status_error", []) => answer.status >= 400,
            ("expect_status_internal_server_error", []) => answer.status == 500,
            ("expect_status_server_error", []) => answer.status >= 500,
            ("expect_status_bad_request", []) => answer.status == 400,
            ("expect_body_absent", []) => answer.body.is_empty(),
            ("expect_content_type_text", []) => media_type.starts_with("text/plain"),
            ("expect_content_type_json", []) => media_type.starts_with("application/json"),
            ("expect_body_text_eq", [text]) => answer.text() == *text,
            ("expect_header", [name, value]) => answer.field(name) == Some(value.as_str()),
            ("expect_header_absent", [name]) => answer.field(name).is_none(),
            _ => return None,
        };
        if !is_met {
            let body: String = answer.text().chars().take(120).collect();
            let wanted = arguments.join(", ");
            return Some(Err(format!(
                "{}({wanted}), seen {} {media_type} `{body}`",
                &found[1], answer.status
            )));
        }
    }
    Some(Ok(()))
}

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("it is a pattern")
}
