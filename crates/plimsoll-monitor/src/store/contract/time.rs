//! Health over time: gaps, dates that are set, what the next process reads, and uptime that was computed by hand.

use std::sync::Arc;
use std::time::Duration;

use super::{NOON, event, health, new, one, opened, resolved};
use crate::detect::excluded::excluded;
use crate::detect::status::{Health, Status};
use crate::detect::timeline::HealthChange;
use crate::detect::uptime::uptime;
use crate::detect::{self, DetectPolicy, Detector, Effect, Input, RegionRule};
use crate::store::{
    About, BatchNumber, Change, EventKind, IncidentFilter, MonitorId, NewNotice, OrgId, Store,
};
use crate::time::{Moment, Timestamp};

fn at(seconds: i64) -> Timestamp {
    Timestamp(NOON.0 + seconds * 1000)
}

async fn changes(store: &impl Store, org: OrgId, monitor: MonitorId) -> Vec<(i64, Health)> {
    let all = store.health(org, monitor, Timestamp(0), Timestamp(i64::MAX));
    let all: Vec<HealthChange> = all.await.unwrap();
    all.iter()
        .map(|(change, _)| ((change.at.0 - NOON.0) / 1_000, change.health))
        .collect()
}

pub(super) async fn an_incident_has_one_name(store: &impl Store) {
    let (org, monitor) = one(store).await;
    let notice = |about, dedup: &str| NewNotice {
        channel: "hook".to_owned(),
        about,
        dedup: dedup.to_owned(),
        message: "{}".to_owned(),
        due: at(0),
    };
    let notices = |notices| Change::Notices {
        monitor,
        at: at(0),
        notices,
    };
    let group = vec![
        opened(monitor, 0),
        notices(vec![notice(About::OpenIncident, "opened")]),
        event(monitor, 0, EventKind::Announced, None),
    ];
    store.record(org, group.clone()).await.unwrap();
    // The same change again, such as by a process that did not see it written, is no other notice.
    store.record(org, group).await.unwrap();
    let due = store.due_notices(org, "hook", at(1), 10).await.unwrap();
    assert_eq!(due.len(), 1);
    let incident = due[0].incident.clone().unwrap();
    assert_eq!(
        incident.key,
        format!("a/{}/{}", NOON.0, incident.id.0),
        "named by its store"
    );
    assert_eq!(due[0].dedup, format!("{}/opened", incident.key));
    assert!(!incident.is_resolved && !incident.is_acknowledged);
    // The monitor has another name from now on; the incident has not.
    let end = vec![
        notices(vec![notice(About::OpenIncident, "resolved")]),
        resolved(monitor, 60),
    ];
    store.record(org, end).await.unwrap();
    let reminder = vec![
        notice(About::Incident(incident.id), "reminder/1"),
        notice(About::OpenIncident, "none is open"),
        notice(About::Other, "alone"),
    ];
    store
        .settle_notices(org, Vec::new(), reminder, at(1))
        .await
        .unwrap();
    let due = store.due_notices(org, "hook", at(1), 10).await.unwrap();
    let dedup: Vec<_> = due.iter().map(|notice| notice.dedup.clone()).collect();
    let named = |what: &str| format!("{}/{what}", incident.key);
    assert_eq!(
        dedup,
        [
            named("opened"),
            named("resolved"),
            named("reminder/1"),
            "alone".to_owned()
        ]
    );
    assert!(due[0].incident.as_ref().unwrap().is_resolved);
    assert_eq!(due[3].incident, None);
    let found = store.incidents(org, IncidentFilter::default(), None, 1);
    let found = found.await.unwrap().remove(0);
    assert_eq!(found.lasted, Some(Duration::from_secs(59)));
    assert_eq!(found.key, incident.key);
}

