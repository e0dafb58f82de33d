use plimsoll_load::scenario::Executor;
use serde_json::json;

use super::*;

fn compile(json: &Value) -> Options {
    Options::compile(json, &Overrides::default()).unwrap()
}

fn executor(json: &Value, overrides: &Overrides) -> String {
    let options = Options::compile(json, overrides).unwrap();
    let names = options.scenarios.iter().map(|it| {
        let executor = &it.executor;
        format!(
            "{} {} {:?}",
            executor.name(),
            executor.most_vus(),
            executor.end()
        )
    });
    names.collect::<Vec<_>>().join(", ")
}

#[test]
fn shortcuts_stand_for_a_scenario() {
    let none = Overrides::default();
    for (json, expected) in [
        (Value::Null, "per-vu-iterations 1 600s"),
        (json!({ "vus": 3 }), "shared-iterations 3 600s"),
        (json!({ "vus": 3, "duration": "5s" }), "constant-vus 3 5s"),
        (
            json!({ "iterations": 7, "vus": 2, "duration": 9000 }),
            "shared-iterations 2 9s",
        ),
        (
            json!({ "stages": [{ "duration": "1m", "target": 9 }, { "duration": "30s", "target": 0 }] }),
            "ramping-vus 9 90s",
        ),
        (
            json!({ "stages": [null, { "duration": "1m", "target": 9 }, { "target": 20 }, {}] }),
            "ramping-vus 9 60s",
        ),
        (json!({ "stages": [] }), "per-vu-iterations 1 600s"),
        (json!({ "stages": [null] }), "per-vu-iterations 1 600s"),
        (
            json!({ "vus": 3, "stages": [] }),
            "per-vu-iterations 1 600s",
        ),
        (json!({ "scenarios": {} }), "per-vu-iterations 1 600s"),
        (
            json!({ "vus": 3, "scenarios": {} }),
            "shared-iterations 3 600s",
        ),
        (
            json!({ "vus": 3, "scenarios": { "a": { "executor": "constant-vus", "duration": "5s" } } }),
            "shared-iterations 3 600s",
        ),
        (
            json!({ "vus": 3, "stages": [], "scenarios": { "a": { "executor": "constant-vus", "duration": "5s" } } }),
            "constant-vus 1 5s",
        ),
    ] {
        assert_eq!(executor(&json, &none), expected, "{json}");
    }
    for (json, expected) in [
        (json!({ "vus": 3 }), json!([3, 3])),
        (
            json!({ "vus": 3, "scenarios": { "default": { "executor": "shared-iterations", "vus": 5, "iterations": 9 } } }),
            json!([3, 3]),
        ),
        (json!({ "vus": 3, "stages": [] }), json!([null, null])),
        (json!({ "vus": 2, "iterations": 7 }), json!([2, 7])),
    ] {
        let options = Options::compile(&json, &none).unwrap().json;
        let scenario = &options["scenarios"]["default"];
        let shown = json!([scenario["vus"], scenario["iterations"]]);
        assert_eq!(shown, expected, "{json}");
    }
    let json = json!({ "stages": [7] });
    let errors = format!("{:?}", Options::compile(&json, &none).unwrap_err());
    assert!(errors.contains("stages[0]"), "{errors}");
}

#[test]
fn a_file_of_options_has_the_last_word_where_nothing_else_is_written() {
    let Value::Object(defaults) = json!({ "vus": 3, "stages": [{ "duration": "1m", "target": 9 }], "userAgent": "file", "batch": 7 })
    else {
        unreachable!("it is an object");
    };
    let overrides = Overrides {
        defaults,
        ..Overrides::default()
    };
    assert_eq!(executor(&Value::Null, &overrides), "ramping-vus 9 60s");
    let script = json!({ "duration": "5s", "batch": 2, "userAgent": null });
    assert_eq!(executor(&script, &overrides), "constant-vus 3 5s");
    let options = Options::compile(&script, &overrides).unwrap();
    assert_eq!((options.batch, options.user_agent.as_str()), (2, "file"));
    let flag = Overrides {
        iterations: Some(4),
        ..overrides
    };
    assert_eq!(executor(&Value::Null, &flag), "shared-iterations 3 600s");
}

#[test]
fn the_command_line_takes_the_place_of_all_that_says_when() {
    let script =
        json!({ "scenarios": { "a": { "executor": "constant-vus", "vus": 5, "duration": "1m" } } });
    let overrides = Overrides {
        duration: Some(Duration::from_secs(2)),
        vus: Some(4),
        ..Overrides::default()
    };
    assert_eq!(executor(&script, &overrides), "constant-vus 4 2s");
    let overrides = Overrides {
        iterations: Some(3),
        ..Overrides::default()
    };
    assert_eq!(
        executor(&json!({ "vus": 2, "duration": "1h" }), &overrides),
        "shared-iterations 2 600s"
    );
    let overrides = Overrides {
        vus: Some(6),
        ..Overrides::default()
    };
    assert_eq!(
        executor(&json!({ "vus": 2, "duration": "3s" }), &overrides),
        "constant-vus 6 3s"
    );
}

