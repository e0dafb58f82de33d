//! `plimsoll load` with scripts of k6: the whole program against the embedded origin's neighbour, a real server.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::Stdio;

use plimsoll_testkit::http::talk;
use plimsoll_testkit::{Authority, Leaf, Origin, Script as TestScript, eventually};

use crate::plimsoll::{CommandOutput, command, plimsoll};
use crate::served::Served;

fn script(directory: &tempfile::TempDir, text: &str) -> String {
    let path = directory.path().join("script.js");
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn results_of_a_script_count_dropped_iterations_in_every_file() {
    let origin = Origin::hello();
    let directory = tempfile::tempdir().unwrap();
    let script = script(
        &directory,
        "import http from 'k6/http'; import { sleep } from 'k6';
         export const options = { scenarios: { a: { executor: 'constant-arrival-rate', rate: 40,
           duration: '2s', preAllocatedVUs: 1, maxVUs: 1 } } };
         export default function () { http.get(`${__ENV.BASE}/`); sleep(0.2); }",
    );
    let results = directory.path().join("results");
    let base = format!("BASE={}", origin.url(""));
    let folder = results.to_str().unwrap();
    plimsoll(&["load", "--quiet", "-e", &base, "--out", folder, &script]).exits(0);
    let read = |name: &str| std::fs::read_to_string(results.join(name)).unwrap();
    let json = |name: &str| serde_json::from_str::<serde_json::Value>(&read(name)).unwrap();
    let (summary, data) = (json("summary.json"), json("script.json"));
    let dropped = data["metrics"]["dropped_iterations"]["values"]["count"]
        .as_u64()
        .unwrap();
    assert!(dropped > 40, "{dropped}");
    assert_eq!(summary["counts"]["dropped"], dropped);
    assert_eq!(summary["counts"]["errors"], dropped);
    // Each is in the row of a second.
    let series = read("series.csv");
    let mut rows = series.lines();
    let column = rows
        .next()
        .unwrap()
        .split(',')
        .position(|name| name == "other_errors");
    let errors: u64 = rows
        .map(|row| row.split(',').nth(column.unwrap()).unwrap())
        .map(|cell| cell.parse::<u64>().unwrap())
        .sum();
    assert_eq!(errors, dropped);
}

#[test]
fn requests_under_way_when_a_script_ends_are_a_caution() {
    let origin = Origin::silent();
    let directory = tempfile::tempdir().unwrap();
    let script = script(
        &directory,
        "import http from 'k6/http';
         export const options = { scenarios: { a: { executor: 'constant-vus', vus: 2,
           duration: '1s', gracefulStop: '0s' } } };
         export default function () { http.get(`${__ENV.BASE}/`); }",
    );
    let results = directory.path().join("results");
    let base = format!("BASE={}", origin.url(""));
    let folder = results.to_str().unwrap();
    plimsoll(&["load", "--quiet", "-e", &base, "--out", folder, &script]).exits(0);
    let text = std::fs::read_to_string(results.join("summary.json")).unwrap();
    let summary: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(summary["counts"]["aborted"], 2);
    assert!(
        text.contains("2 requests were under way when the run ended"),
        "{text}"
    );
}

#[test]
fn what_metrics_of_a_script_leave_out_is_a_caution_without_files_too() {
    let origin = Origin::silent();
    let directory = tempfile::tempdir().unwrap();
    let script = script(
        &directory,
        "import http from 'k6/http'; import { sleep } from 'k6';
         export const options = { scenarios: {
           waits: { executor: 'constant-vus', vus: 2, duration: '1s', gracefulStop: '0s', exec: 'waits' },
           sleeps: { executor: 'constant-arrival-rate', rate: 40, duration: '1s', gracefulStop: '0s',
             preAllocatedVUs: 1, maxVUs: 1, exec: 'sleeps' } } };
         export function waits() { http.batch([`${__ENV.BASE}/`, `${__ENV.BASE}/`]); }
         export function sleeps() { sleep(600); }",
    );
    let base = format!("BASE={}", origin.url(""));
    let leave_out = "the metrics of k6 and their thresholds leave them out";
    let expected = [
        format!("4 requests were under way when the run ended: {leave_out}"),
        format!("3 iterations were under way when the run ended: {leave_out}"),
        "39 iterations were dropped, for lack of virtual users".to_owned(),
    ];
    let output = plimsoll(&["load", "--quiet", "-e", &base, &script]).exits(0);
    for caution in &expected {
        let line = format!("warning: {caution}");
        assert!(output.stderr.contains(&line), "no {line} in {output}");
        assert!(!output.stdout.contains(caution), "{output}");
    }
    // In k6's place they are lines of the log.
    let output = plimsoll(&["k6", "run", "--quiet", "-e", &base, &script]).exits(0);
    for caution in &expected {
        let line = format!("level=warning msg=\"{caution}");
        assert!(output.stderr.contains(&line), "no {line} in {output}");
    }
}

#[test]
fn requests_that_were_answered_or_failed_are_no_caution() {
    let origin = Origin::hello();
    let directory = tempfile::tempdir().unwrap();
    let script = script(
        &directory,
        "import http from 'k6/http';
         export function setup() { http.get(`${__ENV.BASE}/`); }
         export default function () {
           http.get(`${__ENV.BASE}/`);
           http.get('http://127.0.0.1:1/');
           http.get(`${__ENV.BASE}/`, { timeout: '0.001ms' });
         }",
    );
    let base = format!("BASE={}", origin.url(""));
    let output = plimsoll(&["load", "-i", "3", "-e", &base, &script]).exits(0);
    assert!(!output.stderr.contains("under way"), "{output}");
    assert!(!output.stderr.contains("dropped"), "{output}");
}

#[test]
fn a_script_runs_with_flags_variables_and_an_exported_summary() {
    let origin = Origin::hello();
    let directory = tempfile::tempdir().unwrap();
    let script = script(
        &directory,
        "import http from 'k6/http'; import { check } from 'k6';
         export default function () {
           const r = http.get(`${__ENV.BASE}/`);
           check(r, { 'is hello': (r) => r.body.includes('hello') });
           if (__ITER === 0) console.log('hello from', __ENV.WHO);
         }",
    );
    let summary = directory.path().join("summary.json");
    let base = format!("BASE={}", origin.url(""));
    let output = plimsoll(&[
        "load",
        "-u",
        "2",
        "-i",
        "10",
        "-e",
        &base,
        "--env",
        "WHO=me",
        "--summary-export",
        summary.to_str().unwrap(),
        &script,
    ])
    .exits(0);
    assert!(
        output.stderr.contains("hello from me  source=console"),
        "{output}"
    );
    for expected in [
        "checks_succeeded...",
        "100.00% 10 out of 10",
        "✓ is hello",
        "http_reqs",
    ] {
        assert!(
            output.stdout.contains(expected),
            "no {expected} in {output}"
        );
    }
    assert_eq!(origin.requests(), 10);
    let summary: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(summary).unwrap()).unwrap();
    assert_eq!(summary["metrics"]["http_reqs"]["count"], 10);
}

