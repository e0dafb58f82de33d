//! Which file answers, and with which fields.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::symlink;

use crate::server::Site;

const PAGE: &[u8] = b"<!doctype html><title>x</title>";

#[test]
fn a_page_says_what_it_is() {
    let site = Site::new(&[("index.html", PAGE), ("app.3f2a9c1b.js", b"1")], "");
    let page = site.get("/");
    assert_eq!(page.status, 200);
    assert_eq!(page.body, PAGE);
    for (name, value) in [
        ("content-type", "text/html; charset=utf-8"),
        ("cache-control", "no-cache"),
        ("accept-ranges", "bytes"),
        ("content-length", "31"),
    ] {
        assert_eq!(page.joined_field(name).as_deref(), Some(value), "{name}");
    }
    assert!(page.joined_field("etag").unwrap().starts_with("W/\""));
    assert!(page.joined_field("last-modified").is_some());
    assert!(page.joined_field("date").is_some());
    let head = site.ask("HEAD", "/", "");
    assert_eq!(head.body, b"");
    let undated = |head: &str| -> Vec<String> {
        let lines = head.lines().filter(|line| !line.starts_with("date"));
        lines.map(str::to_owned).collect()
    };
    assert_eq!(undated(&head.head), undated(&page.head));
    let hashed = site.get("/app.3f2a9c1b.js?v=1");
    let forever = "public, max-age=31536000, immutable";
    assert_eq!(
        hashed.joined_field("cache-control").as_deref(),
        Some(forever)
    );
}

#[test]
fn methods_that_change_things_are_refused() {
    let site = Site::new(&[("index.html", PAGE)], "");
    let options = site.ask("OPTIONS", "/", "");
    assert_eq!((options.status, options.body.len()), (204, 0));
    for method in ["POST", "PUT", "DELETE", "PATCH", "TRACE"] {
        let refused = site.ask(method, "/", "");
        assert_eq!(refused.status, 405);
        assert_eq!(
            refused.joined_field("allow").as_deref(),
            Some("GET, HEAD, OPTIONS")
        );
    }
}

#[test]
fn nothing_outside_can_be_reached() {
    let site = Site::new(
        &[("a/b.txt", b"b"), (".env", b"secret"), ("_headers", b"x")],
        "",
    );
    fs::write(site.outside().join("secret"), "secret").unwrap();
    symlink("../secret", site.root().join("out")).unwrap();
    symlink("/etc/passwd", site.root().join("absolute")).unwrap();
    symlink("..", site.root().join("up")).unwrap();
    symlink("a/b.txt", site.root().join("within")).unwrap();
    for path in [
        "/../secret",
        "/%2e%2e/secret",
        "/a/..%2f..%2fsecret",
        "/a/%2e%2e%2f%2e%2e%2fsecret",
        "/..%5csecret",
        "/..\\secret",
        "/%252e%252e/secret",
        "/%c0%ae%c0%ae/secret",
        "/a%00.txt",
        "/out",
        "/absolute",
        "/up/secret",
        "/up/",
        "/.env",
        "/%2eenv",
        "/_headers",
        "//etc/passwd",
        "/a/b.txt/",
        "/%",
    ] {
        let answer = site.get(path);
        assert!(!answer.text().contains("secret"), "{path}: {answer:?}");
        assert!(
            [308, 400, 404].contains(&answer.status),
            "{path}: {answer:?}"
        );
    }
    assert_eq!(site.get("/within").body, b"b");
}

#[test]
fn redirects_stay_on_their_host_and_keep_the_query() {
    let site = Site::new(
        &[("docs/index.html", PAGE), ("evil.example/index.html", PAGE)],
        "",
    );
    for (path, location) in [
        ("/docs?a=b", "/docs/?a=b"),
        ("//evil.example", "/evil.example/"),
        ("///evil.example//?x", "/evil.example/?x"),
    ] {
        let answer = site.get(path);
        assert_eq!(answer.status, 308, "{path}");
        assert_eq!(
            answer.joined_field("location").as_deref(),
            Some(location),
            "{path}"
        );
        assert_eq!(
            answer.joined_field("cache-control").as_deref(),
            Some("no-cache")
        );
    }
}

