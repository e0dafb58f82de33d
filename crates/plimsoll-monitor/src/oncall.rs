//! Who is on call: rotations with overrides, as a pure function of the time. Nothing of it is stored.
//!
//! Members are channels of notices. A channel that is a member of a rotation gets what opens while it is on call, and the
//! end of that.

mod config;

use std::time::Duration;

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{Span, ToSpan as _};
use plimsoll_model::Secret;

use crate::config::ApiToken;
use crate::page::calendar;
use crate::timestamp::Timestamp;

pub(crate) use crate::oncall::config::compile;

/// Shifts of one look.
const MOST_SHIFTS: usize = 5_000;

/// How far the calendar goes back and ahead.
const BACK: Duration = Duration::from_hours(30 * 24);
const AHEAD: Duration = Duration::from_hours(90 * 24);

/// A rotation.
#[derive(Debug, Clone, PartialEq)]
pub struct OnCallPlan {
    /// Its name.
    pub name: String,
    pub(crate) zone: TimeZone,
    /// Names of channels, in the order of their turns; at least one.
    pub(crate) members: Vec<String>,
    pub(crate) turn: Turn,
    /// When the turn of the first member began or begins, by the clock of the zone.
    pub(crate) start: DateTime,
    /// The last one that is in force counts.
    pub(crate) overrides: Vec<Override>,
    /// In the URL of its calendar.
    pub(crate) token: Option<Secret>,
}

/// How long a turn lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Days, from one clock time to the same, so that a change to summer time does not move it.
    Days(i64),
    /// A time, at least an hour.
    Time(Duration),
}

/// Another member for a while.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Override {
    pub(crate) who: String,
    pub(crate) from: Timestamp,
    pub(crate) until: Timestamp,
}

/// Somebody's time on call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shift {
    /// The channel.
    pub who: String,
    /// From when.
    pub from: Timestamp,
    /// Until when.
    pub until: Timestamp,
}

impl OnCallPlan {
    /// The channel that is on call.
    pub fn who(&self, at: Timestamp) -> &str {
        let mut overrides = self.overrides.iter().rev();
        match overrides.find(|one| one.from <= at && at < one.until) {
            Some(one) => &one.who,
            None => self.member(self.turn_at(at)),
        }
    }

    /// Whether a channel takes turns, or replaces one that does.
    pub(crate) fn names(&self, channel: &str) -> bool {
        let replacements = self.overrides.iter().map(|one| &one.who);
        self.members
            .iter()
            .chain(replacements)
            .any(|who| who == channel)
    }

    fn member(&self, turn: i64) -> &str {
        let count = i64::try_from(self.members.len()).unwrap_or(1).max(1);
        let index = usize::try_from(turn.rem_euclid(count)).unwrap_or(0);
        self.members.get(index).map_or("", String::as_str)
    }

    /// The number of the turn, from 0 at the start; before it they are negative.
    fn turn_at(&self, at: Timestamp) -> i64 {
        match self.turn {
            Turn::Days(days) => {
                let local = at.to_jiff().to_zoned(self.zone.clone()).datetime();
                let since = self.start.date().until(local.date());
                let whole = i64::from(since.map_or(0, |span| span.get_days()));
                let is_before = local.time() < self.start.time();
                (whole - i64::from(is_before)).div_euclid(days)
            }
            Turn::Time(length) => {
                let millis = i64::try_from(length.as_millis()).unwrap_or(i64::MAX).max(1);
                (at.0.saturating_sub(self.begin(0).0)).div_euclid(millis)
            }
        }
    }

    /// When a turn begins.
    fn begin(&self, turn: i64) -> Timestamp {
        let date = |start: DateTime| {
            let zoned = start.to_zoned(self.zone.clone()).ok();
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

    /// Who is on call from `from` until `to`, without gaps; the first and the last are cut off there.
    pub fn shifts(&self, from: Timestamp, to: Timestamp) -> Vec<Shift> {
        let mut borders = vec![from, to];
        let mut turn = self.turn_at(from);
        while borders.len() < MOST_SHIFTS {
            turn += 1;
            let begin = self.begin(turn);
            if begin >= to {
                break;
            }
            borders.push(begin);
        }
        let edges = self.overrides.iter().flat_map(|one| [one.from, one.until]);
        borders.extend(edges);
        borders.retain(|at| (from..=to).contains(at));
        borders.sort_unstable();
        borders.dedup();
        let mut shifts: Vec<Shift> = Vec::new();
        for pair in borders.windows(2) {
            let who = self.who(pair[0]);
            match shifts.last_mut() {
                Some(last) if last.who == who => last.until = pair[1],
                _ => shifts.push(Shift {
                    who: who.to_owned(),
                    from: pair[0],
                    until: pair[1],
                }),
            }
        }
        shifts
    }

    /// Whether this is the token of the calendar's URL.
    pub(crate) fn has_token(&self, given: &str) -> bool {
        let token = self.token.as_ref();
        token.is_some_and(|token| ApiToken::hash_of(token.expose()) == ApiToken::hash_of(given))
    }

    /// The shifts of the last and the next months (RFC 5545).
    pub(crate) fn calendar(&self, now: Timestamp) -> String {
        // The same entries all day long.
        let now = now.floor(86_400_000);
        let events = self.shifts(now.minus(BACK), now.plus(AHEAD));
        let events = events.iter().map(|shift| calendar::Event {
            uid: format!("{}-{}@plimsoll", shift.from.0, self.name),
            from: shift.from,
            to: shift.until,
            summary: format!("{}: {}", self.name, shift.who),
            description: None,
            url: None,
        });
        calendar::text(&self.name, events)
    }
}

#[cfg(test)]
mod tests;
