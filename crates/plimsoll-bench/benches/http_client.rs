//! One check end to end, and many at once, beside the same with the legacy client of hyper-util.
//!
//! Each check is a GET over HTTP/2 by prior knowledge on one shared connection over loopback: a limit
//! on time, the whole response read, its status looked at. `1c` has client and origin on one thread,
//! so it shows what one core carries; `2c` gives the origin a separate thread, so the processor
//! time of the client's thread can be measured, which is printed at the end.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use criterion::{Criterion, Throughput};
use futures_util::future::join_all;
use http_body_util::{BodyExt, Empty};
use hyper_util::client::legacy::Client as HyperClient;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use plimsoll_client::check::{CheckPlan, Checker, Condition, Expectations, SharedConnections};
use plimsoll_client::{ConnectOptions, ConnectPlan, Connector, Endpoint, ReadBuffer, Request};
use plimsoll_model::{Clock, Verdict};
use plimsoll_wire::h1::Limits;
use plimsoll_wire::{SystemClock, cpu_time, h2 as wire_h2};
use tokio::net::TcpListener;
use tokio::runtime::{Builder, LocalOptions, LocalRuntime};

const TIMEOUT: Duration = Duration::from_secs(30);
const AT_ONCE: [usize; 4] = [100, 1000, 10_000, 50_000];
/// As many streams as are ever made at once.
const STREAMS: u32 = 100_000;
const BODY: &[u8] = b"ok";

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    let mut costs = Costs::default();
    for cores in [Cores::One, Cores::Two] {
        let group = format!("http_check_single/{}", cores.name());
        both(&mut criterion, &group, cores, 1, &mut costs);
        for count in AT_ONCE {
            let group = format!("http_check_throughput/{}/c_{count}", cores.name());
            both(&mut criterion, &group, cores, count, &mut costs);
        }
    }
    criterion.final_summary();
    costs.print();
}

/// Threads that client and origin have together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cores {
    One,
    Two,
}

impl Cores {
    fn name(self) -> &'static str {
        match self {
            Self::One => "1c",
            Self::Two => "2c",
        }
    }
}

/// Makes checks at once.
trait Client {
    const NAME: &str;

    /// For `count` checks at a time; called within the runtime.
    fn new(origin: SocketAddr, count: usize) -> Self;

    /// Makes all of them and waits for the last one.
    async fn round(&mut self);
}

fn both(criterion: &mut Criterion, group: &str, cores: Cores, count: usize, costs: &mut Costs) {
    measure::<Ours>(criterion, group, cores, count, costs);
    measure::<Hyper>(criterion, group, cores, count, costs);
}

fn measure<C: Client>(
    criterion: &mut Criterion,
    group: &str,
    cores: Cores,
    count: usize,
    costs: &mut Costs,
) {
    let mut group_of = criterion.benchmark_group(group);
    group_of.throughput(Throughput::Elements(count as u64));
    // A round of many takes long; criterion's smallest number of samples is enough for it.
    if count > 1000 {
        group_of.sample_size(10);
    }
    group_of.bench_function(C::NAME, |bencher| {
        let runtime = runtime();
        let origin = match cores {
            Cores::One => runtime.block_on(async { listen() }),
            Cores::Two => listen_elsewhere(),
        };
        let mut client = runtime.block_on(async {
            let mut client = C::new(origin, count);
            // The connection is there when measuring begins.
            client.round().await;
            client
        });
        bencher.iter_custom(|rounds| {
            let cpu = cpu_time::of_this_thread();
            let start = SystemClock.now();
            runtime.block_on(async {
                for _ in 0..rounds {
                    client.round().await;
                }
            });
            let elapsed = SystemClock.now() - start;
            let checks = rounds * count as u64;
            let spent = Spent {
                cpu: cpu_time::of_this_thread().saturating_sub(cpu),
                elapsed,
                checks,
            };
            costs.add(group, C::NAME, &spent);
            elapsed
        });
    });
    group_of.finish();
}

fn runtime() -> LocalRuntime {
    Builder::new_current_thread()
        .enable_all()
        .build_local(LocalOptions::default())
        .expect("the system has what a runtime needs")
}

/// An origin on this thread.
fn listen() -> SocketAddr {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("the loopback has ports");
    listener.set_nonblocking(true).expect("sockets can be");
    let listener = TcpListener::from_std(listener).expect("it was just made");
    let address = listener.local_addr().expect("it is bound");
    tokio::task::spawn_local(async move {
        while let Ok((stream, _)) = listener.accept().await {
            stream.set_nodelay(true).expect("it was just accepted");
            tokio::task::spawn_local(serve(stream));
        }
    });
    address
}

/// An origin on a thread of its own, until the process ends.
fn listen_elsewhere() -> SocketAddr {
    let (send, received) = mpsc::channel();
    thread::spawn(move || {
        runtime().block_on(async {
            send.send(listen()).expect("somebody waits for it");
            std::future::pending::<()>().await;
        });
    });
    received.recv().expect("the thread sends it first of all")
}

async fn serve(stream: tokio::net::TcpStream) -> Result<(), h2::Error> {
    let mut connection = h2::server::Builder::new()
        .max_concurrent_streams(STREAMS)
        .handshake::<_, Bytes>(stream)
        .await?;
    while let Some(accepted) = connection.accept().await {
        let (_, mut respond) = accepted?;
        let response = http::Response::new(());
        let mut content = respond.send_response(response, false)?;
        content.send_data(Bytes::from_static(BODY), true)?;
    }
    Ok(())
}

/// The checks of this workspace.
struct Ours {
    connector: Connector,
    buffer: ReadBuffer,
    checkers: Vec<Checker>,
}

const VALID: &str = "it is made of constants that are valid";

