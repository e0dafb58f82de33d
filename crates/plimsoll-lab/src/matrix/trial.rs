//! One trial: a target is started, loaded once and ended.

use std::io;
use std::net::TcpListener;
use std::time::{Duration, Instant};

use plimsoll_load::Interrupt;
use plimsoll_load::target::ProcessTree;
use plimsoll_model::Clock;
use plimsoll_wire::SystemClock;
use plimsoll_wire::process::Finished;
use serde::{Deserialize, Serialize};

use super::order::Turn;
use super::plan::{
    Limited, LoadPlan, Loader, MatrixPlan, ProcessPlan, SizePlan, TargetPlan, fill, parse_url,
};
use super::usage::{Usage, Watched, saturated};
use crate::cgroup::{Group, Groups};
use crate::command::Command;
use crate::counts;
use crate::server::{self, Running, ServerError, on_own_lines};

/// One trial and what it came to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// The target's name.
    pub target: String,
    /// The load's name.
    pub load: String,
    /// The size's name.
    pub size: String,
    /// Which one of its cell, from 0.
    pub round: u32,
    /// What it came to.
    pub outcome: Outcome,
}

/// What a trial came to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Outcome {
    /// The load ran to its end.
    Measured(Box<Figures>),
    /// The kernel killed a process because it was out of memory.
    Killed {
        /// `target`, `generator`, `upstream` and its name, or `a process of the target`.
        who: String,
        /// How long after the start of the trial that was seen, in microseconds.
        after_us: u64,
        /// The largest memory of the target that was seen, in bytes.
        peak_memory_bytes: u64,
    },
    /// It could not be made; it is tried again when the plan is run again.
    Failed {
        /// Why.
        reason: String,
    },
}

/// What a load came to, seen from all sides.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// Whose output it was counted from.
    pub source: String,
    /// Complete responses.
    pub ok: u64,
    /// Requests without one, and whatever else the tool calls an error.
    pub errors: u64,
    /// Complete responses per second.
    pub requests_per_second: f64,
    /// Mean latency in microseconds, if the tool tells; of an open loop from the intended start.
    pub mean_us: Option<f64>,
    /// Median latency.
    pub p50_us: Option<f64>,
    /// 99th percentile.
    pub p99_us: Option<f64>,
    /// What the target used.
    pub target: Option<Usage>,
    /// What the generator used.
    pub generator: Option<Usage>,
    /// What each upstream used.
    pub upstreams: Vec<Usage>,
    /// Who was at the limit: names of sides, or `machine`; empty if nobody was.
    pub saturated: Vec<String>,
}

/// A finished trial with what its tool printed.
#[derive(Debug)]
pub(super) struct Finale {
    pub(super) trial: Trial,
    pub(super) output: String,
}

/// The user asked to stop.
#[derive(Debug)]
pub(super) struct Interrupted;

/// What all trials share.
#[derive(Debug)]
pub(super) struct Bench<'a> {
    pub(super) plan: &'a MatrixPlan,
    /// This program, which makes loads.
    pub(super) plimsoll: &'a str,
    /// Where bounds can be set, if any size asks for them.
    pub(super) groups: Option<&'a Groups>,
    pub(super) machine_cores: usize,
    pub(super) interrupt: &'a Interrupt,
}

/// How often everything is looked at.
const LOOK: Duration = Duration::from_millis(50);

/// How long a process that was killed may take to be gone.
const LAST_BREATH: Duration = Duration::from_millis(500);

/// Part of the window over which use is measured: the generator must not be gone at its end.
const OBSERVED: f64 = 0.95;

