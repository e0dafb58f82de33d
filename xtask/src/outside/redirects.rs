//! `_redirects` as Cloudflare (workers-sdk) and Netlify (build) test it: each rule that their parsers find in a file has
//! to answer, and each line that they reject has to be reported.

use std::collections::HashMap;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use regex::Regex;

use super::exchange::{request, serve};
use super::{Bench, Results};
use crate::Failure;
use crate::server::Server;

/// Runs the tests of Cloudflare's parser.
pub(super) fn cloudflare(bench: &Bench<'_>) -> Result<Results, Failure> {
    let folder = bench.checkout.join("packages/workers-shared/utils/tests");
    let test = pattern(r"(?s)\ntest\(\x22([^\x22]+)\x22.*?const input = `(.*?)`;(.*?)\n\}\);");
    let rule = pattern(
        r#"(?s)\{\s*from: "([^"]*)",\s*status: (\d+),\s*to: "([^"]*)",\s*lineNumber: \d+,?\s*\}"#,
    );
    let invalid = pattern(r"(?s)\{\s*line: .*?lineNumber: (\d+)");
    let mut results = Results::default();
    for file in [
        "parseRedirects.valid.test.ts",
        "parseRedirects.invalid.test.ts",
    ] {
        let source = fs::read_to_string(folder.join(file)).map_err(|it| it.to_string())?;
        for found in test.captures_iter(&source) {
            let (name, input, rest) = (&found[1], &found[2], &found[3]);
            if input.contains("${") || rest.contains("parseRedirects(input, {") {
                results.skip("input or options that are computed");
                continue;
            }
            let rules = rule.captures_iter(rest);
            let rules = rules.map(|it| Rule::new(&it[1], &it[3], it[2].parse().unwrap_or(302)));
            let lines = invalid.captures_iter(rest);
            let lines = lines.map(|it| it[1].to_owned());
            let case = Case {
                dialect: "cloudflare",
                input: &input.replace("\\n", "\n"),
                rules: rules.collect(),
                invalid: lines.collect(),
            };
            case.run(bench, name, &mut results)?;
        }
    }
    Ok(results)
}

/// Runs the tests of Netlify's parser.
pub(super) fn netlify(bench: &Bench<'_>) -> Result<Results, Failure> {
    let folder = bench.checkout.join("packages/redirect-parser/tests");
    let source =
        fs::read_to_string(folder.join("line-parser.test.ts")).map_err(|it| it.to_string())?;
    let start = pattern(r"redirectsFiles: \['([^']+)'\] \}");
    let rule =
        pattern(r"(?s)\{[^{}]*?from: '([^']*)',\s*path: '[^']*',\s*to: '([^']*)',?([^{}]*)\}");
    let status = pattern(r"status: (\d+)");
    let starts: Vec<_> = start.captures_iter(&source).collect();
    let mut results = Results::default();
    for (number, found) in starts.iter().enumerate() {
        let name = &found[1];
        let from = found.get(0).map_or(0, |it| it.end());
        let next = starts.get(number + 1).and_then(|it| it.get(0));
        let rest = source.get(from..next.map_or(source.len(), |it| it.start()));
        let rest = rest.unwrap_or_default();
        let rest = rest.split("\n  ],\n").next().unwrap_or(rest);
        let file = folder.join("fixtures/redirects_file").join(name);
        let Ok(input) = fs::read_to_string(file) else {
            results.skip("a file that is not there");
            continue;
        };
        let mut rules = Vec::new();
        for found in rule.captures_iter(rest) {
            let status = status.captures(&found[3]).and_then(|it| it[1].parse().ok());
            rules.push(Rule::new(&found[1], &found[2], status.unwrap_or(301)));
        }
        if rules.is_empty() || rules.len() != rest.matches("from:").count() {
            results.skip("a rule with conditions");
            continue;
        }
        let case = Case {
            dialect: "netlify",
            input: &input,
            rules,
            invalid: Vec::new(),
        };
        case.run(bench, name, &mut results)?;
    }
    Ok(results)
}

/// Runs the parser of Netlify on `_redirects` of public repositories, and requests what it finds in them.
///
/// The checkout is a folder with repositories and `node_modules` with `netlify-redirect-parser`.
pub(super) fn files(bench: &Bench<'_>) -> Result<Results, Failure> {
    let script = bench.scratch.join("parse.mjs");
    fs::write(&script, PARSE).map_err(|it| it.to_string())?;
    let parser = bench
        .checkout
        .join("node_modules/netlify-redirect-parser/lib/index.js");
    if !parser.is_file() {
        return Err(format!("{} is not there", parser.display()).into());
    }
    let mut found = Vec::new();
    redirect_files(bench.checkout, &mut found).map_err(|it| it.to_string())?;
    found.sort();
    let mut results = Results::default();
    for file in found {
        let output = Command::new("node")
            .arg(&script)
            .arg(&parser)
            .arg(&file)
            .output()
            .map_err(|it| it.to_string())?;
        let Ok(rules) = serde_json::from_slice::<Vec<ParsedRule>>(&output.stdout) else {
            results.skip("a file that the parser does not read");
            continue;
        };
        let shown = file.strip_prefix(bench.checkout).unwrap_or(&file);
        let shown = shown.display().to_string();
        let input = fs::read_to_string(&file).map_err(|it| it.to_string())?;
        run_file(bench, &shown, &input, &rules, &mut results)?;
    }
    Ok(results)
}

