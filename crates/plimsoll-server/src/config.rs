//! `plimsoll.toml`: listeners and routes, compiled into a plan of the engine.
//!
//! Every problem of a file is found, each with its line, its key and, where there is one, a suggestion.
//! A file with problems yields no plan.

mod acme;

mod action;

mod address;

mod admin;

mod guards;

mod limits;

mod listen;

mod log;

mod map;

mod metrics;

mod ocsp;

mod on_status;

mod middleware;

mod paths;

mod retry_key;
mod route;

mod udp;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_model::document;
use plimsoll_wire::tls::{SelfSigned, SelfSignedError};

use crate::acme::{AcmePlan, Challenges, OnDemandPlan};
use crate::action::{Action, MakeAction};
use crate::config::action::Sections;
use crate::config::admin::AdminParts;
use crate::config::document::Document;
use crate::config::route::RoutePlan;
use crate::counters::Counters;
use crate::engine::EnginePlan;
use crate::engine::inherited::Inherited;
use crate::middleware::OwnFields;
use crate::observe::admin::{AdminApis, AdminPath, ChangeQueue};
use crate::observe::audit::AuditLog;
use crate::observe::notice::{Notice, Notices, Severity};
use crate::place::Maps;
use crate::route::{AllRoutes, RouteLink, Routes};
use crate::worker::context::WorkerContext;
use crate::worker::states::SharedStates;

pub use crate::config::action::{
    ActionKind, CompileAction, CompileGuard, CompileListen, CompileSection, GuardContext,
    GuardKind, ListenKind, Listened, Mounted, SectionContext, SectionKind,
};
pub use crate::config::address::{network, networks};
pub use crate::config::listen::trusted_proxies;
pub use crate::config::log::{LogPlan, LogTarget};
pub use crate::config::map::template;
pub use crate::config::middleware::addresses;
pub use crate::config::paths::{
    NamedPath, NamedPaths, OutsideSandbox, PathUse, PermittedPaths, is_in_shared_folder,
};
pub use crate::config::retry_key::retry_key;
pub use crate::content::changes::{
    Change, Changes, ChangesPlan, Edit, EditError, Misfit, NotChanges, RefusedChange, RoutePlace,
};
pub use crate::content::{ConfigContent, Difference, NotToml};
pub use plimsoll_model::document::{ConfigProblem, Table, Value, as_text};

/// A compiled configuration file, ready to start.
#[derive(Debug, Clone)]
pub struct ServerPlan {
    /// The plan of the engine.
    pub engine: EnginePlan,
    /// Drain timeout of open connections.
    pub drain: Duration,
    /// The files of certificates and keys: once one changes, the file is to be compiled again.
    pub certificates: Vec<PathBuf>,
    /// The certificates that are to be ordered and kept in their files, which are among `certificates`; the code
    /// that runs the plan does so.
    pub acme: Vec<AcmePlan>,
    /// How certificates are ordered for names that clients request and services permit, if they are.
    pub on_demand: Option<OnDemandPlan>,
    /// OCSP responses to fetch and keep in files, which are among `certificates`, in the same way.
    pub ocsp: Vec<OcspPlan>,
    /// Access logs; the code that runs the plan writes them.
    pub logs: Vec<LogPlan>,
    /// Takes a line for each change through the admin port, and for each reload.
    pub audit: AuditLog,
    /// What becomes of changes at run time; absent if there are none. The code that runs the plan makes them.
    pub changes: Option<ChangesPlan>,
    /// Every file and folder that the plan reads or writes.
    pub paths: Vec<NamedPath>,
}

/// A response of OCSP that is to be kept current.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OcspPlan {
    /// The certificate and those that vouch for it, in PEM.
    pub chain: PathBuf,
    /// File of the OCSP response, in DER.
    pub file: PathBuf,
}

/// The JSON Schema of the file.
pub const SCHEMA: &str = include_str!("../../../schemas/server.v1.json");

