//! Rows as stores take and return them.

use std::time::Duration;

use plimsoll_model::{Phase, Phases};

use crate::detect;
use crate::detect::status::{Health, Status};
use crate::detect::uptime::{HealthAt, Span};
use crate::probe::reading::{CheckResult, Judged};
use crate::store::outbox::NewNotice;
use crate::store::sketch::Sketch;
use crate::time::Timestamp;

pub use crate::ids::{IncidentId, MonitorId, OrgId};

/// A monitor to be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewMonitor {
    /// Unique in its organisation.
    pub key: String,
    /// For people.
    pub name: String,
    /// The group that it is shown in; empty for none.
    pub group: String,
    /// The kind of probe, such as `http`.
    pub kind: String,
}

/// A monitor as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MonitorRow {
    /// Its number.
    pub id: MonitorId,
    /// The monitor.
    pub monitor: NewMonitor,
    /// Who defines it.
    pub source: String,
    /// Whether an operator has paused it.
    pub paused: bool,
}

/// The state of a monitor when the program ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restored {
    /// The monitor.
    pub monitor: MonitorId,
    /// Its health.
    pub health: Health,
    /// Since when.
    pub since: Timestamp,
    /// Its open incident.
    pub incident: Option<OpenIncident>,
}

/// An incident that is open though its monitor is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Orphan {
    /// Its monitor.
    pub monitor: MonitorId,
    /// The key that it had.
    pub key: String,
    /// The name that it had.
    pub name: String,
    /// Its group; empty for none.
    pub group: String,
    /// The incident.
    pub incident: OpenIncident,
}

/// A batch of changes of one process: the store takes each number once, so that a batch whose answer was lost can be
/// written again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchNumber {
    /// The process, by a number of its own.
    pub writer: i64,
    /// Ascending.
    pub number: i64,
}

/// An incident that is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenIncident {
    /// When it opened.
    pub opened: Timestamp,
    /// Whether an operator has seen it.
    pub acknowledged: bool,
    /// Whether its opening was sent.
    pub announced: bool,
}

/// One result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResultRow {
    /// Of which monitor.
    pub monitor: MonitorId,
    /// Where the check ran: a number that the store does not interpret; 0 is this process.
    pub region: u16,
    /// When it started.
    pub at: Timestamp,
    /// The verdict.
    pub status: Status,
    /// How long it took, in microseconds.
    pub took_us: u64,
    /// The phases in microseconds: dns, connect, tls, wait, receive.
    pub phases_us: [Option<u64>; 5],
    /// The status of HTTP, or the like.
    pub code: Option<u16>,
    /// Days until the certificate expires.
    pub certificate_days: Option<i32>,
    /// Details of results that are not up.
    pub detail: Option<Detail>,
}

/// Details of results that are not up.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Detail {
    /// Why, for people.
    pub reason: Option<String>,
    /// The conditions.
    pub conditions: Vec<Judged>,
}

/// The phases that are stored.
pub(crate) const STORED_PHASES: [Phase; 5] = [
    Phase::Dns,
    Phase::Connect,
    Phase::Tls,
    Phase::Wait,
    Phase::Receive,
];

impl ResultRow {
    /// The row of a result.
    pub fn from_result(monitor: MonitorId, region: u16, result: &CheckResult) -> Self {
        let micros = |duration: Duration| u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        let has_detail = result.status != Status::Up || result.reason.is_some();
        let days = result.certificate_expires.map(|expires| {
            let days = (expires.0 - result.at.0).div_euclid(86_400_000);
            i32::try_from(days).unwrap_or(i32::MAX)
        });
        Self {
            monitor,
            region,
            at: result.at,
            status: result.status,
            took_us: micros(result.took),
            phases_us: STORED_PHASES.map(|phase| result.phases.get(phase).map(micros)),
            code: result.code,
            certificate_days: days,
            detail: has_detail.then(|| Detail {
                reason: result.reason.clone(),
                conditions: result.conditions.clone(),
            }),
        }
    }

    /// The same without details.
    #[must_use]
    pub fn without_detail(&self) -> Self {
        Self {
            detail: None,
            ..*self
        }
    }

    /// The stored phases.
    pub fn phases(&self) -> Phases {
        let mut phases = Phases::default();
        for (phase, micros) in STORED_PHASES.into_iter().zip(self.phases_us) {
            if let Some(micros) = micros {
                phases.set(phase, Duration::from_micros(micros));
            }
        }
        phases
    }
}

