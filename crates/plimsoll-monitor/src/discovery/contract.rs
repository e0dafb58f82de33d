//! The contract that every source is held to, with a monitor that runs on it: appear, vanish, flap, away, back, over a restart.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use plimsoll_testkit::{eventually, refused_address};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::config;
use crate::engine::Monitor;
use crate::store::{Incident, IncidentFilter};

/// A source whose list a test decides.
trait Fixture {
    /// The keys of its `[[discover]]` besides the name, with a short `refresh`.
    fn table(&self) -> String;

    /// Lists these from now on.
    fn list(&self, definitions: &[Value]);

    /// Cannot be read from now on, until there is a list again.
    fn take_away(&self);
}

/// A monitor on a store in a folder.
struct Running {
    monitor: Monitor,
    notices: Arc<Mutex<Vec<String>>>,
}

impl Running {
    fn start(folder: &TempDir, source: &dyn Fixture) -> Self {
        let path = folder.path().join("monitor.toml");
        let text = format!(
            "store = \"m.db\"\n[defaults]\ninterval = \"100ms\"\nconfirm = 1\n[[discover]]\nname = \"team\"\n{}\n",
            source.table()
        );
        fs::write(&path, text).unwrap();
        let plan = config::load(&path, &|_| None).unwrap();
        let store = plan.open_store().unwrap();
        let notices = Arc::<Mutex<Vec<String>>>::default();
        let seen = Arc::clone(&notices);
        let notice = Arc::new(move |notice: &str| {
            let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
            seen.push(notice.to_owned());
        });
        let monitor = Monitor::start(plan, store, notice, &[]).unwrap();
        Self { monitor, notices }
    }

    fn keys(&self) -> Vec<String> {
        let views = self.monitor.handle().board.views();
        views
            .into_iter()
            .map(|view| view.plan.key.clone())
            .collect()
    }

