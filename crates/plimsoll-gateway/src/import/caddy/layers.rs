//! Directives that requests and responses pass: fields, compression, passwords.

use plimsoll_model::document::{toml_key, toml_string};

use super::super::nginx::Directive;
use super::super::rows::actions::{Fields, Passed};
use super::super::rows::matcher::Matcher;
use super::super::rows::steps::Layer;
use super::super::toml::Keys;
use super::handlers::Scope;
use super::matcher::Named;
use super::proxies;
use super::values::{size, with_places};

/// Directives that say nothing about what is served.
const SILENT: [&str; 9] = [
    "bind",
    // What takes the place of errors is written behind the routes.
    "handle_errors",
    "log",
    "tls",
    "tracing",
    "log_skip",
    "log_append",
    "skip_log",
    "root",
];

/// Whether fields of clients are removed, which servers may believe.
fn is_removal(directive: &Directive) -> bool {
    directive.name == "request_header" && directive.argument(1).starts_with('-')
}

fn is_guard(name: &str) -> bool {
    matches!(name, "basic_auth" | "basicauth" | "forward_auth")
}

/// Whether a directive keeps clients out, or one within it does.
pub(super) fn keeps_out(directive: &Directive) -> bool {
    let name = directive.name.as_str();
    let is_error = |text: &String| text.len() == 3 && text.starts_with(['4', '5']);
    is_guard(name)
        || matches!(name, "abort" | "error")
        || name == "respond" && directive.arguments.iter().any(is_error)
        || directive.block.iter().any(keeps_out)
}

/// What a directive that does not respond makes of the requests that pass it.
pub(super) fn layer(
    directive: &Directive,
    named: &Named<'_>,
    scope: &mut Scope<'_>,
) -> Option<Layer> {
    let name = directive.name.as_str();
    if SILENT.contains(&name) || name.starts_with('@') {
        return None;
    }
    let is_guard = is_guard(name);
    let found = named.matcher_of(directive);
    let (matcher, arguments) = match found {
        Ok(found) => found,
        // Rather too much is kept out, and removed.
        Err(_) if is_guard || is_removal(directive) => (
            Matcher::default(),
            directive.arguments.get(1..).unwrap_or_default(),
        ),
        Err(reason) => {
            scope.notes.add(directive, format!("left out: {reason}"));
            return None;
        }
    };
    let mut passed = Passed::default();
    match name {
        "encode" => {
            let known = ["zstd", "gzip", "br"];
            let codings = arguments.iter().filter(|it| known.contains(&it.as_str()));
            let codings: Vec<_> = codings.map(|it| toml_string(it)).collect();
            let value = match codings.as_slice() {
                [] => "true".to_owned(),
                codings => format!("{{ codings = [{}] }}", codings.join(", ")),
            };
            passed.keys.set("compress", value);
        }
        "header" => {
            passed.response = fields(directive, arguments, scope);
            without_parts(&mut passed.response, directive, scope);
        }
        "request_header" => {
            passed.request = fields(directive, arguments, scope);
            // Servers believe what they get in them.
            if passed.request.removed.iter().any(|it| it.contains('*')) {
                passed.is_closed = true;
                let message = "responds with 501: fields are not removed by a part of their names";
                scope.notes.add(directive, message);
            }
        }
        "request_body" => {
            let most = directive.last("max_size");
            passed.max_request = most.and_then(|it| size(it.argument(0)));
        }
        "basic_auth" | "basicauth" => {
            passed
                .keys
                .set("basic_auth", passwords(directive, arguments, scope));
        }
        "forward_auth" => {
            let (auth, renamed) = proxies::forward_auth(directive, arguments, scope);
            passed.auth = Some(auth);
            passed.request.removed = renamed;
        }
        _ => {
            scope.notes.left_out(directive);
            return None;
        }
    }
    Some(Layer {
        matcher,
        passed,
        directive: directive.clone(),
        is_guard,
    })
}

/// Leaves out fields of responses that are removed by a part of their names.
pub(super) fn without_parts(fields: &mut Fields, directive: &Directive, scope: &mut Scope<'_>) {
    if fields.removed.iter().any(|it| it.contains('*')) {
        let message = "left out in part: fields are not removed by a part of their names";
        scope.notes.add(directive, message);
        fields.removed.retain(|it| !it.contains('*'));
    }
}

/// `header` in one line or as a block.
pub(super) fn fields(directive: &Directive, arguments: &[String], scope: &mut Scope<'_>) -> Fields {
    let mut lines: Vec<(&str, &[String])> = Vec::new();
    if let Some((name, rest)) = arguments.split_first() {
        lines.push((name, rest));
    }
    let within = directive.block.iter().filter(|it| it.name != "defer");
    lines.extend(within.map(|it| (it.name.as_str(), it.arguments.as_slice())));
    let mut fields = Fields::default();
    for (name, values) in lines {
        if let Some(name) = name.strip_prefix('-') {
            fields.removed.push(name.to_owned());
            continue;
        }
        let [value] = values else {
            let message =
                format!("`{name}` is left out: it has no value, or replaces a part of one");
            scope.notes.add(directive, message);
            continue;
        };
        let (table, name) = match name.strip_prefix('+') {
            Some(name) => (&mut fields.add, name),
            None => (&mut fields.set, name.trim_start_matches(['?', '>'])),
        };
        match with_places(value, false) {
            Ok(value) => table.text(name, &value),
            Err(place) => {
                let message = format!("`{name}` is left out: {place}");
                scope.notes.add(directive, message);
            }
        }
    }
    fields
}

/// `basic_auth [HASH [REALM]]` with names and hashes.
fn passwords(directive: &Directive, arguments: &[String], scope: &mut Scope<'_>) -> String {
    let mut users = Vec::new();
    for user in &directive.block {
        let hash = user.argument(0);
        if hash.starts_with('$') {
            users.push(format!("{} = {}", toml_key(&user.name), toml_string(hash)));
        } else {
            scope.notes.add(
                user,
                format!(
                    "`{}` cannot sign in: the hash is not one such as $2a$…",
                    user.name
                ),
            );
        }
    }
    if users.is_empty() {
        // No client gets in, rather than all.
        users.push("nobody = \"*\"".to_owned());
    }
    let mut keys = Keys::default();
    if let [_, realm, ..] = arguments {
        keys.text("realm", realm);
    }
    keys.set("users", format!("{{ {} }}", users.join(", ")));
    keys.inline()
}
