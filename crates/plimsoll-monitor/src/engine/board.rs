//! The current state of every monitor, for readers.

use std::collections::{BTreeMap, HashMap, btree_map};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use plimsoll_model::Secret;
use tokio::sync::watch;

use crate::config::overlay::PlacedWindow;
use crate::config::{
    AgentPlan, ApiToken, Dialect, Grounds, MonitorPlan, OidcPlan, PagePlan, Plan, Source,
    SubscriptionPlan,
};
use crate::detect::RegionView;
use crate::detect::status::Health;
use crate::discovery::DiscoveryView;
use crate::engine::composition::LeftOut;
use crate::engine::histories::Histories;
use crate::ids::MonitorMap;
use crate::notify::oncall::OnCallPlan;
use crate::notify::{AcknowledgePlan, EscalationPlan, NotifyPlan};
use crate::probe::reading::CheckResult;
use crate::schedule::DropCounts;
use crate::store::shards::Division;
use crate::store::{DefinitionKind, MonitorId, StoredToken};
use crate::time::Timestamp;

/// An agent reports every second; one that has not for so long is away.
pub(super) const REPORTS_WITHIN: Duration = Duration::from_secs(30);

/// The current state of every monitor.
#[derive(Debug, Default)]
pub struct Board {
    content: RwLock<Content>,
    /// Counts changes of what pages show.
    version: watch::Sender<u64>,
    /// Of the engine as a whole.
    pub figures: Figures,
    /// The past of the monitors that pages show.
    pub histories: Histories,
}

#[derive(Debug, Default)]
struct Content {
    by_key: BTreeMap<String, View>,
    keys: MonitorMap<String>,
    dialect: Option<Dialect>,
    metrics: bool,
    ping_key: Option<Secret>,
    tokens: Arc<[ApiToken]>,
    pages: Arc<[Arc<PagePlan>]>,
    grounds: Arc<Grounds>,
    access: Access,
    channels: Arc<[Arc<NotifyPlan>]>,
    windows: Arc<[PlacedWindow]>,
    region: Arc<str>,
    agents: Arc<[AgentPlan]>,
    heard: HashMap<String, Heard>,
    /// Names of regions by their numbers in the store.
    regions: Arc<BTreeMap<u16, Arc<str>>>,
    subscriptions: Option<Arc<SubscriptionPlan>>,
    /// How processes divide the checks; absent for one that has its store for itself.
    division: Option<Arc<Division>>,
    /// When the process ended that ran the checks, until one runs them again.
    ended: Option<Timestamp>,
    acknowledge: Option<Arc<AcknowledgePlan>>,
    oidc: Option<Arc<OidcPlan>>,
    rotations: Arc<[Arc<OnCallPlan>]>,
    escalations: Arc<[Arc<EscalationPlan>]>,
    discovery: Arc<[DiscoveryView]>,
    /// Definitions of the store that are not in force.
    left_out: LeftOut,
}

/// The last report of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heard {
    /// When.
    pub at: Timestamp,
    /// Its version of plimsoll.
    pub version: String,
    /// Results that wait there.
    pub waiting: u64,
    /// Results that were given up there since its start.
    pub lost: u64,
}

/// Access to the API, besides the tokens of the file.
#[derive(Debug, Clone, Default)]
pub struct Access {
    /// Tokens of the store.
    pub tokens: Arc<[StoredToken]>,
    /// Whether there is any user.
    pub has_users: bool,
}

/// The current state of one monitor.
#[derive(Debug, Clone)]
pub struct View {
    /// Its number.
    pub id: MonitorId,
    /// Its plan.
    pub plan: Arc<MonitorPlan>,
    /// Source of the definition.
    pub source: Source,
    /// Its health.
    pub health: Health,
    /// Since when.
    pub since: Timestamp,
    /// Whether a maintenance window is under way.
    pub in_maintenance: bool,
    /// Whether an incident is open.
    pub has_incident: bool,
    /// When the open incident opened, and whether an operator has seen it.
    pub incident: Option<(Timestamp, bool)>,
    /// Whether an operator has paused it.
    pub is_paused: bool,
    /// The view of each region, if others than this process check it.
    pub regions: Vec<RegionView>,
    /// Its last result.
    pub last: Option<CheckResult>,
    /// The state of its heartbeat, if it has one.
    pub beat: Option<Beat>,
    /// Results since the start of the program.
    pub counters: Counters,
}