pub(super) async fn a_batch_is_applied_once(store: &impl Store) {
    let (org, monitor) = one(store).await;
    let record = async |writer, number, seconds| {
        let batch = Some(BatchNumber { writer, number });
        let change = vec![health(monitor, seconds, Health::Up)];
        store.record_once(org, batch, change).await.unwrap();
    };
    record(7, 1, 0).await;
    record(7, 1, 10).await;
    record(7, 3, 20).await;
    record(7, 2, 30).await;
    // Another process has numbers of its own.
    record(8, 1, 40).await;
    let dates: Vec<_> = changes(store, org, monitor).await;
    let dates: Vec<_> = dates.into_iter().map(|(at, _)| at).collect();
    assert_eq!(dates, [0, 20, 40]);
}

pub(super) async fn gaps_and_set_dates_show_in_health(store: &impl Store) {
    use Health::{Down, NoData, Up};

    let (org, monitor) = one(store).await;
    let gap = |from, to| Change::Gap {
        from: at(from),
        to: at(to),
    };
    let list = vec![
        health(monitor, 0, Up),
        health(monitor, 100, Down),
        gap(110, 200),
        gap(110, 200),
        health(monitor, 300, Up),
    ];
    store.record(org, list).await.unwrap();
    let expected = [(0, Up), (100, Down), (110, NoData), (200, Down), (300, Up)];
    assert_eq!(changes(store, org, monitor).await, expected);
    let found = store.histories(org, vec![monitor], at(150), at(150), at(400));
    let found = found.await.unwrap().remove(0).health;
    let found: Vec<_> = found.iter().map(|it| it.health).collect();
    assert_eq!(found, [NoData, Down, Up], "with the last one before");
    // The clock was fast by an hour: the outage of 16 s that it shows stays one of 16 s.
    let list = vec![
        health(monitor, 4_000, Down),
        Change::SetBack {
            monitor,
            from: at(4_005),
            to: at(405),
        },
        health(monitor, 416, Up),
    ];
    store.record(org, list).await.unwrap();
    let all = store
        .health(org, monitor, at(320), at(10_000))
        .await
        .unwrap();
    let all: Vec<_> = all.into_iter().map(|(change, _)| change).collect();
    let measured = uptime(&all, &[], &[], (at(320), at(10_000)));
    assert_eq!(measured.down, Duration::from_secs(16));
    let restored = store.restored(org).await.unwrap();
    assert_eq!((restored[0].health, restored[0].since), (Up, at(416)));
}

pub(super) async fn the_next_process_reads_what_the_last_one_left(store: &impl Store) {
    let (org, monitor) = one(store).await;
    let other = store.org("other").await.unwrap();
    assert_eq!(store.last_alive(org).await.unwrap(), None);
    store.mark_alive(org, at(1)).await.unwrap();
    store.mark_alive(org, at(2)).await.unwrap();
    assert_eq!(store.last_alive(org).await.unwrap(), Some(at(2)));
    assert_eq!(store.last_alive(other).await.unwrap(), None);
    let memory = |text: Option<&str>| Change::Memory {
        monitor,
        name: "state",
        text: text.map(str::to_owned),
    };
    for text in ["one", "two"] {
        store.record(org, vec![memory(Some(text))]).await.unwrap();
    }
    let memories = store.memories(org, "state").await.unwrap();
    assert_eq!(memories, [(monitor, "two".to_owned())]);
    assert_eq!(store.memories(org, "budget").await.unwrap(), []);
    assert_eq!(store.memories(other, "state").await.unwrap(), []);
    store.record(org, vec![memory(None)]).await.unwrap();
    assert_eq!(store.memories(org, "state").await.unwrap(), []);

    store.record(org, vec![opened(monitor, 5)]).await.unwrap();
    assert_eq!(store.orphans(org).await.unwrap(), []);
    let gone = store.sync_monitors(org, "file", vec![new("b")], NOON);
    gone.await.unwrap();
    let orphans = store.orphans(org).await.unwrap();
    assert_eq!(orphans.len(), 1);
    assert_eq!(
        (orphans[0].monitor, orphans[0].key.as_str()),
        (monitor, "a")
    );
    assert_eq!(orphans[0].incident.opened, at(5));
    assert_eq!(store.orphans(other).await.unwrap(), []);
}

/// Health from a minute on.
type Minutes = &'static [(i64, Health)];

