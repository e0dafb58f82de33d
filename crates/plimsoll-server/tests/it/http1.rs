//! HTTP/1 as a client sees it.

use std::future::poll_fn;
use std::io::{Read, Write};
use std::rc::Rc;
use std::time::Duration;

use http::header::UPGRADE;
use http::{HeaderValue, StatusCode};
use http_body::Body;
use plimsoll_server::{
    Action, Answer, Cut, Delay, Echo, Limits, Outcome, Request, Response, ResponseBody,
};
use plimsoll_testkit::eventually;
use plimsoll_wire::h1::{RequestError, RequestLimits};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::server::{Server, expect, plan, read_all, text};

const HELLO: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: 5\r\n";

#[test]
fn pipelined_requests_are_answered_in_order() {
    let server = Server::hello();
    let answer = server.talk(
        "GET / HTTP/1.1\r\nhost: a\r\n\r\n\
         POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 3\r\n\r\nabc\
         HEAD / HTTP/1.1\r\nhost: a\r\n\r\n\
         PUT / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n\
         GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n\
         GET /never HTTP/1.1\r\nhost: a\r\n\r\n",
    );
    let expected = format!(
        "{HELLO}\r\nhello{HELLO}\r\nhello{HELLO}\r\n{HELLO}\r\nhello{HELLO}connection: close\r\n\r\nhello"
    );
    assert_eq!(answer, expected);
    assert_eq!(server.engine.counters().snapshot().answered(), 5);
}

/// RFC 9110, section 2.5: a later minor version is spoken to in the highest one that is known.
#[test]
fn later_minor_versions_are_served_and_unknown_expectations_pass() {
    let server = Server::hello();
    let answer = server.talk(
        "GET / HTTP/1.2\r\nhost: a\r\n\r\n\
         GET /?q=a\\b`c HTTP/1.9\r\nhost: a\r\n\r\n\
         POST / HTTP/1.1\r\nhost: a\r\nexpect: 200-ok\r\ncontent-length: 3\r\n\r\nabc\
         GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n",
    );
    let expected = format!(
        "{HELLO}\r\nhello{HELLO}\r\nhello{HELLO}\r\nhello{HELLO}connection: close\r\n\r\nhello"
    );
    assert_eq!(answer, expected);
    let refused = server.talk("GET / HTTP/1.10\r\nhost: a\r\n\r\n");
    assert!(refused.starts_with("HTTP/1.1 400 "), "{refused}");
}

/// What dashboards such as Kibana put into a query.
#[test]
fn long_queries_pass_up_to_the_limit() {
    let server = Server::hello();
    for (length, status) in [(8_300, "200"), (16_300, "200"), (16_400, "414")] {
        let query = "q".repeat(length);
        let answer = server.talk(format!(
            "GET /?{query} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n"
        ));
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status} ")),
            "{length}"
        );
    }
}

#[test]
fn requests_come_byte_by_byte_too() {
    let server = Server::hello();
    let mut stream = server.connect();
    let request = "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 3\r\n\r\nabc";
    for _ in 0..2 {
        for byte in request.as_bytes() {
            stream.write_all(&[*byte]).unwrap();
        }
        expect(&mut stream, &format!("{HELLO}\r\nhello"));
    }
}

#[test]
fn old_clients_learn_whether_the_connection_stays() {
    let server = Server::hello();
    assert_eq!(
        server.talk("GET / HTTP/1.0\r\n\r\n"),
        format!("{HELLO}connection: close\r\n\r\nhello")
    );
    let mut stream = server.connect();
    for _ in 0..2 {
        stream
            .write_all(b"GET / HTTP/1.0\r\nconnection: keep-alive\r\n\r\n")
            .unwrap();
        expect(
            &mut stream,
            &format!("{HELLO}connection: keep-alive\r\n\r\nhello"),
        );
    }
}

#[test]
fn what_is_ambiguous_is_refused_counted_and_ends_the_connection() {
    let server = Server::hello();
    let smuggled = "GET /smuggled HTTP/1.1\r\nhost: a\r\n\r\n";
    for (request, error) in [
        (
            "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 4\r\ntransfer-encoding: chunked\r\n\r\n",
            RequestError::LengthAndCoding,
        ),
        (
            "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n1\nx\r\n0\r\n\r\n",
            RequestError::ChunkSize,
        ),
        ("GET / HTTP/1.1\nhost: a\n\n", RequestError::LineEnd),
        ("GET / HTTP/1.1\r\n\r\n", RequestError::HostMissing),
        ("GET / HTTP/3.0\r\nhost: a\r\n\r\n", RequestError::Version),
    ] {
        let answer = server.talk(format!("{request}{smuggled}"));
        let status = format!("HTTP/1.1 {} ", error.status());
        let last = answer.rfind("HTTP/1.1 ").and_then(|at| answer.get(at..));
        assert!(
            last.is_some_and(|last| last.starts_with(&status)),
            "{answer}"
        );
        assert!(answer.ends_with(&format!("{error}\n")), "{answer}");
        let snapshot = server.engine.counters().snapshot();
        assert_eq!(snapshot.refused(error), 1, "{request:?}");
    }
}

