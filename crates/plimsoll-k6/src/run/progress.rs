//! The progress of a run, for a view.

use std::time::Duration;

use plimsoll_load::scenario::{MetricId, Sink, Sinks};
use plimsoll_model::AgentStanding;

use crate::metrics::TrendStat;
use crate::user::RunState;

/// The progress of a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunProgress {
    /// Since the start of the iterations.
    pub at: Duration,
    /// Virtual users that take part.
    pub active: u64,
    /// Virtual users that exist.
    pub initialised: u64,
    /// Complete iterations.
    pub completed: u64,
    /// Interrupted iterations.
    pub interrupted: u64,
    /// Requests of HTTP.
    pub requests: u64,
    /// Those of them that failed, from 0 to 1.
    pub failed: f64,
    /// Median and 95th percentile of `http_req_duration` in milliseconds; absent without requests.
    pub duration: Option<(f64, f64)>,
    /// Checks that passed, and all.
    pub checks: (u64, u64),
    /// In the order of their names.
    pub scenarios: Vec<ScenarioStatus>,
    /// Since the last progress, about a second before.
    pub recent: RecentFigures,
    /// The parts of a run that several processes make, side by side.
    pub agents: Vec<AgentStanding>,
}

/// Figures of the time since the last progress.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RecentFigures {
    /// Requests of HTTP.
    pub requests: f64,
    /// Complete iterations.
    pub iterations: f64,
    /// The share of requests that failed, from 0 to 1; absent without requests.
    pub failed: Option<f64>,
    /// `http_req_duration` in milliseconds; absent without requests.
    pub duration: Option<TrendFigures>,
    /// `iteration_duration` in milliseconds; absent without iterations.
    pub iteration: Option<TrendFigures>,
    /// Bytes of `data_received`.
    pub received: f64,
    /// Bytes of `data_sent`.
    pub sent: f64,
}

/// Figures of a trend.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct TrendFigures {
    /// The median.
    pub median: f64,
    /// The 95th percentile.
    pub p95: f64,
    /// The 99th percentile.
    pub p99: f64,
    /// The largest value.
    pub max: f64,
}

impl RecentFigures {
    fn new(shared: &RunState, sinks: &Sinks) -> Self {
        let metrics = &shared.built_in;
        let sink = |id: MetricId| sinks.series(shared.registry.get(id)?.series);
        let sum = |id| match sink(id) {
            Some(Sink::Counter(sum)) => *sum,
            _ => 0.0,
        };
        let trend = |id| match sink(id) {
            Some(Sink::Trend(trend)) => {
                let stat = |stat: TrendStat| stat.value_in(trend);
                Some(TrendFigures {
                    median: stat(TrendStat::Med),
                    p95: stat(TrendStat::Percentile(95.0)),
                    p99: stat(TrendStat::Percentile(99.0)),
                    max: stat(TrendStat::Max),
                })
            }
            _ => None,
        };
        Self {
            requests: sum(metrics.http_reqs),
            iterations: sum(metrics.iterations),
            failed: match sink(metrics.http_req_failed) {
                Some(Sink::Rate(rate)) => Some(rate.rate()),
                _ => None,
            },
            duration: trend(metrics.http_req_duration),
            iteration: trend(metrics.iteration_duration),
            received: sum(metrics.data_received),
            sent: sum(metrics.data_sent),
        }
    }
}

/// The progress of a scenario.
#[derive(Debug, Clone, PartialEq)]
pub struct ScenarioStatus {
    /// Its name.
    pub name: String,
    /// Its executor.
    pub executor: &'static str,
    /// When it starts.
    pub start: Duration,
    /// The time during which iterations start.
    pub length: Duration,
    /// The completed share, from 0 to 1.
    pub share: f64,
    /// Virtual users that take part, and those that there may be.
    pub vus: (u64, u64),
    /// Complete iterations.
    pub completed: u64,
    /// Arrivals that no virtual user was free for.
    pub dropped: u64,
}

impl RunProgress {
    /// - `total`: aggregates of all samples so far.
    /// - `recent`: those since the last progress.
    pub(crate) fn from_sinks(
        shared: &RunState,
        total: &Sinks,
        recent: Option<&Sinks>,
        at: Duration,
    ) -> Self {
        let progress = &shared.progress;
        let metrics = &shared.built_in;
        let sink = |id: MetricId| {
            let metric = shared.registry.get(id)?;
            total.series(metric.series)
        };
        let (mut requests, mut failed, mut duration, mut checks) = (0, 0.0, None, (0, 0));
        if let Some(Sink::Rate(rate)) = sink(metrics.http_req_failed) {
            failed = rate.rate();
        }
        if let Some(Sink::Counter(sum)) = sink(metrics.http_reqs) {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "it is a number of requests"
            )]
            let count = *sum as u64;
            requests = count;
        }
        if let Some(Sink::Trend(trend)) = sink(metrics.http_req_duration) {
            let stat = |stat: TrendStat| stat.value_in(trend);
            duration = Some((stat(TrendStat::Med), stat(TrendStat::Percentile(95.0))));
        }
        if let Some(Sink::Rate(rate)) = sink(metrics.checks) {
            checks = (rate.passes, rate.total);
        }
        let scenarios = shared.options.scenarios.iter().zip(&shared.claims);
        let scenarios = scenarios.enumerate().map(|(index, (options, claims))| {
            let executor = claims.executor();
            let scenario = progress.scenario(index);
            let passed = at.saturating_sub(options.start_time);
            ScenarioStatus {
                name: options.name.clone(),
                executor: executor.name(),
                start: options.start_time,
                length: executor.end(),
                share: executor.progress(passed, scenario.completed()),
                vus: (scenario.active(), executor.most_vus().into()),
                completed: scenario.completed(),
                dropped: claims.dropped(),
            }
        });
        Self {
            at,
            active: progress.active(),
            initialised: progress.initialised(),
            completed: progress.completed(),
            interrupted: progress.interrupted(),
            requests,
            failed,
            duration,
            checks,
            scenarios: scenarios.collect(),
            recent: recent.map_or_else(RecentFigures::default, |it| RecentFigures::new(shared, it)),
            agents: Vec::new(),
        }
    }
}
