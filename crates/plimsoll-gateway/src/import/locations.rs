//! `location` blocks as routes, in nginx's order of precedence.
//!
//! nginx takes the exact location, then the longest prefix if it has `^~`, then the first regular expression in the file,
//! then the longest prefix. In plimsoll prefixes come before regular expressions. So where a server has both, or a
//! prefix that may end within a segment, its prefixes without `^~` become regular expressions, the longest first.

use std::rc::Rc;

use plimsoll_server::PathCondition;

use super::Notes;
use super::access;
use super::nginx::Directive;
use super::proxy::{prefix_expression, proxy};
use super::redirects::{is_redirecting, redirecting};
use super::responses::{files, middleware, returned};
use super::scope::Scope;
use super::toml::Keys;
use super::upstreams::Upstreams;
use super::variants::{Variant, variants};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Exact,
    /// `^~`
    FirstPrefix,
    Prefix,
    Regex,
    /// `~*`
    RegexAnyCase,
}

struct Location<'a> {
    kind: Kind,
    pattern: &'a str,
    directive: &'a Directive,
    /// The locations around it, whose directives it inherits.
    outer: Vec<&'a Directive>,
}

/// Path condition of a route.
pub(super) enum Condition<'a> {
    Exact(&'a str),
    Prefix(&'a str),
    Regex(String),
}

/// One route as text, and the directive that it comes from.
#[derive(Debug, Clone)]
pub(super) struct Route {
    pub(super) file: Rc<str>,
    pub(super) line: usize,
    pub(super) directive: String,
    pub(super) text: String,
}

impl Route {
    pub(super) fn new(keys: &Keys, directive: &Directive) -> Self {
        let mut text = String::new();
        keys.lines(&mut text);
        Self {
            file: Rc::clone(&directive.file),
            line: directive.line,
            directive: directive.name.clone(),
            text,
        }
    }
}

/// The routes of a server, each without its host.
pub(super) fn routes(
    server: &Directive,
    scope: &Scope<'_>,
    upstreams: &mut Upstreams,
    notes: &mut Notes,
) -> Vec<Route> {
    let mut locations = Vec::new();
    // A `return` of the server comes before any location.
    if server.last("return").is_none() {
        collect(server, &[], &mut locations, notes);
    }
    let is_regex = |it: &Location<'_>| matches!(it.kind, Kind::Regex | Kind::RegexAnyCase);
    let is_within_segment =
        |it: &Location<'_>| it.kind == Kind::Prefix && !it.pattern.ends_with('/');
    // A `rewrite` that redirects is an expression, and comes before what else its location does.
    let has_redirects = is_redirecting(&server.block)
        || locations
            .iter()
            .any(|it| is_redirecting(&it.directive.block));
    let by_regex = has_redirects
        || locations
            .iter()
            .any(|it| is_regex(it) || is_within_segment(it));
    let has_regex = has_redirects || locations.iter().any(is_regex);
    // Nothing of an expression can come first below such a prefix.
    let stays_prefix = |location: &Location<'_>| {
        let mut others = locations.iter();
        location.pattern.ends_with('/')
            && location.pattern != "/"
            && !has_regex
            && !others.any(|it| is_within_segment(it) && it.pattern.starts_with(location.pattern))
    };
    let mut routes = slash_redirects(&locations);
    routes.extend(redirecting(&Condition::Prefix("/"), &server.block, notes));
    let mut write = |condition: &Condition<'_>,
                     location: &Location<'_>,
                     routes: &mut Vec<Route>,
                     notes: &mut Notes| {
        let mut scope = scope.clone();
        for outer in &location.outer {
            scope = scope.within(&outer.block);
        }
        routes.extend(redirecting(condition, &location.directive.block, notes));
        for variant in variants(&server.block, &location.directive.block, notes) {
            let context = Context {
                server,
                location,
                scope: &scope.within(&variant.block),
                variant: &variant,
            };
            routes.push(route(condition, &context, upstreams, notes));
        }
    };
    for location in locations.iter().filter(|it| it.kind == Kind::Exact) {
        let condition = if has_redirects {
            Condition::Regex(exact_expression(location.pattern))
        } else {
            Condition::Exact(location.pattern)
        };
        write(&condition, location, &mut routes, notes);
    }
    for location in locations.iter().filter(|it| it.kind == Kind::FirstPrefix) {
        let is_shadowing = locations.iter().any(|it| {
            it.kind == Kind::Prefix
                && it.pattern != location.pattern
                && it.pattern.starts_with(location.pattern)
        });
        if is_shadowing && by_regex {
            notes.add(
                location.directive,
                format!(
                    "longer prefixes than `{}` come after it here",
                    location.pattern
                ),
            );
        }
        if !location.pattern.ends_with('/') && !has_redirects {
            notes.add(
                location.directive,
                format!("`{}` covers whole segments here", location.pattern),
            );
        }
        let condition = if has_redirects {
            Condition::Regex(prefix_expression(location.pattern))
        } else {
            Condition::Prefix(location.pattern)
        };
        write(&condition, location, &mut routes, notes);
    }
    for location in locations.iter().filter(|it| is_regex(it)) {
        match whole_path(location, location.pattern) {
            Ok(regex) => write(&Condition::Regex(regex), location, &mut routes, notes),
            // Other locations must not let in whom this one keeps out.
            Err(reason) if access::is_closing(location.directive) => {
                let wider = whole_path(location, &without_look_around(location.pattern));
                let wider = wider.unwrap_or_else(|_| "/.*".to_owned());
                notes.add(
                    location.directive,
                    format!("paths that match `{wider}` respond with 403: {reason}"),
                );
                let mut keys = Keys::default();
                keys.text("regex", &wider);
                access::forbid(&mut keys);
                routes.push(Route::new(&keys, location.directive));
            }
            Err(reason) => notes.add(location.directive, format!("left out: {reason}")),
        }
    }
    let mut prefixes: Vec<_> = locations
        .iter()
        .filter(|it| it.kind == Kind::Prefix)
        .collect();
    prefixes.sort_by_key(|it| std::cmp::Reverse(it.pattern.len()));
    for location in &prefixes {
        let is_alias = location.directive.last("alias").is_some();
        if by_regex && is_alias && !stays_prefix(location) {
            notes.add(
                location.directive,
                "comes before regular expressions here: files of an `alias` are found below a prefix",
            );
        }
        let condition = if by_regex && !is_alias && !stays_prefix(location) {
            Condition::Regex(prefix_expression(location.pattern))
        } else {
            Condition::Prefix(location.pattern)
        };
        write(&condition, location, &mut routes, notes);
    }
    if !prefixes.iter().any(|it| it.pattern == "/") {
        for variant in variants(&server.block, &[], notes) {
            let route = server_route(server, scope, &variant, by_regex, upstreams, notes);
            routes.push(route);
        }
    }
    routes
}

