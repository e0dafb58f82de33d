//! Datagrams that are forwarded by flows.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use plimsoll_testkit::{eventually, refused_address};

use crate::server::{Served, compiled};
use crate::tcp::metric;

const PATIENCE: Duration = Duration::from_secs(20);

/// A server that sends back what it gets, after its name.
pub(crate) struct Peer {
    pub(crate) address: SocketAddr,
    ends: Arc<AtomicBool>,
}

impl Peer {
    pub(crate) fn new(name: &'static str) -> Self {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        socket
            .set_read_timeout(Some(Duration::from_millis(50)))
            .unwrap();
        let address = socket.local_addr().unwrap();
        let ends = Arc::<AtomicBool>::default();
        let ended = Arc::clone(&ends);
        thread::spawn(move || {
            let mut buffer = vec![0; 64 * 1024];
            while !ended.load(Ordering::Relaxed) {
                let Ok((length, from)) = socket.recv_from(&mut buffer) else {
                    continue;
                };
                let reply = [name.as_bytes(), &buffer[..length]].concat();
                socket.send_to(&reply, from).ok();
            }
        });
        Self { address, ends }
    }

    fn url(&self) -> String {
        format!("udp://{}", self.address)
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
    }
}

fn configuration(udp: &str, more: &str) -> String {
    format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\nudp = {udp}\n[admin]\naddress = \"127.0.0.1:0\"\n{more}\n"
    )
}

fn gateway(udp: &str, more: &str) -> Served {
    Served::new(&configuration(udp, more))
}

/// The first listener, whose port is one of UDP.
fn at(gateway: &Served) -> SocketAddr {
    gateway.address()
}

pub(crate) fn client() -> UdpSocket {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket
}

fn ask(client: &UdpSocket, at: SocketAddr, text: &str) -> String {
    client.send_to(text.as_bytes(), at).unwrap();
    let mut buffer = [0; 2048];
    let (length, from) = client.recv_from(&mut buffer).unwrap();
    assert_eq!(from, at);
    String::from_utf8_lossy(&buffer[..length]).into_owned()
}

#[test]
fn a_client_stays_at_its_server_and_a_flow_ends_when_it_is_idle() {
    let (one, two) = (Peer::new("1"), Peer::new("2"));
    let gateway = gateway(
        "{ to = \"dns\", idle_timeout = \"2s\" }",
        &format!(
            "[upstream.dns]\nservers = [\"{}\", \"{}\"]\nbalance = \"round_robin\"",
            one.url(),
            two.url()
        ),
    );
    let clients: Vec<_> = (0..10).map(|_| client()).collect();
    let first: Vec<_> = clients.iter().map(|it| ask(it, at(&gateway), "")).collect();
    assert_eq!(first.iter().filter(|name| *name == "1").count(), 5);
    for _ in 0..3 {
        let again: Vec<_> = clients.iter().map(|it| ask(it, at(&gateway), "")).collect();
        assert_eq!(again, first);
    }
    assert_eq!(metric(&gateway, "flows_total", "udp"), 10);
    eventually(|| metric(&gateway, "flows_ended_total", "idle_timeout") == 10);
    assert_eq!(metric(&gateway, "flows_active", "udp"), 0);
    assert_eq!(metric(&gateway, "flow_bytes_total", "sent"), 40);
}

#[test]
fn sources_are_hashed_unless_a_balancer_is_given() {
    let (one, two, three) = (Peer::new("1"), Peer::new("2"), Peer::new("3"));
    let text = |servers: &[&Peer]| {
        let urls: Vec<_> = servers
            .iter()
            .map(|it| format!("\"{}\"", it.url()))
            .collect();
        configuration(
            "\"dns\"",
            &format!("[upstream.dns]\nservers = [{}]", urls.join(", ")),
        )
    };
    let gateway = Served::new(&text(&[&one, &two, &three]));
    let from = |number: u16| {
        let [high, low] = number.to_be_bytes();
        let socket = UdpSocket::bind((Ipv4Addr::new(127, 0, 1 + high, low), 0)).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        ask(&socket, at(&gateway), "")
    };
    let first: Vec<_> = (1..=300).map(from).collect();
    // Another port of the same source has another flow, to the same server.
    assert_eq!((1..=300).map(from).collect::<Vec<_>>(), first);
    for name in ["1", "2", "3"] {
        let share = first.iter().filter(|it| *it == name).count();
        // Six standard deviations around 100: the servers' ports, which are hashed too, are others in each run.
        assert!((51..=149).contains(&share), "{name}: {share}");
    }
}

