//! What is kept is what the store has, after every history.

use proptest::prelude::*;

use super::*;
use crate::Health;
use crate::detect::status::Status;
use crate::store::{EventKind, NewMonitor, Retention, SqliteOptions, SqlitePath, SqliteStore};

/// An hour that begins.
const BEGIN: Timestamp = Timestamp(1_774_872_000_000);

const FAR: Duration = Duration::from_hours(24 * 400);

/// Histories beside the store that they are of, with three monitors.
struct Fixture {
    store: SqliteStore,
    org: OrgId,
    monitors: Vec<MonitorId>,
    histories: Histories,
}

impl Fixture {
    async fn new() -> Self {
        let store = SqliteStore::open(&SqlitePath::Memory, SqliteOptions::default()).unwrap();
        let org = store.org("default").await.unwrap();
        let monitors = ["a", "b", "c"].map(|key| NewMonitor {
            key: key.to_owned(),
            name: key.to_owned(),
            group: String::new(),
            kind: "http".to_owned(),
        });
        let monitors = store.sync_monitors(org, "file", monitors.into(), BEGIN);
        let histories = Histories::default();
        histories.follow();
        Self {
            monitors: monitors.await.unwrap(),
            store,
            org,
            histories,
        }
    }

    /// A result of the first monitor, or of another one.
    fn row(&self, monitor: usize, region: u16, at: Timestamp, took_us: u64) -> ResultRow {
        ResultRow {
            monitor: self.monitors[monitor],
            region,
            at,
            status: Status::ALL[usize::try_from(took_us).unwrap() % 4],
            took_us,
            phases_us: [Some(1), None, None, Some(took_us), None],
            code: None,
            certificate_days: None,
            detail: None,
        }
    }

    async fn append(&self, rows: Vec<ResultRow>) {
        let writing = self.histories.writing_results(&rows);
        self.store.append(self.org, rows).await.unwrap();
        self.histories.written(writing, true);
    }

    async fn record(&self, changes: Vec<Change>) {
        let writing = self.histories.writing_changes(&changes);
        self.store.record(self.org, changes).await.unwrap();
        self.histories.written(writing, true);
    }

    async fn read(&self, since: Since, now: Timestamp) -> Vec<Arc<MonitorHistory>> {
        let of_store = (self.org, &self.store as &dyn Store);
        let read = self.histories.read(of_store, &self.monitors, since, now);
        read.await.unwrap()
    }

    /// Fails unless what is kept is what the store has.
    async fn compare(&self, since: Since, now: Timestamp) {
        let end = now.plus(FAR);
        let monitors = self.monitors.clone();
        let read = self
            .store
            .histories(self.org, monitors, since.health, since.hours, end);
        let stored = read.await.unwrap();
        for (kept, stored) in self.read(since, now).await.iter().zip(stored) {
            assert_eq!(kept.health_within((since.health, end)), stored.health);
            assert_eq!(
                Some(kept.hours_within((since.hours, end))),
                stored.hours.as_deref()
            );
        }
        let of_store = (self.org, &self.store as &dyn Store);
        for since in [since.health, now.minus(Duration::from_hours(1))] {
            let kept = self.histories.timelines(of_store, since, 100, now);
            let stored = self.store.timelines(self.org, since, 100).await.unwrap();
            assert_eq!(*kept.await.unwrap(), *stored);
        }
    }

    /// Number of monitors with a cached history.
    fn kept(&self) -> usize {
        let kept = self.histories.lock();
        let entries = kept.by_monitor.values();
        entries.filter(|entry| entry.known.is_some()).count()
    }
}

fn since(now: Timestamp) -> Since {
    Since {
        health: now.minus(Duration::from_hours(90 * 24)),
        hours: now.minus(Duration::from_hours(24)),
    }
}

fn after(seconds: i64) -> Timestamp {
    Timestamp(BEGIN.0 + seconds * 1000)
}

