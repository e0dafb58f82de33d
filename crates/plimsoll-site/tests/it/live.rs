//! Pages that hear of changes.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};

use plimsoll_testkit::eventually;

use crate::server::Site;

fn site() -> Site {
    let files: &[(&str, &[u8])] = &[
        ("index.html", b"<body>one</body>"),
        ("index.html.gz", b"copy"),
        ("style.css", b"a{}"),
        (
            "_headers",
            b"/*\n Content-Security-Policy: default-src 'none'\n",
        ),
    ];
    Site::new(files, "live = true, dialect = \"netlify\"")
}

#[test]
fn html_gets_the_script_and_nothing_is_kept() {
    let site = site();
    let page = site.ask("GET", "/", "accept-encoding: gzip\r\n");
    let text = page.text();
    let tag = "<body>one<script src=\"/.plimsoll/live.js\" nonce=\"plimsoll-live\" data-site=\"";
    assert!(text.starts_with(tag), "{text}");
    assert!(text.ends_with("\"></script></body>"), "{text}");
    assert_eq!(page.joined_field("content-encoding"), None);
    assert_eq!(
        page.joined_field("content-security-policy").as_deref(),
        Some("default-src 'none'; script-src 'self'; connect-src 'self'")
    );
    let style = site.get("/style.css");
    assert_eq!(style.text(), "a{}");
    let script = site.get("/.plimsoll/live.js");
    assert!(script.text().contains("new EventSource"), "{script:?}");
    for answer in [page, style, script] {
        let kept = answer.joined_field("cache-control");
        assert_eq!(kept.as_deref(), Some("no-store, no-transform"));
    }
    fs::write(site.root().join("index.html"), "<p>two").unwrap();
    assert!(site.get("/").text().starts_with("<p>two<script"));
    // Only where it is requested.
    let site = Site::new(&[("index.html", b"one")], "");
    assert_eq!(site.get("/").text(), "one");
    assert_eq!(site.get("/.plimsoll/live.js").status, 404);
}

#[test]
fn a_page_hears_what_the_site_is_like_and_when_that_is_over() {
    let site = site();
    // The kernel may still report the files that were just written.
    let mut known = String::new();
    let mut events = BufReader::new(site.connect());
    events
        .get_mut()
        .write_all(b"GET /.plimsoll/live HTTP/1.1\r\nhost: a\r\n\r\n")
        .unwrap();
    let mut next = || loop {
        let mut line = String::new();
        assert!(events.read_line(&mut line).unwrap() > 0, "the stream ended");
        if let Some(state) = line.strip_prefix("data: ") {
            return state.trim().to_owned();
        }
    };
    eventually(|| {
        known = next();
        site.get("/")
            .text()
            .contains(&format!("data-site=\"{known}\""))
    });
    fs::write(site.root().join("style.css"), "b{}").unwrap();
    let other = next();
    assert_ne!(other, known);
    // A drain does not wait for those who listen.
    let Site { engine, .. } = site;
    let drained = engine.drain(std::time::Duration::from_mins(1));
    assert_eq!(drained.cut_off, 0);
    let mut rest = String::new();
    events.read_to_string(&mut rest).unwrap();
    assert!(rest.ends_with("0\r\n\r\n"), "{rest:?}");
}
