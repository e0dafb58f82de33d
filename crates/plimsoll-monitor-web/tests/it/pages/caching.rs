//! What is compressed, revalidated and shared.

use http::{Method, StatusCode};
use plimsoll_testkit::{Origin, eventually};
use tempfile::TempDir;

use super::passwords::basic;
use super::text;
use crate::client::Running;

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
