//! Go's net/http: requests as its tests of the parser write them, sent to `plimsoll up` with an echo route.
//!
//! A request that Go rejects has to be answered with an error status or a closed connection, one that Go accepts must not be
//! called malformed.

use std::fs;
use std::time::Duration;

use super::exchange::{raw, serve};
use super::{Bench, Results};
use crate::Failure;

/// Runs the suite.
pub(super) fn run(bench: &Bench<'_>) -> Result<Results, Failure> {
    let file = bench.checkout.join("src/net/http/readrequest_test.go");
    let source = fs::read_to_string(&file).map_err(|it| it.to_string())?;
    let config = bench.scratch.join("plimsoll.toml");
    let text = "[[listen]]\naddress = \"127.0.0.1:0\"\n[[route]]\necho = {}\n";
    fs::write(&config, text).map_err(|it| it.to_string())?;
    let serving = serve(&bench.plimsoll, &["up", &config.to_string_lossy()])?;
    let mut results = Results::default();
    for (name, bytes, is_valid) in cases(&source) {
        let answer = raw(serving.port, &bytes, Duration::from_millis(700));
        let seen = format!("{} (closed: {})", answer.status, answer.is_closed);
        let is_rejected = answer.status >= 400 || answer.status == 0;
        let is_right = if is_valid {
            answer.status != 400
        } else {
            is_rejected
        };
        let what = if is_valid {
            "a request that Go accepts"
        } else {
            "a request that Go rejects"
        };
        results.add_result(
            name,
            is_right.then_some(()).ok_or(format!("{what}: {seen}")),
        );
    }
    Ok(results)
}

/// Names, requests, and whether Go accepts them.
fn cases(source: &str) -> Vec<(String, Vec<u8>, bool)> {
    let mut cases = Vec::new();
    let between = |from: &str, to: &str| {
        let rest = source.split_once(from).map_or("", |(_, rest)| rest);
        rest.split_once(to).map_or(rest, |(before, _)| before)
    };
    let valid = between("var reqTests = []reqTest{\n", "\n}\n");
    for (number, entry) in valid.split("\n\t{\n").skip(1).enumerate() {
        let entry = entry.split("\n\t},\n").next().unwrap_or(entry);
        let Some((bytes, rest)) = expression(entry.trim_start()) else {
            continue;
        };
        // The last field is the error; `noError` is none.
        let is_valid = rest
            .trim_end()
            .trim_end_matches('}')
            .trim_end()
            .ends_with("noError,");
        let line = String::from_utf8_lossy(&bytes);
        let line = line.lines().next().unwrap_or_default().to_owned();
        cases.push((format!("reqTests {} {line}", number + 1), bytes, is_valid));
    }
    let invalid = between("var badRequestTests = ", "\n}\n\nfunc");
    for entry in invalid.split("\n\t{\"").skip(1) {
        let Some((name, rest)) = entry.split_once("\", reqBytes(") else {
            continue;
        };
        if let Some((bytes, _)) = expression(rest) {
            // As `reqBytes` makes them.
            let text = String::from_utf8_lossy(&bytes).replace('\n', "\r\n") + "\r\n\r\n";
            cases.push((format!("badRequestTests {name}"), text.into_bytes(), false));
        }
    }
    cases
}

/// The bytes of Go's literals joined by `+`, and the text behind them.
fn expression(text: &str) -> Option<(Vec<u8>, &str)> {
    let mut bytes = Vec::new();
    let mut rest = text;
    loop {
        rest = literal(rest.trim_start(), &mut bytes)?;
        let Some(behind) = rest.trim_start().strip_prefix('+') else {
            return Some((bytes, rest));
        };
        rest = behind;
    }
}

fn literal<'t>(text: &'t str, bytes: &mut Vec<u8>) -> Option<&'t str> {
    if let Some(rest) = text.strip_prefix('`') {
        let (inner, rest) = rest.split_once('`')?;
        bytes.extend_from_slice(inner.as_bytes());
        return Some(rest);
    }
    let rest = text.strip_prefix('"')?;
    let mut characters = rest.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return rest.get(at + 1..),
            '\\' => bytes.push(match characters.next()?.1 {
                'r' => b'\r',
                'n' => b'\n',
                't' => b'\t',
                other => u8::try_from(other).ok()?,
            }),
            other => bytes.extend_from_slice(other.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    None
}
