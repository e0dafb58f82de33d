//! Certificates that `plimsoll up` orders of a real authority.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use plimsoll_testkit::{MaterialFiles, eventually};
use rustix::process::Signal;

use crate::pebble::{EXTERNAL_KEY, Pebble, PebbleOptions};
use crate::plimsoll::{command, plimsoll};
use crate::served::Served;

/// A server with a certificate of an authority.
struct Certified {
    files: MaterialFiles,
    port: u16,
}

impl Certified {
    /// - `more`: keys of `acme`, each with its comma before it.
    /// - `rest`: of the file.
    fn configure(pebble: &Pebble, names: &str, more: &str, rest: &str) -> Self {
        let keys = format!("names = {names}, contact = \"admin@a.test\"{more}");
        let rest = format!("[[route]]\nrespond = {{ body = \"hello\" }}\n{rest}");
        Self::ordering(pebble, &keys, &rest)
    }

    /// - `keys`: of `acme`.
    /// - `rest`: of the file.
    fn ordering(pebble: &Pebble, keys: &str, rest: &str) -> Self {
        let files = MaterialFiles::new();
        let (port, directory, ca) = (pebble.tls, pebble.directory(), pebble.ca());
        let ca = ca.display();
        files.write(
            "plimsoll.toml",
            &format!(
                "threads = 1\n[[listen]]\naddress = \"127.0.0.1:{port}\"\n\
                 tls = {{ acme = {{ directory = \"{directory}\", ca = \"{ca}\", \
                 accept_terms = true, {keys} }} }}\n{rest}"
            ),
        );
        Self { files, port }
    }

    fn start<const N: usize>(&self) -> (Served, [String; N], Heard) {
        let path = self.files.path("plimsoll.toml");
        // Orders, renewals and accounts are what a sandbox must not keep a server from.
        let arguments = ["up", &path.to_string_lossy(), "--sandbox"];
        let (mut served, more) = Served::with_more(&mut command(&arguments));
        let heard = Heard::listen_to(&mut served);
        (served, more, heard)
    }

    /// Whether a client that believes `root` is served as `name`.
    fn serves(&self, name: &str, root: &Path) -> bool {
        self.meets(name, "/", "body == hello", root)
    }

    /// Whether the response to a client that believes `root` meets a condition.
    fn meets(&self, name: &str, path: &str, expected: &str, root: &Path) -> bool {
        let port = self.port;
        let (url, root) = (
            format!("https://{name}:{port}{path}"),
            root.to_string_lossy(),
        );
        let resolve = format!("{name}:{port}:127.0.0.1");
        let arguments = ["check", &url, "--cacert", &root, "--resolve", &resolve];
        let output =
            plimsoll(&[&arguments[..], &["--timeout", "60s", "--expect", expected]].concat());
        output.code == Some(0)
    }

    /// Where the certificate of `name` is kept.
    fn certificate(&self, name: &str) -> PathBuf {
        self.folder().join(format!("{name}.pem"))
    }

    fn folder(&self) -> PathBuf {
        let acme = fs::read_dir(self.files.path("acme")).unwrap();
        let folders: Vec<_> = acme.map(|entry| entry.unwrap().path()).collect();
        assert_eq!(folders.len(), 1, "{folders:?}");
        folders[0].clone()
    }
}

/// What a server says on its standard error.
pub(crate) struct Heard(Arc<Mutex<String>>);

impl Heard {
    pub(crate) fn listen_to(served: &mut Served) -> Self {
        let heard = Arc::<Mutex<String>>::default();
        let stderr = BufReader::new(served.child.stderr.take().unwrap());
        let hearing = Arc::clone(&heard);
        std::thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                *hearing.lock().unwrap() += &(line + "\n");
            }
        });
        Self(heard)
    }

    pub(crate) fn says(&self, text: &str) -> bool {
        self.0.lock().unwrap().contains(text)
    }

    /// Waits until it says all of these.
    #[track_caller]
    pub(crate) fn eventually(&self, texts: &[&str]) {
        eventually(|| texts.iter().all(|text| self.says(text)));
    }
}

#[test]
fn a_certificate_is_proven_by_tls_renewed_and_counted() {
    let pebble = Pebble::configure(PebbleOptions {
        validity: Some(9),
        ..PebbleOptions::default()
    });
    let _running = pebble.start();
    let root = pebble.root();
    let admin = "[admin]\naddress = \"127.0.0.1:0\"\n";
    let server = Certified::configure(&pebble, "[\"a.test\", \"B.test\"]", "", admin);
    let (up, [admin], heard) = server.start();
    eventually(|| server.serves("a.test", &root));
    assert!(server.serves("b.test", &root), "it is for all of its names");
    let file = server.certificate("a.test");
    let account = server.folder().join("account.json");
    for secret in [&file, &account] {
        let mode = fs::metadata(secret).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{}", secret.display());
    }
    let first = fs::read_to_string(&file).unwrap();
    let opened = fs::read_to_string(&account).unwrap();
    eventually(|| fs::read_to_string(&file).unwrap() != first);
    eventually(|| server.serves("a.test", &root));
    assert_eq!(fs::read_to_string(&account).unwrap(), opened);
    heard.eventually(&["note: a.test, b.test: a certificate was issued"]);
    let metrics = format!("{admin}metrics");
    for expected in [
        "body contains 'plimsoll_acme_orders_total{certificate=\"a.test\",outcome=\"failed\"} 0'",
        "body contains 'plimsoll_acme_expiry_timestamp_seconds{certificate=\"a.test\"}'",
        "body matches 'outcome=\"issued\"} [2-9]'",
    ] {
        plimsoll(&["check", &metrics, "--expect", expected]).exits(0);
    }
    // A name without a challenge gets no certificate.
    let status = std::process::Command::new("openssl")
        .args(["s_client", "-alpn", "acme-tls/1", "-servername", "a.test"])
        .args(["-connect", &format!("127.0.0.1:{}", server.port)])
        .stdin(std::process::Stdio::null())
        .output()
        .expect("openssl is installed by `cargo xtask test`");
    assert!(!status.status.success());
    drop(up);
}

