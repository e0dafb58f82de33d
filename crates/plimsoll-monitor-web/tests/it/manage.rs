//! Monitors that are kept in the store, tokens, the audit log, and the description of the API.

use http::{Method, StatusCode};
use plimsoll_monitor::config::ApiToken;
use plimsoll_monitor::engine::Monitor;
use plimsoll_testkit::{Origin, eventually, refused_address};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::client::Running;

const ADMIN: &str = "the-admin-token";

/// A monitor whose file has one monitor and one token that may do everything.
fn managed(folder: &TempDir, more: &str) -> Running {
    let text = format!(
        r#"
        store = "memory"
        [[token]]
        name = "ann"
        sha256 = "{}"
        scopes = ["admin"]
        [[monitor]]
        name = "of the file"
        manual = true
        {more}
        "#,
        ApiToken::written(&ApiToken::hash_of(ADMIN))
    );
    Running::new(folder.path(), "monitor.toml", &text)
}

fn call(
    running: &Running,
    method: Method,
    path: &str,
    fields: &[(&str, &str)],
    body: &Value,
) -> (StatusCode, Value, Option<String>) {
    let bearer = format!("Bearer {ADMIN}");
    let mut all = vec![("authorization", bearer.as_str())];
    all.extend(fields);
    let body = if body.is_null() {
        String::new()
    } else {
        body.to_string()
    };
    let response = running.response(method, path, &all, &body);
    let tag = response.headers().get("etag");
    let tag = tag.map(|tag| tag.to_str().unwrap().to_owned());
    let value = serde_json::from_str(response.body()).unwrap_or_default();
    (response.status(), value, tag)
}

fn get(running: &Running, path: &str) -> Value {
    let (status, value, _) = call(running, Method::GET, path, &[], &Value::Null);
    assert_eq!(status, StatusCode::OK, "{path}: {value}");
    value
}

fn wait_for(running: &Running, key: &str, health: &str) {
    eventually(|| get(running, &format!("/api/v1/monitors/{key}"))["health"] == health);
}

