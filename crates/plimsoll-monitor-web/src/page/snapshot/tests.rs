//! States, days and incidents of pages, in virtual time.

use plimsoll_monitor::config::load;
use plimsoll_monitor::detect::uptime::HealthAt;
use plimsoll_monitor::engine::Counters;
use plimsoll_monitor::store::IncidentId;

use super::*;

fn at(text: &str) -> Timestamp {
    Timestamp::parse(text).unwrap()
}

const NOW: &str = "2026-03-30T12:00:00Z";

/// Two monitors, a page in Berlin, and a window of maintenance on 20 March.
fn page() -> (PagePlan, BTreeMap<String, View>) {
    page_with("")
}

/// - `more`: tables of the configuration.
fn page_with(more: &str) -> (PagePlan, BTreeMap<String, View>) {
    let folder = tempfile::TempDir::new().unwrap();
    let path = folder.path().join("monitor.toml");
    let text = r#"
        [[monitor]]
        name = "a"
        group = "g"
        manual = true
        [[monitor]]
        name = "b"
        group = "g"
        manual = true
        [[page]]
        slug = "p"
        title = "P"
        zone = "Europe/Berlin"
        [[maintenance]]
        name = "upgrade"
        once = "2026-03-20T10:00:00Z"
        duration = "2h"
        monitors = ["a"]
        [[maintenance]]
        name = "soon"
        once = "2026-04-02T10:00:00Z"
        duration = "1h"
    "#;
    std::fs::write(&path, format!("{text}{more}")).unwrap();
    let plan = load(&path, &|_| None).unwrap();
    let page = PagePlan::clone(&plan.pages[0]);
    let views = plan.monitors.into_iter().zip(1..).map(|(monitor, id)| {
        let view = View {
            source: plimsoll_monitor::config::Source::File,
            id: MonitorId(id),
            health: Health::Up,
            since: at("2026-03-01T00:00:00Z"),
            in_maintenance: false,
            has_incident: false,
            incident: None,
            is_paused: false,
            regions: Vec::new(),
            last: None,
            beat: None,
            counters: Counters::default(),
            plan: monitor,
        };
        (view.plan.key.clone(), view)
    });
    (page, views.collect())
}

fn health(list: &[(&str, Health)]) -> Arc<MonitorHistory> {
    let changes = list
        .iter()
        .map(|(text, health)| HealthAt::new(at(text), *health));
    Arc::new(MonitorHistory {
        health: changes.collect(),
        hours: Some(Vec::new()),
    })
}

fn of_first(list: &[(&str, Health)]) -> Component {
    let (plan, views) = page();
    let rows = Rows {
        histories: HashMap::from([(MonitorId(1), health(list))]),
        ..Rows::default()
    };
    let snapshot = Snapshot::from_rows(&plan, &views, &rows, at(NOW));
    snapshot.components().next().unwrap().clone()
}

/// Days that were not plain: how many days ago, and the state.
fn marked(component: &Component) -> Vec<(usize, State)> {
    let days = component.days.iter().rev().enumerate();
    let marked = days.filter(|(_, day)| !matches!(day.state, State::Operational | State::Unknown));
    marked.map(|(ago, day)| (ago, day.state)).collect()
}

#[test]
fn days_are_coloured_by_their_downtime() {
    let component = of_first(&[
        ("2026-03-01T00:00:00Z", Health::Up),
        ("2026-03-10T10:00:00Z", Health::Down),
        ("2026-03-10T10:19:59Z", Health::Up),
        ("2026-03-11T10:00:00Z", Health::Down),
        ("2026-03-11T10:20:00Z", Health::Up),
        ("2026-03-12T10:00:00Z", Health::Down),
        ("2026-03-12T11:00:00Z", Health::Up),
        ("2026-03-13T10:00:00Z", Health::Degraded),
        ("2026-03-13T10:00:01Z", Health::Up),
    ]);
    assert_eq!(component.days.len(), DAYS);
    let expected = [
        (17, State::Degraded),
        (18, State::Major),
        (19, State::Partial),
        (20, State::Degraded),
    ];
    assert_eq!(marked(&component), expected);
    assert_eq!(
        component.days[0].state,
        State::Unknown,
        "before the first result"
    );
    assert_eq!(component.days[DAYS - 1].state, State::Operational, "today");
    assert_eq!(component.uptime.outages, 3);
}

