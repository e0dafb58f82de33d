//! `[[maintenance]]`.

use std::time::Duration;

use jiff::civil::{Time, Weekday};
use jiff::tz::TimeZone;
use plimsoll_model::document::{Table, Value, as_text};

use crate::detect::window::{Starts, Window};
use crate::time::Timestamp;

const LONGEST: Duration = Duration::from_hours(30 * 24);

/// Characters of a text about a window.
pub const MOST_ABOUT: usize = 2_000;

/// A window, and the monitors or groups that it is for; none for all.
pub(super) fn compile(mut table: Table<'_>) -> Option<(Window, Vec<Value<'_>>)> {
    let name = table
        .text("name")
        .unwrap_or_else(|| "maintenance".to_owned());
    let about = table.take_value("about").and_then(|value| about(&value));
    let zone = match table.take_value("zone") {
        None => Some(TimeZone::UTC),
        Some(value) => zone(&value),
    };
    let duration = if let Some(value) = table.take_value("duration") {
        let parsed = as_text(&value).map(plimsoll_model::parse_duration);
        match parsed {
            Some(Ok(duration)) if duration.is_zero() || duration > LONGEST => {
                value.wrong("must be above zero and at most 30 days")
            }
            Some(parsed) => value.check(parsed),
            None => None,
        }
    } else {
        table.missing("duration", "how long the window takes, such as \"2h\"");
        None
    };
    let starts = starts(&mut table);
    let only = table
        .take_value("monitors")
        .map(Value::elements)
        .unwrap_or_default();
    table.finish();
    let window = Window {
        name,
        about,
        starts: starts?,
        duration: duration?,
        zone: zone?,
    };
    Some((window, only))
}

fn about(value: &Value<'_>) -> Option<String> {
    let text = as_text(value)?.trim();
    if text.chars().count() > MOST_ABOUT {
        return value.wrong(format!("must have at most {MOST_ABOUT} characters"));
    }
    (!text.is_empty()).then(|| text.to_owned())
}

fn starts(table: &mut Table<'_>) -> Option<Starts> {
    let (once, weekly, cron) = (
        table.take_value("once"),
        table.take_value("weekly"),
        table.take_value("cron"),
    );
    let at = table.take_value("at");
    let starts = match (once, weekly, cron) {
        (Some(value), None, None) => {
            let text = as_text(&value)?;
            let hint = "write RFC 3339, such as \"2026-03-01T22:00:00Z\"";
            match Timestamp::parse(text) {
                Some(at) => Some(Starts::Once(at)),
                None => value.wrong_with(format!("`{text}` is not a date"), Some(hint.to_owned())),
            }
        }
        (None, Some(value), None) => {
            let values = value.elements();
            let days: Vec<_> = values.iter().filter_map(weekday).collect();
            let is_whole = days.len() == values.len();
            let time = if let Some(value) = &at {
                clock_time(value)
            } else {
                table.missing(
                    "at",
                    "the clock time at which the window begins, such as \"02:30\"",
                );
                None
            };
            is_whole.then_some(())?;
            return Some(Starts::Weekly { days, time: time? });
        }
        (None, None, Some(value)) => {
            let text = as_text(&value)?;
            value.check(text.parse()).map(Starts::Cron)
        }
        _ => {
            table.wrong(
                "exactly one of `once`, `weekly` and `cron` says when the window begins",
                None,
            );
            None
        }
    };
    if let Some(at) = at {
        at.wrong::<()>("goes with `weekly` only");
    }
    starts
}

pub(crate) fn weekday(value: &Value<'_>) -> Option<Weekday> {
    let text = as_text(value)?;
    match weekday_of(text) {
        Some(day) => Some(day),
        None => value.wrong(format!(
            "`{text}` is not a day such as \"monday\" or \"mon\""
        )),
    }
}

/// A day by its English name or the first three letters of it.
pub(crate) fn weekday_of(text: &str) -> Option<Weekday> {
    let days = [
        ("monday", Weekday::Monday),
        ("tuesday", Weekday::Tuesday),
        ("wednesday", Weekday::Wednesday),
        ("thursday", Weekday::Thursday),
        ("friday", Weekday::Friday),
        ("saturday", Weekday::Saturday),
        ("sunday", Weekday::Sunday),
    ];
    let text = text.to_ascii_lowercase();
    let found = days
        .iter()
        .find(|(name, _)| *name == text || (text.len() == 3 && name.starts_with(&text)));
    found.map(|(_, day)| *day)
}

fn clock_time(value: &Value<'_>) -> Option<Time> {
    let text = as_text(value)?;
    match clock_time_of(text) {
        Some(time) => Some(time),
        None => value.wrong(format!("`{text}` is not a clock time such as \"02:30\"")),
    }
}

/// `hh:mm`.
pub(crate) fn clock_time_of(text: &str) -> Option<Time> {
    let (hour, minute) = text.split_once(':')?;
    if hour.len() != 2 || minute.len() != 2 {
        return None;
    }
    Time::new(hour.parse().ok()?, minute.parse().ok()?, 0, 0).ok()
}

pub(crate) fn zone(value: &Value<'_>) -> Option<TimeZone> {
    let text = as_text(value)?;
    match TimeZone::get(text) {
        Ok(zone) => Some(zone),
        Err(_) => value.wrong(format!(
            "`{text}` is not a time zone such as \"Europe/Berlin\""
        )),
    }
}
