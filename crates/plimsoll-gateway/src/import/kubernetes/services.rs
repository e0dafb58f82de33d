//! Services as upstreams whose servers are the endpoints of the service.

use std::collections::BTreeMap;
use std::rc::Rc;

use plimsoll_formats::yaml::Node;
use plimsoll_model::document::toml_string;

use super::super::Notes;
use super::super::nginx::Directive;
use super::super::toml::Keys;
use super::super::upstreams::UpstreamText;
use super::annotations::Annotations;

/// The upstreams so far, and the services of the file.
pub(super) struct Services {
    pub(super) upstreams: Vec<UpstreamText>,
    /// Names of upstreams by what they consist of.
    known: BTreeMap<String, String>,
    /// Ports of services, by namespace and name.
    ports: BTreeMap<(String, String), Vec<Port>>,
}

/// A port of a service.
struct Port {
    number: String,
    /// By which endpoints call it too.
    name: Option<String>,
    /// That of the pods; absent if it has the number of the service.
    target: Option<String>,
}

impl Services {
    pub(super) fn read(objects: &[Node]) -> Self {
        let services = objects
            .iter()
            .filter(|it| it.text_at("kind") == Some("Service"));
        let ports = services.map(|service| {
            let namespace = service.text_at("metadata.namespace").unwrap_or("default");
            let name = service.text_at("metadata.name").unwrap_or_default();
            let ports = service.at("spec.ports").items().iter().map(|port| Port {
                number: port.text_at("port").unwrap_or_default().to_owned(),
                name: port.text_at("name").map(str::to_owned),
                target: port.text_at("targetPort").map(str::to_owned),
            });
            ((namespace.to_owned(), name.to_owned()), ports.collect())
        });
        Self {
            ports: ports.collect(),
            upstreams: Vec::new(),
            known: BTreeMap::new(),
        }
    }

    /// The name of the upstream for a service.
    ///
    /// - `service`: its namespace and name.
    /// - `port`: `number` or `name`.
    pub(super) fn upstream(
        &mut self,
        service: (&str, &str),
        port: &Node,
        annotations: &Annotations,
        place: &Directive,
        notes: &mut Notes,
    ) -> String {
        let (namespace, name) = service;
        let port = self.port(service, port, place, notes);
        let end = port.map(|it| format!(":{it}")).unwrap_or_default();
        let service = toml_string(&format!("{namespace}/{name}{end}"));
        let mut keys = Keys::default();
        match annotations.scheme {
            Some(scheme) => keys.set(
                "kubernetes",
                format!(
                    "{{ service = {service}, scheme = {} }}",
                    toml_string(scheme)
                ),
            ),
            None => keys.set("kubernetes", service),
        }
        keys.inherit(&annotations.upstream);
        let mut text = String::new();
        keys.lines(&mut text);
        if let Some(known) = self.known.get(&text) {
            return known.clone();
        }
        let plain = format!("{namespace}-{name}");
        let same = self.known.values().filter(|it| {
            let rest = it.strip_prefix(&plain);
            rest.is_some_and(|it| it.is_empty() || it.starts_with('-'))
        });
        let own = match same.count() {
            0 => plain,
            others => format!("{plain}-{}", others + 1),
        };
        self.known.insert(text.clone(), own.clone());
        self.upstreams.push(UpstreamText {
            name: own.clone(),
            keys: text,
            file: Rc::clone(&place.file),
            line: place.line,
        });
        own
    }

    /// The port as endpoints have it: its name, or the number that pods listen at.
    fn port(
        &self,
        (namespace, name): (&str, &str),
        port: &Node,
        place: &Directive,
        notes: &mut Notes,
    ) -> Option<String> {
        if let Some(name) = port.text_at("name") {
            return Some(name.to_owned());
        }
        let number = port.text_at("number")?;
        let key = (namespace.to_owned(), name.to_owned());
        let known = self.ports.get(&key).into_iter().flatten();
        let Some(known) = known.into_iter().find(|it| it.number == number) else {
            let message = format!(
                "{number} is taken for the port that pods of `{name}` listen at, as the service is not in this file"
            );
            notes.add(place, message);
            return Some(number.to_owned());
        };
        if let Some(name) = &known.name {
            return Some(name.clone());
        }
        match known.target.as_deref() {
            None => Some(number.to_owned()),
            Some(target) if target.parse::<u16>().is_ok() => Some(target.to_owned()),
            // A port without a name is the only one of its service.
            Some(_) => None,
        }
    }
}
