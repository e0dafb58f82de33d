//! Maintenance windows: once, weekly or by cron, in a time zone with its daylight saving time.

mod cron;

use std::time::Duration;

use jiff::civil::{Date, Time, Weekday};
use jiff::tz::TimeZone;
use jiff::{ToSpan, Zoned};

use crate::detect::uptime::{Span, united};
use crate::time::Timestamp;

pub use crate::detect::window::cron::{Cron, CronError};

/// A time in which notices are held back and downtime does not count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Window {
    /// For people; several windows may have the same name.
    pub name: String,
    /// What is done, for readers of status pages.
    pub about: Option<String>,
    /// When it begins.
    pub starts: Starts,
    /// How long it takes; above zero.
    pub duration: Duration,
    /// The zone of its clock times.
    pub zone: TimeZone,
}

/// When a window begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Starts {
    /// At one moment.
    Once(Timestamp),
    /// On some days of the week, at one clock time.
    Weekly {
        /// The days.
        days: Vec<Weekday>,
        /// The clock time; one that a day skips is taken an hour later, one that it has twice the first time.
        time: Time,
    },
    /// By a cron expression.
    Cron(Cron),
}

impl Window {
    /// Whether the window is under way.
    pub fn is_active(&self, now: Timestamp) -> bool {
        self.next_start(now.minus(self.duration))
            .is_some_and(|start| start <= now)
    }

    /// Until when the window is under way at `now`; `None` if it is not.
    pub fn active_until(&self, now: Timestamp) -> Option<Timestamp> {
        self.occurrence(now).map(|(_, end)| end)
    }

    /// From when until when the window that is under way at `now` takes; `None` if it is not.
    ///
    /// Occurrences that meet are one. One that never ends is cut at the turn of a year, at least a year away.
    pub fn occurrence(&self, now: Timestamp) -> Option<Span> {
        const DAY: Duration = Duration::from_hours(24);
        /// Few occurrences meet, so a short look usually suffices.
        const WIDER: u32 = 8;

        if !self.is_active(now) {
            return None;
        }
        let (first, last) = years_around(now, &self.zone);
        let mut reach = self.duration + DAY;
        loop {
            let (from, to) = (now.minus(reach).max(first), now.plus(reach).min(last));
            let all = self.overlapping(from, to);
            let span = all.into_iter().find(|span| span.0 <= now && now < span.1)?;
            let is_whole = span.0 > from && span.1 < to;
            if is_whole || matches!(self.starts, Starts::Once(_)) {
                return Some(span);
            }
            if (from, to) == (first, last) {
                return Some((span.0.max(first), span.1.min(last)));
            }
            reach *= WIDER;
        }
    }

    /// The first start after `after`; `None` if the window never starts again.
    pub fn next_start(&self, after: Timestamp) -> Option<Timestamp> {
        match &self.starts {
            Starts::Once(at) => (*at > after).then_some(*at),
            Starts::Cron(cron) => cron.next(after, &self.zone),
            Starts::Weekly { days, time } => {
                let first = zoned(after, &self.zone).date().yesterday().ok()?;
                first.series(1.day()).take(10).find_map(|date| {
                    if !days.contains(&date.weekday()) {
                        return None;
                    }
                    moment(date, *time, &self.zone).filter(|start| *start > after)
                })
            }
        }
    }

    /// When [`active_until`](Self::active_until) next changes; `None` if it never does.
    pub fn next_change(&self, now: Timestamp) -> Option<Timestamp> {
        self.active_until(now).or_else(|| self.next_start(now))
    }

    /// The parts of `from..to` that the window covers, in order and apart.
    pub fn spans(&self, from: Timestamp, to: Timestamp) -> Vec<Span> {
        let mut spans = self.overlapping(from, to);
        for span in &mut spans {
            *span = (span.0.max(from), span.1.min(to));
        }
        spans.retain(|span| span.0 < span.1);
        spans
    }

    /// Occurrences that overlap or touch `from..to`, whole, in order; those that meet are one.
    fn overlapping(&self, from: Timestamp, to: Timestamp) -> Vec<Span> {
        let mut all = Vec::new();
        if let Starts::Once(at) = self.starts {
            all.push((at, at.plus(self.duration)));
        } else {
            let first = zoned(from.minus(self.duration), &self.zone).date();
            let last = zoned(to, &self.zone).date();
            // A gap moves times of the day before past midnight.
            let dates = first.yesterday().unwrap_or(first).series(1.day());
            let dates = dates.take_while(|date| *date <= last);
            match &self.starts {
                Starts::Cron(cron) => cron.add_spans(dates, self.duration, &self.zone, &mut all),
                Starts::Weekly { days, time } => {
                    let starts = dates
                        .filter(|date| days.contains(&date.weekday()))
                        .filter_map(|date| moment(date, *time, &self.zone));
                    all.extend(starts.map(|start| (start, start.plus(self.duration))));
                }
                Starts::Once(_) => {}
            }
        }
        all.retain(|span| span.0 <= to && span.1 >= from);
        united(all)
    }
}

/// From the first day of last year until that of the year after next.
fn years_around(now: Timestamp, zone: &TimeZone) -> Span {
    let year = zoned(now, zone).year();
    let first_of = |year: i16| {
        let date = Date::new(year, 1, 1).ok()?;
        moment(date, Time::midnight(), zone)
    };
    (
        first_of(year - 1).unwrap_or(now),
        first_of(year + 2).unwrap_or(now),
    )
}

/// A date as a clock in the zone shows it.
fn zoned(at: Timestamp, zone: &TimeZone) -> Zoned {
    at.to_jiff().to_zoned(zone.clone())
}

/// When a clock in the zone shows it: times that are skipped are moved behind the gap, of those that come twice the
/// first counts.
fn moment(date: Date, time: Time, zone: &TimeZone) -> Option<Timestamp> {
    let zoned = zone.to_ambiguous_zoned(date.to_datetime(time)).compatible();
    Some(Timestamp(zoned.ok()?.timestamp().as_millisecond()))
}

#[cfg(test)]
mod tests;