#[test]
fn all_six_executors_are_read() {
    let options = compile(&json!({ "scenarios": {
        "f": { "executor": "shared-iterations", "vus": 2, "iterations": 5, "maxDuration": "1m" },
        "e": { "executor": "per-vu-iterations", "vus": 2, "iterations": 5 },
        "d": { "executor": "constant-vus", "vus": 2, "duration": "5s", "gracefulStop": "0s", "exec": "other" },
        "c": { "executor": "ramping-vus", "startVUs": 0, "stages": [{ "duration": "5s", "target": 7 }], "gracefulRampDown": "0s" },
        "b": { "executor": "constant-arrival-rate", "rate": 10, "duration": "5s", "preAllocatedVUs": 3, "maxVUs": 9 },
        "a": { "executor": "ramping-arrival-rate", "startRate": 1, "timeUnit": "1m", "stages": [{ "duration": "5s", "target": 7 }],
               "preAllocatedVUs": 3, "startTime": "3s", "env": { "A": "b" }, "tags": { "t": 1 } },
    } }));
    let names: Vec<_> = options
        .scenarios
        .iter()
        .map(|it| it.executor.name())
        .collect();
    assert_eq!(
        names,
        [
            "ramping-arrival-rate",
            "constant-arrival-rate",
            "ramping-vus",
            "constant-vus",
            "per-vu-iterations",
            "shared-iterations"
        ]
    );
    let first = &options.scenarios[0];
    assert_eq!(first.start_time, Duration::from_secs(3));
    assert_eq!(first.tags, [("t".to_owned(), "1".to_owned())]);
    assert_eq!(options.scenarios[1].executor.most_vus(), 9);
    assert_eq!(options.scenarios[3].exec, "other");
    assert_eq!(options.scenarios[3].graceful_stop, Duration::ZERO);
    assert!(
        matches!(&options.scenarios[2].executor, Executor::RampingVus(ramp) if ramp.most_vus() == 7)
    );
}

#[test]
fn everything_that_is_wrong_is_reported_at_once() {
    let error = Options::compile(
        &json!({
            "vus": -1,
            "duration": "soon",
            "tlsAuth": [{ "cert": "c" }],
            "throw": "yes",
            "scenarios": { "a b": { "executor": "constant-vus", "durations": "5s" }, "b": { "executor": "fast" },
                           "c": { "executor": "constant-arrival-rate", "rate": 0, "duration": "0.5s", "maxVUs": 0 },
                           "d": { "executor": "constant-vus", "duration": "5s", "options": { "browser": { "type": "chromium" } } } },
            "thresholds": { "checks": [1], "errors": [{ "treshold": "rate<1" }] },
            "summaryTrendStats": ["p(x)"],
        }),
        &Overrides::default(),
    )
    .unwrap_err();
    let text = error.to_string();
    for expected in [
        "options.vus must be a whole number, not -1",
        "options.duration is not a duration",
        "options.tlsAuth[0].key is missing: the text of a PEM file",
        "options.throw must be true or false",
        "options.scenarios.a b has a name with other characters",
        "options.scenarios.a b.duration is missing",
        "options.scenarios.a b.durations is unknown; did you mean `duration`?",
        "options.scenarios.b.executor is `fast`",
        "options.scenarios.c.rate must be given",
        "options.scenarios.c.preAllocatedVUs is missing",
        "options.scenarios.d.options.browser needs browser automation",
        "options.thresholds[\"checks\"] has 1, which is no threshold",
        "options.thresholds[\"errors\"].treshold is unknown; did you mean `threshold`?",
        "options.summaryTrendStats has `p(x)`",
    ] {
        assert!(text.contains(expected), "no {expected} in\n{text}");
    }
    let warned = compile(&json!({ "vu": 1 }));
    assert_eq!(
        warned.warnings,
        ["options.vu is unknown; did you mean `vus`?"]
    );
}

#[test]
fn hosts_are_found_by_name_port_and_pattern() {
    let options = compile(&json!({ "hosts": {
        "a.test": "127.0.0.1", "a.test:8080": "127.0.0.2:81", "*.test": "[::1]:82", "*.b.test": "::2"
    } }));
    let found = |host, port| {
        let entry = options.network.host(host, port);
        entry.map(|entry| (entry.address.to_string(), entry.to_port))
    };
    assert_eq!(found("a.test", 80), Some(("127.0.0.1".to_owned(), None)));
    assert_eq!(
        found("a.test", 8080),
        Some(("127.0.0.2".to_owned(), Some(81)))
    );
    assert_eq!(found("c.test", 80), Some(("::1".to_owned(), Some(82))));
    assert_eq!(found("x.b.test", 80), Some(("::2".to_owned(), None)));
    assert_eq!(found("other", 80), None);
}

#[test]
fn options_of_connections_are_checked_together() {
    let json = json!({
        "hosts": { "a*": "127.0.0.1", "b": "nowhere" }, "blockHostnames": ["a.*"], "blacklistIPs": ["10.0.0.0/99"],
        "dns": { "policy": "some", "typo": 1 }, "tlsVersion": { "min": "tls1.3", "max": "tls1.2" }, "rps": "many"
    });
    let error = Options::compile(&json, &Overrides::default()).unwrap_err();
    let text = error.to_string();
    for expected in [
        "options.hosts[\"a*\"] must be a name",
        "options.hosts[\"b\"] must be an address",
        "options.blockHostnames has `a.*`",
        "options.blacklistIPs has `10.0.0.0/99`",
        "options.dns.policy is `some`",
        "options.dns.typo is unknown",
        "options.tlsVersion is impossible",
        "options.rps must be a whole number",
    ] {
        assert!(text.contains(expected), "no {expected} in\n{text}");
    }
}

#[test]
fn the_command_line_replaces_options_of_the_script() {
    let options = json!({ "rps": 5, "maxRedirects": 1 });
    let overrides = Overrides {
        options: options.as_object().unwrap().clone(),
        ..Overrides::default()
    };
    let options = Options::compile(&json!({ "rps": 2, "batch": 3 }), &overrides).unwrap();
    assert_eq!(
        (options.network.rps, options.max_redirects, options.batch),
        (5, 1, 3)
    );
    assert_eq!(options.json["rps"], 5);
    assert_eq!(options.json["noSetup"], Value::Null);
}
