use std::path::Path;

use crate::import::tests::{answered, imported};
use crate::reply::ReplyKind;
use crate::request::KeptRequest;
use crate::store::states::States;
use crate::template::content::Content;

const ENVIRONMENT: &str = r#"{"uuid": "u", "lastMigration": 33, "endpointPrefix": "api", "latency": 0,
  "headers": [{"key": "Content-Type", "value": "application/json"}, {"key": "X-All", "value": "1"}],
  "data": [{"id": "d1", "name": "schema", "value": "{\"required\": [\"a\"]}"},
           {"id": "d2", "name": "things", "value": "[{{#repeat 2}}{\"key\": \"k{{@index}}\"}{{/repeat}}]"}],
  "routes": [
    {"type": "http", "method": "get", "endpoint": "users/:id", "responses": [
      {"label": "none", "statusCode": 404, "body": "{\"error\": \"{{urlParam 'id'}}\"}", "rulesOperator": "OR", "rules": [
        {"target": "params", "modifier": "id", "operator": "equals", "value": "0"},
        {"target": "query", "modifier": "missing", "operator": "equals", "value": "yes"}]},
      {"label": "odd", "statusCode": 418, "body": "x", "rules": [{"target": "request_number", "operator": "equals", "value": "2"}]},
      {"label": "one", "statusCode": 200, "body": "{\"id\": \"{{urlParam 'id'}}\", \"x\": \"{{oneOf a b}}\"}", "default": true}]},
    {"type": "http", "method": "post", "endpoint": "users", "responses": [
      {"statusCode": 422, "body": "{}", "rules": [{"target": "body", "modifier": "", "operator": "valid_json_schema", "value": "schema", "invert": true}]},
      {"statusCode": 409, "body": "{}", "rules": [{"target": "body", "modifier": "a.0", "operator": "equals", "value": "b"}]},
      {"statusCode": 201, "body": "", "default": true}]},
    {"type": "http", "method": "all", "endpoint": "turn/*", "responseMode": "SEQUENTIAL", "responses": [
      {"statusCode": 200, "body": "\"a\""}, {"statusCode": 500, "body": "\"b\""}]},
    {"type": "crud", "method": "", "endpoint": "none", "responses": []},
    {"type": "http", "method": "get", "endpoint": "a(b)?/:id([0-9]+)", "responses": [{"statusCode": 200}]},
    {"type": "crud", "method": "", "endpoint": "things", "responses": [
      {"bodyType": "DATABUCKET", "databucketID": "d2", "crudKey": "key", "default": true}]},
    {"type": "http", "method": "get", "endpoint": "braces/{a-b}/:id", "responses": [{"statusCode": 200}]},
    {"type": "http", "method": "get", "endpoint": ":x{odd}", "responses": [{"statusCode": 200}]}
  ]}"#;

#[test]
fn what_no_route_answers_is_passed_on() {
    let environment = r#"{"endpointPrefix": "api", "latency": 5, "proxyMode": true, "proxyHost": "http://real.example", "proxyRemovePrefix": true,
      "proxyReqHeaders": [{"key": "X-A", "value": "1"}], "proxyResHeaders": [{"key": "X-B", "value": "2"}],
      "routes": [{"type": "http", "method": "get", "endpoint": "a", "responses": [{"statusCode": 201}]}]}"#;
    let imported = imported(environment);
    assert_eq!(imported.left_out, []);
    let text = imported.text(None);
    let last = text.split("[[rules]]\n").last().unwrap();
    assert_eq!(
        last,
        "when.request.url_path = { op = \"starts_with\", value = \"/\" }\n\
         respond.proxy = { to = \"http://real.example\", strip = \"/api\", headers.X-A = \"1\" }\n\
         respond.headers.X-B = \"2\"\nrespond.delay = \"5ms\"\n"
    );
    assert_eq!(
        answered(&imported, &KeptRequest::made("GET", "/api/a")),
        201
    );
}

#[test]
fn routes_become_rules() {
    let imported = imported(ENVIRONMENT);
    let reported: Vec<String> = imported.left_out.iter().map(ToString::to_string).collect();
    let reported = reported.join("\n");
    for expected in [
        "routes[1].responses[3]: `a` is not known here, so the response says so",
        "routes[4]: is a CRUD route without a response",
        "routes[8]: `:x{odd}` of the path is not known here",
    ] {
        assert!(reported.contains(expected), "no `{expected}` in {reported}");
    }
    assert_eq!(imported.left_out.len(), 3, "{reported}");
    for (method, target, body, expected) in [
        ("GET", "/api/users/0", "", 404),
        ("GET", "/api/users/7", "", 200),
        ("GET", "/api/users/7?missing=yes", "", 404),
        ("GET", "/users/7", "", 0),
        ("POST", "/api/users", "{}", 422),
        ("POST", "/api/users", "{\"a\": [\"b\"]}", 409),
        ("POST", "/api/users", "{\"a\": [\"c\"]}", 201),
        ("PUT", "/api/turn/x/y", "", 200),
        ("PUT", "/api/turn", "", 0),
        ("GET", "/api/ab/7", "", 200),
        ("GET", "/api/a/7", "", 200),
        ("GET", "/api/ab/x", "", 0),
        ("GET", "/api/braces/%7Ba-b%7D/7", "", 200),
        ("GET", "/api/braces/x/7", "", 0),
    ] {
        let mut request = KeptRequest::made(method, target);
        request.body = body.as_bytes().to_vec().into();
        assert_eq!(
            answered(&imported, &request),
            expected,
            "{method} {target} {body}"
        );
    }
}

