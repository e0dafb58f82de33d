//! A script whose iterations agents make: `setup()`, thresholds, summary and `teardown()` are here.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use plimsoll_fleet::{
    Argument, Checksum, Counted, FleetError, FleetOutcome, FleetRun, FoundRun, MemberEnd,
    MemberSecond, Merger, NatsTransport, NotStarted, Note, OrderFile, PartSums, SetUp, Shares,
    UnionError, Work, coordinate, new_run_name, tick_bytes, together,
};
use plimsoll_k6::{
    ExitCode as K6ExitCode, Invocation, LineSource, Overrides, PartFigures, PartsEnd,
    PreparedParts, RunServers, ScriptParts, ScriptUnion, inspect,
};
use plimsoll_load::scenario::UserError;
use plimsoll_load::{Interrupt, Interval, UnionSecond};
use plimsoll_model::{Clock as _, with_causes};
use plimsoll_script::Level;
use plimsoll_wire::SystemClock;

use super::super::script::Failure;
use super::super::script::flags::{Mode, RunFlags};
use super::super::script::load::Loaded;
use super::super::script::outputs;
use super::flags::FleetArgs;
use super::script_part::{RECORDS, flags_of, part_figures, script_figures};
use super::{check_loopback, connect, fleet_plan, read_key, show};
use super::{dry_run, kubernetes};
use crate::exit::Exit;
use crate::problem::{Failed, Problem};
use crate::terminal;

/// Time between two looks at thresholds and the view.
const TICK_EVERY: Duration = Duration::from_secs(1);

/// Trends of a script beside those that a plain load has, about; and what exchanges add, with those of each name.
const HISTOGRAMS: usize = 1;
const HISTOGRAMS_OF_EXCHANGES: usize = 2;

/// Agents that make the iterations of a script.
pub(crate) struct ScriptFleet<'a> {
    transport: NatsTransport,
    args: &'a FleetArgs,
    agents: usize,
    command: Vec<Argument>,
    /// Absent of a run that is taken over.
    archive: Option<OrderFile>,
    attached: Option<FoundRun>,
    most_users: usize,
    /// Whether the coordinator makes a record of the exchanges.
    records: bool,
    /// Until the last iteration is interrupted.
    duration: Duration,
    interrupt: Arc<Interrupt>,
    listener: FleetListener<'a>,
    /// The name of the run, and how it ended.
    outcome: RefCell<Option<(String, FleetOutcome)>>,
}

/// What is to be known of a run behind its summary.
pub(crate) struct FleetEnd {
    /// The agents side by side.
    pub(crate) agents: String,
    /// The exit code in place of k6's, if figures are missing.
    pub(crate) exit: Option<Exit>,
    pub(crate) notes: Vec<Problem>,
}

/// Callbacks of a run.
#[derive(Clone, Copy)]
pub(crate) struct FleetListener<'a> {
    /// Gets lines for the user.
    pub(crate) log: &'a dyn Fn(&str),
    /// All agents are there, and `setup()` is next.
    pub(crate) begins: &'a dyn Fn(),
}

