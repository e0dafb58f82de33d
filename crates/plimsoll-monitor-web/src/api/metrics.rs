//! `/metrics` in the text format of Prometheus: Gatus's names for its configurations, and ours for all.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use axum::extract::State;
use plimsoll_model::MetricsText;
use plimsoll_monitor::config::Dialect;
use plimsoll_monitor::detect::status::{Health, Status};
use plimsoll_monitor::engine::View;
use plimsoll_monitor::schedule::DropReason;

use crate::answer::{Answer, ApiError, with_type};
use crate::state::Api;

/// Names of metrics; each once.
mod names {
    pub(super) const CHECKS: &str = "plimsoll_monitor_checks_total";
    pub(super) const HEALTH: &str = "plimsoll_monitor_health";
    pub(super) const DURATION: &str = "plimsoll_monitor_check_duration_seconds";
    pub(super) const CERTIFICATE: &str = "plimsoll_monitor_certificate_expires_seconds";
    pub(super) const INCIDENT: &str = "plimsoll_monitor_incident_open";
    pub(super) const STARTED: &str = "plimsoll_monitor_checks_started_total";
    pub(super) const MISSED: &str = "plimsoll_monitor_starts_missed_total";
    pub(super) const LATE: &str = "plimsoll_monitor_start_delay_seconds_total";
    pub(super) const DROPPED: &str = "plimsoll_monitor_checks_dropped_total";
    pub(super) const LOST: &str = "plimsoll_monitor_results_lost_total";
    pub(super) const DAMAGED: &str = "plimsoll_monitor_spill_files_damaged_total";
    pub(super) const AGENT_SEEN: &str = "plimsoll_monitor_agent_last_seen_seconds";
    pub(super) const AGENT_WAITING: &str = "plimsoll_monitor_agent_results_waiting";
    pub(super) const AGENT_LOST: &str = "plimsoll_monitor_agent_results_lost_total";
    pub(super) const LISTED: &str = "plimsoll_monitor_discovery_listed_seconds";
    pub(super) const DISCOVERED: &str = "plimsoll_monitor_discovery_monitors";
    pub(super) const UNRECORDED: &str = "plimsoll_monitor_changes_waiting";
}

pub(super) async fn metrics(State(api): State<Api>) -> Answer {
    let board = &api.handle.board;
    if !board.has_metrics() {
        return Err(ApiError::not_found("path"));
    }
    let views = board.views();
    let mut page = Page::default();
    if let Some(Dialect::Gatus(settings)) = board.dialect() {
        for view in &views {
            gatus(&mut page, view, &settings.extra_labels);
        }
    }
    for view in &views {
        own(&mut page, view);
    }
    let figures = &board.figures;
    let load = |figure: &std::sync::atomic::AtomicU64| figure.load(Ordering::Relaxed) as f64;
    page.add(
        names::STARTED,
        "counter",
        "Checks that were started",
        &[],
        load(&figures.started),
    );
    page.add(
        names::MISSED,
        "counter",
        "Intended starts that were missed",
        &[],
        load(&figures.missed),
    );
    let late = load(&figures.late_us) / 1e6;
    page.add(
        names::LATE,
        "counter",
        "By how much starts were late, in all",
        &[],
        late,
    );
    for (reason, count) in DropReason::ALL.into_iter().zip(figures.dropped()) {
        let labels = [("reason", reason.name())];
        page.add(
            names::DROPPED,
            "counter",
            "Checks that a gate kept from starting",
            &labels,
            count as f64,
        );
    }
    page.add(
        names::LOST,
        "counter",
        "Results and changes that the store did not take",
        &[],
        load(&figures.lost),
    );
    page.add(
        names::DAMAGED,
        "counter",
        "Files of results that waited for the store and are damaged",
        &[],
        load(&figures.damaged_files),
    );
    let waiting = load(&figures.unrecorded);
    page.add(
        names::UNRECORDED,
        "gauge",
        "Changes that wait for the store",
        &[],
        waiting,
    );
    for source in &*board.discovery() {
        let labels = [("source", source.name.as_str())];
        if let Some(listed) = source.listed {
            let help = "When the source last had a list, since 1970";
            page.add(names::LISTED, "gauge", help, &labels, listed.0 as f64 / 1e3);
        }
        let help = "Monitors of the source";
        let count = source.keys.len() as f64;
        page.add(names::DISCOVERED, "gauge", help, &labels, count);
    }
    for agent in &*board.agents() {
        let Some(heard) = board.heard(&agent.name) else {
            continue;
        };
        let labels = [
            ("region", agent.region.as_str()),
            ("agent", agent.name.as_str()),
        ];
        let seen = heard.at.0 as f64 / 1e3;
        let help = "When the agent last sent something, since 1970";
        page.add(names::AGENT_SEEN, "gauge", help, &labels, seen);
        let help = "Results that wait at the agent";
        page.add(
            names::AGENT_WAITING,
            "gauge",
            help,
            &labels,
            heard.waiting as f64,
        );
        let help = "Results that the agent gave up since its start";
        page.add(
            names::AGENT_LOST,
            "counter",
            help,
            &labels,
            heard.lost as f64,
        );
    }
    Ok(with_type(page.text(), MetricsText::MEDIA_TYPE))
}