#[test]
fn the_machine_readable_summary_is_passed_on_and_exported() {
    let directory = tempfile::tempdir().unwrap();
    let text = "import { check } from 'k6';
         export default () => { check(1, { one: (it) => it === 1 }); };
         export const handleSummary = (data) => ({ stdout: `${Object.keys(data)} ${data.results.checks.results[0].passes}` });";
    let script = script(&directory, text);
    let export = directory.path().join("summary.json");
    let export = export.to_str().unwrap();
    let flags = ["load", "--summary-export", export, &script];
    let flag = "--new-machine-readable-summary";
    let output = plimsoll(&[&flags[..], &[flag]].concat()).exits(0);
    assert_eq!(output.stdout, "config,metadata,results,version 1");
    let exported = || -> serde_json::Value {
        serde_json::from_str(&std::fs::read_to_string(export).unwrap()).unwrap()
    };
    assert_eq!(exported()["config"]["script"], text);
    assert_eq!(exported()["version"], "1.0.0");
    let mut by_variable = command(&flags);
    by_variable.env("K6_NEW_MACHINE_READABLE_SUMMARY", "true");
    let output = CommandOutput::from_output(by_variable.output().unwrap()).exits(0);
    assert_eq!(output.stdout, "config,metadata,results,version 1");
    by_variable.arg("--new-machine-readable-summary=false");
    // Its data has another shape, which is an exception of the script.
    CommandOutput::from_output(by_variable.output().unwrap()).exits(0);
    assert_eq!(exported()["root_group"]["checks"]["one"]["passes"], 1);
    std::fs::remove_file(export).unwrap();
    let disabled = ["--summary-mode", "disabled"];
    let output = plimsoll(&[&flags[..], &disabled].concat()).exits(0);
    assert_eq!(output.stdout, "");
    assert!(!std::path::Path::new(export).exists());
}

