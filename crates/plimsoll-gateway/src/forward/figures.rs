//! Counters of routes with `proxy`, for `/metrics` and the admin port.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Instant;

use plimsoll_model::MetricsText;
use plimsoll_server::{Counters, Figures};

use super::ForwardPlan;
use crate::metric_names::METRICS;
use crate::sampler::Sampled;
use crate::upstream::{BOUNDS, DurationCounts, Durations, History, Recent, Sample};

/// The routes of an engine that forward, by name; outlives reloads.
#[derive(Debug, Default)]
pub(crate) struct RouteFigures(Mutex<BTreeMap<String, WatchedRoute>>);

/// A route with `proxy`, for the admin page.
#[derive(Debug)]
struct WatchedRoute {
    /// As long as a worker uses it.
    plan: Weak<ForwardPlan>,
    /// Its destination.
    targets: Vec<String>,
    history: History,
    /// Responses by class: 1xx to 5xx, and others.
    responses: [u64; 6],
    /// Those of each worker.
    durations: Vec<Arc<Durations>>,
    /// Those of workers of earlier configurations.
    ended: DurationCounts,
}

impl WatchedRoute {
    /// Durations of one more worker.
    fn worker(&mut self) -> Arc<Durations> {
        let Self {
            durations, ended, ..
        } = self;
        durations.retain(|of_worker| {
            let is_used = Arc::strong_count(of_worker) > 1;
            if !is_used {
                ended.add(&of_worker.counts());
            }
            is_used
        });
        let new = Arc::<Durations>::default();
        durations.push(Arc::clone(&new));
        new
    }

    fn durations(&self) -> DurationCounts {
        let mut sum = self.ended;
        for of_worker in &self.durations {
            sum.add(&of_worker.counts());
        }
        sum
    }
}

/// A route as it is now.
#[derive(Debug)]
pub(crate) struct RouteStatus {
    pub(crate) name: String,
    pub(crate) targets: Vec<String>,
    pub(crate) responses: [u64; 6],
    pub(crate) recent: Recent,
}

impl RouteFigures {
    /// Shows a route as long as its plan is in use; returns what one worker counts of it.
    ///
    /// - `targets`: where its requests go, for people.
    pub(crate) fn add_route(
        &self,
        name: &str,
        plan: &Arc<ForwardPlan>,
        targets: Vec<String>,
    ) -> Arc<Durations> {
        let mut routes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        routes.retain(|_, route| route.plan.strong_count() > 0);
        let plan = Arc::downgrade(plan);
        let route = match routes.entry(name.to_owned()) {
            Entry::Occupied(known) => {
                let known = known.into_mut();
                (known.plan, known.targets) = (plan, targets);
                known
            }
            Entry::Vacant(free) => free.insert(WatchedRoute {
                plan,
                targets,
                history: History::default(),
                responses: [0; 6],
                durations: Vec::new(),
                ended: DurationCounts::default(),
            }),
        };
        route.worker()
    }

    /// Every route in use with `proxy`, by name.
    pub(crate) fn routes(&self) -> Vec<RouteStatus> {
        let routes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let in_use = routes.iter().filter(|(_, it)| it.plan.strong_count() > 0);
        in_use
            .map(|(name, route)| RouteStatus {
                name: name.clone(),
                targets: route.targets.clone(),
                responses: route.responses,
                recent: route.history.recent(),
            })
            .collect()
    }

    /// How long responses of every route took, by its name.
    fn route_durations(&self) -> Vec<(String, DurationCounts)> {
        let routes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let in_use = routes.iter().filter(|(_, it)| it.plan.strong_count() > 0);
        in_use
            .map(|(name, route)| (name.clone(), route.durations()))
            .collect()
    }
}

impl Sampled for RouteFigures {
    fn sample(&self, counters: &Counters, now: Instant) {
        let counted = counters.snapshot().routes;
        let mut routes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for (name, responses) in &counted {
            let Some(route) = routes.get_mut(name) else {
                continue;
            };
            route.responses = *responses;
            route.history.push(Sample {
                at: now,
                requests: responses.iter().sum(),
                failed: responses[4],
                latencies: [0; BOUNDS.len() + 1],
            });
        }
    }
}

impl Figures for RouteFigures {
    fn show(&self, _prefix: Option<&str>, text: &mut MetricsText) {
        let routes = self.route_durations();
        if routes.is_empty() {
            return;
        }
        let name = format!("{METRICS}_route_seconds");
        let help = "Time from a request to the head of its response, over all attempts";
        text.family(&name, "histogram", help);
        for (route, durations) in routes {
            durations.show(&name, &[("route", &route)], text);
        }
    }
}
