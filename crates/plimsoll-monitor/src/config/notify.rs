//! `[[notify]]`: which notices go where.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_client::AddressFilter;
use plimsoll_model::document::{Table, Value, as_text};

use crate::config::MonitorPlan;
use crate::notify::oncall::OnCallPlan;
use crate::notify::{CHANNELS, NoticeKind, Notifier, NotifyPlan, Settings, Template};
use crate::store::Source;

/// Compiles all channels.
pub(super) fn compile<'t>(
    tables: Vec<Table<'t>>,
    monitors: &[Arc<MonitorPlan>],
    (rotations, filter): (&[Arc<OnCallPlan>], Option<AddressFilter>),
    environment: &'t dyn Fn(&str) -> Option<String>,
) -> Vec<Arc<NotifyPlan>> {
    let mut names = HashSet::new();
    let plans = tables.into_iter().filter_map(|table| {
        let mut plan = one(table, monitors, environment, &mut names)?;
        let mine = rotations.iter().filter(|one| one.names(&plan.name));
        plan.rotations = mine.cloned().collect();
        plan.filter.clone_from(&filter);
        Some(Arc::new(plan))
    });
    plans.collect()
}

/// Compiles a channel that is kept in the store, which names no variable of the environment.
///
/// - `others`: channels that are there already.
pub(super) fn compile_one(
    table: Table<'_>,
    monitors: &[Arc<MonitorPlan>],
    (rotations, filter): (&[Arc<OnCallPlan>], Option<AddressFilter>),
    others: &[Arc<NotifyPlan>],
) -> Option<Arc<NotifyPlan>> {
    let mut names = others.iter().map(|other| other.name.clone()).collect();
    let mut plan = one(table, monitors, &|_| None, &mut names)?;
    let mine = rotations.iter().filter(|one| one.names(&plan.name));
    plan.rotations = mine.cloned().collect();
    plan.source = Source::Store;
    plan.filter = filter;
    Some(Arc::new(plan))
}

fn one<'t>(
    mut table: Table<'t>,
    monitors: &[Arc<MonitorPlan>],
    environment: &'t dyn Fn(&str) -> Option<String>,
    names: &mut HashSet<String>,
) -> Option<NotifyPlan> {
    let name = name(&mut table, names);
    let notifier = notifier(&mut table, environment);
    let kinds = match table.take_value("on") {
        None => Some(NoticeKind::ALL.to_vec()),
        Some(value) => kinds(value),
    };
    let only = table
        .take_value("monitors")
        .map(|value| chosen(value, monitors));
    let after = table.duration("after").unwrap_or_default();
    let remind = table.take_value("remind").and_then(|value| {
        let parsed = plimsoll_model::parse_duration(as_text(&value)?);
        match value.check(parsed) {
            Some(remind) if remind < Duration::from_mins(1) => {
                value.wrong("must be a minute or more")
            }
            remind => remind,
        }
    });
    let mut template = |key| {
        let value = table.take_value(key)?;
        value.check(Template::parse(as_text(&value)?))
    };
    let (title, text) = (template("title"), template("text"));
    table.finish();
    let (channel, notifier) = notifier?;
    Some(NotifyPlan {
        name: name?,
        source: Source::File,
        filter: None,
        rotations: Vec::new(),
        channel,
        notifier,
        kinds: kinds?,
        monitors: only,
        after,
        remind,
        title,
        text,
    })
}

fn name(table: &mut Table<'_>, names: &mut HashSet<String>) -> Option<String> {
    let Some(value) = table.take_value("name") else {
        table.missing("name", "what the log and the outbox call the channel");
        return None;
    };
    let name = as_text(&value)?;
    if name == crate::notify::SUBSCRIBERS {
        return value.wrong(format!(
            "`{name}` is the name of messages to readers of pages"
        ));
    }
    if names.insert(name.to_owned()) {
        Some(name.to_owned())
    } else {
        value.wrong(format!("`{name}` is the name of another channel"))
    }
}

/// The channel whose key the table has, with that key.
fn notifier<'t>(
    table: &mut Table<'t>,
    environment: &'t dyn Fn(&str) -> Option<String>,
) -> Option<(String, Arc<dyn Notifier>)> {
    let given = CHANNELS.iter().filter(|channel| table.has(channel.key));
    let given: Vec<_> = given.collect();
    let [channel] = given.as_slice() else {
        // Taking them all keeps each from being an unknown key too.
        for channel in CHANNELS {
            table.take_value(channel.key);
        }
        let known = CHANNELS.map(|channel| channel.key).join(", ");
        table.wrong(
            format!("exactly one of {known} says where notices go"),
            None,
        );
        return None;
    };
    let mut settings = Settings::new(table.take_value(channel.key)?.table()?, environment);
    let notifier = channel.compile(&mut settings);
    settings.table.finish();
    Some((channel.key.to_owned(), notifier?))
}

fn kinds(value: Value<'_>) -> Option<Vec<NoticeKind>> {
    let elements = value.elements();
    let kinds = elements.iter().map(|value| {
        let text = as_text(value)?;
        let found = NoticeKind::ALL.into_iter().find(|kind| kind.name() == text);
        if found.is_none() {
            let known = NoticeKind::ALL.map(NoticeKind::name).join(", ");
            value.wrong::<()>(format!("`{text}` is not one of {known}"));
        }
        found
    });
    kinds.collect::<Vec<_>>().into_iter().collect()
}

/// The keys of monitors and of those of groups.
pub(super) fn chosen(value: Value<'_>, monitors: &[Arc<MonitorPlan>]) -> HashSet<String> {
    let mut keys = HashSet::new();
    for value in value.elements() {
        let Some(text) = as_text(&value) else {
            continue;
        };
        let is_meant = |monitor: &&Arc<MonitorPlan>| {
            monitor.key == text || monitor.name == text || monitor.group == text
        };
        let found: Vec<_> = monitors.iter().filter(is_meant).collect();
        if found.is_empty() {
            value.wrong::<()>(format!("there is no monitor and no group `{text}`"));
        }
        keys.extend(found.into_iter().map(|monitor| monitor.key.clone()));
    }
    keys
}
