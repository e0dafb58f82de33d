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
            {"id": 6, "name": "game", "type": "gamedig"}
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

# [[monitor]]
# name = "db"
# tcp = "db.local:5432"
# interval = "60s"
# confirm = 1
# recover = 1

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
            "db: is paused, so its lines are comments",
            "job: its job has to call /ping/uptime-kuma-Ab12Cd34Ef from now on",
            "game: is left out: the type `gamedig` is not supported",
        ]
    );
}

/// What a backup has of one monitor beyond its target.
const KUMA: &str = r#"{"version": "1.23.0",
    "notificationList": [
        {"id": 1, "name": "Ops", "active": true, "config": "{\"type\": \"telegram\", \"telegramBotToken\": \"1:a\", \"telegramChatID\": \"-5\"}"},
        {"id": 2, "name": "Mail", "active": true, "config": "{\"type\": \"smtp\", \"smtpHost\": \"mx.example.org\", \"smtpPort\": 465, \"smtpSecure\": true, \"smtpFrom\": \"a@example.org\", \"smtpTo\": \"b@example.org, c@example.org\", \"smtpCC\": \"d@example.org\", \"smtpBCC\": \"\"}"},
        {"id": 3, "name": "Pigeon", "active": true, "config": "{\"type\": \"pigeon\"}"},
        {"id": 4, "name": "Nobody's", "active": true, "config": "{}"}
    ],
    "monitorList": [
        {"id": 2, "name": "api", "type": "json-query", "url": "https://example.org/api", "method": "POST", "body": "{\"a\": 1}",
         "httpBodyEncoding": "json", "jsonPath": "data[0].state", "expectedValue": "up", "expiryNotification": true,
         "description": "The API.\nAsk Ann.", "tags": [{"name": "team", "value": "blue green"}, {"name": "eu", "value": ""}],
         "notificationIDList": {"1": true, "2": true, "3": true}, "interval": 30, "maxretries": 1},
        {"id": 3, "name": "closed", "type": "port", "hostname": "example.org", "port": 23, "upsideDown": true,
         "notificationIDList": {"1": true, "2": false}}
    ]}"#;

const OF_KUMA: &str = r#"[[monitor]]
name = "api"
http = { url = "https://example.org/api", method = "POST", body = "{\"a\": 1}", headers = { "content-type" = "application/json" } }
expect = ["status >= 200", "status <= 299", "body.json($.data[0].state) == 'up'"]
interval = "30s"
confirm = 2
recover = 1
warn_unless = ["cert.days > 21"]
tags = ["eu", "team:blue-green"]
# The API.
# Ask Ann.

[[monitor]]
name = "closed"
tcp = "example.org:23"
confirm = 1
recover = 1
upside_down = true

[[notify]]
name = "Ops 1"
telegram = { chat = "-5", token = "1:a" }
on = ["opened", "resolved"]
monitors = ["_api", "_closed"]

[[notify]]
name = "Mail 2"
email = { from = "a@example.org", host = "mx.example.org", port = 465, security = "tls", to = ["b@example.org", "c@example.org"] }
on = ["opened", "resolved"]
monitors = ["_api"]
"#;

const REMARKS_OF_KUMA: [&str; 3] = [
    "Mail: `smtpCC` is not carried over",
    "Pigeon: is left out: there is no channel like `pigeon`",
    "Nobody's: is left out: no monitor has this notification",
];

#[test]
fn a_backup_of_uptime_kuma_keeps_what_its_monitors_have() {
    let (text, remarks) = imported(KUMA);
    assert_eq!(text, OF_KUMA);
    assert_eq!(remarks, REMARKS_OF_KUMA);
}

