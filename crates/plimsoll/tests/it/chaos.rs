//! Hostile clients against the real server: each class is turned away and counted, costs bounded memory,
//! and leaves a client that means well alone.

use std::fs;
use std::path::PathBuf;

use plimsoll_testkit::http::get;
use plimsoll_testkit::{MaterialFiles, eventually};
use serde_json::Value;

use crate::plimsoll::{CommandOutput, command, plimsoll};
use crate::served::Served;

/// Resident memory that an attack may cost at most, beyond what the server had before.
const MOST_BYTES: u64 = 64 << 20;

/// Generous: it is shown in the table, and asserted only to be no standstill.
const MOST_P99: &str = "2s";

/// The program, serving a file with an admin port.
struct Up {
    served: Served,
    admin: String,
    /// The server that it forwards to, if it is a gateway.
    behind: Option<Served>,
    /// Removed with it.
    _files: MaterialFiles,
}

impl Up {
    /// - `limits`: the lines of `[limits]`.
    fn start(limits: &str) -> Self {
        Self::start_with(limits, "")
    }

    /// - `listen`: more lines of `[[listen]]`.
    fn start_with(limits: &str, listen: &str) -> Self {
        // Long enough that it does not fit what the kernel keeps.
        let body = "x".repeat(20_000);
        Self::serving(
            limits,
            listen,
            &format!("respond = {{ body = \"{body}\" }}"),
        )
    }

    /// A gateway to the same server without limits of its own.
    fn gateway(limits: &str, listen: &str) -> Self {
        let behind = Self::start("").served;
        let url = behind.url.trim_end_matches('/');
        let gateway = Self::serving(limits, listen, &format!("proxy = \"{url}\""));
        Self {
            behind: Some(behind),
            ..gateway
        }
    }

    /// - `action`: that of the route.
    fn serving(limits: &str, listen: &str, action: &str) -> Self {
        let files = MaterialFiles::new();
        let text = format!(
            "threads = 1\n[[listen]]\naddress = \"127.0.0.1:0\"\n{listen}\n[[route]]\n{action}\n[admin]\naddress = \"127.0.0.1:0\"\n[limits]\n{limits}\n"
        );
        let path = files.write("plimsoll.toml", &text);
        let (served, [admin]) = Served::with_more(&mut command(&["up", &path.to_string_lossy()]));
        Self {
            served,
            admin,
            behind: None,
            _files: files,
        }
    }

    fn chaos(&self, class: &str, more: &[&str]) -> CommandOutput {
        let pid = self.served.child.id().to_string();
        let arguments = ["chaos", class, &self.served.url, "--pid", &pid];
        let arguments = [&arguments[..], &["--json", "--max-p99", MOST_P99], more].concat();
        plimsoll(&arguments)
    }

    fn metrics(&self) -> String {
        let authority = self
            .admin
            .trim_start_matches("http://")
            .trim_end_matches('/');
        get(authority, "/metrics").into_text()
    }

    fn counter(&self, name: &str) -> u64 {
        let metrics = self.metrics();
        let line = metrics.lines().find(|line| line.starts_with(name));
        let value = line.and_then(|line| line.rsplit(' ').next());
        value.and_then(|value| value.parse().ok()).unwrap_or(0)
    }
}

/// Where `cargo xtask test` finds the rows of its table.
fn keep_row(class: &str, refused_by: &str, count: u64, summary: &Value) {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("chaos");
    fs::create_dir_all(&folder).unwrap();
    let megabytes = |name: &str| summary["memory"][name].as_f64().unwrap() / 1e6;
    let row = format!(
        "{class}\t{refused_by}\t{count}\t{:.1}\t{:.1}\t{:.1}\t{:.1}\n",
        megabytes("before_bytes"),
        megabytes("peak_bytes"),
        megabytes("after_bytes"),
        summary["healthy_client"]["p99_us"].as_f64().unwrap() / 1e3,
    );
    fs::write(folder.join(class), row).unwrap();
}

/// - `counter`: the reason by which the server counts what it does about the class.
fn survives(class: &str, counter: &str, limits: &str) -> Value {
    survives_on(&Up::start(limits), class, counter, &[])
}

