//! Limits that keep servers from being overrun, and clients from waiting: concurrency, circuit breakers, hedging.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use plimsoll_testkit::http::get;
use plimsoll_testkit::{HELLO, Logic, Origin, Reply, Script, Step, eventually};

use crate::server::{Served, configuration};

/// A gateway to these servers with these keys of the upstream, and an admin port.
fn gateway(servers: &[&Origin], keys: &str) -> Served {
    let urls: Vec<_> = servers.iter().map(|it| it.url("")).collect();
    let urls: Vec<_> = urls.iter().map(|it| it.trim_end_matches('/')).collect();
    Served::new(&format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\n[admin]\naddress = \"127.0.0.1:0\"\n{}",
        configuration(&urls, keys)
    ))
}

/// An origin that responds to the first request of each connection once it is released, and to further ones at once.
fn held() -> Origin {
    let script = Script::new().then(Step::ReadHead).then(Step::Hold);
    let script = script.then(Step::Write(HELLO.to_vec()));
    Origin::scripted(script.then(Step::Serve(HELLO.to_vec())))
}

/// An event's count in the metrics.
fn counted(gateway: &Served, name: &str) -> u64 {
    let metrics = get(gateway.addresses[1], "/metrics").into_text();
    let name = format!("plimsoll_gateway_{name}{{upstream=\"all\"}} ");
    let line = metrics.lines().find_map(|line| line.strip_prefix(&name));
    line.unwrap_or_else(|| panic!("{name}: {metrics}"))
        .parse()
        .unwrap()
}

#[test]
fn requests_beyond_the_limit_wait_and_those_beyond_the_queue_get_a_503() {
    let origin = held();
    let keys = "concurrency = { requests = 1, queue = 1, wait = \"1h\" }";
    let gateway = gateway(&[&origin], keys);
    let address = gateway.address();
    let first = thread::spawn(move || get(address, "/"));
    eventually(|| origin.requests() == 1);
    let second = thread::spawn(move || get(address, "/"));
    eventually(|| gateway.open_connections() == 2);
    // Whether the second one waits by now is seen by the third one alone.
    eventually(|| get(address, "/").status == 503);
    assert_eq!(origin.requests(), 1);
    assert!(counted(&gateway, "limited_total") >= 1);
    origin.release();
    assert_eq!(first.join().unwrap().text(), "hello");
    assert_eq!(second.join().unwrap().text(), "hello");
}

#[test]
fn a_request_waits_for_so_long_and_its_place_goes_to_the_next() {
    let origin = held();
    let keys = "concurrency = { requests = 1, queue = 9, wait = \"30ms\" }";
    let gateway = gateway(&[&origin], keys);
    let address = gateway.address();
    let first = thread::spawn(move || get(address, "/"));
    eventually(|| origin.requests() == 1);
    for _ in 0..3 {
        assert_eq!(get(address, "/").status, 503);
    }
    origin.release();
    assert_eq!(first.join().unwrap().text(), "hello");
    assert_eq!(get(address, "/").text(), "hello");
}

#[test]
fn an_adaptive_limit_lets_requests_through() {
    let origin = Origin::hello();
    let gateway = gateway(
        &[&origin],
        "concurrency = { adaptive = true, min = 1, max = 5 }",
    );
    for _ in 0..50 {
        assert_eq!(get(gateway.address(), "/").text(), "hello");
    }
    assert_eq!(counted(&gateway, "limited_total"), 0);
}

#[test]
fn an_adaptive_limit_never_lets_more_through_than_its_maximum() {
    let origin = held();
    let keys = "concurrency = { adaptive = true, min = 1, max = 2, queue = 1, wait = \"1h\" }";
    let gateway = gateway(&[&origin], keys);
    let address = gateway.address();
    // Two at the server and one in the queue; whoever comes next sees that by a 503.
    let held = [(); 3].map(|()| thread::spawn(move || get(address, "/").status));
    eventually(|| gateway.open_connections() >= 3);
    eventually(|| get(address, "/").status == 503);
    // The server may not have read by now what the gateway let through.
    eventually(|| origin.requests() >= 1);
    assert!(origin.requests() <= 2, "{}", origin.requests());
    origin.release();
    for one in held {
        assert!([200, 503].contains(&one.join().unwrap()));
    }
}

#[test]
fn the_time_in_the_queue_is_not_that_of_the_server() {
    let origin = held();
    let silent = Origin::silent();
    let served = Served::new(&format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\n\
        [[route]]\npath = \"/patient\"\nproxy = {{ to = \"all\", response_timeout = \"1h\" }}\n\
        [[route]]\npath = \"/queued\"\nproxy = {{ to = \"all\", response_timeout = \"100ms\" }}\n\
        [[route]]\npath = \"/silent\"\nproxy = {{ to = \"{}\", response_timeout = \"100ms\", retry = false }}\n\
        [upstream.all]\nservers = \"{}\"\nretry = false\nconcurrency = {{ requests = 1, queue = 1, wait = \"1h\" }}\n",
        silent.url("").trim_end_matches('/'),
        origin.url("").trim_end_matches('/'),
    ));
    let address = served.address();
    let first = thread::spawn(move || get(address, "/patient").status);
    eventually(|| origin.requests() == 1);
    let second = thread::spawn(move || get(address, "/queued").status);
    eventually(|| served.open_connections() == 2);
    // Whether it waits by now is seen by the next one alone.
    eventually(|| get(address, "/patient").status == 503);
    // These begin later and have the same limit, so that much has passed by then.
    assert_eq!(get(address, "/silent").status, 504);
    origin.release();
    assert_eq!(first.join().unwrap(), 200);
    assert_eq!(second.join().unwrap(), 200);
}

