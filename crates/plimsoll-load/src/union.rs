//! The parts of a run, merged: what one process would have found that made them all.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use plimsoll_model::{Clock, CpuTime, Moment, ResourceSample, RunSummary, Threshold};
use plimsoll_wire::SystemClock;

use crate::conditions::{Before, RunFacts};
use crate::part::PartReport;
use crate::plan::RunPlan;
use crate::rows::Rows;
use crate::run::collector::{Collector, Published, Second};
use crate::run::costs::{AGENT_EVERY, Observed};
use crate::run::hazards;
use crate::run::judge::Judge;
use crate::run::{Measured, Standing, empty_interval, standing, summarise, warn, window_until};
use crate::worker::recorder::Interval;
use crate::worker::thread_share::ThreadShare;
use plimsoll_observe::{NamedTarget, SampleSource, Sampler, Samples};

/// Merges the seconds of parts as they arrive. Counters are added and histograms merged, so every figure is that of one
/// process; memory does not grow with the length of the run, but for one row a second, up to those of a day.
#[derive(Debug)]
pub struct Union {
    plan: RunPlan,
    before: Before,
    collector: Collector,
    judge: Judge,
    ticks: Rows,
    observers: Observers,
}

/// A second of one part.
#[derive(Debug)]
pub struct UnionSecond {
    /// Position of the part.
    pub part: usize,
    /// Its end, since the start of the run.
    pub at: Duration,
    /// Whether nothing was begun in it any more.
    pub grace: bool,
    /// No other second of this part follows.
    pub is_last: bool,
    /// The counts.
    pub interval: Interval,
}

/// How a run of several parts ended.
#[derive(Debug, Default)]
pub struct UnionEnd {
    /// Facts that the caller knows.
    pub facts: RunFacts,
    /// Whether it ended before its time.
    pub is_early: bool,
    /// Whether the user ended it.
    pub is_interrupted: bool,
}

impl Union {
    /// - `plan`: with the workers of all parts.
    /// - `parts`: how many there are.
    /// - `observed`: servers that are observed beside the run, by name; the first one is its target.
    /// - `started`: when the run starts.
    pub fn new(
        plan: RunPlan,
        parts: usize,
        thresholds: &[Threshold],
        observed: Vec<(String, Box<dyn SampleSource>)>,
        started: SystemTime,
    ) -> Self {
        let end = plan.stop.duration.map(|duration| plan.warm_up + duration);
        let names = observed.iter().map(|(name, _)| name.clone()).collect();
        Self {
            before: Before::observe(started),
            collector: Collector::new(empty_interval(&plan), parts, plan.warm_up),
            judge: Judge::new(thresholds, names, plan.warm_up, end),
            ticks: Rows::new(),
            observers: Observers::start(&plan, observed, started),
            plan,
        }
    }

    /// An interval of the kind that parts count.
    pub fn empty_interval(&self) -> Interval {
        empty_interval(&self.plan)
    }

