//! Several processes on one store divide the checks; one of them is killed.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use plimsoll_monitor::Timestamp;
use plimsoll_monitor::config::load;
use plimsoll_monitor::detect::status::Health;
use plimsoll_monitor::engine::LASTS;
use plimsoll_monitor::store::shards::{HandedOver, Shards};
use plimsoll_monitor::store::{IncidentFilter, MonitorId, OrgId, Store};
use plimsoll_monitor_web::action;
use plimsoll_testkit::services::PostgresServer;
use plimsoll_testkit::{Origin, eventually, refused_address};
use serde_json::Value;
use tempfile::TempDir;

use crate::client::Process;
use crate::stores::{block_on, servers};

/// Monitors that are up.
const MONITORS: usize = 40;

/// How long a killed process is missed at most: 15 seconds and an interval, and as long again on a machine that is busy.
const MISSED: Duration = Duration::from_secs(31);

/// The file of monitors that are up, one that is down, some of one target, and composites of all of them.
fn written(folder: &TempDir, store: &str, up: &Origin, target: &Origin) -> PathBuf {
    let mut text =
        format!("{store}[defaults]\ninterval = \"500ms\"\ntimeout = \"400ms\"\nconfirm = 2\n");
    let mut add = |name: &str, what: &str| {
        writeln!(text, "[[monitor]]\nname = \"{name}\"\n{what}").unwrap();
    };
    for number in 0..MONITORS {
        add(
            &format!("up-{number}"),
            &format!("http = \"{}\"", up.url("/")),
        );
    }
    for number in 0..8 {
        add(
            &format!("target-{number}"),
            &format!("tcp = \"{}\"", target.address()),
        );
    }
    add("down", &format!("tcp = \"{}\"", refused_address()));
    let names = |begin: &str, count: usize| {
        let names = (0..count).map(|number| format!("\"{begin}-{number}\""));
        names.collect::<Vec<_>>().join(", ")
    };
    add("site", &format!("all_of = [{}]", names("up", MONITORS)));
    add("targets", &format!("all_of = [{}]", names("target", 8)));
    let path = folder.path().join("monitor.toml");
    std::fs::write(&path, text).unwrap();
    path
}

/// Another process, which is killed at the end at the latest.
struct Other(Child);

impl Other {
    fn start(config: &Path) -> Self {
        let child = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "sharing::shares_until_it_is_killed",
                "--nocapture",
            ])
            .env("PLIMSOLL_TEST_SHARED_STORE", config)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        Self(child.unwrap())
    }

    fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// The process of [`Other`].
#[test]
#[expect(clippy::disallowed_methods, reason = "the parent test names the store")]
fn shares_until_it_is_killed() {
    let Ok(config) = std::env::var("PLIMSOLL_TEST_SHARED_STORE") else {
        return;
    };
    let _process = Process::start(config.as_ref());
    loop {
        std::thread::park();
    }
}

/// What the store has, read beside the processes.
pub(crate) struct Stored {
    store: Arc<dyn Store>,
    org: OrgId,
}

const END: Timestamp = Timestamp(i64::MAX);

impl Stored {
    pub(crate) fn new(config: &Path) -> Self {
        let store = load(config, &|_| None)
            .unwrap()
            .store
            .open_beside()
            .unwrap();
        let org = block_on(store.org("default")).unwrap();
        Self { store, org }
    }

    pub(crate) fn monitors(&self, begin: &str) -> Vec<MonitorId> {
        let rows = block_on(self.store.monitors(self.org)).unwrap();
        let rows = rows
            .iter()
            .filter(|row| row.monitor.name.starts_with(begin));
        rows.map(|row| row.id).collect()
    }

    /// The dates of all results, ascending.
    pub(crate) fn dates(&self, monitor: MonitorId) -> Vec<Timestamp> {
        let results = self.store.results(self.org, monitor, END, 100_000);
        let mut dates: Vec<_> = block_on(results)
            .unwrap()
            .iter()
            .map(|row| row.at)
            .collect();
        dates.reverse();
        dates
    }

    pub(crate) fn last(&self, monitor: MonitorId) -> Timestamp {
        let results = block_on(self.store.results(self.org, monitor, END, 1)).unwrap();
        results.first().map_or(Timestamp(0), |row| row.at)
    }

    /// Every incident by its name, its number and its end.
    pub(crate) fn incidents(&self) -> BTreeSet<(String, i64, Option<i64>)> {
        let found = self
            .store
            .incidents(self.org, IncidentFilter::default(), None, 1_000);
        let found = block_on(found).unwrap().into_iter();
        let found = found.map(|it| (it.key, it.id.0, it.resolved.map(|at| at.0)));
        found.collect()
    }

