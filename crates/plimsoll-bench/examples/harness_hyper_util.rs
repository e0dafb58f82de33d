//! The harness of `plimsoll loadtest` over HTTP/2, with the legacy client of hyper-util in place of our
//! check: what the same workers on the same origins come to.
//!
//! It reads the same variables: `CONCURRENCY`, `DURATION_SECS`, `TIMEOUT_MS`, `MOCK_PORTS`, `RAMP_SECS`.
//!
//! ```text
//! cargo build --release -p plimsoll-bench --example harness_hyper_util
//! CONCURRENCY=50000 DURATION_SECS=300 target/release/examples/harness_hyper_util
//! ```

use std::cell::RefCell;
use std::net::{Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper_util::client::legacy::Client as HyperClient;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use plimsoll_model::{Clock, Histogram};
use plimsoll_server::{Origin, Speaks};
use plimsoll_wire::SystemClock;
use tokio::runtime::{Builder, LocalOptions};
use tokio::task::JoinSet;

type Client = HyperClient<HttpConnector, Empty<Bytes>>;

/// How long checks under way at the end may still take.
const GRACE: Duration = Duration::from_secs(5);

#[derive(Debug, Default)]
struct Found {
    started: u64,
    ok: u64,
    failed: u64,
    timed_out: u64,
    latency: Histogram,
}

fn main() -> Result<(), String> {
    let workers = number("CONCURRENCY", 50_000)?;
    let duration = Duration::from_secs(number("DURATION_SECS", 30)?);
    let timeout = Duration::from_millis(number("TIMEOUT_MS", 5000)?);
    let listeners = number("MOCK_PORTS", 16)?;
    let ramp = Duration::from_secs(number("RAMP_SECS", 2)?);
    let origins = origins(listeners);
    let runtime = Builder::new_current_thread()
        .enable_all()
        .build_local(LocalOptions::default())
        .expect("the system has what a runtime needs");
    let start = SystemClock.now();
    let found = runtime.block_on(async {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        let client: Client = HyperClient::builder(TokioExecutor::new())
            .http2_only(true)
            .build(connector);
        let found = Rc::new(RefCell::new(Found::default()));
        let mut tasks = JoinSet::new();
        for number in 0..workers {
            let origin = origins[usize::try_from(number % listeners).expect("it is an index")];
            let uri: http::Uri = format!("http://{origin}/")
                .parse()
                .expect("an address makes a URI");
            let begin = start + ramp.mul_f64(number as f64 / workers as f64);
            let (client, found) = (client.clone(), Rc::clone(&found));
            tasks.spawn_local(async move {
                tokio::time::sleep_until(begin.into()).await;
                while SystemClock.now() < start + duration {
                    check(&client, &uri, timeout, &found).await;
                }
            });
        }
        let all = async { while tasks.join_next().await.is_some() {} };
        let end = start + duration + GRACE;
        // What is still under way then is counted as aborted.
        drop(tokio::time::timeout_at(end.into(), all).await);
        found.take()
    });
    print(&found, SystemClock.now() - start);
    Ok(())
}

/// Origins on a thread of their own, until the process ends; each has an address of its own.
fn origins(count: u64) -> Vec<SocketAddr> {
    let origins: Vec<Origin> = (0..count)
        .map(|number| {
            let [high, low] = u16::try_from(number).expect("few listeners").to_be_bytes();
            let address = Ipv4Addr::new(127, 1, high, low.saturating_add(1));
            Origin::bind_to(SocketAddr::from((address, 0)), b"ok")
                .expect("the loopback has addresses")
                .speaking(Speaks::Http2)
        })
        .collect();
    let addresses = origins.iter().map(Origin::address).collect();
    thread::spawn(move || Origin::serve_all(origins));
    addresses
}

async fn check(client: &Client, uri: &http::Uri, timeout: Duration, found: &RefCell<Found>) {
    found.borrow_mut().started += 1;
    let begun: Instant = SystemClock.now();
    let exchange = async {
        let response = client.get(uri.clone()).await.ok()?;
        let status = response.status();
        response.into_body().collect().await.ok()?;
        Some(status)
    };
    let outcome = tokio::time::timeout(timeout, exchange).await;
    let took = SystemClock.now() - begun;
    let found = &mut *found.borrow_mut();
    match outcome {
        Ok(Some(http::StatusCode::OK)) => {
            found.ok += 1;
            found.latency.record(took);
        }
        Ok(_) => found.failed += 1,
        Err(_) => {
            found.failed += 1;
            found.timed_out += 1;
            found.latency.record(took);
        }
    }
}

#[expect(clippy::print_stdout, reason = "a benchmark prints what it found")]
fn print(found: &Found, elapsed: Duration) {
    let aborted = found.started - found.ok - found.failed;
    let rate = found.ok as f64 / elapsed.as_secs_f64();
    println!("total    {}", found.started);
    println!("success  {}", found.ok);
    println!(
        "failed   {} ({} by timeout), aborted {aborted}",
        found.failed, found.timed_out
    );
    println!("rps      {rate:.0}");
    for (name, fraction) in [("p50", 0.5), ("p95", 0.95), ("p99", 0.99)] {
        let latency = found.latency.quantile(fraction).unwrap_or_default();
        println!("{name}      {latency:.1?}");
    }
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    if let Some(peak) = status.lines().find_map(|line| line.strip_prefix("VmHWM:")) {
        println!("rss      {}", peak.trim());
    }
}

#[expect(clippy::disallowed_methods, reason = "this is a program of its own")]
fn number(variable: &str, default: u64) -> Result<u64, String> {
    match std::env::var(variable) {
        Err(_) => Ok(default),
        Ok(text) => text
            .parse()
            .map_err(|_| format!("{variable} is `{text}`: a whole number is needed")),
    }
}
