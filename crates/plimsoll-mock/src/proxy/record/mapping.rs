//! Exchanges as mappings of WireMock, as its own recorder writes them.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use super::exchange::KeptExchange;
use super::redact::{REDACTED, Redaction};
use crate::import::recorded::{ANYTHING, FieldValue};
use crate::import::{body, is_about_connection};
use crate::request::RequestView;
use crate::rules::path::decoded;
use crate::store::states::STARTED;

/// The parts of requests that mappings match besides method and URL.
#[derive(Debug, Clone, Default)]
pub(crate) struct MappingOptions {
    /// Names of header fields, each with whether its case is ignored.
    pub(crate) captured: Vec<(String, bool)>,
    pub(crate) content: ContentMatch,
    pub(crate) redaction: Redaction,
}

/// How the content of a request is matched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ContentMatch {
    /// By its media type: JSON, XML, text or bytes.
    Automatic {
        ignores_order: bool,
        ignores_extra: bool,
        ignores_case: bool,
    },
    /// As JSON.
    Json {
        ignores_order: bool,
        ignores_extra: bool,
    },
    /// As XML.
    Xml,
    /// As text.
    Text { ignores_case: bool },
}

impl Default for ContentMatch {
    fn default() -> Self {
        Self::Automatic {
            ignores_order: true,
            ignores_extra: true,
            ignores_case: false,
        }
    }
}

/// The mapping that answers the request of an exchange as it was answered; without an id.
pub(crate) fn mapping(exchange: &KeptExchange, options: &MappingOptions) -> Value {
    let request = exchange.request.view();
    json!({
        "name": name(&request),
        "request": request_pattern(&request, options),
        "response": response(exchange, &options.redaction),
    })
}

/// Mappings of one recording, in their order: those of one request become the states of a scenario.
///
/// - `repeats`: whether later ones of a request are kept at all.
pub(crate) fn in_turn(mappings: Vec<Value>, repeats: bool) -> Vec<Value> {
    let mut counts: HashMap<String, usize> = HashMap::new();
    let request = |mapping: &Value| mapping["request"].to_string();
    for mapping in &mappings {
        *counts.entry(request(mapping)).or_default() += 1;
    }
    // By their requests: the name of the scenario, and how many there were.
    let mut scenarios: HashMap<String, (String, usize)> = HashMap::new();
    let mut kept = Vec::new();
    for mut mapping in mappings {
        let asked = request(&mapping);
        let count = counts.get(&asked).copied().unwrap_or(1);
        if count > 1 {
            let number = scenarios.len() + 1;
            let (scenario, turn) = scenarios.entry(asked).or_insert_with(|| {
                let name = format!("scenario-{number}-{}", path_parts(&mapping["request"]));
                (name, 0)
            });
            *turn += 1;
            if !repeats {
                if *turn == 1 {
                    kept.push(mapping);
                }
                continue;
            }
            let state = |turn: usize| format!("{scenario}-{turn}");
            mapping["scenarioName"] = json!(scenario);
            mapping["requiredScenarioState"] = match *turn {
                1 => json!(STARTED),
                turn => json!(state(turn)),
            };
            if *turn < count {
                mapping["newScenarioState"] = json!(state(*turn + 1));
            }
        }
        kept.push(mapping);
    }
    kept
}

/// The segments of a path, with hyphens between them.
fn path_parts(request: &Value) -> String {
    let url = request["url"].as_str().or(request["urlPath"].as_str());
    let path = url
        .unwrap_or_default()
        .split('?')
        .next()
        .unwrap_or_default();
    let path = decoded(path);
    let parts: Vec<&str> = path.split('/').filter(|it| !it.is_empty()).collect();
    parts.join("-")
}

/// The longest name of a mapping, in characters; it becomes the name of a file.
const LONGEST_NAME: usize = 120;

/// The path as a name, such as `orders_7`.
fn name(request: &RequestView<'_>) -> String {
    let plain = |it: char| match it {
        '/' => '_',
        it if it.is_ascii_alphanumeric() || matches!(it, '-' | '.' | '_') => {
            it.to_ascii_lowercase()
        }
        _ => '-',
    };
    let name: String = request.path.chars().map(plain).collect();
    name.trim_matches(['_', '.'])
        .chars()
        .take(LONGEST_NAME)
        .collect()
}

