//! WireMock's mappings of public repositories, beside WireMock itself: the request that each mapping describes, and a mutated
//! one, are sent to both, and the responses have to be the same.
//!
//! The checkout is a folder with `wiremock-standalone.jar` and repositories; every folder `mappings` below is one server.
//! Compared are status, content type and content, JSON by its value, with identifiers, times and numbers by chance out of
//! the way where a response is a template.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use regex::Regex;
use serde_json::{Map, Value};

use super::differential::{SentRequest, compare};
use super::exchange::{Answer, serve};
use super::{Bench, Results};
use crate::Failure;
use crate::free_port::free_port;
use crate::server::{Server, wait_for};

/// Longer delays are not waited for.
const LONGEST_DELAY: u64 = 1_000;

/// Runs the suite.
pub(super) fn run(bench: &Bench<'_>) -> Result<Results, Failure> {
    let jar = bench.checkout.join("wiremock-standalone.jar");
    if !jar.is_file() {
        return Err(format!("{} is not there", jar.display()).into());
    }
    let mut roots = Vec::new();
    folders(bench.checkout, &mut roots).map_err(|it| it.to_string())?;
    roots.sort();
    let mut results = Results::default();
    for root in roots {
        compare_folder(bench, &jar, &root, &mut results)?;
    }
    Ok(results)
}

/// Folders that have a folder `mappings`.
fn folders(folder: &Path, roots: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() && path.file_name().is_some_and(|it| it == "mappings") {
            roots.push(folder.to_owned());
        } else if path.is_dir() {
            folders(&path, roots)?;
        }
    }
    Ok(())
}

fn compare_folder(
    bench: &Bench<'_>,
    jar: &Path,
    root: &Path,
    results: &mut Results,
) -> Result<(), Failure> {
    let name = root.strip_prefix(bench.checkout).unwrap_or(root);
    let name = name.display().to_string();
    let port = free_port().map_err(|it| it.to_string())?;
    let mut command = Command::new("java");
    command
        .arg("-jar")
        .arg(jar)
        .args(["--port", &port.to_string(), "--root-dir"])
        .arg(root)
        .args(["--bind-address", "127.0.0.1", "--disable-banner"])
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let _theirs = Server::start(&mut command)?;
    if wait_for(port).is_err() {
        results.skip("WireMock does not start with the folder");
        return Ok(());
    }
    let place = root.to_string_lossy();
    let arguments = ["mock", "--import", &place, "--listen", "127.0.0.1:0"];
    let ours = match serve(&bench.plimsoll, &arguments) {
        Ok(ours) => ours,
        Err(complaint) => {
            results.add_result(name, Err(complaint));
            return Ok(());
        }
    };
    let mut files = Vec::new();
    json_files(&root.join("mappings"), &mut files).map_err(|it| it.to_string())?;
    files.sort();
    for file in files {
        let text = fs::read_to_string(&file).unwrap_or_default();
        let Ok(value) = serde_json::from_str::<Value>(&text) else {
            results.skip("a file that is no JSON");
            continue;
        };
        let mappings = match value.get("mappings") {
            Some(Value::Array(all)) => all.clone(),
            _ => vec![value],
        };
        let shown = file.strip_prefix(bench.checkout).unwrap_or(&file);
        for (number, mapping) in (1..).zip(&mappings) {
            let case = format!("{} {number}", shown.display());
            let asked = match described(mapping) {
                Ok(asked) => asked,
                Err(reason) => {
                    results.skip(reason);
                    continue;
                }
            };
            let is_template = text.contains("{{");
            for (what, asked) in [("described", &asked), ("mutated", &asked.mutated())] {
                let [wanted, seen] = [port, ours.port].map(|port| asked.send(port));
                if wanted.status == 500 && is_file_missing(root, mapping) {
                    results.skip("a file that is missing, for which WireMock answers 500");
                    continue;
                }
                if wanted.status == 0 {
                    results.skip("a response that WireMock does not give");
                    continue;
                }
                let result = judge(&wanted, &seen, is_template);
                results.add_result(format!("{case} {what}"), result);
            }
        }
    }
    Ok(())
}

