//! nginx's choice of a location, which the routes of a translation are held to.
//!
//! nginx and plimsoll choose by different orders. For paths made up from all locations and expressions of a server, the
//! location that nginx chooses is compared with the route that plimsoll does: where the location keeps somebody out by a
//! rule that the route does not have, the path is closed.

mod steps;

mod places;

mod following;

mod probes;

use std::collections::BTreeSet;

use plimsoll_server::{PathCondition, RouteConditions, RouteIndex, RouteInput};

use self::following::{CYCLES, Following};
use self::places::{Place, places, tried};
use self::steps::{Rewrite, Step, steps};
use super::access;
use super::nginx::Directive;
use super::patterns::{Kind, as_path, exact_expression, without_look_around};
use super::proxy::prefix_expression;
use super::route::Route;
use super::scope::Scope;
use super::toml::Keys;
use super::{ImportNote, Notes};

/// Times that regions are closed before whole routes are, and those before the server is.
const ROUNDS: usize = 3;

/// A server as nginx looks for the location of a path in it.
pub(super) struct Selection<'a> {
    places: Vec<Place<'a>>,
    /// Rules for paths without a location.
    rules: Vec<String>,
    /// The path that `try_files` ends with, for those.
    tried: Option<&'a str>,
    steps: Vec<Step<'a>>,
}

/// What nginx may do with a path.
#[derive(Clone, Copy)]
struct Choice<'s, 'a> {
    rules: &'s [String],
    place: Option<&'s Place<'a>>,
    /// The first that changed the path.
    rewrite: Option<&'s Rewrite<'a>>,
    /// nginx itself leads there, after what the location of the request has let pass.
    is_led: bool,
}

/// A path that nginx keeps somebody out of and a route does not.
struct Opening<'s, 'a> {
    path: String,
    choice: Choice<'s, 'a>,
    route: usize,
}

impl<'a> Selection<'a> {
    /// - `scope`: that of the server.
    pub(super) fn new(server: &'a Directive, scope: &Scope<'a>) -> Self {
        Self::of_block(&server.block, scope)
    }

    /// - `block`: the directives of the server.
    fn of_block(block: &'a [Directive], scope: &Scope<'a>) -> Self {
        Self {
            places: places(block, scope),
            rules: rules(scope),
            tried: tried(block),
            steps: steps(block),
        }
    }

    /// What keeps clients out of a path that nginx itself leads them to, by `try_files` or `error_page`; of a path that is
    /// not known what keeps them out of any.
    fn rules_behind(&self, path: &str) -> Vec<String> {
        let mut following = Following::new(self);
        following.begin(path, true, CYCLES);
        let choices = following.choices.into_iter();
        choices.flat_map(|it| it.rules.iter().cloned()).collect()
    }

    /// Whether routes admit no client that nginx rejects, as far as made-up paths show.
    pub(super) fn is_kept_by(&self, routes: &[Route]) -> bool {
        self.openings(routes, false).is_empty()
    }

    /// Closes what routes would open.
    pub(super) fn close(&self, routes: &mut Vec<Route>, server: &Directive, notes: &mut Notes) {
        for round in 0..2 * ROUNDS {
            let openings = self.openings(routes, true);
            if openings.is_empty() {
                return;
            }
            let mut regions = BTreeSet::new();
            let mut closed = BTreeSet::new();
            for opening in openings {
                let region = opening.region(routes).filter(|_| round < ROUNDS);
                match region {
                    Some(region) => {
                        if regions.insert(region.text.clone()) {
                            notes.add(
                                opening.directive(server),
                                format!(
                                    "{}: other routes would let in clients that it keeps out",
                                    region.note
                                ),
                            );
                        }
                    }
                    None => _ = closed.insert(opening.route),
                }
            }
            for number in closed {
                if let Some(route) = routes.get_mut(number) {
                    route.forbid();
                    notes.0.push(ImportNote {
                        file: route.file.to_string(),
                        line: route.line,
                        message: format!("{}: responds with 403: nginx keeps clients out of some of its paths by another location", route.directive),
                    });
                }
            }
            let front = regions
                .into_iter()
                .map(|text| Route::closing(&text, server));
            routes.splice(0..0, front);
        }
        if !self.openings(routes, true).is_empty() {
            notes.add(server, "the server responds with 403: its routes would let in clients that a location keeps out");
            *routes = vec![Route::closing("prefix = \"/\"\n", server)];
        }
    }