    /// Whether an incident of the monitor of that key is open.
    pub(crate) fn is_open(&self, key: &str) -> bool {
        let incidents = self.incidents();
        let of_key = format!("{key}/");
        incidents
            .iter()
            .any(|(name, _, end)| name.starts_with(&of_key) && end.is_none())
    }

    /// What waits for the process with the lease.
    fn handed_over(&self) -> Vec<HandedOver> {
        block_on(self.store.fetch_handed_over(self.org)).unwrap()
    }

    pub(crate) fn health(&self, monitor: MonitorId) -> Vec<(Timestamp, Health)> {
        let health = self.store.health(self.org, monitor, Timestamp(0), END);
        let health = block_on(health).unwrap().into_iter();
        health.map(|(at, _)| (at.at, at.health)).collect()
    }
}

/// The longest time between two results.
fn longest_gap(dates: &[Timestamp]) -> Duration {
    let pauses = dates.windows(2).map(|pair| pair[1].since(pair[0]));
    pauses.max().unwrap_or_default()
}

/// The shards and monitors of each process, as the one that leads says.
pub(crate) fn divided(process: &Process) -> Vec<(i64, u64)> {
    let (status, text) = process.get("/api/v1/processes");
    assert_eq!(status, 200, "{text}");
    let found: Value = serde_json::from_str(&text).unwrap();
    let processes = found["processes"].as_array().unwrap();
    assert_eq!(processes.iter().filter(|it| it["leads"] == true).count(), 1);
    let parts = processes.iter().map(|it| {
        let shards = it["shards"].as_i64().unwrap();
        (shards, it["monitors"].as_u64().unwrap())
    });
    parts.collect()
}

fn shards(process: &Process) -> Vec<i64> {
    let (shards, monitors): (Vec<_>, Vec<_>) = divided(process).into_iter().unzip();
    if shards.iter().sum::<i64>() == 256 {
        assert_eq!(monitors.iter().sum::<u64>(), MONITORS as u64 + 9);
    }
    shards
}

#[test]
fn a_process_takes_over_the_checks_of_one_that_is_killed() {
    let folder = TempDir::new().unwrap();
    let (up, target) = (Origin::hello(), Origin::hello());
    let config = written(&folder, &servers(), &up, &target);
    let leader = Process::start(&config);
    eventually(|| leader.leased.leads());
    assert_eq!(shards(&leader), [256]);
    let mut other = Other::start(&config);
    eventually(|| shards(&leader) == [128, 128]);

    // The other process took the upper half. Both have monitors of each kind.
    let stored = Stored::new(&config);
    let is_other = |id: &MonitorId| Shards::shard_of(*id) >= 128;
    let (theirs, own): (Vec<_>, Vec<_>) = stored.monitors("up-").into_iter().partition(is_other);
    assert!(theirs.len() > 10 && own.len() > 10, "{theirs:?}");
    let (their_targets, own_targets): (Vec<_>, Vec<_>) =
        stored.monitors("target-").into_iter().partition(is_other);
    assert!(!their_targets.is_empty() && !own_targets.is_empty());
    let checked_after =
        |ids: &[MonitorId], at: Timestamp| ids.iter().all(|id| stored.last(*id) > at);
    let latest = stored.last(own[0]);
    eventually(|| checked_after(&theirs, latest) && checked_after(&own, latest));

    // A composite of monitors of both processes goes down with them.
    drop(target);
    let down = ["_down", "_target-0", "_target-7", "_targets"];
    eventually(|| down.iter().all(|key| stored.is_open(key)));
    eventually(|| stored.incidents().len() == 10);
    let before = stored.incidents();

    other.kill();
    let killed = stored.last(own[0]);
    eventually(|| shards(&leader) == [256]);
    let replaced = stored.last(own[0]);
    let all = [&theirs[..], &own, &their_targets, &own_targets].concat();
    eventually(|| checked_after(&all, replaced));
    // No incident opened or closed, and the composite of monitors that are up never went down.
    assert_eq!(stored.incidents(), before);
    let site = stored.monitors("site");
    assert_eq!(stored.health(site[0]).last().unwrap().1, Health::Up);

    for id in &own {
        assert!(longest_gap(&stored.dates(*id)) < LASTS, "{id:?}");
    }
    for id in &theirs {
        let gap = longest_gap(&stored.dates(*id));
        assert!(gap < MISSED, "{id:?}: {gap:?}");
        // It is a gap of what was probed, and no outage.
        let health = stored.health(*id);
        let gaps = health
            .iter()
            .filter(|(at, it)| *it == Health::NoData && *at > killed);
        assert!(gaps.count() > 0, "{health:?}");
        assert!(
            health.iter().all(|(_, it)| *it != Health::Down),
            "{health:?}"
        );
        assert_eq!(health.last().unwrap().1, Health::Up);
    }
    // Each result is of a check of its own.
    let ids = stored.monitors("up-");
    let results: usize = ids.iter().map(|id| stored.dates(*id).len()).sum();
    assert!(
        results as u64 <= up.requests(),
        "{results} of {}",
        up.requests()
    );
    drop(leader);
}