/// Prints the rules of a file as JSON.
const PARSE: &str = "\
import { pathToFileURL } from 'node:url'
const { parseAllRedirects } = await import(pathToFileURL(process.argv[2]))
const { redirects } = await parseAllRedirects({ redirectsFiles: [process.argv[3]], configRedirects: [], minimal: true })
console.log(JSON.stringify(redirects))
";

/// A rule as the parser gives it.
#[derive(Debug, serde::Deserialize)]
struct ParsedRule {
    from: String,
    to: Option<String>,
    status: Option<u16>,
    #[serde(default)]
    conditions: serde_json::Map<String, serde_json::Value>,
    #[serde(default)]
    query: serde_json::Map<String, serde_json::Value>,
}

impl ParsedRule {
    /// Whether it answers each request of its path, as far as this runner sees.
    fn is_plain(&self) -> bool {
        self.conditions.is_empty() && self.query.is_empty() && self.from.starts_with('/')
    }

    /// The values of its placeholders for a path, if it is for that.
    fn matched(&self, path: &str) -> Option<Vec<(String, String)>> {
        let trimmed = |text: &str| text.trim_matches('/').to_owned();
        let (from, path) = (trimmed(&self.from), trimmed(path));
        let mut values = Vec::new();
        let mut segments = path.split('/').filter(|it| !it.is_empty());
        for part in from.split('/').filter(|it| !it.is_empty()) {
            // Everything that follows, also within a segment.
            if let Some(before) = part.strip_suffix('*') {
                let rest = segments.collect::<Vec<_>>().join("/");
                let splat = rest.strip_prefix(before)?.to_owned();
                values.push(("splat".to_owned(), splat));
                return Some(values);
            }
            let segment = segments.next()?;
            match part.strip_prefix(':') {
                Some(name) => values.push((name.to_owned(), segment.to_owned())),
                None if part == segment => {}
                None => return None,
            }
        }
        segments.next().is_none().then_some(values)
    }
}

fn redirect_files(folder: &Path, found: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() && !path.ends_with("node_modules") {
            redirect_files(&path, found)?;
        } else if path.ends_with("_redirects") {
            found.push(path);
        }
    }
    Ok(())
}

/// Requests the path of each rule, and a mutated one; the first rule that is for it answers.
fn run_file(
    bench: &Bench<'_>,
    shown: &str,
    input: &str,
    rules: &[ParsedRule],
    results: &mut Results,
) -> Result<(), Failure> {
    let folder = bench.scratch.join("site");
    fs::create_dir_all(&folder).map_err(|it| it.to_string())?;
    fs::write(folder.join("index.html"), "index").map_err(|it| it.to_string())?;
    fs::write(folder.join("_redirects"), input).map_err(|it| it.to_string())?;
    let site = folder.to_string_lossy();
    let arguments = [
        "serve",
        &*site,
        "--listen",
        "127.0.0.1:0",
        "--dialect",
        "netlify",
    ];
    let serving = match serve(&bench.plimsoll, &arguments) {
        Ok(serving) => serving,
        Err(complaint) => {
            results.add_result(shown, Err(complaint));
            return Ok(());
        }
    };
    let placeholder = pattern(r":[A-Za-z]\w*");
    for rule in rules.iter().take(MOST_RULES) {
        let path = placeholder.replace_all(&rule.from, "place");
        let path = path.replace('*', "rest/of");
        if !rule.is_plain() || path.contains([' ', '"', '?', '#', '<']) || !path.is_ascii() {
            results.skip("a rule with conditions, or of another host");
            continue;
        }
        let path = path.trim_end_matches('/');
        if path.is_empty() {
            continue;
        }
        for path in [path.to_owned(), format!("{path}-mutated")] {
            let first = rules
                .iter()
                .find_map(|rule| Some((rule, rule.matched(&path)?)));
            let (status, to) = match first {
                None => (404, String::new()),
                Some((rule, values)) => {
                    let status = rule.status.unwrap_or(301);
                    if !rule.is_plain() || !(300..400).contains(&status) {
                        results.skip("a rule that rewrites, or has conditions");
                        continue;
                    }
                    let mut to = rule.to.clone().unwrap_or_default();
                    for (name, value) in values {
                        to = to.replace(&format!(":{name}"), &value);
                    }
                    (status, to)
                }
            };
            let answer = request(serving.port, "GET", &path, &[], None);
            let location = answer.field("location").unwrap_or_default();
            let is_met = answer.status == status && (location == to || status == 404);
            let seen = format!("{} {location} instead of {status} {to}", answer.status);
            results.add_result(format!("{shown} {path}"), is_met.then_some(()).ok_or(seen));
        }
    }
    Ok(())
}

