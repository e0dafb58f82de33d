//! Routers as routes: for each host those that may get its requests, in the order of their priorities.

use std::collections::BTreeSet;

use plimsoll_formats::yaml::Node;

use super::super::Notes;
use super::super::nginx::Directive;
use super::super::route::Route;
use super::super::rows::Rows;
use super::super::rows::actions::{Action, Response, answer, not_translated};
use super::super::rows::maps::Maps;
use super::super::rows::matcher::Matcher;
use super::super::rows::steps::{Block, Step};
use super::super::rows::value_maps::ValueMaps;
use super::super::toml::Keys;
use super::conditions::Conditions;
use super::errors::PageRoute;
use super::listeners::{Listener, closing_options};
use super::middlewares::{Chain, Surroundings};
use super::model::{Model, Untranslated};
use super::rule::{self, RuleError};
use super::services::Services;
use super::values::list;

/// A router.
#[derive(Debug)]
pub(super) struct Router {
    pub(super) place: Directive,
    alternatives: Vec<Conditions>,
    priority: i64,
    /// Empty for all.
    pub(super) entry_points: Vec<String>,
    middlewares: Vec<String>,
    service: Option<String>,
    pub(super) is_tls: bool,
    /// That orders certificates.
    resolver: Option<String>,
    /// Names of `tls.domains`.
    domains: Vec<String>,
    /// It cannot be let through.
    is_closed: bool,
}

/// The routers of a file, those with the highest priority first.
pub(super) fn routers(model: &Model, maps: &mut ValueMaps, notes: &mut Notes) -> Vec<Router> {
    let all = model.dynamic.at("http.routers").entries().iter();
    let mut routers: Vec<Router> = all
        .filter_map(|(name, node)| Router::new(name, node, model, maps, notes))
        .collect();
    routers.sort_by_key(|it| std::cmp::Reverse(it.priority));
    routers
}

impl Router {
    fn new(
        name: &str,
        node: &Node,
        model: &Model,
        maps: &mut ValueMaps,
        notes: &mut Notes,
    ) -> Option<Self> {
        let place = model.place(node, &format!("routers.{name}"));
        let text = node.text_at("rule").unwrap_or_default();
        let alternatives = match rule::parse(text).map(|it| it.alternatives()) {
            Ok(Some(alternatives)) => {
                let alternatives = alternatives.iter();
                let made = alternatives.map(|literals| Conditions::new(literals, maps));
                made.collect()
            }
            Ok(None) | Err(RuleError::Deep | RuleError::Long) => {
                vec![Conditions::closed("the rule, which is too large")]
            }
            Err(error) => {
                notes.add(&place, format!("left out, as its rule is none: {error}"));
                return None;
            }
        };
        for one in &alternatives {
            for wider in &one.wider {
                let message = format!("responds with 501: `{wider}` is no condition of routes");
                notes.add(&place, message);
            }
        }
        let mut is_closed = false;
        for (key, _) in node.entries() {
            let known = [
                "rule",
                "entrypoints",
                "middlewares",
                "service",
                "priority",
                "tls",
                "rulesyntax",
            ];
            // How much is told about requests.
            if !known.contains(&key.to_ascii_lowercase().as_str())
                && !key.eq_ignore_ascii_case("observability")
            {
                notes.add(&place, format!("`{key}` is left out"));
            }
        }
        let tls = node.get("tls");
        let is_tls = tls.is_there() && tls.text() != Some("false");
        if is_tls && let Some(option) = closing_options(tls, model) {
            notes.add(
                &place,
                format!("responds with 501: TLS options `{option}` may keep clients out"),
            );
            is_closed = true;
        }
        let priority = node.number_at("priority").filter(|it| *it != 0);
        let mut domains = Vec::new();
        for domain in tls.get("domains").items() {
            domains.extend(domain.text_at("main").map(str::to_owned));
            domains.extend(list(domain.get("sans")));
        }
        let resolver = tls.text_at("certResolver").filter(|it| !it.is_empty());
        Some(Self {
            alternatives,
            priority: priority.unwrap_or_else(|| i64::try_from(text.len()).unwrap_or(i64::MAX)),
            entry_points: list(node.get("entryPoints")),
            middlewares: list(node.get("middlewares")),
            service: node.text_at("service").map(str::to_owned),
            is_tls,
            resolver: resolver.map(str::to_owned),
            domains,
            is_closed,
            place,
        })
    }

    /// Whether it has requests of an entry point.
    pub(super) fn has_entry_point(&self, name: &str) -> bool {
        let mut names = self.entry_points.iter();
        names.any(|it| it.eq_ignore_ascii_case(name))
    }

    pub(super) fn is_at(&self, listener: &Listener) -> bool {
        let mut names = self.entry_points.iter();
        let is_named = names.any(|it| it.eq_ignore_ascii_case(&listener.name));
        if self.entry_points.is_empty() {
            self.is_tls == listener.is_tls
        } else {
            // One without TLS at an entry point with it is taken for one with that of the entry point.
            is_named && (listener.is_tls || !self.is_tls)
        }
    }

    /// Names that certificates are ordered for.
    pub(super) fn certificates(&self) -> Option<(&str, Vec<&str>)> {
        let resolver = self.resolver.as_deref()?;
        let names = if self.domains.is_empty() {
            let names = self.alternatives.iter().flat_map(Conditions::own_names);
            names.collect()
        } else {
            self.domains.iter().map(String::as_str).collect()
        };
        Some((resolver, names))
    }

