//! The one definition of uptime, used by every screen, badge and report.
//!
//! **Uptime = 1 − downtime ÷ time probed.** Downtime is the time in confirmed outages, dated back to the first failed
//! check, and in declared incidents that count. Time probed is the time in which the monitor was up, degraded or down.
//! Time without data, paused, pending or in a maintenance window is in neither. Where nothing was probed there is no
//! uptime, rather than 100 %.

use std::time::Duration;

use crate::status::Health;
use crate::timestamp::Timestamp;

/// From a moment until before another.
pub type Span = (Timestamp, Timestamp);

/// The health of a monitor from a moment on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HealthAt {
    /// Since when.
    pub at: Timestamp,
    /// Which.
    pub health: Health,
}

/// How long a monitor was probed and down within a window.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Uptime {
    /// Time probed.
    pub probed: Duration,
    /// Downtime, at most the time probed.
    pub down: Duration,
    /// The number of outages that began in the window or reached into it.
    pub outages: u32,
}

impl Uptime {
    /// The share of the time probed in which it was not down, `0.0..=1.0`; `None` if nothing was probed.
    pub fn ratio(&self) -> Option<f64> {
        let probed = self.probed.as_secs_f64();
        (probed > 0.0).then(|| 1.0 - self.down.as_secs_f64() / probed)
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

/// Uptime within `window`.
///
/// - `changes`: the health from the last change before the window on, ascending.
/// - `declared`: incidents that an operator declared and that count as downtime.
/// - `excluded`: maintenance windows.
pub fn uptime(changes: &[HealthAt], declared: &[Span], excluded: &[Span], window: Span) -> Uptime {
    let (from, to) = window;
    let ends = changes.iter().skip(1).map(|change| change.at);
    let ends = ends.chain([to]);
    let mut probed = Vec::new();
    let mut down = Vec::new();
    for (change, end) in changes.iter().zip(ends) {
        let span = (change.at.max(from), end.min(to));
        if span.0 >= span.1 || !change.health.is_probed() {
            continue;
        }
        probed.push(span);
        if change.health == Health::Down {
            down.push(span);
        }
    }
    let probed = without(&united(probed), &united(excluded.to_vec()));
    let outages = united(down.clone()).len();
    down.extend(declared.iter().copied());
    let down = common(&united(down), &probed);
    Uptime {
        probed: length(&probed),
        down: length(&down),
        outages: u32::try_from(outages).unwrap_or(u32::MAX),
    }
}

/// The uptime of each day between two midnights.
///
/// - `days`: their borders, ascending, one more than days.
pub fn by_day(
    changes: &[HealthAt],
    declared: &[Span],
    excluded: &[Span],
    days: &[Timestamp],
) -> Vec<Uptime> {
    let windows = days.windows(2).map(|pair| (pair[0], pair[1]));
    windows
        .map(|window| uptime(changes, declared, excluded, window))
        .collect()
}

fn length(spans: &[Span]) -> Duration {
    spans.iter().map(|(from, to)| to.since(*from)).sum()
}

/// Ascending and apart.
fn united(mut spans: Vec<Span>) -> Vec<Span> {
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

/// What both have; both ascending and apart.
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

/// What of `spans` is not in `holes`; both ascending and apart.
fn without(spans: &[Span], holes: &[Span]) -> Vec<Span> {
    let mut all = Vec::new();
    for &(mut from, to) in spans {
        for &(hole_from, hole_to) in holes {
            if hole_to <= from || hole_from >= to {
                continue;
            }
            if hole_from > from {
                all.push((from, hole_from));
            }
            from = hole_to.max(from);
        }
        if from < to {
            all.push((from, to));
        }
    }
    all
}

/// A service level objective: so much uptime within a rolling window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Objective {
    /// The share of the time that must be up, `0.0..1.0`, such as 0.999.
    pub target: f64,
    /// The rolling window, such as 30 days.
    pub window: Duration,
}

/// What an objective came to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Budget {
    /// Downtime that the objective allows in the window.
    pub allowed: Duration,
    /// Downtime so far.
    pub spent: Duration,
    /// The share of the allowed downtime that is left; negative once it is overspent.
    pub left: f64,
}

/// How fast the error budget is spent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Burn {
    /// The budget lasts for the window.
    Fine,
    /// The budget ends early: 5 % of a 30-day budget in 6 hours.
    Slow,
    /// The budget ends soon: 2 % of a 30-day budget in an hour.
    Fast,
}

