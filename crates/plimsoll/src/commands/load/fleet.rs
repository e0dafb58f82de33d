//! `plimsoll load --fleet`: agents on other machines make the load, this process gathers them and merges their figures.

pub(crate) mod arguments;

pub(crate) mod flags;

pub(crate) mod dry_run;

pub(crate) mod folder;

pub(crate) mod kubernetes;

pub(crate) mod make_part;

#[cfg(feature = "k6")]
pub(crate) mod script;

#[cfg(feature = "k6")]
mod script_part;

pub(crate) mod show;

use std::cell::RefCell;
use std::fs;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_fleet::{
    FleetError, FleetPlan, FleetRun, FoundRun, LoadMerger, NatsPlan, NatsTransport, NotStarted,
    Note, Share, Shares, SigningKey, Work, coordinate, fetch_files, find_run, new_run_name,
    tick_bytes,
};
use plimsoll_load::{Pacing, RunPart, RunPlan, Standing};
use plimsoll_model::{AgentStanding, Rate};
use plimsoll_report::files;
use url::Url;

use self::arguments::OrderArguments;
use self::flags::{FleetArgs, OnAgentLoss};
use self::folder::folder_with;
use super::compile::Compiled;
use super::dashboard::LoadDashboard;
use super::output::Live;
use super::push::Push;
use super::{Args, Prepared, facts, output, prepare, verdict};
use crate::exit::Exit;
use crate::problem::{Failed, Problem};
use crate::result_folder::ResultFolder;
use crate::{signals, terminal};

/// Makes the run over the agents of a broker.
///
/// - `url`: of the broker.
pub(super) fn run(args: &Args, url: &str) -> Result<Exit, Failed> {
    if let Some(run) = &args.fleet.attach {
        return attach(args, url, run);
    }
    if args.fleet.kubernetes.kubernetes.is_some() {
        return in_cluster(args, url);
    }
    let agents = args.fleet.agents.ok_or_else(|| {
        Problem::with("--fleet", "needs the number of agents")
            .hint("write for example --agents 4")
            .usage()
    })?;
    if args.fleet.dry_run {
        return dry(args, url, agents);
    }
    let job = Job {
        run: new_run_name(),
        agents,
        order: arguments::of_process(args)?,
        attached: None,
    };
    make(args, url, job)
}

/// Prints what would run in a cluster, or its manifests.
fn in_cluster(args: &Args, url: &str) -> Result<Exit, Failed> {
    let surroundings = super::compile::Surroundings::here(args);
    let compiled = super::compile::compile(args, args.url.as_deref(), &surroundings, None)?;
    let plan = &compiled.plan;
    if !args.fleet.dry_run {
        return kubernetes::print(args, url, plan);
    }
    let flags = &args.fleet.kubernetes;
    let agents = flags.kubernetes.unwrap_or(1);
    let parts = dry_run::parts_of_pods(agents, flags.kubernetes_cpu, plan.connections);
    let parts = parts.map_err(|_| too_many_pods(agents, plan.connections))?;
    print_parts(&parts, plan)
}

fn too_many_pods(agents: usize, connections: usize) -> Failed {
    let message = format!(
        "{agents} agents have nothing to do with {connections} connections or virtual users"
    );
    Problem::with("--kubernetes", message).usage()
}

/// Prints which agent would make which part.
fn dry(args: &Args, url: &str, agents: usize) -> Result<Exit, Failed> {
    let interrupt = signals::watch().map_err(|error| {
        Problem::new(format!("cannot watch for signals: {error}")).could_not_run()
    })?;
    // What is wrong with files and flags is said here.
    arguments::of_process(args)?;
    let surroundings = super::compile::Surroundings::here(args);
    let compiled = super::compile::compile(args, args.url.as_deref(), &surroundings, None)?;
    let plan = &compiled.plan;
    let key = args.fleet.sign.as_deref().map(read_key).transpose()?;
    let transport = connect(&args.fleet.broker(url))?;
    let connections = plan.connections;
    let parts = dry_run::parts(
        &transport,
        &args.fleet,
        agents,
        connections,
        key.as_ref(),
        &interrupt,
    )
    .map_err(|error| failed(&error, &args.fleet))?;
    print_parts(&parts, plan)
}

