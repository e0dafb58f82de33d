//! `/api/v1`: pages, filters, errors.

use std::fmt::Write as _;

use http::{Method, StatusCode};
use plimsoll_monitor::config::ApiToken;
use plimsoll_testkit::{Authority, Origin, Script, Step, eventually, refused_address};
use tempfile::TempDir;

use crate::client::Running;
use crate::notices::WRITER;

fn several(count: usize) -> (TempDir, Origin, Running) {
    let folder = TempDir::new().unwrap();
    let origin = Origin::hello();
    let mut text = "store = \"memory\"\n[defaults]\ninterval = \"100ms\"\n".to_owned();
    for number in 0..count {
        let group = if number % 2 == 0 { "even" } else { "odd" };
        let url = origin.url("/");
        writeln!(
            text,
            "[[monitor]]\nname = \"m{number}\"\ngroup = \"{group}\"\nhttp = \"{url}\""
        )
        .unwrap();
    }
    let running = Running::new(folder.path(), "monitor.toml", &text);
    (folder, origin, running)
}

#[test]
fn monitors_come_in_pages_and_by_filters() {
    let (_folder, _origin, running) = several(7);
    let mut keys = Vec::new();
    let mut path = "/api/v1/monitors?limit=3".to_owned();
    loop {
        let page = running.json(&path);
        keys.extend(
            page["monitors"]
                .as_array()
                .unwrap()
                .iter()
                .map(|one| one["key"].as_str().unwrap().to_owned()),
        );
        match page["next_cursor"].as_str() {
            Some(cursor) => path = format!("/api/v1/monitors?limit=3&cursor={cursor}"),
            None => break,
        }
    }
    assert_eq!(
        keys,
        [
            "even_m0", "even_m2", "even_m4", "even_m6", "odd_m1", "odd_m3", "odd_m5"
        ]
    );
    eventually(|| {
        running.json("/api/v1/monitors?health=up&group=odd")["monitors"]
            .as_array()
            .unwrap()
            .len()
            == 3
    });
    assert_eq!(
        running.json("/api/v1/monitors?health=down")["monitors"]
            .as_array()
            .unwrap()
            .len(),
        0
    );
}

#[test]
fn errors_have_one_shape_and_name_the_field() {
    let (_folder, _origin, running) = several(1);
    for (method, path, status, expected) in [
        (
            Method::GET,
            "/api/v1/monitors/none",
            404,
            r#"{"error":{"code":"not_found","message":"there is no such monitor"}}"#,
        ),
        (
            Method::GET,
            "/api/v1/monitors?limit=0",
            400,
            r#"{"error":{"code":"invalid","message":"must be a whole number from 1 to 500","field":"limit"}}"#,
        ),
        (
            Method::GET,
            "/api/v1/monitors?colour=red",
            400,
            r#"{"error":{"code":"invalid","message":"unknown parameter `colour`","field":"query"}}"#,
        ),
        (
            Method::GET,
            "/api/v1/monitors/even_m0/uptime?window=never",
            400,
            r#"{"error":{"code":"invalid","message":"must be a duration of at most 400 days, such as 24h or 30d","field":"window"}}"#,
        ),
        (
            Method::GET,
            "/api/v1/incidents/x",
            404,
            r#"{"error":{"code":"not_found","message":"there is no such incident"}}"#,
        ),
        (
            Method::GET,
            "/nowhere",
            404,
            r#"{"error":{"code":"not_found","message":"there is no such path"}}"#,
        ),
        (
            Method::DELETE,
            "/api/v1/monitors",
            405,
            r#"{"error":{"code":"method_not_allowed","message":"the path does not take this method"}}"#,
        ),
    ] {
        let (found, text) = running.call(method, path, &[], "");
        assert_eq!(
            (found.as_u16(), text.as_str()),
            (status, expected),
            "{path}"
        );
    }
}

