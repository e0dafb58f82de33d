//! Changes of a gateway's configuration while it is served, by the API of its admin port.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::ChildStderr;
use std::sync::Mutex;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use plimsoll_testkit::http::{HttpResponse, exchange, get};
use plimsoll_testkit::{MaterialFiles, eventually};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::plimsoll::{command, plimsoll};
use crate::served::Served;

const TOKEN: &str = "0123456789abcdef";

/// Two servers that respond with their names, in one process.
struct Servers {
    _served: Served,
    _files: MaterialFiles,
    one: String,
    two: String,
}

impl Servers {
    fn new() -> Self {
        let files = MaterialFiles::new();
        let of = |name: &str| {
            format!(
                "[[listen]]\naddress = \"127.0.0.1:0\"\nname = \"{name}\"\n\
                 [[route]]\nlisten = \"{name}\"\nrespond = {{ body = \"{name}\" }}\n"
            )
        };
        let text = format!("threads = 1\n{}{}", of("one"), of("two"));
        let file = files.write("servers.toml", &text);
        let (served, [two]) = Served::with_more(&mut command(&["up", &file.to_string_lossy()]));
        let plain = |url: &str| url.trim_end_matches('/').to_owned();
        Self {
            one: plain(&served.url),
            two: plain(&two),
            _served: served,
            _files: files,
        }
    }
}

/// A gateway with an admin port.
struct Gateway {
    files: MaterialFiles,
    served: Served,
    address: String,
    admin: String,
    /// What it has printed on the standard error.
    printed: mpsc::Receiver<String>,
}

/// The address of a URL.
fn address(url: &str) -> String {
    let address = url.strip_prefix("http://").unwrap();
    address.trim_end_matches('/').to_owned()
}

fn lines(stderr: ChildStderr) -> mpsc::Receiver<String> {
    let (sender, lines) = mpsc::channel();
    thread::spawn(move || {
        for line in BufReader::new(stderr).lines().map_while(Result::ok) {
            sender.send(line).ok();
        }
    });
    lines
}

impl Gateway {
    /// - `changes`: what becomes of changes.
    /// - `rest`: upstreams and routes.
    fn new(changes: &str, rest: &str) -> Self {
        let files = MaterialFiles::new();
        files.write("plimsoll.toml", &configuration(changes, rest));
        Self::start(files, &[])
    }

    fn start(files: MaterialFiles, more: &[&str]) -> Self {
        let path = files.path("plimsoll.toml");
        let arguments = [&["up", path.to_str().unwrap()], more].concat();
        let (mut served, [admin]) = Served::with_more(&mut command(&arguments));
        let printed = lines(served.child.stderr.take().unwrap());
        Self {
            address: address(&served.url),
            admin: address(&admin),
            served,
            files,
            printed,
        }
    }

    /// Ends it, and starts another one with the same files.
    fn restart(self) -> Self {
        let Self {
            mut served, files, ..
        } = self;
        served.signal(Signal::TERM);
        served.child.wait().unwrap();
        Self::start(files, &[])
    }

    /// Loads another file.
    fn reload(&self, changes: &str, rest: &str) {
        fs::write(self.file(), configuration(changes, rest)).unwrap();
        let reply = self.ask("POST", "/config/reload", "", "");
        assert_eq!(reply.status, 200, "{}", reply.text());
    }

    fn file(&self) -> PathBuf {
        self.files.path("plimsoll.toml")
    }

    /// - `fields`: more of the request, each with its line end.
    fn ask(&self, method: &str, path: &str, fields: &str, body: &str) -> HttpResponse {
        ask(&self.admin, method, path, fields, body)
    }

    fn json(&self, path: &str) -> Value {
        let response = self.ask("GET", path, "", "");
        assert_eq!(response.status, 200, "{path}: {}", response.text());
        serde_json::from_str(response.text()).unwrap()
    }

    fn version(&self) -> String {
        self.ask("GET", "/config", "", "")
            .field("etag")
            .unwrap()
            .to_owned()
    }

    /// What responds to two requests in a row.
    fn responders(&self) -> Vec<String> {
        let mut names: Vec<_> = (0..2)
            .map(|_| get(&self.address, "/").into_text())
            .collect();
        names.sort();
        names
    }

