//! send and serve-static: requests for static files, as their tests in JavaScript write them.
//!
//! A test with one request to the server with default options, and with expectations that are literals, is run against
//! `plimsoll serve` of its fixtures; others are counted as skipped.

use std::fs;

use regex::Regex;

use super::exchange::{Answer, request, serve};
use super::{Bench, Results};
use crate::Failure;

/// Runs the tests of send.
pub(super) fn send(bench: &Bench<'_>) -> Result<Results, Failure> {
    run(bench, "test/send.js", "app")
}

/// Runs the tests of serve-static.
pub(super) fn serve_static(bench: &Bench<'_>) -> Result<Results, Failure> {
    run(bench, "test/test.js", "server")
}

/// - `server`: the variable of the server with default options.
fn run(bench: &Bench<'_>, file: &str, server: &str) -> Result<Results, Failure> {
    let source = bench.checkout.join(file);
    let source = fs::read_to_string(&source).map_err(|it| it.to_string())?;
    let fixtures = bench.checkout.join("test/fixtures");
    let fixtures = fixtures.to_string_lossy();
    let arguments = ["serve", &*fixtures, "--listen", "127.0.0.1:0"];
    let serving = serve(&bench.plimsoll, &arguments)?;
    let test = pattern(r"(?s)\n( *)it\('([^']+)', function \(done\) \{\n(.*?)\n *\}\)\n");
    let describe = pattern(r"\n( *)describe\('([^']+)'");
    let mut results = Results::default();
    for found in test.captures_iter(&source) {
        let whole = found.get(0).map_or(0, |it| it.start());
        let before = source.get(..whole).unwrap_or_default();
        let body = &found[3];
        let own = format!("var {server} =");
        let is_inline = body.contains("request(createServer({ root: fixtures }))");
        let is_named = body.contains(&format!("request({server})"));
        let is_usual = is_named && !body.contains(&own) && is_default(before, server);
        if !is_inline && !is_usual {
            results.skip("a server with options of the library");
            continue;
        }
        let group = describe.captures_iter(before).last();
        let group = group.map_or_else(String::new, |it| it[2].to_owned());
        let name = format!("{group}: {}", &found[2]);
        let Some(sent) = SentRequest::parse(body) else {
            results.skip("a test of several requests, or of another form");
            continue;
        };
        let answer = request(serving.port, &sent.method, &sent.target, &sent.fields, None);
        match judge(body, &answer) {
            Some(result) => results.add_result(name, result),
            None => results.skip("an expectation that is no literal"),
        }
    }
    Ok(results)
}

/// Whether the server that is in scope behind a text has default options: the last one of that name that belongs to no
/// other test was made so.
fn is_default(before: &str, server: &str) -> bool {
    let made = pattern(&format!(
        r"\n( *)(?:var )?{server} = (createServer\(\)|http\.createServer\(function \(req, res\) \{{\n  function error)?"
    ));
    let opened = pattern(r"\n( *)(it|describe)\(");
    let of_group = |found: &regex::Captures<'_>| {
        let at = found.get(0).map_or(0, |it| it.start());
        let before = before.get(..at).unwrap_or_default();
        let outer = opened
            .captures_iter(before)
            .filter(|it| it[1].len() < found[1].len());
        outer.last().is_none_or(|it| &it[2] == "describe")
    };
    let last = made.captures_iter(before).filter(of_group).last();
    last.is_some_and(|it| it.get(2).is_some())
}

/// A request as a test makes it.
struct SentRequest {
    method: String,
    target: String,
    fields: Vec<(String, String)>,
}

impl SentRequest {
    fn parse(body: &str) -> Option<Self> {
        if body.matches("request(").count() != 1 || body.contains(".end(function") {
            return None;
        }
        let call = pattern(r"\.(get|head|post|options)\('([^']*)'\)");
        let call = call.captures(body)?;
        let set = pattern(r"\.set\('([^']+)', '([^']*)'\)");
        let fields: Vec<_> = set
            .captures_iter(body)
            .map(|it| (it[1].to_owned(), it[2].to_owned()))
            .collect();
        (body.matches(".set(").count() == fields.len()).then(|| Self {
            method: call[1].to_ascii_uppercase(),
            target: call[2].replace(' ', "%20"),
            fields,
        })
    }
}

/// Judges all expectations; nothing if one of them is not known here.
fn judge(body: &str, answer: &Answer) -> Option<Result<(), String>> {
    let expect = pattern(
        r"\.expect\((?:(\d{3})(?:, '([^']*)')?|'([^']+)', (?:'([^']*)'|/([^/]+)/(i?))|'([^']*)'|shouldNotHaveBody\(\)|shouldHaveBody\(Buffer\.from\('([^']*)'\)\)|shouldNotHaveHeader\('([^']+)'\))(?:, done)?\)",
    );
    let found: Vec<_> = expect.captures_iter(body).collect();
    if found.is_empty() || found.len() != body.matches(".expect(").count() {
        return None;
    }
    let text = answer.text();
    for found in found {
        let group = |number: usize| found.get(number).map(|it| it.as_str());
        let whole = &found[0];
        let is_met = if let Some(status) = group(1) {
            answer.status.to_string() == status && group(2).is_none_or(|body| text == body)
        } else if let Some(name) = group(3) {
            let value = answer.field(name).unwrap_or_default();
            match (group(4), group(5)) {
                (Some(wanted), _) => value.eq_ignore_ascii_case(wanted),
                (None, Some(wanted)) => {
                    let flags = if group(6) == Some("i") { "(?i)" } else { "" };
                    let wanted = Regex::new(&format!("{flags}{wanted}")).ok()?;
                    wanted.is_match(value)
                }
                (None, None) => return None,
            }
        } else if let Some(wanted) = group(7).or(group(8)) {
            text == wanted
        } else if let Some(name) = group(9) {
            answer.field(name).is_none()
        } else {
            text.is_empty()
        };
        if !is_met {
            let head: Vec<String> = answer
                .fields
                .iter()
                .map(|(name, value)| format!("{name}: {value}"))
                .collect();
            let body: String = text.chars().take(60).collect();
            let status = answer.status;
            let head = head.join(", ");
            return Some(Err(format!("{whole}, seen {status} [{head}] `{body}`")));
        }
    }
    Some(Ok(()))
}

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("it is a pattern")
}
