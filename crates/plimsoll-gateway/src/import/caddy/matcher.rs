//! Matchers: which requests a directive is for.

use std::net::IpAddr;

use ipnet::IpNet;
use plimsoll_model::document::toml_string;

use super::super::nginx::Directive;
use super::super::rows::matcher::{Clients, Matcher};
use super::super::rows::paths::{PathMatch, whole_paths};
use super::untranslated::Untranslated;

/// The named matchers of a block, by their names with `@`.
pub(super) struct Named<'d>(Vec<(&'d str, Vec<Directive>)>);

impl<'d> Named<'d> {
    /// Those of a block, behind those around it.
    pub(super) fn within(&self, block: &'d [Directive]) -> Self {
        let mut all = self.0.clone();
        for directive in block.iter().filter(|it| it.name.starts_with('@')) {
            let conditions = match directive.arguments.split_first() {
                // All in one line.
                Some((name, arguments)) => vec![Directive {
                    name: name.clone(),
                    arguments: arguments.to_vec(),
                    ..directive.clone()
                }],
                None => directive.block.clone(),
            };
            all.push((directive.name.as_str(), conditions));
        }
        Self(all)
    }

    pub(super) const fn none() -> Self {
        Self(Vec::new())
    }

    /// Whether a directive has a matcher, and its path if it has one alone.
    pub(super) fn specificity<'a>(&'a self, directive: &'a Directive) -> (bool, Option<&'a str>) {
        let first = directive.argument(0);
        if first.starts_with('/') {
            return (true, Some(first));
        }
        if !first.starts_with('@') {
            return (false, None);
        }
        let known = self.0.iter().rev().find(|(name, _)| *name == first);
        let lines = known.map_or(&[][..], |(_, lines)| lines.as_slice());
        let paths = lines.iter().filter(|it| it.name == "path");
        let mut paths = paths.flat_map(|it| it.arguments.iter().map(String::as_str));
        let path = paths.next();
        (true, path.filter(|_| paths.next().is_none()))
    }

    /// The matcher that the first argument of a directive is, if it is one, and the arguments behind it. Fails with the condition
    /// that has no counterpart.
    pub(super) fn matcher_of<'a>(
        &self,
        directive: &'a Directive,
    ) -> Result<(Matcher, &'a [String]), Untranslated> {
        let arguments = directive.arguments.as_slice();
        let Some((first, rest)) = arguments.split_first() else {
            return Ok((Matcher::default(), arguments));
        };
        if first.starts_with('@') {
            let mut known = self.0.iter().rev();
            let found = known.find(|(name, _)| name == first);
            let (_, conditions) = found.ok_or_else(|| Untranslated::Matcher(first.clone()))?;
            return Ok((matcher(conditions)?, rest));
        }
        if first.starts_with('/') && first.contains('%') {
            return Err(Untranslated::Condition(first.clone()));
        }
        if first == "*" || first.starts_with('/') {
            let paths = PathMatch::new(first).into_iter().collect();
            return Ok((
                Matcher {
                    paths,
                    ..Matcher::default()
                },
                rest,
            ));
        }
        Ok((Matcher::default(), arguments))
    }
}

