//! The calendar of maintenance: windows of the file and of the store, and what is coming.

use askama::Template;
use axum::extract::{Extension, RawQuery, State};
use axum::response::Response;
use http::StatusCode;
use plimsoll_monitor::config::maintenance::MOST_ABOUT;
use plimsoll_monitor::config::overlay::PlacedWindow;
use plimsoll_monitor::manage::Put;
use plimsoll_monitor::store::DefinitionKind;
use plimsoll_monitor::time::Timestamp;

use crate::admin::date_time::moment;
use crate::admin::faults::first_part;
use crate::admin::form::Form;
use crate::admin::form_error::FormError;
use crate::admin::guard::Me;
use crate::admin::overview::refused;
use crate::admin::removal;
use crate::admin::shell::{Shell, When, duration, html, redirect};
use crate::state::Api;

/// Days that the calendar looks ahead, and occurrences that it shows.
const AHEAD: std::time::Duration = std::time::Duration::from_hours(24 * 60);
const MOST: usize = 100;

/// A window.
#[derive(Debug)]
struct Row {
    name: String,
    about: Option<String>,
    next: Option<When>,
    is_active: bool,
    lasts: String,
    scope: String,
    is_kept: bool,
}

/// A time at which a window is under way.
#[derive(Debug)]
struct Occurrence {
    name: String,
    /// Whether it is under way; `from` is then the present.
    is_active: bool,
    from: When,
    until: When,
}

#[derive(Template)]
#[template(path = "admin/maintenance.html")]
struct CalendarPage {
    s: Shell,
    rows: Vec<Row>,
    coming: Vec<Occurrence>,
    monitors: Vec<(String, String)>,
    name: String,
    when: String,
    /// Of a window that does not repeat: date and time as the browser's field has them.
    date: String,
    /// Of one that does: a clock time.
    time: String,
    cron: String,
    lasts: String,
    zone: String,
    about: String,
    most_about: usize,
    is_open: bool,
}

pub(super) async fn list(
    State(api): State<Api>,
    Extension(me): Extension<Me>,
    RawQuery(query): RawQuery,
) -> Result<Response, Response> {
    let shell = Shell::new(&me, "/admin/maintenance", "Maintenance").done(query.as_deref());
    shown(&api, &me, shell).await
}

async fn shown(api: &Api, me: &Me, shell: Shell) -> Result<Response, Response> {
    let handle = &api.handle;
    let kind = DefinitionKind::Maintenance;
    let kept = handle.store.definitions(handle.org, kind).await;
    let kept = kept.map_err(refused)?;
    let windows = handle.board.windows();
    let row = |placed: &PlacedWindow| Row {
        name: placed.window.name.clone(),
        about: placed.window.about.clone(),
        next: placed.window.next_start(me.now).map(When::from_timestamp),
        is_active: placed.window.is_active(me.now),
        lasts: duration(placed.window.duration),
        scope: if placed.only.is_empty() {
            "all monitors".to_owned()
        } else {
            let names = placed.only.iter().map(|one| {
                let view = handle.board.view(one);
                view.map_or_else(|| one.clone(), |view| view.plan.name.clone())
            });
            names.collect::<Vec<_>>().join(", ")
        },
        is_kept: kept.iter().any(|(one, _)| one.key == placed.window.name),
    };
    let mut coming: Vec<(Timestamp, Occurrence)> = windows
        .iter()
        .flat_map(|placed| {
            let spans = placed.window.spans(me.now, me.now.plus(AHEAD));
            spans.into_iter().take(MOST).map(|(from, until)| {
                let occurrence = Occurrence {
                    name: placed.window.name.clone(),
                    is_active: from <= me.now,
                    from: When::from_timestamp(from),
                    until: When::from_timestamp(until),
                };
                (from, occurrence)
            })
        })
        .collect();
    coming.sort_by_key(|(from, _)| *from);
    coming.truncate(MOST);
    let views = handle.board.views();
    let monitors = views
        .iter()
        .map(|view| (view.plan.key.clone(), view.plan.name.clone()));
    let form = &me.form;
    let status = if shell.is_wrong() {
        StatusCode::UNPROCESSABLE_ENTITY
    } else {
        StatusCode::OK
    };
    let page = CalendarPage {
        is_open: shell.is_wrong(),
        rows: windows.iter().map(row).collect(),
        coming: coming
            .into_iter()
            .map(|(_, occurrence)| occurrence)
            .collect(),
        monitors: monitors.collect(),
        name: form.get("name").to_owned(),
        when: form.get("when").to_owned(),
        date: form.get("date").to_owned(),
        time: form.get("time").to_owned(),
        cron: form.get("cron").to_owned(),
        lasts: form.get("duration").to_owned(),
        zone: form.get("zone").to_owned(),
        about: form.text("about"),
        most_about: MOST_ABOUT,
        s: shell,
    };
    Ok(html(&page, status))
}

