//! The admin API of WireMock: what its documents ask for, and how what cannot be done is refused.

use std::time::Duration;

use plimsoll_model::Clock as _;
use plimsoll_testkit::http::HttpResponse;
use plimsoll_wire::SystemClock;
use serde_json::{Value, json};

use crate::admin::Administered;

const ID: &str = "76ada7b0-49ae-4229-91c4-396a36f18e09";

const ROUTE: &str = r#"
[[listen]]
address = "127.0.0.1:0"
[[route]]
mock = { file = "mappings.json" }
[admin]
address = "127.0.0.1:0"
"#;

const MAPPINGS: &str = r#"{ "mappings": [
    { "name": "one", "request": { "urlPath": "/one" }, "response": { "body": "one" }, "metadata": { "of": ["a", "b"] } },
    { "request": { "urlPath": "/two", "method": "GET" }, "response": { "body": "two" },
      "scenarioName": "turns", "requiredScenarioState": "Started", "newScenarioState": "taken" }
] }"#;

fn start() -> Administered {
    Administered::start_with(ROUTE, &[("mappings.json", MAPPINGS)])
}

fn call(mock: &Administered, method: &str, path: &str, body: &Value) -> HttpResponse {
    let host = format!("host: {}", mock.address(1));
    let body = if body.is_null() {
        String::new()
    } else {
        body.to_string()
    };
    mock.admin(method, &format!("/__admin{path}"), &[&host], &body)
}

pub(crate) fn document(
    mock: &Administered,
    method: &str,
    path: &str,
    body: &Value,
    status: u16,
) -> Value {
    let answer = call(mock, method, path, body);
    assert_eq!(answer.status, status, "{method} {path}: {}", answer.text());
    serde_json::from_slice(&answer.body).unwrap_or_default()
}

pub(crate) fn get(mock: &Administered, path: &str) -> Value {
    document(mock, "GET", path, &Value::Null, 200)
}

#[test]
fn mappings_come_change_and_go() {
    let mock = start();
    let text = |path: &str| mock.ask("GET", path, "").text().to_owned();
    let listed = get(&mock, "/mappings");
    assert_eq!(listed["meta"]["total"], 2);
    // The newest first.
    assert_eq!(listed["mappings"][1]["name"], "one");
    let one = listed["mappings"][1]["id"].as_str().unwrap();
    assert_eq!(
        get(&mock, &format!("/mappings/{one}"))["metadata"]["of"][1],
        "b"
    );

    let new = json!({ "id": ID, "request": { "url": "/one" }, "response": { "body": "new" } });
    let added = document(&mock, "POST", "/mappings", &new, 201);
    assert_eq!(
        (&added["uuid"], &added["request"]["method"]),
        (&json!(ID), &json!("ANY"))
    );
    assert_eq!(text("/one"), "new");
    let taken = document(&mock, "POST", "/mappings", &new, 422);
    assert_eq!(taken["errors"][0]["code"], 109);

    let other = json!({ "request": { "url": "/one" }, "response": { "body": "other" } });
    document(&mock, "PUT", &format!("/mappings/{ID}"), &other, 200);
    assert_eq!(text("/one"), "other");
    document(
        &mock,
        "DELETE",
        &format!("/mappings/{ID}"),
        &Value::Null,
        200,
    );
    assert_eq!(text("/one"), "one");
    document(
        &mock,
        "DELETE",
        &format!("/mappings/{ID}"),
        &Value::Null,
        404,
    );
    document(&mock, "PUT", &format!("/mappings/{ID}"), &other, 404);
    let wrong = document(&mock, "GET", "/mappings/x", &Value::Null, 400);
    assert_eq!(wrong["errors"][0]["title"], "x is not a valid UUID");

    let removed = json!({ "request": { "urlPath": "/one" } });
    document(&mock, "POST", "/mappings/remove", &removed, 200);
    assert_eq!(mock.ask("GET", "/one", "").status, 404);
    document(&mock, "DELETE", "/mappings", &Value::Null, 200);
    assert_eq!(get(&mock, "/mappings")["mappings"], json!([]));
    document(&mock, "POST", "/mappings/reset", &Value::Null, 200);
    assert_eq!(text("/one"), "one");

    // A mapping that a file gives and that was removed can be added again.
    document(
        &mock,
        "DELETE",
        &format!("/mappings/{one}"),
        &Value::Null,
        200,
    );
    let again = json!({ "id": one, "request": { "url": "/one" }, "response": { "body": "again" } });
    document(&mock, "POST", "/mappings", &again, 201);
    assert_eq!(text("/one"), "again");
}

