//! Rules that pass requests on to real servers.

use plimsoll_testkit::{Authority, MaterialFiles, Origin, Script, Step, refused_address};

use crate::mock::Served;

fn proxied(to: &str) -> Served {
    let rules = format!(
        "[[rules]]\nwhen.request.url_path = {{ op = \"starts_with\", value = \"/\" }}\nrespond = {{ proxy = {to}, headers = {{ x-mock = \"1\" }} }}\n"
    );
    Served::rules(&rules)
}

fn to(origin: &Origin) -> Served {
    proxied(&format!("\"{}\"", origin.url("/base")))
}

/// A server that answers so, and a mock before it.
fn answering(answer: &str) -> (Origin, Served) {
    let origin = Origin::scripted(Script::serve(answer));
    let served = to(&origin);
    (origin, served)
}

/// The same with a server that closes the connection then.
fn answering_once(answer: &str) -> (Origin, Served) {
    let origin = Origin::scripted(Script::answer_once(answer));
    let served = to(&origin);
    (origin, served)
}

#[test]
fn requests_are_passed_on_and_answers_back_on_connections_that_stay() {
    let content = "HTTP/1.1 201 Created\r\ncontent-length: 5\r\nset-cookie: a=b\r\nset-cookie: c=d\r\n\
         connection: keep-alive, x-hop\r\nx-hop: 1\r\nx-mock: theirs\r\n\r\nhello";
    let origin = Origin::scripted(Script::serve(content));
    let served = to(&origin);
    for _ in 0..3 {
        let answer = served.ask("POST", "/a?b=c", &["x-own: 1"], "content");
        assert_eq!((answer.status, answer.text()), (201, "hello"));
        assert_eq!(answer.field("x-mock"), Some("1"));
        assert_eq!(answer.head.matches("set-cookie").count(), 2);
        assert_eq!(answer.field("x-hop"), None);
        assert_eq!(answer.field("content-length"), Some("5"));
        assert_eq!(answer.field("access-control-allow-origin"), Some("*"));
    }
    assert_eq!((origin.requests(), origin.connections()), (3, 1));
    let heads = origin.heads();
    assert!(
        heads[0].starts_with("POST /base/a?b=c HTTP/1.1\r\n"),
        "{}",
        heads[0]
    );
    assert!(heads[0].contains("x-own: 1\r\n"), "{}", heads[0]);
    assert!(heads[0].contains("via: 1.1 plimsoll\r\n"), "{}", heads[0]);
}

#[test]
fn content_comes_as_it_is_framed_there() {
    let chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n";
    let (_origin, served) = answering(chunked);
    assert_eq!(served.get("/").text(), "hello world");
    let until_close = "HTTP/1.0 200 OK\r\n\r\nall of it";
    let (_origin, served) = answering_once(until_close);
    assert_eq!(served.get("/").text(), "all of it");
    let long = "0123456789abcdef".repeat(1 << 16);
    let answer = format!(
        "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{long}",
        long.len()
    );
    let (_origin, served) = answering(&answer);
    assert!(served.get("/").text() == long);
    let head = "HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n";
    let (_origin, served) = answering(head);
    let answer = served.ask("HEAD", "/", &[], "");
    assert_eq!(
        (answer.field("content-length"), answer.body.len()),
        (Some("99"), 0)
    );
    let empty = "HTTP/1.1 204 No Content\r\n\r\n";
    let (_origin, served) = answering(empty);
    assert_eq!(served.get("/").status, 204);
}

#[test]
fn a_server_that_is_not_there_or_speaks_no_http_is_reported() {
    let served = proxied(&format!("\"http://{}\"", refused_address()));
    let answer = served.get("/");
    assert_eq!(answer.status, 502);
    assert!(
        answer.text().contains("cannot be reached"),
        "{}",
        answer.text()
    );
    let (_origin, served) = answering_once("no http at all\r\n\r\n");
    let answer = served.get("/");
    assert_eq!(answer.status, 502);
    assert!(
        answer.text().contains("what is no HTTP"),
        "{}",
        answer.text()
    );
    let reset = Script::new().then(Step::ReadHead).then(Step::Reset);
    for script in [
        Script::answer_once(""),
        Script::answer_once("HTTP/1.1 200 OK\r\ncontent-le"),
        reset,
    ] {
        let origin = Origin::scripted(script);
        let served = to(&origin);
        for method in ["GET", "POST"] {
            let answer = served.ask(method, "/", &[], "");
            assert_eq!(answer.status, 502);
            let kind = answer.field("content-type");
            assert_eq!(kind, Some("text/plain; charset=utf-8"));
            assert!(answer.text().contains("http://"), "{}", answer.text());
        }
    }
    let origin = Origin::silent();
    let to = format!("{{ to = \"{}\", timeout = \"50ms\" }}", origin.url("/"));
    let answer = proxied(&to).get("/");
    assert_eq!(answer.status, 504);
    assert!(
        answer.text().contains("has not answered within 50ms"),
        "{}",
        answer.text()
    );
}

