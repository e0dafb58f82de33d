//! Recording real servers: their answers are passed on as they come, and kept once they are whole.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;

use plimsoll_testkit::{Origin, Script, Step, eventually};

use crate::admin::Administered;
use crate::mock::ask;

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
fn answers_are_kept_and_asked_for_as_they_are() {
    let origin = Origin::scripted(Script::serve(
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\nx-a: 1\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    ));
    let recording = recording(&origin);
    let fields = ["host: a", "accept-encoding: gzip", "x-own: 1"];
    let answer = ask(recording.address(0), "GET", "/a?b=c", &fields, "");
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
fn a_server_that_breaks_off_before_its_head_is_told_in_words() {
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