#[test]
fn what_no_rule_can_do_is_refused_as_a_whole_with_its_place() {
    let mock = start();
    let refusal = |mapping: Value| {
        let response = document(&mock, "POST", "/mappings", &mapping, 422);
        let errors = response["errors"].as_array().unwrap();
        let reported = errors.iter().map(|it| {
            it["source"]["pointer"]
                .as_str()
                .unwrap_or_default()
                .to_owned()
        });
        reported.collect::<Vec<_>>()
    };
    for (mapping, pointers) in [
        (
            json!({ "request": { "urlPaht": "/a" } }),
            vec!["/request/urlPaht"],
        ),
        (
            json!({ "request": { "bodyPatterns": [{ "contains": "a" }, { "eqTo": 1 }] }, "response": { "status": 20 } }),
            vec!["/request/bodyPatterns/1", "/response/status"],
        ),
        (
            json!({ "response": { "transformers": ["mine"] } }),
            vec!["/response/transformers"],
        ),
        (
            json!({ "response": { "fault": "FIRE" } }),
            vec!["/response/fault"],
        ),
        (
            json!({ "postServeActions": [{ "name": "webhook" }] }),
            vec!["/postServeActions/0/parameters/url"],
        ),
        (json!([]), vec![""]),
    ] {
        assert_eq!(refusal(mapping.clone()), pointers, "{mapping}");
    }
    // The framing is the server's; no test waits for it.
    let framed = json!({ "request": { "url": "/f" }, "response": { "headers": { "Content-Length": "7" }, "body": "f" } });
    document(&mock, "POST", "/mappings", &framed, 201);

    let several = json!({ "mappings": [framed, { "request": { "x": 1 } }] });
    let response = document(&mock, "POST", "/mappings/import", &several, 422);
    assert_eq!(
        response["errors"][0]["source"]["pointer"],
        "/mappings/1/request/x"
    );
    assert_eq!(get(&mock, "/mappings")["meta"]["total"], 3);
    for path in ["/mappings/save", "/shutdown"] {
        let response = document(&mock, "POST", path, &Value::Null, 422);
        assert_eq!(response["errors"][0]["code"], 50, "{path}");
    }
    document(&mock, "GET", "/nothing", &Value::Null, 404);
}

#[test]
fn settings_delay_all_responses_until_everything_is_reset() {
    let mock = start();
    let uniform = json!({ "type": "uniform", "lower": 1, "upper": 2 });
    let settings = json!({ "fixedDelay": 30, "delayDistribution": uniform });
    document(&mock, "POST", "/settings", &settings, 200);
    let shown = get(&mock, "/settings");
    assert_eq!(shown["settings"]["fixedDelay"], 30);
    assert_eq!(shown["settings"]["delayDistribution"], uniform);
    // At least; how much longer it takes is the machine's business.
    let begun = SystemClock.now();
    assert_eq!(mock.ask("GET", "/one", "").text(), "one");
    assert!(SystemClock.now() - begun >= Duration::from_millis(30));
    for wrong in [
        json!({ "fixedDelay": "x" }),
        json!({ "delayDistribution": { "type": "odd" } }),
    ] {
        document(&mock, "POST", "/settings", &wrong, 422);
    }
    document(&mock, "POST", "/reset", &Value::Null, 200);
    assert_eq!(
        get(&mock, "/settings")["settings"]["fixedDelay"],
        Value::Null
    );
}

#[test]
fn an_import_overwrites_or_ignores_and_may_be_all_there_is() {
    let mock = start();
    let text = |path: &str| mock.ask("GET", path, "").text().to_owned();
    let mapping =
        |body: &str| json!({ "id": ID, "request": { "url": "/i" }, "response": { "body": body } });
    let import = |body: &str, options: Value| {
        let document = json!({ "mappings": [mapping(body)], "importOptions": options });
        self::document(&mock, "POST", "/mappings/import", &document, 200);
    };
    import("first", Value::Null);
    import("second", json!({ "duplicatePolicy": "IGNORE" }));
    assert_eq!(text("/i"), "first");
    import(
        "third",
        json!({ "duplicatePolicy": "OVERWRITE", "deleteAllNotInImport": true }),
    );
    assert_eq!(text("/i"), "third");
    assert_eq!(get(&mock, "/mappings")["meta"]["total"], 1);
}