#[test]
fn what_breaks_off_there_breaks_off_here() {
    let half = "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf";
    let (_origin, served) = answering_once(half);
    let bytes = served.talk(b"GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n");
    // Nothing at all is no whole answer either.
    assert!(bytes.is_empty() || bytes.ends_with(b"half"));
    let stalled = Script::new()
        .then(Step::ReadHead)
        .then(Step::Write(half.into()))
        .then(Step::Hold);
    let origin = Origin::scripted(stalled);
    let to = format!("{{ to = \"{}\", timeout = \"1s\" }}", origin.url("/"));
    let bytes = proxied(&to).talk(b"GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n");
    let text = String::from_utf8(bytes).unwrap();
    assert!(
        text.contains("content-length: 10") && text.ends_with("half"),
        "{text}"
    );
}

#[test]
fn a_connection_that_the_server_has_closed_is_not_used_again() {
    let once = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
    let origin = Origin::scripted(Script::answer_once(once));
    let served = to(&origin);
    for number in 1..=3 {
        assert_eq!(served.get("/").text(), "ok");
        assert_eq!(origin.connections(), number);
    }
}

#[test]
fn certificates_are_checked_unless_reported_otherwise() {
    let authority = Authority::new();
    let files = MaterialFiles::new();
    let ca = files.write("ca.pem", &authority.pem());
    let origin = Origin::builder()
        .tls(authority.issue(&["localhost"]).server_config())
        .start();
    let url = format!("https://localhost:{}/", origin.port());
    let answer = proxied(&format!("\"{url}\"")).get("/");
    assert_eq!(answer.status, 502, "{}", answer.text());
    for trust in [
        "insecure = true".to_owned(),
        format!("ca = \"{}\"", ca.display()),
    ] {
        let served = proxied(&format!("{{ to = \"{url}\", {trust} }}"));
        assert_eq!(served.get("/").status, 200, "{trust}");
    }
}

#[test]
fn mistakes_of_proxies_are_reported() {
    for (wrong, expected) in [
        ("proxy = \"\"", "proxy"),
        ("proxy = {}", "`to` is missing"),
        (
            "proxy = { to = \"http://a\", ca = \"x\", insecure = true }",
            "both `ca` and `insecure`",
        ),
        (
            "proxy = { to = \"https://a\", ca = \"/nonexistent\" }",
            "cannot prepare TLS",
        ),
        (
            "proxy = { to = \"http://a\", headers.host = \"b\" }",
            "is set by the proxy",
        ),
        (
            "proxy = { to = \"http://a\", timeout = \"0s\" }",
            "no time to answer",
        ),
        (
            "proxy = \"http://a\"\nrespond.status = 200",
            "beside `proxy`",
        ),
        (
            "proxy = \"http://a\"\nrespond.text = \"b\"",
            "more than one of",
        ),
    ] {
        let rules = format!("[[rules]]\nwhen.request.url_path = \"/\"\nrespond.{wrong}\n");
        let folder = crate::mock::files(&[("rules.toml", &rules)]);
        let problems = plimsoll_mock::config::load(&folder.path().join("rules.toml")).unwrap_err();
        let reported: Vec<_> = problems.iter().map(ToString::to_string).collect();
        assert!(
            reported.iter().any(|it| it.contains(expected)),
            "{wrong}: {reported:?}"
        );
    }
}

/// A server would send credentials back, and what the rule adds.
#[test]
fn a_request_that_servers_echo_reaches_none() {
    let (origin, served) = answering("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi");
    for method in ["TRACE", "TRACK"] {
        let answer = served.ask(method, "/", &["authorization: Bearer t"], "");
        assert_eq!(answer.status, 405, "{method}");
        assert!(answer.field("allow").is_some_and(|it| it.contains("GET")));
    }
    assert_eq!(origin.requests(), 0);
    assert_eq!(served.get("/").text(), "hi");
}
