//! Environments of Mockoon from public repositories, beside Mockoon itself: the requests that the responses of each route
//! describe, and mutated ones, are sent to both, and the responses have to be the same.
//!
//! The checkout is a folder with repositories and `node_modules` with `@mockoon/cli`; every file of JSON below is one server.

use std::collections::HashSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Map, Value};

use super::differential::{SentRequest, compare, kind};
use super::exchange::{Answer, serve};
use super::wiremock::{json_files, of_expression};
use super::{Bench, Results};
use crate::Failure;
use crate::free_port::free_port;
use crate::server::{Server, wait_for};

/// Longer latencies are not waited for, in milliseconds.
const LONGEST_LATENCY: u64 = 1_000;

/// Routes of one file: generated ones have hundreds of the same kind.
const MOST_ROUTES: usize = 60;

/// Runs the suite.
pub(super) fn run(bench: &Bench<'_>) -> Result<Results, Failure> {
    let cli = bench.checkout.join("node_modules/@mockoon/cli/bin/run.js");
    if !cli.is_file() {
        return Err(format!("{} is not there", cli.display()).into());
    }
    let mut results = Results::default();
    let mut seen = HashSet::new();
    for entry in fs::read_dir(bench.checkout).map_err(|it| it.to_string())? {
        let folder = entry.map_err(|it| it.to_string())?.path();
        if !folder.is_dir() || folder.ends_with("node_modules") {
            continue;
        }
        let mut files = Vec::new();
        json_files(&folder, &mut files).map_err(|it| it.to_string())?;
        files.sort();
        for file in files {
            let text = fs::read_to_string(&file).unwrap_or_default();
            // Copies of one example say the same.
            if seen.insert(text.clone()) {
                compare_file(bench, &cli, &file, &text, &mut results)?;
            }
        }
    }
    Ok(results)
}

fn compare_file(
    bench: &Bench<'_>,
    cli: &Path,
    file: &Path,
    text: &str,
    results: &mut Results,
) -> Result<(), Failure> {
    let Ok(environment) = serde_json::from_str::<Value>(text) else {
        results.skip("a file that is no JSON");
        return Ok(());
    };
    let is_true = |value: &Value| *value == Value::Bool(true);
    if is_true(&environment["proxyMode"]) || is_true(&environment["tlsOptions"]["enabled"]) {
        results.skip("an environment with a server behind it, or TLS");
        return Ok(());
    }
    let requests = requests(&environment, results);
    if requests.is_empty() {
        return Ok(());
    }
    // It is migrated in its place.
    let copy = bench.scratch.join("environment.json");
    fs::write(&copy, text).map_err(|it| it.to_string())?;
    let port = free_port().map_err(|it| it.to_string())?;
    let mut command = Command::new("node");
    command
        .arg(cli)
        .args([
            "start",
            "--repair",
            "--disable-log-to-file",
            "--disable-admin-api",
        ])
        .args([
            "--hostname",
            "127.0.0.1",
            "--port",
            &port.to_string(),
            "--data",
        ])
        .arg(&copy)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let _theirs = Server::start(&mut command)?;
    if wait_for(port).is_err() {
        results.skip("Mockoon does not start with the file");
        return Ok(());
    }
    let shown = file.strip_prefix(bench.checkout).unwrap_or(file);
    let shown = shown.display().to_string();
    let place = file.to_string_lossy();
    let arguments = ["mock", "--import", &place, "--listen", "127.0.0.1:0"];
    let ours = match serve(&bench.plimsoll, &arguments) {
        Ok(ours) => ours,
        Err(complaint) => {
            results.add_result(shown, Err(complaint));
            return Ok(());
        }
    };
    for Described {
        name,
        request,
        made,
    } in requests
    {
        for (what, request) in [("described", &request), ("mutated", &request.mutated())] {
            let [wanted, seen] = [port, ours.port].map(|port| request.send(port));
            if wanted.status == 0 {
                results.skip("a response that Mockoon does not give");
                continue;
            }
            let result = judge(&wanted, &seen, made).or_else(|difference| {
                // A mutated path can lead to any response, also to one that is another one each time. Both get as many
                // requests, which responses may count.
                let [again, seen] = [port, ours.port].map(|port| request.send(port));
                let is_chance = judge(&wanted, &again, Made::Constant).is_err();
                if is_chance && judge(&again, &seen, Made::Chance).is_ok() {
                    Ok(())
                } else {
                    Err(difference)
                }
            });
            results.add_result(format!("{shown} {name} {what}"), result);
        }
    }
    Ok(())
}

