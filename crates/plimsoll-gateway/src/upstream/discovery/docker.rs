//! Containers of Docker or podman with labels, listed anew whenever one starts, stops or changes its health.
//!
//! Source: Docker's Engine API, "List containers" and "Monitor events", which podman serves too.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use plimsoll_client::fetch::FetchedLines;
use serde_json::json;

use super::{ListFuture, Listed, ServerScheme, ServerSource, SourceError};
use crate::upstream::ServerPlan;
use plimsoll_client::json_api::containers::{Container, ContainerNetwork};
use plimsoll_client::json_api::{Api, ApiAccess, ApiError, encoded};

/// For a list, and for the head of the events.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Without an event the containers are listed all the same: an engine may have lost some.
const AGAIN: Duration = Duration::from_mins(1);

/// Events come in groups: a container that starts makes five.
const TOGETHER: Duration = Duration::from_millis(100);

/// The label that names an upstream.
pub(crate) const LABEL: &str = "plimsoll.upstream";

/// Labels of a container that say more about it.
const PORT: &str = "plimsoll.port";
const WEIGHT: &str = "plimsoll.weight";
const BACKUP: &str = "plimsoll.backup";

/// `docker` of an upstream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DockerPlan {
    /// Containers have all of these: names, or `name=value`.
    pub(crate) labels: Vec<String>,
    /// Unless a label of the container gives it, or it has one port alone.
    pub(crate) port: Option<u16>,
    /// The network whose address is used, for containers that are in several.
    pub(crate) network: Option<String>,
    pub(crate) scheme: ServerScheme,
    pub(crate) access: ApiAccess,
}

impl fmt::Display for DockerPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.labels.join(" "))
    }
}

/// The lists of an engine.
pub(super) struct Docker {
    plan: DockerPlan,
    api: Api,
    /// Opened before the first list, so that nothing is missed between them.
    events: Option<FetchedLines>,
    is_listed: bool,
}

impl Docker {
    pub(super) fn new(plan: &DockerPlan) -> Result<Self, SourceError> {
        let name = "a container engine";
        let authorization = ("authorization", "Bearer ");
        Ok(Self {
            api: Api::new(&plan.access, name, authorization, TIMEOUT)?,
            plan: plan.clone(),
            events: None,
            is_listed: false,
        })
    }

    async fn list(&mut self) -> Result<Listed, SourceError> {
        if self.is_listed {
            self.is_listed = false;
            self.wait().await?;
        }
        if self.events.is_none() {
            let filters = json!({"type": ["container"], "label": self.plan.labels});
            let path = format!("/events?filters={}", encoded(&filters.to_string()));
            let opened = self.api.lines(&path).await;
            self.events = Some(opened.map_err(|refused| refused.error)?);
        }
        let filters = json!({"status": ["running"], "label": self.plan.labels});
        let path = format!("/containers/json?filters={}", encoded(&filters.to_string()));
        let (containers, _) = self.api.get::<Vec<Container>>(&path).await?;
        self.is_listed = true;
        Ok(listed(&self.plan, &containers))
    }

    /// Returns once a container may have changed.
    async fn wait(&mut self) -> Result<(), SourceError> {
        let Some(events) = &mut self.events else {
            return Ok(());
        };
        let patience = Duration::MAX;
        let Ok(event) = tokio::time::timeout(AGAIN, events.next(patience)).await else {
            return Ok(());
        };
        match event {
            Ok(Some(_)) => {}
            Ok(None) => {
                self.events = None;
                return Err(SourceError::Api(ApiError::Answer {
                    api: "a container engine",
                    reason: "it has ended the events".to_owned(),
                }));
            }
            Err(error) => {
                self.events = None;
                return Err(ApiError::from(error).into());
            }
        }
        // The others of the group.
        while let Ok(Ok(Some(_))) = tokio::time::timeout(TOGETHER, events.next(patience)).await {}
        Ok(())
    }
}

impl ServerSource for Docker {
    fn next(&mut self) -> ListFuture<'_> {
        Box::pin(self.list())
    }
}

