//! `plimsoll load`: puts load on a URL.

mod args;

mod compile;

mod target;

mod output;

use plimsoll_load::conditions::RunFacts;
use plimsoll_load::target::Target;
use plimsoll_load::{Observation, RunError, Watch, check_reachable};
use plimsoll_model::{Pinning, RunSummary, Threshold, ThresholdVerdict};

pub(crate) use self::args::Args;
use self::compile::Surroundings;
use self::output::{LiveLine, ResultFolder};
use crate::exit::Exit;
use crate::flags::connection_variables;
use crate::problem::{Failed, Problem};
use crate::signals;

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<Exit, Failed> {
    let interrupt = signals::watch().map_err(|error| {
        Problem::new(format!("cannot watch for signals: {error}")).could_not_run()
    })?;
    let folder = args
        .output
        .out
        .as_deref()
        .map(ResultFolder::prepare)
        .transpose()?;
    let is_embedded = args.url.is_none() && args.requests.urls.is_none();
    let surroundings = Surroundings {
        cores: target::worker_cores(args, is_embedded),
        variables: connection_variables(),
    };
    // Everything that can be told without the target is told before it is started.
    let placeholder = is_embedded.then_some(target::PLACEHOLDER_URL);
    let url = args.url.as_deref().or(placeholder);
    let (mut plan, thresholds) = compile::compile(args, url, &surroundings)?;
    let started = target::start(args, is_embedded, &plan, &interrupt)?;
    if let Some(url) = &started.url {
        (plan, _) = compile::compile(args, Some(url), &surroundings)?;
    }
    let target = started.target.as_deref();
    let result = measure(args, &plan, &thresholds, target, &interrupt);
    if let Some(target) = started.target {
        target.stop();
    }
    let summary = result?;
    output::print(args, &summary)?;
    if let Some(folder) = folder {
        folder.write(&summary)?;
    }
    output::export(args, &summary)?;
    Ok(verdict(&summary))
}

fn measure(
    args: &Args,
    plan: &plimsoll_load::RunPlan,
    thresholds: &[Threshold],
    target: Option<&dyn Target>,
    interrupt: &std::sync::Arc<plimsoll_load::Interrupt>,
) -> Result<RunSummary, Failed> {
    check_reachable(plan).map_err(|error| failed(&error))?;
    let observation = Observation {
        target,
        facts: RunFacts {
            plimsoll: env!("CARGO_PKG_VERSION").to_owned(),
            command: output::masked_command(std::env::args()),
            pinning: Pinning {
                generator: plan.cores.clone(),
                target: target
                    .map(|target| target.cores().to_vec())
                    .unwrap_or_default(),
            },
            co_located: target.map(|_| true).or_else(|| target::is_local(plan)),
        },
        thresholds,
    };
    let mut live = LiveLine::new(args, plan);
    let mut watch = Watch {
        interrupt: std::sync::Arc::clone(interrupt),
        on_tick: &mut |tick| live.show(tick),
    };
    let result = plimsoll_load::run(plan, observation, &mut watch);
    live.clear();
    result.map_err(|error| failed(&error))
}

fn failed(error: &RunError) -> Failed {
    let problem = Problem::caused_by(error);
    let problem = match error {
        RunError::Descriptors(_) => problem.about("-c"),
        RunError::Pin(_) => problem.about("--cores"),
        RunError::Target(_) => problem.about("--pid"),
        _ => problem,
    };
    problem.could_not_run()
}

fn verdict(summary: &RunSummary) -> Exit {
    let counts = &summary.counts;
    let is_breached = summary
        .thresholds
        .iter()
        .any(|judged| judged.verdict() != ThresholdVerdict::Met);
    if summary.interrupted {
        Exit::Interrupted
    } else if counts.failed_status + counts.unmet > 0
        || (counts.ok == 0 && counts.started > 0)
        || is_breached
    {
        Exit::Objective
    } else {
        Exit::Fine
    }
}
