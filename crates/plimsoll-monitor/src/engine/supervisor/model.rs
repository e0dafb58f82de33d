//! A model of the monitor over time: random histories with faults, in virtual time, with the real engine and a real store.
//!
//! Two lives get the same inputs. One is killed, before or after its changes are written, and started again; the other
//! never ends and is told of the times in which the first did not run. Both must have the same incidents, notices and
//! health in the end. The lease may also go to a process that was there all the time, while the one that had it still sees
//! what happens. `PLIMSOLL_SEED` repeats one history, and `PLIMSOLL_HISTORIES` makes more than a few of them.

use std::fmt::Write as _;
use std::future::Future;
use std::num::NonZero;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use plimsoll_model::Clock as _;

use crate::config::{Plan, overlay};
use crate::detect::Input;
use crate::detect::status::Status;
use crate::detect::uptime::{HealthAt, uptime};
use crate::engine::clock::tests::Clocks;
use crate::engine::command::{HeartbeatSignal, PushedResult, RemoteResult};
use crate::engine::histories::Since;
use crate::engine::supervisor::Supervisor;
use crate::probe::reading::CheckResult;
use crate::store::{
    DefinitionChanges, DefinitionKind, IncidentFilter, MonitorId, NewMonitor, OrgId, PutDefinition,
    SqliteOptions, SqlitePath, SqliteStore, Store,
};
use crate::time::Timestamp;