#[test]
fn what_is_not_there_is_reported_by_the_nearest_page() {
    let files: &[(&str, &[u8])] = &[("404.html", b"top"), ("docs/404.html", b"docs")];
    let site = Site::new(files, "");
    for (path, body) in [
        ("/x", "top"),
        ("/docs/x/y", "docs"),
        ("/404.html", "top"),
        ("/404", "top"),
    ] {
        let answer = site.ask("GET", path, "if-none-match: *\r\nrange: bytes=0-0\r\n");
        assert_eq!((answer.status, answer.text()), (404, body), "{path}");
        assert_eq!(
            answer.joined_field("cache-control").as_deref(),
            Some("no-cache")
        );
    }
    let site = Site::new(&[], "");
    assert_eq!(site.get("/x").status, 404);
}

#[test]
fn a_fallback_answers_pages_but_not_files() {
    let site = Site::new(&[("index.html", PAGE)], "fallback = \"index.html\"");
    let page = site.get("/users/7");
    assert_eq!((page.status, &page.body[..]), (200, PAGE));
    assert_eq!(site.get("/missing.js").status, 404);
}

#[test]
fn directories_are_listed_only_if_that_is_requested() {
    let files: &[(&str, &[u8])] = &[("d/b&c.txt", b"12345"), ("d/e/f", b""), ("d/.h", b"")];
    assert_eq!(Site::new(files, "").get("/d/").status, 404);
    let site = Site::new(files, "listing = true");
    symlink("/etc", site.root().join("d/out")).unwrap();
    let page = site.get("/d/");
    assert!(
        page.text()
            .contains("<a href=\"./b&amp;c.txt\">b&amp;c.txt</a>"),
        "{}",
        page.text()
    );
    assert!(page.text().contains("./e/"), "{}", page.text());
    for hidden in [".h", "out"] {
        assert!(!page.text().contains(hidden), "{}", page.text());
    }
    let json = site.ask("GET", "/d/", "accept: application/json\r\n");
    assert_eq!(
        json.joined_field("content-type").as_deref(),
        Some("application/json")
    );
    assert!(json.text().starts_with("[{"), "{}", json.text());
    assert!(json.text().contains("\"size_bytes\":5"), "{}", json.text());
    assert_eq!(
        site.get("/d").joined_field("location").as_deref(),
        Some("/d/")
    );
}

#[test]
fn copies_beside_files_go_to_clients_that_accept_them() {
    let plain = "x".repeat(600);
    let files: &[(&str, &[u8])] = &[
        ("a.css", plain.as_bytes()),
        ("a.css.gz", b"gzip-copy"),
        ("a.css.br", b"br-copy"),
        ("b.css", b"b"),
        ("b.css.gz", b"longer than the original"),
    ];
    let site = Site::new(files, "");
    let mut tags = Vec::new();
    for (accept, coding, body) in [
        ("", None, plain.as_bytes()),
        ("accept-encoding: gzip, br\r\n", Some("br"), b"br-copy"),
        (
            "accept-encoding: gzip;q=1, br;q=0.5\r\n",
            Some("gzip"),
            b"gzip-copy",
        ),
        ("accept-encoding: gzip;q=0\r\n", None, plain.as_bytes()),
        ("accept-encoding: x-gzip\r\n", Some("gzip"), b"gzip-copy"),
    ] {
        let answer = site.ask("GET", "/a.css", accept);
        assert_eq!(answer.body, body, "{accept}");
        assert_eq!(
            answer.joined_field("content-encoding").as_deref(),
            coding,
            "{accept}"
        );
        assert_eq!(
            answer.joined_field("vary").as_deref(),
            Some("accept-encoding")
        );
        assert_eq!(
            answer.joined_field("content-type").as_deref(),
            Some("text/css; charset=utf-8")
        );
        tags.push(answer.joined_field("etag").unwrap());
    }
    assert_eq!(tags[0], tags[3]);
    assert_eq!(tags[2], tags[4]);
    assert!(tags[0] != tags[1] && tags[1] != tags[2] && tags[0] != tags[2]);
    assert_eq!(
        site.ask("GET", "/b.css", "accept-encoding: gzip\r\n").body,
        b"b"
    );
}

