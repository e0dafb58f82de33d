//! The configuration in force: that of the file with the definitions of the store.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use plimsoll_model::document::ConfigProblem;

use crate::config::overlay::{self, PlacedWindow};
use crate::config::{MonitorPlan, PagePlan, Plan, Source};
use crate::discovery;
use crate::notify::oncall::OnCallPlan;
use crate::notify::{EscalationPlan, NotifyPlan};
use crate::store::{Definition, DefinitionKind, OrgId, Store, StoreError};

/// The definitions of a store that a configuration is made of.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct StoredDefinitions {
    monitors: Vec<Definition>,
    maintenance: Vec<Definition>,
    pages: Vec<Definition>,
    channels: Vec<Definition>,
    rotations: Vec<Definition>,
    escalations: Vec<Definition>,
    /// By the names of the sources.
    discovered: Vec<Definition>,
}

impl StoredDefinitions {
    pub(super) async fn read(store: &dyn Store, org: OrgId) -> Result<Self, StoreError> {
        let of_kind = async |kind| {
            let found = store.definitions(org, kind).await?;
            let found = found.into_iter().map(|(definition, _)| definition);
            Ok::<Vec<_>, StoreError>(found.collect())
        };
        Ok(Self {
            monitors: of_kind(DefinitionKind::Monitor).await?,
            maintenance: of_kind(DefinitionKind::Maintenance).await?,
            pages: of_kind(DefinitionKind::Page).await?,
            channels: of_kind(DefinitionKind::Channel).await?,
            rotations: of_kind(DefinitionKind::OnCall).await?,
            escalations: of_kind(DefinitionKind::Escalation).await?,
            discovered: of_kind(DefinitionKind::Discovered).await?,
        })
    }

    /// The lists of sources, by their names.
    pub(super) fn discovered(&self) -> &[Definition] {
        &self.discovered
    }
}

/// The file with the definitions of the store.
pub(super) struct Composed {
    pub(super) monitors: Vec<(Source, Arc<MonitorPlan>)>,
    pub(super) windows: Vec<PlacedWindow>,
    pub(super) pages: Vec<Arc<PagePlan>>,
    pub(super) rotations: Vec<Arc<OnCallPlan>>,
    /// Channels of the file, with all rotations that name them.
    pub(super) file_channels: Vec<Arc<NotifyPlan>>,
    /// Those of the store, with their definitions.
    pub(super) channels: Vec<(String, Arc<NotifyPlan>)>,
    pub(super) escalations: Vec<Arc<EscalationPlan>>,
    /// What became of the list of each source, in their order.
    pub(super) discovered: Vec<Placed>,
    /// Definitions of the store that are not in force.
    pub(super) left_out: LeftOut,
}

/// Why definitions of the store are not in force, by kind and key.
pub(super) type LeftOut = HashMap<(DefinitionKind, String), Vec<String>>;

/// The monitors of a list.
#[derive(Debug, Default)]
pub(super) struct Placed {
    /// Their keys.
    pub(super) keys: Vec<String>,
    /// Why others are left out.
    pub(super) problems: Vec<String>,
}

