//! Each way in which a certificate can be wrong, by its name; trust and client certificates.

use std::sync::Arc;
use std::time::Duration;

use plimsoll_client::{ConnectFailure, ConnectOptions, Connection, Stream};
use plimsoll_model::{FailureKind, Phase, Retry, Side};
use plimsoll_testkit::{Authority, Leaf, MaterialFiles, Origin, Script, Step};
use plimsoll_wire::SystemClock;
use plimsoll_wire::tls::{self, IdentityFiles, TlsSettings, Trust};
use rustls::{ClientConfig, HandshakeKind, ServerConfig};
use tokio::io::AsyncReadExt as _;

use crate::connecting::{connect, connector, endpoint, greet, overrides, phases, run};

fn serve(config: ServerConfig) -> Origin {
    Origin::builder().tls(config).start()
}

pub(crate) fn trusting(pem: &str) -> Arc<ClientConfig> {
    let files = MaterialFiles::new();
    compile(TlsSettings {
        trust: Trust::Only(files.write("roots.pem", pem)),
        ..TlsSettings::default()
    })
}

fn compile(settings: TlsSettings) -> Arc<ClientConfig> {
    TlsSettings {
        alpn: vec![b"http/1.1".to_vec()],
        ..settings
    }
    .compile()
    .unwrap()
}

fn attempt(origin: &Origin, tls: Arc<ClientConfig>) -> Result<Connection, ConnectFailure> {
    connect(
        ConnectOptions {
            tls: Some(tls),
            ..ConnectOptions::default()
        },
        &origin.url("/"),
    )
}

#[test]
fn a_trusted_certificate_is_accepted_for_an_address() {
    let authority = Authority::new();
    let origin = serve(authority.issue(&["127.0.0.1"]).server_config());
    let connection = attempt(&origin, trusting(&authority.pem())).unwrap();
    assert_eq!(phases(&connection.phases), [Phase::Connect, Phase::Tls]);
    assert_eq!(connection.alpn.as_deref(), Some(b"http/1.1".as_slice()));
    assert!(matches!(connection.stream, Stream::Tls(_)));
}

#[test]
fn a_trusted_certificate_is_accepted_for_a_name() {
    let authority = Authority::new();
    let origin = serve(authority.issue(&["a.test"]).server_config());
    let port = origin.port();
    run(async {
        let connector = connector(ConnectOptions {
            tls: Some(trusting(&authority.pem())),
            overrides: overrides(&[&format!("*:{port}:127.0.0.1")]),
            ..ConnectOptions::default()
        });
        let mut connection = connector
            .connect(&endpoint(&format!("https://a.test:{port}/")), &SystemClock)
            .await
            .unwrap();
        greet(&mut connection.stream).await;
    });
}

#[test]
fn certificates_fail_by_name() {
    let authority = Authority::new();
    let stranger = Authority::new();
    let names = &["127.0.0.1"];
    for (leaf, kind) in [
        (authority.issue_expired(names), "certificate-expired"),
        (authority.issue_not_yet_valid(names), "certificate-expired"),
        (stranger.issue(names), "certificate-untrusted"),
        (authority.issue(&["b.test"]), "certificate-hostname"),
        (authority.issue(&["127.0.0.2"]), "certificate-hostname"),
        (Leaf::self_signed(names), "certificate-selfsigned"),
        (Leaf::self_signed_authority(names), "certificate-selfsigned"),
        (authority.issue_for_client("127.0.0.1"), "certificate-other"),
    ] {
        let origin = serve(leaf.server_config());
        let error = attempt(&origin, trusting(&authority.pem())).unwrap_err();
        let failure = error.failure;
        assert_eq!(failure.kind.name(), kind, "{failure}");
        assert_eq!(failure.phase, Phase::Tls);
        assert_eq!(failure.retry, Retry::Safe);
        assert!(failure.cause.is_some());
        assert_eq!(phases(&error.phases), [Phase::Connect]);
    }
}