/// How the content of a response is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Made {
    /// It is always the same.
    Constant,
    /// With identifiers and numbers by chance.
    Template,
    /// By chance as a whole.
    Chance,
}

struct Described {
    name: String,
    request: SentRequest,
    made: Made,
}

/// The requests that the responses of an environment describe.
fn requests(environment: &Value, results: &mut Results) -> Vec<Described> {
    let prefix = environment["endpointPrefix"].as_str().unwrap_or_default();
    let routes = environment["routes"].as_array().into_iter().flatten();
    let mut described = Vec::new();
    for route in routes.take(MOST_ROUTES) {
        if route["enabled"] == Value::Bool(false) {
            results.skip("a route that is off");
            continue;
        }
        let endpoint = route["endpoint"].as_str().unwrap_or_default();
        let Some(path) = path(prefix, endpoint) else {
            results.skip("a path with an expression");
            continue;
        };
        let method = match (route["type"].as_str(), route["method"].as_str()) {
            (Some("ws"), _) => {
                results.skip("a WebSocket");
                continue;
            }
            (Some("crud"), _) | (_, Some("all") | None) => "get",
            (_, Some(method)) => method,
        };
        let method = method.to_ascii_uppercase();
        // The older form is a flag.
        let is_random = route["randomResponse"] == Value::Bool(true);
        if is_random || route["responseMode"] == "RANDOM" {
            results.skip("a response by chance");
            continue;
        }
        let responses = route["responses"].as_array().into_iter().flatten();
        for (number, response) in (1..).zip(responses) {
            let name = format!("{method} {path} {number}");
            match request(&method, &path, response) {
                Ok(request) => described.push(Described {
                    name,
                    request,
                    made: made(environment, response),
                }),
                Err(reason) => results.skip(reason),
            }
        }
    }
    described
}

/// A path that an endpoint matches, unless that takes an expression.
fn path(prefix: &str, endpoint: &str) -> Option<String> {
    let whole = format!("/{prefix}/{endpoint}");
    // What stands behind `#` is not sent.
    if whole.contains(['(', '?', '+', '{', '[', ' ', '"', '#']) || !whole.is_ascii() {
        return None;
    }
    let segments = whole.split('/').filter(|it| !it.is_empty());
    let segments = segments.map(|segment| match segment {
        "*" => "any",
        segment if segment.starts_with(':') => "1",
        segment => segment,
    });
    let mut path = format!("/{}", segments.collect::<Vec<_>>().join("/"));
    if endpoint.ends_with('/') && path != "/" {
        path.push('/');
    }
    (!path.contains([':', '*'])).then_some(path)
}

