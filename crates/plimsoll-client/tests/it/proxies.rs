//! Each kind of proxy, the request it gets, and what its refusals become.

use std::sync::Arc;

use plimsoll_client::{ConnectFailure, ConnectOptions, ProxyRules, RequestForm};
use plimsoll_model::{Failure, FailureKind, Phase, Side};
use plimsoll_testkit::{
    Authority, MaterialFiles, Origin, ProxyRequest, TestProxy, refused_address,
};
use plimsoll_wire::SystemClock;
use plimsoll_wire::tls::{TlsSettings, Trust};
use rustls::ClientConfig;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::connecting::{connect, connector, endpoint, greet, overrides, phases, run};

fn through(proxy: &str) -> ConnectOptions {
    ConnectOptions {
        proxies: ProxyRules::always(proxy.parse().unwrap()),
        ..ConnectOptions::default()
    }
}

fn trusting(authority: &Authority) -> Arc<ClientConfig> {
    let files = MaterialFiles::new();
    TlsSettings {
        trust: Trust::Only(files.write("ca.pem", &authority.pem())),
        ..TlsSettings::default()
    }
    .compile()
    .unwrap()
}

/// Asks for `url` through the connection of `options` and expects a hello.
fn greeted(options: ConnectOptions, url: &str) -> Vec<Phase> {
    run(async {
        let connector = connector(options);
        let mut connection = connector
            .connect(&endpoint(url), &SystemClock)
            .await
            .unwrap_or_else(|error| panic!("{url}: {error}"));
        greet(&mut connection.stream).await;
        phases(&connection.phases)
    })
}

fn failure(options: ConnectOptions, url: &str) -> Failure {
    let ConnectFailure { failure, .. } = connect(options, url).unwrap_err();
    assert_eq!(failure.phase, Phase::Connect, "{failure}");
    failure
}

fn request(how: &str, target: impl Into<String>, credentials: Option<&str>) -> ProxyRequest {
    ProxyRequest {
        how: how.to_owned(),
        target: target.into(),
        credentials: credentials.map(str::to_owned),
    }
}

#[test]
fn https_goes_through_a_tunnel() {
    let authority = Authority::new();
    let origin = Origin::builder()
        .tls(authority.issue(&["a.test"]).server_config())
        .start();
    let proxy = TestProxy::http().require("user", "p w").start();
    let port = origin.port();
    let options = ConnectOptions {
        tls: Some(trusting(&authority)),
        ..through(&format!("http://user:p%20w@{}", proxy.address()))
    };
    let done = greeted(options, &format!("https://a.test:{port}/"));
    assert_eq!(done, [Phase::Connect, Phase::Tls]);
    assert_eq!(
        proxy.requests(),
        [request(
            "CONNECT",
            format!("a.test:{port}"),
            Some("Basic dXNlcjpwIHc=")
        )]
    );
}

#[test]
fn the_proxy_may_itself_be_behind_tls() {
    let authority = Authority::new();
    let origin = Origin::builder()
        .tls(authority.issue(&["a.test"]).server_config())
        .start();
    let proxy = TestProxy::http()
        .tls(authority.issue(&["127.0.0.1"]).server_config())
        .start();
    let options = ConnectOptions {
        tls: Some(trusting(&authority)),
        proxy_tls: Some(trusting(&authority)),
        ..through(&format!("https://{}", proxy.address()))
    };
    let url = format!("https://a.test:{}/", origin.port());
    assert_eq!(greeted(options, &url), [Phase::Connect, Phase::Tls]);

    let wary = ConnectOptions {
        tls: Some(trusting(&authority)),
        proxy_tls: Some(trusting(&Authority::new())),
        ..through(&format!("https://{}", proxy.address()))
    };
    let failure = failure(wary, &url);
    assert_eq!(failure.kind, FailureKind::CertificateUntrusted);
    assert!(
        failure
            .cause
            .unwrap()
            .starts_with("proxy https://127.0.0.1:")
    );
}

#[test]
fn http_is_requested_in_absolute_form() {
    let origin = Origin::hello();
    let proxy = TestProxy::http().start();
    let url = format!("http://a.test:{}/x", origin.port());
    run(async {
        let connector = connector(through(&proxy.address().to_string()));
        let target = endpoint(&url);
        let mut connection = connector.connect(&target, &SystemClock).await.unwrap();
        assert_eq!(connection.peer, Some(proxy.address()));
        assert!(matches!(
            connector.plan().request_form(&target),
            RequestForm::Absolute { .. }
        ));
        connection
            .stream
            .write_all(format!("GET {target} HTTP/1.1\r\nhost: a.test\r\n\r\n").as_bytes())
            .await
            .unwrap();
        let mut status = [0; 12];
        connection.stream.read_exact(&mut status).await.unwrap();
        assert_eq!(&status, b"HTTP/1.1 200");
    });
    assert_eq!(proxy.requests(), [request("GET", url, None)]);
}

