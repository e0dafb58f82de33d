//! Status pages: what they show, who may see them, and when they change.

mod caching;

mod maintenance;

mod passwords;

use http::{Method, StatusCode};
use plimsoll_monitor::config::load;
use plimsoll_testkit::{Origin, eventually, refused_address};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::client::Running;

/// The SHA-256 of `secret`.
const TOKEN: &str = "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b";
const WRITER: (&str, &str) = ("authorization", "Bearer secret");

fn text(address: &str) -> String {
    format!(
        r#"
        store = "memory"
        [defaults]
        interval = "100ms"
        confirm = 1
        recover = 1
        hold = "0s"
        [[token]]
        name = "ann"
        sha256 = "{TOKEN}"
        scopes = ["write"]
        [[monitor]]
        name = "Web ü & Co"
        group = "Public"
        http = "http://{address}/"
        [[monitor]]
        name = "Inside"
        http = "http://{address}/"
        [[page]]
        slug = "acme"
        title = "Acme <b>"
        monitors = ["Public"]
        [[page]]
        slug = "inside"
        title = "Inside"
        host = "inside.example"
        # the password is `pass`
        password_bcrypt = "$2y$04$OgyOjAH7yqq6VkZJkltmJO/cTlhvZ9b85Hp2bXZTT9pzaUPfMgAvq"
        "#
    )
}

fn declare(running: &Running, body: &Value) -> (StatusCode, Value) {
    let fields = [WRITER, ("idempotency-key", "one")];
    let path = "/api/v1/declared-incidents";
    let (status, text) = running.call(Method::POST, path, &fields, &body.to_string());
    (status, serde_json::from_str(&text).unwrap())
}

#[test]
fn a_page_shows_an_outage_and_its_end_without_reasons() {
    let folder = TempDir::new().unwrap();
    let address = refused_address();
    let origin = Origin::builder().port(address.port()).start();
    let running = Running::new(folder.path(), "monitor.toml", &text(&address.to_string()));
    let page = |path: &str| running.get(path).1;
    eventually(|| page("/").contains("All systems operational"));
    let up = page("/status/acme/");
    assert!(
        up.contains("Acme &#60;b&#62;") && !up.contains("<b>"),
        "titles are escaped: {up}"
    );
    assert!(up.contains("Web ü &#38; Co"), "{up}");
    assert!(!up.contains("Inside"), "it is on another page");
    assert!(up.contains("No incidents in the last 14 days."), "{up}");
    drop(origin);
    eventually(|| page("/").contains("<h2 id=\"overall\">Major outage</h2>"));
    eventually(|| page("/").contains("We have detected an outage of Web"));
    let down = page("/");
    assert!(down.contains("</time> – Investigating</span>"), "{down}");
    assert!(!down.contains("refused"), "reasons are not public: {down}");
    let summary = running.json("/api/v2/summary.json");
    assert_eq!(summary["status"]["indicator"], "critical");
    assert_eq!(summary["incidents"][0]["status"], "investigating");
    assert_eq!(summary["components"][0]["group"], true);
    assert_eq!(summary["components"][1]["status"], "major_outage");
    let shields = running.json("/status/acme/shields.json");
    assert_eq!(
        (&shields["message"], &shields["color"]),
        (&json!("Major outage"), &json!("red"))
    );
    let badge = page("/badge.svg?style=for-the-badge");
    assert!(badge.contains("ACME &lt;B&gt;: MAJOR OUTAGE"), "{badge}");
    let badge = page("/components/public_web-%C3%BC---co/badge.svg?label=web");
    assert!(badge.contains("<title>web: Outage</title>"), "{badge}");
    let badge = page("/components/public_web-%C3%BC---co/badge.svg?show=uptime");
    assert!(badge.contains("%</title>"), "{badge}");
    for (path, expected) in [
        ("/badge.svg?style=round", StatusCode::BAD_REQUEST),
        ("/components/none/badge.svg", StatusCode::NOT_FOUND),
    ] {
        assert_eq!(running.get(path).0, expected, "{path}");
    }
    let _origin = Origin::builder().port(address.port()).start();
    eventually(|| page("/").contains("All systems operational"));
    eventually(|| !page("/").contains("Active incidents"));
    // Once it is over, it is a line below its day, and its own page has the updates.
    let detected = "We have detected an outage of Web";
    let over = page("/");
    assert!(!over.contains(detected) && !over.contains("is working again."));
    assert!(over.contains(">Web ü &#38; Co was down</a>"), "{over}");
    assert_eq!(over.matches("<li><h3>").count(), 14, "a heading per day");
    assert_eq!(over.matches("No incidents.</p>").count(), 13);
    let incidents = running.json("/api/v2/incidents.json");
    let incident = &incidents["incidents"][0];
    assert_eq!(incident["status"], "resolved");
    let link = incident["shortlink"].as_str().unwrap();
    let link_path = link.strip_prefix("http://localhost").unwrap();
    assert!(
        page(link_path).contains("Web ü &#38; Co was down"),
        "{link_path}"
    );
    assert!(page(link_path).contains(detected), "{link_path}");
    // The feeds and the archive have it too.
    for path in ["/feed.atom", "/feed.rss", "/history"] {
        let found = page(path);
        assert!(found.contains(link_path), "{path}: {found}");
    }
    let component = page("/components/public_web-%C3%BC---co");
    assert!(component.contains("Response times: median"), "{component}");
    for part in [
        "Mean time of a check by phase, ",
        "<th scope=\"col\">connect</th>",
    ] {
        assert!(component.contains(part), "{part}: {component}");
    }
}

