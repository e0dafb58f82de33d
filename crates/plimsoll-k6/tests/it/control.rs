//! The REST API of a run, without its server.

use std::sync::Arc;
use std::thread;

use plimsoll_k6::{Invocation, Outcome, RunControl, Script, ScriptText, run};
use plimsoll_testkit::eventually;
use serde_json::{Value, json};

/// Runs a script in another thread while `client` uses the API; returns the outcome and the lines of its console.
fn controlled(text: &str, client: impl FnOnce(&RunControl)) -> (Outcome, Vec<String>) {
    let control = RunControl::default();
    let lines: Arc<std::sync::Mutex<Vec<String>>> = Arc::default();
    let kept = Arc::clone(&lines);
    let of_run = control.clone();
    let text = text.to_owned();
    let run = thread::spawn(move || {
        let text = ScriptText::Given {
            text,
            directory: std::env::temp_dir(),
        };
        let script = Script::load(&text).unwrap();
        run(&Invocation {
            workers: 2,
            control: Some(of_run),
            ..Invocation::new(
                script,
                Arc::new(move |_, text, source| {
                    if source.is_console() {
                        kept.lock().unwrap().push(text.to_owned());
                    }
                }),
                &|| false,
            )
        })
    });
    client(&control);
    let outcome = run.join().unwrap();
    let lines = lines.lock().unwrap().clone();
    (outcome, lines)
}

fn json_of(control: &RunControl, method: &str, path: &str, body: &Value) -> (u16, Value) {
    let body = if body.is_null() {
        String::new()
    } else {
        body.to_string()
    };
    let response = control.respond(method, path, body.as_bytes());
    let content = serde_json::from_str(&response.body).unwrap_or_default();
    (response.status, content)
}

fn get(control: &RunControl, path: &str) -> Value {
    let (status, content) = json_of(control, "GET", path, &Value::Null);
    assert_eq!(status, 200, "{path}: {content}");
    content["data"].clone()
}

fn patch(control: &RunControl, attributes: &Value) -> (u16, Value) {
    let body = json!({ "data": { "type": "status", "id": "default", "attributes": attributes } });
    json_of(control, "PATCH", "/v1/status", &body)
}