impl Bench<'_> {
    /// Runs the trial of `turn`; everything that it started has ended afterwards.
    pub(super) fn trial(&self, turn: Turn) -> Result<Finale, Interrupted> {
        let plan = self.plan;
        let target = &plan.targets[turn.cell.target];
        let load = &plan.loads[turn.cell.load];
        let size = &plan.sizes[turn.cell.size];
        let mut output = String::new();
        let outcome = match self.measure(target, load, size, &mut output) {
            Ok(outcome) => outcome,
            Err(TrialError::Interrupted) => return Err(Interrupted),
            Err(TrialError::Failed(reason)) => Outcome::Failed { reason },
        };
        Ok(Finale {
            trial: Trial {
                target: target.name.clone(),
                load: load.name.clone(),
                size: size.name.clone(),
                round: turn.round,
                outcome,
            },
            output,
        })
    }

    fn measure(
        &self,
        target: &TargetPlan,
        load: &LoadPlan,
        size: &SizePlan,
        output: &mut String,
    ) -> Result<Outcome, TrialError> {
        let begun = SystemClock.now();
        let group = self.group(size)?;
        let bounds = |limited: Limited| match size.limited {
            Limited::Both => group.as_ref(),
            only if only == limited => group.as_ref(),
            _ => None,
        };
        let ports = ports(target)?;
        let mut sides = Sides {
            size,
            machine_cores: self.machine_cores,
            upstreams: Vec::new(),
            target: None,
        };
        let started = sides.start(self, target, &ports, bounds(Limited::Target));
        if let Err(error) = started {
            return sides.killed(group.as_ref(), begun, None).ok_or(error);
        }
        let url = fill(&target.url, &ports);
        let connections = size.connections.unwrap_or(load.connections);
        let mut generator = Generator {
            bench: self,
            load,
            connections,
            url: &url,
            group: bounds(Limited::Generator),
        };
        let ran = generator.run(&mut sides, group.as_ref());
        let ended = ran.as_ref().ok().map(|ran| ran.finished);
        if let Some(killed) = sides.killed(group.as_ref(), begun, ended) {
            return Ok(killed);
        }
        let ran = ran?;
        *output = ran.output;
        if let Some(dead) = sides.dead() {
            return Err(TrialError::Failed(dead));
        }
        let status = ran.finished.status;
        // Ours says so by this code when responses were not as they should be: errors, to be counted.
        let is_judged = matches!(load.loader, Loader::Plimsoll(_)) && status.code() == Some(1);
        if !status.success() && !is_judged {
            let complaint = ran.complaint;
            return Err(TrialError::Failed(format!(
                "the generator failed ({status}){complaint}"
            )));
        }
        let figures = figures(output, ran.length, &sides, ran.generator)?;
        Ok(Outcome::Measured(Box::new(figures)))
    }

    fn group(&self, size: &SizePlan) -> Result<Option<Group>, TrialError> {
        let Some(groups) = self.groups.filter(|_| size.is_limited()) else {
            return Ok(None);
        };
        // Nobody else has this name: the process is ours and has one trial at a time.
        let name = format!("plimsoll-lab-{}", std::process::id());
        let made = groups.make(&name, size.allowance());
        made.map(Some)
            .map_err(|error| TrialError::Failed(error.to_string()))
    }
}

enum TrialError {
    Interrupted,
    Failed(String),
}

impl From<ServerError> for TrialError {
    fn from(error: ServerError) -> Self {
        match error {
            ServerError::Interrupted => Self::Interrupted,
            error => Self::Failed(with_causes(&error)),
        }
    }
}

fn with_causes(error: &dyn std::error::Error) -> String {
    plimsoll_model::document::with_causes(error)
}

/// A free port for the target and for each upstream, by the names of their placeholders.
fn ports(target: &TargetPlan) -> Result<Vec<(String, String)>, TrialError> {
    let none = |error: io::Error| TrialError::Failed(format!("cannot find a free port: {error}"));
    let upstreams = target.upstreams.iter();
    let names = upstreams.map(|upstream| format!("{}.port", upstream.name));
    // All are held until the last one is found, so that none is found twice.
    let mut held = Vec::new();
    let mut ports = Vec::new();
    for name in names.chain(["port".to_owned()]) {
        let listener = TcpListener::bind(("127.0.0.1", 0)).map_err(none)?;
        let port = listener.local_addr().map_err(none)?.port();
        ports.push((name, port.to_string()));
        held.push(listener);
    }
    Ok(ports)
}