/// What happens to monitors.
#[derive(Debug, Clone)]
enum Step {
    /// Results of a monitor and a region, so many seconds before the present time.
    Results(usize, u16, Vec<i64>),
    Health(usize, usize),
    Opened(usize),
    Acknowledged(usize),
    Resolved(usize),
    /// The clock is set back by so many seconds.
    SetBack(i64),
    /// Nothing ran for so many seconds.
    Gap(i64),
    /// So many seconds pass.
    Wait(i64),
    Upkeep,
    Read,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    // Often the same second again, so that results come twice.
    let back = prop_oneof![4 => 0_i64..2, 1 => 0_i64..20_000];
    let step = prop_oneof![
        8 => (0..2_usize, 0..2_u16, prop::collection::vec(back, 1..4))
            .prop_map(|(monitor, region, back)| Step::Results(monitor, region, back)),
        2 => (0..3_usize, 0..6_usize).prop_map(|(monitor, health)| Step::Health(monitor, health)),
        1 => (0..3_usize).prop_map(Step::Opened),
        1 => (0..3_usize).prop_map(Step::Acknowledged),
        1 => (0..3_usize).prop_map(Step::Resolved),
        1 => (1..7_200_i64).prop_map(Step::SetBack),
        1 => (1..7_200_i64).prop_map(Step::Gap),
        3 => prop_oneof![3 => 1_i64..90, 1 => 1_i64..40_000].prop_map(Step::Wait),
        2 => Just(Step::Upkeep),
        6 => Just(Step::Read),
    ];
    prop::collection::vec(step, 1..60)
}

async fn follow(steps: Vec<Step>) {
    let fixture = Fixture::new().await;
    let mut now = BEGIN;
    let mut took = 100;
    for step in steps {
        match step {
            Step::Results(monitor, region, back) => {
                let rows = back.into_iter().map(|seconds| {
                    took += 37;
                    let at = now.minus(Duration::from_secs(seconds.unsigned_abs()));
                    fixture.row(monitor, region, at, took % 5_000)
                });
                let rows = rows.collect();
                fixture.append(rows).await;
            }
            Step::Health(monitor, health) => {
                let change = Change::Health {
                    monitor: fixture.monitors[monitor],
                    at: now,
                    health: Health::ALL[health],
                    reason: None,
                };
                fixture.record(vec![change]).await;
            }
            Step::Opened(monitor) => {
                let change = Change::Opened {
                    monitor: fixture.monitors[monitor],
                    at: now,
                    reason: None,
                };
                fixture.record(vec![change]).await;
            }
            Step::Acknowledged(monitor) => {
                let change = Change::Event {
                    monitor: fixture.monitors[monitor],
                    at: now,
                    kind: EventKind::Acknowledged,
                    actor: None,
                    text: None,
                };
                fixture.record(vec![change]).await;
            }
            Step::Resolved(monitor) => {
                let change = Change::Resolved {
                    monitor: fixture.monitors[monitor],
                    at: now,
                    by: crate::detect::Resolution::Recovery,
                    lasted: Duration::ZERO,
                    actor: None,
                };
                fixture.record(vec![change]).await;
            }
            Step::SetBack(seconds) => {
                let to = Timestamp(now.0 - seconds * 1000);
                let set_back = |monitor: &MonitorId| Change::SetBack {
                    monitor: *monitor,
                    from: now,
                    to,
                };
                fixture
                    .record(fixture.monitors.iter().map(set_back).collect())
                    .await;
                now = to;
            }
            Step::Gap(seconds) => {
                let from = now;
                now = Timestamp(now.0 + seconds * 1000);
                fixture.record(vec![Change::Gap { from, to: now }]).await;
            }
            Step::Wait(seconds) => now = Timestamp(now.0 + seconds * 1000),
            Step::Upkeep => {
                fixture
                    .store
                    .upkeep(now, Retention::default())
                    .await
                    .unwrap();
            }
            Step::Read => fixture.compare(since(now), now).await,
        }
    }
    fixture.compare(since(now), now).await;
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn what_is_kept_is_what_the_store_has(steps in steps()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(follow(steps));
    }
}

