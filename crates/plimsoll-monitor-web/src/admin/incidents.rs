//! Outages that monitors open, and incidents that people declare.

use askama::Template;
use axum::extract::{Extension, Path, RawQuery, State};
use axum::response::Response;
use http::StatusCode;
use plimsoll_monitor::store::{
    Declared, DeclaredEdit, DeclaredId, Impact, Incident, IncidentFilter, IncidentId, MonitorId,
    NewDeclared, PublicPhase, Role,
};
use plimsoll_monitor::time::Timestamp;

use crate::admin::choice::Choice;
use crate::admin::date_time::moment;
use crate::admin::form_error::FormError;
use crate::admin::guard::Me;
use crate::admin::monitors::failed;
use crate::admin::overview::refused;
use crate::admin::shell::{Shell, When, duration, html, missing, page, redirect};
use crate::api::encoded;
use crate::state::Api;

/// Incidents of one page.
const MOST: usize = 100;

/// Characters.
const MOST_TITLE: usize = 200;
const MOST_TEXT: usize = 20_000;

/// An outage as lists show it.
#[derive(Debug)]
pub(super) struct Outage {
    pub(super) id: i64,
    pub(super) name: String,
    pub(super) path: Option<String>,
    pub(super) state: &'static str,
    pub(super) class: &'static str,
    pub(super) opened: When,
    pub(super) lasted: String,
    pub(super) reason: String,
    pub(super) is_open: bool,
    pub(super) is_acknowledged: bool,
}

pub(super) fn outages(api: &Api, incidents: &[Incident], now: Timestamp) -> Vec<Outage> {
    let one = |incident: &Incident| {
        let key = api.handle.board.key(incident.monitor);
        let view = key.as_ref().and_then(|key| api.handle.board.view(key));
        let (state, class) = match (incident.resolved, incident.acknowledged) {
            (Some(_), _) => ("Resolved", "operational"),
            (None, Some(_)) => ("Acknowledged", "degraded"),
            (None, None) => ("Open", "major"),
        };
        let until = incident.resolved.unwrap_or(now);
        Outage {
            id: incident.id.0,
            name: view.map_or_else(
                || "a deleted monitor".to_owned(),
                |view| view.plan.name.clone(),
            ),
            path: key.map(|key| format!("/admin/monitors/{}", encoded(&key))),
            state,
            class,
            opened: When::from_timestamp(incident.opened),
            lasted: duration(incident.lasted(until)),
            reason: incident.reason.clone().unwrap_or_default(),
            is_open: incident.resolved.is_none(),
            is_acknowledged: incident.acknowledged.is_some(),
        }
    };
    incidents.iter().map(one).collect()
}

/// A declared incident as lists show it.
#[derive(Debug)]
struct DeclaredRow {
    id: i64,
    title: String,
    phase: &'static str,
    impact: &'static str,
    class: &'static str,
    started: When,
}

fn declared_row(declared: &Declared) -> DeclaredRow {
    DeclaredRow {
        id: declared.id.0,
        title: declared.title.clone(),
        phase: declared.phase.name(),
        impact: declared.impact.name(),
        class: class_of(declared),
        started: When::from_timestamp(declared.started),
    }
}

fn class_of(declared: &Declared) -> &'static str {
    match declared.impact {
        _ if declared.phase.is_over() => "operational",
        Impact::None => "unknown",
        Impact::Minor => "degraded",
        Impact::Major => "partial",
        Impact::Critical => "major",
    }
}

#[derive(Template)]
#[template(path = "admin/incidents.html")]
struct ListPage {
    s: Shell,
    outages: Vec<Outage>,
    declared: Vec<DeclaredRow>,
    only_open: bool,
    next: Option<i64>,
}

pub(super) async fn list(
    State(api): State<Api>,
    Extension(me): Extension<Me>,
    RawQuery(query): RawQuery,
) -> Result<Response, Response> {
    let query = query.as_deref();
    let only_open = crate::request::parameter(query, "state").as_deref() == Some("open");
    let after = crate::request::parameter(query, "after").and_then(|text| text.parse().ok());
    let handle = &api.handle;
    let filter = IncidentFilter {
        monitor: None,
        open: only_open.then_some(true),
    };
    let mut found = handle
        .store
        .incidents(handle.org, filter, after.map(IncidentId), MOST + 1)
        .await
        .map_err(refused)?;
    let has_more = found.len() > MOST;
    found.truncate(MOST);
    let since = Timestamp(if only_open { i64::MAX } else { i64::MIN });
    let declared = handle
        .store
        .declared(handle.org, since, None, MOST)
        .await
        .map_err(refused)?;
    Ok(page(&ListPage {
        s: Shell::new(&me, "/admin/incidents", "Incidents").done(query),
        next: found.last().filter(|_| has_more).map(|last| last.id.0),
        outages: outages(&api, &found, me.now),
        declared: declared.iter().map(declared_row).collect(),
        only_open,
    }))
}

