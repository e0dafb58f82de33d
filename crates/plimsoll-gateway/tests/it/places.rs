//! Places in every text that takes them, and maps.

use std::fs;

use plimsoll_server::config::LogTarget;
use plimsoll_testkit::http::{HttpResponse, exchange, get};
use plimsoll_testkit::{MaterialFiles, Origin, Script, eventually, refused_address};

use crate::server::{Served, compiled, named};

fn get_as(served: &Served, path: &str, fields: &str) -> HttpResponse {
    let request =
        format!("GET {path} HTTP/1.1\r\nHost: A.test:81\r\nConnection: close\r\n{fields}\r\n");
    exchange(served.address(), request.as_bytes())
}

#[test]
fn responses_are_filled_from_requests() {
    let served = Served::routes(
        r#"
        [map.size]
        key = "{query:n}"
        exact = { "1" = "one" }
        regex = [{ match = "^(?P<tens>\\d)\\d$", value = "{tens}0 and more, by {method}" }]
        default = "{map:other}"

        [map.other]
        key = "{header:x-a}"
        suffix = { b = "ends with b" }

        [[route]]
        path = "/moved"
        redirect = { to = "/to/{path[1]}/{map:size}{query}", status = 302 }

        [[route]]
        request_id = true
        respond = { template = "{host} {authority} {scheme} {path[2]} {query:n} {cookie:c} {header:x-a} {map:size}{tls.client.verified}", headers = { x-id = "{request.id}", x-none = "{cookie:no}" } }
        response_headers = { set = { x-status = "{status} {response:content-type}", x-client = "{client}" } }
        "#,
    );
    let received = get_as(
        &served,
        "/a/b/c?n=42&m",
        "X-A: 1\r\nX-a: b\r\nCookie: d=1; c=2\r\n",
    );
    assert_eq!(
        received.text(),
        "a.test A.test:81 http b 42 2 1, b 40 and more, by GET"
    );
    let field = |name: &str| received.field(name).map(str::to_owned);
    assert_eq!(field("x-status").unwrap(), "200 text/plain; charset=utf-8");
    assert_eq!(field("x-client").unwrap(), "127.0.0.1");
    assert_eq!(field("x-id").unwrap().len(), 32);
    assert_eq!(field("x-none"), None);
    let other = get_as(&served, "/?n=x", "X-A: b\r\n");
    assert!(other.text().contains("ends with b"), "{other:?}");
    let moved = get_as(&served, "/moved?n=1", "");
    assert_eq!(moved.field("location"), Some("/to/moved/one?n=1"));
}

#[test]
fn an_upstream_is_chosen_by_a_map() {
    let (blue, green, other) = (named("blue"), named("green"), named("other"));
    let served = Served::routes(&format!(
        r#"
        [map.pool]
        key = "{{header:x-tenant}}"
        exact = {{ acme = "green", none = "" }}
        default = "blue"

        [map.port]
        key = "{{query:to}}"
        exact = {{ other = "{}" }}

        [[route]]
        prefix = "/direct"
        proxy = {{ to = "http://{{map:port}}" }}

        [[route]]
        proxy = {{ to = "{{map:pool}}" }}

        [upstream.blue]
        servers = ["{}"]

        [upstream.green]
        servers = ["{}"]
        "#,
        other.address(),
        blue.url(),
        green.url(),
    ));
    assert_eq!(get_as(&served, "/", "").text(), "blue");
    assert_eq!(get_as(&served, "/", "X-Tenant: acme\r\n").text(), "green");
    assert_eq!(get_as(&served, "/", "X-Tenant: none\r\n").status, 502);
    assert_eq!(get_as(&served, "/direct?to=other", "").text(), "other");
    // No address but those of the map.
    let elsewhere = format!("/direct?to={}", refused_address());
    assert_eq!(get_as(&served, &elsewhere, "").status, 502);
}