#[test]
fn requests_are_found_and_counted_by_patterns() {
    let mock = start();
    mock.ask("GET", "/one?a=b", "");
    mock.ask("POST", "/none", "{\"n\":1}");
    let all = get(&mock, "/requests");
    assert_eq!(all["meta"]["total"], 2);
    let (last, first) = (&all["requests"][0], &all["requests"][1]);
    assert_eq!(
        (&last["wasMatched"], &first["wasMatched"]),
        (&json!(false), &json!(true))
    );
    assert_eq!(first["stubMapping"]["name"], "one");
    assert_eq!(first["request"]["queryParams"]["a"]["values"], json!(["b"]));
    assert_eq!(last["request"]["body"], "{\"n\":1}");
    let id = first["id"].as_str().unwrap();
    assert_eq!(get(&mock, &format!("/requests/{id}"))["id"], id);
    let of_one = first["stubMapping"]["id"].as_str().unwrap();
    assert_eq!(
        get(&mock, &format!("/requests?matchingStub={of_one}"))["meta"]["total"],
        1
    );
    assert_eq!(
        get(&mock, "/requests?unmatched=true&limit=1")["meta"]["total"],
        1
    );
    assert_eq!(
        get(&mock, "/requests?since=2999-01-01T00:00:00Z")["meta"]["total"],
        0
    );
    document(&mock, "GET", "/requests?limit=x", &Value::Null, 400);

    let pattern = json!({ "method": "POST", "bodyPatterns": [{ "matchesJsonPath": "$.n" }] });
    let count = document(&mock, "POST", "/requests/count", &pattern, 200);
    assert_eq!(
        count,
        json!({ "count": 1, "requestJournalDisabled": false })
    );
    let found = document(&mock, "POST", "/requests/find", &pattern, 200);
    assert_eq!(found["requests"][0]["url"], "/none");
    let wrong = document(
        &mock,
        "POST",
        "/requests/count",
        &json!({ "urlPaht": "/" }),
        422,
    );
    assert_eq!(wrong["errors"][0]["source"]["pointer"], "/urlPaht");
    assert_eq!(
        get(&mock, "/requests/unmatched")["requests"][0]["url"],
        "/none"
    );
    assert_eq!(get(&mock, "/mappings/unmatched")["meta"]["total"], 1);

    let metadata = json!({ "matchesJsonPath": { "expression": "$.of[*]", "equalTo": "b" } });
    let of = document(&mock, "POST", "/mappings/find-by-metadata", &metadata, 200);
    assert_eq!(of["mappings"][0]["name"], "one");
    let gone = document(
        &mock,
        "POST",
        "/requests/remove-by-metadata",
        &metadata,
        200,
    );
    assert_eq!(gone["serveEvents"].as_array().unwrap().len(), 1);
    let gone = document(&mock, "POST", "/requests/remove", &pattern, 200);
    assert_eq!(gone["serveEvents"].as_array().unwrap().len(), 1);
    assert_eq!(get(&mock, "/requests")["meta"]["total"], 0);
    document(
        &mock,
        "POST",
        "/mappings/remove-by-metadata",
        &metadata,
        200,
    );
    assert_eq!(get(&mock, "/mappings")["meta"]["total"], 1);
}

#[test]
fn near_misses_are_mappings_or_requests() {
    let mock = start();
    mock.ask("GET", "/ones", "");
    let near = get(&mock, "/requests/unmatched/near-misses");
    assert_eq!(near["nearMisses"][0]["stubMapping"]["name"], "one");
    let request = near["nearMisses"][0]["request"].clone();
    let near = document(&mock, "POST", "/near-misses/request", &request, 200);
    assert!(
        near["nearMisses"][0]["matchResult"]["distance"]
            .as_f64()
            .unwrap()
            > 0.0
    );
    assert_eq!(near["nearMisses"][1]["scenarioState"], "Started");
    let pattern = json!({ "urlPath": "/onces" });
    let near = document(&mock, "POST", "/near-misses/request-pattern", &pattern, 200);
    assert_eq!(near["nearMisses"][0]["request"]["url"], "/ones");
    document(&mock, "POST", "/near-misses/request", &json!({}), 422);
}