#[tokio::test]
async fn results_in_order_are_added_without_reading_the_store() {
    let fixture = Fixture::new().await;
    let row = |seconds: i64| fixture.row(0, 0, after(seconds), 1_000);
    fixture.compare(since(BEGIN), BEGIN).await;
    assert_eq!(fixture.kept(), 3);
    // What was read may have the first one of a region.
    fixture.append(vec![row(1)]).await;
    assert_eq!(fixture.kept(), 2);
    fixture.compare(since(after(2)), after(2)).await;
    for seconds in 2..100 {
        fixture.append(vec![row(60 * seconds)]).await;
        assert_eq!(fixture.kept(), 3);
    }
    fixture.compare(since(after(6_000)), after(6_000)).await;
    // A repeated result, an older one, and one whose write failed.
    fixture.append(vec![row(60 * 99)]).await;
    assert_eq!(fixture.kept(), 2);
    fixture.compare(since(after(6_000)), after(6_000)).await;
    fixture.append(vec![row(60 * 98 + 1)]).await;
    assert_eq!(fixture.kept(), 2);
    fixture.compare(since(after(6_000)), after(6_000)).await;
    let writing = fixture.histories.writing_results(&[row(6_001)]);
    fixture.histories.written(writing, false);
    assert_eq!(fixture.kept(), 2);
}

#[tokio::test]
async fn what_is_written_while_it_is_read_is_read_again() {
    let fixture = Fixture::new().await;
    fixture.append(vec![fixture.row(0, 0, after(1), 1)]).await;
    let rows = [fixture.row(0, 0, after(2), 1)];
    let changes = [Change::Health {
        monitor: fixture.monitors[1],
        at: after(2),
        health: Health::Up,
        reason: None,
    }];
    let writing = [
        fixture.histories.writing_results(&rows),
        fixture.histories.writing_changes(&changes),
    ];
    fixture.compare(since(after(3)), after(3)).await;
    assert_eq!(fixture.kept(), 1, "the third, which nothing is written of");
    let incidents = || fixture.histories.lock().incidents.known.len();
    assert_eq!(incidents(), 2, "no incident is written");
    let opened = [Change::Opened {
        monitor: fixture.monitors[1],
        at: after(2),
        reason: None,
    }];
    fixture
        .histories
        .written(fixture.histories.writing_changes(&opened), true);
    let writing_incidents = fixture.histories.writing_changes(&opened);
    fixture.compare(since(after(3)), after(3)).await;
    assert_eq!(incidents(), 0);
    fixture.histories.written(writing_incidents, true);
    fixture.compare(since(after(3)), after(3)).await;
    assert_eq!(incidents(), 2);
    for writing in writing {
        fixture.histories.written(writing, true);
    }
    fixture.compare(since(after(3)), after(3)).await;
    assert_eq!(fixture.kept(), 3);
}

#[tokio::test]
async fn a_monitor_that_is_first_read_while_a_gap_is_written_is_read_again() {
    let fixture = Fixture::new().await;
    let gap = [Change::Gap {
        from: BEGIN,
        to: after(1),
    }];
    let writing = fixture.histories.writing_changes(&gap);
    fixture.compare(since(after(1)), after(1)).await;
    assert_eq!(fixture.kept(), 0);
    fixture.histories.written(writing, true);
    fixture.compare(since(after(1)), after(1)).await;
    assert_eq!(fixture.kept(), 3);
}

#[tokio::test]
async fn a_history_is_read_again_after_an_hour_and_removed_without_readers() {
    let fixture = Fixture::new().await;
    fixture.compare(since(BEGIN), BEGIN).await;
    // Another program writes.
    let late = vec![fixture.row(0, 7, after(10), 1)];
    fixture.store.append(fixture.org, late).await.unwrap();
    let hours = |all: &[Arc<MonitorHistory>]| all[0].hours.as_ref().map(Vec::len);
    let read = fixture.read(since(after(3_599)), after(3_599)).await;
    assert_eq!(hours(&read), Some(0));
    let read = fixture.read(since(after(3_600)), after(3_600)).await;
    assert_eq!(hours(&read), Some(1));
    let only = &fixture.monitors[..1];
    let of_store = (fixture.org, &fixture.store as &dyn Store);
    let later = after(3 * 3_600);
    let read = fixture.histories.read(of_store, only, since(later), later);
    read.await.unwrap();
    assert_eq!(fixture.kept(), 1);
}

#[tokio::test]
async fn a_process_that_does_not_write_keeps_nothing() {
    let mut fixture = Fixture::new().await;
    fixture.histories = Histories::default();
    fixture.compare(since(BEGIN), BEGIN).await;
    assert_eq!(fixture.kept(), 0);
}
