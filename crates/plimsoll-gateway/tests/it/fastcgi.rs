//! Applications behind FastCGI: PHP, and servers that do not speak it.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::thread;

use plimsoll_client::forward::Speaks;
use plimsoll_testkit::PhpApplication;
use plimsoll_testkit::http::{HttpResponse, exchange, get, get_with};

use crate::client::post;
use crate::server::{Served, compiled};

/// Writes all parameters, one in a line, and the content behind them.
const SHOW: &str = r#"<?php
header("Content-Type: text/plain");
foreach ($_SERVER as $name => $value) {
    if (is_string($value)) echo "$name=$value\n";
}
echo "content=", file_get_contents("php://input"), "\n";
"#;

const HEADS: &str = r#"<?php
if (isset($_GET["gone"])) { http_response_code(410); header("X-A: 1"); header("X-A: 2", false); echo "gone"; }
if (isset($_GET["to"])) header("Location: /there");
if (isset($_GET["large"])) echo str_repeat("0123456789", 200000);
if (isset($_GET["short"])) { header("Content-Length: 100"); echo "short"; }
if (isset($_GET["long"])) { header("Content-Length: 2"); echo "long"; }
"#;

fn application() -> PhpApplication {
    PhpApplication::start(&[
        ("index.php", "<?php echo 'the index';"),
        ("show.php", SHOW),
        ("heads.php", HEADS),
    ])
}

/// A route to the application, with more keys.
fn served(application: &PhpApplication, keys: &str) -> Served {
    Served::routes(&format!(
        "[[route]]\nproxy = {{ to = \"{}\", protocol = \"fastcgi\", fastcgi = {{ root = \"{}\"{keys} }} }}\n",
        application.url(),
        application.root(),
    ))
}

/// The value of a parameter that `show.php` was given.
fn parameter(received: &HttpResponse, name: &str) -> Option<String> {
    let text = received.text();
    let mut lines = text.lines().filter_map(|line| line.split_once('='));
    lines.find_map(|(known, value)| (known == name).then(|| value.to_owned()))
}

#[test]
fn scripts_get_the_parameters_of_cgi() {
    let application = application();
    let keys = r#", parameters = { APP_ENV = "test", REQUEST_SCHEME = "{header:x-scheme}", HTTP_HOST = "own" }"#;
    let served = served(&application, keys);
    let received = get_with(
        served.address(),
        "/show.php/with%20in?a=1&b=%20",
        "X-Some-Field: some\r\nProxy: evil:1\r\nX-Scheme: s\r\nX.Forwarded.For: 6.6.6.6\r\n",
    );
    assert_eq!(received.status, 200, "{received:?}");
    assert_eq!(
        received.field("content-type"),
        Some("text/plain;charset=UTF-8")
    );
    let root = application.root();
    let script = format!("{root}/show.php");
    let port = served.address().port().to_string();
    for (name, value) in [
        ("GATEWAY_INTERFACE", "CGI/1.1"),
        ("SERVER_PROTOCOL", "HTTP/1.1"),
        ("REQUEST_METHOD", "GET"),
        ("REQUEST_URI", "/show.php/with%20in?a=1&b=%20"),
        ("QUERY_STRING", "a=1&b=%20"),
        ("SCRIPT_NAME", "/show.php"),
        ("SCRIPT_FILENAME", &script),
        ("PATH_INFO", "/with in"),
        ("DOCUMENT_URI", "/show.php/with in"),
        ("DOCUMENT_ROOT", &root),
        ("REMOTE_ADDR", "127.0.0.1"),
        ("SERVER_ADDR", "127.0.0.1"),
        ("SERVER_PORT", &port),
        ("SERVER_NAME", "localhost"),
        ("HTTP_HOST", "own"),
        ("HTTP_X_SOME_FIELD", "some"),
        ("HTTP_X_FORWARDED_FOR", "127.0.0.1"),
        ("REQUEST_SCHEME", "s"),
        ("APP_ENV", "test"),
        ("CONTENT_LENGTH", ""),
    ] {
        let given = parameter(&received, name);
        assert_eq!(given.as_deref(), Some(value), "{name}: {}", received.text());
    }
    // The environment of the test may have one.
    assert_ne!(
        parameter(&received, "HTTP_PROXY").as_deref(),
        Some("evil:1")
    );
    for name in ["HTTPS", "HTTP_CONNECTION"] {
        assert_eq!(parameter(&received, name), None, "{name}");
    }
}

#[test]
fn programs_learn_of_the_path_that_the_client_sent() {
    let application = application();
    let served = Served::routes(&format!(
        "[[route]]\nregex = \"/app/(.*)\"\nrewrite = {{ to = \"/show.php/{{1}}?b=2\" }}\n\
         [[route]]\nprefix = \"/show.php\"\nproxy = {{ to = \"{}\", protocol = \"fastcgi\", fastcgi = {{ root = \"{}\" }} }}\n",
        application.url(),
        application.root(),
    ));
    let received = get(served.address(), "/app/page?a=1");
    for (name, value) in [
        ("REQUEST_URI", "/app/page?a=1"),
        ("PATH_INFO", "/page"),
        ("QUERY_STRING", "b=2"),
    ] {
        assert_eq!(parameter(&received, name).as_deref(), Some(value), "{name}");
    }
}