/// Whether the file of a mapping's content is not there.
fn is_file_missing(root: &Path, mapping: &Value) -> bool {
    let name = mapping["response"]["bodyFileName"].as_str();
    name.is_some_and(|name| {
        !root
            .join("__files")
            .join(name.trim_start_matches('/'))
            .is_file()
    })
}

pub(super) fn json_files(folder: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            json_files(&path, files)?;
        } else if path.extension().is_some_and(|it| it == "json") {
            files.push(path);
        }
    }
    Ok(())
}

/// The request that a mapping describes; fails with why there is none.
fn described(mapping: &Value) -> Result<SentRequest, &'static str> {
    let empty = Map::new();
    let request = mapping
        .get("request")
        .and_then(Value::as_object)
        .unwrap_or(&empty);
    let response = &mapping["response"];
    if response.get("fault").is_some_and(|it| !it.is_null()) {
        return Err("a fault");
    }
    if response.get("proxyBaseUrl").is_some_and(|it| !it.is_null()) {
        return Err("a server behind it");
    }
    let delay = response["fixedDelayMilliseconds"].as_u64().unwrap_or(0);
    if delay > LONGEST_DELAY || response["delayDistribution"].is_object() {
        return Err("a long delay");
    }
    let method = match &request.get("method") {
        Some(Value::String(method)) if method != "ANY" => method.as_str(),
        Some(Value::Object(methods)) => methods
            .get("oneOf")
            .and_then(|it| it.get(0)?.as_str())
            .unwrap_or("GET"),
        _ => "GET",
    };
    let mut asked = SentRequest {
        method: method.to_ascii_uppercase(),
        target: target(request)?,
        fields: Vec::new(),
        body: None,
    };
    let table = |key: &str| {
        request
            .get(key)
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
    };
    for (name, pattern) in table("queryParameters") {
        if let Some(value) = sample(pattern)? {
            asked.push_parameter(name, &value);
        }
    }
    for (name, pattern) in table("headers") {
        if let Some(value) = sample(pattern)? {
            asked.fields.push((name.clone(), value));
        }
    }
    for (name, pattern) in table("cookies") {
        if let Some(value) = sample(pattern)? {
            asked
                .fields
                .push(("cookie".to_owned(), format!("{name}={value}")));
        }
    }
    for key in [
        "formParameters",
        "multipartPatterns",
        "customMatcher",
        "host",
        "scheme",
        "port",
        "clientIp",
    ] {
        if request.contains_key(key) {
            return Err("a request of another form");
        }
    }
    if let Some(credentials) = request
        .get("basicAuth")
        .or(request.get("basicAuthCredentials"))
    {
        let text = |key: &str| credentials[key].as_str().unwrap_or_default().to_owned();
        let pair = format!("{}:{}", text("username"), text("password"));
        let pair = STANDARD.encode(pair);
        asked
            .fields
            .push(("authorization".to_owned(), format!("Basic {pair}")));
    }
    let patterns = request.get("bodyPatterns").and_then(Value::as_array);
    if let Some(patterns) = patterns.filter(|it| !it.is_empty()) {
        asked.body = Some(body(patterns)?);
        let has_kind = asked
            .fields
            .iter()
            .any(|(name, _)| name.eq_ignore_ascii_case("content-type"));
        if !has_kind
            && asked
                .body
                .as_deref()
                .is_some_and(|it| it.starts_with(['{', '[']))
        {
            asked
                .fields
                .push(("content-type".to_owned(), "application/json".to_owned()));
        }
    }
    Ok(asked)
}

fn target(request: &Map<String, Value>) -> Result<String, &'static str> {
    let text = |key: &str| request.get(key).and_then(Value::as_str);
    let target = if let Some(url) = text("url").or(text("urlPath")) {
        url.to_owned()
    } else if let Some(pattern) = text("urlPattern").or(text("urlPathPattern")) {
        of_expression(pattern)?
    } else if let Some(template) = text("urlPathTemplate") {
        let place = Regex::new(r"\{[^}]*\}").expect("it is a pattern");
        place.replace_all(template, "1").into_owned()
    } else {
        "/".to_owned()
    };
    let is_sendable = target.starts_with('/') && target.bytes().all(|it| it.is_ascii_graphic());
    if is_sendable {
        Ok(target)
    } else {
        Err("a URL that cannot be sent")
    }
}