fn print_parts(parts: &Shares, plan: &RunPlan) -> Result<Exit, Failed> {
    let rate = plan.average_rate().map(Rate::per_second);
    let count = |share: Share| RunPart::from(share).connections(plan);
    terminal::print(&dry_run::table(
        parts,
        ("workers", "connections"),
        &count,
        rate,
    ))
    .map_err(|error| Problem::caused_by(&error).could_not_run())?;
    Ok(Exit::Fine)
}

/// Goes on with a run whose coordinator is gone.
fn attach(args: &Args, url: &str, run: &str) -> Result<Exit, Failed> {
    let transport = connect(&args.fleet.broker(url))?;
    let found = find_run(&transport, run).map_err(|error| failed(&error, &args.fleet))?;
    if found.order.work == Work::Loadtest {
        let message = format!("run {run} was started by `plimsoll loadtest`");
        return Err(Problem::with("--attach", message)
            .hint(format!("`plimsoll loadtest --fleet URL --attach {run}`"))
            .usage());
    }
    let files = fetch_files(&transport, &found.order);
    let files = files.map_err(|error| Problem::with("--attach", error).could_not_run())?;
    drop(transport);
    let folder = folder_with(&files);
    let folder = folder.map_err(|error| Problem::new(error).could_not_run())?;
    #[cfg(feature = "k6")]
    if let (Work::Script, Some(archive)) = (found.order.work, files.first()) {
        return super::script::attach(&found, &folder.path().join(&archive.name));
    }
    let mut whole = arguments::attached(&found.order.command, folder.path())?;
    // Agents that trust a key hear no coordinator without it.
    whole.fleet.sign.clone_from(&args.fleet.sign);
    let job = Job {
        run: run.to_owned(),
        agents: found.order.shares.len(),
        order: OrderArguments::default(),
        attached: Some(found),
    };
    make(&whole, url, job)
}

/// A run to make, or to go on with.
struct Job {
    run: String,
    agents: usize,
    order: OrderArguments,
    attached: Option<FoundRun>,
}