#[test]
fn crud_routes_become_collections() {
    let imported = imported(ENVIRONMENT);
    let text = imported.text(None);
    let expected = "[[collections]]\npath = \"/api/things\"\nid = \"key\"\ndata = ";
    let (_, data) = text.split_once(expected).expect(&text);
    for row in ["{\"key\": \"k0\"},", "{\"key\": \"k1\"}"] {
        assert!(data.contains(row), "{text}");
    }
}

#[test]
fn rules_count_requests_and_compare_templates() {
    let environment = r#"{"routes": [
      {"type": "http", "method": "get", "endpoint": "count", "responses": [
        {"statusCode": 418, "body": "", "rules": [{"target": "request_number", "operator": "equals", "value": "2"}]},
        {"statusCode": 429, "body": "", "rulesOperator": "AND", "rules": [{"target": "request_number", "operator": "regex", "value": "^[1-3]$", "invert": true}]},
        {"statusCode": 200, "body": "", "default": true}]},
      {"type": "http", "method": "get", "endpoint": "same", "responses": [
        {"statusCode": 201, "body": "", "rules": [{"target": "query", "modifier": "a", "operator": "equals", "value": "{{queryParam 'b'}}!"}]},
        {"statusCode": 202, "body": "", "rules": [{"target": "templating", "modifier": "{{method}}-{{queryParam 'a'}}", "operator": "regex_i", "value": "^get-z"}]},
        {"statusCode": 404, "body": "", "default": true}]}]}"#;
    let imported = imported(environment);
    assert_eq!(imported.left_out, []);
    let states = States::default();
    let file = imported.compile(Path::new("import"), &states).unwrap();
    let answered = |target: &str| {
        let request = KeptRequest::made("GET", target);
        let (set, number) = file.plan.find(&request.view()).unwrap();
        let rule = &file.plan.sets[set].rules()[number];
        rule.advance(&request.view()).unwrap();
        rule.replies[0].status.map(|it| it.as_u16())
    };
    let counted: Vec<_> = (0..5).map(|_| answered("/count").unwrap()).collect();
    assert_eq!(counted, [200, 418, 200, 429, 429]);
    for (target, expected) in [
        ("/same?a=x!&b=x", 201),
        ("/same?a=Z&b=x", 202),
        ("/same?a=x&b=x", 404),
    ] {
        assert_eq!(answered(target), Some(expected), "{target}");
    }
}

#[test]
fn templates_look_up_data() {
    let environment = r#"{"data": [{"id": "u1", "name": "All Users", "value": "[{\"name\": \"{{#if true}}Ann{{/if}}\"}]"}],
      "routes": [{"type": "http", "method": "get", "endpoint": "user", "responses": [
        {"statusCode": 200, "body": "{{data 'users' '0.name'}} {{data 'u1' '$[0].name'}} {{len (dataRaw 'u1')}} {{data 'none'}}"}]}]}"#;
    let imported = imported(environment);
    assert_eq!(imported.left_out, []);
    let states = States::default();
    let file = imported.compile(Path::new("import"), &states).unwrap();
    let request = KeptRequest::made("GET", "/user");
    let (set, number) = file.plan.find(&request.view()).unwrap();
    let rule = &file.plan.sets[set].rules()[number];
    let ReplyKind::Content(Content::TextTemplate(_, written)) = &rule.replies[0].kind else {
        panic!("{rule:?}");
    };
    assert_eq!(written.fill(&request.view()), "Ann Ann 1 ");
}

