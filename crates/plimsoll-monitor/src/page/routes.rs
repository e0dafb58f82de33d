//! The routes of a page: at `/status/SLUG` and at `/` of its host.

mod guard;

mod reply;

mod subscribe;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use http::header::{ACCEPT_LANGUAGE, COOKIE, HOST};
use http::{HeaderMap, Method, StatusCode};
use jiff::civil::Date;
use serde_json::json;

use crate::admin::is_tls;
use crate::api::badge::{self, Badge, Look};
use crate::api::{Api, not_found};
use crate::detect::uptime::{Span, uptime};
use crate::engine::View;
use crate::page::PagePlan;
use crate::page::cache::{Current, Rendered};
use crate::page::html::{self, Frame, WINDOWS, Window};
use crate::page::language::Language;
use crate::page::routes::reply::{Caching, redirect, refused, reply};
use crate::page::snapshot::{
    Completed, PublicIncident, PublicMaintenance, Rows, Snapshot, State as Shown, completed,
    days_until, declared_downtime, excluded, incidents_of,
};
use crate::page::{feed, live, statuspage};
use crate::store::timestamp::Timestamp;
use crate::store::{DeclaredId, IncidentId, MonitorId, Resolution};

pub(crate) use crate::page::routes::guard::Sessions;

const HTML: &str = "text/html; charset=utf-8";

/// Incidents of a month that are read.
const MOST_INCIDENTS: usize = 5_000;

/// Maintenance lasts so long at most, unless its occurrences meet.
const LONGEST: Duration = Duration::from_hours(30 * 24);

/// Occurrences of one maintenance window in the history of a month: enough for a daily one.
const MOST_OF_MONTH: usize = 31;

/// Occurrences of one maintenance window that is over, in JSON.
const MOST_COMPLETED: usize = 50;

/// A request for a page.
struct Visit<'a> {
    api: &'a Api,
    plan: &'a Arc<PagePlan>,
    base: String,
    /// Behind the base, with its slash.
    path: &'a str,
    query: Option<&'a str>,
    fields: &'a HeaderMap,
    t: Language,
    /// Whether the query names the language.
    sets_language: bool,
    /// Of the page, without a slash at its end.
    url: String,
}

/// `/status/SLUG` and everything below it.
pub(crate) async fn at_slug(State(api): State<Api>, request: Request) -> Response {
    let path = request.uri().path().to_owned();
    let rest = path.strip_prefix("/status/").unwrap_or_default();
    let slug = rest.split('/').next().unwrap_or_default();
    let pages = api.handle.board.pages();
    let Some(plan) = pages.iter().find(|plan| plan.slug == slug) else {
        return not_found().await.into_response();
    };
    let base = format!("/status/{slug}");
    let below = path.strip_prefix(&base).unwrap_or_default();
    if below.is_empty() {
        return redirect(StatusCode::PERMANENT_REDIRECT, &format!("{base}/"));
    }
    serve(&api, plan, base, below, request).await
}

/// Every path that nothing else answers: a page whose host it is, or the first page without a host.
pub(crate) async fn at_root(State(api): State<Api>, request: Request) -> Response {
    let pages = api.handle.board.pages();
    let host = host(request.headers());
    let of_host = pages
        .iter()
        .find(|plan| plan.host.is_some() && plan.host == host);
    let plan = of_host.or_else(|| pages.iter().find(|plan| plan.host.is_none()));
    let Some(plan) = plan else {
        return not_found().await.into_response();
    };
    let path = request.uri().path().to_owned();
    serve(&api, plan, String::new(), &path, request).await
}

/// The host of a request, without its port.
fn host(fields: &HeaderMap) -> Option<String> {
    let host = fields.get(HOST)?.to_str().ok()?;
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    Some(name.to_ascii_lowercase())
}

