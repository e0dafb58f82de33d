//! One process of the program takes over from another while requests are on their way.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::thread;
use std::time::Duration;

use plimsoll_testkit::{Authority, MaterialFiles, Origin, eventually};
use rustix::process::Signal;
use serde_json::Value;

use crate::gateway::metric;
use crate::plimsoll::{command, plimsoll};
use crate::served::Served;

/// A configuration in a temporary folder, with the socket by which processes take over.
struct Service {
    files: MaterialFiles,
    file: PathBuf,
    socket: PathBuf,
}

impl Service {
    fn new() -> Self {
        let files = MaterialFiles::new();
        let (file, socket) = (files.path("plimsoll.toml"), files.path("takeover.sock"));
        Self {
            files,
            file,
            socket,
        }
    }

    /// Starts a process that serves `text`.
    fn start(&self, text: &str) -> Served {
        self.files.write("plimsoll.toml", text);
        Served::start(&self.arguments())
    }

    fn arguments(&self) -> [&str; 5] {
        let (file, socket) = (shown(&self.file), shown(&self.socket));
        ["up", file, "--takeover", socket, "--sandbox"]
    }
}

fn shown(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Waits for a process to end by itself, which it does once it has drained.
fn ends(mut served: Served) {
    eventually(|| served.child.try_wait().unwrap().is_some());
    assert_eq!(served.child.wait().unwrap().code(), Some(0));
}

fn load(url: &str, more: &[&str]) -> Child {
    let arguments = [&["load", "--json", "--insecure", "-z", "4s"], more, &[url]].concat();
    command(&arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// The counts of a load run; none of its requests has failed.
fn without_failure(load: Child) {
    let output = load.wait_with_output().unwrap();
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    let counts = &summary["counts"];
    assert_eq!(counts["errors"], 0, "{summary}");
    assert_eq!(counts["failed"], 0, "{summary}");
    assert!(counts["ok"].as_u64().unwrap() > 100, "{summary}");
}

fn text(threads: usize, body: &str) -> String {
    format!(
        "threads = {threads}\n[[listen]]\naddress = \"127.0.0.1:0\"\n[[route]]\nrespond = {{ body = \"{body}\" }}\n"
    )
}

#[test]
fn processes_with_other_numbers_of_threads_take_over_under_load_without_a_failure() {
    let service = Service::new();
    let first = service.start(&text(3, "3"));
    let url = first.url.clone();
    let runs = [
        load(&url, &["-c", "16"]),
        // A connection for each request: none may be refused.
        load(&url, &["-c", "8", "--disable-keepalive"]),
    ];
    let mut running = first;
    for (threads, body) in [(1, "1"), (4, "4"), (2, "2")] {
        assert!(running.answers("/", &["status == 200"]));
        let next = service.start(&text(threads, body));
        assert_eq!(next.url, url, "the same port");
        ends(std::mem::replace(&mut running, next));
        assert!(running.answers("/", &[&format!("body == '{body}'")]));
    }
    for run in runs {
        without_failure(run);
    }
    running.signal(Signal::TERM);
    ends(running);
    assert!(!service.socket.exists());
}

#[test]
fn http3_connections_go_on_in_the_old_process_and_new_ones_reach_the_new_one() {
    let service = Service::new();
    let secure = |threads: usize, body: &str| {
        format!(
            "threads = {threads}\ndrain = \"20s\"\n[[listen]]\naddress = \"127.0.0.1:0\"\nhttp3 = true\n\
            tls = {{ self_signed = true }}\n[[route]]\nrespond = {{ body = \"{body}\" }}\n"
        )
    };
    let mut running = service.start(&secure(2, "first"));
    let url = running.url.clone();
    let run = load(&url, &["-c", "4", "-p", "4", "--http3"]);
    for (threads, body) in [(3, "second"), (1, "third"), (2, "fourth")] {
        assert!(running.answers("/", &["status == 200"]));
        let next = service.start(&secure(threads, body));
        let old = std::mem::replace(&mut running, next);
        let condition = format!("body == '{body}'");
        // New connections reach the new process, whatever port they come from.
        for _ in 0..6 {
            let arguments = [
                "check",
                &url,
                "--insecure",
                "--http3",
                "--expect",
                &condition,
            ];
            plimsoll(&arguments).exits(0);
        }
        ends(old);
    }
    without_failure(run);
}

/// A server of bytes that sends back what it gets.
fn echo() -> std::net::SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            thread::spawn(move || {
                let mut copy = stream.try_clone().unwrap();
                std::io::copy(&mut copy, &mut stream).ok();
            });
        }
    });
    address
}

