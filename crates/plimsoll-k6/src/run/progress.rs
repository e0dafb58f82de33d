//! The progress of a run, for a view.

use std::time::Duration;

use plimsoll_load::scenario::{MetricId, Sink, Sinks};

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
    pub(crate) fn of(shared: &RunState, total: &Sinks, at: Duration) -> Self {
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
            let stat = |stat: TrendStat| stat.of(trend);
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
        }
    }
}
