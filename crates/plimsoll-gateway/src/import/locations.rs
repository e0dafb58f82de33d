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
use super::selection::{self, Selection};
use super::toml::Keys;
use super::upstreams::Upstreams;
use super::variants::{Variant, variants};

/// How a location matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
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
    /// The innermost of them, if it is a prefix.
    below: Option<&'a str>,
    /// Whether its directives, or those around it, keep somebody out.
    is_closing: bool,
}

impl Location<'_> {
    /// Whether an expression is around it: no route is for the paths that two expressions match.
    fn is_within_expression(&self) -> bool {
        self.outer.iter().any(|it| {
            path_of(it).is_some_and(|(kind, _)| matches!(kind, Kind::Regex | Kind::RegexAnyCase))
        })
    }

    fn is_regex(&self) -> bool {
        matches!(self.kind, Kind::Regex | Kind::RegexAnyCase)
    }
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
    /// Its condition on the path.
    pub(super) path: Option<PathCondition>,
    /// It has other conditions.
    pub(super) is_conditional: bool,
    effect: Effect,
    /// What keeps somebody out of its location, as [`selection::rules`] has it.
    rules: Vec<String>,
}

/// What a route lets clients see, as far as it matters for who is kept out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Effect {
    /// An error or a redirect.
    Refuses,
    /// Files, but for those whose names begin with a dot.
    Files,
    Serves,
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
            path: path_condition(keys),
            is_conditional: ["method", "query", "header"]
                .iter()
                .any(|it| keys.get(it).is_some()),
            effect: effect(keys),
            rules: Vec::new(),
        }
    }

    /// A 403 for what a condition, which is a line, is for.
    pub(super) fn closing(condition: &str, directive: &Directive) -> Self {
        let mut keys = Keys::default();
        if let Some((key, value)) = condition.trim_end().split_once(" = ") {
            keys.set(key, value);
        }
        access::forbid(&mut keys);
        Self::new(&keys, directive)
    }

    /// Responds with a 403 instead, to the same requests.
    pub(super) fn forbid(&mut self) {
        let conditions = ["path", "prefix", "regex", "method", "query", "header"];
        let is_condition = |line: &&str| {
            let key = line.split(' ').next().unwrap_or_default();
            conditions.contains(&key)
        };
        let mut keys = Keys::default();
        access::forbid(&mut keys);
        let mut text: String = self
            .text
            .lines()
            .filter(is_condition)
            .flat_map(|it| [it, "\n"])
            .collect();
        keys.lines(&mut text);
        self.text = text;
        self.effect = Effect::Refuses;
    }

    /// The path of the file that is sent for a path in the spelling of nginx, which is that of the prefix.
    pub(super) fn file_of(&self, path: &str) -> Option<String> {
        let (Effect::Files, Some(PathCondition::Prefix(prefix))) = (self.effect, &self.path) else {
            return None;
        };
        let (head, rest) = path.split_at_checked(prefix.len())?;
        head.eq_ignore_ascii_case(prefix)
            .then(|| format!("{prefix}{rest}"))
    }

    /// Whether clients that these rules keep out do not get in by this route either.
    pub(super) fn keeps(&self, rules: &[String], path: &str) -> bool {
        let is_hidden = path
            .split("/.")
            .skip(1)
            .any(|it| !it.starts_with("well-known"));
        match self.effect {
            Effect::Refuses => true,
            Effect::Files if is_hidden => true,
            Effect::Files | Effect::Serves => rules.iter().all(|it| self.rules.contains(it)),
        }
    }
}

/// The condition on the path among keys.
fn path_condition(keys: &Keys) -> Option<PathCondition> {
    // Texts of TOML are written as those of JSON.
    let text = |key: &str| -> Option<String> { serde_json::from_str(keys.get(key)?).ok() };
    let exact = || PathCondition::exact(&text("path")?).ok();
    let prefix = || PathCondition::prefix(&text("prefix")?).ok();
    let regex = || PathCondition::regex(&text("regex")?).ok();
    exact().or_else(prefix).or_else(regex)
}

