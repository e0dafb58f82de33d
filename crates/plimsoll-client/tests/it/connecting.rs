//! Phases, addresses, refusals and time limits of connections in the clear.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::time::Duration;

use plimsoll_client::{
    ConnectFailure, ConnectOptions, ConnectPlan, Connection, Connector, Endpoint, Overrides, Stream,
};
use plimsoll_model::{Clock, FailureKind, Phase, Phases, Retry, Side};
use plimsoll_testkit::{
    FullBacklog, HELLO, MaterialFiles, Origin, VirtualClock, ipv6_available, refused_address, until,
};
use plimsoll_wire::SystemClock;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

pub(crate) fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(future)
}

pub(crate) fn connector(options: ConnectOptions) -> Connector {
    Connector::new(Arc::new(ConnectPlan::new(options).unwrap()))
}

pub(crate) fn endpoint(url: &str) -> Endpoint {
    Endpoint::parse(url).unwrap()
}

pub(crate) fn overrides(list: &[&str]) -> Overrides {
    Overrides::new(list.iter().map(|text| text.parse().unwrap()).collect())
}

pub(crate) fn connect(options: ConnectOptions, url: &str) -> Result<Connection, ConnectFailure> {
    run(connector(options).connect(&endpoint(url), &SystemClock))
}

pub(crate) fn phases(phases: &Phases) -> Vec<Phase> {
    phases.iter().map(|(phase, _)| phase).collect()
}

/// Sends a request and reads the answer of an origin that says hello.
pub(crate) async fn greet(stream: &mut Stream) {
    stream
        .write_all(b"GET / HTTP/1.1\r\nhost: a.test\r\n\r\n")
        .await
        .unwrap();
    stream.flush().await.unwrap();
    let mut answer = vec![0; HELLO.len()];
    stream.read_exact(&mut answer).await.unwrap();
    assert_eq!(answer, HELLO);
}

#[test]
fn an_address_needs_no_dns_and_a_clear_connection_no_tls() {
    let origin = Origin::hello();
    run(async {
        let connector = connector(ConnectOptions::default());
        let mut connection = connector
            .connect(&endpoint(&origin.url("/")), &SystemClock)
            .await
            .unwrap();
        assert_eq!(phases(&connection.phases), [Phase::Connect]);
        assert_eq!(connection.peer, Some(origin.address()));
        assert!(connection.stream.local_addr().unwrap().ip().is_loopback());
        assert_eq!(connection.alpn, None);
        assert!(matches!(connection.stream, Stream::Tcp(_)));
        greet(&mut connection.stream).await;
    });
    assert_eq!(origin.requests(), 1);
}

#[test]
fn a_name_given_by_hand_needs_no_dns() {
    let origin = Origin::hello();
    let port = origin.port();
    let connection = connect(
        ConnectOptions {
            overrides: overrides(&[&format!("a.test:{port}:127.0.0.1")]),
            ..ConnectOptions::default()
        },
        &format!("http://a.test:{port}/"),
    )
    .unwrap();
    assert_eq!(phases(&connection.phases), [Phase::Connect]);
}

#[test]
fn localhost_needs_no_name_server_and_reaches_an_ipv4_listener() {
    let origin = Origin::hello();
    run(async {
        let connector = connector(ConnectOptions::default());
        for _ in 0..2 {
            let connection = connector
                .connect(
                    &endpoint(&format!("http://localhost:{}/", origin.port())),
                    &SystemClock,
                )
                .await
                .unwrap();
            assert_eq!(connection.peer, Some(origin.address()));
        }
    });
}

#[test]
fn ipv6_is_reached_where_there_is_one() {
    if !ipv6_available() {
        return;
    }
    let origin = Origin::builder().address(Ipv6Addr::LOCALHOST).start();
    let connection = connect(ConnectOptions::default(), &origin.url("/")).unwrap();
    assert_eq!(connection.peer, Some(origin.address()));
}

#[test]
fn a_unix_socket_stands_for_any_host() {
    let files = MaterialFiles::new();
    let origin = Origin::builder().unix(files.path("socket")).start();
    run(async {
        let connector = connector(ConnectOptions {
            unix_socket: Some(files.path("socket")),
            ..ConnectOptions::default()
        });
        let mut connection = connector
            .connect(&endpoint("http://a.test/"), &SystemClock)
            .await
            .unwrap();
        assert_eq!(phases(&connection.phases), [Phase::Connect]);
        assert_eq!(
            (connection.peer, connection.stream.local_addr()),
            (None, None)
        );
        greet(&mut connection.stream).await;
    });
    assert_eq!(origin.requests(), 1);
}

