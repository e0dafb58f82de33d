//! What the first reader of a public status page waits for: `public_status_ttfb` and `public_status_concurrent`.
//!
//! A store with 50 organisations of 50 monitors with 60 results each; each tenth monitor had four outages in 90 days. Every sample
//! begins without a snapshot. `build` answers with a few bytes and reads the store, as a process does that runs no checks;
//! `board_build` is the same in the process that runs them, whose board has the histories. `http` and `board_http` render and
//! compress the page as well, `warm` has the snapshot. The store is made before anything is measured, and its time printed.
//!
//! The store is a SQLite file. `PLIMSOLL_BENCH_SERVERS=1` adds the same on PostgreSQL and ClickHouse, which `cargo xtask services
//! install` installs, as `servers_build` and so on; `PLIMSOLL_BENCH_RESULTS=10000000` adds `large_build` and so on on a SQLite file
//! with so many results in all, which takes some minutes and a gigabyte to make.

#![expect(
    clippy::print_stdout,
    reason = "what was measured beside the figures of Criterion"
)]

#[path = "fixture/stores.rs"]
mod stores;

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, to_bytes};
use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use futures_util::future::join_all;
use http::Request;
use plimsoll_model::Clock as _;
use plimsoll_monitor::config::load;
use plimsoll_monitor::detect::Resolution;
use plimsoll_monitor::engine::standby::Standby;
use plimsoll_monitor::engine::{Handle, Monitor};
use plimsoll_monitor::store::{Change, MonitorId, NewMonitor, ResultRow, Retention, Store};
use plimsoll_monitor::{CheckResult, Health, Status, Timestamp};
use plimsoll_wire::SystemClock;
use tokio::runtime::Runtime;
use tower_service::Service as _;

use crate::stores::{Backend, open, setting};

const ORGANISATIONS: usize = 50;
const MONITORS: usize = 50;
const RESULTS: i64 = 60;

/// Results that are handed over at once.
const BATCH: usize = 20_000;

/// A monitor on a filled store.
struct Fixture {
    monitor: Monitor,
    /// The same for a process that runs no checks.
    standby: Standby,
    runtime: Runtime,
    _folder: tempfile::TempDir,
}

fn monitors() -> Vec<NewMonitor> {
    let one = |number: usize| NewMonitor {
        key: format!("g{}_m{number}", number % 5),
        name: format!("M{number}"),
        group: format!("G{}", number % 5),
        kind: "manual".to_owned(),
    };
    (0..MONITORS).map(one).collect()
}

fn configuration() -> String {
    use std::fmt::Write as _;

    let mut text = String::from(
        "organisation = \"org-0\"\nstore = \"monitor.db\"\n[[page]]\nslug = \"acme\"\ntitle = \"Acme\"\n",
    );
    for one in monitors() {
        let (name, group) = (one.name, one.group);
        writeln!(
            text,
            "[[monitor]]\nname = \"{name}\"\ngroup = \"{group}\"\nmanual = true"
        )
        .expect("memory");
    }
    text
}

/// Up for 90 days, but for outages of 20 minutes.
fn health(monitor: MonitorId, outages: i64, now: Timestamp) -> Vec<Change> {
    const DAY: i64 = 86_400_000;

    let health = |at, health| Change::Health {
        monitor,
        at,
        health,
        reason: None,
    };
    let begin = Timestamp(now.0 - 90 * DAY);
    let outages = (1..=outages).flat_map(|number| {
        let down = Timestamp(begin.0 + number * 20 * DAY);
        let up = Timestamp(down.0 + 20 * 60_000);
        [
            health(down, Health::Down),
            Change::Opened {
                monitor,
                at: down,
                reason: Some("connection refused".to_owned()),
            },
            health(up, Health::Up),
            Change::Resolved {
                monitor,
                at: up,
                by: Resolution::Recovery,
                lasted: Duration::from_mins(20),
                actor: None,
            },
        ]
    });
    std::iter::once(health(begin, Health::Up))
        .chain(outages)
        .collect()
}

/// - `results`: of each monitor, a minute apart.
async fn fill(store: &dyn Store, results: i64, now: Timestamp) {
    for number in 0..ORGANISATIONS {
        let org = store
            .org(&format!("org-{number}"))
            .await
            .expect("an organisation");
        let ids = store
            .sync_monitors(org, "file", monitors(), now)
            .await
            .expect("monitors");
        let rows = ids.iter().enumerate().flat_map(|(index, id)| {
            (0..results).map(move |back| {
                let at = Timestamp(now.0 - (results - back) * 60_000);
                let is_up = (index + usize::try_from(back).unwrap_or(0)) % 40 > 0;
                let status = if is_up { Status::Up } else { Status::Down };
                let took = u64::try_from(back % 60).unwrap_or(0);
                let took = Duration::from_micros(800 + 7 * took);
                ResultRow::from_result(*id, 0, &CheckResult::plain(at, status, took, None))
            })
        });
        let changes = ids.iter().enumerate().flat_map(|(index, id)| {
            let outages = if index % 10 == 0 { 4 } else { 0 };
            health(*id, outages, now)
        });
        let recorded = store.record(org, changes.collect());
        recorded.await.expect("changes");
        let rows: Vec<_> = rows.collect();
        for batch in rows.chunks(BATCH) {
            store.append(org, batch.to_vec()).await.expect("results");
            store.flush().await.expect("a flush");
        }
    }
    store.flush().await.expect("a flush");
    store
        .upkeep(now, Retention::default())
        .await
        .expect("rollups");
}