fn effect(keys: &Keys) -> Effect {
    let is_error = |it: &str| {
        ["3", "4", "5"]
            .iter()
            .any(|digit| it.starts_with(&format!("{{ status = {digit}")))
    };
    if keys.get("redirect").is_some() || keys.get("respond").is_some_and(is_error) {
        Effect::Refuses
    } else if keys.get("files").is_some() {
        Effect::Files
    } else {
        Effect::Serves
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
    if server.last("return").is_some() {
        return in_order(server, scope, &locations, false, upstreams, notes);
    }
    let is_server_closing = scope.find(access::closes).is_some();
    collect(server, &[], is_server_closing, &mut locations, notes);
    let selection = Selection::new(server, scope);
    let before = notes.0.len();
    let routes = in_order(server, scope, &locations, false, upstreams, notes);
    if selection.is_kept_by(&routes) {
        return routes;
    }
    notes.0.truncate(before);
    let mut routes = in_order(server, scope, &locations, true, upstreams, notes);
    selection.close(&mut routes, server, notes);
    routes
}

/// The routes of locations in nginx's order, as nearly as routes have one.
///
/// - `by_expressions`: paths and prefixes are expressions, which keep the order that they are in.
fn in_order(
    server: &Directive,
    scope: &Scope<'_>,
    locations: &[Location<'_>],
    by_expressions: bool,
    upstreams: &mut Upstreams,
    notes: &mut Notes,
) -> Vec<Route> {
    let is_server_closing = scope.find(access::closes).is_some();
    let is_within_segment =
        |it: &Location<'_>| it.kind == Kind::Prefix && !it.pattern.ends_with('/');
    // A `rewrite` that redirects is an expression, and comes before what else its location does.
    let has_redirects = is_redirecting(&server.block)
        || locations
            .iter()
            .any(|it| is_redirecting(&it.directive.block));
    // Paths and prefixes as conditions come before all expressions, and disregard case.
    let in_order = by_expressions
        || has_redirects
        || is_case_decisive(locations, is_server_closing)
        || locations
            .iter()
            .any(|it| it.kind == Kind::FirstPrefix && has_exceptions(it, locations))
        // As a prefix it covers whole segments alone.
        || locations.iter().any(|it| {
            it.kind == Kind::FirstPrefix && it.is_closing && !it.pattern.ends_with('/')
        });
    let by_regex = in_order
        || locations
            .iter()
            .any(|it| it.is_regex() || is_within_segment(it));
    let has_regex = in_order || locations.iter().any(Location::is_regex);
    // Nothing of an expression can come first below such a prefix.
    let stays_prefix = |location: &Location<'_>| {
        let mut others = locations.iter();
        location.pattern.ends_with('/')
            && location.pattern != "/"
            && !has_regex
            && !others.any(|it| is_within_segment(it) && it.pattern.starts_with(location.pattern))
    };
    let mut routes = slash_redirects(locations);
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
            let mut route = route(condition, &context, upstreams, notes);
            route.rules = selection::rules(&scope.within(&location.directive.block));
            routes.push(route);
        }
    };
    for location in locations.iter().filter(|it| it.kind == Kind::Exact) {
        let condition = if in_order {
            Condition::Regex(exact_expression(location.pattern))
        } else {
            Condition::Exact(location.pattern)
        };
        write(&condition, location, &mut routes, notes);
    }
    for location in in_precedence(locations) {
        if location.is_regex() {
            if location.is_within_expression() && !access::is_closing(location.directive) {
                notes.add(
                    location.directive,
                    "left out: an expression within another one would hold for the whole server, and the outer one does what it does",
                );
                continue;
            }
            match expression(location, location.pattern) {
                Ok(regex) => write(&Condition::Regex(regex), location, &mut routes, notes),
                Err(reason) => routes.extend(closed(location, &reason, notes)),
            }
            continue;
        }
        if !location.pattern.ends_with('/') && !in_order {
            notes.add(
                location.directive,
                format!("`{}` covers whole segments here", location.pattern),
            );
        }
        let condition = if in_order {
            Condition::Regex(prefix_expression(location.pattern))
        } else {
            Condition::Prefix(location.pattern)
        };
        write(&condition, location, &mut routes, notes);
    }
    let mut prefixes: Vec<_> = locations
        .iter()
        .filter(|it| it.kind == Kind::Prefix && !is_early(it, locations))
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
    if !locations
        .iter()
        .any(|it| it.kind == Kind::Prefix && it.pattern == "/")
    {
        for variant in variants(&server.block, &[], notes) {
            let mut route = server_route(server, scope, &variant, by_regex, upstreams, notes);
            route.rules = selection::rules(scope);
            routes.push(route);
        }
    }
    routes
}

/// Whether a prefix has locations below it that do not follow from its length: longer prefixes that are not `^~`, or
/// expressions within it.
fn has_exceptions(prefix: &Location<'_>, locations: &[Location<'_>]) -> bool {
    locations.iter().any(|it| {
        let is_within = it.is_regex() && it.below == Some(prefix.pattern);
        is_within || is_shadowed(it, prefix)
    })
}

/// Whether a prefix is the longer of two of which the shorter one comes before expressions.
fn is_shadowed(location: &Location<'_>, by: &Location<'_>) -> bool {
    location.kind == Kind::Prefix
        && by.kind == Kind::FirstPrefix
        && location.pattern != by.pattern
        && location.pattern.starts_with(by.pattern)
}

