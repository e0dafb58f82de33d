//! What is done to many monitors, and one monitor.

mod listing;

use std::time::Duration;

use askama::Template;
use axum::extract::{Extension, Path, RawQuery, State};
use axum::response::Response;
use jiff::tz::TimeZone;
use plimsoll_monitor::config::{Language, Source, What};
use plimsoll_monitor::detect::status::{Health, Status};
use plimsoll_monitor::engine::{CommandError, View};
use plimsoll_monitor::manage::Put;
use plimsoll_monitor::store::{
    DefinitionKind, IncidentFilter, Resolution, ResultRow, Rollup, StoreError,
};
use plimsoll_monitor::time::Timestamp;

use crate::admin::bars::{Quarter, quarter};
use crate::admin::guard::Me;
use crate::admin::incidents::{Outage, outages};
use crate::admin::overview::refused;
use crate::admin::shell::{
    Shell, When, duration, html, latency, missing, page, percent, redirect, state,
};
use crate::answer::ApiError;
use crate::api::{budget_left, encoded, measured};
use crate::page::{chart, phases};
use crate::state::Api;

pub(super) use listing::{Selection, list};

const DAY: Duration = Duration::from_hours(24);

/// Results on the page of a monitor.
const RESULTS: usize = 25;

/// A line of the list.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) key: String,
    pub(super) path: String,
    pub(super) name: String,
    pub(super) group: String,
    pub(super) kind: String,
    pub(super) target: String,
    pub(super) tags: Vec<String>,
    pub(super) class: &'static str,
    pub(super) state: &'static str,
    /// The name of its health, for filters.
    pub(super) health: &'static str,
    pub(super) took: Option<String>,
    pub(super) reason: Option<String>,
    pub(super) is_kept: bool,
    /// What listed it, unless the file or the store has it.
    pub(super) found_by: Option<String>,
}

impl Row {
    pub(super) fn from_view(view: &View) -> Self {
        let plan = &view.plan;
        let (class, state) = state(view.health, view.in_maintenance);
        let last = view.last.as_ref();
        let micros = |took: Duration| u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        Self {
            path: format!("/admin/monitors/{}", encoded(&plan.key)),
            key: plan.key.clone(),
            name: plan.name.clone(),
            group: plan.group.clone(),
            kind: plan.kind.clone(),
            target: plan.what.target().unwrap_or_default(),
            tags: plan.tags.clone(),
            class,
            state,
            health: view.health.name(),
            took: last
                .filter(|last| last.status != Status::Error && !last.took.is_zero())
                .map(|last| latency(micros(last.took))),
            reason: last.and_then(|last| last.reason.clone()),
            is_kept: view.source == Source::Store,
            found_by: None,
        }
    }
}

/// Pause, resume, delete, tag and untag the selected monitors.
pub(super) async fn bulk(State(api): State<Api>, Extension(me): Extension<Me>) -> Response {
    let keys: Vec<String> = me.form.all("key").into_iter().map(str::to_owned).collect();
    // Back to the page of the list that the form was on.
    let back = Selection::from_query(Some(me.form.get("list")));
    if keys.is_empty() {
        return redirect(&back.path_with_message("nothing"));
    }
    let outcome = match me.form.get("action") {
        "pause" => pause(&api, &me, &keys, true).await,
        "resume" => pause(&api, &me, &keys, false).await,
        "delete" => delete(&api, &me, &keys).await,
        "tag" => tag(&api, &me, &keys, true).await,
        "untag" => tag(&api, &me, &keys, false).await,
        _ => Ok("nothing"),
    };
    match outcome {
        Ok(done) => redirect(&back.path_with_message(done)),
        Err(error) => failed(&me, error.message()),
    }
}

/// A page that reports why something could not be done.
pub(super) fn failed(me: &Me, why: String) -> Response {
    #[derive(Template)]
    #[template(path = "admin/failed.html")]
    struct FailedPage {
        s: Shell,
    }

    let shell = Shell::new(me, "/admin", "This could not be done").wrong(Some(why));
    html(&FailedPage { s: shell }, http::StatusCode::CONFLICT)
}

