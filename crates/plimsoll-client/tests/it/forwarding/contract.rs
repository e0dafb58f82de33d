//! The contract: each test runs over every transport.

use std::future::poll_fn;
use std::task::Poll;

use http::HeaderMap;
use http_body::Frame;
use plimsoll_client::forward::{Head, PoolOptions, ReceivedFields};
use plimsoll_model::{FailureKind, Phase, Retry};
use plimsoll_testkit::until;
use plimsoll_wire::h1::Limits;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::server::{PIECE, SEED, checksum, pattern};
use super::{Chunks, Ground, Over, run_local};

/// Runs `test` over every transport.
fn each<F: Future<Output = ()>>(test: impl Fn(Over) -> F) {
    for over in Over::ALL {
        run_local(async {
            let limit = std::time::Duration::from_mins(1);
            let tested = tokio::time::timeout(limit, test(over)).await;
            assert!(tested.is_ok(), "over {over:?} it takes too long");
        });
    }
}

#[test]
fn a_connection_carries_one_exchange_after_the_other() {
    each(async |over| {
        let ground = Ground::new(over).await;
        for _ in 0..3 {
            let answer = ground.get("/hello").await.unwrap();
            assert_eq!((answer.status(), answer.text()), (200, "hello"));
            let head = answer.head.unwrap();
            assert_eq!(head.fields.field("X-Kind"), Some(&b"hello"[..]));
        }
        assert_eq!(ground.server.connections.get(), 1);
    });
}

#[test]
fn phases_and_bytes_of_an_exchange_are_known_at_its_end() {
    each(async |over| {
        let ground = Ground::new(over).await;
        let lease = ground.pool.acquire(&ground.endpoint).await.unwrap();
        assert!(lease.phases().get(Phase::Connect).is_some());
        let has_tls = over.is_tls() && over != Over::Http3;
        assert_eq!(lease.phases().get(Phase::Tls).is_some(), has_tls);
        assert_eq!(lease.peer().unwrap().port(), ground.endpoint.port());
        assert!(!lease.is_reused());
        let mut exchange = lease
            .begin(&Head::new("GET", "/hello", &()), Chunks::none())
            .unwrap();
        exchange.final_head().await.unwrap();
        while exchange.frame().await.is_some() {}
        let completed = exchange.completed().unwrap();
        assert_eq!(completed.status, 200);
        assert!(completed.phases.get(Phase::Wait).is_some());
        assert!(completed.bytes_sent > 0 && completed.bytes_received > 5);
        drop(exchange);
        let lease = ground.pool.acquire(&ground.endpoint).await.unwrap();
        assert!(lease.is_reused());
        assert_eq!(lease.phases().iter().count(), 0);
    });
}

#[test]
fn responses_without_content_end_at_their_head() {
    each(async |over| {
        let ground = Ground::new(over).await;
        let answer = ground.send("HEAD", "/hello", Chunks::none()).await.unwrap();
        assert_eq!((answer.status(), answer.text()), (200, ""));
        let head = answer.head.unwrap();
        assert_eq!(head.fields.field("content-length"), Some(&b"5"[..]));
        for status in [204, 304] {
            let answer = ground.get(&format!("/status/{status}")).await.unwrap();
            assert_eq!((answer.status(), answer.text()), (status, ""));
        }
        assert_eq!(ground.server.connections.get(), 1);
    });
}

#[test]
fn bodies_stream_both_ways_with_trailers() {
    each(async |over| {
        let ground = Ground::new(over).await;
        let mut trailers = HeaderMap::new();
        trailers.insert("x-sum", "7".parse().unwrap());
        trailers.insert("content-length", "9".parse().unwrap());
        let body = Chunks::streamed(&["one ", "two ", "three"]).then(Ok(Frame::trailers(trailers)));
        let answer = ground.send("POST", "/echo", body).await.unwrap();
        assert_eq!(answer.text(), "one two three");
        let trailers = answer.trailers.unwrap();
        assert_eq!(trailers.get("x-sum").unwrap(), "7");
        // Framing has no place there.
        assert_eq!(trailers.len(), 1);
    });
}

