//! k6's REST API (`--address`) without its server: answers requests about a run that is under way, stops it, and starts one that
//! is paused.
//!
//! Metrics are those of the last second. `setup()` and `teardown()` run at the start and at the end only.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use percent_encoding::percent_decode_str;
use plimsoll_load::scenario::{Sink, Sinks};
use serde_json::{Map, Value, json};

use crate::metrics::TrendStat;
use crate::metrics::checks::Group;
use crate::metrics::thresholds::{Thresholds, per_second};
use crate::summary::{id, whole};
use crate::user::RunState;

/// Why a run is aborted.
pub(super) const STOPPED: &str = "stopped by the REST API";

/// The figures of trends in the API, whatever `summaryTrendStats` says.
const TREND_FIGURES: [&str; 6] = ["avg", "max", "med", "min", "p(90)", "p(95)"];

/// Observes and controls a run from other threads.
#[derive(Clone, Default)]
pub struct RunControl(Arc<Control>);

#[derive(Default)]
struct Control {
    /// Absent until the options of the script are known.
    run: OnceLock<Arc<RunState>>,
    phase: AtomicU8,
    is_paused: AtomicBool,
    setup: Mutex<Option<Value>>,
    metrics: Mutex<Vec<MetricStatus>>,
}

impl std::fmt::Debug for RunControl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunControl").finish_non_exhaustive()
    }
}

/// The phases of a run with k6's numbers; the first one is 0, and those that are over at once are left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Paused = 4,
    Setup = 6,
    Running = 7,
    Teardown = 8,
    Ended = 9,
}

/// A metric or sub-metric.
struct MetricStatus {
    name: String,
    attributes: Value,
    is_breached: bool,
}

/// The response to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControlResponse {
    /// Its status.
    pub status: u16,
    /// The value of `content-type`.
    pub content_type: &'static str,
    /// Its content.
    pub body: String,
}

impl ControlResponse {
    fn json(status: u16, value: &Value) -> Self {
        Self {
            status,
            content_type: "application/json; charset=utf-8",
            body: value.to_string(),
        }
    }

    fn text(status: u16, text: &str) -> Self {
        Self {
            status,
            content_type: "text/plain; charset=utf-8",
            body: text.to_owned(),
        }
    }

    fn data(value: &Value) -> Self {
        Self::json(200, &json!({ "data": value }))
    }

    fn error(status: u16, title: &str, detail: &str) -> Self {
        let error = json!({ "status": status.to_string(), "title": title, "detail": detail });
        Self::json(status, &json!({ "errors": [error] }))
    }
}

impl RunControl {
    /// Answers a request of the REST API.
    ///
    /// - `path`: without the query.
    pub fn respond(&self, method: &str, path: &str, body: &[u8]) -> ControlResponse {
        let Some(path) = path.strip_prefix("/v1/") else {
            // Where k6 tells whether it is up.
            return ControlResponse::text(200, "ok");
        };
        // Names of sub-metrics have braces, which clients escape.
        let path = percent_decode_str(path).decode_utf8_lossy();
        let path = path.strip_suffix('/').unwrap_or(&path);
        let (resource, id) = match path.split_once('/') {
            Some((resource, id)) => (resource, Some(id)),
            None => (path, None),
        };
        match (method, resource, id) {
            ("GET", "status", None) => ControlResponse::data(&self.status()),
            ("PATCH", "status", None) => self.change(body),
            ("GET", "metrics", None) => {
                let metrics = lock(&self.0.metrics);
                ControlResponse::data(&metrics.iter().map(MetricStatus::data).collect())
            }
            ("GET", "metrics", Some(id)) => {
                let metrics = lock(&self.0.metrics);
                let found = metrics.iter().find(|metric| metric.name == id);
                found.map_or_else(
                    || ControlResponse::error(404, "Not Found", "no metric has that id"),
                    |metric| ControlResponse::data(&metric.data()),
                )
            }
            ("GET", "groups", None) => ControlResponse::data(&self.groups().into()),
            ("GET", "groups", Some(id)) => {
                let found = self.groups().into_iter().find(|group| group["id"] == id);
                found.map_or_else(
                    || ControlResponse::error(404, "Not Found", "no group has that id"),
                    |group| ControlResponse::data(&group),
                )
            }
            ("GET", "setup", None) => self.setup_response(),
            ("PUT", "setup", None) => self.set_setup(body),
            ("POST", "setup" | "teardown", None) => ControlResponse::error(
                501,
                "Not Implemented",
                "plimsoll runs setup() at the start and teardown() at the end only",
            ),
            (_, "status" | "metrics" | "groups" | "setup" | "teardown", _) => {
                ControlResponse::text(405, "")
            }
            _ => ControlResponse::text(404, "404 page not found\n"),
        }
    }

