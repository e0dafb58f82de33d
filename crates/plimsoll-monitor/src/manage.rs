//! Changes of what the store defines: validated against everything that is there, written, and put in force.
//!
//! The API and the admin pages make their changes here. Definitions of the configuration file are read-only. Changes are
//! made one after another; each one is made wholly or not at all.

use std::collections::HashSet;
use std::sync::Arc;

use plimsoll_model::document::ConfigProblem;
use serde_json::Value;

use crate::config::{PagePlan, Source, mask, overlay};
use crate::engine::{Access, CommandError, Handle};
use crate::notify::NotifyPlan;
use crate::store::{
    Definition, DefinitionChanges, DefinitionKind, MonitorId, NewAudit, NewMonitor, PutDefinition,
    Replay, StoreError,
};
use crate::time::Timestamp;

/// Who changes something, for the audit log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Actor {
    /// The name of the user or the token.
    pub name: String,
    /// The address of the client.
    pub address: String,
}

impl Actor {
    /// A line of the audit log.
    pub fn audit(&self, action: &str, object: &str) -> NewAudit {
        NewAudit {
            actor: self.name.clone(),
            address: self.address.clone(),
            action: action.to_owned(),
            object: object.to_owned(),
            detail: None,
        }
    }
}

/// A definition to be added or changed.
#[derive(Debug, Clone)]
pub struct Put {
    /// The id that the client chose for a new one; absent for that of its key.
    pub id: Option<String>,
    /// The key that it has now; absent if it is new.
    pub was: Option<String>,
    /// The version that the client has seen.
    pub version: Option<i64>,
    /// The keys of its table.
    pub table: toml::Table,
}

/// Why nothing was changed.
#[derive(Debug)]
pub enum ChangeError {
    /// Definitions have errors, each with its number in the list.
    Invalid(Vec<(usize, ConfigProblem)>),
    /// The configuration file defines it.
    ReadOnly(String),
    /// Another monitor depends on one that would be gone, or an escalation names a channel that would.
    Needed {
        /// The one that would be gone.
        key: String,
        /// The one that depends on it.
        by: String,
    },
    /// The store, or a conflict in it.
    Store(StoreError),
    /// The engine stops.
    Engine(CommandError),
}

impl From<StoreError> for ChangeError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<CommandError> for ChangeError {
    fn from(error: CommandError) -> Self {
        Self::Engine(error)
    }
}

