//! Requests as servers receive them, and responses as clients do.

use bytes::Bytes;
use plimsoll_client::forward::Speaks;
use plimsoll_testkit::http::{connect, exchange, get, get_with};
use plimsoll_testkit::{Origin, Script, Step, eventually};

use crate::client::post;
use crate::server::{Served, gateway};
use std::io::{Read, Write};

fn to(origin: &Origin, keys: &str) -> Served {
    let url = origin.url("");
    let url = url.trim_end_matches('/');
    Served::routes(&format!(
        "[[route]]\nprefix = \"/api\"\nproxy = {{ to = \"{url}\", {keys} }}\n"
    ))
}

#[test]
fn a_request_is_forwarded_with_the_fields_of_proxies_and_without_those_of_its_connection() {
    let origin = Origin::hello();
    let gateway = to(&origin, "headers = { x-set = \"1\", cookie = false }");
    let fields = "X-Own: a\r\nCookie: b=c\r\nConnection: close, X-Hop\r\nX-Hop: 1\r\n\
        X-Forwarded-For: 6.6.6.6\r\nX-Real-IP: 6.6.6.6\r\nForwarded: for=6.6.6.6\r\nKeep-Alive: 5\r\nTE: gzip\r\n";
    let request = format!("GET /api/a%20b?c=%2F HTTP/1.1\r\nHost: shop.test\r\n{fields}\r\n");
    let received = exchange(gateway.address(), request.as_bytes());
    assert_eq!(received.status, 200);
    let head = origin.heads().pop().unwrap();
    let mut lines: Vec<_> = head.lines().filter(|line| !line.is_empty()).collect();
    assert_eq!(lines.remove(0), "GET /api/a%20b?c=%2F HTTP/1.1");
    lines.sort_unstable_by_key(|line| line.to_ascii_lowercase());
    assert_eq!(
        lines,
        [
            "host: shop.test",
            "via: 1.1 plimsoll",
            "x-forwarded-for: 127.0.0.1",
            "x-forwarded-host: shop.test",
            "x-forwarded-proto: http",
            "X-Own: a",
            "x-set: 1",
        ]
    );
}

#[test]
fn the_client_that_a_trusted_proxy_names_is_forwarded() {
    let origin = Origin::hello();
    let url = origin.url("");
    let url = url.trim_end_matches('/');
    let gateway = Served::new(&format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\ntrusted_proxies = \"127.0.0.0/8\"\n\
        [[route]]\npath = \"/alone\"\nproxy = {{ to = \"{url}\", headers = {{ x-real-ip = \"{{client}}\" }} }}\n\
        [[route]]\npath = \"/chain\"\nproxy = {{ to = \"{url}\", trust = [\"127.0.0.0/8\"] }}\n"
    ));
    let fields = "X-Forwarded-For: 6.6.6.6, 192.0.2.7\r\nX-Forwarded-Proto: https\r\n";
    for (path, lines) in [
        (
            "/alone",
            [
                "x-forwarded-for: 192.0.2.7\r",
                "x-real-ip: 192.0.2.7\r",
                "x-forwarded-proto: http\r",
            ],
        ),
        // A proxy whose fields are kept stands in the chain itself.
        (
            "/chain",
            [
                "x-forwarded-for: 6.6.6.6, 192.0.2.7, 127.0.0.1\r",
                "X-Forwarded-Proto: https\r",
                "x-forwarded-host: ",
            ],
        ),
    ] {
        get_with(gateway.address(), path, fields);
        let head = origin.heads().pop().unwrap();
        for line in lines {
            assert!(head.contains(line), "{line}: {head}");
        }
    }
}

