//! The page of one component: its figures, response times and incidents.

use std::sync::Arc;
use std::time::Duration;

use askama::Template;
use plimsoll_monitor::config::Language;
use plimsoll_monitor::detect::uptime::Uptime;
use plimsoll_monitor::store::Rollup;

use crate::language::Texts as _;
use crate::page::html::{Card, Frame, Row, chart, last_date, phases, rendered};
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
    phases: String,
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
        phases: phases(f.t, &f.plan.zone, chosen.length, buckets),
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
