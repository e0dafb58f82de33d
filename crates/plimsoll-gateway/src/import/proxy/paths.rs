//! The path that a server gets: what `proxy_pass` and `rewrite` replace of it.

use plimsoll_model::document::toml_string;
use plimsoll_wire::http::NormalPath;

use crate::import::Notes;
use crate::import::nginx::Directive;
use crate::import::route::Condition;
use crate::import::toml::Keys;

/// The part of the path that the location matched is replaced by the URI of `proxy_pass`.
pub(super) fn replace_path(
    directive: &Directive,
    condition: &Condition<'_>,
    uri: &str,
    keys: &mut Keys,
    notes: &mut Notes,
) {
    if !is_text(uri) || NormalPath::parse(uri.split('?').next().unwrap_or_default()).is_err() {
        notes.add(
            directive,
            format!("the path stays as it is: `{uri}` is not one that a server may be sent"),
        );
        return;
    }
    if uri.contains('?') {
        notes.add(
            directive,
            "the query of the URL comes before that of the request",
        );
    }
    let rule = |from: String| {
        format!(
            "{{ from = {}, to = {} }}",
            toml_string(&from),
            toml_string(&uri.replace('$', "$$"))
        )
    };
    match condition {
        Condition::Prefix(prefix) | Condition::Exact(prefix) if uri == *prefix => {}
        Condition::Regex(regex) if *regex == prefix_expression(uri) => {}
        Condition::Prefix(prefix) if prefix.ends_with('/') && uri.ends_with('/') => {
            if *prefix != "/" {
                keys.set("strip", "true");
            }
            if uri != "/" {
                keys.text("path", uri.trim_end_matches('/'));
            }
        }
        Condition::Prefix(prefix) => {
            keys.set("rewrite", rule(format!("^{}", regex::escape(prefix))));
        }
        Condition::Exact(path) => keys.set("rewrite", rule(format!("^{}$", regex::escape(path)))),
        Condition::Regex(regex) => {
            // A prefix or a path that was written as an expression; of others nginx itself accepts no URI.
            let literal = regex.strip_prefix("(?-i:");
            let prefix = literal.and_then(|it| it.strip_suffix(".*)"));
            let whole = || literal.and_then(|it| it.strip_suffix(')'));
            let replaced = match prefix {
                Some(prefix) => Some(format!("^{prefix}")),
                None => whole().map(|path| format!("^{path}$")),
            };
            match replaced {
                Some(from) => keys.set("rewrite", rule(from)),
                None => notes.add(
                    directive,
                    "the path stays as it is: a regular expression has no part to replace",
                ),
            }
        }
    }
}

/// A prefix as an expression for the whole path.
pub(in crate::import) fn prefix_expression(prefix: &str) -> String {
    format!("(?-i:{}.*)", regex::escape(prefix))
}

/// `rewrite FROM TO [last|break]` within a location that forwards.
pub(super) fn rewritten(directive: &Directive, keys: &mut Keys, notes: &mut Notes) {
    let (from, to) = (directive.argument(0), directive.argument(1));
    let outside = slash_outside(from, to);
    let (from, to) = outside.as_ref().map_or((from, to), |(from, to)| (from, to));
    let is_forwarded = matches!(directive.argument(2), "" | "last" | "break");
    let to = to.strip_suffix('?').unwrap_or(to);
    let has_variable = to
        .split('$')
        .skip(1)
        .any(|it| !it.starts_with(|digit: char| digit.is_ascii_digit()));
    let is_target = is_target(to.split('?').next().unwrap_or_default()) && is_text(to);
    if !is_forwarded || has_variable || !is_target || regex::Regex::new(from).is_err() {
        notes.left_out(directive);
        return;
    }
    if directive.argument(2) == "last" {
        notes.add(directive, "the location is not chosen again");
    }
    // nginx replaces the whole path, wherever the expression matches.
    let start = if from.starts_with('^') { "" } else { "^.*?" };
    let end = if from.ends_with('$') { "" } else { ".*$" };
    let from = if from.contains('|') {
        format!("{start}(?:{from}){end}")
    } else {
        format!("{start}{from}{end}")
    };
    let to = braced(to);
    let rule = format!(
        "{{ from = {}, to = {} }}",
        toml_string(&from),
        toml_string(&to)
    );
    let rules = match keys.get("rewrite") {
        None => format!("[{rule}]"),
        Some(known) => format!(
            "[{}, {rule}]",
            known.trim_start_matches('[').trim_end_matches(']')
        ),
    };
    keys.set("rewrite", rules);
}

/// An expression and a target that begins with its first group, which begins with a slash: with the slash before the group in
/// both, so that the target is a path whatever the group has.
fn slash_outside(from: &str, to: &str) -> Option<(String, String)> {
    let rest = to.strip_prefix("$1").or_else(|| to.strip_prefix("${1}"))?;
    let (before, group) = from.split_once('(')?;
    let group = group.strip_prefix('/')?;
    let (inner, after) = group.split_once(')')?;
    let is_simple = !inner.contains(['(', '|', '[', '\\']);
    let is_once = !after.starts_with(['?', '*', '+', '{']) && !rest.contains("$1");
    let is_plain = !group.starts_with(['?', '*', '+', '{']) && !before.ends_with('\\');
    (is_once && is_plain && is_simple && !rest.contains("${1}"))
        .then(|| (format!("{before}/({group}"), format!("/$1{rest}")))
}

/// Whether a path is one that a server may be sent, with groups in it or not.
fn is_target(path: &str) -> bool {
    path.starts_with('/') && (path.contains('$') || NormalPath::parse(path).is_ok())
}

fn is_text(target: &str) -> bool {
    target.bytes().all(|it| it.is_ascii_graphic() && it != b'#')
}

/// Groups in braces, so that `$1x` is not the group `1x`.
fn braced(text: &str) -> String {
    let mut braced = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        braced.push_str(before);
        // nginx has the groups 1 to 9.
        let digit = after.chars().next().unwrap_or('0');
        braced.push_str("${");
        braced.push(digit);
        braced.push('}');
        rest = after.get(1..).unwrap_or_default();
    }
    braced.push_str(rest);
    braced
}