/// Spans in minutes.
type Spans = &'static [(i64, i64)];

/// What happened, in minutes from a date, and the minutes probed and down and the outages that were computed by hand.
struct Scenario {
    name: &'static str,
    from: &'static str,
    health: Minutes,
    gaps: Spans,
    /// From the minute at which an incident opened until it was resolved.
    incidents: Spans,
    declared: Spans,
    maintenance: &'static str,
    window: (i64, i64),
    probed: u64,
    down: u64,
    outages: u32,
}

const PLAIN: Scenario = Scenario {
    name: "",
    from: "2026-03-10T12:00:00Z",
    health: &[],
    gaps: &[],
    incidents: &[],
    declared: &[],
    maintenance: "",
    window: (0, 60),
    probed: 60,
    down: 0,
    outages: 0,
};

macro_rules! scenario {
    ($name:literal, $health:expr, $($field:ident: $value:expr),* $(,)?) => {
        Scenario { name: $name, health: $health, $($field: $value,)* ..PLAIN }
    };
}

const ONCE_10_TO_20: &str = "once = \"2026-03-10T12:10:00Z\"\nduration = \"10m\"";
const ONCE_20_TO_30: &str = "once = \"2026-03-10T12:20:00Z\"\nduration = \"10m\"";

fn scenarios() -> Vec<Scenario> {
    use Health::{Degraded, Down, NoData, Paused, Pending, Up};

    let hour: Minutes = &[(0, Up), (10, Down), (40, Up)];
    let up: Minutes = &[(0, Up)];
    vec![
        scenario!("up", up,),
        scenario!("down", &[(0, Down)], down: 60, outages: 1),
        scenario!("one outage", &[(0, Up), (10, Down), (25, Up)], down: 15, outages: 1),
        scenario!("two outages", &[(0, Up), (10, Down), (15, Up), (40, Down), (50, Up)], down: 15, outages: 2),
        scenario!("open at the end", &[(0, Up), (50, Down)], down: 10, outages: 1),
        scenario!("began before the window", &[(-30, Down), (5, Up)], down: 5, outages: 1),
        scenario!("covers the window", &[(-10, Down), (100, Up)], down: 60, outages: 1),
        scenario!("ends where the window begins", &[(-10, Down), (0, Up)],),
        scenario!("begins where the window ends", &[(0, Up), (60, Down)],),
        scenario!("degraded is up", &[(0, Up), (10, Degraded), (20, Up)],),
        scenario!(
            "degraded between outages",
            &[(0, Up), (10, Down), (20, Degraded), (30, Down), (40, Up)],
            down: 20, outages: 2
        ),
        scenario!("pending first", &[(0, Pending), (10, Up)], probed: 50),
        scenario!("silence", &[(0, Up), (10, NoData), (30, Up)], probed: 40),
        scenario!(
            "silence behind an outage",
            &[(0, Up), (10, Down), (20, NoData), (30, Up)],
            probed: 50, down: 10, outages: 1
        ),
        scenario!(
            "paused",
            &[(0, Up), (20, Paused), (40, Pending), (45, Up)],
            probed: 35
        ),
        scenario!(
            "paused within an outage",
            &[(0, Up), (10, Down), (20, Paused), (30, Pending), (31, Up)],
            probed: 49, down: 10, outages: 1
        ),
        scenario!("made within the window", &[(30, Up)], probed: 30),
        scenario!("nothing known", &[], probed: 0),
        scenario!("a gap while up", up, gaps: &[(20, 30)], probed: 50),
        scenario!("a gap within an outage", hour, gaps: &[(20, 30)], probed: 50, down: 20, outages: 1),
        scenario!(
            "a gap from within an outage to its end",
            &[(0, Up), (10, Down), (30, Up)],
            gaps: &[(20, 30)], probed: 50, down: 10, outages: 1
        ),
        scenario!(
            "an outage that is dated back before a gap",
            &[(0, Up), (18, Down), (35, Up)],
            gaps: &[(20, 30)], probed: 50, down: 7, outages: 1
        ),
        scenario!(
            "an outage that is dated back into a gap",
            &[(0, Up), (25, Down), (35, Up)],
            gaps: &[(20, 30)], probed: 50, down: 5, outages: 1
        ),
        scenario!(
            "silence within an outage",
            &[(0, Up), (10, Down), (20, NoData), (30, Down), (40, Up)],
            probed: 50, down: 20, outages: 1
        ),
        scenario!(
            "paused between outages",
            &[(0, Up), (10, Down), (20, Paused), (30, Pending), (31, Down), (40, Up)],
            probed: 49, down: 19, outages: 2
        ),
        scenario!(
            "a gap between outages",
            &[(0, Up), (10, Down), (15, Up), (40, Down), (50, Up)],
            gaps: &[(20, 30)], probed: 50, down: 15, outages: 2
        ),
        scenario!("a gap over an outage and the beginning", &[(-60, Up), (-20, Down), (20, Up)],
            gaps: &[(-10, 10)], probed: 50, down: 10, outages: 1),
        scenario!("a gap over the beginning", &[(-60, Up)], gaps: &[(-10, 5)], probed: 55),
        scenario!("a gap over the end", up, gaps: &[(50, 90)], probed: 50),
        scenario!("gaps that overlap", up, gaps: &[(10, 20), (15, 25)], probed: 45),
        scenario!("gaps that meet", up, gaps: &[(20, 30), (10, 20)], probed: 40),
        scenario!(
            "a gap while paused",
            &[(0, Up), (10, Paused), (40, Pending), (41, Up)],
            gaps: &[(20, 30)], probed: 29
        ),
        scenario!("a gap of two days", &[(0, Down)],
            gaps: &[(10, 2 * 1440)], window: (0, 2 * 1440 + 30), probed: 40, down: 40, outages: 1),
        scenario!("maintenance while up", up, maintenance: ONCE_10_TO_20, probed: 50),
        scenario!("maintenance within an outage", hour,
            maintenance: ONCE_20_TO_30, probed: 50, down: 20, outages: 1),
        scenario!("an outage within maintenance", &[(0, Up), (12, Down), (17, Up)],
            maintenance: ONCE_10_TO_20, probed: 50),
        scenario!("an incident that opens again within hold",
            &[(0, Up), (10, Down), (15, Up), (17, Down), (20, Up)],
            incidents: &[(10, 20)], down: 8, outages: 1),
        scenario!("an incident that is degraded within hold",
            &[(0, Up), (10, Down), (15, Degraded), (17, Down), (20, Up)],
            incidents: &[(10, 20)], down: 8, outages: 1),
        scenario!("an incident behind another",
            &[(0, Up), (10, Down), (15, Up), (17, Down), (20, Up)],
            incidents: &[(10, 15), (17, 20)], down: 8, outages: 2),
        scenario!("an incident that opens again and goes on over a gap",
            &[(0, Up), (10, Down), (15, Up), (17, Down), (40, Up)],
            incidents: &[(10, 40)], gaps: &[(20, 30)], probed: 50, down: 18, outages: 1),
        scenario!("an incident that began before the window and opens again in it",
            &[(-20, Up), (-10, Down), (-5, Up), (17, Down), (20, Up)],
            incidents: &[(-10, 20)], down: 3, outages: 1),
        scenario!("an incident that opens again within maintenance",
            &[(0, Up), (5, Down), (8, Up), (12, Down), (17, Up)],
            incidents: &[(5, 17)], maintenance: ONCE_10_TO_20, probed: 50, down: 3, outages: 1),
        scenario!("an incident that opens within maintenance and again behind it",
            &[(0, Up), (12, Down), (17, Up), (22, Down), (25, Up)],
            incidents: &[(12, 25)], maintenance: ONCE_10_TO_20, probed: 50, down: 3, outages: 1),
        scenario!("an incident within maintenance and another behind it",
            &[(0, Up), (12, Down), (17, Up), (22, Down), (25, Up)],
            incidents: &[(12, 17), (22, 25)], maintenance: ONCE_10_TO_20, probed: 50, down: 3, outages: 1),
        scenario!("an incident that is resolved by hand while down",
            &[(0, Up), (10, Down), (30, Up)],
            incidents: &[(10, 15)], down: 20, outages: 1),
        scenario!("maintenance over an outage's end", &[(0, Up), (5, Down), (15, Up)],
            maintenance: ONCE_10_TO_20, probed: 50, down: 5, outages: 1),
        scenario!("maintenance over an outage's beginning", &[(0, Up), (15, Down), (25, Up)],
            maintenance: ONCE_10_TO_20, probed: 50, down: 5, outages: 1),
        scenario!("maintenance that overlaps a gap", up,
            maintenance: ONCE_10_TO_20, gaps: &[(5, 15)], probed: 45),
        scenario!("a gap within maintenance", hour,
            maintenance: ONCE_20_TO_30, gaps: &[(22, 27)], probed: 50, down: 20, outages: 1),
        scenario!("declared", up, declared: &[(10, 20)], down: 10),
        scenario!("declared over an outage", &[(0, Up), (15, Down), (30, Up)],
            declared: &[(10, 20)], down: 20, outages: 1),
        scenario!("declared over maintenance", up,
            declared: &[(5, 30)], maintenance: ONCE_10_TO_20, probed: 50, down: 15),
        scenario!("declared over silence", &[(0, Up), (10, NoData), (30, Up)],
            declared: &[(5, 35)], probed: 40, down: 10),
        scenario!("declared over a gap", up,
            declared: &[(5, 35)], gaps: &[(10, 30)], probed: 40, down: 10),
        scenario!("across the end of a month: its part of February",
            &[(-60, Up), (30, Down), (90, Up)],
            from: "2026-02-28T23:00:00Z", window: (-60, 60), probed: 120, down: 30, outages: 1),
        scenario!("across the end of a month: its part of March",
            &[(-60, Up), (30, Down), (90, Up)],
            from: "2026-02-28T23:00:00Z", window: (60, 180), probed: 120, down: 30, outages: 1),
        scenario!("the 29th of February", &[(0, Up), (1430, Down), (1450, Up)],
            from: "2028-02-28T00:00:00Z", window: (1440, 2880), probed: 1440, down: 10, outages: 1),
        // From 01:30 CET for two hours of time that passes: until 04:30 CEST. The day has 23 hours.
        scenario!("maintenance while the clocks go forward",
            &[(0, Up), (80, Down), (220, Up)],
            from: "2026-03-28T23:00:00Z", window: (0, 1380),
            maintenance: "weekly = \"sunday\"\nat = \"01:30\"\nduration = \"2h\"\nzone = \"Europe/Berlin\"",
            probed: 1260, down: 20, outages: 1),
        // 02:30 comes twice; the first time counts. The day has 25 hours.
        scenario!("maintenance while the clocks go back",
            &[(0, Up), (140, Down), (190, Up)],
            from: "2026-10-24T22:00:00Z", window: (0, 1500),
            maintenance: "weekly = \"sunday\"\nat = \"02:30\"\nduration = \"30m\"\nzone = \"Europe/Berlin\"",
            probed: 1470, down: 20, outages: 1),
    ]
}

