//! Status pages: those of the file, and those of the store with a form and a preview.

use askama::Template;
use axum::extract::{Extension, Path, RawQuery, State};
use axum::response::Response;
use http::StatusCode;
use plimsoll_monitor::manage::{ChangeError, Put};
use plimsoll_monitor::store::DefinitionKind;

use crate::admin::choice::Choice;
use crate::admin::faults::first_part;
use crate::admin::form::Form;
use crate::admin::form_error::FormError;
use crate::admin::guard::Me;
use crate::admin::monitors::failed;
use crate::admin::overview::refused;
use crate::admin::removal::remove;
use crate::admin::shell::{Shell, html, missing, page, redirect, state};
use crate::api::encoded;
use crate::page::{PagePlan, share};
use crate::state::Api;

const KEYS: [&str; 12] = [
    "title", "slug", "about", "host", "url", "zone", "color", "logo", "font", "density", "bars",
    "css",
];

/// A page of the list.
#[derive(Debug)]
struct Row {
    slug: String,
    title: String,
    path: String,
    components: usize,
    is_kept: bool,
}

#[derive(Template)]
#[template(path = "admin/pages.html")]
struct ListPage {
    s: Shell,
    rows: Vec<Row>,
}

pub(super) async fn list(
    State(api): State<Api>,
    Extension(me): Extension<Me>,
    RawQuery(query): RawQuery,
) -> Result<Response, Response> {
    let handle = &api.handle;
    let kept = handle
        .store
        .definitions(handle.org, DefinitionKind::Page)
        .await;
    let kept = kept.map_err(refused)?;
    let pages = handle.board.pages();
    let rows = pages.iter().map(|plan| Row {
        is_kept: kept.iter().any(|(one, _)| one.key == plan.slug),
        path: encoded(&plan.slug),
        slug: plan.slug.clone(),
        title: plan.title.clone(),
        components: plan.components().count(),
    });
    Ok(page(&ListPage {
        s: Shell::new(&me, "/admin/pages", "Status pages").done(query.as_deref()),
        rows: rows.collect(),
    }))
}

/// The typed fields.
#[derive(Debug, Clone, Default)]
struct Fields {
    /// In the order of [`KEYS`].
    plain: [String; 12],
    /// Keys of monitors; none for all.
    chosen: Vec<String>,
    /// TOML.
    more: String,
}

impl Fields {
    fn of_form(form: &Form) -> Self {
        Self {
            plain: KEYS.map(|key| form.text(key)),
            chosen: form.all("monitor").into_iter().map(str::to_owned).collect(),
            more: form.text("more"),
        }
    }

    /// Whether a folded field has a value.
    fn has_more(&self) -> bool {
        const FOLDED: usize = 3;

        let mut folded = self.plain.iter().skip(FOLDED);
        !self.more.is_empty() || folded.any(|value| !value.is_empty())
    }

    fn of_table(mut table: toml::Table) -> Self {
        let mut text = |key| match table.remove(key) {
            Some(toml::Value::String(text)) => text,
            Some(other) => other.to_string(),
            None => String::new(),
        };
        let plain = KEYS.map(&mut text);
        let chosen = match table.remove("monitors") {
            Some(toml::Value::Array(all)) => all
                .iter()
                .filter_map(|one| one.as_str().map(str::to_owned))
                .collect(),
            Some(other) => {
                table.insert("monitors".to_owned(), other);
                Vec::new()
            }
            None => Vec::new(),
        };
        Self {
            plain,
            chosen,
            more: table.to_string(),
        }
    }

    fn table(&self) -> Result<toml::Table, FormError> {
        let more = self.more.parse::<toml::Table>();
        let mut table = more.map_err(FormError::MoreSettings)?;
        for (key, value) in KEYS.iter().zip(&self.plain) {
            if !value.is_empty() {
                table.insert((*key).to_owned(), value.as_str().into());
            }
        }
        if !self.chosen.is_empty() {
            table.insert("monitors".to_owned(), self.chosen.clone().into());
        }
        Ok(table)
    }
}

/// A group of the preview: its name, and components with their states.
type Previewed = (String, Vec<(String, &'static str, &'static str)>);

#[derive(Template)]
#[template(path = "admin/page.html")]
struct EditorPage {
    s: Shell,
    action: String,
    slug: Option<String>,
    version: String,
    f: Fields,
    monitors: Vec<Choice>,
    preview: Option<(String, String, Vec<Previewed>)>,
}

