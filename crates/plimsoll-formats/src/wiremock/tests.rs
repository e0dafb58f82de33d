use proptest::prelude::*;
use serde_json::json;

use super::*;

fn report(remarks: &[Remark]) -> Vec<String> {
    let shown = |remark: &Remark| format!("{}: {}", remark.place, remark.message);
    remarks.iter().map(shown).collect()
}

#[test]
fn a_mapping_is_taken_apart() {
    let text = r#"{
        "id": "7b7f", "priority": 1, "scenarioName": "cart", "requiredScenarioState": "Started", "newScenarioState": "full",
        "request": {
            "method": "POST", "urlPath": "/orders",
            "headers": { "Accept": { "equalTo": "JSON", "caseInsensitive": true } },
            "queryParameters": { "page": { "or": [{ "equalTo": "1" }, { "absent": true }] } },
            "basicAuthCredentials": { "username": "u", "password": "p" },
            "bodyPatterns": [
                { "equalToJson": "{\"a\": [1, 2]}", "ignoreArrayOrder": true },
                { "matchesJsonPath": { "expression": "$.n", "greaterThanNumber": 3 } },
                { "not": { "matches": "x.*" } },
                { "before": "now", "expectedOffset": 3, "expectedOffsetUnit": "DAYS", "actualFormat": "unix", "truncateActual": "first day of month" },
                { "equalTo": 5 }
            ],
            "multipartPatterns": [
                { "name": "file", "fileName": "a.txt", "matchingType": "ALL", "headers": { "X-A": { "contains": "b" } }, "bodyPatterns": [{ "equalTo": "c" }] },
                { "matchingType": "ANY" }
            ]
        },
        "response": {
            "status": 201, "headers": { "Set-Cookie": ["a=b", "c=d"] }, "jsonBody": { "id": 1 }, "fixedDelayMilliseconds": 10,
            "delayDistribution": { "type": "uniform", "lower": 1, "upper": 2 },
            "chunkedDribbleDelay": { "numberOfChunks": 2, "totalDuration": 100 }, "transformers": ["response-template", "other"]
        },
        "serveEventListeners": [{ "name": "webhook" }], "postServeActions": []
    }"#;
    let parsed = parse_mappings(text).unwrap();
    let (number, mapping) = &parsed.mappings[0];
    assert_eq!((*number, mapping.name.as_deref()), (1, Some("7b7f")));
    assert_eq!(mapping.url, MappingUrl::Path("/orders".to_owned()));
    assert_eq!(mapping.fields.len(), 3);
    assert_eq!(
        mapping.fields[0].pattern,
        Pattern::Equal("JSON".to_owned(), true)
    );
    assert_eq!(
        mapping.fields[2].pattern,
        Pattern::Matches("(?i:Basic) dTpw".to_owned())
    );
    assert_eq!(
        mapping.bodies[0],
        Pattern::EqualToJson {
            value: json!({"a": [1, 2]}),
            ignores_order: true,
            ignores_extra: false
        }
    );
    assert_eq!(
        mapping.bodies[1],
        Pattern::JsonPath(
            "$.n".to_owned(),
            Some(Box::new(Pattern::Number(NumberOrder::Greater, 3.0)))
        )
    );
    let times = TimeOptions {
        format: Some("unix".to_owned()),
        truncate: Some("first day of month".to_owned()),
        truncate_value: None,
    };
    assert_eq!(
        mapping.bodies[3],
        Pattern::Time(TimeOrder::Before, "now +3 days".to_owned(), times)
    );
    assert_eq!(mapping.bodies[4], Pattern::Equal("5".to_owned(), false));
    let [part] = mapping.parts.as_slice() else {
        panic!("{:?}", mapping.parts);
    };
    assert_eq!(
        (
            part.name.as_deref(),
            part.file_name.as_deref(),
            part.is_every
        ),
        (Some("file"), Some("a.txt"), true)
    );
    assert_eq!((part.headers.len(), part.bodies.len()), (1, 1));
    let response = &mapping.response;
    assert_eq!((response.status, response.fields.len()), (201, 2));
    assert_eq!(response.body, MappingBody::Json(json!({"id": 1})));
    assert_eq!(
        response.delays,
        [MappingDelay::Fixed(10), MappingDelay::Uniform(1, 2)]
    );
    assert_eq!(
        (response.dribble, response.has_places),
        (Some((2, 100)), true)
    );
    assert_eq!(
        report(&parsed.left_out),
        [
            ", response.transformers: `other` is not known here",
            ", serveEventListeners[1].parameters.url: is missing, so nothing is sent"
        ]
    );
}

