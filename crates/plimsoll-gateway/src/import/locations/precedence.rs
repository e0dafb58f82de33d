//! The order in which nginx takes locations, as nearly as that of routes comes to it.

use super::super::access;
use super::super::nginx::Directive;
use super::super::patterns::Kind;
use super::Location;

/// Whether a prefix has locations below it that do not follow from its length: longer prefixes that are not `^~`, or
/// expressions within it.
pub(super) fn has_exceptions(prefix: &Location<'_>, locations: &[Location<'_>]) -> bool {
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
pub(super) fn is_early(location: &Location<'_>, locations: &[Location<'_>]) -> bool {
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
pub(super) fn in_precedence<'a, 'b>(locations: &'b [Location<'a>]) -> Vec<&'b Location<'a>> {
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
pub(super) fn is_case_decisive(locations: &[Location<'_>], is_server_closing: bool) -> bool {
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
