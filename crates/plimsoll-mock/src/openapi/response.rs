//! Which response of an operation a request gets.

use fastrand::Rng;
use http::StatusCode;
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use plimsoll_formats::openapi::{Api, ApiResponse, MakeError, MediaContent, Operation};
use serde_json::Value;

use super::{OpenApiOptions, Refusal};
use crate::request::RequestView;
use crate::store::collection::StoredResponse;

/// The preferences of a client (RFC 7240): `code`, `example`, `dynamic`.
#[derive(Debug, Default)]
struct Preferences {
    code: Option<u16>,
    example: Option<String>,
    dynamic: Option<bool>,
}

/// The response to a request that the operation allows.
pub(super) fn for_operation(
    api: &Api,
    operation: &Operation,
    request: &RequestView<'_>,
    options: OpenApiOptions,
) -> Result<StoredResponse, Refusal> {
    let wanted = preferences(request);
    let (status, response) = chosen(operation, wanted.code)?;
    made(api, (status, response), request, &wanted, options)
}

/// The response that the document has for a refusal, if it has one of that status; what is wrong stands in a field.
pub(super) fn of_refusal(
    api: &Api,
    operation: &Operation,
    request: &RequestView<'_>,
    refusal: &Refusal,
    options: OpenApiOptions,
) -> Option<Result<StoredResponse, Refusal>> {
    let status = refusal.status;
    // Ranges describe other problems of the same class; the default is every problem, unless it is the success.
    let of = |wanted: &str| operation.responses.iter().find(|it| it.code == wanted);
    let has_success = operation
        .responses
        .iter()
        .any(|it| it.code.starts_with('2'));
    let default = || of("DEFAULT").filter(|_| has_success);
    let described = of(status.as_str()).or_else(default)?;
    if described.content.is_empty() {
        return None;
    }
    let mut wanted = preferences(request);
    // A requested example may be one of the response that there would have been.
    if wanted.code != Some(status.as_u16()) {
        let examples = described.content.iter().flat_map(|it| &it.examples);
        let mut names = examples.filter_map(|(name, _)| name.clone());
        wanted.example = wanted
            .example
            .filter(|name| names.any(|known| known == *name));
    }
    let made = made(api, (status, described), request, &wanted, options).map(|mut response| {
        for (name, value) in &refusal.fields {
            if !response.fields.iter().any(|(known, _)| known == name) {
                response.fields.push((name.clone(), value.clone()));
            }
        }
        let problem = HeaderValue::from_str(&refusal.summary());
        response.fields.extend(problem.ok().map(|it| (PROBLEM, it)));
        response
    });
    Some(made)
}

/// The error in a request, where the document gives the content of its rejection.
const PROBLEM: HeaderName = HeaderName::from_static("x-plimsoll-problem");

/// The response of a status, by its number or its range.
fn described(operation: &Operation, status: StatusCode) -> Option<&ApiResponse> {
    let of = |wanted: &str| operation.responses.iter().find(|it| it.code == wanted);
    of(status.as_str()).or_else(|| of(&format!("{}XX", status.as_u16() / 100)))
}

fn made(
    api: &Api,
    (status, response): (StatusCode, &ApiResponse),
    request: &RequestView<'_>,
    wanted: &Preferences,
    options: OpenApiOptions,
) -> Result<StoredResponse, Refusal> {
    let mut fields = Vec::new();
    for (name, value) in &response.headers {
        let name = HeaderName::from_bytes(name.as_bytes());
        if let (Ok(name), Ok(value)) = (name, HeaderValue::from_str(value))
            && name != CONTENT_TYPE
        {
            fields.push((name, value));
        }
    }
    let has_none = [
        StatusCode::NO_CONTENT,
        StatusCode::RESET_CONTENT,
        StatusCode::NOT_MODIFIED,
    ];
    let mut content = Vec::new();
    if !response.content.is_empty() && !has_none.contains(&status) {
        let described = negotiated(&response.content, request)?;
        let kind = if described.kind.contains('*') {
            "application/json"
        } else {
            &described.kind
        };
        let value = value(api, described, request, wanted, options)?;
        content = written(api, described, kind, &value);
        let kind = HeaderValue::from_str(kind);
        fields.extend(kind.ok().map(|kind| (CONTENT_TYPE, kind)));
    }
    Ok(StoredResponse {
        status,
        fields,
        content: content.into(),
        written: None,
    })
}

