//! The one definition of uptime, used by every screen, badge and report.
//!
//! **Uptime = 1 − downtime ÷ time probed.** Downtime is the time in confirmed outages, dated back to the first failed
//! check, and in declared incidents that count. Time probed is the time in which the monitor was up, degraded or down.
//! Time without data, paused, pending, in a maintenance window or in which no process ran is in neither. Where nothing was probed there is no
//! uptime, rather than 100 %.

use std::time::Duration;

use crate::detect::status::Health;
use crate::ids::IncidentId;
use crate::time::Timestamp;

/// From a moment until before another.
pub type Span = (Timestamp, Timestamp);

/// The health of a monitor from a moment on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HealthAt {
    /// Since when.
    pub at: Timestamp,
    /// Which.
    pub health: Health,
    /// The incident that a monitor that is down belongs to; absent if it has none.
    pub incident: Option<IncidentId>,
}

impl HealthAt {
    /// Health that belongs to no incident.
    pub const fn new(at: Timestamp, health: Health) -> Self {
        Self {
            at,
            health,
            incident: None,
        }
    }
}

/// How long a monitor was probed and down within a window.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Uptime {
    /// Time probed.
    pub probed: Duration,
    /// Downtime, at most the time probed.
    pub down: Duration,
    /// The number of outages that have downtime in the window, one for each incident. Where there is no incident, time in which
    /// nothing was seen ends none.
    pub outages: u32,
}

impl Uptime {
    /// The share of the time probed in which it was not down, `0.0..=1.0`; `None` if nothing was probed.
    pub fn ratio(&self) -> Option<f64> {
        let probed = self.probed.as_secs_f64();
        // The difference first: 1 - 1/1000 is not the number nearest to 0.999.
        (probed > 0.0).then(|| self.probed.saturating_sub(self.down).as_secs_f64() / probed)
    }

    /// The share of the window that was probed.
    pub fn coverage(&self, window: Span) -> f64 {
        let whole = window.1.since(window.0).as_secs_f64();
        if whole > 0.0 {
            self.probed.as_secs_f64() / whole
        } else {
            0.0
        }
    }
}

/// Separates outages in changes of health that come in order.
#[derive(Debug, Default)]
pub(crate) struct OutageCounter {
    is_down: bool,
    /// The incident of the last outage.
    incident: Option<IncidentId>,
    begun: u32,
}

impl OutageCounter {
    /// The number of the outage that a change belongs to, from 1 on; absent if it is none.
    ///
    /// An incident is one outage, also where its monitor was up within `hold`. Time in which nothing was seen ends no outage.
    pub(crate) fn outage_of(&mut self, change: &HealthAt) -> Option<u32> {
        if change.health == Health::NoData {
            return None;
        }
        let was_down = std::mem::replace(&mut self.is_down, change.health == Health::Down);
        if !self.is_down {
            return None;
        }
        let is_same = match (self.incident, change.incident) {
            (Some(last), Some(this)) => last == this,
            _ => was_down,
        };
        if !is_same {
            self.begun += 1;
            self.incident = None;
        }
        self.incident = change.incident.or(self.incident);
        Some(self.begun)
    }
}

/// Uptime within `window`.
///
/// - `changes`: the health from the last change before the window on, ascending.
/// - `declared`: incidents that an operator declared and that count as downtime.
/// - `excluded`: maintenance windows.
pub fn uptime(changes: &[HealthAt], declared: &[Span], excluded: &[Span], window: Span) -> Uptime {
    let overlaps = |span: &Span| span.0 < window.1 && span.1 > window.0;
    match changes {
        // As on most days of most monitors.
        [only] if !declared.iter().chain(excluded).any(overlaps) => uptime_of_one(only, window),
        _ => uptime_of_spans(changes, declared, excluded, window),
    }
}

/// The same where health does not change, and nothing else counts.
fn uptime_of_one(health: &HealthAt, (from, to): Span) -> Uptime {
    let whole = to.since(health.at.max(from));
    let is_down = health.health == Health::Down && !whole.is_zero();
    let or_none = |counts: bool| if counts { whole } else { Duration::ZERO };
    Uptime {
        probed: or_none(health.health.is_probed()),
        down: or_none(is_down),
        outages: u32::from(is_down),
    }
}

