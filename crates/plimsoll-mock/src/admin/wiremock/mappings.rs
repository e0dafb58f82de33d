//! Mappings: listed, added, changed, removed.

use std::path::PathBuf;
use std::sync::Arc;

use http::StatusCode;
use serde_json::{Value, json};

use super::{
    DUPLICATE, bad_request, done, json_of, missing, not_here, not_saved, refused, unreadable, uuid,
    wrong,
};
use crate::admin::AdminOfMock;
use crate::admin::call::{AdminResponse, Call};
use crate::config::plan::MockPlan;
use crate::import::is_about_connection;
use crate::import::mapping::{id_of, random_id, with_id};
use crate::import::wiremock::stub;
use crate::request::KeptRequest;
use crate::rules::Rule;
use crate::rules::condition::Condition;
use crate::store::states::States;
use crate::worker::layers::{ChangeError, Layers};

/// The rules that were made of mappings, in the order in which they are tried.
pub(super) fn all(plan: &MockPlan) -> impl Iterator<Item = (&Arc<Rule>, &Arc<Value>)> {
    let rules = plan.sets.iter().flat_map(|set| set.rules());
    rules.filter_map(|rule| Some((rule, rule.mapping.as_ref()?)))
}

/// The problems of an import of several mappings, and the policy for keys that exist.
struct Options {
    overwrites: bool,
    removes_others: bool,
}

impl AdminOfMock {
    /// Where contents of mappings lie, and the states of their scenarios.
    pub(super) fn place_of_mappings(&self) -> (PathBuf, States) {
        self.shared.look(|plan, layers| {
            let files = match &plan.mappings {
                Some(folder) => Some(folder.bodies()),
                None => layers.root(),
            };
            let files = files.map(PathBuf::from).unwrap_or_default();
            (files, plan.states.clone())
        })
    }

    /// The rule of a mapping whose id is known.
    ///
    /// - `above`: what pointers to its mistakes begin with.
    pub(super) fn rule_of(&self, mapping: Value, above: &str) -> Result<Rule, AdminResponse> {
        let (files, states) = self.place_of_mappings();
        let stub =
            stub(mapping.clone(), &files, &states).map_err(|remarks| wrong(&remarks, "", above))?;
        let left_out = stub.left_out.into_iter().filter(|remark| {
            // The framing is the server's in WireMock too.
            let place = remark.place.to_string();
            !place
                .rsplit_once("response.headers.")
                .is_some_and(|(_, name)| is_about_connection(name))
        });
        let left_out: Vec<_> = left_out.collect();
        if !left_out.is_empty() {
            return Err(wrong(&left_out, "", above));
        }
        let mut rule = stub.rule;
        rule.id = id_of(&mapping);
        rule.mapping = Some(Arc::new(mapping));
        Ok(rule)
    }

    pub(super) fn list_mappings(&self, call: &Call) -> Result<AdminResponse, AdminResponse> {
        let number = |name: &str| {
            let Some(text) = call.parameter(name) else {
                return Ok(None);
            };
            let parsed = text.parse::<usize>();
            parsed
                .map(Some)
                .map_err(|_| bad_request(&format!("{text} is not a valid integer")))
        };
        let limit = number("limit")?.unwrap_or(usize::MAX);
        let offset = number("offset")?.unwrap_or(0);
        let plan = self.shared.plan().1;
        let shown: Vec<_> = all(&plan)
            .skip(offset)
            .take(limit)
            .map(|(_, mapping)| &**mapping)
            .collect();
        let document = json!({ "mappings": shown, "meta": { "total": all(&plan).count() } });
        Ok(AdminResponse::json(StatusCode::OK, document))
    }

    pub(super) fn add_mapping(&self, call: &Call) -> Result<AdminResponse, AdminResponse> {
        let mapping = object(json_of(call)?)?;
        let mapping = with_id(mapping, |_| random_id());
        let rule = self.rule_of(mapping.clone(), "")?;
        self.shared.change(|layers| add(layers, rule))?;
        self.persist(&mapping)?;
        Ok(AdminResponse::json(StatusCode::CREATED, mapping))
    }

    pub(super) fn mapping(&self, call: &Call, id: &str) -> Result<AdminResponse, AdminResponse> {
        let id = uuid(id)?;
        match call.method.as_str() {
            "PUT" => {
                key_of(&self.shared.plan().1, &id).ok_or_else(missing)?;
                let mut mapping = object(json_of(call)?)?;
                for key in ["id", "uuid"] {
                    mapping[key] = json!(id);
                }
                let mapping = with_id(mapping, |_| id.clone());
                let mut rule = Some(self.rule_of(mapping.clone(), "")?);
                self.shared.change(|layers| {
                    let key = key_of(&layers.plan(), &id).ok_or_else(missing)?;
                    let rule = rule.take().ok_or_else(missing)?;
                    layers.put(&key, rule).map_err(|error| not_changed(&error))
                })?;
                self.persist(&mapping)?;
                Ok(AdminResponse::json(StatusCode::OK, mapping))
            }
            "DELETE" => {
                let is_it = |(_, mapping): &(&Arc<Rule>, &Arc<Value>)| mapping["id"] == id.as_str();
                let removed = self.shared.change(|layers| remove(layers, is_it));
                if removed.is_empty() {
                    return Err(missing());
                }
                self.forget(&removed)?;
                Ok(done())
            }
            _ => {
                let plan = self.shared.plan().1;
                let found = all(&plan).find(|(_, mapping)| mapping["id"] == id.as_str());
                let (_, mapping) = found.ok_or_else(missing)?;
                Ok(AdminResponse::json(StatusCode::OK, (**mapping).clone()))
            }
        }
    }