/// One server for each container that is not unhealthy, nor about to find out.
fn listed(plan: &DockerPlan, containers: &[Container]) -> Listed {
    let mut servers = BTreeMap::new();
    let mut problems = Vec::new();
    for container in containers {
        let is_unhealthy = container.status.contains("(unhealthy)");
        if is_unhealthy || container.status.contains("(health: starting)") {
            continue;
        }
        let place = port(container, plan).and_then(|port| Ok((address(container, plan)?, port)));
        let (host, port) = match place {
            Ok(place) => place,
            Err(reason) => {
                problems.push(reason.to_string());
                continue;
            }
        };
        let label = |name: &str| container.labels.get(name);
        let mut passed_over = |label, text: &str, wanted| {
            let container = container.name().to_owned();
            let text = text.to_owned();
            let problem = PassedOver {
                label,
                container,
                text,
                wanted,
            };
            problems.push(problem.to_string());
        };
        let weight = label(WEIGHT).and_then(|text| {
            let weight = text
                .parse()
                .ok()
                .filter(|weight| *weight <= ServerPlan::MOST_WEIGHT);
            if weight.is_none() {
                passed_over(WEIGHT, text, "no number from 0 to 1000");
            }
            weight
        });
        let is_backup = label(BACKUP).is_some_and(|text| {
            if text != "true" && text != "false" {
                passed_over(BACKUP, text, "neither `true` nor `false`");
            }
            text == "true"
        });
        if let Some(server) = plan.scheme.server(&host, port) {
            let server = ServerPlan {
                weight: weight.unwrap_or(1),
                is_backup,
                ..server
            };
            servers.insert((host, port), server);
        }
    }
    Listed {
        servers: servers.into_values().collect(),
        problems,
    }
}

/// Why a container is no server, although its labels say so.
#[derive(Debug, thiserror::Error)]
enum NotUsable {
    #[error("the label {PORT} of the container {container} is `{text}`, which is no port")]
    Label { container: String, text: String },
    #[error(
        "the container {container} has {count} ports: give `port` in `docker`, or the label {PORT}"
    )]
    Ports { container: String, count: usize },
    #[error("the container {container} is not in the network {network}")]
    Network { container: String, network: String },
}

/// A label of a server that says nothing: it is as if it were not there.
#[derive(Debug, thiserror::Error)]
#[error(
    "the label {label} of the container {container} is `{text}`, which is {wanted}: it is passed over"
)]
struct PassedOver {
    label: &'static str,
    container: String,
    text: String,
    wanted: &'static str,
}

/// The port of its label, of the upstream, or the only one that it has.
fn port(container: &Container, plan: &DockerPlan) -> Result<u16, NotUsable> {
    if let Some(text) = container.labels.get(PORT) {
        let port = text.parse::<u16>().ok().filter(|port| *port > 0);
        return port.ok_or_else(|| NotUsable::Label {
            container: container.name().to_owned(),
            text: text.clone(),
        });
    }
    if let Some(port) = plan.port {
        return Ok(port);
    }
    let ports = container.ports.iter();
    let ports = ports.filter(|port| port.protocol != "udp");
    let mut ports: Vec<_> = ports.map(|port| port.private_port).collect();
    ports.sort_unstable();
    ports.dedup();
    match ports.as_slice() {
        [port] => Ok(*port),
        _ => Err(NotUsable::Ports {
            container: container.name().to_owned(),
            count: ports.len(),
        }),
    }
}

fn address(container: &Container, plan: &DockerPlan) -> Result<String, NotUsable> {
    let networks = container.networks();
    let found = match &plan.network {
        Some(name) => Some(networks.get(name).ok_or_else(|| NotUsable::Network {
            container: container.name().to_owned(),
            network: name.clone(),
        })?),
        None => networks.values().next(),
    };
    // One in the network of the host has no address of its own.
    let address = found.and_then(ContainerNetwork::address);
    Ok(address.unwrap_or("127.0.0.1").to_owned())
}