fn uptime_of_spans(
    changes: &[HealthAt],
    declared: &[Span],
    excluded: &[Span],
    (from, to): Span,
) -> Uptime {
    let ends = changes.iter().skip(1).map(|change| change.at);
    let ends = ends.chain([to]);
    let mut probed = Vec::new();
    let mut down = Vec::new();
    let (mut of_outages, mut counter) = (Vec::new(), OutageCounter::default());
    for (change, end) in changes.iter().zip(ends) {
        let span = (change.at.max(from), end.min(to));
        if span.0 >= span.1 {
            continue;
        }
        if change.health.is_probed() {
            probed.push(span);
        }
        if let Some(outage) = counter.outage_of(change) {
            down.push(span);
            of_outages.push((outage, span));
        }
    }
    let probed = without(&united(probed), &united(excluded.to_vec()));
    // Numbers ascend.
    of_outages.retain(|(_, span)| !within(&probed, *span).is_empty());
    of_outages.dedup_by_key(|(outage, _)| *outage);
    let outages = u32::try_from(of_outages.len()).unwrap_or(u32::MAX);
    down.extend(declared.iter().copied());
    let down = common(&united(down), &probed);
    Uptime {
        probed: length(&probed),
        down: length(&down),
        outages,
    }
}

/// The uptime of each day between two midnights.
///
/// - `excluded`: in order and apart.
/// - `days`: their borders, ascending, one more than days.
pub fn by_day(
    changes: &[HealthAt],
    declared: &[Span],
    excluded: &[Span],
    days: &[Timestamp],
) -> Vec<Uptime> {
    let windows = days.windows(2).map(|pair| (pair[0], pair[1]));
    windows
        .map(|window| {
            // The change before the window says what it began with.
            let first = changes.partition_point(|change| change.at <= window.0);
            let last = changes.partition_point(|change| change.at < window.1);
            let changes = &changes[first.saturating_sub(1)..last.max(first)];
            uptime(changes, declared, within(excluded, window), window)
        })
        .collect()
}

/// Those of `spans`, in order and apart, that overlap a window.
pub fn within(spans: &[Span], window: Span) -> &[Span] {
    let first = spans.partition_point(|span| span.1 <= window.0);
    let last = spans.partition_point(|span| span.0 < window.1);
    &spans[first..last.max(first)]
}

fn length(spans: &[Span]) -> Duration {
    spans.iter().map(|(from, to)| to.since(*from)).sum()
}

/// The same time, ascending and apart: spans that overlap or meet are one.
pub(crate) fn united(mut spans: Vec<Span>) -> Vec<Span> {
    spans.retain(|(from, to)| from < to);
    spans.sort_unstable();
    let mut all: Vec<Span> = Vec::with_capacity(spans.len());
    for (from, to) in spans {
        match all.last_mut() {
            Some(last) if from <= last.1 => last.1 = last.1.max(to),
            _ => all.push((from, to)),
        }
    }
    all
}

/// The intersection; both ascending and apart.
fn common(one: &[Span], other: &[Span]) -> Vec<Span> {
    let (mut first, mut second) = (0, 0);
    let mut all = Vec::new();
    while let (Some(a), Some(b)) = (one.get(first), other.get(second)) {
        let span = (a.0.max(b.0), a.1.min(b.1));
        if span.0 < span.1 {
            all.push(span);
        }
        if a.1 < b.1 {
            first += 1;
        } else {
            second += 1;
        }
    }
    all
}

