//! One scenario from the start of its processes to its verdicts.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use plimsoll_load::Interrupt;
use plimsoll_model::with_causes;
use plimsoll_model::{Clock as _, ResourceSample};
use plimsoll_observe::{ProcessTree, SampleError, SampleSource};
use plimsoll_wire::SystemClock;
use url::Url;

use super::exposition::watched;
use super::load::keep_running;
use super::outcome::{JudgedSeries, LoadTally, ScenarioResult};
use super::plan::{Metrics, ScenarioPlan, SoakPlan, Subject, metrics_url};
use super::samples::Samples;
use super::series::Kind;
use super::thirds::judge_by_thirds;
use super::verdict::{JudgeOptions, judge};
use crate::plans::{Placeholders, ProcessPlan, fill, free_ports, parse_url};
use crate::server::probe::{self, ProbeError, ProbeRequest};
use crate::server::{self, Running, ServerError};

/// How often an interrupt or an end is looked for between two samples.
const STEP: Duration = Duration::from_millis(50);

/// Bytes of a page of metrics: 10,000 series with long labels have some 2 MiB.
const LARGEST_PAGE: u64 = 8 << 20;

/// How long a page may take: a target under load is slow.
const PATIENCE: Duration = Duration::from_secs(5);

/// Why a scenario has no result.
#[derive(Debug)]
pub(super) enum ScenarioError {
    /// The user stopped it.
    Interrupted,
    /// It could not begin, or its samples could not be kept.
    Failed(String),
}

impl From<ServerError> for ScenarioError {
    fn from(error: ServerError) -> Self {
        match error {
            ServerError::Interrupted => Self::Interrupted,
            error => Self::Failed(with_causes(&error)),
        }
    }
}

/// How far a scenario is.
#[derive(Debug, Clone)]
pub(super) struct Progress {
    pub(super) elapsed: Duration,
    pub(super) memory_bytes: Option<u64>,
    pub(super) descriptors: Option<u64>,
}

/// The watched processes, and their loads.
struct Watch {
    /// Ended with the scenario.
    started: Option<Running>,
    upstreams: Vec<Running>,
    source: Option<Box<dyn SampleSource>>,
    /// The last of its processes has ended.
    has_ended: bool,
    /// Whether it is looked at between samples, too, to see that it ended.
    is_process: bool,
    metrics: Option<(Url, Metrics)>,
    /// Of all processes, for loads.
    values: Vec<(String, String)>,
}

/// Runs a scenario; whatever it started has ended afterwards.
///
/// - `samples`: the file that grows with every sample.
/// - `observe`: is called after every sample.
pub(super) fn run(
    plan: &SoakPlan,
    scenario: &ScenarioPlan,
    samples: &Path,
    interrupt: &Interrupt,
    observe: &mut dyn FnMut(&Progress),
) -> Result<ScenarioResult, ScenarioError> {
    let mut watch = Watch::start(scenario, interrupt)?;
    let mut samples = Samples::create(samples, watch.source.is_some()).map_err(|error| {
        ScenarioError::Failed(format!("cannot write {}: {error}", samples.display()))
    })?;
    let begun = SystemClock.now();
    let deadline = begun + plan.duration;
    let stop = AtomicBool::new(false);
    let (failure, loads) = thread::scope(|scope| {
        let loads: Vec<_> = scenario
            .loads
            .iter()
            .map(|load| {
                let workers = ("workers".to_owned(), plan.workers(load).to_string());
                let values: Vec<_> = watch.values.iter().cloned().chain([workers]).collect();
                let words: Vec<String> =
                    load.words.iter().map(|word| fill(word, &values)).collect();
                let stop = &stop;
                scope.spawn(move || keep_running(&load.name, &words, load.longest, deadline, stop))
            })
            .collect();
        let failure = sample_until(&mut watch, &mut samples, begun, plan, interrupt, observe);
        let is_early = failure.as_ref().is_err() || failure.as_ref().is_ok_and(Option::is_some);
        if is_early {
            stop.store(true, Ordering::Relaxed);
        }
        let loads: Vec<LoadTally> = loads
            .into_iter()
            .map(|load| load.join().expect("a load does not panic"))
            .collect();
        (failure, loads)
    });
    let lasted = SystemClock.now().saturating_duration_since(begun);
    let given_up = loads.iter().find_map(|load| {
        let reason = load.given_up.as_ref()?;
        Some(format!("the load `{}` {reason}", load.name))
    });
    let failure = failure?.or(given_up);
    Ok(judged(
        &scenario.name,
        lasted.min(plan.duration),
        failure,
        loads,
        &samples,
    ))
}

fn judged(
    name: &str,
    lasted: Duration,
    failure: Option<String>,
    loads: Vec<LoadTally>,
    samples: &Samples,
) -> ScenarioResult {
    let options = JudgeOptions::default();
    let all = samples.series();
    ScenarioResult {
        name: name.to_owned(),
        lasted_secs: lasted.as_secs_f64(),
        failure,
        series: all
            .iter()
            .map(|series| JudgedSeries {
                name: series.name.clone(),
                kind: series.kind,
                assessment: judge(series, &options),
                by_thirds: judge_by_thirds(series),
            })
            .collect(),
        loads,
        samples: all,
        cores: samples.cores(),
    }
}

