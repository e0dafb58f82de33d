//! QUIC connections between a stock client and stock servers, forwarded without their keys.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use plimsoll_testkit::{Leaf, eventually, until};
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use rustls::pki_types::CertificateDer;
use tokio::task::{JoinSet, block_in_place};

use crate::server::{Served, compiled};
use crate::tcp::metric;
use crate::udp;

/// A server of quinn: each stream gets its name and then back what it brings.
struct Backend {
    endpoint: quinn::Endpoint,
    address: SocketAddr,
}

impl Backend {
    fn new(leaf: &Leaf, name: &'static str, retry: bool) -> Self {
        Self::with(leaf, name, retry, |_| {})
    }

    /// - `retry`: a client whose address is not validated is sent back.
    fn with(
        leaf: &Leaf,
        name: &'static str,
        retry: bool,
        configure: impl FnOnce(&mut quinn::ServerConfig),
    ) -> Self {
        let mut tls = leaf.server_config();
        tls.alpn_protocols = vec![b"echo".to_vec()];
        let config = QuicServerConfig::try_from(tls).unwrap();
        let mut config = quinn::ServerConfig::with_crypto(Arc::new(config));
        configure(&mut config);
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let endpoint = quinn::Endpoint::server(config, any).unwrap();
        let address = endpoint.local_addr().unwrap();
        let accepting = endpoint.clone();
        tokio::spawn(async move {
            while let Some(incoming) = accepting.accept().await {
                if retry && !incoming.remote_address_validated() {
                    incoming.retry().unwrap();
                    continue;
                }
                tokio::spawn(async move {
                    let Ok(connection) = incoming.await else {
                        return;
                    };
                    while let Ok((mut send, mut receive)) = connection.accept_bi().await {
                        send.write_all(name.as_bytes()).await.unwrap();
                        let bytes = receive.read_to_end(1 << 24).await.unwrap();
                        send.write_all(&bytes).await.unwrap();
                        send.finish().unwrap();
                    }
                });
            }
        });
        Self { endpoint, address }
    }

    fn url(&self) -> String {
        format!("udp://{}", self.address)
    }
}

impl Drop for Backend {
    fn drop(&mut self) {
        self.endpoint.close(0_u32.into(), b"");
    }
}

/// A client of quinn, which trusts `leaf` alone.
fn client(leaf: &Leaf) -> quinn::Endpoint {
    client_of(leaf.der(), b"echo")
}

/// A client of quinn that trusts one certificate and speaks one protocol.
pub(crate) fn client_of(root: CertificateDer<'static>, protocol: &[u8]) -> quinn::Endpoint {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(root).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    tls.alpn_protocols = vec![protocol.to_vec()];
    let config = QuicClientConfig::try_from(tls).unwrap();
    let mut config = quinn::ClientConfig::new(Arc::new(config));
    let mut transport = quinn::TransportConfig::default();
    transport.max_idle_timeout(Some(Duration::from_mins(1).try_into().unwrap()));
    config.transport_config(Arc::new(transport));
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let mut endpoint = quinn::Endpoint::client(any).unwrap();
    endpoint.set_default_client_config(config);
    endpoint
}

async fn connect(client: &quinn::Endpoint, at: SocketAddr) -> quinn::Connection {
    client.connect(at, "localhost").unwrap().await.unwrap()
}

/// Sends bytes on a new stream; returns the name of the server.
async fn exchange(connection: &quinn::Connection, bytes: &[u8]) -> String {
    let (mut send, mut receive) = connection.open_bi().await.unwrap();
    send.write_all(bytes).await.unwrap();
    send.finish().unwrap();
    let received = receive.read_to_end(1 << 24).await.unwrap();
    let name = received.len() - bytes.len();
    assert!(received[name..] == *bytes);
    String::from_utf8(received[..name].to_vec()).unwrap()
}

/// A gateway that is started and ended within the runtime of a test; both wait for its workers.
pub(crate) struct Gateway(Option<Served>);

impl Gateway {
    pub(crate) fn new(text: &str) -> Self {
        Self(Some(block_in_place(|| Served::new(text))))
    }
}

impl std::ops::Deref for Gateway {
    type Target = Served;

    fn deref(&self) -> &Served {
        self.0.as_ref().unwrap()
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        block_in_place(|| drop(self.0.take()));
    }
}

