//! Escalations in the store: added, changed and removed in a form. Those of the file are changed there.

use askama::Template;
use axum::extract::{Extension, Path, State};
use axum::response::Response;
use http::StatusCode;
use plimsoll_monitor::manage::Put;
use plimsoll_monitor::store::DefinitionKind;
use toml::{Table, Value};

use crate::admin::choice::Choice;
use crate::admin::form::Form;
use crate::admin::form_error::FormError;
use crate::admin::guard::Me;
use crate::admin::monitors::failed;
use crate::admin::removal::remove;
use crate::admin::shell::{Shell, html, missing, redirect};
use crate::api::encoded;
use crate::state::Api;

const KIND: DefinitionKind = DefinitionKind::Escalation;

/// Steps that a new escalation has room for, and those that one may have.
const FEW: usize = 3;
const MOST: usize = 10;

/// The typed fields.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Fields {
    name: String,
    /// Keys of monitors; none for all.
    monitors: Vec<String>,
    steps: Vec<StepFields>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct StepFields {
    after: String,
    /// Names of channels and rotations.
    notify: Vec<String>,
}

/// A step as it is shown.
#[derive(Debug)]
struct Step {
    number: usize,
    after: String,
    targets: Vec<Choice>,
}

#[derive(Template)]
#[template(path = "admin/escalation.html")]
struct EscalationPage {
    s: Shell,
    action: String,
    /// Whether there is one already.
    is_known: bool,
    version: String,
    name: String,
    has_targets: bool,
    steps: Vec<Step>,
    monitors: Vec<Choice>,
}

impl Fields {
    fn of_form(form: &Form) -> Self {
        let all = |name: &str| form.all(name).into_iter().map(str::to_owned).collect();
        let steps = (1..=MOST).map(|number| StepFields {
            after: form.get(&format!("after-{number}")).to_owned(),
            notify: all(&format!("notify-{number}")),
        });
        let mut steps: Vec<_> = steps.collect();
        // Empty ones at the end are no steps.
        while steps
            .last()
            .is_some_and(|last| *last == StepFields::default())
        {
            steps.pop();
        }
        Self {
            name: form.get("name").to_owned(),
            monitors: all("monitor"),
            steps,
        }
    }

    fn of_table(table: &Table) -> Self {
        let text = |table: &Table, key: &str| {
            let found = table.get(key).and_then(Value::as_str);
            found.unwrap_or_default().to_owned()
        };
        let steps = table.get("step").and_then(Value::as_array);
        let steps = steps.into_iter().flatten().filter_map(Value::as_table);
        Self {
            name: text(table, "name"),
            monitors: texts(table.get("monitors")),
            steps: steps
                .map(|step| StepFields {
                    after: text(step, "after"),
                    notify: texts(step.get("notify")),
                })
                .collect(),
        }
    }

    fn table(&self) -> Table {
        let mut table = Table::new();
        table.insert("name".to_owned(), self.name.as_str().into());
        if !self.monitors.is_empty() {
            table.insert("monitors".to_owned(), self.monitors.clone().into());
        }
        let steps = self.steps.iter().map(|step| {
            let mut table = Table::new();
            if !step.after.is_empty() {
                table.insert("after".to_owned(), step.after.as_str().into());
            }
            table.insert("notify".to_owned(), step.notify.clone().into());
            Value::Table(table)
        });
        table.insert("step".to_owned(), Value::Array(steps.collect()));
        table
    }
}

fn texts(value: Option<&Value>) -> Vec<String> {
    match value {
        Some(Value::Array(all)) => {
            let all = all.iter().filter_map(Value::as_str);
            all.map(str::to_owned).collect()
        }
        Some(Value::String(one)) => vec![one.clone()],
        _ => Vec::new(),
    }
}