#[test]
fn servers_are_reached_by_sockets_in_the_file_system() {
    let files = tempfile::tempdir().unwrap();
    let [one, other] = ["one.sock", "other.sock"].map(|name| files.path().join(name));
    let [first, second] = [&one, &other].map(|path| Origin::builder().unix(path).start());
    let gateway = Served::new(&format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\n[admin]\naddress = \"127.0.0.1:0\"\n\
        [[route]]\npath = \"/one\"\nproxy = \"unix:{}\"\n\
        [[route]]\npath = \"/server\"\nproxy = {{ to = \"unix:{}\", host = \"server\" }}\n\
        [[route]]\nproxy = \"both\"\n\
        [upstream.both]\nservers = [\"unix:{}\", \"unix:{}\"]\ndns = true\nhealth = true\n",
        one.display(),
        one.display(),
        one.display(),
        other.display()
    ));
    assert_eq!(get_with(gateway.address(), "/one", "").status, 200);
    assert!(first.heads()[0].contains("host: localhost"));
    assert_eq!(get(gateway.address(), "/server").status, 200);
    for _ in 0..4 {
        assert_eq!(get(gateway.address(), "/both").status, 200);
    }
    let forwarded = |origin: &Origin| {
        let heads = origin.heads();
        heads
            .iter()
            .filter(|it| it.starts_with("GET /both "))
            .count()
    };
    assert_eq!((forwarded(&first), forwarded(&second)), (2, 2));
    let metrics = get(gateway.addresses[1], "/metrics").into_text();
    assert!(
        metrics.contains(&format!("server=\"unix:{}\"", other.display())),
        "{metrics}"
    );
    // A server that is gone is as one that refuses connections.
    drop((first, second));
    assert_eq!(get(gateway.address(), "/one").status, 502);
}

#[test]
fn a_trusted_proxy_is_believed() {
    let origin = Origin::hello();
    let gateway = to(&origin, "trust = [\"127.0.0.0/8\"], forwarded = \"both\"");
    let fields =
        "X-Forwarded-For: 9.9.9.9\r\nX-Forwarded-Proto: https\r\nForwarded: for=9.9.9.9\r\n";
    get_with(gateway.address(), "/api", fields);
    let head = origin.heads().pop().unwrap();
    for line in [
        "x-forwarded-for: 9.9.9.9, 127.0.0.1",
        "X-Forwarded-Proto: https",
        "forwarded: for=9.9.9.9, for=127.0.0.1;host=\"localhost\";proto=http",
    ] {
        assert!(head.contains(line), "{head}");
    }
}

/// Fields of the gateway alone are sent as lines that were written before, those of routes one by one: no server can tell.
#[test]
fn servers_get_the_same_fields_whether_a_route_sets_any_or_not() {
    let origin = Origin::hello();
    let url = origin.url("");
    let url = url.trim_end_matches('/');
    let mut routes = String::from("[[listen]]\naddress = \"127.0.0.1:0\"\n");
    let mut paths = Vec::new();
    for forwarded in ["x", "rfc7239", "both", "none"] {
        for trust in ["", ", trust = [\"127.0.0.0/8\"]"] {
            let path = format!("/{}", paths.len());
            for (kind, set) in [("bare", ""), ("set", ", headers = { x-set = \"1\" }")] {
                let proxy = format!("to = \"{url}\", forwarded = \"{forwarded}\"{trust}{set}");
                let route = format!("[[route]]\npath = \"{path}/{kind}\"\nproxy = {{ {proxy} }}\n");
                routes.push_str(&route);
            }
            paths.push(path);
        }
    }
    let gateway = Served::new(&routes);
    let fields = [
        "",
        "Via: 1.0 a, 1.1 b\r\nVia: 2 c\r\n",
        "X-Forwarded-For: 192.0.2.1\r\nX-Forwarded-For: 192.0.2.2\r\nForwarded: for=192.0.2.3\r\n",
        "X-Forwarded-Host: a.test\r\nX-Forwarded-Proto: https\r\nConnection: via, x-forwarded-for\r\n",
        "X-Own: a\tb \u{e9}\r\nCookie: a=1\r\nCookie: b=2\r\nTE: trailers\r\n",
    ];
    for path in &paths {
        for fields in fields {
            let [bare, set] = ["bare", "set"].map(|kind| {
                get_with(gateway.address(), &format!("{path}/{kind}"), fields);
                let head = origin.heads().pop().unwrap();
                let lines = head.lines().skip(1).filter(|line| *line != "x-set: 1");
                lines.map(str::to_owned).collect::<Vec<_>>()
            });
            assert!(
                bare.iter().any(|line| line.ends_with("1.1 plimsoll")),
                "{bare:?}"
            );
            assert_eq!(bare, set, "{path} {fields}");
        }
    }
}

