//! Every probe against a real server: up, down, and too slow.

use std::net::{SocketAddr, TcpListener};
use std::thread;
use std::time::Duration;

use plimsoll_client::AddressFilter;
use plimsoll_model::{FailureKind, GrpcStatus, Phase};
use plimsoll_monitor::Reading;
use plimsoll_monitor::probe::{
    DnsProbe, DnsRecord, DomainProbe, GrpcProbe, HttpOptions, HttpProbe, MailProtocol, Probe,
    ProbeContext, Reach, ReachOptions, SshProbe, StartTlsProbe, TalkProbe, TalkStep, TcpProbe,
    TcpTarget, TlsProbe, UdpProbe, WebSocketProbe,
};
use plimsoll_testkit::{
    Authority, Leaf, MaterialFiles, NameServer, Origin, Script, Step, WebSocketOrigin,
    refused_address, starttls_server,
};
use plimsoll_wire::tls::Trust;
use tokio::sync::oneshot;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic_health::ServingStatus;

pub(crate) fn options() -> ReachOptions {
    ReachOptions {
        timeout: Duration::from_secs(5),
        ..ReachOptions::default()
    }
}

pub(crate) fn reach() -> Reach {
    Reach::new(options()).unwrap()
}

pub(crate) fn impatient() -> Reach {
    Reach::new(ReachOptions {
        timeout: Duration::from_millis(50),
        ..ReachOptions::default()
    })
    .unwrap()
}

pub(crate) fn read(probe: &dyn Probe) -> Reading {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let context = ProbeContext::new();
        probe.check(&context).await
    })
}

/// The failure of a reading that has one.
#[track_caller]
pub(crate) fn failure(probe: &dyn Probe) -> (FailureKind, String) {
    let reading = read(probe);
    let failure = reading.failure.expect("it fails");
    (failure.kind, failure.cause.unwrap_or_default())
}

pub(crate) fn target(address: impl std::fmt::Display) -> TcpTarget {
    TcpTarget::parse(&address.to_string(), false, 0).unwrap()
}

pub(crate) fn http(url: &str, reach: Reach) -> HttpProbe {
    HttpProbe::new(request(url), reach).unwrap()
}

pub(crate) fn request(url: &str) -> HttpOptions {
    HttpOptions {
        url: url.to_owned(),
        method: "GET".to_owned(),
        fields: Vec::new(),
        body: None,
        basic_auth: None,
        redirects: 5,
        keeps_body: true,
        http2: false,
        agent: "test".to_owned(),
    }
}

/// A server that says `greeting`, and answers each line with the next of `answers`.
pub(crate) fn lines(greeting: &str, answers: &[&str]) -> Origin {
    let mut script = Script::new().then(Step::Write(greeting.into()));
    for answer in answers {
        // Commands of mail servers end in a line, not in the empty one of HTTP.
        script = script
            .then(Step::ReadBody(1))
            .then(Step::Write((*answer).into()));
    }
    Origin::scripted(script.then(Step::Swallow))
}

#[test]
fn http_finds_status_body_fields_and_phases() {
    let answer = b"HTTP/1.1 404 Not Found\r\nX-One: 1\r\ncontent-length: 3\r\n\r\nabc";
    let origin = Origin::scripted(Script::serve(&answer[..]));
    let reading = read(&http(&origin.url("/x?y"), reach()));
    assert_eq!(reading.failure, None);
    assert_eq!(
        (reading.code, &reading.body[..], reading.size),
        (Some(404), &b"abc"[..], 3)
    );
    assert_eq!(reading.field("x-one"), Some(&b"1"[..]));
    for phase in [Phase::Connect, Phase::Send, Phase::Wait, Phase::Receive] {
        assert!(reading.phases.get(phase).is_some(), "{phase}");
    }
    assert!(origin.heads()[0].starts_with("GET /x?y HTTP/1.1\r\n"));
    assert!(origin.heads()[0].contains("user-agent: test\r\n"));
    let (kind, _) = failure(&http(&format!("http://{}/", refused_address()), reach()));
    assert_eq!(kind, FailureKind::Refused);
    let (kind, _) = failure(&http(&Origin::silent().url("/"), impatient()));
    assert_eq!(kind, FailureKind::Timeout);
}

