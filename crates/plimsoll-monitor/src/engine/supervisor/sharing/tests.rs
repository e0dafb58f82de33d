use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Mutex;

use plimsoll_model::Clock as _;

use super::*;
use crate::detect::status::Status;
use crate::engine::clock::tests::Clocks;
use crate::engine::report::{Found, Report};
use crate::store::{IncidentFilter, SqliteOptions, SqlitePath, SqliteStore};

/// Monitors that other processes check, and composites of them; silent after 7 s.
const PLAN: &str = r#"
    [defaults]
    interval = "2s"
    timeout = "1s"
    confirm = 1
    recover = 1
    hold = "0s"
    [[monitor]]
    name = "web"
    http = "http://127.0.0.1:9/"
    [[monitor]]
    name = "api"
    http = "http://127.0.0.1:9/"
    [[monitor]]
    name = "child"
    http = "http://127.0.0.1:9/"
    depends_on = "web"
    [[monitor]]
    name = "unit"
    systemd = "nginx.service"
    [[monitor]]
    name = "both"
    all_of = ["web", "api"]
"#;

const OWN: &str = "own";
const OTHER: &str = "other";

/// The process with the lease, in virtual time.
struct World {
    store: Arc<SqliteStore>,
    clocks: Clocks,
    engine: Supervisor,
    /// The number of the last result of another process.
    last: i64,
    said: Arc<Mutex<Vec<String>>>,
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(future)
}

fn division(shares: &[(&str, Shards)]) -> Division {
    let shares = shares
        .iter()
        .map(|(name, share)| ((*name).to_owned(), *share));
    Division {
        shares: shares.collect(),
        leader: Some(OWN.to_owned()),
    }
}

impl World {
    /// All checks are those of another process.
    fn new() -> Self {
        let clocks = Clocks::default();
        let store = SqliteStore::open(&SqlitePath::Memory, SqliteOptions::default()).unwrap();
        let store = Arc::new(store);
        let said = Arc::<Mutex<Vec<String>>>::default();
        let notice = {
            let said = Arc::clone(&said);
            Arc::new(move |message: &str| said.lock().unwrap().push(message.to_owned()))
        };
        let share = division(&[(OWN, Shards::NONE), (OTHER, Shards::ALL)]);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("monitor.toml");
        std::fs::write(&path, PLAN).unwrap();
        let plan = crate::config::load(&path, &|_| None).unwrap();
        let engine = Supervisor::start_by(
            Rc::new(clocks.clone()),
            plan,
            Arc::<SqliteStore>::clone(&store),
            Arc::default(),
            notice,
            Some((OWN.to_owned(), share)),
        );
        Self {
            engine: block_on(engine).unwrap(),
            store,
            clocks,
            last: 0,
            said,
        }
    }

    fn now(&self) -> Timestamp {
        Timestamp::from_system(self.clocks.wall())
    }

    fn id(&self, name: &str) -> MonitorId {
        self.engine.keys[&format!("_{name}")]
    }

    /// A second passes.
    fn pass(&mut self, seconds: u64) {
        for _ in 0..seconds {
            self.clocks.advance(Duration::from_secs(1));
            self.engine.look_at_clocks();
            let now = self.engine.moment();
            self.engine.fire(now);
        }
        self.write();
    }

    fn write(&mut self) {
        let engine = &mut self.engine;
        let to = (engine.org, &*self.store as &dyn Store);
        block_on(async {
            engine
                .recorder
                .drain(engine.org, &*self.store)
                .await
                .unwrap();
            let (board, notice) = (&engine.board, &engine.notice);
            engine.batch.finish(to, board, notice).await;
            self.store.flush().await.unwrap();
        });
    }

    /// What another process found of a monitor at a date.
    fn found(&mut self, name: &str, status: Status, at: Timestamp) -> HandedOver {
        self.last += 1;
        let reason = (status == Status::Down).then(|| "refused".to_owned());
        let result = CheckResult::plain(at, status, Duration::ZERO, reason);
        let report = Report {
            run: 1,
            version: String::new(),
            now: self.now().0,
            waiting: 0,
            lost: 0,
            results: vec![Found::from_result(1, &format!("_{name}"), result)],
        };
        HandedOver {
            process: OTHER.to_owned(),
            number: self.last,
            age: Duration::ZERO,
            text: serde_json::to_string(&SharedFinding::Result(report)).unwrap(),
        }
    }

