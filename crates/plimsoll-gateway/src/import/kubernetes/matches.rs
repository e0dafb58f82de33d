//! What requests have to be for a rule of a route, and what the rule does to their paths.

use std::cmp::Reverse;

use http::{HeaderName, Method};
use plimsoll_formats::yaml::Node;
use plimsoll_model::document::toml_string;
use regex::Regex;

use super::super::Notes;
use super::super::nginx::Directive;
use super::super::rows::actions::{Action, Response, not_translated};
use super::super::rows::matcher::Matcher;
use super::super::rows::paths::PathMatch;
use super::super::rows::value_maps::ValueMaps;
use super::super::toml::Keys;
use super::filters::{Filters, is_plain};
use super::gateways::GatewayListener;

/// What requests have to be for a rule.
pub(super) struct Condition {
    pub(super) path: PathTest,
    /// All but the path.
    pub(super) matcher: Matcher,
    /// Conditions that routes do not have: it is for more requests than the rule.
    wider: Vec<String>,
}

/// A condition on the path, with the case of letters.
pub(super) enum PathTest {
    Exact(String),
    /// By elements, without a slash at its end.
    Prefix(String),
    Expression(String),
}

impl Condition {
    pub(super) fn read(node: &Node, kind: &str, values: &mut ValueMaps) -> Self {
        let mut made = Self {
            path: PathTest::Prefix(String::new()),
            matcher: Matcher::default(),
            wider: Vec::new(),
        };
        let is_expression = |node: &Node| node.text_at("type") == Some("RegularExpression");
        if kind == "GRPCRoute" {
            made.call(node.get("method"));
        } else {
            made.path(node.get("path"));
            if let Some(method) = node.text_at("method") {
                if Method::from_bytes(method.as_bytes()).is_ok() {
                    made.matcher.methods.push(toml_string(method));
                } else {
                    made.wider.push(format!("method {method}"));
                }
            }
        }
        for (key, place) in [("headers", "header"), ("queryParams", "query")] {
            for test in node.get(key).items() {
                let text = |key: &str| test.text_at(key).unwrap_or_default();
                let (name, value) = (text("name").to_ascii_lowercase(), text("value"));
                let is_field = place == "header";
                let name = if is_field {
                    name
                } else {
                    text("name").to_owned()
                };
                let is_known = if is_field {
                    HeaderName::from_bytes(name.as_bytes()).is_ok()
                } else {
                    !name.is_empty() && is_plain(&name)
                };
                let table = if is_field {
                    &mut made.matcher.fields
                } else {
                    &mut made.matcher.query
                };
                if !is_known || is_expression(test) && Regex::new(value).is_err() {
                    made.wider.push(format!("{place} {name}"));
                } else if is_expression(test) {
                    let key = format!("{{{place}:{name}}}");
                    let whole = format!("^(?:{value})$");
                    made.matcher.places.push(values.test(&key, &whole, false));
                } else if table.get(&name).is_none() {
                    // Of several of one name the first counts.
                    table.text(&name, value);
                }
            }
        }
        made
    }

    fn path(&mut self, path: &Node) {
        let value = path.text_at("value").unwrap_or("/");
        match path.text_at("type").unwrap_or("PathPrefix") {
            _ if !value.starts_with('/') && !value.starts_with('^') => {
                self.wider.push(format!("path {value}"));
            }
            "Exact" => self.path = PathTest::Exact(value.to_owned()),
            "PathPrefix" => {
                self.path = PathTest::Prefix(value.trim_end_matches('/').to_owned());
            }
            "RegularExpression" if Regex::new(value).is_ok() => {
                self.path = PathTest::Expression(value.to_owned());
            }
            other => self.wider.push(format!("path {other} {value}")),
        }
    }

    /// The method of gRPC.
    fn call(&mut self, method: &Node) {
        let text = |key: &str| method.text_at(key).filter(|it| !it.is_empty());
        let is_expression = text("type") == Some("RegularExpression");
        let part = |text: Option<&str>| match text {
            None => "[^/]+".to_owned(),
            Some(text) if is_expression => format!("(?:{text})"),
            Some(text) => regex::escape(text),
        };
        self.path = match (text("service"), text("method")) {
            (None, None) => return,
            (Some(service), Some(method)) if !is_expression => {
                PathTest::Exact(format!("/{service}/{method}"))
            }
            (Some(service), None) if !is_expression => PathTest::Prefix(format!("/{service}")),
            (service, method) => {
                let expression = format!("/{}/{}", part(service), part(method));
                if Regex::new(&expression).is_err() {
                    self.wider.push(format!("method {expression}"));
                    return;
                }
                PathTest::Expression(expression)
            }
        };
    }

    /// The actions for it: two if what responds depends on the path.
    pub(super) fn actions(
        &self,
        response: &Response,
        filters: &Filters<'_>,
        listener: &GatewayListener,
        place: &Directive,
        notes: &mut Notes,
    ) -> Vec<Action> {
        let made = |paths: Vec<PathMatch>, response: Response| {
            let matcher = Matcher {
                paths,
                ..self.matcher.clone()
            };
            let mut action = Action::new(matcher, response, place);
            action.passed = filters.passed.clone();
            action
        };
        let closed = || vec![made(self.path.all(), not_translated())];
        if !self.wider.is_empty() {
            let shown = self.wider.join("`, `");
            let message = format!(
                "responds with 501: `{shown}` has no counterpart, and it is for fewer requests"
            );
            notes.add(place, message);
            return closed();
        }
        if let Some(redirect) = filters.redirect {
            let Some(targets) = self.path.replaced(redirect.get("path")) else {
                notes.add(place, "responds with 501: its path has no counterpart");
                return closed();
            };
            let made = targets.into_iter().map(|(paths, path)| {
                let keys = redirected(redirect, &path, listener)?;
                Some(made(paths, Response::Other(keys)))
            });
            return made.collect::<Option<Vec<_>>>().unwrap_or_else(|| {
                notes.add(
                    place,
                    "responds with 501: its host or status has no counterpart",
                );
                closed()
            });
        }
        let mut response = response.clone();
        if let (Response::Proxy(proxy), Some(path)) = (&mut response, filters.path) {
            let Some(rewrite) = self.path.rewrite(path) else {
                notes.add(place, "responds with 501: its path has no counterpart");
                return closed();
            };
            proxy.set("rewrite", rewrite);
        }
        vec![made(self.path.all(), response)]
    }
}

