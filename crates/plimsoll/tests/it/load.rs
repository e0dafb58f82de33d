//! `plimsoll load` against real servers.

use std::fs;
use std::io::Write;
use std::process::Stdio;
use std::time::Duration;

use plimsoll_testkit::{Authority, MaterialFiles, Origin, Script, Step, eventually};
use serde_json::Value;

use crate::plimsoll::{command, files_in, plimsoll};

/// Load with these flags on `origin`, as JSON.
fn summary(origin: &Origin, flags: &[&str], code: i32) -> Value {
    let url = origin.url("/");
    let mut arguments = vec!["load", "--json"];
    arguments.extend(flags);
    arguments.push(&url);
    plimsoll(&arguments).exits(code).json()
}

#[test]
fn a_closed_loop_makes_exactly_what_it_was_requested() {
    let origin = Origin::hello();
    let summary = summary(&origin, &["-n", "1234", "-c", "8"], 0);
    assert_eq!(summary["counts"]["ok"], 1234);
    assert_eq!(summary["statuses"]["200"], 1234);
    assert_eq!(origin.requests(), 1234);
    // One more opens and closes a connection beforehand, without a request.
    assert_eq!(origin.connections(), 9);
}

#[test]
fn an_open_loop_makes_every_request_though_the_server_stalls() {
    let origin = Origin::hello();
    let url = origin.url("/");
    let child = command(&[
        "load", "--json", "-q", "1000", "-n", "4000", "-c", "20", &url,
    ])
    .stdout(Stdio::piped())
    .spawn()
    .unwrap();
    eventually(|| origin.requests() >= 1000);
    origin.stall_for(Duration::from_secs(1));
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(summary["counts"]["ok"], 4000);
    assert_eq!(origin.requests(), 4000);
    let p99 = |view: &str| summary["latency"][view]["p99_us"].as_f64().unwrap();
    // A quarter of the run was due while the server stalled, but only 20 requests were under way.
    assert!(p99("from_intended") > 500_000.0, "{summary}");
    assert!(p99("from_started") < p99("from_intended"), "{summary}");
}

#[test]
fn headers_method_and_body_arrive_as_given() {
    let origin = Origin::hello();
    let flags = [
        "-n",
        "1",
        "-c",
        "1",
        "-d",
        "a=b",
        "-H",
        "x-test: 1",
        "--host",
        "elsewhere.test",
        "-a",
        "me:secret",
    ];
    summary(&origin, &flags, 0);
    let head = origin.heads().concat().to_lowercase();
    for line in [
        "post / http/1.1",
        "host: elsewhere.test",
        "x-test: 1",
        "content-length: 3",
        "content-type: application/x-www-form-urlencoded",
        "authorization: basic bwu6c2vjcmv0",
    ] {
        assert!(head.contains(line), "{line} in {head}");
    }
}

#[test]
fn urls_of_a_file_are_requested_in_turn() {
    let (one, two) = (Origin::hello(), Origin::hello());
    let mut file = tempfile::NamedTempFile::new().unwrap();
    writeln!(file, "# two sites\n{}\n\n{}", one.url("/a"), two.url("/b")).unwrap();
    let path = file.path().to_str().unwrap();
    plimsoll(&["load", "-n", "100", "-c", "2", "--urls", path]).exits(0);
    assert_eq!((one.requests(), two.requests()), (50, 50));
}

#[test]
fn unmet_expectations_and_failed_statuses_decide_the_exit_code() {
    let origin = Origin::scripted(Script::serve(
        "HTTP/1.1 503 Service Unavailable\r\ncontent-length: 4\r\n\r\nbusy",
    ));
    let fine = summary(
        &origin,
        &["-n", "10", "-c", "1", "--fail-status", "none"],
        0,
    );
    assert_eq!(fine["counts"]["ok"], 10, "a status is not a failure");
    assert_eq!(fine["counts"]["errors"], 0);
    assert_eq!(fine["counts"]["error_statuses"], 10);
    let failed = summary(&origin, &["-n", "10", "-c", "1", "--fail-status", "5xx"], 1);
    assert_eq!(failed["counts"]["failed_status"], 10);
    let flags = [
        "-n",
        "10",
        "-c",
        "1",
        "--expect",
        "body contains 'ok'",
        "--expect",
        "size == 4",
    ];
    let unmet = summary(&origin, &flags, 1);
    assert_eq!(unmet["unmet"]["body contains 'ok'"], 10);
    assert_eq!(unmet["unmet"].as_object().unwrap().len(), 1);
}