#[test]
fn a_response_begins_before_the_request_has_ended() {
    each(async |over| {
        let ground = Ground::new(over).await;
        let lease = ground.pool.acquire(&ground.endpoint).await.unwrap();
        let body = Chunks::streamed(&["ping"]).endless();
        let mut exchange = lease.begin(&Head::new("POST", "/echo", &()), body).unwrap();
        assert_eq!(exchange.final_head().await.unwrap().status, 200);
        let frame = exchange.frame().await.unwrap().unwrap();
        assert_eq!(frame.into_data().unwrap(), "ping");
    });
}

#[test]
fn announced_lengths_are_sent() {
    each(async |over| {
        let ground = Ground::new(over).await;
        let answer = ground.send("POST", "/sink", Chunks::whole("hello")).await;
        let expected = format!("5 {:x}", checksum(SEED, b"hello"));
        assert_eq!(answer.unwrap().text(), expected);
        let length = "content-length: 5".to_owned();
        assert!(ground.server.fields.borrow().contains(&length));
        ground.send("POST", "/sink", Chunks::none()).await.unwrap();
        let length = "content-length: 0".to_owned();
        assert!(ground.server.fields.borrow().contains(&length));
    });
}

#[test]
fn fields_are_forwarded_without_those_of_the_connection() {
    each(async |over| {
        let ground = Ground::new(over).await;
        let lease = ground.pool.acquire(&ground.endpoint).await.unwrap();
        let fields = [
            ("X-Kept", "1"),
            ("Connection", "x-hop"),
            ("X-Hop", "2"),
            ("Keep-Alive", "3"),
            ("Transfer-Encoding", "gzip"),
            ("Content-Length", "99"),
        ];
        let received = ReceivedFields::new(&fields);
        let own = [("x-own", "4"), ("x-hop", "5"), ("keep-alive", "6")];
        let mut head = Head::forwarded("GET", "/hello", &received, &own);
        head.authority = Some("shop.example");
        let mut exchange = lease.begin(&head, Chunks::none()).unwrap();
        exchange.final_head().await.unwrap();
        let seen = ground.server.fields.borrow();
        let seen = seen.iter().filter(|field| !field.starts_with("host"));
        let seen: Vec<_> = seen.map(|field| field.to_ascii_lowercase()).collect();
        assert_eq!(seen, ["x-kept: 1", "x-own: 4", "x-hop: 5"]);
    });
}

#[test]
fn what_would_split_a_request_is_refused() {
    each(async |over| {
        let ground = Ground::new(over).await;
        for (name, value) in [("x", "a\r\nb: c"), ("x y", "1"), ("x", "\0")] {
            let lease = ground.pool.acquire(&ground.endpoint).await.unwrap();
            let fields = [(name, value)];
            let begun = lease.begin(&Head::new("GET", "/hello", &fields), Chunks::none());
            assert_eq!(begun.unwrap_err().kind, FailureKind::Protocol, "{name}");
        }
        let lease = ground.pool.acquire(&ground.endpoint).await.unwrap();
        let begun = lease.begin(&Head::new("GET", "/a b", &()), Chunks::none());
        assert_eq!(begun.unwrap_err().kind, FailureKind::Protocol);
        // The pool is none the worse for it.
        assert_eq!(ground.get("/hello").await.unwrap().status(), 200);
    });
}

