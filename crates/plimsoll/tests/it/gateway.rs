//! `plimsoll gateway` as a process: servers that are killed, floods of flows, and a browser in front.

use std::fmt::Write as _;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::process::{Child, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use plimsoll_testkit::{Authority, MaterialFiles, WebSocketOrigin, eventually};
use rustix::process::{Resource, Signal, getrlimit};
use serde_json::Value;

use crate::browser::{Browser, Pictures, get};
use crate::plimsoll::command;
use crate::served::Served;

/// A load run in the background.
fn load(arguments: &[&str]) -> Child {
    command(&[&["load", "--json"], arguments].concat())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// What it has measured.
fn summary(load: Child) -> Value {
    let output = load.wait_with_output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The sum of a metric over its labels, of those lines that contain `label`.
pub(crate) fn metric(admin: &str, name: &str, label: &str) -> u64 {
    let (_, address) = admin.trim_end_matches('/').split_once("://").unwrap();
    let metrics = get(address, "/metrics");
    let lines = metrics.lines();
    let lines = lines.filter(|line| line.starts_with(name) && line.contains(label));
    let values = lines.map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap());
    values.sum()
}

#[test]
fn no_request_fails_when_one_of_three_servers_is_killed() {
    let files = MaterialFiles::new();
    let backend = |name: &str| {
        let text = format!(
            "threads = 1\n[[listen]]\naddress = \"127.0.0.1:0\"\n[[route]]\ndelay = \"2ms\"\nrespond = {{ body = \"{name}\" }}\n"
        );
        let file = files.write(&format!("{name}.toml"), &text);
        Served::start(&["up", &file.to_string_lossy()])
    };
    let mut backends = ["one", "two", "three"].map(backend);
    let servers = backends.each_ref().map(|it| {
        let url = it.url.trim_end_matches('/');
        format!("\"{url}\"")
    });
    let text = format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\n[[route]]\nproxy = \"all\"\n[upstream.all]\nservers = [{}]\n\
         eject = true\n[admin]\naddress = \"127.0.0.1:0\"\n",
        servers.join(", ")
    );
    let file = files.write("gateway.toml", &text);
    let (gateway, [admin]) = Served::with_more(&mut command(&["up", &file.to_string_lossy()]));
    let run = load(&["-z", "5s", "-c", "16", &gateway.url]);
    let responses = |server: usize| {
        let url = backends[server].url.trim_end_matches('/');
        metric(&admin, "plimsoll_gateway_responses_total", url)
    };
    eventually(|| (0..3).all(|server| responses(server) > 50));
    // SIGKILL: connections with requests on them are reset, and new ones are refused.
    let before = responses(0);
    backends[1].child.kill().unwrap();
    backends[1].child.wait().unwrap();
    eventually(|| metric(&admin, "plimsoll_gateway_failures_total", "") > 0);
    let summary = summary(run);
    let counts = &summary["counts"];
    assert_eq!(
        (&counts["errors"], &counts["failed"]),
        (&0.into(), &0.into()),
        "{summary}"
    );
    let metric = |name: &str| metric(&admin, name, "");
    assert!(metric("plimsoll_gateway_retries_total") > 0);
    let url = backends[0].url.trim_end_matches('/');
    assert!(self::metric(&admin, "plimsoll_gateway_responses_total", url) > before);
}

/// What a process holds: resident bytes and descriptors.
fn held(process: &Served) -> (u64, usize) {
    let folder = format!("/proc/{}", process.child.id());
    let status = std::fs::read_to_string(format!("{folder}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes: u64 = line
        .unwrap()
        .trim()
        .trim_end_matches(" kB")
        .parse()
        .unwrap();
    let descriptors = std::fs::read_dir(format!("{folder}/fd")).unwrap().count();
    (kilobytes * 1024, descriptors)
}

/// The first packet of a connection of QUIC: enough of it for a gateway without keys (RFC 9000, section 17.2.2).
fn initial(number: u32) -> Vec<u8> {
    let id = [&[0xab; 4][..], &number.to_be_bytes()].concat();
    let mut packet = vec![0xc0, 0, 0, 0, 1, 8];
    packet.extend(&id);
    packet.push(8);
    packet.extend(&id);
    packet.resize(1200, 0);
    packet
}

/// Ports that the system gives to sockets that ask for none.
fn free_ports() -> u64 {
    let range = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap();
    let mut bounds = range.split_whitespace().map(|it| it.parse().unwrap());
    let (low, high): (u64, u64) = (bounds.next().unwrap(), bounds.next().unwrap());
    high - low
}

/// One flood at a time: both together would need more ports than there are.
static FLOOD: Mutex<()> = Mutex::new(());

/// Floods a listener with flows that go silent, twice; memory, descriptors and the table return.
fn flows_are_swept(protocol: &str, datagram: fn(u32) -> Vec<u8>) {
    let _alone = FLOOD.lock().unwrap_or_else(PoisonError::into_inner);
    // RUN_SLOW_TESTS=1 takes 50,000 flows, or as many as the limit on open files has room for, and the ports of the system
    // beside those of other tests.
    let room = getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX);
    let room = room.saturating_sub(1000).min(free_ports() * 2 / 3);
    let room = u32::try_from(room).unwrap_or(u32::MAX);
    let is_slow = std::env::var_os("RUN_SLOW_TESTS").is_some();
    let (count, idle) = if is_slow {
        (room.min(50_000), 20)
    } else {
        (4_000, 3)
    };
    let sink = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let files = MaterialFiles::new();
    let text = format!(
        "threads = 1\n[[listen]]\naddress = \"127.0.0.1:0\"\n\
         {protocol} = {{ to = \"udp://{}\", idle_timeout = \"{idle}s\", flows = 60000, flows_per_source = 60000 }}\n\
         [limits]\nconnections = 100000\n[admin]\naddress = \"127.0.0.1:0\"\n",
        sink.local_addr().unwrap()
    );
    let file = files.write("gateway.toml", &text);
    let (gateway, [admin]) = Served::with_more(&mut command(&["up", &file.to_string_lossy()]));
    let (_, address) = gateway.url.trim_end_matches('/').split_once("://").unwrap();
    let address: SocketAddr = address.parse().unwrap();
    let metric =
        |name: &str, label: &str| metric(&admin, &format!("plimsoll_gateway_{name}"), label);
    let flood = |begun: u32| {
        for number in 0..count {
            // No two have the same address, whatever their port.
            let [.., high, low] = number.to_be_bytes();
            let client = UdpSocket::bind((Ipv4Addr::new(127, 3, high, low), 0)).unwrap();
            client.send_to(&datagram(begun + number), address).unwrap();
            let sent = u64::from(begun + number + 1);
            if sent % 100 == 0 {
                eventually(|| metric("flows_total", protocol) == sent);
            }
        }
    };
    metric("flows_active", protocol);
    let (before, descriptors) = held(&gateway);
    let mut last = 0;
    for round in 1..=2 {
        flood((round - 1) * count);
        let (_, open) = held(&gateway);
        assert!(open > descriptors, "each flow has a socket");
        assert_eq!(metric("datagrams_dropped_total", protocol), 0);
        let expected = u64::from(round * count);
        eventually(|| metric("flows_ended_total", "idle_timeout") == expected);
        assert_eq!(metric("flows_active", protocol), 0);
        eventually(|| held(&gateway).1 <= descriptors);
        let (after, _) = held(&gateway);
        last = after;
    }
    // Pages that the program has not given back are no more than a part of those of the flows: 200 bytes each.
    let room = 2 * 1024 * 1024 + u64::from(count) * 50;
    assert!(last <= before + room, "{before} before, {last} after");
}

#[test]
fn memory_and_descriptors_return_after_a_flood_of_datagrams() {
    flows_are_swept("udp", |_| vec![0]);
}

#[test]
fn memory_and_descriptors_return_after_a_flood_of_quic_connections() {
    flows_are_swept("quic", initial);
}

/// A server of events: the second one is sent when the test permits it.
struct Events {
    address: SocketAddr,
    go: std::sync::mpsc::Sender<()>,
}

impl Events {
    fn new() -> Self {
        use std::io::{BufRead, BufReader, Write};
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let (go, gone) = std::sync::mpsc::channel();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let lines = BufReader::new(stream.try_clone().unwrap()).lines();
                lines
                    .take_while(|line| !line.as_ref().unwrap().is_empty())
                    .for_each(drop);
                stream
                    .write_all(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-store\r\n\r\ndata: one\n\n")
                    .unwrap();
                if gone.recv_timeout(Duration::from_mins(1)).is_err() {
                    return;
                }
                // The page may be gone.
                stream.write_all(b"data: two\n\n").ok();
            }
        });
        Self { address, go }
    }
}

