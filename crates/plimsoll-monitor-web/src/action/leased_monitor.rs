//! A monitor of this process: it runs at once on a store that one process has for itself, and while it has the lease on a store
//! that several processes share.

mod competition;

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, Weak};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use plimsoll_model::Clock;
use plimsoll_monitor::config::{Plan, StorePlan, mask};
use plimsoll_monitor::engine::standby::{Checks, Standby};
use plimsoll_monitor::engine::{Board, Handle, Monitor, StartError};
use plimsoll_monitor::store::shards::Division;
use plimsoll_monitor::store::{DefinitionKind, Store, StoreError};
use plimsoll_monitor::time::Timestamp;
use plimsoll_wire::SystemClock;
use tokio::sync::{oneshot, watch};
use tower_service::Service as _;

use self::competition::machine;
use crate::page::{Pages, subscribe};
use crate::request::is_for_readers;
use crate::router::router_with;

/// Receives what an operator should see.
pub type Report = Arc<dyn Fn(&str) + Send + Sync>;

/// A monitor, or a standby for one. It stops when this is dropped.
pub struct LeasedMonitor {
    shared: Arc<Shared>,
    /// Competes for the lease, if there is one.
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    /// Once it could be reached.
    store: OnceLock<Arc<dyn Store>>,
    report: Report,
    /// The name under which this process holds the lease.
    holder: String,
    /// Whose checks it is about.
    organisation: String,
    hosts: HostNames,
    state: Mutex<State>,
    /// Changes once there are pages to serve.
    has_pages: watch::Sender<()>,
}

/// The host names of the status pages of a running monitor; clones are the same.
#[derive(Debug, Clone, Default)]
pub(crate) struct HostNames(Arc<RwLock<Option<Arc<Board>>>>);

impl HostNames {
    /// Whether a page is at `/` of that host.
    pub(crate) fn has(&self, name: &str) -> bool {
        let board = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let pages = board.as_ref().map(|board| board.pages());
        let pages = pages.iter().flat_map(|pages| pages.iter());
        pages
            .filter_map(|page| page.host.as_deref())
            .any(|host| host == name)
    }

    fn set(&self, board: Option<Arc<Board>>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = board;
    }
}

/// Locked for moments only, since requests look at it: nothing starts, ends or waits meanwhile.
struct State {
    plan: Plan,
    /// How often another plan was given.
    reloads: u64,
    running: Option<Running>,
    /// The routes of the monitor that ran here last. Its pages stay as they are, with their age, until some process runs it
    /// again.
    last: Option<Router>,
    /// The pages of a process that waits for the lease.
    standing_by: Option<StandingBy>,
    /// Whether the store that holds the lease cannot be reached.
    is_away: bool,
    is_over: bool,
}

struct Running {
    /// One for all workers, so that they have the same snapshots of pages.
    router: Router,
    monitor: Monitor,
    /// Absent for a store that does not go away.
    _preparing: Option<Background>,
}

/// Work on a thread of its own, until this is dropped.
struct Background(Option<oneshot::Sender<()>>, Option<JoinHandle<()>>);

impl Background {
    /// - `failed`: receives why the system has no thread for it.
    fn spawn(
        name: &str,
        work: impl Future<Output = ()> + Send + 'static,
        failed: impl FnOnce(std::io::Error),
    ) -> Self {
        let (stop, stopped) = oneshot::channel::<()>();
        let until_stopped = async move {
            tokio::select! {
                _ = stopped => {}
                () = work => {}
            }
        };
        let spawned = thread::Builder::new().name(name.to_owned()).spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_time()
                .build();
            if let Ok(runtime) = runtime {
                runtime.block_on(until_stopped);
            }
        });
        match spawned {
            Ok(thread) => Self(Some(stop), Some(thread)),
            Err(error) => {
                failed(error);
                Self(None, None)
            }
        }
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.0 = None;
        if let Some(thread) = self.1.take() {
            thread.join().ok();
        }
    }
}