fn previewed(api: &Api, plan: &PagePlan) -> (String, String, Vec<Previewed>) {
    let groups = plan.groups.iter().map(|group| {
        let components = group.components.iter().map(|component| {
            let view = api.handle.board.view(&component.key);
            let (class, word) = view.map_or(("unknown", "Unknown"), |view| {
                state(view.health, view.in_maintenance)
            });
            (component.name.clone(), class, word)
        });
        (group.name.clone(), components.collect())
    });
    let about = plan.about.clone().unwrap_or_default();
    (plan.title.clone(), about, groups.collect())
}

fn shown(
    api: &Api,
    me: &Me,
    slug: Option<&str>,
    version: String,
    fields: Fields,
    error: Option<&FormError>,
) -> Response {
    let status = if error.is_some() {
        StatusCode::UNPROCESSABLE_ENTITY
    } else {
        StatusCode::OK
    };
    let compiled = fields.table().ok().and_then(|table| {
        let text = table.to_string();
        api.handle.page_of(&text, slug).ok()
    });
    let (title, action) = match slug {
        Some(slug) => (
            format!("Edit the page {slug}"),
            format!("/admin/pages/{}/edit", encoded(slug)),
        ),
        None => ("Add a status page".to_owned(), "/admin/new-page".to_owned()),
    };
    let shown = EditorPage {
        s: Shell::new(me, "/admin/pages", title).refused(error, field_of),
        action,
        slug: slug.map(str::to_owned),
        version,
        monitors: Choice::monitors_named(api, &fields.chosen),
        preview: compiled.map(|plan| previewed(api, &plan)),
        f: fields,
    };
    html(&shown, status)
}

/// The field of a key of a definition.
fn field_of(key: &str) -> Option<String> {
    let field = match first_part(key) {
        "monitors" => return None,
        field if KEYS.contains(&field) => field,
        _ => "more",
    };
    Some(field.to_owned())
}

pub(super) async fn new(State(api): State<Api>, Extension(me): Extension<Me>) -> Response {
    shown(&api, &me, None, String::new(), Fields::default(), None)
}

pub(super) async fn create(State(api): State<Api>, Extension(me): Extension<Me>) -> Response {
    submitted(&api, &me, None).await
}

pub(super) async fn edit(
    State(api): State<Api>,
    Extension(me): Extension<Me>,
    Path(slug): Path<String>,
) -> Response {
    match api.handle.definition(DefinitionKind::Page, &slug).await {
        Ok(Some(definition)) => {
            let table = toml::from_str(&definition.text).unwrap_or_default();
            let version = definition.version.to_string();
            shown(
                &api,
                &me,
                Some(&slug),
                version,
                Fields::of_table(table),
                None,
            )
        }
        Ok(None) => missing().await,
        Err(error) => failed(&me, error.to_string()),
    }
}

pub(super) async fn update(
    State(api): State<Api>,
    Extension(me): Extension<Me>,
    Path(slug): Path<String>,
) -> Response {
    if me.form.get("action") == "delete" {
        if let Err(page) = remove(&api, &me, DefinitionKind::Page, &slug).await {
            return page;
        }
        return match share::forget(&api.handle, &me.actor, &slug, me.now).await {
            Ok(()) => redirect("/admin/pages?done=deleted"),
            Err(error) => failed(&me, error.to_string()),
        };
    }
    submitted(&api, &me, Some(slug)).await
}

async fn submitted(api: &Api, me: &Me, slug: Option<String>) -> Response {
    let fields = Fields::of_form(&me.form);
    let version = me.form.get("version").to_owned();
    let again = |error: Option<&FormError>| {
        let fields = fields.clone();
        shown(api, me, slug.as_deref(), version.clone(), fields, error)
    };
    let table = match fields.table() {
        Ok(table) => table,
        Err(error) => return again(Some(&error)),
    };
    if me.form.get("action") == "preview" {
        let text = table.to_string();
        return match api.handle.page_of(&text, slug.as_deref()) {
            Err(error @ ChangeError::Invalid(_)) => again(Some(&error.into())),
            _ => again(None),
        };
    }
    let put = Put {
        id: None,
        was: slug.clone(),
        version: version.parse().ok(),
        table,
    };
    let kind = DefinitionKind::Page;
    match api.handle.change_other(&me.actor, kind, put, me.now).await {
        Ok(_) => redirect("/admin/pages?done=saved"),
        Err(error) => again(Some(&error.into())),
    }
}
