//! Input that no client of good faith sends.

use plimsoll_testkit::Origin;
use serde_json::{Value, json};
use tempfile::tempdir;

use super::client::Client;

#[test]
fn lines_that_are_no_messages_are_passed_over() {
    let folder = tempdir().unwrap();
    let mut client = Client::start(folder.path(), &[]);
    let deep = format!("{}{}\n", "[".repeat(200_000), "]".repeat(200_000));
    let nested = format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":9001,\"method\":\"tools/call\",\"params\":{}1{}}}\n",
        "{\"a\":".repeat(100_000),
        "}".repeat(100_000)
    );
    for line in [
        b"\n".as_slice(),
        b"\xff\xfe\x00\n",
        b"{\"jsonrpc\":\"2.0\",\"id\":9002,\"method\":\"ping\xff\"}\n",
        b"{\n",
        b"[]\n",
        b"null\n",
        b"{\"jsonrpc\":\"2.0\",\"method\":\"made/up\"}\n",
        b"{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"ping\"}\n",
        deep.as_bytes(),
        nested.as_bytes(),
    ] {
        client.send_bytes(line);
    }
    let answer = client.request("ping", &json!({}));
    assert!(answer["result"].is_object(), "{answer}");
    // Longer than any line that is read.
    client.send_bytes(&vec![b'x'; 10 << 20]);
    client.send_bytes(b"\n");
    let answer = client.request("ping", &json!({}));
    assert!(answer["result"].is_object(), "{answer}");
}

#[test]
fn calls_that_cannot_be_made_are_errors_of_their_own() {
    let folder = tempdir().unwrap();
    let mut client = Client::start(folder.path(), &[]);
    let unknown = client.request("tools/call", &json!({ "name": "chek", "arguments": {} }));
    let message = unknown["error"]["message"].as_str().unwrap();
    assert!(message.contains("did you mean `check`?"), "{unknown}");
    let long = client.request("tools/call", &json!({ "name": "x".repeat(1 << 20) }));
    assert!(long["error"]["message"].as_str().unwrap().len() < 1000);
    for params in [
        json!({}),
        json!({ "name": 7 }),
        json!({ "name": "check", "arguments": [] }),
        json!({ "name": "check", "arguments": "x" }),
    ] {
        let answer = client.request("tools/call", &params);
        assert!(answer["error"].is_object(), "{params}: {answer}");
    }
    let method = client.request("made/up", &json!({}));
    assert!(method["error"].is_object(), "{method}");
}

#[test]
fn long_and_nested_arguments_are_taken_or_refused_by_name() {
    let origin = Origin::hello();
    let folder = tempdir().unwrap();
    let mut client = Client::start(folder.path(), &[]);
    let megabyte = "x".repeat(1 << 20);
    client
        .call(
            "check",
            &json!({ "url": format!("http://127.0.0.1/{megabyte}") }),
        )
        .fails(&["url: is longer than"]);
    client
        .call(
            "check",
            &json!({ "url": origin.url("/"), "headers": [format!("A: {megabyte}")] }),
        )
        .fails(&["headers: is longer than"]);
    let called = client
        .call(
            "check",
            &json!({ "url": origin.url("/"), "body": megabyte }),
        )
        .succeeds();
    assert!(
        called.structured["exchange"]["sent_bytes"]
            .as_u64()
            .unwrap()
            > 1 << 20
    );
    client
        .call("docs_search", &json!({ "query": megabyte }))
        .fails(&["query: is longer than"]);
    let mut nested = Value::Null;
    for _ in 0..60 {
        nested = json!([nested]);
    }
    client
        .call(
            "check",
            &json!({ "url": nested.clone(), "headers": nested, "\u{1b}[2J": 1 }),
        )
        .fails(&[
            "url: must be a string",
            "headers: must be a string",
            "\\u{1b}[2J: unknown argument",
        ]);
    for value in [
        "--help",
        "-",
        "a\u{0}b",
        "\u{202e}",
        "$(id)",
        "{scratch}",
        "%00",
    ] {
        let called = client
            .call("check", &json!({ "url": value }))
            .fails(&["url: "]);
        assert!(!called.text.contains('\u{0}'), "{value:?}");
        client
            .call("report", &json!({ "folders": [value] }))
            .fails(&[]);
    }
}

#[test]
fn more_calls_than_wait_are_refused_and_the_others_complete() {
    let origin = Origin::hello();
    let folder = tempdir().unwrap();
    let mut client = Client::start(folder.path(), &[]);
    let call = json!({ "url": origin.url("/"), "requests": 1, "connections": 1 });
    let ids: Vec<_> = (0..60).map(|_| client.begin_call("load", &call)).collect();
    let (mut complete, mut refused) = (0, 0);
    for id in ids {
        let answer = client.answer(id);
        if answer["result"]["isError"] == true {
            let text = answer["result"]["content"][0]["text"].as_str().unwrap();
            assert!(text.contains("32 calls run or wait already"), "{text}");
            refused += 1;
        } else {
            complete += 1;
        }
    }
    assert!(
        complete >= 32 && refused > 0,
        "{complete} complete, {refused} refused"
    );
    assert_eq!(origin.requests(), complete);
}
