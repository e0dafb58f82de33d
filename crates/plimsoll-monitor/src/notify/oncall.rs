//! On-call rotations with overrides, as a pure function of the time. Nothing of it is stored.
//!
//! Members are channels of notices. A channel that is a member of a rotation gets what opens while it is on call, and the
//! end of that.

mod layer;

use std::time::Duration;

use jiff::tz::TimeZone;
use plimsoll_model::Secret;

use crate::store::Source;
use crate::time::{Timestamp, calendar};
use crate::token::ApiToken;

pub(crate) use crate::notify::oncall::layer::{Hours, Layer, Turn};

/// How far the calendar goes back and ahead.
const BACK: Duration = Duration::from_hours(30 * 24);
const AHEAD: Duration = Duration::from_hours(90 * 24);

/// A rotation.
#[derive(Debug, Clone, PartialEq)]
pub struct OnCallPlan {
    /// Its name.
    pub name: String,
    /// Source of the definition.
    pub source: Source,
    pub(crate) zone: TimeZone,
    /// At least one. The last one that is in force counts; the first one always is.
    pub(crate) layers: Vec<Layer>,
    /// The last one that is in force counts, before all layers.
    pub(crate) overrides: Vec<Override>,
    /// In the URL of its calendar.
    pub(crate) token: Option<Secret>,
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
        if let Some(one) = overrides.find(|one| one.from <= at && at < one.until) {
            return &one.who;
        }
        let mut layers = self.layers.iter().rev();
        let layer = layers.find(|layer| layer.is_in_force(at, &self.zone));
        layer.map_or("", |layer| layer.who(at, &self.zone))
    }

    /// Whether a channel takes turns, or replaces one that does.
    pub(crate) fn names(&self, channel: &str) -> bool {
        let replacements = self.overrides.iter().map(|one| &one.who);
        let members = self.layers.iter().flat_map(|layer| &layer.members);
        members.chain(replacements).any(|who| who == channel)
    }

    /// The members on call from `from` until `to`, without gaps; the first and the last are cut off there.
    pub fn shifts(&self, from: Timestamp, to: Timestamp) -> Vec<Shift> {
        let mut borders = vec![from, to];
        for layer in &self.layers {
            layer.borders((from, to), &self.zone, &mut borders);
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
    pub fn has_token(&self, given: &str) -> bool {
        let token = self.token.as_ref();
        token.is_some_and(|token| ApiToken::hash_of(token.expose()) == ApiToken::hash_of(given))
    }

    /// The shifts of the last and the next months (RFC 5545).
    pub fn calendar(&self, now: Timestamp) -> String {
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
