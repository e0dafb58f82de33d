//! Reloads and servers that end while requests are on their way.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use plimsoll_testkit::http::{connect, exchange, get};
use plimsoll_testkit::{Origin, WebSocketOrigin, eventually};
use tungstenite::Message;

use crate::server::{Served, configuration, gateway, named};

/// Requests one after the other in several threads, until it is dropped.
struct Load {
    ends: Arc<AtomicBool>,
    done: Arc<AtomicU64>,
    threads: Vec<thread::JoinHandle<Vec<u16>>>,
}

impl Load {
    fn on(address: std::net::SocketAddr) -> Self {
        let (ends, done) = (Arc::<AtomicBool>::default(), Arc::<AtomicU64>::default());
        let threads = (0..4).map(|_| {
            let (ends, done) = (Arc::clone(&ends), Arc::clone(&done));
            thread::spawn(move || {
                let mut other = Vec::new();
                while !ends.load(Ordering::Relaxed) {
                    let status = get(address, "/").status;
                    done.fetch_add(1, Ordering::Relaxed);
                    if status != 200 {
                        other.push(status);
                    }
                }
                other
            })
        });
        Self {
            threads: threads.collect(),
            ends,
            done,
        }
    }

    /// Waits for so many more responses.
    fn more(&self, requests: u64) {
        let until = self.done.load(Ordering::Relaxed) + requests;
        eventually(|| self.done.load(Ordering::Relaxed) >= until);
    }

    /// The statuses other than 200.
    fn end(self) -> Vec<u16> {
        self.ends.store(true, Ordering::Relaxed);
        let threads = self.threads.into_iter();
        threads.flat_map(|thread| thread.join().unwrap()).collect()
    }
}

#[test]
fn a_reload_costs_no_request_and_keeps_websockets() {
    let (a, b) = (named("a"), named("b"));
    let chat = WebSocketOrigin::echo();
    let text = |servers: &[&str], more: &str| {
        format!(
            "[[listen]]\naddress = \"127.0.0.1:0\"\n[[route]]\npath = \"/chat\"\nproxy = \"http://{}\"\n{}{more}",
            chat.address(),
            configuration(servers, "")
        )
    };
    let (one, other) = (a.url(), b.url());
    let mut gateway = Served::new(&text(&[&one], ""));
    let stream = connect(gateway.address());
    let url = format!("ws://{}/chat", gateway.address());
    let (mut socket, _) = tungstenite::client(url, stream).unwrap();
    let load = Load::on(gateway.address());
    for servers in [[&*one, &*other].as_slice(), &[&*other], &[&*one]] {
        load.more(40);
        gateway.reload(&text(servers, "[[route]]\npath = \"/new\"\necho = {}\n"));
        socket.send(Message::text("still there")).unwrap();
        assert_eq!(socket.read().unwrap(), Message::text("still there"));
    }
    load.more(40);
    assert_eq!(load.end(), Vec::<u16>::new());
    assert_eq!(get(gateway.address(), "/").text(), "a");
}

#[test]
fn servers_that_stay_in_a_list_keep_connections_and_weights() {
    let origins = [Origin::hello(), Origin::hello(), Origin::hello()];
    let urls = origins
        .each_ref()
        .map(|it| it.url("").trim_end_matches('/').to_owned());
    let text = |servers: &[&str], port: &str| {
        format!(
            "[[listen]]\naddress = \"127.0.0.1:0\"\n[admin]\naddress = \"127.0.0.1:{port}\"\n{}",
            configuration(servers, "")
        )
    };
    let mut gateway = Served::new(&text(&[&urls[0], &urls[1]], "0"));
    let weights = |gateway: &Served| {
        let list = get(gateway.addresses[1], "/upstreams").into_text();
        let list: serde_json::Value = serde_json::from_str(&list).unwrap();
        let servers = list["upstreams"][0]["servers"].as_array().unwrap().clone();
        let weights = servers.iter().map(|it| it["weight"].as_u64().unwrap());
        assert_eq!(list["upstreams"].as_array().unwrap().len(), 1);
        weights.collect::<Vec<_>>()
    };
    for _ in 0..2 {
        assert_eq!(get(gateway.address(), "/").text(), "hello");
    }
    let drain = format!(
        "PUT /upstreams/all?server={}&weight=0 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
        urls[1]
    );
    assert_eq!(exchange(gateway.addresses[1], drain.as_bytes()).status, 204);
    gateway.reload(&text(&[&urls[0], &urls[1], &urls[2]], "0"));
    assert_eq!(weights(&gateway), [1, 0, 1]);
    for _ in 0..4 {
        assert_eq!(get(gateway.address(), "/").text(), "hello");
    }
    let requests = origins.each_ref().map(Origin::requests);
    assert_eq!(requests, [3, 1, 2]);
    let connections = origins.each_ref().map(Origin::connections);
    assert_eq!(connections, [1, 1, 1]);
    gateway.reload(&text(&[&urls[2]], "0"));
    assert_eq!(weights(&gateway), [1]);
    assert_eq!(get(gateway.address(), "/").text(), "hello");
    assert_eq!(origins[2].requests(), 3);
    // What waits idle for servers that are gone is closed.
    eventually(|| origins[0].open_connections() + origins[1].open_connections() == 0);
}

