//! Name lookups, against a name server of our own.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use futures_util::future::join_all;
use plimsoll_client::{AddressFamily, ConnectOptions, ProxyRules};
use plimsoll_model::{FailureKind, Phase, Side};
use plimsoll_testkit::{NameServer, Origin, TestProxy};
use plimsoll_wire::SystemClock;

use crate::connecting::{connect, connector, endpoint, phases, run};

/// Long enough that no test outlives it.
const TTL: u32 = 3600;

fn asking(server: &NameServer) -> ConnectOptions {
    ConnectOptions {
        name_servers: vec![server.address()],
        ..ConnectOptions::default()
    }
}

#[test]
fn a_name_has_a_dns_phase() {
    let origin = Origin::hello();
    let server = NameServer::builder()
        .record("a.test", Ipv4Addr::LOCALHOST, TTL)
        .start();
    let connection = connect(
        asking(&server),
        &format!("http://a.test:{}/", origin.port()),
    )
    .unwrap();
    assert_eq!(phases(&connection.phases), [Phase::Dns, Phase::Connect]);
    assert_eq!(connection.peer, Some(origin.address()));
}

#[test]
fn answers_are_kept_as_long_as_their_ttl_says() {
    let origin = Origin::hello();
    let server = NameServer::builder()
        .record("kept.test", Ipv4Addr::LOCALHOST, TTL)
        .record("fleeting.test", Ipv4Addr::LOCALHOST, 0)
        .start();
    run(async {
        let connector = connector(ConnectOptions {
            family: AddressFamily::Ipv4,
            ..asking(&server)
        });
        for name in ["kept", "kept", "fleeting", "fleeting"] {
            let url = format!("http://{name}.test:{}/", origin.port());
            connector
                .connect(&endpoint(&url), &SystemClock)
                .await
                .unwrap();
        }
    });
    assert_eq!(
        server.questions(),
        ["kept.test A", "fleeting.test A", "fleeting.test A"]
    );
}

#[test]
fn a_configured_time_takes_the_place_of_the_ttl() {
    let origin = Origin::hello();
    for (ttl, expected) in [(Duration::ZERO, 2), (Duration::from_hours(1), 1)] {
        let server = NameServer::builder()
            .record(
                "kept.test",
                Ipv4Addr::LOCALHOST,
                if expected == 2 { TTL } else { 0 },
            )
            .start();
        run(async {
            let connector = connector(ConnectOptions {
                family: AddressFamily::Ipv4,
                address_ttl: Some(ttl),
                ..asking(&server)
            });
            let url = format!("http://kept.test:{}/", origin.port());
            for _ in 0..2 {
                connector
                    .connect(&endpoint(&url), &SystemClock)
                    .await
                    .unwrap();
            }
        });
        assert_eq!(server.questions().len(), expected, "{ttl:?}");
    }
}

#[test]
fn connections_opened_together_share_one_lookup() {
    let origin = Origin::hello();
    let server = NameServer::builder()
        .record("a.test", Ipv4Addr::LOCALHOST, TTL)
        .start();
    run(async {
        let connector = connector(asking(&server));
        let target = endpoint(&format!("http://a.test:{}/", origin.port()));
        let attempts = (0..50).map(|_| connector.connect(&target, &SystemClock));
        for outcome in join_all(attempts).await {
            outcome.unwrap();
        }
    });
    let mut questions = server.questions();
    questions.sort();
    assert_eq!(questions, ["a.test A", "a.test AAAA"]);
}

#[test]
fn only_the_wanted_family_is_requested() {
    let server = NameServer::builder()
        .record("a.test", Ipv6Addr::LOCALHOST, TTL)
        .start();
    let error = connect(
        ConnectOptions {
            family: AddressFamily::Ipv4,
            ..asking(&server)
        },
        "http://a.test:1/",
    )
    .unwrap_err();
    assert_eq!(error.failure.kind, FailureKind::NameNotFound);
    assert!(
        server
            .questions()
            .iter()
            .all(|question| question == "a.test A")
    );
}

#[test]
fn an_unknown_name_is_not_found() {
    let server = NameServer::builder().start();
    let error = connect(asking(&server), "http://unknown.test/").unwrap_err();
    assert_eq!(
        error.failure.to_string(),
        "name-not-found during dns: there is no host named `unknown.test`"
    );
    assert_eq!(error.failure.side, Side::Network);
    assert_eq!(phases(&error.phases), []);
}

#[test]
fn a_silent_name_server_is_a_timeout_of_dns() {
    let server = NameServer::builder().silent().start();
    let error = connect(
        ConnectOptions {
            timeout: Some(Duration::from_millis(50)),
            ..asking(&server)
        },
        "http://a.test/",
    )
    .unwrap_err();
    assert_eq!(error.failure.phase, Phase::Dns);
    assert_eq!(error.failure.kind, FailureKind::Timeout);
}

#[test]
fn the_name_of_the_target_is_not_looked_up_when_the_proxy_does_it() {
    let origin = Origin::hello();
    let server = NameServer::builder()
        .record("proxy.test", Ipv4Addr::LOCALHOST, TTL)
        .start();
    let proxy = TestProxy::socks().start();
    let port = proxy.address().port();
    let connection = connect(
        ConnectOptions {
            proxies: ProxyRules::always(format!("socks5h://proxy.test:{port}").parse().unwrap()),
            family: AddressFamily::Ipv4,
            ..asking(&server)
        },
        &format!("http://a.test:{}/", origin.port()),
    )
    .unwrap();
    assert_eq!(phases(&connection.phases), [Phase::Dns, Phase::Connect]);
    assert_eq!(server.questions(), ["proxy.test A"]);
}