#[test]
fn datagrams_of_every_length_pass_in_bursts() {
    let peer = Peer::new("");
    let gateway = gateway(&format!("\"{}\"", peer.url()), "");
    let client = client();
    let mut buffer = vec![0; 64 * 1024];
    for burst in [
        &[1200; 20][..],
        &[0, 1, 9000, 9000, 100, 60_000],
        &[100; 30],
    ] {
        for (number, length) in burst.iter().enumerate() {
            let byte = u8::try_from(number).unwrap();
            client.send_to(&vec![byte; *length], at(&gateway)).unwrap();
        }
        for (number, length) in burst.iter().enumerate() {
            let (received, _) = client.recv_from(&mut buffer).unwrap();
            assert_eq!(received, *length);
            assert!(
                buffer[..received]
                    .iter()
                    .all(|it| usize::from(*it) == number)
            );
        }
    }
}

#[test]
fn a_flood_of_flows_is_bounded_and_counted() {
    let peer = Peer::new("x");
    let gateway = gateway(
        &format!(
            "{{ to = \"{}\", flows = 6, flows_per_source = 4 }}",
            peer.url()
        ),
        "",
    );
    let clients: Vec<_> = (0..5).map(|_| client()).collect();
    for client in &clients[..4] {
        assert_eq!(ask(client, at(&gateway), ""), "x");
    }
    clients[4].send_to(b"", at(&gateway)).unwrap();
    let dropped = |reason: &str| metric(&gateway, "datagrams_dropped_total", reason);
    eventually(|| dropped("\"flows_of_source\"") == 1);
    let elsewhere = |last: u8| UdpSocket::bind((Ipv4Addr::new(127, 0, 2, last), 0)).unwrap();
    let others: Vec<_> = (1..=3).map(elsewhere).collect();
    for other in &others {
        other.send_to(b"", at(&gateway)).unwrap();
    }
    eventually(|| dropped("\"flows\"") == 1);
    assert_eq!(metric(&gateway, "flows_active", "udp"), 6);
    // Those that have a flow still pass.
    assert_eq!(ask(&clients[0], at(&gateway), ""), "x");
}

#[test]
fn replies_are_bounded_by_what_the_client_has_sent() {
    let peer = Peer::new("a longer name than the question");
    let gateway = gateway(
        &format!("{{ to = \"{}\", amplification = 3 }}", peer.url()),
        "",
    );
    let client = client();
    client.send_to(b"who?", at(&gateway)).unwrap();
    eventually(|| metric(&gateway, "datagrams_dropped_total", "amplification") == 1);
    // 4 + 20 bytes allow 72, and the reply has 51.
    let text = ask(&client, at(&gateway), &"?".repeat(20));
    assert_eq!(text.len(), 51);
}

#[test]
fn a_server_that_does_not_listen_is_ejected_and_its_flows_end() {
    let peer = Peer::new("x");
    let gateway = gateway(
        "\"dns\"",
        &format!(
            "[upstream.dns]\nservers = [\"udp://{}\", \"{}\"]\nbalance = \"round_robin\"\n\
            eject = {{ failures = 1, time = \"1m\" }}",
            refused_address(),
            peer.url()
        ),
    );
    let client = client();
    client
        .set_read_timeout(Some(Duration::from_millis(20)))
        .unwrap();
    // The first datagram may be lost; the next one finds the other server.
    let mut buffer = [0; 8];
    eventually(|| {
        client.send_to(b"", at(&gateway)).unwrap();
        client
            .recv_from(&mut buffer)
            .is_ok_and(|(length, _)| buffer[..length] == *b"x")
    });
    let states = plimsoll_testkit::http::get(gateway.addresses[1], "/upstreams").into_text();
    assert!(states.contains("ejected"), "{states}");
    assert_eq!(metric(&gateway, "flows_ended_total", "server_reset"), 1);
}

#[test]
fn a_reload_keeps_flows_unless_they_are_configured_differently() {
    let (one, two) = (Peer::new("1"), Peer::new("2"));
    let text = |peer: &Peer| configuration(&format!("\"{}\"", peer.url()), "");
    let mut gateway = Served::new(&text(&one));
    let client = client();
    assert_eq!(ask(&client, at(&gateway), "a"), "1a");
    gateway.reload(&format!("{}[[route]]\necho = {{}}\n", text(&one)));
    assert_eq!(ask(&client, at(&gateway), "b"), "1b");
    assert_eq!(metric(&gateway, "flows_total", "udp"), 1);
    gateway.reload(&text(&two));
    assert_eq!(ask(&client, at(&gateway), "c"), "2c");
    assert_eq!(metric(&gateway, "flows_ended_total", "cut"), 1);
}

