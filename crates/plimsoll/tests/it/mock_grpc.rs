//! Calls of gRPC that a mock answers, made by our client.

use serde_json::{Value, json};

use plimsoll_testkit::MaterialFiles;

use crate::plimsoll::plimsoll;
use crate::served::Served;

const SET: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/echo.binpb");

const RULES: &str = r#"
[grpc]
descriptors = "echo.binpb"

[[rules]]
when.grpc = { method = "plimsoll.test.Echo/Say", json.text = "boom" }
[rules.respond.grpc]
status = "RESOURCE_EXHAUSTED"
message = "zu voll für {{request.json.text}}, 100 %"
trailers = { x-retry = "later" }
[rules.respond]
template = true

[[rules]]
when.grpc = { method = "plimsoll.test.Echo/Say", json.text = "odd" }
respond = { template = true, grpc.json = '{ "took": "{{request.json.text}}" }' }

[[rules]]
when.grpc = "plimsoll.test.Echo/Say"
respond = { template = true, delay = "2ms", grpc.json = '{ "text": "{{request.json.text}}!", "took": "1.5s" }' }

[[rules]]
when.grpc = "plimsoll.test.Echo/Repeat"
respond.grpc.json = ['{ "text": "a" }', '{ "text": "b" }']
"#;

struct Mock {
    served: Served,
    _files: MaterialFiles,
}

impl Mock {
    fn start(flags: &[&str]) -> Self {
        let files = MaterialFiles::new();
        let rules = files.write("rules.toml", RULES);
        std::fs::copy(SET, files.path("echo.binpb")).unwrap();
        let rules = rules.to_string_lossy().into_owned();
        let served = crate::mock::mock(&[&[&*rules, "--threads", "1"], flags].concat());
        Self {
            served,
            _files: files,
        }
    }

    /// What a call comes to.
    fn called(&self, method: &str, json: &str, flags: &[&str], exit: i32) -> Value {
        let method = format!("plimsoll.test.Echo/{method}");
        let call = [
            "check",
            "--json",
            "--grpc",
            &method,
            "-d",
            json,
            "--proto-set",
            SET,
        ];
        plimsoll(&[&call, flags, &[&*self.served.url]].concat())
            .exits(exit)
            .json()
    }
}

#[test]
fn calls_are_answered_by_their_messages() {
    let mock = Mock::start(&[]);
    let document = mock.called("Say", r#"{"text": "hello"}"#, &[], 0);
    assert_eq!(document["grpc"]["status"], "OK", "{document:#}");
    let text = document.to_string();
    assert!(
        text.contains("hello!") && text.contains("1.500s"),
        "{document:#}"
    );
    let document = mock.called("Say", r#"{"text": "boom"}"#, &[], 1);
    assert_eq!(document["grpc"]["status"], "RESOURCE_EXHAUSTED");
    assert_eq!(document["grpc"]["message"], "zu voll für boom, 100 %");
    let document = mock.called("Say", r#"{"text": "odd"}"#, &[], 1);
    assert_eq!(document["grpc"]["status"], "INTERNAL");
    let message = document["grpc"]["message"].as_str().unwrap();
    assert!(message.contains("is not a plimsoll.test.Line"), "{message}");
    let document = mock.called("Repeat", "{}", &[], 0);
    assert!(
        document.to_string().contains(r#"{"text":"b"}"#),
        "{document:#}"
    );
    let document = mock.called("Fail", "{}", &[], 1);
    assert_eq!(document["grpc"]["status"], "UNIMPLEMENTED");
}

#[test]
fn calls_come_over_tls_and_many_at_once() {
    let mock = Mock::start(&["--tls"]);
    let document = mock.called("Say", "{}", &["--insecure"], 0);
    assert_eq!(document["grpc"]["status"], "OK");
    let summary = plimsoll(&[
        "load",
        "--json",
        "-n",
        "200",
        "-c",
        "2",
        "-p",
        "8",
        "--insecure",
        "--grpc",
        "plimsoll.test.Echo/Say",
        "--proto-set",
        SET,
        "-d",
        "{}",
        &mock.served.url,
    ]);
    let summary = summary.exits(0).json();
    assert_eq!(summary["grpc"]["statuses"], json!({ "OK": 200 }));
    assert_eq!(summary["grpc"]["messages_received"], 200);
}
