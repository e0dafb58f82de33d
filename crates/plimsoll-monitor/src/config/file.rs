//! The TOML file as a whole.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use plimsoll_client::AddressFilter;
use plimsoll_model::document::{ConfigProblem, Document, Table, Value, as_text};
use plimsoll_server::config::trusted_proxies;

use crate::config::agent::{self, Regions};
use crate::config::blackbox::Modules;
use crate::config::monitor::{self, Compiled, Defaults};
use crate::config::overlay::{Grounds, PlacedWindow, attach};
use crate::config::plan::{Dialect, MonitorPlan, Plan, StorePlan, What};
use crate::config::{
    acknowledge, discover, escalation, kinds, maintenance, notify, oidc, oncall, overlay, page,
    store, subscriptions,
};
use crate::probe::{Reach, SuppliedKinds};
use crate::schedule::{BreakerRule, GateLimits};
use crate::store::Retention;
use crate::token;
use crate::yaml::Warning;

/// The surroundings of compiling monitors.
pub(super) struct Context {
    /// The folder that paths are relative to.
    pub(super) directory: PathBuf,
    /// Whether monitors may name files.
    pub(super) may_name_files: bool,
    /// Kinds that the program supplies.
    pub(super) supplied: SuppliedKinds,
    /// Which addresses may be connected to.
    pub(super) filter: Option<AddressFilter>,
    /// Ways to reach targets that were compiled already, by their settings.
    pub(super) reaches: HashMap<kinds::ReachKey, Reach>,
    pub(super) defaults: Defaults,
    /// From where monitors may be checked.
    pub(super) regions: Regions,
    /// The files that monitors name.
    pub(super) named: RefCell<Vec<PathBuf>>,
}

impl Context {
    /// The file of that name, noted as one that the configuration names.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        let path = self.directory.join(name);
        self.named.borrow_mut().push(path.clone());
        path
    }
}

/// Folder of a configuration, and the resources it may use.
#[derive(Clone, Copy)]
pub(super) struct Ground<'g> {
    /// The folder that paths are relative to.
    pub(super) directory: &'g Path,
    /// Whether monitors may name files.
    pub(super) may_name_files: bool,
    /// Kinds that the program supplies.
    pub(super) supplied: SuppliedKinds,
}