    fn incidents(&self, open: Option<bool>) -> Vec<Incident> {
        let handle = self.monitor.handle();
        let filter = IncidentFilter {
            monitor: None,
            open,
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let found = runtime.block_on(handle.store.incidents(handle.org, filter, None, 100));
        found.unwrap()
    }

    fn source(&self) -> crate::DiscoveryView {
        self.monitor.handle().board.discovery()[0].clone()
    }

    fn has_noticed(&self, part: &str) -> bool {
        let seen = self.notices.lock().unwrap_or_else(PoisonError::into_inner);
        seen.iter().any(|notice| notice.contains(part))
    }
}

/// A monitor whose target refuses connections.
fn down(name: &str) -> Value {
    json!({ "name": name, "tcp": refused_address().to_string() })
}

fn manual(name: &str) -> Value {
    json!({ "name": name, "manual": true })
}

fn holds(source: &dyn Fixture) {
    let folder = TempDir::new().unwrap();
    source.list(&[down("a")]);
    let running = Running::start(&folder, source);
    eventually(|| running.keys() == ["_a"]);
    eventually(|| running.incidents(Some(true)).len() == 1);
    let opened = running.incidents(Some(true))[0].clone();

    // One more changes nothing for those that stay.
    source.list(&[down("a"), manual("b")]);
    eventually(|| running.keys() == ["_a", "_b"]);
    assert_eq!(running.incidents(None).len(), 1);
    assert!(running.source().error.is_none() && running.source().listed.is_some());

    // Away: what was listed last stays, and its age is known.
    source.take_away();
    eventually(|| running.source().error.is_some());
    assert_eq!(running.keys(), ["_a", "_b"]);
    assert_eq!(*running.source().keys, ["_a".to_owned(), "_b".to_owned()]);
    assert!(running.source().listed.is_some());
    assert!(running.has_noticed("the 2 monitors that it listed last stay"));

    // Also over a restart.
    drop(running);
    let running = Running::start(&folder, source);
    assert_eq!(running.keys(), ["_a", "_b"]);
    eventually(|| running.source().error.is_some());
    assert_eq!(running.keys(), ["_a", "_b"]);
    assert!(running.source().listed.is_some());
    let still = running.incidents(Some(true));
    assert_eq!(still.len(), 1);
    assert_eq!((still[0].id, still[0].opened), (opened.id, opened.opened));

    // Back without one: its incident ends with it.
    source.list(&[manual("b")]);
    eventually(|| running.keys() == ["_b"]);
    eventually(|| running.incidents(Some(true)).is_empty());
    eventually(|| running.source().error.is_none());
    assert!(running.has_noticed("can be read again"));

    // One that comes again begins anew.
    source.list(&[manual("b"), down("a")]);
    eventually(|| running.keys() == ["_a", "_b"]);
    eventually(|| running.incidents(Some(true)).len() == 1);
    assert_ne!(running.incidents(Some(true))[0].id, opened.id);

    // A part that is wrong is left out, and reported once.
    source.list(&[
        manual("b"),
        json!({ "name": "c", "manual": true, "intervall": "1s" }),
        manual("b"),
    ]);
    eventually(|| running.keys() == ["_b"]);
    eventually(|| running.source().problems.len() >= 2);
    assert!(
        running.has_noticed("`c` is left out"),
        "{:?}",
        running.notices
    );

    // An empty list is a list.
    source.list(&[]);
    eventually(|| running.keys().is_empty());
    assert!(running.source().error.is_none());
}

/// A server with a list.
struct Server {
    address: std::net::SocketAddr,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    /// What it answers by a part of the path; nothing while it is away.
    bodies: Option<Vec<(&'static str, String)>>,
    /// One more with every list.
    version: u64,
    /// Answers without a list, because the client has it.
    same: u64,
    heads: Vec<String>,
}

impl Server {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::<Mutex<State>>::default();
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let lines = BufReader::new(&stream).lines().map_while(Result::ok);
                let head: Vec<_> = lines.take_while(|line| !line.is_empty()).collect();
                let mut state = shared.lock().unwrap_or_else(PoisonError::into_inner);
                let tag = format!("\"{}\"", state.version);
                let known = format!("if-none-match: {tag}");
                let request = head.first().cloned().unwrap_or_default();
                let bodies = state.bodies.clone();
                let body = bodies
                    .iter()
                    .flatten()
                    .find(|(part, _)| request.contains(part));
                let answer = match body {
                    None => "HTTP/1.1 503 Away\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
                        .to_owned(),
                    Some(_) if head.contains(&known) => {
                        state.same += 1;
                        "HTTP/1.1 304 Same\r\nconnection: close\r\n\r\n".to_owned()
                    }
                    Some((_, body)) => format!(
                        "HTTP/1.1 200 OK\r\netag: {tag}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                        body.len()
                    ),
                };
                state.heads.push(head.join("\n"));
                drop(state);
                // A client that has gone needs no answer.
                (&stream).write_all(answer.as_bytes()).ok();
            }
        });
        Self { address, state }
    }

    fn answer(&self, body: String) {
        self.answer_by_path(&[("/", body)]);
    }

    fn answer_by_path(&self, bodies: &[(&'static str, String)]) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.version += 1;
        state.bodies = Some(bodies.to_vec());
    }
}

impl Fixture for Server {
    fn table(&self) -> String {
        format!(
            "http = {{ url = \"http://{}/list?of=all\", bearer = \"s3cret\", headers = {{ X-Team = \"web\" }} }}\nrefresh = \"100ms\"",
            self.address
        )
    }

    fn list(&self, definitions: &[Value]) {
        self.answer(json!({ "monitors": definitions }).to_string());
    }

    fn take_away(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.bodies = None;
    }
}

#[test]
fn a_list_by_http_holds_to_the_contract() {
    let server = Server::start();
    holds(&server);
    let folder = TempDir::new().unwrap();
    server.list(&[manual("a")]);
    let running = Running::start(&folder, &server);
    let same = || {
        server
            .state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .same
    };
    let before = same();
    eventually(|| same() > before + 1);
    assert_eq!(
        running.keys(),
        ["_a"],
        "a list that is known is not sent again"
    );
    let state = server.state.lock().unwrap_or_else(PoisonError::into_inner);
    assert!(state.heads.iter().all(|head| {
        head.starts_with("GET /list?of=all HTTP/1.1")
            && head.contains("authorization: Bearer s3cret")
            && head.contains("x-team: web")
    }));
}

/// A server that answers as a container engine.
struct Engine(Server);

/// Labels or annotations of a definition: `prefix` and the key.
fn labels(prefix: &str, enabled: &str, definition: &Value) -> Value {
    let mut labels = serde_json::Map::new();
    labels.insert(enabled.to_owned(), "true".into());
    for (key, value) in definition.as_object().unwrap() {
        let text = value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned);
        labels.insert(format!("{prefix}{key}"), text.into());
    }
    labels.into()
}

impl Fixture for Engine {
    fn table(&self) -> String {
        format!(
            "docker = \"http://{}\"\nrefresh = \"100ms\"",
            self.0.address
        )
    }

