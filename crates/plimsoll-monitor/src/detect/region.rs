//! Confirmation in one region: failures and successes in a row.

use crate::detect::status::Status;
use crate::store::timestamp::{Moment, Timestamp};

/// The state of one region.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RegionState {
    /// Failures in a row.
    bad: u32,
    /// When the first of them was.
    bad_since: Timestamp,
    /// Successes in a row.
    good: u32,
    /// When the first of them was.
    good_since: Timestamp,
    pub(super) confirmed: Option<Seen>,
    /// When the confirmed state began: with the first result of the row that confirmed it.
    pub(super) since: Timestamp,
    /// The last result of any kind.
    pub(super) last: Moment,
    /// Why it was bad the last time.
    pub(super) reason: Option<String>,
}

/// The confirmed state of a region.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Seen {
    Up,
    Degraded,
    Down,
}

impl RegionState {
    pub(super) fn new(now: Moment) -> Self {
        Self {
            bad: 0,
            bad_since: now.wall,
            good: 0,
            good_since: now.wall,
            confirmed: None,
            since: now.wall,
            last: now,
            reason: None,
        }
    }

    /// One that was down or up when the program ended.
    pub(super) fn restored(seen: Seen, since: Timestamp, now: Moment) -> Self {
        Self {
            confirmed: Some(seen),
            since,
            ..Self::new(now)
        }
    }

    pub(super) fn observe(
        &mut self,
        status: Status,
        reason: Option<String>,
        at: Timestamp,
        now: Moment,
        (confirm, recover): (u32, u32),
    ) {
        self.last = now;
        match status {
            // Says nothing about the target.
            Status::Error => {
                self.reason = reason;
            }
            Status::Down => {
                if self.bad == 0 {
                    self.bad_since = at;
                }
                self.bad = self.bad.saturating_add(1);
                self.good = 0;
                self.reason = reason;
                if self.bad >= confirm && self.confirmed != Some(Seen::Down) {
                    self.confirmed = Some(Seen::Down);
                    self.since = self.bad_since;
                }
            }
            Status::Up | Status::Degraded => {
                if self.good == 0 {
                    self.good_since = at;
                }
                self.good = self.good.saturating_add(1);
                self.bad = 0;
                let seen = match status {
                    Status::Degraded => Seen::Degraded,
                    _ => Seen::Up,
                };
                self.reason = if seen == Seen::Up { None } else { reason };
                match self.confirmed {
                    Some(Seen::Down) if self.good < recover => {}
                    Some(confirmed) if confirmed == seen => {}
                    Some(Seen::Down) | None => {
                        self.confirmed = Some(seen);
                        self.since = self.good_since;
                    }
                    Some(_) => {
                        self.confirmed = Some(seen);
                        self.since = at;
                    }
                }
            }
        }
    }
}
