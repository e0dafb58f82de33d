//! Scenarios, and the server as a whole.

use std::time::Duration;

use http::StatusCode;
use plimsoll_formats::wiremock::{MappingDelay, parse_settings};
use plimsoll_model::Clock as _;
use plimsoll_wire::SystemClock;
use serde_json::{Value, json};

use super::mappings::all;
use super::{NO_STATE, done, json_of, not_here, refused, unreadable};
use crate::admin::AdminOfMock;
use crate::admin::call::{AdminResponse, Call};
use crate::admin::scenarios::known;
use crate::fault::delay::{CommonDelays, Delay};
use crate::store::states::{STARTED, Session};
use crate::template::handlebars;

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
            let begun = known.states.iter().filter(|state| *state == STARTED);
            let others = known.states.iter().filter(|state| *state != STARTED);
            json!({
                "id": name,
                "name": name,
                "state": state,
                "possibleStates": begun.chain(others).collect::<Vec<_>>(),
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

/// The delays of all responses, as a client set them.
fn delays_of(settings: &Value) -> Result<CommonDelays, AdminResponse> {
    let parsed = parse_settings(settings).map_err(|error| unreadable(&error.to_string()))?;
    let mut delays = CommonDelays::default();
    for delay in parsed {
        match delay {
            MappingDelay::Fixed(0) => {}
            MappingDelay::Fixed(time) => delays.fixed = Some(Duration::from_millis(time)),
            MappingDelay::Uniform(least, most) => {
                let [least, most] = [least, most].map(Duration::from_millis);
                delays.random = Some(Delay::Uniform(least, most));
            }
            MappingDelay::LogNormal(median, sigma, most) => {
                let time = |milliseconds: f64| Duration::from_secs_f64(milliseconds / 1_000.0);
                delays.random = Some(Delay::LogNormal {
                    median: time(median),
                    sigma,
                    most: most.map(time),
                });
            }
        }
    }
    Ok(delays)
}

impl AdminOfMock {
    /// The settings: proxies pass on, and responses may be delayed.
    pub(super) fn settings(&self) -> AdminResponse {
        let delays = self.shared.delays();
        let milliseconds = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let distribution = delays.random.map(|delay| match delay {
            Delay::Fixed(time) => json!({ "type": "fixed", "milliseconds": milliseconds(time) }),
            Delay::Uniform(least, most) => json!({
                "type": "uniform", "lower": milliseconds(least), "upper": milliseconds(most),
            }),
            Delay::LogNormal {
                median,
                sigma,
                most,
            } => {
                let median = median.as_secs_f64() * 1_000.0;
                let mut shown = json!({ "type": "lognormal", "median": median, "sigma": sigma });
                if let Some(most) = most {
                    shown["maxValue"] = json!(most.as_secs_f64() * 1_000.0);
                }
                shown
            }
        });
        let document = json!({ "settings": {
            "fixedDelay": delays.fixed.map(milliseconds),
            "delayDistribution": distribution,
            "extended": handlebars::settings(),
            "proxyPassThrough": true,
        } });
        AdminResponse::json(StatusCode::OK, document)
    }

    pub(super) fn put_settings(&self, call: &Call) -> Result<AdminResponse, AdminResponse> {
        let mut settings = json_of(call)?;
        // As they are shown, or without what is around them.
        if let Some(inner) = settings.get_mut("settings") {
            settings = inner.take();
        }
        self.shared.set_delays(delays_of(&settings)?);
        Ok(done())
    }
}

pub(super) fn version() -> AdminResponse {
    AdminResponse::json(StatusCode::OK, json!({ "version": VERSION }))
}
