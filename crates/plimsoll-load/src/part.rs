//! A run that several processes make together: each makes the part of some workers.
//!
//! The workers of all processes are numbered through. A worker makes the connections, arrivals, requests and rows of its number
//! among all of them, as it would in one process with as many workers. So the parts together are the run that one machine would
//! make: no arrival and no row is made twice, ramps and rates are exact in sum, and arrivals of different parts are interleaved.
//!
//! [`run_part`] makes a part and hands out what each second counted; [`Union`](crate::Union) merges the parts. How figures travel
//! from one to the other is not decided here.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use plimsoll_model::{Clock as _, Cost, CpuTime, Saturation, Stalls};
use plimsoll_wire::SystemClock;

use crate::conditions::{Before, RunFacts};
use crate::plan::{Pacing, RunPlan};
use crate::run::collector::Collector;
use crate::run::costs::OpenSources;
use crate::run::crew::Crew;
use crate::run::progress::Interrupt;
use crate::run::{EndedSecond, RunError, costs_of, empty_interval, follow, saturation};
use crate::schedule::Share;
use crate::worker::connections_of;
use crate::worker::recorder::Interval;
use crate::worker::thread_share::ThreadShare;

/// Workers of a run that one process makes: `workers` of them from number `first` on, of `of` in all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunPart {
    /// Number of the first one, from 0.
    pub first: usize,
    /// At least one.
    pub workers: usize,
    /// Workers of all parts; no more than the connections of the run.
    pub of: usize,
}

impl RunPart {
    /// All workers of `plan`.
    pub fn whole(plan: &RunPlan) -> Self {
        Self {
            first: 0,
            workers: plan.workers,
            of: plan.workers,
        }
    }

    /// The share of a worker of this part.
    ///
    /// - `number`: among the workers of the part.
    pub(crate) fn share(self, number: usize) -> Share {
        Share {
            index: u32::try_from(self.first + number).expect("there are few workers"),
            of: u32::try_from(self.of).expect("there are few workers"),
        }
    }

    /// Connections of the part.
    pub fn connections(self, plan: &RunPlan) -> usize {
        let workers = 0..self.workers;
        let connections =
            workers.map(|number| connections_of(plan.connections, self.share(number)));
        connections.sum()
    }
}

/// What one part counted in a second.
#[derive(Debug)]
pub struct PartSecond<'a> {
    /// Its end, since the start of the run.
    pub at: Duration,
    /// Whether nothing was begun in it any more.
    pub grace: bool,
    /// No other second follows.
    pub is_last: bool,
    /// The counts.
    pub interval: &'a Interval,
}

/// How a part is started, followed and ended.
pub struct PartHooks<'a> {
    /// Ends the part early.
    pub interrupt: Arc<Interrupt>,
    /// Called once, when every worker is ready. Returns the start that all parts have agreed on, which may lie ahead; `None` if
    /// there will be none.
    pub start: &'a mut dyn FnMut() -> Option<Instant>,
    /// Called once a second.
    pub on_second: &'a mut dyn FnMut(PartSecond<'_>),
}

impl std::fmt::Debug for PartHooks<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PartHooks")
            .field("interrupt", &self.interrupt)
            .finish_non_exhaustive()
    }
}

/// What a part found beside the counts of its seconds.
#[derive(Debug, Clone)]
pub struct PartReport {
    /// Everything that its seconds counted.
    pub total: Interval,
    /// When its last worker began nothing more, since the start.
    pub stopped: Duration,
    /// How long after the agreed start its workers were started.
    pub late: Duration,
    /// Processor time of the process within the measured window, where the platform reports it.
    pub cpu: Option<CpuTime>,
    /// Largest resident memory seen, in bytes, where the platform reports it.
    pub peak_memory_bytes: Option<u64>,
    /// Busiest worker: share of one core in percent.
    pub busiest_worker_percent: f64,
    /// Times at which a worker stood still, of the worst one.
    pub stalls: Stalls,
    /// Time for which a worker was ready to run and no core ran it, of the worst one.
    pub run_delay: Option<Duration>,
    /// Time for which a limit on processor time stopped the process.
    pub throttled: Option<Duration>,
    /// The fewest streams that a server allows at a time, where that is fewer than configured.
    pub stream_limit: Option<usize>,
    /// Responses behind which more bytes came than they announce.
    pub surplus: u64,
    /// Set when the part was limited by its own machine.
    pub saturated: Option<Saturation>,
    /// Doubts about the machine, in plain sentences.
    pub warnings: Vec<String>,
}

/// Makes a part of the run that `plan` describes; blocks until it is over. `None` if it was not started.
///
/// - `facts`: of the machine of the part.
pub fn run_part(
    plan: &RunPlan,
    part: RunPart,
    facts: RunFacts,
    hooks: &mut PartHooks<'_>,
) -> Result<Option<PartReport>, RunError> {
    let before = Before::observe(SystemClock.wall());
    let crew = Crew::hire(plan, part, &hooks.interrupt)?;
    let Some(start) = (hooks.start)() else {
        // Workers that wait for the start end without one.
        return match crew.dismiss() {
            Ok(_) | Err(RunError::Stopped) => Ok(None),
            Err(error) => Err(error),
        };
    };
    let mut costs = costs_of(plan, &crew, None, OpenSources::default(), start)?;
    wait_until(start);
    crew.go(start);
    let late = SystemClock.now().saturating_duration_since(start);
    let mut collector = Collector::new(empty_interval(plan), part.workers, plan.warm_up);
    let mut on_second = |tick: plimsoll_model::Tick, second: EndedSecond<'_>| {
        (hooks.on_second)(PartSecond {
            at: tick.at,
            grace: tick.grace,
            is_last: second.is_last,
            interval: second.interval,
        });
    };
    follow(
        &crew,
        &mut costs,
        &hooks.interrupt,
        &mut collector,
        &mut on_second,
    );
    let reports = crew.dismiss()?;
    let observed = costs.finish();
    let worst = reports.iter().map(|report| report.thread);
    let worst = worst.fold(ThreadShare::default(), ThreadShare::worse);
    let total = collector.finish();
    let is_open = matches!(plan.pacing, Pacing::Open { .. });
    let stopped = reports.iter().map(|report| report.stopped).max();
    Ok(Some(PartReport {
        stopped: stopped.map_or(Duration::ZERO, |at| at.saturating_duration_since(start)),
        late,
        cpu: observed
            .generator
            .map(|(first, last)| Cost::between(&first, &last).cpu),
        peak_memory_bytes: observed.samples.generator_peak_memory_bytes,
        busiest_worker_percent: worst.cpu_percent,
        stalls: worst.stalls,
        run_delay: worst.run_delay,
        throttled: observed.throttled,
        stream_limit: reports
            .iter()
            .filter_map(|report| report.stream_limit)
            .min(),
        surplus: reports.iter().map(|report| report.surplus).sum(),
        saturated: saturation::judge(
            worst.cpu_percent,
            &total.lag,
            total.honest_latency().observed(),
            is_open,
        ),
        warnings: before.after(facts).warnings,
        total,
    }))
}

fn wait_until(start: Instant) {
    loop {
        let left = start.saturating_duration_since(SystemClock.now());
        if left.is_zero() {
            return;
        }
        thread::park_timeout(left);
    }
}