/// The definition of the form.
fn table(form: &Form) -> Result<toml::Table, FormError> {
    let mut table = toml::Table::new();
    let mut put = |key: &str, value: &str| {
        if !value.is_empty() {
            table.insert(key.to_owned(), value.into());
        }
    };
    let zone = form.get("zone");
    put("name", form.get("name"));
    put("about", form.text("about").trim());
    put("duration", form.get("duration"));
    put("zone", zone);
    match form.get("when") {
        "once" => {
            let begins = moment(form.get("date"), zone).map_err(|error| {
                let field = if error.is_about_zone() {
                    "zone"
                } else {
                    "date"
                };
                FormError::Field(field, error.to_string())
            })?;
            put("once", &begins.to_string());
        }
        "cron" => put("cron", form.get("cron")),
        days => {
            put("at", form.get("time"));
            let days: Vec<String> = match days {
                "daily" => DAYS.map(str::to_owned).to_vec(),
                day => vec![day.to_owned()],
            };
            table.insert("weekly".to_owned(), days.into());
        }
    }
    let only: Vec<String> = form.all("monitor").into_iter().map(str::to_owned).collect();
    if !only.is_empty() {
        table.insert("monitors".to_owned(), only.into());
    }
    Ok(table)
}

const DAYS: [&str; 7] = [
    "monday",
    "tuesday",
    "wednesday",
    "thursday",
    "friday",
    "saturday",
    "sunday",
];

pub(super) async fn add(
    State(api): State<Api>,
    Extension(me): Extension<Me>,
) -> Result<Response, Response> {
    let error = match added(&api, &me).await {
        Ok(()) => return Ok(redirect("/admin/maintenance?done=saved")),
        Err(error) => error,
    };
    let shell = Shell::new(&me, "/admin/maintenance", "Maintenance");
    let shell = shell.refused(Some(&error), field_of);
    shown(&api, &me, shell).await
}

/// The field of a key of a definition.
fn field_of(key: &str) -> Option<String> {
    let field = match first_part(key) {
        field @ ("name" | "about" | "duration" | "zone" | "date" | "cron") => field,
        "once" => "date",
        "at" => "time",
        "weekly" => "when",
        _ => return None,
    };
    Some(field.to_owned())
}

async fn added(api: &Api, me: &Me) -> Result<(), FormError> {
    let put = Put {
        id: None,
        was: None,
        version: None,
        table: table(&me.form)?,
    };
    let kind = DefinitionKind::Maintenance;
    let handle = &api.handle;
    handle.change_other(&me.actor, kind, put, me.now).await?;
    Ok(())
}

pub(super) async fn remove(State(api): State<Api>, Extension(me): Extension<Me>) -> Response {
    match removal::remove(&api, &me, DefinitionKind::Maintenance, me.form.get("name")).await {
        Ok(()) => redirect("/admin/maintenance?done=deleted"),
        Err(page) => page,
    }
}
