//! The endpoints of a service of Kubernetes: its `EndpointSlices`, listed once and watched from there.
//!
//! Source: the API's concepts, "Efficient detection of changes" (list, watch, bookmarks, 410 Gone, limits of lists), and
//! `discovery.k8s.io/v1`.

mod slices;

use std::fmt;
use std::time::{Duration, Instant};

use plimsoll_client::fetch::FetchedLines;
use plimsoll_model::Clock as _;
use plimsoll_wire::SystemClock;
use serde::Deserialize;

use self::slices::{Change, Slice, Slices};
use super::{ListFuture, Listed, ServerScheme, ServerSource, SourceError};
use plimsoll_client::json_api::{Api, ApiAccess, ApiError, encoded};

/// For a list, and for the head of a watch.
const TIMEOUT: Duration = Duration::from_secs(30);

/// How long the API server holds a watch at least; twice as long at most, so that not all end at once.
const WATCH: Duration = Duration::from_mins(5);

/// Slices of one answer to a list.
const PAGE: usize = 500;

/// A watch that ends sooner is not renewed at once.
const SOONEST: Duration = Duration::from_secs(1);

/// Gone (410): the version to go on from is not known any more, and everything is listed anew.
const GONE: u16 = 410;

/// `kubernetes` of an upstream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KubernetesPlan {
    pub(crate) namespace: String,
    pub(crate) service: String,
    /// Needed for services with several.
    pub(crate) port: Option<ServicePort>,
    pub(crate) scheme: ServerScheme,
    pub(crate) access: ApiAccess,
}

/// A port of a service, as its endpoints have it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ServicePort {
    Name(String),
    /// The one that the pods listen on.
    Number(u16),
}

impl fmt::Display for KubernetesPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.service)?;
        match &self.port {
            None => Ok(()),
            Some(ServicePort::Name(name)) => write!(f, ":{name}"),
            Some(ServicePort::Number(number)) => write!(f, ":{number}"),
        }
    }
}

/// The lists of an API server.
pub(super) struct Kubernetes {
    plan: KubernetesPlan,
    api: Api,
    /// Absent until everything is listed.
    known: Option<Known>,
    /// The watch that is open.
    watch: Option<FetchedLines>,
    /// When the last one was opened.
    opened: Option<Instant>,
    /// The last answer was an error.
    is_away: bool,
}

struct Known {
    slices: Slices,
    /// Where a watch goes on.
    version: String,
}

#[derive(Deserialize)]
struct SliceList {
    metadata: ListMetadata,
    #[serde(default)]
    items: Vec<Slice>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ListMetadata {
    resource_version: String,
    /// Of the next page.
    #[serde(default, rename = "continue")]
    next: Option<String>,
}

impl Kubernetes {
    pub(super) fn new(plan: &KubernetesPlan) -> Result<Self, SourceError> {
        let name = "Kubernetes' API";
        let authorization = ("authorization", "Bearer ");
        Ok(Self {
            api: Api::new(&plan.access, name, authorization, TIMEOUT)?,
            plan: plan.clone(),
            known: None,
            watch: None,
            opened: None,
            is_away: false,
        })
    }

    /// What all requests begin with.
    fn path(&self) -> String {
        let KubernetesPlan {
            namespace, service, ..
        } = &self.plan;
        format!(
            "/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices?labelSelector=kubernetes.io%2Fservice-name%3D{service}"
        )
    }

    async fn list(&self) -> Result<Known, SourceError> {
        let mut slices = Slices::default();
        let mut next = String::new();
        loop {
            let path = format!("{}&limit={PAGE}{next}", self.path());
            let (list, _) = self.api.get::<SliceList>(&path).await?;
            for slice in list.items {
                slices.put(slice);
            }
            match list.metadata.next.filter(|next| !next.is_empty()) {
                Some(token) => next = format!("&continue={}", encoded(&token)),
                None => {
                    return Ok(Known {
                        slices,
                        version: list.metadata.resource_version,
                    });
                }
            }
        }
    }

    /// The servers, once they are listed or have changed.
    async fn listed(&mut self) -> Result<Listed, SourceError> {
        loop {
            let Some(known) = &mut self.known else {
                self.watch = None;
                let known = self.list().await?;
                let servers = known.slices.servers(&self.plan)?;
                self.known = Some(known);
                return Ok(servers.into());
            };
            let Some(watch) = &mut self.watch else {
                let version = known.version.clone();
                self.open(&version).await?;
                // What is known holds again, though nothing may happen for long.
                if let (true, Some(_), Some(known)) = (self.is_away, &self.watch, &self.known) {
                    return Ok(known.slices.servers(&self.plan)?.into());
                }
                continue;
            };
            let line = match watch.next(WATCH * 2 + TIMEOUT).await {
                Ok(Some(line)) => line,
                // The API server ends each watch after a while.
                Ok(None) => {
                    self.watch = None;
                    continue;
                }
                Err(error) => {
                    self.watch = None;
                    return Err(ApiError::from(error).into());
                }
            };
            match known
                .slices
                .change(&self.api.read(&line)?, &mut known.version)
            {
                Change::None => {}
                Change::Slices => return Ok(known.slices.servers(&self.plan)?.into()),
                Change::Gone => self.known = None,
                Change::Failed(message) => {
                    self.known = None;
                    return Err(SourceError::Api(ApiError::Answer {
                        api: "Kubernetes' API",
                        reason: message,
                    }));
                }
            }
        }
    }

    async fn open(&mut self, version: &str) -> Result<(), SourceError> {
        let now = SystemClock.now();
        if let Some(opened) = self.opened {
            tokio::time::sleep_until((opened + SOONEST).into()).await;
        }
        self.opened = Some(now);
        let seconds = WATCH.mul_f64(1.0 + fastrand::f64()).as_secs();
        let version = encoded(version);
        let path = format!(
            "{}&watch=1&allowWatchBookmarks=true&timeoutSeconds={seconds}&resourceVersion={version}",
            self.path()
        );
        match self.api.lines(&path).await {
            Ok(lines) => self.watch = Some(lines),
            Err(refused) if refused.status == Some(GONE) => self.known = None,
            Err(refused) => return Err(refused.error.into()),
        }
        Ok(())
    }
}

impl ServerSource for Kubernetes {
    fn next(&mut self) -> ListFuture<'_> {
        Box::pin(async {
            let listed = self.listed().await;
            self.is_away = listed.is_err();
            listed
        })
    }
}
