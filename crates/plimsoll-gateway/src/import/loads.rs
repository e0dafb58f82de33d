//! What the import writes loads: it is compiled as `up` does it, and what `up` would refuse is closed or left out, with a
//! note.
//!
//! Files that the configuration names may be elsewhere while it is translated, so their absence is no reason to leave
//! anything out.

use std::fmt::Write as _;
use std::ops::Range;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use plimsoll_model::document::toml_key;
use plimsoll_server::config::{ActionKind, Compiler, ConfigProblem, Mounted, Value};
use plimsoll_server::{Action, Counters, MakeAction, Respond, Response, WorkerContext};

use super::route::Route;
use super::servers::Translation;
use super::{ImportNote, Notes};
use crate::config::{CONNECT, GUARDS, LISTENS, PROXY, TRACES, UPSTREAMS};

/// Times that a translation is repaired: a route may have problems of its own, and then one with an upstream that is gone.
const ROUNDS: usize = 8;

/// The route that stands in for one that `up` would refuse.
const CLOSED: &str = "respond = { status = 501, body = \"not translated\\n\" }\n";

/// Keys of a route that say which requests it is for.
const CONDITIONS: [&str; 12] = [
    "name", "internal", "listen", "host", "path", "prefix", "pattern", "regex", "method", "header",
    "query", "places",
];

/// The whole file, without what `up` refuses.
///
/// - `directory`: what paths in the file are relative to.
pub(super) fn loading(mut parts: Translation, directory: &Path, notes: &mut Notes) -> String {
    for _ in 0..ROUNDS {
        let (text, lines) = written(&parts);
        let problems = problems(&text, directory);
        if problems.is_empty() {
            return text;
        }
        repair(&mut parts, &lines, &problems, notes);
    }
    written(&parts).0
}

/// The part of the file that begins at a line.
#[derive(Clone, Copy)]
enum Part {
    Head,
    Route(usize),
    Upstream(usize),
}

/// The file, and the lines at which its parts begin.
fn written(parts: &Translation) -> (String, Vec<(usize, Part)>) {
    let mut text = format!(
        "# Translated from {}. The report of the translation lists what was left out.\n",
        parts.source
    );
    let mut lines = vec![(1, Part::Head)];
    text.push_str(&parts.head);
    let mut begin = |text: &str, part| lines.push((text.lines().count() + 1, part));
    for (number, route) in parts.routes.iter().enumerate() {
        begin(&text, Part::Route(number));
        text.push_str("\n[[route]]\n");
        text.push_str(&route.text);
    }
    for (number, upstream) in parts.upstreams.iter().enumerate() {
        begin(&text, Part::Upstream(number));
        writeln!(text, "\n[upstream.{}]", toml_key(&upstream.name)).ok();
        text.push_str(&upstream.keys);
    }
    (text, lines)
}

/// What `up` refuses, but for files that are not there.
pub(super) fn problems(text: &str, directory: &Path) -> Vec<ConfigProblem> {
    let mut compiler = Compiler::new(directory, &Arc::<Counters>::default());
    compiler.actions.extend([PROXY, CONNECT, FILES]);
    compiler.guards.extend(GUARDS);
    compiler.sections.extend([UPSTREAMS, TRACES]);
    compiler.listens.extend(LISTENS);
    let problems = compiler.compile(text).err().unwrap_or_default();
    let is_of_file =
        |it: &ConfigProblem| it.message.contains("cannot read") || it.message.contains("(os error");
    problems.into_iter().filter(|it| !is_of_file(it)).collect()
}

/// In the place of the action of the site's crate, whose keys `files::files` writes.
const FILES: ActionKind = ActionKind {
    key: "files",
    compile: no_files,
};

#[expect(clippy::unnecessary_wraps, reason = "as every action is compiled")]
fn no_files(_: Value<'_>, _: &Mounted<'_>) -> Option<Arc<MakeAction>> {
    Some(Arc::new(|_: &WorkerContext| {
        let response = Response::text(http::StatusCode::NOT_FOUND, "not found\n");
        Rc::new(Respond::new(response)) as Rc<dyn Action>
    }))
}

fn repair(
    parts: &mut Translation,
    lines: &[(usize, Part)],
    problems: &[ConfigProblem],
    notes: &mut Notes,
) {
    let mut left_out = Vec::new();
    for problem in problems {
        let begun = lines.iter().rev().find(|(line, _)| *line <= problem.line);
        let (first, part) = begun.copied().unwrap_or((1, Part::Head));
        match part {
            Part::Route(number) => {
                if let Some(route) = parts.routes.get_mut(number) {
                    close(route, problem, notes);
                }
            }
            Part::Upstream(number) => {
                let Some(upstream) = parts.upstreams.get_mut(number) else {
                    continue;
                };
                notes.0.push(ImportNote {
                    file: upstream.file.to_string(),
                    line: upstream.line,
                    message: format!("upstream: left out: {}: {}", problem.key, problem.message),
                });
                // An empty line and the head of the table come first.
                let at = problem.line.checked_sub(first + 2);
                let line = at.and_then(|at| upstream.keys.lines().nth(at));
                match (at, line) {
                    (Some(at), Some(line)) if !line.starts_with("servers") => {
                        upstream.keys = without_lines(&upstream.keys, at..at + 1);
                    }
                    _ => left_out.push(number),
                }
            }
            Part::Head => {
                let (file, line) = parts.at.clone();
                notes.0.push(ImportNote {
                    file: file.to_string(),
                    line,
                    message: format!("left out: {}: {}", problem.key, problem.message),
                });
                // The head of the file has a line of its own.
                let at = problem.line.saturating_sub(2);
                parts.head = without_lines(&parts.head, table_around(&parts.head, at));
            }
        }
    }
    let mut number = 0;
    parts.upstreams.retain(|_| {
        number += 1;
        !left_out.contains(&(number - 1))
    });
}

/// The lines of the table that a line is in: a listener without one of its keys could let in more.
fn table_around(text: &str, at: usize) -> Range<usize> {
    let lines: Vec<_> = text.lines().collect();
    let is_head = |line: &&str| line.starts_with('[');
    let begin = lines.iter().take(at + 1).rposition(is_head).unwrap_or(at);
    let behind = lines.iter().skip(begin + 1).position(is_head);
    begin..behind.map_or(lines.len(), |it| begin + 1 + it)
}

fn without_lines(text: &str, gone: Range<usize>) -> String {
    let lines = text.lines().enumerate();
    let kept = lines.filter(|(number, _)| !gone.contains(number));
    kept.fold(String::new(), |text, (_, line)| text + line + "\n")
}

/// Keeps the conditions of a route and responds with an error, so that no other route takes its requests. A condition that
/// is the problem itself goes too: then more is closed.
fn close(route: &mut Route, problem: &ConfigProblem, notes: &mut Notes) {
    notes.0.push(ImportNote {
        file: route.file.to_string(),
        line: route.line,
        message: format!(
            "{}: responds with 501: {}: {}",
            route.directive, problem.key, problem.message
        ),
    });
    let wrong = problem.key.split('.').nth(1).unwrap_or_default();
    let is_kept = |line: &&str| {
        let key = line.split(' ').next().unwrap_or_default();
        CONDITIONS.contains(&key) && key != wrong
    };
    let kept = route.text.lines().filter(is_kept);
    route.text = kept.fold(String::new(), |text, line| text + line + "\n") + CLOSED;
}
