//! The contract: what is listed, and each tool on servers that the test starts.

use std::fs;

use plimsoll_testkit::Origin;
use serde_json::{Value, json};
use tempfile::tempdir;

use super::client::Client;
use crate::plimsoll::plimsoll;
use crate::served::Served;

const NAMES: [&str; 13] = [
    "check",
    "load",
    "load_script",
    "load_validate",
    "compare",
    "line",
    "report",
    "mock_check",
    "mock_match",
    "config_check",
    "monitor_status",
    "incidents",
    "docs_search",
];

#[test]
fn tools_and_resources_are_listed_with_their_schemas() {
    let folder = tempdir().unwrap();
    let mut client = Client::start(folder.path(), &["--max-rate", "77/s"]);
    let listed = client.request("tools/list", &json!({}));
    let tools = listed["result"]["tools"].as_array().unwrap();
    let names: Vec<_> = tools
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, NAMES);
    for tool in tools {
        let schema = &tool["inputSchema"];
        assert!(jsonschema::validator_for(schema).is_ok(), "{tool}");
        assert_eq!(schema["additionalProperties"], false, "{tool}");
        let sends = ["check", "load", "load_script", "compare", "line"];
        let is_read_only = !sends.contains(&tool["name"].as_str().unwrap());
        assert_eq!(tool["annotations"]["readOnlyHint"], is_read_only, "{tool}");
    }
    let rate = &tools[1]["inputSchema"]["properties"]["rate"]["description"];
    assert!(rate.as_str().unwrap().contains("at most 77/s"), "{rate}");

    let listed = client.request("resources/list", &json!({}));
    let resources = listed["result"]["resources"].as_array().unwrap();
    for (uri, part) in [
        ("plimsoll://schemas/server.v1", "\"$schema\""),
        ("plimsoll://docs/load", "# plimsoll load"),
    ] {
        assert!(resources.iter().any(|it| it["uri"] == uri), "{uri}");
        let read = client.request("resources/read", &json!({ "uri": uri }));
        let text = read["result"]["contents"][0]["text"].as_str().unwrap();
        assert!(text.contains(part), "{uri}");
    }
    let unknown = client.request("resources/read", &json!({ "uri": "plimsoll://docs/x" }));
    assert!(
        unknown["error"]["message"]
            .as_str()
            .unwrap()
            .contains("no resource")
    );
}

/// A client with the output schemas of the tools.
struct Checking {
    client: Client,
    tools: Vec<Value>,
}

impl Checking {
    /// The structured result of a call, which is valid by the tool's schema.
    fn call(&mut self, tool: &str, arguments: &Value) -> (Value, String) {
        let called = self.client.call(tool, arguments).succeeds();
        let listed = self.tools.iter().find(|it| it["name"] == tool).unwrap();
        if let Some(schema) = listed.get("outputSchema") {
            let validator = jsonschema::validator_for(schema).unwrap();
            let errors: Vec<_> = validator.iter_errors(&called.structured).collect();
            assert!(errors.is_empty(), "{tool}: {errors:?}");
        }
        (called.structured, called.text)
    }
}