#[test]
fn secrets_of_tls_sessions_are_written_down() {
    let leaf = Leaf::self_signed(&["127.0.0.1"]);
    let origin = Origin::builder().tls(leaf.server_config()).start();
    let directory = tempfile::tempdir().unwrap();
    let script = script(
        &directory,
        "import http from 'k6/http'; export const options = { insecureSkipTLSVerify: true };
         export default () => console.log(http.get(__ENV.TARGET).status);",
    );
    let keys = directory.path().join("keys");
    let target = format!("TARGET={}", origin.url("/"));
    let mut command = command(&["load", "-e", &target, &script]);
    let output = command.env("SSLKEYLOGFILE", &keys).output().unwrap();
    let output = CommandOutput::from_output(output).exits(0);
    assert!(output.stderr.contains("200"), "{output}");
    let keys = std::fs::read_to_string(keys).unwrap();
    assert!(keys.contains("CLIENT_TRAFFIC_SECRET_0 "), "{keys}");
}

/// The head and the content of the response to a request.
fn requested(address: &str, head: &str, content: &str) -> String {
    let length = content.len();
    let request = format!(
        "{head} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{content}"
    );
    String::from_utf8(talk(address, request.as_bytes())).unwrap()
}

#[test]
fn a_paused_run_is_started_and_stopped_by_the_rest_api() {
    let directory = tempfile::tempdir().unwrap();
    let script = script(
        &directory,
        "import { sleep } from 'k6'; export const options = { duration: '10m' };
         export default () => { console.log('iterates'); sleep(600); };",
    );
    let flags = ["load", "--paused", "--address", "127.0.0.1:0", &script];
    let mut child = command(&flags)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut line_with = |text: &str| {
        let mut lines = lines.by_ref().map(Result::unwrap);
        lines.find(|line| line.contains(text)).unwrap()
    };
    let line = line_with("the REST API listens on");
    let (_, address) = line.split_once("http://").unwrap();
    let address = address.split_whitespace().next().unwrap().to_owned();
    eventually(|| requested(&address, "GET /v1/status", "").contains("\"paused\":true"));
    let change = |attribute: &str| {
        let content = format!("{{\"data\":{{\"attributes\":{{{attribute}}}}}}}");
        requested(&address, "PATCH /v1/status", &content)
    };
    let foreign = requested(
        &address,
        "PATCH /v1/status HTTP/1.1\r\nOrigin: http://example.com\r\nX-Rest:",
        "",
    );
    assert!(foreign.starts_with("HTTP/1.1 403"), "{foreign}");
    let started = change("\"paused\":false");
    assert!(started.starts_with("HTTP/1.1 200"), "{started}");
    line_with("iterates");
    let taken = plimsoll(&["load", "--address", &address, &script]).exits(106);
    assert!(taken.stderr.contains("--address"), "{taken}");
    let stopped = change("\"stopped\":true");
    assert!(stopped.contains("\"stopped\":true"), "{stopped}");
    line_with("a client of the REST API stopped the run");
    assert_eq!(child.wait().unwrap().code(), Some(103));
}

#[test]
fn percentiles_are_exact_if_every_value_is_kept() {
    let directory = tempfile::tempdir().unwrap();
    let script = script(
        &directory,
        "import { Trend } from 'k6/metrics'; const mine = new Trend('mine');
         export default () => [1.0001, 1.0002, 1.0005, 1.0008].forEach((it) => mine.add(it));
         export const handleSummary = (data) => ({ stdout: `${data.metrics.mine.values.med}` });",
    );
    let output = plimsoll(&["load", "--exact-trends", &script]).exits(0);
    assert_eq!(output.stdout, "1.00035");
    let output = plimsoll(&["load", &script]).exits(0);
    assert_ne!(output.stdout, "1.00035", "buckets are wider");
}

#[test]
fn a_script_comes_from_standard_input() {
    let mut command = command(&["load", "-i", "3", "--summary-mode", "disabled", "-"]);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin
        .write_all(b"export default () => console.log(__ITER)")
        .unwrap();
    drop(stdin);
    let output = CommandOutput::from_output(child.wait_with_output().unwrap()).exits(0);
    assert_eq!(
        output.stderr.matches("source=console").count(),
        3,
        "{output}"
    );
    assert_eq!(output.stdout, "");
}

