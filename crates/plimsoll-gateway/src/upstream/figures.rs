//! Counters of upstreams, for `/metrics` and the admin port.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Instant;

use plimsoll_model::{Clock as _, MetricsText};
use plimsoll_server::{Counters, Figures};
use plimsoll_wire::SystemClock;

use super::{Event, ServerStatus, Timeout, UpstreamPlan, UpstreamStatus};
use crate::metric_names::METRICS;
use crate::sampler::Sampled;

/// The upstreams of an engine by their configuration; outlives reloads.
#[derive(Debug, Default)]
pub(crate) struct UpstreamFigures(Mutex<BTreeMap<String, Weak<UpstreamStatus>>>);

impl UpstreamFigures {
    /// State of an upstream that all workers share; the same after a reload that does not change it.
    pub(crate) fn upstream(&self, plan: &UpstreamPlan, now: Instant) -> Arc<UpstreamStatus> {
        let mut upstreams = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = upstreams.get(plan.identity()).and_then(Weak::upgrade);
        if let Some(known) = known {
            return known;
        }
        upstreams.retain(|_, status| status.strong_count() > 0);
        let status = Arc::new(UpstreamStatus::new(plan, now));
        upstreams.insert(plan.identity().to_owned(), Arc::downgrade(&status));
        status
    }

    /// Every upstream in use, by name.
    pub(crate) fn all(&self) -> Vec<Arc<UpstreamStatus>> {
        let upstreams = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        upstreams.values().filter_map(Weak::upgrade).collect()
    }
}

impl Sampled for UpstreamFigures {
    fn sample(&self, _counters: &Counters, now: Instant) {
        for upstream in self.all() {
            upstream.sample(now);
        }
    }
}

impl Figures for UpstreamFigures {
    fn show(&self, _prefix: Option<&str>, text: &mut MetricsText) {
        let now = SystemClock.now();
        let upstreams: Vec<_> = self
            .all()
            .into_iter()
            .map(|status| (status.name.clone(), status.servers(now), status))
            .collect();
        if upstreams.is_empty() {
            return;
        }
        let servers: Vec<(&str, &ServerStatus)> = upstreams
            .iter()
            .flat_map(|(name, servers, _)| servers.iter().map(|server| (name.as_str(), server)))
            .collect();
        let mut gauge = |name: &str, help: &str, read: &dyn Fn(&ServerStatus) -> u64| {
            let name = format!("{METRICS}_{name}");
            text.family(&name, "gauge", help);
            for (upstream, server) in &servers {
                let labels = [("upstream", *upstream), ("server", &server.server)];
                text.sample(&name, &labels, read(server));
            }
        };
        gauge("server_up", "Whether the server gets requests", &|it| {
            u64::from(it.state == "healthy")
        });
        gauge("requests_active", "Requests in flight", &|it| it.active);
        gauge("connections", "Open connections", &|it| it.connections);
        let name = format!("{METRICS}_responses_total");
        text.family(&name, "counter", "Responses of the server by status class");
        for (upstream, server) in &servers {
            for (class, count) in ["1xx", "2xx", "3xx", "4xx", "5xx"]
                .iter()
                .zip(server.responses)
            {
                let labels = [
                    ("upstream", *upstream),
                    ("server", &server.server),
                    ("class", class),
                ];
                text.sample(&name, &labels, count);
            }
        }
        let name = format!("{METRICS}_failures_total");
        text.family(&name, "counter", "Attempts without a response");
        for (upstream, server) in &servers {
            let labels = [("upstream", *upstream), ("server", &server.server)];
            text.sample(&name, &labels, server.failures);
        }
        let name = format!("{METRICS}_response_seconds");
        text.family(&name, "histogram", "Time to the head of the response");
        for (upstream, server) in &servers {
            let labels = [("upstream", *upstream), ("server", &server.server)];
            server.durations.show(&name, &labels, text);
        }
        for event in Event::ALL {
            let (name, help) = event.metric();
            let name = format!("{METRICS}_{name}");
            text.family(&name, "counter", help);
            for (upstream, _, status) in &upstreams {
                let labels = [("upstream", upstream.as_str())];
                text.sample(&name, &labels, status.counted(event));
            }
        }
        let name = format!("{METRICS}_source_away_seconds");
        let help = "Age of the list of servers; 0 while its source answers";
        text.family(&name, "gauge", help);
        for (upstream, _, status) in &upstreams {
            if let Some(source) = status.source(now) {
                let labels = [("upstream", upstream.as_str()), ("source", source.kind)];
                text.sample(&name, &labels, source.away_seconds);
            }
        }
        let name = format!("{METRICS}_timeouts_total");
        text.family(&name, "counter", "Exchanges that a time limit ended");
        for (upstream, _, status) in &upstreams {
            for timeout in Timeout::ALL {
                let labels = [("upstream", upstream.as_str()), ("limit", timeout.name())];
                text.sample(&name, &labels, status.timed_out(timeout));
            }
        }
    }
}
