//! `EndpointSlices` of one service, and the servers that they come to.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::{GONE, KubernetesPlan, ServicePort};
use crate::upstream::discovery::SourceError;
use crate::upstream::{ServerPlan, Transport};

/// The slices of a service by their names.
#[derive(Debug, Default)]
pub(super) struct Slices(BTreeMap<String, Slice>);

/// An `EndpointSlice`, as far as it says where servers are.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Slice {
    metadata: Metadata,
    /// `IPv4`, `IPv6` or `FQDN`.
    #[serde(default)]
    address_type: String,
    #[serde(default)]
    endpoints: Option<Vec<SliceEndpoint>>,
    #[serde(default)]
    ports: Option<Vec<SlicePort>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
struct Metadata {
    name: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
struct SliceEndpoint {
    /// All of one and the same pod: the first is used.
    addresses: Vec<String>,
    #[serde(default)]
    conditions: Conditions,
    #[serde(default)]
    zone: Option<String>,
}

/// What is not said is true of `ready` and `serving`, and false of `terminating`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
struct Conditions {
    #[serde(default)]
    ready: Option<bool>,
    #[serde(default)]
    serving: Option<bool>,
    #[serde(default)]
    terminating: Option<bool>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
struct SlicePort {
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    port: Option<i64>,
    #[serde(default)]
    protocol: Option<String>,
}

/// What an event of a watch comes to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// Nothing that matters; a bookmark.
    None,
    /// The slices have changed.
    Slices,
    /// The version to go on from is not known any more.
    Gone,
    /// The API server reports an error.
    Failed(String),
}

/// An event of a watch.
#[derive(Debug, Deserialize)]
pub(super) struct WatchEvent {
    #[serde(rename = "type")]
    kind: String,
    object: Value,
}

impl Slices {
    pub(super) fn put(&mut self, slice: Slice) -> bool {
        let name = slice.metadata.name.clone();
        let old = self.0.insert(name.clone(), slice);
        old.as_ref() != self.0.get(&name)
    }

    /// Takes an event of a watch over.
    ///
    /// - `version`: where a watch goes on.
    pub(super) fn change(&mut self, event: &WatchEvent, version: &mut String) -> Change {
        let text = |pointer: &str| event.object.pointer(pointer).and_then(Value::as_str);
        if event.kind == "ERROR" {
            let code = event.object.get("code").and_then(Value::as_u64);
            if code == Some(u64::from(GONE)) {
                return Change::Gone;
            }
            return Change::Failed(text("/message").unwrap_or("an error").to_owned());
        }
        if let Some(later) = text("/metadata/resourceVersion") {
            later.clone_into(version);
        }
        let is_other = match event.kind.as_str() {
            "ADDED" | "MODIFIED" => match Slice::deserialize(&event.object) {
                Ok(slice) => self.put(slice),
                Err(error) => return Change::Failed(error.to_string()),
            },
            "DELETED" => {
                let name = text("/metadata/name");
                name.is_some_and(|name| self.0.remove(name).is_some())
            }
            _ => false,
        };
        if is_other {
            Change::Slices
        } else {
            Change::None
        }
    }

