//! Heartbeats by the management API of Healthchecks.

use http::{Method, StatusCode};
use plimsoll_monitor::config::ApiToken;
use plimsoll_testkit::eventually;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::client::Running;

const WRITER: &str = "the-read-write-key-of-a-project.";
const READER: &str = "the-read-only-key-of-a-project..";
const PING_KEY: &str = "fedcba9876543210";
const ALL: &str = "/api/v3/checks/";

fn running(folder: &TempDir) -> Running {
    let token = |name: &str, secret: &str| {
        let hash = ApiToken::written(&ApiToken::hash_of(secret));
        format!("[[token]]\nname = \"{name}\"\nsha256 = \"{hash}\"\nscopes = [\"{name}\"]\n")
    };
    let text = format!(
        r#"
        store = "memory"
        ping_key = "{PING_KEY}"
        {}
        {}
        [[monitor]]
        name = "of the file"
        tags = ["nightly"]
        heartbeat = {{ cron = "30 2 * * *", zone = "Europe/Berlin", grace = "1h", token = "5f2c1c1e-8d5d-4b54-9a39-0d8f6c6b3c11" }}
        [[monitor]]
        name = "web"
        manual = true
        [[notify]]
        name = "ops"
        webhook = {{ url = "http://127.0.0.1:9/" }}
        [[notify]]
        name = "web only"
        monitors = ["web"]
        webhook = {{ url = "http://127.0.0.1:9/" }}
        "#,
        token("write", WRITER),
        token("read", READER),
    );
    Running::new(folder.path(), "monitor.toml", &text)
}

fn call(running: &Running, key: &str, method: Method, path: &str, body: &Value) -> (u16, Value) {
    let body = if body.is_null() {
        String::new()
    } else {
        body.to_string()
    };
    let (status, text) = running.call(method, path, &[("x-api-key", key)], &body);
    let value = serde_json::from_str(&text).unwrap_or(Value::Null);
    (status.as_u16(), value)
}

fn post(running: &Running, path: &str, body: &Value) -> (u16, Value) {
    call(running, WRITER, Method::POST, path, body)
}

fn get(running: &Running, path: &str) -> Value {
    let (status, value) = call(running, WRITER, Method::GET, path, &Value::Null);
    assert_eq!(status, 200, "{path}: {value}");
    value
}

/// The path of one of the addresses of a check.
fn path(check: &Value, name: &str) -> String {
    let url = check[name].as_str().unwrap();
    url.strip_prefix("http://localhost").unwrap().to_owned()
}