#[test]
fn http_opens_a_connection_for_each_check() {
    let origin = Origin::hello();
    let probe = http(&origin.url("/"), reach());
    for _ in 0..3 {
        assert_eq!(read(&probe).code, Some(200));
    }
    assert_eq!(origin.connections(), 3);
}

#[test]
fn redirects_are_followed_and_each_hop_passes_the_address_filter() {
    let last = Origin::hello();
    let answer = format!(
        "HTTP/1.1 302 Found\r\nlocation: {}\r\ncontent-length: 0\r\n\r\n",
        last.url("/end")
    );
    let first = Origin::scripted(Script::serve(answer));
    let reading = read(&http(&first.url("/"), reach()));
    assert_eq!(
        (reading.code, &reading.body[..]),
        (Some(200), &b"hello"[..])
    );
    assert!(last.heads()[0].starts_with("GET /end "));
    let port = first.port();
    let filtered = Reach::new(ReachOptions {
        filter: Some(AddressFilter::new(move |address| address.port() == port)),
        ..options()
    });
    let (kind, cause) = failure(&http(&first.url("/"), filtered.unwrap()));
    assert_eq!(kind, FailureKind::Refused);
    assert!(cause.contains("not allowed"), "{cause}");
    assert_eq!(last.connections(), 1, "the second hop was not connected to");
    let public = Reach::new(ReachOptions {
        filter: Some(AddressFilter::public()),
        ..options()
    });
    let (_, cause) = failure(&http(&first.url("/"), public.unwrap()));
    assert!(cause.contains("127.0.0.1"), "{cause}");
    // One that leads to itself ends.
    let round = Origin::scripted(Script::serve(
        &b"HTTP/1.1 302 Found\r\nlocation: /\r\ncontent-length: 0\r\n\r\n"[..],
    ));
    let (_, cause) = failure(&http(&round.url("/"), reach()));
    assert!(cause.contains('5'), "{cause}");
}

#[test]
fn hostile_answers_are_bounded() {
    let endless = Script::new()
        .then(Step::ReadHead)
        .then(Step::Write(
            b"HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\n".to_vec(),
        ))
        .then(Step::Write(vec![b'x'; 4_000_000]))
        .then(Step::Write(vec![b'x'; 14_000_000]));
    let reading = read(&http(&Origin::scripted(endless).url("/"), reach()));
    assert_eq!(
        reading.failure.map(|failure| failure.kind),
        Some(FailureKind::TooLarge)
    );
    let head = format!("HTTP/1.1 200 OK\r\nx: {}\r\n\r\n", "y".repeat(2_000_000));
    let (kind, _) = failure(&http(
        &Origin::scripted(Script::answer_once(head)).url("/"),
        reach(),
    ));
    assert_eq!(kind, FailureKind::TooLarge);
}

#[test]
fn tcp_connects_and_reads_an_answer() {
    let origin = lines("hello there", &[]);
    let probe = |send: Option<&str>, address: String, reach| TcpProbe {
        target: target(address),
        send: send.map(|text| text.as_bytes().to_vec()),
        reach,
    };
    let reading = read(&probe(None, origin.address().to_string(), reach()));
    assert!(reading.connected && reading.failure.is_none());
    let reading = read(&probe(Some("x"), origin.address().to_string(), reach()));
    assert_eq!(reading.body, b"hello there");
    let (kind, _) = failure(&probe(None, refused_address().to_string(), reach()));
    assert_eq!(kind, FailureKind::Refused);
    let (kind, _) = failure(&probe(
        Some("x"),
        Origin::silent().address().to_string(),
        impatient(),
    ));
    assert_eq!(kind, FailureKind::Timeout);
}

#[test]
fn udp_reads_an_answer_and_notes_a_refusal() {
    let names = NameServer::builder()
        .record("a.test", [1, 2, 3, 4], 1)
        .start();
    let question =
        b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x01a\x04test\x00\x00\x01\x00\x01"
            .to_vec();
    let probe = |address, send| UdpProbe {
        target: target(address),
        send: Some(send),
        reach: reach(),
    };
    let reading = read(&probe(names.address(), question.clone()));
    assert_eq!(reading.failure, None);
    assert_eq!(&reading.body[..2], b"\x12\x34");
    let closed = std::net::UdpSocket::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let (kind, _) = failure(&probe(closed, question));
    assert_eq!(kind, FailureKind::Refused);
}

