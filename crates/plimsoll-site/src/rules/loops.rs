//! Redirects that send clients round in circles, or further than clients follow.

use std::collections::HashMap;

use plimsoll_formats::Remark;

use crate::files::path::SitePath;
use crate::rules::reach::sample;
use crate::rules::{RuleInput, Rules};

/// The value of placeholders while rules are tried.
const SAMPLE: &str = "x";

/// Hops of a chain of redirects: browsers and curl follow 20 to 50.
const MOST_HOPS: usize = 20;

/// Paths of a chain that are shown.
const SHOWN: usize = 4;

/// Paths between two looks at whether the result is still needed.
const BETWEEN_LOOKS: usize = 256;

/// The rules from whose paths clients are sent round in circles, or on for ever, each with its paths.
///
/// Each rule is followed for [`MOST_HOPS`] at most, and each path is looked for once.
pub(super) fn find(
    rules: &Rules,
    exists: &dyn Fn(&str) -> bool,
    is_stale: &dyn Fn() -> bool,
) -> Vec<Remark> {
    let mut found = Vec::new();
    let mut looked_for: HashMap<String, bool> = HashMap::new();
    for (at, redirect) in rules.redirects.iter().enumerate() {
        if at % BETWEEN_LOOKS == 0 && is_stale() {
            break;
        }
        let rule = &redirect.rule;
        let sends = (300..400).contains(&rule.status);
        // Where a rule is for one host or one query, the next hop may be another's.
        if !sends || rule.host.is_some() || !rule.query.is_empty() || !rule.to.starts_with('/') {
            continue;
        }
        let mut exists = |path: &str| {
            let known = looked_for.get(path).copied();
            known.unwrap_or_else(|| *looked_for.entry(path.to_owned()).or_insert(exists(path)))
        };
        let start = sample(&rule.from, rules.dialect, SAMPLE, SAMPLE);
        if let Some(chain) = endless(rules, &mut exists, start) {
            found.push(Remark::line(rule.line, message(&chain)));
        }
    }
    found
}

/// The way from a path on, if it does not end.
fn endless(
    rules: &Rules,
    exists: &mut dyn FnMut(&str) -> bool,
    start: String,
) -> Option<Vec<String>> {
    let mut chain = vec![start];
    loop {
        let path = chain.last()?;
        // Without a file at the first path, the rule holds; only then is there a chain.
        let is_there = chain.len() > 1 && exists(path);
        let next = next(rules, path, is_there)?;
        let is_known = chain.contains(&next);
        chain.push(next);
        if is_known || chain.len() > MOST_HOPS {
            return Some(chain);
        }
    }
}

/// Where a rule sends clients from a path, within the site.
fn next(rules: &Rules, path: &str, is_there: bool) -> Option<String> {
    let input = RuleInput {
        host: "",
        path,
        query: None,
    };
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
    Some(format!("/{}{slash}", parsed.joined))
}

fn message(chain: &[String]) -> String {
    let (last, before) = chain.split_last().expect("a chain has a path");
    let what = if before.first() == Some(last) {
        "leads back to itself".to_owned()
    } else if before.contains(last) {
        "leads into a circle".to_owned()
    } else {
        format!("leads over more than {MOST_HOPS} redirects")
    };
    let shown = chain.get(..SHOWN).unwrap_or(chain).join(" → ");
    let more = if chain.len() > SHOWN { " → …" } else { "" };
    format!("{what}: {shown}{more}")
}
