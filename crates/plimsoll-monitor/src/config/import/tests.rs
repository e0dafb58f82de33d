use super::*;

/// The text and the remarks; the text must be a valid file.
fn imported(text: &str) -> (String, Vec<String>) {
    let (_, imported) = import(text).unwrap();
    let folder = tempfile::TempDir::new().unwrap();
    let path = folder.path().join("monitor.toml");
    std::fs::write(&path, &imported.text).unwrap();
    if let Err(error) = crate::config::load(&path, &|_| None) {
        panic!("{error:?} in {}", imported.text);
    }
    (imported.text, imported.remarks)
}

#[test]
fn a_backup_of_uptime_kuma_becomes_a_file() {
    let (text, remarks) = imported(
        r#"{"version": "1.23.0", "monitorList": [
            {"id": 1, "name": "Shop", "type": "group"},
            {"id": 2, "name": "web", "type": "keyword", "url": "https://example.org/", "keyword": "it's up", "parent": 1,
             "interval": 30, "maxretries": 2, "accepted_statuscodes": ["200-299", "304"], "ignoreTls": true,
             "headers": "{\"X-A\": \"1\"}", "timeout": 9.6},
            {"id": 3, "name": "db", "type": "port", "hostname": "db.local", "port": 5432, "interval": 60, "active": false},
            {"id": 4, "name": "db", "type": "dns", "hostname": "example.org", "dns_resolve_type": "MX", "dns_resolve_server": "1.1.1.1", "port": 53},
            {"id": 5, "name": "job", "type": "push", "pushToken": "Ab12Cd34Ef", "interval": 300},
            {"id": 6, "name": "queue", "type": "mqtt"}
        ]}"#,
    );
    assert_eq!(
        text,
        r#"[[monitor]]
name = "web"
group = "Shop"
http = { url = "https://example.org/", headers = { "X-A" = "1" }, insecure = true }
expect = ["any(not(any(status < 200, status > 299)), status == 304)", "body contains \"it's up\""]
interval = "30s"
timeout = "9.6s"
confirm = 3
recover = 1

[[monitor]]
name = "db"
tcp = "db.local:5432"
interval = "60s"
confirm = 1
recover = 1

[[monitor]]
name = "db 2"
dns = { name = "example.org", type = "MX", server = "1.1.1.1:53" }
confirm = 1
recover = 1

[[monitor]]
name = "job"
heartbeat = { every = "300s", token = "uptime-kuma-Ab12Cd34Ef" }
"#
    );
    assert_eq!(
        remarks,
        [
            "db: was paused, and runs here",
            "job: its job has to call /ping/uptime-kuma-Ab12Cd34Ef from now on",
            "queue: is left out: the type `mqtt` is not supported",
        ]
    );
}

#[test]
fn components_of_statuspage_become_manual_monitors() {
    let (text, remarks) = imported(
        r#"{"page": {"id": "x"}, "components": [
            {"id": "g", "name": "Europe", "group": true, "status": "operational"},
            {"id": "a", "name": "API", "group": false, "group_id": "g", "status": "major_outage"},
            {"id": "b", "name": "Web", "group": false, "group_id": null, "status": "operational"}
        ]}"#,
    );
    assert_eq!(
        text,
        "[[monitor]]\nname = \"API\"\ngroup = \"Europe\"\nmanual = true\n\n[[monitor]]\nname = \"Web\"\nmanual = true\n"
    );
    assert_eq!(
        remarks,
        ["API: is `major_outage` there; its state is not taken over"]
    );
}

#[test]
fn targets_of_prometheus_become_probes() {
    let (text, remarks) = imported(
        r#"[{"targets": ["https://a.example", "b.example"], "labels": {"job": "web", "team": "blue"}},
            {"targets": ["c.example:25"], "labels": {"__param_module": "tcp_connect"}},
            {"targets": ["d.example"], "labels": {"module": "my_own"}}]"#,
    );
    assert_eq!(
        text,
        r#"[[monitor]]
name = "https://a.example"
group = "web"
http = "https://a.example"
labels.team = "blue"

[[monitor]]
name = "b.example"
group = "web"
http = "http://b.example"
labels.team = "blue"

[[monitor]]
name = "c.example:25"
tcp = "c.example:25"
"#
    );
    assert_eq!(
        remarks,
        ["d.example: is left out: the module `my_own` is not supported"]
    );
}

#[test]
fn other_files_are_refused() {
    assert_eq!(
        import("{").unwrap_err().to_string().split(": ").next(),
        Some("line 1")
    );
    for text in ["{}", "[]", "[1]", "3"] {
        assert_eq!(import(text), Err(ImportError::Unknown));
    }
}

#[test]
fn every_text_is_one_of_toml() {
    for character in ('\0'..='\u{ff}').chain(['\u{2028}', '\u{feff}', '\u{1f600}']) {
        let text = format!("a{character}b");
        let document = format!("key = {}", quoted(&text));
        let table: toml::Table = document.parse().unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(table["key"].as_str(), Some(text.as_str()));
    }
}
