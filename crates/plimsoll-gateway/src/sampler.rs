//! Once a second the counters of upstreams and routes are kept, for the rates of the admin page.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_model::Clock as _;
use plimsoll_server::{Counters, WorkerContext};
use plimsoll_wire::SystemClock;

use crate::figures::GatewayFigures;

/// Samples as long as it lives; one for an engine.
#[derive(Debug)]
pub(crate) struct Sampler;

impl Sampler {
    /// That of the engine, on its first worker, if there is an admin port to read from.
    pub(crate) fn of_worker(context: &WorkerContext) -> Option<Rc<Self>> {
        let counters = context.metrics();
        let figures = counters.figures::<GatewayFigures>();
        if context.worker() != 0 || !figures.is_watched() {
            return None;
        }
        let mut is_new = false;
        let sampler = context.state("sampler of the gateway", || {
            is_new = true;
            Self
        });
        if is_new {
            let (alive, counters) = (Rc::downgrade(&sampler), Arc::clone(counters));
            tokio::task::spawn_local(async move {
                let mut interval = tokio::time::interval(Duration::from_secs(1));
                while alive.strong_count() > 0 {
                    interval.tick().await;
                    sample(&figures, &counters);
                }
            });
        }
        Some(sampler)
    }
}

fn sample(figures: &GatewayFigures, counters: &Counters) {
    let now = SystemClock.now();
    for upstream in figures.all() {
        upstream.sample(now);
    }
    figures.sample_routes(&counters.snapshot().routes, now);
}
