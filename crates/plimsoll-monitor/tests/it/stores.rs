//! The store in SQLite: its files, and processes that are killed.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use plimsoll_monitor::store::{
    self, Change, EventKind, IncidentFilter, NewMonitor, ResultRow, SqliteOptions, SqlitePath,
    SqliteStore, Store, StoreError,
};
use plimsoll_monitor::{Status, Timestamp};
use tempfile::TempDir;

use crate::client::sqlite;

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(future)
}

fn row(monitor: store::MonitorId, at: i64) -> ResultRow {
    ResultRow {
        monitor,
        region: 0,
        at: Timestamp(1_772_366_400_000 + at),
        status: Status::Up,
        took_us: 12_345,
        phases_us: [None, Some(180), Some(2_300), Some(9_000), Some(40)],
        code: Some(200),
        certificate_days: None,
        detail: None,
    }
}

fn monitor() -> NewMonitor {
    NewMonitor {
        key: "a".to_owned(),
        name: "a".to_owned(),
        group: String::new(),
        kind: "http".to_owned(),
    }
}

#[test]
fn a_store_is_open_in_one_process_at_a_time_and_no_newer_one_is_touched() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("a.db");
    let first = sqlite(&path);
    let open = || SqliteStore::open(&SqlitePath::File(path.clone()), SqliteOptions::default());
    assert!(matches!(open(), Err(StoreError::InUse(_))));
    drop(first);
    drop(open().unwrap());
    let connection = rusqlite::Connection::open(&path).unwrap();
    connection.pragma_update(None, "user_version", 99).unwrap();
    drop(connection);
    let error = open().unwrap_err();
    assert!(
        matches!(error, StoreError::Newer { found: 99, .. }),
        "{error}"
    );
    std::fs::write(
        folder.path().join("b.db"),
        "this is no database at all, but a text",
    )
    .unwrap();
    let error = SqliteStore::open(
        &SqlitePath::File(folder.path().join("b.db")),
        SqliteOptions::default(),
    );
    assert!(
        matches!(
            error,
            Err(StoreError::Open { .. } | StoreError::Database(_))
        ),
        "{error:?}"
    );
}

#[test]
fn a_backup_of_a_store_in_use_is_restored() {
    let folder = TempDir::new().unwrap();
    let (path, copy) = (folder.path().join("a.db"), folder.path().join("copy.db"));
    let store = sqlite(&path);
    let (org, id) = block_on(async {
        let org = store.org("default").await.unwrap();
        let id = store
            .sync_monitors(org, "file", vec![monitor()], Timestamp(0))
            .await
            .unwrap()[0];
        store
            .append(org, (0..100).map(|at| row(id, at * 1000)).collect())
            .await
            .unwrap();
        store.flush().await.unwrap();
        (org, id)
    });
    store::backup(&path, &copy).unwrap();
    assert!(
        store::backup(&path, &copy).is_err(),
        "a backup is not overwritten"
    );
    block_on(async {
        store.append(org, vec![row(id, 1_000_000)]).await.unwrap();
        store.flush().await.unwrap();
    });
    assert!(matches!(
        store::restore(&copy, &path, true),
        Err(StoreError::InUse(_))
    ));
    drop(store);
    assert!(store::restore(&copy, &path, false).is_err(), "it exists");
    store::restore(&copy, &path, true).unwrap();
    let store = sqlite(&path);
    let found = block_on(store.results(org, id, Timestamp(i64::MAX), 1_000)).unwrap();
    assert_eq!(
        found.len(),
        100,
        "the state of the backup, and nothing after it"
    );
    drop(store);
    let mut damaged = std::fs::read(&copy).unwrap();
    let middle = damaged.len() / 2;
    damaged[middle..].fill(0x5a);
    std::fs::write(&copy, damaged).unwrap();
    assert!(
        store::restore(&copy, &path, true).is_err(),
        "a damaged backup replaces nothing"
    );
    assert_eq!(
        block_on(sqlite(&path).results(org, id, Timestamp(i64::MAX), 1_000))
            .unwrap()
            .len(),
        100
    );
}

#[test]
fn a_raw_result_takes_at_most_sixty_bytes() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("a.db");
    let store = sqlite(&path);
    let size = || std::fs::metadata(&path).unwrap().len();
    let (org, id) = block_on(async {
        let org = store.org("default").await.unwrap();
        let id = store
            .sync_monitors(org, "file", vec![monitor()], Timestamp(0))
            .await
            .unwrap()[0];
        (org, id)
    });
    block_on(async {
        for batch in 0..20 {
            let rows = (0..5_000)
                .map(|at| row(id, (batch * 5_000 + at) * 10_000))
                .collect();
            store.append(org, rows).await.unwrap();
        }
        store.flush().await.unwrap();
    });
    drop(store);
    let bytes = size() / 100_000;
    assert!(bytes <= 60, "{bytes} bytes");
}

/// The process that [`a_killed_process_loses_no_incident`] kills: it writes until it dies, and prints what it was
/// promised.
#[test]
#[expect(clippy::disallowed_methods, reason = "the parent test names the store")]
fn writes_until_it_is_killed() {
    let Ok(path) = std::env::var("PLIMSOLL_TEST_KILLED_STORE") else {
        return;
    };
    let store = sqlite(path.as_ref());
    block_on(async {
        let org = store.org("default").await.unwrap();
        let id = store
            .sync_monitors(org, "file", vec![monitor()], Timestamp(0))
            .await
            .unwrap()[0];
        for number in 0_i64.. {
            let at = Timestamp(number * 10);
            let rows = (0..50)
                .map(|offset| row(id, number * 50 + offset))
                .collect();
            store.append(org, rows).await.unwrap();
            let changes = vec![
                Change::Opened {
                    monitor: id,
                    at,
                    reason: None,
                },
                Change::Event {
                    monitor: id,
                    at,
                    kind: EventKind::Acknowledged,
                    actor: None,
                    text: None,
                },
                Change::Resolved {
                    monitor: id,
                    at,
                    by: plimsoll_monitor::detect::Resolution::Recovery,
                    actor: None,
                },
            ];
            store.record(org, changes).await.unwrap();
            println!("recorded {number}");
        }
    });
}

#[test]
fn a_killed_process_loses_no_incident() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("a.db");
    let mut promised = 0;
    for round in 0..3_usize {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "stores::writes_until_it_is_killed",
                "--nocapture",
            ])
            .env("PLIMSOLL_TEST_KILLED_STORE", &path)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let recorded = lines
            .map_while(Result::ok)
            .filter(|line| line.contains("recorded "));
        promised += recorded.take(20 + round * 7).count();
        child.kill().unwrap();
        child.wait().unwrap();
        let store = sqlite(&path);
        let (incidents, results) = block_on(async {
            let org = store.org("default").await.unwrap();
            let monitors = store.monitors(org).await.unwrap();
            let all = store
                .incidents(org, IncidentFilter::default(), None, 100_000)
                .await
                .unwrap();
            let results = store
                .results(org, monitors[0].id, Timestamp(i64::MAX), 1_000_000)
                .await
                .unwrap();
            (all, results.len())
        });
        assert!(
            incidents.len() >= promised,
            "{} of {promised}",
            incidents.len()
        );
        assert!(
            incidents
                .iter()
                .all(|one| one.acknowledged.is_some() && one.resolved.is_some())
        );
        // Each record flushes the results before it.
        assert!(results >= 50 * 20, "{results}");
        promised = incidents.len();
    }
}
