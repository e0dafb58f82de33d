//! Services as upstreams whose servers are the endpoints of the service.

use std::collections::BTreeMap;
use std::rc::Rc;

use plimsoll_formats::yaml::Node;
use plimsoll_model::document::toml_string;

use super::super::Notes;
use super::super::nginx::Directive;
use super::super::toml::Keys;
use super::super::upstreams::UpstreamText;
use super::Object;

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
    /// Its servers speak HTTP/2 without TLS (`appProtocol`).
    speaks_http2: bool,
}

/// How servers are reached.
#[derive(Clone, Copy)]
pub(super) struct Connection<'k> {
    /// Of servers that do not speak plain HTTP.
    pub(super) scheme: Option<&'static str>,
    /// Keys of the upstream.
    pub(super) keys: &'k Keys,
}

impl Services {
    pub(super) fn read(objects: &[Object<'_>]) -> Self {
        let services = objects.iter().filter(|it| it.kind == "Service");
        let ports = services.map(|service| {
            let ports = service
                .node
                .at("spec.ports")
                .items()
                .iter()
                .map(|port| Port {
                    number: port.text_at("port").unwrap_or_default().to_owned(),
                    name: port.text_at("name").map(str::to_owned),
                    target: port.text_at("targetPort").map(str::to_owned),
                    speaks_http2: port.text_at("appProtocol") == Some("kubernetes.io/h2c"),
                });
            let key = (service.namespace.to_owned(), service.name.to_owned());
            (key, ports.collect())
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
    /// - `port`: a map with `number` or `name`, or the number itself.
    pub(super) fn upstream(
        &mut self,
        service: (&str, &str),
        port: &Node,
        connection: Connection<'_>,
        place: &Directive,
        notes: &mut Notes,
    ) -> String {
        let (namespace, name) = service;
        let speaks_http2 = self
            .known_port(service, port)
            .is_some_and(|it| it.speaks_http2);
        let port = self.port(service, port, place, notes);
        let end = port.map(|it| format!(":{it}")).unwrap_or_default();
        let service = toml_string(&format!("{namespace}/{name}{end}"));
        let mut keys = Keys::default();
        match connection.scheme {
            Some(scheme) => keys.set(
                "kubernetes",
                format!(
                    "{{ service = {service}, scheme = {} }}",
                    toml_string(scheme)
                ),
            ),
            None => keys.set("kubernetes", service),
        }
        keys.inherit(connection.keys);
        if speaks_http2 && keys.get("protocol").is_none() {
            keys.text("protocol", "http2");
        }
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

    /// A port of a service of the file.
    fn known_port(&self, (namespace, name): (&str, &str), port: &Node) -> Option<&Port> {
        let key = (namespace.to_owned(), name.to_owned());
        let mut known = self.ports.get(&key)?.iter();
        known.find(|it| match port.text_at("name") {
            Some(name) => it.name.as_deref() == Some(name),
            None => number(port) == Some(&it.number),
        })
    }

    /// The port as endpoints have it: its name, or the number that pods listen at.
    fn port(
        &self,
        service: (&str, &str),
        port: &Node,
        place: &Directive,
        notes: &mut Notes,
    ) -> Option<String> {
        if let Some(name) = port.text_at("name") {
            return Some(name.to_owned());
        }
        let number = number(port)?;
        let Some(known) = self.known_port(service, port) else {
            let name = service.1;
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

/// That of a port, which is it or has it.
fn number(port: &Node) -> Option<&str> {
    port.text().or_else(|| port.text_at("number"))
}