    /// Takes a second of a part; each part hands over its seconds in their order. Returns whether a threshold ends the run.
    ///
    /// - `on_tick`: called for each second that every part has handed over.
    pub fn merge_second(
        &mut self,
        second: UnionSecond,
        on_tick: &mut dyn FnMut(&Standing<'_>),
    ) -> bool {
        let published = Published {
            worker: u32::try_from(second.part).expect("there are few parts"),
            at: second.at,
            is_last: second.is_last,
            grace: second.grace,
            interval: Box::new(second.interval),
        };
        let (_, complete) = self.collector.collect_published(published);
        self.seconds(complete, on_tick)
    }

    /// Waits for a part no longer. What it has handed over stays.
    pub fn give_up(&mut self, part: usize, on_tick: &mut dyn FnMut(&Standing<'_>)) -> bool {
        let complete = self.collector.give_up(part);
        self.seconds(complete, on_tick)
    }

    fn seconds(&mut self, complete: Vec<Second>, on_tick: &mut dyn FnMut(&Standing<'_>)) -> bool {
        let mut ends = false;
        for Second { tick, interval } in complete {
            let total = self.collector.total();
            let samples = self.observers.at_second(total.counts.completed_in_window);
            let first = samples.first().copied().flatten();
            ends |= self.judge.second(&tick, &interval, total, first, &samples);
            on_tick(&standing(&tick, total, first));
            self.collector.recycle(interval);
            self.ticks.push(tick);
        }
        ends
    }

    /// The summary of the run.
    ///
    /// - `reports`: the reports of the parts that finished.
    /// - `observed`: the servers that were observed, in their order.
    pub fn finish(
        self,
        reports: &[&PartReport],
        observed: &[NamedTarget],
        end: UnionEnd,
    ) -> RunSummary {
        let ticks = self.ticks.into_ticks();
        let last_tick = ticks.iter().rfind(|tick| !tick.grace);
        let stopped = reports.iter().map(|report| report.stopped).max();
        let stopped = stopped.or(last_tick.map(|tick| tick.at));
        let window = window_until(&self.plan, stopped, end.is_early || end.is_interrupted);
        let measured = Measured {
            ticks,
            window,
            worst_worker: worst_share(reports),
            observed: observed_by_parts(reports, self.observers.stop()),
            target: None,
            named: observed,
            conditions: self.before.after(end.facts),
            interrupted: end.is_interrupted,
        };
        let mut summary = summarise(&self.plan, self.collector.finish(), measured);
        attribute_to_parts(&mut summary, reports);
        summary.thresholds = self.judge.verdicts(&summary);
        let stream_limits = reports.iter().filter_map(|report| report.stream_limit);
        let surplus = reports.iter().map(|report| report.surplus).sum();
        warn(&self.plan, &mut summary, stream_limits.min(), surplus);
        summary
    }
}

/// The worst share that a worker of any part had.
pub(crate) fn worst_share(reports: &[&PartReport]) -> ThreadShare {
    let shares = reports.iter().map(|report| ThreadShare {
        cpu_percent: report.busiest_worker_percent,
        run_delay: report.run_delay,
        stalls: report.stalls,
    });
    shares.fold(ThreadShare::default(), ThreadShare::worse)
}

/// What was observed of a run that other processes made: nothing of this one is part of it.
///
/// - `named`: samples of the servers that were observed by name.
pub(crate) fn observed_by_parts(reports: &[&PartReport], named: Vec<Samples>) -> Observed {
    let peaks = reports.iter().map(|report| report.peak_memory_bytes);
    Observed {
        target: None,
        generator: None,
        throttled: longest_throttled(reports),
        samples: Samples {
            generator_peak_memory_bytes: peaks.sum(),
            ..Samples::default()
        },
        named,
    }
}

/// The longest time for which a limit on processor time stopped a part.
pub(crate) fn longest_throttled(reports: &[&PartReport]) -> Option<Duration> {
    reports.iter().filter_map(|report| report.throttled).max()
}

/// Makes the generator of a summary that of the parts.
pub(crate) fn attribute_to_parts(summary: &mut RunSummary, reports: &[&PartReport]) {
    // Neither the load nor the processor time is of this machine.
    summary.conditions.warnings = hazards::observed(&summary.observed);
    let cpu = reports.iter().filter_map(|report| report.cpu);
    summary.generator.cost.cpu = cpu.fold(CpuTime::default(), |sum, cpu| sum + cpu);
    summary.generator.cost.window = summary.window;
    // Many parts at leisure do not hide one that was the limit, and one that waited does not make a limit of all.
    summary.generator.saturated = reports.iter().find_map(|report| report.saturated);
}

/// The same moment on the clock that durations are measured by.
pub(crate) fn instant_of(time: SystemTime) -> Instant {
    let (now, wall) = (SystemClock.now(), SystemClock.wall());
    match time.duration_since(wall) {
        Ok(ahead) => now + ahead,
        Err(error) => now.checked_sub(error.duration()).unwrap_or(now),
    }
}

/// The servers that are observed beside the parts.
#[derive(Debug)]
struct Observers {
    samplers: Vec<Sampler>,
    /// Responses that the parts have handed over.
    completed: Arc<AtomicU64>,
}

impl Observers {
    /// Samples are dated from `started`, and taken when the measured window begins and ends.
    fn start(
        plan: &RunPlan,
        observed: Vec<(String, Box<dyn SampleSource>)>,
        started: SystemTime,
    ) -> Self {
        let start = instant_of(started);
        let begin = start + plan.warm_up;
        let mut due = vec![begin];
        due.extend(plan.stop.duration.map(|duration| begin + duration));
        let completed = Arc::<AtomicU64>::default();
        let samplers = observed.into_iter().map(|(_, source)| {
            let completed = Arc::clone(&completed);
            let every = plan.sample_every.max(AGENT_EVERY);
            let state = move || (completed.load(Ordering::Relaxed), Moment::default());
            Sampler::start_with_marks(Some(source), None, start, every, due.clone(), state)
        });
        Self {
            samplers: samplers.collect(),
            completed,
        }
    }

    /// The newest sample of each.
    fn at_second(&self, completed: u64) -> Vec<Option<ResourceSample>> {
        self.completed.store(completed, Ordering::Relaxed);
        self.samplers.iter().map(Sampler::take_latest).collect()
    }

    fn stop(self) -> Vec<Samples> {
        // A run that is bounded by a number of requests ends now.
        self.samplers.into_iter().map(Sampler::stop).collect()
    }
}