#[test]
fn a_mapping_with_an_unknown_condition_is_left_out_alone() {
    let text = r#"{ "mappings": [
        { "request": { "url": "/a", "multipartPatterns": [{ "matchingType": "SOME" }], "customMatcher": {} }, "response": {} },
        { "request": { "headers": { "x": { "hasSome": [] }, "y": { "equalTo": {} } } }, "response": { "status": 99 } },
        { "request": { "url": "/b" } },
        3
    ]}"#;
    let parsed = parse_mappings(text).unwrap();
    assert_eq!(parsed.mappings.len(), 1);
    assert_eq!(parsed.mappings[0].0, 3);
    let reported = report(&parsed.left_out).join("\n");
    for expected in [
        ", mappings[1].request.multipartPatterns[1].matchingType: must be ANY or ALL",
        ", mappings[1].request.customMatcher: this condition is not known",
        ", mappings[2].request.headers.x: `hasSome` is not known",
        ", mappings[2].request.headers.y: `equalTo` is not known here with that value",
        ", mappings[2].response.status: must be from 200 to 599",
        ", mappings[4]: is not an object",
    ] {
        assert!(reported.contains(expected), "no `{expected}` in {reported}");
    }
}

#[test]
fn changes_and_tests_of_states_are_taken_apart() {
    let text = r#"{
        "request": { "customMatcher": { "name": "state-matcher",
            "parameters": { "hasContext": "{{request.path}}", "listSizeLessThan": 3 } } },
        "response": {},
        "serveEventListeners": [
            { "name": "recordState", "parameters": { "context": "a", "state": { "n": 1 }, "list": { "addFirst": { "b": "c" } } } },
            { "name": "deleteState", "parameters": { "context": "a", "list": { "deleteIndex": "-1", "deleteFirst": false } } },
            { "name": "deleteState", "parameters": { "context": "a" } } ] }"#;
    let parsed = parse_mappings(text).unwrap();
    assert_eq!(parsed.left_out, []);
    let mapping = &parsed.mappings[0].1;
    let matcher = mapping.state_match.as_ref().unwrap();
    assert_eq!(
        (matcher.context.as_str(), matcher.is_absent),
        ("{{request.path}}", false)
    );
    let count = &matcher.counts[0];
    assert_eq!(
        (count.property, count.order, count.number.as_str()),
        ("listSize", "lt", "3")
    );
    let pair = |name: &str, value: &str| vec![(name.to_owned(), value.to_owned())];
    let actions: Vec<_> = mapping
        .state_changes
        .iter()
        .map(|it| it.action.clone())
        .collect();
    assert_eq!(
        actions,
        [
            StateAction::Record(pair("n", "1")),
            StateAction::AddFirst(pair("b", "c")),
            StateAction::DeleteIndex("-1".to_owned()),
            StateAction::Delete,
        ]
    );
    for (parameters, expected) in [
        ("{}", "parameters.context: is missing"),
        (
            r#"{"context":"a","stat":{}}"#,
            "parameters.stat: is not known",
        ),
        (
            r#"{"context":"a","list":{"addAny":{}}}"#,
            "parameters.list.addAny: is not known",
        ),
    ] {
        let text = format!(
            r#"{{ "request": {{}}, "response": {{}}, "serveEventListeners": [{{ "name": "recordState", "parameters": {parameters} }}] }}"#
        );
        let reported = report(&parse_mappings(&text).unwrap().left_out).join("\n");
        assert!(reported.contains(expected), "no `{expected}` in {reported}");
    }
}

#[test]
fn what_is_no_file_of_mappings_is_reported() {
    for (text, expected) in [
        ("{", "is not JSON"),
        ("[]", "is not an object"),
        ("{\"mappings\": 1}", "`mappings` is not an array"),
    ] {
        let error = parse_mappings(text).unwrap_err();
        assert!(error.message.contains(expected), "{text}: {error:?}");
    }
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in "(\\{\"mappings\":\\[|\\{|\\}|\\[|\\]|,|\"request\":|\"response\":|\"headers\":|\"body\":|\"not\":|\"and\":|\"equalTo\":|\"a\"|1){0,20}") {
        if let Ok(parsed) = parse_mappings(&text) {
            prop_assert!(parsed.mappings.len() + parsed.left_out.len() > 0 || text.contains("[]"));
        }
    }
}
