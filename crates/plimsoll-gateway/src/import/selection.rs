//! nginx's choice of a location, which the routes of a translation are held to.
//!
//! nginx and plimsoll choose by different orders. For paths made up from all locations and expressions of a server, the
//! location that nginx chooses is compared with the route that plimsoll does: where the location keeps somebody out by a
//! rule that the route does not have, the path is closed.

mod probes;

use std::collections::BTreeSet;

use plimsoll_server::{PathCondition, RouteConditions, RouteIndex, RouteInput};
use regex::{Captures, Regex, RegexBuilder};

use super::access;
use super::locations::{Kind, Route, as_path, exact_expression, path_of, without_look_around};
use super::nginx::Directive;
use super::proxy::prefix_expression;
use super::redirects::is_redirecting;
use super::scope::Scope;
use super::toml::Keys;
use super::{ImportNote, Notes};

/// Times that regions are closed before whole routes are, and those before the server is.
const ROUNDS: usize = 3;

/// Times that nginx chooses again after a `rewrite`.
const CYCLES: usize = 10;

/// A server as nginx looks for the location of a path in it.
pub(super) struct Selection<'a> {
    places: Vec<Place<'a>>,
    /// Rules for paths without a location.
    rules: Vec<String>,
    steps: Vec<Step<'a>>,
}

/// A location with those within it.
struct Place<'a> {
    kind: Kind,
    pattern: &'a str,
    /// At least what the expression matches in nginx.
    expression: Option<Regex>,
    directive: &'a Directive,
    /// What keeps somebody out of it.
    rules: Vec<String>,
    steps: Vec<Step<'a>>,
    within: Vec<Self>,
}

/// What changes the path, or ends that.
enum Step<'a> {
    Rewrite(Rewrite<'a>),
    /// The client is sent elsewhere by a path that matches.
    Redirect(Regex),
    End,
}

struct Rewrite<'a> {
    directive: &'a Directive,
    from: Regex,
    /// Absent if it is not known before a request comes.
    to: Option<&'a str>,
}

