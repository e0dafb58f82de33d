//! HAR files (HTTP Archive 1.2), as browsers and proxies write them.

mod exchanges;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

pub use self::exchanges::{RecordedExchange, Recording, parse_recording};

use crate::request::{is_about_connection, is_token};
use crate::{FileRequest, FormError, MultipartForm, Place, Remark, RequestFile, Template};

/// Reads the requests of an archive in its order.
///
/// Left out: entries that no server answered (blocked, aborted, from the cache of the browser), other
/// schemes than http and https, and header fields that belong to the connection.
pub(crate) fn parse(text: &str) -> Result<RequestFile, Vec<Remark>> {
    let document = document(text)?;
    let entries = entries(&document)?;
    let mut reader = Reader::default();
    for (index, entry) in entries.iter().enumerate() {
        reader.entry(&Place::Entry(index + 1), entry);
    }
    reader.finish()
}

fn document(text: &str) -> Result<Value, Vec<Remark>> {
    serde_json::from_str(text.trim_start_matches('\u{feff}')).map_err(|error| {
        let line = Place::Line(error.line());
        vec![Remark::new(line, format!("is not JSON: {error}"))]
    })
}

fn entries(document: &Value) -> Result<&Vec<Value>, Vec<Remark>> {
    document
        .get("log")
        .and_then(|log| log.get("entries"))
        .and_then(Value::as_array)
        .ok_or_else(|| {
            vec![Remark::whole(
                "is not a HAR file: there is no list `log.entries`",
            )]
        })
}

/// Why an entry or a field was left out, counted.
#[derive(Debug, Default)]
struct Reader {
    file: RequestFile,
    problems: Vec<Remark>,
    unanswered: usize,
    cached: usize,
    other_schemes: usize,
    websockets: usize,
    pseudo_fields: usize,
    connection_fields: usize,
}

impl Reader {
    fn entry(&mut self, place: &Place, entry: &Value) {
        let Some(request) = entry.get("request") else {
            let message = "has no `request`";
            self.problems.push(Remark::new(place.clone(), message));
            return;
        };
        let text = |key: &str| request.get(key).and_then(Value::as_str);
        let (Some(method), Some(url)) = (text("method"), text("url")) else {
            let message = "has no `request.method` or no `request.url`";
            self.problems.push(Remark::new(place.clone(), message));
            return;
        };
        let status = entry
            .get("response")
            .and_then(|response| response.get("status"))
            .and_then(Value::as_u64);
        let is_cached = ["_fromCache", "_fromDiskCache"].iter().any(|key| {
            entry
                .get(key)
                .is_some_and(|value| value != false && !value.is_null())
        });
        let scheme = url.split_once(':').map_or("", |(scheme, _)| scheme);
        if matches!(scheme, "ws" | "wss") || status == Some(101) {
            self.websockets += 1;
        } else if !matches!(scheme, "http" | "https") {
            self.other_schemes += 1;
        } else if is_cached {
            self.cached += 1;
        } else if status == Some(0) {
            self.unanswered += 1;
        } else if is_token(method) {
            self.request(place, method, url, request);
        } else {
            let message = format!("`{method}` is not a method");
            self.problems.push(Remark::new(place.clone(), message));
        }
    }