#[test]
fn a_reload_keeps_connections_to_servers_that_did_not_change() {
    let (kept, changed) = (Origin::hello(), Origin::hello());
    let text = |timeout: &str| {
        let url = |origin: &Origin| origin.url("").trim_end_matches('/').to_owned();
        format!(
            "[[listen]]\naddress = \"127.0.0.1:0\"\n\
             [[route]]\npath = \"/kept\"\nproxy = \"kept\"\n[[route]]\npath = \"/changed\"\nproxy = \"changed\"\n\
             [upstream.kept]\nservers = \"{}\"\n\
             [upstream.changed]\nservers = \"{}\"\nconnect_timeout = \"{timeout}\"\n",
            url(&kept),
            url(&changed),
        )
    };
    let mut gateway = Served::new(&text("1s"));
    for timeout in ["2s", "3s"] {
        for path in ["/kept", "/changed"] {
            assert_eq!(get(gateway.address(), path).text(), "hello");
        }
        gateway.reload(&text(timeout));
    }
    assert_eq!(get(gateway.address(), "/kept").text(), "hello");
    assert_eq!(kept.connections(), 1);
    // What waits idle for a configuration that is gone is closed.
    eventually(|| changed.open_connections() == 0);
}

#[test]
fn no_request_fails_when_one_of_three_servers_ends() {
    let (a, b, c) = (named("a"), named("b"), named("c"));
    let keys = "retry = { retries = 2, budget = 100 }\neject = { failures = 2 }";
    let gateway = gateway(&[&a.url(), &b.url(), &c.url()], keys);
    let load = Load::on(gateway.address());
    load.more(100);
    b.end();
    load.more(200);
    assert_eq!(load.end(), Vec::<u16>::new());
}

#[test]
fn a_drain_lets_responses_end() {
    let slow = Served::routes("[[route]]\ndelay = \"300ms\"\nrespond = { body = \"late\" }\n");
    let gateway = gateway(&[&slow.url()], "");
    let address = gateway.address();
    let request = thread::spawn(move || get(address, "/"));
    eventually(|| slow.open_connections() == 1);
    gateway.drain(Duration::from_secs(10));
    assert_eq!(request.join().unwrap().text(), "late");
}

#[test]
fn connections_are_replaced_after_max_requests() {
    const TLS: &str =
        "[[listen]]\naddress = \"127.0.0.1:0\"\ntls = { self_signed = true }\nhttp3 = true\n";
    let server = Served::new(&format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\n{TLS}\
         [[route]]\nrespond = {{ body = \"x\" }}\n[admin]\naddress = \"127.0.0.1:0\"\n"
    ));
    let (clear, tls, admin) = (
        server.addresses[0],
        server.addresses[1],
        server.addresses[2],
    );
    let accepted = || {
        let metrics = get(admin, "/metrics").into_text();
        let name = "plimsoll_connections_total ";
        let line = metrics.lines().find_map(|line| line.strip_prefix(name));
        let count: u64 = line.unwrap_or_else(|| panic!("{metrics}")).parse().unwrap();
        count
    };
    for (url, protocol) in [
        (format!("http://{clear}"), "http1"),
        (format!("http://{clear}"), "http2"),
        (format!("https://{tls}"), "http3"),
    ] {
        let keys =
            format!("protocol = \"{protocol}\"\nmax_requests = 2\ntls = {{ insecure = true }}\n");
        let gateway = gateway(&[&url], &keys);
        let before = accepted();
        for _ in 0..5 {
            assert_eq!(get(gateway.address(), "/").status, 200, "{protocol}");
        }
        // Three connections, and one of the client that reads the figure.
        assert_eq!(accepted() - before, 4, "{protocol}");
    }
}
