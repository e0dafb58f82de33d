//! WebSockets: counts equal to the server's, whatever becomes of connections and messages.

use plimsoll_client::{Endpoint, Request, Upgrade};
use plimsoll_load::{
    HttpPlan, OnFull, PlannedRequest, RunError, RunPlan, Spacing, WebSocketPlan, WorkloadPlan,
    check_reachable,
};
use plimsoll_model::{FailureKind, Phase, Protocol};
use plimsoll_testkit::{Origin, WebSocketAnswer, WebSocketHandshake, WebSocketOrigin, eventually};
use plimsoll_wire::ws::{Limits, MessageKind};

use crate::fixture::{failures, go, lasting, millis, open, plan, requests};

/// Ten round trips on two connections.
pub(crate) fn websocket(origin: &WebSocketOrigin) -> RunPlan {
    let url = format!("http://{}/socket", origin.address());
    at(&url, b"hello")
}

pub(crate) fn at(url: &str, message: &[u8]) -> RunPlan {
    let endpoint = Endpoint::parse(url).unwrap();
    let headers = Upgrade::fields().map(|(name, value)| (name.to_owned(), value));
    let target = endpoint.path_and_query();
    let request = Request::encode("GET", target, endpoint.authority(), &headers, None).unwrap();
    RunPlan {
        requests: vec![PlannedRequest::fixed(0, request)],
        names: std::sync::Arc::default(),
        workload: WorkloadPlan::WebSocket(WebSocketPlan {
            http: HttpPlan::Http1,
            kind: MessageKind::Text,
            message: message.into(),
            limits: Limits::default(),
        }),
        ..plan(url)
    }
}

fn messages(plan: &mut RunPlan) -> &mut WebSocketPlan {
    let WorkloadPlan::WebSocket(websocket) = &mut plan.workload else {
        panic!("a plan of WebSockets");
    };
    websocket
}

#[test]
fn a_number_of_round_trips_is_made_exactly() {
    for (number, connections, workers) in [(1, 1, 1), (501, 2, 1), (2_000, 8, 2)] {
        let origin = WebSocketOrigin::echo();
        let summary = go(&RunPlan {
            connections,
            workers,
            stop: requests(number),
            ..websocket(&origin)
        });
        assert_eq!(summary.counts.ok, number);
        assert_eq!(summary.counts.failed, 0, "{:?}", summary.failures);
        assert_eq!(origin.messages(), number);
        assert_eq!(origin.connections(), connections as u64);
        assert_eq!(summary.connections_opened, connections as u64);
        assert_eq!(summary.load.protocol, Protocol::WebSocket);
        assert_eq!(summary.load.url, origin.url("/socket"));
        let messages = summary.messages.unwrap();
        assert_eq!((messages.sent, messages.received), (number, number));
        assert_eq!(origin.last(), Some((true, b"hello".to_vec())));
        // Head of two bytes there, with a mask of four, and two bytes back.
        assert_eq!(summary.bytes_sent, number * 11);
        assert_eq!(summary.bytes_received, number * 7);
        // Each says goodbye.
        eventually(|| origin.close_frames() == connections as u64);
        eventually(|| origin.open_connections() == 0);
    }
}

#[test]
fn a_connection_that_is_left_between_two_messages_is_no_abort() {
    let origin = WebSocketOrigin::echo();
    let summary = go(&RunPlan {
        pacing: open(20.0, Spacing::Even, OnFull::Queue),
        connections: 4,
        stop: lasting(millis(300)),
        ..websocket(&origin)
    });
    assert_eq!(summary.counts.intended(), 6, "{:?}", summary.counts);
    assert_eq!(summary.counts.ok, 6, "{:?}", summary.failures);
    assert_eq!((summary.counts.aborted, summary.counts.errors()), (0, 0));
}

#[test]
fn a_schedule_is_kept_and_pings_are_answered_meanwhile() {
    let origin = WebSocketOrigin::answering(|_| WebSocketAnswer::EchoAndPing);
    let summary = go(&RunPlan {
        pacing: open(100.0, Spacing::Even, OnFull::Queue),
        stop: requests(30),
        ..websocket(&origin)
    });
    assert_eq!(summary.counts.ok, 30, "{:?}", summary.failures);
    assert_eq!(origin.messages(), 30);
    // The run may be over before the ping behind its last message is read.
    eventually(|| origin.pongs() >= 29);
    assert!(summary.latency.from_intended.is_some());
}

#[test]
fn messages_of_every_length_come_back() {
    for length in [0, 125, 126, 65_535, 65_536, 1 << 20] {
        let origin = WebSocketOrigin::echo();
        let message: Vec<u8> = (0..=255).cycle().take(length).collect();
        let mut plan = websocket(&origin);
        let websocket = messages(&mut plan);
        websocket.kind = MessageKind::Binary;
        websocket.message = message.clone().into();
        let summary = go(&plan);
        assert_eq!(summary.counts.ok, 10, "{length}: {:?}", summary.failures);
        assert!(origin.last() == Some((false, message)), "{length}");
    }
}

