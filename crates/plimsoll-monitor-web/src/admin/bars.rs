//! Bars of health and lines of response times, for lists and the page of a monitor: drawn on the server.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use plimsoll_model::escaped_html;
use plimsoll_monitor::config::MonitorPlan;
use plimsoll_monitor::engine::{Handle, View};
use plimsoll_monitor::store::{MonitorHistory, MonitorId, StoreError};
use plimsoll_monitor::time::Timestamp;

use crate::admin::shell::{duration, percent};
use crate::page::snapshot::{DAYS, Day, Grades, HOURS, Measured, State, days_until, medians};
use crate::page::sparkline;

const HOUR: Duration = Duration::from_hours(1);

/// Declared incidents that are looked at.
const MOST_DECLARED: usize = 500;

/// Units of a drawing: the distance of bars, their width and their height.
const STEP: usize = 4;
const WIDTH: usize = 3;
const HEIGHT: usize = 20;

/// Height of a bar of which nothing is known.
const LOW: usize = 6;

/// The last 24 hours of a monitor.
#[derive(Debug, Clone, Default)]
pub(super) struct Recent {
    /// Bars by hour; empty if the store is away.
    pub(super) bars: String,
    /// The uptime of these hours.
    pub(super) uptime: String,
    /// A line through the hourly medians of response times; empty with fewer than two.
    pub(super) spark: String,
}

/// The last 24 hours of monitors, read at once. Empty while the store is away, so that lists are shown without it.
pub(super) async fn recent(
    handle: &Handle,
    monitors: &[(MonitorId, Arc<MonitorPlan>)],
    now: Timestamp,
) -> HashMap<MonitorId, Recent> {
    let borders = hours_until(now);
    let Some(from) = borders.first().copied() else {
        return HashMap::new();
    };
    let ids = monitors.iter().map(|(id, _)| *id).collect();
    let until = now.plus(Duration::from_millis(1));
    let (store, org) = (&handle.store, handle.org);
    let read = tokio::try_join!(
        store.histories(org, ids, from, from, until),
        store.declared(org, from, None, MOST_DECLARED),
    );
    let Ok((histories, declared)) = read else {
        return HashMap::new();
    };
    let one = |((id, plan), history): (&(MonitorId, Arc<MonitorPlan>), MonitorHistory)| {
        let measured = Measured::from_health(
            *id,
            plan,
            &history.health,
            &declared,
            &borders,
            Grades::HOUR,
        );
        let uptime = percent(measured.uptime.ratio());
        let label = match measured.uptime.down {
            down if down.is_zero() => format!("Uptime in 24 hours: {uptime}"),
            down => format!("Uptime in 24 hours: {uptime}, down for {}", duration(down)),
        };
        let recent = Recent {
            bars: small_bars(&measured.days, &label),
            uptime,
            spark: sparkline(&medians(history.hours.as_deref().unwrap_or_default(), now)),
        };
        (*id, recent)
    };
    monitors.iter().zip(histories).map(one).collect()
}

/// Starts of the last hours, and `now`.
fn hours_until(now: Timestamp) -> Vec<Timestamp> {
    let last = now.floor(i64::try_from(HOUR.as_millis()).unwrap_or(i64::MAX));
    let hours = u32::try_from(HOURS).unwrap_or(0);
    let starts = (0..hours).rev().map(|back| last.minus(HOUR * back));
    starts.chain([now]).collect()
}

/// Bars of one state as one path: small, for many lines on a page.
fn small_bars(cells: &[Day], label: &str) -> String {
    let mut paths: BTreeMap<State, String> = BTreeMap::new();
    for (at, cell) in cells.iter().enumerate() {
        let (top, height) = extent(cell.state);
        let path = paths.entry(cell.state).or_default();
        write!(path, "M{} {top}h{WIDTH}v{height}h-{WIDTH}z", at * STEP).expect(IN_MEMORY);
    }
    let paths = paths.iter().fold(String::new(), |mut all, (state, path)| {
        write!(all, "<path class=\"{}\" d=\"{path}\"/>", state.name()).expect(IN_MEMORY);
        all
    });
    drawing(cells.len(), label, &paths)
}

const IN_MEMORY: &str = "writing to memory does not fail";

/// Top and height of a bar. What is unknown is low, so that it differs without its colour too.
const fn extent(state: State) -> (usize, usize) {
    match state {
        State::Unknown => (HEIGHT - LOW, LOW),
        _ => (0, HEIGHT),
    }
}

fn drawing(count: usize, label: &str, content: &str) -> String {
    let width = (count * STEP).saturating_sub(STEP - WIDTH);
    let label = escaped_html(label);
    format!(
        "<svg class=\"bars\" viewBox=\"0 0 {width} {HEIGHT}\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"{label}\">{content}</svg>"
    )
}

/// The last 90 days of a monitor.
#[derive(Debug, Default)]
pub(super) struct Quarter {
    /// Bars by day, each with a title.
    pub(super) bars: String,
    pub(super) uptime: String,
    pub(super) days: usize,
}