impl Handle {
    /// Adds, changes and removes monitors together.
    pub async fn change_monitors(
        &self,
        actor: &Actor,
        mut puts: Vec<Put>,
        removals: Vec<(String, Option<i64>)>,
        replay: Option<Replay>,
        now: Timestamp,
    ) -> Result<Vec<Definition>, ChangeError> {
        let _changing = self.changing.lock().await;
        self.unmask(&mut puts).await?;
        let replaced: HashSet<&str> = puts
            .iter()
            .filter_map(|put| put.was.as_deref())
            .chain(removals.iter().map(|(key, _)| key.as_str()))
            .collect();
        for key in &replaced {
            let view = self.board.view(key);
            if view.is_some_and(|view| view.source == Source::File) {
                return Err(ChangeError::ReadOnly((*key).to_owned()));
            }
        }
        let views = self.board.views();
        let staying: Vec<_> = views
            .iter()
            .filter(|view| !replaced.contains(view.plan.key.as_str()))
            .map(|view| &view.plan)
            .collect();
        let texts: Vec<_> = puts.iter().map(|put| put.table.to_string()).collect();
        let all: Vec<_> = texts.iter().map(String::as_str).collect();
        let grounds = self.board.grounds();
        let others = staying.iter().copied();
        let mut plans = Vec::with_capacity(puts.len());
        let mut problems = Vec::new();
        for (index, outcome) in overlay::monitors(&all, &grounds, others)
            .into_iter()
            .enumerate()
        {
            match outcome {
                Ok(plan) => plans.push(plan),
                Err(found) => problems.extend(found.into_iter().map(|problem| (index, problem))),
            }
        }
        if !problems.is_empty() {
            return Err(ChangeError::Invalid(problems));
        }
        let present: HashSet<&str> = plans.iter().map(|plan| plan.key.as_str()).collect();
        for plan in &staying {
            let missing = plan
                .needs()
                .find(|key| replaced.contains(key) && !present.contains(key));
            if let Some(key) = missing {
                return Err(ChangeError::Needed {
                    key: key.to_owned(),
                    by: plan.key.clone(),
                });
            }
        }
        let gone = removals.iter().map(|(key, _)| key.clone()).collect();
        let mut audit = Vec::new();
        let definitions: Vec<_> = puts
            .into_iter()
            .zip(&plans)
            .zip(texts)
            .map(|((put, plan), text)| {
                let action = if put.was.is_some() {
                    "monitor.update"
                } else {
                    "monitor.create"
                };
                audit.push(actor.audit(action, &plan.key));
                PutDefinition {
                    id: put.id,
                    key: plan.key.clone(),
                    was: put.was,
                    version: put.version,
                    text,
                    monitor: Some(NewMonitor {
                        key: plan.key.clone(),
                        name: plan.name.clone(),
                        group: plan.group.clone(),
                        kind: plan.kind.clone(),
                    }),
                }
            })
            .collect();
        for (key, _) in &removals {
            audit.push(actor.audit("monitor.delete", key));
        }
        let changes = DefinitionChanges {
            puts: definitions,
            removals,
            replay,
            audit,
        };
        let written = self
            .store
            .change_definitions(self.org, DefinitionKind::Monitor, changes, now)
            .await?;
        let (definitions, ids): (Vec<_>, Vec<_>) = written.into_iter().unzip();
        let ids = ids.into_iter().map(|id| MonitorId(id.unwrap_or_default()));
        self.put(ids.zip(plans).collect(), gone).await?;
        Ok(definitions)
    }

    /// Puts credentials in the places of masks that came back.
    pub async fn unmask(&self, puts: &mut [Put]) -> Result<(), ChangeError> {
        if !puts.iter().any(|put| mask::is_masked(&put.table)) {
            return Ok(());
        }
        let kind = DefinitionKind::Monitor;
        let stored = self.store.definitions(self.org, kind).await?;
        for (index, put) in puts.iter_mut().enumerate() {
            if !mask::is_masked(&put.table) {
                continue;
            }
            let was = put.was.as_deref();
            let present = stored
                .iter()
                .find(|(definition, _)| Some(definition.key.as_str()) == was);
            let present = present.and_then(|(definition, _)| toml::from_str(&definition.text).ok());
            let unmasked = mask::unmask(&mut put.table, &present.unwrap_or_default());
            unmasked.map_err(|error| masked(index, &error))?;
        }
        Ok(())
    }

    /// Adds a definition of any kind or replaces the one that is `known`. The same definition again changes nothing: it keeps
    /// its version.
    pub async fn put_definition(
        &self,
        actor: &Actor,
        kind: DefinitionKind,
        mut put: Put,
        known: Option<&Definition>,
        now: Timestamp,
    ) -> Result<Definition, ChangeError> {
        let present: toml::Table = known
            .and_then(|known| toml::from_str(&known.text).ok())
            .unwrap_or_default();
        mask::unmask_definition(kind, &mut put.table, &present)
            .map_err(|error| masked(0, &error))?;
        if let Some(known) = known.filter(|_| put.table == present) {
            return Ok(known.clone());
        }
        if kind != DefinitionKind::Monitor {
            return self.change_other(actor, kind, put, now).await;
        }
        let written = self
            .change_monitors(actor, vec![put], Vec::new(), None, now)
            .await?;
        let first = written.into_iter().next();
        first.ok_or(ChangeError::Store(StoreError::NotFound("definition")))
    }