/// A text that an expression matches, by the few forms that are common; checked by the expression itself.
pub(super) fn of_expression(pattern: &str) -> Result<String, &'static str> {
    let mut text = pattern
        .trim_start_matches('^')
        .trim_end_matches('$')
        .to_owned();
    for (form, sample) in [
        (r"\(\?:?[a-z]*\)", ""),
        (r"\[0-9\](\+|\*|\{\d+(,\d*)?\})?", "1"),
        (r"\\d(\+|\*|\{\d+(,\d*)?\})?", "1"),
        (r"\[[^\]]*\](\+|\*|\{\d+(,\d*)?\})?", "a"),
        (r"\\[wW](\+|\*)?", "a"),
        (r"\(?\.[*+]\??\)?", "a"),
        (r"\(([^()|]*)\|[^()]*\)", "$1"),
        (r"\(([^()]*)\)\??", "$1"),
        (r"\\([./?=&+-])", "$1"),
    ] {
        let form = Regex::new(form).expect("it is a pattern");
        text = form.replace_all(&text, sample).into_owned();
    }
    let whole = Regex::new(&format!("^(?:{pattern})$"));
    match whole {
        Ok(whole) if whole.is_match(&text) => Ok(text),
        _ => Err("an expression without a sample"),
    }
}

/// A value that meets a pattern; nothing for one that must not be there.
fn sample(pattern: &Value) -> Result<Option<String>, &'static str> {
    let text = |key: &str| pattern.get(key).and_then(Value::as_str).map(str::to_owned);
    if let Some(value) = text("equalTo").or(text("contains")) {
        return Ok(Some(value));
    }
    if let Some(expression) = text("matches") {
        return of_expression(&expression).map(Some);
    }
    if pattern.get("absent") == Some(&Value::Bool(true)) || pattern.get("doesNotMatch").is_some() {
        return Ok(None);
    }
    if pattern.get("anything").is_some() {
        return Ok(Some("a".to_owned()));
    }
    Err("a pattern without a sample")
}

/// A content that meets all patterns.
fn body(patterns: &[Value]) -> Result<String, &'static str> {
    let path = Regex::new(r"^\$((?:\.[A-Za-z_]\w*)+)$").expect("it is a pattern");
    let mut made = Value::Object(Map::new());
    for pattern in patterns {
        let json = match pattern.get("equalToJson") {
            Some(Value::String(text)) => Some(text.clone()),
            Some(value) => Some(value.to_string()),
            None => None,
        };
        let text = |key: &str| pattern.get(key).and_then(Value::as_str).map(str::to_owned);
        let whole = json
            .or_else(|| text("equalTo"))
            .or_else(|| text("equalToXml"));
        if let Some(whole) = whole.or_else(|| text("contains")) {
            if patterns.len() == 1 && !whole.contains("${") {
                return Ok(whole);
            }
            return Err("several patterns for one content");
        }
        let (expression, value) = match pattern.get("matchesJsonPath") {
            Some(Value::String(expression)) => (expression.clone(), "a".to_owned()),
            Some(inner @ Value::Object(_)) => {
                let expression = inner["expression"].as_str().unwrap_or_default().to_owned();
                (
                    expression,
                    sample(inner)?.ok_or("a pattern without a sample")?,
                )
            }
            _ => return Err("a content without a sample"),
        };
        let found = path
            .captures(&expression)
            .ok_or("a JSONPath without a sample")?;
        let mut at = &mut made;
        for key in found[1].split('.').skip(1) {
            if !at.is_object() {
                return Err("several patterns for one content");
            }
            at = &mut at[key];
            if at.is_null() {
                *at = Value::Object(Map::new());
            }
        }
        *at = Value::String(value);
    }
    Ok(made.to_string())
}

fn judge(wanted: &Answer, seen: &Answer, is_template: bool) -> Result<(), String> {
    if wanted.status != seen.status {
        return Err(format!("{} instead of {}", seen.status, wanted.status));
    }
    if wanted.field("matched-stub-id").is_none() && wanted.status == 404 {
        // What is said of a request that nothing matches is each server's own.
        return Ok(());
    }
    compare(wanted, seen, is_template)
}