/// - `more`: flags for the command.
fn survives_on(up: &Up, class: &str, counter: &str, more: &[&str]) -> Value {
    let family = if class == "smuggling" {
        "plimsoll_refused_requests_total"
    } else {
        "plimsoll_cut_connections_total"
    };
    let name = format!("{family}{{reason=\"{counter}\"}}");
    assert_eq!(up.counter(&name), 0);
    let bounds: &[&str] = match class {
        // Its cases end by themselves.
        "smuggling" => &[],
        _ => &["-z", "1500ms", "-c", "16"],
    };
    let output = up.chaos(class, &[bounds, more].concat());
    let summary = output.json();
    assert_eq!(output.code, Some(0), "{output}");
    assert_eq!(summary["healthy_client"]["failed"], 0, "{output}");
    assert!(
        summary["healthy_client"]["served"].as_u64() > Some(0),
        "{output}"
    );
    let memory = |name: &str| summary["memory"][name].as_u64().unwrap();
    let cost = memory("peak_bytes").saturating_sub(memory("before_bytes"));
    assert!(cost < MOST_BYTES, "{cost} bytes in {output}");
    eventually(|| up.counter(&name) > 0);
    assert_eq!(up.counter("plimsoll_panics_total"), 0);
    let shown = match up.behind {
        Some(_) => format!("{class}, gateway"),
        None => class.to_owned(),
    };
    keep_row(&shown, counter, up.counter(&name), &summary);
    summary
}

#[test]
fn a_gateway_withstands_every_class() {
    let short = |name: &str| format!("{name} = \"500ms\"");
    for (class, counter, limits) in [
        ("slow-headers", "header_timeout", short("header_timeout")),
        ("slow-body", "body_timeout", short("body_timeout")),
        ("slow-read", "write_timeout", short("write_timeout")),
        (
            "connection-flood",
            "header_timeout",
            short("header_timeout"),
        ),
        ("rapid-reset", "http2_resets", String::new()),
        ("made-you-reset", "http2_provoked_resets", String::new()),
        ("continuation-flood", "http2_continuations", String::new()),
        ("hpack-bomb", "http2_header_list", String::new()),
        ("settings-flood", "http2_settings", String::new()),
        ("ping-flood", "http2_pings", String::new()),
        ("empty-data-flood", "http2_empty_data", String::new()),
        ("window-update-flood", "http2_window_updates", String::new()),
        ("smuggling", "length_and_coding", String::new()),
    ] {
        survives_on(&Up::gateway(&limits, ""), class, counter, &[]);
    }
    let secure = Up::gateway("", "tls = [{ self_signed = true }]\nhttp3 = true");
    survives_on(&secure, "h3-reset-flood", "http3_resets", &["--insecure"]);
}

#[test]
fn h3_reset_flood() {
    let up = Up::start_with("", "tls = [{ self_signed = true }]\nhttp3 = true");
    let summary = survives_on(&up, "h3-reset-flood", "http3_resets", &["--insecure"]);
    let is_refused = |summary: &Value| {
        let goaways = summary["hostile_clients"]["goaways"].as_object().unwrap();
        // H3_EXCESSIVE_LOAD (RFC 9114, section 8.1).
        goaways.keys().any(|name| name.contains("263"))
    };
    // On a busy machine an attack may be over before a client reads why it was closed.
    let again = || up.chaos("h3-reset-flood", &["-z", "3s", "-c", "4", "--insecure"]);
    assert!(
        is_refused(&summary) || (0..5).any(|_| is_refused(&again().json())),
        "{summary}"
    );
    let reset = up.counter("plimsoll_http3_resets_total{side=\"received\"}");
    assert!(reset > 300, "{reset}");
}

fn is_calmed(summary: &Value) -> bool {
    let goaways = summary["hostile_clients"]["goaways"].as_object().unwrap();
    goaways
        .keys()
        .any(|name| name.starts_with("ENHANCE_YOUR_CALM"))
}

#[test]
fn slow_headers() {
    survives(
        "slow-headers",
        "header_timeout",
        "header_timeout = \"500ms\"",
    );
}

#[test]
fn slow_body() {
    survives("slow-body", "body_timeout", "body_timeout = \"500ms\"");
}

