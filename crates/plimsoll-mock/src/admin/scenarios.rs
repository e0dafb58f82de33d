//! Scenarios: their states, told and set.

use std::collections::{BTreeMap, BTreeSet};

use http::StatusCode;
use serde_json::{Value, json};

use super::AdminOfMock;
use super::call::{Call, Said, either};
use crate::condition::Condition;
use crate::plan::MockPlan;
use crate::states::{STARTED, Session};

/// Clients that are listed.
const MOST_CLIENTS: usize = 100;

/// A scenario as rules speak of it.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) session: Session,
    pub(super) states: BTreeSet<String>,
}

/// The scenarios of all rules, by their names.
pub(super) fn known(plan: &MockPlan) -> BTreeMap<String, Known> {
    let mut all = BTreeMap::<String, Known>::new();
    let begun = STARTED.to_owned();
    for rule in plan.sets.iter().flat_map(|set| set.rules()) {
        let asked = rule
            .conditions
            .iter()
            .filter_map(|condition| match condition {
                Condition::State(scenario, state) => Some((scenario, state)),
                _ => None,
            });
        let gone = rule.next.iter().map(|(scenario, _, to)| (scenario, to));
        let own = rule.scenario.iter().map(|scenario| (scenario, &begun));
        for (scenario, state) in asked.chain(gone).chain(own) {
            let known = all.entry(scenario.name.clone()).or_insert_with(|| Known {
                session: scenario.session.clone(),
                states: BTreeSet::from([STARTED.to_owned()]),
            });
            known.states.insert(state.clone());
        }
    }
    all
}

impl AdminOfMock {
    pub(super) fn scenarios(&self, call: &Call) -> Said {
        if !["GET", "HEAD"].contains(&call.method.as_str()) {
            return Said::not_allowed("GET");
        }
        let plan = self.shared.plan().1;
        let all = known(&plan);
        let shown = all.iter().map(|(name, known)| shown(name, known, &plan));
        Said::fields(json!({ "scenarios": shown.collect::<Vec<_>>() }))
    }

    pub(super) fn reset_scenarios(&self, call: &Call) -> Said {
        if call.method != "POST" {
            return Said::not_allowed("POST");
        }
        self.shared.plan().1.states.reset();
        Said::done()
    }

    pub(super) fn scenario(&self, call: &Call, name: &str) -> Said {
        let plan = self.shared.plan().1;
        let all = known(&plan);
        let Some(known) = all.get(name) else {
            let text = format!("no rule is of a scenario `{name}`");
            return Said::error(StatusCode::NOT_FOUND, &text);
        };
        match call.method.as_str() {
            "GET" | "HEAD" => Said::fields(json!({ "scenario": shown(name, known, &plan) })),
            "PUT" => either(put(call, name, known, &plan)),
            "DELETE" => {
                plan.states.reset_one(name);
                Said::done()
            }
            _ => Said::not_allowed("GET, PUT, DELETE"),
        }
    }
}

fn put(call: &Call, name: &str, known: &Known, plan: &MockPlan) -> Result<Said, Said> {
    let json = call.json()?;
    let wrong = |text: &str| Said::error(StatusCode::UNPROCESSABLE_ENTITY, text);
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
                "the scenario does not tell clients apart, so there is no `client`",
            ));
        }
        (session, None) => {
            let text = format!("the scenario tells clients apart by {session}: give the `client`");
            return Err(wrong(&text));
        }
        (_, Some(client)) => client,
    };
    let put = plan.states.put(name, client, state);
    put.map_err(|error| Said::error(StatusCode::INSUFFICIENT_STORAGE, &error.to_string()))?;
    Ok(Said::done())
}

fn shown(name: &str, known: &Known, plan: &MockPlan) -> Value {
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
