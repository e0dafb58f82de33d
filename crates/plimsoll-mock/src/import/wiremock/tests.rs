use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::request::KeptRequest;

fn made(mapping: Value) -> Result<Stub, Vec<Remark>> {
    stub(mapping, Path::new("/nonexistent"), &States::default())
}

/// The lines of the rule of a mapping, without its header.
fn lines(request: &Value, response: &Value) -> Vec<String> {
    let made = made(json!({ "request": request, "response": response }));
    let stub = made.unwrap_or_else(|remarks| panic!("{remarks:?}"));
    stub.text.lines().skip(1).map(str::to_owned).collect()
}

#[test]
fn conditions_become_ours() {
    for (request, expected) in [
        (json!({}), "when.request.method = \"ANY\""),
        (
            json!({"method": {"oneOf": ["get", "PUT"]}}),
            "when.request.method = [\"GET\", \"PUT\"]",
        ),
        (
            json!({"urlPathPattern": "/a/[0-9]+"}),
            "when.request.raw_path = { op = \"regex\", value = \"^(?:/a/[0-9]+)$\" }",
        ),
        (
            json!({"urlPathTemplate": "/a/{b}"}),
            "when.request.url_path = { op = \"pattern\", value = \"/a/{b}\" }",
        ),
        (json!({"method": "ANY"}), "when.request.method = \"ANY\""),
        (
            json!({"method": {"noneOf": ["get", "PUT"]}}),
            "when.request.method = \"ANY\"\nwhen.not = [{ request.method = [\"GET\", \"PUT\"] }]",
        ),
        (
            json!({"headers": {"X-A": {"equalTo": "a.b", "caseInsensitive": true}}}),
            "when.request.headers.X-A = { op = \"regex\", value = '(?is)^(?:a\\.b)$' }",
        ),
        (
            json!({"headers": {"X-A": {"doesNotContain": "b"}}}),
            "when.request.headers.X-A = { op = \"not_contains\", value = \"b\" }",
        ),
        (
            json!({"headers": {"X-A": {"absent": true}}}),
            "when.request.headers.X-A = { op = \"absent\" }",
        ),
        (
            json!({"cookies": {"s": {"and": [{"contains": "a"}, {"contains": "b"}]}}}),
            "when.request.cookies.s = { op = \"contains\", value = \"a\" }\nwhen.all = [{ request.cookies.s = { op = \"contains\", value = \"b\" } }]",
        ),
        (
            json!({"bodyPatterns": [{"contains": "x"}]}),
            "when.request.body.text = { op = \"contains\", value = \"x\" }",
        ),
        (
            json!({"bodyPatterns": [{"matchesJsonPath": "a.b"}]}),
            "when.request.body.jsonpath.\"$.a.b\" = { op = \"exists\" }",
        ),
        (
            json!({"bodyPatterns": [{"matchesJsonSchema": {"type": "object"}}]}),
            "when.request.body.schema = '{\"type\":\"object\"}'",
        ),
        (
            json!({"bodyPatterns": [{"equalToXml": "<a/>", "enablePlaceholders": false}, {"binaryEqualTo": "YWI="}]}),
            "when.request.body.equal_xml = { value = \"<a/>\" }\nwhen.request.body.text = \"ab\"",
        ),
        (
            json!({"bodyPatterns": [{"matchesXPath": "//a"}]}),
            "when.request.body.xpath.\"//a\" = { op = \"exists\" }",
        ),
        (
            json!({"bodyPatterns": [{"matchesXPath": {"expression": "//p:a/text()", "or": [{"equalTo": "1"}, {"not": {"contains": "2"}}]}, "xPathNamespaces": {"p": "u"}}]}),
            "when.all = [{ any = [{ request.body.xpath.\"//p:a/text()\" = \"1\", request.body.xpath_namespaces.p = \"u\" }, \
             { not = [{ request.body.xpath.\"//p:a/text()\" = { op = \"contains\", value = \"2\" }, request.body.xpath_namespaces.p = \"u\" }] }] }]",
        ),
        (
            json!({"urlPathTemplate": "/a/{b}/c.x/{d}", "pathParameters": {"d": {"matches": "[0-9]+"}}}),
            "when.request.url_path = { op = \"pattern\", value = \"/a/{b}/c.x/{d}\" }\n\
             when.all = [{ request.url_path = { op = \"regex\", value = '^(?:/a/[^/]+/c\\.x/(?:[0-9]+))$' } }]",
        ),
    ] {
        let mut lines = lines(&request, &json!({}));
        if request.get("method").is_none() && lines.len() > 2 {
            // A mapping without a method takes every method, OPTIONS too.
            let any = "when.request.method = \"ANY\"";
            let at = lines.iter().position(|line| line == any);
            lines.remove(at.unwrap_or_else(|| panic!("{request}: {lines:?}")));
        }
        assert_eq!(lines[..lines.len() - 1].join("\n"), expected, "{request}");
        assert_eq!(
            lines.last().map(String::as_str),
            Some("respond.status = 200")
        );
    }
}