/// A commented file to start from, as `plimsoll up --init` writes it.
pub const STARTER: &str = include_str!("config/starter.toml");

/// The default of `drain`: well within the 30 s that Kubernetes gives a process after SIGTERM.
const DRAIN: Duration = Duration::from_secs(10);

/// Compiles files into plans.
///
/// One for the life of a server: certificates that it made for one file hold for the next.
#[derive(Debug)]
pub struct Compiler {
    /// The folder that paths in the files are relative to.
    pub directory: PathBuf,
    /// The counters of the routes.
    pub counters: Arc<Counters>,
    /// Workers, if a file does not say how many.
    pub threads: usize,
    /// Actions of other crates.
    pub actions: Vec<ActionKind>,
    /// Guards of other crates.
    pub guards: Vec<GuardKind>,
    /// Tables of other crates at the top of the file.
    pub sections: Vec<SectionKind>,
    /// Kinds of listeners of other crates, for protocols other than HTTP.
    pub listens: Vec<ListenKind>,
    /// Paths of other crates on the admin port.
    pub admin_paths: Vec<AdminPath>,
    /// Takes changes that clients of the admin port want; absent if nothing makes them.
    pub change_queue: Option<ChangeQueue>,
    /// Sockets that the program was started with.
    pub inherited: Arc<Inherited>,
    /// The paths that files may name; absent if they may name any.
    pub permitted: Option<PermittedPaths>,
    /// Receives notices while the plans are served.
    pub notices: Notices,
    /// Responses to ACME challenges that the listeners of its plans serve.
    pub challenges: Challenges,
    /// State of its plans that survives a reload.
    pub states: SharedStates,
    /// Certificates that were made, by their names.
    self_signed: RefCell<HashMap<Vec<String>, SelfSigned>>,
}

impl Compiler {
    /// A compiler that knows no actions but those of this crate, for one worker.
    pub fn new(directory: &Path, counters: &Arc<Counters>) -> Self {
        Self {
            directory: directory.to_owned(),
            counters: Arc::clone(counters),
            threads: 1,
            actions: Vec::new(),
            guards: Vec::new(),
            sections: Vec::new(),
            listens: Vec::new(),
            admin_paths: Vec::new(),
            change_queue: None,
            inherited: Arc::default(),
            permitted: None,
            notices: Notices::default(),
            challenges: Challenges::default(),
            states: SharedStates::default(),
            self_signed: RefCell::default(),
        }
    }

