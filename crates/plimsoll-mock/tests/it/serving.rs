//! Folders and rules as clients see them.

use std::fs;

use plimsoll_server::contract;
use plimsoll_testkit::eventually;

use crate::mock::{Served, make};

#[test]
fn a_mock_keeps_the_contract_of_actions() {
    let served = Served::folder(&[("index.json", "{}"), ("x.json", "{}")]);
    contract::action(make(&served.shared));
    let rules = "[[rules]]\nwhen.request.url_path = { op = \"starts_with\", value = \"/\" }\nrespond.text = \"a\"\n";
    contract::action(make(&Served::rules(rules).shared));
}

#[test]
fn a_folder_is_served_without_a_word() {
    let served = Served::folder(&[
        ("users.csv", "id,name\n1,Ann\n"),
        ("shop/index.json5", "{ open: true }"),
        ("page.html", "<p>"),
    ]);
    let answer = served.get("/users");
    assert_eq!(
        answer.text(),
        "{\"records\":[{\"id\":\"1\",\"name\":\"Ann\"}]}"
    );
    assert_eq!(answer.field("content-type"), Some("application/json"));
    assert_eq!(answer.field("access-control-allow-origin"), Some("*"));
    assert_eq!(answer.field("cache-control"), Some("no-store"));
    assert_eq!(served.get("/Shop/").text(), "{\"open\":true}");
    assert_eq!(served.ask("HEAD", "/page.html", &[], "").body, b"");
    assert_eq!(served.get("/nothing").status, 404);
    let options = served.ask("OPTIONS", "/anything", &["origin: http://a"], "");
    assert_eq!(options.status, 204);
    assert_eq!(options.field("access-control-allow-headers"), Some("*"));
    let credentials = ["origin: http://localhost:3000", "cookie: a=b"];
    let answer = served.ask("GET", "/users", &credentials, "");
    assert_eq!(
        answer.field("access-control-allow-origin"),
        Some("http://localhost:3000")
    );
    assert_eq!(answer.field("vary"), Some("origin"));
}

#[test]
fn new_and_changed_files_answer_at_once() {
    let served = Served::folder(&[("a.csv", "x\n1\n")]);
    assert_eq!(served.get("/a").text(), "{\"records\":[{\"x\":\"1\"}]}");
    served.write("a.csv", "x\n2\n");
    assert_eq!(served.get("/a").text(), "{\"records\":[{\"x\":\"2\"}]}");
    // It comes before the other one.
    served.write("a.json", "[]");
    assert_eq!(served.get("/a").text(), "[]");
    assert_eq!(served.get("/deep/b").status, 404);
    fs::create_dir_all(served.path("deep/er")).unwrap();
    served.write("deep/b.json", "1");
    assert_eq!(served.get("/deep/b").text(), "1");
    served.write("deep/er/c.json", "2");
    assert_eq!(served.get("/deep/er/c").text(), "2");
    fs::rename(served.path("deep"), served.path("moved")).unwrap();
    assert_eq!(served.get("/deep/b").status, 404);
    assert_eq!(served.get("/moved/er/c").text(), "2");
    served.write("moved/er/c.json", "3");
    assert_eq!(served.get("/moved/er/c").text(), "3");
    fs::remove_file(served.path("a.json")).unwrap();
    assert_eq!(served.get("/a").text(), "{\"records\":[{\"x\":\"2\"}]}");
}

#[test]
fn a_folder_that_vanishes_is_missed_and_found_again() {
    let served = Served::folder(&[("in/a.json", "1")]);
    assert_eq!(served.get("/in/a").text(), "1");
    fs::remove_dir_all(served.folder.path()).unwrap();
    assert_eq!(served.get("/in/a").status, 404);
    fs::create_dir_all(served.path("in")).unwrap();
    served.write("in/a.json", "2");
    assert_eq!(served.get("/in/a").text(), "2");
    served.write("in/a.json", "3");
    assert_eq!(served.get("/in/a").text(), "3");
}

#[test]
fn long_files_are_sent_in_pieces() {
    let served = Served::folder(&[]);
    let long = "0123456789abcdef".repeat((17 << 20) / 16);
    served.write("long.txt", &long);
    let answer = served.get("/long.txt");
    assert_eq!(
        answer.field("content-type"),
        Some("text/plain; charset=utf-8")
    );
    assert!(answer.text() == long);
    served.write("long.csv", &long);
    assert_eq!(served.get("/long.csv").status, 500);
}

