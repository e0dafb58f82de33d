//! The contract of every store; each implementation runs it.

#![expect(clippy::unwrap_used, reason = "a suite of tests")]

mod admin;

mod pages;

mod time;

use std::time::Duration;

use crate::detect;
use crate::detect::status::{Health, Status};
use crate::probe::reading::Judged;
use crate::store::{
    Change, Detail, EventKind, IncidentFilter, IncidentId, MonitorId, NewMonitor, OrgId,
    Resolution, ResultRow, Retention, Store, StoreError,
};
use crate::time::Timestamp;

const NOON: Timestamp = Timestamp(1_772_366_400_000);

/// Runs the whole suite, each part on its own store that `make` opens.
pub fn contract<S: Store>(make: impl Fn() -> S) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime can be made");
    runtime.block_on(async {
        monitors_keep_their_numbers(&make()).await;
        results_come_back(&make()).await;
        results_page_backwards(&make()).await;
        rollups_are_sums(&make()).await;
        late_results_are_rolled_up_again(&make()).await;
        old_data_is_deleted(&make()).await;
        incidents_have_a_life(&make()).await;
        changes_are_all_or_nothing(&make()).await;
        state_is_restored(&make()).await;
        organisations_see_nothing_of_each_other(&make()).await;
        time::an_incident_has_one_name(&make()).await;
        time::a_batch_is_applied_once(&make()).await;
        time::gaps_and_set_dates_show_in_health(&make()).await;
        time::the_next_process_reads_what_the_last_one_left(&make()).await;
        time::uptime_is_that_computed_by_hand(&make()).await;
        time::regions_that_overlap_have_the_downtime_of_their_quorum(&make()).await;
        pages::declared_incidents_have_versions(&make()).await;
        pages::histories_are_those_of_single_calls(&make()).await;
        admin::definitions_have_versions_and_keep_their_monitors(&make()).await;
        admin::definitions_have_ids_that_stay(&make()).await;
        admin::users_have_roles_and_sessions(&make()).await;
        admin::tokens_end_and_the_audit_log_stays(&make()).await;
    });
}

fn new(key: &str) -> NewMonitor {
    NewMonitor {
        key: key.to_owned(),
        name: key.to_uppercase(),
        group: "group".to_owned(),
        kind: "http".to_owned(),
    }
}

fn row(monitor: MonitorId, seconds: i64, status: Status, took_us: u64) -> ResultRow {
    ResultRow {
        monitor,
        region: 0,
        at: Timestamp(NOON.0 + seconds * 1000),
        status,
        took_us,
        phases_us: [None, Some(took_us / 2), None, Some(took_us / 4), Some(0)],
        code: Some(200),
        certificate_days: Some(-3),
        detail: (status != Status::Up).then(|| Detail {
            reason: Some("it's down".to_owned()),
            conditions: vec![Judged {
                condition: "status == 200".to_owned(),
                met: false,
            }],
        }),
    }
}

async fn one(store: &impl Store) -> (OrgId, MonitorId) {
    let org = store.org("one").await.expect("an organisation is made");
    let ids = store.sync_monitors(org, "file", vec![new("a")], NOON).await;
    (org, ids.expect("monitors are stored")[0])
}

