//! A running monitor of services that fail and come back.

use std::time::Duration;

use http::{Method, StatusCode};
use plimsoll_monitor::config::load;
use plimsoll_testkit::{Origin, eventually, refused_address};
use tempfile::TempDir;

use crate::client::Running;

fn origin_at(port: u16) -> Origin {
    Origin::builder().port(port).start()
}

#[test]
fn an_outage_opens_an_incident_at_the_right_check_and_its_end_resolves_it() {
    let folder = TempDir::new().unwrap();
    let address = refused_address();
    let origin = origin_at(address.port());
    let text = format!(
        r#"
        store = "memory"
        [[monitor]]
        name = "web"
        http = "http://{address}/"
        interval = "100ms"
        confirm = 3
        recover = 2
        hold = "0s"
        jitter = "0%"
        expect = ["status == 200", "body contains 'hello'"]
        "#
    );
    let running = Running::new(folder.path(), "monitor.toml", &text);
    running.wait_for("_web", "up");
    drop(origin);
    running.wait_for("_web", "down");
    // The board shows it before the store has it.
    let incidents = || running.json("/api/v1/incidents?state=open")["incidents"].clone();
    eventually(|| incidents().as_array().unwrap().len() == 1);
    let open = running.json("/api/v1/incidents?state=open");
    let id = open["incidents"][0]["id"].as_i64().unwrap();
    assert_eq!(open["incidents"].as_array().unwrap().len(), 1);
    let origin = origin_at(address.port());
    running.wait_for("_web", "up");
    eventually(|| running.json(&format!("/api/v1/incidents/{id}"))["state"] == "resolved");
    let incident = running.json(&format!("/api/v1/incidents/{id}"));
    assert!(
        incident["reason"].as_str().unwrap().contains("refused"),
        "{incident}"
    );
    let kinds: Vec<_> = incident["timeline"]
        .as_array()
        .unwrap()
        .iter()
        .map(|event| event["kind"].clone())
        .collect();
    assert_eq!(kinds, ["opened", "announced", "resolved"]);

    // The incident began with the first of the failures in a row, and ended with the first success behind them.
    let results = || {
        let found = running.json("/api/v1/monitors/_web/results?limit=500");
        let mut results: Vec<_> = found["results"].as_array().unwrap().clone();
        results.reverse();
        results
    };
    let outage = |results: &[serde_json::Value]| {
        let down = |result: &serde_json::Value| result["status"] == "down";
        let first_down = results.iter().position(down)?;
        let up = |result: &serde_json::Value| result["status"] == "up";
        let length = results[first_down..].iter().position(up)?;
        Some((first_down, first_down + length))
    };
    // Results reach the store in batches, behind the incident they resolve.
    eventually(|| outage(&results()).is_some());
    let results = results();
    let (first_down, first_up) = outage(&results).unwrap();
    assert_eq!(results[first_down]["at"], incident["opened_at"]);
    assert_eq!(results[first_up]["at"], incident["resolved_at"]);
    assert!(first_up - first_down >= 3, "three failures confirm");
    assert!(
        results[first_down]["reason"]
            .as_str()
            .unwrap()
            .contains("refused")
    );
    assert!(results[first_up]["phases"]["connect_us"].is_u64());

    let uptime = running.json("/api/v1/monitors/_web/uptime?window=1h");
    let ratio = uptime["uptime"].as_f64().unwrap();
    assert!(ratio > 0.0 && ratio < 1.0, "{uptime}");
    assert_eq!(uptime["outages"], 1);
    let notices = running.notices.lock().unwrap().clone();
    assert_eq!(notices.len(), 2, "{notices:?}");
    assert!(
        notices[0].contains("web is down") && notices[1].contains("web is up again"),
        "{notices:?}"
    );
    drop(origin);
}

#[test]
fn state_is_restored_after_a_restart() {
    let folder = TempDir::new().unwrap();
    let address = refused_address();
    let text = format!(
        r#"
        store = "state.db"
        [defaults]
        interval = "100ms"
        confirm = 2
        recover = 1
        hold = "0s"
        [[monitor]]
        name = "web"
        http = "http://{address}/"
        "#
    );
    let running = Running::new(folder.path(), "monitor.toml", &text);
    running.wait_for("_web", "down");
    eventually(|| {
        running.json("/api/v1/incidents")["incidents"]
            .as_array()
            .unwrap()
            .len()
            == 1
    });
    let before = running.json("/api/v1/incidents");
    drop(running);
    let running = Running::new(folder.path(), "monitor.toml", &text);
    // At once: not only after two more failures.
    assert_eq!(running.json("/api/v1/monitors/_web")["health"], "down");
    let origin = origin_at(address.port());
    running.wait_for("_web", "up");
    eventually(|| {
        running.json("/api/v1/incidents?state=resolved")["incidents"]
            .as_array()
            .unwrap()
            .len()
            == 1
    });
    let after = running.json("/api/v1/incidents");
    assert_eq!(
        after["incidents"][0]["id"], before["incidents"][0]["id"],
        "the same incident"
    );
    assert_eq!(after["incidents"].as_array().unwrap().len(), 1);
    drop(origin);
}

