//! Requests in the shape of WireMock's log.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use crate::admin::call::AdminResponse;
use crate::admin::journal::Entry;
use crate::request::{KeptRequest, Pairs};

/// The prefix of request ids; their number follows.
const IDS: &str = "00000000-0000-4000-8000-";

/// The id of a request.
pub(super) fn id_of(entry: &Entry) -> String {
    format!("{IDS}{:012x}", entry.number)
}

/// The number of a request, if it can be one.
pub(super) fn number_of(id: &str) -> Option<u64> {
    u64::from_str_radix(id.strip_prefix(IDS)?, 16).ok()
}

/// A request with what answered it.
pub(super) fn serve_event(entry: &Entry) -> Value {
    let was_matched = !entry.is_unmatched();
    let mut event = json!({
        "id": id_of(entry),
        "request": logged(entry),
        "response": { "status": entry.status() },
        "wasMatched": was_matched,
        "responseDefinition": { "status": entry.status(), "fromConfiguredStub": false },
    });
    let mapping = entry.rule().and_then(|rule| rule.mapping.as_ref());
    if let Some(mapping) = mapping {
        event["responseDefinition"] = mapping["response"].clone();
        event["stubMapping"] = (**mapping).clone();
    }
    event
}

/// A request.
pub(super) fn logged(entry: &Entry) -> Value {
    let view = entry.view();
    let request = &entry.request;
    let scheme = if request.is_tls { "https" } else { "http" };
    let query = request.query.as_ref().map(|query| format!("?{query}"));
    let query = query.unwrap_or_default();
    let authority = &request.authority;
    let (host, port) = host_and_port(authority, request.is_tls);
    let time = humantime::format_rfc3339_millis(entry.at).to_string();
    let fields = view.headers().into_iter();
    let fields = fields.map(|(name, value)| (name, String::from_utf8_lossy(value).into_owned()));
    let cookies = view.cookies().iter();
    let cookies = cookies.map(|(name, value)| (name.as_str(), value.clone()));
    json!({
        "url": view.own_url(),
        "absoluteUrl": format!("{scheme}://{authority}{}{query}", request.target_path),
        "method": request.method,
        "clientIp": request.peer.ip().to_string(),
        "headers": grouped(fields),
        "cookies": grouped(cookies),
        "browserProxyRequest": false,
        "loggedDate": milliseconds(entry),
        "loggedDateString": time,
        "bodyAsBase64": STANDARD.encode(&request.body),
        "body": String::from_utf8_lossy(&request.body),
        "scheme": scheme,
        "host": host,
        "port": port,
        "queryParams": multi(view.parameters()),
        "formParams": multi(view.form()),
    })
}

fn milliseconds(entry: &Entry) -> u64 {
    let since = entry.at.duration_since(std::time::UNIX_EPOCH);
    let since = since.unwrap_or_default().as_millis();
    u64::try_from(since).unwrap_or(u64::MAX)
}

fn host_and_port(authority: &str, is_tls: bool) -> (&str, u16) {
    let usual = if is_tls { 443 } else { 80 };
    let split = authority.rsplit_once(':');
    // A colon within brackets is part of an address.
    match split.and_then(|(host, port)| Some((host, port.parse().ok()?))) {
        Some((host, port)) => (host, port),
        None => (authority, usual),
    }
}

/// Values by their names: one as a text, several as a list.
fn grouped<'n>(pairs: impl Iterator<Item = (&'n str, String)>) -> Value {
    let mut all = Map::new();
    for (name, value) in pairs {
        let known = all.keys().find(|known| known.eq_ignore_ascii_case(name));
        let name = known.map_or(name, String::as_str).to_owned();
        match all.get_mut(&name) {
            None => {
                all.insert(name, json!(value));
            }
            Some(Value::Array(values)) => values.push(json!(value)),
            Some(first) => *first = json!([first.take(), value]),
        }
    }
    Value::Object(all)
}

/// Parameters, each with its values.
fn multi(pairs: &Pairs) -> Value {
    let mut all = Map::new();
    for (name, value) in pairs {
        let entry = all
            .entry(name.clone())
            .or_insert_with(|| json!({ "key": name, "values": [] }));
        if let Some(Value::Array(values)) = entry.get_mut("values") {
            values.push(json!(value));
        }
    }
    Value::Object(all)
}

/// A request described in the shape of [`logged`].
pub(super) fn described(json: &Value) -> Result<KeptRequest, AdminResponse> {
    let wrong = |detail: &str| Err(super::unreadable(detail));
    let text = |name: &str| json.get(name).and_then(Value::as_str);
    let Some(url) = text("url") else {
        return wrong("`url` is missing: path and query");
    };
    let mut request = KeptRequest::made(text("method").unwrap_or("GET"), url);
    if let Some(host) = text("host") {
        host.clone_into(&mut request.authority);
    }
    request.is_tls = text("scheme") == Some("https");
    if let Some(ip) = text("clientIp").and_then(|ip| ip.parse().ok()) {
        request.peer.set_ip(ip);
    }
    if let Some(Value::Object(fields)) = json.get("headers") {
        for (name, values) in fields {
            let values = match values {
                Value::Array(values) => values.iter().collect(),
                value => vec![value],
            };
            for value in values.into_iter().filter_map(Value::as_str) {
                let field = (name.clone(), value.as_bytes().to_vec());
                request.fields.push(field);
            }
        }
    }
    request.body = match (text("bodyAsBase64"), text("body")) {
        (Some(encoded), _) if !encoded.is_empty() => match STANDARD.decode(encoded) {
            Ok(bytes) => bytes.into(),
            Err(_) => return wrong("`bodyAsBase64` is no base64"),
        },
        (_, body) => body.unwrap_or_default().to_owned().into(),
    };
    Ok(request)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_several_values_have_lists() {
        let pairs = [("A", "1"), ("b", "2"), ("a", "3"), ("a", "4")];
        let pairs = pairs.map(|(name, value)| (name, value.to_owned()));
        assert_eq!(
            grouped(pairs.into_iter()),
            json!({ "A": ["1", "3", "4"], "b": "2" })
        );
        assert_eq!(host_and_port("a:8080", false), ("a", 8080));
        assert_eq!(host_and_port("[::1]", true), ("[::1]", 443));
    }

    #[test]
    fn a_described_request_has_what_it_says() {
        let json = json!({
            "url": "/a?b=c", "method": "PUT", "headers": { "X": ["1", "2"], "y": "3" }, "bodyAsBase64": "eA==", "scheme": "https",
        });
        let request = described(&json).unwrap();
        assert_eq!(request.target_path, "/a");
        assert_eq!(request.fields.len(), 3);
        assert_eq!(request.body, "x");
        for wrong in [json!({}), json!({ "url": "/", "bodyAsBase64": "?" })] {
            assert!(described(&wrong).is_err(), "{wrong}");
        }
    }
}
