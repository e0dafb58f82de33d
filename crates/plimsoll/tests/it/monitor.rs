//! `plimsoll monitor` as a user runs it.

use std::fs;
use std::process::Command;

use plimsoll_testkit::{Origin, eventually, refused_address};
use rustix::process::Signal;
use tempfile::TempDir;

use crate::plimsoll::plimsoll;
use crate::served::Served;

#[test]
fn a_configuration_of_gatus_is_served_and_loaded_again_when_it_changes() {
    let folder = TempDir::new().unwrap();
    let origin = Origin::hello();
    let file = folder.path().join("gatus.yaml");
    let text = |name: &str| {
        let url = origin.url("/");
        format!(
            "endpoints:\n- name: {name}\n  url: {url}\n  interval: 200ms\n  conditions: ['[STATUS] == 200']\n"
        )
    };
    fs::write(&file, text("one")).unwrap();
    let path = file.to_str().unwrap();
    let mut served = Served::start(&["monitor", path, "--listen", "127.0.0.1:0"]);
    let statuses = "/api/v1/endpoints/statuses";
    eventually(|| served.answers(statuses, &["body.json($[0].results[0].success) == true"]));
    fs::write(&file, text("two")).unwrap();
    eventually(|| {
        served.answers(
            statuses,
            &[
                "body.json($[0].key) == _two",
                "body.json($[0].results[0].success) == true",
            ],
        )
    });
    fs::write(&file, "endpoints: [").unwrap();
    assert!(served.answers(statuses, &["body.json($[0].key) == _two"]));
    served.signal(Signal::TERM);
    assert_eq!(served.child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_monitor_whose_databases_are_away_starts_and_says_so() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("monitor.toml");
    let away = refused_address();
    let store = format!(
        "store = {{ postgres = \"postgres://plimsoll@{away}/a?sslmode=disable\", clickhouse = \"http://{away}/\" }}\n"
    );
    fs::write(&file, store).unwrap();
    let path = file.to_str().unwrap();
    let mut served = Served::start(&["monitor", path, "--listen", "127.0.0.1:0"]);
    let down = ["status == 503", "body.json($.status) == DOWN"];
    assert!(served.answers("/health", &down));
    served.signal(Signal::TERM);
    assert_eq!(served.child.wait().unwrap().code(), Some(0));
}

#[test]
fn errors_have_their_place_and_the_exit_code_of_usage() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("monitor.toml");
    let path = file.to_str().unwrap();
    fs::write(
        &file,
        "[[monitor]]\nname = \"a\"\nhtp = \"http://localhost\"\n",
    )
    .unwrap();
    let shown = plimsoll(&["monitor", path]).exits(2);
    assert!(
        shown
            .stderr
            .contains("monitor.toml:3:1: monitor[1].htp: unknown key"),
        "{shown}"
    );
    fs::write(
        &file,
        "store = \"memory\"\n[[monitor]]\nname = \"a\"\ntcp = \"localhost:1\"\n",
    )
    .unwrap();
    let valid = plimsoll(&["monitor", path, "--check"]).exits(0);
    assert!(valid.stdout.contains("1 monitor, no errors"), "{valid}");
    plimsoll(&["monitor", folder.path().join("none.toml").to_str().unwrap()]).exits(2);
}

#[test]
fn a_store_in_use_is_an_error_and_a_backup_of_it_is_restored() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("monitor.toml");
    let path = file.to_str().unwrap();
    fs::write(&file, "[[monitor]]\nname = \"a\"\nmanual = true\n").unwrap();
    let copy = folder.path().join("copy.db");
    let copy = copy.to_str().unwrap();
    let mut served = Served::start(&["monitor", path, "--listen", "127.0.0.1:0"]);
    let second = plimsoll(&["monitor", path, "--listen", "127.0.0.1:0"]).exits(3);
    assert!(
        second.stderr.contains("is in use by another process"),
        "{second}"
    );
    plimsoll(&["monitor", "backup", path, copy]).exits(0);
    plimsoll(&["monitor", "restore", path, copy, "--replace"]).exits(3);
    served.signal(Signal::TERM);
    served.child.wait().unwrap();
    plimsoll(&["monitor", "restore", path, copy]).exits(3);
    plimsoll(&["monitor", "restore", path, copy, "--replace"]).exits(0);
}