fn gateway(quic: &str, more: &str) -> Gateway {
    Gateway::new(&format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\nquic = {quic}\n[admin]\naddress = \"127.0.0.1:0\"\n{more}\n"
    ))
}

pub(crate) fn run(test: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap()
        .block_on(async {
            tokio::time::timeout(Duration::from_mins(2), test)
                .await
                .unwrap();
        });
}

/// Two servers behind a gateway of several workers.
fn pair(leaf: &Leaf, threads: usize) -> (Backend, Backend, Gateway) {
    let (one, two) = (
        Backend::new(leaf, "1", false),
        Backend::new(leaf, "2", false),
    );
    let text = format!(
        "threads = {threads}\n[[listen]]\naddress = \"127.0.0.1:0\"\nquic = {{ to = \"edge\", flows_per_source = 2000 }}\n\
        [admin]\naddress = \"127.0.0.1:0\"\n[upstream.edge]\nservers = [\"{}\", \"{}\"]",
        one.url(),
        two.url()
    );
    let gateway = Gateway::new(&text);
    (one, two, gateway)
}

#[test]
fn a_thousand_stock_connections_pass() {
    run(async {
        let leaf = Leaf::self_signed(&["localhost"]);
        let (_one, _two, gateway) = pair(&leaf, 2);
        let at = gateway.address();
        let bytes: Arc<[u8]> = (0_u8..=250).cycle().take(20_000).collect();
        let mut names = Vec::new();
        for _ in 0..20 {
            // All connections of a client come from one address.
            let client = client(&leaf);
            let mut tasks = JoinSet::new();
            for _ in 0..50 {
                let (client, bytes) = (client.clone(), Arc::clone(&bytes));
                tasks.spawn(async move {
                    let connection = connect(&client, at).await;
                    let name = exchange(&connection, &bytes).await;
                    connection.close(0_u32.into(), b"");
                    name
                });
            }
            names.extend(tasks.join_all().await);
        }
        assert_eq!(names.len(), 1000);
        // Maglev spreads them by their connection IDs.
        let first = names.iter().filter(|name| *name == "1").count();
        assert!((400..=600).contains(&first), "{first}");
        assert_eq!(metric(&gateway, "flows_total", "quic"), 1000);
        for reason in [
            "amplification",
            "malformed",
            "short_initial",
            "no_server",
            "flows",
        ] {
            let reason = format!("reason=\"{reason}\"");
            assert_eq!(
                metric(&gateway, "datagrams_dropped_total", &reason),
                0,
                "{reason}"
            );
        }
    });
}

#[test]
fn flows_end_when_they_are_idle_and_their_connections_are_unknown_then() {
    run(async {
        let leaf = Leaf::self_signed(&["localhost"]);
        let backend = Backend::new(&leaf, "", false);
        let gateway = gateway(
            &format!("{{ to = \"{}\", idle_timeout = \"1s\" }}", backend.url()),
            "",
        );
        let client = client(&leaf);
        let mut connections = Vec::new();
        for _ in 0..5 {
            let connection = connect(&client, gateway.address()).await;
            exchange(&connection, b"hello").await;
            connections.push(connection);
        }
        let ended = || metric(&gateway, "flows_ended_total", "idle_timeout");
        until(|| ended() == 5).await;
        assert_eq!(metric(&gateway, "flows_active", "quic"), 0);
        // The server's address is remembered, not the connection: the next one begins as the first did.
        let connection = connect(&client, gateway.address()).await;
        exchange(&connection, b"hello").await;
        drop(connections);
    });
}

#[test]
fn a_connection_stays_at_its_server_when_the_address_of_its_client_changes() {
    run(async {
        let leaf = Leaf::self_signed(&["localhost"]);
        for threads in [1, 4] {
            let (_one, _two, gateway) = pair(&leaf, threads);
            for _ in 0..4 {
                let client = client(&leaf);
                let connection = connect(&client, gateway.address()).await;
                let name = exchange(&connection, b"before").await;
                for _ in 0..3 {
                    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
                    // quinn takes another connection ID, too.
                    client.rebind(socket).unwrap();
                    let bytes = vec![7; 200_000];
                    assert_eq!(exchange(&connection, &bytes).await, name);
                }
                connection.close(0_u32.into(), b"");
            }
        }
    });
}

