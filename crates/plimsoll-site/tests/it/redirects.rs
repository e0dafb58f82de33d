//! Rules and short links.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::thread;

use plimsoll_site::{LinkPlace, load_links};
use plimsoll_testkit::eventually;

use crate::server::Site;

fn location(site: &Site, path: &str) -> (u16, Option<String>) {
    let answer = site.get(path);
    (answer.status, answer.joined_field("location"))
}

fn to(status: u16, location: &str) -> (u16, Option<String>) {
    (status, Some(location.to_owned()))
}

#[test]
fn rules_answer_and_follow_their_file() {
    let files: &[(&str, &[u8])] = &[
        ("index.html", b"top"),
        ("old", b"file"),
        ("app.html", b"app"),
        ("_redirects", b"/old /new\n/gone /app 404\n/app/* /app.html 200\n/moved/* /new/:splat\n/forced /f 302!\n/x\n"),
        ("_headers", b"/*\n X-All: 1\n/app/*\n Cache-Control: max-age=5\n"),
        ("forced", b"file"),
    ];
    let site = Site::new(files, "dialect = \"netlify\"");
    assert_eq!(site.get("/old").body, b"file");
    assert_eq!(location(&site, "/moved/a?b=c"), to(301, "/new/a?b=c"));
    assert_eq!(location(&site, "/forced"), to(302, "/f"));
    let gone = site.get("/gone");
    assert_eq!((gone.status, gone.text()), (404, "app"));
    for path in ["/app/1", "/app/2"] {
        let page = site.get(path);
        assert_eq!((page.status, page.text()), (200, "app"));
        assert_eq!(page.joined_field("x-all").as_deref(), Some("1"));
    }
    assert_eq!(site.get("/").joined_field("x-all").as_deref(), Some("1"));
    assert_eq!(site.get("/_redirects").status, 404);
    fs::write(
        site.root().join("_redirects"),
        "/moved/* /newer/:splat 302\n",
    )
    .unwrap();
    fs::write(site.root().join("_headers"), "/*\n X-All: 2\n").unwrap();
    eventually(|| location(&site, "/moved/a") == to(302, "/newer/a"));
    eventually(|| site.get("/").joined_field("x-all").as_deref() == Some("2"));
    assert_eq!(site.get("/forced").body, b"file");

    let site = Site::new(files, "dialect = \"cloudflare\"");
    assert_eq!(location(&site, "/old"), to(302, "/new"));
    let site = Site::new(files, "");
    assert_eq!(site.get("/moved/a").status, 404);
}

#[test]
fn a_file_at_the_target_ends_a_chain() {
    let files: &[(&str, &[u8])] = &[
        ("en/about.html", b"about"),
        ("_redirects", b"/* /en/:splat 302\n"),
    ];
    let site = Site::new(files, "dialect = \"netlify\"");
    assert_eq!(location(&site, "/about"), to(302, "/en/about"));
    assert_eq!(site.get("/en/about").body, b"about");
    // Where there is none, the service redirects on; so do we.
    assert_eq!(location(&site, "/en/none"), to(302, "/en/en/none"));
}

/// A large file of rules, with chains and a rule that takes everything, answers at once and keeps up with changes.
#[test]
fn many_rules_are_served_while_they_are_looked_through() {
    let rules = |target: &str| {
        let lines = (0..20_000).map(|number| {
            format!(
                "/old-{number}/:slug /{target}-{number}/:slug 301\n/chain-{number} /chain-{} 301\n",
                number + 1
            )
        });
        lines.collect::<String>() + "/* /index.html 200\n"
    };
    let first = rules("new");
    let files: &[(&str, &[u8])] = &[("index.html", b"top"), ("_redirects", first.as_bytes())];
    let site = Site::new(files, "dialect = \"netlify\"");
    assert_eq!(location(&site, "/old-19999/x"), to(301, "/new-19999/x"));
    assert_eq!(site.get("/other").body, b"top");
    fs::write(site.root().join("_redirects"), rules("newer")).unwrap();
    eventually(|| location(&site, "/old-19999/x") == to(301, "/newer-19999/x"));
}

#[test]
fn short_links_come_from_a_file_and_follow_it() {
    let directory = tempfile::tempdir().unwrap();
    let list = directory.path().join("links.txt");
    fs::write(&list, "# links\ngh https://a.example/x\r\nbad\nindex.html https://a.example/\na/b https://b.example/\n").unwrap();
    let keys = format!(
        "redirects = {:?}, redirect_status = 302",
        list.to_str().unwrap()
    );
    let site = Site::new(&[("index.html", b"top")], &keys);
    eventually(|| location(&site, "/gh") == to(302, "https://a.example/x"));
    assert_eq!(location(&site, "/gh/"), to(302, "https://a.example/x"));
    assert_eq!(location(&site, "/a%2Fb").0, 400);
    assert_eq!(location(&site, "/a/b"), to(302, "https://b.example/"));
    assert_eq!(location(&site, "/GH").0, 404);
    // Files come first.
    assert_eq!(site.get("/index.html").body, b"top");
    fs::write(&list, "gh https://a.example/other-page\n").unwrap();
    eventually(|| location(&site, "/gh") == to(302, "https://a.example/other-page"));
    assert_eq!(site.get("/a/b").status, 404);
    // A file that is not a list leaves the last one in place.
    fs::write(&list, "<!doctype html>\n").unwrap();
    let before = site.engine.counters().snapshot().answered();
    eventually(|| {
        assert_eq!(
            location(&site, "/gh"),
            to(302, "https://a.example/other-page")
        );
        site.engine.counters().snapshot().answered() > before + 20
    });
}