impl Fixture {
    /// - `results`: of each monitor.
    fn new(backend: Backend, results: i64) -> Self {
        let began = SystemClock.now();
        let folder = tempfile::tempdir().expect("a folder");
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .expect("a runtime");
        let file = folder.path().join("monitor.toml");
        std::fs::write(&file, configuration()).expect("a file");
        let store = open(backend, folder.path());
        let now = Timestamp::from_system(SystemClock.wall());
        runtime.block_on(fill(&*store, results, now));
        let plan = load(&file, &|_| None).expect("a valid configuration");
        let standby = Standby::new("org-0", Arc::clone(&store));
        let mut standby = runtime.block_on(standby).expect("a standby");
        let refreshed = standby.refresh(&plan, 1, (now, Duration::ZERO));
        runtime.block_on(refreshed).expect("a board");
        let monitor = plimsoll_monitor_web::start(plan, store, Arc::new(|_: &str| {}));
        let monitor = monitor.expect("a monitor");
        println!(
            "fixture: {ORGANISATIONS} organisations of {MONITORS} monitors with {results} results each, {backend:?}, in {:?}",
            SystemClock.now().saturating_duration_since(began)
        );
        Self {
            monitor,
            standby,
            runtime,
            _folder: folder,
        }
    }

    /// Routes of the process that checks, without any snapshot.
    fn by_board(&self) -> axum::Router {
        router(self.monitor.handle())
    }

    /// Routes of one that does not.
    fn by_store(&self) -> axum::Router {
        router(self.standby.handle())
    }
}

fn router(handle: &Handle) -> axum::Router {
    plimsoll_monitor_web::router(handle.clone())
}

/// The bytes of a page, compressed, and the routes: their end is nothing that a reader waits for.
async fn fetch(mut router: axum::Router, path: &'static str) -> (usize, axum::Router) {
    let request = Request::get(path).header("accept-encoding", "gzip");
    let request = request.body(Body::empty()).expect("a request");
    let response = router.call(request).await.expect("a response");
    assert!(response.status().is_success(), "{}", response.status());
    let content = to_bytes(response.into_body(), 1 << 24)
        .await
        .expect("a body");
    (content.len(), router)
}

type Group<'a> = criterion::BenchmarkGroup<'a, criterion::measurement::WallTime>;

/// The first reader of a page, whose snapshot is not there.
///
/// - `prefix`: of the names.
fn cold(group: &mut Group<'_>, prefix: &str, fixture: &Fixture) {
    for (name, path) in [
        ("build", "/status/acme/shields.json"),
        ("http", "/status/acme/"),
    ] {
        group.bench_function(format!("{prefix}{name}"), |bencher| {
            bencher.iter_batched(
                || fixture.by_store(),
                |router| fixture.runtime.block_on(fetch(router, path)),
                criterion::BatchSize::PerIteration,
            );
        });
        group.bench_function(format!("{prefix}board_{name}"), |bencher| {
            bencher.iter_batched(
                || fixture.by_board(),
                |router| fixture.runtime.block_on(fetch(router, path)),
                criterion::BatchSize::PerIteration,
            );
        });
    }
}

fn ttfb(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("public_status_ttfb");
    group.sample_size(40);
    if setting("PLIMSOLL_BENCH_SERVERS").is_some() {
        cold(
            &mut group,
            "servers_",
            &Fixture::new(Backend::Servers, RESULTS),
        );
    }
    if let Some(total) = setting("PLIMSOLL_BENCH_RESULTS") {
        let total: i64 = total.parse().expect("a number of results");
        let of_each = total / i64::try_from(ORGANISATIONS * MONITORS).unwrap_or(1);
        cold(
            &mut group,
            "large_",
            &Fixture::new(Backend::Sqlite, of_each.max(1)),
        );
    }
    let fixture = Fixture::new(Backend::Sqlite, RESULTS);
    cold(&mut group, "", &fixture);
    let warm = fixture.by_board();
    let (bytes, _) = fixture
        .runtime
        .block_on(fetch(warm.clone(), "/status/acme/"));
    println!("page: {bytes} bytes, compressed");
    group.bench_function("warm", |bencher| {
        bencher.iter(|| {
            fixture
                .runtime
                .block_on(fetch(warm.clone(), "/status/acme/"))
        });
    });
    group.finish();
}

fn concurrent(criterion: &mut Criterion) {
    let fixture = Fixture::new(Backend::Sqlite, RESULTS);
    let mut group = criterion.benchmark_group("public_status_concurrent");
    group.sample_size(40);
    for builds in [1_usize, 8, 16, 32, 48, 64] {
        group.throughput(criterion::Throughput::Elements(builds as u64));
        let id = BenchmarkId::from_parameter(builds);
        group.bench_with_input(id, &builds, |bencher, builds| {
            bencher.iter_batched(
                || (0..*builds).map(|_| fixture.by_store()).collect::<Vec<_>>(),
                |routers| {
                    let all = routers.into_iter().map(|router| {
                        fixture
                            .runtime
                            .spawn(fetch(router, "/status/acme/shields.json"))
                    });
                    let all: Vec<_> = all.collect();
                    fixture.runtime.block_on(join_all(all))
                },
                criterion::BatchSize::PerIteration,
            );
        });
    }
    group.finish();
}

criterion_group!(benches, ttfb, concurrent);
criterion_main!(benches);