/// What nginx does with a path.
struct Choice<'s, 'a> {
    rules: &'s [String],
    place: Option<&'s Place<'a>>,
    /// The first that changed the path.
    rewrite: Option<&'s Rewrite<'a>>,
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
        Self {
            places: places(server, scope),
            rules: rules(scope),
            steps: steps(&server.block),
        }
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
                                    "{}: other routes would let clients in whom it keeps out",
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
            notes.add(server, "the server responds with 403: its routes would let clients in whom a location keeps out");
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
            let choice = self.choice(&path);
            if choice.rules.is_empty() {
                continue;
            }
            let sent = as_path(&path);
            for index in &indexes {
                let found = index.find(&Probe(&sent)).ok().flatten().copied();
                let Some((number, route)) = found.and_then(|it| Some((it, routes.get(it)?))) else {
                    continue;
                };
                let is_spelling = || {
                    let path = allows_spellings.then(|| route.file_of(&path)).flatten();
                    path.is_some_and(|it| route.keeps(self.choice(&it).rules, &sent))
                };
                if !route.keeps(choice.rules, &sent) && !is_spelling() {
                    openings.push(Opening {
                        path: path.clone(),
                        choice,
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

    /// The location that nginx chooses.
    fn choice(&self, path: &str) -> Choice<'_, 'a> {
        let elsewhere = Choice {
            rules: &[],
            place: None,
            rewrite: None,
        };
        let mut path = path.to_owned();
        let mut first = None;
        match changed(&self.steps, &path) {
            Change::None => {}
            Change::To(to, rewrite, _) => {
                path = to;
                first = Some(rewrite);
            }
            Change::Unknown(rewrite) => return self.strictest(rewrite),
            Change::Elsewhere => return elsewhere,
        }
        for _ in 0..CYCLES {
            let (place, _) = find(&self.places, &path);
            let steps = place.map_or(&[] as &[_], |it| &it.steps);
            match changed(steps, &path) {
                Change::To(to, rewrite, false) => {
                    path = to;
                    first = first.or(Some(rewrite));
                }
                Change::Unknown(rewrite) => return self.strictest(rewrite),
                Change::Elsewhere => return elsewhere,
                Change::None | Change::To(_, _, true) => {
                    let rules = place.map_or(&self.rules, |it| &it.rules);
                    return Choice {
                        rules,
                        place,
                        rewrite: first,
                    };
                }
            }
        }
        elsewhere
    }

    /// A `rewrite` may lead to any location.
    fn strictest<'s>(&'s self, rewrite: &'s Rewrite<'a>) -> Choice<'s, 'a> {
        let mut place: Option<&Place<'_>> = None;
        visit(&self.places, &mut |it| {
            if place.is_none_or(|known| known.rules.len() < it.rules.len()) {
                place = Some(it);
            }
        });
        let rules = place.map_or(&self.rules, |it| &it.rules);
        Choice {
            rules,
            place,
            rewrite: Some(rewrite),
        }
    }
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

fn places<'a>(block: &'a Directive, scope: &Scope<'a>) -> Vec<Place<'a>> {
    let mut found = Vec::new();
    for directive in block.block.iter().filter(|it| it.name == "location") {
        let Some((kind, pattern)) = path_of(directive) else {
            continue;
        };
        if pattern.starts_with('@') {
            continue;
        }
        let scope = scope.within(&directive.block);
        let is_any_case = kind == Kind::RegexAnyCase;
        let expression = matches!(kind, Kind::Regex | Kind::RegexAnyCase).then(|| {
            let compile = |text: &str| {
                RegexBuilder::new(text)
                    .case_insensitive(is_any_case)
                    .build()
            };
            let compiled = compile(pattern).or_else(|_| compile(&without_look_around(pattern)));
            compiled.ok()
        });
        found.push(Place {
            kind,
            pattern,
            expression: expression.flatten(),
            directive,
            rules: rules(&scope),
            steps: steps(&directive.block),
            within: places(directive, &scope),
        });
    }
    found
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
            .map(shown),
    );
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
    let others = [
        "auth_request",
        "proxy_pass_request_headers",
        "proxy_pass_request_body",
    ];
    let others = others.iter().filter_map(|name| scope.last(name));
    rules.extend(others.filter(|it| access::closes(it)).map(shown));
    rules.extend(scope.find(super::fates::is_withholding).map(shown));
    rules
}

fn steps(block: &[Directive]) -> Vec<Step<'_>> {
    let mut steps = Vec::new();
    for directive in block {
        let compiled = || {
            let pattern = directive.argument(0);
            let exact = Regex::new(pattern).ok().map(|it| (it, true));
            exact.or_else(|| Some((Regex::new(&without_look_around(pattern)).ok()?, false)))
        };
        match directive.name.as_str() {
            "return" | "break" => steps.push(Step::End),
            "rewrite" if is_redirecting(std::slice::from_ref(directive)) => {
                // What is not known to redirect goes on.
                if let Ok(from) = Regex::new(directive.argument(0)) {
                    steps.push(Step::Redirect(from));
                }
            }
            "rewrite" => {
                let Some((from, is_exact)) = compiled() else {
                    continue;
                };
                let to = directive.argument(1);
                let to = to.split('?').next().unwrap_or_default();
                let mut variables = to.split('$').skip(1);
                let is_known = is_exact
                    && variables.all(|it| it.starts_with(|digit: char| digit.is_ascii_digit()));
                steps.push(Step::Rewrite(Rewrite {
                    directive,
                    from,
                    to: is_known.then_some(to),
                }));
            }
            _ => {}
        }
    }
    steps
}

enum Change<'s, 'a> {
    None,
    /// Another path, and whether it is the last one.
    To(String, &'s Rewrite<'a>, bool),
    Unknown(&'s Rewrite<'a>),
    Elsewhere,
}

fn changed<'s, 'a>(steps: &'s [Step<'a>], path: &str) -> Change<'s, 'a> {
    let mut change = Change::None;
    let mut path = path.to_owned();
    for step in steps {
        match step {
            Step::End => break,
            Step::Redirect(from) if from.is_match(&path) => return Change::Elsewhere,
            Step::Redirect(_) => {}
            Step::Rewrite(rewrite) => {
                let Some(groups) = rewrite.from.captures(&path) else {
                    continue;
                };
                let Some(to) = rewrite.to else {
                    return Change::Unknown(rewrite);
                };
                let changed = expanded(to, &groups);
                let flag = rewrite.directive.argument(2);
                let first = match &change {
                    Change::To(_, first, _) => first,
                    _ => rewrite,
                };
                change = Change::To(changed.clone(), first, flag == "break");
                if !flag.is_empty() {
                    break;
                }
                path = changed;
            }
        }
    }
    change
}

/// A target with the groups, each of one digit, in their places.
fn expanded(to: &str, groups: &Captures<'_>) -> String {
    let mut parts = to.split('$');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let digit = part.chars().next().and_then(|it| it.to_digit(10));
        let group = digit.and_then(|it| groups.get(it as usize));
        text.push_str(group.map_or("", |it| it.as_str()));
        text.push_str(part.get(1..).unwrap_or_default());
    }
    text
}

fn visit<'s, 'a>(places: &'s [Place<'a>], each: &mut impl FnMut(&'s Place<'a>)) {
    for place in places {
        each(place);
        visit(&place.within, each);
    }
}

/// The location of a path, and whether no expression of an outer level comes before it.
///
/// As `ngx_http_core_find_location` does it: the exact path, or else of the longest prefix what is within it, or else
/// the first expression unless the prefix has `^~`, or else the prefix.
fn find<'s, 'a>(places: &'s [Place<'a>], path: &str) -> (Option<&'s Place<'a>>, bool) {
    let exact = places
        .iter()
        .find(|it| it.kind == Kind::Exact && it.pattern == path);
    if exact.is_some() {
        return (exact, true);
    }
    let prefixes = places.iter().filter(|it| {
        matches!(it.kind, Kind::Prefix | Kind::FirstPrefix) && path.starts_with(it.pattern)
    });
    let longest = prefixes.max_by_key(|it| it.pattern.len());
    let mut found = longest;
    if let Some(prefix) = longest {
        let (inner, is_final) = find(&prefix.within, path);
        if is_final {
            return (inner, true);
        }
        found = inner.or(longest);
    }
    if longest.is_none_or(|it| it.kind == Kind::Prefix) {
        let matches = |it: &&Place<'_>| it.expression.as_ref().is_some_and(|it| it.is_match(path));
        if let Some(first) = places.iter().find(matches) {
            let (inner, _) = find(&first.within, path);
            return (inner.or(Some(first)), true);
        }
    }
    (found, false)
}

#[cfg(test)]
pub(super) mod tests;