#[test]
fn a_run_is_observed_and_stopped() {
    let text = "import { check, group, sleep } from 'k6'; import { Trend } from 'k6/metrics';
        const own = new Trend('own');
        export const options = { vus: 2, duration: '10m',
          thresholds: { iterations: ['count>100000'], checks: ['rate>0.1'], 'own{kind:a}': ['p(90)<9'] } };
        export const setup = () => ({ token: 'a' });
        export default function () {
          own.add(2, { kind: 'a' });
          group('outer', () => { check(1, { one: () => true }); group('inner', () => check(1, { two: () => false })); });
          sleep(0.05);
        }";
    let (outcome, _) = controlled(text, |control| {
        assert_eq!(control.respond("GET", "/", b"").body, "ok");
        // Thresholds are evaluated every two seconds.
        eventually(|| {
            let (_, judged) = json_of(control, "GET", "/v1/metrics/iterations", &Value::Null);
            judged["data"]["attributes"]["tainted"] == true
        });
        let status = get(control, "/v1/status");
        let attributes = json!({ "status": 7, "paused": false, "vus": 2, "vus-max": 2, "stopped": false, "running": true, "tainted": true });
        assert_eq!(
            status,
            json!({ "type": "status", "id": "default", "attributes": attributes })
        );
        let own = get(control, "/v1/metrics/own%7Bkind:a%7D");
        let figures = json!({ "avg": 2, "max": 2, "med": 2, "min": 2, "p(90)": 2, "p(95)": 2 });
        assert_eq!(
            own["attributes"],
            json!({ "type": "trend", "contains": "default", "tainted": false, "sample": figures })
        );
        let checks = get(control, "/v1/metrics/checks");
        assert_eq!(checks["attributes"]["sample"], json!({ "rate": 0.5 }));
        let vus = get(control, "/v1/metrics/vus");
        assert_eq!(vus["attributes"]["tainted"], Value::Null);
        let all = get(control, "/v1/metrics");
        assert!(all.as_array().unwrap().contains(&vus), "{all}");
        let groups = get(control, "/v1/groups");
        assert_eq!(
            groups[0]["attributes"],
            json!({ "path": "", "name": "", "checks": null })
        );
        let (root, outer, inner) = (&groups[0]["id"], &groups[1]["id"], &groups[2]["id"]);
        assert_eq!(root, "d41d8cd98f00b204e9800998ecf8427e");
        assert_eq!(
            groups[1]["relationships"],
            json!({
                "groups": { "data": [{ "type": "groups", "id": inner }] },
                "parent": { "data": { "type": "groups", "id": root } },
            })
        );
        let check = &groups[2]["attributes"]["checks"][0];
        assert_eq!(check["path"], "::outer::inner::two");
        assert!(check["fails"].as_u64().unwrap() > 0);
        let path = format!("/v1/groups/{}", outer.as_str().unwrap());
        assert_eq!(get(control, &path)["attributes"]["name"], "outer");
        let setup = get(control, "/v1/setup");
        assert_eq!(setup["attributes"], json!({ "data": { "token": "a" } }));
        for (method, path, status) in [
            ("GET", "/v1/metrics/nix", 404),
            ("GET", "/v1/groups/nix", 404),
            ("GET", "/v1/nix", 404),
            ("DELETE", "/v1/status", 405),
            ("POST", "/v1/metrics", 405),
            ("PATCH", "/v1/status", 400),
            ("PUT", "/v1/setup", 500),
            ("POST", "/v1/setup", 501),
            ("POST", "/v1/teardown", 501),
        ] {
            let response = control.respond(method, path, b"");
            assert_eq!(response.status, status, "{method} {path}");
        }
        for attributes in [json!({ "paused": true }), json!({ "vus": 3 })] {
            assert_eq!(patch(control, &attributes).0, 500, "{attributes}");
        }
        let (status, content) = patch(control, &json!({ "stopped": true }));
        assert_eq!(status, 200);
        assert_eq!(content["data"]["attributes"]["stopped"], true);
    });
    assert_eq!(outcome.exit.number(), 103, "{outcome:#?}");
    assert_eq!(outcome.message, "a client of the REST API stopped the run");
    assert!(outcome.export.is_some(), "there is a summary");
}

#[test]
fn a_paused_run_waits_for_a_client() {
    let text = "export const options = { paused: true };
        export default (data) => console.log(JSON.stringify(data));";
    let (outcome, lines) = controlled(text, |control| {
        eventually(|| get(control, "/v1/status")["attributes"]["paused"] == true);
        let status = get(control, "/v1/status");
        assert_eq!(status["attributes"]["running"], false);
        let empty = get(control, "/v1/setup");
        assert_eq!(empty["attributes"], json!({}));
        assert_eq!(
            json_of(control, "PUT", "/v1/setup", &json!({ "token": "b" })).0,
            200
        );
        let (status, content) = patch(control, &json!({ "paused": true }));
        assert_eq!(status, 500);
        assert_eq!(
            content["errors"][0]["detail"],
            "execution is already paused"
        );
        assert_eq!(patch(control, &json!({ "paused": false })).0, 200);
    });
    assert_eq!(outcome.exit.number(), 0, "{outcome:#?}");
    assert_eq!(lines, ["{\"token\":\"b\"}"]);
}

#[test]
fn a_paused_run_may_end_before_it_starts() {
    let text = "export const options = { paused: true };
        export const setup = () => console.log('set up');
        export default () => console.log('iterates');";
    let (outcome, lines) = controlled(text, |control| {
        eventually(|| get(control, "/v1/status")["attributes"]["paused"] == true);
        assert_eq!(patch(control, &json!({ "stopped": true })).0, 200);
    });
    assert_eq!(outcome.exit.number(), 103, "{outcome:#?}");
    assert!(lines.is_empty(), "{lines:?}");
}