    fn list(&self, definitions: &[Value]) {
        let containers = definitions.iter().enumerate().map(|(number, definition)| {
            json!({
                "Id": format!("id{number}"),
                "Names": [format!("/container-{number}")],
                "Labels": labels("plimsoll.monitor.", "plimsoll.monitor", definition),
                "State": "exited",
            })
        });
        self.0
            .answer(json!(containers.collect::<Vec<_>>()).to_string());
    }

    fn take_away(&self) {
        self.0.take_away();
    }
}

#[test]
fn containers_hold_to_the_contract() {
    let engine = Engine(Server::start());
    holds(&engine);
    let state = engine
        .0
        .state
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    assert!(state.heads.iter().all(|head| {
        head.starts_with(
            "GET /containers/json?all=1&filters=%7B%22label%22%3A%5B%22plimsoll%2Emonitor%22%5D%7D",
        )
    }));
}

#[test]
fn labels_of_a_container_may_be_a_url_and_name_its_address() {
    let server = Server::start();
    server.answer(
        json!([
            {"Id": "1", "Names": ["/web"], "Labels": {
                "plimsoll.monitor": "http://{address}:8080/",
                "plimsoll.monitor.interval": "1h",
                "com.docker.compose.project": "shop",
             }, "NetworkSettings": {"Networks": {"a": {"IPAddress": ""}, "b": {"IPAddress": "127.0.0.9"}}}},
            {"Id": "2", "Names": ["/off"], "Labels": {"plimsoll.monitor": "false"}},
            {"Id": "3", "Names": ["/odd"], "Labels": {"plimsoll.monitor": "yes"}},
        ])
        .to_string(),
    );
    let folder = TempDir::new().unwrap();
    let running = Running::start(&folder, &Engine(server));
    eventually(|| running.keys() == ["shop_web"]);
    let view = running.monitor.handle().board.view("shop_web").unwrap();
    assert_eq!(
        view.plan.what.target().as_deref(),
        Some("http://127.0.0.9:8080/")
    );
    eventually(|| running.has_noticed("the container odd: the label plimsoll.monitor is `yes`"));
}

/// A server that answers as the API of Kubernetes: the definitions are Services.
struct Cluster(Server);

impl Fixture for Cluster {
    fn table(&self) -> String {
        format!(
            "kubernetes = {{ api = \"http://{}\" }}\nrefresh = \"100ms\"",
            self.0.address
        )
    }

    fn list(&self, definitions: &[Value]) {
        let services = definitions.iter().enumerate().map(|(number, definition)| {
            json!({ "metadata": {
                "name": format!("service-{number}"),
                "annotations": labels("monitor.plimsoll.dev/", "plimsoll.dev/monitor", definition),
            }})
        });
        let services: Vec<_> = services.collect();
        let list = |items: Vec<Value>| json!({ "metadata": {}, "items": items }).to_string();
        self.0.answer_by_path(&[
            ("/ingresses?", list(Vec::new())),
            ("/services?", list(services)),
        ]);
    }

    fn take_away(&self) {
        self.0.take_away();
    }
}

#[test]
fn services_of_kubernetes_hold_to_the_contract() {
    holds(&Cluster(Server::start()));
}

#[test]
fn hosts_of_an_ingress_and_ports_of_a_service_are_monitored() {
    let server = Server::start();
    let ingresses = json!({ "metadata": {}, "items": [
        {"metadata": {"name": "shop", "namespace": "web", "annotations": {
            "plimsoll.dev/monitor": "true", "monitor.plimsoll.dev/interval": "1h"}},
         "spec": {"rules": [{"host": "a.example"}, {"host": "b.example"}, {"host": "*.c.example"}], "tls": [{"hosts": ["b.example"]}]}},
        {"metadata": {"name": "own", "namespace": "web", "annotations": {
            "plimsoll.dev/monitor": "https://own.example/health"}}, "spec": {}},
        {"metadata": {"name": "other", "namespace": "web"}, "spec": {"rules": [{"host": "d.example"}]}},
    ]});
    let services = json!({ "metadata": {}, "items": [
        {"metadata": {"name": "db", "namespace": "web", "annotations": {"plimsoll.dev/monitor": "true"}}, "spec": {"ports": [{"port": 5432}]}},
    ]});
    server.answer_by_path(&[
        ("/ingresses?", ingresses.to_string()),
        ("/services?", services.to_string()),
    ]);
    let folder = TempDir::new().unwrap();
    let running = Running::start(&folder, &Cluster(server));
    let targets = || -> Vec<_> {
        let views = running.monitor.handle().board.views();
        let target = |view: &crate::engine::View| {
            let target = view.plan.what.target().unwrap_or_default();
            format!("{}/{} {target}", view.plan.group, view.plan.name)
        };
        views.iter().map(target).collect()
    };
    eventually(|| {
        targets()
            == [
                "web/db db.web.svc:5432",
                "web/own https://own.example/health",
                "web/shop a.example http://a.example/",
                "web/shop b.example https://b.example/",
            ]
    });
}