fn echoes(stream: &mut TcpStream, byte: u8) -> bool {
    let mut echoed = [0];
    stream.write_all(&[byte]).is_ok() && stream.read_exact(&mut echoed).is_ok() && echoed == [byte]
}

#[test]
fn tunnels_live_on_in_the_old_process_until_its_deadline() {
    let service = Service::new();
    let text = |drain: &str| {
        format!(
            "drain = \"{drain}\"\n[[listen]]\naddress = \"127.0.0.1:0\"\ntcp = \"tcp://{}\"\n",
            echo()
        )
    };
    let connect = |served: &Served| {
        let address = served
            .url
            .trim_start_matches("tcp://")
            .trim_end_matches('/');
        let stream = TcpStream::connect(address).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        stream
    };
    let mut old = service.start(&text("20s"));
    let mut tunnel = connect(&old);
    assert!(echoes(&mut tunnel, 1));
    let new = service.start(&text("100ms"));
    assert!(echoes(&mut connect(&new), 2));
    for byte in 3..10 {
        assert!(echoes(&mut tunnel, byte));
    }
    assert!(old.child.try_wait().unwrap().is_none());
    drop(tunnel);
    ends(old);
    // The time of this one ends first.
    let mut tunnel = connect(&new);
    assert!(echoes(&mut tunnel, 1));
    let last = service.start(&text("20s"));
    ends(new);
    assert!(!echoes(&mut tunnel, 2));
    assert!(echoes(&mut connect(&last), 3));
}

#[test]
fn a_process_that_cannot_serve_changes_nothing() {
    let service = Service::new();
    let running = service.start(&text(1, "one"));
    service.files.write("plimsoll.toml", "nonsense = 1\n");
    plimsoll(&service.arguments()).exits(2);
    assert!(running.answers("/", &["body == one"]));
    // It gets the sockets, and then cannot listen somewhere else.
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let more = format!(
        "[[listen]]\naddress = \"{}\"\n",
        taken.local_addr().unwrap()
    );
    let both = text(2, "two").replace("[[route]]", &format!("{more}[[route]]"));
    service.files.write("plimsoll.toml", &both);
    let output = plimsoll(&service.arguments()).exits(3);
    assert!(output.stderr.contains("cannot listen"), "{output}");
    for _ in 0..8 {
        assert!(running.answers("/", &["body == one"]));
    }
    // And the next one takes over.
    let next = service.start(&text(1, "three"));
    let mut running = running;
    let errors = BufReader::new(running.child.stderr.take().unwrap()).lines();
    let mut errors = errors.map_while(Result::ok);
    let warning = errors.find(|line| !line.starts_with("note: ")).unwrap();
    assert!(warning.contains("did not start"), "{warning}");
    ends(running);
    assert!(next.answers("/", &["body == three"]));
}

#[test]
fn every_command_that_serves_takes_over() {
    let files = MaterialFiles::new();
    let folder = files.path("site");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("index.html"), "hello").unwrap();
    let origin = Served::start(&["serve", shown(&folder), "--listen", "127.0.0.1:0"]);
    for (name, arguments) in [
        ("serve", vec!["serve", shown(&folder)]),
        ("gateway", vec!["gateway", "--to", &origin.url]),
        ("mock", vec!["mock", shown(&folder)]),
    ] {
        let socket = files.path(name);
        let tail = ["--listen", "127.0.0.1:0", "--takeover", shown(&socket)];
        let arguments = [arguments.as_slice(), &tail].concat();
        let old = Served::start(&arguments);
        let new = Served::start(&arguments);
        assert_eq!(new.url, old.url);
        ends(old);
        assert!(new.answers("/", &["body == hello"]), "{name}");
    }
}

/// Servers of HTTP/3 that respond with their names, behind gateways that end QUIC and begin it anew.
struct Relayed {
    service: Service,
    ca: PathBuf,
    certificate: PathBuf,
    key: PathBuf,
}

impl Relayed {
    fn new() -> Self {
        let (authority, service) = (Authority::new(), Service::new());
        let leaf = authority.issue(&["localhost"]);
        let files = &service.files;
        Self {
            ca: files.write("ca.pem", &authority.pem()),
            certificate: files.write("cert.pem", leaf.pem()),
            key: files.write("key.pem", leaf.key_pem()),
            service,
        }
    }

    fn tls(&self) -> String {
        let (certificate, key) = (shown(&self.certificate), shown(&self.key));
        format!("tls = {{ cert = \"{certificate}\", key = \"{key}\" }}\n")
    }

