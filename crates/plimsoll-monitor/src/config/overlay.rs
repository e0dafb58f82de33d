//! Definitions that are kept in the store: monitors, maintenance windows and pages beside those of the configuration
//! file, in the same syntax and compiled by the same code.
//!
//! A definition is the content of one table, such as that of `[[monitor]]`. What it names in others is looked for among
//! the file's and the other definitions. Its defaults, and the addresses it may connect to, are those of the file.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use plimsoll_client::AddressFilter;
use plimsoll_model::document::{ConfigProblem, Document, Value, as_text};
use plimsoll_server::TrustedProxies;

use crate::config::agent::Regions;
use crate::config::blackbox::Modules;
pub(crate) use crate::config::escalation::Named;
use crate::config::file::{Context, Others, link};
use crate::config::monitor::{self, Defaults};
use crate::config::page::{self, PagePlan};
use crate::config::plan::MonitorPlan;
use crate::config::{escalation, kinds, maintenance, notify, oncall};
use crate::detect::window::Window;
use crate::notify::oncall::OnCallPlan;
use crate::notify::{EscalationPlan, NotifyPlan};
use crate::probe::Reach;

/// Against what definitions are compiled.
#[derive(Debug, Default)]
pub struct Grounds {
    pub(super) directory: PathBuf,
    pub(super) filter: Option<AddressFilter>,
    pub(super) defaults: Defaults,
    pub(super) regions: Regions,
    /// Proxies that are believed when they name their clients.
    pub(super) proxies: Option<TrustedProxies>,
    /// The windows of the file.
    pub(crate) windows: Vec<PlacedWindow>,
    /// Modules of `/probe` that a file of `blackbox_exporter` defines.
    pub modules: Modules,
    /// Ways to reach targets, which monitors share.
    pub(super) reaches: Mutex<HashMap<kinds::ReachKey, Reach>>,
}

/// A maintenance window and the monitors that it is for.
#[derive(Debug, Clone)]
pub struct PlacedWindow {
    /// The window.
    pub window: Arc<Window>,
    /// Keys, names and groups; empty for all monitors.
    pub only: Vec<String>,
}

impl PlacedWindow {
    /// Notes names that there are not.
    pub(super) fn compile(
        window: Window,
        only: &[Value<'_>],
        monitors: &[Arc<MonitorPlan>],
    ) -> Self {
        let names = only.iter().filter_map(|value| {
            let text = as_text(value)?;
            let is_known = monitors.iter().any(|monitor| {
                monitor.key == text || monitor.name == text || monitor.group == text
            });
            if !is_known {
                value.wrong::<()>(format!("there is no monitor and no group `{text}`"));
            }
            Some(text.to_owned())
        });
        Self {
            only: names.collect(),
            window: Arc::new(window),
        }
    }

    fn is_for(&self, monitor: &MonitorPlan) -> bool {
        let is_meant =
            |name: &String| *name == monitor.key || *name == monitor.name || *name == monitor.group;
        self.only.is_empty() || self.only.iter().any(is_meant)
    }
}

impl Grounds {
    /// Whether only public addresses may be connected to.
    pub(crate) fn is_public_only(&self) -> bool {
        self.filter.is_some()
    }

    /// Proxies that are believed when they name their clients.
    pub fn trusted_proxies(&self) -> Option<&TrustedProxies> {
        self.proxies.as_ref()
    }
}

/// Gives each monitor its windows.
pub(crate) fn attach(monitors: &mut [Arc<MonitorPlan>], windows: &[PlacedWindow]) {
    for monitor in monitors {
        let mine = windows.iter().filter(|placed| placed.is_for(monitor));
        let mine: Vec<_> = mine.map(|placed| Arc::clone(&placed.window)).collect();
        if !mine.is_empty() {
            Arc::make_mut(monitor).windows.extend(mine);
        }
    }
}

/// Compiles definitions of monitors together, so that they may name each other; the results are in their order.
///
/// - `others`: monitors that are there already, and that none of these replaces.
pub fn monitors<'o>(
    texts: &[&str],
    grounds: &Grounds,
    others: impl Iterator<Item = &'o Arc<MonitorPlan>>,
) -> Vec<Result<MonitorPlan, Vec<ConfigProblem>>> {
    compiled(texts, grounds, others, false)
}

/// The same of monitors that a source lists.
///
/// - `may_name_files`: whether the source is a part of the configuration.
pub(crate) fn discovered<'o>(
    texts: &[&str],
    grounds: &Grounds,
    others: impl Iterator<Item = &'o Arc<MonitorPlan>>,
    may_name_files: bool,
) -> Vec<Result<MonitorPlan, Vec<ConfigProblem>>> {
    compiled(texts, grounds, others, may_name_files)
}

