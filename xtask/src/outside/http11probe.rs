//! `Http11Probe`: hostile and unusual requests, read from its test cases in C#.
//!
//! Cases whose bytes are string literals and whose verdict is a set of statuses are run; those that compute either
//! are counted as skipped.

use std::fs;
use std::path::Path;
use std::time::Duration;

use regex::Regex;

use super::exchange::{Answer, raw, serve};
use super::{Bench, Results};
use crate::Failure;

const CONFIGURATION: &str = "[[listen]]\naddress = \"127.0.0.1:0\"\n[[route]]\necho = {}\n";
/// Long enough that a server which wants to answer has done so.
const PATIENCE: Duration = Duration::from_millis(700);

/// What a case accepts.
#[derive(Debug, Default, PartialEq, Eq)]
struct Accepted {
    /// Ranges of statuses.
    statuses: Vec<(u16, u16)>,
    close: bool,
    silence: bool,
}

/// Runs the suite.
pub(super) fn run(bench: &Bench<'_>) -> Result<Results, Failure> {
    let file = bench.scratch.join("echo.toml");
    fs::write(&file, CONFIGURATION).map_err(|it| it.to_string())?;
    let serving = serve(&bench.plimsoll, &["up", &file.to_string_lossy()])?;
    let suites = bench.checkout.join("src/Http11Probe/TestCases/Suites");
    let mut results = Results::default();
    for name in [
        "Compliance",
        "Smuggling",
        "MalformedInput",
        "Normalization",
        "Cookie",
        "Capabilities",
    ] {
        let source = read(&suites.join(format!("{name}Suite.cs")))?;
        for case in source.split("yield return new ").skip(1) {
            if !case.starts_with("TestCase") {
                results.skip("several requests in a row");
                continue;
            }
            let Some(id) = field(case, "Id") else {
                continue;
            };
            let Some(bytes) = payload(case, serving.port) else {
                results.skip("the request is computed");
                continue;
            };
            let Some(accepted) = accepted(case) else {
                results.skip("the verdict is computed");
                continue;
            };
            let answer = raw(serving.port, &bytes, PATIENCE);
            results.add_result(id, accepted.judge(&answer));
        }
    }
    Ok(results)
}

fn read(path: &Path) -> Result<String, Failure> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()).into())
}

/// The string literal of a property.
fn field(case: &str, name: &str) -> Option<String> {
    let (_, rest) = case.split_once(&format!("{name} = \""))?;
    let (value, _) = rest.split_once('"')?;
    Some(value.to_owned())
}

