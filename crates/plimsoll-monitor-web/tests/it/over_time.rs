//! Monitors that are stopped, started, renamed and removed while something is open: what receivers and pages see of it.

use std::path::Path;

use http::{Method, StatusCode};
use plimsoll_monitor::config::load;
use plimsoll_testkit::{MailReceiver, Origin, eventually, refused_address};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::client::{Client, Process, Running};
use crate::notices::{Receiver, WRITER};
use crate::stores::servers;

const TOKEN: &str = r#"
        [[token]]
        name = "ann"
        sha256 = "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b"
        scopes = ["write"]
"#;

const DEFAULTS: &str = "store = \"state.db\"\n[defaults]\ninterval = \"100ms\"\nconfirm = 1\nrecover = 1\nhold = \"0s\"\nflap = false\n";

fn hook(receiver: &Receiver) -> String {
    format!(
        "[[notify]]\nname = \"hook\"\nwebhook = {{ url = \"http://{}/\" }}\n",
        receiver.address
    )
}

fn file(monitors: &str, receiver: &Receiver) -> String {
    format!("{DEFAULTS}{monitors}{TOKEN}{}", hook(receiver))
}

fn start(folder: &Path, text: &str) -> Running {
    Running::new(folder, "monitor.toml", text)
}

#[track_caller]
fn wait_for(running: &Client, key: &str, health: &str) {
    let path = format!("/api/v1/monitors/{key}");
    eventually(|| running.json_as(WRITER, &path)["health"] == health);
}

/// The kind, the name and the beginning of each notice.
fn received(receiver: &Receiver) -> Vec<(String, String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let bodies = receiver.bodies();
    let notice = |body: &Value| {
        (
            text(&body["kind"]),
            text(&body["incident"]),
            text(&body["since"]),
        )
    };
    bodies.iter().map(notice).collect()
}

#[test]
fn an_incident_has_one_name_and_one_beginning_over_restarts() {
    let folder = TempDir::new().unwrap();
    let receiver = Receiver::new(&[]);
    let address = refused_address();
    let text = file(
        &format!("[[monitor]]\nname = \"m0\"\nhttp = \"http://{address}/\"\n"),
        &receiver,
    );
    let running = start(folder.path(), &text);
    eventually(|| received(&receiver).len() == 1);
    let incidents = running.json_as(WRITER, "/api/v1/incidents");
    let incident = incidents["incidents"][0].clone();
    drop(running);
    for _ in 0..2 {
        // Nothing is sent again, though the monitor is still down.
        let running = start(folder.path(), &text);
        wait_for(&running, "_m0", "down");
        drop(running);
    }
    assert_eq!(received(&receiver).len(), 1);
    let running = start(folder.path(), &text);
    let _origin = Origin::builder().port(address.port()).start();
    eventually(|| received(&receiver).len() == 2);
    let found = received(&receiver);
    assert_eq!(
        (found[0].0.as_str(), found[1].0.as_str()),
        ("opened", "resolved"),
        "{found:?}"
    );
    assert_eq!((&found[0].1, &found[0].2), (&found[1].1, &found[1].2));
    // The name has the number in the store, and the beginning is that of the outage.
    assert!(
        found[0].1.ends_with(&format!("/{}", incident["id"])),
        "{found:?}"
    );
    assert_eq!(Value::from(found[0].2.as_str()), incident["opened_at"]);
    drop(running);
}

#[test]
fn an_incident_keeps_its_name_when_its_monitor_gets_another() {
    let folder = TempDir::new().unwrap();
    let receiver = Receiver::new(&[]);
    let address = refused_address();
    let running = start(folder.path(), &file("", &receiver));
    let call = |method: Method, path: &str, body: &Value| {
        let fields = [WRITER, ("content-type", "application/json")];
        let (status, text) = running.call(method, path, &fields, &body.to_string());
        assert!(status.is_success(), "{status} {text}");
        serde_json::from_str::<Value>(&text).unwrap_or_default()
    };
    let mut definition = json!({ "name": "old", "http": format!("http://{address}/"), "confirm": 1, "recover": 1, "hold": "0s" });
    call(Method::POST, "/api/v1/monitors", &definition);
    eventually(|| received(&receiver).len() == 1);
    definition["name"] = "new".into();
    call(Method::PUT, "/api/v1/monitors/_old", &definition);
    let _origin = Origin::builder().port(address.port()).start();
    eventually(|| received(&receiver).len() == 2);
    let found = received(&receiver);
    assert_eq!(found[1].0, "resolved");
    assert_eq!((&found[0].1, &found[0].2), (&found[1].1, &found[1].2));
    assert_eq!(receiver.titles()[1], "new is up again");
}

