//! `plimsoll up`: serving, reloading and ending, under load.

use std::fs;
use std::io::Read as _;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use plimsoll_server::{Counters, Engine, config};
use plimsoll_testkit::http::exchange;
use plimsoll_testkit::{Authority, MaterialFiles, eventually, free_port, refused_address};
use rustix::process::Signal;
use serde_json::Value;

use crate::plimsoll::{command, plimsoll};
use crate::profile::refused;
use crate::served::Served;

/// The program, serving a file.
fn up(file: &Path) -> Served {
    Served::start(&["up", &file.to_string_lossy()])
}

fn file(body: &str) -> String {
    format!(
        "threads = 1\n[[listen]]\naddress = \"127.0.0.1:0\"\n[[route]]\nrespond = {{ body = \"{body}\" }}\n"
    )
}

#[test]
fn the_starter_is_written_once_and_has_no_mistakes() {
    let files = MaterialFiles::new();
    let path = files.path("plimsoll.toml");
    let path = path.to_string_lossy();
    plimsoll(&["up", "--init", &path]).exits(0);
    let output = plimsoll(&["up", "--init", &path]).exits(3);
    assert!(output.stderr.contains("exists"), "{output}");
    let output = plimsoll(&["up", "--check", &path]).exits(0);
    assert!(output.stdout.ends_with("no mistakes\n"), "{output}");
    let schema = plimsoll(&["schema"]).exits(0).json();
    assert_eq!(schema["title"], "plimsoll up");
}

#[test]
fn mistakes_are_reported_with_their_places() {
    let files = MaterialFiles::new();
    let path = files.write(
        "bad.toml",
        "[[listen]]\nadress = \"a\"\n[[route]]\necho = 1\n",
    );
    let output = plimsoll(&["up", &path.to_string_lossy()]).exits(2);
    for expected in [
        "bad.toml:2:1: listen[1].adress: unknown key",
        "hint: did you mean `address`?",
        "bad.toml:4:8: route[1].echo: must be a table",
    ] {
        assert!(
            output.stderr.contains(expected),
            "no `{expected}` in {output}"
        );
    }
    let output = plimsoll(&["up", "/nonexistent/plimsoll.toml"]).exits(2);
    assert!(output.stderr.contains("--init"), "{output}");
}

#[test]
fn what_is_only_unwise_or_not_there_yet_is_a_warning() {
    let files = MaterialFiles::new();
    files.write("users", "old:sa3tHJ3/KuYvI\nann:{PLAIN}secret\n");
    let text = file("hello")
        + "basic_auth = { file = \"users\" }\n[[route]]\npath = \"/page\"\nrespond = { file = \"page.html\", optional = true }\n\
           [[log]]\nname = \"shop\"\nfile = \"shop.log\"\n";
    let path = files.write("plimsoll.toml", &text);
    let output = plimsoll(&["up", "--check", &path.to_string_lossy()]).exits(0);
    assert!(output.stdout.ends_with("no mistakes\n"), "{output}");
    for expected in [
        "users:1: is no hash of a password that is known",
        "the user is left out",
        "page.html: it is not there, so that its route responds with 404",
        "log `shop`: gets no requests: no route has log = \"shop\"",
    ] {
        let warnings = output
            .stderr
            .lines()
            .filter(|it| it.starts_with("warning: "));
        let count = warnings.filter(|it| it.contains(expected)).count();
        assert_eq!(count, 1, "`{expected}` in {output}");
    }
    let up = up(&path);
    assert!(up.answers("/page", &["status == 404"]));
    assert!(up.answers("/", &["status == 401"]));
}

