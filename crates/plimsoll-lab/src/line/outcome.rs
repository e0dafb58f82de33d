//! The result of a search for the load line.

use std::time::Duration;

use plimsoll_model::{Bounded, Conditions, RunSummary, Saturation, Threshold, Unit, counted};

use plimsoll_observe::Waits;

use super::growth::grows;
use super::knee::{Operating, knee};
use super::plan::LinePlan;
use super::search::{Purpose, SearchEnd, SearchOutcome, WindowOutcome, WindowPlan};
use super::usl::{Usl, fit_usl};
use crate::wording::without_details;

/// More arrivals than this share were due but not begun when the window ended: the rate was not kept.
const MISSED_SHARE: f64 = 0.01;

/// From this share of the connections in use on, all of them are taken to be: the mean over a window never reaches
/// the maximum.
const FULL_SHARE: f64 = 0.9;

/// Everything that a search found, as plain values.
#[derive(Debug, Clone)]
pub struct Line {
    /// The target's URL, credentials masked.
    pub url: String,
    /// The request method.
    pub method: String,
    /// The protocol of the exchanges.
    pub protocol: plimsoll_model::Protocol,
    /// Worker threads of the generator.
    pub workers: usize,
    /// The objectives of a window.
    pub objectives: Vec<Threshold>,
    /// Length of a window.
    pub window: Duration,
    /// Length of the window that confirms the line; zero if there is none.
    pub confirm: Duration,
    /// Load before each window, not counted.
    pub warm_up: Duration,
    /// Whether arrivals came at random rather than evenly.
    pub is_poisson: bool,
    /// Distance of the rates about the line, as a fraction.
    pub precision: f64,
    /// Windows at each of these.
    pub rounds: u32,
    /// Start of the random sequence.
    pub seed: u64,
    /// The line, or why there is none.
    pub found: SearchOutcome,
    /// Knee: where more load began to cost more waiting than it brought, if that lay within the tried rates.
    pub knee: Option<f64>,
    /// The Universal Scalability Law over concurrency, if the windows suffice for it.
    pub usl: Option<Usl>,
    /// Origin of the target's processes, if they were observed.
    pub target: Option<String>,
    /// Every window in the order in which they were made.
    pub windows: Vec<Window>,
    /// Under which conditions this was measured.
    pub conditions: Conditions,
}

/// One window of load at a rate.
#[derive(Debug, Clone, PartialEq)]
pub struct Window {
    /// The planned window.
    pub planned: WindowPlan,
    /// When it began, since the search did.
    pub began: Duration,
    /// The outcome of the window.
    pub seen: WindowOutcome,
    /// Whether the rate was kept: nearly all that was due was begun.
    pub kept_rate: bool,
    /// Whether the requests under way grew through the window: the target takes less than it is offered.
    pub queue_grew: bool,
    /// The value of each objective's figure, in its unit.
    pub values: Vec<Option<Bounded<f64>>>,
    /// Complete responses per second.
    pub throughput: f64,
    /// Failures, failed statuses, unmet expectations and drops, of all that was started.
    pub error_share: f64,
    /// Exchanges begun.
    pub started: u64,
    /// Arrivals that were due but not begun when the window ended.
    pub missed: u64,
    /// Mean latency from the intended start, in microseconds.
    pub mean_us: Option<Bounded<f64>>,
    /// Median of the same.
    pub p50_us: Option<Bounded<f64>>,
    /// 99th percentile of the same.
    pub p99_us: Option<Bounded<f64>>,
    /// Exchanges under way on average: throughput times mean latency from the actual start (Little
    /// 1961).
    pub in_flight: Option<f64>,
    /// Processor time of the target per request, in microseconds.
    pub cpu_us_per_request: Option<f64>,
    /// Share of one core that the target used, in percent.
    pub cpu_percent: Option<f64>,
    /// Largest resident memory of the target.
    pub peak_memory_bytes: Option<u64>,
    /// What the target's threads waited for, the warm-up included; empty if they were not observed.
    pub waits: Waits,
    /// Processor time of the generator per request, in microseconds.
    pub generator_cpu_us_per_request: Option<f64>,
    /// Why the generator was the limit, if it was.
    pub saturated: Option<Saturation>,
    /// Warnings about this window.
    pub warnings: Vec<String>,
}

