//! Plans: what is to be monitored, checked and ready to run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use jiff::tz::TimeZone;
use plimsoll_model::{Secret, masked_text};
use plimsoll_server::BasicAuth;
use plimsoll_server::config::{NamedPath, PathUse};
use plimsoll_wire::tls::Trust;

use crate::config::agent::AgentPlan;
use crate::config::discover::{DiscoverPlan, DiscoverSource, KubernetesListPlan};
use crate::config::oidc::OidcPlan;
use crate::config::overlay::Grounds;
use crate::config::page::PagePlan;
use crate::config::subscriptions::SubscriptionPlan;
use crate::detect::DetectPolicy;
use crate::detect::budget::Slo;
use crate::detect::window::{Cron, Window};
use crate::notify::AcknowledgePlan;
use crate::notify::oncall::OnCallPlan;
use crate::notify::{EscalationPlan, NotifyPlan};
use crate::probe::reading::{Expectation, GatusDisplay};
use crate::probe::{KnownSecrets, Probe};
use crate::schedule::{GateLimits, Timing};
use crate::store::{Retention, ServerOptions, ServerUrls};
use crate::time::Timestamp;
use crate::token::ApiToken;
use crate::yaml::Warning;

/// A whole configuration.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Whose monitors these are; several share a store.
    pub organisation: String,
    /// The monitors.
    pub monitors: Vec<Arc<MonitorPlan>>,
    /// Store.
    pub store: StorePlan,
    /// How many checks run.
    pub limits: GateLimits,
    /// How long data is kept.
    pub retention: Retention,
    /// Whether `/metrics` is served.
    pub metrics: bool,
    /// In the URLs of heartbeats beside the slug of their monitor: what knows it may send those of the organisation.
    pub ping_key: Option<Secret>,
    /// Whose configuration it is.
    pub dialect: Dialect,
    /// What lists further monitors.
    pub discover: Vec<Arc<DiscoverPlan>>,
    /// Access to the API.
    pub tokens: Vec<ApiToken>,
    /// The name of the region of this process.
    pub region: String,
    /// Processes elsewhere that check monitors too.
    pub agents: Vec<AgentPlan>,
    /// The status pages.
    pub pages: Vec<Arc<PagePlan>>,
    /// Keys that seal secrets of the store; the first one seals.
    pub keys: Vec<Secret>,
    /// On-call rotations.
    pub rotations: Vec<Arc<OnCallPlan>>,
    /// By what means readers of pages may subscribe; absent if they may not.
    pub subscriptions: Option<Arc<SubscriptionPlan>>,
    /// Links in notices; absent if there are none.
    pub acknowledge: Option<Arc<AcknowledgePlan>>,
    /// By which provider members may sign in.
    pub oidc: Option<Arc<OidcPlan>>,
    /// The receivers of openings, step by step.
    pub escalations: Vec<Arc<EscalationPlan>>,
    /// Channels of notices.
    pub channels: Vec<Arc<NotifyPlan>>,
    /// Against what definitions in the store are compiled.
    pub grounds: Arc<Grounds>,
    /// Doubtful parts that are not errors.
    pub warnings: Vec<Warning>,
    /// The files that it was read from, to be watched.
    pub files: Vec<PathBuf>,
    /// Other files that it names: authorities, certificates, scripts, logos.
    pub(crate) named: Vec<PathBuf>,
}

