//! Redirects: the URL of `return`, `rewrite` but for that of what is forwarded, and `proxy_redirect`.

use plimsoll_model::document::toml_string;
use plimsoll_server::Moment;

use super::Notes;
use super::nginx::Directive;
use super::patterns::UnknownExpression;
use super::proxy::prefix_expression;
use super::responses::REWRITES;
use super::route::{Condition, Route};
use super::scope::Scope;
use super::toml::Keys;
use super::variables::{NoCounterpart, with_places};

/// Why a `rewrite` is no redirect of `plimsoll up`.
#[derive(Debug, thiserror::Error)]
enum RedirectProblem {
    #[error(transparent)]
    Target(#[from] NoCounterpart),
    #[error(transparent)]
    Expression(#[from] UnknownExpression),
    #[error("the location is an expression by itself")]
    LocationIsExpression,
    #[error("it is within an expression of another form")]
    OtherForm,
    #[error("it matches paths that do not begin with `{0}`")]
    Beyond(String),
}

/// Variables of nginx and their places in targets, longer ones before their beginnings.
const PLACES: [(&str, &str); 10] = [
    ("request_uri", "{path}{query}"),
    ("server_name", "{host}"),
    ("server_port", "{port}"),
    ("http_host", "{authority}"),
    ("is_args", ""),
    ("query_string", "{query}"),
    ("scheme", "{scheme}"),
    ("args", "{query}"),
    ("host", "{host}"),
    ("uri", "{path}"),
];

/// A URL with places for its variables; `None` if one has no counterpart.
///
/// - `groups`: the expression whose groups may stand in it.
pub(super) fn redirect_target(text: &str, groups: Option<&str>) -> Option<String> {
    let groups = groups.map(regex::Regex::new).and_then(Result::ok);
    let mut target = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        if before.contains(['{', '}']) {
            return None;
        }
        target.push_str(before);
        let (name, after) = variable(after)?;
        rest = after;
        if name.starts_with(|it: char| it.is_ascii_digit()) {
            // nginx leaves out a group that is not there.
            let number: usize = name.parse().ok()?;
            let count = groups.as_ref().map_or(1, regex::Regex::captures_len);
            if (1..count).contains(&number) {
                target.extend(["{", name, "}"]);
            }
            continue;
        }
        let has_name = |groups: &regex::Regex| groups.capture_names().any(|it| it == Some(name));
        if groups.as_ref().is_some_and(has_name) {
            target.extend(["{", name, "}"]);
            continue;
        }
        let (_, place) = PLACES.iter().find(|(known, _)| *known == name)?;
        // A port stands behind a host, and the place for both is one.
        if name == "server_port" {
            let host = target.strip_suffix("{host}:")?.to_owned();
            target = host + "{authority}";
            continue;
        }
        // Within a query the question mark of the request is text.
        if name == "request_uri" && target.contains('?') {
            target.push_str("{target}");
            continue;
        }
        if *place == "{query}" {
            // The place has its question mark.
            target.truncate(target.trim_end_matches(['?', '&']).len());
        }
        target.push_str(place);
    }
    if rest.contains(['{', '}']) {
        return None;
    }
    target.push_str(rest);
    Some(target)
}

/// The name of a variable, in braces or not, and what is behind it. Of digits the first alone counts.
pub(super) fn variable(text: &str) -> Option<(&str, &str)> {
    if let Some(braced) = text.strip_prefix('{') {
        return braced.split_once('}');
    }
    let is_part = |it: char| it.is_ascii_alphanumeric() || it == '_';
    let end = if text.starts_with(|it: char| it.is_ascii_digit()) {
        1
    } else {
        text.find(|it| !is_part(it)).unwrap_or(text.len())
    };
    (end > 0).then(|| text.split_at(end))
}

/// Whether a block has a `rewrite` that sends clients elsewhere.
pub(super) fn is_redirecting(block: &[Directive]) -> bool {
    block.iter().any(|it| status_of(it).is_some())
}

/// The status of a `rewrite` that sends clients elsewhere.
fn status_of(directive: &Directive) -> Option<u16> {
    if directive.name != "rewrite" {
        return None;
    }
    match (directive.argument(1), directive.argument(2)) {
        (_, "permanent") => Some(301),
        (_, "redirect") => Some(302),
        (to, "") => {
            let is_url = ["http://", "https://", "$scheme"]
                .iter()
                .any(|it| to.starts_with(it));
            is_url.then_some(302)
        }
        _ => None,
    }
}

/// Directives whose location changes paths as it forwards them.
const FORWARDING: [&str; 6] = [
    "proxy_pass",
    "grpc_pass",
    "fastcgi_pass",
    "uwsgi_pass",
    "scgi_pass",
    "memcached_pass",
];

/// Whether a `rewrite` of a location leads to the location of another path, and nothing else of the block depends on that.
pub(super) fn is_leading(directive: &Directive, block: &[Directive]) -> bool {
    let changes = |it: &&Directive| it.name == "rewrite" && status_of(it).is_none();
    let forwards = |it: &Directive| FORWARDING.contains(&it.name.as_str());
    changes(&directive)
        && matches!(directive.argument(2), "" | "last")
        && directive.argument(1).starts_with('/')
        && !block.iter().any(forwards)
        && block.iter().filter(changes).count() == 1
}

/// Whether a location leads some paths to that of another.
pub(super) fn has_leading(block: &[Directive]) -> bool {
    block.iter().any(|it| is_leading(it, block))
}

/// What a named location does that leads every path to the location of another, and nothing else.
pub(super) fn leading_all(block: &[Directive]) -> Option<String> {
    let others = ["if", "return", "try_files", "break"];
    if block.iter().any(|it| others.contains(&it.name.as_str())) {
        return None;
    }
    let directive = block.iter().find(|it| is_leading(it, block))?;
    let (_, group) = ALL
        .iter()
        .find(|(text, _)| *text == directive.argument(0))?;
    let to = directive.argument(1);
    let to = match group {
        Group::None => to.to_owned(),
        // A named route has no expression: the group is the path that there is.
        Group::Path => to.replace("$1", "$uri"),
        Group::BelowSlash => to.replace("/$1", "$uri"),
    };
    rewrite_to(&to, None).ok()
}

/// The action of a `rewrite`.
fn rewrite_to(to: &str, groups: Option<&str>) -> Result<String, RedirectProblem> {
    let target = toml_string(&with_query(to, groups)?);
    Ok(format!("{{ to = {target} }}"))
}

/// A target with the query of the request behind its own, as nginx has it unless it ends with `?`.
fn with_query(to: &str, groups: Option<&str>) -> Result<String, RedirectProblem> {
    let (to, has_query) = match to.strip_suffix('?') {
        Some(to) => (to, false),
        None => (to, true),
    };
    let target = redirect_target(to, groups);
    let target = target.ok_or_else(|| NoCounterpart(to.to_owned()))?;
    let query = if has_query && !target.contains("{query}") {
        "{query}"
    } else {
        ""
    };
    Ok(format!("{target}{query}"))
}

/// The routes of those of a block that redirect, or of a location that lead to another: they come before what else it does.
///
/// - `is_location`: nginx takes those of a server once, and those of a location as often as a path leads there.
pub(super) fn redirecting(
    condition: &Condition<'_>,
    block: &[Directive],
    is_location: bool,
    notes: &mut Notes,
) -> Vec<Route> {
    let mut routes = Vec::new();
    let mut is_changed = false;
    for directive in block {
        // What follows is not reached.
        if directive.name == "return" {
            break;
        }
        let status = status_of(directive);
        if status.is_none() && !(is_location && is_leading(directive, block)) {
            is_changed |= directive.name == "rewrite";
            continue;
        }
        if is_changed {
            notes.add(
                directive,
                "left out: another `rewrite` changes the path before it",
            );
            continue;
        }
        match redirect(condition, directive, status) {
            Ok(route) => routes.extend(route),
            Err(reason) => notes.add(directive, format!("left out: {reason}")),
        }
    }
    routes
}

/// The route of one; `None` if no request of its location can match.
///
/// - `status`: that of the redirect, if it is one.
fn redirect(
    condition: &Condition<'_>,
    directive: &Directive,
    status: Option<u16>,
) -> Result<Option<Route>, RedirectProblem> {
    let (from, to) = (directive.argument(0), directive.argument(1));
    let Some(path) = within(condition, from)? else {
        return Ok(None);
    };
    let mut keys = Keys::default();
    keys.text("regex", &path);
    match status {
        Some(status) => {
            let target = toml_string(&with_query(to, Some(&path))?);
            keys.set(
                "redirect",
                format!("{{ to = {target}, status = {status} }}"),
            );
        }
        None => keys.set("rewrite", rewrite_to(to, Some(&path))?),
    }
    Ok(Some(Route::new(&keys, directive)))
}

/// Expressions that match every path, with the groups that they have.
const ALL: [(&str, Group); 9] = [
    ("^", Group::None),
    (".*", Group::None),
    ("^.*", Group::None),
    ("^.*$", Group::None),
    ("(.*)", Group::Path),
    ("^(.*)", Group::Path),
    ("^(.*)$", Group::Path),
    ("^/(.*)", Group::BelowSlash),
    ("^/(.*)$", Group::BelowSlash),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Group {
    None,
    /// The whole path.
    Path,
    /// The path without its first slash.
    BelowSlash,
}

/// An expression for the whole path of those requests of a location that `from` matches, with its groups.
fn within(condition: &Condition<'_>, from: &str) -> Result<Option<String>, RedirectProblem> {
    let compiled = regex::Regex::new(from).map_err(|_| UnknownExpression(from.to_owned()))?;
    let all = ALL.iter().find(|(text, _)| *text == from);
    let prefix = match condition {
        Condition::Prefix(prefix) => Some((*prefix).to_owned()),
        Condition::Exact(path) => {
            let expression = format!("(?-i:{})", regex::escape(path));
            return within(&Condition::Regex(expression), from);
        }
        Condition::Regex(expression) => {
            let text = expression
                .strip_prefix("(?-i:")
                .and_then(|it| it.strip_suffix(')'));
            let literal = |text: &str| {
                let plain = unescaped(text)?;
                (regex::escape(&plain) == text).then_some(plain)
            };
            // An exact path, for which it is known whether the other matches.
            if let Some(path) = text.and_then(literal) {
                if !compiled.is_match(&path) {
                    return Ok(None);
                }
                if compiled.captures_len() == 1 {
                    return Ok(Some(expression.clone()));
                }
            }
            text.and_then(|it| it.strip_suffix(".*")).and_then(literal)
        }
    };
    if let Some((_, group)) = all {
        return Ok(Some(match (group, condition) {
            (Group::None, Condition::Regex(expression)) => expression.clone(),
            (Group::Path, Condition::Regex(expression)) => format!("({expression})"),
            (Group::None, _) => prefix_expression(&prefix.unwrap_or_default()),
            (Group::Path, _) => format!("({})", prefix_expression(&prefix.unwrap_or_default())),
            (Group::BelowSlash, _) => {
                let prefix = prefix.ok_or(RedirectProblem::LocationIsExpression)?;
                let below = prefix.strip_prefix('/').unwrap_or(&prefix);
                format!("/({})", prefix_expression(below))
            }
        }));
    }
    let Some(prefix) = prefix else {
        let same = matches!(condition, Condition::Regex(expression) if expression.contains(&format!(":{from})")));
        let anchored = from.trim_start_matches('^').trim_end_matches('$');
        let alike = matches!(condition, Condition::Regex(expression) if expression.contains(&format!(":{anchored})")));
        return match condition {
            Condition::Regex(expression) if same || alike => Ok(Some(expression.clone())),
            _ => Err(RedirectProblem::OtherForm),
        };
    };
    let (anchored, text) = match from.strip_prefix('^') {
        Some(text) => (true, text),
        None => (false, from),
    };
    let (text, end) = match text.strip_suffix('$').filter(|it| !it.ends_with('\\')) {
        Some(text) => (text, ""),
        None => (text, ".*"),
    };
    if anchored {
        // Every path that it matches has to be one of the location.
        let start = text.find(|it| "\\.+*?()|[]{}^$".contains(it));
        let start = start.map_or(text, |at| text.get(..at).unwrap_or_default());
        if prefix != "/" && !start.starts_with(&prefix) {
            return Err(RedirectProblem::Beyond(prefix));
        }
        return Ok(Some(format!("(?-i:{text}){end}")));
    }
    let before = match prefix.as_str() {
        "/" => String::new(),
        prefix => regex::escape(prefix),
    };
    Ok(Some(format!("(?-i:{before}.*?{text}){end}")))
}

/// The text that an escaped one stands for; `None` if it is more than a text.
fn unescaped(text: &str) -> Option<String> {
    let mut plain = String::new();
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => plain.push(characters.next()?),
            it => plain.push(it),
        }
    }
    Some(plain)
}