#[test]
fn a_monitor_is_added_checked_changed_and_removed() {
    let folder = TempDir::new().unwrap();
    let running = managed(&folder, "");
    let origin = Origin::hello();
    let definition = json!({
        "name": "Web", "group": "Core", "http": origin.url("/"), "interval": "100ms",
        "tags": ["eu", "public"], "expect": ["status == 200"],
    });
    let path = "/api/v1/monitors";
    let (status, made, tag) = call(&running, Method::POST, path, &[], &definition);
    assert_eq!(status, StatusCode::CREATED, "{made}");
    assert_eq!(made["key"], "core_web");
    assert_eq!(made["source"], "store");
    assert_eq!(made["definition"], definition);
    assert_eq!(tag.as_deref(), Some("\"1\""));
    wait_for(&running, "core_web", "up");
    let eu = get(&running, "/api/v1/monitors?tag=eu");
    assert_eq!(eu["monitors"].as_array().unwrap().len(), 1);

    // A change of the target is in force, and the history stays.
    let one = "/api/v1/monitors/core_web";
    let changes =
        json!({ "http": format!("http://{}/", refused_address()), "confirm": 1, "tags": null });
    let (status, edited, tag) = call(
        &running,
        Method::PATCH,
        one,
        &[("if-match", "\"1\"")],
        &changes,
    );
    assert_eq!(status, StatusCode::OK, "{edited}");
    assert_eq!(tag.as_deref(), Some("\"2\""));
    assert!(edited["definition"].get("tags").is_none());
    wait_for(&running, "core_web", "down");
    let results = || get(&running, &format!("{one}/results?limit=500"))["results"].clone();
    eventually(|| {
        let results = results();
        let statuses: Vec<_> = results
            .as_array()
            .unwrap()
            .iter()
            .map(|it| it["status"].clone())
            .collect();
        statuses.contains(&json!("up")) && statuses.contains(&json!("down"))
    });

    // Another name is another key, with the same history.
    let mut renamed = definition.clone();
    renamed["name"] = "Site".into();
    let (status, shown, _) = call(&running, Method::PUT, one, &[], &renamed);
    assert_eq!(
        (status, &shown["key"]),
        (StatusCode::OK, &json!("core_site"))
    );
    let (status, _, _) = call(&running, Method::GET, one, &[], &Value::Null);
    assert_eq!(status, StatusCode::NOT_FOUND);
    let moved = get(&running, "/api/v1/monitors/core_site/results?limit=500");
    assert!(
        moved["results"]
            .as_array()
            .unwrap()
            .iter()
            .any(|it| it["status"] == "down")
    );

    let (status, _, _) = call(
        &running,
        Method::DELETE,
        "/api/v1/monitors/core_site",
        &[],
        &Value::Null,
    );
    assert_eq!(status, StatusCode::NO_CONTENT);
    let (status, _, _) = call(
        &running,
        Method::GET,
        "/api/v1/monitors/core_site",
        &[],
        &Value::Null,
    );
    assert_eq!(status, StatusCode::NOT_FOUND);
    let audit = get(&running, "/api/v1/audit?limit=3");
    let actions: Vec<_> = audit["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["action"].clone())
        .collect();
    assert_eq!(
        actions,
        ["monitor.delete", "monitor.update", "monitor.update"]
    );
    assert_eq!(audit["entries"][0]["actor"], "ann");
}

#[test]
fn what_is_wrong_with_a_definition_is_reported_by_field() {
    let folder = TempDir::new().unwrap();
    let running = managed(&folder, "");
    for (definition, field, message) in [
        (
            json!({ "name": "a", "htpp": "http://a/" }),
            "",
            "there is no target",
        ),
        (
            json!({ "name": "a", "http": "http://a/", "intervall": "1s" }),
            "intervall",
            "did you mean `interval`?",
        ),
        (
            json!({ "name": "a", "http": "http://a/", "interval": "soon" }),
            "interval",
            "",
        ),
        (
            json!({ "name": "a", "http": { "url": "http://a/", "ca": "/etc/passwd" } }),
            "http.ca",
            "names a file",
        ),
        (
            json!({ "name": "of the file", "manual": true }),
            "",
            "another monitor has the key",
        ),
        (
            json!({ "name": "a", "manual": true, "depends_on": ["of the fil"] }),
            "depends_on",
            "did you mean `of the file`?",
        ),
        (json!({ "name": "a", "http": "ftp://a/" }), "http", ""),
        (
            json!({ "name": "a", "manual": true, "tags": ["a b"] }),
            "tags",
            "is not a tag",
        ),
    ] {
        let (status, answer, _) =
            call(&running, Method::POST, "/api/v1/monitors", &[], &definition);
        assert_eq!(status, StatusCode::BAD_REQUEST, "{definition}: {answer}");
        let text = answer.to_string();
        assert!(text.contains(message), "{definition}: {text}");
        if !field.is_empty() {
            assert!(text.contains(field), "{definition}: {text}");
        }
    }
    let (_, answer, _) = call(
        &running,
        Method::POST,
        "/api/v1/monitors",
        &[],
        &json!({ "name": "a", "http": "http://a/", "confirm": 0, "interval": "x" }),
    );
    assert_eq!(
        answer["error"]["problems"].as_array().unwrap().len(),
        2,
        "{answer}"
    );
}

#[test]
fn monitors_of_the_file_are_read_only() {
    let folder = TempDir::new().unwrap();
    let running = managed(&folder, "");
    let one = "/api/v1/monitors/_of-the-file";
    assert_eq!(get(&running, one)["source"], "file");
    let definition = json!({ "name": "of the file", "manual": true });
    for (method, body) in [
        (Method::PUT, definition.clone()),
        (Method::PATCH, json!({ "confirm": 3 })),
        (Method::DELETE, Value::Null),
    ] {
        let (status, answer, _) = call(&running, method, one, &[], &body);
        assert_eq!(status, StatusCode::CONFLICT, "{answer}");
        assert_eq!(answer["error"]["code"], "read_only");
    }
}

#[test]
fn a_change_names_the_version_and_a_request_may_be_repeated() {
    let folder = TempDir::new().unwrap();
    let running = managed(&folder, "");
    let definition = json!({ "name": "a", "manual": true });
    let key = [("idempotency-key", "first")];
    for _ in 0..2 {
        let (status, made, _) = call(
            &running,
            Method::POST,
            "/api/v1/monitors",
            &key,
            &definition,
        );
        assert_eq!(
            (status, &made["version"]),
            (StatusCode::CREATED, &json!(1)),
            "{made}"
        );
    }
    let other = json!({ "name": "b", "manual": true });
    let (status, _, _) = call(&running, Method::POST, "/api/v1/monitors", &key, &other);
    assert_eq!(
        status,
        StatusCode::CONFLICT,
        "the key was used for another request"
    );
    let (status, _, _) = call(&running, Method::POST, "/api/v1/monitors", &[], &definition);
    assert_eq!(
        status,
        StatusCode::BAD_REQUEST,
        "the key of the monitor is in use"
    );
    for method in [Method::PUT, Method::DELETE] {
        let stale = [("if-match", "\"7\"")];
        let (status, answer, _) =
            call(&running, method, "/api/v1/monitors/_a", &stale, &definition);
        assert_eq!(status, StatusCode::PRECONDITION_FAILED, "{answer}");
    }
}

#[test]
fn what_another_monitor_depends_on_stays() {
    let folder = TempDir::new().unwrap();
    let running = managed(&folder, "");
    let bulk = json!({ "put": [
        { "name": "child", "manual": true, "depends_on": ["parent"] },
        { "name": "parent", "manual": true },
        { "name": "both", "all_of": ["child", "parent"] },
    ] });
    let (status, answer, _) = call(&running, Method::POST, "/api/v1/monitors/bulk", &[], &bulk);
    assert_eq!(status, StatusCode::OK, "{answer}");
    let (status, answer, _) = call(
        &running,
        Method::DELETE,
        "/api/v1/monitors/_parent",
        &[],
        &Value::Null,
    );
    assert_eq!(status, StatusCode::CONFLICT, "{answer}");
    assert!(
        answer["error"]["message"]
            .as_str()
            .unwrap()
            .contains("depends on `_parent`")
    );
    let circle = json!({ "name": "parent", "manual": true, "depends_on": ["both"] });
    let (status, answer, _) = call(
        &running,
        Method::PUT,
        "/api/v1/monitors/_parent",
        &[],
        &circle,
    );
    assert_eq!(status, StatusCode::BAD_REQUEST, "{answer}");
    let all = json!({ "delete": ["_child", "_parent", "_both"] });
    let (status, answer, _) = call(&running, Method::POST, "/api/v1/monitors/bulk", &[], &all);
    assert_eq!(
        (status, &answer["deleted"]),
        (StatusCode::OK, &json!(3)),
        "{answer}"
    );
}

#[test]
fn ten_thousand_are_added_together_or_not_at_all() {
    let folder = TempDir::new().unwrap();
    let running = managed(&folder, "");
    let mut all: Vec<_> = (0..10_000)
        .map(|number| json!({ "name": format!("m{number}"), "manual": true, "tags": ["bulk"] }))
        .collect();
    all[9_999]["nonsense"] = 1.into();
    let (status, answer, _) = call(
        &running,
        Method::POST,
        "/api/v1/monitors/bulk",
        &[],
        &json!({ "put": all }),
    );
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert!(
        answer["error"]["message"]
            .as_str()
            .unwrap()
            .contains("unknown key"),
        "{answer}"
    );
    assert_eq!(
        get(&running, "/api/v1/monitors?limit=500")["monitors"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    all[9_999].as_object_mut().unwrap().remove("nonsense");
    let key = [("idempotency-key", "bulk")];
    for _ in 0..2 {
        let (status, answer, _) = call(
            &running,
            Method::POST,
            "/api/v1/monitors/bulk",
            &key,
            &json!({ "put": all }),
        );
        assert_eq!(
            (status, &answer["created"]),
            (StatusCode::OK, &json!(10_000)),
            "{answer}"
        );
    }
    all.push(json!({ "name": "one more", "manual": true }));
    let (status, _, _) = call(
        &running,
        Method::POST,
        "/api/v1/monitors/bulk",
        &[],
        &json!({ "put": all }),
    );
    assert_eq!(status, StatusCode::BAD_REQUEST, "at most 10,000");
    let page = get(&running, "/api/v1/monitors?limit=500&tag=bulk");
    assert_eq!(page["monitors"].as_array().unwrap().len(), 500);
}

#[test]
fn monitors_of_the_store_survive_a_restart_and_a_reload() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("monitor.toml");
    let text = |more: &str| {
        format!(
            "store = \"m.db\"\n[[token]]\nname = \"ann\"\nsha256 = \"{}\"\nscopes = [\"admin\"]\n{more}",
            ApiToken::written(&ApiToken::hash_of(ADMIN))
        )
    };
    {
        let running = Running::new(folder.path(), "monitor.toml", &text(""));
        let definition = json!({ "name": "kept", "manual": true });
        let (status, answer, _) =
            call(&running, Method::POST, "/api/v1/monitors", &[], &definition);
        assert_eq!(status, StatusCode::CREATED, "{answer}");
        let (status, _, _) = call(
            &running,
            Method::POST,
            "/api/v1/monitors/_kept/pause",
            &[],
            &Value::Null,
        );
        assert_eq!(status, StatusCode::OK);
    }
    let running = Running::new(folder.path(), "monitor.toml", &text(""));
    let kept = get(&running, "/api/v1/monitors/_kept");
    assert_eq!(
        (&kept["source"], &kept["paused"]),
        (&json!("store"), &json!(true))
    );

    // The file takes the key over: the definition is reported and left out.
    std::fs::write(&path, text("[[monitor]]\nname = \"kept\"\nmanual = true\n")).unwrap();
    let plan = plimsoll_monitor::config::load(&path, &|_| None).unwrap();
    reload(&running.monitor, plan);
    assert_eq!(get(&running, "/api/v1/monitors/_kept")["source"], "file");
    let notices = running.notices.lock().unwrap().join("\n");
    assert!(
        notices.contains("the monitor `_kept` of the store is left out"),
        "{notices}"
    );
}

fn reload(monitor: &Monitor, plan: plimsoll_monitor::config::Plan) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    runtime.block_on(monitor.handle().reload(plan)).unwrap();
}

#[test]
fn an_export_is_a_file_that_gives_the_same_monitors() {
    let folder = TempDir::new().unwrap();
    let running = managed(&folder, "");
    let definitions = json!({ "put": [
        { "name": "a \"quoted\"", "http": { "url": "http://127.0.0.1:9/", "headers": { "x-y": "z" } }, "tags": ["t"] },
        { "name": "b", "tcp": "127.0.0.1:9", "interval": "1h" },
    ] });
    let (status, answer, _) = call(
        &running,
        Method::POST,
        "/api/v1/monitors/bulk",
        &[],
        &definitions,
    );
    assert_eq!(status, StatusCode::OK, "{answer}");
    let bearer = format!("Bearer {ADMIN}");
    let (status, text) = running.call(
        Method::GET,
        "/api/v1/monitors/export",
        &[("authorization", &bearer)],
        "",
    );
    assert_eq!(status, StatusCode::OK);
    let other = folder.path().join("exported.toml");
    std::fs::write(&other, &text).unwrap();
    let plan = plimsoll_monitor::config::load(&other, &|_| None).unwrap();
    let keys: Vec<_> = plan
        .monitors
        .iter()
        .map(|monitor| monitor.key.as_str())
        .collect();
    assert_eq!(keys, ["_a-\"quoted\"", "_b"]);
}

#[test]
fn tokens_have_scopes_end_and_are_revoked() {
    let folder = TempDir::new().unwrap();
    let running = managed(&folder, "");
    let token_with = |scope: &str, more: Value| {
        let mut body = json!({ "name": "ci", "scope": scope });
        for (key, value) in more.as_object().unwrap() {
            body[key] = value.clone();
        }
        call(&running, Method::POST, "/api/v1/tokens", &[], &body)
    };
    let status = |token: &str, method: Method, path: &str| {
        let bearer = format!("Bearer {token}");
        running
            .call(method, path, &[("authorization", &bearer)], "")
            .0
            .as_u16()
    };
    let (made, reader, _) = token_with("read", json!({}));
    assert_eq!(made, StatusCode::CREATED, "{reader}");
    let token = reader["token"].as_str().unwrap();
    assert_eq!(status(token, Method::GET, "/api/v1/monitors"), 200);
    assert_eq!(
        status(token, Method::POST, "/api/v1/monitors/_of-the-file/pause"),
        403
    );
    assert_eq!(status(token, Method::GET, "/api/v1/tokens"), 403);
    let (_, writer, _) = token_with("write", json!({}));
    let writer = writer["token"].as_str().unwrap();
    assert_eq!(
        status(writer, Method::POST, "/api/v1/monitors/_of-the-file/pause"),
        200
    );
    assert_eq!(status(writer, Method::GET, "/api/v1/audit"), 403);
    let path = format!("/api/v1/tokens/{}", reader["id"]);
    let (gone, _, _) = call(&running, Method::DELETE, &path, &[], &Value::Null);
    assert_eq!(gone, StatusCode::NO_CONTENT);
    assert_eq!(status(token, Method::GET, "/api/v1/monitors"), 401);
    let (past, _, _) = token_with("read", json!({ "expires_at": "2001-01-01T00:00:00Z" }));
    assert_eq!(past, StatusCode::BAD_REQUEST);
    let listed = get(&running, "/api/v1/tokens").to_string();
    assert!(
        !listed.contains(token) && !listed.contains(writer),
        "tokens are shown once"
    );
}

#[test]
fn definitions_are_shown_to_those_that_may_write() {
    let folder = TempDir::new().unwrap();
    let running = managed(&folder, "");
    let definition =
        json!({ "name": "a", "http": { "url": "http://127.0.0.1:9/", "bearer": "SECRET" } });
    let (status, _, _) = call(&running, Method::POST, "/api/v1/monitors", &[], &definition);
    assert_eq!(status, StatusCode::CREATED);
    let (_, reader, _) = call(
        &running,
        Method::POST,
        "/api/v1/tokens",
        &[],
        &json!({ "name": "r" }),
    );
    let bearer = format!("Bearer {}", reader["token"].as_str().unwrap());
    let (_, text) = running.call(
        Method::GET,
        "/api/v1/monitors/_a",
        &[("authorization", &bearer)],
        "",
    );
    assert!(
        text.contains("\"key\":\"_a\"") && !text.contains("SECRET"),
        "{text}"
    );
}

#[test]
fn every_route_is_described() {
    let folder = TempDir::new().unwrap();
    let running = managed(&folder, "tags = [\"of-the-file\"]");
    let (status, text) = running.call(Method::GET, "/api/v1/openapi.json", &[], "");
    assert_eq!(status, StatusCode::OK);
    let document: Value = serde_json::from_str(&text).unwrap();
    let paths = document["paths"].as_object().unwrap();
    let key = "_of-the-file";
    for (path, item) in paths {
        let real = path.replace("{key}", key).replace("{id}", "1");
        let real = real.replace("{tag}", "of-the-file");
        for method in ["get", "post", "put", "patch", "delete"] {
            let method_name = Method::from_bytes(method.to_ascii_uppercase().as_bytes()).unwrap();
            // Without a token, so that nothing is changed.
            let (status, _) = running.call(method_name, &real, &[], "");
            let is_there =
                status != StatusCode::METHOD_NOT_ALLOWED && status != StatusCode::NOT_FOUND;
            assert_eq!(
                item.get(method).is_some(),
                is_there,
                "{method} {path}: {status}"
            );
            if item
                .get(method)
                .is_some_and(|it| it.get("security").is_some())
            {
                assert_eq!(
                    status,
                    StatusCode::UNAUTHORIZED,
                    "{method} {path} needs a token"
                );
            }
        }
    }
    // Every path of the router is in the document; those of Gatus are not ours.
    let source = include_str!("../../src/api.rs");
    let literal = source.split('"').skip(1).step_by(2);
    let plain = literal.clone().filter(|it| it.starts_with("/api/v1/"));
    let plain = plain.filter(|it| {
        !it.contains("{{")
            && !matches!(
                *it,
                "/api/v1/endpoints" | "/api/v1/config" | "/api/v1/suites/statuses"
            )
    });
    let below = source.split("&monitor(\"").skip(1).map(|rest| {
        format!(
            "/api/v1/monitors/{{key}}{}",
            rest.split('"').next().unwrap()
        )
    });
    for path in plain.map(str::to_owned).chain(below) {
        assert!(paths.contains_key(&path), "{path} is not in the document");
    }
}