/// The difference of `spans` and `holes`; both ascending and apart.
fn without(spans: &[Span], holes: &[Span]) -> Vec<Span> {
    let mut all = Vec::new();
    for &(mut from, to) in spans {
        for &(hole_from, hole_to) in within(holes, (from, to)) {
            if hole_from > from {
                all.push((from, hole_from));
            }
            from = hole_to;
        }
        if from < to {
            all.push((from, to));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp(seconds * 1000)
    }

    fn changes(list: &[(i64, Health)]) -> Vec<HealthAt> {
        let change = |(seconds, health): &(i64, Health)| HealthAt::new(at(*seconds), *health);
        list.iter().map(change).collect()
    }

    fn seconds(uptime: Uptime) -> (u64, u64) {
        (uptime.probed.as_secs(), uptime.down.as_secs())
    }

    #[test]
    fn downtime_is_time_in_outages_over_time_probed() {
        let changes = changes(&[
            (-50, Health::Up),
            (10, Health::Down),
            (20, Health::Degraded),
            (40, Health::NoData),
            (60, Health::Up),
            (80, Health::Paused),
        ]);
        let window = (at(0), at(100));
        let plain = uptime(&changes, &[], &[], window);
        assert_eq!(seconds(plain), (60, 10));
        assert_eq!(plain.outages, 1);
        assert!((plain.ratio().unwrap() - 5.0 / 6.0).abs() < 1e-12);
        assert!((plain.coverage(window) - 0.6).abs() < 1e-12);
        // Declared downtime counts where it was probed, and not twice.
        let declared = [(at(15), at(25)), (at(45), at(55))];
        assert_eq!(seconds(uptime(&changes, &declared, &[], window)), (60, 15));
        // Maintenance is in neither.
        let excluded = [(at(5), at(12)), (at(10), at(14))];
        assert_eq!(seconds(uptime(&changes, &[], &excluded, window)), (51, 6));
    }

    #[test]
    fn without_probes_there_is_no_uptime() {
        let none = uptime(&changes(&[(0, Health::Paused)]), &[], &[], (at(0), at(10)));
        assert_eq!(none.ratio(), None);
        assert_eq!(uptime(&[], &[], &[], (at(0), at(10))).ratio(), None);
    }

    proptest! {
        #[test]
        fn health_that_does_not_change_is_measured_like_any(
            at_second in -50_i64..150,
            health in 0_usize..6,
            declared in prop::collection::vec((-100_i64..150, 0_i64..100), 0..2),
            excluded in prop::collection::vec((-100_i64..150, 0_i64..100), 0..2),
        ) {
            let changes = [HealthAt::new(at(at_second), Health::ALL[health])];
            let spans = |list: Vec<(i64, i64)>| -> Vec<Span> {
                list.into_iter().map(|(from, length)| (at(from), at(from + length))).collect()
            };
            let (declared, excluded) = (spans(declared), united(spans(excluded)));
            let window = (at(0), at(100));
            prop_assert_eq!(
                uptime(&changes, &declared, &excluded, window),
                uptime_of_spans(&changes, &declared, &excluded, window)
            );
        }

        /// Parts add up to the whole, and downtime never exceeds the time probed.
        #[test]
        fn days_add_up(
            lengths in prop::collection::vec((0_i64..5_000, 0_usize..6), 0..30),
            declared in prop::collection::vec((0_i64..50_000, 0_i64..5_000), 0..4),
            excluded in prop::collection::vec((0_i64..50_000, 0_i64..5_000), 0..4),
            cut in 1_i64..50_000,
        ) {
            let mut now = 0;
            let mut all = Vec::new();
            for (length, health) in lengths {
                all.push(HealthAt::new(at(now), Health::ALL[health]));
                now += length;
            }
            let spans = |list: Vec<(i64, i64)>| -> Vec<Span> {
                list.into_iter().map(|(from, length)| (at(from), at(from + length))).collect()
            };
            let (declared, excluded) = (spans(declared), united(spans(excluded)));
            let whole = uptime(&all, &declared, &excluded, (at(0), at(50_000)));
            let parts = by_day(&all, &declared, &excluded, &[at(0), at(cut), at(50_000)]);
            prop_assert_eq!(parts[0].probed + parts[1].probed, whole.probed);
            prop_assert_eq!(parts[0].down + parts[1].down, whole.down);
            prop_assert!(whole.down <= whole.probed);
        }
    }
}
