//! Clients that leave before their answer is complete: the pending answer is dropped, over every version of HTTP.

use std::future::{pending, poll_fn};
use std::io::{Read, Write};
use std::net::Shutdown;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Request as HttpRequest, StatusCode};
use http_body::{Body, Frame};
use plimsoll_server::{
    Action, Answer, Delay, Limits, Request, Response, ResponseBody, StreamError,
};
use plimsoll_testkit::eventually;

use crate::server::{Server, plan, read_all, text};
use crate::{http2, http3};

/// Answers `/wait` never, `/content` neither, though it reads the content, and `/stream` without an end; counts them.
#[derive(Clone, Default)]
struct Counts {
    requests: Arc<AtomicUsize>,
    dropped: Arc<AtomicUsize>,
}

struct Endless(Counts);

/// An answer under way.
struct Pending {
    counts: Counts,
    has_begun: bool,
}

impl Drop for Pending {
    fn drop(&mut self) {
        self.counts.dropped.fetch_add(1, Ordering::SeqCst);
    }
}

impl Body for Pending {
    type Data = Bytes;
    type Error = StreamError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, StreamError>>> {
        if self.has_begun {
            return Poll::Pending;
        }
        self.has_begun = true;
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(b"begun")))))
    }
}

impl Action for Endless {
    fn handle(&self, request: &Request<'_>) -> Answer {
        let counts = self.0.clone();
        counts.requests.fetch_add(1, Ordering::SeqCst);
        let pending_answer = Pending {
            counts,
            has_begun: false,
        };
        if request.path == "/stream" {
            let body = ResponseBody::Stream(Box::pin(pending_answer));
            return Answer::now(Response::new(StatusCode::OK).with_body(body));
        }
        let body = (request.path == "/content").then(|| request.take_body());
        Answer::later(async move {
            let _held = pending_answer;
            if let Some(mut body) = body {
                while let Some(Ok(_)) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {}
            }
            pending().await
        })
    }
}

impl Counts {
    fn make(&self) -> impl Fn() -> Rc<dyn Action> + Send + Sync + 'static {
        let counts = self.clone();
        move || Rc::new(Endless(counts.clone())) as Rc<dyn Action>
    }

    fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }

    fn dropped(&self) -> usize {
        self.dropped.load(Ordering::SeqCst)
    }
}

#[test]
fn http_1_clients_that_leave_have_their_answers_dropped() {
    let counts = Counts::default();
    let server = Server::start(&plan(Limits::default(), counts.make()));
    let many = "GET /next HTTP/1.1\r\nhost: a\r\n\r\n".repeat(10);
    let too_many = "GET /next HTTP/1.1\r\nhost: a\r\n\r\n".repeat(10_000);
    for (number, request) in [
        "GET /wait HTTP/1.1\r\nhost: a\r\n\r\n".to_owned(),
        "GET /stream HTTP/1.1\r\nhost: a\r\n\r\n".to_owned(),
        format!("GET /wait HTTP/1.1\r\nhost: a\r\n\r\n{many}"),
        format!("GET /wait HTTP/1.1\r\nhost: a\r\n\r\n{too_many}"),
        "POST /wait HTTP/1.1\r\nhost: a\r\ncontent-length: 9\r\n\r\nab".to_owned(),
        "POST /content HTTP/1.1\r\nhost: a\r\ncontent-length: 9\r\n\r\nab".to_owned(),
        "POST /content HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n"
            .to_owned(),
        "POST /content HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\n\r\nab".to_owned(),
    ]
    .into_iter()
    .enumerate()
    {
        let mut stream = server.connect();
        stream.write_all(request.as_bytes()).unwrap();
        eventually(|| counts.requests() == number + 1);
        if request.contains("/stream") {
            let mut begun = Vec::new();
            while !String::from_utf8_lossy(&begun).contains("begun") {
                let mut byte = [0];
                stream.read_exact(&mut byte).unwrap();
                begun.push(byte[0]);
            }
        }
        drop(stream);
        eventually(|| counts.dropped() == number + 1);
        eventually(|| server.engine.counters().open() == 0);
    }
    assert_eq!(
        counts.requests(),
        8,
        "what came behind them was not answered"
    );
}

