//! The rights that servers give up: `--user` and `--sandbox`.

use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};

use plimsoll_testkit::{Authority, MaterialFiles, eventually};
use rustix::process::{Signal, geteuid};
use tempfile::TempDir;

use crate::acme::Heard;
use crate::mock::mock;
use crate::plimsoll::{command, plimsoll};
use crate::served::Served;

/// A user and a group, of which the system may have no entry.
const USER: u32 = 64_123;
const GROUP: u32 = 64_124;
const USER_AND_GROUP: &str = "64123:64124";

/// A folder that every user may read, in `/tmp`, where the folder of a test is for its user alone.
struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        Self(folder)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    fn write(&self, name: &str, content: &str) -> String {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        self.text(name)
    }
}

/// Whether this test may start servers as root; only root can become another user.
fn is_root() -> bool {
    geteuid().is_root()
}

/// The values of a field in `/proc/PID/task/*/status`, one for each thread.
fn of_threads(served: &Served, field: &str) -> Vec<String> {
    let tasks = format!("/proc/{}/task", served.child.id());
    let statuses = fs::read_dir(tasks).unwrap().map(|task| {
        let status = fs::read_to_string(task.unwrap().path().join("status")).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(field));
        line.and_then(|line| line.strip_prefix(':'))
            .unwrap_or_else(|| panic!("no {field} in {status}"))
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
    });
    statuses.collect()
}

#[track_caller]
fn all_threads_have(served: &Served, field: &str, expected: &str) {
    for found in of_threads(served, field) {
        assert_eq!(found, expected, "{field}");
    }
}

fn up(body: &str, more: &str) -> String {
    format!(
        "threads = 2\n[[listen]]\naddress = \"127.0.0.1:0\"\n{more}\n[[route]]\nrespond = {{ body = \"{body}\" }}\n"
    )
}

#[test]
fn a_server_binds_as_root_and_is_its_user_from_then_on() {
    if !is_root() {
        return;
    }
    let folder = Folder::new();
    folder.write("site/index.html", "hello");
    let site = folder.text("site");
    let free = (600..1024).find(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok());
    let address = format!("127.0.0.1:{}", free.unwrap());
    let served = Served::start(&[
        "serve",
        &site,
        "--listen",
        &address,
        "--user",
        USER_AND_GROUP,
        "--sandbox",
    ]);
    assert!(served.answers("/", &["body == hello"]));
    all_threads_have(&served, "Uid", &[USER.to_string().as_str(); 4].join(" "));
    all_threads_have(&served, "Gid", &[GROUP.to_string().as_str(); 4].join(" "));
    all_threads_have(&served, "Groups", &GROUP.to_string());
    for set in ["CapPrm", "CapEff", "CapAmb"] {
        all_threads_have(&served, set, "0000000000000000");
    }
}

#[test]
fn a_file_that_the_user_cannot_read_is_an_error_at_the_start() {
    if !is_root() {
        return;
    }
    let folder = Folder::new();
    let leaf = Authority::new().issue(&["localhost"]);
    let certificate = folder.write("cert.pem", leaf.pem());
    let key = folder.write("key.pem", leaf.key_pem());
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    let tls = format!("tls = {{ cert = \"{certificate}\", key = \"{key}\" }}");
    let file = folder.write("plimsoll.toml", &up("hello", &tls));
    let arguments = ["up", &file, "--user", USER_AND_GROUP];
    let output = plimsoll(&arguments).exits(2);
    assert!(output.stderr.contains("key.pem"), "{output}");
    assert!(output.stderr.contains("Permission denied"), "{output}");
    chown(&key, Some(USER), None).unwrap();
    let served = Served::start(&arguments);
    assert!(served.answers("/", &["body == hello"]));
}