#[test]
fn content_is_requested_only_if_the_action_reads_it() {
    const ASKING: &str =
        "POST / HTTP/1.1\r\nhost: a\r\nexpect: 100-continue\r\ncontent-length: 5\r\n\r\n";
    let server = Server::start(&plan(Limits::default(), || Rc::new(Echo)));
    let mut stream = server.connect();
    stream.write_all(ASKING.as_bytes()).unwrap();
    expect(&mut stream, "HTTP/1.1 100 Continue\r\n\r\n");
    stream.write_all(b"hello").unwrap();
    expect(
        &mut stream,
        "HTTP/1.1 200 OK\r\ncontent-type: application/octet-stream\r\ncontent-length: 5\r\n\r\nhello",
    );
    // It is not read, and whether it still comes cannot be known.
    let server = Server::hello();
    assert_eq!(
        server.talk(ASKING),
        format!("{HELLO}connection: close\r\n\r\nhello")
    );
}

#[test]
fn content_goes_back_as_it_came() {
    let server = Server::start(&plan(Limits::default(), || Rc::new(Echo)));
    let answer = server.talk(
        "POST / HTTP/1.1\r\nhost: a\r\ncontent-type: text/x\r\ntransfer-encoding: chunked\r\n\
         connection: close\r\n\r\n5;a=b\r\nhello\r\n6\r\n world\r\n0\r\nx-sum: 1\r\n\r\n",
    );
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(
        head.contains("content-type: text/x\r\ntransfer-encoding: chunked"),
        "{head}"
    );
    assert!(body.ends_with("0\r\nx-sum: 1\r\n\r\n"), "{body}");
    assert!(body.contains("hello") && body.contains(" world"), "{body}");

    let content = "0123456789abcdef".repeat(256 * 1024);
    let head = format!(
        "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        content.len()
    );
    let mut stream = server.connect();
    let mut sending = stream.try_clone().unwrap();
    let sent = content.clone();
    let sender = std::thread::spawn(move || {
        sending.write_all(head.as_bytes()).unwrap();
        sending.write_all(sent.as_bytes()).unwrap();
    });
    let answer = read_all(&mut stream);
    sender.join().unwrap();
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(body == content, "{} of {}", body.len(), content.len());
}

#[test]
fn answers_that_take_time_keep_their_order() {
    let server = Server::start(&plan(Limits::default(), || {
        Rc::new(Delay::new(Duration::from_millis(3), text("hello")))
    }));
    let request = "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\n\r\nhi";
    let last = "GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
    let answer = server.talk(format!("{request}{request}{last}"));
    assert_eq!(
        answer,
        format!("{HELLO}\r\nhello{HELLO}\r\nhello{HELLO}connection: close\r\n\r\nhello")
    );
}

#[test]
fn large_answers_reach_clients_that_read_late() {
    let server = Server::start(&plan(Limits::default(), || {
        let body = ResponseBody::Bytes(vec![b'x'; 2 << 20].into());
        Rc::new(plimsoll_server::Respond::new(
            Response::new(StatusCode::OK).with_body(body),
        ))
    }));
    let request = "GET / HTTP/1.1\r\nhost: a\r\n\r\n".repeat(3);
    let last = "GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
    let mut stream = server.connect();
    stream
        .write_all(format!("{request}{last}").as_bytes())
        .unwrap();
    eventually(|| server.engine.counters().snapshot().answered() >= 1);
    let answer = read_all(&mut stream);
    assert_eq!(answer.matches("HTTP/1.1 200 OK").count(), 4);
    assert_eq!(answer.matches('x').count(), 4 * (2 << 20));
}

/// Speaks `echo` after an upgrade, and nothing but bytes on CONNECT.
struct Switch;