#[cfg(test)]
mod tests {
    use plimsoll_wire::tls::Trust;
    use serde_json::Value;

    use super::*;

    fn plan(port: Option<u16>, network: Option<&str>) -> DockerPlan {
        DockerPlan {
            labels: vec![format!("{LABEL}=api")],
            port,
            network: network.map(str::to_owned),
            scheme: ServerScheme::Http,
            access: ApiAccess {
                base: "http://localhost".to_owned(),
                socket: None,
                trust: Trust::PublicRoots,
                token: None,
            },
        }
    }

    fn container(name: &str, labels: &Value, status: &str, ports: &[u16]) -> Value {
        let ports: Vec<_> = ports
            .iter()
            .map(|port| json!({"PrivatePort": port, "Type": "tcp"}))
            .collect();
        json!({
            "Id": "abc", "Names": [format!("/{name}")], "Labels": labels, "Status": status, "Ports": ports,
            "NetworkSettings": {"Networks": {
                "back": {"IPAddress": "172.18.0.2"}, "front": {"IPAddress": "172.19.0.2"}, "host": {"IPAddress": ""}
            }},
        })
    }

    /// The server that a container is, or why it is none.
    fn found(plan: &DockerPlan, container: &Value) -> Vec<String> {
        let containers: Vec<Container> = serde_json::from_value(json!([container])).unwrap();
        let Listed { servers, problems } = listed(plan, &containers);
        let servers = servers.iter().map(|it| {
            let backup = if it.is_backup { " backup" } else { "" };
            format!("{} {}{backup}", it.name(), it.weight)
        });
        servers.chain(problems).collect()
    }

    #[test]
    fn a_container_is_a_server_by_its_labels_networks_and_health() {
        let none = json!({});
        let up = "Up 2 minutes";
        let found = |labels: &Value, status: &str, ports: &[u16], port, network| {
            found(
                &plan(port, network),
                &container("web", labels, status, ports),
            )
        };
        assert_eq!(found(&none, up, &[80], None, None), ["http://172.18.0.2 1"]);
        let labels =
            json!({"plimsoll.port": "81", "plimsoll.weight": "5", "plimsoll.backup": "true"});
        let backup = ["http://172.19.0.2:81 5 backup"];
        assert_eq!(
            found(&labels, up, &[80, 90], Some(82), Some("front")),
            backup
        );
        assert_eq!(
            found(&none, up, &[], Some(82), Some("host")),
            ["http://127.0.0.1:82 1"]
        );
        for status in ["Up 1 second (health: starting)", "Up 5 minutes (unhealthy)"] {
            assert_eq!(found(&none, status, &[80], None, None), [""; 0]);
        }
        for (labels, ports, network, expected) in [
            (
                &none,
                &[80, 90][..],
                None,
                "web has 2 ports: give `port` in `docker`, or the label plimsoll.port",
            ),
            (
                &none,
                &[80],
                Some("other"),
                "web is not in the network other",
            ),
            (
                &json!({"plimsoll.port": "x"}),
                &[80],
                None,
                "web is `x`, which is no port",
            ),
        ] {
            let found = found(labels, up, ports, None, network);
            assert!(found[0].ends_with(expected), "{found:?}");
        }
    }

    #[test]
    fn a_label_that_says_nothing_is_named_and_leaves_the_server() {
        for (name, text) in [
            (WEIGHT, "-1"),
            (WEIGHT, "1001"),
            (WEIGHT, "much"),
            (BACKUP, "maybe"),
        ] {
            let found = found(
                &plan(None, None),
                &container("web", &json!({name: text}), "Up", &[80]),
            );
            assert_eq!(found[0], "http://172.18.0.2 1");
            assert!(
                found[1].contains(&format!("{name} of the container web is `{text}`")),
                "{found:?}"
            );
        }
        for text in ["0", "1000"] {
            let labels = json!({WEIGHT: text, BACKUP: "false"});
            let found = found(&plan(None, None), &container("web", &labels, "Up", &[80]));
            assert_eq!(found, [format!("http://172.18.0.2 {text}")]);
        }
    }
}
