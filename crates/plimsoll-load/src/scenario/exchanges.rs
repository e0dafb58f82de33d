//! Exchanges of virtual users, recorded as a plain run records its own, so that both have the same result files.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use plimsoll_model::{
    Clock as _, Cost, Exchange, Histogram, LoadShape, RequestFigures, RequestNames, RunSummary,
};
use plimsoll_wire::SystemClock;

use super::part::{ExchangeSecond, FirstRequest, PartExchanges};
use crate::conditions::{Before, RunFacts};
use crate::part::PartReport;
use crate::rows::Rows;
use crate::run::collector::{Collector, Published, Second};
use crate::run::costs::{Costs, OpenSources};
use crate::run::progress::{Progress, ProgressReport};
use crate::run::{Measured, saturation, standstill, summary_of};
use crate::union::{attribute_to_parts, instant_of, observed_by_parts};
use crate::worker::recorder::Interval;
use crate::worker::thread_share::ThreadShare;
use plimsoll_observe::{AttachError, NamedTarget, Target};

/// Settings of the recording of a run.
#[derive(Debug)]
pub struct RecordingPlan<'a> {
    /// The configured load; URL, method, protocol and the number of URLs are set by what was requested.
    pub load: LoadShape,
    /// The processes that answer, if they are on this machine.
    pub target: Option<&'a dyn Target>,
    /// Servers that are observed by name; without `target` the first one is the target of the run.
    pub observed: &'a [NamedTarget],
    /// Facts that the caller knows.
    pub facts: RunFacts,
    /// Time between two samples of the processes.
    pub sample_every: Duration,
    /// Whether ticks have what was recorded since the last one, for the process that merges the parts of a run. It makes the
    /// record then.
    pub hands_over: bool,
}

/// The figures of a recorded run.
#[derive(Debug)]
pub struct RecordedRun {
    /// Its exchanges and what they cost.
    pub summary: RunSummary,
    /// From the intended start of an iteration to its end, of the scenarios with a schedule.
    pub iterations_from_intended: Histogram,
}

/// Records the exchanges of one worker.
#[derive(Debug)]
pub struct ExchangeRecorder {
    /// Since the last second was handed over.
    interval: RefCell<Box<Interval>>,
    requests: RefCell<Requests>,
    iterations: RefCell<Histogram>,
    progress: Arc<Progress>,
    report: Cell<ProgressReport>,
}

/// Figures by the names of requests, at most [`RequestNames::MOST`] and one for all others.
#[derive(Debug, Default)]
pub(super) struct Requests {
    figures: HashMap<String, RequestFigures>,
    /// Method, URL and protocol of the first exchange.
    first: Option<First>,
}

#[derive(Debug, Clone)]
struct First {
    at: Instant,
    method: String,
    url: String,
    protocol: plimsoll_model::Protocol,
}

/// An exchange under way; one that is dropped counts as aborted.
#[derive(Debug)]
pub struct ExchangeUnderWay {
    recorder: Rc<ExchangeRecorder>,
    began: Instant,
    is_over: bool,
}

/// The request of an exchange, as figures show it.
#[derive(Debug, Clone, Copy)]
pub struct RecordedRequest<'a> {
    /// The request method.
    pub method: &'a str,
    /// Its name, or its URL.
    pub name: &'a str,
    /// Whether the status is one that the script expects.
    pub is_expected: bool,
}

impl ExchangeRecorder {
    pub(super) fn new(is_open: bool, progress: Arc<Progress>) -> Self {
        Self {
            interval: RefCell::new(Box::new(Interval::new(0, is_open))),
            requests: RefCell::default(),
            iterations: RefCell::new(Histogram::new()),
            progress,
            report: Cell::default(),
        }
    }