/// `redirect` of a route.
///
/// - `path`: with its query.
fn redirected(options: &Node, path: &str, listener: &GatewayListener) -> Option<Keys> {
    let own = if listener.has_tls { "https" } else { "http" };
    let scheme = options.text_at("scheme").unwrap_or(own);
    let host = options.text_at("hostname").unwrap_or_default();
    if !matches!(scheme, "http" | "https") || !is_plain(host) {
        return None;
    }
    let host = if host.is_empty() { "{host}" } else { host };
    let usual = if scheme == "https" { 443 } else { 80 };
    let port = match options.number_at("port") {
        Some(port) => port,
        None if options.get("scheme").is_there() => usual,
        None => i64::from(listener.port),
    };
    let port = if port == usual {
        String::new()
    } else {
        format!(":{port}")
    };
    let status = options.number_at("statusCode").unwrap_or(302);
    if ![301, 302, 303, 307, 308].contains(&status) {
        return None;
    }
    let to = toml_string(&format!("{scheme}://{host}{port}{path}"));
    let mut keys = Keys::default();
    keys.set("redirect", format!("{{ to = {to}, status = {status} }}"));
    Some(keys)
}

/// In which order conditions on the path are tried: the smaller one first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum PathRank {
    Exact,
    /// The specification leaves their order open.
    Expression(Reverse<usize>),
    Prefix(Reverse<usize>),
}

impl PathTest {
    pub(super) fn rank(&self) -> PathRank {
        match self {
            Self::Exact(_) => PathRank::Exact,
            Self::Prefix(path) => PathRank::Prefix(Reverse(path.len())),
            Self::Expression(expression) => PathRank::Expression(Reverse(expression.len())),
        }
    }

    /// As conditions of routes; none for all paths.
    fn all(&self) -> Vec<PathMatch> {
        match self {
            Self::Exact(path) => vec![sensitive(&regex::escape(path))],
            Self::Prefix(path) if path.is_empty() => Vec::new(),
            Self::Prefix(path) => {
                let path = regex::escape(path);
                vec![sensitive(&path), sensitive(&format!("{path}/.*"))]
            }
            Self::Expression(expression) => vec![sensitive(expression)],
        }
    }

    /// The paths that redirects lead to, each for some of its own, with the query.
    fn replaced(&self, path: &Node) -> Option<Vec<(Vec<PathMatch>, String)>> {
        let Some(kind) = path.text_at("type") else {
            return Some(vec![(self.all(), "{target}".to_owned())]);
        };
        match (kind, self) {
            ("ReplaceFullPath", _) => {
                let full = path.text_at("replaceFullPath").filter(|it| is_plain(it))?;
                Some(vec![(self.all(), format!("{full}{{query}}"))])
            }
            ("ReplacePrefixMatch", Self::Prefix(prefix)) => {
                let new = path.text_at("replacePrefixMatch").unwrap_or_default();
                if !is_plain(new) {
                    return None;
                }
                let alone = if new.is_empty() { "/" } else { new };
                let begin = new.trim_end_matches('/');
                let prefix = regex::escape(prefix);
                let below = sensitive(&format!("{prefix}/(.*)"));
                let mut all = vec![(vec![below], format!("{begin}/{{1}}{{query}}"))];
                if !prefix.is_empty() {
                    all.push((vec![sensitive(&prefix)], format!("{alone}{{query}}")));
                }
                Some(all)
            }
            _ => None,
        }
    }

    /// `rewrite` of a proxy.
    fn rewrite(&self, path: &Node) -> Option<String> {
        let table = |from: &str, to: &str| {
            let to = to.replace('$', "$$");
            (toml_string(from), to)
        };
        match (path.text_at("type")?, self) {
            ("ReplaceFullPath", _) => {
                let full = path.text_at("replaceFullPath")?;
                let (from, to) = table("^.*$", full);
                Some(format!("{{ from = {from}, to = {} }}", toml_string(&to)))
            }
            ("ReplacePrefixMatch", Self::Prefix(prefix)) => {
                let new = path.text_at("replacePrefixMatch").unwrap_or_default();
                let alone = if new.is_empty() { "/" } else { new };
                let prefix = regex::escape(prefix);
                let (from, begin) = table(&format!("^{prefix}/(.*)$"), new.trim_end_matches('/'));
                let below = toml_string(&format!("{begin}/${{1}}"));
                let (whole, alone) = table(&format!("^{prefix}$"), alone);
                let alone = toml_string(&alone);
                Some(format!(
                    "[{{ from = {from}, to = {below} }}, {{ from = {whole}, to = {alone} }}]"
                ))
            }
            _ => None,
        }
    }
}

/// An expression for whole paths, with the case of letters.
fn sensitive(expression: &str) -> PathMatch {
    PathMatch::Regex(format!("(?-i:{expression})"))
}
