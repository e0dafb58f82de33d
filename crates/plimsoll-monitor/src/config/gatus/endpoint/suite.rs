//! `suites`: endpoints that are checked one after the other as one monitor.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_formats::yaml::Node;
use serde_json::{Map, Value};

use super::{Endpoints, add_secrets, body, conditions, http_options, names, plan, ui};
use crate::config::gatus::alerting::Thresholds;
use crate::config::{MonitorPlan, What};
use crate::probe::reading::Expectation;
use crate::probe::{
    FilledRequest, GatusCondition, KnownSecrets, Probe, StepProbe, SuiteContext, SuiteProbe,
    SuiteStep, has_places,
};
use crate::schedule::{CatchUp, Timing};
use crate::yaml::block::Block;

/// Between two runs of a suite that has no `interval`.
const INTERVAL: Duration = Duration::from_mins(10);

/// How long a suite may take that has no `timeout`.
const TIMEOUT: Duration = Duration::from_mins(5);

/// Keys of endpoints that a suite does not look at, as in Gatus.
const WITHOUT_EFFECT: [&str; 4] = ["enabled", "interval", "group", "extra-labels"];

impl Endpoints {
    pub(in crate::config::gatus) fn compile_suite(&mut self, block: &Block) -> Option<MonitorPlan> {
        let enabled = block.boolean("enabled").unwrap_or(true);
        let (name, group) = names(block);
        let interval = block.duration("interval").unwrap_or(INTERVAL);
        let timeout = block.duration("timeout").unwrap_or(TIMEOUT);
        let context = match block.node("context").map(Node::to_json) {
            None => Map::new(),
            Some(Value::Object(values)) => values,
            Some(_) => {
                block.wrong("context", "must be a map of values", None);
                Map::new()
            }
        };
        let endpoints = block.blocks("endpoints");
        block.finish();
        if endpoints.is_empty() {
            let hint = "write the endpoints that are checked one after the other";
            block.wrong("endpoints", "there are none", Some(hint));
        }
        let mut plan = plan(&name, &group, Thresholds::default(), Vec::new());
        let mut secrets = KnownSecrets::default();
        let mut steps = Vec::new();
        let mut known = HashSet::new();
        let mut thresholds: Option<Thresholds> = None;
        for endpoint in &endpoints {
            let has_alerts = !endpoint.list("alerts").is_empty();
            let given = self.alerting.thresholds(endpoint);
            if has_alerts && thresholds.is_none_or(|known| given.failures < known.failures) {
                thresholds = Some(given);
            }
            add_secrets(endpoint, &mut secrets);
            if enabled {
                self.alerting
                    .route_suite(endpoint, &plan.key, (&name, &group));
            }
            let Some(step) = self.step(endpoint, &group) else {
                continue;
            };
            if !known.insert(step.name.clone()) {
                let message = format!("two endpoints of this suite have the name `{}`", step.name);
                endpoint.wrong("name", &message, Some("give each its own name"));
            }
            steps.push(step);
        }
        if !enabled {
            return None;
        }
        if let Some(thresholds) = thresholds {
            plan.policy.confirm = thresholds.failures;
            plan.policy.recover = thresholds.successes;
        }
        let secrets = Arc::new(secrets);
        let texts = steps.iter().flat_map(SuiteStep::texts).collect();
        let probe = SuiteProbe {
            steps,
            context: SuiteContext::new(context),
            timeout,
            secrets: Arc::clone(&secrets),
        };
        probe.kind().clone_into(&mut plan.kind);
        plan.what = What::Probe(Arc::new(probe));
        plan.secrets = secrets;
        plan.expectation = Expectation::OfProbe { conditions: texts };
        plan.timing = Some(Timing {
            interval,
            jitter: 0.0,
            catch_up: CatchUp::Once,
        });
        plan.policy.silent_after = interval * 3 + timeout + Duration::from_mins(1);
        Some(plan)
    }

    fn step(&mut self, block: &Block, group: &str) -> Option<SuiteStep> {
        let name = block.text("name").unwrap_or_default();
        if name.is_empty() {
            block.wrong("name", "is missing", None);
        }
        let url = block.text("url");
        if url.is_none() {
            let hint = "write what is checked, such as https://example.org";
            block.wrong("url", "is missing", Some(hint));
        }
        let url = url?;
        let conditions = conditions(block);
        let always_runs = block.boolean("always-run").unwrap_or(false);
        let store = block.texts("store");
        for (key, _) in &store {
            let is_known = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
            if key.is_empty() || !key.bytes().all(is_known) {
                let hint = "use letters, digits, hyphens and underscores";
                let message = format!("`{key}` cannot be used as [CONTEXT].{key}");
                block.wrong("store", &message, Some(hint));
            }
        }
        let (shows, _) = ui(block);
        for key in WITHOUT_EFFECT {
            if block.node(key).is_some() {
                block.warn(key, "has no effect within a suite");
            }
        }
        if block.node("maintenance-windows").is_some() {
            let message = "has no effect within a suite; write `maintenance` for all, or keep Gatus for this suite";
            block.warn("maintenance-windows", message);
        }
        let keeps_body = conditions.iter().any(GatusCondition::needs_body)
            || store
                .iter()
                .any(|(_, place)| place.to_ascii_uppercase().contains("[BODY]"));
        let needs_domain = conditions.iter().any(GatusCondition::needs_domain);
        let fields = block.texts("headers");
        let has_places = has_places(&url)
            || fields.iter().any(|(_, value)| has_places(value))
            || block.text("body").is_some_and(|body| has_places(&body));
        let is_http = url.starts_with("http://") || url.starts_with("https://");
        let is_web = is_http || (url.starts_with("[CONTEXT].") && !url.contains("://"));
        let (does, leaves_failures) = if is_web && block.node("dns").is_none() && !needs_domain {
            let client = self.client(block);
            let method = block.text("method").unwrap_or_else(|| "GET".to_owned());
            let options = http_options(block, &url, &client, (method, fields), keeps_body);
            let request = FilledRequest {
                options,
                body: body(block, &name, group, &url),
                is_graphql: block.boolean("graphql").unwrap_or(false),
                reach: self.reach(block, client, "http/1.1")?,
            };
            if !has_places && let Err(problem) = request.options_hold() {
                block.wrong("url", &problem.to_string(), None);
            }
            (StepProbe::Filled(Box::new(request)), false)
        } else {
            if has_places {
                let hint = "write the value itself here, or an http:// or https:// URL";
                block.wrong(
                    "url",
                    "[CONTEXT] is filled in HTTP requests only",
                    Some(hint),
                );
                return None;
            }
            let (probe, leaves) = self.whole_probe(block, &name, group, &url, &conditions)?;
            (StepProbe::Fixed(probe), leaves)
        };
        block.finish();
        Some(SuiteStep {
            name,
            does,
            conditions,
            leaves_failures,
            shows,
            store,
            always_runs,
        })
    }
}