    /// Counts an exchange that begins at `now`.
    pub fn begin(self: &Rc<Self>, now: Instant) -> ExchangeUnderWay {
        self.interval.borrow_mut().counts.started += 1;
        self.progress.begin();
        ExchangeUnderWay {
            recorder: Rc::clone(self),
            began: now,
            is_over: false,
        }
    }

    /// Counts a connection that was opened.
    pub fn connection_opened(&self) {
        self.interval.borrow_mut().connections_opened += 1;
    }

    /// Counts how late an iteration of a schedule started.
    pub(super) fn iteration_began(&self, late: Duration) {
        self.interval.borrow_mut().record_lag(late);
    }

    /// Counts an iteration of a schedule that is complete.
    ///
    /// - `took`: from its intended start.
    pub(super) fn iteration_ended(&self, took: Duration) {
        self.iterations.borrow_mut().record(took);
    }

    /// Takes the counts of a second.
    ///
    /// - `late`: how late its timer fired.
    pub(super) fn second(&self, late: Duration) -> Box<Interval> {
        let mut interval = self.interval.borrow_mut();
        interval.record_lag(late);
        interval.in_flight = self.progress.in_flight();
        let is_open = interval.from_intended.is_some();
        std::mem::replace(&mut interval, Box::new(Interval::new(0, is_open)))
    }

    /// Gives counts back that could not be handed over.
    pub(super) fn give_back(&self, mut second: Box<Interval>) {
        second.in_flight = 0;
        self.interval.borrow_mut().merge(&second);
    }

    /// Takes everything beside the counts of seconds.
    pub(super) fn take_recorded(&self) -> WorkerExchanges {
        WorkerExchanges {
            requests: self.requests.take(),
            iterations: self.iterations.take(),
        }
    }

    /// The same that could not be handed over.
    pub(super) fn restore_recorded(&self, taken: WorkerExchanges) {
        self.requests.borrow_mut().merge(taken.requests);
        self.iterations.borrow_mut().merge(&taken.iterations);
    }
}

impl ExchangeUnderWay {
    /// Counts the outcome.
    pub fn finish(mut self, exchange: &Exchange, request: &RecordedRequest<'_>) {
        self.is_over = true;
        let recorder = &self.recorder;
        recorder.progress.complete(exchange.outcome.is_ok());
        let mut interval = recorder.interval.borrow_mut();
        interval.record(exchange);
        interval.record_in_window(exchange);
        let is_failed_status = exchange.outcome.is_ok() && !request.is_expected;
        interval.counts.failed_status += u64::from(is_failed_status);
        let latency = if interval.from_intended.is_some() {
            exchange.latency_from_intended()
        } else {
            exchange.latency_from_started()
        };
        drop(interval);
        let mut report = recorder.report.get();
        report.ok += u64::from(exchange.outcome.is_ok());
        report.errors += u64::from(exchange.outcome.is_err() || is_failed_status);
        report.latencies += 1;
        let nanos = exchange.latency_from_started().as_nanos();
        report.latency_nanos += u64::try_from(nanos).unwrap_or_default();
        recorder.report.set(report);
        recorder.progress.report(report);
        recorder
            .requests
            .borrow_mut()
            .count(exchange, request, is_failed_status, latency);
    }
}

impl Drop for ExchangeUnderWay {
    fn drop(&mut self) {
        if !self.is_over {
            self.recorder.progress.complete(false);
            let mut interval = self.recorder.interval.borrow_mut();
            interval.record_aborted(self.began, self.began, SystemClock.now());
        }
    }
}

impl Requests {
    fn count(
        &mut self,
        exchange: &Exchange,
        request: &RecordedRequest<'_>,
        is_failed_status: bool,
        latency: Duration,
    ) {
        self.first.get_or_insert_with(|| First {
            at: exchange.started,
            method: request.method.to_owned(),
            url: request.name.to_owned(),
            protocol: exchange.protocol,
        });
        let figures = self.named(request.method, request.name);
        match exchange.outcome {
            Ok(_) => figures.ok += 1,
            Err(_) => figures.failed += 1,
        }
        figures.error_statuses += u64::from(is_failed_status);
        figures.latency.record(latency);
    }