#[test]
fn parts_and_surplus_are_distinguished() {
    let origin = WebSocketOrigin::answering(|_| WebSocketAnswer::EchoInParts);
    let summary = go(&websocket(&origin));
    assert_eq!(summary.counts.ok, 10);
    assert_eq!(summary.messages.unwrap().received, 10);
    assert!(origin.pongs() >= 8, "{}", origin.pongs());

    let origin = WebSocketOrigin::answering(|number| match number {
        0 => WebSocketAnswer::EchoTwice,
        _ => WebSocketAnswer::Echo,
    });
    let summary = go(&RunPlan {
        connections: 1,
        ..websocket(&origin)
    });
    assert_eq!(summary.counts.ok, 10);
    assert_eq!(origin.messages(), 10);
    assert!(summary.messages.unwrap().received >= 10);
}

/// The failure of the third of ten messages on one connection, after which all is well.
fn third(answer: WebSocketAnswer) -> (FailureKind, Phase, String) {
    let answer = move |number| match number {
        2 => answer.clone(),
        _ => WebSocketAnswer::Echo,
    };
    let origin = WebSocketOrigin::answering(answer);
    let mut plan = websocket(&origin);
    plan.connections = 1;
    plan.timeout = millis(300);
    messages(&mut plan).limits.message_bytes = 100;
    let summary = go(&plan);
    assert_eq!(summary.counts.ok, 9, "{:?}", summary.failures);
    assert_eq!(origin.connections(), 2);
    let failure = &summary.failures[0];
    let cause = failure.example.cause.clone().unwrap_or_default();
    (failure.kind, failure.phase, cause)
}

#[test]
fn failures_have_names() {
    let (kind, phase, cause) = third(WebSocketAnswer::Close(1011, "out of order"));
    assert_eq!((kind, phase), (FailureKind::Closed, Phase::Receive));
    assert_eq!(cause, "close code 1011: out of order");
    let (kind, _, _) = third(WebSocketAnswer::Vanish);
    assert!(matches!(kind, FailureKind::Closed | FailureKind::Reset));
    let (kind, _, cause) = third(WebSocketAnswer::Raw(b"\xf1\x00".to_vec()));
    assert_eq!(kind, FailureKind::Protocol);
    assert_eq!(cause, "a reserved bit of a frame is set");
    let (kind, _, _) = third(WebSocketAnswer::Raw(b"\x81\x02\xff\xff".to_vec()));
    assert_eq!(kind, FailureKind::Decode);
    let (kind, _, cause) = third(WebSocketAnswer::Raw(b"\x82\x7e\x01\x00".to_vec()));
    assert_eq!(kind, FailureKind::TooLarge);
    assert_eq!(cause, "a message is longer than 100 bytes");
    let (kind, phase, _) = third(WebSocketAnswer::Silence);
    assert_eq!((kind, phase), (FailureKind::Timeout, Phase::Wait));
}

#[test]
fn handshakes_that_fail_have_names() {
    let origin = WebSocketOrigin::greeting(|number| match number {
        0 => WebSocketHandshake::Refuse(503),
        1 => WebSocketHandshake::Raw(
            b"HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\n\
              connection: upgrade\r\nsec-websocket-accept: nonsense\r\n\r\n"
                .to_vec(),
        ),
        2 => WebSocketHandshake::Raw(Vec::new()),
        _ => WebSocketHandshake::Accept,
    });
    let summary = go(&RunPlan {
        connections: 1,
        ..websocket(&origin)
    });
    assert_eq!(summary.counts.ok, 7, "{:?}", summary.failures);
    for kind in [
        FailureKind::UpgradeRefused,
        FailureKind::Protocol,
        FailureKind::Closed,
    ] {
        assert_eq!(failures(&summary, Phase::Connect, kind), 1, "{kind}");
    }
    let mut causes = summary.failures.iter();
    assert!(causes.any(|failure| failure.example.to_string().contains("status 503")));
}

#[test]
fn a_server_without_websockets_is_reported_at_once() {
    let origin = Origin::hello();
    let error = check_reachable(&at(&origin.url("/"), b"x")).unwrap_err();
    let RunError::Unreachable { endpoint, failure } = error else {
        panic!("{error:?}");
    };
    assert_eq!(endpoint, origin.url("").replace("http", "ws"));
    assert_eq!(failure.kind, FailureKind::UpgradeRefused);
    let origin = WebSocketOrigin::echo();
    check_reachable(&websocket(&origin)).unwrap();
    eventually(|| origin.close_frames() == 1);
}