/// Answers each connection with what is set, and keeps the heads that came.
struct Upstream {
    url: String,
    answer: Arc<Mutex<String>>,
    heads: Arc<Mutex<Vec<String>>>,
}

impl Upstream {
    fn start(answer: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let upstream = Self {
            url: format!("http://{}/links?key=1", listener.local_addr().unwrap()),
            answer: Arc::new(Mutex::new(answer.to_owned())),
            heads: Arc::default(),
        };
        let (answer, heads) = (Arc::clone(&upstream.answer), Arc::clone(&upstream.heads));
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let reader = BufReader::new(stream.try_clone().unwrap());
                let lines = reader.lines().map_while(Result::ok);
                let head: Vec<_> = lines.take_while(|line| !line.is_empty()).collect();
                heads.lock().unwrap().push(head.join("\n"));
                let answer = answer.lock().unwrap().clone();
                stream.write_all(answer.as_bytes()).ok();
            }
        });
        upstream
    }

    fn answers(&self, answer: &str) {
        answer.clone_into(&mut self.answer.lock().unwrap());
    }

    fn requests(&self) -> usize {
        self.heads.lock().unwrap().len()
    }
}

fn ok(fields: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 200 OK\r\n{fields}content-length: {}\r\n\r\n{body}",
        body.len()
    )
}

#[test]
fn short_links_come_from_a_url_and_the_last_good_list_stays() {
    let upstream = Upstream::start(&ok("etag: \"1\"\r\n", "gh https://a.example/1\n"));
    let keys = format!("redirects = [{:?}], refresh = \"10ms\"", upstream.url);
    let site = Site::new(&[], &keys);
    eventually(|| location(&site, "/gh") == to(308, "https://a.example/1"));
    let kept = |answer: &str| {
        upstream.answers(answer);
        let requests = upstream.requests();
        eventually(|| upstream.requests() > requests + 1);
        assert_eq!(location(&site, "/gh"), to(308, "https://a.example/1"));
    };
    kept("HTTP/1.1 304 Not Modified\r\n\r\n");
    let head = upstream.heads.lock().unwrap().last().unwrap().clone();
    assert!(head.starts_with("GET /links?key=1 HTTP/1.1"), "{head}");
    assert!(head.contains("if-none-match: \"1\""), "{head}");
    kept("HTTP/1.1 500 Internal Server Error\r\ncontent-length: 0\r\n\r\n");
    kept(&ok(
        "content-type: text/html\r\n",
        "gh https://evil.example/\n",
    ));
    kept(&ok("", "<!doctype html><title>Sign in</title>\n"));
    kept(&ok("", ""));
    kept("HTTP/1.1 200 OK\r\ncontent-length: 10000000000\r\n\r\n");
    kept("nonsense");
    upstream.answers(&ok("", "gh https://a.example/2\n"));
    eventually(|| location(&site, "/gh") == to(308, "https://a.example/2"));
}

#[test]
fn an_unknown_path_sends_no_request() {
    let upstream = Upstream::start(&ok("", "gh https://a.example/1\n"));
    let keys = format!("redirects = [{:?}], refresh = \"1h\"", upstream.url);
    let site = Site::new(&[], &keys);
    eventually(|| location(&site, "/gh").0 == 308);
    for number in 0..50 {
        assert_eq!(site.get(&format!("/unknown/{number}")).status, 404);
    }
    assert_eq!(upstream.requests(), 1);
}

#[test]
fn a_list_is_requested_again_on_demand() {
    let upstream = Upstream::start(&ok("", "gh https://a.example/1\n"));
    let routes = format!(
        "[[route]]\nfiles = {{ redirects = [{:?}], refresh = \"1h\" }}\n[admin]\naddress = \"127.0.0.1:0\"\n",
        upstream.url
    );
    let site = Site::with_routes(&[], &routes);
    eventually(|| location(&site, "/gh").0 == 308);
    upstream.answers(&ok("", "gh https://a.example/2\n"));
    assert_eq!(site.ask_admin("POST", "/redirects/refresh", "").status, 202);
    eventually(|| location(&site, "/gh") == to(308, "https://a.example/2"));
}

