//! Why a request is answered as it is, rule by rule.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::config::plan::MockPlan;
use crate::middleware::RhaiMiddleware;
use crate::request::RequestView;
use crate::rules::{Rule, Strategy};

/// The verdict of every rule on one request, and the rule that responds.
#[derive(Debug)]
pub struct Explanation {
    /// The request: method and path, normalised.
    pub request: String,
    /// Scripts that may answer before the rules. They are not run for an explanation.
    pub middlewares: Vec<String>,
    /// In the order in which they are tried.
    pub sets: Vec<SetVerdict>,
    /// The numbers of the set and the rule that answer, both counted from 0.
    pub rule: Option<(usize, usize)>,
    /// The path of the collection that answers where no rule does.
    pub collection: Option<String>,
    /// The OpenAPI document that answers where neither does.
    pub openapi: Option<PathBuf>,
    /// The file that answers where none of these do.
    pub file: Option<PathBuf>,
}

/// The verdicts of the rules of one set.
#[derive(Debug)]
pub struct SetVerdict {
    /// The file of the set.
    pub file: PathBuf,
    /// The prefix of its paths; absent for all.
    pub prefix: Option<String>,
    /// Whether it answers such paths at all.
    pub is_covering: bool,
    /// Strategy that chooses one of several rules.
    pub strategy: Strategy,
    /// In the order of the file.
    pub rules: Vec<RuleVerdict>,
}

/// The verdict of one rule.
#[derive(Debug)]
pub struct RuleVerdict {
    /// As the rule is called, such as `rules[1]`.
    pub name: String,
    /// The reply of the rule.
    pub reply: String,
    /// The unmet conditions, each with the value in the request.
    pub unmet: Vec<(String, String)>,
    /// Number of conditions.
    pub conditions: usize,
}

impl MockPlan {
    /// The verdict of every rule on a request. Looks for files, so it may block.
    pub fn explain(&self, request: &RequestView<'_>) -> Explanation {
        let sets = self.sets.iter().map(|set| {
            let rules = set.rules().iter().enumerate();
            SetVerdict {
                file: set.file.clone(),
                prefix: set.prefix.clone(),
                is_covering: set.covers(&request.path),
                strategy: set.strategy(),
                rules: rules
                    .map(|(number, rule)| verdict(number, rule, request))
                    .collect(),
            }
        });
        let rule = self.find(request);
        let mut collections = self.collections.iter().filter(|_| rule.is_none());
        let collection = collections.find(|collection| collection.covers(&request.path));
        let collection = collection.map(|collection| collection.path().to_owned());
        let mut is_left = rule.is_none() && collection.is_none();
        let mut documents = self.openapi.iter().filter(|_| is_left);
        let openapi = documents.find(|document| document.covers(&request.path));
        let openapi = openapi.map(|document| document.file().to_owned());
        is_left &= openapi.is_none();
        let folder = self.folder.as_ref().filter(|_| is_left);
        Explanation {
            request: format!("{} {}", request.method, request.path),
            middlewares: self.middlewares.iter().map(RhaiMiddleware::shown).collect(),
            sets: sets.collect(),
            rule,
            collection,
            openapi,
            file: folder.and_then(|folder| folder.find(&request.path)),
        }
    }
}

fn verdict(number: usize, rule: &Rule, request: &RequestView<'_>) -> RuleVerdict {
    let unmet = rule.conditions.iter().filter(|it| !it.is_met_by(request));
    RuleVerdict {
        name: name(number, rule),
        reply: replies(rule),
        unmet: unmet
            .map(|it| (it.to_string(), it.found(request)))
            .collect(),
        conditions: rule.conditions.len(),
    }
}

/// As files count rules, from 1.
fn name(number: usize, rule: &Rule) -> String {
    let number = number + 1;
    match &rule.id {
        Some(id) => format!("rules[{number}] {id}"),
        None => format!("rules[{number}]"),
    }
}

/// Its replies in a few words.
fn replies(rule: &Rule) -> String {
    let all: Vec<_> = rule.replies.iter().map(|reply| reply.summary()).collect();
    all.join("; then ")
}

impl Explanation {
    /// The same as `schemas/mock-match.v1.json` describes it.
    pub fn to_json(&self) -> String {
        format!("{:#}", self.document())
    }

    /// The same, not yet written.
    pub(crate) fn document(&self) -> Value {
        let strategy = |strategy| match strategy {
            Strategy::FirstMatch => "first_match",
            Strategy::Priority(_) => "priority",
            Strategy::UniformRandom(_) => "uniform_random",
            Strategy::WeightedRandom(_) => "weighted_random",
            Strategy::RoundRobin => "round_robin",
        };
        let rule = |verdict: &RuleVerdict| {
            let unmet = verdict.unmet.iter();
            json!({
                "name": verdict.name,
                "reply": verdict.reply,
                "matches": verdict.unmet.is_empty(),
                "conditions": verdict.conditions,
                "unmet": unmet
                    .map(|(condition, found)| json!({ "condition": condition, "found": found }))
                    .collect::<Vec<Value>>(),
            })
        };
        let set = |verdict: &SetVerdict| {
            json!({
                "file": verdict.file.display().to_string(),
                "prefix": verdict.prefix,
                "covers": verdict.is_covering,
                "strategy": strategy(verdict.strategy),
                "rules": verdict.rules.iter().map(rule).collect::<Vec<Value>>(),
            })
        };
        let answer = match (self.rule, &self.collection, &self.file) {
            (Some((set, rule)), ..) => json!({ "set": set + 1, "rule": rule + 1 }),
            (None, Some(path), _) => json!({ "collection": path }),
            (None, None, _) if self.openapi.is_some() => json!({ "openapi": self.openapi }),
            (None, None, Some(file)) => json!({ "file": file.display().to_string() }),
            (None, None, None) => Value::Null,
        };
        json!({
            "version": 1,
            "request": self.request,
            "middlewares": self.middlewares,
            "sets": self.sets.iter().map(set).collect::<Vec<Value>>(),
            "answer": answer,
        })
    }
}

/// In lines, for people.
impl std::fmt::Display for Explanation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "{}", self.request)?;
        for middleware in &self.middlewares {
            writeln!(f, "{middleware}: not run here, may answer before the rules")?;
        }
        for set in &self.sets {
            let prefix = set.prefix.as_deref().unwrap_or("/");
            if !set.is_covering {
                writeln!(f, "{}: answers {prefix} only", set.file.display())?;
                continue;
            }
            writeln!(f, "{}", set.file.display())?;
            for rule in &set.rules {
                let verdict = if rule.unmet.is_empty() { "yes" } else { "no " };
                writeln!(f, "  {verdict} {}: {}", rule.name, rule.reply)?;
                for (condition, found) in &rule.unmet {
                    writeln!(f, "        {condition}: found {found}")?;
                }
            }
        }
        match (self.rule, &self.collection, &self.file) {
            (Some((set, rule)), ..) => {
                let set = &self.sets[set];
                let rule = &set.rules[rule];
                write!(f, "answered by {} of {}", rule.name, set.file.display())
            }
            (None, Some(path), _) => write!(f, "answered by the collection {path}"),
            (None, None, _) if self.openapi.is_some() => {
                let file = self.openapi.as_deref().unwrap_or(Path::new(""));
                write!(f, "answered by the document {}", file.display())
            }
            (None, None, Some(file)) => write!(f, "answered with the file {}", file.display()),
            (None, None, None) => f.write_str("answered by nothing: 404"),
        }
    }
}
