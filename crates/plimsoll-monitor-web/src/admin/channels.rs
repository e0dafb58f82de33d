//! Channels of notices in the store: added, changed, tried and removed in a form. Those of the file are changed there.

mod settings;

use askama::Template;
use axum::extract::{Extension, Path, RawQuery, State};
use axum::response::Response;
use http::StatusCode;
use plimsoll_monitor::manage::Put;
use plimsoll_monitor::notify::{
    CHANNELS, Channel, NoticeKind, channel, placeholders, preview, send_test,
};
use plimsoll_monitor::store::DefinitionKind;
use toml::Table;

use crate::admin::channels::settings::{Input, Typed, plain};
use crate::admin::choice::Choice;
use crate::admin::faults::first_part;
use crate::admin::form::Form;
use crate::admin::form_error::FormError;
use crate::admin::guard::Me;
use crate::admin::monitors::failed;
use crate::admin::outgoing::apart;
use crate::admin::removal::remove;
use crate::admin::shell::{Shell, html, missing, redirect};
use crate::api::encoded;
use crate::request::parameter;
use crate::state::Api;

const KIND: DefinitionKind = DefinitionKind::Channel;

/// The typed fields.
#[derive(Debug, Clone, Default)]
struct Fields {
    name: String,
    /// Those of the channel.
    settings: Typed,
    on: Vec<String>,
    /// Keys of monitors; none for all.
    monitors: Vec<String>,
    after: String,
    remind: String,
    /// TOML.
    more: String,
}

#[derive(Template)]
#[template(path = "admin/channel-kinds.html")]
struct KindsPage {
    s: Shell,
    /// Each with its first sentence.
    kinds: Vec<(&'static Channel, String)>,
}

#[derive(Template)]
#[template(path = "admin/channel.html")]
struct ChannelPage {
    s: Shell,
    action: String,
    /// Whether there is one already.
    is_known: bool,
    version: String,
    kind: &'static Channel,
    about: String,
    f: Fields,
    inputs: Vec<Input>,
    placeholders: Vec<(&'static str, String)>,
    on: Vec<Choice>,
    monitors: Vec<Choice>,
    /// What became of a test.
    said: Option<&'static str>,
    /// Titles and requests.
    previews: Vec<(&'static str, String)>,
}

/// A channel in its form.
struct Edited<'a> {
    api: &'a Api,
    me: &'a Me,
    kind: &'static Channel,
    /// The name that it has now.
    name: Option<String>,
    version: String,
    /// The settings that are stored.
    present: Option<Table>,
}

/// What the form says after an action.
#[derive(Default)]
struct Said {
    error: Option<FormError>,
    notice: Option<&'static str>,
    previews: Vec<(&'static str, String)>,
}

impl Said {
    fn wrong(error: FormError) -> Self {
        Self {
            error: Some(error),
            ..Self::default()
        }
    }
}

impl Fields {
    fn of_form(kind: &Channel, form: &Form) -> Self {
        let all = |name| form.all(name).into_iter().map(str::to_owned).collect();
        Self {
            name: form.get("name").to_owned(),
            settings: Typed::of_form(kind, form),
            on: all("on"),
            monitors: all("monitor"),
            after: form.get("after").to_owned(),
            remind: form.get("remind").to_owned(),
            more: form.text("more"),
        }
    }

    /// Without credentials.
    fn of_table(kind: &Channel, mut table: Table) -> Self {
        let texts = |value: Option<toml::Value>| match value {
            Some(toml::Value::Array(all)) => all
                .iter()
                .filter_map(|one| one.as_str().map(str::to_owned))
                .collect(),
            Some(toml::Value::String(one)) => vec![one],
            _ => Vec::new(),
        };
        let settings = settings_of(kind, &table).unwrap_or_default();
        table.remove(kind.key);
        let mut text = |key| match table.remove(key) {
            Some(toml::Value::String(text)) => text,
            _ => String::new(),
        };
        let (name, after, remind) = (text("name"), text("after"), text("remind"));
        Self {
            name,
            settings: Typed::of_table(kind, &settings),
            on: texts(table.remove("on")),
            monitors: texts(table.remove("monitors")),
            after,
            remind,
            more: table.to_string(),
        }
    }