#[test]
fn feeds_are_well_formed_whatever_an_incident_is_called() {
    let folder = TempDir::new().unwrap();
    let text = r#"
        store = "memory"
        [[token]]
        name = "ann"
        sha256 = "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b"
        scopes = ["admin"]
        [[monitor]]
        name = "m"
        manual = true
        [[page]]
        slug = "p"
        title = "P"
        "#;
    let running = Running::new(folder.path(), "monitor.toml", text);
    let body = json!({ "title": "ctl \u{b}\u{1}\u{fffe}x", "body": "a\u{0}b" });
    let fields = [
        ("authorization", "Bearer secret"),
        ("content-type", "application/json"),
    ];
    let path = "/api/v1/declared-incidents";
    let (status, text) = running.call(Method::POST, path, &fields, &body.to_string());
    assert_eq!(status, StatusCode::CREATED, "{text}");
    for path in ["/status/p/feed.atom", "/status/p/feed.rss"] {
        eventually(|| running.get(path).1.contains("ctl "));
        let feed = running.get(path).1;
        let is_forbidden = |c: char| c.is_control() && c != '\n' || c == '\u{fffe}';
        assert!(!feed.contains(is_forbidden), "{path}: {feed:?}");
    }
}

#[test]
fn declared_incidents_are_published_updated_and_resolved() {
    let folder = TempDir::new().unwrap();
    let origin = Origin::hello();
    let running = Running::new(
        folder.path(),
        "monitor.toml",
        &text(&origin.address().to_string()),
    );
    eventually(|| running.get("/").1.contains("All systems operational"));
    let body = json!({
        "title": "Search is slow",
        "impact": "minor",
        "monitors": ["public_web-ü---co"],
        "body": "We are looking into it.\n<script>alert(1)</script>",
    });
    let (status, declared) = declare(&running, &body);
    assert_eq!(
        (status, &declared["version"]),
        (StatusCode::CREATED, &json!(1))
    );
    // The same request with the same key is the same incident; another one with it is refused.
    assert_eq!(declare(&running, &body).1, declared);
    let (status, _) = declare(&running, &json!({ "title": "Other" }));
    assert_eq!(status, StatusCode::CONFLICT);
    let page = running.get("/").1;
    assert!(
        page.contains("Search is slow") && page.contains("Some systems are degraded"),
        "{page}"
    );
    assert!(!page.contains("<script>alert"), "{page}");
    let path = "/api/v1/declared-incidents/1";
    let edit = json!({ "phase": "resolved", "body": "It is fast again." }).to_string();
    let (status, _) = running.call(Method::PATCH, path, &[("if-match", "\"1\"")], &edit);
    assert_eq!(status, StatusCode::UNAUTHORIZED, "a token is needed");
    let stale = running.call(Method::PATCH, path, &[WRITER, ("if-match", "\"7\"")], &edit);
    assert_eq!(stale.0, StatusCode::PRECONDITION_FAILED);
    let edited = running.call(Method::PATCH, path, &[WRITER, ("if-match", "\"1\"")], &edit);
    assert_eq!(edited.0, StatusCode::OK, "{}", edited.1);
    let page = running.get("/").1;
    assert!(
        page.contains(">Search is slow</a>") && page.contains("All systems operational"),
        "{page}"
    );
    assert!(
        page.contains("<span class=\"quiet\">Web ü &#38; Co</span>"),
        "{page}"
    );
    let own = running.get("/incidents/d1").1;
    assert!(
        own.contains("Search is slow") && own.contains("It is fast again."),
        "{own}"
    );
    for (body, field) in [
        (json!({}), "title"),
        (json!({ "title": "a", "phase": "done" }), "phase"),
        (json!({ "title": "a", "monitors": ["none"] }), "monitors"),
        (json!({ "title": "a", "colour": "red" }), "body"),
        (
            json!({ "title": "a", "started_at": "2999-01-01T00:00:00Z" }),
            "started_at",
        ),
    ] {
        let (status, error) = declare(&running, &body);
        assert_eq!(status, StatusCode::BAD_REQUEST, "{body}");
        assert_eq!(error["error"]["field"], field, "{error}");
    }
}

