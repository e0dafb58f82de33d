//! Confirmation in one region: failures and successes in a row.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::detect::status::Status;
use crate::time::{Moment, Timestamp};

/// The state of one region.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RegionState {
    /// Failures in a row, counted up to the number that confirms an outage.
    bad: u32,
    /// When the first of them was.
    bad_since: Moment,
    /// Successes in a row, counted up to the number that confirms the end of an outage.
    good: u32,
    /// When the first of them was.
    good_since: Moment,
    pub(super) confirmed: Option<Seen>,
    /// When the confirmed state began: with the first result of the row that confirmed it.
    pub(super) since: Moment,
    /// The last result of any kind. Silence is measured from the start of the process at the earliest.
    #[serde(skip)]
    pub(super) last: Moment,
    /// Why it was bad the last time.
    pub(super) reason: Option<String>,
}

/// The confirmed state of a region.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Seen {
    Up,
    Degraded,
    Down,
}

impl RegionState {
    pub(super) fn new(now: Moment) -> Self {
        Self {
            bad: 0,
            bad_since: now,
            good: 0,
            good_since: now,
            confirmed: None,
            since: now,
            last: now,
            reason: None,
        }
    }

    /// One that was down or up when the program ended, of which nothing else is stored.
    pub(super) fn restored(seen: Seen, since: Moment, now: Moment) -> Self {
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
        at: Moment,
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
                self.bad = self.bad.saturating_add(1).min(confirm);
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
                self.good = self.good.saturating_add(1).min(recover);
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

    /// The moments that are remembered.
    pub(super) fn moments(&mut self) -> [&mut Moment; 3] {
        [&mut self.bad_since, &mut self.good_since, &mut self.since]
    }
}

/// The moment of a date that lies before `now`, if no clock has stepped in between.
pub(super) fn moment_of(at: Timestamp, now: Moment) -> Moment {
    /// Results of agents come later, but not by more than they are kept for.
    const OLDEST: Duration = Duration::from_hours(24);

    Moment {
        elapsed: now.elapsed.saturating_sub(now.wall.since(at).min(OLDEST)),
        wall: at,
    }
}
