//! TCP connections that are forwarded without being understood.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use plimsoll_testkit::http::{connect, get};
use plimsoll_testkit::{Leaf, MaterialFiles, eventually, refused_address};

use crate::server::{Served, compiled, named};

/// A server that says its name, then sends back what it gets, and at the end of that says goodbye.
struct Peer {
    address: SocketAddr,
    accepted: Arc<AtomicUsize>,
}

impl Peer {
    fn new(name: &'static str) -> Self {
        Self::at(Ipv4Addr::LOCALHOST, name)
    }

    fn at(host: Ipv4Addr, name: &'static str) -> Self {
        let listener = TcpListener::bind((host, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let accepted = Arc::<AtomicUsize>::default();
        let counted = Arc::clone(&accepted);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                counted.fetch_add(1, Ordering::SeqCst);
                thread::spawn(move || {
                    stream.write_all(name.as_bytes()).unwrap();
                    let mut buffer = vec![0; 32 * 1024];
                    while let Ok(length @ 1..) = stream.read(&mut buffer) {
                        if stream.write_all(&buffer[..length]).is_err() {
                            return;
                        }
                    }
                    stream.write_all(b"bye").ok();
                });
            }
        });
        Self { address, accepted }
    }

    fn url(&self) -> String {
        format!("tcp://{}", self.address)
    }

    fn accepted(&self) -> usize {
        self.accepted.load(Ordering::SeqCst)
    }
}

/// A gateway with `[admin]`, whose first listener has this value of `tcp`.
fn gateway(tcp: &str, more: &str) -> Served {
    Served::new(&configuration(tcp, more))
}

fn configuration(tcp: &str, more: &str) -> String {
    format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\ntcp = {tcp}\n[admin]\naddress = \"127.0.0.1:0\"\n{more}\n"
    )
}

