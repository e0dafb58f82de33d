//! Which mistake made the parser stop: looked for only once it did.
//!
//! The answer depends on nothing behind the mistake, so it is the same whether the rest of the head
//! was there already or not.

use crate::h1::chunked::is_token;
use crate::h1::server::RequestError;

/// Names what httparse found wrong at the front of `input`.
pub(super) fn diagnose(error: httparse::Error, input: &[u8]) -> RequestError {
    match error {
        httparse::Error::NewLine => RequestError::LineEnd,
        httparse::Error::HeaderValue => RequestError::FieldValue,
        httparse::Error::TooManyHeaders => RequestError::TooManyFields,
        httparse::Error::Version => version(input),
        httparse::Error::HeaderName => field_name(input),
        httparse::Error::Token | httparse::Error::Status => request_line(input),
    }
}

fn request_line(input: &[u8]) -> RequestError {
    let method = input.iter().take_while(|byte| is_token(**byte)).count();
    if method == 0 || input.get(method) != Some(&b' ') {
        return RequestError::RequestLine;
    }
    let target = &input[method + 1..];
    let end = target
        .iter()
        .position(|byte| *byte <= b' ' || *byte == 0x7f);
    match end.and_then(|end| target.get(end)) {
        Some(b'\r' | b'\n') => RequestError::RequestLine,
        _ => RequestError::Target,
    }
}

/// Method and target were in order: the version is what follows the second blank. `HTTP/2` begins a version that is
/// not supported; `HTTP/01` and `HTTP/1` without a point are none (RFC 9112, section 2.3).
fn version(input: &[u8]) -> RequestError {
    let version = input.splitn(3, |byte| *byte == b' ').nth(2);
    match version.and_then(|version| version.strip_prefix(b"HTTP/")) {
        Some([b'2'..=b'9', ..]) => RequestError::Version,
        Some([b'1', b'.', digit, ..]) if digit.is_ascii_digit() => RequestError::Version,
        _ => RequestError::RequestLine,
    }
}

/// The first line behind the request line whose name does not end in a colon.
fn field_name(input: &[u8]) -> RequestError {
    for line in input.split(|byte| *byte == b'\n').skip(1) {
        let name = line.iter().take_while(|byte| is_token(**byte)).count();
        match (name, line.get(name)) {
            (1.., Some(b':')) => {}
            (0, Some(b' ' | b'\t')) => return RequestError::Folding,
            (1.., Some(b' ' | b'\t')) => return RequestError::BlankInName,
            _ => return RequestError::FieldName,
        }
    }
    RequestError::FieldName
}
