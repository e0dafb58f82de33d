//! A layer of a rotation: members that take turns, all the time or within hours of a week. Pure.

use std::time::Duration;

use jiff::civil::{Date, DateTime, Time, Weekday};
use jiff::tz::TimeZone;
use jiff::{Span, ToSpan as _};

use crate::time::Timestamp;

/// Borders of one look.
const MOST_BORDERS: usize = 5_000;

/// Members that take turns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Layer {
    /// Names of channels, in the order of their turns; at least one.
    pub(crate) members: Vec<String>,
    pub(crate) turn: Turn,
    /// When the turn of the first member began or begins, by the clock of the zone.
    pub(crate) start: DateTime,
    /// When it is in force; absent for always.
    pub(crate) hours: Option<Hours>,
}

/// How long a turn lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Days, from one clock time to the same, so that a change to summer time does not move it.
    Days(i64),
    /// A time, at least an hour.
    Time(Duration),
}

/// Hours of a week, by the clock of the zone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hours {
    /// On which days they begin.
    pub(crate) days: Vec<Weekday>,
    pub(crate) from: Time,
    /// Until before it; on the next day if it is not after `from`.
    pub(crate) to: Time,
}

impl Hours {
    fn contain(&self, local: DateTime) -> bool {
        let begins_on = |date: Date| self.days.contains(&date.weekday());
        let (date, time) = (local.date(), local.time());
        if self.from < self.to {
            return begins_on(date) && (self.from..self.to).contains(&time);
        }
        let is_of_yesterday = time < self.to && date.yesterday().is_ok_and(begins_on);
        is_of_yesterday || (time >= self.from && begins_on(date))
    }
}

impl Layer {
    pub(super) fn is_in_force(&self, at: Timestamp, zone: &TimeZone) -> bool {
        self.hours.as_ref().is_none_or(|hours| {
            let local = at.to_jiff().to_zoned(zone.clone()).datetime();
            hours.contain(local)
        })
    }

    /// Whose turn it is.
    pub(super) fn who(&self, at: Timestamp, zone: &TimeZone) -> &str {
        self.member(self.turn_at(at, zone))
    }

    /// Adds when turns and hours begin and end between `from` and `to`.
    pub(super) fn borders(
        &self,
        (from, to): (Timestamp, Timestamp),
        zone: &TimeZone,
        borders: &mut Vec<Timestamp>,
    ) {
        let most = borders.len() + MOST_BORDERS;
        let mut turn = self.turn_at(from, zone);
        while borders.len() < most {
            turn += 1;
            let begin = self.begin(turn, zone);
            if begin >= to {
                break;
            }
            borders.push(begin);
        }
        let Some(hours) = &self.hours else {
            return;
        };
        let last = to.to_jiff().to_zoned(zone.clone()).date();
        let mut date = from.to_jiff().to_zoned(zone.clone()).date();
        while date <= last && borders.len() < 2 * most {
            for time in [hours.from, hours.to] {
                if let Ok(zoned) = date.to_datetime(time).to_zoned(zone.clone()) {
                    borders.push(Timestamp(zoned.timestamp().as_millisecond()));
                }
            }
            match date.tomorrow() {
                Ok(next) => date = next,
                Err(_) => break,
            }
        }
    }

    fn member(&self, turn: i64) -> &str {
        let count = i64::try_from(self.members.len()).unwrap_or(1).max(1);
        let index = usize::try_from(turn.rem_euclid(count)).unwrap_or(0);
        self.members.get(index).map_or("", String::as_str)
    }

    /// The number of the turn, from 0 at the start; before it they are negative.
    fn turn_at(&self, at: Timestamp, zone: &TimeZone) -> i64 {
        match self.turn {
            Turn::Days(days) => {
                let local = at.to_jiff().to_zoned(zone.clone()).datetime();
                let since = self.start.date().until(local.date());
                let whole = i64::from(since.map_or(0, |span| span.get_days()));
                let is_before = local.time() < self.start.time();
                (whole - i64::from(is_before)).div_euclid(days)
            }
            Turn::Time(length) => {
                let millis = i64::try_from(length.as_millis()).unwrap_or(i64::MAX).max(1);
                (at.0.saturating_sub(self.begin(0, zone).0)).div_euclid(millis)
            }
        }
    }

    /// When a turn begins.
    fn begin(&self, turn: i64, zone: &TimeZone) -> Timestamp {
        let date = |start: DateTime| {
            let zoned = start.to_zoned(zone.clone()).ok();
            Timestamp(zoned.map_or(0, |zoned| zoned.timestamp().as_millisecond()))
        };
        match self.turn {
            Turn::Days(days) => {
                let later = turn.saturating_mul(days);
                let later = Span::new().try_days(later).unwrap_or_else(|_| 0.days());
                date(self.start.checked_add(later).unwrap_or(self.start))
            }
            Turn::Time(length) => {
                let millis = i64::try_from(length.as_millis()).unwrap_or(i64::MAX);
                Timestamp(
                    date(self.start)
                        .0
                        .saturating_add(turn.saturating_mul(millis)),
                )
            }
        }
    }
}