impl Client for Ours {
    const NAME: &str = "plimsoll";

    fn new(origin: SocketAddr, count: usize) -> Self {
        let endpoint = Endpoint::parse(&format!("http://{origin}/")).expect(VALID);
        let authority = endpoint.authority();
        let request = Request::encode_http2("GET", "http", authority, "/", &[], None);
        let plan = Arc::new(CheckPlan {
            digest: None,
            grpc: None,
            request: request.expect(VALID),
            endpoint: endpoint.clone(),
            expectations: Expectations::new(vec![Condition::parse("status == 200").expect(VALID)]),
            timeout: TIMEOUT,
            limits: Limits::default(),
        });
        let settings = wire_h2::Settings {
            streams: STREAMS,
            ..wire_h2::Settings::default()
        };
        let connections = SharedConnections::new(endpoint, 1, settings);
        let buffer = ReadBuffer::new();
        let (driven, shared) = (connections.clone(), buffer.clone());
        tokio::task::spawn_local(async move { driven.drive(&shared, &SystemClock).await });
        let checker = || Checker::sharing(Arc::clone(&plan), connections.clone());
        let connect = ConnectPlan::new(ConnectOptions::default()).expect(VALID);
        Self {
            connector: Connector::new(Arc::new(connect)),
            buffer,
            checkers: (0..count).map(|_| checker()).collect(),
        }
    }

    async fn round(&mut self) {
        let (connector, buffer) = (&self.connector, &self.buffer);
        let checks = self
            .checkers
            .iter_mut()
            .map(|checker| checker.check(connector, buffer, &SystemClock));
        for outcome in join_all(checks).await {
            assert_eq!(outcome.verdict, Verdict::Met, "{outcome:?}");
        }
    }
}

/// The same with hyper-util.
struct Hyper {
    client: HyperClient<HttpConnector, Empty<Bytes>>,
    uri: http::Uri,
    count: usize,
}

impl Client for Hyper {
    const NAME: &str = "hyper-util";

    fn new(origin: SocketAddr, count: usize) -> Self {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        Self {
            client: HyperClient::builder(TokioExecutor::new())
                .http2_only(true)
                .build(connector),
            uri: format!("http://{origin}/").parse().expect(VALID),
            count,
        }
    }

    async fn round(&mut self) {
        let check = || async {
            let exchange = async {
                let response = self.client.get(self.uri.clone()).await?;
                let status = response.status();
                let content = response.into_body().collect().await.map(|_| ());
                Ok::<_, hyper_util::client::legacy::Error>((status, content))
            };
            tokio::time::timeout(TIMEOUT, exchange).await
        };
        for outcome in join_all((0..self.count).map(|_| check())).await {
            let (status, content) = outcome.expect("it is answered").expect("it is answered");
            assert_eq!(status, http::StatusCode::OK);
            content.expect("its content comes");
        }
    }
}

/// What checks took.
#[derive(Debug, Default, Clone, Copy)]
struct Spent {
    /// Processor time of the client's thread.
    cpu: Duration,
    elapsed: Duration,
    checks: u64,
}

impl Spent {
    fn cpu_us_per_check(&self) -> Option<f64> {
        (self.checks > 0).then(|| self.cpu.as_secs_f64() * 1e6 / self.checks as f64)
    }

    fn us_per_check(&self) -> Option<f64> {
        (self.checks > 0).then(|| self.elapsed.as_secs_f64() * 1e6 / self.checks as f64)
    }
}

/// What checks took, by group and client.
#[derive(Debug, Default)]
struct Costs(BTreeMap<String, BTreeMap<&'static str, Spent>>);

impl Costs {
    fn add(&mut self, group: &str, client: &'static str, more: &Spent) {
        let of_group = self.0.entry(group.to_owned()).or_default();
        let spent = of_group.entry(client).or_default();
        spent.cpu += more.cpu;
        spent.elapsed += more.elapsed;
        spent.checks += more.checks;
    }

    fn spent(&self, group: &str, client: &str) -> Option<&Spent> {
        self.0.get(group)?.get(client)
    }

    #[expect(clippy::print_stdout, reason = "a benchmark prints what it found")]
    fn print(&self) {
        println!("CPU µs per check of the client's thread; with 1c the origin's are in it");
        for group in self.0.keys() {
            let each = |name| self.spent(group, name)?.cpu_us_per_check();
            if let (Some(ours), Some(peer)) = (each(Ours::NAME), each(Hyper::NAME)) {
                println!(
                    "{group:<36} {} {ours:>7.2}  {} {peer:>7.2}  ratio {:.2}",
                    Ours::NAME,
                    Hyper::NAME,
                    ours / peer,
                );
            }
        }
        println!(
            "\nWhat a thread of checks carries: from how many at once on, and how long each takes"
        );
        for cores in [Cores::One, Cores::Two] {
            for client in [Ours::NAME, Hyper::NAME] {
                if let Some((count, took)) = self.saturation(cores, client) {
                    println!(
                        "{:<4} {client:<12} {took:>7.2} µs per check, {:>9.0} checks/s, from {count} at once on",
                        cores.name(),
                        1e6 / took,
                    );
                }
            }
        }
    }

    /// The fewest at once with which the rate is within a twentieth of the best, and the time per check.
    fn saturation(&self, cores: Cores, client: &str) -> Option<(usize, f64)> {
        let measured: Vec<(usize, f64)> = AT_ONCE
            .into_iter()
            .filter_map(|count| {
                let group = format!("http_check_throughput/{}/c_{count}", cores.name());
                Some((count, self.spent(&group, client)?.us_per_check()?))
            })
            .collect();
        let best = measured.iter().map(|(_, took)| *took).reduce(f64::min)?;
        measured.into_iter().find(|(_, took)| *took <= best / 0.95)
    }
}