    /// - `is_paused`: whether the run waits for a client.
    pub(super) fn attach(&self, run: &Arc<RunState>, is_paused: bool) {
        self.0.is_paused.store(is_paused, Ordering::Relaxed);
        // A control belongs to one run.
        self.0.run.set(Arc::clone(run)).ok();
    }

    pub(super) fn enter(&self, phase: Phase) {
        self.0.phase.store(phase as u8, Ordering::Relaxed);
    }

    pub(super) fn is_paused(&self) -> bool {
        self.0.is_paused.load(Ordering::Relaxed)
    }

    /// The data of iterations as JSON, as a client has set it.
    pub(super) fn setup_data(&self) -> Option<Arc<str>> {
        let data = lock(&self.0.setup);
        data.as_ref().map(|data| Arc::from(data.to_string()))
    }

    /// - `data`: the result of `setup()` as JSON.
    pub(super) fn keep_setup_data(&self, data: &str) {
        *lock(&self.0.setup) = serde_json::from_str(data).ok();
    }

    /// Keeps the figures of metrics.
    pub(super) fn observe(&self, sinks: &Sinks, thresholds: &Thresholds, took: Duration) {
        let mut all = Vec::new();
        for metric in sinks.registry().metrics() {
            let sub_metrics = metric.sub_metrics.iter();
            let sub_metrics = sub_metrics.map(|sub| (&sub.name, sub.series));
            for (name, series) in std::iter::once((&metric.name, metric.series)).chain(sub_metrics)
            {
                let judged = thresholds.judged.iter();
                let judged = judged.clone().find(|judged| *judged.metric == **name);
                let none = Sink::for_metric(&metric);
                let sink = match (sinks.series(series), judged) {
                    (Some(sink), _) => sink,
                    (None, Some(_)) => &none,
                    (None, None) => continue,
                };
                let is_breached = judged.is_some_and(|judged| {
                    let mut thresholds = judged.thresholds.iter();
                    thresholds.any(|threshold| !threshold.is_met)
                });
                all.push(MetricStatus {
                    name: name.to_string(),
                    attributes: json!({
                        "type": metric.kind.name(),
                        "contains": metric.contains.name(),
                        "tainted": judged.map(|_| is_breached),
                        "sample": sample(sink, took),
                    }),
                    is_breached,
                });
            }
        }
        *lock(&self.0.metrics) = all;
    }

    fn status(&self) -> Value {
        let run = self.0.run.get();
        let phase = self.0.phase.load(Ordering::Relaxed);
        let is_running = (Phase::Setup as u8..Phase::Ended as u8).contains(&phase);
        let is_tainted = lock(&self.0.metrics).iter().any(|it| it.is_breached);
        json!({
            "type": "status",
            "id": "default",
            "attributes": {
                "status": phase,
                "paused": self.is_paused(),
                "vus": run.map_or(0, |run| run.progress.active()),
                "vus-max": run.map_or(0, |run| run.progress.initialised()),
                "stopped": run.is_some_and(|run| run.abort.is_aborted()),
                "running": is_running,
                "tainted": is_tainted,
            },
        })
    }