#[test]
fn the_uptime_of_a_phone_is_that_of_its_bars() {
    // The first of the 45 days that end on 30 March, and a day before it.
    let component = of_first(&[
        ("2026-01-01T00:00:00Z", Health::Up),
        ("2026-02-13T12:00:00Z", Health::Down),
        ("2026-02-13T13:00:00Z", Health::Up),
    ]);
    let days: Vec<_> = component.days.iter().rev().take(NEAR).collect();
    assert!(days.iter().all(|day| day.down.is_zero()), "{days:?}");
    assert_eq!(component.near.ratio(), Some(1.0));
    assert_eq!(component.near.outages, 0);
    assert!(component.uptime.ratio().unwrap() < 1.0);
    let component = of_first(&[
        ("2026-01-01T00:00:00Z", Health::Up),
        ("2026-02-14T12:00:00Z", Health::Down),
        ("2026-02-14T13:00:00Z", Health::Up),
    ]);
    assert_eq!(component.near.outages, 1);
}

#[test]
fn days_follow_the_zone_over_daylight_saving() {
    // Berlin's 29 March has 23 hours: from 23:00 UTC to 22:00 UTC.
    let component = of_first(&[
        ("2026-03-28T23:30:00Z", Health::Down),
        ("2026-03-29T22:00:00Z", Health::Up),
    ]);
    assert_eq!(marked(&component), [(1, State::Major)]);
    assert_eq!(
        component.days[DAYS - 2].down,
        Duration::from_mins(22 * 60 + 30)
    );
}

#[test]
fn maintenance_is_neither_downtime_nor_an_incident() {
    let outage = [
        ("2026-03-20T00:00:00Z", Health::Up),
        ("2026-03-20T10:10:00Z", Health::Down),
        ("2026-03-20T11:50:00Z", Health::Up),
    ];
    let component = of_first(&outage);
    assert_eq!(marked(&component), []);
    assert_eq!(component.uptime.down, Duration::ZERO);
    let (plan, views) = page();
    let incident = |from: &str, to: &str| {
        let incident = Incident {
            key: String::new(),
            lasted: None,
            id: IncidentId(1),
            monitor: MonitorId(1),
            opened: at(from),
            acknowledged: None,
            resolved: Some(at(to)),
            reason: Some("10.0.0.1 refused".to_owned()),
        };
        let rows = Rows {
            incidents: [(incident, Vec::new())].into(),
            ..Rows::default()
        };
        Snapshot::from_rows(&plan, &views, &rows, at(NOW)).incidents
    };
    assert_eq!(incident("2026-03-20T10:10:00Z", "2026-03-20T11:50:00Z"), []);
    let longer = incident("2026-03-20T10:10:00Z", "2026-03-20T12:10:00Z");
    assert_eq!(longer.len(), 1, "it outlasted the window");
    assert!(!format!("{longer:?}").contains("10.0.0.1"), "{longer:?}");
    let snapshot = Snapshot::from_rows(&plan, &views, &Rows::default(), at(NOW));
    let names: Vec<_> = snapshot.maintenance.iter().map(|one| &one.name).collect();
    assert_eq!(names, ["soon"]);
    assert_eq!(snapshot.maintenance[0].components.len(), 2);
    let during = Snapshot::from_rows(&plan, &views, &Rows::default(), at("2026-04-02T10:30:00Z"));
    assert_eq!(during.maintenance[0].phase, MaintenancePhase::InProgress);
    assert_eq!(during.maintenance[0].from, at("2026-04-02T10:00:00Z"));
    assert_eq!(
        during.maintenance[0].id, snapshot.maintenance[0].id,
        "the same in feeds"
    );
}

