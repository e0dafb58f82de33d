//! QUIC that ends at the gateway and begins anew, between a stock client and a stock server.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use plimsoll_testkit::{Authority, MaterialFiles, until};
use quinn::crypto::rustls::QuicServerConfig;
use quinn::{Connection, ConnectionError, ReadError, WriteError};
use tokio::sync::mpsc;
use tokio::task::block_in_place;

use crate::quic::{Gateway, client_of, run};
use crate::server::{Served, compiled};
use crate::tcp::metric;

const ANY: (Ipv4Addr, u16) = (Ipv4Addr::LOCALHOST, 0);

/// A client, a gateway and a server; the test plays both ends.
struct Relayed {
    client: Connection,
    server: Connection,
    gateway: Gateway,
    /// Keeps the sockets.
    _endpoints: (quinn::Endpoint, Backend),
}

struct Backend {
    endpoint: quinn::Endpoint,
    address: SocketAddr,
}

impl Backend {
    fn new(authority: &Authority, name: &str) -> Self {
        let mut tls = authority.issue(&[name]).server_config();
        tls.alpn_protocols = vec![b"other".to_vec(), b"echo".to_vec()];
        let crypto = QuicServerConfig::try_from(tls).unwrap();
        let config = quinn::ServerConfig::with_crypto(Arc::new(crypto));
        let endpoint = quinn::Endpoint::server(config, ANY.into()).unwrap();
        let address = endpoint.local_addr().unwrap();
        Self { endpoint, address }
    }
}

fn client(authority: &Authority) -> quinn::Endpoint {
    client_of(authority.der(), b"echo")
}

