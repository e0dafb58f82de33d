//! The suite of cache-tests.fyi: its client, through the gateway's cache, to its server.
//!
//! A case is required by RFC 9111, or an optimisation, or a question without a wrong answer. Only required cases can fail.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::exchange::{request, serve};
use super::{Bench, Results};
use crate::Failure;
use crate::clock::{now, wait};
use crate::free_port::free_port;
use crate::server::Server;

/// How long the suite's server may take to start.
const START: Duration = Duration::from_secs(20);

/// Prints the result of each case, by its identifier.
const JUDGE: &str = r"
import fs from 'fs'
const [checkout, file] = process.argv.slice(2)
const tests = (await import(`${checkout}/tests/index.mjs`)).default
const { determineTestResult, resultTypes } = await import(`${checkout}/test-engine/lib/results.mjs`)
const results = JSON.parse(fs.readFileSync(file))
const judged = {}
for (const suite of tests) {
  for (const test of suite.tests) {
    const result = determineTestResult(tests, test.id, results)
    const name = Object.keys(resultTypes).find(name => resultTypes[name] === result)
    judged[test.id] = { kind: test.kind || 'required', result: name, detail: JSON.stringify(results[test.id] ?? null) }
  }
}
console.log(JSON.stringify(judged))
";

#[derive(serde::Deserialize)]
struct Judged {
    kind: String,
    result: String,
    detail: String,
}

/// Runs the suite.
pub(super) fn run(bench: &Bench<'_>) -> Result<Results, Failure> {
    if !bench.checkout.join("node_modules").is_dir() {
        let mut npm = Command::new("npm");
        npm.args(["install", "--omit=dev", "--no-fund", "--no-audit"]);
        crate::step::run(bench.checkout, &mut npm)?;
    }
    let text = |error: std::io::Error| error.to_string();
    let port = free_port().map_err(text)?;
    let mut node = Command::new("node");
    node.args(["--no-warnings", "test-engine/server/server.mjs"])
        .env("npm_config_protocol", "http")
        .env("npm_config_port", port.to_string())
        .env("npm_config_pidfile", bench.scratch.join("pid"))
        .current_dir(bench.checkout)
        .stdout(Stdio::null());
    let _server = Server(node.spawn().map_err(text)?);
    wait_for(port)?;
    let file = bench.scratch.join("gateway.toml");
    let configuration = format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\n[[route]]\n\
        proxy = {{ to = \"http://127.0.0.1:{port}\", cache = {{ stale_if_error = \"1m\" }} }}\n"
    );
    fs::write(&file, configuration).map_err(text)?;
    let gateway = serve(&bench.plimsoll, &["up", &file.to_string_lossy()])?;
    let results = bench.scratch.join("results.json");
    let mut client = Command::new("node");
    client
        .args(["--no-warnings", "test-engine/cli.mjs"])
        .env(
            "npm_config_base",
            format!("http://127.0.0.1:{}", gateway.port),
        )
        .env("npm_config_id", "")
        .env("npm_package_config_id", "")
        .current_dir(bench.checkout);
    fs::write(&results, output(&mut client)?).map_err(text)?;
    judge(bench.checkout, &bench.scratch, &results)
}

fn judge(checkout: &Path, scratch: &Path, results: &Path) -> Result<Results, Failure> {
    let judge = scratch.join("judge.mjs");
    fs::write(&judge, JUDGE).map_err(|error| error.to_string())?;
    let mut node = Command::new("node");
    node.arg(&judge).arg(checkout).arg(results);
    let judged: BTreeMap<String, Judged> =
        serde_json::from_slice(&output(&mut node)?).map_err(|error| error.to_string())?;
    let mut results = Results::default();
    for (
        case,
        Judged {
            kind,
            result,
            detail,
        },
    ) in judged
    {
        match (kind.as_str(), result.as_str()) {
            (_, "pass" | "yes") => results.add_result(case, Ok(())),
            (_, "untested") => results.skip("a test of browsers"),
            ("required", "dependency_fail") => {
                results.skip("the case depends on one that did not pass");
            }
            ("required", _) => results.add_result(case, Err(format!("{result}: {detail}"))),
            ("optimal", _) => results.skip("an optimisation that is not required"),
            _ => results.skip("a question without a wrong answer"),
        }
    }
    Ok(results)
}

fn output(command: &mut Command) -> Result<Vec<u8>, Failure> {
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("cannot run node: {error}"))?;
    if !output.status.success() {
        return Err(format!("node ended with {}", output.status).into());
    }
    Ok(output.stdout)
}

fn wait_for(port: u16) -> Result<(), Failure> {
    let begun = now();
    while request(port, "GET", "/", &[], None).status == 0 {
        if begun.elapsed() > START {
            return Err("the server of the suite does not start".into());
        }
        wait(Duration::from_millis(100));
    }
    Ok(())
}
