//! A configuration of Gatus, unchanged, and its API.

use std::fmt::Write as _;

use http::{Method, StatusCode};
use plimsoll_monitor::config::{LoadError, load};
use plimsoll_testkit::{NameServer, Origin, Script, eventually, refused_address};
use tempfile::TempDir;

use crate::client::Running;
use crate::notices::Receiver;

const JSON: &[u8] =
    b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 33\r\n\r\n{\"status\":\"UP\",\"items\":[1,2,3,4]}";

fn answer(status: &str, body: &str) -> Script {
    let length = body.len();
    let text = format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    Script::serve(text.into_bytes())
}

/// The first lines of the requests of an origin.
fn requests(origin: &Origin) -> Vec<String> {
    let lines = origin.heads();
    let first = |head: &String| {
        let line = head.lines().next().unwrap_or_default();
        line.trim_end_matches(" HTTP/1.1").to_owned()
    };
    lines.iter().map(first).collect()
}

/// The suite of Gatus's documentation, with what else its steps may use.
fn suite(name: &str, origin: &Origin) -> String {
    let url = origin.url("");
    format!(
        r#"
  - name: {name}
    group: api-tests
    interval: 200ms
    timeout: 10s
    context:
      price: "19.99"
      base: "{url}"
    endpoints:
      - name: create-item
        url: "[CONTEXT].base/items"
        method: POST
        body: '{{"name": "Test Item", "price": "[CONTEXT].price"}}'
        conditions:
          - "[STATUS] == 201"
          - "len([BODY].id) > 0"
          - "[BODY].price == [CONTEXT].price"
        store:
          itemId: "[BODY].id"
          session.token: "[BODY].token"
        alerts:
          - type: custom
            failure-threshold: 2
      - name: update-item
        url: {url}/items/[CONTEXT].itemId
        method: PUT
        headers:
          Authorization: Bearer [CONTEXT].session.token
        body: '{{"price": "24.99"}}'
        conditions:
          - "[STATUS] == 200"
          - "[BODY].token != [CONTEXT].session.token"
        alerts:
          - type: custom
            failure-threshold: 1
      - name: get-item
        url: {url}/items/[CONTEXT].itemId
        conditions:
          - "[STATUS] == 200"
          - "[BODY].price == 24.99"
          - "has([CONTEXT].itemId) == true"
          - "len([CONTEXT].itemId) == 2"
      - name: delete-item
        url: {url}/items/[CONTEXT].itemId
        method: DELETE
        always-run: true
        conditions:
          - "[STATUS] == 204"
"#
    )
}

#[test]
fn suites_are_checked_step_by_step_with_what_earlier_steps_stored() {
    const CREATED: &str = r#"{"id":42,"price":"19.99","token":"s3cret-of-a-run"}"#;

    let folder = TempDir::new().unwrap();
    let good = Origin::builder().script(|number| match number % 4 {
        0 => answer("201 Created", CREATED),
        1 => answer("200 OK", "{}"),
        2 => answer("200 OK", r#"{"price":24.99}"#),
        _ => answer("204 No Content", ""),
    });
    let good = good.start();
    // The second step fails, so the third is left out, and the last one runs all the same.
    let failing = Origin::builder().script(|number| match number % 3 {
        0 => answer("201 Created", CREATED),
        1 => answer("200 OK", r#"{"token":"s3cret-of-a-run"}"#),
        _ => answer("204 No Content", ""),
    });
    let failing = failing.start();
    // Nothing is stored, so the requests that need it are not made.
    let empty = Origin::builder().script(|_| answer("201 Created", r#"{"price":"19.99"}"#));
    let empty = empty.start();
    let text = format!(
        "suites:{}{}{}  - name: off\n    enabled: false\n    endpoints: [{{name: a, url: 'tcp://localhost:1', conditions: ['[CONNECTED] == true']}}]\n",
        suite("good", &good),
        suite("failing", &failing),
        suite("empty", &empty),
    );
    let running = Running::new(folder.path(), "config.yaml", &text);
    running.wait_for("api-tests_good", "up");
    running.wait_for("api-tests_failing", "down");
    running.wait_for("api-tests_empty", "down");
    eventually(|| good.requests() >= 8);

    let steps = [
        "POST /items",
        "PUT /items/42",
        "GET /items/42",
        "DELETE /items/42",
    ];
    assert_eq!(requests(&good)[..8], [steps, steps].concat());
    let update = &good.heads()[1].to_lowercase();
    assert!(
        update.contains("authorization: bearer s3cret-of-a-run"),
        "{update}"
    );
    let without_get = ["POST /items", "PUT /items/42", "DELETE /items/42"];
    assert_eq!(requests(&failing)[..3], without_get);
    assert!(requests(&empty).iter().all(|line| line == "POST /items"));

    let listed = || running.json("/api/v1/endpoints/statuses");
    eventually(|| {
        let all = listed();
        let all = all.as_array().unwrap();
        all.iter()
            .all(|one| !one["results"].as_array().unwrap().is_empty())
    });
    let all = listed();
    let all = all.as_array().unwrap();
    let conditions = |name: &str| {
        let found = all.iter().find(|one| one["name"] == name).unwrap();
        let last = found["results"].as_array().unwrap().last().unwrap();
        let judged = last["conditionResults"].as_array().unwrap().clone();
        let pair = |one: &serde_json::Value| {
            let text = one["condition"].as_str().unwrap().to_owned();
            (text, one["success"] == true)
        };
        judged.iter().map(pair).collect::<Vec<_>>()
    };
    assert_eq!(all.len(), 3, "one is not enabled");
    let good = conditions("good");
    assert_eq!(good.len(), 10);
    assert!(good.iter().all(|(_, met)| *met), "{good:?}");
    assert_eq!(good[0].0, "create-item: [STATUS] == 201");
    let failing = conditions("failing");
    assert_eq!(failing.len(), 6, "{failing:?}");
    assert!(failing[5].1 && failing[5].0 == "delete-item: [STATUS] == 204");
    // What a field with credentials sends is known by no one else.
    assert_eq!(
        failing[4],
        (
            "update-item: [BODY].token (********) != [CONTEXT].session.token (********)".to_owned(),
            false
        )
    );
    let reason = |key: &str| {
        let one = running.json(&format!("/api/v1/monitors/{key}"));
        one["last"]["reason"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    let failing = reason("api-tests_failing");
    assert!(failing.starts_with("step `update-item`: "), "{failing}");
    assert!(!failing.contains("s3cret"), "{failing}");
    let empty = reason("api-tests_empty");
    assert!(empty.starts_with("step `create-item`: "), "{empty}");
}

#[test]
fn endpoints_are_checked_as_gatus_checks_them() {
    let folder = TempDir::new().unwrap();
    let origin = Origin::scripted(Script::serve(JSON));
    let names = NameServer::builder()
        .record("a.test", [10, 1, 2, 3], 60)
        .start();
    let down = refused_address();
    let text = format!(
        r#"
anchors: &fast
  interval: 100ms
metrics: true
endpoints:
  - name: web page
    group: core
    url: "{url}"
    <<: *fast
    extra-labels:
      team: blue
    conditions:
      - "[STATUS] == 200"
      - "[BODY].status == UP"
      - "len([BODY].items) == 4"
      - "[RESPONSE_TIME] < 5s"
    alerts:
      - type: custom
        failure-threshold: 2
        success-threshold: 1
  - name: wrong
    url: "{url}"
    <<: *fast
    conditions:
      - "[STATUS] == 404"
      - "[BODY].status == pat(U?)"
  - name: closed
    url: "tcp://{down}"
    <<: *fast
    conditions:
      - "[CONNECTED] == false"
  - name: names
    url: "{dns}"
    <<: *fast
    dns:
      query-name: a.test
      query-type: A
    conditions:
      - "[DNS_RCODE] == NOERROR"
      - "[BODY] == 10.1.2.3"
  - name: off
    enabled: false
    url: "{url}"
    conditions: ["[STATUS] == 200"]
external-endpoints:
  - name: pushed
    token: "a secret"
"#,
        url = origin.url("/"),
        dns = names.address(),
    );
    let running = Running::new(folder.path(), "config.yaml", &text);
    for key in ["core_web-page", "_closed", "_names"] {
        running.wait_for(key, "up");
    }
    running.wait_for("_wrong", "down");
    assert_eq!(
        running.get("/api/v1/monitors/_off").0,
        StatusCode::NOT_FOUND
    );

    let all = running.json("/api/v1/endpoints/statuses?pageSize=3");
    let keys: Vec<_> = all
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["key"].as_str().unwrap())
        .collect();
    assert_eq!(
        keys,
        ["_closed", "_names", "_pushed", "_wrong", "core_web-page"]
    );
    let web = &all[4];
    assert_eq!(
        (&web["name"], &web["group"]),
        (&"web page".into(), &"core".into())
    );
    let result = web["results"].as_array().unwrap().last().unwrap();
    assert_eq!(
        (&result["success"], &result["status"]),
        (&true.into(), &200.into())
    );
    assert_eq!(result["hostname"], "127.0.0.1");
    assert_eq!(result["conditionResults"].as_array().unwrap().len(), 4);
    assert!(
        result["duration"].as_u64().unwrap() > 1000,
        "nanoseconds: {result}"
    );
    let wrong = all[3]["results"].as_array().unwrap().last().unwrap();
    assert_eq!(
        wrong["conditionResults"],
        serde_json::json!([
            { "condition": "[STATUS] (200) == 404", "success": false },
            { "condition": "[BODY].status == pat(U?)", "success": true },
        ])
    );
    assert!(wrong.get("errors").is_none(), "{wrong}");

    let one = running.json("/api/v1/endpoints/_wrong/statuses");
    let events: Vec<_> = one["events"]
        .as_array()
        .unwrap()
        .iter()
        .map(|event| event["type"].clone())
        .collect();
    assert_eq!(events, ["START", "UNHEALTHY"]);
    assert!(
        running
            .get("/api/v1/endpoints/_wrong/health/badge.svg")
            .1
            .contains("#c7130a")
    );
    let shields = running.json("/api/v1/endpoints/core_web-page/health/badge.shields");
    assert_eq!(
        (&shields["message"], &shields["color"]),
        (&"up".into(), &"brightgreen".into())
    );
    assert_eq!(
        running.get("/api/v1/endpoints/core_web-page/uptimes/24h").1,
        "1.000000"
    );
    assert_eq!(
        running.get("/api/v1/endpoints/_wrong/uptimes/1h").1,
        "0.000000"
    );
    assert_eq!(
        running.get("/api/v1/endpoints/_wrong/uptimes/2h").0,
        StatusCode::BAD_REQUEST
    );
    assert_eq!(
        running.get("/api/v1/endpoints/none/uptimes/1h").0,
        StatusCode::NOT_FOUND
    );
    assert!(
        running
            .get("/api/v1/endpoints/core_web-page/uptimes/1h/badge.svg")
            .1
            .contains("100%")
    );
    let time = running
        .get("/api/v1/endpoints/core_web-page/response-times/1h/badge.svg")
        .1;
    assert!(
        time.contains("response time 1h") && time.contains("ms<"),
        "{time}"
    );
    let metrics = running.get("/metrics").1;
    for line in [
        "gatus_results_total{key=\"core_web-page\",group=\"core\",name=\"web page\",type=\"HTTP\",team=\"blue\",success=\"true\"}",
        "gatus_results_code_total{key=\"_wrong\",group=\"\",name=\"wrong\",type=\"HTTP\",team=\"\",code=\"200\"}",
        "# TYPE gatus_results_endpoint_success gauge",
        "plimsoll_monitor_health{key=\"_wrong\",group=\"\",name=\"wrong\",kind=\"http\",health=\"down\"} 1",
    ] {
        assert!(metrics.contains(line), "no {line} in {metrics}");
    }
}

#[test]
fn external_endpoints_take_results_with_their_token() {
    let folder = TempDir::new().unwrap();
    let origin = Origin::hello();
    let text = format!(
        "endpoints:\n- {{name: a, url: '{}', conditions: ['[STATUS] == 200']}}\nexternal-endpoints:\n- name: job\n  group: x\n  token: t0ken\n  alerts: [{{type: custom, failure-threshold: 1, success-threshold: 1}}]\n",
        origin.url("/")
    );
    let running = Running::new(folder.path(), "config.yaml", &text);
    let push = |query: &str, token: &str| {
        let path = format!("/api/v1/endpoints/x_job/external?{query}");
        running
            .call(
                Method::POST,
                &path,
                &[("authorization", &format!("Bearer {token}"))],
                "",
            )
            .0
            .as_u16()
    };
    assert_eq!(push("success=true&duration=10s", "t0ken"), 200);
    running.wait_for("x_job", "up");
    assert_eq!(push("success=false&error=disk+full", "t0ken"), 200);
    running.wait_for("x_job", "down");
    assert_eq!(push("success=maybe", "t0ken"), 400);
    assert_eq!(push("success=true&duration=10", "t0ken"), 400);
    assert_eq!(push("success=true", "other"), 401);
    let none = running.call(
        Method::POST,
        "/api/v1/endpoints/x_none/external?success=true",
        &[],
        "",
    );
    assert_eq!(none.0, StatusCode::NOT_FOUND);
    eventually(|| {
        running.json("/api/v1/endpoints/x_job/statuses")["results"]
            .as_array()
            .unwrap()
            .len()
            == 2
    });
    let shown = running.json("/api/v1/endpoints/x_job/statuses");
    let results = shown["results"].as_array().unwrap();
    assert_eq!(results[0]["duration"], 10_000_000_000_u64);
    assert_eq!(results[1]["errors"], serde_json::json!(["disk full"]));

    // Many within one millisecond are as many results.
    for _ in 0..20 {
        assert_eq!(push("success=true", "t0ken"), 200);
    }
    eventually(|| {
        let shown = running.json("/api/v1/endpoints/x_job/statuses?pageSize=50");
        shown["results"].as_array().unwrap().len() == 22
    });
}

#[test]
fn basic_authentication_guards_the_statuses_only() {
    let folder = TempDir::new().unwrap();
    let origin = Origin::hello();
    // "secret" by bcrypt with the least cost.
    let hash = bcrypt::hash("secret", 4).unwrap();
    let hash = {
        use base64::Engine as _;
        base64::engine::general_purpose::STANDARD.encode(hash)
    };
    let text = format!(
        "security:\n  basic: {{username: ann, password-bcrypt-base64: '{hash}'}}\nendpoints:\n- {{name: a, url: '{}', conditions: ['[STATUS] == 200']}}\n",
        origin.url("/")
    );
    let running = Running::new(folder.path(), "config.yaml", &text);
    let with = |credentials: &str| {
        let fields = [("authorization", credentials)];
        running
            .call(Method::GET, "/api/v1/endpoints/statuses", &fields, "")
            .0
            .as_u16()
    };
    assert_eq!(
        running.get("/api/v1/endpoints/statuses").0,
        StatusCode::UNAUTHORIZED
    );
    assert_eq!(with("Basic YW5uOnNlY3JldA=="), 200);
    assert_eq!(with("Basic YW5uOndyb25n"), 401);
    assert_eq!(
        running.get("/api/v1/endpoints/_a/health/badge.svg").0,
        StatusCode::OK
    );
    eventually(|| {
        running
            .get("/api/v1/endpoints/_a/health/badge.svg")
            .1
            .contains(">up<")
    });
}

#[test]
fn custom_alerts_are_the_requests_that_the_file_describes() {
    let folder = TempDir::new().unwrap();
    let receiver = Receiver::new(&[]);
    let target = refused_address();
    let text = format!(
        r#"
alerting:
  custom:
    url: "http://{}/alerts/[ENDPOINT_NAME]?state=[ALERT_TRIGGERED_OR_RESOLVED]&group=[ENDPOINT_GROUP]"
    method: PUT
    headers:
      Content-Type: application/json
      X-Key: abc
    body: |
      {{"text": "[ALERT_DESCRIPTION]: [ENDPOINT_URL]", "errors": "[RESULT_ERRORS]", "state": "[ALERT_TRIGGERED_OR_RESOLVED]"}}
    placeholders:
      ALERT_TRIGGERED_OR_RESOLVED:
        TRIGGERED: partial outage
    default-alert:
      description: by default
      failure-threshold: 1
      success-threshold: 1
      send-on-resolved: true
endpoints:
  - name: web page
    group: core
    url: "http://{target}/"
    interval: 100ms
    conditions: ["[STATUS] == 200"]
    alerts:
      - type: custom
"#,
        receiver.address
    );
    let _running = Running::new(folder.path(), "config.yaml", &text);
    let count = || receiver.requests.lock().unwrap().len();
    eventually(|| count() == 1);
    let _origin = Origin::builder().port(target.port()).start();
    eventually(|| count() == 2);
    let requests = receiver.requests.lock().unwrap().clone();
    let lines: Vec<_> = requests
        .iter()
        .map(|(head, _)| head.lines().next().unwrap().to_owned())
        .collect();
    assert_eq!(
        lines,
        [
            "PUT /alerts/web%20page?state=partial%20outage&group=core HTTP/1.1",
            "PUT /alerts/web%20page?state=RESOLVED&group=core HTTP/1.1",
        ]
    );
    let (head, body) = &requests[0];
    let head = head.to_lowercase();
    assert!(
        head.contains("x-key: abc\r\n") && head.contains("content-type: application/json\r\n"),
        "{head}"
    );
    let body: serde_json::Value = serde_json::from_str(body).unwrap();
    assert_eq!(body["text"], format!("by default: http://{target}/"));
    assert_eq!(body["state"], "partial outage");
    assert!(!body["errors"].as_str().unwrap().is_empty());
}

/// The problems and warnings of a file.
fn findings(text: &str) -> Vec<String> {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("config.yaml");
    std::fs::write(&path, text).unwrap();
    match load(&path, &|name| (name == "SET").then(|| "x".to_owned())) {
        Ok(plan) => {
            let warnings = plan.warnings.into_iter();
            warnings
                .map(|it| format!("{}: {}", it.place, it.message))
                .collect()
        }
        Err(LoadError::Problems { problems, .. }) => problems
            .into_iter()
            .map(|it| format!("{}:{}", it.line, it))
            .collect(),
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn each_cause_is_reported_once_by_its_name() {
    // A thousand endpoints with two variables that are not set.
    let mut text = "endpoints:\n".to_owned();
    for number in 0..1_000 {
        write!(
            text,
            "  - name: e{number}\n    url: \"https://${{HOST}}/\"\n    group: ${{GROUP}}\n    conditions: [\"[STATUS] == 200\"]\n"
        )
        .unwrap();
    }
    let found = findings(&text);
    assert_eq!(found.len(), 1, "{found:#?}");
    assert!(
        found[0].starts_with("3:") && found[0].contains("`HOST` is not set"),
        "{found:#?}"
    );
    assert!(found[0].contains("999 more"), "{found:#?}");
    // One anchor with a mistake in a hundred endpoints.
    let mut text = "x: &x\n  client:\n    timeout: soon\nendpoints:\n".to_owned();
    for number in 0..100 {
        write!(
            text,
            "  - name: e{number}\n    url: https://e{number}.example\n    conditions: [\"[STATUS] == 200\"]\n    <<: *x\n"
        )
        .unwrap();
    }
    let found = findings(&text);
    assert_eq!(found.len(), 1, "{found:#?}");
    assert!(found[0].contains("99 more"), "{found:#?}");
}

#[test]
fn a_file_with_the_storage_postgres_loads_and_says_where_results_go() {
    let text = "storage:\n  type: postgres\n  path: \"postgres://u:p@${HOST}/gatus\"\n\
                endpoints:\n  - name: a\n    url: https://${SET}.example\n    conditions: [\"[STATUS] == 200\"]\n";
    let found = findings(text);
    assert_eq!(found.len(), 2, "{found:#?}");
    assert!(
        found[0].contains("gatus.plimsoll") && found[0].starts_with("storage.type"),
        "{found:#?}"
    );
    assert!(found[1].contains("`HOST` is not set"), "{found:#?}");
}