#[test]
fn a_breaker_opens_after_failures_and_closes_once_the_server_recovers() {
    let is_down = Arc::new(AtomicBool::new(true));
    let state = Arc::clone(&is_down);
    let logic = Logic::new(move |_| {
        let is_down = state.load(Ordering::Relaxed);
        Reply::new(if is_down { 503 } else { 200 }, &[])
    });
    let script = move |_| Script::new().then(Step::Reply(logic.clone()));
    let origin = Origin::builder().script(script).start();
    let keys = "breaker = { requests = 4, open = \"50ms\", probes = 1 }\nretry = false";
    let gateway = gateway(&[&origin], keys);
    for _ in 0..4 {
        assert_eq!(get(gateway.address(), "/").text(), "hello");
    }
    let refused = get(gateway.address(), "/");
    let is_probe = refused.text() == "hello";
    assert!(is_probe || refused.text() == "the upstream servers failed too often\n");
    assert_eq!(refused.status, 503);
    assert!(counted(&gateway, "breaker_opened_total") >= 1);
    is_down.store(false, Ordering::Relaxed);
    eventually(|| get(gateway.address(), "/").status == 200);
    let admin = get(gateway.addresses[1], "/upstreams").into_text();
    assert!(admin.contains("\"breaker\": \"closed\""), "{admin}");
}

#[test]
fn a_slow_server_costs_no_more_than_the_time_to_the_second_attempt() {
    let (silent, fast) = (Origin::silent(), Origin::hello());
    let keys = "hedge = \"20ms\"\nresponse_timeout = \"500ms\"\nretry = { budget = 100 }";
    let gateway = gateway(&[&silent, &fast], keys);
    for _ in 0..6 {
        assert_eq!(get(gateway.address(), "/").text(), "hello");
    }
    let hedges = counted(&gateway, "hedges_total");
    assert!((1..=6).contains(&hedges), "{hedges}");
    // The attempt that is not needed any more ends with its time.
    eventually(|| silent.open_connections() == 0);
}

#[test]
fn a_server_that_never_responds_is_ejected_although_second_attempts_hide_it() {
    let (silent, fast) = (Origin::silent(), Origin::hello());
    let keys = "hedge = \"5ms\"\nresponse_timeout = \"1s\"\nretry = { budget = 100 }\n\
        eject = { failures = 3, time = \"1h\" }";
    let gateway = gateway(&[&silent, &fast], keys);
    eventually(|| {
        get(gateway.address(), "/");
        let servers = get(gateway.addresses[1], "/upstreams").into_text();
        servers.contains("ejected")
    });
    // No request is sent to it any more, so none needs a second attempt.
    let before = counted(&gateway, "hedges_total");
    for _ in 0..6 {
        assert_eq!(get(gateway.address(), "/").text(), "hello");
    }
    assert_eq!(counted(&gateway, "hedges_total"), before);
}

#[test]
fn a_server_that_is_merely_slower_is_not_ejected() {
    let slow = Logic::new(|_| Reply::new(200, &[]).after(Duration::from_millis(60)));
    let slow = Origin::builder()
        .script(move |_| Script::new().then(Step::Reply(slow.clone())))
        .start();
    let fast = Origin::hello();
    let keys = "hedge = \"5ms\"\nresponse_timeout = \"10s\"\nretry = { budget = 100 }\n\
        eject = { failures = 1, time = \"1h\" }";
    let gateway = gateway(&[&slow, &fast], keys);
    for _ in 0..6 {
        get(gateway.address(), "/");
    }
    // Every attempt has ended, and each was observed.
    eventually(|| slow.open_connections() == 0 || slow.requests() >= 3);
    let servers = get(gateway.addresses[1], "/upstreams").into_text();
    assert!(!servers.contains("ejected"), "{servers}");
}

#[test]
fn second_attempts_stop_with_the_budget() {
    let (silent, fast) = (Origin::silent(), Origin::hello());
    // Three a second are always there, and requests add nothing worth counting.
    let keys = "hedge = \"5ms\"\nresponse_timeout = \"1s\"\nretry = { budget = 1 }";
    let gateway = gateway(&[&silent, &fast], keys);
    let mut statuses = Vec::new();
    eventually(|| {
        statuses.push(get(gateway.address(), "/").status);
        statuses.contains(&504)
    });
    // The first requests were rescued.
    assert_eq!(statuses[..4], [200; 4]);
    // Each that the slow server got came by a connection of its own.
    let hedges = counted(&gateway, "hedges_total");
    assert!(hedges >= 2, "{hedges}");
    eventually(|| silent.connections() > hedges);
}

#[test]
fn a_request_that_may_be_processed_once_is_not_hedged() {
    let silent = Origin::silent();
    let fast = Origin::hello();
    let keys = "hedge = \"10ms\"\nresponse_timeout = \"100ms\"\nretry = false";
    let gateway = gateway(&[&silent, &fast], keys);
    let request = "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
    let statuses: Vec<_> = (0..2)
        .map(|_| plimsoll_testkit::http::exchange(gateway.address(), request.as_bytes()).status)
        .collect();
    assert!(statuses.contains(&504), "{statuses:?}");
    assert_eq!(counted(&gateway, "hedges_total"), 0);
}