/// The processes of a target that is up.
struct Sides<'a> {
    size: &'a SizePlan,
    machine_cores: usize,
    upstreams: Vec<Side>,
    target: Option<Side>,
}

struct Side {
    running: Running,
    watched: Option<Watched>,
}

impl Sides<'_> {
    /// Starts the upstreams in their order, then the target.
    fn start(
        &mut self,
        bench: &Bench<'_>,
        target: &TargetPlan,
        ports: &[(String, String)],
        group: Option<&Group>,
    ) -> Result<(), TrialError> {
        let plan = bench.plan;
        for upstream in &target.upstreams {
            let side = self.side(
                upstream,
                format!("upstream {}", upstream.name),
                &plan.upstream_cores,
                ports,
                None,
                bench.interrupt,
            )?;
            self.upstreams.push(side);
        }
        let side = self.side(
            &target.process,
            "target".to_owned(),
            &plan.target_cores,
            ports,
            group,
            bench.interrupt,
        )?;
        self.target = Some(side);
        Ok(())
    }

    fn side(
        &self,
        process: &ProcessPlan,
        name: String,
        cores: &[usize],
        ports: &[(String, String)],
        group: Option<&Group>,
        interrupt: &Interrupt,
    ) -> Result<Side, TrialError> {
        let words: Vec<String> = process.words.iter().map(|word| fill(word, ports)).collect();
        let ready = parse_url(&fill(&process.ready, ports)).expect("was checked with the plan");
        let mut running = server::start(&words, cores, group, &ready, interrupt)?;
        let allowed = self.allowed(cores, group.is_some());
        let tree = running.take_tree();
        Ok(Side {
            running,
            watched: tree.map(|tree| Watched::new(name, allowed, tree)),
        })
    }

    /// Cores that a side may use.
    fn allowed(&self, cores: &[usize], limited: bool) -> f64 {
        let bound = match cores {
            [] => self.machine_cores,
            cores => cores.len(),
        };
        let cpus = self.size.cpus.filter(|_| limited);
        cpus.unwrap_or(f64::INFINITY).min(bound as f64)
    }

    fn each(&mut self, mut look: impl FnMut(&mut Watched)) {
        let sides = self.upstreams.iter_mut().chain(&mut self.target);
        for watched in sides.filter_map(|side| side.watched.as_mut()) {
            look(watched);
        }
    }

    /// Whether any of them has ended although nobody asked it to.
    fn has_dead(&mut self) -> bool {
        let mut sides = self.upstreams.iter_mut().chain(&mut self.target);
        sides.any(|side| side.running.has_ended())
    }

    /// The same in words.
    fn dead(&mut self) -> Option<String> {
        let sides = self.upstreams.iter_mut().chain(&mut self.target);
        let mut dead = sides.filter_map(|side| side.running.has_ended().then_some(side));
        let side = dead.next()?;
        let complaint = side.running.complaint();
        Some(format!("the {} ended under load{complaint}", side.name()))
    }

    /// The outcome, if the kernel has killed anything of the group.
    fn killed(
        &mut self,
        group: Option<&Group>,
        begun: Instant,
        generator: Option<Finished>,
    ) -> Option<Outcome> {
        if group?.killed_for_memory() == 0 {
            return None;
        }
        let after = SystemClock.now().saturating_duration_since(begun);
        let target = self.target.as_mut();
        // The kernel counts before the process is gone.
        let target_ended = target.is_none_or(|side| side.running.ends_within(LAST_BREATH));
        let who = match (self.size.limited, target_ended, generator) {
            (Limited::Generator, ..) => "generator",
            (_, true, _) => "target",
            (Limited::Both, false, Some(finished)) if !finished.status.success() => "generator",
            _ => "a process of the target",
        };
        let watched = self.target.as_ref().and_then(|side| side.watched.as_ref());
        Some(Outcome::Killed {
            who: who.to_owned(),
            after_us: u64::try_from(after.as_micros()).unwrap_or(u64::MAX),
            peak_memory_bytes: watched.map_or(0, Watched::peak_memory_bytes),
        })
    }
}

