//! Manifests of Kubernetes: Ingress and the Gateway API, with the services that are in the same file, translated.

mod annotations;

mod gateways;

mod http_routes;

mod matches;

mod filters;

mod ingress;

mod services;

mod sites;

use std::rc::Rc;

use plimsoll_formats::yaml::{Node, documents};

use self::services::Services;
use self::sites::Sites;
use super::nginx::Directive;
use super::servers::Translation;
use super::{ImportError, Imported, Notes};

/// Kinds of objects that say what responds to requests.
const KINDS: [&str; 3] = ["Ingress", "HTTPRoute", "GRPCRoute"];

/// Kinds that are read beside these.
const OTHERS: [&str; 6] = [
    "Gateway",
    "GatewayClass",
    "Namespace",
    "ReferenceGrant",
    "Service",
    "",
];

/// Whether a file has something that says what responds to requests, or is of the Gateway API, by its lines.
pub fn is_kubernetes(text: &str) -> bool {
    let kind = |line: &str| {
        let line = line.trim_start_matches("- ").trim();
        let kind = line.strip_prefix("kind:")?;
        Some(kind.trim().trim_matches(['"', '\'']).to_owned())
    };
    let of_api = |line: &str| {
        line.trim()
            .starts_with("apiVersion: gateway.networking.k8s.io/")
    };
    text.lines()
        .filter_map(kind)
        .any(|it| KINDS.contains(&it.as_str()))
        || text.lines().any(of_api)
}

/// Translates the Ingresses and routes of a file. What has no counterpart is reported.
///
/// - `file`: its name, for the report.
pub fn import_kubernetes(file: &str, text: &str) -> Result<Imported, ImportError> {
    let name: Rc<str> = Rc::from(file);
    let mut notes = Notes::default();
    let mut manifests = Vec::new();
    for document in documents(text).map_err(|it| ImportError::of_yaml(file, &it))? {
        add_manifests(document, &mut manifests);
    }
    let objects: Vec<_> = manifests.iter().map(|it| Object::new(it, &name)).collect();
    let Some(first) = objects.iter().find(|it| KINDS.contains(&it.kind)) else {
        return Err(ImportError {
            file: file.to_owned(),
            line: 1,
            reason: "has no Ingress, HTTPRoute or GRPCRoute".to_owned(),
        });
    };
    let mut services = Services::read(&objects);
    let mut sites = Sites::default();
    ingress::add(&objects, &mut services, &mut sites, &mut notes);
    http_routes::add(&objects, &mut services, &mut sites, &mut notes);
    for object in &objects {
        if !KINDS.contains(&object.kind) && !OTHERS.contains(&object.kind) {
            let message =
                "left out: only Ingresses, routes of HTTP and gRPC, Gateways and Services are read";
            notes.add(&object.place, message);
        }
    }
    let (head, routes) = sites.write(&mut notes);
    let parts = Translation {
        source: "manifests of Kubernetes",
        head,
        at: (Rc::clone(&name), first.place.line),
        routes,
        upstreams: services.upstreams,
    };
    Ok(Imported::from_parts(file, parts, notes))
}

/// The objects of a document, those of a list one by one.
fn add_manifests(document: Node, manifests: &mut Vec<Node>) {
    let kind = document.text_at("kind").unwrap_or_default();
    if kind.ends_with("List") && document.get("items").is_there() {
        manifests.extend(document.get("items").items().iter().cloned());
    } else {
        manifests.push(document);
    }
}

/// An object of the file.
struct Object<'n> {
    node: &'n Node,
    /// `apiVersion`
    version: &'n str,
    kind: &'n str,
    namespace: &'n str,
    name: &'n str,
    place: Directive,
}

impl<'n> Object<'n> {
    fn new(node: &'n Node, file: &Rc<str>) -> Self {
        let text = |path: &str| node.text_at(path).unwrap_or_default();
        let (kind, name) = (text("kind"), text("metadata.name"));
        Self {
            node,
            version: text("apiVersion"),
            kind,
            namespace: node.text_at("metadata.namespace").unwrap_or("default"),
            name,
            place: Directive::place(file, node.line, &format!("{kind} {name}")),
        }
    }

    /// A place within it.
    fn at(&self, node: &Node) -> Directive {
        Directive::place(&self.place.file, node.line, &self.place.name)
    }
}

#[cfg(test)]
mod tests;
