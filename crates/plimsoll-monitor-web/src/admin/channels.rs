//! Channels of notices in the store: added, changed and removed in a form. Those of the file are changed there.
//!
//! Settings of a channel hold credentials. They are never shown again: an empty field keeps them.

use askama::Template;
use axum::extract::{Extension, Path, State};
use axum::response::Response;
use http::StatusCode;
use plimsoll_monitor::manage::{ChangeError, Put};
use plimsoll_monitor::notify::{CHANNELS, NoticeKind};
use plimsoll_monitor::store::{DefinitionKind, StoreError};

use crate::admin::choice::Choice;
use crate::admin::editor::sentence;
use crate::admin::form::Form;
use crate::admin::guard::Me;
use crate::admin::monitors::failed;
use crate::admin::shell::{Shell, html, missing, redirect};
use crate::answer::ApiError;
use crate::api::encoded;
use crate::state::Api;

const KIND: DefinitionKind = DefinitionKind::Channel;

/// The typed fields.
#[derive(Debug, Clone, Default)]
struct Fields {
    name: String,
    kind: String,
    /// TOML; empty for those that are there.
    settings: String,
    on: Vec<String>,
    /// Keys of monitors; none for all.
    monitors: Vec<String>,
    after: String,
    remind: String,
    /// TOML.
    more: String,
}

#[derive(Template)]
#[template(path = "admin/channel.html")]
struct ChannelPage {
    s: Shell,
    action: String,
    /// Whether there is one already.
    is_known: bool,
    version: String,
    f: Fields,
    kinds: Vec<Choice>,
    on: Vec<Choice>,
    monitors: Vec<Choice>,
}

impl Fields {
    fn of_form(form: &Form) -> Self {
        let all = |name| form.all(name).into_iter().map(str::to_owned).collect();
        Self {
            name: form.get("name").to_owned(),
            kind: form.get("kind").to_owned(),
            settings: form.text("settings"),
            on: all("on"),
            monitors: all("monitor"),
            after: form.get("after").to_owned(),
            remind: form.get("remind").to_owned(),
            more: form.text("more"),
        }
    }

    /// Without the settings of the channel.
    fn of_table(mut table: toml::Table) -> Self {
        let texts = |value: Option<toml::Value>| match value {
            Some(toml::Value::Array(all)) => all
                .iter()
                .filter_map(|one| one.as_str().map(str::to_owned))
                .collect(),
            Some(toml::Value::String(one)) => vec![one],
            _ => Vec::new(),
        };
        let mut text = |key| match table.remove(key) {
            Some(toml::Value::String(text)) => text,
            _ => String::new(),
        };
        let (name, after, remind) = (text("name"), text("after"), text("remind"));
        let kind = CHANNELS.iter().map(|channel| channel.key).find(|kind| table.remove(*kind).is_some());
        Self {
            name,
            kind: kind.unwrap_or_default().to_owned(),
            settings: String::new(),
            on: texts(table.remove("on")),
            monitors: texts(table.remove("monitors")),
            after,
            remind,
            more: table.to_string(),
        }
    }

    /// - `present`: the definition that this replaces.
    fn table(&self, present: Option<&toml::Table>) -> Result<toml::Table, String> {
        let parsed = |text: &str, name: &str| {
            text.parse::<toml::Table>()
                .map_err(|error| format!("{name}: {}", error.message()))
        };
        let mut table = parsed(&self.more, "More settings")?;
        table.insert("name".to_owned(), self.name.as_str().into());
        let kept = present.and_then(|present| present.get(&self.kind));
        let settings = match kept {
            Some(kept) if self.settings.trim().is_empty() => kept.clone(),
            _ => toml::Value::Table(parsed(&self.settings, "Settings")?),
        };
        if CHANNELS.iter().map(|channel| channel.key).any(|kind| kind == self.kind) {
            table.insert(self.kind.clone(), settings);
        }
        for (key, values) in [("on", &self.on), ("monitors", &self.monitors)] {
            if !values.is_empty() {
                table.insert(key.to_owned(), values.clone().into());
            }
        }
        for (key, value) in [("after", &self.after), ("remind", &self.remind)] {
            if !value.is_empty() {
                table.insert(key.to_owned(), value.as_str().into());
            }
        }
        Ok(table)
    }
}

