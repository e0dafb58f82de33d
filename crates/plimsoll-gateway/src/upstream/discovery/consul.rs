//! The instances of a service in Consul's catalogue, by blocking queries.
//!
//! Source: Consul's HTTP API, "Blocking queries" and "List service instances for a service with health".

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use plimsoll_model::Clock as _;
use plimsoll_wire::SystemClock;
use serde::Deserialize;

use super::{ListFuture, Listed, ServerScheme, ServerSource, SourceError};
use crate::upstream::ServerPlan;
use plimsoll_client::json_api::{Api, ApiAccess, encoded};

/// How long Consul holds a query whose answer has not changed. It adds up to a sixteenth of that.
const WAIT: Duration = Duration::from_mins(5);

/// From one query to the next: an index that changes all the time, for the sake of other services, is not followed faster.
const SOONEST: Duration = Duration::from_millis(200);

/// `consul` of an upstream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ConsulPlan {
    pub(crate) service: String,
    /// Instances have all of these.
    pub(crate) tags: Vec<String>,
    pub(crate) datacenter: Option<String>,
    /// Instances whose checks warn get requests too.
    pub(crate) uses_warned: bool,
    pub(crate) scheme: ServerScheme,
    pub(crate) access: ApiAccess,
}

/// The lists of an agent of Consul.
pub(super) struct Consul {
    plan: ConsulPlan,
    api: Api,
    /// The one of the last answer; 0 before the first.
    index: u64,
    asked: Option<Instant>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Instance {
    node: Node,
    service: Service,
    #[serde(default)]
    checks: Vec<Check>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Node {
    #[serde(default)]
    address: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Service {
    /// Empty if it is that of the node.
    #[serde(default)]
    address: String,
    /// As it was registered, which may be no port: the other instances stay.
    port: i64,
    #[serde(default)]
    weights: Option<Weights>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Weights {
    passing: u32,
    warning: u32,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Check {
    #[serde(default)]
    status: String,
}

impl Consul {
    pub(super) fn new(plan: &ConsulPlan) -> Result<Self, SourceError> {
        let timeout = WAIT + WAIT / 16 + Duration::from_secs(30);
        Ok(Self {
            api: Api::new(
                &plan.access,
                "Consul's API",
                ("x-consul-token", ""),
                timeout,
            )?,
            plan: plan.clone(),
            index: 0,
            asked: None,
        })
    }

    async fn list(&mut self) -> Result<Listed, SourceError> {
        if let Some(asked) = self.asked {
            tokio::time::sleep_until((asked + SOONEST).into()).await;
        }
        self.asked = Some(SystemClock.now());
        // What was waited for is forgotten with an error: the next list is the one of now.
        let index = std::mem::take(&mut self.index);
        let path = path(&self.plan, index);
        let (instances, answer) = self.api.get::<Vec<Instance>>(&path).await?;
        let now = answer.field("x-consul-index");
        let now = now.and_then(|it| it.parse::<u64>().ok()).unwrap_or(0);
        // An index that goes back is that of another server or a restored one.
        self.index = if now < index { 0 } else { now.max(1) };
        Ok(servers(&self.plan, &instances).into())
    }
}

impl ServerSource for Consul {
    fn next(&mut self) -> ListFuture<'_> {
        Box::pin(self.list())
    }
}

fn path(plan: &ConsulPlan, index: u64) -> String {
    let mut path = format!("/v1/health/service/{}?stale=1", encoded(&plan.service));
    if !plan.uses_warned {
        path.push_str("&passing=1");
    }
    for tag in &plan.tags {
        path.push_str("&tag=");
        path.push_str(&encoded(tag));
    }
    if let Some(datacenter) = &plan.datacenter {
        path.push_str("&dc=");
        path.push_str(&encoded(datacenter));
    }
    if index > 0 {
        path = format!("{path}&index={index}&wait={}s", WAIT.as_secs());
    }
    path
}

fn servers(plan: &ConsulPlan, instances: &[Instance]) -> Vec<ServerPlan> {
    let mut servers = BTreeMap::new();
    for instance in instances {
        let has = |status: &str| instance.checks.iter().any(|check| check.status == status);
        if has("critical") || has("maintenance") {
            continue;
        }
        let service = &instance.service;
        let host = if service.address.is_empty() {
            &instance.node.address
        } else {
            &service.address
        };
        let weight = match &service.weights {
            None => 1,
            Some(weights) if has("warning") => weights.warning,
            Some(weights) => weights.passing,
        };
        if let Some(server) = plan.scheme.server(host, service.port) {
            let weight = weight.min(ServerPlan::MOST_WEIGHT);
            servers.insert(
                (host.clone(), service.port),
                ServerPlan { weight, ..server },
            );
        }
    }
    servers.into_values().collect()
}

#[cfg(test)]
mod tests {
    use plimsoll_wire::tls::Trust;
    use serde_json::json;

    use super::*;

    fn plan() -> ConsulPlan {
        ConsulPlan {
            service: "shop/api".to_owned(),
            tags: vec!["v2".to_owned(), "eu west".to_owned()],
            datacenter: Some("dc1".to_owned()),
            uses_warned: true,
            scheme: ServerScheme::Http,
            access: ApiAccess {
                base: "http://127.0.0.1:8500".to_owned(),
                socket: None,
                trust: Trust::PublicRoots,
                token: None,
            },
        }
    }

    #[test]
    fn a_query_names_what_is_wanted_and_where_to_go_on() {
        let path = path(&plan(), 7);
        let expected =
            "/v1/health/service/shop%2Fapi?stale=1&tag=v2&tag=eu%20west&dc=dc1&index=7&wait=300s";
        assert_eq!(path, expected);
    }

    #[test]
    fn instances_are_servers_by_their_checks_and_weights() {
        let instance = |address: &str, port: u16, status: &str| {
            json!({
                "Node": {"Address": "10.0.0.7"},
                "Service": {"Address": address, "Port": port, "Weights": {"Passing": 10, "Warning": 2}},
                "Checks": [{"Status": "passing"}, {"Status": status}],
            })
        };
        let instances = json!([
            instance("10.0.0.2", 80, "warning"),
            instance("", 81, "passing"),
            instance("10.0.0.3", 80, "critical"),
        ]);
        let instances: Vec<Instance> = serde_json::from_value(instances).unwrap();
        let servers = servers(&plan(), &instances);
        let servers: Vec<_> = servers.iter().map(|it| (it.name(), it.weight)).collect();
        let expected = [("http://10.0.0.2", 2), ("http://10.0.0.7:81", 10)];
        let expected = expected.map(|(name, weight)| (name.to_owned(), weight));
        assert_eq!(servers, expected);
    }
}