#[test]
fn a_failed_order_is_reported_and_tried_again_by_a_reload_and_what_came_is_kept() {
    let pebble = Pebble::configure(PebbleOptions {
        wants_external_account: true,
        ..PebbleOptions::default()
    });
    let clear = format!(
        "[[listen]]\naddress = \"127.0.0.1:{}\"\nredirect_https = true\n",
        pebble.http
    );
    let external = format!(
        ", challenge = \"http-01\", external_account = {{ id = \"kid-1\", key = \"{EXTERNAL_KEY}\" }}"
    );
    let server = Certified::configure(&pebble, "\"a.test\"", &external, &clear);
    let (up, [_], heard) = server.start();
    heard.eventually(&[
        "warning: a.test: no certificate could be had: ",
        "there is none, so clients are turned away",
        "hint: it is tried again in 2 minutes, and at once after SIGHUP",
    ]);
    // A client never gets a certificate for another name.
    let url = format!("https://127.0.0.1:{}/", pebble.tls);
    assert_ne!(plimsoll(&["check", &url, "--insecure"]).code, Some(0));
    let running = pebble.start();
    let root = pebble.root();
    up.signal(Signal::HUP);
    eventually(|| server.serves("a.test", &root));
    heard.eventually(&["note: a.test: a certificate was issued"]);
    drop((up, running));
    // Without the authority, what it gave is served on.
    let (_up, [_], heard) = server.start();
    eventually(|| server.serves("a.test", &root));
    assert!(!heard.says("certificate"), "{}", heard.0.lock().unwrap());
}

/// Orders certificates for the hosts of status pages.
fn on_demand(pebble: &Pebble, keys: &str, hosts: &[&str]) -> Certified {
    let rest = "[limits]\nhandshake_timeout = \"60s\"\n[admin]\naddress = \"127.0.0.1:0\"\n\
                [[route]]\nmonitor = \"monitor.toml\"\n";
    let server = Certified::ordering(pebble, &format!("on_demand = true{keys}"), rest);
    pages(&server, hosts);
    server
}

/// Has the monitor show a page at each of these hosts.
fn pages(server: &Certified, hosts: &[&str]) {
    let pages = hosts.iter().enumerate().map(|(number, host)| {
        format!(
            "[[page]]\nslug = \"page-{number}\"\ntitle = \"Page of {host}\"\nhost = \"{host}\"\n"
        )
    });
    let monitor = "[[monitor]]\nname = \"by hand\"\nmanual = true\n";
    server.files.write(
        "monitor.toml",
        &pages.fold(monitor.to_owned(), |all, page| all + &page),
    );
}

#[test]
fn hosts_of_status_pages_get_their_certificates_at_the_first_handshake() {
    let pebble = Pebble::configure(PebbleOptions::default());
    let running = pebble.start();
    let root = pebble.root();
    let server = on_demand(&pebble, "", &["a.test"]);
    let (up, [admin], heard) = server.start();
    // No page is there, so nothing is ordered and the client is turned away.
    assert!(!server.meets("b.test", "/", "status == 200", &root));
    let title = |host: &str| format!("body contains 'Page of {host}'");
    assert!(
        server.meets("a.test", "/", &title("a.test"), &root),
        "the first handshake waits for the certificate"
    );
    let feed = format!("body contains 'https://a.test:{}/'", server.port);
    assert!(server.meets("a.test", "/feed.atom", &feed, &root));
    heard.eventually(&["note: a.test: a certificate was issued"]);
    let metrics = |expected: &str| {
        let output = plimsoll(&["check", &format!("{admin}metrics"), "--expect", expected]);
        output.code == Some(0)
    };
    assert!(metrics(
        "body contains 'plimsoll_acme_orders_total{certificate=\"a.test\",outcome=\"issued\"} 1'"
    ));
    assert!(!metrics("body contains 'certificate=\"b.test\"'"));
    // A page that comes later, and goes again.
    pages(&server, &["a.test", "b.test"]);
    eventually(|| server.meets("b.test", "/", &title("b.test"), &root));
    assert!(server.meets("a.test", "/", &title("a.test"), &root));
    pages(&server, &["a.test"]);
    eventually(|| !server.meets("b.test", "/", "status == 200", &root));
    drop((up, running));
    // Without the authority, a certificate of an earlier run is shown.
    let (_up, [_], heard) = server.start();
    assert!(server.meets("a.test", "/", &title("a.test"), &root));
    assert!(!heard.says("certificate"), "{}", heard.0.lock().unwrap());
}

#[test]
fn certificates_on_demand_are_limited_and_a_failed_order_keeps_nobody_waiting() {
    let pebble = Pebble::configure(PebbleOptions::default());
    let root = {
        let _running = pebble.start();
        pebble.root()
    };
    let server = on_demand(&pebble, ", most_per_hour = 1", &["a.test", "b.test"]);
    let (_up, [_], heard) = server.start();
    // The authority is away.
    assert!(!server.meets("a.test", "/", "status == 200", &root));
    heard.eventually(&["warning: a.test: no certificate could be had: "]);
    assert!(!server.meets("a.test", "/", "status == 200", &root));
    assert!(!server.meets("b.test", "/", "status == 200", &root));
    heard.eventually(&[
        "warning: b.test: the certificate is ordered at ",
        "`most_per_hour = 1` is reached",
    ]);
}