#[test]
fn tokens_and_imports_are_printed() {
    let token = plimsoll(&["monitor", "token", "ann", "--write"])
        .exits(0)
        .stdout;
    assert!(
        token.starts_with("pm_") && token.contains("scopes = [\"read\", \"write\"]"),
        "{token}"
    );
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("backup.json");
    fs::write(&file, r#"{"monitorList": [{"name": "db", "type": "port", "hostname": "db", "port": 5432}, {"name": "q", "type": "gamedig"}]}"#).unwrap();
    let shown = plimsoll(&["monitor", "import", file.to_str().unwrap()]).exits(0);
    assert!(shown.stdout.contains("tcp = \"db:5432\""), "{shown}");
    assert!(
        shown
            .stderr
            .contains("q: is left out: the type `gamedig` is not supported"),
        "{shown}"
    );
}

#[test]
fn incidents_are_declared_and_resolved_from_the_command_line() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("monitor.toml");
    // The token is `secret`.
    fs::write(
        &file,
        "store = \"memory\"\n[[monitor]]\nname = \"a\"\nmanual = true\n[[page]]\nslug = \"p\"\ntitle = \"P\"\n\
         [[token]]\nname = \"ann\"\nsha256 = \"2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b\"\nscopes = [\"write\"]\n",
    )
    .unwrap();
    let served = Served::start(&["monitor", file.to_str().unwrap(), "--listen", "127.0.0.1:0"]);
    let url = served.url.clone();
    let incident = |arguments: &[&str]| {
        let common = ["--url", url.as_str(), "--token", "secret"];
        plimsoll(&[&["monitor", "incident"], arguments, &common].concat())
    };
    let opened = incident(&["open", "Search is slow", "--monitor", "_a"]).exits(0);
    assert!(
        opened.stdout.starts_with("1  investigating  minor  "),
        "{opened}"
    );
    assert!(served.answers(
        "/status/p/incidents/d1",
        &["body contains 'Search is slow'"]
    ));
    let updated =
        incident(&["update", "1", "--phase", "identified", "-m", "A full disk."]).exits(0);
    assert!(updated.stdout.starts_with("1  identified"), "{updated}");
    incident(&["resolve", "1"]).exits(0);
    let listed = incident(&["list"]).exits(0);
    assert!(listed.stdout.starts_with("1  resolved  minor"), "{listed}");
    assert_eq!(incident(&["list", "--open"]).exits(0).stdout.trim(), "");
    let wrong = incident(&["update", "1", "--phase", "done"]).exits(2);
    assert!(
        wrong
            .stderr
            .contains("`phase` must be one of investigating"),
        "{wrong}"
    );
    incident(&["update", "1"]).exits(2);
    let refused = plimsoll(&[
        "monitor", "incident", "resolve", "1", "--url", &url, "--token", "x",
    ])
    .exits(3);
    assert!(
        refused.stderr.contains("PLIMSOLL_MONITOR_TOKEN"),
        "{refused}"
    );
    let nowhere = format!("http://{}", refused_address());
    let alone = plimsoll(&["monitor", "list", "--url", &nowhere]).exits(3);
    assert!(alone.stderr.contains("plimsoll monitor"), "{alone}");
    assert!(alone.stderr.contains("--url"), "{alone}");
}

#[test]
fn pages_are_exported_and_served_as_files() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("monitor.toml");
    // The password is `pass`.
    fs::write(
        &file,
        "store = \"memory\"\n[[monitor]]\nname = \"ä/b\"\nmanual = true\n[[page]]\nslug = \"p\"\ntitle = \"Public\"\n\
         [[page]]\nslug = \"q\"\ntitle = \"Q\"\n\
         password_bcrypt = \"$2y$04$OgyOjAH7yqq6VkZJkltmJO/cTlhvZ9b85Hp2bXZTT9pzaUPfMgAvq\"\n",
    )
    .unwrap();
    let served = Served::start(&["monitor", file.to_str().unwrap(), "--listen", "127.0.0.1:0"]);
    let files = folder.path().join("files");
    let export = |more: &[&str]| {
        let common = [
            "monitor",
            "export-pages",
            files.to_str().unwrap(),
            "--url",
            &served.url,
        ];
        plimsoll(&[&common, more].concat())
    };
    let exported = export(&[]).exits(0);
    assert!(exported.stdout.contains(" files in "), "{exported}");
    export(&["--page", "p"]).exits(0);
    // Again, over what is there.
    export(&["--page", "p"]).exits(0);
    let closed = export(&["--page", "q"]).exits(3);
    assert!(closed.stderr.contains("password"), "{closed}");
    let missing = export(&["--page", "none"]).exits(3);
    assert!(missing.stderr.contains("--page"), "{missing}");
    let site = Served::start(&["serve", files.to_str().unwrap(), "--listen", "127.0.0.1:0"]);
    for base in ["/", "/status/p/"] {
        for (path, condition) in [
            ("", "body contains 'Public'"),
            ("history/", "body contains 'No incidents'"),
            ("badge.svg", "body contains 'Public'"),
            ("api/v2/status.json", "body contains 'indicator'"),
            ("feed.atom", "body contains '<feed'"),
        ] {
            assert!(
                site.answers(&format!("{base}{path}"), &[condition]),
                "{base}{path}"
            );
        }
        let page = fs::read_to_string(files.join(base.trim_start_matches('/')).join("index.html"))
            .unwrap();
        let links = page.split(['"', '\'']).filter(|link| {
            link.starts_with(base) && (link.contains("/assets/") || link.contains("/components/"))
        });
        let mut count = 0;
        for link in links {
            let path = link.split('?').next().unwrap();
            let path = if path.contains("/assets/") {
                path.to_owned()
            } else {
                format!("{path}/")
            };
            assert!(site.answers(&path, &["status == 200"]), "{path}");
            count += 1;
        }
        assert!(count >= 3, "{count} links in\n{page}");
    }
    assert!(!files.join("events").exists() && !files.join("status/q").exists());
}

