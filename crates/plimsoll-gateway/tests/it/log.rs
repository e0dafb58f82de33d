//! The access log of forwarded requests.

use std::fs;

use plimsoll_server::config::LogTarget;
use plimsoll_testkit::http::get;
use plimsoll_testkit::{MaterialFiles, Origin, eventually, refused_address};

use crate::server::{Served, configuration};

#[test]
fn a_line_names_the_server_the_attempts_and_the_phases() {
    let origin = Origin::hello();
    let files = MaterialFiles::new();
    let file = files.path("access.log");
    let refused = format!("http://{}", refused_address());
    let url = origin.url("");
    let url = url.trim_end_matches('/');
    let gateway = Served::new(&format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\n[log]\nfile = \"{}\"\n{}",
        file.display(),
        configuration(&[&refused, url], "")
    ));
    let path = file.clone();
    let log = gateway.log().expect("the configuration has a log");
    let _writer = log
        .write_to(Box::new(move || LogTarget::open_file(&path)))
        .unwrap();
    // Round robin: one of two requests comes to the server that refuses first.
    for _ in 0..2 {
        assert_eq!(get(gateway.address(), "/").text(), "hello");
    }
    let lines = || fs::read_to_string(&file).unwrap_or_default();
    eventually(|| lines().lines().count() == 2);
    let lines: Vec<serde_json::Value> = lines()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let mut attempts = Vec::new();
    for line in &lines {
        assert_eq!(line["upstream"], "all", "{line}");
        assert_eq!(line["server"], *url, "{line}");
        assert!(line["head_us"].as_u64().is_some(), "{line}");
        attempts.push(line["attempts"].as_u64().unwrap());
    }
    attempts.sort_unstable();
    assert_eq!(attempts, [1, 2], "{lines:?}");
    assert!(
        lines
            .iter()
            .any(|line| line["connect_us"].as_u64().is_some()),
        "{lines:?}"
    );
}
