//! The locations of a server, and the one that nginx finds for a path.

use regex::{Regex, RegexBuilder};

use super::rules;
use super::steps::{Step, steps};
use crate::import::nginx::Directive;
use crate::import::patterns::{Kind, path_of, without_look_around};
use crate::import::scope::Scope;

/// A location with those within it.
pub(super) struct Place<'a> {
    pub(super) kind: Kind,
    pub(super) pattern: &'a str,
    /// At least what the expression matches in nginx.
    pub(super) expression: Option<Regex>,
    pub(super) directive: &'a Directive,
    /// What keeps somebody out of it.
    pub(super) rules: Vec<String>,
    /// The same for paths that nginx itself leads to it: they are not requested by a client.
    pub(super) led_rules: Vec<String>,
    /// The path that `try_files` ends with.
    pub(super) tried: Option<&'a str>,
    pub(super) steps: Vec<Step<'a>>,
    pub(super) within: Vec<Self>,
}

impl Place<'_> {
    pub(super) fn rules(&self, is_led: bool) -> &[String] {
        if is_led { &self.led_rules } else { &self.rules }
    }
}

pub(super) fn places<'a>(block: &'a [Directive], scope: &Scope<'a>) -> Vec<Place<'a>> {
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

/// The path that `try_files` of a block ends with, without its query.
pub(super) fn tried(block: &[Directive]) -> Option<&str> {
    let directive = block.iter().rev().find(|it| it.name == "try_files")?;
    let last = directive.arguments.last()?.split('?').next()?;
    last.starts_with('/').then_some(last)
}

pub(super) fn visit<'s, 'a>(places: &'s [Place<'a>], each: &mut impl FnMut(&'s Place<'a>)) {
    for place in places {
        each(place);
        visit(&place.within, each);
    }
}

/// The location of a path, and whether no expression of an outer level comes before it.
///
/// As `ngx_http_core_find_location` does it: the exact path, or else of the longest prefix what is within it, or else
/// the first expression unless the prefix has `^~`, or else the prefix.
pub(super) fn find<'s, 'a>(places: &'s [Place<'a>], path: &str) -> (Option<&'s Place<'a>>, bool) {
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