#[test]
fn parents_composites_and_maintenance() {
    let folder = TempDir::new().unwrap();
    let address = refused_address();
    let text = format!(
        r#"
        store = "memory"
        [defaults]
        interval = "100ms"
        confirm = 1
        recover = 1
        hold = "0s"
        [[monitor]]
        name = "base"
        tcp = "{address}"
        [[monitor]]
        name = "child"
        http = "http://{address}/"
        confirm = 3
        depends_on = "base"
        [[monitor]]
        name = "both"
        all_of = ["base", "child"]
        [[monitor]]
        name = "either"
        any_of = ["base", "child"]
        [[monitor]]
        name = "kept"
        tcp = "{address}"
        [[maintenance]]
        cron = "* * * * *"
        duration = "2m"
        monitors = ["kept"]
        "#
    );
    let origin = origin_at(address.port());
    let running = Running::new(folder.path(), "monitor.toml", &text);
    for key in ["_base", "_child", "_both", "_either", "_kept"] {
        running.wait_for(key, "up");
    }
    assert_eq!(
        running.json("/api/v1/monitors/_kept")["shown"],
        "maintenance"
    );
    drop(origin);
    for key in ["_base", "_child", "_both", "_either", "_kept"] {
        running.wait_for(key, "down");
    }
    eventually(|| {
        running.json("/api/v1/incidents?state=open")["incidents"]
            .as_array()
            .unwrap()
            .len()
            == 5
    });
    let notices = running.notices.lock().unwrap().join("\n");
    assert!(
        notices.contains("base is down") && notices.contains("both is down: "),
        "{notices}"
    );
    assert!(
        !notices.contains("child is down"),
        "its parent is down: {notices}"
    );
    assert!(
        !notices.contains("kept is down"),
        "it is in maintenance: {notices}"
    );
    let reason = running.json("/api/v1/monitors/_both")["last"]["reason"].clone();
    assert!(reason.as_str().unwrap().starts_with("down: "), "{reason}");
}

#[test]
fn a_reload_changes_what_changed_and_keeps_the_rest() {
    let folder = TempDir::new().unwrap();
    let origin = Origin::hello();
    let monitor = |name: &str| {
        format!(
            "[[monitor]]\nname = \"{name}\"\nhttp = \"{}\"\ninterval = \"100ms\"\n",
            origin.url("/")
        )
    };
    let text = format!("store = \"memory\"\n{}{}", monitor("a"), monitor("b"));
    let running = Running::new(folder.path(), "monitor.toml", &text);
    running.wait_for("_a", "up");
    running.wait_for("_b", "up");
    let since = running.json("/api/v1/monitors/_a")["since"].clone();
    let path = folder.path().join("monitor.toml");
    std::fs::write(
        &path,
        format!("store = \"memory\"\n{}{}", monitor("a"), monitor("c")),
    )
    .unwrap();
    let plan = load(&path, &|_| None).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    runtime
        .block_on(running.monitor.handle().reload(plan))
        .unwrap();
    running.wait_for("_c", "up");
    assert_eq!(
        running.json("/api/v1/monitors/_a")["since"],
        since,
        "its state goes on"
    );
    assert_eq!(running.get("/api/v1/monitors/_b").0, StatusCode::NOT_FOUND);
}