#[test]
fn responses_become_ours() {
    for (response, expected) in [
        (json!({"status": 204}), "respond.status = 204"),
        (json!({"status": 204, "body": "x"}), "respond.status = 204"),
        (
            json!({"body": "a", "headers": {"A": ["1", "2"]}}),
            "respond.headers.A = [\"1\", \"2\"]\nrespond.text = \"a\"",
        ),
        (
            json!({"jsonBody": {"a": "{{request.path.id}}"}, "transformers": ["response-template"]}),
            "respond.json = '{\"a\":\"{{request.path.id}}\"}'\nrespond.template = \"wiremock\"",
        ),
        (
            json!({"body": "{{parameters.a}}", "transformers": ["response-template"], "transformerParameters": {"a": 1}}),
            "respond.text = \"{{parameters.a}}\"\nrespond.template = \"wiremock\"\nrespond.parameters = '{\"a\":1}'",
        ),
        (json!({"base64Body": "AAE="}), "respond.base64 = \"AAE=\""),
        (
            json!({"fault": "CONNECTION_RESET_BY_PEER"}),
            "respond.fault = \"reset\"",
        ),
        (
            json!({"body": "a", "fixedDelayMilliseconds": 5, "delayDistribution": {"type": "uniform", "lower": 1, "upper": 2}}),
            "respond.text = \"a\"\nrespond.delay = { uniform = [\"6ms\", \"7ms\"] }",
        ),
        (
            json!({"body": "a", "delayDistribution": {"type": "lognormal", "median": 80, "sigma": 0.4, "maxValue": 100}}),
            "respond.text = \"a\"\nrespond.delay = { lognormal = { median = \"80ms\", sigma = 0.4, max = \"100ms\" } }",
        ),
        (
            json!({"body": "a", "chunkedDribbleDelay": {"numberOfChunks": 2, "totalDuration": 10}}),
            "respond.text = \"a\"\nrespond.dribble = { chunks = 2, over = \"10ms\" }",
        ),
        (
            json!({"proxyBaseUrl": "http://a/b", "proxyUrlPrefixToRemove": "/c", "removeProxyRequestHeaders": ["Cookie"],
                   "additionalProxyRequestHeaders": {"X": "1"}, "headers": {"Y": "2"}, "fixedDelayMilliseconds": 5}),
            "respond.proxy = { to = \"http://a/b\", strip = \"/c\", without = [\"Cookie\"], headers.X = \"1\" }\n\
             respond.headers.Y = \"2\"\nrespond.delay = \"5ms\"",
        ),
    ] {
        let request = json!({"urlPathTemplate": "/{id}"});
        let mut lines = lines(&request, &response);
        lines.retain(|line| line != "when.request.method = \"ANY\"");
        assert_eq!(lines[1..].join("\n"), expected, "{response}");
    }
}

