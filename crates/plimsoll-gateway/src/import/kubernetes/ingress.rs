//! Ingress: paths of hosts, and annotations for them.
//!
//! Source: Kubernetes' documentation, "Ingress" (`networking.k8s.io/v1`); annotations as ingress-nginx has them.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_formats::yaml::Node;
use plimsoll_model::document::toml_string;

use super::super::Notes;
use super::super::nginx::Directive;
use super::super::rows::actions::{Action, Response, not_translated};
use super::super::rows::matcher::Matcher;
use super::super::rows::paths::PathMatch;
use super::super::toml::Keys;
use super::Object;
use super::annotations::{Annotations, TlsRedirect};
use super::services::{Connection, Services};
use super::sites::Sites;

/// Adds what the Ingresses of a file say.
pub(super) fn add(
    objects: &[Object<'_>],
    services: &mut Services,
    sites: &mut Sites,
    notes: &mut Notes,
) {
    let mut rules = Vec::new();
    let mut hosts_with_tls = BTreeSet::new();
    for object in objects.iter().filter(|it| it.kind == "Ingress") {
        let ingress = Ingress::new(object, notes);
        hosts_with_tls.extend(ingress.hosts_with_tls(notes));
        rules.extend(ingress.rules(services, notes));
    }
    let by_host = by_host(rules);
    let is_redirected = |host: &str, rules: &[Rule]| {
        let has_tls = hosts_with_tls.contains(host);
        rules.iter().any(|it| match it.redirects {
            TlsRedirect::Never => false,
            TlsRedirect::WithTls => has_tls,
            TlsRedirect::Always => true,
        })
    };
    let redirected = by_host
        .iter()
        .any(|(host, rules)| is_redirected(host, rules));
    let has_tls = redirected || !hosts_with_tls.is_empty();
    let Some(first) = by_host.values().flatten().next() else {
        return;
    };
    let mut listen = |port, names| sites.listen("Ingress", port, names, &first.place, notes);
    let web = listen(80, None);
    let websecure = has_tls.then(|| listen(443, Some(hosts_with_tls.clone())));
    for (host, rules) in &by_host {
        let Some(first) = rules.first() else {
            continue;
        };
        let actions = || rules.iter().map(Rule::action);
        if is_redirected(host, rules) {
            let mut keys = Keys::default();
            keys.set(
                "redirect",
                "{ to = \"https://{host}{target}\", status = 308 }",
            );
            let action = Action::new(Matcher::default(), Response::Other(keys), &first.place);
            sites.add(web, host, &first.place, [action]);
        } else {
            sites.add(web, host, &first.place, actions());
        }
        if let Some(websecure) = websecure {
            sites.add(websecure, host, &first.place, actions());
        }
    }
}

/// An Ingress with what its annotations say.
struct Ingress<'n> {
    place: Directive,
    spec: &'n Node,
    namespace: &'n str,
    annotations: Annotations,
}

/// A path of a host, and what responds there.
struct Rule {
    place: Directive,
    /// Empty for all hosts that no rule names.
    host: String,
    path: String,
    kind: PathKind,
    action: Action,
    redirects: TlsRedirect,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PathKind {
    Exact,
    /// By elements.
    Prefix,
    /// By characters.
    Begin,
    /// An expression for the beginning, whatever the case of letters.
    Expression,
}

impl<'n> Ingress<'n> {
    fn new(object: &Object<'n>, notes: &mut Notes) -> Self {
        let place = object.place.clone();
        let annotations = object.node.at("metadata.annotations");
        let mut annotations = Annotations::read(annotations, &place, notes);
        let version = object.version;
        if version != "networking.k8s.io/v1" {
            let message = format!("responds with 501: `{version}` is not `networking.k8s.io/v1`");
            notes.add(&place, message);
            annotations.passed.is_closed = true;
        }
        Self {
            place,
            spec: object.node.get("spec"),
            namespace: object.namespace,
            annotations,
        }
    }

    fn hosts_with_tls(&self, notes: &mut Notes) -> Vec<String> {
        let mut all = Vec::new();
        for tls in self.spec.get("tls").items() {
            let hosts = tls.get("hosts").texts();
            if let Some(secret) = tls.text_at("secretName") {
                let message = format!(
                    "certificates are of plimsoll's own making: write `tls.crt` and `tls.key` of the secret `{secret}` as `cert` and `key`, or `acme`, into `tls`"
                );
                notes.add(&self.place, message);
            }
            all.extend(hosts.iter().map(|it| it.to_ascii_lowercase()));
        }
        all
    }

