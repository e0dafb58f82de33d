//! Probes of services with protocols of their own, against real servers where Debian has them.

use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

use plimsoll_model::{Clock, FailureKind, GrpcStatus, Phase, Secret};
use plimsoll_monitor::Reading;
use plimsoll_monitor::probe::{
    AmqpProbe, DockerHost, DockerProbe, GrpcCall, GrpcProbe, LdapProbe, LdapScope, LdapSearch,
    MqttProbe, MysqlProbe, NatsProbe, NtpProbe, Probe, PrometheusProbe, Reach, RedisProbe,
    SnmpProbe,
};
use plimsoll_testkit::services::PortServer;
use plimsoll_testkit::{Origin, Script, Step};
use plimsoll_wire::SystemClock;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::probes::{HealthServer, failure, impatient, lines, reach, read, request, target};

#[test]
fn ntp_measures_the_offset_and_holds_the_server_to_limits() {
    let probe = |port: u16, most_stratum: u8, reach: Reach| NtpProbe {
        target: target(format_args!("127.0.0.1:{port}")),
        most_offset: Duration::from_secs(1),
        most_stratum,
        reach,
    };
    let server = PortServer::ntp(Some(8));
    let usual = probe(server.port, 15, reach());
    plimsoll_testkit::eventually(|| read(&usual).failure.is_none());
    let reading = read(&usual);
    assert_eq!((&reading.failure, &reading.unmet), (&None, &None));
    let body: Value = serde_json::from_slice(&reading.body).unwrap();
    assert_eq!((&body["stratum"], &body["leap"]), (&json!(8), &json!(0)));
    // Both clocks are that of this machine.
    assert!(
        body["offset_ms"].as_f64().unwrap().abs() < 1_000.0,
        "{body}"
    );
    assert!(reading.connected && reading.phases.get(Phase::Wait).is_some());
    let low = read(&probe(server.port, 7, reach())).unmet.unwrap();
    assert_eq!(low, "the stratum of the server is 8, more than 7");
    // One that was never set.
    let server = PortServer::ntp(None);
    let without = probe(server.port, 15, reach());
    plimsoll_testkit::eventually(|| read(&without).failure.is_none());
    let unmet = read(&without).unmet.unwrap();
    assert!(
        unmet.starts_with("the server has no time to serve") || unmet.contains("not synchronised"),
        "{unmet}"
    );
    // Another protocol, and none at all.
    let echo = udp_echo(b"nothing");
    let (kind, cause) = failure(&probe(echo.port(), 15, reach()));
    assert_eq!(kind, FailureKind::Protocol, "{cause}");
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    assert_eq!(
        failure(&probe(port, 15, impatient())).0,
        FailureKind::Timeout
    );
}

#[test]
fn a_clock_that_is_off_is_found() {
    // A server whose clock is an hour ahead, and of which all else is right.
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    thread::spawn(move || {
        let mut packet = [0; 48];
        while let Ok((_, peer)) = socket.recv_from(&mut packet) {
            let now = SystemClock.wall() + Duration::from_hours(1);
            let since = now.duration_since(std::time::UNIX_EPOCH).unwrap();
            let stamp = ((since.as_secs() + 2_208_988_800) << 32).to_be_bytes();
            packet.copy_within(40..48, 24);
            (packet[0], packet[1]) = (0b00_100_100, 1);
            packet[12..16].copy_from_slice(b"GPS\0");
            packet[32..40].copy_from_slice(&stamp);
            packet[40..48].copy_from_slice(&stamp);
            socket.send_to(&packet, peer).unwrap();
        }
    });
    let probe = |most_offset| NtpProbe {
        target: target(address),
        most_offset,
        most_stratum: 15,
        reach: reach(),
    };
    let reading = read(&probe(Duration::from_secs(1)));
    let unmet = reading.unmet.unwrap();
    assert!(
        unmet.starts_with("the clock of the server is 3")
            && unmet.ends_with("ahead of the one of this machine, more than 1s"),
        "{unmet}"
    );
    let body: Value = serde_json::from_slice(&reading.body).unwrap();
    assert_eq!(body["reference"], "GPS");
    assert!(
        (body["offset_ms"].as_f64().unwrap() - 3_600_000.0).abs() < 5_000.0,
        "{body}"
    );
    assert_eq!(read(&probe(Duration::from_hours(2))).unmet, None);
}

