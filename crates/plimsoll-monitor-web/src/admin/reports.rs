//! Reports: uptime, time to acknowledge and to recover, the noisiest monitors; to be printed, and as CSV.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::time::Duration;

use askama::Template;
use axum::body::Body;
use axum::extract::{Extension, RawQuery, State};
use axum::response::Response;
use http::header::{CONTENT_DISPOSITION, CONTENT_TYPE, HeaderValue};
use plimsoll_monitor::detect::excluded::excluded;
use plimsoll_monitor::detect::uptime::{Span, uptime};
use plimsoll_monitor::store::{Incident, MonitorId, StoreError, declared_downtime};
use plimsoll_monitor::time::Timestamp;

use crate::admin::guard::Me;
use crate::admin::overview::refused;
use crate::admin::shell::{Shell, When, duration, page, percent};
use crate::request::parameter;
use crate::state::Api;

const DAY: Duration = Duration::from_hours(24);

/// Incidents that are read.
const MOST: usize = 20_000;

/// A monitor within the window.
#[derive(Debug)]
struct Row {
    key: String,
    name: String,
    group: String,
    uptime: Option<f64>,
    down: Duration,
    incidents: usize,
    acknowledged: Option<Duration>,
    recovered: Option<Duration>,
}

impl Row {
    fn uptime_text(&self) -> String {
        percent(self.uptime)
    }

    fn down_text(&self) -> String {
        duration(self.down)
    }

    fn mtta(&self) -> String {
        self.acknowledged.map_or_else(|| "–".to_owned(), duration)
    }

    fn mttr(&self) -> String {
        self.recovered.map_or_else(|| "–".to_owned(), duration)
    }
}

/// Means of incidents, each of those whose acknowledgement or end lies within the window.
#[derive(Debug, Default)]
struct Means {
    acknowledged: Option<Duration>,
    recovered: Option<Duration>,
}

impl Means {
    fn from_incidents<'i>(
        incidents: impl Iterator<Item = &'i Incident> + Clone,
        (from, until): Span,
    ) -> Self {
        let is_within = |at: &Timestamp| (from..until).contains(at);
        let mean = |spans: Vec<Duration>| {
            let count = u32::try_from(spans.len()).ok().filter(|count| *count > 0)?;
            Some(spans.into_iter().sum::<Duration>() / count)
        };
        let acknowledged = incidents
            .clone()
            .filter_map(|one| Some(one.acknowledged.filter(is_within)?.since(one.opened)));
        let recovered =
            incidents.filter_map(|one| Some(one.lasted(one.resolved.filter(is_within)?)));
        Self {
            acknowledged: mean(acknowledged.collect()),
            recovered: mean(recovered.collect()),
        }
    }
}

#[derive(Template)]
#[template(path = "admin/reports.html")]
struct ReportPage {
    s: Shell,
    days: u32,
    windows: [u32; 4],
    from: When,
    until: When,
    rows: Vec<Row>,
    incidents: usize,
    mtta: String,
    mttr: String,
    noisiest: Vec<(String, usize)>,
}

const WINDOWS: [u32; 4] = [1, 7, 30, 90];

fn days(query: Option<&str>) -> u32 {
    let given = parameter(query, "days").and_then(|text| text.parse().ok());
    given.filter(|days| WINDOWS.contains(days)).unwrap_or(30)
}

/// Incidents of which a part lies within the window: one across its beginning is part of the window before too, each with
/// its share of the downtime.
async fn overlapping(api: &Api, (from, until): Span) -> Result<Vec<Incident>, StoreError> {
    let handle = &api.handle;
    let found = handle.store.timelines(handle.org, from, MOST).await?;
    let incidents = found.into_iter().map(|(incident, _)| incident);
    Ok(incidents.filter(|one| one.opened < until).collect())
}

async fn rows(
    api: &Api,
    now: Timestamp,
    days: u32,
) -> Result<(Vec<Row>, Vec<Incident>), StoreError> {
    let handle = &api.handle;
    let span = (now.minus(DAY * days), now);
    let views = handle.board.views();
    let ids = views.iter().map(|view| view.id).collect();
    let store = &handle.store;
    let histories = store
        .histories(handle.org, ids, span.0, span.1, span.1)
        .await?;
    let declared = store.declared(handle.org, span.0, None, 5_000).await?;
    let incidents = overlapping(api, span).await?;
    let mut by_monitor: HashMap<MonitorId, Vec<&Incident>> = HashMap::new();
    for incident in &incidents {
        by_monitor
            .entry(incident.monitor)
            .or_default()
            .push(incident);
    }
    let rows = views.iter().zip(histories).map(|(view, history)| {
        let counted = declared_downtime(&declared, view.id, now);
        let excluded = excluded(&view.plan.windows, span);
        let measured = uptime(&history.health, &counted, &excluded, span);
        let own = by_monitor.get(&view.id).map_or(&[][..], Vec::as_slice);
        let means = Means::from_incidents(own.iter().copied(), span);
        Row {
            key: view.plan.key.clone(),
            name: view.plan.name.clone(),
            group: view.plan.group.clone(),
            uptime: measured.ratio(),
            down: measured.down,
            incidents: own.len(),
            acknowledged: means.acknowledged,
            recovered: means.recovered,
        }
    });
    Ok((rows.collect(), incidents))
}

