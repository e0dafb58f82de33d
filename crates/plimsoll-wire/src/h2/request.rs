//! A request, checked and encoded once, sent as often as needed on any connection, or rewritten in place
//! for each exchange.

use std::io::Write as _;
use std::sync::Arc;

use crate::h2::hpack::RequestField;
use crate::http::FieldClass;

/// The head of a request, as it is put together.
#[derive(Debug, Clone)]
pub struct RequestHead {
    fields: Vec<RequestField>,
    is_head: bool,
}

/// A whole request; clones share it, and a connection recognises it when it is sent again.
#[derive(Debug, Clone)]
pub struct EncodedRequest(Arc<Encoded>);

#[derive(Debug, Clone)]
struct Encoded {
    fields: Vec<RequestField>,
    body: Vec<u8>,
    is_head: bool,
    /// It will hardly be sent a second time as it is.
    is_passing: bool,
}

/// Gives a request other values, in memory that is used again.
#[derive(Debug)]
pub struct Rewrite<'a>(&'a mut Encoded);

/// Why a head cannot be written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HeadError {
    /// The method is not a token, or is CONNECT, which opens a tunnel instead of an exchange.
    #[error("method `{0}` is not a token such as GET, or is CONNECT")]
    Method(String),
    /// The scheme is neither `http` nor `https`.
    #[error("scheme `{0}` is neither http nor https")]
    Scheme(String),
    /// The authority is empty, or has user information, a blank or a control character in it.
    #[error("authority `{0}` is not a host with an optional port")]
    Authority(String),
    /// The path does not begin with `/`, or has a blank or a control character in it.
    #[error(
        "path `{0}` does not begin with / or contains a blank or a control character; encode it with %XX"
    )]
    Path(String),
    /// The field name is not a token.
    #[error("header name `{0}` contains a character that header names may not have")]
    Name(String),
    /// The field value contains a control character, or begins or ends with a blank.
    #[error("value of header `{0}` contains a control character or begins or ends with a blank")]
    Value(String),
    /// HTTP/2 carries it by other means, or does not have it (RFC 9113, section 8.2.2).
    #[error(
        "header `{0}` cannot be given in HTTP/2: the connection, the length and the authority are set apart"
    )]
    Connection(String),
}

impl RequestHead {
    /// Writes the pseudo-header fields (RFC 9113, section 8.3.1).
    ///
    /// - `authority`: host and port as in the URL, sent as `:authority` instead of `host`.
    /// - `path`: path and query, `*` for OPTIONS.
    pub fn new(method: &str, scheme: &str, authority: &str, path: &str) -> Result<Self, HeadError> {
        if method.is_empty() || !method.bytes().all(is_token) || method == "CONNECT" {
            return Err(HeadError::Method(method.to_owned()));
        }
        if !matches!(scheme, "http" | "https") {
            return Err(HeadError::Scheme(scheme.to_owned()));
        }
        if authority.is_empty() || authority.contains(['@', '/']) || !is_visible(authority) {
            return Err(HeadError::Authority(authority.to_owned()));
        }
        let is_whole_server = path == "*" && method == "OPTIONS";
        if !(path.starts_with('/') || is_whole_server) || !is_visible(path) {
            return Err(HeadError::Path(path.to_owned()));
        }
        let fields = [
            (":method", method),
            (":scheme", scheme),
            (":path", path),
            (":authority", authority),
        ];
        Ok(Self {
            fields: fields
                .map(|(name, value)| RequestField::new(name.as_bytes(), value.as_bytes()))
                .into(),
            is_head: method == "HEAD",
        })
    }

    /// Adds one header field; its name is sent in lowercase.
    pub fn field(&mut self, name: &str, value: &str) -> Result<(), HeadError> {
        if name.is_empty() || !name.bytes().all(is_token) {
            return Err(HeadError::Name(name.to_owned()));
        }
        let lower = name.to_ascii_lowercase();
        let class = FieldClass::from_name(name.as_bytes());
        let is_set_apart = class.is_connection_specific() || class.is_framing() || lower == "host";
        if is_set_apart || (lower == "te" && value != "trailers") {
            return Err(HeadError::Connection(name.to_owned()));
        }
        let is_control = |byte: u8| (byte < b' ' && byte != b'\t') || byte == 0x7f;
        if value.bytes().any(is_control) || value.trim_matches([' ', '\t']) != value {
            return Err(HeadError::Value(name.to_owned()));
        }
        self.fields
            .push(RequestField::new(lower.as_bytes(), value.as_bytes()));
        Ok(())
    }