/// The steps of the form: those that are used and room for another, a few at least.
fn steps(api: &Api, fields: &Fields) -> Vec<Step> {
    let board = &api.handle.board;
    let channels = board.channels();
    let rotations = board.rotations();
    let channels = channels
        .iter()
        .map(|channel| (channel.name.clone(), channel.name.clone()));
    let rotations = rotations
        .iter()
        .map(|one| (one.name.clone(), format!("{} (on call)", one.name)));
    let targets: Vec<_> = channels.chain(rotations).collect();
    let shown = (fields.steps.len() + 1).clamp(FEW, MOST);
    let steps = (1..=shown).map(|number| {
        let step = fields.steps.get(number - 1).cloned().unwrap_or_default();
        let targets = targets.iter().map(|(value, text)| Choice {
            value: value.clone(),
            text: text.clone(),
            is_chosen: step.notify.contains(value),
        });
        Step {
            number,
            targets: targets.collect(),
            after: step.after,
        }
    });
    steps.collect()
}

fn shown(
    api: &Api,
    me: &Me,
    name: Option<&str>,
    version: String,
    fields: Fields,
    error: Option<&FormError>,
) -> Response {
    let status = if error.is_some() {
        StatusCode::UNPROCESSABLE_ENTITY
    } else {
        StatusCode::OK
    };
    let (title, action) = match name {
        Some(name) => (
            format!("Edit the escalation {name}"),
            format!("/admin/escalations/{}/edit", encoded(name)),
        ),
        None => (
            "Add an escalation".to_owned(),
            "/admin/new-escalation".to_owned(),
        ),
    };
    let steps = steps(api, &fields);
    let page = EscalationPage {
        s: Shell::new(me, "/admin/notices", title).refused(error, field_of),
        action,
        is_known: name.is_some(),
        version,
        has_targets: steps.iter().any(|step| !step.targets.is_empty()),
        steps,
        monitors: Choice::monitors_named(api, &fields.monitors),
        name: fields.name,
    };
    html(&page, status)
}

/// The field of a key of a definition: of a step, that of its time.
fn field_of(key: &str) -> Option<String> {
    if key == "name" {
        return Some(key.to_owned());
    }
    let (number, rest) = key.strip_prefix("step[")?.split_once(']')?;
    let is_time = rest.is_empty() || rest == ".after";
    is_time.then(|| format!("after-{number}"))
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
    Path(name): Path<String>,
) -> Response {
    match api.handle.definition(KIND, &name).await {
        Ok(Some(definition)) => {
            let table = definition.text.parse().unwrap_or_default();
            let (version, fields) = (definition.version.to_string(), Fields::of_table(&table));
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
        return match remove(&api, &me, KIND, &name).await {
            Ok(()) => redirect("/admin/notices?done=deleted"),
            Err(page) => page,
        };
    }
    submitted(&api, &me, Some(name)).await
}

async fn submitted(api: &Api, me: &Me, name: Option<String>) -> Response {
    if let Some(name) = &name {
        match api.handle.definition(KIND, name).await {
            Ok(Some(_)) => {}
            Ok(None) => return missing().await,
            Err(error) => return failed(me, error.to_string()),
        }
    }
    let fields = Fields::of_form(&me.form);
    let version = me.form.get("version").to_owned();
    let put = Put {
        id: None,
        was: name.clone(),
        version: version.parse().ok(),
        table: fields.table(),
    };
    let error = match api.handle.change_other(&me.actor, KIND, put, me.now).await {
        Ok(_) => return redirect("/admin/notices?done=saved"),
        Err(error) => FormError::from(error),
    };
    shown(api, me, name.as_deref(), version, fields, Some(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_escalation_comes_back_from_its_form_as_it_was() {
        let text = "name = \"shop\"\nmonitors = [\"shop_api\"]\n[[step]]\nnotify = [\"ops\"]\n[[step]]\nafter = \"10m\"\nnotify = [\"team\", \"boss\"]\n";
        let table: Table = text.parse().unwrap();
        let fields = Fields::of_table(&table);
        assert_eq!(fields.table(), table);
        let form = "name=shop&monitor=shop_api&after-1=&notify-1=ops&after-2=10m&notify-2=team&notify-2=boss&after-3=";
        assert_eq!(Fields::of_form(&Form::parse(form.as_bytes())), fields);
    }
}
