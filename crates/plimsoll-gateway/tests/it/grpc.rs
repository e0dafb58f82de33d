//! Calls of gRPC through the gateway: trailers, deadlines, failures, health.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use plimsoll_client::forward::{Head, Pool, PoolOptions, Speaks};
use plimsoll_client::{ConnectOptions, ConnectPlan, Connector, Endpoint, grpc};
use plimsoll_testkit::{
    Http2Answer, Http2Origin, Logic, Origin, Reply, eventually, refused_address,
};

use crate::client::run_local;
use crate::server::Served;

/// The outcome of a call.
#[derive(Debug, PartialEq, Eq)]
struct Answer {
    http_status: u16,
    /// `grpc-status` of the trailers, or else of the head.
    status: String,
    content: Vec<u8>,
}

fn call(gateway: &Served, path: &str, timeout: &str) -> Answer {
    run_local(async {
        let plan = ConnectPlan::new(ConnectOptions::default()).unwrap();
        let options = PoolOptions {
            speaks: Speaks::Http2,
            ..PoolOptions::default()
        };
        let pool = Pool::new(Connector::new(plan.into()), options);
        let endpoint = Endpoint::parse(&gateway.url()).unwrap();
        let lease = pool.acquire(&endpoint).await.unwrap();
        let fields = [
            ("content-type", "application/grpc"),
            ("te", "trailers"),
            ("grpc-timeout", timeout),
        ];
        let content = grpc::frame(&[b"ask"]).unwrap();
        let head = Head::new("POST", path, &fields);
        let mut exchange = lease.begin(&head, Full::new(Bytes::from(content))).unwrap();
        let head = exchange.final_head().await.unwrap();
        let received = exchange.into_response_body().collect().await.unwrap();
        let text = |value: &[u8]| String::from_utf8(value.to_vec()).unwrap();
        let trailers = received
            .trailers()
            .and_then(|it| it.get("grpc-status").cloned());
        let status = trailers.map(|it| text(it.as_bytes()));
        let status = status.or_else(|| head.fields.field("grpc-status").map(text));
        Answer {
            http_status: head.status.as_u16(),
            status: status.unwrap_or_default(),
            content: received.to_bytes().to_vec(),
        }
    })
}

fn gateway(server: &str, keys: &str) -> Served {
    let server = server.trim_end_matches('/');
    Served::routes(&format!(
        "[[route]]\nproxy = {{ to = \"{server}\", protocol = \"http2\"{keys} }}\n"
    ))
}

fn origin(answer: Http2Answer) -> Http2Origin {
    Http2Origin::builder()
        .answer(move |_, _| answer.clone())
        .start()
}

#[test]
fn a_call_passes_with_its_trailers_and_its_timeout() {
    let message = grpc::frame(&[b"answer"]).unwrap();
    let origin = origin(Http2Answer::Parts {
        status: 200,
        head: vec![("content-type", "application/grpc")],
        content: message.clone(),
        trailers: vec![("grpc-status", "5"), ("grpc-message", "none")],
    });
    let gateway = gateway(&origin.url(""), "");
    let answer = call(&gateway, "/shop.Cart/Get", "20S");
    let expected = Answer {
        http_status: 200,
        status: "5".to_owned(),
        content: message,
    };
    assert_eq!(answer, expected);
    let seen = Arc::new(Mutex::new(None));
    let noted = Arc::clone(&seen);
    let logic = Logic::new(move |question| {
        *noted.lock().unwrap() = Some(question.clone());
        Reply::new(200, &[("grpc-status", "0")])
    });
    let origin = Http2Origin::builder().logic(logic).start();
    let gateway = self::gateway(&origin.url(""), "");
    assert_eq!(call(&gateway, "/shop.Cart/Get", "20S").status, "0");
    let question = seen.lock().unwrap().take().unwrap();
    assert_eq!(question.field("grpc-timeout"), Some("20S"));
    assert_eq!(question.field("te"), Some("trailers"));
}

#[test]
fn a_call_ends_at_its_deadline_before_a_response_and_within_one() {
    let silent = origin(Http2Answer::Hold);
    let gateway_to_silent = gateway(&silent.url(""), "");
    let answer = call(&gateway_to_silent, "/shop.Cart/Get", "50m");
    assert_eq!((answer.http_status, answer.status.as_str()), (200, "4"));
    let message = grpc::frame(&[b"first"]).unwrap();
    let streaming = origin(Http2Answer::Stream {
        content_type: "application/grpc",
        content: message.clone(),
        ends: false,
    });
    let gateway_to_streaming = gateway(&streaming.url(""), "");
    let answer = call(&gateway_to_streaming, "/shop.Cart/Watch", "100m");
    assert_eq!((answer.status.as_str(), answer.content), ("4", message));
}