#[test]
fn a_run_without_one_good_response_fails_and_says_why() {
    // Every URL is wrong.
    let missing = Origin::scripted(Script::serve(
        "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n",
    ));
    let url = missing.url("/");
    let load = |flags: &[&str]| plimsoll(&[&["load", "-n", "10", "-c", "1", &url], flags].concat());
    let output = load(&[]).exits(1);
    for text in [
        "every response had an error status (404)",
        "\nstatus     404 100 %",
    ] {
        assert!(output.stdout.contains(text), "{output}");
    }
    assert!(!output.stdout.contains("result     ok"), "{output}");
    load(&["--fail-status", "none"]).exits(0);
    load(&["--expect", "status == 404"]).exits(0);
    // Naming other statuses allows nothing.
    load(&["--fail-status", "5xx"]).exits(1);

    // One good response is enough; thresholds decide on the rest.
    let mixed = || {
        Origin::builder()
            .script(|_| {
                let answer = |head: &str| Step::Write(format!("{head}\r\n\r\n").into_bytes());
                Script::new()
                    .then(Step::ReadHead)
                    .then(answer("HTTP/1.1 200 OK\r\ncontent-length: 0"))
                    .then(Step::ReadHead)
                    .then(answer("HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0"))
            })
            .start()
    };
    let half = summary(&mixed(), &["-n", "10", "-c", "1"], 0);
    assert_eq!(half["counts"]["error_statuses"], 5);
    assert_eq!(
        half["counts"]["errors"], 5,
        "overload counts for thresholds"
    );
    let judged = ["-n", "10", "-c", "1", "--threshold", "errors:rate<10%"];
    summary(&mixed(), &judged, 1);

    // A target that accepts and never answers.
    let silent = Origin::silent();
    let url = silent.url("/");
    let output = plimsoll(&["load", "-c", "5", "-z", "100ms", "--grace", "100ms", &url]).exits(1);
    for text in [
        "no response arrived: the target accepted 5 connections",
        "5 aborted (100 %)",
    ] {
        assert!(output.stdout.contains(text), "{output}");
    }
}

#[test]
fn junit_fails_where_requests_went_unanswered() {
    // Every second connection is reset.
    let moody = || {
        Origin::builder()
            .script(|number| match number % 2 {
                // The first one is the check before the run.
                0 => Script::hello(),
                _ => Script::new().then(Step::ReadHead).then(Step::Reset),
            })
            .start()
    };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("junit.xml");
    let path = file.to_str().unwrap();
    let flags = [
        "-n",
        "10",
        "-c",
        "1",
        "--disable-keepalive",
        "--junit",
        path,
    ];
    summary(&moody(), &flags, 0);
    let xml = fs::read_to_string(&file).unwrap();
    assert!(
        xml.contains("no complete response to 5 of 10 requests"),
        "{xml}"
    );
    // Unless a threshold says how many may be.
    let judged = [&flags[..], &["--threshold", "errors:rate<60%"]].concat();
    summary(&moody(), &judged, 0);
    let xml = fs::read_to_string(&file).unwrap();
    assert!(xml.contains("failures=\"0\""), "{xml}");
}

#[test]
fn habits_of_other_tools_are_understood_or_named() {
    let origin = Origin::hello();
    let url = origin.url("/");
    let output = plimsoll(&[
        "load",
        "-n",
        "1",
        "-c",
        "1",
        "-X",
        "PUT",
        "-u",
        "me:secret",
        "-A",
        "robot/1",
        &url,
    ]);
    output.exits(0);
    let head = origin.heads().last().unwrap().to_ascii_lowercase();
    for part in [
        "put / http/1.1",
        "user-agent: robot/1",
        "authorization: basic ",
    ] {
        assert!(head.contains(part), "{head}");
    }
    for (flags, expected) in [
        (vec!["-m", "5"], "--timeout 5"),
        (vec!["-m", "GE T"], "must be letters"),
        (vec!["-o", "/dev/null"], "--out DIR"),
    ] {
        for command in ["load", "check"] {
            let arguments = [&[command][..], &flags, &[&url]].concat();
            let output = plimsoll(&arguments).exits(2);
            assert!(
                output.stderr.contains(expected),
                "{command} {flags:?}: {output}"
            );
        }
    }
    let output = plimsoll(&["load", "-n", "2", "-c", "2", "-d1s", &url]).exits(0);
    assert!(output.stderr.contains("-z 1s"), "{output}");
}