/// Adds definitions to the configuration of the file. Those that do not fit the file any more are reported and left out.
pub(super) fn compose(base: &Plan, stored: &StoredDefinitions, report: &dyn Fn(&str)) -> Composed {
    let unfit = RefCell::new(LeftOut::new());
    let left_out = |kind: DefinitionKind, key: &str, problems: Vec<ConfigProblem>| {
        for problem in problems {
            let noun = noun(kind);
            report(&format!(
                "the {noun} `{key}` of the store is left out: {problem}"
            ));
            let mut unfit = unfit.borrow_mut();
            let reasons = unfit.entry((kind, key.to_owned())).or_default();
            reasons.push(problem.to_string());
        }
    };
    let mut of_file = base.monitors.clone();
    let discovered = add_discovered(base, stored, &mut of_file);
    let texts: Vec<_> = stored
        .monitors
        .iter()
        .map(|one| one.text.as_str())
        .collect();
    let compiled = overlay::monitors(&texts, &base.grounds, of_file.iter());
    let mut added = Vec::with_capacity(compiled.len());
    for (definition, outcome) in stored.monitors.iter().zip(compiled) {
        match outcome {
            Ok(plan) => added.push(Arc::new(plan)),
            Err(problems) => left_out(DefinitionKind::Monitor, &definition.key, problems),
        }
    }
    let all: Vec<_> = of_file.iter().chain(&added).cloned().collect();
    let mut windows = base.grounds.windows.clone();
    let mut own = Vec::new();
    for definition in &stored.maintenance {
        match overlay::window(&definition.text, &all) {
            Ok(window) => own.push(window),
            Err(problems) => left_out(DefinitionKind::Maintenance, &definition.key, problems),
        }
    }
    overlay::attach(&mut of_file, &own);
    windows.extend(own);
    overlay::attach(&mut added, &windows);
    let mut pages: Vec<_> = base
        .pages
        .iter()
        .map(|page| page.showing(all.iter()))
        .collect();
    for definition in &stored.pages {
        match overlay::page(&definition.text, &all, &pages) {
            Ok(page) => pages.push(page),
            Err(problems) => left_out(DefinitionKind::Page, &definition.key, problems),
        }
    }
    let rotations = rotations(base, stored, &left_out);
    let on_call = |channel: &Arc<NotifyPlan>| {
        let mine = rotations.iter().filter(|one| one.names(&channel.name));
        let mine: Vec<_> = mine.cloned().collect();
        if mine == channel.rotations {
            return Arc::clone(channel);
        }
        Arc::new(NotifyPlan {
            rotations: mine,
            ..(**channel).clone()
        })
    };
    let file_channels: Vec<_> = base.channels.iter().map(on_call).collect();
    let mut known = file_channels.clone();
    let mut channels = Vec::new();
    for definition in &stored.channels {
        match overlay::channel(&definition.text, &base.grounds, &all, &rotations, &known) {
            Ok(plan) => {
                known.push(Arc::clone(&plan));
                channels.push((definition.text.clone(), plan));
            }
            Err(problems) => left_out(DefinitionKind::Channel, &definition.key, problems),
        }
    }
    let mut escalations = base.escalations.clone();
    let named = overlay::Named {
        monitors: &all,
        channels: &known,
        rotations: &rotations,
    };
    for definition in &stored.escalations {
        match overlay::escalation(&definition.text, named, &escalations) {
            Ok(plan) => escalations.push(plan),
            Err(problems) => left_out(DefinitionKind::Escalation, &definition.key, problems),
        }
    }
    let of_file = of_file.into_iter().map(|plan| (Source::File, plan));
    let of_store = added.into_iter().map(|plan| (Source::Store, plan));
    Composed {
        monitors: of_file.chain(of_store).collect(),
        windows,
        pages,
        rotations,
        file_channels,
        channels,
        escalations,
        discovered,
        left_out: unfit.take(),
    }
}

/// What people call a kind of definitions.
const fn noun(kind: DefinitionKind) -> &'static str {
    match kind {
        DefinitionKind::Maintenance => "maintenance window",
        DefinitionKind::Channel => "channel",
        DefinitionKind::OnCall => "rotation",
        other => other.name(),
    }
}

/// Adds the monitors of all sources to those of the file.
fn add_discovered(
    base: &Plan,
    stored: &StoredDefinitions,
    of_file: &mut Vec<Arc<MonitorPlan>>,
) -> Vec<Placed> {
    let mut all = Vec::with_capacity(base.discover.len());
    for source in &base.discover {
        let mut placed = Placed::default();
        let list = stored.discovered.iter().find(|one| one.key == source.name);
        let definitions = list.map_or_else(Vec::new, |one| discovery::of_stored_text(&one.text));
        let texts: Vec<_> = definitions.iter().map(toml::Table::to_string).collect();
        let texts: Vec<_> = texts.iter().map(String::as_str).collect();
        let may_name_files = source.source.may_name_files();
        let compiled = overlay::discovered(&texts, &base.grounds, of_file.iter(), may_name_files);
        let mut added = Vec::new();
        for (definition, outcome) in definitions.iter().zip(compiled) {
            match outcome {
                Ok(plan) => {
                    placed.keys.push(plan.key.clone());
                    added.push(Arc::new(plan));
                }
                Err(problems) => {
                    let name = definition.get("name").and_then(toml::Value::as_str);
                    let name = name.unwrap_or("a monitor without a name");
                    let problems = problems.into_iter();
                    placed
                        .problems
                        .extend(problems.map(|problem| format!("`{name}` is left out: {problem}")));
                }
            }
        }
        overlay::attach(&mut added, &base.grounds.windows);
        of_file.extend(added);
        all.push(placed);
    }
    all
}

/// The rotations of the file and of the store. These may name channels of both.
fn rotations(
    base: &Plan,
    stored: &StoredDefinitions,
    left_out: &dyn Fn(DefinitionKind, &str, Vec<ConfigProblem>),
) -> Vec<Arc<OnCallPlan>> {
    let of_file = base.channels.iter().map(|channel| channel.name.as_str());
    let of_store = stored.channels.iter().map(|one| one.key.as_str());
    let names: HashSet<_> = of_file.chain(of_store).collect();
    let mut rotations = base.rotations.clone();
    for definition in &stored.rotations {
        match overlay::rotation(&definition.text, &rotations, &names) {
            Ok(plan) => rotations.push(plan),
            Err(problems) => left_out(DefinitionKind::OnCall, &definition.key, problems),
        }
    }
    rotations
}
