//! What the monitor's store takes: `monitor_ingest`, results per second until they are flushed, and `monitor_start`, from the
//! file of 10,000 monitors until all of them are scheduled.
//!
//! The store is a SQLite file. `PLIMSOLL_BENCH_SERVERS=1` adds `servers` on PostgreSQL and ClickHouse, which `cargo xtask
//! services install` installs.

#![expect(
    clippy::print_stdout,
    reason = "what was measured beside the figures of Criterion"
)]

#[path = "fixture/stores.rs"]
mod stores;

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use plimsoll_model::Clock as _;
use plimsoll_monitor::config::load;
use plimsoll_monitor::engine::Monitor;
use plimsoll_monitor::store::{MonitorId, NewMonitor, OrgId, ResultRow, Store};
use plimsoll_monitor::{CheckResult, Status, Timestamp};
use plimsoll_wire::SystemClock;
use tokio::runtime::Runtime;

use crate::stores::{Backend, open, setting};

/// Monitors whose results are written.
const MONITORS: usize = 20_000;

/// Results of a batch: one of each monitor, as 20,000 checks a minute bring them.
const BATCHES: i64 = 5;

/// Monitors that start.
const STARTED: usize = 10_000;

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime")
}

/// A store with monitors, and the next time of a result.
struct Fixture {
    store: Arc<dyn Store>,
    org: OrgId,
    monitors: Vec<MonitorId>,
    next: i64,
    folder: tempfile::TempDir,
    runtime: Runtime,
}

impl Fixture {
    fn new(backend: Backend) -> Self {
        let (folder, runtime) = (tempfile::tempdir().expect("a folder"), runtime());
        let store = open(backend, folder.path());
        let now = Timestamp::from_system(SystemClock.wall());
        let (org, monitors) = runtime.block_on(async {
            let org = store.org("default").await.expect("an organisation");
            let one = |number: usize| NewMonitor {
                key: format!("m{number}"),
                name: format!("M{number}"),
                group: String::new(),
                kind: "http".to_owned(),
            };
            let monitors = (0..MONITORS).map(one).collect();
            let ids = store.sync_monitors(org, "file", monitors, now).await;
            (org, ids.expect("monitors"))
        });
        Self {
            store,
            org,
            monitors,
            next: now.0,
            folder,
            runtime,
        }
    }

    /// One result of each monitor.
    fn batch(&mut self) -> Vec<ResultRow> {
        self.next += 60_000;
        let at = Timestamp(self.next);
        let row = |(number, id): (usize, &MonitorId)| {
            let took =
                Duration::from_micros(20_000 + 37 * u64::try_from(number % 1_000).unwrap_or(0));
            ResultRow::from_result(*id, 0, &CheckResult::plain(at, Status::Up, took, None))
        };
        self.monitors.iter().enumerate().map(row).collect()
    }

    /// How long batches take until they are with the database.
    fn write(&mut self) -> Duration {
        let batches: Vec<_> = (0..BATCHES).map(|_| self.batch()).collect();
        let began = SystemClock.now();
        self.runtime.block_on(async {
            for batch in batches {
                self.store.append(self.org, batch).await.expect("results");
                self.store.flush().await.expect("a flush");
            }
        });
        SystemClock.now().saturating_duration_since(began)
    }
}

/// Bytes of all files of a folder.
fn bytes_of(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).expect("a folder").flatten();
    let sizes = entries.filter_map(|entry| entry.metadata().ok());
    sizes
        .filter(fs::Metadata::is_file)
        .map(|file| file.len())
        .sum()
}

fn ingest(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("monitor_ingest");
    group.sample_size(10);
    let results = BATCHES.unsigned_abs() * MONITORS as u64;
    group.throughput(Throughput::Elements(results));
    let mut backends = vec![("sqlite", Backend::Sqlite)];
    if setting("PLIMSOLL_BENCH_SERVERS").is_some() {
        backends.push(("servers", Backend::Servers));
    }
    for (name, backend) in backends {
        let mut fixture = Fixture::new(backend);
        let (before, mut rounds) = (bytes_of(fixture.folder.path()), 0);
        group.bench_function(name, |bencher| {
            bencher.iter_custom(|iterations| {
                rounds += iterations;
                (0..iterations).map(|_| fixture.write()).sum()
            });
        });
        // Nothing was written if a filter left it out.
        if backend == Backend::Sqlite && rounds > 0 {
            let bytes = bytes_of(fixture.folder.path()) - before;
            let all = rounds * results;
            println!(
                "{:.1} bytes per result, write-ahead log included, of {all}",
                bytes as f64 / all as f64
            );
        }
    }
    group.finish();
}

/// From the file to monitors that are scheduled, with an empty store and with that of an earlier run.
fn start(criterion: &mut Criterion) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("monitor.toml");
    let mut text = "store = \"monitor.db\"\n".to_owned();
    for number in 0..STARTED {
        let written = write!(
            text,
            "[[monitor]]\nname = \"m{number}\"\ntcp = \"127.0.0.1:9\"\ninterval = \"1h\"\n"
        );
        written.expect("memory");
    }
    fs::write(&file, text).expect("a file");
    let begin = |folder: &Path| {
        let store = open(Backend::Sqlite, folder);
        let plan = load(&file, &|_| None).expect("a valid configuration");
        Monitor::start(plan, store, Arc::new(|_: &str| {}), &[]).expect("a monitor")
    };
    let mut group = criterion.benchmark_group("monitor_start");
    group.sample_size(10);
    for (name, is_first) in [("first", true), ("again", false)] {
        let kept = tempfile::tempdir().expect("a folder");
        if !is_first {
            drop(begin(kept.path()));
        }
        group.bench_function(name, |bencher| {
            bencher.iter_custom(|iterations| {
                let mut took = Duration::ZERO;
                for _ in 0..iterations {
                    let empty = tempfile::tempdir().expect("a folder");
                    let folder = if is_first { empty.path() } else { kept.path() };
                    let start = SystemClock.now();
                    let monitor = begin(folder);
                    took += SystemClock.now().saturating_duration_since(start);
                    drop(monitor);
                }
                took
            });
        });
    }
    group.finish();
}

criterion_group!(benches, ingest, start);
criterion_main!(benches);