    /// The servers, in an order that does not depend on slices: those that are ready; if none is, those that still serve while
    /// they end, as kube-proxy has it.
    ///
    /// Fails if servers are there, and their port is not clear.
    pub(super) fn servers(&self, plan: &KubernetesPlan) -> Result<Vec<ServerPlan>, SourceError> {
        // A service of two families has each pod in both.
        let families = ["IPv4", "IPv6", "FQDN"];
        let is_there = |family: &&str| self.0.values().any(|it| it.address_type == **family);
        let family = families.into_iter().find(is_there).unwrap_or_default();
        let mut ready = BTreeMap::new();
        let mut ending = BTreeMap::new();
        for slice in self.0.values().filter(|it| it.address_type == family) {
            let endpoints = slice.endpoints.iter().flatten();
            let mut endpoints = endpoints.peekable();
            if endpoints.peek().is_none() {
                continue;
            }
            let Some(port) = slice.port(plan)? else {
                continue;
            };
            for endpoint in endpoints {
                let Some(address) = endpoint.addresses.first() else {
                    continue;
                };
                let conditions = &endpoint.conditions;
                let is_ending = conditions.terminating.unwrap_or(false);
                let servers = if conditions.ready.unwrap_or(true) && !is_ending {
                    &mut ready
                } else if conditions.serving.unwrap_or(true) && is_ending {
                    &mut ending
                } else {
                    continue;
                };
                if let Some(server) = plan.scheme.server(address, port) {
                    let zone = endpoint.zone.clone();
                    servers.insert((address.clone(), port), ServerPlan { zone, ..server });
                }
            }
        }
        let servers = if ready.is_empty() { ending } else { ready };
        Ok(servers.into_values().collect())
    }
}

impl Slice {
    /// The port that is meant; `None` if this slice does not have it.
    fn port(&self, plan: &KubernetesPlan) -> Result<Option<i64>, SourceError> {
        let protocol = match plan.scheme.transport() {
            Transport::Http | Transport::Tcp => "TCP",
            Transport::Udp => "UDP",
        };
        let ports = self.ports.iter().flatten();
        let ports: Vec<&SlicePort> = ports
            .filter(|port| port.protocol.as_deref().unwrap_or("TCP") == protocol)
            .collect();
        let found = match &plan.port {
            Some(ServicePort::Name(name)) => {
                let mut ports = ports.iter();
                ports.find(|port| port.name.as_deref() == Some(name))
            }
            Some(ServicePort::Number(number)) => {
                let mut ports = ports.iter();
                ports.find(|port| port.port == Some(i64::from(*number)))
            }
            None if ports.len() > 1 => {
                let names = ports.iter().map(|port| match (&port.name, port.port) {
                    (Some(name), _) if !name.is_empty() => name.clone(),
                    (_, number) => number.unwrap_or_default().to_string(),
                });
                let names = names.collect::<Vec<_>>().join(", ");
                return Err(SourceError::Port(format!(
                    "the service {plan} has the ports {names}: name one, such as {plan}:{}",
                    names.split(", ").next().unwrap_or_default()
                )));
            }
            None => ports.first(),
        };
        Ok(found.and_then(|port| port.port))
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_wire::tls::Trust;
    use serde_json::json;

    use super::*;
    use crate::upstream::discovery::{ApiAccess, ServerScheme};

    fn plan(port: Option<ServicePort>) -> KubernetesPlan {
        KubernetesPlan {
            namespace: "shop".to_owned(),
            service: "api".to_owned(),
            port,
            scheme: ServerScheme::Http,
            access: ApiAccess {
                base: "https://kubernetes.test".to_owned(),
                socket: None,
                trust: Trust::PublicRoots,
                token: None,
            },
        }
    }

    fn slice(name: &str, family: &str, endpoints: &Value) -> Value {
        json!({
            "metadata": {"name": name, "resourceVersion": "5"}, "addressType": family,
            "endpoints": endpoints,
            "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}, {"name": "dns", "port": 53, "protocol": "UDP"}],
        })
    }

    fn event(kind: &str, object: Value) -> WatchEvent {
        WatchEvent {
            kind: kind.to_owned(),
            object,
        }
    }

    fn names(slices: &Slices, port: Option<ServicePort>) -> Vec<String> {
        let servers = slices.servers(&plan(port)).unwrap();
        servers.iter().map(ServerPlan::name).collect()
    }

    #[test]
    fn endpoints_are_used_by_their_conditions() {
        let mut slices = Slices::default();
        let mut version = String::new();
        let endpoints = json!([
            {"addresses": ["10.0.0.3"], "conditions": {"ready": false, "serving": true, "terminating": true}},
            {"addresses": ["10.0.0.2"], "conditions": {"ready": true}, "zone": "b"},
            {"addresses": ["10.0.0.1"]},
            {"addresses": ["10.0.0.4"], "conditions": {"ready": false}},
        ]);
        let added = event("ADDED", slice("a", "IPv4", &endpoints));
        assert_eq!(slices.change(&added, &mut version), Change::Slices);
        assert_eq!(version, "5");
        let ready = ["http://10.0.0.1:8080", "http://10.0.0.2:8080"];
        assert_eq!(names(&slices, None), ready);
        let zones: Vec<_> = slices.servers(&plan(None)).unwrap();
        assert_eq!(zones[1].zone.as_deref(), Some("b"));
        // The same again is no change, and neither is a bookmark, which moves the version.
        assert_eq!(slices.change(&added, &mut version), Change::None);
        let bookmark = json!({"metadata": {"resourceVersion": "9"}});
        let bookmark = event("BOOKMARK", bookmark);
        assert_eq!(slices.change(&bookmark, &mut version), Change::None);
        assert_eq!(version, "9");
        // A second slice adds to the first, and the other family has the same pods.
        let more = json!([{"addresses": ["10.0.0.9"]}]);
        slices.change(&event("ADDED", slice("b", "IPv4", &more)), &mut version);
        let same = json!([{"addresses": ["fd00::9"]}]);
        slices.change(&event("ADDED", slice("c", "IPv6", &same)), &mut version);
        assert_eq!(names(&slices, None).len(), 3);
        // Without one that is ready, those that end are better than none.
        let ending = json!([{"addresses": ["10.0.0.3"], "conditions": {"ready": false, "serving": true, "terminating": true}}]);
        slices.change(
            &event("MODIFIED", slice("a", "IPv4", &ending)),
            &mut version,
        );
        let gone = event("DELETED", json!({"metadata": {"name": "b"}}));
        assert_eq!(slices.change(&gone, &mut version), Change::Slices);
        assert_eq!(names(&slices, None), ["http://10.0.0.3:8080"]);
    }

    #[test]
    fn a_port_is_one_of_its_protocol() {
        let mut slices = Slices::default();
        let one = json!([{"addresses": ["10.0.0.1"]}]);
        let mut two = slice("a", "IPv4", &one);
        two["ports"][1]["protocol"] = json!("TCP");
        slices.put(Slice::deserialize(&two).unwrap());
        let named = |name: &str| Some(ServicePort::Name(name.to_owned()));
        assert_eq!(names(&slices, named("dns")), ["http://10.0.0.1:53"]);
        assert_eq!(names(&slices, named("other")), [""; 0]);
        let number = Some(ServicePort::Number(8080));
        assert_eq!(names(&slices, number), ["http://10.0.0.1:8080"]);
        let error = slices.servers(&plan(None)).unwrap_err().to_string();
        let expected =
            "the service shop/api has the ports http, dns: name one, such as shop/api:http";
        assert_eq!(error, expected);
    }

    #[test]
    fn errors_are_told_apart() {
        let mut slices = Slices::default();
        let mut version = "7".to_owned();
        let gone = event("ERROR", json!({"code": 410, "message": "too old"}));
        assert_eq!(slices.change(&gone, &mut version), Change::Gone);
        let other = event("ERROR", json!({"code": 500, "message": "etcd is away"}));
        let failed = Change::Failed("etcd is away".to_owned());
        assert_eq!(slices.change(&other, &mut version), failed);
        assert_eq!(version, "7");
    }
}