fn matcher(conditions: &[Directive]) -> Result<Matcher, Untranslated> {
    let mut made = Matcher::default();
    let mut is_for_all_paths = false;
    for one in conditions {
        let arguments = &one.arguments;
        match one.name.as_str() {
            "path" if arguments.iter().any(|it| it.contains('%')) => {
                return Err(condition("path", &arguments.join(" ")));
            }
            "path" if made.has_groups => return Err(condition("path_regexp", "beside `path`")),
            "path" => {
                let paths: Vec<_> = arguments.iter().map(|it| PathMatch::new(it)).collect();
                is_for_all_paths |= paths.contains(&None);
                made.paths.extend(paths.into_iter().flatten());
            }
            "path_regexp" if is_for_all_paths || !made.paths.is_empty() => {
                return Err(condition("path_regexp", "beside another"));
            }
            "path_regexp" => {
                let expression = arguments.last().map_or("", String::as_str);
                made.paths.extend(whole_paths(expression));
                made.has_groups = true;
            }
            "method" => {
                let methods = arguments.iter().map(|it| toml_string(it));
                made.methods.extend(methods);
            }
            "header" => {
                let name = one.argument(0).to_ascii_lowercase();
                let value = match one.argument(1) {
                    "*" | "" if !name.starts_with('!') => "true".to_owned(),
                    value if !value.contains('*') && !name.starts_with('!') => toml_string(value),
                    _ => return Err(condition("header", &arguments.join(" "))),
                };
                if made.fields.get(&name).is_some() {
                    // Any of several values would do.
                    return Err(condition("header", &format!("{name} with several values")));
                }
                made.fields.set(&name, value);
            }
            "query" => {
                for argument in arguments {
                    let (name, value) = argument.split_once('=').unwrap_or((argument, "*"));
                    let value = match value {
                        "*" => "true".to_owned(),
                        value => toml_string(value),
                    };
                    if made.query.get(name).is_some() {
                        return Err(condition("query", &format!("{name} with several values")));
                    }
                    made.query.set(name, value);
                }
            }
            "remote_ip" | "client_ip" => made.is_from(clients(one, false)?),
            "not" => made.is_not(one)?,
            "protocol" if matches!(one.argument(0), "http" | "https") => {
                made.scheme = Some(toml_string(one.argument(0)));
            }
            name => return Err(condition(name, "")),
        }
    }
    if is_for_all_paths {
        made.paths.clear();
    }
    Ok(made)
}

/// A condition that routes do not have.
fn condition(name: &str, rest: &str) -> Untranslated {
    Untranslated::Condition(format!("{name} {rest}").trim().to_owned())
}

fn clients(condition: &Directive, is_negated: bool) -> Result<Clients, Untranslated> {
    let mut networks = Vec::new();
    for network in condition.arguments.iter().filter(|it| *it != "forwarded") {
        for network in networks_of(network) {
            let is_network = network.parse::<IpNet>().is_ok() || network.parse::<IpAddr>().is_ok();
            if !is_network {
                return Err(Untranslated::Condition(format!(
                    "{} {network}",
                    condition.name
                )));
            }
            networks.push(network);
        }
    }
    Ok(Clients {
        networks,
        is_negated,
    })
}

/// A network, or those that Caddy calls `private_ranges`.
pub(super) fn networks_of(text: &str) -> Vec<String> {
    if text == "private_ranges" {
        let ranges = [
            "192.168.0.0/16",
            "172.16.0.0/12",
            "10.0.0.0/8",
            "127.0.0.0/8",
            "fd00::/8",
            "::1/128",
        ];
        return ranges.map(str::to_owned).to_vec();
    }
    vec![text.to_owned()]
}

/// The conditions that Caddy combines.
impl Matcher {
    /// Of several lines of one kind any is enough, or none may be met if they are negated.
    fn is_from(&mut self, clients: Clients) {
        let mut known = self.clients.iter_mut();
        match known.find(|it| it.is_negated == clients.is_negated) {
            Some(known) => known.networks.extend(clients.networks),
            None => self.clients.push(clients),
        }
    }

    fn is_not(&mut self, one: &Directive) -> Result<(), Untranslated> {
        let negated = match one.arguments.split_first() {
            Some((name, rest)) => Directive {
                name: name.clone(),
                arguments: rest.to_vec(),
                ..one.clone()
            },
            None => match one.block.as_slice() {
                [only] => only.clone(),
                _ => return Err(condition("not", "")),
            },
        };
        match negated.name.as_str() {
            "remote_ip" | "client_ip" => self.is_from(clients(&negated, true)?),
            "path" => {
                for path in &negated.arguments {
                    let path = Some(path).filter(|it| !it.contains('%'));
                    let path = path.and_then(|it| PathMatch::new(it));
                    self.excluded
                        .push(path.ok_or_else(|| condition("not", "path"))?);
                }
            }
            "path_regexp" => {
                let expression = negated.arguments.last().map_or("", String::as_str);
                self.excluded.extend(whole_paths(expression));
            }
            name => return Err(condition("not", name)),
        }
        Ok(())
    }
}
