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
use super::nginx::Directive;
use super::patterns::{Kind, as_path, exact_expression, path_of, without_look_around};
use super::proxy::prefix_expression;
use super::redirects::is_redirecting;
use super::route::Route;
use super::scope::Scope;
use super::toml::Keys;
use super::{ImportNote, Notes};

/// Times that regions are closed before whole routes are, and those before the server is.
const ROUNDS: usize = 3;

/// Times that nginx chooses again after a `rewrite`.
const CYCLES: usize = 10;

/// What may become of one path, by the `if` that its request meets, at most: beyond it, every location may be its.
const OUTCOMES: usize = 64;

/// A server as nginx looks for the location of a path in it.
pub(super) struct Selection<'a> {
    places: Vec<Place<'a>>,
    /// Rules for paths without a location.
    rules: Vec<String>,
    /// The path that `try_files` ends with, for those.
    tried: Option<&'a str>,
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
    /// The same for paths that nginx itself leads to it: they are not requested by a client.
    led_rules: Vec<String>,
    /// The path that `try_files` ends with.
    tried: Option<&'a str>,
    steps: Vec<Step<'a>>,
    within: Vec<Self>,
}

impl Place<'_> {
    fn rules(&self, is_led: bool) -> &[String] {
        if is_led { &self.led_rules } else { &self.rules }
    }
}

/// What changes the path, or ends that.
enum Step<'a> {
    Rewrite(Rewrite<'a>),
    /// The client is sent elsewhere by a path that matches.
    Redirect(Regex),
    /// An `if`, whose steps some requests take.
    Perhaps(Vec<Self>),
    /// `break`: the location stays the one that it is.
    Break,
    /// `return`, which responds.
    Return,
}

struct Rewrite<'a> {
    directive: &'a Directive,
    from: Regex,
    /// Absent if it is not known before a request comes.
    to: Option<&'a str>,
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

/// Follows a path from location to location.
struct Following<'s, 'a> {
    selection: &'s Selection<'a>,
    choices: Vec<Choice<'s, 'a>>,
    /// Paths whose location is known, and whether nginx itself led to them.
    seen: BTreeSet<(String, bool)>,
    /// All locations are among the choices.
    is_anywhere: bool,
}

impl<'s, 'a> Following<'s, 'a> {
    fn new(selection: &'s Selection<'a>) -> Self {
        Self {
            selection,
            choices: Vec::new(),
            seen: BTreeSet::new(),
            is_anywhere: false,
        }
    }

    /// Follows a path from the directives of the server on.
    ///
    /// - `is_led`: nginx itself leads there.
    /// - `left`: times that nginx still chooses.
    fn begin(&mut self, path: &str, is_led: bool, left: usize) {
        if path.contains('$') {
            return self.add_all(None, is_led);
        }
        let mut changes = Vec::new();
        change(&self.selection.steps, Changed::none(path), &mut changes);
        for changed in changes {
            match changed.end {
                // A `return` of the server comes before the routes of all its locations.
                Ended::Elsewhere | Ended::Returned => {}
                Ended::Unknown(rewrite) => self.add_all(rewrite, is_led),
                Ended::Through | Ended::Broken | Ended::Last => {
                    self.find(&changed.path, is_led, changed.first, left);
                }
            }
        }
    }

    /// Finds the location of a path, and follows what it does with the path.
    ///
    /// - `first`: the first `rewrite` that changed the path.
    fn find(&mut self, path: &str, is_led: bool, first: Option<&'s Rewrite<'a>>, left: usize) {
        // nginx gives up with a 500.
        let Some(left) = left.checked_sub(1) else {
            return;
        };
        if self.is_anywhere || !self.seen.insert((path.to_owned(), is_led)) {
            return;
        }
        if self.seen.len() > OUTCOMES {
            return self.add_all(first, is_led);
        }
        let (place, _) = find(&self.selection.places, path);
        let steps = place.map_or(&[] as &[_], |it| &it.steps);
        let mut changes = Vec::new();
        change(steps, Changed::none(path), &mut changes);
        for changed in changes {
            let first = first.or(changed.first);
            match changed.end {
                Ended::Elsewhere => {}
                Ended::Unknown(rewrite) => self.add_all(rewrite, is_led),
                Ended::Through | Ended::Last if changed.first.is_some() => {
                    self.find(&changed.path, is_led, first, left);
                }
                Ended::Returned => self.add(place, is_led, first),
                Ended::Through | Ended::Last | Ended::Broken => {
                    self.add(place, is_led, first);
                    // Where there is no file it comes to that path.
                    if let Some(tried) = place.map_or(self.selection.tried, |it| it.tried) {
                        self.begin(tried, true, left);
                    }
                }
            }
        }
    }