/// Prepares the pages of a monitor.
async fn prepare_pages(handle: Handle, pages: Arc<Pages>) {
    let mut changes = handle.board.subscribe();
    loop {
        pages.prepare(&handle).await;
        changes.changed().await.ok();
        tokio::time::sleep(REST).await;
    }
}

/// What a process serves while another one runs the checks.
struct StandingBy {
    /// Once the store was read.
    serves: Option<Router>,
    /// What there is to check.
    checks: watch::Receiver<Checks>,
    _reading: Background,
}

/// Reads what the other process writes, and publishes its pages, and what there is to check.
async fn stand_by(
    owner: Weak<Shared>,
    organisation: String,
    store: Arc<dyn Store>,
    checks: watch::Sender<Checks>,
) {
    let clock = SystemClock;
    let origin = clock.now();
    let mut standby: Option<Standby> = None;
    let pages = Arc::<Pages>::default();
    loop {
        let Some((plan, number)) = owner.upgrade().map(|owner| {
            let state = owner.state();
            (state.plan.clone(), state.reloads)
        }) else {
            return;
        };
        let elapsed = clock.now().saturating_duration_since(origin);
        let now = (Timestamp::from_system(clock.wall()), elapsed);
        let refreshed = async {
            let standby = match &mut standby {
                Some(standby) => standby,
                none => none.insert(Standby::new(&organisation, Arc::clone(&store)).await?),
            };
            standby.refresh(&plan, number, now).await?;
            checks.send_replace(standby.checks(&plan));
            pages.prepare(standby.handle()).await;
            Ok::<_, StoreError>(standby.handle().clone())
        };
        // While the store is away the pages stay as they are; the process that competes for the lease reports that.
        if let Ok(handle) = refreshed.await
            && let Some(owner) = owner.upgrade()
        {
            owner.publish_standby(&handle, &pages);
        }
        let took = clock.now().saturating_duration_since(origin + elapsed);
        tokio::time::sleep(READ_EVERY.max(took * SPARSENESS)).await;
    }
}

impl LeasedMonitor {
    /// Opens the store of a plan, and starts the monitor or waits for the lease; for a store on servers that cannot be reached
    /// at present it waits too.
    pub fn start(plan: Plan, report: Report) -> Result<Self, StartError> {
        let is_shared = matches!(plan.store, StorePlan::Servers(..));
        let store = match plan.open_store() {
            Ok(store) => OnceLock::from(store),
            Err(error @ StoreError::Away(_)) if is_shared => {
                report(&format!("{error}; this process waits for it"));
                OnceLock::new()
            }
            Err(error) => return Err(error.into()),
        };
        let random = fastrand::u64(..);
        let shared = Arc::new(Shared {
            report,
            holder: format!("{}-{}-{random:016x}", machine(), std::process::id()),
            organisation: plan.organisation.clone(),
            hosts: HostNames::default(),
            state: Mutex::new(State {
                plan,
                reloads: 0,
                running: None,
                last: None,
                standing_by: None,
                is_away: store.get().is_none(),
                is_over: false,
            }),
            store,
            has_pages: watch::Sender::new(()),
        });
        let thread = if is_shared {
            let competing = Arc::clone(&shared);
            let spawned = thread::Builder::new()
                .name("monitor-lease".to_owned())
                .spawn(move || competing.compete());
            Some(spawned.map_err(StartError::Thread)?)
        } else {
            if let Some(store) = shared.store.get() {
                shared.start(store, None)?;
            }
            None
        };
        Ok(Self { shared, thread })
    }

    /// All routes of the monitor. While another process runs it: its status pages as the store has them, with their forms, and
    /// 503 for the rest.
    pub fn router(&self) -> Router {
        if self.thread.is_none()
            && let Some(running) = &self.shared.state().running
        {
            return running.router.clone();
        }
        let shared = Arc::clone(&self.shared);
        Router::new().fallback(move |request: Request| answer(Arc::clone(&shared), request))
    }

