use serde_json::json;

use super::*;

fn sample() -> Value {
    json!({
        "root_group": {
            "name": "", "path": "", "id": "d41d8cd98f00b204e9800998ecf8427e",
            "groups": [{ "name": "g", "path": "::g", "id": "", "groups": [], "checks": [
                { "name": "in a group", "path": "::g::in a group", "id": "", "passes": 1, "fails": 2 } ] }],
            "checks": [{ "name": "status is 200", "path": "::status is 200", "id": "", "passes": 3, "fails": 0 }],
        },
        "options": { "summaryTrendStats": ["avg", "p(95)"], "summaryTimeUnit": "", "noColor": true },
        "state": { "isStdOutTTY": false, "isStdErrTTY": false, "testRunDurationMs": 2000 },
        "metrics": {
            "checks": { "type": "rate", "contains": "default", "values": { "rate": 0.666_666, "passes": 4, "fails": 2 } },
            "http_reqs": { "type": "counter", "contains": "default", "values": { "count": 3, "rate": 1.5 } },
            "http_req_blocked": { "type": "trend", "contains": "time", "values": { "avg": 1, "p(95)": 1 } },
            "http_req_duration": { "type": "trend", "contains": "time", "values": { "avg": 12.345, "p(95)": 100 },
                                   "thresholds": { "p(95)<200": { "ok": true }, "avg<10": { "ok": false } } },
            "http_req_duration{expected_response:true}":
                { "type": "trend", "contains": "time", "values": { "avg": 1, "p(95)": 2000 } },
            "http_req_failed": { "type": "rate", "contains": "default", "values": { "rate": 0, "passes": 0, "fails": 3 } },
            "my_gauge": { "type": "gauge", "contains": "default", "values": { "value": 2, "min": 1, "max": 3.5 } },
            "data_sent": { "type": "counter", "contains": "data", "values": { "count": 1500, "rate": 750 } },
            "iterations": { "type": "counter", "contains": "default", "values": { "count": 3, "rate": 1.5 } },
            "vus": { "type": "gauge", "contains": "default", "values": { "value": 1, "min": 1, "max": 1 } },
        },
    })
}

#[test]
fn the_text_has_the_layout_of_k6() {
    let expected = "  █ THRESHOLDS

    http_req_duration
    ✓ 'p(95)<200' p(95)=100ms
    ✗ 'avg<10' avg=12.34ms


  █ TOTAL RESULTS

    checks_total.......: 6      3/s
    checks_succeeded...: 66.66% 4 out of 6
    checks_failed......: 33.33% 2 out of 6

    ✓ status is 200
    ✗ in a group
      ↳  33% — ✓ 1 / ✗ 2

    CUSTOM
    my_gauge.......................: 2      min=1      max=3.5

    HTTP
    http_req_duration..............: avg=12.34ms p(95)=100ms
      { expected_response:true }...: avg=1ms     p(95)=2s
    http_req_failed................: 0.00%  0 out of 3
    http_reqs......................: 3      1.5/s

    EXECUTION
    iterations.....................: 3      1.5/s
    vus............................: 1      min=1      max=1

    NETWORK
    data_sent......................: 1.5 kB 750 B/s";
    assert_eq!(text_of(&sample(), false, "  "), expected);
}

#[test]
fn the_export_has_failed_thresholds_as_true() {
    let export = export(&sample());
    let duration = &export["metrics"]["http_req_duration"];
    assert_eq!(duration["avg"], 12.345);
    assert_eq!(
        duration["thresholds"],
        json!({ "p(95)<200": false, "avg<10": true })
    );
    assert_eq!(export["metrics"]["checks"]["value"], 0.666_666);
    assert_eq!(export["root_group"]["checks"]["status is 200"]["passes"], 3);
    let inner = &export["root_group"]["groups"]["g"]["checks"]["in a group"];
    assert_eq!(inner["fails"], 2);
}

#[test]
fn the_full_text_has_every_metric_and_each_part() {
    let part = |name: &str, groups: Value| {
        json!({
            "name": name,
            "checks": [{ "name": "c", "passes": 1, "fails": 1 }],
            "metrics": { "checks": sample()["metrics"]["checks"], "http_req_blocked": sample()["metrics"]["http_req_blocked"] },
            "groups": groups,
        })
    };
    let inner = part("inner", json!([]));
    let parts = json!({ "groups": [], "scenarios": [part("s", json!([inner]))] });
    let text = full_text_of(&sample(), &parts, false, "  ");
    let (totals, rest) = text.split_once("  █ SCENARIO: s\n").unwrap();
    assert!(
        totals.contains("    http_req_blocked...............: avg=1ms     p(95)=1ms\n"),
        "{totals}"
    );
    let expected = "
    checks_total.......: 6      3/s
    checks_succeeded...: 66.66% 4 out of 6
    checks_failed......: 33.33% 2 out of 6

    ✗ c
      ↳  50% — ✓ 1 / ✗ 1

    HTTP
    http_req_blocked...: avg=1ms p(95)=1ms

    ↳ GROUP: inner

      checks_total.......: 6      3/s
      checks_succeeded...: 66.66% 4 out of 6
      checks_failed......: 33.33% 2 out of 6

      ✗ c
        ↳  50% — ✓ 1 / ✗ 1

      HTTP
      http_req_blocked...: avg=1ms p(95)=1ms";
    assert_eq!(rest, expected);
}

#[test]
fn the_legacy_text_has_groups_then_metrics() {
    let text = legacy_text_of(&sample(), false, "     ");
    let expected = "     ✓ status is 200

     █ g

       ✗ in a group
        ↳  33% — ✓ 1 / ✗ 2

       checks.........................: 66.66% 4 out of 6
       data_sent......................: 1.5 kB 750 B/s
       http_req_blocked...............: avg=1ms     p(95)=1ms
     ✗ http_req_duration..............: avg=12.34ms p(95)=100ms
         { expected_response:true }...: avg=1ms     p(95)=2s
       http_req_failed................: 0.00%  0 out of 3
       http_reqs......................: 3      1.5/s
       iterations.....................: 3      1.5/s
       my_gauge.......................: 2      min=1      max=3.5
       vus............................: 1      min=1      max=1";
    assert_eq!(text, expected);
}