#[test]
fn what_has_no_copy_is_compressed_once_and_only_if_that_helps() {
    let short = "words ".repeat(200);
    let long = "words and more words ".repeat(40_000);
    let files: &[(&str, &[u8])] = &[
        ("short.txt", short.as_bytes()),
        ("long.txt", long.as_bytes()),
        ("tiny.txt", b"tiny"),
        ("image.png", short.as_bytes()),
    ];
    let site = Site::new(files, "");
    for (path, content) in [("/short.txt", &short), ("/long.txt", &long)] {
        let mut tags = Vec::new();
        for _ in 0..2 {
            let answer = site.ask("GET", path, "accept-encoding: gzip\r\n");
            assert_eq!(
                answer.joined_field("content-encoding").as_deref(),
                Some("gzip"),
                "{path}"
            );
            let mut text = String::new();
            let decoder = flate2::read::GzDecoder::new(&answer.body[..]);
            decoder.take(1 << 22).read_to_string(&mut text).unwrap();
            assert!(&text == content, "{path}");
            tags.push(answer.joined_field("etag").unwrap());
        }
        assert_eq!(tags[0], tags[1]);
        assert!(tags[0].ends_with("-gzip\""), "{tags:?}");
        let plain = site.get(path);
        assert_eq!(
            plain.joined_field("vary").as_deref(),
            Some("accept-encoding")
        );
        assert!(plain.body == content.as_bytes());
        // A 304 names the form that it is about.
        let fields = format!("accept-encoding: gzip\r\nif-none-match: {}\r\n", tags[0]);
        let same = site.ask("GET", path, &fields);
        assert_eq!(same.status, 304);
        assert_eq!(same.joined_field("etag"), Some(tags[0].clone()));
        assert_eq!(
            same.joined_field("vary").as_deref(),
            Some("accept-encoding")
        );
        // Ranges are those of the content as it is.
        let part = site.ask("GET", path, "accept-encoding: gzip\r\nrange: bytes=0-4\r\n");
        assert_eq!((part.status, part.text()), (206, "words"));
        assert_eq!(part.joined_field("content-encoding"), None);
    }
    for path in ["/tiny.txt", "/image.png"] {
        let answer = site.ask("GET", path, "accept-encoding: gzip\r\n");
        assert_eq!(answer.joined_field("content-encoding"), None, "{path}");
        assert_eq!(answer.joined_field("vary"), None, "{path}");
    }
    let site = Site::new(files, "compress = false");
    let answer = site.ask("GET", "/short.txt", "accept-encoding: gzip\r\n");
    assert_eq!(answer.joined_field("content-encoding"), None);
}

#[test]
fn a_prefix_is_taken_off_and_put_back() {
    let routes = "[[route]]\nprefix = \"/docs\"\nfiles = { root = \"site\" }\n";
    let site = Site::with_routes(&[("a/index.html", PAGE), ("index.html", b"top")], routes);
    assert_eq!(site.get("/docs/").body, b"top");
    assert_eq!(site.get("/docs/a/").body, PAGE);
    assert_eq!(
        site.get("/docs/a").joined_field("location").as_deref(),
        Some("/docs/a/")
    );
    assert_eq!(
        site.get("/docs").joined_field("location").as_deref(),
        Some("/docs/")
    );
    assert_eq!(site.get("/a/").status, 404);
}