#[test]
fn one_mapping_is_a_rule_with_notes() {
    let mapping = json!({
        "id": "a", "priority": 1, "scenarioName": "s", "newScenarioState": "t",
        "request": {"method": "GET", "url": "/a?b=c"},
        "response": {"body": "{{#if request.query.x}}y{{/if}}", "headers": {"Date": "x"}, "transformers": ["response-template", "mine"]}
    });
    let stub = made(mapping).unwrap();
    assert_eq!(
        (stub.rule.id.as_deref(), stub.rule.priority),
        (Some("a"), 4)
    );
    assert!(stub.rule.next.is_some());
    assert!(
        stub.rule
            .is_met_by(&KeptRequest::made("GET", "/a?b=c").view())
    );
    assert!(
        !stub
            .rule
            .is_met_by(&KeptRequest::made("GET", "/a?b=d").view())
    );
    let reported: Vec<String> = stub
        .left_out
        .iter()
        .map(|it| format!("{}: {}", it.place, it.message))
        .collect();
    assert_eq!(reported.len(), 2, "{reported:?}");
    for mapping in [
        json!({"response": {"body": "{{nothing request.body}}", "transformers": ["response-template"]}}),
        json!({"response": {"headers": {"x": "{{#if a}}"}, "transformers": ["response-template"]}}),
        json!({"request": {"urlPathPattern": "(?=a)"}}),
        json!({"request": {"bodyPatterns": [{"matchesJsonPath": "$.a =~ /x/"}]}}),
        json!({"request": {"bodyPatterns": [{"equalToXml": "<a>"}]}}),
        json!({"request": {"bodyPatterns": [{"equalToXml": "<a/>", "enablePlaceholders": true}]}}),
        json!({"request": {"bodyPatterns": [{"matchesXPath": "//p:a"}]}}),
        json!({"request": {"bodyPatterns": [{"matchesXPath": {"expression": "//a", "equalToXml": "<a/>"}}]}}),
        json!({"request": {"bodyPatterns": [{"binaryEqualTo": "/w=="}]}}),
        json!({"request": {"urlPath": "/a", "pathParameters": {"a": {"equalTo": "1"}}}}),
        json!({"request": {"urlPathTemplate": "/{b}", "pathParameters": {"a": {"equalTo": "1"}}}}),
        json!({"request": {"headers": {"x": {"matchesJsonPath": "$.a"}}}}),
        json!({"response": {"proxyBaseUrl": "ftp://x"}}),
        json!({"response": {"bodyFileName": "none.txt"}}),
        json!({"response": {"fault": "NONE"}}),
    ] {
        assert!(made(mapping.clone()).is_err(), "{mapping}");
    }
}

#[test]
fn patterns_are_met_as_wiremock_has_it() {
    for (request, target, body, expected) in [
        (
            json!({"bodyPatterns": [{"matches": ".*\"key\": \"value\".*"}]}),
            "/",
            "{\n  \"key\": \"value\"\n}",
            true,
        ),
        (
            json!({"bodyPatterns": [{"doesNotMatch": ".*key.*"}]}),
            "/",
            "{\n  \"key\": \"value\"\n}",
            false,
        ),
        (
            json!({"bodyPatterns": [{"matchesJsonPath": "$[?(@.type == 'a')]"}]}),
            "/",
            r#"{"type":"a"}"#,
            true,
        ),
        (
            json!({"bodyPatterns": [{"matchesJsonPath": "$[?(@.type == 'a')]"}]}),
            "/",
            r#"{"type":"b"}"#,
            false,
        ),
        (
            json!({"bodyPatterns": [{"matchesJsonPath": "$.all[?(@.n == 2)]"}]}),
            "/",
            r#"{"all":[{"n":2}]}"#,
            true,
        ),
        (
            json!({"queryParameters": {"a": {"contains": "x", "doesNotMatch": ".*y.*"}}}),
            "/?a=xz",
            "",
            true,
        ),
        (
            json!({"queryParameters": {"a": {"contains": "x", "doesNotMatch": ".*y.*"}}}),
            "/?a=xy",
            "",
            false,
        ),
        (
            json!({"queryParameters": {"a": {"includes": [{"equalTo": "1"}, {"equalTo": "2"}]}}}),
            "/?a=1&a=2&a=3",
            "",
            true,
        ),
        (
            json!({"queryParameters": {"a": {"hasExactly": [{"equalTo": "1"}, {"equalTo": "2"}]}}}),
            "/?a=2&a=1",
            "",
            true,
        ),
        (
            json!({"queryParameters": {"a": {"hasExactly": [{"equalTo": "1"}, {"equalTo": "2"}]}}}),
            "/?a=1&a=2&a=3",
            "",
            false,
        ),
        (
            json!({"queryParameters": {"t": {"before": "2026-01-31T00:00:00Z"}}}),
            "/?t=2026-01-30",
            "",
            true,
        ),
        (
            json!({"queryParameters": {"t": {"after": "now +1 days"}}}),
            "/?t=2020-01-30",
            "",
            false,
        ),
        (
            json!({"queryParameters": {"t": {"equalToDateTime": "2026-01-01", "actualFormat": "dd/MM/yyyy", "truncateActual": "first day of month"}}}),
            "/?t=20/01/2026",
            "",
            true,
        ),
        (
            json!({"queryParameters": {"n": {"equalTo": 5}}}),
            "/?n=5",
            "",
            true,
        ),
        (
            json!({"queryParameters": {"n": {"greaterThanNumber": 5}}}),
            "/?n=5.5",
            "",
            true,
        ),
        (
            json!({"queryParameters": {"n": {"greaterThanNumber": "5"}}}),
            "/?n=5",
            "",
            false,
        ),
        (json!({"clientIp": {"equalTo": "127.0.0.1"}}), "/", "", true),
        (json!({"clientIp": {"matches": "10[.].*"}}), "/", "", false),
        (
            json!({"bodyPatterns": [{"matchesJsonPath": "$.a.[0]"}]}),
            "/",
            r#"{"a":[1]}"#,
            true,
        ),
        (
            json!({"bodyPatterns": [{"matchesJsonPath": "$.a.[1]"}]}),
            "/",
            r#"{"a":[1]}"#,
            false,
        ),
    ] {
        let stub =
            made(json!({ "request": request })).unwrap_or_else(|errors| panic!("{errors:?}"));
        let mut kept = KeptRequest::made("POST", target);
        kept.body = body.as_bytes().to_vec().into();
        assert_eq!(
            stub.rule.is_met_by(&kept.view()),
            expected,
            "{request} {target} {body}"
        );
    }
}

