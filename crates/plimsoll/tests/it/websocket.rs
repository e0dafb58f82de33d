//! `plimsoll load ws://…` from its flags to its summary.

use std::fs;

use plimsoll_testkit::{Origin, WebSocketOrigin};

use crate::plimsoll::plimsoll;

#[test]
fn a_message_goes_back_and_forth() {
    let origin = WebSocketOrigin::echo();
    let url = origin.url("/socket?room=1");
    let flags = ["load", "--json", "-n", "40", "-c", "2", "-d", "grüße", &url];
    let output = plimsoll(&flags).exits(0);
    let summary = output.json();
    assert_eq!(summary["counts"]["ok"], 40);
    assert_eq!(summary["load"]["protocol"], "WebSocket");
    assert_eq!(summary["load"]["url"], *url);
    assert_eq!(summary["messages"]["sent"], 40);
    assert_eq!(summary["messages"]["received"], 40);
    assert_eq!(summary["statuses"]["101"], 40);
    assert_eq!(origin.last(), Some((true, "grüße".into())));
    assert_eq!(origin.messages(), 40);
}

#[test]
fn messages_are_text_or_binary_and_as_long_as_requested() {
    let origin = WebSocketOrigin::echo();
    let url = origin.url("/");
    let load = |more: &[&str]| {
        let flags = [&["load", "-n", "1", "-c", "1"], more, &[&*url]].concat();
        let output = plimsoll(&flags).exits(0);
        assert!(output.stdout.contains("\nround trips "), "{output}");
        assert!(output.stdout.contains("1 sent   1 received"), "{output}");
        origin.last().unwrap()
    };
    assert_eq!(load(&[]), (true, b"abcdefghijklmnop".to_vec()));
    assert!(!load(&["--binary"]).0);
    assert_eq!(load(&["--message-size", "70KB"]).1.len(), 70_000);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("message");
    fs::write(&file, b"\xff\xfe").unwrap();
    let message = load(&["-D", file.to_str().unwrap()]);
    assert_eq!(message, (false, b"\xff\xfe".to_vec()));
}

#[test]
fn a_server_that_does_not_agree_is_reported() {
    let origin = Origin::hello();
    let url = origin.url("/").replace("http", "ws");
    let output = plimsoll(&["load", "-n", "1", &url]).exits(3);
    assert!(output.stderr.contains("upgrade-refused"), "{output}");
    assert!(output.stderr.contains("status 200"), "{output}");
}

#[test]
fn what_does_not_go_together_is_reported_at_once() {
    let flags = "load --cookies --expect status==200 --fail-status 5xx -m PUT -T text/plain \
                 -H Upgrade:h2c --disable-keepalive ws://127.0.0.1:1/";
    let output = plimsoll(&flags.split_whitespace().collect::<Vec<_>>()).exits(2);
    for flag in [
        "--cookies",
        "--expect",
        "--fail-status",
        "-m",
        "-T",
        "-H",
        "--disable-keepalive",
    ] {
        assert!(
            output.stderr.contains(&format!("error: {flag}: ")),
            "{flag}: {output}"
        );
    }
    let output = plimsoll(&["load", "--binary", "http://127.0.0.1:1/"]).exits(2);
    assert!(output.stderr.contains("--binary: needs a URL"), "{output}");
    let flags = ["load", "-x", "http://127.0.0.1:1", "ws://127.0.0.2:1/"];
    let output = plimsoll(&flags).exits(2);
    assert!(output.stderr.contains("SOCKS"), "{output}");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("urls");
    fs::write(&file, "ws://127.0.0.1:1/\nhttp://127.0.0.1:1/\n").unwrap();
    let output = plimsoll(&["load", "--urls", file.to_str().unwrap()]).exits(2);
    assert!(output.stderr.contains("one kind"), "{output}");
}