fn shown(
    api: &Api,
    me: &Me,
    name: Option<&str>,
    version: String,
    fields: Fields,
    error: Option<String>,
) -> Response {
    let status = if error.is_some() {
        StatusCode::UNPROCESSABLE_ENTITY
    } else {
        StatusCode::OK
    };
    let kinds = CHANNELS.iter().map(|channel| channel.key).map(|kind| Choice {
        value: kind.to_owned(),
        text: kind.replace('_', " "),
        is_chosen: fields.kind == kind,
    });
    let on = NoticeKind::ALL.into_iter().map(|kind| Choice {
        value: kind.name().to_owned(),
        text: kind.name().replace('_', " "),
        is_chosen: fields.on.iter().any(|one| one == kind.name()),
    });
    let (title, action) = match name {
        Some(name) => (
            format!("Edit the channel {name}"),
            format!("/admin/channels/{}/edit", encoded(name)),
        ),
        None => ("Add a channel".to_owned(), "/admin/new-channel".to_owned()),
    };
    let page = ChannelPage {
        s: Shell::new(me, "/admin/notices", title).wrong(error),
        action,
        is_known: name.is_some(),
        version,
        kinds: kinds.collect(),
        on: on.collect(),
        monitors: Choice::monitors_named(api, &fields.monitors),
        f: fields,
    };
    html(&page, status)
}

pub(super) async fn new(State(api): State<Api>, Extension(me): Extension<Me>) -> Response {
    let fields = Fields {
        kind: "webhook".to_owned(),
        ..Fields::default()
    };
    shown(&api, &me, None, String::new(), fields, None)
}

pub(super) async fn create(State(api): State<Api>, Extension(me): Extension<Me>) -> Response {
    submitted(&api, &me, None).await
}

pub(super) async fn edit(
    State(api): State<Api>,
    Extension(me): Extension<Me>,
    Path(name): Path<String>,
) -> Response {
    match api.handle.definition(KIND, &name).await {
        Ok(Some(definition)) => {
            let table = toml::from_str(&definition.text).unwrap_or_default();
            let version = definition.version.to_string();
            let fields = Fields::of_table(table);
            shown(&api, &me, Some(&name), version, fields, None)
        }
        Ok(None) => missing().await,
        Err(error) => failed(&me, error.to_string()),
    }
}

pub(super) async fn update(
    State(api): State<Api>,
    Extension(me): Extension<Me>,
    Path(name): Path<String>,
) -> Response {
    if me.form.get("action") == "delete" {
        let removed = api.handle.remove_other(&me.actor, KIND, &name, me.now);
        return match removed.await {
            Ok(()) => redirect("/admin/notices?done=deleted"),
            Err(ChangeError::Store(StoreError::NotFound(_))) => missing().await,
            Err(error) => failed(&me, ApiError::from(error).message()),
        };
    }
    submitted(&api, &me, Some(name)).await
}

async fn submitted(api: &Api, me: &Me, name: Option<String>) -> Response {
    let fields = Fields::of_form(&me.form);
    let version = me.form.get("version").to_owned();
    let again = |error: String| {
        let fields = fields.clone();
        shown(
            api,
            me,
            name.as_deref(),
            version.clone(),
            fields,
            Some(error),
        )
    };
    let mut present = None;
    if let Some(name) = &name {
        match api.handle.definition(KIND, name).await {
            Ok(Some(found)) => present = toml::from_str(&found.text).ok(),
            Ok(None) => return missing().await,
            Err(error) => return failed(me, error.to_string()),
        }
    }
    let table = match fields.table(present.as_ref()) {
        Ok(table) => table,
        Err(error) => return again(error),
    };
    let put = Put {
        was: name.clone(),
        version: version.parse().ok(),
        table,
    };
    match api.handle.change_other(&me.actor, KIND, put, me.now).await {
        Ok(_) => redirect("/admin/notices?done=saved"),
        Err(ChangeError::Invalid(problems)) => again(sentence(&problems)),
        Err(error) => again(ApiError::from(error).message()),
    }
}
