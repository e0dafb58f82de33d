//! Secrets in the store: sealed by a key of the configuration, and never shown.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::Arc;
use std::thread;

use http::{Method, StatusCode};
use plimsoll_monitor::config::{ApiToken, load};
use plimsoll_monitor::engine::StartError;
use plimsoll_testkit::{Origin, eventually};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::client::Running;

const FIRST: &str = "the first key of this test, long enough";
const SECOND: &str = "the second key of this test, also long enough";
const HIDDEN: &str = "a-credential-that-nobody-may-see";

fn configuration(keys: &str) -> String {
    let hash = |token: &str| ApiToken::written(&ApiToken::hash_of(token));
    format!(
        r#"
        store = "state.db"
        {keys}
        [[token]]
        name = "writer"
        sha256 = "{}"
        scopes = ["write"]
        [[token]]
        name = "admin"
        sha256 = "{}"
        scopes = ["admin"]
        "#,
        hash("writer"),
        hash("admin")
    )
}

fn call(running: &Running, method: Method, path: &str, body: &Value) -> (StatusCode, String) {
    let fields = [("authorization", "Bearer writer")];
    running.call(method, path, &fields, &body.to_string())
}

/// Everything that the files of the store have in them.
fn bytes(folder: &Path) -> Vec<u8> {
    let files = std::fs::read_dir(folder).unwrap();
    let stores = files.filter_map(|file| {
        let path = file.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        name.starts_with("state.db")
            .then(|| std::fs::read(path).unwrap())
    });
    stores.flatten().collect()
}

fn holds(folder: &Path, text: &str) -> bool {
    let all = bytes(folder);
    all.windows(text.len())
        .any(|window| window == text.as_bytes())
}

#[test]
fn credentials_are_sealed_in_the_store_and_masked_in_responses() {
    let folder = TempDir::new().unwrap();
    let origin = Origin::hello();
    let keys = format!("[secrets]\nkey = \"{FIRST}\"");
    let running = Running::new(folder.path(), "monitor.toml", &configuration(&keys));
    let definition = json!({
        "name": "web", "interval": "100ms",
        "http": { "url": origin.url("/"), "bearer": HIDDEN, "headers": { "x-api-key": HIDDEN } },
    });
    let (status, made) = call(&running, Method::POST, "/api/v1/monitors", &definition);
    assert_eq!(status, StatusCode::CREATED, "{made}");
    assert!(!made.contains(HIDDEN), "{made}");
    // The probe has it nevertheless.
    let sends = || {
        origin
            .heads()
            .last()
            .is_some_and(|head| head.contains(HIDDEN))
    };
    eventually(sends);
    let path = "/api/v1/monitors/_web";
    let (_, shown) = call(&running, Method::GET, path, &Value::Null);
    assert!(
        !shown.contains(HIDDEN) && shown.contains("********"),
        "{shown}"
    );
    let (_, exported) = call(
        &running,
        Method::GET,
        "/api/v1/monitors/export",
        &Value::Null,
    );
    assert!(!exported.contains(HIDDEN), "{exported}");
    let fields = [("authorization", "Bearer admin")];
    let (_, exported) = running.call(Method::GET, "/api/v1/monitors/export", &fields, "");
    assert!(
        exported.contains(HIDDEN),
        "an administrator moves to another store"
    );

    // The shown definition is sent back with a change.
    let shown: Value = serde_json::from_str(&shown).unwrap();
    let mut changed = shown["definition"].clone();
    changed["interval"] = json!("200ms");
    let (status, text) = call(&running, Method::PUT, path, &changed);
    assert_eq!(status, StatusCode::OK, "{text}");
    let before = origin.requests();
    eventually(|| origin.requests() > before + 1);
    assert!(sends(), "the mask stands for what was there");
    // Not to another host, which would receive a credential that it may not see.
    let other = Origin::hello();
    changed["http"]["url"] = json!(other.url("/"));
    let (status, text) = call(&running, Method::PUT, path, &changed);
    assert_eq!(status, StatusCode::BAD_REQUEST, "{text}");
    assert!(text.contains("given again"), "{text}");
    assert_eq!(other.requests(), 0);
    drop(running);
    assert!(!holds(folder.path(), HIDDEN), "it is sealed");
}

