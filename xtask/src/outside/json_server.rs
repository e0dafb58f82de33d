//! Files of json-server from public repositories, beside json-server itself: requests to each of their lists and values,
//! reading and writing, are sent to both, and the responses have to be the same.
//!
//! The checkout is a folder with repositories and `node_modules` with `json-server` 0.17; every file of JSON below is one
//! server. Each works on a copy.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::differential::{SentRequest, compare};
use super::exchange::{Answer, serve};
use super::wiremock::json_files;
use super::{Bench, Results};
use crate::Failure;
use crate::free_port::free_port;
use crate::server::{Server, wait_for};

/// Lists of one file that are tried.
const MOST_LISTS: usize = 6;

/// Runs the suite.
pub(super) fn run(bench: &Bench<'_>) -> Result<Results, Failure> {
    let program = bench
        .checkout
        .join("node_modules/json-server/lib/cli/bin.js");
    if !program.is_file() {
        return Err(format!("{} is not there", program.display()).into());
    }
    let mut results = Results::default();
    for entry in fs::read_dir(bench.checkout).map_err(|it| it.to_string())? {
        let folder = entry.map_err(|it| it.to_string())?.path();
        if !folder.is_dir() || folder.ends_with("node_modules") {
            continue;
        }
        let mut files = Vec::new();
        json_files(&folder, &mut files).map_err(|it| it.to_string())?;
        files.sort();
        for file in files {
            compare_file(bench, &program, &file, &mut results)?;
        }
    }
    Ok(results)
}

fn compare_file(
    bench: &Bench<'_>,
    program: &Path,
    file: &Path,
    results: &mut Results,
) -> Result<(), Failure> {
    let text = fs::read_to_string(file).unwrap_or_default();
    let Ok(Value::Object(data)) = serde_json::from_str::<Value>(&text) else {
        results.skip("a file that is no object of JSON");
        return Ok(());
    };
    let [theirs, ours] = ["theirs", "ours"].map(|name| bench.scratch.join(name).join("db.json"));
    for copy in [&theirs, &ours] {
        let folder = copy.parent().unwrap_or(copy);
        fs::create_dir_all(folder).map_err(|it| it.to_string())?;
        fs::write(copy, &text).map_err(|it| it.to_string())?;
    }
    let port = free_port().map_err(|it| it.to_string())?;
    let mut command = Command::new("node");
    command
        .arg(program)
        .arg(&theirs)
        .args([
            "--quiet",
            "--host",
            "127.0.0.1",
            "--port",
            &port.to_string(),
        ])
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let _theirs = Server::start(&mut command)?;
    if wait_for(port).is_err() {
        results.skip("json-server does not start with the file");
        return Ok(());
    }
    let shown = file.strip_prefix(bench.checkout).unwrap_or(file);
    let shown = shown.display().to_string();
    let place = ours.to_string_lossy();
    let arguments = ["mock", "--import", &place, "--listen", "127.0.0.1:0"];
    let ours = match serve(&bench.plimsoll, &arguments) {
        Ok(ours) => ours,
        Err(complaint) => {
            results.add_result(shown, Err(complaint));
            return Ok(());
        }
    };
    for (name, value) in data.iter().take(MOST_LISTS) {
        if name.contains(['/', ' ', '%', '?', '#']) || !name.is_ascii() {
            results.skip("a name that is no path");
            continue;
        }
        for (what, request) in requests(name, value) {
            let [wanted, seen] = [port, ours.port].map(|port| request.send(port));
            if wanted.status == 0 {
                results.skip("a response that json-server does not give");
                continue;
            }
            results.add_result(format!("{what}: {shown} {name}"), judge(&wanted, &seen));
        }
    }
    Ok(())
}

/// Requests to a list or a value, each with what it does: first those that change nothing.
fn requests(name: &str, value: &Value) -> Vec<(&'static str, SentRequest)> {
    let path = format!("/{name}");
    let get = |target: String| SentRequest::new("GET", target);
    let mut requests = vec![("read", get(path.clone()))];
    let Value::Array(rows) = value else {
        requests.push(("mutated", get(format!("{path}-mutated"))));
        if value.is_object() {
            let change = SentRequest::new("PATCH", path.clone()).with_json(&json!({ "zz": 1 }));
            requests.push(("change", change));
        }
        return requests;
    };
    let first = rows.iter().find(|row| row.is_object());
    let id = first.map(|row| &row["id"]).filter(|id| !id.is_null());
    let id = id.map(|id| id.as_str().map_or_else(|| id.to_string(), str::to_owned));
    let id = id.filter(|id| {
        id.bytes()
            .all(|it| it.is_ascii_alphanumeric() || it == b'-')
    });
    requests.push(("page", get(format!("{path}?_page=1&_limit=2"))));
    requests.push(("range", get(format!("{path}?_start=1&_end=3"))));
    requests.push(("search", get(format!("{path}?q=a"))));
    requests.push(("mutated", get(format!("{path}-mutated"))));
    requests.push(("missing", get(format!("{path}/no-such-id"))));
    if let Some(Value::Object(row)) = first {
        let plain = row.iter().find(|(name, value)| {
            let is_name = name.bytes().all(|it| it.is_ascii_alphanumeric());
            is_name && *name != "id" && (value.is_string() || value.is_number())
        });
        if let Some((key, value)) = plain {
            requests.push(("sort", get(format!("{path}?_sort={key}&_order=desc"))));
            let text = value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned);
            let mut filter = get(path.clone());
            filter.push_parameter(key, &text);
            requests.push(("filter", filter));
            let mut other = get(path.clone());
            other.push_parameter(&format!("{key}_ne"), &text);
            requests.push(("filter", other));
        }
    }
    if let Some(id) = id {
        let one = format!("{path}/{id}");
        requests.push(("read one", get(one.clone())));
        let send = |method: &str, target: &str, body: &Value| {
            SentRequest::new(method, target).with_json(body)
        };
        requests.push(("change one", send("PATCH", &one, &json!({ "zz": 1 }))));
        requests.push(("replace one", send("PUT", &one, &json!({ "yy": 2 }))));
        requests.push(("read one", get(one.clone())));
        let new = json!({ "id": "new-1", "zz": 3 });
        requests.push(("create", send("POST", &path, &new)));
        requests.push(("create again", send("POST", &path, &new)));
        requests.push(("delete", SentRequest::new("DELETE", one.clone())));
        requests.push(("read", get(one)));
    }
    requests
}

fn judge(wanted: &Answer, seen: &Answer) -> Result<(), String> {
    if wanted.status == 404 && seen.status == 404 {
        return Ok(());
    }
    compare(wanted, seen, false)?;
    let name = "x-total-count";
    let (wanted, seen) = (wanted.field(name), seen.field(name));
    if wanted.is_some() && wanted != seen {
        return Err(format!("{name} {seen:?} instead of {wanted:?}"));
    }
    Ok(())
}
