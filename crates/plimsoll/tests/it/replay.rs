//! Access logs as a load.

use std::fs;

use plimsoll_testkit::Origin;

use crate::plimsoll::{CommandOutput, plimsoll};

/// Lines of two hosts over two seconds, with one that has a body and one that is no request.
const LOG: &str = r#"{"ts":1795684320.0,"request":{"method":"GET","host":"a.example","uri":"/one"},"status":200}
{"ts":1795684320.5,"request":{"method":"POST","host":"a.example","uri":"/form"},"status":303}
{"ts":1795684321.0,"request":{"method":"GET","host":"b.example","uri":"/two?x=%20{{y}}"},"status":404}
{"ts":1795684321.5,"request":{"method":"GET","host":"a.example","uri":"/one"},"status":200}
{"ts":1795684321.75,"request":{"method":"GET","host":"a.example","uri":"/socket"},"status":101}
{"ts":1795684322.0,"request":{"method":"HEAD","host":"a.example","uri":"/api/three"},"status":200}
"#;

fn replay(arguments: &[&str]) -> CommandOutput {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("access.log");
    fs::write(&path, LOG).unwrap();
    let path = path.to_str().unwrap();
    plimsoll(&[&["load", "--from", path, "--json"], arguments].concat())
}

/// The request lines that `origin` received, without the version.
fn received(origin: &Origin) -> Vec<String> {
    let heads = origin.heads();
    let lines = heads.iter().filter_map(|head| head.lines().next());
    lines
        .map(|line| line.trim_end_matches(" HTTP/1.1").to_owned())
        .collect()
}

#[test]
fn a_log_is_replayed_once_in_its_order_and_at_its_times() {
    for pace in ["max", "20x"] {
        let origin = Origin::hello();
        let output = replay(&["--pace", pace, "-c", "1", &origin.url("/")]).exits(0);
        let expected = [
            "GET /one",
            "GET /two?x=%20{{y}}",
            "GET /one",
            "HEAD /api/three",
        ];
        assert_eq!(received(&origin), expected, "{output}");
        assert!(
            output
                .stderr
                .contains("left out 1 POST: the log has no bodies"),
            "{output}"
        );
        assert!(output.stderr.contains("4 requests in 2.00 s"), "{output}");
        let json = output.json();
        assert_eq!(json["counts"]["ok"], 4, "{output}");
        if pace == "20x" {
            // The last one is meant to start after a twentieth of the log.
            assert!(json["window_us"].as_f64().unwrap() >= 100_000.0, "{output}");
        }
    }
}

#[test]
fn requests_of_a_log_are_selected_by_host_path_and_method() {
    for (only, expected) in [
        ("host=b.example", vec!["GET /two?x=%20{{y}}"]),
        ("path=/api", vec!["HEAD /api/three"]),
        ("method=POST", vec!["POST /form"]),
    ] {
        let origin = Origin::hello();
        let output = replay(&["--pace", "max", "--only", only, &origin.url("/")]).exits(0);
        assert_eq!(received(&origin), expected, "{output}");
    }
}

#[test]
fn without_a_pace_a_log_is_a_list_in_its_order() {
    let origin = Origin::hello();
    let output = replay(&["-c", "1", "-n", "6", &origin.url("/")]).exits(0);
    let list = [
        "GET /one",
        "GET /two?x=%20{{y}}",
        "GET /one",
        "HEAD /api/three",
    ];
    let expected: Vec<_> = list.iter().cycle().take(6).collect();
    let received = received(&origin);
    assert_eq!(received.iter().collect::<Vec<_>>(), expected, "{output}");
    assert!(output.stderr.contains("`--pace 1x`"), "{output}");
}

#[test]
fn what_a_log_needs_is_reported() {
    let output = replay(&[]).exits(2);
    assert!(
        output
            .stderr
            .contains("is an access log; its requests need a server"),
        "{output}"
    );
    assert!(
        output.stderr.contains("the log is of a.example, b.example"),
        "{output}"
    );
    let folder = tempfile::tempdir().unwrap();
    let list = folder.path().join("list.urls");
    fs::write(&list, "http://127.0.0.1:1/").unwrap();
    let output = plimsoll(&["load", "--from", list.to_str().unwrap(), "--pace", "1x"]).exits(2);
    assert!(
        output.stderr.contains("--pace: is for access logs"),
        "{output}"
    );
    let output = replay(&["--pace", "soon", "http://127.0.0.1:1"]).exits(2);
    assert!(
        output
            .stderr
            .contains("write `1x` for the times of the log"),
        "{output}"
    );
}
