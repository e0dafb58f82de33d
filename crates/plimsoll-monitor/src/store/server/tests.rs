use plimsoll_testkit::services::{ClickHouseServer, PostgresServer, clickhouse_database};
use plimsoll_testkit::{eventually, until};
use tempfile::TempDir;

use super::*;
use crate::detect::status::{Health, Status};
use crate::probe::reading::CheckResult;
use crate::store::contract::contract;
use crate::store::shards::Shards;

mod several_hosts;

fn urls(folder: &TempDir) -> ServerUrls {
    ServerUrls {
        postgres: Secret::new(PostgresServer::shared().database()),
        clickhouse: Some(Secret::new(clickhouse_database())),
        ca: None,
        spill: Some(folder.path().join("spill")),
    }
}

fn open(urls: &ServerUrls) -> ServerStore {
    ServerStore::open(urls.clone(), ServerOptions::default()).unwrap()
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(future)
}

/// The name of a URL's database.
fn database_of(url: &Secret) -> String {
    let url = url.expose();
    let name = url.rsplit('/').next().unwrap();
    name.split('?').next().unwrap().to_owned()
}

async fn monitor_in(store: &ServerStore, slug: &str) -> (OrgId, MonitorId) {
    let org = store.org(slug).await.unwrap();
    let monitor = NewMonitor {
        key: "a".to_owned(),
        name: "a".to_owned(),
        group: String::new(),
        kind: "http".to_owned(),
    };
    let ids = store.sync_monitors(org, "file", vec![monitor], Timestamp(0));
    (org, ids.await.unwrap()[0])
}

/// Results of one monitor, a second apart, from a number on.
fn rows(monitor: MonitorId, numbers: std::ops::Range<i64>) -> Vec<ResultRow> {
    let row = |number: i64| {
        let at = Timestamp(1_772_366_400_000 + number * 1_000);
        let result = CheckResult::plain(at, Status::Up, Duration::from_millis(3), None);
        ResultRow::from_result(monitor, 0, &result)
    };
    numbers.map(row).collect()
}

/// Raw results, and those that the rollups of days count.
async fn counted(store: &ServerStore, org: OrgId, monitor: MonitorId) -> (usize, u64) {
    let end = Timestamp(i64::MAX);
    let raw = store.results(org, monitor, end, 1_000_000).await.unwrap();
    let days = store
        .rollups(org, monitor, Resolution::Day, Timestamp(0), end)
        .await
        .unwrap();
    (raw.len(), days.iter().map(Rollup::total).sum())
}

/// PostgreSQL alone.
fn without_clickhouse(folder: &TempDir) -> ServerUrls {
    ServerUrls {
        clickhouse: None,
        ..urls(folder)
    }
}

#[test]
fn postgresql_alone_keeps_the_contract() {
    let folder = TempDir::new().unwrap();
    contract(|| open(&without_clickhouse(&folder)));
}

#[test]
fn results_in_postgresql_are_partitioned_by_day() {
    const DAY: i64 = 86_400_000;

    let folder = TempDir::new().unwrap();
    let urls = without_clickhouse(&folder);
    let database = database_of(&urls.postgres);
    let partitions = || {
        let sql = "SELECT COUNT(*) FROM pg_inherits WHERE inhparent = 'results'::REGCLASS";
        PostgresServer::shared().sql(&database, sql)
    };
    let store = open(&urls);
    block_on(async {
        let (org, monitor) = monitor_in(&store, "one").await;
        let first = 1_772_366_400_000;
        let row = |day: i64, second: i64| {
            let at = Timestamp(first + day * DAY + second * 1_000);
            let took = Duration::from_millis(3);
            let result =
                CheckResult::plain(at, Status::Down, took, Some("it's \"down\"\n".to_owned()));
            ResultRow::from_result(monitor, 3, &result)
        };
        let rows: Vec<_> = (0..10)
            .flat_map(|day| [row(day, 0), row(day, 1), row(day, 0)])
            .collect();
        store.append(org, rows.clone()).await.unwrap();
        store.flush().await.unwrap();
        assert_eq!(partitions(), "10");
        let found = store
            .results(org, monitor, Timestamp(i64::MAX), 100)
            .await
            .unwrap();
        assert_eq!(found.len(), 20, "a result that comes again is one");
        assert_eq!(found[0], rows[28]);
        // Seven days are kept; older ones are dropped as a whole, and stay in the rollups.
        let now = Timestamp(first + 10 * DAY);
        let upkeep = store.upkeep(now, Retention::default()).await.unwrap();
        assert_eq!(partitions(), "7");
        assert!(upkeep.deleted >= 6, "{upkeep:?}");
        let days = store
            .rollups(org, monitor, Resolution::Day, Timestamp(first), now)
            .await
            .unwrap();
        let total: u64 = days.iter().map(Rollup::total).sum();
        assert_eq!((days.len(), total), (10, 20));
        // Of another organisation nothing is seen.
        let other = store.org("other").await.unwrap();
        let none = store
            .results(other, monitor, Timestamp(i64::MAX), 100)
            .await
            .unwrap();
        assert!(none.is_empty());
    });
}

