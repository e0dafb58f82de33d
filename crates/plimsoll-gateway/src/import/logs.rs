//! `access_log` and `log_format` as `[log]`.

use std::fmt::Write as _;

use plimsoll_model::document::{toml_key, toml_string};
use plimsoll_server::Moment;
use regex::Regex;

use super::Notes;
use super::nginx::Directive;
use super::scope::Scope;
use super::variables::with_places;

/// Writes the log that all servers share: that of `http`, or the first one of a server. Others are noted.
pub(super) fn write(outer: &[Directive], out: &mut String, notes: &mut Notes) {
    let mut logs = Vec::new();
    collect(outer, &mut logs);
    let is_file = |it: &&&Directive| {
        let target = it.argument(0);
        target != "off" && !target.starts_with("syslog:") && !target.contains('$')
    };
    let chosen = logs.iter().find(is_file).copied();
    for log in &logs {
        let target = log.argument(0);
        if target.starts_with("syslog:") {
            notes.add(log, "left out: lines go to a file or to standard output");
        } else if target.contains('$') {
            notes.add(log, "left out: the name of the file depends on the request");
        } else if let Some(chosen) = chosen
            && !std::ptr::eq(*log, chosen)
            && (target == "off" || log.arguments.first() != chosen.arguments.first())
        {
            let file = chosen.argument(0);
            notes.add(log, format!("left out: there is one log, `{file}`"));
        }
    }
    let Some(log) = chosen else {
        return;
    };
    if let Some(condition) = log.parameter("if=") {
        notes.add(
            log,
            format!("`if={condition}` is left out: every request has a line"),
        );
    }
    let name = log.arguments.get(1).filter(|it| !it.contains('='));
    let format = match name.map_or("combined", String::as_str) {
        "combined" => Some("\"combined\"".to_owned()),
        name => format(name, outer, notes),
    };
    write!(out, "\n[log]\nfile = {}\n", toml_string(log.argument(0))).ok();
    if let Some(format) = format {
        writeln!(out, "format = {format}").ok();
    }
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