/// As Mockoon has it: what is missing is equal to nothing, null is equal to an empty text, and fields of forms are properties.
#[test]
fn what_is_missing_is_not_equal_to_an_empty_text() {
    let rule = |operator: &str, value: &str| {
        format!(
            r#"{{"routes": [{{"type": "http", "method": "post", "endpoint": "a", "responses": [
              {{"statusCode": 201, "body": "", "rules": [{{"target": "body", "modifier": "x", "operator": "{operator}", "value": "{value}"}}]}},
              {{"statusCode": 404, "body": "", "default": true}}]}}]}}"#
        )
    };
    let json = "application/json";
    let form = "application/x-www-form-urlencoded";
    for (operator, value, kind, body, expected) in [
        ("equals", "", json, "{}", 404),
        ("equals", "", json, r#"{"x":null}"#, 201),
        ("equals", "", json, r#"{"x":""}"#, 201),
        ("equals", "{{queryParam 'none'}}", json, "{}", 404),
        ("equals", "{{queryParam 'none'}}", json, r#"{"x":""}"#, 201),
        ("null", "", json, "{}", 201),
        ("null", "", json, r#"{"x":null}"#, 201),
        ("null", "", json, r#"{"x":""}"#, 201),
        ("null", "", json, r#"{"x":0}"#, 404),
        ("null", "", form, "y=1", 201),
        ("null", "", form, "x=1", 404),
        ("equals", "1", form, "x=1", 201),
        ("regex", "^[12]$", form, "x=2", 201),
        ("equals", "1", form, "y=1", 404),
    ] {
        let imported = imported(&rule(operator, value));
        assert_eq!(imported.left_out, []);
        let mut request = KeptRequest::made("POST", "/a");
        let kind = ("content-type".to_owned(), kind.as_bytes().to_vec());
        request.fields.push(kind);
        request.body = body.as_bytes().to_vec().into();
        assert_eq!(
            answered(&imported, &request),
            expected,
            "{operator} `{value}` of {body}"
        );
    }
}

#[test]
fn fields_of_a_response_stand_for_those_of_the_environment_whatever_their_case() {
    let environment = r#"{"headers": [{"key": "Content-Type", "value": "text/plain"}, {"key": "X-All", "value": "1"}], "routes": [
      {"type": "http", "method": "get", "endpoint": "a", "responses": [
        {"statusCode": 200, "body": "{}", "headers": [{"key": "content-type", "value": "application/json"}]}]}]}"#;
    let all = imported(environment);
    assert_eq!(all.left_out, []);
    let text = all.text(None);
    assert!(
        text.contains("respond.headers.content-type = \"application/json\""),
        "{text}"
    );
    assert!(!text.contains("text/plain"), "{text}");
    // Without a type it is the one that Express sends.
    let bare = imported(
        &environment
            .replace("\"Content-Type\"", "\"X-Other\"")
            .replace("content-type", "x-own"),
    );
    let text = bare.text(None);
    assert!(
        text.contains("content-type = \"text/html; charset=utf-8\""),
        "{text}"
    );
}

#[test]
fn responses_whose_templates_are_wrong_answer_as_mockoons_do() {
    let environment = r#"{"routes": [
      {"type": "http", "method": "get", "endpoint": "unknown", "responses": [{"statusCode": 201, "body": "{\"a\": \"{{nothing}}{{method}}\"}", "headers": [{"key": "content-type", "value": "application/json"}, {"key": "x-a", "value": "{{none}}b"}]}]},
      {"type": "http", "method": "get", "endpoint": "helper", "responses": [{"statusCode": 202, "body": "{{nothing 'a'}}", "headers": [{"key": "content-type", "value": "application/json"}]}]}]}"#;
    let imported = imported(environment);
    let reported: Vec<String> = imported.left_out.iter().map(ToString::to_string).collect();
    assert_eq!(reported.len(), 3, "{reported:?}");
    assert_eq!(
        answered(&imported, &KeptRequest::made("GET", "/unknown")),
        201
    );
    assert_eq!(
        answered(&imported, &KeptRequest::made("GET", "/helper")),
        202
    );
    let text = imported.text(None);
    for expected in [
        r#"respond.json = '{"a": "{{method}}"}'"#,
        r#"x-a = "b""#,
        r#"respond.text = "Error while serving the content: the helper `nothing` is not known here""#,
        r#"content-type = "text/plain""#,
    ] {
        assert!(text.contains(expected), "no `{expected}` in {text}");
    }
}

#[test]
fn conditions_look_ahead_and_paths_end_with_a_slash() {
    let environment = r#"{"routes": [
      {"type": "http", "method": "get", "endpoint": "content/:id", "responses": [
        {"statusCode": 404, "rules": [{"target": "params", "modifier": "id", "operator": "regex", "value": "^(?!.*xyz).*$"}]},
        {"statusCode": 201, "rules": [{"target": "query", "modifier": "q", "operator": "regex_i", "value": "^(?=.*A)(?!b).+$"}]},
        {"statusCode": 200, "default": true}]},
      {"type": "http", "method": "post", "endpoint": "empty", "responses": [
        {"statusCode": 400, "rules": [{"target": "body", "modifier": "", "operator": "equals", "value": ""}]},
        {"statusCode": 200, "default": true}]},
      {"type": "http", "method": "get", "endpoint": "slash/", "responses": [{"statusCode": 202}]}]}"#;
    let imported = imported(environment);
    assert_eq!(imported.left_out, []);
    for (method, target, body, expected) in [
        ("GET", "/content/abc", "", 404),
        ("GET", "/content/axyz", "", 200),
        ("GET", "/content/xyz?q=ca", "", 201),
        ("GET", "/content/xyz?q=ba", "", 200),
        ("GET", "/content/xyz?q=c", "", 200),
        ("POST", "/empty", "", 400),
        ("POST", "/empty", "a", 200),
        ("GET", "/slash/", "", 202),
        ("GET", "/slash", "", 0),
    ] {
        let mut request = KeptRequest::made(method, target);
        request.body = body.as_bytes().to_vec().into();
        let found = answered(&imported, &request);
        assert_eq!(found, expected, "{method} {target} {body}");
    }
}