    fn request(&mut self, place: &Place, method: &str, url: &str, described: &Value) {
        let mut request = FileRequest::new(place.clone(), Template::literal(url));
        request.method = Some(method.to_owned());
        for (name, value) in pairs(described.get("headers")) {
            if name.starts_with(':') {
                self.pseudo_fields += 1;
            } else if is_about_connection(name) {
                self.connection_fields += 1;
            } else if !is_token(name) || value.contains(['\r', '\n', '\0']) {
                let message = format!("header `{name}` has a name or a value that cannot be sent");
                self.problems.push(Remark::new(place.clone(), message));
            } else if !name.eq_ignore_ascii_case("host") {
                let value = Template::literal(value);
                request.headers.push((name.to_owned(), value));
            }
        }
        if let Some(data) = described.get("postData") {
            match body(data) {
                Ok(body) => {
                    if let Some((content_type, content)) = body {
                        if !content_type.is_empty() {
                            // A boundary that was made up is the one that counts.
                            if content_type.starts_with("multipart/") {
                                request
                                    .headers
                                    .retain(|(name, _)| !name.eq_ignore_ascii_case("content-type"));
                            }
                            request.default_header("content-type", &content_type);
                        }
                        request.body = Some(Template::literal(content));
                    }
                }
                Err(error) => {
                    let problem = Remark::new(place.clone(), error.to_string());
                    self.problems.push(problem);
                }
            }
        }
        self.file.requests.push(request);
    }

    fn finish(mut self) -> Result<RequestFile, Vec<Remark>> {
        if !self.problems.is_empty() {
            return Err(self.problems);
        }
        for (count, one, many) in [
            (
                self.unanswered,
                "entry without an answer (blocked or aborted)",
                "entries without an answer (blocked or aborted)",
            ),
            (
                self.cached,
                "entry that the browser took from its cache",
                "entries that the browser took from its cache",
            ),
            (
                self.websockets,
                "WebSocket connection",
                "WebSocket connections",
            ),
            (
                self.other_schemes,
                "entry that is neither http nor https",
                "entries that are neither http nor https",
            ),
            (
                self.pseudo_fields,
                "pseudo header field of HTTP/2",
                "pseudo header fields of HTTP/2",
            ),
            (
                self.connection_fields,
                "header field that is set from the connection and the body",
                "header fields that are set from the connection and the body",
            ),
        ] {
            if count > 0 {
                let what = if count == 1 { one } else { many };
                self.file
                    .left_out
                    .push(Remark::whole(format!("{count} {what}")));
            }
        }
        Ok(self.file)
    }
}

/// Names and values of a list such as `headers` or `params`.
fn pairs(list: Option<&Value>) -> impl Iterator<Item = (&str, &str)> {
    let list = list.and_then(Value::as_array);
    list.into_iter().flatten().filter_map(|pair| {
        let name = pair.get("name").and_then(Value::as_str)?;
        Some((
            name,
            pair.get("value")
                .and_then(Value::as_str)
                .unwrap_or_default(),
        ))
    })
}

/// Why a body cannot be sent as it was recorded.
#[derive(Debug, thiserror::Error)]
enum PostDataError {
    #[error("`postData.text` is not base64: {0}")]
    Base64(base64::DecodeError),
    #[error(transparent)]
    Form(#[from] FormError),
}

/// The content type and the content of `postData`, if there is any.
fn body(data: &Value) -> Result<Option<(String, Vec<u8>)>, PostDataError> {
    let text_of = |key: &str| data.get(key).and_then(Value::as_str);
    let content_type = text_of("mimeType").unwrap_or_default().to_owned();
    let is_base64 = text_of("encoding") == Some("base64");
    if let Some(text) = text_of("text").filter(|text| !text.is_empty()) {
        let content = if is_base64 {
            let decoded = STANDARD.decode(text.trim());
            decoded.map_err(PostDataError::Base64)?
        } else {
            text.as_bytes().to_vec()
        };
        return Ok(Some((content_type, content)));
    }
    let mut params = pairs(data.get("params")).peekable();
    if params.peek().is_none() {
        return Ok(None);
    }
    if content_type.starts_with("multipart/form-data") {
        let mut form = MultipartForm::default();
        for (name, value) in params {
            form.add_text(name, value)?;
        }
        return Ok(Some(form.encode()));
    }
    let encoded = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
    let fields: Vec<String> = params
        .map(|(name, value)| format!("{}={}", encoded(name), encoded(value)))
        .collect();
    Ok(Some((content_type, fields.join("&").into_bytes())))
}

#[cfg(test)]
mod tests;
