//! What the store defines, by ids that stay: for tools that describe everything and make it so.

use http::{Method, Response, StatusCode};
use plimsoll_monitor::config::ApiToken;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::client::Running;

const ADMIN: &str = "the-admin-token";
const WRITER: &str = "the-writing-token";

fn text(more: &str) -> String {
    let token = |name: &str, secret: &str, scopes: &str| {
        let hash = ApiToken::written(&ApiToken::hash_of(secret));
        format!("[[token]]\nname = \"{name}\"\nsha256 = \"{hash}\"\nscopes = {scopes}\n")
    };
    format!(
        "store = \"memory\"\n{}{}[[monitor]]\nname = \"of the file\"\nmanual = true\n{more}",
        token("ann", ADMIN, "[\"admin\"]"),
        token("bob", WRITER, "[\"write\"]"),
    )
}

fn running(folder: &TempDir) -> Running {
    Running::new(folder.path(), "monitor.toml", &text(""))
}

fn call(
    running: &Running,
    method: Method,
    path: &str,
    fields: &[(&str, &str)],
    body: &Value,
) -> Response<String> {
    let bearer = format!("Bearer {ADMIN}");
    let mut all = vec![("authorization", bearer.as_str())];
    all.extend(fields);
    let body = if body.is_null() {
        String::new()
    } else {
        body.to_string()
    };
    running.response(method, path, &all, &body)
}

fn value(response: &Response<String>) -> Value {
    serde_json::from_str(response.body()).unwrap()
}

#[track_caller]
fn get(running: &Running, path: &str) -> Value {
    let response = call(running, Method::GET, path, &[], &Value::Null);
    assert_eq!(response.status(), StatusCode::OK, "{}", response.body());
    value(&response)
}

#[track_caller]
fn put(running: &Running, path: &str, body: &Value) -> Response<String> {
    let response = call(running, Method::PUT, path, &[], body);
    assert!(response.status().is_success(), "{}", response.body());
    response
}

fn tag(response: &Response<String>) -> &str {
    response.headers()["etag"].to_str().unwrap()
}

const SHOP: &str = "/api/v1/definitions/monitor/shop-7f3a";

#[test]
fn what_is_put_under_an_id_is_read_back_byte_by_byte_and_keeps_its_id() {
    let folder = TempDir::new().unwrap();
    let running = running(&folder);
    let definition = json!({
        "name": "Shop", "group": "Web", "http": "http://127.0.0.1:9/", "interval": "1h", "tags": ["eu"],
    });
    let made = put(&running, SHOP, &definition);
    assert_eq!(made.status(), StatusCode::CREATED);
    assert_eq!(tag(&made), "\"1\"");
    // A hyphen is written as such or as its code; both lead here.
    let location = made.headers()["location"].to_str().unwrap();
    let read = call(&running, Method::GET, location, &[], &Value::Null);
    assert_eq!((read.body(), tag(&read)), (made.body(), "\"1\""));
    let shown = value(&made);
    assert_eq!(shown["definition"], definition);
    assert_eq!(
        (&shown["id"], &shown["key"], &shown["in_force"]),
        (&json!("shop-7f3a"), &json!("web_shop"), &json!(true))
    );
    // It is the monitor of that key.
    assert_eq!(
        get(&running, "/api/v1/monitors/web_shop")["id"],
        "shop-7f3a"
    );

    // The same again is no change: neither for its version nor in the audit log.
    let again = put(&running, SHOP, &definition);
    assert_eq!(
        (again.status(), again.body()),
        (StatusCode::OK, made.body())
    );
    let audit = get(&running, "/api/v1/audit");
    assert_eq!(audit["entries"].as_array().unwrap().len(), 1, "{audit}");

    // Another name is another key, and no other monitor.
    let renamed = json!({ "name": "Store", "http": "http://127.0.0.1:9/", "interval": "1h" });
    let changed = put(&running, SHOP, &renamed);
    assert_eq!((changed.status(), tag(&changed)), (StatusCode::OK, "\"2\""));
    let shown = value(&changed);
    assert_eq!(
        (&shown["id"], &shown["key"], &shown["definition"]),
        (&json!("shop-7f3a"), &json!("_store"), &renamed)
    );
    let read = call(&running, Method::GET, SHOP, &[], &Value::Null);
    assert_eq!(read.body(), changed.body());
}

