//! Logins at mail servers.

use plimsoll_model::Secret;
use plimsoll_model::{FailureKind, Phase};
use plimsoll_monitor::probe::{MailSecurity, Reach, ReachOptions, SmtpProbe, TcpTarget};
use plimsoll_testkit::{Authority, MaterialFiles, login_server};
use plimsoll_wire::tls::Trust;

use crate::probes::{options, read};

/// The reading of a login as `ann`, and the commands over TLS.
fn sign_in(
    security: MailSecurity,
    mechanisms: &'static str,
    password: Option<&str>,
) -> (plimsoll_monitor::Reading, Vec<String>) {
    let files = MaterialFiles::new();
    let authority = Authority::new();
    let ca = files.write("ca.pem", &authority.pem());
    let leaf = authority.issue(&["localhost"]);
    let begins_in_clear = security == MailSecurity::StartTls;
    let (address, serving) = login_server(begins_in_clear, mechanisms, leaf.server_config());
    let place = format!("localhost:{}", address.port());
    let reach = Reach::new(ReachOptions {
        trust: Trust::Only(ca),
        ..options()
    });
    let reading = read(&SmtpProbe {
        target: TcpTarget::parse(&place, !begins_in_clear, 0).unwrap(),
        security,
        login: password.map(|password| ("ann".to_owned(), Secret::new(password))),
        reach: reach.unwrap(),
    });
    (reading, serving.join().unwrap())
}

#[test]
fn a_mail_server_is_signed_in_at_over_starttls_and_tls() {
    const HELLO: &str = "EHLO plimsoll.invalid";

    for security in [MailSecurity::StartTls, MailSecurity::Tls] {
        for (mechanisms, login) in [
            ("LOGIN PLAIN", &["AUTH PLAIN AGFubgBzZWNyZXQ="][..]),
            ("XOAUTH2 login", &["AUTH LOGIN", "YW5u", "c2VjcmV0"]),
        ] {
            let (reading, commands) = sign_in(security, mechanisms, Some("secret"));
            assert_eq!(reading.failure, None, "{security:?} {mechanisms}");
            assert!(reading.certificate.is_some());
            for phase in [Phase::Connect, Phase::Tls, Phase::Wait] {
                assert!(reading.phases.get(phase).is_some(), "{security:?} {phase}");
            }
            let body = String::from_utf8_lossy(&reading.body);
            assert!(body.contains("250 SIZE 1000"), "{body}");
            let expected: Vec<_> = [&[HELLO], login, &["QUIT"]].concat();
            assert_eq!(commands, expected);
        }
        let (reading, commands) = sign_in(security, "PLAIN", None);
        assert_eq!(reading.failure, None);
        assert_eq!(commands, [HELLO, "QUIT"], "without a login it ends before");
    }
}

#[test]
fn a_login_that_a_mail_server_refuses_is_the_reason() {
    for (mechanisms, password, expected) in [
        ("PLAIN", "wrong", "535 5.7.8"),
        ("LOGIN", "wrong", "535 5.7.8"),
        ("GSSAPI", "secret", "offers logins by GSSAPI alone"),
        ("", "secret", "offers no login"),
    ] {
        let (reading, _) = sign_in(MailSecurity::StartTls, mechanisms, Some(password));
        let failure = reading.failure.unwrap();
        assert_eq!(failure.kind, FailureKind::UpgradeRefused);
        let cause = failure.cause.unwrap_or_default();
        assert!(cause.contains(expected), "{cause}");
    }
}
