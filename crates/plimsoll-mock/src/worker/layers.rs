//! The rules that answer: those of the files, and over them what was changed while the mock is served.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use plimsoll_model::document::ConfigProblem;
use serde_json::Value;

use crate::config::Insertion;
use crate::config::plan::MockPlan;
use crate::folder::Folder;
use crate::rules::{Rule, RuleSet, Strategy, Tiebreaker};

/// Rules that can be added at run time: suites that never remove theirs must not fill memory.
const MOST_ADDED: usize = 10_000;

/// Stands for the file of rules that were added at run time.
pub(crate) const RUN_TIME: &str = "(added)";

/// A plan with its changes.
#[derive(Debug)]
pub(crate) struct Layers {
    files: Arc<MockPlan>,
    /// The last one first, since it is tried first.
    added: Vec<Arc<Rule>>,
    /// Rules of files by their keys: another one instead, or none.
    changed: HashMap<String, Option<Arc<Rule>>>,
    /// So many were added before.
    count: u64,
}

/// Why rules stay as they are.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ChangeError {
    /// Nothing is called so.
    #[error("there is no rule `{0}`")]
    Unknown(String),
    /// Something else is called so.
    #[error("there is a rule `{0}` already")]
    Taken(String),
    /// No more rules are taken.
    #[error("there are {MOST_ADDED} added rules, which is as many as may be")]
    Full,
    /// They have mistakes.
    #[error("the rule has mistakes")]
    Wrong(Vec<ConfigProblem>),
}

impl Layers {
    pub(crate) fn new(files: Arc<MockPlan>) -> Self {
        Self {
            files,
            added: Vec::new(),
            changed: HashMap::new(),
            count: 0,
        }
    }

    /// The same with other files: rules that were added stay, in place of the files' own if they were saved there; what was
    /// changed in the files before is as they say.
    pub(crate) fn replace(&mut self, files: Arc<MockPlan>) {
        let (before, after) = (mappings(&self.files), mappings(&files));
        let mut hidden = HashMap::new();
        self.added.retain(|rule| {
            let Some((id, of_file)) = mapping_id(rule).and_then(|id| after.get_key_value(id))
            else {
                return true;
            };
            // A file that was edited since holds.
            let was_edited = before
                .get(id)
                .is_none_or(|it| it.mapping != of_file.mapping);
            let is_kept = rule.mapping == of_file.mapping || !was_edited;
            if is_kept {
                hidden.insert(of_file.key.clone(), None);
            }
            is_kept
        });
        self.files = files;
        self.changed = hidden;
    }

    /// Forgets every change.
    pub(crate) fn reset(&mut self) {
        self.added.clear();
        self.changed.clear();
    }

    /// The plan in force.
    pub(crate) fn plan(&self) -> Arc<MockPlan> {
        if self.added.is_empty() && self.changed.is_empty() {
            return Arc::clone(&self.files);
        }
        let mut sets = Vec::new();
        if !self.added.is_empty() {
            let strategy = Strategy::Priority(Tiebreaker::FirstMatch);
            let set = RuleSet::new(PathBuf::from(RUN_TIME), None, strategy, Vec::new());
            sets.push(Arc::new(set.with_rules(self.added.clone())));
        }
        sets.extend(self.files.sets.iter().map(|set| self.changed_set(set)));
        Arc::new(MockPlan {
            sets,
            ..(*self.files).clone()
        })
    }

    fn changed_set(&self, set: &Arc<RuleSet>) -> Arc<RuleSet> {
        let rules = set.rules();
        if !rules
            .iter()
            .any(|rule| self.changed.contains_key(&rule.key))
        {
            return Arc::clone(set);
        }
        let rules = rules
            .iter()
            .filter_map(|rule| match self.changed.get(&rule.key) {
                None => Some(Arc::clone(rule)),
                Some(change) => change.clone(),
            });
        Arc::new(set.with_rules(rules.collect()))
    }

    /// Adds rules before all others; of several the first one stays first. Their keys are returned.
    pub(crate) fn add(&mut self, rules: Vec<Rule>) -> Result<Vec<String>, ChangeError> {
        if self.added.len() + rules.len() > MOST_ADDED {
            return Err(ChangeError::Full);
        }
        let mut named = Vec::new();
        let mut count = self.count;
        for mut rule in rules {
            rule.key = match &rule.id {
                Some(id) => id.clone(),
                None => loop {
                    count += 1;
                    let key = format!("added-{count}");
                    if !self.has(&key) {
                        break key;
                    }
                },
            };
            if self.has(&rule.key) {
                return Err(ChangeError::Taken(rule.key));
            }
            named.push(Arc::new(rule));
        }
        self.count = count;
        let keys = named.iter().map(|rule| rule.key.clone()).collect();
        self.added.splice(0..0, named);
        Ok(keys)
    }

