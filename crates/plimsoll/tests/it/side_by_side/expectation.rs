//! What a cell of a table says about a response, or about the request that a server got.
//!
//! Each code span is a claim: a status (`200`), a field with its value or without, part of the content in quotes, a request line, a PROXY
//! header, the address of a server. `…` stands for anything, and `no` before a span turns it around.

use regex::Regex;

use super::request::Received;

/// What a cell says.
#[derive(Debug, Default)]
pub(super) struct Expectation {
    claims: Vec<Claim>,
    /// Servers of which each gets such a request, and no other.
    pub(super) servers: Vec<String>,
    /// It is always the same one.
    pub(super) is_one_server: bool,
    /// The first server gets about twice as many as the second one.
    pub(super) is_twice: bool,
}

#[derive(Debug)]
struct Claim {
    text: String,
    is_negated: bool,
    is_of_request: bool,
}

impl Expectation {
    /// - `response`: the cell about the response; behind the words `the server gets` it is about the request too.
    /// - `request`: the cell about the request.
    pub(super) fn from_cells(response: &str, request: &str) -> Self {
        let (response, more) = response
            .split_once("the server gets")
            .unwrap_or((response, ""));
        let mut expectation = Self {
            is_one_server: request.contains("at one server"),
            is_twice: request.contains("twice as often"),
            ..Self::default()
        };
        for (cell, is_of_request) in [(response, false), (more, true), (request, true)] {
            for (text, is_negated) in spans(cell) {
                if is_server(&text) {
                    expectation.servers.push(text);
                } else {
                    expectation.claims.push(Claim {
                        text,
                        is_negated,
                        is_of_request,
                    });
                }
            }
        }
        expectation
    }

    /// The first claim that does not hold.
    pub(super) fn unmet(&self, received: &Received) -> Option<String> {
        let unmet = self
            .claims
            .iter()
            .find(|it| it.holds(received) == it.is_negated);
        if let Some(claim) = unmet {
            let no = if claim.is_negated { "no " } else { "" };
            return Some(format!("{no}`{}` is expected", claim.text));
        }
        let server = received.server();
        let is_known = self.servers.is_empty() || self.servers.iter().any(|it| it == server);
        (!is_known).then(|| format!("a request of {:?} is expected", self.servers))
    }
}

impl Claim {
    fn holds(&self, received: &Received) -> bool {
        let text = self.text.as_str();
        let field = |name: &str| {
            if self.is_of_request {
                received.request_field(name)
            } else {
                received.field(name)
            }
        };
        if let Some(content) = text.strip_prefix('"') {
            let content = content.strip_suffix('"').unwrap();
            return received.content().contains(content);
        }
        if text.starts_with("PROXY ") {
            return field("proxied").is_some_and(|it| is_like(text, &it));
        }
        if let Some((name, value)) = text.split_once(": ") {
            return field(name).is_some_and(|it| is_like(value, &it));
        }
        if text.contains(" /") {
            assert!(self.is_of_request, "`{text}` is no claim about a response");
            return is_like(text, received.request_line());
        }
        match text.parse::<u16>() {
            Ok(status) => received.status == status,
            Err(_) => field(text).is_some(),
        }
    }
}

/// The code spans of a cell, and whether `no` stands before each.
pub(super) fn spans(cell: &str) -> Vec<(String, bool)> {
    let parts: Vec<&str> = cell.split('`').collect();
    assert!(parts.len() % 2 == 1, "a span of {cell} has no end");
    let spans = parts.chunks_exact(2);
    spans
        .map(|pair| {
            let is_negated = pair[0] == "no " || pair[0].ends_with(" no ");
            (pair[1].to_owned(), is_negated)
        })
        .collect()
}

fn is_server(text: &str) -> bool {
    text.starts_with("10.0.0.") && text.contains(':')
}

/// Whether a text is that of the page, in which `…` stands for anything.
fn is_like(page: &str, text: &str) -> bool {
    let pattern = regex::escape(page).replace('…', ".*");
    let pattern = Regex::new(&format!("^{pattern}$")).expect("an escaped text is a pattern");
    pattern.is_match(text)
}

#[test]
fn claims_hold_or_not() {
    let received = Received::new(
        200,
        "HTTP/1.1 200 OK\r\nX-A: b c\r\nServer: x",
        "10.0.0.1:8080\nGET /a?b\nhost: c\n0 bytes\n",
    );
    for (response, request, is_met) in [
        (
            "`200`, `X-A: b…`, no `X-B`",
            "`GET /a?b`, `Host: c`, no `Cookie`",
            true,
        ),
        (
            "`Server`, `\"0 bytes\"`",
            "at `10.0.0.1:8080`: `GET /…`",
            true,
        ),
        (
            "`200`, the server gets at `10.0.0.1:8080`: `Host: c`",
            "",
            true,
        ),
        ("`404`", "", false),
        ("no `200`", "", false),
        ("`X-A: c`", "", false),
        ("no `X-A`", "", false),
        ("", "`Host`, no `Host`", false),
        ("", "`GET /`", false),
        ("", "at `10.0.0.2:8080`: `GET /…`", false),
        ("`200`, the server gets `Host: d`", "", false),
    ] {
        let expectation = Expectation::from_cells(response, request);
        let unmet = expectation.unmet(&received);
        assert_eq!(unmet.is_none(), is_met, "{response} | {request}: {unmet:?}");
    }
}