    /// Removes a definition of any kind.
    ///
    /// - `version`: the one that the client has seen.
    pub async fn remove_definition(
        &self,
        actor: &Actor,
        kind: DefinitionKind,
        (key, version): (&str, Option<i64>),
        now: Timestamp,
    ) -> Result<(), ChangeError> {
        if kind != DefinitionKind::Monitor {
            return self.remove_other(actor, kind, (key, version), now).await;
        }
        let removals = vec![(key.to_owned(), version)];
        self.change_monitors(actor, Vec::new(), removals, None, now)
            .await?;
        Ok(())
    }

    /// Adds or changes a maintenance window, a page, a channel or an escalation, whose key its plan says.
    pub async fn change_other(
        &self,
        actor: &Actor,
        kind: DefinitionKind,
        put: Put,
        now: Timestamp,
    ) -> Result<Definition, ChangeError> {
        let _changing = self.changing.lock().await;
        let text = put.table.to_string();
        let key = if kind == DefinitionKind::Page {
            self.page_of(&text, put.was.as_deref())?.slug.clone()
        } else if kind == DefinitionKind::Channel {
            let name = self.channel_of(&text, put.was.as_deref())?.name.clone();
            self.spare(put.was.as_deref().filter(|was| *was != name))?;
            name
        } else if kind == DefinitionKind::OnCall {
            let name = self.rotation_of(&text, put.was.as_deref())?;
            self.spare(put.was.as_deref().filter(|was| *was != name))?;
            name
        } else if kind == DefinitionKind::Escalation {
            self.escalation_of(&text, put.was.as_deref())?
        } else {
            let views = self.board.views();
            let plans: Vec<_> = views.iter().map(|view| Arc::clone(&view.plan)).collect();
            let placed = overlay::window(&text, &plans)
                .map_err(|problems| ChangeError::Invalid(numbered(problems)))?;
            placed.window.name.clone()
        };
        let verb = if put.was.is_some() {
            "update"
        } else {
            "create"
        };
        let action = format!("{}.{verb}", kind.name());
        let changes = DefinitionChanges {
            audit: vec![actor.audit(&action, &key)],
            puts: vec![PutDefinition {
                id: put.id,
                key,
                was: put.was,
                version: put.version,
                text,
                monitor: None,
            }],
            ..DefinitionChanges::default()
        };
        let written = self
            .store
            .change_definitions(self.org, kind, changes, now)
            .await?;
        self.rebuild().await?;
        let first = written.into_iter().next().map(|(definition, _)| definition);
        first.ok_or(ChangeError::Store(StoreError::NotFound("definition")))
    }

    /// The page that a definition makes.
    ///
    /// - `was`: the slug of the page that it replaces.
    pub fn page_of(&self, text: &str, was: Option<&str>) -> Result<Arc<PagePlan>, ChangeError> {
        let views = self.board.views();
        let plans: Vec<_> = views.iter().map(|view| Arc::clone(&view.plan)).collect();
        let pages = self.board.pages();
        let others: Vec<_> = pages
            .iter()
            .filter(|page| was.is_none_or(|was| page.slug != was))
            .cloned()
            .collect();
        overlay::page(text, &plans, &others)
            .map_err(|problems| ChangeError::Invalid(numbered(problems)))
    }

    /// The channel that a definition makes.
    ///
    /// - `was`: the name of the one that it replaces.
    pub fn channel_of(
        &self,
        text: &str,
        was: Option<&str>,
    ) -> Result<Arc<NotifyPlan>, ChangeError> {
        let views = self.board.views();
        let plans: Vec<_> = views.iter().map(|view| Arc::clone(&view.plan)).collect();
        let channels = self.board.channels();
        let others: Vec<_> = channels
            .iter()
            .filter(|channel| was.is_none_or(|was| channel.name != was))
            .cloned()
            .collect();
        let rotations = self.board.rotations();
        overlay::channel(text, &self.board.grounds(), &plans, &rotations, &others)
            .map_err(|problems| ChangeError::Invalid(numbered(problems)))
    }