    /// The plan of a file, or every problem that it has.
    pub fn compile(&self, text: &str) -> Result<ServerPlan, Vec<ConfigProblem>> {
        let mut document = Document::parse(text);
        let counters = &self.counters;
        let mut root = document.root();
        let audit = AuditLog::new(self.notices.clone());
        let apis = root.has("admin").then(|| AdminApis::new(audit.clone()));
        let maps = map::compile(root.table("map"));
        let paths = NamedPaths::new(&self.directory, self.permitted.as_ref());
        let place = SectionContext {
            paths: &paths,
            counters,
            apis: apis.as_ref(),
            notices: &self.notices,
        };
        let sections = self.sections.iter().map(|section| {
            let compiled = (section.compile)(root.take_value(section.key), &place);
            (section.key, compiled)
        });
        let sections = sections.collect();
        let context = Context {
            sections,
            compiler: self,
            paths: &paths,
            maps,
            is_measured: root.has("admin") || root.has("metrics"),
            certificates: RefCell::default(),
            acme: RefCell::default(),
            on_demand: RefCell::default(),
            ocsp: RefCell::default(),
            apis,
            identities: RefCell::default(),
            wants_certificates: Cell::new(false),
            asks_for_certificates: Cell::new(false),
        };
        let threads = root.count("threads", 1..=1024);
        let pin = root.boolean("pin");
        let drain = root.duration("drain");
        let limits = limits::compile(root.table("limits"));
        let mut tables = root.tables("listen");
        let names = listen::names(&mut tables);
        let mut tables_of_routes = root.tables("route");
        let names_of_routes = route::names(&mut tables_of_routes);
        let logs = log::compile_all(root.take_value("log"), &context, counters);
        if let Some(log) = LogPlan::main(&logs) {
            audit.write_to(log);
        }
        let known = route::KnownNames {
            listeners: &names,
            routes: &names_of_routes,
            logs: &logs,
        };
        let routes: Vec<_> = tables_of_routes
            .into_iter()
            .zip(&names_of_routes)
            .filter_map(|(table, name)| route::compile(table, name.clone(), &context, &known))
            .collect();
        let chosen = || routes.iter().filter_map(|route| route.logs.as_deref());
        for name in LogPlan::unused(&logs, chosen().flatten()) {
            let message = format!("gets no requests: no route has log = \"{name}\"");
            let notice = Notice::new(Severity::Warning, message).about(format!("log `{name}`"));
            self.notices.report(&notice);
        }
        let routing = Routing::new(routes, counters);
        if tables.is_empty() {
            root.missing("listen", "at least one [[listen]] says where to listen");
        }
        let mut listeners = listen::compile(tables, &names, &context, &routing, &logs);
        if context.wants_certificates.get() && !context.asks_for_certificates.get() {
            let hint =
                "client_certificates = { ca = \"clients.pem\", required = false } of [[listen]]";
            root.wrong(
                "`client_certificate` keeps everybody out, since no listener asks clients for certificates",
                Some(hint.to_owned()),
            );
        }
        let mut changes = None;
        if let Some(table) = root.table("admin") {
            let parts = AdminParts {
                paths: &paths,
                counters,
                admin_paths: &self.admin_paths,
                apis: context.apis.map(AdminApis::into_all).unwrap_or_default(),
                audit: &audit,
                queue: self.change_queue.as_ref(),
                others: &listeners,
            };
            if let Some(admin) = admin::compile(table, ConfigContent::parse(text), parts) {
                listeners.push(admin.listener);
                changes = admin.changes;
            }
        }
        if let Some(table) = root.table("metrics") {
            listeners.extend(metrics::compile(table, counters, &listeners));
        }
        root.finish();
        let problems = document.into_problems();
        if !problems.is_empty() {
            return Err(problems);
        }
        let Context {
            certificates,
            acme,
            on_demand,
            ocsp,
            ..
        } = context;
        Ok(ServerPlan {
            engine: EnginePlan {
                threads: threads.unwrap_or(self.threads),
                pin: pin.unwrap_or(false),
                listeners,
                limits,
                inherited: Arc::clone(&self.inherited),
            },
            drain: drain.unwrap_or(DRAIN),
            certificates: certificates.into_inner(),
            acme: acme.into_inner(),
            on_demand: on_demand.into_inner(),
            ocsp: ocsp.into_inner(),
            logs,
            audit,
            changes,
            paths: paths.into_named(),
        })
    }
}

/// The surroundings of compiling a file.
struct Context<'c> {
    compiler: &'c Compiler,
    /// Makes paths of texts.
    paths: &'c NamedPaths<'c>,
    /// Values by other values, for places.
    maps: Maps,
    /// The compiled sections of other crates.
    sections: Sections,
    /// Figures can be read.
    is_measured: bool,
    /// Files that were read as certificates and keys.
    certificates: RefCell<Vec<PathBuf>>,
    /// Those that are to be ordered.
    acme: RefCell<Vec<AcmePlan>>,
    /// How others are ordered when clients request them.
    on_demand: RefCell<Option<OnDemandPlan>>,
    /// OCSP responses to fetch.
    ocsp: RefCell<Vec<OcspPlan>>,
    /// The APIs of actions on the admin port; absent without one.
    apis: Option<AdminApis>,
    /// A route or a listener has `client_certificate`.
    wants_certificates: Cell<bool>,
    /// A listener has `client_certificates`, by which clients show theirs.
    asks_for_certificates: Cell<bool>,
    /// Number of uses of each identity; repeated ones are numbered.
    identities: RefCell<HashMap<String, usize>>,
}