async fn serve(
    api: &Api,
    plan: &Arc<PagePlan>,
    base: String,
    path: &str,
    request: Request,
) -> Response {
    let (parts, body) = request.into_parts();
    let fields = &parts.headers;
    let path = &*percent_encoding::percent_decode_str(path).decode_utf8_lossy();
    let named = parameter(parts.uri.query(), "lang").and_then(|code| Language::of(&code));
    let accepted = || {
        let value = fields.get(ACCEPT_LANGUAGE)?.to_str().ok()?;
        Language::accepted(value)
    };
    let remembered = || Language::of(cookie(fields, "lang")?);
    let url = plan.url.clone().unwrap_or_else(|| {
        let host = fields.get(HOST).and_then(|host| host.to_str().ok());
        let is_tls = is_tls(fields, &parts.extensions);
        let scheme = if is_tls { "https" } else { "http" };
        format!("{scheme}://{}{base}", host.unwrap_or("localhost"))
    });
    let visit = Visit {
        api,
        plan,
        path,
        query: parts.uri.query(),
        fields,
        t: named
            .or_else(remembered)
            .or_else(accepted)
            .unwrap_or(plan.language),
        sets_language: named.is_some(),
        url,
        base,
    };
    match parts.method {
        Method::GET | Method::HEAD => visit.get(&parts.extensions).await,
        Method::POST => visit.post(&parts.extensions, body).await,
        _ => crate::api::method_not_allowed().await.into_response(),
    }
}

/// A parameter of a query.
pub(crate) fn parameter(query: Option<&str>, name: &str) -> Option<String> {
    let mut pairs = url::form_urlencoded::parse(query?.as_bytes());
    let found = pairs.find(|(key, _)| key == name);
    found.map(|(_, value)| value.into_owned())
}

/// The value of a cookie (RFC 6265, section 4.2).
pub(crate) fn cookie<'f>(fields: &'f HeaderMap, name: &str) -> Option<&'f str> {
    let all = fields.get_all(COOKIE).iter();
    let pairs = all.filter_map(|value| value.to_str().ok());
    let mut pairs = pairs.flat_map(|value| value.split(';'));
    pairs.find_map(|pair| pair.trim().strip_prefix(name)?.strip_prefix('='))
}