#[test]
fn scenarios_health_and_the_whole() {
    let mock = start();
    mock.ask("GET", "/two", "");
    let turns = |mock: &Administered| get(mock, "/scenarios")["scenarios"][0].clone();
    assert_eq!(turns(&mock)["state"], "taken");
    assert_eq!(turns(&mock)["mappings"][0]["newScenarioState"], "taken");
    let put =
        |state: Value, status| document(&mock, "PUT", "/scenarios/turns/state", &state, status);
    put(json!({ "state": "Started" }), 200);
    assert_eq!(mock.ask("GET", "/two", "").text(), "two");
    assert_eq!(
        put(json!({ "state": "lost" }), 422)["errors"][0]["code"],
        11
    );
    put(Value::Null, 200);
    assert_eq!(turns(&mock)["state"], "Started");
    document(&mock, "PUT", "/scenarios/none/state", &Value::Null, 404);
    mock.ask("GET", "/two", "");
    document(&mock, "POST", "/scenarios/reset", &Value::Null, 200);
    assert_eq!(turns(&mock)["state"], "Started");

    assert_eq!(get(&mock, "/health")["status"], "healthy");
    assert!(get(&mock, "/version")["version"].is_string());
    assert!(get(&mock, "/settings")["settings"].is_object());
    document(
        &mock,
        "POST",
        "/mappings",
        &json!({ "request": { "url": "/x" } }),
        201,
    );
    document(&mock, "POST", "/reset", &Value::Null, 200);
    assert_eq!(get(&mock, "/requests")["meta"]["total"], 0);
    assert_eq!(get(&mock, "/mappings")["meta"]["total"], 2);
    // The same below the root of the mock's own API.
    let host = format!("host: {}", mock.address(1));
    assert_eq!(
        mock.admin("GET", "/mock/__admin/health", &[&host], "")
            .status,
        200
    );
}

#[test]
fn without_a_journal_it_is_reported_so() {
    let route = ROUTE.replace("\"mappings.json\"", "\"mappings.json\", journal = 0");
    let mock = Administered::start_with(&route, &[("mappings.json", MAPPINGS)]);
    mock.ask("GET", "/one", "");
    let count = document(&mock, "POST", "/requests/count", &json!({}), 200);
    assert_eq!(
        count,
        json!({ "count": -1, "requestJournalDisabled": true })
    );
    let all = get(&mock, "/requests");
    assert_eq!(
        (&all["requests"], &all["requestJournalDisabled"]),
        (&json!([]), &json!(true))
    );
    document(&mock, "GET", "/mappings/unmatched", &Value::Null, 422);
}

#[test]
fn a_mapping_without_a_method_takes_options_too() {
    let mock = start();
    for method in ["GET", "OPTIONS", "DELETE"] {
        assert_eq!(mock.ask(method, "/one", "").text(), "one", "{method}");
    }
}

