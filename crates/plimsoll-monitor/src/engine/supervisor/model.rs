//! A model of the monitor over time: random histories with faults, in virtual time, with the real engine and a real store.
//!
//! Two lives get the same inputs. One is killed, before or after its changes are written, and started again; the other
//! never ends and is told of the times in which the first did not run. Both must have the same incidents, notices and
//! health in the end. `PLIMSOLL_SEED` repeats one history, and `PLIMSOLL_HISTORIES` makes more than a few of them.

use std::fmt::Write as _;
use std::future::Future;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_model::Clock as _;

use crate::config::{Plan, overlay};
use crate::detect::Input;
use crate::detect::status::Status;
use crate::detect::uptime::{HealthAt, uptime};
use crate::engine::clock::tests::Clocks;
use crate::engine::command::{HeartbeatSignal, RemoteResult};
use crate::engine::supervisor::Supervisor;
use crate::probe::reading::CheckResult;
use crate::store::timestamp::Timestamp;
use crate::store::{
    DefinitionChanges, DefinitionKind, IncidentFilter, MonitorId, NewMonitor, OrgId, PutDefinition,
    SqliteOptions, SqlitePath, SqliteStore, Store,
};

/// What a history may do to both lives.
#[derive(Debug, Clone, PartialEq)]
enum Step {
    /// Nothing but time passes.
    Wait,
    /// A result of a monitor in a region.
    Result(&'static str, &'static str, Status),
    Ping(HeartbeatSignal),
    Acknowledge(&'static str),
    Resolve(&'static str),
    Pause(&'static str, bool),
    Reload(Setting),
    /// The API creates the monitor that the store defines, or gives it this name; without one it removes it.
    Define(Option<&'static str>),
    /// No check was started, since the breaker of the host is open.
    HoldBack(&'static str),
    SetDate(i64),
    Sleep(Duration),
}

/// What happens to the life that may be killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    None,
    /// Nothing of the step is written.
    KillBefore(Duration),
    /// All of it is.
    KillAfter(Duration),
    /// It ends by itself and is started again, as a deployment does.
    Restart(Duration),
}

/// The file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Setting {
    confirm: u32,
    rule: &'static str,
    has_api: bool,
    has_job: bool,
    hold: u32,
    is_flapping: bool,
}

impl Setting {
    fn random(random: &mut fastrand::Rng) -> Self {
        Self {
            confirm: random.u32(1..=3),
            rule: ["any", "majority", "all"][random.usize(..3)],
            has_api: random.u32(..4) > 0,
            has_job: random.u32(..4) > 0,
            hold: [0, 10, 30][random.usize(..3)],
            is_flapping: random.bool(),
        }
    }

    fn plan(self) -> Plan {
        let flap = if self.is_flapping {
            "flap = { opens = 1, within = \"5m\", quiet = \"30s\" }"
        } else {
            "flap = false"
        };
        let mut text = format!(
            r#"
            [defaults]
            interval = "10s"
            confirm = {}
            recover = 2
            hold = "{}s"
            {flap}
            [[agent]]
            name = "eu"
            sha256 = "{zeros:0>64}"
            [[agent]]
            name = "us"
            sha256 = "{zeros:1>64}"
            [[monitor]]
            name = "web"
            http = "http://127.0.0.1:9/"
            from = ["default", "eu", "us"]
            regions = "{}"
            [[monitor]]
            name = "child"
            http = "http://127.0.0.1:9/"
            depends_on = "web"
            [[notify]]
            name = "hook"
            webhook = {{ url = "http://127.0.0.1:9/" }}
            "#,
            self.confirm,
            self.hold,
            self.rule,
            zeros = "",
        );
        if self.has_api {
            text.push_str(
                "[[monitor]]\nname = \"api\"\nhttp = \"http://127.0.0.1:9/\"\n\
                 [[monitor]]\nname = \"both\"\nall_of = [\"web\", \"api\"]\n\
                 [[maintenance]]\nname = \"patches\"\nonce = \"2001-09-09T01:50:00Z\"\nduration = \"2m\"\nmonitors = [\"api\"]\n",
            );
        }
        if self.has_job {
            text.push_str(
                "[[monitor]]\nname = \"job\"\nheartbeat = { every = \"30s\", grace = \"5s\", token = \"0123456789abcdef\" }\n",
            );
        }
        crate::config::of_agent(&text).unwrap_or_else(|problems| panic!("{problems:?}\n{text}"))
    }
}

/// The engine with its store and clocks.
struct Life {
    store: Arc<SqliteStore>,
    clocks: Clocks,
    engine: Option<Supervisor>,
    setting: Setting,
    /// Numbers of results.
    next: u64,
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(future)
}

impl Life {
    fn new(setting: Setting) -> Self {
        let options = SqliteOptions::default();
        let mut life = Self {
            store: Arc::new(SqliteStore::open(&SqlitePath::Memory, options).unwrap()),
            clocks: Clocks::default(),
            engine: None,
            setting,
            next: 0,
        };
        life.start();
        life.write();
        life
    }

    fn wall(&self) -> Timestamp {
        Timestamp::of(self.clocks.wall())
    }

    fn start(&mut self) {
        let clocks = Rc::new(self.clocks.clone());
        let store = Arc::<SqliteStore>::clone(&self.store);
        let notice = Arc::new(|_: &str| {});
        let started =
            Supervisor::start_by(clocks, self.setting.plan(), store, Arc::default(), notice);
        self.engine = Some(block_on(started).unwrap());
    }

    fn engine(&mut self) -> &mut Supervisor {
        self.engine.as_mut().unwrap()
    }

    /// What the loop does before anything else.
    fn turn(&mut self) {
        let engine = self.engine();
        engine.look_at_clocks();
        let now = engine.moment();
        engine.fire(now);
    }

    /// Has the store take everything.
    fn write(&mut self) {
        let store = Arc::clone(&self.store);
        let engine = self.engine();
        block_on(async {
            engine.recorder.drain(engine.org, &*store).await.unwrap();
            engine.mark_alive().await;
        });
    }

    fn apply(&mut self, step: &Step) {
        let wall = self.wall();
        self.next += 1;
        let number = self.next;
        let store = Arc::clone(&self.store);
        let engine = self.engine.as_mut().unwrap();
        let key = |name: &str| format!("_{name}");
        match step {
            Step::Wait => {}
            Step::Result(name, region, status) => {
                let reason = (*status != Status::Up).then(|| "refused".to_owned());
                let result = CheckResult::plain(wall, *status, Duration::ZERO, reason);
                if *region == "default" {
                    if let Some(id) = engine.keys.get(&key(name)).copied() {
                        engine.take(id, result);
                    }
                } else {
                    let key = key(name);
                    let result = RemoteResult {
                        number,
                        key,
                        result,
                    };
                    engine.report(region, 1, vec![result]).unwrap();
                }
            }
            Step::Ping(signal) => {
                engine.heartbeat("_job", signal.clone()).ok();
            }
            Step::Acknowledge(name) => {
                engine
                    .on_incident(&key(name), None, Input::Acknowledge)
                    .ok();
            }
            Step::Resolve(name) => {
                engine.on_incident(&key(name), None, Input::Resolve).ok();
            }
            Step::Pause(name, paused) => {
                block_on(engine.pause(&key(name), *paused)).ok();
            }
            Step::Reload(setting) => {
                self.setting = *setting;
                block_on(engine.load(setting.plan())).unwrap();
            }
            Step::Define(name) => block_on(define(engine, &*store, *name, wall)),
            Step::HoldBack(name) => {
                if let Some(id) = engine.keys.get(&key(name)).copied() {
                    let region = engine.own_region();
                    engine.feed(id, Input::HeldBack { region });
                }
            }
            Step::SetDate(millis) => {
                self.clocks.set(*millis);
                engine.look_at_clocks();
            }
            Step::Sleep(duration) => {
                self.clocks.sleep(*duration);
                engine.look_at_clocks();
            }
        }
    }

    /// What users see in the end.
    fn seen(&mut self) -> String {
        let store = Arc::clone(&self.store);
        let org = self.engine().org;
        let mut seen = String::new();
        block_on(async {
            let all = IncidentFilter::default();
            for incident in store.incidents(org, all, None, 10_000).await.unwrap() {
                let (_, events) = store.incident(org, incident.id).await.unwrap().unwrap();
                let end = events.last().and_then(|event| event.text.clone());
                writeln!(
                    seen,
                    "incident {} {:?} {:?} {:?} {end:?}",
                    incident.key, incident.opened, incident.resolved, incident.acknowledged,
                )
                .unwrap();
            }
            let mut notices: Vec<_> = store
                .notices(org, None, 10_000)
                .await
                .unwrap()
                .into_iter()
                .map(|notice| notice.dedup)
                .collect();
            notices.sort();
            for notice in notices {
                writeln!(seen, "notice {notice}").unwrap();
            }
            for id in 1..=MOST_MONITORS {
                let (text, _) = health_of(&*store, org, MonitorId(id)).await;
                writeln!(seen, "health {id} {text}").unwrap();
            }
        });
        seen
    }
}

/// Numbers of monitors that are compared: each that comes after a removal may have another.
const MOST_MONITORS: i64 = 16;

/// Changes the definition in the store and then the engine, as the API does.
async fn define(engine: &mut Supervisor, store: &dyn Store, name: Option<&str>, now: Timestamp) {
    let kind = DefinitionKind::Monitor;
    let known = store.definitions(engine.org, kind).await.unwrap();
    let was = known.into_iter().next().map(|(one, _)| one.key);
    let mut changes = DefinitionChanges::default();
    let (mut plans, mut gone) = (Vec::new(), Vec::new());
    if let Some(name) = name {
        let text = format!("name = \"{name}\"\nhttp = \"http://127.0.0.1:9/\"\n");
        let base = &engine.base;
        let compiled = overlay::monitors(&[&text], &base.grounds, base.monitors.iter());
        let plan = compiled.into_iter().next().unwrap().unwrap();
        changes.puts.push(PutDefinition {
            key: plan.key.clone(),
            was,
            version: None,
            text,
            monitor: Some(NewMonitor {
                key: plan.key.clone(),
                name: plan.name.clone(),
                group: plan.group.clone(),
                kind: plan.kind.clone(),
            }),
        });
        plans.push(plan);
    } else if let Some(key) = was {
        changes.removals.push((key.clone(), None));
        gone.push(key);
    }
    let written = store.change_definitions(engine.org, kind, changes, now);
    let ids = written.await.unwrap().into_iter();
    let ids = ids.map(|(_, id)| MonitorId(id.unwrap()));
    let monitors = ids.zip(plans).collect();
    engine.put(monitors, &gone).await.unwrap();
}

/// The changes of health, and the time probed and down.
async fn health_of(store: &dyn Store, org: OrgId, id: MonitorId) -> (String, (u64, u64)) {
    let (from, to) = (Timestamp(0), Timestamp(2_000_000_000_000));
    let changes = store.health(org, id, from, to).await.unwrap();
    let changes: Vec<HealthAt> = changes.into_iter().map(|(change, _)| change).collect();
    let last = changes.last().map_or(from, |last| last.at);
    let measured = uptime(&changes, &[], &[], (from, last));
    let mut text = String::new();
    for change in &changes {
        write!(
            text,
            "{}@{} ",
            change.health.name(),
            change.at.0 - 1_000_000_000_000
        )
        .unwrap();
    }
    let times = (
        u64::try_from(measured.probed.as_millis()).unwrap(),
        u64::try_from(measured.down.as_millis()).unwrap(),
    );
    (format!("{text}probed {} down {}", times.0, times.1), times)
}

/// Takes one step in both lives, with its fault in the first.
fn take_step(victim: &mut Life, reference: &mut Life, step: &Step, fault: Fault, by: Duration) {
    let before = victim.wall();
    for life in [&mut *victim, &mut *reference] {
        life.clocks.advance(by);
    }
    victim.turn();
    victim.apply(step);
    if fault == Fault::None {
        victim.write();
        reference.turn();
        reference.apply(step);
        reference.write();
        return;
    }
    let (away, is_written) = match fault {
        Fault::None => return,
        Fault::KillBefore(away) => (away, false),
        Fault::KillAfter(away) | Fault::Restart(away) => (away, true),
    };
    if is_written {
        victim.write();
        reference.turn();
        reference.apply(step);
        reference.write();
    }
    let last = if is_written { victim.wall() } else { before };
    victim.engine = None;
    for life in [&mut *victim, &mut *reference] {
        life.clocks.advance(away);
    }
    victim.start();
    victim.write();
    // What was in the file or in the store is so from the next start on, and what was only in memory never was.
    let to = reference.wall();
    let clocks = reference.clocks.clone();
    let engine = reference.engine();
    engine.watch.look(&clocks);
    engine.absent(last, to);
    engine.look_at_windows(engine.moment());
    if !is_written && matches!(step, Step::Reload(_) | Step::Pause(..) | Step::Define(_)) {
        reference.apply(step);
    }
    reference.write();
}

fn random_step(random: &mut fastrand::Rng, mood: &mut [u32; 5]) -> Step {
    const PROBED: [&str; 5] = ["web", "api", "child", "one", "two"];

    let index = random.usize(..5);
    let name = PROBED[index];
    match random.u32(..100) {
        0..=63 => {
            if random.u32(..8) == 0 {
                mood[index] = [2, 50, 98][random.usize(..3)];
            }
            let status = match random.u32(..100) {
                percent if percent < mood[index] => Status::Down,
                99 => Status::Error,
                96..=98 => Status::Degraded,
                _ => Status::Up,
            };
            let regions = ["default", "eu", "us"];
            let region = if name == "web" {
                regions[random.usize(..3)]
            } else {
                "default"
            };
            Step::Result(name, region, status)
        }
        64..=71 => Step::Ping(match random.u32(..6) {
            0 => HeartbeatSignal::Start,
            1 => HeartbeatSignal::Fail(None),
            _ => HeartbeatSignal::Success,
        }),
        72..=74 => Step::Acknowledge(name),
        75 => Step::Resolve(name),
        76..=79 => Step::Pause(
            ["web", "api", "job", "one", "two"][index],
            random.u32(..3) == 0,
        ),
        80..=81 => Step::Reload(Setting::random(random)),
        82 => Step::SetDate(random.i64(-100_000..100_000)),
        83 => Step::Sleep(Duration::from_secs(random.u64(10..100))),
        84..=86 => Step::Define([Some("one"), Some("two"), None][random.usize(..3)]),
        87..=88 => Step::HoldBack(name),
        _ => Step::Wait,
    }
}

fn random_fault(random: &mut fastrand::Rng, step: &Step) -> Fault {
    // A date that is set while nothing runs cannot be told from time that passed.
    if matches!(step, Step::SetDate(_) | Step::Sleep(_)) {
        return Fault::None;
    }
    let away = Duration::from_millis(random.u64(2_000..90_000));
    match random.u32(..100) {
        0..=3 => Fault::KillBefore(away),
        4..=7 => Fault::KillAfter(away),
        8..=9 => Fault::Restart(away),
        _ => Fault::None,
    }
}

/// - `steps`: of the history; the number of steps and faults that were made.
fn run(seed: u64, steps: usize) -> Result<usize, String> {
    let mut random = fastrand::Rng::with_seed(seed);
    let setting = Setting {
        has_api: true,
        has_job: true,
        ..Setting::random(&mut random)
    };
    let (mut victim, mut reference) = (Life::new(setting), Life::new(setting));
    let mut mood = [2; 5];
    let mut trace = Vec::new();
    let mut faults = 0;
    for number in 0..steps {
        let step = random_step(&mut random, &mut mood);
        let fault = random_fault(&mut random, &step);
        faults += usize::from(fault != Fault::None);
        let by = Duration::from_millis(random.u64(200..4_000));
        take_step(&mut victim, &mut reference, &step, fault, by);
        trace.push(format!("{number} +{by:?} {step:?} {fault:?}"));
        if number % 20 == 19 || number + 1 == steps {
            let (found, expected) = (victim.seen(), reference.seen());
            if found != expected {
                let differs = |one: &str, other: &str| {
                    let other: Vec<_> = other.lines().collect();
                    let lines = one.lines().filter(|line| !other.contains(line));
                    lines.collect::<Vec<_>>().join("\n")
                };
                let last = trace.len().saturating_sub(60);
                return Err(format!(
                    "seed {seed}, step {number}\n{}\n--- killed\n{}\n--- never killed\n{}",
                    trace[last..].join("\n"),
                    differs(&found, &expected),
                    differs(&expected, &found),
                ));
            }
        }
    }
    Ok(faults)
}

/// Takes the steps of a script, three seconds apart, and compares what both lives have.
#[track_caller]
fn check(setting: Setting, script: &[(Step, Fault)]) {
    let (mut victim, mut reference) = (Life::new(setting), Life::new(setting));
    for (step, fault) in script {
        let by = Duration::from_secs(3);
        take_step(&mut victim, &mut reference, step, *fault, by);
    }
    let expected = reference.seen();
    assert_eq!(victim.seen(), expected);
    assert!(expected.contains("incident"), "{expected}");
}

const SETTING: Setting = Setting {
    confirm: 1,
    rule: "any",
    has_api: true,
    has_job: true,
    hold: 0,
    is_flapping: false,
};

const SECOND: Duration = Duration::from_secs(1);

fn result(name: &'static str, region: &'static str, status: Status) -> (Step, Fault) {
    (Step::Result(name, region, status), Fault::None)
}

/// The grace that a heartbeat had once more after an absence was forgotten by the next kill.
#[test]
fn a_grace_after_an_absence_outlives_a_kill() {
    let wait = |fault| (Step::Wait, fault);
    let mut script = vec![(Step::Ping(HeartbeatSignal::Success), Fault::None)];
    script.extend(vec![wait(Fault::None); 9]);
    script.push(wait(Fault::Restart(40 * SECOND)));
    script.push(wait(Fault::KillBefore(60 * SECOND)));
    script.extend(vec![wait(Fault::None); 4]);
    check(SETTING, &script);
}

/// The next process counted the time for which the machine slept, and took incidents for older than this one did.
#[test]
fn time_asleep_makes_no_incident_older_for_the_next_process() {
    let setting = Setting {
        is_flapping: true,
        ..SETTING
    };
    let api = |status| result("api", "default", status);
    check(
        setting,
        &[
            api(Status::Down),
            api(Status::Up),
            api(Status::Up),
            (Step::Sleep(290 * SECOND), Fault::None),
            (Step::Wait, Fault::KillAfter(10 * SECOND)),
            api(Status::Down),
            api(Status::Down),
        ],
    );
}

/// An incident had no reason if the process that saw the failures was not the one that saw the quorum.
#[test]
fn the_reason_of_a_region_outlives_a_kill() {
    let setting = Setting {
        rule: "majority",
        ..SETTING
    };
    check(
        setting,
        &[
            result("web", "us", Status::Up),
            result("web", "eu", Status::Up),
            result("web", "default", Status::Down),
            (Step::Wait, Fault::KillAfter(5 * SECOND)),
            result("web", "us", Status::Up),
            result("web", "eu", Status::Down),
        ],
    );
}

/// A pause is stored before what follows from it; a process that was killed in between told no channel of the end.
#[test]
fn a_pause_whose_end_was_not_written_is_announced_by_the_next_process() {
    check(
        SETTING,
        &[
            result("api", "default", Status::Down),
            (Step::Pause("api", true), Fault::KillBefore(10 * SECOND)),
        ],
    );
}

/// One of the same name is another monitor: a kill between its removal and its first result left it what the first one had,
/// or its beginning was stored twice.
#[test]
fn a_monitor_that_comes_again_begins_once_whenever_the_process_is_killed() {
    let without = Setting {
        has_api: false,
        ..SETTING
    };
    let ways: [[Step; 2]; 2] = [
        [Step::Reload(without), Step::Reload(SETTING)],
        [Step::Define(None), Step::Define(Some("one"))],
    ];
    let faults = [
        Fault::None,
        Fault::KillBefore(10 * SECOND),
        Fault::KillAfter(10 * SECOND),
    ];
    for [removal, addition] in ways {
        for first in faults {
            for second in faults {
                check(
                    SETTING,
                    &[
                        (Step::Define(Some("one")), Fault::None),
                        result("api", "default", Status::Down),
                        result("one", "default", Status::Down),
                        (removal.clone(), first),
                        (addition.clone(), second),
                        (Step::Wait, Fault::KillBefore(10 * SECOND)),
                        result("api", "default", Status::Up),
                        result("one", "default", Status::Down),
                    ],
                );
            }
        }
    }
}

/// A name is not what a monitor is: its incident goes on under another one, whenever the process is killed.
#[test]
fn a_rename_ends_no_incident_whenever_the_process_is_killed() {
    for fault in [
        Fault::None,
        Fault::KillBefore(10 * SECOND),
        Fault::KillAfter(10 * SECOND),
    ] {
        check(
            SETTING,
            &[
                (Step::Define(Some("one")), Fault::None),
                result("one", "default", Status::Down),
                (Step::Define(Some("two")), fault),
                result("two", "default", Status::Up),
                result("two", "default", Status::Up),
            ],
        );
    }
}

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "a failing seed is repeated by its variable, and a longer run asked for by another"
)]
fn a_life_with_kills_is_that_of_one_that_was_told_of_the_absences() {
    const STEPS: usize = 150;

    if let Ok(seed) = std::env::var("PLIMSOLL_SEED") {
        let seed = seed.parse().expect("PLIMSOLL_SEED is a number");
        if let Err(found) = run(seed, STEPS) {
            panic!("{found}");
        }
        return;
    }
    let histories = std::env::var("PLIMSOLL_HISTORIES").ok();
    let histories = histories.map_or(12, |text| text.parse().expect("it is a number"));
    let mut faults = 0;
    for seed in 0..histories {
        match run(seed, STEPS) {
            Ok(made) => faults += made,
            Err(found) => panic!("repeat it with PLIMSOLL_SEED={seed}\n{found}"),
        }
    }
    assert!(faults > 0);
}
