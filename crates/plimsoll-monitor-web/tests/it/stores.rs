//! The store in SQLite and its files; processes that are killed, with both stores.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{Method, StatusCode};
use plimsoll_monitor::config::load;
use plimsoll_monitor::store::{
    self, Change, EventKind, IncidentFilter, NewMonitor, ResultRow, SqliteOptions, SqlitePath,
    SqliteStore, Store, StoreError,
};
use plimsoll_monitor::{Status, Timestamp};
use plimsoll_monitor_web::action;
use plimsoll_testkit::services::{PostgresServer, clickhouse_database};
use plimsoll_testkit::{Origin, eventually, free_port};
use serde_json::Value;
use tempfile::TempDir;
use tower_service::Service as _;

use crate::client::{Client, Process, sqlite};
use crate::notices::{Receiver, WRITER};

pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(future)
}

pub(crate) fn row(monitor: store::MonitorId, at: i64) -> ResultRow {
    ResultRow {
        monitor,
        region: 0,
        at: Timestamp(1_772_366_400_000 + at),
        status: Status::Up,
        took_us: 12_345,
        phases_us: [None, Some(180), Some(2_300), Some(9_000), Some(40)],
        code: Some(200),
        certificate_days: None,
        detail: None,
    }
}

pub(crate) fn monitor() -> NewMonitor {
    NewMonitor {
        key: "a".to_owned(),
        name: "a".to_owned(),
        group: String::new(),
        kind: "http".to_owned(),
    }
}

/// An incident of a monitor.
pub(crate) fn opened(monitor: store::MonitorId, at: i64) -> Change {
    Change::Opened {
        monitor,
        at: Timestamp(at),
        reason: None,
    }
}

#[test]
fn a_store_is_open_in_one_process_at_a_time_and_no_newer_one_is_touched() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("a.db");
    let first = sqlite(&path);
    let open = || SqliteStore::open(&SqlitePath::File(path.clone()), SqliteOptions::default());
    assert!(matches!(open(), Err(StoreError::InUse(_))));
    drop(first);
    drop(open().unwrap());
    let connection = rusqlite::Connection::open(&path).unwrap();
    connection.pragma_update(None, "user_version", 99).unwrap();
    drop(connection);
    let error = open().unwrap_err();
    assert!(
        matches!(error, StoreError::Newer { found: 99, .. }),
        "{error}"
    );
    std::fs::write(
        folder.path().join("b.db"),
        "this is no database at all, but a text",
    )
    .unwrap();
    let error = SqliteStore::open(
        &SqlitePath::File(folder.path().join("b.db")),
        SqliteOptions::default(),
    );
    assert!(
        matches!(
            error,
            Err(StoreError::Open { .. } | StoreError::Database(_))
        ),
        "{error:?}"
    );
}

#[test]
fn a_backup_of_a_store_in_use_is_restored() {
    let folder = TempDir::new().unwrap();
    let (path, copy) = (folder.path().join("a.db"), folder.path().join("copy.db"));
    let store = sqlite(&path);
    let (org, id) = block_on(async {
        let org = store.org("default").await.unwrap();
        let id = store
            .sync_monitors(org, "file", vec![monitor()], Timestamp(0))
            .await
            .unwrap()[0];
        store
            .append(org, (0..100).map(|at| row(id, at * 1000)).collect())
            .await
            .unwrap();
        store.flush().await.unwrap();
        (org, id)
    });
    store::backup(&path, &copy).unwrap();
    assert!(
        store::backup(&path, &copy).is_err(),
        "a backup is not overwritten"
    );
    block_on(async {
        store.append(org, vec![row(id, 1_000_000)]).await.unwrap();
        store.flush().await.unwrap();
    });
    assert!(matches!(
        store::restore(&copy, &path, true),
        Err(StoreError::InUse(_))
    ));
    drop(store);
    assert!(store::restore(&copy, &path, false).is_err(), "it exists");
    store::restore(&copy, &path, true).unwrap();
    let store = sqlite(&path);
    let found = block_on(store.results(org, id, Timestamp(i64::MAX), 1_000)).unwrap();
    assert_eq!(
        found.len(),
        100,
        "the state of the backup, and nothing after it"
    );
    drop(store);
    let mut damaged = std::fs::read(&copy).unwrap();
    let middle = damaged.len() / 2;
    damaged[middle..].fill(0x5a);
    std::fs::write(&copy, damaged).unwrap();
    assert!(
        store::restore(&copy, &path, true).is_err(),
        "a damaged backup replaces nothing"
    );
    assert_eq!(
        block_on(sqlite(&path).results(org, id, Timestamp(i64::MAX), 1_000))
            .unwrap()
            .len(),
        100
    );
}

