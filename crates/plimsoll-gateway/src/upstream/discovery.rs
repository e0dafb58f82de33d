//! Servers that come and go: the seam between an upstream and what lists its servers.
//!
//! A [`ServerSource`] gives one list after the other. While it gives none, because it is away or because its list is wrong, the
//! upstream keeps the servers that it had, and says since when.

mod consul;

mod docker;

mod file;

mod kubernetes;

mod names;

mod scheme;

mod services;

use std::pin::{Pin, pin};
use std::rc::{Rc, Weak};
use std::time::Duration;

use plimsoll_client::Connector;
use plimsoll_model::document::ConfigProblem;
use plimsoll_model::{Clock as _, Failure};
use plimsoll_server::{Notice, Severity};
use plimsoll_wire::SystemClock;

pub(crate) use self::consul::ConsulPlan;
pub(crate) use self::docker::{DockerPlan, LABEL};
pub(crate) use self::file::ServerFile;
pub(crate) use self::kubernetes::{KubernetesPlan, ServicePort};
pub(crate) use self::scheme::ServerScheme;
pub(crate) use self::services::ServicesPlan;
use super::{ServerPlan, Upstream, UpstreamPlan};
pub(crate) use plimsoll_client::json_api::ApiAccess;
use plimsoll_client::json_api::ApiError;

/// Source of an upstream's servers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Discovery {
    /// The configuration.
    #[default]
    Fixed,
    /// The addresses of the names in the configuration.
    Dns,
    /// A file that is read again when it changes.
    File(ServerFile),
    /// SRV records.
    Services(ServicesPlan),
    /// `EndpointSlices` of Kubernetes.
    Kubernetes(KubernetesPlan),
    /// Containers with labels.
    Docker(DockerPlan),
    /// Consul's catalogue.
    Consul(ConsulPlan),
}

/// Lists servers.
trait ServerSource {
    /// Waits for the next list; the first one is what is there now. A list may be the same as the one before.
    ///
    /// It is called again after an error, a while later.
    fn next(&mut self) -> ListFuture<'_>;
}

type ListFuture<'a> = Pin<Box<dyn Future<Output = Result<Listed, SourceError>> + 'a>>;

/// What a source lists.
#[derive(Debug, Default, PartialEq, Eq)]
struct Listed {
    servers: Vec<ServerPlan>,
    /// What was meant to be a server and is none, and what was said of one and is passed over: each with its reason.
    problems: Vec<String>,
}

impl From<Vec<ServerPlan>> for Listed {
    fn from(servers: Vec<ServerPlan>) -> Self {
        Self {
            servers,
            problems: Vec::new(),
        }
    }
}

/// Why there is no list of servers.
#[derive(Debug, thiserror::Error)]
enum SourceError {
    /// The file has problems.
    #[error("{}", .0.first().map_or_else(String::new, ToString::to_string))]
    File(Vec<ConfigProblem>),
    /// A name cannot be looked up.
    #[error(transparent)]
    LookUp(Failure),
    /// The API gives none.
    #[error(transparent)]
    Api(#[from] ApiError),
    /// There are servers, but the configuration does not say which port of them is meant.
    #[error("{0}")]
    Port(String),
}

/// How long the first and the longest pause after an error is.
const PAUSES: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(10));

/// How often it is looked whether the upstream is still in use.
const LOOK: Duration = Duration::from_secs(5);

/// Between which times what is looked up by DNS is looked up again, without regard to its TTL.
const SOONEST: Duration = Duration::from_secs(1);
const LATEST: Duration = Duration::from_mins(5);

impl Discovery {
    /// Its kind and what it lists, for people and metrics; `None` for servers that are in the configuration.
    pub(crate) fn shown(&self) -> Option<(&'static str, String)> {
        match self {
            Self::Fixed | Self::Dns => None,
            Self::File(file) => Some(("file", file.path.display().to_string())),
            Self::Services(plan) => Some(("srv", plan.name.clone())),
            Self::Kubernetes(plan) => Some(("kubernetes", plan.to_string())),
            Self::Docker(plan) => Some(("docker", plan.to_string())),
            Self::Consul(plan) => Some(("consul", plan.service.clone())),
        }
    }

    /// Whether an upstream may begin without a server: its source gives them later.
    pub(crate) const fn gives_all(&self) -> bool {
        match self {
            Self::Fixed | Self::Dns | Self::File(_) => false,
            Self::Services(_) | Self::Kubernetes(_) | Self::Docker(_) | Self::Consul(_) => true,
        }
    }

