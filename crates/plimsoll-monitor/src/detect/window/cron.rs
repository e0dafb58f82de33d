//! Cron expressions of five fields (crontab(5)).

use std::str::FromStr;
use std::time::Duration;

use jiff::civil::{Date, Time};
use jiff::tz::{AmbiguousOffset, TimeZone};

use crate::detect::uptime::Span;
use crate::detect::window::zoned;
use crate::time::Timestamp;

/// Minute, hour, day of the month, month, day of the week: `30 2 * * 1-5`.
///
/// Lists, ranges, steps, names (`mon`, `jan`) and `@hourly`, `@daily`, `@weekly`, `@monthly`, `@yearly` are known. If
/// both days are restricted, either suffices.
///
/// As in Debian's cron(8), an expression whose minute or hour begins with `*` follows the clock when it is moved: times
/// that are skipped do not match, and those that come twice match twice. Otherwise times that are skipped match behind
/// the gap, and of those that come twice the first matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cron {
    text: String,
    /// Minutes of the day, ascending.
    times: Vec<u16>,
    days: u64,
    months: u64,
    weekdays: u64,
    either_day: bool,
    follows_clock: bool,
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

/// The 29th of February on a certain day of the week comes at least once in so many years.
const MOST_YEARS: i16 = 40;

const MINUTE: i64 = 60_000;
const DAY: i64 = 24 * 60 * MINUTE;

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
        // A gap moves times of the day before past midnight.
        let mut date = zoned(after, zone).date().yesterday().ok()?;
        let last_year = date.year().saturating_add(MOST_YEARS);
        let mut midnights = Midnights::new(zone);
        while date.year() <= last_year {
            if !has(self.months, date.month()) {
                date = date.last_of_month().tomorrow().ok()?;
                continue;
            }
            let tomorrow = date.tomorrow().ok()?;
            let found = self.first_of(date, after, &mut midnights);
            if let Some(found) = found {
                // Behind a gap, the first time of the next day may come before.
                let is_steady = midnights.steady(date).is_some();
                let other = (!is_steady).then(|| self.first_of(tomorrow, after, &mut midnights));
                return Some(other.flatten().map_or(found, |other| other.min(found)));
            }
            date = tomorrow;
        }
        None
    }

    /// Adds the time from each match on some dates until `duration` later. Where the clock does not move, matches that
    /// meet are added as one span, so a short period between them costs little.
    ///
    /// - `dates`: ascending.
    pub(super) fn add_spans(
        &self,
        dates: impl Iterator<Item = Date>,
        duration: Duration,
        zone: &TimeZone,
        spans: &mut Vec<Span>,
    ) {
        let millis = i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
        let meet = |one: &u16, next: &u16| i64::from(next - one) * MINUTE <= millis;
        let runs: Vec<(i64, i64)> = self
            .times
            .chunk_by(meet)
            .filter_map(|run| {
                let (first, last) = (*run.first()?, *run.last()?);
                Some((i64::from(first) * MINUTE, i64::from(last) * MINUTE))
            })
            .collect();
        let mut midnights = Midnights::new(zone);
        for date in dates.filter(|date| self.matches(*date)) {
            if let Some(midnight) = midnights.steady(date) {
                let span = |(first, last): &(i64, i64)| {
                    let last = Timestamp(midnight.0 + last);
                    (Timestamp(midnight.0 + first), last.plus(duration))
                };
                spans.extend(runs.iter().map(span));
            } else {
                let starts = self.moments(date, zone);
                spans.extend(starts.map(|start| (start, start.plus(duration))));
            }
        }
    }

    fn matches(&self, date: Date) -> bool {
        let weekday = has(self.weekdays, date.weekday().to_sunday_zero_offset());
        let day = has(self.days, date.day());
        let is_day = if self.either_day {
            day || weekday
        } else {
            day && weekday
        };
        is_day && has(self.months, date.month())
    }

    /// The first match of a date after `after`; `None` if the date does not match.
    fn first_of(
        &self,
        date: Date,
        after: Timestamp,
        midnights: &mut Midnights<'_>,
    ) -> Option<Timestamp> {
        if !self.matches(date) {
            return None;
        }
        let Some(midnight) = midnights.steady(date) else {
            let moments = self.moments(date, midnights.zone);
            return moments.filter(|found| *found > after).min();
        };
        let start = |time: u16| Timestamp(midnight.0 + i64::from(time) * MINUTE);
        let past = self.times.partition_point(|time| start(*time) <= after);
        self.times.get(past).copied().map(start)
    }

    /// The matches of a date that matches, on which the clock may move.
    fn moments(&self, date: Date, zone: &TimeZone) -> impl Iterator<Item = Timestamp> {
        let times = self.times.iter().filter_map(|time| {
            let (hour, minute) = (i8::try_from(time / 60), i8::try_from(time % 60));
            Time::new(hour.ok()?, minute.ok()?, 0, 0).ok()
        });
        times.flat_map(move |time| {
            let clock = zone.to_ambiguous_zoned(date.to_datetime(time));
            let found = match clock.offset() {
                AmbiguousOffset::Gap { .. } if self.follows_clock => [None, None],
                AmbiguousOffset::Fold { .. } if self.follows_clock => {
                    [clock.clone().earlier().ok(), clock.later().ok()]
                }
                _ => [clock.compatible().ok(), None],
            };
            let found = found.into_iter().flatten();
            found.map(|zoned| Timestamp(zoned.timestamp().as_millisecond()))
        })
    }
}

