//! `allow_private = false` for every kind of probe.

use plimsoll_client::AddressFilter;

use super::*;
use crate::probe::ProbeContext;

/// Definitions of every kind with a connection to `PORT` of loopback, and whether its arrival there can be seen; nothing for
/// kinds without connections.
const DEFINITIONS: [(&str, Option<(&str, Seen)>); 29] = [
    (
        "http",
        Some(("{ url = \"http://127.0.0.1:PORT/\"", Seen::Tcp)),
    ),
    ("tcp", Some(("{ to = \"127.0.0.1:PORT\"", Seen::Tcp))),
    ("tls", Some(("{ to = \"127.0.0.1:PORT\"", Seen::Tcp))),
    (
        "udp",
        Some(("{ to = \"127.0.0.1:PORT\", send = \"x\"", Seen::Udp)),
    ),
    (
        "dns",
        Some((
            "{ name = \"a.example\", server = \"127.0.0.1:PORT\"",
            Seen::Udp,
        )),
    ),
    ("icmp", Some(("{ to = \"127.0.0.1\"", Seen::Not))),
    ("starttls", Some(("{ to = \"127.0.0.1:PORT\"", Seen::Tcp))),
    ("smtp", Some(("{ to = \"127.0.0.1:PORT\"", Seen::Tcp))),
    (
        "websocket",
        Some(("{ url = \"ws://127.0.0.1:PORT/\"", Seen::Tcp)),
    ),
    (
        "grpc",
        Some(("{ url = \"grpc://127.0.0.1:PORT\"", Seen::Tcp)),
    ),
    ("ssh", Some(("{ to = \"127.0.0.1:PORT\"", Seen::Tcp))),
    (
        "postgres",
        Some(("{ url = \"postgres://a@127.0.0.1:PORT/\"", Seen::Tcp)),
    ),
    (
        "mysql",
        Some(("{ url = \"mysql://a@127.0.0.1:PORT/\"", Seen::Tcp)),
    ),
    (
        "redis",
        Some(("{ url = \"redis://127.0.0.1:PORT/\"", Seen::Tcp)),
    ),
    (
        "mqtt",
        Some(("{ url = \"mqtt://127.0.0.1:PORT\"", Seen::Tcp)),
    ),
    (
        "amqp",
        Some(("{ url = \"amqp://127.0.0.1:PORT\"", Seen::Tcp)),
    ),
    (
        "kafka",
        Some(("{ url = \"kafka://127.0.0.1:PORT\"", Seen::Tcp)),
    ),
    (
        "nats",
        Some(("{ url = \"nats://127.0.0.1:PORT\"", Seen::Tcp)),
    ),
    (
        "ldap",
        Some(("{ url = \"ldap://127.0.0.1:PORT\"", Seen::Tcp)),
    ),
    ("snmp", Some(("{ to = \"127.0.0.1:PORT\"", Seen::Udp))),
    ("ntp", Some(("{ to = \"127.0.0.1:PORT\"", Seen::Udp))),
    (
        "prometheus",
        Some((
            "{ url = \"http://127.0.0.1:PORT/\", query = \"up\"",
            Seen::Tcp,
        )),
    ),
    (
        "docker",
        Some((
            "{ container = \"a\", host = \"http://127.0.0.1:PORT\"",
            Seen::Tcp,
        )),
    ),
    // On the machine of the monitor, so that the store and agents may not name one.
    ("systemd", None),
    (
        "domain",
        Some((
            "{ name = \"a.example\", rdap = \"http://127.0.0.1:PORT/\", whois = \"127.0.0.1:PORT\"",
            Seen::Tcp,
        )),
    ),
    ("heartbeat", None),
    ("all_of", None),
    ("any_of", None),
    ("manual", None),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Seen {
    Tcp,
    Udp,
    /// Not on a port.
    Not,
}

fn compiled(text: &str, filter: Option<AddressFilter>) -> Result<MonitorPlan, String> {
    let grounds = Grounds {
        filter,
        ..Grounds::default()
    };
    let mut compiled = overlay::monitors(&[text], &grounds, std::iter::empty());
    let problems = |all: Vec<ConfigProblem>| all.iter().map(ToString::to_string).collect();
    compiled.pop().unwrap().map_err(problems)
}

/// What a check says went wrong.
async fn checked(plan: &MonitorPlan) -> String {
    let What::Probe(probe) = &plan.what else {
        panic!("it has a probe");
    };
    let reading = probe.check(&ProbeContext::new()).await;
    let failure = reading.failure.map(|failure| failure.to_string());
    failure.unwrap_or_default()
}

/// Without the filter each of them connects, so that the test cannot pass for another reason.
#[test]
fn every_probe_connects_to_allowed_addresses_only() {
    let named: Vec<_> = DEFINITIONS.iter().map(|(kind, _)| *kind).collect();
    assert_eq!(kinds::KINDS.to_vec(), named);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let local = tokio::task::LocalSet::new();
    local.block_on(&runtime, async {
        for (kind, definition) in DEFINITIONS {
            let Some((definition, seen)) = definition else {
                continue;
            };
            let tcp = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            tcp.set_nonblocking(true).unwrap();
            let address = tcp.local_addr().unwrap();
            let udp = std::net::UdpSocket::bind(address).unwrap();
            udp.set_nonblocking(true).unwrap();
            let has_come = || tcp.accept().is_ok() || udp.recv(&mut [0; 512]).is_ok();
            let text = |more: &str| {
                let definition = definition.replace("PORT", &address.port().to_string());
                format!("name = \"a\"\ntimeout = \"300ms\"\n{kind} = {definition}{more} }}\n")
            };
            let public = || Some(AddressFilter::public());
            let plan = compiled(&text(""), public()).unwrap();
            let failure = checked(&plan).await;
            let is_refused = failure.contains("not allowed") || failure.contains("no allowed");
            assert!(is_refused, "{kind}: {failure}");
            assert!(!has_come(), "{kind}");
            if seen != Seen::Not {
                let plan = compiled(&text(""), None).unwrap();
                checked(&plan).await;
                assert!(has_come(), "{kind}");
            }
            let other = format!(", name_server = \"{address}\"");
            let problem = compiled(&text(&other), public()).err().unwrap();
            assert!(problem.contains("is not allowed"), "{kind}: {problem}");
            compiled(&text(&other), None).unwrap();
        }
    });
}

#[test]
fn what_is_on_the_machine_of_the_monitor_is_for_its_file_alone() {
    for definition in [
        "docker = \"a\"",
        "docker = { container = \"a\", host = \"unix:///run/a.sock\" }",
        "systemd = \"a.service\"",
        "grpc = { url = \"grpc://a\", method = \"a.B/C\", proto_file = \"a.proto\" }",
    ] {
        let problem = compiled(&format!("name = \"a\"\n{definition}\n"), None)
            .err()
            .unwrap();
        assert!(problem.contains("the machine of the monitor"), "{problem}");
    }
}