impl Side {
    fn name(&self) -> &str {
        self.watched.as_ref().map_or("target", Watched::name)
    }
}

/// A load of a trial.
struct Generator<'a> {
    bench: &'a Bench<'a>,
    load: &'a LoadPlan,
    connections: u32,
    url: &'a str,
    group: Option<&'a Group>,
}

/// A load that has run to its end.
struct Ran {
    finished: Finished,
    length: Duration,
    output: String,
    complaint: String,
    generator: Option<Usage>,
}

impl Generator<'_> {
    fn run(&mut self, sides: &mut Sides<'_>, all: Option<&Group>) -> Result<Ran, TrialError> {
        let plan = self.bench.plan;
        match &self.load.loader {
            Loader::Plimsoll(flags) => {
                let words = self.own_words(flags);
                self.once(&words, plan.warm_up, plan.window, sides, all)
            }
            Loader::Command(words) => {
                if !plan.warm_up.is_zero() {
                    let warm_up = self.words(words, plan.warm_up);
                    self.once(&warm_up, Duration::ZERO, plan.warm_up, sides, all)?;
                }
                let words = self.words(words, plan.window);
                self.once(&words, Duration::ZERO, plan.window, sides, all)
            }
        }
    }

    fn own_words(&self, flags: &[String]) -> Vec<String> {
        let plan = self.bench.plan;
        let millis = |time: Duration| format!("{}ms", time.as_millis());
        let mut words: Vec<String> = [self.bench.plimsoll, "load", "--no-tui", "--json", "-c"]
            .map(str::to_owned)
            .into();
        words.push(self.connections.to_string());
        words.extend(["-z".to_owned(), millis(plan.window)]);
        if !plan.warm_up.is_zero() {
            words.extend(["--warm-up".to_owned(), millis(plan.warm_up)]);
        }
        if let Some(rate) = self.load.rate {
            words.extend(["-q".to_owned(), rate.per_second().to_string()]);
        }
        words.extend_from_slice(flags);
        words.push(self.url.to_owned());
        words
    }

    /// Whole seconds, since that is what tools take.
    fn words(&self, words: &[String], length: Duration) -> Vec<String> {
        let rate = self.load.rate.map_or(0.0, plimsoll_model::Rate::per_second);
        let values = [
            ("seconds", length.as_secs().max(1).to_string()),
            ("connections", self.connections.to_string()),
            ("rate", rate.to_string()),
            ("url", self.url.to_owned()),
        ]
        .map(|(name, value)| (name.to_owned(), value));
        words.iter().map(|word| fill(word, &values)).collect()
    }

    /// Runs a command to its end; the window begins `before` after it and lasts `window`.
    ///
    /// It ends early if the target does, or if something of `all` is killed for memory.
    fn once(
        &self,
        words: &[String],
        before: Duration,
        window: Duration,
        sides: &mut Sides<'_>,
        all: Option<&Group>,
    ) -> Result<Ran, TrialError> {
        let clock = SystemClock;
        let cores = &self.bench.plan.generator_cores;
        let mut command = Command::start_in(self.group, words, cores)
            .map_err(|error| TrialError::Failed(with_causes(&error)))?;
        let begun = clock.now();
        let allowed = sides.allowed(cores, self.group.is_some());
        let mut generator = command
            .tree()
            .ok()
            .map(|tree: ProcessTree| Watched::new("generator".to_owned(), allowed, tree));
        let limit = before + window * 2 + Duration::from_secs(30);
        let mut next = [before, before + window.mul_f64(OBSERVED)].into_iter();
        let mut due = next.next();
        loop {
            let elapsed = clock.now().saturating_duration_since(begun);
            let wait = due.map_or(LOOK, |due| due.saturating_sub(elapsed).min(LOOK));
            let finished = command.wait(wait);
            if let Ok(Some(finished)) = finished {
                return Ok(Ran {
                    finished,
                    length: clock.now().saturating_duration_since(begun),
                    output: command.stdout(),
                    complaint: on_own_lines(&command.complaint()),
                    generator: generator.as_ref().and_then(Watched::usage),
                });
            }
            finished.map_err(|error| {
                TrialError::Failed(format!("cannot wait for the generator: {error}"))
            })?;
            if self.bench.interrupt.is_asked() {
                return Err(TrialError::Interrupted);
            }
            let elapsed = clock.now().saturating_duration_since(begun);
            let mut look: fn(&mut Watched) = |watched| {
                watched.look();
            };
            if due.is_some_and(|due| elapsed >= due) {
                due = next.next();
                look = if due.is_some() {
                    Watched::begin
                } else {
                    Watched::end
                };
            }
            sides.each(look);
            generator.iter_mut().for_each(look);
            let killed = all.is_some_and(|group| group.killed_for_memory() > 0);
            if killed || sides.has_dead() {
                return Err(TrialError::Failed(
                    sides
                        .dead()
                        .unwrap_or_else(|| "something was killed for memory".to_owned()),
                ));
            }
            if elapsed > limit {
                let complaint = on_own_lines(&command.complaint());
                return Err(TrialError::Failed(format!(
                    "the generator still ran after {} s{complaint}",
                    limit.as_secs()
                )));
            }
        }
    }
}