/// Ways to change a definition, as tokens of the scope `write` may.
#[derive(Debug, Clone, Copy)]
enum Way {
    Patch,
    /// The shown definition with the change.
    Put,
    Bulk,
    /// Of an export without credentials, as `plimsoll monitor import --apply` sends it.
    Import,
}

impl Way {
    /// Changes keys of `[http]`.
    fn apply(self, running: &Running, changes: &Value) -> (StatusCode, String) {
        let path = "/api/v1/monitors/_web";
        let merged = |mut definition: Value| {
            for (key, value) in changes.as_object().unwrap() {
                definition["http"][key] = value.clone();
            }
            definition
        };
        let shown = || {
            let (_, text) = call(running, Method::GET, path, &Value::Null);
            serde_json::from_str::<Value>(&text).unwrap()["definition"].clone()
        };
        let bulk = |definition: Value| {
            let body = json!({ "put": [definition] });
            call(running, Method::POST, "/api/v1/monitors/bulk", &body)
        };
        match self {
            Self::Patch => call(running, Method::PATCH, path, &json!({ "http": changes })),
            Self::Put => call(running, Method::PUT, path, &merged(shown())),
            Self::Bulk => bulk(merged(shown())),
            Self::Import => {
                let path = "/api/v1/monitors/export";
                let (_, text) = call(running, Method::GET, path, &Value::Null);
                let exported: toml::Table = text.parse().unwrap();
                let exported = serde_json::to_value(exported).unwrap();
                bulk(merged(exported["monitor"][0].clone()))
            }
        }
    }
}

#[test]
fn credentials_follow_only_their_origin_whichever_way_a_definition_changes() {
    let folder = TempDir::new().unwrap();
    let (origin, other) = (Origin::hello(), Origin::hello());
    let running = Running::new(folder.path(), "monitor.toml", &configuration(""));
    let own = origin.url("/");
    let secure = own.replacen("http://", "https://", 1);
    let foreign = other.url("/");
    let hidden_in_other = foreign.replacen("http://", &format!("{own}@"), 1);
    let masked_in_other = format!("{foreign}?api_key=********");
    let userinfo = format!("http://{}@{}/", origin.address(), other.address());
    let parts = [
        json!({ "url": foreign }),
        json!({ "url": secure }),
        json!({ "url": hidden_in_other.replacen("/@", "@", 1) }),
        json!({ "url": masked_in_other }),
        json!({ "url": userinfo }),
        json!({ "insecure": true }),
        json!({ "name_server": "127.0.0.1:9" }),
        json!({ "url": foreign, "bearer": "new" }),
    ];
    let exported = || {
        let fields = [("authorization", "Bearer admin")];
        let (_, text) = running.call(Method::GET, "/api/v1/monitors/export", &fields, "");
        text
    };
    let credentials = [
        json!({ "bearer": HIDDEN, "headers": { "x-api-key": HIDDEN } }),
        json!({ "headers": { "cookie": HIDDEN } }),
        json!({ "url": format!("{own}?api_key={HIDDEN}") }),
        json!({ "url": own.replacen("http://", &format!("http://u:{HIDDEN}@"), 1) }),
        json!({ "body": format!("{{\"password\": \"{HIDDEN}\"}}"), "method": "POST" }),
    ];
    for with in credentials {
        let mut http = json!({ "url": own });
        for (key, value) in with.as_object().unwrap() {
            http[key] = value.clone();
        }
        let definition = json!({ "name": "web", "interval": "1h", "http": http });
        let path = "/api/v1/monitors/_web";
        call(&running, Method::DELETE, path, &Value::Null);
        let (status, text) = call(&running, Method::POST, "/api/v1/monitors", &definition);
        assert_eq!(status, StatusCode::CREATED, "{text}");
        assert!(!text.contains(HIDDEN), "{text}");
        for way in [Way::Patch, Way::Put, Way::Bulk, Way::Import] {
            for part in &parts {
                // Without its old URL nothing of it is left to be sent.
                if with.get("url").is_some() && part.get("url").is_some() && *part != parts[3] {
                    continue;
                }
                let (status, text) = way.apply(&running, part);
                let case = format!("{way:?} of {part} with {with}: {text}");
                assert_eq!(status, StatusCode::BAD_REQUEST, "{case}");
                assert!(!text.contains(HIDDEN), "{text}");
            }
            // Elsewhere on the same server is fine, and everything is still there.
            let harmless = json!({ "redirects": 3 });
            let (status, text) = way.apply(&running, &harmless);
            assert_eq!(status, StatusCode::OK, "{way:?} with {with}: {text}");
            assert!(exported().contains(HIDDEN), "{way:?} with {with}");
        }
    }
    assert_eq!(other.requests(), 0);
}

