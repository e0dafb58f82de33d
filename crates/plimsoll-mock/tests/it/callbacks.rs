//! Callbacks: what rules send once they have answered.

use plimsoll_testkit::eventually;

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