impl<'a> ScriptFleet<'a> {
    /// - `broker`: the flags about the fleet, and the URL of the broker.
    /// - `made`: the options of the command line.
    /// - `records`: whether the exchanges are recorded, for result files.
    ///
    /// `None` if nothing is to be started: who would make what is printed (`--dry-run`).
    pub(crate) fn new(
        (args, url): (&'a FleetArgs, &str),
        flags: &RunFlags,
        loaded: &Loaded,
        (made, records): (Overrides, bool),
        interrupt: &Arc<Interrupt>,
        listener: FleetListener<'a>,
    ) -> Result<Option<Self>, Failure> {
        let config = |problem: Problem| (problem, K6ExitCode::InvalidConfig);
        let other = |problem: Problem| (problem, K6ExitCode::Other);
        if args.attach.is_some() {
            let problem = Problem::with("--attach", "goes on with the script of the run")
                .hint("leave the script out: the broker has it");
            return Err(config(problem));
        }
        let Some(agents) = args.agents else {
            return Err(config(Problem::with("--fleet", "needs --agents N")));
        };
        if args.fleet_tick != TICK_EVERY {
            let message =
                "goes with plain loads only: agents that run scripts send a tick a second";
            return Err(config(Problem::with("--fleet-tick", message)));
        }
        if args.sign.is_none() {
            // What a script connects to is known when it runs: unsigned ones reach loopback only.
            let checked = check_loopback(url, Some(true));
            checked.map_err(|failed| config(failed.into_first()))?;
        }
        let (archive, most_vus, duration) = archive_of(flags, loaded, made)?;
        let transport = connect(&args.broker(url));
        if args.dry_run {
            let transport = transport.map_err(|failed| other(failed.into_first()))?;
            let key = args.sign.as_deref().map(read_key).transpose();
            let key = key.map_err(|failed| config(failed.into_first()))?;
            let parts = dry_run::parts(&transport, args, agents, most_vus, key.as_ref(), interrupt);
            let parts = parts.map_err(|error| other(Problem::caused_by(&error)))?;
            print_parts(&parts, most_vus)?;
            return Ok(None);
        }
        let mut command = flags_of_agents(flags);
        command.extend(records.then(|| RECORDS.to_owned()));
        Ok(Some(Self {
            transport: transport.map_err(|failed| other(failed.into_first()))?,
            args,
            agents,
            command: command.into_iter().map(Argument::Text).collect(),
            archive: Some(archive),
            attached: None,
            most_users: most_vus,
            records,
            duration,
            interrupt: Arc::clone(interrupt),
            listener,
            outcome: RefCell::new(None),
        }))
    }

    /// Goes on with a run whose coordinator is gone.
    ///
    /// - `broker`, `records`: as of a new one.
    pub(crate) fn attached(
        (args, url): (&'a FleetArgs, &str),
        found: &FoundRun,
        records: bool,
        interrupt: &Arc<Interrupt>,
        listener: FleetListener<'a>,
    ) -> Result<Self, Failure> {
        let other = |problem: Problem| (problem, K6ExitCode::Other);
        let (_, has_exchanges) = flags_of(&found.order)
            .map_err(|error| other(Problem::with("--attach", error.to_string())))?;
        if records && !has_exchanges {
            let message = "needs the exchanges, and the run was started without --out";
            return Err((Problem::with("--out", message), K6ExitCode::InvalidConfig));
        }
        let transport = connect(&args.broker(url));
        Ok(Self {
            transport: transport.map_err(|failed| other(failed.into_first()))?,
            args,
            agents: found.order.shares.len(),
            command: Vec::new(),
            archive: None,
            attached: Some(found.clone()),
            most_users: 0,
            records,
            duration: Duration::ZERO,
            interrupt: Arc::clone(interrupt),
            listener,
            outcome: RefCell::new(None),
        })
    }

    /// Says what the run waits for, and whether its log may be too small.
    fn announce(&self, run: &str) {
        let seconds = self.args.agent_wait.as_secs_f64();
        let agents = self.agents;
        (self.listener.log)(&format!(
            "run {run} waits up to {seconds} s for {agents} agents"
        ));
        let histograms = if self.records {
            HISTOGRAMS + HISTOGRAMS_OF_EXCHANGES
        } else {
            HISTOGRAMS
        };
        let bytes = tick_bytes(None, histograms);
        let forecast = show::log_forecast(agents, self.duration, bytes, self.args.fleet_log);
        if let Some(line) = forecast {
            (self.listener.log)(&line);
        }
    }

    /// How the run ended; `None` if it did not start.
    pub(crate) fn ended(self) -> Option<FleetEnd> {
        let (run, outcome) = self.outcome.into_inner()?;
        // A signal has an exit code of its own, with any figures.
        let is_incomplete = !outcome.incomplete().is_empty() && !self.interrupt.is_set();
        Some(FleetEnd {
            agents: show::agents(&outcome, "iterations", "requests"),
            exit: is_incomplete.then_some(Exit::Incomplete),
            notes: show::kept(self.args, &run, &outcome),
        })
    }
}

impl ScriptParts for ScriptFleet<'_> {
    fn run(&self, union: &mut ScriptUnion<'_, '_, '_>) -> Result<(), UserError> {
        let key = self.args.sign.as_deref().map(read_key).transpose();
        let key = key.map_err(|failed| super::make_part::text(&failed))?;
        let mut on_note = |note: &Note| (self.listener.log)(&show::note(note));
        let run = match &self.attached {
            Some(found) => found.order.run.clone(),
            None => new_run_name(),
        };
        if self.attached.is_none() {
            self.announce(&run);
        }
        let mut merger = ScriptMerger {
            union,
            begins: self.listener.begins,
            next_tick: None,
            sums: None,
        };
        let outcome = coordinate(
            &self.transport,
            FleetRun {
                run: run.clone(),
                group: self.args.agent_group.clone(),
                fleet: fleet_plan(self.args, self.agents, self.most_users),
                program: env!("CARGO_PKG_VERSION").to_owned(),
                work: Work::Script,
                tick_seconds: 1,
                command: self.command.clone(),
                files: self.archive.iter().cloned().collect(),
                attached: self.attached.clone(),
                key: key.as_ref(),
                most_log_bytes: self.args.fleet_log.0,
                keep: self.args.keep,
                interrupt: Arc::clone(&self.interrupt),
                on_note: &mut on_note,
            },
            &mut merger,
        );
        let ScriptMerger { union, sums, .. } = merger;
        union.look();
        match outcome {
            Ok(outcome) => {
                union.tick(true);
                union.conclude(parts_end(&outcome.members, sums));
                for member in &outcome.members {
                    let report = member.report.as_ref();
                    if let Some(message) = report.and_then(|report| report.abort()) {
                        union.abort(message);
                    }
                    if let Some(message) = report.and_then(|report| report.failed()) {
                        union.fail(message);
                    }
                }
                // A record has it among its cautions.
                for lack in outcome.incomplete().iter().filter(|_| !self.records) {
                    (self.listener.log)(&format!("incomplete: {lack}"));
                }
                self.outcome.replace(Some((run, outcome)));
                Ok(())
            }
            // What came of `setup()` says it all.
            Err(FleetError::NotStarted(NotStarted::SetUp(_) | NotStarted::Interrupted))
                if union.has_failed() || union.is_over() =>
            {
                Ok(())
            }
            Err(error) => Err(with_causes(&error).into()),
        }
    }
}

struct ScriptMerger<'u, 'a, 'b, 'c> {
    union: &'u mut ScriptUnion<'a, 'b, 'c>,
    begins: &'u dyn Fn(),
    next_tick: Option<Instant>,
    /// Once the run has started.
    sums: Option<PartSums>,
}

impl Merger for ScriptMerger<'_, '_, '_, '_> {
    fn set_up(&mut self) -> Result<SetUp, UnionError> {
        (self.begins)();
        let prepared = self.union.prepare();
        let prepared = prepared.ok_or_else(|| UnionError::Other("setup() has failed".into()))?;
        Ok(SetUp {
            took_us: u64::try_from(prepared.took.as_micros()).unwrap_or(u64::MAX),
            failed: prepared.failed,
            figures: Some(Box::new(script_figures(&prepared.figures))),
            data: prepared.data,
        })
    }

