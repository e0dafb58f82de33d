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
                ResultRow::from_result(id, 0, &result)
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

/// What the version before this one left: an outage that was announced, one that was not, and one that is over.
#[test]
fn a_store_of_the_version_before_keeps_the_names_of_its_open_incidents() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("old.db");
    let connection = Connection::open(&path).unwrap();
    for schema in [
        include_str!("schema_1.sql"),
        include_str!("schema_2.sql"),
        include_str!("schema_3.sql"),
        include_str!("schema_4.sql"),
    ] {
        connection.execute_batch(schema).unwrap();
    }
    connection
        .execute_batch(
            r#"PRAGMA user_version = 4;
            INSERT INTO orgs (id, slug) VALUES (1, 'default');
            INSERT INTO monitors (id, org, key, name, grp, kind, source, created) VALUES
                (1, 1, 'a', 'a', '', 'http', 'file', 0), (2, 1, 'b', 'b', '', 'http', 'file', 0);
            INSERT INTO incidents (id, org, monitor, opened, announced, resolved) VALUES
                (1, 1, 1, 500, 1, 800), (2, 1, 1, 1000, 1, NULL), (3, 1, 2, 1500, 0, NULL);
            INSERT INTO health (monitor, at, sequence, health) VALUES
                (1, 0, 0, 1), (1, 1000, 0, 2), (1, 1000, 1, 3), (2, 1500, 0, 3);
            INSERT INTO outbox (id, org, channel, dedup, message, created, due, state) VALUES
                (1, 1, 'hook', 'a/600/opened', '{"kind":"opened","monitor":"a","incident":"a/600"}', 600, 600, 1),
                (2, 1, 'hook', 'a/1007/opened', '{"kind":"opened","monitor":"a","incident":"a/1007"}', 1007, 1007, 1),
                (3, 1, 'hook', 'a/1007/reminder/2', '{"kind":"reminder","monitor":"a","incident":"a/1007"}', 1008, 1008, 0),
                (4, 1, 'subscribers', 'x', 'not JSON', 1, 1, 1);"#,
        )
        .unwrap();
    drop(connection);
    let options = SqliteOptions::default();
    let store = SqliteStore::open(&SqlitePath::File(path), options).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let org = OrgId(1);
        let all = IncidentFilter::default();
        let incidents = store.incidents(org, all, None, 10).await.unwrap();
        let names: Vec<_> = incidents.iter().map(|one| one.key.as_str()).collect();
        assert_eq!(names, ["b/1500/3", "a/1007", "a/500/1"]);
        let due = store.due_notices(org, "hook", Timestamp(9_999), 10);
        let due = due.await.unwrap();
        let reminder = due[0].incident.as_ref().unwrap();
        assert_eq!((reminder.id.0, reminder.key.as_str()), (2, "a/1007"));
        assert!(!reminder.is_resolved);
        let restored = store.restored(org).await.unwrap();
        let health: Vec<_> = restored.iter().map(|it| (it.since.0, it.health)).collect();
        assert_eq!(
            health,
            [
                (1000, crate::detect::status::Health::Down),
                (1500, crate::detect::status::Health::Down)
            ]
        );
        let changes = store
            .health(org, MonitorId(1), Timestamp(0), Timestamp(9_999))
            .await
            .unwrap();
        assert_eq!(changes.len(), 3);
    });
}