#[test]
fn a_raw_result_takes_at_most_sixty_bytes() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("a.db");
    let store = sqlite(&path);
    let size = || std::fs::metadata(&path).unwrap().len();
    let (org, id) = block_on(async {
        let org = store.org("default").await.unwrap();
        let id = store
            .sync_monitors(org, "file", vec![monitor()], Timestamp(0))
            .await
            .unwrap()[0];
        (org, id)
    });
    block_on(async {
        for batch in 0..20 {
            let rows = (0..5_000)
                .map(|at| row(id, (batch * 5_000 + at) * 10_000))
                .collect();
            store.append(org, rows).await.unwrap();
        }
        store.flush().await.unwrap();
    });
    drop(store);
    let bytes = size() / 100_000;
    assert!(bytes <= 60, "{bytes} bytes");
}

/// The store of a configuration file.
fn store_of(config: &Path) -> Arc<dyn Store> {
    let plan = load(config, &|_| None).unwrap();
    plan.store.open().unwrap()
}

/// The process that [`survives_kills`] kills: it writes until it dies, and prints what it was promised.
#[test]
#[expect(clippy::disallowed_methods, reason = "the parent test names the store")]
fn writes_until_it_is_killed() {
    let Ok(config) = std::env::var("PLIMSOLL_TEST_KILLED_STORE") else {
        return;
    };
    let store = store_of(config.as_ref());
    block_on(async {
        let org = store.org("default").await.unwrap();
        let id = store
            .sync_monitors(org, "file", vec![monitor()], Timestamp(0))
            .await
            .unwrap()[0];
        for number in 0_i64.. {
            let at = Timestamp(number * 10);
            let rows = (0..50)
                .map(|offset| row(id, number * 50 + offset))
                .collect();
            store.append(org, rows).await.unwrap();
            store.flush().await.unwrap();
            let changes = vec![
                opened(id, at.0),
                Change::Event {
                    monitor: id,
                    at,
                    kind: EventKind::Acknowledged,
                    actor: None,
                    text: None,
                },
                Change::Resolved {
                    monitor: id,
                    at,
                    by: plimsoll_monitor::detect::Resolution::Recovery,
                    lasted: Duration::ZERO,
                    actor: None,
                },
            ];
            store.record(org, changes).await.unwrap();
            println!("recorded {number}");
        }
    });
}

#[test]
fn a_killed_process_loses_no_incident_in_sqlite() {
    let folder = TempDir::new().unwrap();
    let config = folder.path().join("monitor.toml");
    std::fs::write(&config, "store = \"a.db\"").unwrap();
    survives_kills(&config);
}

#[test]
fn a_killed_process_loses_no_incident_in_postgresql() {
    let folder = TempDir::new().unwrap();
    let config = folder.path().join("monitor.toml");
    std::fs::write(&config, servers()).unwrap();
    survives_kills(&config);
}

/// The lines of a configuration for new databases on servers.
pub(crate) fn servers() -> String {
    let postgres = PostgresServer::shared().database();
    let clickhouse = clickhouse_database();
    format!("store = {{ postgres = \"{postgres}\", clickhouse = \"{clickhouse}\" }}\n")
}

/// Kills processes that write to the store of a configuration, and looks for what they were promised.
fn survives_kills(config: &Path) {
    let mut promised = 0;
    for round in 0..3_usize {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "stores::writes_until_it_is_killed",
                "--nocapture",
            ])
            .env("PLIMSOLL_TEST_KILLED_STORE", config)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let recorded = lines
            .map_while(Result::ok)
            .filter(|line| line.contains("recorded "));
        promised += recorded.take(20 + round * 7).count();
        child.kill().unwrap();
        child.wait().unwrap();
        let store = store_of(config);
        let (incidents, results) = block_on(async {
            let org = store.org("default").await.unwrap();
            let monitors = store.monitors(org).await.unwrap();
            let all = store
                .incidents(org, IncidentFilter::default(), None, 100_000)
                .await
                .unwrap();
            let results = store
                .results(org, monitors[0].id, Timestamp(i64::MAX), 1_000_000)
                .await
                .unwrap();
            (all, results.len())
        });
        assert!(
            incidents.len() >= promised,
            "{} of {promised}",
            incidents.len()
        );
        assert!(
            incidents
                .iter()
                .all(|one| one.acknowledged.is_some() && one.resolved.is_some())
        );
        // They were flushed before each record.
        assert!(results >= 50 * 20, "{results}");
        promised = incidents.len();
    }
}

