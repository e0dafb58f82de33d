//! The action `monitor` of a route: a monitor that runs for as long as the route is served.

mod seat;

use std::path::PathBuf;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use plimsoll_server::config::{Mounted, Value, as_text};
use plimsoll_server::{Action, MakeAction, Mount, Notice, Notices, Severity, WorkerContext};
use plimsoll_wire::WatchedFiles;
use plimsoll_wire::tls::{NamePermission, OnDemandCertificates};
use tokio::sync::watch;
use tower_service::Service as _;

use crate::api::action::seat::HostNames;
use crate::config::{LoadError, Plan, StorePlan, load_with};
use crate::engine::StartError;
use crate::probe::SuppliedKinds;
use crate::store::{
    ServerStore, ServerUrls, SqliteOptions, SqlitePath, SqliteStore, Store, StoreError, Vault,
};

pub use crate::api::action::seat::{Report, Seat};

/// How often the files of a configuration are looked at.
const LOOK: Duration = Duration::from_secs(1);

/// Gives the values of variables that a configuration names.
pub type Environment = fn(&str) -> Option<String>;

/// Compiles `monitor = "FILE"` of a route.
///
/// Every problem of the file is reported at the value. The monitor starts when the route is first served, survives
/// reloads of the server, and loads its file again when that changes.
pub fn compile(
    value: &Value<'_>,
    mounted: &Mounted<'_>,
    environment: Environment,
    supplied: SuppliedKinds,
) -> Option<Arc<MakeAction>> {
    let path = mounted.directory.join(as_text(value)?);
    let plan = match load_with(&path, &environment, supplied) {
        Ok(plan) => plan,
        Err(LoadError::Problems { path, problems }) => {
            for problem in problems {
                let place = format!("{path}:{}:{}: {problem}", problem.line, problem.column);
                value.wrong_with::<()>(place, problem.hint.clone());
            }
            return None;
        }
        Err(error) => return value.wrong(error),
    };
    let identity = format!("monitor {}", path.display());
    let notices = mounted.notices.clone();
    let service = mounted.states.state(&identity, || {
        Service::new(path, (environment, supplied), notices, mounted.on_demand)
    });
    let plan = Mutex::new(Some(plan));
    Some(Arc::new(move |context: &WorkerContext| {
        // The first worker of a generation brings its plan. The others wait for it: until it has started the monitor there is none
        // to serve, and a worker keeps the routes that it begins with.
        let mut plan = plan.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(plan) = plan.take() {
            service.apply(plan);
        }
        drop(plan);
        let (drain, leaving) = (context.drain().begun(), Arc::downgrade(&service));
        context.spawn(async move {
            drain.await;
            if let Some(service) = leaving.upgrade() {
                service.leave();
            }
        });
        Rc::new(Mounting {
            mount: Mount::new(service.router()),
            _service: Arc::clone(&service),
        }) as Rc<dyn Action>
    }))
}

/// Keeps the service for as long as it is mounted.
struct Mounting {
    mount: Mount<Router>,
    _service: Arc<Service>,
}

impl Action for Mounting {
    fn handle(&self, request: &plimsoll_server::Request<'_>) -> plimsoll_server::Answer {
        self.mount.handle(request)
    }
}

/// A monitor with the file that it is configured by; shared by all workers and generations.
struct Service {
    shared: Arc<Shared>,
    /// Certificates are ordered for the hosts of its pages.
    _permission: NamePermission,
}

struct Shared {
    path: PathBuf,
    /// The environment, and the kinds of probes that the program supplies.
    brought: (Environment, SuppliedKinds),
    notices: Notices,
    running: Mutex<Option<Running>>,
    /// The plan to start with once another process has left the store.
    waiting: Mutex<Option<Plan>>,
    /// The hosts of its pages, once it runs.
    hosts: OnceLock<HostNames>,
    /// The routes, once there are any.
    router: watch::Sender<Option<Router>>,
}

struct Running {
    seat: Seat,
    store: StorePlan,
    organisation: String,
    watched: WatchedFiles,
}

