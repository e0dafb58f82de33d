//! The admin API of a mock, as `plimsoll up` compiles it.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use plimsoll_server::config::Compiler;
use plimsoll_server::{Address, Counters, Engine};
use plimsoll_testkit::eventually;
use plimsoll_testkit::http::{HttpResponse, request};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::mock::files;
use crate::websocket::Client;

const RULES: &str = r#"
[[rules]]
id = "order"
when.request = { url_path = "/orders", method = "POST" }
respond = { status = 201, json = '{"id":7}' }
scenario = { name = "cart", state = "Started", next = "full" }

[[rules]]
when.request.url_path = { op = "starts_with", value = "/orders" }
respond.text = "orders"
scenario = { name = "visits", next = "again", session = "cookie:sid" }

[[collections]]
path = "/users"
file = "users.json"
"#;

const ROUTE: &str = r#"
[[listen]]
address = "127.0.0.1:0"
[[route]]
prefix = "/api"
mock = { file = "rules.toml" }
[admin]
address = "127.0.0.1:0"
"#;

/// A mock with its admin port.
pub(crate) struct Administered {
    /// It serves as long as it lives.
    _engine: Engine,
    addresses: Vec<SocketAddr>,
    folder: TempDir,
    schema: Value,
}

impl Administered {
    fn start(route: &str) -> Self {
        let users = ("users.json", r#"[{ "id": 1, "name": "Ann" }]"#);
        Self::start_with(route, &[("rules.toml", RULES), users])
    }

    /// A configuration beside these files.
    pub(crate) fn start_with(route: &str, beside: &[(&str, &str)]) -> Self {
        let folder = files(beside);
        let counters = Arc::<Counters>::default();
        let mut compiler = Compiler::new(folder.path(), &counters);
        compiler.actions = vec![plimsoll_mock::KIND];
        let plan = compiler
            .compile(route)
            .unwrap_or_else(|problems| panic!("{problems:?}"));
        let schema = include_str!("../../../../schemas/mock-admin.v1.json");
        let engine = Engine::start(&plan.engine, counters).unwrap();
        let bound = engine.bound(&plan.engine);
        Self {
            addresses: bound.iter().filter_map(Address::port).collect(),
            _engine: engine,
            folder,
            schema: serde_json::from_str(schema).unwrap(),
        }
    }

    pub(crate) fn address(&self, number: usize) -> SocketAddr {
        self.addresses[number]
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn ask(&self, method: &str, target: &str, body: &str) -> HttpResponse {
        request(self.address(0), method, target, &["host: a"], body)
    }

    /// The same with fields.
    pub(crate) fn ask_with(
        &self,
        method: &str,
        target: &str,
        fields: &[&str],
        body: &str,
    ) -> HttpResponse {
        let fields = [&["host: a"], fields].concat();
        request(self.address(0), method, target, &fields, body)
    }

    pub(crate) fn admin(
        &self,
        method: &str,
        target: &str,
        fields: &[&str],
        body: &str,
    ) -> HttpResponse {
        request(self.address(1), method, target, fields, body)
    }

    /// The document of an answer, which is as its schema has it; null without one.
    pub(crate) fn json(&self, method: &str, target: &str, body: &Value, status: u16) -> Value {
        let text = if body.is_null() {
            String::new()
        } else {
            body.to_string()
        };
        let host = format!("host: {}", self.address(1));
        let answer = self.admin(method, target, &[&host], &text);
        assert_eq!(answer.status, status, "{target}: {}", answer.text());
        if status == 204 {
            assert_eq!(answer.body, b"");
            return Value::Null;
        }
        assert_eq!(answer.field("content-type"), Some("application/json"));
        let document: Value = serde_json::from_slice(&answer.body).unwrap();
        if target != "/mock/match" {
            jsonschema::validate(&self.schema, &document)
                .unwrap_or_else(|error| panic!("{target}: {error}: {document:#}"));
        }
        document
    }

    fn get(&self, target: &str) -> Value {
        self.json("GET", target, &Value::Null, 200)
    }
}

#[test]
fn the_journal_reports_what_was_sent_over_websockets() {
    let mock = Administered::start(ROUTE);
    let rule = json!({
        "id": "chat",
        "when": { "request": { "url_path": "/chat" } },
        "respond": { "websocket": { "messages": [{ "say": [{ "echo": true }, { "close": 1000, "reason": "done" }] }] } },
    });
    mock.json("POST", "/mock/rules", &rule, 201);
    let mut client = Client::open(mock.address(0), "/api/chat", "");
    let session = || mock.get("/mock/requests/1")["request"]["session"].clone();
    let open = json!({ "received": 0, "sent": 0, "messages": [], "end": null });
    assert_eq!(session(), open);
    client.say("hello");
    eventually(|| !session()["end"].is_null());
    let message = |from| json!({ "from": from, "kind": "text", "bytes": 5, "text": "hello" });
    let ended = json!({
        "received": 1,
        "sent": 1,
        "messages": [message("client"), message("server")],
        "end": { "by": "server", "code": 1000, "reason": "done" },
    });
    assert_eq!(session(), ended);
    let request = mock.get("/mock/requests/1")["request"].clone();
    assert_eq!(request["status"], 101);
    assert_eq!(request["answered_by"], json!({ "rule": "chat" }));
}

#[test]
fn requests_are_kept_with_what_answered_them() {
    let mock = Administered::start(ROUTE);
    assert_eq!(
        mock.ask("POST", "/api/orders", "{\"amount\":2}").status,
        201
    );
    assert_eq!(mock.ask("GET", "/api/orders/7?x=1", "").status, 200);
    assert_eq!(mock.ask("GET", "/api/users/1", "").status, 200);
    assert_eq!(mock.ask("GET", "/api/ordres", "").status, 404);
    assert_eq!(mock.ask("OPTIONS", "/api/orders", "").status, 204);
    let list = mock.get("/mock/requests");
    let by: Vec<_> = list["requests"]
        .as_array()
        .unwrap()
        .iter()
        .map(|request| request["answered_by"].clone())
        .collect();
    let expected = [
        json!({ "preflight": true }),
        Value::Null,
        json!({ "collection": "/users" }),
        json!({ "rule": "1.2" }),
        json!({ "rule": "order" }),
    ];
    assert_eq!(by, expected);
    assert_eq!(list["count"], 5);
    let second = &list["requests"][3];
    assert_eq!(second["path"], "/api/orders/7");
    assert_eq!(second["query"], "x=1");
    assert_eq!(second["status"], 200);
    let first = mock.get("/mock/requests/1");
    assert_eq!(first["request"]["body"], "{\"amount\":2}");
    assert_eq!(first["request"]["conditions"][0]["is_met"], true);
    let unmatched = mock.get("/mock/requests?unmatched=true");
    assert_eq!(unmatched["count"], 1);
    assert_eq!(mock.get("/mock/requests?rule=order&limit=0")["count"], 1);
    assert_eq!(mock.get("/mock/requests?since=4")["count"], 1);
    mock.json("GET", "/mock/requests?limit=x", &Value::Null, 400);
    mock.json("GET", "/mock/requests/99", &Value::Null, 404);
    mock.json("DELETE", "/mock/requests/1", &Value::Null, 204);
    mock.json("DELETE", "/mock/requests", &Value::Null, 204);
    assert_eq!(mock.get("/mock/requests")["count"], 0);
    mock.json("PATCH", "/mock/requests", &Value::Null, 405);
}

#[test]
fn near_misses_say_which_condition_failed() {
    let mock = Administered::start(ROUTE);
    assert_eq!(mock.ask("POST", "/api/ordres", "").status, 404);
    let near = mock.get("/mock/near-misses?limit=1");
    let miss = &near["requests"][0]["near_misses"][0];
    assert_eq!(miss["rule"], "order", "{near:#}");
    assert_eq!(miss["conditions"][0]["is_met"], false);
    assert_eq!(miss["conditions"][0]["found"], "\"/ordres\"");
    assert_eq!(miss["conditions"][1]["is_met"], true);
}

#[test]
fn requests_are_found_and_counted_by_conditions() {
    let mock = Administered::start(ROUTE);
    for amount in 1..=3 {
        mock.ask("POST", "/api/orders", &format!("{{\"amount\":{amount}}}"));
    }
    let when = json!({ "when": { "request": {
        "url_path": "/orders",
        "body": { "json": { "amount": { "op": "greater_than", "value": "1" } } },
    } } });
    let count = mock.json("POST", "/mock/requests/count", &when, 200);
    assert_eq!((&count["count"], &count["dropped"]), (&json!(2), &json!(0)));
    let found = mock.json("POST", "/mock/requests/find?limit=1", &when, 200);
    assert_eq!(found["requests"][0]["number"], 3);
    assert_eq!(
        mock.json("POST", "/mock/requests/count", &Value::Null, 200)["count"],
        3
    );
    let wrong = json!({ "when": { "request": { "url_paht": "/a" } } });
    let problems = mock.json("POST", "/mock/requests/count", &wrong, 422);
    let problems = problems["problems"].as_array().unwrap().iter();
    let mut unknown = problems.filter(|it| it["key"] == "when.request.url_paht");
    assert_eq!(unknown.next().unwrap()["hint"], "did you mean `url_path`?");
}

#[test]
fn rules_are_added_changed_and_removed_and_stay_when_files_change() {
    let mock = Administered::start(ROUTE);
    let text = |path: &str| mock.ask("GET", path, "").text().to_owned();
    assert_eq!(text("/api/orders"), "orders");
    let rule = |text: &str| json!({ "when": { "request": { "url_path": "/orders" } }, "respond": { "text": text } });
    let added = mock.json("POST", "/mock/rules", &rule("new"), 201);
    assert_eq!(added["added"], json!(["added-1"]));
    assert_eq!(text("/api/orders"), "new");
    mock.json("PUT", "/mock/rules/added-1", &rule("newer"), 204);
    assert_eq!(text("/api/orders"), "newer");
    mock.json("PUT", "/mock/rules/1.2", &rule("changed"), 204);
    mock.json("DELETE", "/mock/rules/added-1", &Value::Null, 204);
    assert_eq!(text("/api/orders"), "changed");
    assert_eq!(mock.get("/mock/rules/1.2")["rule"]["origin"], "changed");
    mock.json("DELETE", "/mock/rules/1.2", &Value::Null, 204);
    assert_eq!(mock.ask("GET", "/api/orders", "").status, 404);
    mock.json("DELETE", "/mock/rules/1.2", &Value::Null, 404);
    mock.json("POST", "/mock/rules/reset", &Value::Null, 204);
    assert_eq!(text("/api/orders"), "orders");

    let host = format!("host: {}", mock.address(1));
    let toml = ["content-type: application/toml", &host];
    let rules = "[[rules]]\nid = \"x\"\nwhen.request.url_path = \"/x\"\nrespond.text = \"x\"\n";
    let answer = mock.admin("POST", "/mock/rules", &toml, rules);
    assert_eq!(answer.field("location"), Some("rules/x"));
    assert_eq!(mock.admin("POST", "/mock/rules", &toml, rules).status, 409);
    let answer = mock.admin("POST", "/mock/rules", &toml, "[[rules]]\nx = 1\n");
    assert_eq!(answer.status, 422);
    let problems: Value = serde_json::from_slice(&answer.body).unwrap();
    jsonschema::validate(&mock.schema, &problems).unwrap();
    assert_eq!(problems["problems"][0]["line"], 1);

    let changed = RULES.replace("\"orders\"", "\"others\"");
    fs::write(mock.folder.path().join("rules.toml"), changed).unwrap();
    eventually(|| text("/api/orders") == "others");
    assert_eq!(text("/api/x"), "x");
    let list = mock.get("/mock/rules");
    assert_eq!(list["count"], 3);
    assert_eq!(list["rules"][0]["origin"], "added");
    assert_eq!(list["rules"][1]["rule"]["respond"]["status"], 201);
    assert_eq!(list["rules"][0]["hits"], 1);
}

#[test]
fn scenarios_and_collections_are_reported_set_and_reset() {
    let mock = Administered::start(ROUTE);
    mock.ask("POST", "/api/orders", "");
    let cart = |mock: &Administered| mock.get("/mock/scenarios/cart")["scenario"].clone();
    assert_eq!(cart(&mock)["state"], "full");
    assert_eq!(cart(&mock)["states"], json!(["Started", "full"]));
    mock.json(
        "PUT",
        "/mock/scenarios/cart",
        &json!({ "state": "Started" }),
        204,
    );
    assert_eq!(cart(&mock)["state"], "Started");
    mock.json(
        "PUT",
        "/mock/scenarios/cart",
        &json!({ "state": "lost" }),
        422,
    );
    mock.json(
        "PUT",
        "/mock/scenarios/none",
        &json!({ "state": "full" }),
        404,
    );
    mock.json(
        "PUT",
        "/mock/scenarios/visits",
        &json!({ "state": "again" }),
        422,
    );
    let ann = json!({ "state": "again", "client": "ann" });
    mock.json("PUT", "/mock/scenarios/visits", &ann, 204);
    let all = mock.get("/mock/scenarios");
    assert_eq!(
        all["scenarios"][1]["clients"],
        json!([{ "client": "ann", "state": "again" }])
    );
    mock.json("POST", "/mock/scenarios/reset", &Value::Null, 204);
    assert_eq!(
        mock.get("/mock/scenarios")["scenarios"][1]["clients"],
        json!([])
    );

    assert_eq!(mock.ask("DELETE", "/api/users/1", "").status, 204);
    assert_eq!(
        mock.get("/mock/collections")["collections"][0]["objects"],
        0
    );
    mock.json("POST", "/mock/collections/reset", &Value::Null, 204);
    assert_eq!(
        mock.get("/mock/collections")["collections"][0]["objects"],
        1
    );

    mock.ask("DELETE", "/api/users/1", "");
    mock.json("POST", "/mock/reset", &Value::Null, 204);
    let status = mock.get("/mock/status");
    assert_eq!(status["journal"]["requests"], 0);
    assert_eq!(
        mock.get("/mock/collections")["collections"][0]["objects"],
        1
    );
}

#[test]
fn a_request_is_tried_without_being_sent() {
    let mock = Administered::start(ROUTE);
    let request =
        json!({ "method": "POST", "path": "/orders?a=b", "headers": { "x": "y" }, "body": "{}" });
    let response = mock.json("POST", "/mock/match", &request, 200);
    assert_eq!(response["answer"], json!({ "set": 1, "rule": 1 }));
    mock.json("POST", "/mock/match", &json!({ "path": 1 }), 422);
    assert_eq!(mock.get("/mock/requests")["count"], 0);
}

#[test]
fn pages_of_others_and_those_without_the_token_are_refused() {
    let mock = Administered::start(ROUTE);
    let own = mock.address(1).to_string();
    let host = format!("host: {own}");
    let status = |fields: &[&str]| mock.admin("POST", "/mock/reset", fields, "").status;
    assert_eq!(status(&[&host]), 204);
    assert_eq!(status(&[&host, &format!("origin: http://{own}")]), 204);
    for origin in ["http://evil.example", "null", "http://127.0.0.1", ""] {
        assert_eq!(
            status(&[&host, &format!("origin: {origin}")]),
            403,
            "{origin}"
        );
    }
    assert_eq!(status(&["host: evil.example"]), 403);
    assert_eq!(status(&["host: localhost:9"]), 204);

    let token = format!("{ROUTE}token = \"0123456789abcdef\"\n");
    let mock = Administered::start(&token);
    let status = |fields: &[&str]| mock.admin("POST", "/mock/reset", fields, "").status;
    assert_eq!(status(&[&host]), 401);
    assert_eq!(
        status(&[&host, "authorization: Bearer 0123456789abcdeF"]),
        401
    );
    let given = "authorization: Bearer 0123456789abcdef";
    assert_eq!(status(&["host: mock.example", given]), 204);
}

#[test]
fn several_mocks_have_numbers_and_one_may_keep_nothing() {
    let two = format!(
        "{ROUTE}[[route]]\nprefix = \"/other\"\nmock = {{ file = \"rules.toml\", journal = 0 }}\n"
    );
    let mock = Administered::start(&two);
    mock.ask("GET", "/other/orders", "");
    assert_eq!(mock.get("/mock/requests")["count"], 0);
    assert_eq!(mock.get("/mock2/status")["journal"], Value::Null);
    mock.json("GET", "/mock2/requests", &Value::Null, 409);
}

#[test]
fn content_of_the_wrong_kind_is_refused_in_words() {
    let mock = Administered::start(ROUTE);
    let host = format!("host: {}", mock.address(1));
    for (target, body) in [
        ("/mock/rules", "{"),
        ("/mock/rules", "[]"),
        ("/mock/match", "\"x\""),
        ("/mock/requests/count", "null"),
    ] {
        let answer = mock.admin("POST", target, &[&host], body);
        assert!((400..500).contains(&answer.status), "{target} {body}");
        let error: Value = serde_json::from_slice(&answer.body).unwrap();
        jsonschema::validate(&mock.schema, &error).unwrap();
    }
    let long = "x".repeat(9 << 20);
    assert_eq!(
        mock.admin("POST", "/mock/rules", &[&host], &long).status,
        413
    );
    mock.json("GET", "/mock/nothing", &Value::Null, 404);
}
