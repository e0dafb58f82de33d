//! Environments of Mockoon: routes with their responses, and the data that these use.
//!
//! Source: the schema of environments, of migration 33; what older ones lack has its default.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use crate::{Place, Remark};

/// An environment.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Environment {
    /// The prefix of every endpoint, without slashes around it.
    pub prefix: String,
    /// The delay of every response in milliseconds.
    pub latency: u64,
    /// Fields of every response.
    pub headers: Vec<(String, String)>,
    /// In the order of the file.
    pub routes: Vec<MockoonRoute>,
    /// The server that answers what no route does.
    pub proxy: Option<MockoonProxy>,
    /// Data by its id, with its name and its text.
    pub data: Vec<DataBucket>,
    /// Requests that responses may send.
    pub callbacks: Vec<MockoonCallback>,
    /// Parts of the environment that are left out.
    pub left_out: Vec<Remark>,
}

/// A server that answers what no route does.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MockoonProxy {
    /// Its URL.
    pub url: String,
    /// True if the prefix of the environment is taken from paths.
    pub strips_prefix: bool,
    /// Fields in place of those of requests.
    pub request_headers: Vec<(String, String)>,
    /// Fields in place of those that it answers.
    pub response_headers: Vec<(String, String)>,
}

/// A request that is sent once a response has been.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MockoonCallback {
    /// As responses call it.
    pub id: String,
    /// Its method.
    pub method: String,
    /// Its URL, which may have places, as fields and content may.
    pub url: String,
    /// Fields of its header.
    pub headers: Vec<(String, String)>,
    /// The source of its content.
    pub body: MockoonBody,
}

/// Data that responses and rules may use.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct DataBucket {
    /// As routes call it.
    pub id: String,
    /// As people call it.
    pub name: String,
    /// JSON, or any text; it may have places.
    pub value: String,
}

/// A route.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct MockoonRoute {
    /// Its position in the file.
    pub place: String,
    /// `http`, `crud` or `ws`.
    pub kind: String,
    /// `all`, or a method in lower case.
    pub method: String,
    /// A path of Express, without a slash before it; one at its end is part of it.
    pub endpoint: String,
    /// The choice among the responses: empty, `RANDOM`, `SEQUENTIAL`, `DISABLE_RULES` or `FALLBACK`.
    pub mode: String,
    /// In the order of the file.
    pub responses: Vec<MockoonResponse>,
}

/// A response.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct MockoonResponse {
    /// Its label.
    pub label: String,
    /// From 200 to 599.
    pub status: u16,
    /// Fields.
    pub headers: Vec<(String, String)>,
    /// The source of its content.
    pub body: MockoonBody,
    /// Its delay in milliseconds.
    pub latency: u64,
    /// True if texts have no places.
    pub is_plain: bool,
    /// True if it answers when no rule is met.
    pub is_default: bool,
    /// The key that identifies objects, of a route that is CRUD.
    pub key: String,
    /// Rules for requests.
    pub rules: Vec<MockoonRule>,
    /// True if one rule is enough.
    pub needs_one: bool,
    /// The ids of callbacks, each with its delay in milliseconds.
    pub callbacks: Vec<(String, u64)>,
}

/// The content of a response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MockoonBody {
    /// This text.
    Text(String),
    /// A file.
    File(String),
    /// Data of that id.
    Data(String),
}

impl Default for MockoonBody {
    fn default() -> Self {
        Self::Text(String::new())
    }
}

/// A rule for requests.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MockoonRule {
    /// `body`, `query`, `header`, `cookie`, `params`, `path`, `method` and others.
    pub target: String,
    /// Which one of these.
    pub modifier: String,
    /// The value that it is compared with.
    pub value: String,
    /// `equals`, `regex`, `regex_i`, `null`, `empty_array`, `array_includes`, `valid_json_schema`.
    pub operator: String,
    /// True if the rule is negated.
    pub invert: bool,
}