#[test]
fn targets_and_reasons_show_no_credentials() {
    let folder = TempDir::new().unwrap();
    let refused = plimsoll_testkit::refused_address();
    let origin = Origin::scripted(plimsoll_testkit::Script::serve(
        format!("HTTP/1.1 302 Found\r\nlocation: ftp://u:{HIDDEN}@x/?token={HIDDEN}\r\ncontent-length: 0\r\n\r\n")
            .leak()
            .as_bytes(),
    ));
    let text = format!(
        "{}\n[[monitor]]\nname = \"one\"\ninterval = \"100ms\"\nhttp = \"http://u:{HIDDEN}@{refused}/?api_key={HIDDEN}&b=1\"\n\
         [[monitor]]\nname = \"two\"\ninterval = \"100ms\"\nhttp = \"{}\"\n",
        configuration(""),
        origin.url("/")
    );
    let running = Running::new(folder.path(), "monitor.toml", &text);
    for key in ["_one", "_two"] {
        let path = format!("/api/v1/monitors/{key}");
        let shown = || call(&running, Method::GET, &path, &Value::Null).1;
        eventually(|| shown().contains("\"health\":\"down\""));
        let (_, results) = call(
            &running,
            Method::GET,
            &format!("{path}/results"),
            &Value::Null,
        );
        for text in [shown(), results] {
            assert!(!text.contains(HIDDEN), "{text}");
        }
    }
    let (_, shown) = call(&running, Method::GET, "/api/v1/monitors/_one", &Value::Null);
    assert!(shown.contains("&b=1"), "{shown}");
}

/// A server whose content is the request, which it also puts into a field, until it is dropped with the test.
fn echo() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut request = Vec::new();
            let mut buffer = [0; 4096];
            while !request.windows(4).any(|end| end == b"\r\n\r\n") {
                match stream.read(&mut buffer) {
                    Ok(read) if read > 0 => request.extend_from_slice(&buffer[..read]),
                    _ => break,
                }
            }
            let field = String::from_utf8_lossy(&request).replace("\r\n", " ");
            let head = format!(
                "HTTP/1.1 200 OK\r\nx-echo: {field}\r\ncontent-length: {}\r\n\r\n",
                request.len()
            );
            stream.write_all(head.as_bytes()).ok();
            stream.write_all(&request).ok();
        }
    });
    address
}