fn request_pattern(request: &RequestView<'_>, options: &MappingOptions) -> Value {
    let redaction = &options.redaction;
    let mut pattern = Map::new();
    if request.parameters().is_empty() {
        pattern.insert("url".to_owned(), json!(request.own_url()));
    } else {
        pattern.insert("urlPath".to_owned(), json!(request.own_path()));
        let mut all: Map<String, Value> = Map::new();
        for (name, value) in request.parameters() {
            // A secret is not written, so that any value of it has to do.
            let matched = if redaction.hides(name) {
                json!({ "matches": ".*" })
            } else {
                json!({ "equalTo": value })
            };
            let exactly = all
                .entry(name.clone())
                .or_insert_with(|| json!({ "hasExactly": [] }));
            if let Value::Array(values) = &mut exactly["hasExactly"] {
                values.push(matched);
            }
        }
        pattern.insert("queryParameters".to_owned(), Value::Object(all));
    }
    pattern.insert("method".to_owned(), json!(request.method));
    let mut headers = Map::new();
    for (name, ignores_case) in &options.captured {
        let Some(value) = request.header_text(name) else {
            continue;
        };
        let mut matched = json!({ "equalTo": value });
        if redaction.hides(name) {
            matched = json!({ "matches": ".*" });
        } else if *ignores_case {
            matched["caseInsensitive"] = json!(true);
        }
        headers.insert(name.clone(), matched);
    }
    if !headers.is_empty() {
        pattern.insert("headers".to_owned(), Value::Object(headers));
    }
    if let Some(content) = content_pattern(request, options) {
        pattern.insert("bodyPatterns".to_owned(), json!([content]));
    }
    Value::Object(pattern)
}

fn content_pattern(request: &RequestView<'_>, options: &MappingOptions) -> Option<Value> {
    if request.body.is_empty() {
        return None;
    }
    let kind = request.header_text("content-type").unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    let kind = kind.to_ascii_lowercase();
    let (wanted, ignores_case) = match options.content {
        ContentMatch::Automatic {
            ignores_order,
            ignores_extra,
            ignores_case,
        } => {
            let by_kind = if kind.contains("json") {
                ContentMatch::Json {
                    ignores_order,
                    ignores_extra,
                }
            } else if kind.contains("xml") {
                ContentMatch::Xml
            } else {
                ContentMatch::Text { ignores_case }
            };
            (by_kind, ignores_case)
        }
        ContentMatch::Text { ignores_case } => (options.content, ignores_case),
        other => (other, false),
    };
    let Ok(text) = std::str::from_utf8(request.body) else {
        return Some(json!({ "binaryEqualTo": body::encoded(request.body) }));
    };
    Some(match wanted {
        ContentMatch::Json {
            ignores_order,
            ignores_extra,
        } if request.json().is_some() => {
            let hidden = options.redaction.json(request.body, ANYTHING);
            let json = hidden.map_or_else(
                || text.to_owned(),
                |hidden| String::from_utf8_lossy(&hidden).into_owned(),
            );
            json!({
                "equalToJson": json,
                "ignoreArrayOrder": ignores_order,
                "ignoreExtraElements": ignores_extra,
            })
        }
        ContentMatch::Xml if request.xml().is_ok() => json!({ "equalToXml": text }),
        // Its boundary is another one each time.
        _ if kind == "multipart/form-data" => json!({ "anything": true }),
        _ if request
            .form()
            .iter()
            .any(|(name, _)| options.redaction.hides(name)) =>
        {
            json!({ "anything": true })
        }
        _ => json!({ "equalTo": text, "caseInsensitive": ignores_case }),
    })
}

fn response(exchange: &KeptExchange, redaction: &Redaction) -> Value {
    let reply = &exchange.reply;
    let mut response = Map::new();
    response.insert("status".to_owned(), json!(reply.status));
    if !reply.body.is_empty() {
        let kind = reply.kind.as_deref();
        let is_json = kind.is_none_or(body::is_json);
        let hidden = redaction.json(&reply.body, REDACTED).filter(|_| is_json);
        let bytes = hidden.as_deref().unwrap_or(&reply.body);
        let (key, value) = match std::str::from_utf8(bytes) {
            Ok(text) if !kind.is_some_and(is_binary) => ("body", text.to_owned()),
            _ => ("base64Body", body::encoded(bytes)),
        };
        response.insert(key.to_owned(), json!(value));
    }
    let mut headers = Map::new();
    if let Some(kind) = &reply.kind {
        headers.insert("content-type".to_owned(), json!(kind));
    }
    for (name, value) in &reply.headers {
        if is_about_connection(name) {
            continue;
        }
        let (FieldValue::Text(text) | FieldValue::Latin1(text)) = value;
        let value = json!(redaction.field(name, text));
        match headers.get_mut(name) {
            None => {
                headers.insert(name.clone(), value);
            }
            Some(Value::Array(values)) => values.push(value),
            Some(first) => *first = json!([first.take(), value]),
        }
    }
    if !headers.is_empty() {
        response.insert("headers".to_owned(), Value::Object(headers));
    }
    Value::Object(response)
}

