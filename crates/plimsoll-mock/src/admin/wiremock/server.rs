//! Scenarios, and the server as a whole.

use http::StatusCode;
use plimsoll_model::Clock as _;
use plimsoll_wire::SystemClock;
use serde_json::{Value, json};

use super::mappings::all;
use super::{NO_STATE, done, json_of, not_here, refused, unreadable};
use crate::admin::AdminOfMock;
use crate::admin::call::{AdminResponse, Call};
use crate::admin::scenarios::known;
use crate::store::states::{STARTED, Session};

/// The version that clients are given.
const VERSION: &str = env!("CARGO_PKG_VERSION");

impl AdminOfMock {
    pub(super) fn all_scenarios(&self) -> AdminResponse {
        let plan = self.shared.plan().1;
        let known = known(&plan);
        let shown = known.iter().map(|(name, known)| {
            let clients = plan.states.clients(name, 1);
            let state = match known.session {
                Session::All => clients.first().map_or(STARTED, |(_, state)| state),
                // Each client has its own.
                _ => STARTED,
            };
            let mappings: Vec<_> = all(&plan)
                .filter(|(_, mapping)| mapping["scenarioName"] == name.as_str())
                .map(|(_, mapping)| &**mapping)
                .collect();
            json!({
                "id": name,
                "name": name,
                "state": state,
                "possibleStates": known.states,
                "mappings": mappings,
            })
        });
        let shown: Vec<_> = shown.collect();
        AdminResponse::json(StatusCode::OK, json!({ "scenarios": shown }))
    }

    pub(super) fn begin_scenarios_anew(&self) -> AdminResponse {
        self.shared.plan().1.states.reset();
        done()
    }

    /// Without a state it begins anew.
    pub(super) fn put_scenario(
        &self,
        call: &Call,
        name: &str,
    ) -> Result<AdminResponse, AdminResponse> {
        let plan = self.shared.plan().1;
        let all = known(&plan);
        let known = all.get(name).ok_or_else(|| {
            let error = json!({ "code": 404, "title": format!("Scenario {name} does not exist") });
            refused(StatusCode::NOT_FOUND, &error)
        })?;
        let document = if call.content.is_empty() {
            Value::Null
        } else {
            json_of(call)?
        };
        let state = match document.get("state") {
            None | Some(Value::Null) => {
                plan.states.reset_one(name);
                return Ok(done());
            }
            Some(Value::String(state)) => state,
            Some(_) => return Err(unreadable("`state` must be text")),
        };
        if !known.states.contains(state) {
            let title = format!("Scenario {name} does not support state {state}");
            let error = json!({ "code": NO_STATE, "title": title });
            return Err(refused(StatusCode::UNPROCESSABLE_ENTITY, &error));
        }
        if known.session != Session::All {
            return Err(not_here(
                "the scenario distinguishes clients; PUT /mock/scenarios/NAME takes a `client`",
            ));
        }
        let put = plan.states.put(name, "", state);
        put.map_err(|error| not_here(&error.to_string()))?;
        Ok(done())
    }

    pub(super) fn health(&self) -> AdminResponse {
        let now = SystemClock.wall();
        let uptime = now.duration_since(self.started).unwrap_or_default();
        let document = json!({
            "status": "healthy",
            "message": "plimsoll mock is ok",
            "version": VERSION,
            "uptimeInSeconds": uptime.as_secs(),
            "timestamp": humantime::format_rfc3339_millis(now).to_string(),
        });
        AdminResponse::json(StatusCode::OK, document)
    }

    pub(super) fn reset_all(&self) -> AdminResponse {
        let response = self.reset_everything();
        if response.is_success() {
            done()
        } else {
            response
        }
    }
}

/// Proxies pass on; there is nothing else to be set.
pub(super) fn settings() -> AdminResponse {
    let document = json!({ "settings": { "proxyPassThrough": true } });
    AdminResponse::json(StatusCode::OK, document)
}

pub(super) fn put_settings(call: &Call) -> Result<AdminResponse, AdminResponse> {
    let settings = json_of(call)?;
    let has_delay = ["fixedDelay", "delayDistribution"].iter().any(|key| {
        let value = settings.get(key);
        value.is_some_and(|value| !value.is_null() && *value != 0)
    });
    if has_delay {
        return Err(not_here(
            "a delay of all responses is not known here; give it to mappings",
        ));
    }
    Ok(done())
}

pub(super) fn version() -> AdminResponse {
    AdminResponse::json(StatusCode::OK, json!({ "version": VERSION }))
}
