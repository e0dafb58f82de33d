//! `plimsoll.toml`: listeners and routes, compiled into a plan of the engine.
//!
//! Every problem of a file is found, each with its line, its key and, where there is one, a suggestion.
//! A file with problems yields no plan.

mod admin;

mod limits;

mod listen;

mod log;

mod middleware;

mod route;

use std::cell::RefCell;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_model::document;

use crate::action::{Action, MakeAction};
use crate::config::document::Document;
use crate::config::route::RoutePlan;
use crate::counters::Counters;
use crate::engine::EnginePlan;
use crate::route::Routes;

pub use crate::config::log::{LogPlan, LogTarget};
pub use plimsoll_model::document::ConfigProblem;

/// What a file asks for, ready to start.
#[derive(Debug, Clone)]
pub struct ServerPlan {
    /// What the engine serves.
    pub engine: EnginePlan,
    /// How long open connections may still take once it is told to end.
    pub drain: Duration,
    /// The files of certificates and keys: once one changes, the file is to be compiled again.
    pub certificates: Vec<PathBuf>,
    /// Where requests are noted, if anywhere; whoever runs the plan has it written.
    pub log: Option<LogPlan>,
}

/// The JSON Schema of the file.
pub const SCHEMA: &str = include_str!("../../../../schemas/server.v1.json");

/// A commented file to start from, as `plimsoll up --init` writes it.
pub const STARTER: &str = include_str!("starter.toml");

const DRAIN: Duration = Duration::from_secs(10);

/// Compiles a file.
///
/// - `directory`: what paths in it are relative to.
/// - `counters`: what the routes count in.
/// - `default_threads`: workers, if it does not say how many.
pub fn compile(
    text: &str,
    directory: &Path,
    counters: &Arc<Counters>,
    default_threads: usize,
) -> Result<ServerPlan, Vec<ConfigProblem>> {
    let mut document = Document::parse(text);
    let context = Context {
        directory: directory.to_owned(),
        certificates: RefCell::default(),
    };
    let mut root = document.root();
    let threads = root.count("threads", 1..=1024);
    let pin = root.boolean("pin");
    let drain = root.duration("drain");
    let limits = limits::compile(root.table("limits"));
    let mut names = HashSet::new();
    let routes: Vec<_> = root
        .tables("route")
        .into_iter()
        .filter_map(|table| route::compile(table, &context, &mut names))
        .collect();
    let log = root
        .table("log")
        .and_then(|table| log::compile(table, &context, counters));
    let action = routing(routes, counters);
    let tables = root.tables("listen");
    if tables.is_empty() {
        root.missing("listen", "at least one [[listen]] says where to listen");
    }
    let mut listeners =
        listen::compile(tables, &context, &action, log.as_ref().map(|log| &log.log));
    if let Some(table) = root.table("admin") {
        let admin = admin::compile(table, counters, &listeners);
        listeners.extend(admin);
    }
    root.finish();
    let problems = document.into_problems();
    if !problems.is_empty() {
        return Err(problems);
    }
    Ok(ServerPlan {
        engine: EnginePlan {
            threads: threads.unwrap_or(default_threads),
            pin: pin.unwrap_or(false),
            listeners,
            limits,
        },
        drain: drain.unwrap_or(DRAIN),
        certificates: context.certificates.into_inner(),
        log,
    })
}

/// What compiling needs besides the file.
struct Context {
    directory: PathBuf,
    /// Files that were read as certificates and keys.
    certificates: RefCell<Vec<PathBuf>>,
}

impl Context {
    /// The place of a certificate or key, noted to be watched.
    fn certificate(&self, path: &str) -> PathBuf {
        let path = self.directory.join(path);
        self.certificates.borrow_mut().push(path.clone());
        path
    }
}

/// The routes as what each worker makes of them.
fn routing(plans: Vec<RoutePlan>, counters: &Arc<Counters>) -> Arc<MakeAction> {
    let counters = Arc::clone(counters);
    Arc::new(move || {
        let routes = plans.iter().map(|plan| {
            let tag = counters.route(&plan.name);
            let action = plan.middleware.over(plan.action.make());
            (plan.conditions.clone(), tag, action)
        });
        Rc::new(Routes::new(routes.collect())) as Rc<dyn Action>
    })
}

#[cfg(test)]
mod tests;