    fn backend(&self, body: &str) -> Served {
        let text = format!(
            "[[listen]]\naddress = \"127.0.0.1:0\"\nhttp3 = true\n{}[[route]]\nrespond = {{ body = \"{body}\" }}\n",
            self.tls()
        );
        let file = self.service.files.write(&format!("{body}.toml"), &text);
        Served::start(&["up", shown(&file)])
    }

    fn gateway(&self, threads: usize, backend: &Served) -> String {
        let (_, port) = backend.url.trim_end_matches('/').rsplit_once(':').unwrap();
        format!(
            "threads = {threads}\ndrain = \"20s\"\n[[listen]]\naddress = \"127.0.0.1:0\"\n{}\
            quic = {{ to = \"udp://127.0.0.1:{port}\", server_name = \"localhost\", ca = \"{}\" }}\n[admin]\naddress = \"127.0.0.1:0\"\n",
            self.tls(),
            shown(&self.ca)
        )
    }
}

#[test]
fn quic_that_ends_at_the_gateway_goes_on_in_the_old_process() {
    let relayed = Relayed::new();
    let service = &relayed.service;
    let backends = ["first", "second", "third"].map(|body| relayed.backend(body));
    let text = relayed.gateway(2, &backends[0]);
    service.files.write("plimsoll.toml", &text);
    let (mut running, [admin]) = Served::with_more(&mut command(&service.arguments()));
    let (_, address) = running.url.split_once("://").unwrap();
    let url = format!("https://{address}");
    let reaches = |body: &str| {
        let condition = format!("body == '{body}'");
        let check = ["check", &url, "--insecure", "--http3", "--expect"];
        plimsoll(&[&check[..], &[&condition]].concat()).exits(0);
    };
    reaches("first");
    let expected = ["-c", "4", "-p", "4", "--http3", "--expect", "body == first"];
    let run = load(&url, &expected);
    // From then on each of its connections belongs to the first process.
    eventually(|| metric(&admin, "plimsoll_gateway_flows_active", "") >= 4);
    let mut old = Vec::new();
    for (threads, body, backend) in [(3, "second", &backends[1]), (1, "third", &backends[2])] {
        let next = service.start(&relayed.gateway(threads, backend));
        assert_eq!(next.url, running.url, "the same port");
        for _ in 0..6 {
            reaches(body);
        }
        // One that fails its check changes nothing.
        service.files.write("plimsoll.toml", "nonsense = 1\n");
        plimsoll(&service.arguments()).exits(2);
        reaches(body);
        old.push(std::mem::replace(&mut running, next));
    }
    without_failure(run);
    old.into_iter().for_each(ends);
}

#[test]
fn quic_that_is_forwarded_goes_on_in_the_old_process() {
    let relayed = Relayed::new();
    let service = &relayed.service;
    let backends = ["first", "second", "third"].map(|body| relayed.backend(body));
    let text = |threads: usize, backend: &Served| {
        let (_, port) = backend.url.trim_end_matches('/').rsplit_once(':').unwrap();
        format!(
            "threads = {threads}\ndrain = \"30s\"\n[[listen]]\naddress = \"127.0.0.1:0\"\n\
            quic = {{ to = \"udp://127.0.0.1:{port}\", idle_timeout = \"3s\" }}\n[admin]\naddress = \"127.0.0.1:0\"\n"
        )
    };
    service.files.write("plimsoll.toml", &text(2, &backends[0]));
    let (mut running, [admin]) = Served::with_more(&mut command(&service.arguments()));
    let (_, address) = running.url.split_once("://").unwrap();
    let url = format!("https://{address}");
    let reaches = |body: &str| {
        let condition = format!("body == '{body}'");
        let check = ["check", &url, "--insecure", "--http3", "--expect"];
        plimsoll(&[&check[..], &[&condition]].concat()).exits(0);
    };
    reaches("first");
    let before = metric(&admin, "plimsoll_gateway_flows_active", "");
    let expected = ["-c", "4", "-p", "4", "--http3", "--expect", "body == first"];
    let run = load(&url, &expected);
    eventually(|| metric(&admin, "plimsoll_gateway_flows_active", "") >= before + 4);
    let mut old = Vec::new();
    // The third one knows neither the connections of the first nor those of the second.
    for (threads, body, backend) in [(3, "second", &backends[1]), (1, "third", &backends[2])] {
        let next = service.start(&text(threads, backend));
        assert_eq!(next.url, running.url, "the same port");
        for _ in 0..6 {
            reaches(body);
        }
        old.push(std::mem::replace(&mut running, next));
    }
    without_failure(run);
    // They end once their connections have been silent.
    old.into_iter().for_each(ends);
    reaches("third");
}