#[test]
fn sixty_four_mebibytes_both_ways() {
    const TOTAL: usize = 64 << 20;
    each(async |over| {
        let ground = Ground::new(over).await;
        let lease = ground.pool.acquire(&ground.endpoint).await.unwrap();
        let piece = pattern(PIECE);
        let parts = (0..TOTAL / PIECE).map(|_| Ok(Frame::data(piece.clone())));
        let body = Chunks {
            parts: parts.collect(),
            ..Chunks::default()
        };
        let mut expected = (SEED, 0);
        for _ in 0..TOTAL / PIECE {
            expected = (checksum(expected.0, &piece), expected.1 + piece.len());
        }
        let mut exchange = lease.begin(&Head::new("POST", "/echo", &()), body).unwrap();
        exchange.final_head().await.unwrap();
        let mut seen = (SEED, 0);
        while let Some(frame) = exchange.frame().await {
            if let Ok(data) = frame.unwrap().into_data() {
                seen = (checksum(seen.0, &data), seen.1 + data.len());
            }
        }
        assert_eq!(seen, expected);
    });
}

#[test]
fn content_of_an_announced_length_comes_whole() {
    each(async |over| {
        let ground = Ground::new(over).await;
        for length in [1, 32 * 1024, 64 * 1024, 100_000, 5 << 20] {
            let answer = ground.get(&format!("/sized/{length}")).await.unwrap();
            let mut expected = Vec::new();
            while expected.len() < length {
                let piece = pattern(PIECE.min(length - expected.len()));
                expected.extend_from_slice(&piece);
            }
            assert!(answer.content == expected, "{length}");
        }
        assert_eq!(ground.server.connections.get(), 1);
    });
}

#[test]
fn a_reader_that_stops_stops_the_server() {
    const TOTAL: usize = 256 << 20;
    each(async |over| {
        let ground = Ground::new(over).await;
        let lease = ground.pool.acquire(&ground.endpoint).await.unwrap();
        let target = format!("/source/{TOTAL}");
        let mut exchange = lease
            .begin(&Head::new("GET", &target, &()), Chunks::none())
            .unwrap();
        exchange.final_head().await.unwrap();
        // The server sends until nothing more is taken: the window, and what sockets hold.
        let mut before = usize::MAX;
        let mut same = 0;
        while same < 200 {
            tokio::task::yield_now().await;
            let sent = ground.server.sent.get();
            same = if sent == before { same + 1 } else { 0 };
            before = sent;
        }
        let bound = if over.is_http1() { 16 << 20 } else { 1 << 20 };
        assert!(before < bound, "{before} bytes were sent");
        // Others on the connection are not held up.
        assert_eq!(ground.get("/hello").await.unwrap().text(), "hello");
        drop(exchange);
        until(|| ground.server.cancelled.get() == 1).await;
    });
}

#[test]
fn a_server_that_does_not_read_stops_the_body() {
    each(async |over| {
        let ground = Ground::new(over).await;
        let lease = ground.pool.acquire(&ground.endpoint).await.unwrap();
        let piece = pattern(PIECE);
        let parts = (0..2000).map(|_| Ok(Frame::data(piece.clone())));
        let body = Chunks {
            parts: parts.collect(),
            ..Chunks::default()
        };
        let mut exchange = lease
            .begin(&Head::new("POST", "/stall", &()), body)
            .unwrap();
        for _ in 0..500 {
            let polled = poll_fn(|context| Poll::Ready(exchange.poll_upload(context))).await;
            assert!(polled.is_pending());
            tokio::task::yield_now().await;
        }
    });
}

#[test]
fn a_response_that_comes_early_ends_the_request() {
    each(async |over| {
        let ground = Ground::new(over).await;
        let body = Chunks::streamed(&["some "]).endless();
        let answer = ground.send("POST", "/early", body).await.unwrap();
        assert_eq!((answer.status(), answer.text()), (413, "full"));
        // A connection with half a request on it is not used again.
        assert_eq!(ground.get("/hello").await.unwrap().text(), "hello");
        let connections = if over.is_http1() { 2 } else { 1 };
        assert_eq!(ground.server.connections.get(), connections);
    });
}