    /// Waits for a line on the standard error.
    fn prints(&self, wanted: &str) {
        let patience = Duration::from_secs(20);
        while !self
            .printed
            .recv_timeout(patience)
            .unwrap()
            .contains(wanted)
        {}
    }
}

fn ask(admin: &str, method: &str, path: &str, fields: &str, body: &str) -> HttpResponse {
    let kind = if body.is_empty() || fields.contains("Content-Type") {
        ""
    } else {
        "Content-Type: application/json\r\n"
    };
    let authorization = if fields.contains("Authorization") {
        String::new()
    } else {
        format!("Authorization: Bearer {TOKEN}\r\n")
    };
    let length = body.len();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\n{authorization}{kind}{fields}Connection: close\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    exchange(admin, request.as_bytes())
}

fn configuration(changes: &str, rest: &str) -> String {
    format!(
        "threads = 1\n[[listen]]\naddress = \"127.0.0.1:0\"\n[log]\nfile = \"access.log\"\n\
         [admin]\naddress = \"127.0.0.1:0\"\ntoken = \"{TOKEN}\"\nchanges = \"{changes}\"\n{rest}"
    )
}

fn upstream(servers: &[&str]) -> String {
    let servers = servers.iter().map(|url| format!("\"{url}\""));
    let servers = servers.collect::<Vec<_>>().join(", ");
    format!("[upstream.api]\nservers = [{servers}]\n[[route]]\nname = \"all\"\nproxy = \"api\"\n")
}

fn parsed(response: &HttpResponse) -> Value {
    serde_json::from_str(response.text()).unwrap()
}

#[test]
fn a_server_is_added_after_a_dry_run_and_stays_after_a_restart() {
    let servers = Servers::new();
    let gateway = Gateway::new("changes.toml", &upstream(&[&servers.one]));
    assert_eq!(gateway.responders(), ["one", "one"]);
    let path = "/config/upstreams/api/servers";
    assert_eq!(gateway.json(path), json!([servers.one]));
    let version = gateway.version();
    let body = json!(servers.two).to_string();
    let dry = gateway.ask("POST", &format!("{path}?dry_run"), "", &body);
    assert_eq!(dry.status, 200, "{}", dry.text());
    let change =
        json!({ "path": "upstream.api.servers[2]", "after": format!("\"{}\"", servers.two) });
    assert_eq!(
        parsed(&dry),
        json!({ "dry_run": true, "changes": [change] })
    );
    assert_eq!(gateway.version(), version, "nothing has changed");
    let if_match = format!("If-Match: {version}\r\n");
    let added = gateway.ask("POST", path, &if_match, &body);
    assert_eq!(added.status, 200, "{}", added.text());
    assert_eq!(
        parsed(&added),
        json!({ "dry_run": false, "changes": [change] })
    );
    assert_eq!(added.field("etag").unwrap(), gateway.version());
    assert_eq!(gateway.responders(), ["one", "two"]);
    // It is another version by now.
    let late = gateway.ask(
        "DELETE",
        &format!("{path}?server={}", servers.one),
        &if_match,
        "",
    );
    assert_eq!(late.status, 412, "{}", late.text());
    assert_eq!(late.field("etag"), added.field("etag"));
    let file = gateway.files.path("changes.toml");
    assert_eq!(
        fs::metadata(&file).unwrap().permissions().mode() & 0o777,
        0o600
    );
    let gateway = gateway.restart();
    assert_eq!(gateway.responders(), ["one", "two"]);
    let removed = gateway.ask("DELETE", &format!("{path}?server={}", servers.one), "", "");
    assert_eq!(removed.status, 200, "{}", removed.text());
    assert_eq!(gateway.responders(), ["two", "two"]);
    let undone = gateway.ask("DELETE", "/config/changes", "", "");
    assert_eq!(undone.status, 200, "{}", undone.text());
    assert_eq!(gateway.responders(), ["one", "one"]);
    assert_eq!(gateway.restart().responders(), ["one", "one"]);
}