#[test]
fn socks_proxies_are_given_a_name_or_an_address() {
    let origin = Origin::hello();
    let port = origin.port();
    for (scheme, version, target) in [
        ("socks5h", "SOCKS5", "a.test"),
        ("socks5", "SOCKS5", "127.0.0.1"),
        ("socks4a", "SOCKS4", "a.test"),
        ("socks4", "SOCKS4", "127.0.0.1"),
    ] {
        let proxy = TestProxy::socks().start();
        let options = ConnectOptions {
            overrides: overrides(&[&format!("a.test:{port}:127.0.0.1")]),
            ..through(&format!("{scheme}://{}", proxy.address()))
        };
        let done = greeted(options, &format!("http://a.test:{port}/"));
        assert_eq!(done, [Phase::Connect], "{scheme}");
        assert_eq!(
            proxy.requests(),
            [request(version, format!("{target}:{port}"), None)],
            "{scheme}"
        );
    }
}

#[test]
fn socks_5_takes_credentials() {
    let origin = Origin::hello();
    let url = format!("http://a.test:{}/", origin.port());
    let proxy = TestProxy::socks().require("user", "secret").start();
    let with = |credentials: &str| through(&format!("socks5h://{credentials}{}", proxy.address()));
    greeted(with("user:secret@"), &url);
    assert_eq!(
        proxy.requests(),
        [request(
            "SOCKS5",
            format!("a.test:{}", origin.port()),
            Some("user:secret")
        )]
    );
    for wrong in ["user:wrong@", ""] {
        let failure = failure(with(wrong), &url);
        assert_eq!(failure.kind, FailureKind::Refused, "{failure}");
        assert_eq!(failure.side, Side::Config, "{failure}");
    }
}

#[test]
fn what_a_proxy_cannot_reach_is_refused() {
    let target = refused_address();
    let authority = Authority::new();
    let http = TestProxy::http().start();
    let refused = failure(
        ConnectOptions {
            tls: Some(trusting(&authority)),
            ..through(&http.address().to_string())
        },
        &format!("https://{target}/"),
    );
    assert_eq!(
        (refused.kind, refused.side),
        (FailureKind::Refused, Side::Network)
    );
    assert_eq!(
        refused.cause.unwrap(),
        format!(
            "proxy http://{} answered CONNECT with 502 Bad Gateway",
            http.address()
        )
    );

    let socks = TestProxy::socks().start();
    for scheme in ["socks5", "socks4"] {
        let refused = failure(
            through(&format!("{scheme}://{}", socks.address())),
            &format!("http://{target}/"),
        );
        assert_eq!(refused.kind, FailureKind::Refused, "{refused}");
    }
}

#[test]
fn answers_of_http_proxies_become_failures() {
    let tls = trusting(&Authority::new());
    let fails = |proxy: &TestProxy| {
        failure(
            ConnectOptions {
                tls: Some(tls.clone()),
                ..through(&proxy.address().to_string())
            },
            "https://a.test/",
        )
    };
    let answering = |bytes: &[u8]| TestProxy::http().answer(bytes).start();

    let failure = fails(&TestProxy::http().require("user", "secret").start());
    assert_eq!(
        (failure.kind, failure.side),
        (FailureKind::Refused, Side::Config)
    );
    assert!(failure.cause.unwrap().ends_with(
        "answered CONNECT with 407 Proxy Authentication Required; give a user and password in \
         the proxy's URL"
    ));

    for (answer, kind) in [
        (
            b"HTTP/1.1 403 Forbidden\r\n\r\n".to_vec(),
            FailureKind::Refused,
        ),
        (
            b"HTTP/1.1 504 Gateway Timeout\r\n\r\n".to_vec(),
            FailureKind::Timeout,
        ),
        (b"SSH-2.0-OpenSSH_9\r\n".to_vec(), FailureKind::Protocol),
        (
            b"HTTP/1.1 200 OK\r\n\r\nearly".to_vec(),
            FailureKind::Protocol,
        ),
        (b"HTTP/1.1 200".to_vec(), FailureKind::Closed),
        (Vec::new(), FailureKind::Closed),
        (
            [b"HTTP/1.1 200 OK\r\nx: ".as_slice(), &vec![b'x'; 20_000]].concat(),
            FailureKind::TooLarge,
        ),
    ] {
        let failure = fails(&answering(&answer));
        assert_eq!(failure.kind, kind, "{failure}");
    }
}

#[test]
fn a_proxy_that_is_not_there_is_named() {
    let address = refused_address();
    let failure = failure(through(&address.to_string()), "http://a.test/");
    assert_eq!(failure.kind, FailureKind::Refused);
    assert!(
        failure
            .cause
            .unwrap()
            .starts_with(&format!("proxy http://{address}: "))
    );
}

#[test]
fn an_exempt_target_is_reached_directly() {
    let origin = Origin::hello();
    let proxy = TestProxy::http().start();
    let options = ConnectOptions {
        proxies: ProxyRules::always(proxy.address().to_string().parse().unwrap())
            .except("127.0.0.0/8".parse().unwrap()),
        ..ConnectOptions::default()
    };
    greeted(options, &origin.url("/"));
    assert!(proxy.requests().is_empty());
}
