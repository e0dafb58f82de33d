//! Rules of a route beyond forwarding: limits, pages, rewriting, splits, copies, faults, authorization.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpListener;

use plimsoll_testkit::http::{HttpResponse, connect, exchange, get, get_with};
use plimsoll_testkit::{HELLO, Origin, Script, Step, eventually};

use crate::server::{Served, named};

/// A gateway whose route has these keys beside `to`.
fn gateway(to: &str, keys: &str) -> Served {
    let to = to.trim_end_matches('/');
    Served::routes(&format!("[[route]]\nproxy = {{ to = \"{to}\", {keys} }}\n"))
}

fn post(gateway: &Served, path: &str, body: &str) -> HttpResponse {
    let length = body.len();
    let request = format!(
        "POST {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    exchange(gateway.address(), request.as_bytes())
}

#[test]
fn requests_beyond_the_limit_get_a_413_and_never_look_complete() {
    let origin = Origin::hello();
    let gateway = gateway(&origin.url(""), "max_request = \"10B\"");
    assert_eq!(post(&gateway, "/", "0123456789").status, 200);
    let received = post(&gateway, "/", "0123456789a");
    assert_eq!(received.status, 413, "{received:?}");
    assert_eq!(origin.requests(), 1);
    // Without an announced length the content has to be counted. A server that answers before it has read everything would
    // be faster than the limit now and then.
    let silent = Origin::silent();
    let gateway = self::gateway(&silent.url(""), "max_request = \"10B\"");
    let mut stream = connect(gateway.address());
    stream
        .write_all(b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
        .unwrap();
    stream.write_all(b"8\r\n01234567\r\n").unwrap();
    stream.write_all(b"8\r\n01234567\r\n0\r\n\r\n").unwrap();
    let mut head = [0; 12];
    stream.read_exact(&mut head).unwrap();
    assert_eq!(&head, b"HTTP/1.1 413");
}

#[test]
fn responses_beyond_the_limit_are_not_sent_on() {
    let long = "HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n0123456789a";
    let chunked =
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nb\r\n0123456789a\r\n0\r\n\r\n";
    for answer in [long, chunked] {
        let origin = Origin::scripted(Script::serve(answer));
        let gateway = gateway(&origin.url(""), "max_response = \"10B\"");
        let received = get(gateway.address(), "/");
        assert_eq!(received.status, 502, "{received:?}");
        assert!(received.text().contains("longer than its limit"));
    }
    let origin = Origin::hello();
    let gateway = gateway(&origin.url(""), "max_response = \"10B\"");
    assert_eq!(get(gateway.address(), "/").text(), "hello");
}

#[test]
fn failures_have_pages_and_those_of_servers_if_they_are_intercepted() {
    let refused = format!("http://{}", plimsoll_testkit::refused_address());
    let pages = "error_pages = { 502 = { body = \"<p>soon</p>\", type = \"text/html\", status = 503 }, 4xx = { body = \"none\" } }";
    let down = gateway(&refused, pages);
    let received = get(down.address(), "/");
    assert_eq!((received.status, received.text()), (503, "<p>soon</p>"));
    assert!(received.head.contains("text/html"), "{received:?}");

    let answer =
        "HTTP/1.1 404 Not Found\r\nX-Secret: 1\r\nRetry-After: 5\r\nContent-Length: 4\r\n\r\nlong";
    let origin = Origin::scripted(Script::serve(answer));
    let plain = gateway(&origin.url(""), pages);
    assert_eq!(get(plain.address(), "/").text(), "long");
    let origin = Origin::scripted(Script::serve(answer));
    let keys = format!("{pages}, intercept_errors = true");
    let intercepting = gateway(&origin.url(""), &keys);
    let received = get(intercepting.address(), "/");
    assert_eq!((received.status, received.text()), (404, "none"));
    let head = received.head.to_ascii_lowercase();
    assert!(head.contains("retry-after: 5"), "{head}");
    assert!(!head.contains("x-secret"), "{head}");
}

#[test]
fn paths_are_rewritten_by_the_first_rule_that_matches() {
    let origin = Origin::hello();
    let keys = "rewrite = [{ from = \"^/v1/(.*)$\", to = \"/api/$1\" }, { from = \"^/find/([^/]+)$\", to = \"/search?q=$1\" }]";
    let gateway = gateway(&origin.url(""), keys);
    for (path, expected) in [
        ("/v1/a%20b?c=d", "GET /api/a%20b?c=d HTTP/1.1"),
        ("/find/tea", "GET /search?q=tea HTTP/1.1"),
        ("/find/tea?page=2", "GET /search?q=tea&page=2 HTTP/1.1"),
        ("/other/v1/x", "GET /other/v1/x HTTP/1.1"),
    ] {
        assert_eq!(get(gateway.address(), path).status, 200, "{path}");
        let head = origin.heads().pop().unwrap();
        assert!(head.starts_with(expected), "{path}: {head}");
    }
}

#[test]
fn a_rewrite_cannot_make_a_path_with_two_meanings() {
    let origin = Origin::hello();
    let keys = "rewrite = { from = \"^/a(.)/(.)b\", to = \"/$1$2/\" }";
    let gateway = gateway(&origin.url(""), keys);
    assert_eq!(get(gateway.address(), "/a./.b").status, 400);
    assert_eq!(origin.requests(), 0);
}

#[test]
fn a_share_of_clients_gets_another_upstream_and_keeps_it() {
    let (stable, canary) = (named("stable"), named("canary"));
    let routes = format!(
        "[[route]]\nproxy = {{ to = \"stable\", split = {{ canary = 30 }}, split_cookie = \"variant\" }}\n\
        [upstream.stable]\nservers = \"{}\"\n[upstream.canary]\nservers = \"{}\"\n",
        stable.url(),
        canary.url()
    );
    let gateway = Served::routes(&routes);
    let mut counts = BTreeMap::<String, u32>::new();
    let mut cookies = BTreeMap::new();
    for _ in 0..300 {
        let received = get(gateway.address(), "/");
        *counts.entry(received.text().to_owned()).or_default() += 1;
        let line = received
            .head
            .lines()
            .find(|it| it.to_ascii_lowercase().starts_with("set-cookie"));
        let cookie = line.unwrap().split_once(": ").unwrap().1;
        let cookie = cookie.split(';').next().unwrap().to_owned();
        cookies.insert(cookie, received.into_text());
    }
    // Seven standard deviations around 90.
    assert!((35..=145).contains(&counts["canary"]), "{counts:?}");
    assert_eq!(cookies.len(), 2, "{cookies:?}");
    for (cookie, variant) in cookies {
        for _ in 0..20 {
            let received = get_with(
                gateway.address(),
                "/",
                &format!("Cookie: a=b; {cookie}\r\n"),
            );
            assert_eq!(received.text(), variant);
            assert!(!received.head.to_ascii_lowercase().contains("set-cookie"));
        }
    }
}

#[test]
fn an_upstream_without_a_share_takes_no_client_any_more() {
    let (stable, canary) = (named("stable"), named("canary"));
    let text = |share: u32| {
        format!(
            "[[listen]]\naddress = \"127.0.0.1:0\"\n\
            [[route]]\nproxy = {{ to = \"stable\", split = {{ canary = {share} }}, split_cookie = \"variant\" }}\n\
            [upstream.stable]\nservers = \"{}\"\n[upstream.canary]\nservers = \"{}\"\n",
            stable.url(),
            canary.url()
        )
    };
    let mut gateway = Served::new(&text(100));
    let first = get(gateway.address(), "/");
    assert_eq!(first.text(), "canary");
    let mut lines = first.head.lines();
    let cookie = lines.find_map(|line| line.strip_prefix("set-cookie: "));
    let cookie = cookie.unwrap().split(';').next().unwrap();
    let fields = format!("Cookie: {cookie}\r\n");
    gateway.reload(&text(50));
    for _ in 0..20 {
        assert_eq!(get_with(gateway.address(), "/", &fields).text(), "canary");
    }
    gateway.reload(&text(0));
    let moved = get_with(gateway.address(), "/", &fields);
    assert_eq!(moved.text(), "stable");
    assert!(moved.head.contains("set-cookie: variant="), "{moved:?}");
}

#[test]
fn requests_are_copied_and_the_copy_changes_nothing() {
    let origin = Origin::hello();
    let shadow = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = shadow.local_addr().unwrap();
    let copying = gateway(&origin.url(""), &format!("mirror = \"http://{address}\""));
    assert_eq!(post(&copying, "/a?b", "content").text(), "hello");
    let (mut copied, _) = shadow.accept().unwrap();
    let mut read = String::new();
    while !read.ends_with("\r\n\r\ncontent") {
        let mut piece = [0; 1024];
        let count = copied.read(&mut piece).unwrap();
        assert!(count > 0, "{read}");
        read.push_str(std::str::from_utf8(&piece[..count]).unwrap());
    }
    assert!(read.starts_with("POST /a?b HTTP/1.1\r\n"), "{read}");
    drop(copied);
    // A shadow that is down, or does not respond, is not noticed.
    let refused = plimsoll_testkit::refused_address();
    let silent = Origin::silent();
    for to in [format!("http://{refused}"), silent.url("")] {
        let keys = format!("mirror = {{ to = \"{}\" }}", to.trim_end_matches('/'));
        let copying = gateway(&origin.url(""), &keys);
        assert_eq!(post(&copying, "/", "content").text(), "hello");
    }
    let shadow = Origin::hello();
    let url = shadow.url("");
    let never = format!(
        "mirror = {{ to = \"{}\", share = 0 }}",
        url.trim_end_matches('/')
    );
    let copying = gateway(&origin.url(""), &never);
    assert_eq!(get(copying.address(), "/").text(), "hello");
    assert_eq!(shadow.requests(), 0);
}

#[test]
fn a_copy_that_is_not_taken_ends_beside_a_large_upload() {
    const LENGTH: usize = 8 << 20;
    let script = Script::new()
        .then(Step::ReadHead)
        .then(Step::ReadBody(LENGTH));
    let origin = Origin::scripted(script.then(Step::Write(HELLO.to_vec())));
    let shadow = TcpListener::bind("127.0.0.1:0").unwrap();
    let copying = Served::new(&format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\n[admin]\naddress = \"127.0.0.1:0\"\n\
         [[route]]\nproxy = {{ to = \"{}\", mirror = \"shadow\" }}\n\
         [upstream.shadow]\nservers = \"http://{}\"\nresponse_timeout = \"200ms\"\n",
        origin.url("").trim_end_matches('/'),
        shadow.local_addr().unwrap()
    ));
    assert_eq!(post(&copying, "/", &"x".repeat(LENGTH)).text(), "hello");
    eventually(|| {
        let metrics = get(copying.addresses[1], "/metrics").into_text();
        metrics.contains("plimsoll_gateway_copies_dropped_total{upstream=\"shadow\"} 1\n")
    });
    let (mut copied, _) = shadow.accept().unwrap();
    let mut taken = Vec::new();
    // By its end or by a reset.
    copied.read_to_end(&mut taken).ok();
    assert!(taken.len() < LENGTH, "{}", taken.len());
}

#[test]
fn a_slow_upload_is_no_failure_of_the_server_that_gets_its_copy() {
    let (origin, shadow, silent) = (Origin::hello(), Origin::hello(), Origin::silent());
    let url = |origin: &Origin| origin.url("").trim_end_matches('/').to_owned();
    let copying = Served::new(&format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\n[admin]\naddress = \"127.0.0.1:0\"\n\
         [[route]]\npath = \"/silent\"\nproxy = {{ to = \"{}\", response_timeout = \"500ms\", retry = false }}\n\
         [[route]]\nproxy = {{ to = \"{}\", mirror = \"shadow\" }}\n\
         [upstream.shadow]\nservers = \"{}\"\nresponse_timeout = \"500ms\"\n",
        url(&silent),
        url(&origin),
        url(&shadow),
    ));
    let metric = |name: &str| {
        let metrics = get(copying.addresses[1], "/metrics").into_text();
        let line = metrics.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap_or_else(|| panic!("{name}: {metrics}"))
            .trim()
            .parse::<u64>()
            .unwrap()
    };
    let failed = || {
        metric(&format!(
            "plimsoll_gateway_failures_total{{upstream=\"shadow\",server=\"{}\"}}",
            url(&shadow)
        ))
    };
    let dropped = || metric("plimsoll_gateway_copies_dropped_total{upstream=\"shadow\"}");
    let begin = |content: &str| {
        let mut stream = connect(copying.address());
        let head = "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 4\r\n\r\n";
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(content.as_bytes()).unwrap();
        stream
    };
    let mut slow = begin("ab");
    // These begin later and have the same limit, so that much has passed by then, twice. It is long enough for an origin on a
    // busy machine.
    for _ in 0..2 {
        assert_eq!(get(copying.address(), "/silent").status, 504);
    }
    slow.write_all(b"cd").unwrap();
    let mut response = String::new();
    slow.read_to_string(&mut response).unwrap();
    assert!(response.ends_with("hello"), "{response}");
    eventually(|| shadow.requests() == 1);
    assert_eq!((dropped(), failed()), (0, 0));
    let gone = begin("a");
    eventually(|| shadow.open_connections() == 1);
    drop(gone);
    eventually(|| dropped() == 1);
    assert_eq!(failed(), 0);
}