#[test]
fn routes_are_added_before_others_replaced_and_removed() {
    let servers = Servers::new();
    let gateway = Gateway::new("memory", &upstream(&[&servers.one]));
    let toml = "Content-Type: application/toml\r\n";
    let route = "name = \"new\"\nprefix = \"/new\"\nrespond = { body = \"new\" }\n";
    let added = gateway.ask("POST", "/config/routes?before=all", toml, route);
    assert_eq!(added.status, 200, "{}", added.text());
    assert_eq!(get(&gateway.address, "/new").text(), "new");
    assert_eq!(gateway.json("/config/routes")[0]["name"], "new");
    assert_eq!(gateway.json("/config/routes/2")["proxy"], "api");
    let body =
        json!({ "name": "new", "prefix": "/new", "respond": { "body": "newer" } }).to_string();
    let replaced = gateway.ask("PUT", "/config/routes/new", "", &body);
    assert_eq!(replaced.status, 200, "{}", replaced.text());
    assert_eq!(
        parsed(&replaced)["changes"][0]["path"],
        "route[1].respond.body"
    );
    assert_eq!(get(&gateway.address, "/new").text(), "newer");
    let listed = gateway.json("/config/changes");
    assert_eq!(
        listed["changes"][0]["change"],
        "add a route (name = \"new\")"
    );
    assert_eq!(
        gateway.ask("DELETE", "/config/routes/new", "", "").status,
        200
    );
    assert_eq!(get(&gateway.address, "/new").text(), "one");
    assert_eq!(
        gateway.json("/config/changes"),
        json!({ "kept": "memory", "changes": [] })
    );
    // A new upstream, and a route to it.
    let web = json!({ "servers": servers.two, "balance": "random" }).to_string();
    assert_eq!(
        gateway.ask("PUT", "/config/upstreams/web", "", &web).status,
        200
    );
    let body = json!({ "name": "all", "proxy": "web" }).to_string();
    assert_eq!(
        gateway.ask("PUT", "/config/routes/all", "", &body).status,
        200
    );
    assert_eq!(get(&gateway.address, "/").text(), "two");
    // It is in use.
    let refused = gateway.ask("DELETE", "/config/upstreams/web", "", "");
    assert_eq!(refused.status, 422, "{}", refused.text());
    assert_eq!(parsed(&refused)["errors"][0]["path"], "route[1].proxy");
    // Changes in memory end with the process.
    assert_eq!(get(&gateway.restart().address, "/").text(), "one");
}

#[test]
fn a_change_with_errors_changes_nothing_and_reports_all_of_them() {
    let servers = Servers::new();
    let gateway = Gateway::new("memory", &upstream(&[&servers.one]));
    let version = gateway.version();
    let body = json!({ "servers": ["ftp://a"], "balence": "random", "retry": { "retries": 99 } })
        .to_string();
    for path in ["/config/upstreams/api", "/config/upstreams/api?dry_run"] {
        let response = gateway.ask("PUT", path, "", &body);
        assert_eq!(response.status, 422, "{}", response.text());
        let errors = parsed(&response)["errors"].as_array().unwrap().clone();
        let paths: Vec<_> = errors
            .iter()
            .map(|it| it["path"].as_str().unwrap())
            .collect();
        for wanted in [
            "upstream.api.servers[1]",
            "upstream.api.balence",
            "upstream.api.retry.retries",
        ] {
            assert!(paths.contains(&wanted), "{wanted}: {}", response.text());
        }
        let typo = errors
            .iter()
            .find(|it| it["path"] == "upstream.api.balence")
            .unwrap();
        assert_eq!(typo["hint"], "did you mean `balance`?");
    }
    let server = format!("\"{}\"", servers.two);
    for (method, path, fields, body, status) in [
        (
            "PUT",
            "/config/upstreams/api/servers?server=http://none",
            "",
            &*server,
            404,
        ),
        ("DELETE", "/config/upstreams/api/servers", "", "", 400),
        ("DELETE", "/config/upstreams/none", "", "", 404),
        ("DELETE", "/config/routes/7", "", "", 404),
        (
            "POST",
            "/config/upstreams/api/servers",
            "",
            &format!("\"{}/\"", servers.one),
            409,
        ),
        ("POST", "/config/upstreams/api/servers", "", "null", 422),
        ("POST", "/config/upstreams/api/servers", "", "\"", 400),
        (
            "POST",
            "/config/upstreams/api/servers?dry",
            "",
            &server,
            400,
        ),
        (
            "POST",
            "/config/upstreams/api/servers",
            "Content-Type: text/plain\r\n",
            &server,
            415,
        ),
        (
            "POST",
            "/config/upstreams/api/servers",
            "If-Match: \"1\"\r\n",
            &server,
            412,
        ),
        ("PUT", "/config/upstreams/%00", "", &server, 400),
        ("PATCH", "/config/upstreams/api", "", &server, 404),
        ("GET", "/config/upstreams/none", "", "", 404),
        (
            "POST",
            "/config/upstreams/api/servers",
            "Authorization: Bearer wrong\r\n",
            &server,
            401,
        ),
    ] {
        let response = gateway.ask(method, path, fields, body);
        assert_eq!(
            response.status,
            status,
            "{method} {path}: {}",
            response.text()
        );
    }
    // More than any configuration has.
    let large = format!("\"{}\"", "x".repeat(1 << 20));
    let response = gateway.ask("POST", "/config/upstreams/api/servers", "", &large);
    assert_eq!(response.status, 413);
    assert_eq!(gateway.version(), version);
    assert_eq!(gateway.responders(), ["one", "one"]);
}