#[test]
fn a_check_is_made_pinged_paused_resumed_and_deleted() {
    let folder = TempDir::new().unwrap();
    let running = running(&folder);
    let spec = json!({
        "name": "Backups", "slug": "backups", "tags": "prod www", "desc": "every night", "timeout": 3600, "grace": 60,
    });
    let (status, made) = post(&running, ALL, &spec);
    assert_eq!(status, 201, "{made}");
    let one = path(&made, "update_url");
    for (name, expected) in [
        ("name", json!("Backups")),
        ("slug", json!("backups")),
        ("tags", json!("prod www")),
        ("desc", json!("every night")),
        ("timeout", json!(3600)),
        ("grace", json!(60)),
        ("n_pings", json!(0)),
        ("status", json!("new")),
        ("started", json!(false)),
        ("last_ping", Value::Null),
        ("next_ping", Value::Null),
        ("manual_resume", json!(false)),
        ("methods", json!("")),
        ("success_kw", json!("")),
        ("filter_subject", json!(false)),
    ] {
        assert_eq!(made[name], expected, "{name}");
    }
    assert_eq!(
        one,
        format!("/api/v3/checks/{}", made["uuid"].as_str().unwrap())
    );
    assert_eq!(path(&made, "pause_url"), format!("{one}/pause"));
    assert_eq!(path(&made, "resume_url"), format!("{one}/resume"));
    // It is a monitor with a heartbeat, whose id is the UUID.
    let monitor = running.json_as(
        ("authorization", &format!("Bearer {WRITER}")),
        "/api/v1/monitors/_backups",
    );
    assert_eq!(
        (&monitor["kind"], &monitor["id"]),
        (&json!("heartbeat"), &made["uuid"])
    );

    let ping = |rest: &str| {
        let (status, text) = running.get(&format!("{}{rest}", path(&made, "ping_url")));
        assert_eq!((status, text.as_str()), (StatusCode::OK, "OK"), "{rest}");
    };
    let shown = || get(&running, &one);
    ping("/start");
    assert_eq!(shown()["started"], true);
    ping("");
    eventually(|| shown()["status"] == "up");
    let up = shown();
    assert_eq!((&up["started"], &up["n_pings"]), (&json!(false), &json!(1)));
    let hour = |text: &Value| text.as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
    assert!(
        up["last_ping"].as_str().unwrap().ends_with("+00:00"),
        "{up}"
    );
    assert_eq!(
        hour(&up["next_ping"]).as_second() - hour(&up["last_ping"]).as_second(),
        3600
    );
    ping("/7");
    eventually(|| shown()["status"] == "down");
    assert_eq!(shown()["next_ping"], Value::Null);
    let pings = format!("{one}/pings/");
    eventually(|| get(&running, &pings)["pings"].as_array().unwrap().len() == 2);
    let listed = get(&running, &pings);
    let [fail, success] = [&listed["pings"][0], &listed["pings"][1]];
    assert_eq!((&fail["type"], &fail["n"]), (&json!("fail"), &json!(2)));
    assert_eq!(
        (&success["type"], &success["n"]),
        (&json!("success"), &json!(1))
    );
    assert!(
        success["duration"].is_f64(),
        "its start was reported: {success}"
    );
    assert!(fail.get("duration").is_none(), "{fail}");
    let flips = format!("{one}/flips/");
    let ups = |path: &str| -> Vec<Value> {
        let flips = get(&running, path);
        let flips = flips["flips"].as_array().unwrap();
        flips.iter().map(|flip| flip["up"].clone()).collect()
    };
    eventually(|| ups(&flips) == [json!(0), json!(1)]);
    assert_eq!(ups(&format!("{flips}?seconds=3600")), [json!(0), json!(1)]);
    assert_eq!(ups(&format!("{flips}?end=1592217980")), Vec::<Value>::new());
    let wrong = call(
        &running,
        WRITER,
        Method::GET,
        &format!("{flips}?start=soon"),
        &Value::Null,
    );
    assert_eq!(wrong.0, 400);

    // A ping resumes it, unless that is left to people.
    let (status, paused) = post(&running, &format!("{one}/pause"), &Value::Null);
    assert_eq!((status, &paused["status"]), (200, &json!("paused")));
    ping("/log");
    assert_eq!(shown()["status"], "paused");
    ping("");
    eventually(|| shown()["status"] == "up");
    let manual = json!({ "manual_resume": true });
    assert_eq!(post(&running, &one, &manual).1["manual_resume"], true);
    post(&running, &format!("{one}/pause"), &Value::Null);
    ping("");
    assert_eq!(shown()["status"], "paused");
    let resume = format!("{one}/resume");
    let (status, resumed) = post(&running, &resume, &Value::Null);
    assert_eq!(status, 200, "{resumed}");
    assert_ne!(resumed["status"], "paused");
    let (status, refused) = post(&running, &resume, &Value::Null);
    assert_eq!(
        (status, &refused["error"]),
        (409, &json!("check is not paused"))
    );

    let (status, deleted) = call(&running, WRITER, Method::DELETE, &one, &Value::Null);
    assert_eq!((status, &deleted["name"]), (200, &json!("Backups")));
    let (status, _) = call(&running, WRITER, Method::GET, &one, &Value::Null);
    assert_eq!(status, 404);
    assert_eq!(
        running.get(&path(&made, "ping_url")).0,
        StatusCode::NOT_FOUND
    );
}