/// Reads what the tool printed and puts it beside what the sides used.
fn figures(
    output: &str,
    length: Duration,
    sides: &Sides<'_>,
    generator: Option<Usage>,
) -> Result<Figures, TrialError> {
    let tally = counts::read(output).map_err(|error| TrialError::Failed(error.to_string()))?;
    if tally.ok == 0 {
        return Err(TrialError::Failed(format!(
            "no request was answered ({} failed)",
            tally.failed
        )));
    }
    let told = OwnSummary::of(output);
    let usage = |side: &Side| side.watched.as_ref().and_then(Watched::usage);
    let target = sides.target.as_ref().and_then(usage);
    let upstreams: Vec<Usage> = sides.upstreams.iter().filter_map(usage).collect();
    let used: Vec<&Usage> = generator.iter().chain(&target).chain(&upstreams).collect();
    let shared = sides
        .size
        .cpus
        .filter(|_| sides.size.limited == Limited::Both);
    let cores = shared.unwrap_or(sides.machine_cores as f64);
    let mut saturated = saturated(&used, cores);
    if told.saturated && !saturated.iter().any(|name| name == "generator") {
        saturated.insert(0, "generator".to_owned());
    }
    Ok(Figures {
        source: tally.source.to_owned(),
        ok: tally.ok,
        errors: told.errors.unwrap_or(tally.failed),
        requests_per_second: tally
            .requests_per_second
            .unwrap_or_else(|| tally.ok as f64 / length.as_secs_f64()),
        mean_us: told.latency("mean_us").or(tally.mean_us),
        p50_us: told.latency("p50_us").or(tally.p50_us),
        p99_us: told.latency("p99_us").or(tally.p99_us),
        target,
        generator,
        upstreams,
        saturated,
    })
}

/// What `plimsoll load --json` tells beyond the tally of every tool.
#[derive(Debug, Default)]
struct OwnSummary {
    errors: Option<u64>,
    saturated: bool,
    /// From the intended start, if there was one.
    latency: Option<serde_json::Value>,
}

impl OwnSummary {
    fn of(output: &str) -> Self {
        let Ok(document) = serde_json::from_str::<serde_json::Value>(output.trim()) else {
            return Self::default();
        };
        let saturated = document.pointer("/generator/saturated");
        Self {
            errors: document
                .pointer("/counts/errors")
                .and_then(serde_json::Value::as_u64),
            saturated: saturated.is_some_and(serde_json::Value::is_object),
            latency: document
                .pointer("/latency/from_intended")
                .filter(|latency| latency.is_object())
                .cloned(),
        }
    }

    fn latency(&self, name: &str) -> Option<f64> {
        self.latency.as_ref()?.get(name)?.as_f64()
    }
}
