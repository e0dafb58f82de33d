//! Rules and conditions that come while the mock is served, as its files would have them.

use std::cell::RefCell;
use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use plimsoll_model::document::{ConfigProblem, Document, Value};
use serde_json::Value as Json;

use super::set::{self, Context};
use super::{source, when};
use crate::rules::condition::Condition;
use crate::rules::{Origin, Rule, RuleSet};
use crate::store::states::States;
use crate::template::data::DataBuckets;

/// Position of an added rule.
#[derive(Debug, Clone)]
pub(crate) struct Insertion {
    prefix: Option<String>,
    origin: Origin,
    states: States,
}

impl Insertion {
    /// Beside the rules of a set.
    pub(crate) fn in_set(set: &RuleSet, states: &States) -> Self {
        Self {
            prefix: set.prefix.clone(),
            origin: set.origin().clone(),
            states: states.clone(),
        }
    }

    /// In no set.
    ///
    /// - `root`: what files lie in, links resolved; absent if it may have none.
    pub(crate) fn alone(root: Option<&Path>, states: &States) -> Self {
        Self {
            prefix: None,
            origin: Origin {
                root: root.map(Path::to_owned),
                data: Arc::new(DataBuckets::default().with_store(states.store.clone())),
                ..Origin::default()
            },
            states: states.clone(),
        }
    }

    fn context(&self) -> Context {
        Context {
            prefix: self.prefix.clone(),
            root: self.origin.root.clone(),
            delay: self.origin.delay,
            states: self.states.clone(),
            grpc: self.origin.grpc.clone(),
            data: Arc::clone(&self.origin.data),
            files: RefCell::default(),
            others: RefCell::default(),
        }
    }

    /// The rules of a text in TOML, `[[rules]]`.
    pub(crate) fn rules_of_toml(&self, text: &str) -> Result<Vec<Rule>, Vec<ConfigProblem>> {
        let mut document = Document::parse(text);
        let mut root = document.root();
        let context = self.context();
        let mut ids = HashSet::new();
        let given = root.take_value("rules").map(Value::elements);
        if given.is_none() {
            root.missing("rules", "at least one [[rules]]");
        }
        let given = given.unwrap_or_default();
        let rules: Vec<_> = given
            .into_iter()
            .filter_map(|value| set::rule(value, &context, &mut ids))
            .collect();
        root.finish();
        match document.into_problems() {
            problems if problems.is_empty() => Ok(rules),
            problems => Err(problems),
        }
    }

    /// A rule in JSON.
    pub(crate) fn rule(&self, json: &Json) -> Result<Rule, Vec<ConfigProblem>> {
        let text = source::text(json).map_err(|error| vec![whole(error.to_string())])?;
        let mut rules = self.rules_of_toml(&text).map_err(without_places)?;
        rules
            .pop()
            .ok_or_else(|| vec![whole("there is no rule".to_owned())])
    }

    /// Conditions in JSON, as `when` of a rule has them.
    pub(crate) fn conditions(&self, json: &Json) -> Result<Vec<Condition>, Vec<ConfigProblem>> {
        let text = source::text(json).map_err(|error| vec![whole(error.to_string())])?;
        let mut document = Document::parse(&text);
        let mut conditions = None;
        for mut table in document.root().tables("rules") {
            match table.table("when") {
                Some(table) => conditions = when::compile(table, &self.context()),
                None if table.was_given("when") => {}
                None => table.missing("when", "as a rule has it"),
            }
            table.finish();
        }
        let problems = document.into_problems();
        match conditions {
            Some(conditions) if problems.is_empty() => Ok(conditions),
            _ => Err(without_places(problems)),
        }
    }
}

fn whole(message: String) -> ConfigProblem {
    ConfigProblem {
        line: 1,
        column: 1,
        key: String::new(),
        message,
        hint: None,
    }
}

/// Lines and columns are those of a generated text, as is the number of the rule.
fn without_places(problems: Vec<ConfigProblem>) -> Vec<ConfigProblem> {
    let alone = |problem: ConfigProblem| ConfigProblem {
        line: 1,
        column: 1,
        key: problem
            .key
            .trim_start_matches("rules[1]")
            .trim_start_matches('.')
            .to_owned(),
        ..problem
    };
    problems.into_iter().map(alone).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn mistakes_are_reported_by_their_keys() {
        let place = Insertion::alone(None, &States::default());
        let wrong =
            json!({ "when": { "request": { "url_paht": "/a" } }, "respond": { "status": 20 } });
        let problems = place.rule(&wrong).unwrap_err();
        let shown: Vec<_> = problems.iter().map(ToString::to_string).collect();
        for expected in [
            "when.request.url_paht: unknown key",
            "respond.status: must be",
        ] {
            let is_reported = shown.iter().any(|it| it.starts_with(expected));
            assert!(is_reported, "no {expected} in {shown:?}");
        }
        let rule =
            json!({ "when": { "request": { "url_path": "/a" } }, "respond": { "text": "b" } });
        assert_eq!(place.rule(&rule).unwrap().source, rule);
        for wrong in [
            json!(1),
            json!({ "when": null }),
            json!({}),
            json!({ "respond": {} }),
        ] {
            assert!(!place.rule(&wrong).unwrap_err().is_empty(), "{wrong}");
            assert!(!place.conditions(&wrong).unwrap_err().is_empty(), "{wrong}");
        }
        let when = json!({ "when": { "request": { "method": "GET" } } });
        assert_eq!(place.conditions(&when).unwrap().len(), 1);
        assert_eq!(
            place.rules_of_toml("[[rules]]\nx = 1").unwrap_err()[0].line,
            1
        );
    }
}