#[test]
fn dns_finds_records_and_codes() {
    let names = NameServer::builder()
        .record("a.test", [10, 1, 2, 3], 60)
        .start();
    let probe = |name: &str, requires_answer| DnsProbe {
        server: Some(target(names.address())),
        record: DnsRecord::parse(name, "a").unwrap(),
        requires_validation: false,
        requires_answer,
        last_only: false,
        reach: reach(),
    };
    let reading = read(&probe("a.test", true));
    assert_eq!(
        (reading.failure, reading.dns_rcode.as_deref()),
        (None, Some("NOERROR"))
    );
    assert_eq!(reading.body, b"10.1.2.3");
    let reading = read(&probe("b.test", false));
    assert_eq!(
        (reading.failure, reading.dns_rcode.as_deref()),
        (None, Some("NXDOMAIN"))
    );
    let (_, cause) = failure(&probe("b.test", true));
    assert!(cause.contains("NXDOMAIN for b.test"), "{cause}");
    let silent = NameServer::builder().silent().start();
    let slow = DnsProbe {
        server: Some(target(silent.address())),
        reach: impatient(),
        ..probe("a.test", true)
    };
    assert_eq!(failure(&slow).0, FailureKind::Timeout);
    let unvalidated = DnsProbe {
        requires_validation: true,
        ..probe("a.test", true)
    };
    assert!(failure(&unvalidated).1.contains("AD flag"));
    let validating = NameServer::builder()
        .record("a.test", [10, 1, 2, 3], 60)
        .validating()
        .start();
    let validated = DnsProbe {
        server: Some(target(validating.address())),
        ..unvalidated
    };
    assert_eq!(read(&validated).failure, None);
    assert!(DnsRecord::parse("a.test", "AXFR").is_err());
}

#[test]
fn tls_looks_at_the_certificate() {
    let files = MaterialFiles::new();
    let authority = Authority::new();
    let ca = files.write("ca.pem", &authority.pem());
    let trusting = |trust| Reach::new(ReachOptions { trust, ..options() }).unwrap();
    let day = Duration::from_hours(24);
    let probe = |leaf: &Leaf, trust, warn, critical| {
        let origin = Origin::builder().tls(leaf.server_config()).start();
        let probe = TlsProbe {
            target: TcpTarget::parse(&format!("localhost:{}", origin.port()), true, 443).unwrap(),
            warn_within: Some(warn),
            critical_within: Some(critical),
            reach: trusting(trust),
        };
        read(&probe)
    };
    let good = authority.issue(&["localhost"]);
    let reading = probe(&good, Trust::Only(ca.clone()), day, day);
    assert_eq!((&reading.failure, &reading.warning), (&None, &None));
    assert!(reading.certificate.is_some() && reading.phases.get(Phase::Tls).is_some());
    let far = day * 365 * 3_000;
    let reading = probe(&good, Trust::Only(ca.clone()), far, day);
    assert!(
        reading
            .warning
            .unwrap()
            .contains("the certificate expires in")
    );
    let reading = probe(&good, Trust::Only(ca.clone()), far, far);
    assert_eq!(
        reading.failure.unwrap().kind,
        FailureKind::CertificateExpired
    );
    let reading = probe(
        &authority.issue_expired(&["localhost"]),
        Trust::Only(ca.clone()),
        day,
        day,
    );
    assert_eq!(
        reading.failure.unwrap().kind,
        FailureKind::CertificateExpired
    );
    let reading = probe(&good, Trust::PublicRoots, day, day);
    assert_eq!(
        reading.failure.unwrap().kind,
        FailureKind::CertificateUntrusted
    );
    let reading = probe(&authority.issue(&["other.test"]), Trust::Only(ca), day, day);
    assert!(reading.connected, "it was there, whatever its name");
    assert_eq!(
        reading.failure.unwrap().kind,
        FailureKind::CertificateHostname
    );
}

#[test]
fn ssh_reads_the_banner() {
    let probe = |origin: &Origin| SshProbe {
        target: target(origin.address()),
        reach: reach(),
    };
    let reading = read(&probe(&lines("welcome\r\nSSH-2.0-test\r\n", &[])));
    assert_eq!(
        (reading.code, &reading.body[..]),
        (Some(0), &b"SSH-2.0-test"[..])
    );
    let origin = Origin::scripted(Script::new().then(Step::Write(b"HTTP?\r\n".to_vec())));
    assert_eq!(read(&probe(&origin)).code, Some(1));
}