#[test]
fn a_store_on_servers_keeps_the_contract() {
    let folder = TempDir::new().unwrap();
    contract(|| open(&urls(&folder)));
}

#[test]
fn row_level_security_hides_other_organisations_from_a_statement_that_names_none() {
    let folder = TempDir::new().unwrap();
    let urls = urls(&folder);
    let store = open(&urls);
    let (one, other) = block_on(async {
        let (one, _) = monitor_in(&store, "one").await;
        let (other, _) = monitor_in(&store, "other").await;
        (one, other)
    });
    assert_ne!(one, other);
    let database = database_of(&urls.postgres);
    let count = |before: &str| {
        let statement = format!("SET ROLE plimsoll; {before} SELECT count(*) FROM monitors");
        PostgresServer::shared().sql(&database, &statement)
    };
    assert_eq!(count(""), "0");
    assert_eq!(count(&format!("SET plimsoll.org = '{}';", one.0)), "1");
    assert_eq!(count("SET plimsoll.org = 'all';"), "2");
    let tables = PostgresServer::shared().sql(
        &database,
        "SELECT c.relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'org_id'
         WHERE c.relkind = 'r' AND NOT (c.relrowsecurity AND c.relforcerowsecurity)",
    );
    assert_eq!(
        tables, "",
        "every table with an organisation has its policy"
    );
}

#[test]
fn a_store_opens_again_with_its_data_and_refuses_that_of_a_newer_version() {
    let folder = TempDir::new().unwrap();
    let urls = urls(&folder);
    let store = open(&urls);
    let (org, monitor) = block_on(async {
        let (org, monitor) = monitor_in(&store, "one").await;
        store.append(org, rows(monitor, 0..50)).await.unwrap();
        (org, monitor)
    });
    // Waiting results are written when the store closes.
    drop(store);
    let store = open(&urls);
    assert_eq!(block_on(counted(&store, org, monitor)), (50, 50));
    // Results that are handed over again after a start are known.
    block_on(store.append(org, rows(monitor, 20..60))).unwrap();
    assert_eq!(block_on(counted(&store, org, monitor)), (60, 60));
    drop(store);

    let database = database_of(&urls.postgres);
    let sql = |statement: &str| PostgresServer::shared().sql(&database, statement);
    sql("INSERT INTO plimsoll_schema VALUES (99)");
    let error = ServerStore::open(urls.clone(), ServerOptions::default()).unwrap_err();
    assert!(
        matches!(error, StoreError::Newer { found: 99, .. }),
        "{error}"
    );
    sql("DELETE FROM plimsoll_schema WHERE version = 99");
    let clickhouse =
        clickhouse::ClickHouse::new(urls.clickhouse.as_ref().unwrap().expose()).unwrap();
    let statement = format!(
        "INSERT INTO {}.plimsoll_schema VALUES (99)",
        clickhouse.database()
    );
    block_on(clickhouse.execute(&statement)).unwrap();
    let error = ServerStore::open(urls, ServerOptions::default()).unwrap_err();
    assert!(
        matches!(error, StoreError::Newer { found: 99, .. }),
        "{error}"
    );
}

#[test]
fn urls_that_cannot_be_used_are_reported_without_their_passwords() {
    let folder = TempDir::new().unwrap();
    let refused = plimsoll_testkit::refused_address();
    for (postgres, clickhouse) in [
        (
            format!("postgres://ann:hush@{refused}/a"),
            clickhouse_database(),
        ),
        (
            "postgres://ann:hush@h/a?no_such_key=1".to_owned(),
            clickhouse_database(),
        ),
        (
            PostgresServer::shared().database(),
            "http://ann:hush@h:1/a-b".to_owned(),
        ),
    ] {
        let urls = ServerUrls {
            postgres: Secret::new(postgres),
            clickhouse: Some(Secret::new(clickhouse)),
            ..urls(&folder)
        };
        let error = ServerStore::open(urls, ServerOptions::default()).unwrap_err();
        let is_known = matches!(error, StoreError::Open { .. } | StoreError::Away(_));
        assert!(is_known, "{error}");
        assert!(!error.to_string().contains("hush"), "{error}");
    }
}