fn make(args: &Args, url: &str, job: Job) -> Result<Exit, Failed> {
    let fleet = &args.fleet;
    let Job {
        run,
        agents,
        order,
        attached,
    } = job;
    let interrupt = signals::watch().map_err(|error| {
        Problem::new(format!("cannot watch for signals: {error}")).could_not_run()
    })?;
    let folder = args
        .output
        .out
        .as_deref()
        .map(|path| ResultFolder::prepare(path, &super::file_names(args)))
        .transpose()?;
    #[cfg(feature = "lab")]
    let series = super::series::SeriesFile::open(args)?;
    let Prepared {
        compiled, observed, ..
    } = prepare(args, &interrupt)?;
    let Compiled {
        plan,
        thresholds,
        destinations,
        ..
    } = compiled;
    let key = fleet.sign.as_deref().map(read_key).transpose()?;
    if key.is_none() && attached.is_none() {
        check_loopback(url, super::target::is_local(&plan))?;
    }
    let transport = connect(&fleet.broker(url))?;
    let mut push = Push::start(destinations, &args.output.run_name, &plan.url())
        .map_err(|error| Problem::new(format!("cannot start a thread: {error}")).could_not_run())?;
    let mut page = LoadDashboard::start(args, &plan).map_err(Problem::could_not_run)?;
    // The terminal is taken over once there is something to see.
    let live = RefCell::new(None);
    let mut on_note = |note: &Note| {
        let text = show::note(note);
        let mut live = live.borrow_mut();
        match (note, &mut *live) {
            (Note::Starting { .. } | Note::Attached { .. }, live) => {
                terminal::log_line(&text);
                *live = Some(Live::new(args, &plan, &interrupt));
            }
            (Note::BrokerBack { .. }, Some(live)) => live.note(&text, false),
            (_, Some(live)) => live.note(&text, true),
            (_, None) => terminal::log_line(&text),
        }
    };
    let mut on_tick = |standing: &Standing<'_>, agents: &[AgentStanding]| {
        if let Some(live) = &mut *live.borrow_mut() {
            live.show(standing, agents);
        }
        push.tick(standing);
        if let Some(page) = &mut page {
            page.show(standing, agents);
        }
    };
    if attached.is_none() {
        let seconds = fleet.agent_wait.as_secs_f64();
        terminal::log_line(&format!(
            "run {run} waits up to {seconds} s for {agents} agents"
        ));
    }
    if attached.is_none()
        && let Some(line) = log_forecast(&plan, agents, fleet)
    {
        terminal::log_line(&line);
    }
    let mut merger = LoadMerger::new(&plan, &thresholds, &observed, &mut on_tick);
    let outcome = coordinate(
        &transport,
        FleetRun {
            run: run.clone(),
            group: fleet.agent_group.clone(),
            fleet: fleet_plan(fleet, agents, plan.connections),
            program: env!("CARGO_PKG_VERSION").to_owned(),
            work: Work::Load,
            command: order.command,
            files: order.files,
            attached,
            key: key.as_ref(),
            tick_seconds: fleet.fleet_tick.as_secs(),
            most_log_bytes: fleet.fleet_log.0,
            keep: fleet.keep,
            interrupt: Arc::clone(&interrupt),
            on_note: &mut on_note,
        },
        &mut merger,
    );
    let summary = outcome.as_ref().ok().and_then(|outcome| {
        let is_interrupted = interrupt.is_set();
        let facts = facts(&plan, None, &observed);
        merger.finish(&outcome.members, facts, outcome.is_early, is_interrupted)
    });
    if let Some(live) = live.into_inner() {
        live.end();
    }
    if let Some(page) = page {
        page.end();
    }
    let outcome = outcome.map_err(|error| failed(&error, fleet))?;
    let summary = &summary.expect("a run that ended has started");
    let incomplete = outcome.incomplete();
    output::print(args, summary)?;
    if let Some(folder) = folder {
        folder.write(&files::of_run_with(summary, Vec::new()))?;
    }
    output::export(args, summary)?;
    // What is incomplete or was interrupted is not the run that others are.
    #[cfg(feature = "lab")]
    if let Some(series) = series.filter(|_| !summary.interrupted && incomplete.is_empty()) {
        series.append(summary)?;
    }
    terminal::print_warnings(&push.finish(summary));
    terminal::print_notes(&show::kept(fleet, &run, &outcome));
    Ok(match verdict(summary) {
        Exit::Interrupted => Exit::Interrupted,
        _ if !incomplete.is_empty() => Exit::Incomplete,
        other => other,
    })
}

/// Says so if the ticks of a run may be more than its log takes.
fn log_forecast(plan: &RunPlan, agents: usize, fleet: &FleetArgs) -> Option<String> {
    let seconds = plan.stop.duration? + plan.warm_up;
    let per_second = match &plan.pacing {
        Pacing::Open { profile, .. } => Some(profile.average(seconds).per_second() / agents as f64),
        Pacing::Closed { .. } => None,
    };
    let kinds = if plan.requests.len() > 1 {
        plan.requests.len()
    } else {
        0
    };
    let every = fleet.fleet_tick.as_secs();
    let bytes = tick_bytes(per_second.map(|rate| rate * every as f64), kinds);
    let ticks = Duration::from_secs(seconds.as_secs().div_ceil(every));
    show::log_forecast(agents, ticks, bytes, fleet.fleet_log)
}

