//! Cron expressions of five fields (crontab(5)).

use std::str::FromStr;

use jiff::Span;
use jiff::civil::{Date, Time};
use jiff::tz::TimeZone;

use crate::detect::window::{moment, zoned};
use crate::store::timestamp::Timestamp;

/// Minute, hour, day of the month, month, day of the week: `30 2 * * 1-5`.
///
/// Lists, ranges, steps, names (`mon`, `jan`) and `@hourly`, `@daily`, `@weekly`, `@monthly`, `@yearly` are known. If
/// both days are restricted, either suffices. Times that a zone skips run behind the gap; of times that come twice, the
/// first runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cron {
    text: String,
    minutes: u64,
    hours: u64,
    days: u64,
    months: u64,
    weekdays: u64,
    either_day: bool,
}

/// Errors in a cron expression.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CronError {
    /// It has not five fields.
    #[error("`{0}` is not a cron expression; write five fields, such as `30 2 * * 1-5`")]
    Fields(String),
    /// A field is not one.
    #[error("`{value}` is not a {field} of a cron expression; it goes from {from} to {to}")]
    Field {
        /// The text as written.
        value: String,
        /// Which field.
        field: &'static str,
        /// The least value.
        from: u8,
        /// The largest.
        to: u8,
    },
    /// No date ever matches.
    #[error("no date ever matches `{0}`")]
    Never(String),
}

const MONTHS: [&str; 12] = [
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
];
const WEEKDAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/// The 29th of February on a certain day of the week comes at least this often.
const MOST_DAYS: i64 = 40 * 366;

struct Field {
    name: &'static str,
    from: u8,
    to: u8,
    names: &'static [&'static str],
    /// The value of the first name.
    first: u8,
}

const FIELDS: [Field; 5] = [
    Field {
        name: "minute",
        from: 0,
        to: 59,
        names: &[],
        first: 0,
    },
    Field {
        name: "hour",
        from: 0,
        to: 23,
        names: &[],
        first: 0,
    },
    Field {
        name: "day of the month",
        from: 1,
        to: 31,
        names: &[],
        first: 0,
    },
    Field {
        name: "month",
        from: 1,
        to: 12,
        names: &MONTHS,
        first: 1,
    },
    Field {
        name: "day of the week",
        from: 0,
        to: 7,
        names: &WEEKDAYS,
        first: 0,
    },
];

impl Cron {
    /// The expression as it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The first match after `after`.
    pub fn next(&self, after: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        let first = zoned(after, zone).date();
        // A gap moves times of the day before past midnight.
        (-1..MOST_DAYS).find_map(|offset| {
            let date = first.checked_add(Span::new().days(offset)).ok()?;
            self.matches(date)
                .then(|| self.first_of(date, after, zone))
                .flatten()
        })
    }

    fn matches(&self, date: Date) -> bool {
        let has = |set: u64, value: i8| u8::try_from(value).is_ok_and(|bit| set & (1 << bit) != 0);
        let weekday = has(self.weekdays, date.weekday().to_sunday_zero_offset());
        let day = has(self.days, date.day());
        let is_day = if self.either_day {
            day || weekday
        } else {
            day && weekday
        };
        is_day && has(self.months, date.month())
    }

    /// The first match of a day after `after`.
    fn first_of(&self, date: Date, after: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        let mut first: Option<Timestamp> = None;
        for hour in (0_i8..24).filter(|hour| self.hours & (1 << hour) != 0) {
            for minute in (0_i8..60).filter(|minute| self.minutes & (1 << minute) != 0) {
                let Ok(time) = Time::new(hour, minute, 0, 0) else {
                    continue;
                };
                let found = moment(date, time, zone).filter(|found| *found > after);
                first = match (first, found) {
                    (Some(first), Some(found)) => Some(first.min(found)),
                    (first, found) => first.or(found),
                };
                // Behind a gap, later times come before earlier ones, but not by hours.
                if let (Some(first), Some(found)) = (first, found)
                    && found.0 - first.0 > 3 * 3_600_000
                {
                    return Some(first);
                }
            }
        }
        first
    }
}

impl FromStr for Cron {
    type Err = CronError;

    fn from_str(text: &str) -> Result<Self, CronError> {
        let text = text.trim();
        let fields = match text {
            "@hourly" => "0 * * * *",
            "@daily" | "@midnight" => "0 0 * * *",
            "@weekly" => "0 0 * * 0",
            "@monthly" => "0 0 1 * *",
            "@yearly" | "@annually" => "0 0 1 1 *",
            other => other,
        };
        let fields: Vec<_> = fields.split_whitespace().collect();
        let [minutes, hours, days, months, weekdays] = fields[..] else {
            return Err(CronError::Fields(text.to_owned()));
        };
        let mut sets = [0; 5];
        let parts = [minutes, hours, days, months, weekdays];
        for ((set, part), field) in sets.iter_mut().zip(parts).zip(&FIELDS) {
            *set = set_of(part, field)?;
        }
        let [minutes, hours, day_set, months, weekday_set] = sets;
        // Sunday is 0 and 7.
        let weekday_set = weekday_set | (weekday_set >> 7 & 1);
        let cron = Self {
            text: text.to_owned(),
            minutes,
            hours,
            days: day_set,
            months,
            weekdays: weekday_set,
            either_day: !days.starts_with('*') && !weekdays.starts_with('*'),
        };
        match cron.next(Timestamp(0), &TimeZone::UTC) {
            Some(_) => Ok(cron),
            None => Err(CronError::Never(text.to_owned())),
        }
    }
}

fn set_of(text: &str, field: &Field) -> Result<u64, CronError> {
    let wrong = || CronError::Field {
        value: text.to_owned(),
        field: field.name,
        from: field.from,
        to: field.to,
    };
    let mut set = 0;
    for part in text.split(',') {
        let (range, step) = match part.split_once('/') {
            Some((range, step)) => {
                let step: u8 = step.parse().map_err(|_| wrong())?;
                (
                    range,
                    Some(step).filter(|step| *step > 0).ok_or_else(wrong)?,
                )
            }
            None => (part, 1),
        };
        let (from, to) = match range.split_once('-') {
            _ if range == "*" => (field.from, field.to),
            Some((from, to)) => {
                let from = value_of(from, field).ok_or_else(wrong)?;
                (from, value_of(to, field).ok_or_else(wrong)?)
            }
            None => {
                let from = value_of(range, field).ok_or_else(wrong)?;
                let to = if part.contains('/') { field.to } else { from };
                (from, to)
            }
        };
        if from > to {
            return Err(wrong());
        }
        for value in (from..=to).step_by(usize::from(step)) {
            set |= 1 << value;
        }
    }
    Ok(set)
}

fn value_of(text: &str, field: &Field) -> Option<u8> {
    let by_name = field
        .names
        .iter()
        .position(|name| text.eq_ignore_ascii_case(name));
    let value = match by_name {
        Some(position) => u8::try_from(position).ok()? + field.first,
        None => text.parse().ok()?,
    };
    (field.from..=field.to).contains(&value).then_some(value)
}
