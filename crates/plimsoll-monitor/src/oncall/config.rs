//! `[[on_call]]`: who takes turns.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use plimsoll_model::Secret;
use plimsoll_model::document::{Table, Value, as_text};

use crate::config::maintenance::zone;
use crate::oncall::{OnCallPlan, Override, Turn};
use crate::timestamp::Timestamp;

/// Shorter turns are none.
const SHORTEST: Duration = Duration::from_hours(1);

/// Shorter tokens can be guessed.
const SHORTEST_TOKEN: usize = 16;

/// Compiles all rotations, and what names a channel in them.
pub(crate) fn compile(tables: Vec<Table<'_>>) -> (Vec<Arc<OnCallPlan>>, Vec<Value<'_>>) {
    let mut names = HashSet::new();
    let mut members = Vec::new();
    let plans = tables
        .into_iter()
        .filter_map(|table| one(table, &mut names, &mut members))
        .map(Arc::new);
    (plans.collect(), members)
}

fn one<'t>(
    mut table: Table<'t>,
    names: &mut HashSet<String>,
    channels: &mut Vec<Value<'t>>,
) -> Option<OnCallPlan> {
    let name = if let Some(value) = table.take("name") {
        let name = as_text(&value)?;
        if !names.insert(name.to_owned()) {
            return value.wrong(format!("`{name}` is the name of another rotation"));
        }
        Some(name.to_owned())
    } else {
        table.missing("name", "what the rotation is called");
        None
    };
    let zone = match table.take("zone") {
        None => Some(TimeZone::UTC),
        Some(value) => zone(&value),
    };
    let mut members = Vec::new();
    match table.take("members") {
        Some(value) => {
            for value in value.elements() {
                members.push(as_text(&value)?.to_owned());
                channels.push(value);
            }
        }
        None => table.missing(
            "members",
            "names of [[notify]] channels, in the order of their turns",
        ),
    }
    let turn = match table.take("rotate") {
        None => Some(Turn::Days(7)),
        Some(value) => turn(&value),
    };
    let start = if let Some(value) = table.take("start") {
        let text = as_text(&value)?;
        if let Ok(start) = text.parse::<DateTime>() {
            Some(start)
        } else {
            let hint = "write a date and a clock time of the zone, such as \"2026-03-02T09:00\"";
            value.wrong_with(format!("`{text}` is not a date"), Some(hint.to_owned()))
        }
    } else {
        table.missing(
            "start",
            "when the turn of the first member begins, such as \"2026-03-02T09:00\"",
        );
        None
    };
    let token = table.take("token").and_then(|value| {
        let text = as_text(&value)?;
        let is_safe = text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        if text.len() < SHORTEST_TOKEN || !is_safe {
            return value.wrong("needs at least 16 letters, digits and hyphens, such as a UUID");
        }
        Some(Secret::new(text))
    });
    let overrides: Vec<_> = table
        .tables("override")
        .into_iter()
        .map(|table| replacement(table, channels))
        .collect();
    if members.is_empty() && table.was_given("members") {
        table.wrong("a rotation needs a member", None);
    }
    table.finish();
    Some(OnCallPlan {
        name: name?,
        zone: zone?,
        members: (!members.is_empty()).then_some(members)?,
        turn: turn?,
        start: start?,
        overrides: overrides.into_iter().collect::<Option<_>>()?,
        token,
    })
}

fn turn(value: &Value<'_>) -> Option<Turn> {
    match as_text(value)? {
        "daily" => Some(Turn::Days(1)),
        "weekly" => Some(Turn::Days(7)),
        text => match plimsoll_model::parse_duration(text) {
            Ok(length) if length >= SHORTEST => Some(Turn::Time(length)),
            _ => value.wrong(format!(
                "`{text}` is not \"daily\", \"weekly\" or a duration of an hour or more"
            )),
        },
    }
}

fn replacement<'t>(mut table: Table<'t>, channels: &mut Vec<Value<'t>>) -> Option<Override> {
    let mut date = |key: &'static str| {
        let Some(value) = table.take(key) else {
            table.missing(key, "RFC 3339, such as \"2026-03-01T22:00:00Z\"");
            return None;
        };
        let text = as_text(&value)?;
        match Timestamp::parse(text) {
            Some(at) => Some(at),
            None => value.wrong(format!("`{text}` is not a date of RFC 3339")),
        }
    };
    let (from, until) = (date("from"), date("until"));
    let who = if let Some(value) = table.take("who") {
        let who = as_text(&value)?.to_owned();
        channels.push(value);
        Some(who)
    } else {
        table.missing("who", "the name of a [[notify]] channel");
        None
    };
    if from.zip(until).is_some_and(|(from, until)| until <= from) {
        table.wrong("`until` must be after `from`", None);
    }
    table.finish();
    Some(Override {
        who: who?,
        from: from?,
        until: until?,
    })
}
