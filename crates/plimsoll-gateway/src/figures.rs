//! What the gateway counts, for `/metrics` and the admin port.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Instant;

use plimsoll_model::Clock as _;
use plimsoll_server::{Figures, MetricsText};
use plimsoll_wire::SystemClock;

use crate::upstream::{BOUNDS, ServerStatus, UpstreamPlan, UpstreamStatus};

/// The upstreams of an engine by their configuration; outlives reloads.
#[derive(Debug, Default)]
pub(crate) struct GatewayFigures {
    upstreams: Mutex<BTreeMap<String, Weak<UpstreamStatus>>>,
}

impl GatewayFigures {
    /// What all workers know of an upstream; the same for every worker, and after a reload that does not change it.
    pub(crate) fn upstream(&self, plan: &UpstreamPlan, now: Instant) -> Arc<UpstreamStatus> {
        let mut upstreams = self
            .upstreams
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
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
        let upstreams = self
            .upstreams
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        upstreams.values().filter_map(Weak::upgrade).collect()
    }
}

/// Prefix of the names.
const PREFIX: &str = "plimsoll_gateway";

impl Figures for GatewayFigures {
    fn show(&self, _prefix: Option<&str>, text: &mut MetricsText) {
        let now = SystemClock.now();
        let upstreams: Vec<_> = self
            .all()
            .into_iter()
            .map(|status| (status.name.clone(), status.servers(now), status.retries()))
            .collect();
        if upstreams.is_empty() {
            return;
        }
        let servers: Vec<(&str, &ServerStatus)> = upstreams
            .iter()
            .flat_map(|(name, servers, _)| servers.iter().map(|server| (name.as_str(), server)))
            .collect();
        let mut gauge = |name: &str, help: &str, read: &dyn Fn(&ServerStatus) -> u64| {
            let name = format!("{PREFIX}_{name}");
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
        let name = format!("{PREFIX}_responses_total");
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
        let name = format!("{PREFIX}_failures_total");
        text.family(&name, "counter", "Attempts without a response");
        for (upstream, server) in &servers {
            let labels = [("upstream", *upstream), ("server", &server.server)];
            text.sample(&name, &labels, server.failures);
        }
        let name = format!("{PREFIX}_response_seconds");
        text.family(&name, "histogram", "Time to the head of the response");
        for (upstream, server) in &servers {
            let mut sum = 0;
            for (number, count) in server.latencies.iter().enumerate() {
                sum += count;
                let bound = BOUNDS.get(number);
                let bound = bound.map_or("+Inf".to_owned(), |it| (*it as f64 / 1e6).to_string());
                let labels = [
                    ("upstream", *upstream),
                    ("server", &server.server),
                    ("le", &bound),
                ];
                text.sample(&format!("{name}_bucket"), &labels, sum);
            }
            let labels = [("upstream", *upstream), ("server", &server.server)];
            let seconds = server.latency_us_sum as f64 / 1e6;
            text.sample(&format!("{name}_sum"), &labels, seconds);
            text.sample(&format!("{name}_count"), &labels, sum);
        }
        for (name, help, read) in [
            ("retries_total", "Retries", 0),
            (
                "retries_refused_total",
                "Retries that the budget refused",
                1,
            ),
        ] {
            let name = format!("{PREFIX}_{name}");
            text.family(&name, "counter", help);
            for (upstream, _, retries) in &upstreams {
                let value = if read == 0 { retries.0 } else { retries.1 };
                text.sample(&name, &[("upstream", upstream)], value);
            }
        }
    }
}