async fn pause(
    api: &Api,
    me: &Me,
    keys: &[String],
    paused: bool,
) -> Result<&'static str, ApiError> {
    let (action, done) = if paused {
        ("monitor.pause", "paused")
    } else {
        ("monitor.resume", "resumed")
    };
    for key in keys {
        match api.handle.pause(key, paused).await {
            // Another user may have deleted it meanwhile.
            Ok(()) | Err(CommandError::NotFound) => {}
            Err(error) => return Err(error.into()),
        }
        api.handle.note(&me.actor, action, key, me.now).await?;
    }
    Ok(done)
}

/// The selected monitors of the store; whether others were selected.
fn kept(api: &Api, keys: &[String]) -> (Vec<String>, bool) {
    let kept: Vec<_> = keys
        .iter()
        .filter(|key| {
            let view = api.handle.board.view(key);
            view.is_some_and(|view| view.source == Source::Store)
        })
        .cloned()
        .collect();
    let has_others = kept.len() < keys.len();
    (kept, has_others)
}

async fn delete(api: &Api, me: &Me, keys: &[String]) -> Result<&'static str, ApiError> {
    let (kept, has_others) = kept(api, keys);
    let removals = kept.into_iter().map(|key| (key, None)).collect();
    api.handle
        .change_monitors(&me.actor, Vec::new(), removals, None, me.now)
        .await?;
    Ok(if has_others { "read-only" } else { "deleted" })
}

async fn tag(api: &Api, me: &Me, keys: &[String], adds: bool) -> Result<&'static str, ApiError> {
    let words = me.form.words("tags");
    if words.is_empty() {
        return Ok("nothing");
    }
    let (kept, has_others) = kept(api, keys);
    let handle = &api.handle;
    let all = handle
        .store
        .definitions(handle.org, DefinitionKind::Monitor)
        .await?;
    let mut puts = Vec::new();
    for (definition, _) in all {
        if !kept.contains(&definition.key) {
            continue;
        }
        let Ok(mut table) = toml::from_str::<toml::Table>(&definition.text) else {
            continue;
        };
        let known = table.remove("tags").and_then(|tags| tags.try_into().ok());
        let mut tags: Vec<String> = known.unwrap_or_default();
        tags.retain(|tag| !words.contains(tag));
        if adds {
            tags.extend(words.iter().cloned());
        }
        if !tags.is_empty() {
            table.insert("tags".to_owned(), tags.into());
        }
        puts.push(Put {
            id: None,
            was: Some(definition.key),
            version: Some(definition.version),
            table,
        });
    }
    handle
        .change_monitors(&me.actor, puts, Vec::new(), None, me.now)
        .await?;
    Ok(if has_others { "read-only" } else { "tagged" })
}

/// A result as the page of a monitor shows it.
#[derive(Debug)]
pub(super) struct Shown {
    pub(super) at: When,
    pub(super) region: String,
    pub(super) class: &'static str,
    pub(super) status: &'static str,
    pub(super) took: String,
    pub(super) phases: String,
    pub(super) reason: String,
}

impl Shown {
    fn from_row(row: &ResultRow, api: &Api) -> Self {
        let phases = row.phases();
        let phases = phases.iter().map(|(phase, took)| {
            let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
            format!("{phase} {}", latency(micros))
        });
        let reason = row.detail.as_ref().and_then(|detail| detail.reason.clone());
        Self {
            at: When::from_timestamp(row.at),
            region: api.handle.board.region_of(row.region).to_string(),
            class: class_of(row.status),
            status: row.status.name(),
            took: latency(row.took_us),
            phases: phases.collect::<Vec<_>>().join(", "),
            reason: reason.unwrap_or_default(),
        }
    }
}

pub(super) const fn class_of(status: Status) -> &'static str {
    match status {
        Status::Up => "operational",
        Status::Degraded => "degraded",
        Status::Down => "major",
        Status::Error => "unknown",
    }
}