#[test]
fn a_client_that_closed_its_own_direction_still_gets_what_comes_soon() {
    let server = Server::start(&plan(Limits::default(), || {
        Rc::new(Delay::new(Duration::from_millis(20), text("hello")))
    }));
    let mut stream = server.connect();
    stream
        .write_all(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n")
        .unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let answer = read_all(&mut stream);
    assert!(answer.ends_with("\r\n\r\nhello"), "{answer}");
}

#[test]
fn http_2_clients_that_leave_have_their_answers_dropped() {
    let counts = Counts::default();
    let server = Server::start(&plan(Limits::default(), counts.make()));
    http2::run(async {
        let mut requests = http2::connect(server.address).await;
        for path in ["http://a/wait", "http://a/stream"] {
            let request = HttpRequest::get(path).body(()).unwrap();
            let (response, _) = requests.send_request(request, true).unwrap();
            tokio::spawn(response);
            requests = requests.ready().await.unwrap();
        }
        while counts.requests() < 2 {
            tokio::task::yield_now().await;
        }
    });
    // The runtime of the client is gone, and its connection with it.
    eventually(|| counts.dropped() == 2);
    eventually(|| server.engine.counters().open() == 0);
}

#[test]
fn http_2_requests_that_are_reset_have_their_answers_dropped() {
    let counts = Counts::default();
    let server = Server::start(&plan(Limits::default(), counts.make()));
    http2::run(async {
        let mut requests = http2::connect(server.address).await;
        // With its content still coming, and with all of it sent.
        for (number, is_over) in [(1, false), (2, true)] {
            let request = HttpRequest::post("http://a/content").body(()).unwrap();
            let (response, mut stream) = requests.send_request(request, false).unwrap();
            stream
                .send_data(Bytes::from_static(b"ab"), is_over)
                .unwrap();
            while counts.requests() < number {
                tokio::task::yield_now().await;
            }
            stream.send_reset(h2::Reason::CANCEL);
            drop(response);
            while counts.dropped() < number {
                tokio::task::yield_now().await;
            }
            requests = requests.ready().await.unwrap();
        }
    });
    // The connection was there all the time.
    assert_eq!(server.engine.counters().snapshot().accepted, 1);
}

#[test]
fn http_3_requests_that_are_cancelled_have_their_answers_dropped() {
    let counts = Counts::default();
    let (server, authority) = http3::start(Limits::default(), 1, counts.make());
    http3::run(async {
        let quic = http3::open(&authority, server.address).await;
        let (mut requests, _driver) = http3::speak(quic).await;
        for (number, is_over) in [(1, false), (2, true)] {
            let request = HttpRequest::post("https://localhost/content");
            let request = request.body(()).unwrap();
            let mut stream = requests.send_request(request).await.unwrap();
            stream.send_data(Bytes::from_static(b"ab")).await.unwrap();
            if is_over {
                stream.finish().await.unwrap();
            }
            while counts.requests() < number {
                tokio::task::yield_now().await;
            }
            stream.stop_stream(h3::error::Code::H3_REQUEST_CANCELLED);
            stream.stop_sending(h3::error::Code::H3_REQUEST_CANCELLED);
            while counts.dropped() < number {
                tokio::task::yield_now().await;
            }
        }
    });
    assert_eq!(server.engine.counters().snapshot().accepted, 1);
}

#[test]
fn http_3_clients_that_leave_have_their_answers_dropped() {
    let counts = Counts::default();
    let (server, authority) = http3::start(Limits::default(), 1, counts.make());
    http3::run(async {
        let quic = http3::open(&authority, server.address).await;
        let (mut requests, driver) = http3::speak(quic.clone()).await;
        let mut streams = Vec::new();
        for path in ["https://localhost/wait", "https://localhost/stream"] {
            let request = HttpRequest::get(path).body(()).unwrap();
            let mut stream = requests.send_request(request).await.unwrap();
            stream.finish().await.unwrap();
            streams.push(stream);
        }
        while counts.requests() < 2 {
            tokio::task::yield_now().await;
        }
        quic.close(0x100_u32.into(), b"");
        drop(streams);
        driver.abort();
        while counts.dropped() < 2 {
            tokio::task::yield_now().await;
        }
    });
    assert_eq!(counts.requests(), 2);
}

#[test]
fn http_3_connections_are_closed_when_the_engine_ends() {
    let counts = Counts::default();
    let (server, authority) = http3::start(Limits::default(), 1, counts.make());
    http3::run(async {
        let quic = http3::open(&authority, server.address).await;
        let (mut requests, _driver) = http3::speak(quic.clone()).await;
        let request = HttpRequest::get("https://localhost/wait").body(()).unwrap();
        let _stream = requests.send_request(request).await.unwrap();
        while counts.requests() < 1 {
            tokio::task::yield_now().await;
        }
        tokio::task::spawn_blocking(|| drop(server)).await.unwrap();
        let closed = quic.closed().await;
        let quinn::ConnectionError::ApplicationClosed(close) = closed else {
            panic!("{closed}");
        };
        assert_eq!(close.error_code, 0x100_u32.into());
    });
}
