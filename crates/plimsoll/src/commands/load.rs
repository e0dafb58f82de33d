//! `plimsoll load`: puts load on a URL, or runs a k6 script.

mod agents;

pub(crate) mod args;

mod compile;

mod dashboard;

mod requests;

mod target;

mod output;

#[cfg(feature = "fleet")]
pub(crate) mod fleet;

#[cfg(feature = "lab")]
mod profiling;

#[cfg(feature = "lab")]
mod series;

mod push;

#[cfg(feature = "k6")]
pub(crate) mod script;

mod view;

use clap::{Args as _, FromArgMatches as _};
use plimsoll_load::conditions::RunFacts;
use plimsoll_load::{Interrupt, Observation, RunError, Watch, check_reachable};
use plimsoll_model::{
    FailureKind, Pinning, RunSummary, Threshold, ThresholdVerdict, masked_arguments,
};
use plimsoll_observe::{AttachError, NamedTarget, Target};
use plimsoll_report::{PlanDocument, files};

pub(crate) use self::args::Args;
#[cfg(feature = "lab")]
pub(crate) use self::compile::unobserved;
use self::compile::{Compiled, Surroundings};
use self::dashboard::LoadDashboard;
use self::output::Live;
#[cfg(feature = "lab")]
use self::profiling::Profiling;
use self::push::Push;
use crate::exit::Exit;
use crate::flags::unobservable;
use crate::grpc;
use crate::problem::{Failed, Problem};
use crate::result_folder::ResultFolder;
use crate::{signals, terminal};

/// Runs the command.
pub(crate) fn run(args: &mut Args) -> Result<Exit, Failed> {
    args.imply();
    let args = &*args;
    if args.output.check {
        return describe(args);
    }
    #[cfg(feature = "fleet")]
    if let Some(url) = &args.fleet.fleet {
        return fleet::run(args, url);
    }
    let interrupt = signals::watch().map_err(|error| {
        Problem::new(format!("cannot watch for signals: {error}")).could_not_run()
    })?;
    let folder = args
        .output
        .out
        .as_deref()
        .map(|path| ResultFolder::prepare(path, &file_names(args)))
        .transpose()?;
    #[cfg(feature = "lab")]
    let series = series::SeriesFile::open(args)?;
    let Prepared {
        compiled,
        target,
        observed: servers,
    } = prepare(args, &interrupt)?;
    let Compiled {
        plan,
        thresholds,
        destinations,
        ..
    } = compiled;
    let mut push = Push::start(destinations, &args.output.run_name, &plan.url())
        .map_err(|error| Problem::new(format!("cannot start a thread: {error}")).could_not_run())?;
    let observed = target.as_deref();
    #[cfg(feature = "lab")]
    let profiling = observed
        .filter(|_| args.output.profiles())
        .map(|target| Profiling::start(target, &plan));
    let servers = (observed, servers.as_slice());
    let result = measure(args, &plan, &thresholds, servers, &interrupt, &mut push);
    // Before the target ends: its names are read from its own files and memory.
    #[cfg(feature = "lab")]
    let profile = profiling.map_or_else(|| Ok(Vec::new()), Profiling::finish);
    #[cfg(not(feature = "lab"))]
    let profile: Result<_, Problem> = Ok(Vec::new());
    if let Some(target) = target {
        target.stop();
    }
    let summary = result?;
    output::print(args, &summary)?;
    let profile = profile.unwrap_or_else(|problem| {
        terminal::print_warnings(&[problem]);
        Vec::new()
    });
    if let Some(folder) = folder {
        folder.write(&files::of_run_with(&summary, profile))?;
    }
    output::export(args, &summary)?;
    // What was interrupted is not the run that others are.
    #[cfg(feature = "lab")]
    if let Some(series) = series.filter(|_| !summary.interrupted) {
        series.append(&summary)?;
    }
    terminal::print_warnings(&push.finish(&summary));
    Ok(verdict(&summary))
}

/// Prints what a run would do, for `--check`.
fn describe(args: &Args) -> Result<Exit, Failed> {
    let is_embedded = args.is_embedded();
    let url = args.url.as_deref();
    let url = url.or(is_embedded.then_some(target::PLACEHOLDER_URL));
    let compiled = compile::compile(args, url, &Surroundings::here(args), None)?;
    terminal::print_notes(&compiled.left_out);
    let plan = &compiled.plan;
    let text = if args.output.json {
        let thresholds = compiled.thresholds.iter().map(ToString::to_string);
        let requests = plan.names.names().to_vec();
        PlanDocument::new(&plimsoll_load::shape(plan), requests, thresholds.collect()).to_json()
    } else {
        format!("{}: no errors", output::title(plan))
    };
    terminal::print(text.trim_end()).map_err(|error| Problem::caused_by(&error).could_not_run())?;
    Ok(Exit::Fine)
}

/// The names of the files that will be written to `--out`.
fn file_names(args: &Args) -> Vec<&'static str> {
    let mut names = files::NAMES.to_vec();
    if args.output.profiles() {
        names.extend(files::PROFILE_NAMES);
    }
    names
}

/// The plan that the flags describe, with a target that is ready for it.
pub(crate) struct Prepared {
    pub(crate) compiled: Compiled,
    pub(crate) target: Option<Box<dyn Target>>,
    /// Servers that are observed by name.
    pub(crate) observed: Vec<NamedTarget>,
}

