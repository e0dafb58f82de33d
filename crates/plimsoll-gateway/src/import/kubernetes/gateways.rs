//! Gateways: the listeners that routes attach to.
//!
//! Source: the specification of the Gateway API, version 1 (`Gateway`, `ReferenceGrant`, GEP-713 for policies).

use std::collections::BTreeSet;

use plimsoll_formats::yaml::Node;

use super::super::Notes;
use super::super::nginx::Directive;
use super::Object;
use super::annotations::Annotations;

const GROUP: &str = "gateway.networking.k8s.io/";

/// Policies that restrict no client.
const HARMLESS: [&str; 6] = [
    "BackendLBPolicy",
    "BackendTLSPolicy",
    "HealthCheckPolicy",
    "ObservabilityPolicy",
    "TelemetryPolicy",
    "XBackendTrafficPolicy",
];

/// A listener of a Gateway.
#[derive(Debug, Clone)]
pub(super) struct GatewayListener {
    /// The Gateway's namespace and name.
    pub(super) gateway: String,
    pub(super) port: u16,
    /// In small letters; `None` for all hosts.
    pub(super) hostname: Option<String>,
    pub(super) has_tls: bool,
    /// Something keeps clients out that cannot be said.
    pub(super) is_closed: bool,
    pub(super) place: Directive,
    section: String,
    namespaces: Namespaces,
    /// Kinds of routes; none is any.
    kinds: Vec<String>,
}

/// Where routes may come from.
#[derive(Debug, Clone)]
enum Namespaces {
    All,
    These(BTreeSet<String>),
}

/// All listeners of a file.
pub(super) struct Gateways {
    listeners: Vec<GatewayListener>,
    known: BTreeSet<String>,
}

/// Objects that policies without a counterpart are for: kind, namespace and name.
pub(super) struct Guarded(BTreeSet<(String, String, String)>);