#[test]
fn every_tool_does_what_its_command_does() {
    let origin = Origin::hello();
    let url = origin.url("/");
    // The monitor checks it while requests to the other one are counted.
    let watched_origin = Origin::hello();
    let watched = watched_origin.url("/");
    let folder = tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write(
        "script.js",
        "import http from 'k6/http';\nexport const options = { vus: 2, iterations: 6 };\n\
         export default function () { http.get(__ENV.BASE); }\n",
    );
    write("requests.http", "GET /a\n\n###\nGET /b\n");
    write(
        "rules.toml",
        "[[rules]]\nwhen.request.url_path = { op = \"starts_with\", value = \"/orders\" }\nrespond.text = \"ok\"\n",
    );
    write(
        "up.toml",
        "[[listen]]\naddress = \"127.0.0.1:0\"\n[[route]]\nrespond = { body = \"hi\" }\n",
    );
    write(
        "monitor.toml",
        &format!("[[monitor]]\nname = \"a\"\nhttp = \"{watched}\"\ninterval = \"1s\"\n"),
    );
    fs::create_dir(folder.path().join("site")).unwrap();
    write("site/index.html", "<p>");
    let out = folder.path().join("result");
    plimsoll(&[
        "load",
        &url,
        "-n",
        "20",
        "-c",
        "1",
        "--out",
        out.to_str().unwrap(),
    ])
    .exits(0);
    let monitor = folder.path().join("monitor.toml");
    let monitor = Served::start(&[
        "monitor",
        monitor.to_str().unwrap(),
        "--listen",
        "127.0.0.1:0",
    ]);

    let mut client = Client::start(folder.path(), &["--monitor", &monitor.url]);
    let listed = client.request("tools/list", &json!({}));
    let tools = listed["result"]["tools"].as_array().unwrap().clone();
    let mut client = Checking { client, tools };

    let (check, text) = client.call("check", &json!({ "url": url, "expect": ["status == 200"] }));
    assert_eq!(check["verdict"], "met");
    assert!(text.starts_with("met: GET http://127.0.0.1"), "{text}");
    // What is not as expected is a result, and not an error.
    let (check, text) = client.call("check", &json!({ "url": url, "expect": ["status == 404"] }));
    assert_eq!(check["verdict"], "unmet");
    assert!(text.contains("unmet: status == 404"), "{text}");

    let closed = json!({ "url": url, "requests": 50, "connections": 2, "body": "@/etc/hostname" });
    let (load, text) = client.call("load", &closed);
    assert_eq!(load["counts"]["ok"], 50);
    assert_eq!(load["load"]["method"], "POST");
    assert!(
        text.contains("50 ok, 0 failed") && text.contains("p99"),
        "{text}"
    );
    let open = json!({ "url": url, "rate": 100, "duration": "500ms", "thresholds": ["p99<1us"] });
    let (load, text) = client.call("load", &open);
    assert_eq!(load["load"]["rate_per_second"], 100.0);
    assert_eq!(load["thresholds"][0]["verdict"], "breached");
    assert!(
        text.contains("p99<1us: breached") && text.contains(" requests/s"),
        "{text}"
    );
    let file = json!({ "url": url, "file": "requests.http", "rate": 50, "duration": 0.4 });
    let (load, _) = client.call("load", &file);
    assert_eq!(load["load"]["urls"], 2);

    let before = origin.requests();
    let (plan, text) = client.call("load_validate", &file);
    assert_eq!(plan["load"]["urls"], 2);
    assert!(text.contains("no errors"), "{text}");
    let script = json!({ "script": "script.js" });
    let (options, _) = client.call("load_validate", &script);
    assert_eq!(options["maxVUs"], 2);
    assert_eq!(origin.requests(), before, "validating sends nothing");
    let script = json!({ "script": "script.js", "env": [format!("BASE={url}")] });
    let (summary, text) = client.call("load_script", &script);
    assert_eq!(summary["metrics"]["http_reqs"]["count"], 6);
    assert!(text.contains("http_reqs"), "{text}");

    let same = json!({ "urls": [url, url], "names": ["a", "b"], "trials": 2, "seconds": 1, "connections": 2 });
    let (comparison, text) = client.call("compare", &same);
    assert_eq!(comparison["operands"].as_array().unwrap().len(), 2);
    assert!(text.starts_with("a against b: "), "{text}");
    let search = json!({
        "url": url, "most": 40, "first": 20, "window": "300ms", "warm_up": "100ms", "confirm": "0s", "rounds": 1,
        "objectives": ["errors<50%"],
    });
    let (line, text) = client.call("line", &search);
    assert!(line["ended"].is_string());
    assert!(text.contains("(ended: "), "{text}");

    let (report, _) = client.call("report", &json!({ "folders": ["result"] }));
    assert_eq!(report["counts"]["ok"], 20);
    let (_, text) = client.call("report", &json!({ "folders": ["result", "result"] }));
    assert!(text.contains('|'), "{text}");

    let (_, text) = client.call("mock_check", &json!({ "file": "rules.toml" }));
    assert!(text.contains("1 rule in 1 set"), "{text}");
    let asked = json!({ "mock": "rules.toml", "path": "/orders/7" });
    let (explanation, text) = client.call("mock_match", &asked);
    assert!(explanation["answer"].is_object(), "{explanation}");
    assert!(text.contains("matches"), "{text}");
    let asked = json!({ "mock": "rules.toml", "path": "/other" });
    let (explanation, text) = client.call("mock_match", &asked);
    assert!(
        explanation["answer"].is_null() && text.contains("no rule answers"),
        "{text}"
    );

    for (kind, file) in [
        ("up", "up.toml"),
        ("gateway", "up.toml"),
        ("monitor", "monitor.toml"),
        ("serve", "site"),
    ] {
        client.call("config_check", &json!({ "kind": kind, "file": file }));
    }
    let (status, _) = client.call("monitor_status", &json!({ "limit": 5 }));
    assert_eq!(status["monitors"][0]["name"], "a");
    let (incidents, _) = client.call("incidents", &json!({ "state": "open" }));
    assert!(incidents["incidents"].is_array(), "{incidents}");
    let (declared, _) = client.call("incidents", &json!({ "declared": true }));
    assert!(declared["declared_incidents"].is_array(), "{declared}");
    let (_, text) = client.call("docs_search", &json!({ "query": "open loop rate" }));
    assert!(text.contains("plimsoll://docs/load"), "{text}");
}

#[test]
fn errors_are_the_text_that_people_see() {
    let folder = tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write(
        "up.toml",
        "thread = 1\n[[listen]]\nadress = \"127.0.0.1:0\"\n",
    );
    write(
        "rules.toml",
        "[[rules]]\nwhen.request.method = { op = \"nope\", value = 1 }\n",
    );
    write("script.js", "export default function () { broken( }\n");
    write("empty.json", "{}");
    let mut client = Client::start(folder.path(), &["--monitor", "http://127.0.0.1:1"]);
    client
        .call("config_check", &json!({ "kind": "up", "file": "up.toml" }))
        .fails(&[
            "error: ./up.toml:1:1: thread: unknown key",
            "did you mean `address`?",
        ]);
    client
        .call("mock_check", &json!({ "file": "rules.toml" }))
        .fails(&["rules.toml:2"]);
    client
        .call("load_script", &json!({ "script": "script.js" }))
        .fails(&["script.js:1"]);
    client
        .call("load_script", &json!({ "script": "empty.json" }))
        .fails(&["is not the name of a script"]);
    client
        .call(
            "load_validate",
            &json!({ "url": "http://127.0.0.1:1/", "thresholds": ["x"], "expect": ["y"] }),
        )
        .fails(&["error: --threshold: ", "error: --expect: "]);
    client
        .call(
            "load",
            &json!({ "url": "http://127.0.0.1:1/", "duration": 1 }),
        )
        .fails(&["refused"]);
    client
        .call("report", &json!({ "folders": ["."] }))
        .fails(&["summary.json"]);
    client
        .call("monitor_status", &json!({}))
        .fails(&["http://127.0.0.1:1/", "hint: "]);
    let (check, _) = {
        let called = client
            .call("check", &json!({ "url": "http://127.0.0.1:1/" }))
            .succeeds();
        (called.structured, called.text)
    };
    assert_eq!(
        check["verdict"], "failed",
        "that nothing listens is what a check finds"
    );
}