    /// Ends the checks and gives the store to the process that comes next. What was found stays readable. A process that has a
    /// lease keeps it until this is dropped.
    pub fn leave(&self) {
        if self.thread.is_some() {
            return;
        }
        // Dropped without the lock: its end waits for the store.
        let running = self.shared.state().running.take();
        drop(running);
        if let Some(store) = self.shared.store.get() {
            store.release();
        }
    }

    /// The host names of its status pages, none until they are known.
    pub(crate) fn host_names(&self) -> HostNames {
        self.shared.hosts.clone()
    }

    /// Whether this process runs the checks.
    pub fn leads(&self) -> bool {
        self.shared.state().running.is_some()
    }

    /// Applies another plan, soon.
    pub fn reload(&self, plan: Plan) {
        let mut state = self.shared.state();
        state.plan = plan.clone();
        state.reloads += 1;
        if let Some(running) = &state.running
            && let Err(error) = running.monitor.handle().reload_soon(plan)
        {
            (self.shared.report)(&format!("cannot apply the configuration: {error}"));
        }
    }
}

impl Drop for LeasedMonitor {
    fn drop(&mut self) {
        self.shared.state().is_over = true;
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            thread.join().ok();
        }
        let (running, standing_by) = {
            let mut state = self.shared.state();
            (state.running.take(), state.standing_by.take())
        };
        drop((running, standing_by));
    }
}

impl std::fmt::Debug for LeasedMonitor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LeasedMonitor").finish_non_exhaustive()
    }
}

async fn answer(shared: Arc<Shared>, request: Request) -> Response {
    let is_for_readers = is_for_readers(request.uri().path());
    let mut router = shared.serving(is_for_readers);
    if router.is_none() && is_for_readers {
        // One that has just started has read nothing yet.
        let reading = shared.once_read();
        router = tokio::time::timeout(READ_WITHIN, reading)
            .await
            .ok()
            .flatten();
    }
    if let Some(mut router) = router {
        let Ok(response) = router.call(request).await;
        return response;
    }
    let why = if shared.state().is_away {
        "the store of this monitor cannot be reached; nothing is checked until it is back"
    } else {
        "another process runs this monitor; this one takes over when that ends"
    };
    let retry = [("retry-after", "5")];
    let status = StatusCode::SERVICE_UNAVAILABLE;
    if request.uri().path() == "/health" {
        let json = [("content-type", "application/json")];
        let health = serde_json::json!({ "status": "DOWN", "message": why });
        return (status, retry, json, health.to_string()).into_response();
    }
    (status, retry, format!("{why}\n")).into_response()
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The routes that serve a request, if there are any.
    fn serving(&self, is_for_readers: bool) -> Option<Router> {
        let state = self.state();
        if let Some(running) = &state.running {
            return Some(running.router.clone());
        }
        let standing_by = state.standing_by.as_ref();
        let standing_by = standing_by.and_then(|it| it.serves.clone());
        let pages = state.last.clone().or(standing_by);
        pages.filter(|_| is_for_readers)
    }

    /// The routes of pages, once the store was read; nothing while it is away.
    async fn once_read(&self) -> Option<Router> {
        let mut changes = self.has_pages.subscribe();
        loop {
            if let Some(router) = self.serving(true) {
                return Some(router);
            }
            if self.state().is_away || changes.changed().await.is_err() {
                return None;
            }
        }
    }

    /// Starts the monitor. Requests are answered meanwhile as before: it may read for a while what the last process left.
    ///
    /// - `division`: with other processes, if they take part in the checks.
    fn start(&self, store: &Arc<dyn Store>, division: Option<&Division>) -> Result<(), StartError> {
        let (plan, reloads) = {
            let state = self.state();
            (state.plan.clone(), state.reloads)
        };
        let warns = plan.keys.is_empty() && plan.store != StorePlan::Memory;
        let is_shared = matches!(plan.store, StorePlan::Servers(..));
        let (store, report) = (Arc::clone(store), Arc::clone(&self.report));
        let division = division.map(|division| (self.holder.clone(), division.clone()));
        let monitor = Monitor::start_sharing(plan, store, report, &subscribe::TASKS, division)?;
        if warns && let Some(warning) = credentials_in_clear(monitor.handle()) {
            (self.report)(&warning);
        }
        self.hosts.set(Some(Arc::clone(&monitor.handle().board)));
        let pages = Arc::<Pages>::default();
        let handle = monitor.handle().clone();
        let preparing = is_shared.then(|| {
            let preparing = prepare_pages(handle, Arc::clone(&pages));
            Background::spawn("monitor-pages", preparing, |error| {
                (self.report)(&format!("pages are only made when they are read: {error}"));
            })
        });
        let mut state = self.state();
        if state.reloads != reloads
            && let Err(error) = monitor.handle().reload_soon(state.plan.clone())
        {
            (self.report)(&format!("cannot apply the configuration: {error}"));
        }
        state.running = Some(Running {
            router: router_with(monitor.handle().clone(), pages),
            monitor,
            _preparing: preparing,
        });
        state.last = None;
        drop(state);
        self.has_pages.send_replace(());
        Ok(())
    }

    /// Tries to open the store until it can be, or this is dropped.
    fn reach(&self) -> Option<&Arc<dyn Store>> {
        let mut said = String::new();
        while !self.state().is_over {
            if let Some(store) = self.store.get() {
                return Some(store);
            }
            let plan = self.state().plan.clone();
            match plan.open_store() {
                Ok(store) => {
                    self.state().is_away = false;
                    (self.report)("the store can be reached");
                    return Some(self.store.get_or_init(|| store));
                }
                Err(error) => {
                    let error = error.to_string();
                    if error != said && !said.is_empty() {
                        (self.report)(&format!("{error}; this process waits for it"));
                    }
                    said = error;
                }
            }
            thread::park_timeout(RETRY);
        }
        None
    }

    /// Has requests for pages answered by what the store has, unless this process runs the checks.
    fn publish_standby(&self, handle: &Handle, pages: &Arc<Pages>) {
        let mut state = self.state();
        if state.running.is_some() {
            return;
        }
        let Some(standing_by) = &mut state.standing_by else {
            return;
        };
        if standing_by.serves.is_none() {
            let router = router_with(handle.clone(), Arc::clone(pages));
            standing_by.serves = Some(router);
            self.hosts.set(Some(Arc::clone(&handle.board)));
        }
        // What this process knew is older.
        state.last = None;
        drop(state);
        self.has_pages.send_replace(());
    }
}