#[test]
fn the_total_time_ends_a_call_with_a_status_before_a_response_and_within_one() {
    let silent = origin(Http2Answer::Hold);
    let late = gateway(&silent.url(""), ", timeout = \"50ms\"");
    let answer = call(&late, "/shop.Cart/Get", "20S");
    assert_eq!((answer.http_status, answer.status.as_str()), (200, "4"));
    let message = grpc::frame(&[b"first"]).unwrap();
    let streaming = origin(Http2Answer::Stream {
        content_type: "application/grpc",
        content: message.clone(),
        ends: false,
    });
    let late = gateway(&streaming.url(""), ", timeout = \"100ms\"");
    let answer = call(&late, "/shop.Cart/Watch", "20S");
    assert_eq!((answer.status.as_str(), answer.content), ("4", message));
}

#[test]
fn failures_are_statuses_of_grpc() {
    let down = gateway(&format!("http://{}", refused_address()), "");
    let answer = call(&down, "/shop.Cart/Get", "20S");
    assert_eq!((answer.http_status, answer.status.as_str()), (200, "14"));
    let origin = origin(Http2Answer::Content(200, Vec::new()));
    let small = gateway(&origin.url(""), ", max_request = \"3B\"");
    let answer = call(&small, "/shop.Cart/Get", "20S");
    assert_eq!((answer.http_status, answer.status.as_str()), (200, "8"));
}

#[test]
fn the_health_service_is_answered_from_the_health_of_the_servers() {
    let origin = origin(Http2Answer::Content(200, Vec::new()));
    let up = gateway(&origin.url(""), ", grpc_health = true");
    let check = "/grpc.health.v1.Health/Check";
    let answer = call(&up, check, "20S");
    assert_eq!(
        (answer.status.as_str(), answer.content.as_slice()),
        ("0", &[0, 0, 0, 0, 2, 8, 1][..])
    );
    assert_eq!(origin.requests(), 0);
    let down = gateway(
        &format!("http://{}", refused_address()),
        ", grpc_health = true, health = { kind = \"tcp\", interval = \"20ms\", unhealthy = 1 }",
    );
    eventually(|| call(&down, check, "20S").content == [0, 0, 0, 0, 2, 8, 2]);
}

#[test]
fn a_watched_health_is_sent_again_when_it_changes() {
    let origin = Origin::hello();
    let url = origin.url("");
    let server = url.trim_end_matches('/');
    let text = |weight: u32| {
        format!(
            "[[listen]]\naddress = \"127.0.0.1:0\"\n[[route]]\nproxy = {{ to = \"all\", grpc_health = true }}\n\
             [upstream.all]\nservers = \"{server}\"\n[admin]\naddress = \"127.0.0.1:0\"\n# {weight}\n"
        )
    };
    let gateway = Served::new(&text(1));
    let admin = gateway.addresses[1];
    let drain = move || {
        let put = format!(
            "PUT /upstreams/all?server={server}&weight=0 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
        );
        assert_eq!(
            plimsoll_testkit::http::exchange(admin, put.as_bytes()).status,
            204
        );
    };
    let frames = watch(&gateway.url(), drain);
    assert_eq!(frames, [[0, 0, 0, 0, 2, 8, 1], [0, 0, 0, 0, 2, 8, 2]]);
}

/// Watches the health, and calls `change` between the first message and the second.
fn watch(url: &str, change: impl FnOnce()) -> Vec<Vec<u8>> {
    run_local(async {
        let plan = ConnectPlan::new(ConnectOptions::default()).unwrap();
        let options = PoolOptions {
            speaks: Speaks::Http2,
            ..PoolOptions::default()
        };
        let pool = Pool::new(Connector::new(plan.into()), options);
        let endpoint = Endpoint::parse(url).unwrap();
        let lease = pool.acquire(&endpoint).await.unwrap();
        let fields = [("content-type", "application/grpc"), ("te", "trailers")];
        let content = Bytes::from(grpc::frame(&[b""]).unwrap());
        let head = Head::new("POST", "/grpc.health.v1.Health/Watch", &fields);
        let mut exchange = lease.begin(&head, Full::new(content)).unwrap();
        assert_eq!(exchange.final_head().await.unwrap().status, 200);
        let mut body = exchange.into_response_body();
        let mut frames = Vec::new();
        let mut change = Some(change);
        while frames.len() < 2 {
            let frame = body.frame().await.unwrap().unwrap();
            frames.push(frame.into_data().unwrap().to_vec());
            if let Some(change) = change.take() {
                change();
            }
        }
        frames
    })
}

#[test]
fn the_longest_deadline_is_that_of_the_route() {
    let silent = origin(Http2Answer::Hold);
    let gateway = gateway(&silent.url(""), ", grpc_timeout = \"50ms\"");
    let answer = call(&gateway, "/shop.Cart/Get", "9H");
    assert_eq!((answer.http_status, answer.status.as_str()), (200, "4"));
}