    /// The name of the escalation that a definition makes.
    ///
    /// - `was`: the name of the one that it replaces.
    fn escalation_of(&self, text: &str, was: Option<&str>) -> Result<String, ChangeError> {
        let views = self.board.views();
        let plans: Vec<_> = views.iter().map(|view| Arc::clone(&view.plan)).collect();
        let escalations = self.board.escalations();
        let others = escalations
            .iter()
            .filter(|it| Some(it.name.as_str()) != was);
        let others: Vec<_> = others.cloned().collect();
        let named = overlay::Named {
            monitors: &plans,
            channels: &self.board.channels(),
            rotations: &self.board.rotations(),
        };
        let plan = overlay::escalation(text, named, &others)
            .map_err(|problems| ChangeError::Invalid(numbered(problems)))?;
        Ok(plan.name.clone())
    }

    /// The name of the rotation that a definition makes.
    ///
    /// - `was`: the name of the one that it replaces.
    fn rotation_of(&self, text: &str, was: Option<&str>) -> Result<String, ChangeError> {
        let rotations = self.board.rotations();
        let others = rotations.iter().filter(|it| Some(it.name.as_str()) != was);
        let others: Vec<_> = others.cloned().collect();
        let channels = self.board.channels();
        let names = channels.iter().map(|channel| channel.name.as_str());
        let plan = overlay::rotation(text, &others, &names.collect())
            .map_err(|problems| ChangeError::Invalid(numbered(problems)))?;
        Ok(plan.name.clone())
    }

    /// Fails if an escalation names a channel or a rotation that would be gone, or a rotation names a channel.
    fn spare(&self, gone: Option<&str>) -> Result<(), ChangeError> {
        let Some(gone) = gone else {
            return Ok(());
        };
        let (escalations, rotations) = (self.board.escalations(), self.board.rotations());
        let escalation = escalations.iter().find(|it| it.names(gone));
        let rotation = rotations.iter().find(|it| it.names(gone));
        let by = escalation.map(|it| &it.name);
        match by.or(rotation.map(|it| &it.name)) {
            None => Ok(()),
            Some(by) => Err(ChangeError::Needed {
                key: gone.to_owned(),
                by: by.clone(),
            }),
        }
    }

    /// Removes a maintenance window, a page, a channel or an escalation of the store.
    pub async fn remove_other(
        &self,
        actor: &Actor,
        kind: DefinitionKind,
        (key, version): (&str, Option<i64>),
        now: Timestamp,
    ) -> Result<(), ChangeError> {
        let _changing = self.changing.lock().await;
        let is_named = matches!(kind, DefinitionKind::Channel | DefinitionKind::OnCall);
        self.spare(is_named.then_some(key))?;
        let action = format!("{}.delete", kind.name());
        let changes = DefinitionChanges {
            removals: vec![(key.to_owned(), version)],
            audit: vec![actor.audit(&action, key)],
            ..DefinitionChanges::default()
        };
        self.store
            .change_definitions(self.org, kind, changes, now)
            .await?;
        self.rebuild().await?;
        Ok(())
    }

    /// The definition of that key, if the store has it.
    pub async fn definition(
        &self,
        kind: DefinitionKind,
        key: &str,
    ) -> Result<Option<Definition>, StoreError> {
        self.store.definition(self.org, kind, key).await
    }

    /// Writes a line of the audit log for a change that was made elsewhere.
    pub async fn note(
        &self,
        actor: &Actor,
        action: &str,
        object: &str,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let entry = actor.audit(action, object);
        self.store.record_audit(self.org, entry, now).await
    }

    /// Reads again who may use the API.
    pub async fn refresh_access(&self) -> Result<Access, StoreError> {
        let tokens = self.store.tokens(self.org).await?;
        let users = self.store.users(self.org).await?;
        let access = Access {
            tokens: tokens.into(),
            has_users: !users.is_empty(),
        };
        self.board.set_access(access.clone());
        Ok(access)
    }
}