    fn take_over(&mut self, set_up: &SetUp, started: SystemTime) -> Result<(), UnionError> {
        let figures = set_up.figures.as_deref().map(part_figures).transpose()?;
        let prepared = PreparedParts {
            data: set_up.data.clone(),
            took: Duration::from_micros(set_up.took_us),
            failed: set_up.failed.clone(),
            figures: figures.unwrap_or_default(),
        };
        let taken = self.union.take_over(&prepared, started);
        taken.map_err(|error| UnionError::Other(Box::new(error)))
    }

    fn begin(&mut self, shares: &Shares, started: SystemTime) {
        let parts = shares
            .iter()
            .map(|(name, share)| (name.clone(), share.workers));
        self.union.begin(&parts.collect::<Vec<_>>(), started);
        self.sums = Some(PartSums::new(shares));
        self.next_tick = Some(SystemClock.now() + TICK_EVERY);
    }

    fn merge_second(&mut self, second: &MemberSecond) -> Result<Checksum, UnionError> {
        let Counted::Script(script) = &second.figures else {
            return Err(UnionError::Kind);
        };
        let figures = PartFigures {
            at: Duration::from_micros(second.at_us),
            is_last: second.is_last,
            ..part_figures(script)?
        };
        if let Some(sums) = &mut self.sums {
            for exchanged in figures.exchanges.iter().flat_map(|it| &it.seconds) {
                sums.add(&UnionSecond {
                    part: second.member,
                    at: exchanged.at,
                    grace: false,
                    is_last: exchanged.is_last,
                    interval: Interval::clone(&exchanged.interval),
                });
            }
        }
        let merged = self.union.merge_part(second.member, &figures);
        merged.map_err(|error| UnionError::Other(Box::new(error)))?;
        Ok(Checksum::of_script(script))
    }