/// Rules of one file: generated ones have thousands of the same kind.
const MOST_RULES: usize = 100;

struct Rule {
    from: String,
    to: String,
    status: u16,
}

impl Rule {
    fn new(from: &str, to: &str, status: u16) -> Self {
        Self {
            from: from.to_owned(),
            to: to.to_owned(),
            status,
        }
    }

    /// A request that it answers, and where it leads then; nothing if that is no redirect of a literal path.
    fn case(&self) -> Option<(String, String)> {
        if !(300..400).contains(&self.status) || !self.from.starts_with('/') {
            return None;
        }
        let (mut from, mut to) = (self.from.clone(), self.to.clone());
        if let Some(before) = from.strip_suffix('*') {
            from = format!("{before}rest");
            to = to.replace(":splat", "rest");
        }
        let name = pattern(r"/:([A-Za-z]\w*)");
        let names: Vec<String> = name
            .captures_iter(&from)
            .map(|it| it[1].to_owned())
            .collect();
        for name in names {
            from = from.replace(&format!(":{name}"), "place");
            to = to.replace(&format!(":{name}"), "place");
        }
        (!from.contains(['*', '?', ' ', '"'])).then_some((from, to))
    }
}

struct Case<'c> {
    dialect: &'c str,
    input: &'c str,
    rules: Vec<Rule>,
    /// Numbers of lines that are rejected.
    invalid: Vec<String>,
}

impl Case<'_> {
    fn run(&self, bench: &Bench<'_>, name: &str, results: &mut Results) -> Result<(), Failure> {
        let folder = bench.scratch.join("site");
        fs::create_dir_all(&folder).map_err(|it| it.to_string())?;
        let write = |file: &str, text: &str| {
            fs::write(folder.join(file), text).map_err(|it| it.to_string())
        };
        write("index.html", "index")?;
        write("_redirects", self.input)?;
        let site = folder.to_string_lossy();
        let dialect = ["--dialect", self.dialect];
        let arguments = [&["serve", &*site, "--listen", "127.0.0.1:0"][..], &dialect].concat();
        if !self.invalid.is_empty() {
            let printed = printed(bench, &arguments)?;
            for line in &self.invalid {
                let is_reported = printed.contains(&format!("_redirects:{line}:"));
                let result = is_reported.then_some(());
                let seen = "the line is not reported".to_owned();
                results.add_result(format!("{name}, line {line}"), result.ok_or(seen));
            }
        }
        if self.rules.is_empty() {
            return Ok(());
        }
        let serving = match serve(&bench.plimsoll, &arguments) {
            Ok(serving) => serving,
            Err(complaint) => {
                results.add_result(name, Err(complaint));
                return Ok(());
            }
        };
        let mut seen = HashMap::new();
        for rule in &self.rules {
            let Some((from, to)) = rule.case() else {
                results.skip("a rule that rewrites, or of another host");
                continue;
            };
            // The first rule of a path answers.
            let (to, status) = seen
                .entry(from.clone())
                .or_insert((to, rule.status))
                .clone();
            let answer = request(serving.port, "GET", &from, &[], None);
            let location = answer.field("location").unwrap_or_default();
            let is_met = answer.status == status && location == to;
            let what = format!("{} {location}", answer.status);
            let result = is_met.then_some(());
            results.add_result(
                format!("{name} {from}"),
                result.ok_or(format!("{what} instead of {status} {to}")),
            );
        }
        Ok(())
    }
}

/// What a server prints on its standard error when it reads its rules.
fn printed(bench: &Bench<'_>, arguments: &[&str]) -> Result<String, String> {
    let mut command = Command::new(&bench.plimsoll);
    command
        .args(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut server = Server(command.spawn().map_err(|it| it.to_string())?);
    let stdout = server.0.stdout.take().ok_or("the server has no output")?;
    let mut listening = String::new();
    BufReader::new(stdout)
        .read_line(&mut listening)
        .map_err(|it| it.to_string())?;
    let port = listening.trim_end().trim_end_matches('/');
    let port = port
        .rsplit_once(':')
        .and_then(|(_, port)| port.parse().ok());
    // Rules are read with the first request.
    request(
        port.ok_or("the server does not listen")?,
        "GET",
        "/",
        &[],
        None,
    );
    let stderr = server.0.stderr.take().ok_or("the server has no output")?;
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut lines = BufReader::new(stderr).lines().map_while(Result::ok);
        lines.all(|line| sender.send(line).is_ok())
    });
    let mut text = String::new();
    // It is done when it is silent.
    while let Ok(line) = receiver.recv_timeout(QUIET) {
        text.push_str(&line);
        text.push('\n');
    }
    Ok(text)
}

/// How long a server that has started is quiet.
const QUIET: Duration = Duration::from_millis(1_500);

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("it is a pattern")
}