impl Window {
    /// The outcome of `run`, judged by `objectives`.
    pub(super) fn from_run(
        planned: WindowPlan,
        began: Duration,
        run: &RunSummary,
        objectives: &[Threshold],
    ) -> Self {
        let micros = |time: Option<Bounded<Duration>>| {
            time.map(|time| time.map(|time| time.as_secs_f64() * 1e6))
        };
        let latency = run.latency.honest();
        let counts = &run.counts;
        let due = counts.started + counts.dropped + counts.missed;
        let late = (counts.missed + counts.aborted) as f64;
        let kept_rate = late <= MISSED_SHARE * due as f64;
        let values: Vec<_> = objectives
            .iter()
            .map(|objective| objective.value(run))
            .collect();
        let is_met = |(objective, value): (&Threshold, &Option<Bounded<f64>>)| {
            value.is_some_and(|value| objective.is_met(value))
        };
        let queue_grew = grows(&in_flight_of(run), counts.started);
        let held = kept_rate && !queue_grew && objectives.iter().zip(&values).all(is_met);
        // Late starts make latency long, but no errors.
        let blames_time = objectives
            .iter()
            .zip(&values)
            .any(|pair| !is_met(pair) && pair.0.unit() == Unit::Microseconds);
        let throughput = run.requests_per_second();
        let busy = run.latency.from_started.observed().mean();
        // Answers of the grace period count in the mean, but there are never more than places.
        let places = (planned.connections * run.load.streams) as f64;
        let in_flight = busy.map(|mean| (throughput * mean.as_secs_f64()).min(places));
        let tried = counts.started + counts.dropped;
        Self {
            planned,
            began,
            seen: WindowOutcome {
                held,
                // Late timers do not make requests pile up; a worker that is too busy to read does.
                generator_limited: match run.generator.saturated {
                    None => false,
                    Some(Saturation::Lag { .. }) => !kept_rate || blames_time,
                    Some(Saturation::Cpu { .. }) => !kept_rate || blames_time || queue_grew,
                },
                connections_full: in_flight
                    .is_some_and(|in_flight| in_flight >= FULL_SHARE * places),
            },
            kept_rate,
            queue_grew,
            values,
            throughput,
            error_share: if tried == 0 {
                0.0
            } else {
                counts.errors() as f64 / tried as f64
            },
            started: counts.started,
            missed: counts.missed,
            mean_us: micros(latency.mean()),
            p50_us: micros(latency.quantile(0.5)),
            p99_us: micros(latency.quantile(0.99)),
            in_flight,
            cpu_us_per_request: run
                .target
                .as_ref()
                .and_then(|target| target.cost.cpu_us_per_request()),
            cpu_percent: run
                .target
                .as_ref()
                .and_then(|target| target.cost.cpu_percent()),
            peak_memory_bytes: run.target.as_ref().map(|target| target.peak_memory_bytes),
            waits: Waits::default(),
            generator_cpu_us_per_request: run.generator.cost.cpu_us_per_request(),
            saturated: run.generator.saturated,
            warnings: run.conditions.warnings.clone(),
        }
    }
}

/// The requests under way at each sample of the measured window.
fn in_flight_of(run: &RunSummary) -> Vec<u64> {
    let from = run.load.warm_up;
    let moments = run.moments.iter();
    let moments = moments.filter(|moment| moment.at >= from && moment.at <= from + run.window);
    moments.map(|moment| moment.in_flight).collect()
}