#[test]
fn a_check_is_changed_field_by_field_and_found_again_by_what_is_unique() {
    let folder = TempDir::new().unwrap();
    let running = running(&folder);
    // Without anything, it has a name and the defaults of Healthchecks.
    let (status, bare) = post(&running, ALL, &json!({}));
    assert_eq!(status, 201, "{bare}");
    assert_eq!(
        (&bare["timeout"], &bare["grace"]),
        (&json!(86_400), &json!(3_600))
    );
    assert_eq!(bare["name"], bare["uuid"]);

    let spec = json!({ "api_key": WRITER, "name": "Dump", "tags": "db", "timeout": 600, "unique": ["name"] });
    let with_key_in_body = |spec: &Value| {
        let (status, text) = running.call(Method::POST, ALL, &[], &spec.to_string());
        let value: Value = serde_json::from_str(&text).unwrap();
        (status.as_u16(), value)
    };
    let (status, made) = with_key_in_body(&spec);
    assert_eq!(status, 201, "{made}");
    let mut cron = spec.clone();
    cron["schedule"] = "15 5 * * *".into();
    cron["tz"] = "Europe/Riga".into();
    let (status, changed) = with_key_in_body(&cron);
    assert_eq!((status, &changed["uuid"]), (200, &made["uuid"]));
    assert_eq!(
        (&changed["schedule"], &changed["tz"], &changed["tags"]),
        (&json!("15 5 * * *"), &json!("Europe/Riga"), &json!("db"))
    );
    assert!(changed.get("timeout").is_none(), "{changed}");
    let one = path(&made, "update_url");
    let (status, renamed) = post(&running, &one, &json!({ "name": "Dump 2" }));
    assert_eq!((status, &renamed["name"]), (200, &json!("Dump 2")));
    assert_eq!(
        (&renamed["uuid"], &renamed["schedule"]),
        (&made["uuid"], &changed["schedule"])
    );
    // An empty body changes nothing, and neither does the same again.
    assert_eq!(post(&running, &one, &Value::Null).1, renamed);
    assert_eq!(
        post(&running, &one, &json!({ "name": "Dump 2" })).1,
        renamed
    );

    let names = |query: &str| -> Vec<Value> {
        let listed = get(&running, &format!("{ALL}{query}"));
        let listed = listed["checks"].as_array().unwrap();
        listed.iter().map(|check| check["name"].clone()).collect()
    };
    assert_eq!(names("").len(), 3, "those of the file too");
    assert_eq!(names("?tag=db"), ["Dump 2"]);
    assert_eq!(names("?tag=db&tag=nightly"), Vec::<Value>::new());
    assert_eq!(names("?slug=of-the-file"), ["of the file"]);
}

#[test]
fn a_read_only_key_sees_no_address_and_changes_nothing() {
    let folder = TempDir::new().unwrap();
    let running = running(&folder);
    let (status, listed) = call(&running, READER, Method::GET, ALL, &Value::Null);
    assert_eq!(status, 200);
    let check = &listed["checks"][0];
    for hidden in [
        "uuid",
        "ping_url",
        "update_url",
        "pause_url",
        "resume_url",
        "channels",
    ] {
        assert!(check.get(hidden).is_none(), "{hidden}: {check}");
    }
    assert!(!check.to_string().contains("5f2c1c1e"), "{check}");
    assert_eq!(
        (&check["schedule"], &check["tz"]),
        (&json!("30 2 * * *"), &json!("Europe/Berlin"))
    );
    let unique = check["unique_key"].as_str().unwrap();
    assert_eq!(unique.len(), 40);
    let one = format!("{ALL}{unique}");
    assert_eq!(
        call(&running, READER, Method::GET, &one, &Value::Null),
        (200, check.clone())
    );
    let flips = format!("{one}/flips/");
    assert_eq!(
        call(&running, READER, Method::GET, &flips, &Value::Null),
        (200, json!({ "flips": [] }))
    );
    for (method, path) in [
        (Method::POST, ALL),
        (Method::POST, one.as_str()),
        (Method::DELETE, one.as_str()),
        (Method::GET, "/api/v3/channels/"),
        (Method::GET, &format!("{one}/pings/")),
    ] {
        let refused = call(&running, READER, method, path, &Value::Null);
        assert_eq!(
            refused,
            (401, json!({ "error": "wrong api key" })),
            "{path}"
        );
    }
    let refused = call(&running, "unknown", Method::GET, ALL, &Value::Null);
    assert_eq!(refused, (401, json!({ "error": "wrong api key" })));
    let (status, text) = running.get(ALL);
    assert_eq!(status, StatusCode::UNAUTHORIZED);
    assert_eq!(text, "{\"error\":\"missing api key\"}");
}

