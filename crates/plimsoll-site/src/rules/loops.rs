//! Rules that send clients round in circles, found before anybody is sent.

use std::collections::HashSet;

use crate::files::path::SitePath;
use crate::rules::{MOST_HOPS, RuleInput, Rules};

/// The value of placeholders while rules are tried.
const SAMPLE: &str = "x";

/// The lines of rules that lead back to themselves, or on for ever, each with the paths on the way.
pub(super) fn find(rules: &Rules, exists: &dyn Fn(&str) -> bool) -> Vec<(usize, Vec<String>)> {
    let mut found = Vec::new();
    for redirect in &rules.redirects {
        let rule = &redirect.rule;
        let sends = (300..400).contains(&rule.status);
        // Where a rule is for one host or one query, the next hop may be another's.
        if !sends || rule.host.is_some() || !rule.query.is_empty() || !rule.to.starts_with('/') {
            continue;
        }
        let names = rule.from.split('/').map(|segment| match segment {
            "*" => SAMPLE,
            place if place.starts_with(':') => SAMPLE,
            literal => literal,
        });
        let start = names.collect::<Vec<_>>().join("/").replace('*', SAMPLE);
        if let Some(chain) = chain(rules, exists, start) {
            found.push((rule.line, chain));
        }
    }
    found
}

/// The way from a path back to one that it passed, if it does not end.
fn chain(rules: &Rules, exists: &dyn Fn(&str) -> bool, start: String) -> Option<Vec<String>> {
    let mut seen = HashSet::new();
    let mut way = Vec::new();
    let mut path = start;
    loop {
        way.push(path.clone());
        if !seen.insert(path.clone()) || way.len() > MOST_HOPS {
            return Some(way);
        }
        let input = RuleInput {
            host: "",
            path: &path,
            query: None,
        };
        let is_there = way.len() > 1 && exists(&path);
        let outcome = rules.redirect(input, is_there)?;
        if !(300..400).contains(&outcome.status) || !outcome.to.starts_with('/') {
            return None;
        }
        let end = outcome.to.find(['?', '#']).unwrap_or(outcome.to.len());
        let next = outcome.to.get(..end).unwrap_or_default();
        let parsed = SitePath::parse(next).ok()?;
        let slash = if parsed.has_slash && !parsed.joined.is_empty() {
            "/"
        } else {
            ""
        };
        path = format!("/{}{slash}", parsed.joined);
    }
}