impl Service {
    fn new(
        path: PathBuf,
        brought: (Environment, SuppliedKinds),
        notices: Notices,
        on_demand: &OnDemandCertificates,
    ) -> Self {
        let shared = Arc::new(Shared {
            path,
            brought,
            notices,
            running: Mutex::default(),
            waiting: Mutex::default(),
            hosts: OnceLock::new(),
            router: watch::Sender::new(None),
        });
        let owner = Arc::downgrade(&shared);
        let permission = on_demand.permit(move |name| {
            let owner = owner.upgrade();
            let hosts = owner.as_ref().and_then(|owner| owner.hosts.get());
            hosts.is_some_and(|hosts| hosts.has(name))
        });
        Self {
            shared,
            _permission: permission,
        }
    }

    fn apply(&self, plan: Plan) {
        let is_first = self.shared.apply(plan);
        if is_first {
            let shared = Arc::downgrade(&self.shared);
            let watching = move || {
                loop {
                    let is_waiting = shared
                        .upgrade()
                        .is_some_and(|shared| shared.start_waiting());
                    if !is_waiting {
                        thread::park_timeout(LOOK);
                    }
                    let Some(shared) = shared.upgrade() else {
                        return;
                    };
                    shared.look();
                }
            };
            let spawned = thread::Builder::new()
                .name("monitor-files".to_owned())
                .spawn(watching);
            if let Err(error) = spawned {
                self.shared.report(
                    Severity::Warning,
                    &format!("changes of the file are not seen: {error}"),
                );
            }
        }
    }

    /// Ends the checks, since the server drains: a process that takes over may have the store.
    fn leave(&self) {
        self.shared.waiting().take();
        let shared = Arc::clone(&self.shared);
        let leaving = move || {
            if let Some(running) = &*shared.running() {
                running.seat.leave();
            }
        };
        // The end of the checks waits for the store, and workers still respond meanwhile.
        let spawned = thread::Builder::new()
            .name("monitor-end".to_owned())
            .spawn(leaving);
        if let Err(error) = spawned {
            let message = format!("the store stays in use until the end of the drain: {error}");
            self.shared.report(Severity::Warning, &message);
        }
    }

    fn router(&self) -> Router {
        match &*self.shared.running() {
            Some(running) => running.seat.router(),
            None if self.shared.waiting().is_some() => {
                let router = self.shared.router.subscribe();
                Router::new()
                    .fallback(move |request: Request| once_started(router.clone(), request))
            }
            None => Router::new().fallback(|| async {
                (
                    StatusCode::SERVICE_UNAVAILABLE,
                    "the monitor could not start; see its log\n",
                )
            }),
        }
    }
}

/// How long a request waits for another process to leave the store.
const PATIENCE: Duration = Duration::from_secs(30);

async fn once_started(mut router: watch::Receiver<Option<Router>>, request: Request) -> Response {
    let started = router.wait_for(Option::is_some);
    let started = tokio::time::timeout(PATIENCE, started).await;
    let started = started.ok().and_then(Result::ok);
    match started.and_then(|router| router.clone()) {
        Some(mut router) => {
            let Ok(response) = router.call(request).await;
            response
        }
        None => (
            StatusCode::SERVICE_UNAVAILABLE,
            [("retry-after", "5")],
            "another process uses the store of this monitor\n",
        )
            .into_response(),
    }
}

impl Shared {
    fn waiting(&self) -> MutexGuard<'_, Option<Plan>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tries to start with the plan that waits for the store, for about a second; whether it still waits.
    fn start_waiting(&self) -> bool {
        let Some(plan) = self.waiting().clone() else {
            return false;
        };
        self.apply(plan);
        self.waiting().is_some()
    }

