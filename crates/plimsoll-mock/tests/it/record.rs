//! Recording real servers: their answers are passed on as they come, and kept once they are whole.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;

use plimsoll_testkit::http::request;
use plimsoll_testkit::{Origin, Script, Step, eventually};

use crate::admin::Administered;

fn recording(origin: &Origin) -> Administered {
    let url = origin.url("/base");
    let route = format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\n[[route]]\nmock = {{ record = \"{url}\", dir = \"recorded\" }}\n"
    );
    Administered::start_with(&route, &[])
}

fn rules(recording: &Administered) -> String {
    let file = recording.folder().join("recorded/rules.toml");
    fs::read_to_string(file).unwrap_or_default()
}

#[test]
fn answers_are_kept_and_requested_as_they_are() {
    let origin = Origin::scripted(Script::serve(
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\nx-a: 1\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    ));
    let recording = recording(&origin);
    let fields = ["host: a", "accept-encoding: gzip", "x-own: 1"];
    let answer = request(recording.address(0), "GET", "/a?b=c", &fields, "");
    assert_eq!((answer.status, answer.text()), (200, "hello"));
    eventually(|| rules(&recording).contains("url_path = \"/a\""));
    let heads = origin.heads();
    assert!(heads[0].starts_with("GET /base/a?b=c "), "{}", heads[0]);
    assert!(heads[0].contains("x-own: 1\r\n"), "{}", heads[0]);
    assert!(!heads[0].contains("accept-encoding"), "{}", heads[0]);
}

#[test]
fn what_does_not_end_is_passed_on_as_it_comes_and_not_kept() {
    let whole = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
    let stream = Script::new()
        .then(Step::ReadHead)
        .then(Step::Write(whole.into()))
        .then(Step::ReadHead)
        .then(Step::Write(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\ndata: 1\n\n".to_vec(),
        ))
        .then(Step::Hold);
    let origin = Origin::scripted(stream);
    let recording = recording(&origin);
    assert_eq!(recording.ask("GET", "/first", "").text(), "ok");
    // On the connection that was kept.
    let mut client = TcpStream::connect(recording.address(0)).unwrap();
    client
        .write_all(b"GET /events HTTP/1.1\r\nhost: a\r\n\r\n")
        .unwrap();
    let mut come = Vec::new();
    let mut buffer = [0; 1024];
    while !come.windows(7).any(|it| it == b"data: 1") {
        let count = client.read(&mut buffer).unwrap();
        assert!(count > 0);
        come.extend_from_slice(&buffer[..count]);
    }
    drop(client);
    assert_eq!(recording.ask("GET", "/second", "").text(), "ok");
    eventually(|| rules(&recording).contains("/second"));
    let rules = rules(&recording);
    assert!(
        rules.contains("/first") && !rules.contains("/events"),
        "{rules}"
    );
}

#[test]
fn a_server_that_breaks_off_before_its_head_is_reported_in_words() {
    for answer in ["", "HTTP/1.1 200 OK\r\ncontent-le"] {
        let origin = Origin::scripted(Script::answer_once(answer));
        let recording = recording(&origin);
        for method in ["GET", "POST"] {
            let answer = recording.ask(method, "/a", "");
            assert_eq!(answer.status, 502);
            assert_eq!(
                answer.field("content-type"),
                Some("text/plain; charset=utf-8")
            );
            assert!(answer.text().starts_with("http://"), "{}", answer.text());
        }
    }
}

/// A recording of several requests, played back.
fn played_back(recording: &Administered) -> crate::mock::Served {
    let file = recording.folder().join("recorded/apimock.toml");
    eventually(|| file.exists());
    let shared = plimsoll_mock::SharedMock::of_file(&file, &plimsoll_server::Notices::default());
    let folder = tempfile::tempdir().unwrap();
    crate::mock::Served::start(folder, shared.unwrap_or_else(|it| panic!("{it:?}")))
}

fn answers(answers: &[&[u8]]) -> Origin {
    let script = answers.iter().fold(Script::new(), |script, answer| {
        script
            .then(Step::ReadHead)
            .then(Step::Write(answer.to_vec()))
    });
    Origin::scripted(script.then(Step::Hold))
}

#[test]
fn what_was_recorded_is_answered_as_it_was() {
    let origin = answers(&[
        b"HTTP/1.1 204 No Content\r\nallow: GET, OPTIONS\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nx-name: caf\xe9\r\ncontent-length: 2\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\ncontent-type: image/png\r\nx-own: 1\r\ncontent-length: 9\r\n\r\n",
    ]);
    let recording = recording(&origin);
    assert_eq!(recording.ask("OPTIONS", "/echo", "").status, 204);
    assert_eq!(recording.ask("GET", "/plain", "").text(), "ok");
    assert_eq!(recording.ask("HEAD", "/image", "").status, 200);
    eventually(|| rules(&recording).contains("/image"));
    assert!(rules(&recording).contains("latin1 = \"café\""));
    let again = played_back(&recording);
    let options = again.ask("OPTIONS", "/echo", &[], "");
    assert_eq!(
        (options.status, options.field("allow")),
        (204, Some("GET, OPTIONS"))
    );
    let plain = again.get("/plain");
    assert_eq!(plain.field("x-name"), Some("café"));
    assert_eq!((plain.field("content-type"), plain.text()), (None, "ok"));
    let image = again.ask("HEAD", "/image", &[], "");
    assert_eq!(
        (image.field("content-type"), image.field("x-own")),
        (Some("image/png"), Some("1"))
    );
    assert_eq!(image.field("content-length"), Some("9"));
}

#[test]
fn requests_with_different_content_have_rules_of_their_own() {
    let json = "content-type: application/json";
    let requests = [
        (json, r#"{"a":1,"password":"p1"}"#, "one"),
        (json, r#"{"a":2,"password":"p1"}"#, "two"),
        (
            "content-type: application/x-www-form-urlencoded",
            "a=1&pin=2&token=t",
            "thr",
        ),
        (json, "{broken", "fou"),
    ];
    let script = requests
        .iter()
        .fold(Script::new(), |script, (_, body, answer)| {
            let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\n{answer}");
            script
                .then(Step::ReadHead)
                .then(Step::ReadBody(body.len()))
                .then(Step::Write(answer.into_bytes()))
        });
    let origin = Origin::scripted(script.then(Step::Hold));
    let recording = recording(&origin);
    for (kind, body, expected) in requests {
        let fields = ["host: a", kind];
        let answer = request(recording.address(0), "POST", "/same", &fields, body);
        assert_eq!(answer.text(), expected);
    }
    eventually(|| rules(&recording).contains("broken"));
    let text = rules(&recording);
    assert!(
        !text.contains("p1") && !text.contains("token = \"t\""),
        "{text}"
    );
    let again = played_back(&recording);
    for (kind, body, expected) in requests.into_iter().rev() {
        let body = body.replace("p1", "p2");
        let answer = again.ask("POST", "/same", &[kind], &body);
        assert_eq!(answer.text(), expected, "{body}\n{text}");
    }
}
