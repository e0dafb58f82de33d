//! Recordings by the admin API of WireMock, and mappings that it saves.

use std::fs;
use std::path::{Path, PathBuf};

use plimsoll_testkit::eventually;
use serde_json::{Value, json};

use crate::admin::Administered;
use crate::mock::Served;
use crate::wiremock::{document, get};

const ROUTE: &str = r#"
[[listen]]
address = "127.0.0.1:0"
[[route]]
mock = { file = "stubs" }
[admin]
address = "127.0.0.1:0"
"#;

const OWN: &str = r#"{ "request": { "urlPath": "/own" }, "response": { "body": "own" } }"#;

/// A mock of a folder of mappings.
fn start() -> Administered {
    Administered::start_with(ROUTE, &[("stubs/mappings/own.json", OWN)])
}

/// A real server whose answers change with each request.
fn server() -> Served {
    Served::rules(
        r#"[[rules]]
when.request.url_path = "/orders/7"
respond.sequence = [{ json = '{"n":1,"token":"secret"}' }, { json = '{"n":2}' }]
[[rules]]
when.request = { url_path = "/orders", method = "POST" }
respond = { status = 201, headers = { location = "/orders/8", set-cookie = "sid=1" }, text = "made" }
[[rules]]
when.request.url_path = "/long"
respond.text = "a text that is longer than thirty bytes"
"#,
    )
}

fn post(mock: &Administered, path: &str, body: &Value, status: u16) -> Value {
    document(mock, "POST", path, body, status)
}

fn saved(mock: &Administered, folder: &str) -> Vec<PathBuf> {
    let folder = mock.folder().join("stubs").join(folder);
    let entries = fs::read_dir(folder).map(|entries| entries.map(|it| it.unwrap().path()));
    let mut files: Vec<_> = entries.map(Iterator::collect).unwrap_or_default();
    files.sort();
    files
}

fn read(file: &Path) -> Value {
    serde_json::from_slice(&fs::read(file).unwrap()).unwrap()
}