    fn rules(&self, services: &mut Services, notes: &mut Notes) -> Vec<Rule> {
        let mut made = Vec::new();
        if self.annotations.is_canary {
            notes.add(&self.place, "left out: see `split` of `proxy` for canaries");
            return made;
        }
        let rules = self.spec.get("rules").items();
        let mut hosts = Vec::new();
        for rule in rules {
            let host = rule.text_at("host").unwrap_or_default();
            let host = host.to_ascii_lowercase();
            hosts.push(host.clone());
            if host.starts_with("*.") {
                let place = Directive::place(&self.place.file, rule.line, &self.place.name);
                let message =
                    format!("`{host}` is also for names with several labels in place of `*`");
                notes.add(&place, message);
            }
            for path in rule.at("http.paths").items() {
                let place = Directive::place(&self.place.file, path.line, &self.place.name);
                made.extend(self.rule(&host, path, place, services, notes));
            }
        }
        let backend = self.spec.get("defaultBackend");
        if backend.is_there() {
            if hosts.is_empty() {
                hosts.push(String::new());
            }
            for host in hosts {
                let place = Directive::place(&self.place.file, backend.line, &self.place.name);
                let response = self.response(backend, &place, None, services, notes);
                made.push(self.made(&host, "/", PathKind::Prefix, response, place));
            }
        }
        made
    }

    fn rule(
        &self,
        host: &str,
        node: &Node,
        place: Directive,
        services: &mut Services,
        notes: &mut Notes,
    ) -> Option<Rule> {
        let path = node.text_at("path").filter(|it| !it.is_empty());
        let path = path.unwrap_or("/");
        let kind = match node.text_at("pathType").unwrap_or_default() {
            _ if self.annotations.uses_expressions => PathKind::Expression,
            "Exact" => PathKind::Exact,
            "Prefix" => PathKind::Prefix,
            _ => PathKind::Begin,
        };
        if !path.starts_with('/') {
            notes.add(
                &place,
                format!("left out: the path `{path}` begins with no slash"),
            );
            return None;
        }
        if kind == PathKind::Expression && regex::Regex::new(path).is_err() {
            // It may have been for more than one path.
            let message = format!(
                "responds with 501 at `/`: `{path}` is no expression that has a counterpart"
            );
            notes.add(&place, message);
            return Some(self.made(host, "/", PathKind::Prefix, not_translated(), place));
        }
        let response = self.response(node.get("backend"), &place, Some(path), services, notes);
        Some(self.made(host, path, kind, response, place))
    }

    fn response(
        &self,
        backend: &Node,
        place: &Directive,
        path: Option<&str>,
        services: &mut Services,
        notes: &mut Notes,
    ) -> Response {
        if let Some(redirect) = &self.annotations.redirect {
            return Response::Other(redirect.clone());
        }
        let service = backend.get("service");
        let Some(name) = service.text_at("name") else {
            notes.add(place, "responds with 501: its backend is no service");
            return not_translated();
        };
        let connection = Connection {
            scheme: self.annotations.scheme,
            keys: &self.annotations.upstream,
        };
        let port = service.get("port");
        let upstream = services.upstream((self.namespace, name), port, connection, place, notes);
        let mut proxy = Keys::default();
        proxy.text("to", &upstream);
        if let (Some(target), Some(path)) = (&self.annotations.rewrite, path) {
            // The whole path is replaced.
            let from = toml_string(&format!("(?i)^(?:{path}).*$"));
            proxy.set(
                "rewrite",
                format!("{{ from = {from}, to = {} }}", toml_string(target)),
            );
        }
        proxy.inherit(&self.annotations.proxy);
        Response::Proxy(proxy)
    }

    fn made(
        &self,
        host: &str,
        path: &str,
        kind: PathKind,
        response: Response,
        place: Directive,
    ) -> Rule {
        let mut action = Action::new(Matcher::default(), response, &place);
        action.passed = self.annotations.passed.clone();
        Rule {
            place,
            host: host.to_owned(),
            path: path.to_owned(),
            kind,
            action,
            redirects: self.annotations.redirects,
        }
    }
}

/// The rules of each host, in the order in which they are tried: the longest path first, exact ones before others.
fn by_host(rules: Vec<Rule>) -> BTreeMap<String, Vec<Rule>> {
    let mut hosts: BTreeMap<String, Vec<Rule>> = BTreeMap::new();
    for rule in rules {
        hosts.entry(rule.host.clone()).or_default().push(rule);
    }
    for rules in hosts.values_mut() {
        // Of equal ones the first is the oldest.
        rules.sort_by_key(|it| (it.kind != PathKind::Exact, std::cmp::Reverse(it.path.len())));
    }
    hosts
}

impl Rule {
    /// The action, for its paths alone.
    fn action(&self) -> Action {
        let matcher = Matcher {
            paths: self.paths(),
            ..Matcher::default()
        };
        Action {
            matcher,
            ..self.action.clone()
        }
    }

    /// Letters are compared with their case, except by expressions. Empty for all paths.
    fn paths(&self) -> Vec<PathMatch> {
        let sensitive = |expression: String| PathMatch::Regex(format!("(?-i:{expression})"));
        let path = regex::escape(&self.path);
        let without = regex::escape(self.path.trim_end_matches('/'));
        match self.kind {
            PathKind::Exact => vec![sensitive(path)],
            PathKind::Prefix | PathKind::Begin if self.path == "/" => Vec::new(),
            PathKind::Prefix => vec![
                sensitive(without.clone()),
                sensitive(format!("{without}/.*")),
            ],
            PathKind::Begin => vec![sensitive(format!("{path}.*"))],
            PathKind::Expression => vec![PathMatch::Regex(format!("(?:{}).*", self.path))],
        }
    }
}