#[test]
fn thresholds_are_reported_and_decide_the_exit_code() {
    let origin = Origin::hello();
    let met = ["-n", "50", "-c", "1", "--threshold", "http_reqs:count==50"];
    let fine = summary(&origin, &met, 0);
    assert_eq!(fine["thresholds"][0]["verdict"], "met");
    assert_eq!(fine["thresholds"][0]["value"], 50.0);
    let breached = ["-z", "1h", "-c", "1", "--abort-on-breach"];
    let slow = ["--threshold", "http_req_duration:min<1ns"];
    let ended = summary(&origin, &[&breached[..], &slow[..]].concat(), 1);
    assert_eq!(ended["thresholds"][0]["verdict"], "breached");
    assert_eq!(ended["thresholds"][0]["ended_run"], true);
    assert_eq!(ended["interrupted"], false);
    assert_eq!(ended["counts"]["ok"].as_u64(), Some(origin.requests() - 50));
}

#[test]
fn over_tls_with_a_private_authority_and_a_client_certificate() {
    let authority = Authority::new();
    let files = MaterialFiles::new();
    let server = authority.issue(&["localhost", "127.0.0.1"]);
    let client = authority.issue_for_client("tester");
    let origin = Origin::builder()
        .tls(server.server_config_for_clients_of(&authority))
        .start();
    let roots = files.write("roots.pem", &authority.pem());
    let certificate = files.write("client.pem", client.pem());
    let key = files.write("client.key", client.key_pem());
    let flags = [
        "-n",
        "100",
        "-c",
        "4",
        "--cacert",
        roots.to_str().unwrap(),
        "--cert",
        certificate.to_str().unwrap(),
        "--key",
        key.to_str().unwrap(),
    ];
    let summary = summary(&origin, &flags, 0);
    assert_eq!(summary["counts"]["ok"], 100);
    let output = plimsoll(&["load", "-n", "1", &origin.url("/")]).exits(3);
    assert!(
        output.stderr.contains("certificate-untrusted during tls"),
        "{output}"
    );
}

#[test]
fn result_files_are_written_together() {
    let origin = Origin::hello();
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("results");
    let path = out.to_str().unwrap();
    let printed = plimsoll(&[
        "load",
        "-v",
        "-n",
        "100",
        "-c",
        "2",
        "--out",
        path,
        &origin.url("/"),
    ]);
    assert_eq!(
        files_in(&out),
        [
            "conditions.json",
            "latency.hdr",
            "report.html",
            "series.csv",
            "summary.json",
            "summary.txt"
        ]
    );
    let text = fs::read_to_string(out.join("summary.txt")).unwrap();
    assert_eq!(text.trim_end(), printed.stdout.trim_end());
    let json: Value =
        serde_json::from_str(&fs::read_to_string(out.join("summary.json")).unwrap()).unwrap();
    assert_eq!(json["schema"], "plimsoll.load.summary/1");
}

#[test]
fn results_are_shown_once_more_and_beside_one_another() {
    let origin = Origin::hello();
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    for (name, requests) in [("before", "40"), ("after", "70")] {
        let threshold = "http_reqs:count<50";
        let flags = ["load", "-n", requests, "-c", "2", "--threshold", threshold];
        let junit = path(&format!("{name}.xml"));
        let files = ["--out", &path(name), "--junit", &junit, &origin.url("/")];
        plimsoll(&[&flags[..], &files[..]].concat()).exits(i32::from(name == "after"));
        let junit = fs::read_to_string(junit).unwrap();
        assert_eq!(
            junit.contains("<failure message=\"breached: 70\"/>"),
            name == "after"
        );
    }
    let (before, after) = (path("before"), path("after"));
    let text = plimsoll(&["report", &before, &after]).exits(0).stdout;
    let started = text.lines().find(|line| line.trim().starts_with("started"));
    let cells: Vec<_> = started.unwrap().split_whitespace().collect();
    assert_eq!(cells, ["started", "40", "70"]);
    let page = path("both.html");
    plimsoll(&["report", "--format", "html", "-o", &page, &before, &after]).exits(0);
    let page = fs::read_to_string(page).unwrap();
    assert!(page.contains(">before</th>") && page.contains(">after</th>"));
    // From its files a page is made again as it was made after the run.
    let again = plimsoll(&["report", "--format", "html", &before])
        .exits(0)
        .stdout;
    let first = fs::read_to_string(directory.path().join("before/report.html")).unwrap();
    assert_eq!(again.trim_end(), first.trim_end());
    let missing = plimsoll(&["report", &before, &path("missing")]).exits(2);
    assert!(missing.stderr.contains("no such folder"), "{missing}");
}