fn gateway(
    authority: &Authority,
    files: &MaterialFiles,
    server: SocketAddr,
    more: &str,
) -> Gateway {
    let leaf = authority.issue(&["localhost"]);
    let certificate = files.write("gateway.pem", leaf.pem());
    let key = files.write("gateway.key", leaf.key_pem());
    let ca = files.write("ca.pem", &authority.pem());
    Gateway::new(&format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\ntls = {{ cert = \"{}\", key = \"{}\" }}\n\
        quic = {{ to = \"udp://{server}\", server_name = \"server.example\", ca = \"{}\", alpn = [\"echo\", \"other\"]{more} }}\n\
        [admin]\naddress = \"127.0.0.1:0\"\n",
        certificate.display(),
        key.display(),
        ca.display(),
    ))
}

impl Relayed {
    async fn new(more: &str) -> Self {
        let (authority, files) = (Authority::new(), MaterialFiles::new());
        let backend = Backend::new(&authority, "server.example");
        let gateway = gateway(&authority, &files, backend.address, more);
        let endpoint = client(&authority);
        let connecting = endpoint.connect(gateway.address(), "localhost").unwrap();
        let accepting = async { backend.endpoint.accept().await.unwrap().await.unwrap() };
        let (client, server) = tokio::join!(async { connecting.await.unwrap() }, accepting);
        Self {
            client,
            server,
            gateway,
            _endpoints: (endpoint, backend),
        }
    }

    fn metric(&self, name: &str, label: &str) -> u64 {
        block_in_place(|| metric(&self.gateway, name, label))
    }
}

/// More than all windows on the way.
fn long() -> Bytes {
    (0..8_u32 << 20)
        .map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect()
}

/// Sends `bytes` by a stream in both directions, of which `to` sends back what it gets.
async fn echoed(from: &Connection, to: &Connection, bytes: &Bytes) -> Vec<u8> {
    let asking = async {
        let (mut send, mut receive) = from.open_bi().await.unwrap();
        let sending = async {
            send.write_chunk(bytes.clone()).await.unwrap();
            send.finish().unwrap();
        };
        tokio::join!(sending, async {
            receive.read_to_end(usize::MAX).await.unwrap()
        })
        .1
    };
    let answering = async {
        let (mut send, mut receive) = to.accept_bi().await.unwrap();
        while let Some(chunk) = receive.read_chunk(usize::MAX, true).await.unwrap() {
            send.write_chunk(chunk.bytes).await.unwrap();
        }
        send.finish().unwrap();
    };
    tokio::join!(asking, answering).0
}

async fn one_way(from: &Connection, to: &Connection, bytes: &Bytes) -> Vec<u8> {
    let sending = async {
        let mut send = from.open_uni().await.unwrap();
        send.write_chunk(bytes.clone()).await.unwrap();
        send.finish().unwrap();
    };
    let receiving = async {
        let mut receive = to.accept_uni().await.unwrap();
        receive.read_to_end(usize::MAX).await.unwrap()
    };
    tokio::join!(sending, receiving).1
}

#[test]
fn streams_and_datagrams_of_either_side_pass_and_so_does_the_end() {
    run(async {
        let relayed = Relayed::new("").await;
        let (client, server) = (&relayed.client, &relayed.server);
        let (short, long) = (Bytes::from_static(b"hello"), long());
        for (from, to) in [(client, server), (server, client)] {
            for bytes in [&short, &long, &Bytes::new()] {
                assert!(echoed(from, to, bytes).await == *bytes);
                assert!(one_way(from, to, bytes).await == *bytes);
            }
            from.send_datagram(short.clone()).unwrap();
            assert_eq!(to.read_datagram().await.unwrap(), short);
        }
        let tls = server.handshake_data().unwrap();
        let tls = tls
            .downcast::<quinn::crypto::rustls::HandshakeData>()
            .unwrap();
        assert_eq!(tls.protocol.as_deref(), Some(&b"echo"[..]));
        assert_eq!(tls.server_name.as_deref(), Some("server.example"));
        client.close(42_u32.into(), b"enough");
        let ConnectionError::ApplicationClosed(close) = server.closed().await else {
            panic!("not closed by the application");
        };
        assert_eq!(
            (close.error_code, &*close.reason),
            (42_u32.into(), &b"enough"[..])
        );
        until(|| relayed.metric("flows_ended_total", "client_closed") == 1).await;
    });
}

#[test]
fn what_a_server_has_sent_arrives_before_its_connection_ends() {
    run(async {
        let relayed = Relayed::new("").await;
        let (client, server) = (&relayed.client, &relayed.server);
        let bytes = long();
        let sending = async {
            let mut send = server.open_uni().await.unwrap();
            send.write_chunk(bytes.clone()).await.unwrap();
            send.finish().unwrap();
            // It is all acknowledged, by the gateway.
            assert_eq!(send.stopped().await, Ok(None));
            server.close(7_u32.into(), b"");
        };
        let receiving = async {
            let mut receive = client.accept_uni().await.unwrap();
            receive.read_to_end(usize::MAX).await.unwrap()
        };
        assert!(tokio::join!(sending, receiving).1 == bytes);
        let ConnectionError::ApplicationClosed(close) = client.closed().await else {
            panic!("not closed by the application");
        };
        assert_eq!(close.error_code, 7_u32.into());
    });
}

#[test]
fn resets_and_requests_to_stop_keep_their_codes() {
    run(async {
        let relayed = Relayed::new("").await;
        for (from, to) in [
            (&relayed.client, &relayed.server),
            (&relayed.server, &relayed.client),
        ] {
            let (mut send, mut receive) = from.open_bi().await.unwrap();
            send.write_all(b"begun").await.unwrap();
            let (mut other_send, mut other_receive) = to.accept_bi().await.unwrap();
            other_receive.read_exact(&mut [0; 5]).await.unwrap();
            send.reset(11_u32.into()).unwrap();
            let error = other_receive.read_chunk(10, true).await.unwrap_err();
            assert_eq!(error, ReadError::Reset(11_u32.into()));
            // The other direction goes on.
            other_send.write_all(b"still").await.unwrap();
            receive.read_exact(&mut [0; 5]).await.unwrap();
            receive.stop(12_u32.into()).unwrap();
            assert_eq!(other_send.stopped().await, Ok(Some(12_u32.into())));
            let error = other_send.write_all(b"more").await.unwrap_err();
            assert_eq!(error, WriteError::Stopped(12_u32.into()));
        }
    });
}

#[test]
fn a_side_that_does_not_read_stops_the_other_one() {
    run(async {
        let relayed = Relayed::new("").await;
        let written = Arc::new(AtomicUsize::new(0));
        let (count, client) = (Arc::clone(&written), relayed.client.clone());
        let writing = tokio::spawn(async move {
            let mut send = client.open_uni().await.unwrap();
            loop {
                if let Err(error) = send.write_all(&vec![0; 64 * 1024]).await {
                    return error;
                }
                count.fetch_add(64 * 1024, Ordering::SeqCst);
            }
        });
        let mut unread = relayed.server.accept_uni().await.unwrap();
        for _ in 0..50 {
            // Others go on meanwhile.
            let bytes = Bytes::from_static(b"hello");
            assert!(echoed(&relayed.client, &relayed.server, &bytes).await == bytes);
        }
        assert!(written.load(Ordering::SeqCst) < 8 << 20, "{written:?}");
        // And it ends although nothing was read.
        unread.stop(3_u32.into()).unwrap();
        assert_eq!(writing.await.unwrap(), WriteError::Stopped(3_u32.into()));
    });
}

/// How a connection ends to a server whose certificate is wrong, or that is not there.
async fn refused(name: &str, authority: &Authority, label: &str) {
    let (own, files) = (Authority::new(), MaterialFiles::new());
    let backend = Backend::new(authority, name);
    let gateway = gateway(&own, &files, backend.address, "");
    let accepting = backend.endpoint.clone();
    tokio::spawn(async move {
        while let Some(incoming) = accepting.accept().await {
            incoming.await.ok();
        }
    });
    let endpoint = client(&own);
    let connecting = endpoint.connect(gateway.address(), "localhost").unwrap();
    let ConnectionError::ApplicationClosed(close) = connecting.await.unwrap().closed().await else {
        panic!("not closed by the application");
    };
    assert_eq!(&*close.reason, b"no server is available");
    until(|| block_in_place(|| metric(&gateway, "flows_ended_total", label) == 1)).await;
}

#[test]
fn servers_have_to_show_their_certificates() {
    run(async {
        refused("server.example", &Authority::new(), "connect_failed").await;
    });
}

#[test]
fn floods_of_resets_end_a_connection() {
    run(async {
        let relayed = Relayed::new(", resets = 20").await;
        let client = relayed.client.clone();
        let flooding = tokio::spawn(async move {
            loop {
                let Ok(mut send) = client.open_uni().await else {
                    return;
                };
                send.write_all(b"x").await.ok();
                send.reset(1_u32.into()).ok();
            }
        });
        let (streams, mut accepted) = mpsc::channel(64);
        let server = relayed.server.clone();
        tokio::spawn(async move {
            while let Ok(stream) = server.accept_uni().await {
                streams.send(stream).await.ok();
            }
        });
        // The server reads, so that streams can be opened.
        tokio::spawn(async move {
            while let Some(mut stream) = accepted.recv().await {
                stream.read_to_end(10).await.ok();
            }
        });
        let ConnectionError::ApplicationClosed(close) = relayed.client.closed().await else {
            panic!("not closed by the application");
        };
        assert_eq!(&*close.reason, b"too many streams were reset");
        flooding.await.unwrap();
        until(|| relayed.metric("flows_ended_total", "reset_flood") == 1).await;
    });
}

#[test]
fn connections_are_told_when_the_gateway_ends() {
    run(async {
        let relayed = Relayed::new("").await;
        let Relayed {
            client,
            server,
            gateway,
            _endpoints,
        } = relayed;
        drop(gateway);
        for connection in [client, server] {
            let ended = connection.closed().await;
            assert!(
                matches!(ended, ConnectionError::ApplicationClosed(_)),
                "{ended}"
            );
        }
    });
}

#[test]
fn every_key_is_in_the_schema_and_errors_are_reported() {
    let text = r#"
[[listen]]
address = "127.0.0.1:0"
tls = { self_signed = true }
quic = { to = "udp://10.0.0.1:443", server_name = "a.example", alpn = ["h3", "moq"], streams = 10, datagram_buffer = "64KiB", idle_timeout = "10s", resets = 10 }
"#;
    let plan = compiled(text);
    assert!(plan.is_ok(), "{:?}", plan.err());
    let document = serde_json::to_value(toml::from_str::<toml::Table>(text).unwrap()).unwrap();
    let schema: serde_json::Value = serde_json::from_str(plimsoll_server::config::SCHEMA).unwrap();
    jsonschema::validate(&schema, &document).unwrap();
    let wrong = "[[listen]]\naddress = \"127.0.0.1:0\"\ntls = { self_signed = true }\n\
        quic = { alpn = [], server_name = \"-\", ca = \"nowhere.pem\", flows = 3 }\n";
    let problems = compiled(wrong).unwrap_err();
    let shown: Vec<String> = problems.iter().map(ToString::to_string).collect();
    let shown = shown.join("\n");
    for part in [
        "`to` is missing",
        "`alpn` names no protocol",
        "`-` is neither a host nor an address",
        "nowhere.pem",
        "unknown key",
    ] {
        assert!(shown.contains(part), "no {part} in {shown}");
    }
    let twice = format!(
        "{text}[[listen]]\naddress = \"127.0.0.1:4433\"\nquic = \"udp://10.0.0.1:443\"\n\
        [[listen]]\naddress = \"127.0.0.1:4433\"\ntls = {{ self_signed = true }}\nquic = \"udp://10.0.0.1:443\"\n"
    );
    assert!(compiled(&twice).is_err());
    // A gateway with one of them starts beside HTTP/3 at the same number of another address.
    drop(Served::new(text));
}