impl Line {
    pub(super) fn new(
        plan: &LinePlan,
        found: SearchOutcome,
        windows: Vec<Window>,
        target: Option<String>,
        conditions: Conditions,
    ) -> Self {
        let operating: Vec<Operating> = windows
            .iter()
            .filter_map(|window| {
                Some(Operating {
                    rate: window.planned.rate,
                    throughput: window.throughput,
                    mean_us: window.mean_us?.known()?,
                })
            })
            .collect();
        // Answers that are refusals are quick and say nothing of the law.
        let law: Vec<(f64, f64)> = windows
            .iter()
            .filter(|window| window.error_share < MISSED_SHARE)
            .filter_map(|window| Some((window.in_flight?, window.throughput)))
            .collect();
        let mut line = Self {
            url: plan.run.url(),
            method: plan.run.requests[0].request.method().to_owned(),
            protocol: plan.run.protocol(),
            workers: plan.run.workers,
            objectives: plan.objectives.clone(),
            window: plan.window,
            confirm: plan.confirm,
            warm_up: plan.warm_up,
            is_poisson: plan.spacing == plimsoll_load::Spacing::Poisson,
            precision: plan.search.precision,
            rounds: plan.search.rounds,
            seed: plan.search.seed,
            knee: knee(&operating),
            usl: fit_usl(&law),
            found,
            target,
            windows,
            conditions,
        };
        line.conditions.warnings.extend(line.warnings());
        line
    }