/// Mappings of the state extension, added one by one: what one keeps another one finds.
#[cfg(feature = "mock-import")]
#[test]
fn mappings_of_the_state_extension_share_what_they_keep() {
    let mock = start();
    let template = |status: u16, body: &str| json!({ "status": status, "body": body, "transformers": ["response-template"] });
    let context = "{{request.pathSegments.[1]}}";
    let matcher = |parameters: Value| json!({ "name": "state-matcher", "parameters": parameters });
    let request = |method: &str, parameters: Value| json!({ "method": method, "urlPathPattern": "/people/[^/]+", "customMatcher": matcher(parameters) });
    let first = "{{jsonPath request.body '$.first'}}";
    let record = json!({ "name": "recordState", "parameters": {
        "context": "{{jsonPath response.body '$.id'}}",
        "state": { "first": first, "whole": "{{jsonPath response.body '$'}}" },
    } });
    let list = json!({ "name": "recordState", "parameters": {
        "context": "all", "list": { "addLast": { "first": first } },
    } });
    let body = "{\"id\":\"{{jsonPath request.body '$.id'}}\"}";
    let found = "{{state context=request.pathSegments.[1] property='first'}} {{state context=request.pathSegments.[1] property='updateCount'}} \
                 {{state context=request.pathSegments.[1] property='none' default='-'}} {{state context='x' property='y'}}";
    let listed = "{{state context='all' property='listSize' default='0'}} {{state context='all' list='[-1].first' default='none'}} \
                  {{#each (state context='all' property='list' default='[]')}}{{first}}{{#unless @last}},{{/unless}}{{/each}}";
    for mapping in [
        json!({ "request": { "method": "POST", "urlPath": "/people" }, "response": template(201, body), "serveEventListeners": [record, list] }),
        json!({ "request": request("GET", json!({ "hasContext": context })), "response": template(200, found) }),
        json!({ "request": request("GET", json!({ "hasContext": context, "updateCountMoreThan": "1" })), "response": template(200, "twice") }),
        json!({ "request": request("GET", json!({ "hasNotContext": context })), "response": { "status": 410 } }),
        json!({ "request": { "method": "DELETE", "urlPathPattern": "/people/[^/]+" }, "response": { "status": 200 },
            "serveEventListeners": [{ "name": "deleteState", "parameters": { "context": context } }] }),
        json!({ "request": { "urlPath": "/list" }, "response": template(200, listed) }),
        json!({ "request": { "urlPath": "/drop" }, "response": { "body": "gone" }, "serveEventListeners": [
            { "name": "deleteState", "parameters": { "context": "all", "list": { "deleteWhere": { "property": "first", "value": "Ann" } } } } ] }),
    ] {
        document(&mock, "POST", "/mappings", &mapping, 201);
    }
    let text =
        |method: &str, path: &str, body: &str| mock.ask(method, path, body).text().to_owned();
    assert_eq!(mock.ask("GET", "/people/7", "").status, 410);
    assert_eq!(text("GET", "/list", ""), "0 none ");
    assert_eq!(
        text("POST", "/people", r#"{"id":"7","first":"Ann"}"#),
        r#"{"id":"7"}"#
    );
    let missing = "[ERROR: No state for context x, property y found]";
    assert_eq!(text("GET", "/people/7", ""), format!("Ann 1 - {missing}"));
    text("POST", "/people", r#"{"id":"7","first":"Bea"}"#);
    assert_eq!(text("GET", "/people/7", ""), "twice");
    assert_eq!(text("GET", "/list", ""), "2 Bea Ann,Bea");
    assert_eq!(text("GET", "/drop", ""), "gone");
    assert_eq!(text("GET", "/list", ""), "1 Bea Bea");
    assert_eq!(mock.ask("DELETE", "/people/7", "").status, 200);
    assert_eq!(mock.ask("GET", "/people/7", "").status, 410);

    // What is not known is refused by name.
    let unknown = json!({ "request": { "url": "/u", "customMatcher": matcher(json!({ "hasContext": "a", "hasProperty": "b" })) }, "response": {} });
    let refused = document(&mock, "POST", "/mappings", &unknown, 422).to_string();
    assert!(refused.contains("hasProperty"), "{refused}");
    let headers = json!({ "request": { "url": "/u" }, "response": { "body": "b" }, "serveEventListeners": [
        { "name": "recordState", "parameters": { "context": "{{response.headers.x}}", "state": {} } } ] });
    let refused = document(&mock, "POST", "/mappings", &headers, 422).to_string();
    assert!(refused.contains("only `body`"), "{refused}");
    let signed =
        json!({ "request": { "url": "/u" }, "response": template(200, "{{jwt alg='RS256'}}") });
    let refused = document(&mock, "POST", "/mappings", &signed, 422).to_string();
    assert!(refused.contains("HS256 only"), "{refused}");
    let secret = get(&mock, "/settings")["settings"]["extended"]["jwt"]["hs256Secret"].clone();
    assert!(secret.as_str().is_some_and(|it| it.len() == 48), "{secret}");
}

#[test]
fn a_reset_of_mappings_forgets_requests_too() {
    let mock = start();
    let total = || get(&mock, "/requests")["meta"]["total"].clone();
    mock.ask("GET", "/one", "");
    assert_eq!(total(), 1);
    document(&mock, "POST", "/mappings/reset", &Value::Null, 200);
    assert_eq!(total(), 0);
    mock.ask("GET", "/one", "");
    document(&mock, "DELETE", "/mappings", &Value::Null, 200);
    assert_eq!(total(), 1);
}

#[test]
fn mappings_are_removed_by_their_request_if_none_has_the_id() {
    let mock = start();
    let add = |id: &str| {
        let mapping = json!({ "id": id, "request": { "url": "/new" }, "response": { "body": id } });
        document(&mock, "POST", "/mappings", &mapping, 201);
    };
    add(ID);
    let described =
        json!({ "id": "00000000-0000-4000-8000-0000000000ff", "request": { "url": "/new" } });
    document(&mock, "POST", "/mappings/remove", &described, 200);
    assert_eq!(mock.ask("GET", "/new", "").status, 404);
    // One that has the id goes alone.
    let other = "00000000-0000-4000-8000-0000000000fe";
    add(ID);
    add(other);
    let described = json!({ "id": other, "request": { "url": "/new" } });
    document(&mock, "POST", "/mappings/remove", &described, 200);
    assert_eq!(mock.ask("GET", "/new", "").text(), ID);
    let taken = json!({ "id": ID, "request": {}, "response": {} });
    let refused = document(&mock, "POST", "/mappings", &taken, 422);
    let detail =
        format!("ID of the provided stub mapping '{ID}' is already taken by another stub mapping");
    assert_eq!(refused["errors"][0]["detail"], detail);
    let unknown = format!("/mappings/{other}");
    assert_eq!(call(&mock, "PUT", &unknown, &Value::Null).status, 404);
}

#[test]
fn clients_find_texts_and_orders_that_wiremock_has() {
    let mock = start();
    let wrong = document(&mock, "GET", "/requests?matchingStub=x", &Value::Null, 400);
    let title = "Query parameter matchingStub value 'x' is not a valid UUID";
    assert_eq!(wrong["errors"][0]["title"], title);
    for state in ["3", "2"] {
        let mapping = json!({ "request": { "url": "/s" }, "response": {}, "scenarioName": "s",
            "requiredScenarioState": "Started", "newScenarioState": state });
        document(&mock, "POST", "/mappings", &mapping, 201);
    }
    let scenarios = get(&mock, "/scenarios");
    let found = scenarios["scenarios"].as_array().unwrap().iter();
    let mut found = found.filter(|scenario| scenario["name"] == "s");
    assert_eq!(
        found.next().unwrap()["possibleStates"],
        json!(["Started", "2", "3"])
    );
    let settings = json!({ "settings": { "fixedDelay": 1 } });
    document(&mock, "PUT", "/settings", &settings, 200);
    assert_eq!(get(&mock, "/settings")["settings"]["fixedDelay"], 1);
    // The names of a scheme have no case.
    let basic = json!({ "request": { "url": "/in", "basicAuthCredentials": { "username": "tom", "password": "secret" } },
        "response": { "jsonBody": { "a": [1, 2], "long": "-".repeat(90) } } });
    document(&mock, "POST", "/mappings", &basic, 201);
    for (scheme, status) in [
        ("Basic", 200),
        ("BASIC", 200),
        ("basic", 200),
        ("Bearer", 404),
    ] {
        let field = format!("authorization: {scheme} dG9tOnNlY3JldA==");
        let answer = mock.ask_with("GET", "/in", &[&field], "");
        assert_eq!(answer.status, status, "{scheme}");
        if status == 200 {
            assert!(
                answer.text().starts_with("{\"a\":[1,2],\"long\":\"--"),
                "{}",
                answer.text()
            );
        }
    }
}

#[test]
fn content_that_is_not_the_json_it_claims_to_be_is_bytes_to_mappings() {
    let mock = start();
    let json = ["content-type: application/json"];
    let answer = mock.ask_with("POST", "/one", &json, "{ broken");
    assert_eq!((answer.status, answer.text()), (200, "one"));
    let strict = json!({ "request": { "url": "/strict", "bodyPatterns": [{ "equalToJson": "{}" }] }, "response": {} });
    document(&mock, "POST", "/mappings", &strict, 201);
    assert_eq!(mock.ask_with("POST", "/strict", &json, "{}").status, 200);
    assert_eq!(
        mock.ask_with("POST", "/strict", &json, "{ broken").status,
        404
    );
}