/// A definition of each kind, and another one for the same id; monitors come first, since others name them.
///
/// - `hash`: of the password of a page.
fn definitions(hash: &str) -> Vec<(&'static str, Value, Value)> {
    let monitor = |interval: &str| {
        json!({
            "name": "Shop", "interval": interval,
            "http": { "url": "http://127.0.0.1:9/", "bearer": "HIDDEN" },
        })
    };
    let maintenance =
        |lasts: &str| json!({ "name": "patches", "cron": "30 2 1 * *", "duration": lasts });
    let page = |title: &str| {
        json!({
            "slug": "inside", "title": title, "monitors": ["Shop"], "password_bcrypt": hash,
        })
    };
    let channel = |after: &str| {
        json!({
            "name": "ops", "after": after,
            "gotify": { "url": "http://127.0.0.1:9", "token": "HIDDEN" },
        })
    };
    let rotation = |zone: &str| {
        json!({
            "name": "team", "members": ["ops"], "start": "2026-03-02T09:00", "rotate": "daily", "zone": zone,
            "token": "HIDDEN-0123456789",
        })
    };
    let escalation = |monitors: Value| json!({ "name": "shop first", "monitors": monitors, "step": [{ "notify": ["ops"] }] });
    vec![
        ("monitor", monitor("1h"), monitor("2h")),
        ("maintenance", maintenance("1h"), maintenance("2h")),
        ("page", page("Inside"), page("Inside 2")),
        ("notify", channel("1m"), channel("2m")),
        ("on_call", rotation("UTC"), rotation("Europe/Berlin")),
        (
            "escalation",
            escalation(json!(["Shop"])),
            escalation(json!(["Shop", "of the file"])),
        ),
    ]
}

#[test]
fn every_kind_is_added_imported_changed_and_removed_by_its_id() {
    let folder = TempDir::new().unwrap();
    let running = running(&folder);
    let hash = bcrypt::hash("page", 4).unwrap();
    let all = definitions(&hash);
    for (kind, definition, _) in &all {
        let path = format!("/api/v1/definitions/{kind}/tf-1");
        let made = put(&running, &path, definition);
        assert_eq!(made.status(), StatusCode::CREATED, "{kind}");
        for credential in ["HIDDEN", &hash] {
            assert!(!made.body().contains(credential), "{}", made.body());
        }
        let read = call(&running, Method::GET, &path, &[], &Value::Null);
        assert_eq!(read.body(), made.body(), "{kind}");
    }
    for (kind, definition, other) in &all {
        // What is listed can be put back as it is, masks included, and nothing changes by it.
        let list = format!("/api/v1/definitions/{kind}");
        let listed = get(&running, &list);
        let listed = listed["definitions"].as_array().unwrap();
        assert_eq!(listed.len(), 1, "{kind}");
        let one = format!("{list}/{}", listed[0]["id"].as_str().unwrap());
        let same = put(&running, &one, &listed[0]["definition"]);
        assert_eq!(value(&same), listed[0], "{kind}");
        assert_eq!(tag(&same), "\"1\"", "{kind}");
        // So does what was put first, with its credentials.
        assert_eq!(put(&running, &one, definition).body(), same.body());

        let changed = put(&running, &one, other);
        assert_eq!(tag(&changed), "\"2\"", "{kind}");
        let read = call(&running, Method::GET, &one, &[], &Value::Null);
        assert_eq!(read.body(), changed.body(), "{kind}");
        assert_eq!(value(&read)["in_force"], true, "{kind}: {}", read.body());
    }
    for (kind, ..) in all.iter().rev() {
        let path = format!("/api/v1/definitions/{kind}/tf-1");
        let gone = call(&running, Method::DELETE, &path, &[], &Value::Null);
        assert_eq!(
            gone.status(),
            StatusCode::NO_CONTENT,
            "{kind}: {}",
            gone.body()
        );
        for method in [Method::GET, Method::DELETE] {
            let missing = call(&running, method, &path, &[], &Value::Null);
            assert_eq!(missing.status(), StatusCode::NOT_FOUND, "{kind}");
        }
    }
}

