//! `plimsoll loadtest --fleet`: agents on other machines share the checks, each against its own origins.

use std::sync::Arc;
use std::time::Duration;

use plimsoll_fleet::{
    Argument, FleetRun, FoundRun, LoadtestEnd, LoadtestMerger, Note, SigningKey, Work, coordinate,
    find_run, new_run_name,
};
use plimsoll_load::Interrupt;
use plimsoll_model::{AgentStanding, LoadtestShape, LoadtestSummary, LoadtestTick};

use super::args::{Args, HarnessArgs};
use super::layout::connections;
use super::lines::Lines;
use super::{part, print, verdict};
use crate::commands::load::fleet::flags::FleetArgs;
use crate::commands::load::fleet::{
    broker_plan, check_loopback, connect, dry_run, failed, fleet_plan, read_key, show,
};
use crate::exit::Exit;
use crate::problem::{Failed, Problem};
use crate::{signals, terminal};

/// Time between two ticks of an agent.
const TICK: Duration = Duration::from_secs(1);

/// A run to make, or to go on with.
struct Job {
    harness: HarnessArgs,
    run: String,
    agents: usize,
    attached: Option<FoundRun>,
    key: Option<SigningKey>,
}

/// Makes the run over the agents of a broker.
///
/// - `url`: of the broker.
pub(super) fn run(args: &Args, url: &str) -> Result<Exit, Failed> {
    let fleet = &args.fleet;
    refuse_flags_of_load(fleet)?;
    let interrupt = signals::watch().map_err(|error| {
        Problem::new(format!("cannot watch for signals: {error}")).could_not_run()
    })?;
    let key = fleet.sign.as_deref().map(read_key).transpose()?;
    if let Some(run) = &fleet.attach {
        let found = found(args, url, run)?;
        let job = Job {
            harness: part::args_of(&found.order)
                .map_err(|error| Problem::with("--attach", error).could_not_run())?,
            run: run.clone(),
            agents: found.order.shares.len(),
            attached: Some(found),
            key,
        };
        return make(args, url, job, &interrupt);
    }
    let agents = fleet.agents.ok_or_else(|| {
        Problem::with("--fleet", "needs the number of agents")
            .hint("write for example --agents 4")
            .usage()
    })?;
    if key.is_none() {
        // Each agent checks its own servers.
        check_loopback(url, Some(true))?;
    }
    if fleet.dry_run {
        return dry(args, url, agents, key.as_ref(), &interrupt);
    }
    let harness = HarnessArgs::parse(&args.harness.words());
    let job = Job {
        harness: harness.map_err(|error| Problem::new(error).usage())?,
        run: new_run_name(),
        agents,
        attached: None,
        key,
    };
    make(args, url, job, &interrupt)
}

fn refuse_flags_of_load(fleet: &FleetArgs) -> Result<(), Failed> {
    if fleet.kubernetes.kubernetes.is_some() {
        return Err(Problem::with("--kubernetes", "goes with `load` only").usage());
    }
    if fleet.fleet_tick != TICK {
        let message = "goes with `load` only: agents that make checks send a tick a second";
        return Err(Problem::with("--fleet-tick", message).usage());
    }
    Ok(())
}

/// The run whose coordinator is gone.
fn found(args: &Args, url: &str, run: &str) -> Result<FoundRun, Failed> {
    let transport = connect(&broker_plan(&args.fleet, url, "plimsoll loadtest"))?;
    let found = find_run(&transport, run).map_err(|error| failed(&error, &args.fleet))?;
    if found.order.work == Work::Loadtest {
        return Ok(found);
    }
    let message = format!("run {run} was started by `plimsoll load`");
    Err(Problem::with("--attach", message)
        .hint(format!("`plimsoll load --fleet URL --attach {run}`"))
        .usage())
}

/// Prints which agent would have how many workers.
fn dry(
    args: &Args,
    url: &str,
    agents: usize,
    key: Option<&SigningKey>,
    interrupt: &Arc<Interrupt>,
) -> Result<Exit, Failed> {
    let fleet = &args.fleet;
    let transport = connect(&broker_plan(fleet, url, "plimsoll loadtest"))?;
    let total = args.harness.concurrency;
    let parts = dry_run::parts(&transport, fleet, agents, total, key, interrupt);
    let parts = parts.map_err(|error| failed(&error, fleet))?;
    let count = |share: plimsoll_fleet::Share| share.part_of(total);
    terminal::print(&dry_run::table(&parts, ("cores", "workers"), &count, None))
        .map_err(|error| Problem::caused_by(&error).could_not_run())?;
    Ok(Exit::Fine)
}

fn make(args: &Args, url: &str, job: Job, interrupt: &Arc<Interrupt>) -> Result<Exit, Failed> {
    let fleet = &args.fleet;
    let Job {
        harness,
        run,
        agents,
        attached,
        key,
    } = job;
    let transport = connect(&broker_plan(fleet, url, "plimsoll loadtest"))?;
    if attached.is_none() {
        let seconds = fleet.agent_wait.as_secs_f64();
        terminal::log_line(&format!(
            "run {run} waits up to {seconds} s for {agents} agents"
        ));
    }
    let mut on_note = |note: &Note| terminal::log_line(&show::note(note));
    let mut lines = Lines::new(args.output.no_tui);
    let mut on_tick = |tick: LoadtestTick, agents: &[AgentStanding]| {
        lines.show_agents(tick, agents);
    };
    let workers = harness.concurrency;
    let mut merger = LoadtestMerger::new(workers, &mut on_tick);
    let outcome = coordinate(
        &transport,
        FleetRun {
            run: run.clone(),
            group: fleet.agent_group.clone(),
            fleet: fleet_plan(fleet, agents, workers),
            program: env!("CARGO_PKG_VERSION").to_owned(),
            work: Work::Loadtest,
            command: harness.words().into_iter().map(Argument::Text).collect(),
            files: Vec::new(),
            attached,
            key: key.as_ref(),
            tick_seconds: TICK.as_secs(),
            most_log_bytes: fleet.fleet_log.0,
            keep: fleet.keep,
            interrupt: Arc::clone(interrupt),
            on_note: &mut on_note,
        },
        &mut merger,
    );
    let outcome = outcome.map_err(|error| failed(&error, fleet))?;
    let end = merger.finish(&outcome.members);
    let end = end.expect("a run that ended has started");
    let summary = summary(&harness, end, lines.into_ticks(), interrupt.is_set());
    print(args, &summary)?;
    terminal::print_notes(&show::kept(fleet, &run, &outcome));
    Ok(match verdict(&summary) {
        Exit::Interrupted => Exit::Interrupted,
        _ if !outcome.incomplete().is_empty() => Exit::Incomplete,
        other => other,
    })
}

fn summary(
    args: &HarnessArgs,
    end: LoadtestEnd,
    ticks: Vec<LoadtestTick>,
    interrupted: bool,
) -> LoadtestSummary {
    let processes = end.processes;
    LoadtestSummary {
        shape: LoadtestShape {
            protocol: args.protocol(),
            connections: connections(args.http2, args.disable_keepalive),
            workers: args.concurrency,
            listeners: processes.listeners,
            client_processes: processes.clients,
            origin_processes: processes.origins,
            processes: processes.clients + processes.origins + end.agents.len(),
            duration: args.duration,
            ramp: args.ramp(),
            timeout: args.timeout,
            own_network: false,
        },
        elapsed: end.elapsed,
        found: end.found,
        ticks,
        peak_memory_bytes: end.peak_memory_bytes,
        interrupted,
        agents: end.agents,
        cautions: end.cautions,
    }
}
