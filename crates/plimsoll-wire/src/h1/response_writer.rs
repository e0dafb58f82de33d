//! Response heads and chunks, appended to a buffer of the caller.

use std::io::Write;

use crate::h1::chunked::{has_control, is_name};
use crate::http::Decimal;

/// Writes the head of one final response (RFC 9112, section 4).
///
/// The head is whole only after [`finish`](Self::finish).
#[derive(Debug)]
#[must_use]
pub struct ResponseWriter<'a> {
    out: &'a mut Vec<u8>,
}

/// Why a field cannot be written: it would be read as something else.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FieldError {
    /// The name is not a token.
    #[error("header name `{0}` contains a character that header names may not have")]
    Name(String),
    /// The value has CR, LF, NUL or another control character.
    #[error("value of header `{0}` contains a control character")]
    Value(String),
}

impl<'a> ResponseWriter<'a> {
    /// Writes the status line.
    ///
    /// - `status`: 101 or 200–999; others are written as 500, since a client would not understand them.
    #[inline]
    pub fn new(out: &'a mut Vec<u8>, status: u16) -> Self {
        match status {
            200 => out.extend_from_slice(b"HTTP/1.1 200 OK\r\n"),
            101 | 201..=999 => status_line(out, status),
            _ => status_line(out, 500),
        }
        Self { out }
    }

    /// Writes the status line with a phrase other than the standard one, if it is [one](own_reason) for this status.
    ///
    /// - `status`: as for [`new`](Self::new); one that is written as 500 has the phrase of 500.
    pub fn with_reason(out: &'a mut Vec<u8>, status: u16, reason: &str) -> Self {
        match own_reason(status, reason) {
            Some(reason) if matches!(status, 101 | 200..=999) => {
                write!(out, "HTTP/1.1 {status} {reason}\r\n")
                    .expect("a Vec takes whatever is written");
                Self { out }
            }
            _ => Self::new(out, status),
        }
    }

    /// Writes the status line of an interim response (RFC 9110, section 15.2), for which
    /// [`finish`](Self::finish) ends all of it.
    ///
    /// - `status`: 100 or 102–199; others are written as 103, which means nothing without fields.
    pub fn interim(out: &'a mut Vec<u8>, status: u16) -> Self {
        match status {
            100 | 102..=199 => status_line(out, status),
            _ => status_line(out, 103),
        }
        Self { out }
    }

    /// Writes fields without a status line, for trailers.
    pub fn continued(out: &'a mut Vec<u8>) -> Self {
        Self { out }
    }

    /// Adds one field after checking that it is one; nothing is written if it is not.
    pub fn field(&mut self, name: impl AsRef<[u8]>, value: &[u8]) -> Result<(), FieldError> {
        let name = name.as_ref();
        let text = || String::from_utf8_lossy(name).into_owned();
        if !is_name(name) {
            return Err(FieldError::Name(text()));
        }
        if has_control(value) {
            return Err(FieldError::Value(text()));
        }
        self.out.reserve(name.len() + value.len() + 4);
        self.out.extend_from_slice(name);
        self.out.extend_from_slice(b": ");
        self.out.extend_from_slice(value);
        self.out.extend_from_slice(b"\r\n");
        Ok(())
    }

    /// Adds whole lines that were written by this type before, by [`DateLine`](crate::h1::DateLine), or are
    /// [those of a list](crate::http::FieldList::lines).
    #[inline]
    pub fn lines(&mut self, lines: &[u8]) {
        debug_assert!(lines.is_empty() || lines.ends_with(b"\r\n"));
        self.out.extend_from_slice(lines);
    }

    /// Says how long the content is.
    pub fn content_length(&mut self, length: u64) {
        self.out.extend_from_slice(b"content-length: ");
        self.out.extend_from_slice(Decimal::new(length).as_bytes());
        self.out.extend_from_slice(b"\r\n");
    }

    /// Says that the content comes in chunks.
    pub fn chunked(&mut self) {
        self.out
            .extend_from_slice(b"transfer-encoding: chunked\r\n");
    }