#[test]
fn a_change_that_would_overwrite_another_one_is_refused() {
    let folder = TempDir::new().unwrap();
    let running = running(&folder);
    let definition = |interval: &str| json!({ "name": "Shop", "http": "http://127.0.0.1:9/", "interval": interval });
    let status = |method: Method, field: (&str, &str), interval: &str| {
        let response = call(&running, method, SHOP, &[field], &definition(interval));
        let code = serde_json::from_str::<Value>(response.body()).unwrap_or_default();
        (
            response.status().as_u16(),
            code["error"]["code"]
                .as_str()
                .unwrap_or_default()
                .to_owned(),
        )
    };
    let stale = (412, "precondition_failed".to_owned());
    let (one, two, any) = (
        ("if-match", "\"1\""),
        ("if-match", "\"2\""),
        ("if-match", "*"),
    );
    let new = ("if-none-match", "*");
    // The definition does not exist.
    for field in [one, any] {
        assert_eq!(status(Method::PUT, field, "1h"), stale);
        assert_eq!(status(Method::DELETE, field, "1h"), stale);
    }
    assert_eq!(status(Method::PUT, new, "1h").0, 201);
    assert_eq!(status(Method::PUT, new, "1h"), stale);
    assert_eq!(status(Method::PUT, one, "2h").0, 200);
    // A client that has read the first version has not seen the second one.
    assert_eq!(status(Method::PUT, one, "3h"), stale);
    assert_eq!(status(Method::DELETE, one, "3h"), stale);
    let shown = get(&running, SHOP);
    assert_eq!(shown["definition"]["interval"], "2h");
    assert_eq!(status(Method::PUT, any, "3h").0, 200);
    assert_eq!(status(Method::DELETE, two, "3h"), stale);
    assert_eq!(status(Method::DELETE, ("if-match", "\"3\""), "3h").0, 204);
    // Versions of a kind of ours only.
    assert_eq!(status(Method::PUT, ("if-match", "soon"), "1h").0, 400);
    assert_eq!(status(Method::PUT, ("if-none-match", "\"1\""), "1h").0, 400);
}

#[test]
fn what_has_no_id_of_a_client_has_that_of_its_first_key() {
    let folder = TempDir::new().unwrap();
    let running = running(&folder);
    let named = |name: &str| json!({ "name": name, "manual": true });
    let add = |name: &str| {
        let made = call(
            &running,
            Method::POST,
            "/api/v1/monitors",
            &[],
            &named(name),
        );
        assert_eq!(made.status(), StatusCode::CREATED, "{}", made.body());
        value(&made)
    };
    assert_eq!(add("one")["id"], "_one");
    // A client adopts it by that id, and renames it.
    let path = "/api/v1/definitions/monitor/_one";
    let renamed = value(&put(&running, path, &named("two")));
    assert_eq!(
        (&renamed["id"], &renamed["key"]),
        (&json!("_one"), &json!("_two"))
    );
    // Another one of the first name is another one.
    assert_eq!(add("one")["id"], "_one-2");
    let listed = get(&running, "/api/v1/definitions/monitor?limit=1");
    assert_eq!(listed["definitions"][0]["id"], "_one");
    assert_eq!(listed["has_more"], true);
    let cursor = listed["next_cursor"].as_str().unwrap();
    let rest = get(
        &running,
        &format!("/api/v1/definitions/monitor?limit=1&cursor={cursor}"),
    );
    assert_eq!(rest["definitions"][0]["id"], "_one-2");
    assert_eq!(rest["has_more"], false);
    // An id that another definition has is in use, with any key.
    let taken = call(
        &running,
        Method::PUT,
        "/api/v1/definitions/monitor/_one-2",
        &[("if-none-match", "*")],
        &named("three"),
    );
    assert_eq!(taken.status(), StatusCode::PRECONDITION_FAILED);
}

