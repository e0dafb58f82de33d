//! Alternatives of a rule as conditions of routes.

use std::net::IpAddr;

use ipnet::IpNet;
use plimsoll_model::document::toml_string;
use regex::Regex;

use super::super::rows::matcher::{Clients, Matcher};
use super::super::rows::paths::{PathMatch, whole_paths};
use super::super::rows::value_maps::ValueMaps;
use super::super::toml::Keys;
use super::rule::{Literal, template};

/// One alternative of a rule.
#[derive(Debug, Clone, Default)]
pub(super) struct Conditions {
    /// What the host has to be.
    hosts: Vec<HostTest>,
    /// The other conditions.
    pub(super) matcher: Matcher,
    /// Conditions that routes do not have: it is for more requests than the rule.
    pub(super) wider: Vec<String>,
}

#[derive(Debug, Clone)]
enum HostTest {
    /// One of these, or none of them.
    Names(Vec<String>, bool),
    /// For the host in small letters.
    Regex(String, bool),
}

impl Conditions {
    pub(super) fn new(literals: &[Literal], maps: &mut ValueMaps) -> Self {
        let mut made = Self::default();
        for literal in literals {
            if made.add(literal, maps).is_none() {
                let sign = if literal.is_negated { "!" } else { "" };
                let call = &literal.call;
                let shown = format!("{sign}{}({})", call.name, call.arguments.join(", "));
                made.wider.push(shown);
            }
        }
        made
    }

    /// For all requests, in place of what routes do not have.
    pub(super) fn closed(reason: &str) -> Self {
        Self {
            wider: vec![reason.to_owned()],
            ..Self::default()
        }
    }

    /// Names that it asks for, or excludes.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.hosts.iter().flat_map(|test| match test {
            HostTest::Names(names, _) => names.iter().map(String::as_str).collect::<Vec<_>>(),
            HostTest::Regex(..) => Vec::new(),
        })
    }

    /// Names that it is for.
    pub(super) fn own_names(&self) -> impl Iterator<Item = &str> {
        self.hosts.iter().flat_map(|test| match test {
            HostTest::Names(names, false) => names.iter().map(String::as_str).collect::<Vec<_>>(),
            HostTest::Names(..) | HostTest::Regex(..) => Vec::new(),
        })
    }

    /// The conditions that are left within routes of a host; `None` if it is not for that.
    ///
    /// - `host`: `None` for all hosts that no alternative names.
    pub(super) fn at(&self, host: Option<&str>, maps: &mut ValueMaps) -> Option<Matcher> {
        let mut matcher = self.matcher.clone();
        for test in &self.hosts {
            let holds = match (test, host) {
                (HostTest::Names(names, is_negated), Some(host)) => {
                    names.iter().any(|it| it == host) != *is_negated
                }
                (HostTest::Names(_, is_negated), None) => *is_negated,
                (HostTest::Regex(expression, is_negated), Some(host)) => {
                    let expression = Regex::new(expression).ok()?;
                    expression.is_match(host) != *is_negated
                }
                (HostTest::Regex(expression, is_negated), None) => {
                    matcher
                        .places
                        .push(maps.test("{host}", expression, *is_negated));
                    true
                }
            };
            if !holds {
                return None;
            }
        }
        Some(matcher)
    }

    /// `None` if routes have no such condition.
    fn add(&mut self, literal: &Literal, maps: &mut ValueMaps) -> Option<()> {
        let is_negated = literal.is_negated;
        let arguments = &literal.call.arguments;
        if arguments.is_empty() {
            return None;
        }
        match literal.call.name.as_str() {
            "host" | "hostheader" => {
                let mut names = Vec::new();
                for name in arguments {
                    names.push(host_name(name)?);
                }
                self.hosts.push(HostTest::Names(names, is_negated));
            }
            "hostregexp" => {
                let expressions = arguments.iter().map(|it| host_expression(it));
                let expression = checked(&expressions.collect::<Vec<_>>().join("|"))?;
                self.hosts.push(HostTest::Regex(expression, is_negated));
            }
            "path" | "pathprefix" | "pathregexp" => self.path(literal)?,
            "method" => {
                let methods = arguments.iter().map(|it| it.to_ascii_uppercase());
                let methods: Vec<String> = methods.collect();
                if is_negated || !self.matcher.methods.is_empty() {
                    let expression = one_of(&methods);
                    let test = maps.test("{method}", &expression, is_negated);
                    self.matcher.places.push(test);
                } else {
                    self.matcher.methods = methods.iter().map(|it| toml_string(it)).collect();
                }
            }
            "header" | "headers" => {
                let [name, value] = arguments.as_slice() else {
                    return None;
                };
                field_name(name)?;
                let key = name.to_ascii_lowercase();
                if is_negated || self.matcher.fields.get(&key).is_some() {
                    let expression = listed(&regex::escape(value));
                    let test = maps.test(&format!("{{header:{key}}}"), &expression, is_negated);
                    self.matcher.places.push(test);
                } else {
                    self.matcher.fields.text(&key, value);
                }
            }
            "headerregexp" | "headersregexp" => {
                let [name, expression] = arguments.as_slice() else {
                    return None;
                };
                field_name(name)?;
                let key = format!("{{header:{}}}", name.to_ascii_lowercase());
                let test = maps.test(&key, &checked(expression)?, is_negated);
                self.matcher.places.push(test);
            }
            "query" => {
                let is_pair = |it: &String| it.contains('=');
                let pairs: Vec<(&str, Option<&str>)> = match arguments.as_slice() {
                    [name, value] if !is_pair(name) => vec![(name, Some(value))],
                    pairs => {
                        let pairs = pairs.iter().map(|it| match it.split_once('=') {
                            Some((name, value)) => (name, Some(value)),
                            None => (it.as_str(), None),
                        });
                        pairs.collect()
                    }
                };
                // A place has the value as it was sent, so that another spelling would get past it.
                if is_negated {
                    return None;
                }
                query(&mut self.matcher.query, &pairs)?;
            }
            "clientip" => {
                for network in arguments {
                    if network.parse::<IpNet>().is_err() && network.parse::<IpAddr>().is_err() {
                        return None;
                    }
                }
                self.matcher.clients.push(Clients {
                    networks: arguments.clone(),
                    is_negated,
                });
            }
            _ => return None,
        }
        Some(())
    }

    fn path(&mut self, literal: &Literal) -> Option<()> {
        let mut paths = Vec::new();
        for text in &literal.call.arguments {
            match literal.call.name.as_str() {
                "pathregexp" => {
                    checked(text)?;
                    let whole = whole_paths(text).into_iter();
                    // Routes disregard the case anyway.
                    if text.starts_with("(?i)") {
                        paths.extend(whole);
                    } else {
                        paths.extend(whole.map(sensitive));
                    }
                }
                kind => {
                    let rest = if kind == "pathprefix" { ".*" } else { "" };
                    let expression = match template(text, "[^/]+") {
                        Some(expression) => checked(&expression)?,
                        None => regex::escape(text),
                    };
                    let path = PathMatch::Regex(format!("{expression}{rest}"));
                    let is_all = expression == "/" && !rest.is_empty();
                    paths.push(if is_all { path } else { sensitive(path) });
                }
            }
        }
        let is_all =
            |it: &PathMatch| matches!(it, PathMatch::Regex(it) if it == "/.*" || it == ".*");
        if paths.iter().any(is_all) {
            // No request, or each.
            if literal.is_negated {
                self.hosts.push(HostTest::Names(Vec::new(), false));
            }
            return Some(());
        }
        if literal.is_negated {
            self.matcher.excluded.extend(paths);
        } else if self.matcher.paths.is_empty() {
            self.matcher.paths = paths;
        } else {
            let other = Matcher {
                paths,
                ..Matcher::default()
            };
            let both = self.matcher.overlap(&other).ok()?;
            match both {
                Some(both) => self.matcher = both,
                None => self.hosts.push(HostTest::Names(Vec::new(), false)),
            }
        }
        Some(())
    }
}

