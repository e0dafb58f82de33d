//! `access_log` and `log_format` as logs, and which routes have which.

use std::fmt::Write as _;

use plimsoll_model::document::{toml_key, toml_string};
use plimsoll_server::Moment;
use regex::Regex;

use super::Notes;
use super::nginx::Directive;
use super::scope::Scope;
use super::toml::Keys;
use super::variables::{differences, with_places};

/// Writes the logs, one for each file. Those of `http`, or of the first server that has any, are for the requests of all
/// routes that [`choose`] no other.
pub(super) fn write(outer: &[Directive], out: &mut String, notes: &mut Notes) {
    let mut directives = Vec::new();
    collect(outer, &mut directives);
    let mut logs: Vec<&Directive> = Vec::new();
    for directive in directives {
        let target = directive.argument(0);
        if target.starts_with("syslog:") {
            notes.add(
                directive,
                "left out: lines go to a file or to standard output",
            );
        } else if target.contains('$') {
            notes.add(
                directive,
                "left out: the name of the file depends on the request",
            );
        } else if let Some(known) = logs.iter().find(|it| it.argument(0) == target) {
            let own = |it: &Directive| {
                (
                    format_of(it).to_owned(),
                    it.parameter("if=").map(str::to_owned),
                )
            };
            if own(directive) != own(known) {
                notes.add(
                    directive,
                    format!("`{target}` has the format and the condition that it is given first"),
                );
            }
        } else if target != "off" {
            logs.push(directive);
        }
    }
    let defaults = defaults(outer);
    let is_only = logs.len() == 1 && defaults.len() == 1;
    for log in logs {
        let file = toml_string(log.argument(0));
        if is_only {
            write!(out, "\n[log]\nfile = {file}\n").ok();
        } else {
            write!(out, "\n[[log]]\nname = {file}\nfile = {file}\n").ok();
            if defaults.contains(&log.argument(0)) {
                out.push_str("default = true\n");
            }
        }
        if log
            .arguments
            .iter()
            .skip(1)
            .any(|it| it.starts_with("gzip"))
        {
            notes.add(
                log,
                "`gzip` is left out: lines are written as they are; nginx would compress them",
            );
        }
        let format = match format_of(log) {
            "combined" => Some("\"combined\"".to_owned()),
            name => format(name, outer, notes),
        };
        if let Some(format) = format {
            writeln!(out, "format = {format}").ok();
        }
        if let Some(condition) = log.parameter("if=") {
            match with_places(condition, &Scope::new(outer), Moment::End, None) {
                Some(when) => _ = writeln!(out, "when = {}", toml_string(&when)),
                None => notes.add(
                    log,
                    format!("`if={condition}` is left out: every request has a line"),
                ),
            }
        }
    }
}

/// Has a route choose its logs, if they are others than those of most.
pub(super) fn choose(scope: &Scope<'_>, keys: &mut Keys) {
    let own = scope.all("access_log");
    if own.is_empty() {
        return;
    }
    let own = files(&own);
    if own == defaults(scope.outermost().innermost()) {
        return;
    }
    let names: Vec<_> = own.iter().map(|it| toml_string(it)).collect();
    match names.as_slice() {
        [] => keys.set("log", "false"),
        [one] => keys.set("log", one.as_str()),
        several => keys.set("log", format!("[{}]", several.join(", "))),
    }
}

/// The files of the logs of `http`, or of the first server that has any.
fn defaults(outer: &[Directive]) -> Vec<&str> {
    let own = |block| Scope::new(block).all("access_log");
    let of_http = own(outer);
    let servers = outer.iter().filter(|it| it.name == "server");
    let mut of_servers = servers.map(|server| own(&server.block));
    let first = match of_http.as_slice() {
        [] => of_servers.find(|logs| !files(logs).is_empty()),
        _ => Some(of_http),
    };
    files(&first.unwrap_or_default())
}

/// The files that directives of one block name; none if one of them is `off`.
fn files<'a>(directives: &[&'a Directive]) -> Vec<&'a str> {
    let targets = directives.iter().map(|it| it.argument(0));
    if targets.clone().any(|it| it == "off") {
        return Vec::new();
    }
    let mut files: Vec<&str> = Vec::new();
    for file in targets {
        let is_file = !file.starts_with("syslog:") && !file.contains('$');
        if is_file && !files.contains(&file) {
            files.push(file);
        }
    }
    files
}

/// The name of the format of a log.
fn format_of(log: &Directive) -> &str {
    let name = log.arguments.get(1).filter(|it| !it.contains('='));
    name.map_or("combined", String::as_str)
}

/// Those of a block and of the blocks within it, the outer ones first.
fn collect<'a>(block: &'a [Directive], logs: &mut Vec<&'a Directive>) {
    logs.extend(block.iter().filter(|it| it.name == "access_log"));
    for inner in block {
        if matches!(
            inner.name.as_str(),
            "server" | "location" | "if" | "limit_except"
        ) {
            collect(&inner.block, logs);
        }
    }
}

/// The format of that name as TOML.
fn format(name: &str, outer: &[Directive], notes: &mut Notes) -> Option<String> {
    let scope = Scope::new(outer);
    let formats = outer.iter().rev().filter(|it| it.name == "log_format");
    let format = formats.into_iter().find(|it| it.argument(0) == name)?;
    let parts = format.arguments.get(1..).unwrap_or_default();
    let (escape, parts) = match parts.split_first() {
        Some((first, rest)) if first.starts_with("escape=") => (first.as_str(), rest),
        _ => ("escape=default", parts),
    };
    let text = parts.concat();
    for difference in differences(&text) {
        notes.add(format, difference);
    }
    if escape == "escape=json"
        && let Some(object) = object(&text, &scope)
    {
        return Some(object);
    }
    if escape != "escape=default" {
        notes.add(
            format,
            format!("`{escape}` is left out: values are escaped as nginx does by default"),
        );
    }
    let filled = with_places(&text, &scope, Moment::End, None);
    if filled.is_none() {
        notes.add(
            format,
            format!("`{name}` has a variable without a counterpart: lines are JSON with everything that is known"),
        );
    }
    filled.map(|it| toml_string(&it))
}

/// A JSON object whose values are texts with variables as a table; `None` if the text is something else.
fn object(text: &str, scope: &Scope<'_>) -> Option<String> {
    let members = text.trim().strip_prefix('{')?.strip_suffix('}')?;
    let member = Regex::new(
        r#"^\s*"([^"\\]*)"\s*:\s*(?:"([^"\\]*)"|([$][{]?\w+[}]?|[0-9.]+|true|false))\s*(,|$)"#,
    )
    .ok()?;
    let mut rest = members;
    let mut pairs = Vec::new();
    while !rest.trim().is_empty() {
        let found = member.captures(rest)?;
        let value = found.get(2).or_else(|| found.get(3))?;
        let value = with_places(value.as_str(), scope, Moment::End, None)?;
        pairs.push(format!("{} = {}", toml_key(&found[1]), toml_string(&value)));
        rest = rest.get(found.get(0)?.end()..)?;
    }
    (!pairs.is_empty()).then(|| format!("{{ {} }}", pairs.join(", ")))
}