#[test]
fn what_cannot_be_honoured_is_refused_by_name_and_changes_nothing() {
    let folder = TempDir::new().unwrap();
    let running = running(&folder);
    let before = get(&running, ALL);
    for (spec, part) in [
        (
            json!({ "name": "a", "methods": "POST" }),
            "methods is not supported",
        ),
        (
            json!({ "name": "a", "start_kw": "BEGIN" }),
            "start_kw is not supported",
        ),
        (
            json!({ "name": "a", "filter_body": true }),
            "filter_body is not supported",
        ),
        (json!({ "name": "a", "timeout": 1 }), "timeout is too small"),
        (
            json!({ "name": "a", "channels": "web only" }),
            "channels cannot be changed here",
        ),
        (
            json!({ "name": "a", "channels": "nobody" }),
            "invalid channel identifier: nobody",
        ),
        (
            json!({ "name": "of the file" }),
            "another monitor has the key",
        ),
        (json!(["a"]), "value is not an object"),
    ] {
        let (status, refused) = post(&running, ALL, &spec);
        assert_eq!(status, 400, "{spec}: {refused}");
        let message = refused["error"].as_str().unwrap();
        assert!(message.contains(part), "{spec}: {message}");
    }
    let (status, text) = running.call(Method::POST, ALL, &[("x-api-key", WRITER)], "{");
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert_eq!(text, "{\"error\":\"could not parse request body\"}");
    assert_eq!(get(&running, ALL), before);

    // Checks of the file are changed there; they may be paused.
    let of_file = &before["checks"][0];
    let one = path(of_file, "update_url");
    for (method, body) in [
        (Method::POST, json!({ "grace": 60 })),
        (Method::DELETE, Value::Null),
    ] {
        let (status, refused) = call(&running, WRITER, method, &one, &body);
        assert_eq!(status, 409, "{refused}");
        let message = refused["error"].as_str().unwrap();
        assert!(message.contains("configuration file"), "{message}");
    }
    let (status, paused) = post(&running, &path(of_file, "pause_url"), &Value::Null);
    assert_eq!((status, &paused["status"]), (200, &json!("paused")));
    assert_eq!(paused["manual_resume"], true, "as the file has it");

    // The channels that report on a check anyway may be named.
    let channels = get(&running, "/api/v3/channels/");
    let ops = &channels["channels"][0];
    assert_eq!(
        (&ops["name"], &ops["kind"]),
        (&json!("ops"), &json!("webhook"))
    );
    let id = ops["id"].as_str().unwrap();
    assert_eq!(of_file["channels"], id);
    for given in ["ops", id] {
        let spec = json!({ "name": format!("by {given}"), "channels": given });
        let (status, made) = post(&running, ALL, &spec);
        assert_eq!((status, &made["channels"]), (201, &json!(id)), "{made}");
    }
}

#[test]
fn a_ping_makes_a_check_of_its_slug_if_it_says_so() {
    let folder = TempDir::new().unwrap();
    let running = running(&folder);
    let ping = |path: &str| {
        let (status, text) = running.get(&format!("/ping/{path}"));
        (status.as_u16(), text)
    };
    let missing = (404, "not found".to_owned());
    assert_eq!(ping(&format!("{PING_KEY}/rotate-logs")), missing);
    assert_eq!(ping(&format!("{PING_KEY}/rotate-logs?create=0")), missing);
    assert_eq!(ping("fedcba9876543211/rotate-logs?create=1"), missing);
    let created = (201, "Created".to_owned());
    assert_eq!(
        ping(&format!("{PING_KEY}/rotate-logs/start?create=1")),
        created
    );
    let done = (200, "OK".to_owned());
    assert_eq!(ping(&format!("{PING_KEY}/rotate-logs?create=1")), done);
    assert_eq!(ping(&format!("{PING_KEY}/rotate-logs")), done);
    let listed = get(&running, &format!("{ALL}?slug=rotate-logs"));
    let checks = listed["checks"].as_array().unwrap();
    assert_eq!(checks.len(), 1, "{listed}");
    assert_eq!(
        (
            &checks[0]["name"],
            &checks[0]["n_pings"],
            &checks[0]["timeout"]
        ),
        (&json!("rotate-logs"), &json!(2), &json!(86_400))
    );
    // Neither an invalid slug, nor the name of another monitor.
    for slug in ["Rotate", "web"] {
        assert_eq!(
            ping(&format!("{PING_KEY}/{slug}?create=1")).0,
            400,
            "{slug}"
        );
    }
}
