//! Routes of the Gateway API, of HTTP and of gRPC, as what responds at the listeners of their Gateways.
//!
//! Source: the specification of the Gateway API, version 1 (`HTTPRoute`, `GRPCRoute`).

use std::cmp::Reverse;
use std::collections::BTreeMap;

use http::{HeaderName, Method};
use plimsoll_formats::yaml::Node;
use plimsoll_model::document::toml_string;
use plimsoll_model::parse_duration;
use regex::Regex;

use super::super::Notes;
use super::super::nginx::Directive;
use super::super::rows::actions::{Action, Response, answer, not_translated};
use super::super::rows::matcher::Matcher;
use super::super::rows::paths::PathMatch;
use super::super::rows::value_maps::ValueMaps;
use super::super::toml::Keys;
use super::super::weights::split;
use super::Object;
use super::annotations::Annotations;
use super::filters::{Filters, is_plain};
use super::gateways::{GatewayListener, Gateways, Guarded, is_granted};
use super::services::{Connection, Services};
use super::sites::{ListenerId, Sites};

/// What a rule without a path is for.
static EVERY: [Node; 1] = [Node {
    line: 0,
    column: 0,
    written: (0, 0),
    content: plimsoll_formats::yaml::Content::Null,
}];

/// Adds what the routes of a file say.
pub(super) fn add(
    objects: &[Object<'_>],
    services: &mut Services,
    sites: &mut Sites,
    notes: &mut Notes,
) {
    let is_route = |it: &&Object<'_>| matches!(it.kind, "HTTPRoute" | "GRPCRoute");
    let mut routes: Vec<_> = objects.iter().filter(is_route).collect();
    // Of rules that are equal in all else the one of the oldest route counts, then by name.
    routes.sort_by_key(|it| {
        let age = it.node.text_at("metadata.creationTimestamp");
        (age.is_none(), age, it.namespace, it.name)
    });
    let guarded = Guarded::read(objects, notes);
    let gateways = Gateways::read(objects, &guarded, notes);
    let mut all = Attached::default();
    for (age, route) in routes.into_iter().enumerate() {
        let mut translated = TranslatedRoute {
            route,
            objects,
            services: &mut *services,
            age,
            is_closed: guarded.has(route),
        };
        translated.attach(&gateways, sites, &mut all, notes);
    }
    for ((listener, host), mut hosted) in all.0 {
        hosted
            .entries
            .sort_by(|one, other| one.rank.cmp(&other.rank));
        let actions = hosted.entries.into_iter().map(|it| it.action);
        sites.add_leading_on(listener, &host, &hosted.place, actions);
    }
}

/// What is for a host of a listener.
#[derive(Default)]
struct Attached(BTreeMap<(ListenerId, String), Hosted>);

struct Hosted {
    place: Directive,
    entries: Vec<Entry>,
}

/// An action and its place in the order in which they are tried.
#[derive(Clone)]
struct Entry {
    rank: Rank,
    action: Action,
}

/// What decides which of two rules is for a request: the smaller one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    path: PathRank,
    has_no_method: bool,
    headers: Reverse<usize>,
    queries: Reverse<usize>,
    /// Of the route.
    age: usize,
    rule: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum PathRank {
    Exact,
    /// The specification leaves their order open.
    Expression(Reverse<usize>),
    Prefix(Reverse<usize>),
}

/// A route on its way.
struct TranslatedRoute<'a> {
    route: &'a Object<'a>,
    objects: &'a [Object<'a>],
    services: &'a mut Services,
    age: usize,
    /// Something keeps clients out that cannot be said.
    is_closed: bool,
}