#[test]
fn routes_have_conditions_on_places() {
    let served = Served::routes(
        r#"
        [map.is_bot]
        key = "{header:user-agent}"
        ignore_case = true
        regex = [{ match = "(?i)crawler", value = "1" }]

        [[route]]
        places = { "map:is_bot" = "1" }
        respond = { status = 403 }

        [[route]]
        places = { "cookie:beta" = true, scheme = ["http", "ws"] }
        respond = { body = "beta" }

        [[route]]
        respond = { body = "all" }
        "#,
    );
    let get = |fields: &str| get_as(&served, "/", fields);
    assert_eq!(get("User-Agent: A Crawler\r\n").status, 403);
    assert_eq!(get("Cookie: beta=x\r\n").text(), "beta");
    assert_eq!(get("Cookie: beta=\r\n").text(), "all");
    assert_eq!(get("").text(), "all");
}

#[test]
fn servers_get_fields_with_places() {
    let origin = Origin::scripted(Script::serve(
        "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
    ));
    let served = Served::routes(&format!(
        r#"
        [[route]]
        request_headers = {{ set = {{ x-layer = "{{method}}{{query}}", x-empty = "{{query:none}}" }} }}
        proxy = {{ to = "{}", headers = {{ x-both = "{{cookie:a}}/{{path[1]}}", x-gone = "{{header:x-none}}" }} }}
        "#,
        origin.url("").trim_end_matches('/'),
    ));
    let fields = "Cookie: a=1\r\nX-Gone: mine\r\nX-Empty: mine\r\n";
    assert_eq!(get_as(&served, "/p/q?x=1", fields).status, 200);
    let seen = origin.heads().concat().to_ascii_lowercase();
    assert!(seen.contains("x-layer: get?x=1\r\n"), "{seen}");
    assert!(seen.contains("x-both: 1/p\r\n"), "{seen}");
    assert!(!seen.contains("mine"), "{seen}");
}

#[test]
fn limits_are_kept_by_places() {
    let served = Served::routes(
        r#"
        [[route]]
        rate_limit = { requests = 1, per = "1h", key = "{query:key}" }
        respond = { body = "x" }
        "#,
    );
    let status = |path: &str| get(served.address(), path).status;
    assert_eq!([status("/?key=a"), status("/?key=a")], [200, 429]);
    assert_eq!(
        [status("/?key=b"), status("/"), status("/")],
        [200, 200, 200]
    );
}

#[test]
fn lines_of_the_log_have_places() {
    let files = MaterialFiles::new();
    let origin = Origin::hello();
    for (format, expected) in [
        (
            "'{client} {method} \"{header:x-a}\" {header:x-b} {status} {bytes} {upstream.address} {response:content-length} {map:kind}'",
            "127.0.0.1 GET \"a\\x22 b\" c\\x20d 200 5 ADDRESS - good\n",
        ),
        (
            "{ s = '{status}', kind = '{map:kind}', none = '{cookie:x}', \"a b\" = '{method} {bytes}' }",
            "{\"s\":200,\"kind\":\"good\",\"a b\":\"GET 5\"}\n",
        ),
    ] {
        let file = files.path("access.log");
        fs::remove_file(&file).ok();
        let served = Served::routes(&format!(
            "[map.kind]\nkey = \"{{status}}\"\nprefix = {{ 2 = \"good\" }}\n\
             [log]\nfile = \"{}\"\nformat = {format}\n[[route]]\nproxy = \"{}\"\n",
            file.display(),
            origin.url("").trim_end_matches('/'),
        ));
        let path = file.clone();
        let _writer = served
            .log()
            .unwrap()
            .write_to(Box::new(move || LogTarget::open_file(&path)))
            .unwrap();
        assert_eq!(
            get_as(&served, "/", "X-A: a\" b\r\nX-B: c d\r\n").status,
            200
        );
        let lines = || fs::read_to_string(&file).unwrap_or_default();
        eventually(|| lines().ends_with('\n'));
        let url = origin.url("");
        let address = url.trim_start_matches("http://").trim_end_matches('/');
        assert_eq!(lines(), expected.replace("ADDRESS", address));
    }
}