#[test]
fn reasons_show_no_credentials_of_a_target_that_echoes_its_request() {
    let folder = TempDir::new().unwrap();
    let address = echo();
    let text = format!(
        "{}\n[defaults]\nconfirm = 1\n[[notify]]\nname = \"hook\"\nwebhook = {{ url = \"http://127.0.0.1:9/\" }}\n",
        configuration("")
    );
    let running = Running::new(folder.path(), "monitor.toml", &text);
    let login = format!("u:{HIDDEN}5");
    let url = format!("http://{address}/?api_key={HIDDEN}2&b=1");
    let fields = json!({ "x-api-key": format!("{HIDDEN}3"), "cookie": format!("sid={HIDDEN}6") });
    let ways = [
        (
            "one",
            json!({ "url": url, "bearer": format!("{HIDDEN}4"), "headers": fields }),
        ),
        ("two", json!({ "url": url, "basic": login })),
        (
            "three",
            json!({ "url": format!("http://{login}@{address}/") }),
        ),
        (
            "four",
            json!({ "url": format!("http://{address}/"), "headers": { "authorization": "Basic dTphLWNyZWRlbnRpYWwtdGhhdC1ub2JvZHktbWF5LXNlZQ==" } }),
        ),
    ];
    let conditions = [
        json!(["body contains \"nope\""]),
        json!(["header.x-echo contains \"nope\""]),
    ];
    for (name, http) in &ways {
        for (number, expect) in conditions.iter().enumerate() {
            let name = format!("{name}{number}");
            let definition =
                json!({ "name": name, "interval": "1h", "http": http, "expect": expect });
            let (status, text) = call(&running, Method::POST, "/api/v1/monitors", &definition);
            assert_eq!(status, StatusCode::CREATED, "{text}");
            let path = format!("/api/v1/monitors/_{name}");
            let reader = ("authorization", "Bearer writer");
            eventually(|| running.json_as(reader, &path)["health"] == "down");
        }
    }
    let admin = [("authorization", "Bearer admin")];
    let mut seen = running.notices.lock().unwrap().join("\n");
    for path in [
        "monitors",
        "incidents",
        "notices",
        "monitors/_one0",
        "monitors/_one0/results",
    ] {
        let path = format!("/api/v1/{path}");
        let (status, text) = running.call(Method::GET, &path, &admin, "");
        assert_eq!(status, StatusCode::OK, "{path}: {text}");
        seen.push_str(&text);
    }
    assert!(
        seen.contains(": GET /"),
        "the rest of the answer is shown: {seen}"
    );
    assert!(seen.contains("b=1"), "{seen}");
    let encoded = "dTphLWNyZWRlbnRpYWwtdGhhdC1ub2JvZHktbWF5LXNlZ";
    for secret in [HIDDEN, encoded, "a-credential-that"] {
        assert!(!seen.contains(secret), "{seen}");
    }
}

#[test]
fn files_of_the_store_are_of_their_owner_alone() {
    use std::os::unix::fs::PermissionsExt as _;

    use plimsoll_monitor::store::{backup, restore};

    let folder = TempDir::new().unwrap();
    // As an earlier version left it.
    let store = folder.path().join("state.db");
    std::fs::write(&store, "").unwrap();
    std::fs::set_permissions(&store, std::fs::Permissions::from_mode(0o644)).unwrap();
    let running = Running::new(folder.path(), "monitor.toml", &configuration(""));
    let definition = json!({ "name": "web", "interval": "1h", "http": "http://127.0.0.1:1/" });
    call(&running, Method::POST, "/api/v1/monitors", &definition);
    let modes = || {
        let files = std::fs::read_dir(folder.path()).unwrap();
        let modes = files.filter_map(|file| {
            let file = file.unwrap();
            let name = file.file_name().into_string().unwrap();
            let mode = file.metadata().unwrap().permissions().mode() & 0o777;
            (name != "monitor.toml").then_some((name, mode))
        });
        modes.collect::<std::collections::BTreeMap<_, _>>()
    };
    let copy = folder.path().join("copy.db");
    backup(&store, &copy).unwrap();
    let found = modes();
    for name in [
        "state.db",
        "state.db-wal",
        "state.db-shm",
        "state.db.lock",
        "copy.db",
    ] {
        assert_eq!(found.get(name), Some(&0o600), "{name}: {found:?}");
    }
    drop(running);
    std::fs::set_permissions(&copy, std::fs::Permissions::from_mode(0o644)).unwrap();
    restore(&copy, &store, true).unwrap();
    assert_eq!(modes()["state.db"], 0o600);
}

