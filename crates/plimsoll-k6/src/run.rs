//! A run from its script to its summary.
//!
//! [`Preparation`] runs the script once for its options and makes what the run needs; [`Preparation::run`] makes the virtual users, calls
//! `setup()`, lets them iterate, calls `teardown()`, and makes the summary of what they have measured.

pub(crate) mod plan;

pub(crate) mod progress;

pub(crate) mod once;

pub(crate) mod exit_code;

pub(crate) mod control;

pub(crate) mod inspect;

pub(crate) mod invocation;

mod connections;

mod consumers;

mod iterations;

pub(crate) mod parts;

mod preparation;

mod stages;

mod standings;

mod summary_outputs;

mod ticks;

mod users;

use std::cell::RefCell;
use std::future::Future;
use std::sync::Arc;

use plimsoll_model::Clock as _;
use plimsoll_wire::SystemClock;
use tokio::task::LocalSet;

use self::consumers::Consumers;
use self::invocation::{Invocation, Outcome};
use self::iterations::{SIGNAL, started};
use self::preparation::Preparation;
use crate::metrics::counted;
use crate::metrics::servers::RunServers;
use crate::metrics::thresholds::Thresholds;
use crate::options::SummaryMode;
use crate::output::samples::SampleWriter;
use crate::output::series::SeriesWriter;
use crate::run::control::{Phase, STOPPED};
use crate::run::exit_code::ExitCode;
use crate::run::plan::RunNeeds;
use crate::summary::{self, Breakdown};

/// Runs a script.
pub fn run(invocation: &Invocation<'_>) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => return Outcome::failed(ExitCode::Other, error.to_string()),
    };
    let local = LocalSet::new();
    match Preparation::new(invocation, &runtime, &local) {
        Ok(preparation) => preparation.run(),
        Err(outcome) => *outcome,
    }
}