    /// The definition, and the settings of the channel in it.
    fn table(&self, edited: &Edited<'_>) -> Result<(Table, Table), FormError> {
        let more = self.more.parse::<Table>();
        let mut table = more.map_err(FormError::MoreSettings)?;
        table.insert("name".to_owned(), self.name.as_str().into());
        let settings = self.settings.table(edited.kind, edited.present.as_ref())?;
        table.insert(edited.kind.key.to_owned(), settings.clone().into());
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
        Ok((table, settings))
    }
}

fn settings_of(kind: &Channel, table: &Table) -> Option<Table> {
    table.get(kind.key)?.as_table().cloned()
}

impl Edited<'_> {
    fn shown(&self, fields: Fields, said: Said) -> Response {
        let status = if said.error.is_some() {
            StatusCode::UNPROCESSABLE_ENTITY
        } else {
            StatusCode::OK
        };
        let on = NoticeKind::ALL.into_iter().map(|kind| Choice {
            value: kind.name().to_owned(),
            text: kind.name().replace('_', " "),
            is_chosen: fields.on.iter().any(|one| one == kind.name()),
        });
        let (title, action) = match &self.name {
            Some(name) => (
                format!("Edit the channel {name}"),
                format!("/admin/channels/{}/edit", encoded(name)),
            ),
            None => ("Add a channel".to_owned(), "/admin/new-channel".to_owned()),
        };
        let shell = Shell::new(self.me, "/admin/notices", title);
        let page = ChannelPage {
            s: shell.refused(said.error.as_ref(), |key| field_of(self.kind, key)),
            action,
            is_known: self.name.is_some(),
            version: self.version.clone(),
            kind: self.kind,
            about: plain(self.kind.about),
            inputs: fields.settings.inputs(self.kind, self.present.as_ref()),
            placeholders: placeholders()
                .map(|(name, about)| (name, plain(about)))
                .collect(),
            on: on.collect(),
            monitors: Choice::monitors_named(self.api, &fields.monitors),
            said: said.notice,
            previews: said.previews,
            f: fields,
        };
        html(&page, status)
    }

    async fn submitted(&self) -> Response {
        let fields = Fields::of_form(self.kind, &self.me.form);
        let (table, settings) = match fields.table(self) {
            Ok(tables) => tables,
            Err(error) => return self.shown(fields, Said::wrong(error)),
        };
        let action = self.me.form.get("action");
        if matches!(action, "preview" | "test") {
            let said = self.tried(action == "test", &table, &settings).await;
            return self.shown(fields, said.unwrap_or_else(Said::wrong));
        }
        let put = Put {
            id: None,
            was: self.name.clone(),
            version: self.version.parse().ok(),
            table,
        };
        let (handle, me) = (&self.api.handle, self.me);
        let error = match handle.change_other(&me.actor, KIND, put, me.now).await {
            Ok(_) => return redirect("/admin/notices?done=saved"),
            Err(error) => FormError::from(error),
        };
        self.shown(fields, Said::wrong(error))
    }