#[test]
fn exit_codes_and_messages_are_for_people() {
    let directory = tempfile::tempdir().unwrap();
    for (text, code, expected) in [
        (
            "export const options = { thresholds: { iterations: ['count>1'] } }; export default () => {}",
            99,
            "thresholds on metrics 'iterations' have been crossed",
        ),
        (
            "export const options = { vuss: 1, paused: true }; export default () => {}",
            104,
            "options.paused needs `--address`",
        ),
        (
            "import { browser } from 'k6/browser'; export default () => {}",
            107,
            "browser automation is not supported by plimsoll",
        ),
        (
            "import exec from 'k6/execution'; export default () => exec.test.abort('stop')",
            108,
            "test aborted: stop",
        ),
    ] {
        let script = script(&directory, text);
        let output = plimsoll(&["load", &script]).exits(code);
        assert!(
            output.stderr.contains(expected),
            "no {expected} in {output}"
        );
    }
    let output = plimsoll(&["load", "none.js"]).exits(255);
    assert!(output.stderr.contains("cannot read none.js"), "{output}");
    let output = plimsoll(&["load", "script.ts"]).exits(255);
    assert!(output.stderr.contains("script.ts"), "{output}");
    let output = plimsoll(&["load", "--stage", "soon", "script.js"]).exits(2);
    assert!(
        output.stderr.contains("is not a stage such as 30s:10"),
        "{output}"
    );
}

#[test]
fn a_run_without_memory_for_its_users_ends_with_the_setting_to_raise() {
    let directory = tempfile::tempdir().unwrap();
    let text = "import { sleep } from 'k6'; export default () => { sleep(60); }";
    let script = script(&directory, text);
    let run = format!(
        "ulimit -v 1500000; exec {} load --quiet -u 4000 -d 60s {script}",
        env!("CARGO_BIN_EXE_plimsoll")
    );
    let output = std::process::Command::new("sh").args(["-c", &run]).output();
    let output = output.unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(255), "{stderr}");
    let hint = "raise vm.max_map_count (sysctl)";
    assert_eq!(stderr.matches(hint).count(), 1, "{stderr}");
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(!stdout.contains("iterations."), "{stdout}");
}

#[test]
fn a_signal_ends_a_script_with_its_summary() {
    let directory = tempfile::tempdir().unwrap();
    let script = script(
        &directory,
        "import { sleep } from 'k6'; export default () => { console.log('started'); sleep(600) }",
    );
    let mut child = command(&["load", "-d", "1h", &script])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    std::io::BufRead::read_line(&mut stderr, &mut line).unwrap();
    assert!(line.contains("started"), "{line}");
    let id = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(id, rustix::process::Signal::INT).unwrap();
    let output = CommandOutput::from_output(child.wait_with_output().unwrap()).exits(105);
    assert!(output.stdout.contains("TOTAL RESULTS"), "{output}");
}

#[test]
fn typescript_runs_with_options_of_a_file() {
    let directory = tempfile::tempdir().unwrap();
    let script = directory.path().join("script.ts");
    std::fs::write(
        &script,
        "import { Options } from 'k6/options';
         export const options: Options = { tags: { of: 'script' } };
         export default function (): void { const vu: number = __VU; console.log(`vu ${vu as number}`); }",
    )
    .unwrap();
    let script = script.to_str().unwrap();
    let config = directory.path().join("options.json");
    std::fs::write(&config, "{ \"vus\": 2, \"iterations\": 6 }").unwrap();
    let config = config.to_str().unwrap();
    let output = plimsoll(&["load", "--config", config, script]).exits(0);
    assert_eq!(
        output.stderr.matches("source=console").count(),
        6,
        "{output}"
    );
    let output = plimsoll(&["load", "-c", config, "-i", "3", script]).exits(0);
    assert_eq!(
        output.stderr.matches("source=console").count(),
        3,
        "{output}"
    );
    std::fs::write(config, "[]").unwrap();
    let output = plimsoll(&["load", "-c", config, script]).exits(104);
    assert!(
        output.stderr.contains("is not an object of options"),
        "{output}"
    );
    let text = "enum Kind { One, Two = 'two' }\nexport default () => console.log(Kind.One, Kind.Two, Kind[0]);";
    std::fs::write(script, text).unwrap();
    let output = plimsoll(&["load", script]).exits(0);
    assert!(
        output.stderr.contains("0 two One  source=console"),
        "{output}"
    );
    std::fs::write(script, "@a class B {}").unwrap();
    let output = plimsoll(&["load", script]).exits(107);
    let expected = "script.ts:1:1: decorators are not supported";
    assert!(output.stderr.contains(expected), "{output}");
}