async fn monitors_keep_their_numbers(store: &impl Store) {
    let org = store.org("one").await.unwrap();
    assert_eq!(store.org("one").await.unwrap(), org);
    let sync = async |source: &str, keys: &[&str]| {
        let monitors = keys.iter().map(|key| new(key)).collect();
        store
            .sync_monitors(org, source, monitors, NOON)
            .await
            .unwrap()
    };
    let first = sync("file", &["a", "b", "c"]).await;
    let other = sync("api", &["d"]).await;
    let second = sync("file", &["c", "a"]).await;
    assert_eq!(second, [first[2], first[0]]);
    let keys: Vec<_> = store
        .monitors(org)
        .await
        .unwrap()
        .into_iter()
        .map(|row| row.monitor.key)
        .collect();
    assert_eq!(keys, ["a", "c", "d"], "those of other sources stay");
    assert_eq!(
        sync("file", &["b"]).await,
        [first[1]],
        "one that comes back has its number again"
    );
    assert!(store.pause_monitor(org, other[0], true).await.unwrap());
    assert!(
        !store
            .pause_monitor(org, MonitorId(999), true)
            .await
            .unwrap()
    );
    let rows = store.monitors(org).await.unwrap();
    let paused: Vec<_> = rows
        .iter()
        .map(|row| (row.monitor.key.as_str(), row.paused))
        .collect();
    assert_eq!(paused, [("b", false), ("d", true)]);
}

async fn results_come_back(store: &impl Store) {
    let (org, monitor) = one(store).await;
    let mut rows = vec![
        row(monitor, 0, Status::Up, 1_000),
        row(monitor, 1, Status::Down, u64::from(u32::MAX) * 4),
        row(monitor, 2, Status::Degraded, 0),
        row(monitor, 3, Status::Error, 7),
    ];
    rows[0].phases_us = [None; 5];
    (rows[0].code, rows[0].certificate_days) = (None, None);
    store.append(org, rows.clone()).await.unwrap();
    let mut found = store
        .results(org, monitor, Timestamp(i64::MAX), 10)
        .await
        .unwrap();
    found.reverse();
    assert_eq!(found, rows);
    // A result that is handed over twice is stored once.
    store.append(org, rows.clone()).await.unwrap();
    store.flush().await.unwrap();
    assert_eq!(
        store
            .results(org, monitor, Timestamp(i64::MAX), 10)
            .await
            .unwrap()
            .len(),
        4
    );
    // Two regions may check at the same moment.
    rows[0].region = 7;
    store.append(org, vec![rows[0].clone()]).await.unwrap();
    assert_eq!(
        store
            .results(org, monitor, Timestamp(i64::MAX), 10)
            .await
            .unwrap()
            .len(),
        5
    );
}

async fn results_page_backwards(store: &impl Store) {
    let (org, monitor) = one(store).await;
    let rows = (0..25)
        .map(|second| row(monitor, second, Status::Up, 1))
        .collect();
    store.append(org, rows).await.unwrap();
    let (mut before, mut seen) = (Timestamp(i64::MAX), Vec::new());
    loop {
        let page = store.results(org, monitor, before, 10).await.unwrap();
        seen.extend(page.iter().map(|row| (row.at.0 - NOON.0) / 1000));
        match page.last() {
            Some(last) => before = last.at,
            None => break,
        }
    }
    assert_eq!(seen, (0..25).rev().collect::<Vec<_>>());
}

async fn rollups_are_sums(store: &impl Store) {
    let (org, monitor) = one(store).await;
    let rows: Vec<_> = (0_i64..3 * 3600)
        .step_by(10)
        .map(|second| {
            let status = Status::ALL[usize::try_from(second / 10 % 4).unwrap()];
            row(
                monitor,
                second,
                status,
                1_000 + u64::try_from(second).unwrap(),
            )
        })
        .collect();
    store.append(org, rows).await.unwrap();
    let end = Timestamp(NOON.0 + 3 * 3_600_000);
    let all = async || {
        let mut all = Vec::new();
        for resolution in Resolution::ALL {
            all.push(
                store
                    .rollups(org, monitor, resolution, NOON, end)
                    .await
                    .unwrap(),
            );
        }
        all
    };
    let fresh = all().await;
    // In the middle of an hour, of a minute, and when all is over: the same is read.
    for seconds in [1_805, 3_600, 5_000, 90_000, 90_000] {
        let now = Timestamp(NOON.0 + seconds * 1000);
        store.upkeep(now, Retention::default()).await.unwrap();
        assert_eq!(all().await, fresh, "at {seconds}");
    }
    let regions = store.by_region(org, monitor, NOON, end).await.unwrap();
    let [(0, all_of_it)] = &regions[..] else {
        panic!("{regions:?}");
    };
    assert_eq!(all_of_it.counts, [270; 4]);
    let [minutes, hours, days] = &fresh[..] else {
        panic!("there are three resolutions");
    };
    assert_eq!((minutes.len(), hours.len(), days.len()), (180, 3, 1));
    assert_eq!(days[0].counts, [270; 4]);
    assert_eq!(all_of_it.took, days[0].took);
    assert_eq!(hours[1].start, Timestamp(NOON.0 + 3_600_000));
    assert_eq!(hours[1].total(), 360);
    let mean = days[0].took.mean().unwrap();
    // Of those that were up or degraded: the even-numbered half by pairs.
    assert!((mean - 6_385.0).abs() < 10.0, "{mean}");
    let sum: u64 = hours.iter().map(|hour| hour.phases_us[1]).sum();
    assert_eq!(sum, days[0].phases_us[1]);
}

