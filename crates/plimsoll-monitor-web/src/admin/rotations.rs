//! Rotations of people on call in the store: added, changed and removed in a form. Those of the file are changed there.
//!
//! The address of a calendar has a token. Admins see it here, since they give it to the people on call.

use askama::Template;
use axum::extract::{Extension, Path, State};
use axum::response::Response;
use http::StatusCode;
use plimsoll_monitor::manage::Put;
use plimsoll_monitor::store::DefinitionKind;
use toml::{Table, Value};

use crate::admin::faults::first_part;
use crate::admin::form::Form;
use crate::admin::form_error::FormError;
use crate::admin::guard::Me;
use crate::admin::monitors::failed;
use crate::admin::removal::remove;
use crate::admin::shell::{Shell, html, missing, redirect};
use crate::api::encoded;
use crate::random;
use crate::state::Api;

const KIND: DefinitionKind = DefinitionKind::OnCall;

/// Keys whose values are single texts with a field of their own.
const PLAIN: [&str; 4] = ["name", "start", "rotate", "zone"];

/// The typed fields.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Fields {
    name: String,
    start: String,
    rotate: String,
    zone: String,
    /// Names of channels, in the order of their turns.
    members: Vec<String>,
    /// What becomes of the token of the calendar: `new`, `none`, or empty to leave it.
    calendar: String,
    /// Layers and overrides, in TOML.
    more: String,
}

#[derive(Template)]
#[template(path = "admin/rotation.html")]
struct RotationPage {
    s: Shell,
    action: String,
    /// Whether there is one already.
    is_known: bool,
    /// The path of the calendar.
    calendar: Option<String>,
    version: String,
    f: Fields,
    /// Names of channels.
    channels: Vec<String>,
}

impl Fields {
    fn of_form(form: &Form) -> Self {
        Self {
            name: form.get("name").to_owned(),
            start: form.get("start").to_owned(),
            rotate: form.get("rotate").to_owned(),
            zone: form.get("zone").to_owned(),
            members: form.lines("members"),
            calendar: form.get("calendar").to_owned(),
            more: form.text("more"),
        }
    }

    /// Without the token.
    fn of_table(mut table: Table) -> Self {
        table.remove("token");
        let [name, start, rotate, zone] = PLAIN.map(|key| match table.remove(key) {
            Some(Value::String(text)) => text,
            _ => String::new(),
        });
        let members = match table.remove("members") {
            Some(Value::Array(all)) => {
                let all = all.iter().filter_map(Value::as_str);
                all.map(str::to_owned).collect()
            }
            Some(Value::String(one)) => vec![one],
            _ => Vec::new(),
        };
        Self {
            name,
            start,
            rotate,
            zone,
            members,
            calendar: String::new(),
            more: table.to_string(),
        }
    }

    /// - `present`: the definition that this replaces.
    fn table(&self, present: Option<&Table>) -> Result<Table, FormError> {
        let more = self.more.parse::<Table>();
        let mut table = more.map_err(FormError::MoreSettings)?;
        let values = [&self.name, &self.start, &self.rotate, &self.zone];
        for (key, value) in PLAIN.into_iter().zip(values) {
            if !value.is_empty() {
                table.insert(key.to_owned(), value.as_str().into());
            }
        }
        table.insert("members".to_owned(), self.members.clone().into());
        let token = match self.calendar.as_str() {
            "new" => random::token().map(Value::from),
            "none" => None,
            _ => present.and_then(|present| present.get("token")).cloned(),
        };
        match token {
            Some(token) => table.insert("token".to_owned(), token),
            None => table.remove("token"),
        };
        Ok(table)
    }
}

/// A rotation in its form.
struct Edited<'a> {
    api: &'a Api,
    me: &'a Me,
    /// The name that it has now.
    name: Option<String>,
    version: String,
    /// The definition that is stored.
    present: Option<Table>,
}