#[test]
fn a_missing_unix_socket_is_named() {
    let files = MaterialFiles::new();
    let error = connect(
        ConnectOptions {
            unix_socket: Some(files.path("nothing.sock")),
            ..ConnectOptions::default()
        },
        "http://a.test/",
    )
    .unwrap_err();
    assert_eq!(error.failure.kind, FailureKind::Refused);
    assert!(error.failure.cause.unwrap().contains("nothing.sock"));
}

#[test]
fn a_refused_port_is_refused() {
    let address = refused_address();
    let error = connect(ConnectOptions::default(), &format!("http://{address}/")).unwrap_err();
    let failure = error.failure;
    assert_eq!(failure.phase, Phase::Connect);
    assert_eq!(failure.kind, FailureKind::Refused);
    assert_eq!(failure.side, Side::Theirs);
    assert_eq!(failure.retry, Retry::Safe);
    assert!(failure.cause.unwrap().starts_with(&address.to_string()));
    assert_eq!(phases(&error.phases), []);
}

#[test]
fn the_source_address_is_used() {
    let origin = Origin::hello();
    let source = IpAddr::from(Ipv4Addr::new(127, 0, 0, 3));
    let connection = connect(
        ConnectOptions {
            source: Some(source),
            ..ConnectOptions::default()
        },
        &origin.url("/"),
    )
    .unwrap();
    assert_eq!(connection.stream.local_addr().unwrap().ip(), source);
}

#[test]
fn a_source_address_that_is_not_ours_is_our_fault() {
    let origin = Origin::hello();
    // TEST-NET-1 (RFC 5737) is no machine's address; nothing is sent.
    let error = connect(
        ConnectOptions {
            source: Some(Ipv4Addr::new(192, 0, 2, 1).into()),
            ..ConnectOptions::default()
        },
        &origin.url("/"),
    )
    .unwrap_err();
    assert_eq!(error.failure.kind, FailureKind::ResourceLimit);
    assert_eq!(error.failure.side, Side::Ours);
}

#[test]
fn a_dead_address_before_a_good_one_costs_a_quarter_second_at_most() {
    let origin = Origin::hello();
    let port = origin.port();
    let dead = FullBacklog::bind(Ipv4Addr::new(127, 0, 0, 2).into(), port);
    let connection = connect(
        ConnectOptions {
            overrides: overrides(&[&format!("a.test:{port}:127.0.0.2,127.0.0.1")]),
            ..ConnectOptions::default()
        },
        &format!("http://a.test:{port}/"),
    )
    .unwrap();
    assert_eq!(connection.peer, Some(origin.address()));
    drop(dead);
}

#[test]
fn a_refusing_address_before_a_good_one_is_passed_over() {
    let origin = Origin::hello();
    let port = origin.port();
    let connection = connect(
        ConnectOptions {
            overrides: overrides(&[&format!("a.test:{port}:127.0.0.5,127.0.0.6,127.0.0.1")]),
            ..ConnectOptions::default()
        },
        &format!("http://a.test:{port}/"),
    )
    .unwrap();
    assert_eq!(connection.peer, Some(origin.address()));
}

#[test]
fn a_connection_that_takes_too_long_is_a_timeout_of_its_phase() {
    let dead = FullBacklog::bind(Ipv4Addr::LOCALHOST.into(), 0);
    let error = connect(
        ConnectOptions {
            timeout: Some(Duration::from_millis(50)),
            ..ConnectOptions::default()
        },
        &format!("http://{}/", dead.address()),
    )
    .unwrap_err();
    assert_eq!(error.failure.phase, Phase::Connect);
    assert_eq!(error.failure.kind, FailureKind::Timeout);
    assert!(
        error
            .failure
            .cause
            .unwrap()
            .starts_with("not connected to 127.0.0.1:")
    );
}

#[test]
fn phases_are_measured_by_the_clock_that_is_given() {
    /// Each reading is one millisecond later than the one before.
    #[derive(Debug)]
    struct Ticking(VirtualClock);

    impl Clock for Ticking {
        fn now(&self) -> std::time::Instant {
            self.0.advance(Duration::from_millis(1));
            self.0.now()
        }

        fn wall(&self) -> std::time::SystemTime {
            self.0.wall()
        }
    }

    let origin = Origin::hello();
    let clock = Ticking(VirtualClock::new());
    let connection =
        run(connector(ConnectOptions::default()).connect(&endpoint(&origin.url("/")), &clock))
            .unwrap();
    assert_eq!(
        connection.phases.get(Phase::Connect),
        Some(Duration::from_millis(1))
    );
}

#[test]
fn an_abandoned_attempt_leaves_no_connection() {
    let origin = Origin::hello();
    run(async {
        let connector = connector(ConnectOptions::default());
        let connection = connector
            .connect(&endpoint(&origin.url("/")), &SystemClock)
            .await
            .unwrap();
        until(|| origin.open_connections() == 1).await;
        drop(connection);
        until(|| origin.open_connections() == 0).await;
    });
}
