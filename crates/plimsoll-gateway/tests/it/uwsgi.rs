//! Applications behind uwsgi: Python by uWSGI, and servers that do not speak it.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener};
use std::thread;

use plimsoll_client::forward::Speaks;
use plimsoll_testkit::UwsgiApplication;
use plimsoll_testkit::http::{HttpResponse, exchange, get, get_with};

use crate::client::post;
use crate::server::{Served, compiled};

/// Shows its parameters, one in a line, and the content behind them; other paths respond in other ways.
const APPLICATION: &str = r#"
import threading

waiting = threading.Event()

def application(environ, start_response):
    path = environ["PATH_INFO"]
    if path == "/gone":
        start_response("410 Gone", [("X-A", "1"), ("X-A", "2")])
        return [b"gone"]
    if path == "/large":
        start_response("200 OK", [])
        return (b"0123456789" * 1000 for _ in range(200))
    if path == "/first":
        start_response("200 OK", [])
        return first_and_rest()
    if path == "/rest":
        waiting.set()
        start_response("204 No Content", [])
        return []
    if path == "/short":
        start_response("200 OK", [("Content-Length", "100")])
        return [b"short"]
    if path == "/long":
        start_response("200 OK", [("Content-Length", "2")])
        return [b"long"]
    if path == "/fails":
        raise ValueError("of the test")
    start_response("200 OK", [("Content-Type", "text/plain")])
    lines = [f"{name}={value}" for name, value in environ.items() if isinstance(value, str)]
    content = environ["wsgi.input"].read()
    return ["\n".join(lines).encode("latin-1"), b"\ncontent=", content, b"\n"]

def first_and_rest():
    yield b"first "
    waiting.wait()
    yield b"rest"
"#;

/// A route to the application, with more keys of `proxy`.
fn served(target: &str, keys: &str) -> Served {
    Served::routes(&format!(
        "[[route]]\nproxy = {{ to = \"{target}\", protocol = \"uwsgi\"{keys} }}\n"
    ))
}

/// The value of a parameter that the application was given.
fn parameter(received: &HttpResponse, name: &str) -> Option<String> {
    let text = received.text();
    let mut lines = text.lines().filter_map(|line| line.split_once('='));
    lines.find_map(|(known, value)| (known == name).then(|| value.to_owned()))
}

#[test]
fn applications_get_the_parameters_of_nginx() {
    let application = UwsgiApplication::start(APPLICATION);
    for target in [application.socket(), application.url()] {
        let keys = r#", uwsgi = { parameters = { APP_ENV = "test", REQUEST_SCHEME = "{header:x-scheme}", HTTP_X_OWN = "own" } }"#;
        let served = served(&target, keys);
        let received = get_with(
            served.address(),
            "/show/with%20in?a=1&b=%20",
            "X-Some-Field: some\r\nX-Some-Field: other\r\nX-Scheme: s\r\nX-Own: evil\r\n",
        );
        assert_eq!(received.status, 200, "{received:?}");
        assert_eq!(received.field("content-type"), Some("text/plain"));
        let port = served.address().port().to_string();
        for (name, value) in [
            ("SERVER_PROTOCOL", "HTTP/1.1"),
            ("REQUEST_METHOD", "GET"),
            ("REQUEST_URI", "/show/with%20in?a=1&b=%20"),
            ("QUERY_STRING", "a=1&b=%20"),
            ("PATH_INFO", "/show/with in"),
            ("REMOTE_ADDR", "127.0.0.1"),
            ("SERVER_ADDR", "127.0.0.1"),
            ("SERVER_PORT", &port),
            ("SERVER_NAME", "localhost"),
            ("HTTP_X_SOME_FIELD", "some, other"),
            ("HTTP_X_FORWARDED_FOR", "127.0.0.1"),
            ("HTTP_X_OWN", "own"),
            ("REQUEST_SCHEME", "s"),
            ("APP_ENV", "test"),
            ("CONTENT_LENGTH", ""),
            ("content", ""),
        ] {
            let given = parameter(&received, name);
            assert_eq!(given.as_deref(), Some(value), "{name}: {}", received.text());
        }
        for name in ["HTTPS", "SCRIPT_NAME", "HTTP_CONNECTION"] {
            assert_eq!(parameter(&received, name), None, "{name}");
        }
    }
}