impl Visit<'_> {
    fn frame<'f>(&'f self, style: &'f str, state: Shown) -> Frame<'f> {
        let mut frame = Frame::new(self.plan, self.t, &self.base, style, state);
        frame.is_live = true;
        frame.subscribes = self.may_subscribe();
        frame
    }

    async fn get(&self, extensions: &http::Extensions) -> Response {
        if let Some(asset) = self.asset() {
            return asset;
        }
        // The links of messages work without a password.
        if self.path.starts_with("/subscribe/") {
            return match self.subscription().await {
                Some(response) => response,
                None => self.missing(),
            };
        }
        if let Some(token) = self.path.strip_prefix("/share/") {
            return match self.shared(token).await {
                Some(response) => response,
                None => self.missing(),
            };
        }
        if let Some(refusal) = self.refusal(extensions).await {
            return refusal;
        }
        if let Some(response) = self.subscription().await {
            return response;
        }
        if self.path == "/events" {
            return live::events(self.api.handle.board.subscribe());
        }
        if self.path == "/logo" {
            return self.logo().await;
        }
        if !is_known(self.path) {
            return not_found().await.into_response();
        }
        let current = self.api.pages.current(&self.api.handle, self.plan).await;
        match current {
            Ok(current) => self.of_snapshot(&current).await,
            Err(error) => crate::api::ApiError::from(error).into_response(),
        }
    }

    /// Assets are the same for everyone, with or without a password.
    fn asset(&self) -> Option<Response> {
        let name = self.path.strip_prefix("/assets/")?;
        let (style_name, style) = html::style(self.plan);
        let rendered = if name == style_name {
            Rendered::new("text/css; charset=utf-8", style)
        } else if name == html::script_name() {
            Rendered::new("text/javascript; charset=utf-8", html::SCRIPT.to_owned())
        } else {
            return Some(refused(StatusCode::NOT_FOUND, "there is no such file\n"));
        };
        Some(reply(&rendered, self.fields, Caching::Forever))
    }

    async fn logo(&self) -> Response {
        match &self.plan.logo {
            Some(logo) => reply::picture(logo.media_type, &logo.content),
            None => not_found().await.into_response(),
        }
    }

    async fn of_snapshot(&self, current: &Arc<Current>) -> Response {
        if self.path.ends_with("/badge.svg") {
            return self.badge(&current.snapshot);
        }
        let window = parameter(self.query, "window").unwrap_or_default();
        let key = format!("{} {} {window}", self.url, self.path);
        let rendered = match current.known(self.t, &key) {
            Some(known) => known,
            None => match self.render(current, &window).await {
                Some(rendered) => {
                    let rendered = Arc::new(rendered);
                    current.keep(self.t, &key, Arc::clone(&rendered));
                    rendered
                }
                None => return self.missing(),
            },
        };
        let caching = match self.plan.guard {
            _ if self.sets_language => Caching::Language(self.t.code()),
            crate::page::Guard::Open => Caching::Briefly,
            _ => Caching::Private,
        };
        let mut response = reply(&rendered, self.fields, caching);
        if self.path == "/embed" {
            reply::allow_frames(&mut response);
        }
        response
    }

    /// The state of the page or of a component, or its uptime, as a picture. Drawn each time: it has any label.
    fn badge(&self, snapshot: &Snapshot) -> Response {
        let look = match Look::of(|key| parameter(self.query, key)) {
            Ok(look) => look,
            Err((key, why)) => {
                return refused(StatusCode::BAD_REQUEST, format!("`{key}` {why}\n"));
            }
        };
        let segments: Vec<_> = self.path.trim_start_matches('/').split('/').collect();
        let badge = match segments.as_slice() {
            ["badge.svg"] => {
                let text = self.t.text(snapshot.overall.overall());
                Badge::new(&self.plan.title, text, badge_color(snapshot.overall))
            }
            ["components", key, "badge.svg"] => {
                let Some(one) = snapshot.components().find(|one| one.key == *key) else {
                    return self.missing();
                };
                let is_uptime = parameter(self.query, "show").as_deref() == Some("uptime");
                match one.uptime.ratio() {
                    Some(ratio) if is_uptime => {
                        let percent = badge::percent(ratio);
                        Badge::new(&one.name, &percent, badge::of_uptime(ratio))
                    }
                    None if is_uptime => {
                        let text = self.t.text(Shown::Unknown.text());
                        Badge::new(&one.name, text, badge::GREY)
                    }
                    _ => {
                        let text = self.t.text(one.state.text());
                        Badge::new(&one.name, text, badge_color(one.state))
                    }
                }
            }
            _ => return self.missing(),
        };
        let rendered = Rendered::new("image/svg+xml", badge.with(look).svg());
        let caching = match self.plan.guard {
            crate::page::Guard::Open => Caching::Briefly,
            _ => Caching::Private,
        };
        reply(&rendered, self.fields, caching)
    }

    fn missing(&self) -> Response {
        let (style, _) = html::style(self.plan);
        let frame = Frame::new(self.plan, self.t, &self.base, &style, Shown::Unknown);
        let page = html::message_page(frame, self.t.text("not_found"), true, false);
        let rendered = Rendered::new(HTML, page);
        let mut response = reply(&rendered, self.fields, Caching::Private);
        *response.status_mut() = StatusCode::NOT_FOUND;
        response
    }

    async fn render(&self, current: &Current, window: &str) -> Option<Rendered> {
        let snapshot = &current.snapshot;
        let (style, _) = html::style(self.plan);
        let f = self.frame(&style, snapshot.overall);
        let page = |content| Some(Rendered::new(HTML, content));
        let segments: Vec<_> = self.path.trim_start_matches('/').split('/').collect();
        match segments.as_slice() {
            [""] => page(html::status_page(f, snapshot, current.is_stale)),
            ["embed"] => page(html::embed(f, snapshot)),
            ["history"] => page(self.history(f, snapshot, None).await?),
            ["history", month] => page(self.history(f, snapshot, Some(month)).await?),
            ["incidents", id] => page(self.incident(f, snapshot, id).await?),
            ["maintenance", id @ ..] => page(self.maintenance(f, snapshot, &id.join("/")).await?),
            ["components", key] => page(self.component(f, snapshot, key, window).await?),
            ["components", key, "shields.json"] => {
                let one = snapshot.components().find(|one| one.key == *key)?;
                let text = self.t.text(one.state.text());
                Some(shields(&one.name, text, one.state))
            }
            ["shields.json"] => {
                let text = self.t.text(snapshot.overall.overall());
                Some(shields(&self.plan.title, text, snapshot.overall))
            }
            ["icon.svg"] => Some(Rendered::new(
                "image/svg+xml",
                html::tab_icon(snapshot.overall),
            )),
            ["feed.atom"] => Some(Rendered::new(
                "application/atom+xml; charset=utf-8",
                feed::atom(f, snapshot, &self.url),
            )),
            ["feed.rss"] => Some(Rendered::new(
                "application/rss+xml; charset=utf-8",
                feed::rss(f, snapshot, &self.url),
            )),
            ["calendar.ics"] => Some(Rendered::new(
                "text/calendar; charset=utf-8",
                feed::calendar(f, snapshot, &self.url),
            )),
            ["api", "v2", rest @ ..] => {
                let path = rest.join("/");
                let completed = if path == statuspage::ALL_MAINTENANCE {
                    self.completed(snapshot)
                } else {
                    Completed::default()
                };
                let answer = statuspage::answer(f, snapshot, &completed.all, &self.url, &path)?;
                Some(Rendered::new("application/json", answer.to_string()))
            }
            _ => None,
        }
    }

    /// Maintenance of the days of the strips that is over.
    fn completed(&self, snapshot: &Snapshot) -> Completed {
        let (_, borders) = days_until(self.plan, snapshot.built);
        let now = snapshot.built;
        let from = borders.first().copied().unwrap_or(now);
        let (views, known) = (self.views(), snapshot.known());
        completed(self.plan, &views, &known, (from, now), now, MOST_COMPLETED)
    }

    /// The incidents and maintenance of a month, the present one unless it is given.
    async fn history(
        &self,
        f: Frame<'_>,
        snapshot: &Snapshot,
        month: Option<&str>,
    ) -> Option<String> {
        let now = snapshot.built;
        let zone = &self.plan.zone;
        let today = now.to_jiff().to_zoned(zone.clone()).date();
        let first = match month {
            None => today.first_of_month(),
            Some(month) => month_of(month).filter(|first| *first <= today)?,
        };
        let start = first.to_zoned(zone.clone()).ok()?.timestamp();
        let start = Timestamp(start.as_millisecond());
        let next = first.checked_add(jiff::Span::new().months(1)).ok()?;
        let end = next.to_zoned(zone.clone()).ok()?.timestamp();
        let month = (start, Timestamp(end.as_millisecond()));
        let views = self.views();
        let completed = |known: &HashMap<MonitorId, Timestamp>| {
            completed(self.plan, &views, known, month, now, MOST_OF_MONTH)
        };
        let is_kept = snapshot.dates.first().is_some_and(|from| *from <= first);
        if is_kept {
            let completed = completed(&snapshot.known());
            let incidents = &snapshot.incidents;
            return Some(html::history_page(f, incidents, &completed, first, now));
        }
        let handle = &self.api.handle;
        let (store, org) = (&handle.store, handle.org);
        let rows = Rows {
            incidents: store.timelines(org, start, MOST_INCIDENTS).await.ok()?,
            declared: store
                .declared(org, start, None, MOST_INCIDENTS)
                .await
                .ok()?,
            ..Rows::default()
        };
        let known = self.known(snapshot, month).await?;
        let incidents = incidents_of(self.plan, &views, &rows, now);
        let completed = completed(&known);
        Some(html::history_page(f, &incidents, &completed, first, now))
    }

    /// From when on the health of each component's monitor is known, within a period that the snapshot lacks.
    async fn known(
        &self,
        snapshot: &Snapshot,
        (from, to): Span,
    ) -> Option<HashMap<MonitorId, Timestamp>> {
        let handle = &self.api.handle;
        let monitors: Vec<_> = snapshot.components().map(|one| one.id).collect();
        let histories = handle
            .store
            .histories(handle.org, monitors.clone(), from, to, to);
        let histories = monitors.into_iter().zip(histories.await.ok()?);
        let known =
            histories.filter_map(|(monitor, history)| Some((monitor, history.health.first()?.at)));
        Some(known.collect())
    }

    /// One occurrence of maintenance, which may be older than those of the snapshot, with links to the last one and the
    /// next ones of its window.
    async fn maintenance(&self, f: Frame<'_>, snapshot: &Snapshot, id: &str) -> Option<String> {
        let now = snapshot.built;
        let recent = self.completed(snapshot).all;
        let announced = || snapshot.maintenance.iter();
        let mut found = announced().chain(&recent).find(|one| one.id == id).cloned();
        if found.is_none() {
            let from = PublicMaintenance::start_of(id).filter(|from| *from < now)?;
            let moment = (from, Timestamp(from.0 + 1));
            // Its monitors may have begun while it was under way.
            let known = self.known(snapshot, (from, from.plus(LONGEST))).await?;
            let all = completed(self.plan, &self.views(), &known, moment, now, 1).all;
            found = all.into_iter().find(|one| one.id == id);
        }
        let found = found?;
        let is_other = |one: &&PublicMaintenance| one.name == found.name && one.id != found.id;
        let last = recent.iter().find(is_other);
        let next = announced().filter(is_other).take(html::PLANNED);
        let others = last.into_iter().chain(next);
        Some(html::maintenance_page(f, &found, others))
    }

    fn views(&self) -> BTreeMap<String, View> {
        let views = self.api.handle.board.views();
        views
            .into_iter()
            .map(|view| (view.plan.key.clone(), view))
            .collect()
    }

    fn incidents(&self, rows: &Rows, now: Timestamp) -> Vec<PublicIncident> {
        incidents_of(self.plan, &self.views(), rows, now)
    }

    /// One incident, which may be older than those of the snapshot.
    async fn incident(&self, f: Frame<'_>, snapshot: &Snapshot, id: &str) -> Option<String> {
        if let Some(known) = snapshot.incidents.iter().find(|one| one.id == id) {
            return Some(html::incident_page(f, known));
        }
        let handle = &self.api.handle;
        let (store, org) = (&handle.store, handle.org);
        let mut rows = Rows::default();
        if let Some(number) = id.strip_prefix('m') {
            let number = IncidentId(number.parse().ok()?);
            rows.incidents
                .extend(store.incident(org, number).await.ok()?);
        } else {
            let number = DeclaredId(id.strip_prefix('d')?.parse().ok()?);
            rows.declared
                .extend(store.declared_one(org, number).await.ok()?);
        }
        let found = self.incidents(&rows, snapshot.built);
        found.first().map(|one| html::incident_page(f, one))
    }

    async fn component(
        &self,
        f: Frame<'_>,
        snapshot: &Snapshot,
        key: &str,
        window: &str,
    ) -> Option<String> {
        let component = snapshot.components().find(|one| one.key == key)?;
        let chosen = WINDOWS.iter().find(|one| one.query == window);
        let chosen: &Window = chosen.unwrap_or(&WINDOWS[0]);
        let view = self.api.handle.board.view(key)?;
        let now = snapshot.built;
        let handle = &self.api.handle;
        let (store, org) = (&handle.store, handle.org);
        let longest = now.minus(WINDOWS[WINDOWS.len() - 1].length);
        let until = Timestamp(now.0 + 1);
        let health = store.health(org, component.id, longest, until).await.ok()?;
        let changes: Vec<_> = health.into_iter().map(|(change, _)| change).collect();
        let declared = store
            .declared(org, longest, None, MOST_INCIDENTS)
            .await
            .ok()?;
        let declared = declared_downtime(&declared, component.id, now);
        let uptimes = WINDOWS.iter().map(|window| {
            let span = (now.minus(window.length), now);
            uptime(&changes, &declared, &excluded(&view, span), span)
        });
        let uptimes: Vec<_> = uptimes.collect();
        // About a hundred points at most.
        let (resolution, merged) = match chosen.length.as_secs() / 86_400 {
            ..=1 => (Resolution::Minute, 15),
            2..=8 => (Resolution::Hour, 2),
            _ => (Resolution::Hour, 8),
        };
        let from = now.minus(chosen.length);
        let rollups = store
            .rollups(org, component.id, resolution, from, until)
            .await
            .ok()?;
        let buckets = merge(&rollups, resolution.millis() * merged);
        let mut regions = Vec::new();
        if view.plan.from.len() > 1 {
            let day = now.minus(WINDOWS[0].length);
            let found = store.by_region(org, component.id, day, until).await.ok()?;
            let named = |(number, rollup)| (handle.board.region_of(number), rollup);
            regions = found.into_iter().map(named).collect();
        }
        let measured = (buckets.as_slice(), regions.as_slice());
        Some(html::component_page(
            f, snapshot, component, &uptimes, chosen, measured,
        ))
    }
}