impl Objective {
    /// The budget at the end of `uptime`'s window.
    pub fn budget(&self, uptime: &Uptime) -> Budget {
        let allowed = self.window.mul_f64((1.0 - self.target).clamp(0.0, 1.0));
        let left = if allowed.is_zero() {
            0.0
        } else {
            1.0 - uptime.down.as_secs_f64() / allowed.as_secs_f64()
        };
        Budget {
            allowed,
            spent: uptime.down,
            left,
        }
    }

    /// Whether the budget burns too fast at `now`.
    ///
    /// Source: Google, "The Site Reliability Workbook" (2018), chapter 5, multiwindow, multi-burn-rate alerts: 14.4 over
    /// 1 h and 5 min, 6 over 6 h and 30 min, for a window of 30 days; other windows are in proportion. Both windows of
    /// a pair must exceed the rate; nothing is reported before one long window was probed.
    pub fn burn(
        &self,
        changes: &[HealthAt],
        declared: &[Span],
        excluded: &[Span],
        now: Timestamp,
    ) -> Burn {
        const RULES: [(Burn, f64, u64, u64); 2] = [
            (Burn::Fast, 14.4, 3_600, 300),
            (Burn::Slow, 6.0, 21_600, 1_800),
        ];
        const MONTH: f64 = 30.0 * 86_400.0;

        let allowed = (1.0 - self.target).max(f64::EPSILON);
        let scale = self.window.as_secs_f64() / MONTH;
        for (burn, rate, long, short) in RULES {
            let exceeds = |seconds: u64| {
                let length = Duration::from_secs(seconds);
                let found = uptime(changes, declared, excluded, (now.minus(length), now));
                let spent = 1.0 - found.ratio().unwrap_or(1.0);
                spent / allowed >= rate * scale
            };
            let since = changes.iter().find(|change| change.health.is_probed());
            let is_old =
                since.is_some_and(|since| since.at <= now.minus(Duration::from_secs(long)));
            if is_old && exceeds(long) && exceeds(short) {
                return burn;
            }
        }
        Burn::Fine
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp(seconds * 1000)
    }

    fn changes(list: &[(i64, Health)]) -> Vec<HealthAt> {
        let change = |(seconds, health): &(i64, Health)| HealthAt {
            at: at(*seconds),
            health: *health,
        };
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

    #[test]
    fn budgets_are_signed_and_burn_rates_need_both_windows() {
        let objective = Objective {
            target: 0.999,
            window: Duration::from_hours(720),
        };
        let overspent = Uptime {
            probed: objective.window,
            down: Duration::from_secs(5_184),
            outages: 1,
        };
        let budget = objective.budget(&overspent);
        assert_eq!(budget.allowed, Duration::from_secs(2_592));
        assert!((budget.left + 1.0).abs() < 1e-9);
        let now = at(100_000);
        let burn = |list: &[(i64, Health)]| objective.burn(&changes(list), &[], &[], now);
        // 14.4 × 0.1 % of an hour is 52 s.
        assert_eq!(burn(&[(0, Health::Up), (99_900, Health::Down)]), Burn::Fast);
        assert_eq!(
            burn(&[
                (0, Health::Up),
                (99_500, Health::Down),
                (99_600, Health::Up)
            ]),
            Burn::Fine,
            "it is over: the short window is clean"
        );
        // 6 × 0.1 % of six hours is 130 s, but less than 52 s within the last hour.
        assert_eq!(
            burn(&[
                (0, Health::Up),
                (90_000, Health::Down),
                (90_100, Health::Up),
                (99_960, Health::Down),
            ]),
            Burn::Slow
        );
        assert_eq!(
            burn(&[(99_000, Health::Up), (99_900, Health::Down)]),
            Burn::Fine,
            "too young"
        );
    }

    proptest! {
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
                all.push(HealthAt { at: at(now), health: Health::ALL[health] });
                now += length;
            }
            let spans = |list: Vec<(i64, i64)>| -> Vec<Span> {
                list.into_iter().map(|(from, length)| (at(from), at(from + length))).collect()
            };
            let (declared, excluded) = (spans(declared), spans(excluded));
            let whole = uptime(&all, &declared, &excluded, (at(0), at(50_000)));
            let parts = by_day(&all, &declared, &excluded, &[at(0), at(cut), at(50_000)]);
            prop_assert_eq!(parts[0].probed + parts[1].probed, whole.probed);
            prop_assert_eq!(parts[0].down + parts[1].down, whole.down);
            prop_assert!(whole.down <= whole.probed);
        }
    }
}