fn own(page: &mut Page, view: &View) {
    let plan = &view.plan;
    let labels = [
        ("key", plan.key.as_str()),
        ("group", &plan.group),
        ("name", &plan.name),
        ("kind", &plan.kind),
    ];
    for (status, count) in Status::ALL.into_iter().zip(view.counters.results) {
        let labels: Vec<_> = labels
            .into_iter()
            .chain([("status", status.name())])
            .collect();
        page.add(
            names::CHECKS,
            "counter",
            "Checks by their status",
            &labels,
            count as f64,
        );
    }
    for health in Health::ALL {
        let labels: Vec<_> = labels
            .into_iter()
            .chain([("health", health.name())])
            .collect();
        let is_it = f64::from(u8::from(view.health == health));
        page.add(
            names::HEALTH,
            "gauge",
            "1 for the health that the monitor is in",
            &labels,
            is_it,
        );
    }
    let is_open = f64::from(u8::from(view.has_incident));
    page.add(
        names::INCIDENT,
        "gauge",
        "1 while an incident is open",
        &labels,
        is_open,
    );
    if let Some(last) = &view.last {
        let took = last.took.as_secs_f64();
        page.add(
            names::DURATION,
            "gauge",
            "How long the last check took",
            &labels,
            took,
        );
        if let Some(expires) = last.certificate_expires {
            let left = (expires.0 - last.at.0) as f64 / 1000.0;
            page.add(
                names::CERTIFICATE,
                "gauge",
                "Time until the certificate expires",
                &labels,
                left,
            );
        }
    }
}

/// The metrics of Gatus, with its labels.
fn gatus(page: &mut Page, view: &View, extra: &[String]) {
    let plan = &view.plan;
    let kind = match plan.kind.as_str() {
        "websocket" => "WEBSOCKET".to_owned(),
        kind => kind.to_uppercase(),
    };
    let codes: Vec<_> = view
        .counters
        .codes
        .iter()
        .map(|(code, count)| (code.to_string(), count))
        .collect();
    let mut labels = vec![
        ("key", plan.key.as_str()),
        ("group", plan.group.as_str()),
        ("name", plan.name.as_str()),
        ("type", kind.as_str()),
    ];
    for label in extra {
        labels.push((label, plan.labels.get(label).map_or("", String::as_str)));
    }
    let with = |name, value| -> Vec<(&str, &str)> {
        labels.iter().copied().chain([(name, value)]).collect()
    };
    let [up, degraded, down, error] = view.counters.results;
    for (success, count) in [("true", up + degraded), ("false", down + error)] {
        if count > 0 {
            let labels = with("success", success);
            page.add(
                "gatus_results_total",
                "counter",
                "Number of results per endpoint",
                &labels,
                count as f64,
            );
        }
    }
    for (code, count) in &codes {
        let labels = with("code", code);
        page.add(
            "gatus_results_code_total",
            "counter",
            "Total number of results by code",
            &labels,
            **count as f64,
        );
    }
    let connected = view.counters.connected as f64;
    page.add(
        "gatus_results_connected_total",
        "counter",
        "Total number of results in which a connection was successfully established",
        &labels,
        connected,
    );
    let Some(last) = &view.last else {
        return;
    };
    page.add(
        "gatus_results_duration_seconds",
        "gauge",
        "Duration of the request in seconds",
        &labels,
        last.took.as_secs_f64(),
    );
    if let Some(expires) = last.certificate_expires {
        let left = (expires.0 - last.at.0) as f64 / 1000.0;
        page.add(
            "gatus_results_certificate_expiration_seconds",
            "gauge",
            "Number of seconds until the certificate expires",
            &labels,
            left,
        );
    }
    let success = f64::from(u8::from(matches!(
        last.status,
        Status::Up | Status::Degraded
    )));
    page.add(
        "gatus_results_endpoint_success",
        "gauge",
        "Displays whether or not the endpoint was a success",
        &labels,
        success,
    );
}

/// Samples by metric, since each metric stands together.
#[derive(Debug, Default)]
pub(super) struct Page(BTreeMap<&'static str, Metric>);

#[derive(Debug)]
struct Metric {
    kind: &'static str,
    help: &'static str,
    samples: MetricsText,
}

impl Page {
    pub(super) fn add(
        &mut self,
        name: &'static str,
        kind: &'static str,
        help: &'static str,
        labels: &[(&str, &str)],
        value: f64,
    ) {
        let metric = self.0.entry(name).or_insert_with(|| Metric {
            kind,
            help,
            samples: MetricsText::default(),
        });
        metric.samples.sample(name, labels, value);
    }

    pub(super) fn text(self) -> String {
        let mut text = MetricsText::default();
        for (name, metric) in self.0 {
            text.family(name, metric.kind, metric.help);
            text.append(&metric.samples);
        }
        text.into_text()
    }
}