impl Action for Switch {
    fn handle(&self, request: &Request<'_>) -> Answer {
        let echo = |mut stream: plimsoll_server::Stream, _: plimsoll_server::DrainSignal| {
            let echoing = async move {
                let mut buffer = [0; 5];
                stream.read_exact(&mut buffer).await.unwrap();
                stream.write_all(&buffer).await.unwrap();
                stream.shutdown().await.unwrap();
            };
            Box::pin(echoing) as plimsoll_server::LocalFuture<()>
        };
        Answer::Now(if request.method == "CONNECT" {
            Outcome::Raw(Box::new(echo))
        } else {
            Outcome::Upgrade(
                Response::new(StatusCode::SWITCHING_PROTOCOLS)
                    .with_field(UPGRADE, HeaderValue::from_static("echo")),
                Box::new(echo),
            )
        })
    }
}

#[test]
fn streams_are_handed_over_with_what_was_read_of_them() {
    let server = Server::start(&plan(Limits::default(), || Rc::new(Switch)));
    assert_eq!(
        server
            .talk("GET / HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\nhello"),
        "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\nhello"
    );
    assert_eq!(
        server.talk("CONNECT a:443 HTTP/1.1\r\nhost: a:443\r\n\r\nhello"),
        "hello"
    );
    let refused = server.talk("GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n");
    assert!(refused.starts_with("HTTP/1.1 501 "), "{refused}");
}

#[test]
fn limits_cut_and_are_counted() {
    let limits = Limits {
        header_timeout: Duration::from_millis(30),
        body_timeout: Duration::from_millis(30),
        write_timeout: Duration::from_millis(30),
        connections_per_address: 2,
        discard_bytes: 10,
        ..Limits::default()
    };
    let server = Server::start(&plan(limits, || text("hello")));
    let cut = |cut| server.engine.counters().snapshot().cut(cut);

    let mut slow = server.connect();
    slow.write_all(b"GET / HTTP/1.1\r\nhost: a\r\n").unwrap();
    assert_eq!(read_all(&mut slow), "");
    assert_eq!(cut(Cut::HeaderTimeout), 1);

    let mut slow = server.connect();
    slow.write_all(b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 9\r\n\r\nab")
        .unwrap();
    assert_eq!(read_all(&mut slow), format!("{HELLO}\r\nhello"));
    assert_eq!(cut(Cut::BodyTimeout), 1);

    // A body that is too long to be discarded ends the connection, with the response read.
    let long = "x".repeat(100);
    let answer = server.talk(format!(
        "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 100\r\n\r\n{long}GET / HTTP/1.1\r\nhost: a\r\n\r\n"
    ));
    assert_eq!(answer, format!("{HELLO}connection: close\r\n\r\nhello"));

    eventually(|| server.engine.counters().open() == 0);
    let kept = [server.connect(), server.connect()];
    eventually(|| server.engine.counters().open() == 2);
    let mut third = server.connect();
    assert_eq!(third.read(&mut [0; 10]).unwrap_or(0), 0);
    assert_eq!(cut(Cut::ConnectionsOfAddress), 1);
    drop(kept);
}

#[test]
fn a_client_that_does_not_read_is_cut_off() {
    let limits = Limits {
        write_timeout: Duration::from_millis(50),
        ..Limits::default()
    };
    let server = Server::start(&plan(limits, || {
        let body = ResponseBody::Bytes(vec![b'x'; 32 << 20].into());
        Rc::new(plimsoll_server::Respond::new(
            Response::new(StatusCode::OK).with_body(body),
        ))
    }));
    let mut stream = server.connect();
    stream
        .write_all(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n")
        .unwrap();
    let counters = server.engine.counters();
    eventually(|| counters.snapshot().cut(Cut::WriteTimeout) == 1);
    eventually(|| counters.open() == 0);
}

#[test]
fn no_request_gets_two_responses() {
    let server = Server::hello();
    let counters = server.engine.counters();
    let mut stream = server.connect();
    stream
        .write_all(b"POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n")
        .unwrap();
    // The chunks may turn out malformed when it is too late to say so, hence the end is announced.
    expect(
        &mut stream,
        &format!("{HELLO}connection: close\r\n\r\nhello"),
    );
    stream.write_all(b"ZZ\r\n").unwrap();
    assert_eq!(read_all(&mut stream), "");
    assert_eq!(counters.snapshot().answered(), 1);
    // Chunks that came with their head are known to be in order, so the connection goes on.
    let whole =
        "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n";
    let last = "GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
    let answer = server.talk(format!("{whole}{last}"));
    assert_eq!(
        answer,
        format!("{HELLO}\r\nhello{HELLO}connection: close\r\n\r\nhello")
    );
    let malformed =
        "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx\r\nZZ\r\n";
    let answer = server.talk(malformed);
    assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
    assert_eq!(answer.matches("HTTP/1.1 ").count(), 1, "{answer}");
}

/// Answers with the number of pieces in which content came, and its length.
struct Pieces;

impl Action for Pieces {
    fn handle(&self, request: &Request<'_>) -> Answer {
        let mut body = request.take_body();
        Answer::later(async move {
            let (mut pieces, mut bytes) = (0, 0);
            while let Some(Ok(frame)) =
                poll_fn(|cx| std::pin::Pin::new(&mut body).poll_frame(cx)).await
            {
                pieces += 1;
                bytes += frame.data_ref().map_or(0, bytes::Bytes::len);
            }
            Response::text(StatusCode::OK, format!("{pieces} {bytes}"))
        })
    }
}

#[test]
fn chunks_of_one_byte_are_joined() {
    const CHUNKS: usize = 64 * 1024;
    let server = Server::start(&plan(Limits::default(), || Rc::new(Pieces)));
    let head =
        "POST / HTTP/1.1\r\nhost: a\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n";
    let answer = server.talk(format!("{head}{}0\r\n\r\n", "1\r\nx\r\n".repeat(CHUNKS)));
    let (_, content) = answer.split_once("\r\n\r\n").unwrap();
    let (pieces, bytes) = content.split_once(' ').unwrap();
    assert_eq!(bytes, CHUNKS.to_string());
    let pieces: usize = pieces.parse().unwrap();
    assert!(pieces <= CHUNKS / 100, "{pieces} pieces");
}

#[test]
fn malformed_chunks_to_an_echo_are_an_error() {
    let server = Server::start(&plan(Limits::default(), || Rc::new(Echo)));
    for body in ["ZZ\r\n", "5\r\nhello\r\nZZ\r\n", "5\r\nhello6\r\n"] {
        let head = "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n";
        let answer = server.talk(format!("{head}{body}"));
        assert!(answer.starts_with("HTTP/1.1 400 "), "{body:?}: {answer}");
        assert_eq!(answer.matches("HTTP/1.1").count(), 1, "{answer}");
    }
}

#[test]
fn a_target_beyond_every_limit_is_the_fault_of_the_target() {
    let server = Server::hello();
    for (length, status) in [(17_000, "414"), (40_000, "414")] {
        let target = "x".repeat(length);
        let answer = server.talk(format!("GET /{target} HTTP/1.1\r\nhost: a\r\n\r\n"));
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status} ")),
            "{answer}"
        );
    }
    let field = "x".repeat(40_000);
    let answer = server.talk(format!("GET / HTTP/1.1\r\nhost: a\r\nx: {field}\r\n\r\n"));
    assert!(answer.starts_with("HTTP/1.1 431 "), "{answer}");
}

