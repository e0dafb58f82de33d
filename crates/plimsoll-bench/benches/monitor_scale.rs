//! What 100,000 monitors in 20 regions would send, store and ask of the databases: `cargo bench -p plimsoll-bench --bench
//! monitor_scale` prints a table, from unit costs that are measured here on real code.
//!
//! - Results are those of HTTPS checks with all phases. A report of an agent has the results of half a second, as agents send
//!   them; a result that a process hands to the one that leads is as the store keeps it.
//! - Bytes per row are those of the tables of results: of PostgreSQL with their indexes after `VACUUM`, and of ClickHouse's
//!   parts once they are merged. Times of phases are random, since equal ones would be compressed to nothing.
//! - A renewal is what each process does every second: the lease, and its share of the 256 shards. Transactions and bytes of
//!   the write-ahead log are counted by PostgreSQL.
//! - Memory is that of this process with a monitor of 10,000 monitors, less that without, and with ten times as many on paper.
//!
//! Processor times depend on the profile, which is printed; all other figures do not.

#![expect(clippy::print_stdout, reason = "a table is what this is for")]

use std::fs;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_model::{Clock as _, Phase, Phases, Secret};
use plimsoll_monitor::config::load;
use plimsoll_monitor::engine::report::{Found, Report};
use plimsoll_monitor::engine::standby::Standby;
use plimsoll_monitor::engine::{LASTS, Monitor};
use plimsoll_monitor::store::shards::SharedResult;
use plimsoll_monitor::store::{
    MonitorId, NewMonitor, OrgId, ResultRow, ServerOptions, ServerStore, ServerUrls, Store,
};
use plimsoll_monitor::{CheckResult, Status, Timestamp};
use plimsoll_testkit::services::{PostgresServer, clickhouse_database};
use plimsoll_wire::SystemClock;

/// What the table is about.
const MONITORS: u64 = 100_000;
const REGIONS: u64 = 20;
/// Seconds between two checks of a monitor in a region.
const INTERVAL: u64 = 60;
/// Processes that divide the checks of one region.
const PROCESSES: u64 = 4;

/// Monitors of the stand-ins.
const SAMPLE: usize = 10_000;
/// Results of each of them.
const ROUNDS: i64 = 10;
/// Renewals that are counted.
const RENEWALS: u64 = 200;

fn main() {
    // As with other benchmarks, nothing is measured by `cargo test --benches`.
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    let results = MONITORS * REGIONS / INTERVAL;
    println!(
        "{MONITORS} monitors in {REGIONS} regions, checked every {INTERVAL} s: {results} results/s"
    );
    let profile = if cfg!(debug_assertions) {
        "without optimisation"
    } else {
        "optimised"
    };
    println!("processor times: {profile}\n");
    reports(results);
    let postgres = PostgresServer::shared();
    let url = postgres.database();
    let name = url.rsplit('/').next().unwrap_or_default();
    let name = name.split('?').next().unwrap_or_default().to_owned();
    let folder = tempfile::tempdir().expect("a folder");
    let urls = ServerUrls {
        postgres: Secret::new(url),
        clickhouse: None,
        ca: None,
        spill: Some(folder.path().join("spill")),
    };
    let store = ServerStore::open(urls, ServerOptions::default()).expect("a store");
    let store: Arc<dyn Store> = Arc::new(store);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let (org, ids) = stored_monitors(&*store).await;
        let count = insert("PostgreSQL", &*store, (org, &ids), results).await;
        rows_of_postgres((postgres, &name), count, results);
        rows_of_clickhouse(folder.path(), results).await;
        sharing(&*store, (org, &ids), (postgres, &name), results).await;
        leases(&*store, org, (postgres, &name)).await;
    });
    drop(store);
    memory();
}

/// A line of the table.
fn line(what: &str, unit: &str, all: &str) {
    println!("| {what} | {unit} | {all} |");
}

fn result(number: u64, at: Timestamp) -> CheckResult {
    let mut phases = Phases::default();
    let mut random = fastrand::Rng::with_seed(number ^ at.0.unsigned_abs());
    let mut took = Duration::ZERO;
    for (phase, micros) in [
        (Phase::Dns, 180),
        (Phase::Connect, 9_300),
        (Phase::Tls, 21_000),
        (Phase::Wait, 34_000),
        (Phase::Receive, 400),
    ] {
        let part = Duration::from_micros(micros + random.u64(0..micros));
        phases.set(phase, part);
        took += part;
    }
    CheckResult {
        phases,
        code: Some(200),
        connected: true,
        certificate_expires: Some(Timestamp(at.0 + 5_000_000_000)),
        ..CheckResult::plain(at, Status::Up, took, None)
    }
}

fn key(number: u64) -> String {
    format!("group-{}_service-{number}", number % 100)
}

fn now() -> Timestamp {
    Timestamp::from_system(SystemClock.wall())
}