#[test]
fn a_store_of_uptime_kuma_is_imported_as_its_backup_is() {
    let folder = tempfile::TempDir::new().unwrap();
    let path = folder.path().join("kuma.db");
    let store = rusqlite::Connection::open(&path).unwrap();
    store
        .execute_batch(
            r#"CREATE TABLE monitor (id INTEGER PRIMARY KEY, name VARCHAR(150), active BOOLEAN DEFAULT 1 NOT NULL, interval INTEGER,
                   url TEXT, type VARCHAR(20), hostname VARCHAR(255), port INTEGER, maxretries INTEGER DEFAULT 0,
                   upside_down BOOLEAN DEFAULT 0, accepted_statuscodes_json TEXT DEFAULT '["200-299"]', method TEXT DEFAULT 'GET',
                   body TEXT, expiry_notification BOOLEAN DEFAULT 0, description TEXT, parent INTEGER, json_path TEXT,
                   expected_value VARCHAR(255), http_body_encoding VARCHAR(25), json_path_operator VARCHAR(255));
               CREATE TABLE tag (id INTEGER PRIMARY KEY, name VARCHAR(255), color VARCHAR(255));
               CREATE TABLE monitor_tag (id INTEGER PRIMARY KEY, monitor_id INTEGER, tag_id INTEGER, value TEXT);
               CREATE TABLE notification (id INTEGER PRIMARY KEY, name VARCHAR(255), config TEXT, active BOOLEAN DEFAULT 1);
               CREATE TABLE monitor_notification (id INTEGER PRIMARY KEY, monitor_id INTEGER, notification_id INTEGER);
               CREATE TABLE maintenance (id INTEGER PRIMARY KEY, title VARCHAR(150));
               INSERT INTO monitor (id, name, type, url, method, body, http_body_encoding, json_path, expected_value, json_path_operator,
                   expiry_notification, description, interval, maxretries)
               VALUES (2, 'api', 'json-query', 'https://example.org/api', 'POST', '{"a": 1}', 'json', 'data[0].state', 'up', '==',
                   1, 'The API.' || char(10) || 'Ask Ann.', 30, 1);
               INSERT INTO monitor (id, name, type, hostname, port, upside_down) VALUES (3, 'closed', 'port', 'example.org', 23, 1);
               INSERT INTO tag VALUES (1, 'team', '#fff'), (2, 'eu', '#fff');
               INSERT INTO monitor_tag VALUES (1, 2, 1, 'blue green'), (2, 2, 2, '');
               INSERT INTO notification (id, name, config) VALUES
                   (1, 'Ops', '{"type": "telegram", "telegramBotToken": "1:a", "telegramChatID": "-5"}'),
                   (2, 'Mail', '{"type": "smtp", "smtpHost": "mx.example.org", "smtpPort": 465, "smtpSecure": true, "smtpFrom": "a@example.org", "smtpTo": "b@example.org, c@example.org", "smtpCC": "d@example.org", "smtpBCC": ""}'),
                   (3, 'Pigeon', '{"type": "pigeon"}'),
                   (4, 'Nobody''s', '{}');
               INSERT INTO monitor_notification VALUES (1, 2, 1), (2, 2, 2), (3, 2, 3), (4, 3, 1);
               INSERT INTO maintenance VALUES (1, 'Patches');"#,
        )
        .unwrap();
    drop(store);
    let (source, found) = import_file(&path).unwrap();
    assert_eq!(source, Source::UptimeKuma);
    assert_eq!(found.text, OF_KUMA);
    assert_eq!(found.remarks[..3], REMARKS_OF_KUMA);
    assert_eq!(found.remarks[3], "maintenance windows: 1 are left out");
    // Another database, and no file.
    let other = folder.path().join("other.db");
    let store = rusqlite::Connection::open(&other).unwrap();
    store.execute_batch("CREATE TABLE a (b)").unwrap();
    drop(store);
    for path in [other, folder.path().join("missing")] {
        assert!(matches!(import_file(&path), Err(ImportError::Read(_))));
    }
}