#[test]
fn credentials_in_clear_are_reported() {
    use std::sync::Mutex;

    use plimsoll_monitor_web::action::LeasedMonitor;

    let folder = TempDir::new().unwrap();
    let path = folder.path().join("monitor.toml");
    let reported = |text: &str| {
        std::fs::write(&path, text).unwrap();
        let plan = load(&path, &|_| None).unwrap();
        let all = Arc::<Mutex<Vec<String>>>::default();
        let seen = Arc::clone(&all);
        let report = move |message: &str| seen.lock().unwrap().push(message.to_owned());
        // A server takes it on a worker, which has a runtime.
        let worker = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        worker.block_on(async { drop(LeasedMonitor::start(plan, Arc::new(report)).unwrap()) });
        // The monitor itself may report that its target is down.
        let mut all = std::mem::take(&mut *all.lock().unwrap());
        all.retain(|it| it.contains("credentials"));
        all.join("\n")
    };
    let add = |http: Value| {
        let running = Running::new(folder.path(), "monitor.toml", &configuration(""));
        let definition = json!({ "name": "web", "interval": "1h", "http": http });
        call(
            &running,
            Method::DELETE,
            "/api/v1/monitors/_web",
            &Value::Null,
        );
        let (status, text) = call(&running, Method::POST, "/api/v1/monitors", &definition);
        assert_eq!(status, StatusCode::CREATED, "{text}");
    };
    add(json!("http://127.0.0.1:1/"));
    assert_eq!(reported(&configuration("")), "");
    add(json!("http://127.0.0.1:1/?api_key=secret"));
    let text = reported(&configuration(""));
    assert!(
        text.contains("in clear (monitors: 1, channels: 0)"),
        "{text}"
    );
    let keys = format!("[secrets]\nkey = \"{FIRST}\"");
    assert_eq!(reported(&configuration(&keys)), "");
}

#[test]
fn names_are_one_line() {
    let folder = TempDir::new().unwrap();
    let running = Running::new(folder.path(), "monitor.toml", &configuration(""));
    for (name, group) in [("a\r\nb", "g"), ("a", "g\nh"), ("a\u{1b}[2J", "g")] {
        let definition = json!({ "name": name, "group": group, "manual": true });
        let (status, text) = call(&running, Method::POST, "/api/v1/monitors", &definition);
        assert_eq!(status, StatusCode::BAD_REQUEST, "{text}");
        assert!(text.contains("must be one line"), "{text}");
    }
}

#[test]
fn another_key_takes_over_and_a_missing_one_is_reported() {
    let folder = TempDir::new().unwrap();
    let definition = json!({ "name": "web", "interval": "1h", "http": { "url": "http://127.0.0.1:1/", "bearer": HIDDEN } });
    // From before there was a key.
    let running = Running::new(folder.path(), "monitor.toml", &configuration(""));
    let (status, text) = call(&running, Method::POST, "/api/v1/monitors", &definition);
    assert_eq!(status, StatusCode::CREATED, "{text}");
    drop(running);
    assert!(holds(folder.path(), HIDDEN));
    let key = |key: &str, old: &str| format!("[secrets]\nkey = \"{key}\"\n{old}");
    for keys in [
        key(FIRST, ""),
        key(SECOND, &format!("old_keys = [\"{FIRST}\"]")),
        key(SECOND, ""),
    ] {
        let running = Running::new(folder.path(), "monitor.toml", &configuration(&keys));
        let fields = [("authorization", "Bearer admin")];
        let (_, exported) = running.call(Method::GET, "/api/v1/monitors/export", &fields, "");
        assert!(exported.contains(HIDDEN), "{keys}: {exported}");
    }
    let path = folder.path().join("monitor.toml");
    std::fs::write(&path, configuration(&key(FIRST, ""))).unwrap();
    let plan = load(&path, &|_| None).unwrap();
    let store = plan.open_store().unwrap();
    let Err(StartError::Store(error)) =
        plimsoll_monitor_web::start(plan, store, Arc::new(|_: &str| {}))
    else {
        panic!("it needs the second key");
    };
    assert!(error.to_string().contains("old_keys"), "{error}");
    std::fs::write(&path, configuration("[secrets]\nkey = \"short\"")).unwrap();
    let error = format!("{:?}", load(&path, &|_| None).unwrap_err());
    assert!(error.contains("32 characters or more"), "{error}");
}