/// Reports of the agents of all regions but one.
fn reports(results: u64) {
    println!("| | one | all |\n|---|---|---|");
    let remote = results * (REGIONS - 1) / REGIONS;
    let agents = (REGIONS - 1) * PROCESSES;
    // Each agent sends twice a second.
    let messages = agents * 2;
    let each = remote.div_ceil(messages);
    let at = now();
    let found =
        (0..each).map(|number| Found::from_result(number, &key(number), result(number, at)));
    let report = Report::first(at, found.collect());
    let bytes = serde_json::to_string(&report).expect("a report").len() as u64;
    line(
        "reports of agents",
        &format!("{each} results, {} bytes each", bytes / each.max(1)),
        &format!(
            "{agents} agents, {messages} messages/s, {:.1} MB/s",
            (messages * bytes) as f64 / 1e6
        ),
    );
}

async fn stored_monitors(store: &dyn Store) -> (OrgId, Vec<MonitorId>) {
    let org = store.org("default").await.expect("an organisation");
    let one = |number: u64| NewMonitor {
        key: key(number),
        name: format!("Service {number}"),
        group: format!("Group {}", number % 100),
        kind: "http".to_owned(),
    };
    let monitors = (0..SAMPLE as u64).map(one).collect();
    let ids = store.sync_monitors(org, "file", monitors, now()).await;
    (org, ids.expect("monitors"))
}

/// Inserts results of all monitors, and returns how many.
async fn insert(
    name: &str,
    store: &dyn Store,
    (org, ids): (OrgId, &[MonitorId]),
    results: u64,
) -> u64 {
    let begun = SystemClock.now();
    for round in 0..ROUNDS {
        let at = Timestamp(now().0 - 3_600_000 + round * 60_000);
        let rows = (0..)
            .zip(ids)
            .map(|(number, id)| ResultRow::from_result(*id, 0, &result(number, at)));
        store.append(org, rows.collect()).await.expect("results");
        store.flush().await.expect("a flush");
    }
    let took = SystemClock.now().saturating_duration_since(begun);
    let count = ROUNDS.unsigned_abs() * ids.len() as u64;
    let each = took.as_secs_f64() / count as f64;
    line(
        &format!("inserts into {name}, with the time that it takes"),
        &format!("{:.0} µs", each * 1e6),
        &format!(
            "{:.0} % of the time of one connection",
            each * results as f64 * 100.0
        ),
    );
    count
}

fn bytes_a_day(what: &str, each: u64, results: u64) {
    line(
        what,
        &format!("{each} bytes"),
        &format!(
            "{results} rows/s, {:.0} GB a day",
            (results * 86_400 * each) as f64 / 1e9
        ),
    );
}

fn rows_of_postgres((postgres, name): (&PostgresServer, &str), count: u64, results: u64) {
    postgres.sql(name, "VACUUM ANALYZE");
    let sql = "SELECT SUM(pg_total_relation_size(inhrelid)) FROM pg_inherits WHERE inhparent = 'results'::REGCLASS";
    let bytes: u64 = postgres.sql(name, sql).parse().expect("a size");
    bytes_a_day(
        "rows of PostgreSQL, with their index",
        bytes / count,
        results,
    );
}

/// The same in ClickHouse.
async fn rows_of_clickhouse(folder: &Path, results: u64) {
    let url = clickhouse_database();
    let urls = ServerUrls {
        postgres: Secret::new(PostgresServer::shared().database()),
        clickhouse: Some(Secret::new(url.clone())),
        ca: None,
        spill: Some(folder.join("spill-2")),
    };
    let store = ServerStore::open(urls, ServerOptions::default()).expect("a store");
    let (org, ids) = stored_monitors(&store).await;
    let count = insert("ClickHouse", &store, (org, &ids), results).await;
    let url = url::Url::parse(&url).expect("a URL");
    let database = url.path().trim_start_matches('/').to_owned();
    let ask = |sql: &str| {
        let address = (url.host_str().expect("a host"), url.port().expect("a port"));
        let mut stream = std::net::TcpStream::connect(address).expect("a connection");
        write!(
            stream,
            "POST / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{sql}",
            sql.len()
        )
        .expect("a request");
        let mut response = String::new();
        stream.read_to_string(&mut response).expect("a response");
        let content = response.split("\r\n\r\n").nth(1).unwrap_or_default();
        content.trim().to_owned()
    };
    ask(&format!("OPTIMIZE TABLE {database}.results FINAL"));
    let bytes = ask(&format!(
        "SELECT sum(bytes_on_disk) FROM system.parts WHERE active AND database = '{database}' AND table = 'results'"
    ));
    match bytes.parse::<u64>() {
        Ok(bytes) => bytes_a_day("rows of ClickHouse", bytes / count, results),
        Err(_) => line("rows of ClickHouse", "not known", &bytes),
    }
}

