//! Rules that are never used, since an earlier one takes all their requests.

use plimsoll_formats::Remark;
use plimsoll_formats::site::Dialect;

use crate::files::path::escaped;
use crate::rules::pattern::place_name;
use crate::rules::{RuleInput, Rules};

/// A text that nothing but a place matches: no rule has this character (it is of a private area of Unicode).
const ANY: &str = "\u{f8ff}";

/// What `*` stands for in trials: nothing, a segment, and several of them. A rule that takes all three takes all.
const RESTS: [&str; 3] = ["", ANY, "\u{f8ff}/\u{f8ff}/\u{f8ff}"];

/// The rules that are never used.
pub(super) fn unused(rules: &Rules) -> Vec<Remark> {
    let mut found = Vec::new();
    for (at, redirect) in rules.redirects.iter().enumerate() {
        let rule = &redirect.rule;
        let query = rule.query.iter().map(|(name, wanted)| {
            let value = if wanted.starts_with(':') { ANY } else { wanted };
            let value = escaped(value).replace('+', "%2B").replace('&', "%26");
            format!("{name}={value}")
        });
        let query = query.collect::<Vec<_>>().join("&");
        let first = |rest: &str| {
            let path = sample(&rule.from, rules.dialect, ANY, rest);
            let input = RuleInput {
                host: rule.host.as_deref().unwrap_or_default(),
                path: &path,
                query: (!query.is_empty()).then_some(query.as_str()),
            };
            // A rule that holds where there is a file is hidden only by others that do.
            rules.first(input, rule.is_forced)
        };
        let mut firsts = RESTS.iter().map(|rest| first(rest));
        if let Some(Some(one)) = firsts.next()
            && one < at
            && firsts.all(|other| other == Some(one))
        {
            let line = rules.redirects[one].rule.line;
            let message = format!("is never used: line {line} takes all its requests");
            found.push(Remark::line(rule.line, message));
        }
    }
    found
}

/// A path that a rule matches.
///
/// - `place`: stands for each `:name`.
/// - `rest`: stands for `*`.
pub(super) fn sample(from: &str, dialect: Dialect, place: &str, rest: &str) -> String {
    let mut path = String::with_capacity(from.len());
    for segment in from.split('/').skip(1) {
        path.push('/');
        if dialect == Dialect::Netlify {
            let is_place = segment.len() > 1 && segment.starts_with(':');
            let text = if is_place { place } else { segment };
            path.push_str(&text.replace('*', rest));
            continue;
        }
        let mut left = segment;
        while let Some(at) = left.find(':') {
            let (before, from) = left.split_at(at);
            path.push_str(before);
            let name = place_name(from);
            path.push_str(if name.is_empty() { ":" } else { place });
            left = from.get(1 + name.len()..).unwrap_or_default();
        }
        path.push_str(left);
        path = path.replace('*', rest);
    }
    path
}