impl Guarded {
    /// Reads the targets of all policies of a file.
    pub(super) fn read(objects: &[Object<'_>], notes: &mut Notes) -> Self {
        let mut all = BTreeSet::new();
        for object in objects {
            let spec = object.node.get("spec");
            let one = [spec.get("targetRef")];
            let targets = one.iter().copied().chain(spec.get("targetRefs").items());
            for target in targets.filter(|it| it.is_there()) {
                let text = |key: &str| target.text_at(key).unwrap_or_default().to_owned();
                if HARMLESS.contains(&object.kind) {
                    continue;
                }
                let (kind, name) = (text("kind"), text("name"));
                let message = format!(
                    "{kind} {name} responds with 501: this may keep clients out of it, and has no counterpart"
                );
                notes.add(&object.place, message);
                let namespace = target.text_at("namespace").unwrap_or(object.namespace);
                all.insert((kind, namespace.to_owned(), name));
            }
        }
        Self(all)
    }

    /// Whether a policy is for an object.
    pub(super) fn has(&self, object: &Object<'_>) -> bool {
        let key = [object.kind, object.namespace, object.name];
        let [kind, namespace, name] = key.map(str::to_owned);
        self.0.contains(&(kind, namespace, name))
    }
}

impl Gateways {
    pub(super) fn read(objects: &[Object<'_>], guarded: &Guarded, notes: &mut Notes) -> Self {
        let mut all = Self {
            listeners: Vec::new(),
            known: BTreeSet::new(),
        };
        for object in objects.iter().filter(|it| it.kind == "Gateway") {
            if !object.version.starts_with(GROUP) {
                let message = format!("left out: `{}` is not the Gateway API", object.version);
                notes.add(&object.place, message);
                continue;
            }
            let gateway = format!("{}/{}", object.namespace, object.name);
            all.known.insert(gateway.clone());
            let annotations = object.node.at("metadata.annotations");
            let annotations = Annotations::read(annotations, &object.place, notes);
            let spec = object.node.get("spec");
            // Certificates that clients have to have.
            let asks_clients = spec.at("tls.frontend").is_there();
            for node in spec.get("listeners").items() {
                let place = object.at(node);
                let Some(mut listener) = listener(node, &gateway, object, objects, &place, notes)
                else {
                    continue;
                };
                if asks_clients || node.at("tls.frontendValidation").is_there() {
                    let message =
                        "responds with 501: write `client_certificates` into `tls` of the listener";
                    notes.add(&place, message);
                    listener.is_closed = true;
                }
                listener.is_closed |= annotations.passed.is_closed || guarded.has(object);
                all.listeners.push(listener);
            }
        }
        all
    }

    /// The listeners that a parent of a route is; two stand for those of a Gateway that is not in the file.
    pub(super) fn of_parent(
        &self,
        route: &Object<'_>,
        parent: &Node,
        notes: &mut Notes,
    ) -> Vec<GatewayListener> {
        let text = |key: &str| parent.text_at(key);
        let place = route.at(parent);
        if text("kind").is_some_and(|it| it != "Gateway") {
            notes.add(&place, "left out for a parent that is no Gateway");
            return Vec::new();
        }
        let name = text("name").unwrap_or_default();
        let gateway = format!("{}/{name}", text("namespace").unwrap_or(route.namespace));
        if !self.known.contains(&gateway) {
            let message = format!(
                "ports 80 and 443 stand for those of the Gateway `{gateway}`, which is not in this file"
            );
            notes.add(&place, message);
            let stand_in = |port| GatewayListener {
                gateway: gateway.clone(),
                port,
                hostname: None,
                has_tls: port == 443,
                is_closed: false,
                place: place.clone(),
                section: String::new(),
                namespaces: Namespaces::All,
                kinds: Vec::new(),
            };
            return vec![stand_in(80), stand_in(443)];
        }
        let own = self.listeners.iter().filter(|it| it.gateway == gateway);
        let own = own.filter(|it| text("sectionName").is_none_or(|name| it.section == name));
        let port = parent.number_at("port");
        let own = own.filter(|it| port.is_none_or(|port| i64::from(it.port) == port));
        let own: Vec<_> = own.filter(|it| it.allows(route)).cloned().collect();
        if own.is_empty() {
            let message = format!("left out for `{gateway}`, no listener of which takes it");
            notes.add(&place, message);
        }
        own
    }

    /// Whether requests for a host come to a listener, and not to another one of its port with a more exact name.
    pub(super) fn is_best(&self, listener: &GatewayListener, host: &str) -> bool {
        let length = |it: &GatewayListener| it.hostname.as_ref().map_or(0, String::len);
        let others = self.beside(listener);
        others
            .filter(|it| it.hostname.as_deref().is_none_or(|name| covers(name, host)))
            .all(|it| length(it) <= length(listener))
    }

    /// Whether requests that no route of a listener is for would come to another one.
    pub(super) fn is_within_another(&self, listener: &GatewayListener) -> bool {
        let Some(own) = &listener.hostname else {
            return false;
        };
        let wider = |it: &GatewayListener| match &it.hostname {
            None => true,
            Some(name) => name != own && covers(name, own),
        };
        self.beside(listener).any(wider)
    }

    /// All listeners of the same Gateway and port.
    fn beside(&self, listener: &GatewayListener) -> impl Iterator<Item = &GatewayListener> {
        let key = (listener.gateway.clone(), listener.port);
        let all = self.listeners.iter();
        all.filter(move |it| it.port == key.1 && it.gateway == key.0)
    }
}

impl GatewayListener {
    fn allows(&self, route: &Object<'_>) -> bool {
        let is_kind = self.kinds.is_empty() || self.kinds.iter().any(|it| it == route.kind);
        is_kind
            && match &self.namespaces {
                Namespaces::All => true,
                Namespaces::These(names) => names.contains(route.namespace),
            }
    }