#[test]
fn a_link_to_itself_is_none() {
    let directory = tempfile::tempdir().unwrap();
    let list = directory.path().join("links.txt");
    fs::write(&list, "self http://a/self\nother http://a/else\n").unwrap();
    let keys = format!("redirects = {:?}", list.to_str().unwrap());
    let site = Site::new(&[], &keys);
    eventually(|| location(&site, "/other") == to(308, "http://a/else"));
    assert_eq!(site.get("/self").status, 404);
}

#[test]
fn escaped_paths_of_rules_match() {
    let rules = "/a%20b /1\n/caf%C3%A9 /2\n/x%2Dy /3\n/w%20/* /4/:splat\n/p%20q/:id /5/:id\n";
    for dialect in ["netlify", "cloudflare"] {
        let text = format!("\u{feff}/first /0\n{rules}");
        let files: &[(&str, &[u8])] = &[("_redirects", text.as_bytes())];
        let site = Site::new(files, &format!("dialect = {dialect:?}"));
        for (path, target) in [
            ("/first", "/0"),
            ("/a%20b", "/1"),
            ("/caf%C3%A9", "/2"),
            ("/x-y", "/3"),
            ("/x%2dy", "/3"),
            ("/w%20/z", "/4/z"),
            ("/p%20q/7", "/5/7"),
        ] {
            let (_, location) = location(&site, path);
            assert_eq!(location.as_deref(), Some(target), "{dialect} {path}");
        }
    }
}

#[test]
fn headers_go_by_the_requested_path_also_where_nothing_is_there() {
    let files: &[(&str, &[u8])] = &[
        ("404.html", b"none"),
        ("index.html", b"app"),
        (
            "_headers",
            b"/docs/*\n X-Where: docs\n/404.html\n X-Where: page\n/u/:id\n X-Id: :id\n/c\n Set-Cookie: a=1\n Set-Cookie: b=2\n",
        ),
        ("c", b"c"),
    ];
    let site = Site::new(files, "dialect = \"netlify\"");
    for (path, value) in [
        ("/docs/gone", Some("docs")),
        ("/gone", None),
        ("/docs/x/y", Some("docs")),
    ] {
        let answer = site.get(path);
        assert_eq!(answer.status, 404);
        assert_eq!(answer.joined_field("x-where").as_deref(), value, "{path}");
    }
    for id in ["7", "8"] {
        let answer = site.get(&format!("/u/{id}"));
        assert_eq!(answer.joined_field("x-id").as_deref(), Some(id));
    }
    let cookies = site.get("/c").head.matches("set-cookie: ").count();
    assert_eq!(cookies, 2);
    let site = Site::new(files, "dialect = \"netlify\", fallback = \"index.html\"");
    for (path, value) in [("/docs/page", Some("docs")), ("/page", None)] {
        let answer = site.get(path);
        assert_eq!((answer.status, answer.text()), (200, "app"));
        assert_eq!(answer.joined_field("x-where").as_deref(), value, "{path}");
    }
}

#[test]
fn redirects_bring_a_link_for_those_that_do_not_follow() {
    let files: &[(&str, &[u8])] = &[
        ("_redirects", b"/old https://a.example/?x=1&y=\"<b>\n"),
        ("docs/index.html", b"docs"),
    ];
    let site = Site::new(files, "dialect = \"netlify\"");
    let answer = site.get("/old");
    assert_eq!(
        answer.joined_field("content-type").as_deref(),
        Some("text/html; charset=utf-8")
    );
    let link = "<a href=\"https://a.example/?x=1&amp;y=&quot;&lt;b&gt;\">";
    assert!(answer.text().contains(link), "{}", answer.text());
    assert!(site.get("/docs").text().contains("<a href=\"/docs/\">"));
}

#[test]
fn credentials_of_a_list_are_sent_and_not_shown() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let server = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let lines = BufReader::new(stream.try_clone().unwrap()).lines();
        let head: Vec<_> = lines
            .map(Result::unwrap)
            .take_while(|line| !line.is_empty())
            .collect();
        let list = "gh https://a.example/1\n";
        stream.write_all(ok("", list).as_bytes()).unwrap();
        head
    });
    let url = format!("http://ann:s%20cret@{address}/links.txt");
    let place = LinkPlace::Url(url.parse().unwrap());
    let shown = place.to_string();
    assert!(!shown.contains("ann") && !shown.contains("cret"), "{shown}");
    assert_eq!(shown, format!("http://***@{address}/links.txt"));
    let links = load_links(&place).unwrap();
    assert_eq!(links.entries.len(), 1);
    let head = server.join().unwrap();
    // `ann:s cret`, as RFC 7617 has it.
    let field = "authorization: Basic YW5uOnMgY3JldA==";
    assert!(
        head.iter().any(|line| line.eq_ignore_ascii_case(field)),
        "{head:?}"
    );
}
