//! The table of cases: what is sent, and what a server may do with it (RFC 9112, RFC 9110).

use plimsoll_model::CaseRule::{self, One, Refuse, RefuseOrEnd, RefuseOrOne, Two};

/// One connection's worth of bytes.
#[derive(Debug)]
pub(super) struct Case {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    pub(super) rule: CaseRule,
    pub(super) bytes: Vec<u8>,
}

/// A row: name, what is odd, what is allowed, lines between `host` and the empty line, content.
type Row = (
    &'static str,
    &'static str,
    CaseRule,
    &'static str,
    &'static str,
);

/// Content that is a request of its own, if its reader thinks that the one before has ended. `{smuggled}`
/// stands for it.
const SMUGGLED: &str = "{smuggled}";

/// Requests by POST whose framing is odd. RFC 9112, section 6, unless another is named.
const FRAMING: &[Row] = &[
    (
        "cl-te",
        "content-length and transfer-encoding; the chunks end first",
        RefuseOrOne,
        "Content-Length: {length}\r\nTransfer-Encoding: chunked\r\n",
        "0\r\n\r\n{smuggled}",
    ),
    (
        "te-cl",
        "the same with transfer-encoding first",
        RefuseOrOne,
        "Transfer-Encoding: chunked\r\nContent-Length: {length}\r\n",
        "0\r\n\r\n{smuggled}",
    ),
    (
        "cl-differ",
        "two content-lengths that differ",
        Refuse,
        "Content-Length: 0\r\nContent-Length: {length}\r\n",
        SMUGGLED,
    ),
    (
        "cl-repeated",
        "the same content-length twice",
        RefuseOrOne,
        "Content-Length: 5\r\nContent-Length: 5\r\n",
        "hello",
    ),
    (
        "cl-list",
        "a list of content-lengths that differ",
        Refuse,
        "Content-Length: 0, {length}\r\n",
        SMUGGLED,
    ),
    (
        "cl-plus",
        "a sign before the content-length",
        Refuse,
        "Content-Length: +5\r\n",
        "hello",
    ),
    (
        "cl-minus",
        "a content-length below zero",
        Refuse,
        "Content-Length: -1\r\n",
        "",
    ),
    (
        "cl-hex",
        "a content-length in another base",
        Refuse,
        "Content-Length: 0x5\r\n",
        "hello",
    ),
    (
        "cl-blank",
        "a blank within the content-length",
        Refuse,
        "Content-Length: 5 5\r\n",
        "hello",
    ),
    (
        "cl-huge",
        "a content-length that no integer holds",
        Refuse,
        "Content-Length: 18446744073709551621\r\n",
        "hello",
    ),
    (
        "cl-colon-blank",
        "a blank before the colon (section 5.1)",
        Refuse,
        "Content-Length : 5\r\n",
        "hello",
    ),
    (
        "te-unknown",
        "a transfer coding that is not chunked",
        Refuse,
        "Transfer-Encoding: xchunked\r\n",
        "0\r\n\r\n",
    ),
    (
        "te-not-last",
        "chunked, but not as the last coding",
        Refuse,
        "Transfer-Encoding: chunked, identity\r\n",
        "0\r\n\r\n",
    ),
    (
        "te-twice",
        "chunked applied twice",
        RefuseOrOne,
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        "0\r\n\r\n",
    ),
    (
        "te-vertical-tab",
        "a control character before chunked",
        Refuse,
        "Transfer-Encoding: \u{b}chunked\r\n",
        "0\r\n\r\n",
    ),
    (
        "te-quoted",
        "chunked in quotes",
        Refuse,
        "Transfer-Encoding: \"chunked\"\r\n",
        "0\r\n\r\n",
    ),
    (
        "te-folded",
        "transfer-encoding on a folded line (section 5.2)",
        RefuseOrOne,
        "Transfer-Encoding:\r\n chunked\r\n",
        "0\r\n\r\n",
    ),
    (
        "te-colon-blank",
        "a blank before the colon of transfer-encoding",
        Refuse,
        "Transfer-Encoding : chunked\r\n",
        "0\r\n\r\n",
    ),
    (
        "chunk-sign",
        "a sign before the size of a chunk (section 7.1)",
        RefuseOrEnd,
        "Transfer-Encoding: chunked\r\n",
        "+5\r\nhello\r\n0\r\n\r\n",
    ),
    (
        "chunk-hex",
        "a prefix before the size of a chunk",
        RefuseOrEnd,
        "Transfer-Encoding: chunked\r\n",
        "0x5\r\nhello\r\n0\r\n\r\n",
    ),
    (
        "chunk-huge",
        "a size of a chunk that no integer holds",
        RefuseOrEnd,
        "Transfer-Encoding: chunked\r\n",
        "10000000000000005\r\nhello\r\n0\r\n\r\n",
    ),
    (
        "chunk-too-long",
        "more data than the size says",
        RefuseOrEnd,
        "Transfer-Encoding: chunked\r\n",
        "3\r\nhello\r\n0\r\n\r\n",
    ),
    (
        "chunk-lf",
        "a bare line feed behind the size of a chunk",
        RefuseOrEnd,
        "Transfer-Encoding: chunked\r\n",
        "5\nhello\r\n0\r\n\r\n",
    ),
    (
        "chunk-ext-lf",
        "a bare line feed in an extension of a chunk",
        RefuseOrEnd,
        "Transfer-Encoding: chunked\r\n",
        "2;\nxx\r\nab\r\n0\r\n\r\n",
    ),
    (
        "chunk-ext-cr",
        "a bare carriage return in an extension of a chunk",
        RefuseOrEnd,
        "Transfer-Encoding: chunked\r\n",
        "2;a\rb\r\nab\r\n0\r\n\r\n",
    ),
    (
        "trailer-cl",
        "a content-length among the trailers (section 6.5.1)",
        RefuseOrOne,
        "Transfer-Encoding: chunked\r\n",
        "0\r\nContent-Length: 50\r\n\r\n",
    ),
    (
        "expect",
        "content that does not wait for 100 (RFC 9110, section 10.1.1)",
        One,
        "Expect: 100-continue\r\nContent-Length: 5\r\n",
        "hello",
    ),
    (
        "chunked",
        "a control: chunks as they should be",
        One,
        "Transfer-Encoding: chunked\r\n",
        "5\r\nhello\r\n0\r\n\r\n",
    ),
];