/// Forwards datagrams from another port each time it is requested, as NAT does, which the client does not notice.
async fn rebinding_nat(at: SocketAddr) -> (SocketAddr, tokio::sync::mpsc::Sender<()>) {
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let inside = tokio::net::UdpSocket::bind(any).await.unwrap();
    let address = inside.local_addr().unwrap();
    let (sender, mut rebinds) = tokio::sync::mpsc::channel(1);
    tokio::spawn(async move {
        let mut outside = tokio::net::UdpSocket::bind(any).await.unwrap();
        let mut client = None;
        let (mut up, mut down) = (vec![0; 65536], vec![0; 65536]);
        loop {
            tokio::select! {
                received = inside.recv_from(&mut up) => {
                    let (length, from) = received.unwrap();
                    client = Some(from);
                    outside.send_to(&up[..length], at).await.unwrap();
                }
                received = outside.recv_from(&mut down) => {
                    let (length, _) = received.unwrap();
                    inside.send_to(&down[..length], client.unwrap()).await.unwrap();
                }
                rebind = rebinds.recv() => match rebind {
                    Some(()) => outside = tokio::net::UdpSocket::bind(any).await.unwrap(),
                    None => return,
                }
            }
        }
    });
    (address, sender)
}

#[test]
fn a_connection_is_known_by_its_id_behind_a_nat_that_changes_the_port() {
    run(async {
        let leaf = Leaf::self_signed(&["localhost"]);
        let (_one, _two, gateway) = pair(&leaf, 4);
        let (address, rebind) = rebinding_nat(gateway.address()).await;
        let client = client(&leaf);
        // Several connections, at both servers, come from one address: only their IDs tell them from each other.
        // The IDs are drawn, so eight of them may all belong to one server.
        let mut connections = Vec::new();
        let mut names = BTreeSet::new();
        while connections.len() < 8 || names.len() < 2 {
            let connection = connect(&client, address).await;
            let name = exchange(&connection, b"before").await;
            names.insert(name.clone());
            connections.push((connection, name));
        }
        rebind.send(()).await.unwrap();
        for (connection, name) in &connections {
            assert_eq!(exchange(connection, &vec![1; 50_000]).await, *name);
        }
        assert_eq!(
            metric(&gateway, "datagrams_dropped_total", "unknown_connection"),
            0
        );
    });
}

#[test]
fn a_server_may_send_clients_back_to_prove_their_address() {
    run(async {
        let leaf = Leaf::self_signed(&["localhost"]);
        let backend = Backend::new(&leaf, "", true);
        let gateway = gateway(&format!("\"{}\"", backend.url()), "");
        for _ in 0..5 {
            let client = client(&leaf);
            let connection = connect(&client, gateway.address()).await;
            exchange(&connection, &vec![1; 100_000]).await;
        }
    });
}

/// A secret in a file, and its file's folder.
fn secret() -> (tempfile::TempDir, String, [u8; 64]) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("quic.key");
    let secret = std::array::from_fn(|at| u8::try_from(at).unwrap());
    std::fs::write(&file, secret).unwrap();
    let file = file.to_str().unwrap().to_owned();
    (folder, file, secret)
}

#[test]
fn clients_prove_their_address_to_the_gateway_and_stock_servers_accept_its_tokens() {
    run(async {
        let leaf = Leaf::self_signed(&["localhost"]);
        let (_folder, file, secret) = secret();
        // As the documentation has it for servers of quinn.
        let key = ring::hkdf::Salt::new(ring::hkdf::HKDF_SHA256, &[]).extract(&secret);
        // It sends Retry to clients whose token it rejects, and a client accepts only one Retry.
        let server = |name| {
            Backend::with(&leaf, name, true, |config| {
                config.token_key(Arc::new(key.clone()));
            })
        };
        let (one, two) = (server("1"), server("2"));
        let gateway = gateway(
            &format!("{{ to = \"edge\", retry_key = \"{file}\" }}"),
            &format!(
                "[upstream.edge]\nservers = [\"{}\", \"{}\"]",
                one.url(),
                two.url()
            ),
        );
        let dropped = |reason: &str| {
            let reason = format!("reason=\"{reason}\"");
            metric(&gateway, "datagrams_dropped_total", &reason)
        };
        // Which server a connection gets is drawn.
        let mut names = BTreeSet::new();
        let mut connections = 0;
        while connections < 16 || names.len() < 2 {
            connections += 1;
            let client = client(&leaf);
            let connection = connect(&client, gateway.address()).await;
            let name = exchange(&connection, &vec![1; 100_000]).await;
            client
                .rebind(UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap())
                .unwrap();
            assert_eq!(exchange(&connection, b"after").await, name);
            names.insert(name);
        }
        // A client without a timely response sends its first packet again.
        assert!(dropped("retry") >= 16, "{}", dropped("retry"));
        for reason in ["retry_token", "amplification", "malformed"] {
            assert_eq!(dropped(reason), 0, "{reason}");
        }
    });
}