#[test]
fn declared_downtime_counts_on_every_screen() {
    let folder = TempDir::new().unwrap();
    let origin = Origin::hello();
    let running = Running::new(
        folder.path(),
        "monitor.toml",
        &text(&origin.address().to_string()),
    );
    eventually(|| running.get("/").1.contains("All systems operational"));
    let body = json!({
        "title": "Wrong prices",
        "impact": "critical",
        "counts_as_downtime": true,
        "started_at": "2020-01-01T00:00:00Z",
        "monitors": ["public_web-ü---co"],
    });
    assert_eq!(declare(&running, &body).0, StatusCode::CREATED);
    let path = "/api/v1/monitors/public_web-%C3%BC---co/uptime?window=1h";
    let (_, uptime) = running.call(Method::GET, path, &[WRITER], "");
    let uptime: Value = serde_json::from_str(&uptime).unwrap();
    assert_eq!(uptime["uptime"], 0.0, "{uptime}");
    assert!(running.get("/").1.contains("0\u{a0}% uptime"));
}

#[test]
fn errors_of_pages_name_their_place() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("monitor.toml");
    std::fs::write(folder.path().join("logo.svg"), "<svg/>").unwrap();
    let text = r#"
[[monitor]]
name = "web"
manual = true
[[page]]
slug = "Not good"
title = "a"
monitors = ["wep"]
color = "blue"
logo = "logo.svg"
language = "sv"
password_bcrypt = "pass"
url = "status.example.org"
titel = "b"
font = "comic"
density = "tight"
bars = "stars"
css = "body { background: \\75 rl(https://elsewhere.example/x.png) }"
[[page]]
slug = "a"
css = "missing.css"
[[page]]
slug = "a"
title = "c"
host = "https://a"
shared_max_age = "2d"
[[page]]
slug = "b"
title = "d"
password_bcrypt = "$2y$04$OgyOjAH7yqq6VkZJkltmJO/cTlhvZ9b85Hp2bXZTT9pzaUPfMgAvq"
shared_max_age = "1m"
"#;
    std::fs::write(&path, text).unwrap();
    let Err(error) = load(&path, &|_| None) else {
        panic!("the file has errors");
    };
    let problems = format!("{error:?}");
    for expected in [
        "lower-case letters, digits and hyphens",
        "there is no monitor and no group `wep`",
        "did you mean `web`?",
        "must be a colour such as",
        "is not a PNG, JPEG or WebP picture",
        "`sv` is not one of en, de, fr, es, it, pt, nl, zh, ja, ko",
        "`comic` is not one of sans, serif, mono, rounded",
        "`tight` is not one of normal, compact",
        "`stars` is not one of bars, solid, round, dots",
        "must load nothing, but has `url(`",
        "missing.css",
        "is not a bcrypt hash",
        "must be a URL that begins with",
        "titel",
        "`title` is missing",
        "`a` is the slug of another page",
        "must be a host name without a port",
        "must be between 1s and 1d",
        "a page with a password is kept by no shared cache",
    ] {
        assert!(problems.contains(expected), "{expected}: {problems}");
    }
}