/// Redirects to the slash that the path of a forwarding location ends with.
fn slash_redirects(locations: &[Location<'_>]) -> Vec<Route> {
    let forwards = |it: &&Location<'_>| {
        let names = ["proxy_pass", "grpc_pass", "fastcgi_pass", "uwsgi_pass"];
        let is_prefix = matches!(it.kind, Kind::Prefix | Kind::FirstPrefix);
        is_prefix && names.iter().any(|name| it.directive.last(name).is_some())
    };
    let routes = locations.iter().filter(forwards).filter_map(|it| {
        let path = it.pattern.strip_suffix('/').filter(|it| !it.is_empty())?;
        let has_own = locations.iter().any(|other| {
            other.pattern == path && !matches!(other.kind, Kind::Regex | Kind::RegexAnyCase)
        });
        let mut keys = Keys::default();
        keys.text("path", &as_path(path));
        keys.set("redirect", "{ to = \"{path}/{query}\", status = 301 }");
        (!has_own).then(|| Route::new(&keys, it.directive))
    });
    routes.collect()
}

/// The locations of a block and those within them.
fn collect<'a>(
    block: &'a Directive,
    outer: &[&'a Directive],
    locations: &mut Vec<Location<'a>>,
    notes: &mut Notes,
) {
    for directive in block.all("location") {
        let (kind, pattern) = match directive.arguments.as_slice() {
            [name] if name.starts_with('@') => {
                if !is_tried(block, name) {
                    notes.add(directive, "left out: only `try_files` leads to it here");
                }
                continue;
            }
            [pattern] => split_modifier(pattern),
            [modifier, pattern] => {
                let Some(kind) = kind_of(modifier) else {
                    notes.add(
                        directive,
                        format!("left out: `{modifier}` is no modifier of a location"),
                    );
                    continue;
                };
                (kind, pattern.as_str())
            }
            _ => {
                notes.add(directive, "left out: it has no path");
                continue;
            }
        };
        let is_regex = matches!(kind, Kind::Regex | Kind::RegexAnyCase);
        if !is_regex && PathCondition::prefix(&as_path(pattern)).is_err() {
            notes.add(directive, "left out: no request has such a path");
            continue;
        }
        if directive.all("location").next().is_some() {
            notes.add(directive, "locations within it stand beside it here");
            let mut within = outer.to_vec();
            within.push(directive);
            collect(directive, &within, locations, notes);
        }
        locations.push(Location {
            kind,
            pattern,
            directive,
            outer: outer.to_vec(),
        });
    }
}