#[test]
fn an_http3_listener_accepts_tokens_of_the_gateway() {
    let (_folder, file, _) = secret();
    let server = Served::new(&format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\ntls = {{ self_signed = true }}\nhttp3 = {{ retry_key = \"{file}\" }}\n\
        [[route]]\nrespond = {{ body = \"hello\" }}\n"
    ));
    let between = Served::new(&format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\nquic = {{ to = \"udp://{}\", retry_key = \"{file}\" }}\n\
        [admin]\naddress = \"127.0.0.1:0\"\n",
        server.address()
    ));
    let client = crate::server::gateway(
        &[&format!("https://{}", between.address())],
        "protocol = \"http3\"\ntls = { insecure = true }",
    );
    for _ in 0..3 {
        let received = plimsoll_testkit::http::get(client.address(), "/");
        assert_eq!((received.status, received.text()), (200, "hello"));
    }
    assert!(metric(&between, "datagrams_dropped_total", "\"retry\"") >= 1);
    assert_eq!(metric(&between, "flows_total", "quic"), 1);
}

#[test]
fn a_token_is_rejected_from_another_address_and_required_for_a_flow() {
    let peer = udp::Peer::new("x");
    let (_folder, file, _) = secret();
    let gateway = gateway(
        &format!(
            "{{ to = \"udp://{}\", retry_key = \"{file}\" }}",
            peer.address
        ),
        "",
    );
    let at = gateway.address();
    let client = udp::client();
    for number in 0..100 {
        let mut packet = initial(&[]);
        packet[6] = number;
        client.send_to(&packet, at).unwrap();
        let mut buffer = [0; 2048];
        let (length, _) = client.recv_from(&mut buffer).unwrap();
        // No more than a third of what came, so that forged addresses are of no use.
        assert!(buffer[0] >= 0xf0 && length < 200, "{length}");
        assert_eq!(buffer[5..10], [4, 9, 9, 9, 9], "the client's connection ID");
        if number < 99 {
            continue;
        }
        assert_eq!(metric(&gateway, "flows_total", "quic"), 0);
        let (ours, rest) = buffer[11..length].split_at(8);
        let token = &rest[..rest.len() - 16];
        let mut second = initial(token);
        second[6..14].copy_from_slice(ours);
        let other = udp::client();
        other.send_to(&second, at).unwrap();
        let dropped = |reason: &str| metric(&gateway, "datagrams_dropped_total", reason);
        eventually(|| dropped("retry_token") == 1);
        assert_eq!(metric(&gateway, "flows_total", "quic"), 0);
        client.send_to(&second, at).unwrap();
        eventually(|| metric(&gateway, "flows_total", "quic") == 1);
    }
}

/// A packet with a token that looks like the first of a connection, and cannot be decrypted.
fn initial(token: &[u8]) -> Vec<u8> {
    let mut packet = packet(0xc0, 1, 19);
    packet.extend(u16::try_from(0x4000 | token.len()).unwrap().to_be_bytes());
    packet.extend(token);
    packet.extend((0x4000_u16 + 1200).to_be_bytes());
    packet.resize(packet.len() + 1200, 7);
    packet
}

/// A packet with a long header and a connection ID of eight bytes, filled up to `length`.
fn packet(first: u8, version: u32, length: usize) -> Vec<u8> {
    let mut packet = vec![first];
    packet.extend(version.to_be_bytes());
    packet.push(8);
    packet.extend([7; 8]);
    packet.push(4);
    packet.extend([9; 4]);
    packet.resize(length, 0);
    packet
}

#[test]
fn versions_that_a_server_does_not_know_are_negotiated() {
    run(async {
        let leaf = Leaf::self_signed(&["localhost"]);
        let backend = Backend::new(&leaf, "", false);
        let gateway = gateway(&format!("\"{}\"", backend.url()), "");
        let at = gateway.address();
        let negotiated = tokio::task::spawn_blocking(move || {
            let client = udp::client();
            client
                .send_to(&packet(0xc0, 0x0a0a_0a0a, 1200), at)
                .unwrap();
            let mut buffer = [0; 2048];
            let (length, _) = client.recv_from(&mut buffer).unwrap();
            buffer[..length].to_vec()
        });
        let negotiated = negotiated.await.unwrap();
        // Version 0, and the client's two IDs the other way round (RFC 8999, section 6).
        assert!(negotiated[0] >= 0x80);
        assert_eq!(negotiated[1..5], [0; 4]);
        assert_eq!(negotiated[5..10], [4, 9, 9, 9, 9]);
        assert_eq!(negotiated[10..19], [8, 7, 7, 7, 7, 7, 7, 7, 7]);
    });
}

#[test]
fn forged_packets_reach_no_server_and_are_counted() {
    let peer = udp::Peer::new("x");
    let gateway = gateway(&format!("\"udp://{}\"", peer.address), "");
    let at = gateway.address();
    let client = udp::client();
    let dropped = |reason: &str| metric(&gateway, "datagrams_dropped_total", reason);
    for (datagram, reason) in [
        (vec![0x40; 60], "unknown_connection"),
        (packet(0xe0, 1, 1200), "unknown_connection"),
        (packet(0xc0, 1, 1199), "short_initial"),
        (packet(0xf0, 1, 1200), "malformed"),
        (packet(0xc0, 0, 1200), "malformed"),
        (vec![0xc0, 0, 0], "malformed"),
        (Vec::new(), "malformed"),
    ] {
        let before = dropped(reason);
        client.send_to(&datagram, at).unwrap();
        eventually(|| dropped(reason) == before + 1);
    }
    assert_eq!(metric(&gateway, "flows_total", "quic"), 0);
}

#[test]
fn a_client_that_has_not_proven_its_address_gets_three_times_what_it_has_sent() {
    // A server that does not keep to the rule: it answers each datagram by itself and a long name before.
    let name: &'static str = "x".repeat(3000).leak();
    let peer = udp::Peer::new(name);
    let gateway = gateway(&format!("\"udp://{}\"", peer.address), "");
    let client = udp::client();
    // 3000 + 1200 of 3600 bytes.
    client
        .send_to(&packet(0xc0, 1, 1200), gateway.address())
        .unwrap();
    eventually(|| metric(&gateway, "datagrams_dropped_total", "amplification") == 1);
}

#[test]
fn every_key_is_in_the_schema_and_errors_are_reported() {
    let text = r#"
[[listen]]
address = "127.0.0.1:0"
quic = "udp://10.0.0.1:443"

[[listen]]
address = "127.0.0.1:0"
quic = { to = "edge", flows = 100, flows_per_source = 10, idle_timeout = "10s" }

[upstream.edge]
servers = ["udp://10.0.0.1:443", { url = "udp://10.0.0.2:443", weight = 2 }]
"#;
    let plan = compiled(text);
    assert!(plan.is_ok(), "{:?}", plan.err());
    let document = serde_json::to_value(toml::from_str::<toml::Table>(text).unwrap()).unwrap();
    let schema: serde_json::Value = serde_json::from_str(plimsoll_server::config::SCHEMA).unwrap();
    jsonschema::validate(&schema, &document).unwrap();
    let short = r#"
[[listen]]
address = "127.0.0.1:0"
quic = { to = "udp://10.0.0.1:443", retry_key = "/dev/null" }
"#;
    let problems = compiled(short).unwrap_err();
    assert!(
        problems[0].to_string().contains("has fewer than 32 bytes"),
        "{}",
        problems[0]
    );
    let wrong = "[[listen]]\naddress = \"127.0.0.1:0\"\nquic = { amplification = 3 }\n";
    let problems = compiled(wrong).unwrap_err();
    let shown: Vec<String> = problems.iter().map(ToString::to_string).collect();
    let shown = shown.join("\n");
    assert!(shown.contains("`to` is missing"), "{shown}");
    assert!(shown.contains("unknown key"), "{shown}");
}