    fn add(
        &mut self,
        place: Option<&'s Place<'a>>,
        is_led: bool,
        rewrite: Option<&'s Rewrite<'a>>,
    ) {
        let of_place = |it: &'s Place<'a>| it.rules(is_led);
        self.choices.push(Choice {
            rules: place.map_or(&self.selection.rules, of_place),
            place,
            rewrite,
            is_led,
        });
    }

    /// The path may lead to any location.
    fn add_all(&mut self, rewrite: Option<&'s Rewrite<'a>>, is_led: bool) {
        self.is_anywhere |= !is_led;
        self.add(None, is_led, rewrite);
        visit(&self.selection.places, &mut |place| {
            self.add(Some(place), is_led, rewrite);
        });
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

fn places<'a>(block: &'a [Directive], scope: &Scope<'a>) -> Vec<Place<'a>> {
    let mut found = Vec::new();
    for directive in block.iter().filter(|it| it.name == "location") {
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
        let rules = rules(&scope);
        let led_rules = rules.iter().filter(|it| !it.starts_with("internal"));
        found.push(Place {
            kind,
            pattern,
            expression: expression.flatten(),
            directive,
            led_rules: led_rules.cloned().collect(),
            rules,
            tried: tried(&directive.block),
            steps: steps(&directive.block),
            within: places(&directive.block, &scope),
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

/// The path that `try_files` of a block ends with, without its query.
fn tried(block: &[Directive]) -> Option<&str> {
    let directive = block.iter().rev().find(|it| it.name == "try_files")?;
    let last = directive.arguments.last()?.split('?').next()?;
    last.starts_with('/').then_some(last)
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
            "return" => steps.push(Step::Return),
            "break" => steps.push(Step::Break),
            "if" => steps.push(Step::Perhaps(self::steps(&directive.block))),
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

/// A path behind some steps.
#[derive(Clone)]
struct Changed<'s, 'a> {
    path: String,
    /// The first `rewrite` that changed it.
    first: Option<&'s Rewrite<'a>>,
    end: Ended<'s, 'a>,
}

impl Changed<'_, '_> {
    fn none(path: &str) -> Self {
        Self {
            path: path.to_owned(),
            first: None,
            end: Ended::Through,
        }
    }
}

/// How steps ended.
#[derive(Clone, Copy)]
enum Ended<'s, 'a> {
    /// All of them were taken.
    Through,
    /// By a `rewrite … last`.
    Last,
    /// The location stays the one that it is.
    Broken,
    Returned,
    /// The client is sent elsewhere.
    Elsewhere,
    /// The target of a `rewrite` is not known, or too much may happen.
    Unknown(Option<&'s Rewrite<'a>>),
}

/// Everything that may become of a path by steps.
fn change<'s, 'a>(
    steps: &'s [Step<'a>],
    mut changed: Changed<'s, 'a>,
    all: &mut Vec<Changed<'s, 'a>>,
) {
    for (at, step) in steps.iter().enumerate() {
        match step {
            Step::Return => {
                changed.end = Ended::Returned;
                break;
            }
            Step::Break => {
                changed.end = Ended::Broken;
                break;
            }
            Step::Redirect(from) if from.is_match(&changed.path) => {
                changed.end = Ended::Elsewhere;
                break;
            }
            Step::Redirect(_) => {}
            Step::Perhaps(_) if all.len() > OUTCOMES => {
                changed.end = Ended::Unknown(changed.first);
                break;
            }
            Step::Perhaps(own) => {
                let mut taken = Vec::new();
                change(own, changed.clone(), &mut taken);
                for taken in taken {
                    if matches!(taken.end, Ended::Through) {
                        change(steps.get(at + 1..).unwrap_or_default(), taken, all);
                    } else {
                        all.push(taken);
                    }
                }
            }
            Step::Rewrite(rewrite) => {
                let Some(groups) = rewrite.from.captures(&changed.path) else {
                    continue;
                };
                let Some(to) = rewrite.to else {
                    changed.end = Ended::Unknown(Some(rewrite));
                    break;
                };
                changed.path = expanded(to, &groups);
                changed.first = changed.first.or(Some(rewrite));
                changed.end = match rewrite.directive.argument(2) {
                    "" => Ended::Through,
                    "break" => Ended::Broken,
                    _ => Ended::Last,
                };
                if !matches!(changed.end, Ended::Through) {
                    break;
                }
            }
        }
    }
    all.push(changed);
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