    /// - `allows_spellings`: whether files that nginx lets everybody have may be had by another spelling of their prefix.
    fn openings(&self, routes: &[Route], allows_spellings: bool) -> Vec<Opening<'_, 'a>> {
        if !self.has_rules() {
            return Vec::new();
        }
        let index = |is_wanted: &dyn Fn(&Route) -> bool| {
            let numbered = routes.iter().enumerate().filter(|(_, it)| is_wanted(it));
            let paths = numbered.filter_map(|(number, it)| {
                Some((RouteConditions::of_path(it.path.clone()?), number))
            });
            RouteIndex::new(paths.collect())
        };
        // Those with conditions besides the path take some requests, and leave others to those behind them.
        let indexes = [index(&|_| true), index(&|it| !it.is_conditional)];
        let mut openings = Vec::new();
        for path in self.probes() {
            let mut choices = self.choices(&path);
            choices.retain(|it| !it.rules.is_empty());
            if choices.is_empty() {
                continue;
            }
            let sent = as_path(&path);
            for index in &indexes {
                let found = index.find(&Probe(&sent)).ok().flatten().copied();
                let Some((number, route)) = found.and_then(|it| Some((it, routes.get(it)?))) else {
                    continue;
                };
                let is_kept = |it: &Choice<'_, '_>| route.keeps(it.rules, it.is_led, &sent);
                let is_spelling = || {
                    let path = allows_spellings.then(|| route.file_of(&path)).flatten();
                    path.is_some_and(|it| self.choices(&it).iter().all(is_kept))
                };
                let opened = choices.iter().find(|it| !is_kept(it));
                if let Some(choice) = opened.filter(|_| !is_spelling()) {
                    openings.push(Opening {
                        path: path.clone(),
                        choice: *choice,
                        route: number,
                    });
                    break;
                }
            }
        }
        openings
    }

    fn has_rules(&self) -> bool {
        fn any(places: &[Place<'_>]) -> bool {
            places
                .iter()
                .any(|it| !it.rules.is_empty() || any(&it.within))
        }
        !self.rules.is_empty() || any(&self.places)
    }

    /// What nginx may do with a path: the location that it chooses, or several if an `if` decides, and what `try_files`
    /// leads to.
    fn choices(&self, path: &str) -> Vec<Choice<'_, 'a>> {
        let mut following = Following::new(self);
        following.begin(path, false, CYCLES);
        following.choices
    }
}

/// What keeps clients out of a path that nginx itself leads them to.
fn rules_behind(scope: &Scope<'_>, path: &str) -> Vec<String> {
    let server = scope.of_server();
    let selection = Selection::of_block(scope.server(), &server);
    selection.rules_behind(path.split('?').next().unwrap_or_default())
}

/// What keeps clients out of the path that `try_files` of a location ends with.
pub(super) fn led_rules(scope: &Scope<'_>) -> Vec<String> {
    let tried = tried(scope.innermost());
    tried.map_or_else(Vec::new, |tried| rules_behind(scope, tried))
}

/// Whether what keeps clients out of a path that nginx itself leads them to keeps them out of a location too.
pub(super) fn is_as_closed_as(scope: &Scope<'_>, path: &str) -> bool {
    let own = rules(scope);
    rules_behind(scope, path).iter().all(|it| own.contains(it))
}

/// A region as the condition of a route, and what a note calls it.
struct Region {
    text: String,
    note: String,
}

impl<'a> Opening<'_, 'a> {
    fn directive(&self, server: &'a Directive) -> &'a Directive {
        let of_place = || self.choice.place.map(|it| it.directive);
        let rewrite = self.choice.rewrite.map(|it| it.directive);
        rewrite.or_else(of_place).unwrap_or(server)
    }

    /// The smallest region around the path that a route in front can close; `None` if there is none.
    fn region(&self, routes: &[Route]) -> Option<Region> {
        let mut keys = Keys::default();
        match routes.get(self.route)?.path.as_ref()? {
            PathCondition::Regex(_) => {}
            // A prefix covers its path without the slash, of which nginx knows nothing.
            PathCondition::Prefix(prefix)
                if prefix
                    .trim_end_matches('/')
                    .eq_ignore_ascii_case(&as_path(&self.path)) =>
            {
                keys.text("path", &as_path(&self.path));
                let note = format!("`{}` responds with 403", self.path);
                return Some(Region {
                    text: lines(&keys),
                    note,
                });
            }
            _ => return None,
        }
        let expression = match (self.choice.rewrite, self.choice.place) {
            // It holds for the whole of its location, which is the route.
            (Some(rewrite), _) if rewrite.from.is_match("") => return None,
            (Some(rewrite), _) => whole(rewrite.directive.argument(0), false),
            (None, Some(place)) => match place.kind {
                Kind::Exact => exact_expression(place.pattern),
                Kind::Prefix | Kind::FirstPrefix if place.pattern == "/" => return None,
                Kind::Prefix | Kind::FirstPrefix => prefix_expression(place.pattern),
                Kind::Regex => whole(place.pattern, false),
                Kind::RegexAnyCase => whole(place.pattern, true),
            },
            (None, None) => return None,
        };
        PathCondition::regex(&expression).ok()?;
        keys.text("regex", &expression);
        let note = format!("paths that match `{expression}` respond with 403");
        Some(Region {
            text: lines(&keys),
            note,
        })
    }
}

fn lines(keys: &Keys) -> String {
    let mut text = String::new();
    keys.lines(&mut text);
    text
}

/// An expression for the whole of the paths that an expression matches in.
fn whole(pattern: &str, is_any_case: bool) -> String {
    let pattern = without_look_around(pattern);
    let case = if is_any_case { "i" } else { "-i" };
    if pattern.contains('|') {
        return format!(".*(?{case}:{pattern}).*");
    }
    let (before, text) = match pattern.strip_prefix('^') {
        Some(rest) => ("", rest),
        None => (".*", pattern.as_str()),
    };
    let (text, after) = match text.strip_suffix('$').filter(|it| !it.ends_with('\\')) {
        Some(rest) => (rest, ""),
        None => (text, ".*"),
    };
    format!("{before}(?{case}:{text}){after}")
}

struct Probe<'p>(&'p str);