#[test]
fn channels_are_tried() {
    let folder = TempDir::new().unwrap();
    let origin = Origin::hello();
    let file = folder.path().join("monitor.toml");
    let path = file.to_str().unwrap();
    let text = format!(
        "store = \"memory\"\n[[monitor]]\nname = \"a\"\nmanual = true\n\
         [[notify]]\nname = \"good\"\nwebhook = {{ url = \"{}\" }}\n\
         [[notify]]\nname = \"bad\"\nwebhook = {{ url = \"http://{}/\" }}\n",
        origin.url("/hook"),
        refused_address(),
    );
    fs::write(&file, text).unwrap();
    let good = plimsoll(&["monitor", "notify-test", path, "good"]).exits(0);
    assert_eq!(good.stdout.trim(), "good: sent");
    assert!(
        origin.heads().concat().starts_with("POST /hook"),
        "{:?}",
        origin.heads()
    );
    let all = plimsoll(&["monitor", "notify-test", path]).exits(1);
    assert!(
        all.stderr.contains("bad") && all.stderr.contains("refused"),
        "{all}"
    );
    let none = plimsoll(&["monitor", "notify-test", path, "god"]).exits(2);
    assert!(none.stderr.contains("channels are good, bad"), "{none}");
}

#[test]
fn an_agent_checks_over_a_connection_and_stops_on_a_signal() {
    let folder = TempDir::new().unwrap();
    let token = plimsoll(&["monitor", "token", "far", "--agent"]).exits(0);
    let (token, lines) = token.stdout.split_once("\n\n").unwrap();
    let origin = Origin::hello();
    let file = folder.path().join("monitor.toml");
    let text = format!(
        "store = \"memory\"\nregion = \"home\"\n{lines}\n[[monitor]]\nname = \"web\"\nhttp = \"{}\"\ninterval = \"200ms\"\nfrom = [\"far\"]\n",
        origin.url("/")
    );
    fs::write(&file, text).unwrap();
    let served = Served::start(&["monitor", file.to_str().unwrap(), "--listen", "127.0.0.1:0"]);
    let kept = folder.path().join("token");
    fs::write(&kept, format!("{token}\n")).unwrap();
    let state = folder.path().join("work.toml");
    let url = served.url.clone();
    let child = Command::new(env!("CARGO_BIN_EXE_plimsoll"))
        .args(["monitor", "agent", &url, "--token-file"])
        .arg(&kept)
        .arg("--state")
        .arg(&state)
        .spawn()
        .unwrap();
    let mut agent = Served {
        child,
        url: url.clone(),
    };
    eventually(|| {
        served.answers(
            "/api/v1/monitors/_web",
            &[
                "body.json($.health) == up",
                "body.json($.regions[0].name) == far",
            ],
        )
    });
    assert!(
        fs::read_to_string(&state)
            .unwrap()
            .contains("name = \"web\"")
    );
    agent.signal(Signal::TERM);
    assert_eq!(agent.child.wait().unwrap().code(), Some(0));
    plimsoll(&["monitor", "agent", &url]).exits(2);
}

#[test]
fn a_script_is_a_monitor() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("monitor.toml");
    let script = |body: &str| {
        let text = format!(
            "import {{ check }} from 'k6';\nexport default function () {{ check(null, {{ {body} }}); }}\n"
        );
        fs::write(folder.path().join("shop.js"), text).unwrap();
    };
    script("'the cart is there': () => true");
    let text = "store = \"memory\"\n[[monitor]]\nname = \"shop\"\nscript = \"shop.js\"\ninterval = \"300ms\"\nconfirm = 1\nrecover = 1\n";
    fs::write(&file, text).unwrap();
    let path = file.to_str().unwrap();
    let served = Served::start(&["monitor", path, "--listen", "127.0.0.1:0"]);
    let monitor = "/api/v1/monitors/_shop";
    eventually(|| served.answers(monitor, &["body.json($.health) == up"]));
    script("'the cart is there': () => false");
    eventually(|| {
        served.answers(
            monitor,
            &[
                "body.json($.health) == down",
                "body contains 'the cart is there'",
            ],
        )
    });
    drop(served);
    fs::write(
        folder.path().join("shop.js"),
        "export default function () {",
    )
    .unwrap();
    let shown = plimsoll(&["monitor", path, "--check"]).exits(2);
    assert!(shown.stderr.contains("monitor.toml:4:10"), "{shown}");
}

#[test]
fn every_worker_serves_the_monitor_from_its_first_request_on() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("monitor.toml");
    let text = "store = \"store.db\"\n[[monitor]]\nname = \"here\"\ntcp = \"127.0.0.1:9\"\n";
    fs::write(&file, text).unwrap();
    let served = Served::start(&[
        "monitor",
        file.to_str().unwrap(),
        "--listen",
        "127.0.0.1:0",
        "--threads",
        "8",
    ]);
    // Each request opens a connection, which the system hands to one of the workers.
    for _ in 0..64 {
        assert!(served.answers("/health", &["status == 200"]));
    }
}
