//! Faults around the monitor: a full disk, everything down at once, name servers that are silent.

use std::io::Write as _;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream;
use http::{Method, StatusCode};
use plimsoll_model::FailureKind;
use plimsoll_monitor::engine::PushedResult;
use plimsoll_monitor::probe::{Probe as _, ProbeContext, Reach, ReachOptions, TcpProbe, TcpTarget};
use plimsoll_monitor::store::{
    NoticeState, SqliteOptions, SqlitePath, SqliteStore, Store as _, StoreError,
};
use plimsoll_testkit::{NameServer, Origin, eventually};
use tempfile::TempDir;

use crate::client::Running;
use crate::notices::{Receiver, webhook};
use crate::stores::{block_on, monitor, opened, row};

/// Runs a test of this binary in a user and mount namespace of its own, where it may mount a small disk.
fn with_a_small_disk(test: &str) {
    let folder = TempDir::new().unwrap();
    let output = Command::new("unshare")
        .args(["--user", "--map-root-user", "--mount"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env("PLIMSOLL_TEST_SMALL_DISK", folder.path())
        .output()
        .unwrap();
    let shown = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && shown.contains("the disk was full"),
        "{shown}\n{errors}"
    );
}

/// The folder of a disk of 4 MiB; `None` outside the namespace.
fn small_disk() -> Option<std::path::PathBuf> {
    let folder = std::env::var_os("PLIMSOLL_TEST_SMALL_DISK")?;
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=4m", "tmpfs"])
        .arg(&folder)
        .status();
    assert!(mounted.unwrap().success());
    Some(folder.into())
}

/// Takes all space that is left.
fn fill(folder: &Path) {
    let mut ballast = std::fs::File::create(folder.join("ballast")).unwrap();
    for block in [4_096, 1] {
        while ballast.write_all(&vec![0; block]).is_ok() {}
    }
}

fn empty(folder: &Path) {
    std::fs::remove_file(folder.join("ballast")).unwrap();
}

#[test]
fn a_full_disk_refuses_changes_and_counts_the_results_that_it_drops() {
    with_a_small_disk("faults::a_store_on_a_small_disk");
}

#[test]
fn a_store_on_a_small_disk() {
    const WAITING: usize = 2_000;

    let Some(folder) = small_disk() else {
        return;
    };
    let options = SqliteOptions {
        flush_every: Duration::from_millis(10),
        batch: 500,
        most_waiting: WAITING,
    };
    let store = SqliteStore::open(&SqlitePath::File(folder.join("m.db")), options).unwrap();
    let (org, id) = block_on(async {
        let org = store.org("default").await.unwrap();
        let synced =
            store.sync_monitors(org, "file", vec![monitor()], plimsoll_monitor::Timestamp(0));
        (org, synced.await.unwrap()[0])
    });
    fill(&folder);
    let mut appended = 0;
    let mut refused = 0;
    while refused == 0 {
        assert!(appended < 200_000, "the disk takes them all");
        let rows = (0..500).map(|offset| row(id, appended + offset)).collect();
        match block_on(store.append(org, rows)) {
            Ok(()) => appended += 500,
            Err(StoreError::Busy) => refused += 500,
            Err(error) => panic!("{error}"),
        }
    }
    assert_eq!(
        store.waiting().1,
        refused,
        "those that were refused are counted"
    );
    eventually(|| store.trouble().is_some_and(|why| why.contains("full")));
    let recorded = block_on(store.record(org, vec![opened(id, 1)]));
    assert!(matches!(recorded, Err(StoreError::Full)), "{recorded:?}");
    // What was written can be read meanwhile.
    assert_eq!(block_on(store.monitors(org)).unwrap().len(), 1);
    println!("the disk was full");
    empty(&folder);
    eventually(|| block_on(store.flush()).is_ok() && store.waiting().0 == 0);
    assert_eq!(store.trouble(), None);
    block_on(store.record(org, vec![opened(id, 1)])).unwrap();
    let end = plimsoll_monitor::Timestamp(i64::MAX);
    let found = block_on(store.results(org, id, end, 300_000)).unwrap();
    assert_eq!(
        i64::try_from(found.len()).unwrap(),
        appended,
        "none that was taken is lost"
    );
}

#[test]
fn a_monitor_on_a_full_disk_goes_on_and_records_later_what_happened() {
    with_a_small_disk("faults::a_monitor_on_a_small_disk");
}

#[test]
fn a_monitor_on_a_small_disk() {
    let Some(folder) = small_disk() else {
        return;
    };
    let origin = Origin::hello();
    let port = origin.port();
    let text = format!(
        "store = \"m.db\"\n[[monitor]]\nname = \"m\"\nhttp = \"http://127.0.0.1:{port}/\"\ninterval = \"100ms\"\nconfirm = 1\nrecover = 1\n[[page]]\nslug = \"p\"\ntitle = \"P\"\n"
    );
    let running = Running::new(&folder, "monitor.toml", &text);
    running.wait_for("_m", "up");
    fill(&folder);
    drop(origin);
    running.wait_for("_m", "down");
    let is_reported = || {
        let notices = running.notices.lock().unwrap();
        notices.iter().any(|notice| notice.contains("full"))
    };
    eventually(is_reported);
    let (status, page) = running.get("/status/p/");
    assert_eq!(status, StatusCode::OK, "{page}");
    println!("the disk was full");
    empty(&folder);
    eventually(|| {
        let incidents = running.json("/api/v1/incidents");
        incidents["incidents"].as_array().unwrap().len() == 1
    });
}

#[test]
fn ten_thousand_targets_that_fail_at_once_are_a_few_grouped_notices() {
    use std::fmt::Write as _;

    const COUNT: usize = 10_000;

    let folder = TempDir::new().unwrap();
    let receiver = Receiver::new(&[]);
    let mut text = String::from("store = \"m.db\"\n[defaults]\nconfirm = 1\nflap = false\n");
    for number in 0..COUNT {
        write!(text, "[[monitor]]\nname = \"m{number}\"\nmanual = true\n").unwrap();
    }
    text += &webhook(&receiver, "on = [\"opened\"]");
    let running = Running::new(folder.path(), "monitor.toml", &text);
    let handle = running.monitor.handle();
    running.block_on(async {
        let pushes = (0..COUNT).map(async |number| {
            let result = PushedResult {
                is_up: false,
                reason: Some("the network is gone".to_owned()),
                took: Duration::ZERO,
            };
            handle.push(&format!("_m{number}"), result).await
        });
        let mut pushes = stream::iter(pushes).buffer_unordered(256);
        while let Some(outcome) = pushes.next().await {
            outcome.unwrap();
        }
    });
    let sent = || {
        let notices = handle
            .store
            .notices(handle.org, Some(NoticeState::Sent), COUNT + 1);
        running.block_on(notices).unwrap().len()
    };
    eventually(|| sent() == COUNT);
    // A group waits for a moment, and a busy machine may take several to push all: each failure is in one of a few.
    let titles = receiver.titles();
    let failures = titles.iter().map(|title| {
        let number = title.strip_suffix(" monitors are down");
        number.map_or(1, |number| number.parse().unwrap())
    });
    assert_eq!(failures.sum::<usize>(), COUNT, "{titles:?}");
    assert!(titles.len() <= 20, "{titles:?}");
    // All that time the API responds.
    let (status, _) = running.call(Method::GET, "/api/v1/monitors?limit=1", &[], "");
    assert_eq!(status, StatusCode::OK);
}

#[test]
fn without_name_servers_names_fail_in_time_and_addresses_do_not() {
    let silent = NameServer::builder().silent().start();
    let reach = Reach::new(ReachOptions {
        timeout: Duration::from_millis(200),
        name_servers: vec![silent.address()],
        ..ReachOptions::default()
    })
    .unwrap();
    let origin = Origin::hello();
    let check = |target: String| {
        let probe = TcpProbe {
            target: TcpTarget::parse(&target, false, 0).unwrap(),
            send: None,
            reach: reach.clone(),
        };
        block_on(async { probe.check(&ProbeContext::new()).await })
    };
    let failure = check("monitored.test:80".to_owned()).failure.unwrap();
    assert_eq!(failure.kind, FailureKind::Timeout);
    assert_eq!(failure.phase, plimsoll_model::Phase::Dns);
    let reading = check(format!("127.0.0.1:{}", origin.port()));
    assert!(reading.failure.is_none(), "{:?}", reading.failure);
}
