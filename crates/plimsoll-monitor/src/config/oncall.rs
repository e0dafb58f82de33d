//! `[[on_call]]`: who takes turns.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use jiff::civil::{DateTime, Time, Weekday};
use jiff::tz::TimeZone;
use plimsoll_model::document::{Table, Value, as_text};

use crate::config::maintenance::{clock_time_of, weekday, zone};
use crate::notify::oncall::{Hours, Layer, OnCallPlan, Override, Turn};
use crate::store::Source;
use crate::time::Timestamp;
use crate::token::of_url;

/// Shorter turns are none.
const SHORTEST: Duration = Duration::from_hours(1);

/// Compiles all rotations, and what names a channel in them.
pub(super) fn compile(tables: Vec<Table<'_>>) -> (Vec<Arc<OnCallPlan>>, Vec<Value<'_>>) {
    let mut names = HashSet::new();
    let mut members = Vec::new();
    let plans = tables
        .into_iter()
        .filter_map(|table| one(table, &mut names, &mut members))
        .map(Arc::new);
    (plans.collect(), members)
}

/// Compiles a rotation that is kept in the store.
///
/// - `others`: rotations that are there already.
/// - `channels`: the names of the channels that it may name.
pub(super) fn compile_one(
    table: Table<'_>,
    others: &[Arc<OnCallPlan>],
    channels: &HashSet<&str>,
) -> Option<Arc<OnCallPlan>> {
    let mut names = others.iter().map(|other| other.name.clone()).collect();
    let mut members = Vec::new();
    let plan = one(table, &mut names, &mut members)?;
    for value in &members {
        let name = as_text(value)?;
        if !channels.contains(name) {
            value.wrong::<()>(format!("there is no channel `{name}`"));
        }
    }
    Some(Arc::new(OnCallPlan {
        source: Source::Store,
        ..plan
    }))
}

fn one<'t>(
    mut table: Table<'t>,
    names: &mut HashSet<String>,
    channels: &mut Vec<Value<'t>>,
) -> Option<OnCallPlan> {
    let name = if let Some(value) = table.take_value("name") {
        let name = as_text(&value)?;
        if !names.insert(name.to_owned()) {
            return value.wrong(format!("`{name}` is the name of another rotation"));
        }
        Some(name.to_owned())
    } else {
        table.missing("name", "what the rotation is called");
        None
    };
    let zone = match table.take_value("zone") {
        None => Some(TimeZone::UTC),
        Some(value) => zone(&value),
    };
    let base = turns(&mut table, None, channels);
    let start = base.as_ref().map(|layer| layer.start);
    let mut more = Vec::new();
    for mut inner in table.tables("layer") {
        let hours = hours(&mut inner);
        let layer = turns(&mut inner, start, channels);
        inner.finish();
        more.push(hours.and_then(|hours| {
            let layer = layer?;
            Some(Layer {
                hours: Some(hours),
                ..layer
            })
        }));
    }
    let token = table.take_value("token").and_then(|value| of_url(&value));
    let overrides: Vec<_> = table
        .tables("override")
        .into_iter()
        .map(|table| replacement(table, channels))
        .collect();
    table.finish();
    let mut layers = vec![base?];
    layers.extend(more.into_iter().collect::<Option<Vec<_>>>()?);
    Some(OnCallPlan {
        name: name?,
        source: Source::File,
        zone: zone?,
        layers,
        overrides: overrides.into_iter().collect::<Option<_>>()?,
        token,
    })
}

/// Members and their turns.
///
/// - `start`: of the rotation, for a layer that has none of its own.
fn turns<'t>(
    table: &mut Table<'t>,
    start: Option<DateTime>,
    channels: &mut Vec<Value<'t>>,
) -> Option<Layer> {
    let mut members = Vec::new();
    match table.take_value("members") {
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
    if members.is_empty() && table.was_given("members") {
        table.wrong("a rotation needs a member", None);
    }
    let turn = match table.take_value("rotate") {
        None => Some(Turn::Days(7)),
        Some(value) => turn(&value),
    };
    let start = match (table.take_value("start"), start) {
        (Some(value), _) => date(&value),
        (None, Some(start)) => Some(start),
        (None, None) => {
            table.missing(
                "start",
                "when the turn of the first member begins, such as \"2026-03-02T09:00\"",
            );
            None
        }
    };
    Some(Layer {
        members: (!members.is_empty()).then_some(members)?,
        turn: turn?,
        start: start?,
        hours: None,
    })
}

fn date(value: &Value<'_>) -> Option<DateTime> {
    let text = as_text(value)?;
    if let Ok(start) = text.parse::<DateTime>() {
        return Some(start);
    }
    let hint = "write a date and a clock time of the zone, such as \"2026-03-02T09:00\"";
    value.wrong_with(format!("`{text}` is not a date"), Some(hint.to_owned()))
}

/// `days` and `hours`; both absent are the whole week.
fn hours(table: &mut Table<'_>) -> Option<Hours> {
    const WHOLE: (Time, Time) = (Time::midnight(), Time::midnight());
    const WEEK: [Weekday; 7] = [
        Weekday::Monday,
        Weekday::Tuesday,
        Weekday::Wednesday,
        Weekday::Thursday,
        Weekday::Friday,
        Weekday::Saturday,
        Weekday::Sunday,
    ];

    let (days, hours) = (table.take_value("days"), table.take_value("hours"));
    let days = match days {
        None => Some(WEEK.into()),
        Some(value) => {
            let values = value.elements();
            let days: Vec<_> = values.iter().filter_map(weekday).collect();
            (days.len() == values.len()).then_some(days)
        }
    };
    let hours = match hours {
        None => Some(WHOLE),
        Some(value) => {
            let text = as_text(&value)?;
            let parts = text.split_once('-');
            let parsed = parts.and_then(|(from, to)| {
                // The end of a day is the beginning of the next one.
                let to = if to.trim() == "24:00" {
                    "00:00"
                } else {
                    to.trim()
                };
                Some((clock_time_of(from.trim())?, clock_time_of(to)?))
            });
            match parsed {
                Some(parsed) => Some(parsed),
                None => value.wrong(format!(
                    "`{text}` is not a span of a day such as \"18:00-08:00\""
                )),
            }
        }
    };
    let (from, to) = hours?;
    Some(Hours {
        days: days?,
        from,
        to,
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
        let Some(value) = table.take_value(key) else {
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
    let who = if let Some(value) = table.take_value("who") {
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