    /// Changes the status.
    fn change(&self, body: &[u8]) -> ControlResponse {
        let given: Value = match serde_json::from_slice(body) {
            Ok(given) => given,
            Err(error) => return ControlResponse::error(400, "Invalid data", &error.to_string()),
        };
        let given = &given["data"]["attributes"];
        let Some(run) = self.0.run.get() else {
            return ControlResponse::error(500, "Execution error", "the script is not loaded yet");
        };
        if given["stopped"] == true {
            run.abort.abort(STOPPED);
            return ControlResponse::data(&self.status());
        }
        if let Some(pause) = given["paused"].as_bool() {
            let refusal = match (pause, self.is_paused()) {
                (true, true) => Some("execution is already paused"),
                (true, false) => Some("executors cannot be paused after their start"),
                (false, true) => None,
                (false, false) => Some("execution is not paused"),
            };
            if let Some(refusal) = refusal {
                return ControlResponse::error(500, "Pause error", refusal);
            }
            self.0.is_paused.store(false, Ordering::Relaxed);
        }
        if !given["vus"].is_null() || !given["vus-max"].is_null() {
            let refusal = "the number of virtual users cannot be changed during a run";
            return ControlResponse::error(500, "Execution config error", refusal);
        }
        ControlResponse::data(&self.status())
    }

    fn setup_response(&self) -> ControlResponse {
        let data = lock(&self.0.setup);
        let attributes = match &*data {
            Some(data) => json!({ "data": data }),
            None => json!({}),
        };
        ControlResponse::data(
            &json!({ "type": "setupData", "id": "default", "attributes": attributes }),
        )
    }

    fn set_setup(&self, body: &[u8]) -> ControlResponse {
        if !self.is_paused() {
            let refusal = "the data can be set while the run is paused only";
            return ControlResponse::error(500, "Execution error", refusal);
        }
        let data = if body.is_empty() {
            None
        } else {
            match serde_json::from_slice(body) {
                Ok(data) => Some(data),
                Err(error) => {
                    let title = "Error parsing request body";
                    return ControlResponse::error(400, title, &error.to_string());
                }
            }
        };
        *lock(&self.0.setup) = data;
        self.setup_response()
    }

    /// Every group, the root first.
    fn groups(&self) -> Vec<Value> {
        let mut all = Vec::new();
        if let Some(run) = self.0.run.get() {
            add_group(&run.checks.root(), None, &mut all);
        }
        all
    }
}

impl MetricStatus {
    fn data(&self) -> Value {
        json!({ "type": "metrics", "id": self.name, "attributes": self.attributes })
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn sample(sink: &Sink, took: Duration) -> Value {
    match sink {
        Sink::Counter(sum) => json!({ "count": whole(*sum), "rate": per_second(*sum, took) }),
        Sink::Gauge(gauge) => json!({ "value": whole(gauge.value) }),
        Sink::Rate(rate) => json!({ "rate": rate.rate() }),
        Sink::Trend(trend) => {
            let figures = TREND_FIGURES.iter().filter_map(|name| {
                let value = TrendStat::parse(name)?.value_in(trend);
                Some(((*name).to_owned(), whole(value)))
            });
            Value::Object(figures.collect::<Map<_, _>>())
        }
    }
}

fn add_group(group: &Group, parent: Option<&str>, all: &mut Vec<Value>) {
    let own = id(&group.path);
    let reference = |id: &str| json!({ "type": "groups", "id": id });
    let checks: Vec<_> = group
        .checks
        .iter()
        .map(|check| {
            json!({
                "id": id(&check.path),
                "path": check.path,
                "name": check.name,
                "passes": check.passes(),
                "fails": check.fails(),
            })
        })
        .collect();
    let inner: Vec<_> = group
        .groups
        .iter()
        .map(|inner| reference(&id(&inner.path)))
        .collect();
    all.push(json!({
        "type": "groups",
        "id": own,
        "attributes": {
            "path": group.path,
            "name": group.name,
            "checks": if checks.is_empty() { Value::Null } else { checks.into() },
        },
        "relationships": {
            "groups": { "data": inner },
            "parent": { "data": parent.map(reference) },
        },
    }));
    for inner in &group.groups {
        add_group(inner, Some(&own), all);
    }
}