#[test]
fn nats_reads_the_server_s_info_and_its_refusals() {
    let server = PortServer::nats("ann", "secret word");
    let probe = |login: &str, token: Option<&str>| {
        let url = format!("nats://{login}127.0.0.1:{}", server.port);
        read(&NatsProbe::new(&url, token.map(Secret::new), reach()).unwrap())
    };
    let reading = probe("ann:secret%20word@", None);
    assert_eq!((&reading.failure, &reading.unmet), (&None, &None));
    let body: Value = serde_json::from_slice(&reading.body).unwrap();
    assert!(
        body["version"].is_string() && body["max_payload"].is_u64(),
        "{body}"
    );
    assert!(reading.phases.get(Phase::Wait).is_some());
    for (login, token) in [("", None), ("ann:wrong@", None), ("", Some("other"))] {
        let unmet = probe(login, token).unmet.unwrap();
        assert_eq!(unmet, "the server reports: Authorization Violation");
    }
    let url = format!("tls://ann:secret%20word@127.0.0.1:{}", server.port);
    let unmet = read(&NatsProbe::new(&url, None, reach()).unwrap()).unmet;
    assert_eq!(unmet.as_deref(), Some("the server offers no TLS"));
    let origin = lines("220 mail.example\r\n", &[]);
    let url = format!("nats://{}", origin.address());
    let other = NatsProbe::new(&url, None, reach()).unwrap();
    assert_eq!(failure(&other).0, FailureKind::Protocol);
    NatsProbe::new("http://a/", None, reach()).unwrap_err();
}

#[test]
fn ldap_binds_and_finds_entries() {
    let server = PortServer::ldap("secret word");
    let probe = |login: Option<(&str, &str)>, search: Option<(&str, &str)>| {
        let search = search.map(|(base, filter)| LdapSearch {
            base: base.to_owned(),
            scope: LdapScope::Sub,
            filter: filter.parse().unwrap(),
            attributes: Vec::new(),
        });
        read(&LdapProbe {
            target: target(format_args!("127.0.0.1:{}", server.port)),
            starttls: false,
            login: login.map(|(name, password)| (name.to_owned(), Secret::new(password))),
            search,
            reach: reach(),
        })
    };
    let admin = Some(("cn=admin,dc=example,dc=org", "secret word"));
    for login in [None, admin] {
        let reading = probe(login, None);
        assert_eq!((&reading.failure, &reading.unmet), (&None, &None));
        assert!(reading.phases.get(Phase::Wait).is_some());
    }
    let unmet = probe(Some(("cn=admin,dc=example,dc=org", "wrong")), None)
        .unmet
        .unwrap();
    assert_eq!(
        unmet,
        "the server refuses the bind with invalidCredentials (49)"
    );
    let base = "dc=example,dc=org";
    let found = probe(
        admin,
        Some((base, "(&(objectClass=person)(|(sn=a*c)(cn=nobody)))")),
    );
    assert_eq!((&found.failure, &found.unmet), (&None, &None));
    let body: Value = serde_json::from_slice(&found.body).unwrap();
    let expected = json!([{ "dn": "cn=Ann,dc=example,dc=org", "objectClass": ["person"], "cn": ["Ann"], "sn": ["Arc"] }]);
    assert_eq!(body, expected);
    let two = probe(None, Some((base, "objectClass=person")));
    let two: Value = serde_json::from_slice(&two.body).unwrap();
    assert_eq!(two.as_array().unwrap().len(), 2);
    let none = probe(admin, Some((base, "(cn=nobody)"))).unmet;
    assert_eq!(none.as_deref(), Some("the search finds no entry"));
    let elsewhere = probe(admin, Some(("dc=example,dc=net", "(cn=Ann)")))
        .unmet
        .unwrap();
    assert!(
        elsewhere.starts_with("the server refuses the search with "),
        "{elsewhere}"
    );
    let without = read(&LdapProbe {
        target: target(format_args!("127.0.0.1:{}", server.port)),
        starttls: true,
        login: None,
        search: None,
        reach: reach(),
    });
    let unmet = without.unmet.unwrap();
    assert!(
        unmet.starts_with("the server refuses the handshake with protocolError (2)"),
        "{unmet}"
    );
    let origin = lines("220 mail.example\r\n", &[]);
    let other = LdapProbe {
        target: target(origin.address()),
        starttls: false,
        login: None,
        search: None,
        reach: reach(),
    };
    assert_eq!(failure(&other).0, FailureKind::Protocol);
}