/// A metric of the listener, by the end of its labels.
pub(crate) fn metric(gateway: &Served, name: &str, label: &str) -> u64 {
    let text = get(*gateway.addresses.last().unwrap(), "/metrics").into_text();
    let line = text.lines().find(|line| {
        let is_named = line
            .strip_prefix("plimsoll_gateway_")
            .is_some_and(|line| line.starts_with(&format!("{name}{{")));
        is_named && line.contains(label)
    });
    let line = line.unwrap_or_else(|| panic!("no {name} {label} in {text}"));
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

/// Everything received up to the end, after `bytes` were sent and ended.
fn talk(address: SocketAddr, bytes: &[u8]) -> String {
    try_talk(address, bytes).unwrap()
}

/// [`talk`] with a listener that resets connections while it has no server for them.
fn try_talk(address: SocketAddr, bytes: &[u8]) -> io::Result<String> {
    let mut stream = connect(address);
    stream.write_all(bytes)?;
    stream.shutdown(Shutdown::Write)?;
    io::read_to_string(stream)
}

#[test]
fn each_direction_ends_by_itself_and_a_line_is_logged() {
    let peer = Peer::new("hello ");
    let files = MaterialFiles::new();
    let log = files.path("access.log");
    let gateway = gateway(
        &format!("\"{}\"", peer.url()),
        &format!("[log]\nfile = \"{}\"", log.display()),
    );
    let writer = gateway.log().unwrap();
    let path = log.clone();
    let writer = writer
        .write_to(Box::new(move || {
            Ok(Box::new(std::fs::File::create(&path)?) as Box<dyn Write + Send>)
        }))
        .unwrap();
    // The server speaks first, and answers after the client's end.
    assert_eq!(talk(gateway.address(), b"abc"), "hello abcbye");
    eventually(|| metric(&gateway, "flows_ended_total", "client_closed") == 1);
    assert_eq!(metric(&gateway, "flow_bytes_total", "received"), 3);
    assert_eq!(metric(&gateway, "flow_bytes_total", "sent"), 12);
    assert_eq!(metric(&gateway, "flows_active", ""), 0);
    writer.finish();
    let line = std::fs::read_to_string(&log).unwrap();
    let line = line.lines().find(|line| line.contains("tcp")).unwrap();
    let line: serde_json::Value = serde_json::from_str(line).unwrap();
    assert_eq!(line["protocol"], "tcp");
    assert_eq!(line["server"], peer.url());
    assert_eq!(line["attempts"], 1);
    assert_eq!(line["bytes_received"], 3);
    assert_eq!(line["bytes"], 12);
    assert_eq!(line["end"], "client_closed");
    assert!(line["connect_us"].is_u64());
}

#[test]
fn what_is_long_passes_whole_in_both_directions() {
    // Far beyond what is copied before the rest is spliced, and beyond the buffers of the sockets.
    const TOTAL: usize = 48 << 20;
    let peer = Peer::new("");
    let gateway = gateway(&format!("\"{}\"", peer.url()), "");
    let stream = connect(gateway.address());
    let mut writing = stream.try_clone().unwrap();
    let bytes: Vec<u8> = (0_u8..=250).cycle().take(TOTAL).collect();
    let sent = bytes.clone();
    let writer = thread::spawn(move || {
        writing.write_all(&sent).unwrap();
        writing.shutdown(Shutdown::Write).unwrap();
    });
    let mut received = Vec::new();
    (&stream).read_to_end(&mut received).unwrap();
    writer.join().unwrap();
    assert_eq!(received.len(), TOTAL + 3);
    assert!(received[..TOTAL] == bytes);
    eventually(|| metric(&gateway, "flow_bytes_total", "received") == TOTAL as u64);
}

#[test]
fn servers_get_connections_by_weight_and_failing_ones_are_left_out() {
    let (one, two) = (Peer::new("1"), Peer::new("2"));
    let gateway = gateway(
        "\"db\"",
        &format!(
            "[upstream.db]\nservers = [{{ url = \"{}\", weight = 3 }}, \"{}\", \"tcp://{}\"]\n\
            retry = {{ retries = 2 }}\nhealth = {{ interval = \"20ms\", unhealthy = 1 }}",
            one.url(),
            two.url(),
            refused_address()
        ),
    );
    // One that refuses is not chosen again for the same connection, and then is found to be unhealthy.
    assert!(["1bye", "2bye"].contains(&&*talk(gateway.address(), b"")));
    eventually(|| metric(&gateway, "server_up", &refused_text(&gateway)) == 0);
    let replies: Vec<_> = (0..40).map(|_| talk(gateway.address(), b"")).collect();
    let first = replies.iter().filter(|text| *text == "1bye").count();
    assert_eq!(first, 30, "{replies:?}");
}

/// The label of the server that nothing listens at: the one that is not up.
fn refused_text(gateway: &Served) -> String {
    let text = get(*gateway.addresses.last().unwrap(), "/upstreams").into_text();
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    let servers = document["upstreams"][0]["servers"].as_array().unwrap();
    servers[2]["server"].as_str().unwrap().to_owned()
}

#[test]
fn a_client_is_reset_when_no_server_can_be_connected_to() {
    let gateway = gateway(&format!("\"tcp://{}\"", refused_address()), "");
    let mut stream = connect(gateway.address());
    let error = stream.read(&mut [0; 8]).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
    eventually(|| metric(&gateway, "flows_ended_total", "connect_failed") == 1);
}

#[test]
fn a_reset_is_passed_on_and_silence_ends_a_connection() {
    let peer = Peer::new("hello");
    let gateway = gateway(
        &format!("{{ to = \"{}\", idle_timeout = \"200ms\" }}", peer.url()),
        "",
    );
    let mut stream = connect(gateway.address());
    stream.read_exact(&mut [0; 5]).unwrap();
    let error = stream.read(&mut [0; 8]).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
    eventually(|| metric(&gateway, "flows_ended_total", "idle_timeout") == 1);
    let mut stream = connect(gateway.address());
    stream.read_exact(&mut [0; 5]).unwrap();
    socket2::SockRef::from(&stream)
        .set_linger(Some(Duration::ZERO))
        .unwrap();
    drop(stream);
    eventually(|| metric(&gateway, "flows_ended_total", "client_reset") == 1);
}

#[test]
fn servers_see_the_client_by_the_header_of_a_proxy() {
    let peer = Peer::new("");
    for (version, start) in [
        ("v1", b"PROXY TCP4 127.0.0.1 127.0.0.1 ".to_vec()),
        ("v2", b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c".to_vec()),
    ] {
        let tcp = format!(
            "{{ to = \"{}\", proxy_protocol = \"{version}\" }}",
            peer.url()
        );
        let gateway = gateway(&tcp, "");
        let mut stream = connect(gateway.address());
        let own = stream.local_addr().unwrap();
        stream.write_all(b"abc").unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let mut received = Vec::new();
        stream.read_to_end(&mut received).unwrap();
        assert!(received.starts_with(&start), "{received:?}");
        assert!(received.ends_with(b"abcbye"), "{received:?}");
        let shown = match version {
            "v1" => format!(" {} {}\r\n", own.port(), gateway.address().port()).into_bytes(),
            _ => [
                own.port().to_be_bytes(),
                gateway.address().port().to_be_bytes(),
            ]
            .concat(),
        };
        let found = received.windows(shown.len()).any(|it| it == shown);
        assert!(found, "{received:?}");
    }
}

#[test]
fn a_header_of_a_proxy_in_front_is_passed_on() {
    let peer = Peer::new("");
    let text = format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\nproxied_by = \"127.0.0.1\"\n\
        tcp = {{ to = \"{}\", proxy_protocol = \"v1\" }}\n",
        peer.url()
    );
    let gateway = Served::new(&text);
    let header = "PROXY TCP4 192.0.2.7 198.51.100.1 4711 443\r\n";
    let reply = talk(gateway.address(), format!("{header}abc").as_bytes());
    assert_eq!(reply, format!("{header}abcbye"));
}

#[test]
fn a_listener_answers_with_a_text_and_closes() {
    let text = "[[listen]]\naddress = \"127.0.0.1:0\"\nproxied_by = \"127.0.0.1\"\n\
        tcp = { respond = \"{client} {client.port} at {port}, {map:who}\\n\" }\n\
        [map.who]\nkey = \"{client}\"\nexact = { \"192.0.2.7\" = \"known\" }\ndefault = \"nobody\"\n\
        [admin]\naddress = \"127.0.0.1:0\"\n";
    let gateway = Served::new(text);
    let header = "PROXY TCP4 192.0.2.7 198.51.100.1 4711 443\r\n";
    let expected = "192.0.2.7 4711 at 443, known\n";
    assert_eq!(talk(gateway.address(), header.as_bytes()), expected);
    // What the client has sent, and nobody reads, takes nothing from it.
    let more = format!("{header}{}", "x".repeat(100_000));
    assert_eq!(talk(gateway.address(), more.as_bytes()), expected);
    eventually(|| metric(&gateway, "flows_ended_total", "server_closed") == 2);
    let sent = 2 * expected.len() as u64;
    assert_eq!(metric(&gateway, "flow_bytes_total", "sent"), sent);
}

#[test]
fn a_text_is_for_clients_that_are_let_in() {
    let gateway = gateway(
        "{ respond = \"hello\", addresses = { deny = \"127.0.0.1\" } }",
        "",
    );
    assert_eq!(talk(gateway.address(), b""), "");
    assert_eq!(metric(&gateway, "flows_ended_total", "denied"), 1);
}

#[test]
fn a_reload_cuts_no_connection() {
    let (one, two) = (Peer::new("1"), Peer::new("2"));
    let mut gateway = gateway(&format!("\"{}\"", one.url()), "");
    let mut stream = connect(gateway.address());
    let mut byte = [0];
    stream.read_exact(&mut byte).unwrap();
    gateway.reload(&configuration(&format!("\"{}\"", two.url()), ""));
    assert_eq!(talk(gateway.address(), b""), "2bye");
    stream.write_all(b"x").unwrap();
    stream.read_exact(&mut byte).unwrap();
    assert_eq!(byte, *b"x");
    // A drain lets it end.
    let ending = thread::spawn(move || {
        stream.write_all(b"end").unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    });
    gateway.drain(Duration::from_secs(20));
    assert_eq!(ending.join().unwrap(), "endbye");
}

/// A server of TLS that says its name over HTTP.
fn secure(name: &str, host: &str, files: &MaterialFiles) -> Served {
    let leaf = Leaf::self_signed(&[host]);
    let certificate = files.write(&format!("{name}.pem"), leaf.pem());
    let key = files.write(&format!("{name}.key"), leaf.key_pem());
    Served::new(&format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\ntls = {{ cert = \"{}\", key = \"{}\" }}\n\
        [[route]]\nrespond = {{ body = \"I am {name}\" }}\n",
        certificate.display(),
        key.display()
    ))
}

/// The output of `openssl s_client` for a server of that name.
fn s_client(address: SocketAddr, name: &str, more: &[&str]) -> String {
    let mut child = Command::new("openssl")
        .args(["s_client", "-quiet", "-connect", &address.to_string()])
        .args(["-servername", name])
        .args(more)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("openssl is installed (`cargo xtask test` does it)");
    let request = b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    // A rejected client does not read it.
    child.stdin.take().unwrap().write_all(request).ok();
    let output = child.wait_with_output().unwrap();
    [output.stdout, output.stderr]
        .map(|it| String::from_utf8_lossy(&it).into_owned())
        .concat()
}

#[test]
fn tls_clients_reach_the_server_of_the_name_they_request() {
    let files = MaterialFiles::new();
    let (a, b) = (
        secure("a", "a.example", &files),
        secure("b", "*.b.example", &files),
    );
    let old = named("cleartext");
    let text = |fallback: &str| {
        format!(
            "{{ routes = [{{ sni = \"A.example\", to = \"tcp://{}\" }}, {{ sni = \"*.b.example\", alpn = [\"http/1.1\"], to = \"tcp://{}\" }}]{fallback} }}",
            a.address(),
            b.address()
        )
    };
    let gateway = gateway(&text(""), "");
    let at = gateway.address();
    assert!(s_client(at, "a.example", &[]).contains("I am a"));
    let alpn = ["-alpn", "http/1.1"];
    assert!(s_client(at, "x.b.example", &alpn).contains("I am b"));
    // The alert reports the reason to the client.
    let rejected = s_client(at, "x.b.example", &[]);
    assert!(rejected.contains("unrecognized name"), "{rejected}");
    assert_eq!(metric(&gateway, "flows_ended_total", "no_route"), 1);
    assert_eq!(talk(at, b"GET / HTTP/1.1\r\n\r\n"), "");
    assert_eq!(metric(&gateway, "flows_ended_total", "malformed"), 1);
    let fallback = format!(", to = \"tcp://{}\"", old.address());
    let gateway = Served::new(&configuration(&text(&fallback), ""));
    assert_eq!(get(gateway.address(), "/").text(), "cleartext");
    assert!(s_client(gateway.address(), "a.example", &[]).contains("I am a"));
}

#[test]
fn clients_elsewhere_are_closed_without_a_byte() {
    let server = named("inside");
    let tcp = |addresses: &str| {
        let to = server.address();
        gateway(
            &format!("{{ to = \"tcp://{to}\", addresses = {addresses} }}"),
            "",
        )
    };
    let open = tcp("{ deny = [\"10.0.0.0/8\"] }");
    assert_eq!(get(open.address(), "/").text(), "inside");
    let closed = tcp("{ allow = [\"10.0.0.0/8\"] }");
    let mut bytes = Vec::new();
    connect(closed.address()).read_to_end(&mut bytes).unwrap();
    assert_eq!(bytes, b"");
    assert_eq!(metric(&closed, "flows_ended_total", "denied"), 1);
    assert_eq!(server.open_connections(), 0);
}

#[test]
fn tls_ends_at_a_listener_that_has_a_certificate() {
    let files = MaterialFiles::new();
    let leaf = Leaf::self_signed(&["a.example", "b.example"]);
    let certificate = files.write("gateway.pem", leaf.pem());
    let key = files.write("gateway.key", leaf.key_pem());
    let (a, b) = (named("I am a"), named("I am b"));
    let text = format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\ntls = {{ cert = \"{}\", key = \"{}\" }}\n\
        tcp = {{ routes = [{{ sni = \"b.example\", to = \"tcp://{}\" }}], to = \"tcp://{}\" }}\n\
        [admin]\naddress = \"127.0.0.1:0\"\n",
        certificate.display(),
        key.display(),
        b.address(),
        a.address()
    );
    let gateway = Served::new(&text);
    let at = gateway.address();
    assert!(s_client(at, "a.example", &[]).contains("I am a"));
    assert!(s_client(at, "b.example", &[]).contains("I am b"));
    // Protocols are those of the server, so none is chosen.
    assert!(s_client(at, "a.example", &["-alpn", "imap"]).contains("I am a"));
    eventually(|| metric(&gateway, "flows_ended_total", "server_closed") == 3);
    // Bytes that are not TLS get an alert and reach no server.
    assert!(!talk(at, b"GET / HTTP/1.1\r\n\r\n").contains("HTTP"));
    assert_eq!(metric(&gateway, "flows_total", "tcp"), 3);
}

#[test]
fn tls_begins_at_the_gateway_for_servers_that_want_it() {
    let files = MaterialFiles::new();
    let leaf = Leaf::self_signed(&["inner.test"]);
    let certificate = files.write("inner.pem", leaf.pem());
    let key = files.write("inner.key", leaf.key_pem());
    let server = Served::new(&format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\ntls = {{ cert = \"{}\", key = \"{}\" }}\n\
        [[route]]\nrespond = {{ template = \"{{tls.sni}}\" }}\n",
        certificate.display(),
        key.display()
    ));
    let secure = |tls: &str| {
        gateway(
            "\"db\"",
            &format!(
                "[upstream.db]\nservers = \"tls://{}\"\ntls = {tls}\nhealth = {{ interval = \"20ms\" }}\neject = true",
                server.address()
            ),
        )
    };
    let trusted = secure(&format!(
        "{{ ca = \"{}\", server_name = \"inner.test\" }}",
        certificate.display()
    ));
    // The bytes of a client in the clear, and both ends of the connection.
    let received = get(trusted.address(), "/");
    assert_eq!((received.status, received.text()), (200, "inner.test"));
    eventually(|| metric(&trusted, "flows_active", "tcp") == 0);
    let state = get(trusted.addresses[1], "/upstreams").into_text();
    assert!(
        state.contains(&format!("tls://{}", server.address())),
        "{state}"
    );
    // A server that cannot prove its name gets no byte of a client.
    let wrong = secure(&format!(
        "{{ ca = \"{}\", server_name = \"other.test\" }}",
        certificate.display()
    ));
    let mut stream = connect(wrong.address());
    stream.write_all(b"secret").unwrap();
    let mut received = Vec::new();
    stream.read_to_end(&mut received).ok();
    assert!(received.is_empty(), "{received:?}");
    assert_eq!(metric(&wrong, "flows_total", "tcp"), 1);
    assert_eq!(metric(&wrong, "flow_bytes_total", "received"), 0);
}

/// Two databases with Patroni beside each, of which one responds as the primary.
#[test]
fn connections_follow_the_server_that_says_it_is_the_primary() {
    let other_host = Ipv4Addr::new(127, 0, 0, 2);
    let (one, two) = (Peer::new("1"), Peer::at(other_host, "2"));
    // One server at both addresses, which tells them from each other by the host that is asked for.
    let patroni = |primary: Ipv4Addr| {
        format!(
            "[[listen]]\naddress = \"0.0.0.0:0\"\n\
             [[route]]\npath = \"/primary\"\nhost = \"{primary}\"\nrespond = {{ body = \"running\" }}\n\
             [[route]]\nrespond = {{ status = 503 }}\n"
        )
    };
    let mut agents = Served::new(&patroni(Ipv4Addr::LOCALHOST));
    let gateway = gateway(
        "\"db\"",
        &format!(
            "[upstream.db]\nservers = [\"{}\", \"{}\"]\n\
             health = {{ kind = \"http\", port = {}, path = \"/primary\", interval = \"20ms\", unhealthy = 1, healthy = 1 }}",
            one.url(),
            two.url(),
            agents.address().port()
        ),
    );
    // Between two checks neither may be the primary, and clients are reset.
    let reply = || try_talk(gateway.address(), b"").unwrap_or_default();
    let all_from = |name: &str| (0..4).all(|_| reply() == format!("{name}bye"));
    eventually(|| all_from("1"));
    agents.reload(&patroni(other_host));
    eventually(|| all_from("2"));
}

#[test]
fn every_error_of_the_configuration_is_reported() {
    let text = r#"
[[listen]]
address = "127.0.0.1:0"
tcp = { routes = [{ to = "gone" }, { sni = "a b", to = "web" }], proxy_protocol = "v3", idle = "1s" }

[[listen]]
address = "127.0.0.1:0"
tcp = "http://10.0.0.1"

[[listen]]
address = "127.0.0.1:0"
tcp = {}

[[listen]]
address = "127.0.0.1:0"
tcp = "tcp://10.0.0.1"

[[listen]]
address = "127.0.0.1:0"
tcp = { respond = "{path}", idle_timeout = "1s" }

[[listen]]
address = "127.0.0.1:0"
tcp = { to = "secure", proxy_protocol = "v2" }

[[route]]
proxy = "db"

[upstream.web]
servers = "http://10.0.0.1"

[upstream.db]
servers = "tcp://10.0.0.1:5432"
sticky = "a"
health = { kind = "grpc" }

[upstream.mixed]
servers = ["tcp://10.0.0.1:5432", "http://10.0.0.1"]

[upstream.keyed]
servers = "tcp://10.0.0.1:5432"
by = "path"

[upstream.plain]
servers = "tcp://10.0.0.1:5432"
tls = { insecure = true }

[upstream.secure]
servers = "tls://10.0.0.1:5432"
"#;
    let problems = compiled(text).unwrap_err();
    let shown: Vec<String> = problems
        .iter()
        .map(|it| format!("{}: {} {:?}", it.key, it.message, it.hint))
        .collect();
    let shown = shown.join("\n");
    for part in [
        "listen[1].tcp.routes[1]: `sni` is missing",
        "listen[1].tcp.routes[1].to: there is no upstream `gone`",
        "listen[1].tcp.routes[2].sni: `a b` is not a host",
        "listen[1].tcp.routes[2].to: the servers of `web` are not tcp://",
        "listen[1].tcp.proxy_protocol: is \"v1\" or \"v2\"",
        "listen[1].tcp.idle: unknown key",
        "listen[2].tcp: `http://10.0.0.1` is not a URL of tcp://",
        "listen[3].tcp: `to` is missing",
        "listen[4].tcp: `tcp://10.0.0.1` needs a port",
        "listen[5].tcp.respond: `{path}` is not known of a connection",
        "listen[5].tcp.respond: `idle_timeout` has no effect",
        "upstream.db: `sticky` is for requests",
        "upstream.db.health.kind: is \"tcp\" or \"http\" for servers of tcp://",
        "upstream.mixed: servers of http://, tcp:// (or tls://) and udp:// are mixed",
        "upstream.plain: `tls` is for servers of tls://",
        "listen[6].tcp.proxy_protocol: comes before the first byte",
        "upstream.keyed: `by` is \"source\"",
    ] {
        assert!(shown.contains(part), "{part}\n---\n{shown}");
    }
}

#[test]
fn every_key_is_in_the_schema() {
    let text = r#"
[[listen]]
address = "127.0.0.1:0"
tcp = "tcp://10.0.0.1:5432"

[[listen]]
address = "127.0.0.1:0"
proxied_by = "10.0.0.0/8"
tcp = { to = "db", routes = [{ sni = ["a.example", "*.b.example"], alpn = "h2", to = "db" }], proxy_protocol = "v2", idle_timeout = "1h", addresses = { allow = "10.0.0.0/8", deny = ["10.0.0.9"] } }

[[listen]]
address = "127.0.0.1:0"
tcp = { respond = "{client}", addresses = { allow = "10.0.0.0/8" } }

[[listen]]
address = "127.0.0.1:0"
tcp = "tls://10.0.0.1:5432"

[upstream.db]
servers = ["tcp://10.0.0.1:5432", { url = "tcp://db.internal:5432", weight = 2, zone = "a" }]
tls = { insecure = true, server_name = "db.internal" }
balance = "maglev"
by = "source"
connect_timeout = "1s"
retry = { retries = 3 }
health = { kind = "http", port = 8008, tls = true, path = "/primary", status = 200 }
eject = true
dns = true
"#;
    let plan = compiled(text);
    assert!(plan.is_ok(), "{:?}", plan.err());
    let document = serde_json::to_value(toml::from_str::<toml::Table>(text).unwrap()).unwrap();
    let schema: serde_json::Value = serde_json::from_str(plimsoll_server::config::SCHEMA).unwrap();
    jsonschema::validate(&schema, &document).unwrap();
}

/// Connections to a server that is gone are not counted as its own.
#[test]
fn connections_are_balanced_by_how_many_there_are() {
    let (one, two) = (Peer::new("1"), Peer::new("2"));
    let gateway = gateway(
        "\"db\"",
        &format!(
            "[upstream.db]\nservers = [\"{}\", \"{}\"]\nbalance = \"least_requests\"",
            one.url(),
            two.url()
        ),
    );
    let streams: Vec<TcpStream> = (0..20)
        .map(|_| {
            let mut stream = connect(gateway.address());
            stream.read_exact(&mut [0]).unwrap();
            stream
        })
        .collect();
    assert_eq!((one.accepted(), two.accepted()), (10, 10));
    drop(streams);
}
