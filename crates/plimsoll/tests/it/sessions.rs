//! What virtual users remember: cookies, and how a server wants to be answered.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::{Arc, Mutex};

use plimsoll_testkit::{
    DigestRealm, Http2Origin, Http3Origin, Leaf, Logic, Origin, Reply, Script, Step, eventually,
    free_port,
};
use plimsoll_wire::process::Process;

use crate::http2::start;
use crate::plimsoll::plimsoll;

/// An origin of each version of HTTP with the same logic, and the flags that reach each at `path`.
///
/// - `streams`: of each connection, where it has streams.
pub(crate) fn over_each(logic: &Logic, path: &str, streams: &str, mut test: impl FnMut(&[&str])) {
    let script = Script::new().then(Step::Reply(logic.clone()));
    let one = Origin::scripted(script);
    test(&[&one.url(path)]);
    let two = Http2Origin::builder().logic(logic.clone()).start();
    test(&["--http2", "-p", streams, &two.url(path)]);
    let leaf = Leaf::self_signed(&["127.0.0.1"]);
    let three = Http3Origin::builder(leaf.server_config());
    let three = three.logic(logic.clone()).start();
    test(&["--http3", "-k", "-p", streams, &three.url(path)]);
}

/// Gives each user a number, and notes who came with which cookie.
fn numbering() -> (Logic, Arc<Mutex<Vec<Option<String>>>>) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let shared = Arc::clone(&seen);
    let logic = Logic::new(move |question| {
        let cookie = question.field("cookie").map(str::to_owned);
        let mut seen = shared.lock().unwrap();
        let number = seen.len();
        seen.push(cookie.clone());
        match cookie {
            Some(cookie) if cookie.contains("user=") => Reply::new(200, &[]),
            _ => Reply::new(
                200,
                &[
                    (
                        "set-cookie",
                        &format!("user={number}; Path=/shop; HttpOnly"),
                    ),
                    ("set-cookie", "elsewhere=1; Path=/other"),
                ],
            ),
        }
    });
    (logic, seen)
}

#[test]
fn each_virtual_user_keeps_its_own_cookies() {
    let (logic, seen) = numbering();
    over_each(&logic, "/shop/cart", "2", |flags| {
        seen.lock().unwrap().clear();
        let mut arguments = vec!["load", "-n", "40", "-c", "2", "-t", "2", "--cookies"];
        arguments.extend(["-H", "cookie: own=1"]);
        arguments.extend(flags);
        plimsoll(&arguments).exits(0);
        let seen = seen.lock().unwrap();
        let first = seen.iter().flatten().filter(|cookie| *cookie == "own=1");
        let users = first.count();
        let later: Vec<_> = seen
            .iter()
            .flatten()
            .filter(|cookie| *cookie != "own=1")
            .collect();
        assert_eq!(users + later.len(), 40);
        assert!(
            later.iter().all(|cookie| cookie.ends_with("; own=1")),
            "{later:?}"
        );
        let known: BTreeSet<_> = later
            .iter()
            .map(|cookie| cookie.split(';').next())
            .collect();
        assert!((2..=4).contains(&users), "{seen:?}");
        assert!(known.len() <= users && known.len() >= 2, "{seen:?}");
    });
}

#[test]
fn without_the_flag_nothing_is_remembered() {
    let (logic, seen) = numbering();
    over_each(&logic, "/shop/cart", "2", |flags| {
        let mut arguments = vec!["load", "-n", "6", "-c", "1"];
        arguments.extend(flags);
        plimsoll(&arguments).exits(0);
        assert!(seen.lock().unwrap().iter().all(Option::is_none));
    });
}

fn realm(algorithm: &'static str, uses: u32) -> DigestRealm {
    DigestRealm {
        algorithm,
        user: "ann",
        password: "a:b c",
        uses,
    }
}

#[test]
fn a_challenge_is_learnt_once_by_each_user() {
    for algorithm in ["MD5", "SHA-256"] {
        let (logic, log) = realm(algorithm, 1_000).logic();
        let mut welcome = 0;
        over_each(&logic, "/a?b=c", "2", |flags| {
            let mut arguments = vec!["load", "-n", "50", "-c", "2", "--digest", "ann:a:b c"];
            arguments.extend(["--expect", "status == 200", "--json", "-d", "hello"]);
            arguments.extend(flags);
            let output = plimsoll(&arguments).exits(0);
            let summary: serde_json::Value = serde_json::from_str(&output.stdout).unwrap();
            assert_eq!(summary["counts"]["ok"], 50, "{output}");
            assert_eq!(summary["statuses"]["200"], 50, "{output}");
            let mut log = log.lock().unwrap();
            welcome += 50;
            assert_eq!(log.welcome, welcome, "{log:?}");
            assert!((1..=4).contains(&log.unknown), "{log:?}");
            log.unknown = 0;
        });
        let log = log.lock().unwrap();
        assert!(log.refused.is_empty() && log.stale == 0, "{log:?}");
    }
}

#[test]
fn a_nonce_that_is_too_old_is_replaced_within_the_exchange() {
    let (logic, log) = realm("SHA-256", 10).logic();
    over_each(&logic, "/", "1", |flags| {
        let mut arguments = vec!["load", "-n", "41", "-c", "1", "--digest", "ann:a:b c"];
        arguments.extend(["--expect", "status == 200"]);
        arguments.extend(flags);
        plimsoll(&arguments).exits(0);
        let mut log = log.lock().unwrap();
        assert_eq!((log.welcome, log.unknown, log.stale), (41, 1, 4), "{log:?}");
        assert!(log.refused.is_empty(), "{log:?}");
        (log.welcome, log.unknown, log.stale) = (0, 0, 0);
    });
}

