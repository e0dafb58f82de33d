//! gRPC against tonic, which is not ours, and the report of a method that cannot be called.

use std::fs;

use plimsoll_testkit::{Authority, Http2Answer, Http2Origin, refused_address};
use serde_json::{Value, json};

use crate::plimsoll::plimsoll;
use crate::served::Served;
use crate::tonic_server::{Reflection, TonicServer};

const SET: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/echo.binpb");

/// What that was made from.
const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/echo.proto");

/// A file that is no descriptor set.
const MANIFEST: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");

/// Makes two hundred calls, and gives the summary.
fn called(url: &str, method: &str, json: &str, flags: &[&str], exit: i32) -> Value {
    let method = format!("plimsoll.test.Echo/{method}");
    let mut arguments = vec![
        "load", "--json", "-n", "200", "-c", "2", "-p", "8", "--grpc", &method, "-d", json,
    ];
    arguments.extend(flags);
    arguments.push(url);
    let summary = plimsoll(&arguments).exits(exit).json();
    assert_eq!(summary["counts"]["ok"], 200, "{summary}");
    let version = if flags.contains(&"--http3") {
        "HTTP/3"
    } else {
        "HTTP/2"
    };
    assert_eq!(summary["load"]["protocol"], version);
    assert_eq!(summary["load"]["method"], "POST");
    summary
}

