//! Routes of the Gateway API, of HTTP and of gRPC, as what responds at the listeners of their Gateways.
//!
//! Source: the specification of the Gateway API, version 1 (`HTTPRoute`, `GRPCRoute`).

use std::cmp::Reverse;
use std::collections::BTreeMap;

use plimsoll_formats::yaml::Node;
use plimsoll_model::document::toml_string;
use plimsoll_model::parse_duration;

use super::super::Notes;
use super::super::nginx::Directive;
use super::super::rows::actions::{Action, Response, answer, not_translated};
use super::super::rows::value_maps::ValueMaps;
use super::super::toml::Keys;
use super::super::weights::split;
use super::Object;
use super::annotations::Annotations;
use super::filters::{Filters, is_plain};
use super::gateways::{GatewayListener, Gateways, Guarded, is_granted};
use super::matches::{Condition, PathRank};
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
        hosted.entries.sort_by_key(|it| it.rank);
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
                let own = hosts.iter().filter(|it| !it.is_empty());
                own.cloned().collect()
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
            let mut filters = Filters::read(rule.get("filters"), self.route, notes);
            if let Some(own) = only_backend(rule).map(|it| it.get("filters")) {
                filters.extend(own, self.route, notes);
            }
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
            if only_backend(rule).is_none() && !backend.get("filters").items().is_empty() {
                let message = "its rule responds with 501: filters of one backend of several have no counterpart";
                notes.add(&self.route.at(backend), message);
                return not_translated();
            }
            let Some(upstream) = self.upstream(backend, &connection, notes) else {
                return failing();
            };
            parts.push((upstream, weight));
        }
        let Some(split) = split(&parts) else {
            return failing();
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
                None => notes.add(&place, "its mirror is left out"),
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

    /// The upstream for a service; `None` if the route may not use the backend.
    fn upstream(&mut self, backend: &Node, connection: &Keys, notes: &mut Notes) -> Option<String> {
        let place = self.route.at(backend);
        let text = |key: &str| backend.text_at(key);
        let name = text("name").unwrap_or_default();
        let is_service = text("kind").is_none_or(|it| it == "Service")
            && text("group").is_none_or(str::is_empty);
        if !is_service || name.is_empty() {
            let message = "responds with 500 as there: the backend is no Service";
            notes.add(&place, message);
            return None;
        }
        let namespace = text("namespace").unwrap_or(self.route.namespace);
        let service = (namespace, name);
        if namespace != self.route.namespace && !is_granted(self.objects, self.route, service) {
            let message = format!(
                "responds with 500 as without it: no ReferenceGrant of this file lets it use `{namespace}/{name}`"
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

/// The backend of a rule that has no other one with requests.
fn only_backend(rule: &Node) -> Option<&Node> {
    let all = rule.get("backendRefs").items().iter();
    let mut used = all.filter(|it| it.number_at("weight").unwrap_or(1) > 0);
    used.next().filter(|_| used.next().is_none())
}

/// What the specification has for rules without a backend that may be used.
fn failing() -> Response {
    Response::Other(answer("500", ""))
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

#[cfg(test)]
mod tests;
