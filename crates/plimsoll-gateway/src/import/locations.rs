//! `location` blocks as routes, in nginx's order of precedence.
//!
//! nginx takes the exact location, then the longest prefix if it has `^~`, then the first regular expression in the file,
//! then the longest prefix. In plimsoll prefixes come before regular expressions. So where a server has both, or a
//! prefix that may end within a segment, its prefixes without `^~` become regular expressions, the longest first.

mod precedence;

mod expression;

mod actions;

use plimsoll_server::PathCondition;

pub(super) use self::actions::named;
use self::actions::{Context, Reached, is_led_to, leads_to_closed, route, server_route};
use self::expression::{closed, expression};
use self::precedence::{has_exceptions, in_precedence, is_case_decisive, is_early};
use super::Notes;
use super::access;
use super::errors;
use super::fastcgi::Fallback;
use super::nginx::Directive;
use super::patterns::{Kind, as_path, exact_expression, path_of};
use super::proxy::{is_for_subrequests, prefix_expression};
use super::redirects::{has_leading, is_redirecting, redirecting};
use super::route::{Condition, Route};
use super::scope::Scope;
use super::selection::{self, Selection};
use super::toml::Keys;
use super::upstreams::Upstreams;
use super::variants::{Variant, variants, with_constants};

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

/// The routes of a server, each without its host.
pub(super) fn routes(
    server: &Directive,
    scope: &Scope<'_>,
    upstreams: &mut Upstreams,
    notes: &mut Notes,
) -> Vec<Route> {
    let server = &with_constants(server);
    let mut locations = Vec::new();
    // A `return` of the server comes before any location.
    if server.last("return").is_some() {
        let mut routes = in_order(server, scope, &locations, false, upstreams, notes);
        routes.extend(internal_routes(server, scope, upstreams, notes));
        return routes;
    }
    let is_server_closing = scope.find(access::closes).is_some();
    collect(server, &[], is_server_closing, &mut locations, notes);
    let selection = Selection::new(server, scope);
    let before = notes.0.len();
    let mut routes = in_order(server, scope, &locations, false, upstreams, notes);
    if !selection.is_kept_by(&routes) {
        notes.0.truncate(before);
        routes = in_order(server, scope, &locations, true, upstreams, notes);
        selection.close(&mut routes, server, notes);
    }
    routes.extend(internal_routes(server, scope, upstreams, notes));
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
            .any(|it| is_redirecting(&it.directive.block) || has_leading(&it.directive.block));
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
    routes.extend(redirecting(
        &Condition::Prefix("/"),
        &server.block,
        false,
        notes,
    ));
    let mut write = |condition: &Condition<'_>,
                     location: &Location<'_>,
                     routes: &mut Vec<Route>,
                     notes: &mut Notes| {
        let mut scope = scope.clone();
        for outer in &location.outer {
            scope = scope.within(&outer.block);
        }
        routes.extend(redirecting(
            condition,
            &location.directive.block,
            true,
            notes,
        ));
        for variant in variants(&server.block, &location.directive.block, &scope, notes) {
            let mut context = Context {
                server,
                location,
                scope: &scope.within(&variant.block),
                variant: &variant,
                reached_by: Reached::Routes,
            };
            let is_internal = context.scope.own("internal").is_some();
            if is_internal && !is_for_subrequests(server, location.directive) {
                // It precedes the route that responds to clients with 404.
                routes.push(route(condition, &context, upstreams, notes));
            }
            context.reached_by = Reached::Clients;
            let mut route = route(condition, &context, upstreams, notes);
            let scope = scope.within(&location.directive.block);
            route.rules = selection::rules(&scope);
            route.led_rules = selection::led_rules(&scope);
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
                Err(problem) => routes.extend(closed(location, &problem, notes)),
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
        // One file has one path. Folders are found below the expression of a prefix too.
        let alias = location.directive.last("alias");
        let is_alias = alias.is_some_and(|it| !it.argument(0).ends_with('/'));
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
        for variant in variants(&server.block, &[], scope, notes) {
            let mut route = server_route(server, scope, &variant, by_regex, upstreams, notes);
            route.rules = selection::rules(scope);
            route.led_rules = selection::led_rules(scope);
            routes.push(route);
        }
    }
    routes
}

/// The routes that other ones lead to by name: named locations, and redirects in place of errors.
///
fn internal_routes(
    server: &Directive,
    scope: &Scope<'_>,
    upstreams: &mut Upstreams,
    notes: &mut Notes,
) -> Vec<Route> {
    let mut routes = errors::redirects(scope.outermost().innermost(), notes);
    routes.extend(errors::redirects(&server.block, notes));
    routes.extend(fallbacks(server, &server.block, scope, upstreams));
    for directive in server.all("location") {
        let name = directive.argument(0);
        if !name.starts_with('@') || !is_led_to(&server.block, name) {
            continue;
        }
        let location = Location {
            kind: Kind::Prefix,
            pattern: "/",
            directive,
            outer: Vec::new(),
            below: None,
            is_closing: false,
        };
        let mut variants = variants(&server.block, &directive.block, scope, notes);
        let Some(last) = variants.pop() else {
            continue;
        };
        if !variants.is_empty() {
            notes.add(
                directive,
                "responds with 403: conditions of a named location are not translated",
            );
        }
        let leads_to_closed = leads_to_closed(directive, &scope.within(&directive.block));
        if leads_to_closed {
            notes.add(
                directive,
                "responds with 403: it may lead to a location that keeps clients out",
            );
        }
        let variant = Variant {
            is_forbidden: last.is_forbidden || !variants.is_empty() || leads_to_closed,
            ..last
        };
        let context = Context {
            server,
            location: &location,
            scope: &scope.within(&variant.block),
            variant: &variant,
            reached_by: Reached::Routes,
        };
        routes.push(route(&Condition::Prefix("/"), &context, upstreams, notes));
    }
    routes
}

/// The routes of scripts that `try_files` of these directives, and of locations within them, end with; each once.
fn fallbacks(
    server: &Directive,
    within: &[Directive],
    scope: &Scope<'_>,
    upstreams: &mut Upstreams,
) -> Vec<Route> {
    let mut routes: Vec<Route> = Vec::new();
    for directive in within {
        let more = match directive.name.as_str() {
            "location" => fallbacks(server, &directive.block, scope, upstreams),
            "try_files" => {
                let fallback = Fallback::find(&server.block, directive);
                let route = fallback.map(|it| it.route(server, scope, upstreams));
                route.into_iter().collect()
            }
            _ => continue,
        };
        for route in more {
            if !routes.iter().any(|known| known.name == route.name) {
                routes.push(route);
            }
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
            if !outer.is_empty() || !is_led_to(&block.block, name) {
                notes.add(
                    directive,
                    "left out: neither `try_files` nor `error_page` leads to it",
                );
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