    /// By its id, or by its request if no mapping has the id: clients give one to each mapping that they describe.
    pub(super) fn remove_mapping(&self, call: &Call) -> Result<AdminResponse, AdminResponse> {
        let mapping = object(json_of(call)?)?;
        let id = id_of(&mapping).filter(|id| key_of(&self.shared.plan().1, id).is_some());
        let request = with_id(mapping, |_| String::new())["request"].take();
        self.remove_mappings(|(_, mapping)| match &id {
            Some(id) => mapping["id"] == id.as_str(),
            None => mapping["request"] == request,
        })
    }

    pub(super) fn remove_mappings(
        &self,
        is_one: impl Fn(&(&Arc<Rule>, &Arc<Value>)) -> bool,
    ) -> Result<AdminResponse, AdminResponse> {
        let removed = self.shared.change(|layers| remove(layers, is_one));
        self.forget(&removed)?;
        Ok(done())
    }

    /// Writes all mappings that are not as their files have them.
    pub(super) fn save_mappings(&self) -> Result<AdminResponse, AdminResponse> {
        let folder = self.shared.plan().1.mappings.clone();
        let folder = folder.ok_or_else(|| {
            not_here(
                "there is no folder for them: `plimsoll mock --import DIR` saves into DIR/mappings",
            )
        })?;
        for rule in self.shared.look(|_, layers| layers.unsaved()) {
            let Some(mapping) = &rule.mapping else {
                continue;
            };
            let mut mapping = (**mapping).clone();
            mapping["persistent"] = json!(true);
            let mut saved = self.rule_of(mapping.clone(), "")?;
            saved.state = rule.state.clone();
            folder.save(&mapping).map_err(|error| not_saved(&error))?;
            // It may have been removed meanwhile.
            self.shared
                .change(|layers| layers.put(&rule.key, saved))
                .ok();
        }
        Ok(done())
    }

    /// Writes a mapping that is to last, where there is a folder for it.
    fn persist(&self, mapping: &Value) -> Result<(), AdminResponse> {
        match &self.shared.plan().1.mappings {
            Some(folder) if is_persistent(mapping) => {
                folder.save(mapping).map_err(|error| not_saved(&error))
            }
            _ => Ok(()),
        }
    }

    /// Removes the files of mappings that lasted until they were removed.
    fn forget(&self, removed: &[Arc<Value>]) -> Result<(), AdminResponse> {
        let Some(folder) = self.shared.plan().1.mappings.clone() else {
            return Ok(());
        };
        let mut lasting = removed.iter().filter(|mapping| is_persistent(mapping));
        let removed = lasting.try_for_each(|mapping| folder.remove(mapping));
        removed.map_err(|error| not_saved(&error))
    }

    pub(super) fn reset_mappings(&self) -> AdminResponse {
        self.shared.reset_rules();
        self.shared.plan().1.states.reset();
        // As there: the requests are those of the mappings before.
        self.forget_requests()
    }

    pub(super) fn import_mappings(&self, call: &Call) -> Result<AdminResponse, AdminResponse> {
        let mut document = object(json_of(call)?)?;
        let given = document["importOptions"].take();
        let policy = given.get("duplicatePolicy").and_then(Value::as_str);
        let options = Options {
            overwrites: match policy {
                None | Some("OVERWRITE") => true,
                Some("IGNORE") => false,
                Some(_) => {
                    return Err(unreadable("`duplicatePolicy` is OVERWRITE or IGNORE"));
                }
            },
            removes_others: given.get("deleteAllNotInImport") == Some(&Value::Bool(true)),
        };
        let Value::Array(mappings) = document["mappings"].take() else {
            return Err(unreadable("`mappings` must be an array"));
        };
        let mut rules = Vec::new();
        for (number, mapping) in mappings.into_iter().enumerate() {
            let mapping = with_id(object(mapping)?, |_| random_id());
            rules.push(self.rule_of(mapping, &format!("/mappings/{number}"))?);
        }
        self.shared
            .change(|layers| import(layers, rules, &options))?;
        Ok(done())
    }

    pub(super) fn unmatched_mappings(&self) -> Result<AdminResponse, AdminResponse> {
        self.kept()?;
        let plan = self.shared.plan().1;
        let shown: Vec<_> = all(&plan)
            .filter(|(rule, _)| rule.state.hits() == 0)
            .map(|(_, mapping)| &**mapping)
            .collect();
        let document = json!({ "mappings": shown, "meta": { "total": shown.len() } });
        Ok(AdminResponse::json(StatusCode::OK, document))
    }