#[test]
fn starttls_reports_what_a_mail_server_refuses() {
    let probe = |origin: &Origin, protocol| StartTlsProbe {
        target: target(origin.address()),
        protocol,
        warn_within: None,
        critical_within: None,
        reach: reach(),
    };
    let (kind, cause) = failure(&probe(&lines("554 go away\r\n", &[]), MailProtocol::Smtp));
    assert_eq!(kind, FailureKind::UpgradeRefused);
    assert!(cause.contains("554 go away"), "{cause}");
    let (_, cause) = failure(&probe(&lines("* BYE\r\n", &[]), MailProtocol::Imap));
    assert!(cause.contains("* BYE"), "{cause}");
}

#[test]
fn starttls_judges_the_certificate_behind_the_greeting() {
    let files = MaterialFiles::new();
    let authority = Authority::new();
    let ca = files.write("ca.pem", &authority.pem());
    let day = Duration::from_hours(24);
    let smtp = (
        "220-mail.test\r\n220 ready\r\n",
        &[
            "250-mail.test\r\n250-SIZE 1000\r\n250 STARTTLS\r\n",
            "220 go ahead\r\n",
        ][..],
    );
    let imap = (
        "* OK [CAPABILITY IMAP4rev1 STARTTLS] ready\r\n",
        &["* CAPABILITY IMAP4rev1\r\na1 OK begin TLS now\r\n"][..],
    );
    let probe = |protocol, leaf: &Leaf, trust, warn_within| {
        let (greeting, replies) = match protocol {
            MailProtocol::Smtp => smtp,
            MailProtocol::Imap => imap,
        };
        let (address, serving) = starttls_server(greeting, replies, leaf.server_config());
        let probe = StartTlsProbe {
            target: TcpTarget::parse(&format!("localhost:{}", address.port()), false, 0).unwrap(),
            protocol,
            warn_within: Some(warn_within),
            critical_within: Some(day),
            reach: Reach::new(ReachOptions { trust, ..options() }).unwrap(),
        };
        (read(&probe), serving.join().unwrap())
    };
    let good = authority.issue(&["localhost"]);
    for (protocol, commands) in [
        (
            MailProtocol::Smtp,
            &["EHLO plimsoll.invalid", "STARTTLS"][..],
        ),
        (MailProtocol::Imap, &["a1 STARTTLS"][..]),
    ] {
        let (reading, session) = probe(protocol, &good, Trust::Only(ca.clone()), day);
        assert_eq!((&reading.failure, &reading.warning), (&None, &None));
        assert!(reading.certificate.is_some(), "{protocol:?}");
        for phase in [Phase::Connect, Phase::Wait, Phase::Tls] {
            assert!(reading.phases.get(phase).is_some(), "{protocol:?} {phase}");
        }
        assert_eq!(session.commands, commands);
        assert_eq!(session.server_name.as_deref(), Some("localhost"));
    }
    let far = day * 365 * 3_000;
    let (reading, _) = probe(MailProtocol::Smtp, &good, Trust::Only(ca.clone()), far);
    let warning = reading.warning.unwrap();
    assert!(warning.contains("the certificate expires in"), "{warning}");
    let expired = authority.issue_expired(&["localhost"]);
    let other = authority.issue(&["other.test"]);
    for (leaf, trust, expected) in [
        (
            &expired,
            Trust::Only(ca.clone()),
            FailureKind::CertificateExpired,
        ),
        (&other, Trust::Only(ca), FailureKind::CertificateHostname),
        (&good, Trust::PublicRoots, FailureKind::CertificateUntrusted),
    ] {
        let (reading, _) = probe(MailProtocol::Imap, leaf, trust, day);
        assert!(reading.connected);
        assert_eq!(reading.failure.unwrap().kind, expected);
    }
}

#[test]
fn websocket_opens_and_hears_back() {
    let origin = WebSocketOrigin::echo();
    let url = origin.url("/").replace("http://", "ws://");
    let probe = WebSocketProbe::new(&url, &[], Some(b"hello".to_vec()), reach()).unwrap();
    let reading = read(&probe);
    assert_eq!((reading.failure, reading.code), (None, Some(101)));
    let plain = Origin::hello();
    let probe =
        WebSocketProbe::new(&format!("ws://{}/", plain.address()), &[], None, reach()).unwrap();
    assert_eq!(failure(&probe).0, FailureKind::UpgradeRefused);
}