#[test]
fn fields_pass_for_no_others() {
    let application = UwsgiApplication::start(APPLICATION);
    let served = served(&application.socket(), "");
    let received = get_with(
        served.address(),
        "/",
        "Proxy: evil:1\r\nX.Forwarded.For: 6.6.6.6\r\nX_Forwarded_For: 6.6.6.6\r\nX_User: evil\r\nX-User: alice\r\n\
         Content_Length: 7\r\nContent.Type: evil\r\nHTTP-X-Forwarded-For: 6.6.6.6\r\nRemote-Addr: 6.6.6.6\r\n",
    );
    for (name, value) in [
        ("HTTP_X_FORWARDED_FOR", Some("127.0.0.1")),
        ("HTTP_X_USER", Some("alice")),
        ("HTTP_PROXY", None),
        ("HTTP_CONTENT_LENGTH", None),
        ("HTTP_CONTENT_TYPE", None),
        ("REMOTE_ADDR", Some("127.0.0.1")),
        ("CONTENT_LENGTH", Some("")),
        ("CONTENT_TYPE", Some("")),
    ] {
        let given = parameter(&received, name);
        assert_eq!(given.as_deref(), value, "{name}: {}", received.text());
    }
}

#[test]
fn a_stripped_prefix_is_the_name_of_the_application() {
    let application = UwsgiApplication::start(APPLICATION);
    let served = Served::routes(&format!(
        "[upstream.app]\nservers = [\"{0}\"]\nprotocol = \"uwsgi\"\n\
         [[route]]\nprefix = \"/app/\"\nproxy = {{ to = \"app\", strip = true }}\n\
         [[route]]\nproxy = \"app\"\n",
        application.socket(),
    ));
    for (path, name, info) in [("/app/a%20b?q", Some("/app"), "/a b"), ("/b", None, "/b")] {
        let shown = get(served.address(), path);
        let given = parameter(&shown, "SCRIPT_NAME");
        assert_eq!(given.as_deref(), name, "{path}");
        assert_eq!(parameter(&shown, "PATH_INFO").unwrap(), info, "{path}");
        assert_eq!(parameter(&shown, "REQUEST_URI").unwrap(), path);
    }
}

#[test]
fn content_arrives_whether_its_length_is_known_or_not() {
    let application = UwsgiApplication::start(APPLICATION);
    let served = served(&application.url(), "");
    let known = b"POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Type: text/x\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\nknown";
    let known = exchange(served.address(), known);
    assert_eq!(
        parameter(&known, "content").as_deref(),
        Some("known"),
        "{known:?}"
    );
    assert_eq!(parameter(&known, "CONTENT_LENGTH").unwrap(), "5");
    assert_eq!(parameter(&known, "CONTENT_TYPE").unwrap(), "text/x");
    let chunked = b"POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nchu\r\n4\r\nnked\r\n0\r\nX-Trailer: a\r\n\r\n";
    let chunked = exchange(served.address(), chunked);
    assert_eq!(
        parameter(&chunked, "content").as_deref(),
        Some("chunked"),
        "{chunked:?}"
    );
    assert_eq!(parameter(&chunked, "CONTENT_LENGTH").unwrap(), "7");
    let large = "x".repeat(200_000);
    let url = format!("http://{}/", served.address());
    let (_, received, _) = post(Speaks::Http1, &url, large.clone().into());
    let received = String::from_utf8_lossy(&received);
    assert!(received.ends_with(&format!("content={large}\n")));
}

#[test]
fn responses_of_applications_are_those_of_the_route() {
    let application = UwsgiApplication::start(APPLICATION);
    let served = served(&application.socket(), ", retry = { retries = 0 }");
    let gone = get(served.address(), "/gone");
    assert_eq!((gone.status, gone.text()), (410, "gone"));
    assert_eq!(gone.head.matches("X-A: ").count(), 2, "{}", gone.head);
    let url = |path| format!("http://{}{path}", served.address());
    let (_, large, _) = post(Speaks::Http1, &url("/large"), "".into());
    assert_eq!(large.len(), 2_000_000);
    let long = get(served.address(), "/long");
    assert_eq!(
        (long.field("content-length"), long.text()),
        (Some("2"), "lo")
    );
    let bare = b"HEAD /gone HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    let bare = exchange(served.address(), bare);
    assert_eq!((bare.status, bare.text()), (410, ""));
    let old = exchange(served.address(), b"GET /gone HTTP/1.0\r\n\r\n");
    assert_eq!((old.status, old.text()), (410, "gone"));
    // uWSGI ends a request whose application fails without a response, or with a 500.
    let failed = get(served.address(), "/fails").status;
    assert!(matches!(failed, 500 | 502), "{failed}");
}