/// The signals of a heartbeat so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Beat {
    /// When the last success or failure came.
    pub last: Option<Timestamp>,
    /// When the run that is under way began.
    pub started: Option<Timestamp>,
    /// Successes and failures that came.
    pub count: u64,
}

/// Results of a monitor since the start of the program.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counters {
    /// By status: up, degraded, down, error.
    pub results: [u64; 4],
    /// By status of HTTP or the like.
    pub codes: BTreeMap<u16, u64>,
    /// Those that reached the target.
    pub connected: u64,
}

/// Figures of the engine.
#[derive(Debug, Default)]
pub struct Figures {
    /// Checks that started.
    pub started: AtomicU64,
    /// Checks that ended.
    pub finished: AtomicU64,
    /// Intended starts that were missed, because the loop or the machine stood still.
    pub missed: AtomicU64,
    /// Microseconds by which starts were late, in all.
    pub late_us: AtomicU64,
    /// Results that the store did not take.
    pub lost: AtomicU64,
    /// Files of results that are damaged.
    pub damaged_files: AtomicU64,
    /// Changes that wait for the store.
    pub unrecorded: AtomicU64,
    dropped: [AtomicU64; 4],
}

impl Figures {
    /// Checks that a gate kept from starting, by reason.
    pub fn dropped(&self) -> [u64; 4] {
        [0, 1, 2, 3].map(|index| self.dropped[index].load(Ordering::Relaxed))
    }

    pub(super) fn set_dropped(&self, counts: &DropCounts) {
        for (figure, reason) in self.dropped.iter().zip(crate::schedule::DropReason::ALL) {
            figure.store(counts.count(reason), Ordering::Relaxed);
        }
    }

    pub(super) fn add(figure: &AtomicU64, count: u64) {
        figure.fetch_add(count, Ordering::Relaxed);
    }
}

impl Board {
    /// All monitors by key.
    pub fn views(&self) -> Vec<View> {
        self.read(|content| content.by_key.values().cloned().collect())
    }

    /// What `read` makes of all monitors in the order of their keys, without copying them. Changes wait meanwhile.
    pub fn with_views<T>(&self, read: impl FnOnce(btree_map::Values<'_, String, View>) -> T) -> T {
        self.read(|content| read(content.by_key.values()))
    }

    /// The monitors that a page shows, by key.
    pub fn views_of(&self, page: &PagePlan) -> BTreeMap<String, View> {
        self.read(|content| {
            let keys = page.components().map(|component| &component.key);
            let views = keys.filter_map(|key| content.by_key.get_key_value(key));
            views
                .map(|(key, view)| (key.clone(), view.clone()))
                .collect()
        })
    }

    /// One monitor.
    pub fn view(&self, key: &str) -> Option<View> {
        self.read(|content| content.by_key.get(key).cloned())
    }

    /// The key of a monitor.
    pub fn key(&self, id: MonitorId) -> Option<String> {
        self.read(|content| content.keys.get(&id).cloned())
    }

    /// Whose configuration it is.
    pub fn dialect(&self) -> Option<Dialect> {
        self.read(|content| content.dialect.clone())
    }

    /// Whether metrics are served.
    pub fn has_metrics(&self) -> bool {
        self.read(|content| content.metrics)
    }

    /// What stands beside the slug of a monitor in the URL of a heartbeat.
    pub fn ping_key(&self) -> Option<Secret> {
        self.read(|content| content.ping_key.clone())
    }

    /// Access to the API.
    pub fn tokens(&self) -> Arc<[ApiToken]> {
        self.read(|content| Arc::clone(&content.tokens))
    }

    /// The name of the region of this process.
    pub fn region(&self) -> Arc<str> {
        self.read(|content| Arc::clone(&content.region))
    }

    /// Processes elsewhere that check monitors too.
    pub fn agents(&self) -> Arc<[AgentPlan]> {
        self.read(|content| Arc::clone(&content.agents))
    }

    /// How the processes on the store divide the checks; absent for one that has its store for itself.
    pub fn division(&self) -> Option<Arc<Division>> {
        self.read(|content| content.division.clone())
    }

    /// - `leader`: the process that judges all results.
    pub(super) fn set_division(&self, leader: &str, division: &Division) {
        let division = Division {
            leader: Some(leader.to_owned()),
            shares: division.shares.clone(),
        };
        self.write(|content| content.division = Some(Arc::new(division)));
    }

    /// On-call rotations.
    pub fn rotations(&self) -> Arc<[Arc<OnCallPlan>]> {
        self.read(|content| Arc::clone(&content.rotations))
    }

    /// The receivers of openings, step by step.
    pub fn escalations(&self) -> Arc<[Arc<EscalationPlan>]> {
        self.read(|content| Arc::clone(&content.escalations))
    }

    /// What lists further monitors, and how that goes.
    pub fn discovery(&self) -> Arc<[DiscoveryView]> {
        self.read(|content| Arc::clone(&content.discovery))
    }

    /// Why a definition of the store is not in force; empty if it is.
    pub fn left_out(&self, kind: DefinitionKind, key: &str) -> Vec<String> {
        let place = (kind, key.to_owned());
        self.read(|content| content.left_out.get(&place).cloned().unwrap_or_default())
    }

    pub(super) fn set_left_out(&self, left_out: LeftOut) {
        self.write(|content| content.left_out = left_out);
    }

    /// Notes that monitors of these keys are in force, or gone.
    pub(super) fn fit_monitors<'k>(&self, keys: impl Iterator<Item = &'k String>) {
        self.write(|content| {
            for key in keys {
                let place = (DefinitionKind::Monitor, key.clone());
                content.left_out.remove(&place);
            }
        });
    }