#[test]
fn results_wait_on_the_disk_while_clickhouse_is_away_and_none_is_lost_or_counted_twice() {
    let folder = TempDir::new().unwrap();
    let mut clickhouse = ClickHouseServer::own();
    let urls = ServerUrls {
        clickhouse: Some(Secret::new(clickhouse.database())),
        ..urls(&folder)
    };
    let store = open(&urls);
    let (org, monitor) = block_on(monitor_in(&store, "one"));
    block_on(async {
        store.append(org, rows(monitor, 0..1_000)).await.unwrap();
        store.flush().await.unwrap();
    });
    clickhouse.stop();
    block_on(async {
        for batch in 1..21 {
            let more = rows(monitor, batch * 1_000..(batch + 1) * 1_000);
            store.append(org, more).await.unwrap();
            store.flush().await.unwrap();
        }
        assert_eq!(store.waiting(), (0, 20_000, 0));
        let end = Timestamp(i64::MAX);
        assert!(store.results(org, monitor, end, 1).await.is_err());
    });
    // The process restarts meanwhile, and starts without ClickHouse.
    drop(store);
    let store = open(&urls);
    assert_eq!(store.waiting(), (0, 20_000, 0));
    // Results that an agent sends again are left out.
    block_on(store.append(org, rows(monitor, 500..2_500))).unwrap();
    clickhouse.resume();
    block_on(async {
        store.flush().await.unwrap();
        until(|| store.waiting() == (0, 0, 0)).await;
        assert_eq!(counted(&store, org, monitor).await, (21_000, 21_000));
    });
}

/// 20,000 checks a minute, one a minute of each monitor. `RUN_SLOW_TESTS=1` takes ClickHouse away for ten minutes of them,
/// otherwise for half a minute; the time is that of the results, not of the test.
#[test]
fn an_outage_at_full_rate_is_spilled_and_drained_beside_new_results() {
    const MONITORS: usize = 20_000;
    /// Flushes of a minute, two a second.
    const FLUSHES: usize = 120;

    let half_minutes = std::env::var_os("RUN_SLOW_TESTS").map_or(1, |_| 20);
    let outage = half_minutes * FLUSHES / 2;
    let folder = TempDir::new().unwrap();
    let mut clickhouse = ClickHouseServer::own();
    let urls = ServerUrls {
        clickhouse: Some(Secret::new(clickhouse.database())),
        ..urls(&folder)
    };
    let store = open(&urls);
    let (org, monitors) = block_on(async {
        let org = store.org("one").await.unwrap();
        let monitor = |number: usize| NewMonitor {
            key: number.to_string(),
            name: number.to_string(),
            group: String::new(),
            kind: "http".to_owned(),
        };
        let monitors = (0..MONITORS).map(monitor).collect();
        let ids = store.sync_monitors(org, "file", monitors, Timestamp(0));
        (org, ids.await.unwrap())
    });
    // The results between two flushes, each monitor in its turn.
    let between = |flush: usize| {
        let numbers = flush * MONITORS / FLUSHES..(flush + 1) * MONITORS / FLUSHES;
        let row = |number: usize| {
            let minute = i64::try_from(number / MONITORS).unwrap();
            let at = Timestamp(1_772_366_400_000 + minute * 60_000);
            let result = CheckResult::plain(at, Status::Up, Duration::from_millis(3), None);
            ResultRow::from_result(monitors[number % MONITORS], 0, &result)
        };
        numbers.map(row).collect::<Vec<_>>()
    };
    let count = |until: usize| u64::try_from(until * MONITORS / FLUSHES).unwrap();
    let write = async |flush: usize| {
        store.append(org, between(flush)).await.unwrap();
        store.flush().await.unwrap();
    };
    block_on(write(0));
    clickhouse.stop();
    block_on(async {
        for flush in 1..=outage {
            write(flush).await;
        }
    });
    let (_, spilled, refused) = store.waiting();
    assert_eq!((spilled, refused), (count(outage + 1) - count(1), 0));
    clickhouse.resume();
    let last = outage + 10;
    block_on(async {
        for flush in outage + 1..=last {
            write(flush).await;
        }
        until(|| store.waiting() == (0, 0, 0)).await;
    });
    let server = clickhouse::ClickHouse::new(urls.clickhouse.as_ref().unwrap().expose()).unwrap();
    let name = server.database();
    let statement = format!(
        "SELECT count(), uniqExact(monitor, at), (SELECT sum(up + degraded + down + error) FROM {name}.rollups_day)
         FROM {name}.results"
    );
    let counted: Vec<(u64, u64, u64)> = block_on(server.query(&statement)).unwrap();
    let all = count(last + 1);
    assert_eq!(counted, [(all, all, all)]);
}