/// What the public sees of the only incident of the page `acme`: its ids, and its title.
fn public_identity(running: &Client) -> (Vec<String>, String) {
    const URL: &str = "http://status.acme.example/incidents/";

    let below = |path: &str| {
        let (status, text) = running.get(&format!("/status/acme/{path}"));
        assert_eq!(status, StatusCode::OK, "{path}: {text}");
        text
    };
    let element = |text: &str, name: &str| {
        let (open, close) = (format!("<{name}"), format!("</{name}>"));
        let (_, rest) = text.split_once(&open).unwrap();
        let (_, rest) = rest.split_once('>').unwrap();
        rest.split_once(&close).unwrap().0.to_owned()
    };
    let (atom, rss) = (below("feed.atom"), below("feed.rss"));
    assert_eq!(atom.matches("<entry>").count(), 1, "{atom}");
    let (_, entry) = atom.split_once("<entry>").unwrap();
    let (_, item) = rss.split_once("<item>").unwrap();
    let (atom_id, guid) = (element(entry, "id"), element(item, "guid"));
    let page = atom_id.strip_prefix(URL).unwrap().to_owned();
    assert_eq!(guid, atom_id);
    let title = element(entry, "title");
    let own = below(&format!("incidents/{page}"));
    // On pages an outage that is over was one.
    let was = title.replace(" is down", " was down");
    assert!(own.contains(&title) || own.contains(&was), "{own}");
    let json: Value = serde_json::from_str(&below("api/v2/incidents.json")).unwrap();
    let incident = &json["incidents"][0];
    assert_eq!(incident["shortlink"], *atom_id);
    let updates = incident["incident_updates"].as_array().unwrap();
    let oldest = updates.last().unwrap();
    let ids = [&incident["id"], &oldest["id"], &oldest["incident_id"]];
    let mut ids: Vec<_> = ids
        .iter()
        .map(|id| id.as_str().unwrap().to_owned())
        .collect();
    ids.extend([page, element(entry, "published")]);
    (ids, title)
}

/// What the only incident is to programs: its number and its beginning.
fn api_identity(running: &Client) -> (Value, Value) {
    let incidents = running.json_as(WRITER, "/api/v1/incidents");
    let [incident] = incidents["incidents"].as_array().unwrap().as_slice() else {
        panic!("{incidents}");
    };
    (incident["id"].clone(), incident["opened_at"].clone())
}

/// How one process comes after another.
#[derive(Clone, Copy)]
enum Succession {
    /// The next one starts once the last one has ended.
    Restart,
    /// The last one drains, and gives its store to the next one meanwhile.
    TakeOver,
    /// The next one stands by until the last one ends its lease.
    Lease,
}

impl Succession {
    /// - `standing_by`: receives each process while another one runs the checks.
    fn next(self, last: Process, config: &Path, standing_by: impl Fn(&Client)) -> Process {
        match self {
            Self::Restart => {
                drop(last);
                Process::start(config)
            }
            Self::TakeOver => {
                // The workers of one that drains have its routes already.
                let draining = Client::new(last.leased.router());
                last.leased.leave();
                let next = Process::start(config);
                standing_by(&draining);
                drop(last);
                next
            }
            Self::Lease => {
                let next = Process::start(config);
                let has_it = || next.get("/status/acme/feed.atom").1.contains("<entry>");
                eventually(has_it);
                assert!(!next.leased.leads());
                standing_by(&next);
                drop(last);
                eventually(|| next.leased.leads());
                next
            }
        }
    }
}

#[test]
fn an_incident_has_one_id_for_all_readers_over_restarts_take_overs_and_names() {
    use Succession::{Restart, TakeOver};

    has_one_id_for_all_readers("store = \"state.db\"\n", &[Restart, TakeOver, Restart]);
}

#[test]
fn an_incident_has_one_id_for_all_readers_when_the_lease_changes_hands() {
    has_one_id_for_all_readers(&servers(), &[Succession::Lease, Succession::Lease]);
}

