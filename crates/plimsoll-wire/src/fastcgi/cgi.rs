//! The head of a CGI response (RFC 3875, section 6.3).

use http::StatusCode;

use crate::h1::{has_control, is_name};
use crate::http::FieldList;

/// Bytes that a head may have: those of scripts that set many cookies are longer than most of HTTP.
pub const MOST_HEAD_BYTES: usize = 64 * 1024;

/// A head that is there.
#[derive(Debug, Clone)]
pub struct CgiHead {
    /// 200 unless the script says another one, 302 with a location and no status.
    pub status: StatusCode,
    /// All but `Status`, as they came.
    pub fields: FieldList,
    /// Where the content begins.
    pub bytes: usize,
}

/// Why output does not begin with a head.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CgiHeadError {
    /// A line is no field.
    #[error("the head of the response has the line {0:?}, which is no field")]
    Line(String),
    /// The status is not a final one of HTTP.
    #[error("the response has the status {0:?}; it has to be a number from 200 to 999")]
    Status(String),
    /// It does not end.
    #[error("the head of the response is longer than {MOST_HEAD_BYTES} bytes")]
    Length,
}

impl CgiHead {
    /// The head of a response that begins with these bytes; `None` while it is not whole. Lines end with a line feed, before which a
    /// carriage return may stand.
    pub fn parse(output: &[u8]) -> Result<Option<Self>, CgiHeadError> {
        let mut status = None;
        // As most scripts have them.
        let mut fields = FieldList::with_capacity(8, 256);
        let mut has_location = false;
        let mut at = 0;
        loop {
            let rest = &output[at..];
            let Some(end) = memchr::memchr(b'\n', rest) else {
                return match output.len() {
                    ..=MOST_HEAD_BYTES => Ok(None),
                    _ => Err(CgiHeadError::Length),
                };
            };
            at += end + 1;
            if at > MOST_HEAD_BYTES {
                return Err(CgiHeadError::Length);
            }
            let line = &rest[..end];
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if line.is_empty() {
                let default = if has_location {
                    StatusCode::FOUND
                } else {
                    StatusCode::OK
                };
                return Ok(Some(Self {
                    status: status.unwrap_or(default),
                    fields,
                    bytes: at,
                }));
            }
            let (name, value) = field(line)?;
            if name.eq_ignore_ascii_case(b"status") {
                status = Some(status_of(value)?);
                continue;
            }
            has_location |= name.eq_ignore_ascii_case(b"location");
            fields.push(name, value);
        }
    }
}

fn shown(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).chars().take(100).collect()
}

/// Name and value of a line, both of which may be sent on.
fn field(line: &[u8]) -> Result<(&[u8], &[u8]), CgiHeadError> {
    let wrong = || CgiHeadError::Line(shown(line));
    let colon = memchr::memchr(b':', line).ok_or_else(wrong)?;
    let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
    let is_field = is_name(name) && !has_control(value);
    is_field.then_some((name, value)).ok_or_else(wrong)
}

/// `404 Not Found`. Interim ones are refused: no other head follows.
fn status_of(value: &[u8]) -> Result<StatusCode, CgiHeadError> {
    let code = value.split(|byte| *byte == b' ').next();
    let code = code.and_then(|code| StatusCode::from_bytes(code).ok());
    code.filter(|code| code.as_u16() >= 200)
        .ok_or_else(|| CgiHeadError::Status(shown(value)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parsed(output: &str) -> (u16, Vec<(String, String)>, usize) {
        let head = CgiHead::parse(output.as_bytes()).unwrap().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let fields = head.fields.iter();
        let fields = fields.map(|(name, value)| (text(name), text(value)));
        (head.status.as_u16(), fields.collect(), head.bytes)
    }

    #[test]
    fn heads_are_read() {
        let field = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(
            parsed("Content-Type: text/html\r\n\r\nhi"),
            (200, vec![field("Content-Type", "text/html")], 27)
        );
        assert_eq!(
            parsed("status: 404 Not Found\nX: \n\n"),
            (404, vec![field("X", "")], 27)
        );
        assert_eq!(
            parsed("Location: /a\n\n"),
            (302, vec![field("Location", "/a")], 14)
        );
        assert_eq!(
            parsed("Location: /a\nStatus: 201\n\n"),
            (201, vec![field("Location", "/a")], 26)
        );
        assert_eq!(parsed("\n"), (200, Vec::new(), 1));
    }

    #[test]
    fn what_is_no_head_is_named() {
        let failed = |output: &[u8]| CgiHead::parse(output).unwrap_err().to_string();
        assert_eq!(
            failed(b"<html>\n"),
            "the head of the response has the line \"<html>\", which is no field"
        );
        assert_eq!(
            failed(b"a b: c\n"),
            "the head of the response has the line \"a b: c\", which is no field"
        );
        assert_eq!(
            failed(b"A: \0\n"),
            "the head of the response has the line \"A: \\0\", which is no field"
        );
        assert_eq!(
            failed(b"Status: 100\n"),
            "the response has the status \"100\"; it has to be a number from 200 to 999"
        );
        assert_eq!(
            failed(&vec![b'a'; MOST_HEAD_BYTES + 1]),
            "the head of the response is longer than 65536 bytes"
        );
        let long = "A: b\n".repeat(MOST_HEAD_BYTES / 5 + 1);
        assert_eq!(
            failed(long.as_bytes()),
            failed(&vec![b'a'; MOST_HEAD_BYTES + 1])
        );
    }

    proptest! {
        #[test]
        fn a_head_is_found_once_it_is_whole(
            fields in prop::collection::vec(("[a-z]{1,8}", "[ -~]{0,20}"), 0..5),
            is_dos in any::<bool>(),
        ) {
            let end = if is_dos { "\r\n" } else { "\n" };
            let mut text = String::new();
            for (name, value) in &fields {
                text.extend(["x-", name, ": ", value, end]);
            }
            text.push_str(end);
            for length in 0..text.len() {
                prop_assert!(CgiHead::parse(&text.as_bytes()[..length]).unwrap().is_none());
            }
            text.push_str("content");
            let head = CgiHead::parse(text.as_bytes()).unwrap().unwrap();
            prop_assert_eq!(head.bytes, text.len() - 7);
            prop_assert_eq!(head.fields.len(), fields.len());
        }

        #[test]
        fn no_output_panics(output in prop::collection::vec(any::<u8>(), 0..200)) {
            CgiHead::parse(&output).ok();
        }
    }
}
