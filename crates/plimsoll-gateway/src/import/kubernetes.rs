//! Manifests of Kubernetes: Ingress, with the services that are in the same file, translated.
//!
//! Source: Kubernetes' documentation, "Ingress" (`networking.k8s.io/v1`); annotations as ingress-nginx has them.

mod annotations;

mod services;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;
use std::rc::Rc;

use plimsoll_formats::yaml::{Node, documents};
use plimsoll_model::document::toml_string;

use self::annotations::{Annotations, TlsRedirect};
use self::services::Services;
use super::loads::loading;
use super::nginx::Directive;
use super::route::Route;
use super::rows::Rows;
use super::rows::actions::{Action, Response, not_translated};
use super::rows::maps::Maps;
use super::rows::matcher::Matcher;
use super::rows::paths::PathMatch;
use super::rows::steps::{Block, Step};
use super::servers::Translation;
use super::toml::Keys;
use super::{ImportError, Imported, Notes};

/// Whether a file has an Ingress, by its lines.
pub fn is_kubernetes(text: &str) -> bool {
    let has = |wanted: &str| {
        let mut lines = text.lines();
        lines.any(|it| it.trim_start_matches("- ").trim() == wanted)
    };
    has("kind: Ingress")
}

/// Translates the Ingresses of a file. What has no counterpart is reported.
///
/// - `file`: its name, for the report.
pub fn import_kubernetes(file: &str, text: &str) -> Result<Imported, ImportError> {
    let name: Rc<str> = Rc::from(file);
    let mut notes = Notes::default();
    let mut objects = Vec::new();
    for document in documents(text).map_err(|it| ImportError::of_yaml(file, &it))? {
        add_objects(document, &mut objects);
    }
    let mut services = Services::read(&objects);
    let mut rules = Vec::new();
    let mut hosts_with_tls = BTreeSet::new();
    let mut first = None;
    for object in &objects {
        let kind = object.text_at("kind").unwrap_or_default();
        let own = object.text_at("metadata.name").unwrap_or_default();
        let place = Directive::place(&name, object.line, &format!("{kind} {own}"));
        match kind {
            "Ingress" => {
                first.get_or_insert_with(|| place.clone());
                let ingress = Ingress::new(object, place, &mut notes);
                hosts_with_tls.extend(ingress.hosts_with_tls(&mut notes));
                rules.extend(ingress.rules(&mut services, &mut notes));
            }
            "Service" | "" => {}
            _ => notes.add(&place, "left out: only `Ingress` and `Service` are read"),
        }
    }
    let Some(first) = first else {
        return Err(ImportError {
            file: file.to_owned(),
            line: 1,
            reason: "has no Ingress".to_owned(),
        });
    };
    let mut head = String::new();
    let mut routes = Vec::new();
    let mut clients = Maps::default();
    let by_host = by_host(rules);
    let redirects: BTreeSet<&str> = by_host
        .iter()
        .filter(|(host, rules)| {
            let has_tls = hosts_with_tls.contains(host.as_str());
            let mut own = rules.iter();
            own.any(|it| match it.redirects {
                TlsRedirect::Never => false,
                TlsRedirect::WithTls => has_tls,
                TlsRedirect::Always => true,
            })
        })
        .map(|(host, _)| host.as_str())
        .collect();
    let has_tls = !hosts_with_tls.is_empty() || !redirects.is_empty();
    write!(head, "\n[[listen]]\naddress = \":80\"\nname = \"web\"\n").ok();
    if has_tls {
        let names: Vec<_> = hosts_with_tls.iter().map(|it| toml_string(it)).collect();
        let names = if names.is_empty() {
            "true".to_owned()
        } else {
            format!("[{}]", names.join(", "))
        };
        let tls = format!("{{ self_signed = {names} }}");
        write!(
            head,
            "\n[[listen]]\naddress = \":443\"\nname = \"websecure\"\ntls = {tls}\n"
        )
        .ok();
    }
    for (host, rules) in &by_host {
        let shown = Some(host.as_str()).filter(|it| !it.is_empty());
        if redirects.contains(host.as_str()) {
            let mut keys = Keys::default();
            keys.text("listen", "web");
            if let Some(host) = shown {
                keys.text("host", host);
            }
            keys.text("prefix", "/");
            keys.set(
                "redirect",
                "{ to = \"https://{host}{target}\", status = 308 }",
            );
            let place = rules.first().map_or(&first, |it| &it.place);
            routes.push(Route::new(&keys, place));
        } else {
            routes.extend(routes_of(shown, rules, "web", &mut clients, &mut notes));
        }
        if has_tls {
            routes.extend(routes_of(
                shown,
                rules,
                "websecure",
                &mut clients,
                &mut notes,
            ));
        }
    }
    clients.write(&mut head);
    let parts = Translation {
        source: "an Ingress of Kubernetes",
        head,
        at: (Rc::clone(&name), first.line),
        routes,
        upstreams: services.upstreams,
    };
    let directory = Path::new(file).parent().unwrap_or(Path::new(""));
    let text = loading(parts, directory, &mut notes);
    let Notes(mut notes) = notes;
    notes.sort();
    notes.dedup();
    Ok(Imported { toml: text, notes })
}

/// The objects of a document, those of a list one by one.
fn add_objects(document: Node, objects: &mut Vec<Node>) {
    let kind = document.text_at("kind").unwrap_or_default();
    if kind == "List" || kind == "IngressList" {
        for item in document.get("items").items() {
            objects.push(item.clone());
        }
    } else {
        objects.push(document);
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
    fn new(object: &'n Node, place: Directive, notes: &mut Notes) -> Self {
        let annotations = object.at("metadata.annotations");
        let mut annotations = Annotations::read(annotations, &place, notes);
        let version = object.text_at("apiVersion").unwrap_or_default();
        if version != "networking.k8s.io/v1" {
            let message = format!("responds with 501: `{version}` is not `networking.k8s.io/v1`");
            notes.add(&place, message);
            annotations.passed.is_closed = true;
        }
        Self {
            place,
            spec: object.get("spec"),
            namespace: object.text_at("metadata.namespace").unwrap_or("default"),
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
        let upstream = services.upstream(
            (self.namespace, name),
            service.get("port"),
            &self.annotations,
            place,
            notes,
        );
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

fn routes_of(
    host: Option<&str>,
    rules: &[Rule],
    listener: &str,
    maps: &mut Maps,
    notes: &mut Notes,
) -> Vec<Route> {
    let Some(first) = rules.first() else {
        return Vec::new();
    };
    let mut block = Block::default();
    for rule in rules {
        let matcher = Matcher {
            paths: rule.paths(),
            ..Matcher::default()
        };
        block.0.push(Step::Actions {
            matcher,
            actions: vec![rule.action.clone()],
        });
    }
    let mut rows = Rows::of_site(&block, &first.place, false, notes);
    rows.in_order();
    let mut made = Vec::new();
    for action in &rows.0 {
        for keys in action.routes(host, listener, maps) {
            made.push(Route::new(&keys, &action.directive));
        }
    }
    made
}

impl Rule {
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

#[cfg(test)]
mod tests;
