//! `map`, `geo` and `split_clients` as `[map.NAME]`.

use std::fmt::Write as _;

use ipnet::{IpNet, Ipv4Net, Ipv4Subnets, Ipv6Subnets};
use plimsoll_model::document::{toml_key, toml_string};
use plimsoll_server::Moment;
use regex::Regex;

use super::Notes;
use super::nginx::Directive;
use super::patterns::UnknownExpression;
use super::scope::Scope;
use super::toml::Keys;
use super::variables::{NoCounterpart, with_places_below};

/// Maps whose values name maps, as deep as `up` permits.
const DEEPEST: usize = 5;

/// Why a map has no table.
#[derive(Debug, thiserror::Error)]
pub(super) enum MapProblem {
    #[error("maps name each other too deeply")]
    TooDeep,
    #[error("it has no variable")]
    NoVariable,
    #[error(transparent)]
    NoCounterpart(#[from] NoCounterpart),
    #[error(transparent)]
    Expression(#[from] UnknownExpression),
    #[error(
        "`{0}`: `trusted_proxies` of the listener has the proxies whose field names the client"
    )]
    Proxies(String),
    #[error("`{0}` is no percentage")]
    Percentage(String),
    #[error("`{0}` is neither a network nor a range of addresses")]
    Network(String),
}

/// A map as text.
pub(super) struct MapText {
    /// The keys of its table.
    pub(super) keys: String,
    /// Every value that it can have, if these are known.
    pub(super) values: Option<Vec<String>>,
}

/// The directive that gives a variable its value by others, such as `map`.
pub(super) fn defining<'a>(variable: &str, scope: &Scope<'a>) -> Option<&'a Directive> {
    let outer = scope.outermost();
    let mut blocks = outer.innermost().iter().rev();
    blocks.find(|it| {
        let is_map = matches!(it.name.as_str(), "map" | "geo" | "split_clients");
        is_map && it.arguments.last().is_some_and(|it| it == variable)
    })
}

/// The tables of all of them that have a counterpart; the others are noted.
pub(super) fn write(outer: &[Directive], out: &mut String, notes: &mut Notes) {
    let scope = Scope::new(outer);
    for directive in outer {
        let is_map = matches!(directive.name.as_str(), "map" | "geo" | "split_clients");
        // By which WebSockets are upgraded to; they are anyway.
        if !is_map || directive.argument(0) == "$http_upgrade" {
            continue;
        }
        let variable = directive.arguments.last().map_or("", String::as_str);
        // The last one of a name counts.
        if defining(variable, &scope).is_none_or(|it| !std::ptr::eq(it, directive)) {
            continue;
        }
        match translated(directive, &scope, Moment::End, 1) {
            Ok(map) => {
                let name = toml_key(variable.trim_start_matches('$'));
                write!(out, "\n[map.{name}]\n{}", map.keys).ok();
            }
            Err(reason) => notes.add(directive, format!("left out: {reason}")),
        }
    }
}

/// The table of a map, or why there is none.
pub(super) fn translated(
    directive: &Directive,
    scope: &Scope<'_>,
    moment: Moment,
    depth: usize,
) -> Result<MapText, MapProblem> {
    if depth > DEEPEST {
        return Err(MapProblem::TooDeep);
    }
    let translation = Translation {
        scope,
        moment,
        depth,
    };
    match directive.name.as_str() {
        "map" => translation.map(directive),
        "geo" => translation.geo(directive),
        _ => translation.split_clients(directive),
    }
}

struct Translation<'a> {
    scope: &'a Scope<'a>,
    moment: Moment,
    depth: usize,
}