    pub(super) fn set_discovery(&self, views: Vec<DiscoveryView>) {
        self.write(|content| content.discovery = views.into());
    }

    pub(super) fn set_rotations(&self, rotations: Vec<Arc<OnCallPlan>>) {
        self.write(|content| content.rotations = rotations.into());
    }

    pub(super) fn set_escalations(&self, escalations: Vec<Arc<EscalationPlan>>) {
        self.write(|content| content.escalations = escalations.into());
    }

    /// By what means readers of pages may subscribe.
    pub fn subscriptions(&self) -> Option<Arc<SubscriptionPlan>> {
        self.read(|content| content.subscriptions.clone())
    }

    /// When the process ended that ran the checks; absent while one runs them.
    pub fn ended(&self) -> Option<Timestamp> {
        self.read(|content| content.ended)
    }

    pub(super) fn set_ended(&self, ended: Option<Timestamp>) {
        if self.ended() != ended {
            self.write(|content| content.ended = ended);
            self.touch();
        }
    }

    /// Links in notices by which their receivers acknowledge an incident.
    pub fn acknowledge(&self) -> Option<Arc<AcknowledgePlan>> {
        self.read(|content| content.acknowledge.clone())
    }

    /// By which provider members may sign in.
    pub fn oidc(&self) -> Option<Arc<OidcPlan>> {
        self.read(|content| content.oidc.clone())
    }

    /// The last report of an agent.
    pub fn heard(&self, agent: &str) -> Option<Heard> {
        self.read(|content| content.heard.get(agent).cloned())
    }

    /// Whether an agent reports.
    pub fn reports(&self, agent: &str, now: Timestamp) -> bool {
        let heard = self.read(|content| content.heard.get(agent).map(|heard| heard.at));
        heard.is_some_and(|at| now.since(at) < REPORTS_WITHIN)
    }

    /// Notes the last report of an agent.
    pub fn set_heard(&self, agent: &str, heard: Heard) {
        self.write(|content| {
            content.heard.insert(agent.to_owned(), heard);
        });
    }

    /// The name of the region whose results have that number.
    pub fn region_of(&self, number: u16) -> Arc<str> {
        self.read(|content| match content.regions.get(&number) {
            Some(name) => Arc::clone(name),
            None => number.to_string().into(),
        })
    }