#[test]
fn a_damaged_file_of_waiting_results_is_reported_once_with_its_path() {
    let folder = TempDir::new().unwrap();
    let urls = urls(&folder);
    let spill = urls.spill.as_ref().unwrap().join("0");
    std::fs::create_dir_all(&spill).unwrap();
    let file = spill.join("00000000000000000000-3.rows");
    std::fs::write(&file, b"\xff\xfe").unwrap();
    let store = open(&urls);
    let mut damage = Damage::default();
    block_on(until(|| {
        damage = store.damage();
        damage != Damage::default()
    }));
    let set_aside = vec![file.with_extension("damaged")];
    assert_eq!(damage, Damage { lost: 3, set_aside });
    assert_eq!(store.damage(), Damage::default());
    assert_eq!(store.waiting(), (0, 0, 3));
}

#[test]
fn changes_are_refused_while_postgresql_is_away_and_results_wait() {
    let folder = TempDir::new().unwrap();
    let mut postgres = PostgresServer::start(None);
    let urls = ServerUrls {
        postgres: Secret::new(postgres.database()),
        ..urls(&folder)
    };
    let store = open(&urls);
    let (org, monitor) = block_on(monitor_in(&store, "one"));
    let opened = |at| Change::Opened {
        monitor,
        at: Timestamp(at),
        reason: None,
    };
    block_on(store.record(org, vec![opened(1)])).unwrap();
    postgres.stop();
    block_on(async {
        let refused = store.record(org, vec![opened(2)]).await;
        assert!(matches!(refused, Err(StoreError::Away(_))), "{refused:?}");
        store.append(org, rows(monitor, 0..100)).await.unwrap();
    });
    postgres.resume();
    block_on(async {
        let filter = IncidentFilter::default();
        let found = store.incidents(org, filter, None, 10).await.unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!(counted(&store, org, monitor).await, (100, 100));
    });
}

#[test]
fn one_process_has_the_lease_until_it_ends_it_or_the_lease_is_over() {
    let folder = TempDir::new().unwrap();
    let urls = urls(&folder);
    let (first, second) = (open(&urls), open(&urls));
    let long = Duration::from_hours(1);
    block_on(async {
        assert!(first.hold_lease("one", "a", long).await.unwrap());
        assert!(!second.hold_lease("one", "b", long).await.unwrap());
        assert!(
            first.hold_lease("one", "a", long).await.unwrap(),
            "it is renewed"
        );
        second.end_lease("one", "b").await.unwrap();
        assert!(!second.hold_lease("one", "b", long).await.unwrap());
        first.end_lease("one", "a").await.unwrap();
        assert!(second.hold_lease("one", "b", Duration::ZERO).await.unwrap());
        assert!(
            first.hold_lease("one", "a", long).await.unwrap(),
            "it is over"
        );
        assert!(
            second.hold_lease("other", "b", long).await.unwrap(),
            "each organisation has its own"
        );
    });
}