/// Whether a prefix keeps somebody out of what would otherwise be taken by a shorter one with `^~`, or by the
/// expressions within a shorter one.
fn is_early(location: &Location<'_>, locations: &[Location<'_>]) -> bool {
    let is_taken = |other: &Location<'_>| {
        is_shadowed(location, other)
            || other.is_regex()
                && other.below.is_some_and(|below| {
                    location.pattern != below && location.pattern.starts_with(below)
                })
    };
    location.kind == Kind::Prefix && location.is_closing && locations.iter().any(is_taken)
}

/// All but exact locations and other prefixes: those with `^~` and the expressions within prefixes, the longest prefix
/// first, and then other expressions. Of what nginx lets come later that comes first which keeps somebody out.
fn in_precedence<'a, 'b>(locations: &'b [Location<'a>]) -> Vec<&'b Location<'a>> {
    let is_early = |it: &&Location<'_>| is_early(it, locations);
    let mut prefixes: Vec<_> = locations
        .iter()
        .filter(|it| matches!(it.kind, Kind::Prefix | Kind::FirstPrefix))
        .collect();
    prefixes.sort_by_key(|it| std::cmp::Reverse(it.pattern.len()));
    let is_within = |it: &&Location<'_>| it.is_regex() && it.below.is_some();
    let is_free = |it: &&Location<'_>| it.is_regex() && it.below.is_none();
    let is_mixed = locations
        .iter()
        .any(|it| is_early(&it) || locations.iter().any(|by| is_shadowed(it, by)));
    let is_first = |it: &&Location<'_>| is_mixed && it.is_closing;
    let mut ordered: Vec<_> = locations.iter().filter(is_free).filter(is_first).collect();
    for prefix in prefixes {
        let of_prefix = |it: &&Location<'_>| it.below == Some(prefix.pattern);
        ordered.extend(locations.iter().filter(is_within).filter(of_prefix));
        if prefix.kind == Kind::FirstPrefix || is_early(&prefix) {
            ordered.push(prefix);
        }
    }
    ordered.extend(locations.iter().filter(is_free).filter(|it| !is_first(it)));
    ordered
}

