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
    assert_eq!(text_of(&sample(), &json!({}), &[], false, "  "), expected);
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
    let text = full_text_of(&sample(), &json!({}), &parts, &[], false, "  ");
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

/// k6 judges names by their beginnings: a custom metric may look like one of its own, and checks have no row.
#[test]
fn metrics_are_sorted_into_blocks_by_the_beginnings_of_their_names() {
    for (name, block) in [
        ("http_req_duration{status:200}", Some(0)),
        ("http_req_own", None),
        ("http_req_waiting", Some(0)),
        ("iterations{scenario:s}", Some(1)),
        ("iteration_own", None),
        ("vus_own", Some(1)),
        ("data_own", None),
        ("data_sent", Some(2)),
        ("grpc_req_duration", Some(3)),
        ("ws_own", Some(4)),
    ] {
        assert_eq!(text::block_of(name), block, "{name}");
    }
    for (name, in_short, in_full) in [
        ("http_req_own", true, true),
        ("http_req_waiting{a:b}", false, true),
        ("group_duration{group:::a}", false, false),
        ("checks", false, false),
        ("checks{kind:x}", false, false),
    ] {
        let found = (text::is_shown(name, false), text::is_shown(name, true));
        assert_eq!(found, (in_short, in_full), "{name}");
    }
}

/// The same as k6 2.2.0 writes, whose metrics have no order within their blocks.
#[test]
fn the_machine_readable_summary_has_the_format_of_k6() {
    let made = |is_full| {
        let at = std::time::UNIX_EPOCH + Duration::new(1_700_000_000, 5);
        machine_readable(
            &sample(),
            "the script",
            Duration::from_millis(2500),
            at,
            is_full,
        )
    };
    let trend = |name: &str, avg: Value, p95: Value| {
        json!({
            "contains": "time", "name": name, "type": "trend",
            "values": { "avg": avg, "max": null, "med": null, "min": null, "p90": null, "p95": p95 },
        })
    };
    let share = |name: &str, matches: u64, rate: f64| {
        json!({
            "contains": "default", "name": name, "type": "rate",
            "values": { "matches": matches, "rate": rate, "total": 6 },
        })
    };
    let count = |name: &str, contains: &str, count: u64| json!({ "contains": contains, "name": name, "type": "counter", "values": { "count": count } });
    let gauge = |name: &str, max: Value, min: u64, value: u64| json!({ "contains": "default", "name": name, "type": "gauge", "values": { "max": max, "min": min, "value": value } });
    let expected = json!({
        "config": { "duration": 2.5, "execution": "local", "script": "the script" },
        "metadata": { "generated_at": "2023-11-14T22:13:20.000000005Z", "k6_version": "2.2.0" },
        "results": {
            "checks": {
                "metrics": [
                    count("checks_total", "default", 6),
                    share("checks_failed", 2, 2.0 / 6.0),
                    share("checks_succeeded", 4, 4.0 / 6.0),
                ],
                "results": [
                    { "fails": 0, "name": "status is 200", "passes": 3 },
                    { "fails": 2, "name": "in a group", "passes": 1 },
                ],
            },
            "metrics": [
                trend("http_req_duration", json!(12.345), json!(100)),
                trend("http_req_duration{expected_response:true}", json!(1), json!(2000)),
                {
                    "contains": "default", "name": "http_req_failed", "type": "rate",
                    "values": { "matches": 0, "rate": 0, "total": 3 },
                },
                count("http_reqs", "default", 3),
                count("iterations", "default", 3),
                gauge("vus", json!(1), 1, 1),
                count("data_sent", "data", 1500),
                gauge("my_gauge", json!(3.5), 1, 2),
            ],
        },
        "version": "1.0.0",
    });
    assert_eq!(made(false), expected);
    let full = made(true);
    let first = &full["results"]["metrics"][0];
    assert_eq!(*first, trend("http_req_blocked", json!(1), json!(1)));
}

#[test]
fn the_legacy_text_has_groups_then_metrics() {
    let data = sample();
    let text = legacy_text_of(&data, &LegacyLook::of_data(&data, false));
    let expected = "     ✓ status is 200

     █ g

       ✗ in a group
        ↳  33% — ✓ 1 / ✗ 2

     checks.........................: 66.66% ✓ 4     ✗ 2
     data_sent......................: 1.5 kB 750 B/s
     http_req_blocked...............: avg=1ms     p(95)=1ms
   ✗ http_req_duration..............: avg=12.34ms p(95)=100ms
       { expected_response:true }...: avg=1ms     p(95)=2s
     http_req_failed................: 0.00%  ✓ 0     ✗ 3
     http_reqs......................: 3      1.5/s
     iterations.....................: 3      1.5/s
     my_gauge.......................: 2      min=1   max=3.5
     vus............................: 1      min=1   max=1";
    let lines = text.lines().map(str::trim_end);
    assert_eq!(lines.collect::<Vec<_>>().join("\n"), expected);
    // Columns are as wide in every line, also at its end.
    assert!(text.contains("p(95)=1ms  \n"), "{text:?}");
    let look = LegacyLook {
        indent: "> ",
        unit: "s",
        trend_stats: vec!["avg"],
        ..LegacyLook::of_data(&data, true)
    };
    let text = legacy_text_of(&data, &look);
    for expected in [
        "\u{1b}[32m>     ✓ status is 200\u{1b}[0m\n",
        ">   \u{1b}[31m✗\u{1b}[0m http_req_duration\u{1b}[2m..............:\u{1b}[0m avg=\u{1b}[36m0.01s\u{1b}[0m\n",
        "min=1\u{1b}[0m   \u{1b}[36;2mmax=3.5\u{1b}[0m\n",
    ] {
        assert!(text.contains(expected), "no {expected:?} in {text:?}");
    }
}

#[test]
fn legacy_names_are_in_the_order_of_words() {
    let mut data = sample();
    let metric = data["metrics"]["vus"].clone();
    data["metrics"] = json!({});
    for name in [
        "vus",
        "Zeta",
        "http_req",
        "httpReq",
        "http_req{b:c}",
        "http_req{a:c}",
        "http_reqs",
        "alpha",
    ] {
        data["metrics"][name] = metric.clone();
    }
    let names = |keeps_families| {
        let look = LegacyLook {
            keeps_families,
            ..LegacyLook::of_data(&data, false)
        };
        let text = legacy_text_of(&data, &look);
        let names = text.lines().filter_map(|line| line.split_once(".."));
        let names = names.map(|(name, _)| name.trim().to_owned());
        names.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(
        names(true),
        "alpha http_req { a:c } { b:c } http_reqs httpReq vus Zeta"
    );
    assert_eq!(
        names(false),
        "Zeta alpha httpReq http_req http_reqs { a:c } { b:c } vus"
    );
}
