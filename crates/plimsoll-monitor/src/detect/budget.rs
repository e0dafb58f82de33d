//! Error budgets: how much downtime an objective leaves, and whether it is used up too fast. Pure.
//!
//! Source: Beyer and others, "The Site Reliability Workbook", chapter 5, multi-window, multi-burn-rate alerts. A rule
//! fires while the budget burns at its rate over a long window and a short one, so that it fires early and ends soon
//! after the outage.

use std::time::Duration;

use plimsoll_model::document::{Table, Value, as_text};

use crate::detect::uptime::{HealthAt, Span, Uptime, uptime};
use crate::time::Timestamp;

/// An objective of uptime.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Slo {
    /// The share of time in which it is up, above 0 and below 1.
    pub target: f64,
    /// Over this time.
    pub window: Duration,
}

/// A rule of alerts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rule {
    /// The longer one of its windows.
    pub long: Duration,
    short: Duration,
    /// How many times as fast as would use the budget up exactly.
    pub rate: f64,
}

const HOUR: u64 = 60;

/// The fastest first: 2 % of a budget of 30 days in an hour, 5 % in 6 hours, 10 % in 3 days.
const RULES: [Rule; 3] = [
    rule(HOUR, 5, 14.4),
    rule(6 * HOUR, 30, 6.0),
    rule(72 * HOUR, 6 * HOUR, 1.0),
];

const fn rule(long: u64, short: u64, rate: f64) -> Rule {
    Rule {
        long: Duration::from_mins(long),
        short: Duration::from_mins(short),
        rate,
    }
}

/// The error budget of an objective.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Budget {
    /// Downtime that the window may have.
    pub total: Duration,
    /// Downtime that it had.
    pub spent: Duration,
}

impl Budget {
    /// The share that is left, below 0 if more was spent.
    pub fn left(&self) -> f64 {
        let (total, spent) = (self.total.as_secs_f64(), self.spent.as_secs_f64());
        // The difference first: 1 - 1/1000 is not always the number nearest to 0.999.
        (total - spent) / total.max(1e-9)
    }
}

impl Slo {
    /// The budget of a window in which there was this uptime.
    pub fn budget(&self, measured: Uptime) -> Budget {
        Budget {
            total: self.window.mul_f64(1.0 - self.target),
            spent: measured.down,
        }
    }

    /// The fastest rule that fires.
    ///
    /// - `changes`, `declared`, `excluded`: as for [`uptime`].
    pub(crate) fn burning(
        &self,
        changes: &[HealthAt],
        declared: &[Span],
        excluded: &[Span],
        now: Timestamp,
    ) -> Option<Rule> {
        let burns = |window: Duration, rate: f64| {
            let measured = uptime(changes, declared, excluded, (now.minus(window), now));
            // Of the whole window, so that a monitor that was added a minute ago does not burn a month.
            let share = measured.down.as_secs_f64() / window.as_secs_f64();
            share >= rate * (1.0 - self.target)
        };
        RULES.into_iter().find(|rule| {
            rule.long <= self.window && burns(rule.long, rule.rate) && burns(rule.short, rule.rate)
        })
    }

    /// How far back rules look.
    pub fn looks_back() -> Duration {
        RULES.iter().map(|rule| rule.long).max().unwrap_or_default()
    }
}

/// `slo = "99.9%"`, or a table with `target` and `window`.
pub(crate) fn compile(value: Value<'_>) -> Option<Slo> {
    /// Shorter windows have no budget to speak of.
    const SHORTEST: Duration = Duration::from_hours(24);
    const DAYS: u64 = 30;

    let mut window = Duration::from_hours(24 * DAYS);
    let target = if value.is_table() {
        let mut table = value.table()?;
        if let Some(given) = table.take_value("window") {
            let parsed = given.check(plimsoll_model::parse_duration(as_text(&given)?))?;
            if parsed < SHORTEST {
                return given.wrong("must be a day or more");
            }
            window = parsed;
        }
        let target = target_of(&mut table);
        table.finish();
        target?
    } else {
        share(&value)?
    };
    Some(Slo { target, window })
}

fn target_of(table: &mut Table<'_>) -> Option<f64> {
    let value = table.take_value("target");
    if value.is_none() {
        table.missing("target", "such as \"99.9%\"");
    }
    share(&value?)
}