#[test]
fn interim_responses_are_returned_and_bounded() {
    each(async |over| {
        let options = PoolOptions {
            limits: Limits {
                interim: 4,
                ..Limits::default()
            },
            ..PoolOptions::default()
        };
        let ground = Ground::with(over, options).await;
        let answer = ground.get("/interim/4").await.unwrap();
        assert_eq!(
            (answer.interim, answer.head.unwrap().status.as_u16()),
            (vec![103; 4], 200)
        );
        let failure = ground.get("/interim/1000").await.unwrap_err();
        assert_eq!(failure.kind, FailureKind::Protocol);
    });
}

#[test]
fn a_body_waits_for_the_server_to_want_it() {
    each(async |over| {
        let ground = Ground::new(over).await;
        for (target, status, content) in [("/continue", 200, "hello"), ("/early", 413, "full")] {
            let lease = ground.pool.acquire(&ground.endpoint).await.unwrap();
            let mut head = Head::new("POST", target, &());
            head.expects_continue = true;
            let mut exchange = lease.begin(&head, Chunks::whole("hello")).unwrap();
            let mut heads = vec![exchange.head().await.unwrap()];
            while heads[heads.len() - 1].is_interim() {
                heads.push(exchange.head().await.unwrap());
            }
            assert_eq!(heads[heads.len() - 1].status, status);
            assert_eq!(heads[0].status, if status == 200 { 100 } else { 413 });
            let mut text = Vec::new();
            while let Some(frame) = exchange.frame().await {
                text.extend_from_slice(&frame.unwrap().into_data().unwrap());
            }
            assert_eq!(text, content.as_bytes());
            let expects = "expect: 100-continue".to_owned();
            assert!(ground.server.fields.borrow().contains(&expects));
            // A body that was not wanted was not read either.
            assert_eq!(exchange.into_untouched_body().is_some(), status == 413);
        }
        assert_eq!(ground.get("/hello").await.unwrap().text(), "hello");
    });
}

#[test]
fn a_reset_before_the_head_is_a_failure_with_a_verdict() {
    each(async |over| {
        let ground = Ground::new(over).await;
        // On a new connection the server has seen the request; a refused stream says otherwise.
        let failure = ground.get("/reset/head").await.unwrap_err();
        let expected = if over.is_http1() {
            (FailureKind::Closed, Retry::Never)
        } else {
            (FailureKind::Reset, Retry::Safe)
        };
        assert_eq!((failure.kind, failure.retry), expected);
        assert_eq!(ground.get("/hello").await.unwrap().text(), "hello");
        let failure = ground.get("/reset/head").await.unwrap_err();
        let expected = if over.is_http1() {
            Retry::IfReused
        } else {
            Retry::Safe
        };
        assert_eq!(failure.retry, expected);
    });
}

#[test]
fn a_reset_within_content_keeps_what_came() {
    each(async |over| {
        let ground = Ground::new(over).await;
        let lease = ground.pool.acquire(&ground.endpoint).await.unwrap();
        let mut exchange = lease
            .begin(&Head::new("GET", "/reset/content", &()), Chunks::none())
            .unwrap();
        assert_eq!(exchange.final_head().await.unwrap().status, 200);
        let mut content = Vec::new();
        let incomplete = loop {
            match exchange.frame().await.unwrap() {
                Ok(frame) => content.extend_from_slice(&frame.into_data().unwrap()),
                Err(incomplete) => break incomplete,
            }
        };
        if over.is_http1() {
            assert_eq!(content, b"half-");
        }
        assert_eq!(incomplete.failure.phase, Phase::Receive);
        assert_eq!(incomplete.failure.retry, Retry::Never);
        assert_eq!(ground.get("/hello").await.unwrap().text(), "hello");
    });
}

#[test]
fn a_body_that_fails_is_never_ended_cleanly() {
    each(async |over| {
        for length in [None, Some(100)] {
            let ground = Ground::new(over).await;
            let mut body = Chunks::streamed(&["half"]).then(Err("the client is gone"));
            body.length = length;
            body.gate = Some(ground.server.clone());
            let failure = ground.send("POST", "/sink", body).await.unwrap_err();
            assert_eq!(failure.kind, FailureKind::Aborted);
            assert_eq!(failure.retry, Retry::Never);
            assert!(
                failure.to_string().contains("the client is gone"),
                "{failure}"
            );
            until(|| ground.server.broken.get() == 1).await;
        }
    });
}