/// What the processes of the region of the store hand to the one that leads.
async fn sharing(
    store: &dyn Store,
    (org, ids): (OrgId, &[MonitorId]),
    (postgres, name): (&PostgresServer, &str),
    results: u64,
) {
    let own = results / REGIONS;
    // The one that leads keeps its own part.
    let shared = own * (PROCESSES - 1) / PROCESSES;
    let hold = store.hold_share(org, "default", "stand-in", LASTS);
    hold.await.expect("a share");
    let at = now();
    let one = |(number, id): (u64, &MonitorId)| SharedResult {
        number: i64::try_from(number).unwrap_or(0),
        monitor: *id,
        text: {
            let found = Found::from_result(number, &key(number), result(number, at));
            let report = Report::first(at, vec![found]);
            report.handed_over().expect("a report")
        },
    };
    let batch: Vec<_> = (0..1_000).zip(ids).map(one).collect();
    let bytes: usize = batch.iter().map(|one| one.text.len()).sum();
    let log = wal(postgres, name);
    store
        .hand_over(org, "stand-in", batch)
        .await
        .expect("results");
    let fetched = store.fetch_handed_over(org).await.expect("results");
    assert_eq!(fetched.len(), 1_000);
    let log = (wal(postgres, name) - log) / 1_000;
    line(
        "results handed to the process that leads",
        &format!("{} bytes, {log} of the write-ahead log", bytes / 1_000),
        &format!(
            "{shared} a second, {:.1} MB/s",
            (shared * bytes as u64 / 1_000) as f64 / 1e6
        ),
    );
}

/// Bytes that the write-ahead log has had so far.
fn wal(postgres: &PostgresServer, name: &str) -> u64 {
    let sql = "SELECT pg_current_wal_insert_lsn() - '0/0'::PG_LSN";
    let bytes = postgres.sql(name, sql);
    bytes.parse().expect("a number of bytes")
}

/// Renewals of the lease and of the shares.
async fn leases(store: &dyn Store, org: OrgId, (postgres, name): (&PostgresServer, &str)) {
    let holder = |number: u64| format!("process-{number}");
    let renew = async |number: u64| {
        let holder = holder(number);
        store
            .hold_lease("default", &holder, LASTS)
            .await
            .expect("a lease");
        let share = store.hold_share(org, "default", &holder, LASTS);
        share.await.expect("a share");
    };
    // Until the shards are divided.
    for number in 0..PROCESSES * 4 {
        renew(number % PROCESSES).await;
    }
    let log = wal(postgres, name);
    let begun = SystemClock.now();
    for number in 0..RENEWALS {
        renew(number % PROCESSES).await;
    }
    let took = SystemClock.now().saturating_duration_since(begun);
    let log = (wal(postgres, name) - log) / RENEWALS;
    line(
        "renewals of the lease and of a share of 256 shards",
        &format!(
            "2 transactions, {log} bytes of the log, {:.1} ms",
            took.as_secs_f64() * 1e3 / RENEWALS as f64
        ),
        &format!(
            "{} transactions/s with {PROCESSES} processes, {:.1} kB/s of the log",
            PROCESSES * 2,
            (PROCESSES * log) as f64 / 1e3
        ),
    );
}

/// Bytes of memory of this process that are no file's.
fn own_memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("Linux");
    let kilobytes = status
        .lines()
        .find_map(|line| line.strip_prefix("RssAnon:"))
        .and_then(|text| text.trim().strip_suffix(" kB"))
        .and_then(|text| text.parse::<u64>().ok());
    kilobytes.expect("a size") * 1_024
}

/// The memory of a process with monitors, and what a process that stands by reads.
fn memory() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("monitor.toml");
    let database = PostgresServer::shared().database();
    let mut text = format!("store = \"{database}\"\n");
    for number in 0..SAMPLE {
        let written = std::fmt::Write::write_fmt(
            &mut text,
            format_args!(
                "[[monitor]]\nname = \"Service {number}\"\ngroup = \"Group {}\"\nhttp = \"https://service-{number}.example.org/\"\ninterval = \"1h\"\n",
                number % 100
            ),
        );
        written.expect("memory");
    }
    fs::write(&file, text).expect("a file");
    let before = own_memory();
    let plan = load(&file, &|_| None).expect("a valid configuration");
    let store = plan.open_store().expect("a store");
    let monitor = Monitor::start(
        plan.clone(),
        Arc::clone(&store),
        Arc::new(|_: &str| {}),
        &[],
    );
    let monitor = monitor.expect("a monitor");
    let each = own_memory().saturating_sub(before) / SAMPLE as u64;
    line(
        "memory of a process for its monitors",
        &format!("{:.1} kB", each as f64 / 1e3),
        &format!("{:.0} MB", (each * MONITORS) as f64 / 1e6),
    );
    drop(monitor);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let standby = Standby::new("default", Arc::clone(&store));
        let mut standby = standby.await.expect("a standby");
        let mut refresh = async |elapsed| {
            let refresh = standby.refresh(&plan, 0, (now(), elapsed));
            refresh.await.expect("what the store has");
        };
        refresh(Duration::ZERO).await;
        let begun = SystemClock.now();
        refresh(Duration::from_secs(2)).await;
        let took = SystemClock.now().saturating_duration_since(begun);
        line(
            "a look of a process that stands by at all monitors",
            &format!(
                "{:.1} µs for each monitor",
                took.as_secs_f64() * 1e6 / SAMPLE as f64
            ),
            &format!(
                "{:.1} s",
                took.as_secs_f64() / SAMPLE as f64 * MONITORS as f64
            ),
        );
    });
}
