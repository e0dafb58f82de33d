//! The action `monitor` of a route: a monitor that runs for as long as the route is served.

use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use axum::Router;
use http::StatusCode;
use plimsoll_server::config::{Mounted, Value, as_text};
use plimsoll_server::{Action, MakeAction, Mount, Notice, Notices, Severity, WorkerContext};
use plimsoll_wire::WatchedFiles;

use crate::api;
use crate::config::{LoadError, Plan, StorePlan, load};
use crate::engine::{Monitor, StartError};
use crate::store::{SqliteOptions, SqlitePath, SqliteStore, StoreError};

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
) -> Option<Arc<MakeAction>> {
    let path = mounted.directory.join(as_text(value)?);
    let plan = match load(&path, &environment) {
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
    let service = mounted
        .states
        .state(&identity, || Service::new(path, environment, notices));
    let plan = Mutex::new(Some(plan));
    Some(Arc::new(move |_: &WorkerContext| {
        // The first worker of a generation brings its plan.
        let plan = plan.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(plan) = plan {
            service.apply(plan);
        }
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
}

struct Shared {
    path: PathBuf,
    environment: Environment,
    notices: Notices,
    running: Mutex<Option<Running>>,
}

struct Running {
    monitor: Monitor,
    /// One for all workers, so that they have the same snapshots of pages.
    router: Router,
    store: StorePlan,
    watched: WatchedFiles,
}

impl Service {
    fn new(path: PathBuf, environment: Environment, notices: Notices) -> Self {
        Self {
            shared: Arc::new(Shared {
                path,
                environment,
                notices,
                running: Mutex::default(),
            }),
        }
    }

    fn apply(&self, plan: Plan) {
        let is_first = self.shared.apply(plan);
        if is_first {
            let shared = Arc::downgrade(&self.shared);
            let watching = move || {
                loop {
                    thread::park_timeout(LOOK);
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

    fn router(&self) -> Router {
        match &*self.shared.running() {
            Some(running) => running.router.clone(),
            None => Router::new().fallback(|| async {
                (
                    StatusCode::SERVICE_UNAVAILABLE,
                    "the monitor could not start; see its log\n",
                )
            }),
        }
    }
}

impl Shared {
    fn running(&self) -> MutexGuard<'_, Option<Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn report(&self, severity: Severity, message: &str) {
        let shown = self.path.display().to_string();
        self.notices
            .report(&Notice::new(severity, message).about(shown));
    }

    /// Starts the monitor, or gives it another plan; whether it was started.
    fn apply(&self, plan: Plan) -> bool {
        for warning in &plan.warnings {
            self.report(
                Severity::Warning,
                &format!("{}: {}", warning.place, warning.message),
            );
        }
        let mut running = self.running();
        if let Some(running) = &mut *running {
            if plan.store != running.store {
                self.report(Severity::Warning, "another store is used after a restart");
            }
            running.watched = WatchedFiles::new(plan.files.clone());
            if let Err(error) = running.monitor.handle().reload_soon(plan) {
                self.report(
                    Severity::Error,
                    &format!("cannot apply the configuration: {error}"),
                );
            }
            return false;
        }
        let (store, watched) = (plan.store.clone(), WatchedFiles::new(plan.files.clone()));
        match start(plan, &self.notices) {
            Ok(monitor) => {
                *running = Some(Running {
                    router: api::router(monitor.handle().clone()),
                    monitor,
                    store,
                    watched,
                });
                true
            }
            Err(error) => {
                drop(running);
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
        match load(&self.path, &self.environment) {
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

/// Opens the store of a plan and starts the monitor.
fn start(plan: Plan, notices: &Notices) -> Result<Monitor, StartError> {
    let store = open(&plan.store)?;
    let notices = notices.clone();
    let notice = move |message: &str| notices.report(&Notice::new(Severity::Note, message));
    Monitor::start(plan, Arc::new(store), Arc::new(notice))
}

/// Opens the store of a plan.
pub fn open(store: &StorePlan) -> Result<SqliteStore, StoreError> {
    let path = match store {
        StorePlan::Memory => SqlitePath::Memory,
        StorePlan::Sqlite(path) => SqlitePath::File(path.clone()),
    };
    SqliteStore::open(&path, SqliteOptions::default())
}

/// The store of a configuration, for commands that work on it.
pub fn store_of(path: &Path, environment: Environment) -> Result<StorePlan, LoadError> {
    load(path, &environment).map(|plan| plan.store)
}