/// A folder of files, one for each monitor.
struct Files {
    folder: TempDir,
}

impl Files {
    fn path(&self) -> PathBuf {
        self.folder.path().join("monitors.d")
    }
}

impl Fixture for Files {
    fn table(&self) -> String {
        format!("folder = {:?}\nrefresh = \"100ms\"", self.path())
    }

    fn list(&self, definitions: &[Value]) {
        let path = self.path();
        fs::create_dir_all(&path).unwrap();
        let mut wanted = Vec::new();
        for (number, definition) in definitions.iter().enumerate() {
            let name = format!("{number}-{}.toml", definition["name"].as_str().unwrap());
            let table: toml::Table = serde_json::from_value(definition.clone()).unwrap();
            let text = crate::discovery::stored_text(&[table]);
            // As editors do it, so that no half of a file is read.
            let new = path.join(format!("{name}.new"));
            fs::write(&new, text).unwrap();
            fs::rename(&new, path.join(&name)).unwrap();
            wanted.push(name);
        }
        for entry in fs::read_dir(&path).unwrap() {
            let entry = entry.unwrap();
            if !wanted.iter().any(|name| entry.file_name() == name.as_str()) {
                fs::remove_file(entry.path()).unwrap();
            }
        }
        fs::write(path.join("notes.txt"), "no monitors").unwrap();
    }

    fn take_away(&self) {
        fs::remove_dir_all(self.path()).unwrap();
    }
}

#[test]
fn a_folder_of_files_holds_to_the_contract() {
    let folder = TempDir::new().unwrap();
    holds(&Files { folder });
}

#[test]
fn a_file_with_an_error_keeps_what_it_had() {
    let files = Files {
        folder: TempDir::new().unwrap(),
    };
    files.list(&[manual("a"), manual("b")]);
    let folder = TempDir::new().unwrap();
    let running = Running::start(&folder, &files);
    eventually(|| running.keys() == ["_a", "_b"]);
    fs::write(files.path().join("0-a.toml"), "[[monitor]\n").unwrap();
    eventually(|| !running.source().problems.is_empty());
    assert!(running.source().problems[0].starts_with("0-a.toml: "));
    assert_eq!(running.keys(), ["_a", "_b"]);
    let text = "[[monitor]]\nname = \"c\"\nmanual = true\n";
    fs::write(files.path().join("0-a.toml"), text).unwrap();
    eventually(|| running.keys() == ["_b", "_c"]);
    assert!(running.source().problems.is_empty());
}

#[test]
fn wrong_sources_are_refused() {
    let problems = |table: &str| {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("monitor.toml");
        fs::write(&path, format!("store = \"memory\"\n{table}")).unwrap();
        match config::load(&path, &|_| None) {
            Err(config::LoadError::Problems { problems, .. }) => problems
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join("\n"),
            other => format!("{other:?}"),
        }
    };
    for (table, expected) in [
        (
            "[[discover]]\nname = \"a\"",
            "nothing says what lists monitors",
        ),
        ("[[discover]]\nfolder = \"a\"", "name"),
        (
            "[[discover]]\nname = \"a\"\nfolder = \"a\"\nhttp = \"http://a/\"",
            "has no place beside another source",
        ),
        (
            "[[discover]]\nname = \"a\"\nfolder = \"a\"\n[[discover]]\nname = \"a\"\nfolder = \"b\"",
            "there is another `a`",
        ),
        (
            "[[discover]]\nname = \"a\"\nhttp = \"ftp://a/\"",
            "begins with",
        ),
        (
            "[[discover]]\nname = \"a\"\nhttp = \"http://a/\"\nrefresh = \"1ms\"",
            "at least 100ms",
        ),
        (
            "[[discover]]\nname = \"a\"\ndocker = \"localhost\"",
            "must be `true`, `unix://",
        ),
        (
            "[[discover]]\nname = \"a\"\nhttp = { url = \"http://a/\", bearer = { env = \"NONE\" } }",
            "no variable `NONE`",
        ),
    ] {
        let found = problems(table);
        assert!(found.contains(expected), "{table}: {found}");
    }
}