/// Compiles a file, or returns every problem that it has.
pub(super) fn compile(
    text: &str,
    ground: Ground<'_>,
    environment: &dyn Fn(&str) -> Option<String>,
) -> Result<Plan, Vec<ConfigProblem>> {
    let directory = ground.directory;
    let mut document = Document::parse(text);
    let mut root = document.root();
    let store = store::compile(&mut root, directory, environment);
    let organisation = store::organisation(&mut root);
    let sealing = store::keys(&mut root, environment);
    let metrics = root.boolean("metrics").unwrap_or(true);
    let ping_key = root
        .take_value("ping_key")
        .and_then(|value| token::of_url(&value));
    let private = root.boolean("allow_private").unwrap_or(true);
    let proxies = root.take_value("trusted_proxies").and_then(trusted_proxies);
    let limits = root.table("limits").map(limits).unwrap_or_default();
    let retention = root.table("retention").map(retention).unwrap_or_default();
    let mut regions = Regions::default();
    if let Some(own) = agent::own_region(&mut root) {
        regions.0 = vec![own];
    }
    let agents = agent::compile_all(root.tables("agent"), &mut regions);
    let defaults = match root.table("defaults") {
        Some(table) => Defaults::compile(table, &regions),
        None => Defaults::default(),
    };
    let mut context = Context {
        directory: directory.to_owned(),
        may_name_files: ground.may_name_files,
        supplied: ground.supplied,
        filter: (!private).then(AddressFilter::public),
        reaches: HashMap::new(),
        defaults,
        regions,
        named: RefCell::default(),
    };
    let windows: Vec<_> = root
        .tables("maintenance")
        .into_iter()
        .filter_map(maintenance::compile)
        .collect();
    let tokens = root
        .tables("token")
        .into_iter()
        .filter_map(token::compile)
        .collect();
    let surroundings = discover::Surroundings {
        directory,
        is_public_only: !private,
        environment,
    };
    let discover = discover::compile(root.tables("discover"), &surroundings);
    let tables = root.tables("monitor");
    let mut keys = HashSet::new();
    let compiled: Vec<_> = tables
        .into_iter()
        .filter_map(|table| monitor::compile(table, &mut context, &mut keys))
        .collect();
    let monitors = link(compiled, &Others::default());
    let mut monitors: Vec<_> = monitors.into_iter().map(Arc::new).collect();
    let windows: Vec<_> = windows
        .into_iter()
        .map(|(window, only)| PlacedWindow::compile(window, &only, &monitors))
        .collect();
    attach(&mut monitors, &windows);
    let pages = page::compile(root.tables("page"), &monitors, (directory, &context.named));
    let subscriptions = root
        .table("subscriptions")
        .and_then(|table| subscriptions::compile(table, environment));
    let acknowledge = root.table("acknowledge").and_then(acknowledge::compile);
    let oidc = root
        .table("oidc")
        .and_then(|table| oidc::compile(table, directory, environment));
    let modules = root
        .take_value("probe_modules")
        .and_then(|value| modules(&value, directory));
    let (rotations, on_call) = oncall::compile(root.tables("on_call"));
    let reach = (&*rotations, context.filter.clone());
    let channels = notify::compile(root.tables("notify"), &monitors, reach, environment);
    for value in &on_call {
        if let Some(name) = as_text(value)
            && !channels.iter().any(|channel| channel.name == name)
        {
            value.wrong::<()>(format!("there is no channel `{name}`"));
        }
    }
    let named = escalation::Named {
        monitors: &monitors,
        channels: &channels,
        rotations: &rotations,
    };
    let escalations = escalation::compile(root.tables("escalation"), named);
    root.finish();
    let problems = document.into_problems();
    if !problems.is_empty() {
        return Err(problems);
    }
    let mut grounds = Grounds {
        directory: context.directory,
        filter: context.filter,
        defaults: context.defaults,
        regions: context.regions.clone(),
        proxies,
        windows,
        modules: Modules::default(),
        ..Grounds::default()
    };
    let mut files = Vec::new();
    let mut warnings = Vec::new();
    if let Some((path, found, doubts)) = modules {
        let problems = unusable(&found, &grounds);
        if !problems.is_empty() {
            return Err(problems);
        }
        grounds.modules = found;
        files.push(path);
        warnings.extend(doubts);
    }
    if monitors.is_empty() && discover.is_empty() {
        warnings.push(Warning {
            place: "monitor".to_owned(),
            message:
                "the file has no [[monitor]]; add one, or add monitors by the API or at /admin"
                    .to_owned(),
        });
    }
    Ok(Plan {
        organisation: organisation.unwrap_or_else(|| store::DEFAULT_ORGANISATION.to_owned()),
        monitors,
        store: store.unwrap_or(StorePlan::Sqlite(directory.join("monitor.db"))),
        limits,
        retention,
        metrics,
        ping_key,
        dialect: Dialect::Plimsoll,
        discover,
        tokens,
        region: context.regions.own().to_owned(),
        agents,
        pages,
        keys: sealing,
        rotations,
        subscriptions,
        acknowledge,
        oidc,
        escalations,
        channels,
        grounds: Arc::new(grounds),
        warnings,
        files,
        named: context.named.into_inner(),
    })
}

/// What keeps modules from being used, such as a file that is missing: they are tried with a target that nothing connects to.
fn unusable(modules: &Modules, grounds: &Grounds) -> Vec<ConfigProblem> {
    let mut all = Vec::new();
    for name in modules.names() {
        let Some(module) = modules.get(name) else {
            continue;
        };
        let mut definition = module.definition("example.org:9");
        definition.insert("name".to_owned(), "probe".into());
        if let Err(problems) = overlay::of_configuration(&definition.to_string(), grounds) {
            all.extend(problems.into_iter().map(|problem| ConfigProblem {
                line: 1,
                column: 1,
                key: "probe_modules".to_owned(),
                message: format!("the module `{name}`: {problem}"),
                hint: problem.hint,
            }));
        }
    }
    all
}

/// The modules of a file of `blackbox_exporter`, with its path and what is doubtful in it.
fn modules(value: &Value<'_>, directory: &Path) -> Option<(PathBuf, Modules, Vec<Warning>)> {
    let path = directory.join(as_text(value)?);
    let below = path.parent().unwrap_or(directory).to_owned();
    match Modules::load(&path, &below) {
        Ok((modules, warnings)) => Some((path, modules, warnings)),
        Err(problems) => {
            for problem in problems {
                let place = format!("{}:{}:{}", path.display(), problem.line, problem.column);
                value.wrong_with::<()>(format!("{place}: {problem}"), problem.hint.clone());
            }
            None
        }
    }
}