#[test]
fn samples_are_printed_in_place_of_the_summary() {
    let origin = Origin::hello();
    let url = origin.url("/");
    let printed = plimsoll(&[
        "load",
        "--rps",
        "200",
        "--duration",
        "1s",
        "--sample-ms",
        "50",
        "--concurrency",
        "16",
        "--on-full",
        "drop",
        "--burst",
        "4",
        "--jitter",
        "5ms",
        "--samples-csv",
        "-",
        &url,
    ])
    .exits(0)
    .stdout;
    let lines: Vec<_> = printed.lines().collect();
    assert!(
        lines[0].starts_with("# plimsoll load url=http://"),
        "{printed}"
    );
    assert!(lines[0].ends_with("target_rps=200 duration_s=1.0 concurrency=16 sample_ms=50"));
    assert!(
        lines[1].starts_with("t_ms,rss_kb,cpu_user_ticks,"),
        "{printed}"
    );
    assert!(lines.len() >= 10, "{printed}");
    let last = lines[lines.len() - 2].split(',').nth(5).unwrap();
    let summary = lines[lines.len() - 1];
    assert!(
        summary.starts_with("# summary duration_s=1.0 target_rps=200 "),
        "{summary}"
    );
    assert!(
        summary.contains(&format!(" completed={last} errors=")),
        "{printed}"
    );
    assert_eq!(last.parse::<u64>().unwrap(), origin.requests());
}

#[test]
fn ctrl_c_prints_what_was_measured() {
    let origin = Origin::hello();
    let child = command(&["load", "--json", "-z", "1h", "-c", "2", &origin.url("/")])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    eventually(|| origin.requests() > 100);
    interrupt(child.id());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(summary["interrupted"], true);
    assert_eq!(summary["counts"]["ok"], origin.requests());
}

/// What Ctrl-C does.
pub(crate) fn interrupt(pid: u32) {
    let status = std::process::Command::new("kill")
        .args(["-INT", &pid.to_string()])
        .status()
        .unwrap();
    assert!(status.success());
}

#[test]
#[cfg(target_os = "linux")]
fn a_machine_that_runs_out_of_open_files_is_reported_by_name() {
    use rustix::process::{Pid, Resource, Rlimit, prlimit};

    // Every request needs a connection of its own.
    let answer = b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
    let origin = Origin::scripted(Script::answer_once(&answer[..]));
    let url = origin.url("/");
    let mut running = command(&["load", "--json", "-c", "4", "-z", "1s", &url]);
    let running = running.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = running.spawn().unwrap();
    eventually(|| origin.requests() > 20);
    let none = Rlimit {
        current: Some(3),
        maximum: Some(3),
    };
    prlimit(Some(Pid::from_child(&child)), Resource::Nofile, none).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    let failure = &summary["failures"][0];
    assert_eq!(failure["kind"], "resource-limit", "{summary}");
    assert_eq!(
        (&failure["phase"], &failure["side"]),
        (&"connect".into(), &"ours".into())
    );
    let count = |name: &str| summary["counts"][name].as_u64().unwrap();
    assert_eq!(
        count("started"),
        count("ok") + count("failed") + count("aborted")
    );
    assert!(count("ok") > 20 && count("failed") > 0);
}

#[test]
fn a_run_is_described_without_sending_anything() {
    let origin = Origin::hello();
    let url = origin.url("/a");
    let arguments = [
        "load",
        "--check",
        "-q",
        "50",
        "-z",
        "3s",
        "--threshold",
        "p99<5ms",
        &url,
    ];
    let text = plimsoll(&arguments).exits(0).stdout;
    assert!(text.starts_with(&format!("GET {url}")), "{text}");
    assert!(text.ends_with(": no errors\n"), "{text}");
    let plan = plimsoll(&[&arguments[..], &["--json"]].concat())
        .exits(0)
        .json();
    let schema = include_str!("../../../../schemas/load-plan.v1.json");
    let schema = serde_json::from_str(schema).unwrap();
    assert!(jsonschema::is_valid(&schema, &plan), "{plan}");
    assert_eq!(plan["load"]["duration_us"], 3e6);
    assert_eq!(origin.connections(), 0);
    let wrong = ["load", "--check", "--expect", "x", "--threshold", "y", &url];
    let shown = plimsoll(&wrong).exits(2).stderr;
    assert!(
        shown.contains("--expect: ") && shown.contains("--threshold: "),
        "{shown}"
    );
}