/// What a history may do to both lives.
#[derive(Debug, Clone, PartialEq)]
enum Step {
    /// Nothing but time passes.
    Wait,
    /// A result of a monitor in a region.
    Result(&'static str, &'static str, Status),
    Ping(HeartbeatSignal),
    /// A result that a target pushes, or an operator sets.
    Push(bool),
    Acknowledge(&'static str),
    Resolve(&'static str),
    Pause(&'static str, bool),
    Reload(Setting),
    /// The API creates one of the monitors that the store defines, or gives it this name; without one it removes it.
    Define(usize, Option<&'static str>),
    /// The API makes a maintenance window of that many seconds from now on, for this monitor, or removes it.
    Maintain(&'static str, Option<i64>),
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
    /// Another process takes the lease over. The first one goes on for a while, writes nothing any more, and ends.
    HandOver(Duration),
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
            [[monitor]]
            name = "hand"
            manual = true
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
        Timestamp::from_system(self.clocks.wall())
    }

    fn start(&mut self) {
        let clocks = Rc::new(self.clocks.clone());
        let store = Arc::<SqliteStore>::clone(&self.store);
        let notice = Arc::new(|_: &str| {});
        let started = Supervisor::start_by(
            clocks,
            self.setting.plan(),
            store,
            Arc::default(),
            notice,
            None,
        );
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
            let to = (engine.org, &*store as &dyn Store);
            engine.batch.finish(to, &engine.board, &engine.notice).await;
            engine.recorder.drain(engine.org, &*store).await.unwrap();
            engine.mark_alive().await;
            compare_histories(engine, &store).await;
        });
    }

    fn apply(&mut self, step: &Step) {
        self.apply_as_of(step, self.wall());
    }

    /// - `date`: of what is defined, which is the same in both lives.
    fn apply_as_of(&mut self, step: &Step, date: Timestamp) {
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
                        engine.accept_result(id, result);
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
            Step::Push(is_up) => {
                let reason = (!is_up).then(|| "by hand".to_owned());
                let pushed = PushedResult {
                    is_up: *is_up,
                    reason,
                    took: Duration::ZERO,
                };
                engine.pushed("_hand", pushed).ok();
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
            Step::Define(slot, name) => block_on(define(engine, &*store, *slot, *name, wall)),
            Step::Maintain(name, seconds) => {
                block_on(maintain(engine, &*store, name, *seconds, date));
            }
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

/// The names of the monitors that the store defines, by their slots.
const NAMES: [[&str; 2]; 2] = [["one", "two"], ["three", "four"]];

/// Changes a definition in the store and then the engine, as the API does.
async fn define(
    engine: &mut Supervisor,
    store: &dyn Store,
    slot: usize,
    name: Option<&str>,
    now: Timestamp,
) {
    let kind = DefinitionKind::Monitor;
    let known = store.definitions(engine.org, kind).await.unwrap();
    let mut known = known.into_iter().map(|(one, _)| one.key);
    let was = known.find(|key| NAMES[slot].contains(&key.trim_start_matches('_')));
    let mut changes = DefinitionChanges::default();
    let (mut plans, mut gone) = (Vec::new(), Vec::new());
    if let Some(name) = name {
        let text = format!("name = \"{name}\"\nhttp = \"http://127.0.0.1:9/\"\n");
        let base = &engine.base;
        let compiled = overlay::monitors(&[&text], &base.grounds, base.monitors.iter());
        let plan = compiled.into_iter().next().unwrap().unwrap();
        changes.puts.push(PutDefinition {
            id: None,
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

/// Changes a maintenance window in the store and then the engine, as the API does.
async fn maintain(
    engine: &mut Supervisor,
    store: &dyn Store,
    name: &str,
    seconds: Option<i64>,
    now: Timestamp,
) {
    let kind = DefinitionKind::Maintenance;
    let key = format!("works-{name}");
    let known = store.definitions(engine.org, kind).await.unwrap();
    let was = known
        .into_iter()
        .map(|(one, _)| one.key)
        .find(|it| *it == key);
    let mut changes = DefinitionChanges::default();
    match (seconds, was) {
        (Some(seconds), was) => {
            let start = jiff::Timestamp::from_millisecond(now.0).unwrap();
            let text = format!(
                "name = \"{key}\"\nonce = \"{}\"\nduration = \"{seconds}s\"\nmonitors = [\"{name}\"]\n",
                start.strftime("%Y-%m-%dT%H:%M:%SZ"),
            );
            changes.puts.push(PutDefinition {
                id: None,
                key,
                was,
                version: None,
                text,
                monitor: None,
            });
        }
        (None, Some(was)) => changes.removals.push((was, None)),
        (None, None) => return,
    }
    store
        .change_definitions(engine.org, kind, changes, now)
        .await
        .unwrap();
    engine.rebuild().await.unwrap();
}

/// The changes of health, and the time probed and down.
/// Fails unless pages are shown what the store has.
async fn compare_histories(engine: &Supervisor, store: &SqliteStore) {
    let now = engine.moment().wall;
    // The clock may have been set back.
    let end = now.plus(Duration::from_hours(24 * 400));
    let monitors: Vec<_> = engine.live.keys().copied().collect();
    let since = Since {
        health: now.minus(Duration::from_hours(24 * 90)),
        hours: now.minus(Duration::from_hours(24)),
    };
    let (org, histories) = (engine.org, &engine.board.histories);
    let shown = histories.read((org, store), &monitors, since, now).await;
    let stored = store.histories(org, monitors, since.health, since.hours, end);
    for (shown, stored) in shown.unwrap().iter().zip(stored.await.unwrap()) {
        assert_eq!(shown.health_within((since.health, end)), stored.health);
        let hours = shown.hours_within((since.hours, end));
        assert_eq!(Some(hours), stored.hours.as_deref());
    }
}

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
    let text = format!(
        "{text}probed {} down {} in {} outages",
        times.0, times.1, measured.outages
    );
    (text, times)
}

/// Takes one step in both lives, with its fault in the first.
fn take_step(victim: &mut Life, reference: &mut Life, step: &Step, fault: Fault, by: Duration) {
    let before = victim.wall();
    for life in [&mut *victim, &mut *reference] {
        life.clocks.advance(by);
    }
    victim.turn();
    let date = victim.wall();
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
        Fault::KillAfter(away) | Fault::Restart(away) | Fault::HandOver(away) => (away, true),
    };
    if is_written {
        victim.write();
        reference.turn();
        reference.apply(step);
        reference.write();
    }
    let last = if is_written { victim.wall() } else { before };
    let former = victim.engine.take();
    for life in [&mut *victim, &mut *reference] {
        life.clocks.advance(away);
    }
    victim.start();
    victim.write();
    if let (Fault::HandOver(_), Some(mut former)) = (fault, former) {
        // What it sees until it ends: it has stopped to write before its lease was over.
        former.look_at_clocks();
        let now = former.moment();
        former.fire(now);
    }
    let to = reference.wall();
    let clocks = reference.clocks.clone();
    let engine = reference.engine();
    engine.watch.look(&clocks);
    engine.begin_anew();
    // What was only in memory never was. What was in the file or in the store is so from the next start on, thus before
    // anything that fell due meanwhile: what is gone or held back by then is not announced any more.
    let is_stored = matches!(
        step,
        Step::Reload(_) | Step::Pause(..) | Step::Define(..) | Step::Maintain(..)
    );
    if !is_written && is_stored {
        reference.apply_as_of(step, date);
    }
    reference.engine().absent(last, to);
    reference.write();
}

/// Monitors that have results of probes.
const PROBED: [&str; 7] = ["web", "api", "child", "one", "two", "three", "four"];

fn random_step(random: &mut fastrand::Rng, mood: &mut [u32; PROBED.len()]) -> Step {
    let index = random.usize(..PROBED.len());
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
        75 => Step::Resolve([name, "hand"][random.usize(..2)]),
        76..=79 => Step::Pause(
            ["web", "api", "job", "one", "two", "three", "hand"][index],
            random.u32(..3) == 0,
        ),
        80..=81 => Step::Reload(Setting::random(random)),
        82 => Step::SetDate(random.i64(-100_000..100_000)),
        83 => Step::Sleep(Duration::from_secs(random.u64(10..100))),
        84..=86 => {
            let slot = random.usize(..2);
            let names = NAMES[slot];
            Step::Define(
                slot,
                [Some(names[0]), Some(names[1]), None][random.usize(..3)],
            )
        }
        87..=88 => Step::HoldBack(name),
        89..=90 => Step::Maintain(
            ["web", "child", "hand"][random.usize(..3)],
            [None, Some(5), Some(60)][random.usize(..3)],
        ),
        91..=93 => Step::Push(random.u32(..3) > 0),
        _ => Step::Wait,
    }
}

fn random_fault(random: &mut fastrand::Rng, step: &Step) -> Fault {
    // A date that is set while nothing runs looks the same as time that passed.
    if matches!(step, Step::SetDate(_) | Step::Sleep(_)) {
        return Fault::None;
    }
    let away = Duration::from_millis(random.u64(2_000..90_000));
    match random.u32(..100) {
        0..=3 => Fault::KillBefore(away),
        4..=7 => Fault::KillAfter(away),
        8 => Fault::Restart(away),
        9..=10 => Fault::HandOver(away),
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
    let mut mood = [2; PROBED.len()];
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
fn check(setting: Setting, script: &[(Step, Fault)]) -> String {
    let (mut victim, mut reference) = (Life::new(setting), Life::new(setting));
    for (step, fault) in script {
        let by = Duration::from_secs(3);
        take_step(&mut victim, &mut reference, step, *fault, by);
    }
    let expected = reference.seen();
    assert_eq!(victim.seen(), expected);
    assert!(expected.contains("incident"), "{expected}");
    expected
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
        [Step::Define(0, None), Step::Define(0, Some("one"))],
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
                        (Step::Define(0, Some("one")), Fault::None),
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
                (Step::Define(0, Some("one")), Fault::None),
                result("one", "default", Status::Down),
                (Step::Define(0, Some("two")), fault),
                result("two", "default", Status::Up),
                result("two", "default", Status::Up),
            ],
        );
    }
}

/// A silence that was announced ended without a notice if its monitor was removed while nothing ran.
#[test]
fn a_silence_ends_with_its_monitor_whenever_the_process_is_killed() {
    let without = Setting {
        has_api: false,
        ..SETTING
    };
    let removals = [
        (Step::Reload(without), "api"),
        (Step::Define(0, None), "one"),
    ];
    for fault in [
        Fault::None,
        Fault::KillBefore(10 * SECOND),
        Fault::KillAfter(10 * SECOND),
    ] {
        for (removal, name) in &removals {
            let mut script = vec![
                (Step::Define(0, Some("one")), Fault::None),
                result("web", "default", Status::Down),
                result(name, "default", Status::Up),
            ];
            script.extend(vec![(Step::Wait, Fault::None); 25]);
            script.push((removal.clone(), fault));
            script.push((Step::Wait, Fault::None));
            let seen = check(SETTING, &script);
            let ended = format!("notice _{name}/silence/data_again/");
            assert!(seen.contains(&ended), "{fault:?}: {seen}");
        }
    }
}

/// An incident whose notice is held back, since it is the second one within minutes.
fn flapping(name: &'static str) -> Vec<(Step, Fault)> {
    let statuses = [Status::Down, Status::Up, Status::Up, Status::Down];
    let results = statuses.map(|status| result(name, "default", status));
    results.to_vec()
}

const FLAPPING: Setting = Setting {
    is_flapping: true,
    ..SETTING
};

/// What was never announced needs no end: a notice that falls due while nothing runs is not sent if the next process finds
/// its monitor removed, paused or in maintenance.
#[test]
fn what_is_gone_or_held_back_at_the_next_start_is_not_announced() {
    let without = Setting {
        has_api: false,
        ..FLAPPING
    };
    let changes = [
        (Step::Reload(without), "api"),
        (Step::Define(0, None), "one"),
        (Step::Pause("api", true), "api"),
        (Step::Maintain("api", Some(300)), "api"),
    ];
    for fault in [
        Fault::None,
        Fault::KillBefore(60 * SECOND),
        Fault::KillAfter(60 * SECOND),
    ] {
        for (change, name) in &changes {
            let mut script = vec![(Step::Define(0, Some("one")), Fault::None)];
            script.extend(flapping(name));
            script.push((change.clone(), fault));
            script.push((Step::Wait, Fault::None));
            let seen = check(FLAPPING, &script);
            let incidents = seen.matches(&format!("incident _{name}/")).count();
            let notices = seen.matches(&format!("notice _{name}/")).count();
            // The two are those of the first incident.
            assert_eq!((incidents, notices), (2, 2), "{fault:?} {change:?}: {seen}");
        }
    }
}

/// One that was added, or resumed, or a member of which was resumed while nothing ran, knew nothing until a member changed.
#[test]
fn a_composite_is_what_its_members_say_whenever_the_process_is_killed() {
    let without = Setting {
        has_api: false,
        ..SETTING
    };
    for fault in [
        Fault::None,
        Fault::KillBefore(10 * SECOND),
        Fault::KillAfter(10 * SECOND),
    ] {
        let added = check(
            SETTING,
            &[
                (Step::Reload(without), Fault::None),
                result("web", "default", Status::Down),
                (Step::Reload(SETTING), fault),
                (Step::Wait, Fault::None),
            ],
        );
        assert!(added.contains("incident _both/"), "{fault:?}: {added}");
        let resumed = check(
            SETTING,
            &[
                result("web", "default", Status::Down),
                (Step::Pause("both", true), Fault::None),
                (Step::Pause("both", false), fault),
                (Step::Wait, Fault::None),
            ],
        );
        let incidents = resumed.matches("incident _both/").count();
        assert_eq!(incidents, 2, "{fault:?}: {resumed}");
        check(
            SETTING,
            &[
                result("web", "default", Status::Down),
                (Step::Pause("api", true), Fault::None),
                (Step::Reload(without), Fault::None),
                (Step::Reload(SETTING), Fault::None),
                (Step::Pause("api", false), fault),
                (Step::Wait, Fault::None),
            ],
        );
    }
}

/// A notice that fell due while the machine was suspended was sent though maintenance had begun meanwhile.
#[test]
fn maintenance_that_begins_in_an_absence_holds_back_what_falls_due_in_it() {
    // The window is from 200 to 320 seconds after the start.
    let mut script = vec![(Step::Wait, Fault::None); 55];
    script.extend(flapping("api"));
    for (step, fault) in [
        (Step::Sleep(60 * SECOND), Fault::None),
        (Step::Wait, Fault::Restart(60 * SECOND)),
    ] {
        let mut script = script.clone();
        script.extend([(step, fault), (Step::Wait, Fault::None)]);
        let seen = check(FLAPPING, &script);
        assert_eq!(seen.matches("incident _api/").count(), 2, "{seen}");
        let opened = seen
            .lines()
            .filter(|line| line.starts_with("notice _api/") && line.ends_with("/opened"));
        assert_eq!(opened.count(), 1, "{seen}");
    }
}

/// Dates that are set while nothing runs look like an absence, or like time that never was: neither is downtime, and receivers
/// know the outage by the same name.
#[test]
fn a_date_that_is_set_while_nothing_runs_neither_adds_downtime_nor_loses_an_outage() {
    for millis in [3_600_000, -3_600_000, 500, -500] {
        let mut life = Life::new(SETTING);
        let mut step = |step: Step| {
            life.clocks.advance(3 * SECOND);
            life.turn();
            life.apply(&step);
            life.write();
        };
        let api = |status| Step::Result("api", "default", status);
        step(api(Status::Up));
        step(api(Status::Down));
        step(Step::Wait);
        life.engine = None;
        life.clocks.advance(10 * SECOND);
        life.clocks.set(millis);
        life.start();
        life.write();
        for status in [Status::Down, Status::Up, Status::Up] {
            life.clocks.advance(3 * SECOND);
            life.turn();
            life.apply(&api(status));
            life.write();
        }
        let seen = life.seen();
        let (store, org) = (Arc::clone(&life.store), life.engine().org);
        let all = IncidentFilter::default();
        let mut incidents = block_on(store.incidents(org, all, None, 10)).unwrap();
        incidents.retain(|incident| incident.key.starts_with("_api/"));
        assert_eq!(incidents.len(), 1, "{millis}: {seen}");
        let incident = &incidents[0];
        let resolved = incident.resolved.unwrap();
        assert!(resolved >= incident.opened, "{millis}: {seen}");
        let (_, (_, down)) = block_on(health_of(&*store, org, incident.monitor));
        // In the first process 3 s, in the second one 6 s until the first success.
        assert!((1..=12_000).contains(&down), "{millis}: {down} {seen}");
        let notices: Vec<_> = seen
            .lines()
            .filter(|line| line.starts_with("notice _api/"))
            .collect();
        assert_eq!(notices.len(), 2, "{millis}: {seen}");
        assert!(
            notices.iter().all(|line| line.contains(&incident.key)),
            "{millis}: {seen}"
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
    let histories: u64 = histories.map_or(12, |text| text.parse().expect("it is a number"));
    let (next, faults) = (AtomicU64::new(0), AtomicUsize::new(0));
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= histories {
                return;
            }
            match run(seed, STEPS) {
                Ok(made) => faults.fetch_add(made, Ordering::Relaxed),
                Err(found) => panic!("repeat it with PLIMSOLL_SEED={seed}\n{found}"),
            };
        }
    };
    let workers = thread::available_parallelism().map_or(1, NonZero::get);
    // A thread that panics ends the scope with its message.
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(work);
        }
    });
    let (faults, steps) = (faults.into_inner(), histories * STEPS as u64);
    println!("histories: {histories}, steps: {steps}, faults: {faults}");
    assert!(faults > 0);
}