    /// What it responds with, by the first of these that is for a request.
    ///
    /// - `pages`: routes of error pages, to which those of this router are added.
    fn actions(
        &self,
        services: &mut Services,
        listener: &Listener,
        pages: &mut Vec<PageRoute>,
        around: &mut Surroundings<'_>,
    ) -> Vec<Action> {
        let of = |response| Action::new(Matcher::default(), response, &self.place);
        if self.is_closed || listener.is_closed {
            return vec![of(not_translated())];
        }
        let mut chain = Chain::default();
        chain.add_all(&listener.middlewares, &self.place, 0, around);
        chain.add_all(&self.middlewares, &self.place, 0, around);
        let mut actions = Vec::new();
        for (place, response, passed) in std::mem::take(&mut chain.redirects) {
            let mut action = of(response);
            action.matcher.places.push((place, "true".to_owned()));
            action.passed = passed;
            actions.push(action);
        }
        let mut on_status = Keys::default();
        for errors in std::mem::take(&mut chain.errors) {
            pages.extend(errors.routes(services, &mut on_status, around));
        }
        if !on_status.is_empty() {
            // Those of servers too.
            chain.proxy.set("intercept_errors", "true");
            chain.passed.keys.set("on_status", on_status.inline());
        }
        let response = match chain.response.take() {
            Some(response) => response,
            None => self.response(&chain, services, around),
        };
        let mut action = of(response);
        action.passed = chain.passed;
        actions.push(action);
        actions
    }

    fn response(
        &self,
        chain: &Chain,
        services: &mut Services,
        around: &mut Surroundings<'_>,
    ) -> Response {
        let Some(service) = &self.service else {
            around
                .notes
                .add(&self.place, "responds with 404: it has no service");
            return Response::Other(answer("404", ""));
        };
        if service == "noop@internal" {
            return Response::Other(answer("418", ""));
        }
        match services.proxy(service, &chain.upstream, around.model, around.notes) {
            Ok(mut proxy) => {
                chain.paths.write(&mut proxy);
                for (key, value) in chain.proxy.pairs() {
                    proxy.set(key, value);
                }
                Response::Proxy(proxy)
            }
            Err(reason) => {
                let message = match &reason {
                    Untranslated::Internal(name) if name.starts_with("ping") => {
                        format!("responds with 501: {reason}: see `[metrics]`")
                    }
                    Untranslated::Internal(_) => {
                        format!("responds with 501: {reason}: see `[admin]`")
                    }
                    _ => format!("responds with 501: {reason}"),
                };
                around.notes.add(&self.place, message);
                not_translated()
            }
        }
    }
}

/// The routes of a listener, for each host; and the places of routers that are among them.
pub(super) fn routes(
    routers: &[Router],
    listener: &Listener,
    services: &mut Services,
    maps: &mut Maps,
    around: &mut Surroundings<'_>,
    reached: &mut BTreeSet<(usize, String)>,
) -> Vec<Route> {
    let own: Vec<&Router> = routers.iter().filter(|it| it.is_at(listener)).collect();
    let mut pages = Vec::new();
    let actions: Vec<Vec<Action>> = own
        .iter()
        .map(|router| router.actions(services, listener, &mut pages, around))
        .collect();
    let alternatives = own.iter().flat_map(|it| &it.alternatives);
    let hosts: BTreeSet<String> = alternatives
        .flat_map(|it| it.names().map(str::to_owned).collect::<Vec<_>>())
        .collect();
    let groups = hosts.iter().map(|it| Some(it.as_str())).chain([None]);
    let mut made = Vec::new();
    for host in groups {
        let mut block = Block::default();
        for (router, actions) in own.iter().zip(&actions) {
            for one in &router.alternatives {
                let Some(matcher) = one.at(host, around.maps) else {
                    continue;
                };
                let actions = if one.wider.is_empty() {
                    actions.clone()
                } else {
                    vec![Action::new(
                        Matcher::default(),
                        not_translated(),
                        &router.place,
                    )]
                };
                block.0.push(Step::Actions { matcher, actions });
            }
        }
        let Some(Step::Actions { actions: first, .. }) = block.0.first() else {
            // Hosts that only others are excluded from have routes of their own, and so need a 404.
            if let Some(host) = host {
                let place = &own.first().map(|it| it.place.clone());
                if let Some(place) = place {
                    let action = Action::new(
                        Matcher::default(),
                        Response::Other(answer("404", "")),
                        place,
                    );
                    let keys = action.routes(Some(host), &listener.name, maps);
                    made.extend(keys.iter().map(|keys| Route::new(keys, place)));
                }
            }
            continue;
        };
        let Some(place) = first.first().map(|it| it.directive.clone()) else {
            continue;
        };
        // What is not reached at one host may be at another one.
        let mut own_notes = Notes::default();
        let mut rows = Rows::of_site(&block, &place, false, &mut own_notes);
        let others = own_notes
            .0
            .into_iter()
            .filter(|it| !it.message.ends_with(UNREACHED));
        around.notes.0.extend(others);
        rows.in_order();
        for action in &rows.0 {
            reached.insert((action.directive.line, action.directive.name.clone()));
            for keys in action.routes(host, &listener.name, maps) {
                made.push(Route::new(&keys, &action.directive));
            }
        }
        let mut led: Vec<&PageRoute> = Vec::new();
        for page in &pages {
            let mut actions = rows.0.iter();
            let is_needed = actions.any(|it| page.is_led_to(&it.passed.keys));
            // Several routers may have the same middleware.
            if is_needed && !led.iter().any(|it| it.path == page.path) {
                led.push(page);
                made.push(page.route(host, &listener.name));
            }
        }
    }
    made
}

/// The end of notes about steps that no request gets to.
const UNREACHED: &str = "takes all of its requests";
