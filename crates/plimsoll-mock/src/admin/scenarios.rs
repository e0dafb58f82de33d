//! Scenarios: reads and sets their states.

use std::collections::{BTreeMap, BTreeSet};

use http::StatusCode;
use serde_json::{Value, json};

use super::AdminOfMock;
use super::call::{AdminResponse, Call, either};
use crate::config::plan::MockPlan;
use crate::rules::condition::Condition;
use crate::store::states::{STARTED, Session};

/// Clients that are listed.
const MOST_CLIENTS: usize = 100;

/// A scenario as rules speak of it.
#[derive(Debug)]
pub(super) struct ScenarioStates {
    pub(super) session: Session,
    pub(super) states: BTreeSet<String>,
}

/// The scenarios of all rules, by their names.
pub(super) fn known(plan: &MockPlan) -> BTreeMap<String, ScenarioStates> {
    let mut all = BTreeMap::<String, ScenarioStates>::new();
    let begun = STARTED.to_owned();
    for rule in plan.sets.iter().flat_map(|set| set.rules()) {
        let request = rule
            .conditions
            .iter()
            .filter_map(|condition| match condition {
                Condition::State(scenario, state) => Some((scenario, state)),
                _ => None,
            });
        let gone = rule.next.iter().map(|(scenario, _, to)| (scenario, to));
        let own = rule.scenario.iter().map(|scenario| (scenario, &begun));
        for (scenario, state) in request.chain(gone).chain(own) {
            let known = all
                .entry(scenario.name.clone())
                .or_insert_with(|| ScenarioStates {
                    session: scenario.session.clone(),
                    states: BTreeSet::from([STARTED.to_owned()]),
                });
            known.states.insert(state.clone());
        }
    }
    all
}

impl AdminOfMock {
    pub(super) fn scenarios(&self, call: &Call) -> AdminResponse {
        if !["GET", "HEAD"].contains(&call.method.as_str()) {
            return AdminResponse::not_allowed("GET");
        }
        let plan = self.shared.plan().1;
        let all = known(&plan);
        let shown = all.iter().map(|(name, known)| shown(name, known, &plan));
        AdminResponse::fields(json!({ "scenarios": shown.collect::<Vec<_>>() }))
    }

    pub(super) fn reset_scenarios(&self, call: &Call) -> AdminResponse {
        if call.method != "POST" {
            return AdminResponse::not_allowed("POST");
        }
        self.shared.plan().1.states.reset();
        AdminResponse::done()
    }

    pub(super) fn scenario(&self, call: &Call, name: &str) -> AdminResponse {
        let plan = self.shared.plan().1;
        let all = known(&plan);
        let Some(known) = all.get(name) else {
            let text = format!("no rule is of a scenario `{name}`");
            return AdminResponse::error(StatusCode::NOT_FOUND, &text);
        };
        match call.method.as_str() {
            "GET" | "HEAD" => {
                AdminResponse::fields(json!({ "scenario": shown(name, known, &plan) }))
            }
            "PUT" => either(put(call, name, known, &plan)),
            "DELETE" => {
                plan.states.reset_one(name);
                AdminResponse::done()
            }
            _ => AdminResponse::not_allowed("GET, PUT, DELETE"),
        }
    }
}

fn put(
    call: &Call,
    name: &str,
    known: &ScenarioStates,
    plan: &MockPlan,
) -> Result<AdminResponse, AdminResponse> {
    let json = call.json()?;
    let wrong = |text: &str| AdminResponse::error(StatusCode::UNPROCESSABLE_ENTITY, text);
    let Some(state) = json.get("state").and_then(Value::as_str) else {
        return Err(wrong("`state` is missing: the state that it goes to"));
    };
    if !known.states.contains(state) {
        let states: Vec<_> = known.states.iter().map(String::as_str).collect();
        let text = format!(
            "no rule knows the state `{state}`, but {}",
            states.join(", ")
        );
        return Err(wrong(&text));
    }
    let client = json.get("client").and_then(Value::as_str);
    let client = match (&known.session, client) {
        (Session::All, None) => "",
        (Session::All, Some(_)) => {
            return Err(wrong(
                "the scenario does not distinguish clients, so there is no `client`",
            ));
        }
        (session, None) => {
            let text =
                format!("the scenario distinguishes clients by {session}: give the `client`");
            return Err(wrong(&text));
        }
        (_, Some(client)) => client,
    };
    let put = plan.states.put(name, client, state);
    put.map_err(|error| {
        AdminResponse::error(StatusCode::INSUFFICIENT_STORAGE, &error.to_string())
    })?;
    Ok(AdminResponse::done())
}

fn shown(name: &str, known: &ScenarioStates, plan: &MockPlan) -> Value {
    let clients = plan.states.clients(name, MOST_CLIENTS);
    let state = match known.session {
        Session::All => clients.first().map_or(STARTED, |(_, state)| state),
        _ => STARTED,
    };
    let is_shared = known.session == Session::All;
    let clients = clients
        .iter()
        .filter(|_| !is_shared)
        .map(|(client, state)| json!({ "client": client, "state": state }));
    json!({
        "name": name,
        "session": known.session.to_string(),
        "states": known.states,
        "state": is_shared.then_some(state),
        "clients": clients.collect::<Vec<_>>(),
    })
}