#[test]
fn a_theme_is_in_the_style_sheet_of_its_page_alone() {
    let folder = TempDir::new().unwrap();
    let css = ".banner { border-radius: 0 }\n";
    std::fs::write(folder.path().join("own.css"), css).unwrap();
    let text = r#"
        store = "memory"
        [[monitor]]
        name = "a"
        manual = true
        [[page]]
        slug = "plain"
        title = "Plain"
        [[page]]
        slug = "own"
        title = "Own"
        font = "serif"
        density = "compact"
        bars = "dots"
        css = "own.css"
        [[page]]
        slug = "inline"
        title = "Inline"
        css = "body { --accent: #0a7d5a }"
        "#;
    let running = Running::new(folder.path(), "monitor.toml", text);
    let style_of = |slug: &str| {
        let (_, page) = running.get(&format!("/status/{slug}/"));
        assert!(!page.contains(" style="), "{page}");
        let link = page.split("rel=\"stylesheet\" href=\"").nth(1).unwrap();
        let (status, style) = running.get(link.split('"').next().unwrap());
        assert_eq!(status, StatusCode::OK);
        style
    };
    let (plain, own) = (style_of("plain"), style_of("own"));
    let more = own.strip_prefix(plain.as_str()).unwrap();
    for part in ["Georgia", ".component{padding:8px 0 7px}", "aspect-ratio:1"] {
        assert!(more.contains(part), "{part}: {more}");
    }
    assert!(more.ends_with(css), "rules of its own are the last: {more}");
    assert!(style_of("inline").ends_with("body { --accent: #0a7d5a }"));
}

#[test]
fn gatus_has_one_page_and_its_password() {
    let folder = TempDir::new().unwrap();
    let origin = Origin::hello();
    let endpoint = format!(
        "endpoints:\n  - name: web\n    group: core\n    url: {}\n    interval: 1s\n    conditions: [\"[STATUS] == 200\"]\n",
        origin.url("/")
    );
    let text = format!("ui:\n  title: My services\n{endpoint}");
    let running = Running::new(folder.path(), "config.yaml", &text);
    eventually(|| running.get("/").1.contains("All systems operational"));
    assert!(running.get("/").1.contains("My services"));
    // `john.doe` and `hunter2`, as in Gatus's documentation.
    let hash = "JDJhJDEwJHRiMnRFakxWazZKdXBzRERQazB1TE8vckRLY05Yb1hSdnoxWU0yQ1FaYXZRSW1McmladDYu";
    let guarded = format!(
        "security:\n  basic:\n    username: john.doe\n    password-bcrypt-base64: \"{hash}\"\n{text}"
    );
    let running = Running::new(&folder.path().join(""), "guarded.yaml", &guarded);
    let refused = running.response(Method::GET, "/", &[], "");
    assert_eq!(refused.status(), StatusCode::UNAUTHORIZED);
    assert!(refused.headers().contains_key("www-authenticate"));
}

#[test]
fn where_there_is_no_page_a_browser_gets_one_and_a_program_json() {
    let folder = TempDir::new().unwrap();
    let text = "store = \"memory\"\n[[monitor]]\nname = \"m\"\nmanual = true\n";
    let running = Running::new(folder.path(), "monitor.toml", text);
    for path in ["/", "/status/none/", "/status/none/history"] {
        let browser = [("accept", "text/html,application/xhtml+xml,*/*;q=0.8")];
        let found = running.response(Method::GET, path, &browser, "");
        assert_eq!(found.status(), StatusCode::NOT_FOUND, "{path}");
        let body = found.body();
        assert!(body.contains("<h1>There is no such page</h1>"), "{body}");
        let policy = found.headers()["content-security-policy"].to_str().unwrap();
        assert!(policy.contains("default-src"), "{policy}");
        let (status, text) = running.get(path);
        assert_eq!(status, StatusCode::NOT_FOUND);
        assert!(text.starts_with("{\"error\":"), "{path}: {text}");
    }
    let fields = [("accept", "text/html")];
    let (status, text) = running.call(Method::GET, "/api/v1/nothing", &fields, "");
    assert_eq!(status, StatusCode::NOT_FOUND);
    assert!(text.starts_with("{\"error\":"), "{text}");
}