#[test]
fn a_tag_has_a_badge_of_all_its_monitors() {
    let folder = TempDir::new().unwrap();
    let origin = Origin::hello();
    let mut text = format!(
        "store = \"m.db\"\n[defaults]\ninterval = \"100ms\"\nconfirm = 1\n\
         [[token]]\nname = \"ann\"\nsha256 = \"2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b\"\nscopes = [\"admin\"]\n\
         [[monitor]]\nname = \"a\"\nhttp = \"{0}\"\ntags = [\"shop\", \"x/z\"]\n\
         [[monitor]]\nname = \"b\"\nhttp = \"{0}\"\ntags = [\"shop\"]\n\
         [[monitor]]\nname = \"c\"\ntcp = \"{1}\"\ntags = [\"shop\"]\n",
        origin.url("/"),
        refused_address()
    );
    for number in 0..101 {
        writeln!(
            text,
            "[[monitor]]\nname = \"m{number}\"\nmanual = true\ntags = [\"many\"]"
        )
        .unwrap();
    }
    let running = Running::new(folder.path(), "monitor.toml", &text);
    for (key, health) in [("_a", "up"), ("_b", "up"), ("_c", "down")] {
        let path = format!("/api/v1/monitors/{key}");
        eventually(|| running.json_as(WRITER, &path)["health"] == health);
    }
    let badge = |rest: &str| {
        let (status, text) = running.get(&format!("/api/v1/tags/{rest}"));
        assert_eq!(status, StatusCode::OK, "{rest}: {text}");
        let title = text.split("<title>").nth(1).unwrap();
        title.split("</title>").next().unwrap().to_owned()
    };
    let change = |what: &str| {
        let path = format!("/api/v1/monitors/{what}");
        let (status, text) = running.call(Method::POST, &path, &[WRITER], "");
        assert!(status.is_success(), "{text}");
    };
    assert_eq!(badge("shop/badge.svg"), "shop: 1 of 3 down");
    assert_eq!(badge("x%2Fz/badge.svg?label=page"), "page: up");
    assert_eq!(badge("many/badge.svg"), "many: no data");
    eventually(|| badge("x%2Fz/badge.svg?uptime=1h") == "uptime 1h: 100%");
    eventually(|| {
        let shown = badge("shop/badge.svg?uptime=1h");
        shown.ends_with('%') && shown != "uptime 1h: 100%"
    });
    // What is paused does not count, unless all is.
    change("_c/pause");
    assert_eq!(badge("shop/badge.svg"), "shop: up");
    change("_a/pause");
    change("_b/pause");
    assert_eq!(badge("shop/badge.svg"), "shop: paused");
    for (path, expected, why) in [
        ("none/badge.svg", StatusCode::NOT_FOUND, "no such tag"),
        (
            "shop/badge.svg?uptime=x",
            StatusCode::BAD_REQUEST,
            "duration",
        ),
        ("shop/badge.svg?style=x", StatusCode::BAD_REQUEST, "style"),
        (
            "many/badge.svg?uptime=1h",
            StatusCode::BAD_REQUEST,
            "101 monitors",
        ),
    ] {
        let (status, text) = running.get(&format!("/api/v1/tags/{path}"));
        assert_eq!(status, expected, "{path}: {text}");
        assert!(text.contains(why), "{text}");
    }
}

#[test]
fn latency_has_percentiles_and_phases() {
    let (_folder, _origin, running) = several(1);
    running.wait_for("even_m0", "up");
    let path = "/api/v1/monitors/even_m0/latency?window=1h";
    eventually(|| !running.json(path)["buckets"].as_array().unwrap().is_empty());
    let found = running.json(path);
    assert_eq!(found["resolution"], "minute");
    let bucket = &found["buckets"].as_array().unwrap()[0];
    for key in ["p50_us", "p95_us", "p99_us"] {
        assert!(bucket[key].as_u64().unwrap() > 0, "{bucket}");
    }
    assert!(bucket["phases"]["connect_us"].is_u64(), "{bucket}");
    let badge = running
        .get("/api/v1/monitors/even_m0/badge.svg?uptime=24h")
        .1;
    assert!(
        badge.contains("uptime 24h") && badge.contains("100%"),
        "{badge}"
    );
    assert_eq!(
        running.get("/api/v1/monitors/even_m0/badge.svg?uptime=x").0,
        StatusCode::BAD_REQUEST
    );
}