impl Plan {
    /// Every file and folder that a monitor of this plan reads or writes.
    pub fn named_paths(&self) -> Vec<NamedPath> {
        let named = |usage| move |path: PathBuf| NamedPath { path, usage };
        let mut read: Vec<_> = self.files.iter().chain(&self.named).cloned().collect();
        let (mut written, mut written_files) = (Vec::new(), Vec::new());
        let roots = |trust: &Trust| match trust {
            Trust::Only(path) => Some(path.clone()),
            _ => None,
        };
        match &self.store {
            StorePlan::Memory => {}
            // SQLite writes its journal beside the file.
            StorePlan::Sqlite(path) => written.extend(path.parent().map(Path::to_owned)),
            StorePlan::Servers(urls, _) => {
                read.extend(urls.ca.clone());
                written.extend(urls.spill.clone());
            }
        }
        let trust = self.oidc.as_ref().map(|plan| &plan.trust);
        if let Some(Trust::Only(path)) = trust {
            read.push(path.clone());
        }
        for plan in &self.discover {
            match &plan.source {
                DiscoverSource::Folder(folder) => read.push(folder.clone()),
                DiscoverSource::Http(list) => read.extend(roots(&list.trust)),
                DiscoverSource::Docker(access)
                | DiscoverSource::Kubernetes(KubernetesListPlan { access, .. }) => {
                    read.extend(roots(&access.trust));
                    read.extend(access.token.clone());
                    // A connection to a socket writes to it.
                    written_files.extend(access.socket.clone());
                }
            }
        }
        let read = read.into_iter().map(named(PathUse::Read));
        let written = written.into_iter().map(named(PathUse::WriteFolder));
        let files = written_files.into_iter().map(named(PathUse::WriteFile));
        read.chain(written).chain(files).collect()
    }
}

/// Store of a monitor's data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StorePlan {
    /// In memory, until the program ends.
    Memory,
    /// In a SQLite file.
    Sqlite(PathBuf),
    /// In PostgreSQL and ClickHouse.
    Servers(ServerUrls, ServerOptions),
}

/// Whose configuration it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Dialect {
    /// Ours.
    Plimsoll,
    /// Gatus's.
    Gatus(GatusSettings),
}

/// Settings of Gatus that shape its API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GatusSettings {
    /// Results that are returned at most.
    pub most_results: usize,
    /// Events that are returned at most.
    pub most_events: usize,
    /// The title of its page.
    pub title: String,
    /// Listen address of a Gatus configuration.
    pub address: String,
    /// Readers of the statuses, if not everyone.
    pub basic: Option<BasicLogin>,
    /// Announcements as they are returned by `/api/v1/config`.
    pub announcements: Vec<serde_json::Value>,
    /// Names of labels of metrics that endpoints add.
    pub extra_labels: Vec<String>,
    /// Whether an invalid new configuration is passed over; otherwise it ends the program in Gatus, and is reported here.
    pub skips_invalid_updates: bool,
}

/// The user of Gatus's `security.basic`.
#[derive(Debug, Clone)]
pub struct BasicLogin {
    /// Name and hash, by which two are compared.
    pub user: (String, Secret),
    /// Checks passwords off the worker, a few at a time, and remembers the right one.
    pub auth: Arc<BasicAuth>,
}

impl PartialEq for BasicLogin {
    fn eq(&self, other: &Self) -> bool {
        self.user == other.user
    }
}

impl Eq for BasicLogin {}

/// One monitor.
#[derive(Debug, Clone)]
pub struct MonitorPlan {
    /// Unique in the configuration; in URLs.
    pub key: String,
    /// For people.
    pub name: String,
    /// The group that it is shown in; empty for none.
    pub group: String,
    /// The kind for people and metrics, such as `http`.
    pub kind: String,
    /// Source of its results.
    pub what: What,
    /// The expected reading.
    pub expectation: Expectation,
    /// Its credentials, which no reason may show.
    pub secrets: Arc<KnownSecrets>,
    /// When it is checked; absent if results come from outside.
    pub timing: Option<Timing>,
    /// Attempts within a check.
    pub retries: Retries,
    /// The regions that check it; empty for that of this process alone.
    pub from: Vec<String>,
    /// The part that agents get, as the keys of a `[[monitor]]`; absent if none checks it.
    pub work: Option<Arc<str>>,
    /// When it is down.
    pub policy: DetectPolicy,
    /// Its objective of uptime.
    pub slo: Option<Slo>,
    /// When its notices are held back.
    pub windows: Vec<Arc<Window>>,
    /// The keys of monitors that it depends on.
    pub parents: Vec<String>,
    /// Labels of metrics.
    pub labels: BTreeMap<String, String>,
    /// Tags to find and filter it by.
    pub tags: Vec<String>,
    /// Limits of Gatus's badge of response times, in milliseconds.
    pub badge_millis: [u64; 5],
    /// Display of its results in Gatus's interface.
    pub display: GatusDisplay,
}