#[test]
fn paths_name_scripts() {
    let application = application();
    let front = Served::routes(&format!(
        "[[route]]\nprefix = \"/app/\"\nproxy = {{ to = \"{0}\", protocol = \"fastcgi\", strip = true, fastcgi = \"{1}\" }}\n\
         [[route]]\nproxy = {{ to = \"{0}\", protocol = \"fastcgi\", fastcgi = {{ root = \"{1}\", script = \"/show.php\" }} }}\n",
        application.url(),
        application.root(),
    ));
    assert_eq!(get(front.address(), "/app/").text(), "the index");
    let shown = get(front.address(), "/app/show.php");
    assert_eq!(parameter(&shown, "SCRIPT_NAME").unwrap(), "/show.php");
    let shown = get(front.address(), "/any/where/?q");
    assert_eq!(parameter(&shown, "SCRIPT_NAME").unwrap(), "/show.php");
    assert_eq!(parameter(&shown, "REQUEST_URI").unwrap(), "/any/where/?q");
    let missing = get(front.address(), "/app/missing.php");
    assert_eq!(missing.status, 404, "{missing:?}");
    // No path leads out of the folder.
    let outside = get(front.address(), "/app/%2e%2e/root/show.php");
    assert_ne!(
        parameter(&outside, "SCRIPT_NAME").as_deref(),
        Some("/../root/show.php")
    );
}

#[test]
fn scripts_that_have_to_exist_are_looked_for() {
    let application = application();
    let picture = application.file("picture.jpg");
    std::fs::write(picture, "<?php echo 'run';").unwrap();
    let served = served(&application, ", must_exist = true");
    for (path, status) in [
        ("/picture.jpg/x.php", 404),
        ("/missing.php", 404),
        ("/missing/", 404),
        ("/", 200),
        ("/show.php/within", 200),
    ] {
        assert_eq!(get(served.address(), path).status, status, "{path}");
    }
}

#[test]
fn content_arrives_whether_its_length_is_known_or_not() {
    let application = application();
    let served = served(&application, "");
    let known = b"POST /show.php HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Type: text/x\r\nContent-Length: 5\r\n\r\nknown";
    let known = exchange(served.address(), known);
    assert_eq!(parameter(&known, "content").unwrap(), "known");
    assert_eq!(parameter(&known, "CONTENT_LENGTH").unwrap(), "5");
    assert_eq!(parameter(&known, "CONTENT_TYPE").unwrap(), "text/x");
    let chunked = b"POST /show.php HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nchu\r\n4\r\nnked\r\n0\r\nX-Trailer: a\r\n\r\n";
    let chunked = exchange(served.address(), chunked);
    assert_eq!(parameter(&chunked, "content").unwrap(), "chunked");
    assert_eq!(parameter(&chunked, "CONTENT_LENGTH").unwrap(), "7");
    let large = "x".repeat(200_000);
    let url = format!("http://{}/show.php", served.address());
    let (_, received, _) = post(Speaks::Http1, &url, large.clone().into());
    let received = String::from_utf8_lossy(&received);
    assert!(received.ends_with(&format!("content={large}\n")));
}

#[test]
fn heads_of_scripts_become_responses() {
    let application = application();
    let served = served(&application, "");
    let gone = get(served.address(), "/heads.php?gone");
    assert_eq!((gone.status, gone.text()), (410, "gone"));
    assert_eq!(gone.head.matches("X-A: ").count(), 2, "{}", gone.head);
    assert_eq!(gone.field("status"), None);
    let moved = get(served.address(), "/heads.php?to");
    assert_eq!(
        (moved.status, moved.field("location")),
        (302, Some("/there"))
    );
    let url = format!("http://{}/heads.php?large", served.address());
    let (_, large, _) = post(Speaks::Http1, &url, "".into());
    assert_eq!(large.len(), 2_000_000);
    let long = get(served.address(), "/heads.php?long");
    assert_eq!(
        (long.field("content-length"), long.text()),
        (Some("2"), "lo")
    );
    let bare = exchange(
        served.address(),
        b"HEAD /heads.php?gone HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
    );
    assert_eq!((bare.status, bare.text()), (410, ""));
}

#[test]
fn what_is_no_application_is_a_502() {
    for said in [
        "HTTP/1.1 200 OK\r\n\r\n",
        "",
        "\x01\x06\x00\x01\x00\x03\x00\x00<p>",
        "\x01\x03\x00\x01\x00\x08\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00",
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let answering = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            assert!(stream.read(&mut [0; 4096]).unwrap() > 0);
            stream.write_all(said.as_bytes()).unwrap();
        });
        let served = Served::routes(&format!(
            "[[route]]\nproxy = {{ to = \"http://{address}\", protocol = \"fastcgi\", fastcgi = \"/srv\", retry = {{ retries = 0 }} }}\n"
        ));
        assert_eq!(get(served.address(), "/").status, 502, "{said:?}");
        answering.join().unwrap();
    }
}

#[test]
fn mistakes_of_the_configuration_are_named() {
    let problem = |route: &str| {
        let problems = compiled(&format!("[[listen]]\naddress = \"127.0.0.1:0\"\n{route}"));
        problems.unwrap_err()[0].to_string()
    };
    assert!(
        problem("[upstream.php]\nservers = [\"http://127.0.0.1:9000\"]\nprotocol = \"fastcgi\"\n[[route]]\nproxy = \"php\"\n")
            .contains("`fastcgi` with the folder of their scripts is missing"),
    );
    assert!(
        problem("[[route]]\nproxy = { to = \"http://127.0.0.1:9000\", fastcgi = \"/srv\" }\n")
            .contains("`fastcgi` is for servers that speak it"),
    );
    assert!(
        problem("[[route]]\nproxy = { to = \"https://127.0.0.1:9000\", protocol = \"fastcgi\", fastcgi = \"/srv\" }\n")
            .contains("goes without TLS"),
    );
    assert!(
        problem("[[route]]\nproxy = { to = \"http://127.0.0.1:9000\", protocol = \"fastcgi\", fastcgi = \"srv\" }\n")
            .contains("an absolute path"),
    );
}