    /// Shows what the channel would send, or sends a test.
    async fn tried(&self, sends: bool, table: &Table, settings: &Table) -> Result<Said, FormError> {
        let (handle, me) = (&self.api.handle, self.me);
        let plan = handle.channel_of(&table.to_string(), self.name.as_deref())?;
        if !sends {
            let kinds = [
                ("When a monitor goes down", NoticeKind::Opened),
                ("When it is up again", NoticeKind::Resolved),
            ];
            let shown = kinds
                .map(|(title, kind)| (title, preview(&plan, self.kind, settings, kind, me.now)));
            return Ok(Said {
                previews: shown.into(),
                ..Said::default()
            });
        }
        let name = plan.name.clone();
        let sent = apart(move || async move { send_test(&plan).await }).await;
        let noted = handle.note(&me.actor, "channel.test", &name, me.now).await;
        noted?;
        sent.map_err(FormError::NotSent)?;
        Ok(Said {
            notice: Some("The test message was accepted. Nothing is saved yet."),
            ..Said::default()
        })
    }
}

/// The field of a key of a definition, or of a setting of the channel.
fn field_of(kind: &Channel, key: &str) -> Option<String> {
    let first = first_part(key);
    if ["name", "after", "remind", "more"].contains(&first) {
        return Some(first.to_owned());
    }
    let inner = key.strip_prefix(kind.key);
    let setting = first_part(inner.map_or(key, |inner| inner.trim_start_matches('.')));
    if kind.fields.iter().any(|field| field.key == setting) {
        return Some(format!("field-{setting}"));
    }
    let has_no_field = inner.is_some() || ["on", "monitors"].contains(&first);
    (!has_no_field).then(|| "more".to_owned())
}

fn kinds(me: &Me, error: Option<String>) -> Response {
    let status = if error.is_some() {
        StatusCode::UNPROCESSABLE_ENTITY
    } else {
        StatusCode::OK
    };
    let kinds = CHANNELS.into_iter().map(|channel| {
        let first = channel.about.split_inclusive(". ").next();
        (channel, plain(first.unwrap_or_default().trim()))
    });
    let mut kinds: Vec<_> = kinds.collect();
    kinds.sort_by_key(|(channel, _)| channel.name.to_lowercase());
    let page = KindsPage {
        s: Shell::new(me, "/admin/notices", "Add a channel").wrong(error),
        kinds,
    };
    html(&page, status)
}

pub(super) async fn new(
    State(api): State<Api>,
    Extension(me): Extension<Me>,
    RawQuery(query): RawQuery,
) -> Response {
    let Some(kind) = parameter(query.as_deref(), "kind").and_then(|kind| channel(&kind)) else {
        return kinds(&me, None);
    };
    let edited = Edited {
        api: &api,
        me: &me,
        kind,
        name: None,
        version: String::new(),
        present: None,
    };
    edited.shown(Fields::default(), Said::default())
}

pub(super) async fn create(State(api): State<Api>, Extension(me): Extension<Me>) -> Response {
    let Some(kind) = channel(me.form.get("kind")) else {
        return kinds(&me, Some("There is no such channel.".to_owned()));
    };
    let edited = Edited {
        api: &api,
        me: &me,
        kind,
        name: None,
        version: String::new(),
        present: None,
    };
    edited.submitted().await
}

pub(super) async fn edit(
    State(api): State<Api>,
    Extension(me): Extension<Me>,
    Path(name): Path<String>,
) -> Response {
    let (kind, table, version) = match stored(&api, &me, &name).await {
        Ok(found) => found,
        Err(response) => return response,
    };
    let edited = Edited {
        api: &api,
        me: &me,
        kind,
        name: Some(name),
        version: version.to_string(),
        present: settings_of(kind, &table),
    };
    edited.shown(Fields::of_table(kind, table), Said::default())
}

pub(super) async fn update(
    State(api): State<Api>,
    Extension(me): Extension<Me>,
    Path(name): Path<String>,
) -> Response {
    if me.form.get("action") == "delete" {
        return match remove(&api, &me, KIND, &name).await {
            Ok(()) => redirect("/admin/notices?done=deleted"),
            Err(page) => page,
        };
    }
    let (kind, table, _) = match stored(&api, &me, &name).await {
        Ok(found) => found,
        Err(response) => return response,
    };
    let edited = Edited {
        api: &api,
        me: &me,
        kind,
        name: Some(name),
        version: me.form.get("version").to_owned(),
        present: settings_of(kind, &table),
    };
    edited.submitted().await
}

/// A channel of the store: its kind, its definition and its version; or the page that says why not.
async fn stored(
    api: &Api,
    me: &Me,
    name: &str,
) -> Result<(&'static Channel, Table, i64), Response> {
    let definition = match api.handle.definition(KIND, name).await {
        Ok(Some(definition)) => definition,
        Ok(None) => return Err(missing().await),
        Err(error) => return Err(failed(me, error.to_string())),
    };
    let table: Table = definition.text.parse().unwrap_or_default();
    let mut kinds = CHANNELS.into_iter();
    match kinds.find(|channel| table.contains_key(channel.key)) {
        Some(kind) => Ok((kind, table, definition.version)),
        None => Err(failed(me, "The channel is of no known kind.".to_owned())),
    }
}
