//! A machine that runs short while `plimsoll load` is at work: strace lets system calls fail now and then.

use std::fs;
use std::process::{Command, Stdio};

use plimsoll_testkit::{Http2Origin, Origin, WebSocketOrigin};

use crate::plimsoll::{command, run};
use crate::served::Served;

/// How many requests are made, by four connections.
const REQUESTS: u64 = 400;

/// A timeout that no request may come near: what the kernel refuses is known at once.
const TIMEOUT: &str = "60s";

/// Runs `load` with every twentieth call of `call` failing from the fiftieth on: each is counted as a failure of one of
/// `phases`, and every other request gets its response.
fn fails(call: &str, error: &str, phases: &[&str], flags: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("strace.log");
    let load = command(&["load", "--json", "-t", "1", "-c", "4", "--timeout", TIMEOUT]);
    let mut traced = Command::new("strace");
    traced
        .args(["-f", "-qq", "-o"])
        .arg(&log)
        .arg(format!("--trace={call}"))
        .arg(format!("--inject={call}:error={error}:when=50+20"))
        .arg(load.get_program())
        .args(load.get_args())
        .args(["-n", &REQUESTS.to_string()])
        .args(flags)
        .stdin(Stdio::null());
    for (name, value) in load.get_envs() {
        assert_eq!(value, None);
        traced.env_remove(name);
    }
    let output = run(&mut traced);
    let log = fs::read_to_string(&log).expect("strace is installed by `cargo xtask test`");
    let injected = log.matches("(INJECTED)").count() as u64;
    let summary = output.json();
    let failures = summary["failures"].as_array().expect("a list");
    assert!(injected >= 5, "{call} was called too seldom: {log}");
    assert_eq!(summary["counts"]["started"], REQUESTS);
    assert_eq!(summary["counts"]["ok"], REQUESTS - injected, "{output}");
    assert_eq!(summary["counts"]["failed"], injected, "{output}");
    for failure in failures {
        let phase = failure["phase"].as_str().unwrap();
        assert!(phases.contains(&phase), "{output}");
        assert_eq!(failure["kind"], "resource-limit");
        assert_eq!(failure["side"], "ours");
    }
    let counts = failures
        .iter()
        .filter_map(|failure| failure["count"].as_u64());
    assert_eq!(counts.sum::<u64>(), injected, "{output}");
    let window = summary["window_us"].as_f64().unwrap();
    assert!(window < 30e6, "something waited: {output}");
}

#[test]
fn buffers_that_the_kernel_lacks_fail_the_request_that_wanted_one() {
    let origin = Origin::hello();
    fails("sendto", "ENOBUFS", &["send"], &[&origin.url("/")]);
    let origin = WebSocketOrigin::echo();
    fails("sendto", "ENOBUFS", &["send"], &[&origin.url("/")]);
    let origin = Http2Origin::hello();
    fails(
        "sendto",
        "ENOBUFS",
        &["send"],
        &["--http2", &origin.url("/")],
    );
}

#[test]
fn over_tls_too() {
    let file = tempfile::tempdir().unwrap();
    let path = file.path().join("plimsoll.toml");
    fs::write(
        &path,
        "[[listen]]\naddress = \"127.0.0.1:0\"\ntls = [{ self_signed = true }]\n[[route]]\nrespond = {}\n",
    )
    .unwrap();
    let served = Served::start(&["up", path.to_str().unwrap()]);
    // A connection opened after a failure may be refused a buffer in its handshake too.
    fails("writev", "ENOBUFS", &["send", "tls"], &["-k", &served.url]);
}

#[test]
fn connections_that_cannot_be_opened_fail_their_request_only() {
    let origin = Origin::hello();
    let url = origin.url("/");
    for (call, error) in [
        ("socket", "EMFILE"),
        ("connect", "EADDRNOTAVAIL"),
        ("connect", "ENOBUFS"),
    ] {
        fails(call, error, &["connect"], &["--disable-keepalive", &url]);
    }
}