#[test]
fn grpc_that_is_not_spoken_is_a_failure() {
    let plain = Origin::hello();
    let probe = GrpcProbe::new(
        &format!("grpc://{}", plain.address()),
        "svc",
        &[],
        true,
        reach(),
    )
    .unwrap();
    let reading = read(&probe);
    assert!(reading.failure.is_some() && reading.connected);
}

/// The health service of tonic until it is dropped, which describes itself by reflection.
pub(crate) struct HealthServer {
    pub(crate) address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl HealthServer {
    /// The server as a whole and `up` are healthy, `down` is not.
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        let serve = async {
            let (reporter, service) = tonic_health::server::health_reporter();
            for (name, status) in [
                ("up", ServingStatus::Serving),
                ("down", ServingStatus::NotServing),
                ("odd", ServingStatus::Unknown),
            ] {
                reporter.set_service_status(name, status).await;
            }
            let incoming = TcpIncoming::from(tokio::net::TcpListener::from_std(listener).unwrap());
            let stopped = async { stopped.await.unwrap_or_default() };
            let described = tonic_reflection::server::Builder::configure()
                .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
                .build_v1()
                .unwrap();
            let router = Server::builder()
                .add_service(service)
                .add_service(described);
            router.serve_with_incoming_shutdown(incoming, stopped).await
        };
        let thread = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            runtime.unwrap().block_on(serve).unwrap();
        });
        Self {
            address,
            stop: Some(stop),
            thread: Some(thread),
        }
    }
}

impl Drop for HealthServer {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}

#[test]
fn grpc_health_is_that_of_the_service() {
    let server = HealthServer::start();
    let probe = |service: &str, requires_serving| {
        let url = format!("grpc://{}", server.address);
        read(&GrpcProbe::new(&url, service, &[], requires_serving, reach()).unwrap())
    };
    for service in ["", "up"] {
        let reading = probe(service, true);
        assert_eq!(reading.failure, None, "{service:?}");
        assert_eq!(reading.grpc_status.map(GrpcStatus::code), Some(0));
        assert_eq!(reading.body, br#"{"status":"SERVING"}"#);
        assert!(reading.phases.get(Phase::Wait).is_some());
    }
    for (service, status) in [("down", "NOT_SERVING"), ("odd", "UNKNOWN")] {
        let failure = probe(service, true).failure.unwrap();
        let cause = failure.cause.unwrap_or_default();
        assert_eq!(failure.kind, FailureKind::Refused, "{service}");
        assert_eq!(cause, format!("the service is {status}"));
        // Conditions judge the body then.
        let reading = probe(service, false);
        assert_eq!(reading.failure, None);
        let expected = format!("{{\"status\":\"{status}\"}}");
        assert_eq!(reading.body, expected.as_bytes());
    }
    for requires_serving in [true, false] {
        let failure = probe("none", requires_serving).failure.unwrap();
        let cause = failure.cause.unwrap_or_default();
        assert!(cause.contains("NOT_FOUND"), "{cause}");
    }
}

#[test]
fn domains_are_looked_up_by_rdap_then_by_whois_and_the_last_answer_is_kept() {
    let day = Duration::from_hours(24);
    let probe = |rdap: String, whois: String| DomainProbe {
        domain: "example.test".to_owned(),
        rdap: Some(rdap.parse().unwrap()),
        whois: Some(target(whois)),
        warn_within: 30 * day,
        critical_within: 7 * day,
        reach: reach(),
        last: std::sync::Mutex::default(),
    };
    let json = r#"{"events":[{"eventAction":"registration","eventDate":"2001-01-01T00:00:00Z"},
        {"eventAction":"expiration","eventDate":"2999-01-01T00:00:00Z"}]}"#;
    let answer = format!(
        "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{json}",
        json.len()
    );
    let rdap = Origin::scripted(Script::serve(answer));
    let closed = || refused_address().to_string();
    let reading = read(&probe(rdap.url("/"), closed()));
    assert_eq!((&reading.failure, &reading.warning), (&None, &None));
    assert_eq!(
        reading.domain_expires.unwrap().to_string(),
        "2999-01-01T00:00:00Z"
    );
    assert!(rdap.heads()[0].starts_with("GET /domain/example.test "));

    let says = |text: &str| {
        Origin::scripted(
            Script::new()
                .then(Step::ReadBody(14))
                .then(Step::Write(text.into())),
        )
    };
    let whois = says("domain: EXAMPLE.TEST\r\npaid-till: 2998-02-03\r\n");
    let unknown = Origin::scripted(Script::serve(
        &b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n"[..],
    ));
    let both = probe(unknown.url("/"), whois.address().to_string());
    assert_eq!(
        read(&both).domain_expires.unwrap().to_string(),
        "2998-02-03T00:00:00Z"
    );
    drop(whois);
    let reading = read(&both);
    assert_eq!(reading.failure, None);
    assert!(
        reading.warning.unwrap().contains("answers 404"),
        "the last answer is kept, with a warning"
    );

    let (_, cause) = failure(&probe(unknown.url("/"), closed()));
    assert!(
        cause.contains("RDAP: ") && cause.contains("answers 404; WHOIS: "),
        "{cause}"
    );
    let over = says("Expiry Date: 2001-02-03\r\n");
    let (_, cause) = failure(&probe(unknown.url("/"), over.address().to_string()));
    let ended = "the registration ended on 3 February 2001 at 00:00 UTC";
    assert!(cause.contains(ended), "{cause}");
}