    /// Whether a key is taken: also by removed rules of files, since a reset brings them back.
    fn has(&self, key: &str) -> bool {
        self.added.iter().any(|rule| rule.key == key) || self.in_files(key).is_some()
    }

    fn in_files(&self, key: &str) -> Option<&RuleSet> {
        let mut sets = self.files.sets.iter();
        let set = sets.find(|set| set.rules().iter().any(|rule| rule.key == key))?;
        Some(set)
    }

    /// Puts a rule in place of another, in JSON.
    pub(crate) fn change(&mut self, key: &str, json: &Value) -> Result<(), ChangeError> {
        let unknown = || ChangeError::Unknown(key.to_owned());
        let at = self.added.iter().position(|rule| rule.key == key);
        let place = match at {
            Some(_) => self.place(),
            None if self.is_removed(key) => return Err(unknown()),
            None => {
                let set = self.in_files(key).ok_or_else(unknown)?;
                Insertion::in_set(set, &self.files.states)
            }
        };
        let rule = place.rule(json).map_err(ChangeError::Wrong)?;
        if let Some(id) = rule.id.as_ref().filter(|id| *id != key) {
            // A rule keeps its name, or what was noted of it would be another one's.
            let problem = ConfigProblem {
                line: 1,
                column: 1,
                key: "id".to_owned(),
                message: format!("`{id}` is not what the rule is called, `{key}`"),
                hint: None,
            };
            return Err(ChangeError::Wrong(vec![problem]));
        }
        self.put(key, rule)
    }

    /// Puts a rule in place of another, or of one of a file that was removed.
    pub(crate) fn put(&mut self, key: &str, mut rule: Rule) -> Result<(), ChangeError> {
        key.clone_into(&mut rule.key);
        let rule = Arc::new(rule);
        if let Some(at) = self.added.iter().position(|rule| rule.key == key) {
            self.added[at] = rule;
        } else if self.in_files(key).is_some() {
            self.changed.insert(key.to_owned(), Some(rule));
        } else {
            return Err(ChangeError::Unknown(key.to_owned()));
        }
        Ok(())
    }

    /// Takes a rule away.
    pub(crate) fn remove(&mut self, key: &str) -> Result<(), ChangeError> {
        let before = self.added.len();
        self.added.retain(|rule| rule.key != key);
        if self.added.len() < before {
            return Ok(());
        }
        if self.is_removed(key) || self.in_files(key).is_none() {
            return Err(ChangeError::Unknown(key.to_owned()));
        }
        self.changed.insert(key.to_owned(), None);
        Ok(())
    }

    /// Whether a rule of a file was removed.
    pub(crate) fn is_removed(&self, key: &str) -> bool {
        self.changed.get(key).is_some_and(Option::is_none)
    }

    /// Whether a rule of a file was changed.
    pub(crate) fn is_changed(&self, key: &str) -> bool {
        self.changed.contains_key(key)
    }

    /// The rules that are not as the files have them, in the order in which they are tried.
    pub(crate) fn unsaved(&self) -> Vec<Arc<Rule>> {
        let added = self.added.iter().cloned();
        let of_files = self.files.sets.iter().flat_map(|set| set.rules());
        let changed = of_files.filter_map(|rule| self.changed.get(&rule.key)?.clone());
        added.chain(changed).collect()
    }

    /// Position of added rules.
    pub(crate) fn place(&self) -> Insertion {
        Insertion::alone(self.root(), &self.files.states)
    }

    /// The folder for files of added rules: that of the first set, or the served one.
    pub(crate) fn root(&self) -> Option<&Path> {
        let of_set = self
            .files
            .sets
            .first()
            .and_then(|set| set.origin().root.as_deref());
        of_set.or(self.files.folder.as_ref().map(Folder::root))
    }
}

/// The rules that were made of mappings of WireMock, by the ids of these.
fn mappings(plan: &MockPlan) -> HashMap<&str, &Rule> {
    let rules = plan.sets.iter().flat_map(|set| set.rules());
    let rules = rules.filter_map(|rule| Some((mapping_id(rule)?, &**rule)));
    rules.collect()
}

/// The id of the mapping of WireMock that a rule was made of.
fn mapping_id(rule: &Rule) -> Option<&str> {
    rule.mapping.as_ref()?.get("id")?.as_str()
}

#[cfg(test)]
mod tests;