impl RouteInput for Probe<'_> {
    fn method(&self) -> &'static str {
        "GET"
    }

    fn host(&self) -> &'static str {
        ""
    }

    fn path(&self) -> &str {
        self.0
    }

    fn query(&self) -> Option<&str> {
        None
    }

    fn any_field(&self, _: &str, _: &mut dyn FnMut(&[u8]) -> bool) -> bool {
        false
    }
}

/// What keeps somebody out where these directives hold, as text: what has the same text keeps out the same clients.
pub(super) fn rules(scope: &Scope<'_>) -> Vec<String> {
    let shown = |it: &Directive| format!("{} {}", it.name, it.arguments.join(" "));
    let own = scope.innermost();
    let mut rules: Vec<_> = own
        .iter()
        .filter(|it| it.name == "if" && access::closes(it))
        .map(shown)
        .collect();
    // It comes before what lets clients in by who they are.
    if let Some(returned) = scope.own("return") {
        if access::closes(returned) {
            rules.push(shown(returned));
        }
        return rules;
    }
    rules.extend(
        ["internal", "limit_except"]
            .iter()
            .filter_map(|name| scope.own(name))
            .filter(|it| access::closes(it))
            .map(shown),
    );
    let tried = scope.own("try_files");
    rules.extend(tried.filter(|it| access::closes(it)).map(shown));
    let addresses = scope.all_of(&["allow", "deny"]);
    if addresses.iter().any(|it| it.name == "deny") {
        rules.push(
            addresses
                .into_iter()
                .map(shown)
                .collect::<Vec<_>>()
                .join("; "),
        );
    }
    if let Some(password) = scope.last("auth_basic").filter(|it| access::closes(it)) {
        let file = scope.last("auth_basic_user_file").map(shown);
        rules.push(format!("{} {}", password.name, file.unwrap_or_default()));
    }
    let others = ["auth_request", "proxy_pass_request_headers"];
    let others = others.iter().filter_map(|name| scope.last(name));
    rules.extend(others.filter(|it| access::closes(it)).map(shown));
    rules.extend(scope.find(super::fates::is_withholding).map(shown));
    rules
}

#[cfg(test)]
pub(super) mod tests;
