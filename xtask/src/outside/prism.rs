//! Prism's test harness: a document, a command of curl and the response that is expected.
//!
//! JSON is compared as values, not as text. Cases in which Prism stands before a real server are left out: their server is
//! on the Internet.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::exchange::serve;
use super::{Bench, Results};
use crate::Failure;

/// Runs the suite.
pub(super) fn run(bench: &Bench<'_>) -> Result<Results, Failure> {
    let specs = bench.checkout.join("test-harness/specs");
    let mut files = Vec::new();
    find(&specs, &mut files).map_err(|it| it.to_string())?;
    files.sort();
    let mut results = Results::default();
    for file in files {
        let text = fs::read_to_string(&file).map_err(|it| it.to_string())?;
        let case = Case::parse(&text);
        let server = case.section("server");
        if server.contains("proxy") {
            results.skip("a proxy before a server on the Internet");
            continue;
        }
        if server.contains("json-schema-faker") || server.contains("--cors") {
            results.skip("an option of Prism");
            continue;
        }
        if file.to_string_lossy().ends_with(".pc.txt") {
            results.skip("a Postman collection");
            continue;
        }
        let name = file.strip_prefix(&specs).unwrap_or(&file);
        results.add_result(name.display().to_string(), case.run(bench));
    }
    Ok(results)
}

fn find(folder: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            find(&path, files)?;
        } else if path.extension().is_some_and(|it| it == "txt") {
            files.push(path);
        }
    }
    Ok(())
}

/// The parts of a file, between lines of `====NAME====`.
struct Case<'a>(HashMap<&'a str, &'a str>);

impl<'a> Case<'a> {
    fn parse(text: &'a str) -> Self {
        let mut sections = HashMap::new();
        let mut parts = text.split("====");
        parts.next();
        while let (Some(name), Some(content)) = (parts.next(), parts.next()) {
            sections.insert(
                name,
                content.trim_start_matches('\r').trim_start_matches('\n'),
            );
        }
        Self(sections)
    }

    fn section(&self, name: &str) -> &'a str {
        self.0.get(name).copied().unwrap_or_default()
    }

    fn run(&self, bench: &Bench<'_>) -> Result<(), String> {
        let written = |name: &str, text: &str| {
            let path = bench.scratch.join(name);
            fs::write(&path, text).map_err(|error| error.to_string())?;
            Ok::<_, String>(path.to_string_lossy().into_owned())
        };
        let document = self.section("spec");
        let extension = if document.trim_start().starts_with('{') {
            "json"
        } else {
            "yaml"
        };
        let name = format!("spec.{extension}");
        written(&name, document)?;
        let words: Vec<&str> = self.section("server").split_whitespace().collect();
        let is_dynamic = words.iter().any(|it| ["-d", "--dynamic"].contains(it));
        let rules = written(
            "rules.toml",
            &format!("[[openapi]]\nfile = \"{name}\"\ndynamic = {is_dynamic}\n"),
        )?;
        let serving = serve(
            &bench.plimsoll,
            &["mock", &rules, "--listen", "127.0.0.1:0"],
        )?;
        let command = self.section("command").trim();
        let command = ["localhost:4010", "127.0.0.1:4010", "0.0.0.0:4010"]
            .iter()
            .fold(command.to_owned(), |command, place| {
                command.replace(place, &format!("127.0.0.1:{}", serving.port))
            });
        let output = Command::new("sh")
            .args(["-c", &format!("timeout 10 {command}")])
            .current_dir(&bench.scratch)
            .output()
            .map_err(|error| error.to_string())?;
        let output = String::from_utf8_lossy(&output.stdout).into_owned();
        let seen = Message::parse(output.trim());
        let (expected, is_strict) = ["expect", "expect-loose", "expect-keysOnly"]
            .into_iter()
            .find_map(|name| Some((Message::parse(self.0.get(name)?.trim()), name == "expect")))
            .ok_or("the case expects nothing")?;
        seen.compare(&expected, is_strict)
    }
}

/// A response as curl prints it.
struct Message {
    status: String,
    fields: Vec<(String, String)>,
    body: String,
}

impl Message {
    fn parse(text: &str) -> Self {
        let text = text.replace("\r\n", "\n");
        let (head, body) = text.split_once("\n\n").unwrap_or((&text, ""));
        // What comes before the response itself is an interim one.
        if head.starts_with("HTTP/1.1 100") {
            return Self::parse(body);
        }
        let mut lines = head.lines();
        let status = lines.next().and_then(|line| line.split(' ').nth(1));
        Self {
            status: status.unwrap_or_default().to_owned(),
            fields: lines
                .filter_map(|line| line.split_once(':'))
                .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
                .collect(),
            body: body.trim().to_owned(),
        }
    }

    fn compare(&self, expected: &Self, is_strict: bool) -> Result<(), String> {
        if self.status != expected.status {
            let body: String = self.body.chars().take(160).collect();
            return Err(format!(
                "{} instead of {}: {body}",
                self.status, expected.status
            ));
        }
        for (name, value) in &expected.fields {
            // The date and what describes the connection differ from run to run.
            if [
                "date",
                "connection",
                "content-length",
                "keep-alive",
                "transfer-encoding",
            ]
            .contains(&name.as_str())
            {
                continue;
            }
            let found = self.fields.iter().find(|(it, _)| it == name);
            let is_same = found.is_some_and(|(_, found)| match name.as_str() {
                "content-type" => media_type(found) == media_type(value),
                _ => found == value,
            });
            if !is_same {
                return Err(format!(
                    "{name}: {:?} instead of {value:?}",
                    found.map(|it| &it.1)
                ));
            }
        }
        // Problems are worded, and their types named, by each server for itself.
        if expected.body.contains("stoplight.io/prism/errors") {
            return Ok(());
        }
        let parsed = |text: &str| serde_json::from_str::<Value>(text).ok();
        let is_same = match (parsed(&self.body), parsed(&expected.body)) {
            (Some(seen), Some(expected)) if is_strict => seen == expected,
            (Some(seen), Some(expected)) => has_shape(&seen, &expected),
            _ if is_strict => self.body == expected.body,
            _ => expected.body.is_empty() || !self.body.is_empty(),
        };
        if is_same {
            return Ok(());
        }
        let seen: String = self.body.chars().take(160).collect();
        let wanted: String = expected.body.chars().take(160).collect();
        Err(format!("`{seen}` instead of `{wanted}`"))
    }
}

fn media_type(value: &str) -> String {
    let essence = value.split(';').next().unwrap_or_default();
    essence.trim().to_ascii_lowercase()
}

/// Whether `seen` has all keys of `expected`, whatever their values.
fn has_shape(seen: &Value, expected: &Value) -> bool {
    match (seen, expected) {
        (Value::Object(seen), Value::Object(expected)) => expected
            .iter()
            .all(|(key, value)| seen.get(key).is_some_and(|it| has_shape(it, value))),
        (Value::Object(_), _) | (_, Value::Object(_)) => false,
        _ => true,
    }
}