#[test]
fn each_kind_of_method_is_called_by_what_the_server_reports_of_itself() {
    let server = TonicServer::start(Reflection::V1);
    for (method, json, answers) in [
        ("Say", r#"{"text": "hello", "took": "1.5s"}"#, 1),
        ("Repeat", r#"{"line": {"text": "a"}, "times": 7}"#, 7),
        ("Repeat", r#"{"times": 0}"#, 0),
        ("Gather", r#"[{"text": "one"}, {}, {"text": "two"}]"#, 1),
        ("Chat", r#"[{"text": "a"}, {"text": "b"}]"#, 2),
    ] {
        let before = server.calls();
        let summary = called(&server.url(), method, json, &[], 0);
        assert_eq!(server.calls() - before, 200);
        let expected = json!({
            "statuses": { "OK": 200 },
            "messages": {},
            "messages_received": 200 * answers,
        });
        let mut grpc = summary["grpc"].clone();
        let rate = grpc.as_object_mut().unwrap().remove("messages_per_second");
        assert_eq!(rate.unwrap().as_f64().unwrap() > 0.0, answers > 0);
        assert_eq!(grpc, expected, "{method}");
    }
}

#[test]
fn what_is_sent_is_what_the_json_says() {
    let server = TonicServer::start(Reflection::V1Alpha);
    let thirteen = format!("[{}]", [r#"{"text": "abc"}"#; 13].join(","));
    for (json, status, output) in [
        ("[]", "INVALID_ARGUMENT", "0 lines, 0 letters"),
        (thirteen.as_str(), "OUT_OF_RANGE", "13 lines, 39 letters"),
    ] {
        let summary = called(&server.url(), "Gather", json, &[], 1);
        assert_eq!(summary["grpc"]["statuses"], json!({ status: 200 }));
        assert_eq!(summary["grpc"]["messages"], json!({ status: output }));
        assert_eq!(summary["counts"]["failed_status"], 200);
    }
}

#[test]
fn statuses_are_shown_by_name() {
    let server = TonicServer::start(Reflection::Nothing);
    let json = r#"{"code": 14, "message": "{{why}}, come back\n"}"#;
    let output = plimsoll(&[
        "load",
        "-v",
        "-n",
        "50",
        "-c",
        "1",
        "--grpc",
        "/plimsoll.test.Echo/Fail",
        "--proto-set",
        SET,
        "--var",
        "why=zu voll für dich",
        "-d",
        json,
        "--threshold",
        "http_req_failed:rate<1%",
        &server.url(),
    ]);
    let output = output.exits(1);
    for expected in [
        "grpc UNAVAILABLE 14",
        "zu voll für dich, come back",
        "0  messages received",
        "UNAVAILABLE 100 %",
        "1 of 1 threshold not met",
    ] {
        assert!(output.stdout.contains(expected), "{expected}: {output}");
    }
}

#[test]
fn calls_go_over_http3_through_a_gateway() {
    let server = TonicServer::start(Reflection::Nothing);
    let gateway = Served::start(&[
        "gateway",
        "--listen",
        "127.0.0.1:0",
        "--to",
        &server.url(),
        "--upstream-http2",
        "--tls",
        "--http3",
    ]);
    let flags = ["--http3", "-k", "--proto-set", SOURCE];
    let expected = ["--expect", "body contains again"];
    let flags = [&flags[..], &expected].concat();
    let summary = called(&gateway.url, "Say", r#"{"text": "again"}"#, &flags, 0);
    assert_eq!(summary["grpc"]["statuses"], json!({ "OK": 200 }));
    assert_eq!(summary["grpc"]["messages_received"], 200);
}

#[test]
fn calls_go_over_tls() {
    let authority = Authority::new();
    let server = authority.issue(&["127.0.0.1"]);
    let directory = tempfile::tempdir().unwrap();
    let roots = directory.path().join("roots.pem");
    fs::write(&roots, authority.pem()).unwrap();
    let origin = Http2Origin::builder()
        .tls(server.server_config())
        .answer(|_, _| Http2Answer::Parts {
            status: 200,
            head: vec![("content-type", "application/grpc")],
            content: vec![0, 0, 0, 0, 0],
            trailers: vec![("grpc-status", "0")],
        })
        .start();
    let flags = ["--cacert", roots.to_str().unwrap(), "--proto-set", SET];
    let summary = called(&origin.url("/prefix/"), "Say", "{}", &flags, 0);
    assert_eq!(summary["grpc"]["statuses"], json!({ "OK": 200 }));
    assert_eq!(
        origin.heads()[0],
        format!("POST {}", origin.url("/prefix/plimsoll.test.Echo/Say"))
    );
}

#[test]
fn what_cannot_be_called_is_reported_before_anything_is_sent() {
    let server = TonicServer::start(Reflection::Nothing);
    let url = server.url();
    let refused = format!("http://{}", refused_address());
    let gather = "plimsoll.test.Echo/Gather";
    for (flags, exit, reported) in [
        (
            vec!["--grpc", "Echo", &url],
            2,
            "not of the form `package.Service/Method`",
        ),
        (vec!["--grpc", "a.B/C"], 2, "needs a URL"),
        (
            vec!["--grpc", "a.B/C", "--http3", &url],
            2,
            "needs --proto-set with --http3",
        ),
        (
            vec!["--grpc", "a.B/C", "-m", "GET", &url],
            2,
            "cannot be used with",
        ),
        (
            vec!["--grpc", "a.B/C", "--proto-set", SET, &url],
            2,
            "there is no service a.B",
        ),
        (
            vec!["--grpc", "plimsoll.test.Echo/Sai", "--proto-set", SET, &url],
            2,
            "did you mean Say?",
        ),
        (
            vec![
                "--grpc",
                gather,
                "--proto-set",
                SET,
                "-d",
                "[{}, {\"txt\": 1}]",
                &url,
            ],
            2,
            "message 2 is not a plimsoll.test.Line: unrecognized field name 'txt'",
        ),
        (
            vec!["--grpc", gather, "--proto-set", MANIFEST, &url],
            2,
            "is not a descriptor set",
        ),
        (
            vec!["--grpc", gather, &url],
            3,
            "the server does not describe itself",
        ),
        (
            vec!["--grpc", gather, &refused],
            3,
            "refused during connect",
        ),
        (vec!["--h2-window", "64KiB", &url], 2, "needs --http2"),
    ] {
        let mut arguments = vec!["load", "-n", "2", "-c", "1"];
        arguments.extend(&flags);
        let output = plimsoll(&arguments).exits(exit);
        assert!(output.stderr.contains(reported), "{reported}: {output}");
    }
    assert_eq!(server.calls(), 0);
}

/// Checks one call, and gives the document.
fn checked(url: &str, method: &str, json: &str, flags: &[&str], exit: i32) -> Value {
    let method = format!("plimsoll.test.Echo/{method}");
    let mut arguments = vec!["check", "--json", "--grpc", &method, "-d", json];
    arguments.extend(flags);
    arguments.push(url);
    let document = plimsoll(&arguments).exits(exit).json();
    assert_eq!(document["exchange"]["protocol"], "HTTP/2", "{document}");
    document
}

#[test]
fn a_call_is_checked_with_its_answer() {
    let server = TonicServer::start(Reflection::V1);
    let url = server.url();
    let flags = [
        "--expect",
        "body.json($.text) == 'grüße'",
        "--expect",
        "header.content-type contains grpc",
    ];
    let document = checked(
        &url,
        "Say",
        r#"{"text": "grüße", "took": "1.5s"}"#,
        &flags,
        0,
    );
    let answer = json!({ "text": "grüße" });
    assert_eq!(
        document["grpc"],
        json!({ "status": "OK", "code": 0, "message": null, "messages": 1, "answer": answer })
    );
    // There is no condition on the status, so it has to be OK.
    assert_eq!(document["conditions"][2]["condition"], "grpc.status == OK");
    assert_eq!(document["verdict"], "met");

    let set = [
        "--proto-set",
        SET,
        "--expect",
        "body.json($[1].text) == 'a'",
    ];
    let document = checked(
        &url,
        "Repeat",
        r#"{"line": {"text": "a"}, "times": 2}"#,
        &set,
        0,
    );
    assert_eq!(
        document["grpc"]["answer"],
        json!([{ "text": "a" }, { "text": "a" }])
    );

    let wanted = r#"{"code": 5, "message": "no such line"}"#;
    let document = checked(&url, "Fail", wanted, &[], 1);
    assert_eq!(document["verdict"], "unmet");
    assert_eq!(document["conditions"][0]["observed"], "NOT_FOUND");
    assert_eq!(document["grpc"]["message"], "no such line");
    assert_eq!(document["grpc"]["answer"], Value::Null);
    let flags = ["--expect", "grpc.status == NOT_FOUND"];
    checked(&url, "Fail", wanted, &flags, 0);
    assert_eq!(server.calls(), 4);

    let method = "plimsoll.test.Echo/Fail";
    let output = plimsoll(&["check", "--grpc", method, "-d", wanted, &url]).exits(1);
    for expected in ["NOT_FOUND 5", "no such line", "✗ unmet  grpc.status == OK"] {
        assert!(output.stdout.contains(expected), "{expected}: {output}");
    }
}

#[test]
fn what_is_no_answer_to_a_checked_call_fails_by_name() {
    let answer = |status, kind: &'static str, content: Vec<u8>, trailers| Http2Answer::Parts {
        status,
        head: vec![("content-type", kind)],
        content,
        trailers,
    };
    let ok = || vec![("grpc-status", "0")];
    let one = |message: &[u8]| {
        let length = u8::try_from(message.len()).unwrap();
        [&[0, 0, 0, 0, length], message].concat()
    };
    for (answer, kind) in [
        (
            answer(200, "text/html", b"<html>".to_vec(), ok()),
            "protocol",
        ),
        (
            answer(200, "application/grpc", one(b""), vec![]),
            "protocol",
        ),
        (answer(200, "application/grpc", vec![], ok()), "protocol"),
        (
            answer(200, "application/grpc", vec![0, 0, 0, 0, 9], ok()),
            "protocol",
        ),
        (
            answer(200, "application/grpc", vec![1, 0, 0, 0, 0], ok()),
            "decode",
        ),
        (
            answer(200, "application/grpc", one(b"\x0a\x09hi"), ok()),
            "decode",
        ),
        (
            answer(200, "application/grpc", vec![0; 5 * 300_000], ok()),
            "protocol",
        ),
    ] {
        let shown = format!("{answer:.80?}");
        let origin = Http2Origin::builder()
            .answer(move |_, _| answer.clone())
            .start();
        let flags = [
            "check",
            "--json",
            "--proto-set",
            SET,
            "--grpc",
            "plimsoll.test.Echo/Say",
            &origin.url("/"),
        ];
        let document = plimsoll(&flags).exits(1).json();
        assert_eq!(document["verdict"], "failed", "{shown}");
        assert_eq!(document["exchange"]["failure"]["kind"], kind, "{document}");
    }
    // A gateway without a backend answers by HTTP.
    let origin = Http2Origin::builder()
        .answer(move |_, _| answer(503, "text/plain", b"no backend".to_vec(), vec![]))
        .start();
    let document = checked(&origin.url("/"), "Say", "{}", &["--proto-set", SET], 1);
    assert_eq!(document["grpc"]["status"], "UNAVAILABLE");
    assert_eq!(document["grpc"]["answer"], Value::Null);
}

#[test]
fn statuses_are_conditions_of_calls_only() {
    let server = TonicServer::start(Reflection::Nothing);
    let summary = called(
        &server.url(),
        "Fail",
        r#"{"code": 5}"#,
        &[
            "--proto-set",
            SET,
            "--expect",
            "grpc.status == NOT_FOUND",
            "--expect",
            "grpc.status == OK",
        ],
        1,
    );
    assert_eq!(summary["unmet"], json!({ "grpc.status == OK": 200 }));
    for command in ["load", "check"] {
        let flags = [
            command,
            "--expect",
            "grpc.status == OK",
            "http://127.0.0.1:1/",
        ];
        let output = plimsoll(&flags).exits(2);
        assert!(
            output.stderr.contains("`grpc.status` needs --grpc"),
            "{output}"
        );
    }
    let output = plimsoll(&["check", "--grpc", "a.B/C", "--digest", "a:b", &server.url()]).exits(2);
    assert!(
        output.stderr.contains("--digest: does not go with --grpc"),
        "{output}"
    );
}