/// The bytes of a request that is written as one or more literals.
fn payload(case: &str, port: u16) -> Option<Vec<u8>> {
    let whole = Regex::new(
        r#"(?s)PayloadFactory = (?:ctx|_) => MakeRequest\(\s*((?:\$?"(?:[^"\\]|\\.)*"\s*\+?\s*)+)\),?\s*\n"#,
    )
    .expect("it is a pattern");
    let literal = Regex::new(r#"(\$?)"((?:[^"\\]|\\.)*)""#).expect("it is a pattern");
    let text = whole.captures(case)?.get(1)?.as_str();
    // Anything but the places that are filled in below makes the request computed.
    let place = Regex::new(r"(?:^|[^{])\{[a-zA-Z]").expect("it is a pattern");
    let mut bytes = Vec::new();
    for found in literal.captures_iter(text) {
        let mut value = found[2].to_owned();
        if &found[1] == "$" {
            value = value
                .replace("{ctx.HostHeader}", &format!("localhost:{port}"))
                .replace("{ctx.Port}", &port.to_string())
                .replace("{ctx.Host}", "localhost");
            if place.is_match(&value) {
                return None;
            }
            value = value.replace("{{", "{").replace("}}", "}");
        }
        unescape(&value, &mut bytes)?;
    }
    Some(bytes)
}

/// Escapes of C#.
fn unescape(text: &str, bytes: &mut Vec<u8>) -> Option<()> {
    let mut characters = text.chars().peekable();
    while let Some(it) = characters.next() {
        let code = if it == '\\' {
            match characters.next()? {
                'r' => 13,
                'n' => 10,
                't' => 9,
                '0' => 0,
                '"' => u32::from('"'),
                '\\' => u32::from('\\'),
                kind @ ('x' | 'u') => {
                    let mut digits = String::new();
                    while digits.len() < if kind == 'x' { 2 } else { 4 } {
                        digits.push(characters.next_if(char::is_ascii_hexdigit)?);
                    }
                    u32::from_str_radix(&digits, 16).ok()?
                }
                _ => return None,
            }
        } else {
            u32::from(it)
        };
        // The suite encodes as ASCII, in which everything else is a question mark.
        bytes.push(u8::try_from(code).ok().filter(u8::is_ascii).unwrap_or(b'?'));
    }
    Some(())
}

fn accepted(case: &str) -> Option<Accepted> {
    let mut accepted = Accepted {
        close: case.contains("AllowConnectionClose = true"),
        ..Accepted::default()
    };
    if case.contains("CustomValidator") {
        let (_, expected) = case.split_once("Expected = ")?;
        return described(&field(expected, "Description")?);
    }
    for range in Regex::new(r"StatusCodeRange\.(Exact\((\d+)\)|Range2xx|Range4xxOr5xx|Range4xx)")
        .ok()?
        .captures_iter(case)
    {
        let status = range.get(2).and_then(|it| it.as_str().parse().ok());
        accepted.statuses.push(match (&range[1], status) {
            (_, Some(status)) => (status, status),
            ("Range2xx", None) => (200, 299),
            ("Range4xx", None) => (400, 499),
            _ => (400, 599),
        });
    }
    (accepted.close || !accepted.statuses.is_empty()).then_some(accepted)
}

/// A verdict in words: statuses, `close` and `timeout`; anything else is more than a set.
fn described(text: &str) -> Option<Accepted> {
    let mut accepted = Accepted::default();
    for word in text.split([' ', '/', ',']).filter(|it| !it.is_empty()) {
        match word {
            "or" | "preferred;" | "preferred" | "acceptable" => {}
            "close" => accepted.close = true,
            "timeout" => accepted.silence = true,
            "2xx" => accepted.statuses.push((200, 299)),
            "4xx" => accepted.statuses.push((400, 499)),
            status => {
                let status = status.parse().ok()?;
                accepted.statuses.push((status, status));
            }
        }
    }
    Some(accepted)
}

impl Accepted {
    fn judge(&self, answer: &Answer) -> Result<(), String> {
        let is_accepted = match answer.status {
            0 if answer.is_closed => self.close,
            0 => self.silence,
            status => self
                .statuses
                .iter()
                .any(|&(from, to)| (from..=to).contains(&status)),
        };
        let seen = match answer.status {
            0 if answer.is_closed => "closed".to_owned(),
            0 => "silence".to_owned(),
            status => status.to_string(),
        };
        if is_accepted {
            Ok(())
        } else {
            Err(format!("{seen} where {self:?} is accepted"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_in_words_are_sets() {
        let accepted = described("400/431 or close").unwrap();
        assert_eq!(accepted.statuses, [(400, 400), (431, 431)]);
        assert!(accepted.close && !accepted.silence);
        assert_eq!(described("2xx with Date header"), None);
    }

    #[test]
    fn requests_are_read_from_literals() {
        let case = "PayloadFactory = ctx => MakeRequest(\n $\"GET / HTTP/1.1\\r\\nHost: {ctx.HostHeader}\\r\\n\" +\n \"\\0\\x0B\\r\\n\"),\n";
        assert_eq!(
            payload(case, 80).unwrap(),
            b"GET / HTTP/1.1\r\nHost: localhost:80\r\n\0\x0b\r\n"
        );
        assert_eq!(payload("PayloadFactory = ctx => {", 80), None);
    }
}