#[test]
fn secrets_come_from_sources_and_stay_out_of_the_log() {
    let directory = tempfile::tempdir().unwrap();
    let script = script(
        &directory,
        "import secrets from 'k6/secrets';
         export default async () => {
           const token = await secrets.get('token');
           const other = await secrets.source('other').get('key');
           console.log(`${token.length} ${other} ${token}`);
           try { await secrets.get('missing'); } catch (error) { console.log(error.message); }
         };",
    );
    let file = directory.path().join("secrets.txt");
    std::fs::write(&file, "token=s3cr3t\n").unwrap();
    let source = format!("file=default,filename={}", file.display());
    let output = plimsoll(&[
        "load",
        "--secret-source",
        &source,
        "--secret-source",
        "mock=name=other,key=plain",
        &script,
    ])
    .exits(0);
    assert!(
        output
            .stderr
            .contains("6 ***SECRET_REDACTED*** ***SECRET_REDACTED***"),
        "{output}"
    );
    assert!(
        output.stderr.contains("no secret with key \"missing\""),
        "{output}"
    );
    assert!(!output.stderr.contains("s3cr3t"), "{output}");
    plimsoll(&["load", "--secret-source", "vault=x", &script]).exits(104);
}

#[test]
fn new_scripts_run_and_replace_nothing() {
    let origin = Origin::hello();
    let directory = tempfile::tempdir().unwrap();
    for template in ["minimal", "protocol"] {
        let path = directory.path().join(format!("{template}.js"));
        let path = path.to_str().unwrap();
        plimsoll(&["load", "--new", "--template", template, path]).exits(0);
        let text = std::fs::read_to_string(path).unwrap();
        assert!(text.contains(&format!(
            "plimsoll load -e BASE=http://127.0.0.1:8080 {path}"
        )));
        // The same scenarios, in less time.
        let text = text
            .replace("\"30s\"", "\"200ms\"")
            .replace("\"10s\"", "\"100ms\"")
            .replace("\"5s\"", "\"50ms\"")
            .replace("duration: \"200ms\"", "duration: \"1s\"");
        std::fs::write(path, text).unwrap();
        let base = format!("BASE={}", origin.url("").trim_end_matches('/'));
        let output = plimsoll(&["load", "--no-thresholds", "-e", &base, path]).exits(0);
        assert!(output.stdout.contains("✓ status is 200"), "{output}");
        assert!(!output.stdout.contains('✗'), "{output}");
        let again = plimsoll(&["load", "--new", path]).exits(255);
        assert!(again.stderr.contains("it exists"), "{again}");
    }
}

#[test]
fn a_recording_becomes_a_script_that_runs() {
    let origin = Origin::hello();
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let har = format!(
        r#"{{ "log": {{ "entries": [
            {{ "request": {{ "method": "POST", "url": "{0}", "headers": [{{ "name": "X-Own", "value": "`${{1}}" }}],
               "postData": {{ "mimeType": "text/plain", "text": "a\nb" }} }}, "response": {{ "status": 200 }} }},
            {{ "request": {{ "method": "GET", "url": "{0}", "headers": [] }}, "response": {{ "status": 200 }} }} ] }} }}"#,
        origin.url("/page")
    );
    std::fs::write(path("shop.har"), har).unwrap();
    plimsoll(&["load", "--record", &path("shop.har"), &path("script.js")]).exits(0);
    let output = plimsoll(&["load", &path("script.js")]).exits(0);
    assert!(output.stdout.contains("2 out of 2"), "{output}");
    let heads = origin.heads();
    assert!(
        heads[0].starts_with("POST /page ") && heads[0].contains("\r\nX-Own: `${1}\r\n"),
        "{heads:?}"
    );
    // It is never replaced.
    plimsoll(&["load", "--record", &path("shop.har"), &path("script.js")]).exits(255);
    let output = plimsoll(&["load", "--record", &path("script.js"), &path("other.js")]).exits(255);
    assert!(output.stderr.contains("--record"), "{output}");
}