/// The hash of a certificate's key, by which Chromium trusts it.
fn key_hash(certificate: &str) -> String {
    let script = format!(
        "openssl x509 -in {certificate} -pubkey -noout | openssl pkey -pubin -outform der | openssl dgst -sha256 -binary | openssl base64"
    );
    let output = std::process::Command::new("sh")
        .args(["-c", &script])
        .output();
    let output = output.expect("openssl is installed by `cargo xtask test`");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
fn a_browser_speaks_websocket_events_and_http3_through_the_gateway() {
    let (sockets, events) = (WebSocketOrigin::echo(), Events::new());
    let (authority, files) = (Authority::new(), MaterialFiles::new());
    let leaf = authority.issue(&["localhost", "127.0.0.1"]);
    let certificate = files.write("cert.pem", leaf.pem());
    let key = files.write("key.pem", leaf.key_pem());
    let backend = Served::start(&["up", &{
        let text = "[[listen]]\naddress = \"127.0.0.1:0\"\n[[route]]\nrespond = { body = \"<!doctype html><title>behind</title>\", type = \"text/html\" }\n";
        files
            .write("backend.toml", text)
            .to_string_lossy()
            .into_owned()
    }]);
    let mut text = format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\n[[listen]]\naddress = \"127.0.0.1:0\"\nhttp3 = true\n\
         tls = {{ cert = \"{}\", key = \"{}\" }}\n",
        certificate.display(),
        key.display()
    );
    for (path, to) in [
        ("/socket", format!("http://{}", sockets.address())),
        ("/events", format!("http://{}", events.address)),
        ("/", backend.url.trim_end_matches('/').to_owned()),
    ] {
        write!(text, "[[route]]\nprefix = \"{path}\"\nproxy = \"{to}\"\n").unwrap();
    }
    let file = files.write("gateway.toml", &text);
    let (gateway, [secure]) = Served::with_more(&mut command(&["up", &file.to_string_lossy()]));
    let (_, address) = secure.trim_end_matches('/').split_once("://").unwrap();
    let mut browser = Browser::with(&[
        format!("--origin-to-force-quic-on={address}"),
        format!(
            "--ignore-certificate-errors-spki-list={}",
            key_hash(&certificate.to_string_lossy())
        ),
    ]);
    for (url, protocol) in [(&gateway.url, "http/1.1"), (&secure, "h3")] {
        browser.open(url);
        eventually(|| browser.evaluate("document.title") == "behind");
        let used = "performance.getEntriesByType('navigation')[0].nextHopProtocol";
        assert_eq!(browser.evaluate(used), protocol);
        let echoed = "new Promise(done => {
            const socket = new WebSocket(location.origin.replace('http', 'ws') + '/socket');
            const long = 'long'.repeat(50000);
            socket.onopen = () => socket.send(long);
            socket.onmessage = message => { socket.close(); done(message.data === long); };
            socket.onerror = () => done('error');
        })";
        assert_eq!(browser.evaluate(echoed), true, "{protocol}");
        browser.evaluate(
            "window.seen = []; new EventSource('/events').onmessage = event => seen.push(event.data)",
        );
        // The first event arrives although the response goes on.
        eventually(|| browser.evaluate("seen.join()") == "one");
        events.go.send(()).unwrap();
        eventually(|| browser.evaluate("seen[1]") == "two");
        let used = "performance.getEntriesByName(location.origin + '/events').map(it => it.nextHopProtocol)[0]";
        eventually(|| browser.evaluate(used) == protocol);
    }
    eventually(|| sockets.open_connections() == 0);
    gateway.signal(Signal::TERM);
}