#[test]
fn paths_are_stripped_and_put_behind_a_base() {
    let origin = Origin::hello();
    let gateway = to(&origin, "strip = true, path = \"/v1/\", host = \"server\"");
    for (path, expected) in [
        ("/api/a/b?c", "GET /v1/a/b?c HTTP/1.1"),
        ("/api", "GET /v1/ HTTP/1.1"),
        ("/API/x%2Fy", "GET /v1/x%2Fy HTTP/1.1"),
    ] {
        assert_eq!(get(gateway.address(), path).status, 200, "{path}");
        let head = origin.heads().pop().unwrap();
        assert!(head.starts_with(expected), "{path}: {head}");
        let host = format!("host: 127.0.0.1:{}", origin.port());
        assert!(head.contains(&host), "{head}");
    }
}

#[test]
fn no_spelling_of_a_path_reaches_what_its_route_does_not_cover() {
    let origin = Origin::hello();
    let gateway = to(&origin, "strip = true");
    for path in [
        "/api/../admin",
        "/api/%2e%2e/admin",
        "/api/..;/admin",
        "/api/..%2Fadmin",
        "/api\\..\\admin",
        "/other",
    ] {
        let status = get(gateway.address(), path).status;
        assert!([400, 404].contains(&status), "{path}: {status}");
    }
    assert_eq!(origin.requests(), 0);
}