fn kind_of(modifier: &str) -> Option<Kind> {
    Some(match modifier {
        "=" => Kind::Exact,
        "^~" => Kind::FirstPrefix,
        "~" => Kind::Regex,
        "~*" => Kind::RegexAnyCase,
        _ => return None,
    })
}

/// The modifier may stand before the path without a blank.
fn split_modifier(text: &str) -> (Kind, &str) {
    for modifier in ["=", "^~", "~*", "~"] {
        if let (Some(pattern), Some(kind)) = (text.strip_prefix(modifier), kind_of(modifier)) {
            return (kind, pattern);
        }
    }
    (Kind::Prefix, text)
}

/// Whether a `try_files` of the server or its locations leads to a named location.
fn is_tried(block: &Directive, name: &str) -> bool {
    let leads =
        |it: &Directive| it.name == "try_files" && it.arguments.last().is_some_and(|it| it == name);
    block.block.iter().any(|it| leads(it) || is_tried(it, name))
}

/// A path of nginx, which stands for decoded ones, as a route has it.
pub(super) fn as_path(path: &str) -> String {
    let mut text = String::new();
    for character in path.chars() {
        match character {
            '%' => text.push_str("%25"),
            '?' => text.push_str("%3F"),
            '#' => text.push_str("%23"),
            it => text.push(it),
        }
    }
    text
}

/// An expression without its look-around: it matches at least what the whole one does.
fn without_look_around(text: &str) -> String {
    let mut left = String::new();
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        let is_look = ["(?=", "(?!", "(?<=", "(?<!"]
            .iter()
            .any(|it| rest.starts_with(it));
        if is_look {
            rest = behind_group(rest);
            continue;
        }
        let mut length = character.len_utf8();
        if character == '\\' {
            length += rest.chars().nth(1).map_or(0, char::len_utf8);
        }
        let (taken, after) = rest.split_at(length);
        left.push_str(taken);
        rest = after;
    }
    left
}

/// What follows the group at the start of a text.
fn behind_group(text: &str) -> &str {
    let mut depth = 0_usize;
    let mut is_escaped = false;
    for (at, character) in text.char_indices() {
        match character {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '(' => depth += 1,
            ')' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return text.get(at + 1..).unwrap_or_default();
                }
            }
            _ => {}
        }
    }
    ""
}

/// The expression of a location, which may match anywhere, as one for the whole path.
fn whole_path(location: &Location<'_>, pattern: &str) -> Result<String, String> {
    let text = pattern;
    let (before, text) = match text.strip_prefix('^') {
        Some(rest) => ("", rest),
        None => (".*", text),
    };
    let (text, after) = match text.strip_suffix('$').filter(|it| !it.ends_with('\\')) {
        Some(rest) => (rest, ""),
        None => (text, ".*"),
    };
    let case = if location.kind == Kind::RegexAnyCase {
        "i"
    } else {
        "-i"
    };
    let whole = format!("{before}(?{case}:{text}){after}");
    match PathCondition::regex(&whole) {
        Ok(_) => Ok(whole),
        Err(_) => Err(format!(
            "`{}` is not a regular expression here (no look-around, no back-references)",
            location.pattern
        )),
    }
}

