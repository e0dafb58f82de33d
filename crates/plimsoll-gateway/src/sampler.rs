//! Once a second counters are kept, for the rates of the admin page.

use std::fmt;
use std::rc::Rc;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use plimsoll_model::{Clock as _, MetricsText};
use plimsoll_server::{Counters, Figures, WorkerContext};
use plimsoll_wire::SystemClock;

/// Counters that keep samples of themselves.
pub(crate) trait Sampled: fmt::Debug + Send + Sync {
    /// Keeps what they are now.
    ///
    /// - `counters`: those of the engine.
    fn sample(&self, counters: &Counters, now: Instant);
}

/// The counters of an engine that are sampled: none without an admin port, where rates can be read.
#[derive(Debug, Default)]
pub(crate) struct SampledFigures(OnceLock<Vec<Arc<dyn Sampled>>>);

impl SampledFigures {
    /// These are sampled from now on.
    pub(crate) fn watch(&self, sampled: impl FnOnce() -> Vec<Arc<dyn Sampled>>) {
        self.0.get_or_init(sampled);
    }
}

impl Figures for SampledFigures {
    // Each of them is shown by itself.
    fn show(&self, _prefix: Option<&str>, _text: &mut MetricsText) {}
}

/// Samples as long as it lives; one for an engine.
#[derive(Debug)]
pub(crate) struct Sampler;

impl Sampler {
    /// That of the engine, on its first worker, if anything is sampled.
    pub(crate) fn of_worker(context: &WorkerContext) -> Option<Rc<Self>> {
        let counters = context.metrics();
        let figures = counters.figures::<SampledFigures>();
        if context.worker() != 0 || figures.0.get().is_none() {
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
                    let now = SystemClock.now();
                    for sampled in figures.0.get().into_iter().flatten() {
                        sampled.sample(&counters, now);
                    }
                }
            });
        }
        Some(sampler)
    }
}
