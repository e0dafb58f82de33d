//! A router of axum as the action of a listener.

use std::io::Write;
use std::net::SocketAddr;
use std::rc::Rc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Extension, Path};
use axum::routing::{get, post};
use http::{HeaderMap, StatusCode};
use plimsoll_server::{Limits, Mount};

use crate::server::{Server, plan, read_all};

fn router() -> Router {
    Router::new()
        .route(
            "/hello/{name}",
            get(|Path(name): Path<String>| async move { format!("hello {name}\n") }),
        )
        .route(
            "/length",
            post(|content: Bytes| async move { content.len().to_string() }),
        )
        .route("/echo", post(|content: Body| async move { content }))
        .route(
            "/from",
            get(
                |Extension(peer): Extension<SocketAddr>, fields: HeaderMap| async move {
                    let is_loopback = peer.ip().is_loopback();
                    (
                        [("x-one", "1"), ("x-two", "2")],
                        format!("{is_loopback} {:?}", fields["host"]),
                    )
                },
            ),
        )
}

#[test]
fn a_router_of_axum_answers() {
    let router = router();
    let make = move || Rc::new(Mount::new(router.clone())) as _;
    let server = Server::start(&plan(Limits::default(), make));
    let mut stream = server.connect();
    let long = "x".repeat(100_000);
    let requests = [
        "GET /hello/you HTTP/1.1\r\nhost: a\r\n\r\n".to_owned(),
        format!("POST /length HTTP/1.1\r\nhost: a\r\ncontent-length: 100000\r\n\r\n{long}"),
        "POST /echo HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
            .to_owned(),
        "HEAD /hello/all HTTP/1.1\r\nhost: a\r\n\r\n".to_owned(),
        "GET /from?x=y HTTP/1.1\r\nhost: a:1\r\n\r\n".to_owned(),
        "GET /nowhere HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n".to_owned(),
    ];
    stream.write_all(requests.concat().as_bytes()).unwrap();
    let answers = read_all(&mut stream);
    for expected in [
        "content-length: 10\r\n\r\nhello you\n",
        "content-length: 6\r\n\r\n100000",
        "transfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
        "content-length: 10\r\ncontent-type: text/plain; charset=utf-8\r\n\r\nHTTP/1.1 200 OK\r\n",
        "x-one: 1\r\nx-two: 2\r\n",
        "\r\n\r\ntrue \"a:1\"",
        "HTTP/1.1 404 Not Found\r\n",
    ] {
        assert!(answers.contains(expected), "no {expected:?} in {answers}");
    }
    let snapshot = server.engine.counters().snapshot();
    assert_eq!(snapshot.requests[1][1], 5);
    assert_eq!(
        snapshot.requests[1][StatusCode::NOT_FOUND.as_u16() as usize / 100 - 1],
        1
    );
}