/// Whether a page may have a path, so that others need no snapshot.
fn is_known(path: &str) -> bool {
    const FIRST: [&str; 13] = [
        "",
        "embed",
        "history",
        "incidents",
        "maintenance",
        "components",
        "shields.json",
        "badge.svg",
        "icon.svg",
        "feed.atom",
        "feed.rss",
        "calendar.ics",
        "api",
    ];

    let rest = path.trim_start_matches('/');
    let first = rest.split('/').next().unwrap_or_default();
    FIRST.contains(&first) && (first != "api" || rest.starts_with("api/v2/"))
}

/// The first day of a month such as `2026-03`.
fn month_of(text: &str) -> Option<Date> {
    let (year, month) = text.split_once('-')?;
    if year.len() != 4 || month.len() != 2 {
        return None;
    }
    Date::new(year.parse().ok()?, month.parse().ok()?, 1).ok()
}

/// Buckets that are `millis` milliseconds long.
/// Buckets of `millis` milliseconds from finer ones.
pub(crate) fn merge(rollups: &[crate::store::Rollup], millis: i64) -> Vec<crate::store::Rollup> {
    let mut all: Vec<crate::store::Rollup> = Vec::new();
    for rollup in rollups {
        let start = rollup.start.floor(millis);
        match all.last_mut() {
            Some(last) if last.start == start => last.merge(rollup),
            _ => {
                let mut first = crate::store::Rollup::at(start);
                first.merge(rollup);
                all.push(first);
            }
        }
    }
    all
}