pub(super) async fn uptime_is_that_computed_by_hand(store: &impl Store) {
    let all = scenarios();
    assert!(all.len() >= 30);
    for (number, scenario) in all.iter().enumerate() {
        let org = store.org(&format!("scenario{number}")).await.unwrap();
        let ids = store.sync_monitors(org, "file", vec![new("a")], NOON);
        let monitor = ids.await.unwrap()[0];
        let from = Timestamp::parse(scenario.from).unwrap();
        let minute = |minutes: i64| Timestamp(from.0 + minutes * 60_000);
        let span = |(from, to): &(i64, i64)| (minute(*from), minute(*to));
        // Health changes before the incident of its minute does, as the engine writes them.
        let mut dated: Vec<(i64, Change)> = Vec::new();
        for (at, health) in scenario.health {
            let change = Change::Health {
                monitor,
                at: minute(*at),
                health: *health,
                reason: None,
            };
            dated.push((*at, change));
        }
        for (opens, ends) in scenario.incidents {
            let opened = Change::Opened {
                monitor,
                at: minute(*opens),
                reason: None,
            };
            let resolved = Change::Resolved {
                monitor,
                at: minute(*ends),
                by: detect::Resolution::Recovery,
                lasted: Duration::ZERO,
                actor: None,
            };
            dated.extend([(*opens, opened), (*ends, resolved)]);
        }
        dated.sort_by_key(|(at, _)| *at);
        let mut changes: Vec<Change> = dated.into_iter().map(|(_, change)| change).collect();
        for (from, to) in scenario.gaps.iter().map(span) {
            changes.push(Change::Gap { from, to });
        }
        store.record(org, changes).await.unwrap();
        let windows = if scenario.maintenance.is_empty() {
            Vec::new()
        } else {
            windows(scenario.maintenance)
        };
        let window = span(&scenario.window);
        let found = store
            .health(org, monitor, window.0, window.1)
            .await
            .unwrap();
        let found: Vec<_> = found.into_iter().map(|(change, _)| change).collect();
        let declared: Vec<_> = scenario.declared.iter().map(span).collect();
        let measured = uptime(&found, &declared, &excluded(&windows, window), window);
        let minutes = (measured.probed.as_secs() / 60, measured.down.as_secs() / 60);
        assert_eq!(
            (minutes, measured.outages),
            ((scenario.probed, scenario.down), scenario.outages),
            "{}",
            scenario.name
        );
    }
}

