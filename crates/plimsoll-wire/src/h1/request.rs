//! A request head, checked and written once, sent as often as needed.

use crate::h1::BodyLength;
use crate::h1::chunked::{has_control, is_name};
use crate::http::{Decimal, FieldClass};

/// Everything before the body of a request.
#[derive(Debug, Clone)]
pub struct RequestHead {
    bytes: Vec<u8>,
}

/// Why a head cannot be written: it would be read as something else.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HeadError {
    /// The method is not a token.
    #[error("method `{0}` is not a token such as GET")]
    Method(String),
    /// The target has a blank or a control character in it.
    #[error("target `{0}` contains a blank or a control character; encode it with %XX")]
    Target(String),
    /// The field name is not a token.
    #[error("header name `{0}` contains a character that header names may not have")]
    Name(String),
    /// The field value contains a control character.
    #[error("value of header `{0}` contains a control character")]
    Value(String),
    /// The field decides where the body ends, which is not the caller's to say.
    #[error("header `{0}` is set from the body and cannot be given")]
    Framing(String),
}

impl RequestHead {
    /// Writes the request line.
    ///
    /// - `target`: origin-form (`/path?query`) or absolute-form (RFC 9112, section 3.2).
    pub fn new(method: &str, target: &str) -> Result<Self, HeadError> {
        Self::after(Vec::new(), method, target)
    }

    /// Writes the request line behind `bytes`, whose memory it uses.
    pub fn after(mut bytes: Vec<u8>, method: &str, target: &str) -> Result<Self, HeadError> {
        if !is_name(method.as_bytes()) {
            return Err(HeadError::Method(method.to_owned()));
        }
        if target.is_empty() || target.bytes().any(|byte| byte <= b' ' || byte == 0x7f) {
            return Err(HeadError::Target(target.to_owned()));
        }
        bytes.reserve(256);
        bytes.extend_from_slice(method.as_bytes());
        bytes.push(b' ');
        bytes.extend_from_slice(target.as_bytes());
        bytes.extend_from_slice(b" HTTP/1.1\r\n");
        Ok(Self { bytes })
    }

    /// Adds one header field; `content-length` and `transfer-encoding` are refused.
    pub fn field(&mut self, name: &str, value: &str) -> Result<(), HeadError> {
        if FieldClass::from_name(name.as_bytes()).is_framing() {
            return Err(HeadError::Framing(name.to_owned()));
        }
        self.end_to_end_field(name.as_bytes(), value.as_bytes())
    }

    /// Adds one header field that the caller knows not to frame the body.
    pub fn end_to_end_field(&mut self, name: &[u8], value: &[u8]) -> Result<(), HeadError> {
        debug_assert!(!FieldClass::from_name(name).is_framing());
        put_field(&mut self.bytes, name, value)
    }

    /// The same for a field that was checked when it was read.
    pub fn valid_field(&mut self, name: &[u8], value: &[u8]) {
        debug_assert!(!FieldClass::from_name(name).is_framing());
        debug_assert!(is_name(name) && !has_control(value), "{name:?}: {value:?}");
        append_field(&mut self.bytes, name, value);
    }

    /// Adds fields that were checked, as [lines](crate::http::FieldList::lines), of which none frames the body.
    pub fn lines(&mut self, lines: &[u8]) {
        debug_assert!(lines.is_empty() || lines.ends_with(b"\r\n"));
        self.bytes.extend_from_slice(lines);
    }

    /// Ends the head of a request whose body is sent apart.
    pub fn finish_before(mut self, body: BodyLength) -> Vec<u8> {
        match body {
            BodyLength::None => {}
            BodyLength::Known(length) => {
                self.bytes.extend_from_slice(b"content-length: ");
                self.bytes
                    .extend_from_slice(Decimal::new(length).as_bytes());
                self.bytes.extend_from_slice(b"\r\n");
            }
            BodyLength::Chunked => {
                self.bytes
                    .extend_from_slice(b"transfer-encoding: chunked\r\n");
            }
        }
        self.bytes.extend_from_slice(b"\r\n");
        self.bytes
    }

    /// Ends the head and appends `body`: the bytes of one whole request.
    ///
    /// - `body`: `None` sends no `content-length`; `Some(&[])` announces a length of zero.
    pub fn finish(mut self, body: Option<&[u8]>) -> Vec<u8> {
        if let Some(body) = body {
            self.bytes.extend_from_slice(b"content-length: ");
            let length = Decimal::new(body.len() as u64);
            self.bytes.extend_from_slice(length.as_bytes());
            self.bytes.extend_from_slice(b"\r\n\r\n");
            self.bytes.extend_from_slice(body);
        } else {
            self.bytes.extend_from_slice(b"\r\n");
        }
        self.bytes
    }
}

/// Appends one line of a head or of trailers.
pub fn put_field(bytes: &mut Vec<u8>, name: &[u8], value: &[u8]) -> Result<(), HeadError> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if !is_name(name) {
        return Err(HeadError::Name(text(name)));
    }
    if has_control(value) {
        return Err(HeadError::Value(text(name)));
    }
    append_field(bytes, name, value);
    Ok(())
}

fn append_field(bytes: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    bytes.reserve(name.len() + value.len() + 4);
    bytes.extend_from_slice(name);
    bytes.extend_from_slice(b": ");
    bytes.extend_from_slice(value);
    bytes.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_written_as_rfc_9112_says() {
        let mut head = RequestHead::new("POST", "/a?b=c").unwrap();
        head.field("host", "example.org").unwrap();
        head.field("x-note", "").unwrap();
        assert_eq!(
            String::from_utf8(head.finish(Some(b"hi"))).unwrap(),
            "POST /a?b=c HTTP/1.1\r\nhost: example.org\r\nx-note: \r\ncontent-length: 2\r\n\r\nhi"
        );
    }

    #[test]
    fn what_would_split_a_request_is_refused() {
        assert!(RequestHead::new("GE T", "/").is_err());
        assert!(RequestHead::new("GET", "/a b").is_err());
        assert!(RequestHead::new("GET", "").is_err());
        let mut head = RequestHead::new("GET", "/").unwrap();
        assert_eq!(
            head.field("a\r\nb", "c"),
            Err(HeadError::Name("a\r\nb".into()))
        );
        assert_eq!(
            head.field("a", "c\r\nb: d"),
            Err(HeadError::Value("a".into()))
        );
        assert_eq!(
            head.field("Transfer-Encoding", "chunked"),
            Err(HeadError::Framing("Transfer-Encoding".into()))
        );
    }
}