fn has(set: u64, value: i8) -> bool {
    u8::try_from(value).is_ok_and(|bit| set & (1 << bit) != 0)
}

/// Finds the midnights of ascending dates, with one look into the zone for all between two moves of its clock.
struct Midnights<'a> {
    zone: &'a TimeZone,
    /// A date, its midnight, and when the clock moves next.
    known: Option<(Date, Timestamp, Timestamp)>,
}

impl<'a> Midnights<'a> {
    fn new(zone: &'a TimeZone) -> Self {
        Self { zone, known: None }
    }

    /// The midnight that begins a date on which, and at the end of which, the clock does not move.
    fn steady(&mut self, date: Date) -> Option<Timestamp> {
        let is_whole =
            |midnight: Timestamp, move_at: Timestamp| midnight.0.saturating_add(DAY) < move_at.0;
        if let Some((known, midnight, move_at)) = self.known
            && date >= known
        {
            let days = date.duration_since(known).as_hours() / 24;
            let midnight = Timestamp(midnight.0 + days * DAY);
            if is_whole(midnight, move_at) {
                return Some(midnight);
            }
        }
        let start = date.to_datetime(Time::midnight());
        let start = self.zone.to_ambiguous_zoned(start).unambiguous().ok()?;
        let midnight = Timestamp(start.timestamp().as_millisecond());
        let next = self.zone.following(start.timestamp()).next();
        let move_at = next.map_or(Timestamp(i64::MAX), |next| {
            Timestamp(next.timestamp().as_millisecond())
        });
        self.known = Some((date, midnight, move_at));
        is_whole(midnight, move_at).then_some(midnight)
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
        let [minutes_text, hours_text, days, months, weekdays] = fields[..] else {
            return Err(CronError::Fields(text.to_owned()));
        };
        let mut sets = [0; 5];
        let parts = [minutes_text, hours_text, days, months, weekdays];
        for ((set, part), field) in sets.iter_mut().zip(parts).zip(&FIELDS) {
            *set = set_of(part, field)?;
        }
        let [minutes, hours, day_set, months, weekday_set] = sets;
        // Sunday is 0 and 7.
        let weekday_set = weekday_set | (weekday_set >> 7 & 1);
        let times = (0..24_u16)
            .filter(|hour| hours & (1 << hour) != 0)
            .flat_map(|hour| {
                (0..60_u16)
                    .filter(|minute| minutes & (1 << minute) != 0)
                    .map(move |minute| hour * 60 + minute)
            });
        let cron = Self {
            text: text.to_owned(),
            times: times.collect(),
            days: day_set,
            months,
            weekdays: weekday_set,
            either_day: !days.starts_with('*') && !weekdays.starts_with('*'),
            follows_clock: minutes_text.starts_with('*') || hours_text.starts_with('*'),
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