#[test]
fn mistakes_are_found_where_they_stand() {
    let text = r#"
        [[listen]]
        address = "127.0.0.1:0"
        [log]
        file = "-"
        format = "{clint}"
        [map.a]
        key = "{bytes}"
        [[route]]
        places = { "map:a" = "x", nonsense = true }
        respond = { template = "{status}", headers = { x = "{map:b}" } }
        response_headers = { set = { y = "{duration}" } }
        [[route]]
        path = "/x"
        proxy = { to = "{header:x}", headers = { z = "{upstream.server}" } }
        [[route]]
        path = "/y"
        redirect = { to = "/{hots}" }
    "#;
    let problems = compiled(text).unwrap_err();
    let shown: Vec<_> = problems.iter().map(ToString::to_string).collect();
    for expected in [
        "log.format: `{clint}` is no place",
        "route[1].places.map:a: `{map:a}` is not known before there is a response",
        "route[1].places.nonsense: `{nonsense}` is no place",
        "route[1].respond.template: `{status}` is not known before there is a response",
        "route[1].respond.headers.x: `{map:b}`: there is no map of that name; there are a",
        "route[1].response_headers.set.y: `{duration}` is not known before the response has ended",
        "route[2].proxy.to: names no upstream",
        "route[2].proxy.headers.z: `{upstream.server}` is not known",
        "route[3].redirect.to: `{hots}` is no place",
    ] {
        let is_found = shown.iter().any(|it| it.contains(expected));
        assert!(is_found, "{expected}\n{shown:#?}");
    }
}

#[test]
fn content_is_read_ahead_for_places_and_forwarded_whole() {
    let origin = Origin::hello();
    let served = Served::routes(&format!(
        r#"
        [map.kind]
        key = "{{content}}"
        exact = {{ "a=1" = "one" }}
        default = "another"

        [[route]]
        path = "/unread"
        respond = {{ template = "<{{content}}>" }}

        [[route]]
        path = "/text"
        read_content = "8B"
        respond = {{ template = "<{{content}}> {{map:kind}}" }}

        [[route]]
        read_content = "8B"
        proxy = {{ to = "http://{}", headers = {{ x-content = "{{content}}" }} }}
        response_headers = {{ set = {{ x-kind = "{{map:kind}}", x-content = "{{content}}" }} }}
        "#,
        origin.address()
    ));
    let post = |path: &str, head: &str, content: &str| {
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n{head}\r\n\r\n{content}"
        );
        exchange(served.address(), request.as_bytes())
    };
    assert_eq!(post("/unread", "Content-Length: 3", "a=1").text(), "<>");
    for (head, content, expected) in [
        ("Content-Length: 3", "a=1", "<a=1> one"),
        ("Content-Length: 8", "a=345678", "<a=345678> another"),
        ("Content-Length: 9", "a=3456789", "<> another"),
        (
            "Transfer-Encoding: chunked",
            "1\r\na\r\n2\r\n=1\r\n0\r\n\r\n",
            "<a=1> one",
        ),
        (
            "Transfer-Encoding: chunked",
            "5\r\n12345\r\n5\r\n67890\r\n0\r\n\r\n",
            "<> another",
        ),
        ("X-None: 1", "", "<> another"),
    ] {
        assert_eq!(
            post("/text", head, content).text(),
            expected,
            "{head} {content}"
        );
    }
    for (content, kept, kind) in [
        ("a=1".to_owned(), Some("a=1"), "one"),
        ("x".repeat(100_000), None, "another"),
    ] {
        let head = format!("Content-Length: {}", content.len());
        let received = post("/on", &head, &content);
        assert_eq!(received.field("x-content"), kept);
        assert_eq!(received.field("x-kind"), Some(kind));
        let head = origin.heads().pop().unwrap().to_ascii_lowercase();
        let sent = kept.map(|it| format!("\r\nx-content: {it}\r\n"));
        assert_eq!(head.contains("x-content"), kept.is_some(), "{head}");
        assert!(sent.is_none_or(|it| head.contains(&it)), "{head}");
    }
    // A client cannot inject fields into requests to servers, nor into responses.
    let received = post("/on", "Content-Length: 7", "a\r\nb: 1");
    assert_eq!((received.status, received.field("b")), (200, None));
    let head = origin.heads().pop().unwrap().to_ascii_lowercase();
    assert!(!head.contains("\r\nb: 1"), "{head}");
    let read = origin.bytes_read();
    assert!(read > 100_000, "{read}");
}