    /// Says that the connection ends with this response.
    pub fn close(&mut self) {
        self.out.extend_from_slice(b"connection: close\r\n");
    }

    /// Announces to a client of HTTP/1.0 that the connection stays.
    pub fn keep_alive(&mut self) {
        self.out.extend_from_slice(b"connection: keep-alive\r\n");
    }

    /// Ends the head.
    #[inline]
    pub fn finish(self) {
        self.out.extend_from_slice(b"\r\n");
    }
}

/// Appends what stands before so many bytes of content, at least one; CR LF must follow them.
pub fn chunk_head(out: &mut Vec<u8>, length: usize) {
    debug_assert!(length > 0, "a chunk of no bytes is the last one");
    write!(out, "{length:x}\r\n").expect("a Vec takes whatever is written");
}

/// Appends what ends a body of chunks.
///
/// - `trailers`: lines with their CR LF, written by [`ResponseWriter::field`]; often empty.
pub fn last_chunk(out: &mut Vec<u8>, trailers: &[u8]) {
    out.extend_from_slice(b"0\r\n");
    out.extend_from_slice(trailers);
    out.extend_from_slice(b"\r\n");
}

fn status_line(out: &mut Vec<u8>, status: u16) {
    write!(out, "HTTP/1.1 {status} {}\r\n", reason(status))
        .expect("a Vec takes whatever is written");
}

/// Bytes that a reason phrase may have to be passed on.
const MOST_REASON: usize = 128;

/// The phrase, if an intermediary has to pass it on: it is not the [standard one](reason) of that status, not empty,
/// not longer than 128 bytes, and has no control characters (RFC 9112, section 4).
pub fn own_reason(status: u16, phrase: &str) -> Option<&str> {
    let is_own = phrase != reason(status)
        && !phrase.trim_ascii().is_empty()
        && phrase.len() <= MOST_REASON
        && !has_control(phrase.as_bytes());
    is_own.then_some(phrase)
}

