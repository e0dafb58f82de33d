//! Containers of Docker or podman with labels, running or not: one that has stopped is down, one that is removed is gone.
//!
//! Source: Docker's Engine API, "List containers", which podman serves too.

use std::time::Duration;

use plimsoll_client::json_api::containers::{Container, ContainerNetwork};
use plimsoll_client::json_api::{Api, ApiAccess, encoded};
use serde_json::json;

use crate::discovery::labels::{LabelError, Labelled};
use crate::discovery::{DiscoverError, ListFuture, Listed, MonitorSource};

/// For a list.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The label of containers that are monitored: `true`, or the URL of a monitor of HTTP.
const LABEL: &str = "plimsoll.monitor";

/// What labels with keys of the definition begin with.
const PREFIX: &str = "plimsoll.monitor.";

/// Lists containers again and again.
pub(super) struct Docker {
    api: Api,
    refresh: Duration,
    /// Whether the next list is for later.
    waits: bool,
}

impl Docker {
    pub(super) fn new(access: &ApiAccess, refresh: Duration) -> Result<Self, DiscoverError> {
        let authorization = ("authorization", "Bearer ");
        Ok(Self {
            api: Api::new(access, "a container engine", authorization, TIMEOUT)?,
            refresh,
            waits: false,
        })
    }

    async fn list(&mut self) -> Result<Listed, DiscoverError> {
        if std::mem::replace(&mut self.waits, false) {
            tokio::time::sleep(self.refresh).await;
        }
        let filters = json!({ "label": [LABEL] }).to_string();
        let path = format!("/containers/json?all=1&filters={}", encoded(&filters));
        let (mut containers, _) = self.api.get::<Vec<Container>>(&path).await?;
        self.waits = true;
        // The engine has the newest first.
        containers.sort_by(|one, other| one.name().cmp(other.name()));
        let mut listed = Listed::default();
        for container in &containers {
            match definition(container) {
                Ok(Some(definition)) => listed.definitions.push(definition),
                Ok(None) => {}
                Err(problem) => {
                    let name = container.name();
                    listed
                        .problems
                        .push(format!("the container {name}: {problem}"));
                }
            }
        }
        Ok(listed)
    }
}

impl MonitorSource for Docker {
    fn next(&mut self) -> ListFuture<'_> {
        Box::pin(self.list())
    }
}

/// The first address that it has, as URLs have it; one that has stopped has none.
fn address(container: &Container) -> String {
    let mut networks = container.networks().values();
    match networks.find_map(ContainerNetwork::address) {
        Some(address) if address.contains(':') => format!("[{address}]"),
        Some(address) => address.to_owned(),
        // It refuses connections, as a container that has stopped does.
        None => "0.0.0.0".to_owned(),
    }
}

fn definition(container: &Container) -> Result<Option<toml::Table>, LabelError> {
    let labels = &container.labels;
    let label = labels.get(LABEL).map(|label| label.trim());
    let url = match label {
        None | Some("false") => return Ok(None),
        Some("true" | "") => None,
        Some(url) if url.contains("://") => Some(url),
        Some(other) => {
            return Err(LabelError::Value {
                label: LABEL,
                text: other.to_owned(),
            });
        }
    };
    let address = address(container);
    let project = labels.get("com.docker.compose.project");
    let service = labels.get("com.docker.compose.service");
    let labelled = Labelled {
        name: container.name(),
        group: project.map_or("", String::as_str),
        places: &[
            ("address", &address),
            ("name", container.name()),
            ("service", service.map_or("", String::as_str)),
        ],
    };
    let keys = labels.iter();
    let keys = keys.filter_map(|(key, value)| Some((key.strip_prefix(PREFIX)?, value.as_str())));
    let definition = labelled.definition(keys.chain(url.map(|url| ("http", url))))?;
    Ok(Some(definition))
}
