//! The action `monitor` of a route: a monitor that runs for as long as the route is served.

mod leased_monitor;

use std::path::PathBuf;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use plimsoll_monitor::config::{LoadError, Plan, StorePlan, load_with};
use plimsoll_monitor::engine::StartError;
use plimsoll_monitor::probe::SuppliedKinds;
use plimsoll_monitor::store::StoreError;
use plimsoll_server::config::{Mounted, OutsideSandbox, Value};
use plimsoll_server::{Action, MakeAction, Mount, Notice, Notices, Severity, WorkerContext};
use plimsoll_wire::WatchedFiles;
use plimsoll_wire::tls::{NamePermission, OnDemandCertificates};
use tokio::sync::watch;
use tower_service::Service as _;

use crate::action::leased_monitor::HostNames;

pub use crate::action::leased_monitor::{LeasedMonitor, Report};

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
    let path = mounted.paths.read(value)?;
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
    let named = plan.named_paths();
    let mut named = named.iter();
    if let Some(outside) = named.find_map(|it| mounted.paths.note(&it.path, it.usage).err()) {
        return value.wrong_with(outside, Some(OutsideSandbox::HINT.to_owned()));
    }
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
    /// Locked for moments only, since every worker looks at it: a monitor starts and ends meanwhile without it.
    running: Mutex<Option<Running>>,
    /// The plan to start with once another process has left the store.
    waiting: Mutex<Option<Arc<Plan>>>,
    /// Whether the server drains, so that the store belongs to the next process.
    has_left: AtomicBool,
    /// The hosts of its pages, once it runs.
    hosts: OnceLock<HostNames>,
    /// The routes, once there are any.
    router: watch::Sender<Option<Router>>,
}

struct Running {
    leased: Arc<LeasedMonitor>,
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
            has_left: AtomicBool::new(false),
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
        let is_first = self.shared.apply(Arc::new(plan));
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
        self.shared.has_left.store(true, Ordering::SeqCst);
        self.shared.waiting().take();
        let shared = Arc::clone(&self.shared);
        let leaving = move || shared.leave();
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
            Some(running) => running.leased.router(),
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
    fn waiting(&self) -> MutexGuard<'_, Option<Arc<Plan>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tries to start with the plan that waits for the store, for about a second; whether it still waits.
    fn start_waiting(&self) -> bool {
        let Some(plan) = self.waiting().clone() else {
            return false;
        };
        match start(Plan::clone(&plan), &self.notices) {
            Ok(leased) => match self.waiting().take() {
                Some(latest) if Arc::ptr_eq(&latest, &plan) => self.serve(&plan, leased),
                Some(latest) => {
                    leased.reload(Plan::clone(&latest));
                    self.serve(&latest, leased);
                }
                // The server drains: the next process may have it.
                None => drop(leased),
            },
            Err(StartError::Store(StoreError::InUse(_))) => {}
            Err(error) => {
                self.waiting().take();
                self.report(Severity::Error, &error.to_string());
            }
        }
        self.waiting().is_some()
    }

    /// Has requests answered by a monitor that was started.
    fn serve(&self, plan: &Plan, leased: LeasedMonitor) {
        self.hosts.get_or_init(|| leased.host_names());
        let router = leased.router();
        *self.running() = Some(Running {
            leased: Arc::new(leased),
            store: plan.store.clone(),
            organisation: plan.organisation.clone(),
            watched: WatchedFiles::new(plan.files.clone()),
        });
        self.router.send_replace(Some(router));
        if self.has_left.load(Ordering::SeqCst) {
            self.leave();
        }
    }

    /// Ends the checks and gives the store to the next process.
    fn leave(&self) {
        let running = self.running();
        let leased = running.as_ref().map(|running| Arc::clone(&running.leased));
        drop(running);
        if let Some(leased) = leased {
            leased.leave();
        }
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
    fn apply(&self, plan: Arc<Plan>) -> bool {
        for warning in &plan.warnings {
            self.report(
                Severity::Warning,
                &format!("{}: {}", warning.place, warning.message),
            );
        }
        if let Some(running) = &mut *self.running() {
            if (&plan.store, &plan.organisation) != (&running.store, &running.organisation) {
                let message = "another store or organisation is used after a restart";
                self.report(Severity::Warning, message);
            }
            running.watched = WatchedFiles::new(plan.files.clone());
            running.leased.reload(Plan::clone(&plan));
            return false;
        }
        if let Some(waiting) = &mut *self.waiting() {
            *waiting = plan;
            return false;
        }
        match start(Plan::clone(&plan), &self.notices) {
            Ok(leased) => {
                self.serve(&plan, leased);
                true
            }
            Err(StartError::Store(StoreError::InUse(path))) => {
                *self.waiting() = Some(plan);
                let shown = path.display();
                let message = format!("another process uses {shown}; waiting for it to end");
                self.report(Severity::Note, &message);
                true
            }
            Err(error) => {
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
                self.apply(Arc::new(plan));
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
fn start(plan: Plan, notices: &Notices) -> Result<LeasedMonitor, StartError> {
    let notices = notices.clone();
    let report = move |message: &str| notices.report(&Notice::new(Severity::Note, message));
    LeasedMonitor::start(plan, Arc::new(report))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use plimsoll_testkit::eventually;

    use super::*;
    use plimsoll_monitor::store::{SqliteOptions, SqlitePath, SqliteStore};

    #[test]
    fn workers_get_their_routes_while_another_process_has_the_store() {
        const WORKERS: usize = 200;

        let folder = tempfile::TempDir::new().unwrap();
        let file = SqlitePath::File(folder.path().join("a.db"));
        let open = || SqliteStore::open(&file, SqliteOptions::default());
        let held = open().unwrap();
        let path = folder.path().join("monitor.toml");
        std::fs::write(&path, "store = \"a.db\"\n").unwrap();
        let brought: (Environment, SuppliedKinds) = (|_| None, &[]);
        let plan = load_with(&path, &brought.0, brought.1).unwrap();
        let certificates = OnDemandCertificates::default();
        let service = Service::new(path, brought, Notices::default(), &certificates);
        service.apply(plan);
        let served = AtomicUsize::new(0);
        thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..WORKERS {
                    drop(service.router());
                    served.fetch_add(1, Ordering::SeqCst);
                }
            });
            eventually(|| served.load(Ordering::SeqCst) == WORKERS);
        });
        assert!(service.shared.running().is_none());
        drop(held);
        eventually(|| service.shared.running().is_some());
        // The next process gets it as soon as this one drains.
        service.leave();
        eventually(|| open().is_ok());
    }
}