#[test]
fn dates_of_places_are_the_same_in_a_file_of_requests_and_in_its_script() {
    let origin = Origin::hello();
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let places = [
        "\"YYYY-MM-DD dddd\" -1 d",
        "'MMMM YY, D M ddd d' 3 M",
        "\"hA h a H HH hh Z ZZ [at]\" 5 y",
    ];
    let places = places.map(|it| format!("{{{{$datetime {it}}}}}|{{{{$localDatetime {it}}}}}"));
    let file = format!("GET {}\nX-Dates: {}\n", origin.url("/"), places.join("|"));
    std::fs::write(path("dates.http"), file).unwrap();
    plimsoll(&["load", "--record", &path("dates.http"), &path("script.js")]).exits(0);
    let dates = |arguments: &[&str]| {
        plimsoll(arguments).exits(0);
        let head = origin.heads().pop().unwrap();
        let mut lines = head.lines();
        let is_dates = |line: &&str| line.to_ascii_lowercase().starts_with("x-dates: ");
        lines.find(is_dates).unwrap().split_at(9).1.to_owned()
    };
    let both = || {
        let of_file = dates(&["load", "-n", "1", "-c", "1", "--from", &path("dates.http")]);
        (of_file, dates(&["load", &path("script.js")]))
    };
    // An hour may end between them, but not twice.
    let (of_file, of_script) = Some(both())
        .filter(|(one, other)| one == other)
        .unwrap_or_else(both);
    assert_eq!(of_file, of_script);
    assert_eq!(of_file.split('|').count(), 6, "{of_file}");
}

#[test]
fn a_description_of_an_api_becomes_a_script_that_runs() {
    let origin = Origin::hello();
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let server = origin.url("/v1");
    let document = format!(
        r#"{{ "openapi": "3.1.0", "info": {{ "title": "shop", "version": "1" }}, "servers": [{{ "url": "{server}" }}], "paths": {{
            "/items/{{id}}": {{
                "parameters": [{{ "name": "id", "in": "path", "required": true, "schema": {{ "type": "integer" }}, "example": 7 }}],
                "get": {{ "operationId": "item", "responses": {{ "200": {{ "description": "one" }} }} }} }},
            "/orders": {{
                "post": {{ "operationId": "order", "requestBody": {{ "content": {{ "application/json": {{ "example": {{ "count": 2 }} }} }} }},
                    "responses": {{ "200": {{ "description": "taken" }} }} }} }} }} }}"#
    );
    std::fs::write(path("shop.json"), document).unwrap();
    plimsoll(&["load", "--record", &path("shop.json"), &path("script.js")]).exits(0);
    let output = plimsoll(&["load", &path("script.js")]).exits(0);
    assert!(output.stdout.contains("2 out of 2"), "{output}");
    let heads = origin.heads();
    assert!(heads[0].starts_with("GET /v1/items/7 "), "{heads:?}");
    assert!(
        heads[1].starts_with("POST /v1/orders ")
            && heads[1]
                .to_ascii_lowercase()
                .contains("\r\ncontent-type: application/json\r\n"),
        "{heads:?}"
    );
}

#[test]
fn modules_of_other_servers_are_fetched_once_and_pinned() {
    let authority = Authority::new();
    let leaf = authority.issue(&["localhost", "127.0.0.1"]);
    let builder = Origin::builder().tls(leaf.server_config());
    let module = "HTTP/1.1 200 OK\r\nContent-Length: 23\r\n\r\nexport const seven = 7;";
    let origin = builder.script(move |_| TestScript::serve(module)).start();
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    std::fs::write(path("ca.pem"), authority.pem()).unwrap();
    let text = format!(
        "import {{ seven }} from '{}'; export default () => console.log('seven', seven);",
        origin.url("/lib/seven.js")
    );
    std::fs::write(path("script.js"), text).unwrap();
    let run = || {
        let mut command = command(&["load", "--module-lock", &path("lock"), &path("script.js")]);
        command
            .env("SSL_CERT_FILE", path("ca.pem"))
            .env("XDG_CACHE_HOME", path("cache"));
        CommandOutput::from_output(command.output().unwrap())
    };
    for _ in 0..2 {
        let output = run().exits(0);
        assert!(output.stderr.contains("seven 7"), "{output}");
    }
    assert_eq!(origin.requests(), 1);
    let lock = std::fs::read_to_string(path("lock")).unwrap();
    let (_, url) = lock.split_once(' ').unwrap();
    std::fs::write(path("lock"), format!("{} {url}", "0".repeat(64))).unwrap();
    let output = run().exits(107);
    assert!(output.stderr.contains("the module has changed"), "{output}");
    drop(origin);
    std::fs::remove_dir_all(path("cache")).unwrap();
    std::fs::remove_file(path("lock")).unwrap();
    let output = run().exits(107);
    assert!(
        output.stderr.contains("which is not in the cache"),
        "{output}"
    );
}