async fn late_results_are_rolled_up_again(store: &impl Store) {
    let (org, monitor) = one(store).await;
    let later = Timestamp(NOON.0 + 86_400_000 * 2);
    store
        .append(org, vec![row(monitor, 0, Status::Up, 1)])
        .await
        .unwrap();
    store.upkeep(later, Retention::default()).await.unwrap();
    store
        .append(
            org,
            vec![
                row(monitor, 30, Status::Down, 1),
                row(monitor, 4_000, Status::Up, 1),
            ],
        )
        .await
        .unwrap();
    for _ in 0..2 {
        for resolution in Resolution::ALL {
            let found = store
                .rollups(org, monitor, resolution, NOON, later)
                .await
                .unwrap();
            let total: u64 = found.iter().map(crate::store::Rollup::total).sum();
            assert_eq!(total, 3, "{resolution:?}");
        }
        store.upkeep(later, Retention::default()).await.unwrap();
    }
}

async fn old_data_is_deleted(store: &impl Store) {
    let (org, monitor) = one(store).await;
    let rows = (0..100)
        .map(|minute| row(monitor, minute * 60, Status::Down, 1))
        .collect();
    store.append(org, rows).await.unwrap();
    let retention = Retention {
        raw: Duration::from_hours(1),
        minutes: Duration::from_hours(1),
        hours: Duration::from_hours(24),
        days: Duration::from_hours(240),
    };
    let now = Timestamp(NOON.0 + 100 * 60_000);
    let upkeep = store.upkeep(now, retention).await.unwrap();
    assert!(upkeep.rolled > 0 && upkeep.deleted > 0, "{upkeep:?}");
    let raw = store
        .results(org, monitor, Timestamp(i64::MAX), 1_000)
        .await
        .unwrap();
    assert!((59..=61).contains(&raw.len()), "{}", raw.len());
    assert!(raw.iter().all(|row| row.detail.is_some()));
    let hours = store
        .rollups(org, monitor, Resolution::Hour, NOON, now)
        .await
        .unwrap();
    let total: u64 = hours.iter().map(crate::store::Rollup::total).sum();
    assert_eq!(total, 100, "what is deleted was rolled up before");
    // Much later only the days are left.
    let later = Timestamp(NOON.0 + 86_400_000 * 3);
    store.upkeep(later, retention).await.unwrap();
    let days = store
        .rollups(
            org,
            monitor,
            Resolution::Day,
            Timestamp(NOON.0 - 86_400_000),
            later,
        )
        .await
        .unwrap();
    assert_eq!(
        days.iter().map(crate::store::Rollup::total).sum::<u64>(),
        100
    );
    assert_eq!(
        store
            .rollups(org, monitor, Resolution::Minute, NOON, later)
            .await
            .unwrap(),
        []
    );
}