#[test]
fn content_that_is_not_what_it_claims_is_a_mistake_of_the_client() {
    let served = Served::folder(&[("a.json", "1"), ("bad.json5", "{"), ("bad.csv", "a,b\n1\n")]);
    let json = "content-type: Application/JSON; charset=utf-8";
    let answer = served.ask("POST", "/a", &[json], "{\n \"a\": }");
    assert_eq!(answer.status, 400);
    assert!(
        answer.text().contains("line 2 column 7"),
        "{}",
        answer.text()
    );
    assert_eq!(served.ask("POST", "/a", &[json], "{}").status, 200);
    assert_eq!(
        served
            .ask("POST", "/a", &["content-type: text/plain"], "{")
            .status,
        200
    );
    let answer = served.get("/bad");
    assert_eq!(answer.status, 500);
    assert!(
        answer.text().starts_with("bad.json5 is not the JSON5"),
        "{}",
        answer.text()
    );
    assert!(served.get("/bad.csv").text().contains("line 2"));
}

#[test]
fn too_much_content_is_refused_whether_its_length_is_reported_or_not() {
    let served = Served::folder(&[("a.json", "1")]);
    let reported =
        b"POST /a HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-length: 1000000000\r\n\r\n";
    let response = String::from_utf8(served.talk(reported)).unwrap();
    assert!(response.starts_with("HTTP/1.1 413 "), "{response}");
    let mut untold =
        b"POST /a HTTP/1.1\r\nhost: a\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n"
            .to_vec();
    let chunk = vec![b'x'; 1 << 20];
    for _ in 0..33 {
        untold.extend_from_slice(b"100000\r\n");
        untold.extend_from_slice(&chunk);
        untold.extend_from_slice(b"\r\n");
    }
    let response = served.talk(&untold);
    assert!(
        response.starts_with(b"HTTP/1.1 413 "),
        "{}",
        String::from_utf8_lossy(&response)
    );
}

#[test]
fn rules_answer_and_files_what_they_leave() {
    let rules = r#"
[[rules]]
when.request.url_path = "/text"
respond = { text = "hello", headers = { x-a = "b", cache-control = "max-age=1", content-type = "text/x" } }

[[rules]]
when.request.url_path = "/status"
respond.status = 418

[[rules]]
when.request.url_path = "/file"
respond = { file_path = "data/list.csv", csv_records_key = "a.b", headers = { x-a = "c" } }

[[rules]]
when.request.url_path = "/late"
respond = { text = "late", delay_response_milliseconds = 20 }
"#;
    let served = Served::rules_with(rules, &[("data/list.csv", "x\n1\n")]);
    let answer = served.get("/text/");
    assert_eq!((answer.status, answer.text()), (200, "hello"));
    assert_eq!(answer.field("cache-control"), Some("max-age=1"));
    assert_eq!(answer.field("content-type"), Some("text/x"));
    assert_eq!(served.get("/status").status, 418);
    let answer = served.get("/file");
    assert_eq!(answer.text(), "{\"a\":{\"b\":[{\"x\":\"1\"}]}}");
    assert_eq!(answer.field("x-a"), Some("c"));
    served.write("data/list.csv", "x\n2\n");
    assert_eq!(
        served.get("/file").text(),
        "{\"a\":{\"b\":[{\"x\":\"2\"}]}}"
    );
    fs::remove_file(served.path("data/list.csv")).unwrap();
    assert_eq!(served.get("/file").status, 404);
    assert_eq!(served.get("/late").text(), "late");
    assert_eq!(served.get("/else").status, 404);
}

#[test]
fn changed_rules_answer_and_bad_ones_do_not() {
    let rule = |text: &str| {
        format!("[[rules]]\nwhen.request.url_path = \"/a\"\nrespond.text = \"{text}\"\n")
    };
    let served = Served::rules(&rule("one"));
    assert_eq!(served.get("/a").text(), "one");
    served.write("rules.toml", &rule("two"));
    eventually(|| served.get("/a").text() == "two");
    served.write("rules.toml", "[[rules]]\nnonsense = 1\n");
    served.write("other", "");
    let epoch = served.shared.epoch();
    served.write("rules.toml", &rule("three"));
    eventually(|| served.get("/a").text() == "three");
    assert!(served.shared.epoch() > epoch);
}