/// A request that meets the rules of a response; fails with why there is none.
fn request(method: &str, path: &str, response: &Value) -> Result<SentRequest, &'static str> {
    let latency = response["latency"].as_u64().unwrap_or(0);
    if latency > LONGEST_LATENCY {
        return Err("a long latency");
    }
    if response["bodyType"] == "FILE" || response["sendFileAsBody"] == Value::Bool(true) {
        return Err("a file");
    }
    let mut request = SentRequest::new(method, path);
    let mut body = Value::Null;
    let rules = response["rules"].as_array().cloned().unwrap_or_default();
    let is_any = response["rulesOperator"] == "OR";
    let wanted = if is_any { 1 } else { rules.len() };
    for rule in rules.iter().take(wanted) {
        let text = |key: &str| rule[key].as_str().unwrap_or_default();
        let (modifier, value) = (text("modifier"), text("value"));
        if rule["invert"] == Value::Bool(true) || format!("{modifier}{value}").contains("{{") {
            return Err("a rule that is inverted, or a template");
        }
        let value = match text("operator") {
            "equals" => Some(value.to_owned()),
            "regex" | "regex_i" => Some(of_expression(value)?),
            "null" => None,
            _ => return Err("a rule with another operator"),
        };
        let Some(value) = value else { continue };
        match text("target") {
            "query" if !modifier.contains(['.', '[']) => request.push_parameter(modifier, &value),
            "header" => request.fields.push((modifier.to_owned(), value)),
            "cookie" => {
                let pair = format!("{modifier}={value}");
                request.fields.push(("cookie".to_owned(), pair));
            }
            "body" if modifier.is_empty() => body = Value::String(value),
            "body" if !modifier.contains(['$', '[', '\\']) => place(&mut body, modifier, &value),
            _ => return Err("a rule on another part of the request"),
        }
    }
    let is_sendable = |text: &str| text.bytes().all(|it| (b' '..=b'~').contains(&it));
    let mut fields = request.fields.iter();
    if !fields.all(|(name, value)| is_sendable(name) && is_sendable(value)) {
        return Err("a rule on another part of the request");
    }
    match body {
        Value::Null => {}
        Value::String(text) => request.body = Some(text),
        body => request = request.with_json(&body),
    }
    Ok(request)
}

/// Puts a value where a path of keys leads.
fn place(body: &mut Value, path: &str, value: &str) {
    let mut at = body;
    for key in path.split('.') {
        if !at.is_object() {
            *at = Value::Object(Map::new());
        }
        at = &mut at[key];
    }
    *at = Value::String(value.to_owned());
}

fn made(environment: &Value, response: &Value) -> Made {
    if response["disableTemplating"] == Value::Bool(true) {
        return Made::Constant;
    }
    let mut text = response.to_string();
    let is_of_data = response["bodyType"] == "DATABUCKET" || text.contains("data '");
    if is_of_data {
        text.push_str(&environment["data"].to_string());
    }
    let chance = ["faker", "oneOf", "someOf", "lorem", "newLine", "boolean"];
    match text.contains("{{") {
        false => Made::Constant,
        true if chance.iter().any(|name| text.contains(name)) => Made::Chance,
        true => Made::Template,
    }
}

fn judge(wanted: &Answer, seen: &Answer, made: Made) -> Result<(), String> {
    if wanted.status == 404 && seen.status == 404 && kind(wanted) == "text/html" {
        // The text of a 404 is each server's own.
        return Ok(());
    }
    match made {
        Made::Chance if wanted.status == seen.status => same_shape(wanted, seen),
        made => compare(wanted, seen, made == Made::Template),
    }
}

/// Whether contents by chance have the same form: objects with the same keys and kinds of values. Lists may have other
/// lengths.
fn same_shape(wanted: &Answer, seen: &Answer) -> Result<(), String> {
    if kind(wanted) != kind(seen) && !kind(wanted).is_empty() {
        return Err(format!(
            "type `{}` instead of `{}`",
            kind(seen),
            kind(wanted)
        ));
    }
    let [wanted, seen] = [wanted, seen].map(|answer| serde_json::from_str::<Value>(&answer.text()));
    match (wanted, seen) {
        (Ok(wanted), Ok(seen)) if !is_alike(&wanted, &seen) => {
            Err(format!("content `{seen}` instead of one like `{wanted}`"))
        }
        (Ok(wanted), Err(_)) => Err(format!("no JSON instead of one like `{wanted}`")),
        _ => Ok(()),
    }
}

fn is_alike(wanted: &Value, seen: &Value) -> bool {
    match (wanted, seen) {
        (Value::Object(wanted), Value::Object(seen)) => {
            wanted.len() == seen.len()
                && wanted
                    .iter()
                    .all(|(key, value)| seen.get(key).is_some_and(|it| is_alike(value, it)))
        }
        (Value::Array(wanted), Value::Array(seen)) => {
            let mut pairs = wanted.iter().zip(seen);
            pairs.all(|(wanted, seen)| is_alike(wanted, seen))
        }
        (Value::Object(_) | Value::Array(_), _) | (_, Value::Object(_) | Value::Array(_)) => false,
        // A value of chance may be null, or a number as text.
        _ => true,
    }
}
