//! What tools cannot do, whatever their arguments are.

use std::fs;
use std::os::unix::fs::symlink;

use plimsoll_testkit::{Origin, Script};
use serde_json::{Value, json};
use tempfile::tempdir;

use super::client::Client;

/// An address that no machine has (RFC 5737).
const ELSEWHERE: &str = "http://192.0.2.1:8080/";

#[test]
fn each_bound_is_refused_with_its_flag_before_anything_is_sent() {
    let origin = Origin::hello();
    let url = origin.url("/");
    let folder = tempdir().unwrap();
    fs::write(folder.path().join("requests.http"), "GET /\n").unwrap();
    let flags = [
        "--max-rate",
        "100/s",
        "--max-duration",
        "20s",
        "--max-connections",
        "10",
        "--allow-target",
        "https://staging.example.org",
    ];
    let mut client = Client::start(folder.path(), &flags);
    let mut refused = |tool: &str, arguments: Value, parts: &[&str]| {
        client.call(tool, &arguments).fails(parts);
    };
    refused(
        "check",
        json!({ "url": ELSEWHERE }),
        &[
            "url: 192.0.2.1:8080 is not an allowed target",
            "--allow-target",
        ],
    );
    refused(
        "load",
        json!({ "url": url, "rate": 101 }),
        &["rate: 101/s", "--max-rate"],
    );
    refused(
        "load",
        json!({ "url": url, "duration": "21s" }),
        &["duration: ", "--max-duration"],
    );
    refused(
        "load",
        json!({ "url": url, "warm_up": 15, "duration": 15 }),
        &["warm_up", "--max-duration"],
    );
    refused(
        "load",
        json!({ "url": url, "connections": 11 }),
        &["connections: 11", "--max-connections"],
    );
    refused(
        "load",
        json!({ "url": url, "connections": 4, "streams": 4, "http2": true }),
        &["connections × streams: 16", "--max-connections"],
    );
    refused(
        "load",
        json!({ "url": "https://staging.example.org/" }),
        &[
            "rate: is required for targets that are not loopback",
            "--max-rate",
        ],
    );
    refused(
        "load",
        json!({ "file": "requests.http", "url": url }),
        &["rate: is required with a file"],
    );
    refused("load", json!({}), &["give a URL or a file"]);
    refused(
        "compare",
        json!({ "urls": [url, "https://staging.example.org/"] }),
        &["is not loopback"],
    );
    refused(
        "compare",
        json!({ "urls": [url, "sh -c 'touch x'"] }),
        &["is not a URL"],
    );
    refused(
        "compare",
        json!({ "urls": [url, "ws://127.0.0.1/"] }),
        &["is not of HTTP"],
    );
    refused("compare", json!({ "urls": [url] }), &["two or more"]);
    refused(
        "compare",
        json!({ "urls": [url, url], "trials": 50 }),
        &["trials", "--max-duration"],
    );
    refused(
        "line",
        json!({ "url": url, "most": 1000 }),
        &["most: 1,000/s", "--max-rate"],
    );
    refused(
        "line",
        json!({ "url": url, "window": "1m" }),
        &["window: ", "--max-duration"],
    );
    refused("report", json!({ "folders": ["/etc"] }), &["--root"]);
    refused(
        "config_check",
        json!({ "kind": "up", "file": "../x" }),
        &["--root"],
    );
    refused(
        "load",
        json!({ "url": url, "rate": 1, "spawn": "sh", "pid": 1, "out": "x", "proxy": "x" }),
        &[
            "spawn: unknown argument",
            "pid: unknown argument",
            "out: unknown argument",
            "proxy: unknown argument",
        ],
    );
    // All of them at once.
    refused(
        "load",
        json!({ "url": ELSEWHERE, "rate": "1M/s", "duration": "1h", "connections": 0, "urll": 1 }),
        &[
            "url: ",
            "rate: ",
            "duration: ",
            "connections: ",
            "did you mean `url`?",
        ],
    );
    assert_eq!(origin.connections(), 0);
}

#[test]
fn redirects_and_requests_of_files_lead_to_allowed_targets_alone() {
    let redirect = |to: &str| {
        let head = format!("HTTP/1.1 302 Found\r\nlocation: {to}\r\ncontent-length: 0\r\n\r\n");
        Origin::scripted(Script::serve(head))
    };
    let folder = tempdir().unwrap();
    fs::write(
        folder.path().join("away.http"),
        format!("GET {ELSEWHERE}\n"),
    )
    .unwrap();
    let mut client = Client::start(folder.path(), &[]);
    for away in [
        ELSEWHERE,
        "http://example.org/",
        "http://localhost.example.org/",
    ] {
        let origin = redirect(away);
        let checked = client
            .call(
                "check",
                &json!({ "url": origin.url("/"), "follow_redirects": true }),
            )
            .succeeds();
        assert_eq!(checked.structured["verdict"], "failed", "{away}");
        assert_eq!(
            checked.structured["exchange"]["failure"]["side"], "config",
            "{away}"
        );
        assert!(
            checked.text.contains("not allowed"),
            "{away}: {}",
            checked.text
        );
    }
    client
        .call(
            "load",
            &json!({ "file": "away.http", "rate": 5, "duration": 1 }),
        )
        .fails(&["not allowed"]);
}