/// An entry of a timeline.
#[derive(Debug)]
struct Event {
    at: When,
    kind: String,
    actor: String,
    text: String,
}

#[derive(Template)]
#[template(path = "admin/outage.html")]
struct OutagePage {
    s: Shell,
    outage: Outage,
    events: Vec<Event>,
}

pub(super) async fn outage(
    State(api): State<Api>,
    Extension(me): Extension<Me>,
    Path(id): Path<i64>,
) -> Result<Response, Response> {
    let handle = &api.handle;
    let found = handle.store.incident(handle.org, IncidentId(id)).await;
    let Some((incident, events)) = found.map_err(refused)? else {
        return Err(missing().await);
    };
    let Some(outage) = outages(&api, &[incident], me.now).pop() else {
        return Err(missing().await);
    };
    let events = events.into_iter().map(|event| Event {
        at: When::from_timestamp(event.at),
        kind: event.kind.name().to_owned(),
        actor: event.actor.unwrap_or_default(),
        text: event.text.unwrap_or_default(),
    });
    Ok(page(&OutagePage {
        s: Shell::new(
            &me,
            "/admin/incidents",
            format!("Outage of {}", outage.name),
        ),
        events: events.collect(),
        outage,
    }))
}

/// The monitors that an incident may affect.
fn choices(api: &Api, chosen: &[MonitorId], keys: &[&str]) -> Vec<Choice> {
    Choice::monitors(api, |view| {
        chosen.contains(&view.id) || keys.contains(&view.plan.key.as_str())
    })
}

