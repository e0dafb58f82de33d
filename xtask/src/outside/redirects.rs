//! `_redirects` as Cloudflare (workers-sdk) and Netlify (build) test it: each rule that their parsers find in a file has
//! to answer, and each line that they reject has to be reported.

use std::collections::HashMap;
use std::fs;
use std::io::{BufRead as _, BufReader};
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
                results.take(format!("{name}, line {line}"), result.ok_or(seen));
            }
        }
        if self.rules.is_empty() {
            return Ok(());
        }
        let serving = match serve(&bench.plimsoll, &arguments) {
            Ok(serving) => serving,
            Err(complaint) => {
                results.take(name, Err(complaint));
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
            results.take(
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