#[test]
fn flows_of_datagrams_go_on_in_the_old_process() {
    let server = UdpSocket::bind("127.0.0.1:0").unwrap();
    let to = server.local_addr().unwrap();
    // Each client gets the port that the server sees.
    thread::spawn(move || {
        while let Ok((_, peer)) = server.recv_from(&mut [0; 8]) {
            server
                .send_to(peer.port().to_string().as_bytes(), peer)
                .unwrap();
        }
    });
    let service = Service::new();
    let text = |threads: usize, drain: &str| {
        format!(
            "threads = {threads}\ndrain = \"{drain}\"\n[[listen]]\naddress = \"127.0.0.1:0\"\n\
            udp = {{ to = \"udp://{to}\", idle_timeout = \"5s\" }}\n"
        )
    };
    let mut running = service.start(&text(2, "60s"));
    let address = running
        .url
        .trim_start_matches("udp://")
        .trim_end_matches('/')
        .to_owned();
    let client = || {
        let client = UdpSocket::bind("127.0.0.1:0").unwrap();
        client.connect(&address).unwrap();
        client
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        client
    };
    let port_of = |client: &UdpSocket| {
        client.send(b"x").unwrap();
        let mut buffer = [0; 8];
        let length = client.recv(&mut buffer).unwrap();
        String::from_utf8(buffer[..length].to_vec()).unwrap()
    };
    let mut clients: Vec<(UdpSocket, String)> = Vec::new();
    let add = |clients: &mut Vec<(UdpSocket, String)>| {
        for _ in 0..8 {
            let client = client();
            let port = port_of(&client);
            clients.push((client, port));
        }
    };
    add(&mut clients);
    let mut old = Vec::new();
    for threads in [4, 1] {
        let next = service.start(&text(threads, "60s"));
        old.push(std::mem::replace(&mut running, next));
        // Both processes read for a moment, so a flow that begins now may be in either.
        (0..8).for_each(|_| drop(port_of(&client())));
        for (client, port) in &clients {
            assert_eq!(&port_of(client), port, "the flow is the same");
        }
    }
    drop(clients);
    old.into_iter().for_each(ends);
    // The end of a drain cuts them: the next datagram begins a flow in the new process.
    let short = service.start(&text(2, "100ms"));
    ends(std::mem::replace(&mut running, short));
    let client = client();
    let port = port_of(&client);
    let next = service.start(&text(2, "60s"));
    ends(std::mem::replace(&mut running, next));
    assert_ne!(port_of(&client), port);
}

#[test]
fn monitors_take_over_with_their_store() {
    let (service, origin) = (Service::new(), Origin::hello());
    let file = service.files.path("monitor.toml");
    let write = |name: &str| {
        let text = format!(
            "[[monitor]]\nname = \"{name}\"\nhttp = \"{}\"\ninterval = \"200ms\"\n",
            origin.url("/")
        );
        service.files.write("monitor.toml", &text);
    };
    let socket = shown(&service.socket);
    let arguments = [
        "monitor",
        shown(&file),
        "--listen",
        "127.0.0.1:0",
        "--takeover",
        socket,
    ];
    write("web");
    let mut running = Served::start(&arguments);
    let monitor = "/api/v1/monitors/_web";
    let results = |of: &Served, conditions: &[&str]| {
        of.answers(&format!("{monitor}/results?limit=100"), conditions)
    };
    eventually(|| results(&running, &["body.json($.results[2].code) == 200"]));
    let url = format!("{}{}", running.url.trim_end_matches('/'), monitor);
    let runs = [
        // A connection that comes while the store changes hands waits for the next process, and no longer.
        load(&url, &["-c", "4", "--expect", "status == 200"]),
        load(
            &url,
            &[
                "-c",
                "4",
                "--disable-keepalive",
                "--expect",
                "status == 200",
            ],
        ),
    ];
    for _ in 0..2 {
        assert!(running.answers(monitor, &["status == 200"]));
        let next = Served::start(&arguments);
        assert_eq!(next.url, running.url);
        ends(std::mem::replace(&mut running, next));
        // Found by the process before it.
        assert!(results(&running, &["body.json($.results[2].code) == 200"]));
    }
    service.files.write("monitor.toml", "nonsense = 1\n");
    plimsoll(&arguments).exits(2);
    assert!(running.answers(monitor, &["status == 200"]));
    for run in runs {
        without_failure(run);
    }
    // And this one checks.
    write("shop");
    let shop = "/api/v1/monitors/_shop/results";
    eventually(|| running.answers(shop, &["body.json($.results[0].code) == 200"]));
}