#[test]
fn queries_of_uptime_kuma_that_are_paths_are_conditions() {
    let query = |path: &str, operator: &str, value: &str| {
        let monitor = serde_json::json!({
            "id": 1, "name": "a", "type": "json-query", "url": "https://example.org/",
            "jsonPath": path, "jsonPathOperator": operator, "expectedValue": value,
        });
        let backup = serde_json::json!({ "monitorList": [monitor] });
        let (text, remarks) = imported(&backup.to_string());
        assert_eq!(text.contains("body.json("), remarks.is_empty(), "{text}");
        let condition = text.split("\"status <= 299\", \"").nth(1)?;
        Some(condition.split("\"]").next()?.to_owned())
    };
    let found = query("$.n", "==", "5").unwrap();
    assert_eq!(found, "any(body.json($.n) == 5, body.json($.n) == '5')");
    assert_eq!(query("n", ">=", "5").unwrap(), "body.json($.n) >= 5");
    assert_eq!(
        query("a.b", "!=", "it's").unwrap(),
        "body.json($.a.b) != \\\"it's\\\""
    );
    // Languages of their own.
    assert_eq!(query("$count(items)", "==", "5"), None);
    assert_eq!(query("$", "==", "5"), None);
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
fn targets_of_prometheus_may_be_yaml() {
    let (text, remarks) = imported(
        "# Sites.\n- targets:\n    - https://a.example\n    - b.example\n  labels: {job: web}\n- targets: [c.example:25]\n  labels:\n    module: tcp_connect\n",
    );
    assert_eq!(
        text,
        "[[monitor]]\nname = \"https://a.example\"\ngroup = \"web\"\nhttp = \"https://a.example\"\n\n\
         [[monitor]]\nname = \"b.example\"\ngroup = \"web\"\nhttp = \"http://b.example\"\n\n\
         [[monitor]]\nname = \"c.example:25\"\ntcp = \"c.example:25\"\n"
    );
    assert!(remarks.is_empty(), "{remarks:?}");
    let modules = "modules:\n  http_2xx:\n    prober: http\n";
    let refused = import(modules).unwrap_err();
    assert_eq!(refused, ImportError::Modules);
    assert!(refused.to_string().contains("probe_modules"));
}

#[test]
fn databases_and_mail_servers_of_uptime_kuma_are_probes() {
    let (text, remarks) = imported(
        r#"{"monitorList": [
            {"name": "r", "type": "redis", "databaseConnectionString": "redis://:p@cache.example:6379"},
            {"name": "p", "type": "postgres", "databaseConnectionString": "postgres://u:p@db.example/x", "databaseQuery": "SELECT 1"},
            {"name": "m", "type": "smtp", "hostname": "mx.example", "port": 465, "smtpSecurity": "secure"},
            {"name": "w", "type": "websocket-upgrade", "url": "wss://a.example/"},
            {"name": "h", "type": "manual", "interval": 60},
            {"name": "q", "type": "mqtt", "hostname": "mqtts://broker.example", "port": 8883, "mqttUsername": "a", "mqttPassword": "b@",
             "mqttTopic": "t/x", "mqttSuccessMessage": "on"}
        ]}"#,
    );
    for line in [
        "redis = \"redis://:p@cache.example:6379\"",
        "postgres = { url = \"postgres://u:p@db.example/x\", query = \"SELECT 1\" }",
        "tcp = { to = \"mx.example:465\", talk = [{ expect = \"^220\" }], tls = true }",
        "websocket = \"wss://a.example/\"",
        "manual = true\n",
        "mqtt = { url = \"mqtts://a:b%40@broker.example:8883\", topic = \"t/x\" }\nexpect = [\"body contains 'on'\"]",
    ] {
        assert!(text.contains(line), "{line} in {text}");
    }
    assert!(remarks.is_empty(), "{remarks:?}");
}

