//! `[[escalation]]`: the receivers of an incident's opening, one step after the other.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_model::document::{Table, Value, as_text};

use crate::config::MonitorPlan;
use crate::config::notify::chosen;
use crate::notify::oncall::OnCallPlan;
use crate::notify::{EscalationPlan, EscalationStep, EscalationTarget, NotifyPlan};
use crate::store::Source;

/// Steps of one escalation.
pub(crate) const MOST_STEPS: usize = 10;

/// What steps may name.
#[derive(Clone, Copy)]
pub(crate) struct Named<'a> {
    pub(crate) monitors: &'a [Arc<MonitorPlan>],
    pub(crate) channels: &'a [Arc<NotifyPlan>],
    pub(crate) rotations: &'a [Arc<OnCallPlan>],
}

/// Compiles all escalations of the file.
pub(super) fn compile(tables: Vec<Table<'_>>, named: Named<'_>) -> Vec<Arc<EscalationPlan>> {
    let mut taken = HashSet::new();
    let plans = tables
        .into_iter()
        .filter_map(|table| one(table, named, &mut taken));
    plans.map(Arc::new).collect()
}

/// Compiles one that is kept in the store.
///
/// - `others`: escalations that are there already.
pub(super) fn compile_one(
    table: Table<'_>,
    named: Named<'_>,
    others: &[Arc<EscalationPlan>],
) -> Option<Arc<EscalationPlan>> {
    let mut taken = others.iter().map(|other| other.name.clone()).collect();
    let plan = one(table, named, &mut taken)?;
    Some(Arc::new(EscalationPlan {
        source: Source::Store,
        ..plan
    }))
}

fn one(
    mut table: Table<'_>,
    named: Named<'_>,
    taken: &mut HashSet<String>,
) -> Option<EscalationPlan> {
    let name = match table.take_value("name") {
        None => {
            table.missing("name", "what the escalation is called");
            None
        }
        Some(value) => {
            let name = as_text(&value)?;
            if !taken.insert(name.to_owned()) {
                return value.wrong(format!("`{name}` is the name of another escalation"));
            }
            Some(name.to_owned())
        }
    };
    let monitors = table
        .take_value("monitors")
        .map(|value| chosen(value, named.monitors));
    let mut steps = Vec::new();
    let mut last = None;
    for inner in table.tables("step") {
        steps.push(step(inner, named, &mut last));
    }
    if !table.was_given("step") {
        table.missing("step", "[[escalation.step]] says who is notified, and when");
    }
    if steps.len() > MOST_STEPS {
        table.wrong(format!("at most {MOST_STEPS} steps"), None);
    }
    table.finish();
    let steps: Option<Vec<_>> = steps.into_iter().collect();
    Some(EscalationPlan {
        name: name?,
        source: Source::File,
        monitors,
        steps: steps?,
    })
}

/// - `last`: the time of the step before.
fn step(
    mut table: Table<'_>,
    named: Named<'_>,
    last: &mut Option<Duration>,
) -> Option<EscalationStep> {
    let after = match table.take_value("after") {
        None => Some(Duration::ZERO),
        Some(value) => {
            let parsed = plimsoll_model::parse_duration(as_text(&value)?);
            match value.check(parsed) {
                Some(after) if last.is_some_and(|last| after <= last) => {
                    value.wrong("must be later than the step before")
                }
                after => after,
            }
        }
    };
    if after == Some(Duration::ZERO) && last.is_some() && !table.was_given("after") {
        table.missing("after", "how long the incident has been open then");
    }
    *last = after.or(*last);
    let targets = table.take_value("notify").map(Value::elements);
    if targets.as_ref().is_none_or(Vec::is_empty) {
        table.missing(
            "notify",
            "names of [[notify]] channels and [[on_call]] rotations",
        );
    }
    let targets = targets.unwrap_or_default();
    let targets: Vec<_> = targets.iter().map(|value| target(value, named)).collect();
    table.finish();
    let targets: Option<Vec<_>> = targets.into_iter().collect();
    Some(EscalationStep {
        after: after?,
        targets: targets.filter(|targets| !targets.is_empty())?,
    })
}

/// A channel, or a rotation if none is called so.
fn target(value: &Value<'_>, named: Named<'_>) -> Option<EscalationTarget> {
    let name = as_text(value)?;
    if named.channels.iter().any(|channel| channel.name == name) {
        return Some(EscalationTarget::Channel(name.to_owned()));
    }
    let rotation = named
        .rotations
        .iter()
        .find(|rotation| rotation.name == name);
    match rotation {
        Some(rotation) => Some(EscalationTarget::Rotation(Arc::clone(rotation))),
        None => value.wrong(format!("there is no channel and no rotation `{name}`")),
    }
}