impl Context<'_> {
    /// An identity for a place of that name: the same in each compilation of the same file.
    fn identity(&self, name: &str) -> String {
        let mut identities = self.identities.borrow_mut();
        let count = identities.entry(name.to_owned()).or_default();
        *count += 1;
        format!("{name} ({count})")
    }

    /// The place of a certificate or key, noted to be watched.
    fn certificate(&self, value: &Value<'_>) -> Option<PathBuf> {
        let path = self.paths.read(value)?;
        self.certificates.borrow_mut().push(path.clone());
        Some(path)
    }

    /// A certificate for these names that vouches for itself, the same each time.
    fn self_signed(&self, names: Vec<String>) -> Result<SelfSigned, SelfSignedError> {
        let mut made = self.compiler.self_signed.borrow_mut();
        if let Some(made) = made.get(&names) {
            return Ok(made.clone());
        }
        let new = SelfSigned::new(&names)?;
        made.insert(names, new.clone());
        Ok(new)
    }
}

/// The routes of the file, of which each listener serves its own and those of all listeners.
struct Routing {
    plans: Vec<RoutePlan>,
    counters: Arc<Counters>,
}

impl Routing {
    fn new(plans: Vec<RoutePlan>, counters: &Arc<Counters>) -> Self {
        Self {
            plans,
            counters: Arc::clone(counters),
        }
    }

    /// The fields of requests that the routes of a listener set, remove or trust.
    ///
    /// - `listener`: its name, if it has one.
    fn own_fields(&self, listener: Option<&str>) -> OwnFields {
        let mut own = OwnFields::default();
        for plan in self.plans.iter().filter(|plan| plan.is_served_by(listener)) {
            own.extend(&plan.own_fields);
        }
        own
    }

    /// Makes the routes of a listener on each worker.
    ///
    /// - `listener`: its name, if it has one.
    fn of_listener(&self, listener: Option<&str>) -> Arc<MakeAction> {
        let leads = self.plans.iter().any(|plan| plan.on_status.is_some());
        // Others by their names, since a route may lead there.
        let plans = self
            .plans
            .iter()
            .filter(|plan| leads || plan.is_served_by(listener));
        let plans = plans.map(|plan| (plan.clone(), plan.is_served_by(listener)));
        let plans: Vec<_> = plans.collect();
        let counters = Arc::clone(&self.counters);
        Arc::new(move |context: &WorkerContext| {
            let link = RouteLink::default();
            let routes = plans.iter().map(|(plan, is_served)| {
                let tag = counters.route(&plan.name).logged_to(plan.logs.clone());
                let tag = Rc::new(tag);
                let action = plan.make(context, &link);
                (plan, *is_served, (tag, action))
            });
            let routes: Vec<_> = routes.collect();
            let all = link.is_used().then(|| {
                let routes = routes.iter().map(|(plan, is_served, (tag, action))| {
                    let is_found = *is_served && (plan.has_path || !plan.is_internal);
                    let conditions = is_found.then(|| plan.conditions.clone());
                    let made = (Rc::clone(tag), Rc::clone(action));
                    (plan.name.clone(), conditions, made)
                });
                Rc::new(AllRoutes::new(routes.collect()))
            });
            if let Some(all) = &all {
                link.lead_to(all);
            }
            let reached = routes.into_iter();
            let reached = reached.filter(|(plan, is_served, _)| *is_served && !plan.is_internal);
            let reached = reached.map(|(plan, _, routed)| (plan.conditions.clone(), routed));
            Rc::new(Routes::with_all(reached.collect(), all)) as Rc<dyn Action>
        })
    }
}

#[cfg(test)]
mod tests;