/// Reads an environment.
pub fn parse_environment(text: &str) -> Result<Environment, Vec<Remark>> {
    let text = text.trim_start_matches('\u{feff}');
    let root: Value = serde_json::from_str(text)
        .map_err(|error| vec![Remark::line(error.line(), format!("is not JSON: {error}"))])?;
    let mut environment = Environment::default();
    let root = exported(root, &mut environment.left_out);
    let Some(routes) = root.get("routes").and_then(Value::as_array) else {
        let message = "is no environment of Mockoon: there is no list `routes`";
        return Err(vec![Remark::whole(message)]);
    };
    let prefix = text_of(&root, "endpointPrefix");
    prefix.trim_matches('/').clone_into(&mut environment.prefix);
    environment.latency = number_of(&root, "latency");
    environment.headers = headers_of(&root, "headers");
    for bucket in list_of(&root, "data") {
        environment.data.push(DataBucket {
            id: text_of(bucket, "id"),
            name: text_of(bucket, "name"),
            value: text_of(bucket, "value"),
        });
    }
    if root.get("proxyMode") == Some(&Value::Bool(true)) {
        let url = text_of(&root, "proxyHost");
        if url.is_empty() {
            let place = Place::Key("proxyMode".to_owned());
            let message = "there is no `proxyHost`, so nothing is passed on";
            environment.left_out.push(Remark::new(place, message));
        } else {
            environment.proxy = Some(MockoonProxy {
                url,
                strips_prefix: root.get("proxyRemovePrefix") == Some(&Value::Bool(true)),
                request_headers: headers_of(&root, "proxyReqHeaders"),
                response_headers: headers_of(&root, "proxyResHeaders"),
            });
        }
    }
    for callback in list_of(&root, "callbacks") {
        environment.callbacks.push(MockoonCallback {
            id: text_of(callback, "uuid"),
            method: text_of(callback, "method").to_ascii_uppercase(),
            url: text_of(callback, "uri"),
            headers: headers_of(callback, "headers"),
            body: match text_of(callback, "bodyType").as_str() {
                "FILE" => MockoonBody::File(text_of(callback, "filePath")),
                "DATABUCKET" => MockoonBody::Data(text_of(callback, "databucketID")),
                _ => MockoonBody::Text(text_of(callback, "body")),
            },
        });
    }
    let order = served(&root);
    let mut routes: Vec<_> = (1..).zip(routes).collect();
    if let Some(order) = &order {
        // Routes in no folder come last, as Mockoon adds them.
        let position = |route: &Value| order.iter().position(|id| *id == text_of(route, "uuid"));
        routes.sort_by_cached_key(|(_, route)| position(route).unwrap_or(usize::MAX));
    }
    for (number, route) in routes {
        let place = format!("routes[{number}]");
        if !route.is_object() {
            let message = "is not an object";
            environment
                .left_out
                .push(Remark::new(Place::Key(place), message));
            continue;
        }
        let route = self::route(place, route, &mut environment.left_out);
        environment.routes.push(route);
    }
    Ok(environment)
}

/// The ids of the routes in the order in which they are tried: that of the folders, which older environments lack.
fn served(root: &Value) -> Option<Vec<String>> {
    let children = list_of(root, "rootChildren");
    if children.is_empty() {
        return None;
    }
    let folders: HashMap<&str, &Value> = list_of(root, "folders")
        .iter()
        .filter_map(|folder| Some((folder.get("uuid")?.as_str()?, folder)))
        .collect();
    let mut order = Vec::new();
    let mut opened = HashSet::new();
    // The next child is at the end.
    let mut rest: Vec<&Value> = children.iter().rev().collect();
    while let Some(child) = rest.pop() {
        let id = text_of(child, "uuid");
        if text_of(child, "type") != "folder" {
            order.push(id);
        } else if let Some(folder) = folders.get(id.as_str())
            && opened.insert(id)
        {
            rest.extend(list_of(folder, "children").iter().rev());
        }
    }
    Some(order)
}

/// True if a value is an export of an older Mockoon: environments in a list `data`.
pub fn is_export(root: &Value) -> bool {
    let source = root.get("source").and_then(Value::as_str);
    source.is_some_and(|source| source.starts_with("mockoon")) && root.get("data").is_some()
}

/// The first environment of an older export, which has several; of any other file, itself.
fn exported(mut root: Value, left_out: &mut Vec<Remark>) -> Value {
    if !is_export(&root) {
        return root;
    }
    let items = match root.get_mut("data").map(Value::take) {
        Some(Value::Array(items)) => items,
        Some(item) => vec![item],
        None => Vec::new(),
    };
    let mut first = None;
    for (number, mut item) in (1..).zip(items) {
        let is_environment = text_of(&item, "type") == "environment";
        // The oldest have one environment without anything around it.
        let is_bare = item.get("routes").is_some();
        if first.is_none() && (is_environment || is_bare) {
            first = Some(if is_bare { item } else { item["item"].take() });
        } else {
            let place = Place::Key(format!("data[{number}]"));
            let message = "is not the first environment, which alone is read";
            left_out.push(Remark::new(place, message));
        }
    }
    first.unwrap_or_default()
}

