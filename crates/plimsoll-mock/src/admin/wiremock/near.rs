//! Near misses: the mappings that came nearest to a request, and the requests that came nearest to a pattern.

use http::StatusCode;
use serde_json::{Value, json};

use super::json_of;
use super::shape::{described, logged};
use crate::admin::AdminOfMock;
use crate::admin::call::{AdminResponse, Call};
use crate::config::plan::MockPlan;
use crate::request::RequestView;
use crate::rules::nearness::{distance_of, near_misses};
use crate::store::states::STARTED;

/// Near misses of one request or pattern.
const MOST: usize = 3;

/// Unmatched requests whose near misses are listed at once.
const MOST_UNMATCHED: usize = 20;

impl AdminOfMock {
    pub(super) fn near_of_unmatched(&self) -> AdminResponse {
        let plan = self.shared.plan().1;
        let entries = self.entries();
        let unmatched = entries.iter().rev().filter(|entry| entry.is_unmatched());
        let near = unmatched
            .take(MOST_UNMATCHED)
            .flat_map(|entry| near_mappings(&plan, &entry.view(), &logged(entry)));
        let near: Vec<_> = near.collect();
        shown(&near)
    }

    pub(super) fn near_to_request(&self, call: &Call) -> Result<AdminResponse, AdminResponse> {
        let json = json_of(call)?;
        let request = described(&json)?;
        let plan = self.shared.plan().1;
        Ok(shown(&near_mappings(&plan, &request.view(), &json)))
    }

    pub(super) fn near_to_pattern(&self, call: &Call) -> Result<AdminResponse, AdminResponse> {
        let mut pattern = json_of(call)?;
        let conditions = self.conditions_of(&pattern)?;
        if let Value::Object(pattern) = &mut pattern {
            pattern.entry("method").or_insert(json!("ANY"));
        }
        let entries = self.entries();
        // Of those that are as near the latest comes first.
        let mut near: Vec<_> = entries
            .iter()
            .rev()
            .map(|entry| (distance_of(&conditions, &entry.view()), entry))
            .filter(|(distance, _)| *distance > 0.0)
            .collect();
        near.sort_by(|one, other| one.0.total_cmp(&other.0));
        let near = near.into_iter().take(MOST).map(|(distance, entry)| {
            json!({
                "request": logged(entry),
                "requestPattern": pattern,
                "matchResult": { "distance": distance },
            })
        });
        let near: Vec<_> = near.collect();
        Ok(shown(&near))
    }
}

fn near_mappings(plan: &MockPlan, request: &RequestView<'_>, logged: &Value) -> Vec<Value> {
    let misses = near_misses(plan, request, usize::MAX).into_iter();
    let misses = misses.filter_map(|miss| Some((miss.distance, miss.rule.mapping.as_ref()?)));
    let misses = misses.take(MOST).map(|(distance, mapping)| {
        let mut near = json!({
            "request": logged,
            "stubMapping": **mapping,
            "matchResult": { "distance": distance },
        });
        if let Some(name) = mapping.get("scenarioName").and_then(Value::as_str) {
            let clients = plan.states.clients(name, 1);
            let state = clients.first().map_or(STARTED, |(_, state)| state);
            near["scenarioState"] = json!(state);
        }
        near
    });
    misses.collect()
}

fn shown(near: &[Value]) -> AdminResponse {
    AdminResponse::json(StatusCode::OK, json!({ "nearMisses": near }))
}
