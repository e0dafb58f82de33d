//! The directives of a site as a tree of steps, in Caddy's order, and what each of them responds with.

use super::super::Notes;
use super::super::nginx::Directive;
use super::super::rows::actions::{Action, Response, answer, not_translated};
use super::super::rows::matcher::Matcher;
use super::super::rows::paths::PathMatch;
use super::super::rows::steps::{Block, Step, Within};
use super::super::upstreams::UpstreamText;
use super::layers::{keeps_out, layer};
use super::matcher::Named;
use super::proxies;
use super::responses::{error, files, files_keys, redirect, response, stripping};
use super::rewriting::Rewriting;
use super::untranslated::Untranslated;

/// What directives of a block have in common.
pub(super) struct Scope<'s> {
    pub(super) upstreams: &'s mut Vec<UpstreamText>,
    /// The folder of files.
    pub(super) root: Option<String>,
    /// The prefix that `handle_path` takes off, without a slash at its end.
    pub(super) stripped: Option<String>,
    pub(super) notes: &'s mut Notes,
}

/// Directives in the order in which Caddy sorts them, and whether they respond; others come first.
const ORDER: [(&str, bool); 22] = [
    ("header", false),
    ("request_body", false),
    ("redir", true),
    ("rewrite", false),
    ("uri", false),
    ("try_files", false),
    ("basic_auth", false),
    ("basicauth", false),
    ("forward_auth", false),
    ("request_header", false),
    ("encode", false),
    ("handle", true),
    ("handle_path", true),
    ("route", true),
    ("abort", true),
    ("error", true),
    ("respond", true),
    ("metrics", true),
    ("reverse_proxy", true),
    ("php_fastcgi", true),
    ("file_server", true),
    ("acme_server", true),
];

/// The steps of a site, `handle` or `route`.
///
/// - `rewriting`: what has changed the path before.
pub(super) fn steps(
    directive: &Directive,
    named: &Named<'_>,
    mut rewriting: Rewriting,
    scope: &mut Scope<'_>,
) -> Block {
    let named = named.within(&directive.block);
    let outer_root = scope.root.clone();
    for root in directive.block.iter().filter(|it| it.name == "root") {
        match root.arguments.as_slice() {
            [root] => scope.root = Some(root.clone()),
            [all, root] if all == "*" => scope.root = Some(root.clone()),
            _ => scope.notes.add(
                root,
                "left out: folders for some paths are those of `handle` here",
            ),
        }
    }
    let mut block = Block::default();
    for step in sorted(directive, &named) {
        if rewriting.add(step, &named) {
            continue;
        }
        if ORDER.contains(&(step.name.as_str(), true)) {
            block.handler(step, &named, &rewriting, directive, scope);
            rewriting.leave(step);
        } else if let Some(mut layer) = layer(step, &named, scope) {
            if layer.is_guard {
                layer.matcher = rewriting.before(layer.matcher);
            }
            block.0.push(Step::Layer(layer));
        }
    }
    scope.root = outer_root;
    block
}

/// The directives of a block, in the order in which requests pass them: as they stand in a `route`, else by their names, and
/// of one name as [`comes_before`] says.
fn sorted<'d>(block: &'d Directive, named: &Named<'_>) -> Vec<&'d Directive> {
    let mut sorted: Vec<&Directive> = Vec::new();
    for directive in &block.block {
        sorted.push(directive);
        if block.name == "route" {
            continue;
        }
        // Caddy's comparison is no order of all directives, so the way of sorting, by insertion, counts too.
        let mut at = sorted.len() - 1;
        while let Some(before) = at.checked_sub(1)
            && let (Some(one), Some(other)) = (sorted.get(at), sorted.get(before))
            && comes_before(one, other, named)
        {
            sorted.swap(at, before);
            at = before;
        }
    }
    sorted
}

/// Whether a directive comes before one that stands before it: by their names, then the one with the longer path if each has
/// one path, or else the one with a matcher if the other has none.
fn comes_before(one: &Directive, other: &Directive, named: &Named<'_>) -> bool {
    let rank = |directive: &Directive| {
        // Both kinds of `handle` are one.
        let name = match directive.name.as_str() {
            "handle_path" => "handle",
            name => name,
        };
        let rank = ORDER.iter().position(|(known, _)| *known == name);
        rank.map_or(0, |rank| rank + 1)
    };
    if rank(one) != rank(other) {
        return rank(one) < rank(other);
    }
    match (named.specificity(one), named.specificity(other)) {
        ((_, Some(path)), (_, Some(before))) => {
            // Of a path with a `*` at its end and without the latter comes first.
            if path.trim_end_matches('*') == before.trim_end_matches('*') {
                path.len() < before.len()
            } else {
                path.len() > before.len()
            }
        }
        ((is_narrow, _), (was_narrow, _)) => is_narrow && !was_narrow,
    }
}

