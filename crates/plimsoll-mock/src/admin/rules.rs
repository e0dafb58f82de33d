//! Rules while the mock is served: listed, added, changed, removed, and as the files have them again.

use http::StatusCode;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

use super::AdminOfMock;
use super::call::{AdminResponse, Call, either};
use crate::config::plan::MockPlan;
use crate::rules::nearness::Finding;
use crate::rules::{Rule, RuleSet};
use crate::worker::layers::{ChangeError, Layers, RUN_TIME};

/// Rules that are listed by default.
const USUAL: u64 = 1000;

impl AdminOfMock {
    pub(super) fn rules(&self, call: &Call) -> AdminResponse {
        match call.method.as_str() {
            "GET" | "HEAD" => either(self.list_rules(call)),
            "POST" => either(self.add_rules(call)),
            _ => AdminResponse::not_allowed("GET, POST"),
        }
    }

    fn list_rules(&self, call: &Call) -> Result<AdminResponse, AdminResponse> {
        let number = |value: u64| usize::try_from(value).unwrap_or(usize::MAX);
        let limit = number(call.number("limit")?.unwrap_or(USUAL));
        let offset = number(call.number("offset")?.unwrap_or(0));
        Ok(self.shared.look(|plan, layers| {
            let rules: Vec<_> = all(plan).skip(offset).take(limit).collect();
            let shown = rules.iter().map(|(set, rule)| shown(set, rule, layers));
            AdminResponse::fields(json!({
                "rules": shown.collect::<Vec<_>>(),
                "count": all(plan).count(),
            }))
        }))
    }

    fn add_rules(&self, call: &Call) -> Result<AdminResponse, AdminResponse> {
        let place = self.shared.look(|_, layers| layers.place());
        let wrong = |problems: Vec<_>| {
            AdminResponse::problems("the rule has mistakes", &problems, call.is_toml())
        };
        let rules = if call.is_toml() {
            place.rules_of_toml(call.text()?).map_err(wrong)?
        } else {
            vec![place.rule(&call.json()?).map_err(wrong)?]
        };
        let added = self.shared.change(|layers| layers.add(rules));
        let keys = added.map_err(|error| refused(&error))?;
        let first = keys.first().cloned().unwrap_or_default();
        let first = utf8_percent_encode(&first, NON_ALPHANUMERIC).to_string();
        Ok(AdminResponse::fields(json!({ "added": keys })).created(format!("rules/{first}")))
    }

    pub(super) fn rule(&self, call: &Call, key: &str) -> AdminResponse {
        match call.method.as_str() {
            "GET" | "HEAD" => {
                self.shared.look(
                    |plan, layers| match all(plan).find(|(_, rule)| rule.key == key) {
                        Some((set, rule)) => {
                            AdminResponse::fields(json!({ "rule": shown(set, rule, layers) }))
                        }
                        None => refused(&ChangeError::Unknown(key.to_owned())),
                    },
                )
            }
            "PUT" => either(call.json().map(|json| {
                let changed = self.shared.change(|layers| layers.change(key, &json));
                changed.map_or_else(|error| refused(&error), |()| AdminResponse::done())
            })),
            "DELETE" => {
                let removed = self.shared.change(|layers| layers.remove(key));
                removed.map_or_else(|error| refused(&error), |()| AdminResponse::done())
            }
            _ => AdminResponse::not_allowed("GET, PUT, DELETE"),
        }
    }

    pub(super) fn reset_rules(&self, call: &Call) -> AdminResponse {
        if call.method != "POST" {
            return AdminResponse::not_allowed("POST");
        }
        self.shared.reset_rules();
        AdminResponse::done()
    }
}

fn all(plan: &MockPlan) -> impl Iterator<Item = (&RuleSet, &Rule)> {
    let sets = plan.sets.iter();
    sets.flat_map(|set| set.rules().iter().map(move |rule| (&**set, &**rule)))
}

pub(super) fn refused(error: &ChangeError) -> AdminResponse {
    let text = error.to_string();
    match error {
        ChangeError::Unknown(_) => AdminResponse::error(StatusCode::NOT_FOUND, &text),
        ChangeError::Taken(_) => AdminResponse::error(StatusCode::CONFLICT, &text),
        ChangeError::Full => AdminResponse::error(StatusCode::INSUFFICIENT_STORAGE, &text),
        ChangeError::Wrong(problems) => AdminResponse::problems(&text, problems, false),
    }
}

fn shown(set: &RuleSet, rule: &Rule, layers: &Layers) -> Value {
    let is_added = set.file.as_os_str() == RUN_TIME;
    let replies: Vec<_> = rule.replies.iter().map(|reply| reply.summary()).collect();
    let conditions: Vec<_> = rule.conditions.iter().map(ToString::to_string).collect();
    json!({
        "key": rule.key,
        "origin": match is_added {
            true => "added",
            false if layers.is_changed(&rule.key) => "changed",
            false => "file",
        },
        "file": (!is_added).then(|| set.file.display().to_string()),
        "conditions": conditions,
        "replies": replies,
        "hits": rule.state.hits(),
        "rule": rule.source,
    })
}

pub(super) fn shown_findings(findings: &[Finding]) -> Value {
    let shown = findings.iter().map(|finding| {
        json!({
            "condition": finding.condition,
            "is_met": finding.is_met,
            "found": finding.found,
        })
    });
    shown.collect()
}