    /// The hosts that both it and a name of a route are for; empty for all.
    pub(super) fn shared(&self, name: Option<&str>) -> Option<String> {
        match (self.hostname.as_deref(), name) {
            (None, name) => Some(name.unwrap_or_default().to_owned()),
            (Some(own), None) => Some(own.to_owned()),
            (Some(own), Some(name)) if covers(own, name) => Some(name.to_owned()),
            (Some(own), Some(name)) if covers(name, own) => Some(own.to_owned()),
            _ => None,
        }
    }
}

/// Whether a name, which may begin with `*.`, is for all hosts of another one.
fn covers(name: &str, other: &str) -> bool {
    name == other
        || name
            .strip_prefix('*')
            .is_some_and(|end| other.strip_prefix('*').unwrap_or(other).ends_with(end))
}

fn listener(
    node: &Node,
    gateway: &str,
    object: &Object<'_>,
    objects: &[Object<'_>],
    place: &Directive,
    notes: &mut Notes,
) -> Option<GatewayListener> {
    let text = |path: &str| node.text_at(path);
    let section = text("name").unwrap_or_default().to_owned();
    let has_tls = match text("protocol") {
        Some("HTTP") => false,
        Some("HTTPS") => true,
        other => {
            let shown = other.unwrap_or_default();
            let message = format!("listener `{section}` is left out: its protocol is `{shown}`");
            notes.add(place, message);
            return None;
        }
    };
    let port = node.number_at("port").and_then(|it| u16::try_from(it).ok());
    let Some(port) = port.filter(|it| *it > 0) else {
        notes.add(
            place,
            format!("listener `{section}` is left out: it has no port"),
        );
        return None;
    };
    for certificate in node.at("tls.certificateRefs").items() {
        let secret = certificate.text_at("name").unwrap_or_default();
        let message = format!(
            "certificates are of plimsoll's own making: write `tls.crt` and `tls.key` of the secret `{secret}` as `cert` and `key`, or `acme`, into `tls`"
        );
        notes.add(place, message);
    }
    let allowed = node.at("allowedRoutes.namespaces");
    let own = || Namespaces::These([object.namespace.to_owned()].into());
    let namespaces = match allowed.text_at("from").unwrap_or("Same") {
        "All" => Namespaces::All,
        "Same" => own(),
        "Selector" => Namespaces::These(selected(allowed.get("selector"), objects)),
        _ => Namespaces::These(BTreeSet::new()),
    };
    let kinds = node.at("allowedRoutes.kinds").items().iter();
    let kinds = kinds.filter_map(|it| it.text_at("kind"));
    let hostname = text("hostname").filter(|it| !it.is_empty());
    Some(GatewayListener {
        gateway: gateway.to_owned(),
        port,
        hostname: hostname.map(str::to_ascii_lowercase),
        has_tls,
        is_closed: false,
        place: place.clone(),
        section,
        namespaces,
        kinds: kinds.map(str::to_owned).collect(),
    })
}

/// Namespaces of the file with the labels of a selector.
fn selected(selector: &Node, objects: &[Object<'_>]) -> BTreeSet<String> {
    let labels = selector.get("matchLabels").entries();
    let is_plain = !selector.get("matchExpressions").is_there();
    let spaces = objects.iter().filter(|it| it.kind == "Namespace");
    let own = spaces.filter(|space| {
        let has = |key: &str, value: &Node| {
            // Every namespace has its name as a label.
            let name = "kubernetes.io/metadata.name";
            key == name && value.text() == Some(space.name)
                || space.node.at("metadata.labels").get(key).text() == value.text()
        };
        is_plain && labels.iter().all(|(key, value)| has(key, value))
    });
    let mut all: BTreeSet<_> = own.map(|it| it.name.to_owned()).collect();
    if is_plain
        && let [(key, value)] = labels
        && key == "kubernetes.io/metadata.name"
    {
        all.extend(value.text().map(str::to_owned));
    }
    all
}

/// Whether a `ReferenceGrant` of the file lets a route use a service of another namespace.
pub(super) fn is_granted(
    objects: &[Object<'_>],
    route: &Object<'_>,
    (namespace, name): (&str, &str),
) -> bool {
    let grants = objects
        .iter()
        .filter(|it| it.kind == "ReferenceGrant" && it.namespace == namespace);
    grants.map(|it| it.node.get("spec")).any(|spec| {
        let is_from = |from: &Node| {
            from.text_at("group") == Some(GROUP.trim_end_matches('/'))
                && from.text_at("kind") == Some(route.kind)
                && from.text_at("namespace") == Some(route.namespace)
        };
        let is_to = |to: &Node| {
            to.text_at("group").is_none_or(str::is_empty)
                && to.text_at("kind") == Some("Service")
                && to.text_at("name").is_none_or(|it| it == name)
        };
        spec.get("from").items().iter().any(is_from) && spec.get("to").items().iter().any(is_to)
    })
}