#[test]
fn changes_need_a_token_and_pages_elsewhere_make_none() {
    let files = MaterialFiles::new();
    let text = |keys: &str| {
        format!(
            "[[listen]]\naddress = \"127.0.0.1:0\"\n[[route]]\nproxy = \"http://127.0.0.1:9\"\n\
             [admin]\naddress = \"127.0.0.1:0\"\n{keys}\n"
        )
    };
    let path = files.write("plimsoll.toml", &text("changes = \"memory\""));
    let output = plimsoll(&["up", "--check", &path.to_string_lossy()]).exits(2);
    assert!(
        output.stderr.contains("admin.changes: needs a `token`"),
        "{output}"
    );
    // Without the key nothing is changed, with or without a token.
    files.write("plimsoll.toml", &text(""));
    let gateway = Gateway::start(files, &[]);
    let body = json!({ "servers": "http://127.0.0.1:8" }).to_string();
    for (path, body) in [
        ("/config/upstreams/api", &*body),
        ("/config/upstreams/api?dry_run", &body),
    ] {
        let response = gateway.ask("PUT", path, "", body);
        assert_eq!(response.status, 403, "{}", response.text());
        assert!(
            response.text().contains("changes = "),
            "{}",
            response.text()
        );
    }
    assert_eq!(gateway.ask("POST", "/config/reload", "", "").status, 403);
    assert_eq!(
        gateway.json("/config/changes"),
        json!({ "kept": "off", "changes": [] })
    );
    let gateway = Gateway::new("memory", &upstream(&["http://127.0.0.1:9"]));
    let basic = "Authorization: Basic bWU6MDEyMzQ1Njc4OWFiY2RlZg==\r\n";
    for (fields, status) in [
        ("Origin: http://evil.test\r\n", 401),
        ("Sec-Fetch-Site: cross-site\r\n", 401),
        (
            "Origin: http://localhost\r\nSec-Fetch-Site: same-origin\r\n",
            200,
        ),
    ] {
        let response = gateway.ask(
            "PUT",
            "/config/upstreams/web",
            &format!("{basic}{fields}"),
            &body,
        );
        assert_eq!(response.status, status, "{fields}: {}", response.text());
    }
    // Forms send such content without asking first.
    let form = "Content-Type: application/x-www-form-urlencoded\r\n";
    let response = gateway.ask("PUT", "/config/upstreams/web", form, "a=b");
    assert_eq!(response.status, 415);
    let secret = json!({ "name": "all", "proxy": { "to": "api", "headers": { "authorization": "hunter2" } } });
    let response = gateway.ask("PUT", "/config/routes/all", "", &secret.to_string());
    assert_eq!(response.status, 200, "{}", response.text());
    assert!(!response.text().contains("hunter2"), "{}", response.text());
    for path in [
        "/config",
        "/config/routes",
        "/config/routes/all",
        "/config/changes",
    ] {
        let response = gateway.ask("GET", path, "", "");
        assert!(
            !response.text().contains("hunter2"),
            "{path}: {}",
            response.text()
        );
        assert!(response.text().contains('…'), "{path}: {}", response.text());
    }
    let log = fs::read_to_string(gateway.files.path("access.log")).unwrap_or_default();
    assert!(!log.contains("hunter2"), "{log}");
}