    fn named(&mut self, method: &str, name: &str) -> &mut RequestFigures {
        let key = format!("{method} {name}");
        self.of_key(key)
    }

    fn of_key(&mut self, key: String) -> &mut RequestFigures {
        let is_full = self.figures.len() >= RequestNames::MOST && !self.figures.contains_key(&key);
        let key = if is_full {
            RequestNames::OTHERS.to_owned()
        } else {
            key
        };
        self.figures.entry(key).or_default()
    }

    /// Those of all names, in their order, and the first one.
    fn into_part(self) -> (Vec<RequestFigures>, Option<FirstRequest>) {
        let named = self.figures.into_iter();
        let mut all: Vec<_> = named
            .map(|(name, figures)| RequestFigures { name, ..figures })
            .collect();
        all.sort_by(|one, other| one.name.cmp(&other.name));
        let first = self.first.map(|first| FirstRequest {
            method: first.method,
            url: first.url,
            protocol: first.protocol,
        });
        (all, first)
    }

    /// Adds those of another process.
    fn add_part(&mut self, part: &PartExchanges) {
        for figures in &part.requests {
            self.of_key(figures.name.clone()).merge(figures);
        }
        if let (None, Some(first)) = (&self.first, &part.first) {
            self.first = Some(First {
                at: SystemClock.now(),
                method: first.method.clone(),
                url: first.url.clone(),
                protocol: first.protocol,
            });
        }
    }

    fn merge(&mut self, other: Self) {
        for (key, figures) in other.figures {
            self.of_key(key).merge(&figures);
        }
        self.first = [self.first.take(), other.first]
            .into_iter()
            .flatten()
            .min_by_key(|first| first.at);
    }

    /// The worst first; empty if there is only one.
    fn into_figures(self) -> Vec<RequestFigures> {
        if self.figures.len() < 2 {
            return Vec::new();
        }
        let named = self.figures.into_iter();
        let mut all: Vec<_> = named
            .map(|(name, figures)| RequestFigures { name, ..figures })
            .collect();
        all.sort_by(RequestFigures::worst_first);
        all
    }
}

/// What a worker has recorded beside the counts of seconds.
#[derive(Debug)]
pub(super) struct WorkerExchanges {
    pub(super) requests: Requests,
    pub(super) iterations: Histogram,
}

/// How a recorded run ended.
#[derive(Debug)]
pub(super) struct RecordEnd {
    /// The length of the run.
    pub(super) window: Duration,
    pub(super) worst_worker: ThreadShare,
    pub(super) is_interrupted: bool,
    /// Arrivals that were dropped.
    pub(super) dropped: u64,
    /// Cautions about what the metrics leave out.
    pub(super) left_out: Vec<String>,
}

/// Merges the seconds and last reports of all workers, or of all parts of a run.
pub(super) struct Recorder<'a> {
    recording: RecordingPlan<'a>,
    /// Until the run starts.
    before: Option<Before>,
    costs: Option<Costs>,
    /// Until the run starts.
    sources: Option<Result<OpenSources, AttachError>>,
    progress: Vec<Arc<Progress>>,
    collector: Collector,
    ticks: Rows,
    requests: Requests,
    iterations: Histogram,
    /// Iterations that were dropped until the last second.
    dropped: u64,
    /// Seconds that are not handed over yet, if they are to be.
    seconds: Option<Vec<ExchangeSecond>>,
}

impl<'a> Recorder<'a> {
    /// - `is_open`: whether a scenario has a schedule.
    pub(super) fn new(recording: RecordingPlan<'a>, workers: usize, is_open: bool) -> Self {
        let sources = OpenSources::open(recording.observed, recording.sample_every);
        Self::with_sources(recording, sources, workers, is_open)
    }

