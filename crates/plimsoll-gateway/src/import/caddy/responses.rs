//! Directives that respond: redirects, texts, files.

use plimsoll_model::document::toml_string;

use super::super::nginx::Directive;
use super::super::rows::actions::{Response, answer};
use super::super::rows::matcher::Matcher;
use super::super::rows::paths::PathMatch;
use super::super::toml::Keys;
use super::handlers::Scope;
use super::untranslated::Untranslated;
use super::values::with_places;

/// What `handle_path` takes off, without a slash at its end, and the requests that it is for.
///
/// - `is_whole`: `/docsx` is one of the requests of `/docs*` too.
pub(super) fn stripping(matcher: &Matcher, is_whole: bool) -> Option<(String, Matcher)> {
    let prefix = match matcher.paths.as_slice() {
        [] => return Some((String::new(), matcher.clone())),
        [PathMatch::Prefix(path) | PathMatch::Exact(path)] => path.trim_end_matches('/').to_owned(),
        // `/docs*`, by which people mean `/docs` and what is below it.
        [PathMatch::Regex(expression)] => {
            let escaped = expression.strip_suffix(".*")?;
            let is_plain = !escaped.contains(['*', '(', '[', '?', '+']);
            is_plain.then(|| escaped.replace('\\', ""))?
        }
        _ => return None,
    };
    let paths = match matcher.paths.as_slice() {
        [PathMatch::Regex(_)] if !is_whole => vec![PathMatch::Prefix(prefix.clone())],
        paths => paths.to_vec(),
    };
    Some((
        prefix,
        Matcher {
            paths,
            ..matcher.clone()
        },
    ))
}

/// `redir TO [CODE]`.
pub(super) fn redirect(arguments: &[String], matcher: &Matcher) -> Result<Keys, Untranslated> {
    let (to, code) = match arguments {
        [to] => (to, "302"),
        [to, code, ..] => (to, code.as_str()),
        [] => return Err(Untranslated::NoTarget),
    };
    let status = match code {
        "permanent" => "301",
        "temporary" => "302",
        "301" | "302" | "303" | "307" | "308" => code,
        other => return Err(Untranslated::Redirect(other.to_owned())),
    };
    let to = with_places(to, matcher.has_groups)?;
    let mut keys = Keys::default();
    let to = toml_string(&to);
    keys.set("redirect", format!("{{ to = {to}, status = {status} }}"));
    Ok(keys)
}

/// `respond [BODY|STATUS] [STATUS]`.
pub(super) fn response(
    directive: &Directive,
    arguments: &[String],
    matcher: &Matcher,
    scope: &mut Scope<'_>,
) -> Keys {
    let is_status = |text: &str| text.len() == 3 && text.parse::<u16>().is_ok();
    let (body, status) = match arguments {
        [only] if is_status(only) => ("", only.as_str()),
        [body, status, ..] => (body.as_str(), status.as_str()),
        [body] => (body.as_str(), "200"),
        [] => ("", "200"),
    };
    let body = directive.last("body").map_or(body, |it| it.argument(0));
    match with_places(body, matcher.has_groups) {
        Ok(filled) if filled != body => {
            let mut keys = Keys::default();
            let template = toml_string(&filled);
            keys.set(
                "respond",
                format!("{{ status = {status}, template = {template} }}"),
            );
            keys
        }
        Ok(_) => answer(status, body),
        Err(error) => {
            let message = format!("the text stays as it is: {error}");
            scope.notes.add(directive, message);
            answer(status, body)
        }
    }
}

/// `error [MESSAGE] STATUS`.
pub(super) fn error(arguments: &[String]) -> Keys {
    let status = arguments.iter().rev().find(|it| it.parse::<u16>().is_ok());
    answer(status.map_or("500", String::as_str), "")
}

/// `file_server`, with `try_files` beside it.
pub(super) fn files(
    directive: &Directive,
    block: &Directive,
    scope: &mut Scope<'_>,
) -> Result<Response, Untranslated> {
    let mut files = files_keys(directive, scope)?;
    if let Some(stripped) = &scope.stripped {
        files.text("strip", stripped);
    }
    for tried in block.block.iter().filter(|it| it.name == "try_files") {
        let own = ["{path}", "{path}/"];
        let names = tried.arguments.iter().map(String::as_str);
        let mut names = names.filter(|it| !own.contains(it));
        if names.clone().any(|it| it == "{path}.html") {
            files.set("clean_urls", "true");
        }
        match names.rfind(|it| *it != "{path}.html") {
            None | Some("=404") => {}
            Some(file) if file.starts_with('/') && !file.contains(['{', '?']) => {
                files.text("fallback", file.trim_start_matches('/'));
            }
            Some(other) => {
                let message = format!("`{other}` is left out: what is not there gets a 404");
                scope.notes.add(tried, message);
            }
        }
    }
    Ok(Response::Files(files, None))
}

pub(super) fn files_keys(
    directive: &Directive,
    scope: &mut Scope<'_>,
) -> Result<Keys, Untranslated> {
    let mut files = Keys::default();
    let own = directive.last("root").map(|it| it.argument(0).to_owned());
    let root = own
        .or_else(|| scope.root.clone())
        .unwrap_or_else(|| ".".to_owned());
    if root.contains('{') {
        return Err(Untranslated::Folder(root));
    }
    files.text("root", &root);
    files.set("clean_urls", "false");
    files.set("optional", "true");
    if let Some(index) = directive.last("index") {
        let names = index.arguments.iter().map(|it| toml_string(it));
        files.set(
            "index",
            format!("[{}]", names.collect::<Vec<_>>().join(", ")),
        );
    }
    let is_listed =
        directive.arguments.iter().any(|it| it == "browse") || directive.last("browse").is_some();
    if is_listed {
        files.set("listing", "true");
    }
    for within in &directive.block {
        match within.name.as_str() {
            // Names that begin with a dot are not served here anyway, and copies that are compressed are.
            "root" | "index" | "browse" | "precompressed" | "hide" => {}
            _ => scope.notes.left_out(within),
        }
    }
    Ok(files)
}