pub(super) async fn show(
    State(api): State<Api>,
    Extension(me): Extension<Me>,
    RawQuery(query): RawQuery,
) -> Result<Response, Response> {
    let days = days(query.as_deref());
    let (mut rows, incidents) = rows(&api, me.now, days).await.map_err(refused)?;
    let means = Means::from_incidents(incidents.iter(), (me.now.minus(DAY * days), me.now));
    let text = |mean: Option<Duration>| mean.map_or_else(|| "–".to_owned(), duration);
    let mut noisiest: Vec<_> = rows
        .iter()
        .filter(|row| row.incidents > 0)
        .map(|row| (row.name.clone(), row.incidents))
        .collect();
    noisiest.sort_by(|one, other| other.1.cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
    noisiest.truncate(10);
    // The worst first; what was never probed last.
    let order = |row: &Row| row.uptime.unwrap_or(2.0);
    rows.sort_by(|one, other| order(one).total_cmp(&order(other)));
    Ok(page(&ReportPage {
        s: Shell::new(&me, "/admin/reports", "Reports"),
        days,
        windows: WINDOWS,
        from: When::from_timestamp(me.now.minus(DAY * days)),
        until: When::from_timestamp(me.now),
        rows,
        incidents: incidents.len(),
        mtta: text(means.acknowledged),
        mttr: text(means.recovered),
        noisiest,
    }))
}

pub(super) async fn csv(
    State(api): State<Api>,
    Extension(me): Extension<Me>,
    RawQuery(query): RawQuery,
) -> Result<Response, Response> {
    let days = days(query.as_deref());
    let (rows, _) = rows(&api, me.now, days).await.map_err(refused)?;
    let mut text = "key,name,group,uptime,down_s,incidents,mtta_s,mttr_s\r\n".to_owned();
    let seconds =
        |mean: Option<Duration>| mean.map_or_else(String::new, |it| it.as_secs().to_string());
    for row in &rows {
        let uptime = row
            .uptime
            .map_or_else(String::new, |uptime| format!("{uptime:.6}"));
        // Writing to memory does not fail.
        write!(
            text,
            "{},{},{},{uptime},{},{},{},{}\r\n",
            cell(&row.key),
            cell(&row.name),
            cell(&row.group),
            row.down.as_secs(),
            row.incidents,
            seconds(row.acknowledged),
            seconds(row.recovered)
        )
        .ok();
    }
    let mut response = Response::new(Body::from(text));
    let fields = response.headers_mut();
    let media_type = HeaderValue::from_static("text/csv; charset=utf-8");
    fields.insert(CONTENT_TYPE, media_type);
    let name = HeaderValue::from_static("attachment; filename=\"uptime.csv\"");
    fields.insert(CONTENT_DISPOSITION, name);
    Ok(response)
}

/// A cell (RFC 4180); one that a spreadsheet would run as a formula begins with an apostrophe.
fn cell(text: &str) -> String {
    let guard = if text.starts_with(['=', '+', '-', '@', '\t', '\r']) {
        "'"
    } else {
        ""
    };
    format!("\"{guard}{}\"", text.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_monitor::store::IncidentId;

    #[test]
    fn means_are_of_what_happened_within_the_window() {
        let incident = |opened, acknowledged: Option<i64>, resolved: Option<i64>| Incident {
            opened: Timestamp(opened),
            acknowledged: acknowledged.map(Timestamp),
            resolved: resolved.map(Timestamp),
            id: IncidentId(1),
            monitor: MonitorId(1),
            lasted: None,
            key: String::new(),
            reason: None,
        };
        let window = (Timestamp(100_000), Timestamp(200_000));
        // It began before the window and was acknowledged there, and ended within it.
        let across = incident(50_000, Some(60_000), Some(150_000));
        let open = incident(120_000, Some(124_000), None);
        let means = Means::from_incidents([&across, &open].into_iter(), window);
        assert_eq!(means.acknowledged, Some(Duration::from_secs(4)));
        assert_eq!(means.recovered, Some(Duration::from_secs(100)));
        let before = (Timestamp(0), Timestamp(100_000));
        let means = Means::from_incidents([&across].into_iter(), before);
        assert_eq!(means.acknowledged, Some(Duration::from_secs(10)));
        assert_eq!(means.recovered, None);
    }

    #[test]
    fn cells_are_quoted_and_no_formulas() {
        assert_eq!(cell("a \"b\", c"), "\"a \"\"b\"\", c\"");
        assert_eq!(cell("=1+1"), "\"'=1+1\"");
    }
}