fn has_one_id_for_all_readers(store: &str, successions: &[Succession]) {
    let folder = TempDir::new().unwrap();
    let (receiver, mailbox) = (Receiver::new(&[]), MailReceiver::start());
    let address = refused_address();
    let email = format!(
        "email = {{ host = \"127.0.0.1\", port = {}, security = \"none\", from = \"status@acme.example\"",
        mailbox.address.port()
    );
    let text = file("", &receiver).replace("store = \"state.db\"\n", store)
        + &format!("[[notify]]\nname = \"mail\"\n{email}, to = \"ann@example.org\" }}\n")
        + &format!("[subscriptions]\nallow_private = true\n{email} }}\n")
        + "[[page]]\nslug = \"acme\"\ntitle = \"Acme\"\nurl = \"http://status.acme.example\"\n";
    let config = folder.path().join("monitor.toml");
    std::fs::write(&config, text).unwrap();
    let mut running = Process::start(&config);
    eventually(|| running.leased.leads());
    let call = |running: &Client, method: Method, path: &str, body: &Value| {
        let fields = [WRITER, ("content-type", "application/json")];
        let (status, text) = running.call(method, path, &fields, &body.to_string());
        assert!(status.is_success(), "{status} {text}");
    };
    // A reader subscribes.
    let form = [("origin", "http://a"), ("host", "a")];
    let subscription = "means=email&address=bob@example.org";
    running.call(Method::POST, "/status/acme/subscribe", &form, subscription);
    eventually(|| mailbox.mails().len() == 1);
    let link = mailbox.mails()[0].replace("=\n", "");
    let (_, link) = link.split_once("/subscribe/confirm?link").unwrap();
    let token: String = link
        .trim_start_matches("=3D")
        .trim_start_matches('=')
        .chars()
        .take_while(|c| c.is_ascii_alphanumeric() || "._-".contains(*c))
        .collect();
    let path = format!("/status/acme/subscribe/confirm?link={token}");
    let (status, text_of_page) = running.call(Method::POST, &path, &[], "");
    assert_eq!(status, StatusCode::OK, "{text_of_page}");

    let mut definition = json!({ "name": "old", "http": format!("http://{address}/"), "confirm": 1, "recover": 1, "hold": "0s" });
    call(&running, Method::POST, "/api/v1/monitors", &definition);
    eventually(|| received(&receiver).len() == 1 && mailbox.mails().len() == 3);
    let (first, number) = (public_identity(&running), api_identity(&running));
    let feed = running.get("/status/acme/feed.atom");
    let mut title = first.1.clone();
    for (position, succession) in successions.iter().enumerate() {
        running = succession.next(running, &config, |other| {
            assert_eq!(public_identity(other), (first.0.clone(), title.clone()));
        });
        let key = if position == 0 { "_old" } else { "_new" };
        wait_for(&running, key, "down");
        assert_eq!(public_identity(&running), (first.0.clone(), title.clone()));
        assert_eq!(api_identity(&running), number);
        if position == 0 {
            assert_eq!(running.get("/status/acme/feed.atom"), feed);
            definition["name"] = "new".into();
            call(&running, Method::PUT, "/api/v1/monitors/_old", &definition);
            eventually(|| public_identity(&running).1 != first.1);
            title = public_identity(&running).1;
        }
    }
    let _origin = Origin::builder().port(address.port()).start();
    eventually(|| received(&receiver).len() == 2 && mailbox.mails().len() == 5);
    wait_for(&running, "_new", "up");
    assert_eq!(public_identity(&running).0, first.0);
    assert_eq!(api_identity(&running), number);
    let found = received(&receiver);
    assert_eq!((&found[0].1, &found[0].2), (&found[1].1, &found[1].2));
    assert!(found[0].1.ends_with(&format!("/{}", number.0)), "{found:?}");
    // The mails to each of them are a thread of their own.
    let field = |mail: &str, name: &str| {
        let mut fields = mail.lines();
        let value = fields.find_map(|field| field.strip_prefix(&format!("{name}: ")));
        value.map(str::to_owned)
    };
    let mut roots = Vec::new();
    for to in ["ann@example.org", "bob@example.org"] {
        let mails = mailbox.mails();
        let mails = mails
            .iter()
            .filter(|mail| !mail.contains("/subscribe/confirm"));
        let mails: Vec<_> = mails
            .filter(|mail| field(mail, "To").as_deref() == Some(to))
            .collect();
        let [opened, resolved] = mails.as_slice() else {
            panic!("{to}: {mails:#?}");
        };
        let root = field(opened, "Message-ID");
        assert!(
            root.is_some() && field(opened, "References").is_none(),
            "{opened}"
        );
        assert_eq!(field(resolved, "References"), root, "{resolved}");
        assert_eq!(field(resolved, "In-Reply-To"), root, "{resolved}");
        assert_ne!(field(resolved, "Message-ID"), root);
        roots.push(root);
    }
    assert_ne!(roots[0], roots[1]);
}

