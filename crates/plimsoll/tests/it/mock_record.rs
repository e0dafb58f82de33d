//! `plimsoll mock --record`: a real server is recorded, then answered for.

use std::fs;

use plimsoll_testkit::{Authority, MaterialFiles, eventually};

use crate::mock::mock;
use crate::plimsoll::plimsoll;

const RULES: &str = r#"
[[rules]]
when.request.url_path = "/users"
when.request.query.page = "2"
respond.json = '[{ "id": 3 }]'

[[rules]]
when.request.url_path = "/users"
respond.json = '[{ "id": 1 }]'

[[rules]]
when.request.url_path = "/login"
respond = { json = '{ "access_token": "hunter2", "user": "ann", "pin": "1234" }', headers = { set-cookie = "sid=hunter2; Path=/" } }

[[rules]]
when.request.url_path = "/turn"
respond.sequence = [{ status = 503 }, { text = "ready" }]

[[rules]]
when.request.url_path = "/long"
respond = { file_path = "long.html", status = 404 }
"#;

#[test]
fn what_a_server_answered_is_answered_without_it() {
    let files = MaterialFiles::new();
    let rules = files.write("rules.toml", RULES);
    let long = format!("<p>{}</p>", "long ".repeat(1000));
    files.write("long.html", &long);
    let real = mock(&[&rules.to_string_lossy()]);
    let out = files.path("recorded");
    let folder = out.to_string_lossy();
    let recorded = mock(&["--record", &real.url, "-o", &folder, "--redact", "pin"]);
    let all: [(&str, &[&str]); 7] = [
        ("/users", &["status == 200", "body contains \"1\""]),
        ("/users?page=2", &["status == 200", "body contains \"3\""]),
        ("/login", &["status == 200", "body contains \"ann\""]),
        ("/turn", &["status == 503"]),
        ("/turn", &["status == 200", "body contains \"ready\""]),
        ("/long", &["status == 404", "body contains \"long long\""]),
        ("/none", &["status == 404"]),
    ];
    for (path, conditions) in all {
        assert!(recorded.answers(path, conditions), "{path}");
    }
    let rules = out.join("rules.toml");
    eventually(|| fs::read_to_string(&rules).is_ok_and(|text| text.contains("/none")));
    drop(recorded);
    drop(real);
    let text = fs::read_to_string(&rules).unwrap();
    for secret in ["hunter2", "1234"] {
        assert!(!text.contains(secret), "{text}");
    }
    let replayed = mock(&[&folder]);
    for (path, conditions) in all {
        assert!(replayed.answers(path, conditions), "{path}");
    }
    // Nothing is recorded over a recording.
    let output = plimsoll(&["mock", "--record", &replayed.url, "-o", &folder]).exits(2);
    assert!(
        output.stderr.contains("nothing is recorded over it"),
        "{output}"
    );
    plimsoll(&["mock", "--record", "http://127.0.0.1:1"]).exits(2);
}

#[test]
fn the_certificate_of_the_real_server_is_checked_unless_it_must_not_be() {
    let files = MaterialFiles::new();
    let authority = Authority::new();
    let leaf = authority.issue(&["127.0.0.1"]);
    let path = |name: &str, text: &str| files.write(name, text).to_string_lossy().into_owned();
    let ca = path("ca.pem", &authority.pem());
    let other = path("other.pem", &Authority::new().pem());
    let (cert, key) = (
        path("cert.pem", leaf.pem()),
        path("key.pem", leaf.key_pem()),
    );
    let rules = path("rules.toml", RULES);
    files.write("long.html", "long");
    let real = mock(&[&rules, "--cert", &cert, "--key", &key]);
    assert!(real.url.starts_with("https://127.0.0.1"), "{}", real.url);
    let cases: [(&str, &[&str], &str); 4] = [
        ("by-ca", &["--ca", &ca], "status == 200"),
        ("by-other", &["--ca", &other], "status == 502"),
        ("by-none", &[], "status == 502"),
        ("insecure", &["--insecure"], "status == 200"),
    ];
    for (name, flags, condition) in cases {
        let out = files.path(name);
        let folder = out.to_string_lossy();
        let arguments = [&["--record", real.url.as_str(), "-o", &folder], flags].concat();
        let recorded = mock(&arguments);
        assert!(recorded.answers("/users", &[condition]), "{name}");
        // What could not be fetched is not kept.
        if condition == "status == 200" {
            let rules = out.join("rules.toml");
            eventually(|| fs::read_to_string(&rules).is_ok_and(|text| text.contains("/users")));
        }
    }
}