#[test]
fn slow_read() {
    survives("slow-read", "write_timeout", "write_timeout = \"500ms\"");
}

#[test]
fn connection_flood() {
    survives(
        "connection-flood",
        "header_timeout",
        "header_timeout = \"500ms\"",
    );
}

#[test]
fn rapid_reset() {
    let summary = survives("rapid-reset", "http2_resets", "");
    assert!(is_calmed(&summary), "{summary}");
}

#[test]
fn made_you_reset() {
    let summary = survives("made-you-reset", "http2_provoked_resets", "");
    assert!(is_calmed(&summary), "{summary}");
    assert!(
        summary["hostile_clients"]["resets"]["FLOW_CONTROL_ERROR"].as_u64() > Some(0),
        "{summary}"
    );
}

#[test]
fn continuation_flood() {
    let summary = survives("continuation-flood", "http2_continuations", "");
    assert!(is_calmed(&summary), "{summary}");
}

#[test]
fn hpack_bomb() {
    survives("hpack-bomb", "http2_header_list", "");
}

#[test]
fn settings_flood() {
    let summary = survives("settings-flood", "http2_settings", "");
    assert!(is_calmed(&summary), "{summary}");
}

#[test]
fn ping_flood() {
    let summary = survives("ping-flood", "http2_pings", "");
    assert!(is_calmed(&summary), "{summary}");
}

#[test]
fn empty_data_flood() {
    let summary = survives("empty-data-flood", "http2_empty_data", "");
    assert!(is_calmed(&summary), "{summary}");
}

#[test]
fn window_update_flood() {
    let summary = survives("window-update-flood", "http2_window_updates", "");
    assert!(is_calmed(&summary), "{summary}");
}

#[test]
fn smuggling() {
    let summary = survives("smuggling", "length_and_coding", "");
    let cases = summary["cases"].as_array().unwrap();
    assert!(cases.len() > 40, "{summary}");
    for case in cases {
        assert_eq!(case["safe"], true, "{case}");
    }
}

#[test]
fn the_names_are_listed() {
    let output = plimsoll(&["chaos"]).exits(0);
    assert!(output.stdout.starts_with("slow-headers  "), "{output}");
    assert_eq!(output.stdout.lines().count(), 14, "{output}");
}

#[test]
fn nothing_is_done_beyond_the_bounds_or_to_others() {
    let output = plimsoll(&["chaos", "ping-flud", "http://127.0.0.1:1/"]).exits(2);
    assert!(output.stderr.contains("ping-flood"), "{output}");
    let more = [
        "-c",
        "2001",
        "-q",
        "50001",
        "-n",
        "0",
        "-z",
        "61s",
        "--max-rss",
        "1MB",
    ];
    let arguments = [&["chaos", "ping-flood", "http://127.0.0.1:1/"][..], &more].concat();
    let output = plimsoll(&arguments).exits(2);
    for expected in ["2000", "50000", "1000000", "60s", "--max-rss: needs"] {
        assert!(
            output.stderr.contains(expected),
            "no {expected} in {output}"
        );
    }
    // An address for documentation (RFC 5737), so that no server could be there.
    let output = plimsoll(&["chaos", "ping-flood", "http://192.0.2.1/"]).exits(2);
    assert!(
        output.stderr.contains("neither a loopback nor a private"),
        "{output}"
    );
    assert!(output.stderr.contains("--i-own-this-host"), "{output}");
}

#[test]
fn a_server_that_is_not_healthy_fails_the_objective() {
    let up = Up::start("");
    let output = plimsoll(&[
        "chaos",
        "ping-flood",
        &up.served.url,
        "-z",
        "300ms",
        "--max-p99",
        "1ns",
    ]);
    assert_eq!(output.code, Some(1), "{output}");
    assert!(
        output
            .stdout
            .contains("✗ breached  p99 of the healthy client"),
        "{output}"
    );
    let output = up.chaos("ping-flood", &["-z", "300ms", "--max-rss", "1KiB"]);
    assert_eq!(output.code, Some(1), "{output}");
    let output = plimsoll(&["chaos", "h3-reset-flood", &up.served.url]).exits(3);
    assert!(output.stderr.contains("does not speak HTTP/3"), "{output}");
}