#[test]
fn processes_divide_the_shards_and_only_who_has_a_shard_hands_results_of_it_over() {
    let folder = TempDir::new().unwrap();
    let urls = urls(&folder);
    let store = open(&urls);
    let long = Duration::from_hours(1);
    block_on(async {
        let (org, monitor) = monitor_in(&store, "one").await;
        let (other, _) = monitor_in(&store, "other").await;
        let hold = async |process: &str, lasts| {
            store.hold_share(org, "one", process, lasts).await.unwrap()
        };
        let first = hold("a", long).await;
        assert_eq!(first.share_of("a"), Shards::ALL);
        assert_eq!(first.leader, None, "no process has the lease");
        assert!(store.hold_lease("one", "a", long).await.unwrap());
        // Shards are taken once they are given up.
        let second = hold("b", long).await;
        assert!(second.share_of("b").is_empty());
        assert_eq!(second.leader.as_deref(), Some("a"));
        assert_eq!(hold("a", long).await.share_of("a").len(), 128);
        assert!(hold("b", long).await.is_even());
        // Each organisation has its own.
        let elsewhere = store.hold_share(other, "other", "b", long).await.unwrap();
        assert_eq!(elsewhere.share_of("b"), Shards::ALL);

        let is_first = hold("a", long).await.share_of("a").has_monitor(monitor);
        let (process, stranger) = if is_first { ("a", "b") } else { ("b", "a") };
        let results = |numbers: std::ops::Range<i64>| {
            let result = |number: i64| SharedResult {
                number,
                monitor,
                text: format!("{number} of them"),
            };
            numbers.map(result).collect::<Vec<_>>()
        };
        let hand_over = async |process: &str, numbers| {
            store
                .hand_over(org, process, results(numbers))
                .await
                .unwrap();
        };
        hand_over(process, 1..4).await;
        hand_over(process, 2..5).await;
        hand_over(stranger, 7..9).await;
        hand_over("nobody", 7..9).await;
        assert!(store.fetch_handed_over(other).await.unwrap().is_empty());
        let fetched = store.fetch_handed_over(org).await.unwrap();
        let seen: Vec<_> = fetched
            .iter()
            .map(|it| (it.process.as_str(), it.number))
            .collect();
        assert_eq!(
            seen,
            [(process, 1), (process, 2), (process, 3), (process, 4)]
        );
        assert_eq!(fetched[1].text, "2 of them");
        assert!(store.fetch_handed_over(org).await.unwrap().is_empty());

        // One that is gone leaves its shards, by itself or when its share is over.
        store.end_share(org, "b").await.unwrap();
        hold("a", Duration::ZERO).await;
        hand_over(process, 10..11).await;
        assert!(store.fetch_handed_over(org).await.unwrap().is_empty());
        let last = hold("c", long).await;
        assert_eq!(last.shares.keys().collect::<Vec<_>>(), ["c"]);
        assert_eq!(last.share_of("c"), Shards::ALL);
        assert_eq!(last.leader, None, "the one with the lease takes no part");
    });
}