#[test]
fn what_a_server_writes_belongs_to_its_user_and_to_no_other() {
    if !is_root() {
        return;
    }
    let folder = Folder::new();
    let state = folder.path("state");
    fs::create_dir(&state).unwrap();
    chown(&state, Some(USER), Some(GROUP)).unwrap();
    let log = folder.text("state/access.log");
    let log = format!("[log]\nfile = \"{log}\"\n");
    let file = folder.write("plimsoll.toml", &(up("hello", "") + &log));
    let served = Served::start(&["up", &file, "--user", USER_AND_GROUP]);
    assert!(served.answers("/", &["body == hello"]));
    let mut written = vec![state.join("access.log")];
    #[cfg(feature = "monitor")]
    let _monitor = {
        folder.write("monitor.toml", "store = \"state/monitor.db\"\n");
        let file = folder.text("monitor.toml");
        written.push(state.join("monitor.db"));
        let arguments = [
            "monitor",
            &file,
            "--listen",
            "127.0.0.1:0",
            "--user",
            USER_AND_GROUP,
        ];
        Served::start(&arguments)
    };
    for path in written.drain(..) {
        eventually(|| path.exists());
        let metadata = fs::metadata(&path).unwrap();
        let found = (metadata.uid(), metadata.gid(), metadata.mode() & 0o777);
        assert_eq!(found, (USER, GROUP, 0o600), "{}", path.display());
    }
}

#[test]
fn a_user_that_cannot_be_had_is_refused() {
    let folder = Folder::new();
    let file = folder.write("plimsoll.toml", &up("hello", ""));
    for (user, message) in [
        ("no-such-user-4711", "there is no user `no-such-user-4711`"),
        ("4711471", "name a group too, as in `4711471:4711471`"),
        ("a:b:c", "must be a user"),
    ] {
        let output = plimsoll(&["up", &file, "--user", user]).exits(2);
        assert!(output.stderr.contains(message), "{output}");
    }
}

#[test]
fn every_server_dumps_no_core_and_keeps_its_files_private() {
    let folder = Folder::new();
    let origin = Served::start(&["up", &folder.write("origin.toml", &up("hello", ""))]);
    let mut servers = servers(&folder, &origin.url, &[]);
    let observe = ["observe", "--listen", "127.0.0.1:0", "--allow", "pid"];
    servers.push(observe.map(str::to_owned).to_vec());
    for arguments in servers {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let served = Served::start(&arguments);
        all_threads_have(&served, "Umask", "0077");
        let limits = fs::read_to_string(format!("/proc/{}/limits", served.child.id())).unwrap();
        let core = limits.lines().find(|line| line.starts_with("Max core"));
        let words: Vec<_> = core.unwrap().split_whitespace().collect();
        assert_eq!(words[4..6], ["0", "0"], "{arguments:?}: {limits}");
    }
}

/// Whether the kernel can do what `--sandbox` needs.
fn has_sandbox(heard: &Heard) -> bool {
    heard.eventually(&["--sandbox: "]);
    heard.says("files restricted") && heard.says("system calls filtered")
}

/// The command line of every server that can be confined.
///
/// - `origin`: what the gateway is in front of.
/// - `more`: flags that all of them get.
fn servers(folder: &Folder, origin: &str, more: &[&str]) -> Vec<Vec<String>> {
    folder.write("site/index.html", "hello");
    let site = folder.text("site");
    let rules = folder.write(
        "rules.toml",
        "[[rules]]\nwhen.request.url_path = \"/\"\nrespond.text = \"hello\"\n",
    );
    let own = folder.write("plimsoll.toml", &up("hello", ""));
    #[cfg(feature = "monitor")]
    let monitor = folder.write("monitor.toml", "store = \"monitor.db\"\n");
    let listen = ["--listen", "127.0.0.1:0"];
    let servers: &[&[&str]] = &[
        &["up", &own],
        &["serve", &site, listen[0], listen[1]],
        &["mock", &site, listen[0], listen[1]],
        &["mock", &rules, listen[0], listen[1]],
        &["gateway", "--to", origin, listen[0], listen[1]],
        #[cfg(feature = "monitor")]
        &["monitor", &monitor, listen[0], listen[1]],
    ];
    let whole = |words: &&[&str]| {
        let words = words.iter().chain(more);
        words.map(|word| (*word).to_owned()).collect()
    };
    servers.iter().map(whole).collect()
}

#[test]
fn all_threads_of_every_server_are_in_the_sandbox() {
    let folder = Folder::new();
    let origin = Served::start(&["up", &folder.write("origin.toml", &up("hello", ""))]);
    for arguments in servers(&folder, &origin.url, &["--sandbox"]) {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let mut served = Served::start(&arguments);
        let heard = Heard::listen_to(&mut served);
        if !has_sandbox(&heard) {
            return;
        }
        let path = if arguments[0] == "monitor" {
            "/health"
        } else {
            "/"
        };
        eventually(|| served.answers(path, &["status == 200"]));
        all_threads_have(&served, "Seccomp", "2");
        all_threads_have(&served, "NoNewPrivs", "1");
        served.signal(Signal::TERM);
        assert_eq!(
            served.child.wait().unwrap().code(),
            Some(0),
            "{arguments:?}"
        );
    }
}