#[test]
fn changes_at_once_are_made_one_after_the_other() {
    let gateway = Gateway::new("changes.toml", &upstream(&["http://127.0.0.1:9"]));
    let path = "/config/upstreams/api/servers";
    let version = format!("If-Match: {}\r\n", gateway.version());
    // Each wants to be the first.
    let statuses = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for port in 1..=6 {
            let (admin, version, statuses) = (&gateway.admin, &version, &statuses);
            scope.spawn(move || {
                let body = format!("\"http://127.0.0.2:{port}\"");
                let response = ask(admin, "POST", path, version, &body);
                statuses.lock().unwrap().push(response.status);
            });
        }
    });
    let mut statuses = statuses.into_inner().unwrap();
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 412, 412, 412, 412, 412]);
    // None wants to be in particular, and the file is loaded again meanwhile.
    thread::scope(|scope| {
        for port in 1..=6 {
            let admin = &gateway.admin;
            scope.spawn(move || {
                let body = format!("\"http://127.0.0.3:{port}\"");
                let response = ask(admin, "POST", path, "", &body);
                assert_eq!(response.status, 200, "{}", response.text());
            });
        }
        gateway.served.signal(Signal::HUP);
    });
    let count = |gateway: &Gateway| gateway.json(path).as_array().unwrap().len();
    eventually(|| count(&gateway) == 8);
    assert_eq!(count(&gateway.restart()), 8);
}

#[test]
fn a_reload_keeps_what_still_fits_and_reports_the_rest() {
    let servers = Servers::new();
    let (one, two) = (&*servers.one, &*servers.two);
    let gateway = Gateway::new("changes.toml", &upstream(&[one]));
    let path = "/config/upstreams/api/servers";
    let body = json!(two).to_string();
    assert_eq!(gateway.ask("POST", path, "", &body).status, 200);
    let route = json!({ "prefix": "/new", "respond": { "body": "new" } }).to_string();
    assert_eq!(
        gateway
            .ask("POST", "/config/routes?before=all", "", &route)
            .status,
        200
    );
    // Another setting of the upstream is the file's.
    let slower = upstream(&[one]).replace("[[route]]", "timeout = \"5s\"\n[[route]]");
    gateway.reload("changes.toml", &slower);
    assert_eq!(gateway.json("/config/upstreams/api")["timeout"], "5s");
    assert_eq!(gateway.json(path), json!([one, two]));
    assert_eq!(get(&gateway.address, "/new").text(), "new");
    // The file has other servers: they count.
    gateway.reload("changes.toml", &upstream(&[two]));
    gateway.prints("change the servers of upstream api: the file has changed it too");
    assert_eq!(gateway.json(path), json!([two]));
    assert_eq!(get(&gateway.address, "/new").text(), "new");
    // What the reload of a file would change, the changes included.
    let file = gateway.files.write(
        "next.toml",
        &configuration("changes.toml", &upstream(&[two, one])),
    );
    let body = fs::read_to_string(file).unwrap();
    let toml = "Content-Type: application/toml\r\n";
    let difference = gateway.ask("POST", "/config/difference", toml, &body);
    assert_eq!(difference.status, 200, "{}", difference.text());
    let changes = &parsed(&difference)["changes"];
    assert_eq!(
        changes,
        &json!([{ "path": "upstream.api.servers[2]", "after": format!("\"{one}\"") }])
    );
    // A file with errors changes nothing.
    fs::write(gateway.file(), "nonsense = 1\n").unwrap();
    let refused = gateway.ask("POST", "/config/reload", "", "");
    assert_eq!(refused.status, 422, "{}", refused.text());
    assert_eq!(get(&gateway.address, "/new").text(), "new");
    // Another program has written the file of changes.
    fs::write(gateway.files.path("changes.toml"), "version = 1\n").unwrap();
    let refused = gateway.ask("POST", path, "", &json!(one).to_string());
    assert_eq!(refused.status, 500, "{}", refused.text());
    assert!(
        refused.text().contains("changed by another program"),
        "{}",
        refused.text()
    );
    assert_eq!(gateway.json(path), json!([two]));
}

