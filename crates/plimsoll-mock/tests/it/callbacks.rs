//! Callbacks: what rules send once they have answered.

use plimsoll_testkit::eventually;
use plimsoll_testkit::http::request;
use serde_json::json;

use crate::admin::Administered;
use crate::mock::Served;

/// A server that keeps what it is sent.
fn receiver() -> Served {
    Served::rules("rules = []\n[[collections]]\npath = \"/hooks\"\ndata = \"[]\"\n")
}

#[test]
fn a_rule_calls_back_with_what_the_request_had() {
    let receiver = receiver();
    let address = receiver.address();
    let served = Served::rules(&format!(
        r#"[[rules]]
when.request.url_path = {{ op = "pattern", value = "/orders/{{id}}" }}
respond.status = 202
[[rules.callbacks]]
template = true
url = "http://{address}/{{{{request.query.to}}}}"
headers.x-id = "{{{{request.path.id}}}}"
json = '{{ "id": "{{{{request.path.id}}}}", "seen": "{{{{request.header.x-a}}}}" }}'
delay = "1ms"
"#
    ));
    for id in ["7", "8"] {
        let path = format!("/orders/{id}?to=hooks");
        assert_eq!(served.ask("GET", &path, &["x-a: b"], "").status, 202);
    }
    eventually(|| receiver.get("/hooks/7").status == 200 && receiver.get("/hooks/8").status == 200);
    assert_eq!(receiver.get("/hooks/7").text(), r#"{"id":"7","seen":"b"}"#);
    // A server that is not there does no harm.
    assert_eq!(served.get("/orders/9?to=%20").status, 202);
    assert_eq!(served.get("/orders/9?to=hooks").status, 202);
    eventually(|| receiver.get("/hooks/9").status == 200);
}

#[cfg(feature = "mock-import")]
#[test]
fn webhooks_of_wiremock_and_callbacks_of_mockoon_are_sent() {
    let receiver = receiver();
    let address = receiver.address();
    let mapping = format!(
        r#"{{ "request": {{ "urlPath": "/a" }}, "response": {{ "status": 200 }},
            "serveEventListeners": [{{ "name": "webhook", "parameters": {{
                "method": "POST", "url": "http://{address}/hooks", "headers": {{ "Content-Type": "application/json" }},
                "body": "{{ \"id\": \"{{{{jsonPath originalRequest.body '$.n'}}}}\", \"of\": \"{{{{parameters.of}}}}\" }}", "of": "wiremock",
                "delay": {{ "type": "fixed", "milliseconds": 1 }} }} }}] }}"#
    );
    let environment = format!(
        r#"{{ "routes": [{{ "type": "http", "method": "post", "endpoint": "a", "responses": [
                {{ "statusCode": 201, "body": "", "callbacks": [{{ "uuid": "c", "latency": 0 }}] }}] }}],
            "callbacks": [{{ "uuid": "c", "id": "c", "method": "post", "uri": "http://{address}/hooks",
                "headers": [{{ "key": "Content-Type", "value": "application/json" }}],
                "body": "{{ \"id\": \"m{{{{body 'n'}}}}\" }}", "bodyType": "INLINE" }}] }}"#
    );
    // What is under way ends with its server.
    let mut servers = Vec::new();
    for (name, text, status) in [
        ("mapping.json", mapping, 200),
        ("mockoon.json", environment, 201),
    ] {
        let folder = crate::mock::files(&[(name, &text)]);
        let shared = plimsoll_mock::SharedMock::of_file(
            &folder.path().join(name),
            &plimsoll_server::Notices::default(),
        )
        .unwrap_or_else(|problems| panic!("{problems:?}"));
        let served = Served::start(folder, shared);
        let json = ["content-type: application/json"];
        assert_eq!(
            served.ask("POST", "/a", &json, r#"{"n": 5}"#).status,
            status
        );
        servers.push(served);
    }
    eventually(|| {
        receiver.get("/hooks/5").status == 200 && receiver.get("/hooks/m5").status == 200
    });
    assert_eq!(
        receiver.get("/hooks/5").text(),
        r#"{"id":"5","of":"wiremock"}"#
    );
}