/// A warning if definitions in a store without keys hold credentials.
fn credentials_in_clear(handle: &Handle) -> Option<String> {
    let counted = async {
        let of_kind = |kind| handle.store.definitions(handle.org, kind);
        let monitors = of_kind(DefinitionKind::Monitor).await.ok()?;
        let with_credentials = monitors.iter().filter(|(definition, _)| {
            let table = toml::from_str(&definition.text);
            table.is_ok_and(|table| mask::has_credentials(&table))
        });
        let channels = of_kind(DefinitionKind::Channel).await.ok()?;
        Some((with_credentials.count(), channels.len()))
    };
    // A worker that starts the monitor has a runtime already, within which no other one may block.
    let found = thread::scope(|scope| {
        let counting = scope.spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_time()
                .build()
                .ok()?;
            runtime.block_on(counted)
        });
        counting.join().ok().flatten()
    });
    let (monitors, channels) = found.filter(|found| *found != (0, 0))?;
    Some(format!(
        "the store holds credentials in clear (monitors: {monitors}, channels: {channels}); \
         give [secrets] a key to seal them"
    ))
}

/// Between two attempts to reach the store.
const RETRY: Duration = Duration::from_secs(1);

/// How long a request for a page waits for a process that has just started.
const READ_WITHIN: Duration = Duration::from_secs(5);

/// How often a standby reads what the process that runs the checks has written.
const READ_EVERY: Duration = Duration::from_secs(2);

/// How much longer than a look a standby rests at least: it reads all monitors, which may be very many.
const SPARSENESS: u32 = 9;

/// Between two looks for pages that have no snapshot, at least.
const REST: Duration = Duration::from_secs(1);