    fn give_up(&mut self, member: usize) {
        self.union.give_up(member);
        if let Some(sums) = &mut self.sums {
            sums.give_up(member);
        }
    }

    fn look(&mut self) -> Option<String> {
        self.union.look();
        let now = SystemClock.now();
        if let Some(due) = self.next_tick.filter(|due| now >= *due) {
            self.union.tick(false);
            self.next_tick = Some(due + TICK_EVERY);
        }
        let is_over = self.union.is_over();
        is_over.then(|| "a threshold was breached, or a signal has come".to_owned())
    }
}

/// How the agents ended, side by side.
fn parts_end(members: &[MemberEnd], sums: Option<PartSums>) -> PartsEnd {
    let reports = members.iter().map(|member| {
        let report = member.report.as_ref()?;
        Some(report.read(Interval::new(0, false)))
    });
    let reports: Vec<_> = reports.collect();
    let agents = sums.map(|sums| sums.figures(members, &reports));
    let agents = agents.unwrap_or_default();
    let lacks = members.iter().filter_map(MemberEnd::lack);
    PartsEnd {
        cautions: together(&agents),
        agents,
        lacks: lacks.map(|lack| format!("incomplete: {lack}")).collect(),
        reports: reports.into_iter().flatten().collect(),
    }
}

/// The script with all that it loads, the most virtual users that it has, and how long it takes.
fn archive_of(
    flags: &RunFlags,
    loaded: &Loaded,
    made: Overrides,
) -> Result<(OrderFile, usize, Duration), Failure> {
    let other = |problem: Problem| (problem, K6ExitCode::Other);
    let goes_on = || false;
    let quiet = Arc::new(|_: Level, _: &str, _: LineSource| {});
    let inspected = inspect(&Invocation {
        overrides: made,
        exact_trends: flags.exact_trends,
        servers: RunServers::Elsewhere,
        ..loaded.invocation(quiet, &goes_on)
    });
    let inspected = inspected.map_err(|outcome| {
        let message = "the script cannot be initialised; run it without --fleet to see why";
        let text = if outcome.message.is_empty() {
            message.to_owned()
        } else {
            outcome.message
        };
        (Problem::new(text), outcome.exit)
    })?;
    let mut content = Vec::new();
    inspected.archive.write(&mut content).map_err(|error| {
        other(Problem::new(format!(
            "cannot write the archive of the script: {error}"
        )))
    })?;
    let archive = OrderFile {
        name: "archive.tar".to_owned(),
        content,
    };
    let most_users = usize::try_from(inspected.plan.most_vus).unwrap_or(usize::MAX);
    Ok((archive, most_users, inspected.plan.duration))
}

/// Prints the manifests of a script's run in a cluster, or who would make which part.
pub(crate) fn in_cluster(
    (args, url): (&FleetArgs, &str),
    flags: &RunFlags,
    loaded: &Loaded,
    made: Overrides,
) -> Result<(), Failure> {
    let config = |failed: Failed| (failed.into_first(), K6ExitCode::InvalidConfig);
    let (archive, most_users, _) = archive_of(flags, loaded, made)?;
    let kubernetes = &args.kubernetes;
    if args.dry_run {
        let agents = kubernetes.kubernetes.unwrap_or(1);
        let parts = dry_run::parts_of_pods(agents, kubernetes.kubernetes_cpu, most_users);
        let parts = parts.map_err(|_| config(super::too_many_pods(agents, most_users)))?;
        return print_parts(&parts, most_users);
    }
    if kubernetes.kubernetes_allow.is_empty() {
        let problem = Problem::with("--kubernetes", "needs the hosts that the script loads")
            .hint("name them: --kubernetes-allow shop.example.org");
        return Err((problem, K6ExitCode::InvalidConfig));
    }
    let mut command: Vec<_> = flags_of_agents(flags)
        .into_iter()
        .map(Argument::Text)
        .collect();
    command.push(Argument::File(match kubernetes.kubernetes_folder {
        Some(_) => "0-archive.tar".to_owned(),
        None => archive.name.clone(),
    }));
    let run = kubernetes::cluster_run(args, url, command, vec![archive], Vec::new());
    let printed = run.and_then(|run| kubernetes::print_run(&run));
    printed.map(drop).map_err(config)
}

/// Prints who would make which part.
fn print_parts(parts: &Shares, most_users: usize) -> Result<(), Failure> {
    // As execution segments round.
    let segment = |share: plimsoll_fleet::Share| share.part_of(most_users);
    terminal::print(&dry_run::table(
        parts,
        ("workers", "virtual users"),
        &segment,
        None,
    ))
    .map_err(|error| (Problem::caused_by(&error), K6ExitCode::Other))
}

/// Flags that agents need beside the archive.
fn flags_of_agents(flags: &RunFlags) -> Vec<String> {
    let all = [
        (flags.http2, "--http2"),
        (flags.http3, "--http3"),
        (flags.exact_trends, "--exact-trends"),
    ];
    let given = all.into_iter().filter(|(is_given, _)| *is_given);
    given.map(|(_, flag)| flag.to_owned()).collect()
}

/// Refuses flags that need the samples or the processes of one machine.
///
/// - `named`: the outputs.
pub(crate) fn refuse_of_one_machine(
    flags: &RunFlags,
    named: &[String],
    threads: Option<usize>,
    args: Option<&FleetArgs>,
) -> Result<(), Problem> {
    let is_full = flags.source.summary_mode == Some(Mode::Full);
    let given = [
        ("--pid", flags.pid.is_some()),
        ("--address", flags.global.address.is_some()),
        ("--summary-mode full", is_full),
        ("--threads", threads.is_some()),
        ("--secret-source", !flags.global.secret_sources.is_empty()),
    ];
    if let Some((flag, _)) = given.into_iter().find(|(_, is_given)| *is_given) {
        return Err(Problem::with(flag, "does not go with --fleet"));
    }
    if let Some(output) = outputs::of_samples(named) {
        let message = format!("`{output}` does not go with --fleet: agents send no single samples");
        return Err(Problem::with("--out", message).hint("write result files: --out DIR"));
    }
    let is_in_cluster = args.is_some_and(|args| args.kubernetes.kubernetes.is_some());
    let of_files = [
        ("--out", !named.is_empty()),
        ("--dashboard", flags.dashboard.is_some()),
    ];
    match of_files.into_iter().find(|(_, is_given)| *is_given) {
        Some((flag, _)) if is_in_cluster => {
            let message = "does not go with --kubernetes: what it writes would end with the pod";
            Err(Problem::with(flag, message))
        }
        _ => Ok(()),
    }
}