fn share(value: &Value<'_>) -> Option<f64> {
    let text = as_text(value)?;
    // Read as hundredths: 99.9 / 100 is 0.9990000000000001.
    let share = text
        .strip_suffix('%')
        .and_then(|text| format!("{}e-2", text.trim()).parse::<f64>().ok());
    match share.filter(|share| *share > 0.0 && *share < 1.0) {
        Some(share) => Some(share),
        None => value.wrong(format!("`{text}` is not a share of time such as \"99.9%\"")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::detect::status::Health;

    const MINUTE: i64 = 60_000;

    fn slo() -> Slo {
        Slo {
            target: 0.999,
            window: Duration::from_hours(24 * 30),
        }
    }

    /// Up for 40 days, down for so many minutes, and up again.
    fn outage(minutes: i64) -> (Vec<HealthAt>, Timestamp, Timestamp) {
        let at = |at, health| HealthAt::new(Timestamp(at), health);
        let begin = 40 * 24 * 60 * MINUTE;
        let end = begin + minutes * MINUTE;
        let changes = vec![
            at(0, Health::Up),
            at(begin, Health::Down),
            at(end, Health::Up),
        ];
        (changes, Timestamp(begin), Timestamp(end))
    }

    #[test]
    fn a_fast_burn_fires_within_a_minute_and_ends_soon_after_the_outage() {
        let (changes, begin, end) = outage(30);
        let burning = |after: Timestamp, minutes: i64| {
            let now = Timestamp(after.0 + minutes * MINUTE);
            // Later changes are not known at that time.
            let known: Vec<_> = changes.iter().filter(|it| it.at <= now).copied().collect();
            slo().burning(&known, &[], &[], now).map(|rule| rule.long)
        };
        let hour = Duration::from_hours(1);
        assert_eq!(burning(begin, 0), None);
        // 1.44 % of an hour is 52 seconds.
        assert_eq!(burning(begin, 1), Some(hour));
        assert_eq!(burning(end, 4), Some(hour));
        // The short window no longer burns, and the next slower one does.
        assert_eq!(burning(end, 6), Some(Duration::from_hours(6)));
        assert_eq!(burning(end, 31), Some(Duration::from_hours(72)));
        assert_eq!(burning(end, 6 * 60 + 1), None);
    }

    #[test]
    fn maintenance_and_short_blips_burn_nothing() {
        let (changes, begin, end) = outage(30);
        let now = Timestamp(end.0);
        assert_eq!(slo().burning(&changes, &[], &[(begin, end)], now), None);
        // A new monitor that was down for its first seconds.
        let new = [HealthAt::new(Timestamp(begin.0 - 5_000), Health::Down)];
        assert_eq!(slo().burning(&new, &[], &[], begin), None);
        // Incidents that operators declare count.
        let up = [HealthAt::new(Timestamp(0), Health::Up)];
        assert!(slo().burning(&up, &[(begin, end)], &[], now).is_some());
    }

    #[test]
    fn a_budget_is_what_the_objective_leaves() {
        let budget = slo().budget(Uptime {
            probed: Duration::from_hours(24 * 30),
            down: Duration::from_secs(1_296),
            outages: 1,
        });
        assert_eq!(budget.total.as_secs(), 2_592);
        assert!((budget.left() - 0.5).abs() < 1e-6, "{budget:?}");
    }

    #[test]
    fn an_objective_is_the_share_that_was_written() {
        for (text, target) in [
            ("99.9%", 0.999),
            ("99.99 %", 0.9999),
            ("95%", 0.95),
            (".5%", 0.005),
        ] {
            let file = format!(
                "[[monitor]]\nname = \"web\"\nhttp = \"http://127.0.0.1:9/\"\nslo = \"{text}\"\n"
            );
            let plan = crate::config::of_agent(&file).unwrap();
            let slo = plan.monitors[0].slo.unwrap();
            assert_eq!(slo.target.to_bits(), f64::to_bits(target), "{text}");
        }
    }

    #[test]
    fn what_is_left_has_no_digits_of_the_arithmetic() {
        let budget = Budget {
            total: Duration::from_secs(1_000),
            spent: Duration::from_secs(1),
        };
        assert_eq!(budget.left().to_string(), "0.999");
    }
}