fn badge_color(state: Shown) -> &'static str {
    match state {
        Shown::Operational => badge::GREEN,
        Shown::Degraded => badge::YELLOW,
        Shown::Partial => badge::ORANGE,
        Shown::Major => badge::RED,
        Shown::Maintenance => badge::BLUE,
        Shown::Unknown => badge::GREY,
    }
}

/// The endpoint format of shields.io.
fn shields(label: &str, message: &str, state: Shown) -> Rendered {
    let color = match state {
        Shown::Operational => "brightgreen",
        Shown::Degraded => "yellow",
        Shown::Partial => "orange",
        Shown::Major => "red",
        Shown::Maintenance => "blue",
        Shown::Unknown => "lightgrey",
    };
    let answer = json!({ "schemaVersion": 1, "label": label, "message": message, "color": color });
    Rendered::new("application/json", answer.to_string())
}

/// Sessions of readers last so long.
pub(crate) const SESSION: Duration = Duration::from_hours(30 * 24);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cookies_hosts_and_months() {
        let mut fields = HeaderMap::new();
        fields.append(COOKIE, "a=1; lang=de".parse().unwrap());
        fields.append(COOKIE, "language=fr".parse().unwrap());
        assert_eq!(cookie(&fields, "lang"), Some("de"));
        assert_eq!(cookie(&fields, "b"), None);
        for (given, expected) in [
            ("Status.Example.org:8080", "status.example.org"),
            ("[::1]:80", "[::1]"),
            ("a", "a"),
        ] {
            fields.insert(HOST, given.parse().unwrap());
            assert_eq!(host(&fields).as_deref(), Some(expected));
        }
        assert!(month_of("2026-02").is_some());
        for wrong in ["2026-13", "26-01", "2026-1", "2026", "x-01", "2026-02-01"] {
            assert_eq!(month_of(wrong), None, "{wrong}");
        }
        assert!(is_known("/api/v2/summary.json") && !is_known("/api/v1/nothing"));
    }
}