fn preferences(request: &RequestView<'_>) -> Preferences {
    let mut wanted = Preferences::default();
    let fields = request.headers().into_iter();
    let fields = fields.filter(|(name, _)| name.eq_ignore_ascii_case("prefer"));
    // As Prism has it, where a field cannot be set.
    for (name, value) in request.parameters() {
        if let Some(name) = name.strip_prefix("__") {
            wanted.apply_preference(name, value);
        }
    }
    for text in fields.filter_map(|(_, value)| std::str::from_utf8(value).ok()) {
        for part in text.split([',', ';']) {
            if let Some((name, value)) = part.split_once('=') {
                let value = value.trim().trim_matches('"');
                wanted.apply_preference(&name.trim().to_ascii_lowercase(), value);
            }
        }
    }
    wanted
}

impl Preferences {
    fn apply_preference(&mut self, name: &str, value: &str) {
        match name {
            "code" => self.code = value.parse().ok(),
            "example" => self.example = Some(value.to_owned()),
            "dynamic" => self.dynamic = value.parse().ok(),
            _ => {}
        }
    }
}

/// The response of a code, or the one that means success.
fn chosen(operation: &Operation, code: Option<u16>) -> Result<(StatusCode, &ApiResponse), Refusal> {
    let of = |wanted: &str| operation.responses.iter().find(|it| it.code == wanted);
    let status = |code: u16| StatusCode::from_u16(code).ok();
    if let Some(code) = code.and_then(status).filter(|it| is_final(*it)) {
        let found = described(operation, code).or_else(|| of("DEFAULT"));
        return found.map(|response| (code, response)).ok_or_else(|| {
            let detail = format!(
                "{} {} has no response for {code}",
                operation.method, operation.path
            );
            Refusal::new(StatusCode::NOT_FOUND, detail)
        });
    }
    let numbered = || {
        operation.responses.iter().filter_map(|response| {
            let code: u16 = response.code.parse().ok()?;
            Some((status(code).filter(|it| is_final(*it))?, response))
        })
    };
    let lowest = numbered()
        .filter(|(code, _)| code.is_success())
        .min_by_key(|(code, _)| code.as_u16());
    let others = || {
        let other = of("2XX").or_else(|| of("DEFAULT"))?;
        Some((StatusCode::OK, other))
    };
    // An operation that only redirects has no other success.
    let moved = || numbered().find(|(code, _)| code.is_redirection());
    let first = || {
        operation.responses.iter().find_map(|response| {
            let code = response.code.replace("XX", "00").parse().ok()?;
            Some((status(code).filter(|it| is_final(*it))?, response))
        })
    };
    let found = lowest.or_else(others).or_else(moved);
    if found.is_none() && operation.responses.iter().any(|it| it.code == "101") {
        let detail = format!(
            "{} {} switches to another protocol, which a mock of a document does not speak",
            operation.method, operation.path
        );
        return Err(Refusal::new(StatusCode::NOT_IMPLEMENTED, detail));
    }
    found.or_else(first).ok_or_else(|| {
        let detail = format!("{} {} has no response", operation.method, operation.path);
        Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, detail)
    })
}

/// Whether a response with that status ends an exchange.
fn is_final(status: StatusCode) -> bool {
    (200..600).contains(&status.as_u16())
}