    /// Ends the head: one whole request.
    ///
    /// - `body`: `None` sends no `content-length`; `Some(&[])` announces a length of zero.
    pub fn finish(mut self, body: Option<&[u8]>) -> EncodedRequest {
        if let Some(body) = body {
            let length = body.len().to_string();
            self.fields
                .push(RequestField::new(b"content-length", length.as_bytes()));
        }
        EncodedRequest(Arc::new(Encoded {
            fields: self.fields,
            body: body.unwrap_or_default().into(),
            is_head: self.is_head,
            is_passing: false,
        }))
    }
}

impl EncodedRequest {
    /// Position of the path in [`headers`](Self::headers).
    pub const PATH: usize = 2;

    /// Position of the authority in [`headers`](Self::headers).
    pub const AUTHORITY: usize = 3;

    /// Position of the first added field in [`headers`](Self::headers).
    pub const FIRST_FIELD: usize = 4;

    /// Names and values: `:method`, `:scheme`, `:path`, `:authority`, the fields in the order in which
    /// they were added to the head, `content-length` if there is a body, and what rewriting added.
    pub fn headers(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.0.fields.iter().map(RequestField::text)
    }

    /// The value at `position` of [`headers`](Self::headers), empty if there is none.
    pub fn value(&self, position: usize) -> &[u8] {
        let field = self.0.fields.get(position);
        field.map_or(&[], |field| field.text().1)
    }

    /// The body, empty where there is none.
    pub fn body(&self) -> &[u8] {
        &self.0.body
    }

    /// Whether the method is HEAD, so a length announces content that does not come.
    pub fn is_head(&self) -> bool {
        self.0.is_head
    }

    /// Gives it other values.
    ///
    /// Memory is used again unless a clone, or a connection that has not sent all of it yet, needs it.
    pub fn rewrite(&mut self) -> Rewrite<'_> {
        let encoded = Arc::make_mut(&mut self.0);
        encoded.is_passing = true;
        Rewrite(encoded)
    }

    /// Makes it a copy of `source` that is to be rewritten, in memory that is used again as for
    /// [`rewrite`](Self::rewrite).
    pub fn rewrite_as(&mut self, source: &Self) -> Rewrite<'_> {
        let encoded = Arc::make_mut(&mut self.0);
        encoded.fields.clone_from(&source.0.fields);
        encoded.body.clone_from(&source.0.body);
        encoded.is_head = source.0.is_head;
        encoded.is_passing = true;
        Rewrite(encoded)
    }

    /// Whether it was rewritten, so that remembering it would be of no use.
    pub(crate) fn is_passing(&self) -> bool {
        self.0.is_passing
    }

    pub(crate) fn fields(&self) -> &[RequestField] {
        &self.0.fields
    }

    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Rewrite<'_> {
    /// Writes another value for the field at `position` of [`EncodedRequest::headers`].
    ///
    /// - `write`: writes behind nothing; no control characters, and no blanks in a path or an
    ///   authority. Blanks around another value are left out.
    pub fn field(&mut self, position: usize, write: impl FnOnce(&mut Vec<u8>)) {
        if let Some(field) = self.0.fields.get_mut(position) {
            field.rewrite(write);
        }
    }

    /// Gives the first field of that name another value, or adds one.
    ///
    /// - `name`: lowercase, of a field that is no pseudo-header field.
    /// - `value`: as for [`field`](Self::field).
    pub fn set(&mut self, name: &str, value: &[u8]) {
        let mut fields = self.0.fields.iter().map(|field| field.text().0);
        let position = fields.position(|candidate| candidate == name.as_bytes());
        let position = position.unwrap_or_else(|| {
            self.0.fields.push(RequestField::new(name.as_bytes(), b""));
            self.0.fields.len() - 1
        });
        self.field(position, |out| out.extend_from_slice(value));
    }

    /// Writes another body, of a request that has one.
    ///
    /// - `write`: writes behind nothing.
    pub fn body(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let Encoded { fields, body, .. } = &mut *self.0;
        body.clear();
        write(body);
        let is_length = |field: &&mut RequestField| field.text().0 == b"content-length";
        if let Some(field) = fields.iter_mut().rev().find(is_length) {
            field.rewrite(|value| {
                write!(value, "{}", body.len()).expect("memory takes what is written to it");
            });
        }
    }
}