#[test]
fn public_roots_do_not_trust_a_test() {
    let origin = serve(Authority::new().issue(&["127.0.0.1"]).server_config());
    let error = attempt(&origin, compile(TlsSettings::default())).unwrap_err();
    assert_eq!(error.failure.kind, FailureKind::CertificateUntrusted);
}

#[test]
fn a_self_signed_certificate_can_be_trusted_by_itself() {
    for leaf in [
        Leaf::self_signed(&["127.0.0.1"]),
        Leaf::self_signed_authority(&["127.0.0.1"]),
    ] {
        let origin = serve(leaf.server_config());
        attempt(&origin, trusting(leaf.pem())).unwrap();
    }
    let leaf = Leaf::self_signed_authority(&["b.test"]);
    let origin = serve(leaf.server_config());
    let error = attempt(&origin, trusting(leaf.pem())).unwrap_err();
    assert_eq!(error.failure.kind, FailureKind::CertificateHostname);
}

#[test]
fn insecure_takes_every_certificate() {
    let authority = Authority::new();
    for leaf in [
        authority.issue_expired(&["b.test"]),
        Leaf::self_signed(&["b.test"]),
        Leaf::self_signed_authority(&["b.test"]),
    ] {
        let origin = serve(leaf.server_config());
        let insecure = compile(TlsSettings {
            trust: Trust::Anyone,
            ..TlsSettings::default()
        });
        attempt(&origin, insecure).unwrap();
    }
}

#[test]
fn insecure_still_wants_the_key_of_the_certificate() {
    let authority = Authority::new();
    let shown = authority.issue(&["127.0.0.1"]);
    let used = authority.issue(&["127.0.0.1"]);
    let origin = serve(shown.server_config_signing_as(&used));
    let insecure = compile(TlsSettings {
        trust: Trust::Anyone,
        ..TlsSettings::default()
    });
    let error = attempt(&origin, insecure).unwrap_err();
    assert_eq!(error.failure.phase, Phase::Tls, "{error}");
    assert_eq!(error.failure.kind, FailureKind::CertificateUntrusted);
}

/// The handshakes of two connections of one worker.
fn handshakes(full_handshakes: bool) -> [Option<HandshakeKind>; 2] {
    let authority = Authority::new();
    let origin = serve(authority.issue(&["127.0.0.1"]).server_config());
    let target = endpoint(&origin.url("/"));
    run(async {
        let connector = connector(ConnectOptions {
            tls: Some(trusting(&authority.pem())),
            full_handshakes,
            ..ConnectOptions::default()
        });
        let mut kinds = [None; 2];
        for kind in &mut kinds {
            let mut connection = connector.connect(&target, &SystemClock).await.unwrap();
            // The session's ticket comes with the first answer.
            greet(&mut connection.stream).await;
            let Stream::Tls(stream) = &connection.stream else {
                panic!("an https:// target has TLS");
            };
            *kind = stream.get_ref().1.handshake_kind();
        }
        kinds
    })
}

#[test]
fn sessions_are_resumed_among_the_connections_of_a_worker() {
    let full = Some(HandshakeKind::Full);
    let resumed = Some(HandshakeKind::Resumed);
    assert_eq!(handshakes(false), [full, resumed]);
    assert_eq!(handshakes(true), [full, full]);
}

#[test]
fn a_connection_lost_in_the_handshake_is_reported_as_it_was() {
    for (last, kind) in [
        (Step::Reset, FailureKind::Reset),
        (Step::FinishWriting, FailureKind::Closed),
    ] {
        let origin = Origin::scripted(Script::new().then(Step::ReadBody(64)).then(last));
        let error = connect(
            ConnectOptions {
                tls: Some(trusting(&Authority::new().pem())),
                ..ConnectOptions::default()
            },
            &format!("https://{}/", origin.address()),
        )
        .unwrap_err();
        assert_eq!(error.failure.kind, kind, "{error}");
        assert_eq!(error.failure.phase, Phase::Tls);
    }
}