/// The phrase that goes with a status (RFC 9110, section 15, and RFC 6585); empty if there is none.
pub const fn reason(status: u16) -> &'static str {
    match status {
        100 => "Continue",
        101 => "Switching Protocols",
        103 => "Early Hints",
        200 => "OK",
        201 => "Created",
        202 => "Accepted",
        203 => "Non-Authoritative Information",
        204 => "No Content",
        205 => "Reset Content",
        206 => "Partial Content",
        300 => "Multiple Choices",
        301 => "Moved Permanently",
        302 => "Found",
        303 => "See Other",
        304 => "Not Modified",
        307 => "Temporary Redirect",
        308 => "Permanent Redirect",
        400 => "Bad Request",
        401 => "Unauthorized",
        402 => "Payment Required",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        406 => "Not Acceptable",
        407 => "Proxy Authentication Required",
        408 => "Request Timeout",
        409 => "Conflict",
        410 => "Gone",
        411 => "Length Required",
        412 => "Precondition Failed",
        413 => "Content Too Large",
        414 => "URI Too Long",
        415 => "Unsupported Media Type",
        416 => "Range Not Satisfiable",
        417 => "Expectation Failed",
        421 => "Misdirected Request",
        422 => "Unprocessable Content",
        425 => "Too Early",
        426 => "Upgrade Required",
        428 => "Precondition Required",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        451 => "Unavailable For Legal Reasons",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        505 => "HTTP Version Not Supported",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::h1::{KnownHead, Limits, ResponseDecoder, ResponseHead, ResponseSink};

    #[test]
    fn phrases_are_written_if_they_are_one_line_of_bounded_length() {
        let line = |status, phrase: &str| {
            let mut out = Vec::new();
            ResponseWriter::with_reason(&mut out, status, phrase).finish();
            String::from_utf8(out).unwrap()
        };
        assert_eq!(line(200, "Fine"), "HTTP/1.1 200 Fine\r\n\r\n");
        assert_eq!(line(299, "Wörks"), "HTTP/1.1 299 Wörks\r\n\r\n");
        let longest = "a".repeat(128);
        assert_eq!(
            line(200, &longest),
            format!("HTTP/1.1 200 {longest}\r\n\r\n")
        );
        for phrase in ["", " ", "OK", "a\r\nb: c", "a\nb", "a\0", &"a".repeat(129)] {
            assert_eq!(own_reason(200, phrase), None, "{phrase:?}");
            assert_eq!(line(200, phrase), "HTTP/1.1 200 OK\r\n\r\n", "{phrase:?}");
        }
        assert_eq!(
            line(7, "Fine"),
            "HTTP/1.1 500 Internal Server Error\r\n\r\n"
        );
    }

    #[test]
    fn a_response_is_written_as_rfc_9112_says() {
        let mut out = Vec::new();
        let mut head = ResponseWriter::new(&mut out, 404);
        head.field("content-type", b"text/plain").unwrap();
        head.lines(b"date: now\r\n");
        head.content_length(5);
        head.close();
        head.finish();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "HTTP/1.1 404 Not Found\r\ncontent-type: text/plain\r\ndate: now\r\ncontent-length: 5\r\n\
             connection: close\r\n\r\n"
        );
    }

    #[test]
    fn interim_responses_and_unknown_statuses() {
        let mut out = Vec::new();
        ResponseWriter::interim(&mut out, 100).finish();
        assert_eq!(out, b"HTTP/1.1 100 Continue\r\n\r\n");
        out.clear();
        ResponseWriter::new(&mut out, 299).finish();
        ResponseWriter::new(&mut out, 7).finish();
        assert_eq!(
            out,
            b"HTTP/1.1 299 \r\n\r\nHTTP/1.1 500 Internal Server Error\r\n\r\n"
        );
    }

    #[test]
    fn what_would_split_a_response_is_refused() {
        let mut out = Vec::new();
        let mut head = ResponseWriter::new(&mut out, 200);
        assert_eq!(
            head.field("a\r\nb", b"c"),
            Err(FieldError::Name("a\r\nb".into()))
        );
        for value in [&b"c\r\nb: d"[..], b"\n", b"\0", b"\x7f"] {
            assert_eq!(head.field("a", value), Err(FieldError::Value("a".into())));
        }
        head.finish();
        assert_eq!(out, b"HTTP/1.1 200 OK\r\n\r\n");
    }

    #[derive(Default)]
    struct Seen {
        status: u16,
        fields: Vec<(String, Vec<u8>)>,
        content: Vec<u8>,
    }

    impl ResponseSink for Seen {
        fn head(&mut self, head: &ResponseHead<'_>) {
            self.status = head.status;
            let fields = head.headers.iter();
            self.fields = fields
                .map(|field| (field.name.to_owned(), field.value.to_vec()))
                .collect();
        }

        fn content(&mut self, piece: &[u8]) {
            self.content.extend_from_slice(piece);
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again(
            status in 200_u16..1000,
            fields in prop::collection::vec(("x-[a-z]{1,9}", "[!-~]([ -~]{0,9}[!-~])?"), 0..5),
            chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..40), 0..5),
        ) {
            prop_assume!(status != 204 && status != 304);
            let mut out = Vec::new();
            let mut head = ResponseWriter::new(&mut out, status);
            for (name, value) in &fields {
                head.field(name, value.as_bytes()).unwrap();
            }
            head.chunked();
            head.finish();
            for chunk in &chunks {
                chunk_head(&mut out, chunk.len());
                out.extend_from_slice(chunk);
                out.extend_from_slice(b"\r\n");
            }
            last_chunk(&mut out, b"x-sum: 1\r\n");
            let mut decoder = ResponseDecoder::new(Limits::default());
            decoder.begin(false);
            let mut seen = Seen::default();
            let decoded = decoder.decode(&out, &mut seen, &mut KnownHead::new()).unwrap();
            prop_assert!(decoded.complete && decoded.consumed == out.len());
            prop_assert_eq!(seen.status, status);
            prop_assert_eq!(seen.content, chunks.concat());
            seen.fields.pop();
            let written: Vec<_> = fields
                .into_iter()
                .map(|(name, value)| (name, value.into_bytes()))
                .collect();
            prop_assert_eq!(seen.fields, written);
        }
    }
}
