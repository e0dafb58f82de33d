//! Rates over HTTP/3: of requests, and of content in both directions. Nothing is fast enough for the latter, so the
//! tests do not wait.

use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, StatusCode};
use plimsoll_server::{Counters, Cut, Engine, Limits, Respond, Response, ResponseBody, config};
use plimsoll_testkit::{Authority, MaterialFiles};
use quinn::TransportConfig;

use crate::http3::{endpoint, endpoint_with, exchange, get, open, run, speak, start};
use crate::rates::{GRACE, RATE, Swallow, is_cut};
use crate::server::Server;

#[test]
fn content_must_come_fast_enough() {
    let mut limits = Limits {
        body_timeout: GRACE,
        body_rate: RATE,
        ..Limits::default()
    };
    limits.request.body_bytes = u64::MAX;
    let (server, authority) = start(limits, 1, || Rc::new(Swallow));
    run(async {
        let quic = open(&authority, server.address).await;
        let (mut requests, _driver) = speak(quic).await;
        let post = Request::post("https://localhost/").body(()).unwrap();
        let stream = requests.send_request(post).await.unwrap();
        let (mut sending, mut receiving) = stream.split();
        let content = async {
            // A byte at a time, none of which comes too late: the server waits for each.
            while sending.send_data(Bytes::from_static(b"x")).await.is_ok() {
                tokio::task::yield_now().await;
            }
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = content => {}
            response = receiving.recv_response() => {
                assert_eq!(response.unwrap().status(), StatusCode::BAD_REQUEST);
            }
        }
    });
    is_cut(&server, Cut::BodyRate);
}

#[test]
fn content_must_come_at_all() {
    let limits = Limits {
        body_timeout: Duration::from_millis(50),
        ..Limits::default()
    };
    let (server, authority) = start(limits, 1, || Rc::new(Swallow));
    run(async {
        let quic = open(&authority, server.address).await;
        let (mut requests, _driver) = speak(quic).await;
        let post = Request::post("https://localhost/").body(()).unwrap();
        let mut stream = requests.send_request(post).await.unwrap();
        let response = stream.recv_response().await.unwrap();
        assert_eq!(response.status(), StatusCode::BAD_REQUEST);
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
    let (server, authority) = start(limits, 1, || {
        let body = ResponseBody::Bytes(Bytes::from(vec![b'x'; 64 << 20]));
        Rc::new(Respond::new(Response::new(StatusCode::OK).with_body(body)))
    });
    run(async {
        // With little room, of which the server hears each time that some is free.
        let mut transport = TransportConfig::default();
        transport.stream_receive_window(16_384_u32.into());
        let endpoint = endpoint_with(&authority, transport);
        let quic = endpoint.connect(server.address, "localhost").unwrap();
        let (mut requests, _driver) = speak(quic.await.unwrap()).await;
        let mut stream = requests.send_request(get("/")).await.unwrap();
        stream.finish().await.unwrap();
        stream.recv_response().await.unwrap();
        while let Ok(Some(_)) = stream.recv_data().await {
            tokio::task::yield_now().await;
        }
    });
    is_cut(&server, Cut::ReadRate);
}

#[test]
fn a_client_over_its_rate_learns_when_to_come_back() {
    let (files, authority) = (MaterialFiles::new(), Authority::new());
    let leaf = authority.issue(&["localhost"]);
    files.write("cert.pem", leaf.pem());
    files.write("key.pem", leaf.key_pem());
    let text = "threads = 1\n[[listen]]\naddress = \"127.0.0.1:0\"\nhttp3 = true\n\
                tls = { cert = \"cert.pem\", key = \"key.pem\" }\n\
                rate_limit = { requests = 2, per = \"1h\" }\n\
                [[route]]\nrespond = { body = \"hello\" }\n";
    let counters = Arc::<Counters>::default();
    let compiler = config::Compiler::new(Path::new(&files.path("")), &counters);
    let plan = compiler.compile(text).unwrap();
    let engine = Engine::start(&plan.engine, counters).unwrap();
    let address = engine.addresses()[0];
    let server = Server { engine, address };
    run(async {
        // Connections of one address are one client.
        for statuses in [[200, 200], [429, 429]] {
            let endpoint = endpoint(&authority);
            let quic = endpoint.connect(server.address, "localhost").unwrap();
            let (mut requests, _driver) = speak(quic.await.unwrap()).await;
            for status in statuses {
                let (parts, _, _) = exchange(&mut requests, get("/"), b"").await.unwrap();
                assert_eq!(parts.status, status);
                assert_eq!(parts.headers.contains_key("retry-after"), status == 429);
            }
        }
    });
    let snapshot = server.engine.counters().snapshot();
    assert_eq!(snapshot.requests[3], [0, 2, 0, 2, 0, 0]);
}