    /// For the parts of a run that begins some time later.
    pub(super) fn of_parts(
        recording: RecordingPlan<'a>,
        is_open: bool,
    ) -> Result<Self, AttachError> {
        let sources = OpenSources::attach(recording.observed, recording.sample_every)?;
        Ok(Self::with_sources(recording, Ok(sources), 1, is_open))
    }

    fn with_sources(
        recording: RecordingPlan<'a>,
        sources: Result<OpenSources, AttachError>,
        workers: usize,
        is_open: bool,
    ) -> Self {
        let empty = Interval::new(0, is_open);
        Self {
            before: Some(Before::observe(SystemClock.wall())),
            costs: None,
            sources: Some(sources),
            seconds: recording.hands_over.then(Vec::new),
            progress: (0..workers).map(|_| Arc::default()).collect(),
            collector: Collector::new(empty, workers, Duration::ZERO),
            ticks: Rows::new(),
            requests: Requests::default(),
            iterations: Histogram::new(),
            dropped: 0,
            recording,
        }
    }

    /// The counters of a worker.
    pub(super) fn progress(&self, worker: usize) -> Arc<Progress> {
        Arc::clone(&self.progress[worker])
    }

    /// The run starts.
    pub(super) fn start(&mut self, now: Instant) -> Result<(), AttachError> {
        self.observe_from(now)?;
        self.look(now);
        Ok(())
    }

    /// The run of several parts starts.
    ///
    /// - `workers`: of all parts.
    /// - `started`: which may lie ahead.
    pub(super) fn begin_parts(
        &mut self,
        parts: usize,
        workers: usize,
        started: SystemTime,
    ) -> Result<(), AttachError> {
        let is_open = self.collector.total().from_intended.is_some();
        self.collector = Collector::new(Interval::new(0, is_open), parts, Duration::ZERO);
        self.recording.load.workers = workers;
        self.before = Some(Before::observe(started));
        self.observe_from(instant_of(started))
    }

    fn observe_from(&mut self, start: Instant) -> Result<(), AttachError> {
        let sources = self.sources.take().transpose()?.unwrap_or_default();
        self.costs = Some(Costs::start(
            self.recording.target,
            sources,
            self.progress.clone(),
            start,
            self.recording.sample_every,
            vec![start],
        )?);
        Ok(())
    }

    /// - `dropped`: iterations that were dropped until now.
    pub(super) fn take_second(&mut self, published: Published, dropped: u64) {
        let (_, complete) = self.collector.collect_published(published);
        self.take_complete(complete);
        self.count_dropped(dropped);
    }

    fn take_complete(&mut self, complete: Vec<Second>) {
        let is_over = self.collector.is_complete();
        let mut complete = complete.into_iter().peekable();
        while let Some(Second { tick, interval }) = complete.next() {
            if let Some(seconds) = &mut self.seconds {
                seconds.push(ExchangeSecond {
                    at: tick.at,
                    is_last: is_over && complete.peek().is_none(),
                    interval: Box::new(interval),
                });
            } else {
                self.collector.recycle(interval);
                self.ticks.push(tick);
            }
        }
    }

    /// Takes what is to be handed over; `None` if nothing is.
    ///
    /// - `dropped`: iterations that were dropped until now.
    pub(super) fn take_part(&mut self, dropped: u64) -> Option<PartExchanges> {
        let seconds = std::mem::take(self.seconds.as_mut()?);
        let (requests, first) = std::mem::take(&mut self.requests).into_part();
        Some(PartExchanges {
            seconds,
            requests,
            first,
            iterations: std::mem::replace(&mut self.iterations, Histogram::new()),
            dropped,
        })
    }