#[test]
fn responses_come_as_they_are() {
    let cases: [(&str, &str, &str, &str); 5] = [
        (
            "GET",
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-A: 1\r\nConnection: x-b\r\nX-B: 2\r\n\r\nhello",
            "200",
            "hello",
        ),
        (
            "GET",
            "HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n",
            "201",
            "abcde",
        ),
        (
            "HEAD",
            "HTTP/1.1 200 OK\r\nContent-Length: 77\r\n\r\n",
            "200",
            "",
        ),
        (
            "GET",
            "HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\n\r\n",
            "304",
            "",
        ),
        ("GET", "HTTP/1.1 204 No Content\r\n\r\n", "204", ""),
    ];
    for (method, answer, status, body) in cases {
        let origin = Origin::scripted(Script::serve(answer));
        let gateway = gateway(&[origin.url("").trim_end_matches('/')], "");
        let request = format!("{method} / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        let received = exchange(gateway.address(), request.as_bytes());
        assert_eq!(received.status.to_string(), status, "{answer}");
        let text = received.text();
        assert!(text.contains(body), "{answer}: {text}");
        let head = received.head.to_ascii_lowercase();
        assert!(!head.contains("x-b"), "{head}");
        if method == "HEAD" {
            assert!(head.contains("content-length: 77"), "{head}");
        }
    }
}

#[test]
fn interim_responses_and_trailers_are_sent_on() {
    let answer = "HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\
        Trailer: x-sum\r\n\r\n1\r\na\r\n0\r\nx-sum: 7\r\n\r\n";
    let origin = Origin::scripted(Script::serve(answer));
    let gateway = gateway(&[origin.url("").trim_end_matches('/')], "");
    let mut stream = connect(gateway.address());
    let request = "GET / HTTP/1.1\r\nHost: a\r\nTE: trailers\r\nConnection: close, TE\r\n\r\n";
    stream.write_all(request.as_bytes()).unwrap();
    let mut all = String::new();
    stream.read_to_string(&mut all).unwrap();
    let all = all.to_ascii_lowercase();
    assert!(all.starts_with("http/1.1 103"), "{all}");
    assert!(all.contains("link: </a.css>"), "{all}");
    assert!(all.contains("http/1.1 200"), "{all}");
    assert!(all.contains("x-sum: 7"), "{all}");
}

#[test]
fn a_response_that_breaks_off_is_not_made_whole() {
    let answer = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf";
    let origin = Origin::scripted(
        Script::new()
            .then(Step::ReadHead)
            .then(Step::Write(answer.into())),
    );
    let gateway = gateway(&[origin.url("").trim_end_matches('/')], "");
    let mut stream = connect(gateway.address());
    stream
        .write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        .unwrap();
    let mut all = Vec::new();
    // Closed or reset, but without the 96 bytes, and without a second response.
    stream.read_to_end(&mut all).ok();
    let text = String::from_utf8_lossy(&all);
    assert!(
        text.ends_with("half") || text.starts_with("HTTP/1.1 502"),
        "{text}"
    );
    assert_eq!(text.matches("HTTP/1.1").count(), 1, "{text}");
}

#[test]
fn a_client_that_leaves_cancels_the_request() {
    let origin = Origin::silent();
    let gateway = gateway(&[origin.url("").trim_end_matches('/')], "");
    let mut stream = connect(gateway.address());
    stream
        .write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        .unwrap();
    eventually(|| origin.open_connections() == 1);
    drop(stream);
    eventually(|| origin.open_connections() == 0);
}

#[test]
fn failures_have_the_statuses_of_a_gateway() {
    let refused = plimsoll_testkit::refused_address();
    let gateway_to_nothing = gateway(&[&format!("http://{refused}")], "");
    let received = get(gateway_to_nothing.address(), "/");
    assert_eq!(received.status, 502);
    assert_eq!(received.text(), "the upstream server cannot be reached\n");
    let silent = Origin::silent();
    let url = silent.url("");
    let late = gateway(&[url.trim_end_matches('/')], "response_timeout = \"100ms\"");
    assert_eq!(get(late.address(), "/").status, 504);
    let garbage = Origin::scripted(Script::serve("not http\r\n\r\n"));
    let url = garbage.url("");
    let broken = gateway(&[url.trim_end_matches('/')], "");
    assert_eq!(get(broken.address(), "/").status, 502);
}

/// A client that waits for 100 (Continue) has the server's word on it, and what else is expected is the server's affair.
#[test]
fn a_server_that_refuses_first_spares_the_content() {
    let refusing = Origin::scripted(Script::new().then(Step::ReadHead).then(Step::Write(
        b"HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno".to_vec(),
    )));
    let wanting = Origin::scripted(
        Script::new()
            .then(Step::ReadHead)
            .then(Step::Write(b"HTTP/1.1 100 Continue\r\n\r\n".to_vec()))
            .then(Step::ReadBody(5))
            .then(Step::Write(
                b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok".to_vec(),
            )),
    );
    for (origin, begins, then) in [
        (&refusing, "HTTP/1.1 403 ", ""),
        (&wanting, "HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.1 200 "),
    ] {
        let gateway = gateway(&[&origin.url("")], "");
        let mut stream = std::net::TcpStream::connect(gateway.address()).unwrap();
        stream
            .set_read_timeout(Some(std::time::Duration::from_secs(20)))
            .unwrap();
        let head =
            "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n";
        stream.write_all(head.as_bytes()).unwrap();
        let mut first = vec![0; begins.len()];
        stream.read_exact(&mut first).unwrap();
        assert_eq!(String::from_utf8_lossy(&first), begins);
        if !then.is_empty() {
            stream.write_all(b"hello").unwrap();
            let mut second = vec![0; then.len()];
            stream.read_exact(&mut second).unwrap();
            assert_eq!(String::from_utf8_lossy(&second), then);
        }
        let seen = origin.heads().pop().unwrap().to_ascii_lowercase();
        assert!(seen.contains("expect: 100-continue"), "{seen}");
    }
}

#[test]
fn reason_phrases_are_kept_over_http_1() {
    let longest = "a".repeat(128);
    let too_long = "a".repeat(129);
    for (status, phrase, expected) in [
        (200, "Fine", "Fine"),
        (200, "OK", "OK"),
        (200, "", "OK"),
        (299, "Almost Fine", "Almost Fine"),
        (404, longest.as_str(), longest.as_str()),
        (404, too_long.as_str(), "Not Found"),
        (503, "Back at 5", "Back at 5"),
    ] {
        for content in [
            "Content-Length: 2\r\n\r\nhi",
            "Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n",
        ] {
            let response = format!("HTTP/1.1 {status} {phrase}\r\n{content}");
            let origin = Origin::scripted(Script::serve(response));
            let gateway = Served::routes(&format!(
                "[[route]]\nresponse_headers = {{ set = {{ x-layer = \"1\" }} }}\n\
                 proxy = {{ to = \"{}\", retry = false }}\n",
                origin.url("").trim_end_matches('/')
            ));
            let received = get(gateway.address(), "/");
            let line = received.head.lines().next().unwrap();
            assert_eq!(line, format!("HTTP/1.1 {status} {expected}"), "{content}");
            let (status_2, content_2, _) = post(Speaks::Http2, &gateway.url(), Bytes::new());
            assert_eq!((status_2, content_2), (status, Bytes::from("hi")));
        }
    }
}