/// Samples until the time is over; why it ended before, if it did.
fn sample_until(
    watch: &mut Watch,
    samples: &mut Samples,
    begun: Instant,
    plan: &SoakPlan,
    interrupt: &Interrupt,
    observe: &mut dyn FnMut(&Progress),
) -> Result<Option<String>, ScenarioError> {
    let clock = SystemClock;
    let mut next = Duration::ZERO;
    loop {
        let elapsed = clock.now().saturating_duration_since(begun);
        if elapsed >= next {
            // An agent that does not answer leaves its cells empty, too.
            let processes = watch.sample(elapsed);
            // A page that a target under load does not answer leaves its cells empty.
            let metrics = watch.metrics().unwrap_or_default();
            samples
                .add(elapsed.as_secs_f64(), processes.as_ref(), metrics)
                .map_err(|error| {
                    ScenarioError::Failed(format!("cannot write the samples: {error}"))
                })?;
            observe(&Progress {
                elapsed,
                memory_bytes: processes.as_ref().map(|it| it.memory.total_bytes()),
                descriptors: processes.as_ref().map(|it| it.fds),
            });
            if elapsed >= plan.duration {
                return Ok(None);
            }
            // Samples that a slow page has taken the time of are left out.
            while next <= elapsed {
                next += plan.sample;
            }
            next = next.min(plan.duration.max(elapsed + STEP));
        }
        if interrupt.is_set() {
            return Err(ScenarioError::Interrupted);
        }
        if let Some(reason) = watch.ended() {
            return Ok(Some(reason));
        }
        thread::park_timeout(STEP);
    }
}

impl Watch {
    fn start(scenario: &ScenarioPlan, interrupt: &Interrupt) -> Result<Self, ScenarioError> {
        let mut watch = Self {
            started: None,
            upstreams: Vec::new(),
            source: None,
            has_ended: false,
            is_process: false,
            metrics: None,
            values: Vec::new(),
        };
        match &scenario.subject {
            Subject::Started(target) => {
                let ports = free_ports(&target.upstreams).map_err(|error| {
                    ScenarioError::Failed(format!("cannot find a free port: {error}"))
                })?;
                for process in &target.upstreams {
                    watch.upstreams.push(start(process, &ports, interrupt)?);
                }
                let mut running = start(&target.process, &ports, interrupt)?;
                let tree = running.take_tree();
                watch.source = tree.map(|tree| Box::new(tree) as Box<dyn SampleSource>);
                watch.started = Some(running);
                let url = ("url".to_owned(), fill(&target.url, &ports));
                watch.values = ports.into_iter().chain([url]).collect();
            }
            Subject::Pid(pid) => {
                let tree = ProcessTree::attach(*pid)
                    .map_err(|error| ScenarioError::Failed(with_causes(&error)))?;
                watch.source = Some(Box::new(tree));
                watch.is_process = true;
            }
            Subject::Observed(place) => {
                let source = place.source();
                watch.source =
                    Some(source.map_err(|error| ScenarioError::Failed(with_causes(&error)))?);
            }
            Subject::Remote => {}
        }
        watch.metrics = scenario
            .metrics
            .clone()
            .and_then(|metrics| Some((metrics_url(&metrics, &watch.values)?, metrics)));
        watch.metrics().map_err(|error| {
            let reason = with_causes(&error);
            ScenarioError::Failed(format!("the page of metrics cannot be read: {reason}"))
        })?;
        Ok(watch)
    }

    /// The target now, if it gives a sample.
    fn sample(&mut self, elapsed: Duration) -> Option<ResourceSample> {
        match self.source.as_mut()?.sample(elapsed, 0) {
            Ok(sample) => Some(sample),
            Err(error) => {
                self.has_ended |= matches!(error, SampleError::Ended(_));
                None
            }
        }
    }

    /// The metrics now.
    fn metrics(&self) -> Result<Vec<(String, Kind, f64)>, ProbeError> {
        let Some((url, metrics)) = &self.metrics else {
            return Ok(Vec::new());
        };
        let page = probe::content(&ProbeRequest {
            url,
            fields: &[],
            tls: None,
            timeout: PATIENCE,
            limit: LARGEST_PAGE,
        })?;
        Ok(watched(&String::from_utf8_lossy(&page), &metrics.patterns))
    }

    /// Why there is nothing to be watched any more.
    fn ended(&mut self) -> Option<String> {
        if let Some(running) = &mut self.started
            && running.has_ended()
        {
            return Some(format!("the target ended{}", running.complaint()));
        }
        for upstream in &mut self.upstreams {
            if upstream.has_ended() {
                return Some(format!("an upstream ended{}", upstream.complaint()));
            }
        }
        if self.is_process {
            self.sample(Duration::ZERO);
        }
        let is_gone = self.started.is_none() && self.has_ended;
        is_gone.then(|| "the process ended".to_owned())
    }
}

fn start(
    process: &ProcessPlan,
    ports: &Placeholders,
    interrupt: &Interrupt,
) -> Result<Running, ScenarioError> {
    let words: Vec<String> = process.words.iter().map(|word| fill(word, ports)).collect();
    let ready = parse_url(&fill(&process.ready, ports)).ok_or_else(|| {
        ScenarioError::Failed(format!("`{}` is not an http or https URL", process.ready))
    })?;
    Ok(server::start(&words, &[], None, &ready, interrupt)?)
}
