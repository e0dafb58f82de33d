//! `plimsoll load`: puts load on a URL.

mod args;

mod compile;

mod requests;

mod target;

mod output;

mod push;

mod view;

use plimsoll_load::conditions::RunFacts;
use plimsoll_load::target::Target;
use plimsoll_load::{Observation, RunError, Watch, check_reachable};
use plimsoll_model::{Pinning, RunSummary, Threshold, ThresholdVerdict};

pub(crate) use self::args::Args;
use self::compile::{Compiled, Surroundings};
use self::output::{Live, ResultFolder};
use self::push::Push;
use crate::exit::Exit;
use crate::flags::connection_variables;
use crate::grpc;
use crate::problem::{Failed, Problem};
use crate::{signals, terminal};

/// Runs the command.
pub(crate) fn run(args: &mut Args) -> Result<Exit, Failed> {
    args.imply();
    let args = &*args;
    let interrupt = signals::watch().map_err(|error| {
        Problem::new(format!("cannot watch for signals: {error}")).could_not_run()
    })?;
    let folder = args
        .output
        .out
        .as_deref()
        .map(ResultFolder::prepare)
        .transpose()?;
    let is_embedded = args.is_embedded();
    let surroundings = Surroundings {
        cores: target::worker_cores(args, is_embedded),
        variables: connection_variables(),
    };
    // Everything that can be told without the target is told before it is started.
    let placeholder = is_embedded.then_some(target::PLACEHOLDER_URL);
    let url = args.url.as_deref().or(placeholder);
    let mut compiled = compile::compile(args, url, &surroundings, None)?;
    terminal::print_notes(&compiled.left_out);
    let started = target::start(args, is_embedded, &compiled.plan, &interrupt)?;
    if let Some(url) = &started.url {
        compiled = compile::compile(args, Some(url), &surroundings, None)?;
    }
    if let (Some(unknown), Some(url)) = (&compiled.unknown_method, url) {
        check_reachable(&compiled.plan).map_err(|error| failed(&error))?;
        let told = grpc::reflect(
            &compiled.plan.connect,
            &compiled.plan.endpoints[0],
            url,
            &unknown.name,
            &unknown.parts,
        )?;
        compiled = compile::compile(args, Some(url), &surroundings, Some(&told))?;
    }
    let Compiled {
        plan,
        thresholds,
        destinations,
        ..
    } = compiled;
    let target = started.target.as_deref();
    let mut push = Push::start(destinations, &args.output.run_name, &plan.url())
        .map_err(|error| Problem::new(format!("cannot start a thread: {error}")).could_not_run())?;
    let result = measure(args, &plan, &thresholds, target, &interrupt, &mut push);
    if let Some(target) = started.target {
        target.stop();
    }
    let summary = result?;
    output::print(args, &summary)?;
    if let Some(folder) = folder {
        folder.write(&summary)?;
    }
    output::export(args, &summary)?;
    terminal::print_warnings(&push.finish(&summary));
    Ok(verdict(&summary))
}

fn measure(
    args: &Args,
    plan: &plimsoll_load::RunPlan,
    thresholds: &[Threshold],
    target: Option<&dyn Target>,
    interrupt: &std::sync::Arc<plimsoll_load::Interrupt>,
    push: &mut Push,
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
    let mut live = Live::new(args, plan, interrupt);
    let mut watch = Watch {
        interrupt: std::sync::Arc::clone(interrupt),
        on_tick: &mut |standing| {
            live.show(standing);
            push.tick(standing);
        },
    };
    let result = plimsoll_load::run(plan, observation, &mut watch);
    live.end();
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