#[test]
fn machines_and_services_of_uptime_kuma_are_probes() {
    let (text, remarks) = imported(
        r#"{"dockerHosts": [{"id": 1, "dockerType": "socket", "dockerDaemon": "/run/docker.sock"}, {"id": 2, "dockerDaemon": "tcp://d.example:2375"}],
        "monitorList": [
            {"name": "a", "type": "docker", "dockerContainer": "web", "dockerHost": 1},
            {"name": "b", "type": "docker", "docker_container": "db", "docker_host": 2},
            {"name": "c", "type": "docker", "docker_container": "db", "docker_host": 3},
            {"name": "s", "type": "snmp", "hostname": "sw.example", "port": 161, "snmpOid": "1.3.6.1.2.1.1.3.0", "snmpVersion": "2c",
             "radiusPassword": "readers", "jsonPath": "$", "jsonPathOperator": ">", "expectedValue": "100"},
            {"name": "t", "type": "snmp", "hostname": "sw.example", "snmpOid": "1.3.6.1.2.1.1.3.0", "snmpVersion": "3"},
            {"name": "g", "type": "grpc-keyword", "grpcUrl": "g.example:443", "grpcEnableTls": 1, "grpcServiceName": "Health", "grpcMethod": "check",
             "grpcProtobuf": "syntax = \"proto3\";\npackage a.b;\nmessage E {}\nservice Health { rpc Check(E) returns (E); }", "grpcBody": "{}", "keyword": "SERVING"},
            {"name": "r", "type": "rabbitmq", "rabbitmqNodes": "[\"https://one.example:15672/\", \"https://two.example:15672/\"]",
             "rabbitmqUsername": "u", "rabbitmqPassword": "p"},
            {"name": "k", "type": "kafka-producer", "kafkaProducerBrokers": ["k1.example:9093", "k2.example:9093"], "kafkaProducerTopic": "orders",
             "kafkaProducerSsl": true, "kafkaProducerSaslOptions": {"mechanism": "scram-sha-512", "username": "u", "password": "p@"}},
            {"name": "l", "type": "kafka-producer", "kafkaProducerBrokers": "[\"k3.example:9092\"]", "kafkaProducerSaslOptions": {"mechanism": "None"}}
        ]}"#,
    );
    for line in [
        "docker = { container = \"web\", host = \"unix:///run/docker.sock\" }",
        "docker = { container = \"db\", host = \"tcp://d.example:2375\" }",
        "docker = \"db\"\n",
        "snmp = { to = \"sw.example:161\", oid = \"1.3.6.1.2.1.1.3.0\", community = \"readers\" }\nexpect = [\"body.json($[0].value) > 100\"]",
        "grpc = { url = \"grpcs://g.example:443\", method = \"a.b.Health/Check\", body = \"{}\", proto = ",
        "expect = [\"body contains 'SERVING'\"]",
        "kafka = { url = \"kafkas://u:p%40@k1.example:9093\", topic = \"orders\", mechanism = \"SCRAM-SHA-512\" }",
        "kafka = { url = \"kafka://k3.example:9092\" }",
        "http = { url = \"https://one.example:15672/api/health/checks/alarms\", basic = \"u:p\" }\nexpect = [\"status == 200\"]",
    ] {
        assert!(text.contains(line), "{line} in {text}");
    }
    let all = format!("{remarks:?}");
    for remark in [
        "its container engine is not in the file",
        "only version 2c",
        "has several nodes there",
        "has several brokers there",
        "writes a message there",
    ] {
        assert!(all.contains(remark), "{remark} in {all}");
    }
    assert_eq!(remarks.len(), 6, "{all}");
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
        let document = format!("key = {}", toml_string(&text));
        let table: toml::Table = document.parse().unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(table["key"].as_str(), Some(text.as_str()));
    }
}

#[test]
fn monitors_of_uptimerobot_are_imported() {
    let (text, remarks) = imported(
        r#"{"stat": "ok", "pagination": {"total": 6}, "monitors": [
            {"id": 1, "friendly_name": "Web", "url": "https://a.example/", "type": 1, "sub_type": "", "keyword_type": null,
             "interval": 300, "timeout": 30, "status": 2, "http_method": 2, "http_username": "u", "http_password": "p", "http_auth_type": 1,
             "custom_http_headers": {"X-Team": "web"}},
            {"id": 2, "friendly_name": "Shop", "url": "https://b.example/", "type": 2, "keyword_type": 2, "keyword_value": "it's up",
             "keyword_case_type": 0, "interval": 60, "status": 0, "http_method": 1},
            {"id": 3, "friendly_name": "Host", "url": "192.0.2.1", "type": 3, "interval": 300, "status": 2},
            {"id": 4, "friendly_name": "Mail", "url": "mail.example", "type": 4, "sub_type": 4, "port": "", "interval": 300, "status": 9},
            {"id": 5, "friendly_name": "Own", "url": "c.example", "type": 4, "sub_type": 99, "port": 5432, "interval": 300, "status": 9},
            {"id": 6, "friendly_name": "Job", "url": "https://heartbeat.uptimerobot.com/x", "type": 5, "interval": 3600, "status": 2}
        ]}"#,
    );
    assert_eq!(
        text,
        r#"[[monitor]]
name = "Web"
http = { url = "https://a.example/", basic = "u:p", headers = { "X-Team" = "web" } }
interval = "300s"
timeout = "30s"

# [[monitor]]
# name = "Shop"
# http = "https://b.example/"
# interval = "60s"
# expect = ["body contains \"it's up\""]

[[monitor]]
name = "Host"
icmp = "192.0.2.1"
interval = "300s"

[[monitor]]
name = "Mail"
tcp = "mail.example:25"
interval = "300s"

[[monitor]]
name = "Own"
tcp = "c.example:5432"
interval = "300s"

[[monitor]]
name = "Job"
heartbeat = { every = "3600s", token = "uptimerobot-heartbeat-6" }
"#
    );
    assert_eq!(remarks.len(), 2, "{remarks:?}");
    assert!(remarks[0].starts_with("Shop: is paused"), "{remarks:?}");
    assert!(remarks[1].contains("/ping/uptimerobot-heartbeat-6"));
    let (text, remarks) = imported(
        r#"{"nextLink": null, "data": [
            {"id": 7, "friendlyName": "Web", "url": "https://a.example/", "type": "KEYWORD", "status": "UP", "interval": 300, "timeout": 30,
             "httpMethodType": "GET", "keywordType": "ALERT_EXISTS", "keywordValue": "error", "keywordCaseType": "CaseSensitive",
             "successHttpResponseCodes": ["2xx", "404"], "followRedirections": false, "checkSSLErrors": true, "sslExpirationReminder": true,
             "tags": [{"id": 1, "name": "eu"}], "assignedAlertContacts": [{"alertContactId": 1}]},
            {"id": 8, "friendlyName": "Zone", "url": "a.example", "type": "DNS", "status": "UP", "interval": 300}
        ]}"#,
    );
    assert_eq!(
        text,
        r#"[[monitor]]
name = "Web"
http = { url = "https://a.example/", redirects = 0 }
interval = "300s"
timeout = "30s"
expect = ["any(not(any(status < 200, status >= 300)), status == 404)", "not(body contains 'error')"]
warn_unless = ["cert.days > 30"]
tags = ["eu"]
"#
    );
    assert_eq!(
        remarks,
        [
            "Web: its contacts are not carried over",
            "Zone: is left out: the type `DNS` is not supported"
        ]
    );
}