#[test]
fn a_definition_that_the_file_displaces_is_not_in_force() {
    let folder = TempDir::new().unwrap();
    let running = running(&folder);
    put(&running, SHOP, &json!({ "name": "Shop", "manual": true }));
    let path = folder.path().join("monitor.toml");
    let reload = |more: &str| {
        std::fs::write(&path, text(more)).unwrap();
        let plan = plimsoll_monitor::config::load(&path, &|_| None).unwrap();
        running
            .block_on(running.monitor.handle().reload(plan))
            .unwrap();
    };
    reload("[[monitor]]\nname = \"Shop\"\nmanual = true\n");
    let shown = get(&running, SHOP);
    assert_eq!(shown["in_force"], false, "{shown}");
    let why = shown["problems"][0].as_str().unwrap();
    assert!(why.contains("another monitor has the key"), "{why}");
    reload("");
    let shown = get(&running, SHOP);
    assert_eq!(
        (&shown["in_force"], &shown["problems"]),
        (&json!(true), &json!([]))
    );
}

#[test]
fn wrong_ids_and_definitions_change_nothing_and_are_reported_by_field() {
    let folder = TempDir::new().unwrap();
    let running = running(&folder);
    let good = json!({ "name": "Shop", "manual": true });
    for (id, definition, field) in [
        ("a%20b", good.clone(), "id"),
        ("%C3%BC", good.clone(), "id"),
        ("a", json!({ "name": "Shop", "manuel": true }), ""),
        (
            "a",
            json!({ "name": "Shop", "manual": true, "nonsense": 1 }),
            "nonsense",
        ),
        ("a", json!({ "name": "of the file", "manual": true }), ""),
        ("a", json!(["Shop"]), "body"),
    ] {
        let path = format!("/api/v1/definitions/monitor/{id}");
        let refused = call(&running, Method::PUT, &path, &[], &definition);
        assert_eq!(refused.status(), StatusCode::BAD_REQUEST, "{definition}");
        let error = value(&refused)["error"].clone();
        if !field.is_empty() {
            assert_eq!(error["field"], field, "{error}");
        }
    }
    let listed = get(&running, "/api/v1/definitions/monitor");
    assert_eq!(listed["definitions"], json!([]));

    // A credential goes to no other server, and none comes out of nothing.
    let path = "/api/v1/definitions/notify/ops";
    let channel =
        |url: &str, token: &str| json!({ "name": "ops", "gotify": { "url": url, "token": token } });
    put(&running, path, &channel("http://127.0.0.1:9", "HIDDEN"));
    for body in [
        channel("http://127.0.0.1:10", "********"),
        json!({ "name": "ops", "slack": { "url": "********" } }),
    ] {
        let refused = call(&running, Method::PUT, path, &[], &body);
        assert_eq!(refused.status(), StatusCode::BAD_REQUEST, "{body}");
    }
    // Channels need the scope `manage`.
    let bearer = format!("Bearer {WRITER}");
    for (path, expected) in [
        (path, StatusCode::FORBIDDEN),
        ("/api/v1/definitions/page", StatusCode::OK),
    ] {
        let (status, _) = running.call(Method::GET, path, &[("authorization", &bearer)], "");
        assert_eq!(status, expected, "{path}");
    }
}