#[test]
fn a_script_reaches_no_other_target_file_or_variable() {
    let origin = Origin::hello();
    let base = tempdir().unwrap();
    let root = base.path().join("root");
    fs::create_dir(&root).unwrap();
    fs::write(base.path().join("secret"), "the secret").unwrap();
    symlink("../secret", root.join("link")).unwrap();
    fs::write(root.join("data.txt"), "inside").unwrap();
    let secret = base.path().join("secret").display().to_string();
    fs::write(
        root.join("script.js"),
        r"
import http from 'k6/http';
import ws from 'k6/ws';
export const options = { vus: 1, iterations: 1, hosts: { 'localhost': '192.0.2.1' } };
const read = (path) => { try { return open(path) } catch (error) { return 'refused' } };
const files = { inside: read('./data.txt'), link: read('./link'), up: read('../secret'), whole: read(__ENV.SECRET),
  passwd: read('/etc/passwd'), proc: read('/proc/1/environ') };
const reach = (url) => { const response = http.get(url, { timeout: '5s' }); return response.status || response.error };
export default function () {
  let socket = 'open';
  try { socket = ws.connect('ws://192.0.2.1:9/', {}, (it) => it.close()).error } catch (error) { socket = String(error) }
  console.log('FOUND ' + JSON.stringify({ files, here: reach(__ENV.BASE), away: reach('http://192.0.2.1:8080/'),
    mapped: reach('http://localhost:8080/'), socket, env: Object.keys(__ENV) }));
}
export function handleSummary() { return { 'written.txt': 'x', '/tmp/written-by-a-script.txt': 'x' } }
",
    )
    .unwrap();
    let mut client = Client::start(&root, &[]);
    let env = [
        format!("BASE={}", origin.url("/")),
        format!("SECRET={secret}"),
    ];
    let called = client
        .call("load_script", &json!({ "script": "script.js", "env": env }))
        .succeeds();
    let found = called.text.lines().find(|line| line.contains("FOUND "));
    let line = found.unwrap_or_else(|| panic!("{}", called.text));
    let line = line.replace("\\\"", "\"");
    let json = line
        .get(line.find('{').unwrap()..=line.rfind('}').unwrap())
        .unwrap();
    let found: Value = serde_json::from_str(json).unwrap_or_else(|error| panic!("{error}: {line}"));
    assert_eq!(found["here"], 200);
    for way in ["away", "mapped", "socket"] {
        let said = found[way]
            .as_str()
            .unwrap_or_else(|| panic!("{way}: {found}"));
        // The first are k6's words.
        let is_refused = said == "ip is blacklisted" || said.contains("not allowed");
        assert!(is_refused, "{way}: {said}");
    }
    let files = found["files"].as_object().unwrap();
    for (name, content) in files {
        let expected = if name == "inside" {
            "inside"
        } else {
            "refused"
        };
        assert_eq!(content, expected, "{name}");
    }
    let names: Vec<_> = found["env"].as_array().unwrap().iter().collect();
    assert!(names.iter().any(|name| **name == "BASE"), "{names:?}");
    assert!(
        !names.iter().any(|name| **name == "SECRET_OF_THE_OPERATOR"),
        "{names:?}"
    );
    assert!(!root.join("written.txt").exists());
    assert!(!std::path::Path::new("/tmp/written-by-a-script.txt").exists());
}

#[test]
fn a_script_is_held_to_the_bounds_whatever_its_options_are() {
    let origin = Origin::hello();
    let folder = tempdir().unwrap();
    let write = |name: &str, options: &str| {
        let text = format!(
            "import http from 'k6/http';\nexport const options = {options};\n\
             export default function () {{ http.get(__ENV.BASE) }}\n"
        );
        fs::write(folder.path().join(name), text).unwrap();
    };
    write("many.js", "{ vus: 11, iterations: 11 }");
    write("long.js", "{ vus: 1, duration: '1h' }");
    // Ten minutes are the limit of its iterations, not its length.
    write("few.js", "{ vus: 1, iterations: 2 }");
    write("fast.js", "{ vus: 5, duration: '2s', rps: 100000 }");
    let flags = [
        "--max-connections",
        "10",
        "--max-duration",
        "40s",
        "--max-rate",
        "20/s",
    ];
    let mut client = Client::start(folder.path(), &flags);
    let env = [format!("BASE={}", origin.url("/"))];
    let mut run =
        |script: &str| client.call("load_script", &json!({ "script": script, "env": env }));
    run("many.js").fails(&["11 virtual users", "--max-connections"]);
    run("long.js").fails(&["--max-duration"]);
    assert_eq!(origin.requests(), 0);
    run("few.js").succeeds();
    let fast = run("fast.js").succeeds();
    // The first second of a limiter may have one more; a script without it has thousands.
    let requests = fast.structured["metrics"]["http_reqs"]["count"]
        .as_u64()
        .unwrap();
    assert!((1..=60).contains(&requests), "{requests}");
}

#[test]
fn files_that_a_configuration_names_are_read_below_the_root_alone() {
    let base = tempdir().unwrap();
    let root = base.path().join("root");
    fs::create_dir(&root).unwrap();
    let outside = base.path().join("secret.toml");
    fs::write(&outside, "password = \"the secret\"\n").unwrap();
    let config = format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\ntls = {{ cert = \"{0}\", key = \"{0}\" }}\n[[route]]\nrespond = {{ body = \"x\" }}\n",
        outside.display()
    );
    fs::write(root.join("up.toml"), config).unwrap();
    let mut client = Client::start(&root, &[]);
    let called = client
        .call("config_check", &json!({ "kind": "up", "file": "up.toml" }))
        .fails(&["secret.toml", "ermission denied"]);
    assert!(!called.text.contains("the secret"), "{}", called.text);
}