#[test]
fn times_of_csv_have_the_format_of_a_variable() {
    let directory = tempfile::tempdir().unwrap();
    let script = script(&directory, "export default () => {}");
    let file = directory.path().join("samples.csv");
    let with = |format: &str| {
        let mut command = command(&["load", "--out", "csv", &script]);
        command
            .env("K6_CSV_FILENAME", &file)
            .env("K6_CSV_TIME_FORMAT", format);
        CommandOutput::from_output(command.output().unwrap())
    };
    with("rfc3339").exits(0);
    let samples = std::fs::read_to_string(&file).unwrap();
    let first = samples.lines().nth(1).unwrap();
    let time = first.split(',').nth(1).unwrap();
    assert!(time.contains('T') && time.ends_with('Z'), "{samples}");
    let wrong = with("iso").exits(255);
    assert!(
        wrong.stderr.contains("`iso` is not one of unix,"),
        "{wrong}"
    );
}

#[test]
fn outputs_and_the_console_go_to_files() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let script = script(
        &directory,
        "export default () => { console.warn('two words'); }",
    );
    let out = format!("json={}", path("samples.json.gz"));
    let output = plimsoll(&[
        "load",
        "--summary-mode",
        "full",
        "--console-output",
        &path("console.log"),
        "--out",
        &out,
        &script,
    ]);
    let output = output.exits(0);
    assert!(!output.stderr.contains("two words"), "{output}");
    let console = std::fs::read_to_string(path("console.log")).unwrap();
    assert!(
        console.ends_with(" level=warning msg=\"two words\"\n"),
        "{console}"
    );
    let file = std::fs::File::open(path("samples.json.gz")).unwrap();
    let mut lines = String::new();
    std::io::Read::read_to_string(&mut flate2::read::GzDecoder::new(file), &mut lines).unwrap();
    assert!(lines.contains("\"metric\":\"iterations\""), "{lines}");
}