struct Context<'a> {
    server: &'a Directive,
    location: &'a Location<'a>,
    /// Its innermost block is that of the variant.
    scope: &'a Scope<'a>,
    variant: &'a Variant,
}

/// One route without its host.
fn route(
    condition: &Condition<'_>,
    context: &Context<'_>,
    upstreams: &mut Upstreams,
    notes: &mut Notes,
) -> Route {
    let mut keys = Keys::default();
    match condition {
        Condition::Exact(path) => keys.text("path", &as_path(path)),
        Condition::Prefix(prefix) => keys.text("prefix", &as_path(prefix)),
        Condition::Regex(regex) => keys.text("regex", regex),
    }
    keys.inherit(&context.variant.conditions);
    action(condition, context, &mut keys, upstreams, notes);
    middleware(context.scope, &mut keys, notes);
    Route::new(&keys, context.location.directive)
}

fn action(
    condition: &Condition<'_>,
    context: &Context<'_>,
    keys: &mut Keys,
    upstreams: &mut Upstreams,
    notes: &mut Notes,
) {
    let scope = context.scope;
    if context.variant.is_forbidden {
        access::forbid(keys);
        return;
    }
    if let Some(directive) = scope.own("return") {
        let groups = match condition {
            Condition::Regex(regex) => Some(regex.as_str()),
            Condition::Exact(_) | Condition::Prefix(_) => None,
        };
        returned(directive, groups, keys, notes);
        return;
    }
    if access::close(scope, keys, notes) {
        return;
    }
    if let Some(directive) = scope.own("proxy_pass").or_else(|| scope.own("grpc_pass")) {
        proxy(directive, condition, scope, keys, upstreams, notes);
        return;
    }
    if tried(condition, context.server, scope, keys, upstreams, notes) {
        return;
    }
    let others = ["fastcgi_pass", "uwsgi_pass", "scgi_pass", "memcached_pass"];
    if let Some(directive) = others.iter().find_map(|name| scope.own(name)) {
        notes.add(directive, "responds with 501: only HTTP is forwarded to");
        keys.set("respond", "{ status = 501, body = \"not translated\\n\" }");
        return;
    }
    files(condition, scope, keys, notes);
}

/// Forwards by the named location that `try_files` ends with; false if there is none.
fn tried(
    condition: &Condition<'_>,
    server: &Directive,
    scope: &Scope<'_>,
    keys: &mut Keys,
    upstreams: &mut Upstreams,
    notes: &mut Notes,
) -> bool {
    let Some(directive) = scope.last("try_files") else {
        return false;
    };
    let target = directive.arguments.last().map_or("", String::as_str);
    let mut named = server.all("location");
    let Some(named) = named.find(|it| it.argument(0) == target) else {
        return false;
    };
    let scope = scope.within(&named.block);
    let Some(pass) = scope.own("proxy_pass") else {
        return false;
    };
    notes.add(
        directive,
        format!("every request goes to `{target}`: files before it are not looked for"),
    );
    proxy(pass, condition, &scope, keys, upstreams, notes);
    true
}

/// The route for requests without a location: the files of the server, or a 404.
fn server_route(
    server: &Directive,
    scope: &Scope<'_>,
    variant: &Variant,
    by_regex: bool,
    upstreams: &mut Upstreams,
    notes: &mut Notes,
) -> Route {
    let mut keys = Keys::default();
    let condition = if by_regex {
        keys.text("regex", "/.*");
        Condition::Regex("/.*".to_owned())
    } else {
        keys.text("prefix", "/");
        Condition::Prefix("/")
    };
    keys.inherit(&variant.conditions);
    let scope = &scope.within(&variant.block);
    match scope.own("return").or_else(|| server.last("return")) {
        Some(directive) => returned(directive, None, &mut keys, notes),
        None if access::close(scope, &mut keys, notes) => {}
        None if tried(&condition, server, scope, &mut keys, upstreams, notes) => {}
        None => files(&condition, scope, &mut keys, notes),
    }
    middleware(scope, &mut keys, notes);
    Route::new(&keys, server)
}

/// A path as an expression.
fn exact_expression(path: &str) -> String {
    format!("(?-i:{})", regex::escape(path))
}
