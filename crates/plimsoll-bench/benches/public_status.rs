//! What the first reader of a public status page waits for: `public_status_ttfb` and `public_status_concurrent`.
//!
//! A store with 50 organisations of 50 monitors with 60 results each. Every sample begins without a
//! snapshot, so it reads the store: `build` answers with a few bytes, `http` renders and compresses the page as well,
//! `warm` has the snapshot. The store is made before anything is measured, and its time printed.
//!
//! The store is a SQLite file. `PLIMSOLL_BENCH_SERVERS=1` adds `servers_build` and `servers_http` on PostgreSQL and ClickHouse, which `cargo
//! xtask services install` installs; `PLIMSOLL_BENCH_RESULTS=10000000` adds `large_build` and `large_http` on a SQLite file with so many
//! results in all, which takes some minutes and a gigabyte to make.

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
use plimsoll_monitor::engine::Monitor;
use plimsoll_monitor::store::{NewMonitor, ResultRow, Retention, Store};
use plimsoll_monitor::{CheckResult, Status, Timestamp};
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
        let monitor = plimsoll_monitor_web::start(plan, store, Arc::new(|_: &str| {}));
        let monitor = monitor.expect("a monitor");
        println!(
            "fixture: {ORGANISATIONS} organisations of {MONITORS} monitors with {results} results each, {backend:?}, in {:?}",
            SystemClock.now().saturating_duration_since(began)
        );
        Self {
            monitor,
            runtime,
            _folder: folder,
        }
    }

    /// Routes without any snapshot.
    fn cold(&self) -> axum::Router {
        plimsoll_monitor_web::router(self.monitor.handle().clone())
    }
}

/// The bytes of a page, compressed.
async fn fetch(mut router: axum::Router, path: &str) -> usize {
    let request = Request::get(path).header("accept-encoding", "gzip");
    let request = request.body(Body::empty()).expect("a request");
    let response = router.call(request).await.expect("a response");
    assert!(response.status().is_success(), "{}", response.status());
    let content = to_bytes(response.into_body(), 1 << 24)
        .await
        .expect("a body");
    content.len()
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
                || fixture.cold(),
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
    let warm = fixture.cold();
    let bytes = fixture
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
                || (0..*builds).map(|_| fixture.cold()).collect::<Vec<_>>(),
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