/// Whether a stub matches a request with fields.
fn is_met(request: &Value, fields: &[(&str, &str)], body: &str) -> bool {
    let stub = made(json!({ "request": request })).unwrap_or_else(|errors| panic!("{errors:?}"));
    let mut request = KeptRequest::made("POST", "/");
    for (name, value) in fields {
        let field = ((*name).to_owned(), value.as_bytes().to_vec());
        request.fields.push(field);
    }
    request.body = body.as_bytes().to_vec().into();
    stub.rule.is_met_by(&request.view())
}

#[test]
fn every_field_of_a_name_counts() {
    let fields = [("X-A", "1"), ("x-b", "0"), ("x-a", "2")];
    for (pattern, expected) in [
        (json!({"equalTo": "2"}), true),
        (
            json!({"includes": [{"equalTo": "2"}, {"equalTo": "1"}]}),
            true,
        ),
        (json!({"includes": [{"equalTo": "3"}]}), false),
        (
            json!({"hasExactly": [{"equalTo": "2"}, {"equalTo": "1"}]}),
            true,
        ),
        (json!({"hasExactly": [{"equalTo": "2"}]}), false),
        (json!({"not": {"equalTo": "2"}}), false),
    ] {
        let request = json!({"headers": {"X-A": pattern}});
        assert_eq!(is_met(&request, &fields, ""), expected, "{request}");
    }
}

#[test]
fn parts_of_forms_are_matched() {
    let body = "--b\r\nContent-Disposition: form-data; name=\"meta\"\r\nContent-Type: application/json\r\n\r\n{\"n\": 1}\r\n\
                --b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.txt\"\r\nContent-Type: text/plain\r\n\r\nhello\r\n--b--\r\n";
    let form = [("Content-Type", "multipart/form-data; boundary=b")];
    for (parts, expected) in [
        (json!([{"name": "file"}]), true),
        (json!([{"name": "none"}]), false),
        (
            json!([{"name": "file", "fileName": "a.txt", "bodyPatterns": [{"contains": "ell"}]}]),
            true,
        ),
        (json!([{"name": "file", "fileName": "b.txt"}]), false),
        (
            json!([{"bodyPatterns": [{"matchesJsonPath": "$.n"}]}, {"headers": {"Content-Type": {"equalTo": "text/plain"}}}]),
            true,
        ),
        (
            json!([{"name": "meta", "bodyPatterns": [{"equalToJson": {"n": 2}}]}]),
            false,
        ),
        (
            json!([{"matchingType": "ALL", "headers": {"Content-Type": {"matches": ".*/.*"}}}]),
            true,
        ),
        (
            json!([{"matchingType": "ALL", "bodyPatterns": [{"contains": "hello"}]}]),
            false,
        ),
        (
            json!([{"matchingType": "ANY", "bodyPatterns": [{"not": {"contains": "hello"}}]}]),
            true,
        ),
    ] {
        let request = json!({"multipartPatterns": parts});
        assert_eq!(is_met(&request, &form, body), expected, "{request}");
        assert!(
            !is_met(&request, &[], body),
            "without its media type: {request}"
        );
    }
}

proptest! {
    #[test]
    fn a_text_is_matched_as_it_stands(text in "[a-c.*?'\"\\\\é\n ]{1,8}") {
        let mapping = json!({"request": {"bodyPatterns": [{"equalTo": text, "caseInsensitive": true}]}});
        let stub = made(mapping).unwrap();
        let mut request = KeptRequest::made("POST", "/");
        request.body = text.to_uppercase().into_bytes().into();
        prop_assert!(stub.rule.is_met_by(&request.view()));
        request.body = format!("{text}x").into_bytes().into();
        prop_assert!(!stub.rule.is_met_by(&request.view()));
    }
}