/// Whether nginx selects locations by case, or restricts all spellings but one.
fn is_case_decisive(locations: &[Location<'_>], is_server_closing: bool) -> bool {
    let paths = || locations.iter().filter(|it| !it.is_regex());
    let has_case = |it: &Location<'_>| it.pattern.contains(|it: char| it.is_alphabetic());
    let is_pair = |outer: &Location<'_>, inner: &Location<'_>| {
        let is_below = inner.pattern.starts_with(outer.pattern);
        let (outer_lower, inner_lower) =
            (outer.pattern.to_lowercase(), inner.pattern.to_lowercase());
        let differs = !is_below && inner_lower.starts_with(&outer_lower);
        let rules = outer.directive.block.iter().filter(|it| access::closes(it));
        let has_rule = |rule: &Directive| {
            let mut own = inner.directive.block.iter();
            own.any(|it| it.name == rule.name && it.arguments == rule.arguments)
        };
        let is_open = !rules.into_iter().all(has_rule) || !access::is_closing(inner.directive);
        differs
            || is_below && outer.is_closing && is_open && inner.pattern.len() > outer.pattern.len()
    };
    let is_opening = |it: &Location<'_>| is_server_closing && !access::is_closing(it.directive);
    // In another case nginx may come to an expression instead.
    let is_caught = |it: &Location<'_>, by: &Location<'_>| {
        let any_case = format!("(?i:{})", by.pattern);
        let may_match =
            || regex::Regex::new(&any_case).map_or(true, |any| any.is_match(it.pattern));
        by.is_regex() && by.is_closing && (it.kind != Kind::Exact || may_match())
    };
    paths().any(|inner| {
        let is_first = inner.kind != Kind::Prefix;
        let may_be_caught = || is_first && locations.iter().any(|by| is_caught(inner, by));
        let is_paired = || paths().any(|outer| is_pair(outer, inner));
        has_case(inner) && (is_opening(inner) || may_be_caught() || is_paired())
    })
}

/// A 403 for what an expression without a counterpart keeps somebody out of: other locations must not let them in.
fn closed(location: &Location<'_>, reason: &str, notes: &mut Notes) -> Option<Route> {
    if !location.is_closing {
        notes.add(location.directive, format!("left out: {reason}"));
        return None;
    }
    let wider = expression(location, &without_look_around(location.pattern));
    let wider = wider.unwrap_or_else(|_| "/.*".to_owned());
    notes.add(
        location.directive,
        format!("paths that match `{wider}` respond with 403: {reason}"),
    );
    let mut keys = Keys::default();
    keys.text("regex", &wider);
    access::forbid(&mut keys);
    Some(Route::new(&keys, location.directive))
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
    is_outer_closing: bool,
    locations: &mut Vec<Location<'a>>,
    notes: &mut Notes,
) {
    let below = (!outer.is_empty())
        .then(|| path_of(block))
        .flatten()
        .and_then(|(kind, pattern)| {
            matches!(kind, Kind::Prefix | Kind::FirstPrefix).then_some(pattern)
        });
    for directive in block.all("location") {
        if let [name] = directive.arguments.as_slice()
            && name.starts_with('@')
        {
            if !is_tried(block, name) {
                notes.add(directive, "left out: only `try_files` leads to it here");
            }
            continue;
        }
        let Some((kind, pattern)) = path_of(directive) else {
            let why = match directive.arguments.as_slice() {
                [modifier, _] => format!("left out: `{modifier}` is no modifier of a location"),
                _ => "left out: it has no path".to_owned(),
            };
            notes.add(directive, why);
            continue;
        };
        let is_closing = is_outer_closing || access::is_closing(directive);
        // Within another location it stops no expressions beside that.
        let is_outermost_first = outer
            .first()
            .is_none_or(|it| path_of(it).is_some_and(|(kind, _)| kind == Kind::FirstPrefix));
        let kind = match kind {
            Kind::FirstPrefix if !is_outermost_first => Kind::Prefix,
            it => it,
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
            collect(directive, &within, is_closing, locations, notes);
        }
        locations.push(Location {
            kind,
            pattern,
            directive,
            outer: outer.to_vec(),
            below,
            is_closing,
        });
    }
}

/// How a location matches, and its path or expression.
pub(super) fn path_of(location: &Directive) -> Option<(Kind, &str)> {
    match location.arguments.as_slice() {
        [pattern] => Some(split_modifier(pattern)),
        [modifier, pattern] => Some((kind_of(modifier)?, pattern)),
        _ => None,
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
pub(super) fn without_look_around(text: &str) -> String {
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

/// The expression of a location, which may match anywhere, as one for the whole path. Within a prefix it is for paths
/// below that prefix, or for more if it keeps somebody out and may match a part of the prefix too.
fn expression(location: &Location<'_>, pattern: &str) -> Result<String, String> {
    let text = pattern;
    let below = location.below.map(|below| {
        // A slash at the end may be that with which the expression begins.
        let is_joined = location.is_closing && begins(text).starts_with('/');
        if is_joined {
            below.trim_end_matches('/')
        } else {
            below
        }
    });
    let (before, text) = match (text.strip_prefix('^'), below) {
        (Some(rest), Some(below))
            if !location.is_closing && !rest.starts_with(&regex::escape(below)) =>
        {
            return Err(format!(
                "`{pattern}` is not known to match below `{below}` alone"
            ));
        }
        (Some(rest), _) => (String::new(), rest),
        (None, Some(below)) if !location.is_closing || !overlaps(below, begins(text)) => {
            (format!("(?-i:{}).*", regex::escape(below)), text)
        }
        (None, _) => (".*".to_owned(), text),
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

/// The characters that an expression begins with, of those that stand for themselves.
fn begins(expression: &str) -> String {
    let mut literal = String::new();
    let mut rest = expression.chars().peekable();
    while let Some(character) = rest.next() {
        let character = match character {
            '\\' => match rest.next() {
                Some(it) if !it.is_alphanumeric() => it,
                _ => break,
            },
            it if ".[](){}^$|*+?".contains(it) => break,
            it => it,
        };
        // It may be there never, or often.
        if rest.peek().is_some_and(|it| "*?{|".contains(*it)) {
            break;
        }
        literal.push(character);
    }
    literal
}

/// Whether a match that begins so can begin within a prefix.
fn overlaps(prefix: &str, literal: impl AsRef<str>) -> bool {
    let literal = literal.as_ref().to_lowercase();
    let prefix = prefix.to_lowercase();
    let mut ends = prefix
        .char_indices()
        .map(|(at, _)| prefix.get(at..).unwrap_or_default());
    ends.any(|end| end.starts_with(&literal) || literal.starts_with(end))
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
    // Its own rules come after those of the location, and a route has one of each.
    if access::is_closing(named) {
        notes.add(
            named,
            "requests that `try_files` leads here get a 403: it keeps clients out beside the rules of their location",
        );
        access::forbid(keys);
        return true;
    }
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
pub(super) fn exact_expression(path: &str) -> String {
    format!("(?-i:{})", regex::escape(path))
}
