//! Secrets in the store: sealed by a key of the configuration, and never shown.

use std::path::Path;
use std::sync::Arc;

use http::{Method, StatusCode};
use plimsoll_monitor::action::open_with_keys;
use plimsoll_monitor::config::{ApiToken, load};
use plimsoll_monitor::engine::{Monitor, StartError};
use plimsoll_testkit::{Origin, eventually};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::client::Running;

const FIRST: &str = "the first key of this test, long enough";
const SECOND: &str = "the second key of this test, also long enough";
const HIDDEN: &str = "a-credential-that-nobody-may-see";

fn configuration(keys: &str) -> String {
    let hash = |token: &str| ApiToken::written(&ApiToken::hash_of(token));
    format!(
        r#"
        store = "state.db"
        {keys}
        [[token]]
        name = "writer"
        sha256 = "{}"
        scopes = ["write"]
        [[token]]
        name = "admin"
        sha256 = "{}"
        scopes = ["admin"]
        "#,
        hash("writer"),
        hash("admin")
    )
}

fn call(running: &Running, method: Method, path: &str, body: &Value) -> (StatusCode, String) {
    let fields = [("authorization", "Bearer writer")];
    running.call(method, path, &fields, &body.to_string())
}

/// Everything that the files of the store have in them.
fn bytes(folder: &Path) -> Vec<u8> {
    let files = std::fs::read_dir(folder).unwrap();
    let stores = files.filter_map(|file| {
        let path = file.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        name.starts_with("state.db")
            .then(|| std::fs::read(path).unwrap())
    });
    stores.flatten().collect()
}

fn holds(folder: &Path, text: &str) -> bool {
    let all = bytes(folder);
    all.windows(text.len())
        .any(|window| window == text.as_bytes())
}

#[test]
fn credentials_are_sealed_in_the_store_and_masked_in_responses() {
    let folder = TempDir::new().unwrap();
    let origin = Origin::hello();
    let keys = format!("[secrets]\nkey = \"{FIRST}\"");
    let running = Running::new(folder.path(), "monitor.toml", &configuration(&keys));
    let definition = json!({
        "name": "web", "interval": "100ms",
        "http": { "url": origin.url("/"), "bearer": HIDDEN, "headers": { "x-api-key": HIDDEN } },
    });
    let (status, made) = call(&running, Method::POST, "/api/v1/monitors", &definition);
    assert_eq!(status, StatusCode::CREATED, "{made}");
    assert!(!made.contains(HIDDEN), "{made}");
    // The probe has it nevertheless.
    let sends = || {
        origin
            .heads()
            .last()
            .is_some_and(|head| head.contains(HIDDEN))
    };
    eventually(sends);
    let path = "/api/v1/monitors/_web";
    let (_, shown) = call(&running, Method::GET, path, &Value::Null);
    assert!(
        !shown.contains(HIDDEN) && shown.contains("********"),
        "{shown}"
    );
    let (_, exported) = call(
        &running,
        Method::GET,
        "/api/v1/monitors/export",
        &Value::Null,
    );
    assert!(!exported.contains(HIDDEN), "{exported}");
    let fields = [("authorization", "Bearer admin")];
    let (_, exported) = running.call(Method::GET, "/api/v1/monitors/export", &fields, "");
    assert!(
        exported.contains(HIDDEN),
        "an administrator moves to another store"
    );

    // The shown definition is sent back with a change.
    let shown: Value = serde_json::from_str(&shown).unwrap();
    let mut changed = shown["definition"].clone();
    changed["interval"] = json!("200ms");
    let (status, text) = call(&running, Method::PUT, path, &changed);
    assert_eq!(status, StatusCode::OK, "{text}");
    let before = origin.requests();
    eventually(|| origin.requests() > before + 1);
    assert!(sends(), "the mask stands for what was there");
    // Not to another host, which would receive a credential that it may not see.
    let other = Origin::hello();
    changed["http"]["url"] = json!(other.url("/"));
    let (status, text) = call(&running, Method::PUT, path, &changed);
    assert_eq!(status, StatusCode::BAD_REQUEST, "{text}");
    assert!(text.contains("given again"), "{text}");
    assert_eq!(other.requests(), 0);
    drop(running);
    assert!(!holds(folder.path(), HIDDEN), "it is sealed");
}

#[test]
fn another_key_takes_over_and_a_missing_one_is_reported() {
    let folder = TempDir::new().unwrap();
    let definition = json!({ "name": "web", "interval": "1h", "http": { "url": "http://127.0.0.1:1/", "bearer": HIDDEN } });
    // From before there was a key.
    let running = Running::new(folder.path(), "monitor.toml", &configuration(""));
    let (status, text) = call(&running, Method::POST, "/api/v1/monitors", &definition);
    assert_eq!(status, StatusCode::CREATED, "{text}");
    drop(running);
    assert!(holds(folder.path(), HIDDEN));
    let key = |key: &str, old: &str| format!("[secrets]\nkey = \"{key}\"\n{old}");
    for keys in [
        key(FIRST, ""),
        key(SECOND, &format!("old_keys = [\"{FIRST}\"]")),
        key(SECOND, ""),
    ] {
        let running = Running::new(folder.path(), "monitor.toml", &configuration(&keys));
        let fields = [("authorization", "Bearer admin")];
        let (_, exported) = running.call(Method::GET, "/api/v1/monitors/export", &fields, "");
        assert!(exported.contains(HIDDEN), "{keys}: {exported}");
    }
    let path = folder.path().join("monitor.toml");
    std::fs::write(&path, configuration(&key(FIRST, ""))).unwrap();
    let plan = load(&path, &|_| None).unwrap();
    let store = open_with_keys(&plan).unwrap();
    let Err(StartError::Store(error)) = Monitor::start(plan, store, Arc::new(|_: &str| {})) else {
        panic!("it needs the second key");
    };
    assert!(error.to_string().contains("old_keys"), "{error}");
    std::fs::write(&path, configuration("[secrets]\nkey = \"short\"")).unwrap();
    let error = format!("{:?}", load(&path, &|_| None).unwrap_err());
    assert!(error.contains("32 characters or more"), "{error}");
}