#[test]
fn an_incident_of_a_monitor_that_is_removed_ends_with_a_notice() {
    let gone = "was removed while it was down";
    let folder = TempDir::new().unwrap();
    let receiver = Receiver::new(&[]);
    let address = refused_address();
    let monitor =
        |name: &str| format!("[[monitor]]\nname = \"{name}\"\nhttp = \"http://{address}/\"\n");
    let all = file(
        &(monitor("kept") + &monitor("a") + &monitor("b")),
        &receiver,
    );
    let without = |names: &[&str]| {
        let monitors: String = names.iter().map(|name| monitor(name)).collect();
        file(&monitors, &receiver)
    };
    let running = start(folder.path(), &all);
    let has = |title: &str| receiver.titles().iter().any(|known| known == title);
    // Four at once would be one notice.
    eventually(|| {
        ["kept", "a", "b"]
            .iter()
            .all(|name| has(&format!("{name} is down")))
    });
    let definition = json!({ "name": "c", "http": format!("http://{address}/"), "confirm": 1 });
    let fields = [WRITER, ("content-type", "application/json")];
    let made = running.call(
        Method::POST,
        "/api/v1/monitors",
        &fields,
        &definition.to_string(),
    );
    assert_eq!(made.0, StatusCode::CREATED, "{}", made.1);
    eventually(|| has("c is down"));
    // By the API.
    let removed = running.call(Method::DELETE, "/api/v1/monitors/_c", &[WRITER], "");
    assert!(removed.0.is_success(), "{}", removed.1);
    eventually(|| has(&format!("c {gone}")));
    // By the file, which is loaded again.
    let path = folder.path().join("monitor.toml");
    std::fs::write(&path, without(&["kept", "b"])).unwrap();
    let plan = load(&path, &|_| None).unwrap();
    running
        .block_on(running.monitor.handle().reload(plan))
        .unwrap();
    eventually(|| has(&format!("a {gone}")));
    drop(running);
    // By the file, while nothing ran.
    let running = start(folder.path(), &without(&["kept"]));
    eventually(|| has(&format!("b {gone}")));
    let open = running.json_as(WRITER, "/api/v1/incidents?state=open");
    assert_eq!(open["incidents"].as_array().unwrap().len(), 1, "{open}");
    // Each end is of the incident that began.
    let found = received(&receiver);
    for (kind, incident, since) in &found {
        if kind == "resolved" {
            let is_beginning = |other: &&(String, String, String)| {
                (other.0.as_str(), &other.1, &other.2) == ("opened", incident, since)
            };
            assert!(found.iter().any(|other| is_beginning(&other)), "{incident}");
        }
    }
    // A monitor that gets the name again begins anew.
    std::fs::write(&path, without(&["kept", "a"])).unwrap();
    let plan = load(&path, &|_| None).unwrap();
    running
        .block_on(running.monitor.handle().reload(plan))
        .unwrap();
    eventually(|| {
        receiver
            .titles()
            .iter()
            .filter(|title| *title == "a is down")
            .count()
            == 2
    });
}

#[test]
fn an_incident_that_an_older_version_opened_ends_under_the_name_that_it_gave_it() {
    let folder = TempDir::new().unwrap();
    let receiver = Receiver::new(&[]);
    let address = refused_address();
    let text = file(
        &format!("[[monitor]]\nname = \"m0\"\nhttp = \"http://{address}/\"\n"),
        &receiver,
    );
    let running = start(folder.path(), &text);
    eventually(|| received(&receiver).len() == 1);
    eventually(|| {
        let (_, text) = running.call(Method::GET, "/api/v1/notices", &[WRITER], "");
        text.contains("\"sent\"")
    });
    drop(running);
    // As the migration leaves it: a name of its own kind, and nothing that is remembered.
    let connection = rusqlite::Connection::open(folder.path().join("state.db")).unwrap();
    connection
        .execute_batch(
            "UPDATE incidents SET key = '_m0/1795630286559';
             UPDATE outbox SET dedup = '_m0/1795630286559/opened';
             DELETE FROM memory; DELETE FROM alive;",
        )
        .unwrap();
    drop(connection);
    let _running = start(folder.path(), &text);
    let _origin = Origin::builder().port(address.port()).start();
    eventually(|| received(&receiver).len() == 2);
    assert_eq!(received(&receiver)[1].0, "resolved");
    assert_eq!(received(&receiver)[1].1, "_m0/1795630286559");
}