/// Puts a link in the place of another one.
fn switch(link: &Path, target: &Path) {
    let new = link.with_extension("new");
    symlink(target, &new).unwrap();
    fs::rename(&new, link).unwrap();
}

#[test]
fn a_site_is_followed_within_the_sandbox_and_not_out_of_it() {
    let (folder, elsewhere) = (Folder::new(), Folder::new());
    folder.write("releases/1/index.html", "one");
    folder.write("releases/2/index.html", "two");
    elsewhere.write("index.html", "elsewhere");
    for is_confined in [true, false] {
        let current = folder.path("current");
        fs::remove_file(&current).ok();
        switch(&current, &folder.path("releases/1"));
        let site = folder.text("current");
        let mut arguments = vec!["serve", &site, "--listen", "127.0.0.1:0"];
        arguments.extend(is_confined.then_some("--sandbox"));
        let mut served = Served::start(&arguments);
        let heard = Heard::listen_to(&mut served);
        if is_confined && !has_sandbox(&heard) {
            continue;
        }
        assert!(served.answers("/", &["body == one"]));
        switch(&current, &folder.path("releases/2"));
        eventually(|| served.answers("/", &["body == two"]));
        switch(&current, elsewhere.0.path());
        if is_confined {
            eventually(|| served.answers("/", &["status >= 400"]));
        } else {
            eventually(|| served.answers("/", &["body == elsewhere"]));
        }
    }
}

#[test]
fn a_reload_that_names_a_path_outside_is_refused_by_name_and_place() {
    let (folder, elsewhere) = (Folder::new(), Folder::new());
    folder.write("own/one.html", "one");
    folder.write("own/two.html", "two");
    let secret = elsewhere.write("secret.html", "secret");
    let route = |file: &str| {
        format!(
            "threads = 1\n[[listen]]\naddress = \"127.0.0.1:0\"\n[[route]]\nrespond = {{ file = \"{file}\" }}\n"
        )
    };
    let file = folder.write("plimsoll.toml", &route("own/one.html"));
    let mut served = Served::start(&["up", &file, "--sandbox"]);
    let heard = Heard::listen_to(&mut served);
    if !has_sandbox(&heard) {
        return;
    }
    assert!(served.answers("/", &["body == one"]));
    folder.write("plimsoll.toml", &route(&secret));
    served.signal(Signal::HUP);
    heard.eventually(&[
        "plimsoll.toml:5:20: route[1].respond.file:",
        &format!("{secret} is not among the paths that the sandbox permits since the start"),
        "hint: restart the server to use it",
    ]);
    assert!(served.answers("/", &["body == one"]));
    // A file that takes the place of another one, as editors and certificate tools write them.
    fs::write(folder.path("new.toml"), route("own/two.html")).unwrap();
    fs::rename(folder.path("new.toml"), folder.path("plimsoll.toml")).unwrap();
    served.signal(Signal::HUP);
    eventually(|| served.answers("/", &["body == two"]));
}