/// How a coordinator reaches its broker.
///
/// - `name`: of the program, for the broker's list of connections.
pub(crate) fn broker_plan(args: &FleetArgs, url: &str, name: &str) -> NatsPlan {
    NatsPlan {
        name: name.to_owned(),
        ..args.broker(url)
    }
}

/// Connects to a broker. Both commands of a fleet connect by this.
pub(crate) fn connect(plan: &NatsPlan) -> Result<NatsTransport, Failed> {
    NatsTransport::connect(plan).map_err(|error| {
        let hint = if error.reason.contains("authorization violation") {
            "give its credentials: USER:PASSWORD@ in the URL, or a file"
        } else {
            "start it with `nats-server -js`, or correct host and port"
        };
        Problem::caused_by(&error).hint(hint).could_not_run()
    })
}

/// Whether a broker is on this machine.
pub(crate) fn is_on_loopback(url: &str) -> bool {
    let host = Url::parse(url)
        .ok()
        .and_then(|url| Some(url.host_str()?.to_owned()));
    host.is_some_and(|host| {
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let address = host.parse::<std::net::IpAddr>();
        host == "localhost" || address.is_ok_and(|address| address.is_loopback())
    })
}

pub(crate) fn check_loopback(url: &str, is_local: Option<bool>) -> Result<(), Failed> {
    if is_on_loopback(url) && is_local == Some(true) {
        return Ok(());
    }
    Err(
        Problem::with("--fleet", "needs --sign KEY unless broker and target are on this machine")
            .hint("`openssl genpkey -algorithm ed25519 -out key.pem` makes a key; docs/fleet.md says what agents need of it")
            .usage(),
    )
}

pub(crate) fn read_key(path: &std::path::Path) -> Result<SigningKey, Failed> {
    let wrong =
        |reason: String| Problem::with("--sign", format!("{}: {reason}", path.display())).usage();
    let text = fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
    SigningKey::parse(&text).map_err(|error| wrong(error.to_string()))
}

pub(crate) fn fleet_plan(args: &FleetArgs, agents: usize, connections: usize) -> FleetPlan {
    FleetPlan {
        agents,
        agent_wait: args.agent_wait,
        ready_wait: flags::READY_WAIT,
        agent_timeout: args.agent_timeout,
        broker_timeout: args.broker_timeout,
        goes_on_without: args.on_agent_loss == OnAgentLoss::Continue,
        most_spread: args.most_spread,
        connections,
        is_dry: false,
    }
}

pub(crate) fn failed(error: &FleetError, args: &FleetArgs) -> Failed {
    let problem = Problem::caused_by(error);
    let problem = match error {
        FleetError::NotStarted(NotStarted::TooFew { .. }) => {
            problem.about("--agents").hint(format!(
                "start more with `plimsoll agent --nats URL`{}, or wait longer (--agent-wait TIME)",
                if args.agent_group == flags::DEFAULT_GROUP {
                    String::new()
                } else {
                    format!(" --group {}", args.agent_group)
                }
            ))
        }
        FleetError::NotStarted(NotStarted::TooMany { .. }) => {
            problem.about("--agents").hint("lower --agents or raise -c")
        }
        FleetError::NotStarted(NotStarted::SameName { .. }) => problem.about("--agents").hint(
            "give each agent a name of its own (`plimsoll agent --name NAME`), or none: the default is unlike any other",
        ),
        FleetError::NeverStarted(_) | FleetError::NoRun(_) => problem.about("--attach").hint(
            "start it again; a run that has ended leaves nothing on the broker but with --keep",
        ),
        FleetError::NotStarted(NotStarted::Spread { .. }) => {
            problem.hint("allow more with --most-spread TIME")
        }
        FleetError::NotStarted(NotStarted::Interrupted) => {
            return Failed {
                exit: Exit::Interrupted,
                problems: vec![problem],
            };
        }
        _ => problem,
    };
    problem.could_not_run()
}