/// One of the processes of [`a_standby_takes_over_and_no_check_runs_twice`]: it monitors until its input ends.
#[test]
#[expect(clippy::disallowed_methods, reason = "the parent test names the file")]
fn monitors_until_it_is_killed() {
    let Ok(config) = std::env::var("PLIMSOLL_TEST_SEAT") else {
        return;
    };
    let plan = load(config.as_ref(), &|_| None).unwrap();
    let report = |message: &str| println!("{message}");
    let leased = action::LeasedMonitor::start(plan, Arc::new(report)).unwrap();
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
    drop(leased);
}

/// A process of [`monitors_until_it_is_killed`] of its own.
struct KilledProcess(Child);

impl KilledProcess {
    /// Its checks have its name in the field `x-process`.
    fn start(folder: &Path, name: &str, store: &str, origin: &Origin) -> Self {
        let config = folder.join(format!("{name}.toml"));
        let url = origin.url("/");
        let text = format!(
            r#"{store}
            [[monitor]]
            name = "web"
            http = {{ url = "{url}", headers = {{ x-process = "{name}" }} }}
            interval = "100ms"
            "#
        );
        std::fs::write(&config, text).unwrap();
        let child = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "stores::monitors_until_it_is_killed",
                "--nocapture",
            ])
            .env("PLIMSOLL_TEST_SEAT", config)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn();
        Self(child.unwrap())
    }

    fn kill(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

impl Drop for KilledProcess {
    fn drop(&mut self) {
        self.kill();
    }
}

#[test]
fn a_standby_takes_over_and_no_check_runs_twice() {
    let folder = TempDir::new().unwrap();
    let origin = Origin::hello();
    let store = servers();
    // The names of the processes, in the order of their checks.
    let checks = || -> Vec<char> {
        let process = |head: &String| {
            let head = head.to_lowercase();
            let (_, rest) = head.split_once("x-process: ")?;
            rest.chars().next()
        };
        origin.heads().iter().filter_map(process).collect()
    };
    let mut first = KilledProcess::start(folder.path(), "a", &store, &origin);
    eventually(|| checks().len() > 5);
    let mut second = KilledProcess::start(folder.path(), "b", &store, &origin);
    // The second one competes for the lease meanwhile.
    eventually(|| checks().len() > 80);
    assert!(checks().iter().all(|name| *name == 'a'), "{:?}", checks());
    first.kill();
    eventually(|| checks().contains(&'b'));
    // One that comes back waits in its turn; one that ends leaves its lease at once.
    let _third = KilledProcess::start(folder.path(), "c", &store, &origin);
    let before = checks().len();
    eventually(|| checks().len() > before + 40);
    drop(second.0.stdin.take());
    second.0.wait().unwrap();
    eventually(|| checks().contains(&'c'));
    let mut order = checks();
    order.dedup();
    assert_eq!(order, ['a', 'b', 'c']);
}

/// Status and content of a response.
fn get(leased: &action::LeasedMonitor, path: &str) -> (u16, String) {
    let request = http::Request::builder().uri(path);
    let request = request.body(axum::body::Body::empty()).unwrap();
    let mut router = leased.router();
    block_on(async move {
        let response = router.call(request).await.unwrap();
        let status = response.status().as_u16();
        let content = axum::body::to_bytes(response.into_body(), 10_000_000).await;
        let content = String::from_utf8(content.unwrap().to_vec()).unwrap();
        (status, content)
    })
}

#[test]
fn a_status_page_stays_while_postgresql_is_away() {
    const PAGE: &str = "/status/acme/";
    const STALE: &str = "The data store is unreachable. This page shows the state at";

    let folder = TempDir::new().unwrap();
    let origin = Origin::hello();
    let mut postgres = PostgresServer::start(None);
    let config = folder.path().join("monitor.toml");
    let text = format!(
        "store = {{ postgres = \"{}\", clickhouse = \"{}\" }}\n[subscriptions]\n\
         [[monitor]]\nname = \"web\"\nhttp = \"{}\"\ninterval = \"100ms\"\n[[page]]\nslug = \"unread\"\ntitle = \"Unread\"\n\
         [[page]]\nslug = \"acme\"\ntitle = \"Acme\"\nurl = \"http://status.acme.example\"\n",
        postgres.database(),
        clickhouse_database(),
        origin.url("/"),
    );
    std::fs::write(&config, text).unwrap();
    let leased = || {
        let plan = load(&config, &|_| None).unwrap();
        action::LeasedMonitor::start(plan, Arc::new(|_: &str| {})).unwrap()
    };
    let first = leased();
    let shows_it = |(status, text): &(u16, String), is_stale: bool| {
        *status == 200 && text.contains("web") && text.contains(STALE) == is_stale
    };
    eventually(|| shows_it(&get(&first, PAGE), false));
    // One that never had the lease shows what the other one has written.
    let second = leased();
    eventually(|| shows_it(&get(&second, PAGE), false));
    let (status, text) = get(&second, "/api/v1/monitors");
    assert_eq!(status, 503);
    assert!(text.contains("another process runs"), "{text}");
    postgres.stop();
    eventually(|| !first.leads());
    eventually(|| shows_it(&get(&first, PAGE), true));
    eventually(|| shows_it(&get(&second, PAGE), true));
    // Nobody has read this one before.
    eventually(|| shows_it(&get(&first, "/status/unread/"), true));
    eventually(|| {
        get(&second, "/api/v1/monitors")
            .1
            .contains("cannot be reached")
    });
    let (status, text) = get(&first, "/api/v1/monitors");
    assert_eq!(status, 503);
    assert!(text.contains("cannot be reached"), "{text}");
    // A page that is read for one request alone is a 503.
    let component =
        Client::new(first.router()).response(Method::GET, "/status/acme/components/_web", &[], "");
    assert_eq!(component.status(), 503);
    assert_eq!(component.headers()["retry-after"], "30");
    let text = component.body();
    assert!(text.contains("This page cannot be shown"), "{text}");
    // A reader of a link gets a page in words, and a mail program tries again.
    for leased in [&first, &second] {
        let client = Client::new(leased.router());
        let path = "/status/acme/subscribe/stop?link=a.b";
        let response = client.response(Method::POST, path, &[], "");
        assert_eq!(response.status(), 503);
        assert_eq!(response.headers()["retry-after"], "30");
        let text = response.body();
        assert!(text.contains("The link stays valid"), "{text}");
    }
    drop(second);
    postgres.resume();
    eventually(|| first.leads());
    assert_eq!(get(&first, "/api/v1/monitors").0, 200);
    eventually(|| shows_it(&get(&first, PAGE), false));
}

#[test]
fn status_pages_are_there_between_two_processes() {
    const PAGE: &str = "/status/acme/";
    const BETWEEN: &str = "Nothing is checked at the moment; another process takes over.";

    let folder = TempDir::new().unwrap();
    let origin = Origin::hello();
    let config = folder.path().join("monitor.toml");
    let text = format!(
        "{}[[monitor]]\nname = \"web\"\nhttp = \"{}\"\ninterval = \"100ms\"\n\
         [[page]]\nslug = \"acme\"\ntitle = \"Acme\"\n",
        servers(),
        origin.url("/"),
    );
    std::fs::write(&config, text).unwrap();
    let leased = || {
        let plan = load(&config, &|_| None).unwrap();
        action::LeasedMonitor::start(plan, Arc::new(|_: &str| {})).unwrap()
    };
    let shows_it = |(status, text): &(u16, String), is_between: bool| {
        *status == 200 && text.contains("web") && text.contains(BETWEEN) == is_between
    };
    let first = leased();
    eventually(|| shows_it(&get(&first, PAGE), false));
    eventually(|| {
        let monitors = get(&first, "/api/v1/monitors").1;
        let monitors: Value = serde_json::from_str(&monitors).unwrap();
        monitors["monitors"][0]["health"] == "up"
    });
    drop(first);
    // Another process has the lease, and does nothing.
    let store = store_of(&config);
    let lease = store.hold_lease("default", "other", Duration::from_mins(10));
    assert!(block_on(lease).unwrap());
    let second = leased();
    eventually(|| shows_it(&get(&second, PAGE), true));
    // From here on there is a page at any moment, and nothing else.
    let (status, feed) = get(&second, "/status/acme/feed.atom");
    assert!(status == 200 && feed.contains("<feed"), "{feed}");
    for path in ["/api/v1/monitors", "/health"] {
        assert_eq!(get(&second, path).0, 503, "{path}");
    }
    let shows = |is_between: bool| {
        let found = get(&second, PAGE);
        assert_eq!(found.0, 200, "{}", found.1);
        shows_it(&found, is_between)
    };
    let org = block_on(store.org("default")).unwrap();
    let mut date = 1_000;
    eventually(|| {
        // The other process begins to check.
        date += 1;
        block_on(store.mark_alive(org, Timestamp(date))).unwrap();
        shows(false)
    });
    eventually(|| shows(true));
    block_on(store.end_lease("default", "other")).unwrap();
    eventually(|| second.leads() & shows(false));
}

#[test]
fn readers_subscribe_at_every_process() {
    const READERS: usize = 6;

    let folder = TempDir::new().unwrap();
    let receiver = Receiver::new(&[]);
    let config = folder.path().join("monitor.toml");
    let text = format!(
        r#"{}
        [subscriptions]
        allow_private = true
        [[monitor]]
        name = "a"
        manual = true
        [[monitor]]
        name = "b"
        manual = true
        [[page]]
        slug = "acme"
        title = "Acme"
        url = "http://status.acme.example"
        [[token]]
        name = "ann"
        sha256 = "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b"
        scopes = ["admin"]
        "#,
        servers()
    );
    std::fs::write(&config, text).unwrap();
    let leader = Process::start(&config);
    eventually(|| leader.leased.leads());
    let standby = Process::start(&config);
    // Its first page waits until the store was read.
    let (status, page) = standby.get("/status/acme/subscribe");
    assert_eq!(status, StatusCode::OK, "{page}");
    let post = |client: &Client, path: &str, form: &str| {
        let (status, text) = client.call(Method::POST, path, &[], form);
        assert_eq!(status, StatusCode::OK, "{path}: {text}");
    };
    let subscribers = || {
        let all = leader.json_as(WRITER, "/api/v1/subscribers");
        all["subscribers"].as_array().unwrap().clone()
    };
    for number in 0..READERS {
        let address = format!("http://{}/{number}", receiver.address);
        let mut form = url::form_urlencoded::Serializer::new(String::new());
        form.append_pair("means", "webhook")
            .append_pair("address", &address);
        post(&standby, "/status/acme/subscribe", &form.finish());
    }
    eventually(|| receiver.bodies().len() == READERS);
    assert_eq!(subscribers().len(), READERS);
    let below = |link: &Value| {
        let link = link.as_str().unwrap();
        let below = link.strip_prefix("http://status.acme.example").unwrap();
        format!("/status/acme{below}")
    };
    for first in receiver.bodies() {
        let confirm = below(&first["meta"]["confirm"]);
        let stop = below(&first["meta"]["unsubscribe"]);
        // What two processes change at a time is changed, both of it.
        let change = stop.replace("/stop", "/change");
        std::thread::scope(|scope| {
            scope.spawn(|| post(&standby, &confirm, ""));
            scope.spawn(|| post(&leader, &change, "component=_b"));
        });
        for process in [&leader, &standby] {
            let (status, page) = process.get(&stop);
            assert_eq!(status, StatusCode::OK);
            let is_chosen = |key: &str| page.contains(&format!("value=\"{key}\" checked"));
            assert!(is_chosen("_b") && !is_chosen("_a"), "{page}");
        }
    }
    let all = subscribers();
    assert!(
        all.iter().all(|one| one["subscribed_at"].is_string()),
        "{all:?}"
    );
    for first in receiver.bodies() {
        let stop = below(&first["meta"]["unsubscribe"]);
        post(&standby, &stop, "List-Unsubscribe=One-Click");
        let again = leader.call(Method::POST, &stop, &[], "");
        assert_eq!(again.0, StatusCode::NOT_FOUND);
    }
    assert!(subscribers().is_empty());
}

#[test]
fn a_process_that_starts_while_its_databases_are_away_waits_for_them() {
    const NO_TIMES: &str = "Response times cannot be read at the moment.";

    let folder = TempDir::new().unwrap();
    let mut postgres = PostgresServer::start(None);
    let config = folder.path().join("monitor.toml");
    let text = format!(
        "store = {{ postgres = \"{}\", clickhouse = \"http://{}/\" }}\n\
         [[monitor]]\nname = \"web\"\ntcp = \"{}\"\nconfirm = 1\n[[page]]\nslug = \"acme\"\ntitle = \"Acme\"\n",
        postgres.database(),
        plimsoll_testkit::refused_address(),
        plimsoll_testkit::refused_address(),
    );
    std::fs::write(&config, text).unwrap();
    postgres.stop();
    let said = Arc::<Mutex<String>>::default();
    let report = {
        let said = Arc::clone(&said);
        move |message: &str| {
            let mut said = said.lock().unwrap();
            said.push_str(message);
            said.push('\n');
        }
    };
    let plan = load(&config, &|_| None).unwrap();
    let leased = action::LeasedMonitor::start(plan, Arc::new(report)).unwrap();
    let (status, text) = get(&leased, "/health");
    assert_eq!(status, 503);
    assert!(
        text.contains("DOWN") && text.contains("cannot be reached"),
        "{text}"
    );
    let says = |what: &str| said.lock().unwrap().contains(what);
    assert!(says("this process waits for it"));
    assert!(!leased.leads());
    postgres.resume();
    eventually(|| leased.leads());
    // Each is said when it is so already.
    eventually(|| says("the store can be reached") && says("this process runs the checks"));
    // The other database is still away.
    eventually(|| says("results wait, since they cannot be written: "));
    let (status, text) = get(&leased, "/health");
    assert_eq!(status, 200);
    assert!(
        text.contains("UP") && text.contains("results wait"),
        "{text}"
    );
    // Pages show all but response times.
    let shows = |path: &str, what: &str| {
        let (status, text) = get(&leased, path);
        assert_eq!(status, 200, "{path}: {text}");
        text.contains(NO_TIMES) && text.contains(what)
    };
    assert!(shows("/status/acme/", "web"));
    eventually(|| shows("/status/acme/", "Major outage"));
    assert!(shows("/status/acme/components/_web", "web"));
}

#[test]
fn a_standby_of_postgresql_is_used_once_it_is_promoted() {
    let port = || free_port().unwrap();
    let folder = TempDir::new().unwrap();
    let origin = Origin::hello();
    let (first, second) = (port(), port());
    let mut primary = PostgresServer::start(Some(first));
    let database = primary.database();
    let name = database.rsplit('/').next().unwrap();
    let name = name.split('?').next().unwrap().to_owned();
    let standby = primary.start_standby(second);
    let url = format!(
        "postgres://plimsoll@127.0.0.1:{first},127.0.0.1:{second}/{name}?sslmode=disable&target_session_attrs=read-write"
    );
    let config = folder.path().join("monitor.toml");
    let text = format!(
        "store = \"{url}\"\n[[monitor]]\nname = \"web\"\nhttp = \"{}\"\ninterval = \"100ms\"\n",
        origin.url("/")
    );
    std::fs::write(&config, text).unwrap();
    let plan = load(&config, &|_| None).unwrap();
    let leased = action::LeasedMonitor::start(plan, Arc::new(|_: &str| {})).unwrap();
    eventually(|| leased.leads());
    let results = |server: &PostgresServer| -> u64 {
        let counted = server.sql(&name, "SELECT count(*) FROM results");
        counted.parse().unwrap()
    };
    eventually(|| results(&primary) > 5);
    primary.wait_for_standby(&standby);
    primary.stop();
    // Neither can be written to.
    eventually(|| !leased.leads());
    let checks = origin.requests();
    let before = results(&standby);
    standby.promote();
    eventually(|| leased.leads());
    eventually(|| origin.requests() > checks + 5);
    eventually(|| results(&standby) > before + 5);
    let (status, text) = get(&leased, "/api/v1/incidents");
    assert_eq!((status, text.contains("\"id\"")), (200, false), "{text}");
    assert_eq!(standby.sql("postgres", "SELECT pg_is_in_recovery()"), "f");
}
