//! Several servers: who gets a request, and what happens when one fails.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use plimsoll_client::forward::Speaks;
use plimsoll_testkit::http::{exchange, get, get_with};
use plimsoll_testkit::{Origin, Script, Step, eventually};

use crate::client::read_until_cut;
use crate::server::{Served, configuration, gateway, named};

fn counts(address: std::net::SocketAddr, requests: usize) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for _ in 0..requests {
        let received = get(address, "/");
        assert_eq!(received.status, 200, "{}", received.text());
        *counts.entry(received.into_text()).or_default() += 1;
    }
    counts
}

#[test]
fn requests_are_spread_in_turn() {
    let (a, b, c) = (named("a"), named("b"), named("c"));
    let gateway = gateway(&[&a.url(), &b.url(), &c.url()], "");
    let counts = counts(gateway.address(), 12);
    assert!(counts.values().all(|count| *count == 4), "{counts:?}");
}

#[test]
fn a_server_that_refuses_connections_costs_no_request() {
    let (a, b) = (named("a"), named("b"));
    let refused = format!("http://{}", plimsoll_testkit::refused_address());
    let gateway = gateway(&[&a.url(), &refused, &b.url()], "eject = { failures = 2 }");
    let counts = counts(gateway.address(), 30);
    assert_eq!(counts.values().sum::<usize>(), 30);
}

/// Its heads are fine, so that only their content says that the server fails.
#[test]
fn a_server_that_breaks_responses_off_is_ejected_and_counted() {
    let heads = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&heads);
    let broken = crate::hostile::server(move |mut stream| {
        let mut byte = [0];
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|it| it > 0) {
            head.extend_from_slice(&byte);
        }
        if head.is_empty() {
            return;
        }
        counted.fetch_add(1, Ordering::Relaxed);
        let part = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\npart";
        stream.write_all(part).ok();
    });
    let fine = named("fine");
    let gateway = Served::new(&format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\n[admin]\naddress = \"127.0.0.1:0\"\n[[route]]\nproxy = \"all\"\n\
        [upstream.all]\nservers = [\"http://{broken}\", \"{}\"]\nretry = false\n\
        eject = {{ failures = 2, time = \"1h\" }}\n",
        fine.url()
    ));
    let url = format!("http://{}/", gateway.addresses[0]);
    let complete = (0..20)
        .filter(|_| {
            let (status, bytes, cut) = read_until_cut(Speaks::Http1, &url);
            (status, bytes, cut.is_none()) == (200, 4, true)
        })
        .count();
    assert_eq!((complete, heads.load(Ordering::Relaxed)), (18, 2));
    assert_eq!(crate::hostile::failures(&gateway), 2);
}

#[test]
fn a_request_that_may_have_been_processed_is_not_sent_twice() {
    let broken = Origin::scripted(Script::new().then(Step::ReadHead).then(Step::Reset));
    let url = broken.url("");
    let fine = named("fine");
    let gateway = gateway(&[url.trim_end_matches('/'), &fine.url()], "");
    let post = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    let get = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    let posted: Vec<_> = (0..4)
        .map(|_| exchange(gateway.address(), post.as_bytes()).status)
        .collect();
    assert_eq!(
        posted.iter().filter(|it| **it == 502).count(),
        2,
        "{posted:?}"
    );
    for _ in 0..4 {
        assert_eq!(exchange(gateway.address(), get.as_bytes()).status, 200);
    }
}

#[test]
fn statuses_are_retried_where_that_is_requested() {
    let down = Origin::scripted(Script::serve(
        "HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n",
    ));
    let url = down.url("");
    let url = url.trim_end_matches('/');
    let fine = named("fine");
    let plain = gateway(&[url, &fine.url()], "");
    let statuses: Vec<_> = (0..4).map(|_| get(plain.address(), "/").status).collect();
    assert_eq!(statuses.iter().filter(|it| **it == 503).count(), 2);
    let retrying = gateway(
        &[url, &fine.url()],
        "retry = { on = [\"503\"], budget = 100 }",
    );
    for _ in 0..4 {
        assert_eq!(get(retrying.address(), "/").status, 200);
    }
}

#[test]
fn keys_and_cookies_lead_to_the_same_server() {
    let (a, b, c) = (named("a"), named("b"), named("c"));
    let urls = [&*a.url(), &*b.url(), &*c.url()];
    for balance in ["ring_hash", "maglev"] {
        let keys = format!("balance = \"{balance}\"\nby = \"header:x-user\"");
        let gateway = gateway(&urls, &keys);
        let mut seen = std::collections::BTreeSet::new();
        // Keys and ports are hashed: that a server gets none of 60 happens once in ten thousand million runs.
        for user in 0..60 {
            let field = format!("X-User: {user}\r\n");
            let first = get_with(gateway.address(), "/", &field).into_text();
            for _ in 0..3 {
                assert_eq!(get_with(gateway.address(), "/", &field).text(), first);
            }
            seen.insert(first);
        }
        assert_eq!(seen.len(), 3, "{balance}");
    }
    let sticky = gateway(&urls, "sticky = \"server\"");
    let first = get(sticky.address(), "/");
    let cookie = first
        .head
        .lines()
        .find_map(|line| line.strip_prefix("set-cookie: "))
        .unwrap();
    let cookie = cookie.split(';').next().unwrap();
    for _ in 0..5 {
        let again = get_with(sticky.address(), "/", &format!("Cookie: {cookie}\r\n"));
        assert_eq!(again.text(), first.text());
        assert!(!again.head.contains("set-cookie"), "{}", again.head);
    }
}