impl Preparation<'_> {
    fn run(mut self) -> Outcome {
        let (shared, invocation) = (Arc::clone(&self.calls.shared), self.calls.invocation);
        if let Some(on_plan) = invocation.on_plan
            && let Err(error) = on_plan(&RunNeeds::new(&shared.options))
        {
            return Outcome::failed(ExitCode::Other, error.to_string());
        }
        let outputs = invocation.samples.iter();
        let writers =
            outputs.map(|output| SampleWriter::new(output, &shared.options, &shared.registry));
        let writers = match writers.collect::<Result<Vec<_>, _>>() {
            Ok(writers) => writers,
            Err(error) => return Outcome::failed(ExitCode::InvalidConfig, error.to_string()),
        };
        let mut series = invocation.series.as_ref().map(RefCell::borrow_mut);
        let series = series.as_deref_mut();
        let has_breakdown = invocation.summary_mode == SummaryMode::Full;
        let mut consumers = Consumers {
            writers,
            series: series.map(|output| SeriesWriter::new(output, &shared.registry)),
            breakdown: has_breakdown.then(|| Breakdown::new(&shared.registry, &shared.built_in)),
            dropped: 0,
        };
        let enter = |phase| {
            if let Some(control) = &invocation.control {
                control.enter(phase);
            }
        };
        if let Some(control) = &invocation.control {
            control.attach(&shared, shared.options.is_paused);
        }
        let iterated = self.iterations(&mut consumers);
        let (mut total, mut error) = (iterated.total, iterated.error);
        let verdict = shared.verdict();
        if verdict.aborted.is_some() || self.calls.is_stopped() {
            // A virtual user that aborts the run while it is initialised has a summary too, as any that does. So has a run that ends
            // while it is paused.
            error = None;
        }
        enter(Phase::Teardown);
        let is_part = invocation.part.is_some();
        let of_users = ExitCode::of_exception(verdict.is_rejected);
        let of_setup = iterated.setup.and_then(Result::err);
        let mut exit = of_setup.or(error.as_ref().map(|_| of_users));
        if iterated.setup == Some(Ok(()))
            && !is_part
            && let Err(failed) = self.calls.teardown()
        {
            exit.get_or_insert(failed);
        }
        let took = shared.duration(SystemClock.now());
        enter(Phase::Ended);
        total.merge(&self.calls.worker.sinks.borrow());
        let costs = match invocation.servers {
            RunServers::Here(servers) => servers.end(counted(&total, shared.built_in.http_reqs)),
            RunServers::None | RunServers::Elsewhere => Vec::new(),
        };
        let rest = self.calls.worker.sinks.borrow_mut().take_points();
        consumers.hand_over_points(&rest, started(&shared));
        let (breakdown, has_failed) = consumers.finish(&shared.log);
        if has_failed {
            exit.get_or_insert(ExitCode::Other);
        }
        self.thresholds.judge_at_end(&total, took);
        self.thresholds.judge_servers(&costs, &mut total, took);
        let facts = summary::Facts {
            options: &shared.options,
            checks: &shared.checks.root(),
            sinks: &total,
            thresholds: &self.thresholds,
            took,
            has_colors: invocation.has_colors,
            terminals: invocation.terminals,
            setup_data: shared.setup_data.get().map(|data| &**data),
        };
        let summary = summary::data(&facts);
        let is_full = !matches!(invocation.summary_mode, SummaryMode::Compact);
        let new_summary = invocation.has_new_summary.then(|| {
            let (script, now) = (&invocation.script.text, SystemClock.wall());
            summary::machine_readable(&summary, script, took, now, is_full)
        });
        let is_disabled = invocation.summary_mode == SummaryMode::Disabled;
        let breakdown = breakdown.map(|breakdown| summary::parts(&facts, &breakdown));
        let breakdown = breakdown.unwrap_or_default();
        let (mut outputs, mut changed) = (Vec::new(), None);
        if error.is_none() && !is_disabled {
            let argument = new_summary.as_ref().unwrap_or(&summary);
            match self.outputs(argument, &summary, &breakdown) {
                Ok(written) => {
                    outputs = written.outputs;
                    changed = written.data;
                }
                Err(failed) => {
                    exit.get_or_insert(failed);
                    outputs.push(self.default_summary(&summary, &breakdown));
                }
            }
        }
        // What the script has changed in the data of `handleSummary()` is changed in the file too, as by k6.
        let export = (!is_disabled).then(|| match (&new_summary, &changed) {
            (Some(new_summary), _) => new_summary.to_string(),
            (None, Some(changed)) => summary::export(changed).to_string(),
            (None, None) => summary::export(&summary).to_string(),
        });
        let (code, message) = self.verdict().unzip();
        Outcome {
            exit: exit.or(code).unwrap_or(ExitCode::Fine),
            outputs,
            export,
            data: Some(summary),
            recorded: iterated.recorded,
            cautions: iterated.cautions,
            report: iterated.report,
            message: message
                .or_else(|| error.map(|error| error.to_string()))
                .unwrap_or_default(),
        }
    }

    /// Why a run whose functions and outputs all worked ends with an exit code all the same, and the message.
    fn verdict(&self) -> Option<(ExitCode, String)> {
        let shared = &self.calls.shared;
        let verdict = shared.verdict();
        if let Some(message) = verdict.exhausted {
            return Some((ExitCode::Other, message));
        }
        if let Some(message) = verdict.aborted {
            return Some((ExitCode::ScriptAborted, message));
        }
        match shared.abort.reason().as_deref() {
            Some(STOPPED) => {
                let message = "a client of the REST API stopped the run";
                return Some((ExitCode::StoppedByApi, message.to_owned()));
            }
            Some(SIGNAL) => {
                let message = "the run was stopped by a signal";
                return Some((ExitCode::ExternalAbort, message.to_owned()));
            }
            _ => {}
        }
        if let Some(message) = verdict.failed {
            return Some((ExitCode::MarkedAsFailed, format!("test failed: {message}")));
        }
        let is_crossed = !self.thresholds.are_met();
        is_crossed.then(|| (ExitCode::ThresholdsFailed, crossed(&self.thresholds)))
    }
}

/// Runs a future that may need tasks of its thread.
fn in_set<F: Future>(runtime: &tokio::runtime::Runtime, local: &LocalSet, future: F) -> F::Output {
    runtime.block_on(local.run_until(Box::pin(future)))
}

fn crossed(thresholds: &Thresholds) -> String {
    let crossed = thresholds.judged.iter().filter(|judged| {
        let mut thresholds = judged.thresholds.iter();
        thresholds.any(|threshold| !threshold.is_met)
    });
    let names: Vec<_> = crossed.map(|judged| judged.metric.as_str()).collect();
    format!(
        "thresholds on metrics '{}' have been crossed",
        names.join(", ")
    )
}