impl Edited<'_> {
    fn shown(&self, fields: Fields, error: Option<&FormError>) -> Response {
        let status = if error.is_some() {
            StatusCode::UNPROCESSABLE_ENTITY
        } else {
            StatusCode::OK
        };
        let (title, action) = match &self.name {
            Some(name) => (
                format!("Edit the rotation {name}"),
                format!("/admin/rotations/{}/edit", encoded(name)),
            ),
            None => (
                "Add a rotation".to_owned(),
                "/admin/new-rotation".to_owned(),
            ),
        };
        let channels = self.api.handle.board.channels();
        let present = self.present.as_ref();
        let page = RotationPage {
            s: Shell::new(self.me, "/admin/notices", title)
                .refused(error, |key| Some(field_of(key).to_owned())),
            action,
            is_known: self.name.is_some(),
            calendar: present
                .and_then(|present| present.get("token")?.as_str())
                .map(|token| format!("/on-call/{token}.ics")),
            version: self.version.clone(),
            f: fields,
            channels: channels.iter().map(|one| one.name.clone()).collect(),
        };
        html(&page, status)
    }

    async fn submitted(&self) -> Response {
        let fields = Fields::of_form(&self.me.form);
        let table = match fields.table(self.present.as_ref()) {
            Ok(table) => table,
            Err(error) => return self.shown(fields, Some(&error)),
        };
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
        self.shown(fields, Some(&error))
    }
}

/// The field of a key of a definition.
fn field_of(key: &str) -> &'static str {
    match first_part(key) {
        "name" => "name",
        "start" => "start",
        "rotate" => "rotate",
        "zone" => "zone",
        "members" => "members",
        "token" => "calendar",
        _ => "more",
    }
}

fn fresh<'a>(api: &'a Api, me: &'a Me) -> Edited<'a> {
    Edited {
        api,
        me,
        name: None,
        version: String::new(),
        present: None,
    }
}

pub(super) async fn new(State(api): State<Api>, Extension(me): Extension<Me>) -> Response {
    fresh(&api, &me).shown(Fields::default(), None)
}

pub(super) async fn create(State(api): State<Api>, Extension(me): Extension<Me>) -> Response {
    fresh(&api, &me).submitted().await
}

pub(super) async fn edit(
    State(api): State<Api>,
    Extension(me): Extension<Me>,
    Path(name): Path<String>,
) -> Response {
    match stored(&api, &me, name).await {
        Ok(edited) => {
            let table = edited.present.clone().unwrap_or_default();
            edited.shown(Fields::of_table(table), None)
        }
        Err(response) => response,
    }
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
    match stored(&api, &me, name).await {
        Ok(edited) => {
            let version = me.form.get("version").to_owned();
            Edited { version, ..edited }.submitted().await
        }
        Err(response) => response,
    }
}

/// A rotation of the store; or the page that says why not.
async fn stored<'a>(api: &'a Api, me: &'a Me, name: String) -> Result<Edited<'a>, Response> {
    let definition = match api.handle.definition(KIND, &name).await {
        Ok(Some(definition)) => definition,
        Ok(None) => return Err(missing().await),
        Err(error) => return Err(failed(me, error.to_string())),
    };
    Ok(Edited {
        api,
        me,
        name: Some(name),
        version: definition.version.to_string(),
        present: definition.text.parse().ok(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rotation_comes_back_from_its_form_as_it_was() {
        let text = "name = \"team\"\nmembers = [\"ann\", \"bob\"]\nstart = \"2026-03-02T09:00\"\nrotate = \"daily\"\nzone = \"Europe/Berlin\"\ntoken = \"0123456789abcdef\"\n[[layer]]\nmembers = [\"desk\"]\nhours = \"18:00-08:00\"\n";
        let table: Table = text.parse().unwrap();
        let fields = Fields::of_table(table.clone());
        assert!(!format!("{fields:?}").contains("0123456789abcdef"));
        assert_eq!(fields.table(Some(&table)).unwrap(), table);
        let with = |calendar: &str| Fields {
            calendar: calendar.to_owned(),
            ..fields.clone()
        };
        assert!(
            !with("none")
                .table(Some(&table))
                .unwrap()
                .contains_key("token")
        );
        let renewed = with("new").table(Some(&table)).unwrap();
        assert_ne!(renewed["token"], table["token"]);
    }
}