    /// What its servers speak, if the source does not say that by itself.
    pub(crate) const fn scheme(&self) -> Option<ServerScheme> {
        match self {
            Self::Fixed | Self::Dns | Self::File(_) => None,
            Self::Services(plan) => Some(plan.scheme),
            Self::Kubernetes(plan) => Some(plan.scheme),
            Self::Docker(plan) => Some(plan.scheme),
            Self::Consul(plan) => Some(plan.scheme),
        }
    }

    fn source(
        &self,
        plan: &UpstreamPlan,
        connector: &Rc<Connector>,
    ) -> Option<Result<Box<dyn ServerSource>, SourceError>> {
        let source: Box<dyn ServerSource> = match self {
            Self::Fixed => return None,
            Self::Dns => Box::new(names::Names::new(&plan.servers, connector)),
            Self::File(file) => Box::new(file::FileSource::new(file)),
            Self::Services(services) => Box::new(services::Services::new(services, connector)),
            Self::Kubernetes(service) => match kubernetes::Kubernetes::new(service) {
                Ok(source) => Box::new(source),
                Err(error) => return Some(Err(error)),
            },
            Self::Docker(containers) => match docker::Docker::new(containers) {
                Ok(source) => Box::new(source),
                Err(error) => return Some(Err(error)),
            },
            Self::Consul(service) => match consul::Consul::new(service) {
                Ok(source) => Box::new(source),
                Err(error) => return Some(Err(error)),
            },
        };
        Some(Ok(source))
    }
}

/// Keeps the servers of an upstream current as long as it is in use.
pub(super) async fn follow(upstream: Weak<Upstream>, discovery: Discovery) {
    let mut source: Option<Box<dyn ServerSource>> = None;
    let mut pause = PAUSES.0;
    let mut problems = Vec::new();
    loop {
        let made = if let Some(source) = source.take() {
            Ok(source)
        } else {
            let current = upstream.upgrade();
            let made = current.and_then(|it| discovery.source(&it.plan, &it.connector));
            let Some(made) = made else {
                return;
            };
            made
        };
        let listed = match made {
            Ok(made) => next_of(&mut **source.insert(made), &upstream).await,
            // Files that it needs may come later.
            Err(error) => Some(Err(error)),
        };
        let (Some(listed), Some(current)) = (listed, upstream.upgrade()) else {
            return;
        };
        match listed {
            Ok(listed) => {
                pause = PAUSES.0;
                current.set_servers(&listed.servers);
                // Each is reported once, as long as it is so.
                for text in &listed.problems {
                    if !problems.contains(text) {
                        report(&current, Severity::Warning, text.clone());
                    }
                }
                problems = listed.problems;
                if let Some(away) = current.status.source_listed(SystemClock.now()) {
                    let text = format!("its servers are listed again, after {away:.1?}");
                    report(&current, Severity::Note, text);
                }
            }
            Err(error) => {
                away(&current, &discovery, &error);
                drop(current);
                // Not all gateways at the same time.
                tokio::time::sleep(pause.mul_f64(0.75 + fastrand::f64() / 2.0)).await;
                pause = PAUSES.1.min(pause * 2);
            }
        }
    }
}

/// The next list; `None` once the upstream is not in use any more.
async fn next_of(
    source: &mut dyn ServerSource,
    upstream: &Weak<Upstream>,
) -> Option<Result<Listed, SourceError>> {
    let mut next = pin!(source.next());
    loop {
        tokio::select! {
            listed = &mut next => return Some(listed),
            () = tokio::time::sleep(LOOK) => {
                if upstream.strong_count() == 0 {
                    return None;
                }
            }
        }
    }
}

/// Notes and reports that a source gives no list. The same error is reported once.
fn away(upstream: &Upstream, discovery: &Discovery, error: &SourceError) {
    let texts = match error {
        SourceError::File(problems) => {
            let problems = problems.iter();
            problems.map(|it| (Some(it.line), it.to_string())).collect()
        }
        error => vec![(None, error.to_string())],
    };
    let now = SystemClock.now();
    if !upstream.status.source_failed(&error.to_string(), now) {
        return;
    }
    for (line, text) in texts {
        let text = format!("{text}; the servers stay as they were");
        let place = discovery.shown().map(|(_, shown)| shown);
        match (place, line) {
            (Some(place), Some(line)) => {
                let notice = Notice::new(Severity::Error, text).about(format!("{place}:{line}"));
                upstream.plan.options.notices.report(&notice);
            }
            (_, _) => report(upstream, Severity::Error, text),
        }
    }
}

fn report(upstream: &Upstream, severity: Severity, text: String) {
    let notice = Notice::new(severity, text).about(format!("upstream {}", upstream.name));
    upstream.plan.options.notices.report(&notice);
}