fn windows(maintenance: &str) -> Vec<Arc<detect::window::Window>> {
    let text = format!(
        "[[monitor]]\nname = \"a\"\nmanual = true\n[[maintenance]]\nname = \"m\"\n{maintenance}\n"
    );
    let plan = crate::config::of_agent(&text);
    plan.unwrap_or_else(|problems| panic!("{problems:?}"))
        .monitors[0]
        .windows
        .clone()
}

/// Outages that overlap in three regions: seconds of each, by hand those in which enough are down.
pub(super) async fn regions_that_overlap_have_the_downtime_of_their_quorum(store: &impl Store) {
    let outages = [("a", 10, 40), ("b", 20, 50), ("c", 30, 60)];
    for (rule, down) in [
        (RegionRule::Any, 50),
        (RegionRule::Majority, 30),
        (RegionRule::All, 10),
        (RegionRule::Count(2), 30),
    ] {
        let org = store.org(&format!("{rule:?}")).await.unwrap();
        let ids = store.sync_monitors(org, "file", vec![new("a")], NOON);
        let monitor = ids.await.unwrap()[0];
        let policy = DetectPolicy {
            regions: rule,
            hold: Duration::ZERO,
            ..DetectPolicy::default()
        };
        let moment = |second: i64| Moment {
            elapsed: Duration::from_secs(10_000 + second.unsigned_abs()),
            wall: at(second),
        };
        let mut detector = Detector::new(moment(0));
        for second in 0..100 {
            for (region, from, to) in outages {
                let is_down = (from..to).contains(&second);
                let input = Input::Observed {
                    region: Arc::from(region),
                    status: if is_down { Status::Down } else { Status::Up },
                    reason: None,
                    at: at(second),
                };
                for effect in detector.step(input, &policy, moment(second)) {
                    if let Effect::HealthChanged { to, at, .. } = effect {
                        let change = Change::Health {
                            monitor,
                            at,
                            health: to,
                            reason: None,
                        };
                        store.record(org, vec![change]).await.unwrap();
                    }
                }
            }
        }
        let window = (at(0), at(100));
        let found = store
            .health(org, monitor, window.0, window.1)
            .await
            .unwrap();
        let found: Vec<_> = found.into_iter().map(|(change, _)| change).collect();
        let measured = uptime(&found, &[], &[], window);
        assert_eq!(measured.down, Duration::from_secs(down), "{rule:?}");
        assert_eq!(measured.probed, Duration::from_secs(100), "{rule:?}");
    }
}
