//! The redirects of one pattern: the first whose host and query are those of a request.

use std::collections::{BTreeMap, HashMap};

use plimsoll_formats::site::RedirectRule;

use crate::rules::RuleInput;

/// Redirects that match the same paths.
#[derive(Debug, Default)]
pub(super) struct Alternatives {
    /// Those for every host and query.
    plain: FirstRules,
    /// The others, by their hosts; `None` is every host.
    conditioned: HashMap<Option<String>, HostRules>,
}

/// The redirects of one host.
#[derive(Debug, Default)]
struct HostRules {
    plain: FirstRules,
    /// By one of the parameters that they need.
    queries: HashMap<String, Vec<QueryRules>>,
}

/// Redirects that need the same parameters.
#[derive(Debug)]
struct QueryRules {
    /// Parameters that need a certain value.
    valued: Vec<String>,
    /// Parameters that need any value.
    present: Vec<String>,
    by_values: HashMap<Vec<String>, FirstRules>,
}

/// The first of rules that hold for the same requests.
#[derive(Debug, Clone, Copy)]
struct FirstRules {
    /// Of all; the greatest number if there is none.
    of_all: usize,
    /// Of those that hold where there is a file, too.
    of_forced: usize,
}

impl Default for FirstRules {
    fn default() -> Self {
        Self {
            of_all: usize::MAX,
            of_forced: usize::MAX,
        }
    }
}

impl FirstRules {
    fn add(&mut self, rule: &RedirectRule, at: usize) {
        self.of_all = self.of_all.min(at);
        if rule.is_forced {
            self.of_forced = self.of_forced.min(at);
        }
    }

    fn lower(self, is_there: bool, bound: &mut usize) {
        let first = if is_there {
            self.of_forced
        } else {
            self.of_all
        };
        *bound = first.min(*bound);
    }
}

impl Alternatives {
    /// Adds the rule with that number.
    pub(super) fn add(&mut self, rule: &RedirectRule, at: usize) {
        if rule.host.is_none() && rule.query.is_empty() {
            return self.plain.add(rule, at);
        }
        // What parameters are needed, each once; a rule that needs two values of one never holds.
        let mut needed: BTreeMap<&str, Option<&str>> = BTreeMap::new();
        for (name, wanted) in &rule.query {
            let wanted = (!wanted.starts_with(':')).then_some(wanted.as_str());
            let known = needed.entry(name).or_insert(wanted);
            match (*known, wanted) {
                (Some(one), Some(other)) if one != other => return,
                (None, Some(_)) => *known = wanted,
                _ => {}
            }
        }
        let of_host = self.conditioned.entry(rule.host.clone()).or_default();
        let Some(key) = needed.keys().next() else {
            return of_host.plain.add(rule, at);
        };
        let of_key = of_host.queries.entry((*key).to_owned()).or_default();
        let named = |has_value: bool| {
            let named = needed
                .iter()
                .filter(move |(_, it)| it.is_some() == has_value);
            named
                .map(|(name, _)| (*name).to_owned())
                .collect::<Vec<_>>()
        };
        let (valued, present) = (named(true), named(false));
        let is_same = |it: &QueryRules| it.valued == valued && it.present == present;
        let number = of_key.iter().position(is_same).unwrap_or_else(|| {
            of_key.push(QueryRules {
                valued,
                present,
                by_values: HashMap::new(),
            });
            of_key.len() - 1
        });
        let wanted = needed.values().flatten().map(|value| (*value).to_owned());
        let rules = &mut of_key[number].by_values;
        rules.entry(wanted.collect()).or_default().add(rule, at);
    }

    /// Lowers `bound` to the first rule that holds for a request.
    ///
    /// - `is_there`: there is a file at the path.
    pub(super) fn first(&self, input: RuleInput<'_>, is_there: bool, bound: &mut usize) {
        self.plain.lower(is_there, bound);
        if self.conditioned.is_empty() {
            return;
        }
        let parameters = parameters(input.query.unwrap_or_default());
        for host in [None, Some(input.host.to_ascii_lowercase())] {
            if let Some(of_host) = self.conditioned.get(&host) {
                of_host.first(&parameters, is_there, bound);
            }
        }
    }
}

impl HostRules {
    fn first(&self, parameters: &Parameters<'_>, is_there: bool, bound: &mut usize) {
        self.plain.lower(is_there, bound);
        for name in parameters.keys().filter(|_| !self.queries.is_empty()) {
            for rules in self.queries.get(*name).into_iter().flatten() {
                if let Some(first) = rules.first(parameters) {
                    first.lower(is_there, bound);
                }
            }
        }
    }
}

impl QueryRules {
    fn first(&self, parameters: &Parameters<'_>) -> Option<FirstRules> {
        let is_there = |name: &String| parameters.contains_key(name.as_str());
        if !self.present.iter().all(is_there) {
            return None;
        }
        let values = self
            .valued
            .iter()
            .map(|name| parameters.get(name.as_str()).cloned());
        let values = values.collect::<Option<Vec<_>>>()?;
        self.by_values.get(&values).copied()
    }
}

/// Parameters of a query by their names as they are written, with their decoded values.
pub(super) type Parameters<'q> = HashMap<&'q str, String>;

/// The parameters of a query: of those that share a name, the first whose value is UTF-8.
pub(super) fn parameters(query: &str) -> Parameters<'_> {
    let mut parameters = HashMap::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let value = value.replace('+', " ");
        if let Ok(value) = percent_encoding::percent_decode_str(&value).decode_utf8() {
            parameters.entry(name).or_insert_with(|| value.into_owned());
        }
    }
    parameters
}