/// What the version before this one left: an outage that was announced, one that was not, one that is over, and results.
#[test]
fn databases_of_the_version_before_keep_their_incidents_and_results() {
    let folder = TempDir::new().unwrap();
    let urls = urls(&folder);
    block_on(async {
        let (client, connection) =
            tokio_postgres::connect(urls.postgres.expose(), tokio_postgres::NoTls)
                .await
                .unwrap();
        let connection = tokio::spawn(connection);
        client
            .batch_execute(include_str!("schema_1.sql"))
            .await
            .unwrap();
        client
            .batch_execute(
                r#"CREATE TABLE plimsoll_schema (version BIGINT NOT NULL);
                INSERT INTO plimsoll_schema VALUES (1);
                SELECT set_config('plimsoll.org', 'all', FALSE);
                INSERT INTO orgs (slug) VALUES ('default'), ('other');
                INSERT INTO monitors (org_id, key, name, grp, kind, source, created) VALUES
                    (1, 'a', 'a', '', 'http', 'file', 0), (1, 'b', 'b', '', 'http', 'file', 0),
                    (2, 'a', 'a', '', 'http', 'file', 0);
                INSERT INTO incidents (org_id, monitor, opened, announced, resolved) VALUES
                    (1, 1, 500, TRUE, 800), (1, 1, 1000, TRUE, NULL), (1, 2, 1500, FALSE, NULL), (2, 3, 1000, TRUE, NULL);
                INSERT INTO incident_events (org_id, incident, at, kind) VALUES (1, 2, 1000, 'opened');
                INSERT INTO health (org_id, monitor, at, sequence, health) VALUES
                    (1, 1, 0, 0, 1), (1, 1, 1000, 0, 2), (1, 1, 1000, 1, 3), (1, 2, 1500, 0, 3), (2, 3, 1000, 0, 3);
                INSERT INTO outbox (org_id, channel, dedup, message, created, due, state) VALUES
                    (1, 'hook', 'a/600/opened', '{"kind":"opened","monitor":"a","incident":"a/600"}', 600, 600, 1),
                    (1, 'hook', 'a/1007/opened', '{"kind":"opened","monitor":"a","incident":"a/1007"}', 1007, 1007, 1),
                    (1, 'hook', 'a/1007/reminder/2', '{"kind":"reminder","monitor":"a","incident":"a/1007"}', 1008, 1008, 0),
                    (1, 'subscribers', 'x', '{"page":"p"}', 1, 1, 1),
                    (2, 'hook', 'a/1009/opened', '{"kind":"opened","monitor":"a","incident":"a/1009"}', 1009, 1009, 1);"#,
            )
            .await
            .unwrap();
        drop(client);
        connection.await.unwrap().unwrap();
    });
    let store = open(&urls);
    block_on(async {
        for (org, expected) in [
            (1, &["b/1500/3", "a/1007", "a/500/1"][..]),
            (2, &["a/1009"]),
        ] {
            let all = IncidentFilter::default();
            let incidents = store.incidents(OrgId(org), all, None, 10).await.unwrap();
            let names: Vec<_> = incidents.iter().map(|one| one.key.as_str()).collect();
            assert_eq!(names, expected);
        }
        let org = OrgId(1);
        let due = store
            .due_notices(org, "hook", Timestamp(9_999), 10)
            .await
            .unwrap();
        let reminder = due[0].incident.as_ref().unwrap();
        assert_eq!(
            (reminder.id.0, reminder.key.as_str(), reminder.is_resolved),
            (2, "a/1007", false)
        );
        let restored = store.restored(org).await.unwrap();
        let health: Vec<_> = restored.iter().map(|it| (it.since.0, it.health)).collect();
        assert_eq!(health, [(1000, Health::Down), (1500, Health::Down)]);
        let changes = store
            .health(org, MonitorId(1), Timestamp(0), Timestamp(9_999))
            .await
            .unwrap();
        assert_eq!(changes.len(), 3);
        // It goes on as any other store.
        store.append(org, rows(MonitorId(1), 0..3)).await.unwrap();
        store.flush().await.unwrap();
        let resolved = Change::Resolved {
            monitor: MonitorId(1),
            at: Timestamp(2_000),
            by: crate::detect::Resolution::Recovery,
            lasted: Duration::from_secs(1),
            actor: None,
        };
        store.record(org, vec![resolved]).await.unwrap();
        let incident = store.incident(org, IncidentId(2)).await.unwrap().unwrap().0;
        assert_eq!(
            (incident.key.as_str(), incident.resolved),
            ("a/1007", Some(Timestamp(2_000)))
        );
        assert_eq!(
            store
                .results(org, MonitorId(1), Timestamp(i64::MAX), 10)
                .await
                .unwrap()
                .len(),
            3
        );
    });
}

#[test]
fn only_the_file_with_a_damaged_line_is_set_aside() {
    let folder = TempDir::new().unwrap();
    let away = urls(&folder);
    let store = ServerStore::open(
        ServerUrls {
            clickhouse: Some(Secret::new("http://127.0.0.1:9/")),
            ..away.clone()
        },
        ServerOptions::default(),
    )
    .unwrap();
    let (org, monitor) = block_on(monitor_in(&store, "one"));
    for first in [0, 10, 20] {
        block_on(async {
            store
                .append(org, rows(monitor, first..first + 2))
                .await
                .unwrap();
            store.flush().await.unwrap();
        });
    }
    assert!(
        store
            .trouble()
            .is_some_and(|why| why.contains("ClickHouse"))
    );
    drop(store);
    let spill = away.spill.as_ref().unwrap().join("0");
    let mut files: Vec<_> = std::fs::read_dir(&spill)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|it| it == "rows"))
        .collect();
    files.sort();
    assert_eq!(files.len(), 3);
    let text = std::fs::read_to_string(&files[1]).unwrap();
    let first = text.lines().next().unwrap();
    std::fs::write(&files[1], format!("{first}\n[1, 2\n")).unwrap();
    let store = open(&away);
    block_on(until(|| store.waiting().1 == 0));
    assert_eq!(store.trouble(), None);
    let set_aside = vec![files[1].with_extension("damaged")];
    assert_eq!(store.damage(), Damage { lost: 1, set_aside });
    let found = block_on(store.results(org, monitor, Timestamp(i64::MAX), 10)).unwrap();
    assert_eq!(found.len(), 5);
}