    pub(super) fn remove_unmatched_mappings(&self) -> Result<AdminResponse, AdminResponse> {
        self.kept()?;
        self.remove_mappings(|(rule, _)| rule.state.hits() == 0)
    }

    /// Whether mappings answered is known only while requests are kept.
    fn kept(&self) -> Result<(), AdminResponse> {
        let journal = self.shared.journal();
        let none = || not_here("requests are not kept: `journal` of the mock is 0");
        journal.map(drop).ok_or_else(none)
    }

    pub(super) fn find_by_metadata(&self, call: &Call) -> Result<AdminResponse, AdminResponse> {
        let conditions = self.conditions_on_metadata(call)?;
        let plan = self.shared.plan().1;
        let shown: Vec<_> = all(&plan)
            .filter(|(_, mapping)| has_metadata(mapping, &conditions))
            .map(|(_, mapping)| &**mapping)
            .collect();
        let document = json!({ "mappings": shown, "meta": { "total": shown.len() } });
        Ok(AdminResponse::json(StatusCode::OK, document))
    }

    pub(super) fn remove_by_metadata(&self, call: &Call) -> Result<AdminResponse, AdminResponse> {
        let conditions = self.conditions_on_metadata(call)?;
        self.remove_mappings(|(_, mapping)| has_metadata(mapping, &conditions))
    }

    /// The pattern for metadata, in the form of those for contents.
    pub(super) fn conditions_on_metadata(
        &self,
        call: &Call,
    ) -> Result<Vec<Condition>, AdminResponse> {
        let pattern = json_of(call)?;
        self.conditions_of(&json!({ "bodyPatterns": [pattern] }))
    }
}

/// Whether a mapping has metadata that meet conditions.
pub(super) fn has_metadata(mapping: &Value, conditions: &[Condition]) -> bool {
    let Some(metadata) = mapping.get("metadata") else {
        return false;
    };
    let mut request = KeptRequest::made("POST", "/");
    request.body = metadata.to_string().into();
    let request = request.view();
    conditions.iter().all(|it| it.is_met_by(&request))
}

/// Whether a mapping outlives the process.
fn is_persistent(mapping: &Value) -> bool {
    mapping["persistent"] == Value::Bool(true)
}

/// By what name the rule of a mapping is known.
fn key_of(plan: &MockPlan, id: &str) -> Option<String> {
    let (rule, _) = all(plan).find(|(_, mapping)| mapping["id"] == id)?;
    Some(rule.key.clone())
}

pub(super) fn add(layers: &mut Layers, rule: Rule) -> Result<(), AdminResponse> {
    let id = rule.id.clone().unwrap_or_default();
    if key_of(&layers.plan(), &id).is_some() {
        return Err(not_changed(&ChangeError::Taken(id)));
    }
    let added = if layers.is_removed(&id) {
        // It takes the place of the one in the files that was removed.
        layers.put(&id, rule)
    } else {
        layers.add(vec![rule]).map(drop)
    };
    added.map_err(|error| not_changed(&error))
}

/// Removes mappings, and returns them.
pub(super) fn remove(
    layers: &mut Layers,
    is_one: impl Fn(&(&Arc<Rule>, &Arc<Value>)) -> bool,
) -> Vec<Arc<Value>> {
    let plan = layers.plan();
    let removed = all(&plan).filter(is_one).map(|(rule, mapping)| {
        // It is there, since it is in the plan.
        layers.remove(&rule.key).ok();
        Arc::clone(mapping)
    });
    removed.collect()
}

/// From the last one to the first, so that the first is the newest.
fn import(layers: &mut Layers, rules: Vec<Rule>, options: &Options) -> Result<(), AdminResponse> {
    let ids: Vec<_> = rules.iter().filter_map(|rule| rule.id.clone()).collect();
    for rule in rules.into_iter().rev() {
        let id = rule.id.clone().unwrap_or_default();
        match key_of(&layers.plan(), &id) {
            None => add(layers, rule)?,
            Some(_) if !options.overwrites => {}
            Some(key) => layers
                .put(&key, rule)
                .map_err(|error| not_changed(&error))?,
        }
    }
    if options.removes_others {
        let is_other = |(_, mapping): &(&Arc<Rule>, &Arc<Value>)| {
            !ids.iter().any(|id| mapping["id"] == id.as_str())
        };
        remove(layers, is_other);
    }
    Ok(())
}

fn not_changed(error: &ChangeError) -> AdminResponse {
    let (code, title, detail) = match error {
        ChangeError::Taken(id) => (
            DUPLICATE,
            "Duplicate stub mapping ID",
            format!(
                "ID of the provided stub mapping '{id}' is already taken by another stub mapping"
            ),
        ),
        _ => (super::NOT_PERMITTED, "Not permitted", error.to_string()),
    };
    let error = json!({ "code": code, "title": title, "detail": detail });
    refused(StatusCode::UNPROCESSABLE_ENTITY, &error)
}

fn object(value: Value) -> Result<Value, AdminResponse> {
    if value.is_object() {
        return Ok(value);
    }
    Err(unreadable("must be an object"))
}