#[test]
fn it_keeps_to_the_contract_of_actions() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("index.html"), vec![b'x'; 100_000]).unwrap();
    let plan = plimsoll_site::SitePlan::default();
    let make = plimsoll_site::directory(directory.path().to_owned(), plan);
    plimsoll_server::contract::action(make);
}

#[test]
fn header_bombs_are_refused_and_others_are_served() {
    let site = Site::new(&[("index.html", PAGE)], "");
    let many = "x: y\r\n".repeat(5_000);
    let long = format!("x: {}\r\n", "y".repeat(200_000));
    for bomb in [many, long] {
        let refused = site.ask("GET", "/", &bomb);
        assert_eq!(refused.status, 431, "{refused:?}");
        assert_eq!(site.get("/").body, PAGE);
    }
}

#[test]
fn a_listing_is_sorted_by_its_query_and_reloads_itself_in_development() {
    let files: &[(&str, &[u8])] = &[("d/a.txt", &[b'x'; 2500]), ("d/b.txt", b"12345")];
    let site = Site::new(files, "listing = true");
    let order = |path: &str| {
        let page = site.get(path);
        let at = |name: &str| page.text().find(name).unwrap();
        at("a.txt") < at("b.txt")
    };
    assert!(order("/d/"));
    assert!(!order("/d/?sort=size"));
    assert!(order("/d/?sort=size&order=desc"));
    assert!(
        site.get("/d/")
            .text()
            .contains("title=\"2,500 bytes\">2.50 kB<"),
        "{}",
        site.get("/d/").text()
    );
    assert!(!site.get("/d/").text().contains("<script"));
    let site = Site::new(files, "listing = true, live = true");
    let page = site.get("/d/");
    assert!(
        page.text().contains("<script src=\"/.plimsoll/live.js\""),
        "{}",
        page.text()
    );
    let policy = page.joined_field("content-security-policy").unwrap();
    assert!(policy.contains("script-src 'self'"), "{policy}");
    assert_eq!(
        page.joined_field("cache-control").as_deref(),
        Some("no-store, no-transform")
    );
}

#[test]
fn a_site_below_a_prefix_is_the_same_in_every_spelling_of_it() {
    let files: &[(&str, &[u8])] = &[("a.txt", b"a")];
    let routes = "[[route]]\nprefix = \"/docs\"\nfiles = { root = \"site\" }\n";
    let site = Site::with_routes(files, routes);
    for path in ["/docs/a.txt", "/DOCS/a.txt", "/%64ocs/a.txt"] {
        assert_eq!(site.get(path).body, b"a", "{path}");
    }
    assert_eq!(site.get("/docs/A.txt").status, 404);
    let answer = site.ask("OPTIONS", "*", "");
    assert_eq!(answer.status, 204);
    assert_eq!(
        answer.joined_field("allow").as_deref(),
        Some("GET, HEAD, OPTIONS")
    );
    let mut stream = site.connect();
    stream
        .write_all(b"CONNECT a:443 HTTP/1.1\r\nhost: a:443\r\nconnection: close\r\n\r\n")
        .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 405 "), "{answer}");
    assert!(answer.contains("allow: GET, HEAD, OPTIONS"), "{answer}");
}

#[test]
fn a_name_with_escapes_in_it_is_found_by_its_own_path_alone() {
    let files: &[(&str, &[u8])] = &[("a%2Fb", b"escaped"), ("\u{fffd}", b"replaced")];
    let site = Site::new(files, "");
    for _ in 0..2 {
        assert_eq!(site.get("/a%252Fb").body, b"escaped");
        assert_eq!(site.get("/a%2Fb").status, 400);
        assert_eq!(site.get("/%EF%BF%BD").body, b"replaced");
        assert_eq!(site.get("/%ff").status, 400);
    }
}