#[test]
fn faults_are_injected() {
    let origin = Origin::hello();
    let aborting = gateway(&origin.url(""), "fault = { delay = \"1ms\", abort = 503 }");
    assert_eq!(get(aborting.address(), "/").status, 503);
    assert_eq!(origin.requests(), 0);
    let never = gateway(&origin.url(""), "fault = { abort = 503, abort_share = 0 }");
    assert_eq!(get(never.address(), "/").status, 200);
    let slow = gateway(
        &origin.url(""),
        "fault = { delay = \"1h\" }, timeout = \"50ms\"",
    );
    assert_eq!(get(slow.address(), "/").status, 504);
}

#[test]
fn a_service_authorizes_requests_and_names_the_user() {
    let origin = Origin::hello();
    let allow = "HTTP/1.1 200 OK\r\nX-User: ann\r\nContent-Length: 2\r\n\r\nok";
    let service = Origin::scripted(Script::serve(allow));
    let keys = format!(
        "auth = {{ to = \"{}check\", copy = [\"x-user\"] }}",
        service.url("/")
    );
    let allowing = gateway(&origin.url(""), &keys);
    let fields = "Cookie: id=7\r\nX-User: root\r\nX-Forwarded-Uri: /else\r\n";
    assert_eq!(
        get_with(allowing.address(), "/page?a", fields).text(),
        "hello"
    );
    let head = service.heads().pop().unwrap().to_ascii_lowercase();
    assert!(head.starts_with("get /check http/1.1"), "{head}");
    for line in [
        "cookie: id=7",
        "x-forwarded-method: get",
        "x-forwarded-uri: /page?a",
    ] {
        assert!(head.contains(line), "{line}: {head}");
    }
    assert!(!head.contains("/else") && !head.contains("root"), "{head}");
    let seen = origin.heads().pop().unwrap().to_ascii_lowercase();
    assert!(
        seen.contains("x-user: ann") && !seen.contains("root"),
        "{seen}"
    );
}

