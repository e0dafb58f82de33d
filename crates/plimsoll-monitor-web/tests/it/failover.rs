//! A primary and a standby of PostgreSQL that are switched while two processes check, and readers read status pages.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use plimsoll_monitor::detect::status::Health;
use plimsoll_testkit::services::PostgresServer;
use plimsoll_testkit::{Origin, eventually, free_port, refused_address};
use tempfile::TempDir;

use crate::client::{Client, Process};
use crate::sharing::{Stored, divided};

const PAGE: &str = "/status/acme/";

/// Monitors that are up, each checked twice in a second.
const MONITORS: usize = 100;

/// A primary and its standby, which has what the primary acknowledges.
struct Databases {
    primary: PostgresServer,
    standby: PostgresServer,
    name: String,
    url: String,
}

impl Databases {
    fn start() -> Self {
        let (first, second) = (free_port().unwrap(), free_port().unwrap());
        let primary = PostgresServer::start(Some(first));
        let database = primary.database();
        let standby = primary.start_standby(second);
        primary.replicate_synchronously();
        let one = format!("127.0.0.1:{first}");
        let name = database.rsplit('/').next().unwrap();
        Self {
            name: name.split('?').next().unwrap().to_owned(),
            url: database.replace(&one, &format!("{one},127.0.0.1:{second}")),
            primary,
            standby,
        }
    }

    /// Every result that a server has.
    fn results(&self, server: &PostgresServer) -> BTreeSet<String> {
        let sql = "SELECT monitor, at, region FROM results";
        let rows = server.sql(&self.name, sql);
        rows.lines().map(str::to_owned).collect()
    }
}

/// The file of monitors that are up, one of a target that goes down later, and one that is down.
fn written(folder: &TempDir, url: &str, up: &Origin, target: &Origin) -> PathBuf {
    let mut text = format!(
        "store = \"{url}\"\n[defaults]\ninterval = \"500ms\"\ntimeout = \"400ms\"\nconfirm = 3\n\
         [[page]]\nslug = \"acme\"\ntitle = \"Acme\"\n"
    );
    let mut add = |name: &str, what: &str| {
        writeln!(text, "[[monitor]]\nname = \"{name}\"\n{what}").unwrap();
    };
    for number in 0..MONITORS {
        let what = format!("http = \"{}\"", up.url("/"));
        add(&format!("up-{number}"), &what);
    }
    add("target", &format!("tcp = \"{}\"", target.address()));
    add("down", &format!("tcp = \"{}\"", refused_address()));
    let path = folder.path().join("monitor.toml");
    std::fs::write(&path, text).unwrap();
    path
}

/// Reads the status page again and again until a flag is set, and counts; any other response than the page fails.
fn read_pages(process: &Process, is_over: &AtomicBool, read: &AtomicU64) {
    let client = Client::new(process.router());
    while !is_over.load(Ordering::Relaxed) {
        let (status, text) = client.get(PAGE);
        assert_eq!(status, 200, "{text}");
        assert!(text.contains("up-99"), "{text}");
        read.fetch_add(1, Ordering::Relaxed);
    }
}

/// Switches from the primary to the standby under load.
///
/// - `fail`: what happens to the primary.
/// - `waits`: whether the standby is promoted only once no process leads any more.
fn switches(fail: fn(&mut PostgresServer), waits: bool) {
    let mut databases = Databases::start();
    let (up, target) = (Origin::hello(), Origin::hello());
    // Each machine has its own folder for results that wait.
    let folders = [TempDir::new().unwrap(), TempDir::new().unwrap()];
    let configs = folders
        .each_ref()
        .map(|folder| written(folder, &databases.url, &up, &target));
    let processes = configs.each_ref().map(|config| {
        let process = Process::start(config);
        eventually(|| process.get(PAGE).0 == 200);
        process
    });
    let leads = || {
        let leading = processes.iter().filter(|process| process.leased.leads());
        assert!(leading.clone().count() <= 1);
        leading.count() == 1
    };
    eventually(leads);
    let stored = Stored::new(&configs[0]);
    eventually(|| stored.is_open("_down"));
    let before = stored.incidents();
    let ups = stored.monitors("up-");
    assert_eq!(ups.len(), MONITORS);
    // Both check their parts.
    let leader = processes.iter().find(|process| process.leased.leads());
    eventually(|| {
        let parts = divided(leader.unwrap());
        parts.len() == 2 && parts.iter().all(|(shards, _)| *shards == 128)
    });
    eventually(|| ups.iter().all(|id| stored.dates(*id).len() > 3));
    let pages = [AtomicU64::new(0), AtomicU64::new(0)];
    let is_over = AtomicBool::new(false);
    let acknowledged = std::thread::scope(|scope| {
        for (process, read) in processes.iter().zip(&pages) {
            let is_over = &is_over;
            scope.spawn(move || read_pages(process, is_over, read));
        }
        let _ends = Ends(&is_over);
        let all_read_on = || {
            let counts = pages.each_ref().map(|read| read.load(Ordering::Relaxed));
            eventually(|| {
                let now = pages.iter().map(|read| read.load(Ordering::Relaxed));
                now.zip(counts).all(|(now, before)| now > before + 3)
            });
        };
        all_read_on();
        let acknowledged = databases.results(&databases.primary);
        fail(&mut databases.primary);
        if waits {
            eventually(|| !leads());
        }
        all_read_on();
        databases.standby.promote();
        eventually(leads);
        all_read_on();
        acknowledged
    });
    // Its second host has all that was acknowledged.
    let requests = up.requests();
    eventually(|| up.requests() > requests + 10 * MONITORS as u64);
    let stored = Stored::new(&configs[0]);
    let led = stored.last(ups[0]);
    eventually(|| ups.iter().all(|id| stored.last(*id) > led));
    let results = databases.results(&databases.standby);
    assert!(!acknowledged.is_empty());
    let missing: Vec<_> = acknowledged.difference(&results).collect();
    assert!(missing.is_empty(), "{missing:?}");

    // No incident opened or closed, and what was missed is a gap.
    assert_eq!(stored.incidents(), before);
    // On a busy machine checks may be late for long enough to count as a gap once more.
    eventually(|| {
        let mut last = ups.iter().map(|id| stored.health(*id).last().unwrap().1);
        last.all(|it| it == Health::Up)
    });
    let mut gaps = 0;
    for id in &ups {
        let health = stored.health(*id);
        gaps += health
            .iter()
            .filter(|(_, it)| *it == Health::NoData)
            .count();
        assert!(
            health.iter().all(|(_, it)| *it != Health::Down),
            "{health:?}"
        );
    }
    if waits {
        assert!(gaps >= MONITORS, "{gaps}");
    }
    // Each result is of a check of its own.
    let count: usize = ups.iter().map(|id| stored.dates(*id).len()).sum();
    assert!(count as u64 <= up.requests(), "{count}");

    // Incidents go on as before.
    drop(target);
    eventually(|| stored.is_open("_target"));
    let opened: Vec<_> = stored.incidents().difference(&before).cloned().collect();
    assert_eq!(opened.len(), 1, "{opened:?}");
}

/// Ends the readers, also when the test fails.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_standby_takes_the_place_of_a_primary_that_crashes() {
    switches(PostgresServer::crash, true);
}

#[test]
fn a_standby_takes_the_place_of_a_primary_at_once() {
    switches(PostgresServer::crash, false);
}

#[test]
fn a_standby_takes_the_place_of_a_primary_that_hangs() {
    switches(|primary| primary.freeze(), true);
}