#[test]
fn a_conversation_goes_by_its_steps() {
    let step = |expect: &str, send: &str| TalkStep {
        expect: (!expect.is_empty()).then(|| regex::Regex::new(expect).unwrap()),
        send: (!send.is_empty()).then(|| send.to_owned()),
        starttls: false,
    };
    let probe = |origin: &Origin, steps: Vec<TalkStep>| TalkProbe {
        target: target(origin.address()),
        steps,
        reach: reach(),
    };
    // Lines before the one that is waited for are passed over; groups of it may be sent back.
    let irc = lines(":a NOTICE hello\r\nPING :42\r\n", &[":a 001 welcome\r\n"]);
    let steps = vec![step("^PING :(\\d+)", "PONG :$1\r\n"), step(" 001 ", "")];
    let reading = read(&probe(&irc, steps));
    assert_eq!(reading.failure, None);
    assert_eq!(
        reading.body,
        b":a NOTICE hello\r\nPING :42\r\n:a 001 welcome\r\n"
    );
    let other = Origin::scripted(Script::new().then(Step::Write("NO\r\n".into())));
    let (kind, cause) = failure(&probe(&other, vec![step("^OK", "")]));
    assert_eq!(kind, FailureKind::Closed, "{cause}");
    assert!(
        cause.contains("no line matches `^OK`; the last one was `NO`"),
        "{cause}"
    );
    let silent = Origin::scripted(Script::new().then(Step::Swallow));
    let waiting = TalkProbe {
        reach: impatient(),
        ..probe(&silent, vec![step("^OK", "")])
    };
    assert_eq!(failure(&waiting).0, FailureKind::Timeout);
}

#[test]
fn a_conversation_may_begin_tls() {
    let authority = Authority::new();
    let files = MaterialFiles::new();
    let ca = files.write("ca.pem", &authority.pem());
    let leaf = authority.issue(&["mail.test"]);
    let (address, serving) = starttls_server(
        "220 mail.test\r\n",
        &["250-mail.test\r\n250 STARTTLS\r\n", "220 go on\r\n"],
        leaf.server_config(),
    );
    let step = |expect: &str, send: &str, starttls| TalkStep {
        expect: (!expect.is_empty()).then(|| regex::Regex::new(expect).unwrap()),
        send: (!send.is_empty()).then(|| send.to_owned()),
        starttls,
    };
    let reach = Reach::new(ReachOptions {
        trust: Trust::Only(ca),
        server_name: Some("mail.test".to_owned()),
        ..options()
    });
    let probe = TalkProbe {
        target: target(address),
        steps: vec![
            step("^220 ", "EHLO a\r\n", false),
            step("^250 STARTTLS", "STARTTLS\r\n", false),
            step("^220 ", "", true),
        ],
        reach: reach.unwrap(),
    };
    let reading = read(&probe);
    assert_eq!(reading.failure, None);
    assert!(reading.certificate.is_some() && reading.phases.get(Phase::Tls).is_some());
    let session = serving.join().unwrap();
    assert_eq!(session.commands, ["EHLO a", "STARTTLS"]);
    assert_eq!(session.server_name.as_deref(), Some("mail.test"));
}