impl TranslatedRoute<'_> {
    /// Adds it to the listeners of its parents.
    fn attach(
        &mut self,
        gateways: &Gateways,
        sites: &mut Sites,
        all: &mut Attached,
        notes: &mut Notes,
    ) {
        let annotations = self.route.node.at("metadata.annotations");
        let annotations = Annotations::read(annotations, &self.route.place, notes);
        self.is_closed |= annotations.passed.is_closed;
        let spec = self.route.node.get("spec");
        let mut listeners: Vec<GatewayListener> = Vec::new();
        for parent in spec.get("parentRefs").items() {
            listeners.extend(gateways.of_parent(self.route, parent, notes));
        }
        if listeners.is_empty() {
            let message = "left out: no listener of a Gateway takes it";
            notes.add(&self.route.place, message);
            return;
        }
        let names = spec.get("hostnames").texts();
        let names: Vec<_> = names.iter().map(|it| it.to_ascii_lowercase()).collect();
        let names = match names.as_slice() {
            [] => vec![None],
            names => names.iter().map(|it| Some(it.as_str())).collect(),
        };
        for listener in listeners {
            let hosts = names.iter().filter_map(|it| listener.shared(*it));
            let mut hosts: Vec<_> = hosts.filter(|it| gateways.is_best(&listener, it)).collect();
            hosts.sort();
            hosts.dedup();
            if hosts.is_empty() {
                let message = format!(
                    "left out at port {}, no listener of which is for its host names",
                    listener.port
                );
                notes.add(&self.route.place, message);
                continue;
            }
            let certificates = listener.has_tls.then(|| {
                let named = hosts.iter().filter(|it| !it.is_empty());
                named.cloned().collect()
            });
            let (owner, place) = (&listener.gateway, &listener.place);
            let id = sites.listen(owner, listener.port, certificates, place, notes);
            if let Some(own) = &listener.hostname
                && gateways.is_within_another(&listener)
            {
                sites.add(id, own, place, []);
            }
            let entries = self.entries(&listener, &mut sites.values, notes);
            for host in hosts {
                let hosted = all.0.entry((id, host)).or_insert_with(|| Hosted {
                    place: self.route.place.clone(),
                    entries: Vec::new(),
                });
                hosted.entries.extend(entries.iter().cloned());
            }
        }
    }

    fn entries(
        &mut self,
        listener: &GatewayListener,
        values: &mut ValueMaps,
        notes: &mut Notes,
    ) -> Vec<Entry> {
        let mut made = Vec::new();
        let rules = self.route.node.at("spec.rules");
        for (number, rule) in rules.items().iter().enumerate() {
            let matches = match rule.get("matches").items() {
                [] => EVERY.as_slice(),
                matches => matches,
            };
            let filters = Filters::read(rule.get("filters"), self.route, notes);
            let response = self.response(rule, &filters, notes);
            for node in matches {
                let place = self.route.at(if node.line == 0 { rule } else { node });
                let condition = Condition::read(node, self.route.kind, values);
                let rank = Rank {
                    path: condition.path.rank(),
                    has_no_method: condition.matcher.methods.is_empty(),
                    headers: Reverse(node.get("headers").items().len()),
                    queries: Reverse(node.get("queryParams").items().len()),
                    age: self.age,
                    rule: number,
                };
                let mut actions = condition.actions(&response, &filters, listener, &place, notes);
                for action in &mut actions {
                    action.passed.is_closed |= self.is_closed || listener.is_closed;
                }
                made.extend(actions.into_iter().map(|action| Entry { rank, action }));
            }
        }
        made
    }

    /// What responds for a rule, whatever the path.
    fn response(&mut self, rule: &Node, filters: &Filters<'_>, notes: &mut Notes) -> Response {
        if filters.redirect.is_some() {
            return Response::Other(Keys::default());
        }
        let mut connection = Keys::default();
        if self.route.kind == "GRPCRoute" {
            connection.text("protocol", "http2");
        }
        let session = rule.get("sessionPersistence");
        if session.is_there() {
            match session.text_at("type").unwrap_or("Cookie") {
                "Cookie" => {
                    connection.text(
                        "sticky",
                        session.text_at("sessionName").unwrap_or("session"),
                    );
                }
                _ => notes.add(
                    &self.route.at(session),
                    "left out: sessions are kept by cookies",
                ),
            }
        }
        let mut parts = Vec::new();
        for backend in rule.get("backendRefs").items() {
            let weight = backend.number_at("weight").unwrap_or(1);
            if weight <= 0 {
                continue;
            }
            let Some(upstream) = self.upstream(backend, &connection, notes) else {
                return not_translated();
            };
            parts.push((upstream, weight));
        }
        let Some(split) = split(&parts) else {
            // As the specification has it.
            return Response::Other(answer("500", ""));
        };
        let place = self.route.at(rule);
        let mut proxy = Keys::default();
        if let Some((to, _)) = parts.get(split.most) {
            proxy.text("to", to);
        }
        if !split.is_exact {
            notes.add(&place, "weights are percentages without fractions");
        }
        if !split.others.is_empty() {
            proxy.set("split", split.others.inline());
        }
        if let Some(mirror) = filters.mirror {
            match self.upstream(mirror.get("backendRef"), &Keys::default(), notes) {
                Some(to) => proxy.set("mirror", mirrored(mirror, &to)),
                None => return not_translated(),
            }
        }
        let timeouts = [
            ("timeout", "request"),
            ("response_timeout", "backendRequest"),
        ];
        for (key, name) in timeouts {
            let text = rule.get("timeouts").text_at(name).unwrap_or("0s");
            match parse_duration(text) {
                Ok(duration) if duration.is_zero() => {}
                Ok(_) => proxy.text(key, text),
                Err(_) => notes.add(&place, format!("the timeout `{text}` is left out")),
            }
        }
        if rule.get("retry").is_there() {
            notes.add(&place, "`retry` is left out: see `retries` of an upstream");
        }
        if let Some(host) = &filters.host {
            if is_plain(host) {
                proxy.text("host", host);
            } else {
                notes.add(&place, format!("the host `{host}` is left out"));
            }
        }
        Response::Proxy(proxy)
    }

    /// The upstream for a service; `None` if it is none that the route may use.
    fn upstream(&mut self, backend: &Node, connection: &Keys, notes: &mut Notes) -> Option<String> {
        let place = self.route.at(backend);
        let text = |key: &str| backend.text_at(key);
        let name = text("name").unwrap_or_default();
        let is_service = text("kind").is_none_or(|it| it == "Service")
            && text("group").is_none_or(str::is_empty);
        if !is_service || name.is_empty() {
            let message = "its rule responds with 501: one of its backends is no Service";
            notes.add(&place, message);
            return None;
        }
        if !backend.get("filters").items().is_empty() {
            let message = "its rule responds with 501: filters of a backend have no counterpart";
            notes.add(&place, message);
            return None;
        }
        let namespace = text("namespace").unwrap_or(self.route.namespace);
        let service = (namespace, name);
        if namespace != self.route.namespace && !is_granted(self.objects, self.route, service) {
            let message = format!(
                "its rule responds with 501: no ReferenceGrant of this file lets it use `{namespace}/{name}`"
            );
            notes.add(&place, message);
            return None;
        }
        let connection = Connection {
            scheme: None,
            keys: connection,
        };
        let port = backend.get("port");
        Some(
            self.services
                .upstream(service, port, connection, &place, notes),
        )
    }
}

/// `mirror` of a proxy.
fn mirrored(mirror: &Node, to: &str) -> String {
    let fraction = mirror.get("fraction");
    let of_fraction = || {
        let parts = fraction.number_at("numerator")?;
        let whole = fraction.number_at("denominator").unwrap_or(100).max(1);
        Some(parts.clamp(0, whole).saturating_mul(100) / whole)
    };
    let share = mirror.number_at("percent").or_else(of_fraction);
    let share = share.unwrap_or(100).clamp(0, 100);
    format!("{{ to = {}, share = {share} }}", toml_string(to))
}

/// What requests have to be for a rule.
struct Condition {
    path: PathTest,
    /// All but the path.
    matcher: Matcher,
    /// Conditions that routes do not have: it is for more requests than the rule.
    wider: Vec<String>,
}

/// A condition on the path, with the case of letters.
enum PathTest {
    Exact(String),
    /// By elements, without a slash at its end.
    Prefix(String),
    Expression(String),
}

impl Condition {
    fn read(node: &Node, kind: &str, values: &mut ValueMaps) -> Self {
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
    fn actions(
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

impl PathTest {
    fn rank(&self) -> PathRank {
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

#[cfg(test)]
mod tests;