    /// Warnings about the line.
    fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        let limited = |window: &&Window| !window.seen.held && window.seen.generator_limited;
        let limited = self.windows.iter().filter(limited).count();
        if limited > 0 && matches!(self.found.ended, SearchEnd::Line(_)) {
            let windows = counted(limited as u64, "window");
            warnings.push(format!(
                "the generator was at its limit in {windows} that broke; those of the rounds \
                 were left out"
            ));
        }
        warnings.extend(self.of_windows());
        for gap in &self.found.gaps {
            warnings.push(format!(
                "it broke at {}/s and held at higher rates: the line is below the lowest rate that \
                 broke",
                plimsoll_model::grouped(*gap)
            ));
        }
        if self.found.connections_full && matches!(self.found.ended, SearchEnd::Line(_)) {
            warnings.push(format!(
                "all {} connections were in use where windows broke: with more (-c) the target may \
                 carry more",
                self.found.connections
            ));
        }
        warnings
    }

    /// The warnings about single windows, each kind once: with the windows that it is about, and the words of the first.
    fn of_windows(&self) -> Vec<String> {
        let mut kinds: Vec<(&str, &str, Vec<f64>)> = Vec::new();
        for window in &self.windows {
            for warning in &window.warnings {
                let kind = without_details(warning);
                let of_all = |known: &String| without_details(known) == kind;
                if self.conditions.warnings.iter().any(of_all) {
                    continue;
                }
                match kinds.iter_mut().find(|(known, _, _)| *known == kind) {
                    Some((_, _, rates)) => rates.push(window.planned.rate),
                    None => kinds.push((kind, warning, vec![window.planned.rate])),
                }
            }
        }
        let text = |(_, warning, rates): (&str, &str, Vec<f64>)| {
            let rate = plimsoll_model::grouped(rates[0]);
            match rates.len() {
                1 => format!("in the window at {rate}/s: {warning}"),
                windows => format!("in {windows} windows, first at {rate}/s: {warning}"),
            }
        };
        kinds.into_iter().map(text).collect()
    }

    /// The windows of the search with its final number of connections: those before have other figures.
    pub fn searched(&self) -> Vec<&Window> {
        let windows = self.windows.iter();
        windows
            .filter(|it| it.planned.purpose != Purpose::Confirm)
            .filter(|it| it.planned.connections == self.found.connections)
            .collect()
    }

    /// The long windows that were to confirm the line.
    pub fn confirmations(&self) -> Vec<&Window> {
        let windows = self.windows.iter();
        windows
            .filter(|it| it.planned.purpose == Purpose::Confirm)
            .collect()
    }

    /// `windows` by rate, ascending.
    pub fn by_rate(mut windows: Vec<&Window>) -> Vec<Vec<&Window>> {
        windows.sort_by(|a, b| a.planned.rate.total_cmp(&b.planned.rate));
        windows
            .chunk_by(|a, b| a.planned.rate.total_cmp(&b.planned.rate).is_eq())
            .map(<[&Window]>::to_vec)
            .collect()
    }

    /// Whether `window` counts for the estimate.
    pub fn counts(window: &Window) -> bool {
        window.planned.purpose == Purpose::Round
            && (window.seen.held || !window.seen.generator_limited)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::time::SystemTime;

    use plimsoll_model::{Limits, Pinning, Protocol};

    use super::super::boundary::Boundary;
    use super::*;

    #[test]
    fn a_warning_of_several_windows_is_said_once() {
        let mut line = line_with(&[
            (100.0, Purpose::Round, true),
            (200.0, Purpose::Round, true),
            (1300.0, Purpose::Round, true),
        ]);
        let stood = |figures: &str| format!("the generator stood still for {figures}");
        line.windows[0].warnings = vec!["only 2 cores".to_owned()];
        line.windows[1].warnings = vec![stood("20 ms: p99 describes it"), "a worker".to_owned()];
        line.windows[2].warnings = vec![stood("70 ms: throughput describes it")];
        line.conditions.warnings = vec!["only 4 cores".to_owned()];
        assert_eq!(
            line.of_windows(),
            [
                "in 2 windows, first at 200/s: the generator stood still for 20 ms: p99 describes it",
                "in the window at 200/s: a worker",
            ]
        );
    }

    /// A line between 100 and 200 requests a second with these windows: rate, purpose and whether each held.
    pub(in super::super) fn line_with(windows: &[(f64, Purpose, bool)]) -> Line {
        let window = |(rate, purpose, held): &(f64, Purpose, bool)| Window {
            planned: WindowPlan {
                rate: *rate,
                connections: 64,
                purpose: *purpose,
            },
            began: Duration::ZERO,
            seen: WindowOutcome {
                held: *held,
                generator_limited: false,
                connections_full: false,
            },
            kept_rate: true,
            queue_grew: false,
            values: Vec::new(),
            throughput: *rate,
            error_share: 0.0,
            started: 1000,
            missed: 0,
            mean_us: None,
            p50_us: None,
            p99_us: None,
            in_flight: None,
            cpu_us_per_request: None,
            cpu_percent: None,
            peak_memory_bytes: None,
            waits: Waits::default(),
            generator_cpu_us_per_request: None,
            saturated: None,
            warnings: Vec::new(),
        };
        Line {
            url: "http://127.0.0.1/".to_owned(),
            method: "GET".to_owned(),
            protocol: Protocol::Http1,
            workers: 1,
            objectives: Vec::new(),
            window: Duration::from_secs(3),
            confirm: Duration::from_secs(30),
            warm_up: Duration::ZERO,
            is_poisson: false,
            precision: 0.02,
            rounds: 6,
            seed: 1,
            found: SearchOutcome {
                ended: SearchEnd::Line(Boundary {
                    rate: 150.0,
                    low: Some(100.0),
                    high: Some(200.0),
                }),
                held_up_to: Some(100.0),
                confirmed: Some(100.0),
                gaps: Vec::new(),
                connections: 64,
                connections_full: false,
            },
            knee: None,
            usl: None,
            target: None,
            windows: windows.iter().map(window).collect(),
            conditions: Conditions {
                plimsoll: String::new(),
                command: Vec::new(),
                started: SystemTime::UNIX_EPOCH,
                kernel: None,
                cpu_model: None,
                cores: 4,
                governor: None,
                memory_bytes: None,
                limits: Limits::default(),
                local_ports: None,
                congestion_control: None,
                load_before: None,
                steal_percent: None,
                pinning: Pinning::default(),
                co_located: None,
                warnings: Vec::new(),
            },
        }
    }
}