    fn running(&self) -> MutexGuard<'_, Option<Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn report(&self, severity: Severity, message: &str) {
        let shown = self.path.display().to_string();
        self.notices
            .report(&Notice::new(severity, message).about(shown));
    }

    /// Starts the monitor, or gives it another plan; whether the files are to be watched from now on.
    fn apply(&self, plan: Plan) -> bool {
        let has_waited = self.waiting().is_some();
        if !has_waited {
            for warning in &plan.warnings {
                self.report(
                    Severity::Warning,
                    &format!("{}: {}", warning.place, warning.message),
                );
            }
        }
        let mut running = self.running();
        if let Some(running) = &mut *running {
            if (&plan.store, &plan.organisation) != (&running.store, &running.organisation) {
                let message = "another store or organisation is used after a restart";
                self.report(Severity::Warning, message);
            }
            running.watched = WatchedFiles::new(plan.files.clone());
            running.seat.reload(plan);
            return false;
        }
        let (store, organisation) = (plan.store.clone(), plan.organisation.clone());
        let watched = WatchedFiles::new(plan.files.clone());
        match start(plan.clone(), &self.notices) {
            Ok(seat) => {
                self.waiting().take();
                self.hosts.get_or_init(|| seat.host_names());
                self.router.send_replace(Some(seat.router()));
                *running = Some(Running {
                    seat,
                    store,
                    organisation,
                    watched,
                });
                !has_waited
            }
            Err(StartError::Store(StoreError::InUse(path))) => {
                let mut waiting = self.waiting();
                drop(running);
                // It may have left meanwhile, since the server drains.
                if !has_waited || waiting.is_some() {
                    *waiting = Some(plan);
                }
                drop(waiting);
                if !has_waited {
                    let shown = path.display();
                    let message = format!("another process uses {shown}; waiting for it to end");
                    self.report(Severity::Note, &message);
                }
                !has_waited
            }
            Err(error) => {
                drop(running);
                self.waiting().take();
                self.report(Severity::Error, &error.to_string());
                false
            }
        }
    }

    /// Loads the file again if it has changed; an invalid one changes nothing.
    fn look(&self) {
        let has_changed = self
            .running()
            .as_mut()
            .is_some_and(|running| running.watched.has_changed());
        if !has_changed {
            return;
        }
        let (environment, supplied) = self.brought;
        match load_with(&self.path, &environment, supplied) {
            Ok(plan) => {
                self.apply(plan);
                self.report(Severity::Note, "the configuration was loaded again");
            }
            Err(LoadError::Problems { path, problems }) => {
                for problem in problems {
                    let place = format!("{path}:{}:{}: {problem}", problem.line, problem.column);
                    self.report(Severity::Error, &place);
                }
                self.report(Severity::Error, "the configuration stays as it was");
            }
            Err(error) => self.report(
                Severity::Error,
                &format!("{error}; the configuration stays as it was"),
            ),
        }
    }
}

/// Opens the store of a plan, and starts the monitor or waits for the lease.
fn start(plan: Plan, notices: &Notices) -> Result<Seat, StartError> {
    let notices = notices.clone();
    let report = move |message: &str| notices.report(&Notice::new(Severity::Note, message));
    Seat::take(plan, Arc::new(report))
}

/// Opens the store of a plan.
pub fn open(store: &StorePlan) -> Result<Arc<dyn Store>, StoreError> {
    let sqlite = |path| {
        let store = SqliteStore::open(&path, SqliteOptions::default())?;
        Ok(Arc::new(store) as Arc<dyn Store>)
    };
    match store {
        StorePlan::Memory => sqlite(SqlitePath::Memory),
        StorePlan::Sqlite(path) => sqlite(SqlitePath::File(path.clone())),
        StorePlan::Servers(urls, options) => {
            Ok(Arc::new(ServerStore::open(urls.clone(), *options)?))
        }
    }
}

/// Opens the store of a plan, with its keys.
pub fn open_with_keys(plan: &Plan) -> Result<Arc<dyn Store>, StoreError> {
    let store = open(&plan.store)?;
    store.use_vault(Arc::new(Vault::new(&plan.keys)));
    Ok(store)
}

/// Opens the store of a plan for a few changes, also while a monitor uses it.
pub(crate) fn open_beside(store: &StorePlan) -> Result<Arc<dyn Store>, StoreError> {
    match store {
        StorePlan::Sqlite(path) => Ok(Arc::new(SqliteStore::open_beside(path)?)),
        StorePlan::Servers(urls, options) => {
            let urls = ServerUrls {
                spill: None,
                ..urls.clone()
            };
            Ok(Arc::new(ServerStore::open(urls, *options)?))
        }
        StorePlan::Memory => open(store),
    }
}
