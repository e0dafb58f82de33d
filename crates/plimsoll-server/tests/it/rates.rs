//! Content that goes on, but too slowly: the rates are such that nothing is fast enough, so the test does not wait.

use std::future::{pending, poll_fn};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body::Body;
use plimsoll_server::{Action, Answer, Cut, Limits, Respond, Response, ResponseBody};
use plimsoll_testkit::eventually;
use socket2::{Domain, Socket, Type};

use crate::http2::{connect, run};
use crate::server::{Server, plan};

/// No machine is as fast.
pub(crate) const RATE: u64 = 1 << 44;

/// Long enough that a busy machine makes some progress within.
pub(crate) const GRACE: Duration = Duration::from_millis(500);

/// Reads all of the content before it answers.
pub(crate) struct Swallow;

impl Action for Swallow {
    fn handle(&self, request: &plimsoll_server::Request<'_>) -> Answer {
        let mut body = request.take_body();
        Answer::later(async move {
            while let Some(frame) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
                if frame.is_err() {
                    return Response::text(StatusCode::BAD_REQUEST, "it broke off\n");
                }
            }
            Response::text(StatusCode::OK, "all\n")
        })
    }
}

/// Reads all of the content in a task of its own, as mounted applications do.
struct SwallowElsewhere;

impl Action for SwallowElsewhere {
    fn handle(&self, request: &plimsoll_server::Request<'_>) -> Answer {
        let mut body = request.take_body();
        let reading = tokio::task::spawn_local(async move {
            while let Some(frame) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
                if frame.is_err() {
                    return;
                }
            }
        });
        Answer::later(async move {
            reading.await.ok();
            Response::text(StatusCode::OK, "all\n")
        })
    }
}

fn slow_content() -> Server {
    slow_content_for(|| Rc::new(Swallow))
}

fn slow_content_for(action: impl Fn() -> Rc<dyn Action> + Send + Sync + 'static) -> Server {
    let mut limits = Limits {
        body_timeout: GRACE,
        body_rate: RATE,
        ..Limits::default()
    };
    limits.request.body_bytes = u64::MAX;
    Server::start(&plan(limits, action))
}

pub(crate) fn is_cut(server: &Server, cut: Cut) {
    let counters = server.engine.counters();
    eventually(|| counters.snapshot().cut.iter().sum::<u64>() > 0);
    let snapshot = counters.snapshot();
    let cuts = Cut::ALL.into_iter();
    let cuts: Vec<_> = cuts.filter(|cut| snapshot.cut(*cut) > 0).collect();
    assert_eq!(cuts, [cut]);
}

#[test]
fn content_must_come_fast_enough() {
    let server = slow_content();
    let mut stream = server.connect();
    stream
        .write_all(b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 60000000\r\n\r\n")
        .unwrap();
    // A byte at a time, none of which comes too late.
    while stream.write_all(b"x").is_ok() {}
    is_cut(&server, Cut::BodyRate);
}

#[test]
fn content_for_a_task_must_come_fast_enough() {
    let server = slow_content_for(|| Rc::new(SwallowElsewhere));
    let mut stream = server.connect();
    stream
        .write_all(b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 60000000\r\n\r\n")
        .unwrap();
    // The client is waited for between any two bytes, which come sooner than `body_timeout`.
    stream.set_read_timeout(Some(GRACE / 20)).unwrap();
    let is_late =
        |error: std::io::Error| matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut);
    while stream.write_all(b"x").is_ok() && stream.read(&mut [0; 64]).is_err_and(is_late) {}
    is_cut(&server, Cut::BodyRate);
}

#[test]
fn content_over_http2_must_come_fast_enough() {
    let server = slow_content();
    run(async {
        let requests = connect(server.address).await;
        let mut requests = requests.ready().await.unwrap();
        let post = Request::post("http://a/").body(()).unwrap();
        let (response, mut stream) = requests.send_request(post, false).unwrap();
        let sending = async {
            loop {
                stream.reserve_capacity(16_384);
                let room = poll_fn(|cx| stream.poll_capacity(cx)).await;
                let Some(Ok(room)) = room else { break };
                let piece = Bytes::from(vec![b'x'; room.min(16_384)]);
                if stream.send_data(piece, false).is_err() {
                    break;
                }
                tokio::task::yield_now().await;
            }
            // The server wants no more; what it has to say is on its way.
            pending::<()>().await;
        };
        tokio::select! {
            () = sending => {}
            response = response => {
                assert_eq!(response.unwrap().status(), StatusCode::BAD_REQUEST);
            }
        }
    });
    is_cut(&server, Cut::BodyRate);
}

#[test]
fn content_over_http2_must_come_at_all() {
    let limits = Limits {
        body_timeout: Duration::from_millis(50),
        ..Limits::default()
    };
    let server = Server::start(&plan(limits, || Rc::new(Swallow)));
    run(async {
        let requests = connect(server.address).await;
        let mut requests = requests.ready().await.unwrap();
        let post = Request::post("http://a/").body(()).unwrap();
        let (response, _stream) = requests.send_request(post, false).unwrap();
        assert_eq!(response.await.unwrap().status(), StatusCode::BAD_REQUEST);
    });
    is_cut(&server, Cut::BodyTimeout);
}

#[test]
fn a_response_must_be_taken_fast_enough() {
    let limits = Limits {
        write_timeout: Duration::from_millis(250),
        read_rate: RATE,
        ..Limits::default()
    };
    let server = Server::start(&plan(limits, || {
        let body = ResponseBody::Bytes(Bytes::from(vec![b'x'; 64 << 20]));
        Rc::new(Respond::new(Response::new(StatusCode::OK).with_body(body)))
    }));
    // With little room, of which the server hears each time that some is free.
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.set_recv_buffer_size(16 * 1024).unwrap();
    socket.connect(&server.address.into()).unwrap();
    let mut stream = TcpStream::from(socket);
    stream
        .write_all(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n")
        .unwrap();
    // A little at a time, so that there is always room for some more.
    while matches!(stream.read(&mut [0; 64]), Ok(1..)) {
        if server.engine.counters().open() == 0 {
            break;
        }
    }
    is_cut(&server, Cut::ReadRate);
}