impl MonitorPlan {
    /// Whether a region checks it.
    ///
    /// - `own`: the region of this process.
    pub fn is_checked_from(&self, region: &str, own: &str) -> bool {
        if self.from.is_empty() {
            region == own
        } else {
            self.from.iter().any(|from| from == region)
        }
    }

    /// Whether another process on the same store may check it for this one. Monitors of a machine (`docker`, `systemd`) are
    /// checked by the process that has the lease.
    ///
    /// - `own`: the region of this process.
    pub fn is_shareable(&self, own: &str) -> bool {
        let is_of_machine = matches!(self.kind.as_str(), "docker" | "systemd");
        self.timing.is_some() && self.is_checked_from(own, own) && !is_of_machine
    }

    /// The keys of monitors that it depends on or is made of.
    pub fn needs(&self) -> impl Iterator<Item = &str> {
        let members = match &self.what {
            What::Composite(composite) => composite.members.as_slice(),
            _ => &[],
        };
        self.parents.iter().chain(members).map(String::as_str)
    }
}

/// Source of results.
#[derive(Debug, Clone)]
pub enum What {
    /// A probe.
    Probe(Arc<dyn Probe>),
    /// Requests that the target makes.
    Heartbeat(HeartbeatPlan),
    /// Results that are pushed, as to external endpoints of Gatus.
    Pushed {
        /// Tokens that may push results.
        token: Secret,
        /// How often a result must come; absent if silence is fine.
        every: Option<Duration>,
    },
    /// The health of other monitors.
    Composite(CompositePlan),
    /// An operator.
    Manual,
}

impl What {
    /// The target of a probe for people, without credentials.
    pub fn target(&self) -> Option<String> {
        match self {
            Self::Probe(probe) => Some(masked_text(&probe.target()).into_owned()),
            _ => None,
        }
    }
}

/// When a heartbeat is late.
#[derive(Debug, Clone)]
pub struct HeartbeatPlan {
    /// In the URL of the heartbeat: what knows it may send it.
    pub token: Secret,
    /// In its URL beside the key of the organisation; absent for that of its name.
    pub slug: Option<String>,
    /// When it is due.
    pub due: EveryOrCron,
    /// Grace period.
    pub grace: Duration,
    /// How long a run may take from its start on.
    pub most_runtime: Option<Duration>,
    /// Whether a heartbeat resumes the monitor if it is paused.
    pub resumes: bool,
    /// What the job does, for people.
    pub about: Option<String>,
}

impl HeartbeatPlan {
    /// From one heartbeat until the next one is due.
    pub fn period_after(&self, last: Timestamp) -> Duration {
        match &self.due {
            EveryOrCron::Every(period) => *period,
            EveryOrCron::Cron(cron, zone) => {
                let next = cron.next(last, zone);
                next.map_or(Duration::from_hours(24 * 366), |next| next.since(last))
            }
        }
    }
}

/// When something is due.
#[derive(Debug, Clone)]
pub enum EveryOrCron {
    /// So long after the last time.
    Every(Duration),
    /// By a cron expression in a zone.
    Cron(Cron, TimeZone),
}

/// A monitor that is made of others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompositePlan {
    /// The keys of its members.
    pub members: Vec<String>,
    /// How many of them must be up.
    pub least_up: usize,
}

/// Attempts within a check, which is down only if all fail.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Retries {
    /// Attempts after the first.
    pub most: u32,
    /// Between two attempts.
    pub pause: Duration,
}

/// The key of a group and a name, as Gatus makes it.
///
/// Both are trimmed and lower-cased, and each of space `/ _ , . # + &` becomes a hyphen; an underscore stands between
/// them.
pub fn key_of(group: &str, name: &str) -> String {
    let sanitized = |text: &str| {
        let text = text.trim().to_lowercase();
        text.replace([' ', '/', '_', ',', '.', '#', '+', '&'], "-")
    };
    format!("{}_{}", sanitized(group), sanitized(name))
}