#[test]
fn heartbeats_come_by_the_key_of_the_organisation_and_a_slug() {
    let folder = TempDir::new().unwrap();
    let text = r#"
        store = "memory"
        ping_key = "fedcba9876543210"
        [[monitor]]
        name = "Nightly Backup"
        group = "db"
        heartbeat = { every = "1h", token = "0123456789abcdef" }
        [[monitor]]
        name = "other"
        heartbeat = { every = "1h", token = "1123456789abcdef", slug = "log-rotation" }
        [[monitor]]
        name = "twice"
        heartbeat = { every = "1h", token = "2123456789abcdef" }
        [[monitor]]
        name = "Twice"
        group = "db"
        heartbeat = { every = "1h", token = "3123456789abcdef" }
    "#;
    let running = Running::new(folder.path(), "monitor.toml", text);
    let ping = |path: &str, body: &str| {
        let (status, text) = running.call(Method::POST, &format!("/ping/{path}"), &[], body);
        (status.as_u16(), text)
    };
    let key = "fedcba9876543210";
    let done = (200, "OK".to_owned());
    assert_eq!(ping(&format!("{key}/nightly-backup"), ""), done);
    running.wait_for("db_nightly-backup", "up");
    assert_eq!(ping(&format!("{key}/nightly-backup/start"), ""), done);
    assert_eq!(ping(&format!("{key}/nightly-backup/7"), "disk full"), done);
    running.wait_for("db_nightly-backup", "down");
    assert_eq!(
        running.json("/api/v1/monitors/db_nightly-backup")["last"]["reason"],
        "the job ended with exit status 7: disk full"
    );
    assert_eq!(ping(&format!("{key}/log-rotation/fail"), ""), done);
    running.wait_for("_other", "down");
    assert_eq!(ping(&format!("{key}/log-rotation/log"), ""), done);
    assert_eq!(
        ping(&format!("{key}/twice"), ""),
        (409, "ambiguous slug".to_owned())
    );
    for path in [
        "fedcba9876543211/nightly-backup",
        "fedcba9876543210/other",
        "fedcba9876543210",
        "fedcba9876543210/nightly-backup/nonsense",
        "0123456789abcdef/nightly-backup",
        "0123456789abcdef/nightly-backup/start",
    ] {
        assert_eq!(ping(path, ""), (404, "not found".to_owned()), "{path}");
    }
    assert_eq!(ping("0123456789abcdef/0", ""), done, "tokens are as before");
    running.wait_for("db_nightly-backup", "up");
}

#[test]
fn heartbeats_fail_late_and_come_back() {
    let folder = TempDir::new().unwrap();
    let text = r#"
        store = "memory"
        [[monitor]]
        name = "job"
        heartbeat = { every = "1s", grace = "500ms", token = "0123456789abcdef" }
    "#;
    let running = Running::new(folder.path(), "monitor.toml", text);
    let ping = |rest: &str, body: &str| {
        let (status, text) = running.call(
            Method::POST,
            &format!("/ping/0123456789abcdef{rest}"),
            &[],
            body,
        );
        (status.as_u16(), text)
    };
    assert_eq!(ping("", ""), (200, "OK".to_owned()));
    running.wait_for("_job", "up");
    running.wait_for("_job", "down");
    let reason = running.json("/api/v1/monitors/_job")["last"]["reason"].clone();
    assert!(
        reason.as_str().unwrap().starts_with("no heartbeat since"),
        "{reason}"
    );
    assert_eq!(ping("/start", "").0, 200);
    assert_eq!(ping("/0", "").0, 200);
    running.wait_for("_job", "up");
    assert_eq!(ping("/3", "disk full").0, 200);
    running.wait_for("_job", "down");
    let reason = running.json("/api/v1/monitors/_job")["last"]["reason"].clone();
    assert_eq!(reason, "the job ended with exit status 3: disk full");
    assert_eq!(ping("/256", ""), (400, "invalid url format".to_owned()));
    assert_eq!(ping("/nonsense", "").0, 404);
    let wrong = running.call(Method::GET, "/ping/0123456789abcdeg", &[], "");
    assert_eq!(wrong.0, StatusCode::NOT_FOUND);
}

#[test]
fn pausing_stops_checks_and_resuming_begins_anew() {
    let folder = TempDir::new().unwrap();
    let origin = Origin::hello();
    let text = format!(
        "store = \"memory\"\n[[monitor]]\nname = \"web\"\nhttp = \"{}\"\ninterval = \"100ms\"\n",
        origin.url("/")
    );
    let running = Running::new(folder.path(), "monitor.toml", &text);
    running.wait_for("_web", "up");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let handle = running.monitor.handle();
    runtime.block_on(handle.pause("_web", true)).unwrap();
    assert_eq!(running.json("/api/v1/monitors/_web")["health"], "paused");
    assert!(runtime.block_on(handle.check_now("_web")).is_err());
    runtime.block_on(handle.pause("_web", false)).unwrap();
    running.wait_for("_web", "up");
    let result = runtime.block_on(handle.check_now("_web")).unwrap();
    assert_eq!(result.code, Some(200));
    assert!(result.took > Duration::ZERO);
}
