//! Maintenance windows: once, weekly or by cron, in a time zone with its daylight saving time.

mod cron;

use std::time::Duration;

use jiff::civil::{Date, Time, Weekday};
use jiff::tz::TimeZone;
use jiff::{Span, Zoned};

use crate::store::timestamp::Timestamp;

pub use crate::detect::window::cron::{Cron, CronError};

/// A time in which notices are held back and downtime does not count.
#[derive(Debug, Clone)]
pub struct Window {
    /// For people.
    pub name: String,
    /// When it begins.
    pub starts: Starts,
    /// How long it takes; above zero.
    pub duration: Duration,
    /// The zone of its clock times.
    pub zone: TimeZone,
}

/// When a window begins.
#[derive(Debug, Clone)]
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
    /// Until when the window is under way at `now`; `None` if it is not. Windows that meet are one.
    pub fn active_until(&self, now: Timestamp) -> Option<Timestamp> {
        /// A cron expression of every minute meets itself for ever.
        const MOST_MEETING: usize = 1_000;

        let mut start = self.next_start(now.minus(self.duration))?;
        if start > now {
            return None;
        }
        let mut end = start.plus(self.duration);
        for _ in 0..MOST_MEETING {
            match self.next_start(start) {
                Some(next) if next <= end => {
                    start = next;
                    end = next.plus(self.duration);
                }
                _ => break,
            }
        }
        Some(end)
    }

    /// The first start after `after`; `None` if the window never starts again.
    pub fn next_start(&self, after: Timestamp) -> Option<Timestamp> {
        match &self.starts {
            Starts::Once(at) => (*at > after).then_some(*at),
            Starts::Cron(cron) => cron.next(after, &self.zone),
            Starts::Weekly { days, time } => {
                let first = zoned(after, &self.zone).date();
                (-1..=8).find_map(|offset| {
                    let date = first.checked_add(Span::new().days(offset)).ok()?;
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

    /// The parts of `from..to` that the window covers, in order and apart, at most a thousand.
    pub fn spans(&self, from: Timestamp, to: Timestamp) -> Vec<(Timestamp, Timestamp)> {
        const MOST: usize = 1_000;

        let mut spans = Vec::new();
        let mut at = from;
        while at < to && spans.len() < MOST {
            if let Some(end) = self.active_until(at) {
                spans.push((at, end.min(to)));
                at = end;
            } else if let Some(start) = self.next_start(at) {
                at = start;
            } else {
                break;
            }
        }
        spans
    }
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