/// Compiles the flags and starts or finds the target.
pub(crate) fn prepare(args: &Args, interrupt: &Interrupt) -> Result<Prepared, Failed> {
    let is_embedded = args.is_embedded();
    let surroundings = Surroundings::here(args);
    // Everything that can be checked without the target is checked before it is started.
    let placeholder = is_embedded.then_some(target::PLACEHOLDER_URL);
    let url = args.url.as_deref().or(placeholder);
    let mut compiled = compile::compile(args, url, &surroundings, None)?;
    terminal::print_notes(&compiled.left_out);
    let observed = args.server.observe.open()?;
    let started = target::start(args, is_embedded, &compiled.plan, interrupt)?;
    if let Some(url) = &started.url {
        compiled = compile::compile(args, Some(url), &surroundings, None)?;
    }
    if let (Some(unknown), Some(url)) = (&compiled.unknown_method, url) {
        check_reachable(&compiled.plan).map_err(|error| failed(&error))?;
        let known = grpc::reflect(
            &compiled.plan.connect,
            &compiled.plan.endpoints[0],
            url,
            &unknown.name,
            &unknown.parts,
        )?;
        compiled = compile::compile(args, Some(url), &surroundings, Some(&known))?;
    }
    Ok(Prepared {
        compiled,
        target: started.target,
        observed,
    })
}

/// The flags of a command line without any.
pub(crate) fn without_flags() -> Args {
    let command = Args::augment_args(clap::Command::new("load"));
    let matches = command.get_matches_from(["load"]);
    Args::from_arg_matches(&matches).expect("no flag is required")
}

fn measure(
    args: &Args,
    plan: &plimsoll_load::RunPlan,
    thresholds: &[Threshold],
    (target, observed): (Option<&dyn Target>, &[NamedTarget]),
    interrupt: &std::sync::Arc<Interrupt>,
    push: &mut Push,
) -> Result<RunSummary, Failed> {
    check_reachable(plan).map_err(|error| failed(&error))?;
    let observation = Observation {
        target,
        observed,
        facts: facts(plan, target, observed),
        thresholds,
    };
    let mut page = LoadDashboard::start(args, plan).map_err(Problem::could_not_run)?;
    let mut live = Live::new(args, plan, interrupt);
    let mut watch = Watch {
        interrupt: std::sync::Arc::clone(interrupt),
        on_tick: &mut |standing| {
            live.show(standing, &[]);
            push.tick(standing);
            if let Some(page) = &mut page {
                page.show(standing, &[]);
            }
        },
    };
    let result = plimsoll_load::run(plan, observation, &mut watch);
    live.end();
    if let Some(page) = page {
        page.end();
    }
    result.map_err(|error| failed(&error))
}

/// Conditions that are known before a run.
pub(crate) fn facts(
    plan: &plimsoll_load::RunPlan,
    target: Option<&dyn Target>,
    observed: &[NamedTarget],
) -> RunFacts {
    RunFacts {
        plimsoll: env!("CARGO_PKG_VERSION").to_owned(),
        command: masked_arguments(std::env::args()),
        pinning: Pinning {
            generator: plan.cores.clone(),
            target: target
                .map(|target| target.cores().to_vec())
                .unwrap_or_default(),
        },
        co_located: is_co_located(target, observed).or_else(|| target::is_local(plan)),
    }
}

/// Whether what is loaded is on this machine, if the observed servers show that: the first of them is what is loaded.
pub(crate) fn is_co_located(target: Option<&dyn Target>, observed: &[NamedTarget]) -> Option<bool> {
    let first = observed.first().map(|named| &*named.target);
    let loaded = target.or(first)?;
    // An agent may be on this machine, too.
    loaded.agent().is_none().then_some(true)
}

pub(crate) fn failed(error: &RunError) -> Failed {
    let problem = Problem::caused_by(error);
    let problem = match error {
        RunError::Descriptors(_) => problem.about("-c"),
        RunError::Pin(_) => problem.about("--cores"),
        RunError::Target(error) => match error {
            AttachError::Remote(_) | AttachError::Locate(_) => unobservable(error),
            _ => problem.about("--pid"),
        },
        RunError::Unreachable { failure, .. } => match failure.kind {
            FailureKind::Refused => problem.hint("start the server, or correct host and port"),
            FailureKind::NameNotFound => {
                problem.hint("correct the host, or name its address: --resolve HOST:PORT:ADDRESS")
            }
            FailureKind::Timeout => problem.hint("a longer limit: --timeout TIME"),
            FailureKind::CertificateUntrusted | FailureKind::CertificateSelfSigned => {
                problem.hint("trust its authority (--cacert FILE), or check nothing (-k)")
            }
            _ => problem,
        },
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
    // By default statuses count as errors for thresholds only.
    let names_status = summary.load.fail_status.is_some() || summary.grpc.is_some();
    if summary.interrupted {
        Exit::Interrupted
    } else if (names_status && counts.failed_status > 0)
        || !summary.unmet.is_empty()
        || summary.shows_nothing().is_some()
        || is_breached
        // Without thresholds a run explores, and its errors are figures.
        || (!summary.thresholds.is_empty()
            && (summary.shortfall().is_some() || summary.dropped_by_server().is_some()))
    {
        Exit::Objective
    } else {
        Exit::Fine
    }
}