/// Whole heads, without content. `{path}` and `{host}` stand for those of the target.
const HEADS: &[(&str, &str, CaseRule, &str)] = &[
    (
        "te-1.0",
        "transfer-encoding in HTTP/1.0 (section 6.1)",
        RefuseOrOne,
        "POST {path} HTTP/1.0\r\nHost: {host}\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{smuggled}",
    ),
    (
        "bare-lf",
        "lines that end in a bare line feed (section 2.2)",
        RefuseOrOne,
        "GET {path} HTTP/1.1\nHost: {host}\n\n",
    ),
    (
        "bare-cr",
        "a bare carriage return in a value",
        RefuseOrOne,
        "GET {path} HTTP/1.1\r\nHost: {host}\r\nX-A: b\rX-C: d\r\n\r\n",
    ),
    (
        "nul",
        "a zero octet in a value (RFC 9110, section 5.5)",
        RefuseOrOne,
        "GET {path} HTTP/1.1\r\nHost: {host}\r\nX-A: b\0c\r\n\r\n",
    ),
    (
        "name-blank",
        "a blank within the name of a field",
        Refuse,
        "GET {path} HTTP/1.1\r\nHost: {host}\r\nX A: b\r\n\r\n",
    ),
    (
        "name-empty",
        "a field without a name",
        Refuse,
        "GET {path} HTTP/1.1\r\nHost: {host}\r\n: b\r\n\r\n",
    ),
    (
        "first-blank",
        "a blank before the first field (section 2.2)",
        RefuseOrOne,
        "GET {path} HTTP/1.1\r\n X-A: b\r\nHost: {host}\r\n\r\n",
    ),
    (
        "host-missing",
        "no host (section 3.2)",
        Refuse,
        "GET {path} HTTP/1.1\r\n\r\n",
    ),
    (
        "host-twice",
        "two hosts",
        Refuse,
        "GET {path} HTTP/1.1\r\nHost: {host}\r\nHost: other.example\r\n\r\n",
    ),
    (
        "host-invalid",
        "a host that cannot be one",
        Refuse,
        "GET {path} HTTP/1.1\r\nHost: a b/c\r\n\r\n",
    ),
    (
        "host-other",
        "a target whose authority is not the host (section 3.2.2)",
        RefuseOrOne,
        "GET http://{host}{path} HTTP/1.1\r\nHost: other.example\r\n\r\n",
    ),
    (
        "line-blanks",
        "a target with a blank in it (section 3)",
        RefuseOrOne,
        "GET {path} x HTTP/1.1\r\nHost: {host}\r\n\r\n",
    ),
    (
        "version",
        "a version that there is not",
        RefuseOrOne,
        "GET {path} HTTP/1.12\r\nHost: {host}\r\n\r\n",
    ),
    (
        "get-content",
        "content of a GET, which is not the next request",
        One,
        "GET {path} HTTP/1.1\r\nHost: {host}\r\nContent-Length: {length}\r\n\r\n{smuggled}",
    ),
    (
        "pipelined",
        "a control: two requests",
        Two,
        "GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n{smuggled}",
    ),
];

/// Every case, for requests for `path` at `host`.
pub(super) fn cases(path: &str, host: &str) -> Vec<Case> {
    let smuggled = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n");
    let filled = |text: &str, length: usize| {
        text.replace(SMUGGLED, &smuggled)
            .replace("{length}", &length.to_string())
            .replace("{path}", path)
            .replace("{host}", host)
            .into_bytes()
    };
    let framing = FRAMING.iter().map(|&(name, about, rule, lines, content)| {
        let length = content.replace(SMUGGLED, &smuggled).len();
        let text = format!("POST {{path}} HTTP/1.1\r\nHost: {{host}}\r\n{lines}\r\n{content}");
        Case {
            name,
            about,
            rule,
            bytes: filled(&text, length),
        }
    });
    let heads = HEADS.iter().map(|&(name, about, rule, text)| Case {
        name,
        about,
        rule,
        bytes: filled(text, smuggled.len()),
    });
    framing.chain(heads).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_case_has_a_name_of_its_own_and_no_place_left_open() {
        let cases = cases("/a", "h:1");
        let names: HashSet<_> = cases.iter().map(|case| case.name).collect();
        assert_eq!(names.len(), cases.len());
        for case in &cases {
            assert!(!case.bytes.contains(&b'{'), "{}", case.name);
        }
    }

    #[test]
    fn lengths_are_those_of_the_content() {
        let cases = cases("/a", "h:1");
        let case = cases.iter().find(|case| case.name == "cl-te").unwrap();
        let text = String::from_utf8(case.bytes.clone()).unwrap();
        let (head, content) = text.split_once("\r\n\r\n").unwrap();
        let announced = format!("Content-Length: {}\r\n", content.len());
        assert!(head.contains(&announced), "{text}");
        assert!(content.ends_with("GET /a HTTP/1.1\r\nHost: h:1\r\n\r\n"));
    }
}