/// `proxy_redirect`, and what nginx does without one, as rules for the field `location`.
///
/// - `pass`: the URL of `proxy_pass`, without variables.
/// - `is_known`: servers may name themselves by this URL.
pub(super) fn proxy_redirects(
    pass: &str,
    is_known: bool,
    condition: &Condition<'_>,
    scope: &Scope<'_>,
    route: &mut Keys,
    notes: &mut Notes,
) {
    let directives = scope.all("proxy_redirect");
    let mut rules = Vec::new();
    if directives.is_empty() && is_known {
        rules.extend(default_rule(pass, condition, scope));
    }
    for directive in directives {
        match directive.arguments.as_slice() {
            [only] if only == "off" => {
                rules.clear();
                break;
            }
            [only] if only == "default" => rules.extend(default_rule(pass, condition, scope)),
            [from, to] => match rule(from, to, scope) {
                Some(rule) => rules.push(rule),
                None => notes.left_out(directive),
            },
            _ => notes.left_out(directive),
        }
    }
    if !rules.is_empty() {
        route.set(REWRITES, format!("[{}]", rules.join(", ")));
    }
}

/// The URL of `proxy_pass` becomes the path of the location; without a path in it, the root.
fn default_rule(pass: &str, condition: &Condition<'_>, scope: &Scope<'_>) -> Option<String> {
    let (_, rest) = pass.split_once("://")?;
    let (from, to) = if rest.contains('/') {
        let to = match condition {
            Condition::Prefix(path) | Condition::Exact(path) => (*path).to_owned(),
            Condition::Regex(expression) => {
                let text = expression.strip_prefix("(?-i:")?.strip_suffix(')')?;
                let text = text.strip_suffix(".*").unwrap_or(text);
                unescaped(text).filter(|it| regex::escape(it) == text)?
            }
        };
        (pass.to_owned(), to)
    } else {
        (format!("{pass}/"), "/".to_owned())
    };
    rule(&from, &to, scope)
}

fn rule(from: &str, to: &str, scope: &Scope<'_>) -> Option<String> {
    let (from, groups) = if let Some(regex) = from.strip_prefix('~') {
        let (case, text) = match regex.strip_prefix('*') {
            Some(text) => ("(?i)", text),
            None => ("", regex),
        };
        // The whole value is replaced, wherever the expression matches.
        let start = if text.starts_with('^') { "" } else { "^.*?" };
        let end = if text.ends_with('$') { "" } else { ".*$" };
        let whole = format!("{case}{start}{text}{end}");
        regex::Regex::new(&whole).ok()?;
        (whole.clone(), Some(whole))
    } else if from.contains('$') {
        return None;
    } else {
        (format!("^{}", regex::escape(from)), None)
    };
    let places = || {
        let groups = groups
            .as_deref()
            .map(regex::Regex::new)
            .and_then(Result::ok);
        with_places(to, scope, Moment::Request, groups.as_ref())
    };
    let to = redirect_target(to, groups.as_deref()).or_else(places)?;
    Some(format!(
        "{{ name = \"location\", from = {}, to = {} }}",
        toml_string(&from),
        toml_string(&to)
    ))
}