/// Compiles a definition of the configuration, which may name files.
pub fn of_configuration(text: &str, grounds: &Grounds) -> Result<MonitorPlan, Vec<ConfigProblem>> {
    let mut compiled = compiled(&[text], grounds, std::iter::empty(), true);
    compiled.pop().unwrap_or_else(|| Err(Vec::new()))
}

fn compiled<'o>(
    texts: &[&str],
    grounds: &Grounds,
    others: impl Iterator<Item = &'o Arc<MonitorPlan>>,
    may_name_files: bool,
) -> Vec<Result<MonitorPlan, Vec<ConfigProblem>>> {
    let mut known = Others::default();
    let mut keys = HashSet::new();
    for other in others {
        keys.insert(other.key.clone());
        let needs: Vec<_> = other.needs().map(str::to_owned).collect();
        if !needs.is_empty() {
            known.needs.insert(other.key.clone(), needs);
        }
        known.names.push((other.key.clone(), other.name.clone()));
    }
    let reaches = grounds
        .reaches
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .clone();
    let mut context = Context {
        directory: grounds.directory.clone(),
        may_name_files,
        supplied: &[],
        filter: grounds.filter.clone(),
        reaches,
        defaults: grounds.defaults.clone(),
        regions: grounds.regions.clone(),
        named: RefCell::default(),
    };
    let mut documents: Vec<_> = texts.iter().map(|text| Document::parse(text)).collect();
    let mut compiled = Vec::with_capacity(texts.len());
    let mut at = Vec::with_capacity(texts.len());
    for (index, document) in documents.iter_mut().enumerate() {
        let table = document.root();
        if let Some(one) = monitor::compile(table, &mut context, &mut keys) {
            compiled.push(one);
            at.push(index);
        }
    }
    let plans = link(compiled, &known);
    *grounds
        .reaches
        .lock()
        .unwrap_or_else(PoisonError::into_inner) = context.reaches;
    let mut plans = at.into_iter().zip(plans).peekable();
    let results = documents.into_iter().enumerate().map(|(index, document)| {
        let plan = plans.next_if(|(at, _)| *at == index);
        let problems = document.into_problems();
        match plan {
            Some((_, plan)) if problems.is_empty() => Ok(plan),
            _ => Err(problems),
        }
    });
    results.collect()
}

/// Compiles a definition of a maintenance window.
pub(crate) fn window(
    text: &str,
    monitors: &[Arc<MonitorPlan>],
) -> Result<PlacedWindow, Vec<ConfigProblem>> {
    let mut document = Document::parse(text);
    let compiled = maintenance::compile(document.root());
    let placed = compiled.map(|(window, only)| PlacedWindow::compile(window, &only, monitors));
    let problems = document.into_problems();
    placed.filter(|_| problems.is_empty()).ok_or(problems)
}

/// Compiles a definition of a channel of notices.
///
/// - `others`: channels that are there already.
pub(crate) fn channel(
    text: &str,
    grounds: &Grounds,
    monitors: &[Arc<MonitorPlan>],
    rotations: &[Arc<OnCallPlan>],
    others: &[Arc<NotifyPlan>],
) -> Result<Arc<NotifyPlan>, Vec<ConfigProblem>> {
    let mut document = Document::parse(text);
    let compiled = notify::compile_one(
        document.root(),
        monitors,
        (rotations, grounds.filter.clone()),
        others,
    );
    let problems = document.into_problems();
    compiled.filter(|_| problems.is_empty()).ok_or(problems)
}

/// Compiles a definition of an escalation.
///
/// - `others`: escalations that are there already.
pub(crate) fn escalation(
    text: &str,
    named: Named<'_>,
    others: &[Arc<EscalationPlan>],
) -> Result<Arc<EscalationPlan>, Vec<ConfigProblem>> {
    let mut document = Document::parse(text);
    let compiled = escalation::compile_one(document.root(), named, others);
    let problems = document.into_problems();
    compiled.filter(|_| problems.is_empty()).ok_or(problems)
}

/// Compiles a definition of a rotation.
///
/// - `others`: rotations that are there already.
/// - `channels`: the names of the channels that it may name.
pub(crate) fn rotation(
    text: &str,
    others: &[Arc<OnCallPlan>],
    channels: &HashSet<&str>,
) -> Result<Arc<OnCallPlan>, Vec<ConfigProblem>> {
    let mut document = Document::parse(text);
    let compiled = oncall::compile_one(document.root(), others, channels);
    let problems = document.into_problems();
    compiled.filter(|_| problems.is_empty()).ok_or(problems)
}

/// Compiles a definition of a page.
///
/// - `others`: pages that are there already.
pub(crate) fn page(
    text: &str,
    monitors: &[Arc<MonitorPlan>],
    others: &[Arc<PagePlan>],
) -> Result<Arc<PagePlan>, Vec<ConfigProblem>> {
    let mut document = Document::parse(text);
    let compiled = page::compile_one(document.root(), monitors, others);
    let problems = document.into_problems();
    compiled.filter(|_| problems.is_empty()).ok_or(problems)
}