#[test]
fn samples_are_in_their_files_while_the_script_runs() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let script = script(
        &directory,
        "import { sleep } from 'k6'; import { Counter } from 'k6/metrics';
         const mine = new Counter('mine');
         export default () => { mine.add(1); sleep(600) }",
    );
    let outputs = ["csv=samples.csv", "json=samples.json.gz"];
    let mut child = command(&["load", "-d", "1h", "--quiet"])
        .args(outputs.iter().flat_map(|output| ["--out", *output]))
        .arg(&script)
        .current_dir(directory.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    eventually(|| {
        let table = std::fs::read_to_string(path("samples.csv")).unwrap_or_default();
        let file = std::fs::File::open(path("samples.json.gz"));
        let mut lines = Vec::new();
        if let Ok(file) = file {
            // The end of the file is missing.
            let mut decoder = flate2::read::GzDecoder::new(file);
            decoder.read_to_end(&mut lines).ok();
        }
        let lines = String::from_utf8_lossy(&lines);
        table.contains("\nmine,") && lines.contains("\"metric\":\"mine\"")
    });
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_folder_gets_the_result_files_of_every_run_and_the_page_has_the_script() {
    let origin = Origin::hello();
    let directory = tempfile::tempdir().unwrap();
    let script = script(
        &directory,
        "import http from 'k6/http'; import { check, group } from 'k6';
         export const options = {
           thresholds: { http_reqs: ['count>0'] },
           scenarios: { steady: { executor: 'constant-arrival-rate', rate: 20, duration: '1s', preAllocatedVUs: 4 } },
         };
         export default function () {
           group('first', () => check(http.get(`${__ENV.BASE}/a`), { 'is <fine>': (r) => r.status === 200 }));
           http.get(`${__ENV.BASE}/b`, { tags: { name: 'second' } });
         }",
    );
    let results = directory.path().join("results");
    let base = format!("BASE={}", origin.url(""));
    let folder = results.to_str().unwrap();
    let arguments = ["load", "--quiet", "-e", &base, "--out", folder, &script];
    plimsoll(&arguments).exits(0);
    let read = |name: &str| std::fs::read_to_string(results.join(name)).unwrap();
    let summary: serde_json::Value = serde_json::from_str(&read("summary.json")).unwrap();
    let counts = &summary["counts"];
    // An arrival that no virtual user is free for is dropped, which a busy machine may do.
    let requests = origin.requests();
    assert_eq!(counts["ok"], requests);
    assert_eq!(counts["started"], requests);
    assert_eq!(summary["load"]["model"], "open");
    assert_eq!(summary["load"]["urls"], 2);
    assert_eq!(summary["statuses"]["200"], requests);
    // Latency from the intended start is there besides that from the actual one, and is no shorter.
    let latency = |kind: &str| summary["latency"][kind]["mean_us"].as_f64().unwrap();
    assert!(
        latency("from_intended") >= latency("from_started") * 0.99,
        "{summary:#}"
    );
    let names = summary["requests"].as_array().unwrap();
    let mut names: Vec<_> = names
        .iter()
        .map(|it| it["name"].as_str().unwrap())
        .collect();
    names.sort_unstable();
    assert_eq!(
        names,
        [format!("GET {}", origin.url("/a")).as_str(), "GET second"]
    );
    let page = read("report.html");
    for expected in [
        "is &lt;fine&gt;",
        "from their intended start",
        "count&gt;0",
        "::first",
        "Latency over time",
    ] {
        assert!(page.contains(expected), "no {expected}");
    }
    let data: serde_json::Value = serde_json::from_str(&read("script.json")).unwrap();
    assert_eq!(data["metrics"]["http_reqs"]["values"]["count"], requests);
    assert!(read("series.csv").lines().count() > 1);
    // What reads the results of other runs reads these too.
    let text = plimsoll(&["report", folder]).exits(0);
    assert!(text.stdout.contains("from the actual start"), "{text}");
    // Results are not overwritten, and outputs of k6 that plimsoll does not have are no folders.
    let output = plimsoll(&arguments).exits(255);
    assert!(output.stderr.contains("exists already"), "{output}");
    let output = plimsoll(&["load", "--out", "influxdb", &script]).exits(255);
    assert!(
        output.stderr.contains("`influxdb` is not supported"),
        "{output}"
    );
}

/// The script of a blog's article, as the plan `examples/sources/site.lab.toml` runs it.
#[test]
fn the_script_of_the_blog_runs_from_standard_input_against_the_site_server() {
    let directory = tempfile::tempdir().unwrap();
    let source =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/sources/site");
    for name in ["paths.json", "redirects.json"] {
        std::fs::copy(source.join(name), directory.path().join(name)).unwrap();
    }
    let list = |name: &str| {
        let text = std::fs::read_to_string(source.join(name)).unwrap();
        serde_json::from_str::<Vec<String>>(&text).unwrap()
    };
    let (paths, redirects) = (list("paths.json"), list("redirects.json"));
    let root = directory.path().join("root");
    std::fs::create_dir(&root).unwrap();
    for path in &paths {
        std::fs::write(root.join(path.trim_start_matches('/')), path).unwrap();
    }
    let links = source.join("links.txt");
    let server = Served::start(&[
        "serve",
        root.to_str().unwrap(),
        "--listen",
        "127.0.0.1:0",
        "--redirects",
        links.to_str().unwrap(),
    ]);
    let script = std::fs::File::open(source.join("load.js")).unwrap();
    let host = format!("K6_HOST={}", server.url);
    let output = command(&["load", "-u", "2", "-i", "4", "-e", &host, "-"])
        .current_dir(directory.path())
        .stdin(Stdio::from(script))
        .output()
        .unwrap();
    let output = CommandOutput::from_output(output).exits(0);
    let each = paths.len() + redirects.len();
    let total = 4 * each;
    let read = |name: &str| std::fs::read_to_string(directory.path().join(name)).unwrap();
    let data: serde_json::Value = serde_json::from_str(&read("summary.json")).unwrap();
    assert_eq!(
        data["metrics"]["http_reqs"]["values"]["count"], total,
        "{output}"
    );
    assert_eq!(data["metrics"]["checks"]["values"]["passes"], total);
    assert_eq!(data["metrics"]["checks"]["values"]["fails"], 0);
    assert!(
        output.stdout.contains("\u{1b}["),
        "the text is coloured: {output}"
    );
    let text = read("summary.txt");
    assert!(text.contains("status is 200, 301 or 308"), "{text}");
    assert!(!text.contains('\u{1b}'), "{text}");
    let page = read("summary.html");
    assert!(
        page.contains("<html") && page.contains("status is 200, 301 or 308"),
        "{page}"
    );
}