    /// Adds what a part has handed over.
    ///
    /// - `dropped`: iterations that all parts dropped until now.
    pub(super) fn merge_part(&mut self, part: usize, exchanges: &PartExchanges, dropped: u64) {
        for second in &exchanges.seconds {
            // All parts are one set of counters, for the samplers of servers.
            if let Some(progress) = self.progress.first() {
                progress.add_responses(second.interval.counts.ok);
            }
            let published = Published {
                worker: u32::try_from(part).expect("there are few parts"),
                at: second.at,
                is_last: second.is_last,
                grace: false,
                interval: second.interval.clone(),
            };
            self.take_second(published, dropped);
        }
        self.requests.add_part(exchanges);
        self.iterations.merge(&exchanges.iterations);
    }

    /// Waits for a part no longer.
    pub(super) fn give_up(&mut self, part: usize) {
        let complete = self.collector.give_up(part);
        self.take_complete(complete);
    }

    /// Takes a sample at the start of the run, once that is there.
    pub(super) fn look(&mut self, now: Instant) {
        if let Some(costs) = &mut self.costs {
            costs.mark(now);
        }
    }

    /// Whether another process makes the record.
    pub(super) fn hands_over(&self) -> bool {
        self.seconds.is_some()
    }

    /// Completes what this part has to say beside its exchanges.
    pub(super) fn add_to(mut self, report: &mut PartReport) {
        let Some(observed) = self.costs.take().map(Costs::finish) else {
            return;
        };
        let generator = observed.generator;
        report.cpu = generator.map(|(first, last)| Cost::between(&first, &last).cpu);
        report.peak_memory_bytes = observed.samples.generator_peak_memory_bytes;
        let total = self.collector.finish();
        report.saturated = saturation::judge(
            report.busiest_worker_percent,
            &total.lag,
            total.honest_latency().observed(),
            total.from_intended.is_some(),
        );
        let conditions = self.before.map(|it| it.after(self.recording.facts));
        report.warnings = conditions.map(|it| it.warnings).unwrap_or_default();
    }

    /// Counts what was dropped since the last time as errors of the last second, as a plain run does.
    fn count_dropped(&mut self, dropped: u64) {
        if let Some(tick) = self.ticks.last_mut() {
            tick.other_errors += dropped - self.dropped;
            self.dropped = dropped;
        }
    }

    pub(super) fn take_last(&mut self, last: WorkerExchanges) {
        self.requests.merge(last.requests);
        self.iterations.merge(&last.iterations);
    }

    /// - `parts`: the reports of the parts that made the run, if other processes did.
    pub(super) fn finish(
        mut self,
        end: RecordEnd,
        parts: Option<&[&PartReport]>,
    ) -> Option<RecordedRun> {
        let RecordEnd {
            window,
            worst_worker,
            is_interrupted,
            dropped,
            left_out,
        } = end;
        self.count_dropped(dropped);
        let mut observed = self.costs.take()?.finish();
        if let Some(parts) = parts {
            observed = observed_by_parts(parts, observed.named);
        }
        let mut load = self.recording.load;
        load.urls = self.requests.figures.len();
        if let Some(first) = &self.requests.first {
            load.url.clone_from(&first.url);
            load.method.clone_from(&first.method);
            load.protocol = first.protocol;
        }
        let conditions = self.before.take()?.after(self.recording.facts);
        let mut summary = summary_of(
            load,
            self.collector.finish(),
            Measured {
                ticks: self.ticks.into_ticks(),
                window,
                worst_worker,
                observed,
                target: self.recording.target,
                named: self.recording.observed,
                conditions,
                interrupted: is_interrupted,
            },
        );
        if let Some(parts) = parts {
            attribute_to_parts(&mut summary, parts);
        }
        summary.counts.dropped = dropped;
        summary.requests = self.requests.into_figures();
        summary.conditions.warnings.extend(left_out);
        let found = standstill::warnings(&summary, standstill::CORES_OF_SCRIPT);
        summary.conditions.warnings.extend(found);
        Some(RecordedRun {
            summary,
            iterations_from_intended: self.iterations,
        })
    }
}
