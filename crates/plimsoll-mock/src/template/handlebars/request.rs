//! A request as templates see it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use crate::request::{Pairs, RequestPart, RequestView};
use crate::template::Dialect;

/// The model: `request` of WireMock, and for Mockoon's helpers what they look up.
///
/// - `parameters`: those of the response.
pub(super) fn model(
    request: &RequestView<'_>,
    dialect: Dialect,
    names: &[(String, usize)],
    parameters: &Value,
) -> Value {
    let path = request.target_path;
    let segments: Vec<&str> = request.path.split('/').skip(1).collect();
    let mut places = Map::new();
    for (number, segment) in segments.iter().enumerate() {
        places.insert(number.to_string(), Value::from(*segment));
    }
    for (name, number) in names {
        let value = segments.get(*number).copied();
        places.insert(name.clone(), Value::from(value));
    }
    let scheme = request.scheme();
    let url = match request.query {
        None => path.to_owned(),
        Some(query) => format!("{path}?{query}"),
    };
    let body = String::from_utf8_lossy(request.body).into_owned();
    let headers = request.headers().into_iter().map(|(name, value)| {
        let value = String::from_utf8_lossy(value).into_owned();
        (name.to_ascii_lowercase(), value)
    });
    let headers: Pairs = headers.collect();
    let mut model = Map::new();
    let mut put = |name: &str, value: Value| {
        model.insert(name.to_owned(), value);
    };
    put("url", url.into());
    put("pathText", path.into());
    put("path", Value::Object(places));
    put("pathSegments", segments.into());
    put("method", request.method.into());
    put("host", request.host().into());
    put("port", request.port().into());
    put("scheme", scheme.into());
    put(
        "baseUrl",
        format!("{scheme}://{}", request.authority).into(),
    );
    put("clientIp", request.peer.ip().to_string().into());
    for (name, pairs) in [
        ("query", request.parameters()),
        ("headers", &headers),
        ("cookies", request.cookies()),
        ("formData", request.form()),
    ] {
        let (lists, last) = by_name(pairs);
        put(name, lists);
        put(&format!("{name}Last"), last);
    }
    if dialect == Dialect::WireMock {
        put("bodyAsBase64", STANDARD.encode(request.body).into());
        let parts = request.parts().ok();
        put("multipart", parts.is_some().into());
        put("parts", parts.map(self::parts).unwrap_or_default());
    } else {
        put("json", request.json().cloned().unwrap_or_default());
    }
    put("body", body.into());
    json!({ "request": model, "parameters": parameters })
}

/// The parts of multipart content by their names.
fn parts(parts: &[RequestPart<'_>]) -> Value {
    let parts = parts.iter().filter_map(|part| {
        let name = part.name.clone()?;
        let headers = part.request.headers().into_iter().map(|(name, value)| {
            let value = String::from_utf8_lossy(value);
            (name.to_ascii_lowercase(), Value::from(value))
        });
        let headers: Map<String, Value> = headers.collect();
        let text = std::str::from_utf8(part.request.body);
        let value = json!({
            "name": name,
            "headers": headers,
            "body": text.unwrap_or_default(),
            "bodyAsBase64": STANDARD.encode(part.request.body),
            "binary": text.is_err(),
        });
        Some((name, value))
    });
    Value::Object(parts.collect())
}

/// All values of each name, and the last one of each.
fn by_name(pairs: &Pairs) -> (Value, Value) {
    let (mut lists, mut last) = (Map::new(), Map::new());
    for (name, value) in pairs {
        let known = lists.entry(name.clone()).or_insert_with(|| json!([]));
        if let Value::Array(all) = known {
            all.push(Value::from(value.as_str()));
        }
        last.insert(name.clone(), Value::from(value.as_str()));
    }
    (Value::Object(lists), Value::Object(last))
}