#[test]
fn monitors_of_better_stack_are_imported() {
    let (text, remarks) = imported(
        r#"{"data": [
            {"id": "1", "type": "monitor", "attributes": {"url": "https://a.example/", "pronounceable_name": "Web", "monitor_type": "status",
             "monitor_group_id": null, "last_checked_at": "2026-01-01T00:00:00Z", "status": "up", "required_keyword": null, "verify_ssl": false,
             "check_frequency": 30, "request_timeout": 15, "confirmation_period": 60, "recovery_period": 180, "http_method": "post",
             "request_headers": [{"id": "1", "name": "X-Team", "value": "web"}], "request_body": "{}", "follow_redirects": true,
             "auth_username": "", "auth_password": "", "ssl_expiration": 14, "domain_expiration": 30, "paused_at": null}},
            {"id": "2", "type": "monitor", "attributes": {"url": "https://b.example/", "pronounceable_name": "Moved", "monitor_type": "expected_status_code",
             "expected_status_codes": [301, 308], "follow_redirects": false, "check_frequency": 180}},
            {"id": "3", "type": "monitor", "attributes": {"url": "c.example", "pronounceable_name": "Db", "monitor_type": "tcp", "port": "5432",
             "request_timeout": 3500, "paused": true}},
            {"id": "4", "type": "monitor", "attributes": {"url": "mx.example", "pronounceable_name": "Mail", "monitor_type": "imap"}},
            {"id": "5", "type": "monitor", "attributes": {"url": "https://d.example", "pronounceable_name": "Flow", "monitor_type": "playwright"}},
            {"id": "6", "type": "heartbeat", "attributes": {"url": "https://uptime.betterstack.com/api/v1/heartbeat/aBc", "name": "Job",
             "period": 3600, "grace": 300, "status": "up"}}
        ], "pagination": {"next": null}}"#,
    );
    assert_eq!(
        text,
        r#"[[monitor]]
name = "Web"
http = { url = "https://a.example/", method = "POST", body = "{}", headers = { "X-Team" = "web" }, insecure = true }
interval = "30s"
timeout = "15s"
warn_unless = ["cert.days > 14"]
confirm = 3
hold = "180s"

[[monitor]]
name = "Moved"
http = { url = "https://b.example/", redirects = 0 }
interval = "180s"
expect = ["any(status == 301, status == 308)"]

# [[monitor]]
# name = "Db"
# tcp = "c.example:5432"
# timeout = "3500ms"

[[monitor]]
name = "Mail"
tcp = { to = "mx.example:143", talk = [{ expect = "^\\* (OK|PREAUTH)" }] }

[[monitor]]
name = "Job"
heartbeat = { every = "3600s", grace = "300s", token = "better-stack-aBc" }
"#
    );
    let remarks = remarks.join("\n");
    for part in [
        "`domain`",
        "Db: is paused",
        "Flow: is left out",
        "/ping/better-stack-aBc",
    ] {
        assert!(remarks.contains(part), "{part}: {remarks}");
    }
}