fn route(place: String, route: &Value, left_out: &mut Vec<Remark>) -> MockoonRoute {
    let mut responses = Vec::new();
    for (number, response) in (1..).zip(list_of(route, "responses")) {
        let at = format!("{place}.responses[{number}]");
        match self::response(response) {
            Ok(response) => responses.push(response),
            Err(error) => left_out.push(Remark::new(Place::Key(at.clone()), error.to_string())),
        }
    }
    let kind = text_of(route, "type");
    MockoonRoute {
        kind: if kind.is_empty() {
            "http".to_owned()
        } else {
            kind
        },
        method: text_of(route, "method").to_ascii_lowercase(),
        endpoint: text_of(route, "endpoint")
            .trim_start_matches('/')
            .to_owned(),
        mode: mode(route),
        responses,
        place,
    }
}

/// The choice among responses; older environments have a flag for each kind.
fn mode(route: &Value) -> String {
    let is = |flag: &str| route.get(flag) == Some(&Value::Bool(true));
    match text_of(route, "responseMode") {
        mode if !mode.is_empty() => mode,
        _ if is("randomResponse") => "RANDOM".to_owned(),
        _ if is("sequentialResponse") => "SEQUENTIAL".to_owned(),
        _ => String::new(),
    }
}

/// A status that no response can have.
#[derive(Debug, thiserror::Error)]
#[error("the status {0} is not from 200 to 599")]
struct WrongStatus(u16);

fn response(response: &Value) -> Result<MockoonResponse, WrongStatus> {
    // The oldest have it as a text.
    let status = response.get("statusCode").and_then(|status| {
        let text = status.as_str().and_then(|text| text.parse().ok());
        status.as_u64().or(text)
    });
    let status = u16::try_from(status.unwrap_or(200)).unwrap_or_default();
    if !(200..=599).contains(&status) {
        return Err(WrongStatus(status));
    }
    let file = text_of(response, "filePath");
    let body = match text_of(response, "bodyType").as_str() {
        "FILE" => MockoonBody::File(file),
        "DATABUCKET" => MockoonBody::Data(text_of(response, "databucketID")),
        // Before there were types, a path was enough.
        "" if !file.is_empty() => MockoonBody::File(file),
        _ => MockoonBody::Text(text_of(response, "body")),
    };
    let is = |key: &str| response.get(key) == Some(&Value::Bool(true));
    let rules = list_of(response, "rules").iter().map(|rule| MockoonRule {
        target: text_of(rule, "target"),
        modifier: text_of(rule, "modifier"),
        value: text_of(rule, "value"),
        operator: match text_of(rule, "operator").as_str() {
            // Before there were operators, there was a flag.
            "" if rule.get("isRegex") == Some(&Value::Bool(true)) => "regex".to_owned(),
            "" => "equals".to_owned(),
            operator => operator.to_owned(),
        },
        invert: rule.get("invert") == Some(&Value::Bool(true)),
    });
    Ok(MockoonResponse {
        label: text_of(response, "label"),
        status,
        headers: headers_of(response, "headers"),
        body,
        latency: number_of(response, "latency"),
        is_plain: is("disableTemplating"),
        is_default: is("default"),
        key: text_of(response, "crudKey"),
        rules: rules.collect(),
        needs_one: text_of(response, "rulesOperator") == "OR",
        callbacks: list_of(response, "callbacks")
            .iter()
            .map(|it| (text_of(it, "uuid"), number_of(it, "latency")))
            .collect(),
    })
}

fn text_of(of: &Value, key: &str) -> String {
    of.get(key)
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned()
}

/// Milliseconds, at most a day.
fn number_of(of: &Value, key: &str) -> u64 {
    let number = of.get(key).and_then(Value::as_u64).unwrap_or_default();
    number.min(86_400_000)
}

fn list_of<'v>(of: &'v Value, key: &str) -> &'v [Value] {
    let list = of.get(key).and_then(Value::as_array);
    list.map_or(&[], Vec::as_slice)
}