#[test]
fn a_body_of_another_length_than_announced_fails() {
    each(async |over| {
        for length in [3, 10] {
            let ground = Ground::new(over).await;
            let mut body = Chunks::streamed(&["hello"]);
            body.length = Some(length);
            let failure = ground.send("POST", "/sink", body).await.unwrap_err();
            assert_eq!(failure.kind, FailureKind::Aborted, "{failure}");
        }
    });
}

#[test]
fn an_exchange_that_is_dropped_is_cancelled() {
    each(async |over| {
        let ground = Ground::new(over).await;
        let lease = ground.pool.acquire(&ground.endpoint).await.unwrap();
        let target = format!("/source/{}", 256 << 20);
        let mut exchange = lease
            .begin(&Head::new("GET", &target, &()), Chunks::none())
            .unwrap();
        exchange.final_head().await.unwrap();
        drop(exchange);
        until(|| ground.server.cancelled.get() == 1).await;
        assert_eq!(ground.get("/hello").await.unwrap().text(), "hello");
    });
}

#[test]
fn an_upgrade_is_a_byte_stream_both_ways() {
    each(async |over| {
        let ground = Ground::new(over).await;
        if over == Over::Http3 {
            // Of protocols only `websocket` is sent, and only to servers that announce extended CONNECT.
            for protocol in ["echo", "websocket"] {
                let lease = ground.pool.acquire(&ground.endpoint).await.unwrap();
                lease.settled().await;
                let mut head = Head::new("CONNECT", "/tunnel", &());
                head.upgrade = Some(protocol);
                let refused = lease.begin(&head, Chunks::none()).unwrap_err();
                assert_eq!(refused.kind, FailureKind::UpgradeRefused, "{protocol}");
            }
            return;
        }
        for is_connect in [false, true] {
            let lease = ground.pool.acquire(&ground.endpoint).await.unwrap();
            let mut head = Head::new("GET", "/tunnel", &());
            if is_connect {
                head = Head::new("CONNECT", "/tunnel", &());
                if !over.is_http1() {
                    head.target = "shop.example:80";
                }
            } else {
                head.upgrade = Some("echo");
            }
            lease.settled().await;
            let mut exchange = lease.begin(&head, Chunks::none()).unwrap();
            let status = exchange.final_head().await.unwrap().status.as_u16();
            let is_switch = over.is_http1() && !is_connect;
            assert_eq!(status, if is_switch { 101 } else { 200 });
            let mut stream = exchange.upgrade().unwrap();
            stream.write_all(b"second").await.unwrap();
            stream.flush().await.unwrap();
            let mut text = [0; 12];
            stream.read_exact(&mut text).await.unwrap();
            assert_eq!(&text, b"first second");
            let long = pattern(1 << 20);
            let (mut reading, mut writing) = tokio::io::split(stream);
            let written = async {
                writing.write_all(&long).await.unwrap();
                writing.shutdown().await.unwrap();
            };
            let read = async {
                let mut seen = Vec::new();
                while reading.read_buf(&mut seen).await.unwrap() > 0 {}
                seen
            };
            let ((), seen) = tokio::join!(written, read);
            assert!(long == seen);
        }
    });
}

#[test]
fn a_response_that_does_not_switch_is_no_byte_stream() {
    each(async |over| {
        let ground = Ground::new(over).await;
        let mut exchange = ground
            .pool
            .acquire(&ground.endpoint)
            .await
            .unwrap()
            .begin(&Head::new("GET", "/hello", &()), Chunks::none())
            .unwrap();
        exchange.final_head().await.unwrap();
        assert!(exchange.upgrade().is_none());
    });
}