#[test]
fn a_wrong_password_is_answered_by_401() {
    let (logic, log) = realm("MD5", 1_000).logic();
    over_each(&logic, "/", "1", |flags| {
        let mut arguments = vec!["load", "-n", "5", "-c", "1", "--digest", "ann:wrong"];
        arguments.extend(["--expect", "status == 200"]);
        arguments.extend(flags);
        let output = plimsoll(&arguments).exits(1);
        assert!(output.stdout.contains("401"), "{output}");
        let mut log = log.lock().unwrap();
        assert_eq!(
            (log.welcome, log.unknown, log.refused.len()),
            (0, 1, 5),
            "{log:?}"
        );
        log.unknown = 0;
        log.refused.clear();
    });
}

#[test]
fn a_check_logs_in_on_the_connection_that_requested_it() {
    let (logic, log) = realm("SHA-256", 1).logic();
    let script = Script::new().then(Step::Reply(logic.clone()));
    let one = Origin::scripted(script);
    let flags = ["--digest", "ann:a:b c", "--expect", "status == 200"];
    let check = |more: &[&str]| {
        let mut arguments = vec!["check"];
        arguments.extend(flags);
        arguments.extend(more);
        plimsoll(&arguments)
    };
    check(&[&one.url("/x")]).exits(0);
    assert_eq!((one.connections(), one.requests()), (1, 2));
    let two = Http2Origin::builder().logic(logic).start();
    check(&["--http2", &two.url("/x")]).exits(0);
    assert_eq!((two.connections(), two.requests()), (1, 2));
    let log = log.lock().unwrap();
    assert_eq!((log.welcome, log.unknown), (2, 2), "{log:?}");
    drop(check(&["-H", "authorization: x", &one.url("/x")]).exits(2));
    let closing = Origin::builder()
        .script(|number| {
            let challenge = "HTTP/1.1 401 No\r\nwww-authenticate: Digest realm=\"r\", nonce=\"n\", qop=\"auth\"\r\n\
                             content-length: 0\r\nconnection: close\r\n\r\n";
            let welcome = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
            Script::answer_once(if number == 0 { challenge } else { welcome })
        })
        .start();
    check(&[&closing.url("/")]).exits(0);
    assert_eq!(closing.connections(), 2);
}

/// The file of passwords: user, realm and the MD5 of both with the password `secret`.
const APACHE_USERS: &str = "ann:the realm:c343e0364cc318adad9dbd8ce8ee1e6e\n";

/// Where Debian keeps the modules of Apache.
const APACHE_MODULES: &str = "/usr/lib/apache2/modules";

/// Starts Apache on `port`, with its files in `path`; it ends when the value is dropped.
fn apache(path: &Path, port: u16) -> Process {
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    fs::create_dir(path.join("site")).unwrap();
    fs::write(path.join("site/index.html"), "hello").unwrap();
    fs::write(path.join("users"), APACHE_USERS).unwrap();
    let configuration = include_str!("apache-digest.conf")
        .replace("{dir}", &path.display().to_string())
        .replace("{modules}", APACHE_MODULES)
        .replace("{port}", &port.to_string());
    fs::write(path.join("apache.conf"), configuration).unwrap();
    let command = format!("apache2 -DFOREGROUND -f {}/apache.conf", path.display());
    start(&command, port)
}

#[test]
fn apache_lets_us_in_though_its_nonces_grow_old() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let port = free_port().unwrap();
    let _apache = apache(path, port);
    let url = format!("http://127.0.0.1:{port}/index.html");
    for flags in [&["-c", "2"][..], &["-c", "1", "-p", "2", "--http2"]] {
        let mut arguments = vec!["load", "-n", "200", "-q", "100", "--json"];
        arguments.extend(["--digest", "ann:secret"]);
        arguments.extend(flags);
        arguments.push(&url);
        let output = plimsoll(&arguments).exits(0);
        let summary: serde_json::Value = serde_json::from_str(&output.stdout).unwrap();
        assert_eq!(summary["counts"]["ok"], 200, "{output}");
        assert_eq!(summary["statuses"]["200"], 200, "{output}");
    }
    let mut check = vec!["check", "--digest", "ann:secret"];
    check.extend(["--expect", "status == 200", "--http2", &url]);
    plimsoll(&check).exits(0);
    let logged = || fs::read_to_string(path.join("access.log")).unwrap_or_default();
    let count = |line: &str| logged().lines().filter(|logged| *logged == line).count();
    eventually(|| count("HTTP/1.1 ann 200") == 200 && count("HTTP/2.0 ann 200") == 201);
    // Each user is challenged at its first request and when its nonce has grown old, not at each one.
    let requests = logged()
        .lines()
        .filter(|line| line.ends_with(" 401"))
        .count();
    assert!((3..=20).contains(&requests), "{requests}:\n{}", logged());
    let mut wrong = vec![
        "check",
        "--digest",
        "ann:wrong",
        "--expect",
        "status == 200",
    ];
    wrong.push(&url);
    plimsoll(&wrong).exits(1);
}