/// The view of a region.
#[derive(Debug)]
struct RegionRow {
    name: String,
    class: &'static str,
    state: String,
    since: When,
    reason: String,
}

const fn class_of_health(health: Health) -> &'static str {
    match health {
        Health::Up => "operational",
        Health::Degraded => "degraded",
        Health::Down => "major",
        Health::Pending | Health::NoData | Health::Paused => "unknown",
    }
}

#[derive(Template)]
#[template(path = "admin/monitor.html")]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each decides over a button of the page"
)]
struct MonitorPage {
    s: Shell,
    row: Row,
    since: When,
    is_paused: bool,
    is_probed: bool,
    is_manual: bool,
    has_incident: bool,
    is_acknowledged: bool,
    interval: Option<String>,
    ping: Option<String>,
    /// What the job of a heartbeat does.
    about: Option<String>,
    conditions: Vec<(String, bool)>,
    uptimes: Vec<(&'static str, String)>,
    quarter: Quarter,
    /// The share of the error budget that is left.
    budget: Option<String>,
    regions: Vec<RegionRow>,
    /// Response times over a day, as a plot.
    chart: String,
    /// The phases of checks over a day, as a stacked plot.
    phases: String,
    results: Vec<Shown>,
    outages: Vec<Outage>,
}

pub(super) async fn one(
    State(api): State<Api>,
    Extension(me): Extension<Me>,
    Path(key): Path<String>,
    RawQuery(query): RawQuery,
) -> Result<Response, Response> {
    let Some(view) = api.handle.board.view(&key) else {
        return Err(missing().await);
    };
    let handle = &api.handle;
    let mut rows = handle
        .store
        .results(handle.org, view.id, Timestamp(i64::MAX), RESULTS)
        .await
        .map_err(refused)?;
    // Results reach the store in batches, and the first one is shown at once.
    if let Some(last) = view.last.as_ref().filter(|_| view.regions.is_empty())
        && rows.first().is_none_or(|row| row.at < last.at)
    {
        rows.insert(0, ResultRow::from_result(view.id, 0, last));
    }
    let filter = IncidentFilter {
        monitor: Some(view.id),
        open: None,
    };
    let incidents = handle
        .store
        .incidents(handle.org, filter, None, 10)
        .await
        .map_err(refused)?;
    let mut uptimes = Vec::new();
    for (text, window) in [
        ("24 hours", DAY),
        ("7 days", 7 * DAY),
        ("30 days", 30 * DAY),
    ] {
        let measured = measured(&api, &view, window).await;
        let (measured, _) = measured.map_err(|error| failed(&me, error.message()))?;
        uptimes.push((text, percent(measured.ratio())));
    }
    let quarter = quarter(handle, &view, me.now).await.map_err(refused)?;
    let left = budget_left(&api, &view).await;
    let budget = left.map_err(|error| failed(&me, error.message()))?;
    let budget = budget.map(|left| format!("{:.0} %", (left * 100.0).max(0.0)));
    let regions = view.regions.iter().map(|region| RegionRow {
        name: region.name.to_string(),
        class: class_of_health(region.health),
        state: region.health.name().replace('_', " "),
        since: When::from_timestamp(region.since),
        reason: region.reason.clone().unwrap_or_default(),
    });
    let regions = regions.collect();
    let ping = match &view.plan.what {
        // The token lets its holder report, which viewers do not.
        What::Heartbeat(plan) if me.may(plimsoll_monitor::store::Role::Editor) => {
            Some(format!("/ping/{}", plan.token.expose()))
        }
        _ => None,
    };
    let about = match &view.plan.what {
        What::Heartbeat(plan) => plan.about.clone(),
        _ => None,
    };
    let buckets = quarters_of_hours(&api, &view, me.now);
    let buckets = buckets.await.map_err(refused)?;
    let title = "Response times: p50, p95 and p99";
    let (english, utc) = (Language::English, TimeZone::UTC);
    let last = view.last.as_ref();
    let row = Row::from_view(&view);
    Ok(page(&MonitorPage {
        s: Shell::new(&me, "/admin/monitors", row.name.clone()).done(query.as_deref()),
        since: When::from_timestamp(view.since),
        is_paused: view.is_paused,
        is_probed: matches!(view.plan.what, What::Probe(_)),
        is_manual: matches!(view.plan.what, What::Manual),
        has_incident: view.has_incident,
        is_acknowledged: view.incident.is_some_and(|(_, acknowledged)| acknowledged),
        interval: view
            .plan
            .timing
            .map(|timing| duration_short(timing.interval)),
        ping,
        about,
        conditions: last.map_or_else(Vec::new, |last| {
            let all = last.conditions.iter();
            all.map(|one| (one.condition.clone(), one.met)).collect()
        }),
        uptimes,
        quarter,
        budget,
        regions,
        chart: chart(english, title, &utc, DAY, &buckets),
        phases: phases(english, &utc, DAY, &buckets),
        results: rows.iter().map(|row| Shown::from_row(row, &api)).collect(),
        outages: outages(&api, &incidents, me.now),
        row,
    }))
}

/// Results of a day by quarters of an hour; none unless it is checked by a probe.
async fn quarters_of_hours(
    api: &Api,
    view: &View,
    now: Timestamp,
) -> Result<Vec<Rollup>, StoreError> {
    const QUARTER: i64 = 15 * 60_000;

    if !matches!(view.plan.what, What::Probe(_)) {
        return Ok(Vec::new());
    }
    let handle = &api.handle;
    let (from, until) = (now.minus(DAY), now.plus(Duration::from_millis(1)));
    let minutes = handle
        .store
        .rollups(handle.org, view.id, Resolution::Minute, from, until)
        .await?;
    Ok(Rollup::merged(&minutes, QUARTER))
}

fn duration_short(interval: Duration) -> String {
    if interval < Duration::from_secs(1) {
        format!("{} ms", interval.as_millis())
    } else {
        duration(interval)
    }
}

/// Carries out a button of a monitor's page.
pub(super) async fn act(
    State(api): State<Api>,
    Extension(me): Extension<Me>,
    Path(key): Path<String>,
) -> Response {
    let handle = &api.handle;
    let actor = Some(me.user.name.clone());
    let (outcome, action, done) = match me.form.get("action") {
        "check" => {
            let outcome = handle.check_now(&key).await.map(|_| ());
            (outcome, "monitor.check", "checked")
        }
        "pause" => (handle.pause(&key, true).await, "monitor.pause", "paused"),
        "resume" => (handle.pause(&key, false).await, "monitor.resume", "resumed"),
        "acknowledge" => (
            handle.acknowledge(&key, actor).await,
            "incident.acknowledge",
            "acknowledged",
        ),
        "resolve" => (
            handle.resolve(&key, actor).await,
            "incident.resolve",
            "resolved",
        ),
        "up" | "down" => {
            let is_up = me.form.get("action") == "up";
            let pushed = plimsoll_monitor::engine::PushedResult {
                is_up,
                reason: (!is_up).then(|| format!("{} set it", me.user.name)),
                took: Duration::ZERO,
            };
            (handle.push(&key, pushed).await, "monitor.status", "saved")
        }
        "delete" => {
            let keys = vec![(key, None)];
            let removed = handle
                .change_monitors(&me.actor, Vec::new(), keys, None, me.now)
                .await;
            return match removed {
                Ok(_) => redirect("/admin/monitors?done=deleted"),
                Err(error) => failed(&me, ApiError::from(error).message()),
            };
        }
        _ => return missing().await,
    };
    let path = format!("/admin/monitors/{}", encoded(&key));
    match outcome {
        Ok(()) => {
            if let Err(error) = handle.note(&me.actor, action, &key, me.now).await {
                return failed(&me, error.to_string());
            }
            redirect(&format!("{path}?done={done}"))
        }
        Err(CommandError::Busy(_)) => redirect(&format!("{path}?done=busy")),
        Err(CommandError::NoIncident) => redirect(&format!("{path}?done=no-incident")),
        Err(error) => failed(&me, error.to_string()),
    }
}