/// The problem of a mask in the definition of that number.
fn masked(index: usize, error: &mask::MaskError) -> ChangeError {
    let problem = ConfigProblem {
        line: 0,
        column: 0,
        key: String::new(),
        message: error.to_string(),
        hint: None,
    };
    ChangeError::Invalid(vec![(index, problem)])
}

fn numbered(problems: Vec<ConfigProblem>) -> Vec<(usize, ConfigProblem)> {
    problems.into_iter().map(|problem| (0, problem)).collect()
}

/// Why JSON is no definition.
#[derive(Debug, thiserror::Error)]
pub enum DefinitionJsonError {
    /// It is a number, a text or a list.
    #[error("must be an object")]
    NotAnObject,
    /// TOML cannot hold a number.
    #[error("`{0}` is too large a number")]
    NumberTooLarge(serde_json::Number),
    /// The definition that is patched cannot be read.
    #[error(transparent)]
    Stored(#[from] toml::de::Error),
    /// The definition that is patched has a value that JSON cannot hold.
    #[error(transparent)]
    NotJson(#[from] serde_json::Error),
}

/// The table of a JSON object; fails with what TOML cannot hold.
pub fn table_of(value: &Value) -> Result<toml::Table, DefinitionJsonError> {
    match toml_of(value)? {
        Some(toml::Value::Table(table)) => Ok(table),
        _ => Err(DefinitionJsonError::NotAnObject),
    }
}

/// Nothing for null, which leaves a key out.
fn toml_of(value: &Value) -> Result<Option<toml::Value>, DefinitionJsonError> {
    Ok(Some(match value {
        Value::Null => return Ok(None),
        Value::Bool(boolean) => toml::Value::Boolean(*boolean),
        Value::String(text) => toml::Value::String(text.clone()),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(integer), _) => toml::Value::Integer(integer),
            (None, Some(float)) => toml::Value::Float(float),
            (None, None) => return Err(DefinitionJsonError::NumberTooLarge(number.clone())),
        },
        Value::Array(all) => {
            let all: Result<Vec<_>, _> = all.iter().map(toml_of).collect();
            toml::Value::Array(all?.into_iter().flatten().collect())
        }
        Value::Object(entries) => {
            let mut table = toml::Table::new();
            for (key, value) in entries {
                if let Some(value) = toml_of(value)? {
                    table.insert(key.clone(), value);
                }
            }
            toml::Value::Table(table)
        }
    }))
}

/// A definition as JSON, which [`table_of`] takes again. Dates without quotes, which JSON does not have, become texts.
pub fn json_of_table(table: &toml::Table) -> Value {
    let entries = table.iter();
    let entries = entries.map(|(key, value)| (key.clone(), json_of_toml(value)));
    Value::Object(entries.collect())
}

fn json_of_toml(value: &toml::Value) -> Value {
    match value {
        toml::Value::String(text) => text.as_str().into(),
        toml::Value::Integer(number) => (*number).into(),
        toml::Value::Float(number) => (*number).into(),
        toml::Value::Boolean(boolean) => (*boolean).into(),
        toml::Value::Datetime(date) => date.to_string().into(),
        toml::Value::Array(all) => all.iter().map(json_of_toml).collect(),
        toml::Value::Table(table) => json_of_table(table),
    }
}

/// A JSON merge patch (RFC 7396) applied to a definition as clients see it, with masks in place of its credentials.
pub fn patched(text: &str, patch: &Value) -> Result<toml::Table, DefinitionJsonError> {
    let mut table: toml::Table = toml::from_str(text)?;
    mask::mask(&mut table);
    let mut value = serde_json::to_value(table)?;
    merge(&mut value, patch);
    table_of(&value)
}

fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(serde_json::Map::new());
    }
    if let Value::Object(target) = target {
        for (key, value) in patch {
            if value.is_null() {
                target.remove(key);
            } else {
                merge(target.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
    }
}

#[cfg(test)]
mod tests;