/// Whether a mapping's rule matches a request.
fn matches(request: &Value, method: &str, target: &str, authority: &str, body: &str) -> bool {
    let made = made(json!({ "request": request, "response": {} }));
    let stub = made.unwrap_or_else(|remarks| panic!("{remarks:?}"));
    let mut asked = KeptRequest::made(method, target);
    asked.authority = authority.to_owned();
    asked.body = body.as_bytes().to_vec().into();
    let view = asked.view();
    stub.rule.conditions.iter().all(|it| it.is_met_by(&view))
}

#[test]
fn expressions_are_those_of_java() {
    let name =
        json!({ "urlPath": "/a", "queryParameters": { "n": { "matches": "[A-Za-z\\s-.]+" } } });
    assert!(matches(&name, "GET", "/a?n=a-b.c", "h", ""));
    assert!(!matches(&name, "GET", "/a?n=a1", "h", ""));
    let path = json!({ "urlPathPattern": "/\\w+/\\Q{x}\\E" });
    assert!(matches(&path, "GET", "/ab/{x}", "h", ""));
    let ahead = made(json!({ "request": { "urlPathPattern": "/(?!a).*" }, "response": {} }));
    let remarks = ahead.unwrap_err();
    assert!(remarks[0].message.contains("lookahead"), "{remarks:?}");
}

#[test]
fn json_at_a_path_is_compared_with_its_flags() {
    let pattern = |flags: Value| {
        let mut matcher = json!({ "expression": "$.a", "equalToJson": "{\"l\":[1,2]}" });
        matcher
            .as_object_mut()
            .unwrap()
            .extend(flags.as_object().unwrap().clone());
        json!({ "bodyPatterns": [{ "matchesJsonPath": matcher }] })
    };
    for (flags, body, expected) in [
        (json!({}), r#"{"a":{"l":[1,2]}}"#, true),
        (json!({}), r#"{"a":{"l":[2,1]}}"#, false),
        (
            json!({ "ignoreArrayOrder": true }),
            r#"{"a":{"l":[2,1]}}"#,
            true,
        ),
        (
            json!({ "ignoreExtraElements": true }),
            r#"{"a":{"l":[1,2],"x":1}}"#,
            true,
        ),
        (
            json!({ "ignoreArrayOrder": true }),
            r#"{"a":{"l":[2,1],"x":1}}"#,
            false,
        ),
    ] {
        assert_eq!(
            matches(&pattern(flags.clone()), "POST", "/", "h", body),
            expected,
            "{flags} {body}"
        );
    }
}

#[test]
fn a_mapping_may_be_for_one_scheme_host_and_port() {
    let request = json!({ "scheme": "http", "host": { "equalTo": "one.example" }, "port": 8080 });
    for (authority, expected) in [
        ("one.example:8080", true),
        ("ONE.example:8080", true),
        ("one.example", false),
        ("two.example:8080", false),
    ] {
        assert_eq!(
            matches(&request, "GET", "/", authority, ""),
            expected,
            "{authority}"
        );
    }
    let secure = json!({ "scheme": "https" });
    assert!(!matches(&secure, "GET", "/", "one.example", ""));
}

#[test]
fn a_name_is_a_field_and_a_file_may_be_named_by_the_request() {
    let files = tempfile::tempdir().unwrap();
    let mapping = json!({ "name": "the one", "request": { "urlPath": "/a" },
        "response": { "bodyFileName": "{{request.query.f}}.txt", "transformers": ["response-template"] } });
    let made = stub(mapping, files.path(), &States::default());
    let stub = made.unwrap_or_else(|remarks| panic!("{remarks:?}"));
    for expected in [
        "respond.headers.Matched-Stub-Name = \"the one\"",
        "respond.file_path = \"{{request.query.f}}.txt\"",
        "respond.template = \"wiremock\"",
    ] {
        assert!(stub.text.contains(expected), "{}", stub.text);
    }
    assert_eq!(stub.left_out.len(), 1, "{:?}", stub.left_out);
}

#[test]
fn a_webhook_that_cannot_be_sent_leaves_its_mapping_alone() {
    let made = made(
        json!({ "request": { "urlPath": "/a" }, "response": { "status": 201 },
        "postServeActions": { "webhook": { "url": "http://h/", "headers": { "authorization": "{{oauth}}" } } } }),
    );
    let stub = made.unwrap_or_else(|remarks| panic!("{remarks:?}"));
    assert!(stub.rule.callbacks.is_empty());
    let message = &stub.left_out[0].message;
    assert!(
        message.contains("`oauth` is not known here, so nothing is sent"),
        "{message}"
    );
}