#[test]
fn snmp_reads_objects() {
    let server = PortServer::snmp("readers");
    let probe = |community: &str, objects: &[&str], reach: Reach| SnmpProbe {
        target: target(format_args!("127.0.0.1:{}", server.port)),
        community: Secret::new(community),
        objects: objects
            .iter()
            .map(|object| object.parse().unwrap())
            .collect(),
        reach,
    };
    // The name of the host, and for how long the agent runs.
    let objects = ["1.3.6.1.2.1.1.5.0", "1.3.6.1.2.1.1.3.0"];
    let usual = probe("readers", &objects, impatient());
    plimsoll_testkit::eventually(|| read(&usual).failure.is_none());
    let reading = read(&probe("readers", &objects, reach()));
    assert_eq!((&reading.failure, &reading.unmet), (&None, &None));
    let body: Value = serde_json::from_slice(&reading.body).unwrap();
    assert_eq!(
        body[0],
        json!({ "oid": "1.3.6.1.2.1.1.5.0", "value": "tested" })
    );
    assert!(body[1]["value"].is_u64(), "{body}");
    let missing = read(&probe("readers", &["1.3.6.1.2.1.1.99.0"], reach())).unmet;
    assert_eq!(
        missing.as_deref(),
        Some("the agent has no object 1.3.6.1.2.1.1.99.0")
    );
    // Some agents do not answer who has no access.
    let refused = read(&probe("others", &objects, impatient()));
    let is_silent = refused
        .failure
        .is_some_and(|failure| failure.kind == FailureKind::Timeout);
    let unmet = refused.unmet.unwrap_or_default();
    assert!(
        is_silent || unmet.contains("authorizationError (16)"),
        "{unmet}"
    );
    let echo = udp_echo(b"nothing");
    let other = SnmpProbe {
        target: target(echo),
        ..probe("readers", &objects, reach())
    };
    assert_eq!(failure(&other).0, FailureKind::Protocol);
}

/// A server of UDP that answers everything with the same.
fn udp_echo(answer: &'static [u8]) -> SocketAddr {
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    thread::spawn(move || {
        let mut buffer = [0; 2_048];
        while let Ok((_, peer)) = socket.recv_from(&mut buffer) {
            socket.send_to(answer, peer).unwrap();
        }
    });
    address
}

