//! Ingresses and Services of Kubernetes with annotations.
//!
//! Source: the API's concepts ("Retrieving large results sets in chunks"), `networking.k8s.io/v1` and `v1`.

use std::collections::BTreeMap;
use std::time::Duration;

use plimsoll_client::json_api::{Api, encoded};
use serde::Deserialize;

use crate::config::KubernetesListPlan;
use crate::discovery::labels::{LabelError, Labelled};
use crate::discovery::{DiscoverError, ListFuture, Listed, MonitorSource};

/// For a page of a list.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Objects of a page.
const PAGE: usize = 500;

/// The annotation of what is monitored: `true`, or the URL of a monitor of HTTP.
const ANNOTATION: &str = "plimsoll.dev/monitor";

/// What annotations with keys of the definition begin with.
const PREFIX: &str = "monitor.plimsoll.dev/";

/// Lists Ingresses and Services again and again.
pub(super) struct Kubernetes {
    api: Api,
    /// Of one namespace, or of all.
    namespace: Option<String>,
    refresh: Duration,
    /// Whether the next list is for later.
    waits: bool,
}

#[derive(Deserialize)]
struct ObjectList {
    metadata: ListMetadata,
    #[serde(default)]
    items: Vec<Object>,
}

#[derive(Deserialize)]
struct ListMetadata {
    /// Of the next page.
    #[serde(default, rename = "continue")]
    next: Option<String>,
}

#[derive(Deserialize)]
struct Object {
    metadata: Metadata,
    #[serde(default)]
    spec: Spec,
}

#[derive(Deserialize)]
struct Metadata {
    name: String,
    #[serde(default)]
    namespace: String,
    #[serde(default)]
    annotations: BTreeMap<String, String>,
}

/// Of an Ingress and of a Service.
#[derive(Default, Deserialize)]
struct Spec {
    #[serde(default)]
    rules: Vec<Rule>,
    #[serde(default)]
    tls: Vec<Tls>,
    #[serde(default)]
    ports: Vec<Port>,
}

#[derive(Deserialize)]
struct Rule {
    #[serde(default)]
    host: String,
}

#[derive(Deserialize)]
struct Tls {
    #[serde(default)]
    hosts: Vec<String>,
}

#[derive(Deserialize)]
struct Port {
    port: u16,
}

impl Kubernetes {
    pub(super) fn new(plan: &KubernetesListPlan, refresh: Duration) -> Result<Self, DiscoverError> {
        let authorization = ("authorization", "Bearer ");
        Ok(Self {
            api: Api::new(&plan.access, "Kubernetes' API", authorization, TIMEOUT)?,
            namespace: plan.namespace.clone(),
            refresh,
            waits: false,
        })
    }

    async fn list(&mut self) -> Result<Listed, DiscoverError> {
        if std::mem::replace(&mut self.waits, false) {
            tokio::time::sleep(self.refresh).await;
        }
        let mut listed = Listed::default();
        for (group, kind) in [
            ("apis/networking.k8s.io/v1", "ingresses"),
            ("api/v1", "services"),
        ] {
            for object in self.objects(group, kind).await? {
                match object.definitions() {
                    Ok(definitions) => listed.definitions.extend(definitions),
                    Err(problem) => {
                        let Metadata {
                            name, namespace, ..
                        } = &object.metadata;
                        listed
                            .problems
                            .push(format!("{kind} {namespace}/{name}: {problem}"));
                    }
                }
            }
        }
        self.waits = true;
        Ok(listed)
    }

    async fn objects(&self, group: &str, kind: &str) -> Result<Vec<Object>, DiscoverError> {
        let namespace = self.namespace.as_ref();
        let within = namespace.map_or(String::new(), |name| {
            format!("namespaces/{}/", encoded(name))
        });
        let mut all = Vec::new();
        let mut next = String::new();
        loop {
            let path = format!("/{group}/{within}{kind}?limit={PAGE}{next}");
            let (list, _) = self.api.get::<ObjectList>(&path).await?;
            all.extend(list.items);
            match list.metadata.next.filter(|next| !next.is_empty()) {
                Some(token) => next = format!("&continue={}", encoded(&token)),
                None => return Ok(all),
            }
        }
    }
}

impl MonitorSource for Kubernetes {
    fn next(&mut self) -> ListFuture<'_> {
        Box::pin(self.list())
    }
}

impl Object {
    /// One for each host of an Ingress whose annotations give no kind; otherwise one.
    fn definitions(&self) -> Result<Vec<toml::Table>, LabelError> {
        let Metadata {
            name,
            namespace,
            annotations,
        } = &self.metadata;
        let annotation = annotations.get(ANNOTATION).map(|text| text.trim());
        let url = match annotation {
            None | Some("false") => return Ok(Vec::new()),
            Some("true" | "") => None,
            Some(url) if url.contains("://") => Some(url),
            Some(other) => {
                return Err(LabelError::Value {
                    label: ANNOTATION,
                    text: other.to_owned(),
                });
            }
        };
        let service = format!("{name}.{namespace}.svc");
        let places = [
            ("name", name.as_str()),
            ("namespace", namespace.as_str()),
            ("service", service.as_str()),
        ];
        let definition = |name: &str, target: Option<(&str, &str)>| {
            let labelled = Labelled {
                name,
                group: namespace,
                places: &places,
            };
            let keys = annotations.iter();
            let keys =
                keys.filter_map(|(key, value)| Some((key.strip_prefix(PREFIX)?, value.as_str())));
            labelled.definition(keys.chain(target))
        };
        let has_kind = annotations.keys().any(|key| {
            let key = key.strip_prefix(PREFIX).unwrap_or_default();
            crate::config::is_kind(key.split('.').next().unwrap_or_default())
        });
        if has_kind || url.is_some() {
            return Ok(vec![definition(name, url.map(|url| ("http", url)))?]);
        }
        let mut hosts: Vec<_> = self
            .spec
            .rules
            .iter()
            .map(|rule| rule.host.as_str())
            .collect();
        hosts.retain(|host| !host.is_empty() && !host.contains('*'));
        hosts.dedup();
        if let [port, ..] = self.spec.ports.as_slice() {
            let place = format!("{service}:{}", port.port);
            return Ok(vec![definition(name, Some(("tcp", &place)))?]);
        }
        if hosts.is_empty() {
            return Err(LabelError::NoTarget(ANNOTATION));
        }
        let is_tls = |host: &str| {
            self.spec
                .tls
                .iter()
                .any(|tls| tls.hosts.iter().any(|it| it == host))
        };
        let one_of = |host: &&str| {
            let scheme = if is_tls(host) { "https" } else { "http" };
            let url = format!("{scheme}://{host}/");
            let name = if hosts.len() == 1 {
                name.clone()
            } else {
                format!("{name} {host}")
            };
            definition(&name, Some(("http", &url)))
        };
        hosts.iter().map(one_of).collect()
    }
}