/// Whether a media type is of bytes, also where these happen to be UTF-8.
fn is_binary(kind: &str) -> bool {
    let kind = kind.split(';').next().unwrap_or_default().trim();
    let class = kind.split('/').next().unwrap_or_default();
    let is_class = ["audio", "font", "image", "video"].contains(&class);
    kind == "application/octet-stream" || is_class && kind != "image/svg+xml"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::recorded::RecordedReply;
    use crate::request::KeptRequest;

    fn exchange(method: &str, target: &str, request: (&str, &str), reply: &str) -> KeptExchange {
        let mut kept = KeptRequest::made(method, target);
        if !request.0.is_empty() {
            let kind = ("Content-Type".to_owned(), request.0.as_bytes().to_vec());
            kept.fields.push(kind);
        }
        kept.body = request.1.to_owned().into();
        KeptExchange {
            request: kept,
            reply: RecordedReply {
                status: 200,
                headers: vec![
                    (
                        "set-cookie".to_owned(),
                        FieldValue::Text("sid=1; Path=/".to_owned()),
                    ),
                    ("x-a".to_owned(), FieldValue::Text("1".to_owned())),
                    ("x-a".to_owned(), FieldValue::Text("2".to_owned())),
                    (
                        "content-length".to_owned(),
                        FieldValue::Text("9".to_owned()),
                    ),
                ],
                kind: Some("application/json".to_owned()),
                body: reply.to_owned().into(),
                announced: None,
            },
        }
    }

    #[test]
    fn an_exchange_is_the_mapping_that_wiremock_writes() {
        let exchange = exchange(
            "GET",
            "/Orders/7?a=b%20c",
            ("", ""),
            r#"{"token":"t","n":1}"#,
        );
        let expected = json!({
            "name": "orders_7",
            "request": {
                "urlPath": "/Orders/7",
                "queryParameters": { "a": { "hasExactly": [{ "equalTo": "b c" }] } },
                "method": "GET",
            },
            "response": {
                "status": 200,
                "body": r#"{"token":"REDACTED","n":1}"#,
                "headers": {
                    "content-type": "application/json",
                    "set-cookie": "sid=REDACTED; Path=/",
                    "x-a": ["1", "2"],
                },
            },
        });
        assert_eq!(mapping(&exchange, &MappingOptions::default()), expected);
    }

    #[test]
    fn contents_are_matched_by_their_types_and_secrets_by_any_value() {
        let json = "application/json";
        let text = |text: &str| json!({ "equalTo": text, "caseInsensitive": false });
        for (kind, content, expected) in [
            (
                json,
                r#"{"a":1,"password":"p"}"#,
                json!({
                    "equalToJson": r#"{"a":1,"password":"${json-unit.ignore}"}"#,
                    "ignoreArrayOrder": true,
                    "ignoreExtraElements": true,
                }),
            ),
            (json, "{broken", text("{broken")),
            ("text/xml", "<a/>", json!({ "equalToXml": "<a/>" })),
            ("text/xml", "<a", text("<a")),
            ("", "x", text("x")),
            (
                "multipart/form-data; boundary=b",
                "x",
                json!({ "anything": true }),
            ),
            (
                "application/x-www-form-urlencoded",
                "a=1&token=2",
                json!({ "anything": true }),
            ),
        ] {
            let exchange = exchange("POST", "/", (kind, content), "");
            let made = mapping(&exchange, &MappingOptions::default());
            assert_eq!(
                made["request"]["bodyPatterns"],
                json!([expected]),
                "{content}"
            );
        }
        let exchange = exchange("GET", "/a?api_key=k&b=1&b=2", ("text/plain", ""), "");
        let options = MappingOptions {
            captured: vec![
                ("content-type".to_owned(), true),
                ("x-none".to_owned(), false),
            ],
            ..MappingOptions::default()
        };
        assert_eq!(
            mapping(&exchange, &options)["request"],
            json!({
                "urlPath": "/a",
                "queryParameters": {
                    "api_key": { "hasExactly": [{ "matches": ".*" }] },
                    "b": { "hasExactly": [{ "equalTo": "1" }, { "equalTo": "2" }] },
                },
                "method": "GET",
                "headers": { "content-type": { "equalTo": "text/plain", "caseInsensitive": true } },
            })
        );
    }

    #[test]
    fn repeated_requests_are_the_states_of_a_scenario() {
        let of =
            |url: &str, n: u8| json!({ "request": { "urlPath": url }, "response": { "body": n } });
        let all = || {
            vec![
                of("/a%20b/c", 1),
                of("/c", 2),
                of("/a%20b/c", 3),
                of("/a%20b/c", 4),
            ]
        };
        let kept = in_turn(all(), true);
        let states: Vec<_> = kept
            .iter()
            .map(|it| (&it["requiredScenarioState"], &it["newScenarioState"]))
            .collect();
        let name = "scenario-1-a b-c";
        let state = |turn: u8| json!(format!("{name}-{turn}"));
        let expected = [
            (json!("Started"), state(2)),
            (Value::Null, Value::Null),
            (state(2), state(3)),
            (state(3), Value::Null),
        ];
        let expected: Vec<_> = expected.iter().map(|(state, next)| (state, next)).collect();
        assert_eq!(states, expected);
        assert_eq!(kept[3]["scenarioName"], name);
        let bodies: Vec<_> = in_turn(all(), false)
            .iter()
            .map(|it| it["response"]["body"].clone())
            .collect();
        assert_eq!(bodies, [json!(1), json!(2)]);
    }
}