/// The content in the media type that the client likes best; of equals JSON, else the first.
fn negotiated<'c>(
    content: &'c [MediaContent],
    request: &RequestView<'_>,
) -> Result<&'c MediaContent, Refusal> {
    let accepted = request.header_text("accept").unwrap_or("*/*");
    let ranges: Vec<(String, f32)> = accepted
        .split(',')
        .map(|range| {
            let mut parts = range.split(';').map(str::trim);
            let kind = parts.next().unwrap_or_default().to_ascii_lowercase();
            let quality = parts.find_map(|part| part.strip_prefix("q=")?.parse().ok());
            (kind, quality.unwrap_or(1.0))
        })
        .collect();
    let quality = |kind: &str| {
        let bare = kind.split(';').next().unwrap_or(kind).trim();
        let bare = bare.to_ascii_lowercase();
        let class = bare.split('/').next().unwrap_or_default();
        // The most exact range counts (RFC 9110, section 12.5.1).
        let of = |wanted: &str| ranges.iter().find(|(range, _)| range == wanted);
        let found = of(&bare)
            .or_else(|| of(&format!("{class}/*")))
            .or_else(|| of("*/*"));
        found.map_or(0.0, |(_, quality)| *quality)
    };
    let mut best: Option<(&MediaContent, (f32, bool))> = None;
    for described in content {
        let is_json = described.kind.contains("json");
        let rank = (quality(&described.kind), is_json);
        let is_better = best.is_none_or(|(_, known)| rank > known);
        if rank.0 > 0.0 && is_better {
            best = Some((described, rank));
        }
    }
    best.map(|(described, _)| described).ok_or_else(|| {
        let kinds: Vec<&str> = content.iter().map(|it| it.kind.as_str()).collect();
        let detail = format!("there is {}, not {accepted}", kinds.join(", "));
        Refusal::new(StatusCode::NOT_ACCEPTABLE, detail)
    })
}

fn value(
    api: &Api,
    content: &MediaContent,
    request: &RequestView<'_>,
    wanted: &Preferences,
    options: OpenApiOptions,
) -> Result<Value, Refusal> {
    if let Some(name) = &wanted.example {
        let mut examples = content.examples.iter();
        let example = examples.find(|(known, _)| known.as_ref() == Some(name));
        return example.map(|(_, value)| value.clone()).ok_or_else(|| {
            let detail = format!("there is no example `{name}` of that response");
            Refusal::new(StatusCode::NOT_FOUND, detail)
        });
    }
    let is_dynamic = wanted.dynamic.unwrap_or(options.is_dynamic);
    if !is_dynamic && let Some((_, value)) = content.examples.first() {
        return Ok(value.clone());
    }
    let made = if is_dynamic {
        let mut rng = Rng::with_seed(seed(options.seed, request));
        api.make(content, Some(&mut |below| rng.u64(..below.max(1))))
    } else {
        api.make(content, None)
    };
    made.map_err(|reason| {
        let detail = format!("no content can be made: {reason}");
        Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, detail)
    })
}

/// The media type and the content of a request that the service makes itself.
pub(super) fn content_of_call(
    api: &Api,
    described: &MediaContent,
    options: OpenApiOptions,
) -> Result<(String, Vec<u8>), MakeError> {
    let kind = if described.kind.contains('*') {
        "application/json"
    } else {
        &described.kind
    };
    let value = match described.examples.first() {
        Some((_, value)) if !options.is_dynamic => value.clone(),
        _ if options.is_dynamic => {
            let mut rng = Rng::with_seed(options.seed);
            api.make(described, Some(&mut |below| rng.u64(..below.max(1))))?
        }
        _ => api.make(described, None)?,
    };
    Ok((kind.to_owned(), written(api, described, kind, &value)))
}

/// The same for the same request (FNV-1a).
fn seed(seed: u64, request: &RequestView<'_>) -> u64 {
    let query = request.query.unwrap_or_default();
    let texts = [request.path.as_ref(), "?", query];
    let bytes = texts.iter().flat_map(|text| text.bytes());
    bytes.fold(seed ^ 0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// - `kind`: the media type of the response.
fn written(api: &Api, content: &MediaContent, kind: &str, value: &Value) -> Vec<u8> {
    match value {
        // Examples of XML are texts.
        Value::String(text) if !kind.contains("json") => text.clone().into_bytes(),
        value if is_xml(kind) => api.xml(content, value).into_bytes(),
        value => value.to_string().into_bytes(),
    }
}

/// Whether a media type is XML (RFC 7303).
fn is_xml(kind: &str) -> bool {
    let bare = kind.split(';').next().unwrap_or(kind).trim();
    let bare = bare.to_ascii_lowercase();
    ["application/xml", "text/xml"].contains(&bare.as_str()) || bare.ends_with("+xml")
}