#[test]
fn tokens_say_who_may_read_and_write() {
    use plimsoll_monitor::config::ApiToken;

    let folder = TempDir::new().unwrap();
    let hash = |token: &str| ApiToken::written(&ApiToken::hash_of(token));
    let text = format!(
        r#"
        store = "memory"
        [[token]]
        name = "dashboard"
        sha256 = "{}"
        [[token]]
        name = "ann"
        sha256 = "{}"
        scopes = ["read", "write"]
        [[monitor]]
        name = "by hand"
        manual = true
        "#,
        hash("reads"),
        hash("writes"),
    );
    let running = Running::new(folder.path(), "monitor.toml", &text);
    let call = |method, path: &str, token: &str, body: &str| {
        let field = format!("Bearer {token}");
        let (status, text) = running.call(method, path, &[("authorization", &field)], body);
        (status.as_u16(), text)
    };
    let path = "/api/v1/monitors/_by-hand";
    assert_eq!(running.get(path).0, StatusCode::UNAUTHORIZED);
    assert_eq!(call(Method::GET, path, "other", "").0, 401);
    assert_eq!(call(Method::GET, path, "reads", "").0, 200);
    assert_eq!(call(Method::GET, "/api/v1/incidents", "none", "").0, 401);
    assert_eq!(
        running.get(&format!("{path}/badge.svg")).0,
        StatusCode::OK,
        "badges are public"
    );

    let status = format!("{path}/status");
    assert_eq!(
        running.call(Method::POST, &status, &[], "{}").0,
        StatusCode::UNAUTHORIZED
    );
    assert_eq!(
        call(Method::POST, &status, "reads", r#"{"up": false}"#).0,
        403
    );
    for (body, field) in [
        ("", "body"),
        ("[]", "body"),
        ("{}", "up"),
        (r#"{"up": 1}"#, "up"),
        (r#"{"up": true, "x": 1}"#, "body"),
    ] {
        let (code, text) = call(Method::POST, &status, "writes", body);
        assert!(
            code == 400 && text.contains(&format!("\"field\":\"{field}\"")),
            "{body}: {text}"
        );
    }
    assert_eq!(
        call(
            Method::POST,
            &status,
            "writes",
            r#"{"up": false, "reason": "flooded"}"#
        )
        .0,
        200
    );
    let shown: serde_json::Value =
        serde_json::from_str(&call(Method::GET, path, "reads", "").1).unwrap();
    assert_eq!(
        (&shown["health"], &shown["last"]["reason"]),
        (&"down".into(), &"flooded".into())
    );
    assert_eq!(
        call(Method::POST, &format!("{path}/check-now"), "writes", "").0,
        409,
        "it has no probe"
    );
    assert_eq!(
        call(Method::POST, &format!("{path}/acknowledge"), "writes", "").0,
        200
    );
    eventually(|| {
        call(Method::GET, "/api/v1/incidents?state=open", "reads", "")
            .1
            .contains("\"acknowledged\"")
    });
    let open: serde_json::Value =
        serde_json::from_str(&call(Method::GET, "/api/v1/incidents", "reads", "").1).unwrap();
    let incident = format!("/api/v1/incidents/{}", open["incidents"][0]["id"]);
    let shown = call(Method::GET, &incident, "reads", "").1;
    assert!(shown.contains("\"actor\":\"ann\""), "{shown}");
    assert_eq!(
        call(Method::POST, &format!("{path}/resolve"), "writes", "").0,
        200
    );
    assert_eq!(
        call(Method::POST, &format!("{path}/resolve"), "writes", "").0,
        409
    );
    assert_eq!(
        call(Method::POST, &format!("{path}/pause"), "writes", "").0,
        200
    );
    let paused: serde_json::Value =
        serde_json::from_str(&call(Method::GET, path, "reads", "").1).unwrap();
    assert_eq!(paused["paused"], true);
}

#[test]
fn without_tokens_nobody_writes() {
    let (_folder, _origin, running) = several(1);
    for verb in [
        "check-now",
        "pause",
        "resume",
        "acknowledge",
        "resolve",
        "status",
    ] {
        let (status, text) = running.call(
            Method::POST,
            &format!("/api/v1/monitors/even_m0/{verb}"),
            &[],
            "{}",
        );
        assert_eq!(status, StatusCode::FORBIDDEN, "{verb}: {text}");
    }
}

#[test]
fn a_probe_answers_with_the_metrics_of_blackbox_exporter() {
    let folder = TempDir::new().unwrap();
    let origin = Origin::hello();
    let token = ApiToken::generate().unwrap();
    let text = |allows: bool| {
        format!(
            "store = \"memory\"\nallow_private = {allows}\n[[token]]\nname = \"prometheus\"\nsha256 = \"{}\"\nscopes = [\"write\"]\n",
            ApiToken::written(&ApiToken::hash_of(&token))
        )
    };
    let bearer = format!("Bearer {token}");
    let field = [("authorization", bearer.as_str())];
    let running = Running::new(folder.path(), "monitor.toml", &text(true));
    let probe = |query: &str| {
        let path = format!("/probe?{query}");
        running.call(Method::GET, &path, &field, "")
    };
    let address = origin.address();
    let (status, page) = probe(&format!("target={address}&module=http_2xx"));
    assert_eq!(status, StatusCode::OK, "{page}");
    for line in [
        "\nprobe_success 1\n",
        "\nprobe_http_status_code 200\n",
        "\nprobe_http_ssl 0\n",
        "\nprobe_http_duration_seconds{phase=\"connect\"} ",
    ] {
        assert!(page.contains(line), "{line} in {page}");
    }
    let (_, page) = probe(&format!("target={address}&module=tcp_connect"));
    assert!(page.contains("\nprobe_success 1\n"), "{page}");
    let refused = refused_address();
    let (status, page) = probe(&format!("target={refused}"));
    assert_eq!(status, StatusCode::OK);
    assert!(page.contains("\nprobe_success 0\n"), "{page}");
    for wrong in [
        "module=http_2xx",
        "target=a&module=none",
        "target=a&other=1",
        "target=&module=icmp",
        "target=http%3A%2F%2F",
    ] {
        assert_eq!(probe(wrong).0, StatusCode::BAD_REQUEST, "{wrong}");
    }
    let path = format!("/probe?target={address}");
    assert_eq!(running.get(&path).0, StatusCode::UNAUTHORIZED);

    // Private addresses are out of reach here too.
    // The origin counts a connection when it accepts it, which may be after the probe's verdict.
    let before = 2;
    eventually(|| origin.connections() == before);
    let guarded = TempDir::new().unwrap();
    let running = Running::new(guarded.path(), "monitor.toml", &text(false));
    for module in ["http_2xx", "tcp_connect"] {
        let path = format!("/probe?target={address}&module={module}");
        let (status, page) = running.call(Method::GET, &path, &field, "");
        assert_eq!(status, StatusCode::OK);
        assert!(page.contains("\nprobe_success 0\n"), "{page}");
    }
    assert_eq!(origin.connections(), before);
}

#[test]
fn modules_of_a_file_of_blackbox_exporter_are_probes() {
    let folder = TempDir::new().unwrap();
    let answer = b"HTTP/1.1 204 No Content\r\nserver: one\r\n\r\n";
    let origin = Origin::scripted(Script::serve(&answer[..]));
    let banner = Origin::scripted(
        Script::new()
            .then(Step::Write("* hello\r\n+OK ready\r\n".into()))
            .then(Step::Swallow),
    );
    let modules = "modules:
  deleted:
    prober: http
    timeout: 5s
    http:
      method: DELETE
      valid_status_codes: [204]
      fail_if_ssl: true
      fail_if_header_not_matches: [{header: Server, regexp: '^o.e$'}]
      tls_config: {ca_file: ca.pem}
  other_server:
    prober: http
    http:
      valid_status_codes: [204]
      fail_if_header_matches: [{header: Server, regexp: one}]
  pop3:
    prober: tcp
    tcp: {query_response: [{expect: '^.OK'}, {send: QUIT}]}
  http_2xx:
    prober: http
    http: {valid_status_codes: [204]}
";
    std::fs::write(folder.path().join("blackbox.yml"), modules).unwrap();
    let authority = Authority::new();
    std::fs::write(folder.path().join("ca.pem"), authority.pem()).unwrap();
    let text = "store = \"memory\"\nprobe_modules = \"blackbox.yml\"\n[[token]]\nname = \"prometheus\"\n\
                sha256 = \"2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b\"\nscopes = [\"write\"]\n";
    let running = Running::new(folder.path(), "monitor.toml", text);
    let probe = |module: &str, target: &str| {
        let path = format!("/probe?target={target}&module={module}");
        running.call(Method::GET, &path, &[WRITER], "")
    };
    let succeeds = |module: &str, target: &str| {
        let (status, text) = probe(module, target);
        assert_eq!(status, StatusCode::OK, "{text}");
        text.contains("probe_success 1\n")
    };
    let target = origin.address().to_string();
    assert!(succeeds("deleted", &target));
    assert!(origin.heads()[0].starts_with("DELETE / HTTP/1.1\r\n"));
    assert!(!succeeds("other_server", &target));
    // It replaces the one that is built in.
    assert!(succeeds("http_2xx", &target));
    assert!(succeeds("pop3", &banner.address().to_string()));
    assert!(!succeeds("pop3", &refused_address().to_string()));
    assert!(succeeds("tcp_connect", &target));
    let (status, text) = probe("nothing", &target);
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert!(
        text.contains("deleted, ") && text.contains("tls_connect"),
        "{text}"
    );
    drop(running);
    // Errors have their places.
    for (modules, place) in [
        (
            "modules:\n  a:\n    prober: http\n    http: {oauth2: {}}\n",
            "blackbox.yml:4:",
        ),
        (
            "modules:\n  a:\n    prober: http\n    http: {tls_config: {ca_file: none.pem}}\n",
            "none.pem",
        ),
    ] {
        std::fs::write(folder.path().join("blackbox.yml"), modules).unwrap();
        let refused =
            plimsoll_monitor::config::load(&folder.path().join("monitor.toml"), &|_| None);
        let text = format!("{:?}", refused.unwrap_err());
        assert!(text.contains(place), "{text}");
    }
}
