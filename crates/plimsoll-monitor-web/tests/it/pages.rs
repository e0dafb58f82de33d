//! Status pages: what they show, who may see them, and when they change.

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
    assert!(over.contains(">Web ü &#38; Co is down</a>"), "{over}");
    assert_eq!(over.matches("<li><h3>").count(), 14, "a heading per day");
    assert_eq!(over.matches("No incidents.</p>").count(), 13);
    let incidents = running.json("/api/v2/incidents.json");
    let incident = &incidents["incidents"][0];
    assert_eq!(incident["status"], "resolved");
    let link = incident["shortlink"].as_str().unwrap();
    let link_path = link.strip_prefix("http://localhost").unwrap();
    assert!(
        page(link_path).contains("Web ü &#38; Co is down"),
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
fn maintenance_names_its_day_once_and_the_calendar_has_all_of_it() {
    let folder = TempDir::new().unwrap();
    let text = r#"
        store = "memory"
        [[monitor]]
        name = "m"
        manual = true
        [[page]]
        slug = "p"
        title = "P"
        [[maintenance]]
        name = "patches"
        cron = "30 10 * * *"
        duration = "1h"
        "#;
    let running = Running::new(folder.path(), "monitor.toml", text);
    let count = |path: &str, text: &str| running.get(path).1.matches(text).count();
    eventually(|| count("/", ">Scheduled</span>") == 3);
    assert!(count("/", "data-from=") >= 3);
    // One more begins or is under way on the day of the test, depending on its time.
    assert!((14..=15).contains(&count("/calendar.ics", "BEGIN:VEVENT")));
}

#[test]
fn entity_tags_languages_and_compression() {
    let folder = TempDir::new().unwrap();
    let origin = Origin::hello();
    let running = Running::new(
        folder.path(),
        "monitor.toml",
        &text(&origin.address().to_string()),
    );
    let get = |path: &str, fields: &[(&str, &str)]| running.response(Method::GET, path, fields, "");
    eventually(|| running.get("/").1.contains("All systems operational"));
    let first = get("/status/acme/", &[]);
    // The page may change between two requests: its monitor goes on.
    eventually(|| {
        let tag = get("/status/acme/", &[]).headers()["etag"].clone();
        let again = get("/status/acme/", &[("if-none-match", tag.to_str().unwrap())]);
        again.status() == StatusCode::NOT_MODIFIED && again.body().is_empty()
    });
    let policy = first.headers()["content-security-policy"].to_str().unwrap();
    assert!(
        policy.contains("default-src 'none'") && !policy.contains("unsafe"),
        "{policy}"
    );
    assert!(!first.body().contains("<script>") && !first.body().contains(" style="));
    let compressed = get("/status/acme/", &[("accept-encoding", "gzip")]);
    assert_eq!(compressed.headers()["content-encoding"], "gzip");
    for (language, expected) in [
        ("de-AT, en;q=0.5", "Alle Systeme funktionieren"),
        ("fr", "Tous les systèmes fonctionnent"),
        ("es", "Todos los sistemas funcionan"),
        ("it-CH", "Tutti i sistemi sono operativi"),
        ("pt-BR", "Todos os sistemas operacionais"),
        ("nl", "Alle systemen werken"),
        ("zh-CN", "所有系统运行正常"),
        ("ja", "すべてのシステムは正常に稼働しています"),
        ("ko", "모든 시스템 정상 작동"),
        ("sv", "All systems operational"),
    ] {
        let page = get("/", &[("accept-language", language)]);
        assert!(page.body().contains(expected), "{language}");
    }
    let chosen = get("/?lang=de", &[]);
    assert!(
        chosen.headers()["set-cookie"]
            .to_str()
            .unwrap()
            .starts_with("lang=de;")
    );
    assert!(
        get("/", &[("cookie", "lang=de")])
            .body()
            .contains("lang=\"de\"")
    );
    // Style and script are named by their content, and may be kept for ever.
    let name = first
        .body()
        .split("/assets/")
        .nth(1)
        .unwrap()
        .split('"')
        .next()
        .unwrap();
    let style = get(&format!("/status/acme/assets/{name}"), &[]);
    assert!(
        style.headers()["cache-control"]
            .to_str()
            .unwrap()
            .contains("immutable")
    );
    let slashless = get("/status/acme", &[]);
    assert_eq!(slashless.headers()["location"], "/status/acme/");
    assert_eq!(get("/status/none/", &[]).status(), StatusCode::NOT_FOUND);
    let missing = get("/incidents/m99", &[]);
    assert_eq!(missing.status(), StatusCode::NOT_FOUND);
    assert!(missing.body().contains("Page not found."));
    for path in ["/status/acme/nothing", "/nothing", "/wp-login.php"] {
        let missing = get(path, &[("accept-language", "de")]);
        assert_eq!(missing.status(), StatusCode::NOT_FOUND, "{path}");
        let text = missing.body();
        assert!(text.contains("<html lang=\"de\">"), "{path}: {text}");
        assert!(text.contains("/\""), "it leads back: {text}");
    }
    for path in ["/api/v1/nothing", "/status/acme/nothing.json"] {
        let missing = get(path, &[]);
        assert_eq!(missing.status(), StatusCode::NOT_FOUND, "{path}");
        assert!(missing.body().starts_with("{\"error\""), "{path}");
    }
    let embed = get("/embed", &[]);
    let policy = embed.headers()["content-security-policy"].to_str().unwrap();
    assert!(policy.contains("frame-ancestors *"), "{policy}");
    let calendar = get("/calendar.ics", &[]);
    assert!(calendar.body().starts_with("BEGIN:VCALENDAR\r\n"));
}

#[test]
fn shared_caches_keep_what_everyone_may_see() {
    let folder = TempDir::new().unwrap();
    let origin = Origin::hello();
    let text = text(&origin.address().to_string());
    let shared = "title = \"Acme <b>\"\nshared_max_age = \"1m\"";
    let text = text.replace("title = \"Acme <b>\"", shared);
    let running = Running::new(folder.path(), "monitor.toml", &text);
    let get = |path: &str, fields: &[(&str, &str)]| running.response(Method::GET, path, fields, "");
    eventually(|| running.get("/").1.contains("All systems operational"));
    let page = "public, max-age=5, s-maxage=60, stale-while-revalidate=30, stale-if-error=86400";
    for path in ["", "history", "embed", "api/v2/summary.json", "badge.svg"] {
        let response = get(&format!("/status/acme/{path}"), &[]);
        let fields = response.headers();
        assert_eq!(fields["cache-control"], page, "{path}");
        assert_eq!(fields["surrogate-key"], "status-acme", "{path}");
        assert_eq!(fields["cache-tag"], "status-acme", "{path}");
    }
    let tag = get("/", &[]).headers()["etag"].clone();
    let known = get("/", &[("if-none-match", tag.to_str().unwrap())]);
    assert_eq!(known.headers()["cache-control"], page, "a 304 says so too");
    for (path, fields) in [
        ("/?lang=de", &[][..]),
        ("/incidents/m99", &[]),
        ("/", &[("host", "inside.example")]),
        (
            "/",
            &[
                ("host", "inside.example"),
                ("authorization", &*basic("pass")),
            ],
        ),
    ] {
        let response = get(path, fields);
        let caching = &response.headers()["cache-control"];
        assert!(
            !caching.to_str().unwrap().contains("s-maxage"),
            "{path}: {caching:?}"
        );
        assert!(!response.headers().contains_key("surrogate-key"), "{path}");
    }
}

#[test]
fn the_first_view_is_small() {
    let folder = TempDir::new().unwrap();
    let origin = Origin::hello();
    let running = Running::new(
        folder.path(),
        "monitor.toml",
        &text(&origin.address().to_string()),
    );
    eventually(|| running.get("/").1.contains("All systems operational"));
    let length = |path: &str| {
        let response = running.response(Method::GET, path, &[("accept-encoding", "gzip")], "");
        let length = response.headers()["content-length"].to_str().unwrap();
        length.parse::<usize>().unwrap()
    };
    let page = running.get("/").1;
    let assets = page.split("/assets/").skip(1);
    let assets = assets.map(|rest| length(&format!("/assets/{}", rest.split('"').next().unwrap())));
    let whole = length("/") + assets.sum::<usize>();
    assert!(whole < 20_000, "{whole} bytes");
}

#[test]
fn a_password_opens_a_page_and_nothing_else_does() {
    let folder = TempDir::new().unwrap();
    let origin = Origin::hello();
    let running = Running::new(
        folder.path(),
        "monitor.toml",
        &text(&origin.address().to_string()),
    );
    let host = ("host", "inside.example");
    let get = |path: &str, more: &[(&str, &str)]| {
        let fields = [&[host], more].concat();
        running.response(Method::GET, path, &fields, "")
    };
    for path in [
        "/",
        "/api/v2/summary.json",
        "/feed.atom",
        "/events",
        "/history",
        "/embed",
    ] {
        let refused = get(path, &[]);
        assert_eq!(refused.status(), StatusCode::UNAUTHORIZED, "{path}");
        assert!(!refused.body().contains("Web"), "{path}");
    }
    let sign_in = |password: &str, origin: &str| {
        let fields = [host, ("origin", origin)];
        let form = format!("password={password}");
        running.response(Method::POST, "/sign-in", &fields, &form)
    };
    let own = "http://inside.example";
    assert_eq!(sign_in("wrong", own).status(), StatusCode::UNAUTHORIZED);
    assert_eq!(
        sign_in("pass", "http://evil.example").status(),
        StatusCode::FORBIDDEN
    );
    let signed_in = sign_in("pass", own);
    assert_eq!(signed_in.status(), StatusCode::SEE_OTHER);
    let cookie = signed_in.headers()["set-cookie"].to_str().unwrap();
    assert!(
        cookie.contains("HttpOnly") && cookie.contains("SameSite=Lax"),
        "{cookie}"
    );
    let session = cookie.split(';').next().unwrap();
    assert_eq!(get("/", &[("cookie", session)]).status(), StatusCode::OK);
    let forged = session.replace("page-inside=", "page-inside=9");
    assert_eq!(
        get("/", &[("cookie", &forged)]).status(),
        StatusCode::UNAUTHORIZED
    );
    // Programs use basic authentication: `page:pass`.
    let basic = ("authorization", "Basic cGFnZTpwYXNz");
    assert_eq!(get("/feed.atom", &[basic]).status(), StatusCode::OK);
    for _ in 0..10 {
        sign_in("wrong", own);
    }
    assert_eq!(sign_in("pass", own).status(), StatusCode::TOO_MANY_REQUESTS);
}

/// A page with this password, for clients of proxies in 10.0.0.0/8.
fn with_password(password: &str) -> String {
    let hash = bcrypt::hash(password, 4).unwrap();
    format!(
        "store = \"memory\"\ntrusted_proxies = \"10.0.0.0/8\"\n\
         [[monitor]]\nname = \"web\"\nmanual = true\n\
         [[page]]\nslug = \"inside\"\ntitle = \"Inside\"\npassword_bcrypt = \"{hash}\"\n"
    )
}

fn basic(password: &str) -> String {
    use base64::Engine as _;
    let credentials = base64::prelude::BASE64_STANDARD.encode(format!("page:{password}"));
    format!("Basic {credentials}")
}

#[test]
fn passwords_by_basic_and_by_the_form_have_one_limit() {
    let folder = TempDir::new().unwrap();
    let running = Running::new(folder.path(), "monitor.toml", &with_password("pass"));
    let get = |password: &str, client: [u8; 4]| {
        let credentials = basic(password);
        let fields = [("authorization", credentials.as_str())];
        let client = Some(client.into());
        running.response_from(client, Method::GET, "/status/inside/feed.atom", &fields, "")
    };
    let [one, other] = [[192, 0, 2, 1], [192, 0, 2, 2]];
    assert_eq!(get("pass", other).status(), StatusCode::OK);
    for _ in 0..10 {
        assert_eq!(get("wrong", one).status(), StatusCode::UNAUTHORIZED);
    }
    for password in ["wrong", "also-wrong"] {
        let refused = get(password, one);
        assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
        assert!(refused.headers().contains_key("retry-after"));
    }
    let form = |password: &str| {
        let body = format!("password={password}");
        let path = "/status/inside/sign-in";
        running.response_from(Some(one.into()), Method::POST, path, &[], &body)
    };
    assert_eq!(form("pass").status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(
        get("pass", other).status(),
        StatusCode::OK,
        "another source"
    );
}

#[test]
fn a_right_password_that_nobody_gave_yet_counts_as_an_attempt_too() {
    let folder = TempDir::new().unwrap();
    let running = Running::new(folder.path(), "monitor.toml", &with_password("pass"));
    let get = |password: &str| {
        let credentials = basic(password);
        let fields = [("authorization", credentials.as_str())];
        running.response(Method::GET, "/status/inside/feed.atom", &fields, "")
    };
    for number in 0..30 {
        get(&format!("wrong-{number}"));
    }
    assert_eq!(get("pass").status(), StatusCode::TOO_MANY_REQUESTS);
}

#[test]
fn limits_count_the_clients_that_trusted_proxies_name() {
    let folder = TempDir::new().unwrap();
    let running = Running::new(folder.path(), "monitor.toml", &with_password("pass"));
    let wrong = basic("wrong");
    let attempts = |peer: [u8; 4], client: &dyn Fn(u8) -> String| {
        let statuses = (0..11).map(|number| {
            let client = client(number);
            let fields = [
                ("authorization", wrong.as_str()),
                ("x-forwarded-for", client.as_str()),
            ];
            let path = "/status/inside/feed.atom";
            let peer = Some(peer.into());
            let response = running.response_from(peer, Method::GET, path, &fields, "");
            response.status().as_u16()
        });
        statuses.last()
    };
    let each = |number: u8| format!("203.0.113.{number}");
    let same = |_: u8| "203.0.113.100".to_owned();
    assert_eq!(attempts([10, 0, 0, 1], &each), Some(401));
    assert_eq!(attempts([10, 0, 0, 1], &same), Some(429));
    assert_eq!(attempts([198, 51, 100, 1], &each), Some(429), "not trusted");
}

#[test]
fn another_password_ends_the_sessions_of_a_page() {
    let folder = TempDir::new().unwrap();
    let running = Running::new(folder.path(), "monitor.toml", &with_password("pass"));
    let signed_in = |password: &str| {
        let body = format!("password={password}");
        let response = running.response(Method::POST, "/status/inside/sign-in", &[], &body);
        let cookie = response.headers()["set-cookie"].to_str().unwrap();
        cookie.split(';').next().unwrap().to_owned()
    };
    let sees = |cookie: &str| {
        let fields = [("cookie", cookie)];
        let response = running.response(Method::GET, "/status/inside/", &fields, "");
        response.status() == StatusCode::OK
    };
    let reload = |text: &str| {
        let path = folder.path().join("monitor.toml");
        std::fs::write(&path, text).unwrap();
        let plan = load(&path, &|_| None).unwrap();
        running
            .block_on(running.monitor.handle().reload(plan))
            .unwrap();
    };
    let cookie = signed_in("pass");
    assert!(sees(&cookie));
    let text = std::fs::read_to_string(folder.path().join("monitor.toml")).unwrap();
    reload(&format!("{text}\n"));
    assert!(sees(&cookie), "the same password");
    reload(&with_password("other"));
    assert!(!sees(&cookie));
    assert!(sees(&signed_in("other")));
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
    assert_eq!(stale.0, StatusCode::CONFLICT);
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
fn maintenance_that_is_over_is_completed_in_json_and_history() {
    let folder = TempDir::new().unwrap();
    let now = jiff::Timestamp::now();
    let began = now - jiff::SignedDuration::from_hours(3);
    let text = format!(
        r#"
        store = "memory"
        [[monitor]]
        name = "m"
        manual = true
        [[page]]
        slug = "p"
        title = "P"
        [[maintenance]]
        name = "move"
        once = "{began}"
        duration = "1h"
        [[maintenance]]
        name = "long ago"
        once = "2025-01-31T23:30:00Z"
        duration = "1h"
        [[maintenance]]
        name = "now"
        once = "{began}"
        duration = "9h"
        [[maintenance]]
        name = "never before"
        cron = "0 3 * * *"
        duration = "1h"
        "#
    );
    let running = Running::new(folder.path(), "monitor.toml", &text);
    eventually(|| running.get("/").1.contains("In progress"));
    let all = |path: &str| {
        let answer = running.json(&format!("/api/v2/{path}"));
        let all = answer["scheduled_maintenances"].as_array().unwrap().clone();
        let of = |name: &str| all.iter().find(|one| one["name"] == name).cloned();
        [of("now"), of("move"), of("long ago"), of("never before")]
    };
    let path = "scheduled-maintenances.json";
    let [under_way, over, old, recurring] = all(path);
    assert_eq!(under_way.unwrap()["status"], "in_progress");
    let over = over.unwrap();
    assert_eq!(over["status"], "completed");
    let moment = |field: &str| over[field].as_str().unwrap().parse::<jiff::Timestamp>();
    let millis = |at: jiff::Timestamp| at.as_millisecond();
    let ended = began + jiff::SignedDuration::from_hours(1);
    assert_eq!(
        millis(moment("scheduled_for").unwrap()),
        millis(began),
        "{over}"
    );
    for field in ["scheduled_until", "resolved_at", "updated_at"] {
        assert_eq!(millis(moment(field).unwrap()), millis(ended), "{field}");
    }
    assert_eq!(over["components"][0]["name"], "m");
    assert_eq!(old, None, "only of the last ninety days");
    // No result says that it took place.
    assert_ne!(recurring.unwrap()["status"], "completed");
    for path in ["active", "upcoming"] {
        let [_, over, ..] = all(&format!("scheduled-maintenances/{path}.json"));
        assert_eq!(over, None, "{path}");
    }
    let summary = running.json("/api/v2/summary.json").to_string();
    assert!(!summary.contains("completed"), "{summary}");
    let month = began.to_zoned(jiff::tz::TimeZone::UTC).strftime("%Y-%m");
    let page = running.get(&format!("/history/{month}")).1;
    assert_eq!(page.matches(">move</a></h3>").count(), 1, "{page}");
    assert!(!page.contains(">now</a></h3>"), "it is not over: {page}");
    let page = running.get("/history/2025-01").1;
    assert!(page.contains(">long ago</a></h3>"), "{page}");
    assert!(page.contains(">Completed</span>"), "{page}");
    let page = running.get("/history/2025-02").1;
    assert!(!page.contains(">long ago</a></h3>"), "{page}");
}

#[test]
fn each_maintenance_has_a_page() {
    let folder = TempDir::new().unwrap();
    let now = jiff::Timestamp::now();
    let began = now - jiff::SignedDuration::from_hours(3);
    // Occurrences that come are never under way, whatever time of the day it is.
    let hour = now.to_zoned(jiff::tz::TimeZone::UTC).hour();
    let [night, early, late] = [5, 6, 18].map(|later| (hour + later) % 24);
    let text = format!(
        r#"
        store = "memory"
        [[monitor]]
        name = "Search"
        manual = true
        [[monitor]]
        name = "Mail"
        manual = true
        [[page]]
        slug = "p"
        title = "P"
        [[maintenance]]
        name = "Move <1>/2 ü"
        once = "{began}"
        duration = "1h"
        monitors = ["Search"]
        [[maintenance]]
        name = "long ago"
        once = "2025-01-31T23:30:00Z"
        duration = "1h"
        [[maintenance]]
        name = "now"
        once = "{began}"
        duration = "9h"
        about = "A new <switch>, in two steps.\nMail may be late; nothing is lost."
        [[maintenance]]
        name = "patches"
        cron = "0 {night} * * *"
        duration = "1h"
        about = "Security updates"
        [[maintenance]]
        name = "backup"
        cron = "0 {early} * * *"
        duration = "10m"
        monitors = ["Search"]
        [[maintenance]]
        name = "backup"
        cron = "30 {late} * * *"
        duration = "10m"
        monitors = ["Mail"]
        "#
    );
    let running = Running::new(folder.path(), "monitor.toml", &text);
    eventually(|| running.get("/").1.contains("In progress"));
    let answer = running.json("/api/v2/scheduled-maintenances.json");
    let all = answer["scheduled_maintenances"].as_array().unwrap();
    let paths = |name: &str| -> Vec<String> {
        let found = all.iter().filter(|one| one["name"] == name);
        let links = found.map(|one| one["shortlink"].as_str().unwrap());
        links
            .map(|link| link.strip_prefix("http://localhost").unwrap().to_owned())
            .collect()
    };
    let shown = |path: &str| {
        let (status, page) = running.get(path);
        assert_eq!(status, StatusCode::OK, "{path}");
        page
    };
    let over = &paths("Move <1>/2 ü")[0];
    let page = shown(over);
    for expected in [
        "<title>Move &#60;1&#62;/2 ü – P</title>",
        ">Completed</span>",
        "<time datetime=",
        "/components/%5Fsearch\">Search</a>",
    ] {
        assert!(page.contains(expected), "{expected}: {page}");
    }
    assert!(!page.contains("Mail"), "it is not affected: {page}");
    assert!(!page.contains("Other dates"), "it took place once: {page}");
    let month = began.to_zoned(jiff::tz::TimeZone::UTC).strftime("%Y-%m");
    assert!(shown(&format!("/history/{month}")).contains(over.as_str()));
    let under_way = &paths("now")[0];
    assert!(shown(under_way).contains(">In progress</span>"));
    // The page and the calendar link the occurrences; each has links to others.
    let coming = paths("patches");
    let calendar = shown("/calendar.ics").replace("\r\n ", "");
    for path in [under_way, &coming[1], &coming[2]] {
        assert!(shown("/").contains(&format!("href=\"{path}\"")), "{path}");
        let url = format!("URL:http://localhost{path}\r\n");
        assert!(calendar.contains(&url), "{url}: {calendar}");
    }
    let page = shown(&coming[1]);
    assert!(page.contains("Other dates") && page.contains(&format!("href=\"{}\"", coming[2])));
    assert_eq!(page.matches(&coming[1]).count(), 1, "{page}");
    // Windows of one name have dates of their own.
    let backups = all.iter().filter(|one| one["name"] == "backup");
    let backups: Vec<_> = backups
        .map(|one| {
            let start = one["scheduled_for"].as_str().unwrap();
            let link = one["shortlink"].as_str().unwrap();
            (
                start.contains(&format!("T{early:02}:00")),
                link.rsplit('/').next().unwrap(),
            )
        })
        .collect();
    let (_, first) = backups.iter().find(|(is_early, _)| *is_early).unwrap();
    let page = shown(&format!("/maintenance/{first}"));
    let linked = |wanted: bool| {
        let ids = backups.iter().filter(|(is_early, _)| *is_early == wanted);
        ids.filter(|(_, id)| page.contains(&format!("/{id}\"")))
            .count()
    };
    assert!(linked(true) > 1, "{page}");
    assert_eq!(linked(false), 0, "{page}");
    assert_eq!(
        shown("/").matches(">backup</a>").count(),
        6,
        "three of each"
    );
    // Its text is everywhere; occurrences of one window share it.
    let text = "A new &#60;switch&#62;, in two steps.\nMail may be late; nothing is lost.</div>";
    assert!(shown("/").contains(text) && shown(under_way).contains(text));
    let of_calendar = "DESCRIPTION:A new <switch>\\, in two steps.\\nMail may be late\\; nothing is lost.\\nAffects Search\\, Mail\r\n";
    assert!(calendar.contains(of_calendar), "{calendar}");
    let now = all.iter().find(|one| one["name"] == "now").unwrap();
    let update = &now["incident_updates"][0];
    assert_eq!(
        update["body"],
        "A new <switch>, in two steps.\nMail may be late; nothing is lost."
    );
    assert_eq!(update["status"], "in_progress");
    assert_eq!(update["incident_id"], now["id"]);
    let backup = all.iter().find(|one| one["name"] == "backup").unwrap();
    assert_eq!(backup["incident_updates"], serde_json::json!([]));
    assert_eq!(shown("/").matches("Security updates").count(), 1);
    assert!(shown(&coming[1]).contains("Security updates"));
    let below = shown(&format!("/status/p{}", coming[1]));
    assert!(below.contains(&format!("href=\"/status/p{}\"", coming[2])));
    for (language, expected) in [
        ("de", "Weitere Termine"),
        ("fr", "Autres dates"),
        ("es", "Otras fechas"),
        ("ja", "ほかの日程"),
    ] {
        let page = running.response(
            Method::GET,
            &coming[1],
            &[("accept-language", language)],
            "",
        );
        assert!(page.body().contains(expected), "{language}");
    }
    // Older than the snapshot.
    let old = shown("/history/2025-01");
    let old = old.split("href=\"").find(|part| part.contains("long-ago"));
    let old = old.unwrap().split('"').next().unwrap();
    let page = shown(old);
    assert!(page.contains(">long ago</a></h2>"), "{old}: {page}");
    // It went on into the next month.
    for page in [page, shown("/history/2025-01")] {
        assert!(page.contains("datetime=\"2025-02-01T00:30:00Z\""), "{page}");
    }
    for missing in [
        "/maintenance",
        "/maintenance/x",
        "/maintenance/w-1-patches",
        "/maintenance/w99999999999999999999-patches",
        "/maintenance/w9223372036854775807-patches",
        // The monitor had no result then, and the page does not announce so much ahead.
        "/maintenance/w1738292400000-patches",
        "/maintenance/w4102455600000-patches",
        "/maintenance/w1738366200000-short-ago",
    ] {
        let (status, _) = running.get(missing);
        assert_eq!(status, StatusCode::NOT_FOUND, "{missing}");
    }
}