/// A change that must not be lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// The health of a monitor.
    Health {
        /// Which monitor.
        monitor: MonitorId,
        /// Since when.
        at: Timestamp,
        /// The health.
        health: Health,
        /// Why it is not up.
        reason: Option<String>,
    },
    /// An incident of a monitor opens; nothing happens if one is open.
    Opened {
        /// Which monitor.
        monitor: MonitorId,
        /// When the outage began.
        at: Timestamp,
        /// The reason that the check reported.
        reason: Option<String>,
    },
    /// Something happens to the open incident of a monitor; nothing happens if none is open.
    Event {
        /// Which monitor.
        monitor: MonitorId,
        /// When.
        at: Timestamp,
        /// What.
        kind: EventKind,
        /// Who did it; absent for the program.
        actor: Option<String>,
        /// The text.
        text: Option<String>,
    },
    /// Notices of a monitor are to be sent. Those about an incident are about the open one.
    Notices {
        /// Which monitor.
        monitor: MonitorId,
        /// When they were written.
        at: Timestamp,
        /// One for each channel.
        notices: Vec<NewNotice>,
    },
    /// The open incident of a monitor is over.
    Resolved {
        /// Which monitor.
        monitor: MonitorId,
        /// Since when.
        at: Timestamp,
        /// How it ended.
        by: detect::Resolution,
        /// How long the outage lasted, by a clock that never steps.
        lasted: Duration,
        /// Who did it; absent for the program.
        actor: Option<String>,
    },
    /// The health of a monitor ends at one date and goes on at another, since the clock was set back.
    SetBack {
        /// Which monitor.
        monitor: MonitorId,
        /// The date before.
        from: Timestamp,
        /// The date after.
        to: Timestamp,
    },
    /// What the next process has to know about a monitor besides its health.
    Memory {
        /// Which monitor.
        monitor: MonitorId,
        /// Which part of it.
        name: &'static str,
        /// The text, in place of the one before; absent to forget it.
        text: Option<String>,
    },
    /// No process checked anything in this time.
    Gap {
        /// Since when.
        from: Timestamp,
        /// Until when.
        to: Timestamp,
    },
}

impl Change {
    /// The monitor that it is about; absent if it is about all of the organisation.
    pub fn monitor(&self) -> Option<MonitorId> {
        match self {
            Self::Health { monitor, .. }
            | Self::Opened { monitor, .. }
            | Self::Event { monitor, .. }
            | Self::Notices { monitor, .. }
            | Self::SetBack { monitor, .. }
            | Self::Memory { monitor, .. }
            | Self::Resolved { monitor, .. } => Some(*monitor),
            Self::Gap { .. } => None,
        }
    }
}

/// The kinds of events of an incident.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventKind {
    /// It opened.
    Opened,
    /// Its opening was sent.
    Announced,
    /// An operator has seen it.
    Acknowledged,
    /// The monitor is up, and the hold runs.
    Recovering,
    /// The monitor went down inside the hold.
    Reopened,
    /// An operator wrote something.
    Note,
    /// It is over.
    Resolved,
}

impl EventKind {
    /// Every kind.
    pub const ALL: [Self; 7] = [
        Self::Opened,
        Self::Announced,
        Self::Acknowledged,
        Self::Recovering,
        Self::Reopened,
        Self::Note,
        Self::Resolved,
    ];

    /// The name in stores and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Opened => "opened",
            Self::Announced => "announced",
            Self::Acknowledged => "acknowledged",
            Self::Recovering => "recovering",
            Self::Reopened => "reopened",
            Self::Note => "note",
            Self::Resolved => "resolved",
        }
    }
}

/// An incident.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Incident {
    /// Its number.
    pub id: IncidentId,
    /// The monitor whose outage it is.
    pub monitor: MonitorId,
    /// When the outage began.
    pub opened: Timestamp,
    /// When an operator first saw it.
    pub acknowledged: Option<Timestamp>,
    /// When it was over.
    pub resolved: Option<Timestamp>,
    /// How long its outage lasted by a clock that never steps; absent while it is open, and of older versions.
    pub lasted: Option<Duration>,
    /// The name under which receivers of notices know it, for ever.
    pub key: String,
    /// The reason that the check reported when it opened.
    pub reason: Option<String>,
}

impl Incident {
    /// How long its outage lasted, or lasts at `now`.
    pub fn lasted(&self, now: Timestamp) -> Duration {
        let between = || self.resolved.unwrap_or(now).since(self.opened);
        self.lasted.unwrap_or_else(between)
    }
}

/// An entry of an incident's timeline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IncidentEvent {
    /// When.
    pub at: Timestamp,
    /// What.
    pub kind: EventKind,
    /// Who did it; absent for the program.
    pub actor: Option<String>,
    /// The text.
    pub text: Option<String>,
}

/// Which incidents.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct IncidentFilter {
    /// Of one monitor only.
    pub monitor: Option<MonitorId>,
    /// Open ones, or resolved ones, only.
    pub open: Option<bool>,
}

/// The length of a bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Resolution {
    /// One minute.
    Minute,
    /// One hour.
    Hour,
    /// One day, in UTC.
    Day,
}

impl Resolution {
    /// Every resolution, the finest first.
    pub const ALL: [Self; 3] = [Self::Minute, Self::Hour, Self::Day];