#[test]
fn all_windows_of_all_days_count() {
    // The upgrade of two hours on 20 March is followed by another window.
    let (plan, views) = page_with(
        r#"
        [[maintenance]]
        name = "rework"
        once = "2026-03-20T12:00:00Z"
        duration = "1h"
        [[maintenance]]
        name = "flush"
        cron = "*/5 * * * *"
        duration = "2m"
        monitors = ["b"]
    "#,
    );
    let outage = |monitor, from: &str, to: &str| Incident {
        key: String::new(),
        lasted: None,
        id: IncidentId(monitor),
        monitor: MonitorId(monitor),
        opened: at(from),
        acknowledged: None,
        resolved: Some(at(to)),
        reason: None,
    };
    let incidents = [
        outage(1, "2026-03-20T10:10:00Z", "2026-03-20T13:00:00Z"),
        outage(2, "2026-01-10T10:00:30Z", "2026-01-10T10:01:30Z"),
        outage(2, "2026-03-30T11:00:30Z", "2026-03-30T11:01:30Z"),
    ];
    let down = health(&[
        ("2026-01-01T00:00:00Z", Health::Up),
        ("2026-01-10T10:00:30Z", Health::Down),
        ("2026-01-10T10:03:00Z", Health::Up),
        ("2026-03-30T11:00:30Z", Health::Down),
        ("2026-03-30T11:01:30Z", Health::Up),
    ]);
    let rows = Rows {
        histories: HashMap::from([(MonitorId(2), down)]),
        incidents: incidents.map(|one| (one, Vec::new())).into(),
        ..Rows::default()
    };
    let snapshot = Snapshot::from_rows(&plan, &views, &rows, at(NOW));
    assert_eq!(snapshot.incidents, []);
    let second = snapshot.components().nth(1).unwrap();
    assert_eq!(second.uptime.down, Duration::from_mins(1));
    // Three minutes of each five in 88 days and 12 hours, less an hour of rework.
    let minutes = 3 * 12 * (88 * 24 + 12 - 1);
    assert_eq!(second.uptime.probed, Duration::from_mins(minutes));
    let flushes = snapshot
        .maintenance
        .iter()
        .filter(|one| one.name == "flush");
    assert_eq!(flushes.count(), 50);
}

#[test]
fn a_window_that_never_ends_keeps_its_identity() {
    let (plan, views) = page_with(
        "[[maintenance]]\nname = \"retired\"\ncron = \"* * * * *\"\nduration = \"1m\"\nmonitors = [\"b\"]\n",
    );
    let retired = |now| {
        let snapshot = Snapshot::from_rows(&plan, &views, &Rows::default(), at(now));
        let mut all = snapshot.maintenance.into_iter();
        all.find(|one| one.name == "retired").unwrap()
    };
    let (one, other) = (retired(NOW), retired("2026-11-01T00:00:00Z"));
    assert_eq!(one.phase, MaintenancePhase::InProgress);
    assert_eq!((&one.id, one.to), (&other.id, other.to));
}

#[test]
fn one_outage_of_two_is_partial_and_unknown_is_never_operational() {
    let (plan, mut views) = page();
    let overall = |views: &BTreeMap<String, View>| {
        Snapshot::from_rows(&plan, views, &Rows::default(), at(NOW)).overall
    };
    assert_eq!(overall(&views), State::Operational);
    views.get_mut("g_a").unwrap().health = Health::Down;
    assert_eq!(overall(&views), State::Partial);
    views.get_mut("g_b").unwrap().health = Health::Down;
    assert_eq!(overall(&views), State::Major);
    for view in views.values_mut() {
        view.health = Health::NoData;
    }
    assert_eq!(overall(&views), State::Unknown);
    views.get_mut("g_a").unwrap().has_incident = true;
    assert_eq!(
        overall(&views),
        State::Major,
        "the outage is the last that is known"
    );
    views.get_mut("g_a").unwrap().in_maintenance = true;
    assert_eq!(overall(&views), State::Maintenance);
}

