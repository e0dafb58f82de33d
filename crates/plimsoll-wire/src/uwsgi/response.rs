//! The beginning of a response: a status line of HTTP, or a head of CGI without one.

use std::borrow::Cow;

use crate::fastcgi::{CgiHead, CgiHeadError};

/// The beginning of a response, as one of HTTP/1; `None` while more of it is needed.
///
/// A response of HTTP/1 stays as it is. Servers repeat the version of the request in their status line: another one becomes 1.1. A head
/// of CGI (RFC 3875, section 6.3) gets a status line.
pub fn as_http1(output: &[u8]) -> Result<Option<Cow<'_, [u8]>>, CgiHeadError> {
    const NAME: &[u8] = b"HTTP/";
    const OWN: &[u8] = b"HTTP/1.1";
    let Some(version) = output.strip_prefix(NAME) else {
        return if NAME.starts_with(output) {
            Ok(None)
        } else {
            from_cgi(output)
        };
    };
    Ok(match version {
        [_, _, _, ..] if version.starts_with(b"1.") => Some(Cow::Borrowed(output)),
        [b'0'..=b'9', b'.', b'0'..=b'9', rest @ ..] => Some(Cow::Owned([OWN, rest].concat())),
        [b'0'..=b'9', b' ', _, ..] => Some(Cow::Owned([OWN, &version[1..]].concat())),
        [_, _, _, ..] => Some(Cow::Borrowed(output)),
        _ => None,
    })
}

fn from_cgi(output: &[u8]) -> Result<Option<Cow<'_, [u8]>>, CgiHeadError> {
    let Some(head) = CgiHead::parse(output)? else {
        return Ok(None);
    };
    let mut response = format!("HTTP/1.1 {} \r\n", head.status.as_str()).into_bytes();
    for (name, value) in &head.fields {
        for piece in [name, b": ", value, b"\r\n"] {
            response.extend_from_slice(piece);
        }
    }
    response.extend_from_slice(b"\r\n");
    response.extend_from_slice(&output[head.bytes..]);
    Ok(Some(Cow::Owned(response)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(output: &str, expected: Option<&str>) {
        let read = as_http1(output.as_bytes()).unwrap();
        let text = read.as_deref().map(String::from_utf8_lossy);
        assert_eq!(text.as_deref(), expected, "{output:?}");
    }

    #[test]
    fn responses_of_http_stay_and_those_of_cgi_get_a_status_line() {
        let plain = "HTTP/1.1 200 OK\r\nA: b\r\n\r\nc";
        check(plain, Some(plain));
        check(
            "HTTP/1.0 404 Not Found\r\n",
            Some("HTTP/1.0 404 Not Found\r\n"),
        );
        check("HTTP/2.0 200 OK\r\n\r\n", Some("HTTP/1.1 200 OK\r\n\r\n"));
        check("HTTP/3 200 OK\r\n\r\n", Some("HTTP/1.1 200 OK\r\n\r\n"));
        check("HTTP/x.y 200", Some("HTTP/x.y 200"));
        check(
            "Status: 404 Not Found\nX-A: 1\n\nbody",
            Some("HTTP/1.1 404 \r\nX-A: 1\r\n\r\nbody"),
        );
        check(
            "Location: /a\r\n\r\n",
            Some("HTTP/1.1 302 \r\nLocation: /a\r\n\r\n"),
        );
        for part in ["", "HT", "HTTP/", "HTTP/2", "HTTP/2.", "Status: 200\r\n"] {
            check(part, None);
        }
        let error = as_http1(b"<html>\n").unwrap_err().to_string();
        assert!(error.contains("is no field"), "{error}");
    }

    proptest! {
        #[test]
        fn more_bytes_never_change_what_was_decided(output in prop::collection::vec(any::<u8>(), 0..80), at in 0_usize..80) {
            let (first, rest) = output.split_at(at.min(output.len()));
            match (as_http1(first), as_http1(&output)) {
                (Ok(Some(begun)), Ok(Some(whole))) => prop_assert_eq!([&*begun, rest].concat(), whole.into_owned()),
                (Ok(Some(_)), other) => prop_assert!(false, "{:?}", other),
                (Err(error), other) => prop_assert_eq!(Err(error), other),
                (Ok(None), _) => {}
            }
        }

        #[test]
        fn fields_of_cgi_are_those_of_http(
            fields in prop::collection::vec(("[a-z]{1,8}", "[!-~]{0,20}"), 0..5),
            status in 200_u16..=999,
        ) {
            let mut text = format!("Status: {status} x\n");
            let mut expected = format!("HTTP/1.1 {status} \r\n");
            for (name, value) in &fields {
                text.extend(["x-", name, ":", value, "\n"]);
                expected.extend(["x-", name, ": ", value, "\r\n"]);
            }
            text.push_str("\ncontent");
            expected.push_str("\r\ncontent");
            let read = as_http1(text.as_bytes()).unwrap().unwrap();
            prop_assert_eq!(String::from_utf8_lossy(&read), expected);
        }
    }
}