#[test]
fn content_is_passed_on_as_it_comes() {
    let application = UwsgiApplication::start(APPLICATION);
    let served = served(&application.socket(), "");
    let mut stream = std::net::TcpStream::connect(served.address()).unwrap();
    stream
        .write_all(b"GET /first HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        .unwrap();
    let mut received = Vec::new();
    let mut piece = [0; 4096];
    while !String::from_utf8_lossy(&received).contains("first ") {
        let length = stream.read(&mut piece).unwrap();
        assert!(length > 0, "{}", String::from_utf8_lossy(&received));
        received.extend_from_slice(&piece[..length]);
    }
    assert!(!String::from_utf8_lossy(&received).contains("rest"));
    assert_eq!(get(served.address(), "/rest").status, 204);
    stream.read_to_end(&mut received).unwrap();
    assert!(String::from_utf8_lossy(&received).contains("rest"));
}

/// The status of the response to a request, if the server says that, and what it received.
fn status_behind(said: &'static str, keys: &str) -> (HttpResponse, Vec<u8>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let answering = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut received = vec![0; 4096];
        let length = stream.read(&mut received).unwrap();
        received.truncate(length);
        stream.write_all(said.as_bytes()).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        received
    });
    let keys = format!(", retry = {{ retries = 0 }}{keys}");
    let served = served(&format!("http://{address}"), &keys);
    let response = get(served.address(), "/");
    (response, answering.join().unwrap())
}

#[test]
fn what_is_no_response_is_a_502() {
    for said in [
        "",
        "HT",
        "HTTP/1.1 200",
        "HTTP/1.1 200 OK\r\nA: b\r\n",
        "<html>\n",
        "Status: 100\n\n",
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\na",
    ] {
        let (response, _) = status_behind(said, "");
        assert_eq!(response.status, 502, "{said:?}");
    }
}

#[test]
fn heads_of_cgi_and_other_versions_are_read() {
    for (said, status) in [
        ("Status: 404 Not Found\nX-A: 1\n\nbody", 404),
        (
            "HTTP/2.0 201 Created\r\nX-A: 1\r\nContent-Length: 4\r\n\r\nbody",
            201,
        ),
        ("HTTP/1.0 200 OK\r\nX-A: 1\r\n\r\nbody", 200),
        (
            "HTTP/1.1 200 OK\r\nX-A: 1\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n",
            200,
        ),
    ] {
        let (response, received) =
            status_behind(said, ", uwsgi = { modifier1 = 9, modifier2 = 3 }");
        assert_eq!(
            (response.status, response.text()),
            (status, "body"),
            "{said:?}"
        );
        assert_eq!(response.field("x-a"), Some("1"));
        assert_eq!((received[0], received[3]), (9, 3));
    }
}

#[test]
fn requests_that_are_too_long_for_a_packet_are_not_sent() {
    let application = UwsgiApplication::start(APPLICATION);
    let served = served(
        &application.socket(),
        ", headers = { X-Long = \"{query.string}{query.string}{query.string}{query.string}\" }",
    );
    let long = get(served.address(), &format!("/?{}", "a".repeat(15_000)));
    assert_eq!(long.status, 400, "{long:?}");
    assert_eq!(get(served.address(), "/?short").status, 200);
}

#[test]
fn mistakes_of_the_configuration_are_named() {
    let check = |route: &str, expected: &str| {
        let problems = compiled(&format!("[[listen]]\naddress = \"127.0.0.1:0\"\n{route}"));
        let problem = problems.unwrap_err()[0].to_string();
        assert!(problem.contains(expected), "{problem}");
    };
    let inline =
        |keys: &str| format!("[[route]]\nproxy = {{ to = \"http://127.0.0.1:9000\", {keys} }}\n");
    check(
        &inline("uwsgi = {}"),
        "`uwsgi` is for servers that speak it",
    );
    check(
        &inline("protocol = \"uwsgi\", fastcgi = \"/srv\""),
        "`fastcgi` is for servers that speak it",
    );
    check(
        &inline("protocol = \"uwsgi\", uwsgi = {}, fastcgi = \"/srv\""),
        "`fastcgi` and `uwsgi` do not go together",
    );
    check(
        &inline("protocol = \"uwsgi\", uwsgi = { modifier1 = 256 }"),
        "255",
    );
    check(
        &inline("protocol = \"uwsgi\", uwsgi = { parameters = { \"a b\" = \"c\" } }"),
        "letters, digits and `_`",
    );
    check(
        &inline("protocol = \"uwsgi\", keep = 5"),
        "end with each response",
    );
    check(
        "[[route]]\nproxy = { to = \"https://127.0.0.1:9000\", protocol = \"uwsgi\" }\n",
        "`protocol = \"uwsgi\"` goes without TLS",
    );
    check(
        "[upstream.app]\nservers = [\"http://127.0.0.1:9000\"]\nprotocol = \"uwsgi\"\nhealth = { path = \"/up\" }\n[[route]]\nproxy = \"app\"\n",
        "applications behind uwsgi are checked by `health = { kind = \"tcp\" }`",
    );
}