#[derive(Template)]
#[template(path = "admin/incident.html")]
struct IncidentPage {
    s: Shell,
    /// The number; none for one that is to be declared.
    id: Option<i64>,
    version: i64,
    title: String,
    body: String,
    /// Of a new one: date and time as the browser's field has them, and their zone.
    started: String,
    zone: String,
    phase: &'static str,
    impact: &'static str,
    counts: bool,
    monitors: Vec<Choice>,
    updates: Vec<Event>,
    phases: [&'static str; 5],
    impacts: [&'static str; 4],
}

pub(super) async fn new(State(api): State<Api>, Extension(me): Extension<Me>) -> Response {
    form(&api, &me, None)
}

/// The form of a new incident, with what was typed if something is wrong with it.
fn form(api: &Api, me: &Me, error: Option<&FormError>) -> Response {
    let status = if error.is_some() {
        StatusCode::UNPROCESSABLE_ENTITY
    } else {
        StatusCode::OK
    };
    let phase = PublicPhase::named(me.form.get("phase")).unwrap_or(PublicPhase::Investigating);
    let impact = Impact::named(me.form.get("impact")).unwrap_or(Impact::Minor);
    let shown = IncidentPage {
        s: Shell::new(me, "/admin/incidents", "Declare an incident")
            .refused(error, |field| Some(field.to_owned())),
        id: None,
        version: 0,
        title: me.form.get("title").to_owned(),
        body: me.form.text("body"),
        started: me.form.get("started").to_owned(),
        zone: me.form.get("zone").to_owned(),
        phase: phase.name(),
        impact: impact.name(),
        counts: me.form.is_set("counts"),
        monitors: choices(api, &[], &me.form.all("monitor")),
        updates: Vec::new(),
        phases: PublicPhase::ALL.map(PublicPhase::name),
        impacts: Impact::ALL.map(Impact::name),
    };
    html(&shown, status)
}

/// Fails with the error in a title or a text.
fn checked(title: &str, body: &str) -> Result<(), FormError> {
    if title.is_empty() || title.chars().count() > MOST_TITLE {
        let why = format!("The title must have 1 to {MOST_TITLE} characters.");
        return Err(FormError::Field("title", why));
    }
    if body.chars().count() > MOST_TEXT {
        let why = format!("The text may have {MOST_TEXT} characters.");
        return Err(FormError::Field("body", why));
    }
    Ok(())
}

/// When an incident began, which is now unless another time was typed.
fn started(me: &Me) -> Result<Timestamp, FormError> {
    let typed = me.form.get("started");
    if typed.is_empty() {
        return Ok(me.now);
    }
    let at = moment(typed, me.form.get("zone")).map_err(|error| {
        let field = if error.is_about_zone() {
            "zone"
        } else {
            "started"
        };
        FormError::Field(field, error.to_string())
    })?;
    if at > me.now {
        let why = "An incident cannot begin in the future.";
        return Err(FormError::Field("started", why.to_owned()));
    }
    Ok(at)
}

fn affected(api: &Api, me: &Me) -> Vec<MonitorId> {
    let keys = me.form.all("monitor");
    let views = keys.iter().filter_map(|key| api.handle.board.view(key));
    views.map(|view| view.id).collect()
}

pub(super) async fn declare(State(api): State<Api>, Extension(me): Extension<Me>) -> Response {
    let made = match made(&api, &me).await {
        Ok(made) => made,
        Err(error) => return form(&api, &me, Some(&error)),
    };
    let object = made.id.0.to_string();
    let handle = &api.handle;
    if let Err(error) = handle
        .note(&me.actor, "incident.declare", &object, me.now)
        .await
    {
        return failed(&me, error.to_string());
    }
    handle.board.touch();
    redirect(&format!("/admin/incidents/{object}?done=declared"))
}

async fn made(api: &Api, me: &Me) -> Result<Declared, FormError> {
    let (title, body) = (me.form.get("title").to_owned(), me.form.text("body"));
    checked(&title, &body)?;
    let new = NewDeclared {
        title,
        phase: PublicPhase::named(me.form.get("phase")).unwrap_or(PublicPhase::Investigating),
        impact: Impact::named(me.form.get("impact")).unwrap_or(Impact::Minor),
        counts_as_downtime: me.form.is_set("counts"),
        started: started(me)?,
        monitors: affected(api, me),
        body,
        actor: Some(me.user.name.clone()),
        idempotency: None,
    };
    let handle = &api.handle;
    Ok(handle.store.declare(handle.org, new, me.now).await?)
}

pub(super) async fn declared(
    State(api): State<Api>,
    Extension(me): Extension<Me>,
    Path(id): Path<i64>,
    RawQuery(query): RawQuery,
) -> Result<Response, Response> {
    let handle = &api.handle;
    let found = handle.store.declared_one(handle.org, DeclaredId(id)).await;
    let Some(found) = found.map_err(refused)? else {
        return Err(missing().await);
    };
    debug_assert!(me.may(Role::Viewer));
    Ok(page(&IncidentPage {
        s: Shell::new(&me, "/admin/incidents", found.title.clone()).done(query.as_deref()),
        ..IncidentPage::of_declared(&api, &me, &found)
    }))
}

/// The form of a declared incident with what was typed, since something is wrong with it.
fn again(api: &Api, me: &Me, found: &Declared, error: &FormError) -> Response {
    let shown = IncidentPage {
        s: Shell::new(me, "/admin/incidents", found.title.clone())
            .refused(Some(error), |field| Some(field.to_owned())),
        title: me.form.get("title").to_owned(),
        body: me.form.text("body"),
        ..IncidentPage::of_declared(api, me, found)
    };
    html(&shown, StatusCode::UNPROCESSABLE_ENTITY)
}

impl IncidentPage {
    fn of_declared(api: &Api, me: &Me, found: &Declared) -> Self {
        let updates = found.updates.iter().map(|update| Event {
            at: When::from_timestamp(update.at),
            kind: update.phase.name().to_owned(),
            actor: update.actor.clone().unwrap_or_default(),
            text: update.body.clone(),
        });
        Self {
            s: Shell::new(me, "/admin/incidents", found.title.clone()),
            id: Some(found.id.0),
            version: found.version,
            title: found.title.clone(),
            body: String::new(),
            started: String::new(),
            zone: String::new(),
            phase: found.phase.name(),
            impact: found.impact.name(),
            counts: found.counts_as_downtime,
            monitors: choices(api, &found.monitors, &[]),
            updates: updates.collect(),
            phases: PublicPhase::ALL.map(PublicPhase::name),
            impacts: Impact::ALL.map(Impact::name),
        }
    }
}

pub(super) async fn update(
    State(api): State<Api>,
    Extension(me): Extension<Me>,
    Path(id): Path<i64>,
) -> Response {
    let (title, body) = (me.form.get("title").to_owned(), me.form.text("body"));
    if let Err(error) = checked(&title, &body) {
        let store = &api.handle.store;
        return match store.declared_one(api.handle.org, DeclaredId(id)).await {
            Ok(Some(found)) => again(&api, &me, &found, &error),
            Ok(None) => missing().await,
            Err(error) => failed(&me, error.to_string()),
        };
    }
    let edit = DeclaredEdit {
        title: Some(title),
        phase: if me.form.get("action") == "resolve" {
            Some(PublicPhase::Resolved)
        } else {
            PublicPhase::named(me.form.get("phase"))
        },
        impact: Impact::named(me.form.get("impact")),
        counts_as_downtime: Some(me.form.is_set("counts")),
        monitors: Some(affected(&api, &me)),
        body: (!body.is_empty()).then_some(body),
        actor: Some(me.user.name.clone()),
        version: me.form.get("version").parse().ok(),
    };
    let handle = &api.handle;
    let edited = handle
        .store
        .edit_declared(handle.org, DeclaredId(id), edit, me.now)
        .await;
    if let Err(error) = edited {
        return failed(&me, error.to_string());
    }
    let object = id.to_string();
    if let Err(error) = handle
        .note(&me.actor, "incident.update", &object, me.now)
        .await
    {
        return failed(&me, error.to_string());
    }
    handle.board.touch();
    redirect(&format!("/admin/incidents/{id}?done=updated"))
}