#[test]
fn a_reload_under_load_fails_nothing_and_a_bad_file_changes_nothing() {
    let files = MaterialFiles::new();
    let path = files.write("plimsoll.toml", &file("one"));
    let up = up(&path);
    assert!(up.answers("/", &["body == one"]));
    let load = command(&["load", "--json", "-c", "8", "-z", "1s", &up.url])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    for body in ["two", "three", "four"] {
        fs::write(&path, file(body)).unwrap();
        up.signal(Signal::HUP);
        let condition = format!("body == {body}");
        eventually(|| up.answers("/", &[&condition]));
    }
    fs::write(&path, "nonsense = 1\n").unwrap();
    up.signal(Signal::HUP);
    let output = load.wait_with_output().unwrap();
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(summary["counts"]["ok"].as_u64().unwrap() > 0, "{summary}");
    assert_eq!(summary["counts"]["errors"], 0, "{summary}");
    assert!(up.answers("/", &["body == four"]));
    up.signal(Signal::TERM);
    let mut up = up;
    assert_eq!(up.child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_watched_file_is_loaded_again_when_it_changes() {
    let files = MaterialFiles::new();
    let path = files.write("plimsoll.toml", &file("one"));
    let path_text = path.to_string_lossy();
    let up = Served::start(&["up", "--watch", &path_text]);
    assert!(up.answers("/", &["body == one"]));
    fs::write(&path, "nonsense = 1\n").unwrap();
    fs::write(&path, file("two")).unwrap();
    eventually(|| up.answers("/", &["body == two"]));
    let output = plimsoll(&["up", "--watch", "--check", &path_text]).exits(2);
    assert!(output.stderr.contains("--check"), "{output}");
}

#[test]
fn certificates_are_read_again_when_their_files_change_and_clients_show_theirs() {
    let (old, new) = (Authority::new(), Authority::new());
    let files = MaterialFiles::new();
    let write = |authority: &Authority| {
        let leaf = authority.issue(&["127.0.0.1"]);
        files.write("cert.pem", leaf.pem());
        files.write("key.pem", leaf.key_pem());
    };
    write(&old);
    let client = old.issue_for_client("alice");
    let ca = files.write("old.pem", &old.pem());
    let renewed = files.write("new.pem", &new.pem());
    let (cert, key) = (
        files.write("client.pem", client.pem()),
        files.write("client.key", client.key_pem()),
    );
    let text = "threads = 1\n[[listen]]\naddress = \"127.0.0.1:0\"\n\
                tls = [{ cert = \"cert.pem\", key = \"key.pem\" }]\n\
                client_certificates = { ca = \"old.pem\" }\n[[route]]\nrespond = {}\n";
    let up = up(&files.write("plimsoll.toml", text));
    let is_served = |roots: &Path, client: &[&str]| {
        let roots = roots.to_string_lossy();
        let flags = ["check", &up.url, "--cacert", &roots];
        plimsoll(&[&flags, client].concat()).code == Some(0)
    };
    let (cert, key) = (cert.to_string_lossy(), key.to_string_lossy());
    let client = ["--cert", &*cert, "--key", &*key];
    assert!(is_served(&ca, &client));
    assert!(!is_served(&ca, &[]));
    assert!(!is_served(&renewed, &client));
    write(&new);
    eventually(|| is_served(&renewed, &client));
    assert!(!is_served(&ca, &client));
}

#[test]
fn the_access_log_is_opened_anew_on_sighup_and_written_to_its_end() {
    let files = MaterialFiles::new();
    let text = file("hello") + "[log]\nfile = \"access.log\"\nformat = \"combined\"\n";
    let path = files.write("plimsoll.toml", &text);
    let (log, moved) = (files.path("access.log"), files.path("access.log.1"));
    let mut up = up(&path);
    let lines = |log: &Path| {
        let text = fs::read_to_string(log).unwrap_or_default();
        text.matches("] \"GET / HTTP/1.1\" 200 5 \"-\" \"").count()
    };
    assert!(up.answers("/", &["status == 200"]));
    eventually(|| lines(&log) == 1);
    fs::rename(&log, &moved).unwrap();
    // Even a file with mistakes has the log opened anew.
    fs::write(&path, "nonsense = 1\n").unwrap();
    up.signal(Signal::HUP);
    eventually(|| log.exists());
    assert!(up.answers("/", &["status == 200"]));
    up.signal(Signal::TERM);
    assert_eq!(up.child.wait().unwrap().code(), Some(0));
    assert_eq!((lines(&moved), lines(&log)), (1, 1));
}

#[test]
fn routes_choose_their_logs_and_a_log_its_requests() {
    let files = MaterialFiles::new();
    let text = format!(
        "{}path = \"/\"\n[[route]]\npath = \"/shop\"\nlog = [\"shop\", \"all\"]\nrespond = {{ body = \"shop\" }}\n\
         [[route]]\npath = \"/health\"\nlog = false\nrespond = {{ body = \"fine\" }}\n\
         [[route]]\npath = \"/broken\"\nlog = \"shop\"\nrespond = {{ status = 500 }}\n\
         [map.is_wrong]\nkey = \"{{status}}\"\nregex = [{{ match = \"^[45]\", value = \"1\" }}]\ndefault = \"0\"\n\
         [[log]]\nname = \"all\"\ndefault = true\nfile = \"all.log\"\nformat = \"{{path}} {{status}}\"\n\
         [[log]]\nname = \"shop\"\nfile = \"shop.log\"\nformat = \"{{path}}\"\n\
         [[log]]\nfile = \"wrong.log\"\nformat = \"{{path}} {{status}}\"\nwhen = \"{{map:is_wrong}}\"\n",
        file("hello")
    );
    let path = files.write("plimsoll.toml", &text);
    let mut up = up(&path);
    for target in ["/", "/shop", "/health"] {
        assert!(up.answers(target, &["status == 200"]), "{target}");
    }
    assert!(up.answers("/broken", &["status == 500"]));
    assert!(up.answers("/none", &["status == 404"]));
    up.signal(Signal::TERM);
    assert_eq!(up.child.wait().unwrap().code(), Some(0));
    let lines = |log: &str| fs::read_to_string(files.path(log)).unwrap();
    assert_eq!(lines("all.log"), "/ 200\n/shop 200\n/none 404\n");
    assert_eq!(lines("shop.log"), "/shop\n/broken\n");
    assert_eq!(lines("wrong.log"), "/none 404\n");
}

#[test]
fn reloads_and_changes_by_the_admin_port_are_in_the_log() {
    let files = MaterialFiles::new();
    let text = |body: &str| {
        format!(
            "{}[admin]\naddress = \"127.0.0.1:0\"\ntoken = \"0123456789abcdef\"\n[log]\nfile = \"access.log\"\n\
             [upstream.api]\nservers = [\"http://127.0.0.1:9\"]\n[[route]]\nprefix = \"/api\"\nproxy = \"api\"\n",
            file(body)
        )
    };
    let path = files.write("plimsoll.toml", &text("one"));
    let (up, [admin]) = Served::with_more(&mut command(&["up", &path.to_string_lossy()]));
    let admin = admin.trim_start_matches("http://").trim_end_matches('/');
    let lines = || {
        let log = fs::read_to_string(files.path("access.log")).unwrap_or_default();
        let lines = log.lines().map(|line| serde_json::from_str(line).unwrap());
        let lines: Vec<Value> = lines
            .filter(|line: &Value| line.get("audit").is_some())
            .collect();
        lines
    };
    fs::write(&path, text("two")).unwrap();
    up.signal(Signal::HUP);
    eventually(|| lines().len() == 1);
    let reload = &lines()[0];
    assert_eq!(reload["audit"], "reload");
    assert_eq!(reload["by"], "signal");
    assert_eq!(reload["result"], "done");
    assert_eq!(reload["changes"].as_array().unwrap().len(), 1);
    assert_eq!(reload["changes"][0]["path"], "route[1].respond.body");
    assert_eq!(reload["changes"][0]["after"], "\"two\"");
    fs::write(&path, "nonsense = 1\n").unwrap();
    up.signal(Signal::HUP);
    eventually(|| lines().len() == 2);
    assert_eq!(lines()[1]["result"], "failed");
    // `me` with the token, from a page.
    let page =
        "Authorization: Basic bWU6MDEyMzQ1Njc4OWFiY2RlZg==\r\nSec-Fetch-Site: same-origin\r\n";
    let api = "Authorization: Bearer 0123456789abcdef\r\n";
    for (request, fields, status) in [
        (
            "PUT /upstreams/api?server=http://127.0.0.1:9&weight=0",
            page,
            204,
        ),
        (
            "PUT /upstreams/api?server=http://127.0.0.1:8&weight=0",
            api,
            404,
        ),
        (
            "PUT /upstreams/api?server=http://127.0.0.1:9&weight=5",
            "",
            401,
        ),
        ("DELETE /caches?url=http://me:hunter2@a.test/*", api, 200),
        ("POST /redirects/refresh", api, 202),
        ("GET /upstreams", api, 200),
    ] {
        let request = format!(
            "{request} HTTP/1.1\r\nHost: localhost\r\n{fields}Connection: close\r\nContent-Length: 0\r\n\r\n"
        );
        assert_eq!(
            exchange(admin, request.as_bytes()).status,
            status,
            "{request}"
        );
    }
    eventually(|| lines().len() == 7);
    let lines = lines();
    let weight = &lines[2];
    assert_eq!(weight["audit"], "PUT /upstreams/api");
    assert_eq!(weight["by"], "page");
    assert_eq!(weight["user"], "me");
    assert!(weight["peer"].as_str().unwrap().starts_with("127.0.0.1:"));
    assert_eq!(weight["status"], 204);
    let change = &weight["changes"][0];
    assert_eq!(
        change["path"],
        "upstream.api.servers[http://127.0.0.1:9].weight"
    );
    assert_eq!(
        (&change["before"], &change["after"]),
        (&"1".into(), &"0".into())
    );
    for (line, status) in lines[3..].iter().zip([404, 401, 200, 202]) {
        assert_eq!(line["status"], status, "{line}");
        assert_eq!(line["by"], "api");
    }
    assert_eq!(lines[5]["changes"][0]["path"], "cache http://…@a.test/*");
    let log = fs::read_to_string(files.path("access.log")).unwrap();
    for secret in ["hunter2", "0123456789abcdef"] {
        assert!(!log.contains(secret), "{log}");
    }
}

#[test]
fn without_a_log_changes_are_printed() {
    let files = MaterialFiles::new();
    let text = file("one") + "[admin]\naddress = \"127.0.0.1:0\"\n";
    let path = files.write("plimsoll.toml", &text);
    let (mut up, [admin]) = Served::with_more(&mut command(&["up", &path.to_string_lossy()]));
    let admin = admin.trim_start_matches("http://").trim_end_matches('/');
    let request = b"POST /redirects/refresh HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
    assert_eq!(exchange(admin, request).status, 202);
    up.signal(Signal::TERM);
    let mut printed = String::new();
    up.child
        .stderr
        .as_mut()
        .unwrap()
        .read_to_string(&mut printed)
        .unwrap();
    assert!(
        printed.contains("note: audit: POST /redirects/refresh by 127.0.0.1:"),
        "{printed}"
    );
    assert!(printed.contains(" (api): 202\n"), "{printed}");
}

#[test]
fn a_drain_under_load_fails_nothing() {
    let engine = |address: &str| {
        let text = format!(
            "threads = 1\n[[listen]]\naddress = \"{address}\"\nshare_port = true\n[[route]]\nrespond = {{}}\n"
        );
        let counters = Arc::<Counters>::default();
        let plan = config::Compiler::new(Path::new("."), &counters)
            .compile(&text)
            .unwrap();
        Engine::start(&plan.engine, counters).unwrap()
    };
    // Clients of servers that have ended may still try the ports that the system assigns, and would be counted.
    let old = engine(&format!("127.0.0.1:{}", free_port().unwrap()));
    let address: SocketAddr = old.addresses()[0];
    let new = engine(&address.to_string());
    let url = format!("http://{address}/");
    let load = command(&["load", "--json", "-c", "16", "-z", "1s", &url])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (before, after) = (Arc::clone(old.counters()), Arc::clone(new.counters()));
    // One more is opened and closed beforehand. A client that is just about to be accepted when a listener
    // closes is lost, so all must be there.
    eventually(|| {
        let (before, after) = (before.snapshot(), after.snapshot());
        before.accepted + after.accepted == 17
            && before.open + after.open == 16
            && before.answered() + after.answered() > 100
    });
    let served = after.snapshot().answered();
    assert_eq!(old.drain(Duration::from_secs(20)).cut_off, 0);
    eventually(|| after.open() == 16);
    let output = load.wait_with_output().unwrap();
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(summary["counts"]["errors"], 0, "{summary}");
    assert!(after.snapshot().answered() > served);
}

#[test]
fn http3_is_served_beside_the_others() {
    let files = MaterialFiles::new();
    let text = "threads = 2\n[[listen]]\naddress = \"127.0.0.1:0\"\nhttp3 = true\ntls = [{ self_signed = true }]\n[[route]]\nrespond = { body = \"hello\" }\n[log]\nfile = \"access.log\"\n";
    let path = files.write("plimsoll.toml", text);
    let up = up(&path);
    let check = |more: &[&str], condition: &str| {
        let arguments = [
            &["check", "--insecure", &up.url, "--expect", condition],
            more,
        ]
        .concat();
        plimsoll(&arguments).exits(0);
    };
    check(&["--http3"], "body == 'hello'");
    let port = up.url.rsplit(':').next().unwrap().trim_end_matches('/');
    check(
        &[],
        &format!("header.alt-svc == 'h3=\":{port}\"; ma=86400'"),
    );
    let url = up.url.clone();
    let load = std::thread::spawn(move || {
        plimsoll(&[
            "load",
            "--json",
            "--insecure",
            "--http3",
            "-z",
            "1500ms",
            "-c",
            "4",
            "-p",
            "8",
            &url,
        ])
    });
    let log = files.path("access.log");
    let logged = || {
        let log = fs::read_to_string(&log).unwrap_or_default();
        let is_http3 = |line: &&str| line.contains(r#""protocol":"HTTP/3.0""#);
        log.lines().filter(is_http3).count()
    };
    eventually(|| logged() > 1);
    up.signal(Signal::HUP);
    let summary = load.join().unwrap().exits(0).json();
    assert_eq!(summary["counts"]["failed"], 0, "{summary}");
    assert!(summary["counts"]["ok"].as_u64() > Some(100), "{summary}");
    assert_eq!(summary["load"]["protocol"], "HTTP/3");
}

/// Words that the program says to who started it, until these.
fn hears(socket: &UnixDatagram, words: &str) -> String {
    let mut buffer = [0; 4096];
    loop {
        let length = socket.recv(&mut buffer).unwrap();
        let output = String::from_utf8_lossy(&buffer[..length]).into_owned();
        if output.starts_with(words) {
            return output;
        }
    }
}

#[test]
fn systemd_hands_sockets_over_and_is_reported() {
    let files = MaterialFiles::new();
    let text = "threads = 2\n[[listen]]\naddress = \"inherited:web\"\n[[route]]\nrespond = { body = \"hello\" }\n";
    let path = files.write("plimsoll.toml", text);
    let notify = UnixDatagram::bind(files.path("notify")).unwrap();
    notify
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = listener.local_addr().unwrap();
    // A shell gives itself the descriptor by its number, says whose it is, and becomes the program.
    let program = command(&[]);
    let program = program.get_program().to_string_lossy().into_owned();
    let script = format!(
        "exec 3<&0 0</dev/null; export LISTEN_PID=$$; exec {program} up {}",
        path.display()
    );
    let mut program = Command::new("sh");
    program
        .args(["-c", &script])
        .env("LISTEN_FDS", "1")
        .env("LISTEN_FDNAMES", "web")
        .env("NOTIFY_SOCKET", files.path("notify"))
        .env("WATCHDOG_USEC", "200000")
        .stdin(Stdio::from(OwnedFd::from(listener)));
    let mut up = Served::start_program(&mut program);
    let ready = hears(&notify, "READY=1");
    assert!(
        ready.contains(&format!("STATUS=listening on {address}")),
        "{ready}"
    );
    assert!(up.answers("/", &["body == 'hello'"]));
    hears(&notify, "WATCHDOG=1");
    up.signal(Signal::HUP);
    let reloading = hears(&notify, "RELOADING=1");
    assert!(reloading.contains("MONOTONIC_USEC="), "{reloading}");
    hears(&notify, "READY=1");
    assert!(up.answers("/", &["body == 'hello'"]));
    up.signal(Signal::TERM);
    hears(&notify, "STOPPING=1");
    assert!(up.child.wait().unwrap().success());
}

#[test]
fn a_server_gives_a_profile_of_itself() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("plimsoll.toml");
    let address = refused_address();
    let text = format!("{}[admin]\naddress = \"{address}\"\n", file("hello"));
    fs::write(&path, text).unwrap();
    let up = up(&path);
    let id = up.child.id().to_string();
    if refused(&plimsoll(&["profile", "--pid", &id, "-z", "100ms"])) {
        return;
    }
    let mut load = command(&["load", "--no-tui", "-z", "1h", "-c", "2", &up.url])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let profile = format!("http://{address}");
    let out = folder.path().join("out");
    let out = out.to_str().unwrap();
    let output = plimsoll(&["profile", &profile, "-z", "1s", "--out", out]);
    let wrong = plimsoll(&[
        "profile",
        &format!("{profile}/debug/pprof/profile?seconds=0"),
    ]);
    load.kill().unwrap();
    load.wait().unwrap();
    let output = output.exits(0);
    let stacks = fs::read_to_string(format!("{out}/profile.folded")).unwrap();
    assert!(stacks.contains("plimsoll_server"), "{output}\n{stacks}");
    assert!(wrong.exits(3).stderr.contains("status 400"));
}