/// Monitors that were compiled before.
#[derive(Debug, Default)]
pub(super) struct Others {
    /// Their keys and names.
    pub(super) names: Vec<(String, String)>,
    /// The keys of what each depends on.
    pub(super) needs: HashMap<String, Vec<String>>,
}

/// Replaces the names of other monitors by their keys.
pub(super) fn link(compiled: Vec<Compiled<'_>>, others: &Others) -> Vec<MonitorPlan> {
    let own = compiled
        .iter()
        .map(|one| (one.plan.key.clone(), one.plan.name.clone()));
    let names: Vec<_> = own.chain(others.names.iter().cloned()).collect();
    let by_key: HashSet<&str> = names.iter().map(|(key, _)| key.as_str()).collect();
    let mut by_name: HashMap<&str, &str> = HashMap::new();
    for (key, name) in &names {
        by_name.entry(name).or_insert(key);
    }
    let find = |own: &str, value: &Value<'_>| -> Option<String> {
        let text = as_text(value)?;
        let found = by_key.get(text).or_else(|| by_name.get(text));
        match found {
            Some(key) if *key == own => value.wrong("is the monitor itself"),
            Some(key) => Some((*key).to_owned()),
            None => {
                let near = names
                    .iter()
                    .map(|(_, name)| (strsim::jaro_winkler(text, name), name))
                    .filter(|(likeness, _)| *likeness > 0.75)
                    .max_by(|one, other| one.0.total_cmp(&other.0));
                let hint = near.map(|(_, name)| format!("did you mean `{name}`?"));
                value.wrong_with(format!("there is no monitor `{text}`"), hint)
            }
        }
    };
    let mut monitors = Vec::with_capacity(compiled.len());
    let mut places: Vec<Vec<Value<'_>>> = Vec::with_capacity(compiled.len());
    for Compiled {
        mut plan,
        parents,
        members,
    } in compiled
    {
        plan.parents = parents
            .iter()
            .filter_map(|value| find(&plan.key, value))
            .collect();
        if let What::Composite(composite) = &mut plan.what {
            composite.members = members
                .iter()
                .filter_map(|value| find(&plan.key, value))
                .collect();
        }
        monitors.push(plan);
        places.push(parents.into_iter().chain(members).collect());
    }
    refuse_circles(&monitors, &places, others);
    monitors
}

/// Notes monitors that depend on themselves by way of others.
fn refuse_circles(monitors: &[MonitorPlan], places: &[Vec<Value<'_>>], others: &Others) {
    let mut needs: HashMap<&str, Vec<&str>> = HashMap::new();
    for (key, of) in &others.needs {
        needs.insert(key, of.iter().map(String::as_str).collect());
    }
    for monitor in monitors {
        needs.insert(&monitor.key, monitor.needs().collect());
    }
    for (monitor, places) in monitors.iter().zip(places) {
        let Some(place) = places.first() else {
            continue;
        };
        let mut seen = HashSet::new();
        let mut open: Vec<&str> = monitor.needs().collect();
        while let Some(key) = open.pop() {
            if seen.insert(key) {
                open.extend(needs.get(key).into_iter().flatten());
            }
        }
        if seen.contains(monitor.key.as_str()) {
            place.wrong::<()>(format!("leads back to `{}` itself", monitor.name));
        }
    }
}

fn limits(mut table: Table<'_>) -> GateLimits {
    let default = GateLimits::default();
    let limits = GateLimits {
        concurrency: table
            .count("concurrency", 1..=100_000)
            .unwrap_or(default.concurrency),
        per_host: table
            .count("per_host", 1..=10_000)
            .unwrap_or(default.per_host),
        breaker: match table.take_value("breaker") {
            None => default.breaker,
            Some(value) if value.is_false() => None,
            Some(value) => value.table().map(breaker),
        },
    };
    table.finish();
    limits
}

fn breaker(mut table: Table<'_>) -> BreakerRule {
    let default = BreakerRule::default();
    let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let rule = BreakerRule {
        failures: table
            .count("failures", 1..=10_000)
            .map_or(default.failures, count),
        open: table.duration("open").unwrap_or(default.open),
        ..default
    };
    table.finish();
    rule
}

fn retention(mut table: Table<'_>) -> Retention {
    let default = Retention::default();
    let mut keep = |key, default| table.duration(key).unwrap_or(default);
    let retention = Retention {
        raw: keep("raw", default.raw),
        minutes: keep("minutes", default.minutes),
        hours: keep("hours", default.hours),
        days: keep("days", default.days),
    };
    table.finish();
    retention
}
