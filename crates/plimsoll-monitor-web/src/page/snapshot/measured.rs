//! Uptime and bars of a monitor from its changes of health.

use std::time::Duration;

use plimsoll_monitor::config::MonitorPlan;
use plimsoll_monitor::detect::excluded::excluded;
use plimsoll_monitor::detect::status::Health;
use plimsoll_monitor::detect::uptime::{HealthAt, Span, Uptime, by_day, uptime, within};
use plimsoll_monitor::store::{Declared, MonitorId, declared_downtime};
use plimsoll_monitor::time::Timestamp;

use super::{Day, NEAR, State};

/// From how much downtime on a bar has a colour: some downtime makes it yellow.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Grades {
    /// Orange.
    orange: Duration,
    /// Red.
    red: Duration,
}

impl Grades {
    /// Of a day.
    pub(crate) const DAY: Self = Self {
        orange: Duration::from_mins(20),
        red: Duration::from_hours(1),
    };

    /// Of an hour.
    pub(crate) const HOUR: Self = Self {
        orange: Duration::from_mins(5),
        red: Duration::from_mins(20),
    };
}

/// Uptime and bars of a monitor.
pub(crate) struct Measured {
    pub(crate) uptime: Uptime,
    pub(super) near: Uptime,
    /// One for each pair of borders.
    pub(crate) days: Vec<Day>,
}

impl Measured {
    /// - `borders`: of the bars; the last one is the present time.
    /// - `changes`: of health, from the last one before the first bar on.
    pub(crate) fn from_health(
        id: MonitorId,
        plan: &MonitorPlan,
        changes: &[HealthAt],
        declared: &[Declared],
        borders: &[Timestamp],
        grades: Grades,
    ) -> Self {
        let (Some(from), Some(now)) = (borders.first(), borders.last()) else {
            return Self {
                uptime: Uptime::default(),
                near: Uptime::default(),
                days: Vec::new(),
            };
        };
        let whole = (*from, *now);
        // The last border is `now`.
        let near_from = borders.iter().rev().nth(NEAR).copied().unwrap_or(*from);
        let counted = declared_downtime(declared, id, *now);
        let excluded = excluded(&plan.windows, whole);
        let days = by_day(changes, &counted, &excluded, borders);
        let windows = borders.windows(2).map(|pair| (pair[0], pair[1]));
        let days = windows
            .zip(days)
            .map(|(window, measured)| day(changes, &excluded, window, measured, grades));
        Self {
            uptime: uptime(changes, &counted, &excluded, whole),
            near: uptime(changes, &counted, &excluded, (near_from, *now)),
            days: days.collect(),
        }
    }
}

fn day(
    changes: &[HealthAt],
    excluded: &[Span],
    window: Span,
    measured: Uptime,
    grades: Grades,
) -> Day {
    let degraded = degraded(changes, window);
    let is_known = changes.first().is_some_and(|first| first.at < window.1);
    let is_maintained = is_known && !within(excluded, window).is_empty();
    let state = match measured.down {
        _ if measured.probed.is_zero() && is_maintained => State::Maintenance,
        _ if measured.probed.is_zero() => State::Unknown,
        down if down >= grades.red => State::Major,
        down if down >= grades.orange => State::Partial,
        down if !down.is_zero() || !degraded.is_zero() => State::Degraded,
        _ => State::Operational,
    };
    Day {
        state,
        down: measured.down,
        degraded,
    }
}

fn degraded(changes: &[HealthAt], (from, to): Span) -> Duration {
    let ends = changes.iter().skip(1).map(|change| change.at).chain([to]);
    let spans = changes.iter().zip(ends);
    let spans = spans.filter(|(change, _)| change.health == Health::Degraded);
    spans
        .map(|(change, end)| end.min(to).since(change.at.max(from)))
        .sum()
}