#[test]
fn every_part_of_a_server_refuses_a_path_outside_by_name() {
    let (folder, elsewhere) = (Folder::new(), Folder::new());
    folder.write("own/index.html", "own");
    for name in [
        "servers",
        "ca",
        "cert",
        "key",
        "links",
        "rules",
        "monitor.toml",
    ] {
        elsewhere.write(name, "");
    }
    for name in ["site", "mock"] {
        fs::create_dir(elsewhere.path(name)).unwrap();
    }
    let file = folder.write("plimsoll.toml", &up("hello", ""));
    let mut served = Served::start(&["up", &file, "--sandbox"]);
    let heard = Heard::listen_to(&mut served);
    if !has_sandbox(&heard) {
        return;
    }
    let upstream = |tls: &str| {
        format!("[upstream.a]\nservers = [\"https://127.0.0.1:1\"]\ntls = {{ {tls} }}\n")
    };
    let route = |action: &str| format!("[[route]]\npath = \"/more/\"\n{action}\n");
    let other = |name: &str| elsewhere.text(name);
    for (name, part) in [
        (
            "servers",
            format!("[upstream.a]\nfile = \"{}\"\n", other("servers")),
        ),
        ("ca", upstream(&format!("ca = \"{}\"", other("ca")))),
        (
            "key",
            upstream(&format!(
                "cert = \"own/index.html\", key = \"{}\"",
                other("key")
            )),
        ),
        (
            "site",
            route(&format!("files = {{ root = \"{}\" }}", other("site"))),
        ),
        (
            "links",
            route(&format!(
                "files = {{ root = \"own\", redirects = \"{}\" }}",
                other("links")
            )),
        ),
        (
            "mock",
            route(&format!("mock = {{ dir = \"{}\" }}", other("mock"))),
        ),
        (
            "rules",
            route(&format!("mock = {{ file = \"{}\" }}", other("rules"))),
        ),
        (
            "recorded",
            route(&format!(
                "mock = {{ record = \"http://127.0.0.1:1\", dir = \"{}\" }}",
                other("recorded")
            )),
        ),
        #[cfg(feature = "monitor")]
        (
            "monitor.toml",
            route(&format!("monitor = \"{}\"", other("monitor.toml"))),
        ),
        (
            "access.log",
            format!("[log]\nfile = \"{}\"\n", other("access.log")),
        ),
        (
            "web.sock",
            format!("[[listen]]\naddress = \"unix:{}\"\n", other("web.sock")),
        ),
    ] {
        folder.write("plimsoll.toml", &(up("another", "") + &part));
        served.signal(Signal::HUP);
        heard.eventually(&[&format!("{} is not among the paths", other(name))]);
        assert!(served.answers("/", &["body == hello"]), "{name}");
    }
    assert!(!elsewhere.path("recorded").exists());
}

#[test]
fn logs_are_rotated_and_recordings_written_in_the_sandbox() {
    let folder = Folder::new();
    let log = folder.text("log/access.log");
    fs::create_dir(folder.path("log")).unwrap();
    let text = up("hello", "") + &format!("[log]\nfile = \"{log}\"\n");
    let file = folder.write("plimsoll.toml", &text);
    let served = Served::start(&["up", &file, "--sandbox"]);
    let has_line =
        |name: &str| fs::read_to_string(folder.path(name)).is_ok_and(|it| it.contains("GET"));
    assert!(served.answers("/", &["body == hello"]));
    eventually(|| has_line("log/access.log"));
    fs::rename(
        folder.path("log/access.log"),
        folder.path("log/access.log.1"),
    )
    .unwrap();
    served.signal(Signal::HUP);
    eventually(|| {
        assert!(served.answers("/", &["body == hello"]));
        has_line("log/access.log")
    });
    let out = folder.text("recorded/here");
    let recorded = mock(&["--record", &served.url, "-o", &out, "--sandbox"]);
    assert!(recorded.answers("/a", &["body == hello"]));
    eventually(|| folder.path("recorded/here/rules.toml").exists());
}

#[test]
fn the_socket_of_a_takeover_needs_a_folder_of_its_own_in_the_sandbox() {
    let folder = Folder::new();
    let file = folder.write("plimsoll.toml", &up("hello", ""));
    let socket = "/tmp/plimsoll-takeover-of-no-process.sock";
    let output = plimsoll(&["up", &file, "--takeover", socket, "--sandbox"]).exits(2);
    assert!(output.stderr.contains(socket), "{output}");
    assert!(
        output
            .stderr
            .contains("such as /run/plimsoll/takeover.sock"),
        "{output}"
    );
}

#[test]
fn the_environment_turns_the_sandbox_on() {
    let files = MaterialFiles::new();
    let file = files.write("plimsoll.toml", &up("hello", ""));
    let mut program = command(&["up", &file.to_string_lossy()]);
    let mut served = Served::start_program(program.env("PLIMSOLL_SANDBOX", "1"));
    Heard::listen_to(&mut served).eventually(&["--sandbox: "]);
    let output = plimsoll(&["up", "--check", &file.to_string_lossy()]).exits(0);
    assert!(!output.stderr.contains("--sandbox"), "{output}");
}