const SHOP: &str = "
openapi: 3.1.0
paths:
  /orders/{id}:
    post:
      requestBody:
        required: true
        content: {application/json: {schema: {type: object, required: [url]}}}
      responses:
        '202': {description: accepted, headers: {X-Run: {schema: {type: string, example: r7}}}}
      callbacks:
        paid: {$ref: '#/components/callbacks/paid'}
webhooks:
  restock:
    post:
      parameters: [{name: X-Event, in: header, schema: {type: string, example: restock}}]
      requestBody: {content: {application/json: {example: {id: w1, left: 3}}}}
components:
  callbacks:
    paid:
      '{$request.body#/url}/hooks?run={$response.header.x-run}':
        post:
          requestBody:
            content:
              application/json:
                schema: {type: object, required: [id], properties: {id: {type: string, example: o1}}}
";

fn shop(receiver: &Served, callbacks: &str) -> (Administered, String) {
    let route = format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\n[[route]]\nmock = {{ file = \"shop.yaml\", callbacks = {callbacks} }}\n\
         [admin]\naddress = \"127.0.0.1:0\"\n"
    );
    let mock = Administered::start_with(&route, &[("shop.yaml", SHOP)]);
    (mock, format!("http://{}", receiver.address()))
}

fn order(mock: &Administered, body: &str) -> u16 {
    let fields = ["host: a", "content-type: application/json"];
    request(mock.address(0), "POST", "/orders/7", &fields, body).status
}

#[test]
fn an_operation_of_openapi_sends_its_callbacks_to_hosts_that_are_named() {
    let receiver = receiver();
    let (mock, url) = shop(&receiver, "[\"127.0.0.1\"]");
    let body = json!({ "url": url }).to_string();
    // A request that is refused has none.
    assert_eq!(order(&mock, "{}"), 422);
    assert_eq!(order(&mock, &body), 202);
    eventually(|| receiver.get("/hooks/o1").status == 200);
    assert_eq!(receiver.get("/hooks").text(), r#"[{"id":"o1"}]"#);

    let expected = with_last(&receiver);
    let (closed, _) = shop(&receiver, "[\"localhost:1\"]");
    assert_eq!(order(&closed, &body), 202);
    // What would have been sent before is not there when this is.
    let hook = json!({ "url": format!("{url}/hooks"), "body": { "id": "last" } });
    assert_eq!(webhook(&closed, "restock", &hook), 202);
    eventually(|| receiver.get("/hooks/last").status == 200);
    assert_eq!(receiver.get("/hooks").text(), expected);
}

/// What the list of hooks is if nothing but `last` is added.
fn with_last(receiver: &Served) -> String {
    receiver
        .get("/hooks")
        .text()
        .replace(']', r#",{"id":"last"}]"#)
}

fn webhook(mock: &Administered, name: &str, body: &serde_json::Value) -> u16 {
    let host = format!("host: {}", mock.address(1));
    let path = format!("/mock/webhooks/{name}");
    mock.admin("POST", &path, &[&host], &body.to_string())
        .status
}

#[test]
fn webhooks_of_openapi_are_sent_on_demand() {
    let receiver = receiver();
    let (mock, url) = shop(&receiver, "[]");
    let listed = mock.json("GET", "/mock/webhooks", &serde_json::Value::Null, 200);
    assert_eq!(listed["webhooks"][0]["name"], "restock");
    let hook = format!("{url}/hooks");
    assert_eq!(webhook(&mock, "restock", &json!({ "url": hook })), 202);
    eventually(|| receiver.get("/hooks/w1").status == 200);
    assert_eq!(receiver.get("/hooks/w1").text(), r#"{"id":"w1","left":3}"#);
    let own = json!({ "url": hook, "body": { "id": "w2" }, "headers": { "x-a": "1" } });
    assert_eq!(webhook(&mock, "restock", &own), 202);
    eventually(|| receiver.get("/hooks/w2").status == 200);
    for (name, wrong, status) in [
        ("none", json!({ "url": hook }), 404),
        ("restock", json!({}), 422),
        ("restock", json!({ "url": "file:///etc/passwd" }), 422),
        ("restock", json!({ "url": hook, "bdoy": 1 }), 422),
        (
            "restock",
            json!({ "url": hook, "headers": { "a b": "1" } }),
            422,
        ),
    ] {
        assert_eq!(webhook(&mock, name, &wrong), status, "{wrong}");
    }
}