#[test]
fn prometheus_has_samples_of_a_query() {
    let probe = |origin: &Origin, query: &str| {
        PrometheusProbe::new(request(&origin.url("/prom/")), query, reach()).unwrap()
    };
    let answers = |status: &str, json: &str| {
        let length = json.len();
        Origin::scripted(Script::serve(format!(
            "HTTP/1.1 {status}\r\ncontent-length: {length}\r\n\r\n{json}"
        )))
    };
    let origin = answers(
        "200 OK",
        r#"{"status":"success","data":{"resultType":"vector","result":[{"metric":{"job":"a b"},"value":[1,"0.25"]}]}}"#,
    );
    let reading = read(&probe(&origin, "up{job=\"a b\"} == 0"));
    assert_eq!((&reading.failure, &reading.unmet), (&None, &None));
    let body: Value = serde_json::from_slice(&reading.body).unwrap();
    assert_eq!((&body["count"], &body["value"]), (&json!(1), &json!(0.25)));
    let head = &origin.heads()[0];
    let path = "GET /prom/api/v1/query?query=up%7Bjob%3D%22a+b%22%7D+%3D%3D+0 ";
    assert!(head.starts_with(path), "{head}");
    let wrong = answers(
        "400 Bad Request",
        r#"{"status":"error","errorType":"bad_data","error":"parse error"}"#,
    );
    let unmet = read(&probe(&wrong, "up ==")).unmet;
    assert_eq!(unmet.as_deref(), Some("the query fails: parse error"));
    let (kind, cause) = failure(&probe(&answers("404 Not Found", ""), "up"));
    assert_eq!(kind, FailureKind::Protocol);
    assert!(cause.contains("(status 404)"), "{cause}");
}

#[test]
fn a_real_prometheus_has_samples_of_a_query() {
    let server = PortServer::prometheus();
    let probe = |query: &str| {
        let url = format!("http://127.0.0.1:{}", server.port);
        read(&PrometheusProbe::new(request(&url), query, reach()).unwrap())
    };
    let body =
        |reading: &Reading| -> Value { serde_json::from_slice(&reading.body).unwrap_or_default() };
    // It has scraped itself.
    plimsoll_testkit::eventually(|| body(&probe("up"))["count"] == 1);
    let up = probe("up");
    assert_eq!((&up.failure, &up.unmet), (&None, &None));
    let sample = &body(&up)["samples"][0];
    assert_eq!(
        (&sample["value"], &sample["labels"]["job"]),
        (&json!(1.0), &json!("itself"))
    );
    assert_eq!(body(&probe("up == 0"))["count"], 0);
    assert_eq!(body(&probe("scalar(up) + 1"))["value"], 2.0);
    assert_eq!(body(&probe("1 / 0"))["value"], "+Inf");
    let unmet = probe("up ==").unmet.unwrap();
    assert!(unmet.contains("parse error"), "{unmet}");
    let range = probe("up[1m]").unmet.unwrap();
    assert!(range.contains("a result of the type `matrix`"), "{range}");
}

#[test]
fn docker_looks_at_a_container_over_the_socket_of_its_engine() {
    let folder = tempfile::TempDir::new().unwrap();
    let socket = folder.path().join("engine.sock");
    let listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let engine = thread::spawn(move || {
        let answers = [
            (
                "200 OK",
                r#"{"State":{"Status":"running","Running":true,"Health":{"Status":"healthy"}},"RestartCount":0}"#,
            ),
            ("404 Not Found", r#"{"message":"No such container: web"}"#),
            ("200 OK", "{}"),
        ];
        answers.map(|(status, json)| {
            use std::io::{Read as _, Write as _};

            let (mut stream, _) = listener.accept().unwrap();
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                stream.read_exact(&mut byte).unwrap();
                head.push(byte[0]);
            }
            let length = json.len();
            write!(
                stream,
                "HTTP/1.1 {status}\r\ncontent-length: {length}\r\n\r\n{json}"
            )
            .unwrap();
            String::from_utf8(head).unwrap()
        })
    });
    let probe = DockerProbe::new(DockerHost::Socket(socket), "web", "test", reach()).unwrap();
    assert_eq!(probe.target(), "web");
    let reading = read(&probe);
    assert_eq!((&reading.failure, &reading.unmet), (&None, &None));
    let body: Value = serde_json::from_slice(&reading.body).unwrap();
    assert_eq!(
        (&body["running"], &body["health"]),
        (&json!(true), &json!("healthy"))
    );
    let unmet = read(&probe).unmet;
    assert_eq!(
        unmet.as_deref(),
        Some("the engine reports: No such container: web")
    );
    assert_eq!(failure(&probe).0, FailureKind::Protocol);
    let heads = engine.join().unwrap();
    assert!(
        heads[0].starts_with("GET /containers/web/json HTTP/1.1\r\n"),
        "{}",
        heads[0]
    );
    // Nothing listens any more.
    let (kind, cause) = failure(&probe);
    assert_eq!(kind, FailureKind::Refused, "{cause}");
}