fn headers_of(of: &Value, key: &str) -> Vec<(String, String)> {
    let pair = |header: &Value| {
        let object: &Map<String, Value> = header.as_object()?;
        let text = |key: &str| object.get(key).and_then(Value::as_str);
        let name = text("key").filter(|name| crate::request::is_token(name))?;
        Some((
            name.to_owned(),
            text("value").unwrap_or_default().to_owned(),
        ))
    };
    list_of(of, key).iter().filter_map(pair).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_environment_is_taken_apart() {
        let text = r#"{"uuid": "u", "lastMigration": 33, "endpointPrefix": "/api/", "latency": 5, "proxyMode": true,
            "headers": [{"key": "X-A", "value": "1"}, {"key": "", "value": ""}],
            "data": [{"id": "d1", "name": "users", "value": "[]"}],
            "routes": [{"type": "http", "method": "GET", "endpoint": "users/:id", "responseMode": null, "responses": [
                {"statusCode": 404, "body": "{}", "rules": [{"target": "params", "modifier": "id", "value": "0", "operator": "equals", "invert": true}], "rulesOperator": "OR"},
                {"statusCode": 200, "bodyType": "DATABUCKET", "databucketID": "d1", "default": true},
                {"statusCode": 100}
            ]}, 1]}"#;
        let environment = parse_environment(text).unwrap();
        assert_eq!(
            (environment.prefix.as_str(), environment.latency),
            ("api", 5)
        );
        assert_eq!(environment.headers.len(), 1);
        let [route] = environment.routes.as_slice() else {
            panic!("{environment:?}");
        };
        let [first, second] = route.responses.as_slice() else {
            panic!("{route:?}");
        };
        assert!(first.needs_one && first.rules[0].invert);
        assert_eq!(second.body, MockoonBody::Data("d1".to_owned()));
        assert!(second.is_default);
        assert_eq!(environment.left_out.len(), 3, "{:?}", environment.left_out);
    }

    #[test]
    fn an_older_export_has_environments_in_a_list() {
        let text = r#"{"source": "mockoon:1.7.0", "data": [
            {"type": "environment", "item": {"routes": [{"endpoint": "a", "method": "get", "responses": [{"statusCode": "200"}]}]}},
            {"type": "environment", "item": {"routes": []}}]}"#;
        let environment = parse_environment(text).unwrap();
        assert_eq!(environment.routes.len(), 1);
        assert_eq!(environment.routes[0].responses[0].status, 200);
        assert_eq!(environment.left_out.len(), 1);
        let bare = r#"{"source": "mockoon:1.4.0", "data": {"routes": []}}"#;
        assert_eq!(parse_environment(bare).unwrap(), Environment::default());
    }

    #[test]
    fn routes_are_tried_in_the_order_of_the_folders() {
        let text = r#"{"rootChildren": [{"type": "route", "uuid": "c"}, {"type": "folder", "uuid": "f"}],
            "folders": [{"uuid": "f", "children": [{"type": "folder", "uuid": "f"}, {"type": "route", "uuid": "a"}]}],
            "routes": [{"uuid": "a", "endpoint": "a"}, {"uuid": "b", "endpoint": "b"}, {"uuid": "c", "endpoint": "c/"}]}"#;
        let environment = parse_environment(text).unwrap();
        let routes = environment.routes.iter();
        let routes: Vec<_> = routes
            .map(|it| (it.place.as_str(), it.endpoint.as_str()))
            .collect();
        let expected = [("routes[3]", "c/"), ("routes[1]", "a"), ("routes[2]", "b")];
        assert_eq!(routes, expected);
        assert_eq!(environment.left_out, []);
    }

    #[test]
    fn the_choice_among_responses_was_a_flag() {
        for (route, expected) in [
            (
                r#"{"randomResponse": true, "sequentialResponse": false}"#,
                "RANDOM",
            ),
            (r#"{"sequentialResponse": true}"#, "SEQUENTIAL"),
            (
                r#"{"responseMode": "FALLBACK", "randomResponse": true}"#,
                "FALLBACK",
            ),
            (r#"{"responseMode": null}"#, ""),
        ] {
            let environment = parse_environment(&format!(r#"{{"routes": [{route}]}}"#)).unwrap();
            assert_eq!(environment.routes[0].mode, expected, "{route}");
        }
    }

    #[test]
    fn what_no_route_answers_is_passed_on() {
        let text = r#"{"routes": [], "proxyMode": true, "proxyHost": "http://a", "proxyRemovePrefix": true,
            "proxyReqHeaders": [{"key": "x", "value": "1"}], "proxyResHeaders": [{"key": "", "value": ""}]}"#;
        let environment = parse_environment(text).unwrap();
        let expected = MockoonProxy {
            url: "http://a".to_owned(),
            strips_prefix: true,
            request_headers: vec![("x".to_owned(), "1".to_owned())],
            response_headers: Vec::new(),
        };
        assert_eq!(environment.proxy, Some(expected));
        assert_eq!(environment.left_out, []);
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "(\\{|\\}|\\[|\\]|,|\"routes\":|\"responses\":|\"rules\":|\"headers\":|\"a\"|1){0,20}") {
            drop(parse_environment(&text));
        }
    }
}
