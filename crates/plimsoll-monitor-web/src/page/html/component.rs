//! The page of one component: its figures, response times and incidents.

use std::sync::Arc;
use std::time::Duration;

use askama::Template;
use jiff::Zoned;
use jiff::tz::TimeZone;
use plimsoll_monitor::config::Language;
use plimsoll_monitor::detect::uptime::Uptime;
use plimsoll_monitor::store::Rollup;
use plimsoll_report::plot::{Axis, Line, Plot};

use crate::language::Texts as _;
use crate::page::html::{Card, Frame, Row, last_date, rendered};
use crate::page::snapshot::{Component, DAYS, NEAR, Snapshot};

/// A window of a component's page.
pub(crate) struct Window {
    pub(crate) query: &'static str,
    pub(crate) text: &'static str,
    pub(crate) length: Duration,
}

/// The windows for which there is a chart.
pub(crate) const WINDOWS: [Window; 3] = [
    Window {
        query: "24h",
        text: "window_day",
        length: Duration::from_hours(24),
    },
    Window {
        query: "7d",
        text: "window_week",
        length: Duration::from_hours(7 * 24),
    },
    Window {
        query: "30d",
        text: "window_month",
        length: Duration::from_hours(30 * 24),
    },
];

struct WindowFigures {
    name: String,
    query: &'static str,
    has_chart: bool,
    is_chosen: bool,
    uptime: String,
    down: String,
    outages: u32,
}

#[derive(Template)]
#[template(path = "component.html")]
struct ComponentPage<'a> {
    f: Frame<'a>,
    one: Row,
    windows: Vec<WindowFigures>,
    chart: String,
    regions: Vec<RegionRow>,
    incidents: Vec<Card>,
    /// Why there is no chart, if there is none.
    no_chart: &'static str,
    far: String,
    near: String,
    until: String,
}

/// Results of a region in the last day.
struct RegionRow {
    name: String,
    /// The share of results that were up or degraded.
    up: String,
    /// p50, p95 and p99.
    times: [String; 3],
}

fn region_row(t: Language, name: &str, rollup: &Rollup) -> RegionRow {
    let time = |q| {
        rollup
            .took
            .quantile(q)
            .map_or_else(|| "–".to_owned(), |it| t.latency(it))
    };
    let [up, degraded, ..] = rollup.counts;
    let ratio = (up + degraded) as f64 / rollup.total().max(1) as f64;
    RegionRow {
        name: name.to_owned(),
        up: t.percent(ratio),
        times: [0.5, 0.95, 0.99].map(time),
    }
}

/// Results by time, and those of each region.
type Measured<'a> = (&'a [Rollup], &'a [(Arc<str>, Rollup)]);

/// The page of one component.
///
/// - `uptimes`: of each of the [`WINDOWS`].
/// - `chosen`: the window of the chart.
/// - `measured`: the results of that window, and what each region saw in the last day if there are several; `None` if these
///   cannot be read.
pub(crate) fn component_page(
    f: Frame<'_>,
    snapshot: &Snapshot,
    component: &Component,
    uptimes: &[Uptime],
    chosen: &Window,
    measured: Option<Measured<'_>>,
) -> String {
    let t = f.t;
    let figures = |name: String, query, is_chosen, has_chart, uptime: &Uptime| WindowFigures {
        name,
        query,
        has_chart,
        is_chosen,
        uptime: match uptime.ratio() {
            Some(ratio) => t.percent(ratio),
            None => "–".to_owned(),
        },
        down: t.duration(uptime.down),
        outages: uptime.outages,
    };
    let mut windows: Vec<_> = WINDOWS
        .iter()
        .zip(uptimes)
        .map(|(window, uptime)| {
            let is_chosen = window.query == chosen.query;
            figures(
                t.text(window.text).to_owned(),
                window.query,
                is_chosen,
                true,
                uptime,
            )
        })
        .collect();
    let whole = t.text("window_quarter").to_owned();
    windows.push(figures(whole, "", false, false, &component.uptime));
    let incidents = snapshot
        .incidents
        .iter()
        .filter(|one| one.components.iter().any(|(key, _)| *key == component.key))
        .take(20);
    let (buckets, regions) = measured.unwrap_or_default();
    rendered(&ComponentPage {
        no_chart: t.text(if measured.is_some() {
            "no_results"
        } else {
            "no_times"
        }),
        one: f.row(component),
        windows,
        chart: chart(
            f.t,
            f.t.text("percentiles"),
            &f.plan.zone,
            chosen.length,
            buckets,
        ),
        regions: regions
            .iter()
            .map(|(name, rollup)| region_row(t, name, rollup))
            .collect(),
        incidents: incidents.map(|one| f.brief(one)).collect(),
        far: f.far(DAYS),
        near: f.far(NEAR),
        until: last_date(snapshot),
        f,
    })
}

/// Charts of fewer points show dots instead of lines.
const FEW_POINTS: usize = 4;

/// Percentiles of response times as a plot; empty without any.
///
/// - `title`: the first and the last time of the buckets and their zone follow it.
/// - `length`: of the time that the buckets are of.
pub(crate) fn chart(
    t: Language,
    title: &str,
    zone: &TimeZone,
    length: Duration,
    buckets: &[Rollup],
) -> String {
    let is_day = length <= Duration::from_hours(24);
    let label = |bucket: &Rollup| {
        let zoned = bucket.start.to_jiff().to_zoned(zone.clone());
        if is_day {
            zoned.strftime("%H:%M").to_string()
        } else {
            zoned.strftime("%m-%d").to_string()
        }
    };
    let line = |name: &str, q: f64| {
        let points = buckets.iter().enumerate();
        Line {
            label: name.to_owned(),
            points: points
                .map(|(at, bucket)| {
                    let micros = bucket.took.quantile(q);
                    (at as f64, micros.map(|micros| micros as f64))
                })
                .collect(),
            // A line needs two points beside each other.
            is_dots: buckets.len() < FEW_POINTS,
        }
    };
    let plot = Plot {
        title: match (buckets.first(), buckets.last()) {
            (Some(first), Some(last)) => {
                let zoned = |bucket: &Rollup| bucket.start.to_jiff().to_zoned(zone.clone());
                let (first, last) = (zoned(first), zoned(last));
                let time = |at: &Zoned| format!("{} {}", t.date(at.date()), at.strftime("%H:%M"));
                let until = if first.date() == last.date() {
                    last.strftime("%H:%M").to_string()
                } else {
                    time(&last)
                };
                let zone = last.strftime("%Z");
                format!("{title}, {} – {until} {zone}", time(&first))
            }
            _ => title.to_owned(),
        },
        x: Axis::Names(buckets.iter().map(label).collect()),
        across: "",
        y: Axis::Linear(plimsoll_report::page::short_time),
        lines: vec![line("p50", 0.5), line("p95", 0.95), line("p99", 0.99)],
        shaded: Vec::new(),
        bands: Vec::new(),
    };
    if plot.is_empty() {
        String::new()
    } else {
        plot.html()
    }
}