fn health(monitor: MonitorId, seconds: i64, health: Health) -> Change {
    Change::Health {
        monitor,
        at: Timestamp(NOON.0 + seconds * 1000),
        health,
        reason: (health == Health::Down).then(|| "refused".to_owned()),
    }
}

fn opened(monitor: MonitorId, seconds: i64) -> Change {
    Change::Opened {
        monitor,
        at: Timestamp(NOON.0 + seconds * 1000),
        reason: Some("refused".to_owned()),
    }
}

fn event(monitor: MonitorId, seconds: i64, kind: EventKind, actor: Option<&str>) -> Change {
    Change::Event {
        monitor,
        at: Timestamp(NOON.0 + seconds * 1000),
        kind,
        actor: actor.map(str::to_owned),
        text: None,
    }
}

fn resolved(monitor: MonitorId, seconds: i64) -> Change {
    Change::Resolved {
        monitor,
        at: Timestamp(NOON.0 + seconds * 1000),
        by: detect::Resolution::Recovery,
        lasted: Duration::from_secs(seconds.unsigned_abs().saturating_sub(1)),
        actor: None,
    }
}

async fn incidents_have_a_life(store: &impl Store) {
    let (org, monitor) = one(store).await;
    let changes = vec![
        opened(monitor, 0),
        // Only one is open at a time.
        opened(monitor, 1),
        event(monitor, 5, EventKind::Announced, None),
        event(monitor, 10, EventKind::Acknowledged, Some("ann")),
        event(monitor, 20, EventKind::Acknowledged, Some("bob")),
    ];
    store.record(org, changes).await.unwrap();
    let open = IncidentFilter {
        open: Some(true),
        ..IncidentFilter::default()
    };
    let all = store.incidents(org, open, None, 10).await.unwrap();
    assert_eq!(all.len(), 1);
    assert_eq!(
        all[0].acknowledged,
        Some(Timestamp(NOON.0 + 10_000)),
        "the first counts"
    );
    store
        .record(org, vec![resolved(monitor, 60), resolved(monitor, 70)])
        .await
        .unwrap();
    assert_eq!(store.incidents(org, open, None, 10).await.unwrap(), []);
    let (incident, timeline) = store.incident(org, all[0].id).await.unwrap().unwrap();
    assert_eq!(incident.resolved, Some(Timestamp(NOON.0 + 60_000)));
    assert_eq!(incident.reason.as_deref(), Some("refused"));
    let kinds: Vec<_> = timeline
        .iter()
        .map(|event| (event.kind.name(), event.actor.as_deref()))
        .collect();
    assert_eq!(
        kinds,
        [
            ("opened", None),
            ("announced", None),
            ("acknowledged", Some("ann")),
            ("acknowledged", Some("bob")),
            ("resolved", None),
        ]
    );
    // The newest come first, page by page.
    for number in 0..4 {
        store
            .record(
                org,
                vec![
                    opened(monitor, 100 + number * 10),
                    resolved(monitor, 105 + number * 10),
                ],
            )
            .await
            .unwrap();
    }
    let first = store
        .incidents(org, IncidentFilter::default(), None, 3)
        .await
        .unwrap();
    let rest = store
        .incidents(org, IncidentFilter::default(), Some(first[2].id), 3)
        .await
        .unwrap();
    let ids: Vec<IncidentId> = first
        .iter()
        .chain(&rest)
        .map(|incident| incident.id)
        .collect();
    assert_eq!(ids.len(), 5);
    assert!(ids.is_sorted_by(|one, other| one > other));
}

async fn changes_are_all_or_nothing(store: &impl Store) {
    let (org, monitor) = one(store).await;
    let changes = vec![
        health(monitor, 0, Health::Down),
        health(MonitorId(999), 0, Health::Down),
    ];
    let refused = store.record(org, changes).await;
    assert!(
        matches!(refused, Err(StoreError::NotFound(_))),
        "{refused:?}"
    );
    assert_eq!(
        store
            .health(org, monitor, Timestamp(0), Timestamp(i64::MAX))
            .await
            .unwrap(),
        []
    );
}