#[test]
fn a_server_is_drained_and_a_cache_is_emptied_on_the_admin_page() {
    let files = MaterialFiles::new();
    let behind = files.write(
        "behind.toml",
        "[[listen]]\naddress = \"127.0.0.1:0\"\n[[route]]\nrespond = { body = \"hello\" }\n",
    );
    let behind = Served::start(&["up", &behind.to_string_lossy()]);
    let text = format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\n\
         [[route]]\nname = \"pages\"\nproxy = {{ to = \"all\", cache = {{ default_lifetime = \"1h\" }} }}\n\
         [upstream.all]\nservers = \"{}\"\n[admin]\naddress = \"127.0.0.1:0\"\n",
        behind.url.trim_end_matches('/')
    );
    let file = files.write("gateway.toml", &text);
    let (gateway, [admin]) = Served::with_more(&mut command(&["up", &file.to_string_lossy()]));
    let address = gateway.url.trim_end_matches('/').replace("http://", "");
    for path in ["/a", "/b", "/a"] {
        assert_eq!(get(&address, path), "hello");
    }
    let mut browser = Browser::start();
    browser.open(&format!("{admin}gateway/"));
    let cell =
        |label: &str| format!("document.querySelector('td[data-label=\"{label}\"]').innerText");
    eventually(|| browser.evaluate(&cell("URLs")) == "2");
    assert_eq!(browser.evaluate(&cell("hits")), "1");
    assert_eq!(browser.evaluate(&cell("hit rate")), "33.3 %");
    let pictures = Pictures::of_environment();
    pictures.take_picture(&mut browser, "gateway");
    browser.evaluate("document.querySelector('button[data-empty]').click()");
    eventually(|| browser.evaluate(&cell("URLs")) == "0");
    browser.evaluate("document.querySelector('button[data-weight=\"0\"]').click()");
    eventually(|| browser.evaluate(&cell("state")) == "drained");
    browser.evaluate("document.querySelector('button[data-weight]').click()");
    eventually(|| browser.evaluate(&cell("state")) == "healthy");
    assert!(browser.complaints().is_empty());
}

#[test]
fn clients_in_the_clear_reach_a_server_over_tls() {
    let files = MaterialFiles::new();
    let text = "[[listen]]\naddress = \"127.0.0.1:0\"\ntls = { self_signed = true }\n[[route]]\nrespond = { body = \"hello\" }\n";
    let file = files.write("secure.toml", text);
    let secure = Served::start(&["up", &file.to_string_lossy()]);
    let server = secure.url.replace("https://", "tls://");
    let server = server.trim_end_matches('/');
    let gateway = Served::start(&["gateway", "--tcp", "127.0.0.1:0", "-k", "--to", server]);
    let (_, address) = gateway.url.trim_end_matches('/').split_once("://").unwrap();
    assert_eq!(get(address, "/"), "hello");
}