    /// Milliseconds of a bucket.
    pub const fn millis(self) -> i64 {
        match self {
            Self::Minute => 60_000,
            Self::Hour => 3_600_000,
            Self::Day => 86_400_000,
        }
    }

    /// The name in text and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Minute => "minute",
            Self::Hour => "hour",
            Self::Day => "day",
        }
    }
}

/// The results of a monitor within a bucket.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rollup {
    /// When the bucket begins.
    pub start: Timestamp,
    /// Results by status: up, degraded, down, error.
    pub counts: [u64; 4],
    /// The durations of checks that were up or degraded, in microseconds.
    pub took: Sketch,
    /// Sums of the stored phases, in microseconds.
    pub phases_us: [u64; 5],
}

impl Rollup {
    /// Buckets of `millis` milliseconds from finer ones, which are in order.
    pub fn merged(finer: &[Self], millis: i64) -> Vec<Self> {
        let mut all: Vec<Self> = Vec::new();
        for rollup in finer {
            let start = rollup.start.floor(millis);
            match all.last_mut() {
                Some(last) if last.start == start => last.merge(rollup),
                _ => {
                    let mut first = Self::at(start);
                    first.merge(rollup);
                    all.push(first);
                }
            }
        }
        all
    }

    /// An empty bucket.
    pub fn at(start: Timestamp) -> Self {
        Self {
            start,
            ..Self::default()
        }
    }

    /// All results.
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The mean times of the stored phases in microseconds, over all checks that were up or degraded; `None` without any.
    pub fn mean_phases(&self) -> Option<[(Phase, f64); 5]> {
        let count = self.took.count();
        if count == 0 {
            return None;
        }
        let mut means = STORED_PHASES.map(|phase| (phase, 0.0));
        for ((_, mean), sum) in means.iter_mut().zip(self.phases_us) {
            *mean = sum as f64 / count as f64;
        }
        Some(means)
    }

    /// Adds a result.
    pub fn add(&mut self, row: &ResultRow) {
        self.counts[usize::from(row.status.code())] += 1;
        if matches!(row.status, Status::Up | Status::Degraded) {
            self.took.add(row.took_us);
            for (sum, micros) in self.phases_us.iter_mut().zip(row.phases_us) {
                *sum = sum.saturating_add(micros.unwrap_or(0));
            }
        }
    }

    /// Adds another bucket.
    pub fn merge(&mut self, other: &Self) {
        for (count, more) in self.counts.iter_mut().zip(other.counts) {
            *count += more;
        }
        for (sum, more) in self.phases_us.iter_mut().zip(other.phases_us) {
            *sum = sum.saturating_add(more);
        }
        self.took.merge(&other.took);
    }
}

/// The history of a monitor for a status page.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MonitorHistory {
    /// Its health, ascending.
    pub health: Vec<HealthAt>,
    /// Its results by hour, ascending; `None` while the database of results is away.
    pub hours: Option<Vec<Rollup>>,
}

impl MonitorHistory {
    /// The health from the last change before `from` on, until before `to`.
    pub fn health_within(&self, (from, to): Span) -> &[HealthAt] {
        let before = self.health.partition_point(|change| change.at < from);
        let end = self.health.partition_point(|change| change.at < to);
        self.health
            .get(before.saturating_sub(1)..end)
            .unwrap_or_default()
    }

    /// The hours from the one that `from` is in until before `to`; none while the database of results is away.
    pub fn hours_within(&self, (from, to): Span) -> &[Rollup] {
        let hours = self.hours.as_deref().unwrap_or_default();
        let first = from.floor(Resolution::Hour.millis());
        let begin = hours.partition_point(|hour| hour.start < first);
        let end = hours.partition_point(|hour| hour.start < to);
        hours.get(begin..end).unwrap_or_default()
    }
}

/// How long data is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// Raw results.
    pub raw: Duration,
    /// Buckets of a minute.
    pub minutes: Duration,
    /// Buckets of an hour.
    pub hours: Duration,
    /// Buckets of a day.
    pub days: Duration,
}

impl Default for Retention {
    fn default() -> Self {
        const DAY: u64 = 24;

        Self {
            raw: Duration::from_hours(7 * DAY),
            minutes: Duration::from_hours(30 * DAY),
            hours: Duration::from_hours(400 * DAY),
            days: Duration::from_hours(10 * 366 * DAY),
        }
    }
}

impl Retention {
    /// How long buckets of a resolution are kept.
    pub fn age(&self, resolution: Resolution) -> Duration {
        match resolution {
            Resolution::Minute => self.minutes,
            Resolution::Hour => self.hours,
            Resolution::Day => self.days,
        }
    }
}

/// The work of an upkeep.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Upkeep {
    /// Buckets that were completed.
    pub rolled: u64,
    /// Rows that were deleted.
    pub deleted: u64,
}