#[test]
fn grpc_calls_a_method_that_a_file_or_its_server_describes() {
    const PROTO: &str = r#"syntax = "proto3"; package grpc.health.v1;
        message HealthCheckRequest { string service = 1; }
        message HealthCheckResponse { enum ServingStatus { UNKNOWN = 0; SERVING = 1; NOT_SERVING = 2; } ServingStatus status = 1; }
        service Health { rpc Check(HealthCheckRequest) returns (HealthCheckResponse); rpc Watch(HealthCheckRequest) returns (stream HealthCheckResponse); }"#;
    const METHOD: &str = "grpc.health.v1.Health/Check";

    let server = HealthServer::start();
    let described = GrpcCall::described_by(PROTO).unwrap();
    let url = format!("grpc://{}", server.address);
    for described in [None, Some(&described)] {
        let probe = |json: &str, leaves_status| {
            let call = GrpcCall::new(METHOD, json, described, leaves_status).unwrap();
            GrpcProbe::calling(&url, call, &[], reach()).unwrap()
        };
        let up = probe(r#"{"service": "up"}"#, false);
        assert!(up.target().ends_with(METHOD), "{}", up.target());
        // The second time the description is there.
        for _ in 0..2 {
            let reading = read(&up);
            assert_eq!((&reading.failure, &reading.unmet), (&None, &None));
            assert_eq!(reading.body, br#"{"status":"SERVING"}"#);
            assert_eq!(reading.grpc_status.map(GrpcStatus::code), Some(0));
        }
        let none = r#"{"service": "none"}"#;
        let unmet = read(&probe(none, false)).unmet.unwrap();
        assert!(
            unmet.starts_with("the call ended with NOT_FOUND"),
            "{unmet}"
        );
        let left = read(&probe(none, true));
        assert_eq!((&left.failure, &left.unmet), (&None, &None));
        assert_eq!(left.grpc_status.map(GrpcStatus::code), Some(5));
    }
    // What is wrong with a call is found before the first check if a file describes it.
    for (method, json, expected) in [
        (METHOD, "{", "`body` is not JSON"),
        (
            METHOD,
            r#"{"nothing": 1}"#,
            "`body` is not a grpc.health.v1.HealthCheckRequest: ",
        ),
        ("grpc.health.v1.Health/Chek", "{}", "Check"),
        (
            "grpc.health.v1.Health/Watch",
            "{}",
            "takes or returns a stream",
        ),
        ("Check", "{}", "is not of the form"),
    ] {
        let error = GrpcCall::new(method, json, Some(&described), false).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    }
    let unknown = GrpcCall::new("a.B/C", "{}", None, false).unwrap();
    let (_, cause) = failure(&GrpcProbe::calling(&url, unknown, &[], reach()).unwrap());
    assert!(
        cause.contains("the server does not describe a.B: NOT_FOUND"),
        "{cause}"
    );
}

/// A method of AMQP in its frame.
fn amqp_frame(channel: u16, class: u16, method: u16, arguments: &[u8]) -> Vec<u8> {
    let length = u32::try_from(arguments.len() + 4).unwrap();
    let mut frame = vec![1];
    frame.extend_from_slice(&channel.to_be_bytes());
    frame.extend_from_slice(&length.to_be_bytes());
    frame.extend_from_slice(&class.to_be_bytes());
    frame.extend_from_slice(&method.to_be_bytes());
    frame.extend_from_slice(arguments);
    frame.push(0xce);
    frame
}

/// The answers of `RabbitMQ` to each method of a client, up to `last`.
fn amqp_broker(last: Vec<u8>, count: usize) -> Origin {
    const START: &[u8] = b"\x00\x09\x00\x00\x00\x16\x07productS\x00\x00\x00\x09BrokerOne\x00\x00\x00\x05PLAIN\x00\x00\x00\x05en_US";
    let answers = [
        amqp_frame(0, 10, 10, START),
        amqp_frame(0, 10, 30, &[7, 255, 0, 2, 0, 0, 0, 60]),
        amqp_frame(0, 10, 41, &[0]),
        amqp_frame(1, 20, 11, &[0, 0, 0, 0]),
        last,
    ];
    let mut script = Script::new();
    for answer in answers.into_iter().take(count) {
        script = script.then(Step::ReadBody(1)).then(Step::Write(answer));
    }
    Origin::scripted(script.then(Step::Swallow))
}

#[test]
fn amqp_opens_a_channel_and_counts_the_messages_of_a_queue() {
    let probe = |origin: &Origin, queue: Option<&str>| {
        let url = format!("amqp://ann:secret%20word@{}/shop", origin.address());
        AmqpProbe::new(&url, queue.map(str::to_owned), reach()).unwrap()
    };
    let declared = amqp_frame(1, 50, 11, b"\x04jobs\x00\x00\x00\x07\x00\x00\x00\x02");
    let broker = amqp_broker(declared, 5);
    let reading = read(&probe(&broker, Some("jobs")));
    assert_eq!((&reading.failure, &reading.unmet), (&None, &None));
    let body: Value = serde_json::from_slice(&reading.body).unwrap();
    assert_eq!(body["product"], "BrokerOne");
    assert_eq!(
        (&body["messages"], &body["consumers"]),
        (&json!(7), &json!(2))
    );
    let missing = amqp_frame(
        1,
        20,
        40,
        b"\x01\x94\x17NOT_FOUND - no queue jo\x00\x32\x00\x0a",
    );
    let unmet = read(&probe(&amqp_broker(missing, 5), Some("jo"))).unmet;
    assert_eq!(
        unmet.as_deref(),
        Some("the broker reports: NOT_FOUND - no queue jo (404)")
    );
    let without = read(&probe(&amqp_broker(Vec::new(), 4), None));
    assert_eq!((&without.failure, &without.unmet), (&None, &None));
    let other = lines("220 mail.example\r\n", &[]);
    assert_eq!(failure(&probe(&other, None)).0, FailureKind::Protocol);
}

#[test]
fn rabbitmq_has_a_channel_and_its_queue() {
    let server = PortServer::rabbitmq();
    let probe = |password: &str, path: &str, queue: Option<&str>| {
        let url = format!("amqp://ann:{password}@127.0.0.1:{}/{path}", server.port);
        AmqpProbe::new(&url, queue.map(str::to_owned), reach()).unwrap()
    };
    let reading = read(&probe("secret%20word", "shop", Some("jobs")));
    assert_eq!((&reading.failure, &reading.unmet), (&None, &None));
    let body: Value = serde_json::from_slice(&reading.body).unwrap();
    assert_eq!(body["product"], "RabbitMQ");
    assert_eq!(
        (&body["messages"], &body["consumers"]),
        (&json!(0), &json!(0))
    );
    let without = read(&probe("secret%20word", "shop", None));
    assert_eq!((&without.failure, &without.unmet), (&None, &None));
    for (probe, part) in [
        (
            probe("secret%20word", "shop", Some("other")),
            "no queue 'other'",
        ),
        (probe("wrong", "shop", None), "ACCESS_REFUSED"),
        (
            probe("secret%20word", "other", None),
            "vhost other not found",
        ),
    ] {
        let reading = read(&probe);
        let cause = reading
            .failure
            .as_ref()
            .map(|failure| format!("{failure:?}"));
        let why = reading.unmet.or(cause).unwrap();
        assert!(why.contains(part), "{part}: {why}");
    }
}

/// How servers begin, by the kind of their probe.
const BEGINNINGS: [(&str, &[u8]); 6] = [
    (
        "mysql",
        b"\x4a\0\0\0\x0a5.5.5-10.11\0\x07\0\0\0abcdefgh\0\xfe\xf7\x2d\x02\0\xff\x81\x15\0\0\0\0\0\0\x1d\0\0\0abcdefghijkl\0mysql_native_password\0\x07\0\0\x02\0\0\0\x02\0\0\0\x01\0\0\x01\x01",
    ),
    ("redis", b"*3\r\n$3\r\none\r\n:7\r\n*1\r\n$-1\r\n"),
    ("mqtt", b"\x20\x02\0\0\x90\x03\0\x01\0\x30\x05\0\x01tab"),
    (
        "amqp",
        b"\x01\0\0\0\0\0\x2d\0\x0a\0\x0a\0\x09\0\0\0\x0f\x07productS\0\0\0\x02ab\0\0\0\x05PLAIN\0\0\0\x05en_US\xce\x01\0\0\0\0\0\x0c\0\x0a\0\x1e\x07\xff\0\x02\0\0\0\x3c\xce",
    ),
    ("nats", b"INFO {\"version\":\"2.9\"}\r\nPING\r\n+OK\r\nPONG\r\n"),
    (
        "ldap",
        b"\x30\x0c\x02\x01\x02\x61\x07\x0a\x01\0\x04\0\x04\0\x30\x1a\x02\x01\x03\x64\x15\x04\x04dc=a\x30\x0d\x30\x0b\x04\x02cn\x31\x05\x04\x03Ann",
    ),
];

/// A probe of one of these kinds.
fn probe_of(kind: &str, address: SocketAddr) -> Box<dyn Probe> {
    let url = format!("{kind}://a:b@{address}");
    match kind {
        "mysql" => Box::new(MysqlProbe::new(&url, None, reach()).unwrap()),
        "redis" => {
            Box::new(RedisProbe::new(&format!("redis://{address}"), Vec::new(), reach()).unwrap())
        }
        "mqtt" => Box::new(MqttProbe::new(&url, Some("t".to_owned()), reach()).unwrap()),
        "amqp" => Box::new(AmqpProbe::new(&url, Some("q".to_owned()), reach()).unwrap()),
        "nats" => Box::new(NatsProbe::new(&url, None, reach()).unwrap()),
        _ => Box::new(LdapProbe {
            target: target(address),
            starttls: false,
            login: None,
            search: Some(LdapSearch {
                base: "dc=a".to_owned(),
                scope: LdapScope::Sub,
                filter: "cn=Ann".parse().unwrap(),
                attributes: Vec::new(),
            }),
            reach: reach(),
        }),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Nothing that a server sends before it closes makes a probe panic or wait.
    #[test]
    fn any_answer_of_a_server_ends_in_a_reading(
        kind in 0..BEGINNINGS.len(), cut in 0..120_usize, at in 0..120_usize, byte in any::<u8>(),
        more in proptest::collection::vec(any::<u8>(), 0..40),
    ) {
        let (kind, beginning) = BEGINNINGS[kind];
        let mut answer = beginning.to_vec();
        if let Some(place) = answer.get_mut(at) {
            *place = byte;
        }
        answer.truncate(cut.max(1));
        answer.extend(more);
        let origin = Origin::scripted(Script::new().then(Step::Write(answer)));
        let reading = read(&*probe_of(kind, origin.address()));
        let is_timeout = reading.failure.is_some_and(|failure| failure.kind == FailureKind::Timeout);
        prop_assert!(!is_timeout, "{}", kind);
    }
}