#[test]
fn an_https_target_without_settings_is_a_mistake_of_ours() {
    let origin = Origin::hello();
    let error = connect(
        ConnectOptions::default(),
        &format!("https://{}/", origin.address()),
    )
    .unwrap_err();
    assert_eq!(error.failure.side, Side::Config);
}

#[test]
fn a_client_certificate_is_shown_and_missed() {
    let authority = Authority::new();
    let server = authority.issue(&["127.0.0.1"]);
    let client = authority.issue_for_client("client.test");
    let files = MaterialFiles::new();
    let trust = Trust::Only(files.write("ca.pem", &authority.pem()));
    let certificate = files.write("client.pem", client.pem());
    let key = files.write("client.key", client.key_pem());
    let both = files.write("both.pem", &format!("{}{}", client.pem(), client.key_pem()));

    let origin = serve(server.server_config_for_clients_of(&authority));
    let url = origin.url("/");
    let options = |identity| ConnectOptions {
        tls: Some(compile(TlsSettings {
            trust: trust.clone(),
            identity,
            ..TlsSettings::default()
        })),
        ..ConnectOptions::default()
    };
    for (certificate, key) in [(certificate, Some(key)), (both, None)] {
        run(async {
            let connector = connector(options(Some(IdentityFiles { certificate, key })));
            let mut connection = connector
                .connect(&endpoint(&url), &SystemClock)
                .await
                .unwrap();
            greet(&mut connection.stream).await;
        });
    }
    // Under TLS 1.3 the server's refusal comes after our side of the handshake is done.
    run(async {
        let connector = connector(options(None));
        let mut connection = connector
            .connect(&endpoint(&url), &SystemClock)
            .await
            .unwrap();
        let error = connection.stream.read(&mut [0; 16]).await.unwrap_err();
        let failure = tls::failure(Phase::Wait, &error);
        assert_eq!(failure.kind, FailureKind::Protocol);
        assert!(
            failure
                .cause
                .as_deref()
                .unwrap()
                .contains("CertificateRequired"),
            "{failure}"
        );
    });
}

#[test]
fn a_server_without_tls_is_distinguished_from_a_bad_one() {
    let origin = Origin::scripted(
        Script::new()
            .then(Step::Write(b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec()))
            .then(Step::Swallow),
    );
    let error = connect(
        ConnectOptions {
            tls: Some(trusting(&Authority::new().pem())),
            ..ConnectOptions::default()
        },
        &format!("https://{}/", origin.address()),
    )
    .unwrap_err();
    assert_eq!(error.failure.kind, FailureKind::Protocol);
    assert_eq!(error.failure.phase, Phase::Tls);
    assert!(error.failure.cause.unwrap().contains("plain HTTP"));
}

#[test]
fn a_server_that_never_shakes_hands_is_a_timeout_of_tls() {
    let origin = Origin::silent();
    let error = connect(
        ConnectOptions {
            tls: Some(trusting(&Authority::new().pem())),
            timeout: Some(Duration::from_millis(50)),
            ..ConnectOptions::default()
        },
        &format!("https://{}/", origin.address()),
    )
    .unwrap_err();
    assert_eq!(error.failure.kind, FailureKind::Timeout);
    assert_eq!(error.failure.phase, Phase::Tls);
    assert_eq!(phases(&error.phases), [Phase::Connect]);
}

#[test]
fn tls_runs_over_a_unix_socket() {
    let authority = Authority::new();
    let files = MaterialFiles::new();
    let origin = Origin::builder()
        .unix(files.path("socket"))
        .tls(authority.issue(&["localhost"]).server_config())
        .start();
    let connection = connect(
        ConnectOptions {
            unix_socket: Some(files.path("socket")),
            tls: Some(trusting(&authority.pem())),
            ..ConnectOptions::default()
        },
        &origin.url("/"),
    )
    .unwrap();
    assert_eq!(phases(&connection.phases), [Phase::Connect, Phase::Tls]);
}