#[test]
fn a_stream_that_was_handed_over_and_is_not_read_ends() {
    /// Writes for as long as it may.
    struct Flood;
    impl Action for Flood {
        fn handle(&self, _: &Request<'_>) -> Answer {
            Answer::Now(Outcome::Raw(Box::new(|mut stream, _| {
                Box::pin(async move {
                    let bytes = vec![b'x'; 64 * 1024];
                    while stream.write_all(&bytes).await.is_ok() {}
                })
            })))
        }
    }
    let limits = Limits {
        write_timeout: Duration::from_millis(50),
        ..Limits::default()
    };
    let server = Server::start(&plan(limits, || Rc::new(Flood)));
    let mut stream = server.connect();
    stream
        .write_all(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n")
        .unwrap();
    assert_eq!(stream.read(&mut [0]).unwrap(), 1);
    eventually(|| server.engine.counters().open() == 0);
}

#[test]
fn a_client_that_sends_all_before_it_reads_sees_an_early_response() {
    let length = 48 << 20;
    let head = format!("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: {length}\r\n\r\n");
    let limited = Limits {
        request: RequestLimits {
            body_bytes: 1000,
            ..RequestLimits::default()
        },
        ..Limits::default()
    };
    for (limits, status) in [(limited, "413"), (Limits::default(), "200")] {
        let server = Server::start(&plan(limits, || text("early")));
        let mut stream = server.connect();
        stream.write_all(head.as_bytes()).unwrap();
        let piece = vec![b'x'; 1 << 20];
        for _ in 0..length / piece.len() {
            stream.write_all(&piece).unwrap();
        }
        let answer = read_all(&mut stream);
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status} ")),
            "{answer}"
        );
    }
}