#[test]
fn declared_incidents_lower_the_state_and_count_if_they_should() {
    let (plan, views) = page();
    let snapshot = |impact, counts_as_downtime| {
        let declared = Declared {
            id: plimsoll_monitor::store::DeclaredId(1),
            version: 1,
            title: "slow".to_owned(),
            phase: PublicPhase::Investigating,
            impact,
            counts_as_downtime,
            started: at("2026-03-30T11:00:00Z"),
            resolved: None,
            changed: at("2026-03-30T11:00:00Z"),
            monitors: vec![MonitorId(1)],
            updates: Vec::new(),
        };
        let up = health(&[("2026-03-30T10:00:00Z", Health::Up)]);
        let rows = Rows {
            histories: HashMap::from([(MonitorId(1), up)]),
            declared: vec![declared],
            ..Rows::default()
        };
        let snapshot = Snapshot::from_rows(&plan, &views, &rows, at(NOW));
        let first = snapshot.components().next().unwrap();
        (first.state, first.uptime.down.as_secs())
    };
    assert_eq!(snapshot(Impact::None, false), (State::Operational, 0));
    assert_eq!(snapshot(Impact::Minor, false), (State::Degraded, 0));
    assert_eq!(snapshot(Impact::Major, false), (State::Partial, 0));
    assert_eq!(snapshot(Impact::Critical, true), (State::Major, 3_600));
}

#[test]
fn windows_that_are_over_are_completed_with_their_times() {
    let (plan, views) = page_with(
        r#"
        [[maintenance]]
        name = "patches"
        weekly = ["monday"]
        at = "13:00"
        zone = "Europe/Berlin"
        duration = "2h"
        monitors = ["b"]
        [[maintenance]]
        name = "flush"
        cron = "0 * * * *"
        duration = "5m"
        monitors = ["b"]
    "#,
    );
    // Clocks went forward on 29 March, so 13:00 of 30 March is 11:00 UTC: under way until 13:00 UTC.
    let first = at("2026-03-16T13:30:00Z");
    let known = HashMap::from([(MonitorId(2), first)]);
    let of = |name: &str, known: &_, from: &str, to: &str| {
        let period = (at(from), at(to));
        let found = completed(&plan, &views, known, period, at(NOW), 3);
        let all = found.all.into_iter().filter(|one| one.name == name);
        let all: Vec<_> = all
            .map(|one| {
                assert_eq!(one.phase, MaintenancePhase::Completed);
                let names: Vec<_> = one.components.into_iter().map(|(_, name)| name).collect();
                (one.from.to_string(), one.to.to_string(), names.join(" "))
            })
            .collect();
        (all, found.omitted.get(name).copied())
    };
    let span = |from: &str, to: &str, names: &str| {
        let text = |value: &str| at(value).to_string();
        (text(from), text(to), names.to_owned())
    };
    let patches = [
        span("2026-03-23T12:00:00Z", "2026-03-23T14:00:00Z", "b"),
        span("2026-03-16T12:00:00Z", "2026-03-16T14:00:00Z", "b"),
    ];
    let (march, april) = ("2026-03-01T00:00:00Z", "2026-04-01T00:00:00Z");
    assert_eq!(
        of("patches", &known, march, april),
        (patches.to_vec(), None),
        "neither before the first result nor the one under way"
    );
    assert_eq!(
        of("patches", &HashMap::new(), march, april).0,
        [],
        "its monitor has no result"
    );
    // A window of one time is a fact, whatever was measured.
    let upgrade = span("2026-03-20T10:00:00Z", "2026-03-20T12:00:00Z", "a");
    assert_eq!(of("upgrade", &HashMap::new(), march, april).0, [upgrade]);
    assert_eq!(of("soon", &known, march, "2026-05-01T00:00:00Z").0, []);
    // It belongs to the period in which it began.
    let (noon, eve) = ("2026-03-20T11:00:00Z", "2026-03-20T20:00:00Z");
    assert_eq!(of("upgrade", &known, noon, eve).0, []);
    let morning = "2026-03-20T09:00:00Z";
    assert_eq!(of("upgrade", &known, morning, noon).0.len(), 1);
    // Of 33 hours, the three newest.
    let (flushes, omitted) = of("flush", &known, "2026-03-29T03:00:00Z", NOW);
    assert_eq!(flushes.len(), 3);
    assert_eq!(
        flushes[0],
        span("2026-03-30T11:00:00Z", "2026-03-30T11:05:00Z", "b")
    );
    assert_eq!(omitted, Some(30));
}