#[test]
fn a_recording_becomes_mappings_that_answer_and_are_saved() {
    let (server, mock) = (server(), start());
    let target = format!("http://{}", server.address());
    assert_eq!(get(&mock, "/recordings/status")["status"], "NeverStarted");
    let none = post(&mock, "/recordings/stop", &Value::Null, 400);
    assert_eq!(none["errors"][0]["code"], 30);

    let options = json!({
        "targetBaseUrl": target,
        "captureHeaders": { "x-kind": { "caseInsensitive": true } },
        "extractBodyCriteria": { "textSizeThreshold": "30" },
        "filters": { "urlPathPattern": "/(orders|long).*" },
    });
    post(&mock, "/recordings/start", &options, 200);
    assert_eq!(get(&mock, "/recordings/status")["status"], "Recording");
    for (method, path, body, status) in [
        ("GET", "/orders/7", "", 200),
        ("GET", "/orders/7", "", 200),
        ("POST", "/orders", "new", 201),
        ("GET", "/long", "", 200),
        ("GET", "/other", "", 404),
    ] {
        assert_eq!(mock.ask(method, path, body).status, status, "{path}");
    }
    let recorded = post(&mock, "/recordings/stop", &Value::Null, 200);
    assert_eq!(get(&mock, "/recordings/status")["status"], "Stopped");
    let mappings = recorded["mappings"].as_array().unwrap();
    let names: Vec<_> = mappings
        .iter()
        .map(|it| it["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["long", "orders", "orders_7", "orders_7"]);
    assert_eq!(mappings[3]["scenarioName"], "scenario-1-orders-7");
    assert_eq!(
        mappings[3]["response"]["body"],
        r#"{"n":1,"token":"REDACTED"}"#
    );
    assert_eq!(
        mappings[1]["request"]["bodyPatterns"],
        json!([{ "equalTo": "new", "caseInsensitive": false }])
    );
    assert_eq!(
        mappings[1]["response"]["headers"]["set-cookie"],
        "sid=REDACTED"
    );
    let file = mappings[0]["response"]["bodyFileName"].as_str().unwrap();
    assert_eq!(saved(&mock, "__files")[0].file_name().unwrap(), file);

    // From here on the real server is not needed.
    drop(server);
    let text =
        |method: &str, path: &str, body: &str| mock.ask(method, path, body).text().to_owned();
    let answers = || {
        let first = text("GET", "/orders/7", "");
        let second = text("GET", "/orders/7", "");
        assert_eq!(
            (&*first, &*second),
            (r#"{"n":1,"token":"REDACTED"}"#, r#"{"n":2}"#)
        );
        assert_eq!(
            mock.ask("POST", "/orders", "new").field("location"),
            Some("/orders/8")
        );
        assert_eq!(mock.ask("POST", "/orders", "old").status, 404);
        assert!(text("GET", "/long", "").starts_with("a text"));
        assert_eq!(text("GET", "/own", ""), "own");
        assert_eq!(mock.ask("GET", "/other", "").status, 404);
    };
    answers();
    let files = saved(&mock, "mappings");
    assert_eq!(files.len(), 5);
    let of_file = files.iter().map(|file| read(file)["id"].clone());
    let of_file: Vec<_> = of_file.filter(|id| !id.is_null()).collect();
    assert!(mappings.iter().all(|it| of_file.contains(&it["id"])));

    // What was saved is read again, and is not there twice.
    eventually(|| {
        let host = format!("host: {}", mock.address(1));
        mock.admin("GET", "/mock/status", &[&host], "")
            .text()
            .contains("long-")
    });
    assert_eq!(get(&mock, "/mappings")["meta"]["total"], 5);
    post(&mock, "/scenarios/reset", &Value::Null, 200);
    answers();
    // A mapping that was saved lasts until it is removed.
    let id = mappings[0]["id"].as_str().unwrap();
    document(
        &mock,
        "DELETE",
        &format!("/mappings/{id}"),
        &Value::Null,
        200,
    );
    assert_eq!(saved(&mock, "mappings").len(), 4);
    assert_eq!(mock.ask("GET", "/long", "").status, 404);
}

#[test]
fn a_snapshot_is_of_what_proxies_answered() {
    let (server, mock) = (server(), start());
    let proxy = json!({
        "request": { "urlPathPattern": "/orders.*" },
        "response": { "proxyBaseUrl": format!("http://{}", server.address()) },
    });
    post(&mock, "/mappings", &proxy, 201);
    mock.ask("GET", "/orders/7", "");
    mock.ask("GET", "/orders/7", "");
    mock.ask("GET", "/own", "");
    let options = json!({ "persist": false, "repeatsAsScenarios": false, "outputFormat": "IDS" });
    let recorded = post(&mock, "/recordings/snapshot", &options, 200);
    assert_eq!(recorded["ids"].as_array().unwrap().len(), 1);
    let id = recorded["ids"][0].as_str().unwrap();
    let mapping = get(&mock, &format!("/mappings/{id}"));
    assert_eq!(
        mapping["request"],
        json!({ "url": "/orders/7", "method": "GET" })
    );
    assert_eq!(saved(&mock, "mappings").len(), 1);
    // With the requests their answers are forgotten.
    document(&mock, "DELETE", "/requests", &Value::Null, 200);
    let none = post(&mock, "/recordings/snapshot", &Value::Null, 200);
    assert_eq!(none, json!({ "mappings": [] }));
}

#[test]
fn mappings_are_saved_when_asked_and_removed_with_their_files() {
    let mock = start();
    let new = json!({ "name": "new", "request": { "url": "/own" }, "response": { "body": "new" } });
    let new = post(&mock, "/mappings", &new, 201);
    assert_eq!(saved(&mock, "mappings").len(), 1);
    post(&mock, "/mappings/save", &Value::Null, 200);
    let id = new["id"].as_str().unwrap();
    let file = mock.folder().join(format!("stubs/mappings/new-{id}.json"));
    assert_eq!(read(&file)["persistent"], true);
    // It goes on to be tried before the one that was there, though its file comes first by name.
    eventually(|| {
        let host = format!("host: {}", mock.address(1));
        let status = mock.admin("GET", "/mock/status", &[&host], "");
        status.text().contains(&format!("new-{id}"))
    });
    assert_eq!(mock.ask("GET", "/own", "").text(), "new");
    let changed = json!({ "name": "new", "request": { "url": "/own" }, "response": { "body": "changed" }, "persistent": true });
    document(&mock, "PUT", &format!("/mappings/{id}"), &changed, 200);
    assert_eq!(read(&file)["response"]["body"], "changed");
    document(
        &mock,
        "DELETE",
        &format!("/mappings/{id}"),
        &Value::Null,
        200,
    );
    assert!(!file.exists());
    assert_eq!(mock.ask("GET", "/own", "").text(), "own");

    // A reset finds what the files hold by then.
    let kept = json!({ "request": { "url": "/kept" }, "response": { "body": "kept" } });
    let kept = post(&mock, "/mappings", &kept, 201);
    post(&mock, "/mappings/save", &Value::Null, 200);
    let lost = json!({ "request": { "url": "/lost" }, "response": { "body": "lost" } });
    post(&mock, "/mappings", &lost, 201);
    post(&mock, "/mappings/reset", &Value::Null, 200);
    assert_eq!(mock.ask("GET", "/kept", "").text(), "kept");
    assert_eq!(mock.ask("GET", "/lost", "").status, 404);
    let id = kept["id"].as_str().unwrap();
    document(
        &mock,
        "DELETE",
        &format!("/mappings/{id}"),
        &Value::Null,
        200,
    );
    post(&mock, "/mappings/reset", &Value::Null, 200);
    assert_eq!(mock.ask("GET", "/kept", "").status, 404);
}

#[test]
fn what_cannot_be_recorded_or_saved_is_refused_by_name() {
    let mock = Administered::start_with(
        &ROUTE.replace("\"stubs\"", "\"stubs.json\""),
        &[("stubs.json", OWN)],
    );
    let refused = post(&mock, "/mappings/save", &Value::Null, 422);
    let detail = refused["errors"][0]["detail"].as_str().unwrap();
    assert!(detail.contains("--import DIR"), "{detail}");
    for (options, expected) in [
        (json!({ "targetBaseUrl": "nowhere:x" }), "/targetBaseUrl"),
        (json!({ "targetBaseURL": "http://a" }), "targetBaseURL"),
        (json!({ "transformers": ["own"] }), "transformers"),
        (
            json!({ "filters": { "allowNonProxied": true } }),
            "allowNonProxied",
        ),
        (json!({ "filters": { "urlPaht": "/" } }), "urlPaht"),
        (json!({ "outputFormat": "XML" }), "outputFormat"),
        (json!({ "persist": 1 }), "persist"),
        (json!([]), "object"),
    ] {
        let answer = mock.admin(
            "POST",
            "/__admin/recordings/start",
            &[&format!("host: {}", mock.address(1))],
            &options.to_string(),
        );
        assert_eq!(answer.status, 422, "{options}");
        assert!(
            answer.text().contains(expected),
            "{options}: {}",
            answer.text()
        );
    }
    assert_eq!(get(&mock, "/recordings/status")["status"], "NeverStarted");
}