    pub(super) fn set_regions(&self, regions: BTreeMap<u16, Arc<str>>) {
        self.write(|content| content.regions = Arc::new(regions));
    }

    /// Against what definitions are compiled.
    pub fn grounds(&self) -> Arc<Grounds> {
        self.read(|content| Arc::clone(&content.grounds))
    }

    /// Access to the API, besides the tokens of the file.
    pub fn access(&self) -> Access {
        self.read(|content| content.access.clone())
    }

    pub(crate) fn set_access(&self, access: Access) {
        self.write(|content| content.access = access);
    }

    /// Channels of notices.
    pub fn channels(&self) -> Arc<[Arc<NotifyPlan>]> {
        self.read(|content| Arc::clone(&content.channels))
    }

    pub(super) fn set_channels(&self, channels: &[Arc<NotifyPlan>]) {
        self.write(|content| content.channels = channels.into());
    }

    /// All maintenance windows, with what they are for.
    pub fn windows(&self) -> Arc<[PlacedWindow]> {
        self.read(|content| Arc::clone(&content.windows))
    }

    /// The status pages.
    pub fn pages(&self) -> Arc<[Arc<PagePlan>]> {
        self.read(|content| Arc::clone(&content.pages))
    }

    /// Counts what changes on pages: health, maintenance, incidents, and the pages themselves.
    pub fn version(&self) -> u64 {
        *self.version.borrow()
    }

    /// Receives each change of [`version`](Self::version).
    pub fn subscribe(&self) -> watch::Receiver<u64> {
        self.version.subscribe()
    }

    /// Notes that pages show something else from now on.
    pub fn touch(&self) {
        self.version.send_modify(|version| *version += 1);
    }

    pub(super) fn settle(&self, plan: &Plan) {
        self.write(|content| {
            content.dialect = Some(plan.dialect.clone());
            content.metrics = plan.metrics;
            content.ping_key.clone_from(&plan.ping_key);
            content.tokens = plan.tokens.as_slice().into();
            content.grounds = Arc::clone(&plan.grounds);
            content.region = plan.region.as_str().into();
            content.subscriptions.clone_from(&plan.subscriptions);
            content.acknowledge.clone_from(&plan.acknowledge);
            content.oidc.clone_from(&plan.oidc);
            content.agents = plan.agents.as_slice().into();
            let agents = &plan.agents;
            content
                .heard
                .retain(|name, _| agents.iter().any(|agent| agent.name == *name));
        });
        self.touch();
    }

    pub(super) fn set_pages(&self, pages: Vec<Arc<PagePlan>>, windows: &[PlacedWindow]) {
        self.write(|content| {
            content.pages = pages.into();
            content.windows = windows.into();
        });
        self.touch();
    }

    pub(super) fn insert(&self, view: View) {
        self.write(|content| {
            let key = view.plan.key.clone();
            content.keys.insert(view.id, key.clone());
            match content.by_key.get_mut(&key) {
                Some(known) => {
                    let (last, counters) = (known.last.take(), std::mem::take(&mut known.counters));
                    *known = View {
                        last,
                        counters,
                        ..view
                    };
                }
                None => {
                    content.by_key.insert(key, view);
                }
            }
        });
    }

    pub(super) fn remove(&self, id: MonitorId) {
        self.write(|content| {
            if let Some(key) = content.keys.remove(&id) {
                content.by_key.remove(&key);
            }
        });
    }

    pub(super) fn change(&self, key: &str, change: impl FnOnce(&mut View)) {
        self.write(|content| {
            if let Some(view) = content.by_key.get_mut(key) {
                change(view);
            }
        });
    }

    fn read<T>(&self, look: impl FnOnce(&Content) -> T) -> T {
        look(&self.content.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn write(&self, change: impl FnOnce(&mut Content)) {
        change(&mut self.content.write().unwrap_or_else(PoisonError::into_inner));
    }
}

impl View {
    pub(super) fn count(&mut self, result: CheckResult) {
        self.counters.results[usize::from(result.status.code())] += 1;
        if let Some(code) = result.code {
            *self.counters.codes.entry(code).or_default() += 1;
        }
        self.counters.connected += u64::from(result.connected);
        self.last = Some(result);
    }
}