#[test]
fn a_check_prints_what_a_reload_would_change() {
    let gateway = Gateway::new("memory", &upstream(&["http://127.0.0.1:9"]));
    let file = gateway.file();
    let file = file.to_str().unwrap();
    let url = format!("http://{}", gateway.admin);
    let token = gateway.files.write("token", &format!("{TOKEN}\n"));
    let token = token.to_str().unwrap();
    let check = ["up", "--check", file, "--against", &url];
    let with_token = [&check[..], &["--token-file", token]].concat();
    let output = plimsoll(&with_token).exits(0);
    assert!(output.stdout.ends_with("no mistakes\n"), "{output}");
    let next = configuration("memory", &upstream(&["http://127.0.0.1:8"]));
    let next = next.replace(TOKEN, "another-token-of-it");
    gateway.files.write("plimsoll.toml", &next);
    let output = plimsoll(&with_token).exits(1);
    let lines: Vec<_> = output.stdout.lines().skip(1).collect();
    assert_eq!(
        lines,
        [
            "~ admin.token: \"…\" -> \"…\"",
            "- upstream.api.servers[1]: \"http://127.0.0.1:9\"",
            "+ upstream.api.servers[1]: \"http://127.0.0.1:8\"",
        ]
    );
    let output = plimsoll(&check).exits(3);
    assert!(output.stderr.contains("--token-file"), "{output}");
    let output = plimsoll(&["up", file, "--against", &url]).exits(2);
    assert!(output.stderr.contains("--check"), "{output}");
}

#[test]
fn changes_are_audited() {
    let gateway = Gateway::new("memory", &upstream(&["http://127.0.0.1:9"]));
    let path = "/config/upstreams/api/servers";
    let body = "\"http://127.0.0.1:8\"";
    assert_eq!(
        gateway
            .ask("POST", &format!("{path}?dry_run"), "", body)
            .status,
        200
    );
    assert_eq!(gateway.ask("POST", path, "", body).status, 200);
    assert_eq!(gateway.ask("POST", path, "", body).status, 409);
    assert_eq!(
        gateway
            .ask("POST", path, "Content-Type: text/plain\r\n", body)
            .status,
        415
    );
    assert_eq!(gateway.ask("POST", "/config/reload", "", "").status, 200);
    let lines = || {
        let log = fs::read_to_string(gateway.files.path("access.log")).unwrap_or_default();
        let lines = log
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines
            .filter(|line| line.get("audit").is_some())
            .collect::<Vec<_>>()
    };
    eventually(|| lines().len() == 4);
    let lines = lines();
    let statuses: Vec<_> = lines
        .iter()
        .map(|it| it["status"].as_u64().unwrap())
        .collect();
    assert_eq!(statuses, [200, 409, 415, 200]);
    assert_eq!(lines[0]["audit"], format!("POST {path}"));
    assert_eq!(
        lines[0]["changes"],
        json!([{ "path": "upstream.api.servers[2]", "after": body }])
    );
    assert_eq!(lines[3]["audit"], "POST /config/reload");
}

#[test]
fn a_process_that_takes_over_has_the_changes_of_the_file() {
    for (changes, expected) in [("changes.toml", 2), ("memory", 1)] {
        let files = MaterialFiles::new();
        files.write(
            "plimsoll.toml",
            &configuration(changes, &upstream(&["http://127.0.0.1:9"])),
        );
        let socket = files.path("takeover.sock");
        let socket = socket.to_str().unwrap();
        let gateway = Gateway::start(files, &["--takeover", socket]);
        let path = "/config/upstreams/api/servers";
        assert_eq!(
            gateway
                .ask("POST", path, "", "\"http://127.0.0.1:8\"")
                .status,
            200
        );
        let Gateway {
            served: mut old,
            files,
            admin,
            printed,
            ..
        } = gateway;
        let next = Gateway::start(files, &["--takeover", socket]);
        assert_eq!(next.admin, admin);
        eventually(|| old.child.try_wait().unwrap().is_some());
        let lost = "1 change at run time ended with this process";
        let is_lost = printed.iter().any(|line| line.contains(lost));
        assert_eq!(is_lost, changes == "memory");
        assert_eq!(
            next.json(path).as_array().unwrap().len(),
            expected,
            "{changes}"
        );
    }
}