#[test]
fn a_process_that_shares_takes_the_lease_over_and_keeps_what_is_open() {
    let folder = TempDir::new().unwrap();
    let (up, target) = (Origin::hello(), Origin::hello());
    let postgres = PostgresServer::shared().database();
    let store = format!("store = {{ postgres = \"{postgres}\" }}\n");
    let config = written(&folder, &store, &up, &target);
    let mut leader = Other::start(&config);
    let said = Arc::<Mutex<String>>::default();
    let stored = {
        let plan = load(&config, &|_| None).unwrap();
        // It makes the tables.
        drop(plan.store.open_beside().unwrap());
        Stored::new(&config)
    };
    eventually(|| stored.is_open("_down"));
    let before = stored.incidents();
    let plan = load(&config, &|_| None).unwrap();
    let report = {
        let said = Arc::clone(&said);
        move |message: &str| said.lock().unwrap().push_str(message)
    };
    let second = action::LeasedMonitor::start(plan, Arc::new(report)).unwrap();
    eventually(|| said.lock().unwrap().contains("makes a share of the checks"));
    let theirs: Vec<_> = stored
        .monitors("up-")
        .into_iter()
        .filter(|id| Shards::shard_of(*id) >= 128)
        .collect();
    assert!(theirs.len() > 10, "{theirs:?}");
    // The process with the lease has its results, though it does not make these checks any more.
    let begun = stored.last(theirs[0]);
    eventually(|| {
        theirs
            .iter()
            .all(|id| stored.last(*id) > begun.plus(Duration::from_secs(2)))
    });
    assert!(!second.leads());

    leader.kill();
    eventually(|| second.leads());
    let led = stored.last(theirs[0]);
    let all = stored.monitors("up-");
    eventually(|| all.iter().all(|id| stored.last(*id) > led));
    assert_eq!(stored.incidents(), before);
    for id in &all {
        assert!(longest_gap(&stored.dates(*id)) < MISSED, "{id:?}");
        let health = stored.health(*id);
        assert!(
            health.iter().all(|(_, it)| *it != Health::Down),
            "{health:?}"
        );
    }
    let results: usize = all.iter().map(|id| stored.dates(*id).len()).sum();
    assert!(
        results as u64 <= up.requests(),
        "{results} of {}",
        up.requests()
    );
    drop(second);
}

#[test]
fn a_process_whose_file_shares_no_checks_makes_all_of_them() {
    let folder = TempDir::new().unwrap();
    let (up, target) = (Origin::hello(), Origin::hello());
    let postgres = PostgresServer::shared().database();
    let store = |shares: bool| {
        format!("store = {{ postgres = \"{postgres}\", share_checks = {shares} }}\n")
    };
    let config = written(&folder, &store(false), &up, &target);
    let leader = Process::start(&config);
    eventually(|| leader.leased.leads());
    // One that would share has all shards, of which it checks none: the other one does not share them.
    let config = written(&folder, &store(true), &up, &target);
    let _second = Process::start(&config);
    let stored = Stored::new(&config);
    let held = || {
        let hold = stored
            .store
            .hold_share(stored.org, "default", "third", Duration::ZERO);
        block_on(hold).unwrap()
    };
    eventually(|| held().shares.len() == 2);
    assert_eq!(held().leader, None);
    let (status, text) = leader.get("/api/v1/processes");
    assert_eq!((status.as_u16(), text.trim()), (200, r#"{"processes":[]}"#));
    let all = stored.monitors("up-");
    let begun = stored.last(all[0]);
    eventually(|| all.iter().all(|id| stored.last(*id) > begun));
    assert!(stored.handed_over().is_empty());
}