/// Open descriptors of this process, which has the gateway in it.
fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

#[test]
fn descriptors_and_flows_return_after_a_flood() {
    // Each flow has a socket and a port. The test of the whole program takes as many as the system has room for.
    let count = 2_000;
    plimsoll_wire::descriptors::raise().ok();
    let peer = Peer::new("x");
    let gateway = gateway(
        &format!(
            "{{ to = \"{}\", idle_timeout = \"2s\", flows = 60000, flows_per_source = 60000 }}",
            peer.url()
        ),
        "[limits]\nconnections = 100000",
    );
    let before = descriptors();
    let mut buffer = [0; 8];
    for number in 0..count {
        // No two have the same address, whatever their port.
        let [.., high, low] = u32::try_from(number).unwrap().to_be_bytes();
        let client = UdpSocket::bind((Ipv4Addr::new(127, 3, high, low), 0)).unwrap();
        client.set_read_timeout(Some(PATIENCE)).unwrap();
        client.send_to(b"", at(&gateway)).unwrap();
        client.recv_from(&mut buffer).unwrap();
    }
    assert_eq!(metric(&gateway, "flows_total", "udp"), count);
    eventually(|| metric(&gateway, "flows_active", "udp") == 0);
    assert_eq!(metric(&gateway, "flows_ended_total", "idle_timeout"), count);
    // Other tests of this process open and close some, too.
    eventually(|| descriptors() < before + 500);
}

#[test]
fn a_flow_that_gets_no_socket_ends_at_once_and_is_counted() {
    // The system refuses the broadcast address to a socket, as it refuses any once no port is left.
    let gateway = gateway("\"udp://255.255.255.255:9\"", "");
    let client = client();
    for count in 1..=2 {
        client.send_to(b"", at(&gateway)).unwrap();
        eventually(|| metric(&gateway, "datagrams_dropped_total", "no_socket") == count);
        assert_eq!(metric(&gateway, "flows_active", "udp"), 0);
        let ended = metric(&gateway, "flows_ended_total", "connect_failed");
        assert_eq!(ended, count);
    }
    assert_eq!(metric(&gateway, "flows_ended_total", "server_reset"), 0);
}

#[test]
fn every_error_of_the_configuration_is_reported() {
    let text = r#"
[[listen]]
address = "127.0.0.1:0"
udp = "tcp://10.0.0.1:53"

[[listen]]
address = "127.0.0.1:0"
udp = { flow = 1 }

[[listen]]
address = "unix:/tmp/x"
udp = "udp://10.0.0.1:53"

[upstream.dns]
servers = "udp://10.0.0.1:53"
health = true
keep = 1
tls = { insecure = true }
"#;
    let problems = compiled(text).unwrap_err();
    let shown: Vec<String> = problems
        .iter()
        .map(|it| format!("{}: {} {:?}", it.key, it.message, it.hint))
        .collect();
    let shown = shown.join("\n");
    for part in [
        "listen[1].udp: `tcp://10.0.0.1:53` is not a URL of udp://",
        "listen[2].udp: `to` is missing",
        "listen[2].udp.flow: unknown key Some(\"did you mean `flows`?\")",
        "listen[3]: `udp` is not for unix:/tmp/x",
        "upstream.dns.health: no datagram is sent to check a server",
        "upstream.dns: `keep` is for requests",
    ] {
        assert!(shown.contains(part), "{part}\n---\n{shown}");
    }
}

#[test]
fn every_key_is_in_the_schema() {
    let text = r#"
[[listen]]
address = "127.0.0.1:0"
udp = "udp://10.0.0.1:53"

[[listen]]
address = "127.0.0.1:0"
udp = { to = "dns", flows = 100, flows_per_source = 10, idle_timeout = "10s", amplification = 3 }

[[listen]]
address = "127.0.0.1:0"
udp = { echo = {} }

[upstream.dns]
servers = ["udp://10.0.0.1:53", "udp://dns.internal:53"]
health = { kind = "tcp" }
"#;
    let plan = compiled(text);
    assert!(plan.is_ok(), "{:?}", plan.err());
    let document = serde_json::to_value(toml::from_str::<toml::Table>(text).unwrap()).unwrap();
    let schema: serde_json::Value = serde_json::from_str(plimsoll_server::config::SCHEMA).unwrap();
    jsonschema::validate(&schema, &document).unwrap();
}
