use std::cell::Cell;

use tempfile::TempDir;

use super::*;
use crate::detect::status::Status;
use crate::probe::reading::CheckResult;
use crate::store::contract::contract;

#[test]
fn a_store_in_memory_keeps_the_contract() {
    contract(|| SqliteStore::open(&SqlitePath::Memory, SqliteOptions::default()).unwrap());
}

#[test]
fn a_store_in_a_file_keeps_the_contract() {
    let folder = TempDir::new().unwrap();
    let count = Cell::new(0);
    contract(|| {
        count.set(count.get() + 1);
        let path = folder.path().join(format!("{}.db", count.get()));
        SqliteStore::open(&SqlitePath::File(path), SqliteOptions::default()).unwrap()
    });
}

#[test]
fn results_that_are_too_many_for_a_slow_store_are_refused_and_counted() {
    let options = SqliteOptions {
        flush_every: Duration::from_hours(1),
        most_waiting: 10,
        ..SqliteOptions::default()
    };
    let store = SqliteStore::open(&SqlitePath::Memory, options).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let org = store.org("a").await.unwrap();
        let monitor = NewMonitor {
            key: "a".to_owned(),
            name: "a".to_owned(),
            group: String::new(),
            kind: "http".to_owned(),
        };
        let id = store
            .sync_monitors(org, "file", vec![monitor], Timestamp(0))
            .await
            .unwrap()[0];
        let rows = |from: i64, count: i64| -> Vec<ResultRow> {
            let result = |at| {
                let result = CheckResult::plain(Timestamp(at), Status::Up, Duration::ZERO, None);
                ResultRow::of(id, 0, &result)
            };
            (from..from + count).map(result).collect()
        };
        store.append(org, rows(0, 8)).await.unwrap();
        let refused = store.append(org, rows(8, 3)).await;
        assert!(matches!(refused, Err(StoreError::Busy)), "{refused:?}");
        assert_eq!(store.waiting(), (8, 3));
        store.flush().await.unwrap();
        assert_eq!(store.waiting(), (0, 3));
        store.append(org, rows(8, 3)).await.unwrap();
        assert_eq!(
            store
                .results(org, id, Timestamp(i64::MAX), 100)
                .await
                .unwrap()
                .len(),
            11
        );
    });
}

#[test]
fn statements_of_one_reading_see_the_same_state() {
    let folder = TempDir::new().unwrap();
    let path = SqlitePath::File(folder.path().join("monitor.db"));
    let store = SqliteStore::open(&path, SqliteOptions::default()).unwrap();
    let count = |connection: &Connection| -> rusqlite::Result<i64> {
        connection.query_row("SELECT count(*) FROM orgs", [], |row| row.get(0))
    };
    let writing = store.clone();
    let runtime = || {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        runtime.enable_all().build().unwrap()
    };
    let (before, during) = runtime()
        .block_on(store.read(move |connection| {
            let before = count(connection)?;
            let written = std::thread::spawn(move || runtime().block_on(writing.org("late")));
            written.join().unwrap().unwrap();
            Ok((before, count(connection)?))
        }))
        .unwrap();
    assert_eq!((before, during), (0, 0));
    let after = runtime().block_on(store.read(move |connection| count(connection)));
    assert_eq!(after.unwrap(), 1, "the next one sees what was written");
}