    /// Another process finds that of a monitor now.
    fn find(&mut self, name: &str, status: Status) {
        let found = self.found(name, status, self.now());
        self.engine.take_handed_over(vec![found]);
        self.write();
    }

    fn health(&self, name: &str) -> Health {
        self.engine.live[&self.id(name)].detector.health()
    }

    /// The health of a monitor over time, in seconds since a date.
    fn timeline(&self, name: &str, since: Timestamp) -> Vec<(u64, Health)> {
        let (org, end) = (self.engine.org, Timestamp(i64::MAX));
        let found = self.store.health(org, self.id(name), since, end);
        let found = block_on(found).unwrap().into_iter();
        let found = found.filter(|(at, _)| at.at >= since);
        found
            .map(|(at, _)| (at.at.since(since).as_secs(), at.health))
            .collect()
    }

    /// Whether each incident is over, by monitor.
    fn incidents(&self) -> BTreeMap<String, Vec<bool>> {
        let all = self
            .store
            .incidents(self.engine.org, IncidentFilter::default(), None, 100);
        let mut by_monitor = BTreeMap::<_, Vec<_>>::new();
        for incident in block_on(all).unwrap() {
            let monitor = self.engine.live[&incident.monitor].plan.name.clone();
            by_monitor
                .entry(monitor)
                .or_default()
                .push(incident.resolved.is_some());
        }
        by_monitor
    }

    fn results(&self, name: &str) -> usize {
        let end = Timestamp(i64::MAX);
        let found = self
            .store
            .results(self.engine.org, self.id(name), end, 1_000);
        block_on(found).unwrap().len()
    }

    /// The monitors of which a check is due within their interval.
    fn due(&mut self) -> Vec<&'static str> {
        self.clocks.advance(Duration::from_secs(3));
        let now = self.clocks.now();
        let mut due = Vec::new();
        while let Some(one) = self.engine.scheduler.pop(now) {
            due.push(one.key);
        }
        let all = ["web", "api", "child", "unit"].into_iter();
        all.filter(|name| due.contains(&self.id(name))).collect()
    }
}

#[test]
fn a_process_checks_its_shards_and_what_only_its_machine_can() {
    let mut world = World::new();
    assert_eq!(world.due(), ["unit"]);
    world
        .engine
        .divide(OWN.to_owned(), division(&[(OWN, Shards::ALL)]));
    assert_eq!(world.due(), ["web", "api", "child", "unit"]);
    block_on(world.engine.pause("_web", true)).unwrap();
    assert_eq!(world.due(), ["api", "child", "unit"]);
    let share = division(&[(OWN, Shards::NONE), (OTHER, Shards::ALL)]);
    world.engine.divide(OWN.to_owned(), share);
    block_on(world.engine.pause("_web", false)).unwrap();
    assert_eq!(world.due(), ["unit"]);
    let shown = world.engine.board.division().unwrap();
    assert_eq!(shown.share_of(OTHER), Shards::ALL);
}

#[test]
fn the_silence_of_a_killed_process_is_a_gap_and_nothing_else() {
    let mut world = World::new();
    for _ in 0..10 {
        world.find("web", Status::Up);
        world.find("api", Status::Down);
        world.pass(2);
    }
    let last = world.now().minus(Duration::from_secs(2));
    assert_eq!(world.health("both"), Health::Down);
    let before = world.incidents();
    assert_eq!(before["api"], [false]);
    assert_eq!(before["both"], [false]);
    // Longer than either is silent without a notice, since the process may be gone.
    world.pass(11);
    world
        .engine
        .divide(OWN.to_owned(), division(&[(OWN, Shards::NONE)]));
    world.pass(1);
    assert_eq!(world.health("web"), Health::Up);
    assert_eq!(world.health("api"), Health::Down);
    let third = "third";
    let share = division(&[(OWN, Shards::NONE), (third, Shards::ALL)]);
    world.engine.divide(OWN.to_owned(), share);
    world.write();
    // From when the next check was due until another process makes them.
    assert_eq!(
        world.timeline("web", last),
        [(2, Health::NoData), (14, Health::Up)]
    );
    assert_eq!(
        world.timeline("api", last),
        [(2, Health::NoData), (14, Health::Down)]
    );
    assert_eq!(world.timeline("both", last), []);
    world.pass(3);
    world.find("web", Status::Up);
    world.find("api", Status::Down);
    assert_eq!(world.incidents(), before);
    world.find("api", Status::Up);
    let mut after = before;
    for ended in after.values_mut() {
        *ended = vec![true];
    }
    assert_eq!(world.incidents(), after);
    let said = world.said.lock().unwrap().join("\n");
    assert!(
        !said.contains("web has no") && !said.contains("api has no"),
        "{said}"
    );
}