impl Translation<'_> {
    fn text(&self, text: &str, groups: Option<&Regex>) -> Result<String, NoCounterpart> {
        let filled = with_places_below(text, self.scope, self.moment, groups, self.depth);
        filled.ok_or_else(|| NoCounterpart(text.to_owned()))
    }

    fn map(&self, directive: &Directive) -> Result<MapText, MapProblem> {
        let [key, _] = directive.arguments.as_slice() else {
            return Err(MapProblem::NoVariable);
        };
        let mut parts = Parts::new(&self.text(key, None)?);
        let has_hosts = directive.block.iter().any(|it| it.name == "hostnames");
        for entry in &directive.block {
            let (name, given) = (entry.name.as_str(), entry.argument(0));
            if entry.arguments.is_empty() && matches!(name, "hostnames" | "volatile") {
                continue;
            }
            if let Some(expression) = name.strip_prefix('~') {
                let expression = match expression.strip_prefix('*') {
                    Some(expression) => format!("(?i){expression}"),
                    None => expression.to_owned(),
                };
                let regex =
                    Regex::new(&expression).map_err(|_| UnknownExpression(expression.clone()))?;
                let value = self.text(given, Some(&regex))?;
                parts.expression(&expression, &value);
                continue;
            }
            let value = self.text(given, None)?;
            let name = name.strip_prefix('\\').unwrap_or(name);
            match name {
                "default" if entry.name == "default" => parts.default = value,
                name if has_hosts && name.starts_with("*.") => {
                    parts.suffix.text(name.trim_start_matches('*'), &value);
                }
                name if has_hosts && name.starts_with('.') => {
                    parts.exact.text(name.trim_start_matches('.'), &value);
                    parts.suffix.text(name, &value);
                }
                name if has_hosts && name.ends_with(".*") => {
                    parts.prefix.text(name.trim_end_matches('*'), &value);
                }
                name => parts.exact.text(name, &value),
            }
            parts.known(given);
        }
        Ok(parts.finish())
    }

    fn geo(&self, directive: &Directive) -> Result<MapText, MapProblem> {
        let key = match directive.arguments.as_slice() {
            [_] => "$remote_addr",
            [key, _] => key.as_str(),
            _ => return Err(MapProblem::NoVariable),
        };
        let mut parts = Parts::new(&self.text(key, None)?);
        let is_flag = |name| {
            let mut flags = directive.block.iter();
            flags.any(|it| it.name == name && it.arguments.is_empty())
        };
        let has_ranges = is_flag("ranges");
        for entry in &directive.block {
            let (name, given) = (entry.name.as_str(), entry.argument(0));
            match name {
                "ranges" | "volatile" if entry.arguments.is_empty() => continue,
                "default" => {
                    parts.default = self.text(given, None)?;
                    continue;
                }
                "delete" => {
                    for network in networks(given, has_ranges)? {
                        parts.networks.remove(&network.to_string());
                    }
                    continue;
                }
                "proxy" | "proxy_recursive" => {
                    return Err(MapProblem::Proxies(name.to_owned()));
                }
                _ => {}
            }
            let value = self.text(given, None)?;
            for network in networks(name, has_ranges)? {
                parts.networks.text(&network.to_string(), &value);
            }
            parts.known(given);
        }
        Ok(parts.finish())
    }

    fn split_clients(&self, directive: &Directive) -> Result<MapText, MapProblem> {
        let [key, _] = directive.arguments.as_slice() else {
            return Err(MapProblem::NoVariable);
        };
        let mut parts = Parts::new(&self.text(key, None)?);
        for entry in &directive.block {
            let given = entry.argument(0);
            let value = self.text(given, None)?;
            parts.known(given);
            if entry.name == "*" {
                parts.default = value;
                continue;
            }
            let percent = entry.name.strip_suffix('%');
            let percent = percent.and_then(|it| it.parse::<f64>().ok());
            let percent = percent.filter(|it| (0.0..=100.0).contains(it));
            let percent = percent.ok_or_else(|| MapProblem::Percentage(entry.name.clone()))?;
            let value = toml_string(&value);
            parts
                .shares
                .push(format!("{{ percent = {percent:?}, value = {value} }}"));
        }
        Ok(parts.finish())
    }
}

/// The keys of a table that is being written.
struct Parts {
    key: String,
    exact: Keys,
    networks: Keys,
    prefix: Keys,
    suffix: Keys,
    expressions: Vec<String>,
    shares: Vec<String>,
    default: String,
    values: Option<Vec<String>>,
}

impl Parts {
    fn new(key: &str) -> Self {
        Self {
            key: key.to_owned(),
            exact: Keys::default(),
            networks: Keys::default(),
            prefix: Keys::default(),
            suffix: Keys::default(),
            expressions: Vec::new(),
            shares: Vec::new(),
            default: String::new(),
            values: Some(Vec::new()),
        }
    }

    fn expression(&mut self, expression: &str, value: &str) {
        let (expression, value_text) = (toml_string(expression), toml_string(value));
        self.expressions
            .push(format!("{{ match = {expression}, value = {value_text} }}"));
        self.known(value);
    }

    /// Takes a value among those that are known, or gives that up.
    fn known(&mut self, value: &str) {
        if value.contains(['$', '{']) {
            self.values = None;
        }
        if let Some(values) = &mut self.values {
            values.push(value.to_owned());
        }
    }

    fn finish(mut self) -> MapText {
        let default = self.default.clone();
        self.known(&default);
        let mut keys = format!("key = {}\nignore_case = true\n", toml_string(&self.key));
        let tables = [
            ("exact", &self.exact),
            ("networks", &self.networks),
            ("prefix", &self.prefix),
            ("suffix", &self.suffix),
        ];
        for (name, table) in tables {
            if !table.is_empty() {
                writeln!(keys, "{name} = {}", table.inline()).ok();
            }
        }
        for (name, list) in [("regex", &self.expressions), ("shares", &self.shares)] {
            if !list.is_empty() {
                writeln!(keys, "{name} = [{}]", list.join(", ")).ok();
            }
        }
        if !self.default.is_empty() {
            writeln!(keys, "default = {}", toml_string(&self.default)).ok();
        }
        MapText {
            keys,
            values: self.values,
        }
    }
}

/// The networks of one entry of `geo`: one, or those that a range is made of.
fn networks(text: &str, has_ranges: bool) -> Result<Vec<IpNet>, MapProblem> {
    let wrong = || MapProblem::Network(text.to_owned());
    if has_ranges {
        let (first, last) = text.split_once('-').ok_or_else(wrong)?;
        if let (Ok(first), Ok(last)) = (first.parse(), last.parse()) {
            let parts = Ipv4Subnets::new(first, last, 0);
            return Ok(parts.map(IpNet::V4).collect());
        }
        if let (Ok(first), Ok(last)) = (first.parse(), last.parse()) {
            let parts = Ipv6Subnets::new(first, last, 0);
            return Ok(parts.map(IpNet::V6).collect());
        }
        return Err(wrong());
    }
    let address = || {
        text.parse()
            .ok()
            .map(|it: std::net::IpAddr| IpNet::from(it))
    };
    let network = text.parse().ok().or_else(address);
    // nginx reads `127` as an address of fewer numbers.
    let short = || {
        let parts: Vec<u8> = text.split('.').map_while(|it| it.parse().ok()).collect();
        let [first] = parts.as_slice() else {
            return None;
        };
        Ipv4Net::new([0, 0, 0, *first].into(), 32)
            .ok()
            .map(IpNet::V4)
    };
    network
        .map(|it: IpNet| it.trunc())
        .or_else(short)
        .map(|it| vec![it])
        .ok_or_else(wrong)
}