impl Block {
    fn handler(
        &mut self,
        directive: &Directive,
        named: &Named<'_>,
        rewriting: &Rewriting,
        block: &Directive,
        scope: &mut Scope<'_>,
    ) {
        let keeps_out = keeps_out(directive);
        let (matcher, arguments) = match named.matcher_of(directive) {
            Ok(found) => found,
            Err(reason) if keeps_out => {
                let message = format!(
                    "responds with 501 to all requests that come here, since it keeps clients out: {reason}"
                );
                scope.notes.add(directive, message);
                let actions = vec![Action::new(Matcher::default(), not_translated(), directive)];
                let matcher = Matcher::default();
                self.0.push(Step::Actions { matcher, actions });
                return;
            }
            Err(reason) => {
                let message = format!("left out: {reason}");
                scope.notes.add(directive, message);
                return;
            }
        };
        let matcher = if keeps_out {
            rewriting.before(matcher)
        } else {
            matcher
        };
        let (matcher, kind) = match directive.name.as_str() {
            "handle" => (matcher, Within::Handle),
            "route" => (matcher, Within::Route),
            "handle_path" => {
                if let Some((prefix, matcher)) = stripping(&matcher, keeps_out) {
                    (matcher, Within::HandlePath(prefix))
                } else {
                    let message = "responds with 501: what it takes off is no beginning of a path";
                    scope.notes.add(directive, message);
                    let actions =
                        vec![Action::new(Matcher::default(), not_translated(), directive)];
                    self.0.push(Step::Actions { matcher, actions });
                    return;
                }
            }
            _ => {
                let mut actions = actions(directive, arguments, &matcher, block, scope);
                if directive.name == "file_server" {
                    actions.splice(0..0, hidden(directive, scope));
                }
                self.0.push(Step::Actions { matcher, actions });
                return;
            }
        };
        let outer = scope.stripped.clone();
        if let Within::HandlePath(prefix) = &kind {
            let outer = outer.as_deref().unwrap_or("");
            scope.stripped = Some(format!("{outer}{prefix}"));
        }
        let within = steps(directive, named, rewriting.within(&kind), scope);
        scope.stripped = outer;
        self.0.push(Step::Within {
            matcher,
            directive: directive.clone(),
            block: within,
            kind,
        });
    }
}

/// What a directive responds with, for requests of its matcher.
fn actions(
    directive: &Directive,
    arguments: &[String],
    matcher: &Matcher,
    block: &Directive,
    scope: &mut Scope<'_>,
) -> Vec<Action> {
    let made = match directive.name.as_str() {
        "redir" => redirect(arguments, matcher).map(Response::Other),
        "respond" => Ok(Response::Other(response(
            directive, arguments, matcher, scope,
        ))),
        "error" => Ok(Response::Other(error(arguments))),
        "abort" => {
            scope.notes.add(
                directive,
                "responds with 400, where Caddy closes the connection",
            );
            Ok(Response::Other(answer("400", "")))
        }
        "reverse_proxy" => proxies::reverse_proxy(directive, arguments, block, scope),
        "php_fastcgi" => match php(directive, arguments, block, scope) {
            Ok(actions) => return actions,
            Err(reason) => Err(reason),
        },
        // The files beside scripts are those of `php_fastcgi`.
        "file_server"
            if matcher.paths.is_empty()
                && block.block.iter().any(|it| it.name == "php_fastcgi") =>
        {
            return Vec::new();
        }
        "file_server" => files(directive, block, scope),
        _ => Err(Untranslated::Directive),
    };
    let response = made.unwrap_or_else(|reason| {
        let message = format!("responds with 501: {reason}");
        scope.notes.add(directive, message);
        not_translated()
    });
    let mut action = Action::new(Matcher::default(), response, directive);
    if directive.name == "reverse_proxy" {
        action.passed.response = proxies::fields_down(directive, scope);
    }
    vec![action]
}

/// Responds with 404 to paths that have a name which `hide` of a `file_server` has.
fn hidden(directive: &Directive, scope: &mut Scope<'_>) -> Vec<Action> {
    let hidden = directive.block.iter().filter(|it| it.name == "hide");
    let names = hidden.flat_map(|it| &it.arguments);
    let actions = names.filter_map(|name| {
        let name = name.trim_start_matches("./").trim_matches('/');
        // Others are hidden anyway.
        if name.is_empty() || name.starts_with('.') {
            return None;
        }
        if name.contains('/') {
            let message =
                format!("`{name}` is not hidden, since it is a path: move what is not for clients");
            scope.notes.add(directive, message);
            return None;
        }
        let parts: Vec<_> = name.split('*').map(regex::escape).collect();
        let expression = format!(".*/{}(/.*)?", parts.join("[^/]*"));
        let matcher = Matcher::of_path(PathMatch::Regex(expression));
        let response = Response::Other(answer("404", ""));
        Some(Action::new(matcher, response, directive))
    });
    actions.collect()
}

/// Scripts of PHP, the files beside them, and the front controller for everything else.
fn php(
    directive: &Directive,
    arguments: &[String],
    block: &Directive,
    scope: &mut Scope<'_>,
) -> Result<Vec<Action>, Untranslated> {
    let (scripts, front) = proxies::php(directive, arguments, scope)?;
    let within = Matcher::of_path(PathMatch::Regex(".*\\.php(/.*)?".to_owned()));
    let mut actions = vec![Action::new(within, scripts, directive)];
    let files = block.block.iter().find(|it| it.name == "file_server");
    let own = match files.map(|it| files_keys(it, scope)) {
        Some(Ok(keys)) => {
            let name = format!("index.php ({}:{})", directive.file, directive.line);
            actions.push(Action {
                name: Some(name.clone()),
                ..Action::new(Matcher::default(), front, directive)
            });
            Response::Files(keys, Some(name))
        }
        _ => front,
    };
    actions.push(Action::new(Matcher::default(), own, directive));
    Ok(actions)
}