#[test]
fn the_silence_of_one_monitor_is_reported_though_its_process_lives() {
    let mut world = World::new();
    world.find("web", Status::Up);
    // It would have been replaced by now, if it were gone.
    world.pass(7 + REPLACED_WITHIN.as_secs() + 7);
    assert_eq!(world.health("web"), Health::NoData);
}

#[test]
fn a_process_that_ends_by_itself_leaves_no_gap_if_no_check_was_missed() {
    let mut world = World::new();
    world.find("web", Status::Up);
    let begun = world.now();
    world.pass(2);
    let share = division(&[(OWN, Shards::ALL)]);
    world.engine.divide(OWN.to_owned(), share);
    world.write();
    assert_eq!(world.timeline("web", begun).len(), 1, "it came up");
}

#[test]
fn results_that_are_handed_over_again_count_once() {
    let mut world = World::new();
    let first = world.found("web", Status::Up, world.now());
    world.pass(2);
    let second = world.found("web", Status::Up, world.now());
    world
        .engine
        .take_handed_over(vec![first.clone(), second.clone()]);
    world.engine.take_handed_over(vec![first, second]);
    world.write();
    assert_eq!(world.results("web"), 2);
    let view = world.engine.board.view("_web").unwrap();
    assert_eq!(view.counters.results, [2, 0, 0, 0]);
}

#[test]
fn what_was_found_before_this_process_had_the_lease_is_only_stored() {
    let mut world = World::new();
    let before = world.now().minus(Duration::from_secs(3));
    let found = world.found("web", Status::Down, before);
    world.engine.take_handed_over(vec![found]);
    world.write();
    assert_eq!(world.results("web"), 1);
    assert_eq!(world.health("web"), Health::Pending);
    // The date is set back: what is found from then on counts.
    world.find("web", Status::Up);
    world.clocks.set(-3_600_000);
    world.pass(1);
    world.find("web", Status::Down);
    assert_eq!(world.health("web"), Health::Down);
}

#[test]
fn composites_and_dependencies_follow_monitors_that_others_check() {
    let mut world = World::new();
    let share = division(&[(OWN, Shards::ALL)]);
    world.engine.divide(OWN.to_owned(), share);
    let result = |status, at| CheckResult::plain(at, status, Duration::ZERO, None);
    let (api, child) = (world.id("api"), world.id("child"));
    world
        .engine
        .accept_result(api, result(Status::Up, world.now()));
    world
        .engine
        .accept_result(child, result(Status::Up, world.now()));
    world.find("web", Status::Up);
    assert_eq!(world.health("both"), Health::Up);
    world.pass(1);
    world.find("web", Status::Down);
    assert_eq!(world.health("both"), Health::Down);
    // Its notices are held back, since the other one is down.
    world.pass(1);
    world
        .engine
        .accept_result(child, result(Status::Down, world.now()));
    world.write();
    let said = world.said.lock().unwrap().join("\n");
    assert!(
        said.contains("both is down") && !said.contains("child is down"),
        "{said}"
    );
}

#[test]
fn a_monitor_that_is_held_back_elsewhere_stays_down_as_it_does_here() {
    let mut world = World::new();
    world.find("web", Status::Down);
    let text = serde_json::to_string(&SharedFinding::HeldBack("_web".to_owned())).unwrap();
    for number in 1..30 {
        world.pass(2);
        let held_back = HandedOver {
            process: OTHER.to_owned(),
            number: -number,
            age: Duration::ZERO,
            text: text.clone(),
        };
        world.engine.take_handed_over(vec![held_back]);
    }
    assert_eq!(world.health("web"), Health::Down);
}