/// The days of a monitor in UTC.
pub(super) async fn quarter(
    handle: &Handle,
    view: &View,
    now: Timestamp,
) -> Result<Quarter, StoreError> {
    let (dates, borders) = days_until(&TimeZone::UTC, now);
    let from = borders.first().copied().unwrap_or(now);
    let until = now.plus(Duration::from_millis(1));
    let (store, org) = (&handle.store, handle.org);
    let (histories, declared) = tokio::try_join!(
        store.histories(org, vec![view.id], from, until, until),
        store.declared(org, from, None, MOST_DECLARED),
    )?;
    let history = histories.into_iter().next().unwrap_or_default();
    let measured = Measured::from_health(
        view.id,
        &view.plan,
        &history.health,
        &declared,
        &borders,
        Grades::DAY,
    );
    Ok(Quarter {
        uptime: percent(measured.uptime.ratio()),
        bars: large_bars(&dates, &measured.days),
        days: DAYS,
    })
}

/// Days with downtime that the label of bars names.
const MOST_NAMED: usize = 10;

fn large_bars(dates: &[Date], days: &[Day]) -> String {
    let mut content = String::new();
    let mut down = Vec::new();
    for (at, (date, day)) in dates.iter().zip(days).enumerate() {
        let (top, height) = extent(day.state);
        let title = format!("{date}: {}", words(day));
        if !day.down.is_zero() {
            down.push(title.clone());
        }
        write!(
            content,
            "<rect class=\"{}\" x=\"{}\" y=\"{top}\" width=\"{WIDTH}\" height=\"{height}\"><title>{title}</title></rect>",
            day.state.name(),
            at * STEP
        )
        .expect(IN_MEMORY);
    }
    let label = match down.as_slice() {
        [] => format!("No downtime in the last {} days", days.len()),
        all => {
            let named: Vec<_> = all.iter().rev().take(MOST_NAMED).cloned().collect();
            let more = all.len() - named.len();
            let more = (more > 0).then(|| format!(", and {more} more days"));
            format!("Downtime: {}{}", named.join(", "), more.unwrap_or_default())
        }
    };
    drawing(days.len(), &label, &content)
}

fn words(day: &Day) -> String {
    match day.state {
        State::Unknown => "no data".to_owned(),
        State::Maintenance => "maintenance".to_owned(),
        _ if !day.down.is_zero() => format!("down for {}", duration(day.down)),
        State::Degraded => format!("degraded for {}", duration(day.degraded)),
        _ => "no downtime".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn day(state: State, down: u64) -> Day {
        Day {
            state,
            down: Duration::from_mins(down),
            degraded: Duration::ZERO,
        }
    }

    #[test]
    fn bars_of_a_state_are_one_path() {
        let cells = [
            day(State::Unknown, 0),
            day(State::Operational, 0),
            day(State::Major, 40),
            day(State::Operational, 0),
        ];
        assert_eq!(
            small_bars(&cells, "a < b"),
            "<svg class=\"bars\" viewBox=\"0 0 15 20\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"a &lt; b\">\
             <path class=\"unknown\" d=\"M0 14h3v6h-3z\"/>\
             <path class=\"operational\" d=\"M4 0h3v20h-3zM12 0h3v20h-3z\"/>\
             <path class=\"major\" d=\"M8 0h3v20h-3z\"/></svg>"
        );
    }

    #[test]
    fn days_with_downtime_are_named() {
        let start = jiff::civil::date(2026, 3, 1);
        let dates: Vec<_> = start.series(jiff::Span::new().days(1)).take(13).collect();
        let mut days = vec![day(State::Operational, 0); 13];
        assert!(
            large_bars(&dates, &days).contains("aria-label=\"No downtime in the last 13 days\"")
        );
        days[2] = day(State::Degraded, 5);
        let shown = large_bars(&dates, &days);
        assert!(
            shown.contains("aria-label=\"Downtime: 2026-03-03: down for 5 min\""),
            "{shown}"
        );
        assert!(
            shown.contains("<title>2026-03-01: no downtime</title>"),
            "{shown}"
        );
        let all = vec![day(State::Major, 90); 13];
        let shown = large_bars(&dates, &all);
        assert!(shown.contains(", and 3 more days\""), "{shown}");
        assert!(
            shown.contains("Downtime: 2026-03-13: down for 1 h 30 min, 2026-03-12"),
            "{shown}"
        );
    }

    #[test]
    fn hours_end_with_the_present_one() {
        let now = Timestamp::parse("2026-03-30T12:34:56Z").unwrap();
        let borders = hours_until(now);
        assert_eq!(borders.len(), HOURS + 1);
        assert_eq!(borders[0].to_string(), "2026-03-29T13:00:00Z");
        assert_eq!(borders[HOURS - 1].to_string(), "2026-03-30T12:00:00Z");
        assert_eq!(borders[HOURS], now);
    }
}