/// The exchange of Authelia and oauth2-proxy: a query and fields of one's own, and on success what the client gets too.
#[test]
fn a_service_has_a_query_and_fields_of_its_own_and_its_cookies_reach_the_client() {
    let origin = Origin::scripted(Script::serve(
        "HTTP/1.1 200 OK\r\nSet-Cookie: shop=1\r\nX-Auth-Level: forged\r\nContent-Length: 5\r\n\r\nhello",
    ));
    let service = Origin::scripted(Script::serve(
        "HTTP/1.1 202 Accepted\r\nRemote-User: ann\r\nX-Auth-Level: 2\r\nX-Inner: 1\r\n\
         Set-Cookie: session=renewed\r\nSet-Cookie: csrf=2\r\nContent-Length: 0\r\n\r\n",
    ));
    let keys = format!(
        "auth = {{ to = \"{}api/verify?rd=https://auth.test/&x=%20\", copy = [\"remote-user\"], to_client = [\"x-auth-level\"], \
         headers = {{ x-original-url = \"{{scheme}}://{{authority}}{{path}}{{query}}\", x-secret = \"s\", cookie = false }} }}",
        service.url("/")
    );
    let gateway = gateway(&origin.url(""), &keys);
    let fields = "Cookie: id=7\r\nX-Original-URL: http://forged/\r\nX-Secret: forged\r\n";
    let received = get_with(gateway.address(), "/page?a", fields);
    assert_eq!(received.text(), "hello");
    let asked = service.heads().pop().unwrap().to_ascii_lowercase();
    assert!(
        asked.starts_with("get /api/verify?rd=https://auth.test/&x=%20 http/1.1"),
        "{asked}"
    );
    let url = "x-original-url: http://localhost/page?a\r\n";
    assert!(
        asked.contains(url) && asked.contains("x-secret: s\r\n"),
        "{asked}"
    );
    assert!(
        !asked.contains("forged") && !asked.contains("cookie"),
        "{asked}"
    );
    let head = received.head.to_ascii_lowercase();
    for line in [
        "set-cookie: shop=1",
        "set-cookie: session=renewed",
        "set-cookie: csrf=2",
        "x-auth-level: 2",
    ] {
        assert!(head.contains(line), "{line}: {head}");
    }
    assert!(
        !head.contains("forged") && !head.contains("x-inner"),
        "{head}"
    );
    let seen = origin.heads().pop().unwrap().to_ascii_lowercase();
    assert!(
        seen.contains("remote-user: ann") && seen.contains("cookie: id=7"),
        "{seen}"
    );
}