/// Traefik compares letters with their case.
fn sensitive(path: PathMatch) -> PathMatch {
    match path {
        PathMatch::Regex(expression) => PathMatch::Regex(format!("(?-i:{expression})")),
        other => other,
    }
}

fn query(table: &mut Keys, pairs: &[(&str, Option<&str>)]) -> Option<()> {
    for (name, value) in pairs {
        if table.get(name).is_some() {
            return None;
        }
        match value {
            Some(value) => table.text(name, value),
            None => table.set(name, "true"),
        }
    }
    Some(())
}

/// A name that a host may have.
fn host_name(text: &str) -> Option<String> {
    let text = text.trim_end_matches('.').to_ascii_lowercase();
    let is_name = |it: u8| it.is_ascii_alphanumeric() || b"-._".contains(&it);
    let is_ip = text.trim_matches(['[', ']']).parse::<IpAddr>().is_ok();
    (is_ip || !text.is_empty() && text.bytes().all(is_name)).then_some(text)
}

fn host_expression(text: &str) -> String {
    match template(text, "[^.]+") {
        Some(expression) => format!("^(?i:{expression})$"),
        // Traefik reads hosts in small letters.
        None => format!("(?i:{text})"),
    }
}

/// A name that a place may have.
fn field_name(text: &str) -> Option<()> {
    let is_name = |it: u8| it.is_ascii_alphanumeric() || b"-_.".contains(&it);
    (!text.is_empty() && text.bytes().all(is_name)).then_some(())
}

fn checked(expression: &str) -> Option<String> {
    Regex::new(expression).ok()?;
    Some(expression.to_owned())
}

fn one_of(texts: &[String]) -> String {
    let escaped: Vec<_> = texts.iter().map(|it| regex::escape(it)).collect();
    whole(&escaped.join("|"))
}

fn whole(expression: &str) -> String {
    format!("^(?:{expression})$")
}

/// One of several values, which have commas between them.
fn listed(expression: &str) -> String {
    format!("(?:^|, *)(?:{expression})(?:$|,)")
}