/// Neither blank nor control characters.
fn is_visible(text: &str) -> bool {
    !text.bytes().any(|byte| byte <= b' ' || byte == 0x7f)
}

/// RFC 9110, section 5.6.2.
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_becomes_lowercase_fields_in_order() {
        let mut head = RequestHead::new("POST", "http", "a:8080", "/x?y").unwrap();
        head.field("Accept", "*/*").unwrap();
        let request = head.finish(Some(b"hello"));
        let fields: Vec<_> = request
            .headers()
            .map(|(name, value)| {
                let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
                (text(name), text(value))
            })
            .collect();
        let expected = [
            (":method", "POST"),
            (":scheme", "http"),
            (":path", "/x?y"),
            (":authority", "a:8080"),
            ("accept", "*/*"),
            ("content-length", "5"),
        ];
        assert_eq!(
            fields,
            expected.map(|(name, value)| (name.to_owned(), value.to_owned()))
        );
        assert_eq!(request.body(), b"hello");
    }

    #[test]
    fn a_rewritten_request_is_one_of_its_own() {
        let mut head = RequestHead::new("POST", "http", "a", "/").unwrap();
        head.field("x-id", "1").unwrap();
        let first = head.finish(Some(b"hello"));
        let mut second = first.clone();
        let mut rewrite = second.rewrite();
        rewrite.field(EncodedRequest::PATH, |path| path.extend_from_slice(b"/b"));
        rewrite.field(EncodedRequest::FIRST_FIELD, |value| {
            value.extend_from_slice(b" 2 ");
        });
        rewrite.body(|body| body.extend_from_slice(b"0123456789"));
        let values = |request: &EncodedRequest| {
            let values = request.headers().skip(2);
            let text = |(_, value): (&[u8], &[u8])| String::from_utf8(value.to_vec()).unwrap();
            values.map(text).collect::<Vec<_>>()
        };
        assert_eq!(values(&second), ["/b", "a", "2", "10"]);
        assert_eq!(second.body(), b"0123456789");
        assert_eq!(values(&first), ["/", "a", "1", "5"]);
        assert!(!first.is_same(&second) && !first.is_passing());

        let mut third = first.clone();
        for _ in 0..2 {
            let mut rewrite = third.rewrite_as(&second);
            rewrite.set("x-id", b"3");
            rewrite.set("cookie", b"a=b");
            assert_eq!(values(&third), ["/b", "a", "3", "10", "a=b"]);
            assert_eq!(third.body(), second.body());
        }
        assert_eq!(values(&second), ["/b", "a", "2", "10"]);
    }

    #[test]
    fn what_http2_cannot_say_is_refused() {
        for (method, scheme, authority, path) in [
            ("", "http", "a", "/"),
            ("CONNECT", "http", "a", "/"),
            ("GET", "ftp", "a", "/"),
            ("GET", "http", "", "/"),
            ("GET", "http", "user@a", "/"),
            ("GET", "http", "a", ""),
            ("GET", "http", "a", "/a b"),
            ("GET", "http", "a", "*"),
        ] {
            assert!(
                RequestHead::new(method, scheme, authority, path).is_err(),
                "{method} {scheme} {authority} {path}"
            );
        }
        let mut head = RequestHead::new("GET", "http", "a", "/").unwrap();
        for (name, value) in [
            ("Connection", "close"),
            ("Host", "b"),
            ("Content-Length", "1"),
            ("TE", "gzip"),
            ("a b", ""),
            (":path", "/"),
            ("a", "b\r\nc"),
            ("a", " b"),
        ] {
            assert!(head.field(name, value).is_err(), "{name}: {value}");
        }
        head.field("te", "trailers").unwrap();
    }
}