/// Moves what a store has by two days into the past.
fn age(folder: &Path) {
    let connection = rusqlite::Connection::open(folder.join("state.db")).unwrap();
    connection
        .execute_batch(
            "UPDATE health SET at = at - 172800000, until = until - 172800000;
             UPDATE alive SET at = at - 172800000;",
        )
        .unwrap();
}

#[test]
fn time_in_which_nothing_ran_is_neither_downtime_nor_probed() {
    let folder = TempDir::new().unwrap();
    let receiver = Receiver::new(&[]);
    let origin = Origin::builder().start();
    let text = file(
        &format!(
            "[[monitor]]\nname = \"down\"\nhttp = \"http://{}/\"\n[[monitor]]\nname = \"up\"\nhttp = \"http://{}/\"\n",
            refused_address(),
            origin.address(),
        ),
        &receiver,
    );
    let running = start(folder.path(), &text);
    wait_for(&running, "_down", "down");
    wait_for(&running, "_up", "up");
    drop(running);
    age(folder.path());
    let running = start(folder.path(), &text);
    wait_for(&running, "_down", "down");
    wait_for(&running, "_up", "up");
    for key in ["_down", "_up"] {
        let path = format!("/api/v1/monitors/{key}/uptime?window=720h");
        let seconds = |name: &str| {
            let uptime = running.json_as(WRITER, &path);
            uptime[name].as_f64().unwrap_or_else(|| panic!("{uptime}"))
        };
        // Minutes at most, and not two days.
        assert!(seconds("probed_s") < 600.0, "{key}");
        assert!(seconds("down_s") < 600.0, "{key}");
        assert!(seconds("coverage") < 0.01, "{key}");
    }
}

#[test]
fn a_heartbeat_that_came_before_a_restart_is_missed_after_it() {
    let folder = TempDir::new().unwrap();
    let receiver = Receiver::new(&[]);
    let text = file(
        "[[monitor]]\nname = \"job\"\nheartbeat = { every = \"2s\", grace = \"500ms\", token = \"0123456789abcdef\" }\n",
        &receiver,
    );
    let running = start(folder.path(), &text);
    assert_eq!(running.get("/ping/0123456789abcdef").0, StatusCode::OK);
    wait_for(&running, "_job", "up");
    let last = running.json_as(WRITER, "/api/v1/monitors/_job")["last"]["at"].clone();
    drop(running);
    let running = start(folder.path(), &text);
    wait_for(&running, "_job", "down");
    let reason = format!("no heartbeat since {}", last.as_str().unwrap());
    let shown = running.json_as(WRITER, "/api/v1/monitors/_job");
    assert!(shown.to_string().contains(&reason), "{reason} {shown}");
}

#[test]
fn an_outage_across_the_end_of_a_month_is_in_the_history_of_both() {
    let folder = TempDir::new().unwrap();
    let text = "store = \"state.db\"\n[[monitor]]\nname = \"web\"\nmanual = true\n[[page]]\nslug = \"acme\"\ntitle = \"Acme\"\n";
    drop(start(folder.path(), text));
    let connection = rusqlite::Connection::open(folder.path().join("state.db")).unwrap();
    // From 23:00 of 31 January 2025 until 02:00 of the next day.
    connection
        .execute_batch(
            "INSERT INTO incidents (org, monitor, opened, resolved, announced)
             VALUES (1, 1, 1738364400000, 1738375200000, 1)",
        )
        .unwrap();
    drop(connection);
    let running = start(folder.path(), text);
    let lists_it = |month: &str| {
        let (status, page) = running.get(&format!("/status/acme/history/{month}"));
        assert_eq!(status, StatusCode::OK);
        page.contains("/incidents/m1")
    };
    assert!(!lists_it("2024-12"));
    assert!(lists_it("2025-01"));
    assert!(lists_it("2025-02"));
    assert!(!lists_it("2025-03"));
}