async fn state_is_restored(store: &impl Store) {
    let (org, monitor) = one(store).await;
    assert_eq!(store.restored(org).await.unwrap(), []);
    let changes = vec![
        health(monitor, 0, Health::Up),
        // Two changes at one moment keep their order.
        health(monitor, 10, Health::Degraded),
        health(monitor, 10, Health::Down),
        opened(monitor, 10),
        event(monitor, 10, EventKind::Announced, None),
    ];
    store.record(org, changes).await.unwrap();
    let restored = store.restored(org).await.unwrap();
    assert_eq!(restored.len(), 1);
    assert_eq!(
        (restored[0].health, restored[0].since),
        (Health::Down, Timestamp(NOON.0 + 10_000))
    );
    let incident = restored[0].incident.unwrap();
    assert!(incident.announced && !incident.acknowledged);
    let from = Timestamp(NOON.0 + 5_000);
    let changes = store
        .health(org, monitor, from, Timestamp(i64::MAX))
        .await
        .unwrap();
    let healths: Vec<_> = changes.iter().map(|(change, _)| change.health).collect();
    assert_eq!(
        healths,
        [Health::Up, Health::Degraded, Health::Down],
        "the last one before the window is there"
    );
}

/// Every read and write with the number of another organisation's monitor or incident.
async fn organisations_see_nothing_of_each_other(store: &impl Store) {
    let (org, monitor) = one(store).await;
    let other = store.org("other").await.unwrap();
    assert_ne!(org, other);
    let own = store
        .sync_monitors(other, "file", vec![new("a")], NOON)
        .await
        .unwrap()[0];
    assert_ne!(own, monitor, "keys are unique within an organisation only");
    store
        .append(org, vec![row(monitor, 0, Status::Up, 1)])
        .await
        .unwrap();
    store
        .record(
            org,
            vec![health(monitor, 0, Health::Down), opened(monitor, 0)],
        )
        .await
        .unwrap();
    let incident = store
        .incidents(org, IncidentFilter::default(), None, 1)
        .await
        .unwrap()[0]
        .id;
    let end = Timestamp(i64::MAX);

    assert_eq!(store.results(other, monitor, end, 10).await.unwrap(), []);
    assert_eq!(
        store
            .rollups(other, monitor, Resolution::Hour, NOON, end)
            .await
            .unwrap(),
        []
    );
    assert_eq!(
        store
            .health(other, monitor, Timestamp(0), end)
            .await
            .unwrap(),
        []
    );
    assert_eq!(
        store
            .incidents(other, IncidentFilter::default(), None, 10)
            .await
            .unwrap(),
        []
    );
    let filter = IncidentFilter {
        monitor: Some(monitor),
        open: None,
    };
    assert_eq!(store.incidents(other, filter, None, 10).await.unwrap(), []);
    assert_eq!(store.incident(other, incident).await.unwrap(), None);
    assert!(!store.pause_monitor(other, monitor, true).await.unwrap());
    let keys: Vec<_> = store
        .monitors(other)
        .await
        .unwrap()
        .into_iter()
        .map(|row| row.id)
        .collect();
    assert_eq!(keys, [own]);
    assert_eq!(store.restored(other).await.unwrap(), []);
    let refused = store.record(other, vec![resolved(monitor, 1)]).await;
    assert!(
        matches!(refused, Err(StoreError::NotFound(_))),
        "{refused:?}"
    );
    store
        .append(other, vec![row(monitor, 5, Status::Down, 1)])
        .await
        .unwrap();
    assert_eq!(
        store.results(org, monitor, end, 10).await.unwrap().len(),
        1,
        "nor can it write there"
    );
}