/// What the service says to a client whom it turns away is not replaced by pages of the gateway.
#[test]
fn a_denial_goes_back_whole() {
    let origin = Origin::hello();
    let service = Origin::scripted(Script::serve(
        "HTTP/1.1 401 Unauthorized\r\nLocation: https://auth.test/\r\nWWW-Authenticate: Basic\r\n\
         Set-Cookie: csrf=1\r\nSet-Cookie: state=2\r\nContent-Length: 5\r\n\r\nlogin",
    ));
    let keys = format!(
        "auth = {{ to = \"{}\" }}, error_pages = {{ 4xx = {{ body = \"page\" }} }}",
        service.url("/check")
    );
    let received = get(gateway(&origin.url(""), &keys).address(), "/");
    assert_eq!(received.status, 401);
    assert_eq!(received.text(), "login");
    let head = received.head.to_ascii_lowercase();
    for line in [
        "location: https://auth.test/",
        "www-authenticate: basic",
        "set-cookie: csrf=1",
        "set-cookie: state=2",
    ] {
        assert!(head.contains(line), "{line}: {head}");
    }
    assert_eq!(origin.requests(), 0);
}

#[test]
fn a_request_that_is_not_authorized_is_not_forwarded() {
    let origin = Origin::hello();
    let refused = format!("http://{}", plimsoll_testkit::refused_address());
    let deny =
        "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic\r\nContent-Length: 5\r\n\r\nlogin";
    let to_login = "HTTP/1.1 302 Found\r\nLocation: /login\r\nContent-Length: 0\r\n\r\n";
    let broken = "HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n";
    for (answer, status, part) in [
        (deny, 401, "www-authenticate: basic"),
        (to_login, 302, "location: /login"),
        (broken, 502, "text/plain"),
    ] {
        let service = Origin::scripted(Script::serve(answer));
        let keys = format!(
            "auth = {{ to = \"{}\" }}",
            service.url("").trim_end_matches('/')
        );
        let denying = gateway(&origin.url(""), &keys);
        let received = get(denying.address(), "/");
        assert_eq!(received.status, status, "{received:?}");
        assert!(
            received.head.to_ascii_lowercase().contains(part),
            "{received:?}"
        );
    }
    let down = gateway(&origin.url(""), &format!("auth = {{ to = \"{refused}\" }}"));
    assert_eq!(get(down.address(), "/").status, 502);
    assert_eq!(origin.requests(), 0);
}

#[test]
fn a_request_has_a_total_time_over_all_attempts() {
    let script = Script::new().then(Step::ReadHead);
    let origin = Origin::scripted(script.then(Step::Hold));
    let gateway = gateway(
        &origin.url(""),
        "timeout = \"100ms\", retry = { retries = 5, on = [\"reset\", \"timeout\"] }",
    );
    assert_eq!(get(gateway.address(), "/").status, 504);
}