#[test]
fn unhealthy_servers_are_left_out_and_come_back() {
    let a = named("a");
    let mut b = Served::routes("[[route]]\nrespond = { body = \"b\" }\n");
    let health = "health = { path = \"/\", interval = \"20ms\", unhealthy = 2, healthy = 2 }";
    let gateway = gateway(&[&a.url(), &b.url()], health);
    let seen = || counts(gateway.address(), 4);
    assert_eq!(seen().len(), 2);
    let listen = "[[listen]]\naddress = \"127.0.0.1:0\"\n";
    b.reload(&format!(
        "{listen}[[route]]\nrespond = {{ status = 500, body = \"b\" }}\n"
    ));
    eventually(|| {
        let statuses: Vec<_> = (0..4)
            .map(|_| get(gateway.address(), "/").into_text())
            .collect();
        statuses.iter().all(|it| it == "a")
    });
    b.reload(&format!(
        "{listen}[[route]]\nrespond = {{ body = \"b\" }}\n"
    ));
    eventually(|| seen().len() == 2);
}

#[test]
fn checks_have_a_host_and_fields_and_look_at_the_content() {
    // What is healthy here is so for the right host, field and method alone.
    let server = |name: &str, content: &str| {
        Served::routes(&format!(
            "[[route]]\npath = \"/up\"\nhost = \"inside.test\"\nmethod = \"POST\"\nheader = {{ x-key = \"secret\" }}\nrespond = {{ body = \"{content}\" }}\n\
             [[route]]\npath = \"/up\"\nrespond = {{ status = 404 }}\n\
             [[route]]\nrespond = {{ body = \"{name}\" }}\n"
        ))
    };
    let (a, b) = (server("a", "database: up"), server("b", "database: down"));
    let health = "health = { path = \"/up\", method = \"POST\", host = \"inside.test\", headers = { X-Key = \"secret\" }, \
        content = \": up\", interval = \"20ms\", unhealthy = 1, healthy = 1 }";
    let gateway = gateway(&[&a.url(), &b.url()], health);
    eventually(|| {
        let seen = counts(gateway.address(), 4);
        seen.len() == 1 && seen.contains_key("a")
    });
    // It stays so: a check that fails with both would have all of them used.
    assert_eq!(counts(gateway.address(), 20).len(), 1);
}

#[test]
fn a_server_that_comes_back_grows_to_its_share() {
    let a = named("a");
    let failing = "[[route]]\npath = \"/health\"\nrespond = { status = 500 }\n";
    let named_b = "[[route]]\nrespond = { body = \"b\" }\n";
    let mut b = Served::routes(&format!("{failing}{named_b}"));
    let health = "health = { path = \"/health\", interval = \"20ms\", unhealthy = 1, healthy = 1 }\n\
        slow_start = \"1h\"";
    let gateway = gateway(&[&a.url(), &b.url()], health);
    eventually(|| counts(gateway.address(), 4).len() == 1);
    b.reload(&format!("[[listen]]\naddress = \"127.0.0.1:0\"\n{named_b}"));
    eventually(|| counts(gateway.address(), 100).len() == 2);
    // In an hour it has a half.
    let share = counts(gateway.address(), 200)["b"];
    assert!((1..50).contains(&share), "{share}");
}

#[test]
fn with_too_few_healthy_servers_all_are_used() {
    let a = named("a");
    let failing = "[[route]]\npath = \"/health\"\nrespond = { status = 500 }\n";
    let others = ["b", "c"].map(|name| {
        Served::routes(&format!(
            "{failing}[[route]]\nrespond = {{ body = \"{name}\" }}\n"
        ))
    });
    let urls = [&*a.url(), &*others[0].url(), &*others[1].url()];
    let health = "health = { path = \"/health\", interval = \"20ms\", unhealthy = 1 }";
    let few = gateway(&urls, health);
    eventually(|| counts(few.address(), 6).len() == 1);
    let all = Served::new(&format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\n[admin]\naddress = \"127.0.0.1:0\"\n{}",
        configuration(&urls, &format!("{health}\npanic_threshold = 50"))
    ));
    eventually(|| {
        let shown = get_with(all.addresses[1], "/upstreams", "").into_text();
        shown.matches("\"unhealthy\"").count() == 2
    });
    assert_eq!(counts(all.address(), 6).len(), 3);
}

#[test]
fn weights_are_set_at_run_time_and_survive_a_reload() {
    let (a, b) = (named("a"), named("b"));
    let urls = [&*a.url(), &*b.url()];
    let text = format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\n[admin]\naddress = \"127.0.0.1:0\"\n{}",
        configuration(&urls, "")
    );
    let mut gateway = Served::new(&text);
    let (address, admin) = (gateway.address(), gateway.addresses[1]);
    assert_eq!(counts(address, 4).len(), 2);
    let put = format!(
        "PUT /upstreams/all?server={}&weight=0 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
        urls[0]
    );
    assert_eq!(exchange(admin, put.as_bytes()).status, 204);
    assert_eq!(counts(address, 4).keys().collect::<Vec<_>>(), ["b"]);
    gateway.reload(&format!("{text}[[route]]\npath = \"/more\"\necho = {{}}\n"));
    assert_eq!(counts(address, 4).keys().collect::<Vec<_>>(), ["b"]);
    let shown = get_with(admin, "/upstreams", "").into_text();
    for part in ["\"drained\"", "\"healthy\"", urls[0], urls[1]] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let metrics = get(admin, "/metrics").into_text();
    let line = format!(
        "plimsoll_gateway_responses_total{{upstream=\"all\",server=\"{}\",class=\"2xx\"}} 10",
        urls[1]
    );
    assert!(metrics.contains(&line), "{metrics}");
}
